"""`df.kit` as the check and the record see it: typed, and neither called nor granted."""

from pathlib import Path

import pytest

from affidavit.workspace import Workspace

_GOOD = [
    'df.kit.to_number("2") + 1',
    'sum(df.kit.to_number(row, "n") for row in df.kit.rows_of({"rows": [{"n": "1"}, {"n": 2}]}))',
    'df.kit.get({"a": {}}, "a.b", 3)',
    'reply = df.kit.unwrap("{\\"data\\": {\\"x\\": 3}}")\nreply["x"]',
    'rows = df.kit.rows_of([{"x": 3}])\nrows[0]["x"]',
    "k = df.kit\nk.get([1, 2, 3], [-1])",
]
_BAD = [
    ('df.kit.gte({}, "a")', "get"),
    ("df.kit.rows({})", "rows_of"),
    ('df.kit.get({}, "a", defualt=1)', "default"),
    ('df.kit.to_number("1", thousand=",")', "thousands"),
    ('df.kit.to_number("1").bit_lenght', ""),
]


@pytest.mark.parametrize("source", _GOOD)
async def test_a_script_with_it_passes_the_check_and_records_nothing(tmp_path: Path, source: str) -> None:
    async with Workspace.open(tmp_path) as workspace:
        run = await (await workspace.session()).run(source)
        assert (run.status, run.data, len(run.calls)) == ("succeeded", 3, 0), run.error
        assert workspace.store.evidence.list() == []


@pytest.mark.parametrize(("source", "meant"), _BAD)
async def test_a_misspelt_one_is_refused_before_it_runs(tmp_path: Path, source: str, meant: str) -> None:
    async with Workspace.open(tmp_path) as workspace:
        run = await (await workspace.session()).run(source)
        assert run.status == "rejected"
        assert meant in str(run.diagnostics)
