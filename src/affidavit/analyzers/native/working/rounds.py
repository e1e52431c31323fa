"""What functions tell of each other: calls that do not return, functions found by calls, parts that were moved away.

All functions are descended into, taking every call to return. What is learnt then changes some of them: those that call
a function which turned out not to return, and those that own a part. They are descended into again, until nothing
changes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final, NamedTuple

from affidavit.analyzers.native.flow.descent import Descent, Flow, World
from affidavit.analyzers.native.flow.functions import Function, Functions
from affidavit.analyzers.native.flow.returning import never_returns
from affidavit.analyzers.native.working.report import Outline, failed_outline, outline_of
from affidavit.analyzers.native.working.strings import Strings

__all__ = ["Learnt", "Rounds", "Seen", "look", "take_in"]

_MOST_ROUNDS: Final = 64
_UNNAMED: Final = frozenset({"unwind-table", "tail-call-target"})


class Seen(NamedTuple):
    """What one function tells of itself and of others.

    Attributes:
        start: which one.
        comes_back: some way returns, or leads to where it is not known.
        tails: where it goes on instead of returning, as far as an address is named.
        calls: the addresses that it calls.
        inside: addresses in the middle of other functions that it jumps to.
        parts: parts that belong to it.
        failed: why it could not be looked at, or "".
    """

    start: int
    comes_back: bool
    tails: list[int]
    calls: list[int]
    inside: list[int]
    parts: list[int]
    failed: str = ""


class Learnt(NamedTuple):
    """What a round adds: functions found by calls and by tail calls, parts, functions that do not return."""

    called: list[int]
    continued: list[int]
    parts: list[int]
    ending: list[int]


def look(world: World, strings: Strings, start: int) -> tuple[Seen, Outline]:
    """Descend into a function for what it tells of others, and for what there is to say of itself."""
    try:
        flow = Descent(world, world.functions.by_start[start]).run()
        return _seen(world, start, flow), outline_of(world, strings, flow)
    except (ArithmeticError, LookupError, ValueError, TypeError, AttributeError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}"[:200]
        return Seen(start, True, [], [], [], [], reason), failed_outline(start, reason)


def _seen(world: World, start: int, flow: Flow) -> Seen:
    comes_back = any(kind in ("return", "unresolved") for kind in flow.exits.values())
    tails: list[int] = []
    calls: list[int] = []
    for call in flow.calls.values():
        if call.kind != "tail":
            target = None if call.target is None else world.image.behind.get(call.target, call.target)
            if target is not None and (call.name is None or target != call.target):
                calls.append(target)
        elif call.target in world.image.behind:
            tails.append(world.image.behind[call.target])
        elif call.target is None or call.name is not None:
            comes_back = comes_back or call.name is None or not never_returns(call.name)
        else:
            tails.append(call.target)
    functions = world.functions
    inside = [target for target in tails if target not in functions.by_start and functions.holder(target)]
    return Seen(start, comes_back, tails, calls, inside, flow.parts)


def take_in(functions: Functions, ending: set[int], learnt: Learnt) -> None:
    """Note what others learnt, in a process of its own."""
    for address in learnt.called:
        functions.add(address, "call-target")
    for address in learnt.continued:
        functions.add(address, "tail-call-target")
    for address in learnt.parts:
        functions.by_start[address].part = True
    ending.update(learnt.ending)


class Rounds:
    """Brings together what the functions tell.

    Args:
        functions: those that are known.
        ending: functions that do not return; grows.
        aligned: at multiples of it compilers put functions.
    """

    def __init__(self, functions: Functions, ending: set[int], aligned: int) -> None:
        self.functions = functions
        self.ending = ending
        self._aligned = aligned
        self.seen: dict[int, Seen] = {}
        self.failed: dict[int, str] = {}
        self.learnt = Learnt([], [], [], [])
        self._callers: dict[int, set[int]] = defaultdict(set)
        self._round = 0

    def first(self) -> list[int]:
        """The functions to begin with."""
        return [function.start for function in self.functions if not function.part]

    def learn(self, found: Iterable[Seen]) -> tuple[Learnt, list[int]]:
        """Take in what a round found; what all must know now, and the functions to look at again, by address."""
        for one in found:
            self.seen[one.start] = one
            if one.failed:
                self.failed[one.start] = one.failed
            for target in (*one.calls, *one.tails):
                self._callers[target].add(one.start)
        self._round += 1
        if self._round >= _MOST_ROUNDS:
            return Learnt([], [], [], []), []
        called = self._new({target for one in self.seen.values() for target in one.calls})
        continued = self._continued()
        new = {*called, *continued}
        cut = {holder.start for one in new if (holder := self.functions.holder(one)) and not holder.sized}
        parts, owners = self._parts()
        ending = sorted(self._not_returning() - self.ending)
        learnt = Learnt(called, continued, parts, ending)
        take_in(self.functions, self.ending, learnt)
        for known, new_ones in zip(self.learnt, learnt, strict=True):
            known.extend(new_ones)
        again = {caller for one in ending for caller in self._callers[one]} | owners | new | cut
        again |= {caller for one in new for caller in self._callers[one] if caller in self.seen}
        return learnt, sorted(start for start in again if not self.functions.by_start[start].part)

    def unowned(self) -> list[int]:
        """Parts that no function led to."""
        owned = {part for one in self.seen.values() for part in one.parts}
        return [one.start for one in self.functions if one.part and one.start not in owned]

    def _new(self, wanted: set[int]) -> list[int]:
        """The addresses at which no function was known and where there is code, in order."""
        return [one for one in sorted(wanted - self.functions.by_start.keys()) if self.functions.is_code(one)]

    def _continued(self) -> list[int]:
        """Where functions go on that no function whose end is told holds."""
        found: list[int] = []
        wanted = {target for seen in self.seen.values() for target in seen.tails}
        for one in self._new(wanted):
            holder = self.functions.holder(one)
            if holder is None or not holder.sized:
                found.append(one)
        return found

    def _parts(self) -> tuple[list[int], set[int]]:
        """Parts that compilers moved away, which neither a name nor the unwind table tells, and whose they are.

        Nobody calls them, they have no name, and

        * they jump back into the middle of the function that jumps to them, as what a linker puts around errata of
          processors does too, or
        * the unwind table has an entry for them, one function alone jumps to them, they never return, and they stand
          where no function is aligned to.
        """
        parts: set[int] = set()
        owners: set[int] = set()
        for one in self.seen.values():
            function = self.functions.by_start[one.start]
            if function.part or not function.basis <= _UNNAMED:
                continue
            callers = [self.seen[caller] for caller in self._callers[one.start] if caller in self.seen]
            jumping = (
                [other for other in self.seen.values() if self._leads_into(other, function)]
                if one.inside
                else callers
            )
            if any(one.start in other.calls for other in callers):
                continue
            found = self._owners(one, jumping)
            if found:
                parts.add(one.start)
                owners |= found
        return sorted(parts), owners

    def _owners(self, one: Seen, jumping: list[Seen]) -> set[int]:
        into = {
            holder.start for target in one.inside if (holder := self.functions.holder(target)) is not None
        }
        back = {other.start for other in jumping if other.start in into}
        if back:
            return back
        told = self.functions.by_start[one.start].basis == {"unwind-table"}
        ends = told and not one.comes_back and not one.tails
        if ends and one.start % self._aligned and len({other.start for other in jumping}) == 1:
            return {other.start for other in jumping}
        return set()

    def _leads_into(self, other: Seen, function: Function) -> bool:
        return any(function.start <= target < function.end for target in other.tails)

    def _not_returning(self) -> set[int]:
        """The functions all of whose ways end without coming back: what is left when the others are taken away."""
        left = {one.start for one in self.seen.values() if not one.comes_back}
        users: dict[int, list[int]] = defaultdict(list)
        work: list[int] = []
        for start in left:
            for target in self.seen[start].tails:
                users[target].append(start)
                if target not in left:
                    work.append(start)
        while work:
            start = work.pop()
            if start in left:
                left.discard(start)
                work += users[start]
        return left
