"""Resolution against Node.js itself, on generated trees.

Where Node finds a file, we find that file. Where it finds none, we either find none, or say by which rule of bundlers
or TypeScript we went further.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from affidavit.analyzers.javascript.containers.entry import read_entry
from affidavit.analyzers.javascript.containers.folder import FolderContainer
from affidavit.analyzers.javascript.containers.tree import Tree
from affidavit.analyzers.javascript.resolution.builtins import BUILTINS, PREFIX_ONLY
from affidavit.analyzers.javascript.resolution.exports import Mode
from affidavit.analyzers.javascript.resolution.resolver import Resolver
from tests.analyzers.javascript.builders import write_tree

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="there is no Node.js to compare with")

ORACLE = """
import { createRequire, isBuiltin, builtinModules } from 'node:module';
import { pathToFileURL, fileURLToPath } from 'node:url';
import fs from 'node:fs';
const answer = ([referrer, specifier, mode]) => {
  try {
    if (mode === 'require') {
      const found = createRequire(referrer).resolve(specifier);
      return isBuiltin(found) ? 'builtin' : found;
    }
    const found = import.meta.resolve(specifier, pathToFileURL(referrer).href);
    if (found.startsWith('node:')) return isBuiltin(found) ? 'builtin' : null;
    const path = fileURLToPath(found);
    return fs.statSync(path).isFile() ? fs.realpathSync(path) : null;
  } catch (error) { return null; }
};
const questions = JSON.parse(fs.readFileSync(0));
process.stdout.write(JSON.stringify([process.versions.node, builtinModules, questions.map(answer)]));
"""

Question = tuple[str, str, Mode]


def ask(tmp_path: Path, questions: list[tuple[str, str, str]]) -> tuple[str, list[str], list[str | None]]:
    script = tmp_path / "oracle.mjs"
    script.write_text(ORACLE)
    done = subprocess.run(
        [str(NODE), "--no-warnings", "--experimental-import-meta-resolve", str(script)],
        input=json.dumps(questions).encode(),
        capture_output=True,
        check=True,
        timeout=100,
    )
    version, builtins, answers = json.loads(done.stdout)
    return version, builtins, answers


def test_the_builtins_are_those_of_node(tmp_path: Path) -> None:
    version, builtins, _ = ask(tmp_path, [])
    if not version.startswith("20."):
        pytest.skip("the list is that of Node.js 20")
    assert set(builtins) == BUILTINS
    answers = ask(
        tmp_path, [(str(tmp_path / "x.js"), f"node:{name}", "require") for name in sorted(PREFIX_ONLY)]
    )[2]
    assert answers == ["builtin", None, "builtin", "builtin"]  # sqlite came later


NAMES = ["a", "b", "index"]
PACKAGES = ["p", "q", "@s/p", "fs"]
EXTENSIONS = ["", ".js", ".json", ".node", ".mjs", ".cjs"]
TARGETS: list[Any] = [
    "./a.js", "./b", "./lib/a.js", "./lib/*.js", "./*.js", "./lib/*", None, "../out.js", "q", "./none.js",
    "./lib/../a.js", "./index.js", 7, "./node_modules/q/a.js", "./%61.js", "./a%2ejs", "./lib/",
]  # fmt: skip
CONDITIONS = ["import", "require", "node", "default", "browser", "types"]
KEYS = [".", "./a", "./lib/*", "./*", "./lib/a", "./b.js", "./*.js", "./lib/", "./l*b/a", "./lib/*.js"]
IMPORTS = ["#a", "#lib/*", "#q", "#", "#/x", "#deep/*.js"]


def target(rng: random.Random, depth: int = 0) -> Any:
    pick = rng.random()
    if depth < 3 and pick < 0.25:
        return {name: target(rng, depth + 1) for name in rng.sample(CONDITIONS, rng.randint(0, 3))}
    if depth < 3 and pick < 0.35:
        return [target(rng, depth + 1) for _ in range(rng.randint(0, 3))]
    return rng.choice(TARGETS)


def package(rng: random.Random, name: str) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if rng.random() < 0.7:
        made["name"] = name
    if rng.random() < 0.5:
        made["main"] = rng.choice(
            ["a", "./a.js", "lib", "lib/a", "none", "./lib/", "../q/a.js", "b.json", "", 3]
        )
    if rng.random() < 0.5:
        keyed = {key: target(rng) for key in rng.sample(KEYS, rng.randint(1, 4))}
        made["exports"] = keyed if rng.random() < 0.7 else target(rng)
    if rng.random() < 0.5:
        made["imports"] = {key: target(rng) for key in rng.sample(IMPORTS, rng.randint(1, 3))}
    if rng.random() < 0.2:
        made["type"] = "module"
    return made


def folder(rng: random.Random, prefix: str, files: dict[str, str], name: str) -> None:
    for _ in range(rng.randint(1, 5)):
        files[prefix + rng.choice(["", "", "lib/"]) + rng.choice(NAMES) + rng.choice(EXTENSIONS)] = "0"
    if rng.random() < 0.75:
        files[prefix + "package.json"] = json.dumps(package(rng, name))


def tree(rng: random.Random) -> dict[str, str]:
    """A project with packages, some of them in its subfolder or in another package."""
    files = {"main.js": "0", "src/main.js": "0"}
    folder(rng, "", files, "self")
    folder(rng, "src/", files, rng.choice(["inner", "p"]))
    for home in ("node_modules/", "src/node_modules/", "node_modules/p/node_modules/"):
        for name in rng.sample(PACKAGES, rng.randint(0, 3)):
            folder(rng, f"{home}{name}/", files, name)
        if rng.random() < 0.3:
            files[f"{home}{rng.choice('pq')}.js"] = "0"
    # A name cannot be a file and a folder.
    return {
        path: text for path, text in files.items() if not any(other.startswith(path + "/") for other in files)
    }


SPECIFIERS = [
    "./a", "./a.js", "./b", "./b.json", "./lib", "./lib/", "./lib/a", "./lib/a.js", "./index", ".", "./", "..", "../a",
    "../lib", "./none", "../src", "./a.js/x", "p", "q", "@s/p", "p/a", "p/a.js", "p/lib/a", "p/lib/a.js", "p/lib", "p/",
    "q/lib/", "p/b.js", "@s/p/a", "@s/p/lib/a.js", "@s", "self", "self/a", "self/lib/a", "inner", "inner/a", "none",
    "none/a", "p/none", "#a", "#lib/a", "#q", "#", "#/x", "#none", "#deep/a.js", "fs", "node:fs", "fs/", "fs/a",
    "fs/promises", "node:none", "./%61.js", "./lib%2fa", "p/%61.js", "p/../q", "p/../../main.js",
    "p/package.json", "", "./lib/../a", "./lib/./a",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_generated_trees(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    roots: list[Path] = []
    asked: list[tuple[Path, Question]] = []
    modes: tuple[Mode, ...] = ("require", "import")
    for number in range(30):
        # Deep enough that nothing above the tree answers.
        root = write_tree(tmp_path / str(number) / "root", tree(rng)).resolve()
        roots.append(root)
        referrers = ["main.js", "src/main.js", *(f"node_modules/{name}/x.js" for name in ("p", "@s/p"))]
        present = [one for one in referrers if (root / one).parent.is_dir()]
        for referrer in present:
            for specifier in rng.sample(SPECIFIERS, 25):
                asked.extend((root, (referrer, specifier, mode)) for mode in modes)
    questions = [(str(root / referrer), specifier, mode) for root, (referrer, specifier, mode) in asked]
    answers = ask(tmp_path, questions)[2]
    resolvers = {root: open_resolver(root) for root in roots}
    wrong: list[str] = []
    for (root, (referrer, specifier, mode)), answer in zip(asked, answers, strict=True):
        found = resolvers[root].resolve(specifier, referrer, mode)
        place = None if answer in {None, "builtin"} else str(answer)
        if answer == "builtin":
            right = found.status == "builtin"
        elif place is None:
            right = found.target is None or (not found.standard and (root / found.target).is_file())
        elif not Path(place).is_relative_to(root):
            right = found.target is None
        else:
            right = found.target == str(Path(place).relative_to(root)) and found.standard
        if not right:
            wrong.append(f"{root.parent.name}/{referrer}: {mode} {specifier!r}: Node {answer}, here {found}")
    assert sum(answer is not None for answer in answers) > len(answers) / 10
    assert wrong == []


def open_resolver(root: Path) -> Resolver:
    with closing(FolderContainer(root)) as container:
        objects = {
            entry.path: json.loads(read_entry(container, entry, limit=1 << 20))
            for entry in container.entries
            if entry.path.endswith("package.json")
        }
        return Resolver(Tree(container.entries), lambda path: objects[path])
