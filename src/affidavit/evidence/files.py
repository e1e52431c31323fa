"""Files that evidence travels in: opened within bounds, written whole or not at all, never over another by accident."""

from __future__ import annotations

import errno
import hashlib
import importlib
import os
import stat
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar, cast

from affidavit.errors import AffidavitError, FailedError, NotFoundError, UsageError, VerificationError

__all__ = ["open_input", "optional", "read_input", "sync_folder", "write_output"]

T = TypeVar("T")

_ZSTD: Final = b"\x28\xb5\x2f\xfd"
# Behind the frame stands its SHA-256, in a frame that every reader of zstd skips (RFC 8878, 3.1.2): some bits of a
# frame, such as the size of its window, say nothing of its content, and a change of them would not be seen otherwise.
_SEAL: Final = b"\x50\x2a\x4d\x18" + (32).to_bytes(4, "little")
_SEAL_BYTES: Final = len(_SEAL) + 32
_PACKED_BLOCK: Final = 1 << 10  # may unpack to 40 MB
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def open_input(path: Path, max_bytes: int, *, unpack: bool = True) -> Generator[BinaryIO]:
    """Open a regular file of at most `max_bytes`; one packed with zstd is unpacked first, unless told not to.

    Raises:
        NotFoundError: `artifact-not-found`.
        UsageError: `usage`: not a file that can be read; `value-too-large`.
        FailedError: `extra-missing`: it is packed and `affidavit[zstd]` is not installed.
    """
    try:
        file = open(path, "rb", opener=_open)  # noqa: SIM115 - closed by the `with` below
    except FileNotFoundError:
        raise NotFoundError("artifact-not-found", f"no file {path}", hint="check the path") from None
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from None
    with file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise _unreadable(path, "it is not a regular file")
        packed = unpack and file.read(len(_ZSTD)) == _ZSTD
        file.seek(0)
        if not packed:
            if state.st_size > max_bytes:
                raise _too_large(path, max_bytes)
            yield file
            return
        with tempfile.TemporaryFile() as unpacked:
            _unpack(file, cast("BinaryIO", unpacked), path, max_bytes)
            unpacked.seek(0)
            yield cast("BinaryIO", unpacked)


def read_input(path: Path, max_bytes: int) -> bytes:
    """The bytes of a file, as `open_input` reads it."""
    with open_input(path, max_bytes) as file:
        return file.read()


def write_output(
    path: Path, write: Callable[[Callable[[bytes], object]], T], *, force: bool = False, zstd: bool = False
) -> T:
    """Write a file that only its owner may read. It appears when it is complete and on the disk, or not at all.

    Args:
        path: its name.
        write: given a function that takes the next bytes, writes everything; its result is returned.
        force: whether a file that is there is replaced.
        zstd: whether it is packed.

    Raises:
        UsageError: `file-exists`.
        FailedError: `store-full`, `store-unwritable`, `extra-missing`.
        AffidavitError: whatever `write` raises; then nothing was changed.
    """
    if path.exists() and not force:
        raise _exists(path)
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".affidavit-", suffix=".tmp")  # mode 0600
    except OSError as error:
        raise _unwritable(path, error) from None
    try:
        with open(handle, "wb") as file:
            result = _write(cast("BinaryIO", file), write, zstd)
            file.flush()
            os.fsync(file.fileno())
        _publish(Path(name), path, force)
    except OSError as error:
        raise _unwritable(path, error) from None
    finally:
        Path(name).unlink(missing_ok=True)
    sync_folder(path.parent)
    return result


