"""`affidavit graph`: control flow of one function as a picture."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import orjson
from cyclopts import Parameter

from affidavit.errors import FailedError, NotFoundError, UsageError
from affidavit.evidence import values
from affidavit.interfaces.cli.mounts import progress_on_stderr
from affidavit.interfaces.cli.operations import call_error
from affidavit.interfaces.cli.output import Common, emit, say
from affidavit.interfaces.pictures.dot import as_dot
from affidavit.interfaces.pictures.mermaid import as_mermaid
from affidavit.interfaces.pictures.picture import Marks, Picture, draw
from affidavit.interfaces.pictures.svg import as_svg
from affidavit.runtime.program import CallFailed
from affidavit.workspace import Workspace

if TYPE_CHECKING:
    from affidavit.runtime.session import Session

__all__ = ["graph"]

Language: TypeAlias = Literal["svg", "dot", "mermaid"]

_PAGE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What is asked of a function beside its picture."""

    routes: Sequence[tuple[str, str]]
    avoid: Sequence[str]
    avoid_edges: Sequence[str]


@dataclass(slots=True, kw_only=True)
class _Answered:
    """What the dataset said."""

    mount: str
    function: dict[str, Any]
    routes: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


def graph(
    function: str,
    *,
    of: str | None = None,
    path: Annotated[list[tuple[str, str]] | None, Parameter(negative="")] = None,
    avoid: Annotated[list[str] | None, Parameter(negative="")] = None,
    avoid_edge: Annotated[list[str] | None, Parameter(negative="")] = None,
    svg: Annotated[bool, Parameter(negative="")] = False,
    dot: Annotated[bool, Parameter(negative="")] = False,
    mermaid: Annotated[bool, Parameter(negative="")] = False,
    output: Path | None = None,
    mount: Annotated[list[str] | None, Parameter(negative="")] = None,
    common: Common = Common(),  # noqa: B008
) -> int:
    """Draw the control flow of a function, of native code or of an imported graph; what is asked is recorded.

    A function of more than 300 blocks is outlined, which the picture says.

    Args:
        function: Its name or id.
        of: The mount that has it; needed where several mounts have functions.
        path: SOURCE and TARGET of a path to mark: ids of blocks, or `exit` or `exit:return` as target; repeatable.
        avoid: Id of a block that paths must not pass; repeatable.
        avoid_edge: Id of an edge that paths must not take; repeatable.
        svg: Draw SVG, the default; it needs affidavit[pictures].
        dot: Write DOT, the language of Graphviz.
        mermaid: Write Mermaid.
        output: File to write to instead of standard output.
        mount: NAME=URI to mount for this look; repeatable.
    """
    language = _language(svg=svg, dot=dot, mermaid=mermaid)
    asked = _Asked(routes=path or [], avoid=avoid or [], avoid_edges=avoid_edge or [])
    if not asked.routes and (asked.avoid or asked.avoid_edges):
        raise UsageError(
            "usage", "--avoid excludes from a path, and none is asked for", hint="add --path SOURCE TARGET"
        )

    async def body() -> _Answered:
        async with Workspace.open(common.workspace, tenant=common.tenant) as workspace:
            session = await workspace.session(mounts=mount or [], progress=progress_on_stderr())
            for note in workspace.notices():
                say(f"note: {note}")
            return await _ask(session, function, of, asked)

    answered = asyncio.run(body())
    picture = draw(
        answered.function,
        marks=_marks(answered.routes, asked),
        notes=[_told(one, asked) for one in answered.routes],
    )
    text = _written(picture, language)
    if output is not None:
        _write(output, text)
    if common.json:
        emit(_document(answered, picture, language, text, output))
    elif output is None:
        sys.stdout.write(text)
    for note in picture.notes:
        say(f"note: {note}")
    return 0


def _language(**given: bool) -> Language:
    chosen: list[Language] = [name for name in ("svg", "dot", "mermaid") if given[name]]
    if len(chosen) > 1:
        raise UsageError("usage", f"--{' and --'.join(chosen)} exclude each other", hint="give one of them")
    return chosen[0] if chosen else "svg"


def _written(picture: Picture, language: Language) -> str:
    if language == "mermaid":
        return as_mermaid(picture)
    dot = as_dot(picture)
    return dot if language == "dot" else as_svg(dot)


def _write(output: Path, text: str) -> None:
    try:
        output.write_text(text, "utf-8")
    except OSError as error:
        raise FailedError(
            "store-unwritable",
            f"{output} cannot be written: {error.strerror}",
            hint="name a file in a folder that is there and can be written",
        ) from error


async def _ask(session: Session, function: str, of: str | None, asked: _Asked) -> _Answered:
    mount = _mount(session, of)
    found = await _function(session, mount, function)
    answered = _Answered(mount=mount, function=found)
    if not found["blocks"]:
        raise FailedError(
            "graph-invalid",
            f"{found['id']} has no blocks to draw: {found.get('problem') or 'none are known'}",
            hint=f"`affidavit call db.{mount}.functions.get id={found['id']}` shows what is known of it",
        )
    for source, target in asked.routes:
        answered.routes.append(await _route(session, answered, source, target, asked))
    return answered


