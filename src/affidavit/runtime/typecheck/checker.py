"""The one entry to checking: a warm server, a cache of verdicts, and the order of the steps."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from functools import cache
from itertools import chain, islice
from types import TracebackType
from typing import Self

from affidavit.runtime.program import PreambleEntry
from affidavit.runtime.typecheck import preamble as pre
from affidavit.runtime.typecheck.catalogue import Catalogue
from affidavit.runtime.typecheck.project import Project
from affidavit.runtime.typecheck.rules import inputs, keys, own, policy, results
from affidavit.runtime.typecheck.rules.case import Case
from affidavit.runtime.typecheck.server import Finding, ServerLostError, TypeServer, find_binary
from affidavit.runtime.typecheck.surroundings import ResultTypes, Surroundings
from affidavit.runtime.typecheck.syntax import Unparsable, parse, unfit_for_checking
from affidavit.runtime.typecheck.verdict import Diagnostic, Problem, Verdict

__all__ = ["Checker"]

_MAX_FOUND = 400
_MAX_SHOWN = 50
_MAX_CATALOGUES = 64
_STUB_ERRORS = frozenset({"invalid-syntax", "unresolved-reference", "import-not-found", "invalid-type-form"})


_NOTHING = Surroundings()


class _Unchecked(Exception):  # noqa: N818 - an outcome, not an error
    """The type checker could not examine the script; the message says why."""


class Checker:
    """Checks scripts against stubs through one warm type checker.

    Use it in one event loop: `await start()` (or let the first check start it), `check` as often and as concurrently
    as needed, `await close()`. A check that times out or crashes the server costs its own verdict and a restart,
    never another script's.

    Args:
        timeout: seconds that one check may take in the server, not counting the wait for other checks.
        start_timeout: seconds that starting the server may take.
        remembered: how many verdicts are kept for repeated scripts.
        recycle_checks: the server is replaced after so many checks, which bounds its memory.
        recycle_modules: and after so many different stub texts.
        binary: the type checker's executable; found by itself when omitted.
    """

    def __init__(
        self,
        *,
        timeout: float = 2.0,
        start_timeout: float = 15.0,
        remembered: int = 512,
        recycle_checks: int = 5_000,
        recycle_modules: int = 300,
        binary: str | None = None,
    ) -> None:
        self._timeout = timeout
        self._start_timeout = start_timeout
        self._remembered = remembered
        self._recycle_checks = recycle_checks
        self._recycle_modules = recycle_modules
        self._binary = binary
        self._lock = asyncio.Lock()
        self._project: Project | None = None
        self._server: TypeServer | None = None
        self._verdicts: OrderedDict[Hashable, tuple[Verdict, object]] = OrderedDict()
        self._catalogues: OrderedDict[tuple[str, bool], Catalogue] = OrderedDict()

    @property
    def pid(self) -> int | None:
        """The process id of the warm server, while there is one."""
        return self._server.pid if self._server else None

    async def __aenter__(self) -> Self:
        """Start and return it."""
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        await self.close()

    async def start(self) -> None:
        """Warm the server up. Never raises: what does not work shows in the verdicts as `unchecked`."""
        async with self._lock:
            try:
                await self._running()
            except (_Unchecked, ServerLostError):
                await self._drop()

    async def close(self) -> None:
        """End the server and remove its folder. May be called again; a later check would start anew."""
        async with self._lock:
            await self._drop()

    async def check(
        self, source: str, *, stubs: str, inputs_stub: str = "", around: Surroundings | None = None
    ) -> Verdict:
        """Check a script before it runs.

        A preamble never makes a script be rejected: what only it brings about is advice, and the verdict `unchecked`.

        Args:
            source: the repaired script.
            stubs: a `.pyi` text that declares `df` (see `Catalogue`).
            inputs_stub: another self-contained `.pyi` text that declares the script's inputs, or empty.
            around: results of earlier scripts and the preamble, where there are any.
        """
        around = around or _NOTHING
        results_stub = around.results.session if around.results else ""
        key = (
            hashlib.sha256(source.encode("utf-8", "surrogatepass")).digest(),
            stubs,
            inputs_stub,
            results_stub,
            around.preamble,
            id(around.schemas) if around.schemas else 0,
        )
        known = self._verdicts.get(key)
        if known is not None:
            self._verdicts.move_to_end(key)
            return known[0]
        try:
            verdict = await self._check(source, stubs, inputs_stub, around)
        except Exception as error:  # a fault of a rule is ours: no script must pay for it
            return Verdict(status="unchecked", reason=f"the check failed: {type(error).__name__}: {error}")
        if verdict.status != "unchecked" and not verdict.reason:
            self._verdicts[key] = verdict, around.schemas  # kept, so that nothing else gets their id
            if len(self._verdicts) > self._remembered:
                self._verdicts.popitem(last=False)
        return verdict

    async def check_preamble(
        self, entries: Sequence[PreambleEntry], *, stubs: str, results: ResultTypes
    ) -> list[Problem]:
        """Everything that is wrong with the entries of a preamble, each with its key and line.

        Raises:
            RuntimeError: when the type checker could not examine them; the message says why.
        """
        found = pre.broken(entries)
        host = self._catalogue(stubs, exact=False).joined(self._catalogue(results.session, exact=True))
        sound = [entry for entry in entries if entry.key not in {problem.key for problem in found}]
        try:
            _, cells, _ = await self._findings("", host, [stubs, results.session], results, sound)
        except _Unchecked as unchecked:
            raise RuntimeError(str(unchecked)) from unchecked
        return found + pre.problems(sound, cells)

    async def _check(self, source: str, stubs: str, inputs_stub: str, around: Surroundings) -> Verdict:
        parsed = parse(source)
        if isinstance(parsed, Diagnostic):
            return Verdict(status="rejected", diagnostics=(parsed,))
        if isinstance(parsed, Unparsable):
            return Verdict(status="unchecked", reason=parsed.reason)
        unfit = unfit_for_checking(parsed)
        if unfit:
            return Verdict(status="unchecked", reason=unfit)
        rows = around.results.rows if around.results else ()
        results_stub = around.results.session if around.results else ""
        texts = [stubs, *(text for text in (inputs_stub, results_stub) if text)]
        try:
            catalogue = self._catalogue(stubs, exact=False)
            for text in texts[1:]:
                catalogue = catalogue.joined(self._catalogue(text, exact=True))
            known = catalogue
            for row in rows:
                known = known.joined(self._catalogue(row, exact=True))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            return Verdict(status="unchecked", reason=f"the stubs are not Python: {error}")
        given = pre.given(around.preamble)
        case = cache(lambda: Case(parsed.text, parsed.tree, known, given=given, schemas=around.schemas))
        stale = [*pre.broken(around.preamble), *around.clashes]
        unread = {problem.key for problem in stale}
        sound = tuple(entry for entry in around.preamble if entry.key not in unread)
        verdict, cells = await self._judged(case, source, catalogue, texts, around, sound)
        stale = stale or pre.problems(sound, cells)
        if stale:
            return pre.tainted(verdict, stale[0])
        if sound and verdict.blocking:
            bare, _ = await self._judged(case, source, catalogue, texts, around, ())
            return pre.confirmed(verdict, bare)
        return verdict

    async def _judged(
        self,
        case: Callable[[], Case],
        source: str,
        catalogue: Catalogue,
        texts: Sequence[str],
        around: Surroundings,
        preamble: Sequence[PreambleEntry],
    ) -> tuple[Verdict, Sequence[Sequence[Finding]]]:
        """The verdict on a script below these entries, and what the checker found in them."""
        asked = asyncio.ensure_future(self._findings(source, catalogue, texts, around.results, preamble))
        try:
            await asyncio.sleep(0)  # it is asked now, and works while we look ourselves
            found = _ours(case(), around.results)
        except BaseException:
            asked.cancel()
            await asyncio.wait({asked})
            raise
        cells: Sequence[Sequence[Finding]] = ()
        reason = ""
        try:
            findings, cells, modules = await asked
            found += policy.judge(case(), findings[:_MAX_FOUND], modules)
        except _Unchecked as unchecked:
            reason = str(unchecked)
        return _verdict(found, reason), cells

    def _catalogue(self, text: str, *, exact: bool) -> Catalogue:
        key = (text, exact)
        known = self._catalogues.pop(key, None) or Catalogue.read(text, exact=exact)
        self._catalogues[key] = known
        if len(self._catalogues) > _MAX_CATALOGUES:
            self._catalogues.popitem(last=False)
        return known

    async def _findings(
        self,
        source: str,
        catalogue: Catalogue,
        stubs: Sequence[str],
        earlier: ResultTypes | None,
        preamble: Sequence[PreambleEntry],
    ) -> tuple[tuple[Finding, ...], Sequence[Sequence[Finding]], list[str]]:
        """Findings in the script and in each entry, and the names of the stub modules."""
        used = [(text, names) for text, names in zip(stubs, catalogue.exported, strict=True) if names]
        cells = [*(entry.code for entry in preamble), source]
        async with self._lock:
            try:
                return await self._examine(used, earlier, cells)
            except ServerLostError:
                await self._drop()
            try:  # it may have died long ago, of something else
                return await self._examine(used, earlier, cells)
            except ServerLostError as error:
                await self._drop()
                raise _Unchecked(str(error)) from error

    async def _examine(
        self, used: Sequence[tuple[str, Sequence[str]]], earlier: ResultTypes | None, cells: Sequence[str]
    ) -> tuple[tuple[Finding, ...], Sequence[Sequence[Finding]], list[str]]:
        server, project = await self._running()
        try:
            async with asyncio.timeout(self._timeout):
                modules = await self._modules(server, project, [text for text, _ in used], earlier)
                names = [", ".join(exported) for _, exported in used]
                host = "".join(f"from {m} import {n}\n" for m, n in zip(modules, names, strict=False))
                first, *between, script = await server.examine(host, cells)
        except TimeoutError as error:
            await self._drop()
            raise _Unchecked(f"the check took longer than {self._timeout:g} s and was stopped") from error
        except asyncio.CancelledError:
            server.kill()  # a half-read reply cannot be resumed
            raise
        _refuse_dirty("the host's names cannot be read", first)
        return script, between, modules

    async def _modules(
        self, server: TypeServer, project: Project, texts: Sequence[str], earlier: ResultTypes | None
    ) -> list[str]:
        """The names of the modules that hold these stubs, each of them free of errors.

        Those of `results` are written by us and change with every run: they are read as far as the script needs them.
        """
        ours = (earlier.session, *earlier.rows) if earlier else ()
        added = [(text, *project.add(text)) for text in dict.fromkeys([*texts, *ours])]
        names = [name for _, name, _ in added]
        new = {path: text for text, _, path in added if path is not None}
        if new:
            server.announce(new)
            unproven = {path: text for path, text in new.items() if text not in ours}
            for path, findings in (await server.examine_stubs(unproven)).items():
                if any(finding.rule in _STUB_ERRORS for finding in findings):
                    project.spoil(path.stem)
        if any(map(project.is_spoilt, names)):
            raise _Unchecked("the host's stubs have errors: what they declare is unknown")
        return names

    async def _running(self) -> tuple[TypeServer, Project]:
        """The warm server, or a new one where there is none or the old one has served long enough."""
        if self._server is not None and self._project is not None:
            worn = (
                self._server.checks >= self._recycle_checks or self._project.modules >= self._recycle_modules
            )
            if self._server.is_alive and not worn:
                return self._server, self._project
            await self._drop()
        binary = self._binary or find_binary()
        if binary is None:
            raise _Unchecked("the type checker `ty` is not installed")
        try:
            self._project = Project()
        except OSError as error:
            raise _Unchecked(f"no temporary folder for the type checker: {error}") from error
        server = self._server = TypeServer(binary, self._project)
        try:
            async with asyncio.timeout(self._start_timeout):
                await server.start()
                await server.examine("", ["print(len([1]))\n"])  # reads the standard library's stubs
        except TimeoutError as error:
            await self._drop()
            raise _Unchecked(f"the type checker did not start within {self._start_timeout:g} s") from error
        except asyncio.CancelledError:
            server.kill()
            raise
        return server, self._project

    async def _drop(self) -> None:
        server, project = self._server, self._project
        self._server = self._project = None
        try:
            if server is not None:
                server.kill()
                await server.reap()
        finally:
            if project is not None:
                project.close()


def _ours(case: Case, earlier: ResultTypes | None) -> list[Diagnostic]:
    """What our own rules find."""
    rules = chain(
        own.examine(case), results.examine(case, earlier), inputs.missing_keys(case), keys.misspelt(case)
    )
    return list(islice(rules, _MAX_FOUND))


def _refuse_dirty(what: str, findings: Sequence[Finding]) -> None:
    for finding in findings:
        if finding.severity <= 2:
            raise _Unchecked(f"{what}: {finding.message.splitlines()[0]}")


def _verdict(found: Sequence[Diagnostic], reason: str) -> Verdict:
    """One finding a place and kind; ours stand before the checker's and win."""
    places: dict[tuple[int, int, bool], Diagnostic] = {}
    for one in found:
        places.setdefault((one.line, one.column, one.blocking), one)
    shown = [one for one in places.values() if one.blocking or (one.line, one.column, True) not in places]
    shown.sort(key=lambda one: (not one.blocking, one.line, one.column))
    omitted = max(0, len(shown) - _MAX_SHOWN)
    ordered = tuple(sorted(shown[:_MAX_SHOWN], key=lambda one: (one.line, one.column)))
    if any(one.blocking for one in ordered):
        return Verdict(status="rejected", reason=reason, diagnostics=ordered, omitted=omitted)
    if reason:
        return Verdict(status="unchecked", reason=reason, diagnostics=ordered, omitted=omitted)
    return Verdict(status="advised" if ordered else "clean", diagnostics=ordered, omitted=omitted)
