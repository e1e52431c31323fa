"""Bounds of values against trying every value; normal forms against computing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from affidavit.analyzers.native.flow.expressions import (
    Expression,
    add,
    bounds_of,
    closes,
    combine,
    constant,
    evaluate,
    extend,
    is_constant,
    leaf,
    narrow,
    piece,
    size_of,
)

X = leaf("x", 1)
BYTE = range(256)
OPERATIONS = (
    "INT_ADD",
    "INT_SUB",
    "INT_MULT",
    "INT_AND",
    "INT_OR",
    "INT_XOR",
    "INT_LEFT",
    "INT_RIGHT",
    "INT_SRIGHT",
)


def nothing(address: int, size: int) -> int | None:
    return None


@st.composite
def values(draw: st.DrawFn, depth: int = 3) -> tuple[Expression, Callable[[int], int]]:
    """An expression of one byte over `x`, and a function that computes it another way."""
    kind = draw(st.sampled_from(["x", "k", "operation", "wide"] if depth else ["x", "k"]))
    if kind == "x":
        return X, lambda x: x
    if kind == "k":
        number = draw(st.integers(0, 255))
        return constant(number, 1), lambda x: number
    left, first = draw(values(depth=depth - 1))
    if kind == "wide":
        signed = draw(st.booleans())
        more = draw(st.integers(0, 70_000))
        whole = add(extend(left, 4, signed=signed), constant(more, 4), 4)
        part = draw(st.integers(0, 3))

        def computed(x: int) -> int:
            value = first(x)
            value = value - 256 if signed and value > 127 else value
            return ((value + more) & 0xFFFFFFFF) >> (8 * part) & 0xFF

        return piece(whole, part, 1), computed
    right, second = draw(values(depth=depth - 1))
    code = draw(st.sampled_from(OPERATIONS))
    made = combine(code, (left, right), 1)
    assert made is not None

    def result(x: int) -> int:
        a, b = first(x), second(x)
        signed = a - 256 if a > 127 else a
        return {
            "INT_ADD": a + b,
            "INT_SUB": a - b,
            "INT_MULT": a * b,
            "INT_AND": a & b,
            "INT_OR": a | b,
            "INT_XOR": a ^ b,
            "INT_LEFT": a << min(b, 8),
            "INT_RIGHT": a >> min(b, 8),
            "INT_SRIGHT": signed >> min(b, 8),
        }[code] & 0xFF

    return made, result


@st.composite
def conditions(draw: st.DrawFn, depth: int = 3) -> tuple[Expression, Callable[[int], bool]]:
    """A condition over a byte, and a function that says how it comes out."""
    kind = draw(st.sampled_from(["less", "equal", "not", "both"] if depth else ["less", "equal"]))
    if kind == "not":
        inner, said = draw(conditions(depth=depth - 1))
        return ("BOOL_NEGATE", 1, inner), lambda x: not said(x)
    if kind == "both":
        left, first = draw(conditions(depth=depth - 1))
        right, second = draw(conditions(depth=depth - 1))
        if draw(st.booleans()):
            return ("BOOL_AND", 1, left, right), lambda x: first(x) and second(x)
        return ("BOOL_OR", 1, left, right), lambda x: first(x) or second(x)
    shift, number = draw(st.integers(0, 255)), draw(st.integers(0, 255))
    node = add(X, constant(shift, 1), 1)
    value = constant(number, 1)
    if kind == "equal":
        code, test = draw(st.sampled_from([("INT_EQUAL", int.__eq__), ("INT_NOTEQUAL", int.__ne__)]))
    else:
        code, test = draw(st.sampled_from([("INT_LESS", int.__lt__), ("INT_LESSEQUAL", int.__le__)]))
    if draw(st.booleans()):
        return (code, 1, node, value), lambda x: test((x + shift) & 0xFF, number)
    return (code, 1, value, node), lambda x: test(number, (x + shift) & 0xFF)


@given(values())
def test_normal_forms_compute_the_same(made: tuple[Expression, Callable[[int], Any]]) -> None:
    expression, result = made
    assert size_of(expression) == 1
    assert closes(expression, X)
    for x in (0, 1, 2, 3, 7, 31, 127, 128, 129, 200, 254, 255):
        assert evaluate(expression, X, x, nothing) == result(x)


@given(values())
def test_an_expression_lies_within_its_bounds(made: tuple[Expression, Callable[[int], Any]]) -> None:
    expression, result = made
    (low, high), _ = bounds_of(expression)
    assert all(low <= result(x) <= high for x in BYTE)


@given(conditions(), st.booleans())
def test_what_a_condition_says_holds_for_every_value_that_meets_it(
    made: tuple[Expression, Callable[[int], Any]], truth: bool
) -> None:
    condition, said = made
    meeting = [x for x in BYTE if bool(said(x)) == truth]
    assume(meeting)
    for node, (low, high) in narrow(condition, truth).items():
        for x in meeting:
            value = evaluate(node, X, x, nothing)
            assert value is not None
            assert low <= value <= high, (condition, truth, node, x)


@given(st.integers(1, 254), st.booleans())
def test_the_comparisons_of_switches_are_exact(number: int, flags: bool) -> None:
    """`ja` tests two flags: carry, and zero of the difference."""
    carry: Expression = ("INT_LESS", 1, X, constant(number, 1))
    zero: Expression = ("INT_EQUAL", 1, add(X, constant(-number, 1), 1), constant(0, 1))
    either: Expression = ("BOOL_OR", 1, carry, zero)
    above: Expression = ("BOOL_NEGATE", 1, either)
    condition, truth = (above, False) if flags else (either, True)
    assert narrow(condition, truth)[X] == (0, number)
    assert narrow(above, True)[X] == (number + 1, 255)


def test_constants_fold() -> None:
    assert is_constant(add(constant(250, 1), constant(10, 1), 1))
    assert add(add(X, constant(3, 1), 1), constant(-3, 1), 1) == X
    assert combine("INT_XOR", (X, X), 1) == constant(0, 1)
    assert combine("FLOAT_ADD", (X, X), 1) is None
