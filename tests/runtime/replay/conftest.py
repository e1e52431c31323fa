"""An open workspace for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from affidavit import Workspace

from .bench import Bench


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with Workspace.open(tmp_path / "workspace", journal=tmp_path / "journal") as workspace:
        yield Bench(workspace)
