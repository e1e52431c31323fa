"""Small generated programs: every statement of the common language, errors and calls included, and always an end."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

__all__ = ["programs"]

_NUMBERS = ("a", "b", "n")
_LISTS = ("xs", "ys")
_KEYS = ("'k'", "'m'", "s[:1]", "str(a)")
_ERRORS = (
    "ZeroDivisionError",
    "IndexError",
    "KeyError",
    "ValueError",
    "TypeError",
    "Exception",
    "(KeyError, IndexError)",
    "df.Error",
)
_START = "a, b, n = 3, -2, 7\nxs, ys = [4, 1, 3], []\ns, t = 'word', 'Two w'\nd = {'k': 1, 'm': -5}\n"
_END = "\n[a, b, n, xs, ys, s, t, d]\n"


_HELPERS = (
    """def HELPER(v, w=a):
    return v * w + len(xs)
""",
    """def HELPER(v):
    if v <= 0:
        return 0
    return v % 3 + HELPER(v // 2 - 1)
""",
    """def HELPER(v):
    total = 0
    def inner(w):
        nonlocal total
        total += w
        return total
    inner(v)
    return inner(2)
""",
    """def HELPER(*v, **w):
    global b
    b = len(v) + len(w)
    return sum(v)
""",
    """def HELPER(v):
    try:
        return d[v]
    except KeyError:
        return -1
    finally:
        d['f'] = v
""",
    """class BoxHELPER:
    def __init__(self, v):
        self.v = v
    def __add__(self, other):
        return BoxHELPER(self.v + other.v)
def HELPER(v):
    return (BoxHELPER(v) + BoxHELPER(1)).v
""",
)
_FORMATS = ("", ":>4", ":+d", ":05.1f", "!r:>6")
_STEPS = ("", ":2", ":-1")


class _Writer:
    """Writes one program by drawing choices."""

    def __init__(self, draw: Callable[[st.SearchStrategy[int]], int]) -> None:
        self._draw = draw
        self._functions = 0
        self._loops = 0
        self._counters: list[str] = []
        self._guarded = 0

    def program(self) -> str:
        lines = [_START]
        lines.extend(self.function() for _ in range(self.below(2)))
        lines += [self.statement(0, depth=3) for _ in range(1 + self.below(6))]
        return "".join(lines) + _END

    def below(self, count: int) -> int:
        return self._draw(st.integers(0, count - 1))

    def pick(self, *options: str) -> str:
        return options[self.below(len(options))]

    # ---- expressions ----

    def number(self, depth: int = 2) -> str:
        if depth == 0 or self.below(4) == 0:
            return self.pick(*_NUMBERS, *self._counters, "0", "1", "2", "10", "-3", "True")
        inner = depth - 1
        return self._choose(
            lambda: (
                f"({self.number(inner)} {self.pick('+', '-', '*', '//', '%', '&', '|')} {self.number(inner)})"
            ),
            lambda: f"{self.listing(inner)}[{self.number(inner)}]",
            lambda: f"len({self.listing(inner)})",
            lambda: f"sum({self.listing(inner)})",
            lambda: f"{self.pick('min', 'max')}({self.listing(inner)}, default={self.number(0)})",
            lambda: f"{self.pick('min', 'max')}({self.listing(inner)})",
            lambda: f"d[{self.pick(*_KEYS)}]",
            lambda: f"d.get({self.pick(*_KEYS)}, {self.number(inner)})",
            lambda: f"d.get({self.pick(*_KEYS)}, {self.number(inner)})",
            lambda: f"({self.number(inner)} * {self.number(inner)} - {self.number(inner)})",
            lambda: f"{self.listing(inner)}.count({self.number(inner)})",
            lambda: f"({self.number(inner)} if {self.condition(inner)} else {self.number(inner)})",
            lambda: f"abs(-{self.number(inner)})",
            lambda: f"int({self.pick('s', 't', repr('12'), 'str(b)')})",
            lambda: f"(await df.tool.math.ten({self.number(inner)}))",
            lambda: f"round({self.number(inner)} / {self.number(inner)}, {self.pick('0', '1', '2')})",
            lambda: f"next(iter({self.listing(inner)}), {self.number(0)})",
            lambda: f"(n := {self.number(inner)})" if depth == 2 else self.number(0),
            lambda: (
                f"helper{self._functions}({self.number(inner)})" if self._functions else self.number(inner)
            ),
        )

    def condition(self, depth: int = 2) -> str:
        if depth == 0:
            return self.pick("a", "xs", "s", "d", "True", "not ys")
        inner = depth - 1
        return self._choose(
            lambda: f"{self.number(inner)} {self.pick('<', '<=', '==', '!=', '>')} {self.number(inner)}",
            lambda: f"{self.number(inner)} in {self.listing(inner)}",
            lambda: f"{self.pick(*_KEYS)} not in d",
            lambda: f"({self.condition(inner)} {self.pick('and', 'or')} {self.condition(inner)})",
            lambda: f"not {self.condition(inner)}",
            lambda: f"1 < {self.number(inner)} < 5",
            lambda: f"{self.text(inner)}.startswith({self.text(0)})",
            lambda: f"{self.pick('any', 'all')}(v > {self.number(0)} for v in {self.listing(inner)})",
            lambda: f"isinstance({self.number(inner)}, int)",
        )

    def listing(self, depth: int = 2) -> str:
        if depth == 0 or self.below(3) == 0:
            return self.pick(*_LISTS, "[]", "[5, 2]", "list(d.values())")
        inner = depth - 1
        return self._choose(
            lambda: f"[{self.number(inner)} for v in {self.listing(inner)} if {self.condition(inner)}]",
            lambda: f"[v * 2 for v in {self.listing(inner)}]",
            lambda: f"sorted({self.listing(inner)}{self.pick('', ', reverse=True', ', key=lambda v: -v')})",
            lambda: f"({self.listing(inner)} + {self.listing(inner)})",
            lambda: f"{self.listing(inner)}[{self.part()}{self.pick(*_STEPS)}]",
            lambda: f"list(range({self.pick('3', 'len(xs)', '1, 8, 3', '3, 0, -1')}))",
            lambda: f"list(map(lambda v: v + {self.number(0)}, {self.listing(inner)}))",
            lambda: f"list(filter(lambda v: v > 1, {self.listing(inner)}))",
            lambda: f"[*{self.listing(inner)}, {self.number(inner)}]",
            lambda: f"[u + v for u, v in zip({self.listing(inner)}, {self.listing(inner)})]",
            lambda: f"[i * v for i, v in enumerate({self.listing(inner)})]",
            lambda: f"list(reversed({self.listing(inner)}))",
            lambda: f"[ord(c) for c in {self.text(inner)}]",
        )

    def text(self, depth: int = 2) -> str:
        if depth == 0 or self.below(3) == 0:
            return self.pick("s", "t", "''", "'é-x'")
        inner = depth - 1
        return self._choose(
            lambda: f"({self.text(inner)} + {self.text(inner)})",
            lambda: f"f'{{{self.pick('a', 'b')}{self.pick(*_FORMATS)}}}|{{{self.pick('s', 'xs', 'd')}}}'",
            lambda: (
                f"{self.text(inner)}.{self.pick('upper', 'lower', 'title', 'strip', 'swapcase', 'capitalize')}()"
            ),
            lambda: f"','.join(str(v) for v in {self.listing(inner)})",
            lambda: f"{self.text(inner)}[{self.part()}]",
            lambda: (
                f"{self.text(inner)}.replace({self.pick(repr('w'), 's', repr(''))}, {self.pick(repr('-'), repr(''))})"
            ),
            lambda: f"str({self.pick('a', 'xs', 'd', 'b / 4', 's', '(a, s)', 'None')})",
            lambda: f"' '.join({self.text(inner)}.split({self.pick('', repr('w'), repr('-'))}))",
            lambda: f"'%s:%d' % ({self.text(inner)}, {self.number(inner)})",
            lambda: f"({self.text(inner)} * {self.pick('0', '2')})",
        )

    def part(self) -> str:
        return f"{self.pick('', '1', '-2')}:{self.pick('', '2', '-1')}"

    def _choose(self, *options: Callable[[], str]) -> str:
        return options[self.below(len(options))]()

    # ---- statements ----

    def block(self, indent: int, depth: int, *, loop: bool = False) -> str:
        body = "".join(self.statement(indent, depth - 1, loop=loop) for _ in range(1 + self.below(3)))
        return body or "    " * indent + "pass\n"

    def statement(self, indent: int, depth: int, *, loop: bool = False) -> str:
        pad = "    " * indent
        simple: list[Callable[[], str]] = [
            lambda: f"{self.pick(*_NUMBERS)} = {self.number()}",
            lambda: f"{self.pick(*_NUMBERS)} {self.pick('+=', '-=', '*=')} {self.number(1)}",
            lambda: f"{self.pick(*_LISTS)} = {self.listing()}",
            lambda: f"{self.pick('s', 't')} = {self.text()}",
            lambda: f"d[{self.pick(*_KEYS)}] = {self.number()}",
            lambda: f"{self.pick(*_LISTS)}.append({self.number()})",
            lambda: f"print({self.pick('a', 's', 'xs', 'd')}, {self.text(1)})",
            lambda: f"a, b = {self.pick('b, a', '(n, a)')}",
            lambda: f"*ys, n = [*{self.listing()}, {self.number(0)}]",
            lambda: f"assert {self.condition()}, {self.text(0)}",
            lambda: f"await df.tool.math.fail({self.text(1)})",
            lambda: f"xs[{self.number(1)}] = {self.number(1)}",
            lambda: f"n = d.pop({self.pick(*_KEYS)}{self.pick('', ', 9')})",
            lambda: (
                f"raise {self.pick('ValueError', 'KeyError', 'RuntimeError')}(f'{{{self.pick('a', 's')}}}')"
            ),
        ]
        if not self._guarded and self.below(4):
            # Most programs should reach their end.
            simple = simple[: len(simple) - 5]
        if loop:
            simple += [lambda: f"if {self.condition(1)}: {self.pick('break', 'continue')}"]
        if depth == 0 or self.below(2) == 0:
            return pad + self._choose(*simple) + "\n"
        return self._compound(indent, depth, loop=loop)

    def _compound(self, indent: int, depth: int, *, loop: bool) -> str:
        pad = "    " * indent
        kind = self.below(6)
        if kind == 0:
            return (
                f"{pad}if {self.condition()}:\n{self.block(indent + 1, depth, loop=loop)}"
                + self._maybe_else(indent, depth, loop=loop)
            )
        if kind == 1:
            iterated = self.pick("xs[:4]", "range(3)", "list(d.values())", "s[:3]", "[1, 2]")
            target = "n" if iterated != "s[:3]" else "t"
            return (
                f"{pad}for {target} in {iterated}:\n{self.block(indent + 1, depth, loop=True)}"
                + self._maybe_else(indent, depth, loop=loop)
            )
        if kind == 2:
            self._loops += 1
            counter = f"i{self._loops}"
            self._counters.append(counter)
            text = (
                f"{pad}{counter} = 0\n{pad}while {counter} < {self.pick('2', '3')}:\n{pad}    {counter} += 1\n"
                f"{self.block(indent + 1, depth, loop=True)}" + self._maybe_else(indent, depth, loop=loop)
            )
            self._counters.pop()
            return text
        if kind == 3:
            name, value = self.pick("k", "key"), self.pick("v", "a")
            return f"{pad}for {name}, {value} in list(d.items()):\n{self.block(indent + 1, depth, loop=True)}"
        if kind == 4:
            return self._match(indent, depth, loop=loop)
        return self._try(indent, depth, loop=loop)

    def _maybe_else(self, indent: int, depth: int, *, loop: bool) -> str:
        if self.below(3):
            return ""
        return "    " * indent + "else:\n" + self.block(indent + 1, depth, loop=loop)

    def _try(self, indent: int, depth: int, *, loop: bool) -> str:
        pad = "    " * indent
        self._guarded += 1
        text = f"{pad}try:\n{self.block(indent + 1, depth, loop=loop)}"
        self._guarded -= 1
        for _ in range(1 + self.below(2)):
            caught = self.pick(*_ERRORS)
            shown = self.pick(
                "print(type(error).__name__)",
                "s = type(error).__name__",
                "ys = [isinstance(error, LookupError)]",
            )
            text += f"{pad}except {caught} as error:\n{pad}    {shown}\n"
        if self.below(2):
            text += f"{pad}else:\n{self.block(indent + 1, depth, loop=loop)}"
        if self.below(2):
            text += f"{pad}finally:\n{self.block(indent + 1, depth)}"
        return text

    def _match(self, indent: int, depth: int, *, loop: bool) -> str:
        pad = "    " * indent
        subject = self.pick("xs", "a", "d", "s", "(a, b)")
        cases = self.pick(
            "[first, *rest]",
            "0 | 1 | 3",
            "{'k': found}",
            "str() as word",
            "(int() as u, int() as v) if u < v",
        )
        return (
            f"{pad}match {subject}:\n{pad}    case {cases}:\n{self.block(indent + 2, depth, loop=loop)}"
            f"{pad}    case _:\n{self.block(indent + 2, depth, loop=loop)}"
        )

    def function(self) -> str:
        self._functions += 1
        return self.pick(*_HELPERS).replace("HELPER", f"helper{self._functions}")


@st.composite
def programs(draw: st.DrawFn) -> str:
    """A program that ends by itself and gives a list."""
    return _Writer(draw).program()
