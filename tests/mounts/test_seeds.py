"""Hand-written helpers that mounts bring into `df.lib`: typed, pinned, and run where scripts run."""

from pathlib import Path
from typing import Any

import pytest

from affidavit.errors import UsageError
from affidavit.evidence.record import JsonValue
from affidavit.extensions import Description, HelperModule, Mount, Snapshot, Source
from affidavit.interfaces.cli import run as run_cli
from affidavit.mounts.python import PythonAdapter
from affidavit.mounts.seeds import operations_of
from affidavit.store.journal import JournalSettings
from affidavit.workspace import Workspace

TOOLS = "def price(item: str) -> int:\n    return {'pear': 3, 'fig': 5}[item]\n"
HELPERS = '''\
from typing import TypedDict
import math

RATE = 1.5


class Bill(TypedDict):
    item: str
    total: float


def _rounded(value: float) -> float:
    return float(math.floor(value))


async def bill(item: str, count: int = 1, *, fair: bool = True) -> Bill:
    """What so many of an item cost."""
    one = await df.tool.shop.price(item=item)
    return {"item": item, "total": _rounded(one * count * (1 if fair else RATE))}


async def dearest(items: list[str]) -> str:
    bills = [await bill(item) for item in items]
    return max(bills, key=lambda one: one["total"])["item"]
'''


@pytest.fixture(autouse=True)
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "helpers.py").write_text(HELPERS)


def mounted(workspace: Workspace, **options: Any) -> None:
    workspace.mount("shop=python:tools.py", options={"helpers": ["helpers.py"], **options})


async def test_a_helper_is_called_like_an_operation_and_its_calls_are_recorded(tmp_path: Path) -> None:
    async with Workspace.open("w") as workspace:
        mounted(workspace)
        session = await workspace.session()
        run = await session.run(
            'found = await df.lib.bill("pear", count=3, fair=False)\n'
            '[found["total"], await df.lib.dearest(items=["pear", "fig"])]'
        )
        assert (run.status, run.data) == ("succeeded", [13.0, "fig"]), run.error
        assert [(call.operation, call.line) for call in run.calls] == [
            ("tool.shop.price", 1),
            ("tool.shop.price", 2),
            ("tool.shop.price", 2),
        ]


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ("await df.lib.bil('pear')", "bill"),
        ("await df.lib.bill(itm='pear')", "item"),
        ("(await df.lib.bill('pear'))['totl']", "total"),
        ("found = df.lib.bill('pear')\nfound['total']", "bill"),
    ],
)
async def test_scripts_are_checked_against_it(source: str, word: str) -> None:
    async with Workspace.open("w") as workspace:
        mounted(workspace)
        run = await (await workspace.session()).run(source)
        assert run.status == "rejected"
        assert word in str(run.diagnostics)


async def test_it_is_pinned_until_it_is_mounted_again(tmp_path: Path) -> None:
    async with Workspace.open("w") as workspace:
        mounted(workspace)
        before = workspace.mounted("shop").as_json()["helpers"]
        (tmp_path / "helpers.py").write_text("async def other() -> int:\n    return 2\n")
        assert (await (await workspace.session()).run("(await df.lib.bill('fig'))['total']")).data == 5.0
        workspace.mount("shop")
        after = workspace.mounted("shop").as_json()["helpers"]
        assert before[0]["key"] == after[0]["key"] == "helpers.py"
        assert before[0]["digest"] != after[0]["digest"]
        assert (await (await workspace.session()).run("await df.lib.other()")).data == 2


async def test_a_run_is_replayed_with_the_helper_that_ran(tmp_path: Path) -> None:
    async with Workspace.open("w", journal=JournalSettings(folder=tmp_path / "journal")) as workspace:
        mounted(workspace)
        run = await (await workspace.session()).run("await df.lib.dearest(['pear', 'fig'])")
        workspace.unmount("shop")
        assert (await workspace.replay(run.run_id)).same


@pytest.mark.parametrize(
    ("code", "line", "words"),
    [
        ("async def f() -> int:\n    return (\n", 2, "never closed"),
        ("async def f() -> int:\n    return 1\n\nawait f()\n", 4, "await"),
        ("print('hello')\nasync def f() -> int:\n    return 1\n", 1, "only imports and defines"),
        ("def f() -> int:\n    return 1\n", 1, "no async def"),
        ("X = 1\n", 1, "defines no helper"),
        ("async def f(x) -> int:\n    return 1\n", 1, "does not say what x is"),
        ("async def f():\n    return 1\n", 1, "does not say what it returns"),
        ("async def f(*x: int) -> int:\n    return 1\n", 1, "in its definition"),
        ("import datetime\nasync def f() -> datetime.date: ...\n", 2, "do not know the type datetime"),
        ("async def f() -> int:\n    return await df.tool.shop.prise(item='fig')\n", 2, "prise"),
        ("async def f() -> int:\n    x = 1\n    return y\n", 3, "y"),
        ("async def f() -> int:\n    return await df.tool.shop.price(itm='fig')\n", 2, "itm"),
        ("async def f() -> int:\n    return 'x'\n", 2, "Return type"),
    ],
)
async def test_one_that_cannot_be_is_refused_with_key_and_line(
    tmp_path: Path, code: str, line: int, words: str
) -> None:
    (tmp_path / "helpers.py").write_text(code)
    async with Workspace.open("w") as workspace:
        with pytest.raises(UsageError, match=rf"helper helpers.py:{line}: ") as caught:
            mounted(workspace)
        assert caught.value.code == "mount-invalid"
        assert caught.value.details == {"key": "helpers.py", "line": line}
        assert words in caught.value.message
        assert workspace.mounts() == []


