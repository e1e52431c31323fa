"""Small collections of every kind of value, and a plain-Python model of what queries over them must return."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NotRequired, cast

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from typing_extensions import TypedDict

from affidavit.evidence.record import Coverage, Limitation, Subject
from affidavit.facts.cache import QueryCache
from affidavit.facts.collection import Collection, ParentRef
from affidavit.facts.factfile import FactFile, FactFileWriter, analysis_meta
from affidavit.facts.spec import CollectionSpec


class ThingsRow(TypedDict):
    """One thing."""

    id: str
    path: str | None
    kind: Literal["asset", "json-module", "script"]
    size: NotRequired[int | None]
    mixed: NotRequired[str | int | bool | None]
    body: Any


class ThingsItem(ThingsRow):
    """One thing with its detail."""

    detail: NotRequired[Any]


THINGS = CollectionSpec(
    name="things",
    contract="sample.things",
    version=1,
    doc="One thing.",
    row=ThingsRow,
    item=ThingsItem,
    key="id",
    where=("path", "kind", "size", "mixed", "id"),
)

COMPLETE = Coverage(state="complete", selection="all files", examined=3)
PARTIAL = Coverage(state="partial", selection="all files", examined=3, unknown=1, bounds={"file_bytes": 10})
LIMITATIONS = (Limitation(code="parse-error", place="lib/\ud800.js", message="range 3-4"),)

HOSTILE = (
    "",
    " ",
    "'",
    '"',
    "''; DROP TABLE c0; --",
    "%",
    "_",
    "\\",
    "\x00",
    "a\x00b",
    "a",
    "A",
    "__proto__",
    "constructor",
    "$int",
    "$text",
    "$",
    "\u00e9",
    "e\u0301",
    "\U0001f600",
    "\ud800",
    "x\udfff",
    "\ud83d\ude00",
    "NULL",
    "0",
    "1",
    "true",
    "\u202e",
    "\ufeff",
    "\uffff",
    "x" * 5000,
)
"""Texts that have gone wrong somewhere: as SQL, as JSON, as keys, as Unicode."""

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""How fast examples are made says something about the machine, nothing about the product."""

texts = st.sampled_from(HOSTILE) | st.text(st.characters(), max_size=8)
integers = st.integers(-3, 3) | st.sampled_from(
    [2**53, -(2**53), 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**200]
)
bodies = st.recursive(
    st.none() | st.booleans() | integers | st.floats(allow_nan=False) | texts | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)

Row = dict[str, Any]


@st.composite
def rows(draw: st.DrawFn, *, max_size: int = 40) -> list[Row]:
    """Rows with unique ids whose fields often coincide."""
    ids = draw(st.lists(texts, unique=True, max_size=max_size))
    return [draw(_row(one)) for one in ids]


def _row(one: str) -> st.SearchStrategy[Row]:
    few = st.sampled_from(HOSTILE[:9]) | st.none()
    return st.fixed_dictionaries(
        {
            "id": st.just(one),
            "path": few | texts,
            "kind": st.sampled_from(["asset", "json-module", "script"]),
            "body": bodies,
        },
        optional={
            "size": integers | st.none(),
            "mixed": st.sampled_from([None, True, False, 1, 0, "1", "true", ""]),
        },
    )


def wheres(found: Sequence[Row]) -> st.SearchStrategy[dict[str, Any] | None]:
    """`where` arguments that match some of the rows, all, or none."""
    values = {
        "path": st.sampled_from([row["path"] for row in found] or [None]) | texts | st.none(),
        "kind": st.sampled_from(["asset", "json-module", "script", None]),
        "size": st.sampled_from([row.get("size") for row in found] or [None]) | integers | st.none(),
        "mixed": st.sampled_from([None, True, False, 1, 0, 2, "1", "true", ""]),
        "id": st.sampled_from([row["id"] for row in found] or [None]) | texts,
    }
    fields = {name: one | st.lists(one, max_size=4) for name, one in values.items()}
    return st.none() | st.fixed_dictionaries({}, optional=fields)


def matching(found: Iterable[Row], where: Mapping[str, Any] | None) -> list[Row]:
    """What the model selects: equality of value *and* type for every field."""
    return [
        row for row in found if all(_is_any(row.get(name), wanted) for name, wanted in (where or {}).items())
    ]


def _is_any(value: object, wanted: object) -> bool:
    options = cast(list[object], wanted) if isinstance(wanted, list) else [wanted]
    return any(type(value) is type(one) and value == one for one in options)


def write(
    path: Path,
    found: Iterable[Row],
    *,
    items: Mapping[str, Row] | None = None,
    spec: CollectionSpec = THINGS,
    coverage: Coverage = COMPLETE,
    limitations: tuple[Limitation, ...] = (),
) -> FactFile:
    """A fact file of one collection."""
    writer = FactFileWriter(path, [spec])
    for row in found:
        writer.add(spec.name, row, (items or {}).get(row[spec.key]))
    return writer.finish(analysis_meta(summary={"files": 3}, coverage=coverage, limitations=limitations))


def collection(
    facts: FactFile,
    *,
    parent: str = "ev1_" + "0" * 64,
    spec: CollectionSpec = THINGS,
    cache: QueryCache | None = None,
) -> Collection:
    """The collection of a fact file, with the parent that its meta document tells."""
    reference = ParentRef(
        evidence_id=parent,
        subject=Subject(digest="sha256:" + "a" * 64, format="asar"),
        coverage=facts.coverage,
        limitations=facts.limitations,
    )
    return Collection(spec, facts, reference, cache)


def numbered(count: int, **fields: Any) -> list[Row]:
    """Rows `t0`, `t1`, ... with paths in threes."""
    return [
        {"id": f"t{at}", "path": f"lib/{at // 3}.js", "kind": "script", "body": {"at": at}} | fields
        for at in range(count)
    ]
