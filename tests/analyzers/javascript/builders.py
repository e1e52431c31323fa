"""Small archives, built byte by byte from the formats' descriptions, well-formed and not."""

from __future__ import annotations

import hashlib
import io
import json
import struct
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BLOCK = 4 << 20


def asar(header: Mapping[str, Any] | bytes, data: bytes = b"") -> bytes:
    """An archive with this header, padded to whole words as packers do."""
    text = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    padded = text + bytes(-len(text) % 4)
    return struct.pack("<4I", 4, len(padded) + 8, len(padded) + 4, len(text)) + padded + data


def packed(offset: int, size: int, **more: Any) -> dict[str, Any]:
    """The header entry of a packed file."""
    return {"size": size, "offset": str(offset), **more}


def integrity(data: bytes, *, block: int = BLOCK, **wrong: Any) -> dict[str, Any]:
    """The declared digests of a file; `wrong` replaces fields."""
    blocks = [data[at : at + block] for at in range(0, len(data), block)] or [b""]
    return {
        "algorithm": "SHA256",
        "hash": hashlib.sha256(data).hexdigest(),
        "blockSize": block,
        "blocks": [hashlib.sha256(one).hexdigest() for one in blocks],
        **wrong,
    }


def asar_of(files: Mapping[str, bytes]) -> bytes:
    """A well-formed archive of these files, with digests."""
    root: dict[str, Any] = {"files": {}}
    data = b""
    for path, content in files.items():
        *parents, name = path.split("/")
        node = root
        for parent in parents:
            node = node["files"].setdefault(parent, {"files": {}})
        node["files"][name] = packed(len(data), len(content), integrity=integrity(content))
        data += content
    return asar(root, data)


@dataclass(frozen=True, kw_only=True)
class TarEntry:
    name: str
    data: bytes = b""
    kind: bytes = tarfile.REGTYPE
    mode: int = 0o644
    link: str = ""


def tgz(entries: Sequence[TarEntry], *, form: int = tarfile.PAX_FORMAT) -> bytes:
    """A gzipped tar of these members, names taken as they are."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", format=form, compresslevel=1) as archive:
        for entry in entries:
            info = tarfile.TarInfo(entry.name)
            info.size, info.type, info.mode, info.linkname = (
                len(entry.data),
                entry.kind,
                entry.mode,
                entry.link,
            )
            archive.addfile(info, io.BytesIO(entry.data))
    return buffer.getvalue()


def tgz_of(files: Mapping[str, bytes], *, prefix: str = "package/") -> bytes:
    """A tarball as npm makes it."""
    return tgz([TarEntry(name=prefix + path, data=content) for path, content in files.items()])


def write_tree(root: Path, files: Mapping[str, bytes | str]) -> Path:
    """Write files below a folder, which is returned."""
    for path, content in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
    root.mkdir(parents=True, exist_ok=True)
    return root
