"""Values for property tests, weighted towards the places where encodings go wrong."""

from __future__ import annotations

import datetime as dt
from typing import Any

from hypothesis import strategies as st

ZONES = st.integers(-86_000, 86_000).map(lambda seconds: dt.timezone(dt.timedelta(seconds=seconds)))
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=()), max_size=8)
    | st.binary(max_size=8)
    | st.datetimes()
    | st.datetimes(timezones=ZONES)
    | st.dates()
    | st.decimals(allow_nan=False)
    | st.uuids()
)
KEYS = st.text(st.characters(exclude_categories=()), max_size=4) | st.sampled_from(
    ["$int", "$float", "$text", "$text:YQ==", "$$x", "$", "$\ud800", "$bytes"]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


def nested(levels: int, leaf: Any = 0) -> Any:
    """`leaf` inside so many containers."""
    for level in range(levels):
        leaf = [leaf] if level % 2 else {"a": leaf}
    return leaf
