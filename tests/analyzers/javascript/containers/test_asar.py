"""Well-formed archives with everything that packers write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from affidavit.analyzers.javascript.containers.asar import AsarContainer
from affidavit.analyzers.javascript.containers.content import examine
from affidavit.analyzers.javascript.containers.entry import EntryError, read_entry
from affidavit.analyzers.javascript.containers.tree import Tree
from tests.analyzers.javascript.builders import asar, asar_of, integrity, packed

A = b"require('./b');\n"
B = b"module.exports = 1;\n"


def open_asar(tmp_path: Path, archive: bytes) -> AsarContainer:
    path = tmp_path / "app.asar"
    path.write_bytes(archive)
    return AsarContainer(path)


def contents(container: AsarContainer) -> dict[str, bytes]:
    return {
        entry.path: read_entry(container, entry, limit=1 << 20)
        for entry in container.entries
        if entry.kind == "file"
    }


def test_two_files_are_listed_and_read(tmp_path: Path) -> None:
    header = {"files": {"a.js": packed(0, len(A)), "b.js": packed(len(A), len(B))}}
    container = open_asar(tmp_path, asar(header, A + B))
    assert contents(container) == {"a.js": A, "b.js": B}
    assert container.limitations == ()


def test_unpadded_headers_are_read(tmp_path: Path) -> None:
    # Padding is what differs between packers; the lengths in front say where data start.
    for extra in range(4):
        header = b'{"files":{"a":{"size":1,"offset":"0"}}' + b" " * extra + b"}"
        assert contents(open_asar(tmp_path, asar(header, b"x"))) == {"a": b"x"}


def test_nested_directories(tmp_path: Path) -> None:
    header = {"files": {"d": {"files": {"e": {"files": {"x.js": packed(0, 4)}}}}}}
    assert contents(open_asar(tmp_path, asar(header, b"1;2;"))) == {"d/e/x.js": b"1;2;"}


def test_names_of_object_prototypes_and_header_fields_are_ordinary_names(tmp_path: Path) -> None:
    header: dict[str, Any] = {
        "files": {
            "constructor": {"files": {"__proto__": packed(0, 4), "files": packed(4, 4)}},
            "size": packed(0, 4),
            "offset": {"files": {}},
        }
    }
    container = open_asar(tmp_path, asar(header, b"aaaabbbb"))
    assert contents(container) == {
        "constructor/__proto__": b"aaaa",
        "constructor/files": b"bbbb",
        "size": b"aaaa",
    }
    assert [(entry.path, entry.kind) for entry in container.entries if entry.kind != "file"] == [
        ("offset", "directory")
    ]
    assert container.limitations == ()


def test_executables_and_links(tmp_path: Path) -> None:
    header = {"files": {"tool": packed(0, 4, executable=True), "ln": {"link": "tool"}}}
    container = open_asar(tmp_path, asar(header, b"#!/x"))
    tool, link = sorted(container.entries, key=lambda entry: entry.kind)
    assert (tool.path, tool.executable, link.path, link.kind, link.target) == (
        "tool",
        True,
        "ln",
        "link",
        "tool",
    )
    assert Tree(container.entries).follow(link) == ("tool", None)


def test_links_start_at_the_root_of_the_archive(tmp_path: Path) -> None:
    header = {
        "files": {
            "bin": {"files": {"run": {"link": "lib/run.js"}}},
            "lib": {"files": {"run.js": packed(0, 1)}},
        }
    }
    tree = Tree(open_asar(tmp_path, asar(header, b"1")).entries)
    assert tree.file("bin/run") == "lib/run.js"


def test_an_empty_archive(tmp_path: Path) -> None:
    container = open_asar(tmp_path, asar({"files": {}}))
    assert (container.entries, container.limitations) == ((), ())


@pytest.fixture
def unpacked(tmp_path: Path) -> tuple[Path, bytes]:
    header = {"files": {"a.js": packed(0, len(A)), "n.node": {"size": 12, "unpacked": True}}}
    return tmp_path, asar(header, A)


def test_unpacked_files_are_read_beside_the_archive(unpacked: tuple[Path, bytes]) -> None:
    folder, archive = unpacked
    (folder / "app.asar.unpacked").mkdir()
    (folder / "app.asar.unpacked" / "n.node").write_bytes(b"\x7fELF-not-it.")
    assert contents(open_asar(folder, archive)) == {"a.js": A, "n.node": b"\x7fELF-not-it."}


def test_unpacked_files_that_are_not_there(unpacked: tuple[Path, bytes]) -> None:
    container = open_asar(*unpacked)
    addon = next(entry for entry in container.entries if entry.unpacked)
    with pytest.raises(EntryError) as caught:
        read_entry(container, addon, limit=100)
    assert (caught.value.code, caught.value.limitation.place) == ("entry-missing", "n.node")


def test_unpacked_files_of_another_size(unpacked: tuple[Path, bytes]) -> None:
    folder, archive = unpacked
    (folder / "app.asar.unpacked").mkdir()
    (folder / "app.asar.unpacked" / "n.node").write_bytes(b"other")
    container = open_asar(folder, archive)
    fault = examine(container, next(entry for entry in container.entries if entry.unpacked)).fault
    assert fault is not None
    assert (fault.code, fault.place) == ("entry-damaged", "n.node")


def test_unpacked_files_behind_a_link_are_not_followed(unpacked: tuple[Path, bytes]) -> None:
    folder, archive = unpacked
    (folder / "secret").write_bytes(b"twelve bytes")
    (folder / "app.asar.unpacked").mkdir()
    (folder / "app.asar.unpacked" / "n.node").symlink_to(folder / "secret")
    container = open_asar(folder, archive)
    content = examine(container, next(entry for entry in container.entries if entry.unpacked))
    assert content.sha256 is None
    assert content.fault is not None


DATA = b"0123456789" * 10


@pytest.mark.parametrize(
    ("declared", "state"),
    [
        (integrity(DATA), "verified"),
        (integrity(DATA, block=7), "verified"),
        (integrity(DATA, block=10), "verified"),
        (integrity(DATA, block=100), "verified"),
        (integrity(DATA, hash=integrity(b"")["hash"]), "mismatch"),
        (integrity(DATA, blocks=integrity(b"")["blocks"]), "mismatch"),
        (integrity(DATA, block=10, blocks=integrity(DATA, block=10)["blocks"][:-1]), "mismatch"),
        (integrity(DATA[::-1], block=10), "mismatch"),
        (None, "undeclared"),
    ],
)
def test_declared_digests_are_compared(tmp_path: Path, declared: Any, state: str) -> None:
    fields = {} if declared is None else {"integrity": declared}
    container = open_asar(tmp_path, asar({"files": {"a": packed(0, len(DATA), **fields)}}, DATA))
    content = examine(container, container.entries[0])
    assert content.integrity == state
    assert content.sha256 == integrity(DATA)["hash"]
    assert (content.fault is not None) == (state == "mismatch")
    assert container.limitations == ()


def test_a_wrong_block_is_named(tmp_path: Path) -> None:
    blocks = integrity(DATA, block=10)["blocks"]
    declared = integrity(DATA, block=10, blocks=[*blocks[:3], "0" * 64, *blocks[4:]])
    container = open_asar(tmp_path, asar({"files": {"a": packed(0, len(DATA), integrity=declared)}}, DATA))
    fault = examine(container, container.entries[0]).fault
    assert fault is not None
    assert "block 3" in fault.message


def test_an_empty_file_with_and_without_a_block(tmp_path: Path) -> None:
    for declared in (integrity(b""), integrity(b"", blocks=[])):
        container = open_asar(tmp_path, asar({"files": {"a": packed(0, 0, integrity=declared)}}))
        assert examine(container, container.entries[0]).integrity == "verified"


@pytest.mark.parametrize(
    "declared",
    [
        1,
        {},
        {"algorithm": "MD5"},
        integrity(b"", hash="zz"),
        integrity(b"", blockSize=0),
        integrity(b"", blocks=[1]),
    ],
)
def test_malformed_declarations_are_said_and_the_file_is_kept(tmp_path: Path, declared: Any) -> None:
    container = open_asar(tmp_path, asar({"files": {"a": packed(0, 1, integrity=declared)}}, b"x"))
    assert contents(container) == {"a": b"x"}
    assert [(one.code, one.place) for one in container.limitations] == [("entry-damaged", "a")]


def test_entries_are_sorted_whatever_the_header_says(tmp_path: Path) -> None:
    files = {"z": b"1", "a/z": b"2", "a.js": b"3", "é": b"4", "A": b"5"}
    assert [entry.path for entry in open_asar(tmp_path, asar_of(files)).entries] == sorted(files)


def test_reading_is_bounded(tmp_path: Path) -> None:
    container = open_asar(tmp_path, asar_of({"a": b"x" * 100}))
    with pytest.raises(EntryError) as caught:
        read_entry(container, container.entries[0], limit=99)
    assert caught.value.code == "entry-too-large"
    assert read_entry(container, container.entries[0], limit=100) == b"x" * 100


def test_a_file_cut_off_while_open_is_damaged_and_not_a_crash(tmp_path: Path) -> None:
    container = open_asar(tmp_path, asar_of({"a": b"x" * 100_000}))
    with (tmp_path / "app.asar").open("r+b") as file:
        file.truncate(1000)
    with pytest.raises(EntryError) as caught:
        read_entry(container, container.entries[0], limit=1 << 20)
    assert caught.value.code == "entry-damaged"
