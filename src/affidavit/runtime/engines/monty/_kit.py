"""`df.kit` as text for the sandbox: the functions of `engines/kit.py`, in one closure as the prelude has it."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
from typing import Final

from affidavit.runtime.engines import kit

__all__ = ["kit_source"]

_GIVEN: Final = ("FailedError", "json", "decimal")
_START: Final = """
class _AffidavitKit:
    pass


def _affidavit_unfit(code, message, hint="", details=None):
    _affidavit_kit_failed(code, message, hint, details)
"""


@functools.cache
def kit_source() -> str:
    """What follows the prelude where a script says `kit`."""
    tree = ast.parse(inspect.getsource(kit))
    body: list[ast.stmt] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            body.append(_bare(node))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            body.append(ast.Assign(targets=[node.target], value=node.value, lineno=0))
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    # a script may rebind any builtin
    kept = sorted(name for name in used if hasattr(builtins, name))
    parameters = ", ".join([*_GIVEN, *(f"{name}={name}" for name in kept)])
    text = ast.unparse(ast.Module(body=body, type_ignores=[])).replace("\n", "\n    ")
    lines = [
        _START,
        f"def _affidavit_kit({parameters}):",
        f"    {text}",
        f"    return [{', '.join(kit.NAMES)}]",
        "",
        "df.kit = _AffidavitKit()",
        f"[{', '.join(f'df.kit.{name}' for name in kit.NAMES)}] = _affidavit_kit(",
        "    _affidavit_unfit, _affidavit_json, _affidavit_decimal",
        ")",
    ]
    return "\n".join(lines)


def _bare(function: ast.FunctionDef) -> ast.FunctionDef:
    """Without what only readers and checkers need: annotations and documentation."""
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            node.annotation = None
    function.returns = None
    plain = ast.get_docstring(function) is None
    function.body = function.body if plain else function.body[1:]
    return ast.fix_missing_locations(_Unannotated().visit(function))


class _Unannotated(ast.NodeTransformer):
    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        assert node.value is not None
        return ast.Assign(targets=[node.target], value=node.value, lineno=node.lineno)
