"""Workspaces that may be read and not written."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from affidavit.store import Store

from .samples import event, finish, record, start

pytestmark = pytest.mark.skipif(not hasattr(os, "setuid"), reason="files have no rights here")

LOOK = """
import os
from affidavit.errors import AffidavitError
from affidavit.store.exporting.backup import back_up
from affidavit.store.integrity import check_store
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
before = sorted(os.listdir(root))
try:
    with Store.open(root, to_read=True) as opened:
        numbers = [it.data["n"] for it in opened.events.of_session("s1")]
        large = [len(opened.evidence.result(it)) for _, it in opened.evidence.list()]
        print(opened.writable, numbers, sorted(large), check_store(opened).holds)
        try:
            opened.append(event(), record=record(7))
        except AffidavitError as error:
            print(error.code)
        print(back_up(opened, Path(sys.argv[2])).damaged)
    with Store.open(root, tenant="other", to_read=True) as opened:
        print(opened.events.sessions(), opened.evidence.list())
except AffidavitError as error:
    print(error.code, error.hint)
assert sorted(os.listdir(root)) == before
"""
SEEN = "False [0, 1, 2] [1, 1, 90000] True\nstore-unwritable\n()\n[] []\n"


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that other users can enter, which `tmp_path` is not."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        yield Path(folder)


def fill(root: Path, first: int, last: int) -> Store:
    store = Store.open(root)
    for number in range(first, last):
        large = "x" * 90_000 if number == 0 else None
        store.append(event(data={"n": number}), record=record(number, large))
    return store


def closed(root: Path) -> Path:
    """Take the right to write from everything in the folder."""
    for folder, _, files in os.walk(root):
        for name in files:
            os.chmod(Path(folder, name), 0o444)
        os.chmod(folder, 0o555)
    return root


def opened_again(root: Path) -> None:
    for folder, _, _ in os.walk(root):
        os.chmod(folder, 0o755)


def look(root: Path, copy: Path) -> str:
    try:
        return finish(start(LOOK, root, copy))[0]
    finally:
        opened_again(root)


def test_a_workspace_that_nobody_has_open(place: Path) -> None:
    fill(place / "ws", 0, 3).close()
    assert look(closed(place / "ws"), place / "copy") == SEEN
    with Store.open(place / "copy", to_read=True) as copy:
        assert copy.writable
        assert len(copy.events.of_session("s1")) == 3


def test_a_workspace_that_another_process_writes(place: Path) -> None:
    fill(place / "ws", 0, 2).close()
    with fill(place / "ws", 2, 3):
        assert look(closed(place / "ws"), place / "copy") == SEEN


@pytest.mark.parametrize("index", [True, False])
def test_a_copy_of_a_workspace_in_use(place: Path, index: bool) -> None:
    fill(place / "ws", 0, 2).close()
    with fill(place / "ws", 2, 3):
        shutil.copytree(place / "ws", place / "taken")
    if index:
        assert look(closed(place / "taken"), place / "copy") == SEEN
        return
    # The last event is in the log, which cannot be read without its index: an older state must not be shown instead.
    (place / "taken" / "store.sqlite-shm").unlink()
    told = look(closed(place / "taken"), place / "copy")
    assert told.startswith("store-unwritable copy the whole folder")
    shutil.copytree(place / "taken", place / "again")
    with Store.open(place / "again", to_read=True) as store:
        assert len(store.events.of_session("s1")) == 3


def test_a_left_over_index_without_a_log(place: Path) -> None:
    fill(place / "ws", 0, 3).close()
    (place / "ws" / "store.sqlite-shm").write_bytes(bytes(32768))
    assert look(closed(place / "ws"), place / "copy") == SEEN


@pytest.mark.parametrize("content", [b"", b"not a database at all"])
def test_a_file_that_is_no_workspace(place: Path, content: bytes) -> None:
    (place / "ws").mkdir()
    (place / "ws" / "store.sqlite").write_bytes(content)
    told = look(closed(place / "ws"), place / "copy")
    assert told.startswith("store-damaged" if content else "store-missing")
