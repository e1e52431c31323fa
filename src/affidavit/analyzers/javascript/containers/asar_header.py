"""The header of an ASAR archive: from bytes to entries, with hostile headers refused where they lie.

Layout (little-endian): `u32 4 | u32 H | u32 P | u32 J | J bytes of JSON | padding`; H counts what follows its own
field, so file data start at `8 + H`. In the JSON a directory has `files`, a link has `link` (a path from the
archive's root), a file has `size` and either `offset` (decimal *text*, from the start of the data) or `unpacked`.

A header may have 64 MB, of which the usual Python objects would make half a gigabyte. So what makes up most of it, the
objects of files and of their digests, becomes small as soon as it is read, and is let go as it is listed.
"""

from __future__ import annotations

import json
import re
import struct
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

from affidavit.analyzers.javascript.containers.entry import (
    MAX_ENTRIES,
    Entry,
    EntryError,
    Integrity,
    beyond,
    damaged,
    limitation,
    unsafe_link,
    unsafe_name,
)
from affidavit.analyzers.javascript.containers.tree import join
from affidavit.evidence.record import Limitation

__all__ = ["PREFIX", "Header", "looks_like_asar", "parse_header", "parse_prefix"]

PREFIX: Final = 16
"""Bytes before the JSON."""

_MAX_JSON: Final = 64 << 20
_MAX_DEPTH: Final = 128
_MAX_SIZE: Final = (1 << 53) - 1
_OVERLAP: Final = 4
_OVERLAP_FREE: Final = 64 << 20
"""Entries may share bytes, but not so often that reading them all costs many times the archive."""
_OFFSET: Final = re.compile(r"[0-9]{1,16}\Z", re.ASCII)
_LARGE: Final = 8 << 20
"""Bytes of a header above which its text is kept small."""
_NOT_ASCII: Final = re.compile(rb"[\x80-\xff]+")
_FILE_KEYS: Final = frozenset({"size", "offset", "executable", "integrity"})
"""What the object of a file in the archive may say."""
_SHA256: Final = re.compile(r"[0-9a-fA-F]{64}\Z", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What the JSON says. The `offset` of an entry is from the start of the data."""

    entries: tuple[Entry, ...]
    limitations: tuple[Limitation, ...]


class _File(NamedTuple):
    """The object of a file that has nothing unusual."""

    size: int
    offset: str
    executable: Any = None
    integrity: Any = None


class _Repeated(dict[str, Any]):
    """A JSON object that named some keys twice; the last one counts, as for every JavaScript reader."""

    names: tuple[str, ...] = ()


def looks_like_asar(head: bytes) -> bool:
    """Whether the first bytes of a file have the fixed part of the layout and begin a JSON object."""
    if len(head) <= PREFIX:
        return False
    first, outer, inner, length = struct.unpack_from("<4I", head)
    return first == 4 and outer >= inner >= length and head[PREFIX : PREFIX + 1] == b"{"


def parse_prefix(prefix: bytes, file_size: int) -> tuple[int, int]:
    """The length of the JSON and the offset of the file data.

    Raises:
        VerificationError: `artifact-damaged`, naming the offset of the field that does not hold.
    """
    if len(prefix) < PREFIX:
        raise damaged(
            "the archive",
            len(prefix),
            f"it ends there, before the {PREFIX} bytes that every ASAR begins with",
        )
    first, outer, inner, length = struct.unpack("<4I", prefix)
    if first != 4:
        raise damaged("the archive", 0, f"an ASAR begins with the number 4, not {first}")
    if outer > file_size - 8:
        raise damaged("the archive", 4, f"a header of {outer:,} bytes in a file of {file_size:,}")
    if inner > outer - 4 or length > inner - 4 or inner < 4:
        raise damaged("the archive", 8, f"header lengths {outer:,}, {inner:,} and {length:,} do not nest")
    if length > _MAX_JSON:
        raise beyond("the archive", 12, f"a header of {length:,} bytes, above the bound of {_MAX_JSON:,}")
    return length, 8 + outer


def parse_header(raw: bytes, data_size: int) -> Header:
    """The entries of an archive whose data part has `data_size` bytes.

    Raises:
        VerificationError: `artifact-damaged` when the JSON as a whole does not hold.
    """
    _refuse_bombs(raw)
    parsed = _parse_json(raw)
    del raw
    root = cast(dict[str, Any], parsed) if isinstance(parsed, dict) else {}
    if not isinstance(root.get("files"), dict):
        raise damaged("the archive", PREFIX, "its header has no `files` object")
    return _Reader(data_size).read(root)


def _refuse_bombs(raw: bytes) -> None:
    # Before parsing, because every brace may become a Python object of up to 200 bytes.
    if (
        raw.count(b"{") > 3 * MAX_ENTRIES
        or raw.count(b"[") > 3 * MAX_ENTRIES
        or raw.count(b",") > 20 * MAX_ENTRIES
    ):
        raise beyond("the archive", PREFIX, f"its header lists more than {MAX_ENTRIES:,} entries")


def _parse_json(raw: bytes) -> Any:
    if len(raw) > _LARGE and not raw.isascii():
        # One character beyond ASCII makes the whole text take two or four bytes each; escaped, it does not.
        with suppress(ValueError):
            return _loads(_NOT_ASCII.sub(_escaped, raw).decode("ascii"))
    try:
        # Names that are no UTF-8 become lone surrogates and are refused one by one.
        return _loads(raw.decode("utf-8", "surrogateescape"))
    except json.JSONDecodeError as error:
        offset = PREFIX + len(error.doc[: error.pos].encode("utf-8", "surrogateescape"))
        raise damaged("the archive", offset, f"its header is no JSON: {error.msg}") from None
    except ValueError as error:
        raise damaged("the archive", PREFIX, f"its header is no JSON: {error}") from None


def _loads(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_Objects(), parse_constant=_no_constant)
    except RecursionError:
        raise damaged("the archive", PREFIX, "its header is nested too deeply") from None


def _escaped(found: re.Match[bytes]) -> bytes:
    return json.dumps(found[0].decode("utf-8", "surrogateescape"))[1:-1].encode("ascii")


class _Objects:
    """Makes what each JSON object becomes: small where it is a file's or its digests', else a dictionary."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}

    def __call__(self, pairs: list[tuple[str, Any]]) -> Any:
        made = _object(pairs)
        if type(made) is not dict:
            return made
        if _FILE_KEYS.issuperset(made) and type(made.get("size")) is int and type(made.get("offset")) is str:
            return _File(made["size"], made["offset"], made.get("executable"), made.get("integrity"))
        return (self._integrity(made) if "blockSize" in made else None) or made

    def _integrity(self, fields: dict[str, Any]) -> Integrity | None:
        size = fields["blockSize"]
        blocks = fields.get("blocks")
        if (
            fields.get("algorithm") != "SHA256"
            or not _is_digest(fields.get("hash"))
            or type(size) is not int
            or size <= 0
            or not isinstance(blocks, list)
            or not all(_is_digest(block) for block in cast(list[Any], blocks))
        ):
            return None
        whole = bytes.fromhex(fields["hash"])
        together = b"".join(map(bytes.fromhex, cast(list[str], blocks)))
        return Integrity(
            sha256=whole,
            block_size=self._numbers.setdefault(size, size),
            blocks=whole if together == whole else together,
        )


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) == len(pairs):
        return made
    repeated = _Repeated(made)
    seen: set[str] = set()
    names: list[str] = []
    for name, _ in pairs:
        if name in seen:
            names.append(name)
        seen.add(name)
    repeated.names = tuple(dict.fromkeys(names))
    return repeated


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


