"""What the host's stubs declare, read back from the very text that the type checker sees.

So suggestions and own rules can never disagree with the checker about what there is. The stubs are plain `.pyi`
source in the syntax of the oldest supported Python: classes with methods, properties and annotated fields, TypedDicts,
and annotated names at the top level, which are the names that a script sees.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

__all__ = ["Catalogue", "Method", "StubClass", "members", "named"]

Method: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

_QUALIFIERS = frozenset({"NotRequired", "Required", "ReadOnly", "Annotated", "Final", "ClassVar"})
_DICT = frozenset({"TypedDict"})
_OPEN_ARGUMENTS = frozenset({"extra_items", "closed"})


@dataclass(slots=True, kw_only=True)
class StubClass:
    """One class of the stubs.

    Attributes:
        name: its name in the stubs.
        parameters: names of its type variables, in order.
        bases: names of its bases that are classes of the stubs.
        fields: annotation of each field or property, as written.
        methods: the definitions of each method, several when overloaded.
        is_dict: whether its values are dictionaries (TypedDict).
        optional: fields of a TypedDict that may be missing.
        is_open: a TypedDict that may hold other keys than its fields.
    """

    name: str
    parameters: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()
    fields: dict[str, ast.expr] = field(default_factory=dict[str, ast.expr])
    methods: dict[str, list[Method]] = field(default_factory=dict[str, list[Method]])
    is_dict: bool = False
    optional: set[str] = field(default_factory=set[str])
    is_open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """The classes, and the names that scripts see with their annotations, of one or more stub modules.

    Attributes:
        exported: for each module, in the given order, the names that it offers to scripts.
        paths: how scripts reach a class (`df.db.app.modules`), where a chain of properties leads there.
    """

    classes: Mapping[str, StubClass]
    values: Mapping[str, ast.expr]
    functions: Mapping[str, list[Method]]
    exported: tuple[tuple[str, ...], ...]
    paths: Mapping[str, str]

    @classmethod
    def read(cls, *stubs: str) -> Catalogue:
        """Read stub modules. Raises `SyntaxError` (or what the compiler raises) for text that is not Python."""
        classes: dict[str, StubClass] = {}
        values: dict[str, ast.expr] = {}
        functions: dict[str, list[Method]] = {}
        exported: list[tuple[str, ...]] = []
        for text in stubs:
            names: dict[str, None] = {}
            for node in ast.parse(text, "<stubs>").body:
                match node:
                    case ast.ClassDef():
                        classes[node.name] = _class(node, classes)
                    case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
                        _functional(name, call, classes)
                    case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation) if _is_value(node):
                        values[name] = _unquoted(annotation)
                        names[name] = None
                    case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                        functions.setdefault(name, []).append(node)
                        names[name] = None
                    case _:
                        pass
            exported.append(tuple(names))
        paths = _paths(classes, values)
        return cls(classes=classes, values=values, functions=functions, exported=tuple(exported), paths=paths)

    def lineage(self, name: str) -> Iterator[StubClass]:
        """A class and the classes it inherits from, nearest first."""
        pending, seen = [name], set[str]()
        while pending:
            current = self.classes.get(pending.pop(0))
            if current is not None and current.name not in seen:
                seen.add(current.name)
                yield current
                pending += current.bases

    def attributes(self, name: str) -> list[str]:
        """The public attributes of a class: fields, properties and methods. Empty for dictionaries."""
        found: dict[str, None] = {}
        for one in self.lineage(name):
            if not one.is_dict:
                found.update(dict.fromkeys([*one.fields, *one.methods]))
        return [attribute for attribute in found if not attribute.startswith("_")]

    def field(self, name: str, attribute: str) -> ast.expr | None:
        """The annotation of a field or property of a class, inherited ones too."""
        return next((one.fields[attribute] for one in self.lineage(name) if attribute in one.fields), None)

    def method(self, name: str, attribute: str) -> list[Method]:
        """The definitions of a method of a class, inherited ones too."""
        for one in self.lineage(name):
            if attribute in one.methods:
                return one.methods[attribute]
        return []

    def keys(self, name: str) -> list[str]:
        """The keys of a TypedDict, inherited ones too."""
        return list({key: None for one in self.lineage(name) if one.is_dict for key in one.fields})

    def is_dict(self, name: str) -> bool:
        """Whether the class is a TypedDict."""
        return any(one.is_dict for one in self.lineage(name))

    def is_open(self, name: str) -> bool:
        """Whether a TypedDict may hold keys that it does not name."""
        return any(one.is_open for one in self.lineage(name))

    def may_lack(self, name: str, key: str) -> bool:
        """Whether a TypedDict's key is declared as one that may be missing."""
        return next((key in one.optional for one in self.lineage(name) if key in one.fields), False)


