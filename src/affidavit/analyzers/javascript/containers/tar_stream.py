"""Tar members out of a gzip stream, bounded at every step.

Own reader, because what a hostile archive may cost has to be bounded before anything is allocated, and because the
same bytes must give the same facts on every Python version. It reads what npm's packer and reader know: ustar, pax
(`x`, `g`) and GNU long names (`L`, `K`).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final, Literal, TypeAlias

from affidavit.analyzers.javascript.containers.entry import MAX_ENTRIES, beyond, damaged
from affidavit.errors import VerificationError

__all__ = ["Member", "MemberKind", "TarStream", "looks_like_tar"]

BLOCK: Final = 512
_MAX_TOTAL: Final = 2 << 30
_MAX_META: Final = 1 << 20
_READ: Final = 256 << 10

MemberKind: TypeAlias = Literal["file", "directory", "symbolic-link", "hard-link", "special"]

_KINDS: Final[dict[bytes, MemberKind]] = {
    b"0": "file",
    b"\0": "file",
    b"7": "file",
    b"1": "hard-link",
    b"2": "symbolic-link",
    b"5": "directory",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One member as its headers say; names that are no UTF-8 hold lone surrogates."""

    name: str
    kind: MemberKind
    size: int
    mode: int
    link: str
    offset: int


class _Gunzip:
    """Decompressed bytes in order; counts them and refuses to pass the bound."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._inflate = zlib.decompressobj(wbits=31)
        self._input = b""
        self._read = 0
        self.position = 0

    def take(self, size: int) -> bytes:
        """Up to `size` bytes; fewer only at the end."""
        parts: list[bytes] = []
        while size > 0:
            data = self._some(size)
            if not data:
                break
            parts.append(data)
            size -= len(data)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _some(self, size: int) -> bytes:
        while True:
            if self._inflate.eof and not self._next_stream():
                return b""
            if not self._input:
                self._input = self._source.read(_READ)
                self._read += len(self._input)
                if not self._input:
                    raise damaged("the tarball", self._read, "its gzip stream is cut off")
            try:
                data = self._inflate.decompress(self._input, size)
            except zlib.error as error:
                offset = self._read - len(self._input)
                raise damaged("the tarball", offset, f"its gzip stream is broken: {error}") from None
            self._input = self._inflate.unconsumed_tail or self._inflate.unused_data
            if data:
                self.position += len(data)
                if self.position > _MAX_TOTAL:
                    raise beyond("the tarball", self._read, f"it unpacks to more than {_MAX_TOTAL:,} bytes")
                return data

    def _next_stream(self) -> bool:
        # A gzip file may hold several streams; zeros or other bytes behind the last one are padding.
        if not self._input:
            self._input = self._source.read(_READ)
            self._read += len(self._input)
        if not self._input.startswith(b"\x1f\x8b"):
            return False
        self._inflate = zlib.decompressobj(wbits=31)
        return True


class TarStream:
    """Iterates `(member, chunks)`; the chunks of a member are to be read, or not, before the next one is asked for."""

    def __init__(self, source: BinaryIO) -> None:
        self._stream = _Gunzip(source)
        self._left = 0
        self._padding = 0

    def __iter__(self) -> Iterator[Member]:
        meta: dict[str, str] = {}
        count = 0
        while (header := self._header()) is not None:
            count += 1
            if count > MAX_ENTRIES:
                raise beyond("the tarball", self._stream.position, f"more than {MAX_ENTRIES:,} members")
            kind = header[156:157]
            offset = self._stream.position - BLOCK
            size = _number(header[124:136], offset)
            if kind in {b"x", b"g", b"L", b"K"}:
                body = self._meta(size, offset)
                if (
                    kind != b"g"
                ):  # global headers carry the commit of a git archive, nothing that is read here
                    meta.update(_meta_fields(kind, body, offset))
                continue
            member = _member(header, kind, size, meta, offset)
            meta = {}
            self._left, self._padding = member.size, -member.size % BLOCK
            yield member
            for _ in self.chunks():
                pass
            self._skip_padding()
        # The checksum of the gzip stream comes last: without it the members may be anything.
        while self._stream.take(_READ):
            pass

    def chunks(self) -> Iterator[bytes]:
        """What is left of the current member's bytes."""
        while self._left:
            data = self._stream.take(min(self._left, _READ))
            if not data:
                raise damaged("the tarball", self._stream.position, f"it ends {self._left:,} bytes early")
            self._left -= len(data)
            yield data

    def _skip_padding(self) -> None:
        self._stream.take(self._padding)
        self._padding = 0

    def _header(self) -> bytes | None:
        block = self._stream.take(BLOCK)
        if not block or block.count(0) == BLOCK:
            return None
        offset = self._stream.position - len(block)
        if len(block) < BLOCK:
            raise damaged("the tarball", offset, "it ends inside a member's header")
        if not _checksum_holds(block):
            raise damaged("the tarball", offset, "a member's header does not have its checksum")
        return block

    def _meta(self, size: int, offset: int) -> bytes:
        if size > _MAX_META:
            raise beyond("the tarball", offset, f"an extended header of {size:,} bytes")
        body = self._stream.take(size)
        if len(body) < size:
            raise damaged("the tarball", offset, "it ends inside an extended header")
        self._stream.take(-size % BLOCK)
        return body


