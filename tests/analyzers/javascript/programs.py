"""Small JavaScript programs full of shadowing, for comparison with an independent reader.

Programs are grammatical by construction; some declare a name twice in one scope, which parsers refuse. Left out is what
the product documents as not modelled (`with`, `eval`, annex B) and the heritage of a named class expression, which
eslint-scope puts outside of the class, other than the language does.
"""

from __future__ import annotations

from hypothesis import strategies as st

__all__ = ["programs"]

_NAMES = ("require", "require", "require", "module", "createRequire", "c", "m", "Worker", "URL")
_LIBRARIES = ("module", "node:module", "worker_threads", "url", "x")

name = st.sampled_from(_NAMES)
declared = st.sampled_from((*_NAMES, *"defghijklmnop"))
text = st.sampled_from(
    ['"m"', "'é'", "`t`", "`a${b}`", '"a" + "b"', "b", r'"\u{1F600}\x41"', '("m")', '"node:module"']
)
place = st.sampled_from(["import.meta.url", "__filename", '"/"', "b"])


def _fill(template: str, **parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """A template whose `<part>` places are drawn one by one."""
    pieces: list[st.SearchStrategy[str]] = []
    rest = template
    while "<" in rest:
        before, _, rest = rest.partition("<")
        key, _, rest = rest.partition(">")
        pieces += [st.just(before), parts[key]]
    return st.tuples(*pieces, st.just(rest)).map("".join)


_pattern = st.one_of(
    declared,
    _fill("{ <d> }", d=declared),
    _fill("{ createRequire: <d> }", d=declared),
    _fill("{ a: <d>, ...<d> }", d=declared),
    _fill("[<d>, [<d>]]", d=declared),
    _fill("{ a: { b: <d> = 1 } }", d=declared),
)

_calls = st.one_of(
    *(
        _fill(template, n=name, t=text, p=place)
        for template in (
            "<n>(<t>)",
            "<n>(<t>)",
            "<n>?.(<t>)",
            "(0, <n>)(<t>)",
            "(<n>)(<t>)",
            "<n>.resolve(<t>)",
            "<n>.resolve?.(<t>)",
            "<n>.require(<t>)",
            "<n>.createRequire(<p>)",
            "<n>.default.createRequire(<p>)",
            "<n>(<p>)",
            "<n>(<p>)(<t>)",
            "<n>(<t>).createRequire(<p>)",
            "new <n>(<t>)",
            "new <n>(<t>, import.meta.url)",
            "new <n>(new <n>(<t>, import.meta.url))",
            "new <n>.Worker(<t>)",
            "import(<t>)",
            "import.meta.resolve(<t>)",
            "typeof <n>",
            "<n>`t`",
            "<n>.a(<t>)",
            '__toESM(require("module"))',
        )
    )
)


def _expressions(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    body = st.lists(_statements(inner), max_size=3).map(" ".join)
    parts = {"n": name, "d": declared, "p": _pattern, "e": inner, "b": body, "t": text}
    return st.one_of(
        *(
            _fill(template, **parts)
            for template in (
                "(<e>, <e>)",
                "[<e>, <e>]",
                "(<e> ? <e> : <e>)",
                "({ <n>, a: <e>, [<e>]: 1, <n>(<p>) { <b> } })",
                "`a${<e>}b`",
                "(<p>) => <e>",
                "(<d> = <e>) => { <b> }",
                "async <d> => (await <e>)",
                "async () => { <b> await (0, <n>)(<t>) }",
                "async () => { await (<n>)(<t>).a }",
                "(async () => { const <p> = await (import(<t>)); <b> })",
                "(async () => { const <p> = await import(<t>); <b> })",
                "function <d>(<p>) { <b> }",
                "function (<p>, <d> = <e>) { <b> }",
                "(class <d> { <n> = <e>; static { <b> } <n>(<p>) { <b> } })",
                "(class extends Base { [<e>](<p>) { <b> } })",
                "(<n> = <e>)",
            )
        )
    )


def _statements(expression: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    parts = {"n": name, "d": declared, "p": _pattern, "e": expression}
    simple = st.one_of(
        *(
            _fill(template, **parts)
            for template in (
                ";(<e>);",
                ";(<e>);",
                "const <p> = <e>;",
                "let <p> = <e>;",
                "var <p> = <e>;",
                "var <d>;",
                "const <d> = <e>, <p> = <e>;",
                "<n> = <e>;",
                "[<n>] = <e>;",
                "({ <n>, a: <n> } = <e>);",
                "<n>++;",
                "for (<n> of <e>) ;",
            )
        )
    )
    block = st.lists(simple, max_size=3).map(" ".join)
    nested = st.one_of(
        *(
            _fill(template, **parts, b=block)
            for template in (
                "{ <b> }",
                "if (<e>) { <b> } else { <b> }",
                "for (let <p> of <e>) { <b> }",
                "for (const <d> in <e>) { <b> }",
                "for (var <d> = <e>; <e>;) { <b> }",
                "for (let <d> = <e>; ; <e>) { <b> }",
                "switch (<e>) { case <e>: <b> default: <b> }",
                "try { <b> } catch (<p>) { <b> } finally { <b> }",
                "function <d>(<p>) { <b> }",
                "function* <d>(a, ...<d>) { <b> }",
                "async function <d>(<d> = <e>) { <b> }",
                "class <d> { constructor(<d>) { <b> } static <n> = <e>; }",
                "label: { <b> }",
            )
        )
    )
    return st.one_of(simple, simple, nested)


_imports = st.one_of(
    *(
        _fill(template, d=declared, l=st.sampled_from(_LIBRARIES))
        for template in (
            'import { createRequire as <d> } from "<l>";',
            'import { createRequire } from "<l>";',
            'import <d> from "<l>";',
            'import * as <d> from "<l>";',
            'import { Worker as <d> } from "<l>";',
            'import "<l>";',
            'export * as <d> from "<l>";',
            'const { createRequire: <d> } = require("<l>");',
            'var <d> = __toESM(require("<l>"));',
            "const <d> = createRequire(import.meta.url);",
            "export const <d> = createRequire(__filename);",
        )
    )
)

_expression = st.recursive(_calls, _expressions, max_leaves=6)


def programs() -> st.SearchStrategy[str]:
    """Programs of a few statements."""
    return st.tuples(
        st.lists(_imports, max_size=3).map("\n".join),
        st.lists(_statements(_expression), min_size=1, max_size=5).map("\n".join),
    ).map("\n".join)
