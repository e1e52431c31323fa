"""One open workspace for all tests of the folder: each works in a session of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from affidavit import Workspace

from .bench import Bench


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bench]:
    folder = tmp_path_factory.mktemp("replay")
    async with Workspace.open(folder / "workspace", journal=folder / "journal") as workspace:
        yield Bench(workspace)


@pytest.fixture
def bench(shared: Bench) -> Bench:
    shared.renew()
    return shared
