"""Which container a path is."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from affidavit.analyzers.javascript.containers.entry import read_entry
from affidavit.analyzers.javascript.containers.opening import head_of, open_container, reads
from affidavit.errors import NotFoundError, UsageError, VerificationError
from tests.analyzers.javascript.builders import asar_of, tgz_of, write_tree


@pytest.mark.parametrize(
    "suffix", [".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx", ".jsx", ".json", ".JS"]
)
def test_single_source_files(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"main{suffix}"
    path.write_bytes(b"")
    assert reads(path, head_of(path))
    with closing(open_container(path)) as container:
        assert container.format == "source-file"
        assert [(entry.path, entry.size) for entry in container.entries] == [(path.name, 0)]
        assert read_entry(container, container.entries[0], limit=10) == b""


@pytest.mark.parametrize("name", ["app.asar", "renamed", "odd.js"])
def test_archives_are_known_by_their_bytes(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(asar_of({"a.js": b"1"}))
    assert reads(path, head_of(path))
    with closing(open_container(path)) as container:
        assert container.format == "asar"


def test_tarballs_and_folders(tmp_path: Path) -> None:
    path = tmp_path / "x.tgz"
    path.write_bytes(tgz_of({"a.js": b"1"}))
    with closing(open_container(path)) as container:
        assert container.format == "npm-tarball"
    with closing(open_container(tmp_path)) as container:
        assert container.format == "folder"


@pytest.mark.parametrize("name", ["x.asar", "x.tgz"])
def test_empty_archives_are_damaged_by_their_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"")
    assert reads(path, head_of(path))
    with pytest.raises(VerificationError) as caught:
        open_container(path)
    assert caught.value.details == {"offset": 0}


def test_other_files_are_refused_with_the_next_step(tmp_path: Path) -> None:
    path = tmp_path / "image.png"
    path.write_bytes(b"\x89PNG")
    assert not reads(path, head_of(path))
    with pytest.raises(UsageError) as caught:
        open_container(path)
    assert (caught.value.code, ".mjs" in caught.value.hint) == ("artifact-unsupported", True)


def test_what_is_not_there_and_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        open_container(tmp_path / "none.js")
    os.mkfifo(tmp_path / "pipe.js")
    with pytest.raises(UsageError):
        open_container(tmp_path / "pipe.js")


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"package.json": "{}"}, True),
        ({"main.js": ""}, True),
        ({"src/main.ts": ""}, True),
        ({"a/b/main.js": ""}, True),
        ({"a/b/c/main.js": ""}, False),
        ({"readme.md": "", "data.json": ""}, False),
        ({}, False),
    ],
)
def test_folders_with_sources_are_known(tmp_path: Path, files: dict[str, str], found: bool) -> None:
    assert reads(write_tree(tmp_path / "root", files), b"") is found
