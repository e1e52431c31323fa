"""The cache of real inputs: what is damaged is noticed, what is missing is said."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import real_inputs

MANIFESTS = sorted((Path(real_inputs.__file__).parent / "oracles").rglob("package-lock.json"))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("AFFIDAVIT_TEST_CACHE", str(tmp_path))
    real_inputs.cache_root.cache_clear()
    yield tmp_path
    real_inputs.cache_root.cache_clear()


def test_a_missing_tool_skips_and_fails_in_ci(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(cache))
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="npm is not installed"):
        real_inputs.tarball("lvce")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="npm is not installed"):
        real_inputs.tarball("lvce")


def test_a_damaged_tarball_is_never_used(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damaged = cache / "tarballs" / real_inputs.PACKAGES["lvce"].file_name
    damaged.parent.mkdir()
    damaged.write_bytes(b"cut")
    monkeypatch.setenv("PATH", str(cache))
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception):
        real_inputs.tarball("lvce")


@pytest.mark.parametrize("lock", MANIFESTS, ids=lambda path: path.parent.name)
def test_every_locked_package_has_a_digest_and_no_host(lock: Path) -> None:
    packages = json.loads(lock.read_text())["packages"]
    assert len(packages) > 1
    for name, package in packages.items():
        assert "resolved" not in package
        assert not name or package["integrity"].startswith("sha512-")
