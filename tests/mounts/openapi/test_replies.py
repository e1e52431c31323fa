"""What comes back: values, errors, waits, and nothing from a host that nobody granted."""

import asyncio
import gzip
import json
import logging
import tracemalloc
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from affidavit.errors import AffidavitError, FailedError, UsageError
from affidavit.mounts.openapi import sending
from affidavit.mounts.openapi.adapter import OpenApiAdapter
from tests.mounts.echoing import Answer, Asked, Echo, echoing
from tests.mounts.openapi.test_requests import api, get, post
from tests.mounts.sources import opened
from tests.real_inputs import unpacked

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def echo() -> Generator[Echo]:
    with echoing() as server:
        yield server


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "_FIRST_WAIT", 0.001)


@pytest.mark.parametrize(
    ("kind", "content", "value"),
    [
        ("application/json", b'{"n": 9223372036854775809}', {"n": 2**63 + 1}),
        ("application/hal+json; charset=utf-8", b"[1.0]", [1.0]),
        ("text/plain; charset=latin-1", b"caf\xe9", "café"),
        ("text/plain", b"caf\xe9", b"caf\xe9"),
        ("image/png", b"\x89PNG", b"\x89PNG"),
        ("", b"\0", b"\0"),
        ("application/json", b"", None),
    ],
)
async def test_bodies(tmp_path: Path, echo: Echo, kind: str, content: bytes, value: Any) -> None:
    echo.answer = lambda asked: (200, {"Content-Type": kind} if kind else {}, content)
    async with api(tmp_path, echo, get()) as mount:
        assert await mount.call("find") == value


@pytest.mark.parametrize("content", [b'{"a": 1e400}', b'{"a": NaN}', b'{"a": 1, "a": 2}', b'{"a"', b'"\xff"'])
async def test_what_is_no_json_is_an_error(tmp_path: Path, echo: Echo, content: bytes) -> None:
    echo.answer = lambda asked: (200, JSON, content)
    async with api(tmp_path, echo, get()) as mount:
        with pytest.raises(FailedError) as caught:
            await mount.call("find")
        assert caught.value.code == "result-invalid"


async def test_an_error_has_its_status_and_body(tmp_path: Path, echo: Echo) -> None:
    echo.answer = lambda asked: (404, JSON, b'{"why": "gone"}')
    async with api(tmp_path, echo, get()) as mount:
        with pytest.raises(FailedError) as caught:
            await mount.call("find")
        assert (caught.value.code, caught.value.retryable) == ("tool-failed", False)
        assert caught.value.details == {"status": 404, "body": {"why": "gone"}}
        echo.answer = lambda asked: (500, {"Content-Type": "text/plain"}, b"x" * 100_000)
        with pytest.raises(FailedError) as caught:
            await mount.call("find")
        assert len(caught.value.details["body"]) == 16_384


async def test_pages_that_are_in_headers(tmp_path: Path, echo: Echo) -> None:
    echo.answer = lambda asked: (200, JSON | {"Link": "<?page=2>; rel=next"}, b"[1]")
    async with api(tmp_path, echo, get(), {"envelope": True}) as mount:
        found = await mount.call("find")
        assert (found["status"], found["body"]) == (200, [1])
        assert found["headers"]["link"] == "<?page=2>; rel=next"


def busy(times: int, status: int = 503, **headers: str) -> Any:
    left = [times]

    def answer(asked: Asked) -> Answer:
        if left[0]:
            left[0] -= 1
            return status, {name.replace("_", "-"): value for name, value in headers.items()}, b"busy"
        return 200, JSON, b'"done"'

    return answer


async def test_safe_requests_alone_are_sent_again(tmp_path: Path, echo: Echo, quick: None) -> None:
    echo.answer = busy(2)
    async with api(tmp_path, echo, get()) as mount:
        assert await mount.call("find") == "done"
        assert len(echo.asked) == 3
    echo.answer = busy(1)
    async with api(tmp_path, echo, post("application/json", {})) as mount:
        with pytest.raises(FailedError) as caught:
            await mount.call("send", body={})
        assert caught.value.retryable
        assert len(echo.asked) == 4


