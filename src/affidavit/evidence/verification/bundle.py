"""Checking a bundle: every byte of it, piece by piece, and everything that its pieces say of each other."""

from __future__ import annotations

import re
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

import orjson

from affidavit.errors import AffidavitError, NotFoundError, UsageError, VerificationError
from affidavit.evidence import unknowns
from affidavit.evidence.bundles.document import KIND, MAX_ELEMENT_DEPTH, VERSION, Bounds, notes_digest
from affidavit.evidence.bundles.pieces import BrokenBundleError, Piece, Pieces, version_of
from affidavit.evidence.canonical import CanonicalJson, canonical, digest, parse
from affidavit.evidence.citations import ANSWER
from affidavit.evidence.identity import Sealed, body_id, open_foreign
from affidavit.evidence.record import BlobRef, JsonValue, Record, Success
from affidavit.evidence.unknown_checks import problems as unknown_problems
from affidavit.evidence.unknowns import UnknownRevision
from affidavit.evidence.values import check_encoded
from affidavit.evidence.verification.answer import check_answer
from affidavit.evidence.verification.report import Problem, Report

__all__ = ["BundleCheck", "BundleLookup", "Contents", "check_bundle", "check_version", "damaged", "misspelt"]

_ENTRIES: Final = (["body", "id"], ["body", "id", "notes", "notes_digest"])
_ID: Final = re.compile(r"(?:ev1|unk1)_[0-9a-f]{64}")
_MANY_DIGITS: Final = re.compile(rb"[0-9]{16}")
_MOST_PROBLEMS: Final = 1000


@dataclass(slots=True)
class Contents:
    """What stands where in a bundle that was read.

    Attributes:
        answers: ids of the records that are answers.
        blobs: where the base64 of each blob stands: offset and length.
        missing: ids that are referred to and not there.
        records: offset of each record by its id.
        revisions: how many revisions of unknowns there are.
        operations: how many records of each operation; `subjects` of each subject likewise.
        whole: the digest that names the content.
    """

    answers: list[str]
    blobs: dict[str, tuple[int, int]]
    missing: list[str]
    records: dict[str, int]
    revisions: int
    operations: dict[str, int]
    subjects: dict[str, int]
    whole: str = ""


