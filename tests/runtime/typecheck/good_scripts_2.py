"""Correct scripts, part 2 of 3 (see `good_scripts`), separated by lines of three dashes."""

from __future__ import annotations

__all__ = ["TEXT"]

TEXT = '''
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
'''
