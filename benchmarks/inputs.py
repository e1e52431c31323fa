"""What is measured on: published packages, and an archive made of our own text."""

from __future__ import annotations

import json
import random
import shutil
import struct
import subprocess
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


def large_asar(path: Path, *, total: int = 80 << 20, largest: int = 4 << 20) -> Path:
    """Write an archive of `total` bytes: four fifths generated JavaScript, the rest noise."""
    chance = random.Random(7)
    sizes = [largest, largest]
    while sum(sizes) < total * 4 // 5:
        sizes.append(int(chance.choice((4, 16, 64, 256, 1024)) * 1024 * chance.uniform(0.5, 1.5)))
    bodies = [(f"module{number}.js", _script(chance, size)) for number, size in enumerate(sizes)]
    noise = total - sum(len(body) for _, body in bodies)
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
