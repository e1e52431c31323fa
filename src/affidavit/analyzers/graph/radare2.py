"""radare2's `agfj` (blocks of functions) and `agCj` (calls between them) in the documented form.

Read from the fields that the tool has written since version 5: addresses are whole 64-bit numbers under `addr`
(`offset` before version 6), an absent `jump` or `fail` says that there is none. Conventions: a block does not end at a
call; its edges are the cases of its switch by position and then the default, or `jump` before `fail`. A jump to where
the function has no block is a tail call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

__all__ = ["convert", "is_calls", "is_function", "is_functions"]

_NOWHERE: Final = (1 << 64) - 1
_JUMPS: Final = frozenset({"jmp", "cjmp"})
_COMPUTED: Final = frozenset({"ujmp", "ucjmp", "rjmp", "ijmp", "irjmp", "mjmp", "mcjmp"})
_DIRECT_CALLS: Final = frozenset({"call", "ccall"})
_COMPUTED_CALLS: Final = frozenset({"ucall", "uccall", "rcall", "icall", "ircall"})
_EXITS: Final[Mapping[str, str]] = {
    "ret": "return", "cret": "return", "trap": "trap", "ill": "trap",
    "call": "noreturn", "ccall": "noreturn", "ucall": "noreturn", "rcall": "noreturn", "icall": "noreturn",
}  # fmt: skip

Item = dict[str, Any]


def is_function(value: object) -> bool:
    """Whether a value is one function of `agfj`."""
    return isinstance(value, dict) and "blocks" in value and ("addr" in value or "offset" in value)


def is_functions(value: object) -> bool:
    """Whether a value is the output of `agfj`."""
    return isinstance(value, list) and any(map(is_function, cast("list[Any]", value)))


def is_calls(value: object) -> bool:
    """Whether a value is the output of `agCj`."""
    return isinstance(value, list) and any(
        isinstance(item, dict) and "imports" in item and "blocks" not in item
        for item in cast("list[Any]", value)
    )


def convert(flows: Sequence[Any], calls: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The functions in the documented form, and each as it was given.

    What is no function of `agfj` is passed on as it is, for the check of the form to refuse it with its place.
    """
    functions = [_function(item) for item in flows]
    records: list[Any] = list(flows)
    known: dict[str, Item] = {}
    ids: dict[str, str] = {}
    for function in filter(_is_item, functions):
        known.setdefault(str(function.get("id")), function)
        ids.setdefault(str(function.get("name")), str(function.get("id")))
    named = [cast("Item", item) for item in calls if _is_item(item) and isinstance(item.get("name"), str)]
    for item in named:
        name: str = item["name"]
        if name not in ids:
            ids[name] = name
            known[name] = _empty(name, name, None)
            functions.append(known[name])
            records.append(item)
    for item in named:
        _add_calls(known[ids[item["name"]]], item.get("imports"), ids)
    others = [item for item in calls if not (_is_item(item) and isinstance(item.get("name"), str))]
    return [*functions, *others], [*records, *others]


def _is_item(value: Any) -> bool:
    return isinstance(value, dict)


def _empty(identity: Any, name: Any, entry: Any) -> Item:
    return {"id": identity, "name": name, "entry": entry, "blocks": [], "edges": [], "calls": []}


def _add_calls(function: Item, names: object, ids: Mapping[str, str]) -> None:
    """The calls that only the call graph tells of."""
    if not isinstance(names, list):
        function.setdefault("calls", []).append({"kind": "direct", "name": names})
        return
    calls: list[Item] = function.setdefault("calls", [])
    there = {call.get("callee") for call in calls}
    for name in cast("list[Any]", names):
        callee = ids.get(name) if isinstance(name, str) else None
        if callee is None or callee not in there:
            calls.append({"kind": "direct", "callee": callee, "name": name})


