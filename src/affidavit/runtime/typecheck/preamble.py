"""What is wrong with a preamble, by key and line, and what that means for the script below it."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from affidavit.runtime.program import PreambleEntry
from affidavit.runtime.typecheck.server import Finding
from affidavit.runtime.typecheck.verdict import Problem, Verdict, clipped

__all__ = ["HOST_NAMES", "broken", "confirmed", "given", "problems", "tainted"]

HOST_NAMES: Final = frozenset({"df", "results"})
"""Names that belong to the host: no entry may bind them."""

_SCOPES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)

# Errors in the checker's eyes that correct code may have.
_DOUBTFUL: Final = frozenset(
    {
        "invalid-syntax",
        "invalid-key",
        "invalid-typed-dict-key",
        "invalid-assignment",
        "no-matching-overload",
        "missing-typed-dict-key",
        "index-out-of-bounds",
        "unresolved-attribute-on-union",
        "missing-union-attribute",
    }
)


def broken(entries: Sequence[PreambleEntry]) -> list[Problem]:
    """Entries that are not Python by themselves, bind a host's name, or use `df` while they are loaded."""
    return [problem for entry in entries for problem in _broken(entry)]


def problems(entries: Sequence[PreambleEntry], cells: Sequence[Sequence[Finding]]) -> list[Problem]:
    """What the type checker holds for certain errors in the entries."""
    return [
        Problem(
            key=entry.key,
            line=finding.line,
            column=finding.column + 1,
            rule=finding.rule,
            message=clipped(finding.message.splitlines()[0]),
        )
        for entry, findings in zip(entries, cells, strict=False)
        for finding in findings
        if finding.severity == 1 and finding.rule not in _DOUBTFUL
    ]


def given(entries: Sequence[PreambleEntry]) -> frozenset[str]:
    """The names that sound entries define, for suggestions."""
    return frozenset(
        found[1]
        for entry in entries
        for found in re.finditer(
            r"^(?:async def|def|class)?[ \t]*(\w+)[ \t]*(?:\(|=|:)", entry.code, re.MULTILINE
        )
    )


def tainted(verdict: Verdict, problem: Problem) -> Verdict:
    """The verdict below a broken entry: nothing blocks any more, and it says so."""
    advice = tuple(replace(found, blocking=False) for found in verdict.diagnostics)
    reason = f"{problem.place}: {problem.message}"
    return replace(verdict, status="unchecked", reason=reason, diagnostics=advice)


def confirmed(verdict: Verdict, bare: Verdict) -> Verdict:
    """The verdict with only those blocking findings that the script has without its preamble, too."""
    own = {(found.rule, found.line, found.column) for found in bare.blocking}
    kept = tuple(
        replace(found, blocking=found.blocking and (found.rule, found.line, found.column) in own)
        for found in verdict.diagnostics
    )
    if kept == verdict.diagnostics:
        return verdict
    if any(found.blocking for found in kept):
        return replace(verdict, diagnostics=kept)
    reason = "a finding rests on the preamble; without it the script has none"
    return replace(verdict, status="unchecked", reason=reason, diagnostics=kept)


def _broken(entry: PreambleEntry) -> Iterator[Problem]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(entry.code)
            compile(entry.code, "<preamble>", "exec", dont_inherit=True)
    except SyntaxError as error:
        message = re.sub(r" \(<.*>, line \d+\)$", "", error.msg)
        yield _at(entry, error.lineno or 1, (error.offset or 1), "syntax", message)
        return
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        yield _at(entry, 1, 1, "syntax", str(error) or "nested too deeply")
        return
    yield from _misused(entry, tree)


def _misused(entry: PreambleEntry, tree: ast.Module) -> Iterator[Problem]:
    pending: list[ast.AST] = list(ast.iter_child_nodes(tree))
    while pending:
        node = pending.pop(0)
        match node:
            case ast.Name(id=name, ctx=ast.Load()) if name in HOST_NAMES:
                message = (
                    f"`{name}` is there when scripts run, not when a preamble is loaded: use it in a function"
                )
                yield _at(entry, node.lineno, node.col_offset + 1, "preamble-call", message)
            case ast.Name(id=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if (
                name in HOST_NAMES
            ):
                yield _at(
                    entry, node.lineno, node.col_offset + 1, "preamble-name", f"`{name}` is the host's name"
                )
            case ast.ClassDef(name=name) if name in HOST_NAMES:
                yield _at(
                    entry, node.lineno, node.col_offset + 1, "preamble-name", f"`{name}` is the host's name"
                )
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                for alias in names:
                    name = alias.asname or alias.name.partition(".")[0]
                    if name in HOST_NAMES:
                        yield _at(entry, node.lineno, 1, "preamble-name", f"`{name}` is the host's name")
            case _:
                pass
        if isinstance(node, _SCOPES):
            defaults = [*node.args.defaults, *(one for one in node.args.kw_defaults if one is not None)]
            pending += [*defaults, *getattr(node, "decorator_list", [])]
        else:
            pending += ast.iter_child_nodes(node)


def _at(entry: PreambleEntry, line: int, column: int, rule: str, message: str) -> Problem:
    return Problem(key=entry.key, line=line, column=column, rule=rule, message=clipped(message))
