"""What of a script monty cannot run as Python means it, found before anything runs.

Two kinds of findings: what monty would refuse or fail at by itself, and what it would silently do *differently*. The
second kind matters more, and is why the rules lean towards refusing: another engine runs what is refused here.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from affidavit.evidence.record import JsonValue
from affidavit.runtime.engines.monty._parsing import parse
from affidavit.runtime.engines.monty._rewrite import rewrite
from affidavit.runtime.engines.monty.rules import calls, lazy, names, order, regex, syntax
from affidavit.runtime.engines.monty.rules.context import Context, Unsupported

__all__ = ["Unsupported", "unsupported"]

_Rule: TypeAlias = Callable[[Context, ast.AST], Iterator[Unsupported]]

_RULES: tuple[_Rule, ...] = (
    syntax.check,
    names.check,
    calls.check,
    lazy.check,
    order.check,
    regex.check,
)


def unsupported(source: str, tree: Mapping[str, JsonValue]) -> list[Unsupported]:
    """Every construct of a script that monty cannot run as Python means it, in the order of the script.

    Args:
        source: the script; text that is not Python gives nothing here, because that is not for an engine to say.
        tree: the callable names below `df`, as in `Program`.
    """
    try:
        module = parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    try:
        context = Context(module, tree)
        found = [finding for node in ast.walk(module) for rule in _RULES for finding in rule(context, node)]
        if not found:
            rewrite(module, tree)
    except RecursionError:
        return [Unsupported(line=1, column=0, construct="nesting", message="the script is nested too deeply")]
    except ValueError as error:
        return [Unsupported(line=1, column=0, construct="rewriting", message=str(error))]
    return sorted(found, key=lambda finding: (finding.line, finding.column))
