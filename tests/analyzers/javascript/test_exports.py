"""Which names a file exports, in which form and where; which names of others it asks for."""

from __future__ import annotations

import pytest

from affidavit.analyzers.javascript.languages import LanguageName
from affidavit.analyzers.javascript.references import extract
from tests.analyzers.javascript.extraction import facts


def names(source: str, language: LanguageName = "javascript") -> list[str]:
    """The exported names in source order."""
    return [one.name for one in facts(source, language).exports]


def shown(source: str, language: LanguageName = "javascript") -> list[tuple[str, str, str | None, str]]:
    """Name, form, local name and text of each export."""
    data = source.encode()
    return [
        (one.name, one.form, one.local, data[one.span.start.offset : one.span.end.offset].decode())
        for one in extract(data, language).exports
    ]


def asked(source: str, language: LanguageName = "javascript") -> list[list[tuple[str, tuple[str, ...]]]]:
    """Of each site the names that it asks for, with what is bound to them."""
    return [list(site.names) for site in facts(source, language).references]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("export const a = 1, { b, c: [d = 2], ...e } = f;", ["a", "b", "d", "e"]),
        ("export let a; export var b", ["a", "b"]),
        ("export function f() {} export async function* g() {} export class C {}", ["f", "g", "C"]),
        ("export { a as b, c, d as default, e as 'odd name', default as g } from 'm'",
         ["b", "c", "default", "odd name", "g"]),
        ("let a, type, as; export { a as b, type, as as of }", ["b", "type", "of"]),
        ("export default 1", ["default"]),
        ("export default class {} ", ["default"]),
        ("export default async () => {}", ["default"]),
        ("export * as ns from 'm'; export * as 'a b' from 'm'", ["ns", "a b"]),
        ("export * from 'm'; export * from 'n'", ["*", "*"]),
        ("export {}; export {} from 'm'", []),
        (r"export { a as '\u0062\x63', d as \u0065 }; let a, d", ["bc", "e"]),
        ("export { a as 'n\\u{1F600}' }; let a", ["n😀"]),
        ("// export const a = 1\n'export const b'; `export { c }`; x.export; ({ export: 1 })", []),
        ("", []),
    ],
)  # fmt: skip
def test_ecmascript(source: str, expected: list[str]) -> None:
    assert names(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("export = a;", ["export="]),
        ("export type T = 1; export interface I {} export enum E { A } export const enum F { A }",
         ["T", "I", "E", "F"]),
        ("export namespace N.M { export const no = 1 } export declare module O {}", ["N", "O"]),
        ("export declare const a: 1, b: 2; export declare function f(): void; export abstract class C {}",
         ["a", "b", "f", "C"]),
        ("export function f(): void; export function f(a?: 1) {}", ["f", "f"]),
        ("export import a = b.c; export import d = require('m'); export import type e = require('n')",
         ["a", "d", "e"]),
        ("export type { A } from 'm'; export { type B, type C as D }", ["A", "B", "D"]),
        ("export type * from 'm'; export type * as E from 'm'", ["*", "E"]),
        ("export default interface I {}", ["default"]),
        ("@d export class A {} export @d class B {}", ["A", "B"]),
        ("export as namespace N; declare module 'm' { export const no: 1 } declare global { export const no: 1 }", []),
        ("declare const a: 1; namespace N { export const no = 1 }", []),
    ],
)  # fmt: skip
def test_typescript(source: str, expected: list[str]) -> None:
    assert names(source, "typescript") == expected


