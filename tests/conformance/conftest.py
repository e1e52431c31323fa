"""The engines, each started once for the whole suite."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pytest

from affidavit.runtime.engines.cpython import CPythonEngine
from affidavit.runtime.engines.monty import MontyEngine

from .world import Bench, Engine

_MAKERS: Mapping[str, Callable[[], Engine]] = {"cpython": CPythonEngine, "monty": MontyEngine}


@pytest.fixture(scope="session", params=list(_MAKERS))
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    made = Bench(_MAKERS[request.param]())
    yield made
    made.close()


@pytest.fixture(scope="session")
def both() -> Iterator[tuple[Bench, Bench]]:
    """Both engines side by side, for what must be equal between them."""
    benches = tuple(Bench(make()) for make in _MAKERS.values())
    assert len(benches) == 2
    yield benches
    for made in benches:
        made.close()
