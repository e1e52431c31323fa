"""What builtins and the standard library give back of what they are given.

Only functions through which rows travel are told apart. The rest either keeps nothing (`json.dumps`, `math.sqrt`), or
is not known: then what it gets may hold anything afterwards.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from affidavit.runtime.typecheck.flow.calls import Arguments
from affidavit.runtime.typecheck.flow.expressions import attribute_of
from affidavit.runtime.typecheck.flow.shapes import (
    NOTHING,
    PLAINS,
    UNKNOWNS,
    Bound,
    Cell,
    Class,
    Function,
    Getter,
    Instance,
    Late,
    Library,
    Map,
    Partial,
    Record,
    Seq,
    Values,
    joined,
)

if TYPE_CHECKING:
    from affidavit.runtime.typecheck.flow.analysis import Analysis

__all__ = ["BUILTINS", "library"]

Handler = Callable[["Analysis", Arguments], Values]

_PURE: Final = frozenset({
    "json", "re", "math", "cmath", "statistics", "datetime", "string", "textwrap", "hashlib", "hmac", "base64", "time",
    "decimal", "fractions", "pprint", "html", "urllib", "os", "posixpath", "pathlib", "uuid", "unicodedata", "difflib",
    "fnmatch", "calendar", "zlib", "binascii", "struct", "secrets", "logging", "warnings", "sys", "locale", "numbers",
    "traceback", "platform", "zoneinfo", "colorsys", "keyword",
})  # fmt: skip
"""Modules that give new values and keep nothing of what they get."""

_GIVES_PLAIN: Final = frozenset({
    "len", "print", "any", "all", "abs", "round", "str", "int", "float", "bool", "bytes", "repr", "format", "ord",
    "chr", "hex", "bin", "oct", "ascii", "hash", "id", "isinstance", "issubclass", "callable", "pow", "divmod",
    "hasattr", "complex",
})  # fmt: skip


_CALLED: Final = (Function, Bound, Partial, Class, Instance)
"""What even such a module may call back."""


def library(analysis: Analysis, path: str, given: Arguments) -> Values:
    """What calling a function of this dotted name gives."""
    handler = _HANDLERS.get(path.removeprefix("builtins."))
    if handler is not None and not (given.is_open and path != "builtins.dict"):
        return handler(analysis, given)
    module, _, name = path.partition(".")
    if module == "builtins" and name in _GIVES_PLAIN:
        return UNKNOWNS if any(isinstance(one, Instance) for one in joined(given.everything())) else PLAINS
    if module in _PURE:
        analysis.escape(frozenset(one for one in joined(given.everything()) if isinstance(one, _CALLED)))
        return PLAINS if path in {"json.dumps", "re.escape", "time.time"} or module == "math" else UNKNOWNS
    for values in given.everything():
        analysis.escape(values)
    return UNKNOWNS


def _type(_: Analysis, given: Arguments) -> Values:
    if len(given.positional) != 1 or given.named:
        return UNKNOWNS
    return joined([frozenset({one.of}) if isinstance(one, Instance) else UNKNOWNS for one in given.at(0)])


def _inner(given: Arguments, *values: Values) -> Arguments:
    return Arguments(call=given.call, positional=values)


def _listed(analysis: Analysis, given: Arguments, values: Values, what: str = "listed") -> Values:
    seq = analysis.made((given.call, what), Seq)
    analysis.put(seq.element, values)
    return frozenset({seq})


def _paired(analysis: Analysis, given: Arguments, parts: list[Values]) -> Values:
    """A sequence of tuples with these parts."""
    pair = analysis.made((given.call, "tuple", len(parts)), lambda: Seq(items=tuple(Cell() for _ in parts)))
    for cell, values in zip(pair.items, parts, strict=True):
        analysis.put(cell, values)
    return _listed(analysis, given, frozenset({pair}), "tuples")


def _late(analysis: Analysis, given: Arguments, values: Values) -> Values:
    late = analysis.made((given.call, "late"), Late)
    analysis.put(late.result, values)
    return frozenset({late})


def _all(analysis: Analysis, given: Arguments) -> Values:
    """The elements of every iterable that is given."""
    return joined([analysis.elements(values) for values in _plain(given)])


def _plain(given: Arguments) -> list[Values]:
    return [*given.positional, *([given.spread] if given.spread is not None else [])]


def _list(analysis: Analysis, given: Arguments) -> Values:
    return _listed(analysis, given, _all(analysis, given))


def _sorted(analysis: Analysis, given: Arguments) -> Values:
    elements = analysis.elements(given.at(0, "iterable"))
    analysis.called(given.named.get("key", NOTHING), _inner(given, elements))
    return _listed(analysis, given, elements)


def _extreme(analysis: Analysis, given: Arguments) -> Values:
    one = len(given.positional) == 1 and given.spread is None
    values = analysis.elements(given.positional[0]) if one else joined(_plain(given))
    analysis.called(given.named.get("key", NOTHING), _inner(given, values))
    return values | given.named.get("default", NOTHING)


def _sum(analysis: Analysis, given: Arguments) -> Values:
    elements = analysis.elements(given.at(0))
    start = given.at(1, "start")
    if elements <= PLAINS and start <= PLAINS:
        return PLAINS
    sequences = [shape for shape in elements | start if isinstance(shape, Seq)]
    if len(sequences) != len(elements | start):
        return UNKNOWNS
    inside = joined([one.inside() for one in sequences])
    return _listed(analysis, given, inside)


def _enumerate(analysis: Analysis, given: Arguments) -> Values:
    return _paired(analysis, given, [PLAINS, analysis.elements(given.at(0, "iterable"))])


def _zip(analysis: Analysis, given: Arguments) -> Values:
    if given.spread is not None:
        return _listed(analysis, given, _listed(analysis, given, _all(analysis, given), "each"))
    extra = given.named.get("fillvalue", PLAINS)
    return _paired(analysis, given, [analysis.elements(values) | extra for values in given.positional])


def _zip_strict(analysis: Analysis, given: Arguments) -> Values:
    if given.spread is not None:
        return _zip(analysis, given)
    return _paired(analysis, given, [analysis.elements(values) for values in given.positional])


def _map(analysis: Analysis, given: Arguments) -> Values:
    parts = [analysis.elements(values) for values in given.positional[1:]]
    inner = Arguments(
        call=given.call,
        positional=tuple(parts),
        spread=analysis.elements(given.spread) if given.spread is not None else None,
    )
    return _listed(analysis, given, analysis.called(given.at(0), inner))


def _starmap(analysis: Analysis, given: Arguments) -> Values:
    inner = Arguments(call=given.call, spread=analysis.elements(analysis.elements(given.at(1))))
    return _listed(analysis, given, analysis.called(given.at(0), inner))


def _filter(analysis: Analysis, given: Arguments) -> Values:
    elements = analysis.elements(given.at(1))
    analysis.called(given.at(0) - PLAINS, _inner(given, elements))
    return _listed(analysis, given, elements)


def _next(analysis: Analysis, given: Arguments) -> Values:
    return analysis.elements(given.at(0)) | given.at(1)


def _dict(analysis: Analysis, given: Arguments) -> Values:
    names = frozenset(given.named)
    if given.positional and not given.at(0):
        return NOTHING  # what is copied is not known yet
    records = {shape for shape in given.at(0) if isinstance(shape, Record)}
    if records:
        if given.is_open or len(records) < len(given.at(0)):
            return UNKNOWNS
        for values in given.named.values():
            analysis.escape(values)
        return frozenset(Record(rows=one.rows, extras=one.extras | names) for one in records)
    made = analysis.made((given.call, "dict"), Map)
    for shape in given.at(0):
        analysis.merge(made, shape)
    for name, values in given.named.items():
        analysis.put(made.fields.setdefault(name, Cell()), values)
        analysis.put(made.keys, PLAINS)
    if given.is_open or given.spread is not None:
        analysis.put(made.rest, UNKNOWNS)
        analysis.put(made.keys, UNKNOWNS)
    return frozenset({made})


def _defaultdict(analysis: Analysis, given: Arguments) -> Values:
    made = analysis.made((given.call, "dict"), Map)
    factory = given.at(0, "default_factory")
    analysis.put(made.rest, analysis.called(factory, Arguments(call=(given.call))))
    analysis.put(made.keys, PLAINS)
    for shape in given.at(1):
        analysis.merge(made, shape)
    for name, values in given.named.items():
        analysis.put(made.fields.setdefault(name, Cell()), values)
    return frozenset({made})


def _counter(analysis: Analysis, given: Arguments) -> Values:
    made = analysis.made((given.call, "dict"), Map)
    analysis.put(made.keys, analysis.elements(given.at(0)))
    analysis.put(made.rest, PLAINS)
    return frozenset({made})


def _getattr(analysis: Analysis, given: Arguments) -> Values:
    name = given.call.args[1] if isinstance(given.call, ast.Call) and len(given.call.args) > 1 else None
    if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
        analysis.escape(given.at(0))
        return UNKNOWNS
    found = [attribute_of(analysis, owner, name.value) for owner in given.at(0)]
    return joined(found) | given.at(2)


def _super(analysis: Analysis, given: Arguments) -> Values:
    for around in analysis.script.ancestors(given.call):
        if isinstance(around, ast.ClassDef):
            instance = analysis.define_class(around).instance
            return frozenset({instance}) if isinstance(instance, Instance) else UNKNOWNS
    return UNKNOWNS


def _gather(analysis: Analysis, given: Arguments) -> Values:
    failed = PLAINS if "return_exceptions" in given.named else NOTHING
    if given.spread is None and 0 < len(given.positional) <= 8:
        count = len(given.positional)
        seq = analysis.made((given.call, count), lambda: Seq(items=tuple(Cell() for _ in range(count))))
        for cell, values in zip(seq.items, given.positional, strict=True):
            analysis.put(cell, analysis.awaited(values) | failed)
    else:
        seq = analysis.made((given.call, "all"), Seq)
        for values in _plain(given):
            analysis.put(seq.element, analysis.awaited(values) | failed)
    return _late(analysis, given, frozenset({seq}))


def _same(_: Analysis, given: Arguments) -> Values:
    return given.at(0)


def _second(_: Analysis, given: Arguments) -> Values:
    return given.at(1)


def _wait_for(analysis: Analysis, given: Arguments) -> Values:
    return _late(analysis, given, analysis.awaited(given.at(0)))


def _wait(analysis: Analysis, given: Arguments) -> Values:
    seq = analysis.made((given.call, "wait"), lambda: Seq(items=(Cell(), Cell())))
    for cell in seq.items:
        analysis.put(cell, _listed(analysis, given, analysis.elements(given.at(0)), "tasks"))
    return _late(analysis, given, frozenset({seq}))


def _as_completed(analysis: Analysis, given: Arguments) -> Values:
    return _listed(analysis, given, analysis.elements(given.at(0)))


def _run(analysis: Analysis, given: Arguments) -> Values:
    return analysis.awaited(given.at(0))


def _to_thread(analysis: Analysis, given: Arguments) -> Values:
    inner = Arguments(
        call=given.call, positional=given.positional[1:], named=given.named, spread=given.spread
    )
    return _late(analysis, given, analysis.called(given.at(0), inner))


def _empty(analysis: Analysis, given: Arguments) -> Values:
    return frozenset({analysis.made((given.call, "queue"), Seq)})


def _object(name: str) -> Handler:
    return lambda _, __: frozenset({Library(name)})


def _groupby(analysis: Analysis, given: Arguments) -> Values:
    elements = analysis.elements(given.at(0, "iterable"))
    key = given.at(1, "key") - PLAINS
    keys = analysis.called(key, _inner(given, elements)) if key else elements
    return _paired(analysis, given, [keys, _listed(analysis, given, elements, "group")])


def _chained(analysis: Analysis, given: Arguments) -> Values:
    return _listed(analysis, given, analysis.elements(analysis.elements(given.at(0))))


def _tuples(analysis: Analysis, given: Arguments) -> Values:
    """`product`, `combinations`, `batched`, `pairwise`: tuples of the elements."""
    elements = joined([analysis.elements(one) for one in _plain(given) if one - PLAINS])
    return _listed(analysis, given, _listed(analysis, given, elements, "each"))


def _firsts(analysis: Analysis, given: Arguments) -> Values:
    return _listed(analysis, given, analysis.elements(given.at(0)))


def _reduce(analysis: Analysis, given: Arguments) -> Values:
    elements = analysis.elements(given.at(1))
    kept = analysis.made((given.call, "kept"), Cell)
    analysis.put(kept, given.at(2) if len(given.positional) > 2 else elements)
    inner = _inner(given, frozenset(kept.shapes), elements)
    analysis.put(kept, analysis.called(given.at(0), inner))
    return frozenset(kept.shapes)


def _partial(analysis: Analysis, given: Arguments) -> Values:
    if given.spread is not None or given.is_open:
        for values in given.everything():
            analysis.escape(values)
        return UNKNOWNS
    made = analysis.made(
        (given.call, "partial"),
        lambda: Partial(function=given.at(0), given=given.positional[1:], named=dict(given.named)),
    )
    made.function, made.given, made.named = given.at(0), given.positional[1:], dict(given.named)
    return frozenset({made})


def _wraps(_: Analysis, __: Arguments) -> Values:
    return frozenset({Library("typing.identity")})


def _lru_cache(_: Analysis, given: Arguments) -> Values:
    """`lru_cache(function)`, or with a size `lru_cache(32)(function)`."""
    return given.at(0) - PLAINS or frozenset({Library("typing.identity")})


def _itemgetter(analysis: Analysis, given: Arguments) -> Values:
    keys = given.call.args if isinstance(given.call, ast.Call) else []
    constants = tuple(one for one in keys if isinstance(one, ast.Constant))
    if not keys or len(constants) != len(keys):
        return UNKNOWNS
    pair = Seq(items=tuple(Cell() for _ in keys))
    return frozenset({analysis.made((given.call, "getter"), lambda: Getter(keys=constants, pair=pair))})


def _ranked(analysis: Analysis, given: Arguments) -> Values:
    elements = analysis.elements(given.at(1, "iterable"))
    analysis.called(given.at(2, "key"), _inner(given, elements))
    return _listed(analysis, given, elements)


def _rearranged(analysis: Analysis, given: Arguments) -> Values:
    """What adds to a list or reorders it: nothing is known by position any more."""
    for shape in given.at(0):
        if isinstance(shape, Seq):
            analysis.put(shape.element, shape.inside() | given.at(1))
    return PLAINS


def _choice(analysis: Analysis, given: Arguments) -> Values:
    return analysis.elements(given.at(0))


def _nothing(_: Analysis, __: Arguments) -> Values:
    return PLAINS


def _numbers(analysis: Analysis, given: Arguments) -> Values:
    return _listed(analysis, given, PLAINS)


def _attributes(analysis: Analysis, given: Arguments) -> Values:
    for values in given.everything():
        analysis.escape(values)
    return UNKNOWNS


_HANDLERS: Final[Mapping[str, Handler]] = {
    **dict.fromkeys(("list", "tuple", "set", "frozenset", "iter", "reversed", "aiter", "collections.deque"), _firsts),
    "sorted": _sorted,
    **dict.fromkeys(("min", "max"), _extreme),
    "sum": _sum,
    "enumerate": _enumerate,
    "zip": _zip_strict,
    "itertools.zip_longest": _zip,
    "map": _map,
    "filter": _filter,
    "next": _next,
    "dict": _dict,
    "collections.OrderedDict": _dict,
    "range": _numbers,
    "getattr": _getattr,
    "setattr": _attributes,
    "super": _super,
    "type": _type,
    "collections.defaultdict": _defaultdict,
    "collections.Counter": _counter,
    "asyncio.gather": _gather,
    **dict.fromkeys(
        ("asyncio.create_task", "asyncio.ensure_future", "asyncio.shield", "asyncio.TaskGroup().create_task"), _same
    ),
    "asyncio.TaskGroup": _object("asyncio.TaskGroup()"),
    "asyncio.wait_for": _wait_for,
    "asyncio.wait": _wait,
    "asyncio.as_completed": _as_completed,
    "asyncio.run": _run,
    "asyncio.to_thread": _to_thread,
    **dict.fromkeys(("asyncio.Queue", "asyncio.LifoQueue", "asyncio.PriorityQueue", "queue.Queue"), _empty),
    **dict.fromkeys(
        ("asyncio.sleep", "asyncio.Semaphore", "asyncio.Lock", "asyncio.timeout", "asyncio.Event"), _nothing
    ),
    "itertools.chain": _list,
    "itertools.chain.from_iterable": _chained,
    **dict.fromkeys(("itertools.islice", "itertools.cycle"), _firsts),
    **dict.fromkeys(
        ("itertools.product", "itertools.combinations", "itertools.permutations", "itertools.batched",
         "itertools.pairwise", "itertools.tee"), _tuples
    ),
    **dict.fromkeys(("itertools.takewhile", "itertools.dropwhile", "itertools.filterfalse"), _filter),
    "itertools.groupby": _groupby,
    "itertools.starmap": _starmap,
    "itertools.count": _numbers,
    "functools.reduce": _reduce,
    "functools.partial": _partial,
    "functools.wraps": _wraps,
    "functools.lru_cache": _lru_cache,
    "typing.identity": _same,
    "functools.cache": _same,
    "operator.itemgetter": _itemgetter,
    **dict.fromkeys(("heapq.nlargest", "heapq.nsmallest"), _ranked),
    "heapq.heappush": _rearranged,
    "heapq.heapify": _rearranged,
    "heapq.heappop": _choice,
    "random.choice": _choice,
    **dict.fromkeys(("random.sample", "random.choices"), _firsts),
    "random.shuffle": _rearranged,
    **dict.fromkeys(("copy.copy", "copy.deepcopy"), _same),
    "typing.cast": _second,
    "collections.abc.cast": _second,
}  # fmt: skip

BUILTINS: Final = _GIVES_PLAIN | {name for name in _HANDLERS if "." not in name}
"""Builtins that are followed."""