async def test_the_host_says_how_long_to_wait(
    tmp_path: Path, echo: Echo, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(sending.asyncio, "sleep", sleep)
    echo.answer = busy(1, 429, Retry_After="7")
    async with api(tmp_path, echo, get()) as mount:
        assert await mount.call("find") == "done"
        assert waits[0] == 7
    echo.answer = busy(1, 429, X_RateLimit_Remaining="0", X_RateLimit_Reset="5")
    async with api(tmp_path, echo, get()) as mount:
        waits.clear()
        assert await mount.call("find") == "done"
        assert waits[0] == 5


async def test_a_wait_that_is_too_long_is_told(tmp_path: Path, echo: Echo, quick: None) -> None:
    echo.answer = busy(1, 429, Retry_After="3600")
    async with api(tmp_path, echo, get()) as mount:
        for reason in (None, "rate-limited"):
            with pytest.raises(FailedError) as caught:
                await mount.call("find")
            assert caught.value.retryable
            assert caught.value.details.get("reason") == reason
        assert len(echo.asked) == 1


async def test_a_host_that_is_not_there(tmp_path: Path, echo: Echo, quick: None) -> None:
    async with api(tmp_path, echo, get(), {"server": "http://127.0.0.1:9"}) as mount:
        with pytest.raises(FailedError) as caught:
            await mount.call("find")
        assert (caught.value.retryable, caught.value.details) == (True, {"reason": "not-reached"})


async def test_a_slow_reply_blocks_no_other(tmp_path: Path, echo: Echo) -> None:
    """The slow one is answered when the quick ones were."""
    quick_ones = asyncio.Event()
    loop = asyncio.get_running_loop()

    def answer(asked: Asked) -> Answer:
        if "slow" in asked.path:
            asyncio.run_coroutine_threadsafe(quick_ones.wait(), loop).result(timeout=30)
        return 200, JSON, b'"done"'

    echo.answer = answer
    async with api(tmp_path, echo, get({"name": "q", "in": "query", "schema": {}})) as mount:
        slow = asyncio.create_task(mount.call("find", q="slow"))
        assert await asyncio.gather(*(mount.call("find", q=str(n)) for n in range(10))) == ["done"] * 10
        quick_ones.set()
        assert await slow == "done"


async def test_time_and_size_are_bounded(tmp_path: Path, echo: Echo) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def answer(asked: Asked) -> Answer:
        asyncio.run_coroutine_threadsafe(stop.wait(), loop).result(timeout=30)
        return 200, JSON, b"1"

    echo.answer = answer
    async with api(tmp_path, echo, get(), {"timeout": 0.2}) as mount:
        with pytest.raises(FailedError) as caught:
            await mount.call("find")
        assert caught.value.details == {"reason": "timed-out"}
    stop.set()
    echo.answer = lambda asked: (200, JSON, b"x" * 5000)
    async with api(tmp_path, echo, get(), {"max_reply": 1000}) as mount:
        with pytest.raises(FailedError) as caught:
            await mount.call("find")
        assert caught.value.code == "value-too-large"


async def test_redirects_stay_where_they_were_granted(tmp_path: Path, echo: Echo) -> None:
    with echoing() as other:
        echo.answer = lambda asked: (302, {"Location": f"{other.url}/stolen"}, b"")
        async with api(tmp_path, echo, get(), {"headers": {"Authorization": "env:PATH"}}) as mount:
            with pytest.raises(FailedError, match="nobody granted"):
                await mount.call("find")
        assert other.asked == []
        echo.answer = lambda asked: (
            (302, {"Location": "/v1/there"}, b"") if "find" in asked.path else (200, JSON, b"1")
        )
        async with api(tmp_path, echo, get()) as mount:
            assert await mount.call("find") == 1
        echo.answer = lambda asked: (302, {"Location": "/v1/find"}, b"")
        async with api(tmp_path, echo, get()) as mount:
            with pytest.raises(FailedError, match="without end"):
                await mount.call("find")


SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "basic": {"type": "http", "scheme": "Basic"},
    "key": {"type": "apiKey", "in": "query", "name": "api key"},
    "head": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "jar": {"type": "apiKey", "in": "cookie", "name": "sid"},
}


