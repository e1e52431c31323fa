"""What a file does to the exports object of CommonJS."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from tree_sitter import Node

from affidavit.analyzers.javascript._literals import COMMENTS, argument, literal, operand, spelling
from affidavit.analyzers.javascript.exported._reader import EQUALS, STAR, Reader
from affidavit.analyzers.javascript.scope import FUNCTIONS, Names, Variable
from affidavit.analyzers.javascript.syntax import Frame

__all__ = ["CommonJs"]

_TRANSPARENT: Final = frozenset(
    {
        "parenthesized_expression",
        "non_null_expression",
        "as_expression",
        "satisfies_expression",
        "type_assertion",
    }
)
_PATTERNS: Final = frozenset({"object_pattern", "array_pattern", "rest_pattern"})
_DEFAULTS: Final = frozenset({"assignment_pattern", "object_assignment_pattern"})
_MEMBERS: Final = frozenset({"member_expression", "subscript_expression"})
_STAR_HELPERS: Final = frozenset({"__export", "__exportStar", "_export_star", "_exportStar", "__reExport"})
_NAME_HELPERS: Final = frozenset({"__export", "_export"})
_BARE_HELPERS: Final = tuple(
    (name, name.encode() + b"(") for name in ("__export", "__exportStar", "_exportStar")
)
_LONGEST_CHAIN: Final = 32
"""Assignments in one, `a = b = c`, that are looked through."""
_MOST_LOOPS: Final = 16
"""Loops and calls around an assignment among which the one that goes over its keys is looked for."""
_COPIES: Final = frozenset({"__toCommonJS"})
_WRAPPERS: Final = frozenset(
    {"__importStar", "__toESM", "_interopNamespace", "_interopRequireWildcard", "_interop_require_wildcard"}
)


class CommonJs:
    """What is done to the exports object of one file.

    Expressions that are the exports object wait in a queue; each is followed up to what uses it.
    """

    def __init__(self, reader: Reader, names: Names) -> None:
        self._reader = reader
        self._names = names
        self._queue: list[Frame] = []
        self._seen: set[int] = set()
        self._requires: frozenset[int] | None = None
        self._aliases: set[int] = set()
        self._variables: dict[str, dict[int, Variable]] = {}
        self._values: list[tuple[Node, Frame]] = []

    def read(self) -> None:
        """Add every export."""
        exports = self._names.use("exports").free
        if all(self._keeps(frame) for frame in exports.writes):
            self._queue += exports.reads
        if any(_member(leaf, self._reader) for leaf in self._names.tokens("exports")):
            module = self._names.use("module").free
            if not module.writes:
                self._queue += filter(None, map(self._module_exports, module.reads))
        if not self._queue and not exports.writes:
            return
        for frame in self._queue:  # which grows meanwhile
            self._follow(frame)
        self._bare_helpers()
        for value, assignment in self._values:
            if value.start_byte not in self._aliases:
                local = self._reader.name(value) if value.type == "identifier" else None
                self._reader.add(EQUALS, "value", assignment.node, local=local)

    # the exports object

    def _keeps(self, written: Frame) -> bool:
        """Whether an assignment to `exports` leaves it what it is: `exports = module.exports = x` and the reverse."""
        assignment = written.parent
        if assignment is None or assignment.type != "assignment_expression":
            return False
        right = operand(assignment.node.child_by_field_name("right"))
        outer: Frame | None = _outwards(assignment)
        for _ in range(_LONGEST_CHAIN):
            if self._is_module_exports(right) or self._is_assigned_module(right):
                return True
            if outer is not None and self._is_assigned_module(outer.node):
                return True
            is_chain = right is not None and right.type == "assignment_expression"
            right = operand(right.child_by_field_name("right")) if right is not None and is_chain else None
            outer = _outwards(outer) if outer is not None and outer.type == "assignment_expression" else None
        return False

    def _is_assigned_module(self, node: Node | None) -> bool:
        if node is None or node.type != "assignment_expression":
            return False
        return self._is_module_exports(node.child_by_field_name("left"))

    def _is_module_exports(self, node: Node | None) -> bool:
        node = operand(node)
        if node is None or node.type not in _MEMBERS:
            return False
        owner = operand(node.child_by_field_name("object"))
        return self._reader.spells(owner, b"module") and self._key(node) == "exports"

    def _module_exports(self, module: Frame) -> Frame | None:
        """The `exports` that is taken from an expression that is `module`."""
        frame, parent = module, module.parent
        while parent is not None and parent.is_in(_TRANSPARENT):
            frame, parent = parent, parent.parent
        if parent is None or frame.field != "object":
            return None
        return parent if self._key(parent.node) == "exports" else None

    def _key(self, member: Node) -> str | None:
        """The name of the property that a member expression takes."""
        if member.type == "member_expression":
            return self._reader.name(member.child_by_field_name("property"))
        if member.type == "subscript_expression":
            return literal(member.child_by_field_name("index"), self._reader.data)
        return None

    def _follow(self, frame: Frame) -> None:
        """One step up from an expression that is the exports object."""
        parent = frame.parent
        if parent is None or frame.id in self._seen:
            return
        self._seen.add(frame.id)
        if parent.is_in(_TRANSPARENT):
            self._queue.append(parent)
        elif parent.is_in(_MEMBERS):
            if frame.field == "object":
                self._property(parent)
        elif parent.type == "assignment_expression":
            self._assigned(frame, parent)
        elif parent.type == "variable_declarator":
            if frame.field == "value":
                self._alias(parent.node.child_by_field_name("name"))
        elif parent.type == "arguments" and parent.parent is not None:
            self._argument(frame, parent.parent)

    def _alias(self, target: Node | None) -> None:
        """A variable or parameter holds the exports object."""
        variable = self._variable(target)
        if variable is not None:
            self._queue += variable.reads
            self._aliases.update(frame.start for frame in variable.reads)

    def _variable(self, node: Node | None) -> Variable | None:
        """The variable that an identifier declares or reads, if it only ever holds what it is declared with."""
        if node is None or node.type != "identifier":
            return None
        name = spelling(node, self._reader.data)
        if name not in self._variables:
            constants = [each for each in self._names.use(name).bound if _is_constant(each)]
            self._variables[name] = {
                frame.start: each for each in constants for frame in (*each.declarations, *each.reads)
            }
        return self._variables[name].get(node.start_byte)

    # what is done to it

    def _property(self, member: Frame) -> None:
        whole = _assigned_in(member)
        if whole is None:
            return
        name = self._key(member.node)
        index = member.node.child_by_field_name("index")
        if name is not None:
            # With a destructuring or a loop, no single variable gives the value.
            is_alone = whole.node.child_by_field_name("left") == member.node
            value = whole.node.child_by_field_name("right") if is_alone else None
            local = self._identifier(value) if whole.type == "assignment_expression" else None
            self._reader.add(name, "property", whole.node, local=local)
        elif index is not None and index.type == "identifier":
            self._copied(member, spelling(index, self._reader.data))

    def _assigned(self, frame: Frame, assignment: Frame) -> None:
        node = assignment.node
        left = node.child_by_field_name("left")
        if frame.field == "left":
            # The name `exports` on the left is a write and comes here never: this is `module.exports = ...`.
            self._replaced(assignment)
            self._queue.append(assignment)
        elif self._reader.spells(operand(left), b"exports") or self._is_module_exports(left):
            self._queue.append(assignment)

    def _replaced(self, assignment: Frame) -> None:
        value = operand(assignment.node.child_by_field_name("right"))
        while value is not None and value.type == "assignment_expression":
            if self._is_module_exports(value.child_by_field_name("left")):
                return  # which is looked at itself
            value = operand(value.child_by_field_name("right"))
        if value is None or self._reader.spells(value, b"exports") or self._is_module_exports(value):
            return
        specifier = self._required(value)
        if specifier is not None:
            self._reader.add(STAR, "copy", assignment.node, specifier=specifier)
        elif value.type == "object":
            self._keys(value)
        elif (
            copied := self._variable(_unwrapped(value, self._reader, _COPIES))
        ) and value.type != "identifier":
            # The names that are defined on a variable are those of its copy.
            self._queue += copied.reads
        else:
            self._values.append((value, assignment))

    def _keys(self, value: Node | None) -> None:
        """The keys of an object literal."""
        value = operand(value)
        for item in value.named_children if value is not None and value.type == "object" else ():
            if item.type == "spread_element":
                self._star(_first(item), item)
            elif item.type == "shorthand_property_identifier":
                name = spelling(item, self._reader.data)
                self._reader.add(name, "object", item, local=name)
            elif item.type == "pair":
                self._pair(item)
            elif item.type == "method_definition":
                self._reader.add(self._reader.name(item.child_by_field_name("name")), "object", item)

    def _pair(self, pair: Node) -> None:
        key = pair.child_by_field_name("key")
        name = self._reader.name(key)
        # `__proto__: x` names the prototype; only `["__proto__"]: x` makes a property.
        if name != "__proto__" or (key is not None and key.type == "computed_property_name"):
            self._reader.add(name, "object", pair, local=self._identifier(pair.child_by_field_name("value")))

    def _identifier(self, value: Node | None) -> str | None:
        value = operand(value)
        return self._reader.name(value) if value is not None and value.type == "identifier" else None

    def _star(self, module: Node | None, whole: Node) -> None:
        specifier = self._required(operand(module))
        if specifier is not None:
            self._reader.add(STAR, "copy", whole, specifier=specifier)

    def _argument(self, frame: Frame, call: Frame) -> None:
        if call.type != "call_expression":
            return
        given = _arguments(call.node)
        place = next((at for at, node in enumerate(given) if node.id == frame.id), -1)
        callee = _last(operand(call.node.child_by_field_name("function")))
        if place < 0 or callee is None or any(node.type == "spread_element" for node in given[:place]):
            return
        if callee.type in FUNCTIONS:
            self._alias(_parameter(callee, place))
            return
        method, helper = self._callee(callee)
        if place == 0 and method is not None:
            self._changed(method, call, given)
        elif place == 0 and helper in _NAME_HELPERS:
            self._keys(given[1] if len(given) == 2 else None)
        elif place > 0 and helper in _STAR_HELPERS:
            self._star(given[place - 1], call.node)

    def _changed(self, method: str, call: Frame, given: list[Node]) -> None:
        """A method of `Object` changes the exports object."""
        if method == "defineProperty" and len(given) > 1:
            self._defined(call, given[1])
        elif method == "defineProperties" and len(given) > 1:
            self._keys(given[1])
        elif method == "assign":
            for each in given[1:]:
                self._keys(each)
                self._star(each, call.node)

    def _callee(self, callee: Node) -> tuple[str | None, str | None]:
        """The method of `Object` that is called, and the name of the function in any case."""
        if callee.type == "identifier":
            return None, spelling(callee, self._reader.data)
        if callee.type != "member_expression":
            return None, None
        name = self._reader.name(callee.child_by_field_name("property"))
        is_object = self._reader.spells(operand(callee.child_by_field_name("object")), b"Object")
        return name if is_object else None, name

    def _defined(self, call: Frame, key: Node) -> None:
        name = literal(key, self._reader.data)
        if name is not None:
            self._reader.add(name, "define", call.node)
        elif key.type == "identifier":
            self._copied(call, spelling(key, self._reader.data))

    # all names of another module

    def _copied(self, inside: Frame, key: str) -> None:
        """A loop sets the property that a variable names: does it go over the keys of a required module?"""
        for loop in islice(filter(_is_loop, _ancestors(inside)), _MOST_LOOPS):
            variable, keys = self._loop(loop)
            if self._identifier(variable) == key:
                held = self._held_module(keys)
                if held is not None:
                    self._reader.add(STAR, "copy", loop.node, specifier=held)
                return

    def _loop(self, loop: Frame) -> tuple[Node | None, Node | None]:
        """The variable of a loop over keys and what has those keys: `for (v in x)`, `Object.keys(x).forEach(...)`."""
        node = loop.node
        if loop.type == "for_in_statement":
            return node.child_by_field_name("left"), operand(node.child_by_field_name("right"))
        callee = operand(node.child_by_field_name("function")) if loop.type == "call_expression" else None
        if callee is None or self._callee(callee)[1] != "forEach":
            return None, None
        keys = operand(callee.child_by_field_name("object"))
        function = None if keys is None else operand(keys.child_by_field_name("function"))
        if keys is None or function is None or self._callee(function)[0] != "keys":
            return None, None
        return _parameter(operand(argument(node, 0)), 0), operand(argument(keys, 0))

    def _held_module(self, node: Node | None) -> str | None:
        """The module that a variable holds, required by its declaration."""
        variable = self._variable(node)
        declared = None if variable is None else variable.declarations[0].parent
        if declared is None or declared.type != "variable_declarator":
            return None
        value = operand(declared.node.child_by_field_name("value"))
        return self._required(_unwrapped(value, self._reader, _WRAPPERS))

    def _bare_helpers(self) -> None:
        """`__export(require("m"))`, which names the exports object only in its own body."""
        for helper, written in _BARE_HELPERS:
            for leaf in self._names.tokens(helper) if written in self._reader.data else ():
                callee = leaf if leaf.field != "property" else leaf.parent
                call = None if callee is None or callee.field != "function" else callee.parent
                if call is not None and call.type == "call_expression" and len(_arguments(call.node)) == 1:
                    self._star(argument(call.node, 0), call.node)

    def _required(self, value: Node | None) -> str | None:
        """The specifier of `require("m")`."""
        if value is None or value.type != "call_expression":
            return None
        callee = operand(value.child_by_field_name("function"))
        if callee is None or not self._reader.spells(callee, b"require"):
            return None
        if self._requires is None:
            free = self._names.use("require").free
            self._requires = frozenset(() if free.writes else (frame.start for frame in free.reads))
        return literal(argument(value, 0), self._reader.data) if callee.start_byte in self._requires else None


def _member(leaf: Frame, reader: Reader) -> bool:
    """Whether an `exports` in the file may be a property of `module`."""
    parent = leaf.parent
    if parent is None:
        return False
    if parent.type == "string":
        parent = parent.parent
    return parent is not None and reader.spells(operand(parent.node.child_by_field_name("object")), b"module")


def _outwards(frame: Frame) -> Frame | None:
    parent = frame.parent
    while parent is not None and parent.is_in(_TRANSPARENT):
        parent = parent.parent
    return parent


def _is_loop(frame: Frame) -> bool:
    return frame.type in {"for_in_statement", "call_expression"}


def _ancestors(frame: Frame) -> Iterator[Frame]:
    parent = frame.parent
    while parent is not None:
        yield parent
        parent = parent.parent


def _assigned_in(member: Frame) -> Frame | None:
    """The assignment or loop that gives a member expression its value, destructuring included."""
    target = member
    while (parent := target.parent) is not None:
        field = target.field
        if parent.type == "assignment_expression" or parent.type == "for_in_statement":
            return parent if field == "left" else None
        is_pattern = parent.is_in(_PATTERNS) or parent.is_in(_TRANSPARENT)
        is_target = (parent.type == "pair_pattern" and field == "value") or (
            parent.is_in(_DEFAULTS) and field == "left"
        )
        if not (is_pattern or is_target):
            return None
        target = parent
    return None


def _parameter(function: Node | None, place: int) -> Node | None:
    """What a function calls its argument at this place; a pattern where it takes it apart."""
    if function is None or function.type not in FUNCTIONS:
        return None
    single = function.child_by_field_name("parameter")
    if single is not None:
        return single if place == 0 else None
    parameters = function.child_by_field_name("parameters")
    listed = [] if parameters is None else parameters.named_children
    listed = [child for child in listed if child.type not in COMMENTS]
    if place >= len(listed):
        return None
    target = listed[place]
    is_typed = target.type == "required_parameter" and target.child_by_field_name("value") is None
    return target.child_by_field_name("pattern") if is_typed else target


def _is_constant(variable: Variable) -> bool:
    return len(variable.declarations) == 1 and not variable.writes


def _first(node: Node) -> Node | None:
    return next((child for child in node.named_children if child.type not in COMMENTS), None)


def _arguments(call: Node) -> list[Node]:
    arguments = call.child_by_field_name("arguments")
    if arguments is None or arguments.type != "arguments":
        return []
    return [child for child in arguments.named_children if child.type not in COMMENTS]


def _last(node: Node | None) -> Node | None:
    """The function of `(0, x.f)(...)`."""
    if node is None or node.type != "sequence_expression":
        return node
    return operand(
        next((child for child in reversed(node.named_children) if child.type not in COMMENTS), None)
    )


def _unwrapped(node: Node | None, reader: Reader, helpers: frozenset[str]) -> Node | None:
    """The argument of a compiler's helper that returns the module it is given."""
    if node is None or node.type != "call_expression":
        return node
    callee = _last(operand(node.child_by_field_name("function")))
    if callee is not None and callee.type == "member_expression":
        callee = callee.child_by_field_name("property")
    if callee is None or spelling(callee, reader.data) not in helpers:
        return node
    return operand(argument(node, 0))
