"""Which variable a name means, answered for one name at a time.

Whole-file scope analysis visits every node. Here a name is found in the bytes, and only the ways from its occurrences
up to the root are looked at: the occurrences that declare it say which scopes hold it, and every other one belongs to
the nearest such scope above. A file that never says `require` costs a search of its bytes.

Scopes are those of ECMAScript: parameters see neither the variables nor the functions of their body, `var` belongs to
the nearest function, static block, namespace or file, all else to the nearest block, `switch`, `for` head, `catch` or
class. What TypeScript only *declares* (`declare var require: any`, overloads, interfaces) makes no variable. Not
modelled: `with`, direct `eval`, and annex B.3.3 (in sloppy code a function declared in a block also makes a variable
of the surrounding function; here it belongs to its block, as in strict code).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol, TypeAlias, TypeVar

from tree_sitter import Tree

from affidavit.analyzers.javascript._literals import name_text
from affidavit.analyzers.javascript.syntax import Frame, Locator, Nearest

__all__ = ["FUNCTIONS", "NameUse", "Names", "Variable"]

FUNCTIONS: Final = frozenset(
    {
        "function_declaration",
        "generator_function_declaration",
        "function_expression",
        "generator_function",
        "arrow_function",
        "method_definition",
    }
)

_IDENTIFIERS: Final = frozenset(
    {"identifier", "shorthand_property_identifier", "shorthand_property_identifier_pattern"}
)
_CLASSES: Final = frozenset({"class_declaration", "abstract_class_declaration", "class"})
_ENUM_PARENTS: Final = frozenset({"enum_body", "enum_assignment"})
_NAMESPACES: Final = frozenset({"module", "internal_module"})
_BLOCKS: Final = frozenset(
    {
        "program",
        "statement_block",
        "switch_body",
        "for_statement",
        "for_in_statement",
        # `if (x) function f() {}` is read as if the function stood in a block of its own.
        "if_statement",
        "else_clause",
    }
)
_NAMED_SCOPES: Final = FUNCTIONS | _CLASSES
_PARAMETERS: Final = frozenset({"required_parameter", "optional_parameter", "formal_parameters"})
_VAR_OWNERS: Final = FUNCTIONS | _NAMESPACES | {"class_static_block"}
_DECLARATIONS: Final = (
    "function_declaration",
    "generator_function_declaration",
    "class_declaration",
    "abstract_class_declaration",
    "enum_declaration",
    "internal_module",
    "module",
)
_ASSIGNMENTS: Final = ("assignment_expression", "augmented_assignment_expression", "update_expression")
_IMPORTS: Final = (
    "import_clause",
    "import_specifier",
    "namespace_import",
    "import_require_clause",
    "import_alias",
)
_PATTERNS: Final = frozenset({"object_pattern", "array_pattern", "rest_pattern"})
_DEFAULTS: Final = frozenset({"assignment_pattern", "object_assignment_pattern"})
_WRAPPERS: Final = frozenset(
    {
        "parenthesized_expression",
        "non_null_expression",
        "as_expression",
        "satisfies_expression",
        "type_assertion",
    }
)
_ASCII_ESCAPE: Final = re.compile(rb"\\u(?:00[0-7]|\{0*[0-7]?[0-9a-fA-F]\})")
_NAME_BEFORE: Final = re.compile(rb"(?:[\w$\x80-\xff]|\\u[0-9a-fA-F]{4}|\\u\{[0-9a-fA-F]{1,8}\})*\Z")
_NAME_FROM: Final = re.compile(rb"(?:[\w$\x80-\xff]|\\u[0-9a-fA-F]{4}|\\u\{[0-9a-fA-F]{1,8}\})*")
_WORD: Final = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$")
_LONGEST_ESCAPED_NAME: Final = 256


class _Place(Protocol):
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


_Span = TypeVar("_Span", bound=_Place)


@dataclass(frozen=True, slots=True)
class Scope:
    """What holds a variable: a node, or only the function or class expression's own name inside of it."""

    frame: Frame
    own_name: bool = False

    @property
    def key(self) -> int:
        """Tells the two scopes of a node apart. Node ids are addresses, so never negative."""
        return ~self.frame.id if self.own_name else self.frame.id

    @property
    def body(self) -> dict[int, int]:
        """For the body of a function: its key and that of the function's parameters."""
        function = self.frame.parent
        if self.frame.type != "statement_block" or function is None or not function.is_in(FUNCTIONS):
            return {}
        return {self.frame.id: function.id}


