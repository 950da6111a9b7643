"""Every metric in every call: one driver, against the textbook.

Columns mix lengths on both sides of the lane boundaries, scripts, copies, nulls and empties in
every place. Scores are compared bit for bit: kernels evaluate formulas in the textbook's order.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import resemblance as rs
from resemblance.metrics import RECORDS, Metric, resolve
from strategies import (
    JIT,
    LANES,
    METRICS,
    SCRIPTS,
    column_of,
    columns,
    counts,
    edited,
    every_counting_metric,
    every_metric,
    every_scoring_metric,
    examples,
    parametrized,
    scripts,
    text_of,
    texts,
    thresholds,
)

KINDS = ("distance", "similarity")

REFERENCES = {
    metric: naive.Reference(*(lru_cache(1 << 14)(score) for score in naive.reference(metric)))
    for metric in METRICS
}
"""With a memory: the calls of one example score the same pairs again and again."""

Column = list[str | None]


# --- the driver ----------------------------------------------------------------------------------


class Driver:
    """All calls of one metric on the same texts, each compared with the textbook's."""

    def __init__(self, metric: Metric, **options: Any) -> None:
        self.metric = metric
        self.reference = REFERENCES[metric]
        self.options = {"metric": metric, **options}

    def matrices(self, left: Column, right: Column, kind: str, pack: Callable = list) -> None:
        options = {**self.options, "score": kind}
        expected = naive.cdist(left, right, kind, self.reference)
        expected = np.array(expected, np.float64).reshape(len(left), len(right))
        a, b = pack(left), pack(right)
        np.testing.assert_array_equal(rs.cdist(a, b, **options), expected)
        np.testing.assert_array_equal(rs.cdist(b, a, **options), expected.T)

    def square(self, column: Column, kind: str, pack: Callable = list) -> None:
        """One side, the same side twice, a copy: RapidFuzz#387 differed where None was."""
        options = {**self.options, "score": kind}
        n = len(column)
        expected = np.array(naive.cdist(column, None, kind, self.reference)).reshape(n, n)
        packed = pack(column)
        np.testing.assert_array_equal(rs.cdist(packed, **options), expected)
        np.testing.assert_array_equal(rs.cdist(packed, packed, **options), expected)
        np.testing.assert_array_equal(rs.cdist(packed, pack(column), **options), expected)
        above = naive.pdist(column, kind, self.reference)
        np.testing.assert_array_equal(rs.pdist(packed, **options), np.array(above, np.float64))

    def pairs(self, left: Column, right: Column, kind: str, pack: Callable = list) -> None:
        options = {**self.options, "score": kind}
        expected = np.array(naive.pairwise(left, right, kind, self.reference), np.float64)
        a, b = pack(left), pack(right)
        np.testing.assert_array_equal(rs.pairwise(a, b, **options), expected)
        np.testing.assert_array_equal(rs.pairwise(b, a, **options), expected)

    def neighbours(
        self, queries: Column, choices: Column, k: int, kind: str, **limit: float
    ) -> None:
        index, score = naive.top_k(queries, choices, k, kind, metric=self.reference, **limit)
        found = rs.top_k(queries, choices, k=k, score=kind, **limit, **self.options)
        shape = (len(queries), k)
        np.testing.assert_array_equal(found.index, np.array(index, np.int64).reshape(shape))
        np.testing.assert_array_equal(found.score, np.array(score, np.float64).reshape(shape))

    def joins(self, left: Column, right: Column | None, block: int, **threshold: float) -> None:
        expected = naive.join(left, right, metric=self.reference, **threshold)
        found = rs.join(left, right, **threshold, **self.options)
        assert triples(found) == [(*pair, score) for pair, score in expected.items()]
        blocks = rs.iter_join(left, right, block_pairs=block, **threshold, **self.options)
        for part, whole in zip(map(np.concatenate, zip(*blocks, strict=True)), found, strict=True):
            np.testing.assert_array_equal(part, whole)
            assert part.dtype == whole.dtype

    def duplicates(self, column: Column, keep: str, method: str, **threshold: float) -> None:
        if not counts(self.metric) and threshold.get("max_distance", 0) >= 1:
            with pytest.raises(ValueError, match="all texts would be duplicates"):
                rs.dedup(column, **threshold, **self.options)
            return
        expected, pairs = naive.dedup(
            column, keep=keep, method=method, metric=self.reference, **threshold
        )
        found = rs.dedup(column, keep=keep, method=method, **threshold, **self.options)
        assert found.representative.tolist() == expected
        assert triples(found.pairs) == [(*pair, score) for pair, score in pairs.items()]
        kind = "distance" if "max_distance" in threshold else "similarity"
        for row, head in enumerate(expected):
            assert found.kept[row] == (row == head)
            score = naive.score(column[row], column[head], kind, self.reference)
            np.testing.assert_equal(found.score[row], np.nan if row == head else score)


