"""The forms that Affidavit's files are written in, checked with Python's standard library alone.

Canonical JSON, values and shapes, as `format.md` says. A part of `verify_independently.py`.
"""

import base64
import binascii
import hashlib
import json
import re
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from uuid import UUID

SAFE = 2**53 - 1
LEVELS = 204
DIGITS = 78914  # of an integer of 2**18 bits


class WrongError(Exception):
    """Something does not hold; the text says where and what."""


def need(condition, text):
    """Raise `WrongError` unless the condition holds."""
    if not condition:
        raise WrongError(text)


# ---- canonical JSON: RFC 8785 ----


def canonical(value, levels=LEVELS):
    """The canonical text of a JSON value of so many levels of containers at most."""
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, int):
        need(abs(value) <= SAFE, f"the integer {value} is beyond 2**53 - 1")
        return str(value)
    if isinstance(value, float):
        return number(value)
    need(levels, "nested too deeply")
    if isinstance(value, list):
        return "[" + ",".join(canonical(item, levels - 1) for item in value) + "]"
    need(isinstance(value, dict), f"{type(value).__name__} is not JSON")
    keys = sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
    return "{" + ",".join(f"{quoted(key)}:{canonical(value[key], levels - 1)}" for key in keys) + "}"


def quoted(text):
    """A text in quotes, with no more escapes than JSON demands."""
    need(not re.search("[\ud800-\udfff]", text), "a lone surrogate")
    short = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
    return '"' + re.sub(r'["\\\x00-\x1f]', lambda it: short.get(it[0]) or f"\\u{ord(it[0]):04x}", text) + '"'


def number(value):
    """A double as ECMAScript writes it: the shortest digits that read back, in its layout."""
    need(value - value == 0, "not a finite number")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len((whole + fraction).lstrip("0")))
    digits = digits.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return sign + digits[:point] + "." + digits[point:]
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + digits
    power = point - 1
    shown = f"e{'+' if power >= 0 else '-'}{abs(power)}"
    return sign + digits[0] + ("." + digits[1:] if count > 1 else "") + shown


def read(data):
    """Parse JSON bytes strictly: UTF-8, no key twice, no NaN."""

    def pairs(items):
        need(len(dict(items)) == len(items), "a key stands twice in one object")
        return dict(items)

    def constant(name):
        raise WrongError(f"{name} is not JSON")

    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=pairs, parse_constant=constant)
    except (ValueError, RecursionError) as error:
        raise WrongError(f"not JSON: {error}") from None


def read_canonical(data, what):
    """Parse JSON bytes that must be canonical."""
    value = read(data)
    need(canonical(value).encode() == data, f"{what} is not in the canonical form")
    return value


