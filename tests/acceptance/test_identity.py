"""The same script on the same bytes gives the same evidence ids, wherever and by whomever it is run."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

import pytest

from affidavit import Run, Workspace
from affidavit.evidence.record import Failure

ROOT = Path(__file__).parents[2]
APP = ROOT / "examples" / "small_app"

REQUIREMENTS = ("requirements/base.txt", "requirements/build.txt")

# Written so that both engines accept it.
SCRIPT = """
counts = {}
offset = 0
done = False
while not done:
    page = await df.db.app.modules.page(where={"path": "main.js"}, offset=offset, limit=1)
    for row in page.rows:
        counts[row["identity"]["key"]] = row["sites"]
    offset = offset + 1
    done = page.page.exhausted
try:
    await df.db.app.modules.get(id="no-such-module")
except df.Error as error:
    counts["error"] = error.code
df.answer(status="answered", value=counts, derivation="sites of each module of main.js")
"""


async def run(root: Path, app: Path = APP, *, name: str = "app", engine: str = "cpython") -> Run:
    async with Workspace.open(root) as workspace:
        session = await workspace.session("s", mounts=[f"{name}={app}"])
        done = await session.run(SCRIPT.replace("df.db.app.", f"df.db.{name}."), engine=engine)
    assert done.status == "succeeded", done.error
    assert done.engine == engine
    return done


def ids(done: Run) -> list[str]:
    return [call.evidence_id for call in done.calls]


async def test_on_two_workspaces_two_paths_and_two_engines(tmp_path: Path) -> None:
    first = await run(tmp_path / "a")
    elsewhere = shutil.copytree(APP, tmp_path / "deep" / "er" / "renamed")
    second = await run(tmp_path / "b", elsewhere)
    third = await run(tmp_path / "c", engine="monty")
    assert len(set(ids(first))) == len(ids(first)) >= 4
    assert ids(first) == ids(second) == ids(third)
    assert first.answer == second.answer == third.answer
    assert first.answer is not None
    assert str(first.answer["evidence_id"]).startswith("ev1_")


async def test_under_two_mount_names(tmp_path: Path) -> None:
    assert ids(await run(tmp_path / "a")) == ids(await run(tmp_path / "b", name="other"))


async def test_a_changed_byte_changes_every_id(tmp_path: Path) -> None:
    changed = shutil.copytree(APP, tmp_path / "changed")
    main = changed / "main.js"
    main.write_bytes(main.read_bytes() + b"\n")
    before, after = await run(tmp_path / "a"), await run(tmp_path / "b", changed)
    assert set(ids(before)).isdisjoint(ids(after))


async def test_the_failed_call_has_a_record(tmp_path: Path) -> None:
    done = await run(tmp_path / "a")
    assert [call.status for call in done.calls][-1] == "failed"
    async with Workspace.open(tmp_path / "a") as workspace:
        outcome = workspace.store.evidence.get(ids(done)[-1]).outcome
    assert isinstance(outcome, Failure)
    assert outcome.code == "item-not-found"


def skip(reason: str) -> None:
    """Skip where a machine lacks a part; in CI that is a failure."""
    if os.environ.get("CI"):
        pytest.fail(f"CI must have it: {reason}")
    pytest.skip(reason)


def other_python(version: str) -> str:
    """An interpreter of this version, on the path or among those of pyenv; asked for its version."""
    places = [shutil.which(f"python{version}")]
    places += [str(path) for path in Path.home().glob(f".pyenv/versions/{version}*/bin/python{version}")]
    for place in places:
        code = f"import sys; assert sys.version.startswith('{version}.')"
        if place and subprocess.run([place, "-c", code], capture_output=True).returncode == 0:
            return place
    skip(f"no python{version} here")
    raise AssertionError


def uv() -> str:
    for place in (shutil.which("uv"), str(ROOT / ".cache" / "bootstrap" / "bin" / "uv")):
        if place and Path(place).is_file():
            return place
    skip("no uv here")
    raise AssertionError


def remote(interpreter: list[str], root: Path, script: Path, *, app: Path = APP, **options: Any) -> list[str]:
    """Run the script through the command line of another interpreter."""
    command = [
        *interpreter,
        "-m",
        "affidavit",
        "run",
        str(script),
        "--mount",
        f"app={app}",
        "--workspace",
        str(root),
    ]
    done = subprocess.run(
        [*command, "--engine", "cpython", "--json"], capture_output=True, text=True, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [call["evidence_id"] for call in json.loads(done.stdout)["calls"]]


async def test_on_python_3_13(tmp_path: Path) -> None:
    interpreter, tool = other_python("3.13"), uv()
    venv = ROOT / ".cache" / "python-3.13"
    made = venv / "bin" / "python"
    environment = os.environ | {"UV_PYTHON_DOWNLOADS": "never"}

    def install(*words: str) -> None:
        subprocess.run([tool, *words], check=True, capture_output=True, env=environment, cwd=ROOT)

    install("venv", "--quiet", "--allow-existing", "--python", interpreter, str(venv))
    install("pip", "sync", "--quiet", "--python", str(made), "--require-hashes", *REQUIREMENTS)
    install(
        "pip", "install", "--quiet", "--python", str(made), "--no-deps", "--no-build-isolation", "-e", "."
    )
    (tmp_path / "script.py").write_text(SCRIPT)
    found = remote([str(made)], tmp_path / "b", tmp_path / "script.py")
    assert found == ids(await run(tmp_path / "a"))


def test_by_another_user(tmp_path: Path) -> None:
    """An ordinary user with a home, a workspace and a copy of the bytes of their own."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    python = next(
        (place for place in (f"/usr/bin/{name}", f"/usr/local/bin/{name}") if Path(place).exists()), ""
    )
    if os.getuid() != 0 or not python or shutil.which("setpriv") is None:
        pytest.skip("needs root, setpriv and an interpreter of this version that others may read")
    other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
    with tempfile.TemporaryDirectory(dir="/tmp") as made:
        folder = Path(made)
        app = shutil.copytree(APP, folder / "app")
        (folder / "script.py").write_text(SCRIPT)
        subprocess.run(["chown", "-R", "65534:65534", made], check=True)
        path = f"{ROOT / 'src'}:{sysconfig.get_path('purelib')}"
        environment = {"PYTHONPATH": path, "HOME": made, "USER": "nobody", "PATH": "/usr/bin:/bin"}
        seen = subprocess.run([*other, python, "-c", "import affidavit, orjson"], env=environment, cwd=made)
        if seen.returncode != 0:
            pytest.skip("the checkout cannot be read by others")
        found = remote(
            [*other, python], folder / "w", folder / "script.py", app=app, env=environment, cwd=made
        )
    assert found == ids(asyncio.run(run(tmp_path / "a")))
