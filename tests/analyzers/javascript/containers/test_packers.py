"""Archives that the real packers made: `@electron/asar` and npm."""

from __future__ import annotations

import hashlib
from contextlib import closing
from pathlib import Path

import pytest

from affidavit.analyzers.javascript.containers.content import examine
from affidavit.analyzers.javascript.containers.entry import Container, read_entry
from affidavit.analyzers.javascript.containers.opening import open_container
from affidavit.analyzers.javascript.containers.tree import Tree
from tests import real_inputs
from tests.analyzers.javascript.builders import write_tree


def digests(container: Container) -> dict[str, str | None]:
    return {
        entry.path: examine(container, entry).sha256 for entry in container.entries if entry.kind == "file"
    }


def on_disk(root: Path) -> dict[str, str]:
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in root.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def test_a_tree_with_everything(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path / "app",
        {
            "main.js": "1", "lib/é/日本.js": "2", "constructor/__proto__.js": "3", "files/files": "4", "run": "5",
            "empty.js": "", "lib/addon.node": "6", "with space.js": "7", "big.bin": b"x" * (9 << 20), "lib/a": "8",
        },
    )  # fmt: skip
    (root / "run").chmod(0o755)
    (root / "hollow").mkdir()
    (root / "lib" / "link.js").symlink_to("a")
    (root / "folder-link").symlink_to("lib")
    path = tmp_path / "app.asar"
    real_inputs.node("pack.mjs", [{"source": str(root), "target": str(path)}])
    with closing(open_container(path)) as container:
        assert digests(container) == on_disk(root)
        assert container.limitations == ()
        entries = {entry.path: entry for entry in container.entries}
        assert {path for path, entry in entries.items() if entry.executable} == {"run"}
        assert {path for path, entry in entries.items() if entry.unpacked} == {"lib/addon.node"}
        assert {path for path, entry in entries.items() if entry.kind == "directory"} == {"hollow"}
        tree = Tree(container.entries)
        assert tree.file("lib/link.js") == "lib/a"
        assert tree.file("folder-link/é/日本.js") == "lib/é/日本.js"
        states = {
            path: examine(container, entry).integrity
            for path, entry in entries.items()
            if entry.kind == "file"
        }
        assert set(states.values()) == {"verified"}


@pytest.mark.parametrize("key", ["lvce", "nightmare"])
def test_real_applications(key: str) -> None:
    path, folder = real_inputs.packed_asar(key), real_inputs.application(key)
    with closing(open_container(path)) as archive, closing(open_container(folder)) as plain:
        assert archive.limitations == plain.limitations == ()
        found = digests(archive)
        assert found == digests(plain) == on_disk(folder)
        assert len(found) > 20
        for entry in archive.entries:
            if entry.kind == "file":
                content = examine(archive, entry)
                assert (content.integrity, content.fault) == ("verified", None)


@pytest.mark.parametrize("key", ["lvce", "nightmare"])
def test_real_tarballs(key: str) -> None:
    folder = real_inputs.unpacked(key)
    with closing(open_container(real_inputs.tarball(key))) as container:
        assert container.limitations == ()
        assert digests(container) == on_disk(folder)
        main = next(entry for entry in container.entries if entry.path == "package.json")
        assert read_entry(container, main, limit=1 << 20) == (folder / "package.json").read_bytes()
