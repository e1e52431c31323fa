"""What is mounted: `NAME=URI` as a person writes it, and the mounts in force as the log tells them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from affidavit.errors import UsageError
from affidavit.evidence.record import JsonValue, Limitation
from affidavit.namespaces.names import identifier
from affidavit.store import StoredEvent

__all__ = ["Mounted", "mounts_of", "parse_mount"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mounted:
    """One mount: a name, and what stands behind it.

    Attributes:
        name: its name below `df.db` (datasets) or `df.tool` (functions).
        kind: the analyzer's name, or `python`.
        uri: what was asked for; paths are absolute.
        path: the file or folder, or empty.
        artifact: digest of the artifact, or empty.
        format: its format, or empty.
        signature: what tells cheaply that it changed.
        evidence_id: the record of its analysis, or empty.
        limitations: places that could not be examined.
    """

    name: str
    kind: str
    uri: str
    path: str = ""
    artifact: str = ""
    format: str = ""
    signature: str = ""
    evidence_id: str = ""
    limitations: tuple[Limitation, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The mount as `affidavit mount show` prints it."""
        return {
            "name": self.name,
            "kind": self.kind,
            "uri": self.uri,
            "path": self.path or None,
            "artifact": self.artifact or None,
            "format": self.format or None,
            "evidence_id": self.evidence_id or None,
            "limitations": [
                {"code": item.code, "place": item.place, "message": item.message} for item in self.limitations
            ],
        }

    def as_event(self) -> dict[str, JsonValue]:
        """The data of its `mount-added` event; the event itself names the record."""
        data = self.as_json()
        del data["evidence_id"]
        return data | {"signature": self.signature}


def mounts_of(events: Iterable[StoredEvent]) -> dict[str, Mounted]:
    """Reduce events to the mounts in force, by name. A later mount of a name replaces the earlier."""
    found: dict[str, Mounted] = {}
    for event in events:
        data = cast("dict[str, Any]", event.data)
        if event.kind == "mount-added":
            found[data["name"]] = _mounted(data, event.evidence_id or "")
        elif event.kind == "mount-removed":
            found.pop(data["name"], None)
    return found


def parse_mount(spec: str) -> tuple[str, str]:
    """Split `NAME=URI`.

    Raises:
        UsageError: `mount-invalid`, with a name that would do.

    >>> parse_mount("app=./app.asar")
    ('app', './app.asar')
    """
    name, equals, uri = spec.partition("=")
    if not equals or not uri:
        raise UsageError("mount-invalid", f"{spec!r} is not NAME=URI", hint="for example app=./app.asar")
    if not _NAME.match(name) or identifier(name) != name:
        raise UsageError(
            "mount-invalid",
            f"{name!r} cannot be a mount's name, since scripts write df.db.NAME",
            hint=f"for example {identifier(name)}",
        )
    return name, uri


def _mounted(data: Mapping[str, Any], evidence_id: str) -> Mounted:
    return Mounted(
        name=data["name"],
        kind=data["kind"],
        uri=data["uri"],
        path=data["path"] or "",
        artifact=data["artifact"] or "",
        format=data["format"] or "",
        signature=data["signature"],
        evidence_id=evidence_id,
        limitations=tuple(Limitation(**item) for item in data["limitations"]),
    )
