"""What one session may call, in the three forms that running a script needs.

The namespace tree is declared once; from it come the operations by path (for the broker), the stub text (for the
check) and the tree of callable names (for the engine).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from affidavit.evidence.canonical import canonical
from affidavit.evidence.record import JsonValue
from affidavit.namespaces.operation import Namespace, Operation
from affidavit.namespaces.stubs import render
from affidavit.runtime.unknowns import PARAMETERS as UNKNOWN_PARAMETERS

__all__ = ["Catalogue", "walk"]

# `df.answer`, `df.unknown`, `df.calls` and `df.budget` are answered by the session itself and are no operations.
_OWN: Mapping[str, tuple[str, ...]] = {
    "answer": ("status", "value", "evidence", "derivation", "coverage", "missing", "reason"),
    "unknown": UNKNOWN_PARAMETERS,
    "calls": (),
    "budget": (),
}

# Below `df.session`, answered by the session as well.
_SESSION: Mapping[str, tuple[str, ...]] = {
    "set_preamble": ("key", "code"),
    "remove_preamble": ("key",),
    "get_preamble": (),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """The namespace `df` of one session, ready for use.

    Attributes:
        root: the namespace itself, for discovery.
        operations: by path below `df`: `db.app.modules.page`.
        stubs: what scripts are checked against.
        tree: what engines build `df` from (see `program.Program`).
        surface: the same as canonical JSON, as the log of a run keeps it.
        schemas: by the path that scripts call, the JSON Schema of each argument, by its Python name.
    """

    root: Namespace
    operations: Mapping[str, Operation]
    stubs: str
    tree: Mapping[str, JsonValue]
    surface: bytes
    schemas: Mapping[str, Mapping[str, JsonValue]]

    @classmethod
    def of(cls, root: Namespace) -> Catalogue:
        """Derive all forms from the namespace."""
        own = {name: _leaf(name, parameters, "sync") for name, parameters in _OWN.items()}
        session: dict[str, JsonValue] = {
            name: _leaf(f"session.{name}", parameters, "sync") for name, parameters in _SESSION.items()
        }
        tree: dict[str, JsonValue] = own | {"session": session} | _tree(root, "")
        return cls(
            root=root,
            operations={path: operation for path, operation in walk(root) if not operation.code},
            stubs=render(root),
            tree=tree,
            schemas=dict(_schemas(root)),
            surface=canonical(tree),
        )


def walk(namespace: Namespace, prefix: str = "") -> Iterator[tuple[str, Operation]]:
    """Every operation below a namespace with its path."""
    for name, operation in namespace.operations.items():
        yield prefix + name, operation
    for name, child in namespace.children.items():
        yield from walk(child, f"{prefix}{name}.")


def _schemas(root: Namespace) -> Iterator[tuple[str, Mapping[str, JsonValue]]]:
    for path, operation in walk(root):
        known = operation.input_schema.get("properties")
        schemas = cast("Mapping[str, JsonValue]", known if isinstance(known, dict) else {})
        named = {one.name: schemas[one.original] for one in operation.parameters if one.original in schemas}
        yield path, named
        if operation.streams:
            yield f"{path.rpartition('.')[0]}.{operation.streams}".lstrip("."), named


def _leaf(
    path: str, parameters: tuple[str, ...], kind: str, *, positional: int = 0, struct: bool = False
) -> dict[str, JsonValue]:
    return {
        "$call": path,
        "parameters": list(parameters),
        "positional": positional,
        "kind": kind,
        "struct": struct,
    }


def _tree(namespace: Namespace, prefix: str) -> dict[str, JsonValue]:
    tree: dict[str, JsonValue] = {}
    for name, operation in namespace.operations.items():
        names = tuple(parameter.name for parameter in operation.parameters)
        positional = sum(parameter.positional for parameter in operation.parameters)
        path = prefix + name
        struct = operation.carries_evidence
        tree[name] = _leaf(path, names, "operation", positional=positional, struct=struct)
        if operation.code:
            tree[name] = _leaf(path, names, "helper", positional=positional) | {"code": operation.code}
        if operation.streams:
            tree[operation.streams] = _leaf(path, names, "pages", positional=positional, struct=struct)
    for name, child in namespace.children.items():
        tree[name] = _tree(child, f"{prefix}{name}.")
    return tree
