"""Export the control flow that angr recovers: python angr_export.py PROGRAM > export.json

Blocks end after calls, as angr's do: the edge behind one is a `fallthrough` that the call makes. Edges have the
order of the machine, which angr's graph does not keep: a branch goes `taken` first, whatever VEX guards; the entries of
a jump table stand by index, repeated ones included. Addresses are those of the file; operands in the text
of instructions keep those at which angr loaded it.
"""

import json
import sys

import angr
import pyvex


class Exporter:
    def __init__(self, path):
        self.project = angr.Project(path, auto_load_libs=False)
        graph = self.project.analyses.CFGFast(
            normalize=True, force_smart_scan=False, force_complete_scan=False, data_references=False
        )
        self.tables = graph.model.jump_tables
        loaded = self.project.loader.main_object
        self.shift = loaded.mapped_base - loaded.linked_base

    def address(self, value):
        return hex(value - self.shift)

    def operation(self, instruction):
        return f"{self.address(instruction.address)} {instruction.mnemonic} {instruction.op_str}".rstrip()

    def whole(self):
        functions = [
            self.function(one)
            for one in self.project.kb.functions.values()
            if not one.is_alignment and not one.is_simprocedure and not one.is_plt
        ]
        tool = {"name": "angr", "version": angr.__version__}
        return {"format": "affidavit-graph", "version": 1, "tool": tool, "functions": functions}

    def function(self, function):
        blocks, edges, calls = [], [], []
        own = function.block_addrs_set
        for node in sorted(function.transition_graph.nodes(), key=lambda node: node.addr):
            if node.addr not in own or not getattr(node, "size", 0):
                continue
            block = self.project.factory.block(node.addr, node.size)
            out = list(function.transition_graph.out_edges(node, data=True))
            steps = self.steps(node, block, out, own)
            last = self.operation(block.capstone.insns[-1]) if block.capstone.insns else None
            edges += [
                {"source": self.address(node.addr), "ordinal": at, "operation": last, **step}
                for at, step in enumerate(steps)
            ]
            calls += self.calls(node, block, out, own)
            blocks.append(
                {
                    "id": self.address(node.addr),
                    "address": self.address(node.addr),
                    "size": node.size,
                    "exit": self.exit(block, out, steps, own),
                    "text": [self.operation(one) for one in block.capstone.insns],
                }
            )
        entry = self.address(function.addr)
        there = any(block["id"] == entry for block in blocks)
        return {
            "id": entry,
            "name": function.name,
            "entry": entry if there else None,
            "blocks": blocks if there else [],
            "edges": edges if there else [],
            "calls": calls if there else [{**call, "block": None} for call in calls],
        }

    def steps(self, node, block, out, own):
        """The edges out of a block, in the order of the machine."""
        targets = sorted(
            {
                after.addr
                for _, after, data in out
                if data["type"] in ("transition", "fake_return")
                and after.addr in own
                and not data.get("outside")
            }
        )
        table = self.tables.get(node.addr)
        if table is not None and table.jumptable_entries:
            cases = [one for one in table.jumptable_entries if one in own]
            steps = [
                {"kind": "case", "case": at, "target": self.address(one)} for at, one in enumerate(cases)
            ]
            rest = [one for one in targets if one not in cases]
            return steps + [{"kind": "default", "target": self.address(one)} for one in rest]
        behind = node.addr + node.size
        if self.branches(block):
            return [
                {"kind": kind, "polarity": polarity, "target": self.address(one)}
                for kind, polarity, wanted in (("taken", True, False), ("fallthrough", False, True))
                for one in targets
                if (one == behind) is wanted
            ]
        return [
            {"kind": "fallthrough" if one == behind else "jump", "target": self.address(one)}
            for one in targets
        ]

    def branches(self, block):
        return any(
            isinstance(one, pyvex.stmt.Exit) and one.jk == "Ijk_Boring" for one in block.vex.statements
        )

    def calls(self, node, block, out, own):
        """The calls of a block, jumps to other functions included."""
        found = []
        for _, after, data in out:
            if data["type"] == "call":
                kind = "direct"
            elif data["type"] == "transition" and (data.get("outside") or after.addr not in own):
                kind = "tail"
            else:
                continue
            callee = self.project.kb.functions.get_by_addr(after.addr)
            target = self.address(after.addr) if after.addr >= self.shift else None
            found.append(
                {
                    "block": self.address(node.addr),
                    "address": self.address(block.instruction_addrs[-1]),
                    "kind": kind,
                    "callee": target,
                    "target": target,
                    "name": callee.name,
                }
            )
        if not found and block.vex.jumpkind == "Ijk_Call":
            found.append({"block": self.address(node.addr), "address": None, "kind": "indirect"})
        return found

    def exit(self, block, out, steps, own):
        if block.vex.jumpkind == "Ijk_Ret":
            return "return"
        if any(
            data["type"] == "transition" and (data.get("outside") or after.addr not in own)
            for _, after, data in out
        ):
            return "tail-call"
        if steps:
            return None
        if block.vex.jumpkind == "Ijk_Call" or block.vex.jumpkind.startswith("Ijk_Sys"):
            return "noreturn"
        if block.vex.jumpkind.startswith("Ijk_Sig") or block.vex.jumpkind == "Ijk_NoDecode":
            return "trap"
        return "unresolved"


if __name__ == "__main__":
    json.dump(Exporter(sys.argv[1]).whole(), sys.stdout)
