"""Typed Python functions as a namespace: a module by import path or file, or a list of functions.

The functions run in this process, with its rights; only a person mounts them. What they return or raise is recorded.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final, Literal

from affidavit.errors import AffidavitError, FailedError, UsageError
from affidavit.evidence.record import JsonValue, Limitation
from affidavit.extensions import Description, Mount, Snapshot, Source
from affidavit.namespaces.functions import Marks, marks_of, operation_from_function
from affidavit.namespaces.names import identifiers
from affidavit.namespaces.operation import Namespace, Operation

__all__ = ["PythonAdapter", "functions_namespace", "load_module", "module_namespace"]

SCHEME: Final = "python:"


class PythonAdapter:
    """`python:package.module` and `python:./tools.py`: the module is imported when it is mounted and per process."""

    name = "python"
    version = "1"
    place: Literal["db", "tool"] = "tool"

    def probe(self, uri: str, head: bytes) -> bool:
        """Whether the URI has the scheme."""
        return uri.startswith(SCHEME) and not head

    async def describe(self, source: Source) -> Description:
        """Import the module, to see that it can be mounted: its functions are read anew in each process."""
        mounted = _Module(source)
        names = ", ".join(mounted.namespace.operations)
        return Description(
            contents=None,
            summary=f"functions: {names}",
            snapshot=await mounted.snapshot(),
            limitations=tuple(
                Limitation(code="schema-unsupported", place=name, message=why)
                for name, why in (one.split(": ", 1) for one in mounted.namespace.left_out)
            ),
        )

    def open(self, source: Source, contents: JsonValue) -> Mount:  # noqa: ARG002 - the module itself says it
        """Import the module."""
        return _Module(source)


class _Module:
    def __init__(self, source: Source) -> None:
        if source.options:
            raise UsageError("mount-invalid", f"python: has no option {next(iter(source.options))!r}")
        target = source.uri.removeprefix(SCHEME)
        module = load_module(target, folder=source.folder)
        self._file = module.__file__
        self._namespace = _of_module(source.name, module)

    @property
    def namespace(self) -> Namespace:
        return self._namespace

    async def snapshot(self) -> Snapshot:
        if not self._file:
            return Snapshot(identity="", basis="a module without a file")
        try:
            data = await asyncio.to_thread(Path(self._file).read_bytes)
        except OSError as error:
            raise FailedError(
                "mount-failed", f"the module's file cannot be read: {error.strerror}"
            ) from error
        return Snapshot(
            identity=f"sha256:{hashlib.sha256(data).hexdigest()}", basis="SHA-256 of the module's file"
        )

    async def close(self) -> None:
        """Nothing is held."""


def functions_namespace(
    name: str, functions: Iterable[Callable[..., Any]], doc: str = "", *, contract: str | None = None
) -> Namespace:
    """A namespace with one operation per function.

    Args:
        name: the namespace's Python name.
        functions: typed functions, sync or async, marked with `operation` where they do more than read.
        doc: what the namespace is for.
        contract: prefix of the contract names, by default `python.<name>`.

    Raises:
        UsageError: `schema-unsupported` for a function that cannot be an operation, `mount-invalid` for two functions
            of one name.
    """
    prefix = contract or f"python.{name}"
    made: dict[str, Operation] = {}
    for function in functions:
        marks = marks_of(function) or Marks()
        one = operation_from_function(
            function,
            contract=prefix,
            effect=marks.effect,
            version=marks.version,
            name=marks.name,
            blocking=marks.blocking,
        )
        original = marks.name or function.__name__
        if original in made:
            raise UsageError(
                "mount-invalid",
                f"two functions of {name!r} are called {original!r}",
                hint="Name one of them with `operation(name=...)`.",
            )
        made[original] = one
    return _namespace(name, made, doc)


def module_namespace(name: str, target: str, *, folder: Path | None = None) -> Namespace:
    """A namespace of a module's typed functions.

    Its operations are what `__all__` lists of functions, else what is marked with `operation`, else every public
    function that the module defines. A function that cannot be an operation is left out, and the namespace
    says so; one that was marked is an error instead.

    Args:
        name: the namespace's Python name. It does not enter records; the module's name does.
        target: `python:package.module`, `python:./tools.py`, or either without the scheme.
        folder: where relative paths start and where modules are looked for beside the usual places.

    Raises:
        UsageError: `mount-invalid` when there is no such module, its import fails, or nothing in it can be called;
            `schema-unsupported` for a marked function that cannot be an operation.
    """
    return _of_module(name, load_module(target, folder=folder))


def _of_module(name: str, module: ModuleType) -> Namespace:
    chosen, asked = _functions(module)
    base = (
        Path(module.__file__).stem
        if module.__name__.startswith("_mounted_") and module.__file__
        else module.__name__
    )
    made: dict[str, Operation] = {}
    left_out: list[str] = []
    for function in chosen:
        try:
            one = functions_namespace(name, [function], contract=f"python.{base}")
        except AffidavitError as error:
            if asked:
                raise
            left_out.append(f"{function.__name__}: {error.message}")
            continue
        marks = marks_of(function)
        made[(marks.name if marks else None) or function.__name__] = next(iter(one.operations.values()))
    if not made:
        raise UsageError(
            "mount-invalid",
            f"the module {base!r} has no function that can be called"
            + (f" ({left_out[0]})" if left_out else ""),
            hint="Define public functions with annotated parameters.",
        )
    doc = (inspect.getdoc(module) or "").strip()
    return replace(_namespace(name, made, doc), left_out=tuple(left_out))


def load_module(target: str, *, folder: Path | None = None) -> ModuleType:
    """Import a module by name or by file. A file is run anew each time.

    Args:
        target: `package.module`, or a path that ends in `.py`; with or without `python:`.
        folder: where relative paths start; it is added at the end of the import path for module names.

    Raises:
        UsageError: `mount-invalid`, with what went wrong.
    """
    where = target.removeprefix(SCHEME)
    path = Path(where) if where.endswith(".py") or "/" in where or "\\" in where else None
    try:
        if path is not None:
            return _run_file((folder or Path.cwd()) / path.expanduser())
        if folder is not None and str(folder) not in sys.path:
            sys.path.append(str(folder))
        importlib.invalidate_caches()
        return importlib.import_module(where)
    except (
        Exception,
        SystemExit,
    ) as error:  # the module is foreign code: whatever it raises is its failure to load
        raise UsageError(
            "mount-invalid",
            f"the module {where!r} cannot be imported: {type(error).__name__}: {error}",
            hint="Try it with `python -c 'import ...'`, or give a path that ends in .py.",
        ) from error


def _run_file(path: Path) -> ModuleType:
    path = path.resolve()
    if not path.is_file():
        raise FileNotFoundError("no such file")
    name = f"_mounted_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path, loader=_FromSource(name, str(path)))
    if spec is None or spec.loader is None:
        raise ImportError("not a Python source file")
    module = importlib.util.module_from_spec(spec)
    # annotations of its classes are looked up through `sys.modules`
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


class _FromSource(SourceFileLoader):
    """Reads no compiled file: one of the same size and second as its source may be of an earlier text."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def _functions(module: ModuleType) -> tuple[list[Callable[..., Any]], bool]:
    """The functions to offer, and whether each was marked as an operation."""
    listed: object = getattr(module, "__all__", None)
    if isinstance(listed, (list, tuple)):
        named = [getattr(module, str(one), None) for one in listed]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        found = [one for one in named if inspect.isroutine(one)]
        if found:
            return found, False
    own = [
        one for one in vars(module).values() if inspect.isfunction(one) and one.__module__ == module.__name__
    ]
    marked = [one for one in own if marks_of(one) is not None]
    if marked:
        return marked, True
    return [one for one in own if not one.__name__.startswith("_")], False


def _namespace(name: str, made: dict[str, Operation], doc: str) -> Namespace:
    names = identifiers(made, fallback="function")
    operations = {
        names[original]: replace(operation, name=names[original]) for original, operation in made.items()
    }
    return Namespace(name=name, doc=doc, operations=operations)
