"""The head of every stub module: the shapes that collections return, and what `df` itself can do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

__all__ = ["ROOT", "prelude", "shape"]

ROOT: Final = "Df"

_IMPORTS: Final = """\
from collections.abc import AsyncIterator, ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from typing import Any, Generic, Literal, Never, NotRequired, TypeVar, overload
from typing_extensions import TypedDict
import builtins as _builtins
import datetime as _datetime
import decimal as _decimal
import uuid as _uuid

_Row = TypeVar("_Row")

class _Struct:
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def __contains__(self, key: object, /) -> bool: ...
    def get(self, key: str, default: Any = None, /) -> Any: ...
    def keys(self) -> KeysView[str]: ...
    def values(self) -> ValuesView[Any]: ...
    def items(self) -> ItemsView[str, Any]: ...
"""

_COVERAGE: Final = 'Literal["complete", "partial", "unknown"]'
_FIELDS: Final = (
    (
        "Source",
        "Where rows come from: the record of the analysis, and the digest and format of its bytes.",
        (("evidence_id", "str"), ("artifact", "str"), ("format", "str")),
    ),
    (
        "CoverageDict",
        "What of the source was examined; says nothing about paging.",
        (
            ("state", _COVERAGE),
            ("selection", "str"),
            ("examined", "int"),
            ("omitted", "int"),
            ("unknown", "int"),
            ("bounds", "dict[str, int]"),
        ),
    ),
    (
        "PageInfo",
        "Where this page stands among the matching rows.",
        (
            ("offset", "int"),
            ("returned", "int"),
            ("total", "int"),
            ("exhausted", "bool"),
            ("shortened", "bool"),
            ("next_cursor", "str | None"),
        ),
    ),
    (
        "LimitationDict",
        "A place in the source that could not be examined.",
        (("code", "str"), ("place", "str"), ("message", "str")),
    ),
    (
        "Page",
        "One page of rows with what they rest on.",
        (
            ("rows", "list[_Row]"),
            ("evidence_id", "str"),
            ("source", "Source"),
            ("source_coverage", "CoverageDict"),
            ("page", "PageInfo"),
            ("limitations", "list[LimitationDict]"),
            ("limitations_omitted", "int"),
        ),
    ),
    (
        "Count",
        "How many rows match; a lower bound when the source was not examined completely.",
        (
            ("evidence_id", "str"),
            ("count", "int"),
            ("bound", 'Literal["exact", "lower"]'),
            ("by", "str | None"),
            ("groups", "list[Group]"),
            ("groups_omitted", "int"),
            ("source", "Source"),
            ("source_coverage", "CoverageDict"),
        ),
    ),
)

_TYPED_DICTS: Final = '''\
class Found(TypedDict, Generic[_Row], closed=True):
    """A batch item that is there."""
    status: Literal["found"]
    id: str
    item: _Row
    support: list[str]

class Missed(TypedDict, closed=True):
    """A batch item that is not, with the reason."""
    status: Literal["failed"]
    id: str
    code: str
    message: str
    support: list[str]

class Group(TypedDict):
    """How many of the counted rows have one value of the `by` field."""
    value: Any
    count: int

class BudgetInfo(TypedDict, closed=True):
    """What this run may still use."""
    calls_left: int
    result_bytes_left: int
    seconds_left: float

class CallInfo(TypedDict):
    """One call of this run."""
    operation: str
    evidence_id: str
    status: Literal["ok", "failed", "unfinished"]
    line: int
    contract: str
    duration_ms: float
    code: str

class UnknownRelation(TypedDict):
    """How an unknown stands to another one."""
    kind: Literal["depends-on", "related-to", "contradicts"]
    unknown: str

class UnknownInfo(TypedDict):
    """The newest revision of an unknown; `made` says whether this call made it."""
    id: str
    revision: int
    digest: str
    made: bool
    question: str
    domain: str
    scope: str | None
    severity: Literal["low", "medium", "high", "critical"]
    status: Literal["open", "investigating", "blocked", "contradicted", "resolved"]
    resolution: Literal["verified", "withdrawn", "out-of-scope"] | None
    supports: list[str]
    contradicts: list[str]
    required_authority: str | None
    required_confidence: str | None
    relations: list[UnknownRelation]
    probes: list[str]
    note: str

class PreambleInfo(TypedDict):
    """One entry of the session's preamble."""
    key: str
    code: str