@pytest.mark.parametrize(
    ("scheme", "where", "wanted"),
    [
        ("bearer", "authorization", "Bearer s3cret:w ord"),
        ("basic", "authorization", "Basic czNjcmV0Oncgb3Jk"),
        ("head", "x-key", "s3cret:w ord"),
        ("jar", "cookie", "sid=s3cret:w ord"),
        ("key", "", "/v1/find?api%20key=s3cret%3Aw%20ord"),
    ],
)
async def test_credentials_go_where_their_scheme_says_and_show_nowhere(
    tmp_path: Path, echo: Echo, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
    scheme: str, where: str, wanted: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("API_KEY", "s3cret:w ord")
    caplog.set_level(logging.DEBUG)
    paths = get()
    paths["/open"] = {"get": {"operationId": "free", "security": [], "responses": {}}}
    options = {"auth": {scheme: "env:API_KEY"}}
    echo.answer = lambda asked: (200, JSON, json.dumps(asked.headers | {"path": asked.path}).encode())
    async with api(
        tmp_path, echo, paths, options, components={"securitySchemes": SCHEMES}, security=[{scheme: []}]
    ) as mount:
        found = await mount.call("find")
        asked = echo.asked[-1]
        assert (asked.headers[where] if where else asked.path) == wanted
        echo.answer = lambda asked: (401, JSON, json.dumps(f"no: {asked.headers} {asked.path}").encode())
        with pytest.raises(FailedError) as caught:
            await mount.call("find")
        shown = f"{found} {caught.value.as_json()} {caplog.text}"
        for form in ("s3cret:w ord", "s3cret:w%20ord", "s3cret%3Aw", "czNjcmV0Oncgb3Jk"):
            assert form not in shown
        assert "[API_KEY]" in shown
        with pytest.raises(FailedError):
            await mount.call("free")
        assert wanted not in f"{echo.asked[-1].headers} {echo.asked[-1].path}"


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("swagger: '2.0'", "mount-invalid", "Swagger 2.0"),
        ("openapi: 4.0.0", "mount-invalid", "4.0.0"),
        ("a: [", "mount-invalid", "no YAML"),
        ("{", "mount-invalid", "no JSON"),
        ("[1]", "mount-invalid", "no object"),
        ("openapi: 3.0.0\npaths: {}\nservers: [{url: 'http://x'}]", "mount-invalid", "no operation"),
        ("openapi: 3.0.0\npaths: {}", "mount-invalid", "no server to call"),
        ("openapi: 3.0.0\npaths: {}\nservers: [{url: 'file:///etc'}]", "mount-invalid", "no server to call"),
        ("a: &a [x,x,x,x,x,x,x,x,x]\n" + "\n".join(
            f"{chr(98 + n)}: &{chr(98 + n)} [{','.join([f'*{chr(97 + n)}'] * 9)}]" for n in range(9)
        ), "mount-invalid", "too many parts"),
        ("a: &a [*a]", "mount-invalid", "too deeply"),
    ],
)  # fmt: skip
async def test_what_is_no_description_is_said(tmp_path: Path, text: str, code: str, words: str) -> None:
    (tmp_path / "api.yaml").write_text(text)
    with pytest.raises(AffidavitError, match=words) as caught:
        async with opened(OpenApiAdapter(), "openapi:api.yaml", tmp_path):
            pass
    assert caught.value.code == code


async def test_yaml_has_the_types_of_json(tmp_path: Path, echo: Echo) -> None:
    text = f"""
openapi: 3.0.3
info: {{title: api, version: 1.10}}
servers: [{{url: '{echo.url}'}}]
paths:
  /find:
    get:
      operationId: find
      parameters:
        - {{name: no, in: query, schema: {{type: string, enum: [no, 2020-01-01, 1:30, on], nullable: true}}}}
      responses:
        200: {{description: ok}}
"""
    (tmp_path / "api.yaml").write_text(text)
    async with opened(OpenApiAdapter(), "openapi:api.yaml", tmp_path) as mount:
        for value in ("no", "2020-01-01", "1:30", "on", None):
            await mount.call("find", no=value)
        with pytest.raises(UsageError):
            await mount.call("find", no="yes")


async def test_one_odd_operation_costs_only_itself(tmp_path: Path, echo: Echo) -> None:
    paths: dict[str, Any] = get() | {
        "/a": {"get": {"operationId": "a", "parameters": [{"$ref": "other.yaml#/p"}], "responses": {}}},
        "/b": {"get": {"operationId": "b", "parameters": [{"name": "x"}], "responses": {}}},
        "/c/{id}": {"get": {"operationId": "c", "responses": {}}},
        "/d": {"get": {"operationId": "find", "responses": {}}},
        "/e": {"get": {"operationId": "e", "servers": [{"url": "http://10.0.0.1/"}], "responses": {}}},
        "/f": {"get": {"operationId": "f", "parameters": [{"$ref": "#/paths/~1f/get/parameters/0"}]}},
        "/g": {"get": {"parameters": [], "responses": {}}},
        "/h": 5,
        "/i": {"$ref": "#/paths/nowhere"},
        "/j": {"get": None},
        "/k": {"get": {"parameters": [{"name": 7, "in": "query"}]}},
        "/l": {"get": {"parameters": [{"name": "l", "in": "query", "schema": {"type": "text"}}]}},
        "/m": {"get": {"parameters": [{"name": "m", "in": "query", "schema": {"properties": [1]}}]}},
        "/n": {"post": {"requestBody": {"content": []}}},
        "/o": {"get": {"security": 5}},
        "/p": {"get": {"responses": {"200": {"content": {"application/json": {"schema": 7}}}}}},
        "/q": {"get": {"parameters": 1}},
        "@10.0.0.1/r": {"get": {}},
        "x-own": {"get": {}},
    }
    async with api(tmp_path, echo, paths, components=[1], info=3) as mount:
        assert sorted(mount.namespace.operations) == ["find", "get_g"]
        told = {it.place: it.message for it in mount.description.limitations}
        assert told.keys() == {
            *(f"GET /{name}" for name in ("a", "b", "c/{id}", "d", "f", "e", "j", "k", "l", "m", "o", "p", "q")),
            "/h", "/i", "POST /n", "@10.0.0.1/r",
        }  # fmt: skip
        assert all(told.values())


