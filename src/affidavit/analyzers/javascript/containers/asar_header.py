"""The header of an ASAR archive: from bytes to entries, with hostile headers refused where they lie.

Layout (little-endian): `u32 4 | u32 H | u32 P | u32 J | J bytes of JSON | padding`; H counts what follows its own
field, so file data start at `8 + H`. In the JSON a directory has `files`, a link has `link` (a path from the
archive's root), a file has `size` and either `offset` (decimal *text*, from the start of the data) or `unpacked`.
"""

from __future__ import annotations

import json
import re
import struct
from dataclasses import dataclass
from typing import Any, Final, cast

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
_SHA256: Final = re.compile(r"[0-9a-fA-F]{64}\Z", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What the JSON says. `offsets` holds the place of each packed file, from the start of the data."""

    entries: tuple[Entry, ...]
    offsets: dict[str, int]
    limitations: tuple[Limitation, ...]


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
    parsed = _parse_json(raw)
    root = cast(dict[str, Any], parsed) if isinstance(parsed, dict) else {}
    if not isinstance(root.get("files"), dict):
        raise damaged("the archive", PREFIX, "its header has no `files` object")
    return _Reader(data_size).read(root)


def _parse_json(raw: bytes) -> Any:
    # Refused before parsing, because every brace becomes a Python object of up to 200 bytes.
    if (
        raw.count(b"{") > 3 * MAX_ENTRIES
        or raw.count(b"[") > 3 * MAX_ENTRIES
        or raw.count(b",") > 20 * MAX_ENTRIES
    ):
        raise beyond("the archive", PREFIX, f"its header lists more than {MAX_ENTRIES:,} entries")
    try:
        # Names that are no UTF-8 become lone surrogates and are refused one by one.
        text = raw.decode("utf-8", "surrogateescape")
        return json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
    except RecursionError:
        raise damaged("the archive", PREFIX, "its header is nested too deeply") from None
    except json.JSONDecodeError as error:
        offset = PREFIX + len(error.doc[: error.pos].encode("utf-8", "surrogateescape"))
        raise damaged("the archive", offset, f"its header is no JSON: {error.msg}") from None
    except ValueError as error:
        raise damaged("the archive", PREFIX, f"its header is no JSON: {error}") from None


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
        self._offsets: dict[str, int] = {}
        self._limitations: list[Limitation] = []

    def read(self, root: dict[str, Any]) -> Header:
        pending: list[tuple[str, dict[str, Any], int]] = [("", root["files"], 0)]
        while pending:
            directory, files, depth = pending.pop()
            if isinstance(files, _Repeated):
                self._repeated(directory, files)
            for name, node in files.items():
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
        listed = sum(entry.size for entry in self._entries if entry.path in self._offsets)
        if listed > _OVERLAP * self._data_size + _OVERLAP_FREE:
            raise beyond("the archive", PREFIX, f"its header lists {listed:,} bytes in {self._data_size:,}")
        return Header(
            entries=tuple(sorted(self._entries, key=lambda entry: entry.path)),
            offsets=self._offsets,
            limitations=tuple(self._limitations),
        )

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
        if not unpacked:
            self._offsets[path] = self._place(path, fields.get("offset"), size)
        return Entry(
            path=path,
            kind="file",
            size=size,
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
        if declared is None:
            return None
        fields = cast(dict[str, Any], declared) if isinstance(declared, dict) else {}
        blocks = fields.get("blocks")
        size = fields.get("blockSize")
        if (
            fields.get("algorithm") == "SHA256"
            and _is_digest(fields.get("hash"))
            and type(size) is int
            and size > 0
            and isinstance(blocks, list)
            and all(_is_digest(block) for block in cast(list[Any], blocks))
        ):
            return Integrity(
                sha256=fields["hash"].lower(),
                block_size=size,
                blocks=tuple(block.lower() for block in cast(list[str], blocks)),
            )
        self._limitations.append(limitation("entry-damaged", path, "its declared integrity is malformed"))
        return None


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and _SHA256.match(value) is not None


def _shown(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 40 else text[:40] + "..."