_Role: TypeAlias = Scope | Literal["write", "read"] | None


@dataclass(slots=True, eq=False)
class Variable:
    """One variable and all that is done to it in the file.

    Attributes:
        declarations: the identifiers that declare it; none for a name that no scope of the file declares.
        writes: identifiers that are assigned to, `for` heads and patterns included. A declaration's own initial value
            is not among them.
        reads: every other identifier that means it.
    """

    declarations: list[Frame] = field(default_factory=list[Frame])
    writes: list[Frame] = field(default_factory=list[Frame])
    reads: list[Frame] = field(default_factory=list[Frame])


@dataclass(frozen=True, slots=True)
class NameUse:
    """All variables of one name."""

    free: Variable
    bound: tuple[Variable, ...]

    def declared_at(self, start: int) -> Variable | None:
        """The variable that the identifier at this offset declares."""
        for variable in self.bound:
            if any(frame.start == start for frame in variable.declarations):
                return variable
        return None


class Names:
    """The names of one file, each analysed when it is first asked for."""

    def __init__(self, data: bytes, tree: Tree) -> None:
        self._data = data
        self._tree = tree
        self._tokens: dict[str, list[Frame]] = {}
        self._uses: dict[str, NameUse] = {}
        self._roles = _Roles()
        self._escaped: dict[str, list[tuple[int, int]]] | None = None

    @property
    def asked(self) -> Collection[str]:
        """Every word that was looked for so far."""
        return self._tokens.keys()

    def tokens(self, word: str) -> Sequence[Frame]:
        """The innermost nodes spelt exactly so, in source order: keywords, identifiers, property names."""
        found = self._tokens.get(word)
        if found is None:
            locator = Locator(self._tree)
            places = ((start, end, locator.leaf(start)) for start, end in self._spellings(word))
            found = [leaf for start, end, leaf in places if leaf.start == start and leaf.end == end]
            self._tokens[word] = found
        return found

    def at(self, places: Sequence[_Span]) -> Iterator[tuple[_Span, Frame]]:
        """The nodes that span exactly these places, which are given in source order; no node, no entry."""
        locator = Locator(self._tree)
        for place in places:
            leaf = locator.leaf(place.start)
            if leaf.start == place.start and leaf.end == place.end:
                yield place, leaf

    def use(self, name: str) -> NameUse:
        """The variables called `name`."""
        if name not in self._uses:
            self._uses[name] = self._resolve(name)
        return self._uses[name]

    def _spellings(self, word: str) -> list[tuple[int, int]]:
        data, raw = self._data, word.encode("utf-8", "surrogatepass")
        found: list[tuple[int, int]] = []
        at = data.find(raw)
        while at >= 0:
            end = at + len(raw)
            if not (at and data[at - 1] in _WORD) and not (end < len(data) and data[end] in _WORD):
                found.append((at, end))
            at = data.find(raw, end)
        escaped = self._escapes().get(word)
        return sorted({*found, *escaped}) if escaped else found

    def _escapes(self) -> dict[str, list[tuple[int, int]]]:
        r"""Names written with an escape for an ASCII character (`r\u0065quire`), by what they mean."""
        if self._escaped is None:
            self._escaped = {}
            read = 0
            for match in _ASCII_ESCAPE.finditer(self._data):
                if match.start() < read:
                    continue
                low = max(0, match.start() - _LONGEST_ESCAPED_NAME)
                before = _NAME_BEFORE.search(self._data, low, match.start())
                after = _NAME_FROM.match(self._data, match.start(), match.start() + _LONGEST_ESCAPED_NAME)
                if before and after:
                    place = (before.start(), after.end())
                    read = after.end()
                    self._escaped.setdefault(name_text(self._data[slice(*place)]), []).append(place)
        return self._escaped

    def _resolve(self, name: str) -> NameUse:
        free = Variable()
        scopes: dict[int, Variable] = {}
        bodies: dict[int, int] = {}
        used: list[tuple[Frame, bool]] = []
        for leaf in self.tokens(name):
            role = self._roles.of(leaf)
            if isinstance(role, Scope):
                scopes.setdefault(role.key, Variable()).declarations.append(leaf)
                bodies.update(role.body)
            elif role is not None:
                used.append((leaf, role == "write"))
        for body, function in bodies.items():
            # A parameter and a variable of the body that have one name are one variable.
            if function in scopes:
                scopes[function].declarations.extend(scopes[body].declarations)
                scopes[body] = scopes[function]
        lookup = _Lookup(scopes, free)
        for leaf, writes in used:
            variable = lookup.of(leaf)
            (variable.writes if writes else variable.reads).append(leaf)
        return NameUse(free, tuple(dict.fromkeys(scopes.values())))


