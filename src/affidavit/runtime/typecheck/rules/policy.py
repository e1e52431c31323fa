"""Which findings of the type checker prove an error: an explicit list, everything else is advice.

| checker's rule | blocks when |
|---|---|
| `unresolved-reference` | no scope of the script binds the name, and nothing can create it |
| `unused-awaitable` | a coroutine is dropped (a task or future runs anyway) |
| `invalid-typed-dict-key` | a row of ours is read, and the script stores or probes the key nowhere |
| `unknown-argument`, `missing-argument`, `too-many-positional-arguments`, ... | the called signature is in our stubs |
| `invalid-argument-type` | the same, and no value of the given type can be one of the wanted type |
| `missing-attribute`, `not-subscriptable`, `not-callable`, `not-iterable` | the value's type is ours alone |
| `missing-attribute`, `missing-module-member` of a module | the module itself does not have it, but something near |
| `missing-union-attribute`, calls of builtins | see `inputs`: one item of a wholly examined input must fail |

Nothing blocks that the script catches or never comes to (`reach`), nothing that rests on a type which the script itself
wrote, and nothing where other values may get to the place than the checker believes (`flow`).
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable as Function
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from affidavit.runtime.typecheck.resolve import Callable, Pending, Value
from affidavit.runtime.typecheck.rules import advice, inputs, keys, modules, results, suggest, types
from affidavit.runtime.typecheck.rules.case import Case, attribute_place
from affidavit.runtime.typecheck.rules.reach import guarded
from affidavit.runtime.typecheck.server import Finding
from affidavit.runtime.typecheck.verdict import Diagnostic, clipped

__all__ = ["judge"]

_IGNORED = frozenset({"invalid-syntax", "undefined-reveal", "revealed-type"})
_WARNING = 2
_PUT = re.compile(r"`: .*")
_KEY = "invalid-typed-dict-key"
_NARROWED = re.compile(r" & ~(AlwaysFalsy|None)\b")
_BUILTINS = {kind.__name__: kind for kind in (str, int, float, bool, bytes, list, dict, set, tuple)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Proof:
    """Why a finding blocks: better words, place and suggestion than the checker's, where there are."""

    message: str = ""
    suggestion: str | None = None
    place: tuple[int, int] | None = None


Node: TypeAlias = ast.expr | ast.keyword | None
Rule: TypeAlias = Function[[Case, Finding, Node], _Proof | None]


def judge(case: Case, findings: Sequence[Finding], stubs: Sequence[str]) -> list[Diagnostic]:
    """Turn the checker's findings into diagnostics.

    Args:
        case: the script.
        findings: what the checker found in it.
        stubs: names of the stub modules, to tell our signatures from others.
    """
    judged: list[Diagnostic] = []
    lacking = _lacking(findings)
    built = {
        _PUT.sub("", _first(one)) for one in findings if one.rule == "unknown-typed-dict-constructor-key"
    }
    unknown = [_node(case, finding) for finding in findings if finding.rule == "unknown-argument"]
    misnamed = {case.script.parent(node) for node in unknown if node is not None}
    for finding in findings:
        if finding.severity > _WARNING or finding.rule in _IGNORED:
            continue
        node = _node(case, finding)
        if finding.rule == "missing-argument" and node in misnamed:
            continue  # the misspelt argument is the missing one
        rule = _RULES.get(finding.rule)
        if rule is None and any(module in uri for uri, _ in finding.related for module in stubs):
            rule = _SIGNATURES.get(finding.rule)
        if rule is None:
            rule = _FALLBACK.get(finding.rule)
        proof = rule(case, finding, node) if rule else None
        if results.is_marker(finding.message):
            proof = None  # whether such a row is read for certain, the rules of `results` say
        if finding.rule == _KEY and (not _everywhere(finding, lacking) or _is_put_in(finding, built)):
            proof = None
        if proof is not None or not advice.is_noise(case, finding, node):
            judged.append(_diagnostic(case, finding, node, proof))
    return judged


def _node(case: Case, finding: Finding) -> Node:
    return case.script.at(finding.line, finding.column, finding.end_line, finding.end_column)


