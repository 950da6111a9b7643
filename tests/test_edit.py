"""Levenshtein: every kernel against the textbook, at every lane boundary and in every script."""

from __future__ import annotations

import csv
import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import resemblance as rs
from resemblance.metrics import RECORDS, resolve
from strategies import (
    JIT,
    LANES,
    SCRIPTS,
    SHARED,
    columns,
    edited,
    examples,
    inserted,
    needs_shared,
    scripts,
    substituted,
    text_of,
    texts,
)


def distance(a: str, b: str) -> int:
    """By every path, in both orders: lanes with either side as the pattern, and single pairs."""
    found = {
        int(rs.cdist([a], [b])[0, 0]),
        int(rs.cdist([b], [a])[0, 0]),
        int(rs.cdist([a, ""], [b])[0, 0]),
        int(rs.pairwise([a], [b], score="distance")[0]),
        int(rs.pairwise([b], [a], score="distance")[0]),
        int(rs.pdist([a, b])[0]),
    }
    assert len(found) == 1, found
    return found.pop()


# --- against the textbook ------------------------------------------------------------------------


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_pair_of_lane_boundaries(script):
    rng = random.Random(script)
    letters = SCRIPTS[script]
    sizes = LANES if JIT else LANES[::2]
    left = [text_of(size, letters, rng) for size in sizes]
    right = [text_of(size, letters, rng) for size in sizes]
    expected = np.array(naive.cdist(left, right))
    np.testing.assert_array_equal(rs.cdist(left, right), expected)
    np.testing.assert_array_equal(rs.cdist(right, left), expected.T)
    a = [text for text in left for _ in right]
    b = right * len(left)
    np.testing.assert_array_equal(rs.pairwise(a, b, score="distance"), expected.ravel())
    np.testing.assert_array_equal(rs.pairwise(b, a, score="distance"), expected.ravel())


@given(st.data())
@examples(300)
def test_edited_pairs(data):
    a = data.draw(texts())
    b = data.draw(edited(a))
    assert distance(a, b) == naive.levenshtein(a, b)


@given(columns(nulls=False), columns(nulls=False))
@examples(150)
def test_columns(left, right):
    expected = np.array(naive.cdist(left, right)).reshape(len(left), len(right))
    np.testing.assert_array_equal(rs.cdist(left, right), expected)
    np.testing.assert_array_equal(rs.cdist(right, left), expected.T)


@given(st.data())
@examples(60)
def test_one_lane_class_full(data):
    """More patterns than one block of lanes holds, of one length: no lane sees its neighbour."""
    size = data.draw(st.sampled_from([1, 7, 8, 9, 16, 17, 32, 33, 64, 65, 129]))
    letters = data.draw(scripts)
    rng = random.Random(data.draw(st.integers(0, 1 << 16)))
    rows = data.draw(st.sampled_from([1, 2, 63, 64, 65, 130])) if JIT else 20
    left = [text_of(size, letters, rng) for _ in range(rows)]
    right = [text_of(rng.choice((0, 1, size, size + 1)), letters, rng) for _ in range(2)]
    right.append(left[-1])
    np.testing.assert_array_equal(rs.cdist(left, right), naive.cdist(left, right))


@given(scripts, st.integers(0, 1 << 16))
@examples(40)
def test_texts_that_share_their_beginnings(letters, seed):
    """The lanes resume from saved states: prefixes of one another, deeper than states are kept."""
    rng = random.Random(seed)
    stem = text_of(150 if JIT else 40, letters, rng)
    nested = [stem[:k] for k in rng.sample(range(len(stem)), 45 if JIT else 12)]
    branches = [text + rng.choice(letters) for text in nested[::2]]
    family = [*nested, *branches, nested[0], stem]
    rng.shuffle(family)
    patterns = ["", stem[3:20], *(text_of(n, letters, rng) for n in (5, 12, 40, 70))]
    expected = np.array(naive.cdist(patterns, family))
    np.testing.assert_array_equal(rs.cdist(patterns, family), expected)
    np.testing.assert_array_equal(rs.cdist(family, patterns), expected.T)


@pytest.mark.parametrize("sizes", [(255, 256), (256, 257), (300, 300), (511, 513), (300, 900)])
@pytest.mark.parametrize("letters", [SCRIPTS["binary"], SCRIPTS["cjk"]], ids=["binary", "cjk"])
@pytest.mark.jit
def test_hundreds_of_characters(sizes, letters):
    rng = random.Random(str(sizes))
    a, b = (text_of(size, letters, rng) for size in sizes)
    assert distance(a, b) == naive.levenshtein(a, b)


# --- strings so long that the distance must be known beforehand ----------------------------------


