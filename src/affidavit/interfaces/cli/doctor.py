"""`affidavit doctor`."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated

from cyclopts import Parameter

from affidavit.interfaces.cli.output import Common, emit, harmless
from affidavit.runtime.engines.finding import Finding
from affidavit.store import Store
from affidavit.store.integrity import check_store
from affidavit.workspace import Workspace

__all__ = ["doctor"]

_DOES_NOT_HOLD = 4


def doctor(
    *,
    store: Annotated[bool, Parameter(negative="")] = False,
    repair: Annotated[bool, Parameter(negative="")] = False,
    common: Common = Common(),  # noqa: B008
) -> int:
    """Try each part for real: isolation layers, engines, the checker, analyzers and the workspace.

    Nothing is assumed from versions or settings: each isolation layer is attacked from inside a locked child. Exits
    with 1 when something that scripts need is missing.

    Args:
        store: Hash every record and blob of the workspace again instead, and list what is damaged; exits with 4 then.
        repair: With --store: put right what can be derived from the rest.
    """
    if store or repair:
        return _check_store(common, repair)

    async def body() -> list[Finding]:
        async with Workspace.open(common.workspace, tenant=common.tenant) as workspace:
            return await workspace.doctor()

    findings = asyncio.run(body())
    healthy = all(finding.ok or not finding.decisive for finding in findings)
    if common.json:
        emit(
            {
                "healthy": healthy,
                "findings": [
                    {
                        "name": finding.name,
                        "ok": finding.ok,
                        "decisive": finding.decisive,
                        "detail": finding.detail,
                    }
                    for finding in findings
                ],
            }
        )
    else:
        for finding in findings:
            mark = "ok  " if finding.ok else "FAIL" if finding.decisive else "note"
            sys.stdout.write(f"{mark}  {finding.name:<28} {finding.detail}\n")
        sys.stdout.write("healthy\n" if healthy else "not healthy: see FAIL above\n")
    return 0 if healthy else 1


def _check_store(common: Common, repair: bool) -> int:
    with Store.open(common.workspace, tenant=common.tenant, create=False, to_read=not repair) as opened:
        health = check_store(opened, repair=repair)
    if common.json:
        emit(health.as_json())
    else:
        for damage in health.damage:
            mark = "fixed" if damage.repaired else "FAIL "
            sys.stdout.write(
                harmless(f"{mark}  {damage.kind} {damage.name}: {damage.message}\n       {damage.remedy}\n")
            )
        sys.stdout.write(
            f"{health.records} records, {health.blobs} blobs and {health.events} events were read"
            f"{'' if health.holds else ': what is marked FAIL does not hold'}\n"
            "facts are not checked here: they can be analysed again from their artifact\n"
        )
    return 0 if health.holds else _DOES_NOT_HOLD
