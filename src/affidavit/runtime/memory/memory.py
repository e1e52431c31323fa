"""What a script of a session finds beside `df` and its inputs: `results`, and what the preamble defines."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from affidavit.evidence.record import JsonValue
from affidavit.runtime.desk import Aside
from affidavit.runtime.memory.mentions import mentions
from affidavit.runtime.memory.preamble import Judge, Preamble
from affidavit.runtime.memory.result_types import result_types
from affidavit.runtime.memory.results import Results
from affidavit.runtime.program import RESULTS, Earlier
from affidavit.runtime.typecheck.surroundings import Surroundings
from affidavit.store import Store

__all__ = ["Memory"]


class Memory:
    """The memory of one session, following its log.

    Args:
        store: where the log is.
        session: whose memory.
        now: the time, seconds since the epoch.
        judge: tells what is wrong with entries of a preamble.
    """

    def __init__(self, store: Store, session: str, *, now: Callable[[], float], judge: Judge) -> None:
        self.results = Results(store, session)
        self.preamble = Preamble(store, session, now=now, judge=judge)
        self._stubs: dict[int, str] = {}  # of rows by run number: a row never changes

    def calls(self) -> Mapping[str, Aside]:
        """What answers the calls of a script that concern the memory, by path."""
        return {
            RESULTS: self.results.serve,
            "session.set_preamble": self.preamble.serve_set,
            "session.remove_preamble": self.preamble.serve_remove,
            "session.get_preamble": self.preamble.serve_get,
        }

    def around(
        self, source: str, inputs: Mapping[str, JsonValue]
    ) -> tuple[Surroundings, tuple[Earlier, ...] | None]:
        """What a script finds as of now: for its check, and the rows of `results` for its run.

        An input called `results` hides the rows.
        """
        entries = self.preamble.entries()
        if RESULTS in inputs:
            return Surroundings(preamble=entries, clashes=self.preamble.clashes()), None
        named = mentions(source, *(entry.code for entry in entries))
        if named is None:
            return Surroundings(preamble=entries, clashes=self.preamble.clashes()), None
        types = result_types(self.results.rows(), named, self.results.by_run, self._stubs)
        around = Surroundings(preamble=entries, clashes=self.preamble.clashes(), results=types)
        return around, self.results.earlier(named)
