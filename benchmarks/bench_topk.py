"""``top_k``: the best matches of some names among all of them."""

from __future__ import annotations

import numpy as np
import pytest

import resemblance as rs

QUERIES, K, BLOCK = 1_000, 5, 50


@pytest.mark.parametrize("packed", [False, True], ids=["lists", "packed"])
def test_a_thousand_names_among_all(packed, names, rapidfuzz, compare):
    """1,000 names among 885,753, k = 5, two threads, from a list or packed before: 30 times.

    The peer is rapidfuzz ``cdist(workers=2)`` and ``argpartition``, fifty queries at a time. It
    breaks ties anyhow, so distances are compared, and our ties on the first block.
    """
    queries = names[:QUERIES]
    scorer = rapidfuzz.distance.Levenshtein.distance

    choices = rs.Strings.pack(names) if packed else names

    def ours():
        return rs.top_k(queries, choices, k=K, score="distance", threads=2)

    def block(start: int):
        part = queries[start : start + BLOCK]
        return rapidfuzz.process.cdist(part, names, scorer=scorer, dtype=np.uint8, workers=2)

    def peer():
        scores = []
        for start in range(0, QUERIES, BLOCK):
            matrix = block(start)
            best = np.argpartition(matrix, K, axis=1)[:, :K]
            scores.append(np.sort(np.take_along_axis(matrix, best, 1), axis=1))
        return np.concatenate(scores)

    found = ours()
    np.testing.assert_array_equal(found.score, peer())
    expected = np.argsort(block(0), axis=1, kind="stable")[:, :K]
    np.testing.assert_array_equal(found.index[:BLOCK], expected)
    compare(ours, peer, target=30, repeat=3)
