"""What counts as a reference, of which kind, with which value and range."""

from __future__ import annotations

import pickle

import pytest

from affidavit.analyzers.javascript.languages import LANGUAGES, LanguageName, language_of
from affidavit.analyzers.javascript.references import Position, Reference
from tests.analyzers.javascript.extraction import bindings, facts, sites, texts

# The text of a public kind of fault: specifiers in comments, strings, template text and regular expressions were
# counted, and those in plain backticks missed.
SPECIFIERS = r"""// import no1 from "no1"; require("no2")
/* require('no3') */
import def, { a as b } from "yes1";
import "yes2";
export * as ns from 'yes3';
const s = "require('no4')", t = 'import("no5")', r = /require\("no6"\)/g;
const tpl = `import no7 from "no7"; ${require("yes4")} require("no8")`;
const lazy = () => import(`./yes5.js`);
const h = require(`yes6`);
const dyn = (name) => import("./locale/" + name + ".js");
const q = 1 / 2; const m = "x".match(/['"]/); import("yes7").then(x => x / require("yes8"));
export { default } from "yes9";
export const notFrom = { from: "no9" };
"""


def test_only_code_refers_to_modules() -> None:
    found = [(site.kind, site.specifier, site.span.start.line) for site in facts(SPECIFIERS).references]
    assert found == [
        ("import", "yes1", 3),
        ("side-effect-import", "yes2", 4),
        ("export-from", "yes3", 5),
        ("require", "yes4", 7),
        ("dynamic-import", "./yes5.js", 8),
        ("require", "yes6", 9),
        ("dynamic-import", None, 10),
        ("dynamic-import", "yes7", 11),
        ("require", "yes8", 11),
        ("export-from", "yes9", 12),
    ]


def test_a_bundle_that_passes_its_own_require_refers_to_nothing() -> None:
    bundle = """(() => { var m = {
      123: (t, e, n) => { var r = n(456); const o = () => (0, r.h)(7); },
      456: function (t, e, require) { const x = require(789); e.h = function (n) { return n(5) + x.k; }; },
    }; function q(i) { return m[i]({}, {}, q); } q(123); __webpack_require__(1); })();"""
    assert sites(bundle) == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('import {} from "m"', [("import", "m")]),
        ('import x, * as y from "m"', [("import", "m")]),
        ('import x from "m" with { type: "json" }', [("import", "m")]),
        ('import { default as a, "odd name" as b } from "m"', [("import", "m")]),
        ('export * from "m"; export {} from "n"; export { a }; export default 1',
         [("export-from", "m"), ("export-from", "n")]),
        ('import("m"); import(x); import("n", { with: {} })',
         [("dynamic-import", "m"), ("dynamic-import", None), ("dynamic-import", "n")]),
        ("require()", [("require", None)]),
        ('require(...["m"])', [("require", None)]),
        ('require("a" + "b")', [("require", None)]),
        ("require(`a${b}`)", [("require", None)]),
        ('require(("m"))', [("require", "m")]),
        ('require(/* why */ "m" /* not */)', [("require", "m")]),
        ('require("m", 1)', [("require", "m")]),
        ('require?.("m")', [("require", "m")]),
        ('(require)("m"); (0, require)("n")', [("require", "m"), ("require", "n")]),
        ('module.require("m"); module["require"]("n")', [("require", "m"), ("require", "n")]),
        ('require.resolve("m"); require?.resolve?.("n")', [("require-resolve", "m"), ("require-resolve", "n")]),
        ('import.meta.resolve("m")', [("require-resolve", "m")]),
        ('require.resolve.paths("m"); typeof require; require.cache; require.main', []),
        ('require`m`; new require("m"); x.require("m"); require.call(null, "m")', []),
        ('const r = require; r("m"); window.require("m"); f(require)', []),
        ('factory(require("m"), require)', [("require", "m")]),
        ('require("m")("n")', [("require", "m")]),
        ('r\\u0065quire("m"); \\u{72}equire("n")', [("require", "m"), ("require", "n")]),
        ('new Worker("m"); new SharedWorker("n")', [("worker", "m"), ("worker", "n")]),
        ("new Worker; Worker('m')", [("worker", None)]),
        ('new Worker(code, { eval: true }); new Worker("1 + 1", { "eval": !0 })', [("worker", None), ("worker", None)]),
        ('new URL("m", import.meta.url)', [("asset-url", "m")]),
        ('new URL("m"); new URL("m", base); new URL("m", import.meta.url.x)', []),
        ('new Worker(new URL("m", import.meta.url), { type: "module" })', [("worker", "m")]),
        ('new Worker(new URL("m", base))', [("worker", None)]),
        ("const { Worker: W } = require('worker_threads'); new W('m')",
         [("require", "worker_threads"), ("worker", "m")]),
        ("import * as t from 'node:worker_threads'; new t.Worker('m')",
         [("import", "node:worker_threads"), ("worker", "m")]),
        ("import { URL as U } from 'url'; new U('m', import.meta.url)", [("import", "url"), ("asset-url", "m")]),
        ("class Worker {} new Worker('m')", []),
        ("<!-- require('no')\nrequire('m') // x\n--> require('no')", [("require", "m")]),
        ("#!/usr/bin/env node require('no')\nrequire('m')", [("require", "m")]),
    ],
)  # fmt: skip
def test_kinds(source: str, expected: list[tuple[str, str | None]]) -> None:
    assert sites(source) == expected


