"""The tools: names, words, arguments and results. Declared once; the server only carries them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from affidavit.errors import UsageError
from affidavit.evidence.record import JsonValue
from affidavit.namespaces.names import suggest

__all__ = [
    "TOOLS",
    "DescribeArguments",
    "ReadArguments",
    "RunArguments",
    "SearchArguments",
    "ToolSpec",
    "parse",
]

_MAX_CODE: Final = 1 << 20
_MAX_WORDS: Final = 1000
_MAX_PATH: Final = 1000
_MAX_KEY: Final = 1000
_MAX_POINTER: Final = 8 << 10

_Arguments = TypeVar("_Arguments", bound=BaseModel)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class RunArguments(_Strict):
    """Arguments of `run`."""

    code: Annotated[str, Field(min_length=1, max_length=_MAX_CODE, description="The Python script.")]
    inputs: Annotated[
        dict[str, Any],
        Field(default_factory=dict, description="Values that the script finds as globals of these names."),
    ]
    engine: Annotated[
        Literal["auto", "cpython", "monty"],
        Field(description="Which sandbox. auto takes cpython where it is isolated, else monty."),
    ] = "auto"
    check_only: Annotated[bool, Field(description="Check the script and do not run it.")] = False
    idempotency_key: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=_MAX_KEY,
            description="The same request again under the same key is not run again: its first result is returned.",
        ),
    ] = None


class SearchArguments(_Strict):
    """Arguments of `search`."""

    words: Annotated[
        str,
        Field(
            max_length=_MAX_WORDS,
            description="Words of names, documentation or parameters, in any spelling. Empty shows everything.",
        ),
    ] = ""


class DescribeArguments(_Strict):
    """Arguments of `describe`."""

    path: Annotated[
        str,
        Field(
            max_length=_MAX_PATH,
            description="An operation or namespace below df, such as db.app.modules.page or db.app.",
        ),
    ]
    full: Annotated[bool, Field(description="With JSON Schemas, and without the bound on listings.")] = False


class ReadArguments(_Strict):
    """Arguments of `read`."""

    ref: Annotated[
        str,
        Field(
            min_length=1,
            max_length=_MAX_POINTER,
            description="An evidence id (ev1_..., also ev1_...#/rows/3), a run id (run_...) or a run's number.",
        ),
    ]
    part: Annotated[
        Literal[
            "",
            "result",
            "parameters",
            "record",
            "value",
            "stdout",
            "error",
            "diagnostics",
            "answer",
            "calls",
            "source",
        ],
        Field(
            description="What of it. Of evidence: result (default), parameters, record. Of a run: value (default), "
            "stdout, error, diagnostics, answer, calls, source."
        ),
    ] = ""
    pointer: Annotated[
        str,
        Field(
            max_length=_MAX_POINTER, description="JSON Pointer to a place in it, such as /rows/3. Empty: all."
        ),
    ] = ""
    offset: Annotated[int, Field(ge=0, description="First item, entry or character wanted.")] = 0
    limit: Annotated[int, Field(ge=0, description="At most so many; 0: as many as fit.")] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """One tool as the catalogue shows it.

    Attributes:
        name: its name.
        title: for people.
        description: for models: when and how to use it.
        arguments: what it takes.
        output: JSON Schema of its structured result.
        reads_only: whether it changes nothing; only `run` may.
    """

    name: str
    title: str
    description: str
    arguments: type[BaseModel]
    output: Mapping[str, JsonValue]
    reads_only: bool

    def input_schema(self) -> dict[str, JsonValue]:
        """JSON Schema of the arguments."""
        schema = self.arguments.model_json_schema()
        schema.pop("title", None)
        schema.pop("description", None)
        for one in schema["properties"].values():
            one.pop("title", None)
        return schema


_TEXT: Final[JsonValue] = {"type": "string"}
_COUNT: Final[JsonValue] = {"type": "integer"}
_ERROR: Final[JsonValue] = {
    "type": ["object", "null"],
    "properties": {"code": _TEXT, "message": _TEXT, "hint": _TEXT},
}
_CUTS: Final[JsonValue] = {
    "type": "array",
    "description": "Places of which less is shown than there is; `read` reaches them.",
    "items": {
        "type": "object",
        "properties": {"pointer": _TEXT, "shown": _COUNT, "total": _COUNT, "unit": _TEXT},
    },
}


def _output(properties: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    whole = {
        **properties,
        "error": _ERROR,
        "next": {"type": "string", "description": "The next call to make."},
    }
    return {"type": "object", "properties": whole, "required": ["next"]}


_RUN = _output(
    {
        "run_id": _TEXT,
        "number": _COUNT,
        "session_id": _TEXT,
        "status": {
            "enum": [
                "succeeded",
                "failed",
                "rejected",
                "timed-out",
                "cancelled",
                "orphaned",
                "clean",
                "advised",
                "unchecked",
            ]
        },
        "engine": _TEXT,
        "has_value": {"type": "boolean"},
        "value": {"description": "The value, or a preview of it where `cuts` is not empty."},
        "value_bytes": _COUNT,
        "cuts": _CUTS,
        "more_cuts": _COUNT,
        "answer": {"description": "What df.answer stated, or null."},
        "stdout": _TEXT,
        "stdout_cut": _COUNT,
        "diagnostics": {
            "type": "array",
            "items": {"type": "object", "properties": {"line": _COUNT, "message": _TEXT, "blocking": {}}},
        },
        "calls": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"operation": _TEXT, "evidence_id": _TEXT, "line": _COUNT},
            },
        },
        "calls_total": _COUNT,
        "notes": {"type": "array"},
    }
)
_SEARCH = _output({"path": _TEXT, "found": {"type": "array"}, "total": _COUNT})
_DESCRIBE = _output(
    {
        "path": _TEXT,
        "signature": _TEXT,
        "doc": _TEXT,
        "effect": {"enum": ["read", "write", "external"]},
        "contract": _TEXT,
        "example": _TEXT,
        "declarations": {"type": "array"},
        "found": {"type": "array"},
        "total": _COUNT,
        "input_schema": {},
        "output_schema": {},
    }
)
_READ = _output(
    {
        "ref": _TEXT,
        "kind": {"enum": ["record", "run"]},
        "part": _TEXT,
        "pointer": _TEXT,
        "about": {"type": "object"},
        "value": {"description": "The value, or the part of it from `offset` on."},
        "unit": _TEXT,
        "total": _COUNT,
        "offset": _COUNT,
        "returned": _COUNT,
        "next_offset": {"type": ["integer", "null"]},
        "cuts": _CUTS,
        "more_cuts": _COUNT,
    }
)

_RUN_WORDS = """\
Run a Python script against the typed namespaces of `df`; every call that it makes becomes evidence with an id.
`df` is there without an import, and `await` and `async for` work at the top level. The last expression is the value.
    page = await df.db.app.modules.page(where={"path": "main.js"}, limit=10)
    [row["path"] for row in page.rows]
