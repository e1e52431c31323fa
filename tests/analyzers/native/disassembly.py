"""What the linker's relocations and objdump's disassembly prove of a binary's control flow: an independent oracle.

The file must have been linked with its relocations kept. Branches are those that objdump prints inside functions that
symbols delimit. On x86-64 a jump table is a run of relocated places in `.rodata` that begins where code takes an
address, and whose entries are all instructions of the function that takes it (compilers keep relative tables of texts
there too). On AArch64 entries are differences that the assembler computes and no relocation remembers, so there the
compiler's assembly proves them: its labels are kept as symbols.
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

from tests.analyzers.native.binaries import is_aarch64, tool

__all__ = ["Proven", "proven_flow"]

_LINE = re.compile(r"^\s+([0-9a-f]+):\t(?:(?:bnd|notrack|data16|cs|rep|repz|lock) )*(\S+)(.*)$", re.MULTILINE)
_TARGET = re.compile(r"\s([0-9a-f]+) <")
_NAMED = re.compile(r"# ([0-9a-f]+)")
_AARCH64_BRANCH = re.compile(r"b|b\.\w+|cbn?z|tbn?z")
_ENTRIES = re.compile(
    r"(?:^\s*\.(?:byte|2byte|4byte|hword|word)\s+\(?\.L\w+ ?- ?\.L\w+\)?.*\n)+", re.MULTILINE
)
_ENTRY = re.compile(r"\(?(\.L\w+) ?- ?\.L")
_VENEER = re.compile(r"e843419@")


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
    binary.adopt(code)
    found = {
        start: Proven(name=name)
        for start, (_, name) in binary.symbols.items()
        if binary.owner(start) == start
    }
    following = dict(zip(code, list(code)[1:], strict=False))
    for address, (mnemonic, operands) in code.items():
        function = binary.owner(address)
        if function is None or not _is_branch(mnemonic, operands):
            continue
        target = _TARGET.search(operands)
        if target is not None:
            to = int(target[1], 16)
            if binary.owner(to) == function:
                found[function].branches.add((address, to))
            if mnemonic not in ("jmp", "b"):
                found[function].branches.add((address, following[address]))
    labelled = is_aarch64(path)
    tables = _labelled_tables(path, binary) if labelled else _relocated_tables(binary, code)
    for function, entries in tables:
        if all(one in code and binary.owner(one) == function for one in entries):
            found[function].cases |= set(entries)
    return found


def _is_branch(mnemonic: str, operands: str) -> bool:
    if _AARCH64_BRANCH.fullmatch(mnemonic):
        return True
    return mnemonic.startswith("j") and "*" not in operands


def _relocated_tables(binary: _Binary, code: dict[int, tuple[str, str]]) -> Iterator[tuple[int, list[int]]]:
    """What may be tables, each with the function that takes its address."""
    tables: dict[int, set[int]] = defaultdict(set)
    for address, (mnemonic, operands) in code.items():
        function = binary.owner(address)
        taken = _NAMED.search(operands) if mnemonic == "lea" else None
        if function is not None and taken is not None and int(taken[1], 16) in binary.relocated:
            tables[int(taken[1], 16)].add(function)
    for start, end in zip(sorted(tables), [*sorted(tables)[1:], 1 << 62], strict=True):
        for function in tables[start]:
            yield function, list(binary.entries(start, end))


def _labelled_tables(path: Path, binary: _Binary) -> Iterator[tuple[int, list[int]]]:
    """What may be tables in the assembly beside the file, each with the function of its first entry."""
    for table in _ENTRIES.finditer(path.with_name("sqlite3.s").read_text()):
        entries = [binary.labels.get(label, 0) for label in _ENTRY.findall(table[0])]
        function = binary.owner(entries[0])
        if function is not None:
            yield function, entries


@dataclass(kw_only=True)
class _Binary:
    """Functions as (size, name) by address, other labels, and `.rodata` with the places in it that are relocated."""

    symbols: dict[int, tuple[int, str]]
    labels: dict[str, int]
    base: int
    data: bytes
    relocated: set[int]

    def __post_init__(self) -> None:
        self.adopted: dict[int, int] = {}
        self.named = {name: start for start, (_, name) in self.symbols.items()}
        self.starts = sorted(self.symbols)

    @classmethod
    def read(cls, path: Path) -> _Binary:
        with path.open("rb") as file:
            elf: Any = ELFFile(file)
            constants = elf.get_section_by_name(".rodata")
            relocations = elf.get_section_by_name(".rela.rodata")
            symbols = list(elf.get_section_by_name(".symtab").iter_symbols())
            return cls(
                symbols={
                    one["st_value"]: (one["st_size"], one.name)
                    for one in symbols
                    if one["st_info"]["type"] == "STT_FUNC"
                    and one["st_size"]
                    and one["st_shndx"] != "SHN_UNDEF"
                },
                labels={one.name: one["st_value"] for one in symbols if one.name.startswith(".L")},
                base=constants["sh_addr"],
                data=constants.data(),
                relocated={one["r_offset"] for one in relocations.iter_relocations()}
                if relocations
                else set(),
            )

    def adopt(self, code: dict[int, tuple[str, str]]) -> None:
        """What the linker moved away around an erratum of the processor belongs to the function that jumps there."""
        moved = {start for start, (_, name) in self.symbols.items() if _VENEER.match(name)}
        for address, (mnemonic, operands) in code.items():
            target = _TARGET.search(operands) if mnemonic == "b" else None
            if target is not None and int(target[1], 16) in moved:
                owner = self.owner(address)
                assert owner is not None
                self.adopted[int(target[1], 16)] = owner

    def owner(self, address: int) -> int | None:
        at = bisect_right(self.starts, address) - 1
        if at < 0 or address >= self.starts[at] + self.symbols[self.starts[at]][0]:
            return None
        if self.starts[at] in self.adopted:
            return self.adopted[self.starts[at]]
        whole = re.sub(r"\.cold(\.\d+)?$", "", self.symbols[self.starts[at]][1])
        return self.named.get(whole, self.starts[at])

    def entries(self, start: int, end: int) -> Iterator[int]:
        """What a run of relocated places holds: offsets from where it begins."""
        place = start
        while place in self.relocated and place < end:
            yield start + struct.unpack_from("<i", self.data, place - self.base)[0]
            place += 4


def _disassembled(path: Path) -> dict[int, tuple[str, str]]:
    objdump = "aarch64-linux-gnu-objdump" if is_aarch64(path) else "objdump"
    command = [tool(objdump), "-d", "-w", "--no-show-raw-insn", "-j", ".text", str(path)]
    text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
    return {int(line[1], 16): (line[2], line[3]) for line in _LINE.finditer(text)}
