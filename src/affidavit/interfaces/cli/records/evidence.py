"""`affidavit evidence list|show`."""

from __future__ import annotations

import sys
from typing import Any

from affidavit.errors import UsageError
from affidavit.evidence import values
from affidavit.evidence.identity import to_json
from affidavit.evidence.record import Failure, Record, Success
from affidavit.interfaces.cli.output import Common, emit, lines
from affidavit.store import Store

__all__ = ["show", "show_all"]


def show_all(
    *,
    limit: int = 50,
    operation: str | None = None,
    session: str | None = None,
    common: Common = Common(),  # noqa: B008
) -> int:
    """List records, newest first.

    Args:
        limit: How many at most.
        operation: Only of this operation, for example javascript.modules.page/1.
        session: Only those that this session recorded.
    """
    if limit < 1:
        raise UsageError("limit-invalid", f"--limit {limit} shows nothing", hint="at least 1")
    with Store.open(common.workspace, tenant=common.tenant, to_read=True) as store:
        found = [
            {
                "evidence_id": evidence_id,
                "kind": record.kind,
                "operation": record.operation,
                "outcome": _outcome(record),
                "artifact": record.subject.digest if record.subject else None,
            }
            for evidence_id, record in store.evidence.list(limit=limit, operation=operation, session=session)
        ]
    if common.json:
        emit({"evidence": found})
    else:
        nothing = "no such evidence" if operation or session else "no evidence yet"
        sys.stdout.write((lines(found, ["evidence_id", "operation", "outcome"]) or nothing) + "\n")
    return 0


def show(evidence_id: str, *, common: Common = Common()) -> int:  # noqa: B008
    """Show one record: what was asked, of what, and what came back. Its id is recomputed first.

    Args:
        evidence_id: The id or a prefix that only one record has.
    """
    with Store.open(common.workspace, tenant=common.tenant, to_read=True) as store:
        whole = store.evidence.resolve(evidence_id)
        record = store.evidence.get(whole)
        document: dict[str, Any] = {"evidence_id": whole, "record": to_json(record)}
        if isinstance(record.outcome, Success):
            document["result"] = values.plain(store.evidence.result(record))
    emit(document)
    return 0


def _outcome(record: Record) -> str:
    match record.outcome:
        case Success():
            return "ok"
        case Failure(code=code):
            return f"failed: {code}"
        case _:
            return "unfinished"
