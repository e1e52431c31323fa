"""Values as expressions over what is not known: built in one normal form, bounded, and computed for given values.

An expression is a tuple: `("k", value, size)` a constant, `("leaf", place, size)` what is not known, and
`(operation, size, operands...)`. Sizes are bytes; values are unsigned. Equal expressions are equal values, as long as
the places of their leaves are those of one execution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

__all__ = [
    "Bounds",
    "Expression",
    "add",
    "bounds_of",
    "closes",
    "combine",
    "constant",
    "evaluate",
    "extend",
    "is_constant",
    "is_small",
    "leaf",
    "load",
    "narrow",
    "parts",
    "piece",
    "shifted",
    "size_of",
    "split",
]

Expression: TypeAlias = tuple[Any, ...]
Bounds: TypeAlias = tuple[int, int]
"""Least and greatest value, both included."""

_EXACT: Final[dict[str, Callable[[int, int, int], int]]] = {
    "INT_ADD": lambda a, b, _: a + b,
    "INT_SUB": lambda a, b, _: a - b,
    "INT_MULT": lambda a, b, _: a * b,
    "INT_AND": lambda a, b, _: a & b,
    "INT_OR": lambda a, b, _: a | b,
    "INT_XOR": lambda a, b, _: a ^ b,
    "INT_LEFT": lambda a, b, size: a << b if b < 8 * size else 0,
    "INT_RIGHT": lambda a, b, size: a >> b if b < 8 * size else 0,
    "INT_SRIGHT": lambda a, b, size: _signed(a, size) >> min(b, 8 * size - 1),
    "INT_DIV": lambda a, b, _: a // b,
    "INT_REM": lambda a, b, _: a % b,
}
"""Operations on two values of the result's size (shift amounts aside); all but the first have no other form here."""

_COMPARISONS: Final = frozenset(
    {"INT_LESS", "INT_LESSEQUAL", "INT_EQUAL", "INT_NOTEQUAL", "BOOL_AND", "BOOL_OR", "BOOL_NEGATE"}
)


def constant(value: int, size: int) -> Expression:
    """A known value."""
    return ("k", value & ((1 << 8 * size) - 1), size)


def leaf(place: Any, size: int) -> Expression:
    """An unknown value that is named by where it comes from."""
    return ("leaf", place, size)


def load(address: Expression, size: int, version: Any = None) -> Expression:
    """What stands in memory. `version` names the last write that may have changed it; None: nothing changes it."""
    return ("load", size, address, version)


def is_constant(expression: Expression) -> bool:
    """Whether the value is known."""
    return expression[0] == "k"


def size_of(expression: Expression) -> int:
    """Bytes."""
    return expression[2] if expression[0] in ("k", "leaf") else expression[1]


def add(left: Expression, right: Expression, size: int) -> Expression:
    """A sum; its constant, if there is one, comes last."""
    if is_constant(left):
        left, right = right, left
    if is_constant(left):
        return constant(left[1] + right[1], size)
    if is_constant(right):
        if not right[1]:
            return left
        if left[0] == "INT_ADD" and is_constant(left[3]):
            return add(left[2], constant(left[3][1] + right[1], size), size)
        return ("INT_ADD", size, left, right)
    for one, other in ((left, right), (right, left)):
        if one[0] == "INT_ADD" and is_constant(one[3]):
            return ("INT_ADD", size, add(one[2], other, size), one[3])
    return ("INT_ADD", size, left, right)


def combine(code: str, operands: tuple[Expression, ...], size: int) -> Expression | None:
    """The result of an operation; None where it is not one of those that are understood."""
    if code in _COMPARISONS:
        return (code, size, *operands)
    exact = _EXACT.get(code)
    if exact is None or len(operands) != 2:
        return None
    left, right = operands
    if code == "INT_ADD":
        return add(left, right, size)
    if is_constant(left) and is_constant(right):
        if code in ("INT_DIV", "INT_REM") and not right[1]:
            return None
        return constant(exact(left[1], right[1], size), size)
    simple = _with_number(code, left, right, size) if is_constant(right) else None
    if simple is not None:
        return simple
    if code in ("INT_XOR", "INT_SUB") and left == right:
        return constant(0, size)
    if code in ("INT_AND", "INT_OR") and left == right:
        return left
    return (code, size, left, right)


def _with_number(code: str, left: Expression, right: Expression, size: int) -> Expression | None:
    """A simpler form of an operation with a constant, or None."""
    number: int = right[1]
    if code == "INT_SUB":
        return add(left, constant(-number, size), size)
    if number == (code == "INT_MULT") and code in ("INT_MULT", "INT_LEFT", "INT_RIGHT", "INT_SRIGHT"):
        return left
    if code == "INT_AND" and left[0] == "zext" and number >> 8 * size_of(left[2]) == 0:
        inner = size_of(left[2])
        masked = combine(code, (left[2], constant(number, inner)), inner)
        return None if masked is None else extend(masked, size, signed=False)
    return None