def triples(pairs: rs.Pairs) -> list[tuple[int, int, float]]:
    return list(zip(*(part.tolist() for part in pairs), strict=True))


def chunked(column: Column) -> pa.ChunkedArray:
    """The column as Arrow chunks of unequal lengths, an empty one among them."""
    cuts = [0, 1, 1, 4, max(len(column), 4)]
    chunks = [column[a:b] for a, b in itertools.pairwise(cuts)]
    return pa.chunked_array([pa.array(chunk, pa.string()) for chunk in chunks])


def mixed(seed: int, rows: int) -> Column:
    """Every lane boundary and script, near and exact copies; nulls and empties first, last, in."""
    rng = random.Random(seed)
    sizes = [rng.choice(LANES if JIT else LANES[:10]) for _ in range(rows)]
    column: Column = [None, ""]
    for size in sizes:
        text = text_of(size, SCRIPTS[rng.choice(sorted(SCRIPTS))], rng)
        at = rng.randint(0, size)
        column.append(text)
        column.append(text[:at] + rng.choice("ab é") + text[at + rng.randint(0, 2) :])
    column += [column[2], None, "", column[3]]
    return column


@every_metric
@pytest.mark.parametrize("threads", [1, pytest.param(2, marks=pytest.mark.jit)])
def test_mixed_columns(metric, threads):
    """What :func:`test_any_columns` leaves to chance."""
    driver = Driver(metric, threads=threads)
    left, right = mixed(threads, 10 if JIT else 3), mixed(threads + 2, 6 if JIT else 2)
    for kind in KINDS:
        driver.matrices(left, right, kind)
        driver.square(left, kind)
        driver.pairs(left + right, (right + left)[::-1], kind)
        driver.neighbours(left, right, 5, kind)
    least = 0.7
    driver.neighbours(left, right, 3, "similarity", min_similarity=least)
    driver.joins(left, None, 7, min_similarity=least)
    driver.joins(left, right, 7, min_similarity=0.3)
    driver.joins(left, right, 1_000, max_distance=9 if counts(metric) else 0.4)
    driver.duplicates(left, "first", "star", min_similarity=least)


@every_metric
@given(st.data(), columns(max_size=9), columns(max_size=9))
@examples(25)
def test_any_columns(metric, data, left, right):
    driver = Driver(metric, threads=data.draw(st.sampled_from([1, 2])))
    kind = data.draw(st.sampled_from(KINDS))
    limit = data.draw(st.one_of(st.just({}), thresholds(metric)))
    threshold = data.draw(thresholds(metric))
    pack = list
    if not any("\ud800" <= c <= "\udfff" for text in left + right for c in text or ""):
        pack = data.draw(st.sampled_from([list, chunked, rs.Strings.pack]))
    driver.matrices(left, right, kind, pack)
    driver.square(left, kind, pack)
    driver.pairs(left, data.draw(st.permutations(left)), kind, pack)
    driver.neighbours(left, right, data.draw(st.integers(1, 5)), kind, **limit)
    block = data.draw(st.sampled_from([1, 3, 1_000]))
    driver.joins(left, None, block, **threshold)
    driver.joins(left, right, block, **threshold)
    keep = data.draw(st.sampled_from(["first", "last", "longest", "shortest"]))
    method = data.draw(st.sampled_from(sorted(naive.CLUSTER)))
    driver.duplicates(left, keep, method, **threshold)


@every_metric
@given(st.data())
@examples(40)
def test_any_pair(metric, data):
    """Two texts a few edits apart, in a matrix of one, in one of two, and in a pair."""
    a = data.draw(texts())
    b = data.draw(edited(a))
    driver = Driver(metric)
    for kind in KINDS:
        driver.matrices([a], [b], kind)
        driver.matrices([a, ""], [b], kind)
        driver.pairs([a], [b], kind)


