"""Archives that lie: one bad entry costs that entry, a bad header is one clear refusal that names the offset."""

from __future__ import annotations

import json
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.analyzers.javascript.containers import asar_header
from affidavit.analyzers.javascript.containers.asar import AsarContainer
from affidavit.analyzers.javascript.containers.asar_header import parse_header
from affidavit.analyzers.javascript.containers.entry import read_entry
from affidavit.analyzers.javascript.containers.tree import Tree
from affidavit.errors import NotFoundError, VerificationError
from tests.analyzers.javascript.builders import asar, packed


def listing(tmp_path: Path, archive: bytes) -> tuple[dict[str, bytes], dict[str, str]]:
    """Contents of the readable files, and the code of each limitation by place."""
    path = tmp_path / "app.asar"
    path.write_bytes(archive)
    container = AsarContainer(path)
    files = {
        entry.path: read_entry(container, entry, limit=1 << 20)
        for entry in container.entries
        if entry.kind == "file"
    }
    return files, {one.place: one.code for one in container.limitations}


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        (packed(0, -5), "entry-damaged"),
        (packed(0, 5), "entry-damaged"),
        (packed(4, 1), "entry-damaged"),
        (packed(1 << 60, 1), "entry-damaged"),
        ({"size": 1, "offset": 0}, "entry-damaged"),
        ({"size": 1, "offset": "-1"}, "entry-damaged"),
        ({"size": 1, "offset": "0x0"}, "entry-damaged"),
        ({"size": 1, "offset": "\uff11"}, "entry-damaged"),
        ({"size": 1, "offset": "9" * 400}, "entry-damaged"),
        ({"size": 1, "offset": ""}, "entry-damaged"),
        ({"size": 1, "offset": None}, "entry-damaged"),
        ({"size": 1}, "entry-damaged"),
        ({"size": 1.5, "offset": "0"}, "entry-damaged"),
        ({"size": 1e300, "offset": "0"}, "entry-damaged"),
        ({"size": True, "offset": "0"}, "entry-damaged"),
        ({"size": "1", "offset": "0"}, "entry-damaged"),
        ({"size": 10**40, "offset": "0"}, "entry-damaged"),
        ({"offset": "0"}, "entry-damaged"),
        ({}, "entry-damaged"),
        ([], "entry-damaged"),
        (None, "entry-damaged"),
        ("text", "entry-damaged"),
        ({"files": []}, "entry-damaged"),
        ({"files": None}, "entry-damaged"),
        ({"link": 1}, "entry-damaged"),
        ({"link": ""}, "entry-damaged"),
        ({"link": "/etc/passwd"}, "entry-unsafe"),
        ({"link": "..\\x"}, "entry-unsafe"),
        ({"link": "a\0b"}, "entry-unsafe"),
        ({"link": "a/" * 5000}, "entry-unsafe"),
        ({"size": 5, "unpacked": 1}, "entry-damaged"),
    ],
)
def test_a_bad_entry_costs_itself_alone(tmp_path: Path, entry: Any, code: str) -> None:
    archive = asar({"files": {"bad": entry, "good": packed(0, 4)}}, b"good")
    assert listing(tmp_path, archive) == ({"good": b"good"}, {"bad": code})


@pytest.mark.parametrize(
    "name", ["..", ".", "", "a/b", "/etc", "a\\b", "..\\up", "nul\0", "x" * 2000, "\ud800"]
)
def test_a_bad_name_costs_itself_alone(tmp_path: Path, name: str) -> None:
    archive = asar({"files": {name: packed(0, 1), "good": packed(0, 4)}}, b"good")
    files, limitations = listing(tmp_path, archive)
    assert files == {"good": b"good"}
    assert list(limitations.values()) == ["entry-unsafe"]


def test_a_bad_directory_name_costs_what_is_in_it(tmp_path: Path) -> None:
    archive = asar({"files": {"..": {"files": {"x": packed(0, 1)}}, "good": packed(0, 4)}}, b"good")
    assert listing(tmp_path, archive) == ({"good": b"good"}, {"..": "entry-unsafe"})


