"""Small repairs of what is plainly not meant as Python, each reported; nothing else is ever rewritten.

Three things are repaired: Markdown fences around the script, typographic quotes that delimit strings, and a trailing
`asyncio.run(main())` in a script that may simply await. Every line keeps its number and every other character its
column, so that positions in the repaired text are the caller's.
"""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass

__all__ = ["Repaired", "repair"]

_MAX_CHARACTERS = 1 << 20
_OPENING = re.compile(r"[ \t]*(```+|~~~+)[ \t]*[\w+.-]*[ \t]*")
_CLOSING = re.compile(r"[ \t]*(```+|~~~+)[ \t]*")
_DOUBLE = "\u201c\u201d\u201e\u201f"
_SINGLE = "\u2018\u2019\u201a\u201b"
_ENTRIES = frozenset({"main", "run", "solve"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """A script as it will run.

    Attributes:
        source: the text; the very text that was given when nothing was repaired.
        notes: what was repaired and where, one sentence each, for the caller.
    """

    source: str
    notes: tuple[str, ...] = ()


def repair(source: str) -> Repaired:
    """Repair a script, or return it as it is.

    Text that is Python already is only ever changed in its last statement, and only when that is a call of
    `asyncio.run`. What cannot be repaired is left for the syntax check to name.
    """
    if len(source) > _MAX_CHARACTERS:
        return Repaired(source=source)
    notes: list[str] = []
    tree = _parsed(source)
    if tree is None:
        source = _without_fences(source, notes)
        tree = _parsed(source)
    if tree is None:
        straight, places = _straightened(source)
        tree = _parsed(straight) if places else None
        if tree is not None:
            source = straight
            lines = ", ".join(map(str, sorted(set(places))))
            notes.append(f"typographic quotes were replaced by plain ones (line {lines})")
    if tree is not None:
        source = _without_run(source, tree, notes)
    return Repaired(source=source, notes=tuple(notes))


def _parsed(source: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return None


def _without_fences(source: str, notes: list[str]) -> str:
    """Blank the first line with text if it opens a fence, and the last if it closes one."""
    lines = re.split(r"(\r\n|\r|\n)", source)  # text and line ends in turn
    filled = [number for number in range(0, len(lines), 2) if lines[number].strip()]
    if not filled:
        return source
    blanked: list[int] = []
    if _OPENING.fullmatch(lines[filled[0]]):
        blanked.append(filled[0])
    if len(filled) > 1 and _CLOSING.fullmatch(lines[filled[-1]]):
        blanked.append(filled[-1])
    # A closing fence alone may be the end of a text that was meant: it goes only if that makes the script Python.
    opened = blanked[:1] == filled[:1]
    for number in blanked:
        lines[number] = ""
    text = "".join(lines)
    if not blanked or (not opened and _parsed(text) is None):
        return source
    named = ", ".join(str(number // 2 + 1) for number in blanked)
    notes.append(f"Markdown fences were removed (line {named})")
    return text


def _straightened(source: str) -> tuple[str, list[int]]:
    """Replace typographic quotes that delimit strings, leaving those inside strings and comments."""
    out = list(source)
    places: list[int] = []
    position = 0
    while position < len(source):
        character = source[position]
        if character == "#":
            position = _line_end(source, position)
        elif character in "'\"" or character in _DOUBLE or character in _SINGLE:
            position = _string(source, position, out, places)
        else:
            position += 1
    return "".join(out), places


def _string(source: str, start: int, out: list[str], places: list[int]) -> int:
    """Pass over one string, straightening its delimiters when they are typographic; returns where it ends."""
    opening = source[start]
    closing = _DOUBLE if opening in _DOUBLE else _SINGLE if opening in _SINGLE else opening
    plain = '"' if opening in _DOUBLE else "'" if opening in _SINGLE else opening
    width = 3 if _repeats(source, start, closing) == 3 else 1
    position = start + width
    while position < len(source):
        if source[position] == "\\":
            position += 2
        elif width == 1 and source[position] in "\r\n":
            return position
        elif source[position] in closing and _repeats(source, position, closing) >= width:
            for place in (*range(start, start + width), *range(position, position + width)):
                if out[place] != plain:
                    out[place] = plain
                    places.append(len(re.findall(r"\r\n|\r|\n", source[:place])) + 1)
            return position + width
        else:
            position += 1
    return position


def _repeats(source: str, position: int, characters: str) -> int:
    """How many of these characters stand in a row here, up to three."""
    count = 0
    while count < 3 and position + count < len(source) and source[position + count] in characters:
        count += 1
    return count


def _line_end(source: str, position: int) -> int:
    found = re.compile(r"[\r\n]").search(source, position)
    return found.start() if found else len(source)


def _without_run(source: str, tree: ast.Module, notes: list[str]) -> str:
    """Turn a trailing `asyncio.run(main())` into an await, or leave it out where `main` is called anyway."""
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.If) and _is_main_guard(last):
        call = _run_call(last.body[0])
        if call is not None and _is_entry(call, tree):
            notes.append(
                f"`asyncio.run(...)` was left out: `{_called(call)}` is called by itself (line {call.lineno})"
            )
            return _blank(source, last)
    else:
        call = _run_call(last)
    return _awaiting(source, call, notes) if call is not None else source


def _run_call(statement: ast.stmt | None) -> ast.Call | None:
    match statement:
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(value=ast.Name(id="asyncio"), attr="run"), args=[ast.Call()], keywords=[]
            ) as call
        ):
            return call
        case _:
            return None


def _is_main_guard(node: ast.If) -> bool:
    """`if __name__ == "__main__":` with one statement and no `else`."""
    match node.test:
        case ast.Compare(
            left=ast.Name(id="__name__"), ops=[ast.Eq()], comparators=[ast.Constant(value="__main__")]
        ):
            return len(node.body) == 1 and not node.orelse
        case _:
            return False


def _called(call: ast.Call) -> str:
    inner = call.args[0]
    return inner.func.id if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) else ""


def _is_entry(call: ast.Call, tree: ast.Module) -> bool:
    """Whether the coroutine is one that the script's end calls by itself, without arguments."""
    inner = call.args[0]
    plain = isinstance(inner, ast.Call) and not inner.args and not inner.keywords
    name = _called(call)
    return (
        plain
        and name in _ENTRIES
        and any(isinstance(node, ast.AsyncFunctionDef) and node.name == name for node in tree.body)
    )


def _starts(source: str) -> list[int]:
    return [0, *(end.end() for end in re.finditer(r"\r\n|\r|\n", source))]


def _offset(source: str, line: int, column: int) -> int:
    """The character offset of a 1-based line and a UTF-8 byte column, as `ast` counts them."""
    start = _starts(source)[line - 1]
    return start + len(source[start:].encode("utf-8", "surrogatepass")[:column].decode("utf-8", "ignore"))


def _blank(source: str, node: ast.stmt) -> str:
    start = _offset(source, node.lineno, node.col_offset)
    end = _offset(source, node.end_lineno or node.lineno, node.end_col_offset or 0)
    return source[:start] + re.sub(r"[^\r\n]", " ", source[start:end]) + source[end:]


def _awaiting(source: str, call: ast.Call, notes: list[str]) -> str:
    start = _offset(source, call.func.lineno, call.func.col_offset)
    end = _offset(source, call.func.end_lineno or call.func.lineno, call.func.end_col_offset or 0)
    if source[start:end] != "asyncio.run":
        return source
    awaited = source[:start] + "await".ljust(end - start) + source[end:]
    # `run(main(),)` would become the await of a tuple.
    if not any(
        isinstance(node, ast.Await) and _is_same(node.value, call.args[0]) for node in _last_nodes(awaited)
    ):
        return source
    notes.append(f"`asyncio.run(...)` became `await (...)` (line {call.lineno})")
    return awaited


def _last_nodes(source: str) -> list[ast.AST]:
    tree = _parsed(source)
    return list(ast.walk(tree.body[-1])) if tree is not None else []


def _is_same(one: ast.expr, other: ast.expr) -> bool:
    return (one.lineno, one.col_offset, ast.dump(one)) == (other.lineno, other.col_offset, ast.dump(other))
