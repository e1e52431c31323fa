"""Generated programs, read by the product and by an independent reader."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from affidavit.analyzers.javascript.languages import LanguageName
from affidavit.analyzers.javascript.references import extract
from tests.analyzers.javascript.extraction import as_answer
from tests.analyzers.javascript.programs import programs
from tests.real_inputs import node_command, oracle_modules, source_request

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(300)]


class Oracle:
    """A running `references.mjs`: one question, one answer."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def ask(self, source: str, language: LanguageName) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(source_request(0, language, source.encode())).encode() + b"\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    environment = {**os.environ, "MODULES": str(oracle_modules())}
    command = node_command("references.mjs")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        yield Oracle(process)
        process.kill()


def agree(oracle: Oracle, source: str, language: LanguageName) -> int | None:
    """Compare one program: its number of sites, or None when the oracle refuses it."""
    answer = oracle.ask(source, language)
    if "error" in answer:
        return None
    facts = extract(source.encode(), language)
    assert facts.errors == ()
    assert [as_answer(site) for site in facts.references] == answer["references"]
    return len(facts.references)


@pytest.mark.parametrize("language", ["javascript", "jsx", "typescript", "tsx"])
def test_generated_programs_read_as_the_oracle_reads_them(oracle: Oracle, language: LanguageName) -> None:
    compared: list[int] = []

    # One question at a time, so that a failing program is shrunk to its smallest form.
    @settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(programs())
    def check(source: str) -> None:
        sites = agree(oracle, source, language)
        if sites is not None:
            compared.append(sites)

    check()
    assert len(compared) >= 60
    assert sum(compared) >= 60


ODDITIES = [
    'function f(a = require("yes")) { var require; require("no") }',
    'function f(require, b = require("no")) { require("no") }',
    '(function require() { var require; require("no") }); require("yes")',
    'for (let require of require("no")) ; for (var require2 of require("yes")) ;',
    'class require {} new require("no"); require("no")',
    "a <!-- require('no')\n",
    "a <!-- don't require('no')\nb < !--c\nrequire('<!--') <!-- `${ <!--\nrequire('yes')",
    "import 'yes'; a = b <!--require\nrequire('yes')",
    "/* */ --> require('no')\nrequire('yes')",
    "x = /[/]require('no')/; y = a / require('yes') / b",
    "`${`${require('yes')}`}${require}`",
    "async () => { await (0, a.b)(require('yes')); await (0, require)('yes').c(import('yes')) }",
    "async function f() { for await (const x of await (require)('yes')) await (a, require)('yes', b) }",
    "import def, * as ns from 'yes'; import { a as b, } from 'yes'; import {} from 'yes'; export {} from 'yes'",
    "import x from 'yes' with { type: 'json' }; export * from 'yes' with { type: 'json' }; import('y', { with: {} })",
    "import/* */'yes';import*as a from'yes';import{b}from'yes';export*from'yes';export{c}from'yes'",
    "function f() {};\nfunction g(a = require('yes')) {};\nclass A { x = require('yes') };",
    "export default function () { return require('yes') }",
    "export default (a, require('yes'));",
    "var { a = require('yes'), ...b } = require('yes'), [c] = require('yes').d, e = (await import('yes')).f;",
    "new Worker(new URL('yes', import.meta.url), { type: 'module' }); new Worker(`yes`); new Worker(a + b)",
    "new URL('yes', import.meta.url).href; new URL(`./${a}`, import.meta.url); new URL('no', location)",
    "const require = (await import('node:module')).createRequire(import.meta.url); require('yes')",
    "import m from 'module'; const r = m.createRequire(__filename); r.resolve(`yes`); r?.('yes'); r.cache",
    "label: { require('yes'); break label }",
    "a?.b?.(require('yes'))?.[require('yes')]",
    "({ require, async require2() { await require('yes') }, get [require('yes')]() {}, ...require('yes') })",
    "class A { #require = require('yes'); static { this.#require } [require('yes')] = 1; static async *x() {} }",
    "do require('yes'); while (require('yes')) switch (require('yes')) { case require('yes'): }",
    "throw require('yes')",
    "'\\x79\\u0065\\u{73}'; require('\\x79\\u0065\\u{73}'); require('y\\\nes'); r\\u0065quire('yes')",
    "\ufeffrequire('é\U0001f600')\u2028require('yes');\r\nrequire('yes')\rrequire('yes')",
    "#!/usr/bin/env node\nrequire('yes')",
    "\ufeff#!/usr/bin/env node\nrequire('yes')",
    "export * from 'yes' with { type: 'json' }\nexport { a } from 'yes' with {}; import 'yes' with /* */ { a: '}' }",
    "using = require('yes'); f(using, require('yes')); x.using(require('yes')); { using a = require('yes') }",
    "x = { using: require('yes'), using() {} }; function using2(using) { using\n(require('yes')) }",
    "var require",
    "",
]


@pytest.mark.parametrize("source", ODDITIES)
def test_odd_programs_read_as_the_oracle_reads_them(oracle: Oracle, source: str) -> None:
    assert agree(oracle, source, "javascript") is not None


TYPED = [
    'import type { A } from "a"; import { type B } from "b"; import c = require("c"); export import d = require("d");',
    'import type e = require("e"); export type { F } from "f"; export type * from "g"; export type * as h from "h";',
    'let a: import("a").A<B>[], b: typeof import("b"), c = import("c"), d: import("d")["e"]; f<import("g")>(h);',
    'type A = import("a") | (keyof typeof import("b"))[]; interface B extends C<import("c")> { (d: import("d")): E }',
    'declare module "a" { import b from "b"; export const c: import("c").C } declare global { var require: any }',
    'abstract class A<T extends import("a").A> extends B implements C<import("b")> { abstract c: import("c") }',
    '@d(require("a")) export class A { @e(require("b")) f(@g(require("c")) require) { require("no") } }',
    'const a = require("a") as any, b = require("b")!, c = (require as any)("c"), d = require("d") satisfies E;',
    'enum A { require, b = require("no") } namespace N { const require = 1; require("no") } require("yes")',
    'export = require("a");',
    "const x: Array<typeof import('a')['b']> = await import('b') as typeof import('c');",
    "function f(this: A, require?: import('a').B): asserts require is import('b').C { require('no') }",
    "let f: (a: import('a').B) => import('b').C, g: new () => import('c').D, h: [import('d').E, ...import('e').F[]]",
    "type A = { [K in keyof import('a').B]: import('b').C[K] }; type D = A extends import('c').E ? import('d') : never",
    "const a = <const T extends import('a').B,>(b: T) => b; label: for (const c of require('c')) {}",
]


@pytest.mark.parametrize("source", TYPED)
@pytest.mark.parametrize("language", ["typescript", "tsx"])
def test_typed_programs_read_as_the_oracle_reads_them(
    oracle: Oracle, source: str, language: LanguageName
) -> None:
    assert agree(oracle, source, language) is not None


@given(
    st.lists(
        st.sampled_from(["require('a')", "é", "😀", "\n", "\r", "\u2028", " ", ";", "'😀'", "//", "`\r\n`"])
    )
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_positions_equal_the_oracles(oracle: Oracle, parts: list[str]) -> None:
    source = ";".join(parts)
    answer = oracle.ask(source, "javascript")
    if "error" not in answer:
        facts = extract(source.encode(), "javascript")
        assert [as_answer(site) for site in facts.references] == answer["references"]
