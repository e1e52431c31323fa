"""Where indirect jumps lead: jump tables of every form, by evaluating the target over all values of the index.

The target is an expression over one unknown, the index. A comparison that dominates the jump, or a mask, proves which
values the index can have; each value gives one target, read from memory that cannot change. So tables of offsets, of
addresses, of bytes that select an offset, and two tables in a row are one case. Where nothing proves the bound the
table is read as long as its entries make sense, and marked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Final, NamedTuple

from affidavit.analyzers.native.flow.blocks import Block, blocks_of, predecessors
from affidavit.analyzers.native.flow.decoding import Convention
from affidavit.analyzers.native.flow.descent import Descent, Step, Table
from affidavit.analyzers.native.flow.dominators import immediate_dominators
from affidavit.analyzers.native.flow.expressions import (
    Bounds,
    Expression,
    bounds_of,
    closes,
    evaluate,
    is_constant,
    narrow,
    parts,
    piece,
    shifted,
    size_of,
)
from affidavit.analyzers.native.flow.pcode import Lifter
from affidavit.analyzers.native.flow.values import Values
from affidavit.analyzers.native.loading.frames import ENTRY_HEIGHTS, at_entry_height
from affidavit.analyzers.native.loading.image import Image

__all__ = ["JumpResolver"]

_MAX_ENTRIES: Final = 4096
_MAX_GUARDS: Final = 24
_MAX_WAYS: Final = 64
_SCALED: Final = frozenset({"INT_MULT", "INT_LEFT"})


class _Guard(NamedTuple):
    """A branch that must have gone one way: where it stands, and where the other way leads."""

    at: int
    outside: int


class _Index(NamedTuple):
    """The unknown that selects an entry: its bounds, whether they are proven, and the branch that proves them."""

    node: Expression
    bounds: Bounds
    proven: bool
    guard: _Guard | None


class JumpResolver:
    """Resolves the indirect jumps of functions of one image.

    Args:
        image: whose.
        convention: of its machine.
    """

    def __init__(self, image: Image, convention: Convention) -> None:
        self._image = image
        self._lifter = Lifter(convention)

    def __call__(self, descent: Descent, pending: list[int]) -> None:
        """Find where these jumps lead, and let the descent go on there."""
        scene = _Scene(self._image, self._lifter, descent)
        for at in pending:
            table = scene.table(at)
            if table is not None:
                self._enter(descent, table)
            else:
                self._outside(descent, scene, at)

    def recheck(self, descent: Descent) -> bool:
        """Read every table again now that the whole flow is known; whether that brought anything new.

        A table whose reading changes was read from an incomplete picture: what was found stays, without proof.
        """
        scene = _Scene(self._image, self._lifter, descent)
        grown = False
        for at in sorted(descent.computed - descent.flow.tables.keys()):
            found = scene.table(at)
            if found is not None:
                descent.flow.calls.pop(at, None)
                self._enter(descent, found)
                grown = True
        for at, table in list(descent.flow.tables.items()):
            again = scene.table(at)
            if again == table or (again is None and not table.proven):
                continue
            if again is not None and set(again.targets) >= set(table.targets):
                grown = grown or len(again.targets) > len(table.targets)
                self._enter(descent, again)
            elif again is not None and again.proven:
                self._enter(descent, again)
            else:
                self._enter(descent, table._replace(proven=False))
        return grown

    def _enter(self, descent: Descent, table: Table) -> None:
        descent.flow.tables[table.at] = table
        descent.flow.exits.pop(table.at, None)
        descent.flow.unknowns.pop((table.at, "indirect-jump"), None)
        descent.flow.unknowns.pop((table.at, "table-bound"), None)
        descent.flow.steps[table.at] = [
            Step("case", target, table.first + at, table.proven) for at, target in enumerate(table.targets)
        ]
        for target in dict.fromkeys(table.targets):
            descent.lead(target)
        if not table.proven:
            count = len(table.targets)
            descent.unknown(table.at, "table-bound", f"nothing proves that the table has {count} entries")

    def _outside(self, descent: Descent, scene: _Scene, at: int) -> None:
        """A jump without a table: a call of what a pointer holds as the last act, or not known."""
        target = scene.target(at)
        if target is None:
            descent.unresolved(at, "the instruction has no meaning that is known")
            return
        if is_constant(target):
            if descent.holds(target[1]):
                descent.flow.exits.pop(at, None)
                descent.flow.steps[at] = [Step("jump", target[1])]
                descent.lead(target[1])
            else:
                descent.leave(at, target[1])
            return
        slot = target[2][1] if target[0] == "load" and is_constant(target[2]) else None
        if slot is not None:
            descent.leave(at, None, self._image.imports.get(slot))
            return
        if any(_reads_table(part, self._image) for part in parts(target)) and not scene.leads_out(target):
            descent.unresolved(at, "a jump table whose index or entries are not understood")
        elif scene.at_entry_height(at) or self._at_entry_height(descent, at):
            descent.leave(at, None)
        else:
            descent.unresolved(at, "to a computed address, with the stack not as at a return")

    def _at_entry_height(self, descent: Descent, at: int) -> bool:
        frame = descent.world.functions.frame_of(at)
        if frame is None:
            return False
        return at_entry_height(frame, at, entry=ENTRY_HEIGHTS[self._image.machine]) is True


class _Scene:
    """One function at one time: its blocks so far and the values in them."""

    def __init__(self, image: Image, lifter: Lifter, descent: Descent) -> None:
        self._image = image
        self._lifter = lifter
        self._descent = descent
        self._blocks: Mapping[int, Block] = blocks_of(descent.flow, descent.world.decoder.nexts)
        self._before = predecessors(self._blocks)
        self._ending = {block.instructions[-1]: block.start for block in self._blocks.values()}
        self._entry = descent.function.start
        self._values = Values(
            image, lifter, self._blocks, self._before, self._entry, self._above, self._stops
        )
        self._via: tuple[int, int] | None = None
        self._dominators: dict[int, int] | None = None
        self._named: Sequence[int] | None = None

    def _through(self, before: int, block: int) -> _Scene:
        """The same scene, with a block entered the last time from one of its predecessors."""
        scene = copy(self)
        scene._via = (block, before)
        scene._values = Values(
            self._image,
            self._lifter,
            self._blocks,
            self._before,
            self._entry,
            self._above,
            self._stops,
            scene._via,
            self._values,
        )
        return scene

    def target(self, at: int) -> Expression | None:
        """Where the jump leads, as an expression."""
        block = self._ending.get(at)
        found = None if block is None else self._values.last(block, ("BRANCHIND",))
        if block is None or found is None:
            return None
        place, op = found
        return self._values.value(op.inputs[0], block, place)

    def at_entry_height(self, at: int) -> bool:
        """Whether the stack pointer at a jump is provably what it was when the function was entered."""
        return self._values.is_given_stack(self._ending[at])

    def table(self, at: int) -> Table | None:
        """The table that the jump reads, or None; where it proves nothing by itself, each way to it may."""
        found = self._read(at)
        if found is not None and found.proven:
            return found
        each = self._through_each(at)
        return each if each is not None and (found is None or each.proven) else found

    def _read(self, at: int) -> Table | None:
        target = self.target(at)
        if target is None or is_constant(target):
            return None
        index = self._index(target, self._ending[at])
        if index is None:
            return None
        low, high = index.bounds
        entries = list(self._entries(target, index))
        if not entries:
            return None
        proven = index.proven and len(entries) == high - low + 1
        guard = index.guard if proven else None
        return Table(
            at,
            self._place(target, index.node, low) or 0,
            low,
            tuple(entries),
            proven,
            None if guard is None else guard.at,
            None if guard is None else guard.outside,
        )

    def _through_each(self, at: int) -> Table | None:
        """Where several ways lead to the jump, and each reads the same table: as far as any of them."""
        block = self._ending[at]
        before = self._before[block]
        if not 1 < len(before) <= _MAX_WAYS:
            return None
        found: list[Table] = []
        for one in before:
            table = self._through(one, block)._read(at)
            if table is None or (found and (table.base, table.first) != (found[0].base, found[0].first)):
                return None
            found.append(table)
        widest = max(found, key=lambda table: len(table.targets))
        return widest._replace(proven=all(table.proven for table in found))

    def leads_out(self, target: Expression) -> bool:
        """Whether the entries of a table that selects the target are all functions."""
        functions = self._descent.world.functions
        for node in _candidates(target):
            first = [evaluate(target, node, at, self._image.constant) for at in range(2)]
            if all(one is not None and one in functions.by_start for one in first):
                return True
        return False

    def _entries(self, target: Expression, index: _Index) -> Iterator[int]:
        low, high = index.bounds
        stops = frozenset(self._stops())
        for value in range(low, high + 1):
            place = self._place(target, index.node, value)
            if place is None or (value > low and place in stops):
                return
            found = evaluate(target, index.node, value, self._image.constant)
            if found is None or not self._makes_sense(found):
                return
            yield found

    def _makes_sense(self, target: int) -> bool:
        decoder = self._descent.world.decoder
        nexts = decoder.nexts
        if target % decoder.convention.step or not self._descent.holds(target):
            return False
        before = next((one for one in range(target - 1, target - 16, -1) if one in nexts), None)
        return target in nexts or before is None or nexts[before] <= target

    def _stops(self) -> Sequence[int]:
        """Places that the function names, in order: another table or value begins there."""
        if self._named is None:
            decoder = self._descent.world.decoder
            self._named = sorted({one.target for one in decoder.references(self._blocks)})
        return self._named

    def _place(self, target: Expression, node: Expression, value: int) -> int | None:
        """Where the entry for a value of the index stands: the innermost load that depends on it."""
        place = None
        for part in parts(target):
            if part[0] == "load" and closes(part, node) and part != node and not is_constant(part[2]):
                place = evaluate(part[2], node, value, self._image.constant)
        return place

    def _index(self, target: Expression, block: int) -> _Index | None:
        """The part of the target that is bounded best; without any bound the one that is multiplied last."""
        candidates = list(_candidates(target))
        if not candidates:
            return None
        guards = self._guards(block)
        best: _Index | None = None
        for node in candidates:
            (low, high), masked = bounds_of(node)
            guard: _Guard | None = None
            said = _said_of(node, guards)
            part = None if said is not None else guards.get(piece(node, 0, size_of(node) // 2))
            if said is not None:
                (least, most), guard = said
                low, high = max(low, least), min(high, most)
            elif (
                part is not None
            ):  # compilers compare the lower half where they know the upper one to be zero
                (low, high), masked = part[0], False
            if low > high or high - low >= _MAX_ENTRIES:
                continue
            proven = masked or guard is not None
            if best is None or (proven, best.bounds[1] - best.bounds[0]) > (best.proven, high - low):
                best = _Index(node, (low, high), proven, guard)
        if best is None:
            node = candidates[0]
            best = _Index(node, (0, _MAX_ENTRIES - 1), False, None)
        return best

    def _guards(self, block: int) -> dict[Expression, tuple[Bounds, _Guard]]:
        """What the branches that dominate a block say of values."""
        found: dict[Expression, tuple[Bounds, _Guard]] = {}
        jump, via = block, self._via
        for _ in range(_MAX_GUARDS):
            above = via[1] if via is not None else self._above(block)
            if above is None or above == jump:
                break
            if via is not None or self._before[block] == [above]:
                self._guard(above, block, found)
            block, via = above, None
        return found

    def _guard(self, above: int, block: int, found: dict[Expression, tuple[Bounds, _Guard]]) -> None:
        steps = self._blocks[above].steps
        ways = [step for step in steps if step.kind in ("taken", "fallthrough", "default")]
        if len(ways) != 2 or ways[0].target == ways[1].target:
            return
        condition = self._values.condition(above)
        if condition is None:
            return
        taken = ways[0].target == block
        guard = _Guard(self._blocks[above].instructions[-1], ways[1 if taken else 0].target)
        for node, (low, high) in narrow(condition, taken).items():
            if node in found:
                (least, most), kept = found[node]
                found[node] = (max(low, least), min(high, most)), kept
            elif high - low < (1 << 8 * size_of(node)) - 1:
                found[node] = (low, high), guard

    def _above(self, block: int) -> int | None:
        before = self._before[block]
        if block == self._entry:
            return None
        if len(before) == 1:
            return before[0]
        if self._dominators is None:
            self._dominators = immediate_dominators(self._entry, self._blocks, self._before)
        return self._dominators.get(block)


def _candidates(target: Expression) -> Iterator[Expression]:
    """The parts of the target that decide it and are no table entries themselves, outermost first."""
    entries = [part[2] for part in parts(target) if part[0] == "load" and part[3] is None]
    seen: set[Expression] = set(entries)
    for address in entries:
        for part in parts(address):
            if part in seen or is_constant(part):
                continue
            seen.add(part)
            if part[0] not in _SCALED and closes(target, part):
                yield part


def _said_of(
    node: Expression, guards: Mapping[Expression, tuple[Bounds, _Guard]]
) -> tuple[Bounds, _Guard] | None:
    """What the guards say of a value: as it is, less wide, or without the constant that is added."""
    if node in guards:
        return guards[node]
    if node[0] == "zext":
        return _said_of(node[2], guards)
    if node[0] == "INT_ADD" and is_constant(node[3]) and node[2] in guards:
        bounds, guard = guards[node[2]]
        moved = shifted(bounds, node[3][1], node[1])
        return None if moved is None else (moved, guard)
    return None


def _reads_table(part: Expression, image: Image) -> bool:
    """Whether a part reads memory at a place that is known but for an index."""
    if part[0] != "load" or part[3] is not None or part[2][0] != "INT_ADD":
        return False
    base = part[2][3]
    return is_constant(base) and image.area(base[1]) is not None