def test_what_typescript_erases_is_told() -> None:
    source = """
export type A = 1; export interface B {} export type { C } from "m"; export { type D, E }; export type * from "m";
export default interface F {} export import type G = require("m"); export enum H { A } export declare const I: 1;
"""
    erased = {one.name for one in facts(source, "typescript").exports if one.type_only}
    assert erased == {"A", "B", "C", "D", "*", "default", "G"}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("exports.a = 1; module.exports.b = 2; exports['c d'] = 3; exports[`e`] = 4; module['exports'].f = 5",
         ["a", "b", "c d", "e", "f"]),
        ("exports.a = exports.b = void 0", ["a", "b"]),
        ("(exports).a = 1; (module).exports.b = 1", ["a", "b"]),
        ("({ a: exports.b, c: [exports.d], ...exports.e } = f); [exports.g = 1] = h; for (exports.i of j) ;",
         ["b", "d", "e", "g", "i"]),
        ("exports.a.b = 1; exports.c += 1; exports.d++; delete exports.e; exports.f; exports.g()", []),
        ("exports[a] = 1; exports[`b${c}`] = 1; module.exports = { [d]: 1 }", []),
        ("module.exports = { a, 'b': c, d() {}, get e() {}, set e(f) {}, async *g() {}, ['h']: 1, 10: 1, 0x10: 1 }",
         ["a", "b", "d", "e", "e", "g", "h", "10"]),
        ("module.exports = { __proto__: a, b, ...c }", ["b"]),
        ("module.exports = { ['__proto__']: a, __proto__() {} }", ["__proto__", "__proto__"]),
        ("0 && (module.exports = { a, b, ...require('m') })", ["a", "b", "*"]),
        ("module.exports = a; module.exports = () => {}; module.exports = require('m').a", ["export="] * 3),
        ("module.exports = require('m'); module.exports = (require)('n')", ["*", "*"]),
        ("Object.defineProperty(exports, '__esModule', { value: true })", ["__esModule"]),
        ("exports.__esModule = true", ["__esModule"]),
        ("Object.defineProperty(module.exports, 'a', { get: () => b }); Object.defineProperty(exports, c, {})", ["a"]),
        ("Object.defineProperties(exports, { a: {}, b: {} }); Object.assign(exports, { c }, d, require('m'))",
         ["a", "b", "*", "c"]),
        ("Object.defineProperty(a, 'b', {}); Object.assign(a, exports); Object.keys(exports)", []),
        ("(function (E) { E[E.A = 0] = 'A' })(exports.E || (exports.E = {}))", ["E"]),
        (r"\u0065xports.a = 1", ["a"]),
    ],
)  # fmt: skip
def test_commonjs(source: str, expected: list[str]) -> None:
    assert names(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("function f(exports, module) { exports.no = 1; module.exports.no = 1 } exports.a = 1", ["a"]),
        ("const module = {}; module.exports.no = 1; exports.a = 1", ["a"]),
        ("let exports = {}; exports.no = 1", []),
        ("(() => { var n = { 1: (module, exports, r) => { exports.no = 1; module.exports = { no } } }; })()", []),
        ("define(function (require, exports) { exports.no = 1 })", []),
        ("((g, f) => typeof exports === 'object' ? f(exports) : f(g.x = {}))(this, (exports) => exports.no = 1)", []),
        ("module = {}; module.exports.no = 1; exports.a = 1", ["a"]),
        ("exports = {}; exports.no = 1; module.exports.a = 1", ["a"]),
        ("exports = module.exports = f; exports.a = 1", ["export=", "a"]),
        ("exports = module.exports; exports.a = 1", ["a"]),
        ("module.exports = exports = f; exports.a = 1", ["export=", "a"]),
        ("module.exports = exports; exports.a = 1", ["a"]),
        ("exports = (module.exports = {}); exports.a = 1", ["a"]),
        ("var exports = module.exports = { a }; exports.b = 1", ["a", "b"]),
        ("var app = exports = module.exports = {}; app.a = 1", ["a"]),
        ("const e = exports; e.a = 1; { let e = {}; e.no = 1 } module.exports = e", ["a"]),
        ("let e = exports; e = {}; e.no = 1", []),
        ("(function (e) { e.a = 1 })(exports); (e => { e.b = 1 })(module.exports)", ["a", "b"]),
        ("(function (a, e) { e.a = 1 })(1, exports); ((a, e) => { e.no = 1 })(exports, 1)", ["a"]),
        ("(function (e) { e = {}; e.no = 1 })(exports); (function (...e) { e.no = 1 })(exports); f(exports)", []),
        ("(function (a, e) { e.no = 1 })(...b, exports)", []),
    ],
)  # fmt: skip
def test_only_the_exports_object_of_the_file_counts(source: str, expected: list[str]) -> None:
    assert names(source) == expected


def test_a_module_of_ecmascript_has_no_commonjs_exports() -> None:
    assert names("import 'm'; exports.no = 1; module.exports = { no }") == []
    assert names("export const a = 1; exports.no = 1") == ["a"]
    assert names("import('m'); import.meta.url; exports.a = 1") == ["a"]


@pytest.mark.parametrize(
    "source",
    [
        '__exportStar(require("m"), exports);',
        '(0, tslib_1.__exportStar)(require("m"), exports);',
        'function __export(m) { for (var p in m) if (!exports[p]) exports[p] = m[p]; } __export(require("m"));',
        'var _m = require("m"); Object.keys(_m).forEach(function (key) { if (!key) return; exports[key] = _m[key]; });',
        'var m = __importStar(require("m")); Object.keys(m).forEach(k => Object.defineProperty(exports, k, { get }));',
        'const m = require("m"); for (const k in m) { exports[k] = m[k]; }',
        '_export_star(require("m"), exports);',
        'var s = {}; __reExport(s, require("m"), module.exports);',
        'module.exports = { ...require("m") };',
        'module.exports = require("m");',
    ],
)  # fmt: skip
def test_all_names_of_another_module(source: str) -> None:
    (found,) = facts(source).exports
    assert (found.name, found.form, found.specifier) == ("*", "copy", "m")


