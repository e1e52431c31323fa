"""Where Node's `require`, `createRequire`, worker and URL functions flow to in one file.

A **value** starts somewhere (the free name `require`, an import of `node:module`, ...) and is followed up through
the expression that it stands in: member access, calls, parentheses, `await`, and into the variable that it
initialises. What it meets on the way are the sites. Followed are only values that cannot be anything else: a variable
must be declared once, with the value, and never assigned. `require` itself is not followed into variables or
arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from tree_sitter import Node

from affidavit.analyzers.javascript._literals import COMMENTS, argument, literal, operand, source_of, spelling
from affidavit.analyzers.javascript.scope import FUNCTIONS, Names
from affidavit.analyzers.javascript.syntax import Frame, Nearest

__all__ = ["Flow", "Site", "Value", "is_import_meta"]


class Value(Enum):
    """What an expression is known to be."""

    REQUIRE = auto()
    REQUIRE_OTHER = auto()
    CREATED = auto()
    CREATED_OTHER = auto()
    RESOLVE = auto()
    RESOLVE_OTHER = auto()
    COMMONJS_MODULE = auto()
    IMPORT_META = auto()
    META_RESOLVE = auto()
    CREATE_REQUIRE = auto()
    WORKER = auto()
    URL = auto()
    MODULE_LIBRARY = auto()
    THREADS_LIBRARY = auto()
    URL_LIBRARY = auto()
    MODULE_PROMISE = auto()
    THREADS_PROMISE = auto()
    URL_PROMISE = auto()


_LIBRARIES: Final = {
    "module": Value.MODULE_LIBRARY,
    "worker_threads": Value.THREADS_LIBRARY,
    "url": Value.URL_LIBRARY,
}
_AWAITED: Final = {
    Value.MODULE_PROMISE: Value.MODULE_LIBRARY,
    Value.THREADS_PROMISE: Value.THREADS_LIBRARY,
    Value.URL_PROMISE: Value.URL_LIBRARY,
}
_PROMISES: Final = {library: promise for promise, library in _AWAITED.items()}
_MEMBERS: Final = {
    (Value.REQUIRE, "resolve"): Value.RESOLVE,
    (Value.REQUIRE_OTHER, "resolve"): Value.RESOLVE_OTHER,
    (Value.CREATED, "resolve"): Value.RESOLVE,
    (Value.CREATED_OTHER, "resolve"): Value.RESOLVE_OTHER,
    (Value.COMMONJS_MODULE, "require"): Value.REQUIRE,
    (Value.IMPORT_META, "resolve"): Value.META_RESOLVE,
    (Value.MODULE_LIBRARY, "createRequire"): Value.CREATE_REQUIRE,
    (Value.MODULE_LIBRARY, "default"): Value.MODULE_LIBRARY,
    (Value.MODULE_LIBRARY, "Module"): Value.MODULE_LIBRARY,
    (Value.THREADS_LIBRARY, "Worker"): Value.WORKER,
    (Value.THREADS_LIBRARY, "default"): Value.THREADS_LIBRARY,
    (Value.URL_LIBRARY, "URL"): Value.URL,
    (Value.URL_LIBRARY, "default"): Value.URL_LIBRARY,
}
# What a variable is when it is initialised with a value; all others are not followed into variables.
_STORED: Final = {
    Value.CREATED: Value.REQUIRE,
    Value.CREATED_OTHER: Value.REQUIRE_OTHER,
    **{
        value: value
        for value in (
            Value.CREATE_REQUIRE,
            Value.WORKER,
            Value.URL,
            *_LIBRARIES.values(),
            *_PROMISES.values(),
        )
    },
}
# Helpers of compilers that return the module they are given, or an object whose `default` it is.
_INTEROP: Final = frozenset(
    {
        "__importDefault",
        "__importStar",
        "__toESM",
        "_interopDefault",
        "_interopNamespace",
        "_interopNamespaceDefault",
        "_interopRequireDefault",
        "_interopRequireWildcard",
    }
)
_TRANSPARENT: Final = frozenset(
    {
        "parenthesized_expression",
        "non_null_expression",
        "as_expression",
        "satisfies_expression",
        "type_assertion",
    }
)
_STORABLE: Final = frozenset({"identifier", "shorthand_property_identifier_pattern"})
_CHAINS: Final = {
    "call_expression": "function",
    "member_expression": "object",
    "subscript_expression": "object",
    "non_null_expression": None,
}


@dataclass(frozen=True, slots=True)
class Site:
    """A call or `new` of a known value. `start` is the true start of the expression (see `Flow`)."""

    value: Value
    frame: Frame
    start: int


@dataclass(frozen=True, slots=True)
class _At:
    """A value at an expression. `start` and `pending` tell of a misread `await` below it (see `Flow`)."""

    value: Value
    frame: Frame
    start: int | None = None
    pending: bool = False


class Flow:
    """Follows values through one file.

    The grammar reads `await (0, x.y)(z)` as a call of a function called `await` whose result is called with `z`. Meant
    is: the call `(0, x.y)(z)`, awaited. So the arguments of such a call of `await` count as the parenthesised
    expression that they are, and what is chained to it starts there.
    """

    def __init__(self, data: bytes, names: Names) -> None:
        self._data = data
        self._names = names
        self._function = Nearest(lambda frame: frame.is_in(FUNCTIONS))
        self._queue: list[_At] = []
        self._stored: set[tuple[int, Value]] = set()
        # A library matters only where the one member of it that is looked for is spelt out.
        self._wanted = {
            Value.MODULE_LIBRARY: b"createRequire" in data,
            Value.THREADS_LIBRARY: b"Worker" in data,
            Value.URL_LIBRARY: b"URL" in data and b"meta" in data,
        }
        self._steps: dict[str, Callable[[_At, Frame], _At | None]] = {
            **dict.fromkeys(_TRANSPARENT, self._wrapped),
            "sequence_expression": self._sequence,
            "arguments": self._argument,
            "member_expression": self._member,
            "subscript_expression": self._subscript,
            "await_expression": self._awaited,
            "variable_declarator": self._declared,
        }

    def library(self, specifier: str | None) -> Value | None:
        """The value of a builtin module's exports, if it is one that matters here."""
        value = _LIBRARIES.get((specifier or "").removeprefix("node:"))
        return value if value is not None and self._wanted[value] else None

    def start(self, frame: Frame, value: Value) -> None:
        """A value is at this expression."""
        self._queue.append(_At(value, frame))

    def start_import(self, frame: Frame, specifier: str | None) -> None:
        """An `import(...)` expression with this specifier."""
        library = self.library(specifier)
        if library is not None:
            self.start(frame, _PROMISES[library])

    def store(self, name: str, place: int, value: Value) -> None:
        """The variable that the identifier at `place` declares holds the value."""
        stored = _STORED.get(value)
        if stored is None or (place, stored) in self._stored:
            return
        self._stored.add((place, stored))
        variable = self._names.use(name).declared_at(place)
        if variable is not None and len(variable.declarations) == 1 and not variable.writes:
            self._queue.extend(_At(stored, frame) for frame in variable.reads)

    def store_member(self, name: str, place: int, value: Value, member: str) -> None:
        """The variable holds a member of the value, as in `import { member as name }`."""
        held = _MEMBERS.get((value, member))
        if held is not None:
            self.store(name, place, held)

    def sites(self) -> Iterator[Site]:
        """Everything that the values meet."""
        while self._queue:
            at: _At | None = self._queue.pop()
            while at is not None:
                site, at = self._step(at)
                if site is not None:
                    yield site

    def awaits(self, call: Frame) -> bool:
        """Whether a call expression is a misread `await (...)`.

        Where `await` cannot be an operator, in a plain function of a script, it is the name it seems to be.
        """
        callee = call.node.child_by_field_name("function")
        if callee is None or callee.type != "identifier" or source_of(callee, self._data) != b"await":
            return False
        function = self._function.of(call)
        return function is None or any(child.type == "async" for child in function.node.children)

    def _step(self, at: _At) -> tuple[Site | None, _At | None]:
        parent = at.frame.parent
        if parent is None:
            return None, None
        if at.pending and (parent.type not in _CHAINS or at.frame.field != _CHAINS[parent.type]):
            value = _AWAITED.get(at.value)
            if value is None:
                return None, None
            at = _At(value, at.frame)
        if parent.type == "call_expression":
            return self._called(at, parent) if at.frame.field == "function" else (None, None)
        if parent.type == "new_expression":
            is_new = at.frame.field == "constructor" and at.value in {Value.WORKER, Value.URL}
            return Site(at.value, parent, parent.start) if is_new else None, None
        step = self._steps.get(parent.type)
        return None, step(at, parent) if step else None

    def _called(self, at: _At, call: Frame) -> tuple[Site | None, _At | None]:
        arguments = call.node.child_by_field_name("arguments")
        if arguments is None or arguments.type != "arguments":
            return None, None
        start = call.start if at.start is None else at.start
        result: Value | None = None
        match at.value:
            case Value.REQUIRE | Value.REQUIRE_OTHER | Value.CREATED | Value.CREATED_OTHER:
                result = self.library(literal(argument(call.node, 0), self._data))
            case Value.CREATE_REQUIRE:
                result = Value.CREATED if self._is_this_file(argument(call.node, 0)) else Value.CREATED_OTHER
            case Value.RESOLVE | Value.RESOLVE_OTHER | Value.META_RESOLVE:
                pass
            case _:
                return None, None
        after = None if result is None else replace(at, value=result, frame=call)
        return Site(at.value, call, start), after

    def _wrapped(self, at: _At, parent: Frame) -> _At:
        return replace(at, frame=parent)

    def _sequence(self, at: _At, parent: Frame) -> _At | None:
        return replace(at, frame=parent) if _is_last(at.frame, parent) else None

    def _argument(self, at: _At, arguments: Frame) -> _At | None:
        call = arguments.parent
        if call is None or call.type != "call_expression":
            return None
        if self.awaits(call):
            return _At(at.value, call, arguments.start, True) if _is_last(at.frame, arguments) else None
        first = argument(call.node, 0)
        if (
            at.value in _PROMISES
            and first is not None
            and first.id == at.frame.id
            and _is_interop(call, self._data)
        ):
            return replace(at, frame=call)
        return None

    def _member(self, at: _At, parent: Frame) -> _At | None:
        member = parent.node.child_by_field_name("property")
        if at.frame.field != "object" or member is None:
            return None
        return _member_of(at, parent, spelling(member, self._data))

    def _subscript(self, at: _At, parent: Frame) -> _At | None:
        if at.frame.field != "object":
            return None
        return _member_of(at, parent, literal(parent.node.child_by_field_name("index"), self._data))

    def _awaited(self, at: _At, parent: Frame) -> _At | None:
        value = _AWAITED.get(at.value)
        return None if value is None else _At(value, parent)

    def _declared(self, at: _At, declarator: Frame) -> None:
        target = declarator.node.child_by_field_name("name")
        if at.frame.field != "value" or target is None:
            return
        if target.type == "identifier":
            self.store(spelling(target, self._data), target.start_byte, at.value)
        elif target.type == "object_pattern":
            for child in target.named_children:
                self._declared_member(child, at.value)

    def _declared_member(self, child: Node, value: Value) -> None:
        """One property of a destructuring pattern. One with a default value may be anything."""
        key: Node | None = child
        held: Node | None = child
        if child.type == "pair_pattern":
            key, held = child.child_by_field_name("key"), child.child_by_field_name("value")
        if key is None or held is None or held.type not in _STORABLE:
            return
        member = literal(key, self._data) if key.type == "string" else spelling(key, self._data)
        self.store_member(spelling(held, self._data), held.start_byte, value, member or "")

    def _is_this_file(self, node: Node | None) -> bool:
        """Whether an argument of `createRequire` names the file that it stands in."""
        node = operand(node)
        if node is None:
            return False
        if node.type == "identifier":
            return source_of(node, self._data) == b"__filename"
        return is_import_meta(node, self._data, b"url", b"filename")


def is_import_meta(node: Node | None, data: bytes, *members: bytes) -> bool:
    """Whether an expression is `import.meta.<member>`, for one of these members."""
    node = operand(node)
    if node is None or node.type != "member_expression":
        return False
    owner, member = operand(node.child_by_field_name("object")), node.child_by_field_name("property")
    is_meta = (
        owner is not None and owner.type == "meta_property" and source_of(owner, data).startswith(b"import")
    )
    return is_meta and member is not None and source_of(member, data) in members


def _member_of(at: _At, parent: Frame, member: str | None) -> _At | None:
    value = _MEMBERS.get((at.value, member or ""))
    return None if value is None else replace(at, value=value, frame=parent)


def _is_last(frame: Frame, parent: Frame) -> bool:
    expressions = [child for child in parent.node.named_children if child.type not in COMMENTS]
    return bool(expressions) and expressions[-1].id == frame.id


def _is_interop(call: Frame, data: bytes) -> bool:
    callee = operand(call.node.child_by_field_name("function"))
    if callee is not None and callee.type == "member_expression":
        callee = callee.child_by_field_name("property")
    return callee is not None and spelling(callee, data) in _INTEROP
