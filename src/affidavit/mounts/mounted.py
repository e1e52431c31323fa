"""What is mounted: `NAME=URI` as a person writes it, and the mounts in force as the log tells them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from affidavit.errors import UsageError
from affidavit.evidence.canonical import canonical
from affidavit.evidence.record import BlobRef, JsonValue, Limitation
from affidavit.extensions import HelperModule, Snapshot, analyzer_scheme
from affidavit.mounts.seeds import digest_of
from affidavit.namespaces.names import identifier
from affidavit.store import StoredEvent
from affidavit.store.event_kinds import sound

__all__ = ["HOME", "Asked", "Mounted", "mounts_of", "names_scheme", "parse_mount"]

HOME: Final = "workspace"
"""Mounts of the workspace itself stand in the log of this pseudo-session."""

Place: TypeAlias = Literal["db", "tool"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mounted:
    """One mount: a name, and what stands behind it.

    Attributes:
        name: its name below `df.db` (datasets) or `df.tool` (everything else).
        kind: the name of its analyzer or mount adapter.
        uri: what was asked for; the path of a file that was analysed is absolute.
        session: whose mount it is; empty for the whole workspace's.
        project: whether the project file asked for it.
        path: the file or folder that was analysed, or empty.
        artifact: its digest, or empty.
        format: its format, or empty.
        signature: what tells cheaply that it changed.
        evidence_id: the record of its analysis, or empty.
        limitations: places that could not be examined, or things that cannot be offered.
        place: `db` or `tool`.
        folder: where relative paths of the URI start; empty for what was analysed.
        options: what was said beside the URI.
        contents: where the description of what an adapter mounted is kept, or None.
        about: the description in one line, or empty.
        snapshot: which state of the source was described, or None.
        helpers: what it brings into `df.lib`, as it was then.
    """

    name: str
    kind: str
    uri: str
    session: str = ""
    project: bool = False
    path: str = ""
    artifact: str = ""
    format: str = ""
    signature: str = ""
    evidence_id: str = ""
    limitations: tuple[Limitation, ...] = ()
    place: Place = "db"
    folder: str = ""
    options: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    contents: BlobRef | None = None
    about: str = ""
    snapshot: Snapshot | None = None
    helpers: tuple[HelperModule, ...] = ()

    @property
    def left_out(self) -> tuple[str, ...]:
        """What is there and cannot be offered: place and why. Of a file that was analysed, nothing."""
        return () if self.artifact else tuple(f"{it.place}: {it.message}" for it in self.limitations)

    def as_json(self) -> dict[str, Any]:
        """The mount as `affidavit mount show` prints it."""
        return {
            "name": self.name,
            "kind": self.kind,
            "place": self.place,
            "uri": self.uri,
            "path": self.path or None,
            "artifact": self.artifact or None,
            "format": self.format or None,
            "evidence_id": self.evidence_id or None,
            "options": dict(self.options),
            "project": self.project,
            "about": self.about or None,
            "snapshot": asdict(self.snapshot) if self.snapshot else None,
            "limitations": [
                {"code": item.code, "place": item.place, "message": item.message} for item in self.limitations
            ],
            "helpers": [{"key": it.key, "digest": digest_of(it)} for it in self.helpers],
        }

    def as_event(self) -> dict[str, JsonValue]:
        """The data of its `mount-added` event; the event itself names the record and the session."""
        data = self.as_json()
        del data["evidence_id"]
        data["helpers"] = [asdict(it) for it in self.helpers]
        contents = asdict(self.contents) if self.contents else None
        return data | {"signature": self.signature, "folder": self.folder or None, "contents": contents}

    def key(self) -> bytes:
        """What tells this mount from every other one, for look-ups."""
        return canonical([self.session, self.as_event()])


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a person asks to be mounted.

    Attributes:
        name: the namespace's Python name.
        uri: what stands behind it.
        folder: the absolute folder where relative paths start.
        options: what is said beside the URI.
    """

    name: str
    uri: str
    folder: Path
    options: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])

    @property
    def path(self) -> Path:
        """Where a file or folder is: absolute and without `..`, with links kept that no `..` needs followed."""
        scheme = analyzer_scheme(self.uri)
        named = self.uri if scheme is None else self.uri.removeprefix(f"{scheme}:")
        path = (self.folder / Path(named).expanduser()).absolute()
        return path.parent.resolve() / path.name if ".." in path.parent.parts else path

    def is_of(self, mounted: Mounted) -> bool:
        """Whether a mount in force is what is asked for."""
        if mounted.artifact:
            return mounted.path == str(self.path)
        return (self.uri, str(self.folder), dict(self.options)) == (
            mounted.uri, mounted.folder, dict(mounted.options)
        )  # fmt: skip


def mounts_of(events: Iterable[StoredEvent]) -> dict[str, Mounted]:
    """Reduce events to the mounts in force, by name. A later mount of a name replaces the earlier."""
    found: dict[str, Mounted] = {}
    for event in sound(events):
        data = cast("dict[str, Any]", event.data)
        if event.kind == "mount-added":
            found[data["name"]] = _mounted(data, event)
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


def names_scheme(uri: str) -> bool:
    """Whether a URI names its adapter (`mcp+stdio:`) and is no plain path; drive letters are paths.

    >>> names_scheme("python:tools"), names_scheme("./app.asar")
    (True, False)
    """
    return _SCHEME.match(uri) is not None


def _mounted(data: Mapping[str, Any], event: StoredEvent) -> Mounted:
    contents, snapshot = data.get("contents"), data.get("snapshot")
    return Mounted(
        name=data["name"],
        kind=data["kind"],
        uri=data["uri"],
        session="" if event.session == HOME else event.session,
        project=data.get("project", False),
        path=data["path"] or "",
        artifact=data["artifact"] or "",
        format=data["format"] or "",
        signature=data["signature"],
        evidence_id=event.evidence_id or "",
        limitations=tuple(Limitation(**item) for item in data["limitations"]),
        # Earlier versions mounted files and modules alone, and said no place.
        place=data.get("place") or ("db" if data["artifact"] else "tool"),
        folder=data.get("folder") or "",
        options=data.get("options") or {},
        contents=BlobRef(digest=contents["digest"], size=contents["size"]) if contents else None,
        about=data.get("about") or "",
        snapshot=Snapshot(identity=snapshot["identity"], basis=snapshot["basis"]) if snapshot else None,
        helpers=tuple(HelperModule(key=it["key"], code=it["code"]) for it in data.get("helpers") or ()),
    )
