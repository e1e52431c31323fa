"""Keys that a row does not have: what the type checker says of it, and what the flow of values proves."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from affidavit.runtime.typecheck.flow import Analysis
from affidavit.runtime.typecheck.flow.shapes import (
    PLAIN,
    UNKNOWN,
    Getter,
    HostObject,
    Late,
    Record,
    Shape,
    Values,
)
from affidavit.runtime.typecheck.resolve import Value
from affidavit.runtime.typecheck.rules import suggest, tested
from affidavit.runtime.typecheck.rules.case import Case, attribute_place
from affidavit.runtime.typecheck.verdict import Diagnostic

__all__ = ["contradicted", "is_another_kind", "is_certain", "may_exist", "misspelt", "unknown"]

_KEY = "invalid-typed-dict-key"
_MISSING = ("KeyError",)
_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_CONDITIONS = (ast.If, ast.IfExp, ast.While, ast.Match, ast.BoolOp)
_BUILTIN_ATTRIBUTES = frozenset(
    name for kind in (str, list, dict, set, tuple, int, float, bytes) for name in dir(kind)
)


def may_exist(case: Case, key: str) -> bool:
    """Whether the script may put the key into a row, or asks whether it is there."""
    stores, growth = case.stores, case.growth
    if growth is None or key in growth:
        return True
    return key in stores.keys | stores.asked or (stores.computed and key in stores.words)


def misspelt(case: Case) -> Iterator[Diagnostic]:
    """Reads of a key or attribute that nothing which gets there has, however it got there."""
    reads = list(_doubtful(case))
    if not reads or case.flow is None:
        return
    for node in reads:
        yield from _judged(case, case.flow, node)


def contradicted(case: Case, node: ast.expr) -> bool:
    """Whether something else than a row of the host may get to a place, whatever the type checker takes it for."""
    return case.flow is None or not all(isinstance(one, Record) or one is PLAIN for one in case.flow.of(node))


def unknown(case: Case, node: ast.expr) -> bool:
    """Whether anything at all may get to a place."""
    return case.flow is None or UNKNOWN in case.flow.of(node)


def _doubtful(case: Case) -> Iterator[ast.Subscript | ast.Attribute | ast.Call]:
    """Reads that may be wrong: of keys that not every row in play has, of attributes that nothing known has."""
    written = {key.value for node in case.script.nodes if isinstance(node, ast.Dict) for key in node.keys
               if isinstance(key, ast.Constant)}  # fmt: skip
    known = _known_attributes(case)
    for node in case.script.nodes:
        match node:
            case ast.Subscript(ctx=ast.Load(), slice=ast.Constant(value=str(key))):
                if key not in written and not _is_declared(case, node) and not may_exist(case, key):
                    yield node
            case ast.Attribute(ctx=ast.Load(), attr=name) if name not in known and not name.startswith("_"):
                if not case.is_probed(name) and not _is_of_module(case, node):
                    yield node
            case ast.Call(func=ast.Attribute(attr="itemgetter") | ast.Name(id="itemgetter")):
                yield node
            case _:
                pass


def _is_declared(case: Case, node: ast.Subscript) -> bool:
    """Whether the one type of what is read has the key: following what gets there takes longer and tells no more."""
    owner = case.resolver.resolve(node.value)
    declared = isinstance(owner, Value) and case.resolver.class_of(owner) != ""
    return declared and isinstance(case.resolver.resolve(node), Value)


def _known_attributes(case: Case) -> frozenset[str]:
    host = {name for one in case.catalogue.classes for name in case.catalogue.attributes(one)}
    return frozenset(host) | _BUILTIN_ATTRIBUTES | case.stores.attributes


def _is_of_module(case: Case, node: ast.Attribute) -> bool:
    """Whether the attribute is one of an imported name."""
    inner: ast.expr = node
    while isinstance(inner, ast.Attribute):
        inner = inner.value
    if not isinstance(inner, ast.Name):
        return False
    return any(isinstance(binding.node, ast.alias) for binding in case.script.bindings_everywhere(inner.id))


def _judged(
    case: Case, analysis: Analysis, node: ast.Subscript | ast.Attribute | ast.Call
) -> Iterator[Diagnostic]:
    match node:
        case ast.Subscript(value=owner, slice=ast.Constant() as index) if not tested.is_for_no_row(
            case, node, owner
        ):
            yield from _key(case, analysis, analysis.of(owner), index)
        case ast.Attribute(value=owner) if not tested.is_told_apart(case, owner):
            yield from _attribute(case, analysis, analysis.of(owner), node)
        case ast.Call():
            for shape in analysis.of(node):
                if isinstance(shape, Getter):
                    yield from _getter(case, analysis, shape)
        case _:
            pass


def _getter(case: Case, analysis: Analysis, getter: Getter) -> Iterator[Diagnostic]:
    for key in getter.keys:
        if isinstance(key.value, str) and not may_exist(case, key.value):
            yield from _key(case, analysis, frozenset(getter.applied.shapes), key)


def _key(case: Case, analysis: Analysis, owners: Values, index: ast.Constant) -> Iterator[Diagnostic]:
    if owners and owners <= _coroutines(analysis):
        yield _unawaited(case, index)
        return
    key = str(index.value)
    rows = [owner for owner in owners if isinstance(owner, Record)]
    pages = [owner for owner in owners if isinstance(owner, HostObject)]
    if len(rows) + len(pages) + (PLAIN in owners) < len(owners) or not rows + pages:
        return
    if any(analysis.field(row, key) is not None for row in rows):
        return
    if any(
        key in case.catalogue.item_keys(page.name) or not case.catalogue.item_keys(page.name)
        for page in pages
    ):
        return
    keys = [known for row in rows for known in analysis.hosts.keys(row)]
    keys += [known for page in pages for known in case.catalogue.item_keys(page.name)]
    near = suggest.close(key, keys)
    resembles = near is not None and not is_another_kind(case, key)
    if not resembles and not (_is_closed(case, rows) and is_certain(case, index)):
        return
    names = sorted({name for row in rows for name, _ in row.rows} | {page.name for page in pages})
    message = f"no key {key!r} in {' or '.join(names)}; it has: {suggest.listing(dict.fromkeys(keys))}"
    rule = _KEY if rows else "invalid-argument-type"
    yield case.found(index, rule, message, near, raises=_MISSING)


def _coroutines(analysis: Analysis) -> frozenset[Shape]:
    """What calling an `async def` of the script gives, where no decorator makes something else of it."""
    return frozenset(
        one.made
        for node, one in analysis.functions.items()
        if isinstance(node, ast.AsyncFunctionDef) and not node.decorator_list and isinstance(one.made, Late)
    )


def _unawaited(case: Case, index: ast.Constant) -> Diagnostic:
    around = case.script.parent(index)
    owner = around.value if isinstance(around, ast.Subscript) else index
    short = case.source_of(owner, 100)
    message = "this was not awaited: what an `async def` gives has no keys before"
    return case.found(
        owner, "not-awaited", message, f"await {short}" if short else "await", raises=("TypeError",)
    )


def is_another_kind(case: Case, key: str) -> bool:
    """Whether some other row has exactly this key."""
    return any(key in case.catalogue.keys(name) for name in case.catalogue.classes)


def _is_closed(case: Case, rows: Sequence[Record]) -> bool:
    """Whether rows certainly hold nothing but what they name."""
    return all(case.catalogue.is_closed(name) for row in rows for name, _ in row.rows)


def is_certain(case: Case, node: ast.expr) -> bool:
    """Whether a read is not one for another kind of row: under no condition, and behind none that may leave before."""
    for around in case.script.ancestors(node):
        if isinstance(around, _CONDITIONS):
            return False
        if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
            before = [statement for statement in around.body if statement.lineno < node.lineno]
            return not any(isinstance(one, _LEAVING) for statement in before for one in ast.walk(statement))
    return True


def _attribute(case: Case, analysis: Analysis, owners: Values, node: ast.Attribute) -> Iterator[Diagnostic]:
    known: list[str] = []
    for owner in owners:
        match owner:
            case HostObject(name=name) if analysis.attribute(owner, node.attr) is None:
                known += case.catalogue.attributes(name)
            case Record():
                known += [f'["{key}"]' for key in analysis.hosts.keys(owner)]
            case _:
                return
    if not known:
        return
    line, column = attribute_place(case.text, node)
    near = suggest.close(node.attr, known) or suggest.close(f'["{node.attr}"]', known)
    found = case.found(node, "missing-attribute", f"no `{node.attr}` here; there are: {suggest.listing(known)}", near,
                       raises=("AttributeError",))  # fmt: skip
    yield Diagnostic(
        line=line,
        column=column,
        rule=found.rule,
        message=found.message,
        blocking=found.blocking,
        suggestion=near,
    )