def looks_like_tar(head: bytes) -> bool:
    """Whether the first bytes of a file are a gzip stream whose first block is a tar header."""
    if not head.startswith(b"\x1f\x8b"):
        return False
    try:
        block = zlib.decompressobj(wbits=31).decompress(head, BLOCK)
    except zlib.error:
        return False
    return len(block) == BLOCK and _checksum_holds(block)


def _checksum_holds(block: bytes) -> bool:
    try:
        declared = _number(block[148:156], 0)
    except VerificationError:
        return False
    plain = sum(block) - sum(block[148:156]) + 8 * 32
    if declared == plain:
        return True
    # Some old writers summed signed bytes.
    return declared == plain - 256 * sum(byte > 127 for byte in block[:148] + block[156:])


def _number(field: bytes, offset: int) -> int:
    if field[0] & 0x80:  # GNU base-256
        value = int.from_bytes(field, "big") & ((1 << (8 * len(field) - 1)) - 1)
        if field[0] == 0xFF or value > _MAX_TOTAL:
            raise damaged("the tarball", offset, "a member's size is out of bounds")
        return value
    text = field.split(b"\0")[0].strip()
    if not text:
        return 0
    if not all(48 <= byte <= 55 for byte in text):
        raise damaged("the tarball", offset, "a number in a member's header is no octal number")
    return int(text, 8)


def _text(field: bytes) -> str:
    return field.split(b"\0")[0].decode("utf-8", "surrogateescape")


def _meta_fields(kind: bytes, body: bytes, offset: int) -> dict[str, str]:
    if kind in {b"L", b"K"}:
        return {"path" if kind == b"L" else "linkpath": _text(body)}
    fields: dict[str, str] = {}
    at = 0
    while at < len(body):
        digits, space, _ = body[at : at + 16].partition(b" ")
        length = int(digits) if space and digits.isdigit() else 0
        record = body[at : at + length]
        if length <= len(digits) + 2 or len(record) < length or not record.endswith(b"\n"):
            raise damaged("the tarball", offset, "an extended header that is no list of records")
        key, _, value = record[len(digits) + 1 : -1].partition(b"=")
        fields[key.decode("utf-8", "replace")] = value.decode("utf-8", "surrogateescape")
        at += length
    return fields


def _member(header: bytes, kind: bytes, size: int, meta: dict[str, str], offset: int) -> Member:
    name = _text(header[:100])
    if header[257:262] == b"ustar" and header[262:263] == b"\0":
        prefix = _text(header[345:500])
        name = f"{prefix}/{name}" if prefix else name
    what = _KINDS.get(kind, "special")
    name = meta.get("path", name)
    declared = meta.get("size")
    if declared is not None:
        if not (declared.isascii() and declared.isdigit() and len(declared) < 16):
            raise damaged("the tarball", offset, "an extended header with a size that is no number")
        size = int(declared)
    if what == "file" and name.endswith("/"):
        what = "directory"  # as tars before 1988 wrote directories
    return Member(
        name=name,
        kind=what,
        # Links and directories have no data, whatever their size field says.
        size=size if what in {"file", "special"} else 0,
        mode=_number(header[100:108], offset),
        link=meta.get("linkpath", _text(header[157:257])),
        offset=offset,
    )
