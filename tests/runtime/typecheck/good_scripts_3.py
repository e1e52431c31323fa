"""Correct scripts, part 3 of 3 (see `good_scripts`), separated by lines of three dashes."""

from __future__ import annotations

__all__ = ["TEXT"]

TEXT = """
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
"""
