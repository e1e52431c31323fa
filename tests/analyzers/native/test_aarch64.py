"""What only AArch64 has: literals in code, pages of addresses, signed return addresses, landing instructions."""

from __future__ import annotations

import re
import struct
import subprocess
from pathlib import Path

import pytest

from affidavit.analyzers.native.analyzer import NativeAnalyzer
from affidavit.analyzers.native.flow.machines.aarch64 import AArch64Decoder
from affidavit.analyzers.native.loading.elf import load_elf
from affidavit.errors import FailedError
from tests.analyzers.native.binaries import Program, analyse, compiled, stripped, tool
from tests.analyzers.native.programs import AARCH64, MARKED

FIXED = ("-O2", "-fno-pie", "-no-pie", "-fno-inline", "-w")
TABLES = ("--param", "case-values-threshold=4")
LOADER = Path("/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("aarch64")


@pytest.fixture(scope="module", params=["whole", "stripped"])
def program(request: pytest.FixtureRequest, folder: Path) -> Program:
    path = compiled(
        folder, "particular.c", AARCH64, "aarch64-gcc", (*FIXED, "-rdynamic", "-moutline-atomics")
    )
    return analyse(path if request.param == "whole" else stripped(path), folder / "facts")


def test_literals_are_no_code_and_are_listed(program: Program) -> None:
    function = program["pooled"]
    assert function.exits == {"return"}
    assert function.item["status"] == "complete"
    (block,) = function.blocks.values()
    assert block["instructions"] == 3
    (rest,) = function.item["unreached"]
    assert int(rest["start"], 16) >= int(block["address"], 16) + block["size"]


def test_a_literal_that_is_an_address_is_named(program: Program) -> None:
    function = program["pooled"]
    (counter,) = {row["target"] for row in _references(program, "counting") if row["kind"] == "write"}
    assert [(row["kind"], row["target"]) for row in _references(program, "pooled")][:1] == [
        ("address", counter)
    ]
    assert {row["kind"] for row in _references(program, "pooled")} == {"address", "read"}
    assert function.item["call_count"] == 0


def test_pages_and_places_are_one_address(program: Program) -> None:
    texts = {row["id"]: row["value"] for row in program.rows["strings"]}
    named = {texts[row["string"]] for row in _references(program, "greeting") if row["string"]}
    assert named == {"a greeting that is kept"}
    counting = _references(program, "counting")
    assert {row["kind"] for row in counting} >= {"read", "write"}
    assert len({row["target"] for row in counting if row["kind"] == "write"}) == 1


def test_an_address_is_known_over_loops_and_calls(program: Program) -> None:
    looping = _references(program, "looping")
    (counter,) = {row["target"] for row in _references(program, "counting") if row["kind"] == "write"}
    function = program["looping"]
    (block,) = function.calling("counting")
    assert block in function.reach(block) - {function.entry}
    assert counter in {row["target"] for row in looping if row["block"] == block and row["kind"] == "write"}


def test_bits_are_tested_without_flags(program: Program) -> None:
    function = program["bit"]
    (taken,) = [edge for edge in function.edges if edge["kind"] == "taken"]
    (other,) = [
        edge for edge in function.edges if edge["kind"] == "fallthrough" and edge["polarity"] is False
    ]
    assert re.fullmatch(r"tbn?z w0, #0x3", taken["condition"])
    assert taken["polarity"] is True
    assert taken["condition"] == other["condition"]


def test_breakpoints_end_the_flow_but_for_a_debugger(program: Program) -> None:
    assert program["breaking"].exits == {"trap"}
    assert program["stopping"].exits == {"return"}


def test_atomics_that_are_functions(program: Program) -> None:
    function = program["atomic"]
    assert "return" in function.exits or "tail-call" in function.exits
    (call,) = function.calls
    called = program.items[call["callee"]]
    assert called["returns"] is True
    assert called["status"] == "complete"


def test_what_is_declared_to_be_data_is_not_decoded(folder: Path) -> None:
    path = compiled(
        folder, "particular.c", AARCH64, "aarch64-gcc", (*FIXED, "-rdynamic", "-moutline-atomics")
    )
    declared = analyse(path, folder / "facts")["misled"]
    assert "unresolved" in declared.exits
    assert [one["kind"] for one in declared.item["unknowns"]] == ["undecodable"]
    bare = analyse(stripped(path), folder / "facts")["misled"]
    assert bare.exits == {"return"}


@pytest.mark.parametrize("kind", ["signed", "landing"])
def test_protected_branches_change_no_graph(folder: Path, kind: str) -> None:
    flags = {
        "signed": ("-mbranch-protection=standard", "-march=armv8.3-a", "-Wl,-z,pac-plt"),
        "landing": ("-mbranch-protection=bti", "-Wl,-z,force-bti"),
    }[kind]
    plain = analyse(compiled(folder, "plain.c", MARKED, "aarch64-gcc", (*FIXED, *TABLES)), folder / "facts")
    name = f"{kind}.c"
    path = compiled(folder, name, MARKED, "aarch64-gcc", (*FIXED, *TABLES, *flags))
    program = analyse(stripped(path), folder / "facts")
    whole = analyse(path, folder / "facts")
    texts = [line for one in whole.functions() for block in one.blocks.values() for line in block["text"]]
    assert any(" bti" in line or " paciasp" in line for line in texts)
    for name in ("dense", "looped", "threaded", "last", "checked", "tail", "pointer", "jumping", "diamond"):
        found, expected = whole[name], plain[name]
        assert found.reached() == expected.reached()
        assert found.exits == expected.exits
        assert [
            len(one["targets"]) if "targets" in one else one["entries"] for one in found.item["tables"]
        ] == [one["entries"] for one in expected.item["tables"]]
        assert program.items[found.item["id"]]["edges"] == found.edges
    assert {"exit", "abort"} <= {row["name"] for row in whole.rows["functions"] if row["kind"] == "import"}


def test_calls_through_the_table_of_imports(folder: Path) -> None:
    path = compiled(
        folder, "direct.c", MARKED, "aarch64-gcc", ("-O2", "-fno-inline", "-w", "-fno-plt", "-fPIE", "-pie")
    )
    program = analyse(path, folder / "facts")
    last = program["last"]
    assert last.names() == {"m1", "exit"}
    assert last.exits == {"noreturn"}
    assert {call["kind"] for call in last.calls if call["name"] == "exit"} <= {"indirect", "tail"}
    assert program["die"].item["returns"] is False
    assert not program["checked"].leads("m0", "m5")


def test_other_byte_order_and_size_are_refused(folder: Path) -> None:
    big = folder / "big.so"
    source = folder / "one.c"
    source.write_text("int one(void) { return 1; }")
    command = [
        tool("aarch64-linux-gnu-gcc"),
        "-mbig-endian",
        "-nostdlib",
        "-shared",
        "-o",
        str(big),
        str(source),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    small = folder / "arm"
    ident = b"\x7fELF" + bytes([1, 1, 1]) + bytes(9)
    small.write_bytes(ident + struct.pack("<HHIIIIIHHHHHH", 2, 40, 1, 0x8000, 52, 0, 0, 52, 32, 0, 40, 0, 0))
    for path, said in ((big, "64-bit big-endian"), (small, "32-bit little-endian")):
        with pytest.raises(FailedError) as caught:
            analyse(path, folder / "facts", NativeAnalyzer(processes=1))
        assert caught.value.code == "artifact-unsupported"
        assert said in caught.value.message
        assert "AArch64" in (caught.value.hint or "")


def test_branches_are_told_from_the_encoding_as_objdump_tells_them() -> None:
    tool("aarch64-linux-gnu-gcc")
    with LOADER.open("rb") as file:
        image = load_elf(file)
    decoder = AArch64Decoder(image)
    command = [
        tool("aarch64-linux-gnu-objdump"),
        "-d",
        "-w",
        "--no-show-raw-insn",
        "-j",
        ".text",
        str(LOADER),
    ]
    listing = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100).stdout
    compared = 0
    for line in re.finditer(r"^ +([0-9a-f]+):\t(\S+)(?:\t(.*))?$", listing, re.MULTILINE):
        address, mnemonic, operands = int(line[1], 16), line[2], line[3] or ""
        if image.code(address) is None or mnemonic.startswith("."):
            continue
        decoder.begin()
        run = decoder.run(address, address, address + 4)
        expected = _kind(mnemonic)
        assert run.kind == expected, line[0]
        target = re.search(r"\b([0-9a-f]+) <", operands)
        if expected in ("jump", "call", "branch"):
            assert target is not None
            assert run.target == int(target[1], 16), line[0]
        compared += 1
    assert compared > 20_000


def _kind(mnemonic: str) -> str:
    if mnemonic.startswith("b.") or mnemonic in ("cbz", "cbnz", "tbz", "tbnz"):
        return "branch"
    exact = {"b": "jump", "bl": "call", "br": "indirect-jump", "blr": "indirect-call", "ret": "return"}
    exact |= {"brk": "trap", "hlt": "trap", "udf": "trap"}
    return exact.get(mnemonic, "left")


def _references(program: Program, name: str) -> list[dict[str, str]]:
    identity = program[name].item["id"]
    return [dict(row) for row in program.rows["references"] if row["function"] == identity]
