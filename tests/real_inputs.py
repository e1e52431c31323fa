"""Real files to test on, fetched by exact version and digest through the clients npm and pip.

They live in a cache outside of the repository (`AFFIDAVIT_TEST_CACHE`, by default `~/.cache/affidavit/tests`) and are
verified each time they are asked for. Several test processes may ask at once. Where npm, Node or the registry is not
there, a test that needs them is skipped with the reason; with `CI=true` it fails instead.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest

__all__ = [
    "PACKAGES",
    "WHEELS",
    "Package",
    "Wheel",
    "application",
    "cache_root",
    "kept",
    "node",
    "node_command",
    "oracle_answers",
    "oracle_modules",
    "packed_asar",
    "reference_servers",
    "require_or_skip",
    "source_request",
    "tarball",
    "unpacked",
    "wheel",
]

_ORACLES: Final = Path(__file__).parent / "oracles"
_APPS: Final = _ORACLES / "apps"
_SERVERS: Final = Path(__file__).parent / "mounts" / "mcp" / "servers"
_INSTALL: Final = (
    "npm",
    "ci",
    "--ignore-scripts",
    "--omit=dev",
    "--omit=optional",
    "--no-audit",
    "--no-fund",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """One published package: its exact version and the SHA-256 of its tarball."""

    name: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """What `npm pack` calls the tarball."""
        return f"{self.name.lstrip('@').replace('/', '-')}-{self.version}.tgz"


PACKAGES: Final[Mapping[str, Package]] = {
    "k8slens": Package(
        name="@k8slens/core",
        version="6.5.2",
        sha256="3cb21f8599cd83dfb66c094800c93fb5960eb8839978170dafb58b7440c63931",
    ),
    "lvce": Package(
        name="@lvce-editor/main-process",
        version="4.10.0",
        sha256="8b188e618f989876f7bb56acfb3b259853cf545c014196edd5173bc53795fc7b",
    ),
    "theia": Package(
        name="@theia/core",
        version="1.75.0",
        sha256="fbee426640d808e9da2e4f44a9da77f6e773f5957cbd696d04337bbfb673b790",
    ),
    "babel": Package(
        name="@babel/standalone",
        version="7.29.13",
        sha256="f68a5c6fcf77efa10f829e4daca17e8829bf7d149f207587a2154123a3d3b845",
    ),
    "mermaid": Package(
        name="mermaid",
        version="11.17.2",
        sha256="6ad2f42c3fc26bbf9e45cbb6d11898972573ea52b33a5f4ff51952899f950ffd",
    ),
    "pdfjs": Package(
        name="pdfjs-dist",
        version="5.6.205",
        sha256="e196561c11faacf04e224e177b5d792619136cec5bd2274d8c743e577239ebc7",
    ),
    "typescript": Package(
        name="typescript",
        version="5.9.3",
        sha256="10e108c9cf7d5f2879053dff18515fb405abf2ccef63eaaf017d9c571687a1d3",
    ),
    "vue-devtools": Package(
        name="@vue/devtools-electron",
        version="8.2.1",
        sha256="ba5bde115700eba4c157e400a70ce4f69dbcc08222526cdb3bf7c1d8c2eb4aaf",
    ),
    "nightmare": Package(
        name="nightmare",
        version="3.0.2",
        sha256="68c55a73c9476627c353af44e4d62095772528bf5cd15803a4d92dda41a93cc5",
    ),
    "blockfrost": Package(
        name="@blockfrost/openapi",
        version="0.1.93",
        sha256="df98afcbc73a8a74acd5be2a3bc7e8daa35384cd845ad576c5b215e84b99c155",
    ),
    "solid-router": Package(
        name="@solidjs/router",
        version="1.0.0",
        sha256="7f787894eedb631e8183a92061cae9a6c573646076407802f3cb39b6e9fd65b2",
    ),
    "better-sqlite3": Package(
        name="better-sqlite3",
        version="12.11.1",
        sha256="ebf0ed75a7a59dbcb3b24bbd014ef49d9f15bc328e4adcbf516f2a8fadfa2835",
    ),
    "kobalte": Package(
        name="@kobalte/core",
        version="0.13.14",
        sha256="4beb138ee8620628978e3e16b48ff16425a4169ef1e60c5107d59be25d301a25",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """One published wheel: the release, the platform it is for, its file name and SHA-256."""

    release: str
    platform: str
    file_name: str
    sha256: str


WHEELS: Final[Mapping[str, Wheel]] = {
    "tree-sitter-windows": Wheel(
        release="tree-sitter==0.26.1",
        platform="win_amd64",
        file_name="tree_sitter-0.26.1-cp311-cp311-win_amd64.whl",
        sha256="10ffee79cfddbb16231d6f5152f895240d425e359ea9785dc2fa043cabf7281c",
    ),
    "tree-sitter-macos": Wheel(
        release="tree-sitter==0.26.1",
        platform="macosx_10_9_x86_64",
        file_name="tree_sitter-0.26.1-cp311-cp311-macosx_10_9_x86_64.whl",
        sha256="f1ec14b8eb354c9afb9de1a9cf16c6ffb770aa31962509d062ae513735a90c63",
    ),
    "iced-windows": Wheel(
        release="iced-x86==1.21.0",
        platform="win_amd64",
        file_name="iced_x86-1.21.0-cp38-abi3-win_amd64.whl",
        sha256="04e04a8cc49ca7d89448fb78e3bab4ae364cf1fc888c996540a791c9999077c1",
    ),
    "iced-macos": Wheel(
        release="iced-x86==1.21.0",
        platform="macosx_10_12_x86_64",
        file_name="iced_x86-1.21.0-cp38-abi3-macosx_10_12_x86_64.whl",
        sha256="bf4ff01b891dac585f40ee86ba482becdf7208d33c788f590dbff19409a02a41",
    ),
    "cities": Wheel(
        release="geopointdb==1.2.0",
        platform="any",
        file_name="geopointdb-1.2.0-py3-none-any.whl",
        sha256="ce31290257a457c777fc5af5b2772d29d8ae81fbbba285c857799e5f3ffeeee5",
    ),
    "arabic": Wheel(
        release="arramooz-pysqlite==0.4.2",
        platform="any",
        file_name="arramooz_pysqlite-0.4.2-py3-none-any.whl",
        sha256="9c7234e1822908963e6539ac97aa6dd31f21583e5550d5cfe5d9ac1726b08ef6",
    ),
}


def require_or_skip(reason: str) -> NoReturn:
    """End a test that cannot run here: skipped with the reason, failed under `CI=true`."""
    if os.environ.get("CI", "").lower() in {"1", "true"}:
        pytest.fail(f"needed in CI: {reason}")
    pytest.skip(reason)


@cache
def cache_root() -> Path:
    """The folder of the test cache, created when it is not there."""
    configured = os.environ.get("AFFIDAVIT_TEST_CACHE")
    root = Path(configured) if configured else Path.home() / ".cache" / "affidavit" / "tests"
    root.mkdir(parents=True, exist_ok=True)
    return root.resolve()


def tarball(key: str) -> Path:
    """The verified tarball of one of `PACKAGES`."""
    package = PACKAGES[key]
    target = cache_root() / "tarballs" / package.file_name
    with _locked(package.file_name):
        if target.exists() and _sha256(target) == package.sha256:
            return target
        with _scratch() as scratch:
            _run(("npm", "pack", "--silent", f"{package.name}@{package.version}"), scratch, package.name)
            fetched = scratch / package.file_name
            digest = _sha256(fetched)
            if digest != package.sha256:
                pytest.fail(f"{package.file_name} has SHA-256 {digest}, not {package.sha256}")
            target.parent.mkdir(parents=True, exist_ok=True)
            fetched.replace(target)
    return target


def wheel(key: str) -> Path:
    """The unpacked content of one of `WHEELS`, verified before it was unpacked."""
    one = WHEELS[key]

    def fill(folder: Path) -> None:
        with _scratch() as scratch:
            options = (
                "--no-deps",
                "--only-binary=:all:",
                "--python-version=3.11",
                f"--platform={one.platform}",
            )
            _run(("pip", "download", "--quiet", *options, one.release), scratch, one.file_name)
            fetched = scratch / one.file_name
            digest = _sha256(fetched)
            if digest != one.sha256:
                pytest.fail(f"{one.file_name} has SHA-256 {digest}, not {one.sha256}")
            shutil.unpack_archive(fetched, folder, "zip")

    return _built(f"wheel-{key}-{one.sha256[:16]}", fill)


def unpacked(key: str) -> Path:
    """The folder `package` of a tarball."""
    archive = tarball(key)

    def fill(folder: Path) -> None:
        with tarfile.open(archive) as tar:
            # Debian 12's Python 3.11.2 has no filters; the bytes are known by their digest anyway.
            tar.extraction_filter = getattr(tarfile, "data_filter", None)
            tar.extractall(folder)

    return next(_built(f"unpacked-{key}-{PACKAGES[key].sha256[:16]}", fill).iterdir())


def kept(name: str, fill: Callable[[Path], None]) -> Path:
    """A folder of the cache that `fill` makes once. The name must say everything that it is made from."""
    return _built(name, fill)


def oracle_modules() -> Path:
    """A folder with a package.json and the `node_modules` that the programs in `oracles/` use."""
    return _installed("oracles", _ORACLES)


def reference_servers() -> Path:
    """The folder `node_modules/@modelcontextprotocol` with the reference MCP servers that npm has."""
    if shutil.which("node") is None:
        require_or_skip("Node is not installed")
    return _installed("servers", _SERVERS) / "node_modules" / "@modelcontextprotocol"


def application(key: str) -> Path:
    """A whole application: the published package and its production dependencies beside it, Electron left out."""
    lock = _APPS / key
    package = unpacked(key)
    modules = _installed(f"modules-{key}", lock) if lock.is_dir() else None
    mark = hashlib.sha256((PACKAGES[key].sha256 + (modules.name if modules else "")).encode()).hexdigest()

    def fill(folder: Path) -> None:
        shutil.copytree(package, folder / "app", symlinks=True)
        if modules is not None:
            left_out = shutil.ignore_patterns("electron", ".bin", ".package-lock.json")
            shutil.copytree(
                modules / "node_modules", folder / "app/node_modules", ignore=left_out, symlinks=True
            )

    return _built(f"application-{key}-{mark[:16]}", fill) / "app"


def packed_asar(key: str) -> Path:
    """An application packed by `@electron/asar`, native addons left outside as Electron's packers do."""
    folder = application(key)
    script = _ORACLES / "pack.mjs"
    mark = hashlib.sha256(script.read_bytes() + folder.parent.name.encode()).hexdigest()

    def fill(target: Path) -> None:
        answer = node("pack.mjs", [{"source": str(folder), "target": str(target / f"{key}.asar")}])
        assert answer == [{"packed": True}], answer

    return _built(f"asar-{key}-{mark[:16]}", fill) / f"{key}.asar"


