"""Time, chance, output and what else a script finds around itself."""

# ruff: noqa: E501 - scripts on one line each

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from affidavit.runtime.program import Limits

from .bench import CLOCK, Bench, Host

_CHANCE = (
    "import os, random, secrets, uuid\n[random.random(), random.Random().random(), random.SystemRandom().random(), "
    "str(uuid.uuid4()), secrets.token_hex(4), os.urandom(4).hex(), hash('a') % 1000, str(uuid.uuid1())[:8]]"
)


def test_time_stands_still_and_moves_with_calls_and_sleeps(bench: Bench) -> None:
    source = (
        "import asyncio, time\na = time.time()\nb = time.time()\nawait df.ok(1)\nc = time.time()\n"
        "time.sleep(0.25)\nd = time.time()\nawait asyncio.gather(asyncio.sleep(0.125), asyncio.sleep(0.0625))\n"
        "e = time.time()\n[str(t) for t in (a, b, c, d, e)]"
    )
    moments = [CLOCK, CLOCK, CLOCK + 1, CLOCK + 1.25, CLOCK + 1.375]
    assert bench.value(source) == [str(moment) for moment in moments]


def test_every_way_to_ask_for_the_moment_agrees(bench: Bench) -> None:
    source = (
        "import datetime as dt, time\nfrom datetime import datetime, date\n"
        "class Own(datetime): pass\n"
        "[datetime.now().isoformat(), datetime.today().isoformat(), dt.datetime.now(dt.UTC).isoformat(), "
        "date.today().isoformat(), Own.now().isoformat(), type(Own.now()) is Own, type(datetime.now()) is datetime, "
        "time.strftime('%Y-%m-%dT%H:%M:%S'), time.gmtime().tm_min, time.localtime().tm_hour, time.ctime(), "
        "time.time_ns(), time.asctime(), datetime.now(dt.timezone(dt.timedelta(hours=2))).isoformat(), "
        "datetime.fromtimestamp(0, dt.UTC).year, time.gmtime(0).tm_year]"
    )
    stamp, words = "2023-11-14T22:13:20", "Tue Nov 14 22:13:20 2023"
    assert bench.value(source) == [
        stamp, stamp, f"{stamp}+00:00", "2023-11-14", stamp, True, True,
        stamp, 13, 22, words,
        {"$int": str(int(CLOCK) * 10**9)}, words, "2023-11-15T00:13:20+02:00",
        1970, 1970,
    ]  # fmt: skip


def test_monotonic_clocks_always_advance(bench: Bench) -> None:
    source = (
        "import time\nnames = ('monotonic', 'perf_counter', 'process_time')\n"
        "[getattr(time, n)() < getattr(time, n)() for n in names] + [time.perf_counter_ns() > 0]"
    )
    assert bench.value(source) == [True] * 4


def test_a_script_that_waits_by_reading_the_clock_ends(bench: Bench) -> None:
    source = "import time\nstart = time.time()\nwhile time.time() - start < 2:\n    pass\n'over'"
    assert bench.value(source) == "over"


def test_chance_comes_from_the_seed(bench: Bench) -> None:
    one, two, other = (bench.value(_CHANCE, seed=seed) for seed in (5, 5, 6))
    assert one == two
    assert all(left != right for left, right in zip(one[:6], other[:6], strict=True))


def test_seeding_anew_without_a_seed_comes_from_the_seed(bench: Bench) -> None:
    source = (
        "import random\nrandom.seed()\nmine = random.Random(1)\nmine.seed()\n[random.random(), mine.random()]"
    )
    one, two, other = (bench.value(source, seed=seed) for seed in (5, 5, 6))
    assert one == two != other


def test_clocks_by_number_and_timers_of_code_follow_the_script(bench: Bench) -> None:
    source = (
        "import time, timeit\n[str(time.clock_gettime(time.CLOCK_REALTIME)), time.clock_gettime_ns(time.CLOCK_REALTIME),"
        " time.clock_gettime(time.CLOCK_MONOTONIC), time.clock_gettime(time.CLOCK_PROCESS_CPUTIME_ID),"
        " timeit.timeit('1', number=10), timeit.repeat('1', number=5, repeat=2), timeit.default_timer()]"
    )
    first = bench.value(source)
    assert first[:2] == [str(CLOCK), {"$int": str(int(CLOCK) * 10**9)}]
    assert first == bench.value(source)
    assert "Invalid argument" in bench.error("import time\ntime.clock_gettime(9999)").message


def test_output_is_kept_in_order(bench: Bench) -> None:
    source = (
        "import logging, sys, warnings\nprint('a', end='')\nsys.stderr.write('b')\nprint('c', file=sys.stderr)\n"
        "sys.stdout.write('d\\n')\nsys.stdout.buffer.write('é\\n'.encode())\nlogging.warning('w')\nprint('\\ud800')\n"
    )
    assert bench.run(source).stdout == "abc\nd\né\nWARNING:root:w\n\\ud800\n"


