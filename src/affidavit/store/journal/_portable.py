"""What of an event is the host's own and stays out of a journal."""

from __future__ import annotations

import re
from typing import Any, Final, cast

import orjson

from affidavit.evidence.canonical import canonical

__all__ = ["portable"]

_MOUNTED: Final = "mount-added"
_ABSOLUTE: Final = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]+:)?(?://)?(?:[/\\]|[A-Za-z]:[/\\]).*?(?P<name>[^/\\]*)[/\\]*"
)


def portable(kind: str, data: bytes) -> bytes:
    """The canonical data of an event without paths and other marks of the host; most events have none.

    A mount keeps its name, kind, artifact digest, format and description. Its path, and what tells whether the file
    changed, go; so do the folder, the command and the options of what an adapter mounted: it is mounted again where
    the journal is restored.
    """
    if kind != _MOUNTED:
        return data
    found = orjson.loads(data)
    if not isinstance(found, dict):
        return data
    mount = cast("dict[str, Any]", found)
    changes: dict[str, Any] = {}
    if mount.get("path"):
        changes = {"path": None, "uri": mount.get("artifact") or ""}
    elif isinstance(mount.get("uri"), str) and (match := _ABSOLUTE.fullmatch(mount["uri"])):
        changes = {"uri": (match["scheme"] or "") + match["name"]}
    if mount.get("folder"):
        scheme = str(mount.get("uri", "")).partition(":")[0]
        changes = {"uri": f"{scheme}:", "folder": None, "options": {}}
    if mount.get("signature"):
        changes["signature"] = ""
    return canonical(mount | changes) if changes else data