class _Lookup:
    """Finds the variable that an identifier means; remembers the answer for every node on the way."""

    __slots__ = ("_known", "_scopes", "_top")

    def __init__(self, scopes: dict[int, Variable], free: Variable) -> None:
        self._scopes = scopes
        self._top = free
        self._known: dict[int, Variable] = {}

    def of(self, leaf: Frame) -> Variable:
        if not self._scopes:
            return self._top
        passed: list[int] = []
        frame: Frame | None = leaf
        found = self._top
        while frame is not None:
            hit = self._known.get(frame.id) or self._scopes.get(frame.id) or self._scopes.get(~frame.id)
            if hit is not None:
                found = hit
                break
            passed.append(frame.id)
            frame = _outwards(frame)
        self._known.update(dict.fromkeys(passed, found))
        return found


def _outwards(frame: Frame) -> Frame | None:
    """The next scope candidate: what names a function or decorates a class stands outside of it."""
    parent = frame.parent
    decorates = frame.type == "decorator"
    while decorates and parent is not None and parent.is_in(_PARAMETERS):
        # A parameter is decorated when its class is defined, before there is any call.
        parent = parent.parent
    if parent is not None and parent.is_in(_NAMED_SCOPES) and (decorates or frame.field == "name"):
        return parent.parent
    return parent


