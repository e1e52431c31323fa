"""One engine for the folder's tests, on a loop of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from .bench import Bench


@pytest.fixture(scope="session")
def bench() -> Iterator[Bench]:
    with asyncio.Runner() as runner:
        made = Bench(runner)
        yield made
        made.close()
