"""Correct scripts, part 1 of 3 (see `good_scripts`), separated by lines of three dashes."""

from __future__ import annotations

__all__ = ["TEXT"]

TEXT = """
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
[row["path"] for row in rows]
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
"""
