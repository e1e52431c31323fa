"""The command line.

`COMMANDS` is the whole of it on one page. `affidavit --help` prints that page without loading the argument parser, so
it stays well below a quarter second of CPU; everything else is parsed by cyclopts, which loads only the module of the
command that is run.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Final

__all__ = ["COMMANDS", "main"]

_HERE = "affidavit.interfaces.cli"

# command words -> (module:function, below this package where it is not whole, one line of help)
COMMANDS: Final[Mapping[tuple[str, ...], tuple[str, str]]] = {
    ("run",): ("scripts:run", "Run a script against mounted data; every call becomes evidence."),
    ("check",): ("scripts:check", "Check a script without running it."),
    ("replay",): (
        "replay:replay",
        "Run a recorded run again, offline, and say whether it comes out the same.",
    ),
    ("call",): ("operations:call", "Call one operation directly."),
    ("describe",): ("operations:describe", "Find operations by words, or show one in full."),
    ("graph",): ("graph:graph", "Draw the control flow of a function, with a path marked."),
    ("analyze",): ("mounts:analyze", "Look into all of a mounted file that was only outlined."),
    ("mount", "add"): (
        "mounts:add",
        "Mount a file, folder or module as NAME=URI; mounting is the grant to read it.",
    ),
    ("mount", "list"): ("mounts:show_all", "List the mounts of the workspace."),
    ("mount", "show"): ("mounts:show", "Show one mount and what was found in it."),
    ("mount", "remove"): ("mounts:remove", "Take a mount away; its evidence stays."),
    ("evidence", "list"): ("records.evidence:show_all", "List records, newest first."),
    ("evidence", "show"): ("records.evidence:show", "Show one record by its id or a unique prefix."),
    ("unknown", "open"): (
        "records.unknowns:open_unknown",
        "Open a question that stays open across sessions.",
    ),
    ("unknown", "revise"): (
        "records.unknowns:revise",
        "Revise an unknown; --expect names the revision you saw.",
    ),
    ("unknown", "list"): ("records.unknowns:show_all", "List unknowns, the most severe first."),
    ("unknown", "show"): ("records.unknowns:show", "Show an unknown with all its revisions."),
    ("bundle", "export"): ("records.bundles:export", "Write records and all that they rest on to one file."),
    ("bundle", "import"): ("records.bundles:import_", "Check a bundle and add all of it, or nothing."),
    ("bundle", "show"): ("records.bundles:show", "Say what is in a bundle."),
    ("bundle", "merge"): ("records.bundles:merge", "Write the union of bundles."),
    ("bundle", "diff"): ("records.bundles:compare", "Say what only one of two bundles has."),
    ("bundle", "sign"): ("records.bundles:sign", "Sign a file with an Ed25519 key."),
    ("bundle", "verify-signature"): (
        "records.bundles:verify_signature",
        "Check that the holder of a key signed a file.",
    ),
    ("verify",): ("records.verify:verify", "Check an answer, a bundle or a journal, offline."),
    ("session", "list"): ("sessions:show_all", "List sessions."),
    ("session", "show"): ("sessions:show", "Show the runs of a session, or its events."),
    ("results",): ("sessions:results", "List what the next script finds as `results`, or show one in full."),
    ("preamble", "set"): ("sessions:preamble_set", "Pin code above every later script of a session."),
    ("preamble", "remove"): ("sessions:preamble_remove", "Remove an entry of a preamble."),
    ("preamble", "show"): ("sessions:preamble_show", "Show a session's preamble."),
    ("journal", "verify"): ("records.journal:verify", "Check a journal by itself: chain, ids, references."),
    ("journal", "restore"): (
        "records.journal:restore",
        "Bring a journal back into a workspace, under the old ids.",
    ),
    ("journal", "tail"): ("records.journal:tail", "Show the last events of a journal."),
    ("backup",): ("records.backup:backup", "Copy the whole workspace while it is in use."),
    ("mcp",): (
        "affidavit.interfaces.mcp.command:mcp",
        "Serve an agent over MCP on standard input and output.",
    ),
    ("doctor",): ("doctor:doctor", "Try each isolation layer and part, and say what is missing."),
    ("demo",): ("demo:demo", "Ask a real Electron application a question."),
}

_GROUPS: Final[Mapping[str, str]] = {
    "mount": "What scripts can ask: add, list, show, remove.",
    "evidence": "Records of calls: list, show.",
    "unknown": "What is not known yet: open, revise, list, show.",
    "bundle": "Evidence in one file: export, import, show, merge, diff, sign.",
    "session": "Runs and their events: list, show.",
    "preamble": "Code that every script of a session finds: set, remove, show.",
    "journal": "Files that `--journal` wrote: verify, restore, tail.",
}

_CODES = "Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 does not verify, 5 refused by policy, 130 interrupted."


def main() -> None:
    """The `affidavit` command: run it and exit with its code."""
    try:
        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # before the command began: its own interruption is told by `guarded`
        code = 130
    raise SystemExit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code. Prints; never raises for the user's mistakes."""
    words = list(arguments)
    if not words or words in (["--help"], ["-h"], ["help"]):
        sys.stdout.write(_overview())
        return 0
    if words == ["--version"]:
        from affidavit import __version__

        sys.stdout.write(f"affidavit {__version__}\n")
        return 0
    from affidavit.interfaces.cli.output import guarded

    # A lone dash means standard input; the parser would take it for an option.
    return guarded(_parse, ["@-" if word == "-" else word for word in words])


def _parse(tokens: Sequence[str]) -> int:
    from cyclopts import App

    app = App(
        name="affidavit",
        help_format="plaintext",
        version_flags=[],
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    groups = {name: App(name=name, help=text, help_format="plaintext") for name, text in _GROUPS.items()}
    for name, (target, text) in COMMANDS.items():
        *above, own = name
        parent = groups[above[0]] if above else app
        place = target if target.startswith("affidavit.") else f"{_HERE}.{target}"
        parent.command(place, name=own, help=text)
    for group in groups.values():
        app.command(group)
    result = app(tokens, exit_on_error=False, print_error=False)
    return result if isinstance(result, int) else 0


def _overview() -> str:
    width = max(len(" ".join(words)) for words in COMMANDS) + 2
    lines = [f"  {' '.join(words):<{width}}{text}" for words, (_, text) in COMMANDS.items()]
    return "\n".join(
        [
            "Affidavit: code mode for agents that must show their work.",
            "",
            "Usage: affidavit COMMAND [ARGUMENTS] [--json] [--workspace DIR]",
            "",
            *lines,
            "",
            "`affidavit COMMAND --help` says more. With --json, stdout holds exactly one document, errors included.",
            _CODES,
            "",
        ]
    )