def _lacking(findings: Sequence[Finding]) -> dict[tuple[int, int], set[str]]:
    """At each place where a key is read: the TypedDicts that do not have it."""
    places: dict[tuple[int, int], set[str]] = {}
    for finding in findings:
        found = re.search(r"for TypedDict `(.+?)`:", finding.message)
        if finding.rule == _KEY and found is not None:
            places.setdefault((finding.line, finding.column), set()).add(found[1])
    return places


def _everywhere(finding: Finding, lacking: Mapping[tuple[int, int], set[str]]) -> bool:
    """Whether no member of a union has the key: `found["item"]` is right for those that were found."""
    for _, note in finding.related:
        if "in intersection type" in note:
            return False  # the script tested for something that the stubs do not know
        union = re.search(r"in union type `(.+)`", note)
        if union is not None:
            whole = types.texts(union[1])
            return whole is not None and whole - {"None"} <= lacking.get(
                (finding.line, finding.column), set()
            )
    return True


def _diagnostic(case: Case, finding: Finding, node: Node, proof: _Proof | None) -> Diagnostic:
    place = proof.place if proof else None
    if place is None and isinstance(node, ast.Attribute):
        place = attribute_place(case.text, node)
    line, column = place or (finding.line, case.text.column(finding.line, finding.column))
    return Diagnostic(
        line=line,
        column=column,
        rule=finding.rule,
        message=clipped((proof.message if proof else "") or _words(case, finding)),
        blocking=proof is not None,
        suggestion=(proof.suggestion if proof else None) or _meant(finding),
    )


def _words(case: Case, finding: Finding) -> str:
    """The checker's first line, with our class names as scripts know them."""
    if finding.rule == "import-not-found":
        return f"{finding.message.splitlines()[0]}: scripts have the standard library only"
    first = finding.message.splitlines()[0]
    paths = case.catalogue.paths
    own = case.script.binds
    # Only a name that stands first between backticks: `Modules.page`, not a word of the sentence.
    return re.sub(
        r"`(\w+)\b",
        lambda found: (
            found[0] if own(found[1]) or found[1] in case.given else f"`{paths.get(found[1], found[1])}"
        ),
        first,
    )


def _meant(finding: Finding) -> str | None:
    found = re.search(r"Did you mean [\"`]([^\"`]+)[\"`]", finding.message)
    return found[1] if found else None


def _is_put_in(finding: Finding, built: set[str]) -> bool:
    """Whether the script builds a dictionary with this key where the checker expects such a row.

    The checker calls a row `<TypedDict with items ...>` where its name does not matter, as `row.update` takes it.
    """
    read = _PUT.sub("", _first(finding))
    return read in built or re.sub(r"`.*", "`<", read) in {re.sub(r"`<.*", "`<", one) for one in built}


def _name(case: Case, _: Finding, node: Node) -> _Proof | None:
    if not isinstance(node, ast.Name) or case.script.dynamic:
        return None
    unbound = not case.script.bindings(node.id, case.script.scope(node))
    if (
        not unbound
        or not _evaluated(case, node)
        or guarded(case.script, node, "NameError", "UnboundLocalError")
    ):
        return None
    if any(one.how != "needs" for one in case.script.bindings_everywhere(node.id)):
        suggestion = f"self.{node.id}" if _is_of_class(case, node) else None
        return _Proof(
            message=f"`{node.id}` is not defined here: another scope binds it", suggestion=suggestion
        )
    visible = [name for name in case.script.visible(case.script.scope(node)) if name != node.id]
    meant = suggest.name(node.id, [*visible, *sorted(case.given)], case.catalogue)
    return _Proof(message=f"`{node.id}` is not defined", suggestion=meant)


def _is_of_class(case: Case, node: ast.Name) -> bool:
    """Whether the class around a method binds the name."""
    return any(
        around.kind == "class" and node.id in around.bound for around in case.script.scope(node).chain()
    )


def _evaluated(case: Case, node: ast.AST) -> bool:
    """Whether a name is looked up when the script runs: annotations of local variables are not."""
    inner = node
    for around in case.script.ancestors(node):
        if isinstance(around, ast.AnnAssign) and inner is around.annotation:
            return case.script.scope(around).kind != "function" and not _late(case)
        if isinstance(around, ast.arg) or (
            isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef) and inner is around.returns
        ):
            return not _late(case)
        inner = around
    return True


