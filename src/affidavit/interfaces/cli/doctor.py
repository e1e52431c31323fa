"""`affidavit doctor`."""

from __future__ import annotations

import asyncio
import sys

from affidavit.interfaces.cli.output import Common, emit
from affidavit.runtime.engines.finding import Finding
from affidavit.workspace import Workspace

__all__ = ["doctor"]


def doctor(*, common: Common = Common()) -> int:  # noqa: B008
    """Try each part for real: isolation layers, engines, the checker, analyzers and the workspace.

    Nothing is assumed from versions or settings: each isolation layer is attacked from inside a locked child. Exits
    with 1 when something that scripts need is missing.
    """

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
