r"""What is not known yet: questions that stay open across runs and sessions, with what speaks for and against.

An unknown is a chain of immutable revisions. Its id is computed over what makes it this question, so that the same
question asked twice is one unknown; each revision names the digest of the one before.

```
id     = "unk1_" + lower-hex SHA-256( b"affidavit/unknown/1\n" + canonical({"domain", "question", "scope"}) )
digest = "sha256:" + lower-hex SHA-256( b"affidavit/unknown-revision/1\n" + canonical(document without the last two) )
```

| field                 | value                                                                                    |
|-----------------------|------------------------------------------------------------------------------------------|
| `question`, `domain`  | text of 1 to 1,000 and 1 to 100 characters, each run of white space being one space      |
| `scope`               | digest of the artifact that it is about, or null                                         |
| `revision`            | its number, from 1                                                                       |
| `previous`            | digest of the revision before, null in the first                                         |
| `severity`            | `low`, `medium`, `high`, `critical`                                                      |
| `status`              | `open`, `investigating`, `blocked`, `contradicted`, `resolved`                           |
| `resolution`          | `verified`, `withdrawn`, `out-of-scope` when resolved, else null                         |
| `supports`            | ids of records that speak for it, ascending, at most 100                                 |
| `contradicts`         | ids of records that speak against it, ascending, at most 100                             |
| `required_authority`  | the authority that a record must have to verify it, or null                              |
| `required_confidence` | the least confidence that such a record must have, or null                               |
| `relations`           | `{"kind", "unknown"}` each, ascending, at most 100; `kind` is `depends-on`, `related-to`, |
|                       | `contradicts`                                                                            |
| `probes`              | what to try next, at most 20 texts of 1 to 1,000 characters, each once                   |
| `note`                | why it stands so, at most 1,000 characters                                               |
| `unknown_id`          | the id                                                                                   |
| `digest`              | the digest of the revision                                                               |

Time, session and author are not in it; they belong to the event that keeps the revision.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from typing import Any, Final, Literal, TypeAlias, cast, get_args

from affidavit.errors import UsageError
from affidavit.evidence.canonical import canonical
from affidavit.evidence.reader import Reader
from affidavit.evidence.record import Authority, Confidence, JsonValue
from affidavit.evidence.values import is_utf8

__all__ = [
    "CONFIDENCE_RANK", "FIELDS", "PREFIX", "Relation", "RelationKind", "Resolution", "Severity", "Status",
    "UnknownRevision", "check", "from_json", "invalid", "opened", "revised", "revision_digest", "to_json",
    "unknown_id",
]  # fmt: skip

Severity: TypeAlias = Literal["low", "medium", "high", "critical"]
Status: TypeAlias = Literal["open", "investigating", "blocked", "contradicted", "resolved"]
Resolution: TypeAlias = Literal["verified", "withdrawn", "out-of-scope"]
RelationKind: TypeAlias = Literal["depends-on", "related-to", "contradicts"]

PREFIX: Final = "unk1_"
CONFIDENCE_RANK: Final[Mapping[Confidence, int]] = {"inferred": 1, "derived": 2, "observed": 3}
"""Confidences from the weakest."""

MAX_QUESTION: Final = 1_000
MAX_DOMAIN: Final = 100
MAX_TEXT: Final = 1_000
MAX_IDS: Final = 100
MAX_PROBES: Final = 20
MAX_REVISION: Final = 1_000_000

_ID_PREAMBLE: Final = b"affidavit/unknown/1\n"
_REVISION_PREAMBLE: Final = b"affidavit/unknown-revision/1\n"
_UNKNOWN: Final = re.compile(r"unk1_[0-9a-f]{64}")
_EVIDENCE: Final = re.compile(r"ev1_[0-9a-f]{64}")
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
# Spelled out, so that another language reads it the same: what counts as white space does not move with Unicode.
_SPACE: Final = re.compile(
    "[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+"
)  # fmt: skip
_SEVERITIES: Final = frozenset(get_args(Severity))
_STATUSES: Final = frozenset(get_args(Status))
_RESOLUTIONS: Final = frozenset(get_args(Resolution))
_RELATIONS: Final = frozenset(get_args(RelationKind))
_AUTHORITIES: Final = frozenset(get_args(Authority))
_SHOWN: Final = 80


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Relation:
    """How an unknown stands to another one."""

    kind: RelationKind
    unknown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownRevision:
    """One revision of an unknown; the fields are those of the module's docstring.

    Make them with `opened`, `revised` and `from_json`, which bring texts and lists into their one spelling.
    """

    domain: str
    question: str
    scope: str | None = None
    revision: int = 1
    previous: str | None = None
    severity: Severity = "medium"
    status: Status = "open"
    resolution: Resolution | None = None
    supports: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()
    required_authority: Authority | None = None
    required_confidence: Confidence | None = None
    relations: tuple[Relation, ...] = ()
    probes: tuple[str, ...] = ()
    note: str = ""


_DOCUMENT: Final = tuple(sorted(one.name for one in fields(UnknownRevision)))
_COMPUTED: Final = ("digest", "unknown_id")
_IDENTITY: Final = ("domain", "question", "scope")
FIELDS: Final = tuple(name for name in _DOCUMENT if name not in ("revision", "previous"))
"""What a caller may say of an unknown, by name."""


def unknown_id(revision: UnknownRevision) -> str:
    """The id of the unknown: `unk1_` and 64 lower-case hexadecimal digits. The same in all its revisions."""
    what: JsonValue = {name: getattr(revision, name) for name in _IDENTITY}
    return PREFIX + sha256(_ID_PREAMBLE + canonical(what)).hexdigest()


def revision_digest(revision: UnknownRevision) -> str:
    """The digest of the revision, which the next one names as `previous`."""
    return _digest(_content(revision))


def to_json(revision: UnknownRevision) -> dict[str, JsonValue]:
    """The revision as one JSON document, with its id and digest; the only form in which it is kept and sent."""
    content = _content(revision)
    return content | {"unknown_id": unknown_id(revision), "digest": _digest(content)}


def from_json(json: JsonValue) -> UnknownRevision:
    """The revision of `to_json`. Every field is checked, id and digest are computed again.

    Raises:
        UsageError: `unknown-invalid`; `details.field` names the field.
    """
    try:
        document = Reader(json).object(required=(*_DOCUMENT, *_COMPUTED))
        revision = UnknownRevision(
            **{name: _READERS[name](document[name]) for name in _DOCUMENT},
        )
    except UsageError as error:
        raise invalid(_field_of(error), error.message) from None
    check(revision)
    for name, computed in to_json(revision).items():
        if document[name].json != computed:
            raise invalid(name, f"it says {_shown(document[name].json)}, and is {_shown(computed)}")
    return revision


def opened(given: Mapping[str, JsonValue]) -> UnknownRevision:
    """The first revision of a question, from JSON values by the names of `FIELDS`; `question` and `domain` are needed.

    Raises:
        UsageError: `unknown-invalid`; `details.field` names the field.
    """
    for name in ("question", "domain"):
        if given.get(name) is None:
            raise invalid(name, "a new unknown needs one", 'for example question="...", domain="javascript"')
    revision = UnknownRevision(**_read(given))
    check(revision)
    return revision


def revised(current: UnknownRevision, given: Mapping[str, JsonValue]) -> UnknownRevision:
    """The revision that follows when these fields are changed; `current` itself when nothing changes.

    A list that is given replaces the one before. A status other than `resolved` ends the resolution.

    Raises:
        UsageError: `unknown-invalid`; `details.field` names the field.
    """
    changes = _read(given)
    for name in _IDENTITY:
        if name in changes and changes[name] != getattr(current, name):
            hint = "open it as an unknown of its own, and relate the two"
            raise invalid(name, f"another {name} makes another unknown", hint)
    if changes.get("status", "resolved") != "resolved" and changes.get("resolution") is None:
        changes["resolution"] = None
    changed = replace(current, **changes)
    if changed == current:
        return current
    following = replace(changed, revision=current.revision + 1, previous=revision_digest(current))
    check(following)
    return following


def check(revision: UnknownRevision) -> None:
    """Everything that can be said of a revision alone.

    Raises:
        UsageError: `unknown-invalid`; `details.field` names the field.
    """
    _check_words(revision)
    _check_lists(revision)
    _check_place(revision)
    if (revision.status == "resolved") != (revision.resolution is not None):
        hint = "resolved takes a resolution: verified, withdrawn or out-of-scope; no other status does"
        raise invalid("resolution", f"{revision.status} with resolution {revision.resolution}", hint)
    both = sorted(set(revision.supports) & set(revision.contradicts))
    if both:
        raise invalid("contradicts", f"{both[0]} speaks for and against", "list each record once")
    if any(one.unknown == unknown_id(revision) for one in revision.relations):
        raise invalid("relations", "it is related to itself", "name another unknown")
    if revision.resolution != "verified":
        return
    if not revision.supports:
        raise invalid("supports", "verified without support", "name the records that verify it")
    if revision.contradicts:
        hint = "settle the contradiction first: a revision may drop it, and the chain keeps that it did"
        raise invalid("contradicts", "verified and contradicted", hint)


def invalid(field: str, problem: str, hint: str = "") -> UsageError:
    """The refusal of one field of an unknown."""
    return UsageError("unknown-invalid", f"unknown: {field}: {problem}", hint=hint, details={"field": field})


# ---- reading ----


def _content(revision: UnknownRevision) -> dict[str, JsonValue]:
    content: dict[str, JsonValue] = {name: getattr(revision, name) for name in _DOCUMENT}
    for name in ("supports", "contradicts", "probes"):
        content[name] = list(content[name])
    content["relations"] = [{"kind": one.kind, "unknown": one.unknown} for one in revision.relations]
    return content


def _digest(content: Mapping[str, JsonValue]) -> str:
    return "sha256:" + sha256(_REVISION_PREAMBLE + canonical(dict(content))).hexdigest()


def _read(given: Mapping[str, JsonValue]) -> dict[str, Any]:
    """Fields as a caller gave them, in the spelling of the document. None leaves a list or text as it is."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name not in FIELDS:
            raise invalid(name, "no such field", f"one of {', '.join(FIELDS)}")
        if value is None and name not in _NULLABLE:
            continue
        try:
            found[name] = _READERS[name](Reader(value, (name,)))
        except UsageError as error:
            raise invalid(name, error.message, "pass what is expected there") from None
    for name in ("domain", "question"):
        if name in found:
            found[name] = _SPACE.sub(" ", found[name]).strip(" ")
    for name in ("supports", "contradicts", "relations"):
        if name in found:
            found[name] = tuple(sorted(set(found[name])))
    if "probes" in found:
        found["probes"] = tuple(dict.fromkeys(found["probes"]))
    return found


