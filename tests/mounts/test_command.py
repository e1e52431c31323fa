"""Programs as tools: words without a shell, what is printed as a value, and nothing left running."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from affidavit.errors import AffidavitError, FailedError, UsageError
from affidavit.mounts.command.adapter import CommandAdapter
from tests.mounts.sources import Opened, opened

PROGRAM = """
import argparse, json, os, sys, time
parser = argparse.ArgumentParser()
parser.add_argument("--offset", type=int, default=0)
parser.add_argument("--tag", action="append")
parser.add_argument("--deep", action="store_true")
parser.add_argument("-w", dest="width")
parser.add_argument("name", nargs="*")
print(json.dumps(vars(parser.parse_args())))
"""
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "array", "items": {"type": "string"}},
        "offset": {"type": "integer"},
        "tag": {"type": "array", "items": {"type": "string"}},
        "deep": {"type": "boolean"},
        "width": {"type": ["string", "null"]},
    },
}
TOOL: dict[str, Any] = {
    "name": "go", "params_json_schema": SCHEMA, "positionals": ["name"], "flags": {"width": "-w"}, "output": "json",
}  # fmt: skip


def program(
    folder: Path,
    text: str,
    tool: Mapping[str, Any] = TOOL,
    options: Mapping[str, Any] | None = None,
    **more: Any,
) -> AbstractAsyncContextManager[Opened]:
    (folder / "p.py").write_text(text)
    uri = f"command:'{sys.executable}' p.py"
    return opened(CommandAdapter(), uri, folder, {"tools": [dict(tool)], **(options or {})}, **more)


def printing(tool: str = "text", **more: Any) -> dict[str, Any]:
    return {"name": "go", "output": tool, **more}


@pytest.mark.parametrize(
    ("arguments", "seen"),
    [
        ({}, {"name": [], "offset": 0, "tag": None, "deep": False, "width": None}),
        ({"name": ["-dash", "--offset", "a b;$(c)'\"*"], "offset": -5},
         {"name": ["-dash", "--offset", "a b;$(c)'\"*"], "offset": -5, "tag": None, "deep": False, "width": None}),
        ({"tag": ["--x", "é"], "deep": True, "width": "3"},
         {"name": [], "offset": 0, "tag": ["--x", "é"], "deep": True, "width": "3"}),
        ({"deep": False, "width": None, "tag": []},
         {"name": [], "offset": 0, "tag": None, "deep": False, "width": None}),
    ],
)  # fmt: skip
async def test_arguments_are_words(tmp_path: Path, arguments: dict[str, Any], seen: dict[str, Any]) -> None:
    async with program(tmp_path, PROGRAM) as mount:
        assert await mount.call("go", **arguments) == seen


async def test_without_a_separator_a_word_that_looks_like_an_option_is_refused(tmp_path: Path) -> None:
    async with program(tmp_path, PROGRAM, TOOL | {"separator": False}) as mount:
        assert (await mount.call("go", name=["a"]))["name"] == ["a"]
        with pytest.raises(UsageError, match="as an option"):
            await mount.call("go", name=["-w"])


async def test_text_keeps_every_byte(tmp_path: Path) -> None:
    text = "import sys; sys.stdout.buffer.write(b'caf\\xe9 \\xc3\\xa9\\n')"
    async with program(tmp_path, text, printing()) as mount:
        value = await mount.call("go")
        assert value == "caf\udce9 é\n"
        assert value.encode("utf-8", "surrogateescape") == b"caf\xe9 \xc3\xa9\n"
        assert mount.operation("go").returns == "str"
    async with program(tmp_path, text, printing("bytes")) as mount:
        assert await mount.call("go") == b"caf\xe9 \xc3\xa9\n"
        assert mount.operation("go").returns == "bytes"


@pytest.mark.parametrize("printed", ['{"a": 1e400}', "{} {}", "NaN", "", '{"a": 1, "a": 2}'])
async def test_what_is_no_json_is_an_error(tmp_path: Path, printed: str) -> None:
    async with program(tmp_path, f"print({printed!r})", printing("json")) as mount:
        with pytest.raises(FailedError) as caught:
            await mount.call("go")
        assert caught.value.code == "result-invalid"


async def test_an_exit_code_is_a_failure_unless_it_was_declared(tmp_path: Path) -> None:
    text = "import sys; sys.stderr.buffer.write(b'caf\\xe9 wrong\\n'); print('half'); sys.exit(2)"
    async with program(tmp_path, text, printing()) as mount:
        with pytest.raises(FailedError, match=r"exit code 2: caf\\xe9 wrong") as caught:
            await mount.call("go")
        assert caught.value.code == "tool-failed"
        assert caught.value.details == {"exit_code": 2, "stderr": "caf\\xe9 wrong", "stdout": "half"}
    async with program(tmp_path, text, printing(exit_codes=[0, 2])) as mount:
        assert await mount.call("go") == "half\n"


async def test_a_signal_is_a_failure(tmp_path: Path) -> None:
    async with program(tmp_path, "import os; os.kill(os.getpid(), 9)", printing()) as mount:
        with pytest.raises(FailedError, match="signal 9"):
            await mount.call("go")


async def test_standard_input(tmp_path: Path) -> None:
    tool = printing(stdin="text", params_json_schema={"properties": {"text": {"type": "string"}}})
    async with program(tmp_path, "import sys; print(len(sys.stdin.buffer.read()))", tool) as mount:
        assert await mount.call("go", text="é" * 1_000_000) == "2000000\n"
        assert await mount.call("go") == "0\n"


SLOW = """
import os, subprocess, sys, time
pipe = open("pipe", "wb", buffering=0)
os.set_inheritable(pipe.fileno(), True)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], close_fds=False)
pipe.write(b"started")
time.sleep(600)
"""


async def test_a_call_that_is_cancelled_leaves_nothing_running(tmp_path: Path) -> None:
    """A pipe that both the program and its child hold open says when both are gone."""
    os.mkfifo(tmp_path / "pipe")
    async with program(tmp_path, SLOW, printing()) as mount:
        slow = asyncio.create_task(mount.call("go"))
        with await asyncio.to_thread((tmp_path / "pipe").open, "rb", buffering=0) as pipe:
            assert await asyncio.to_thread(pipe.read, 100) == b"started"
            slow.cancel()
            with pytest.raises(asyncio.CancelledError):
                await slow
            assert await asyncio.to_thread(pipe.read, 100) == b""


async def test_time_is_bounded(tmp_path: Path) -> None:
    async with program(tmp_path, "import time; time.sleep(600)", printing(), {"timeout": 0.5}) as mount:
        with pytest.raises(FailedError) as caught:
            await mount.call("go")
        assert (caught.value.retryable, caught.value.details) == (True, {"reason": "timed-out"})


async def test_output_is_bounded(tmp_path: Path) -> None:
    text = "import sys\nwhile True: sys.stdout.write('x' * 100_000)"
    async with program(tmp_path, text, printing(), {"max_output": 1 << 20}) as mount:
        with pytest.raises(FailedError) as caught:
            await mount.call("go")
        assert caught.value.code == "value-too-large"
    text = "import sys\nfor _ in range(100): sys.stderr.write('x' * 100_000)\nprint('done')"
    async with program(tmp_path, text, printing()) as mount:
        assert await mount.call("go") == "done\n"


async def test_a_child_that_holds_the_output_ends_with_its_parent(tmp_path: Path) -> None:
    child = "[sys.executable, '-c', 'import time; time.sleep(600)']"
    text = f"import subprocess, sys\nsubprocess.Popen({child})\nprint('done')"
    async with program(tmp_path, text, printing()) as mount:
        assert await mount.call("go") == "done\n"


async def test_the_environment_is_what_was_named(tmp_path: Path) -> None:
    environment = {"TOKEN": "s3cr3t-value", "OTHER": "x"}
    text = "import os; print(os.environ.get('TOKEN'), os.environ.get('OTHER'), os.environ.get('PYTEST_CURRENT_TEST'))"
    async with program(tmp_path, text, printing(), {"env": ["TOKEN"]}, environment=environment) as mount:
        assert await mount.call("go") == "[TOKEN] None None\n"


async def test_null_characters_and_missing_programs(tmp_path: Path) -> None:
    async with program(tmp_path, PROGRAM) as mount:
        with pytest.raises(UsageError) as caught:
            await mount.call("go", name=["a\0b"])
        assert caught.value.code == "arguments-invalid"
    async with opened(CommandAdapter(), "command:./none", tmp_path, {"tools": [printing()]}) as mount:
        with pytest.raises(FailedError) as failed:
            await mount.call("go")
        assert failed.value.details == {"reason": "not-started"}


RUNNER = """
import argparse, json, sys
parser = argparse.ArgumentParser()
for name in ("dataset-dir", "bundle", "tool", "args"):
    parser.add_argument(f"--{name}")
