"""`results[i].rerun(...)`: an earlier script with other values inside the script that asks for it.

The session derives the script as `reuse` does and hands it to the sandbox, which runs it there: under the limits, clock
and budget of the asking run, whose calls its calls are. So there is no run within a run, and a replay needs no more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import orjson

from affidavit.errors import AffidavitError, VerificationError
from affidavit.evidence import values
from affidavit.evidence.record import JsonValue
from affidavit.runtime.ledger import failed
from affidavit.runtime.memory.results import Results
from affidavit.runtime.program import CallResult, CallReturned, Limits, PreambleEntry
from affidavit.runtime.replay.reuse import reused
from affidavit.store import Store

__all__ = ["Rows"]

_RERUN: Final = "rerun"


class Rows:
    """Answers what one script asks of the rows of `results`.

    Args:
        results: the rows.
        store: where the log is.
        preamble: what the script finds defined.

    Attributes:
        reruns: the runs that it ran again, each with its `run` and `parameters` (see `reuse.Derived`).
    """

    def __init__(self, results: Results, store: Store, preamble: Sequence[PreambleEntry]) -> None:
        self.reruns: list[JsonValue] = []
        self._results = results
        self._store = store
        self._preamble = preamble

    async def serve(self, arguments: Mapping[str, JsonValue]) -> CallResult:
        """Answer one call: as `Results.serve`, and `want="rerun"` with `vary` and `was`."""
        number = arguments.get("number")
        row = self._results.by_run(number) if isinstance(number, int) else None
        if arguments.get("want") != _RERUN or row is None:
            return await self._results.serve(arguments)
        try:
            request = reused(
                self._store,
                row.run_id,
                vary=cast("dict[str, Any]", values.decode(arguments["vary"])),
                was=cast("dict[str, Any]", values.decode(arguments["was"])),
                preamble=self._preamble,
                engine="auto",
                limits=Limits(),
            )
        except AffidavitError as error:
            if isinstance(error, VerificationError):
                raise
            return failed(error, 0.0)
        self.reruns.append(dict(request.derived_from or {}))
        told = {"source": request.source, "inputs": dict(request.inputs)}
        return CallReturned(json=orjson.dumps(told), completed=0.0)
