"""What was changed afterwards is found: in records, blobs, scripts, arguments and what the session answered."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import orjson
import pytest
import pytest_asyncio

from affidavit import Run, Workspace
from affidavit.errors import AffidavitError, FailedError, VerificationError
from affidavit.evidence.identity import seal
from affidavit.evidence.record import Record, Success
from affidavit.runtime.replay.player import Divergence
from affidavit.store.journal import restore

from .bench import Bench

pytestmark = pytest.mark.asyncio(loop_scope="package")

SCRIPT = """
import asyncio
first = await df.tool.t.ten(n=1)
rest = await asyncio.gather(*[df.tool.t.ten(n=n) for n in (2, 3)])
df.budget()
{"first": first, "rest": rest}
"""


class Copy:
    """A copy of a workspace, for changing what it holds behind the store's back."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.root = folder / "copy"
        shutil.copytree(bench.workspace.root, self.root)
        for (name,) in self.all("SELECT name FROM sqlite_master WHERE type = 'trigger'"):
            self.all(f"DROP TRIGGER {name}")

    def all(self, sql: str, *parameters: Any) -> list[Any]:
        """Run a statement past everything that guards the store."""
        with sqlite3.connect(self.root / "store.sqlite") as database:
            found = database.execute(sql, parameters).fetchall()
        database.close()
        return found

    def change(self, sql: str, *parameters: Any) -> None:
        """Change something that is there."""
        assert self.all(f"{sql} RETURNING 1", *parameters)

    def change_event(self, run: Run, kind: str, nth: int = 0, **changes: Any) -> None:
        """Change members of the data of the n-th event of a kind; None takes one away."""
        sql = "SELECT seq, data FROM events WHERE run = ? AND kind = ? ORDER BY seq LIMIT 1 OFFSET ?"
        [(seq, data)] = self.all(sql, run.run_id, kind, nth)
        found: dict[str, Any] = orjson.loads(data) | changes
        changed = {name: value for name, value in found.items() if value is not None or name not in changes}
        data = orjson.dumps(changed, option=orjson.OPT_SORT_KEYS)
        self.change("UPDATE events SET data = ? WHERE seq = ?", data, seq)

    def swap_ends(self, run: Run) -> None:
        """Let the run's two calls have ended in the other order."""
        sql = "SELECT seq FROM events WHERE run = ? AND kind = 'call-recorded' ORDER BY seq"
        [(one,), (two,)] = self.all(sql, run.run_id)
        for old, new in ((one, -1), (two, one), (-1, two)):
            self.change("UPDATE events SET seq = ? WHERE seq = ?", new, old)

    async def divergence(self, run: Run) -> Divergence | None:
        async with Workspace.open(self.root) as workspace:
            return (await workspace.replay(run.run_id)).divergence


@pytest_asyncio.fixture(loop_scope="package")
async def run(bench: Bench) -> Run:
    made = await (await bench.session()).run(SCRIPT)
    assert made.data == {"first": 10, "rest": [20, 30]}
    return made


async def test_a_copy_that_nobody_changed_comes_out_the_same(bench: Bench, run: Run, tmp_path: Path) -> None:
    assert await Copy(bench, tmp_path).divergence(run) is None


async def test_a_changed_record_does_not_hold(bench: Bench, run: Run, tmp_path: Path) -> None:
    copy = Copy(bench, tmp_path)
    body = "UPDATE records SET body = CAST(replace(CAST(body AS TEXT), '\"result\":20', '\"result\":21') AS BLOB)"
    copy.change(f"{body} WHERE id = ?", run.calls[1].evidence_id)
    with pytest.raises(VerificationError) as found:
        await copy.divergence(run)
    assert (found.value.code, found.value.exit_code) == ("store-damaged", 4)


async def test_a_record_that_holds_and_says_something_else_changes_the_value(
    bench: Bench, run: Run, tmp_path: Path
) -> None:
    """As by somebody who computes the ids anew: the record is sound, the value that was settled is not its."""
    copy = Copy(bench, tmp_path)
    record: Record = bench.workspace.store.evidence.get(run.calls[1].evidence_id)
    other = seal(
        Record(
            kind=record.kind,
            operation=record.operation,
            parameters=record.parameters,
            outcome=Success(result=21),
            producer=record.producer,
            authority=record.authority,
            confidence=record.confidence,
        )
    )
    copy.change(
        "UPDATE records SET id = ?, body = ? WHERE id = ?", other.id, other.body, run.calls[1].evidence_id
    )
    copy.change_event(run, "call-recorded", nth=1, evidence_id=other.id)
    found = await copy.divergence(run)
    assert found is not None
    assert (found.what, found.recorded, found.replayed) == ("value", 20, 21)
    assert "$.rest[0]" in found.message


async def test_a_changed_blob_does_not_hold(bench: Bench, tmp_path: Path) -> None:
    run = await (await bench.session()).run("text = await df.tool.t.long(size=90_000)\nlen(text)")
    record = bench.workspace.store.evidence.get(run.calls[0].evidence_id)
    assert isinstance(record.outcome, Success)
    address = getattr(record.outcome.result, "digest", "")
    copy = Copy(bench, tmp_path)
    path = copy.root / bench.workspace.store.blobs.path(address).relative_to(bench.workspace.root)
    path.write_bytes(path.read_bytes().replace(b"xx", b"xy", 1))
    with pytest.raises(VerificationError) as found:
        await copy.divergence(run)
    assert found.value.code == "blob-damaged"


