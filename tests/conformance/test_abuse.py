"""What scripts must not get: every attempt ends in a clear error, the host lives, and the next run works."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from affidavit.runtime.program import Limits

from .world import Bench, World

_LIMITS = Limits(
    calls=2_000, cpu_seconds=1.5, wall_seconds=15.0, memory_bytes=128 << 20, output_bytes=1 << 20
)

# Each must end in an error.
_REFUSED = {
    "fork": "import os\nos.fork()",
    "subprocess": "import subprocess\nsubprocess.check_output(['id'])",
    "spawn": "import os\nos.posix_spawn('/bin/true', ['true'], {})",
    "read a file": "open('/etc/passwd').read()",
    "read by path": "from pathlib import Path\nPath('/etc/passwd').read_text()",
    "write a file": "open('/tmp/affidavit_abuse', 'w').write('x')",
    "list a folder": "import os\nos.listdir('/')",
    "socket": "import socket\nsocket.create_connection(('127.0.0.1', 9))",
    "signal the parent": "import os, signal\nos.kill(os.getppid(), 0)",
    "kill everything": "import os\nos.kill(-1, 9)",
    "module reach-through": "import json\njson.codecs.builtins.open('/etc/passwd').read()",
    "process by a library": "import random\nrandom._os.popen('id').read()",
    "deep value": "a = []\nfor _ in range(200_000):\n    a = [a]\na",
    "cyclic value": "a = []\na.append(a)\na",
    "deep source": "x = " + "(" * 3000 + "1" + ")" * 3000,
    "long value": "'x' * 100_000_000",
    "recursion": "def f(n):\n    return f(n + 1)\nf(0)",
    "hard exit": "import os\nos._exit(7)",
    "abort": "import os\nos.abort()",
    "exec a program": "import os\nos.execv('/bin/true', ['true'])",
    "unmount or mount": "import os\nos.chroot('/')",
    "big argument": "await df.tool.math.echo('x' * 50_000_000)",
    "endless loop in except": "while True:\n    try:\n        while True: pass\n    except: pass",
    "width": "f'{1:>{10 ** 10}}'",
}

# Each may end well, as long as it gives nothing away.
_HARMLESS = {
    "system": "import os\nos.system('echo $AFFIDAVIT_TEST_SECRET > /tmp/affidavit_abuse') == 0",
    "foreign functions": "import ctypes\nctypes.CDLL(None).system(b'echo x > /tmp/affidavit_abuse') == 0",
    "environment": "import os\nlist(os.environ)",
    "object graph": "[c.__name__ for c in ().__class__.__base__.__subclasses__()][:3]",
    "frames": "import sys\nsys._getframe(0).f_back is None",
    "globals of an operation": "list(df.tool.math.ten.__globals__)",
    "regular expression": "import re\nre.match(r'(a+)+$', 'a' * 28 + 'b')",
    "output flood": "for n in range(100):\n    print('x' * 1_000_000)\n1",
    "patched library": "import json\njson.dumps = json.loads = lambda *a, **k: 'pwned'\nawait df.tool.math.ten(1)",
    "patched output": "import sys\nsys.stdout.write('said\\n')\nsys.stdout = None\n1",
    "many calls": "import asyncio\nlen(await asyncio.gather(*[df.tool.math.ten(n) for n in range(3_000)]))",
    "threads": "import threading\nfor _ in range(300):\n    threading.Thread(target=lambda: None).start()\n1",
    "changed result": "got = await df.tool.math.give()\ngot.append(666)\ngot",
    "replaced df": "df = None\n1",
    "broken repr": "class A:\n    def __repr__(self):\n        raise ValueError('x')\nraise ValueError(str(A()))",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setenv("AFFIDAVIT_TEST_SECRET", "hunter2")


@pytest.mark.parametrize("name", _REFUSED)
def test_an_attempt_ends_in_a_clear_error(bench: Bench, name: str) -> None:
    world = World()
    outcome = bench.run("await df.tool.math.ten(1)\n" + _REFUSED[name], world, limits=_LIMITS)
    assert outcome.error is not None, outcome
    assert outcome.error.code
    assert outcome.error.message or outcome.error.type
    if outcome.error.code not in ("engine-unsupported", "script-syntax"):
        assert world.paths[0] == "tool.math.ten"
    assert not Path("/tmp/affidavit_abuse").exists()
    assert bench.value("1 + 1") == 2


@pytest.mark.parametrize("name", _HARMLESS)
def test_an_attempt_gives_nothing_away(bench: Bench, name: str) -> None:
    given = [1, 2]
    world = World(given=given)
    outcome = bench.run(_HARMLESS[name], world, limits=_LIMITS)
    shown = json.dumps(
        [
            (outcome.value or b"").decode(),
            outcome.stdout,
            outcome.error and [outcome.error.message, outcome.error.traceback],
        ]
    )
    for secret in ("hunter2", os.environ.get("PATH", "hunter2"), sys.prefix + "/bin"):
        assert secret not in shown
    assert outcome.reason != "lost"
    assert outcome.value != b"true" or name not in ("system", "foreign functions")
    assert not Path("/tmp/affidavit_abuse").exists()
    assert given == [1, 2]
    assert json.dumps(1) == "1"
    assert bench.value("1 + 1") == 2
