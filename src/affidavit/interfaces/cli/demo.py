"""`affidavit demo`: the main job on a real application, from nothing to an answer with its evidence."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from affidavit.errors import FailedError, VerificationError
from affidavit.interfaces.cli.mounts import progress_on_stderr
from affidavit.interfaces.cli.output import Common, emit, lines, say
from affidavit.runtime.run import Run
from affidavit.workspace import Workspace

__all__ = ["demo"]

_FETCH_SECONDS = 240
_LEFT = (("omitted", "are of a kind that is not read"), ("unknown", "could not be read or understood"))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Subject:
    """What the demo asks: a file or folder, the script of interest in it, and what it is."""

    path: Path
    main: str
    about: str


def demo(*, offline: bool = False, common: Common = Common()) -> int:  # noqa: B008
    """Fetch a real Electron application by exact version and digest, and ask what its main script depends on.

    Args:
        offline: Use the small application that comes with the product instead of fetching one.
    """
    examples = _examples()
    subject = _small(examples) if offline else _real(examples) or _small(examples)
    script = examples / "electron_dependencies.py"
    say(f"subject: {subject.about}")
    say(f"script:  {_shown(script)}")

    async def body() -> Run:
        async with Workspace.open(common.workspace, tenant=common.tenant) as workspace:
            session = await workspace.session(
                None, mounts=[f"app={subject.path}"], progress=progress_on_stderr()
            )
            return await session.run(script.read_text("utf-8"), inputs={"main": subject.main})

    run = asyncio.run(body())
    if common.json:
        emit(run.as_json())
    else:
        _print(run, subject, common)
    return 0 if run.status == "succeeded" else 1


def _print(run: Run, subject: _Subject, common: Common) -> None:
    if run.answer is None:
        error = run.error or {}
        raise FailedError("script-error", str(error.get("message")), hint=str(error.get("hint", "")))
    rows = [dict(row) for row in cast("list[dict[str, Any]]", run.answer["value"])]
    shown = [row | {"evidence": _short(str(row["evidence"]))} for row in rows]
    coverage = cast("dict[str, Any]", run.answer["coverage"])
    sys.stdout.write(f"\nWhich external packages does {subject.main} refer to, and how often?\n\n")
    sys.stdout.write(lines(shown, ["package", "sites", "evidence"]) + "\n\n")
    sites = sum(int(row["sites"]) for row in rows)
    sys.stdout.write(f"{len(rows)} packages, {sites} sites; coverage of the source: {coverage['state']}\n")
    left = [f"{coverage[why]} {said}" for why, said in _LEFT if coverage.get(why)]
    if left:
        sys.stdout.write(f"  of the application's files, {' and '.join(left)}\n")
    sys.stdout.write(f"answer  {run.answer['evidence_id']}\n")
    for call in run.calls:
        sys.stdout.write(f"call    {call.evidence_id}  {call.contract}\n")
    sys.stdout.flush()
    where = "" if str(common.workspace) == ".affidavit" else f" --workspace {common.workspace}"
    command = Path(sys.argv[0]) if os.sep in sys.argv[0] else Path("affidavit")
    first = run.calls[0].evidence_id
    say("\nTry next:")
    say(f"  {_shown(command)} evidence show {first[:16]}{where}     # the record behind the rows")
    say(f"  {_shown(command)} mount add app={_shown(subject.path)}{where}")
    say(f"  {_shown(command)} describe references{where}            # what else can be asked")
    say(f"  {_shown(command)} call db.app.references.count by=kind{where}")
    say(f"  {_shown(command)} doctor{where}                         # what isolates scripts here")


def _short(citation: str) -> str:
    evidence_id, _, pointer = citation.partition("#")
    return f"{evidence_id[:16]}…#{pointer}"


def _shown(path: Path) -> str:
    """A path as a person would type it from here."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _examples() -> Path:
    """The examples: inside an installed package, or beside the source in a checkout."""
    package = Path(__file__).parents[2]
    for place in (package / "examples", package.parents[1] / "examples"):
        if (place / "electron_dependencies.py").is_file():
            return place
    raise FailedError(
        "internal", "the examples of this installation are missing", hint="reinstall the package"
    )


def _small(examples: Path) -> _Subject:
    return _Subject(path=examples / "small_app", main="main.js", about="a small application of our own")


def _real(examples: Path) -> _Subject | None:
    """The pinned application, fetched once through the npm client; None, said aloud, where that cannot be done."""
    pin = json.loads((examples / "electron_app.json").read_text("utf-8"))
    subject = f"{pin['package']} {pin['version']}: {pin['about']}"
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    kept = root / "affidavit" / "artifacts" / f"{pin['sha256']}.tgz"
    if not (kept.is_file() and _digest(kept) == pin["sha256"]):
        npm = shutil.which("npm")
        if npm is None:
            say("npm is not installed, so no real application can be fetched")
            return None
        try:
            _fetch(npm, pin, kept)
        except (OSError, subprocess.SubprocessError) as error:
            say(f"the application could not be fetched through npm: {error}")
            return None
    return _Subject(path=kept, main=pin["main"], about=subject)


def _fetch(npm: str, pin: dict[str, str], kept: Path) -> None:
    say(f"fetching {pin['package']}@{pin['version']} with npm pack")
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
        subprocess.run(
            [npm, "pack", "--silent", "--ignore-scripts", f"{pin['package']}@{pin['version']}"],
            cwd=folder,
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=_FETCH_SECONDS,
        )
        (packed,) = Path(folder).glob("*.tgz")
        found = _digest(packed)
        if found != pin["sha256"]:
            raise VerificationError(
                "artifact-damaged",
                f"{pin['package']}@{pin['version']} has SHA-256 {found}, not the pinned {pin['sha256']}",
                hint="the registry served other bytes than were pinned; `affidavit demo --offline` needs none",
            )
        packed.replace(kept)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