def sync_folder(folder: Path) -> None:
    """Make a new name in a folder durable, where the platform lets folders be opened.

    Raises:
        OSError: it cannot be known to be durable.
    """
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def optional(module: str, extra: str) -> Any:
    """A module of an optional part.

    Raises:
        FailedError: `extra-missing`, saying what to install.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise FailedError(
            "extra-missing",
            f"this needs {module.partition('.')[0]}, which is not installed",
            hint=f"install affidavit[{extra}]",
        ) from None


def _open(path: str, flags: int) -> int:
    """Open without waiting: a pipe that nobody writes to is refused like any other file that is not regular."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _write(file: BinaryIO, write: Callable[[Callable[[bytes], object]], T], zstd: bool) -> T:
    if not zstd:
        return write(file.write)
    packer = optional("zstandard", "zstd").ZstdCompressor(level=10, write_checksum=True)
    sealed = _Sealed(file)
    with packer.stream_writer(sealed, closefd=False) as packed:
        result = write(packed.write)
    file.write(_SEAL + sealed.digest.digest())
    return result


class _Sealed:
    """Writes on and digests what is written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.digest = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        return self._file.write(data)


def _publish(made: Path, path: Path, force: bool) -> None:
    if not force:
        try:
            os.link(made, path)  # fails when the name is taken by now
        except FileExistsError:
            raise _exists(path) from None
        except OSError:
            pass  # no links on this file system
        else:
            return
        if path.exists():
            raise _exists(path)
    os.replace(made, path)


def _unpack(file: BinaryIO, to: BinaryIO, path: Path, max_bytes: int) -> None:
    """Unpack exactly one frame and its seal."""
    zstandard = optional("zstandard", "zstd")
    unpacker = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()
    left = _unsealed(file, path)
    size = 0
    try:
        while not unpacker.eof and left and (packed := file.read(min(left, _PACKED_BLOCK))):
            left -= len(packed)
            block = unpacker.decompress(packed)
            size += len(block)
            if size > max_bytes:
                raise _too_large(path, max_bytes)
            to.write(block)
    except zstandard.ZstdError as error:
        raise _unpackable(path, str(error)) from None
    if not unpacker.eof:
        raise _unpackable(path, "its frame has no end")
    if unpacker.unused_data or left:
        raise _unpackable(path, "something follows its frame")


def _unsealed(file: BinaryIO, path: Path) -> int:
    """How many bytes the seal is about; the file stands at its start then."""
    size = file.seek(0, os.SEEK_END) - _SEAL_BYTES
    if size < 0:
        raise _unpackable(path, "it was cut off")
    file.seek(size)
    seal = file.read(_SEAL_BYTES)
    if not seal.startswith(_SEAL):
        raise _unpackable(
            path, "it does not end with the seal of a packed bundle: it was cut off or packed otherwise"
        )
    file.seek(0)
    digest, left = hashlib.sha256(), size
    while left and (block := file.read(min(left, 1 << 20))):
        digest.update(block)
        left -= len(block)
    if digest.digest() != seal[len(_SEAL) :]:
        raise _unpackable(path, "a byte of it is not as it was packed")
    file.seek(0)
    return size


def _unpackable(path: Path, problem: str) -> VerificationError:
    hint = "ask for the file again; `zstd -d` unpacks what another program packed"
    return VerificationError("bundle-damaged", f"{path} cannot be unpacked: {problem}", hint=hint)


def _unreadable(path: Path, reason: str) -> UsageError:
    return UsageError("usage", f"cannot read {path}: {reason}", hint="name a readable file")


def _exists(path: Path) -> UsageError:
    return UsageError("file-exists", f"{path} is there already", hint="take another name, or --force")


def _too_large(path: Path, max_bytes: int) -> UsageError:
    return UsageError(
        "value-too-large",
        f"{path} holds more than {max_bytes} bytes",
        hint="export a part of it, or raise the bound",
        details={"max_bytes": max_bytes},
    )


def _unwritable(path: Path, error: OSError) -> AffidavitError:
    full = error.errno in _FULL
    return FailedError(
        "store-full" if full else "store-unwritable",
        f"cannot write {path}: {error.strerror or error}",
        hint="free some space, or choose another folder" if full else "choose a folder that you may write",
    )