def extend(value: Expression, size: int, *, signed: bool) -> Expression:
    """A wider value."""
    if is_constant(value):
        return constant(_signed(value[1], value[2]) if signed else value[1], size)
    if not signed and value[0] == "zext":
        value = value[2]
    return ("sext" if signed else "zext", size, value)


def piece(value: Expression, offset: int, size: int) -> Expression:
    """The bytes `[offset, offset + size)` of a value."""
    whole = size_of(value)
    if not offset and size == whole:
        return value
    if is_constant(value):
        return constant(value[1] >> (8 * offset), size)
    if value[0] in ("zext", "sext") and not offset:
        inner = value[2]
        if size <= size_of(inner):
            return piece(inner, 0, size)
        return extend(inner, size, signed=value[0] == "sext")
    if value[0] == "piece":
        return piece(value[2], value[3] + offset, size)
    if value[0] == "INT_ADD" and not offset and is_constant(value[3]):
        return add(piece(value[2], 0, size), piece(value[3], 0, size), size)
    return ("piece", size, value, offset)


def split(address: Expression) -> tuple[Expression | None, int]:
    """An address as base and offset; no base where it is known."""
    if is_constant(address):
        return None, address[1]
    if address[0] == "INT_ADD" and is_constant(address[3]):
        offset: int = address[3][1]
        return address[2], offset - (1 << 64) if offset >> 63 else offset
    return address, 0


def parts(expression: Expression) -> Iterator[Expression]:
    """The expression and everything that it is made of."""
    yield expression
    if expression[0] not in ("k", "leaf"):
        for one in _operands(expression):
            yield from parts(one)


def is_small(expression: Expression, most: int) -> bool:
    """Whether it has at most so many parts: shared ones count as often as they stand there."""
    work = [expression]
    for _ in range(most):
        if not work:
            return True
        one = work.pop()
        if one[0] not in ("k", "leaf"):
            work += _operands(one)
    return False


def closes(expression: Expression, node: Expression) -> bool:
    """Whether the value is known as soon as that of `node` is."""
    if expression == node or expression[0] == "k":
        return True
    if expression[0] == "leaf":
        return False
    if expression[0] == "load":
        return expression[3] is None and closes(expression[2], node)
    return all(closes(one, node) for one in _operands(expression))


def evaluate(
    expression: Expression, node: Expression, value: int, memory: Callable[[int, int], int | None]
) -> int | None:
    """The value where `node` has a given one; None where memory does not say."""
    if expression == node:
        return value
    kind = expression[0]
    if kind == "k":
        return expression[1]
    if kind == "leaf":
        return None
    operands = [evaluate(one, node, value, memory) for one in _operands(expression)]
    known = [one for one in operands if one is not None]
    if len(known) < len(operands):
        return None
    return _computed(expression, known, memory)


def _computed(
    expression: Expression, operands: list[int], memory: Callable[[int, int], int | None]
) -> int | None:
    kind, size = expression[0], expression[1]
    mask = (1 << 8 * size) - 1
    first = operands[0]
    if kind == "load":
        return memory(first, size)
    if kind == "zext":
        return first
    if kind == "sext":
        return _signed(first, size_of(expression[2])) & mask
    if kind == "piece":
        return first >> (8 * expression[3]) & mask
    exact = _EXACT.get(kind)
    if exact is None or (kind in ("INT_DIV", "INT_REM") and not operands[1]):
        return None
    return exact(first, operands[1], size) & mask


def _operands(expression: Expression) -> tuple[Expression, ...]:
    kind = expression[0]
    if kind in ("load", "zext", "sext", "piece"):
        return (expression[2],)
    return expression[2:]


def _signed(value: int, size: int) -> int:
    return value - (1 << 8 * size) if value >> (8 * size - 1) else value


# ---- bounds ----


def bounds_of(expression: Expression) -> tuple[Bounds, bool]:
    """What an expression says of its own value, and whether by a mask or remainder (not by its size alone)."""
    kind = expression[0]
    whole = (0, (1 << 8 * size_of(expression)) - 1)
    if kind == "zext":
        return bounds_of(expression[2])
    if kind in ("INT_AND", "INT_REM") and is_constant(expression[3]):
        return (0, max(0, expression[3][1] - (kind == "INT_REM"))), True
    if kind == "INT_RIGHT" and is_constant(expression[3]):
        (_, high), masked = bounds_of(expression[2])
        return (0, high >> expression[3][1]), masked
    return whole, False


def shifted(bounds: Bounds, by: int, size: int) -> Bounds | None:
    """The bounds of a value and a constant; None where that wraps around in between."""
    top = (1 << 8 * size) - 1
    if bounds == (0, top):
        return bounds
    low, high = (bounds[0] + by) & top, (bounds[1] + by) & top
    return (low, high) if low <= high else None


