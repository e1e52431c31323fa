"""Which `require` is Node's: shadowing, hoisting, reassignment."""

from __future__ import annotations

import pytest

from affidavit.analyzers.javascript.languages import LanguageName
from affidavit.analyzers.javascript.scope import Names
from affidavit.analyzers.javascript.syntax import parse
from tests.analyzers.javascript.extraction import sites


def loaded(source: str, language: LanguageName = "javascript") -> list[str | None]:
    return [specifier for kind, specifier in sites(source, language) if kind == "require"]


@pytest.mark.parametrize(
    "source",
    [
        'function f(require) { require("no") }',
        'function f(a, [{ b: require = 1 }], ...c) { require("no") }',
        'function f(...require) { require("no") }',
        'function f(a = require("no"), require) {}',
        'const f = require => require("no")',
        'const f = async require => { require("no") }',
        'const f = (require) => () => require("no")',
        '(function (require, module, exports) { require("no") })',
        '(function require() { require("no") })',
        '(function* require() { require("no") })',
        '({ m(require) { require("no") }, set x(require) { require("no") } })',
        'class A { constructor(require) { require("no") } static m(require) { return () => require("no") } }',
        '(class require { m() { require("no") } })',
        '(class require extends require("no") {})',
        'function f() { require("no"); var require }',
        'function f() { require("no"); if (a) { for (;;) { var [require] = b } } }',
        'function f() { require("no"); for (var require in a); }',
        'function f() { require("no"); function require() {} }',
        '{ require("no"); let require }',
        '{ require("no"); const { a: { b: [require] } } = c }',
        '{ require("no"); class require {} }',
        '{ require("no"); function require() {} }',
        '{ using require = a; require("no") }',
        'for (let require = 1; require("no"); require("no")) require("no")',
        'for (const require of require("no")) require("no")',
        'for (const { require } of a) require("no")',
        'switch (a) { case 1: require("no"); case 2: let require }',
        'try {} catch (require) { require("no") }',
        'try {} catch ({ a: require }) { require("no") }',
        'class A { static { var require; require("no") } }',
        'import require from "m"; require("no")',
        'import { require } from "m"; require("no")',
        'import { a as require } from "m"; require("no")',
        'import * as require from "m"; require("no")',
        'function require() {} require("no")',
        'var require; require("no")',
        'export default function require() {} require("no")',
        'export const require = 1; require("no")',
    ],
)
def test_a_declared_require_is_not_nodes(source: str) -> None:
    assert loaded(source) == []


@pytest.mark.parametrize(
    "source",
    [
        'function f(a = require("yes")) { var require }',
        'function f(a = () => require("yes")) { function require() {} }',
        'function f(require) {} require("yes")',
        '(function require() {}); require("yes")',
        '(class require {}); require("yes")',
        '({ require() { require("yes") } })',
        '({ require: 1 }); require("yes")',
        'class A { require = 1; m() { require("yes") } }',
        '({ [require("yes")](require) {} })',
        'class A { [require("yes")](require) {} }',
        'class A { @a(require("yes")) m(require) {} }',
        '{ let require } require("yes")',
        'for (let require of a); require("yes")',
        'for (let require;;) {} require("yes")',
        'try { require("yes") } catch (require) {}',
        'switch (require("yes")) { case 1: let require }',
        'switch (a) { case 1: { let require } default: require("yes") }',
        'class A { static { var require } static a = require("yes") }',
        'require: for (;;) require("yes")',
        'a.require = 1; require.x = 1; require("yes")',
        'import { require as a } from "m"; require("yes")',
        'export { a as require }; require("yes")',
        'const { require: a, [require]: b } = c; require("yes")',
        'const { a = require("yes") } = b',
        '"require"; `require`; /require/; require("yes") // var require',
        'if (typeof require === "function") require("yes")',
        '(() => { var a = require("yes"); function f(require) {} })()',
    ],
)
def test_what_declares_nothing_here_shadows_nothing(source: str) -> None:
    assert loaded(source) == ["yes"]


