"""`df.unknown` in scripts: opening, reading and revising, on both engines, and what of it is kept."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from affidavit import Workspace
from affidavit.errors import AffidavitError, FailedError
from affidavit.evidence.unknowns import opened, revision_digest, unknown_id
from affidavit.mounts.python import functions_namespace
from affidavit.runtime.run import Run
from affidavit.runtime.unknowns import PARAMETERS, Inquiry, is_refusal
from affidavit.store import Store
from affidavit.store.journal import restore
from affidavit.store.unknowns import KIND, REGISTER, Unknowns, read_revision

ENGINES = ["cpython", "monty"]
ABSENT = "ev1_" + "00" * 32


def look(n: int) -> int:
    """Returns n."""
    return n


@pytest.fixture
async def workspace(tmp_path: Path) -> AsyncIterator[Workspace]:
    async with Workspace.open(tmp_path / "workspace", journal=tmp_path / "journals") as opened_workspace:
        opened_workspace.use(functions_namespace("t", [look]))
        yield opened_workspace


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "plain") as opened_store:
        yield opened_store


async def value_of(workspace: Workspace, source: str, engine: str = "cpython", session: str = "s1") -> Any:
    run = await (await workspace.session(session)).run(source, engine=engine)
    assert run.status == "succeeded", (run.error, run.diagnostics)
    assert [it for it in run.diagnostics if it["blocking"]] == []
    return run.data


WHOLE = """
page = await df.tool.t.look(n=3)
seen = [call["evidence_id"] for call in df.calls()]
first = df.unknown(
    question="Which  library parses dates?", domain="javascript", severity="high", supports=seen, probes=["read it"]
)
again = df.unknown(question="Which library parses dates?", domain="javascript", severity="low")
other = df.unknown(question="Is it vulnerable?", domain="javascript", relations=[
    {"kind": "depends-on", "unknown": first["id"]}
])
second = df.unknown(id=first["id"], expect=first["revision"], status="resolved", resolution="verified")
read = df.unknown(id=first["id"])
{"seen": seen, "first": first, "again": again, "other": other, "second": second, "read": read}
"""


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_script_opens_reads_and_revises(workspace: Workspace, engine: str) -> None:
    told = await value_of(workspace, WHOLE, engine)
    first, second = told["first"], told["second"]
    document = opened(
        {
            "question": "Which library parses dates?",
            "domain": "javascript",
            "severity": "high",
            "supports": told["seen"],
            "probes": ["read it"],
        }
    )
    assert (first["id"], first["digest"]) == (unknown_id(document), revision_digest(document))
    assert first == {
        "id": unknown_id(document),
        "revision": 1,
        "digest": revision_digest(document),
        "made": True,
        "question": "Which library parses dates?",
        "domain": "javascript",
        "scope": None,
        "severity": "high",
        "status": "open",
        "resolution": None,
        "supports": told["seen"],
        "contradicts": [],
        "required_authority": None,
        "required_confidence": None,
        "relations": [],
        "probes": ["read it"],
        "note": "",
    }
    assert told["again"] == first | {"made": False}
    assert (second["revision"], second["status"], second["resolution"]) == (2, "resolved", "verified")
    assert told["read"] == second | {"made": False}
    assert told["other"]["relations"] == [{"kind": "depends-on", "unknown": first["id"]}]


async def test_both_engines_make_the_same(workspace: Workspace, tmp_path: Path) -> None:
    async with Workspace.open(tmp_path / "second") as second:
        second.use(functions_namespace("t", [look]))
        assert await value_of(second, WHOLE, "monty") == await value_of(workspace, WHOLE, "cpython")


@pytest.mark.parametrize("engine", ENGINES)
async def test_an_unknown_outlives_its_session(workspace: Workspace, engine: str) -> None:
    name = await value_of(workspace, "df.unknown(question='q', domain='d')['id']", engine, "s1")
    source = f"df.unknown(id='{name}', expect=1, status='investigating')['revision']"
    assert await value_of(workspace, source, engine, "s2") == 2
    again = "u = df.unknown(question='q', domain='d')\n[u['made'], u['revision'], u['status']]"
    assert await value_of(workspace, again, engine, "s3") == [False, 2, "investigating"]


REFUSED = [
    ("question='q'", "unknown-invalid", "domain"),
    ("domain='d'", "unknown-invalid", "question"),
    ("question='q', domain='d', expect=1", "unknown-invalid", "expect"),
    ("question='q', domain='d', status='resolved'", "unknown-invalid", "resolution"),
    ("question='q', domain='d', supports=['ev1_12']", "unknown-invalid", "supports"),
    (f"question='q', domain='d', supports=['{ABSENT}']", "evidence-not-found", None),
    (f"question='q', domain='d', supports='{ABSENT}'", "unknown-invalid", "supports"),
    (f"id='unk1_{'00' * 32}'", "unknown-not-found", None),
    (f"id='unk1_{'00' * 32}', expect=1", "unknown-not-found", None),
    ("id=name, status='blocked'", "unknown-invalid", "expect"),
    ("id=name, expect=2, status='blocked'", "revision-conflict", None),
    ("id=name, expect=1.0, status='blocked'", "unknown-invalid", "expect"),
    ("id=name, expect=True, status='blocked'", "unknown-invalid", "expect"),
    ("id=name, expect=1, question='another'", "unknown-invalid", "question"),
    ("id=3", "unknown-invalid", "id"),
    ("id=name, expect=1, status='resolved', resolution='verified'", "unknown-invalid", "supports"),
    ("id=name, expect=1, note={'a': 1}", "unknown-invalid", "note"),
]


@pytest.mark.parametrize("engine", ENGINES)
async def test_what_cannot_be_is_an_error_of_the_script(workspace: Workspace, engine: str) -> None:
    await value_of(workspace, "df.unknown(question='there', domain='d')", engine)
    # Some of these the check refuses beforehand, and rightly; behind arguments of any type it cannot.
    lines = ["from typing import Any", "def ask(**given: Any):", "    return df.unknown(**given)"]
    lines += ["name = ask(question='there', domain='d')['id']", "out = []"]
    for arguments, _, _ in REFUSED:
        lines += [
            "try:",
            f"    ask({arguments})",
            "    out.append(None)",
            "except df.Error as error:",
            "    out.append([error.code, error.details])",
        ]
    source = "\n".join([*lines, "out"])
    told = await value_of(workspace, source, engine)
    for (arguments, code, field), found in zip(REFUSED, told, strict=True):
        assert found is not None, arguments
        assert (found[0], found[1].get("field")) == (code, field), arguments
    assert len(Unknowns(workspace.store).all()) == 1
    assert Unknowns(workspace.store).all()[0].revision == 1


@pytest.mark.parametrize("engine", ENGINES)
async def test_an_uncaught_refusal_fails_the_run_and_names_the_next_step(
    workspace: Workspace, engine: str
) -> None:
    session = await workspace.session("s1")
    run = await session.run("df.unknown(question='q', domain='d', supports=['ev1_12'])", engine=engine)
    assert (run.status, run.error and run.error["code"]) == ("failed", "unknown-invalid")
    assert run.error is not None
    assert run.error["hint"]


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ("df.unknown(question='q', domain='d', severity='urgent')", "severity"),
        ("df.unknown(question='q', domain='d', sevrity='high')", "sevrity"),
        ("df.unknown('q', domain='d')", "positional"),
        ("df.unknown(question='q', domain='d')['statos']", "statos"),
    ],
)
async def test_what_is_provably_wrong_is_refused_before_it_runs(
    workspace: Workspace, source: str, rule: str
) -> None:
    run = await (await workspace.session("s1")).run(source)
    assert run.status == "rejected", run.diagnostics
    assert any(rule in it["message"] for it in run.diagnostics if it["blocking"]), run.diagnostics
    assert Unknowns(workspace.store).all() == []


async def test_the_stub_and_the_engines_know_the_same_parameters(workspace: Workspace) -> None:
    stubs = (await workspace.session("s1")).catalogue.stubs
    declared = stubs[stubs.index("def unknown(") : stubs.index("-> UnknownInfo")]
    assert all(f"{name}: " in declared for name in PARAMETERS)
    assert declared.count(" = None") == len(PARAMETERS)


async def test_runs_and_answers_are_as_before(workspace: Workspace) -> None:
    source = (
        "await df.tool.t.look(n=1)\ndf.unknown(question='q', domain='d')\n"
        "df.answer(status='answered', value=1)\n[c['operation'] for c in df.calls()]"
    )
    session = await workspace.session("s1")
    run: Run = await session.run(source)
    assert (run.status, run.data) == ("succeeded", ["tool.t.look"])
    assert run.answer is not None
    assert run.answer["evidence"] == [call.evidence_id for call in run.calls]
    [view] = session.runs()
    assert (view.status, len(view.calls), view.started) == ("succeeded", 1, ())


async def test_the_session_and_its_journal_tell_of_each_revision(
    workspace: Workspace, tmp_path: Path
) -> None:
    await value_of(workspace, WHOLE, session="s1")
    [run] = (await workspace.session("s1")).runs()
    told = [event for event in workspace.store.events.of_session("s1") if event.kind == KIND]
    assert [read_revision(event).revision for event in told] == [1, 1, 2]
    assert {event.run for event in told} == {run.run_id}
    journal = workspace.journal("s1")
    assert journal is not None
    await workspace.close()
    with Store.open(tmp_path / "restored") as store:
        done = restore(journal.path, store)
        assert done.conflicts == ()
        again = restore(journal.path, store)
        assert (again.events, again.records) == (0, 0)
        unknowns = Unknowns(store)
        assert [one.revision for one in unknowns.all()] == [2, 1]
        name = unknown_id(unknowns.all()[1])
        assert unknowns.revise(name, 1, {"status": "blocked"})[1] is True
        assert len(store.events.of_session(REGISTER)) == 4


async def test_a_journal_that_contradicts_the_register_is_restored_without_it(
    workspace: Workspace, tmp_path: Path
) -> None:
    await value_of(workspace, "df.unknown(question='q', domain='d', severity='high')['id']", session="s1")
    journal = workspace.journal("s1")
    assert journal is not None
    await workspace.close()
    with Store.open(tmp_path / "restored") as store:
        here, _ = Unknowns(store).open({"question": "q", "domain": "d", "severity": "low"})
        done = restore(journal.path, store)
        assert len(done.conflicts) == 1
        assert done.as_json()["conflicts"] == list(done.conflicts)
        assert Unknowns(store).all() == [here]
        assert [event.kind for event in store.events.of_session("s1")].count(KIND) == 1


class Broken(Store):
    """A store whose disk fills up when an unknown is revised."""

    def append_new(self, events: Any, kept: Any = Store.append_new) -> Any:
        if any(event.kind == KIND for event in events):
            raise FailedError("store-full", "no room left")
        return kept(self, events)


async def test_a_revision_that_cannot_be_kept_ends_the_run(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await workspace.session("s1")
    monkeypatch.setattr(Store, "append_new", Broken.append_new)
    run = await session.run("try:\n    df.unknown(question='q', domain='d')\nexcept Exception:\n    pass\n1")
    assert (run.status, run.error and run.error["code"]) == ("failed", "store-full")


def test_a_run_makes_a_bounded_number_of_revisions(store: Store) -> None:
    inquiry = Inquiry(Unknowns(store), session="s1", run="r1")
    first = inquiry.ask({"question": "q", "domain": "d"})
    for n in range(999):
        inquiry.ask({"id": first["id"], "expect": n + 1, "note": str(n)})
        assert inquiry.ask({"id": first["id"]})["revision"] == n + 2
    with pytest.raises(AffidavitError) as raised:
        inquiry.ask({"question": "r", "domain": "d"})
    assert raised.value.code == "budget-exceeded"
    assert is_refusal(raised.value)
    assert inquiry.ask({"id": first["id"]})["revision"] == 1000
    assert Inquiry(Unknowns(store), session="s1", run="r2").ask({"question": "r", "domain": "d"})["made"]


async def test_the_registers_name_is_no_session_id(workspace: Workspace) -> None:
    with pytest.raises(AffidavitError, match="cannot be a session's id"):
        await workspace.session(REGISTER)