def narrow(condition: Expression, truth: bool) -> dict[Expression, Bounds]:
    """What a condition says of the values in it, where it has come out as `truth`."""
    found = _narrow(condition, truth)
    said = {node: one.bounds() for node, one in found.items()}
    for whole, one in found.items():
        node = whole
        while (
            node[0] == "zext"
        ):  # without single values: a table has an entry for them, which no way may lead to
            node = node[2]
            top = (1 << 8 * size_of(node)) - 1
            if one.low <= top and node not in said:
                said[node] = one.low, min(one.high, top)
    for node, bounds in list(said.items()):
        if node[0] == "INT_ADD" and is_constant(node[3]) and node[2] not in said:
            without = shifted(bounds, -node[3][1], node[1])
            if without is not None:
                said[node[2]] = without
    return said


class _Found:
    """What is known of one value: bounds, and single values that it does not have."""

    def __init__(self, low: int, high: int, without: frozenset[int] = frozenset()) -> None:
        self.low, self.high, self.without = low, high, without

    def bounds(self) -> Bounds:
        low, high = self.low, self.high
        while low in self.without and low < high:
            low += 1
        while high in self.without and high > low:
            high -= 1
        return low, high

    def both(self, other: _Found) -> _Found:
        return _Found(max(self.low, other.low), min(self.high, other.high), self.without | other.without)

    def either(self, other: _Found) -> _Found:
        (low, high), (least, most) = self.bounds(), other.bounds()
        return _Found(min(low, least), max(high, most), self.without & other.without)

    def shifted(self, by: int, size: int) -> _Found | None:
        """The same of the value and a constant; None where that wraps around in between."""
        top = (1 << 8 * size) - 1
        moved = shifted((self.low, self.high), by, size)
        return None if moved is None else _Found(*moved, frozenset((one + by) & top for one in self.without))


def _narrow(condition: Expression, truth: bool) -> dict[Expression, _Found]:
    kind = condition[0]
    if kind == "BOOL_NEGATE":
        return _narrow(condition[2], not truth)
    if kind in ("BOOL_AND", "BOOL_OR"):
        left, right = _narrow(condition[2], truth), _narrow(condition[3], truth)
        if truth == (kind == "BOOL_AND"):
            merged = dict(left)
            for node, found in right.items():
                merged[node] = merged[node].both(found) if node in merged else found
            for node in left:
                other = _said_of(node, right)
                if other is not None:
                    merged[node] = left[node].both(other)
            return merged
        pairs = [(node, left[node], _said_of(node, right)) for node in left]
        pairs += [(node, right[node], _said_of(node, left)) for node in right]
        return {node: one.either(other) for node, one, other in pairs if other is not None}
    if kind in ("INT_EQUAL", "INT_NOTEQUAL"):
        return _equal(condition[2], condition[3], truth == (kind == "INT_EQUAL"))
    if kind in ("INT_LESS", "INT_LESSEQUAL"):
        return _less(condition[2], condition[3], kind == "INT_LESSEQUAL", truth)
    return {}


def _said_of(node: Expression, found: dict[Expression, _Found]) -> _Found | None:
    """What is known of a value; of a sum with a constant also by what is known of the other summand."""
    if node in found:
        return found[node]
    if node[0] == "INT_ADD" and is_constant(node[3]) and node[2] in found:
        return found[node[2]].shifted(node[3][1], node[1])
    return None


def _equal(left: Expression, right: Expression, truth: bool) -> dict[Expression, _Found]:
    if is_constant(left):
        left, right = right, left
    if not is_constant(right) or is_constant(left):
        return {}
    size, value = size_of(left), right[1]
    top = (1 << 8 * size) - 1
    found: dict[Expression, _Found] = {}
    nodes = [(left, value)]
    if left[0] == "INT_ADD" and is_constant(left[3]):  # compared by subtraction
        nodes.append((left[2], (value - left[3][1]) & top))
    for node, wanted in nodes:
        found[node] = _Found(wanted, wanted) if truth else _Found(0, top, frozenset({wanted}))
    return found


def _less(
    left: Expression,
    right: Expression,
    equal: bool,
    truth: bool,
) -> dict[Expression, _Found]:
    """`left < right` (or `<=`, with `equal`) has come out as `truth`; one of them is a constant."""
    if is_constant(left) == is_constant(right):
        return {}
    if is_constant(right):
        node, value = left, right[1]
        below = truth
        bound = (value if equal else value - 1) if truth else (value + 1 if equal else value)
    else:
        node, value = right, left[1]
        below = not truth
        bound = (value if equal else value + 1) if truth else (value - 1 if equal else value)
    top = (1 << 8 * size_of(node)) - 1
    found = _Found(0, bound) if below else _Found(bound, top)
    return {node: found} if 0 <= found.low <= found.high <= top else {}
