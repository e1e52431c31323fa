"""A private PostgreSQL server on a socket, for tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.real_inputs import require_or_skip

__all__ = ["PASSWORD", "running"]

PASSWORD: Final = "correct horse battery"
_DATABASE: Final = "affidavit"


@contextmanager
def running() -> Generator[str]:
    """A server with an empty database: the URI of its superuser, without the password (`PASSWORD`)."""
    programs = _programs()
    with tempfile.TemporaryDirectory(prefix="pg-") as name:
        folder = Path(name)
        (folder / "password").write_text(PASSWORD)
        if os.geteuid() == 0:
            for path in (folder, folder / "password"):
                shutil.chown(path, "postgres", "postgres")
        data = folder / "data"
        _run([programs / "initdb", "-D", data, "-U", "owner", "--pwfile", folder / "password", "--auth=scram-sha-256",
              "--encoding=UTF8", "--locale=C", "--no-sync"])  # fmt: skip
        options = (
            f"-k {folder} -c listen_addresses='' -c fsync=off -c shared_buffers=16MB -c max_connections=20"
        )
        _run(
            [programs / "pg_ctl", "-D", data, "-w", "-t", "60", "-o", options, "-l", folder / "log", "start"]
        )
        try:
            environment = {"PGPASSWORD": PASSWORD}
            _run([programs / "createdb", "-h", folder, "-U", "owner", _DATABASE], environment)
            yield f"postgresql://owner@/{_DATABASE}?host={folder}"
        finally:
            _run([programs / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop"])


def _programs() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        require_or_skip("PostgreSQL is not installed")
    return found[-1].parent


def _run(command: list[str | Path], environment: dict[str, str] | None = None) -> None:
    if os.geteuid() == 0:  # the server refuses to run as root
        command = ["runuser", "-u", "postgres", "--", *command]
    done = subprocess.run(
        command, env={**os.environ, **(environment or {})}, cwd="/", stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{command[-1]}: {done.stdout.decode(errors='replace')[-500:]}")
