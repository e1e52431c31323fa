"""Misspelt keys behind whatever hides a row's type from a type checker; `§` marks the place. All mean `path`."""

from __future__ import annotations

__all__ = ["BEHIND", "HARMLESS"]

_TEXT = """
async def one(kind):
    page = await df.db.app.modules.page(where={"kind": kind})
    return page["rows"]
rows = await one("script")
[row[§"pth"] for row in rows]
---
async def first():
    page = await df.db.app.modules.page()
    return page.rows[0]
row = await first()
row[§"pth"]
---
async def collect():
    found = []
    async for page in df.db.app.modules.pages():
        for row in page.rows:
            if row["size"] > 3:
                found.append(row)
    return found
for row in await collect():
    print(row[§"pth"])
---
import asyncio
async def one(kind):
    page = await df.db.app.modules.page(where={"kind": kind})
    return page.rows
parts = await asyncio.gather(*[one(kind) for kind in ["script", "data"]])
[row[§"pth"] for part in parts for row in part]
---
import asyncio
async def one(kind):
    return await df.db.app.modules.page(where={"kind": kind})
first, second = await asyncio.gather(one("script"), one("data"))
second.rows[0][§"pth"]
---
import asyncio
pages = await asyncio.gather(*[df.db.app.modules.page(offset=n) for n in range(3)])
rows = [row for page in pages for row in page.rows]
len([row for row in rows if row[§"pth"]])
---
import asyncio
async def one(kind):
    return (await df.db.app.modules.page(where={"kind": kind})).rows
tasks = [asyncio.create_task(one(kind)) for kind in ("script", "data")]
out = []
for task in tasks:
    out.extend(await task)
out[0][§"pth"]
---
import asyncio
async def one(kind):
    return (await df.db.app.modules.page(where={"kind": kind})).rows
async with asyncio.TaskGroup() as group:
    first = group.create_task(one("script"))
[row[§"pth"] for row in first.result()]
---
import asyncio
async def one(kind):
    return (await df.db.app.modules.page(where={"kind": kind})).rows
for done in asyncio.as_completed([one("script"), one("data")]):
    for row in await done:
        print(row[§"pth"])
---
from collections import defaultdict
page = await df.db.app.modules.page()
groups = defaultdict(list)
for row in page.rows:
    groups[row["kind"]].append(row)
{kind: [row[§"pth"] for row in rows] for kind, rows in groups.items()}
---
page = await df.db.app.modules.page()
groups = {}
for row in page.rows:
    groups.setdefault(row["kind"], []).append(row)
for kind in groups:
    for row in groups[kind]:
        print(row[§"pth"])
---
page = await df.db.app.modules.page()
by_id = {row["node_id"]: row for row in page.rows}
for node_id in by_id:
    print(by_id[node_id][§"pth"])
---
page = await df.db.app.modules.page()
by_id = {}
for row in page.rows:
    by_id[row["node_id"]] = row
max(by_id.values(), key=lambda row: row[§"pth"])
---
page = await df.db.app.modules.page()
best = {}
for row in page.rows:
    kind = row["kind"]
    if kind not in best or row["size"] > best[kind]["size"]:
        best[kind] = row
[best[kind][§"pth"] for kind in sorted(best)]
---
class Finder:
    def __init__(self):
        self.rows = []
    async def load(self):
        async for page in df.db.app.modules.pages():
            self.rows.extend(page.rows)
    def paths(self):
        return [row[§"pth"] for row in self.rows]
finder = Finder()
await finder.load()
finder.paths()
---
class Finder:
    def __init__(self, rows):
        self.rows = rows
    def __iter__(self):
        for row in self.rows:
            yield row
page = await df.db.app.modules.page()
[row[§"pth"] for row in Finder(page.rows)]
---
from dataclasses import dataclass, field
@dataclass
class Report:
    rows: list = field(default_factory=list)
    def add(self, row):
        self.rows.append(row)
report = Report()
page = await df.db.app.modules.page()
for row in page.rows:
    report.add(row)
report.rows[0][§"pth"]
---
class Base:
    async def rows(self):
        return (await df.db.app.modules.page()).rows
class Derived(Base):
    async def paths(self):
        return [row[§"pth"] for row in await self.rows()]
await Derived().paths()
---
from operator import itemgetter
page = await df.db.app.modules.page()
sorted(page.rows, key=itemgetter(§"pth"))
---
import operator
page = await df.db.app.modules.page()
list(map(operator.itemgetter("kind", §"pth"), page.rows))
---
async def one():
    return (await df.db.app.modules.page()).rows
sorted(await one(), key=lambda row: (row["kind"], row[§"pth"]))
---
from itertools import groupby
async def one():
    return (await df.db.app.modules.page()).rows
rows = sorted(await one(), key=lambda row: row["kind"])
{kind: [row[§"pth"] for row in group] for kind, group in groupby(rows, lambda row: row["kind"])}
---
async def one():
    return (await df.db.app.modules.page()).rows
list(filter(lambda row: row[§"pth"], await one()))
---
rows = []
page = await df.db.app.modules.page()
rows += page["rows"]
[row[§"pth"] for row in rows]
---
async def one():
    return (await df.db.app.modules.page()).rows
for number, row in enumerate(await one(), 1):
    print(number, row[§"pth"])
---
async def one():
    return (await df.db.app.modules.page()).rows
rows = await one()
for before, after in zip(rows, rows[1:]):
    print(before["path"], after[§"pth"])
---
async def main():
    async def one():
        page = await df.db.app.modules.page()
        return page.rows
    rows = await one()
    return rows[0][§"pth"]
await main()
---
async def main():
    page = await df.db.app.modules.page()
    def show(row):
        return row[§"pth"]
    return [show(row) for row in page.rows]
await main()
---
async def each():
    async for page in df.db.app.modules.pages():
        for row in page.rows:
            yield row
async for row in each():
    print(row[§"pth"])
---
async def each():
    async for page in df.db.app.modules.pages():
        yield page.rows
[row[§"pth"] async for rows in each() for row in rows]
---
def flat(pages):
    for page in pages:
        yield from page.rows
pages = [page async for page in df.db.app.modules.pages()]
[row[§"pth"] for row in flat(pages)]
---
async def one():
    return (await df.db.app.modules.page()).rows
if (rows := await one()):
    print(rows[0][§"pth"])
---
page = await df.db.app.modules.page()
copies = [dict(row) for row in page.rows]
[row[§"pth"] for row in copies]
---
page = await df.db.app.modules.page()
copies = [{**row, "extra": 1} for row in page.rows]
[(row["extra"], row[§"pth"]) for row in copies]
---
page = await df.db.app.modules.page()
copies = [dict(row, extra=1) for row in page.rows]
[row[§"pth"] for row in copies]
---
page = await df.db.app.modules.page()
copies = [row | {"extra": 1} for row in page.rows]
copies[0][§"pth"]
---
page = await df.db.app.modules.page()
first = page.rows[0].copy()
first[§"pth"]
---
from functools import reduce
async def one():
    return (await df.db.app.modules.page()).rows
reduce(lambda total, row: total + len(row[§"pth"]), await one(), 0)
---
from collections import Counter
async def one():
    return (await df.db.app.modules.page()).rows
Counter(row[§"pth"] for row in await one())
---
async def one():
    return (await df.db.app.modules.page()).rows
for row in await one():
    match row["kind"]:
        case "script":
            print(row[§"pth"])
---
async def one():
    return (await df.db.app.modules.page()).rows
match await one():
    case [first, *rest]:
        print(first[§"pth"])
---
def summary(rows):
    return {row[§"pth"]: row["size"] for row in rows}
page = await df.db.app.modules.page()
summary(page.rows)
---
def label(row, sep=": "):
    return row["kind"] + sep + row[§"pth"]
page = await df.db.app.modules.page()
[label(row, sep="=") for row in page.rows]
---
def label(*, row):
    return row[§"pth"]
page = await df.db.app.modules.page()
[label(row=row) for row in page.rows]
---
label = lambda row: row[§"pth"]
page = await df.db.app.modules.page()
[label(row) for row in page.rows]
---
from functools import partial
def label(sep, row):
    return sep + row[§"pth"]
page = await df.db.app.modules.page()
list(map(partial(label, "-"), page.rows))
---
import functools
def traced(function):
    @functools.wraps(function)
    async def inner(*args, **kwargs):
        return await function(*args, **kwargs)
    return inner
@traced
async def one(kind):
    return (await df.db.app.modules.page(where={"kind": kind})).rows
[row[§"pth"] for row in await one("script")]
---
async def one(name):
    module = await df.db.app.modules.get(name)
    return module, len(name)
module, length = await one("m1")
module[§"pth"]
---
async def load():
    page = await df.db.app.modules.page()
    return {"rows": page.rows, "total": page.page.total}
state = await load()
[row[§"pth"] for row in state["rows"]]
---
state = {"rows": []}
async def load():
    async for page in df.db.app.modules.pages():
        state["rows"].extend(page.rows)
await load()
state["rows"][0][§"pth"]
---
rows = []
async def load():
    global rows
    rows = (await df.db.app.modules.page()).rows
await load()
for row in rows:
    print(row[§"pth"])
---
async def main():
    rows = []
    async def load():
        nonlocal rows
        rows = [*rows, *(await df.db.app.modules.page()).rows]
    await load()
    return rows[0][§"pth"]
await main()
---
import itertools
pages = [page.rows async for page in df.db.app.modules.pages()]
for row in itertools.chain.from_iterable(pages):
    print(row[§"pth"])
---
import itertools
pages = [page.rows async for page in df.db.app.modules.pages()]
for row in itertools.islice(itertools.chain(*pages), 5):
    print(row[§"pth"])
---
import heapq
async def one():
    return (await df.db.app.modules.page()).rows
[row[§"pth"] for row in heapq.nlargest(3, await one(), key=lambda row: row["size"])]
---
async def one():
    return (await df.db.app.modules.page()).rows
first = next((row for row in await one() if row["size"] > 1), None)
first[§"pth"] if first else None
---
async def one():
    return (await df.db.app.modules.page()).rows
min(await one(), key=lambda row: row["size"])[§"pth"]
---
async def found(ids):
    return [one["item"] for one in await df.db.app.modules.get_many(ids) if one["status"] == "found"]
items = await found(["a"])
items[0][§"pth"]
---
cache = {}
async def get(name):
    if name not in cache:
        cache[name] = await df.db.app.modules.get(name)
    return cache[name]
(await get("m1"))[§"pth"]
---
from collections import deque
queue = deque((await df.db.app.modules.page()).rows)
while queue:
    row = queue.popleft()
    print(row[§"pth"])
---
stack = list((await df.db.app.modules.page()).rows)
while stack:
    row = stack.pop()
    print(row[§"pth"])
---
async def pairs():
    page = await df.db.app.modules.page()
    return [(row["kind"], row) for row in page.rows]
for kind, row in await pairs():
    print(kind, row[§"pth"])
---
async def one():
    return (await df.db.app.modules.page()).rows
rows = await one()
half = rows[: len(rows) // 2]
half[-1][§"pth"]
---
async def one():
    return (await df.db.app.modules.page()).rows
rows = [row for row in await one() if row["kind"] == "script"]
rows.sort(key=lambda row: row[§"pth"])
---
from typing import Any
async def one() -> Any:
    return (await df.db.app.modules.page()).rows
rows: list[dict[str, Any]] = await one()
rows[0][§"pth"]
---
async def one(depth):
    page = await df.db.app.modules.page(limit=depth)
    if page.page.exhausted:
        return page.rows
    return page.rows + await one(depth + 1)
[row[§"pth"] for row in await one(1)]
---
async def one():
    try:
        return (await df.db.app.modules.page()).rows
    except df.Error:
        return []
[row[§"pth"] for row in await one()]
---
async def one():
    page = await df.db.app.modules.page()
    return page
page = await one()
f"{page.rows[0][§'pth']}"
---
import copy
async def one():
    return (await df.db.app.modules.page()).rows
copy.deepcopy(await one())[0][§"pth"]
---
async def one():
    return (await df.db.app.modules.page()).rows
rows = await one()
a, *others = rows
others[0][§"pth"]
---
import asyncio
queue = asyncio.Queue()
for row in (await df.db.app.modules.page()).rows:
    queue.put_nowait(row)
row = await queue.get()
row[§"pth"]
---
import asyncio
limit = asyncio.Semaphore(2)
async def one(name):
    async with limit:
        return await df.db.app.modules.get(name)
items = await asyncio.gather(*(one(name) for name in ["a", "b"]))
[item[§"pth"] for item in items]
---
import asyncio
async def one():
    return (await df.db.app.modules.page()).rows
rows = await asyncio.wait_for(one(), 5)
rows[0][§"pth"]
---
steps = [lambda row: row["kind"], lambda row: row[§"pth"]]
page = await df.db.app.modules.page()
[step(row) for row in page.rows for step in steps]
---
class Box:
    def __init__(self, row):
        self._row = row
    @property
    def row(self):
        return self._row
    @classmethod
    async def load(cls, name):
        return cls(await df.db.app.modules.get(name))
box = await Box.load("m1")
box.row[§"pth"]
"""

