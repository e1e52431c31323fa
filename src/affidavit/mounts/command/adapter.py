"""The adapter: from a manifest to operations, from a call to words, from what was printed to a value."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, cast

from pydantic import Field

from affidavit.errors import AffidavitError, FailedError, UsageError
from affidavit.evidence.canonical import freeze, parse
from affidavit.evidence.record import JsonValue, Limitation, Producer
from affidavit.extensions import Description, Mount, Snapshot, Source
from affidavit.mounts.command.manifest import (
    FILE,
    ProgramTool,
    RunnerTool,
    bundles_of,
    program_tools,
    read_manifest,
)
from affidavit.mounts.foreign import label, plain_arguments
from affidavit.mounts.options import Options, read_options
from affidavit.mounts.processes import Finished, OverflowedError, environment, run
from affidavit.namespaces.names import identifiers
from affidavit.namespaces.operation import Namespace, Operation, Reply
from affidavit.namespaces.schema import SchemaCall, operation_from_schema

__all__ = ["CommandAdapter"]

SCHEME: Final = "command:"
_AT_ONCE: Final = 8
_SHOWN: Final = 4096
_BYTES: Final[JsonValue] = {
    "type": "object",
    "properties": {"$bytes": {"type": "string", "contentEncoding": "base64"}},
    "required": ["$bytes"],
    "additionalProperties": False,
}


class CommandOptions(Options):
    """What stands beside the URI.

    Attributes:
        manifest: path of the manifest, from the folder of the mount.
        tools: the tools of a program, instead of a manifest.
        dataset_dir: a folder that a runner is told with `--dataset-dir`.
        env: names of environment variables that the program is given, beside PATH, HOME and the like.
        timeout: seconds that a call may take.
        max_output: bytes that it may print.
    """

    manifest: str = FILE
    tools: list[dict[str, Any]] | None = None
    dataset_dir: str = ""
    env: tuple[str, ...] = ()
    timeout: float = Field(default=60.0, gt=0, le=3600)
    max_output: int = Field(default=16 << 20, gt=0, le=64 << 20)


class CommandAdapter:
    """`command:./runner` and `command:PROGRAM WORDS`: what it can be asked stands in a manifest."""

    name = "command"
    version = "1"
    place: Literal["db", "tool"] = "tool"

    def probe(self, uri: str, head: bytes) -> bool:
        """Whether the URI has the scheme."""
        return uri.startswith(SCHEME) and not head

    async def describe(self, source: Source) -> Description:
        """Read the manifest; the program is not run."""
        options = read_options(CommandOptions, source)
        words = _words(source)
        if options.tools is not None:
            manifest: JsonValue = {"tools": options.tools}
        else:
            manifest = await asyncio.to_thread(read_manifest, source.folder / options.manifest)
        # Only what is read of it is kept: a manifest may say more.
        if isinstance(manifest, list):
            contents: JsonValue = {"bundles": [one.model_dump(mode="json") for one in bundles_of(manifest)]}
        elif isinstance(manifest, dict) and "tools" in manifest:
            tools = program_tools(cast("dict[str, Any]", manifest)["tools"])
            contents = {"tools": [one.model_dump(mode="json") for one in tools]}
        else:
            hint = 'a list of bundles, or {"tools": [...]}'
            raise UsageError("mount-invalid", f"{options.manifest} is no manifest", hint=hint)
        contents["program"] = Path(next(word for word in reversed(words) if not word.startswith("-"))).stem
        mount = _CommandMount(source, contents)
        return Description(
            contents=contents,
            summary=f"{contents['program']}: {mount.count} tools",
            snapshot=_snapshot(contents),
            limitations=tuple(mount.limitations),
        )

    def open(self, source: Source, contents: JsonValue) -> Mount:
        """Make the operations; the program is run at each call."""
        return _CommandMount(source, cast("dict[str, JsonValue]", contents))


class _CommandMount:
    def __init__(self, source: Source, contents: dict[str, JsonValue]) -> None:
        self._source = source
        self.limitations: list[Limitation] = []
        self.count = 0
        program = _Program(source, read_options(CommandOptions, source))
        prefix = f"command.{label(contents['program'])}"
        producer = Producer(name=prefix, version=CommandAdapter.version)
        if "bundles" in contents:
            found = bundles_of(contents["bundles"])
            names = identifiers(dict.fromkeys(one.bundle for one in found), fallback="bundle")
            children = {
                names[one.bundle]: Namespace(
                    name=names[one.bundle],
                    operations=self._operations(
                        [(tool, program.bundled(one.bundle, tool.name)) for tool in one.tools],
                        f"{prefix}.{label(one.bundle)}",
                        producer,
                    ),
                )
                for one in found
            }
            self._namespace = Namespace(name=source.name, children=children)
        else:
            tools = [(tool, program.worded(tool)) for tool in program_tools(contents["tools"])]
            self._namespace = Namespace(
                name=source.name, operations=self._operations(tools, prefix, producer)
            )

    @property
    def namespace(self) -> Namespace:
        return self._namespace

    async def snapshot(self) -> Snapshot:
        return (await CommandAdapter().describe(self._source)).snapshot

    async def close(self) -> None:
        """Nothing is held: each call ends its own program."""

    def _operations(
        self,
        tools: list[tuple[RunnerTool, SchemaCall]] | list[tuple[ProgramTool, SchemaCall]],
        prefix: str,
        producer: Producer,
    ) -> dict[str, Operation]:
        names = identifiers(dict.fromkeys(tool.name for tool, _ in tools), fallback="tool")
        made: dict[str, Operation] = {}
        for tool, call in tools:
            try:
                if names[tool.name] in made:
                    raise UsageError("mount-invalid", "two tools have this name")
                made[names[tool.name]] = operation_from_schema(
                    names[tool.name],
                    {"type": "object", **tool.params_json_schema},
                    _output_schema(tool),
                    call,
                    contract=f"{prefix}.{label(tool.name)}/{CommandAdapter.version}",
                    effect=tool.effect,
                    producer=producer,
                    doc=tool.description,
                )
            except AffidavitError as error:
                place = f"tool {tool.name}"
                self.limitations.append(Limitation(code=error.code, place=place, message=error.message))
        self.count += len(made)
        return made


@dataclass(frozen=True, slots=True)
class _Call:
    what: str
    words: list[str]
    given: bytes = b""
    exit_codes: tuple[int, ...] = (0,)


class _Program:
    def __init__(self, source: Source, options: CommandOptions) -> None:
        self._source = source
        self._options = options
        self._words = _words(source)
        self._places = asyncio.Semaphore(_AT_ONCE)

    def bundled(self, bundle: str, tool: str) -> SchemaCall:
        """A call by the contract of runners."""

        async def call(arguments: dict[str, Any]) -> Reply:
            folder = self._options.dataset_dir
            words = ["--dataset-dir", str(self._source.folder / folder)] if folder else []
            given = json.dumps(plain_arguments(arguments, what=tool), separators=(",", ":"))
            words += ["--bundle", bundle, "--tool", tool, "--args", given]
            finished = await self._run(_Call(tool, words))
            document = _json(tool, finished.output)
            if not isinstance(document, dict) or "result" not in document:
                raise _unfit(tool, "it printed no object with a result")
            return Reply(value=cast("dict[str, Any]", document)["result"])

        return call

    def worded(self, tool: ProgramTool) -> SchemaCall:
        """A call with arguments as words."""

        async def call(arguments: dict[str, Any]) -> Reply:
            given = dict(arguments)
            taken = given.pop(tool.stdin, b"") if tool.stdin else b""
            data = taken if isinstance(taken, bytes) else _word(tool.name, tool.stdin, taken).encode()
            words = [*tool.words, *_words_of(tool, plain_arguments(given, what=tool.name))]
            finished = await self._run(_Call(tool.name, words, data, tool.exit_codes))
            if tool.output == "bytes":
                return Reply(value=finished.output)
            if tool.output == "json":
                return Reply(value=_json(tool.name, finished.output))
            # A byte that is no UTF-8 is kept as half a surrogate pair (PEP 383): nothing is lost, and text stays text.
            return Reply(value=finished.output.decode("utf-8", "surrogateescape"))

        return call

    async def _run(self, call: _Call) -> Finished:
        try:
            variables = environment(self._options.env, self._source.secret)
            async with self._places, asyncio.timeout(self._options.timeout):
                finished = await run(
                    [*self._words, *call.words],
                    folder=self._source.folder,
                    variables=variables,
                    input_bytes=call.given,
                    max_output=self._options.max_output,
                )
        except TimeoutError:
            raise FailedError(
                "tool-failed",
                f"{call.what} took more than {self._options.timeout:g} seconds, and was ended",
                hint="mount with a larger timeout, or ask for less",
                details={"reason": "timed-out"},
                retryable=True,
            ) from None
        except OverflowedError as error:
            hint = "mount with a larger max_output, or ask for less"
            raise FailedError("value-too-large", f"{call.what}: {error}", hint=hint) from None
        except ValueError as error:
            raise UsageError("arguments-invalid", f"{call.what} takes no null characters: {error}") from None
        except OSError as error:
            raise FailedError(
                "tool-failed",
                f"{call.what} cannot be started: {error.strerror}",
                hint="see that the program is there; arguments of more than 100 KB fit on no command line",
                details={"reason": "not-started"},
            ) from None
        if finished.code not in call.exit_codes:
            raise _failure(call.what, finished)
        return finished


def _words(source: Source) -> list[str]:
    try:
        words = shlex.split(source.uri.removeprefix(SCHEME))
    except ValueError as error:
        raise UsageError("mount-invalid", f"the command cannot be split into words: {error}") from None
    if not words:
        raise UsageError("mount-invalid", "command: names no program", hint="command:./runner")
    return words


def _words_of(tool: ProgramTool, arguments: Mapping[str, Any]) -> list[str]:
    words: list[str] = []
    for name, value in arguments.items():
        if name not in tool.positionals:
            words += _flagged(tool, name, value)
    last = [_word(tool.name, name, item) for name in tool.positionals for item in _items(arguments.get(name))]
    if tool.separator:
        return [*words, "--", *last] if last else words
    for word in last:
        if word.startswith("-"):
            raise UsageError(
                "arguments-invalid",
                f"{tool.name} would read {word!r} as an option",
                hint="it has no separator before its arguments",
            )
    return [*words, *last]


def _flagged(tool: ProgramTool, name: str, value: Any) -> list[str]:
    flag = tool.flags.get(name, f"--{name.replace('_', '-')}")
    words: list[str] = []
    for item in _items(value):
        if item is True:
            words.append(flag)
        elif item is not False:
            word = _word(tool.name, name, item)
            words += [f"{flag}={word}"] if flag.startswith("--") else [flag, word]
    return words


def _items(value: Any) -> list[Any]:
    """What an argument stands for: nothing, itself, or each of a list."""
    if value is None:
        return []
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _word(tool: str, name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    raise UsageError(
        "arguments-invalid",
        f"{tool}: {name} is a {type(value).__name__}, which is no word",
        hint="text, a number, true or false, or a list of them",
        details={"path": f"$.{name}"},
    )


def _output_schema(tool: RunnerTool | ProgramTool) -> JsonValue:
    if isinstance(tool, ProgramTool):
        if tool.output == "text":
            return {"type": "string"}
        if tool.output == "bytes":
            return _BYTES
    return tool.output_json_schema


def _json(tool: str, data: bytes) -> JsonValue:
    try:
        return parse(data)
    except UsageError as error:
        raise _unfit(tool, f"it printed what is no JSON: {error.message}") from None


def _unfit(tool: str, why: str) -> FailedError:
    hint = "the program breaks its contract; its manifest says what it should print"
    return FailedError("result-invalid", f"{tool}: {why}", hint=hint, details={"path": "$"})


def _failure(tool: str, finished: Finished) -> FailedError:
    errors = finished.errors[-_SHOWN:].decode("utf-8", "backslashreplace").strip()
    output = finished.output[:_SHOWN].decode("utf-8", "backslashreplace").strip()
    ended = f"signal {-finished.code}" if finished.code < 0 else f"exit code {finished.code}"
    said = errors or output or "it gave no reason"
    return FailedError(
        "tool-failed",
        f"{tool} ended with {ended}: {said.splitlines()[-1][:500]}",
        details={"exit_code": finished.code, "stderr": errors, "stdout": output},
    )


def _snapshot(contents: JsonValue) -> Snapshot:
    digest = hashlib.sha256(freeze(contents).data).hexdigest()
    return Snapshot(
        identity=f"sha256:{digest}", basis="SHA-256 of the manifest; the program may change beside it"
    )