def _function(item: Any) -> Any:
    if not is_function(item):
        return item
    identity = _address(item)
    given: Any = item["blocks"]
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in cast("list[Any]", given)):
        odd = _empty(identity, item.get("name"), identity)
        odd["blocks"] = given
        return odd
    blocks = cast("list[Item]", given)
    own: set[Any] = {_address(block) for block in blocks if isinstance(_address(block), str)}
    made = _empty(identity, item.get("name"), identity)
    for block in blocks:
        _add_block(made, block, own)
    return made


def _add_block(made: Item, block: Item, own: set[Any]) -> None:
    identity = _address(block)
    operations = [cast("Item", one) for one in _list(block.get("ops")) if isinstance(one, dict)]
    last = operations[-1] if operations else {}
    kind = str(last.get("type", ""))
    edges = _edges(block, last, own)
    leaves = kind in _JUMPS and _there(last.get("jump")) and _hex(last["jump"]) not in own
    made["edges"] += [
        {"source": identity, "ordinal": at, "operation": _text(last) or None} | edge
        for at, edge in enumerate(edges)
    ]
    made["calls"] += [call for one in operations for call in _call(identity, one)]
    if leaves:
        target = _hex(last["jump"])
        made["calls"].append(
            {"block": identity, "address": _address(last), "kind": "tail", "callee": target, "target": target}
        )
    exit_ = "tail-call" if leaves else None if edges else _EXITS.get(kind, "unresolved")
    made["blocks"].append(
        {
            "id": identity,
            "address": identity,
            "size": block.get("size"),
            "exit": exit_,
            "text": [_text(one) for one in operations],
        }
    )


def _edges(block: Item, last: Item, own: set[Any]) -> list[Item]:
    switch = block.get("switchop")
    if isinstance(switch, dict):
        return _cases(cast("Item", switch), own)
    kind = str(last.get("type", ""))
    jump, fail = block.get("jump"), block.get("fail")
    both = _there(jump) and _there(fail)
    edges: list[Item] = []
    outside = kind in _JUMPS and _there(last.get("jump")) and _hex(last["jump"]) not in own
    if _there(jump) and not (outside and _hex(jump) not in own):
        name = "taken" if both else "jump" if kind in _JUMPS | _COMPUTED else "fallthrough"
        edges.append({"kind": name, "target": _hex(jump), "polarity": True if both else None})
    if _there(fail):
        edges.append(
            {"kind": "fallthrough", "target": _hex(fail), "polarity": False if both or outside else None}
        )
    return edges


def _cases(switch: Item, own: set[Any]) -> list[Item]:
    edges: list[Item] = []
    for one in _list(switch.get("cases")):
        case = cast("Item", one) if isinstance(one, dict) else {}
        edges.append({"kind": "case", "case": case.get("value"), "target": _hex(case.get("jump"))})
    default = switch.get("defval")
    if _there(default) and _hex(default) in own:
        edges.append({"kind": "default", "target": _hex(default)})
    return edges


def _call(block: Any, operation: Item) -> list[Item]:
    kind = operation.get("type")
    if kind in _DIRECT_CALLS:
        target = _hex(operation["jump"]) if _there(operation.get("jump")) else None
        call = {"kind": "direct", "callee": target, "target": target}
    elif kind in _COMPUTED_CALLS:
        call = {"kind": "indirect"}
    else:
        return []
    return [{"block": block, "address": _address(operation)} | call]


def _text(operation: Item) -> str:
    words = operation.get("disasm") or operation.get("opcode") or operation.get("text")
    return f"{_address(operation)} {words}" if words else ""


def _list(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _there(value: object) -> bool:
    return value is not None and value != _NOWHERE


def _address(item: Mapping[str, Any]) -> Any:
    return _hex(item["addr"] if "addr" in item else item.get("offset"))


def _hex(value: Any) -> Any:
    """A whole number of 64 bits as hex text; anything else as it is, for the check of the form to refuse it."""
    return hex(value) if type(value) is int and 0 <= value <= _NOWHERE else value