def test_names_that_are_no_utf8(tmp_path: Path) -> None:
    archive = asar(b'{"files":{"\xff\xfe":{"size":0,"offset":"0"},"good":{"size":4,"offset":"0"}}}', b"good")
    files, limitations = listing(tmp_path, archive)
    assert files == {"good": b"good"}
    assert limitations == {"\\udcff\\udcfe": "entry-unsafe"}


def test_a_name_twice_is_said_and_the_last_one_counts(tmp_path: Path) -> None:
    archive = asar(b'{"files":{"a":{"size":1,"offset":"0"},"a":{"size":1,"offset":"1"}}}', b"12")
    assert listing(tmp_path, archive) == ({"a": b"2"}, {"a": "entry-skipped"})


def test_a_field_twice_costs_the_entry(tmp_path: Path) -> None:
    archive = asar(b'{"files":{"a":{"size":1,"size":2,"offset":"0"},"b":{"size":1,"offset":"1"}}}', b"12")
    assert listing(tmp_path, archive) == ({"b": b"2"}, {"a": "entry-damaged"})


@pytest.mark.parametrize(
    "links", [{"a": "a"}, {"a": "b", "b": "a"}, {"a": "../x"}, {"a": "d/../../x"}, {"a": "gone"}]
)
def test_links_that_loop_escape_or_dangle_lead_nowhere(tmp_path: Path, links: dict[str, str]) -> None:
    files: dict[str, Any] = {name: {"link": target} for name, target in links.items()}
    path = tmp_path / "app.asar"
    path.write_bytes(asar({"files": files}))
    container = AsarContainer(path)
    tree = Tree(container.entries)
    for entry in container.entries:
        real, fault = tree.follow(entry)
        assert real is None
        assert fault is not None
        assert fault.place == entry.path
        assert tree.file(entry.path) is None


def test_long_chains_of_links_end(tmp_path: Path) -> None:
    files: dict[str, Any] = {f"l{n}": {"link": f"l{n + 1}"} for n in range(100)}
    path = tmp_path / "app.asar"
    path.write_bytes(asar({"files": {**files, "l100": packed(0, 0)}}))
    tree = Tree(AsarContainer(path).entries)
    assert tree.file("l70") == "l100"
    assert tree.file("l0") is None


@pytest.mark.parametrize(
    ("archive", "offset"),
    [
        (b"", 0),
        (b"\x04\0\0", 3),
        (b"not an archive at all", 0),
        (struct.pack("<4I", 4, 1 << 31, 8, 2) + b"{}", 4),
        (struct.pack("<4I", 4, 12, 1 << 30, 2) + b"{}" + bytes(10), 8),
        (struct.pack("<4I", 4, 12, 8, 1 << 20) + b"{}" + bytes(10), 8),
        (struct.pack("<4I", 4, 12, 0, 0) + b"{}" + bytes(10), 8),
        (asar(b'{"files":{}')[:-1] + b"!", 27),
        (asar(b"[]"), 16),
        (asar(b"{}"), 16),
        (asar(b'{"files":1}'), 16),
        (asar(b'{"files":{"a":{"size":NaN}}}'), 16),
        (asar(b'{"files":{"a":{"size":%s}}}' % (b"9" * 5000)), 16),
    ],
)
def test_a_bad_header_is_refused_at_its_offset(tmp_path: Path, archive: bytes, offset: int) -> None:
    path = tmp_path / "app.asar"
    path.write_bytes(archive)
    with pytest.raises(VerificationError) as caught:
        AsarContainer(path)
    assert (caught.value.code, caught.value.details) == ("artifact-damaged", {"offset": offset})
    assert str(offset) in caught.value.message


def test_every_truncation_is_refused_or_costs_entries_alone(tmp_path: Path) -> None:
    archive = asar({"files": {"a": packed(0, 4), "b": packed(4, 4)}}, b"aaaabbbb")
    for length in range(len(archive)):
        try:
            files, limitations = listing(tmp_path, archive[:length])
        except VerificationError:
            assert length < len(archive) - 8
        else:
            assert files.keys() | limitations.keys() == {"a", "b"}
            assert set(limitations.values()) <= {"entry-damaged"}