@pytest.mark.parametrize(
    ("import_of_it", "call"),
    [
        ('import { createRequire } from "module";', "createRequire"),
        ('import { createRequire as c } from "node:module";', "c"),
        ('import { "createRequire" as c } from "node:module";', "c"),
        ('import * as m from "module";', "m.createRequire"),
        ('import m from "module";', "m.createRequire"),
        ('import { default as m } from "module";', "m['createRequire']"),
        ('const { createRequire: c } = require("module");', "c"),
        ('const m = require("node:module");', "m.createRequire"),
        ('var m = __toESM(require("module"));', "(0, m.createRequire)"),
        ('var m = tslib.__importStar(require("module"));', "m.default.createRequire"),
        ('const { createRequire } = await import("node:module");', "createRequire"),
        ('const { createRequire } = await (import("node:module"));', "createRequire"),
        ('const p = import("module");', "(await p).createRequire"),
    ],
)
def test_create_require_however_it_was_imported(import_of_it: str, call: str) -> None:
    found = sites(f'{import_of_it} const r = {call}(import.meta.url); r("m"); r.resolve("n"); {call}(x)("o")')
    assert found[1:] == [
        ("create-require", None),
        ("require", "m"),
        ("require-resolve", "n"),
        ("require", "o"),
        ("create-require", None),
    ]


@pytest.mark.parametrize(
    "source",
    [
        'import { createRequire } from "other"; createRequire(x)("m")',
        'import { createRequire } from "module"; { let createRequire; createRequire(x)("m") }',
        'import { createRequire } from "module"; let r = createRequire(x); r = f; r("m")',
        'import { createRequire } from "module"; var r = createRequire(x), r = f; r("m")',
        'import { createRequire } from "module"; const { r } = createRequire(x); r("m")',
        'import { createRequire } from "module"; for (const r of createRequire(x)) r("m")',
        'import { createRequire } from "module"; function f(r) { var r = createRequire(x); r("m") }',
    ],
)
def test_only_what_must_be_a_created_require_is_one(source: str) -> None:
    assert ("require", "m") not in sites(source)


def test_the_base_says_where_a_relative_specifier_starts() -> None:
    source = """import { createRequire } from "module";
    createRequire(import.meta.url)("./a"); createRequire(__filename)("./b"); createRequire(root)("./c");
    createRequire(root).resolve("./d"); new Worker("./e"); new Worker(new URL("./f", import.meta.url));"""
    bases = {site.specifier: site.base for site in facts(source).references if site.specifier}
    assert bases == {
        "module": "file", "./a": "file", "./b": "file", "./c": "other", "./d": "other", "./e": "other", "./f": "file"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("token", "value"),
    [
        (r"'a\x62\u0063\u{64}'", "abcd"),
        (r"'\u{1F600}\uD83D\uDE00'", "\U0001f600\U0001f600"),
        (r"'\uD83D'", "\ud83d"),
        (r"'\n\t\b\f\v\r\'\"\\\/\q'", "\n\t\b\f\v\r'\"\\/q"),
        (r"'\0\101\7\78\400\8'", "\0A\x07\x078\x200" + "8"),
        ("'a\\\nb\\\r\nc\\\u2028d'", "abcd"),
        ("'\u2028é\U0001f600'", "\u2028é\U0001f600"),
        ("`a\r\nb\rc`", "a\nb\nc"),
        (r"`\u{62}\`\${}`", "b`${}"),
        (r"`\0`", "\0"),
        ("''", ""),
        (r"'\u{110000}'", None),
        (r"'\xZZ'", None),
        (r"`\1`", None),
    ],
)
def test_the_value_of_a_literal_is_exact(token: str, value: str | None) -> None:
    assert sites(f"require({token})") == [("require", value)]


