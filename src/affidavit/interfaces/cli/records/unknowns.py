"""`affidavit unknown open|revise|list|show`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

from cyclopts import Parameter

from affidavit.errors import UsageError
from affidavit.evidence.record import Authority, Confidence, JsonValue
from affidavit.evidence.unknowns import Resolution, Severity, Status, UnknownRevision, unknown_id
from affidavit.interfaces.cli.output import Common, emit, lines, say
from affidavit.interfaces.cli.records.journal import Journalling
from affidavit.runtime.unknowns import shown
from affidavit.store import Store
from affidavit.store.unknowns import Entry, Unknowns
from affidavit.workspace import Workspace

__all__ = ["open_unknown", "revise", "show", "show_all"]

_SEVERITIES: Final = ("critical", "high", "medium", "low")


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What may be said of an unknown. A list that is given replaces the one before."""

    severity: Severity | None = None
    "How much depends on it; medium by default."
    status: Status | None = None
    "How it stands; open by default. With resolved, --resolution says how it ended."
    resolution: Resolution | None = None
    "How it ended. Verified takes at least one support that qualifies, and no contradiction."
    support: Annotated[list[str] | None, Parameter(negative="--no-support")] = None
    "Id of a record that speaks for it; repeatable."
    contradict: Annotated[list[str] | None, Parameter(negative="--no-contradict")] = None
    "Id of a record that speaks against it; repeatable."
    required_authority: Authority | Literal["any"] | None = None
    "The authority that a record must have to verify it."
    required_confidence: Confidence | Literal["any"] | None = None
    "The least confidence that such a record must have."
    relation: Annotated[list[str] | None, Parameter(negative="--no-relation")] = None
    "KIND=ID of another unknown; KIND is depends-on, related-to or contradicts; repeatable."
    probe: Annotated[list[str] | None, Parameter(negative="--no-probe")] = None
    "What to try next; repeatable."
    note: str | None = None
    "Why it stands so."

    def fields(self, store: Store, unknowns: Unknowns) -> dict[str, JsonValue]:
        """What was given, by the names of the document; shortened ids are made whole."""
        evidence = store.evidence.resolve
        given: dict[str, Any] = {
            "severity": self.severity,
            "status": self.status,
            "resolution": self.resolution,
            "supports": None if self.support is None else [evidence(one) for one in self.support],
            "contradicts": None if self.contradict is None else [evidence(one) for one in self.contradict],
            "relations": None if self.relation is None else [_relation(it, unknowns) for it in self.relation],
            "probes": self.probe,
            "note": self.note,
        }
        found = {name: value for name, value in given.items() if value is not None}
        for name in ("required_authority", "required_confidence"):
            wanted = getattr(self, name)
            if wanted is not None:
                found[name] = None if wanted == "any" else wanted
        return found


def open_unknown(
    question: str,
    *,
    domain: str,
    scope: str | None = None,
    content: Content = Content(),
    session: str | None = None,
    journalling: Journalling = Journalling(),  # noqa: B008
    common: Common = Common(),  # noqa: B008
) -> int:
    """Open an unknown. The same question asked again is the same unknown, and is left as it stands.

    Args:
        question: What is not known, in one sentence.
        domain: The field that it belongs to, for example javascript.
        scope: Digest of the artifact that it is about.
        content: What may be said of it.
        session: Session in whose log it is kept, too.
        journalling: Where a journal of that session is kept.
        common: Options of every command.
    """

    def work(store: Store, unknowns: Unknowns) -> tuple[UnknownRevision, bool]:
        given = content.fields(store, unknowns) | {"question": question, "domain": domain, "scope": scope}
        return unknowns.open(given, session=session)

    return _write(work, session, journalling, common)


def revise(
    unknown: str,
    *,
    expect: int,
    content: Content = Content(),
    session: str | None = None,
    journalling: Journalling = Journalling(),  # noqa: B008
    common: Common = Common(),  # noqa: B008
) -> int:
    """Revise an unknown: what is given changes, everything else stays, and no earlier revision is touched.

    Args:
        unknown: Its id, or a prefix that only one id has.
        expect: Number of the revision that you have seen as the newest; another one is a conflict.
        content: What changes.
        session: Session in whose log it is kept, too.
        journalling: Where a journal of that session is kept.
        common: Options of every command.
    """

    def work(store: Store, unknowns: Unknowns) -> tuple[UnknownRevision, bool]:
        return unknowns.revise(unknown, expect, content.fields(store, unknowns), session=session)

    return _write(work, session, journalling, common)