@pytest.mark.parametrize(
    ("source", "limit", "stdout", "cut"),
    [
        ("print('x' * 10, end='')", 10, "x" * 10, 0),
        ("print('x' * 11, end='')", 10, "x" * 10, 1),
        ("print('é' * 10, end='')", 7, "é" * 3, 7),
        ("print('abc')\nprint('d' * 10)\nprint('e')", 8, "abc\ndddd", 6 + 1 + 2),
        (
            "for _ in range(1000):\n    print('日' * 100)",
            400,
            "日" * 100 + "\n" + "日" * 33,
            1000 * 101 - 134,
        ),
    ],
)
def test_output_is_cut_and_says_so(bench: Bench, source: str, limit: int, stdout: str, cut: int) -> None:
    outcome = bench.run(source, limits=Limits(output_bytes=limit))
    assert (outcome.stdout, outcome.stdout_cut) == (stdout, cut)


def test_streams_can_be_redirected_and_closed(bench: Bench) -> None:
    source = (
        "import contextlib, io, sys\nwith contextlib.redirect_stdout(io.StringIO()) as s:\n    print('in')\n"
        "print('out')\nsys.stderr.close()\nprint('after')\ns.getvalue()"
    )
    outcome = bench.run(source)
    assert outcome.value == b'"in\\n"'
    assert outcome.stdout == "out\nafter\n"


def test_threads_and_exit_handlers_finish_as_in_an_interpreter(bench: Bench) -> None:
    source = (
        "import atexit, threading, time\natexit.register(print, 'exit handler')\n"
        "def late():\n    time.sleep(0.05)\n    print('thread')\nthreading.Thread(target=late).start()\n3"
    )
    outcome = bench.run(source)
    assert (outcome.value, outcome.stdout) == (b"3", "thread\nexit handler\n")


def test_tasks_that_are_left_are_cancelled(bench: Bench) -> None:
    host = Host()
    source = (
        "import asyncio\nasync def long():\n    try:\n        await df.hang()\n    finally:\n        print('cancelled')\n"
        "t = asyncio.create_task(long())\nawait asyncio.sleep(0.01)\n1"
    )
    outcome = bench.run(source, host)
    assert (outcome.value, outcome.stdout, host.cancelled) == (b"1", "cancelled\n", 1)


def test_the_surroundings_tell_nothing_of_the_host(bench: Bench) -> None:
    source = "import os, platform, socket, sys, tempfile\n[dict(os.environ), os.getcwd(), socket.gethostname(), platform.node(), sys.argv, sys.stdin.read()]"
    assert bench.value(source) == [{}, "/", "sandbox", "sandbox", ["<script>"], ""]


