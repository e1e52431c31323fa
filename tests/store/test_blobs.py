"""Blobs: whole or absent, checked on each read, repaired by putting them again."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from affidavit.errors import FailedError, UsageError, VerificationError
from affidavit.evidence.canonical import digest
from affidavit.store import Blobs

CONTENTS = [b"", b"one", b"x" * 100_000]


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    return Blobs(tmp_path / "blobs")


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def test_bytes_come_back(blobs: Blobs) -> None:
    for data in CONTENTS:
        ref = blobs.put(data)
        assert (ref.digest, ref.size) == (digest(data), len(data))
        assert blobs.get(ref.digest) == data
        assert blobs.has(ref.digest)
        assert blobs.path(ref.digest).read_bytes() == data
    assert list(blobs.addresses()) == sorted(map(digest, CONTENTS))
    assert blobs.damaged() == []


def test_files_are_private_and_nothing_is_left_beside_them(blobs: Blobs) -> None:
    ref = blobs.put(b"secret")
    path = blobs.path(ref.digest)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [it for it in blobs.root.rglob("*") if it.is_file()] == [path]


def test_a_cut_blob_fails_by_its_address_and_is_repaired_by_the_same_content(blobs: Blobs) -> None:
    refs = [blobs.put(data) for data in (b"first content", b"second content", b"third content")]
    bad = refs[1].digest
    cut(blobs.path(bad))
    with pytest.raises(VerificationError) as caught:
        blobs.get(bad)
    assert caught.value.code == "blob-damaged"
    assert bad in caught.value.message
    assert blobs.damaged() == [bad]
    assert blobs.put(b"second content").digest == bad
    assert blobs.get(bad) == b"second content"
    assert blobs.damaged() == []


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path)


def link(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.with_name("other"))
    path.with_name("other").write_bytes(b"something else")


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def emptied(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes among the files here")
@pytest.mark.parametrize("damage", [pipe, loop, link, folder, emptied])
def test_what_is_no_readable_file_is_a_damaged_blob(blobs: Blobs, damage: Callable[[Path], None]) -> None:
    refs = [blobs.put(data) for data in (b"first content", b"second content")]
    bad = refs[1].digest
    damage(blobs.path(bad))
    with pytest.raises(VerificationError) as caught:
        blobs.get(bad)
    assert caught.value.code == "blob-damaged"
    assert bad in caught.value.message
    assert blobs.damaged() == [bad]
    assert blobs.get(refs[0].digest) == b"first content"
    if damage is folder:
        with pytest.raises(FailedError, match="Is a directory"):
            blobs.put(b"second content")
    else:
        blobs.put(b"second content")
        assert blobs.get(bad) == b"second content"


def test_too_many_open_files_are_no_damage(blobs: Blobs, monkeypatch: pytest.MonkeyPatch) -> None:
    ref = blobs.put(b"content")

    def refuse(*_: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refuse)
        with pytest.raises(FailedError, match="Too many open files"):
            blobs.get(ref.digest)
    assert blobs.get(ref.digest) == b"content"


def test_other_bytes_of_the_same_length_are_noticed_and_repaired(blobs: Blobs) -> None:
    ref = blobs.put(b"right")
    blobs.path(ref.digest).write_bytes(b"wrong")
    with pytest.raises(VerificationError, match="blob-damaged"):
        blobs.get(ref.digest)
    blobs.put(b"right")
    assert blobs.get(ref.digest) == b"right"


def test_an_absent_blob_is_missing_not_damaged(blobs: Blobs) -> None:
    with pytest.raises(VerificationError) as caught:
        blobs.get(digest(b"absent"))
    assert caught.value.code == "blob-missing"
    assert digest(b"absent") in caught.value.message
    assert list(blobs.addresses()) == []
    assert blobs.damaged() == []


@pytest.mark.parametrize(
    "address",
    ["", "sha256:", "abc", "sha256:" + "A" * 64, "sha256:../../" + "a" * 58, "sha256:" + "a" * 65, "\0"],
)
def test_only_addresses_lead_to_files(blobs: Blobs, address: str) -> None:
    for look in (blobs.get, blobs.path, blobs.has):
        with pytest.raises(UsageError, match="name-invalid"):
            look(address)


def test_putting_again_writes_nothing(blobs: Blobs) -> None:
    ref = blobs.put(b"same")
    before = blobs.path(ref.digest).stat()
    blobs.put(b"same")
    after = blobs.path(ref.digest).stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOSPC, "store-full"),
        (errno.EDQUOT, "store-full"),
        (errno.EROFS, "store-unwritable"),
        (errno.EIO, "store-unwritable"),
    ],
)
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failed_write_leaves_nothing_and_loses_nothing(
    blobs: Blobs, monkeypatch: pytest.MonkeyPatch, number: int, code: str, call: str
) -> None:
    kept = blobs.put(b"kept")
    broken = blobs.put(b"to be repaired")
    cut(blobs.path(broken.digest))

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        for data in (b"new", b"to be repaired"):
            with pytest.raises(FailedError) as caught:
                blobs.put(data)
            assert caught.value.code == code
            assert caught.value.hint
    assert blobs.get(kept.digest) == b"kept"
    assert blobs.damaged() == [broken.digest]
    assert not blobs.has(digest(b"new"))
    assert list((blobs.root / "incoming").iterdir()) == []
    assert blobs.put(b"new").digest == digest(b"new")
    assert blobs.put(b"to be repaired") == broken
    assert blobs.damaged() == []


def test_a_folder_that_cannot_be_made_is_an_error(blobs: Blobs, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, "read-only")

    monkeypatch.setattr(os, "mkdir", fail)
    with pytest.raises(FailedError, match="store-unwritable"):
        blobs.put(b"new")


def test_only_old_leftovers_are_cleaned(blobs: Blobs) -> None:
    blobs.clean()
    ref = blobs.put(b"kept")
    old, young = (blobs.root / "incoming" / name for name in ("old", "young"))
    for path in (old, young):
        path.write_bytes(b"half")
    long_ago = time.time() - 2 * 24 * 3600
    os.utime(old, (long_ago, long_ago))
    os.utime(blobs.path(ref.digest), (long_ago, long_ago))
    blobs.clean()
    assert not old.exists()
    assert young.exists()
    assert blobs.get(ref.digest) == b"kept"
