"""What recursive descent asks of a decoder, whatever the machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

__all__ = ["Access", "Decoder", "Kind", "Reference", "Run"]

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


class Run(NamedTuple):
    """Instructions one behind the other, up to one that ends or leaves them.

    Attributes:
        kind: what the last one is.
        at: its address.
        next: the address behind it.
        target: where it leads, where the instruction says so itself.
        slot: the place in memory that holds where it leads, where the instruction says so itself.
    """

    kind: Kind
    at: int
    next: int
    target: int | None = None
    slot: int | None = None


class Reference(NamedTuple):
    """An instruction that names a place in memory: it takes its address, or reads or writes what is there."""

    at: int
    kind: Access
    target: int


class Decoder(Protocol):
    """Decodes the code of one function at a time.

    Attributes:
        nexts: the decoded instructions: address to the address behind it.
    """

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

    def references(self, address: int) -> Iterator[Reference]:
        """The places in memory that a decoded instruction names."""
        ...
