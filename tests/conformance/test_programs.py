"""Generated programs give on every engine what plain CPython gives: value or error, output, calls."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, given, settings

from affidavit.evidence import values

from .programs import programs
from .world import TREE, Bench, Plain, World, plain_python


def outcome_of(bench: Bench, source: str) -> Plain | None:
    """What an engine makes of a program, in the terms of plain CPython; None when it refuses before running."""
    world = World()
    if bench.engine.unsupported(source, TREE):
        outcome = bench.run(source, world)
        assert outcome.error is not None
        assert outcome.error.code == "engine-unsupported"
        assert world.calls == []
        return None
    outcome = bench.run(source, world)
    calls = tuple(values.decode(call.arguments.get("x", call.arguments.get("text"))) for call in world.calls)
    if outcome.error is not None:
        code = outcome.error.code
        kind = code if code.startswith("value-") else outcome.error.type
        return Plain(error=kind, stdout=outcome.stdout, calls=calls)
    assert outcome.value is not None
    return Plain(value=json.loads(outcome.value), stdout=outcome.stdout, calls=calls)


@settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(source=programs())
def test_a_program_does_what_python_does(bench: Bench, source: str) -> None:
    found = outcome_of(bench, source)
    if found is None:
        assert bench.name != "cpython"
        return
    expected = plain_python(source)
    assert json.dumps(found.value) == json.dumps(expected.value)
    assert found.error == expected.error
    assert found.stdout == expected.stdout
    assert found.calls == expected.calls