given = parser.parse_args()
if given.tool == "broken":
    print("no result")
elif given.tool == "fails":
    sys.exit("it went wrong")
else:
    print(json.dumps({"result": [given.dataset_dir, given.bundle, given.tool, json.loads(given.args)]}))
"""


async def test_a_runner_and_its_manifest(tmp_path: Path) -> None:
    (tmp_path / "runner.py").write_text(RUNNER)
    forecast = {
        "name": "get-forecast", "description": "The weather to come.",
        "params_json_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    }  # fmt: skip
    bundles = [
        {"bundle": "weather api", "tools": [forecast, {"name": "broken"}, {"name": "fails"}], "version": 3},
        {"bundle": "class", "tools": [{"name": "x", "params_json_schema": {"type": "string"}}]},
    ]
    (tmp_path / "tool_manifest.json").write_text(json.dumps(bundles))
    uri = f"command:'{sys.executable}' runner.py"
    async with opened(CommandAdapter(), uri, tmp_path, {"dataset_dir": "data"}) as mount:
        said = await mount.call("weather_api.get_forecast", city="-Ø")
        assert said == [str(tmp_path / "data"), "weather api", "get-forecast", {"city": "-Ø"}]
        assert (
            mount.operation("weather_api.get_forecast").contract
            == "command.runner.weather%20api.get-forecast/1"
        )
        for tool, code in (("broken", "result-invalid"), ("fails", "tool-failed")):
            with pytest.raises(FailedError) as caught:
                await mount.call(f"weather_api.{tool}")
            assert caught.value.code == code
        assert [(it.place, it.code) for it in mount.description.limitations] == [
            ("tool x", "schema-unsupported")
        ]
        assert str(tmp_path) not in json.dumps(mount.description.contents)


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        ("{", "tool_manifest.json"),
        ("{}", "is no manifest"),
        ('[{"bundle": "a"}]', "0.tools"),
        ('{"tools": [{"name": "a", "posicionals": []}]}', "0.posicionals"),
        ('{"tools": [{"name": "a", "positionals": ["x"]}]}', "an argument 'x'"),
        ('{"tools": [{"name": "a", "effect": "none"}]}', "0.effect"),
    ],
)
async def test_a_manifest_that_is_none_is_said(tmp_path: Path, manifest: str, words: str) -> None:
    (tmp_path / "tool_manifest.json").write_text(manifest)
    with pytest.raises(UsageError, match=words) as caught:
        async with opened(CommandAdapter(), "command:./p", tmp_path):
            pass
    assert caught.value.code == "mount-invalid"


@pytest.mark.parametrize("uri", ["command:", "command:'a", "command:./p"])
async def test_what_cannot_be_mounted(tmp_path: Path, uri: str) -> None:
    with pytest.raises(AffidavitError) as caught:
        async with opened(CommandAdapter(), uri, tmp_path):
            pass
    assert caught.value.code in ("mount-invalid", "artifact-not-found")


async def test_many_at_once_are_started_a_few_at_a_time(tmp_path: Path) -> None:
    (tmp_path / "at").mkdir()
    tool = printing(
        params_json_schema={"properties": {"n": {"type": "integer"}}}, positionals=["n"], words=["x"]
    )
    counting = (
        "import os, pathlib, sys\n"
        "mark = pathlib.Path('at', sys.argv[-1]); mark.touch()\n"
        "print(len(os.listdir('at')))\nmark.unlink()\n"
    )
    async with program(tmp_path, counting, tool) as mount:
        seen = await asyncio.gather(*(mount.call("go", n=n) for n in range(24)))
        assert max(int(it) for it in seen) <= 8