def _mount(session: Session, of: str | None) -> str:
    """The mount with functions that is meant."""
    db = session.catalogue.root.children.get("db")
    below = db.children.items() if db is not None else ()
    having = [name for name, one in below if "functions" in one.children and "path" in one.operations]
    if of is not None and of in having:
        return of
    if of is not None:
        names = ", ".join(having) or "none"
        raise NotFoundError(
            "mount-not-found", f"no mount {of!r} with functions", hint=f"mounts that have some: {names}"
        )
    if len(having) != 1:
        several = f"mounts with functions are {', '.join(having)}" if having else "no mount has functions"
        hint = (
            f"add --of {having[0]}" if having else "add --mount bin=PROGRAM or --mount fw=graph:EXPORT.json"
        )
        raise UsageError("usage", several, hint=hint)
    return having[0]


async def _function(session: Session, mount: str, function: str) -> dict[str, Any]:
    """The record of a function by id, else by name."""
    named = await _call(session, f"db.{mount}.functions.page", {"where": {"id": [function]}, "limit": 1})
    if not named["rows"]:
        named = await _call(session, f"db.{mount}.functions.page", {"where": {"name": [function]}})
    rows = named["rows"]
    if len(rows) > 1:
        rows = [
            row for row in rows if row["block_count"] and row.get("kind", "function") == "function"
        ] or rows
    if not rows:
        raise NotFoundError(
            "item-not-found",
            f"{mount} has no function with the name or id {ascii(function)[:200]}",
            hint=f"`affidavit call db.{mount}.functions.page` lists them",
        )
    if len(rows) > 1:
        ids = ", ".join(row["id"] for row in rows[:10])
        raise UsageError("usage", f"{len(rows)} functions are called {function}", hint=f"give the id: {ids}")
    return await _call(session, f"db.{mount}.functions.get", {"id": rows[0]["id"]})


async def _route(
    session: Session, answered: _Answered, source: str, target: str, asked: _Asked
) -> dict[str, Any]:
    """One path, all of its pages."""
    arguments: dict[str, Any] = {
        "function": answered.function["id"],
        "source": source,
        "target": _target(target),
        "avoid": list(asked.avoid),
        "avoid_edges": list(asked.avoid_edges),
        "limit": _PAGE,
    }
    edges: list[dict[str, Any]] = []
    evidence: list[str] = []
    while True:
        reply = await _call(session, f"db.{answered.mount}.path", arguments | {"offset": len(edges)})
        if reply["missing"]:
            one = reply["missing"][0]
            raise NotFoundError(
                "item-not-found",
                f"{one['argument']}: {answered.function['id']} has no {ascii(one['id'])[:200]}",
                hint="ids are the first lines of the boxes; draw it without --path to see them",
                details={"missing": reply["missing"]},
            )
        edges += reply["rows"]
        evidence.append(reply["evidence_id"])
        if reply["page"]["exhausted"]:
            break
    return {
        "source": source,
        "target": target,
        "status": reply["status"],
        "edges": [edge["id"] for edge in edges],
        "blocks": list(dict.fromkeys([*_start(reply, source), *(edge["target"] for edge in edges)])),
        "certificate": reply["certificate"],
        "evidence": list(dict.fromkeys(evidence)),
    }


def _start(reply: Mapping[str, Any], source: str) -> list[str]:
    return [source] if reply["status"] == "found" else []


def _target(target: str) -> dict[str, Any]:
    word, colon, kinds = target.partition(":")
    if word != "exit":
        return {"kind": "block", "id": target}
    return {"kind": "exit", "exit": kinds.split(",")} if colon else {"kind": "exit"}


async def _call(session: Session, operation: str, arguments: dict[str, Any]) -> Any:
    result = await session.call(operation, arguments)
    if isinstance(result, CallFailed):
        raise call_error(result)
    return values.decode(orjson.loads(result.json))


def _marks(routes: Sequence[Mapping[str, Any]], asked: _Asked) -> Marks:
    return Marks(
        path_blocks=frozenset(block for one in routes for block in one["blocks"]),
        path_edges=frozenset(edge for one in routes for edge in one["edges"]),
        avoided_blocks=frozenset(asked.avoid),
        avoided_edges=frozenset(asked.avoid_edges),
    )


def _told(route: Mapping[str, Any], asked: _Asked) -> str:
    excluded = len(asked.avoid) + len(asked.avoid_edges)
    under = f" without the {excluded:,} excluded" if excluded else ""
    ends = f"from {route['source']} to {route['target']}{under}"
    if route["status"] == "found":
        edges = len(route["edges"])
        return f"path {ends}: {edges:,} edge{'' if edges == 1 else 's'}"
    return f"no path {ends}"


def _document(
    answered: _Answered, picture: Picture, language: Language, text: str, output: Path | None
) -> dict[str, Any]:
    return {
        "mount": answered.mount,
        "function": {"id": answered.function["id"], "name": answered.function["name"]},
        "language": language,
        "output": None if output is None else str(output),
        "picture": text if output is None else None,
        "blocks": len(answered.function["blocks"]),
        "boxes": len(picture.boxes),
        "outlined": picture.outlined,
        "notes": list(picture.notes),
        "paths": answered.routes,
    }
