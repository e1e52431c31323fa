"""`affidavit mount add|list|show|remove`."""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import asdict
from typing import Any

from affidavit.extensions import Progress
from affidavit.interfaces.cli.output import Common, emit, lines, say
from affidavit.workspace import Workspace

__all__ = ["add", "progress_on_stderr", "remove", "show", "show_all"]

_COLUMNS = ("name", "kind", "format", "artifact", "path")


def add(
    mount: str,
    *,
    common: Common = Common(),  # noqa: B008
) -> int:
    """Mount a file, folder or module under a name.

    Args:
        mount: NAME=URI, for example app=./app.asar, app=./folder, app=./package.tgz, tools=python:module.
    """

    async def body() -> dict[str, Any]:
        async with Workspace.open(common.workspace, tenant=common.tenant) as workspace:
            before = {mounted.name: mounted for mounted in workspace.mounts()}
            mounted = workspace.mount(mount, progress=progress_on_stderr())
            replaced = before.get(mounted.name)
            if replaced is not None and replaced.uri != mounted.uri:
                say(f"note: {mounted.name} was {replaced.uri}, which is mounted no longer")
            return mounted.as_json()

    document = asyncio.run(body())
    if common.json:
        emit(document)
    else:
        sys.stdout.write(lines([document], _COLUMNS) + "\n")
        for limitation in document["limitations"][:10]:
            say(f"limitation[{limitation['code']}] {limitation['place']}: {limitation['message']}")
        say(
            f"evidence: {document['evidence_id']}" if document["evidence_id"] else "no facts: operations only"
        )
    return 0


def show_all(*, common: Common = Common()) -> int:  # noqa: B008
    """List the mounts of the workspace."""

    async def body() -> list[dict[str, Any]]:
        async with Workspace.open(common.workspace, tenant=common.tenant) as workspace:
            return [mount.as_json() for mount in workspace.mounts()]

    found = asyncio.run(body())
    if common.json:
        emit({"mounts": found})
    else:
        sys.stdout.write(
            (lines(found, _COLUMNS) or "no mounts: `affidavit mount add NAME=URI` adds one") + "\n"
        )
    return 0


def show(name: str, *, common: Common = Common()) -> int:  # noqa: B008
    """Show one mount and what its analysis found: counts, coverage and the places that could not be examined.

    Args:
        name: Its name.
    """

    async def body() -> dict[str, Any]:
        async with Workspace.open(common.workspace, tenant=common.tenant) as workspace:
            mounted = workspace.mounted(name)
            found: dict[str, Any] = {"summary": None, "coverage": None}
            if mounted.evidence_id:
                record = workspace.store.evidence.get(mounted.evidence_id)
                found["summary"] = workspace.store.evidence.result(record)["summary"]
                found["coverage"] = asdict(record.coverage) if record.coverage else None
            return mounted.as_json() | found

    emit(asyncio.run(body()))
    return 0


def remove(name: str, *, common: Common = Common()) -> int:  # noqa: B008
    """Take a mount away.

    Args:
        name: Its name.
    """

    async def body() -> None:
        async with Workspace.open(common.workspace, tenant=common.tenant) as workspace:
            workspace.unmount(name)

    asyncio.run(body())
    if common.json:
        emit({"removed": name})
    else:
        say(f"removed {name}; its evidence stays")
    return 0


def progress_on_stderr() -> Progress:
    """Progress for people: a bar on a terminal, at most a line a second elsewhere."""
    return _Bar() if sys.stderr.isatty() else _Lines()


class _Bar:
    """A bar on stderr that is there from the first report to the last."""

    def __init__(self) -> None:
        self._shown: Any = None

    def __call__(self, done: int, total: int, what: str) -> None:
        from rich.console import Console
        from rich.progress import Progress as Bars

        if self._shown is None:
            self._shown = Bars(console=Console(stderr=True), transient=True)
            self._task = self._shown.add_task(what, total=total)
            self._shown.start()
        self._shown.update(self._task, completed=done, total=total, description=what)
        if done >= total:
            self._shown.stop()
            self._shown = None


class _Lines:
    """Plain lines for logs and pipes."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, done: int, total: int, what: str) -> None:
        now = time.monotonic()
        if done < total and now - self._last >= 1.0:
            self._last = now
            say(f"{what} {done}/{total}")