@pytest.mark.parametrize("size", [300, 1_000, 5_000] if JIT else [300])
@pytest.mark.parametrize("edits", [1, 2, 63, 64, 65, 200])
def test_planted_edits(size, edits):
    text = text_of(size, SCRIPTS["greek"], random.Random(size + edits))
    assert distance(text, substituted(text, edits)) == edits
    assert distance(text, inserted(text, edits)) == edits
    both = inserted(substituted(text, edits // 2, "!"), edits - edits // 2)
    assert distance(text, both) == edits


@pytest.mark.parametrize("sizes", [(300, 300), (300, 5_000), (1, 5_000), (65, 4_999)])
@pytest.mark.jit
def test_nothing_in_common(sizes):
    assert distance("a" * sizes[0], "é" * sizes[1]) == max(sizes)


@pytest.mark.jit
def test_case_c022_200_000_characters():
    a, b = "a" * 200_000, "b" * 200_000
    c = "lorem ipsum dolor " * 6_000
    e = c[:50_000] + "X" + c[50_001:]
    assert rs.pairwise([a, c], [b, e], score="distance").tolist() == [200_000, 1]
    assert rs.cdist([c], [e, c, ""]).tolist() == [[1, 0, len(c)]]


@pytest.mark.slow
@pytest.mark.jit
def test_a_million_characters_in_linear_memory():
    """A full table of bits would be 125 GB; what a call adds is a small multiple of the text."""
    code = """
import resource
import resemblance as rs
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
rs.pairwise(["a" * 700], ["b" * 600], score="distance")
rs.cdist(["a" * 700], ["b" * 600])
a = "".join(chr(97 + i * i % 23) for i in range(1_000_000))
b = "#" + a[:500_000] + "##" + a[500_003:] + "#"
before = peak()
assert rs.pairwise([a, "x"], [b, a], score="distance").tolist() == [5, 1_000_000]
assert rs.cdist([a], ["y" * 100]).tolist() == [[1_000_000]]
assert rs.cdist(["y" * 100], [a]).tolist() == [[1_000_000]]
print(peak() - before)
"""
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert int(run.stdout) < 250 << 20


# --- cut-offs ------------------------------------------------------------------------------------


@given(st.data())
@examples(200)
def test_cut_off_keeps_what_the_distance_says(data):
    """The limited kernels agree with the free ones just below, at and above the distance."""
    a = data.draw(texts())
    b = data.draw(edited(a))
    true = naive.levenshtein(a, b)
    for limit in {0, max(true - 1, 0), true, true + 1, max(len(a), len(b), 1)}:
        expected = [(0, 0, true)] if true <= limit else []
        assert list(zip(*rs.join([a], [b], max_distance=limit), strict=True)) == expected


@pytest.mark.parametrize("size", [300, 600, 1_500])
@pytest.mark.jit
def test_cut_off_on_long_strings(size):
    """RapidFuzz#259: near-identical long strings, where a band too narrow by one goes wrong."""
    rng = random.Random(size)
    stem = text_of(size, "acgt", rng)
    column = [stem]
    for edits in (1, 5, 30, 31, 32, 33, 64, 130, 260):
        column += [substituted(stem, edits), inserted(stem, edits), stem[edits:], stem[:-edits]]
    full = rs.pdist(column)
    for limit in (0, 1, 5, 30, 31, 33, 64, 128, 260, 10_000):
        found = rs.join(column, max_distance=limit)
        left, right = np.triu_indices(len(column), 1)
        within = full <= limit
        np.testing.assert_array_equal(found.left, left[within])
        np.testing.assert_array_equal(found.right, right[within])
        np.testing.assert_array_equal(found.score, full[within])


# --- what a distance is --------------------------------------------------------------------------


@given(texts(), texts(), texts())
@examples(60)
def test_it_is_a_metric(a, b, c):
    d = rs.cdist([a, b, c]).astype(int)
    np.testing.assert_array_equal(d, d.T)
    assert (np.diag(d) == 0).all()
    assert (d[0, 1] == 0) == (a == b)
    assert d[0, 2] <= d[0, 1] + d[1, 2]
    assert abs(len(a) - len(b)) <= d[0, 1] <= max(len(a), len(b))


@given(texts(), texts())
@examples(60)
def test_both_reversed_is_as_far(a, b):
    assert rs.cdist([a], [b]) == rs.cdist([a[::-1]], [b[::-1]])


# --- values known from elsewhere -----------------------------------------------------------------

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"

KNOWN = [
    # C017
    ("", "", 0),
    ("", "abc", 3),
    (" ", " ", 0),
    # C005
    ("+", "-", 1),
    # C016, C082
    ("McDonald", "MCDONALD", 6),
    ("\u0130stanbul", "istanbul", 1),
    ("straße", "STRASSE", 7),
    ("ÉCOLE", "école", 5),
    # C040
    ("caf\u00e9", "cafe\u0301", 2),
    # C068
    ("\U0001f4a9", "x", 1),
    ("\U0001f4a9", "\U0001f4ab", 1),
    (FAMILY, "\U0001f468\u200d\U0001f469\u200d\U0001f466", 1),
    (FAMILY, "\U0001f469", 4),
    ("\U0001f1e9\U0001f1ea", "\U0001f1eb\U0001f1f7", 2),
    # C079
    ("New\u00a0York", "New York", 1),
    ("data\u200bset", "dataset", 1),
    ("a  b", "a b", 1),
    (" x ", "x", 2),
    # C080
    ("a", "a\0", 1),
    ("x\0y", "x\0z", 1),
    ("\0", "", 1),
    # code points, not UTF-16: a surrogate pair is two and is not the character it would encode
    ("\ud800", "\ud801", 1),
    ("\ud83d\ude00", "\U0001f600", 2),
    # distances of the issues in research/text_peers.md, section 5
    ("хлеб", "пиво", 4),
    ("a", "Č", 1),
    ("é", "a", 1),
    ("我", "a", 1),
    ("abcde", "abc", 2),
    ("ca", "abc", 3),
    ("pension", "penitence", 5),
    # the classics
    ("kitten", "sitting", 3),
    ("Saturday", "Sunday", 3),
    ("intention", "execution", 5),
]


@pytest.mark.parametrize(("a", "b", "expected"), KNOWN)
def test_known_distances(a, b, expected):
    assert distance(a, b) == expected == naive.levenshtein(a, b)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("", "", 1.0),
        ("", "abc", 0.0),
        ("abc", "", 0.0),
        (" ", " ", 1.0),
        ("abcde", "abcdX", 0.8),
        ("abcd", "abce", 0.75),
        ("s", "s.", 0.5),
        ("bc", "bca", 2 / 3),
        ("+", "-", 0.0),
    ],
)
def test_known_similarities(a, b, expected):
    for left, right in ((a, b), (b, a)):
        assert rs.pairwise([left], [right]).tolist() == [expected]
        assert rs.cdist([left], [right], score="similarity").tolist() == [[expected]]