# Each snippet prints what it finds; the same source is run by a plain interpreter of the same version.
_PLAIN = [
    "import calendar, email.mime.text, xml.dom.minidom, concurrent.futures.thread, json.tool, sqlite3.dump\nprint(calendar.isleap(2024))",
    "import zoneinfo, datetime\nz = zoneinfo.ZoneInfo('America/New_York')\nprint(datetime.datetime(2024, 7, 1, tzinfo=z), len(zoneinfo.available_timezones()) > 400)",
    "try:\n    __import__('zoneinfo').ZoneInfo('No/Where')\nexcept KeyError as e:\n    print(type(e).__name__)",
    "print('żółw'.encode('cp1250'), 'ß'.encode('utf-16-le'), b'\\x80'.decode('cp437'), 'é'.encode('idna'))",
    "import sqlite3\nc = sqlite3.connect(':memory:')\nc.execute('create table t(a)')\nc.executemany('insert into t values(?)', [(i,) for i in range(9)])\nprint(c.execute('select sum(a), count(*) from t').fetchone())",
    "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(3) as pool:\n    print(list(pool.map(lambda n: n * n, range(6))))",
    "import asyncio\nasync def f(n):\n    await asyncio.sleep(0)\n    return n\nasync def g():\n    q = asyncio.Queue(2)\n    async def put():\n        for i in range(4):\n            await q.put(i)\n    t = asyncio.create_task(put())\n    out = [await q.get() for _ in range(4)]\n    await t\n    e = asyncio.Event()\n    asyncio.get_running_loop().call_later(0.01, e.set)\n    await e.wait()\n    return out + list(await asyncio.gather(*map(f, range(3))))\nprint(asyncio.run(g()))",
    "import asyncio\nasync def slow():\n    await asyncio.sleep(30)\nasync def g():\n    try:\n        await asyncio.wait_for(slow(), 0.01)\n    except TimeoutError:\n        return 'late'\nprint(asyncio.run(g()))",
    "import asyncio, queue, threading\nq = queue.Queue()\ndef work():\n    while (x := q.get()) is not None:\n        print(x * 2)\nt = threading.Thread(target=work)\nt.start()\nfor n in (1, 2, None):\n    q.put(n)\nt.join()",
    "import threading, asyncio\nloop = asyncio.new_event_loop()\nt = threading.Thread(target=loop.run_forever)\nt.start()\nprint(asyncio.run_coroutine_threadsafe(asyncio.sleep(0.01, 'from a loop in a thread'), loop).result(5))\nloop.call_soon_threadsafe(loop.stop)\nt.join()\nloop.close()",
    "import signal\nsignal.signal(signal.SIGUSR1, lambda *_: print('signal'))\nsignal.raise_signal(signal.SIGUSR1)",
    "import signal, time\ndef h(*_):\n    raise TimeoutError('alarm')\nsignal.signal(signal.SIGALRM, h)\nsignal.setitimer(signal.ITIMER_REAL, 0.01)\ntry:\n    time.sleep(5)\nexcept TimeoutError as e:\n    print(e)",
    "import gzip, bz2, lzma, zlib, io, zipfile, tarfile\nd = b'a' * 999\nprint([len(m.decompress(m.compress(d))) for m in (gzip, bz2, lzma, zlib)])\nb = io.BytesIO()\nwith zipfile.ZipFile(b, 'w') as z:\n    z.writestr('a.txt', d)\nprint(zipfile.ZipFile(b).namelist())",
    "import hashlib, hmac, base64, secrets\nprint(hashlib.sha3_256(b'a').hexdigest()[:8], hmac.new(b'k', b'm', 'sha256').hexdigest()[:8], hmac.compare_digest('a', 'a'), len(secrets.token_bytes(5)))",
    "import dataclasses, enum, typing, functools\n@dataclasses.dataclass(order=True, slots=True)\nclass P:\n    x: int\n    t: list[str] = dataclasses.field(default_factory=list)\nprint(sorted([P(2), P(1)]), typing.get_type_hints(P))\nclass C(enum.Flag):\n    A = enum.auto()\n    B = enum.auto()\nprint(C.A | C.B)",
    "import traceback\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    print(traceback.format_exc().splitlines()[-1])",
    "import pprint, textwrap, difflib, string, re\npprint.pprint({'b': [1] * 40, 'a': 2})\nprint(re.sub(r'(?P<d>\\d+)', lambda m: str(int(m['d']) + 1), 'a9'), textwrap.fill('a b c', 3))",
    "import weakref, gc\nclass A: pass\na = A()\nr = weakref.ref(a)\ndel a\ngc.collect()\nprint(r() is None)",
    "import ctypes\nprint(ctypes.c_uint8(300).value, ctypes.sizeof(ctypes.c_int))",
    "import os, pathlib\nprint(os.path.abspath('a/../b'), pathlib.Path('/x/y.txt').suffix, os.path.exists('/definitely/not'), os.cpu_count() is not None)",
    "def g():\n    try:\n        yield 1\n    finally:\n        print('closed')\nprint(next(g()))",
    "import decimal, fractions, statistics, cmath\nprint(decimal.Decimal(1) / 3, fractions.Fraction(1, 3) + 1, statistics.stdev([1, 2, 4]), cmath.sqrt(-1))",
    "import locale, gettext\nprint(locale.format_string('%d', 1234), gettext.gettext('a'))",
    "import contextvars, copy, types, inspect\nv = contextvars.ContextVar('v', default=1)\nprint(v.get(), copy.deepcopy({'a': [1]}), inspect.signature(lambda a, *, b=2: 0), types.SimpleNamespace(a=1))",
    "print(*sorted({'b', 'a'}), {1: 'x'} | {2: 'y'}, f'{3.14159:.2f} {255:#x} {\"é\"!a}', 0.1 + 0.2, 10 ** 30, -7 // 2)",
    "exec('x = 5'); print(eval('x + 1'), compile('1', 'f', 'eval').co_filename)",
    "import platform\nprint(platform.python_version(), platform.system())",
]  # fmt: skip


def test_snippets_do_what_a_plain_interpreter_does(bench: Bench) -> None:
    for source in _PLAIN:
        plain = subprocess.run(
            [sys.executable, "-I", "-c", source], capture_output=True, text=True, cwd="/", env={"TZ": "UTC"}
        )
        assert plain.returncode == 0, (source, plain.stderr)
        outcome = bench.run(source)
        assert outcome.error is None, (source, outcome.error)
        assert outcome.stdout == plain.stdout, source


def test_what_cannot_be_had_says_so(bench: Bench) -> None:
    error = bench.error("import tempfile\ntempfile.NamedTemporaryFile()")
    assert error.type in ("FileNotFoundError", "PermissionError")
    hint = bench.error("open('notes.txt', 'w')").hint
    assert "io.StringIO" in hint
    assert "standard library" in bench.error("import pandas").hint


def test_values_survive_the_way(bench: Bench) -> None:
    source = "{'n': None, 'f': 0.5, 'big': 2 ** 64, 's': 'é\\u2028', 'd': {'$x': 1}}"
    assert bench.value(source) == {
        "n": None,
        "f": 0.5,
        "big": {"$int": str(2**64)},
        "s": "é\u2028",
        "d": {"$$x": 1},
    }
    assert json.dumps(bench.value("1.0")) == '{"$float": "1.0"}'