def members(annotation: ast.expr) -> list[ast.expr]:
    """The members of a union, flattened; qualifiers such as `NotRequired` are taken off."""
    annotation = _unquoted(annotation)
    match annotation:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return [*members(left), *members(right)]
        case ast.Subscript(slice=inner):
            head = named(annotation)
            arguments = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            if head in _QUALIFIERS:
                return members(arguments[0])
            if head == "Optional":
                return [*members(arguments[0]), ast.Constant(value=None)]
            if head == "Union":
                return [member for argument in arguments for member in members(argument)]
        case _:
            pass
    return [annotation]


def named(annotation: ast.expr) -> str:
    """The last word of an annotation's name without its arguments: `Page` of `Page[Row]`; empty for others."""
    match annotation:
        case ast.Subscript(value=value):
            return named(value)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Constant(value=None):
            return "None"
        case _:
            return ""


def _unquoted(annotation: ast.expr) -> ast.expr:
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            return ast.parse(annotation.value, mode="eval").body
        except SyntaxError:
            return annotation
    return annotation


def _is_value(node: ast.AnnAssign) -> bool:
    """Whether an annotated name is a value for scripts, not an alias or a private of the stubs."""
    return named(node.annotation) != "TypeAlias" and not getattr(node.target, "id", "_").startswith("_")


def _class(node: ast.ClassDef, known: Mapping[str, StubClass]) -> StubClass:
    names = [named(base) for base in node.bases]
    inherited = [name for name in names if name in known]
    total = True
    made = StubClass(name=node.name, bases=tuple(inherited))
    made.is_dict = bool(_DICT & set(names)) or any(known[name].is_dict for name in inherited)
    for keyword in node.keywords:
        value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
        total = total and not (keyword.arg == "total" and value is False)
        made.is_open = made.is_open or (keyword.arg in _OPEN_ARGUMENTS and value is not True)
    made.parameters = _parameters(node)
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                made.fields[name] = _unquoted(annotation)
                required = named(made.fields[name])
                if required == "NotRequired" or (not total and required != "Required"):
                    made.optional.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                _method(made, statement)
            case _:
                pass
    return made


def _functional(name: str, call: ast.Call, classes: dict[str, StubClass]) -> None:
    """`X = TypedDict("X", {...})`, the form for keys that are no identifiers."""
    if named(call.func) != "TypedDict" or len(call.args) < 2 or not isinstance(call.args[1], ast.Dict):
        return
    made = StubClass(name=name, is_dict=True)
    options = {keyword.arg: getattr(keyword.value, "value", None) for keyword in call.keywords}
    made.is_open = any(option in _OPEN_ARGUMENTS and value is not True for option, value in options.items())
    for key, annotation in zip(call.args[1].keys, call.args[1].values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            made.fields[key.value] = _unquoted(annotation)
            required = named(made.fields[key.value])
            if required == "NotRequired" or (options.get("total") is False and required != "Required"):
                made.optional.add(key.value)
    classes[name] = made


def _method(made: StubClass, node: Method) -> None:
    decorators = {named(decorator) for decorator in node.decorator_list}
    if "setter" in decorators:
        return
    if "property" in decorators and node.returns is not None:
        made.fields[node.name] = _unquoted(node.returns)
    else:
        made.methods.setdefault(node.name, []).append(node)


def _parameters(node: ast.ClassDef) -> tuple[str, ...]:
    for base in node.bases:
        if isinstance(base, ast.Subscript) and named(base) in {"Generic", "Protocol"}:
            arguments = base.slice.elts if isinstance(base.slice, ast.Tuple) else [base.slice]
            return tuple(named(argument) for argument in arguments)
    return ()


def _paths(classes: Mapping[str, StubClass], values: Mapping[str, ast.expr]) -> dict[str, str]:
    pending = [(named(annotation), name) for name, annotation in values.items()]
    paths: dict[str, str] = {}
    while pending:
        name, path = pending.pop(0)
        one = classes.get(name)
        if one is None or name in paths or one.is_dict:
            continue
        paths[name] = path
        pending += [(named(kind), f"{path}.{attribute}") for attribute, kind in one.fields.items()]
    return paths