class BundleCheck:
    """One pass over a bundle. Each piece that holds is handed on as soon as it was read.

    Args:
        bounds: how large the bundle may be.
        on_record: told of each record whose id was recomputed.
        on_blob: told of each blob whose digest holds.
        on_unknown: told of each revision.

    Attributes:
        bounds: how large the bundle may be.
        contents: what stands where.
        problems: what does not hold; complete after `run`.
    """

    def __init__(
        self,
        bounds: Bounds | None = None,
        *,
        on_record: Callable[[Sealed, Record], None] | None = None,
        on_blob: Callable[[str, bytes], None] | None = None,
        on_unknown: Callable[[UnknownRevision], None] | None = None,
    ) -> None:
        self.contents = Contents([], {}, [], {}, 0, {}, {})
        self.problems: list[Problem] = []
        self.bounds = bounds or Bounds()
        self._on_record = on_record
        self._on_blob = on_blob
        self._on_unknown = on_unknown
        self._last: dict[str, bytes] = {}
        self._found_answers: list[str] = []
        self._references: dict[str, str] = {}  # id -> place of the first that refers to it
        self._results: dict[str, tuple[int, str]] = {}  # address -> size, place
        self._scripts: set[str] = set()
        self._sizes: dict[str, int] = {}
        self._misspelt: dict[str, str] = {}  # why a blob cannot be a result, or empty
        self._computed = ""
        self._unknowns: set[str] = set()

    def run(self, file: BinaryIO) -> None:
        """Read the whole bundle.

        Raises:
            VerificationError: `format-unknown`: not a bundle, or of a version that this product does not know.
        """
        for _ in self.pieces(file):
            pass

    def pieces(self, file: BinaryIO) -> Iterator[Piece]:
        """The same piece by piece: each is given out after it was checked and handed on."""
        check_version(file)
        pieces = Pieces(file, self.bounds)
        readers: dict[str, Callable[[Piece], None]] = {
            "answers": self._answer, "blobs": self._blob, "missing": self._missing, "records": self._record,
            "unknowns": self._unknown, "whole": self._whole,
        }  # fmt: skip
        try:
            for piece in pieces:
                self._computed = pieces.computed
                try:
                    readers[piece.section](piece)
                except AffidavitError as error:
                    self._say(piece.place, error, piece.start)
                yield piece
        except BrokenBundleError as error:
            self._add(error.place, error.code, error.problem, error.offset)
            return
        last = [problem for problem in self.problems if problem.place == "$.whole"]
        self.problems = [problem for problem in self.problems if problem.place != "$.whole"]
        self._resolve()
        self.problems += last  # it follows from the others

    # ---- pieces ----

    def _answer(self, piece: Piece) -> None:
        self._in_order(piece, piece.data)
        self.contents.answers.append(_id(piece))

    def _missing(self, piece: Piece) -> None:
        self._in_order(piece, piece.data)
        self.contents.missing.append(_id(piece))

    def _blob(self, piece: Piece) -> None:
        address = piece.address
        self._in_order(piece, piece.key)
        data = _from_base64(piece.data[1:-1])
        if digest(data) != address:
            raise _damage(f"the blob has the digest {digest(data)}", "blob-damaged")
        self.contents.blobs[address] = (piece.offset, len(piece.data))
        self._sizes[address] = len(data)
        self._misspelt[address] = misspelt(data)
        if self._on_blob is not None:
            self._on_blob(address, data)

    def _record(self, piece: Piece) -> None:
        if piece.index >= self.bounds.records:
            raise _damage(f"more than {self.bounds.records} records", "value-too-large")
        sealed, record = read_entry(piece.data)
        self._in_order(piece, sealed.id.encode())
        self.contents.records[sealed.id] = piece.offset
        self._note(sealed, record, f"{piece.place} ({sealed.id})")
        if self._on_record is not None:
            self._on_record(sealed, record)

    def _note(self, sealed: Sealed, record: Record, place: str) -> None:
        operations, subjects = self.contents.operations, self.contents.subjects
        operations[record.operation] = operations.get(record.operation, 0) + 1
        if record.subject is not None:
            subjects[record.subject.digest] = subjects.get(record.subject.digest, 0) + 1
        if record.kind == "derivation" and record.operation == ANSWER:
            self._found_answers.append(sealed.id)
        for parent in record.parents:
            self._references.setdefault(parent, place)
        if record.kind == "derivation" and record.script is not None:
            self._scripts.add(record.script)
        if isinstance(record.outcome, Success) and isinstance(record.outcome.result, BlobRef):
            ref = record.outcome.result
            self._results.setdefault(ref.digest, (ref.size, place))

    def _unknown(self, piece: Piece) -> None:
        self._in_order(piece, piece.data)
        revision = unknowns.from_json(_parsed(piece.data))
        for name in (*revision.supports, *revision.contradicts, *(it.unknown for it in revision.relations)):
            self._references.setdefault(name, piece.place)
        self._unknowns.add(unknowns.unknown_id(revision))
        self.contents.revisions += 1
        if self._on_unknown is not None:
            self._on_unknown(revision)

    def _whole(self, piece: Piece) -> None:
        self.contents.whole = piece.text
        if self.contents.whole != self._computed:
            raise _damage(f"the document has the digest {self._computed}")

    def _in_order(self, piece: Piece, key: bytes) -> None:
        before = self._last.get(piece.section, b"")
        self._last[piece.section] = key
        if before >= key:
            problem = "stands here a second time" if before == key else "stands behind a greater one"
            raise _damage(f"{key[:80].decode('ascii', 'backslashreplace')} {problem}")

    # ---- what the pieces say of each other ----

    def _resolve(self) -> None:
        """References that nothing answers. Where a part is damaged already, what it should hold is not missed again."""
        if not any(problem.place.startswith("$.records") for problem in self.problems):
            self._resolve_ids()
            if not any(problem.place.startswith("$.blobs") for problem in self.problems):
                self._resolve_blobs()

    def _resolve_ids(self) -> None:
        present, missing = self.contents.records.keys() | self._unknowns, set(self.contents.missing)
        found, listed = set(self._found_answers), set(self.contents.answers)
        for index, evidence_id in enumerate(self.contents.answers):
            if evidence_id not in found:
                self._add(f"$.answers[{index}]", "bundle-damaged", f"{evidence_id} is not an answer in it")
        for evidence_id in sorted(found - listed):
            self._add("$.answers", "bundle-damaged", f"they leave out {evidence_id}")
        for index, evidence_id in enumerate(self.contents.missing):
            if evidence_id in present or evidence_id not in self._references:
                problem = "is here" if evidence_id in present else "is not referred to"
                self._add(f"$.missing[{index}]", "bundle-damaged", f"{evidence_id} {problem}")
        for evidence_id, place in self._references.items():
            if evidence_id not in present and evidence_id not in missing:
                message = f"it refers to {evidence_id}, which is neither here nor said to be missing"
                self._add(place, "evidence-not-found", message)

    def _resolve_blobs(self) -> None:
        for address, (size, place) in self._results.items():
            if address not in self._sizes:
                self._add(place, "blob-missing", f"its result {address} is not here")
            elif self._sizes[address] != size:
                message = f"its result {address} has {self._sizes[address]} bytes, not {size}"
                self._add(place, "blob-damaged", message)
            elif self._misspelt[address]:
                self._add(f"$.blobs[{address}]", "blob-damaged", f"no result: {self._misspelt[address]}")
        for address in self._sizes:
            if address not in self._results and address not in self._scripts:
                self._add(f"$.blobs[{address}]", "bundle-damaged", "no record refers to it")

    def _say(self, place: str, error: AffidavitError, offset: int) -> None:
        code = error.code if isinstance(error, VerificationError) else "bundle-damaged"
        self._add(place, code, error.message, offset)

    def _add(self, place: str, code: str, message: str, offset: int | None = None) -> None:
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(Problem(place=place, code=code, message=message, offset=offset))


