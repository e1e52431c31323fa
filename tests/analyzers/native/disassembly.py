"""What the linker's relocations and objdump's disassembly prove of a binary's control flow: an independent oracle.

The file must have been linked with its relocations kept. Branches are those that objdump prints inside functions that
symbols delimit. A jump table is a run of relocated places in `.rodata` that begins where code takes an address, and
whose entries are all instructions of the function that takes it (compilers keep relative tables of texts there too).
"""

from __future__ import annotations

import re
import struct
import subprocess
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile

from tests.analyzers.native.binaries import tool

__all__ = ["Proven", "proven_flow"]

_LINE = re.compile(r"^\s+([0-9a-f]+):\t(?:(?:bnd|notrack|data16|cs|rep|repz|lock) )*(\S+)(.*)$", re.MULTILINE)
_TARGET = re.compile(r"\s([0-9a-f]+) <")
_NAMED = re.compile(r"# ([0-9a-f]+)")


@dataclass(kw_only=True)
class Proven:
    """One function: its branches as (from, to), and where its jump tables lead."""

    name: str
    branches: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    cases: set[int] = field(default_factory=set[int])


def proven_flow(path: Path) -> dict[int, Proven]:
    """The functions of a binary by address; a `.cold` part belongs to its function."""
    binary = _Binary.read(path)
    code = _disassembled(path)
    found = {
        start: Proven(name=name)
        for start, (_, name) in binary.symbols.items()
        if binary.owner(start) == start
    }
    following = dict(zip(code, list(code)[1:], strict=False))
    tables: dict[int, set[int]] = defaultdict(set)
    for address, (mnemonic, operands) in code.items():
        function = binary.owner(address)
        if function is None:
            continue
        target = _TARGET.search(operands)
        if mnemonic.startswith("j") and target is not None and "*" not in operands:
            to = int(target[1], 16)
            if binary.owner(to) == function:
                found[function].branches.add((address, to))
            if mnemonic != "jmp":
                found[function].branches.add((address, following[address]))
        taken = _NAMED.search(operands) if mnemonic == "lea" else None
        if taken is not None and int(taken[1], 16) in binary.relocated:
            tables[int(taken[1], 16)].add(function)
    for start, end in zip(sorted(tables), [*sorted(tables)[1:], 1 << 62], strict=True):
        entries = list(binary.entries(start, end))
        for function in tables[start]:
            if all(one in code and binary.owner(one) == function for one in entries):
                found[function].cases |= set(entries)
    return found


@dataclass(kw_only=True)
class _Binary:
    """Functions as (size, name) by address, and `.rodata` with the places in it that are relocated."""

    symbols: dict[int, tuple[int, str]]
    base: int
    data: bytes
    relocated: set[int]

    def __post_init__(self) -> None:
        self.named = {name: start for start, (_, name) in self.symbols.items()}
        self.starts = sorted(self.symbols)

    @classmethod
    def read(cls, path: Path) -> _Binary:
        with path.open("rb") as file:
            elf: Any = ELFFile(file)
            constants = elf.get_section_by_name(".rodata")
            relocations = elf.get_section_by_name(".rela.rodata")
            return cls(
                symbols={
                    one["st_value"]: (one["st_size"], one.name)
                    for one in elf.get_section_by_name(".symtab").iter_symbols()
                    if one["st_info"]["type"] == "STT_FUNC"
                    and one["st_size"]
                    and one["st_shndx"] != "SHN_UNDEF"
                },
                base=constants["sh_addr"],
                data=constants.data(),
                relocated={one["r_offset"] for one in relocations.iter_relocations()},
            )

    def owner(self, address: int) -> int | None:
        at = bisect_right(self.starts, address) - 1
        if at < 0 or address >= self.starts[at] + self.symbols[self.starts[at]][0]:
            return None
        whole = re.sub(r"\.cold(\.\d+)?$", "", self.symbols[self.starts[at]][1])
        return self.named.get(whole, self.starts[at])

    def entries(self, start: int, end: int) -> Iterator[int]:
        """What a run of relocated places holds: offsets from where it begins."""
        place = start
        while place in self.relocated and place < end:
            yield start + struct.unpack_from("<i", self.data, place - self.base)[0]
            place += 4


def _disassembled(path: Path) -> dict[int, tuple[str, str]]:
    command = [tool("objdump"), "-d", "-w", "--no-show-raw-insn", "-j", ".text", str(path)]
    text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
    return {int(line[1], 16): (line[2], line[3]) for line in _LINE.finditer(text)}
