"""What the host's stubs declare, read back from the very text that the type checker sees.

So suggestions and own rules can never disagree with the checker about what there is. The stubs are plain `.pyi`
source in the syntax of the oldest supported Python: classes with methods, properties and annotated fields, TypedDicts,
and annotated names at the top level, which are the names that a script sees.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

__all__ = ["Catalogue", "Method", "StubClass", "members", "named"]

Method: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

_QUALIFIERS = frozenset({"NotRequired", "Required", "ReadOnly", "Annotated", "Final", "ClassVar"})
_PLAIN_BASES = frozenset({"TypedDict", "Generic", "Protocol", "object"})
_MAX_PATHS = 20_000
_MAX_STEPS = 8


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
        is_closed: a TypedDict that certainly holds no other keys.
        is_whole: all its attributes are known: no base outside the stubs, no `__getattr__`.
    """

    name: str
    parameters: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()
    fields: dict[str, ast.expr] = field(default_factory=dict[str, ast.expr])
    methods: dict[str, list[Method]] = field(default_factory=dict[str, list[Method]])
    is_dict: bool = False
    optional: set[str] = field(default_factory=set[str])
    is_open: bool = False
    is_closed: bool = False
    is_whole: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """The classes, and the names that scripts see with their annotations, of one or more stub modules.

    Attributes:
        exported: for each module, in the given order, the names that it offers to scripts.
        paths: how scripts reach a class (`df.db.app.modules`), where exactly one chain of properties leads there.
        namespaces: the classes that some chain of properties below `df` leads to.
    """

    classes: Mapping[str, StubClass]
    values: Mapping[str, ast.expr]
    functions: Mapping[str, list[Method]]
    exported: tuple[tuple[str, ...], ...]
    paths: Mapping[str, str]
    namespaces: frozenset[str]

    @classmethod
    def read(cls, text: str, *, exact: bool = False) -> Catalogue:
        """Read one stub module.

        Args:
            text: its source.
            exact: its TypedDicts hold the keys that they name and no others, as those of inputs do, which exist
                before the script runs.

        Raises:
            SyntaxError: text that is not Python (or what else the compiler raises for it).
        """
        reader = _Reader()
        names = reader.module(text, closed=exact)
        paths = _paths(reader.classes, reader.values)
        return cls(
            classes=reader.classes,
            values=reader.values,
            functions=reader.functions,
            exported=(names,),
            paths={name: found[0] for name, found in paths.items() if len(found) == 1},
            namespaces=frozenset(name for name, found in paths.items() if found[0].partition(".")[0] == "df"),
        )

    def joined(self, other: Catalogue) -> Catalogue:
        """Both modules together, as a script sees them. Each stands for itself: neither refers to the other.

        A class name that both have says nothing any more, as the type checker's words do not tell which is meant.
        """
        shared = self.classes.keys() & other.classes.keys()
        classes = {**self.classes, **other.classes}
        return Catalogue(
            classes={name: one for name, one in classes.items() if name not in shared},
            values={**self.values, **other.values},
            functions={**self.functions, **other.functions},
            exported=(*self.exported, *other.exported),
            paths={**self.paths, **other.paths},
            namespaces=self.namespaces | other.namespaces,
        )

    def lineage(self, name: str) -> Sequence[StubClass]:
        """A class and the classes it inherits from, nearest first."""
        first = self.classes.get(name)
        if first is None or not first.bases:
            return () if first is None else (first,)
        pending, seen = [name], dict[str, StubClass]()
        while pending:
            current = self.classes.get(pending.pop(0))
            if current is not None and current.name not in seen:
                seen[current.name] = current
                pending += current.bases
        return tuple(seen.values())

    def attributes(self, name: str) -> list[str]:
        """The public attributes of a class: fields, properties and methods. Empty for dictionaries.

        What it has from private classes of the stubs is left out: it helps nobody who looks for a name.
        """
        found: dict[str, None] = {}
        for one in self.lineage(name):
            if not one.is_dict and (one.name == name or not one.name.startswith("_")):
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

    def is_closed(self, name: str) -> bool:
        """Whether a TypedDict certainly holds no key that it does not name."""
        return any(one.is_closed for one in self.lineage(name))

    def is_whole(self, name: str) -> bool:
        """Whether every attribute of a class is known."""
        return all(one.is_whole for one in self.lineage(name))

    def item_keys(self, name: str) -> list[str]:
        """The keys by which a class with items can be read (`page["rows"]`); empty when they are not enumerated."""
        keys: list[str] = []
        for definition in self.method(name, "__getitem__"):
            wanted = definition.args.args[1].annotation if len(definition.args.args) > 1 else None
            wanted = wanted or (
                definition.args.posonlyargs[1].annotation if definition.args.posonlyargs[1:] else None
            )
            if wanted is None or named(wanted) != "Literal" or not isinstance(wanted, ast.Subscript):
                return []
            elements = wanted.slice.elts if isinstance(wanted.slice, ast.Tuple) else [wanted.slice]
            keys += [str(one.value) for one in elements if isinstance(one, ast.Constant)]
        return keys

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