def _late(case: Case) -> bool:
    """Whether annotations are not evaluated where they stand."""
    return sys.version_info >= (3, 14) or any(
        isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in case.script.tree.body
    )


def _dropped(case: Case, finding: Finding, node: Node) -> _Proof | None:
    if not isinstance(node, ast.Call) or "`CoroutineType[" not in finding.message:
        return None
    if guarded(case.script, node):
        return None
    short = case.source_of(node, 100)
    return _Proof(
        message="this is called and never awaited, so it would not run",
        suggestion=f"await {short}" if short else "await",
    )


def _key(case: Case, finding: Finding, node: Node) -> _Proof | None:
    found = re.search(r"for TypedDict `(\w+)", finding.message)
    if found is None or not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return None
    row, key, around = found[1], node.value, case.script.parent(node)
    if not isinstance(around, ast.Subscript) or not isinstance(around.ctx, ast.Load):
        return None
    if not case.catalogue.is_dict(row) or case.catalogue.is_open(row) or case.script.binds(row):
        return None
    if not case.is_steady(around.value) or keys.may_exist(case, key):
        return None
    if keys.contradicted(case, around.value):
        return None
    if guarded(case.script, node, "KeyError", "LookupError"):
        return None
    known = case.catalogue.keys(row)
    near = suggest.close(key, known) or _meant(finding)
    if near is None and not case.catalogue.is_closed(row):
        return None  # a foreign schema names what there is, and forbids nothing else: only a misspelling is certain
    return _Proof(message=f"no key {key!r} in {row}; it has: {suggest.listing(known)}", suggestion=near)


def _signature(case: Case, finding: Finding, node: Node) -> _Proof | None:
    call = _call_of(case, finding, node)
    if call is None or guarded(case.script, call, "TypeError", "Error"):
        return None
    spread = any(isinstance(argument, ast.Starred) for argument in call.args)
    if spread or any(keyword.arg is None for keyword in call.keywords):
        return None
    if finding.rule == "too-many-positional-arguments":
        return _Proof(message=_too_many(case, call, finding))
    suggestion = None
    if isinstance(node, ast.keyword) and node.arg is not None:
        known = _parameters(case, call, finding)
        suggestion = suggest.close(node.arg, [name for name in known if name not in _given(call)])
        if known:
            message = f"no argument `{node.arg}`; there are: {suggest.listing(known)}"
            return _Proof(message=message, suggestion=suggestion)
    elif finding.rule == "missing-argument":
        wanted = re.search(r"parameters? ((?:`\w+`(?:, )?)+)", finding.message)
        suggestion = f"{re.findall(r'`([^`]+)`', wanted[1])[0]}=..." if wanted else None
    return _Proof(suggestion=suggestion)


def _too_many(case: Case, call: ast.Call, finding: Finding) -> str:
    """Arguments counted as the caller wrote them: without `self`."""
    counted = re.search(r"expected (\d+), got (\d+)", finding.message)
    most = int(counted[1]) - ("bound method" in finding.message) if counted else 0
    by_name = _parameters(case, call, finding)[most:]
    others = f"; by name: {suggest.listing(by_name)}" if by_name else ""
    plural = "s" * (most != 1)
    return f"takes at most {most} positional argument{plural}, {len(call.args)} are given{others}"


def _given(call: ast.Call) -> set[str]:
    return {keyword.arg for keyword in call.keywords if keyword.arg is not None}


def _parameters(case: Case, call: ast.Call, finding: Finding) -> list[str]:
    target = case.resolver.resolve(call.func)
    definitions = list(target.definitions) if isinstance(target, Callable) else []
    if not definitions:
        method = re.search(r"`(\w+)\.(\w+)`", finding.message)
        definitions = case.catalogue.method(method[1], method[2]) if method else []
    arguments = [argument for one in definitions[:1] for argument in [*one.args.args, *one.args.kwonlyargs]]
    return [argument.arg for argument in arguments if argument.arg != "self"]


def _call_of(case: Case, finding: Finding, node: Node) -> ast.Call | None:
    """The call that a finding about arguments is about."""
    if isinstance(node, ast.Call) and finding.rule == "missing-argument":
        return node
    around = case.script.parent(node) if node is not None else None
    return around if isinstance(around, ast.Call) else None


