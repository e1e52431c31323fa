# Export the control flow that Ghidra recovers. For its headless analyzer, with Jython or PyGhidra:
#
#   analyzeHeadless PROJECTS NAME -import PROGRAM -postScript ghidra_export.py export.json
#
# Blocks are those of Ghidra's basic block model; where that ends a block after a call, the edge behind it is a
# `fallthrough`. A branch goes `taken` first; the cases of a computed jump stand by address, since the model keeps no
# order of a jump table, and so have no `case`. Addresses are those of the program in Ghidra.
# @category Export
import json

from ghidra.framework import Application
from ghidra.program.model.block import BasicBlockModel


def address(value):
    return hex(value.getOffset()).rstrip("L")


def operation(instruction):
    return address(instruction.getAddress()) + " " + instruction.toString()


def instructions(block):
    return list(currentProgram.getListing().getInstructions(block, True))


def references(block):
    found = []
    iterator = block.getDestinations(monitor)
    while iterator.hasNext():
        found.append(iterator.next())
    return found


def steps(out, own):
    """The edges out of a block, in the order of the machine."""
    found = []
    inside = [
        one for one in out if address(one.getDestinationAddress()) in own and not one.getFlowType().isCall()
    ]
    branches = any(one.getFlowType().isConditional() for one in inside)
    for one in sorted(
        inside, key=lambda one: (one.getFlowType().isFallthrough(), one.getDestinationAddress())
    ):
        flow, step = one.getFlowType(), {"target": address(one.getDestinationAddress())}
        if flow.isFallthrough():
            step["kind"] = "fallthrough"
        elif flow.isComputed():
            step["kind"] = "case"
        else:
            step["kind"] = "taken" if branches else "jump"
        if branches and not flow.isComputed():
            step["polarity"] = not flow.isFallthrough()
        found.append(step)
    return found


def leaving(last, out, made, own):
    """How the flow leaves the function behind a block."""
    flow = last.getFlowType() if last is not None else None
    if flow is not None and flow.isTerminal() and not flow.isCall():
        return "return" if not flow.isJump() else "tail-call"
    if any(one.getFlowType().isJump() and address(one.getDestinationAddress()) not in own for one in out):
        return "tail-call"
    if made:
        return None
    return "noreturn" if flow is not None and flow.isCall() else "unresolved"


def calls(block, listed, own):
    found = []
    for instruction in listed:
        flow = instruction.getFlowType()
        if not (flow.isCall() or flow.isJump()):
            continue
        targets = [address(one) for one in instruction.getFlows()]
        outside = [one for one in targets if one not in own]
        kind = "direct" if flow.isCall() else "tail"
        place = {"block": block, "address": address(instruction.getAddress())}
        if flow.isCall() and not targets:
            found.append(dict(place, kind="indirect"))
        wanted = targets if flow.isCall() else outside
        found += [dict(place, kind=kind, callee=one, target=one) for one in wanted]
    return found


def exported(function, model):
    parts = []
    iterator = model.getCodeBlocksContaining(function.getBody(), monitor)
    while iterator.hasNext():
        parts.append(iterator.next())
    parts.sort(key=lambda part: part.getFirstStartAddress())
    own = {address(part.getFirstStartAddress()) for part in parts}
    entry = address(function.getEntryPoint())
    made = {"id": entry, "name": function.getName(), "entry": entry, "blocks": [], "edges": [], "calls": []}
    if entry not in own:
        return dict(made, entry=None)
    for part in parts:
        identity, listed = address(part.getFirstStartAddress()), instructions(part)
        last = listed[-1] if listed else None
        out = references(part)
        edges = steps(out, own)
        for ordinal, edge in enumerate(edges):
            edge.update(source=identity, ordinal=ordinal, operation=None if last is None else operation(last))
        made["edges"] += edges
        made["calls"] += calls(identity, listed, own)
        made["blocks"].append(
            {
                "id": identity,
                "address": identity,
                "size": int(part.getNumAddresses()),
                "exit": leaving(last, out, edges, own),
                "text": [operation(one) for one in listed],
            }
        )
    return made


def whole():
    model = BasicBlockModel(currentProgram)
    functions = [exported(one, model) for one in currentProgram.getFunctionManager().getFunctions(True)]
    tool = {"name": "Ghidra", "version": str(Application.getApplicationVersion())}
    return {"format": "affidavit-graph", "version": 1, "tool": tool, "functions": functions}


with open(getScriptArgs()[0], "w") as file:
    json.dump(whole(), file)
