"""Lies that are well made: JSON changed in one place, with every id, digest and link that covers it made anew."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import Any

from affidavit.errors import UsageError
from affidavit.evidence._paths import type_of
from affidavit.evidence.canonical import canonical, digest
from affidavit.evidence.identity import body_id
from affidavit.store.journal.lines import make

__all__ = ["mutated_bundle", "mutated_journal"]

_DEPTH = 300
_TEXTS = [
    "",
    "x",
    "ev1_" + "0" * 64,
    "sha256:" + "0" * 64,
    "unk1_" + "a" * 64,
    "complete",
    "observed",
    "\u2028 ",
    "run_x",
]
_SCALARS: list[Any] = [None, True, False, 0, 1, -1, 2, 7, 0.5, 1e21, 9007199254740991, -62135596801]
_TAGS: list[Any] = [
    {"$date": "2026-02-30"}, {"$date": "2026-02-28"}, {"$int": "5"}, {"$int": "9007199254740993"},
    {"$int": "009007199254740993"}, {"$float": "1.50"}, {"$float": "1.0"}, {"$float": "1e400"},
    {"$bytes": "not base64"},
    {"$bytes": "AP8="}, {"$decimal": "1.10"}, {"$decimal": "1e3"}, {"$decimal": "x"}, {"$text": "YQ=="},
    {"$text": "7aCA"}, {"$uuid": "00000000-0000-0000-0000-00000000000A"}, {"$unknown": 1}, {"$$x": 1}, {"$x": 1},
    {"$text:7aCA": 1}, {"$text:YQ==": 1}, {"$datetime": "2026-04-01T12:30:00+00:00:00.5"},
    {"$datetime": "2026-04-01T12:30:00"}, {"$int": 5}, {"$bytes": None}, {"$date": "2026-04-01", "x": 1},
]  # fmt: skip


_VOCABULARIES = [
    ["artifact-bytes", "static-analysis", "inference", "recorded-traffic", "live-source", "imported", "analyst"],
    ["observed", "derived", "inferred"], ["complete", "partial", "unknown"], ["observation", "derivation", "assertion"],
    ["answered", "partial", "unsupported"], ["ok", "failed", "unfinished"], ["always", "batch", "never"],
    ["succeeded", "failed", "rejected", "timed-out", "cancelled", "orphaned"], ["low", "medium", "high", "critical"],
    ["open", "investigating", "blocked", "contradicted", "resolved"], ["verified", "withdrawn", "out-of-scope"],
    ["depends-on", "related-to", "contradicts"], ["session-opened", "run-settled", "answer-given", "preamble-set"],
]  # fmt: skip


def _places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to everything inside a tree."""
    found = [way] if way else []
    items: Any = (
        value.items() if type_of(value) is dict else enumerate(value) if type_of(value) is list else ()
    )
    for step, item in items:
        found += _places(item, (*way, step))
    return found


def _copy(value: Any) -> Any:
    return json.loads(json.dumps(value))


def _wrap(chance: random.Random, old: Any) -> Any:
    for _ in range(chance.choice([1, 2, 99, 101, 210])):
        old = [old]
    return old


def _beside(chance: random.Random, old: Any) -> Any:
    """The value with something more in it."""
    if type_of(old) is dict:
        name = chance.choice(["extra", "note", "$", "zz", "run", "key", "evidence", "data"])
        return {**old, name: chance.choice(_SCALARS)}
    if type_of(old) is list:
        return [*old, chance.choice([*_SCALARS, *_TEXTS, *old])]
    return [old]


def _near(chance: random.Random, old: Any) -> Any:
    known = [it for it in _VOCABULARIES if old in it]
    if known and isinstance(old, str) and chance.random() < 0.7:
        return chance.choice(chance.choice(known))
    if isinstance(old, bool):
        return not old
    if isinstance(old, int):
        return old + chance.choice([-1, 1, 1000])
    if isinstance(old, float):
        return -old
    if isinstance(old, str):
        return chance.choice([old + "x", old[:-1], old.upper(), f" {old}", old[::-1], old + "\n"])
    return old


