"""One client's conversation: a workspace, a session in it, and what each tool does. Knows nothing of the protocol."""

from __future__ import annotations

import asyncio
import secrets
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, cast

from affidavit.errors import AffidavitError, UsageError
from affidavit.evidence import values
from affidavit.evidence.record import JsonValue
from affidavit.interfaces.mcp.reading import read
from affidavit.interfaces.mcp.reply import Reply, call_text, failure
from affidavit.interfaces.mcp.scripts import checked, ran
from affidavit.interfaces.mcp.tools import (
    DescribeArguments,
    ReadArguments,
    RunArguments,
    SearchArguments,
    parse,
)
from affidavit.mounts.mounted import names_scheme, parse_mount
from affidavit.namespaces.describe import Description, Directory, describe
from affidavit.policy import Grant
from affidavit.runtime.program import Limits, ScriptCall
from affidavit.runtime.rendering.preview import size_of
from affidavit.runtime.session import Session
from affidavit.store.journal import JournalSettings
from affidavit.workspace import Workspace

__all__ = ["Conversation", "Settings", "Tell"]

Tell = Callable[[str], None]
"""Told in a few words what is going on, for progress displays."""

_MAX_INPUTS: Final = 4 << 20
_TEXT: Final = 24 << 10
_DOCUMENT: Final = 24 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the person who starts the server decides.

    Attributes:
        workspace: folder of the workspace.
        tenant: whose data.
        session: id of a session to go on with, or None for a new one.
        mounts: `NAME=URI` each, for the session.
        grants: what is permitted beside reading.
        limits: bounds of each run.
        journal: where to keep a journal, or None.
    """

    workspace: Path
    tenant: str = "default"
    session: str | None = None
    mounts: tuple[str, ...] = ()
    grants: tuple[Grant, ...] = ()
    limits: Limits = field(default_factory=Limits)
    journal: JournalSettings | None = None

    def reaches_outside(self) -> bool:
        """Whether a script may reach more than files that were mounted."""
        tools = any(names_scheme(parse_mount(spec)[1]) for spec in self.mounts)
        return tools or any(grant.effect != "read" for grant in self.grants)

    def may_write(self) -> bool:
        """Whether a script may change something outside."""
        return any(grant.effect == "write" for grant in self.grants)


class Conversation:
    """Answers tool calls over one session. An async context manager.

    Mounting may take long, so after `begin` it goes on beside the first messages; what needs the session waits for it.

    Args:
        settings: what the person who started the server decided.

    Raises:
        AffidavitError: on entering, for what can be told at once: a workspace that does not open, malformed ids.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._session_id = settings.session or f"ses_{secrets.token_hex(8)}"
        self._mounting = ""
        self._opening: asyncio.Task[Session] | None = None
        self._answering = set[asyncio.Task[Reply]]()

    async def __aenter__(self) -> Self:
        settings = self._settings
        self._workspace = Workspace.open(
            settings.workspace, tenant=settings.tenant, grants=settings.grants, journal=settings.journal
        )
        try:
            for spec in settings.mounts:
                parse_mount(spec)
            with redirect_stdout(sys.stderr):  # a mounted module may print when it is imported
                await self._workspace.session(self._session_id, keep=False)
        except BaseException:
            await self._workspace.close()
            raise
        return self

    def begin(self) -> None:
        """Open the session and mount, beside whatever comes next. Mounted modules may print from now on."""
        self._opening = asyncio.create_task(self._open())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._opening is not None:
            # A thread that analyses cannot be stopped; the workspace must not close under it.
            await asyncio.wait([self._opening])
            if not self._opening.cancelled():
                self._opening.exception()
        for note in self._workspace.notices():
            sys.stderr.write(f"note: {note}\n")
        await self._workspace.close()

    @property
    def session_id(self) -> str:
        """Id of the session; another connection goes on with it."""
        return self._session_id

    def reaches_outside(self) -> bool:
        """Whether scripts may reach more than mounted files: tools that are mounted, or grants."""
        tools = any(not mounted.artifact for mounted in self._workspace.mounts(self._session_id))
        return tools or self._settings.reaches_outside()

    def may_write(self) -> bool:
        """Whether scripts may change something outside."""
        return self._settings.may_write()

    def answer(self, tool: str, arguments: Mapping[str, Any], tell: Tell) -> asyncio.Task[Reply]:
        """Answer one tool call, in a task. Whatever goes wrong is a reply that names the next call.

        Cancelling the task once kills the script and settles its run; wait for the task then.

        Args:
            tool: one of `tools.TOOLS`.
            arguments: as the client gave them.
            tell: told what is going on.
        """
        task = asyncio.create_task(self._answer(tool, arguments, tell))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)
        return task

    async def stop(self) -> None:
        """Cancel what is being answered, and wait until every run is settled."""
        while self._answering:
            for task in self._answering:
                task.cancel()
            await asyncio.wait(self._answering)

    async def _answer(self, tool: str, arguments: Mapping[str, Any], tell: Tell) -> Reply:
        answer = {"run": self._run, "search": self._search, "describe": self._describe, "read": self._read}[
            tool
        ]
        try:
            reply = await answer(arguments, tell)
        except AffidavitError as error:
            reply = failure(error)
        except Exception as error:
            sys.stderr.write(traceback.format_exc())
            message = f"{type(error).__name__}: {error}"
            reply = failure(AffidavitError("internal", message[:2000], hint="please report it"))
        return reply.sendable()

    async def _run(self, given: Mapping[str, Any], tell: Tell) -> Reply:
        asked = parse(RunArguments, "run", given)
        inputs = _decoded(asked.inputs)
        session = await self._session(tell)
        if asked.check_only:
            return checked(await session.check(asked.code, inputs=inputs))
        made = 0

        def on_call(call: ScriptCall) -> None:
            nonlocal made
            made += 1
            tell(f"call {made}: {call.path}")

        return ran(
            await session.run(
                asked.code,
                engine=asked.engine,
                inputs=inputs,
                limits=self._settings.limits,
                on_call=on_call,
                idempotency_key=asked.idempotency_key,
            )
        )

    async def _search(self, given: Mapping[str, Any], tell: Tell) -> Reply:
        asked = parse(SearchArguments, "search", given)
        session = await self._session(tell)
        found = describe(session.catalogue.root, words=asked.words)
        assert isinstance(found, Directory)
        return _listed(found)

    async def _describe(self, given: Mapping[str, Any], tell: Tell) -> Reply:
        asked = parse(DescribeArguments, "describe", given)
        session = await self._session(tell)
        found = describe(session.catalogue.root, path=asked.path, full=asked.full)
        return _listed(found) if isinstance(found, Directory) else _described(found)

    async def _read(self, given: Mapping[str, Any], tell: Tell) -> Reply:
        asked = parse(ReadArguments, "read", given)
        session = await self._session(tell)
        return read(self._workspace.store, session, asked)

    async def _session(self, tell: Tell) -> Session:
        assert self._opening is not None
        while not self._opening.done():
            if self._mounting:
                tell(self._mounting)
            await asyncio.wait([self._opening], timeout=0.2)
        return self._opening.result()

    async def _open(self) -> Session:
        try:
            for spec in self._settings.mounts:
                # Analysis is plain computing: in a thread, so that the client is answered meanwhile.
                await asyncio.to_thread(
                    self._workspace.mount, spec, progress=self._progress, session=self._session_id
                )
            return await self._workspace.session(self._session_id)
        except AffidavitError as error:
            sys.stderr.write(f"error[{error.code}]: {error.message}\n")
            raise

    def _progress(self, done: int, total: int, what: str) -> None:
        self._mounting = f"{what} {done}/{total}"


