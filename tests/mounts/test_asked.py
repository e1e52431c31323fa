"""Where the file of a mount is."""

from __future__ import annotations

from pathlib import Path

import pytest

from affidavit.mounts.mounted import Asked


def path_of(uri: str, folder: Path) -> Path:
    return Asked(name="app", uri=uri, folder=folder).path


@pytest.mark.parametrize(
    "uri", ["app.asar", "./app.asar", "a/../app.asar", "./a/./b/../../app.asar", "a//../app.asar"]
)
def test_one_file_has_one_path(tmp_path: Path, uri: str) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert path_of(uri, tmp_path) == tmp_path.resolve() / "app.asar"


def test_what_leads_up_leads_up_from_where_a_link_leads(tmp_path: Path) -> None:
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real/inner")
    assert path_of("link/../app.asar", tmp_path) == tmp_path.resolve() / "real" / "app.asar"


def test_a_link_on_the_way_is_kept_otherwise(tmp_path: Path) -> None:
    (tmp_path / "v1").mkdir()
    (tmp_path / "current").symlink_to("v1")
    assert path_of("current/app.asar", tmp_path) == tmp_path / "current" / "app.asar"
