"""Which blocks become one box, for graphs of every shape."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from affidavit.interfaces.pictures.outline import outline

GRAPHS = st.integers(1, 60).flatmap(
    lambda total: st.tuples(
        st.just(total),
        st.sets(st.tuples(st.integers(0, total - 1), st.integers(0, total - 1)), max_size=150),
        st.sets(st.integers(0, total - 1), max_size=6),
        st.integers(1, 40),
    )
)


def successors(total: int, edges: set[tuple[int, int]]) -> list[tuple[int, ...]]:
    return [tuple(sorted(target for source, target in edges if source == at)) for at in range(total)]


@given(GRAPHS)
@settings(max_examples=150, deadline=None)
def test_each_block_is_in_one_box_and_there_are_not_too_many(
    drawn: tuple[int, set[tuple[int, int]], set[int], int],
) -> None:
    total, edges, kept, most = drawn
    groups = outline(successors(total, edges), 0, kept, most)
    assert sorted(block for group in groups for block in group.blocks) == list(range(total))
    assert len(groups) <= most
    if total <= most:
        assert all(group.kind == "block" for group in groups)


@given(GRAPHS)
@settings(max_examples=100, deadline=None)
def test_a_chain_is_one_way(drawn: tuple[int, set[tuple[int, int]], set[int], int]) -> None:
    total, edges, kept, most = drawn
    after = successors(total, edges)
    for group in outline(after, 0, kept, most):
        if group.kind == "chain":
            assert not kept.intersection(group.blocks) or len(kept) > most // 2
            for source, target in zip(group.blocks, group.blocks[1:], strict=False):
                assert after[source] == (target,)
                assert [at for at in range(total) if target in after[at]] == [source]


@given(GRAPHS)
@settings(max_examples=100, deadline=None)
def test_a_region_is_entered_at_its_first_block(
    drawn: tuple[int, set[tuple[int, int]], set[int], int],
) -> None:
    total, edges, kept, most = drawn
    groups = outline(successors(total, edges), 0, kept, most)
    for group in groups:
        if group.kind in ("region", "loop") and len(groups) > 1:
            inside = set(group.blocks)
            entered = {target for source, target in edges if target in inside and source not in inside}
            assert entered <= {group.blocks[0]}


def test_a_long_chain_is_one_box() -> None:
    groups = outline([(at + 1,) for at in range(11_999)] + [()], 0, [], 300)
    assert [(group.kind, len(group.blocks)) for group in groups] == [("block", 1), ("chain", 11_999)]


def test_a_wide_switch_of_loops_keeps_its_cases() -> None:
    """One block leads to 150 loops of four blocks; each is one box that says so."""
    after: list[tuple[int, ...]] = [tuple(1 + 4 * at for at in range(150))]
    for at in range(150):
        first = 1 + 4 * at
        after += [(first + 1, first + 3), (first + 2, first + 3), (first,), ()]
    groups = outline(after, 0, [], 300)
    assert len(groups) == 151
    assert {(group.kind, len(group.blocks), group.loops) for group in groups[1:]} == {("loop", 4, 1)}


def test_marked_blocks_stay_by_themselves() -> None:
    after: list[tuple[int, ...]] = [(at + 1,) for at in range(999)] + [()]
    groups = outline(after, 0, [500], 300)
    assert [(group.kind, len(group.blocks)) for group in groups] == [
        ("block", 1), ("chain", 499), ("block", 1), ("chain", 499)
    ]  # fmt: skip
