"""What is refused before running, each with its place, and what must never be refused."""

from __future__ import annotations

import pytest

from affidavit.runtime.engines.monty import unsupported
from tests.conformance.world import TREE

_REFUSED: list[tuple[str, str]] = [
    # monty does not parse it
    ("inheritance", "class A(Exception):\n    pass"),
    ("inheritance", "from typing import Generic\nclass A(metaclass=int):\n    pass"),
    ("method decorator", "class A:\n    @property\n    def x(self):\n        return 1"),
    ("class body", "class A:\n    for n in range(3):\n        pass"),
    ("class decorator", "def d(c):\n    return c\n@d\nclass A:\n    pass"),
    ("dataclass option", "from dataclasses import dataclass\n@dataclass(order=True)\nclass A:\n    x: int"),
    ("del", "x = [1]\ndel x[0]"),
    ("yield", "def f():\n    yield 1"),
    ("yield", "def f():\n    yield from [1]"),
    ("async with", "class A:\n    pass\nasync with A() as a:\n    pass"),
    ("except*", "try:\n    pass\nexcept* ValueError:\n    pass"),
    ("async comprehension", "[p async for p in df.db.app.modules.pages()]"),
    ("async for", "d = {}\nasync for d['k'] in df.db.app.modules.pages():\n    pass"),
    # names, modules, methods that are not there
    ("import", "import statistics"),
    ("import", "from collections import OrderedDict"),
    ("import", "from . import x"),
    ("import", "import os.path, heapq"),
    ("module attribute", "import asyncio\nasyncio.create_task"),
    ("module attribute", "import sys\nsys.version"),
    ("module attribute", "import math\nmath.gamma(2.5)"),
    ("builtin", "callable(len)"),
    ("builtin", "hash('a')"),
    ("builtin", "eval('1')"),
    ("builtin", "x = type\nx(1)"),
    ("attribute", "(5).bit_length()"),
    ("attribute", "page = await df.db.app.modules.page()\npage.labels = ['a']"),
    ("attribute", "class A:\n    pass\npage = await df.db.app.modules.page()\npage.labels = ['a']"),
    ("method of a type", "sorted(['b'], key=str.lower)"),
    ("method as a value", "found = []\nadd = found.append"),
    ("method as a value", "votes = {}\nmax(votes, key=votes.get)"),
    ("special attribute", "def f():\n    pass\nf.__name__"),
    ("reserved name", "_affidavit_x = 1"),
    ("hasattr", "hasattr([], 'append')"),
    ("getattr", "getattr('', 'upper', None)"),
    ("hasattr", "name = 'x'\nhasattr([], name)"),
    ("codec", "b'x'.decode('latin-1')"),
    ("exception argument", "raise ValueError('a', 1)"),
    ("exception argument", "key = 7\nraise KeyError(key)"),
    ("exception attribute", "import json\ntry:\n    json.loads('{')\nexcept ValueError as e:\n    e.pos"),
    ("SystemExit", "try:\n    pass\nexcept SystemExit:\n    pass"),
    ("df.Error", "raise df.Error('x')"),
    ("gather option", "import asyncio\nawait asyncio.gather(return_exceptions=True)"),
    ("json option", "import json\njson.dumps({}, default=str)"),
    ("match option", "import re\nre.match('(a)', 'a').groups('x')"),
    ("operation as a value", "list(map(df.tool.math.ten, [1]))"),
    # silently different
    ("special method", "class A:\n    def __bool__(self):\n        return False"),
    ("special method", "class A:\n    def __lt__(self, other):\n        return True"),
    ("iteration by index", "class A:\n    def __getitem__(self, n):\n        return n"),
    ("keyword order", "def f(**k):\n    return list(k)\nf(**{'a': 1}, b=2)"),
    ("equal keys", "{1: 'a', True: 'b'}"),
    ("complex", "(1 + 2j) * 1"),
    ("surrogate", "'\\ud800'"),
    ("identity", "a = 1000\nb = 1000\na is b"),
    ("type identity", "type({}) is dict"),
    (
        "type of an exception",
        "try:\n    1 / 0\nexcept Exception as e:\n    same = type(e) is ZeroDivisionError",
    ),
    ("repr of an exception", "try:\n    1 / 0\nexcept Exception as e:\n    repr(e)"),
    ("repr of an exception", "try:\n    1 / 0\nexcept Exception as e:\n    f'{e!r}'"),
    ("random", "import random\nrandom.Random()"),
    ("random", "import random\nrandom.seed()"),
    ("gather", "import asyncio\nlater = asyncio.gather()\nawait later"),
    ("empty search", "'abc'.find('', 5)"),
    ("eager iteration", "g = (n for n in [1])\nlist(g)"),
    ("eager iteration", "next(n for n in [1])"),
    ("eager iteration", "m = map(str, [1])"),
    ("eager iteration", "seen = []\ndef f(n):\n    seen.append(n)\n    return n\nany(f(n) for n in [1, 2])"),
    ("eager iteration", "def f(n):\n    print(n)\n    return n\nfor n in map(f, [1, 2]):\n    print(n)"),
    ("eager iteration", "zip([1], [2]) == [(1, 2)]"),
    ("eager iteration", "from collections import Counter\nc = Counter('a').elements()"),
    ("endless iterator", "import itertools\nlist(map(str, itertools.count()))"),
    ("loop over a changing list", "xs = [1]\nfor n, x in enumerate(xs):\n    xs.append(x)"),
    ("set order", "list({3, 1})"),
    ("set order", "names = set('ba')\nfor name in names:\n    print(name)"),
    ("set order", "a = {1}\nb = a | {2}\n[n for n in b]"),
    ("set order", "','.join({'a', 'b'})"),
    ("set order", "s = {1, 2}\ns.pop()"),
    ("set order", "s = {1, 2}\nprint(s)"),
    ("set order", "s = {1, 2}\nf'{s}'"),
    (
        "set order",
        "from collections import defaultdict\ng = defaultdict(set)\nfor n in g['k']:\n    print(n)",
    ),
    ("set order", "def f():\n    return {1, 2}\nlist(f())"),
    ("set order", "def f(found):\n    return list(found)\nf({1, 2})"),
    ("set order", "groups = {'a': {1}}\nfor key, group in groups.items():\n    print(list(group))"),
    ("regular expression", "import re\nre.findall('a*', 'baa')"),
    ("regular expression", "import re\npattern = input_text\nre.search(pattern, 'x')"),
    ("regular expression", "import re\nre.search(r'\\<a', 'a')"),
    ("regular expression", "import re\nre.search('[[a]', 'a')"),
    ("regular expression", "import re\nre.search('(a*)*', 'a')"),
    ("regular expression flag", "import re\nre.compile('a', re.X)"),
    ("regular expression flag", "import re\nflags = re.I"),
    ("replacement", "import re\nre.sub('a', lambda m: 'b', 'a')"),
    ("replacement", "import re\nre.sub('a', '\\\\n', 'a')"),
    ("compiled pattern", "import re\nre.compile('\\\\w').pattern"),
]


