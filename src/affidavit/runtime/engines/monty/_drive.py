"""Answers everything that one sandbox asks of its host while a script runs."""

from __future__ import annotations

import asyncio
import binascii
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, Literal, TypeAlias

import orjson
from pydantic_monty import (
    NOT_HANDLED,
    AsyncFunctionSnapshot,
    AsyncFutureSnapshot,
    AsyncMontySession,
    AsyncSnapshot,
    ExternalException,
    ExternalReturnValue,
    MontyComplete,
    MontyError,
)

from affidavit.errors import AffidavitError
from affidavit.evidence import values
from affidavit.evidence.record import JsonValue
from affidavit.runtime.engines.monty._clock import Clock, nanoseconds
from affidavit.runtime.engines.monty._results import read_refusal
from affidavit.runtime.engines.monty._rewrite import Place
from affidavit.runtime.engines.monty._timers import Timers
from affidavit.runtime.program import (
    CallFailed,
    CallHandler,
    CallResult,
    CallReturned,
    Program,
    ScriptCall,
    ScriptError,
)

__all__ = ["Drive", "Output", "StoppedError", "decoded"]

_STRANGE = {b'"$uuid"': "UUID", b'"$text': "text with lone surrogates"}


# Calls beyond the budget that are answered before the run is ended.
_REFUSALS = 1_000


_Ended: TypeAlias = tuple[ExternalReturnValue | ExternalException, int]
"""How a call ended, and the moment to which it moves the clock, nanoseconds since the epoch."""


class StoppedError(Exception):
    """The run cannot go on, for a reason that is not the script's exception."""

    def __init__(self, error: ScriptError) -> None:
        super().__init__(error.message)
        self.error = error


class Output:
    """Collects what a script prints, both streams in order, up to a bound; what is beyond it is counted."""

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._kept: list[str] = []
        self.cut = 0

    def __call__(self, _stream: Literal["stdout", "stderr"], text: str) -> None:
        """Take one piece of output."""
        if self._left <= 0:
            self.cut += len(text)
            return
        data = text.encode("utf-8", "surrogatepass")
        if len(data) > self._left:
            whole = data[: self._left].decode("utf-8", "ignore")
            self.cut += len(text) - len(whole)
            text = whole
            self._left = 0
        else:
            self._left -= len(data)
        self._kept.append(text)

    @property
    def text(self) -> str:
        """What is kept so far."""
        return "".join(self._kept)


