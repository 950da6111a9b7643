"""``pairwise``: two columns row by row, Arrow in, with every metric."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import resemblance as rs

ROWS = 1_000_000

PEERS = {
    "levenshtein": "Levenshtein",
    "osa": "OSA",
    "damerau_levenshtein": "DamerauLevenshtein",
    "indel": "Indel",
    "lcsseq": "LCSseq",
    "hamming": "Hamming",
    "prefix": "Prefix",
    "postfix": "Postfix",
    "jaro": "Jaro",
    "jaro_winkler": "JaroWinkler",
}

POLARS = {
    "levenshtein": (rs.Levenshtein(), "levenshtein"),
    "jaro": (rs.Jaro(), "jaro"),
    "jaro_winkler": (rs.JaroWinkler(), "jaro_winkler"),
    "jaccard": (rs.Jaccard(rs.Chars(1), multiset=True), "jaccard"),
    "dice": (rs.Dice(rs.Chars(1), multiset=True), "sorensen_dice"),
}
"""What polars-strsim has; its sets are multisets of characters."""


@pytest.fixture(params=["names", "summaries"])
def pairs(request):
    texts = request.getfixturevalue(request.param)
    return (texts * 2)[:ROWS], (texts * 3)[7 : ROWS + 7]


@pytest.mark.parametrize("metric", PEERS)
def test_against_rapidfuzz(metric, pairs, rapidfuzz, compare):
    """1,000,000 Arrow pairs against ``cpdist`` on lists, one thread each: at least 3 times (4)."""
    left, right = pairs
    a, b = pa.array(left, pa.large_string()), pa.array(right, pa.large_string())
    fractions = metric.startswith("jaro")
    score = "similarity" if fractions else "distance"
    scorer = getattr(getattr(rapidfuzz.distance, PEERS[metric]), score)
    dtype = np.float32 if fractions else np.uint16

    def ours():
        return rs.pairwise(a, b, metric, score=score, dtype=dtype, threads=1)

    def peer():
        return rapidfuzz.process.cpdist(left, right, scorer=scorer, dtype=dtype)

    np.testing.assert_allclose(ours(), peer(), rtol=0, atol=1e-6 if fractions else 0)
    compare(ours, peer, target=4 if metric == "levenshtein" else 3, repeat=3)


@pytest.mark.parametrize("metric", POLARS)
def test_against_polars(metric, pairs, compare):
    """1,000,000 pairs of one polars frame against polars-strsim: at least 3 times.

    The plug-in works on as many threads as polars has, ours on one.
    """
    pl = pytest.importorskip("polars")
    strsim = pytest.importorskip("polars_strsim")
    left, right = pairs
    frame = pl.DataFrame({"a": left, "b": right})
    record, name = POLARS[metric]
    expression = getattr(strsim, name)(pl.col("a"), pl.col("b")).alias("score")

    def ours():
        return rs.pairwise(frame["a"], frame["b"], record, threads=1)

    def peer():
        return frame.select(expression)["score"]

    np.testing.assert_allclose(ours(), peer().to_numpy(), rtol=0, atol=1e-12)
    compare(ours, peer, target=3, repeat=3)
