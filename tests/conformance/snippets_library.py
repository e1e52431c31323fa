"""Snippets: the standard library, and small whole tasks."""

from __future__ import annotations

__all__ = ["TEXT"]

TEXT = r'''
### counter
from collections import Counter
letters = Counter("mississippi")
[letters.most_common(2), letters["z"], sum(letters.values()), (letters + Counter("m"))["m"]]

### defaultdict
from collections import defaultdict
groups = defaultdict(list)
for name in ["ann", "al", "bo"]:
    groups[name[0]].append(name)
dict(groups)

### nested defaultdict
from collections import defaultdict
table = defaultdict(lambda: defaultdict(int))
table["x"]["y"] += 2
table["x"]["y"]

### ordered dict and chain map
from collections import ChainMap, OrderedDict
order = OrderedDict(a=1, b=2)
order.move_to_end("a")
[list(order), ChainMap({"a": 1}, {"b": 2})["b"]]

### deque
from collections import deque
recent = deque([1, 2, 3], maxlen=2)
recent.appendleft(9)
list(recent)

### named tuple
from collections import namedtuple
Place = namedtuple("Place", "row column")
place = Place(1, 2)
[place.row, place._replace(row=5), place == (1, 2)]

### itertools
import itertools as it
[
    list(it.chain([1], [2])), list(it.islice(it.count(5), 3)), list(it.combinations("abc", 2)),
    list(it.product([1], [2, 3])), list(it.accumulate([1, 2, 3])), list(it.permutations([1, 2])),
    list(it.zip_longest([1], [2, 3])), list(it.pairwise([1, 2, 3])),
]

### group by
from itertools import groupby
rows = sorted([("a", 1), ("b", 2), ("a", 3)])
{key: [n for _, n in group] for key, group in groupby(rows, key=lambda row: row[0])}

### takewhile starmap tee
import itertools
[
    list(itertools.takewhile(lambda n: n < 3, [1, 2, 3, 1])), list(itertools.starmap(pow, [(2, 3)])),
    [list(copy) for copy in itertools.tee([1, 2])], list(itertools.dropwhile(lambda n: n < 3, [1, 3, 1])),
]

### regular expressions
import re
match = re.search(r"(?P<year>\d{4})-(\d\d)", "on 2024-05-01")
[
    match.group("year"), match.groups(), match.span(), re.sub(r"\s+", " ", "a  b"), re.findall(r"\w+", "a b"),
    re.split(r"[,;]", "a,b;c"), bool(re.match(r"^a.*z$", "abcz", re.I)), [m.start() for m in re.finditer("a", "aba")],
]

### regular expression with a function
import re
re.sub(r"\d", lambda digit: str(int(digit[0]) * 2), "a1b3")

### regular expression lookaround
import re
[re.findall(r"\b(\w)\w*\1\b", "aba cdc xyz"), re.sub(r"(?<=\d)(?=(\d{3})+$)", ",", "1234567")]

### verbose regular expression
import re
bool(re.compile(r"""a  # first
    b""", re.X).match("ab"))

### json
import json
[
    json.loads('{"a": [1, 2.5, null, true, "\\u00e9"]}'), json.dumps({"b": 1, "a": [1]}, indent=2, sort_keys=True),
    json.dumps({"d": 1.0}, separators=(",", ":")), json.dumps("é"),
]

### json with a default
import json
from datetime import date
json.dumps({"day": date(2024, 1, 2)}, default=str)

### json error
import json
try:
    json.loads("{")
except json.JSONDecodeError as error:
    place = error.pos
place

### json error text
import json
try:
    json.loads("[1,")
except ValueError as error:
    said = type(error).__name__
said

### datetime
from datetime import date, datetime, timedelta, timezone
moment = datetime(2024, 5, 1, 12, 30, tzinfo=timezone.utc)
[
    moment.isoformat(), (moment + timedelta(days=3, hours=1)).strftime("%Y-%m-%d %H:%M"),
    datetime.fromisoformat("2024-05-01T00:00:00+00:00").timestamp(), (date(2024, 3, 1) - date(2024, 2, 1)).days,
    datetime.strptime("01/02/2024", "%d/%m/%Y").month, moment.weekday(), moment.replace(hour=0).hour,
]

### datetime as a value
from datetime import date, datetime, timezone
{"at": datetime(2024, 5, 1, 12, tzinfo=timezone.utc), "day": date(2024, 5, 1)}

### calendar week
from datetime import date
list(date(2024, 1, 1).isocalendar())

### zoneinfo
from datetime import datetime
from zoneinfo import ZoneInfo
datetime(2024, 7, 1, tzinfo=ZoneInfo("UTC")).isoformat()

### calendar
import calendar
calendar.monthrange(2024, 2)

### clock
import time
before = time.time()
time.sleep(0)
time.time() >= before

### statistics
import statistics
[statistics.mean([1, 2, 3]), statistics.median([1, 3, 2]), statistics.mode([1, 1, 2])]

### math
import math
[
    math.sqrt(2), math.ceil(1.2), math.floor(-1.2), math.log10(100), math.gcd(12, 18), math.comb(5, 2),
    math.isclose(0.1 + 0.2, 0.3), math.prod([1, 2, 3]), math.hypot(3, 4), math.inf > 1, math.factorial(20),
]

### seeded random
import random
random.seed(7)
[random.randint(1, 100), random.choice([1, 2, 3]), random.sample(range(10), 3), random.random()]

### own random generator
import random
dice = random.Random(42)
[dice.randint(1, 6) for _ in range(5)]

### decimal
from decimal import ROUND_HALF_UP, Decimal
[Decimal("0.1") + Decimal("0.2") == Decimal("0.3"), str(Decimal("2.675").quantize(Decimal("0.01"), ROUND_HALF_UP))]

### decimal as a value
from decimal import Decimal
{"price": Decimal("1.10")}

### fractions
from fractions import Fraction
str(Fraction(1, 3) + Fraction(1, 6))

### heap and bisect
import bisect
import heapq
heap = [3, 1, 2]
heapq.heapify(heap)
[heapq.heappop(heap), heapq.nlargest(2, [1, 5, 3]), bisect.bisect_left([1, 3, 5], 3)]

### bisect
import bisect
grades = [60, 70, 80]
bisect.insort(grades, 75)
[grades, bisect.bisect_right(grades, 70)]

### operator
from operator import attrgetter, itemgetter
[sorted([{"a": 2}, {"a": 1}], key=itemgetter("a")), itemgetter(0, 1)([7, 8])]

### string module
import string
[string.ascii_lowercase[:3], string.Template("hi $name").substitute(name="ann"), string.digits]

### textwrap
import textwrap
[textwrap.dedent("  a\n  b"), textwrap.shorten("hello wide world", 12), textwrap.fill("aa bb cc", 5)]

### struct
import struct
[struct.pack("<IHb", 1, 2, -3), struct.unpack(">HH", b"\x00\x01\x00\x02"), struct.calcsize("<Q")]

### hashlib
import hashlib
[hashlib.sha256(b"a").hexdigest()[:8], hashlib.md5(b"a").hexdigest()[:8]]

### hmac
import hashlib
import hmac
hmac.new(b"key", b"text", hashlib.sha256).hexdigest()[:8]

### base64
import base64
import binascii
[base64.b64encode(b"hi"), base64.urlsafe_b64decode("aGk="), binascii.hexlify(b"a")]

### zlib
import zlib
[zlib.crc32(b"abc"), zlib.decompress(zlib.compress(b"aaaa"))]

### csv from lines
import csv
[row["b"] for row in csv.DictReader(["a,b", "1,2", '3,"x,y"'])]

### csv through a text buffer
import csv
import io
out = io.StringIO()
writer = csv.DictWriter(out, ["a", "b"])
writer.writeheader()
writer.writerow({"a": 1, "b": "x,y"})
out.getvalue()

### text and byte buffers
import io
text = io.StringIO()
text.write("ab")
[text.getvalue(), io.BytesIO(b"xyz").read(2)]

### urls
from urllib.parse import parse_qs, quote, urlencode, urljoin, urlparse
[
    urlparse("https://a.b/c?d=e#f").netloc, urlencode({"a": "x y"}), quote("a/b c"), urljoin("http://a/b/", "c"),
    parse_qs("a=1&a=2"),
]

### html
import html
[html.escape("<a>"), html.unescape("&lt;")]

### xml
import xml.etree.ElementTree as tree
tree.fromstring("<a><b x='1'>t</b></a>").find("b").text

### html parser
from html.parser import HTMLParser
class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.names = []
    def handle_starttag(self, tag, attributes):
        self.names.append(tag)
tags = Tags()
tags.feed("<a><b></b></a>")
tags.names

### paths
from pathlib import PurePosixPath
path = PurePosixPath("/a/b/c.tar.gz")
[path.name, path.stem, path.suffix, str(path.parent), str(path.with_suffix(".x")), path.parts, str(path / "d")]

### os path
import os.path
[os.path.join("a", "b"), os.path.splitext("x.py"), os.path.basename("/q/w"), os.path.dirname("/q/w")]

### uuid
import uuid
str(uuid.uuid5(uuid.NAMESPACE_DNS, "a"))

### deep copy
import copy
original = {"x": [1]}
twin = copy.deepcopy(original)
twin["x"].append(2)
[original, twin]

### difflib
import difflib
difflib.get_close_matches("appel", ["ape", "apple"])

### pprint
import pprint
pprint.pformat({"a": [1, 2]})

### tomllib
import tomllib
tomllib.loads("[a]\nb = 1")

### sqlite in memory
import sqlite3
base = sqlite3.connect(":memory:")
base.execute("create table t (a)")
base.execute("insert into t values (1), (2)")
total = base.execute("select sum(a) from t").fetchone()
base.close()
total

### signature
import inspect
def takes(a, b=1):
    pass
str(inspect.signature(takes))

### abstract class
from abc import ABC, abstractmethod
class Base(ABC):
    @abstractmethod
    def name(self): ...
class Real(Base):
    def name(self):
        return "real"
Real().name()

### unicodedata
import unicodedata
unicodedata.normalize("NFKD", "é").encode("ascii", "ignore")

### arrays
import array
list(array.array("I", [1, 2]))

### literal evaluation
import ast
ast.literal_eval("[1, {'a': 2}]")

### shell words
import shlex
[shlex.split("a 'b c'"), shlex.quote("x y")]

### file name patterns
import fnmatch
fnmatch.filter(["a.py", "b.txt"], "*.py")

### ip addresses
import ipaddress
[ipaddress.ip_network("10.0.0.0/30").num_addresses, ipaddress.ip_address("10.0.0.1").is_private]

### mail addresses
from email.utils import parseaddr
parseaddr("Ann <a@b.c>")

### group and total
sales = [("pen", 2), ("ink", 5), ("pen", 3)]
totals = {}
for name, n in sales:
    totals[name] = totals.get(name, 0) + n
sorted(totals.items(), key=lambda pair: (-pair[1], pair[0]))

### table of rows
rows = [{"name": "a", "size": 10}, {"name": "bb", "size": 2000}]
"\n".join(f"{row['name']:<4}{row['size']:>8,}" for row in rows)

### equality across types
[1 == 1.0, True == 1, "1" == 1, [1] == (1,), {"a": 1} == {"a": 1.0}, None == 0, b"a" == "a"]

### list methods
line = [3, 1, 2]
line.insert(1, 9)
line.extend([4, 4])
line.remove(3)
[line, line.index(9), line.count(4), line.pop(), line * 2, line + [0], line.copy() == line]

### string multiplication and containment
["ab" * 3, "b" in "abc", "" in "abc", "abc"[1], "abc"[-1], "abc" < "abd", max("hello")]

### multiple returns and tuple index
def bounds(numbers):
    return min(numbers), max(numbers)
low, high = bounds([4, 1, 9])
(low, high)[1] - low

### lambda in a loop
functions = [lambda n=n: n * 10 for n in range(3)]
[function() for function in functions]

### late binding in a loop
functions = [lambda: n for n in range(3)]
[function() for function in functions]

### no value
items = []
for n in range(3):
    items.append(n)
'''
