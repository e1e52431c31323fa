"""What a program can be asked, as a person declares it.

Two forms, both JSON. Bundles of a runner, which reads its arguments as JSON and prints `{"result": ...}`:

```json
[{"bundle": "weather", "tools": [{"name": "forecast", "description": "...", "params_json_schema": {...}}]}]
```

Tools of any program, whose arguments are words:

```json
{"tools": [{"name": "resize", "params_json_schema": {...}, "words": ["resize"], "positionals": ["file"],
            "flags": {"width": "-w"}, "output": "text", "effect": "write"}]}
```
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from affidavit.errors import NotFoundError, UsageError
from affidavit.evidence.canonical import parse
from affidavit.evidence.record import JsonValue

__all__ = ["FILE", "Bundle", "ProgramTool", "RunnerTool", "bundles_of", "program_tools", "read_manifest"]

FILE: Final = "tool_manifest.json"
_MAX_BYTES: Final = 16 << 20


class _Tool(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    name: str = Field(min_length=1)
    description: str = ""
    params_json_schema: dict[str, Any] = Field(default_factory=dict[str, Any])
    output_json_schema: dict[str, Any] | None = None
    effect: Literal["read", "write", "external"] = "external"


class RunnerTool(_Tool):
    """One tool of a runner's bundle."""


class Bundle(BaseModel):
    """Tools of a runner that belong together."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    bundle: str = Field(min_length=1)
    tools: tuple[RunnerTool, ...]


class ProgramTool(_Tool):
    """One way to call a program.

    Attributes:
        words: what follows the program's name: a subcommand, fixed options.
        positionals: the arguments that are words by themselves, in this order; they come last, after `--`.
        flags: how the other arguments are said, by name; `--the-name` by default. A flag that starts with `--` is
            joined to its value by `=`, any other is a word of its own. True is the flag alone, a list is repeated.
        separator: whether `--` stands before the positionals, so that one which starts with a dash is no option.
        stdin: the argument that is given on standard input instead.
        output: what standard output is.
        exit_codes: those that are no failure.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    words: tuple[str, ...] = ()
    positionals: tuple[str, ...] = ()
    flags: dict[str, str] = Field(default_factory=dict[str, str])
    separator: bool = True
    stdin: str = ""
    output: Literal["text", "json", "bytes"] = "text"
    exit_codes: tuple[int, ...] = (0,)


_BUNDLES: Final = TypeAdapter(tuple[Bundle, ...])
_TOOLS: Final = TypeAdapter(tuple[ProgramTool, ...])


def read_manifest(path: Path) -> JsonValue:
    """The JSON of a manifest.

    Raises:
        NotFoundError: `artifact-not-found`.
        UsageError: `mount-invalid` for what is no JSON.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        hint = "name it with the option manifest, or declare tools in affidavit.toml"
        raise NotFoundError("artifact-not-found", f"there is no manifest {path.name}", hint=hint) from None
    except OSError as error:
        raise UsageError("mount-invalid", f"{path.name} cannot be read: {error.strerror}") from error
    if len(data) > _MAX_BYTES:
        raise UsageError("mount-invalid", f"{path.name} has more than {_MAX_BYTES} bytes")
    try:
        return parse(data)
    except UsageError as error:
        raise UsageError("mount-invalid", f"{path.name}: {error.message}", hint=error.hint) from None


def bundles_of(manifest: JsonValue) -> tuple[Bundle, ...]:
    """The bundles of a runner's manifest. Raises `UsageError(mount-invalid)`, naming the place."""
    return _validated(_BUNDLES, manifest, "the manifest")


def program_tools(tools: JsonValue) -> tuple[ProgramTool, ...]:
    """The tools of a program. Raises `UsageError(mount-invalid)`, naming the place."""
    found = _validated(_TOOLS, tools, "tools")
    for tool in found:
        properties: dict[str, Any] = tool.params_json_schema.get("properties", {})
        named = {*tool.positionals, *tool.flags, *([tool.stdin] if tool.stdin else [])}
        for name in sorted(named - properties.keys()):
            raise UsageError(
                "mount-invalid",
                f"tool {tool.name} places an argument {name!r} that its params_json_schema does not name",
                hint="add it to the properties",
            )
    return found


def _validated(adapter: TypeAdapter[Any], value: JsonValue, what: str) -> Any:
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UsageError(
            "mount-invalid",
            f"{what} at {place}: {first['msg']}",
            hint="docs/mounts.md shows both forms",
            details={"path": place},
        ) from None
