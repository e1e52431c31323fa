"""What a check found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from affidavit.errors import VerificationError
from affidavit.evidence.record import JsonValue

__all__ = ["NOT_PROVEN", "Problem", "Report", "refused"]

NOT_PROVEN: Final = (
    "ids prove that contents are what was recorded, not who recorded them nor when: for that, sign the file",
    "a citation proves that something stands in a record, not that the answer follows from it",
)
"""What no check of contents can show; every report says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that does not hold.

    Attributes:
        place: where, like `$.records[3]`, with the id of the record where one is concerned.
        code: one of `errors.CODES`.
        message: what does not hold, one sentence.
        offset: the byte of the document at which the place begins, where that is known.
    """

    place: str
    code: str
    message: str
    offset: int | None = None

    def as_json(self) -> dict[str, JsonValue]:
        """The problem as documents show it."""
        return {"place": self.place, "code": self.code, "message": self.message, "offset": self.offset}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Whether a file holds, and what does not.

    Attributes:
        kind: `bundle`, `answer` or `journal`.
        problems: what does not hold, in the order of the file.
        counts: how much was checked, by what it is.
        notes: what a reader should know although it holds.
        details: what else belongs to this kind of file.
    """

    kind: str
    problems: tuple[Problem, ...]
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    notes: tuple[str, ...] = ()
    details: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])

    @property
    def holds(self) -> bool:
        """Whether nothing was found that does not hold."""
        return not self.problems

    def as_json(self) -> dict[str, JsonValue]:
        """The document of `affidavit verify --json`."""
        return {
            "kind": self.kind,
            "holds": self.holds,
            "problems": [problem.as_json() for problem in self.problems],
            "counts": dict(self.counts),
            "notes": list(self.notes),
            "not_proven": list(NOT_PROVEN),
            **self.details,
        }


def refused(kind: str, error: VerificationError) -> Report:
    """The report of a file that cannot be read as what it should be: of another version, say."""
    place = str(error.details.get("place", "$"))
    return Report(kind=kind, problems=(Problem(place=place, code=error.code, message=error.message),))
