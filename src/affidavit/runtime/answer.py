"""The answer of a run: what is claimed, and the records that the claim rests on.

An answer is a derivation. It cites records; it never looks like an observation of a source (design section 4), and the
coverage that it states is computed from what it cites: a script may narrow it and can never widen it (rule 23).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from affidavit.errors import AffidavitError, UsageError
from affidavit.evidence.record import Confidence, Coverage, Failure, JsonValue, Producer, Record, Success
from affidavit.runtime.ledger import CallEntry
from affidavit.store import Store

__all__ = ["Answer", "AnswerStatus", "read_answer"]

AnswerStatus: TypeAlias = Literal["answered", "partial", "unsupported"]
State: TypeAlias = Literal["complete", "partial", "unknown"]

_STATUSES: tuple[AnswerStatus, ...] = ("answered", "partial", "unsupported")
_FIELDS = ("status", "value", "evidence", "derivation", "coverage", "missing", "reason")
_STRENGTH: Mapping[str, int] = {"unknown": 0, "partial": 1, "complete": 2}
_CITATION = re.compile(r"(ev1_[0-9a-f]{64})(?:#(/.*)?)?\Z", re.DOTALL)
_PLACEHOLDERS = ("", "n/a", "none", "null", "unknown", "todo", "tbd")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a script said with `df.answer`.

    Attributes:
        status: whether the question is answered, in part, or not by these means.
        value: the answer, encoded JSON.
        evidence: citations: `ev1_...`, or with a JSON pointer into the record's result, `ev1_...#/rows/3`.
        implicit: the script named no evidence, so every call of the run is cited.
        derivation: how the value follows from the evidence, in the script's words.
        coverage: `complete` only when every cited record's source was examined completely; `unknown` where none says.
        missing: what would be needed for a complete answer.
        reason: why it is partial or unsupported.
        quality_warnings: what a reviewer should look at.
        script: digest of the script.
        confidence: never stronger than the weakest cited record.
    """

    status: AnswerStatus
    value: JsonValue
    evidence: tuple[str, ...]
    implicit: bool
    derivation: str
    coverage: Coverage
    missing: tuple[str, ...]
    reason: str
    quality_warnings: tuple[str, ...]
    script: str
    confidence: Confidence

    def as_json(self, evidence_id: str | None) -> dict[str, JsonValue]:
        """The envelope as every door shows it. `evidence_id` is that of its own record."""
        return {
            "status": self.status,
            "value": self.value,
            "evidence": list(self.evidence),
            "implicit": self.implicit,
            "derivation": self.derivation,
            "coverage": {
                "state": self.coverage.state,
                "cited": self.coverage.examined,
                "incomplete": self.coverage.unknown,
            },
            "missing": list(self.missing),
            "reason": self.reason,
            "quality_warnings": list(self.quality_warnings),
            "script": self.script,
            "evidence_id": evidence_id,
        }

    def record(self) -> Record:
        """The derivation that keeps the answer."""
        return Record(
            kind="derivation",
            operation="answer/1",
            parameters={
                "status": self.status,
                "evidence": list(self.evidence),
                "implicit": self.implicit,
                "derivation": self.derivation,
                "missing": list(self.missing),
                "reason": self.reason,
            },
            outcome=Success(result=self.value),
            producer=Producer(name="script", version="1"),
            authority="inference",
            confidence=self.confidence,
            parents=tuple(sorted({citation.partition("#")[0] for citation in self.evidence})),
            coverage=self.coverage,
            script=self.script,
        )


