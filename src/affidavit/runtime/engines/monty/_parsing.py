"""Reading a script's text as Python, without its warnings reaching the host."""

from __future__ import annotations

import ast
import warnings

from affidavit.runtime.engines.script import compile_script

__all__ = ["parse", "parse_valid"]


def parse(source: str) -> ast.Module:
    """The syntax tree of a script. Its lines are the caller's, whatever ends them.

    Raises:
        SyntaxError: the text is not Python; ValueError where it holds a null byte.
        RecursionError: it is nested too deeply, or MemoryError.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source.replace("\r\n", "\n").replace("\r", "\n"))


def parse_valid(source: str) -> ast.Module:
    """The same, for a script that CPython also compiles: no `break` outside of a loop, no `nonlocal` of nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compile_script(source, "<script>")
    return parse(source)
