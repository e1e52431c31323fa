r"""Identity profile 1: the id of a record, computed the same on every machine.

```
id = "ev1_" + lower-hex SHA-256( b"affidavit/evidence/1\n" + canonical(projection) )
```

The projection is one JSON object with exactly these fields:

| field         | value                                                                                            |
|---------------|--------------------------------------------------------------------------------------------------|
| `kind`        | `observation`, `derivation` or `assertion`                                                        |
| `operation`   | the contract's name with its version: `javascript.modules.page/1`                                 |
| `parameters`  | the normalised parameters, encoded (`values`)                                                     |
| `outcome`     | one of `{"result": encoded value}`, `{"blob": {"digest", "size"}}`, `{"failure": {"code",         |
|               | "details"}}`, `{"unfinished": true}`. A result of more than 64 KiB of canonical bytes always      |
|               | enters as `blob`, whether or not it was stored apart already; a smaller one never does.           |
| `subject`     | `{"digest", "format"}` or null                                                                    |
| `parents`     | ids of the records that it rests on, sorted, each once                                            |
| `producer`    | `{"name", "version"}`                                                                             |
| `authority`   | one of `record.Authority`                                                                         |
| `confidence`  | `observed`, `derived` or `inferred`                                                               |
| `coverage`    | `{"state", "selection", "examined", "omitted", "unknown", "bounds"}` or null                      |
| `limitations` | `{"code", "place"}` each, sorted, each once; a place that is not UTF-8 is encoded (`values`)      |
| `script`      | only in derivations: the script's digest, or null                                                 |

Not in it, so that words and circumstances may change without changing any id: message and hint of a failure, message
of a limitation, and everything that belongs to the event of recording (time, host, path, session, run, tenant).

The profile is frozen. Another one would be added beside it under another prefix, never instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, get_args

from affidavit.errors import UsageError
from affidavit.evidence.canonical import CanonicalJson, canonical, digest
from affidavit.evidence.reader import Reader
from affidavit.evidence.record import (
    Authority,
    BlobRef,
    Confidence,
    Coverage,
    Failure,
    JsonValue,
    Kind,
    Limitation,
    Outcome,
    Producer,
    Record,
    Subject,
    Success,
    Unfinished,
)
from affidavit.evidence.values import MAX_DEPTH, check_encoded, encode

__all__ = [
    "INLINE_BYTES",
    "PREFIX",
    "Sealed",
    "body_id",
    "check_values",
    "from_json",
    "open_foreign",
    "open_sealed",
    "projection",
    "record_id",
    "seal",
    "to_json",
]

PREFIX: Final = "ev1_"
INLINE_BYTES: Final = 64 << 10
"""Largest canonical result, in bytes, that stands inside its record."""

_PREAMBLE: Final = b"affidavit/evidence/1\n"
_ENVELOPE: Final = 4  # levels that the projection puts around an encoded value
_ID: Final = re.compile(r"ev1_[0-9a-f]{64}")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_KINDS: Final = frozenset(get_args(Kind))
_AUTHORITIES: Final = frozenset(get_args(Authority))
_CONFIDENCES: Final = frozenset(get_args(Confidence))
_STATES: Final = frozenset({"complete", "partial", "unknown"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """A record made ready to be kept: hashed once, written once.

    Attributes:
        id: the record's id.
        body: canonical bytes of the projection; `body_id(body) == id`.
        notes: what a record says beside its projection (messages and hints), as JSON, or None when nothing.
        operation: the record's operation, for look-ups.
        spilled: canonical bytes of a result that is kept as a blob, or None.
    """

    id: str
    body: bytes
    notes: JsonValue
    operation: str
    spilled: bytes | None


def record_id(record: Record) -> str:
    """The id of the record: `ev1_` and 64 lower-case hexadecimal digits.

    Raises:
        UsageError: `value-unsupported` when a field does not hold what `record` declares; `details.path` names it.
    """
    return seal(record).id


def projection(record: Record) -> JsonValue:
    """The part of the record that is hashed, as JSON (see the module's docstring)."""
    return CanonicalJson(seal(record).body).value()


def seal(record: Record) -> Sealed:
    """Hash a record and make the bytes that keep it.

    `parameters` and `result` may be `CanonicalJson`; then nothing is walked or encoded again.

    Raises:
        UsageError: as `record_id`.
    """
    _check(record)
    outcome, spilled = _outcome(record.outcome)
    body = canonical(_shape(record, outcome), max_depth=MAX_DEPTH + _ENVELOPE)
    return Sealed(
        id=body_id(body), body=body, notes=_notes(record), operation=record.operation, spilled=spilled
    )


def body_id(body: bytes) -> str:
    """The id of a projection's canonical bytes."""
    return PREFIX + sha256(_PREAMBLE + body).hexdigest()


def to_json(record: Record) -> JsonValue:
    """The whole record as JSON: the projection's fields, and messages and hints beside what they explain.

    A result that the record holds inline stays inline whatever its size. The id is not in it.
    """
    outcome: JsonValue
    if isinstance(record.outcome, Success) and not isinstance(record.outcome.result, BlobRef):
        outcome = {"result": record.outcome.result}
    else:
        outcome, _ = _outcome(record.outcome)
    if isinstance(record.outcome, Failure):
        outcome["failure"] |= {"message": _words(record.outcome.message), "hint": _words(record.outcome.hint)}
    shape = _shape(record, outcome)
    shape["parents"] = list(record.parents)
    shape["limitations"] = [
        {"code": it.code, "place": encode(it.place), "message": _words(it.message)}
        for it in record.limitations
    ]
    # Through the canonical form, so that the result is a fresh tree of exact JSON whatever the fields held.
    return CanonicalJson(canonical(shape, max_depth=MAX_DEPTH + _ENVELOPE)).value()


def from_json(json: JsonValue) -> Record:
    """The record of `to_json` or of a projection. Every field is checked; unknown fields are refused.

    Raises:
        UsageError: `value-unsupported`; `details.path` names the field.
    """
    record = _read(Reader(json))
    _check(record)
    return record


def open_sealed(body: bytes, notes: JsonValue) -> Record:
    """The record of a projection's canonical bytes and of the notes that were kept beside it.

    Raises:
        UsageError: `value-unsupported`: these are not the parts of a sealed record.
    """
    shape = CanonicalJson(body).value()
    try:
        if notes is not None and not set(notes) <= {"failure", "limitations"}:
            raise ValueError(notes)
        if notes and "failure" in notes:
            shape["outcome"]["failure"] |= notes["failure"]
        if notes and "limitations" in notes:
            pairs = zip(shape["limitations"], notes["limitations"], strict=True)
            shape["limitations"] = [limitation | {"message": message} for limitation, message in pairs]
    except (LookupError, TypeError, ValueError):
        raise UsageError("value-unsupported", "the notes beside a record do not fit it") from None
    return from_json(shape)


def check_values(record: Record) -> None:
    """See that parameters, result and the details of a failure are each the one encoding of their value.

    Whoever makes a record encodes its values; whoever takes one from elsewhere asks this. A result that is kept apart
    is checked with its blob.

    Raises:
        UsageError: as `values.check_encoded`; `details.path` names the place.
    """
    check_encoded(record.parameters, "parameters")
    if isinstance(record.outcome, Failure):
        check_encoded(dict(record.outcome.details), "outcome", "failure", "details")
    elif isinstance(record.outcome, Success) and not isinstance(record.outcome.result, BlobRef):
        check_encoded(record.outcome.result, "outcome", "result")


def open_foreign(body: bytes, notes: JsonValue) -> Record:
    """The record of `open_sealed` when it comes from elsewhere: spelt in all its parts as records are.

    Raises:
        UsageError: `value-unsupported`, `value-too-deep`, naming the place.
    """
    record = open_sealed(body, notes)
    check_values(record)
    again = seal(record)
    if again.body != body or again.notes != notes:
        raise UsageError(
            "value-unsupported",
            "not spelt as records are: lists in order and each once, results by their size",
        )
    return record


# ---- writing ----


def _shape(record: Record, outcome: JsonValue) -> dict[str, JsonValue]:
    shape: dict[str, JsonValue] = {
        "authority": record.authority,
        "confidence": record.confidence,
        "coverage": record.coverage and record.coverage.as_json(),
        "kind": record.kind,
        "limitations": _limitations(record.limitations),
        "operation": record.operation,
        "outcome": outcome,
        "parameters": record.parameters,
        "parents": sorted(set(record.parents)),
        "producer": {"name": record.producer.name, "version": record.producer.version},
        "subject": record.subject and {"digest": record.subject.digest, "format": record.subject.format},
    }
    if record.kind == "derivation":
        shape["script"] = record.script
    return shape


def _limitations(limitations: tuple[Limitation, ...]) -> list[JsonValue]:
    if not limitations:
        return []
    pairs = sorted({(it.code, it.place) for it in limitations})
    return [{"code": code, "place": encode(place)} for code, place in pairs]


def _outcome(outcome: Outcome) -> tuple[Any, bytes | None]:
    if isinstance(outcome, Success):
        return _result(outcome.result)
    if isinstance(outcome, Failure):
        return {"failure": {"code": outcome.code, "details": dict(outcome.details)}}, None
    return {"unfinished": True}, None


def _result(result: JsonValue | BlobRef) -> tuple[Any, bytes | None]:
    if isinstance(result, BlobRef):
        return {"blob": {"digest": result.digest, "size": result.size}}, None
    data = canonical(result)
    if len(data) > INLINE_BYTES:
        return {"blob": {"digest": digest(data), "size": len(data)}}, data
    return {"result": CanonicalJson(data)}, None


def _notes(record: Record) -> JsonValue:
    """Messages and hints by what they explain, or None. Limitations by their place in the sorted list."""
    notes: dict[str, JsonValue] = {}
    if isinstance(record.outcome, Failure) and (record.outcome.message or record.outcome.hint):
        notes["failure"] = {"message": _words(record.outcome.message), "hint": _words(record.outcome.hint)}
    messages = {(it.code, it.place): _words(it.message) for it in reversed(record.limitations)}
    if any(messages.values()):
        notes["limitations"] = [messages[key] for key in sorted(messages)]
    return notes or None


def _words(text: str) -> str:
    """Text for people. It is not hashed, so lone surrogates of a foreign message may be replaced."""
    return text.encode(errors="replace").decode()


# ---- checking and reading ----


def _check(record: Record) -> None:
    """Refuse a record that could be written but not read back. Types are the type checker's work; this is for words."""
    if record.kind not in _KINDS:
        raise _bad("kind", record.kind)
    if record.authority not in _AUTHORITIES:
        raise _bad("authority", record.authority)
    if record.confidence not in _CONFIDENCES:
        raise _bad("confidence", record.confidence)
    if record.coverage is not None and record.coverage.state not in _STATES:
        raise _bad("coverage.state", record.coverage.state)
    if record.subject is not None and not _DIGEST.fullmatch(record.subject.digest):
        raise _bad("subject.digest", record.subject.digest)
    if record.script is not None and not _DIGEST.fullmatch(record.script):
        raise _bad("script", record.script)
    for index, parent in enumerate(record.parents):
        if not _ID.fullmatch(parent):
            raise _bad(f"parents[{index}]", parent)
    _check_outcome(record.outcome)


def _check_outcome(outcome: Outcome) -> None:
    if isinstance(outcome, Success) and isinstance(outcome.result, BlobRef):
        ref = outcome.result
        if not _DIGEST.fullmatch(ref.digest):
            raise _bad("outcome.blob.digest", ref.digest)
        if ref.size <= INLINE_BYTES:
            raise _bad(
                "outcome.blob.size", ref.size, f"a result of at most {INLINE_BYTES} bytes stands inline"
            )


def _bad(field: str, value: Any, hint: str = "") -> UsageError:
    path = f"$.{field}"
    shown = ascii(value)[:80]
    return UsageError(
        "value-unsupported", f"a record cannot hold {shown} at {path}", hint=hint, details={"path": path}
    )


def _read(reader: Reader) -> Record:
    fields = reader.object(
        required=(
            "authority", "confidence", "coverage", "kind", "limitations", "operation", "outcome", "parameters",
            "parents", "producer", "subject",
        ),
        optional=("script",),
    )  # fmt: skip
    producer = fields["producer"].object(required=("name", "version"))
    return Record(
        kind=fields["kind"].choice(_KINDS),
        operation=fields["operation"].text(),
        parameters=fields["parameters"].json,
        outcome=_read_outcome(fields["outcome"]),
        producer=Producer(name=producer["name"].text(), version=producer["version"].text()),
        authority=fields["authority"].choice(_AUTHORITIES),
        confidence=fields["confidence"].choice(_CONFIDENCES),
        subject=_read_subject(fields["subject"]),
        parents=tuple(it.text() for it in fields["parents"].items()),
        coverage=_read_coverage(fields["coverage"]),
        limitations=tuple(map(_read_limitation, fields["limitations"].items())),
        script=_read_script(fields["script"]) if "script" in fields else None,
    )


def _read_script(reader: Reader) -> str | None:
    return None if reader.json is None else reader.digest()


def _read_outcome(reader: Reader) -> Outcome:
    [(name, value)] = reader.one_of(("result", "blob", "failure", "unfinished")).items()
    if name == "result":
        return Success(result=value.json)
    if name == "blob":
        ref = value.object(required=("digest", "size"))
        return Success(result=BlobRef(digest=ref["digest"].text(), size=ref["size"].count()))
    if name == "failure":
        fields = value.object(required=("code", "details"), optional=("message", "hint"))
        details: Mapping[str, JsonValue] = fields["details"].mapping()
        words = {key: fields[key].text() for key in ("message", "hint") if key in fields}
        return Failure(code=fields["code"].text(), details=details, **words)
    value.choice(frozenset({True}))
    return Unfinished()


def _read_subject(reader: Reader) -> Subject | None:
    if reader.json is None:
        return None
    fields = reader.object(required=("digest", "format"))
    return Subject(digest=fields["digest"].text(), format=fields["format"].text())


def _read_coverage(reader: Reader) -> Coverage | None:
    if reader.json is None:
        return None
    fields = reader.object(required=("state", "selection", "examined", "omitted", "unknown", "bounds"))
    return Coverage(
        state=fields["state"].choice(_STATES),
        selection=fields["selection"].text(),
        examined=fields["examined"].count(),
        omitted=fields["omitted"].count(),
        unknown=fields["unknown"].count(),
        bounds={key: it.count() for key, it in fields["bounds"].members().items()},
    )


def _read_limitation(reader: Reader) -> Limitation:
    fields = reader.object(required=("code", "place"), optional=("message",))
    message = fields["message"].text() if "message" in fields else ""
    return Limitation(code=fields["code"].text(), place=fields["place"].encoded_text(), message=message)
