"""Recursive descent through one function: what is reached from its start, and how the flow goes on there."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

from affidavit.analyzers.native.flow.decoding import Decoder, Run
from affidavit.analyzers.native.flow.functions import Function, Functions
from affidavit.analyzers.native.loading.frames import Pads, landing_pads
from affidavit.analyzers.native.loading.image import Image

__all__ = ["Call", "Descent", "EdgeKind", "ExitKind", "Flow", "Jumps", "Step", "Table", "Unknown", "World"]

EdgeKind: TypeAlias = Literal["taken", "fallthrough", "jump", "case", "default", "unwind"]
ExitKind: TypeAlias = Literal["return", "noreturn", "tail-call", "trap", "unresolved"]
CallKind: TypeAlias = Literal["direct", "indirect", "tail"]


_RECHECKS: Final = 3


class Step(NamedTuple):
    """One way on from an instruction; `case` is the value of the index that selects it."""

    kind: EdgeKind
    target: int
    case: int | None = None
    proven: bool = True


class Call(NamedTuple):
    """A call, or a jump that is one. `target` is None where the code does not say; `name` is an import's."""

    at: int
    kind: CallKind
    target: int | None
    name: str | None
    returns: bool


class Unknown(NamedTuple):
    """A place where the flow could not be followed, or not with proof."""

    at: int
    kind: Literal["indirect-jump", "table-bound", "undecodable", "beyond-end", "inside-other", "landing-pads"]
    reason: str


class Table(NamedTuple):
    """A jump table as it was read.

    Attributes:
        at: the jump.
        base: address of its first entry that is read.
        first: the index of that entry.
        targets: where each index leads, in order.
        proven: whether the code proves how many there are.
        guard: the conditional branch that bounds the index, or None.
        outside: where that branch leads when the index is out of bounds.
    """

    at: int
    base: int
    first: int
    targets: tuple[int, ...]
    proven: bool
    guard: int | None = None
    outside: int | None = None


class Jumps(Protocol):
    """Finds where indirect jumps lead."""

    def __call__(self, descent: Descent, pending: list[int]) -> None:
        """Enter what is found for these jumps into the descent."""
        ...

    def recheck(self, descent: Descent) -> bool:
        """Once nothing is pending: whether the whole picture says more than the parts did."""
        ...


@dataclass(slots=True)
class World:
    """What all descents of one binary share.

    Attributes:
        image: the binary.
        functions: its functions.
        decoder: of its machine.
        ending: addresses of functions, and of stubs, that are known not to return.
        jumps: finds where the indirect jumps of a function lead.
    """

    image: Image
    functions: Functions
    decoder: Decoder
    ending: set[int]
    jumps: Jumps


@dataclass(slots=True)
class Flow:
    """What descent found of a function.

    Attributes:
        leaders: addresses where blocks begin.
        steps: ways on from the last instruction of a block, in native order.
        exits: last instructions behind which the function is left, and how.
        calls: by address of the instruction.
        tables: by address of the jump.
        unknowns: by address and kind.
        parts: first addresses of the parts elsewhere that belong to it.
        reached: where calls and tail calls lead that name an address themselves.
    """

    leaders: set[int] = field(default_factory=set[int])
    steps: dict[int, list[Step]] = field(default_factory=dict[int, list[Step]])
    exits: dict[int, ExitKind] = field(default_factory=dict[int, ExitKind])
    calls: dict[int, Call] = field(default_factory=dict[int, Call])
    tables: dict[int, Table] = field(default_factory=dict[int, Table])
    unknowns: dict[tuple[int, str], Unknown] = field(default_factory=dict[tuple[int, str], Unknown])
    parts: list[int] = field(default_factory=list[int])