def _decoded(inputs: Mapping[str, Any]) -> dict[str, Any]:
    for name in inputs:
        if not name.isidentifier():
            raise UsageError(
                "arguments-invalid",
                f"run: the input {name[:80]!r} is not a name in Python",
                hint="letters and _",
            )
    try:
        decoded = cast("dict[str, Any]", values.decode(dict(inputs)))
    except RecursionError:
        raise UsageError("value-too-deep", "run: inputs are nested too deeply", hint="flatten them") from None
    encoded = size_of(values.encode(decoded))
    if encoded > _MAX_INPUTS:
        raise UsageError(
            "value-too-large",
            f"run: inputs have {encoded} bytes of JSON, and {_MAX_INPUTS} are the bound",
            hint="let the script fetch what it needs through df",
        )
    return decoded


def _listed(found: Directory) -> Reply:
    if found.found:
        first = found.found[0]
        following = f"{call_text('describe', path=first.path)} shows types and an example; or call it in run"
    elif "try " in found.hint:
        following = call_text("search", words=found.hint.partition("try ")[2].partition(" or ")[0])
    elif found.hint.startswith("nothing found"):
        following = f"{call_text('search')} lists everything"
    else:
        following = "nothing is mounted; the person who started this server adds --mount NAME=URI"
    text = replace(found, hint=f"next: {following}").text().rstrip()
    if not found.found and found.total == 0:
        text = f"nothing found\n{text}"
    document = found.as_json() | {"next": following}
    del document["hint"]
    return _bounded(document, text, "search with words, or describe a path below")


def _described(found: Description) -> Reply:
    following = call_text("run", code=found.example)
    document = found.as_json() | {"next": following}
    text = f"{found.text().rstrip()}\nnext: {following}"
    return _bounded(document, text, call_text("describe", path=found.path))


def _bounded(document: dict[str, JsonValue], text: str, instead: str) -> Reply:
    """A reply within bounds: where something is too large it is left out, and the next call asks for less."""
    if size_of(document) > _DOCUMENT:
        document = _fitted(document) | {"next": instead}
    if len(text) > _TEXT:
        text = f"{text[:_TEXT]}\n… {len(text) - _TEXT} more characters\nnext: {instead}"
    return Reply(document=document, text=text)


def _fitted(document: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Schemas go first, then the ends of lists, then the end of the documentation."""
    for name in ("output_schema", "input_schema"):
        if name in document and size_of(document) > _DOCUMENT:
            document[name] = None
    for name in ("declarations", "found", "parameters", "companions"):
        items = cast("list[JsonValue]", document.get(name, []))
        while items and size_of(document) > _DOCUMENT:
            items = items[: len(items) // 2]
            document[name] = items
    for name, item in document.items():
        if isinstance(item, str):
            document[name] = item[: _DOCUMENT // 8]
    return document
