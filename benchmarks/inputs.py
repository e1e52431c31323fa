"""What is measured on: published packages, and an archive made of our own text."""

from __future__ import annotations

import json
import random
import shutil
import struct
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests import real_inputs

from benchmarks.measure import PEERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """An artifact, and the folder or file with the same content for those that read no containers."""

    name: str
    artifact: Path
    plain: Path


def real() -> list[Input]:
    """A tarball with two large bundles among thousands of files, one bundle, one ASAR of a whole application."""
    worker = real_inputs.unpacked("pdfjs") / "build" / "pdf.worker.min.mjs"
    return [
        Input(
            name="k8slens.tgz", artifact=real_inputs.tarball("k8slens"), plain=real_inputs.unpacked("k8slens")
        ),
        Input(name="pdf.worker.mjs", artifact=worker, plain=worker),
        Input(
            name="nightmare.asar",
            artifact=real_inputs.packed_asar("nightmare"),
            plain=real_inputs.application("nightmare"),
        ),
    ]


def node_modules() -> Path | None:
    """A folder with the parsers of `peers/package.json`, or None where npm cannot get them."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        return None
    folder = real_inputs.cache_root() / "benchmark-peers"
    folder.mkdir(exist_ok=True)
    lock = (PEERS / "package-lock.json").read_bytes()
    done = folder / "installed-lock.json"
    if not done.is_file() or done.read_bytes() != lock:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(PEERS / name, folder / name)
        command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
        if subprocess.run(command, cwd=folder, check=False).returncode:
            return None
        done.write_bytes(lock)
    return folder


LARGEST = 4 << 20
"""Bytes of the largest script of a large archive."""
_WIDE = 5 << 18
_DENSE = 13 << 20
_SUM = 80 << 20


def large_asars() -> dict[str, Callable[[Path], Path]]:
    """Ways to write an archive of 80 MB whose largest script has 4 MB, by what its scripts are.

    Four fifths are minified code or small files. Of the other kinds there are 13 MB, of which two scripts are as large
    as the largest and four have 1.25 MB, so that they are read at once; the rest is noise.
    """
    made: dict[str, Callable[[Path], Path]] = {"minified code": lambda path: _archive(path, [])}
    for name, (suffix, unit) in _DENSE_SCRIPTS.items():
        made[name] = lambda path, suffix=suffix, unit=unit: _archive(path, _dense(suffix, unit), filled=False)
    return made | {
        "arrays in arrays": lambda path: _archive(
            path, [("deep.js", b"[" * (LARGEST // 2) + b"]" * (LARGEST // 2))], filled=False
        ),
        "100,000 files": lambda path: _archive(path, _many(100_000), filled=False),
        "300,000 files, calls": lambda path: _archive(
            path, [*_many(299_980), ("dense.js", b"a(b,c);" * (LARGEST // 7))], filled=False
        ),
    }


_DENSE_SCRIPTS = {
    "calls": (".js", b"a(b,c);"),
    "names": (".js", b"a;"),
    "empty statements": (".js", b";"),
    "calls in TypeScript": (".ts", b"a(b,c);"),
    "numbers": (".js", b"[1,1,1,1,1,1,1,1,1,1];"),
    "references": (".js", b'require("a");'),
    "exports": (".js", b"exports.a=1;"),
}


def _dense(suffix: str, unit: bytes) -> list[tuple[str, bytes]]:
    sizes = [LARGEST, LARGEST]
    sizes += [_WIDE] * ((_DENSE - sum(sizes)) // _WIDE)
    return [(f"dense{number}{suffix}", unit * (size // len(unit))) for number, size in enumerate(sizes)]


def _many(count: int) -> list[tuple[str, bytes]]:
    size = _SUM * 4 // 5 // count
    return [
        (
            f"small{number}.js",
            f'require("./small{number * 7 % count}");exports.a=1;'.encode().ljust(size, b";"),
        )
        for number in range(count)
    ]


def _archive(path: Path, bodies: list[tuple[str, bytes]], *, filled: bool = True) -> Path:
    """Write an archive of 80 MB: these files, minified code up to four fifths where it is to be filled, and noise."""
    chance = random.Random(7)
    held = sum(len(body) for _, body in bodies)
    sizes = [LARGEST, LARGEST] if filled else []
    while filled and held + sum(sizes) < _SUM * 4 // 5:
        sizes.append(int(chance.choice((4, 16, 64, 256, 1024)) * 1024 * chance.uniform(0.5, 1.5)))
    bodies = bodies + [(f"module{number}.js", _script(chance, size)) for number, size in enumerate(sizes)]
    noise = _SUM - sum(len(body) for _, body in bodies)
    bodies += [(f"asset{number}.bin", chance.randbytes(noise // 8)) for number in range(8)]
    files: dict[str, dict[str, object]] = {}
    offset = 0
    for name, body in bodies:
        files[name] = {"size": len(body), "offset": str(offset)}
        offset += len(body)
    header = json.dumps({"files": files}).encode()
    padded = -len(header) % 4
    pickle = struct.pack("<II", len(header) + padded + 4, len(header)) + header + bytes(padded)
    with path.open("wb") as file:
        file.write(struct.pack("<II", 4, len(pickle)) + pickle)
        for _, body in bodies:
            file.write(body)
    return path


_WORDS = (
    "main",
    "window",
    "frame",
    "value",
    "state",
    "handler",
    "request",
    "response",
    "buffer",
    "index",
    "update",
)


def _script(chance: random.Random, size: int) -> bytes:
    """Minified code, as dense as the densest of the real bundles (58 bytes of tree a byte); few calls of `require`."""
    parts: list[str] = []
    length = 0
    while length < size:
        a, b, c = chance.randrange(9999), chance.randrange(9999), chance.randrange(9999)
        words = " ".join(chance.choices(_WORDS, k=4))
        part = (
            f"function f{a}(t,n){{if(t===null||n.{chance.choice(_WORDS)}>{b})"
            f'return this.cache.get("{words}",[{a},`k${{n}}`]);'
            f'for(let i=0;i<t.length;i++){{n["{c:x}"]=t[i]*{a}+(n.y||/a{b}+[^x]/g.test(t)?1:2)}}'
            f'throw new TypeError("{words[::-1]}: not a "+t)}}\n'
            f"class C{c} extends f{a}{{#p={b};static s=new Map;get v(){{return this.#p??{a}}}}}\n"
        )
        if not len(parts) % 20:
            part = f'const m{a}=require("./module{b % 97}.js"),e{b}=require("electron");\n' + part
        parts.append(part)
        length += len(part)
    return "".join(parts)[:size].rpartition("\n")[0].encode() + b"\n"
