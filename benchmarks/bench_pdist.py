"""``pdist``: each pair of a column once."""

from __future__ import annotations

import numpy as np

import resemblance as rs


def test_ten_thousand_names(names, rapidfuzz, compare):
    """10,000 names against rapidfuzz ``cdist(x, x)``: at least 40 times."""
    chosen = names[:10_000]
    scorer = rapidfuzz.distance.Levenshtein.distance

    def ours():
        return rs.pdist(chosen, threads=1)

    def peer():
        return rapidfuzz.process.cdist(chosen, chosen, scorer=scorer, dtype=np.uint8)

    np.testing.assert_array_equal(ours(), peer()[np.triu_indices(len(chosen), 1)])
    compare(ours, peer, target=40)
