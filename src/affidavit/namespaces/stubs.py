"""The stub module that scripts are checked against: one text for a whole namespace tree.

Each namespace is a class with a read-only property per child, so that an unknown dataset or collection is an error,
and assignment is refused. The text is deterministic, and classes of equal content are written once: sixty datasets
of one kind cost little more than one.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from affidavit.evidence.record import JsonValue
from affidavit.namespaces import _prelude
from affidavit.namespaces.annotations import names_in, renamed, string_literal
from affidavit.namespaces.names import BUILTIN_NAMES, class_name
from affidavit.namespaces.operation import Namespace, Operation, Parameter

__all__ = ["Stub", "default_text", "parameter_list", "render", "stub"]

_TYPING: Final = frozenset({"Any", "Literal", "Never", "NotRequired"})
_ABC: Final = frozenset({"AsyncIterator", "Mapping", "Sequence"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Stub:
    """A rendered stub.

    Attributes:
        text: the `.pyi` source; `df` is its object.
        classes: class of the stub -> the namespaces below `df` that have it (`Modules` -> `db.app.modules`, ...).
    """

    text: str
    classes: Mapping[str, tuple[str, ...]]


def render(root: Namespace) -> str:
    """The `.pyi` source of a namespace tree, with `df` as its object."""
    return stub(root).text


def stub(root: Namespace) -> Stub:
    """The `.pyi` source and which class of it stands for which namespace."""
    writer = _Writer()
    writer.gather(root)
    writer.write(root, path="")
    parts = [_prelude.prelude(), *writer.declarations.sources(), *writer.aliases(), *writer.classes]
    return Stub(
        text="\n".join(parts) + "\n\ndf: Df\n",
        classes={name: tuple(paths) for name, paths in writer.paths.items()},
    )


def parameter_list(parameters: Sequence[Parameter], annotations: Sequence[str] | None = None) -> str:
    """Source of a parameter list without `self`: `city: str, *, days: int = 3`.

    Positional parameters come first; the others can only be given by name.
    """
    shown = annotations or [parameter.annotation for parameter in parameters]
    positional: list[str] = []
    named: list[str] = []
    optional_seen = False
    for parameter, annotation in zip(parameters, shown, strict=True):
        default = "" if parameter.required else f" = {default_text(parameter)}"
        text = f"{parameter.name}: {annotation}{default}"
        if parameter.positional and not named and not (parameter.required and optional_seen):
            positional.append(text)
            optional_seen = optional_seen or not parameter.required
        else:
            named.append(text)
    return ", ".join([*positional, *(["*", *named] if named else [])])


def default_text(parameter: Parameter) -> str:
    """Source of a parameter's default where it is short and of the annotated type, else `...`."""
    value = parameter.default
    allowed = _top_level(parameter.annotation)
    if value is None:
        return "None" if "None" in allowed or "Any" in allowed else "..."
    kind = type(value).__name__
    fits = kind in allowed or (kind == "int" and "float" in allowed) or _has_literal(allowed, value)
    if not fits or (isinstance(value, str) and len(value) > 60):
        return "..."
    if isinstance(value, str):
        return string_literal(value)
    if isinstance(value, (bool, int)):
        return str(value)
    return repr(value) if isinstance(value, float) and abs(value) < 1e300 else "..."


def _top_level(annotation: str) -> set[str]:
    node: ast.expr = ast.parse(annotation, mode="eval").body
    found: set[str] = set()
    while isinstance(node, ast.BinOp):
        found.add(ast.unparse(node.right))
        node = node.left
    found.add(ast.unparse(node))
    return found


def _has_literal(annotations: Iterable[str], value: JsonValue) -> bool:
    for annotation in annotations:
        if annotation.startswith("Literal["):
            choices = ast.literal_eval(f"({annotation[len('Literal[') : -1]},)")
            if any(type(choice) is type(value) and choice == value for choice in choices):
                return True
    return False


@dataclass(slots=True)
class _Declarations:
    """Declarations of all operations under names that mean one thing each."""

    sources_: dict[str, str] = field(default_factory=dict[str, str])
    meanings: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    groups: dict[tuple[str, ...], dict[str, str]] = field(
        default_factory=dict[tuple[str, ...], dict[str, str]]
    )

    def add(self, texts: tuple[str, ...]) -> dict[str, str]:
        """Take the declarations of one operation; returns what each of its names is called in the module."""
        known = self.groups.get(texts)
        if known is not None:
            return known
        statements = _statements(texts)
        digests = _digests(statements)
        renames: dict[str, str] = {}
        fresh: list[str] = []
        for name in statements:
            meaning = (name, digests[name])
            if meaning not in self.meanings:
                self.meanings[meaning] = self._free(name)
                self.sources_[self.meanings[meaning]] = ""
                fresh.append(name)
            renames[name] = self.meanings[meaning]
        for name in fresh:
            self.sources_[renames[name]] = renamed(statements[name], renames)
        self.groups[texts] = renames
        return renames

    def sources(self) -> list[str]:
        return list(self.sources_.values())

    def _free(self, name: str) -> str:
        taken = self.sources_.keys() | _prelude.NAMES | BUILTIN_NAMES
        number, free = 2, name
        while free in taken:
            free, number = f"{name}_{number}", number + 1
        return free


