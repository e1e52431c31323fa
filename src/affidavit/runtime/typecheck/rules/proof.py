"""What must be known before a finding counts as proof: stores elsewhere, attributes asked for by string.

A type is what the stubs promise; a script may still make it untrue, by storing another key into a row. Every question
here is answered for the script's benefit.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from affidavit.runtime.typecheck.catalogue import named
from affidavit.runtime.typecheck.scopes import Script, strings_in

__all__ = ["Stores", "literal", "probed", "steady"]

_MERGING = frozenset({"update", "setdefault", "__setitem__", "__ior__", "__or__", "fromkeys"})
_TAKING = frozenset({"get", "pop"})
_NOT_LITERAL = object()


def probed(script: Script) -> set[str]:
    """The attributes that a script asks for, or sets, by a string (`hasattr`, `getattr`, `in dir(x)`)."""
    if script.mentions("dir") or script.mentions("vars"):
        return strings_in(script.tree)
    return {
        node.args[1].value
        for node in script.nodes
        if isinstance(node, ast.Call)
        and named(node.func) in {"hasattr", "getattr", "setattr", "delattr"}
        and len(node.args) > 1
        and isinstance(node.args[1], ast.Constant)
        and isinstance(node.args[1].value, str)
    }


def literal(node: ast.AST) -> object:
    """The value of a literal made of constants only; `Stores.UNKNOWN` for anything else."""
    if not isinstance(node, ast.expr):
        return _NOT_LITERAL
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return _NOT_LITERAL


def steady(script: Script, stores: Stores, growth: frozenset[str] | None, node: ast.expr) -> bool:
    """Whether the script changes nothing on the way to this value: no attribute or key that leads to it is stored.

    `growth` are the keys that rows may get beside those of constant stores; None: they may get any.
    """
    pending: list[ast.AST] = [node]
    seen: set[ast.AST] = set()
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        match current:
            case ast.Attribute(attr=attribute) if attribute in stores.attributes:
                return False
            case ast.Subscript(slice=ast.Constant(value=str(key))) if (
                growth is None or key in stores.copied | growth or (stores.computed and key in stores.words)
            ):
                return False
            case ast.Name(id=name):
                bindings = script.bindings(name, script.scope(current))
                pending += [binding.value for binding in bindings if binding.value is not None]
            case _:
                pass
        pending += ast.iter_child_nodes(current)
    return True


class Stores:
    """What a script puts into objects, and which keys it asks about, over the whole text.

    Attributes:
        keys: keys stored anywhere in a way that may reach a row of the host.
        copied: as `keys`, and those stored from the same key of something else (`out["a"] = row["a"]`).
        attributes: attribute names that are assigned anywhere.
        asked: keys whose presence the script tests (`"a" in row`, `row.get("a")`).
        computed: some key is stored that is not a constant, into something that may be a row.
        words: every string that stands anywhere but as the key of a read.
    """

    UNKNOWN = _NOT_LITERAL

    def __init__(self, script: Script) -> None:
        self.keys: set[str] = set()
        self.copied: set[str] = set()
        self.attributes: set[str] = set()
        self.asked: set[str] = set()
        self.words: set[str] = set()
        self._script = script
        self._merges = False
        self._displays: list[tuple[str, ast.expr | None]] = []
        self.computed = bool(script.mentions("setitem"))
        for node in script.nodes:
            self._note(node)
        if self._merges:
            for key, value in self._displays:
                self._store(key, value)

    def _note(self, node: ast.AST) -> None:
        match node:
            case ast.Subscript(ctx=ast.Load()):
                return
            case ast.Subscript(value=owner, slice=index):
                self._stored(node, owner, index)
            case ast.Attribute(ctx=ast.Store() | ast.Del(), attr=attribute, value=owner):
                if not self._is_own_instance(owner):
                    self.attributes.add(attribute)
            case ast.Call(func=ast.Attribute(attr=method)):
                self._called(node, method)
            case ast.Compare(left=ast.Constant(value=str(key)), ops=[ast.In() | ast.NotIn(), *_]):
                self.asked.add(key)
            case ast.Dict():
                self._displays += _entries(node)
            case ast.BinOp(op=ast.BitOr()) | ast.AugAssign(op=ast.BitOr()):
                self._merges = self.computed = True
            case ast.Constant(value=str(word)) | ast.keyword(arg=str(word)):
                self._word(node, word)
            case _:
                pass

    def _is_own_instance(self, owner: ast.expr) -> bool:
        """Whether this is `self` in a method of a class of the script."""
        if not isinstance(owner, ast.Name) or owner.id != "self":
            return False
        scope = self._script.scope(owner)
        return scope.kind == "function" and scope.parent is not None and scope.parent.kind == "class"

    def _word(self, node: ast.Constant | ast.keyword, word: str) -> None:
        around = self._script.parent(node)
        if not (isinstance(around, ast.Subscript) and around.slice is node):
            self.words.add(word)

    def _stored(self, node: ast.Subscript, owner: ast.expr, index: ast.expr) -> None:
        statement = self._script.parent(node)
        if isinstance(index, ast.Constant):
            if isinstance(index.value, str) and not isinstance(statement, ast.AugAssign):
                self._store(index.value, getattr(statement, "value", None))
        elif not isinstance(index, ast.Slice):
            self.computed = self.computed or self._may_be_row(owner)

    def _may_be_row(self, owner: ast.expr) -> bool:
        """Whether storing into this may change a row: not into a dictionary that the script made itself."""
        if not isinstance(owner, ast.Name):
            return True
        binding = self._script.only_binding(owner)
        made = binding.value if binding is not None and binding.how == "assign" else None
        return not isinstance(made, ast.Dict | ast.DictComp | ast.List | ast.ListComp) and not (
            isinstance(made, ast.Call)
            and named(made.func) in {"dict", "defaultdict", "Counter", "OrderedDict", "list", "set"}
        )

    def _called(self, node: ast.Call, method: str) -> None:
        first = node.args[0] if node.args else None
        key = first.value if isinstance(first, ast.Constant) else None
        if method in _TAKING and isinstance(key, str):
            self.asked.add(key)
        self.computed = self.computed or method == "setitem"
        if method not in _MERGING:
            return
        self._merges = True
        if isinstance(key, str):
            self._store(key, None)
        elif any(not isinstance(given, ast.Dict) for given in node.args):
            self.computed = True  # whatever is in there
        for keyword in node.keywords:
            if keyword.arg is not None:
                self._store(keyword.arg, keyword.value)
            else:
                self.computed = True

    def _store(self, key: str, value: ast.expr | None) -> None:
        self.copied.add(key)
        if value is None or not _reads(value, key):
            self.keys.add(key)


def _entries(node: ast.Dict) -> Iterator[tuple[str, ast.expr]]:
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            yield key.value, value


def _reads(node: ast.expr, key: str) -> bool:
    """Whether the value is taken from the same key: then it does not make that key exist."""
    return any(
        isinstance(found, ast.Subscript)
        and isinstance(found.slice, ast.Constant)
        and found.slice.value == key
        for found in ast.walk(node)
    )
