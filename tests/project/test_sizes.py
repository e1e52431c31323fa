"""The limits that keep the house readable: folders, files, classes, the broker, and what an import may load."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "affidavit"
MODULES = sorted(SOURCE.rglob("*.py"))

MAX_MODULES_IN_FOLDER = 15
MAX_LINES_IN_FILE = 500
MAX_PUBLIC_METHODS = 20
MAX_LINES_OF_BROKER = 200
MAX_SDK_NAMES = 12
ROOMS = {
    "analyzers", "errors", "evidence", "extensions", "facts", "interfaces", "mounts", "namespaces",
    "policy", "runtime", "store", "workspace",
}  # fmt: skip
HEAVY = (
    "cyclopts", "jsonschema", "opentelemetry", "orjson", "pydantic", "pydantic_monty", "rfc8785", "rich", "sqlite3",
    "asyncio", "tree_sitter", "tree_sitter_javascript", "tree_sitter_typescript", "filelock", "multiprocessing",
)  # fmt: skip


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_the_source_was_found() -> None:
    assert len(MODULES) > 30


def test_folders_are_small() -> None:
    folders = {path.parent for path in MODULES}
    sizes = {name(folder): len(list(folder.glob("*.py"))) - 1 for folder in folders}
    assert {folder: size for folder, size in sizes.items() if size > MAX_MODULES_IN_FOLDER} == {}


def test_files_are_small() -> None:
    checked = MODULES + sorted((ROOT / "tests").rglob("*.py")) + sorted((ROOT / "benchmarks").rglob("*.py"))
    sizes = {name(path): len(path.read_text("utf-8").splitlines()) for path in checked}
    assert {path: size for path, size in sizes.items() if size > MAX_LINES_IN_FILE} == {}


def test_classes_are_small() -> None:
    wide: dict[str, int] = {}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                functions = [
                    part for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)
                ]
                public = [function for function in functions if not function.name.startswith("_")]
                if len(public) > MAX_PUBLIC_METHODS:
                    wide[f"{name(path)}:{node.name}"] = len(public)
    assert wide == {}


def test_the_broker_is_read_in_one_sitting() -> None:
    assert len((SOURCE / "runtime" / "broker.py").read_text("utf-8").splitlines()) <= MAX_LINES_OF_BROKER


def test_every_top_level_name_is_a_room() -> None:
    names = {path.stem if path.is_file() else path.name for path in SOURCE.iterdir()}
    assert names - {"__init__", "__main__", "__pycache__", "py", "py.typed"} <= ROOMS
    assert not [name(path) for path in MODULES if path.stem in ("utils", "util", "helpers", "common", "misc")]


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = f"import sys, affidavit; print([name for name in {HEAVY!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_the_sdk_is_the_package_and_small() -> None:
    import affidavit

    assert len(affidavit.__all__) <= MAX_SDK_NAMES
    for exported in affidavit.__all__:
        assert getattr(affidavit, exported) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        affidavit.no_such_name  # type: ignore[attr-defined]  # noqa: B018


def is_mutable_state(node: ast.stmt) -> bool:
    """Whether a module-level statement makes an empty container, which only code could fill."""
    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and not value.args:
        return value.func.id in ("dict", "list", "set", "defaultdict", "OrderedDict")
    return isinstance(value, ast.List | ast.Dict) and not (
        value.keys if isinstance(value, ast.Dict) else value.elts
    )


def test_no_module_keeps_mutable_state() -> None:
    """At module level only constants: no list, dict or set that code could fill, and no call of `global`."""
    found: list[str] = []
    for path in MODULES:
        tree = ast.parse(path.read_text("utf-8"))
        found += [f"{name(path)}:{node.lineno}" for node in tree.body if is_mutable_state(node)]
        found += [f"{name(path)}:{node.lineno}" for node in ast.walk(tree) if isinstance(node, ast.Global)]
    assert found == []
