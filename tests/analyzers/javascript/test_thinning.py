"""A file that is read thinned says what it says when it is read whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from affidavit.analyzers.javascript import _thinning
from affidavit.analyzers.javascript._thinning import NotThinnedError
from affidavit.analyzers.javascript.languages import LanguageName, language_of
from affidavit.analyzers.javascript.references import extract
from affidavit.analyzers.javascript.syntax import parse
from tests import real_inputs
from tests.analyzers.javascript.programs import programs


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces so small, and so little kept, that much is blanked out of short files, too."""
    monkeypatch.setattr(_thinning, "WINDOW", 97)
    monkeypatch.setattr(_thinning, "SHORTEST", 2)


def agrees(data: bytes, language: LanguageName) -> bool:
    """Whether a file can be read thinned; if so, its facts are those of the whole."""
    whole = extract(data, language)
    try:
        thinned = extract(data, language, thinned=True)
    except NotThinnedError:
        # A comment as HTML has them is an error until it is blanked out.
        assert whole.errors or b"<!--" in data
        return False
    assert thinned == whole
    return True


TRAPS = [
    "if (a) { b(); } else { c(); } if (a) b(); else if (c) d(); else require('yes'); e();",
    "try { a(); } catch (e) { b(); } finally { c(); } try { require('yes') } catch { d() }",
    "for (var a = 1, b; a < 2; a++) { c(); } for (;;) { d(); break; } for (const x of y) z(x); require('yes');",
    "do { a(); } while (b); do c(); while (d)\nrequire('yes')",
    "a = b\n(c)\nrequire('yes')\n;[1, 2, 3]\n.d()\n/ g / h\nrequire('yes')",
    "a\n++b\nlet c\nlet d = 1\nrequire('yes')\nlet e",
    "label: for (;;) { a(); continue label } switch (a) { case 1: b(); c(); break; default: require('yes'); d() }",
    "function f() { a(); function require() {} b(); require('no'); c(); }\nrequire('yes'); function g() { d(); }",
    "var x = [1, 2, 3, , 'a', [4, 5], -6, {}, null, require('yes'), 7, 8, 9]; [a, b, c] = [1, 2, 3];",
    "f(1, 2, 3, 4, 5, require('yes'), 6); x[1, 2, 'resolve']; require[1, 2, 'resolve']('yes');",
    "var [a, , b = 1, [c, d]] = require('yes'), [e, f] = [1, 2]; const { g, h: [i] } = require('yes')",
    "import { createRequire as c } from 'module'; a(); const r = c(import.meta.url); b(); d(); r('yes'); e(); f();",
    "a(); b(); c(); r\\u0065quire('yes'); d(); e(); f();",
    "a(); /* require('no') */ b(); // require('no')\nc(); 'require'; d(); `${require('yes')}`; e();",
    "exports.a = 1; b(); var c = exports; d(); c.e = 2; f(); module.exports.g = h; i();",
    "a(); b(); (function (c) { d(); c.e = 1; f(); })(exports); g(); h();",
    "!function (e) { a(); var t = e; b(); t.c = 1; d(); }(exports); t(); e();",
    "'use strict'; a(); class A { b = 1; c() { d(); e(); require('yes'); f(); } static { g(); h(); } } i();",
    "#!/usr/bin/env node\na(); b(); require('yes'); c(); d();",
    "export default function () { a(); b(); return require('yes'); }\nc(); d(); export { c }; function c() { e(); }",
    "a('-->'); b(); c = '<!-- d'; e();\n--> f()\ng(); while (h --> 0) i(); require('yes'); j(); k();",
    "a(); b();\u2028c(); require('yes');\r\nd();\re(); \ufeff require('yes')",
]

TYPED_TRAPS = [
    "function f(a: string): void\nfunction f(a: any) { b(); c(); }\nrequire('yes')\nfunction g(): void;\nd(); e();",
    "declare module 'a'\nfoo(); bar();\nlet x: import('yes').A; let y: number = 1; type B = string\nbaz(); qux();",
    "namespace N { export const a = 1; b(); c(); } interface D { e: string } type F = import('yes'); g();",
    "a(); enum B { c, d = 1, require }\ne(); f(); let g: import('yes').H; i(); const enum J { k } l(); m();",
    "abstract class A { abstract b(): void\nc(): void { d(); e(); } } import f = require('yes'); g(); export = f;",
    "let a = <any>b; c(); let d = e as string; f!(); let g = h satisfies I; import type { J } from 'yes'; k();",
]


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("window", [17, 64, 1000])
@pytest.mark.parametrize("source", TRAPS)
def test_what_ends_late_is_not_cut(source: str, window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_thinning, "WINDOW", window)
    assert agrees(source.encode(), "javascript")


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("window", [17, 64, 1000])
@pytest.mark.parametrize("source", TYPED_TRAPS)
def test_what_ends_late_in_typescript_is_not_cut(
    source: str, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_thinning, "WINDOW", window)
    assert agrees(source.encode(), "typescript")


@pytest.mark.usefixtures("small_pieces")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(programs(), min_size=1, max_size=2), st.sampled_from(["javascript", "typescript"]))
def test_generated_programs_say_the_same(sources: list[str], language: LanguageName) -> None:
    agrees("\n".join(sources).encode(), language)


TEXTS = [
    *("a;", "b", "(c)", "[1,2,", "]", "{", "}", "if(d)", "else ", "for(;;)", "require('e')", "\n", ",", "="),
    *("`", "'", "/*", "*/", "=>", "function f()", ";", ":", "case 1:"),
]


@pytest.mark.usefixtures("small_pieces")
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(TEXTS)))
def test_text_without_order_is_read_the_same_or_refused(parts: list[str]) -> None:
    agrees("".join(parts).encode(), "javascript")


def real_sources(key: str, limit: int) -> list[Path]:
    found = [path for path in sorted(real_inputs.unpacked(key).rglob("*")) if path.is_file()]
    return [path for path in found if language_of(path.name) and path.stat().st_size < limit]


@pytest.mark.oracle
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("key", "step", "limit"), [("k8slens", 9, 60_000), ("theia", 9, 60_000), ("mermaid", 5, 100_000)]
)
def test_real_files_say_the_same(key: str, step: int, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_thinning, "WINDOW", 2000)
    sources = real_sources(key, limit)[::step]
    compared = 0
    for path in sources:
        language = language_of(path.name)
        assert language is not None
        compared += agrees(path.read_bytes(), language)
    assert compared > 0.9 * len(sources) > 10


def test_little_is_left_of_what_says_nothing() -> None:
    data = (
        b"require('yes');"
        + b"a(b,c);" * 60_000
        + b"x=["
        + b"1,'b'," * 40_000
        + b"1];function f(){"
        + b"d;" * 60_000
    )
    data += b"require('yes')}"
    left = _thinning.thin(data, data, lambda text: parse(text, "javascript"))
    assert len(left.data) == len(data)
    assert len(left.data.split()) < 40
    assert left.lacks(["require"], data) == []
    assert left.lacks(["a", "require"], data) == [b"a"]
    assert agrees(data, "javascript")


def test_a_file_with_an_error_is_refused() -> None:
    with pytest.raises(NotThinnedError):
        extract(b"a(b,c);" * 60_000 + b"x = = y", "javascript", thinned=True)
