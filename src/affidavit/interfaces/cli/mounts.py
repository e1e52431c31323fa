"""`affidavit mount add|list|show|remove`."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

from cyclopts import Parameter

from affidavit.errors import AffidavitError, UsageError
from affidavit.extensions import Progress
from affidavit.interfaces.cli.arguments import read_pairs
from affidavit.interfaces.cli.output import Common, emit, lines, say
from affidavit.mounts.mounted import Mounted
from affidavit.workspace import Workspace

__all__ = ["add", "analyze", "progress_on_stderr", "remove", "show", "show_all"]

_COLUMNS = ("name", "kind", "format", "artifact", "path")


def add(
    mount: str,
    *,
    env: Annotated[list[str] | None, Parameter(negative="")] = None,
    header: Annotated[list[str] | None, Parameter(negative="")] = None,
    option: Annotated[list[str] | None, Parameter(negative="")] = None,
    common: Common = Common(),  # noqa: B008
) -> int:
    """Mount a file, a folder or an outside source under a name; the name of a mount alone mounts it again.

    A source is asked once what it offers, and that is kept: sessions open without it. Values of secrets are never
    kept; name the environment variable that holds one.

    Args:
        mount: NAME=URI, for example app=./app.asar, tools=python:module, wx='mcp+stdio:python server.py'.
        env: An environment variable that the source is given; repeatable.
        header: NAME=VALUE for each request, where env:VARIABLE stands for a variable's value; repeatable.
        option: NAME=VALUE, an option of the adapter, its value JSON or text; repeatable.
    """
    options: dict[str, Any] = read_pairs(option or [])
    if env:
        options["env"] = env
    if header:
        options["headers"] = dict(_header(pair) for pair in header)

    async def body() -> dict[str, Any]:
        async with Workspace.open(common.workspace, tenant=common.tenant) as workspace:
            before = {mounted.name: mounted for mounted in workspace.mounts()}
            mounted = workspace.mount(mount, options=options or None, progress=progress_on_stderr())
            replaced = before.get(mounted.name)
            if replaced is not None and replaced.uri != mounted.uri:
                say(f"note: {mounted.name} was {replaced.uri}, which is mounted no longer")
            return mounted.as_json()

    document = asyncio.run(body())
    if common.json:
        emit(document)
    else:
        sys.stdout.write(_table([document]) + "\n")
        for limitation in document["limitations"][:10]:
            say(f"limitation[{limitation['code']}] {limitation['place']}: {limitation['message']}")
        say(f"evidence: {document['evidence_id']}" if document["evidence_id"] else _granted(document))
    return 0


def analyze(name: str, *, all: bool, common: Common = Common()) -> int:  # noqa: A002, B008
    """Look into everything of a mounted file that was only outlined, such as all functions of a binary.

    Questions about single functions need no such thing; those about all of a large binary do, once.

    Args:
        name: The mount's name.
        all: Everything; the only choice so far.
    """
    if not all:
        raise UsageError("arguments-invalid", "nothing to analyze", hint=f"affidavit analyze {name} --all")

    async def body() -> dict[str, Any]:
        async with Workspace.open(common.workspace, tenant=common.tenant) as workspace:
            return dict(workspace.analyze(name, progress_on_stderr()))

    emit({"name": name, "summary": asyncio.run(body())})
    return 0


def show_all(*, common: Common = Common()) -> int:  # noqa: B008
    """List the mounts of the workspace."""

    async def body() -> list[dict[str, Any]]:
        async with Workspace.open(common.workspace, tenant=common.tenant) as workspace:
            await workspace.follow_project(progress_on_stderr())
            for notice in workspace.notices():
                say(f"note: {notice}")
            return [mount.as_json() for mount in workspace.mounts()]

    found = asyncio.run(body())
    if common.json:
        emit({"mounts": found})
    else:
        sys.stdout.write((_table(found) or "no mounts: `affidavit mount add NAME=URI` adds one") + "\n")
    return 0


def show(name: str, *, common: Common = Common()) -> int:  # noqa: B008
    """Show one mount: what its analysis found or its source says, and what could not be examined or offered.

    A source that answers is also asked whether it is still what was mounted.

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
                found["coverage"] = record.coverage and record.coverage.as_json()
            elif not mounted.artifact:
                found["now"] = await _now(workspace, mounted)
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


async def _now(workspace: Workspace, mounted: Mounted) -> dict[str, Any]:
    try:
        now = await workspace.snapshot(mounted.name)
    except AffidavitError as error:
        return {"error": error.as_json()}
    known = mounted.snapshot is not None and bool(mounted.snapshot.identity) and bool(now.identity)
    same = now == mounted.snapshot if known else None
    return asdict(now) | {"same": same}


def _table(documents: list[dict[str, Any]]) -> str:
    rows = [
        document
        | {"format": document["format"] or document["about"], "path": document["path"] or document["uri"]}
        for document in documents
    ]
    return lines(rows, _COLUMNS)


def _granted(document: Mapping[str, Any]) -> str:
    path = f"{document['place']}.{document['name']}"
    return f"scripts may read from it and call it; what writes needs --grant 'write:{path}.*'"


def _header(pair: str) -> tuple[str, str]:
    name, equals, value = pair.partition("=")
    if not equals or not name:
        raise UsageError("usage", f"{pair!r} is not NAME=VALUE", hint="for example Authorization=env:TOKEN")
    return name, value


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