@pytest.mark.parametrize(
    "assignment",
    [
        "require = a",
        "require ||= a",
        "require++",
        "--require",
        "[require] = a",
        "({ require } = a)",
        "({ require = 1 } = a)",
        "({ b: [c, ...require] } = a)",
        "(require) = a",
        "for (require of a);",
        "for ([require] in a);",
        "function f() { require = a }",
        "(() => { { require = a } })()",
        "r\\u0065quire = a",
    ],
)
def test_a_reassigned_require_is_nobodys(assignment: str) -> None:
    assert loaded(f'require("no"); {assignment}; function g() {{ require("no") }}') == []
    # The assignment means another variable: Node's own stays.
    assert loaded(f'require("yes"); function h(require) {{ {assignment}; }}') == ["yes"]


def test_a_reassigned_module_has_no_require() -> None:
    assert loaded('module = a; module.require("no")') == []
    assert loaded('module.exports = a; module.require("yes")') == ["yes"]
    assert loaded('function f(module) { module.require("no") }') == []


def test_the_nearest_created_require_wins() -> None:
    source = """import { createRequire as c } from "module";
    const require = c(import.meta.url); require("a");
    { const require = c(import.meta.url); require("b"); { let require = x; require("no") } }
    function f(r = require("c")) { const r2 = r; r2("no"); r("no") }"""
    assert loaded(source) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('enum require { A } require("no")', []),
        ('enum E { require, b = require("no") } ', []),
        ('enum E { require = 1, b = require("no") } require("yes")', ["yes"]),
        ('namespace require { export const a = 1 } require("no")', []),
        ('namespace require.b { export const a = 1 } require("no")', []),
        ('namespace N { const require = 1; require("no") } require("yes")', ["yes"]),
        ('namespace N { if (a) { var require } require("no") } require("yes")', ["yes"]),
        ('import require = require("m"); require("no")', ["m"]),
        ('import require = a.b; require("no")', []),
        ('import x = require.b; require("yes")', ["yes"]),
        ('abstract class require {} require("no")', []),
        (
            'class A { constructor(private require: B, c?) { require("no") } m(c?, require?) { require("no") } }',
            [],
        ),
        ('function f(this: A, { require }: B = {}) { require("no") }', []),
        ('declare var require: any; require("yes")', ["yes"]),
        ('declare function require(a: string): any; require("yes")', ["yes"]),
        ('declare global { var require: any } require("yes")', ["yes"]),
        ('declare namespace require { const a: 1 } require("yes")', ["yes"]),
        ('function require(a: string): any; require("yes")', ["yes"]),
        ('interface require {} type T = require; require("yes")', ["yes"]),
        ('let f: (require: any) => void; require("yes")', ["yes"]),
        ('interface I { m(require: any): void; (require: any): void } require("yes")', ["yes"]),
        ('(require as any) = a; require("no")', []),
        ('require! = a; require("no")', []),
        ('@d(require("yes")) class A { constructor(require) {} }', ["yes"]),
        ('class A { @d(require("yes")) m(require) {} }', ["yes"]),
        ('module.require("yes")', ["yes"]),
    ],
)
def test_typescript(source: str, expected: list[str]) -> None:
    assert loaded(source, "typescript") == expected


def test_declarations_writes_and_reads_are_told_apart() -> None:
    data = b"var a = a; a = 1; { let a = 2; [a] = a; } function f(a, b = a) { var a; return { a, b: a } } a++"
    use = Names(data, parse(data, "javascript")).use("a")
    assert use.free.reads == use.free.writes == []
    counts = [(len(each.declarations), len(each.writes), len(each.reads)) for each in use.bound]
    assert counts == [(1, 2, 1), (1, 1, 1), (2, 0, 3)]
    assert use.declared_at(4) is use.bound[0]
    assert use.declared_at(0) is None


@pytest.mark.parametrize("name", ["a", "$a", "_", "é", "\U00020000"])
def test_a_name_is_found_where_it_is_a_whole_token(name: str) -> None:
    source = f"({name}, x{name}, {name}x, 'x {name}', x.{name}, /*{name}*/ \u2028{name}\u00a0)".encode()
    found = [frame.start for frame in Names(source, parse(source, "javascript")).tokens(name)]
    first = source.index(name.encode())
    last = source.rindex(name.encode())
    assert found == [first, source.index(f".{name}".encode()) + 1, last]


def test_scopes_nested_thousands_deep() -> None:
    deep = 3000
    source = "function f() { var require; {" * deep + 'require("no");' + "}}" * deep + 'require("yes")'
    assert loaded(source) == ["yes"]
    left_deep = " + ".join(f'require("{number}")' for number in range(deep))
    assert loaded(left_deep) == [str(number) for number in range(deep)]
