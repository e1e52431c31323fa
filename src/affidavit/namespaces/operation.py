"""What may be called: an `Operation` is declared once and shown through every face.

From one operation come the stub that scripts are checked against, the JSON Schema that discovery shows, the command
line's `affidavit call`, and the record of each call. Nothing of it is written twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from affidavit.evidence.record import (
    Authority,
    Confidence,
    Coverage,
    JsonValue,
    Limitation,
    Producer,
    Subject,
)

__all__ = ["Effect", "Handler", "Namespace", "Operation", "Parameter", "Reply"]

Effect: TypeAlias = Literal["read", "write", "external"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a handler returns: the value, and what its record must say beside it.

    Attributes:
        value: the result as Python values of the value domain; this is what is hashed.
        outside: fields merged into a mapping result *after* hashing, by dotted path (`page.next_cursor`), for what
            may not enter identity. The broker itself adds `evidence_id` for operations with `carries_evidence`.
        normalised: the parameters to record where they differ from the arguments (a cursor becomes its offset).
    """

    value: Any
    outside: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    normalised: Mapping[str, JsonValue] | None = None
    subject: Subject | None = None
    parents: tuple[str, ...] = ()
    coverage: Coverage | None = None
    limitations: tuple[Limitation, ...] = ()


class Handler(Protocol):
    """Runs one validated call. Arguments carry the *original* names; raise `AffidavitError` to fail."""

    def __call__(self, arguments: dict[str, Any], /) -> Awaitable[Reply]:
        """Run the call."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One argument: the Python name that scripts use, the original name that travels, and its type.

    `annotation` is Python source for the stub; names in it refer to `Operation.declarations` or to the stub prelude.
    """

    name: str
    original: str
    annotation: str
    required: bool = True
    default: JsonValue = None
    positional: bool = False
    doc: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One callable thing.

    Attributes:
        name: valid Python identifier, unique in its namespace.
        contract: the name that enters records, with version, free of any mount's alias: `javascript.modules.page/1`.
        effect: what calling it may do; `policy` decides over it.
        input_schema: JSON Schema (an object) of the arguments under their original names.
        output_schema: JSON Schema of the result, or None when the far side declares none.
        returns: annotation of the awaited result for the stub (`Page[ModulesRow]`, `Any`).
        declarations: stub source (TypedDicts) that annotations of this operation refer to; equal text is emitted once.
        parse: validates and normalises arguments given under original names; raises `UsageError(arguments-invalid)`.
        convert: makes the handler's value what `output_schema` declares (a Decimal for a declared string becomes its
            text); raises `FailedError(result-invalid)`.
        carries_evidence: the result is a mapping that shows its own `evidence_id` (added outside the hash).
        streams: name of a generated companion that iterates this paged operation (`pages` for `page`), or None.
        code: of a helper, the source of its module: it runs inside the script and is no call itself.
    """

    name: str
    contract: str
    effect: Effect
    doc: str
    parameters: tuple[Parameter, ...]
    input_schema: Mapping[str, JsonValue]
    output_schema: Mapping[str, JsonValue] | None
    returns: str
    handler: Handler
    parse: Callable[[Mapping[str, Any]], dict[str, Any]]
    convert: Callable[[Any], Any]
    producer: Producer
    authority: Authority
    confidence: Confidence = "observed"
    declarations: tuple[str, ...] = ()
    carries_evidence: bool = False
    streams: str | None = None
    code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespace:
    """A named set of operations and of namespaces below it: `df`, `df.db`, `df.db.app`, `df.db.app.modules`.

    Attributes:
        left_out: what is there and cannot be offered, each as its place and why.
    """

    name: str
    doc: str = ""
    left_out: tuple[str, ...] = ()
    operations: Mapping[str, Operation] = field(default_factory=dict[str, Operation])
    children: Mapping[str, Namespace] = field(default_factory=dict[str, "Namespace"])
