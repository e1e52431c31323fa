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
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from affidavit import __version__
from affidavit.analyzers.datasets import Datasets, Place
from affidavit.errors import AffidavitError, NotFoundError, UsageError
from affidavit.evidence.identity import record_id
from affidavit.evidence.record import JsonValue, Record, Subject
from affidavit.extensions import MountAdapter, Progress, Snapshot, analyzer_scheme, load_analyzers
from affidavit.mounts.mounted import HOME, Asked, Mounted, mounts_of, parse_mount
from affidavit.mounts.opened import OpenMounts
from affidavit.mounts.project import FILE, read_project
from affidavit.namespaces.operation import Namespace
from affidavit.policy import Grant
from affidavit.runtime.engines.engine import Engine, Engines
from affidavit.runtime.engines.finding import Finding, loading
from affidavit.store import Event, Store
from affidavit.store.event_kinds import sound
from affidavit.store.journal import Journal, JournalSettings

# Mounting and looking need neither the type check nor the machinery of tools: those are imported when first used.
if TYPE_CHECKING:
    from affidavit.runtime.catalogue import Catalogue
    from affidavit.runtime.replay.replay import Replay
    from affidavit.runtime.session import Session
    from affidavit.runtime.typecheck import Checker

__all__ = ["Workspace"]

_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
_STATE = ("mount-added", "mount-removed", "preamble-set", "preamble-removed", "run-requested", "run-settled")