def test_bytes_that_are_not_utf8_read_as_in_node() -> None:
    read = facts(b'require("a\xff\xe2\x82b"); require("c")')
    assert [site.specifier for site in read.references] == ["a\ufffd\ufffdb", "c"]
    assert (read.encoding, read.invalid_at) == ("invalid", 10)
    assert read.references[1].span.start.offset == 18


def test_encodings() -> None:
    assert facts("x").encoding == "utf-8"
    marked = facts(b'\xef\xbb\xbfrequire("m")')
    assert (marked.encoding, marked.references[0].span.start) == ("utf-8-bom", Position(3, 1, 3))
    wide = facts('require("m")'.encode("utf-16"))
    assert (wide.encoding, wide.references, wide.invalid_at) == ("utf-16", (), 0)


def test_positions_count_bytes_and_ecmascript_lines() -> None:
    source = 'a\r\nb\rc\u2028"é"; d\n/*😀*/ require("m")'
    (site,) = facts(source).references
    start = len(source[: source.index("require")].encode())
    assert site.span.start == Position(start, 5, 9)
    assert site.span.end == Position(len(source.encode()), 5, 21)


def test_crlf() -> None:
    starts = [site.span.start for site in facts('require("a")\r\nrequire("b")\r\n').references]
    assert starts == [Position(0, 1, 0), Position(14, 2, 0)]


@pytest.mark.parametrize(
    ("source", "span", "statement"),
    [
        ('f(); import x from "m";', 'import x from "m";', 'import x from "m";'),
        ('const a = require("m"), b = 1;', 'require("m")', 'const a = require("m"), b = 1;'),
        ('export const a = require("m")', 'require("m")', 'export const a = require("m")'),
        ('for (const a = require("m");;) { b }', 'require("m")', 'for (const a = require("m");;) { b }'),
        ('if (require("m")) b; else c', 'require("m")', 'if (require("m")) b; else c'),
        ('if (a) require("m"); else c', 'require("m")', 'require("m");'),
        ('switch (a) { case require("m"): b }', 'require("m")', 'switch (a) { case require("m"): b }'),
        ('class A { x = require("m") }; y', 'require("m")', 'class A { x = require("m") }'),
        ('const f = () => require("m")', 'require("m")', 'const f = () => require("m")'),
        ('const f = () => { return require("m") }', 'require("m")', 'return require("m")'),
        ('function f(a = require("m")) {};', 'require("m")', 'function f(a = require("m")) {}'),
        ('await (0, require)("m").x;', '(0, require)("m")', 'await (0, require)("m").x;'),
        ('x = await (require)("m")("n")', '(require)("m")', 'x = await (require)("m")("n")'),
        ('await (await import("m")).x(y)', 'import("m")', 'await (await import("m")).x(y)'),
    ],
)
def test_ranges(source: str, span: str, statement: str) -> None:
    assert texts(source) == [(span, statement)]


def test_await_is_a_name_in_a_plain_function() -> None:
    assert sites('function f(await) { await (0, require)("m") }') == []
    assert sites('async function f() { await (0, require)("m") }') == [("require", "m")]