class _Roles:
    """What an identifier does: declares a variable (then of which scope), is assigned to, or is read."""

    __slots__ = ("_ambient", "_block", "_handlers", "_var")

    def __init__(self) -> None:
        self._block = Nearest(_is_block)
        self._var = Nearest(_is_var_scope)
        self._ambient = Nearest(lambda frame: frame.type == "ambient_declaration")
        self._handlers: dict[str, Callable[[Frame, Frame], _Role]] = {
            "variable_declarator": self._declarator,
            **dict.fromkeys(_DECLARATIONS, self._named),
            **dict.fromkeys(("function_expression", "generator_function", "class"), self._own),
            **dict.fromkeys(("arrow_function", "catch_clause"), self._own),
            "formal_parameters": self._parameter,
            **dict.fromkeys(("required_parameter", "optional_parameter"), self._typed_parameter),
            "for_in_statement": self._for_in,
            **dict.fromkeys(_ASSIGNMENTS, self._assigned),
            **dict.fromkeys(_IMPORTS, self._imported),
            **dict.fromkeys(_ENUM_PARENTS, self._member),
            "nested_identifier": self._namespace_path,
        }

    def of(self, leaf: Frame) -> _Role:
        """The scope that the identifier declares its name in, or how it uses it; None if it names no variable."""
        if leaf.parent is None or not _is_identifier(leaf, leaf.parent):
            return None
        target = leaf
        while (parent := target.parent) is not None and _passes(target, parent):
            target = parent
        if parent is None:
            return "read"
        handler = self._handlers.get(parent.type)
        return handler(target, parent) if handler else "read"

    def _declarator(self, target: Frame, parent: Frame) -> _Role:
        if target.field != "name":
            return "read"
        if self._ambient.of(parent):
            return None
        declaration = parent.parent
        is_var = declaration is None or declaration.type == "variable_declaration"
        return _scope((self._var if is_var else self._block).of(declaration))

    def _named(self, target: Frame, parent: Frame) -> _Role:
        """Function, class, enum and namespace declarations: a name of the block that they stand in."""
        if target.field != "name":
            return "read"
        return None if self._ambient.of(parent) else _scope(self._block.of(parent.parent))

    def _own(self, target: Frame, parent: Frame) -> _Role:
        """Function and class expressions, arrow and `catch` parameters: a name of that very node."""
        return Scope(parent, target.field == "name") if target.field in {"name", "parameter"} else "read"

    def _parameter(self, _target: Frame, parent: Frame) -> _Role:
        return _scope(parent.parent)

    def _typed_parameter(self, target: Frame, parent: Frame) -> _Role:
        if target.field != "pattern" or parent.parent is None:
            return "read"
        return _scope(parent.parent.parent)

    def _for_in(self, target: Frame, parent: Frame) -> _Role:
        if target.field != "left":
            return "read"
        kind = parent.node.child_by_field_name("kind")
        if kind is None:
            return "write"
        return _scope(self._var.of(parent) if kind.type == "var" else parent)

    def _assigned(self, target: Frame, _parent: Frame) -> _Role:
        return "write" if target.field in {"left", "argument"} else "read"

    def _imported(self, target: Frame, parent: Frame) -> _Role:
        if parent.type == "import_specifier" and target.field == "name":
            if parent.node.child_by_field_name("alias") is not None:
                return None
        elif parent.type == "import_alias" and target.start != parent.node.named_children[0].start_byte:
            return "read"
        return _scope(self._block.of(parent))

    def _member(self, target: Frame, parent: Frame) -> _Role:
        """A member of an enum is a name inside of the enum."""
        if parent.type == "enum_body":
            return Scope(parent)
        return _scope(parent.parent) if target.field == "name" else "read"

    def _namespace_path(self, target: Frame, parent: Frame) -> _Role:
        namespace = parent.parent
        if namespace is None or namespace.type not in _NAMESPACES or target.field != "object":
            return "read"
        return None if self._ambient.of(parent) else _scope(self._block.of(namespace.parent))


def _scope(frame: Frame | None) -> Scope | None:
    return None if frame is None else Scope(frame)


def _is_identifier(leaf: Frame, parent: Frame) -> bool:
    kind = leaf.type
    if kind == "type_identifier":
        return parent.is_in(_CLASSES) and leaf.field == "name"
    if kind == "property_identifier":
        return parent.is_in(_ENUM_PARENTS)
    return kind in _IDENTIFIERS


def _passes(target: Frame, parent: Frame) -> bool:
    """Whether `parent` is a pattern or a wrapper, and what happens to it happens to `target`."""
    kind = parent.type
    if kind in _DEFAULTS:
        return target.field == "left"
    if kind == "pair_pattern":
        return target.field == "value"
    return kind in _PATTERNS or kind in _WRAPPERS


def _is_block(frame: Frame) -> bool:
    return frame.is_in(_BLOCKS)


def _is_var_scope(frame: Frame) -> bool:
    if frame.type != "statement_block":
        return frame.type == "program"
    return frame.parent is not None and frame.parent.is_in(_VAR_OWNERS)
