"""Pages of values: bounded, honest about what is cut, and complete when read to the end."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.interfaces.mcp.paging import page
from affidavit.runtime.rendering.preview import PREVIEW_BYTES, preview, size_of
from tests.runtime.rendering.strategies import VALUES


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
