"""join: exactly the pairs that filtering the full matrix gives, whatever the pruning."""

from __future__ import annotations

import importlib
import math
import random
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import resemblance as rs
from resemblance import set_join
from resemblance.metrics import Metric, jaro
from strategies import (
    JIT,
    METRICS,
    SCRIPTS,
    column_of,
    columns,
    counts,
    every_metric,
    examples,
    limited,
    parametrized,
    substituted,
    text_of,
    texts,
    thresholds,
)


def dear(*args: object) -> float:
    """A cost above all estimates but infinity, which stands for what cannot be done."""
    return 1e300


def impossible(*args: object) -> float:
    return math.inf


@pytest.fixture(params=["chosen", "segments", "scans", "lanes"])
def way(request, monkeypatch):
    """Every way to find pairs: the one estimated to cost least, and each by force.

    Metrics that score have two: filters (of signatures, of prefixes), and all pairs in lanes or by
    counting.
    """
    # ``resemblance.join`` is the function; the module of that name is behind it
    module = importlib.import_module("resemblance.join")
    if request.param == "chosen":
        return request.param
    others = {
        "segments": {"_scan_cost": dear, "_lane_cost": dear},
        "scans": {"_segment_cost": impossible, "_lane_cost": dear},
        "lanes": {"_segment_cost": impossible, "_scan_cost": dear},
    }
    for name, cost in others[request.param].items():
        monkeypatch.setattr(module, name, cost)
    lanes = request.param == "lanes"
    monkeypatch.setattr(jaro, "_lane_cost", lambda *args: -math.inf if lanes else math.inf)
    monkeypatch.setattr(set_join, "ENTRY_COST" if lanes else "PAIR_COST", 1e6)
    return request.param


def check(found: rs.Pairs, expected: dict[tuple[int, int], float]) -> None:
    """Same pairs in the same order, same scores bit for bit."""
    assert found.left.dtype == found.right.dtype == np.int64
    pairs = list(zip(found.left.tolist(), found.right.tolist(), strict=True))
    assert pairs == list(expected)
    assert found.score.tolist() == list(expected.values())


# --- against brute force -------------------------------------------------------------------------


@given(columns(max_size=16), limited)
@examples(150)
def test_self_join(way, column, limit):
    metric, threshold = limit
    expected = naive.join(column, metric=naive.reference(metric), **threshold)
    check(rs.join(column, metric=metric, **threshold), expected)


@given(columns(max_size=16), columns(max_size=16), limited)
@examples(150)
def test_two_sides(way, left, right, limit):
    metric, threshold = limit
    found = rs.join(left, right, metric, **threshold)
    check(found, naive.join(left, right, metric=naive.reference(metric), **threshold))
    back = rs.join(right, left, metric, **threshold)
    pairs = sorted(zip(back.right.tolist(), back.left.tolist(), back.score.tolist(), strict=True))
    assert pairs == list(zip(*(part.tolist() for part in found), strict=True))


@given(columns(max_size=16), thresholds())
@examples(60)
def test_the_same_column_on_both_sides(column, threshold):
    """Two sides give every pair, its mirror and the diagonal; a self-join has no right side."""
    check(rs.join(column, column, **threshold), naive.join(column, column, **threshold))


@given(texts(), texts(), st.integers(0, 20))
@examples(100)
def test_case_c034_threshold_equal_to_a_score(way, a, b, k):
    """What passes is decided on the very value the unfiltered call returns."""
    score = float(rs.pairwise([a], [b])[0])
    for threshold in (k / 20, score, np.nextafter(score, 1), np.nextafter(score, 0)):
        if 0 <= threshold <= 1:
            found = rs.join([a], [b], min_similarity=float(threshold))
            assert (len(found.left) == 1) == (score >= threshold)


@pytest.mark.parametrize(
    ("a", "b", "threshold", "kept"),
    [
        ("abcd", "abce", 0.75, True),
        ("abcde", "abcdX", 0.8, True),
        ("bc", "bca", 2 / 3, True),
        ("bc", "bca", 0.8, False),  # the case's 0.8 is the Indel score
        ("", "", 1.0, True),
        ("", "a", 0.0, True),
        ("a", "b", 0.0, True),
    ],
)
def test_exact_thresholds(a, b, threshold, kept):
    assert (len(rs.join([a], [b], min_similarity=threshold).left) == 1) == kept
    assert (len(rs.join([a, b], min_similarity=threshold).left) == 1) == kept


def test_distance_between_integers():
    for limit, expected in ((0.99, [0]), (1.0, [0, 1]), (1.5, [0, 1]), (float("inf"), [0, 1, 2])):
        found = rs.join(["ab"], ["ab", "ax", "xy"], max_distance=limit)
        assert found.right.tolist() == expected


