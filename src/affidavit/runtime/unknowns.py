"""`df.unknown`: how a script opens, reads and revises an unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from affidavit.errors import AffidavitError, RefusedError
from affidavit.evidence.record import JsonValue
from affidavit.evidence.unknowns import FIELDS, UnknownRevision, invalid, revision_digest, to_json, unknown_id
from affidavit.store.unknowns import Unknowns

__all__ = ["PARAMETERS", "Inquiry", "is_refusal", "shown"]

PARAMETERS: Final = (*FIELDS, "id", "expect")
"""What `df.unknown` takes, by name only."""

_MAX_REVISIONS: Final = 1_000  # that one run may make; each is a durable write
_REFUSALS: Final = frozenset(
    {
        "unknown-invalid", "unknown-not-found", "unknown-ambiguous", "revision-conflict", "evidence-not-found",
        "value-unsupported", "value-too-deep", "budget-exceeded",
    }
)  # fmt: skip


class Inquiry:
    """The unknowns as one run sees them.

    Args:
        unknowns: those of the tenant.
        session: the session of the run.
        run: the run's id.
    """

    def __init__(self, unknowns: Unknowns, *, session: str, run: str | None) -> None:
        self._unknowns = unknowns
        self._session = session
        self._run = run
        self._made = 0

    def ask(self, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """What `df.unknown` returns for these arguments (encoded JSON).

        With `id` alone it reads; with `id`, `expect` and fields it revises; without `id` it opens.

        Raises:
            AffidavitError: `is_refusal` tells whether the script is at fault, or else the store.
        """
        given = dict(arguments)
        unknown, expect = given.pop("id", None), given.pop("expect", None)
        if unknown is None and expect is not None:
            raise invalid("expect", "it goes with id", "pass the id that was returned when it was opened")
        if unknown is not None and type(unknown) is not str:
            raise invalid("id", "text expected", "pass the id that was returned when it was opened")
        if unknown is not None and expect is None:
            return self._read(unknown, given)
        if self._made >= _MAX_REVISIONS:
            raise RefusedError(
                "budget-exceeded",
                f"this run made {_MAX_REVISIONS} revisions of unknowns",
                hint="open what a person can look through",
            )
        if unknown is None:
            revision, made = self._unknowns.open(given, session=self._session, run=self._run)
        elif type(expect) is not int:
            raise invalid("expect", "a whole number expected", "pass the revision that you have seen")
        else:
            revision, made = self._unknowns.revise(
                unknown, expect, given, session=self._session, run=self._run
            )
        self._made += made
        return shown(revision, made=made)

    def _read(self, unknown: str, given: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        current = self._unknowns.get(unknown)
        changed = [name for name, value in given.items() if value is not None]
        if changed:
            hint = f"look at revision {current.revision}; then pass expect={current.revision}"
            raise invalid("expect", f"revising {changed[0]} takes the revision that you have seen", hint)
        return shown(current, made=False)


def is_refusal(error: AffidavitError) -> bool:
    """Whether an error says that what was asked cannot be, rather than that it could not be kept."""
    return error.code in _REFUSALS


def shown(revision: UnknownRevision, *, made: bool) -> dict[str, JsonValue]:
    """A revision as every door shows it; `made` says whether this call made it."""
    document = to_json(revision)
    fields = {name: document[name] for name in FIELDS}
    return {
        "id": unknown_id(revision),
        "revision": revision.revision,
        "digest": revision_digest(revision),
        "made": made,
    } | fields
