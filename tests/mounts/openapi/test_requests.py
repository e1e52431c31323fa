"""What leaves for the far side: each argument in its place, written as the standard's own tables have it."""

import json
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from affidavit.errors import UsageError
from affidavit.mounts.openapi.adapter import OpenApiAdapter
from tests.mounts.echoing import Echo, echoing
from tests.mounts.sources import Opened, opened


@pytest.fixture
def echo() -> Generator[Echo]:
    with echoing() as server:
        yield server


@asynccontextmanager
async def api(
    folder: Path, echo: Echo, paths: dict[str, Any], options: dict[str, Any] | None = None, **more: Any
) -> AsyncGenerator[Opened]:
    document = {
        "openapi": "3.1.0",
        "info": {"title": "api", "version": "1"},
        "servers": [{"url": f"{echo.url}/v1"}],
        "paths": paths,
        **more,
    }
    (folder / "api.json").write_text(json.dumps(document))
    async with opened(OpenApiAdapter(), "openapi:api.json", folder, options) as mount:
        yield mount


def get(*parameters: dict[str, Any], path: str = "/find") -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": "find",
        "parameters": list(parameters),
        "responses": {"200": {}},
    }
    return {path: {"get": operation}}


EMPTY, STRING, ARRAY = "", "blue", ["blue", "black", "brown"]
OBJECT = {"R": 100, "G": 200, "B": 150}


# OpenAPI 3.1.1, section 4.8.12.4, row by row; `None` where the table says that the combination is not defined.
@pytest.mark.parametrize(
    ("style", "explode", "where", "text", "array", "mapping"),
    [
        ("matrix", False, "path", ";color=blue", ";color=blue,black,brown", ";color=R,100,G,200,B,150"),
        ("matrix", True, "path", ";color=blue", ";color=blue;color=black;color=brown", ";R=100;G=200;B=150"),
        ("label", False, "path", ".blue", ".blue,black,brown", ".R,100,G,200,B,150"),
        ("label", True, "path", ".blue", ".blue.black.brown", ".R=100.G=200.B=150"),
        ("simple", False, "path", "blue", "blue,black,brown", "R,100,G,200,B,150"),
        ("simple", True, "path", "blue", "blue,black,brown", "R=100,G=200,B=150"),
        ("form", False, "query", "color=blue", "color=blue,black,brown", "color=R,100,G,200,B,150"),
        ("form", True, "query", "color=blue", "color=blue&color=black&color=brown", "R=100&G=200&B=150"),
        ("spaceDelimited", False, "query", None, "color=blue%20black%20brown", "color=R%20100%20G%20200%20B%20150"),
        ("pipeDelimited", False, "query", None, "color=blue%7Cblack%7Cbrown", "color=R%7C100%7CG%7C200%7CB%7C150"),
        ("deepObject", True, "query", None, None, "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"),
        ("simple", False, "header", "blue", "blue,black,brown", "R,100,G,200,B,150"),
        ("simple", True, "header", "blue", "blue,black,brown", "R=100,G=200,B=150"),
        ("form", False, "cookie", "color=blue", "color=blue,black,brown", "color=R,100,G,200,B,150"),
    ],
)  # fmt: skip
async def test_styles(
    tmp_path: Path, echo: Echo, style: str, explode: bool, where: str,
    text: str | None, array: str | None, mapping: str | None,
) -> None:  # fmt: skip
    parameter: dict[str, Any] = {
        "name": "color",
        "in": where,
        "style": style,
        "explode": explode,
        "schema": {},
    }
    path = "/find/{color}" if where == "path" else "/find"
    async with api(tmp_path, echo, get({**parameter, "required": where == "path"}, path=path)) as mount:
        for value, wanted in ((STRING, text), (ARRAY, array), (OBJECT, mapping)):
            if wanted is None:
                continue
            await mount.call("find", color=value)
            asked = echo.asked[-1]
            found = {
                "path": asked.path.removeprefix("/v1/find/"),
                "query": asked.path.partition("?")[2],
                "header": asked.headers.get("color"),
                "cookie": asked.headers.get("cookie"),
            }[where]
            assert found == wanted


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("a b/c?d#e&f=g%é", "q=a%20b%2Fc%3Fd%23e%26f%3Dg%25%C3%A9"),
        (True, "q=true"), (1.5, "q=1.5"), (2**70, f"q={2**70}"), (None, "q="), ([], ""), ("", "q="),
    ],
)  # fmt: skip
async def test_queries_are_escaped(tmp_path: Path, echo: Echo, value: Any, wanted: str) -> None:
    async with api(tmp_path, echo, get({"name": "q", "in": "query", "schema": {}})) as mount:
        await mount.call("find", q=value)
        assert echo.asked[-1].path.partition("?")[2] == wanted


async def test_what_is_reserved_and_what_is_json(tmp_path: Path, echo: Echo) -> None:
    reserved = {"name": "r", "in": "query", "allowReserved": True, "schema": {"type": "string"}}
    as_json: dict[str, Any] = {"name": "j", "in": "query", "content": {"application/json": {"schema": {}}}}
    async with api(tmp_path, echo, get(reserved, as_json)) as mount:
        await mount.call("find", r="a:/b?&", j={"k": [1, None]})
        assert echo.asked[-1].path.partition("?")[2] == "r=a:/b?%26&j=%7B%22k%22%3A%5B1%2Cnull%5D%7D"


@pytest.mark.parametrize("value", ["..", ".", ""])
async def test_a_path_cannot_be_left(tmp_path: Path, echo: Echo, value: str) -> None:
    parameter = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
    async with api(tmp_path, echo, get(parameter, path="/pets/{id}")) as mount:
        with pytest.raises(UsageError, match="leave its place"):
            await mount.call("find", id=value)
        await mount.call("find", id="../../x")
        assert echo.asked[-1].path == "/v1/pets/..%2F..%2Fx"