def test_case_folding_is_the_callers():
    """Case C082: folded by Python, lengths may change and the distances follow."""
    pairs = [("\u0130stanbul", "istanbul"), ("straße", "STRASSE"), ("ÉCOLE", "école")]
    left, right = ([side.casefold() for side in column] for column in zip(*pairs, strict=True))
    assert rs.pairwise(left, right, score="distance").tolist() == [1, 0, 0]


@needs_shared
def test_jellyfish_conformance():
    with (SHARED / "data/string_conformance/levenshtein.csv").open(encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert len(rows) == 6
    for a, b, expected in rows:
        assert distance(a, b) == int(expected)


@given(columns(nulls=False), columns(nulls=False))
@examples(100)
def test_rapidfuzz_agrees(left, right):
    process = pytest.importorskip("rapidfuzz.process")
    scorer = pytest.importorskip("rapidfuzz.distance").Levenshtein
    expected = process.cdist(left, right, scorer=scorer.distance, dtype=np.int64)
    np.testing.assert_array_equal(rs.cdist(left, right), expected.reshape(len(left), len(right)))


@pytest.mark.jit
def test_rapidfuzz_agrees_on_long_strings():
    scorer = pytest.importorskip("rapidfuzz.distance").Levenshtein
    rng = random.Random(5)
    left, right = [], []
    for size in (500, 1_000, 3_000, 5_000):
        for letters in (SCRIPTS["binary"], SCRIPTS["mixed"]):
            a = text_of(size, letters, rng)
            left += [a, a, a]
            cut = rng.randrange(size)
            right += [text_of(size // 2, letters, rng), a[cut:] + a[:cut], a[: cut // 2] + a[cut:]]
    expected = [scorer.distance(a, b) for a, b in zip(left, right, strict=True)]
    assert rs.pairwise(left, right, score="distance").tolist() == expected
    assert np.diag(rs.cdist(left, right)).tolist() == expected


# --- the record ----------------------------------------------------------------------------------


def test_record_names_and_aliases():
    left, right = ["kitten", ""], ["sitting", "x"]
    expected = rs.cdist(left, right)
    for metric in (rs.Levenshtein(), "Levenshtein", *rs.Levenshtein.aliases):
        np.testing.assert_array_equal(rs.cdist(left, right, metric), expected)
    assert rs.Levenshtein() == rs.Levenshtein()
    assert hash(rs.Levenshtein()) == hash(rs.Levenshtein())


@pytest.mark.parametrize("record", RECORDS)
def test_records_are_complete(record):
    """The CLI listing and the docs iterate the records: each must say what it is."""
    assert resolve(record.name) == record()
    for text in (record.name, record.summary, record.unit, record.source, record.__doc__):
        assert isinstance(text, str)
        assert text
    assert isinstance(record.symmetric, bool)
    with pytest.raises(AttributeError):
        record().name = "other"


@pytest.mark.parametrize("name", ["cdist", "top_k", "pairwise"])
def test_unknown_metric(name):
    call = getattr(rs, name)
    with pytest.raises(ValueError, match=r"levenstein.*did you mean 'levenshtein'.*known: leven"):
        call(["a"], ["b"], "levenstein")
    with pytest.raises((ValueError, TypeError), match="metric"):
        call(["a"], ["b"], None)
