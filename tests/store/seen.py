"""Records of several strengths, which unknowns name."""

from affidavit.evidence.identity import record_id
from affidavit.evidence.record import Unfinished
from affidavit.store import Event, Store
from tests.evidence.records import observation

SEEN = [
    observation({"n": 0}, authority="artifact-bytes", confidence="observed"),
    observation({"n": 1}, authority="static-analysis", confidence="derived"),
    observation({"n": 2}, authority="inference", confidence="inferred"),
    observation({"n": 3}, authority="artifact-bytes", outcome=Unfinished()),
]
RECORDS = {record_id(one): one for one in SEEN}
EVIDENCE = [*RECORDS, "ev1_" + "00" * 32]  # the last was never recorded


def keep(store: Store) -> None:
    for one in SEEN:
        store.append(Event(kind="call-recorded", session="s0", data={}, at=1.0), record=one)
