"""cluster: stars do not chain, components do, and the representative follows from rank alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import resemblance as rs
from strategies import examples

METHODS = tuple(naive.CLUSTER)


def as_pairs(pairs: list[tuple[int, int]]) -> rs.Pairs:
    ends = np.array(pairs, np.int64).reshape(-1, 2)
    return rs.Pairs(ends[:, 0].copy(), ends[:, 1].copy(), np.ones(len(pairs)))


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    """Rows and pairs (i < j, sorted), from none to all of them."""
    n = draw(st.integers(0, 14))
    every = [(i, j) for i in range(n) for j in range(i + 1, n)]
    chosen = draw(st.sets(st.sampled_from(every))) if every else set()
    return n, sorted(chosen)


@given(graphs(), st.sampled_from(METHODS), st.data())
@examples(400)
def test_against_the_textbook(graph, method, data):
    n, pairs = graph
    ranks = st.none() | st.lists(st.integers(-3, 3), min_size=n, max_size=n)
    rank = data.draw(ranks)
    found = rs.cluster(
        as_pairs(pairs), n, method=method, rank=None if rank is None else np.array(rank, np.int64)
    )
    assert found.dtype == np.int64
    assert found.shape == (n,)
    assert found.tolist() == naive.CLUSTER[method](pairs, n, rank)


@given(graphs(), st.sampled_from(METHODS), st.data())
@examples(200)
def test_order_of_pairs_does_not_matter(graph, method, data):
    """Pairs may come in any order, either way round, and more than once."""
    n, pairs = graph
    expected = rs.cluster(as_pairs(pairs), n, method=method)
    mixed = data.draw(st.permutations([*pairs, *pairs[:3]]))
    flips = data.draw(st.lists(st.booleans(), min_size=len(mixed), max_size=len(mixed)))
    mixed = [pair[::-1] if flip else pair for pair, flip in zip(mixed, flips, strict=True)]
    np.testing.assert_array_equal(rs.cluster(as_pairs(mixed), n, method=method), expected)


@given(graphs(), st.sampled_from(METHODS), st.data())
@examples(200)
def test_every_cluster_keeps_exactly_one(graph, method, data):
    """Case C023: a representative represents itself, and a star has a pair with each member."""
    n, pairs = graph
    rank = np.array(data.draw(st.permutations(range(n))), np.int64)
    found = rs.cluster(as_pairs(pairs), n, method=method, rank=rank)
    np.testing.assert_array_equal(found[found], found)
    assert (rank[found] <= rank).all()
    if method == "star":
        linked = {frozenset(pair) for pair in pairs}
        assert all(r == i or frozenset((i, r)) in linked for i, r in enumerate(found.tolist()))


def test_stars_do_not_chain():
    pairs = as_pairs([(0, 1), (1, 2), (2, 3)])
    assert rs.cluster(pairs, 4, method="star").tolist() == [0, 0, 2, 2]
    assert rs.cluster(pairs, 4, method="components").tolist() == [0, 0, 0, 0]
    assert rs.cluster(pairs, 4).tolist() == [0, 0, 2, 2]


def test_rank_decides_who_stays():
    pairs = as_pairs([(0, 1), (1, 2)])
    assert rs.cluster(pairs, 3, rank=np.array([1, 0, 1])).tolist() == [1, 1, 1]
    assert rs.cluster(pairs, 3, rank=np.array([2, 1, 0])).tolist() == [0, 2, 2]
    assert rs.cluster(pairs, 3, method="components", rank=np.array([2, 1, 0])).tolist() == [2, 2, 2]
    # of several kept neighbours the first in order of rank, not of rows
    pairs = as_pairs([(0, 2), (1, 2)])
    assert rs.cluster(pairs, 3, rank=np.array([1, 0, 2])).tolist() == [0, 1, 1]


def test_rank_may_be_float():
    pairs = as_pairs([(0, 1)])
    assert rs.cluster(pairs, 2, rank=np.array([0.5, 0.25])).tolist() == [1, 1]


def test_case_c025_a_chain_falls_apart():
    """Neighbours differ in one character, the ends in thirty-five."""
    base = list("abcdefghijklmnopqrstuvwxyz0123456789")
    chain = []
    for i in range(len(base)):
        base[i] = "#"
        chain.append("".join(base))
    pairs = rs.join(chain, max_distance=1)
    assert len(pairs.left) == 35
    star = rs.cluster(pairs, len(chain))
    assert star[-1] != star[0]
    assert np.bincount(star).max() == 2
    distances = rs.cdist(chain)
    assert (distances[np.arange(len(chain)), star] <= 1).all()
    assert (rs.cluster(pairs, len(chain), method="components") == 0).all()
    assert rs.pairwise(chain[:1], chain[-1:])[0] == 1 / 36


def test_large_component():
    """A path of 100,000 rows and a row with 100,000 neighbours: no recursion, no quadratic time."""
    n = 100_000
    step = np.arange(n - 1)
    path = rs.Pairs(step, step + 1, np.ones(n - 1))
    assert not rs.cluster(path, n, method="components").any()
    np.testing.assert_array_equal(rs.cluster(path, n), np.arange(n) // 2 * 2)
    hub = rs.Pairs(np.zeros(n - 1, np.int64), step + 1, np.ones(n - 1))
    for method in METHODS:
        assert not rs.cluster(hub, n, method=method).any()
        last = rs.cluster(hub, n, method=method, rank=-np.arange(n))
        assert last[0] == n - 1


@pytest.mark.parametrize("n", [0, 1, 3])
def test_no_pairs(n):
    for method in METHODS:
        assert rs.cluster(as_pairs([]), n, method=method).tolist() == list(range(n))


def test_wrong_arguments():
    pairs = as_pairs([(0, 3)])
    with pytest.raises(ValueError, match="outside 0 to 2"):
        rs.cluster(pairs, 3)
    with pytest.raises(ValueError, match=r"star.*components"):
        rs.cluster(pairs, 4, method="single")
    with pytest.raises(ValueError, match="rank"):
        rs.cluster(pairs, 4, rank=np.arange(3))
    with pytest.raises(ValueError, match="outside 0 to 3"):
        rs.cluster(as_pairs([(-1, 0)]), 4)
