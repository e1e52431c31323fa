"""One line each mounts an MCP server and a database; a checked script joins them and answers with evidence."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from affidavit import Workspace
from affidavit.evidence import values

SERVER = Path(__file__).parents[2] / "examples" / "weather_server.py"
JOIN = """
by_city = {}
async for page in df.db.shop.store.pages(where={"open": 1}, limit=2):
    for store in page.rows:
        by_city.setdefault(store["city"], []).append(store["sales"] or 0)
forecasts = [await df.tool.wx.forecast(city=city, days=1) for city in sorted(by_city)]
notes = await df.db.notes.search("umbrella sales", limit=1)
df.answer(
    status="answered",
    value={one["city"]: [one["celsius"][0], sum(by_city[one["city"]])] for one in forecasts},
    derivation="sales of open stores by city, with the forecast of each",
    evidence=[call["evidence_id"] for call in df.calls() if not call["operation"].endswith("search")],
)
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "shop.db", isolation_level=None)) as database:
        database.execute(
            "CREATE TABLE store (id INTEGER PRIMARY KEY, city TEXT NOT NULL, sales NUMERIC, open INT NOT NULL)"
        )
        rows = [(1, "Oslo", 120, 1), (2, "Lima", 80.5, 1), (3, "Oslo", None, 1), (4, "Bern", 7, 0)]
        database.executemany("INSERT INTO store VALUES (?, ?, ?, ?)", rows)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "plan.md").write_text("# Plan\n\nUmbrella sales rise with rain.\n")
    return tmp_path


async def test_a_script_joins_mounts_and_answers_with_evidence(place: Path) -> None:
    async with Workspace.open(place / "workspace") as workspace:
        workspace.mount(f"shop={place}/shop.db")
        workspace.mount(f"wx=mcp+stdio:{sys.executable} {SERVER}")
        workspace.mount(f"notes=dir:{place}/notes")
        session = await workspace.session()
        for wrong, word in (
            (JOIN.replace('store["city"]', 'store["town"]'), "town"),
            (JOIN.replace('"open": 1', '"opened": 1'), "opened"),
            (JOIN.replace("forecast(city=city", "forecast(town=city"), "town"),
            (JOIN.replace('limit=1)', 'limits=1)'), "limits"),
        ):  # fmt: skip
            rejected = await session.run(wrong)
            assert rejected.status == "rejected"
            assert word in rejected.error["message"] if rejected.error else False
        run = await session.run(JOIN)
        assert run.status == "succeeded", run.error
        assert run.answer is not None
        assert values.decode(run.answer["value"]) == {"Lima": [4.0, 80.5], "Oslo": [4.0, 120]}
        assert [call.operation for call in run.calls] == [
            "db.shop.store.page", "db.shop.store.page", "tool.wx.forecast", "tool.wx.forecast", "db.notes.search",
        ]  # fmt: skip
        records = [workspace.store.evidence.get(call.evidence_id) for call in run.calls]
        assert [record.authority for record in records] == ["artifact-bytes"] * 2 + ["live-source"] * 2 + [
            "artifact-bytes"
        ]
        assert [record.subject.format if record.subject else "" for record in records] == [
            "sqlite", "sqlite", "", "", "documents",
        ]  # fmt: skip
        assert sorted(run.answer["evidence"]) == sorted({call.evidence_id for call in run.calls[:4]})
        shown = "".join(str(record) for record in records)
        assert str(place) not in shown


async def test_the_same_question_about_the_same_rows_has_the_same_id_under_any_name(place: Path) -> None:
    ids: list[str] = []
    for name in ("one", "two"):
        folder = place / name
        folder.mkdir()
        (folder / f"{name}.sqlite").write_bytes((place / "shop.db").read_bytes())
        async with Workspace.open(folder / "workspace") as workspace:
            workspace.mount(f"{name}={folder}/{name}.sqlite")
            session = await workspace.session()
            run = await session.run(
                f'(await df.db.{name}.store.page(where={{"city": ["Oslo", "Lima"]}})).page.total'
            )
            assert run.data == 3, run.error
            ids += [call.evidence_id for call in run.calls]
    assert len(set(ids)) == 1