@pytest.mark.parametrize(
    "source",
    [
        "Object.keys(_m).forEach(function (key) { exports[key] = _m[key]; });",
        'let m = require("m"); m = 1; for (const k in m) exports[k] = m[k];',
        'const m = require("m"); for (const k in m) { exports[other] = m[k]; }',
        'const require = 1; __exportStar(require("m"), exports);',
        '__exportStar(require("m"), other);',
        'require("m"); __exportStar(name, exports);',
        "__export(a, { b: () => b });",
    ],
)
def test_what_only_looks_like_it_is_none(source: str) -> None:
    assert names(source) == []


def test_the_names_that_a_bundler_defines_on_an_object_that_it_copies() -> None:
    source = "var s = {}; __export(s, { a: () => a, default: () => b }); module.exports = __toCommonJS(s);"
    assert shown(source) == [
        ("a", "object", None, "a: () => a"),
        ("default", "object", None, "default: () => b"),
    ]
    assert names("_export(exports, { a: function () { return a; } });") == ["a"]


def test_forms_and_ranges() -> None:
    assert shown("export const a = 1, [b] = c;\nexport function f() {};\nexport { d as e, g };") == [
        ("a", "declaration", "a", "a = 1"),
        ("b", "declaration", "b", "[b] = c"),
        ("f", "declaration", "f", "export function f() {}"),
        ("e", "list", "d", "d as e"),
        ("g", "list", "g", "g"),
    ]
    assert shown(
        "export { a as b } from 'm'; export * as c from 'm'; export * from 'm' with { type: 'json' };"
    ) == [
        ("b", "from", "a", "a as b"),
        ("c", "from", "*", "export * as c from 'm';"),
        ("*", "star", None, "export * from 'm' with { type: 'json' };"),
    ]
    assert shown("export default a") == [("default", "default", "a", "export default a")]
    assert shown("export default function f() {}") == [
        ("default", "default", "f", "export default function f() {}")
    ]
    assert shown("exports.a = b, module.exports = { c: d }; module.exports = e") == [
        ("a", "property", "b", "exports.a = b"),
        ("c", "object", "d", "c: d"),
        ("export=", "value", "e", "module.exports = e"),
    ]
    assert shown("export = a; export import b = require('m');", "typescript") == [
        ("export=", "equals", "a", "export = a;"),
        ("b", "declaration", "b", "export import b = require('m');"),
    ]


def test_positions_are_bytes() -> None:
    (found,) = facts("'é'; exports.ü = 1").exports
    assert (found.name, found.span.start.column, found.span.end.column) == ("ü", 6, 20)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import a, { b as c, b as d, 'e f' as g } from 'm'",
         [("default", ("a",)), ("b", ("c", "d")), ("e f", ("g",))]),
        ("import { default as a } from 'm'", [("default", ("a",))]),
        ("import a, * as b from 'm'", [("default", ("a",))]),
        ("import * as a from 'm'", []),
        ("import 'm'", []),
        ("export { a, b as c, default as d } from 'm'", [("a", ()), ("b", ()), ("default", ())]),
        ("export * from 'm'", []),
        ("export * as a from 'm'", []),
        ("const { a, b: { c, d }, 'e f': g, h = 1, [i]: j, ...k } = require('m')",
         [("a", ("a",)), ("b", ("c", "d")), ("e f", ("g",)), ("h", ("h",))]),
        ("const a = require('m').b", [("b", ("a",))]),
        ("const { a, c } = require('m').b.d", [("b", ("a", "c"))]),
        ("require('m')['a']()", [("a", ())]),
        ("const a = require('m')", []),
        ("const [a] = require('m')", []),
        ("require('m')()", []),
        ("require('m').#a", []),
        ("import('m').then(f)", []),
        ("const { then } = import('m')", []),
        ("const { a } = await import('m')", [("a", ("a",))]),
        ("(await import('m')).a", [("a", ())]),
        ("async () => { const { a } = await (import('m')) }", [("a", ("a",))]),
        ("const { a } = require.resolve('m')", []),
    ],
)  # fmt: skip
def test_names_asked_for(source: str, expected: list[tuple[str, tuple[str, ...]]]) -> None:
    assert asked(source) == [expected]


def test_types_ask_too() -> None:
    assert asked("import type { A as B } from 'm'; import { type C } from 'm'", "typescript") == [
        [("A", ("B",))],
        [("C", ("C",))],
    ]
    assert asked("let a: import('m').A; import b = require('m');", "typescript") == [[], []]


def test_very_many_and_very_deep() -> None:
    deep = 20_000
    assert len(names("exports.a = 1;" * deep)) == deep
    assert names("exports = " * deep + "module.exports; exports.a = 1") == []
    assert names("exports.a = (" * deep + "1" + ")" * deep) == ["a"] * deep
    assert names("for (k in m) " * 2000 + "exports[k] = m[k]") == []
    same = ", ".join(f"a as a{number}" for number in range(deep))
    assert len(asked(f"import {{ {same} }} from 'm'")[0][0][1]) == deep
