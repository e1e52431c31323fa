"""Correct scripts, in the manner of those that agents write, and with everything that once fooled a checker.

None of them may be rejected. Where static types cannot follow (a dictionary in a variable, a key that is added
later), advice is fine.
"""

from __future__ import annotations

__all__ = ["GOOD"]

_TEXT = '''
page = await df.db.app.modules.page()
len(page.rows)
---
page = await df.db.app.modules.page(where={"path": "main.js", "kind": "script"}, limit=64)
[(row["path"], row["sites"]) for row in page.rows]
---
total = 0
async for page in df.db.app.modules.pages(where={"kind": ["script", "data"]}):
    for row in page.rows:
        total += row["sites"]
total
---
async for page in df.db.app.modules.pages():
    if page.page.exhausted:
        break
else:
    page = None
page
---
rows = [row async for page in df.db.app.modules.pages(limit=500) for row in page.rows]
sorted(rows, key=lambda row: -row["size"])[:5]
---
page = await df.db.app.modules.page(where={"path": None})
page["rows"][0]["node_id"] if page["rows"] else None
---
page = await df.db.app.modules.page(where={"path": ["a.js", None]})
page.page.total
---
page = await df.db.app.modules.page({"size": 3})
page["page"]["next_cursor"]
---
cursor = None
rows = []
while True:
    page = await df.db.app.modules.page(cursor=cursor, limit=100)
    rows.extend(page.rows)
    cursor = page.page.next_cursor
    if cursor is None:
        break
len(rows)
---
where = {"kind": "script"}
if len("abc") > 2:
    where["path"] = "main.js"
page = await df.db.app.modules.page(where=where)
page.rows
---
options = dict(limit=3, where={"kind": "data"})
page = await df.db.app.modules.page(**options)
page.evidence_id
---
options = {"limit": 3}
options["offset"] = 10
page = await df.db.app.modules.page(**options)
page
---
found = await df.db.app.modules.get_many(["a", "b", "a"])
[one["item"]["path"] for one in found if one["status"] == "found"]
---
found = await df.db.app.modules.get_many(["a"])
found[0]["item"]["path"]
---
found = await df.db.app.modules.get_many(["a"])
[one["item"]["path"] for one in found]
---
found = await df.db.app.modules.get_many(["a", "b"])
{one["id"]: one["code"] for one in found if one["status"] == "failed"}
---
page = await df.db.app.modules.page()
ids = [row["node_id"] for row in page.rows]
items = await df.db.app.modules.get_many(ids)
len(items)
---
item = await df.db.app.modules.get("m1")
item["tags"][0].upper() if item["tags"] else ""
---
count = await df.db.app.modules.count(by="kind")
{group["value"]: group["count"] for group in count.groups}
---
count = await df.db.app.modules.count(where={"size": [1, 2]})
f"{count.count} ({count.bound})"
---
page = await df.db.app.modules.page()
row = page.rows[0]
row["identity"]["reason"] if row["identity"]["strategy"] == "missing" else row["identity"]["key"]
---
page = await df.db.app.modules.page()
for row in page.rows:
    match row["identity"]:
        case {"strategy": "missing", "reason": reason}:
            print(reason)
        case {"key": key}:
            print(key)
---
page = await df.db.app.modules.page()
page.rows[0]["path"].split("/")[-1]
---
page = await df.db.app.modules.page(where={"path": "main.js"})
[row["path"].upper() for row in page.rows]
---
page = await df.db.app.modules.page()
for row in page.rows:
    row["score"] = row["size"] * 2
sorted(page.rows, key=lambda row: row["score"])
---
page = await df.db.app.modules.page()
for row in page.rows:
    row.update(extra=1)
    row.pop("path")
page.rows[0]["extra"]
---
page = await df.db.app.modules.page()
for row in page.rows:
    row.update({"label": "x"})
[row["label"] for row in page.rows]
---
page = await df.db.app.modules.page()
extra = {"owner": "me"}
for row in page.rows:
    row.update(extra)
[row["owner"] for row in page.rows]
---
page = await df.db.app.modules.page()
merged = [row | {"ratio": 1.5} for row in page.rows]
[row["ratio"] for row in merged]
---
page = await df.db.app.modules.page()
merged = [{**row, "ratio": 1.5} for row in page.rows]
merged[0]["ratio"]
---
page = await df.db.app.modules.page()
for row in page.rows:
    row.setdefault("seen", 0)
    row["seen"] += 1
page.rows[0]["seen"]
---
page = await df.db.app.modules.page()
for row in page.rows:
    for name in ("first", "second"):
        row[name] = len(name)
page.rows[0]["first"] + page.rows[0]["second"]
---
def mark(target, key, value):
    target[key] = value

page = await df.db.app.modules.page()
for row in page.rows:
    mark(row, "marked", True)
[row["marked"] for row in page.rows]
---
page = await df.db.app.modules.page()
page.rows.append({"node_id": "x", "weird": 1})
page.rows[-1]["node_id"]
---
page = await df.db.app.modules.page()
for row in page.rows:
    if "owner" in row:
        print(row["owner"])
---
page = await df.db.app.modules.page()
[row["owner"] if "owner" in row else None for row in page.rows]
---
page = await df.db.app.modules.page()
[row.get("owner", "nobody") for row in page.rows]
---
page = await df.db.app.modules.page()
for row in page.rows:
    if row.get("owner"):
        print(row["owner"])
---
page = await df.db.app.modules.page()
try:
    owner = page.rows[0]["owner"]
except KeyError:
    owner = "nobody"
owner
---
from contextlib import suppress

page = await df.db.app.modules.page()
owner = None
with suppress(KeyError, IndexError):
    owner = page.rows[0]["owner"]
owner
---
page = await df.db.app.modules.page()
for key in page.rows[0]:
    print(key, page.rows[0][key])
---
page = await df.db.app.modules.page()
field = "kind"
{row[field] for row in page.rows}
---
page = await df.db.app.modules.page()
for field in ("kind", "path", "size"):
    print(field, [row[field] for row in page.rows])
---
from operator import itemgetter

page = await df.db.app.modules.page()
sorted(page.rows, key=itemgetter("size"), reverse=True)
---
from collections import Counter

page = await df.db.app.modules.page()
Counter(row["kind"] for row in page.rows).most_common(3)
---
from collections import defaultdict

by_kind = defaultdict(list)
async for page in df.db.app.modules.pages():
    for row in page.rows:
        by_kind[row["kind"]].append(row["path"])
{kind: len(paths) for kind, paths in by_kind.items()}
---
from itertools import groupby

page = await df.db.app.modules.page()
rows = sorted(page.rows, key=lambda row: row["kind"])
{kind: [row["size"] for row in group] for kind, group in groupby(rows, key=lambda row: row["kind"])}
---
import json

page = await df.db.app.modules.page()
json.loads(json.dumps(page.rows))[0]["anything"]
---
rows: list[dict] = (await df.db.app.modules.page()).rows
[row["anything"] for row in rows]
---
def describe(row: dict) -> str:
    return f"{row['path']} {row['size']}"

page = await df.db.app.modules.page()
[describe(row) for row in page.rows]
---
def total(rows: "list[dict]") -> int:
    return sum(row["size"] for row in rows)

total((await df.db.app.modules.page()).rows)
---
page = await df.db.app.modules.page()
best = max(page.rows, key=lambda row: row["size"], default=None)
best["path"]
---
best = None
async for page in df.db.app.modules.pages():
    for row in page.rows:
        if best is None or row["size"] > best["size"]:
            best = row
best["path"] if best else None
---
class Index:
    def __init__(self):
        self.rows = {}

    def add(self, row):
        self.rows.setdefault(row["kind"], []).append(row["node_id"])

index = Index()
async for page in df.db.app.modules.pages():
    for row in page.rows:
        index.add(row)
index.rows
---
modules = df.db.app.modules
page = await modules.page(limit=int("3"))
page.rows
---
app = df.db.app
first, second = await app.modules.page(), await app.notes.page()
len(first.rows) + len(second.rows)
---
import asyncio

first, second = await asyncio.gather(df.db.app.modules.page(), df.db.other.modules.page())
len(first.rows) + len(second.rows)
---
import asyncio

cities = ["Rome", "Oslo"]
replies = await asyncio.gather(*[df.tool.weather.forecast(city=city) for city in cities])
{reply["city"]: reply["high"] for reply in replies}
---
import asyncio

pending = [df.tool.weather.forecast(city=city) for city in ("Rome", "Oslo")]
replies = await asyncio.gather(*pending)
[reply["hours"][0]["celsius"] for reply in replies]
---
import asyncio

pending = []
for city in ("Rome", "Oslo"):
    pending.append(df.tool.weather.forecast(city=city))
len(await asyncio.gather(*pending))
---
import asyncio

async with asyncio.TaskGroup() as group:
    first = group.create_task(df.tool.weather.add(a=1, b=2))
    second = group.create_task(df.tool.weather.add(a=3, b=4))
first.result() + second.result()
---
import asyncio

limit = asyncio.Semaphore(4)

async def one(city):
    async with limit:
        return await df.tool.weather.forecast(city=city)

await asyncio.gather(*(one(city) for city in ["Rome", "Oslo"]))
---
import asyncio

tasks = {asyncio.create_task(df.tool.weather.add(a=i, b=i)): i for i in range(3)}
done, waiting = await asyncio.wait(tasks)
sorted(tasks[task] for task in done)
---
import asyncio

for finished in asyncio.as_completed([df.tool.weather.add(a=1, b=1), df.tool.weather.add(a=2, b=2)]):
    print(await finished)
---
import asyncio

asyncio.create_task(df.tool.weather.add(a=1, b=1))
await asyncio.sleep(0)
---
import asyncio

await asyncio.wait_for(df.tool.weather.add(a=1, b=1), timeout=5)
---
call = df.tool.weather.add(a=1, b=2)
await call
---
call = df.tool.weather.add(a=1, b=2)
result = await call if True else None
result
---
calls = {name: df.tool.weather.forecast(city=name) for name in ("Rome", "Oslo")}
{name: (await call)["high"] for name, call in calls.items()}
---
def prepare(city):
    return df.tool.weather.forecast(city=city)

(await prepare("Rome"))["city"]
---
async def both():
    first = df.tool.weather.add(a=1, b=2)
    second = df.tool.weather.add(a=3, b=4)
    return await first + await second

await both()
---
[await df.tool.weather.add(a=i, b=i) for i in range(3)]
---
return [await df.tool.weather.forecast(city=city) for city in ["Rome"]]
---
reply = await df.tool.weather.raw(q="x")
if not reply:
    return None
return reply["anything"].whatever[3]
---
reply = await df.tool.weather.forecast("Rome", days=3, unit="c")
reply.get("note", "").upper()
---
reply = await df.tool.weather.forecast("Rome")
reply["undeclared_but_returned"] if len(reply) > 3 else None
---
reply = await df.tool.weather.forecast(city="Rome")
reply["note"] if "note" in reply else "-"
---
unit = "c"
if len("x") > 0:
    unit = "f"
await df.tool.weather.forecast(city="Rome", unit=unit)
---
units = {"metric": "c", "imperial": "f"}
await df.tool.weather.forecast(city="Rome", unit=units["metric"])
---
days = None
await df.tool.weather.forecast(city="Rome", days=days or 3)
---
limit = None

def widen():
    global limit
    limit = 5

widen()
await df.db.app.modules.page(limit=limit)
---
class Settings:
    limit = None

def fill(settings):
    settings.limit = 5

Settings.limit = None
fill(Settings)
await df.db.app.modules.page(limit=Settings.limit)
---
settings = {"limit": None}

def fill(target):
    target["limit"] = 5

fill(settings)
await df.db.app.modules.page(limit=settings["limit"])
---
def first_page(limit: str):
    return df.db.app.modules.page(limit=limit)

await first_page(5)
---
orders = await df.tool.shop.orders(customer="acme")
open_orders = [order for order in orders if order["status"] == "open"]
round(sum(order["total"] for order in open_orders), 2)
---
orders = await df.tool.shop.orders("acme", limit=5)
[(order.get("email") or "").lower() for order in orders]
---
await df.tool.shop.send_mail(to="a@b", from_="c@d")
---
page = await df.db.app.notes.page(where={"done": False})
sum(note["score"] for note in page.rows) / max(len(page.rows), 1)
---
page = await df.db.app.notes.page()
df.answer(status="answered" if page.rows else "unsupported", value=len(page.rows), evidence=[page.evidence_id])
---
status = "answered"
if not (await df.db.app.notes.page()).rows:
    status = "partial"
df.answer(status=status, value=None, reason="few")
---
status = {True: "answered", False: "partial"}[len("x") > 3]
df.answer(status=status)
---
ids = [call["evidence_id"] for call in df.calls()]
df.answer(status="answered", value=1, evidence=ids, derivation="counted")
---
try:
    await df.tool.weather.forecast(city="Atlantis")
except df.Error as error:
    print(error.code, error.message, error.hint, error.retryable, error.details.get("path"))
---
try:
    page = await df.db.app.modules.page(where={"no_such_field": 1})
except df.Error as error:
    code = error.code
code
---
try:
    await df.tool.weather.forecast(town="Rome")
except TypeError as error:
    message = str(error)
message
---
results[0].data["counts"]["main"] + results[1].data
---
results.last.data["best"].upper()
---
sum(results[0].data["counts"].values())
---
[name for run in range(1, 3) for name in results.by_run(run).data["anything"]]
---
latest = results[0].data
latest["note"] = "checked"
latest["note"]
---
if results[0].error is None and len(results) > 1:
    print(results[7].data["whatever"])
---
data = results[0].data
data["names"].sort()
data["names"][-1]
---
try:
    import numpy as np
except ImportError:
    np = None
np
---
try:
    cached
except NameError:
    cached = {}
cached
---
try:
    text = unicode("a")
except NameError:
    text = str("a")
text
---
exec("made = 1")
made
---
globals()["made"] = 2
made
---
from math import *
floor(sqrt(17))
---
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass
else:
    flag = True
flag
---
import sys

if sys.version_info >= (3, 0):
    text = str
text(1)
---
for number in range(3):
    last = number
last
---
def outer():
    def inner():
        return later()
    return inner()

def later():
    return 3

outer()
---
def counter():
    count = 0
    def step():
        nonlocal count
        count += 1
        return count
    return step

counter()()
---
def setup():
    global ready
    ready = True

setup()
ready
---
class Node:
    def __init__(self, value, rest=None):
        self.value, self.rest = value, rest

    def __iter__(self):
        node = self
        while node is not None:
            yield node.value
            node = node.rest

list(Node(1, Node(2)))
---
from dataclasses import dataclass, field

@dataclass
class Report:
    title: str
    lines: list[str] = field(default_factory=list)

report = Report("modules")
async for page in df.db.app.modules.pages():
    report.lines += [row["node_id"] for row in page.rows]
report
---
from typing import NamedTuple

class Entry(NamedTuple):
    path: str
    size: int

page = await df.db.app.modules.page()
max((Entry(row["path"] or "", row["size"]) for row in page.rows), key=lambda entry: entry.size, default=None)
---
from enum import Enum

class Level(Enum):
    LOW = 1
    HIGH = 2

[level.name for level in Level if level.value > 1]
---
import re

match = re.search(r"(\\d+)", "abc 123")
int(match.group(1))
---
import datetime as dt

(dt.datetime(2026, 4, 1) - dt.timedelta(days=1)).isoformat()
---
lines = """
```
not a fence
```
“quoted”
"""
len(lines)
---
text = "“fine” here"  # “and here”
text.count("“")
---
async def main():
    page = await df.db.app.modules.page()
    return len(page.rows)
---
def solve():
    return 42
---
async def main():
    return await df.tool.weather.add(a=1, b=2)

await main()
---
if __name__ == "__main__":
    print("ok")
---
df = {"a": [1, 2, 3]}
df["a"]
---
def clean(df):
    return df.dropna().head()

clean
---
results = []
results.append(1)
results[0]
---
hasattr(df.tool, "translate") and await df.tool.translate.run("x")
---
tool = getattr(df.tool, "translate", None)
tool.run("x") if tool else None
---
try:
    df.db.gone.modules
except AttributeError:
    missing = True
missing
---
data: dict = {}
for index in range(3):
    data.setdefault(index, []).append(index)
data
---
matrix = [[row * column for column in range(3)] for row in range(3)]
[sum(line) for line in zip(*matrix)]
---
def fibonacci(n, known={}):
    if n not in known:
        known[n] = n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)
    return known[n]

fibonacci(30)
---
squares = (n * n for n in range(10))
next(squares), sum(squares)
---
def walk(tree, depth=0):
    match tree:
        case {"children": [*children]}:
            return max((walk(child, depth + 1) for child in children), default=depth)
        case _:
            return depth

walk({"children": [{"children": []}, {}]})
---
first, *rest = (await df.db.app.modules.page()).rows or [None]
first, len(rest)
---
rows = (await df.db.app.modules.page()).rows
(longest := max((len(row["path"] or "") for row in rows), default=0), longest)
---
value = (await df.tool.weather.raw(q="x")) or {}
value.get("a", {}).get("b")
---
lookup = {row["node_id"]: row async for page in df.db.app.modules.pages() for row in page.rows}
lookup["m1"]["size"] if "m1" in lookup else 0
---
from functools import partial

forecast = partial(df.tool.weather.forecast, days=2)
await forecast(city="Rome")
---
operation = df.tool.weather.forecast if len("x") else df.tool.weather.raw
await operation("Rome")
---
arguments = ["acme"]
await df.tool.shop.orders(*arguments)
---
names = ["a", "b"]
values = dict.fromkeys(names, 0)
values["a"] += 1
values
---
total = 0
for page_number in range(3):
    page = await df.db.app.notes.page(offset=page_number * 10, limit=10)
    if not page.rows:
        break
    total += len(page.rows)
total
---
seen = set()
async for page in df.db.app.modules.pages():
    seen |= {row["path"] for row in page.rows}
sorted(path for path in seen if path)
---
page = await df.db.app.modules.page()
table = [["path", "size"]] + [[row["path"], str(row["size"])] for row in page.rows]
"\\n".join(" | ".join(cell or "-" for cell in line) for line in table)
---
page = await df.db.app.modules.page()
shown = [{"file": row["path"], "sites": row["sites"]} for row in page.rows]
sorted(shown, key=lambda entry: entry["file"] or "")[:3]
---
page = await df.db.app.modules.page()
print(f"{page.evidence_id}: {page.source.artifact} {page.source_coverage.state} {len(page.limitations)}")
---
text = "größe"; länge = len(text); länge
---
x = 1; y = 2; print(x, y); x + y
---
with open("/dev/null") as handle:
    handle.read()
---
raise SystemExit(0)
---
assert 1 + 1 == 2, "arithmetic"
---
lambda row: row["anything"]
---
pass
---
page = await df.db.app.modules.page()
(page.rows[0]["path"][0], page.rows[0]["path"][:3])
---
page = await df.db.app.modules.page()
path = page.rows[0]["path"]
[letter for letter in path], path[-1], path.upper(), len(path)
---
page = await df.db.app.modules.page()
page.rows[0] = {"label": "x"}
page.rows[0]["label"]
---
rows = (await df.db.app.modules.page()).rows
rows[:] = [{"label": row["path"]} for row in rows]
[row["label"] for row in rows]
---
rows = (await df.db.app.modules.page()).rows
for index, row in enumerate(rows):
    rows[index] = {**row, "label": index}
[row["label"] for row in rows]
---
rows = (await df.db.app.modules.page()).rows
rows += [{"label": "last"}]
rows[-1]["label"]
---
rows = (await df.db.app.modules.page()).rows
rows.insert(0, dict(label="first"))
rows[0]["label"]
---
row = (await df.db.app.modules.page()).rows[0]
row["identity"] = {"text": "changed"}
row["identity"]["text"].upper()
---
import copy

rows = copy.deepcopy((await df.db.app.modules.page()).rows)
for row in rows:
    row["label"] = row["path"] or "?"
[row["label"].upper() for row in rows]
---
rows = (await df.db.app.modules.page()).rows
row = rows[0] if rows else {"label": "none"}
row["label"] if not rows else row["path"]
---
rows = (await df.db.app.modules.page()).rows
row = next((row for row in rows if row["sites"] > 3), {})
row["label"] if "label" in row else None
---
page = await df.db.app.modules.page()
page.rows = [{"label": 1}]
page.rows[0]["label"]
---
page = await df.db.app.modules.page()
try:
    label = page.rows[0]["label"]
except Exception:
    label = None
label
---
try:
    display(1)
except Exception:
    print(1)
---
import sqlite3

try:
    sqlite3.connect(":memory:").execute("nonsense")
except sqlite3.Error as error:
    print(error.args, error.sqlite_errorname)
---
for name in dir(df.tool):
    print(name)
if "translate" in dir(df.tool):
    await df.tool.translate.run("x")
---
rows = (await df.db.app.modules.page()).rows
table = {row["path"]: row for row in rows}
table["main.js"]["rank"] = 1
table["main.js"]["rank"]
---
class Box:
    def __init__(self, rows):
        self.rows = rows

    def first(self):
        return self.rows[0]["anything"]

Box([{"anything": 1}]).first()
---
result = None
for city in ["Rome", "Oslo"]:
    reply = await df.tool.weather.forecast(city=city)
    if result is None or reply["high"] > result["high"]:
        result = reply
result["city"] if result else None
---
import asyncio

async def safely(call):
    try:
        return await call
    except df.Error as error:
        return error.code

await asyncio.gather(*[safely(df.tool.weather.forecast(city=city)) for city in ("Rome", "Oslo")])
---
import asyncio

calls = [df.tool.weather.add(a=1, b=2)]
calls.append(df.tool.weather.add(a=3, b=4))
results_list = await asyncio.gather(*calls, return_exceptions=True)
[value for value in results_list if not isinstance(value, Exception)]
---
operations = {"add": df.tool.weather.add, "raw": df.tool.weather.raw}
await operations["add"](a=1, b=2)
---
def make():
    yield df.tool.weather.add(a=1, b=2)

for call in make():
    print(await call)
---
call = None
if len("x"):
    call = df.tool.weather.add(a=1, b=2)
if call is not None:
    print(await call)
---
unawaited = df.tool.weather.add(a=1, b=2)
unawaited.close()
---
stream = df.db.app.modules.pages()
first = await anext(stream)
first.rows
---
from contextlib import aclosing

async with aclosing(df.db.app.modules.pages()) as stream:
    async for page in stream:
        break
---
pages = df.db.app.modules.pages(limit=5)
rows = [row async for page in pages for row in page.rows]
len(rows)
---
import inspect

call = df.tool.weather.add(a=1, b=2)
if inspect.isawaitable(call):
    call = await call
call
---
note = (await df.tool.weather.forecast(city="Rome")).get("note")
note.upper() if note else ""
---
reply: dict = await df.tool.weather.forecast(city="Rome")
reply["anything"]
---
from typing import Any

reply: Any = await df.tool.weather.forecast(city="Rome")
reply.whatever
---
def first(items, default=None):
    return items[0] if items else default

first((await df.db.app.notes.page()).rows)["text"]
---
notes = (await df.db.app.notes.page()).rows
{note["note_id"]: f"{note['score']:.2f}{'!' if note['done'] else ''}" for note in notes}
---
await df.db.app.notes.page(where={"text": ("a", "b")})
---
kind = "script"
await df.db.app.modules.page(where={"kind": kind})
---
row = (await df.db.app.modules.page()).rows[0]
await df.db.app.modules.page(where={"path": row["path"], "kind": row["kind"]})
---
by = "kind" if len("x") else "path"
await df.db.app.modules.count(by=by)
---
field = str("kind")
await df.db.app.modules.count(by=field)
'''

GOOD: tuple[str, ...] = tuple(_TEXT.strip("\n").split("\n---\n"))
