"""Discovery: find operations by words, and see one whole. Small on purpose, since agents pay for every token.

`describe` without words or path is the map; with words it ranks operations; with a path it shows one namespace or
one operation. Every answer names the next step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import orjson

from affidavit.errors import NotFoundError
from affidavit.evidence.record import JsonValue
from affidavit.namespaces.names import closest, words_of
from affidavit.namespaces.operation import Namespace, Operation, Parameter
from affidavit.namespaces.stubs import default_text, parameter_list

__all__ = ["Description", "Directory", "Found", "describe"]

MAX_FOUND: Final = 8
MAX_LISTED: Final = 40
MAX_LEFT_OUT: Final = 10
MAX_ALSO: Final = 3
_WEIGHTS: Final = {"name": 8.0, "path": 4.0, "parameter": 2.0, "doc": 1.0}
_PREFIX: Final = 0.4  # how much a word that only begins like an asked one counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One line of a listing: how to call it, and what it is for.

    `also` are the paths of operations with the very same contract, in other datasets.
    """

    path: str
    signature: str
    doc: str
    also: tuple[str, ...] = ()

    def as_json(self) -> dict[str, JsonValue]:
        """The line as JSON; of many others with the same contract, three are named."""
        line: dict[str, JsonValue] = {"path": self.path, "signature": self.signature, "doc": self.doc}
        if self.also:
            line["also"] = list(self.also[:MAX_ALSO])
            line["also_total"] = len(self.also)
        return line

    def text(self) -> str:
        """The line as text."""
        more = ", ".join(f"df.{one}" for one in self.also[:MAX_ALSO])
        rest = f" and {len(self.also) - MAX_ALSO} more" if len(self.also) > MAX_ALSO else ""
        words = [*([self.doc] if self.doc else []), *([f"Also {more}{rest}."] if more else [])]
        return self.signature + (f"  # {' '.join(words)}" if words else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """A listing: the map of everything, a namespace's content, or what a search found, best first.

    Attributes:
        path: the namespace that is listed; `df` for the whole.
        found: the lines shown.
        total: how many there are, shown or not.
        hint: the next step.
        left_out: what is there and cannot be offered, and why; only where there is any.
    """

    path: str
    found: tuple[Found, ...]
    total: int
    hint: str
    doc: str = ""
    left_out: tuple[str, ...] = ()

    def as_json(self) -> dict[str, JsonValue]:
        """The listing as JSON."""
        shown: dict[str, JsonValue] = {
            "path": self.path,
            "doc": self.doc,
            "found": [one.as_json() for one in self.found],
            "total": self.total,
            "hint": self.hint,
        }
        return shown | {"left_out": list(self.left_out)} if self.left_out else shown

    def text(self) -> str:
        """The listing as text: a signature and a comment per line."""
        lines = [f"# {self.path}: {self.doc}"] if self.doc else []
        lines += [one.text() for one in self.found]
        if self.total > len(self.found):
            lines.append(f"# {self.total - len(self.found)} more")
        lines += [f"# left out: {one}" for one in self.left_out]
        return "\n".join([*lines, f"# {self.hint}"]) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """One operation, whole.

    Attributes:
        declarations: source of the types that the signature mentions.
        example: a call that passes the check, with placeholders for what is required.
        input_schema: given only with `full`.
        output_schema: given only with `full`.
    """

    path: str
    signature: str
    doc: str
    effect: str
    contract: str
    parameters: tuple[Parameter, ...]
    declarations: tuple[str, ...]
    example: str
    input_schema: Mapping[str, JsonValue] | None = None
    output_schema: Mapping[str, JsonValue] | None = None
    companions: tuple[str, ...] = field(default_factory=tuple)

    def as_json(self) -> dict[str, JsonValue]:
        """The description as JSON; schemas only where they were asked for."""
        result: dict[str, JsonValue] = {
            "path": self.path,
            "signature": self.signature,
            "doc": self.doc,
            "effect": self.effect,
            "contract": self.contract,
            "parameters": [_parameter_json(one) for one in self.parameters],
            "declarations": list(self.declarations),
            "example": self.example,
        }
        if self.companions:
            result["companions"] = list(self.companions)
        if self.input_schema is not None:
            result["input_schema"] = dict(self.input_schema)
            result["output_schema"] = None if self.output_schema is None else dict(self.output_schema)
        return result

    def text(self) -> str:
        """The description as Python: types, signature, words, an example."""
        lines = [*self.declarations, self.signature, *self.companions]
        lines += [f"    {line}".rstrip() for line in self.doc.splitlines()]
        lines += [f"    {one.name}: {one.doc}" for one in self.parameters if one.doc]
        lines.append(f"# effect: {self.effect} · contract: {self.contract}")
        for what, schema in (("input", self.input_schema), ("output", self.output_schema)):
            if schema is not None:
                lines.append(f"# {what} schema: {orjson.dumps(dict(schema)).decode()}")
        return "\n".join([*lines, self.example]) + "\n"


Answer: TypeAlias = Directory | Description


def describe(root: Namespace, words: str = "", path: str = "", *, full: bool = False) -> Answer:
    """What may be called.

    Args:
        root: the namespace `df`.
        words: what to search for: words of names, documentation and parameters, in any spelling (`list_issues`,
            `listIssues`, `list issues`).
        path: an operation or namespace (`db.app.modules.page`, with or without `df.`); within it `words` search.
        full: with the JSON Schemas, and without the bound on listings.

    Raises:
        NotFoundError: `operation-unknown`, with the paths that it could mean.
    """
    wanted = path.strip().removeprefix("df.").strip(".").removesuffix("()")
    start, prefix = root, ""
    if wanted and wanted != "df":
        at = _at(root, wanted)
        if isinstance(at, Operation):
            return _description(at, wanted, full=full)
        start, prefix = at, wanted + "."
    entries = list(_walk(start, prefix))
    if words.strip():
        return _search(entries, words, prefix, full=full)
    return _listing(start, prefix, entries, full=full)


def _at(root: Namespace, path: str) -> Operation | Namespace:
    at: Namespace = root
    parts = path.split(".")
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        if part in at.children:
            at = at.children[part]
        elif last and part in at.operations:
            return at.operations[part]
        elif last and (found := _companion(at, part)) is not None:
            return found
        else:
            raise _unknown(root, path)
    return at


def _companion(namespace: Namespace, name: str) -> Operation | None:
    """The paged operation whose generated iterator has this name."""
    return next((one for one in namespace.operations.values() if one.streams == name), None)


def _unknown(root: Namespace, path: str) -> NotFoundError:
    paths = [one for one, _ in _walk(root, "")]
    near = [one for one in paths if one.endswith("." + path)][:3] or closest(path, paths)
    if not near:
        last = path.rsplit(".", 1)[-1]
        near = [one for one in paths if closest(last, one.split("."), count=1)][:3]
    hint = f"Did you mean {', '.join('df.' + one for one in near)}?" if near else "Search with words instead."
    return NotFoundError(
        "operation-unknown", f"there is no df.{path}", hint=hint, details={"path": path, "near": list(near)}
    )


def _walk(namespace: Namespace, prefix: str) -> Iterator[tuple[str, Operation]]:
    for name, operation in namespace.operations.items():
        yield prefix + name, operation
    for name, child in namespace.children.items():
        yield from _walk(child, f"{prefix}{name}.")


def _search(entries: Sequence[tuple[str, Operation]], words: str, prefix: str, *, full: bool) -> Directory:
    asked = list(dict.fromkeys(words_of(words)))
    documents = [_fields(path, operation) for path, operation in entries]
    rarity = {word: _rarity(word, documents) for word in asked}
    scored = [(_rank(asked, rarity, document), place) for place, document in enumerate(documents)]
    hits = sorted(
        ((score, place) for score, place in scored if score > 0),
        key=lambda one: (-one[0], entries[one[1]][0]),
    )
    groups: dict[tuple[str, str], list[int]] = {}
    for _, place in hits:
        operation = entries[place][1]
        groups.setdefault((operation.contract, operation.returns), []).append(place)
    shown = list(groups.values())[: None if full else MAX_FOUND]
    found = tuple(
        replace(_line(*entries[first]), also=tuple(entries[one][0] for one in others))
        for first, *others in shown
    )
    if found:
        hint = f"describe(path={found[0].path!r}) shows types, arguments and an example"
    else:
        known = {word for document in documents for words_ in document.values() for word in words_}
        near = closest(asked[0], known) if asked else []
        hint = (
            f"nothing found; try {' or '.join(near)}"
            if near
            else "nothing found; describe() without words is the map"
        )
    return Directory(path=f"df.{prefix}".strip("."), found=found, total=len(groups), hint=hint)


def _fields(path: str, operation: Operation) -> dict[str, list[str]]:
    above, _, name = path.rpartition(".")
    return {
        "name": words_of(name),
        "path": words_of(above),
        "parameter": [
            word for one in operation.parameters for word in words_of(f"{one.name} {one.original}")
        ],
        "doc": words_of(operation.doc),
    }


def _rank(asked: Sequence[str], rarity: Mapping[str, float], document: Mapping[str, Sequence[str]]) -> float:
    """The sum over the asked words, worth more the more of them there are."""
    scores = [rarity[word] * _score(word, document) for word in asked]
    return sum(scores) * sum(score > 0 for score in scores) / max(len(scores), 1)


def _score(word: str, document: Mapping[str, Sequence[str]]) -> float:
    best = 0.0
    for kind, found in document.items():
        if word in found:
            best = max(best, _WEIGHTS[kind])
        elif len(word) > 2 and any(
            one.startswith(word) or (len(one) > 3 and word.startswith(one)) for one in found
        ):
            best = max(best, _WEIGHTS[kind] * _PREFIX)
    return best


def _rarity(word: str, documents: Sequence[Mapping[str, Sequence[str]]]) -> float:
    holding = sum(any(word in found for found in document.values()) for document in documents)
    return 1.0 + math.log((1 + len(documents)) / (1 + holding))


def _listing(
    start: Namespace, prefix: str, entries: Sequence[tuple[str, Operation]], *, full: bool
) -> Directory:
    """Operations one by one where there are few; else the namespaces with their numbers."""
    if full or len(entries) <= MAX_LISTED:
        found = [_line(path, operation) for path, operation in entries]
        hint = "describe(path=...) shows one whole; describe(words) searches"
    else:
        found = list(_branches(start, prefix))
        hint = "describe(path=...) goes deeper; describe(words) searches"
    if not found:
        hint = "nothing is mounted here"
    return Directory(
        path=f"df.{prefix}".strip("."),
        found=tuple(found if full else found[:MAX_LISTED]),
        total=len(found),
        hint=hint,
        doc=_line_of(start.doc),
        left_out=_left_out(start, full=full),
    )


def _left_out(namespace: Namespace, *, full: bool) -> tuple[str, ...]:
    found = tuple(_gathered(namespace, ""))
    if full:
        return found
    shown = tuple(_line_of(one, limit=200) for one in found[:MAX_LEFT_OUT])
    return (
        shown
        if len(found) <= MAX_LEFT_OUT
        else (*shown, f"{len(found) - MAX_LEFT_OUT} more; `affidavit mount show` lists them")
    )


def _gathered(namespace: Namespace, path: str) -> Iterator[str]:
    """What is left out here and below, there with its namespace."""
    for one in namespace.left_out:
        yield f"{path} {one}" if path else one
    for name, child in namespace.children.items():
        yield from _gathered(child, f"{path}.{name}" if path else name)


def _branches(start: Namespace, prefix: str) -> Iterator[Found]:
    """The namespaces below, as deep as the listing bound allows."""
    level: list[tuple[str, Namespace]] = [(prefix + name, child) for name, child in start.children.items()]
    while True:
        deeper = [
            (f"{path}.{name}" if name else path, child)
            for path, node in level
            for name, child in (
                node.children.items() if node.children and not node.operations else [("", node)]
            )
        ]
        if len(deeper) == len(level) or len(deeper) > MAX_LISTED:
            break
        level = deeper
    for path, node in level:
        count = sum(1 for _ in _walk(node, ""))
        words = f"{count} operations. {_line_of(node.doc)}".strip()
        yield Found(path=path, signature=f"df.{path}", doc=words)
    for name, operation in start.operations.items():
        yield _line(prefix + name, operation)


def _line(path: str, operation: Operation) -> Found:
    return Found(
        path=path, signature=_call_signature(path, operation, short=True), doc=_line_of(operation.doc)
    )


def _call_signature(path: str, operation: Operation, *, short: bool) -> str:
    """`await df.db.app.modules.page(where, *, limit=64) -> Page[ModulesRow]`."""
    if not short:
        return f"await df.{path}({parameter_list(operation.parameters)}) -> {operation.returns}"
    given: list[str] = []
    for one in operation.parameters:
        text = default_text(one) if not one.required else ""
        given.append(
            f"{one.name}: {one.annotation}" if one.required and len(one.annotation) <= 24 else one.name
        )
        if text not in ("", "None", "..."):
            given[-1] = f"{one.name}={text}"
        elif text:
            given[-1] = f"{one.name}=..."
    if operation.parameters and not any(one.positional for one in operation.parameters):
        given.insert(0, "*")
    return f"await df.{path}({', '.join(given)}) -> {operation.returns}"


def _description(operation: Operation, path: str, *, full: bool) -> Description:
    own = path.rpartition(".")[0]
    path = f"{own}.{operation.name}" if own else operation.name
    companions: tuple[str, ...] = ()
    if operation.streams:
        iterated = f"df.{own}.{operation.streams}" if own else f"df.{operation.streams}"
        companions = (f"async for page in {iterated}(...): ...  # every page, same arguments",)
    return Description(
        path=path,
        signature=_call_signature(path, operation, short=False),
        doc=operation.doc.strip(),
        effect=operation.effect,
        contract=operation.contract,
        parameters=operation.parameters,
        declarations=operation.declarations,
        example=_example(path, operation),
        input_schema=operation.input_schema if full else None,
        output_schema=operation.output_schema if full else None,
        companions=companions,
    )


def _example(path: str, operation: Operation) -> str:
    required = [one for one in operation.parameters if one.required]
    given = ", ".join(f"{one.name}={_placeholder(one.annotation)}" for one in required)
    return f"result = await df.{path}({given})"


def _placeholder(annotation: str) -> str:
    if annotation.startswith("Literal["):
        return annotation[len("Literal[") : -1].split(",", maxsplit=1)[0]
    for start, text in (("str", '"..."'), ("int", "1"), ("float", "1.0"), ("bool", "True"), ("bytes", 'b""')):
        if annotation == start or annotation.startswith(f"{start} |"):
            return text
    if annotation.startswith(("list[", "Sequence[")):
        return "[]"
    return "{}" if annotation.startswith(("dict[", "Mapping[")) else "..."


def _parameter_json(parameter: Parameter) -> dict[str, JsonValue]:
    result: dict[str, JsonValue] = {
        "name": parameter.name,
        "type": parameter.annotation,
        "required": parameter.required,
    }
    if parameter.original != parameter.name:
        result["original"] = parameter.original
    if not parameter.required and parameter.default is not None:
        result["default"] = parameter.default
    if parameter.doc:
        result["doc"] = parameter.doc
    return result


def _line_of(doc: str, limit: int = 120) -> str:
    line = " ".join(doc.strip().split("\n\n", 1)[0].split())
    return line if len(line) <= limit else line[: limit - 3] + "..."