def test_deep_headers_are_refused(tmp_path: Path) -> None:
    depth = 20_000
    archive = asar(b'{"files":' + b'{"a":{"files":' * depth + b"{}" + b"}}" * depth + b"}")
    path = tmp_path / "app.asar"
    path.write_bytes(archive)
    with pytest.raises(VerificationError, match="nested too deeply"):
        AsarContainer(path)


def test_directories_below_the_depth_bound_cost_themselves(tmp_path: Path) -> None:
    inner: dict[str, Any] = {"files": {"x": packed(0, 1)}}
    for _ in range(200):
        inner = {"files": {"d": inner}}
    inner["files"]["good"] = packed(0, 4)
    files, limitations = listing(tmp_path, asar(inner, b"good"))
    assert files == {"good": b"good"}
    assert list(limitations.values()) == ["entry-unsafe"]


@pytest.mark.parametrize("unit", [b'"a":{},', b'"a":[],', b'"a":1,'])
def test_header_bombs_are_refused_before_they_are_parsed(
    monkeypatch: pytest.MonkeyPatch, unit: bytes
) -> None:
    def parse(*_: object, **__: object) -> None:
        raise AssertionError("the header was parsed")

    monkeypatch.setattr(asar_header.json, "loads", parse)
    with pytest.raises(VerificationError, match="more than 300,000 entries"):
        parse_header(b'{"files":{' + unit * 7_000_000 + b'"z":1}}', 0)


def test_more_entries_than_the_bound_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(asar_header, "MAX_ENTRIES", 3)
    archive = asar({"files": {name: packed(0, 0) for name in "abcd"}})
    with pytest.raises(VerificationError, match="more than 3 entries") as caught:
        listing(tmp_path, archive)
    assert "bound" in caught.value.hint


def test_entries_that_share_bytes_too_often_are_refused(tmp_path: Path) -> None:
    data = bytes(1 << 20)
    files = {f"{n}.js": packed(0, len(data)) for n in range(100)}
    with pytest.raises(VerificationError, match="104,857,600 bytes in 1,048,576"):
        listing(tmp_path, asar({"files": files}, data))
    assert len(listing(tmp_path, asar({"files": dict(list(files.items())[:60])}, data))[0]) == 60


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError) as caught:
        AsarContainer(tmp_path / "none.asar")
    assert caught.value.code == "artifact-not-found"


KEYS = st.sampled_from(
    ["files", "size", "offset", "link", "unpacked", "integrity", "..", "a", "b/c"]
) | st.text(max_size=4)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


@given(JSON, st.integers(0, 100))
def test_no_header_crashes(tree: Any, size: int) -> None:
    raw = json.dumps({"files": tree}).encode()
    try:
        header = parse_header(raw, size)
    except VerificationError:
        pass  # any other exception fails the test
    else:
        for entry in header.entries:
            assert not {"", ".", ".."} & set(entry.path.split("/"))
            if entry.kind == "file" and not entry.unpacked:
                assert 0 <= entry.offset <= entry.offset + entry.size <= size


@given(st.binary(max_size=200))
def test_no_bytes_crash(raw: bytes) -> None:
    with suppress(VerificationError):
        parse_header(raw, 0)


@pytest.mark.parametrize(
    "raw",
    [
        '{"files":{"naïve":{"files":{"日本 \\u00e9.js":{"size":1,"offset":"0"}}},"😀\\ud83d.js":{"size":0}}}'.encode(),
        b'{"files":{"a\xff\xc3.js":{"size":1,"offset":"0"},"\xc3\xa9":{"size":1,"offset":"0"}}}',
        '{"files":{"é":{"size":1,"offset":"0"},,}}'.encode(),
        '{"files":{"é":1}} ü'.encode(),
        b'{"files":{"\xc3":{"size":1 "offset":"0"}}}',
    ],
)
def test_large_headers_say_what_small_ones_do(monkeypatch: pytest.MonkeyPatch, raw: bytes) -> None:
    def outcome() -> object:
        try:
            header = parse_header(raw, 1)
        except VerificationError as error:
            return str(error)
        return header.entries, header.limitations

    small = outcome()
    monkeypatch.setattr(asar_header, "_LARGE", 0)
    assert outcome() == small