class BundleLookup:
    """The records of a bundle that was checked, read from its file again when they are asked for."""

    def __init__(self, file: BinaryIO, contents: Contents) -> None:
        self._file = file
        self._contents = contents

    def has(self, evidence_id: str) -> bool:
        """Whether the record is in the bundle."""
        return evidence_id in self._contents.records

    def get(self, evidence_id: str) -> Record:
        """The record of a whole id."""
        return self._read(evidence_id)[1]

    def sealed(self, evidence_id: str) -> Sealed:
        """The record of a whole id as it is kept."""
        return self._read(evidence_id)[0]

    def result(self, record: Record) -> JsonValue:
        """The encoded result of a record."""
        if not isinstance(record.outcome, Success):
            raise NotFoundError(
                "item-not-found", f"this call of {record.operation} did not return, so it has no result"
            )
        ref = record.outcome.result
        return _parsed(self.blob(ref.digest)) if isinstance(ref, BlobRef) else ref

    def blob(self, address: str) -> bytes:
        """The bytes of an address."""
        if address not in self._contents.blobs:
            raise VerificationError("blob-missing", f"the blob {address} is not in the bundle")
        offset, length = self._contents.blobs[address]
        self._file.seek(offset)
        return _from_base64(self._file.read(length)[1:-1])

    def _read(self, evidence_id: str) -> tuple[Sealed, Record]:
        offset = self._contents.records.get(evidence_id)
        if offset is None:
            raise NotFoundError(
                "evidence-not-found",
                f"{evidence_id} is not in the bundle",
                hint="export the answer with its evidence",
            )
        self._file.seek(offset)
        return read_entry(Pieces(self._file, Bounds()).element())


def check_bundle(file: BinaryIO, bounds: Bounds | None = None) -> Report:
    """Check a bundle and every answer in it.

    Raises:
        VerificationError: `format-unknown`.
    """
    revisions: list[UnknownRevision] = []
    check = BundleCheck(bounds, on_unknown=revisions.append)
    check.run(file)
    contents = check.contents
    problems = list(check.problems)
    notes: list[str] = []
    if not problems:
        lookup = BundleLookup(file, contents)
        problems += _unknown_problems(revisions, lookup, contents)
        for evidence_id in contents.answers:
            record = lookup.get(evidence_id)
            problems += check_answer(evidence_id, record, lookup, f"$.answers ({evidence_id})")
            if record.script is not None and record.script not in contents.blobs:
                notes.append(f"the script {record.script} of answer {evidence_id} is not in the bundle")
    if contents.missing:
        notes.append(f"{len(contents.missing)} records that others rest on are not in the bundle")
    return Report(
        kind="bundle",
        problems=tuple(problems),
        counts={
            "records": len(contents.records),
            "answers": len(contents.answers),
            "blobs": len(contents.blobs),
            "unknown_revisions": contents.revisions,
            "missing": len(contents.missing),
        },
        notes=tuple(notes),
        details={"whole": contents.whole},
    )


