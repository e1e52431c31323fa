import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from affidavit.errors import UsageError
from affidavit.mounts.python import functions_namespace, load_module, module_namespace
from affidavit.namespaces.functions import operation
from affidavit.namespaces.operation import Namespace

TOOLS = '''
"""Tools of a test."""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath


@dataclass
class Sum:
    total: int


def add(a: int, b: int = 2) -> Sum:
    """Add two numbers."""
    return Sum(total=a + b)


async def later(text: str) -> str:
    return text.upper()


def _hidden(a: int) -> int:
    return a


def star(*values: int) -> int:
    return sum(values)
'''


def call(namespace: Namespace, name: str, **arguments: Any) -> Any:
    one = namespace.operations[name]

    async def run() -> Any:
        return one.convert((await one.handler(one.parse(arguments))).value)

    return asyncio.run(run())


def written(folder: Path, text: str, name: str = "tools.py") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def double(n: int) -> int:
    """Twice."""
    return n * 2


def test_a_list_of_functions_is_a_namespace() -> None:
    made = functions_namespace("maths", [double], "Numbers.")
    assert (made.name, made.doc) == ("maths", "Numbers.")
    assert made.operations["double"].contract == "python.maths.double/1"
    assert call(made, "double", n=4) == 8


def test_marks_are_followed_and_names_made_valid() -> None:
    @operation(name="wipe-all", effect="write", version=3)
    def wipe(path: str) -> None:
        """Remove."""

    made = functions_namespace("files", [wipe, double])
    assert made.operations["wipe_all"].effect == "write"
    assert made.operations["wipe_all"].contract == "python.files.wipe-all/3"
    assert made.operations["wipe_all"].name == "wipe_all"
    assert call(made, "wipe_all", path="x") is None


def test_two_functions_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match="two functions of 'maths' are called 'double'") as caught:
        functions_namespace("maths", [double, double])
    assert caught.value.code == "mount-invalid"


@pytest.mark.parametrize("scheme", ["", "python:"])
def test_a_file_is_a_namespace(tmp_path: Path, scheme: str) -> None:
    made = module_namespace("py", f"{scheme}{written(tmp_path, TOOLS)}")
    assert sorted(made.operations) == ["add", "later"]
    assert call(made, "add", a=1) == {"total": 3}
    assert call(made, "later", text="a") == "A"
    assert made.doc.startswith("Tools of a test.")
    assert [one.partition(":")[0] for one in made.left_out] == ["star"]
    # neither the mount's name nor the folder enters records
    assert made.operations["add"].contract == "python.tools.add/1"
    assert made.operations["add"].producer.name == "python.tools"


def test_relative_files_start_at_the_folder(tmp_path: Path) -> None:
    written(tmp_path, TOOLS)
    assert "add" in module_namespace("py", "python:./tools.py", folder=tmp_path).operations
    assert "add" in module_namespace("py", "python:tools.py", folder=tmp_path).operations


def test_a_file_that_changed_is_read_anew(tmp_path: Path) -> None:
    path = written(tmp_path, TOOLS)
    module_namespace("py", str(path))
    written(tmp_path, TOOLS.replace("a + b", "a * b + 100"))
    assert call(module_namespace("py", str(path)), "add", a=1) == {"total": 102}


def test_a_change_of_the_same_size_and_time_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    path = written(tmp_path, TOOLS)
    was = path.stat()
    module_namespace("py", str(path))
    written(tmp_path, TOOLS.replace("a + b", "a - b"))
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert call(module_namespace("py", str(path)), "add", a=1) == {"total": -1}


def test_two_files_of_one_name_do_not_mix(tmp_path: Path) -> None:
    for name, sign in (("one", "+"), ("two", "-")):
        (tmp_path / name).mkdir()
        written(tmp_path / name, TOOLS.replace("a + b", f"a {sign} b"))
    one = module_namespace("one", str(tmp_path / "one" / "tools.py"))
    two = module_namespace("two", str(tmp_path / "two" / "tools.py"))
    assert (call(one, "add", a=1), call(two, "add", a=1)) == ({"total": 3}, {"total": -1})


def test_a_module_by_its_import_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "toolkit_under_test").mkdir()
    written(tmp_path / "toolkit_under_test", TOOLS, "inner.py")
    written(tmp_path / "toolkit_under_test", "", "__init__.py")
    made = module_namespace("py", "python:toolkit_under_test.inner", folder=tmp_path)
    assert made.operations["add"].contract == "python.toolkit_under_test.inner.add/1"


def test_what_a_module_lists_or_marks_is_what_it_offers(tmp_path: Path) -> None:
    listed = TOOLS + '\n__all__ = ["Sum", "later"]\n'
    assert sorted(module_namespace("py", str(written(tmp_path, listed))).operations) == ["later"]
    marked = (
        TOOLS + "\nfrom affidavit.namespaces.functions import operation\n_hidden = operation()(_hidden)\n"
    )
    assert sorted(module_namespace("py", str(written(tmp_path, marked))).operations) == ["hidden"]


def test_a_marked_function_that_cannot_be_called_is_an_error(tmp_path: Path) -> None:
    marked = TOOLS + "\nfrom affidavit.namespaces.functions import operation\nstar = operation()(star)\n"
    with pytest.raises(UsageError, match=r"\*values") as caught:
        module_namespace("py", str(written(tmp_path, marked)))
    assert caught.value.code == "schema-unsupported"


def test_imported_functions_are_not_offered(tmp_path: Path) -> None:
    text = "from json import dumps\ndef own(a: int) -> int:\n    return a\n"
    assert sorted(module_namespace("py", str(written(tmp_path, text))).operations) == ["own"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("raise RuntimeError('at import')", "RuntimeError: at import"),
        ("def broken(:", "SyntaxError"),
        ("import module_that_is_not_there", "ModuleNotFoundError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("x = 1", "no function that can be called"),
        ("def star(*a: int): ...", r"\*a"),
    ],
)
def test_files_that_cannot_be_mounted_say_why(tmp_path: Path, text: str, words: str) -> None:
    before = set(sys.modules)
    with pytest.raises(UsageError, match=words) as caught:
        module_namespace("py", str(written(tmp_path, text)))
    assert caught.value.code == "mount-invalid"
    assert caught.value.hint
    assert (
        not {name for name in set(sys.modules) - before if "tools" in name}
        or "x = 1" in text
        or "star" in text
    )


@pytest.mark.parametrize(
    "target", ["no_such_module_here", "./none.py", "python:a.b.c", "/nowhere/none.py", ""]
)
def test_targets_that_are_not_there(tmp_path: Path, target: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_module(target, folder=tmp_path)
    assert caught.value.code == "mount-invalid"
