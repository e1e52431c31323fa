"""The answer of a run: what is claimed, and the records that the claim rests on.

An answer is a derivation. It cites records; it never looks like an observation of a source (design section 4), and the
coverage that it states is computed from what it cites: a script may narrow it and can never widen it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from affidavit.errors import AffidavitError, UsageError
from affidavit.evidence.citations import (
    ANSWER,
    STRENGTH,
    Citation,
    State,
    cited_confidence,
    cited_coverage,
    mismatch,
    quality_warnings,
    read_citation,
)
from affidavit.evidence.record import Confidence, Coverage, JsonValue, Producer, Record, Success
from affidavit.runtime.ledger import CallEntry
from affidavit.store import Store

__all__ = ["Answer", "AnswerStatus", "read_answer"]

AnswerStatus: TypeAlias = Literal["answered", "partial", "unsupported"]

_STATUSES: tuple[AnswerStatus, ...] = ("answered", "partial", "unsupported")
_FIELDS = ("status", "value", "evidence", "derivation", "coverage", "missing", "reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a script said with `df.answer`.

    Attributes:
        status: whether the question is answered, in part, or not by these means.
        value: the answer, encoded JSON.
        evidence: what it cites, and what it says stands there (`evidence.citations`).
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
    evidence: tuple[Citation, ...]
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
            "evidence": [citation.json for citation in self.evidence],
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
            operation=ANSWER,
            parameters={
                "status": self.status,
                "evidence": [citation.json for citation in self.evidence],
                "implicit": self.implicit,
                "derivation": self.derivation,
                "missing": list(self.missing),
                "reason": self.reason,
            },
            outcome=Success(result=self.value),
            producer=Producer(name="script", version="1"),
            authority="inference",
            confidence=self.confidence,
            parents=tuple(sorted({citation.evidence_id for citation in self.evidence})),
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
    citations = _citations([entry.evidence_id for entry in entries] if implicit else given)
    records = _records(citations, store)
    coverage = _narrowed(cited_coverage(records), arguments.get("coverage"))
    reason = _text("reason", arguments.get("reason"))
    value = arguments.get("value")
    return Answer(
        status=status,
        value=value,
        evidence=tuple(citations),
        implicit=implicit,
        derivation=_text("derivation", arguments.get("derivation")),
        coverage=coverage,
        missing=tuple(_texts("missing", arguments.get("missing") or [])),
        reason=reason,
        quality_warnings=tuple(quality_warnings(status, value, reason, coverage, records)),
        script=script,
        confidence=cited_confidence(records),
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


def _citations(given: JsonValue) -> list[Citation]:
    """What is cited, each thing once."""
    if not isinstance(given, list):
        raise _invalid("evidence", "a list of citations expected", "evidence=[page.evidence_id]")
    found: dict[str, Citation] = {}
    for item in cast("list[JsonValue]", given):
        try:
            citation = read_citation(item)
        except UsageError as error:
            raise _invalid("evidence", error.message, error.hint) from error
        found.setdefault(repr(citation.json), citation)
    return list(found.values())


def _records(citations: Iterable[Citation], store: Store) -> list[Record]:
    """The cited records, each once; everything that the citations say stands in them."""
    records: dict[str, Record] = {}
    results: dict[str, JsonValue] = {}
    for citation in citations:
        name = citation.evidence_id
        try:
            if name not in records:
                records[name] = store.evidence.get(name)
            if citation.needs_result and name not in results:
                results[name] = store.evidence.result(records[name])
        except AffidavitError as error:
            raise _not_there(citation, error) from error
        problem = mismatch(citation, results[name]) if citation.needs_result else ""
        if problem:
            raise _invalid("evidence", problem, "cite what the record says; the place is a JSON pointer")
    return list(records.values())


def _not_there(citation: Citation, error: AffidavitError) -> UsageError:
    if error.code == "evidence-not-found":
        hint = "cite only what was recorded: page.evidence_id, or an id of df.calls()"
        return _invalid("evidence", f"{citation.evidence_id} was never recorded here ({error.code})", hint)
    return _invalid("evidence", f"{citation.place}: {error.message} ({error.code})", error.hint)


def _narrowed(computed: Coverage, said: JsonValue) -> Coverage:
    state: Any = cast("dict[str, JsonValue]", said).get("state") if isinstance(said, dict) else said
    if state is None:
        return computed
    if not isinstance(state, str) or state not in STRENGTH:
        raise _invalid(
            "coverage", f"{state!r} is none of {', '.join(STRENGTH)}", "or leave it out: it is computed"
        )
    if STRENGTH[state] > STRENGTH[computed.state]:
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
