"""The composition root: opens a workspace, wires the rooms, owns lifetimes.

A workspace is a visible folder: `store.sqlite` (events and records), `blobs/`, `facts/` (one immutable file per
analysed artifact) and `locks/`. Delete it and everything that was recorded is gone; copy it and everything is there.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from affidavit import __version__
from affidavit.analyzers.datasets import Datasets, Place
from affidavit.errors import AffidavitError, NotFoundError, UsageError
from affidavit.evidence.identity import record_id
from affidavit.evidence.record import JsonValue, Record, Subject
from affidavit.extensions import Progress, load_analyzers
from affidavit.mounts.mounted import Mounted, mounts_of, parse_mount
from affidavit.mounts.python import module_namespace
from affidavit.namespaces.operation import Namespace
from affidavit.policy import Grant
from affidavit.runtime.catalogue import Catalogue
from affidavit.runtime.engines.engine import Engine, Engines
from affidavit.runtime.engines.finding import Finding
from affidavit.runtime.session import Parts, Session
from affidavit.runtime.typecheck import Checker
from affidavit.store import Event, Store

__all__ = ["Workspace"]

# Mounts of the workspace itself stand in the log of this pseudo-session.
_HOME = "workspace"
_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
_PYTHON = "python:"


class Workspace:
    """An open workspace. Use `Workspace.open` as an async context manager.

    ```python
    async with Workspace.open(".affidavit") as workspace:
        workspace.mount("app=./app.asar")
        session = await workspace.session()
        run = await session.run("len((await df.db.app.files.page()).rows)")
    ```
    """

    def __init__(self, root: Path, store: Store, grants: Sequence[Grant]) -> None:
        self.root = root
        self.store = store
        self._grants = tuple(grants)
        self._datasets = Datasets(root / "facts")
        self._tools: dict[str, Namespace] = {}
        self._engines = Engines(_engine_makers())
        self._checker = Checker()

    @classmethod
    def open(
        cls, root: Path | str = ".affidavit", *, tenant: str = "default", grants: Iterable[Grant] = ()
    ) -> Workspace:
        """Open a workspace folder, making it when it is not there.

        Args:
            root: the folder.
            tenant: whose data; nothing crosses from one tenant to another.
            grants: what a person permits beside reading.

        Raises:
            VerificationError: `store-damaged`, `store-version`.
        """
        folder = Path(root).absolute()
        return cls(folder, Store.open(folder, tenant=tenant), tuple(grants))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Release engines, the checker and files. Records stay."""
        await self._engines.close()
        await self._checker.close()
        self._datasets.close()
        self.store.close()

    def mount(self, spec: str, *, progress: Progress | None = None, session: str = _HOME) -> Mounted:
        """Mount `NAME=URI` and analyse it when it is a file; the same bytes are analysed once.

        Args:
            spec: `app=./app.asar`, `app=./folder`, `app=./package.tgz`, `tools=python:module`.
            progress: told how far an analysis is.
            session: whose mount it is; the whole workspace's by default.

        Raises:
            UsageError: `mount-invalid`.
            NotFoundError: `artifact-not-found`.
            FailedError: `artifact-unsupported`, `analysis-failed`.
            VerificationError: `artifact-damaged`.
        """
        name, uri = parse_mount(spec)
        if uri.startswith(_PYTHON):
            module_namespace(
                name, uri.removeprefix(_PYTHON)
            )  # what cannot be loaded is refused now, not when called
            mounted = Mounted(name=name, kind="python", uri=uri)
            self._log("mount-added", session, mounted.as_event())
            return mounted
        path = Path(uri).absolute()
        known = [_place(mounted) for mounted in self.mounts(session) if mounted.artifact]
        analysed = self._datasets.analyse(path, known=known, progress=progress or _silent)
        mounted = Mounted(
            name=name,
            kind=analysed.analyzer.name,
            uri=str(path),
            path=str(path),
            artifact=analysed.artifact.subject.digest,
            format=analysed.artifact.subject.format,
            signature=analysed.artifact.signature,
            evidence_id=record_id(analysed.record),
            limitations=analysed.record.limitations,
        )
        analysed.facts.close()
        self._log("mount-added", session, mounted.as_event(), analysed.record)
        return mounted

    def mounts(self, session: str = _HOME) -> list[Mounted]:
        """The mounts in force, by name: those of the workspace, and those of the session over them."""
        found = mounts_of(self.store.events.of_session(_HOME))
        if session != _HOME:
            found |= mounts_of(self.store.events.of_session(session))
        return [found[name] for name in sorted(found)]

    def mounted(self, name: str) -> Mounted:
        """The mount of this name.

        Raises:
            NotFoundError: `mount-not-found`.
        """
        for mounted in self.mounts():
            if mounted.name == name:
                return mounted
        raise NotFoundError("mount-not-found", f"no mount {name!r}", hint="`affidavit mount list` lists them")

    def unmount(self, name: str) -> None:
        """Take a mount away; its evidence stays.

        Raises:
            NotFoundError: `mount-not-found`.
        """
        self._log("mount-removed", _HOME, {"name": self.mounted(name).name})

    def use(self, namespace: Namespace) -> None:
        """Offer a namespace of operations to every later session of this process, as `df.tool.<name>`.

        Raises:
            UsageError: `mount-exists`.
        """
        if namespace.name in self._tools:
            raise UsageError("mount-exists", f"df.tool.{namespace.name} exists", hint="take another name")
        self._tools[namespace.name] = namespace

    async def session(
        self,
        session_id: str | None = None,
        *,
        mounts: Sequence[str] = (),
        progress: Progress | None = None,
        keep: bool = True,
    ) -> Session:
        """Open a session, a new one by default, with the mounts of the workspace and these beside them.

        Args:
            session_id: id to go on with, or for a new session; letters, digits, `.`, `_`, `-`.
            mounts: `NAME=URI` for this session alone.
            progress: told how far an analysis is.
            keep: whether the session enters the log; false for a look only.

        Raises:
            UsageError: `usage` for a malformed id; whatever `mount` raises.
        """
        session_id = f"ses_{secrets.token_hex(8)}" if session_id is None else session_id
        if not _SESSION.match(session_id) or session_id == _HOME:
            hint = "letters, digits, dot, dash and underscore, at most 100"
            raise UsageError("usage", f"{session_id!r} cannot be a session's id", hint=hint)
        if keep:
            opened = {"version": __version__}
            self._log("session-opened", session_id, opened, key="session-opened")
        for spec in mounts:
            self.mount(spec, progress=progress, session=session_id)
        grants: list[Grant] = list(self._grants)
        catalogue = self._catalogue(self.mounts(session_id), grants, progress or _silent)
        locks = self.root / "locks"
        locks.mkdir(parents=True, exist_ok=True)
        return Session(
            session_id,
            Parts(
                store=self.store,
                catalogue=catalogue,
                engines=self._engines,
                checker=self._checker,
                locks=locks,
                grants=tuple(grants),
            ),
        )

    async def doctor(self) -> list[Finding]:
        """Try every part for real; what `affidavit doctor` prints."""
        from affidavit.runtime.engines.cpython import CPythonEngine
        from affidavit.runtime.engines.monty import MontyEngine

        findings = [
            Finding(name="python", ok=sys.version_info >= (3, 11), detail=sys.version.split()[0]),
            Finding(name="workspace", ok=True, detail=f"{self.root} opens"),
        ]
        for point, loaded in load_analyzers():
            if isinstance(loaded, Exception):
                problem = f"{type(loaded).__name__}: {loaded}"
                findings.append(
                    Finding(name=f"analyzer {point.name}", ok=False, detail=problem, decisive=False)
                )
            else:
                detail = f"facts version {loaded.version}"
                findings.append(Finding(name=f"analyzer {point.name}", ok=True, detail=detail))
        # What one engine lacks is told and not decisive by itself: `engine auto` sums it up.
        probed = [*await asyncio.to_thread(CPythonEngine.probe), *await asyncio.to_thread(MontyEngine.probe)]
        findings += [replace(finding, decisive=False) for finding in probed]
        for wanted in ("cpython", "monty", "auto"):
            try:
                choice = await self._engines.choose(wanted)
            except AffidavitError as error:
                needed = wanted == "auto"
                findings.append(
                    Finding(name=f"engine {wanted}", ok=False, detail=error.message, decisive=needed)
                )
            else:
                detail = f"{choice.engine.name}: {choice.reason}"
                findings.append(Finding(name=f"engine {wanted}", ok=True, detail=detail))
        verdict = await self._checker.check("1 + 1", stubs=Catalogue.of(Namespace(name="df")).stubs)
        detail = verdict.reason or verdict.status
        findings.append(Finding(name="type check", ok=verdict.status == "clean", detail=detail))
        return findings

    def _catalogue(self, mounts: Sequence[Mounted], grants: list[Grant], progress: Progress) -> Catalogue:
        """What a session may call; mounting by a person grants a mount's external operations (design rule 24)."""
        databases: dict[str, Namespace] = {}
        tools = dict(self._tools)
        for mounted in mounts:
            if mounted.artifact:
                databases[mounted.name] = self._datasets.namespace(_place(mounted), progress)
            else:
                tools[mounted.name] = module_namespace(mounted.name, mounted.uri.removeprefix(_PYTHON))
                origin = f"mount {mounted.name}"
                grants.append(Grant(effect="external", pattern=f"tool.{mounted.name}.*", origin=origin))
        return Catalogue.of(
            Namespace(
                name="df",
                children={
                    "db": Namespace(name="db", doc="Datasets: typed, paged collections.", children=databases),
                    "tool": Namespace(name="tool", doc="Tools: exactly what they return.", children=tools),
                },
            )
        )

    def _log(
        self,
        kind: str,
        session: str,
        data: Mapping[str, JsonValue],
        record: Record | None = None,
        key: str | None = None,
    ) -> None:
        event = Event(kind=kind, session=session, at=time.time(), data=dict(data), key=key)
        self.store.append(event, record=record)


def _silent(done: int, total: int, what: str) -> None:
    """Progress that nobody watches."""


def _place(mounted: Mounted) -> Place:
    return Place(
        name=mounted.name,
        analyzer=mounted.kind,
        path=Path(mounted.path),
        subject=Subject(digest=mounted.artifact, format=mounted.format),
        signature=mounted.signature,
        evidence_id=mounted.evidence_id,
    )


def _engine_makers() -> dict[str, Callable[[], Engine]]:
    """The engines in the order in which `auto` prefers them, imported when first chosen."""

    def cpython() -> Engine:
        from affidavit.runtime.engines.cpython import CPythonEngine

        return CPythonEngine()

    def monty() -> Engine:
        from affidavit.runtime.engines.monty import MontyEngine

        return MontyEngine()

    return {"cpython": cpython, "monty": monty}