def _argument(case: Case, finding: Finding, node: Node) -> _Proof | None:
    call = _call_of(case, finding, node)
    found = re.search(r"Expected `([^`]+)`, found `([^`]+)`", finding.message)
    if call is None or found is None or guarded(case.script, call, "TypeError", "Error"):
        return None
    value = node.value if isinstance(node, ast.keyword) else node
    if not isinstance(value, ast.expr) or isinstance(value, ast.Starred):
        return None
    if isinstance(node, ast.keyword) and node.arg is None:
        return None
    if not types.disjoint(found[2], found[1], case.catalogue) or not types.trusted(case, value):
        return None
    word = value.value if isinstance(value, ast.Constant) else None
    options = [one for one in types.literals(found[1]) if isinstance(one, str)]
    suggestion = suggest.close(word, options) if isinstance(word, str) else None
    name = f"`{node.arg}` " if isinstance(node, ast.keyword) else ""
    place = (value.lineno, case.text.column(value.lineno, value.col_offset))
    return _Proof(message=f"{name}takes {found[1]}, not {found[2]}", suggestion=suggestion, place=place)


def _attribute(case: Case, finding: Finding, node: Node) -> _Proof | None:
    of_module = re.match(r"Module `([\w.]+)` has no member `(\w+)`", finding.message)
    if of_module is not None and isinstance(node, ast.Attribute):
        near = modules.meant(case, node, of_module[1])
        return _Proof(suggestion=near) if near else None
    found = re.match(r"Object of type `(.+?)` has no attribute `(\w+)`", finding.message)
    if found is None or not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
        return None
    if guarded(case.script, node, "AttributeError") or case.is_probed(node.attr):
        return None
    if node.attr in case.stores.attributes or not case.is_steady(node.value):
        return None
    if keys.unknown(case, node.value) and not _is_our_error(case, node.value):
        return None
    kind = _NARROWED.sub("", found[1])
    head = kind.partition("[")[0]
    if case.catalogue.is_dict(head) and hasattr(dict, node.attr):
        return None  # it is one when the script runs
    if not _is_ours(case, kind) and not _is_certain(case, node.value, kind):
        return None
    partly = head in case.catalogue.classes and not case.catalogue.is_whole(head)
    if partly and not _is_our_error(case, node.value):
        return None
    return _no_attribute(case, node, head)


def _no_attribute(case: Case, node: ast.Attribute, head: str) -> _Proof:
    """What to say of an attribute that a value of this class does not have."""
    pending = case.resolver.resolve(node.value)
    if isinstance(pending, Pending):
        message = f"`{pending.target.path}` was not awaited: its result has `.{node.attr}` only then"
        return _Proof(message=message, suggestion="await")
    if case.catalogue.is_dict(head):
        known = case.catalogue.keys(head)
        key = node.attr if node.attr in known else suggest.close(node.attr, known)
        suggestion = f'["{key}"]' if key else None
        return _Proof(
            message=f"{head} is a dictionary: it has keys, no `.{node.attr}`", suggestion=suggestion
        )
    known = case.catalogue.attributes(head) or [one for one in dir(_BUILTINS.get(head)) if one[0] != "_"]
    return _Proof(suggestion=suggest.close(node.attr, known))


def _member(case: Case, finding: Finding, _: Node) -> _Proof | None:
    """`from json import dump5`."""
    found = re.match(r"Module `([\w.]+)` has no member `(\w+)`", finding.message)
    if found is None:
        return None
    for node in case.script.nodes:
        if isinstance(node, ast.alias) and (node.lineno, node.name) == (finding.line, found[2]):
            near = modules.meant_import(case, node, found[1])
            return _Proof(suggestion=near) if near else None
    return None


def _is_our_error(case: Case, node: ast.expr) -> bool:
    """Whether this is what `except df.Error as error` caught, not another library's `Error`."""
    binding = case.script.only_binding(node) if isinstance(node, ast.Name) else None
    match binding.node if binding is not None else None:
        case ast.ExceptHandler(type=ast.Attribute(value=ast.Name() as host)):
            return case.resolver.is_host(host)
        case _:
            return False


