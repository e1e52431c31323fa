"""What monty 1.4 has of Python, as measured name by name against CPython 3.11. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = [
    "ABSENT_ATTRIBUTES",
    "BUILTIN_METHODS",
    "BUILTIN_TYPES",
    "CLASSES",
    "CODECS",
    "CONSUMERS",
    "DUNDER_METHODS",
    "MODULES",
    "MUTATORS",
    "ORDERLESS",
    "PURE",
    "REFUSED_BUILTINS",
    "SET_METHODS",
]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Importable modules and the names in them that behave as in CPython. Left out on purpose although they are there:
# names whose value differs (last digits of `math.gamma`, `sys.version`), and everything that asks the system.
MODULES: Final[Mapping[str, frozenset[str]]] = {
    "asyncio": _words("gather run sleep"),
    "base64": _words(
        "a85decode a85encode b16decode b16encode b32decode b32encode b32hexdecode b32hexencode "
        "b64decode b64encode b85decode b85encode decodebytes encodebytes standard_b64decode "
        "standard_b64encode urlsafe_b64decode urlsafe_b64encode"
    ),
    "binascii": _words(
        "Error a2b_base64 a2b_hex a2b_qp a2b_uu b2a_base64 b2a_hex b2a_qp b2a_uu crc32 crc_hqx "
        "hexlify unhexlify"
    ),
    "bisect": _words("bisect bisect_left bisect_right insort insort_left insort_right"),
    "collections": _words("Counter defaultdict deque namedtuple"),
    "copy": _words("copy deepcopy"),
    "csv": _words(
        "Dialect DictReader DictWriter Error QUOTE_ALL QUOTE_MINIMAL QUOTE_NONE QUOTE_NONNUMERIC "
        "excel excel_tab reader unix_dialect writer"
    ),
    "dataclasses": _words("FrozenInstanceError MISSING dataclass field is_dataclass"),
    "datetime": _words("date datetime time timedelta timezone"),
    "decimal": _words(
        "BasicContext Clamped Context ConversionSyntax Decimal DecimalException DecimalTuple "
        "DefaultContext DivisionByZero DivisionImpossible DivisionUndefined ExtendedContext "
        "FloatOperation HAVE_CONTEXTVAR HAVE_THREADS Inexact InvalidContext InvalidOperation MAX_EMAX "
        "MAX_PREC MIN_EMIN MIN_ETINY Overflow ROUND_05UP ROUND_CEILING ROUND_DOWN ROUND_FLOOR "
        "ROUND_HALF_DOWN ROUND_HALF_EVEN ROUND_HALF_UP ROUND_UP Rounded Subnormal Underflow "
        "getcontext localcontext setcontext"
    ),
    "functools": _words("cache lru_cache partial reduce"),
    "hashlib": _words(
        "blake2b blake2s md5 new pbkdf2_hmac sha1 sha224 sha256 sha384 sha3_224 sha3_256 sha3_384 "
        "sha3_512 sha512 shake_128 shake_256"
    ),
    "itertools": _words(
        "accumulate chain combinations combinations_with_replacement compress count cycle dropwhile "
        "filterfalse groupby islice pairwise permutations product repeat starmap takewhile tee "
        "zip_longest"
    ),
    "json": _words("JSONDecodeError dumps loads"),
    "math": _words(
        "acos acosh asin asinh atan atan2 atanh ceil comb copysign cos cosh degrees dist e exp exp2 "
        "expm1 fabs factorial floor fmod frexp fsum gcd hypot inf isclose isfinite isinf isnan isqrt "
        "lcm ldexp log log10 log1p log2 modf nan nextafter perm pi pow prod radians remainder sin "
        "sinh sqrt tan tanh tau trunc ulp"
    ),
    "os": _words(
        "altsep curdir defpath devnull environ extsep fspath getenv linesep pardir path pathsep sep"
    ),
    "os.path": _words(
        "altsep basename commonpath commonprefix curdir defpath devnull dirname extsep isabs join "
        "normcase normpath pardir pathsep sep split splitdrive splitext"
    ),
    "pathlib": _words("Path"),
    "random": _words(
        "Random betavariate choice choices expovariate gammavariate gauss getrandbits lognormvariate "
        "normalvariate paretovariate randbytes randint random randrange sample seed shuffle "
        "triangular uniform vonmisesvariate weibullvariate"
    ),
    "re": _words(
        "A ASCII DOTALL I IGNORECASE M MULTILINE Match Pattern S compile error escape findall "
        "finditer fullmatch match search split sub"
    ),
    "sys": _words("byteorder exit float_info maxsize maxunicode stderr stdout"),
    "time": _words(
        "altzone asctime ctime daylight gmtime localtime mktime monotonic perf_counter sleep strftime "
        "strptime time timezone tzname"
    ),
    "tomllib": _words("TOMLDecodeError loads"),
    "typing": _words(
        "Annotated Any Callable ClassVar Dict Final FrozenSet Generator Generic Iterable Iterator "
        "List Literal Mapping Never NoReturn Optional Protocol Self Sequence Set TYPE_CHECKING Tuple "
        "Type TypeVar Union"
    ),
    "unicodedata": _words("category combining is_normalized lookup name normalize"),
}

# Classes of those modules, and what can be asked of the class itself.
CLASSES: Final[Mapping[str, frozenset[str]]] = {
    "datetime.datetime": _words("combine fromisoformat max min now resolution strptime"),
    "datetime.date": _words("fromisoformat max min resolution today"),
    "datetime.time": _words("fromisoformat max min resolution"),
    "datetime.timedelta": _words("max min resolution"),
    "datetime.timezone": _words("max min utc"),
    "decimal.Decimal": _words("from_float"),
    "pathlib.Path": frozenset(),
    "collections.Counter": _words("fromkeys"),
    "collections.deque": frozenset(),
    "collections.defaultdict": _words("fromkeys"),
    "itertools.chain": _words("from_iterable"),
    "random.Random": frozenset(),
}

# Builtins that are missing, or present and different: `hash` gives other numbers, `eval` would escape these rules.
REFUSED_BUILTINS: Final = _words(
    "aiter anext ascii breakpoint bytearray callable classmethod compile complex delattr dir eval exec globals hash "
    "help input issubclass locals memoryview object property slice staticmethod super vars "
    "BaseExceptionGroup BlockingIOError BrokenPipeError BufferError BytesWarning ChildProcessError "
    "ConnectionAbortedError ConnectionError ConnectionRefusedError ConnectionResetError DeprecationWarning EOFError "
    "EncodingWarning EnvironmentError ExceptionGroup FloatingPointError FutureWarning GeneratorExit IOError "
    "ImportWarning IndentationError InterruptedError PendingDeprecationWarning ProcessLookupError "
    "PythonFinalizationError ReferenceError ResourceWarning RuntimeWarning StopAsyncIteration SyntaxWarning "
    "SystemError TabError UnicodeError UnicodeTranslateError UnicodeWarning UserWarning Warning"
)

# Attributes and methods that no object of monty has, whatever its type.
ABSENT_ATTRIBUTES: Final = _words(
    "format_map maketrans translate bit_count bit_length conjugate from_bytes to_bytes is_integer difference_update "
    "intersection_update symmetric_difference_update isocalendar toordinal fromordinal fromisocalendar timetuple "
    "utctimetuple utcnow utcfromtimestamp subn groupindex lastindex lastgroup endpos "
    "default_factory add_note with_traceback create_task as_uri relative_to is_relative_to"
)

# Methods of built-in types: callable, and no values (`key=str.lower`, `add = found.append`).
BUILTIN_METHODS: Final = _words(
    "add append as_integer_ratio capitalize casefold center clear copy decode difference discard encode "
    "endswith expandtabs extend find format fromhex fromkeys get hex insert intersection isalnum isalpha isascii "
    "isdecimal isdigit isdisjoint isidentifier islower isnumeric isprintable isspace issubset issuperset istitle "
    "isupper items join keys ljust lower lstrip partition pop popitem remove removeprefix removesuffix replace reverse "
    "rfind rindex rjust rpartition rsplit rstrip setdefault sort split splitlines startswith strip swapcase "
    "symmetric_difference union update upper values zfill"
)

BUILTIN_TYPES: Final = _words("str int float bytes bool list dict set frozenset tuple range")

# Special methods that are called where Python calls them.
DUNDER_METHODS: Final = _words(
    "__init__ __str__ __repr__ __eq__ __ne__ __hash__ __add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ "
    "__floordiv__ __mod__ __pow__ __neg__ __abs__ __invert__ __and__ __or__ __getitem__ __setitem__ __contains__ "
    "__iter__ __next__ __call__ __enter__ __exit__ __int__ __float__ __index__ __round__ __divmod__ __post_init__"
)

# Builtins that take everything out of an iterable at once, so that nobody can tell a list from a generator.
CONSUMERS: Final = _words(
    "list tuple set frozenset dict sorted sum min max any all Counter deque len enumerate zip map filter"
)

# Builtins that do nothing but give a value.
PURE: Final = _words(
    "abs bool bytes chr dict divmod enumerate float format frozenset getattr hasattr hex int isinstance len list max "
    "min oct ord bin pow range repr reversed round set sorted str sum tuple type zip map filter any all"
)

# Builtins whose result does not depend on the order of what they are given.
ORDERLESS: Final = _words("sorted set frozenset sum min max any all len Counter")

SET_METHODS: Final = _words("union intersection difference symmetric_difference")

MUTATORS: Final = _words(
    "append appendleft add insert extend extendleft pop popleft popitem remove discard clear update setdefault sort "
    "reverse rotate"
)

CODECS: Final = _words("utf-8 utf8 utf_8 UTF-8 ascii us-ascii")
