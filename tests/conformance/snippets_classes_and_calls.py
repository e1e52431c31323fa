"""Snippets: classes, exceptions, generators, asynchronous code."""

from __future__ import annotations

__all__ = ["TEXT"]

TEXT = r"""
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

"""
