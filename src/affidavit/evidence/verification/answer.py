"""Checking an answer against the records that it cites.

An answer is a derivation with the operation `answer/1`. Its id covers all that it says; what is checked here is that
what it says of other records is true of them, so that a well-formed lie is found as well as a changed byte.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, cast

from affidavit.errors import AffidavitError, UsageError
from affidavit.evidence import values
from affidavit.evidence._paths import type_of
from affidavit.evidence.canonical import canonical
from affidavit.evidence.citations import (
    ANSWER,
    STRENGTH,
    Citation,
    cited_confidence,
    cited_coverage,
    mismatch,
    quality_warnings,
    read_citation,
)
from affidavit.evidence.record import Coverage, JsonValue, Record
from affidavit.evidence.verification.report import Problem

__all__ = ["Lookup", "check_answer", "check_envelope", "envelope_of"]

_STATUSES: Final = ("answered", "partial", "unsupported")
_PARAMETERS: Final = ["derivation", "evidence", "implicit", "missing", "reason", "status"]
_ENVELOPE: Final = frozenset({*_PARAMETERS, "value", "coverage", "quality_warnings", "script", "evidence_id"})
_WHOLE: Final = re.compile(r"ev1_[0-9a-f]{64}")
_CONFIDENCE: Final[Mapping[str, int]] = {"inferred": 0, "derived": 1, "observed": 2}


class Lookup(Protocol):
    """Where cited records come from: a bundle, or a store."""

    def get(self, evidence_id: str) -> Record:
        """The record of a whole id, recomputed.

        Raises:
            AffidavitError: it is not there, or does not hold.
        """
        ...

    def result(self, record: Record) -> JsonValue:
        """The encoded result of a record.

        Raises:
            AffidavitError: it has none, or its blob is not there or does not hold.
        """
        ...


def check_answer(evidence_id: str, record: Record, lookup: Lookup, place: str = "$") -> list[Problem]:
    """What an answer says of the records that it cites and is not true of them.

    Checked are: each cited record is there; each cited place, value, count and quotation stands in it; the parents are
    the cited records; coverage and confidence are not stronger than theirs, and its authority is that of an inference.
    """
    return _AnswerCheck(evidence_id, record, lookup, place).run()


def check_envelope(envelope: JsonValue, lookup: Lookup, place: str = "$") -> list[Problem]:
    """What does not hold of an answer as `affidavit run --json` shows it: every field of it is compared.

    The envelope is what its record says, and the record is checked like `check_answer`.
    """
    fields = cast("dict[str, JsonValue]", envelope) if type_of(envelope) is dict else {}
    wrong = sorted(_ENVELOPE - set(fields)) + sorted(set(fields) - _ENVELOPE)
    if wrong:
        known = "is missing" if wrong[0] in _ENVELOPE else "is not known"
        return [
            Problem(
                place=place, code="answer-invalid", message=f"not an answer: the field {wrong[0]!a} {known}"
            )
        ]
    evidence_id: Any = fields["evidence_id"]
    if not isinstance(evidence_id, str) or not _WHOLE.fullmatch(evidence_id):
        message = "this answer has no record: its run did not succeed, or the answer was edited"
        return [Problem(place=f"{place}.evidence_id", code="answer-invalid", message=message)]
    try:
        record = lookup.get(evidence_id)
        said = envelope_of(evidence_id, record, lookup)
    except AffidavitError as error:
        return [Problem(place=f"{place}.evidence_id", code=error.code, message=error.message)]
    problems = [
        Problem(
            place=f"{place}.{name}", code="answer-invalid", message=f"{name} is not what {evidence_id} says"
        )
        for name in sorted(_ENVELOPE)
        if not _equal(fields[name], said[name])
    ]
    return problems + check_answer(evidence_id, record, lookup, place)


def envelope_of(evidence_id: str, record: Record, lookup: Lookup) -> dict[str, JsonValue]:
    """An answer as doors show it, from its record and those that it cites.

    Raises:
        UsageError: `answer-invalid`: the record is not an answer.
        AffidavitError: as `lookup` raises, for its own value.
    """
    parameters = _parameters(evidence_id, record)
    coverage = record.coverage
    if coverage is None:
        raise _not_an_answer(evidence_id)
    value = lookup.result(record)
    cited: list[Record] = []
    for parent in record.parents:
        try:
            cited.append(lookup.get(parent))
        except AffidavitError:
            continue  # told by the check of the citations
    warnings = quality_warnings(parameters["status"], value, parameters["reason"], coverage, cited)
    shown = {
        **parameters,
        "value": value,
        "coverage": {"state": coverage.state, "cited": coverage.examined, "incomplete": coverage.unknown},
        "quality_warnings": list(warnings),
        "script": record.script,
        "evidence_id": evidence_id,
    }
    return values.plain(shown)


class _AnswerCheck:
    """One check of one answer."""

    def __init__(self, evidence_id: str, record: Record, lookup: Lookup, place: str) -> None:
        self._id = evidence_id
        self._record = record
        self._lookup = lookup
        self._place = place
        self._problems: list[Problem] = []
        self._records: dict[str, Record] = {}
        self._results: dict[str, JsonValue] = {}

    def run(self) -> list[Problem]:
        try:
            parameters = _parameters(self._id, self._record)
        except UsageError as error:
            self._add("", error)
            return self._problems
        for index, item in enumerate(parameters["evidence"]):
            self._citation(f".evidence[{index}]", item)
        complete = not self._problems
        if set(self._records) != set(self._record.parents) and complete:
            self._say(".parents", "the records that it rests on are not those that it cites")
        if complete:
            self._strength()
            self._try(".value", lambda: self._lookup.result(self._record))
        return self._problems

    def _citation(self, place: str, item: JsonValue) -> None:
        def look() -> None:
            citation = read_citation(item)
            self._look_up(citation)
            problem = mismatch(citation, self._results[citation.evidence_id]) if citation.needs_result else ""
            if problem:
                self._say(place, problem)

        self._try(place, look)

    def _look_up(self, citation: Citation) -> None:
        name = citation.evidence_id
        if name not in self._records:
            self._records[name] = self._lookup.get(name)
        if citation.needs_result and name not in self._results:
            self._results[name] = self._lookup.result(self._records[name])

    def _strength(self) -> None:
        cited = list(self._records.values())
        widest = cited_coverage(cited)
        said = self._record.coverage
        if said is None:
            self._say(".coverage", "it says nothing of its coverage")
        elif STRENGTH[said.state] > STRENGTH[widest.state]:
            self._say(".coverage", f"{said.state} is wider than the cited records, which are {widest.state}")
        elif _sizes(said) != _sizes(widest):
            self._say(".coverage", f"it cites {widest.examined} records, {widest.unknown} of them incomplete")
        if _CONFIDENCE[self._record.confidence] > _CONFIDENCE[cited_confidence(cited)]:
            self._say(".confidence", f"{self._record.confidence} is stronger than what it cites")
        # Whatever it cites, it was not read from an artifact: it was concluded.
        if self._record.authority != "inference":
            self._say(".authority", f"{self._record.authority} is stronger than that of an answer: inference")
        if self._record.subject is not None:
            self._say(".subject", "an answer is about what it cites, and of no artifact itself")

    def _try(self, place: str, work: Callable[[], object]) -> None:
        try:
            work()
        except AffidavitError as error:
            self._add(place, error)

    def _add(self, place: str, error: AffidavitError) -> None:
        self._problems.append(
            Problem(
                place=f"{self._place}{place}", code=error.code, message=f"answer {self._id}: {error.message}"
            )
        )

    def _say(self, place: str, message: str) -> None:
        self._add(place, UsageError("answer-invalid", message))


def _parameters(evidence_id: str, record: Record) -> dict[str, Any]:
    """The parameters of an answer, each of its declared type."""
    found = record.parameters
    if record.kind != "derivation" or record.operation != ANSWER or type_of(found) is not dict:
        raise _not_an_answer(evidence_id)
    fields = cast("dict[str, Any]", found)
    texts = [fields.get("derivation"), fields.get("reason")]
    missing = fields.get("missing")
    sound = (
        sorted(fields) == _PARAMETERS
        and fields["status"] in _STATUSES
        and type_of(fields["evidence"]) is list
        and type_of(fields["implicit"]) is bool
        and all(map(_is_text, texts))
        and isinstance(missing, list)
        and all(map(_is_text, cast("list[Any]", missing)))
    )
    if not sound:
        raise _not_an_answer(evidence_id)
    return fields


def _is_text(value: JsonValue) -> bool:
    return type_of(value) is str or (type_of(value) is dict and set(value) == {"$text"})


def _not_an_answer(evidence_id: str) -> UsageError:
    return UsageError(
        "answer-invalid", f"{evidence_id} is not an answer", hint="name a record of the operation answer/1"
    )


def _sizes(coverage: Coverage) -> tuple[object, ...]:
    return (
        coverage.selection,
        coverage.examined,
        coverage.unknown,
        coverage.omitted,
        dict(coverage.bounds),
    )


def _equal(given: JsonValue, said: JsonValue) -> bool:
    try:
        return canonical(values.plain(given)) == canonical(said)
    except AffidavitError:
        return False
