"""What recursive descent asks of a decoder, whatever the machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from affidavit.analyzers.native.flow.blocks import Block

__all__ = ["Access", "Convention", "Decoder", "Kind", "Reference", "Run"]

Kind: TypeAlias = Literal[
    "joined",  # reached an instruction that was decoded before
    "left",  # reached an address outside of the given range
    "undecodable",
    "branch",  # conditional
    "jump",
    "indirect-jump",
    "call",
    "indirect-call",
    "return",
    "trap",
]


Access: TypeAlias = Literal["address", "read", "write", "read-write"]


class Convention(NamedTuple):
    """What the lifter and the rules of calls say of a machine.

    Attributes:
        language: SLEIGH language.
        preserved: registers that a call leaves as they were, by offset in the register space.
        stack: offset of the stack pointer.
        result: the register in which a function returns its value, in words of the register space.
        popped: bytes that a call takes from the stack when it returns.
        step: every instruction stands at a multiple of it.
        aligned: compilers put functions, but not parts of them, at multiples of it.
    """

    language: str
    preserved: frozenset[int]
    stack: int
    result: int
    popped: int
    step: int
    aligned: int


class Run(NamedTuple):
    """Instructions one behind the other, up to one that ends or leaves them.

    Attributes:
        kind: what the last one is.
        at: its address.
        next: the address behind it.
        target: where it leads, where the instruction says so itself.
        slot: the place in memory that holds where it leads, where the instruction says so itself.
        since: an instruction before it that reads the slot, where that is needed: what is said of the slot does not
            hold if the flow enters between the two.
    """

    kind: Kind
    at: int
    next: int
    target: int | None = None
    slot: int | None = None
    since: int | None = None


class Reference(NamedTuple):
    """An instruction that names a place in memory: it takes its address, or reads or writes what is there."""

    at: int
    kind: Access
    target: int


class Decoder(Protocol):
    """Decodes the code of one function at a time.

    Attributes:
        convention: of the machine.
        nexts: the decoded instructions: address to the address behind it.
    """

    convention: Convention
    nexts: dict[int, int]

    def begin(self) -> None:
        """Forget what was decoded: another function begins."""
        ...

    def run(self, address: int, low: int, high: int) -> Run:
        """Decode from an address on, within `[low, high)`."""
        ...

    def stub(self, address: int) -> int | None:
        """The slot through which the code at an address jumps and does nothing else, or None."""
        ...

    def text(self, address: int) -> str:
        """A decoded instruction in words."""
        ...

    def condition(self, block: Sequence[int]) -> str:
        """On what the conditional branch that ends a block depends."""
        ...

    def references(self, blocks: Mapping[int, Block]) -> Iterator[Reference]:
        """The places in memory that the instructions of a function name, block by block."""
        ...

    def is_padding(self, code: bytes) -> bool:
        """Whether these bytes do nothing, and stand between functions or behind jumps to align what follows."""
        ...
