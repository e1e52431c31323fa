"""Values as scripts return them, small and large."""

from typing import Any

from hypothesis import strategies as st

__all__ = ["VALUES"]


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