class Workspace:
    """An open workspace. Use `Workspace.open` as an async context manager.

    ```python
    async with Workspace.open(".affidavit") as workspace:
        workspace.mount("app=./app.asar")
        session = await workspace.session()
        run = await session.run("len((await df.db.app.files.page()).rows)")
    ```
    """

    def __init__(
        self, root: Path, store: Store, grants: Sequence[Grant], journal: JournalSettings | None
    ) -> None:
        self.root = root
        self.store = store
        self._grants = tuple(grants)
        self._journal = journal
        self._journals: dict[str, Journal] = {}
        self._odd: list[str] = []  # what is told of events that no session writes
        self._datasets = Datasets(root / "facts")
        self._opened = OpenMounts(root / "cache" / store.tenant, store)
        self._tools: dict[str, Namespace] = {}
        self._engines = Engines(_engine_makers())
        self._kept_checker: Checker | None = None

    @classmethod
    def open(
        cls,
        root: Path | str = ".affidavit",
        *,
        tenant: str = "default",
        grants: Iterable[Grant] = (),
        journal: Path | str | JournalSettings | None = None,
    ) -> Workspace:
        """Open a workspace folder, making it when it is not there.

        Args:
            root: the folder.
            tenant: whose data; nothing crosses from one tenant to another.
            grants: what a person permits beside reading.
            journal: a folder, or settings: each session that is opened is journalled there, line by line.

        Raises:
            VerificationError: `store-damaged`, `store-version`.
        """
        folder = Path(root).absolute()
        if isinstance(journal, Path | str):
            journal = JournalSettings(folder=Path(journal).absolute())
        return cls(folder, Store.open(folder, tenant=tenant), tuple(grants), journal)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Release engines, the checker and files. Records stay."""
        await self._engines.close()
        await self._opened.close()
        if self._kept_checker is not None:
            await self._kept_checker.close()
        self._datasets.close()
        self.store.close()

    def mount(
        self,
        spec: str,
        *,
        options: Mapping[str, JsonValue] | None = None,
        progress: Progress | None = None,
        session: str = HOME,
    ) -> Mounted:
        """Mount `NAME=URI`: analyse a file, once for the same bytes, or ask a source what it offers.

        Args:
            spec: `app=./app.asar`, `tools=python:module`, `wx=mcp+stdio:python server.py`; the name of a mount
                alone mounts again what it names.
            options: what the adapter of the URI takes beside it: `{"env": ["TOKEN"], "timeout": 30}`.
            progress: told how far an analysis is.
            session: whose mount it is; the whole workspace's by default.

        Raises:
            UsageError: `mount-invalid`, `secret-missing`.
            NotFoundError: `artifact-not-found`.
            FailedError: `artifact-unsupported`, `analysis-failed`, `mount-failed`, `extra-missing`.
            VerificationError: `artifact-damaged`.
        """
        asked = self._asked(spec, session, options)
        project = session == HOME and any(it.name == spec and it.project for it in self.mounts())
        adapter = self._opened.adapter_for(asked.uri, asked.folder)
        if adapter is None:
            return self._analyse(asked, progress or _silent, session, project=project)
        # A source may live in the loop that runs here: it is asked from another one.
        return self._added(_finished(self._described(adapter, asked, session, project=project)), session)

    def analyze(self, name: str, progress: Progress | None = None) -> Mapping[str, JsonValue]:
        """Look into everything of a mounted artifact that was only outlined; its summary. Raises as `mount` does."""
        mounted = self.mounted(name)
        if not mounted.artifact:
            raise UsageError("mount-invalid", f"{name} is no file that is analysed")
        return self._datasets.complete(_place(mounted), progress or _silent)

    def _asked(self, spec: str, session: str, options: Mapping[str, JsonValue] | None) -> Asked:
        known = {it.name: it for it in self.mounts(session)}.get(spec)
        if known is not None and options is None:
            return Asked(name=known.name, uri=known.uri, folder=Path(known.folder), options=known.options)
        name, uri = parse_mount(spec)
        return Asked(name=name, uri=uri, folder=Path.cwd(), options=options or {})

    async def _mount(self, asked: Asked, progress: Progress, session: str, *, project: bool) -> Mounted:
        adapter = self._opened.adapter_for(asked.uri, asked.folder)
        if adapter is None:
            return self._analyse(asked, progress, session, project=project)
        return self._added(await self._described(adapter, asked, session, project=project), session)

    async def _described(
        self, adapter: MountAdapter, asked: Asked, session: str, *, project: bool
    ) -> Mounted:
        mounted = await self._opened.describe(adapter, asked, project=project)
        if mounted.helpers:
            from affidavit.runtime.typecheck.seeds import check_helpers

            others = [it for it in self.mounts(session) if it.name != mounted.name]
            await check_helpers(mounted.helpers, self._catalogue([*others, mounted], [], _silent).stubs)
        return mounted

    def _added(self, mounted: Mounted, session: str, record: Record | None = None) -> Mounted:
        self._log("mount-added", session, mounted.as_event(), record)
        return replace(mounted, session="" if session == HOME else session)

    def _analyse(self, asked: Asked, progress: Progress, session: str, *, project: bool) -> Mounted:
        if asked.options:
            raise UsageError("mount-invalid", f"{asked.uri} is a file, and analyses take no options")
        path = asked.path
        known = [_place(mounted) for mounted in self.mounts(session) if mounted.artifact]
        named = analyzer_scheme(asked.uri)
        analysed = self._datasets.analyse(path, named=named, known=known, progress=progress)
        mounted = Mounted(
            name=asked.name,
            kind=analysed.analyzer.name,
            uri=f"{named}:{path}" if named else str(path),
            project=project,
            path=str(path),
            artifact=analysed.artifact.subject.digest,
            format=analysed.artifact.subject.format,
            signature=analysed.artifact.signature,
            evidence_id=record_id(analysed.record),
            limitations=analysed.record.limitations,
        )
        analysed.facts.close()
        return self._added(mounted, session, analysed.record)

    async def follow_project(self, progress: Progress | None = None) -> tuple[Grant, ...]:
        """Mount what the project file beside the workspace asks for, take away what it no longer does.

        What cannot be mounted is a notice and stops nothing else. A name that a person mounted by hand stays theirs.

        Returns:
            The grants of the file.

        Raises:
            UsageError: `project-invalid`.
        """
        project = read_project(self.root.parent / FILE, tenant=self.store.tenant)
        before = {mounted.name: mounted for mounted in self.mounts()}
        for asked in project.mounts:
            known = before.pop(asked.name, None)
            if known is not None and (asked.is_of(known) or not known.project):
                if not asked.is_of(known):
                    self._opened.tell(f"{FILE}: {asked.name} is mounted by hand as {known.uri}, and stays so")
                continue
            try:
                await self._mount(asked, progress or _silent, HOME, project=True)
            except AffidavitError as error:
                self._opened.tell(f"{FILE}: {asked.name} cannot be mounted: {error.message}")
        for name in [name for name, mounted in before.items() if mounted.project]:
            self.unmount(name)
        return project.grants

    def mounts(self, session: str = HOME) -> list[Mounted]:
        """The mounts in force, by name: those of the workspace, and those of the session over them."""
        found = mounts_of(self.store.events.of_session(HOME))
        if session != HOME:
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

    async def snapshot(self, name: str) -> Snapshot:
        """Ask the source of a mount that an adapter serves which state answers now.

        Raises:
            NotFoundError: `mount-not-found`.
            AffidavitError: whatever the source says.
        """
        return await self._opened.snapshot(self.mounted(name))

    def unmount(self, name: str) -> None:
        """Take a mount away; its evidence stays.

        Raises:
            NotFoundError: `mount-not-found`.
        """
        self._log("mount-removed", HOME, {"name": self.mounted(name).name})

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
            FailedError: `journal-failed`, `journal-mismatch`, `journal-version`, when the workspace has a journal.
        """
        from affidavit.runtime.session import Parts, Session

        session_id = f"ses_{secrets.token_hex(8)}" if session_id is None else session_id
        if not _SESSION.match(session_id) or session_id == HOME:
            hint = "letters, digits, dot, dash and underscore, at most 100"
            raise UsageError("usage", f"{session_id!r} cannot be a session's id", hint=hint)
        if keep:
            opened = {"version": __version__}
            self._log("session-opened", session_id, opened, key="session-opened")
        granted = await self.follow_project(progress)
        self._look_at(session_id)
        for spec in mounts:
            asked = self._asked(spec, session_id, None)
            await self._mount(asked, progress or _silent, session_id, project=False)
        if keep and self._journal is not None and session_id not in self._journals:
            self._follow(session_id, self._journal)
        grants: list[Grant] = [*self._grants, *granted]
        catalogue = self._catalogue(self.mounts(session_id), grants, progress or _silent)
        locks = self.root / "locks"
        locks.mkdir(parents=True, exist_ok=True)
        session = Session(
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
        if keep:
            session.recover()
        return session

    async def replay(self, run: str, *, session: str | None = None, engine: str | None = None) -> Replay:
        """Run a recorded run again from the log alone; nothing is called, and nothing is written.

        Args:
            run: its id, a prefix of it, or, with a session, its number there.
            session: the session to look in.
            engine: another engine than the one that ran it.

        Raises:
            NotFoundError: `run-not-found`.
            FailedError: `replay-impossible`, when it did not end by itself; `engine-unavailable`.
            RejectedError: `engine-unsupported`.
            VerificationError: what was recorded does not hold any more.
        """
        from affidavit.runtime.replay.recording import find_run
        from affidavit.runtime.replay.replay import replay

        run_id = find_run(self.store, run, session=session)
        return await replay(self.store, self._engines, run_id, engine=engine)

    def journal(self, session_id: str) -> Journal | None:
        """The journal of a session that was opened here, or None."""
        return self._journals.get(session_id)

    def notices(self) -> list[str]:
        """What a person should be told: mounts that cannot be loaded, journals that are torn, damaged or full."""
        return [
            *self._opened.notices(),
            *self._odd,
            *(it for journal in self._journals.values() for it in journal.notices()),
        ]

    async def doctor(self) -> list[Finding]:
        """Try every part for real; what `affidavit doctor` prints."""
        from affidavit.runtime.catalogue import Catalogue
        from affidavit.runtime.engines.cpython import CPythonEngine
        from affidavit.runtime.engines.monty import MontyEngine

        findings = [
            Finding(name="python", ok=sys.version_info >= (3, 11), detail=sys.version.split()[0]),
            Finding(name="workspace", ok=True, detail=f"{self.root} opens"),
        ]
        findings += [loading(f"analyzer {it.name}", loaded, "facts") for it, loaded in load_analyzers()]
        findings += [
            loading(f"mount {name}", loaded, "contract") for name, loaded in self._opened.adapters().items()
        ]
        told = [(f"mounted {it.name}", f"left out: {one}") for it in self.mounts() for one in it.left_out]
        findings += [Finding(name=it, ok=False, detail=one, decisive=False) for it, one in told]
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
        """What a session may call; mounting by a person grants a mount's external operations."""
        from affidavit.runtime.catalogue import Catalogue

        places: dict[str, dict[str, Namespace]] = {"db": {}, "tool": dict(self._tools)}
        for mounted in mounts:
            if mounted.artifact:
                made = partial(self._datasets.namespace, _place(mounted), progress)
                places["db"][mounted.name] = self._opened.or_empty(mounted.name, made)
            else:
                places[mounted.place][mounted.name] = self._opened.namespace(mounted)
                pattern = f"{mounted.place}.{mounted.name}.*"
                grants.append(Grant(effect="external", pattern=pattern, origin=f"mount {mounted.name}"))
        db = Namespace(name="db", doc="Datasets: typed, paged collections.", children=places["db"])
        tool = Namespace(name="tool", doc="Tools: exactly what they return.", children=places["tool"])
        return Catalogue.of(
            Namespace(name="df", children={"db": db, "tool": tool} | self._opened.library(mounts))
        )

    @property
    def _checker(self) -> Checker:
        if self._kept_checker is None:
            from affidavit.runtime.typecheck import Checker

            self._kept_checker = Checker()
        return self._kept_checker

    def _look_at(self, session_id: str) -> None:
        """Tell of events that no session writes and that its state is therefore reduced without."""
        log = self.store.events.of_kinds(session_id, _STATE)
        odd = len(log) - len([*sound(log)])
        if odd:
            self._odd.append(
                f"{odd} events of session {session_id} are left out: `affidavit doctor --store` says why"
            )

    def _follow(self, session_id: str, settings: JournalSettings) -> None:
        """Journal a session from its first event on; its mounts are known by now and name the file."""
        subjects = [
            {"name": mounted.name, "digest": mounted.artifact, "format": mounted.format}
            for mounted in self.mounts(session_id)
            if mounted.artifact
        ]
        journal = Journal.open(self.store, session_id, settings, product=__version__, subjects=subjects)
        self._journals[session_id] = journal
        self.store.follow(session_id, journal)

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


def _finished(described: Coroutine[Any, Any, Mounted]) -> Mounted:
    """Run a description to its end in a loop of its own, beside the one that may be running here."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(described)
    with ThreadPoolExecutor(max_workers=1) as threads:
        return threads.submit(asyncio.run, described).result()


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
