"""P-code of single blocks by pypcode, as plain tuples: the meaning of instructions, the same for every machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from affidavit.analyzers.native.flow.decoding import Convention

__all__ = [
    "CONSTANT",
    "MEMORY",
    "REGISTER",
    "UNIQUE",
    "Lifter",
    "Op",
    "Varnode",
    "constant_of",
]

CONSTANT: Final = 0
REGISTER: Final = 1
UNIQUE: Final = 2
MEMORY: Final = 3
_SPACES: Final = {"const": CONSTANT, "register": REGISTER, "unique": UNIQUE, "ram": MEMORY}


class Varnode(NamedTuple):
    """A place: space, offset (the value itself in the constant space), size in bytes."""

    space: int
    offset: int
    size: int


class Op(NamedTuple):
    """One operation. `maybe`: its instruction may skip or repeat it, so what it writes is not certain."""

    code: str
    out: Varnode | None
    inputs: tuple[Varnode, ...]
    maybe: bool


def constant_of(ops: Sequence[Op], at: int) -> int | None:
    """What an operation computes, where that is a constant, or a sum of constants, that these operations show."""
    op = ops[at]
    if op.code not in ("COPY", "INT_ADD") or op.maybe or op.out is None:
        return None
    total = 0
    for node in op.inputs:
        value = node.offset if node.space == CONSTANT else _constant_in(ops, at, node)
        if value is None:
            return None
        total += value
    return total & ((1 << 8 * op.out.size) - 1)


def _constant_in(ops: Sequence[Op], at: int, node: Varnode) -> int | None:
    """The constant that a place holds before an operation."""
    for before in range(at - 1, -1, -1):
        out = ops[before].out
        if ops[before].code.startswith("CALL") or (out == node and node.space == MEMORY):
            return None
        if out == node:
            return constant_of(ops, before)
        if out is not None and out.space == node.space and _overlap(out, node):
            return None
    return None


def _overlap(first: Varnode, second: Varnode) -> bool:
    return first.offset < second.offset + second.size and second.offset < first.offset + first.size


class Lifter:
    """Makes p-code. Opening a language takes a tenth of a second, so it is done when first needed."""

    def __init__(self, convention: Convention) -> None:
        self.convention = convention
        self._context: Any = None
        self._names: dict[Any, str] = {}

    def lift(self, code: bytes, address: int) -> list[Op]:
        """The operations of straight code; they end where an instruction cannot be read."""
        import pypcode

        if self._context is None:
            self._context = pypcode.Context(self.convention.language)
        if not code:
            return []
        try:
            translated: Any = self._context.translate(code, base_address=address)
        except (pypcode.BadDataError, pypcode.UnimplError):
            return []
        ops: list[Op] = []
        begun = 0
        uncertain = False
        where = address
        for op in translated.ops:
            name = self._name(op.opcode)
            if name == "IMARK":
                begun, uncertain, where = len(ops), False, op.inputs[0].offset
                continue
            inputs = tuple(map(_varnode, op.inputs))
            out = op.output
            ops.append(Op(name, None if out is None else _varnode(out), inputs, uncertain))
            if name in ("CBRANCH", "BRANCH"):
                target = inputs[0]
                if target.space == MEMORY and target.offset == where:  # repeats itself
                    ops[begun:] = [one._replace(maybe=True) for one in ops[begun:]]
                uncertain = True
        return ops

    def _name(self, opcode: Any) -> str:
        name = self._names.get(opcode)
        if name is None:
            name = self._names[opcode] = str(opcode).rpartition(".")[2]
        return name


def _varnode(node: Any) -> Varnode:
    return Varnode(_SPACES.get(node.space.name, MEMORY), node.offset, node.size)