def read_answer(
    arguments: Mapping[str, JsonValue], *, entries: Sequence[CallEntry], store: Store, script: str
) -> Answer:
    """Validate what a script passed to `df.answer`; arguments are encoded JSON.

    Raises:
        UsageError: `answer-invalid`, naming the field.
    """
    for name in arguments:
        if name not in _FIELDS:
            raise _invalid(name, "no such field", f"one of {', '.join(_FIELDS)}")
    status = arguments.get("status")
    if status not in _STATUSES:
        raise _invalid(
            "status", f"{status!r} is none of {', '.join(_STATUSES)}", "say how far the question is answered"
        )
    given = arguments.get("evidence")
    implicit = given is None
    citations = [entry.evidence_id for entry in entries] if implicit else _texts("evidence", given)
    records = [_cited(citation, store) for citation in dict.fromkeys(citations)]
    coverage = _narrowed(_coverage(records), arguments.get("coverage"))
    derivation = _text("derivation", arguments.get("derivation"))
    reason = _text("reason", arguments.get("reason"))
    value = arguments.get("value")
    return Answer(
        status=status,
        value=value,
        evidence=tuple(dict.fromkeys(citations)),
        implicit=implicit,
        derivation=derivation,
        coverage=coverage,
        missing=tuple(_texts("missing", arguments.get("missing") or [])),
        reason=reason,
        quality_warnings=tuple(_warnings(status, value, reason, coverage, records)),
        script=script,
        confidence=_weakest(records),
    )


def _invalid(field: str, problem: str, hint: str) -> UsageError:
    return UsageError("answer-invalid", f"df.answer {field}: {problem}", hint=hint, details={"field": field})


def _text(field: str, value: JsonValue) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _invalid(field, f"text expected, not {type(value).__name__}", "pass a string")
    return value


def _texts(field: str, value: JsonValue) -> list[str]:
    if not isinstance(value, list):
        raise _invalid(field, "a list of strings expected", f"{field}=[...]")
    return [_text(field, item) for item in cast("list[JsonValue]", value)]


def _cited(citation: str, store: Store) -> Record:
    match = _CITATION.match(citation)
    if match is None:
        raise _invalid(
            "evidence", f"{citation!r} is not an evidence id", "cite page.evidence_id or an id of df.calls()"
        )
    try:
        record = store.evidence.get(match[1])
    except AffidavitError as error:
        hint = "cite only what was recorded: page.evidence_id, or an id of df.calls()"
        raise _invalid("evidence", f"{match[1]} was never recorded here ({error.code})", hint) from error
    if match[2] and not _resolves(match[2], store.evidence.result(record)):
        raise _invalid(
            "evidence", f"{citation} points at nothing in the record", "the place is a JSON pointer"
        )
    return record


def _resolves(pointer: str, value: JsonValue) -> bool:
    """Whether an RFC 6901 pointer leads somewhere."""
    for raw in pointer.split("/")[1:]:
        token = raw.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list):
            items = cast("list[JsonValue]", value)
            if not (token.isascii() and token.isdecimal() and int(token) < len(items)):
                return False
            value = items[int(token)]
        elif isinstance(value, dict) and token in value:
            value = cast("dict[str, JsonValue]", value)[token]
        else:
            return False
    return True


def _coverage(records: Sequence[Record]) -> Coverage:
    stated = [record.coverage for record in records if record.coverage is not None]
    incomplete = sum(1 for coverage in stated if coverage.state != "complete")
    state: State = "unknown" if not stated else "partial" if incomplete else "complete"
    return Coverage(state=state, selection="cited records", examined=len(records), unknown=incomplete)


def _narrowed(computed: Coverage, said: JsonValue) -> Coverage:
    state: Any = cast("dict[str, JsonValue]", said).get("state") if isinstance(said, dict) else said
    if state is None:
        return computed
    if state not in _STRENGTH:
        raise _invalid(
            "coverage", f"{state!r} is none of {', '.join(_STRENGTH)}", "or leave it out: it is computed"
        )
    if _STRENGTH[state] > _STRENGTH[computed.state]:
        raise _invalid(
            "coverage",
            f"{state} is wider than the cited records, which are {computed.state}",
            "leave it out, or cite records that cover more",
        )
    return Coverage(
        state=cast(State, state),
        selection=computed.selection,
        examined=computed.examined,
        unknown=computed.unknown,
    )


def _weakest(records: Sequence[Record]) -> Confidence:
    return "inferred" if any(record.confidence == "inferred" for record in records) else "derived"


def _warnings(
    status: AnswerStatus, value: JsonValue, reason: str, coverage: Coverage, records: Sequence[Record]
) -> list[str]:
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
