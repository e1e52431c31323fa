from pathlib import Path

import pytest

from affidavit.workspace import Workspace

TOOLS = """
def rows(n: int):
    '''Rows of something.'''
    return {"rows": [{"id": at, "name": "x" * at} if at % 2 else {"id": None} for at in range(n)]}

def typed(n: int) -> int:
    return n
"""


@pytest.fixture(autouse=True)
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tools.py").write_text(TOOLS)


async def doc(workspace: Workspace, name: str = "rows") -> str:
    return (await workspace.session()).catalogue.operations[f"tool.py.{name}"].doc


async def test_what_was_returned_is_told_and_widened(tmp_path: Path) -> None:
    async with Workspace.open("w") as workspace:
        workspace.mount("py=python:tools.py")
        assert await doc(workspace) == "Rows of something."
        session = await workspace.session()
        first = await session.run("await df.tool.py.rows(n=1)\nawait df.tool.py.typed(n=3)")
        told = await doc(workspace)
        assert "Observed in 1 recorded replies, and not promised: RowsReply" in told
        assert "id: None" in told
        assert f"Example, of {first.calls[0].evidence_id[:16]}: " + '{"rows":[{"id":null}]}' in told
        await session.run("await df.tool.py.rows(n=40)")
        told = await doc(workspace)
        assert "Observed in 2 recorded replies" in told
        assert "id: int | None" in told
        assert "name: NotRequired[str]" in told
        assert "characters)" in told
        assert await doc(workspace, "typed") == ""


async def test_a_script_is_not_checked_against_it(tmp_path: Path) -> None:
    async with Workspace.open("w") as workspace:
        workspace.mount("py=python:tools.py")
        await (await workspace.session()).run("await df.tool.py.rows(n=1)")
        (tmp_path / "tools.py").write_text(TOOLS.replace('"rows":', '"more":'))
    async with Workspace.open("w") as workspace:
        run = await (await workspace.session()).run("(await df.tool.py.rows(n=2))['more'][1]['name'].upper()")
        assert (run.status, run.data) == ("succeeded", "X"), run.error


async def test_another_tenant_is_told_nothing(tmp_path: Path) -> None:
    async with Workspace.open("w", tenant="a") as workspace:
        workspace.mount("py=python:tools.py")
        await (await workspace.session()).run("await df.tool.py.rows(n=1)")
    async with Workspace.open("w", tenant="b") as workspace:
        workspace.mount("py=python:tools.py")
        assert await doc(workspace) == "Rows of something."