# --- lanes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "script"),
    [
        (metric, script)
        for metric in METRICS
        for script in (SCRIPTS if metric in (rs.Levenshtein(), rs.Jaro()) else ["binary", "mixed"])
    ],
    ids=lambda value: value if isinstance(value, str) else value.label,
)
def test_every_pair_of_lane_boundaries(metric, script):
    rng = random.Random(script)
    letters = SCRIPTS[script]
    sizes = LANES if JIT else LANES[1::4]
    left = [text_of(size, letters, rng) for size in sizes]
    right = [text_of(size, letters, rng) for size in sizes]
    driver = Driver(metric)
    driver.matrices(left, right, "distance")
    driver.pairs([text for text in left for _ in right], right * len(left), "distance")


@every_metric
@given(st.data())
@examples(12)
def test_one_lane_class_full(metric, data):
    """More patterns than one block of lanes holds, of one length: no lane sees its neighbour."""
    size = data.draw(st.sampled_from([1, 7, 8, 9, 16, 17, 32, 33, 64, 65, 129]))
    letters = data.draw(scripts)
    rng = random.Random(data.draw(st.integers(0, 1 << 16)))
    rows = data.draw(st.sampled_from([1, 2, 63, 64, 65, 130])) if JIT else 20
    left = [text_of(size, letters, rng) for _ in range(rows)]
    right = [text_of(rng.choice((0, 1, size, size + 1)), letters, rng) for _ in range(2)]
    right.append(left[-1])
    Driver(metric).matrices(left, right, "distance")


@every_metric
@given(scripts, st.integers(0, 1 << 16))
@examples(5)
def test_texts_that_share_their_beginnings(metric, letters, seed):
    """The lanes resume from saved states: prefixes of one another, deeper than states are kept."""
    rng = random.Random(seed)
    stem = text_of(150 if JIT else 40, letters, rng)
    nested = [stem[:k] for k in rng.sample(range(len(stem)), 45 if JIT else 12)]
    branches = [text + rng.choice(letters) for text in nested[::2]]
    family = [*nested, *branches, nested[0], stem]
    rng.shuffle(family)
    patterns = ["", stem[3:20], *(text_of(n, letters, rng) for n in (5, 12, 40, 70))]
    Driver(metric).matrices(patterns, family, "distance")


# --- longer texts, larger columns ----------------------------------------------------------------


def slow_without_jit(metric):
    """A metric that looks at every cell of a table takes a NumPy call for each operation on one."""
    if not JIT and metric == rs.DamerauLevenshtein():
        pytest.skip("long texts take too long without the JIT")


@every_metric
@pytest.mark.parametrize(
    "script", ["mixed", *(pytest.param(s, marks=pytest.mark.jit) for s in ("binary", "spaced"))]
)
def test_lengths_of_several_words(metric, script):
    """Above 64, above 128, and hundreds of characters: near copies and unrelated ones."""
    slow_without_jit(metric)
    rng = random.Random(script)
    sizes = (65, 128, 129, 193, 300) if JIT else (65, 129)
    stems = [text_of(size, SCRIPTS[script], rng) for size in sizes]
    near = [stem[:40] + "#" + stem[42:60] + stem[61:60:-1] + stem[62:] for stem in stems]
    driver = Driver(metric)
    for kind in KINDS:
        driver.matrices(stems, [*near, "", "ab a", stems[0]], kind)
        driver.pairs(stems + near, near + near[::-1], kind)
        driver.neighbours(stems, [*near, "", *stems], 4, kind)
    driver.joins([*stems, *near], None, 10, min_similarity=0.8)


