"""top_k: the best choices of each query, ties by lower index, padded where there are too few."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import resemblance as rs
from strategies import JIT, SCRIPTS, column_of, columns, examples

KINDS = ("distance", "similarity")

limits = st.one_of(
    st.just({}),
    st.fixed_dictionaries({"max_distance": st.integers(0, 6)}),
    st.fixed_dictionaries({"min_similarity": st.integers(0, 10).map(lambda k: k / 10)}),
)


def check(found: rs.Neighbors, index: list, scores: list, k: int) -> None:
    shape = (len(index), k)
    assert found.index.shape == found.score.shape == shape
    assert found.index.dtype == np.int64
    assert found.score.dtype == np.float64
    np.testing.assert_array_equal(found.index, np.array(index, np.int64).reshape(shape))
    np.testing.assert_array_equal(found.score, np.array(scores, np.float64).reshape(shape))


# --- against brute force -------------------------------------------------------------------------


@given(columns(), columns(), st.integers(1, 6), st.sampled_from(KINDS), limits)
@examples(300)
def test_top_k(queries, choices, k, score, limit):
    found = rs.top_k(queries, choices, k=k, score=score, **limit)
    check(found, *naive.top_k(queries, choices, k, score, **limit), k)


@given(st.integers(0, 30), st.integers(1, 40), st.sampled_from(KINDS))
@examples(40)
def test_ties_go_to_the_lower_index(n, k, score):
    """Strings so few and short that nearly all scores are tied."""
    choices = (["ab", "ba", "a", "", "b"] * 6)[:n]
    found = rs.top_k(["ab", ""], choices, k=k, score=score)
    check(found, *naive.top_k(["ab", ""], choices, k, score), k)


@pytest.mark.parametrize("letters", ["ab", SCRIPTS["latin"], SCRIPTS["cjk"], SCRIPTS["mixed"]])
@pytest.mark.parametrize("score", KINDS)
@pytest.mark.parametrize("k", [1, 5, 50])
def test_many_choices(letters, score, k):
    """Larger, against the matrix (itself checked against the textbook), by a stable sort."""
    rows = 600 if JIT else 60
    choices = column_of(rows, letters, 1, longest=70)
    choices[::9] = [choices[1]] * len(choices[::9])
    queries = choices[:20] + column_of(10, letters, 2, longest=30) + [""]
    matrix = rs.cdist(queries, choices, score=score, dtype="float64")
    index = np.argsort(matrix if score == "distance" else -matrix, axis=1, kind="stable")[:, :k]
    found = rs.top_k(queries, choices, k=k, score=score)
    np.testing.assert_array_equal(found.index, index)
    np.testing.assert_array_equal(found.score, np.take_along_axis(matrix, index, 1))


@pytest.mark.jit
@pytest.mark.parametrize("score", KINDS)
def test_long_choices(score):
    choices = column_of(60, SCRIPTS["greek"], 3, longest=400)
    matrix = rs.cdist(choices[:7], choices, score=score, dtype="float64")
    index = np.argsort(matrix if score == "distance" else -matrix, axis=1, kind="stable")[:, :4]
    np.testing.assert_array_equal(rs.top_k(choices[:7], choices, k=4, score=score).index, index)


# --- nulls, empties, nothing ---------------------------------------------------------------------


def test_nulls_find_nothing_and_are_not_found():
    """polars_ds reads a null choice as the empty string and returns it."""
    found = rs.top_k(["a", None], [None, "abcdef", None], k=2)
    assert found.index.tolist() == [[1, -1], [-1, -1]]
    assert found.score[0, 0] == 1 / 6
    assert np.isnan(found.score).tolist() == [[False, True], [True, True]]


@pytest.mark.parametrize("score", KINDS)
@pytest.mark.parametrize(("queries", "choices"), [([], ["a"]), (["a"], []), ([], []), ([None], [])])
def test_nothing_to_do(queries, choices, score):
    check(
        rs.top_k(queries, choices, k=3, score=score),
        *naive.top_k(queries, choices, 3, score),
        3,
    )


def test_identical_strings_come_first():
    choices = ["ab", "abc", "", "abc"]
    found = rs.top_k(["abc", ""], choices, k=2)
    assert found.index.tolist() == [[1, 3], [2, 0]]
    assert found.score.tolist() == [[1.0, 1.0], [1.0, 0.0]]


@pytest.mark.parametrize("k", [0, -1, 1.5, None])
def test_wrong_k(k):
    with pytest.raises((ValueError, TypeError), match="k"):
        rs.top_k(["a"], ["a"], k=k)


def test_wrong_limits():
    for limit in ({"min_similarity": 1.5}, {"max_distance": -1}):
        with pytest.raises(ValueError, match=next(iter(limit))):
            rs.top_k(["a"], ["a"], **limit)


# --- limits --------------------------------------------------------------------------------------


@given(columns(), columns(), st.floats(0, 1))
@examples(100)
def test_limit_equal_to_a_score_keeps_it(queries, choices, threshold):
    matrix = rs.cdist(queries, choices, score="similarity")
    for limit in {threshold, *matrix[~np.isnan(matrix)][:3].tolist()}:
        found = rs.top_k(queries, choices, k=4, min_similarity=limit)
        with np.errstate(invalid="ignore"):
            within = (matrix >= limit).sum(axis=1)
        np.testing.assert_array_equal((found.index >= 0).sum(axis=1), np.minimum(within, 4))


# --- what may not matter -------------------------------------------------------------------------


@given(columns(), columns(), st.integers(1, 3), st.sampled_from(KINDS))
@examples(60)
def test_threads_do_not_matter(queries, choices, threads, score):
    expected = rs.top_k(queries, choices, k=3, score=score, threads=1)
    found = rs.top_k(queries, choices, k=3, score=score, threads=threads)
    np.testing.assert_array_equal(found.index, expected.index)
    np.testing.assert_array_equal(found.score, expected.score)


@given(columns(), columns(), st.integers(1, 4), st.data())
@examples(60)
def test_order_and_number_of_queries_do_not_matter(queries, choices, k, data):
    expected = rs.top_k(queries, choices, k=k)
    rows = data.draw(st.lists(st.integers(0, max(len(queries) - 1, 0)), max_size=5))
    rows = rows if queries else []
    found = rs.top_k([queries[row] for row in rows], choices, k=k)
    np.testing.assert_array_equal(found.index, expected.index[rows])
    np.testing.assert_array_equal(found.score, expected.score[rows])
