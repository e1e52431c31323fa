"""Snippets: statements, expressions, builtins, text."""

from __future__ import annotations

__all__ = ["TEXT"]

TEXT = r"""
### walrus
[half for n in range(6) if (half := n // 2) > 1]

### walrus in while
left = [1, 2, 3]
total = 0
while (n := len(left)) > 1:
    total += left.pop() * n
total

### comprehension scope
n = "outer"
squares = [n * n for n in range(3)]
[n, squares]

### nested comprehension
[[row * 10 + column for column in range(2)] for row in range(3)]

### try else finally
log = []
try:
    log.append("try")
except ValueError:
    log.append("except")
else:
    log.append("else")
finally:
    log.append("finally")
log

### finally before return
log = []
def leave():
    try:
        return "value"
    finally:
        log.append("finally")
[leave(), log]

### several exception types
def name_of(thing):
    try:
        return thing()
    except (KeyError, IndexError):
        return "lookup"
    except ZeroDivisionError as error:
        return str(error)
[name_of(lambda: {}["a"]), name_of(lambda: [][0]), name_of(lambda: 1 / 0), name_of(lambda: 7)]

### exception cause
try:
    try:
        int("x")
    except ValueError as error:
        raise RuntimeError("wrapped") from error
except RuntimeError as error:
    cause = type(error.__cause__).__name__
cause

### exception arguments
try:
    raise ValueError("left", 2)
except ValueError as error:
    parts = error.args
parts

### exception group
try:
    raise ExceptionGroup("two", [ValueError("a"), TypeError("b")])
except* ValueError as group:
    count = len(group.exceptions)
except* TypeError:
    pass
count

### exception type name
try:
    [][1]
except Exception as error:
    said = f"{type(error).__name__}: {error}"
said

### re-raise
seen = []
try:
    try:
        {}["k"]
    except KeyError:
        seen.append("inner")
        raise
except KeyError as error:
    seen.append(str(error))
seen

### traceback text
import traceback
try:
    1 / 0
except ZeroDivisionError:
    text = traceback.format_exc()
"ZeroDivisionError" in text

### decorator
def shout(function):
    def wrapped(*args):
        return function(*args).upper()
    return wrapped
@shout
def greet(name):
    return "hi " + name
greet("ann")

### decorator with arguments and wraps
import functools
def times(n):
    def decorate(function):
        @functools.wraps(function)
        def wrapped(*args):
            return [function(*args) for _ in range(n)]
        return wrapped
    return decorate
@times(2)
def one():
    return 1
[one(), one.__name__]

### cached recursion
from functools import lru_cache
@lru_cache(maxsize=None)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
fib(60)

### reduce and partial
from functools import partial, reduce
[reduce(lambda a, b: a * b, [1, 2, 3, 4]), partial(pow, 3)(2)]

### comparison key from a function
from functools import cmp_to_key
sorted([2, 9, 4], key=cmp_to_key(lambda a, b: b - a))

### every kind of parameter
def all_kinds(a, /, b, *rest, c=3, **more):
    return [a, b, rest, c, more]
all_kinds(1, 2, 3, 4, c=5, d=6)

### unpacking
first, *middle, last = [1, 2, 3, 4]
merged = {**{"a": 1}, "b": 2} | {"c": 3}
[first, middle, last, merged, [*middle, *middle]]

### swap and chained assignment
a = b = 3
a, b = b + 1, a
[a, b]

### closure with nonlocal
def counter():
    n = 0
    def up():
        nonlocal n
        n += 1
        return n
    return up
up = counter()
up()
up()

### global
hits = 0
def hit():
    global hits
    hits += 1
hit()
hit()
hits

### recursion
def depth(n):
    return 0 if n == 0 else 1 + depth(n - 1)
depth(300)

### big integers
[str(2 ** 200), pow(3, 200, 10 ** 9 + 7), (2 ** 64) % 1000]

### bit length and bytes of integers
[(1000).bit_length(), (258).to_bytes(2, "big").hex(), int.from_bytes(b"\x01\x02", "little")]

### sort by several keys
people = [("bo", 30), ("al", 30), ("cy", 25)]
sorted(people, key=lambda person: (-person[1], person[0]))

### sort is stable and in place
rows = [("b", 1), ("a", 1), ("c", 0)]
rows.sort(key=lambda row: row[1])
rows

### method as key
sorted(["b", "A", "c"], key=str.lower)

### dictionary method as key
votes = {"ann": 2, "bob": 5}
max(votes, key=votes.get)

### map with a method
list(map(str.strip, [" a ", "b "]))

### map with a function
list(map(lambda n: n + 1, [1, 2]))

### map with int
[int(x) for x in map(str, [1, 2])] + list(map(int, "34"))

### filter
list(filter(lambda n: n % 2, range(6)))

### bound method kept
found = []
add = found.append
add(1)
add(2)
found

### delete
stock = {"a": 1, "b": 2}
line = [1, 2, 3]
del stock["a"], line[0]
[stock, line]

### slices
letters = list("abcdefgh")
[letters[::3], letters[-2:], letters[::-1][:2], letters[1:-5]]

### slice assignment
numbers = [1, 2, 3, 4]
numbers[1:3] = [9]
numbers

### comparison chain and conditional
x = 5
[1 < x < 9, 1 < x > 9, "yes" if x else "no"]

### for else
for n in [1, 3]:
    if n == 2:
        break
else:
    n = "no two"
n

### while else
n = 3
while n:
    n -= 1
    if n == 9:
        break
else:
    n = "ran out"
n

### continue and break
kept = []
for n in range(10):
    if n % 2:
        continue
    if n > 6:
        break
    kept.append(n)
kept

### type hints
from typing import Any, Callable, Optional
def apply(value: Optional[int] = None, then: Callable[[int], Any] | None = None) -> list[int]:
    return [value or 0]
apply(3)

### typed dictionaries and named tuples
from typing import NamedTuple, TypedDict
class User(TypedDict):
    id: int
class Pair(NamedTuple):
    left: int
    right: int = 2
user: User = {"id": 1}
[user["id"], Pair(5).right, Pair(5)._asdict()]

### generic syntax since=12
type Names = list[str]
def head[T](items: list[T]) -> T:
    return items[0]
head(["x", "y"])

### isinstance
[isinstance(1, (int, str)), isinstance("a", int | str), isinstance(True, int), isinstance(None, str)]

### type names
[type(value).__name__ for value in (1, "a", None, [], {}, 1.5, True, (), b"")]

### getattr setattr hasattr
class Thing:
    pass
thing = Thing()
setattr(thing, "size", 3)
[thing.size, getattr(thing, "colour", "none"), hasattr(thing, "size"), hasattr(thing, "colour")]

### hasattr of a method
[hasattr([], "append"), hasattr("", "nothing")]

### evaluate text
n = 3
eval("n + 1")

### print
print("a", "b", sep="-", end="!\n")
print([1, 2.0, None, "x"], {"k": (1,)})
"printed"

### assert with a message
try:
    assert 1 == 2, "unequal"
except AssertionError as error:
    said = str(error)
said

### assert without a message
try:
    assert [1] == [2]
except AssertionError as error:
    said = str(error)
said

### main guard
answer = "imported"
if __name__ == "__main__":
    answer = "run"
answer

### f-strings
n, word = 1234.5678, "ab"
f"{n:,.2f}|{word!r:>6}|{n:e}|{255:#x}|{7:03d}|{0.256:.1%}|{word:*^6}|{n=:.1f}|{word:{8}}|"

### nested f-string
names = ["x", "y"]
f"<{', '.join(f'{name}={len(name)}' for name in names)}>"

### format and percent
"{:>5}|{name:<4}".format("x", name=1) + " %05.1f %s %d%%" % (3.14159, "q", 5)

### string methods
text = "  Hello World  "
[
    text.strip().lower().split(), "a,b".partition(","), "x".zfill(3), "aXb".swapcase(),
    "a-b_c".title(), "abc".removeprefix("a"), "a\nb".splitlines(), "ab".center(6, "*"), "a.b.c".rsplit(".", 1),
    "abcabc".replace("b", "-", 1), "abc".find("c"), "abc".startswith(("x", "a")), "é".encode().hex(),
]

### string translate
"banana".translate(str.maketrans("an", "on"))

### unicode strings
["ß".casefold(), "É".lower(), len("naïve"), "日本"[::-1], "a\u0301" == "á", "İ".lower() == "i̇"]

### bytes
data = b"\x00\x01abc"
[data[2:], data.hex(), bytes.fromhex("00ff"), data.decode("latin1"), data.find(b"a"), data[1]]

### bytes from a list
[bytes([65, 66]), bytes(bytearray(b"ab") + b"c"), list(b"hi")]

### complex numbers
product = (1 + 2j) * (3 - 1j)
[product.real, product.imag]

### set operations
a, b = {1, 2, 3}, frozenset({2, 3, 4})
[a & b, a | b, a - b, a ^ b, a <= {1, 2, 3, 4}, a.isdisjoint({9}), 2 in a]

### set update in place
a = {1, 2, 3}
a.intersection_update({2, 3, 4})
a.discard(9)
sorted(a)

### dictionary methods
d = {"a": 1}
d.setdefault("b", []).append(2)
d.update(c=3)
[d, d.pop("a"), list(d.items()), dict(zip("xy", [1, 2])), {v: k for k, v in {"q": "w"}.items()}]

### dictionary order
d = {"z": 1, "a": 2}
d["m"] = 3
d["z"] = 9
[list(d), list(reversed(d)), dict.fromkeys("cab", 0)]

### keyword order
def show(**words):
    return list(words)
show(b=1, **{"a": 2}, c=3)

### builtins
[
    sum([1, 2], 10), min([3, 1]), max("ab", "c", key=len), list(zip([1, 2], "ab", strict=True)),
    list(enumerate("ab", 1)), round(2.5), round(3.14159, 2), divmod(-7, 2), abs(-1), chr(97), ord("a"),
    hex(255), bin(5), oct(8), list(reversed([1, 2])), int("ff", 16), float("1e3"), pow(2, -1),
]

### more builtins
[callable(len), issubclass(bool, int), ascii("é"), min([], default=0), repr("it's")]

### iterator with a sentinel
source = iter([1, 2, 0, 3])
[list(iter(lambda: next(source), 0)), next(source), next(iter([]), None)]

### integer division and modulo
[-7 // 2, -7 % 3, 7 // -2, 7.5 // 2, -7.5 % 2, 2 ** -1, 0.1 + 0.2]

### float text
[str(1.0), str(1e16), str(1e-5), repr(0.1), str(float("inf")), 1e15, 123456789.123456789]

"""