_ACTIONS: dict[str, Callable[[random.Random, Any], Any]] = {
    "replace": lambda chance, _: chance.choice([*_SCALARS, *_TEXTS, [], {}, [None], {"a": 1}]),
    "tag": lambda chance, _: _copy(chance.choice(_TAGS)),
    "beside": _beside,
    "reverse": lambda _, old: old[::-1] if type_of(old) is list else old,
    "wrap": _wrap,
    "near": _near,
}


def _change(chance: random.Random, tree: Any) -> str:
    """Change a tree in one place; what was done."""
    way = chance.choice(_places(tree))
    above = tree
    for step in way[:-1]:
        above = above[step]
    action = chance.choice([*_ACTIONS, "beside", "near", "other", "remove"])
    if action == "remove":
        del above[way[-1]]
    elif action == "other":
        source = tree
        for step in chance.choice(_places(tree)):
            source = source[step]
        above[way[-1]] = _copy(source)
    else:
        above[way[-1]] = _ACTIONS[action](chance, above[way[-1]])
    return f"{action} at {way}"


def _written(tree: Any) -> bytes | None:
    """The canonical bytes, or None for a tree that has none."""
    try:
        return canonical(tree, max_depth=_DEPTH)
    except UsageError:
        return None


def _renamed(tree: Any, ids: dict[str, str]) -> Any:
    """The tree with ids replaced wherever they stand."""
    text = json.dumps(tree)
    for old, new in ids.items():
        text = text.replace(old, new)
    return json.loads(text)


def _settle(tree: Any, bodies: Callable[[Any], list[tuple[Any, str]]]) -> Any:
    """Give every record the id that it has, and every reference to it, until none changes."""
    for _ in range(8):
        ids: dict[str, str] = {}
        for body, said in bodies(tree):
            data = _written(body)
            if data is not None and len(str(said)) == 68 and body_id(data) != said:
                ids[said] = body_id(data)
        if not ids:
            return tree
        tree = _renamed(tree, ids)
    return tree


def mutated_bundle(chance: random.Random, data: bytes) -> tuple[str, bytes] | None:
    """A bundle changed in one place; None where the change cannot be written."""
    tree = json.loads(data)
    focus = chance.choice(["records", "records", "records", "unknowns", "all", "answer"])
    part: Any = tree if focus == "all" else tree["records" if focus == "answer" else focus]
    if focus == "answer":
        part = [it["body"] for it in part if it["body"]["operation"] == "answer/1"]
    done = _change(chance, part) if part else _change(chance, tree)
    honest = chance.random() < 0.9
    if honest and isinstance(tree.get("records"), list):
        tree = _settle(tree, lambda it: [(one["body"], one["id"]) for one in _entries(it)])
        for one in _entries(tree):
            if "notes" in one and (words := _written(one["notes"])) is not None:
                one["notes_digest"] = digest(words)
        with suppress(KeyError, TypeError, AttributeError, UsageError):
            _tidy(chance, tree)
    rest = {key: value for key, value in tree.items() if key != "whole"}
    covered = _written(rest)
    if covered is None:
        return None
    if "whole" in tree and chance.random() < 0.97:
        tree["whole"] = digest(covered)
    written = _written(tree)
    return None if written is None else (f"{focus}: {done}", written)


def _tidy(chance: random.Random, tree: Any) -> None:
    """Order what must be ordered, and list what must be listed."""
    tree["records"].sort(key=_id_of)
    if chance.random() < 0.9:
        tree["unknowns"].sort(key=partial(canonical, max_depth=_DEPTH))
    answers = [
        it["id"]
        for it in tree["records"]
        if (it["body"]["kind"], it["body"]["operation"]) == ("derivation", "answer/1")
    ]
    if chance.random() < 0.9:
        tree["answers"] = answers
    for one in tree["unknowns"]:
        _digest_again(one)
    present = {it["id"] for it in tree["records"]} | {it["unknown_id"] for it in tree["unknowns"]}
    referred = {parent for it in tree["records"] for parent in it["body"]["parents"]}
    for one in tree["unknowns"]:
        referred |= {*one["supports"], *one["contradicts"], *(it["unknown"] for it in one["relations"])}
    if chance.random() < 0.7:
        tree["missing"] = sorted(referred - present)


def _id_of(entry: dict[str, Any]) -> str:
    return entry["id"]


