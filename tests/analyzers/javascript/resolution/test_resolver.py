"""Where specifiers lead: a table for each rule."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from affidavit.analyzers.javascript.containers.entry import Entry
from affidavit.analyzers.javascript.containers.tree import Tree
from affidavit.analyzers.javascript.resolution.exports import Mode
from affidavit.analyzers.javascript.resolution.resolver import Resolution, Resolver


def resolver(files: Mapping[str, Any] | list[str], links: Mapping[str, str] | None = None) -> Resolver:
    """A resolver over files; the values of those called package.json are their objects."""
    packages: dict[str, Any] = dict(files) if isinstance(files, Mapping) else {path: {} for path in files}
    entries = [Entry(path=path, kind="file") for path in packages]
    entries += [Entry(path=path, kind="link", target=target) for path, target in (links or {}).items()]
    return Resolver(Tree(entries), lambda path: packages[path])


def told(resolution: Resolution) -> str:
    """The target, or the key of what is not there."""
    return resolution.target or resolution.key or resolution.status


RELATIVE = [
    "main.js", "a.js", "b.json", "c.node", "d.mjs", "e.cjs", "f.ts", "g.tsx", "h.jsx", "i.mts", "j.cts", "exact",
    "dir/index.js", "dir/inner.js", "both.js", "both/index.js", "both.json", "lib.js/index.js", "data/index.json",
    "pkg/package.json", "pkg/lib/start.js", "badmain/package.json", "badmain/index.js", "sub/x.js", "space name.js",
    "per%cent.js", "odd?.js", "dots/..x.js", "__proto__.js",
]  # fmt: skip
PACKAGES = {"pkg/package.json": {"main": "./lib/start"}, "badmain/package.json": {"main": "nothing.js"}}


@pytest.mark.parametrize(
    ("referrer", "specifier", "mode", "target"),
    [
        ("main.js", "./a.js", "require", "a.js"),
        ("main.js", "./a", "require", "a.js"),
        ("main.js", "./a", "import", "a.js"),
        ("main.js", "./b", "require", "b.json"),
        ("main.js", "./c", "require", "c.node"),
        ("main.js", "./d", "require", "d.mjs"),
        ("main.js", "./e", "require", "e.cjs"),
        ("main.js", "./f", "require", "f.ts"),
        ("main.js", "./g", "require", "g.tsx"),
        ("main.js", "./h", "require", "h.jsx"),
        ("main.js", "./i", "require", "i.mts"),
        ("main.js", "./j", "require", "j.cts"),
        ("main.js", "./exact", "require", "exact"),
        ("main.js", "./dir", "require", "dir/index.js"),
        ("main.js", "./dir/", "require", "dir/index.js"),
        ("main.js", "./dir/inner", "require", "dir/inner.js"),
        ("main.js", "./both", "require", "both.js"),
        ("main.js", "./both/", "require", "both/index.js"),
        ("main.js", "./lib.js", "require", "lib.js/index.js"),
        ("main.js", "./data", "require", "data/index.json"),
        ("main.js", "./pkg", "require", "pkg/lib/start.js"),
        ("main.js", "./badmain", "require", "badmain/index.js"),
        ("main.js", ".", "require", "missing:."),
        ("dir/inner.js", ".", "require", "dir/index.js"),
        ("dir/inner.js", "./", "require", "dir/index.js"),
        ("dir/inner.js", "..", "require", "missing:.."),
        ("sub/x.js", "../a", "require", "a.js"),
        ("sub/x.js", "./../dir/./../a", "require", "a.js"),
        ("sub/x.js", "../../a", "require", "rejected:../../a"),
        ("sub/x.js", "../../sub/x.js", "require", "rejected:../../sub/x.js"),
        ("main.js", "./none", "require", "missing:./none"),
        ("main.js", "./A.js", "require", "missing:./A.js"),
        ("main.js", "./space name.js", "require", "space name.js"),
        ("main.js", "./space%20name.js", "import", "space name.js"),
        ("main.js", "./space%20name.js", "require", "missing:./space%20name.js"),
        ("main.js", "./per%25cent.js", "import", "per%cent.js"),
        ("main.js", "./per%cent.js", "require", "per%cent.js"),
        ("main.js", "./a.js?v=1#x", "import", "a.js"),
        ("main.js", "./a.js?v=1", "require", "missing:./a.js?v=1"),
        ("main.js", "./odd?.js", "require", "odd?.js"),
        ("main.js", "./dots/..x.js", "require", "dots/..x.js"),
        ("main.js", "./__proto__", "require", "__proto__.js"),
    ],
)
def test_relative(referrer: str, specifier: str, mode: Mode, target: str) -> None:
    files = {path: PACKAGES.get(path, {}) for path in RELATIVE}
    assert told(resolver(files).resolve(specifier, referrer, mode)) == target


@pytest.mark.parametrize(
    ("referrer", "specifier", "target", "rule"),
    [
        ("m.ts", "./x.js", "x.ts", "typescript"),
        ("m.ts", "./y.js", "y.tsx", "typescript"),
        ("m.ts", "./z.mjs", "z.mts", "typescript"),
        ("m.ts", "./w.cjs", "w.cts", "typescript"),
        ("m.ts", "./v.jsx", "v.tsx", "typescript"),
        ("m.ts", "./real.js", "real.js", "exact"),
        ("m.ts", "./x", "x.ts", "extension"),
        ("m.ts", "./types", "types.d.ts", "extension"),
        ("m.ts", "./pair", "pair.ts", "extension"),
        ("m.js", "./pair", "pair.js", "extension"),
        ("m.js", "./x.js", "x.ts", "typescript"),
    ],
)
def test_typescript(referrer: str, specifier: str, target: str, rule: str) -> None:
    files = [
        "x.ts",
        "y.tsx",
        "z.mts",
        "w.cts",
        "v.tsx",
        "real.js",
        "real.ts",
        "types.d.ts",
        "pair.ts",
        "pair.js",
    ]
    found = resolver(files).resolve(specifier, referrer, "import")
    assert (found.target, found.rule, found.standard) == (target, rule, rule == "exact")


@pytest.mark.parametrize(
    ("specifier", "key"),
    [
        ("electron", "external:electron"),
        ("electron/main", "external:electron"),
        ("lodash", "external:lodash"),
        ("lodash/fp", "external:lodash"),
        ("@scope/pkg", "external:@scope/pkg"),
        ("@scope/pkg/deep/x.js", "external:@scope/pkg"),
        ("JSONStream", "external:JSONStream"),
        ("fs", "builtin:fs"),
        ("node:fs", "builtin:fs"),
        ("fs/promises", "builtin:fs/promises"),
        ("node:fs/promises", "builtin:fs/promises"),
        ("node:test", "builtin:test"),
        ("test", "external:test"),
        ("node:nothing", "missing:node:nothing"),
        ("fs/nothing", "external:fs"),
        ("punycode/", "external:punycode"),
        ("http://x.test/a.js?q#f", "external:http://x.test/a.js"),
        ("https://x.test/a.js", "external:https://x.test/a.js"),
        ("bun:sqlite", "external:bun:sqlite"),
        ("virtual:x", "external:virtual:x"),
        ("data:text/javascript,1", "rejected:data:text/javascript,1"),
        ("blob:x", "rejected:blob:x"),
        ("file:///etc/passwd", "rejected:file:///etc/passwd"),
        ("/etc/passwd", "rejected:/etc/passwd"),
        ("//host/x.js", "rejected://host/x.js"),
        ("C:\\x.js", "rejected:C:\\x.js"),
        ("c:/x.js", "rejected:c:/x.js"),
        (".\\a.js", "rejected:.\\a.js"),
        ("./a%2fb", "rejected:./a%2fb"),
        ("./a%5Cb", "rejected:./a%5Cb"),
        ("../out", "rejected:../out"),
        ("", "rejected:"),
        ("./\0", "rejected:./\0"),
        ("\ud800", "rejected:\\ud800"),
        ("#internal", "missing:#internal"),
        ("@/alias", "missing:@/alias"),
        ("~/alias", "missing:~/alias"),
        ("!!raw-loader!./x", "missing:!!raw-loader!./x"),
        ("@scope", "missing:@scope"),
    ],
)
def test_what_the_container_does_not_hold(specifier: str, key: str) -> None:
    found = resolver(["main.js"]).resolve(specifier, "main.js", "require")
    assert (found.status, found.target, found.key) == (key.partition(":")[0], None, key)


def test_long_specifiers_have_short_and_distinct_keys() -> None:
    one = resolver(["main.js"])
    keys = [one.resolve("./" + "x" * 5000 + end, "main.js", "require").key for end in "ab"]
    assert keys[0] != keys[1]
    assert all(key is not None and len(key) < 300 for key in keys)


TREE: dict[str, Any] = {
    "package.json": {
        "name": "self", "exports": {".": "./main.js", "./a": "./lib/a.js"},
        "imports": {"#a": "./lib/a.js", "#dep": "dep", "#gone": "gone-pkg", "#fs": "node:fs", "#p/*": "./lib/*.js"},
    },
    "main.js": {}, "lib/a.js": {}, "lib/deep/b.js": {},
    "node_modules/dep/package.json": {"main": "start"}, "node_modules/dep/start.js": {}, "node_modules/dep/x.js": {},
    "node_modules/dep/sub/index.js": {},
    "node_modules/single.js": {},
    "node_modules/bare/index.js": {},
    "node_modules/@s/p/package.json": {"exports": "./only.js"}, "node_modules/@s/p/only.js": {},
    "node_modules/@s/p/hidden.js": {},
    "node_modules/dep/node_modules/nested/index.js": {},
    "node_modules/electron/package.json": {"main": "index.js"}, "node_modules/electron/index.js": {},
    "node_modules/punycode/package.json": {"main": "p.js"}, "node_modules/punycode/p.js": {},
    "lib/node_modules/near/index.js": {},
    "lib/package.json": {},
}  # fmt: skip


@pytest.mark.parametrize(
    ("referrer", "specifier", "mode", "target"),
    [
        ("main.js", "dep", "require", "node_modules/dep/start.js"),
        ("main.js", "dep", "import", "node_modules/dep/start.js"),
        ("main.js", "dep/x", "require", "node_modules/dep/x.js"),
        ("main.js", "dep/x.js", "import", "node_modules/dep/x.js"),
        ("main.js", "dep/sub", "require", "node_modules/dep/sub/index.js"),
        ("main.js", "dep/none", "require", "missing:dep/none"),
        ("main.js", "dep/../bare", "require", "node_modules/bare/index.js"),
        ("main.js", "dep/../../../x", "require", "rejected:dep/../../../x"),
        ("main.js", "single", "require", "node_modules/single.js"),
        ("main.js", "bare", "import", "node_modules/bare/index.js"),
        ("lib/deep/b.js", "bare", "require", "node_modules/bare/index.js"),
        ("lib/deep/b.js", "near", "require", "lib/node_modules/near/index.js"),
        ("main.js", "near", "require", "external:near"),
        ("main.js", "@s/p", "require", "node_modules/@s/p/only.js"),
        ("main.js", "@s/p/hidden.js", "require", "missing:@s/p/hidden.js"),
        ("main.js", "@s/other", "require", "external:@s/other"),
        ("node_modules/dep/x.js", "nested", "require", "node_modules/dep/node_modules/nested/index.js"),
        ("node_modules/dep/x.js", "bare", "require", "node_modules/bare/index.js"),
        ("main.js", "nested", "require", "external:nested"),
        ("main.js", "electron", "require", "external:electron"),
        ("main.js", "punycode/", "require", "node_modules/punycode/p.js"),
        ("main.js", "punycode", "require", "builtin:punycode"),
        ("main.js", "self", "require", "main.js"),
        ("main.js", "self/a", "import", "lib/a.js"),
        ("main.js", "self/b", "import", "missing:self/b"),
        # lib/package.json ends the package that a file of lib belongs to.
        ("lib/a.js", "self", "require", "external:self"),
        ("lib/a.js", "#a", "require", "missing:#a"),
        ("main.js", "#a", "require", "lib/a.js"),
        ("main.js", "#dep", "import", "node_modules/dep/start.js"),
        ("main.js", "#gone", "import", "external:gone-pkg"),
        ("main.js", "#fs", "import", "builtin:fs"),
        ("main.js", "#p/a", "import", "lib/a.js"),
        ("main.js", "#p/deep/b", "import", "lib/deep/b.js"),
        ("main.js", "#p/none", "import", "missing:#p/none"),
        ("main.js", "#none", "import", "missing:#none"),
        ("main.js", "#", "import", "missing:#"),
    ],
)
def test_packages(referrer: str, specifier: str, mode: Mode, target: str) -> None:
    assert told(resolver(TREE).resolve(specifier, referrer, mode)) == target


EXPORTS: list[tuple[Any, str, str | None, str | None]] = [
    # exports, subpath, target of import, target of require
    ("./a.js", ".", "a.js", "a.js"),
    ("./a.js", "./a.js", None, None),
    ({"import": "./m.mjs", "require": "./a.js"}, ".", "m.mjs", "a.js"),
    ({"require": "./a.js", "default": "./m.mjs"}, ".", "m.mjs", "a.js"),
    ({"default": "./m.mjs", "require": "./a.js"}, ".", "m.mjs", "m.mjs"),
    ({"browser": "./b.js", "node": "./a.js"}, ".", "a.js", "a.js"),
    ({"browser": "./b.js"}, ".", None, None),
    ({".": {"node": {"import": "./m.mjs"}, "default": "./a.js"}}, ".", "m.mjs", "a.js"),
    ({".": {"node": {"require": None}, "default": "./a.js"}}, ".", "a.js", None),
    ({".": ["./a.js", "./b.js"]}, ".", "a.js", "a.js"),
    ({".": ["a.js", {"browser": "./b.js"}, "./a.js"]}, ".", "a.js", "a.js"),
    ({".": ["./none.js", "./a.js"]}, ".", None, None),
    ({".": []}, ".", None, None),
    ({".": None}, ".", None, None),
    ({".": 1}, ".", None, None),
    ({".": "./a.js", "import": "./m.mjs"}, ".", None, None),
    ({"./x": "./a.js"}, "./x", "a.js", "a.js"),
    ({"./x": "./a.js"}, ".", None, None),
    ({"./*": "./lib/*.js"}, "./a", "lib/a.js", "lib/a.js"),
    ({"./*": "./lib/*.js"}, "./deep/b", "lib/deep/b.js", "lib/deep/b.js"),
    ({"./*": "./lib/*.js", "./deep/*": None}, "./deep/b", None, None),
    ({"./*.js": "./lib/*.js", "./*": "./lib/*.js"}, "./a.js", "lib/a.js", "lib/a.js"),
    ({"./f/*": "./lib/*/*.js"}, "./f/a", "lib/a/a.js", "lib/a/a.js"),
    ({"./lib/": "./lib/"}, "./lib/a.js", None, None),
    ({"./*": "./*"}, "./../secret", None, None),
    ({"./*": "./*"}, "./node_modules/x", None, None),
    ({"./x": "../secret.js"}, "./x", None, None),
    ({"./x": "./../secret.js"}, "./x", None, None),
    ({"./x": "/etc/passwd"}, "./x", None, None),
    ({"./x": "dep"}, "./x", None, None),
    ({"./x": "./node_modules/x.js"}, "./x", None, None),
    ({"./x": "./lib/%2e%2e/a.js"}, "./x", None, None),
    ({"./x": "./lib%2fa.js"}, "./x", None, None),
    ({"./x": "./a"}, "./x", None, None),
]


@pytest.mark.parametrize(("exports", "subpath", "imported", "required"), EXPORTS)
def test_exports(exports: Any, subpath: str, imported: str | None, required: str | None) -> None:
    home = "node_modules/p/"
    names = [
        "a.js",
        "b.js",
        "m.mjs",
        "lib/a.js",
        "lib/a/a.js",
        "lib/deep/b.js",
        "node_modules/x.js",
        "node_modules/x",
    ]
    files: dict[str, Any] = {home + name: {} for name in names}
    files |= {home + "package.json": {"exports": exports}, "main.js": {}, "node_modules/secret.js": {}}
    one = resolver(files)
    specifier = "p" + subpath[1:]
    modes: tuple[tuple[Mode, str | None], ...] = (("import", imported), ("require", required))
    for mode, target in modes:
        expected = f"missing:{specifier}" if target is None else home + target
        assert told(one.resolve(specifier, "main.js", mode)) == expected


def test_targets_nested_without_end_are_refused() -> None:
    exports: Any = "./a.js"
    for _ in range(500):
        exports = {"node": [exports]}
    files = {"node_modules/p/package.json": {"exports": exports}, "node_modules/p/a.js": {}}
    assert resolver(files).resolve("p", "main.js", "import").status == "missing"


@pytest.mark.parametrize(
    "main", [1, None, [], {}, "", "../../main.js", "../../../../etc/passwd", "/etc/passwd", "\0"]
)
def test_a_main_that_is_none_falls_back_to_the_index(main: Any) -> None:
    files = {"node_modules/p/package.json": {"main": main}, "node_modules/p/index.js": {}, "etc/passwd": {}}
    assert resolver(files).resolve("p", "main.js", "require").target == "node_modules/p/index.js"


def test_links_are_followed_to_the_real_file() -> None:
    one = resolver(
        ["packages/b/index.js", "packages/b/x.js", "node_modules/c/index.js", "main.js"],
        {"node_modules/b": "packages/b", "alias.js": "main.js", "out": "../../etc", "loop": "loop"},
    )
    assert one.resolve("b", "main.js", "require").target == "packages/b/index.js"
    assert one.resolve("b/x", "main.js", "require").target == "packages/b/x.js"
    assert one.resolve("./alias", "main.js", "require").target == "main.js"
    # From the real place, as Node.js does, so that packages are found from there.
    assert one.resolve("c", "packages/b/index.js", "require").target == "node_modules/c/index.js"
    assert one.resolve("./out/passwd", "main.js", "require").status == "missing"
    assert one.resolve("./loop", "main.js", "require").status == "missing"


@pytest.mark.parametrize(
    ("specifier", "told_as"),
    [
        ("x.png", "img/x.png"),
        ("./x.png", "img/x.png"),
        ("../main.js", "main.js"),
        ("x.png?a#b", "img/x.png"),
        ("fs", "missing:./fs"),
        ("none.png", "missing:./none.png"),
        ("https://x.test/x.png", "external:https://x.test/x.png"),
        ("/x.png", "rejected:/x.png"),
    ],
)
def test_urls_are_relative_to_the_file(specifier: str, told_as: str) -> None:
    one = resolver(["img/m.js", "img/x.png", "main.js"])
    assert told(one.resolve(specifier, "img/m.js", "import", url=True)) == told_as


def test_json_of_prototype_names_is_data() -> None:
    package = json.loads('{"__proto__": {"exports": "./evil.js"}, "main": "a.js"}')
    one = resolver(
        {"node_modules/p/package.json": package, "node_modules/p/a.js": {}, "node_modules/p/evil.js": {}}
    )
    assert one.resolve("p", "main.js", "require").target == "node_modules/p/a.js"
