"""Metrics that count: long strings, cut-offs, what a distance is. The rest is in test_metrics."""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import resemblance as rs
from resemblance.metrics import Metric
from strategies import (
    JIT,
    SCRIPTS,
    edited,
    every_counting_metric,
    examples,
    inserted,
    parametrized,
    substituted,
    text_of,
    texts,
)


def distance(a: str, b: str, metric: str | Metric = "levenshtein") -> int:
    """By every path, in both orders: lanes with either side as the pattern, and single pairs."""
    found = {
        int(rs.cdist([a], [b], metric)[0, 0]),
        int(rs.cdist([b], [a], metric)[0, 0]),
        int(rs.cdist([a, ""], [b], metric)[0, 0]),
        int(rs.pairwise([a], [b], metric, score="distance")[0]),
        int(rs.pairwise([b], [a], metric, score="distance")[0]),
        int(rs.pdist([a, b], metric)[0]),
    }
    assert len(found) == 1, found
    return found.pop()


@pytest.mark.parametrize("sizes", [(255, 256), (256, 257), (300, 300), (511, 513), (300, 900)])
@pytest.mark.parametrize("letters", [SCRIPTS["binary"], SCRIPTS["cjk"]], ids=["binary", "cjk"])
@pytest.mark.jit
def test_hundreds_of_characters(sizes, letters):
    rng = random.Random(str(sizes))
    a, b = (text_of(size, letters, rng) for size in sizes)
    assert distance(a, b) == naive.levenshtein(a, b)


# --- strings so long that the distance must be known beforehand ----------------------------------


LONG = {
    rs.Levenshtein(): (1_000_000, 5),
    rs.Hamming(): (1_000_000, 478_265),
    rs.Prefix(): (1_000_000, 1_000_001),
    rs.Postfix(): (1_000_000, 1_000_001),
    rs.OSA(): (100_000, 5),
    rs.Indel(): (100_000, 7),
    rs.LCSseq(): (100_000, 4),
    rs.DamerauLevenshtein(): (20_000, 5),
}
"""Characters that take under a second, and how far the texts of the test of memory are apart."""