def _digest_again(one: Any) -> None:
    what = {name: one[name] for name in ("domain", "question", "scope")}
    content = {key: value for key, value in one.items() if key not in ("unknown_id", "digest")}
    one["unknown_id"] = "unk1_" + sha256(b"affidavit/unknown/1\n" + canonical(what)).hexdigest()
    one["digest"] = "sha256:" + sha256(b"affidavit/unknown-revision/1\n" + canonical(content)).hexdigest()


def _entries(tree: Any) -> list[Any]:
    return [it for it in tree["records"] if isinstance(it, dict) and "body" in it and "id" in it]


def mutated_journal(chance: random.Random, data: bytes) -> tuple[str, bytes] | None:
    """A journal changed in one place and chained anew; None where the change cannot be written."""
    contents: list[Any] = []
    for raw in data.splitlines():
        line = json.loads(raw)
        contents.append({key: value for key, value in line.items() if key not in ("n", "prev", "sum")})
    at = chance.randrange(len(contents))
    action = chance.choice(["change"] * 8 + ["remove", "twice", "swap", "insert"])
    done = action
    if action == "change":
        done = _change(chance, contents[at])
    elif action == "remove":
        del contents[at]
    elif action == "twice":
        contents.insert(chance.randrange(len(contents)), json.loads(json.dumps(contents[at])))
    elif action == "swap":
        other = chance.randrange(len(contents))
        contents[at], contents[other] = contents[other], contents[at]
    else:
        contents.insert(at, chance.choice(_INSERTED))
    if chance.random() < 0.9:
        contents = _settle(contents, _kept)
    if chance.random() < 0.6:
        _count_again(contents)
    out, mark = b"", "0" * 64
    for number, content in enumerate(contents):
        written = _written(content)
        if written is None or written == b"{}":
            return None
        line, mark = make(number, mark, written[1:-1])
        out += line
    return f"line {at}: {done}", out


def _kept(contents: Any) -> list[tuple[Any, str]]:
    return [
        (it["record"]["body"], it["adds"])
        for it in contents
        if isinstance(it.get("record"), dict) and "body" in it["record"] and "adds" in it
    ]


def _count_again(contents: list[Any]) -> None:
    count = 0
    for content in contents:
        if "event" in content and "count" in content:
            count += 1
            content["count"] = count
        for name in ("closed", "truncated"):
            if isinstance(content.get(name), dict) and "count" in content[name]:
                content[name]["count"] = count


_INSERTED: list[Any] = [
    {"opened": {"fsync": "never", "product": "0.2.0"}},
    {"opened": {"fsync": "sometimes", "product": "0.2.0"}},
    {"loss": {"cut": True, "digest": "sha256:" + "1" * 64, "length": 7, "part": 1, "place": 10}},
    {"loss": {"cut": True, "length": 7, "part": 1, "place": 10}},
    {"loss": {"cut": False, "length": 7, "part": 1, "place": 10}},
    {"loss": {"cut": False, "length": 7, "part": 2, "place": 10}},
    {"loss": {"cut": False, "length": 1 << 40, "part": 1, "place": 10}},
    {"closed": {"count": 3}},
    {"closed": {}},
    {"truncated": {"bound": 70000, "count": 2}},
    {"continued": {"part": 2}},
    {"blob": {"at": 0, "data": "AAA=", "digest": "sha256:" + sha256(b"\0\0").hexdigest(), "size": 2}},
    {"blob": {"at": 0, "data": "AAA=", "digest": "sha256:" + sha256(b"\0\0").hexdigest(), "size": 3}},
    {"blob": {"at": 2, "data": "AAA=", "digest": "sha256:" + sha256(b"\0\0").hexdigest(), "size": 4}},
    {"count": 1, "event": {"at": 1.5, "data": {"anything": [1]}, "kind": "of-a-later-version", "session": "vector"}},
    {"count": 1, "event": {"at": 1.5, "data": {"code": "x = 1"}, "kind": "preamble-set", "session": "vector"}},
    {"count": 1, "event": {"at": 1.5, "data": {}, "kind": "unknown-revised", "session": "vector"}},
    {"anything": 1},
]  # fmt: skip
