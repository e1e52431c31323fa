"""x86-64 by iced-x86: which instruction is there, where it leads, how it reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from iced_x86 import (
    Code,
    ConditionCode,
    Decoder,
    FlowControl,
    Formatter,
    FormatterSyntax,
    Instruction,
    InstructionInfoFactory,
    Mnemonic,
    OpAccess,
    OpKind,
    Register,
)

from affidavit.analyzers.native.flow.blocks import Block
from affidavit.analyzers.native.flow.decoding import Access, Convention, Kind, Reference, Run
from affidavit.analyzers.native.loading.image import Area, Image

__all__ = ["X86Decoder"]

# preserved: rbx, rsp, rbp, r12 to r15 (System V ABI, AMD64, 3.2.1)
_CONVENTION: Final = Convention(
    language="x86:LE:64:default",
    preserved=frozenset({0x18, 0x20, 0x28, 0xA0, 0xA8, 0xB0, 0xB8}),
    stack=0x20,
    result=0,
    popped=8,
    step=1,
    aligned=16,
)
# preserved: rbx, rsp, rbp, rsi, rdi, r12 to r15 (Microsoft's x64 calling convention)
_WINDOWS: Final = _CONVENTION._replace(
    preserved=frozenset({0x18, 0x20, 0x28, 0x30, 0x38, 0xA0, 0xA8, 0xB0, 0xB8})
)
_NEXT: Final = FlowControl.NEXT
_KINDS: Final[Mapping[int, Kind]] = {
    FlowControl.CONDITIONAL_BRANCH: "branch",
    FlowControl.XBEGIN_XABORT_XEND: "branch",
    FlowControl.UNCONDITIONAL_BRANCH: "jump",
    FlowControl.CALL: "call",
    FlowControl.INDIRECT_BRANCH: "indirect-jump",
    FlowControl.INDIRECT_CALL: "indirect-call",
    FlowControl.RETURN: "return",
    FlowControl.EXCEPTION: "trap",
}
_NEAR: Final = frozenset({OpKind.NEAR_BRANCH16, OpKind.NEAR_BRANCH32, OpKind.NEAR_BRANCH64})
_HALT: Final = Code.HLT
_IMMEDIATES: Final = frozenset({OpKind.IMMEDIATE32, OpKind.IMMEDIATE64, OpKind.IMMEDIATE32TO64})
_CODES: Final = {
    value: name.lower() for name, value in vars(ConditionCode).items() if isinstance(value, int) and value
}
_ACCESS: Final[Mapping[int, Access]] = {
    OpAccess.WRITE: "write",
    OpAccess.COND_WRITE: "write",
    OpAccess.READ_WRITE: "read-write",
    OpAccess.READ_COND_WRITE: "read-write",
    OpAccess.NO_MEM_ACCESS: "address",
}
_UNREADABLE: Final = "(bad)"
_BREAK: Final = 0xCC
_STUB_INSTRUCTIONS: Final = 3


class X86Decoder:
    """See `flow.decoding.Decoder`.

    Args:
        image: whose code.
    """

    def __init__(self, image: Image) -> None:
        self.convention = _WINDOWS if image.abi == "windows" else _CONVENTION
        self._image = image
        self._decoders: dict[int, Decoder] = {}
        self._area: Area | None = None
        self._decoder: Decoder | None = None
        self._formatter = Formatter(FormatterSyntax.INTEL)
        self._formatter.hex_prefix = "0x"
        self._formatter.hex_suffix = ""
        self._formatter.uppercase_hex = False
        self._formatter.branch_leading_zeros = False
        self._formatter.space_after_operand_separator = True
        self._formatter.show_branch_size = False
        self._info = InstructionInfoFactory()
        self.nexts: dict[int, int] = {}
        self._kept: dict[int, Instruction] = {}

    def begin(self) -> None:
        """Forget what was decoded."""
        self.nexts = {}
        self._kept = {}

    def run(self, address: int, low: int, high: int) -> Run:
        """Decode from an address on, within `[low, high)`."""
        decoder = self._at(address)
        if decoder is None:
            return Run("undecodable", address, address)
        nexts, kept, decode = self.nexts, self._kept, decoder.decode
        last = address
        while True:
            if address in nexts:
                return Run("joined", last, address)
            if not low <= address < high:
                return Run("left", last, address)
            instruction = decode()
            if not instruction or instruction.next_ip > high:
                return Run("undecodable", address, address)
            last = address
            nexts[last] = address = instruction.next_ip
            kept[last] = instruction
            flow = instruction.flow_control
            if flow != _NEXT:
                run = self._leaving(instruction, last, address, high)
                if run is not None:
                    return run
            elif instruction.code == _HALT:
                return Run("trap", last, address)

    def stub(self, address: int) -> int | None:
        """The slot of a stub of the linkage table: perhaps `endbr64`, then `jmp [slot]`."""
        decoder = self._at(address)
        if decoder is None:
            return None
        for _ in range(_STUB_INSTRUCTIONS):
            instruction = decoder.decode()
            if instruction.code == Code.ENDBR64:
                continue
            if (
                instruction.flow_control == FlowControl.INDIRECT_BRANCH
                and instruction.is_ip_rel_memory_operand
            ):
                return instruction.ip_rel_memory_address
            return None
        return None

    def text(self, address: int) -> str:
        """Intel syntax, addresses in full."""
        instruction = self._kept.get(address)
        return _UNREADABLE if instruction is None else self._formatter.format(instruction)

    def condition(self, block: Sequence[int]) -> str:
        """The condition code, and what last set the flags where the block shows it: `a after cmp edi, 7`."""
        branch = self._kept[block[-1]]
        code = _CODES.get(branch.condition_code)
        if code is None:
            return self._formatter.format_mnemonic(branch)
        read = branch.rflags_read
        for address in reversed(block[:-1]):
            instruction = self._kept[address]
            if instruction.rflags_modified & read:
                return f"{code} after {self._formatter.format(instruction)}"
            if instruction.flow_control != _NEXT:
                break
        return code

    def references(self, blocks: Mapping[int, Block]) -> Iterator[Reference]:
        """Operands that are relative to the instruction pointer or absolute; immediates where code cannot move."""
        for block in blocks.values():
            for address in block.instructions:
                yield from self._references(address)

    def is_padding(self, code: bytes) -> bool:
        """Breakpoints, zeros, or instructions that do nothing (`nop` of any length, `xchg ax, ax`)."""
        if not code.strip(b"\xcc") or not code.strip(b"\0"):
            return True
        return all(one.mnemonic == Mnemonic.NOP for one in Decoder(64, code))

    def _references(self, address: int) -> Iterator[Reference]:
        instruction = self._kept.get(address)
        if instruction is None:
            return
        if instruction.is_ip_rel_memory_operand:
            yield Reference(address, self._access(instruction), instruction.ip_rel_memory_address)
        elif self._image.fixed:
            target = self._absolute(instruction)
            if target is not None and self._image.area(target) is not None:
                yield Reference(address, target=target, kind=self._fixed_kind(instruction))

    def _absolute(self, instruction: Instruction) -> int | None:
        for at in range(instruction.op_count):
            kind = instruction.op_kind(at)
            if kind in _IMMEDIATES:
                return instruction.immediate(at) & 0xFFFF_FFFF_FFFF_FFFF
            if (
                kind == OpKind.MEMORY
                and instruction.memory_base == Register.NONE
                and instruction.memory_displ_size >= 4
                and instruction.segment_prefix == Register.NONE
            ):
                return instruction.memory_displacement & 0xFFFF_FFFF_FFFF_FFFF
        return None

    def _fixed_kind(self, instruction: Instruction) -> Access:
        if any(instruction.op_kind(at) == OpKind.MEMORY for at in range(instruction.op_count)):
            return self._access(instruction)
        return "address"

    def _access(self, instruction: Instruction) -> Access:
        if instruction.mnemonic == Mnemonic.LEA:
            return "address"
        used = self._info.info(instruction).used_memory()
        return _ACCESS.get(used[0].access, "read") if used else "address"

    def _at(self, address: int) -> Decoder | None:
        """The decoder of the area that holds an address, set there."""
        area = self._area
        if area is None or not area.start <= address < area.end:
            area = self._image.code(address)
            if area is None:
                return None
            self._area = area
            self._decoder = self._decoders.get(area.start)
            if self._decoder is None:
                self._decoder = self._decoders[area.start] = Decoder(64, area.data)
        decoder = self._decoder
        assert decoder is not None
        decoder.position = address - area.start
        decoder.ip = address
        return decoder

    def _leaving(self, instruction: Instruction, at: int, following: int, high: int) -> Run | None:
        """How the flow goes on behind an instruction that may change it; None where it just goes on."""
        flow = instruction.flow_control
        kind = _KINDS.get(flow)
        if kind is None:  # an interrupt: `int3` is padding where another follows, else the debugger returns
            data = self._area.data if self._area else b""
            start = self._area.start if self._area else 0
            padding = following >= high or data[following - start] == _BREAK
            return Run("trap", at, following) if instruction.code == Code.INT3 and padding else None
        target = slot = None
        if instruction.op0_kind in _NEAR:
            target = instruction.near_branch_target
            if kind == "call" and target == following:
                return None  # only pushes the instruction pointer
        elif kind in ("call", "branch"):
            return None  # a system call, or the end of a transaction
        elif instruction.is_ip_rel_memory_operand:
            slot = instruction.ip_rel_memory_address
        return Run(kind, at, following, target, slot)