BEHIND: tuple[str, ...] = tuple(_TEXT.strip("\n").split("\n---\n"))
"""Each reads `"pth"` of a row; nothing may run."""

_RIGHT = """
def show(item, kind):
    if kind == "module":
        return item["path"]
    return item["text"]
modules = await df.db.app.modules.page()
[show(row, "module") for row in modules.rows]
---
def show(item):
    return item["pth"]
show({"pth": 1})
---
def show(item):
    return item["pth"]
modules = await df.db.app.modules.page()
show({"pth": 1}), len(modules.rows)
---
rows = [{"pth": 1}]
page = await df.db.app.modules.page()
rows.extend(page.rows)
rows[0]["pth"]
---
import json
async def one():
    return json.loads('[{"pth": 1}]')
[row["pth"] for row in await one()]
---
rows = []
page = await df.db.app.modules.page()
rows += page.rows
for row in rows:
    row["pth"] = row["path"]
[row["pth"] for row in rows]
---
def add(row, key):
    row[key] = 1
    return row
page = await df.db.app.modules.page()
add(page.rows[0], "pth")["pth"]
---
page = await df.db.app.modules.page()
groups = {}
for row in page.rows:
    groups.setdefault(row["kind"], []).append({"pth": row["path"]})
[row["pth"] for rows in groups.values() for row in rows]
---
class Row(dict):
    def __missing__(self, key):
        return key
page = await df.db.app.modules.page()
Row(page.rows[0])["pth"]
---
from collections import defaultdict
page = await df.db.app.modules.page()
row = defaultdict(str, page.rows[0])
row["pth"]
---
from collections import ChainMap
page = await df.db.app.modules.page()
ChainMap(page.rows[0], {"pth": 1})["pth"]
---
page = await df.db.app.modules.page()
rename = {"pth": "path"}
row = {new: page.rows[0][old] for new, old in rename.items()}
row["pth"]
---
page = await df.db.app.modules.page()
rows = [{key[:1] + key[2:] if key == "path" else key: value for key, value in row.items()} for row in page.rows]
rows[0]["pth"] if rows else None
---
import operator
page = await df.db.app.modules.page()
row = page.rows[0]
operator.setitem(row, "pth", 1)
row["pth"]
---
def enrich(row):
    return {**row, "pth": row["path"]}
page = await df.db.app.modules.page()
[enrich(row)["pth"] for row in page.rows]
---
def enrich(rows, **more):
    return [{**row, **more} for row in rows]
page = await df.db.app.modules.page()
enrich(page.rows, pth=1)[0]["pth"]
---
class Store:
    pass
store = Store()
store.rows = (await df.db.app.modules.page()).rows
store.rows = [{"pth": 1}]
store.rows[0]["pth"]
---
class Base:
    def __init__(self):
        self.fill()
class Derived(Base):
    def fill(self):
        self.rows = [{"pth": 1}]
class Other(Base):
    async def load(self):
        self.rows = (await df.db.app.modules.page()).rows
Derived().rows[0]["pth"]
---
class Adder:
    def __init__(self, rows):
        self.rows = rows
    def __add__(self, other):
        return Adder(self.rows + other.rows)
page = await df.db.app.modules.page()
(Adder([{"pth": 1}]) + Adder(page.rows)).rows[0]["pth"]
---
def swap(value):
    global row
    row = value
row = (await df.db.app.modules.page()).rows[0]
swap({"pth": 1})
row["pth"]
---
import random
def pick(first, second):
    return random.choice([first, second])
page = await df.db.app.modules.page()
value = pick(page.rows[0], page.rows[0])
value["pth"] if "pth" in value else None
---
def generic(items, key):
    return [item[key] for item in items]
page = await df.db.app.modules.page()
generic(page.rows, "path")
---
page = await df.db.app.modules.page()
def apply(function, value):
    try:
        return function(value)
    except KeyError:
        return None
[apply(lambda row: row["pth"], row) for row in page.rows]
---
def rows_of(page):
    return getattr(page, "rows", [])
page = await df.db.app.modules.page()
[row["path"] for row in rows_of(page)]
---
modules = await df.db.app.modules.page()
notes = await df.db.app.notes.page()
def size(row):
    return row["size"] if "size" in row else row["score"]
[size(row) for row in [*modules.rows, *notes.rows]]
---
for page in [await df.db.app.modules.page(), await df.db.app.notes.page()]:
    for row in page.rows:
        print(row.get("text") or row.get("path"))
---
table = {"modules": df.db.app.modules, "notes": df.db.app.notes}
key = {"modules": "path", "notes": "text"}
out = {}
for name, collection in table.items():
    page = await collection.page()
    out[name] = [row[key[name]] for row in page.rows]
out
---
rows = [row async for page in df.db.app.modules.pages() for row in page.rows]
rows[:] = [{"pth": row["path"]} for row in rows]
rows[0]["pth"]
---
page = await df.db.app.modules.page()
rows = list(page.rows)
for number, row in enumerate(rows):
    rows[number] = {"pth": row["path"]}
[row["pth"] for row in rows]
---
from types import SimpleNamespace
page = await df.db.app.modules.page()
rows = [SimpleNamespace(**row) for row in page.rows]
rows[0].path
---
from collections import namedtuple
page = await df.db.app.modules.page()
Row = namedtuple("Row", "path kind")
[Row(row["path"], row["kind"]).path for row in page.rows]
---
class Wrapped:
    def __init__(self, row):
        self.row = row
    def __getattr__(self, name):
        return self.row[name]
page = await df.db.app.modules.page()
[Wrapped(row).path for row in page.rows]
---
class Wrapped:
    def __init__(self, row):
        self.row = row
    def __getitem__(self, key):
        return self.row.get(key)
page = await df.db.app.modules.page()
[Wrapped(row)["pth"] for row in page.rows]
---
import functools
@functools.singledispatch
def show(value):
    return value["pth"]
show({"pth": 1})
---
def collect(into, row):
    into.append({"pth": row["path"]})
found = []
page = await df.db.app.modules.page()
for row in page.rows:
    collect(found, row)
found[0]["pth"] if found else None
---
row = (await df.db.app.modules.page()).rows[0]
row = {"pth": row["path"]}
row["pth"]
---
async def each():
    sent = yield (await df.db.app.modules.page()).rows[0]
    yield {"pth": sent}
stream = each()
first = await stream.__anext__()
second = await stream.__anext__()
second["pth"]
---
class Context:
    def __enter__(self):
        return {"pth": 1}
    def __exit__(self, *problem):
        return False
with Context() as row:
    print(row["pth"])
---
import contextlib
@contextlib.asynccontextmanager
async def opened():
    page = await df.db.app.modules.page()
    yield {"pth": page.rows[0]["path"]}
async with opened() as row:
    print(row["pth"])
---
memo = {}
def remember(row):
    memo.update({row["path"]: {"pth": row["path"]}})
page = await df.db.app.modules.page()
for row in page.rows:
    remember(row)
[one["pth"] for one in memo.values()]
"""

HARMLESS: tuple[str, ...] = tuple(_RIGHT.strip("\n").split("\n---\n"))
"""Each runs correctly on some data, however much it looks like the others."""
