"""Hand-written helpers that a mount brings into `df.lib`: read from their source, which is never run here.

A helper is an `async def` with annotations; scripts call it as they call an operation, and it runs inside the script's
sandbox, where each of its own calls is recorded and needs its own grant.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn, cast

from affidavit.errors import UsageError
from affidavit.evidence.record import JsonValue, Producer
from affidavit.extensions import HelperModule
from affidavit.namespaces.annotations import names_in
from affidavit.namespaces.names import BUILTIN_NAMES
from affidavit.namespaces.operation import Namespace, Operation, Parameter

__all__ = ["HELPERS", "digest_of", "helpers_namespace", "operations_of", "read_helpers"]

HELPERS: Final = "helpers"
"""The option that every mount takes: paths of Python files, from the mount's folder."""

_MAX_BYTES: Final = 1 << 16
_KNOWN: Final = BUILTIN_NAMES | {"Any", "Literal", "Mapping", "NotRequired", "Sequence", "TypedDict"}
_DEFINING: Final = (
    ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef
)  # fmt: skip


def read_helpers(paths: JsonValue, folder: Path) -> tuple[HelperModule, ...]:
    """The files that the option `helpers` names.

    Raises:
        UsageError: `mount-invalid`, with the file.
    """
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in cast("list[Any]", paths)):
        raise UsageError("mount-invalid", "option helpers is no list of paths", hint='helpers = ["tools.py"]')
    found: list[HelperModule] = []
    for path in cast("list[str]", paths):
        try:
            data = (folder / path).read_bytes()
            found.append(HelperModule(key=path, code=data.decode("utf-8")))
        except OSError as error:
            raise UsageError("mount-invalid", f"helper {path} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError as error:
            raise UsageError("mount-invalid", f"helper {path} is not UTF-8: {error.reason}") from None
    return tuple(found)


def digest_of(module: HelperModule) -> str:
    """What pins a module: the digest of its source."""
    return f"sha256:{hashlib.sha256(module.code.encode()).hexdigest()}"


def helpers_namespace(modules: Iterable[HelperModule]) -> tuple[Namespace, list[str]]:
    """`df.lib`, and the names that two modules bring: the first of them stands."""
    made: dict[str, Operation] = {}
    twice: list[str] = []
    for module in modules:
        for name, operation in operations_of(module).items():
            if name in made:
                twice.append(name)
            else:
                made[name] = operation
    return Namespace(name="lib", doc="Helpers: functions over the other calls.", operations=made), twice


def operations_of(module: HelperModule) -> dict[str, Operation]:
    """The helpers of a module, by name.

    Raises:
        UsageError: `mount-invalid`, with key and line: what does not compile, does more than define, or is untyped.
    """
    tree = _parsed(module)
    types = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef) and _is_shape(node)}
    for node in tree.body:
        if not isinstance(node, _DEFINING) and not _is_text(node):
            _refuse(module, node, "a module of helpers only imports and defines")
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            _refuse(module, node, f"{node.name} is no async def, as every helper is", "or start it with _")
    for field in (it for shape in types.values() for it in shape.body if isinstance(it, ast.AnnAssign)):
        _check(module, field.annotation, types)
    found = [
        node for node in tree.body if isinstance(node, ast.AsyncFunctionDef) and not node.name.startswith("_")
    ]
    if not found:
        _refuse(module, tree, "it defines no helper", "write async def NAME(...) -> ...: with annotations")
    return {node.name: _operation(module, node, types) for node in found}


def _parsed(module: HelperModule) -> ast.Module:
    if len(module.code.encode("utf-8", "surrogatepass")) > _MAX_BYTES:
        raise UsageError("mount-invalid", f"helper {module.key} has more than {_MAX_BYTES} bytes")
    try:
        compile(module.code, module.key, "exec", dont_inherit=True)
        return ast.parse(module.code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        words = error.msg if isinstance(error, SyntaxError) else str(error)
        raise _refusal(module, line, words) from None


def _operation(
    module: HelperModule, node: ast.AsyncFunctionDef, types: Mapping[str, ast.ClassDef]
) -> Operation:
    arguments = node.args
    if arguments.vararg or arguments.kwarg or arguments.posonlyargs or node.decorator_list:
        _refuse(module, node, f"{node.name} has decorators, *, / or ** in its definition")
    if node.returns is None:
        _refuse(module, node, f"{node.name} does not say what it returns", "write -> and a type")
    _check(module, node.returns, types)
    parameters = tuple(_parameters(module, node, types))
    digest = digest_of(module)
    properties: dict[str, JsonValue] = {one.name: {} for one in parameters}

    async def handler(given: dict[str, Any], /) -> NoReturn:
        del given
        message = f"lib.{node.name} is a helper, and runs inside scripts"
        hint = f"affidavit run with a script that says: await df.lib.{node.name}(...)"
        raise UsageError("operation-unknown", message, hint=hint)

    return Operation(
        name=node.name,
        contract=f"helper.{node.name}/{digest[7:19]}",
        effect="read",
        doc=ast.get_docstring(node) or "",
        parameters=parameters,
        input_schema={"type": "object", "properties": properties},
        output_schema=None,
        returns=ast.unparse(node.returns),
        handler=handler,
        parse=dict,
        convert=_same,
        producer=Producer(name=f"helper.{node.name}", version=digest[7:19]),
        authority="analyst",
        declarations=tuple(ast.unparse(shape) for shape in types.values()),
        code=module.code,
    )


def _parameters(
    module: HelperModule, node: ast.AsyncFunctionDef, types: Mapping[str, ast.ClassDef]
) -> Iterable[Parameter]:
    positional, named = node.args.args, node.args.kwonlyargs
    missing: list[ast.expr | None] = [None] * (len(positional) - len(node.args.defaults))
    defaults = [*missing, *node.args.defaults, *node.args.kw_defaults]
    for argument, default in zip([*positional, *named], defaults, strict=True):
        if argument.annotation is None:
            _refuse(module, argument, f"{node.name} does not say what {argument.arg} is", "annotate it")
        _check(module, argument.annotation, types)
        yield Parameter(
            name=argument.arg,
            original=argument.arg,
            annotation=ast.unparse(argument.annotation),
            required=default is None,
            default=default.value if isinstance(default, ast.Constant) and _is_plain(default.value) else None,
            positional=argument in positional,
        )


def _check(module: HelperModule, node: ast.expr, types: Mapping[str, ast.ClassDef]) -> None:
    """See that scripts know every name of an annotation."""
    unknown = names_in(ast.unparse(node)) - _KNOWN - types.keys()
    if unknown:
        hint = "built-in types, Any, Literal, Mapping, Sequence and the module's own TypedDicts"
        _refuse(module, node, f"scripts do not know the type {min(unknown)}", hint)


def _is_shape(node: ast.ClassDef) -> bool:
    return any(isinstance(base, ast.Name) and base.id == "TypedDict" for base in node.bases)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))


def _same(value: Any) -> Any:
    return value


def _refuse(module: HelperModule, node: ast.AST, why: str, hint: str = "") -> NoReturn:
    raise _refusal(module, getattr(node, "lineno", 1), why, hint)


def _refusal(module: HelperModule, line: int, why: str, hint: str = "") -> UsageError:
    details: dict[str, JsonValue] = {"key": module.key, "line": line}
    return UsageError("mount-invalid", f"helper {module.key}:{line}: {why}", hint=hint, details=details)