async def test_a_header_holds_no_second_one(tmp_path: Path, echo: Echo) -> None:
    async with api(
        tmp_path, echo, get({"name": "X-A", "in": "header", "schema": {"type": "string"}})
    ) as mount:
        with pytest.raises(UsageError, match="control characters"):
            await mount.call("find", **{"X-A": "a\r\nX-B: b"})
        assert echo.asked == []


async def test_one_name_in_several_places(tmp_path: Path, echo: Echo) -> None:
    schema = {"type": "object", "properties": {"id": {"type": "integer"}, "body": {"type": "string"}}}
    operation = {
        "operationId": "putPet",
        "parameters": [
            {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}},
            {"name": "id", "in": "query", "schema": {"type": "integer"}},
            {"name": "body", "in": "query", "schema": {"type": "string"}},
        ],
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
        "responses": {"200": {"content": {"application/json": {"schema": {"type": "object"}}}}},
    }
    async with api(tmp_path, echo, {"/pets/{id}": {"put": operation}}) as mount:
        names = {it.original: it.name for it in mount.operation("putPet").parameters}
        assert names == {"id": "id", "id query": "id_query", "body": "body", "request body": "request_body"}
        given = {"id": "7", "id query": 9, "body": "x", "request body": {"id": 8, "body": "y"}}
        await mount.call("putPet", **given)
        asked = echo.asked[-1]
        assert (asked.method, asked.path) == ("PUT", "/v1/pets/7?id=9&body=x")
        assert json.loads(asked.body) == {"id": 8, "body": "y"}
        assert mount.operation("putPet").effect == "write"


def post(media: str, schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    content = {media: {"schema": schema, **more}}
    return {"/send": {"post": {"operationId": "send", "requestBody": {"content": content}, "responses": {}}}}


async def test_a_form(tmp_path: Path, echo: Echo) -> None:
    async with api(tmp_path, echo, post("application/x-www-form-urlencoded", {"type": "object"})) as mount:
        await mount.call("send", body={"a": "x y&", "n": 1, "many": ["p", "q"], "o": {"k": 1}, "yes": True})
        assert echo.asked[-1].headers["content-type"] == "application/x-www-form-urlencoded"
        assert echo.asked[-1].body == b"a=x+y%26&n=1&many=p&many=q&o=%7B%22k%22%3A1%7D&yes=true"


async def test_a_form_with_files(tmp_path: Path, echo: Echo) -> None:
    properties = {
        "file": {"type": "string", "format": "binary"},
        "note": {"type": "string"},
        "meta": {"type": "object"},
    }
    schema = {"type": "object", "properties": properties}
    async with api(tmp_path, echo, post("multipart/form-data", schema)) as mount:
        await mount.call("send", body={"file": b"\0\xff", "note": "é", "meta": {"k": 1}})
        asked = echo.asked[-1]
        assert asked.headers["content-type"].startswith("multipart/form-data; boundary=")
        for part in (
            b'name="file"; filename="file"\r\nContent-Type: application/octet-stream\r\n\r\n\0\xff\r\n',
            'name="note"\r\nContent-Type: text/plain; charset=utf-8\r\n\r\né\r\n'.encode(),
            b'name="meta"\r\nContent-Type: application/json\r\n\r\n{"k":1}\r\n',
        ):
            assert part in asked.body
        assert "bytes" in mount.operation("send").declarations[0]


async def test_bodies_that_are_no_json(tmp_path: Path, echo: Echo) -> None:
    async with api(tmp_path, echo, post("application/octet-stream", {})) as mount:
        await mount.call("send", body=b"\0\1")
        assert (echo.asked[-1].body, echo.asked[-1].headers["content-type"]) == (
            b"\0\1", "application/octet-stream"
        )  # fmt: skip
    async with api(tmp_path, echo, post("text/csv", {"type": "string"})) as mount:
        await mount.call("send", body="a,é\n")
        assert echo.asked[-1].body == "a,é\n".encode()


async def test_schemas_in_one_direction(tmp_path: Path, echo: Echo) -> None:
    """What is read only need not be sent, what is write only need not come back; references may loop."""
    node = {
        "type": "object",
        "properties": {
            "id": {"type": "integer", "readOnly": True},
            "password": {"type": "string", "writeOnly": True},
            "next": {"$ref": "#/components/schemas/Node"},
            "state": {"type": ["string", "null"], "enum": ["on", None]},
        },
        "required": ["id", "password"],
    }
    reference = {"$ref": "#/components/schemas/Node"}
    operation = {
        "operationId": "send",
        "requestBody": {"$ref": "#/components/requestBodies/B"},
        "responses": {"200": {"content": {"application/json": {"schema": reference}}}, "204": {}},
    }
    components = {
        "schemas": {"Node": node},
        "requestBodies": {"B": {"required": True, "content": {"application/json": {"schema": reference}}}},
    }
    echo.answer = lambda asked: (200, {"Content-Type": "application/json"}, b'{"id": 9007199254740993}')
    async with api(tmp_path, echo, {"/send": {"post": operation}}, components=components) as mount:
        body = {"password": "p", "next": {"password": "q", "state": None}}
        assert await mount.call("send", body=body) == {"id": 2**53 + 1}
        assert json.loads(echo.asked[-1].body) == body
        with pytest.raises(UsageError):
            await mount.call("send", body={"next": {}})
        echo.answer = lambda asked: (204, {}, b"")
        assert await mount.call("send", body=body) is None
