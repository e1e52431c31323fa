"""Makes of a script the text that the sandbox runs, and leads places in that text back to the caller's.

What changes, all of it on the syntax tree:

- calls on `df` learn their call site; `async for` over pages becomes the `while` loop that means the same;
- `x.name` asks for the keys of results and the fields of `df.Error`, which the sandbox's own objects cannot offer;
- the script's value leaves through a check that loses nothing.

The new text comes from `ast.unparse`, is parsed again and compared with the tree that it was made from, so that an
expression which does not survive is refused rather than run as something else.
"""

from __future__ import annotations

import ast
import bisect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from affidavit.evidence.record import JsonValue
from affidavit.runtime.engines.monty._nodes import call, read, stored
from affidavit.runtime.engines.monty._regex import translate
from affidavit.runtime.engines.monty._value import give_value
from affidavit.runtime.engines.monty.scan import Place, Scan, call_place, chain

__all__ = ["Origins", "Place", "Rewritten", "rewrite"]

# Builtins that are ours in the sandbox: `getattr` for results, `round` because monty's is off in the last place.
_REPLACED = ("getattr", "hasattr", "round")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """A script ready for the sandbox.

    Attributes:
        text: what is run.
        sites: places of the calls, by the number that the sandbox reports; site 0 is unknown.
        tree: the tree that `text` was made from; its nodes have the caller's places.
    """

    text: str
    sites: tuple[Place, ...]
    tree: ast.Module

    def origins(self) -> Origins:
        """The way back from places in `text`."""
        return Origins(self.tree, self.text)


class Origins:
    """Leads an expression in the rewritten text to the place in the caller's script."""

    def __init__(self, tree: ast.Module, text: str) -> None:
        lines = text.split("\n")

        def spot(line: int, column: int) -> tuple[int, int]:
            return line, len(lines[line - 1].encode()[:column].decode("utf-8", "replace"))

        self._exact: dict[tuple[tuple[int, int], tuple[int, int]], Place] = {}
        starts: dict[tuple[int, int], Place] = {}
        raised = {id(node.exc): node for node in ast.walk(tree) if isinstance(node, ast.Raise)}
        for old, new in zip(_placed(tree), _placed(ast.parse(text)), strict=True):
            start = spot(new.lineno, new.col_offset)
            end = spot(new.end_lineno or new.lineno, new.end_col_offset or 0)
            self._exact.setdefault((start, end), _origin(old, raised))
            starts.setdefault(start, _origin(old, raised))
        self._keys = sorted(starts)
        self._places = [starts[key] for key in self._keys]

    def place(self, start: tuple[int, int], end: tuple[int, int]) -> Place | None:
        """The caller's place of what stands from `start` to `end`, or None before any code.

        Both are a 1-based line and a 0-based column in characters. Where nothing stands exactly there, the last
        expression that starts before it counts.
        """
        if (start, end) in self._exact:
            return self._exact[start, end]
        at = bisect.bisect_right(self._keys, start) - 1
        return self._places[at] if at >= 0 else None


def _placed(tree: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.expr | ast.stmt))


def _origin(node: ast.expr | ast.stmt, raised: Mapping[int, ast.Raise]) -> Place:
    """An exception arises in its `raise`; monty points at what is raised."""
    at = raised.get(id(node), node)
    return Place(line=at.lineno, column=at.col_offset)


def rewrite(module: ast.Module, tree: Mapping[str, JsonValue]) -> Rewritten:
    """Rewrite a parsed script, which is changed in place.

    Raises:
        ValueError: some expression does not survive being written out again.
        RecursionError: the script is nested too deeply.
    """
    scan = Scan(module, tree)
    give_value(module, scan)
    writer = _Writer(scan)
    changed = writer.visit(module)
    ast.fix_missing_locations(changed)
    text = ast.unparse(changed)
    if ast.dump(ast.parse(text)) != ast.dump(changed):
        raise ValueError("an expression does not survive rewriting")
    return Rewritten(text=text, sites=tuple(writer.sites), tree=changed)