def _texts(reader: Reader) -> tuple[str, ...]:
    return tuple(item.text() for item in reader.items())


def _relations(reader: Reader) -> tuple[Relation, ...]:
    found: list[Relation] = []
    for item in reader.items():
        parts = item.object(required=("kind", "unknown"))
        found.append(Relation(kind=parts["kind"].choice(_RELATIONS), unknown=parts["unknown"].text()))
    return tuple(found)


def _choice(choices: frozenset[Any], *, nullable: bool = False) -> Callable[[Reader], Any]:
    def read(reader: Reader) -> Any:
        return None if nullable and reader.json is None else reader.choice(choices)

    return read


_NULLABLE: Final = frozenset({"scope", "required_authority", "required_confidence", "resolution"})
_READERS: Final[Mapping[str, Callable[[Reader], Any]]] = {
    "contradicts": _texts,
    "domain": Reader.text,
    "note": Reader.text,
    "previous": Reader.optional_text,
    "probes": _texts,
    "question": Reader.text,
    "relations": _relations,
    "required_authority": _choice(_AUTHORITIES, nullable=True),
    "required_confidence": _choice(frozenset(CONFIDENCE_RANK), nullable=True),
    "resolution": _choice(_RESOLUTIONS, nullable=True),
    "revision": Reader.count,
    "scope": Reader.optional_text,
    "severity": _choice(_SEVERITIES),
    "status": _choice(_STATUSES),
    "supports": _texts,
}