def test_sites_ranges_and_bindings_are_three_counts() -> None:
    found = facts(
        'const a = require("a"), { b, c: [d = require("d")] } = require("b").c; require("e")'
    ).references
    assert len(found) == 4
    assert len({site.statement for site in found}) == 2
    assert [site.bindings for site in found] == [("a",), (), ("b", "d"), ()]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('import a, { b as c, default as d } from "m"', ("a", "c", "d")),
        ('import a, * as b from "m"', ("a", "b")),
        ('const { a, ...b } = await import("m")', ("a", "b")),
        ('const { a } = await (import("m"))', ("a",)),
        ('const a = require("m")["b"].c', ("a",)),
        ('const a = require("m")()', ()),
        ('const a = require("m") || b', ()),
        ('a = require("m")', ()),
        ('const { [k]: a = d } = require("m")', ("a",)),
        ('export * as a from "m"', ()),
        ('const a = new Worker("m")', ("a",)),
    ],
)
def test_bindings(source: str, expected: tuple[str, ...]) -> None:
    assert bindings(source) == [expected]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('import type { A } from "m"', [("import-type", "m")]),
        ('import { type A } from "m"', [("import", "m")]),
        ('import type from "m"', [("import", "m")]),
        ('export type { A } from "m"; export type * from "n"', [("import-type", "m"), ("import-type", "n")]),
        ('import x = require("m"); import type y = require("n")', [("require", "m"), ("import-type", "n")]),
        ('export import x = require("m");', [("require", "m")]),
        ('let a: import("m").A<B>[] = import("n")', [("import-type", "m"), ("dynamic-import", "n")]),
        ('let a: typeof import("m"); typeof import("n")', [("import-type", "m"), ("dynamic-import", "n")]),
        ('f<import("m")>(1); x as import("n").A', [("import-type", "m"), ("import-type", "n")]),
        ('class A extends B<import("m").C> implements D {}', [("import-type", "m")]),
        ('type A = import("m") | (import("n").B & keyof typeof import("o"))[]',
         [("import-type", "m"), ("import-type", "n"), ("import-type", "o")]),
        ('const a = require("m") satisfies A, b = require("n")!, c = (require as any)("o")',
         [("require", "m"), ("require", "n"), ("require", "o")]),
        ('declare var require: any; declare module "x" { const require: 1 } require("m")', [("require", "m")]),
        ('const a = await import("m"); import("n" as any)', [("dynamic-import", "m"), ("dynamic-import", "n")]),
        ('// import("no")\n"import(\'no\')"; /import("no")/; x.import("no")', []),
    ],
)  # fmt: skip
@pytest.mark.parametrize("language", ["typescript", "tsx"])
def test_typescript(source: str, expected: list[tuple[str, str | None]], language: LanguageName) -> None:
    assert sites(source, language) == expected


def test_a_cast_of_the_old_form_is_looked_through() -> None:
    source = 'const a = <A>require(<string>"m"), { b } = <any>(await import("n"))'
    assert sites(source, "typescript") == [("require", "m"), ("dynamic-import", "n")]
    assert bindings(source, "typescript") == [("a",), ("b",)]


def test_a_masked_import_keeps_value_binding_and_flow() -> None:
    source = 'const { createRequire: c } = await import(/* x */ "node:m\\u006fdule"); c(import.meta.url)("m")'
    found = facts(source, "typescript").references
    assert [(site.kind, site.specifier, site.bindings) for site in found] == [
        ("dynamic-import", "node:module", ("c",)),
        ("require", "m", ()),
        ("create-require", None, ()),
    ]
    assert texts(source, "typescript")[0][0] == 'import(/* x */ "node:m\\u006fdule")'


@pytest.mark.parametrize("language", ["jsx", "tsx", "javascript"])
def test_jsx(language: LanguageName) -> None:
    source = 'const a = <div x={require("m")} y="require(\'no\')">require("no") {import("n")}</div>'
    assert sites(source, language) == [("require", "m"), ("dynamic-import", "n")]


def test_every_language_is_known_by_its_files() -> None:
    named = {
        path: language_of(path) for path in ("a.js", "A.MJS", "x/y.cjs", "a.jsx", "a.d.ts", "a.cts", "a.tsx")
    }
    assert set(named.values()) == set(LANGUAGES)
    assert [language_of(path) for path in ("a.json", "a", "js", ".js", "a.js.map")] == [None] * 5


def test_json_has_no_references() -> None:
    assert sites('{"require": "require(\'no\')", "import": ["no"]}') == []


def test_facts_are_plain_values() -> None:
    read = facts('import a from "m"; x = = y')
    assert pickle.loads(pickle.dumps(read)) == read
    assert isinstance(hash(read), int)
    assert isinstance(read.references[0], Reference)
