"""The project file: mounts and grants that a person wrote down, shared by every session of a workspace.

```toml
[mounts]
app = "./app.asar"                        # relative to this file

[mounts.wx]
uri = "mcp+stdio:python server.py"
env = ["WX_TOKEN"]                        # every other key is an option of the mount
tenants = ["default"]                     # these tenants alone

[[grants]]
effect = "write"
pattern = "tool.shop.*"
```
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn, cast

from affidavit.errors import UsageError
from affidavit.mounts.mounted import Asked, parse_mount
from affidavit.mounts.secrets import refuse_userinfo
from affidavit.policy import Grant, parse_grant

__all__ = ["FILE", "Project", "read_project"]

FILE: Final = "affidavit.toml"
_MAX_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """What a project file says to one tenant."""

    mounts: tuple[Asked, ...] = ()
    grants: tuple[Grant, ...] = ()


def read_project(path: Path, *, tenant: str) -> Project:
    """Read a project file; one that is not there says nothing.

    Raises:
        UsageError: `project-invalid`, with the place.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        return Project()
    except OSError as error:
        _refuse(path, "", f"cannot be read: {error.strerror}")
    if len(data) > _MAX_BYTES:
        _refuse(path, "", f"has more than {_MAX_BYTES} bytes")
    try:
        document = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        _refuse(path, "", f"is not TOML: {error}")
    for key in document:
        if key not in ("mounts", "grants"):
            _refuse(path, key, "is neither mounts nor grants")
    mounts, grants = document.get("mounts", {}), document.get("grants", [])
    if not isinstance(mounts, dict):
        _refuse(path, "mounts", "is not a table")
    if not isinstance(grants, list):
        _refuse(path, "grants", "is not a list of tables")
    asked = [_mount(path, name, entry, tenant) for name, entry in cast("dict[str, Any]", mounts).items()]
    given = [_grant(path, place, entry, tenant) for place, entry in enumerate(cast("list[Any]", grants))]
    return Project(
        mounts=tuple(it for it in asked if it is not None),
        grants=tuple(it for it in given if it is not None),
    )


def _mount(path: Path, name: str, entry: object, tenant: str) -> Asked | None:
    place = f"mounts.{name}"
    table = {"uri": entry} if isinstance(entry, str) else _table(path, place, entry)
    uri = table.pop("uri", None)
    if not isinstance(uri, str) or not uri:
        _refuse(path, f"{place}.uri", "is not text")
    _plain(path, place, table)
    if not _is_for(path, place, table, tenant):
        return None
    try:
        parse_mount(f"{name}={uri}")
        refuse_userinfo(uri)
    except UsageError as error:
        _refuse(path, place, f"cannot be: {error.message}", error.hint)
    folder = path.parent.absolute()
    return Asked(name=name, uri=uri, folder=folder, options=table)


def _grant(path: Path, number: int, entry: object, tenant: str) -> Grant | None:
    place = f"grants[{number}]"
    table = _table(path, place, entry)
    if not _is_for(path, place, table, tenant):
        return None
    effect, pattern = table.pop("effect", None), table.pop("pattern", "*")
    if not isinstance(effect, str) or not isinstance(pattern, str):
        _refuse(path, place, "needs an effect, and a pattern that is text")
    if table:
        _refuse(path, f"{place}.{next(iter(table))}", "is neither effect, pattern nor tenants")
    try:
        return parse_grant(f"{effect}:{pattern}", origin=path.name)
    except UsageError as error:
        _refuse(path, place, f"cannot be: {error.message}", error.hint)


def _is_for(path: Path, place: str, table: dict[str, Any], tenant: str) -> bool:
    tenants = table.pop("tenants", None)
    if tenants is None:
        return True
    if not isinstance(tenants, list) or not all(isinstance(it, str) for it in cast("list[Any]", tenants)):
        _refuse(path, f"{place}.tenants", "is not a list of names")
    return tenant in tenants


def _plain(path: Path, place: str, value: object) -> None:
    """See that options are JSON: TOML also has dates and times."""
    if isinstance(value, Mapping):
        for key, item in cast("Mapping[str, Any]", value).items():
            _plain(path, f"{place}.{key}", item)
    elif isinstance(value, list):
        for number, item in enumerate(cast("list[Any]", value)):
            _plain(path, f"{place}[{number}]", item)
    elif not isinstance(value, (str, int, float, bool)):
        _refuse(path, place, f"is a {type(value).__name__}, which options cannot hold; quote it")


def _table(path: Path, place: str, entry: object) -> dict[str, Any]:
    if not isinstance(entry, dict):
        _refuse(path, place, "is not a table")
    return dict(cast("dict[str, Any]", entry))


def _refuse(path: Path, place: str, what: str, hint: str = "") -> NoReturn:
    raise UsageError(
        "project-invalid",
        f"{path.name}: {place} {what}" if place else f"{path.name} {what}",
        hint=hint or "docs/mounts.md shows an example",
        details={"path": place},
    )
