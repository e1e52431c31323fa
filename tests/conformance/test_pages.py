"""`async for` over pages: as Python iterates, one call a page, early exit is safe."""

from __future__ import annotations

from typing import Any

import pytest

from .world import Bench, World

_PAGES: list[tuple[str, Any, int]] = [
    (
        """
names = []
async for page in df.db.app.modules.pages():
    names += [row["n"] for row in page.rows]
names
""",
        [0, 1, 2, 3, 4],
        3,
    ),
    (
        """
async for page in df.db.app.modules.pages(limit=3):
    break
page.page.returned
""",
        3,
        1,
    ),
    (
        """
seen = []
async for page in df.db.app.modules.pages():
    if page.page.offset == 2:
        continue
    seen.append(page.page.offset)
else:
    seen.append("end")
seen
""",
        [0, 4, "end"],
        3,
    ),
    (
        """
seen = []
async for page in df.db.app.modules.pages():
    seen.append(page.page.offset)
    if len(seen) == 2:
        break
else:
    seen.append("end")
seen
""",
        [0, 2],
        2,
    ),
    ("async for page in df.db.app.modules.pages(offset=3): last = page['rows']\nlen(last)", 2, 1),
    (
        """
pages = df.db.app.modules.pages()
seen = []
async for page in pages:
    seen.append(page.page.offset)
    break
async for page in pages:
    seen.append(page.page.offset)
async for page in pages:
    seen.append("more")
seen
""",
        [0, 2, 4],
        3,
    ),
    (
        """
async def rows(collection):
    found = []
    async for page in collection.pages(where={"kind": "x"}):
        for row in page.rows:
            found.append(row["n"])
    return found
await rows(df.db.app.modules)
""",
        [0, 1, 2, 3, 4],
        3,
    ),
    (
        """
async def first():
    async for page in df.db.app.modules.pages():
        return page.rows
len(await first())
""",
        2,
        1,
    ),
    (
        """
seen = []
async for outer in df.db.app.modules.pages(limit=3):
    async for inner in df.db.app.modules.pages(limit=4):
        seen.append([outer.page.offset, inner.page.offset])
seen
""",
        [[0, 0], [0, 4], [3, 0], [3, 4]],
        6,
    ),
    (
        """
import asyncio
async def offsets():
    return [offset async for offset in []] if False else await walk()
async def walk():
    found = []
    async for page in df.db.app.modules.pages():
        found.append(page.page.offset)
    return found
await asyncio.gather(walk(), walk())
""".replace("[offset async for offset in []] if False else ", ""),
        [[0, 2, 4], [0, 2, 4]],
        6,
    ),
]


@pytest.mark.parametrize(("script", "value", "calls"), _PAGES, ids=range(len(_PAGES)))
def test_pages_are_iterated_as_python_iterates(bench: Bench, script: str, value: Any, calls: int) -> None:
    world = World()
    assert bench.value(script, world) == value
    assert world.paths == ["db.app.modules.page"] * calls


def test_each_page_is_a_call_of_one_site(bench: Bench) -> None:
    world = World()
    bench.run("async for page in df.db.app.modules.pages(where={'kind': 'x'}, limit=2):\n    pass", world)
    assert world.sites == [(1, 18, 0), (1, 18, 1), (1, 18, 2)]
    assert [dict(call.arguments) for call in world.calls] == [
        {"where": {"kind": "x"}, "limit": 2},
        {"where": {"kind": "x"}, "limit": 2, "cursor": "2"},
        {"where": {"kind": "x"}, "limit": 2, "cursor": "4"},
    ]


def test_an_error_inside_the_loop_makes_no_further_call(bench: Bench) -> None:
    world = World()
    outcome = bench.run("async for page in df.db.app.modules.pages():\n    page.rows[9]", world)
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.type) == ("script-error", "IndexError")
    assert len(world.calls) == 1


def test_iterating_anything_else_asynchronously_is_a_type_error(bench: Bench) -> None:
    outcome = bench.run("async for n in [1]:\n    pass")
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.type) == ("script-error", "TypeError")
