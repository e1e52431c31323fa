import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from affidavit.errors import FailedError, UsageError
from affidavit.mounts.python import functions_namespace
from affidavit.mounts.wrappers import cached, filtered, prefixed, rate_limited, read_only, redacted, wrapped
from affidavit.namespaces.functions import operation
from affidavit.namespaces.operation import Namespace, Reply
from affidavit.workspace import Workspace

Calls = list[int]


@pytest.fixture
def calls() -> Calls:
    return []


@pytest.fixture
def tools(calls: Calls) -> Namespace:
    def get_row(n: int) -> dict[str, Any]:
        """A row."""
        calls.append(n)
        if n < 0:
            raise FailedError("tool-failed", "below zero")
        return {"n": n, "rows": [{"email": "a@b", "pass_word": 7, "name": "x"}]}

    @operation(effect="write")
    def set_row(n: int) -> int:
        calls.append(n)
        return n

    made = functions_namespace("tools", [get_row, set_row])
    return Namespace(name="m", operations=made.operations, children={"inner": made})


async def call(namespace: Namespace, name: str, n: int) -> Reply:
    one = namespace.operations[name]
    reply = await one.handler(one.parse({"n": n}))
    return Reply(value=one.convert(reply.value), limitations=reply.limitations)


def paths(namespace: Namespace, prefix: str = "") -> list[str]:
    inner = [path for name, child in namespace.children.items() for path in paths(child, f"{prefix}{name}.")]
    return [*(prefix + name for name in namespace.operations), *inner]


def test_what_is_offered(tools: Namespace) -> None:
    assert paths(read_only(tools)) == ["get_row", "inner.get_row"]
    assert paths(filtered(tools, ["set_*", "inner.g*"])) == ["set_row", "inner.get_row"]
    renamed = prefixed(tools, "x_")
    assert paths(renamed) == ["x_get_row", "x_set_row", "x_inner.get_row", "x_inner.set_row"]
    assert renamed.operations["x_get_row"].name == "x_get_row"
    assert renamed.operations["x_get_row"].contract == tools.operations["get_row"].contract
    with pytest.raises(UsageError, match="no name can start"):
        prefixed(tools, "1-")


async def test_what_is_hidden_is_hidden_at_every_depth(tools: Namespace) -> None:
    hidden = redacted(tools, ["email", "pass*"])
    value = (await call(hidden, "get_row", 1)).value
    assert value == {"n": 1, "rows": [{"email": "[redacted]", "pass_word": "[redacted]", "name": "x"}]}
    assert hidden.operations["get_row"].returns == "Any"


async def test_a_reply_is_kept_and_says_so(
    tools: Namespace, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    kept = cached(tools, 10)
    first = await call(kept, "get_row", 1)
    again = await call(kept, "get_row", 1)
    assert (first.value, first.limitations) == (again.value, ())
    assert [it.code for it in again.limitations] == ["reply-cached"]
    await asyncio.gather(*(call(kept, "get_row", 2) for _ in range(5)))
    assert calls == [1, 2]
    now[0] = 11.0
    await call(kept, "get_row", 1)
    for _ in range(2):
        with pytest.raises(FailedError):
            await call(kept, "get_row", -1)
        await call(kept, "set_row", 3)
    assert calls == [1, 2, 1, -1, 3, -1, 3]


async def test_calls_wait_for_their_turn(tools: Namespace, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    slow = rate_limited(tools, 4)
    for name in ("get_row", "set_row", "get_row"):
        await call(slow, name, 1)
    assert waits == [0.0, 0.25, 0.5]


@pytest.mark.parametrize(
    ("wrap", "seen"),
    [
        ({"read_only": True, "prefixed": "my_"}, ["my_get_row", "my_inner.get_row"]),
        ({"filtered": ["set_row"], "cached": 1, "rate_limited": 5, "redacted": ["x"]}, ["set_row"]),
        ({}, ["get_row", "set_row", "inner.get_row", "inner.set_row"]),
    ],
)
def test_the_option(tools: Namespace, wrap: dict[str, Any], seen: list[str]) -> None:
    assert paths(wrapped(tools, wrap)) == seen


@pytest.mark.parametrize("wrap", [{"readonly": True}, {"cached": -1}, [], {"filtered": "x"}])
def test_an_option_that_cannot_be_is_named(tools: Namespace, wrap: Any) -> None:
    with pytest.raises(UsageError, match="option wrap") as caught:
        wrapped(tools, wrap)
    assert caught.value.code == "mount-invalid"


async def test_a_mount_of_any_kind_takes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tools.py").write_text("def a() -> int:\n    return 1\ndef b() -> int:\n    return 2\n")
    async with Workspace.open("w") as workspace:
        workspace.mount("py=python:tools.py", options={"wrap": {"filtered": ["b"]}})
        assert list((await workspace.session()).catalogue.operations) == ["tool.py.b"]
        with pytest.raises(UsageError, match="option wrap"):
            workspace.mount("py=python:tools.py", options={"wrap": {"filter": ["b"]}})