class _Reader:
    """Collects what stub modules declare."""

    def __init__(self) -> None:
        self.classes: dict[str, StubClass] = {}
        self.values: dict[str, ast.expr] = {}
        self.functions: dict[str, list[Method]] = {}

    def module(self, text: str, *, closed: bool) -> tuple[str, ...]:
        """Read one module; returns the names that it offers."""
        tree = ast.parse(text, "<stubs>")
        _unalias(tree)
        names: dict[str, None] = {}
        for node in tree.body:
            match node:
                case ast.ClassDef():
                    self._class(node, closed=closed)
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
                    self._functional(name, call, closed=closed)
                case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation) if not name.startswith(
                    "_"
                ):
                    if named(annotation) != "TypeAlias":
                        self.values[name] = _unquoted(annotation)
                        names[name] = None
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    self.functions.setdefault(name, []).append(node)
                    names[name] = None
                case _:
                    pass
        return tuple(names)

    def _class(self, node: ast.ClassDef, *, closed: bool) -> None:
        bases = [named(base) for base in node.bases]
        made = StubClass(name=node.name, bases=tuple(name for name in bases if name in self.classes))
        made.is_dict = "TypedDict" in bases or any(self.classes[name].is_dict for name in made.bases)
        made.is_whole = all(name in _PLAIN_BASES or name in self.classes for name in bases)
        made.parameters = _parameters(node)
        options = {keyword.arg: getattr(keyword.value, "value", None) for keyword in node.keywords}
        _open_or_closed(made, options, closed=closed)
        for statement in node.body:
            match statement:
                case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                    _field(made, name, annotation, total=options.get("total") is not False)
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    _method(made, statement)
                case ast.ClassDef(name=name):
                    self._class(statement, closed=closed)
                    made.fields[name] = ast.parse(f"type[{name}]", mode="eval").body
                case _:
                    pass
        self.classes[node.name] = made

    def _functional(self, name: str, call: ast.Call, *, closed: bool) -> None:
        """`X = TypedDict("X", {...})`, the form for keys that are no identifiers."""
        if named(call.func) != "TypedDict" or len(call.args) < 2 or not isinstance(call.args[1], ast.Dict):
            return
        made = StubClass(name=name, is_dict=True)
        options = {keyword.arg: getattr(keyword.value, "value", None) for keyword in call.keywords}
        _open_or_closed(made, options, closed=closed)
        for key, annotation in zip(call.args[1].keys, call.args[1].values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                _field(made, key.value, annotation, total=options.get("total") is not False)
        self.classes[name] = made


def _unalias(tree: ast.Module) -> None:
    """Put the plain names back where a module uses others: `_Any` for `Any`, `_Page` for `Page`."""
    plain: dict[str, str] = {}
    for node in tree.body:
        match node:
            case ast.ImportFrom(names=names):
                plain |= {it.asname: it.name for it in names if it.asname not in (None, it.name)}
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=other)):
                plain[name] = other
            case _:
                pass
    for node in ast.walk(tree) if plain else ():
        if isinstance(node, ast.Name):
            node.id = plain.get(node.id, node.id)


def _open_or_closed(made: StubClass, options: Mapping[str | None, object], *, closed: bool) -> None:
    made.is_closed = made.is_dict and (closed or options.get("closed") is True)
    made.is_open = "extra_items" in options or options.get("closed") is False


def _field(made: StubClass, name: str, annotation: ast.expr, *, total: bool) -> None:
    made.fields[name] = _unquoted(annotation)
    required = named(made.fields[name])
    if required == "NotRequired" or (not total and required != "Required"):
        made.optional.add(name)


def _method(made: StubClass, node: Method) -> None:
    decorators = {named(decorator) for decorator in node.decorator_list}
    if "setter" in decorators:
        return
    made.is_whole = made.is_whole and node.name != "__getattr__"
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


def _paths(classes: Mapping[str, StubClass], values: Mapping[str, ast.expr]) -> dict[str, list[str]]:
    """The ways to each class that is reached by properties alone."""
    pending = [(named(annotation), name) for name, annotation in values.items()]
    paths: dict[str, list[str]] = {}
    for name, path in pending:  # grows while it is read
        one = classes.get(name)
        if one is None or one.is_dict or len(pending) > _MAX_PATHS or path.count(".") > _MAX_STEPS:
            continue
        paths.setdefault(name, []).append(path)
        own = list(_with_bases(one, classes))
        pending += [
            (named(kind), f"{path}.{attribute}") for found in own for attribute, kind in found.fields.items()
        ]
    return paths


def _with_bases(one: StubClass, classes: Mapping[str, StubClass]) -> Iterator[StubClass]:
    yield one
    yield from (classes[base] for base in one.bases)