def _field_of(error: UsageError) -> str:
    """The field that a path leads to: `$.supports[3]` is about `supports`."""
    match = re.match(r"\$\.(\w+)", str(error.details.get("path", "")))
    return match[1] if match else "document"


# ---- checking ----


def _check_words(revision: UnknownRevision) -> None:
    for name, text, least, most in (
        ("question", revision.question, 1, MAX_QUESTION),
        ("domain", revision.domain, 1, MAX_DOMAIN),
        ("note", revision.note, 0, MAX_TEXT),
        *(("probes", probe, 1, MAX_TEXT) for probe in revision.probes),
    ):
        if not least <= len(text) <= most:
            raise invalid(name, f"a text of {len(text)} characters", f"{least} to {most} are allowed")
        if not is_utf8(text):
            raise invalid(name, "text with a lone surrogate", "give text that can be written as UTF-8")
        if name != "note" and (
            not text.strip() or (name != "probes" and _SPACE.sub(" ", text).strip(" ") != text)
        ):
            raise invalid(name, "white space that says nothing", "one space between words")


def _check_lists(revision: UnknownRevision) -> None:
    lists: tuple[tuple[str, Sequence[Any], int], ...] = (
        ("supports", revision.supports, MAX_IDS),
        ("contradicts", revision.contradicts, MAX_IDS),
        ("relations", revision.relations, MAX_IDS),
        ("probes", revision.probes, MAX_PROBES),
    )
    for name, items, most in lists:
        if len(items) > most:
            raise invalid(name, f"{len(items)} items", f"at most {most}")
        ordered = items if name == "probes" else sorted(items)
        if len(set(items)) != len(items) or list(ordered) != list(items):
            raise invalid(name, "not each once and ascending")
    for name, ids in (("supports", revision.supports), ("contradicts", revision.contradicts)):
        for one in ids:
            if not _EVIDENCE.fullmatch(one):
                raise invalid(name, f"{_shown(one)} is not an evidence id", "ev1_ and 64 digits, no pointer")
    for relation in revision.relations:
        if not _UNKNOWN.fullmatch(relation.unknown):
            raise invalid("relations", f"{_shown(relation.unknown)} is not the id of an unknown")


def _check_place(revision: UnknownRevision) -> None:
    if revision.scope is not None and not _DIGEST.fullmatch(revision.scope):
        raise invalid("scope", f"{_shown(revision.scope)} is not a digest", "sha256: and 64 digits")
    if not 1 <= revision.revision <= MAX_REVISION:
        raise invalid("revision", f"{revision.revision} is out of range", f"1 to {MAX_REVISION}")
    if (revision.previous is None) != (revision.revision == 1):
        raise invalid("previous", "the first revision follows none, every other follows one")
    if revision.previous is not None and not _DIGEST.fullmatch(revision.previous):
        raise invalid("previous", f"{_shown(revision.previous)} is not a digest")


def _shown(value: JsonValue) -> str:
    text = ascii(cast("object", value))
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
