"""What an expression of a script may be when it runs, as far as keys and attributes need to know.

A shape stands for all the values that one place in the script makes: every dictionary of one display is the same `Map`.
What may be in a container is gathered in its cells, which only grow (Andersen's analysis: flow-insensitive, by
allocation site). `UNKNOWN` takes in everything; where it is, nothing is proven.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from affidavit.runtime.typecheck.catalogue import Method

__all__ = [
    "NOTHING", "PLAIN", "PLAINS", "UNKNOWN", "UNKNOWNS", "Bound", "Cell", "Class", "Foreign", "Function", "Getter",
    "HostMethod", "HostObject", "Instance", "Late", "Library", "Map", "Partial", "Record", "Seq", "Shape", "Stream",
    "Values", "joined",
]  # fmt: skip


@dataclass(eq=False, slots=True)
class Cell:
    """A place that may hold any of these shapes; it only grows."""

    shapes: set[Shape] = field(default_factory=set["Shape"])


@dataclass(frozen=True, slots=True)
class Foreign:
    """`UNKNOWN`: may be anything. `PLAIN`: a number, text, truth value, None, an exception: nothing with keys."""

    word: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HostObject:
    """An object of a class of the stubs that is no dictionary, with the meaning of its type variables."""

    name: str
    arguments: tuple[Values, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HostMethod:
    """A method or function of the stubs, not called yet."""

    owner: HostObject | None
    definitions: tuple[Method, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A dictionary with the keys of these TypedDicts together (a copy may merge several), and some more."""

    rows: frozenset[tuple[str, tuple[Values, ...]]]
    extras: frozenset[str] = frozenset()


@dataclass(eq=False, slots=True)
class Seq:
    """A list, tuple, set, iterator or generator; `items` hold what is known by position."""

    element: Cell = field(default_factory=Cell)
    items: tuple[Cell, ...] = ()

    def inside(self) -> Values:
        """Everything that may be in it."""
        return joined([self.element.shapes, *(cell.shapes for cell in self.items)])


@dataclass(eq=False, slots=True)
class Map:
    """A dictionary that the script made; `rest` holds what is stored under computed keys."""

    keys: Cell = field(default_factory=Cell)
    fields: dict[str, Cell] = field(default_factory=dict[str, Cell])
    rest: Cell = field(default_factory=Cell)

    def held(self) -> Values:
        """Every value that may be in it."""
        return joined([self.rest.shapes, *(cell.shapes for cell in self.fields.values())])


@dataclass(eq=False, slots=True)
class Late:
    """Something to be awaited: a coroutine, task or future."""

    result: Cell = field(default_factory=Cell)


@dataclass(eq=False, slots=True)
class Stream:
    """Something for `async for`."""

    element: Cell = field(default_factory=Cell)


@dataclass(eq=False, slots=True, kw_only=True)
class Function:
    """A function, method or lambda of the script: one shape for each of its definitions."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    returns: Cell = field(default_factory=Cell)
    made: Shape | None = None
    """The coroutine, generator or stream that calling it gives, where it gives one."""


@dataclass(eq=False, slots=True, kw_only=True)
class Class:
    """A class of the script; `attributes` holds those of the class and of all its instances.

    `is_tuple`: it is declared as a `typing.NamedTuple`.
    """

    node: ast.ClassDef
    attributes: dict[str, Cell] = field(default_factory=dict[str, Cell])
    instance: Instance | None = None
    is_tuple: bool = False

    def attribute(self, name: str) -> Cell:
        """The place of an attribute."""
        return self.attributes.setdefault(name, Cell())


@dataclass(eq=False, slots=True, kw_only=True)
class Instance:
    """All instances of a class of the script."""

    of: Class


@dataclass(frozen=True, slots=True)
class Bound:
    """A method of a shape: `rows.append`, `row.get`, a function of the script with its `self`."""

    owner: Shape
    name: str
    function: Function | None = None


@dataclass(frozen=True, slots=True)
class Library:
    """A module, class or function of the standard library by its dotted name; builtins stand in `builtins`."""

    path: str


@dataclass(eq=False, slots=True, kw_only=True)
class Partial:
    """`functools.partial`: a callable with some arguments given."""

    function: Values
    given: tuple[Values, ...]
    named: dict[str, Values]


@dataclass(eq=False, slots=True, kw_only=True)
class Getter:
    """`operator.itemgetter` of constant keys; `applied` is everything that it was called with."""

    keys: tuple[ast.Constant, ...]
    applied: Cell = field(default_factory=Cell)
    pair: Seq = field(default_factory=Seq)


Shape: TypeAlias = (
    Foreign | HostObject | HostMethod | Record | Seq | Map | Late | Stream | Function | Class | Instance | Bound
    | Library | Partial | Getter
)  # fmt: skip
Values: TypeAlias = frozenset[Shape]

UNKNOWN: Final = Foreign("unknown")
PLAIN: Final = Foreign("plain")
UNKNOWNS: Final[Values] = frozenset({UNKNOWN})
PLAINS: Final[Values] = frozenset({PLAIN})
NOTHING: Final[Values] = frozenset()


def joined(parts: Iterable[AbstractSet[Shape]]) -> Values:
    """All shapes of the parts together."""
    found: set[Shape] = set()
    for part in parts:
        found |= part
    return frozenset(found)