Do filtering, loops and arithmetic in the script, and return what is needed only. The script is checked first: one that
is proven wrong is rejected with the line and a suggestion, and nothing of it ran. It reaches no files, network or
processes but through `df`. Each script starts afresh, but for `results`: results[0] is
the newest earlier script, results[0].data its value (await results[0].load() where it is large). State a conclusion by
    df.answer(status="answered", value=..., evidence=[page.evidence_id], derivation="how it follows")
Do not guess names of operations: `search` and `describe` tell them."""
_SEARCH_WORDS = """\
Find the operations that scripts may call, by words; the best first, each with its signature. Without words: the map of
all that is mounted. Then `describe` one, or call it in `run`."""
_DESCRIBE_WORDS = """\
Show one operation whole: signature, types of arguments and results, and an example for `run`. A namespace
(db.app) is listed. `full` adds JSON Schemas."""
_READ_WORDS = """\
Read what is kept: the result of a call by its evidence id, or the value of a run. Large values come in parts: `pointer`
goes to a place inside, `offset` goes on where the last part ended. The reply names the call for the next part."""

TOOLS: Final[Sequence[ToolSpec]] = (
    ToolSpec(
        name="search",
        title="Find operations",
        description=_SEARCH_WORDS,
        arguments=SearchArguments,
        output=_SEARCH,
        reads_only=True,
    ),
    ToolSpec(
        name="describe",
        title="Show an operation",
        description=_DESCRIBE_WORDS,
        arguments=DescribeArguments,
        output=_DESCRIBE,
        reads_only=True,
    ),
    ToolSpec(
        name="run",
        title="Run a script",
        description=_RUN_WORDS,
        arguments=RunArguments,
        output=_RUN,
        reads_only=False,
    ),
    ToolSpec(
        name="read",
        title="Read evidence or a run",
        description=_READ_WORDS,
        arguments=ReadArguments,
        output=_READ,
        reads_only=True,
    ),
)


def parse(model: type[_Arguments], tool: str, given: Mapping[str, Any]) -> _Arguments:
    """The arguments of a tool. A null stands for an argument that is not given.

    Raises:
        UsageError: `arguments-invalid`, naming each argument that does not fit.
    """
    try:
        return model.model_validate({name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        problems = [
            _problem(model, one["loc"], one["type"], one["msg"]) for one in error.errors(include_url=False)
        ]
    raise UsageError(
        "arguments-invalid",
        f"{tool}: {'; '.join(problems[:5])}",
        hint=f"{tool} takes {', '.join(model.model_fields)}",
        details={"tool": tool, "problems": problems[:20]},
    )


def _problem(model: type[BaseModel], place: tuple[int | str, ...], kind: str, message: str) -> str:
    name = ".".join(str(part) for part in place)[:200]
    if kind != "extra_forbidden":
        return f"{name}: {message}"
    near = suggest(name, model.model_fields)
    return f"no argument {name}" + (f"; did you mean {near}?" if near else "")
