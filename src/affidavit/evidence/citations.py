"""What an answer cites: a record, a place in its result, and what stands there.

A citation is a text or an object:

| citation                                          | holds when                                                       |
|---------------------------------------------------|------------------------------------------------------------------|
| `"ev1_..."`                                       | the record is there                                              |
| `"ev1_...#/rows/3"`                               | its result has that place, an RFC 6901 pointer                   |
| `{"evidence": ..., "equals": value}`              | the value at the place is this one: equal canonical bytes        |
| `{"evidence": ..., "count": n}`                   | the list or object at the place has `n` items                    |
| `{"evidence": ..., "count": n, "where": {...}}`   | `n` items of the list are objects with these fields              |
| `{"evidence": ..., "quote": "text"}`              | a text at the place, or below it, contains the quotation         |

The place is in the *encoded* result, as the record holds it (`values`); without a pointer it is the whole result. An
object may state several things, all of which must hold. Quotations are compared character by character; keys are not
quoted from. `where` compares each named field by canonical bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast

from affidavit.errors import UsageError
from affidavit.evidence._paths import type_of
from affidavit.evidence.canonical import canonical
from affidavit.evidence.pointer import NowhereError, is_pointer, resolve
from affidavit.evidence.record import Confidence, Coverage, Failure, JsonValue, Record
from affidavit.evidence.values import decode

__all__ = [
    "ANSWER", "STRENGTH", "Citation", "State", "cited_confidence", "cited_coverage", "mismatch", "quality_warnings",
    "read_citation",
]  # fmt: skip

State: TypeAlias = Literal["complete", "partial", "unknown"]

ANSWER: Final = "answer/1"
"""The operation of the derivations that keep answers."""

STRENGTH: Final[Mapping[str, int]] = {"unknown": 0, "partial": 1, "complete": 2}
"""Coverage states from the weakest; an answer's is never stronger than what it cites."""

_CITATION: Final = re.compile(r"(ev1_[0-9a-f]{64})(?:#((?:/.*)?))?", re.DOTALL)
_STATED: Final = ("equals", "count", "where", "quote")
_PLACEHOLDERS: Final = ("", "n/a", "none", "null", "unknown", "todo", "tbd")
_SHOWN: Final = 80  # characters of a value that a message shows


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """One citation of an answer.

    Attributes:
        evidence_id: the record.
        pointer: RFC 6901 pointer into the encoded result; empty for all of it.
        stated: what the answer says stands there: `equals`, `count`, `where`, `quote`; encoded JSON.
        json: the citation as it was given.
    """

    evidence_id: str
    pointer: str
    stated: Mapping[str, JsonValue]
    json: JsonValue

    @property
    def needs_result(self) -> bool:
        """Whether the record alone does not settle it."""
        return bool(self.pointer or self.stated)

    @property
    def place(self) -> str:
        """The record and the place in it, as citations are written; a long pointer is cut."""
        pointer = self.pointer if len(self.pointer) <= _SHOWN else f"{self.pointer[:_SHOWN]}..."
        return f"{self.evidence_id}#{pointer}" if pointer else self.evidence_id


def read_citation(json: JsonValue) -> Citation:
    """A citation from its JSON.

    Raises:
        UsageError: `answer-invalid`, saying what is malformed.
    """
    fields: dict[str, JsonValue] = {"evidence": json}
    if type_of(json) is dict:
        fields = cast("dict[str, JsonValue]", json)
        for name in fields:
            if name != "evidence" and name not in _STATED:
                known = f"evidence, {', '.join(_STATED)}"
                raise _invalid(f"a citation has no field {name!a}", f"its fields are {known}")
    where = fields.get("evidence")
    match = _CITATION.fullmatch(where) if isinstance(where, str) else None
    if match is None:
        raise _invalid(
            f"{_shown(where)} is not an evidence id", "cite page.evidence_id or an id of df.calls()"
        )
    pointer = match[2] or ""
    if not is_pointer(pointer):
        raise _invalid(f"{_shown(pointer)} is not a JSON pointer", "write ~0 for ~ and ~1 for / in a key")
    stated = {name: fields[name] for name in _STATED if name in fields}
    _check_stated(stated, is_object=type_of(json) is dict)
    return Citation(evidence_id=match[1], pointer=pointer, stated=stated, json=json)


def mismatch(citation: Citation, result: JsonValue) -> str:
    """What of a citation does not stand in the record's encoded result; empty text when all of it does."""
    try:
        found = resolve(citation.pointer, result)
    except NowhereError as error:
        return f"{citation.place} points at nothing in the record: {_nothing(error)}"
    stated = citation.stated
    if "equals" in stated and canonical(stated["equals"]) != canonical(found):
        return f"{citation.place} is {_shown(found)}, not {_shown(stated['equals'])}"
    if "count" in stated:
        problem = _miscounted(found, stated["count"], stated.get("where"))
        if problem:
            return f"{citation.place} {problem}"
    if "quote" in stated:
        quote = decode(stated["quote"])
        if not any(quote in text for text in _texts(found)):
            return f"{_shown(quote)} does not stand in {citation.place}"
    return ""


