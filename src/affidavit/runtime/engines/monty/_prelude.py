"""The part of the engine that runs inside the sandbox, as source text: `df`, its calls, and the checks on values.

It is fed to each worker before the script. Everything hides in one function's closure, because the script shares its
globals and may rebind any builtin (`type = row["kind"]` is ordinary code). Names that start with `_affidavit` are
refused in scripts.

The language here is monty's: no `del`, no inheritance, no generators, no methods as values.
"""

from __future__ import annotations

from typing import Final

__all__ = ["PRELUDE", "REFUSAL"]

# How the prelude reports a refusal: a ValueError whose text starts so, then code, steps and problem as JSON.
REFUSAL: Final = "\x00affidavit\x00"

PRELUDE: Final = '''
import binascii as _affidavit_carrier
import datetime as _affidavit_datetime
import decimal as _affidavit_decimal
import json as _affidavit_json
import time as _affidavit_time


def _affidavit_boot(
    tree, limits, failure, json_of, _call, _sync, _refused, _fields, _dt, _dec, _clock,
    type=type, isinstance=isinstance, len=len, getattr=getattr, setattr=setattr, hasattr=hasattr, id=id, list=list,
    dict=dict, str=str, repr=repr, set=set, zip=zip, tuple=tuple, frozenset=frozenset, int=int, float=float,
    bool=bool, bytes=bytes, ValueError=ValueError, TypeError=TypeError, AttributeError=AttributeError,
    SystemExit=SystemExit, round=round, format=format,
):
    class _AffidavitNamespace:
        pass

    class _AffidavitPages:
        pass

    nothing = type(None)
    wide = _dec.Context(prec=400)
    exact = [str, int, float, bool, nothing, bytes, _dt.datetime, _dt.date, _dec.Decimal]
    coroutine = "coroutine"
    sites = {}
    structs = {}
    operations = {}
    namespaces = {}
    sited = {}

    def refuse(code, steps, message):
        raise ValueError("\x00affidavit\x00" + json_of([code, steps, message]))

    def measure(value, bound, softening):
        """Walk a value before it leaves: only what records can hold may cross, and conversion must lose nothing.

        Returns the places of mappings whose type would be lost on the way, each with its type's name.
        """
        size = [0]
        above = []
        steps = []
        typed = []

        def spend(amount):
            size[0] += amount
            if size[0] > bound:
                refuse("value-too-large", steps, "more than " + str(bound) + " bytes")

        def walk(item):
            kind = type(item)
            if kind is str:
                return spend(len(item) + 2)
            if kind in exact:
                return spend(len(item) if kind is bytes else 1)
            if len(steps) > 99:
                refuse("value-too-deep", steps, "more than 100 levels of nesting")
            here = id(item)
            if here in above:
                refuse("value-unsupported", steps, "a container that holds itself")
            above.append(here)
            if isinstance(item, dict):
                if kind is not dict:
                    if not softening:
                        foreign(kind, steps)
                    typed.append([kind.__name__, list(steps)])
                for key in item:
                    if type(key) is not str and not (softening and (key is None or type(key) in (int, float, bool))):
                        refuse("value-unsupported", steps, "a key of type " + type(key).__name__)
                    spend(len(str(key)) + 3)
                    steps.append(key)
                    walk(item[key])
                    steps.pop()
            elif kind is list or (softening and (isinstance(item, tuple) or kind is set or kind is frozenset)):
                at = 0
                for inner in item:
                    steps.append(at)
                    walk(inner)
                    steps.pop()
                    at += 1
                spend(1 + at)
            elif softening and hasattr(item, "__dataclass_fields__") and kind is not type:
                for name in item.__dataclass_fields__:
                    steps.append(name)
                    walk(getattr(item, name))
                    steps.pop()
            else:
                foreign(kind, steps)
            above.pop()

        walk(value)
        return typed

    def foreign(kind, steps):
        name = kind.__name__
        if kind is _AffidavitNamespace:
            name = "Names"
        elif kind is _AffidavitPages:
            name = "async_generator"
        refuse("value-unsupported", steps, "a value of type " + name)

    def note(value, depth):
        """Remember the mappings of a result whose keys may be read as attributes."""
        if depth < DEPTH and type(value) is dict:
            structs[id(value)] = True
            for key in value:
                note(value[key], depth + 1)

    def begin(leaf, site):
        """Count one call at its site; the site's record is [path, site, created, started]."""
        key = (leaf["$call"], site)
        if key not in sites:
            sites[key] = [leaf["$call"], site, 0, 0]
        sites[key][2] += 1
        return sites[key]

    def unawaited():
        return [[entry[0], entry[1]] for entry in sites.values() if entry[3] < entry[2]]

    async def _affidavit_run(leaf, entry, iteration, arguments):
        entry[3] += 1
        check(leaf, arguments)
        value = await _call(leaf["$call"], arguments, entry[1], iteration)
        if leaf.get("struct"):
            note(value, 0)
        return value

    def check(leaf, arguments):
        try:
            measure(arguments, limits["argument_bytes"], leaf["$call"] == "answer")
        except ValueError as refused:
            _refused(leaf["$call"], str(refused))

    def bind(leaf, args, kwargs):
        names = leaf["parameters"]
        name = leaf["$call"]
        if len(args) > leaf["positional"]:
            raise TypeError(
                "df." + name + "() takes " + str(leaf["positional"]) + " positional arguments but "
                + str(len(args)) + " were given"
            )
        bound = {}
        for key, value in zip(names, args):
            bound[key] = value
        for key in kwargs:
            if key in bound:
                raise TypeError("df." + name + "() got multiple values for argument " + repr(key))
            if key not in names:
                raise TypeError("df." + name + "() got an unexpected keyword argument " + repr(key))
            bound[key] = kwargs[key]
        return bound

    def operation(leaf, site):
        kind = leaf["kind"]
        if kind == "sync":
            def call(*args, **kwargs):
                bound = bind(leaf, args, kwargs)
                entry = begin(leaf, site)
                entry[3] += 1
                check(leaf, bound)
                value = _sync(leaf["$call"], bound, site, entry[2] - 1)
                if type(value) is dict:
                    structs[id(value)] = True
                return value
        elif kind == "pages":
            def call(*args, **kwargs):
                pages = _AffidavitPages()
                bound = bind(leaf, args, kwargs)
                entry = begin(leaf, site)
                pages.state = [leaf, bound, entry, entry[2] - 1, None, False]
                return pages
        else:
            def call(*args, **kwargs):
                bound = bind(leaf, args, kwargs)
                entry = begin(leaf, site)
                return _affidavit_run(leaf, entry, entry[2] - 1, bound)
        operations[id(call)] = [call, leaf]
        return call

    def namespace(branch, site):
        made = _AffidavitNamespace()
        for name in branch:
            inner = branch[name]
            setattr(made, name, operation(inner, site) if "$call" in inner else namespace(inner, site))
        namespaces[id(made)] = [made, branch]
        return made

    def at(site, base):
        """The same namespace or operation, knowing the call site. Anything else comes back unchanged."""
        known = sited.get((site, id(base)))
        if known is not None:
            return known
        if type(base) is _AffidavitNamespace and id(base) in namespaces:
            branch = namespaces[id(base)][1]
            made = _AffidavitNamespace()
            for name in branch:
                inner = branch[name]
                setattr(made, name, operation(inner, site) if "$call" in inner else getattr(base, name))
            made.Error = failure
        elif id(base) in operations and operations[id(base)][0] is base:
            made = operation(operations[id(base)][1], site)
        else:
            return base
        sited[(site, id(base))] = made
        return made

    def get(value, name):
        """`value.name`, also for the mappings that results consist of and for `df.Error`."""
        if type(value) is dict:
            if id(value) in structs and name in value:
                return value[name]
            if id(value) in structs:
                raise AttributeError("no key " + repr(name) + "; there are: " + ", ".join([str(key) for key in value]))
            raise AttributeError("'dict' object has no attribute " + repr(name))
        if isinstance(value, failure) and name in ("code", "message", "hint", "retryable", "details"):
            return _fields(str(value), name)
        if name == "__name__" and repr(value) == "<class 'binascii.Incomplete'>":
            return "Error"
        return getattr(value, name)

    def get_by_name(value, name, *default):
        if type(value) is dict or isinstance(value, failure):
            try:
                return get(value, name)
            except AttributeError:
                if len(default) == 0:
                    raise
                return default[0]
        return getattr(value, name, *default)

    def has(value, name):
        if type(value) is dict or isinstance(value, failure):
            try:
                get(value, name)
            except AttributeError:
                return False
            return True
        return hasattr(value, name)

    def rounded(number, digits=None):
        """`round`, correctly rounded: monty's own scales by powers of ten and is off in the last place."""
        if type(number) is not float or digits is None or not isinstance(digits, int):
            return round(number) if digits is None else round(number, digits)
        if number != number or number - number != 0.0 or digits > 340:
            return number
        if digits >= 0:
            return float(format(number, "." + str(digits) + "f"))
        exact = _dec.Decimal(number)
        step = _dec.Decimal("1E" + str(-digits))
        return float(exact.quantize(step, rounding=_dec.ROUND_HALF_EVEN, context=wide))

    async def advance(pages):
        """Fetch the next page; False when none follows."""
        leaf, arguments, entry, iteration, page, done = pages.state
        if done:
            return False
        if page is None:
            entry[3] += 1
        else:
            cursor = page["page"]["next_cursor"]
            if cursor is None:
                pages.state[5] = True
                return False
            following = {}
            for key in arguments:
                if key != "offset":
                    following[key] = arguments[key]
            following["cursor"] = cursor
            arguments = following
        pages.state[1] = arguments
        pages.state[3] = iteration + 1
        page = await _affidavit_run(leaf, entry, iteration, arguments)
        entry[3] -= 1
        pages.state[4] = page
        return True

    def iterate(value):
        if type(value) is not _AffidavitPages:
            raise TypeError(
                "'async for' requires an object with __aiter__ method, got " + type(value).__name__
            )
        return value

    def current(pages):
        return pages.state[4]

    async def _affidavit_settle(value):
        """The value itself; a coroutine of the script's own is run to its end first."""
        if type(value).__name__ == coroutine and repr(value) != "<coroutine object _affidavit_run>":
            return await value
        return value

    def result(value):
        """The script's value, in a list so that None can be told from nothing."""
        return [value, measure(value, limits["result_bytes"], True)]

    def returned(value):
        return None if value is None else result(value)

    def leave(code=None):
        raise SystemExit("" if code is None else repr(code))

    def ended():
        return [unawaited(), _clock.process_time()]

    root = namespace(tree, 0)
    root.Error = failure
    return [
        root, at, get, get_by_name, has, rounded, advance, iterate, current, _affidavit_settle, result, returned, leave,
        ended,
    ]


[
    df, _affidavit_at, _affidavit_get, _affidavit_getattr, _affidavit_hasattr, _affidavit_round, _affidavit_advance,
    _affidavit_iterate, _affidavit_current, _affidavit_settle, _affidavit_result, _affidavit_returned, _affidavit_leave,
    _affidavit_ended,
] = _affidavit_boot(
    _affidavit_tree, _affidavit_limits, _affidavit_carrier.Incomplete, _affidavit_json.dumps, _affidavit_call,
    _affidavit_sync, _affidavit_refused, _affidavit_fields, _affidavit_datetime, _affidavit_decimal, _affidavit_time,
)
exit = quit = _affidavit_leave
'''.replace("DEPTH", "2")
