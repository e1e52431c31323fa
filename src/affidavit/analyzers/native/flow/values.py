"""Where a value comes from: p-code is searched backwards, over the blocks of one function, until its definition.

Two searches that end at the same definition give equal expressions, so what a comparison says of a value holds for
every use of it that the comparison dominates. Where several definitions reach a place and differ, the value there is a
leaf of its own.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from affidavit.analyzers.native.flow.blocks import Block
from affidavit.analyzers.native.flow.expressions import (
    Expression,
    add,
    combine,
    constant,
    extend,
    is_constant,
    is_small,
    leaf,
    load,
    parts,
    piece,
    size_of,
    split,
)
from affidavit.analyzers.native.flow.kept import Kept
from affidavit.analyzers.native.flow.pcode import (
    CONSTANT,
    MEMORY,
    REGISTER,
    UNIQUE,
    Lifter,
    Op,
    Varnode,
    constant_of,
)
from affidavit.analyzers.native.flow.stack import StackStores
from affidavit.analyzers.native.loading.image import Image

__all__ = ["Values"]

_DEEPEST: Final = 60
_MAX_SITES: Final = 12
_LARGEST: Final = 48
_LARGEST_WHOLE: Final = 4 * _LARGEST
"""For a condition, which names what is compared once for each flag, and for what is read from a table."""
_LARGEST_ADDRESS: Final = 12
_LARGEST_SHIFT: Final = 1024
_MAX_STEPS: Final = 20_000
_MAX_STORES: Final = 64
_MAX_CHAIN: Final = 8
_CALLS: Final = frozenset({"CALL", "CALLIND", "CALLOTHER"})
_WORD: Final = 8
_INDEX: Final = frozenset({"INT_MULT", "INT_LEFT", "INT_AND", "zext", "sext"})
"""What an index looks like; a pointer to a structure does not."""

Site: TypeAlias = tuple[int, int]
"""A definition: the block, and the operation in it."""


class _Writes(NamedTuple):
    """For each register (in words) the last operation of a block that writes it; the last call."""

    last: dict[int, int]
    call: int


class Values:
    """The values in one function, as far as its flow is known.

    Args:
        image: for its code and its constants.
        lifter: makes p-code.
        blocks: the function's blocks.
        before: the predecessors of each.
        entry: where the function begins.
        above: the immediate dominator of a block.
        named: places in memory that the function names, in order.
        via: a block, and the predecessor from which it is entered the last time.
        lifted: of the same blocks, whose p-code is used too.
    """

    def __init__(
        self,
        image: Image,
        lifter: Lifter,
        blocks: Mapping[int, Block],
        before: Mapping[int, Sequence[int]],
        entry: int,
        above: Callable[[int], int | None],
        named: Callable[[], Sequence[int]],
        via: tuple[int, int] | None = None,
        lifted: Values | None = None,
    ) -> None:
        self._image = image
        self._lifter = lifter
        self._blocks = blocks
        self._before = before
        self._entry = entry
        self._above = above
        self._named = named
        self._via = via
        self._ops: dict[int, list[Op]] = {} if lifted is None else lifted._ops
        self._writes: dict[int, _Writes] = {} if lifted is None else lifted._writes
        self._spills: dict[int, int | None] = {} if lifted is None else lifted._spills
        self._defined: dict[tuple[Site, bool], Expression] = {}
        self._entered: dict[tuple[int, Varnode], Expression] = {}
        self._kept = Kept(self.ops, self._last_writes, before, entry, lifter.convention.result)
        self._joins: dict[tuple[int, int], int] = {}
        self._reached: dict[tuple[int, int], set[Site | None] | None] = {}
        self._stores: StackStores | None = None
        self._active: set[Site] = set()
        self._cuts = 0
        self._steps = 0

    def ops(self, block: int) -> list[Op]:
        """The p-code of a block."""
        found = self._ops.get(block)
        if found is None:
            one = self._blocks[block]
            area = self._image.code(one.start)
            code = b"" if area is None else area.data[one.start - area.start : one.end - area.start]
            found = self._ops[block] = self._lifter.lift(code, one.start)
        return found

    def last(self, block: int, codes: tuple[str, ...]) -> tuple[int, Op] | None:
        """The last operation of a block of one of these kinds, with its place."""
        ops = self.ops(block)
        for at in range(len(ops) - 1, -1, -1):
            if ops[at].code in codes:
                return at, ops[at]
        return None

    def value(self, node: Varnode, block: int, index: int, depth: int = 0) -> Expression:
        """What a place holds before the operation `index` of a block."""
        space, offset, size = node
        if space == CONSTANT:
            return constant(offset, size)
        if not depth:
            self._steps = 0
        self._steps += 1
        if depth > _DEEPEST or self._steps > _MAX_STEPS:
            self._cuts += 1
            return leaf(("deep", block, index, node), size)
        if space == MEMORY:
            return self._load(constant(offset, 8), size, block, index, depth)
        found = self._before_index(node, block, index, depth)
        if found is not None:
            return found
        if space == UNIQUE:
            return leaf(("unwritten", block, node), size)
        return self._at_entry(block, node, depth)

    def _before_index(self, node: Varnode, block: int, index: int, depth: int) -> Expression | None:
        """What a block sets a place to before an operation; None where it does not."""
        space, offset, size = node
        ops = self.ops(block)
        for at in range(index - 1, -1, -1):
            op = ops[at]
            out = op.out
            if (
                out is not None
                and out.space == space
                and out.offset < offset + size
                and offset < out.offset + out.size
            ):
                inside = out.offset <= offset and offset + size <= out.offset + out.size
                if op.maybe or not inside:
                    return leaf(("partly", block, at, node), size)
                return piece(self._define(block, at, depth + 1), offset - out.offset, size)
            if op.code in _CALLS and space == REGISTER:
                called = self._after_call(node, block, at, depth)
                if called is not None:
                    return called
        return None

    def _after_call(self, node: Varnode, block: int, at: int, depth: int) -> Expression | None:
        """What a register holds behind a call; None where that is what it held before."""
        convention = self._lifter.convention
        _, offset, size = node
        popped = convention.popped and self.ops(block)[at].code != "CALLOTHER"
        if popped and offset == convention.stack and size == _WORD:
            return add(self.value(node, block, at, depth + 1), constant(convention.popped, size), size)
        if offset & ~7 in convention.preserved:
            return None
        if (offset + size - 1) >> 3 != offset >> 3:
            return leaf(("called", block, at, node), size)
        kept = self._kept.constant(block, offset >> 3, at)
        if kept is not None:
            return piece(constant(kept, _WORD), offset & 7, size)
        return piece(leaf(("called", block, at, offset >> 3), _WORD), offset & 7, size)

    def is_given_stack(self, block: int) -> bool:
        """Whether the stack pointer behind a block is what the function was entered with."""
        register = self._lifter.convention.stack
        height = self.value(Varnode(REGISTER, register, _WORD), block, len(self.ops(block)))
        return height == self._given_stack()

    def condition(self, block: int) -> Expression | None:
        """The condition of the branch that ends a block."""
        found = self.last(block, ("CBRANCH",))
        if found is None:
            return None
        at, op = found
        return self.value(op.inputs[1], block, at)

    # definitions

    def _define(self, block: int, at: int, depth: int) -> Expression:
        site = (block, at)
        key = (site, self._via is None)
        found = self._defined.get(key)
        if found is None:
            op = self.ops(block)[at]
            assert op.out is not None
            if site in self._active:
                self._cuts += 1
                return leaf(("cycle", site), op.out.size)
            self._active.add(site)
            cuts = self._cuts
            found = self._computed(op, block, at, depth)
            self._active.discard(site)
            if found is None or not _is_kept(op, found):
                found = leaf(("defined", site), op.out.size)
            if cuts == self._cuts or not depth:
                self._defined[key] = found
        return found

    def _computed(self, op: Op, block: int, at: int, depth: int) -> Expression | None:
        assert op.out is not None
        size = op.out.size
        if op.code == "LOAD":
            address = self.value(op.inputs[1], block, at, depth)
            return self._load(address, size, block, at, depth)
        if op.code in _CALLS or not op.inputs:
            return None
        operands = tuple(self.value(node, block, at, depth) for node in op.inputs)
        if op.code == "COPY":
            return operands[0]
        if op.code in ("INT_ZEXT", "INT_SEXT"):
            return extend(operands[0], size, signed=op.code == "INT_SEXT")
        if op.code == "SUBPIECE":
            return piece(operands[0], op.inputs[1].offset, size)
        return combine(op.code, operands, size)

    # across blocks

    def _at_entry(self, block: int, node: Varnode, depth: int) -> Expression:
        word = node.offset >> 3
        if (node.offset + node.size - 1) >> 3 != word:
            return leaf(("wide", block, node), node.size)
        via = self._via
        if via is not None and via[0] == block:
            self._via = None  # before that it may have been entered from anywhere
            try:
                return self.value(node, via[1], len(self.ops(via[1])), depth + 1)
            finally:
                self._via = via
        key = (block, node)
        found = self._entered.get(key)
        if found is None:
            cuts = self._cuts
            found = self._merged(block, node, depth)
            if cuts == self._cuts:
                self._entered[key] = found
        return found

    def _merged(self, block: int, node: Varnode, depth: int) -> Expression:
        word = node.offset >> 3
        key = (block, word)
        if key not in self._reached:
            self._reached[key] = self._reaching(block, word)
        sites = self._reached[key]
        if sites == {None}:
            return piece(leaf(("given", word), _WORD), node.offset & 7, node.size)
        known: set[Site] = set()
        if sites is not None and None not in sites:
            known = {site for site in sites if site is not None}
        if len(known) == 1:
            ((where, at),) = known
            return self.value(node, where, at + 1, depth + 1)
        kept = self._kept.constant(block, word, 0)
        if kept is not None:
            return piece(constant(kept, _WORD), node.offset & 7, node.size)
        merged = leaf(("merged", self._join(block, word), word), _WORD)
        width = max((self._width(where, at) for where, at in known), default=_WORD)
        if 0 < width < node.size and not node.offset & 7:
            return extend(piece(merged, 0, width), node.size, signed=False)
        return piece(merged, node.offset & 7, node.size)

    def _width(self, block: int, at: int) -> int:
        """Bytes of a register that a definition may set to other than zero."""
        ops = self.ops(block)
        op = ops[at]
        if op.maybe or op.out is None or op.out.size != _WORD:
            return _WORD
        value = constant_of(ops, at)
        if value is not None:
            return (value.bit_length() + 7) // 8
        if op.code != "INT_ZEXT":
            return _WORD
        node = op.inputs[0]
        before = ops[at - 1] if at else None
        if before is not None and before.out == node and before.code == "INT_ZEXT" and not before.maybe:
            node = before.inputs[0]
        return node.size

    def _join(self, block: int, word: int) -> int:
        """The block where different values of a register come together that it still has at the start of `block`."""
        passed: list[int] = []
        while (block, word) not in self._joins:
            above = self._above(block)
            if above is None or above in passed or self._written_between(above, block, word):
                self._joins[block, word] = block
                break
            passed.append(block)
            block = above
        found = self._joins[block, word]
        self._joins.update({(one, word): found for one in passed})
        return found

    def _written_between(self, above: int, block: int, word: int) -> bool:
        seen = {above}
        work = [one for one in self._before[block] if one != above]
        while work:
            one = work.pop()
            if one in seen:
                continue
            seen.add(one)
            if self._written(one, word) is not None:
                return True
            work += self._before[one]
        return False

    def _reaching(self, block: int, word: int) -> set[Site | None] | None:
        """The definitions that reach the start of a block; None among them: as the function was entered.

        None instead of a set where there are too many.
        """
        sites: set[Site | None] = set()
        seen: set[int] = set()
        work = [block]
        while work:
            one = work.pop()
            before = self._before[one]
            if one == self._entry or not before:
                sites.add(None)
            for other in before:
                if other in seen:
                    continue
                seen.add(other)
                at = self._written(other, word)
                if at is None:
                    work.append(other)
                else:
                    sites.add((other, at))
                    if len(sites) > _MAX_SITES:
                        return None
        return sites

    def _last_writes(self, block: int) -> Mapping[int, int]:
        return self._all_writes(block).last

    def _all_writes(self, block: int) -> _Writes:
        writes = self._writes.get(block)
        if writes is None:
            last: dict[int, int] = {}
            call = -1
            for at, op in enumerate(self.ops(block)):
                out = op.out
                if out is not None and out.space == REGISTER:
                    for one in range(out.offset >> 3, (out.offset + out.size + 7) >> 3):
                        last[one] = at
                if op.code in _CALLS:
                    call = at
            writes = self._writes[block] = _Writes(last, call)
        return writes

    def _written(self, block: int, word: int) -> int | None:
        writes = self._all_writes(block)
        at = writes.last.get(word, -1)
        convention = self._lifter.convention
        if word << 3 not in convention.preserved or (convention.popped and word << 3 == convention.stack):
            at = max(at, writes.call)
        return None if at < 0 else at

    # memory

    def _load(self, address: Expression, size: int, block: int, at: int, depth: int) -> Expression:
        base, offset = split(address)
        if base is None or self._is_table(base, offset):
            return load(address, size)
        if not is_small(address, _LARGEST_ADDRESS):
            return leaf(("loaded", block, at), size)
        stored, version = self._stored(address, size, block, at, depth)
        if stored is None and size == _WORD and base == self._given_stack():
            spilled = self._spilled(offset, block, at, depth)
            stored = None if spilled is None else constant(spilled, size)
        return load(address, size, version) if stored is None else stored

    def _given_stack(self) -> Expression:
        return leaf(("given", self._lifter.convention.stack >> 3), _WORD)

    def _spilled(self, offset: int, block: int, at: int, depth: int) -> int | None:
        """The address of constant data that is all the function ever stores at a place of its frame, or None.

        Compilers keep the address of a table so, and no pointer leads to where they do.
        """
        if offset not in self._spills:
            self._spills[offset] = None  # while it is looked for
            stack = Varnode(REGISTER, self._lifter.convention.stack, _WORD)
            height = split(self.value(stack, block, at, depth + 1))[1]
            if self._stores is None:
                self._stores = StackStores(self._blocks, self.ops, stack.offset)
            sites = self._stores.over(offset - height, _WORD)
            stored = {self.value(self.ops(one)[i].inputs[2], one, i, depth + 1) for one, i in sites}
            only = stored.pop() if len(stored) == 1 else None
            if only is not None and is_constant(only) and size_of(only) == _WORD:
                area = self._image.area(only[1])
                self._spills[offset] = only[1] if area is not None and area.constant else None
        return self._spills[offset]

    def _is_table(self, base: Expression, offset: int) -> bool:
        """Whether `offset` is an address and `base` what is added to it, rather than the other way round.

        In code that can be moved a small number is mapped memory as well as the offset of a field: then either the
        base looks like an index, or the code names the place, or one a little further on from which it counts down.
        """
        area = self._image.area(offset)
        if area is None or not area.constant:
            return False
        if self._image.fixed or base[0] in _INDEX:
            return True
        named = self._named()
        at = bisect_left(named, offset)
        return at < len(named) and named[at] - offset < _LARGEST_SHIFT

    def _stored(
        self, address: Expression, size: int, block: int, at: int, depth: int
    ) -> tuple[Expression | None, Site]:
        """What was last written to an address, where that is sure; else the last write that may have changed it."""
        base, offset = split(address)
        looked = 0
        for _ in range(_MAX_CHAIN):
            ops = self.ops(block)
            for here in range(at - 1, -1, -1):
                op = ops[here]
                if op.code in _CALLS or (op.maybe and op.code == "STORE"):
                    return None, (block, here)
                if op.code != "STORE":
                    continue
                looked += 1
                if looked > _MAX_STORES:
                    return None, (block, here)
                other, place = split(self.value(op.inputs[1], block, here, depth + 1))
                wide = op.inputs[2].size
                if other == base and place == offset and wide == size:
                    return self.value(op.inputs[2], block, here, depth + 1), (block, here)
                if other != base or (place < offset + size and offset < place + wide):
                    return None, (block, here)
            before = self._before[block]
            if self._via is not None and self._via[0] == block:
                before = [self._via[1]]
            if len(before) != 1 or block == self._entry:
                break
            block = before[0]
            at = len(self.ops(block))
        return None, (block, -1)


def _is_kept(op: Op, found: Expression) -> bool:
    """Whether the expression of a definition is small enough to be looked into."""
    if is_small(found, _LARGEST):
        return True
    if not is_small(found, _LARGEST_WHOLE):
        return False
    return op.code.startswith("BOOL_") or any(part[0] == "load" and part[3] is None for part in parts(found))