@parametrized([rs.Levenshtein(), rs.OSA(), rs.Indel(), rs.LCSseq()])
@pytest.mark.parametrize("size", [300, 1_000, 5_000] if JIT else [300])
@pytest.mark.parametrize("edits", [1, 2, 63, 64, 65, 200])
def test_planted_edits(metric, size, edits):
    text = text_of(size, SCRIPTS["greek"], random.Random(size + edits))
    substitution = 2 if metric == rs.Indel() else 1
    assert distance(text, substituted(text, edits), metric) == edits * substitution
    assert distance(text, inserted(text, edits), metric) == edits
    if metric != rs.LCSseq():  # which counts what the longer string has beyond the common part
        both = inserted(substituted(text, edits // 2, "!"), edits - edits // 2)
        assert distance(text, both, metric) == edits // 2 * substitution + edits - edits // 2


@parametrized(LONG)
@pytest.mark.parametrize("sizes", [(300, 300), (300, 5_000), (1, 5_000), (65, 4_999)])
@pytest.mark.jit
def test_nothing_in_common(metric, sizes):
    expected = sum(sizes) if metric == rs.Indel() else max(sizes)
    assert distance("a" * sizes[0], "é" * sizes[1], metric) == expected


@pytest.mark.jit
def test_case_c022_200_000_characters():
    a, b = "a" * 200_000, "b" * 200_000
    c = "lorem ipsum dolor " * 6_000
    e = c[:50_000] + "X" + c[50_001:]
    assert rs.pairwise([a, c], [b, e], score="distance").tolist() == [200_000, 1]
    assert rs.cdist([c], [e, c, ""]).tolist() == [[1, 0, len(c)]]


@parametrized(LONG)
@pytest.mark.slow
@pytest.mark.jit
def test_long_texts_in_linear_memory(metric):
    """A full table would be gigabytes; what a call adds is a small multiple of the text."""
    size, expected = LONG[metric]
    code = f"""
import resource
import resemblance as rs
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
metric = {metric.name!r}
rs.pairwise(["a" * 700], ["b" * 600], metric, score="distance")
rs.cdist(["a" * 700], ["b" * 600], metric)
size = {size}
a = "".join(chr(97 + i * i % 23) for i in range(size))
b = "#" + a[: size // 2] + "##" + a[size // 2 + 3 :] + "#"
before = peak()
assert rs.pairwise([a, "x"], [b, a], metric, score="distance").tolist()[0] == {expected}
assert rs.cdist([a], ["y" * 100], metric).tolist() == rs.cdist(["y" * 100], [a], metric).tolist()
assert rs.cdist([a], [b], metric).tolist() == [[{expected}]]
print(peak() - before)
"""
    run = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert int(run.stdout) < 250 << 20


# --- cut-offs ------------------------------------------------------------------------------------


@every_counting_metric
@given(st.data())
@examples(40)
def test_cut_off_keeps_what_the_distance_says(metric, data):
    """The limited kernels agree with the free ones just below, at and above the distance."""
    a = data.draw(texts())
    b = data.draw(edited(a))
    true = naive.reference(metric).distance(a, b)
    steps = [0, 1, len(a) + len(b)]
    if not math.isnan(true):
        steps += [max(true - 1, 0), true, true + 1]
    for limit in set(steps):
        expected = [(0, 0, true)] if true <= limit else []
        assert list(zip(*rs.join([a], [b], metric, max_distance=limit), strict=True)) == expected


@pytest.mark.parametrize(
    ("metric", "size"),
    [(rs.Levenshtein(), 600), (rs.Levenshtein(), 1_500), *((m, 300) for m in LONG)],
    ids=lambda value: value if isinstance(value, int) else value.label,
)
@pytest.mark.jit
def test_cut_off_on_long_strings(metric, size):
    """RapidFuzz#259: near-identical long strings, where a band too narrow by one goes wrong."""
    rng = random.Random(size)
    stem = text_of(size, "acgt", rng)
    column = [stem]
    for edits in (1, 5, 30, 31, 32, 33, 64, 130, 260):
        column += [substituted(stem, edits), inserted(stem, edits), stem[edits:], stem[:-edits]]
    full = rs.pdist(column, metric)
    for limit in (0, 1, 5, 30, 31, 33, 64, 128, 260, 10_000):
        found = rs.join(column, metric=metric, max_distance=limit)
        left, right = np.triu_indices(len(column), 1)
        within = full <= limit
        np.testing.assert_array_equal(found.left, left[within])
        np.testing.assert_array_equal(found.right, right[within])
        np.testing.assert_array_equal(found.score, full[within])


# --- what a distance is --------------------------------------------------------------------------


@parametrized(metric for metric in LONG if metric != rs.OSA())
@given(texts(), texts(), texts())
@examples(15)
def test_it_is_a_metric(metric, a, b, c):
    d = rs.cdist([a, b, c], metric=metric).astype(int)
    np.testing.assert_array_equal(d, d.T)
    assert (np.diag(d) == 0).all()
    assert (d[0, 1] == 0) == (a == b)
    assert d[0, 2] <= d[0, 1] + d[1, 2]
    most = len(a) + len(b) if metric == rs.Indel() else max(len(a), len(b))
    assert abs(len(a) - len(b)) <= d[0, 1] <= most


@parametrized(metric for metric in LONG if metric != rs.Hamming())
@given(texts(), texts())
@examples(15)
def test_both_reversed_is_as_far(metric, a, b):
    back = {rs.Prefix(): rs.Postfix(), rs.Postfix(): rs.Prefix()}.get(metric, metric)
    assert rs.cdist([a], [b], metric) == rs.cdist([a[::-1]], [b[::-1]], back)


def test_a_pair_of_surrogates_is_two_characters():
    """Not the one it would encode in UTF-16; values that JSON can hold are in conventions.json."""
    assert distance("\ud83d\ude00", "\U0001f600") == 2
    assert distance("\ud83d\ude00", "\ud83d") == 1


# --- the record ----------------------------------------------------------------------------------


def test_record_names_and_aliases():
    left, right = ["kitten", ""], ["sitting", "x"]
    expected = rs.cdist(left, right)
    for metric in (rs.Levenshtein(), "Levenshtein", *rs.Levenshtein.aliases):
        np.testing.assert_array_equal(rs.cdist(left, right, metric), expected)
    assert rs.Levenshtein() == rs.Levenshtein()
    assert hash(rs.Levenshtein()) == hash(rs.Levenshtein())


@pytest.mark.parametrize("name", ["cdist", "top_k", "pairwise"])
def test_unknown_metric(name):
    call = getattr(rs, name)
    with pytest.raises(ValueError, match=r"levenstein.*did you mean 'levenshtein'.*known: leven"):
        call(["a"], ["b"], "levenstein")
    with pytest.raises((ValueError, TypeError), match="metric"):
        call(["a"], ["b"], None)