@every_metric
@pytest.mark.parametrize("longest", [8, 16, 32, 64, 90])
@pytest.mark.jit
def test_many_blocks_of_lanes(metric, longest):
    """Hundreds of patterns of one class, against the kernels of single pairs."""
    rng = random.Random(longest)
    sizes = range(longest // 2 + 1, longest + 1)
    right = [text_of(rng.choice(sizes), SCRIPTS["ascii"], rng) for _ in range(1100)]
    left = [text_of(size, SCRIPTS["ascii"], rng) for size in (1, longest, 2 * longest)] + right[
        ::400
    ]
    found = rs.cdist(left, right, metric, score="similarity")
    for text, row in zip(left, found, strict=True):
        np.testing.assert_array_equal(row, rs.pairwise([text] * len(right), right, metric))


@every_metric
@pytest.mark.parametrize("script", ["latin", "cjk", "spaced"])
@pytest.mark.jit
def test_hundreds_of_rows(metric, script):
    """More than a tile and a block of lanes: a sample of the matrix against the textbook, the
    other calls against the matrix."""
    left = column_of(230, SCRIPTS[script], 1, longest=30)
    right = column_of(150, SCRIPTS[script], 2, longest=30) + left[::11]
    left[5] = right[7] = None
    reference = REFERENCES[metric]
    similar = rs.cdist(left, right, metric, score="similarity")
    distant = rs.cdist(left, right, metric)
    rng = random.Random(3)
    for _ in range(400):
        i, j = rng.randrange(len(left)), rng.randrange(len(right))
        for matrix, kind in ((similar, "similarity"), (distant, "distance")):
            expected = naive.score(left[i], right[j], kind, reference)
            np.testing.assert_equal(float(matrix[i, j]), expected)
    for score, matrix in (("similarity", -similar), ("distance", distant)):
        found = rs.top_k(left, right, metric, k=7, score=score)
        index = np.argsort(matrix, axis=1, kind="stable")[:, :7]
        scores = np.take_along_axis(np.abs(matrix), index, 1)
        np.testing.assert_array_equal(found.index, np.where(np.isnan(scores), -1, index))
        np.testing.assert_array_equal(found.score, scores)
    own = rs.cdist(left, metric=metric, score="similarity")
    np.testing.assert_array_equal(own, own.T)
    np.testing.assert_array_equal(
        rs.pdist(left, metric, score="similarity"), own[np.triu_indices(len(left), 1)]
    )
    for least in (0.0, 0.3, 0.5, 0.8, 1.0):
        check_join(left, right, metric, similar, least)
        check_join(left, None, metric, np.where(np.tri(len(left)), np.nan, own), least)


def check_join(
    left: Column, right: Column | None, metric: Metric, matrix: np.ndarray, least: float
) -> None:
    """A join is the matrix filtered."""
    found = rs.join(left, right, metric, min_similarity=least)
    i, j = np.nonzero(matrix >= least)
    np.testing.assert_array_equal(found.left, i)
    np.testing.assert_array_equal(found.right, j)
    np.testing.assert_array_equal(found.score, matrix[i, j])


@pytest.mark.parametrize("script", ["binary", "mixed"])
@pytest.mark.jit
def test_thousands_of_characters(script):
    """Far beyond what a table could hold, against rapidfuzz."""
    scorers = rapidfuzz_scorers()
    rng = random.Random(script)
    left, right = [], []
    for size in (1_000, 5_000):
        a = text_of(size, SCRIPTS[script], rng)
        cut = rng.randrange(size)
        left += [a, a, a]
        right += [text_of(size // 2, SCRIPTS[script], rng), a[cut:] + a[:cut], a[: cut // 2]]
    for metric, scorer in scorers.items():
        expected = [scorer(a, b) for a, b in zip(left, right, strict=True)]
        score = "distance" if counts(metric) else "similarity"
        same = {"rtol": 0, "atol": 0 if counts(metric) else 1e-12}
        for a, b in ((left, right), (right, left)):
            found = rs.pairwise(a, b, metric, score=score)
            np.testing.assert_allclose(found, expected, **same, err_msg=metric.label)
            found = np.diag(rs.cdist(a, b, metric, score=score))
            np.testing.assert_allclose(found, expected, **same, err_msg=metric.label)


# --- what every metric is ------------------------------------------------------------------------


@every_metric
@given(columns(nulls=False))
@examples(20)
def test_range_symmetry_identity(metric, column):
    n = len(column)
    similar = rs.cdist(column, list(column), metric, score="similarity")
    distant = rs.cdist(column, list(column), metric, dtype="float64")
    np.testing.assert_array_equal(similar, similar.T)
    np.testing.assert_array_equal(distant, distant.T)
    assert (np.diag(similar) == 1).all()
    assert (np.diag(distant) == 0).all()
    defined = ~np.isnan(similar)
    assert ((similar[defined] >= 0) & (similar[defined] <= 1)).all()
    assert (distant[defined] >= 0).all()
    np.testing.assert_array_equal(np.isnan(distant), ~defined)
    if counts(metric):
        equal = np.array([[a == b for b in column] for a in column]).reshape(n, n)
        np.testing.assert_array_equal(distant == 0, equal)
    else:
        np.testing.assert_array_equal(distant, 1 - similar)


@every_metric
def test_two_empty_strings_are_equal_one_shares_nothing(metric):
    assert rs.pairwise(["", "ab"], ["", "ab"], metric).tolist() == [1, 1]
    nothing = np.nan if metric == rs.Hamming(pad=False) else 0.0
    np.testing.assert_array_equal(rs.pairwise(["", "ab"], ["ab", ""], metric), [nothing] * 2)
    np.testing.assert_array_equal(
        rs.cdist(["", "ab"], metric=metric, score="similarity"), [[1, nothing], [nothing, 1]]
    )


# --- thresholds ----------------------------------------------------------------------------------


def short_texts(script: str, rows: int) -> list[str]:
    """So short that many scores are exact fractions, and many pairs have the same."""
    return ["", *column_of(rows, SCRIPTS[script], rows, longest=6)]


@every_metric
@pytest.mark.parametrize("script", ["binary", "spaced"])
def test_every_hundredth(metric, script):
    """What a join keeps is what the matrix says, at thresholds that scores meet exactly."""
    left, right = short_texts(script, 40 if JIT else 8), short_texts(script, 25 if JIT else 5)
    similar = rs.cdist(left, right, metric, score="similarity")
    own = rs.cdist(left, metric=metric, score="similarity")
    own[np.tri(len(left), dtype=bool)] = np.nan
    for hundredths in range(0, 101, 1 if JIT else 25):
        check_join(left, right, metric, similar, hundredths / 100)
        check_join(left, None, metric, own, hundredths / 100)


def some(matrix: np.ndarray) -> list[float]:
    """Up to two dozen of the scores there are, from the least to the largest."""
    scores = np.unique(matrix[~np.isnan(matrix)])
    places = np.linspace(0, len(scores) - 1, 24 if JIT else 5)
    return scores[np.unique(places.astype(int))].tolist()


@every_metric
@pytest.mark.parametrize("script", ["binary", "spaced"])
def test_threshold_equal_to_a_score_keeps_it(metric, script):
    """``f(a, b, cutoff=f(a, b)) == f(a, b)``; the next number above does not keep it."""
    left, right = short_texts(script, 20 if JIT else 5), short_texts(script, 16 if JIT else 4)
    similar = rs.cdist(left, right, metric, score="similarity")
    distant = rs.cdist(left, right, metric, dtype="float64")
    for score in some(similar):
        check_join(left, right, metric, similar, score)
        found = rs.top_k(left, right, metric, k=len(right), min_similarity=score)
        np.testing.assert_array_equal((found.index >= 0).sum(1), (similar >= score).sum(1))
        if score < 1:
            check_join(left, right, metric, similar, float(np.nextafter(score, 1)))
    for score in some(distant):
        for most in {score, float(np.nextafter(score, 0)), float(np.nextafter(score, 2))}:
            found = rs.join(left, right, metric, max_distance=most)
            i, j = np.nonzero(distant <= most)
            assert triples(found) == list(
                zip(i.tolist(), j.tolist(), distant[i, j].tolist(), strict=True)
            )


@every_metric
@given(st.data())
@examples(20)
def test_own_score_as_threshold(metric, data):
    a = data.draw(texts())
    b = data.draw(edited(a))
    for kind, name in (("similarity", "min_similarity"), ("distance", "max_distance")):
        score = float(rs.pairwise([a], [b], metric, score=kind)[0])
        if not np.isnan(score):
            assert triples(rs.join([a], [b], metric, **{name: score})) == [(0, 0, score)]
            assert rs.top_k([a], [b], metric, k=1, score=kind, **{name: score}).index == 0


@every_scoring_metric
def test_distance_thresholds_are_fractions_where_scores_are(metric):
    column = ["abcde", "abcdX", "abxyz", "vwxyz"]
    distant = rs.cdist(column, metric=metric)
    for most in (0, 0.1, 0.25, 0.5, 0.75, 1, 3.5, float("inf")):
        found = rs.join(column, metric=metric, max_distance=most)
        expected = [(i, j) for i in range(4) for j in range(i + 1, 4) if distant[i, j] <= most]
        assert [pair[:2] for pair in triples(found)] == expected


def exactly(value: Fraction, most: int) -> Iterator[tuple[str, str]]:
    """Pairs without transpositions whose Jaro similarity is exactly this, up to a length."""
    for m in range(1, most):
        for a in range(m, most):
            for b in range(a, most):
                # no more matches than there can be, all of them in their places
                if (Fraction(m, a) + Fraction(m, b) + 1) / 3 == value:
                    yield "x" * m + "a" * (a - m), "x" * m + "b" * (b - m)


def test_jaro_exactly_at_the_boost():
    """Worth 7/10, computed in order just above or below it: boosted or not as the peers do."""
    left, right = zip(*exactly(Fraction(7, 10), 130 if JIT else 25), strict=True)
    scores = [naive.jaro(a, b) for a, b in zip(left, right, strict=True)]
    assert {score > 0.7 for score in scores} == {True, False} or not JIT
    for metric in (rs.Jaro(), rs.JaroWinkler(), resolve("jaro_winkler:java")):
        reference = naive.reference(metric)
        expected = naive.pairwise(left, right, metric=reference)
        for a, b in ((left, right), (right, left)):
            np.testing.assert_array_equal(rs.pairwise(a, b, metric), expected)
            np.testing.assert_array_equal(
                np.diag(rs.cdist(a, b, metric, score="similarity")), expected
            )


@pytest.mark.parametrize(("longest", "step"), [(64, 1), (300, 13), (5_000, 600)])
@pytest.mark.jit
def test_jaro_of_every_quotient(longest, step):
    """Each sum of quotients rounded as division rounds, in lanes and for pairs."""
    sizes = [(n, m) for n in range(1, longest, step) for m in range(0, n + 1, step)]
    left, right = (["x" * m + fill * (n - m) for n, m in sizes] for fill in "ab")
    n, m = np.array(sizes, np.float64).T
    matches = np.minimum.outer(m, m)
    with np.errstate(invalid="ignore"):
        expected = (matches / n[:, None] + matches / n + matches / matches) / 3
    expected[matches == 0] = 0
    found = rs.cdist(left, right, rs.Jaro(), score="similarity")
    np.testing.assert_array_equal(found, expected)
    other = np.random.default_rng(1).permutation(len(sizes))
    found = rs.pairwise(left, [right[row] for row in other], rs.Jaro())
    np.testing.assert_array_equal(found, expected[np.arange(len(sizes)), other])


# --- types ---------------------------------------------------------------------------------------


@every_scoring_metric
@pytest.mark.parametrize("dtype", ["uint8", "int64"])
@pytest.mark.parametrize("score", KINDS)
def test_fractions_are_no_integers(metric, dtype, score):
    for call in (
        lambda: rs.cdist(["a"], ["b"], metric, score=score, dtype=dtype),
        lambda: rs.cdist(["a", "b"], metric=metric, score=score, dtype=dtype),
        lambda: rs.pdist(["a", "b"], metric, score=score, dtype=dtype),
        lambda: rs.pairwise(["a"], ["b"], metric, score=score, dtype=dtype),
        lambda: rs.cdist(["a"], ["b"], metric, score=score, out=np.empty((1, 1), dtype)),
    ):
        with pytest.raises(ValueError, match=dtype):
            call()


@every_metric
def test_floats(metric):
    column = ["night", "nacht", None, "", "a b", "nacht"]
    for score in KINDS:
        wide = rs.cdist(column, column, metric, score=score, dtype="float64")
        narrow = rs.cdist(column, column, metric, score=score, dtype="float32")
        assert (wide.dtype, narrow.dtype) == (np.float64, np.float32)
        np.testing.assert_array_equal(narrow, wide.astype(np.float32))
        out = np.empty((6, 6), np.float32)
        assert rs.cdist(column, metric=metric, score=score, out=out) is out
        np.testing.assert_array_equal(out, narrow)
        upper = np.triu_indices(6, 1)
        np.testing.assert_array_equal(
            rs.pdist(column, metric, score=score, dtype="float32"), narrow[upper]
        )
        np.testing.assert_array_equal(
            rs.pairwise(column, column[::-1], metric, score=score, dtype="float32"),
            np.diag(narrow[:, ::-1]),
        )
        assert rs.cdist(column, column, metric, score=score).dtype == np.float64
        if score == "similarity" or not counts(metric):
            for found in (
                rs.cdist(["a"], ["b"], metric, score=score),
                rs.pdist(["a", "b"], metric, score=score),
                rs.pairwise(["a"], ["b"], metric, score=score),
            ):
                assert found.dtype == np.float64


@parametrized(m for m in METRICS if counts(m) and m != rs.Hamming(pad=False))
def test_counts_come_in_the_narrowest_type(metric):
    """The largest distance there can be decides: the longer length, or for Indel the sum."""
    slow_without_jit(metric)
    for size, longer, summed in ((127, "uint8", "uint8"), (128, "uint8", "uint16"),
                                 (255, "uint8", "uint16"), (256, "uint16", "uint16")):  # fmt: skip
        a, b = ["x" * size], ["y" * size]
        expected = summed if metric == rs.Indel() else longer
        largest = 2 * size if metric == rs.Indel() else size
        for found in (
            rs.cdist(a, b, metric),
            rs.pdist(a + b, metric),
            rs.cdist(a + b, metric=metric)[:1, 1:],
            rs.pairwise(a, b, metric, score="distance"),
        ):
            assert found.dtype == expected
            assert found.max() == largest


@every_counting_metric
def test_nulls_in_integers(metric):
    for call in (
        lambda: rs.cdist(["a", None], ["b"], metric, dtype="uint8"),
        lambda: rs.pdist(["a", None], metric, dtype="int32"),
        lambda: rs.pairwise(["a"], [None], metric, score="distance", dtype="uint16"),
    ):
        with pytest.raises(ValueError, match=r"row \d is null"):
            call()


def test_strict_hamming_comes_in_floats():
    """Strings of unequal length have no distance: the type does not wait for the first of them."""
    strict = rs.Hamming(pad=False)
    for call in (
        lambda dtype: rs.cdist(["ab", "cd"], ["ac"], strict, dtype=dtype),
        lambda dtype: rs.pdist(["ab", "cd"], strict, dtype=dtype),
        lambda dtype: rs.pairwise(["ab"], ["cd"], strict, score="distance", dtype=dtype),
    ):
        assert call(None).dtype == np.float64
        with pytest.raises(ValueError, match=r"different lengths.*uint8"):
            call("uint8")


# --- peers ---------------------------------------------------------------------------------------


def rapidfuzz_scorers() -> dict[Metric, Callable[[str, str], float]]:
    """What rapidfuzz defines as we do; only its scalars, for its matrices have quirks of types."""
    peer = pytest.importorskip("rapidfuzz.distance")
    return {
        rs.Levenshtein(): peer.Levenshtein.distance,
        rs.OSA(): peer.OSA.distance,
        rs.DamerauLevenshtein(): peer.DamerauLevenshtein.distance,
        rs.Indel(): peer.Indel.distance,
        rs.LCSseq(): peer.LCSseq.distance,
        rs.Hamming(): peer.Hamming.distance,
        rs.Prefix(): peer.Prefix.distance,
        rs.Postfix(): peer.Postfix.distance,
        rs.Jaro(): peer.Jaro.similarity,
        rs.JaroWinkler(): peer.JaroWinkler.similarity,
        rs.JaroWinkler(prefix_weight=0.25): lambda a, b: peer.JaroWinkler.similarity(
            a, b, prefix_weight=0.25
        ),
    }


def check_peer(
    metric: Metric, scorer: Callable[[str, str], float], left: Column, right: Column
) -> None:
    score = "distance" if counts(metric) else "similarity"
    expected = np.array([[scorer(a, b) for b in right] for a in left], np.float64)
    np.testing.assert_allclose(
        rs.cdist(left, right, metric, score=score),
        expected.reshape(len(left), len(right)),
        rtol=0,
        atol=0 if counts(metric) else 1e-12,
        err_msg=metric.label,
    )


@given(columns(nulls=False), columns(nulls=False))
@examples(60)
def test_rapidfuzz_agrees(left, right):
    for metric, scorer in rapidfuzz_scorers().items():
        check_peer(metric, scorer, left, right)


@given(columns(nulls=False), columns(nulls=False))
@examples(30)
def test_rapidfuzz_agrees_on_normalised_scores(left, right):
    peer = pytest.importorskip("rapidfuzz.distance")
    for metric, module in (
        (rs.OSA(), peer.OSA),
        (rs.DamerauLevenshtein(), peer.DamerauLevenshtein),
        (rs.Indel(), peer.Indel),
        (rs.LCSseq(), peer.LCSseq),
        (rs.Hamming(), peer.Hamming),
        (rs.Prefix(), peer.Prefix),
        (rs.Postfix(), peer.Postfix),
    ):
        expected = [[module.normalized_similarity(a, b) for b in right] for a in left]
        np.testing.assert_allclose(
            rs.cdist(left, right, metric, score="similarity"),
            np.array(expected, np.float64).reshape(len(left), len(right)),
            rtol=0,
            atol=1e-12,
            err_msg=metric.label,
        )


ascii_words = st.lists(st.text("abc de\t", min_size=1, max_size=12), max_size=8)


@given(ascii_words, ascii_words)
@examples(40)
def test_jellyfish_agrees(left, right):
    """On ASCII without empty strings: it counts graphemes, and calls two empty ones unlike."""
    peer = pytest.importorskip("jellyfish")
    check_peer(rs.DamerauLevenshtein(), peer.damerau_levenshtein_distance, left, right)
    check_peer(rs.Hamming(), peer.hamming_distance, left, right)
    check_peer(rs.Jaro(), peer.jaro_similarity, left, right)
    check_peer(rs.JaroWinkler(), peer.jaro_winkler_similarity, left, right)
    worded = [[text for text in side if text.split()] for side in (left, right)]
    check_peer(rs.Jaccard(), peer.jaccard_similarity, *worded)


# --- records -------------------------------------------------------------------------------------


def test_every_record_is_tested():
    assert {type(metric) for metric in METRICS} == set(RECORDS)


@pytest.mark.parametrize("record", RECORDS)
def test_records_are_complete(record):
    """The command line's listing and the documentation iterate them: each says what it is."""
    assert resolve(record.name) == record()
    for text in (record.name, record.summary, record.unit, record.source, record.__doc__):
        assert isinstance(text, str)
        assert text
    assert record.symmetric is True
    for alias in record.aliases:
        assert resolve(alias) == record()
    for variant, parameters in record.variants.items():
        assert resolve(f"{record.name}:{variant}") == record(**parameters)
    with pytest.raises(AttributeError):
        record().name = "other"


@every_metric
def test_records_are_values(metric):
    """Equal and hashed by what they say, so that they can be keys."""
    again = type(metric)(**vars(metric))
    assert again == metric
    assert hash(again) == hash(metric)
    assert resolve(metric) is metric


@pytest.mark.parametrize(
    ("spec", "record"),
    [
        (
            "jaro_winkler:stringdist",
            rs.JaroWinkler(boost_threshold=0.0, floor_transpositions=False),
        ),
        (
            "jaro_winkler:future-agi",
            rs.JaroWinkler(boost_threshold=0.0, floor_transpositions=False),
        ),
        ("jaro_winkler:java", rs.JaroWinkler(prefix_cap=None, scale_prefix=True)),
        ("jaro:stringdist", rs.Jaro(floor_transpositions=False)),
        ("hamming:strict", rs.Hamming(pad=False)),
        ("jaccard", rs.Jaccard(tokens=rs.Words(), multiset=False)),
        ("jaccard:words:5", rs.Jaccard(tokens=rs.Words(5))),
        ("dice:chars:2", rs.Dice(tokens=rs.Chars(2), multiset=True)),
        ("Jaro-Winkler", rs.JaroWinkler()),
    ],
)
def test_records_by_name(spec, record):
    assert resolve(spec) == record


def test_tokens_beside_the_name():
    """Of the command line: for metrics of token sets that do not name theirs, and no others."""
    assert resolve("jaccard", tokens="words:5") == rs.Jaccard(tokens=rs.Words(5))
    assert resolve("jaccard:chars:2", tokens="words:5") == rs.Jaccard(tokens=rs.Chars(2))
    assert resolve("osa", tokens="words:5") == rs.OSA()


@pytest.mark.parametrize(
    "spec", ["jaro_winkler:scala", "hamming:chars:2", "jaccard:lines", "dice:chars:0"]
)
def test_unknown_variants(spec):
    with pytest.raises(ValueError, match=spec.partition(":")[2].partition(":")[0]):
        resolve(spec)