@pytest.mark.parametrize("denominator", range(1, 41) if JIT else range(1, 41, 8))
def test_every_fraction_survives_itself(way, denominator):
    """A score fed back as its own threshold is kept (rapidfuzz loses 270 of 464)."""
    text = "".join(map(chr, range(0x3B0, 0x3B0 + denominator)))
    others = [substituted(text, edits) for edits in range(1, denominator + 1)]
    scores = rs.pairwise([text] * denominator, others)
    for rank, score in enumerate(scores.tolist(), 1):
        found = rs.join([text], others, min_similarity=score)
        assert found.right.tolist() == list(range(rank))


# --- larger, against the matrix, which the textbook has checked ---------------------------------


def filtered(
    left: list, right: list | None, metric: Metric = METRICS[0], **threshold: float
) -> tuple[np.ndarray, ...]:
    kind = "similarity" if "min_similarity" in threshold else "distance"
    matrix = rs.cdist(left, right, metric, score=kind)
    if kind == "similarity":
        within = matrix >= threshold["min_similarity"]
    else:
        within = matrix <= threshold["max_distance"]
    if right is None:
        within = np.triu(within, 1)
    i, j = np.nonzero(within)
    return i, j, matrix[i, j]


@pytest.mark.parametrize("letters", ["ab", SCRIPTS["latin"], SCRIPTS["cjk"], SCRIPTS["emoji"]])
@pytest.mark.parametrize(
    "threshold",
    [{"max_distance": k} for k in (0, 1, 2, 3, 4, 7, 30)]
    + [{"min_similarity": s} for s in (0.0, 0.1, 0.5, 2 / 3, 0.75, 0.8, 0.9, 0.95, 1.0)],
    ids=str,
)
def test_thousands_of_pairs(way, letters, threshold):
    rows = 400 if JIT else 30
    column = column_of(rows, letters, 11, longest=40)
    other = column_of(rows // 2, letters, 12, longest=40) + column[::7]
    for right in (None, other):
        found = rs.join(column, right, **threshold)
        for part, expected in zip(found, filtered(column, right, **threshold), strict=True):
            np.testing.assert_array_equal(part, expected)


@every_metric
@pytest.mark.parametrize("script", ["latin", "spaced"])
@pytest.mark.jit
def test_thousands_of_pairs_of_every_metric(way, metric, script):
    if way == "scans" and not counts(metric):
        return  # the same as segments
    column = column_of(200, SCRIPTS[script], 11, longest=40)
    other = column_of(100, SCRIPTS[script], 12, longest=40) + column[::7]
    limits = [{"min_similarity": s} for s in (0.0, 0.3, 2 / 3, 0.8)]
    limits += [{"max_distance": k} for k in ((1, 4) if counts(metric) else (0.05, 0.35))]
    for threshold in limits:
        for right in (None, other):
            found = rs.join(column, right, metric, **threshold)
            expected = filtered(column, right, metric, **threshold)
            for part, same in zip(found, expected, strict=True):
                np.testing.assert_array_equal(part, same)


@parametrized(metric for metric in METRICS if counts(metric) and (JIT or metric == rs.OSA()))
@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_edits_in_every_place(way, metric, k):
    """Filters cut strings into segments: edits on each side of every cut, and all in one."""
    rng = random.Random(k)
    stem = text_of(24, SCRIPTS["ascii"], rng)
    column = [stem]
    for at in range(len(stem) + 1):
        column += [stem[:at] + "\x01" * k + stem[at:], stem[:at] + "\x01" * k + stem[at + k :]]
        column += [stem[:at] + stem[at + k :], stem[at:] + stem[:at]]
        column.append(stem[:at] + stem[at : at + k + 1][::-1] + stem[at + k + 1 :])
    found = rs.join(column, metric=metric, max_distance=k)
    for part, same in zip(found, filtered(column, None, metric, max_distance=k), strict=True):
        np.testing.assert_array_equal(part, same)


@every_metric
@pytest.mark.parametrize("texts_", [["a"] * 20, [""] * 20, ["", "a", "b", "ab", "ba", " "] * 5])
def test_exact_copies_are_joined_in_full(way, metric, texts_):
    reference = naive.reference(metric)
    for threshold in ({"max_distance": 0}, {"min_similarity": 0.5}, {"min_similarity": 1.0}):
        for right in (None, texts_):
            found = rs.join(texts_, right, metric, **threshold)
            check(found, naive.join(texts_, right, metric=reference, **threshold))


@pytest.mark.jit
def test_long_and_short_together(way):
    rng = random.Random(3)
    long = text_of(3_000, SCRIPTS["mixed"], rng)
    column = ["", "a", long, substituted(long, 2), long[:-3], substituted(long, 40), "b", long]
    for threshold in ({"max_distance": 3}, {"min_similarity": 0.98}):
        for part, expected in zip(
            rs.join(column, **threshold), filtered(column, None, **threshold), strict=True
        ):
            np.testing.assert_array_equal(part, expected)


# --- nulls, empties, nothing ---------------------------------------------------------------------


def test_nulls_pair_with_nothing():
    column = [None, "", None, "", "a"]
    assert rs.join(column, max_distance=9).left.tolist() == [1, 1, 3]
    assert rs.join(column, min_similarity=0.0).right.tolist() == [3, 4, 4]
    assert len(rs.join([None], [None], max_distance=9).left) == 0


@pytest.mark.parametrize("column", [[], ["a"], [None], [None, None]])
def test_nothing_to_join(column):
    for threshold in ({"max_distance": 2}, {"min_similarity": 0.5}):
        check(rs.join(column, **threshold), {})
        check(rs.join(column, [], **threshold), {})
        check(rs.join([], column, **threshold), {})


# --- scores --------------------------------------------------------------------------------------


@given(columns(max_size=10), limited)
@examples(100)
def test_score_may_be_the_other_kind(column, limit):
    metric, threshold = limit
    reference = naive.reference(metric)
    for kind in ("distance", "similarity"):
        found = rs.join(column, metric=metric, score=kind, **threshold)
        for i, j, score in zip(*(part.tolist() for part in found), strict=True):
            assert score == naive.score(column[i], column[j], kind, reference)
        assert len(found.left) == len(naive.join(column, metric=reference, **threshold))


@pytest.mark.parametrize(
    "threshold",
    [{}, {"max_distance": 1, "min_similarity": 0.5}, {"max_distance": -1},
     {"max_distance": float("nan")}, {"min_similarity": 1.01}, {"min_similarity": -0.1},
     {"min_similarity": float("nan")}, {"min_similarity": 80}],
    ids=str,
)  # fmt: skip
def test_wrong_thresholds(threshold):
    with pytest.raises((ValueError, TypeError), match=r"min_similarity|max_distance"):
        rs.join(["a"], **threshold)


# --- blocks --------------------------------------------------------------------------------------


@given(columns(max_size=16), st.booleans(), limited, st.sampled_from([1, 2, 7, 1_000]))
@examples(100)
def test_blocks_are_the_whole_in_order(column, both, limit, block):
    metric, threshold = limit
    right = column if both else None
    whole = rs.join(column, right, metric, **threshold)
    blocks = list(rs.iter_join(column, right, metric, block_pairs=block, **threshold))
    for part in range(3):
        joined = np.concatenate([piece[part] for piece in blocks])
        np.testing.assert_array_equal(joined, whole[part])
        assert joined.dtype == whole[part].dtype


@pytest.mark.jit
def test_blocks_need_bounded_memory():
    """Eight million pairs by blocks: 24 bytes each would be 190 MB at once."""
    column = ["same", "sane"] * 2_000
    rs.join(column[:4], max_distance=1)
    tracemalloc.start()
    try:
        count = largest = 0
        for block in rs.iter_join(column, max_distance=1, block_pairs=100_000, threads=1):
            count += len(block.left)
            largest = max(largest, len(block.left))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 4_000 * 3_999 // 2
    assert largest < 1_000_000
    assert peak < 64 << 20


@given(columns(max_size=16), st.booleans(), limited)
@examples(100)
def test_more_pairs_than_may_be_held(monkeypatch, column, both, limit):
    """The left side is then taken in parts: the same pairs in the same order."""
    metric, threshold = limit
    right = column if both else None
    expected = naive.join(column, right, metric=naive.reference(metric), **threshold)
    for held in (0, 1, 5):
        with monkeypatch.context() as patch:
            patch.setattr(importlib.import_module("resemblance.join"), "HELD_PAIRS", held)
            check(rs.join(column, right, metric, **threshold), expected)


def test_stopping_early_is_fine():
    blocks = rs.iter_join(["a"] * 100, max_distance=0, block_pairs=10)
    first = next(iter(blocks))
    assert first.left[0] == 0
    assert first.right[0] == 1
    blocks.close()
    assert len(rs.join(["a", "a"], max_distance=0).left) == 1


# --- what may not matter -------------------------------------------------------------------------


@given(columns(max_size=16), limited, st.integers(1, 3))
@examples(60)
def test_threads_do_not_matter(column, limit, threads):
    metric, threshold = limit
    expected = rs.join(column, metric=metric, threads=1, **threshold)
    found = rs.join(column, metric=metric, threads=threads, **threshold)
    for part, same in zip(found, expected, strict=True):
        np.testing.assert_array_equal(part, same)


@given(columns(max_size=16), limited, st.data())
@examples(60)
def test_order_of_rows_does_not_matter(column, limit, data):
    metric, threshold = limit
    order = data.draw(st.permutations(range(len(column))))
    found = rs.join([column[row] for row in order], metric=metric, **threshold)
    pairs = {frozenset((order[i], order[j])) for i, j in zip(found.left, found.right, strict=True)}
    expected = naive.join(column, metric=naive.reference(metric), **threshold)
    assert pairs == {frozenset(pair) for pair in expected}


@pytest.mark.parametrize("kind", ["list", "numpy", "packed"])
def test_containers_do_not_matter(kind):
    column = column_of(50, SCRIPTS["mixed"], 4)
    container = {"list": list, "numpy": lambda c: np.array(c, object), "packed": rs.Strings.pack}
    found = rs.join(container[kind](column), max_distance=2)
    check(found, naive.join(column, max_distance=2))