@pytest.mark.parametrize(
    ("before", "after", "what", "line"),
    [
        ("ten(n=1)", "ten(n=7)", "arguments", 3),
        ("first = await df.tool.t.ten(n=1)", "first = 10", "order", 4),
        ("(2, 3)", "(2, 3, 4)", "call", 4),
        ("(2, 3)", "(2,)", "missing", 4),
        ('"first": first', '"first": 11', "value", None),
        ('"first": first', '"other": first', "value", None),
        ("df.budget()", "df.calls()", "session", 5),
        ("df.budget()", "pass", "missing", 5),
        ('{"first"', '1 / 0\n{"first"', "error", 6),
        ('{"first": first, "rest": rest}', "exit()", "error", 6),
    ],
)
async def test_a_changed_script_is_found_at_its_first_difference(
    bench: Bench, run: Run, tmp_path: Path, before: str, after: str, what: str, line: int | None
) -> None:
    copy = Copy(bench, tmp_path)
    copy.change_event(run, "run-requested", source=SCRIPT.replace(before, after))
    found = await copy.divergence(run)
    assert found is not None
    assert (found.what, found.line) == (what, line)
    assert found.as_json()["message"]


async def test_arguments_are_shown_as_they_were_and_as_they_are(
    bench: Bench, run: Run, tmp_path: Path
) -> None:
    copy = Copy(bench, tmp_path)
    copy.change_event(run, "run-requested", source=SCRIPT.replace("n=1", "n='x'"))
    found = await copy.divergence(run)
    assert found is not None
    assert (found.operation, found.recorded, found.replayed) == ("tool.t.ten", {"n": 1}, {"n": "x"})


async def test_another_order_of_ends_is_followed_and_tells(bench: Bench, tmp_path: Path) -> None:
    """The log's order is what the script is told: swapping two ends changes what it makes of them."""
    source = """
import asyncio
seen = []
async def one(n):
    seen.append(await df.tool.t.ten(n=n))
await asyncio.gather(one(1), one(2))
seen
"""
    run = await (await bench.session()).run(source)
    copy = Copy(bench, tmp_path)
    copy.swap_ends(run)
    found = await copy.divergence(run)
    assert found is not None
    assert (found.what, found.recorded, found.replayed) == ("value", 10, 20)


async def test_an_end_that_could_not_come_first_is_told(bench: Bench, tmp_path: Path) -> None:
    run = await (await bench.session()).run(
        "a = await df.tool.t.ten(n=1)\nb = await df.tool.t.ten(n=2)\na + b"
    )
    copy = Copy(bench, tmp_path)
    copy.swap_ends(run)
    found = await copy.divergence(run)
    assert found is not None
    assert (found.what, found.line, found.recorded) == ("order", 1, {"operation": "tool.t.ten", "line": 2})


async def test_a_preamble_that_the_log_lost_is_damage(bench: Bench, tmp_path: Path) -> None:
    session = await bench.session()
    await session.set_preamble(key="k", code="def f():\n    return 1")
    run = await session.run("f()")
    copy = Copy(bench, tmp_path)
    copy.change("DELETE FROM events WHERE session = ? AND kind = 'preamble-set'", bench.name)
    with pytest.raises(VerificationError, match="does not hold the preamble"):
        await copy.divergence(run)


@pytest.mark.parametrize(
    ("kind", "changes", "why"),
    [
        ("run-started", {"tree": None}, "did not keep what a replay needs"),
        ("call-recorded", {"given": None}, "did not keep what a replay needs"),
        ("run-settled", {"timers": [1] * 50_001}, "more timers"),
    ],
)
async def test_a_log_without_what_a_replay_needs_says_so(
    bench: Bench, run: Run, tmp_path: Path, kind: str, changes: dict[str, Any], why: str
) -> None:
    copy = Copy(bench, tmp_path)
    copy.change_event(run, kind, **changes)
    with pytest.raises(FailedError, match=why) as found:
        await copy.divergence(run)
    assert found.value.code == "replay-impossible"


async def test_a_journal_is_enough(bench: Bench, run: Run, tmp_path: Path) -> None:
    session = await bench.session()
    await session.set_preamble(key="k", code="def f(x):\n    return x['rest']")
    long = await session.run("'y' * 30_000")
    late = await session.run(
        "[f(results[1].data), len(await results[0].load()), df.unknown(question='q', domain='d')]"
    )
    assert late.status == "succeeded", late.error
    journal = bench.workspace.journal(bench.name)
    assert journal is not None
    async with Workspace.open(tmp_path / "elsewhere") as other:
        restore(journal.path, other.store)
        for one in (run, long, late):
            replay = await other.replay(one.run_id)
            assert (replay.divergence, replay.same_output) == (None, True)


async def test_a_cut_journal_replays_what_it_holds(bench: Bench, run: Run, tmp_path: Path) -> None:
    last = await (await bench.session()).run("1")
    journal = bench.workspace.journal(bench.name)
    assert journal is not None
    torn = tmp_path / journal.path.name
    torn.write_bytes(journal.path.read_bytes()[:-20])
    async with Workspace.open(tmp_path / "elsewhere") as other:
        restore(torn, other.store)
        assert (await other.replay(run.run_id)).same
        with pytest.raises(AffidavitError, match="is not settled"):
            await other.replay(last.run_id)


async def test_a_run_that_asked_the_session_too_often_is_not_replayed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("affidavit.runtime.replay.asides.MAX_ASIDES", 3)
    few = await (await bench.session()).run("[df.budget()['calls_left'] for _ in range(3)]")
    many = await (await bench.session()).run("[df.budget()['calls_left'] for _ in range(4)]")
    assert (await bench.workspace.replay(few.run_id)).same
    with pytest.raises(FailedError, match="too often"):
        await bench.workspace.replay(many.run_id)
