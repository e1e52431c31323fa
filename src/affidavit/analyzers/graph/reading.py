"""From the bytes of an export to its functions as values of the documented form, whatever tool wrote it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from affidavit.analyzers.graph.form import FORMAT, VERSION, Tool
from affidavit.analyzers.graph.radare2 import convert, is_calls, is_function, is_functions
from affidavit.errors import AffidavitError, FailedError, UsageError, VerificationError
from affidavit.evidence.canonical import parse

__all__ = ["MAX_BYTES", "Exported", "looks_exported", "read_export"]

MAX_BYTES: Final = 128 << 20
"""Bytes of an export. Reading one takes about twenty times as much memory."""

_OWN: Final = re.compile(rb'"format"\s*:\s*"affidavit-graph"')
_RADARE2: Final = re.compile(rb'\s*(\[\s*)?\{\s*"(name|agfj|tool)"\s*:')
_PICTURE: Final = re.compile(r"\s*(strict\b|digraph\b|graph\b|flowchart\b|<svg\b|<\?xml\b)")
_PROJECTION: Final = frozenset({"nodes", "edges", "links", "elements", "vertices"})
_FORMS: Final = "the forms that are read are described in docs/graphs.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What an export holds.

    Attributes:
        form: `affidavit-graph` or `radare2`.
        tool: what made it.
        functions: one value for each, of the documented form where nothing is wrong with it.
        records: the same as they were given.
        place: where the functions stand in the file, for messages.
    """

    form: str
    tool: Tool
    functions: list[Any]
    records: list[Any]
    place: str


def looks_exported(head: bytes) -> bool:
    """Whether the first bytes of a file are those of an export."""
    return _OWN.search(head) is not None or (
        _RADARE2.match(head) is not None and (b'"blocks"' in head or b'"agfj"' in head or b'"agCj"' in head)
    )


def read_export(data: bytes, name: str) -> Exported:
    """Read an export.

    Raises:
        VerificationError: `artifact-damaged`: it is truncated or no JSON; `format-unknown`: of another version.
        FailedError: `artifact-unsupported`: a picture, or JSON that holds no control flow with ids and order.
    """
    documents = _documents(data, name)
    if len(documents) == 1 and isinstance(documents[0], dict):
        whole = cast("dict[str, Any]", documents[0])
        if whole.get("format") == FORMAT:
            return _own(whole, name)
        if "agfj" in whole or "agCj" in whole:
            return _wrapped(whole, name)
        if is_function(whole):
            return _of_radare2([[whole]], [], Tool(name="radare2"))
        raise _foreign(whole, name)
    flows = [cast("list[Any]", item) for item in documents if is_functions(item)]
    calls = [cast("list[Any]", item) for item in documents if is_calls(item)]
    if not documents or len(flows) + len(calls) < len(documents):
        raise _foreign(None, name)
    return _of_radare2(flows, calls, Tool(name="radare2"))


def _documents(data: bytes, name: str) -> list[Any]:
    """The JSON documents of a file: one, or one a line, as commands that are run for each function print them."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = UsageError("json-invalid", f"not UTF-8 at byte {error.start}")
        raise _damaged(name, "", problem) from None
    if _PICTURE.match(text):
        raise FailedError(
            "artifact-unsupported",
            f"{name} is a picture of a graph: it has no ids, no order of edges, and no kinds of exits",
            hint=f"let the tool export JSON; {_FORMS}",
        )
    if not text.strip():
        raise VerificationError("artifact-damaged", f"{name} is empty", hint="export it anew")
    try:
        return [parse(text)]
    except UsageError as error:
        if "Extra data" not in error.message:
            raise _damaged(name, "", error) from None
    found: list[Any] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                found.append(parse(line))
            except UsageError as error:
                raise _damaged(name, f"line {number}: ", error) from None
    return found


def _own(whole: dict[str, Any], name: str) -> Exported:
    version = whole.get("version")
    if version != VERSION or type(version) is not int:
        raise VerificationError(
            "format-unknown",
            f"{name} says version {ascii(version)[:40]} of {FORMAT}; this reads version {VERSION}",
            hint="export it in that version, or update the program that is older",
            details={"place": "$.version"},
        )
    functions = whole.get("functions")
    if not isinstance(functions, list):
        raise _malformed(name, "$.functions", "is no list")
    others = set(whole) - {"format", "version", "tool", "functions"}
    if others:
        raise _malformed(name, f"$.{min(others)}", "is no field of this form")
    listed = cast("list[Any]", functions)
    return Exported(
        form=FORMAT,
        tool=_tool(whole.get("tool"), name),
        functions=listed,
        records=listed,
        place="$.functions",
    )


def _wrapped(whole: dict[str, Any], name: str) -> Exported:
    others = set(whole) - {"tool", "agfj", "agCj"}
    if others:
        raise _malformed(name, f"$.{min(others)}", "is no field of this form")
    flows, calls = whole.get("agfj", []), whole.get("agCj", [])
    if flows and not is_functions(flows):
        raise _malformed(name, "$.agfj", "is no list of functions with blocks")
    if calls and not is_calls(calls):
        raise _malformed(name, "$.agCj", "is no list of functions with imports")
    tool = _tool(whole["tool"], name) if "tool" in whole else Tool(name="radare2")
    return _of_radare2([flows], [calls], tool)


def _of_radare2(flows: list[list[Any]], calls: list[list[Any]], tool: Tool) -> Exported:
    functions, records = convert(
        [item for part in flows for item in part], [item for part in calls for item in part]
    )
    return Exported(form="radare2", tool=tool, functions=functions, records=records, place="$")


def _tool(value: object, name: str) -> Tool:
    try:
        return Tool.model_validate(value)
    except ValueError:
        raise _malformed(name, "$.tool", "does not name the tool: {name, version}") from None


def _foreign(whole: Mapping[str, Any] | None, name: str) -> AffidavitError:
    if whole is not None and _PROJECTION & set(whole):
        return FailedError(
            "artifact-unsupported",
            f"{name} is a projection of a graph: nodes and edges without functions, order or kinds of exits",
            hint=f"export functions, blocks and edges; {_FORMS}",
        )
    return FailedError("artifact-unsupported", f"{name} is JSON of no form that is read", hint=_FORMS)


def _malformed(name: str, place: str, what: str) -> VerificationError:
    return VerificationError(
        "artifact-damaged", f"{name}: {place} {what}", hint=_FORMS, details={"place": place}
    )


def _damaged(name: str, place: str, error: UsageError) -> VerificationError:
    return VerificationError(
        "artifact-damaged",
        f"{name}: {place}{error.message}",
        hint="the file is truncated or no JSON; export it anew",
        details={"reason": error.code},
    )