@pytest.mark.parametrize("helpers", ["helpers.py", [1], ["none.py"], ["odd.py"]])
async def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, helpers: JsonValue) -> None:
    (tmp_path / "odd.py").write_bytes(b"\xff")
    async with Workspace.open("w") as workspace:
        with pytest.raises(UsageError, match="helper"):
            mounted(workspace, helpers=helpers)


async def test_the_project_file_brings_them_to_its_tenants_alone(tmp_path: Path) -> None:
    (tmp_path / "affidavit.toml").write_text(
        '[mounts.shop]\nuri = "python:tools.py"\nhelpers = ["helpers.py"]\ntenants = ["a"]\n'
    )
    for tenant, known in (("a", True), ("b", False)):
        async with Workspace.open("w", tenant=tenant) as workspace:
            run = await (await workspace.session()).run("await df.lib.bill('fig')")
            assert (run.status == "succeeded") is known, run.error


async def test_a_name_that_two_mounts_bring_is_told(tmp_path: Path) -> None:
    async with Workspace.open("w") as workspace:
        mounted(workspace)
        (tmp_path / "helpers.py").write_text("async def bill() -> int:\n    return 0\n")
        workspace.mount("stall=python:tools.py", options={"helpers": ["helpers.py"]})
        assert (await (await workspace.session()).run("(await df.lib.bill('fig'))['total']")).data == 5.0
        assert any("df.lib.bill is brought by two mounts" in notice for notice in workspace.notices())


def test_it_is_described_and_cannot_be_called_from_outside(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["mount", "add", "shop=python:tools.py", "--option", 'helpers=["helpers.py"]']) == 0
    assert run_cli(["describe", "df.lib.bill"]) == 0
    assert "What so many of an item cost." in capsys.readouterr().out
    assert run_cli(["call", "lib.bill"]) != 0
    Path("script.py").write_text("await df.lib.bill('fig')")
    assert run_cli(["run", "script.py", "--engine", "monty"]) == 1
    assert "helpers run on cpython alone" in capsys.readouterr().err


async def test_an_error_in_it_is_the_scripts(tmp_path: Path) -> None:
    async with Workspace.open("w") as workspace:
        mounted(workspace)
        run = await (await workspace.session()).run("x = 1\nawait df.lib.bill('none')")
        assert run.error is not None
        assert (run.status, run.error["code"], run.error["line"]) == ("failed", "tool-failed", 2)


class Seeding(PythonAdapter):
    """An adapter that brings a helper of its own."""

    name = "seeding"

    def probe(self, uri: str, head: bytes) -> bool:
        return uri.startswith("seeding:")

    async def describe(self, source: Source) -> Description:
        code = f"async def cheapest() -> int:\n    return await df.tool.{source.name}.price(item='pear')\n"
        return Description(
            contents=None,
            summary="seeds",
            snapshot=Snapshot(identity="", basis="a test"),
            helpers=(HelperModule(key="seed", code=code),),
        )

    def open(self, source: Source, contents: JsonValue) -> Mount:
        return super().open(
            Source(
                name=source.name, uri="python:tools.py", folder=source.folder, options={}, secret=source.secret,
                tell=source.tell, cache=source.cache,
            ),
            contents,
        )  # fmt: skip


async def test_an_adapter_brings_one_under_the_mounts_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Workspace.open("w") as workspace:
        monkeypatch.setattr("affidavit.mounts.opened.load_mounts", lambda: [(Point(), Seeding())])
        workspace.mount("any=seeding:x")
        assert (await (await workspace.session()).run("await df.lib.cheapest()")).data == 3


class Point:
    """An entry point's name."""

    name = "seeding"


def test_a_module_that_is_too_large_is_refused() -> None:
    with pytest.raises(UsageError, match="more than 65536 bytes"):
        operations_of(HelperModule(key="k", code="#" * (1 << 17)))


def test_a_helper_is_no_call_of_its_own() -> None:
    made = operations_of(HelperModule(key="k", code=HELPERS))
    assert list(made) == ["bill", "dearest"]
    assert [(one.name, one.required, one.positional) for one in made["bill"].parameters] == [
        ("item", True, True),
        ("count", False, True),
        ("fair", False, False),
    ]