class _Writer(ast.NodeTransformer):
    """One pass over the tree."""

    def __init__(self, scan: Scan) -> None:
        self.sites = [Place(line=0, column=0)]
        self._scan = scan
        self._loops = 0
        self._selfs: list[str | None] = []
        self._in_class = False

    def _site(self, node: ast.Call) -> ast.Constant:
        self.sites.append(call_place(node))
        return ast.Constant(value=len(self.sites) - 1)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if self._scan.module_of(node.func) == "asyncio.run" and not self._selfs:
            return ast.copy_location(ast.Await(value=self.visit(node.args[0])), node)
        site = self._scan.site_of(node)
        leaves = self._scan.leaves_script(node.func)
        function = node.func
        if isinstance(function, ast.Attribute):
            function.value = self.visit(function.value)
        else:
            node.func = self.visit(function)
        self._pattern(node)
        node.args = [self.visit(argument) for argument in node.args]
        node.keywords = [self.visit(keyword) for keyword in node.keywords]
        if leaves:
            node.func = read("_affidavit_leave", node.func)
        elif site == "base" and isinstance(function, ast.Attribute):
            function.value = call("at", self._site(node), function.value, at=function.value)
        elif site == "callee":
            node.func = call("at", self._site(node), node.func, at=node.func)
        return node

    def _pattern(self, node: ast.Call) -> None:
        """Spell out the character classes of a pattern, which every rule-abiding call of `re` has as a literal."""
        if (
            not (self._scan.module_of(node.func) or "").startswith("re.")
            or self._scan.module_of(node.func) == "re.escape"
        ):
            return
        for given in [
            *node.args[:1],
            *[keyword.value for keyword in node.keywords if keyword.arg == "pattern"],
        ]:
            if isinstance(given, ast.Constant) and isinstance(given.value, str):
                given.value = translate(given.value)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in _REPLACED and isinstance(node.ctx, ast.Load) and node.id not in self._scan.bound:
            return read(f"_affidavit_{node.id}", node)
        return node

    def visit_Await(self, node: ast.Await) -> ast.AST:
        immediate = self._scan.is_immediate(node.value)
        node.value = self.visit(node.value)
        return node.value if immediate else node  # what `df` answers at once may be awaited all the same

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if not isinstance(node.ctx, ast.Load) or self._plain(node):
            return self.generic_visit(node)
        value = self.visit(node.value)
        return ast.copy_location(call("get", value, ast.Constant(value=node.attr), at=node), node)

    def _plain(self, node: ast.Attribute) -> bool:
        """Whether an attribute is certainly none of a result's or an error's: of a module, of `df`, of `self`."""
        base = node.value
        if isinstance(base, ast.Name) and self._selfs and base.id == self._selfs[-1]:
            return True
        dotted = chain(node)
        return dotted is not None and (
            dotted[0] in self._scan.imported or (dotted[0] == "df" and not self._scan.rebinds_df)
        )

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.bases = []  # `object` at most: every other base is refused
        outer, self._in_class = self._in_class, True
        node.body = self._statements(node.body)
        self._in_class = outer
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        parameters = node.args.posonlyargs + node.args.args
        self._selfs.append(parameters[0].arg if self._in_class and parameters else None)
        outer, self._in_class = self._in_class, False
        node.args.defaults = [self.visit(default) for default in node.args.defaults]
        node.args.kw_defaults = [default and self.visit(default) for default in node.args.kw_defaults]
        node.body = self._statements(node.body)
        self._in_class = outer
        self._selfs.pop()
        return node

    def _statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        changed: list[ast.stmt] = []
        for statement in body:
            result = self.visit(statement)
            changed += cast("list[ast.stmt]", result) if isinstance(result, list) else [result]
        return changed

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.target = self.visit(node.target)
        node.value = node.value and self.visit(node.value)
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        node.guard = node.guard and self.visit(node.guard)
        node.body = self._statements(node.body)
        return node

    def visit_AsyncFor(self, node: ast.AsyncFor) -> list[ast.stmt]:
        self._loops += 1
        name = f"_affidavit_pages{self._loops}"
        pages = read(name, node)
        start = ast.Assign(
            targets=[stored(name, node)],
            value=call("iterate", self.visit(node.iter), at=node.iter),
        )
        bind = ast.Assign(targets=[self.visit(node.target)], value=call("current", pages, at=node.target))
        loop = ast.While(
            test=ast.copy_location(ast.Await(value=call("advance", pages, at=node.iter)), node.iter),
            body=[ast.copy_location(bind, node.target), *self._statements(node.body)],
            orelse=self._statements(node.orelse),
        )
        return [ast.copy_location(start, node), ast.copy_location(loop, node)]

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        if not self._scan.is_exit(raised):
            return self.generic_visit(node)
        given = node.exc.args if isinstance(node.exc, ast.Call) else []
        leave = call("leave", *[self.visit(argument) for argument in given], at=node)
        return ast.copy_location(ast.Expr(value=leave), node)

    def visit_Return(self, node: ast.Return) -> ast.AST:
        node.value = node.value and self.visit(node.value)
        if not self._selfs and node.value is not None:
            node.value = call("returned", node.value, at=node.value)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self._selfs.append(None)
        self.generic_visit(node)
        self._selfs.pop()
        return node
