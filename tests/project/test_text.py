"""What the project's own text may and may not say."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]

# Spelled in pieces, so that this file does not say them either.
HOSTS = re.compile(r"p[y]pi\.[o]rg|python[h]osted|npm[j]s\.|debi[a]n\.[o]rg")
PATHS = re.compile(r"(?<![\w.])/([w]ork|[f]arm|[r]oot)/")
PEERS = re.compile(
    r"fastm[c]p|toolpl[a]ne|smolag[e]nts|dataf[e]tch|obsidi[a]n|k8sl[e]ns|lv[c]e", re.IGNORECASE
)


def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=True, text=True,
    )  # fmt: skip
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def found(pattern: re.Pattern[str], paths: list[Path]) -> list[str]:
    hits: list[str] = []
    for path in paths:
        for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), 1):
            if pattern.search(line):
                hits.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}")
    return hits


def test_no_registry_host_is_named() -> None:
    assert found(HOSTS, tracked()) == []


def test_no_path_of_a_machine_is_named() -> None:
    assert found(PATHS, tracked()) == []


def test_no_dataset_or_peer_is_named_in_the_source() -> None:
    """Design rule 31: what the product knows of the world stands in mounts and analyzers only."""
    source = ROOT / "src" / "affidavit"
    allowed = (source / "mounts", source / "analyzers", source / "interfaces" / "cli" / "demo.py")
    paths = [path for path in tracked() if source in path.parents and not path.is_relative_to(allowed[0])]
    paths = [path for path in paths if not any(path.is_relative_to(place) for place in allowed)]
    assert len(paths) > 30
    assert found(PEERS, paths) == []


def test_nothing_large_or_binary_is_kept() -> None:
    large = [str(path.relative_to(ROOT)) for path in tracked() if path.stat().st_size > 400_000]
    assert large == []
