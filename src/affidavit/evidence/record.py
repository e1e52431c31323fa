"""What was seen: the record of one call, content-addressed.

A `Record` says what was asked of whom about what, and what came back. Its id is computed over the canonical form of
its projection (see `identity`), so equal observations have equal ids on every machine. Time, host, path, session,
run and tenant are not in it; they belong to the *event* of its recording (`store.events`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

__all__ = [
    "Authority",
    "BlobRef",
    "Confidence",
    "Coverage",
    "Failure",
    "JsonValue",
    "Kind",
    "Limitation",
    "Outcome",
    "Producer",
    "Record",
    "Subject",
    "Success",
    "Unfinished",
]

# JSON as it crosses the doors. Tagged values of the value domain are ordinary JSON objects here.
JsonValue: TypeAlias = Any

Kind: TypeAlias = Literal["observation", "derivation", "assertion"]
Authority: TypeAlias = Literal[
    "artifact-bytes", "static-analysis", "inference", "recorded-traffic", "live-source", "imported", "analyst"
]
Confidence: TypeAlias = Literal["observed", "derived", "inferred"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What the record is about: the digest of its bytes (`sha256:` + hex) and their format."""

    digest: str
    format: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Producer:
    """Who made the observation, with its own contract version (not the package's)."""

    name: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Limitation:
    """One place that could not be examined. `message` is for people and is not hashed."""

    code: str
    place: str
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What of a source was examined.

    Attributes:
        state: `complete` only when nothing was omitted and nothing is unknown.
        selection: which part was asked for, in the producer's words (`all files`).
        examined: how many units were read.
        omitted: how many were left out on purpose (a bound, a kind that the producer does not read).
        unknown: how many could not be read or understood.
        bounds: the limits in force, by name.
    """

    state: Literal["complete", "partial", "unknown"]
    selection: str
    examined: int
    omitted: int = 0
    unknown: int = 0
    bounds: Mapping[str, int] = field(default_factory=dict[str, int])

    def as_json(self) -> dict[str, JsonValue]:
        """The coverage as records hold it and replies show it."""
        return {
            "state": self.state,
            "selection": self.selection,
            "examined": self.examined,
            "omitted": self.omitted,
            "unknown": self.unknown,
            "bounds": dict(self.bounds),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobRef:
    """A value kept beside the record: `sha256:` digest and size of its canonical bytes."""

    digest: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Success:
    """The call returned. `result` is encoded JSON (value domain tags), or a `BlobRef` above 64 KiB."""

    result: JsonValue | BlobRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The call failed. Message and hint are kept for people and are not hashed."""

    code: str
    details: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    message: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """The call was dispatched and its end was never seen."""


Outcome: TypeAlias = Success | Failure | Unfinished


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One observation, derivation or assertion. Immutable; its id is `identity.record_id(record)`."""

    kind: Kind
    operation: str
    parameters: JsonValue
    outcome: Outcome
    producer: Producer
    authority: Authority
    confidence: Confidence
    subject: Subject | None = None
    parents: tuple[str, ...] = ()
    coverage: Coverage | None = None
    limitations: tuple[Limitation, ...] = ()
    script: str | None = None
