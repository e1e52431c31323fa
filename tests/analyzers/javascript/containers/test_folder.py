"""Folders: everything below them, nothing outside."""

from __future__ import annotations

import os
import socket
from contextlib import closing
from pathlib import Path

import pytest

from affidavit.analyzers.javascript.containers import folder as folder_module
from affidavit.analyzers.javascript.containers import rooted
from affidavit.analyzers.javascript.containers.entry import Entry, EntryError, read_entry
from affidavit.analyzers.javascript.containers.folder import FolderContainer
from affidavit.analyzers.javascript.containers.tree import Tree
from affidavit.errors import FailedError, NotFoundError
from tests.analyzers.javascript.builders import write_tree


def codes(container: FolderContainer) -> dict[str, str]:
    return {one.place: one.code for one in container.limitations}


def test_everything_below_is_listed_node_modules_included(tmp_path: Path) -> None:
    write_tree(tmp_path, {"main.js": "1", "node_modules/a/index.js": "2", ".hidden/x": "3", "__proto__": "4"})
    (tmp_path / "empty").mkdir()
    with closing(FolderContainer(tmp_path)) as container:
        kinds = {entry.path: entry.kind for entry in container.entries}
        assert kinds == {
            ".hidden/x": "file",
            "__proto__": "file",
            "empty": "directory",
            "main.js": "file",
            "node_modules/a/index.js": "file",
        }
        assert [entry.path for entry in container.entries] == sorted(kinds)
        assert read_entry(container, container.entries[0], limit=10) == b"3"
        assert container.limitations == ()


def test_version_control_is_skipped_and_said(tmp_path: Path) -> None:
    write_tree(tmp_path, {".git/config": "x", "sub/.git/config": "x", "sub/a.js": "1", ".gitignore": "x"})
    with closing(FolderContainer(tmp_path)) as container:
        assert [entry.path for entry in container.entries] == [".gitignore", "sub/a.js"]
        assert codes(container) == {".git": "entry-skipped", "sub/.git": "entry-skipped"}


def test_executables(tmp_path: Path) -> None:
    write_tree(tmp_path, {"run": "x", "read": "x"})
    (tmp_path / "run").chmod(0o755)
    (tmp_path / "read").chmod(0o644)
    with closing(FolderContainer(tmp_path)) as container:
        assert {entry.path: entry.executable for entry in container.entries} == {"run": True, "read": False}


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A folder with links inside it, out of it, in circles and to nothing."""
    (tmp_path / "secret.js").write_text("secret")
    root = write_tree(tmp_path / "root", {"packages/b/index.js": "1", "lib/a.js": "2"})
    (root / "node_modules").mkdir()
    (root / "node_modules" / "b").symlink_to("../packages/b")
    (root / "a.js").symlink_to("lib/a.js")
    (root / "here").symlink_to(".")
    (root / "up").symlink_to("..")
    (root / "out.js").symlink_to("../secret.js")
    (root / "absolute.js").symlink_to(root / "lib" / "a.js")
    (root / "loop").symlink_to("loop")
    (root / "gone").symlink_to("nothing")
    return root


def test_links_are_followed_inside_and_never_out(linked: Path) -> None:
    with closing(FolderContainer(linked)) as container:
        tree = Tree(container.entries)
        assert tree.file("node_modules/b/index.js") == "packages/b/index.js"
        assert tree.file("a.js") == "lib/a.js"
        assert tree.file("here/here/a.js") == "lib/a.js"
        assert tree.file("out.js") is None
        assert tree.file("up/secret.js") is None
        assert tree.file("up/root/lib/a.js") is None
        assert tree.directory("up") is None
        assert tree.file("loop") is None
        faults = {
            entry.path: fault.code
            for entry in container.entries
            if entry.kind == "link" and (fault := tree.follow(entry)[1]) is not None
        }
        assert faults == {
            "up": "entry-unsafe",
            "out.js": "entry-unsafe",
            "loop": "entry-unsafe",
            "gone": "entry-missing",
        }
        assert codes(container) == {"absolute.js": "entry-unsafe"}


def test_files_are_listed_once_whatever_links_there_are(linked: Path) -> None:
    with closing(FolderContainer(linked)) as container:
        files = [entry.path for entry in container.entries if entry.kind == "file"]
        assert files == ["lib/a.js", "packages/b/index.js"]


@pytest.mark.parametrize("swapped", ["lib/a.js", "lib"])
def test_a_link_swapped_in_after_listing_is_not_followed(tmp_path: Path, swapped: str) -> None:
    outside = write_tree(tmp_path / "outside", {"a.js": "secret", "lib/a.js": "secret"})
    root = write_tree(tmp_path / "root", {"lib/a.js": "1"})
    with closing(FolderContainer(root)) as container:
        (root / swapped).rename(root / "moved")
        (root / swapped).symlink_to(outside / swapped)
        with pytest.raises(EntryError):
            read_entry(container, container.entries[0], limit=100)


def test_a_file_that_went_away(tmp_path: Path) -> None:
    root = write_tree(tmp_path, {"a.js": "1"})
    with closing(FolderContainer(root)) as container:
        (root / "a.js").unlink()
        with pytest.raises(EntryError) as caught:
            read_entry(container, container.entries[0], limit=100)
        assert caught.value.code == "entry-missing"


def test_pipes_and_sockets_are_left_out_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe.js")
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server, closing(FolderContainer(tmp_path)):
        server.bind("socket")
        with closing(FolderContainer(tmp_path)) as container:
            assert container.entries == ()
            assert codes(container) == {"pipe.js": "entry-skipped", "socket": "entry-skipped"}
            with pytest.raises(EntryError) as caught:
                read_entry(container, Entry(path="pipe.js", kind="file"), limit=10)
            assert caught.value.code == "entry-unsafe"


def test_names_that_are_no_unicode_cost_themselves(tmp_path: Path) -> None:
    try:
        (tmp_path / os.fsdecode(b"\xff.js")).write_text("1")
    except OSError:
        pytest.skip("this file system takes Unicode names only")
    write_tree(tmp_path, {"good.js": "1", "back\\slash.js": "1", "new\nline.js": "1"})
    with closing(FolderContainer(tmp_path)) as container:
        assert [entry.path for entry in container.entries] == ["good.js", "new\nline.js"]
        assert codes(container) == {"\\udcff.js": "entry-unsafe", "back\\slash.js": "entry-unsafe"}


def test_what_may_not_be_read_costs_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tree(tmp_path, {"closed/a.js": "1", "good.js": "1"})
    inner = rooted.Root.list

    def listing(root: rooted.Root, directory: str) -> list[rooted.Found]:
        # Permissions do not bind root, who may run these tests.
        if directory == "closed":
            raise PermissionError(13, "Permission denied")
        return inner(root, directory)

    monkeypatch.setattr(rooted.Root, "list", listing)
    with closing(FolderContainer(tmp_path)) as container:
        assert [entry.path for entry in container.entries] == ["good.js"]
        assert codes(container) == {"closed": "entry-unreadable"}


def test_too_many_entries_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_module, "MAX_ENTRIES", 3)
    write_tree(tmp_path, dict.fromkeys("abcd", ""))
    with pytest.raises(FailedError) as caught:
        FolderContainer(tmp_path)
    assert caught.value.code == "value-too-large"


def test_too_many_bytes_are_refused(tmp_path: Path) -> None:
    with (tmp_path / "disk.img").open("wb") as file:
        file.truncate(65 << 30)  # a hole: takes no room
    with pytest.raises(FailedError, match="68,719,476,736 bytes"):
        FolderContainer(tmp_path)


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        FolderContainer(tmp_path / "none")
