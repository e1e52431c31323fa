"""Previews and pages of values: bounded, honest about what is cut, and complete when read to the end."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.evidence.citations import resolve
from affidavit.interfaces.mcp.preview import PREVIEW_BYTES, WHOLE_BYTES, kind_of, page, preview, size_of


def _repeated(text: str, times: int) -> str:
    return text * times


TEXTS: st.SearchStrategy[str] = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
LONG: st.SearchStrategy[str] = st.builds(_repeated, TEXTS, st.integers(1, 300))
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS | LONG,
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(TEXTS | LONG, inner, max_size=12),
    max_leaves=60,
)


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


@given(VALUES, st.integers(30, 3000), st.integers(0, 7))
def test_pages_read_to_the_end_give_the_whole(value: Any, max_bytes: int, limit: int) -> None:
    parts, offset = list[Any](), 0
    while offset is not None:
        part = page(value, pointer="/x", offset=offset, limit=limit, max_bytes=max_bytes)
        assert part.returned <= limit or not limit or not part.unit
        if not part.cuts:
            # What is not cut fits; one entry with its brackets or quotes may just exceed it.
            assert size_of(part.value) <= max_bytes + 20 or part.returned == 1
        parts.append(part)
        offset = part.next_offset
    assert all(part.total == parts[0].total for part in parts)
    if any(part.cuts or part.more_cuts for part in parts):
        return
    match value:
        case str():
            assert "".join(part.value for part in parts) == value
        case list():
            assert [item for part in parts for item in part.value] == value
        case dict():
            assert {key: item for part in parts for key, item in part.value.items()} == value
        case _:
            assert parts[0].value == value


@pytest.mark.parametrize(
    "value",
    [
        {f"{n}" * 5000: n for n in range(20)},
        {"k" * 100_000: 1},
        [[["\u0000" * 300] * 20] * 20] * 20,
        {"a": {"b": {"c": {"d": {"e": {"f": {"g": "x" * 9000}}}}}}},
        "\U0001f600" * 100_000,
    ],
)
def test_hostile_shapes_stay_within_the_bound(value: Any) -> None:
    seen = preview(value)
    assert size_of(seen.value) <= PREVIEW_BYTES
    assert seen.cuts or seen.more_cuts
    part = page(value, pointer="", offset=0, limit=0, max_bytes=1000)
    assert part.returned >= 1
    assert size_of(part.value) <= PREVIEW_BYTES + 1000 or part.cuts == ()


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
