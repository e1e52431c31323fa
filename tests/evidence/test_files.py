"""Files that evidence travels in: whole or not at all, never over another, within bounds."""

from __future__ import annotations

import hashlib
import io
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from affidavit.errors import FailedError, NotFoundError, UsageError, VerificationError
from affidavit.evidence.files import open_input, optional, read_input, write_output


def test_files_are_private_and_complete(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    assert write_output(path, lambda write: (write(b"one"), write(b"two"), 7)[2]) == 7
    assert path.read_bytes() == b"onetwo"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [it.name for it in tmp_path.iterdir()] == ["a.json"]


def test_nothing_is_overwritten_unless_asked(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"mine")
    with pytest.raises(UsageError) as caught:
        write_output(path, lambda write: write(b"other"))
    assert caught.value.code == "file-exists"
    assert path.read_bytes() == b"mine"
    write_output(path, lambda write: write(b"other"), force=True)
    assert path.read_bytes() == b"other"


def test_a_name_that_is_taken_meanwhile_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.json"

    def write(put: Any) -> None:
        put(b"ours")
        path.write_bytes(b"theirs")

    with pytest.raises(UsageError):
        write_output(path, write)
    assert path.read_bytes() == b"theirs"


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    def fail(put: Any) -> None:
        put(b"half")
        raise VerificationError("blob-damaged", "no")

    with pytest.raises(VerificationError):
        write_output(tmp_path / "a.json", fail)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FailedError) as caught:
        write_output(tmp_path / "no" / "folder", lambda write: write(b"x"))
    assert caught.value.code == "store-unwritable"


def test_input_is_bounded_and_a_regular_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x" * 100)
    assert read_input(path, 100) == b"x" * 100
    with pytest.raises(UsageError) as caught:
        read_input(path, 99)
    assert caught.value.code == "value-too-large"
    with pytest.raises(NotFoundError):
        read_input(tmp_path / "b", 1)
    with pytest.raises(UsageError):
        read_input(tmp_path, 1)
    os.mkfifo(tmp_path / "pipe")  # has no writer: opening it as usual would wait for one
    with pytest.raises(UsageError):
        read_input(tmp_path / "pipe", 1)


def test_an_optional_part_that_is_not_there_is_named() -> None:
    with pytest.raises(FailedError, match="no_such_module") as caught:
        optional("no_such_module.deep", "zstd")
    assert caught.value.code == "extra-missing"
    assert "affidavit[zstd]" in caught.value.hint


def test_packing(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    path = tmp_path / "a"
    content = b"abc" * 100_000
    write_output(path, lambda write: write(content), zstd=True)
    packed = path.read_bytes()
    assert len(packed) < 1000
    assert read_input(path, len(content)) == content
    with pytest.raises(UsageError) as caught:
        read_input(path, len(content) - 1)
    assert caught.value.code == "value-too-large"
    with open_input(path, 1 << 20, unpack=False) as file:
        assert file.read() == packed
    for changed in (
        packed[:-3],
        packed[:-1],
        packed[:-2] + b"xx",
        packed + b"j",
        packed + packed,
        packed + b"\x50\x2a\x4d\x18\x04\0\0\0abcd",  # a frame that readers skip
        packed[:20],
        packed[:4],
        packed[:-40],  # as another program packs
        sealed(packed[:-40] + packed[:-40]),
        sealed(packed[:-41]),
        sealed(b"\x28\xb5\x2f\xfd" + bytes(20)),
    ):
        path.write_bytes(changed)
        with pytest.raises(VerificationError) as damaged:
            read_input(path, 1 << 20)
        assert damaged.value.code == "bundle-damaged"
    path.write_bytes(sealed(zstandard.ZstdCompressor().compress(b"\0" * (1 << 24))))
    with pytest.raises(UsageError):
        read_input(path, 1 << 20)


def sealed(frames: bytes) -> bytes:
    return frames + b"\x50\x2a\x4d\x18\x20\0\0\0" + hashlib.sha256(frames).digest()


def test_every_changed_bit_of_a_packed_file_is_seen(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    path = tmp_path / "a"
    content = b"".join(b'{"number":%d,"square":%d}' % (it, it * it) for it in range(40))
    write_output(path, lambda write: write(content), zstd=True)
    packed = path.read_bytes()
    assert packed == sealed(packed[:-40])
    reader = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(packed), read_across_frames=True)
    assert reader.read() == content  # whoever reads zstd skips the seal
    for bit in range(len(packed) * 8):
        changed = bytearray(packed)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        if bit < 32:  # without its first bytes it is no packed file, and what reads it finds no bundle
            assert read_input(path, 1 << 20) == changed
            continue
        with pytest.raises(VerificationError):
            read_input(path, 1 << 20)
