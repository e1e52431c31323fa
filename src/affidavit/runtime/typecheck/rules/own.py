"""Rules of our own, on the tree alone: they hold even where the type checker cannot look.

Each proves an error from the stubs: an operation that does not exist or is never awaited, a stream iterated without
`async`, a `where` with an unknown field or a literal of another type.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import cast

from affidavit.runtime.typecheck.catalogue import Method, members, named
from affidavit.runtime.typecheck.resolve import Callable, Missing, Value
from affidavit.runtime.typecheck.rules import bounds, suggest
from affidavit.runtime.typecheck.rules.awaiting import not_awaited, without_loop
from affidavit.runtime.typecheck.rules.case import Case, attribute_place
from affidavit.runtime.typecheck.rules.proof import Stores, literal
from affidavit.runtime.typecheck.rules.reach import guarded
from affidavit.runtime.typecheck.verdict import Diagnostic

__all__ = ["examine"]

_STREAMS = frozenset({"AsyncIterator", "AsyncIterable", "AsyncGenerator"})
_PLAIN = frozenset({"list", "dict", "str", "int", "float", "bool", "bytes", "None", "set", "tuple"})
# fmt: off
_ITERATING = frozenset({
    "len", "sorted", "sum", "list", "set", "tuple", "max", "min", "any", "all", "enumerate", "zip", "map", "filter",
    "reversed",
})
# fmt: on
_PROBING = ("setattr", "hasattr", "delattr", "dir", "vars")
_REFUSED = ("TypeError", "Error")
_EXACT: Mapping[str, tuple[type, ...]] = {
    "None": (type(None),),
    "str": (str,),
    "int": (int,),
    "bool": (bool,),
    "float": (int, float),
    "bytes": (bytes,),
}


def examine(case: Case) -> Iterator[Diagnostic]:
    """Every finding of the own rules; each blocks unless the script takes the error."""
    return (found for node in case.script.nodes for found in _node(case, node))


def _node(case: Case, node: ast.AST) -> Iterator[Diagnostic]:
    match node:
        case ast.Attribute(ctx=ast.Load()):
            yield from _unknown(case, node)
        case ast.Call():
            yield from not_awaited(case, node)
            yield from without_loop(case, node)
            yield from bounds.exceeded(case, node)
            yield from _selectors(case, node)
            yield from _lone_citation(case, node)
            yield from _spread(case, node)
            yield from _asked_by_text(case, node)
            yield from _streams_in_call(case, node)
        case ast.For(iter=iterated) | ast.comprehension(iter=iterated, is_async=0):
            yield from _stream(case, iterated)
        case ast.AsyncFor(iter=iterated) | ast.comprehension(iter=iterated, is_async=1):
            yield from _plain_async(case, iterated)
        case ast.Await(value=awaited):
            yield from _not_awaitable(case, awaited)
        case _:
            pass


def _unknown(case: Case, node: ast.Attribute) -> Iterator[Diagnostic]:
    missing = case.resolver.resolve(node)
    if not isinstance(missing, Missing) or missing.node is not node:
        return
    if case.is_probed(node.attr) or node.attr in case.stores.attributes:
        return
    known = case.catalogue.attributes(missing.owner)
    line, column = attribute_place(case.text, node)
    written = case.source_of(node.value, 100)
    owner = written if re.fullmatch(r"[\w.]+", written) else missing.owner
    yield Diagnostic(
        line=line,
        column=column,
        rule="unknown-operation" if missing.owner in case.catalogue.namespaces else "missing-attribute",
        message=f"`{owner}` has no `{node.attr}`; it has: {suggest.listing(known) or 'nothing'}",
        blocking=not guarded(case.script, node, "AttributeError"),
        suggestion=suggest.close(node.attr, known),
    )


def _asked_by_text(case: Case, node: ast.Call) -> Iterator[Diagnostic]:
    """`getattr(df.db.app, "fils")`, without a value for what is not there."""
    match node:
        case ast.Call(
            func=ast.Name(id="getattr"), args=[owner, ast.Constant(value=str(name)) as text], keywords=[]
        ):
            value = case.resolver.resolve(owner)
        case _:
            return
    kind = case.resolver.class_of(value) if isinstance(value, Value) else ""
    known = case.catalogue.attributes(kind) if kind else []
    if not kind or case.catalogue.is_dict(kind) or not case.catalogue.is_whole(kind) or name in known:
        return
    if name.startswith("_") or name in case.stores.attributes:
        return
    if any(case.script.mentions(word) for word in _PROBING) or case.script.binds("getattr"):
        return
    message = f"`{case.source_of(owner, 100) or kind}` has no `{name}`; it has: {suggest.listing(known) or 'nothing'}"
    rule = "unknown-operation" if kind in case.catalogue.namespaces else "missing-attribute"
    yield case.found(text, rule, message, suggest.close(name, known), raises=("AttributeError",))


def _spread(case: Case, node: ast.Call) -> Iterator[Diagnostic]:
    """The names in `**{"limit": 3}`, or in a dictionary that is written out once and handed over so."""
    target = case.resolver.resolve(node.func)
    spread = [keyword.value for keyword in node.keywords if keyword.arg is None]
    if not spread or not isinstance(target, Callable) or len(target.definitions) != 1:
        return
    arguments = target.definitions[0].args
    if arguments.kwarg is not None:
        return
    known = [one.arg for one in (*arguments.args[1:], *arguments.kwonlyargs)]
    for one in spread:
        for place, name, _ in _display(case, one) or ():
            if isinstance(name, str) and name not in known:
                message = f"there is no argument {name!r}; there are: {suggest.listing(known) or 'none'}"
                near = suggest.close(name, known)
                yield case.found(place, "unknown-argument", message, near, raises=_REFUSED)


def _stream(case: Case, iterated: ast.expr) -> Iterator[Diagnostic]:
    value = case.resolver.resolve(iterated)
    if isinstance(value, Value) and _head(value) in _STREAMS:
        message = "this gives one page after another: use `async for`"
        yield case.found(iterated, "not-iterable", message, "async for", raises=["TypeError"])


def _streams_in_call(case: Case, node: ast.Call) -> Iterator[Diagnostic]:
    """`list(pages())` and the like."""
    if (
        not isinstance(node.func, ast.Name)
        or node.func.id not in _ITERATING
        or case.script.binds(node.func.id)
    ):
        return
    for argument in node.args:
        value = case.resolver.resolve(argument)
        if isinstance(value, Value) and _head(value) in _STREAMS:
            message = f"`{node.func.id}` cannot iterate this: it needs `async for`"
            suggestion = "[page async for page in ...]"
            yield case.found(argument, "not-iterable", message, suggestion, raises=["TypeError"])


def _plain_async(case: Case, iterated: ast.expr) -> Iterator[Diagnostic]:
    value = case.resolver.resolve(iterated)
    if not isinstance(value, Value):
        return
    plain = _head(value) in _PLAIN or case.resolver.class_of(value) != ""
    if plain and not _has(case, value, "__aiter__"):
        message = "this is iterated without waiting: use plain `for`"
        yield case.found(iterated, "not-iterable", message, "for", raises=["TypeError"])


def _not_awaitable(case: Case, awaited: ast.expr) -> Iterator[Diagnostic]:
    value = case.resolver.resolve(awaited)
    if not isinstance(value, Value):
        return
    if _head(value) in _STREAMS:
        message = "this is not awaited: iterate it with `async for`"
        yield case.found(awaited, "invalid-await", message, "async for", raises=["TypeError"])
    elif (_head(value) in _PLAIN or case.resolver.class_of(value)) and not _has(case, value, "__await__"):
        message = f"`{_head(value)}` cannot be awaited: it is there already"
        yield case.found(awaited, "invalid-await", message, raises=["TypeError"])


def _head(value: Value) -> str:
    kinds = members(value.annotation)
    return named(kinds[0]) if len(kinds) == 1 else ""


def _has(case: Case, value: Value, method: str) -> bool:
    return bool(case.catalogue.method(case.resolver.class_of(value), method))


def _selectors(case: Case, node: ast.Call) -> Iterator[Diagnostic]:
    """The `where` of a call, where it is a literal dictionary or a name bound once to one."""
    target = case.resolver.resolve(node.func)
    if not isinstance(target, Callable) or len(target.definitions) != 1:
        return
    fields = _selector(case, target.definitions[0])
    given = [keyword.value for keyword in node.keywords if keyword.arg == "where"]
    if fields and target.definitions[0].args.args[1:2] and target.definitions[0].args.args[1].arg == "where":
        given += node.args[:1]
    for one in given if fields else ():
        display = _display(case, one)
        if display is not None:
            yield from _fields(case, fields, display)


def _lone_citation(case: Case, node: ast.Call) -> Iterator[Diagnostic]:
    """`df.answer(evidence=page.evidence_id)`: a text passes for a sequence of texts, but is no list of citations."""
    target = case.resolver.resolve(node.func)
    if not isinstance(target, Callable) or target.path != "df.answer":
        return
    for keyword in node.keywords:
        value = case.resolver.resolve(keyword.value) if keyword.arg == "evidence" else None
        if isinstance(value, Value) and _head(value) == "str" and case.is_steady(keyword.value):
            source = case.source_of(keyword.value, 100)
            message = "`evidence` takes a list of citations, not one text"
            yield case.found(keyword.value, "invalid-argument-type", message, f"[{source}]", raises=_REFUSED)


def _selector(case: Case, definition: Method) -> str:
    arguments = [*definition.args.args, *definition.args.kwonlyargs]
    for argument in arguments:
        if argument.arg == "where" and argument.annotation is not None:
            heads = [named(member) for member in members(argument.annotation)]
            known = [
                head for head in heads if case.catalogue.is_dict(head) and not case.catalogue.is_open(head)
            ]
            return known[0] if len(known) == 1 and len(heads) <= 2 else ""
    return ""


def _display(case: Case, node: ast.expr) -> list[tuple[ast.expr | ast.keyword, object, ast.expr]] | None:
    """The places, keys and values of a `where` that is written out: `{...}` or `dict(...)`."""
    if isinstance(node, ast.Name):
        binding = case.script.only_binding(node)
        written = case.script.mentions(node.id)
        # Only written once and handed over: whatever else is done with it may change it.
        if binding is None or binding.how != "assign" or binding.value is None or len(written) != 2:
            return None
        node = binding.value
    match node:
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            return [(key, key.value, value) for key, value in pairs if isinstance(key, ast.Constant)]
        case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords) if not case.script.binds("dict"):
            return [(one, one.arg, one.value) for one in keywords if one.arg is not None]
        case _:
            return None


def _fields(
    case: Case, selector: str, display: list[tuple[ast.expr | ast.keyword, object, ast.expr]]
) -> Iterator[Diagnostic]:
    known = case.catalogue.keys(selector)
    for place, key, value in display:
        if not isinstance(key, str) or key not in known:
            near = suggest.close(str(key), known)
            message = f"`where` has no field {key!r}; it has: {suggest.listing(known)}"
            yield case.found(place, "unknown-where-field", message, near, raises=_REFUSED)
            continue
        wanted = case.catalogue.field(selector, key)
        if wanted is not None:
            yield from _value(case, key, value, wanted)


def _value(case: Case, field: str, value: ast.expr, wanted: ast.expr) -> Iterator[Diagnostic]:
    """A literal that the field never has: the whole, or the wrong elements of a list."""
    given = case.constant(value)
    if given is Stores.UNKNOWN or _fits(given, wanted):
        return
    parts = value.elts if isinstance(value, ast.List | ast.Tuple | ast.Set) else []
    options = _texts(wanted)
    for part in [part for part in parts if not _fits_element(literal(part), wanted)] or [value]:
        one = case.constant(part)
        if options and isinstance(one, str):
            message = f"`where` field {field!r} is never {one!r}; there are: {suggest.listing(options)}"
            near = suggest.close(one, options)
        else:
            message, near = f"`where` field {field!r} takes {_shown(wanted)}, not {one!r}", None
        yield case.found(part, "invalid-where-value", message, near, raises=_REFUSED)


def _fits_element(given: object, annotation: ast.expr) -> bool:
    """Whether a literal may stand in a list for the annotation."""
    lists = [one for one in members(annotation) if named(one) in {"list", "Sequence"}]
    return any(_fits(given, one.slice) for one in lists if isinstance(one, ast.Subscript))


def _shown(annotation: ast.expr) -> str:
    """An annotation in short: without the lists of the same."""
    kinds = [one for one in members(annotation) if named(one) not in {"list", "Sequence"}]
    return " or ".join(ast.unparse(one) for one in kinds) + ", or a list of them"


def _fits(given: object, annotation: ast.expr) -> bool:
    """Whether a literal may be a value of the annotation; unknown annotations take everything."""
    return any(_fits_one(given, member) for member in members(annotation))


def _fits_one(given: object, annotation: ast.expr) -> bool:
    head = named(annotation)
    if head in _EXACT:
        return isinstance(given, _EXACT[head])
    inner = annotation.slice if isinstance(annotation, ast.Subscript) else None
    if head == "Literal" and inner is not None:
        options = _options(inner)
        return Stores.UNKNOWN in options or any(type(given) is type(one) and given == one for one in options)
    if head in {"list", "Sequence"}:
        if isinstance(given, tuple | set | frozenset):
            return True
        return isinstance(given, list) and (
            inner is None or all(_fits(one, inner) for one in cast("list[object]", given))
        )
    return True


def _options(inner: ast.expr) -> list[object]:
    """The values between the brackets of `Literal[...]`."""
    return [literal(one) for one in (inner.elts if isinstance(inner, ast.Tuple) else [inner])]


def _texts(annotation: ast.expr) -> list[str]:
    """The texts that an annotation allows."""
    return [
        one
        for member in members(annotation)
        if named(member) == "Literal" and isinstance(member, ast.Subscript)
        for one in _options(member.slice)
        if isinstance(one, str)
    ]