async def test_what_says_which_host_is_meant_is_no_argument(tmp_path: Path, echo: Echo) -> None:
    paths = get(
        *(
            {"name": name, "in": "header", "required": True, "schema": {"type": "string"}}
            for name in ("Host", "content-length", "Transfer-Encoding", "X-Good")
        )
    )
    async with api(tmp_path, echo, paths) as mount:
        assert [it.original for it in mount.operation("find").parameters] == ["X-Good"]
        await mount.call("find", **{"X-Good": "g"})
        assert echo.asked[-1].headers["host"] == echo.url.removeprefix("http://")


async def test_a_header_that_no_header_can_hold_is_refused(tmp_path: Path, echo: Echo) -> None:
    async with api(
        tmp_path, echo, get({"name": "X-A", "in": "header", "schema": {"type": "string"}})
    ) as mount:
        for value in ("é", "漢", "a\0b", "\ud800"):
            with pytest.raises(UsageError, match="X-A") as caught:
                await mount.call("find", **{"X-A": value})
            assert caught.value.code == "arguments-invalid"
        assert echo.asked == []


async def test_what_is_packed_small_is_still_bounded(tmp_path: Path, echo: Echo) -> None:
    packed = gzip.compress(b'"' + b"x" * (40 << 20) + b'"')
    echo.answer = lambda asked: (200, JSON | {"Content-Encoding": "gzip"}, packed)
    async with api(tmp_path, echo, get(), {"max_reply": 1 << 20}) as mount:
        tracemalloc.start()
        try:
            with pytest.raises(FailedError, match="more than 1048576 bytes"):
                await mount.call("find")
            assert tracemalloc.get_traced_memory()[1] < 16 << 20
        finally:
            tracemalloc.stop()


async def test_a_description_from_a_url_grants_its_own_host(tmp_path: Path, echo: Echo) -> None:
    document: dict[str, Any] = {
        "openapi": "3.0.0", "info": {"title": "api", "version": "1"}, "servers": [{"url": "/v2"}], "paths": get()
    }  # fmt: skip
    said = [document]
    echo.answer = lambda asked: (
        200,
        JSON,
        json.dumps(said[0] if "spec" in asked.path else asked.path).encode(),
    )
    async with opened(OpenApiAdapter(), f"openapi:{echo.url}/spec.json", tmp_path) as mount:
        assert await mount.call("find") == "/v2/find"
    said[0] = document | {"servers": [{"url": "http://169.254.169.254/"}]}
    with pytest.raises(UsageError, match="another host"):
        async with opened(OpenApiAdapter(), f"openapi:{echo.url}/spec.json", tmp_path):
            pass


@pytest.mark.oracle
async def test_a_public_description_of_over_a_hundred_operations(tmp_path: Path, echo: Echo) -> None:
    description = unpacked("blockfrost") / "openapi.yaml"
    echo.answer = lambda asked: (200, JSON, b'{"is_healthy": true}')
    uri = f"openapi:{description}"
    async with opened(OpenApiAdapter(), uri, tmp_path, {"server": f"{echo.url}/api/v0"}) as mount:
        assert len(mount.namespace.operations) > 100
        assert {it.effect for it in mount.namespace.operations.values()} == {"read", "write"}
        assert await mount.call("get_health") == {"is_healthy": True}
        assert echo.asked[-1].path == "/api/v0/health"
        with pytest.raises(FailedError) as caught:
            await mount.call("get_blocks_latest")
        assert caught.value.code == "result-invalid"
