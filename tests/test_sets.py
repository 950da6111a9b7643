"""Jaccard, Dice, overlap and cosine: the same float from matrices, pairs and joins, bit for bit."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resemblance import lanes, set_join, tiles
from resemblance.metrics import sets as module
from resemblance.metrics.sets import Cosine, Dice, Jaccard, Overlap
from resemblance.strings import Strings, same_units
from resemblance.tiles import Job
from resemblance.tokens import Chars, Words
from strategies import JIT, columns, examples
from test_tokens import tokens

RECORDS = (Jaccard, Dice, Overlap, Cosine)
KINDS = [Words(), Words(2), Chars(1), Chars(2), Chars(5)]

metrics = st.builds(
    lambda record, kind, multiset: record(kind, multiset),
    st.sampled_from(RECORDS),
    st.sampled_from(KINDS),
    st.booleans(),
)


# --- records -------------------------------------------------------------------------------------


@pytest.mark.parametrize("record", RECORDS)
def test_parameters(record):
    assert record("words:2").tokens == Words(2)
    assert record(tokens="chars").tokens == Chars(3)
    assert record().label == record.name
    assert record("words:4", True) == record(Words(4), multiset=True)
    assert hash(record("words:4")) == hash(record(Words(4)))
    with pytest.raises(ValueError, match="words:N or chars:N"):
        record("letters")
    with pytest.raises(ValueError, match="multiset must be True or False, got 1"):
        record(multiset=1)


@pytest.mark.parametrize(
    ("metric", "a", "b", "expected"),
    [
        (Jaccard(), "hello world", "hello there", 1 / 3),
        (Jaccard(), "to be or not to be", "not to be or", 1.0),
        (Jaccard(multiset=True), "the cat", "the the cat", 2 / 3),
        (Jaccard("chars:1", True), "night", "nacht", 3 / 7),
        (Jaccard("chars:1", True), "aaaa", "aaab", 0.6),
        (Jaccard("chars:1"), "aaaa", "aaab", 0.5),
        (Jaccard("chars:2"), "night", "nacht", 1 / 7),
        (Jaccard("chars:1", True), "the cat", "the the cat", 7 / 11),
        (Dice(), "night", "nacht", 0.25),
        (Dice(), "aaaa", "aaab", 2 / 3),
        (Dice("chars:1"), "night", "nacht", 0.6),
        (Dice(), "the cat", "the the cat", 0.75),
        (Dice(multiset=False), "the cat", "the the cat", 12 / 13),
        (Dice(), "a", "b", 0.0),
        (Dice(), "a", "a", 1.0),
        (Overlap(), "red apple", "one big red apple", 1.0),
        (Overlap(), "red pear", "one big red apple", 0.5),
        (Cosine(), "red apple", "green apple", 0.5),
        (Cosine(), "a b c d", "a", 0.5),
        (Cosine("words:3"), "a b", " a  b\n", 1.0),
    ],
)
def test_published_values(metric, a, b, expected):
    assert pairs(metric, [a], [b]).tolist() == [expected]
    assert matrix(metric, [a], [b]).tolist() == [[expected]]


@pytest.mark.parametrize("metric", [record(kind) for record in RECORDS for kind in KINDS], ids=str)
def test_texts_without_tokens(metric):
    column = ["", None, "a"] + ([" ", "\u3000\n"] if isinstance(metric.tokens, Words) else [])
    nothing = np.array([text is None or not text.strip() for text in column])
    expected = (nothing[:, None] == nothing[None, :]).astype(float)
    np.testing.assert_array_equal(matrix(metric, column, column), expected)


# --- matrices ------------------------------------------------------------------------------------


@pytest.fixture(params=["chosen", "lists", "bytes", "stretches"])
def counting(request, monkeypatch):
    """How shared tokens are counted: as sizes favour, or one way by force; in small stretches."""
    if request.param == "lists":
        monkeypatch.setattr(module, "DENSE", 1)
    if request.param == "bytes":
        monkeypatch.setattr(module, "DENSE", 1 << 40)
    if request.param == "stretches":
        monkeypatch.setattr(module, "STRETCH", 3)
        monkeypatch.setattr(module, "TILE_SCORES", 6)


@given(columns(), columns(), metrics)
@examples(150)
def test_matrix(counting, left, right, metric):
    np.testing.assert_array_equal(matrix(metric, left, right), expected_matrix(metric, left, right))
    np.testing.assert_array_equal(matrix(metric, left), expected_matrix(metric, left, left))


@pytest.mark.parametrize("record", RECORDS)
def test_sets_larger_than_a_byte_counts(record):
    """More shared tokens than a byte holds, in frequent tokens and in rare ones."""
    rng = random.Random(7)
    words = [str(k) for k in range(700)]
    column = [" ".join(rng.sample(words, k)) for k in (1, 255, 256, 257, 400, 699, 700)]
    column += [" ".join(f"x{k}" for k in range(300))] * 2
    metric = record("words")
    np.testing.assert_array_equal(
        matrix(metric, column, column), expected_matrix(metric, column, column)
    )


@given(columns(), metrics)
@examples(50)
def test_stretches_hold_what_is_asked(column, metric):
    strings = Strings.pack(column)
    scorer = metric.scorer(strings, strings)
    full = expected_matrix(metric, column, column)
    for part in scorer.parts(np.arange(len(column)), 5):
        assert 0 < len(part) <= 5
        low, high = int(part[0]), min(len(column), int(part[-1]) + 3)
        held = []
        for first, last, cost in scorer.stretches(part, low, high):
            assert cost > 0
            here = scorer.columns[first:last]
            scores = scorer.scores(scorer.program(part), first, last, Job(1))
            assert scores.flags.c_contiguous
            np.testing.assert_array_equal(scores, full[np.ix_(part, here)])
            held += here.tolist()
        assert set(range(low, high)) <= set(held)


# --- pairs ---------------------------------------------------------------------------------------


@given(columns(max_size=10), columns(max_size=10), metrics)
@examples(200)
def test_pairs(left, right, metric):
    i, j = np.indices((len(left), len(right))).reshape(2, -1)
    expected = expected_matrix(metric, left, right).ravel()
    for way in (np.int64, np.int32):
        found = pairs(metric, left, right, i.astype(way), j.astype(way))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("multiset", [False, True])
@pytest.mark.parametrize("record", RECORDS)
def test_pairs_of_all_sizes(record, multiset):
    """Around what 16 and 64 bits hold, and beyond; many repetitions and few."""
    rng = random.Random(3)
    sizes = (0, 1, 15, 16, 17, 63, 64, 65, 130, 400) if JIT else (0, 1, 16, 17, 64, 65)
    column = ["".join(rng.choices(letters, k=n)) for n in sizes for letters in ("ab", "abcdefghij")]
    i, j = np.indices((len(column), len(column))).reshape(2, -1)
    for metric in (record("chars:1", multiset), record("chars:2", multiset)):
        found = pairs(metric, column, column, i, j)
        np.testing.assert_array_equal(found, expected_matrix(metric, column, column).ravel())


def test_pairs_of_columns_with_characters_of_different_types():
    left, right = Strings.pack(["abc", "é"]), Strings.pack(["abc我", "é我\U0001f600"])
    out = np.empty(2)
    metric = Jaccard("chars:1")
    metric.pair_scores(left, np.arange(2), right, np.arange(2), out, Job(1))
    assert out.tolist() == [3 / 4, 1 / 3]


# --- joins ---------------------------------------------------------------------------------------


@pytest.fixture(params=["chosen", "prefixes", "counts"])
def way(request, monkeypatch):
    """How pairs are found: as costs favour, or one way by force; in many small tiles."""
    monkeypatch.setattr(lanes, "TILE_COST", 500)
    if request.param != "chosen":
        dear = {"prefixes": "PAIR_COST", "counts": "ENTRY_COST"}[request.param]
        monkeypatch.setattr(set_join, dear, 1e6)


near_thresholds = st.one_of(
    st.integers(0, 20).map(lambda k: k / 20),
    st.sampled_from([1e-9, 1 / 3, 2 / 3, 6 / 7, math.sqrt(0.5), 0.9999999]),
    st.floats(0, 1),
)


@given(
    columns(max_size=20, nulls=False), columns(max_size=20, nulls=False), metrics, near_thresholds
)
@examples(200)
def test_near(way, left, right, metric, at_least):
    left, right = distinct(left), distinct(right)
    expected = expected_matrix(metric, left, right)
    assert near(metric, left, right, at_least) == passing(expected, at_least)
    expected = np.triu(expected_matrix(metric, left, left), 1)
    expected[np.tril_indices(len(left))] = -1
    assert near(metric, left, None, at_least) == passing(expected, at_least)


@pytest.mark.parametrize("multiset", [False, True])
@pytest.mark.parametrize("kind", [Words(), Chars(2)], ids=str)
@pytest.mark.parametrize("record", RECORDS)
def test_every_threshold(record, kind, multiset, way):
    """In steps of 0.01, and at each score and beside it: the comparison of floats decides."""
    rng = random.Random(11)
    words = ["aa", "bb", "ab", "ba", "abc", "cab", "a", "b"]
    column = distinct(
        " ".join(rng.choices(words, k=rng.randint(0, 12))) for _ in range(60 if JIT else 14)
    )
    left, right = column[::2], column[1::2]
    metric = record(kind, multiset)
    two = expected_matrix(metric, left, right)
    one = expected_matrix(metric, column, column)
    one[np.tril_indices(len(column))] = -1
    scores = np.unique(two)[:: max(1, len(np.unique(two)) // 20)]
    thresholds = [k / 100 for k in range(101)] if JIT else [0.0, 0.33, 0.5, 0.8, 1.0]
    thresholds += [*scores, *np.nextafter(scores[scores < 1], 1)]
    for at_least in thresholds:
        assert near(metric, left, right, at_least) == passing(two, at_least)
        assert near(metric, column, None, at_least) == passing(one, at_least)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_near_in_one_order(threads, way, monkeypatch):
    """Same pairs in the same order for every number of threads, each tile in a place of its own."""
    monkeypatch.setattr(tiles, "INLINE_COST", 0)
    monkeypatch.setattr(tiles, "usable_threads", lambda asked=None: asked or 1)
    rng = random.Random(5)
    column = distinct("".join(rng.choices("ab ", k=rng.randint(0, 30))) for _ in range(100))
    for metric in (Jaccard(), Dice(), Overlap("words:2")):
        again = found(metric, column, None, 0.5, threads)
        for a, b in zip(again, found(metric, column, None, 0.5, 1), strict=True):
            np.testing.assert_array_equal(a, b)


def test_near_gives_pairs_before_its_buffer_is_full(way, monkeypatch):
    monkeypatch.setattr(set_join, "HELD", 3)
    column = distinct([f"a b c d e {k}" for k in range(30)] + [" " * k for k in range(9)])
    expected = expected_matrix(Jaccard(), column, column)
    expected[np.tril_indices(len(column))] = -1
    assert near(Jaccard(), column, None, 0.6) == passing(expected, 0.6)


def test_a_stopped_job_gives_nothing_more(way):
    job = Job(1)
    job.stop[0] = 1
    kept = []
    strings = Strings.pack(["a b c", "a b c d"])
    for _, work in Jaccard().near(strings, None, 0.5, job, lambda *pairs: kept.append(pairs))[0]:
        work()
    assert not kept
    scorer = Jaccard().scorer(strings, strings)
    scorer.scores(scorer.program(np.arange(2)), 0, 2, job)
    Jaccard().pair_scores(strings, np.arange(2), strings, np.arange(2), np.empty(2), job)


# --- drivers -------------------------------------------------------------------------------------


def matrix(metric, left, right=None):
    a = Strings.pack(left)
    b = a if right is None else Strings.pack(right)
    scorer = metric.scorer(a, b)
    out = np.full((len(a), len(b)), -1.0)
    for part in scorer.parts(np.arange(len(a)), 7):
        program = scorer.program(part)
        for first, last, _ in scorer.stretches(part, 0, len(b)):
            scores = scorer.scores(program, first, last, Job(1))
            out[np.ix_(part, scorer.columns[first:last])] = scores
    return out


def pairs(metric, left, right, i=None, j=None):
    i = np.arange(len(left)) if i is None else i
    j = np.arange(len(right)) if j is None else j
    a, b = Strings.pack(left), Strings.pack(right)
    out = np.full(len(i), -1.0)
    metric.pair_scores(a, i, b, j, out, Job(1))
    return out


def found(metric, left, right, at_least, threads):
    """Left rows, right rows and scores in the order that the places of the tiles give."""
    a = Strings.pack(left)
    b = None
    if right is not None:
        a, b = same_units(a, Strings.pack(right))
    kept = {}

    def keep(place, pairs):
        assert place not in kept
        kept[place] = pairs

    job = Job(threads)
    work, total = metric.near(a, b, at_least, job, keep)
    work = list(work)
    assert sum(cost for cost, _ in work) == total
    job.run(work, total)
    none = (np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0))
    parts = [none, *(kept[place] for place in sorted(kept))]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    assert [column.dtype for column in columns] == [np.int32, np.int32, np.float64]
    return columns


def near(metric, left, right, at_least, threads=1):
    left_rows, right_rows, scores = found(metric, left, right, at_least, threads)
    if right is None:
        left_rows, right_rows = np.minimum(left_rows, right_rows), np.maximum(left_rows, right_rows)
    keys = list(zip(left_rows.tolist(), right_rows.tolist(), strict=True))
    assert len(set(keys)) == len(keys)
    return dict(zip(keys, scores.tolist(), strict=True))


def distinct(column):
    """Different texts, shortest first, as joins pass them on."""
    return sorted(dict.fromkeys(column), key=len)


# --- references ----------------------------------------------------------------------------------


def score(name, a, b):
    if not a or not b:
        return float(not a and not b)
    shared = len(a & b)
    return {
        "jaccard": shared / (len(a) + len(b) - shared),
        "dice": 2 * shared / (len(a) + len(b)),
        "overlap": shared / min(len(a), len(b)),
        "cosine": shared / math.sqrt(len(a) * len(b)),
    }[name]


def expected_matrix(metric, left, right):
    a, b = (
        [set(tokens(text, metric.tokens, metric.multiset)) for text in side]
        for side in (left, right)
    )
    scores = [[score(metric.name, x, y) for y in b] for x in a]
    return np.array(scores, np.float64).reshape(len(left), len(right))


def passing(scores, at_least):
    i, j = np.nonzero((scores >= at_least) & (scores >= 0))
    return dict(zip(zip(i.tolist(), j.tolist(), strict=True), scores[i, j].tolist(), strict=True))
