"""Which container a path is, and opening it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, TypeAlias

from affidavit.analyzers.javascript.containers.asar import AsarContainer
from affidavit.analyzers.javascript.containers.asar_header import looks_like_asar
from affidavit.analyzers.javascript.containers.folder import FolderContainer
from affidavit.analyzers.javascript.containers.single import SUFFIXES, SingleContainer
from affidavit.analyzers.javascript.containers.tar_stream import looks_like_tar
from affidavit.analyzers.javascript.containers.tarball import TarballContainer
from affidavit.errors import NotFoundError, UsageError

__all__ = ["AnyContainer", "head_of", "open_container", "reads"]

AnyContainer: TypeAlias = AsarContainer | FolderContainer | TarballContainer | SingleContainer

HEAD: Final = 4096
_MAX_LOOKS: Final = 4000


def head_of(path: Path) -> bytes:
    """The first 4 KiB of a file; empty for a folder. Raises `NotFoundError`, `UsageError`."""
    try:
        if path.is_dir():
            return b""
        if not path.is_file():
            kind = "artifact-unsupported" if path.exists() else "artifact-not-found"
            raise (UsageError if path.exists() else NotFoundError)(kind, f"{path}: no file or folder")
        with path.open("rb") as file:
            return file.read(HEAD)
    except OSError as error:
        raise NotFoundError("artifact-not-found", f"{path}: {error.strerror}") from error


def reads(path: Path, head: bytes) -> bool:
    """Whether one of the containers reads this file (its first bytes in `head`) or folder."""
    if path.is_dir():
        return _holds_sources(path)
    return _opener(path, head) is not None


def _opener(path: Path, head: bytes) -> type[AnyContainer] | None:
    suffix = path.suffix.lower()
    if looks_like_asar(head) or suffix == ".asar":
        return AsarContainer
    if looks_like_tar(head) or path.name.lower().endswith((".tgz", ".tar.gz")):
        return TarballContainer
    return SingleContainer if suffix in SUFFIXES else None


def open_container(path: Path) -> AnyContainer:
    """Open a file or folder.

    Raises:
        NotFoundError: `artifact-not-found`.
        UsageError: `artifact-unsupported`.
        VerificationError: `artifact-damaged`.
        FailedError: `value-too-large` for a folder above the bounds.
    """
    head = head_of(path)
    if path.is_dir():
        return FolderContainer(path)
    opener = _opener(path, head)
    if opener is None:
        raise UsageError(
            "artifact-unsupported",
            f"{path.name}: neither an ASAR archive, a folder, an npm tarball nor a source file",
            hint="source files end in " + " ".join(sorted(SUFFIXES)),
        )
    return opener(path)


def _holds_sources(path: Path) -> bool:
    """Whether a folder is a package, or has source files within its first three levels (a bounded look)."""
    pending = [(path, 0)]
    looks = 0
    while pending:
        directory, depth = pending.pop()
        try:
            names = sorted(os.listdir(directory))
        except OSError:
            continue
        for name in names:
            looks += 1
            if looks > _MAX_LOOKS:
                return False
            if name == "package.json" or (name != "package-lock.json" and _is_source(name)):
                return True
            inner = directory / name
            if depth < 2 and not name.startswith(".") and not inner.is_symlink() and inner.is_dir():
                pending.append((inner, depth + 1))
    return False


def _is_source(name: str) -> bool:
    suffix = Path(name).suffix.lower()
    return suffix in SUFFIXES and suffix != ".json"