class _Reader:
    def __init__(self, data_size: int) -> None:
        self._data_size = data_size
        self._entries: list[Entry] = []
        self._limitations: list[Limitation] = []

    def read(self, root: dict[str, Any]) -> Header:
        pending: list[tuple[str, dict[str, Any], int]] = [("", root["files"], 0)]
        while pending:
            directory, files, depth = pending.pop()
            if isinstance(files, _Repeated):
                self._repeated(directory, files)
            names = list(files)[::-1]
            while names:
                name = names.pop()
                node = files.pop(name)
                path = join(directory, name)
                try:
                    inner = self._node(path, name, node, depth)
                except EntryError as error:
                    self._limitations.append(error.limitation)
                else:
                    if inner is not None:
                        pending.append((path, inner, depth + 1))
        if len(self._entries) > MAX_ENTRIES:
            raise beyond("the archive", PREFIX, f"its header lists more than {MAX_ENTRIES:,} entries")
        listed = sum(entry.size for entry in self._entries if not entry.unpacked)
        if listed > _OVERLAP * self._data_size + _OVERLAP_FREE:
            raise beyond("the archive", PREFIX, f"its header lists {listed:,} bytes in {self._data_size:,}")
        self._entries.sort(key=lambda entry: entry.path)
        return Header(entries=tuple(self._entries), limitations=tuple(self._limitations))

    def _repeated(self, directory: str, files: _Repeated) -> None:
        for name in files.names:
            self._limitations.append(
                limitation(
                    "entry-skipped",
                    join(directory, name),
                    "named twice in one directory; the last one counts",
                )
            )

    def _node(self, path: str, name: str, node: Any, depth: int) -> dict[str, Any] | None:
        """List one node; the children of a directory that has some are returned."""
        reason = unsafe_name(name)
        if reason:
            raise EntryError("entry-unsafe", path, reason)
        if depth >= _MAX_DEPTH:
            raise EntryError("entry-unsafe", path, f"nested more than {_MAX_DEPTH} directories deep")
        if isinstance(node, _File):
            self._entries.append(self._file(path, node._asdict()))
            return None
        if not isinstance(node, dict):
            raise EntryError("entry-damaged", path, "its header entry is no object")
        fields = cast(dict[str, Any], node)
        if isinstance(fields, _Repeated):
            raise EntryError("entry-damaged", path, f"its header entry says `{fields.names[0]}` twice")
        if "files" in fields:
            return self._directory(path, fields["files"])
        self._entries.append(self._link(path, fields) if "link" in fields else self._file(path, fields))
        return None

    def _directory(self, path: str, files: Any) -> dict[str, Any] | None:
        if not isinstance(files, dict):
            raise EntryError("entry-damaged", path, "the `files` of its header entry is no object")
        if not files:
            self._entries.append(Entry(path=path, kind="directory"))
            return None
        return cast(dict[str, Any], files)

    def _link(self, path: str, fields: dict[str, Any]) -> Entry:
        target = fields["link"]
        if not isinstance(target, str) or not target:
            raise EntryError("entry-damaged", path, "the `link` of its header entry is no path")
        if unsafe_link(target):
            raise EntryError("entry-unsafe", path, "a link that leaves the container")
        return Entry(path=path, kind="link", target=target, unpacked=fields.get("unpacked") is True)

    def _file(self, path: str, fields: dict[str, Any]) -> Entry:
        size = fields.get("size")
        if type(size) is not int or not 0 <= size <= _MAX_SIZE:
            raise EntryError("entry-damaged", path, f"its size {_shown(size)} is no whole number from 0")
        unpacked = fields.get("unpacked") is True
        offset = 0 if unpacked else self._place(path, fields.get("offset"), size)
        return Entry(
            path=path,
            kind="file",
            size=size,
            offset=offset,
            executable=fields.get("executable") is True,
            unpacked=unpacked,
            integrity=self._integrity(path, fields.get("integrity")),
        )

    def _place(self, path: str, offset: Any, size: int) -> int:
        if not isinstance(offset, str) or not _OFFSET.match(offset):
            raise EntryError("entry-damaged", path, f"its offset {_shown(offset)} is no decimal text")
        place = int(offset)
        if place + size > self._data_size:
            raise EntryError(
                "entry-damaged",
                path,
                f"bytes {place:,} to {place + size:,} of {self._data_size:,}: past the end",
            )
        return place

    def _integrity(self, path: str, declared: Any) -> Integrity | None:
        if declared is None or isinstance(declared, Integrity):
            return declared
        self._limitations.append(limitation("entry-damaged", path, "its declared integrity is malformed"))
        return None


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and _SHA256.match(value) is not None


def _shown(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 40 else text[:40] + "..."
