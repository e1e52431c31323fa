"""Exports for tests: one function that can leave around its check, and how to change it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

__all__ = ["GUARDED", "exported", "guarded", "radare2_function", "write"]

GUARDED: dict[str, Any] = {
    "id": "guarded",
    "name": "guarded",
    "entry": "start",
    "blocks": [
        {"id": "end", "exit": "return"},
        {"id": "start", "address": "0xffffffff81000000", "size": 8, "text": ["test rdi, rdi", "je end"]},
        {"id": "check"},
    ],
    "edges": [
        {"source": "start", "target": "check", "ordinal": 1, "kind": "fallthrough", "polarity": False},
        {
            "source": "start",
            "target": "end",
            "ordinal": 0,
            "kind": "taken",
            "condition": "e after test rdi, rdi",
            "polarity": True,
            "operation": "0xffffffff81000004 je",
        },
        {"source": "check", "target": "end", "ordinal": 0, "kind": "jump"},
    ],
    "calls": [{"block": "check", "kind": "direct", "callee": "checker", "name": "checker"}],
}


def guarded() -> dict[str, Any]:
    """The function, to be changed."""
    return copy.deepcopy(GUARDED)


def exported(*functions: Any, **changes: Any) -> dict[str, Any]:
    """An export of these functions."""
    tool = {"name": "sampler", "version": "2.1"}
    return {"format": "affidavit-graph", "version": 1, "tool": tool, "functions": list(functions), **changes}


def write(folder: Path, value: Any, name: str = "export.json") -> Path:
    """A file of a value, or of text or bytes as they are."""
    path = folder / name
    if isinstance(value, bytes):
        path.write_bytes(value)
    else:
        path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def radare2_function(key: str = "addr", base: int = 0xFFFFFFFF81000000) -> dict[str, Any]:
    """A function as radare2 6 prints it (`key` is `offset` before): a branch, a switch, calls and a tail call."""

    def operation(at: int, disasm: str, kind: str, **more: int) -> dict[str, Any]:
        return {key: base + at, "size": 2, "disasm": disasm, "opcode": disasm, "type": kind, **more}

    def block(at: int, *operations: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {key: base + at, "size": 2 * len(operations), **more, "ops": list(operations)}

    return {
        "name": "sym.pick",
        key: base,
        "nargs": 1,
        "blocks": [
            block(
                0,
                operation(0, "cmp edi, 2", "cmp"),
                operation(2, "ja 0x30", "cjmp", jump=base + 0x30, fail=base + 4),
                jump=base + 0x30,
                fail=base + 4,
            ),
            block(
                4,
                operation(4, "jmp rax", "rjmp"),
                switchop={
                    key: base + 4,
                    "defval": (1 << 64) - 1,
                    "maxval": 2,
                    "minval": 0,
                    "cases": [
                        {key: base + 4, "value": 0, "jump": base + 0x10},
                        {key: base + 4, "value": 1, "jump": base + 0x20},
                        {key: base + 4, "value": 2, "jump": base + 0x10},
                    ],
                },
            ),
            block(
                0x10,
                operation(0x10, "call sym.one", "call", jump=base + 0x100),
                operation(0x12, "ret", "ret"),
            ),
            block(0x20, operation(0x20, "jmp sym.two", "jmp", jump=base + 0x200), jump=base + 0x200),
            block(0x30, operation(0x30, "call rdx", "rcall"), operation(0x32, "ud2", "trap")),
        ],
    }