def node(script: str, requests: Iterable[Mapping[str, Any]], *, timeout: float = 600) -> list[Any]:
    """Run a program of `oracles/` over JSON lines: one answer for each request."""
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    done = subprocess.run(
        node_command(script),
        input=lines.encode(),
        stdout=subprocess.PIPE,
        env={**os.environ, "MODULES": str(oracle_modules())},
        timeout=timeout,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def node_command(script: str) -> tuple[str, ...]:
    """The command of a program of `oracles/`. Real bundles nest deeper than Node's default stack allows."""
    if shutil.which("node") is None:
        require_or_skip("Node is not installed")
    return ("node", "--stack-size=4000", "--max-old-space-size=4096", str(_ORACLES / script))


def oracle_answers(files: Sequence[tuple[str, Path]], script: str = "references.mjs") -> list[dict[str, Any]]:
    """What a program of `oracles/` says of these (language, file) pairs.

    Answers are kept in the cache under the digests of the program, its modules and the files, because the oracle needs
    a minute for what the product reads in seconds.
    """
    modules = oracle_modules().name
    mark = hashlib.sha256((_ORACLES / script).read_bytes() + modules.encode())
    for language, path in files:
        mark.update(f"{language} {_sha256(path)}\n".encode())
    target = cache_root() / "answers" / f"{mark.hexdigest()}.json"
    with _locked(target.name):
        if not target.exists():
            requests = [
                {"id": number, "language": language, "path": str(path)}
                for number, (language, path) in enumerate(files)
            ]
            answers = node(script, requests)
            target.parent.mkdir(parents=True, exist_ok=True)
            with _scratch() as scratch:
                (scratch / target.name).write_text(json.dumps(answers))
                (scratch / target.name).replace(target)
    answers = json.loads(target.read_text())
    assert [answer["id"] for answer in answers] == list(range(len(files)))
    return answers


def source_request(number: int, language: str, source: bytes) -> dict[str, Any]:
    """A request to `references.mjs` or `exports.mjs` for a text instead of a file."""
    return {"id": number, "language": language, "source": base64.b64encode(source).decode()}


def _installed(name: str, manifest: Path) -> Path:
    lock = (manifest / "package-lock.json").read_bytes()

    def fill(folder: Path) -> None:
        for file in ("package.json", "package-lock.json"):
            shutil.copy(manifest / file, folder / file)
        # `npm ci` checks every package against the integrity digest in the lock.
        _run(_INSTALL, folder, f"the locked packages of {name}")

    return _built(f"{name}-{hashlib.sha256(lock).hexdigest()[:16]}", fill)


def _built(name: str, fill: Callable[[Path], None]) -> Path:
    """A folder that is made once and appears whole, or is made again when its content is not what was made."""
    target = cache_root() / "folders" / name
    seal = target.with_name(name + ".sha256")
    with _locked(name):
        if target.is_dir() and seal.exists() and seal.read_text() == _tree_digest(target):
            return target
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        with _scratch() as scratch:
            made = scratch / "made"
            made.mkdir()
            fill(made)
            seal.write_text(_tree_digest(made))
            made.replace(target)
    return target


def _tree_digest(root: Path) -> str:
    """Names and sizes of a tree: enough to notice what a cleaner or a broken-off copy leaves behind."""
    digest = hashlib.sha256()
    for folder, folders, files in os.walk(root):
        folders.sort()
        for name in sorted(files):
            path = Path(folder, name)
            digest.update(f"{path.relative_to(root)} {path.lstat().st_size}\n".encode())
    return digest.hexdigest()


def _run(command: Sequence[str], folder: Path, what: str) -> None:
    if shutil.which(command[0]) is None:
        require_or_skip(f"{command[0]} is not installed")
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600)
    if done.returncode:
        said = done.stdout.decode(errors="replace")[-500:]
        if "EINTEGRITY" in said:
            pytest.fail(f"{what}: {said}")
        require_or_skip(f"{command[0]} could not get {what}: {said}")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _locked(name: str) -> Generator[None]:
    """One process at a time for one thing of the cache. The lock dies with its process."""
    folder = cache_root() / "locks"
    folder.mkdir(exist_ok=True)
    with (folder / name).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def _scratch() -> Generator[Path]:
    folder = cache_root() / "scratch"
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        yield Path(name)
