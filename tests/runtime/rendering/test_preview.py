"""Previews of values: bounded, and honest about what is cut."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import given

from affidavit.evidence.citations import resolve
from affidavit.runtime.rendering.preview import (
    PREVIEW_BYTES,
    WHOLE_BYTES,
    kind_of,
    preview,
    size_of,
    subscripts,
)
from tests.runtime.rendering.strategies import VALUES


@given(VALUES)
def test_a_preview_is_bounded_and_names_what_it_cut(value: Any) -> None:
    seen = preview(value, whole_bytes=64)
    assert size_of(seen.value) <= PREVIEW_BYTES
    if seen.cuts or seen.more_cuts:
        assert seen.value != value
        for cut in seen.cuts:
            there = resolve(cut.pointer, value)
            assert cut.total == len(there)
            assert 0 <= cut.shown < cut.total
    else:
        assert orjson.dumps(seen.value) == orjson.dumps(value)


@given(VALUES)
def test_the_subscripts_of_a_cut_lead_there(value: Any) -> None:
    for cut in preview(value, whole_bytes=64).cuts:
        there = eval(f"value{subscripts(value, cut.pointer)}", {"value": value})
        assert there is resolve(cut.pointer, value)


def test_small_values_are_whole_and_large_ones_are_cut_to_three_items() -> None:
    small = [{"n": n} for n in range(100)]
    assert size_of(small) <= WHOLE_BYTES
    assert preview(small).value == small
    large = [{"n": n, "text": "x" * 600} for n in range(100)]
    seen = preview(large)
    assert [row["n"] for row in seen.value] == [0, 1, 2]
    assert seen.value[0]["text"] == "x" * 500 + "…"
    assert seen.cuts[0].as_json() == {"pointer": "", "shown": 3, "total": 100, "unit": "items"}


def test_pointers_escape_what_pointers_must() -> None:
    value = {"a/b~c": list(range(5000))}
    (cut,) = preview(value).cuts
    assert cut.pointer == "/a~1b~0c"
    assert resolve(cut.pointer, value) == value["a/b~c"]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("null", "null"),
        ("true", "boolean"),
        ("1", "number"),
        ("1.5", "number"),
        ('"x"', "text"),
        ("[]", "list"),
        ("{}", "object"),
    ],
)
def test_kinds_have_plain_words(text: str, word: str) -> None:
    assert kind_of(json.loads(text)) == word
