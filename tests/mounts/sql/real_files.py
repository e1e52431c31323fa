"""Database files that no one here made, from published packages."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from tests.real_inputs import WHEELS, kept, wheel

__all__ = ["DATABASES", "database"]

DATABASES: Final = {
    "cities": "geopointdb/worldcities.db",
    "arabic": "arramooz/data/arabicdictionary.sqlite",
}
"""Where the file is, by the wheel that it comes in."""


def database(name: str) -> Path:
    """The file, alone in a folder of the cache."""
    file = wheel(name) / DATABASES[name]

    def fill(folder: Path) -> None:
        shutil.copy(file, folder)

    return kept(f"database-{name}-{WHEELS[name].sha256[:16]}", fill) / file.name
