"""What annotations of a stub allow, by pydantic: a reading that shares nothing with how they were made."""

from __future__ import annotations

import ast
import sys
import types
from typing import Any, Protocol

import pydantic


class Declared(Protocol):
    """Whatever comes with declarations: an operation, or its pieces."""

    @property
    def declarations(self) -> tuple[str, ...]: ...


def annotated(made: Declared, annotation: str) -> pydantic.TypeAdapter[Any]:
    """The annotation of a stub as pydantic understands it: an independent reading of what it allows."""
    module = types.ModuleType("stub_under_test")
    sys.modules[module.__name__] = module  # where forward references are looked up
    head = (
        "from __future__ import annotations\n"
        "from collections.abc import Mapping, Sequence\n"
        "from typing import Any, Literal, Never\n"
        "from typing_extensions import NotRequired, TypedDict\n"
    )
    source = head + "\n".join(quoted(one) for one in made.declarations)
    exec(f"{source}\nclass Probe(TypedDict):\n    value: {annotation}\n", module.__dict__)
    return pydantic.TypeAdapter(module.__dict__["Probe"])


def quoted(source: str) -> str:
    """A functional TypedDict with its types as text; in a stub they may refer to later names, here not."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and len(node.args) == 2 and isinstance(node.args[1], ast.Dict):
            for place, value in enumerate(node.args[1].values):
                if isinstance(value, ast.Subscript) and ast.unparse(value.value) == "NotRequired":
                    value.slice = ast.Constant(ast.unparse(value.slice))
                else:
                    node.args[1].values[place] = ast.Constant(ast.unparse(value))
    return ast.unparse(ast.fix_missing_locations(tree))
