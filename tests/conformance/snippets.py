"""Ordinary Python as scripts of agents are written: one feature each, each ending in its value.

`df.tool.math.ten(x)` gives ten times x. Every snippet runs on plain CPython 3.11 and gives a value of the value domain
once tuples and sets are softened. They are shared by every engine.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

__all__ = ["SNIPPETS", "Snippet"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """A name for test ids, the script, and the lowest Python minor version that has its syntax or library."""

    name: str
    source: str
    since: int = 11


def _snippets(text: str) -> tuple[Snippet, ...]:
    """Parse `### name [since=12]` blocks."""
    found: list[Snippet] = []
    for block in textwrap.dedent(text).split("### ")[1:]:
        head, _, body = block.partition("\n")
        name, _, since = head.partition(" since=")
        found.append(Snippet(name=name.strip(), source=body.strip("\n") + "\n", since=int(since or 11)))
    return tuple(found)


SNIPPETS: tuple[Snippet, ...] = _snippets(
    r'''
    ### class with a method
    class Shelf:
        def __init__(self, books):
            self.books = books
        def first(self):
            return self.books[0]
    Shelf(["emma", "dune"]).first()

    ### class attribute and instance attribute
    class Lamp:
        watts = 40
        def __init__(self):
            self.on = False
    lamp = Lamp()
    lamp.on = True
    [lamp.watts, lamp.on, Lamp.watts]

    ### inheritance and super
    class Shape:
        def name(self):
            return "shape"
    class Square(Shape):
        def name(self):
            return "square " + super().name()
    Square().name()

    ### property
    class Box:
        def __init__(self, side):
            self.side = side
        @property
        def volume(self):
            return self.side ** 3
    Box(3).volume

    ### classmethod and staticmethod
    class Clock:
        zone = "utc"
        @classmethod
        def where(cls):
            return cls.zone
        @staticmethod
        def tick(n):
            return n + 1
    [Clock.where(), Clock.tick(4)]

    ### operator methods
    class Money:
        def __init__(self, cents):
            self.cents = cents
        def __add__(self, other):
            return Money(self.cents + other.cents)
        def __eq__(self, other):
            return self.cents == other.cents
        def __repr__(self):
            return f"Money({self.cents})"
    [repr(Money(1) + Money(2)), Money(3) == Money(3), Money(1) != Money(2)]

    ### ordering methods
    class Card:
        def __init__(self, rank):
            self.rank = rank
        def __lt__(self, other):
            return self.rank < other.rank
    [card.rank for card in sorted([Card(3), Card(1), Card(2)])]

    ### truth of an object
    class Basket:
        def __init__(self, items):
            self.items = items
        def __bool__(self):
            return len(self.items) > 0
    ["full" if Basket([1]) else "empty", "full" if Basket([]) else "empty"]

    ### length and item access of an object
    class Row:
        def __init__(self, cells):
            self.cells = cells
        def __len__(self):
            return len(self.cells)
        def __getitem__(self, at):
            return self.cells[at]
        def __iter__(self):
            return iter(self.cells)
    row = Row([7, 8])
    [len(row), row[1], list(row)]

    ### callable object and containment
    class Doubler:
        def __call__(self, x):
            return x * 2
        def __contains__(self, x):
            return x % 2 == 0
    double = Doubler()
    [double(21), 4 in double, 5 in double]

    ### attribute fallback
    class Echo:
        def __getattr__(self, name):
            return name.upper()
    Echo().hello

    ### own exception
    class Missing(Exception):
        pass
    try:
        raise Missing("key 7")
    except Missing as error:
        text = str(error)
    text

    ### own exception with a field
    class Rejected(Exception):
        def __init__(self, code, text):
            super().__init__(text)
            self.code = code
    try:
        raise Rejected(409, "taken")
    except Rejected as error:
        seen = [error.code, str(error)]
    seen

    ### enum
    from enum import Enum
    class Colour(Enum):
        RED = 1
        GREEN = 2
    [Colour.RED.name, Colour(2).name, [c.value for c in Colour]]

    ### dataclass
    from dataclasses import dataclass
    @dataclass
    class Point:
        x: int
        y: int = 5
    point = Point(1)
    [repr(point), point == Point(1, 5), point.x + point.y]

    ### dataclass default factory
    from dataclasses import dataclass, field
    @dataclass
    class Bag:
        things: list = field(default_factory=list)
    one = Bag()
    one.things.append("pen")
    [one.things, Bag().things]

    ### dataclass helpers
    from dataclasses import asdict, dataclass, replace
    @dataclass(frozen=True)
    class Span:
        start: int
        end: int
    [asdict(Span(1, 4)), replace(Span(1, 4), end=9).end]

    ### dataclass ordering
    from dataclasses import dataclass
    @dataclass(order=True)
    class Version:
        major: int
        minor: int
    [v.minor for v in sorted([Version(1, 9), Version(1, 2)])]

    ### dataclass as a value
    from dataclasses import dataclass
    @dataclass
    class City:
        name: str
        people: int
    City("Bern", 134000)

    ### generator function
    def countdown(n):
        while n > 0:
            yield n
            n -= 1
    list(countdown(4))

    ### generator send and delegation
    def inner():
        got = yield "ready"
        yield got * 2
    def outer():
        yield from inner()
    steps = outer()
    [next(steps), steps.send(21)]

    ### first match
    rows = [{"id": 1, "ok": False}, {"id": 2, "ok": True}]
    next(row["id"] for row in rows if row["ok"])

    ### first match with default
    next((n for n in [1, 2, 3] if n > 9), "none")

    ### lazy generator
    seen = []
    def look(n):
        seen.append(n)
        return n
    first = any(look(n) > 1 for n in [1, 2, 3, 4])
    [first, seen]

    ### endless generator
    import itertools
    odd = (n for n in itertools.count() if n % 2)
    [next(odd), next(odd), next(odd)]

    ### sum of a generator
    sum(n * n for n in range(10))

    ### join of a generator
    "-".join(str(n) for n in [3, 1, 2])

    ### any and all
    words = ["tea", "coffee"]
    [any(len(w) > 4 for w in words), all(len(w) > 4 for w in words), any([]), all([])]

    ### await a call
    async def fetch(n):
        return await df.tool.math.ten(n)
    await fetch(4)

    ### gather calls
    import asyncio
    await asyncio.gather(df.tool.math.ten(1), df.tool.math.ten(2))

    ### gather from a comprehension
    import asyncio
    results = await asyncio.gather(*[df.tool.math.ten(n) for n in range(5)])
    sum(results)

    ### gather with exceptions returned
    import asyncio
    async def bad():
        raise ValueError("no")
    got = await asyncio.gather(df.tool.math.ten(1), bad(), return_exceptions=True)
    [got[0], str(got[1])]

    ### task group
    import asyncio
    async with asyncio.TaskGroup() as group:
        one = group.create_task(df.tool.math.ten(1))
        two = group.create_task(df.tool.math.ten(2))
    [one.result(), two.result()]

    ### create task
    import asyncio
    task = asyncio.create_task(df.tool.math.ten(3))
    await task

    ### semaphore
    import asyncio
    gate = asyncio.Semaphore(2)
    async def through(n):
        async with gate:
            return await df.tool.math.ten(n)
    await asyncio.gather(*[through(n) for n in range(4)])

    ### wait for
    import asyncio
    await asyncio.wait_for(df.tool.math.ten(6), timeout=20)

    ### as completed
    import asyncio
    done = []
    for future in asyncio.as_completed([df.tool.math.ten(1), df.tool.math.ten(2)]):
        done.append(await future)
    sorted(done)

    ### sleep
    import asyncio
    await asyncio.sleep(0)
    "awake"

    ### async generator
    async def numbers():
        for n in range(3):
            yield await df.tool.math.ten(n)
    got = []
    async for n in numbers():
        got.append(n)
    got

    ### async comprehension
    async def letters():
        for letter in "abc":
            yield letter
    [letter async for letter in letters()]

    ### await in a comprehension
    [await df.tool.math.ten(n) for n in [1, 2, 3] if n != 2]

    ### await in a dict comprehension
    {str(n): await df.tool.math.ten(n) for n in [1, 2]}

    ### await in an f-string
    f"<{await df.tool.math.ten(5)}>"

    ### await in a condition
    "big" if await df.tool.math.ten(5) > 49 else "small"

    ### async context manager
    class Room:
        async def __aenter__(self):
            return "in"
        async def __aexit__(self, *error):
            return False
    async with Room() as where:
        place = where
    place

    ### context manager
    class Quiet:
        def __enter__(self):
            return 5
        def __exit__(self, *error):
            return True
    with Quiet() as n:
        raise KeyError("lost")
    n

    ### contextlib
    from contextlib import contextmanager, suppress
    @contextmanager
    def numbered():
        yield 3
    with numbered() as n, suppress(KeyError):
        {}["nothing"]
    n

    ### match statement
    def kind(value):
        match value:
            case 0 | 1:
                return "bit"
            case [first, *others]:
                return ["list", first, others]
            case {"type": "user", "id": int(number)}:
                return ["user", number]
            case str() as text if text:
                return text
            case _:
                return None
    [kind(1), kind([4, 5, 6]), kind({"type": "user", "id": 3}), kind("x"), kind(2.5)]

    ### walrus
    [half for n in range(6) if (half := n // 2) > 1]

    ### walrus in while
    left = [1, 2, 3]
    total = 0
    while (n := len(left)) > 1:
        total += left.pop() * n
    total

    ### comprehension scope
    n = "outer"
    squares = [n * n for n in range(3)]
    [n, squares]

    ### nested comprehension
    [[row * 10 + column for column in range(2)] for row in range(3)]

    ### try else finally
    log = []
    try:
        log.append("try")
    except ValueError:
        log.append("except")
    else:
        log.append("else")
    finally:
        log.append("finally")
    log

    ### finally before return
    log = []
    def leave():
        try:
            return "value"
        finally:
            log.append("finally")
    [leave(), log]

    ### several exception types
    def name_of(thing):
        try:
            return thing()
        except (KeyError, IndexError):
            return "lookup"
        except ZeroDivisionError as error:
            return str(error)
    [name_of(lambda: {}["a"]), name_of(lambda: [][0]), name_of(lambda: 1 / 0), name_of(lambda: 7)]

    ### exception cause
    try:
        try:
            int("x")
        except ValueError as error:
            raise RuntimeError("wrapped") from error
    except RuntimeError as error:
        cause = type(error.__cause__).__name__
    cause

    ### exception arguments
    try:
        raise ValueError("left", 2)
    except ValueError as error:
        parts = error.args
    parts

    ### exception group
    try:
        raise ExceptionGroup("two", [ValueError("a"), TypeError("b")])
    except* ValueError as group:
        count = len(group.exceptions)
    except* TypeError:
        pass
    count

    ### exception type name
    try:
        [][1]
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
    said

    ### re-raise
    seen = []
    try:
        try:
            {}["k"]
        except KeyError:
            seen.append("inner")
            raise
    except KeyError as error:
        seen.append(str(error))
    seen

    ### traceback text
    import traceback
    try:
        1 / 0
    except ZeroDivisionError:
        text = traceback.format_exc()
    "ZeroDivisionError" in text

    ### decorator
    def shout(function):
        def wrapped(*args):
            return function(*args).upper()
        return wrapped
    @shout
    def greet(name):
        return "hi " + name
    greet("ann")

    ### decorator with arguments and wraps
    import functools
    def times(n):
        def decorate(function):
            @functools.wraps(function)
            def wrapped(*args):
                return [function(*args) for _ in range(n)]
            return wrapped
        return decorate
    @times(2)
    def one():
        return 1
    [one(), one.__name__]

    ### cached recursion
    from functools import lru_cache
    @lru_cache(maxsize=None)
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)
    fib(60)

    ### reduce and partial
    from functools import partial, reduce
    [reduce(lambda a, b: a * b, [1, 2, 3, 4]), partial(pow, 3)(2)]

    ### comparison key from a function
    from functools import cmp_to_key
    sorted([2, 9, 4], key=cmp_to_key(lambda a, b: b - a))

    ### every kind of parameter
    def all_kinds(a, /, b, *rest, c=3, **more):
        return [a, b, rest, c, more]
    all_kinds(1, 2, 3, 4, c=5, d=6)

    ### unpacking
    first, *middle, last = [1, 2, 3, 4]
    merged = {**{"a": 1}, "b": 2} | {"c": 3}
    [first, middle, last, merged, [*middle, *middle]]

    ### swap and chained assignment
    a = b = 3
    a, b = b + 1, a
    [a, b]

    ### closure with nonlocal
    def counter():
        n = 0
        def up():
            nonlocal n
            n += 1
            return n
        return up
    up = counter()
    up()
    up()

    ### global
    hits = 0
    def hit():
        global hits
        hits += 1
    hit()
    hit()
    hits

    ### recursion
    def depth(n):
        return 0 if n == 0 else 1 + depth(n - 1)
    depth(300)

    ### big integers
    [str(2 ** 200), pow(3, 200, 10 ** 9 + 7), (2 ** 64) % 1000]

    ### bit length and bytes of integers
    [(1000).bit_length(), (258).to_bytes(2, "big").hex(), int.from_bytes(b"\x01\x02", "little")]

    ### sort by several keys
    people = [("bo", 30), ("al", 30), ("cy", 25)]
    sorted(people, key=lambda person: (-person[1], person[0]))

    ### sort is stable and in place
    rows = [("b", 1), ("a", 1), ("c", 0)]
    rows.sort(key=lambda row: row[1])
    rows

    ### method as key
    sorted(["b", "A", "c"], key=str.lower)

    ### dictionary method as key
    votes = {"ann": 2, "bob": 5}
    max(votes, key=votes.get)

    ### map with a method
    list(map(str.strip, [" a ", "b "]))

    ### map with a function
    list(map(lambda n: n + 1, [1, 2]))

    ### map with int
    [int(x) for x in map(str, [1, 2])] + list(map(int, "34"))

    ### filter
    list(filter(lambda n: n % 2, range(6)))

    ### bound method kept
    found = []
    add = found.append
    add(1)
    add(2)
    found

    ### delete
    stock = {"a": 1, "b": 2}
    line = [1, 2, 3]
    del stock["a"], line[0]
    [stock, line]

    ### slices
    letters = list("abcdefgh")
    [letters[::3], letters[-2:], letters[::-1][:2], letters[1:-5]]

    ### slice assignment
    numbers = [1, 2, 3, 4]
    numbers[1:3] = [9]
    numbers

    ### comparison chain and conditional
    x = 5
    [1 < x < 9, 1 < x > 9, "yes" if x else "no"]

    ### for else
    for n in [1, 3]:
        if n == 2:
            break
    else:
        n = "no two"
    n

    ### while else
    n = 3
    while n:
        n -= 1
        if n == 9:
            break
    else:
        n = "ran out"
    n

    ### continue and break
    kept = []
    for n in range(10):
        if n % 2:
            continue
        if n > 6:
            break
        kept.append(n)
    kept

    ### type hints
    from typing import Any, Callable, Optional
    def apply(value: Optional[int] = None, then: Callable[[int], Any] | None = None) -> list[int]:
        return [value or 0]
    apply(3)

    ### typed dictionaries and named tuples
    from typing import NamedTuple, TypedDict
    class User(TypedDict):
        id: int
    class Pair(NamedTuple):
        left: int
        right: int = 2
    user: User = {"id": 1}
    [user["id"], Pair(5).right, Pair(5)._asdict()]

    ### generic syntax since=12
    type Names = list[str]
    def head[T](items: list[T]) -> T:
        return items[0]
    head(["x", "y"])

    ### isinstance
    [isinstance(1, (int, str)), isinstance("a", int | str), isinstance(True, int), isinstance(None, str)]

    ### type names
    [type(value).__name__ for value in (1, "a", None, [], {}, 1.5, True, (), b"")]

    ### getattr setattr hasattr
    class Thing:
        pass
    thing = Thing()
    setattr(thing, "size", 3)
    [thing.size, getattr(thing, "colour", "none"), hasattr(thing, "size"), hasattr(thing, "colour")]

    ### hasattr of a method
    [hasattr([], "append"), hasattr("", "nothing")]

    ### evaluate text
    n = 3
    eval("n + 1")

    ### print
    print("a", "b", sep="-", end="!\n")
    print([1, 2.0, None, "x"], {"k": (1,)})
    "printed"

    ### assert with a message
    try:
        assert 1 == 2, "unequal"
    except AssertionError as error:
        said = str(error)
    said

    ### assert without a message
    try:
        assert [1] == [2]
    except AssertionError as error:
        said = str(error)
    said

    ### main guard
    answer = "imported"
    if __name__ == "__main__":
        answer = "run"
    answer

    ### f-strings
    n, word = 1234.5678, "ab"
    f"{n:,.2f}|{word!r:>6}|{n:e}|{255:#x}|{7:03d}|{0.256:.1%}|{word:*^6}|{n=:.1f}|{word:{8}}|"

    ### nested f-string
    names = ["x", "y"]
    f"<{', '.join(f'{name}={len(name)}' for name in names)}>"

    ### format and percent
    "{:>5}|{name:<4}".format("x", name=1) + " %05.1f %s %d%%" % (3.14159, "q", 5)

    ### string methods
    text = "  Hello World  "
    [
        text.strip().lower().split(), "a,b".partition(","), "x".zfill(3), "aXb".swapcase(),
        "a-b_c".title(), "abc".removeprefix("a"), "a\nb".splitlines(), "ab".center(6, "*"), "a.b.c".rsplit(".", 1),
        "abcabc".replace("b", "-", 1), "abc".find("c"), "abc".startswith(("x", "a")), "é".encode().hex(),
    ]

    ### string translate
    "banana".translate(str.maketrans("an", "on"))

    ### unicode strings
    ["ß".casefold(), "É".lower(), len("naïve"), "日本"[::-1], "a\u0301" == "á", "İ".lower() == "i̇"]

    ### bytes
    data = b"\x00\x01abc"
    [data[2:], data.hex(), bytes.fromhex("00ff"), data.decode("latin1"), data.find(b"a"), data[1]]

    ### bytes from a list
    [bytes([65, 66]), bytes(bytearray(b"ab") + b"c"), list(b"hi")]

    ### complex numbers
    product = (1 + 2j) * (3 - 1j)
    [product.real, product.imag]

    ### set operations
    a, b = {1, 2, 3}, frozenset({2, 3, 4})
    [a & b, a | b, a - b, a ^ b, a <= {1, 2, 3, 4}, a.isdisjoint({9}), 2 in a]

    ### set update in place
    a = {1, 2, 3}
    a.intersection_update({2, 3, 4})
    a.discard(9)
    sorted(a)

    ### dictionary methods
    d = {"a": 1}
    d.setdefault("b", []).append(2)
    d.update(c=3)
    [d, d.pop("a"), list(d.items()), dict(zip("xy", [1, 2])), {v: k for k, v in {"q": "w"}.items()}]

    ### dictionary order
    d = {"z": 1, "a": 2}
    d["m"] = 3
    d["z"] = 9
    [list(d), list(reversed(d)), dict.fromkeys("cab", 0)]

    ### keyword order
    def show(**words):
        return list(words)
    show(b=1, **{"a": 2}, c=3)

    ### builtins
    [
        sum([1, 2], 10), min([3, 1]), max("ab", "c", key=len), list(zip([1, 2], "ab", strict=True)),
        list(enumerate("ab", 1)), round(2.5), round(3.14159, 2), divmod(-7, 2), abs(-1), chr(97), ord("a"),
        hex(255), bin(5), oct(8), list(reversed([1, 2])), int("ff", 16), float("1e3"), pow(2, -1),
    ]

    ### more builtins
    [callable(len), issubclass(bool, int), ascii("é"), min([], default=0), repr("it's")]

    ### iterator with a sentinel
    source = iter([1, 2, 0, 3])
    [list(iter(lambda: next(source), 0)), next(source), next(iter([]), None)]

    ### integer division and modulo
    [-7 // 2, -7 % 3, 7 // -2, 7.5 // 2, -7.5 % 2, 2 ** -1, 0.1 + 0.2]

    ### float text
    [str(1.0), str(1e16), str(1e-5), repr(0.1), str(float("inf")), 1e15, 123456789.123456789]

    ### counter
    from collections import Counter
    letters = Counter("mississippi")
    [letters.most_common(2), letters["z"], sum(letters.values()), (letters + Counter("m"))["m"]]

    ### defaultdict
    from collections import defaultdict
    groups = defaultdict(list)
    for name in ["ann", "al", "bo"]:
        groups[name[0]].append(name)
    dict(groups)

    ### nested defaultdict
    from collections import defaultdict
    table = defaultdict(lambda: defaultdict(int))
    table["x"]["y"] += 2
    table["x"]["y"]

    ### ordered dict and chain map
    from collections import ChainMap, OrderedDict
    order = OrderedDict(a=1, b=2)
    order.move_to_end("a")
    [list(order), ChainMap({"a": 1}, {"b": 2})["b"]]

    ### deque
    from collections import deque
    recent = deque([1, 2, 3], maxlen=2)
    recent.appendleft(9)
    list(recent)

    ### named tuple
    from collections import namedtuple
    Place = namedtuple("Place", "row column")
    place = Place(1, 2)
    [place.row, place._replace(row=5), place == (1, 2)]

    ### itertools
    import itertools as it
    [
        list(it.chain([1], [2])), list(it.islice(it.count(5), 3)), list(it.combinations("abc", 2)),
        list(it.product([1], [2, 3])), list(it.accumulate([1, 2, 3])), list(it.permutations([1, 2])),
        list(it.zip_longest([1], [2, 3])), list(it.pairwise([1, 2, 3])),
    ]

    ### group by
    from itertools import groupby
    rows = sorted([("a", 1), ("b", 2), ("a", 3)])
    {key: [n for _, n in group] for key, group in groupby(rows, key=lambda row: row[0])}

    ### takewhile starmap tee
    import itertools
    [
        list(itertools.takewhile(lambda n: n < 3, [1, 2, 3, 1])), list(itertools.starmap(pow, [(2, 3)])),
        [list(copy) for copy in itertools.tee([1, 2])], list(itertools.dropwhile(lambda n: n < 3, [1, 3, 1])),
    ]

    ### regular expressions
    import re
    match = re.search(r"(?P<year>\d{4})-(\d\d)", "on 2024-05-01")
    [
        match.group("year"), match.groups(), match.span(), re.sub(r"\s+", " ", "a  b"), re.findall(r"\w+", "a b"),
        re.split(r"[,;]", "a,b;c"), bool(re.match(r"^a.*z$", "abcz", re.I)), [m.start() for m in re.finditer("a", "aba")],
    ]

    ### regular expression with a function
    import re
    re.sub(r"\d", lambda digit: str(int(digit[0]) * 2), "a1b3")

    ### regular expression lookaround
    import re
    [re.findall(r"\b(\w)\w*\1\b", "aba cdc xyz"), re.sub(r"(?<=\d)(?=(\d{3})+$)", ",", "1234567")]

    ### verbose regular expression
    import re
    bool(re.compile(r"""a  # first
        b""", re.X).match("ab"))

    ### json
    import json
    [
        json.loads('{"a": [1, 2.5, null, true, "\\u00e9"]}'), json.dumps({"b": 1, "a": [1]}, indent=2, sort_keys=True),
        json.dumps({"d": 1.0}, separators=(",", ":")), json.dumps("é"),
    ]

    ### json with a default
    import json
    from datetime import date
    json.dumps({"day": date(2024, 1, 2)}, default=str)

    ### json error
    import json
    try:
        json.loads("{")
    except json.JSONDecodeError as error:
        place = error.pos
    place

    ### json error text
    import json
    try:
        json.loads("[1,")
    except ValueError as error:
        said = type(error).__name__
    said

    ### datetime
    from datetime import date, datetime, timedelta, timezone
    moment = datetime(2024, 5, 1, 12, 30, tzinfo=timezone.utc)
    [
        moment.isoformat(), (moment + timedelta(days=3, hours=1)).strftime("%Y-%m-%d %H:%M"),
        datetime.fromisoformat("2024-05-01T00:00:00+00:00").timestamp(), (date(2024, 3, 1) - date(2024, 2, 1)).days,
        datetime.strptime("01/02/2024", "%d/%m/%Y").month, moment.weekday(), moment.replace(hour=0).hour,
    ]

    ### datetime as a value
    from datetime import date, datetime, timezone
    {"at": datetime(2024, 5, 1, 12, tzinfo=timezone.utc), "day": date(2024, 5, 1)}

    ### calendar week
    from datetime import date
    list(date(2024, 1, 1).isocalendar())

    ### zoneinfo
    from datetime import datetime
    from zoneinfo import ZoneInfo
    datetime(2024, 7, 1, tzinfo=ZoneInfo("UTC")).isoformat()

    ### calendar
    import calendar
    calendar.monthrange(2024, 2)

    ### clock
    import time
    before = time.time()
    time.sleep(0)
    time.time() >= before

    ### statistics
    import statistics
    [statistics.mean([1, 2, 3]), statistics.median([1, 3, 2]), statistics.mode([1, 1, 2])]

    ### math
    import math
    [
        math.sqrt(2), math.ceil(1.2), math.floor(-1.2), math.log10(100), math.gcd(12, 18), math.comb(5, 2),
        math.isclose(0.1 + 0.2, 0.3), math.prod([1, 2, 3]), math.hypot(3, 4), math.inf > 1, math.factorial(20),
    ]

    ### seeded random
    import random
    random.seed(7)
    [random.randint(1, 100), random.choice([1, 2, 3]), random.sample(range(10), 3), random.random()]

    ### own random generator
    import random
    dice = random.Random(42)
    [dice.randint(1, 6) for _ in range(5)]

    ### decimal
    from decimal import ROUND_HALF_UP, Decimal
    [Decimal("0.1") + Decimal("0.2") == Decimal("0.3"), str(Decimal("2.675").quantize(Decimal("0.01"), ROUND_HALF_UP))]

    ### decimal as a value
    from decimal import Decimal
    {"price": Decimal("1.10")}

    ### fractions
    from fractions import Fraction
    str(Fraction(1, 3) + Fraction(1, 6))

    ### heap and bisect
    import bisect
    import heapq
    heap = [3, 1, 2]
    heapq.heapify(heap)
    [heapq.heappop(heap), heapq.nlargest(2, [1, 5, 3]), bisect.bisect_left([1, 3, 5], 3)]

    ### bisect
    import bisect
    grades = [60, 70, 80]
    bisect.insort(grades, 75)
    [grades, bisect.bisect_right(grades, 70)]

    ### operator
    from operator import attrgetter, itemgetter
    [sorted([{"a": 2}, {"a": 1}], key=itemgetter("a")), itemgetter(0, 1)([7, 8])]

    ### string module
    import string
    [string.ascii_lowercase[:3], string.Template("hi $name").substitute(name="ann"), string.digits]

    ### textwrap
    import textwrap
    [textwrap.dedent("  a\n  b"), textwrap.shorten("hello wide world", 12), textwrap.fill("aa bb cc", 5)]

    ### struct
    import struct
    [struct.pack("<IHb", 1, 2, -3), struct.unpack(">HH", b"\x00\x01\x00\x02"), struct.calcsize("<Q")]

    ### hashlib
    import hashlib
    [hashlib.sha256(b"a").hexdigest()[:8], hashlib.md5(b"a").hexdigest()[:8]]

    ### hmac
    import hashlib
    import hmac
    hmac.new(b"key", b"text", hashlib.sha256).hexdigest()[:8]

    ### base64
    import base64
    import binascii
    [base64.b64encode(b"hi"), base64.urlsafe_b64decode("aGk="), binascii.hexlify(b"a")]

    ### zlib
    import zlib
    [zlib.crc32(b"abc"), zlib.decompress(zlib.compress(b"aaaa"))]

    ### csv from lines
    import csv
    [row["b"] for row in csv.DictReader(["a,b", "1,2", '3,"x,y"'])]

    ### csv through a text buffer
    import csv
    import io
    out = io.StringIO()
    writer = csv.DictWriter(out, ["a", "b"])
    writer.writeheader()
    writer.writerow({"a": 1, "b": "x,y"})
    out.getvalue()

    ### text and byte buffers
    import io
    text = io.StringIO()
    text.write("ab")
    [text.getvalue(), io.BytesIO(b"xyz").read(2)]

    ### urls
    from urllib.parse import parse_qs, quote, urlencode, urljoin, urlparse
    [
        urlparse("https://a.b/c?d=e#f").netloc, urlencode({"a": "x y"}), quote("a/b c"), urljoin("http://a/b/", "c"),
        parse_qs("a=1&a=2"),
    ]

    ### html
    import html
    [html.escape("<a>"), html.unescape("&lt;")]

    ### xml
    import xml.etree.ElementTree as tree
    tree.fromstring("<a><b x='1'>t</b></a>").find("b").text

    ### html parser
    from html.parser import HTMLParser
    class Tags(HTMLParser):
        def __init__(self):
            super().__init__()
            self.names = []
        def handle_starttag(self, tag, attributes):
            self.names.append(tag)
    tags = Tags()
    tags.feed("<a><b></b></a>")
    tags.names

    ### paths
    from pathlib import PurePosixPath
    path = PurePosixPath("/a/b/c.tar.gz")
    [path.name, path.stem, path.suffix, str(path.parent), str(path.with_suffix(".x")), path.parts, str(path / "d")]

    ### os path
    import os.path
    [os.path.join("a", "b"), os.path.splitext("x.py"), os.path.basename("/q/w"), os.path.dirname("/q/w")]

    ### uuid
    import uuid
    str(uuid.uuid5(uuid.NAMESPACE_DNS, "a"))

    ### deep copy
    import copy
    original = {"x": [1]}
    twin = copy.deepcopy(original)
    twin["x"].append(2)
    [original, twin]

    ### difflib
    import difflib
    difflib.get_close_matches("appel", ["ape", "apple"])

    ### pprint
    import pprint
    pprint.pformat({"a": [1, 2]})

    ### tomllib
    import tomllib
    tomllib.loads("[a]\nb = 1")

    ### sqlite in memory
    import sqlite3
    base = sqlite3.connect(":memory:")
    base.execute("create table t (a)")
    base.execute("insert into t values (1), (2)")
    base.execute("select sum(a) from t").fetchone()

    ### signature
    import inspect
    def takes(a, b=1):
        pass
    str(inspect.signature(takes))

    ### abstract class
    from abc import ABC, abstractmethod
    class Base(ABC):
        @abstractmethod
        def name(self): ...
    class Real(Base):
        def name(self):
            return "real"
    Real().name()

    ### unicodedata
    import unicodedata
    unicodedata.normalize("NFKD", "é").encode("ascii", "ignore")

    ### arrays
    import array
    list(array.array("I", [1, 2]))

    ### literal evaluation
    import ast
    ast.literal_eval("[1, {'a': 2}]")

    ### shell words
    import shlex
    [shlex.split("a 'b c'"), shlex.quote("x y")]

    ### file name patterns
    import fnmatch
    fnmatch.filter(["a.py", "b.txt"], "*.py")

    ### ip addresses
    import ipaddress
    [ipaddress.ip_network("10.0.0.0/30").num_addresses, ipaddress.ip_address("10.0.0.1").is_private]

    ### mail addresses
    from email.utils import parseaddr
    parseaddr("Ann <a@b.c>")

    ### group and total
    sales = [("pen", 2), ("ink", 5), ("pen", 3)]
    totals = {}
    for name, n in sales:
        totals[name] = totals.get(name, 0) + n
    sorted(totals.items(), key=lambda pair: (-pair[1], pair[0]))

    ### table of rows
    rows = [{"name": "a", "size": 10}, {"name": "bb", "size": 2000}]
    "\n".join(f"{row['name']:<4}{row['size']:>8,}" for row in rows)

    ### equality across types
    [1 == 1.0, True == 1, "1" == 1, [1] == (1,), {"a": 1} == {"a": 1.0}, None == 0, b"a" == "a"]

    ### list methods
    line = [3, 1, 2]
    line.insert(1, 9)
    line.extend([4, 4])
    line.remove(3)
    [line, line.index(9), line.count(4), line.pop(), line * 2, line + [0], line.copy() == line]

    ### string multiplication and containment
    ["ab" * 3, "b" in "abc", "" in "abc", "abc"[1], "abc"[-1], "abc" < "abd", max("hello")]

    ### multiple returns and tuple index
    def bounds(numbers):
        return min(numbers), max(numbers)
    low, high = bounds([4, 1, 9])
    (low, high)[1] - low

    ### lambda in a loop
    functions = [lambda n=n: n * 10 for n in range(3)]
    [function() for function in functions]

    ### late binding in a loop
    functions = [lambda: n for n in range(3)]
    [function() for function in functions]

    ### no value
    items = []
    for n in range(3):
        items.append(n)
    '''
)