def sha256(data):
    """The address of bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def from_base64(text):
    """Bytes from base64 in its one spelling."""
    need(isinstance(text, str), "base64 is a text")
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise WrongError(f"not base64: {error}") from None
    need(base64.b64encode(data).decode() == text, "base64 with stray bits")
    return data


# ---- values ----


def spelt(tag, text):
    """How a tag must be spelt for the value that its text stands for."""
    if tag == "$int":
        need(
            re.fullmatch("-?[0-9]+", text) and len(text) <= DIGITS + 1,
            "no integer, or one of too many digits",
        )
        size = Decimal(text).copy_abs()  # as exact as an int, and without its bound on digits
        # The bound itself takes half a second to write down: only what has as many digits is held against it.
        few = size.adjusted() + 1 < DIGITS or size < Decimal(2**2**18)
        need(size > SAFE and few, "an integer that needs no tag, or of too many bits")
        return re.sub("^(-?)0+", r"\1", text)
    if tag == "$float":
        value = float(text)
        need(value - value != 0 or value.is_integer(), "a float that needs no tag")
        return repr(value)
    if tag == "$bytes":
        return base64.b64encode(from_base64(text)).decode()
    if tag == "$text":
        value = from_base64(text).decode("utf-8", "surrogatepass")
        need(re.search("[\ud800-\udfff]", value), "a text that needs no tag")
        return base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()
    if tag == "$datetime":
        need(not re.search(r"[+-]\d\d:\d\d:\d\d\.", text), "an offset with a fraction of a second")
        return datetime.fromisoformat(text).isoformat()
    return str({"$decimal": Decimal, "$uuid": UUID, "$date": date.fromisoformat}[tag](text))


TAGS = ("$int", "$float", "$bytes", "$text", "$datetime", "$date", "$decimal", "$uuid")


def check_value(value, levels=100):
    """Every tag in a value must be known, stand alone, and have its one spelling; whole floats must be tagged."""
    need(not isinstance(value, float) or not value.is_integer(), f"the number {value} needs a tag")
    if not isinstance(value, dict | list):
        return True
    need(levels, "a value is nested too deeply")
    if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in TAGS:
        [(tag, text)] = value.items()
        need(isinstance(text, str) and respelt(tag, text) == text, f"a malformed {tag} tag")
        return True
    for key in value if isinstance(value, dict) else ():
        if key.startswith("$text:"):
            need(respelt("$text", key[6:]) == key[6:], f"a malformed key {key}")
        need(key[:1] != "$" or key[:2] == "$$" or key.startswith("$text:"), f"an unknown tag {key}")
    return all(check_value(it, levels - 1) for it in (value.values() if isinstance(value, dict) else value))


def respelt(tag, text):
    """As `spelt`, and null for a text that no value has."""
    try:
        return spelt(tag, text)
    except (ValueError, InvalidOperation, OverflowError):
        return None


# ---- shapes ----

SCHEMA = json.loads(Path(__file__).with_name("format.schema.json").read_text("utf-8"))
TYPES = {
    "object": lambda it: isinstance(it, dict), "array": lambda it: isinstance(it, list),
    "string": lambda it: isinstance(it, str), "integer": lambda it: type(it) is int,
    "number": lambda it: type(it) in (int, float), "boolean": lambda it: isinstance(it, bool),
    "null": lambda it: it is None,
}  # fmt: skip
TESTS = {  # keyword of JSON Schema -> whether a value fulfils it
    "type": lambda it, kind: TYPES[kind](it),
    "enum": lambda it, known: it in known,
    "const": lambda it, known: it == known and type(it) is type(known),
    "minimum": lambda it, bound: it >= bound,
    "maximum": lambda it, bound: it <= bound,
    "exclusiveMaximum": lambda it, bound: it < bound,
    "minLength": lambda it, bound: len(it) >= bound,
    "maxLength": lambda it, bound: len(it) <= bound,
    "minItems": lambda it, bound: len(it) >= bound,
    "maxItems": lambda it, bound: len(it) <= bound,
    "minProperties": lambda it, bound: len(it) >= bound,
    "maxProperties": lambda it, bound: len(it) <= bound,
    "pattern": lambda it, pattern: re.fullmatch(pattern[1:-1], it),
    "required": lambda it, names: set(names) <= set(it),
    "dependentRequired": lambda it, names: all(
        set(more) <= set(it) for one, more in names.items() if one in it
    ),
    "anyOf": lambda it, shapes: any(fits(it, shape) for shape in shapes),
    "allOf": lambda it, shapes: all(fits(it, shape) for shape in shapes),
    "not": lambda it, shape: not fits(it, shape),
    "format": lambda it, _: check_value(it) or True,
}


def fit(value, shape, where):
    """See that a value has a shape: the part of JSON Schema that `format.schema.json` uses."""
    if "$ref" in shape:
        return fit(value, SCHEMA["$defs"][shape["$ref"].rpartition("/")[2]], where)
    for keyword, test in TESTS.items():
        if keyword in shape:
            need(test(value, shape[keyword]), f"{where}: {keyword} of {value!r:.60}")
    if isinstance(value, dict):
        known, others = shape.get("properties", {}), shape.get("additionalProperties", {})
        for key, item in value.items():
            inner = known.get(key, others)
            need(inner is not False, f"{where} has no member {key}")
            fit(item, inner, f"{where}.{key}")
    for index, item in enumerate(value if isinstance(value, list) else ()):
        fit(item, shape.get("items", {}), f"{where}[{index}]")
    return value


def fits(value, shape):
    """Whether a value has a shape."""
    try:
        fit(value, shape, "")
    except WrongError:
        return False
    return True


def named(name):
    """The shape of this name."""
    return SCHEMA["$defs"][name]


def ascending(items, where, key=lambda it: it):
    """See that items stand in order, each once."""
    keys = [key(it) for it in items]
    need(keys == sorted(set(keys)), f"{where}: not ascending, each once")
