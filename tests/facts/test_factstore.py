"""A folder of fact files: complete or not there, whatever dies, and whoever builds at the same time."""

from __future__ import annotations

import errno
import logging
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from affidavit.errors import AffidavitError, FailedError, VerificationError
from affidavit.facts import _seal
from affidavit.facts.factfile import FactFile, FactFileWriter, FactKey, FactStore

from .samples import THINGS, numbered

KEY = FactKey(artifact="sha256:" + "a" * 64, analyzer="sample", version="1", options={"depth": 3})
Meta = Mapping[str, Any]


def filling(count: int = 3) -> Callable[[FactFileWriter], Meta]:
    def fill(writer: FactFileWriter) -> Meta:
        for row in numbered(count):
            writer.add("things", row)
        return {"summary": {"rows": count}}

    return fill


def files(folder: Path) -> list[str]:
    return sorted(path.suffix for path in folder.iterdir())


class TestNames:
    def test_a_key_has_one_name_everywhere(self) -> None:
        assert KEY.name == "b87a94eb1e438d1e20c8a939a7b02a18bdec8f450b75ef856748dd536de3a12c"
        reordered = replace(KEY, options={"b": [1.5, None], "a": "\ud800"})
        assert reordered.name == replace(KEY, options={"a": "\ud800", "b": [1.5, None]}).name

    def test_every_part_of_a_key_counts(self) -> None:
        others = [
            replace(KEY, artifact="sha256:" + "b" * 64),
            replace(KEY, analyzer="other"),
            replace(KEY, version="2"),
            replace(KEY, options={}),
            replace(KEY, options={"depth": 3.0}),
        ]
        assert len({KEY.name, *(one.name for one in others)}) == 6


def test_what_was_built_is_found(tmp_path: Path) -> None:
    store = FactStore(tmp_path / "facts")
    assert store.get(KEY, [THINGS]) is None
    with store.build(KEY, [THINGS], filling()) as built:
        assert built.path == store.path(KEY)
        digest = built.digest
    found = FactStore(tmp_path / "facts").get(KEY, [THINGS])
    assert found is not None
    with found:
        assert (found.digest, found.summary) == (digest, {"rows": 3})
    assert store.get(replace(KEY, version="2"), [THINGS]) is None
    assert files(tmp_path / "facts") == [".facts"]


@pytest.mark.parametrize(
    "error", [FailedError("analysis-failed", "no"), KeyboardInterrupt(), ValueError("x")]
)
def test_a_failed_build_leaves_nothing(tmp_path: Path, error: BaseException) -> None:
    def fill(writer: FactFileWriter) -> Meta:
        filling(5000)(writer)
        raise error

    with pytest.raises(type(error)):
        FactStore(tmp_path).build(KEY, [THINGS], fill)
    assert files(tmp_path) == []


def test_a_failed_build_leaves_the_older_file(tmp_path: Path) -> None:
    store = FactStore(tmp_path)
    store.build(KEY, [THINGS], filling()).close()

    def fill(writer: FactFileWriter) -> Meta:
        raise FailedError("analysis-failed", "no")

    with pytest.raises(FailedError):
        store.build(KEY, [THINGS], fill)
    found = store.get(KEY, [THINGS])
    assert found is not None
    found.close()


def test_a_damaged_file_is_reported_and_built_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = FactStore(tmp_path)
    store.build(KEY, [THINGS], filling()).close()
    path = store.path(KEY)
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:5000])
    with caplog.at_level(logging.WARNING):
        assert store.get(KEY, [THINGS]) is None
    assert str(path) in caplog.text
    store.build(KEY, [THINGS], filling()).close()
    found = store.get(KEY, [THINGS])
    assert found is not None
    found.close()


def test_a_file_of_a_newer_format_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FactStore(tmp_path)
    store.build(KEY, [THINGS], filling()).close()
    monkeypatch.setattr(_seal, "VERSION", 0)
    with pytest.raises(VerificationError) as caught:
        store.get(KEY, [THINGS])
    assert caught.value.code == "facts-damaged"


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(AffidavitError) as caught:
        FactStore(tmp_path / "file").build(KEY, [THINGS], filling())
    assert caught.value.code == "store-full"


def test_an_open_file_outlives_its_replacement(tmp_path: Path) -> None:
    store = FactStore(tmp_path)
    with store.build(KEY, [THINGS], filling(3)) as older:
        with store.build(KEY, [THINGS], filling(4)) as newer:
            assert (older.total("things"), newer.total("things")) == (3, 4)
        assert len(older.rows("things", range(3))) == 3


class Builder:
    """Another process that builds facts, and waits for a line before it finishes."""

    def __init__(self, folder: Path, key: FactKey) -> None:
        code = f"""
            import sys
            from pathlib import Path
            from affidavit.facts.factfile import FactKey, FactStore
            from samples import THINGS, numbered

            def fill(writer):
                for row in numbered(3000):
                    writer.add("things", row)
                print("filling", flush=True)
                sys.stdin.readline()
                return {{"summary": {{"rows": 3000}}}}

            key = FactKey(artifact={key.artifact!r}, analyzer={key.analyzer!r}, version={key.version!r},
                          options={dict(key.options)!r})
            with FactStore(Path({str(folder)!r})).build(key, [THINGS], fill) as facts:
                print(facts.digest, flush=True)
        """
        code = textwrap.dedent(code)
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parent,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "filling\n"

    def finish(self) -> str:
        output, _ = self.process.communicate("go\n", timeout=60)
        assert self.process.returncode == 0
        return output.strip()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=60)


def test_a_killed_build_leaves_what_a_later_build_removes(tmp_path: Path) -> None:
    builder = Builder(tmp_path, KEY)
    builder.kill()
    assert files(tmp_path) == [".tmp"]
    store = FactStore(tmp_path)
    assert store.get(KEY, [THINGS]) is None
    store.build(replace(KEY, version="2"), [THINGS], filling()).close()
    assert files(tmp_path) == [".facts"]


def test_two_processes_may_build_the_same_facts(tmp_path: Path) -> None:
    with ExitStack() as stack:
        builders = [Builder(tmp_path, KEY), Builder(tmp_path, KEY)]
        for builder in builders:
            stack.callback(builder.kill)
        # A third build in the meantime takes neither unfinished file away.
        other = FactStore(tmp_path).build(replace(KEY, version="2"), [THINGS], filling())
        stack.enter_context(other)
        assert files(tmp_path) == [".facts", ".tmp", ".tmp"]
        digests = {builder.finish() for builder in builders}
        assert len(digests) == 1
        assert files(tmp_path) == [".facts", ".facts"]
        with FactFile.open(FactStore(tmp_path).path(KEY), [THINGS]) as facts:
            assert {facts.digest} == digests


def test_a_file_system_without_locks_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr("fcntl.flock", no_locks)
    (tmp_path / "someone-elses.tmp").write_bytes(b"")
    FactStore(tmp_path).build(KEY, [THINGS], filling()).close()
    assert files(tmp_path) == [".facts", ".tmp"]
