"""Members that modules of the standard library certainly do not have."""

from __future__ import annotations

import ast
import importlib
from typing import Final

from affidavit.runtime.typecheck.rules import suggest
from affidavit.runtime.typecheck.rules.case import Case
from affidavit.runtime.typecheck.rules.reach import guarded

__all__ = ["meant", "meant_import"]

_HARMLESS: Final = frozenset({
    "asyncio", "base64", "bisect", "calendar", "collections", "collections.abc", "contextlib", "copy", "csv",
    "dataclasses", "datetime", "decimal", "difflib", "enum", "fractions", "functools", "hashlib", "heapq", "html", "io",
    "itertools", "json", "math", "operator", "os.path", "pathlib", "pprint", "random", "re", "statistics", "string",
    "struct", "textwrap", "time", "typing", "unicodedata", "urllib.parse", "uuid", "zlib",
})  # fmt: skip
"""Modules that may be imported here to look: it costs little and does nothing."""


def meant(case: Case, node: ast.Attribute, module: str) -> str | None:
    """What a wrong member of a module stands for (`json.dump5`), or None where it is not certainly wrong.

    The type checker's word is not enough: it knows the library from declarations, so the module itself is asked. A
    wrong word that resembles none may be one of another version.
    """
    if node.attr in case.stores.attributes or case.is_probed(node.attr) or not isinstance(node.ctx, ast.Load):
        return None
    return None if guarded(case.script, node, "AttributeError") else _near(module, node.attr)


def meant_import(case: Case, node: ast.alias, module: str) -> str | None:
    """The same for `from json import dump5`."""
    return None if guarded(case.script, node, "ImportError") else _near(module, node.name)


def _near(module: str, word: str) -> str | None:
    if module not in _HARMLESS:
        return None
    imported = importlib.import_module(module)
    if hasattr(imported, word):
        return None
    known = [name for name in dir(imported) if not name.startswith("_")]
    held = [name for name in known if isinstance(getattr(imported, name), type)]
    inside = [f"{name}.{word}" for name in held if hasattr(getattr(imported, name), word)]
    return suggest.close(word, known) or next(iter(inside), None)