@pytest.mark.parametrize(("construct", "source"), _REFUSED, ids=[source for _, source in _REFUSED])
def test_it_is_refused_with_construct_and_place(construct: str, source: str) -> None:
    found = unsupported("x0 = 1\n" + source, TREE)
    assert construct in {finding.construct for finding in found}
    lines = source.count("\n") + 2
    assert all(2 <= finding.line <= lines and finding.column >= 0 and finding.message for finding in found)


_ACCEPTED = [
    "x = 1",
    "class A(object):\n    def __init__(self):\n        self.count = 1\nA().count",
    "class A:\n    def __repr__(self):\n        return 'a'\n    def __eq__(self, other):\n        return True",
    "page = await df.db.app.modules.page()\npage.rows, page.page.next_cursor",
    "async for page in df.db.app.modules.pages(where={'a': 1}):\n    print(page.rows)",
    "async for a, b in df.db.app.modules.pages():\n    pass",
    "collection = df.db.app.modules\nawait collection.get('a')",
    "get = df.db.app.modules.get\nawait get('a')",
    "try:\n    await df.tool.math.ten(1)\nexcept df.Error as error:\n    print(error.code, error.message, str(error))",
    "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    f'{type(e).__name__}: {e}'",
    "raise ValueError(f'no {1}')",
    "raise ValueError('no ' + str(1))",
    "raise SystemExit(2)",
    "import sys\nsys.exit('bye')\nprint('x', file=sys.stderr)",
    "import asyncio\nawait asyncio.gather(*[df.tool.math.ten(n) for n in range(3)])",
    "import asyncio\nasync def main():\n    return 1\nasyncio.run(main())",
    "sum(n for n in range(3)) + max(n * n for n in [1, 2])",
    "','.join(str(n) for n in [1])",
    "any(n > 1 for n in [1, 2])",
    "for n, x in enumerate([1, 2]):\n    print(n, x)",
    "for a, b in zip([1], [2]):\n    print(a + b)",
    "dict(zip('ab', [1, 2]))",
    "sorted({3, 1}), len({1}), 1 in {1}, sum({1, 2}), {n for n in {1}}",
    "seen = set()\nfor n in [1, 1]:\n    if n not in seen:\n        seen.add(n)\nsorted(seen)",
    "names = {'a'} | {'b'}\n[n for n in sorted(names)]",
    "import re\nre.findall(r'\\b[a-z]+\\d*\\b', 'abc 12'), re.sub(r'(a)(b)', r'\\2\\1', 'ab', flags=re.I | re.M)",
    "import re\nword = re.compile('[a-z]+')\nword.findall('a b')",
    "import json\njson.dumps({'a': 1}, indent=2, sort_keys=True)",
    "from datetime import datetime, timezone\ndatetime.now(timezone.utc).isoformat()",
    "import os.path\nfrom os.path import join\nos.path.basename('/a'), join('a', 'b')",
    "x = None\nx is None, x is not None, type(x) is int",
    "def main():\n    return 1",
    "rows = [{'title': 1}]\nrows.sort(key=lambda row: row['title'])",
    "b'x'.decode(), 'x'.encode('utf-8')",
    "a = {'x': 1}\nb = {**a, 'y': 2}",
    "open('/etc/hostname')",
    "not python at all (",
    "",
]


@pytest.mark.parametrize("source", _ACCEPTED)
def test_it_is_not_refused(source: str) -> None:
    assert unsupported(source, TREE) == []


def test_deep_nesting_is_refused_and_not_a_crash() -> None:
    deep = "x = " + "+".join(["1"] * 900)
    assert [finding.construct for finding in unsupported(deep, TREE)] == ["nesting"]


def test_findings_stand_in_the_order_of_the_script() -> None:
    source = "import heapq\nx = [1]\ndel x[0]\nhash('a')\n"
    assert [finding.line for finding in unsupported(source, TREE)] == [1, 3, 4]


def test_names_that_the_script_binds_itself_mean_what_it_says() -> None:
    source = "def hash(x):\n    return 1\ndef property(x):\n    return x\nvars = 5\nhash(property(vars))"
    assert unsupported(source, TREE) == []