@dataclass(slots=True)
class _Writer:
    declarations: _Declarations = field(default_factory=_Declarations)
    classes: list[str] = field(default_factory=list[str])
    paths: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    bodies: dict[str, str] = field(default_factory=dict[str, str])
    by_wish: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    hidden: set[str] = field(default_factory=set[str])
    methods: dict[tuple[object, ...], str] = field(default_factory=dict[tuple[object, ...], str])

    def gather(self, namespace: Namespace) -> None:
        """Name every declaration first, so that no class of a namespace takes the name of one."""
        for _, operation in sorted(namespace.operations.items()):
            self.declarations.add(operation.declarations)
        for _, child in sorted(namespace.children.items()):
            self.gather(child)

    def write(self, namespace: Namespace, *, path: str) -> str:
        """Write the class of a namespace and of all below it; returns its name."""
        children = {
            name: self.write(child, path=f"{path}.{name}" if path else name)
            for name, child in sorted(namespace.children.items())
        }
        members = frozenset(children.keys() | namespace.operations.keys())
        lines = [_property(name, self._seen(child, members)) for name, child in children.items()]
        lines += [self._operation(one, members) for _, one in sorted(namespace.operations.items())]
        body = "\n".join(lines)
        if not path:
            self.paths[_prelude.ROOT] = [""]
            self.classes.append(
                "\n".join([f"class {_prelude.ROOT}:", _prelude.OWN, *([body] if body else [])])
            )
            return _prelude.ROOT
        return self._class(namespace, path, body)

    def _class(self, namespace: Namespace, path: str, body: str) -> str:
        wish = class_name(path.rsplit(".", 1)[-1], fallback="Namespace")
        known = self.by_wish.get((wish, body))
        if known is not None:
            self.paths[known].append(path)
            return known
        name = self._free(wish)
        twin = self.bodies.setdefault(body, name)
        head = f"class {name}({twin}):" if twin != name and body else f"class {name}:"
        doc = _doc(namespace.doc, 4)
        inner = [doc] if doc else []
        if body and twin == name:
            inner.append(body)
        self.classes.append("\n".join([head, *(inner or ["    ..."])]))
        self.by_wish[wish, body] = name
        self.paths[name] = [path]
        return name

    def _free(self, wish: str) -> str:
        taken = self.paths.keys() | self.declarations.sources_.keys() | _prelude.NAMES | BUILTIN_NAMES
        number, name = 2, wish
        while name in taken:
            name, number = f"{wish}_{number}", number + 1
        return name

    def _operation(self, operation: Operation, members: frozenset[str]) -> str:
        key = (
            (
                operation.name,
                operation.doc,
                operation.returns,
                operation.streams,
                operation.declarations,
                members,
            ),
            tuple(
                (one.name, one.annotation, one.required, repr(one.default)) for one in operation.parameters
            ),
            tuple(one.positional for one in operation.parameters),
        )
        if key not in self.methods:
            self.methods[key] = self._method(operation, members)
        return self.methods[key]

    def _method(self, operation: Operation, members: frozenset[str]) -> str:
        renames = self.declarations.add(operation.declarations)
        annotations = [
            self._seen(renamed(parameter.annotation, renames), members) for parameter in operation.parameters
        ]
        returns = self._seen(renamed(operation.returns, renames), members)
        given = parameter_list(operation.parameters, annotations)
        receiver = f"self, {given}" if given else "self"
        doc = _doc(operation.doc, 8)
        body = f"\n{doc}" if doc else " ..."
        lines = [f"    async def {operation.name}({receiver}) -> {returns}:{body}"]
        if operation.streams:
            iterator = self._seen(f"AsyncIterator[{returns}]", members)
            lines.append(f"    def {operation.streams}({receiver}) -> {iterator}: ...")
        return "\n".join(lines)

    def _seen(self, annotation: str, members: frozenset[str]) -> str:
        """An annotation as it must be written where members of the class hide names that it uses."""
        hidden = members & names_in(annotation)
        if not hidden:
            return annotation
        self.hidden |= hidden
        return renamed(annotation, {name: _beyond(name) for name in hidden})

    def aliases(self) -> list[str]:
        lines: list[str] = []
        for name in sorted(self.hidden):
            if name in _TYPING or name in _ABC:
                lines.append(
                    f"from {'typing' if name in _TYPING else 'collections.abc'} import {name} as _{name}"
                )
            elif name not in BUILTIN_NAMES:
                lines.append(f"_{name} = {name}")
        return lines


def _beyond(name: str) -> str:
    """How a name is written where a member of the class hides it."""
    return f"_builtins.{name}" if name in BUILTIN_NAMES else f"_{name}"


def _property(name: str, kind: str) -> str:
    return f"    @property\n    def {name}(self) -> {kind}: ..."


def _doc(doc: str, indent: int) -> str:
    line = " ".join(doc.strip().split("\n\n", 1)[0].split())
    if not line:
        return ""
    line = line if len(line) <= 160 else line[:157] + "..."
    # A quotation mark or backslash at the end would run into the closing quotes.
    safe = line.replace("\\", "\\\\").replace('"""', "'''")
    safe = safe[:-1] + "'" if safe.endswith('"') else safe
    return f'{" " * indent}"""{safe}"""'


def _statements(texts: Sequence[str]) -> dict[str, str]:
    """Name -> source of each declaration."""
    found: dict[str, str] = {}
    for text in texts:
        for node in ast.parse(text).body:
            source = ast.get_source_segment(text, node) or ast.unparse(node)
            if isinstance(node, ast.ClassDef):
                found[node.name] = source
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                found[node.targets[0].id] = source
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found[node.target.id] = source
    return found


def _digests(statements: Mapping[str, str]) -> dict[str, str]:
    """What each declaration means: itself and all that it leads to."""
    links = {name: names_in(source) & statements.keys() for name, source in statements.items()}
    digests: dict[str, str] = {}
    for name in statements:
        reached = {name}
        waiting = [name]
        while waiting:
            new = links[waiting.pop()] - reached
            reached |= new
            waiting.extend(new)
        text = "\n".join(statements[one] for one in sorted(reached))
        digests[name] = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return digests