class Descent:
    """One function on its way.

    Args:
        world: what all descents share.
        function: which one.
    """

    def __init__(self, world: World, function: Function) -> None:
        self.world = world
        self.function = function
        self.flow = Flow()
        self.ranges: list[tuple[int, int]] = [(function.start, function.end)]
        self._low, self._high = function.start, function.end
        self._work: list[int] = []
        self._pending: list[int] = []
        self._pads: list[Pads] = []
        self._by_slot: list[Run] = []
        self.computed: set[int] = set()
        world.decoder.begin()

    def run(self) -> Flow:
        """Follow the flow from the start until nothing new is found."""
        self.lead(self.function.start)
        self._catch(self.function)
        self._exhaust()
        for _ in range(_RECHECKS):
            if not self.computed or not self.world.jumps.recheck(self):
                break
            self._exhaust()
        return self.flow

    def _exhaust(self) -> None:
        while self._work or self._pending:
            while self._work:
                self._follow(self._work.pop())
            pending, self._pending = self._pending, []
            if pending:
                self.world.jumps(self, pending)
            self._doubt()

    def lead(self, address: int) -> None:
        """A block begins at an address of the function."""
        self.flow.leaders.add(address)
        if address not in self.world.decoder.nexts:
            self._work.append(address)

    def holds(self, address: int) -> bool:
        """Whether an address belongs to the function; a part that is met becomes one of it."""
        if self._low <= address < self._high:
            return True
        if any(low <= address < high for low, high in self.ranges):
            return True
        part = self.world.functions.part_at(address)
        if part is None:
            return False
        self.ranges.append((part.start, part.end))
        self.flow.parts.append(part.start)
        self._catch(part)
        return True

    def leave(self, at: int, target: int | None, name: str | None = None) -> None:
        """The flow goes on in another function."""
        functions = self.world.functions
        if target is not None and target not in functions.by_start and self.world.image.code(target) is None:
            self.unknown(at, "beyond-end", f"leads to {target:#x}, where there is no code")
        name = name or self._stub_name(target)
        returns = not self._ends(target, name)
        self.flow.calls[at] = Call(at, "tail", target, name, returns)
        self.flow.exits[at] = "tail-call"
        if target is not None and name is None and target not in functions.by_start:
            holder = functions.holder(target)
            if holder is not None and holder.sized:
                self.unknown(at, "inside-other", f"leads into the function at {holder.start:#x}")

    def unknown(self, at: int, kind: str, reason: str) -> None:
        """Note what could not be followed."""
        self.flow.unknowns[at, kind] = Unknown(at, kind, reason)  # type: ignore[arg-type]

    def unresolved(self, at: int, reason: str) -> None:
        """It is not known where an indirect jump leads."""
        self.flow.exits[at] = "unresolved"
        self.unknown(at, "indirect-jump", reason)

    # one run of instructions after the other

    def _follow(self, address: int) -> None:
        decoder = self.world.decoder
        while address not in decoder.nexts:
            low, high = self._range(address)
            run = decoder.run(address, low, high)
            following = self._after(run)
            if following is None:
                return
            address = following

    def _range(self, address: int) -> tuple[int, int]:
        if self._low <= address < self._high:
            return self._low, self._high
        return next((one for one in self.ranges if one[0] <= address < one[1]), (address, address))

    def _after(self, run: Run) -> int | None:
        """Note how a run ends; the address where decoding goes on, or None."""
        kind = run.kind
        if kind == "branch":
            return self._branch(run)
        if kind in ("call", "indirect-call"):
            return self._call(run)
        if kind == "jump":
            self._jump(run)
        elif kind == "indirect-jump":
            self._indirect(run)
        elif kind in ("return", "trap"):
            self.flow.exits[run.at] = kind
        elif kind == "undecodable":
            self.flow.exits[run.at] = "unresolved"
            self.world.decoder.nexts.setdefault(run.at, run.at)
            self.unknown(run.at, "undecodable", "no instruction")
        elif kind == "joined":
            self.flow.leaders.add(run.next)  # no block begins there yet where instructions overlap
        elif kind == "left":
            self._run_out(run.at, run.next)
        return None

    def _branch(self, run: Run) -> int | None:
        assert run.target is not None
        steps: list[Step] = []
        if self.holds(run.target):
            steps.append(Step("taken", run.target))
            self.lead(run.target)
        else:
            self.leave(run.at, run.target)
        self.flow.steps[run.at] = steps
        if self.holds(run.next):
            steps.append(Step("fallthrough", run.next))
            self.flow.leaders.add(run.next)
            return run.next
        self._run_out(run.at, run.next)
        return None

    def _jump(self, run: Run) -> None:
        assert run.target is not None
        if self.holds(run.target):
            self.flow.steps[run.at] = [Step("jump", run.target)]
            self.lead(run.target)
        else:
            self.leave(run.at, run.target)

    def _indirect(self, run: Run) -> None:
        name = None if run.slot is None else self.world.image.imports.get(run.slot)
        if name is not None:
            self.leave(run.at, None, name)
        else:
            self.flow.exits[run.at] = "unresolved"  # until it is found where it leads
            self._pending.append(run.at)
            self.computed.add(run.at)

    def _call(self, run: Run) -> int | None:
        name = self._stub_name(run.target)
        if run.slot is not None:
            name = self.world.image.imports.get(run.slot)
            if run.since is not None:
                self._by_slot.append(run)
        returns = not self._ends(run.target, name)
        if returns and self.function.sized and run.next == self._range(run.at)[1]:
            returns = False  # the compiler knew: nothing of the function follows
        kind: CallKind = "direct" if run.kind == "call" else "indirect"
        self.flow.calls[run.at] = Call(run.at, kind, run.target, name, returns)
        pad = self._pad(run.at)
        caught = [] if pad is None else [Step("unwind", pad)]
        if not returns:
            self.flow.exits[run.at] = "noreturn"
            if caught:
                self.flow.steps[run.at] = caught
            return None
        if not self.holds(run.next):
            self._run_out(run.at, run.next)
            return None
        if caught:
            self.flow.steps[run.at] = [Step("fallthrough", run.next), *caught]
            self.flow.leaders.add(run.next)
        return run.next

    def _doubt(self) -> None:
        """A slot was read before a call, and the flow turns out to enter in between: what is called is not known."""
        leaders = self.flow.leaders
        for run in list(self._by_slot):
            assert run.since is not None
            if any(at in leaders for at in range(run.since + 1, run.at + 1)):
                self._by_slot.remove(run)
                self.flow.exits.pop(run.at, None)
                self.flow.steps.pop(run.at, None)
                following = self._call(run._replace(slot=None, since=None))
                if following is not None:
                    self._work.append(following)

    def _pad(self, at: int) -> int | None:
        """Where an exception leads that a call lets through, if it is caught here or something is cleaned up."""
        found = bisect_right(self._pads, at, key=lambda one: one.start) - 1
        if found >= 0 and at < self._pads[found].end:
            return self._pads[found].pad
        return None

    def _run_out(self, at: int, target: int) -> None:
        """The flow runs past the end of the function."""
        if self.holds(target):
            self.flow.steps.setdefault(at, []).append(Step("fallthrough", target))
            self.lead(target)
        elif target in self.world.functions.by_start and at not in self.flow.calls:
            self.leave(at, target)
        else:
            self.flow.exits.setdefault(at, "unresolved")
            self.unknown(at, "beyond-end", f"runs past the end of the function at {target:#x}")

    def _stub_name(self, target: int | None) -> str | None:
        if target is None:
            return None
        stubs = self.world.image.stubs
        if target not in stubs and target not in self.world.functions.by_start:
            slot = self.world.decoder.stub(target)
            name = None if slot is None else self.world.image.imports.get(slot)
            if name is not None and slot is not None:
                self.world.image.add_stub(target, slot)
        return stubs.get(target)

    def _ends(self, target: int | None, name: str | None) -> bool:
        from affidavit.analyzers.native.flow.returning import never_returns

        if target is not None and self.world.image.behind.get(target, target) in self.world.ending:
            return True
        return name is not None and never_returns(name)

    def _catch(self, function: Function) -> None:
        """The landing pads of a function or part are reached by exceptions only."""
        frame = function.frame
        if frame is None or not frame.handlers:
            return
        try:
            pads = landing_pads(self.world.image, frame)
        except IndexError:
            self.unknown(function.start, "landing-pads", "the table of landing pads cannot be read")
            return
        for one in pads:
            if self.holds(one.pad):
                self._pads.append(one)
                self.lead(one.pad)
        self._pads.sort()