def _operand(case: Case, finding: Finding, node: Node) -> _Proof | None:
    """The value that is subscripted, called or iterated has a type of ours which cannot be."""
    inner = getattr(node, "value", None) or getattr(node, "func", None) or node
    if not isinstance(inner, ast.expr) or guarded(case.script, inner, "TypeError"):
        return None
    resolved = case.resolver.resolve(inner)
    if isinstance(resolved, Value):
        # The checker names one member of a union that cannot; the others might.
        certain = types.is_single(resolved.annotation) and inputs.undisturbed(case, inner)
    else:
        certain = isinstance(resolved, Callable | Pending)
    if not certain or not case.is_steady(inner) or keys.unknown(case, inner):
        return None
    found = re.search(r"[Oo]bject of type `(\w+)", finding.message)
    return _Proof(suggestion=_as_attribute(case, node, found[1] if found else ""))


def _item(case: Case, finding: Finding, node: Node) -> _Proof | None:
    """A key that one of our classes with items does not have: `page["rowz"]`."""
    found = re.search(
        r"key of type `Literal\[(.+)\]` on object of type `(\w+)(?:\[[^`]*)?`$", _first(finding)
    )
    around = case.script.parent(node) if node is not None else None
    if found is None or not isinstance(around, ast.Subscript) or not isinstance(around.ctx, ast.Load):
        return None
    if not case.is_steady(around.value) or keys.unknown(case, around.value):
        return None
    known = case.catalogue.item_keys(found[2])
    key = around.slice.value if isinstance(around.slice, ast.Constant) else None
    if not known or not _is_ours(case, found[2]) or key is None or keys.may_exist(case, str(key)):
        return None
    if guarded(case.script, around, "KeyError", "LookupError", "TypeError"):
        return None
    place = (around.slice.lineno, case.text.column(around.slice.lineno, around.slice.col_offset))
    message = f"no key {key!r} in {found[2]}; it has: {suggest.listing(known)}"
    return _Proof(message=message, suggestion=suggest.close(str(key), known), place=place)


def _first(finding: Finding) -> str:
    return finding.message.splitlines()[0]


def _as_attribute(case: Case, node: Node, kind: str) -> str | None:
    """`page["rows"]` where `page.rows` is meant."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Constant):
        return None
    word = node.slice.value
    near = (
        suggest.close(word, case.catalogue.attributes(kind.partition("[")[0]))
        if isinstance(word, str)
        else None
    )
    return f".{near}" if near else None


def _is_ours(case: Case, kind: str) -> bool:
    """Whether a type in the checker's words is one class of the stubs, and no class of the script has its name."""
    head, _, rest = kind.partition("[")
    whole = not rest or (rest.endswith("]") and " | " not in rest.rpartition("]")[2])
    if not head.isidentifier() or not whole or kind.count("[") != kind.count("]"):
        return False
    return (
        head in case.catalogue.classes
        and not case.script.binds(head)
        and " & " not in kind
        and "] | " not in kind
    )


def _is_certain(case: Case, node: ast.expr, kind: str) -> bool:
    """Whether an expression's type comes from the stubs alone, and the script changes nothing on the way to it."""
    resolved = case.resolver.resolve(node)
    if isinstance(resolved, Pending | Callable):
        return True
    if not isinstance(resolved, Value) or not types.within(kind, resolved.annotation):
        return False
    return inputs.undisturbed(case, node)


def _whole(case: Case, finding: Finding, node: Node) -> _Proof | None:
    return _Proof() if node is not None and inputs.must_fail(case, finding, node) else None


def _whole_or_item(case: Case, finding: Finding, node: Node) -> _Proof | None:
    return _item(case, finding, node) or _whole(case, finding, node)


_RULES: Mapping[str, Rule] = {
    "unresolved-reference": _name,
    "unused-awaitable": _dropped,
    "invalid-typed-dict-key": _key,
    "missing-attribute": _attribute,
    "missing-module-member": _member,
    "not-subscriptable": _operand,
    "not-callable": _operand,
    "not-iterable": _operand,
    "missing-union-attribute": _whole,
}
_SIGNATURES: Mapping[str, Rule] = {
    "unknown-argument": _signature,
    "missing-argument": _signature,
    "too-many-positional-arguments": _signature,
    "parameter-already-assigned": _signature,
    "positional-only-parameter-as-kwarg": _signature,
    "invalid-argument-type": _argument,
}
_FALLBACK: Mapping[str, Rule] = {"invalid-argument-type": _whole_or_item}