def cited_coverage(records: Sequence[Record]) -> Coverage:
    """The widest coverage that an answer may claim which cites these records, each given once.

    `complete` only when every record that says what was examined says so; `unknown` when none says anything.
    """
    stated = [record.coverage for record in records if record.coverage is not None]
    incomplete = sum(1 for coverage in stated if coverage.state != "complete")
    state: State = "unknown" if not stated else "partial" if incomplete else "complete"
    return Coverage(state=state, selection="cited records", examined=len(records), unknown=incomplete)


def cited_confidence(records: Sequence[Record]) -> Confidence:
    """The strongest confidence that a derivation from these records may have."""
    return "inferred" if any(record.confidence == "inferred" for record in records) else "derived"


def quality_warnings(
    status: str, value: JsonValue, reason: str, coverage: Coverage, records: Sequence[Record]
) -> list[str]:
    """What a reviewer of an answer should look at, from its encoded value and the records that it cites."""
    found: list[str] = []
    if status == "answered":
        if value is None or (isinstance(value, str) and value.strip().lower() in _PLACEHOLDERS):
            found.append("answered without a value")
        elif value in ({}, []):
            found.append("the value is empty: say so in derivation if that is the answer")
        if not records:
            found.append("no evidence is cited")
        if coverage.state == "partial":
            found.append("a cited source was examined only in part: counts are lower bounds")
    elif not reason:
        found.append(f"{status} without a reason")
    if any(isinstance(record.outcome, Failure) for record in records):
        found.append("a failed call is cited")
    return found


def _check_stated(stated: Mapping[str, JsonValue], *, is_object: bool) -> None:
    if is_object and not stated:
        raise _invalid("a citation object states nothing", "add equals, count or quote, or cite the id alone")
    if "count" in stated and (type_of(stated["count"]) is not int or stated["count"] < 0):
        raise _invalid(f"count {_shown(stated['count'])} is not a count", "give a whole number from 0")
    if "where" in stated and ("count" not in stated or type_of(stated["where"]) is not dict):
        raise _invalid(
            "where belongs to count and names fields", 'for example {"count": 2, "where": {"a": 1}}'
        )
    if "quote" in stated:
        try:
            quote = decode(stated["quote"])
        except UsageError:
            quote = None
        if not isinstance(quote, str) or not quote:
            raise _invalid(f"quote {_shown(stated['quote'])} is no text", "quote some characters")


def _miscounted(found: JsonValue, count: int, where: JsonValue) -> str:
    if type_of(found) not in (list, dict):
        return f"is {_shown(found)}, which has no items to count"
    if where is None:
        return f"has {len(found)} items, not {count}" if len(found) != count else ""
    if type_of(found) is not list:
        return "is an object; `where` counts the items of a list"
    wanted = {key: canonical(value) for key, value in cast("dict[str, JsonValue]", where).items()}
    matching = sum(1 for item in found if _has_fields(item, wanted))
    return f"has {matching} items with {_shown(where)}, not {count}" if matching != count else ""


def _has_fields(item: JsonValue, wanted: Mapping[str, bytes]) -> bool:
    return type_of(item) is dict and all(
        key in item and canonical(item[key]) == value for key, value in wanted.items()
    )


def _texts(json: JsonValue) -> Iterator[str]:
    """Every text in a JSON tree but its keys; `$text` tags are read as the text that they hold."""
    stack: list[JsonValue] = [json]
    while stack:
        item = stack.pop()
        kind = type_of(item)
        if kind is str:
            yield item
        elif kind is list:
            stack += reversed(item)
        elif kind is dict:
            text = _untagged(item)
            if text is not None:
                yield text
            elif not _is_tag(item):
                stack += reversed(list(item.values()))


def _untagged(item: dict[str, Any]) -> str | None:
    if set(item) != {"$text"}:
        return None
    try:
        return decode(item)
    except UsageError:
        return None


def _is_tag(item: dict[str, Any]) -> bool:
    """Whether the object stands for one value: bytes in base64 are no text to quote from."""
    return set(item) == {"$bytes"}


def _nothing(error: NowhereError) -> str:
    above = _shown(error.above) if error.above else "the result"
    items = f"{len(error.found)} items and " if type_of(error.found) is list else ""
    return f"{above} has {items}no {_shown(error.token)}"


def _shown(value: JsonValue) -> str:
    text = ascii(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _invalid(problem: str, hint: str) -> UsageError:
    return UsageError("answer-invalid", problem, hint=hint, details={"field": "evidence"})
