"""How every command speaks: data on stdout, talk on stderr, one document with `--json`, stable exit codes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import orjson
from cyclopts import CycloptsError, Parameter

from affidavit.errors import AffidavitError, UsageError
from affidavit.evidence.record import JsonValue

__all__ = ["Common", "emit", "guarded", "harmless", "lines", "say"]

INTERRUPTED = 130


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """Options that every command has."""

    workspace: Annotated[Path, Parameter(env_var="AFFIDAVIT_WORKSPACE")] = Path(".affidavit")
    "Folder of the workspace; it is made when it is not there."
    tenant: Annotated[str, Parameter(env_var="AFFIDAVIT_TENANT")] = "default"
    "Whose data: nothing crosses from one tenant to another."
    json: Annotated[bool, Parameter(negative="")] = False
    "Print exactly one JSON document on stdout."


def guarded(command: Callable[[Sequence[str]], int], tokens: Sequence[str]) -> int:
    """Run a command; whatever goes wrong becomes an error document or a line on stderr, and an exit code."""
    as_json = "--json" in tokens
    _prepare_output()
    try:
        code = command(tokens)
        sys.stdout.flush()
        return code
    except CycloptsError as error:
        return _fail(UsageError("usage", str(error), hint="`affidavit COMMAND --help` says more"), as_json)
    except AffidavitError as error:
        return _fail(error, as_json)
    except KeyboardInterrupt:
        hint = "calls that were made are recorded: `affidavit session list` shows where"
        error = AffidavitError("interrupted", "stopped by the user", hint=hint)
        error.exit_code = INTERRUPTED
        return _fail(error, as_json)
    except BrokenPipeError:
        _silence()  # the reader went away (`| head`): no error of ours
        return 0
    except OSError as error:
        if not _is_output(error):
            return _fail(_internal(error), as_json)
        _silence()
        say(f"error[store-full]: the output cannot be written: {error.strerror}")
        return 1
    except Exception as error:
        if os.environ.get("AFFIDAVIT_TRACEBACK"):
            raise
        return _fail(_internal(error), as_json)


def _prepare_output() -> None:
    """Let whatever text there is be written: to nowhere where a shell closed the output."""
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    reconfigure: Callable[..., None] | None = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")  # names of files need not be text


def _internal(error: Exception) -> AffidavitError:
    hint = "please report it; AFFIDAVIT_TRACEBACK=1 shows where"
    return AffidavitError("internal", f"{type(error).__name__}: {error}", hint=hint)


def _is_output(error: OSError) -> bool:
    """Whether writing to standard output is what fails."""
    try:
        sys.stdout.flush()
    except OSError as again:
        return again.errno == error.errno
    return False


def _silence() -> None:
    """Let the interpreter's own flush at exit go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(error: AffidavitError, as_json: bool) -> int:
    if as_json:
        emit({"error": error.as_json()})
    else:
        say(f"error[{error.code}]: {error.message}")
        if error.hint:
            say(f"  hint: {error.hint}")
    sys.stdout.flush()
    return error.exit_code


def emit(document: JsonValue) -> None:
    r"""Print one JSON document on stdout. A file name that is no text stands there with `\udcxx` for each odd byte."""
    try:
        text = orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()
    except TypeError:  # lone surrogates, which JSON can only escape
        text = json.dumps(document, indent=2)
    sys.stdout.write(text + "\n")


def say(text: str) -> None:
    """Talk to the person: stderr, never part of the data."""
    sys.stderr.write(harmless(text) + "\n")


def lines(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Rows as aligned text columns with a header line; empty text for no rows.

    >>> print(lines([{"name": "app", "rows": 3}], ["name", "rows"]))
    name  rows
    app   3
    """
    if not rows:
        return ""
    cells = [list(columns)] + [[_cell(row.get(column)) for column in columns] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    )


def _cell(value: object) -> str:
    return harmless("-" if value is None else str(value), keep="")


def harmless(text: str, *, keep: str = "\n\t") -> str:
    r"""Text of foreign origin, made fit for a terminal: no control character reaches it but those to `keep`.

    >>> print(harmless("\x1b[31mred"))
    \x1b[31mred
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character in keep else ascii(character)[1:-1]
        for character in text
    )
