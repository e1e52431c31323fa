"""Which kind of file it is, and checking it as that."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import BinaryIO, Final, Literal, TypeAlias, cast

from affidavit.errors import AffidavitError, NotFoundError, UsageError, VerificationError
from affidavit.evidence.bundles.document import KIND, Bounds
from affidavit.evidence.canonical import parse
from affidavit.evidence.record import JsonValue, Record
from affidavit.evidence.verification.answer import Lookup, check_envelope
from affidavit.evidence.verification.bundle import check_bundle
from affidavit.evidence.verification.report import Problem, Report, refused

__all__ = ["FileKind", "Lookups", "check_answer_file", "check_file", "kind_of"]

FileKind: TypeAlias = Literal["bundle", "journal", "answer"]

_JOURNAL: Final = re.compile(rb'(?:\xef\xbb\xbf)?\{"n":[0-9]{1,16},"prev":"')
_WHOLE: Final = re.compile(rb'"whole":"sha256:[0-9a-f]{64}')
_BUNDLE: Final = b'{"affidavit":"'
_END: Final = 100  # bytes at the end that tell a bundle whose beginning is damaged


def kind_of(file: BinaryIO, name: str) -> FileKind:
    """What a file is, by its first and last bytes; its name decides only when both are damaged."""
    start = file.read(64)
    size = file.seek(0, 2)
    file.seek(max(0, size - _END))
    end = file.read(_END)
    file.seek(0)
    if start.startswith(_BUNDLE) or (b"whole" in end and _WHOLE.search(end)):
        return "bundle"
    if _JOURNAL.match(start) or name.endswith(".jsonl"):
        return "journal"
    return "answer"


def check_file(file: BinaryIO, kind: FileKind, lookup: Lookup | None, bounds: Bounds | None = None) -> Report:
    """Check a bundle, or an answer against the records that `lookup` has.

    Another version of a format is a problem like others: what cannot be read does not hold.

    Raises:
        UsageError: `usage`: an answer alone, and no records to check it against.
    """
    if kind == "bundle":
        try:
            return check_bundle(file, bounds)
        except VerificationError as error:
            return refused("bundle", error)
    return check_answer_file(file.read(), lookup)


def check_answer_file(data: bytes, lookup: Lookup | None) -> Report:
    """Check an answer as `affidavit run --json` prints it, or the `answer` in such a document.

    Raises:
        UsageError: `usage`: there are no records to check it against.
    """
    try:
        json = parse(data)
    except UsageError as error:
        return Report(kind="answer", problems=(Problem(place="$", code=error.code, message=error.message),))
    fields = cast("dict[str, JsonValue]", json) if isinstance(json, dict) else {}
    place = "$.answer" if "answer" in fields else "$"
    answer: JsonValue = fields.get("answer", fields)
    envelope = cast("dict[str, JsonValue]", answer) if isinstance(answer, dict) else {}
    if not ("evidence" in envelope or "status" in envelope):
        message = f"neither a {KIND}, a journal nor an answer"
        return Report(kind="answer", problems=(Problem(place=place, code="format-unknown", message=message),))
    if lookup is None:
        raise UsageError(
            "usage",
            "the file holds an answer and not the records that it cites",
            hint="give a bundle that has them with --evidence, or export both: affidavit bundle export --answer ID",
        )
    notes = ("only the answer was checked; the rest of the document is of the run",) if place != "$" else ()
    cited = envelope.get("evidence")
    return Report(
        kind="answer",
        problems=tuple(check_envelope(envelope, lookup, place)),
        counts={
            "answers": 1,
            "citations": len(cast("list[JsonValue]", cited)) if isinstance(cited, list) else 0,
        },
        notes=notes,
    )


class Lookups:
    """Several places to look for a record, in order."""

    def __init__(self, lookups: Sequence[Lookup]) -> None:
        self._lookups = tuple(lookups)

    def get(self, evidence_id: str) -> Record:
        """The record of a whole id, from the first place that has it."""
        for lookup in self._lookups:
            try:
                return lookup.get(evidence_id)
            except NotFoundError:
                continue
        raise NotFoundError("evidence-not-found", f"{evidence_id} is not among the records that were given")

    def result(self, record: Record) -> JsonValue:
        """The encoded result of a record, from the first place that has it."""
        problem: AffidavitError | None = None
        for lookup in self._lookups:
            try:
                return lookup.result(record)
            except AffidavitError as error:
                problem = error
        assert problem is not None
        raise problem
