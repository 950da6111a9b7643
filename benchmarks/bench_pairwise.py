"""``pairwise``: two columns row by row, Arrow in, against lists of the peer's."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import resemblance as rs

ROWS = 1_000_000


@pytest.mark.parametrize("column", ["names", "summaries"])
def test_a_million_pairs(column, request, rapidfuzz, compare):
    """1,000,000 Arrow pairs against rapidfuzz ``cpdist`` on lists: at least 4 times."""
    texts = request.getfixturevalue(column)
    left = (texts * 2)[:ROWS]
    right = (texts * 3)[7 : ROWS + 7]
    a, b = pa.array(left, pa.large_string()), pa.array(right, pa.large_string())
    scorer = rapidfuzz.distance.Levenshtein.distance

    def ours():
        return rs.pairwise(a, b, score="distance", threads=1)

    def peer():
        return rapidfuzz.process.cpdist(left, right, scorer=scorer, dtype=np.uint8)

    np.testing.assert_array_equal(ours(), peer())
    compare(ours, peer, target=4)