def _unknown_problems(
    revisions: list[UnknownRevision], lookup: BundleLookup, contents: Contents
) -> Iterator[Problem]:
    """What does not hold between the revisions and their records."""

    def record_of(evidence_id: str) -> Record | None:
        return lookup.get(evidence_id) if lookup.has(evidence_id) else None

    for problem in unknown_problems(revisions, record_of, missing=set(contents.missing)):
        place = f"$.unknowns ({problem.unknown}, revision {problem.revision})"
        yield Problem(place=place, code=problem.code, message=problem.message)


def check_version(file: BinaryIO) -> None:
    """Refuse what is no bundle of this version; the file is back at its beginning then.

    Raises:
        VerificationError: `format-unknown`, naming the version that was found.
    """
    file.seek(0)
    found = version_of(file.read(64))
    file.seek(0)
    if found is None or found == (KIND, VERSION):
        return  # reading tells where the first bytes are wrong
    raise VerificationError(
        "format-unknown",
        f"this is {found[0]}/{found[1]}; this product knows {KIND}/{VERSION}",
        hint="use the version of affidavit that wrote it, or a newer one",
        details={"found": list(found), "known": [KIND, VERSION], "place": "$.affidavit"},
    )


def damaged(problems: list[Problem] | tuple[Problem, ...], what: str) -> VerificationError:
    """The error for a bundle that does not hold."""
    first = problems[0]
    more = f", and {len(problems) - 1} more" if len(problems) > 1 else ""
    return VerificationError(
        "bundle-damaged",
        f"{what} does not hold: {first.place}: {first.message}{more}",
        hint="`affidavit verify` lists every place; ask for the file again",
        details={"problems": [problem.as_json() for problem in problems]},
    )


def read_entry(data: bytes) -> tuple[Sealed, Record]:
    """A record as it stands in a bundle, its id recomputed and its spelling compared.

    Raises:
        VerificationError: `bundle-damaged`, saying what does not hold.
    """
    fields: dict[str, Any] = _loaded(data)
    if sorted(fields) not in _ENTRIES:
        known = ("body", "id", "notes", "notes_digest")
        odd = next((it for it in fields if it not in known), None)
        raise _damage(f"a record has no field {odd!a}" if odd else "a field of the record is missing")
    body = _canonical(fields["body"])
    if _canonical(fields | {"body": CanonicalJson(body)}) != data:
        raise _damage("not in the canonical form")
    computed = body_id(body)
    if fields["id"] != computed:
        raise _damage(f"it is kept as {fields['id']!a} and has the id {computed}")
    notes = fields.get("notes")
    if "notes" in fields and (notes is None or fields["notes_digest"] != notes_digest(notes)):
        raise _damage(f"{computed}: its notes are not what was written")
    try:
        record = open_foreign(body, notes)
    except UsageError as error:
        raise _damage(f"{computed}: {error.message}") from None
    return Sealed(id=computed, body=body, notes=notes, operation=record.operation, spilled=None), record


def misspelt(data: bytes) -> str:
    """What keeps the bytes of a blob from being the canonical form of an encoded value; empty when nothing does."""
    try:
        json = _parsed(data)
        check_encoded(json)
    except AffidavitError as error:
        return error.message
    return ""


def _id(piece: Piece) -> str:
    if not _ID.fullmatch(piece.text):
        raise _damage(f"{piece.text[:80]!a} is not an id")
    return piece.text


def _loaded(data: bytes) -> JsonValue:
    try:
        # Integers that JSON does not carry exactly are refused. The quick reader may make floats of them.
        return parse(data) if _MANY_DIGITS.search(data) else orjson.loads(data)
    except (orjson.JSONDecodeError, UsageError) as error:
        raise _damage(error.message if isinstance(error, UsageError) else f"not JSON: {error}") from None


def _parsed(data: bytes) -> JsonValue:
    """JSON that must be in its canonical form."""
    json = _loaded(data)
    if _canonical(json) != data:
        raise _damage("not in the canonical form")
    return json


def _canonical(json: JsonValue) -> bytes:
    try:
        return canonical(json, max_depth=MAX_ELEMENT_DEPTH)
    except UsageError as error:
        raise _damage(error.message) from None


def _from_base64(text: bytes) -> bytes:
    try:
        data = a2b_base64(text, strict_mode=True) if text else b""
    except Base64Error as error:
        raise _damage(f"not base64: {error}") from None
    if b2a_base64(data, newline=False) != text:
        raise _damage("base64 with stray bits")
    return data


def _damage(message: str, code: str = "bundle-damaged") -> VerificationError:
    return VerificationError(code, message)
