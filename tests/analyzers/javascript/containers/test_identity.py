"""One content, one digest: wherever it lies, whoever owns it, however it was written."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from affidavit.analyzers.javascript.containers.identity import signature_of, subject_of
from affidavit.analyzers.javascript.containers.opening import open_container
from affidavit.errors import NotFoundError
from affidavit.evidence.record import Subject
from tests.analyzers.javascript.builders import TarEntry, asar, asar_of, packed, tgz, tgz_of, write_tree

FILES = {"package.json": b"{}", "main.js": b"require('./lib')", "lib/index.js": b"1", "bin/run": b"#!/bin/sh"}


def identify(path: Path) -> Subject:
    with closing(open_container(path)) as container:
        return subject_of(container)


def test_a_plain_archive_has_the_digest_of_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "app.asar"
    path.write_bytes(asar_of(FILES))
    digest = "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()
    assert identify(path) == Subject(digest=digest, format="asar")


def test_unpacked_files_belong_to_the_archive(tmp_path: Path) -> None:
    path = tmp_path / "app.asar"
    path.write_bytes(asar({"files": {"n.node": {"size": 1, "unpacked": True}}}))
    alone = identify(path)
    beside = write_tree(tmp_path / "app.asar.unpacked", {"n.node": b"1"})
    together = identify(path)
    (beside / "n.node").write_bytes(b"2")
    assert len({alone.digest, together.digest, identify(path).digest}) == 3
    (beside / "n.node").write_bytes(b"1")
    (beside / "not-in-the-header").write_bytes(b"")
    assert identify(path) == together
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    shutil.move(path, moved / "other.asar")
    shutil.move(beside, moved / "other.asar.unpacked")
    assert identify(moved / "other.asar") == together


def test_equal_folders_are_equal_everywhere(tmp_path: Path) -> None:
    one = write_tree(tmp_path / "one", FILES)
    two = write_tree(tmp_path / "deep" / "er", dict(reversed(FILES.items())))
    for path in two.rglob("*"):
        os.utime(path, (1, 1))
    (one / "main.js").chmod(0o600)
    (two / "main.js").chmod(0o444)
    assert identify(one) == identify(two)


def rename(root: Path) -> None:
    (root / "main.js").rename(root / "index.js")


def edit(root: Path) -> None:
    (root / "main.js").write_bytes(b"require('./lic')")


def make_executable(root: Path) -> None:
    (root / "bin" / "run").chmod(0o755)


def add_link(root: Path) -> None:
    (root / "link").symlink_to("main.js")


def add_other_link(root: Path) -> None:
    (root / "link").symlink_to("package.json")


def add_unsafe_link(root: Path) -> None:
    (root / "link").symlink_to("/etc/passwd")


def add_empty_folder(root: Path) -> None:
    (root / "empty").mkdir()


def remove(root: Path) -> None:
    (root / "lib" / "index.js").unlink()


def add(root: Path) -> None:
    (root / "node_modules").mkdir()
    (root / "node_modules" / "x.js").touch()


CHANGES = [
    rename,
    edit,
    make_executable,
    add_link,
    add_other_link,
    add_unsafe_link,
    add_empty_folder,
    remove,
    add,
]


def test_every_change_of_a_tree_changes_its_digest(tmp_path: Path) -> None:
    digests = {identify(write_tree(tmp_path / "same", FILES)).digest}
    for change in CHANGES:
        root = write_tree(tmp_path / change.__name__, FILES)
        change(root)
        digests.add(identify(root).digest)
    assert len(digests) == 1 + len(CHANGES)


@pytest.mark.parametrize("change", [change for change in CHANGES if change is not make_executable])
def test_every_change_of_a_tree_changes_its_signature(tmp_path: Path, change: Callable[[Path], None]) -> None:
    root = write_tree(tmp_path / "root", FILES)
    before = signature_of(root)
    assert signature_of(root) == before
    change(root)
    assert signature_of(root) != before


def test_version_control_is_no_part_of_a_tree(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "root", {**FILES, ".git/HEAD": b"1"})
    before, signature = identify(root), signature_of(root)
    (root / ".git" / "HEAD").write_bytes(b"2")
    assert (identify(root), signature_of(root)) == (before, signature)


def test_tarballs_of_one_tree_are_equal_however_they_were_packed(tmp_path: Path) -> None:
    one, two = tmp_path / "one.tgz", tmp_path / "two.tgz"
    one.write_bytes(tgz_of(FILES))
    two.write_bytes(
        tgz([TarEntry(name=f"other/{path}", data=data, mode=0o600) for path, data in reversed(FILES.items())])
    )
    assert one.read_bytes() != two.read_bytes()
    assert identify(one) == identify(two)
    two.write_bytes(tgz_of({**FILES, "main.js": b""}))
    assert identify(one) != identify(two)


def test_one_tree_in_two_formats_is_two_artifacts(tmp_path: Path) -> None:
    # Their limitations may differ, and facts are kept by digest.
    path = tmp_path / "x.tgz"
    path.write_bytes(tgz_of(FILES))
    assert identify(path).digest != identify(write_tree(tmp_path / "root", FILES)).digest


def test_what_was_refused_belongs_to_the_identity(tmp_path: Path) -> None:
    one, two = tmp_path / "one.tgz", tmp_path / "two.tgz"
    one.write_bytes(tgz_of(FILES))
    entries = [TarEntry(name=f"package/{path}", data=data) for path, data in FILES.items()]
    two.write_bytes(tgz([*entries, TarEntry(name="../x", data=b"1")]))
    assert identify(one).digest != identify(two).digest


def test_single_files_are_their_name_and_bytes(tmp_path: Path) -> None:
    for folder in "ab":
        write_tree(tmp_path / folder, {"main.js": "1", "main.ts": "1", "other.js": "1"})
    digests = {name: identify(tmp_path / "a" / name).digest for name in ("main.js", "main.ts", "other.js")}
    assert len(set(digests.values())) == 3
    assert all(identify(tmp_path / "b" / name).digest == digest for name, digest in digests.items())
    (tmp_path / "b" / "main.js").chmod(0o755)
    assert identify(tmp_path / "b" / "main.js").digest == digests["main.js"]


def test_the_signature_of_an_archive_sees_its_companions(tmp_path: Path) -> None:
    path = tmp_path / "app.asar"
    path.write_bytes(asar({"files": {"n.node": packed(0, 1)}}, b"1"))
    seen = {signature_of(path)}
    beside = write_tree(tmp_path / "app.asar.unpacked", {"n.node": b"1"})
    seen.add(signature_of(path))
    (beside / "n.node").write_bytes(b"22")
    seen.add(signature_of(path))
    path.write_bytes(asar({"files": {"n.node": packed(0, 1)}}, b"2"))
    seen.add(signature_of(path))
    assert len(seen) == 4


def test_the_signature_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        signature_of(tmp_path / "none")