class Kit:
    """Reads untidy replies: what is not there is an error, and never a silent zero or empty text."""
    def get(self, value: Any, path: str | int | Sequence[str | int], default: Any = ...) -> Any:
        """What stands at "items[0].id" or ["a key", 0]; the default only where nothing is there."""
    def rows_of(self, reply: Any, path: str | int | Sequence[str | int] | None = None) -> list[dict[str, Any]]:
        """The rows of a reply: at a path, else the one list of objects in it."""
    def to_number(
        self, value: Any, path: str | int | Sequence[str | int] | None = None, *,
        thousands: str = "", decimal_point: str = ".",
    ) -> int | float:
        """A number, or text that says one; null, "" and everything else is an error."""
    def unwrap(self, reply: Any) -> Any:
        """What a reply carries: JSON text is read, envelopes come off; one that says that it failed is an error."""

class SessionVerbs:
    """The session itself."""
    def set_preamble(self, *, key: str, code: str) -> None:
        """Define code that every later script of the session finds; the same key replaces it."""
    def remove_preamble(self, *, key: str) -> None:
        """Remove an entry of the preamble."""
    def get_preamble(self) -> list[PreambleInfo]:
        """The entries of the preamble, in the order in which their keys were first set."""
'''

OWN: Final = '''\
    class Error(Exception):
        """A call failed: branch on `code`."""
        code: str
        message: str
        hint: str
        retryable: bool
        details: dict[str, Any]
    def answer(self, *, status: Literal["answered", "partial", "unsupported"], value: Any = None, \
evidence: Sequence[str | Mapping[str, Any]] | None = None, derivation: str | None = None, coverage: Any = None, \
missing: Sequence[str] | None = None, reason: str | None = None) -> None:
        """The final answer of this run; without `evidence` it cites every call."""
    def unknown(
        self, *, question: str | None = None, domain: str | None = None, scope: str | None = None,
        severity: Literal["low", "medium", "high", "critical"] | None = None,
        status: Literal["open", "investigating", "blocked", "contradicted", "resolved"] | None = None,
        resolution: Literal["verified", "withdrawn", "out-of-scope"] | None = None,
        supports: Sequence[str] | None = None, contradicts: Sequence[str] | None = None,
        required_authority: Literal["artifact-bytes", "static-analysis", "inference", "recorded-traffic",
            "live-source", "imported", "analyst"] | None = None,
        required_confidence: Literal["observed", "derived", "inferred"] | None = None,
        relations: Sequence[UnknownRelation | Mapping[str, str]] | None = None,
        probes: Sequence[str] | None = None, note: str | None = None,
        id: str | None = None, expect: int | None = None,
    ) -> UnknownInfo:
        """Open a question, or find it; with `id` read it; with `id` and `expect` revise what is given."""
    @property
    def kit(self) -> Kit: ...
    @property
    def session(self) -> SessionVerbs: ...
    def calls(self) -> list[CallInfo]:
        """The calls of this run so far."""
    def budget(self) -> BudgetInfo:
        """What this run may still use: seconds, calls, bytes."""'''

_TAKEN: Final = (
    "AsyncIterator ItemsView Iterator KeysView Mapping Sequence ValuesView Any Generic Literal Never NotRequired "
    "TypeVar overload TypedDict Found Missed Group BudgetInfo CallInfo Kit PreambleInfo SessionVerbs UnknownInfo "
    "UnknownRelation Df Error Source CoverageDict PageInfo LimitationDict Page Count results df"
)
NAMES: Final = frozenset(_TAKEN.split())
"""Every name of the head that a declaration or class may not take."""


def prelude() -> str:
    """Source of the head, up to the classes of the mounted namespaces."""
    shapes = [shape(name, doc, fields) for name, doc, fields in _FIELDS]
    return "\n".join([_IMPORTS, *shapes, _TYPED_DICTS])


def shape(name: str, doc: str, fields: Sequence[tuple[str, str]]) -> str:
    """A class whose fields can be read as attributes and as items; generic where a field is of `_Row`s."""
    generic = any("_Row" in kind for _, kind in fields)
    lines = [f"class {name}(_Struct{', Generic[_Row]' if generic else ''}):", f'    """{doc}"""']
    lines += [f"    {field}: {kind}" for field, kind in fields]
    kinds: dict[str, list[str]] = {}
    for field, kind in fields:
        kinds.setdefault(kind, []).append(f'"{field}"')
    for kind, keys in kinds.items():
        if len(kinds) > 1:
            lines.append("    @overload")
        lines.append(f"    def __getitem__(self, key: Literal[{', '.join(keys)}], /) -> {kind}: ...")
    return "\n".join(lines) + "\n"
