"""The corpus on every engine: what plain CPython gives, or refused before anything happened."""

from __future__ import annotations

import json
import sys

import pytest

from .snippets import SNIPPETS, Snippet
from .world import TREE, Bench, World, plain_python

_FITTING = [snippet for snippet in SNIPPETS if sys.version_info >= (3, snippet.since)]


@pytest.mark.parametrize("snippet", _FITTING, ids=lambda snippet: snippet.name)
def test_a_snippet_gives_what_python_gives(bench: Bench, snippet: Snippet) -> None:
    expected = plain_python(snippet.source)
    assert expected.error is None
    world = World()
    refused = bench.engine.unsupported(snippet.source, TREE)
    outcome = bench.run(snippet.source, world)
    if refused:
        assert bench.name != "cpython"
        assert outcome.error is not None
        assert outcome.error.code == "engine-unsupported"
        assert (world.calls, outcome.stdout) == ([], "")
        return
    assert outcome.error is None, outcome.error
    value = json.loads(outcome.value) if outcome.value is not None else None
    assert json.dumps(value) == json.dumps(expected.value)
    assert outcome.stdout == expected.stdout
    made, wanted = [call.arguments["x"] for call in world.calls], list(expected.calls)
    if "as_completed" in snippet.source:  # keeps its futures in a set: any order
        made, wanted = sorted(made), sorted(wanted)
    assert made == wanted


def test_the_corpus_is_worth_its_name(bench: Bench) -> None:
    accepted = [snippet for snippet in _FITTING if not bench.engine.unsupported(snippet.source, TREE)]
    least = len(_FITTING) if bench.name == "cpython" else 100
    assert len(accepted) >= least