class Drive:
    """The host's side of one run: calls, clock, sleep, and the tasks that they became.

    Args:
        program: what runs.
        handler: answers calls.
        sites: places of the calls, by the number that the sandbox reports.
    """

    def __init__(self, program: Program, handler: CallHandler, sites: tuple[Place, ...]) -> None:
        self.output = Output(program.limits.output_bytes)
        self.failures: dict[str, CallFailed] = {}
        self._limits = program.limits
        self._handler = handler
        self._sites = sites
        self._clock = Clock(program.clock)
        self._calls = 0
        self._stop: BaseException | None = None
        self._free = frozenset(leaf["$call"] for leaf in _leaves(program.tree) if leaf.get("kind") == "sync")
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ambiguous: set[str] = set()
        self._waiting: dict[int, asyncio.Task[_Ended]] = {}
        self._ended: asyncio.Queue[int] = asyncio.Queue()
        self._timers = Timers(self._clock, program.timers)

    @property
    def timers(self) -> tuple[int, ...]:
        """Which of timers and calls the script went on with (see `RunOutcome`)."""
        return tuple(self._timers.taken)

    def functions(self) -> dict[str, Callable[..., Any]]:
        """What the prelude finds under names that it does not define."""
        return {
            "_affidavit_call": self.call,
            "_affidavit_sync": self.call,
            "_affidavit_refused": self._argument_refused,
            "_affidavit_fields": self._field_of,
            "_affidavit_kit_failed": self._unfit,
        }

    async def feed(
        self, session: AsyncMontySession, code: str, inputs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run a piece of code to its end and return its value.

        Raises:
            StoppedError: the run cannot go on.
            MontyError: the code raised, or the sandbox is gone.
            Exception: what the handler raised.
        """
        try:
            return await self._feed(session, code, inputs)
        except MontyError:
            if self._stop is not None:
                raise self._stop from None
            raise

    async def _feed(self, session: AsyncMontySession, code: str, inputs: Mapping[str, Any] | None) -> Any:
        snapshot: AsyncSnapshot = await session.feed_start(
            code,
            inputs=dict(inputs) if inputs else None,
            external_lookup=self.functions(),
            print_callback=self.output,
            os=self._system,
        )
        while not isinstance(snapshot, MontyComplete):
            if self._stop is not None:
                raise self._stop
            if isinstance(snapshot, AsyncFunctionSnapshot):
                snapshot = await self._function(snapshot)
            elif isinstance(snapshot, AsyncFutureSnapshot):
                snapshot = await self._settle(snapshot)
            else:
                snapshot = await snapshot.resume_auto()
        if self._stop is not None:
            raise self._stop
        return snapshot.output

    async def _function(self, snapshot: AsyncFunctionSnapshot) -> AsyncSnapshot:
        name = str(snapshot.function_name)
        if name == "_affidavit_sync":
            return await self._answer(snapshot)
        concurrent = name in ("_affidavit_call", "asyncio.sleep") and not snapshot.allow_eager_await
        if not concurrent:
            return await snapshot.resume_auto()
        call_id = snapshot.call_id
        if name == "asyncio.sleep":
            self._timers.add(call_id, *snapshot.args)
        else:
            task = self._waiting[call_id] = self._spawn(self._made(*snapshot.args))
            task.add_done_callback(lambda _: self._ended.put_nowait(call_id))
        return await snapshot.resume({"future": ...})

    async def _answer(self, snapshot: AsyncFunctionSnapshot) -> AsyncSnapshot:
        """Make a call that the script does not await."""
        return await snapshot.resume(await _settled(self.call(*snapshot.args)))

    async def _settle(self, snapshot: AsyncFutureSnapshot) -> AsyncSnapshot:
        """Hand over what has ended, in the order of the ends, so that the script resumes as under asyncio.

        One at a time, and the clock moves only then: what the script does follows from the order alone.
        """
        timers = await self._timers.next(self._waiting.values(), lambda: not self._ended.empty())
        if timers:
            return await snapshot.resume({timer.call_id: {"return_value": timer.result} for timer in timers})
        call_id = await self._ended.get()
        end, moment = await self._waiting.pop(call_id)
        self._clock.move(moment)
        return await snapshot.resume({call_id: end})

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def join(self) -> None:
        """Cancel what still runs for the script, and wait until it has ended."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def call(self, path: str, arguments: Mapping[str, Any], site: int, iteration: int) -> Any:
        """Make one call of the script, which waits for it, and return its value as the sandbox takes it.

        Raises:
            binascii.Incomplete: the call failed; the exception that stands for `df.Error` in the sandbox.
        """
        end, moment = await self._made(path, arguments, site, iteration)
        self._clock.move(moment)
        if "exception" in end:
            raise end["exception"]
        return end["return_value"]

    async def _made(self, path: str, arguments: Mapping[str, Any], site: int, iteration: int) -> _Ended:
        """Make one call of the script."""
        try:
            call = self._accepted(path, arguments, site, iteration)
            result = await self._spawn(self._handle(call))
            if isinstance(result, CallReturned):
                return {"return_value": decoded(result.json)}, nanoseconds(result.completed)
        except binascii.Incomplete as refusal:
            return {"exception": refusal}, 0
        except Exception as error:
            # Raised here it would become an exception of the script, which could catch it.
            self._stop = self._stop or error
            return {"exception": binascii.Incomplete()}, 0
        return {"exception": binascii.Incomplete(self._remember(result))}, nanoseconds(result.completed)

    def _accepted(self, path: str, arguments: Mapping[str, Any], site: int, iteration: int) -> ScriptCall:
        """The call as it leaves the sandbox.

        Raises:
            binascii.Incomplete: it may not.
        """
        place = self._sites[site]
        try:
            # An answer's value is written for people, as the script's own value is.
            given = values.soften(dict(arguments))[0] if path == "answer" else dict(arguments)
            encoded: dict[str, JsonValue] = values.encode(given)
        except AffidavitError as error:
            raise self._failed(
                error.code, f"argument of df.{path}: {error.message}", error.hint, error.details
            ) from None
        size = len(orjson.dumps(encoded))
        if size > self._limits.argument_bytes:
            problem = (
                f"the arguments of df.{path} are {size} bytes, the limit is {self._limits.argument_bytes}"
            )
            raise self._failed("budget-exceeded", problem, "pass less at once, or in several calls", {})
        if path not in self._free:
            self._spend()
        return ScriptCall(
            path=path, arguments=encoded, line=place.line, column=place.column, iteration=iteration
        )

    def _spend(self) -> None:
        self._calls += 1
        if self._calls <= self._limits.calls:
            return
        if self._calls > self._limits.calls + _REFUSALS:
            message = (
                f"the script kept calling after its {self._limits.calls} calls were spent, and was stopped"
            )
            hint = "stop when df.Error says budget-exceeded"
            self._stop = StoppedError(
                ScriptError(code="budget-exceeded", type="df.Error", message=message, hint=hint)
            )
        problem = f"the run's budget of {self._limits.calls} calls is spent"
        raise self._failed("budget-exceeded", problem, "use fewer, larger calls: pages, get_many, count", {})

    def _argument_refused(self, path: str, text: str) -> None:
        """An argument that cannot leave the sandbox fails the call, as it does where it could."""
        refusal = read_refusal(text)
        if refusal is None:
            raise ValueError(text)
        message = f"argument of df.{path}: {refusal.problem} at {refusal.path}"
        code = "budget-exceeded" if refusal.code == "value-too-large" else refusal.code
        raise self._failed(code, message, refusal.hint, {"path": refusal.path})

    def _unfit(self, code: str, message: str, hint: str, details: Mapping[str, JsonValue] | None) -> None:
        """A value that `df.kit` cannot read as it was asked to."""
        raise self._failed(code, message, hint, details or {})

    async def _handle(self, call: ScriptCall) -> CallResult:
        return await self._handler(call)

    def _failed(
        self, code: str, message: str, hint: str, details: Mapping[str, JsonValue]
    ) -> binascii.Incomplete:
        failure = CallFailed(
            code=code,
            message=message,
            hint=hint,
            retryable=False,
            details=details,
            completed=self._clock.seconds(),
        )
        return binascii.Incomplete(self._remember(failure))

    def _remember(self, failure: CallFailed) -> str:
        """The text of the exception; its other fields are looked up by that text when the script asks."""
        text = f"{failure.code}: {failure.message}" + (f" ({failure.hint})" if failure.hint else "")
        known = self.failures.setdefault(text, failure)
        if _fields(known) != _fields(failure):
            self._ambiguous.add(text)
        self.failures[text] = failure
        return text

    def _field_of(self, text: str, name: str) -> Any:
        failure = self.failures.get(text)
        if failure is None:
            raise AttributeError(f"this df.Error was not raised by a call, so it has no {name}")
        if text in self._ambiguous and name != "message":
            raise RuntimeError(
                f"two failed calls share one message, so their {name} cannot be told apart here"
            )
        return values.decode(_fields(failure)[name])

    def _system(self, *, name: str, args: tuple[Any, ...], **_: Any) -> Any:
        """The frozen clock, and waiting. Everything else of the system is not there."""
        match name:
            case "time.time":
                return self._clock.read(args[0] if args else "time.time")
            case "datetime.now":
                return self._clock.now(args[0] if args else None)
            case "date.today":
                return self._clock.today()
            case "time.sleep" | "asyncio.sleep":
                return self._sleep(*args)
            case "os.getenv":
                return args[1] if len(args) > 1 else None
            case "os.environ":
                return {}
            case _:
                return NOT_HANDLED

    async def _sleep(self, seconds: float, result: Any = None) -> Any:
        moment = self._clock.after(seconds)
        await asyncio.sleep(0 if self._timers.replays else seconds)
        self._clock.move(moment)
        return result


async def _settled(work: Coroutine[Any, Any, Any]) -> ExternalReturnValue | ExternalException:
    """The end of a call as the sandbox takes it."""
    try:
        return {"return_value": await work}
    except binascii.Incomplete as error:
        return {"exception": error}


def _fields(failure: CallFailed) -> dict[str, JsonValue]:
    return {
        "code": failure.code,
        "message": failure.message,
        "hint": failure.hint,
        "retryable": failure.retryable,
        "details": dict(failure.details),
    }


def _leaves(tree: Mapping[str, JsonValue]) -> Iterator[Mapping[str, Any]]:
    for branch in tree.values():
        if "$call" in branch:
            yield branch
        else:
            yield from _leaves(branch)


def decoded(json: bytes) -> Any:
    """The value of encoded JSON as Python objects; untagged where the text holds no tag at all.

    Raises:
        StoppedError: `value-unsupported`, when the sandbox has no such values.
    """
    for tag, what in _STRANGE.items():
        if tag in json:
            message = f"a {what} cannot enter this engine"
            raise StoppedError(
                ScriptError(
                    code="value-unsupported", type="TypeError", message=message, hint="use --engine cpython"
                )
            )
    value = orjson.loads(json)
    return values.decode(value) if b'"$' in json else value