def show_all(
    *,
    status: Annotated[list[Status] | None, Parameter(negative="")] = None,
    severity: Annotated[list[Severity] | None, Parameter(negative="")] = None,
    domain: str | None = None,
    limit: int = 50,
    common: Common = Common(),  # noqa: B008
) -> int:
    """List unknowns, the most severe first.

    Args:
        status: Only with this status; repeatable.
        severity: Only of this severity; repeatable.
        domain: Only of this domain.
        limit: How many at most.
        common: Options of every command.
    """
    with Store.open(common.workspace, tenant=common.tenant, to_read=True) as store:
        found = [
            one
            for one in Unknowns(store).all()
            if one.status in (status or [one.status])
            and one.severity in (severity or [one.severity])
            and one.domain == (domain or one.domain)
        ]
    found.sort(key=lambda one: _SEVERITIES.index(one.severity))
    rows = [_row(one) for one in found[: max(0, limit)]]
    if common.json:
        emit({"unknowns": rows, "omitted": len(found) - len(rows)})
        return 0
    columns = ["id", "revision", "severity", "status", "domain", "question"]
    short = [row | {"id": row["id"][:17]} for row in rows]
    sys.stdout.write((lines(short, columns) or "no unknowns") + "\n")
    if len(found) > len(rows):
        say(f"{len(found) - len(rows)} more: --limit {len(found)}")
    return 0


def show(unknown: str, *, common: Common = Common()) -> int:  # noqa: B008
    """Show an unknown with all its revisions.

    Args:
        unknown: Its id, or a prefix that only one id has.
        common: Options of every command.
    """
    with Store.open(common.workspace, tenant=common.tenant, to_read=True) as store:
        entries = Unknowns(store).history(unknown)
    current = entries[-1].revision
    if common.json:
        emit(_row(current) | {"revisions": [_revision(entry) for entry in entries]})
        return 0
    sys.stdout.write(_text(current) + "\n\n")
    sys.stdout.write(lines(_changes(entries), ["revision", "at", "session", "changed", "note"]) + "\n")
    return 0


def _write(
    work: Callable[[Store, Unknowns], tuple[UnknownRevision, bool]],
    session: str | None,
    journalling: Journalling,
    common: Common,
) -> int:
    if session is None:
        with Store.open(common.workspace, tenant=common.tenant) as store:
            revision, made = work(store, Unknowns(store))
    else:
        revision, made = asyncio.run(_in_session(work, session, journalling, common))
    if common.json:
        emit(shown(revision, made=made))
        return 0
    if not made:
        say(f"nothing was changed: it stands so at revision {revision.revision}")
    sys.stdout.write(_text(revision) + "\n")
    return 0


async def _in_session(
    work: Callable[[Store, Unknowns], tuple[UnknownRevision, bool]],
    session: str,
    journalling: Journalling,
    common: Common,
) -> tuple[UnknownRevision, bool]:
    """Write with the session open, so that its journal has what its log has."""
    async with Workspace.open(
        common.workspace, tenant=common.tenant, journal=journalling.settings()
    ) as workspace:
        await workspace.session(session)
        return work(workspace.store, Unknowns(workspace.store))


def _relation(text: str, unknowns: Unknowns) -> dict[str, JsonValue]:
    kind, equals, unknown = text.partition("=")
    if not equals:
        raise UsageError("usage", f"{text!r} is not KIND=ID", hint="for example depends-on=unk1_13c7")
    return {"kind": kind, "unknown": unknown_id(unknowns.get(unknown))}


def _row(revision: UnknownRevision) -> dict[str, Any]:
    row = shown(revision, made=False)
    del row["made"]
    return row


def _revision(entry: Entry) -> dict[str, Any]:
    return _row(entry.revision) | {
        "previous": entry.revision.previous,
        "at": entry.at,
        "session": entry.session,
        "run": entry.run,
    }


def _text(revision: UnknownRevision) -> str:
    """A revision in lines: what is said of it, without what is not."""
    pairs: list[tuple[str, object]] = []
    for name, value in _row(revision).items():
        if name == "relations":
            pairs += [(one["kind"], one["unknown"]) for one in value]
        elif isinstance(value, list):
            pairs += [(name, one) for one in value]  # pyright: ignore[reportUnknownVariableType]
        elif value not in (None, ""):
            pairs.append((name, value))
    return lines([{"name": name, "value": value} for name, value in pairs], ["name", "value"])


def _changes(entries: Sequence[Entry]) -> list[Mapping[str, Any]]:
    """The revisions as rows, each with the fields that differ from the one before."""
    rows: list[Mapping[str, Any]] = []
    before: dict[str, Any] = {}
    for entry in entries:
        now = _row(entry.revision)
        changed = [name for name in now if before and now[name] != before[name]]
        rows.append(
            {
                "revision": entry.revision.revision,
                "at": datetime.fromtimestamp(entry.at, UTC).isoformat(timespec="seconds"),
                "session": entry.session,
                "changed": ", ".join(n for n in changed if n not in ("revision", "digest")) or None,
                "note": entry.revision.note or None,
            }
        )
        before = now
    return rows
