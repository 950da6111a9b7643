"""``cdist`` with every metric that rapidfuzz has in lanes, and Hamming: one thread, lists in."""

from __future__ import annotations

import numpy as np
import pytest

import resemblance as rs

TARGETS = {
    "osa": (12, 10, None),
    "indel": (12, 10, None),
    "lcsseq": (12, 10, None),
    "jaro": (10, 8, 8),
    "jaro_winkler": (10, 8, 8),
    "hamming": (25, 25, 5),
}
"""Targets for names of 9-16 and of 33-64 characters, and for summaries."""

PEERS = {
    "osa": "OSA",
    "indel": "Indel",
    "lcsseq": "LCSseq",
    "jaro": "Jaro",
    "jaro_winkler": "JaroWinkler",
    "hamming": "Hamming",
}


def check_and_compare(compare, rapidfuzz, metric, left, right, target):
    fractions = metric.startswith("jaro")
    score = "similarity" if fractions else "distance"
    scorer = getattr(getattr(rapidfuzz.distance, PEERS[metric]), score)
    # both write the same type; the peer's own default for fractions is float32
    dtype = np.uint16 if max(map(len, left + right)) >= 128 else np.uint8
    if fractions:
        dtype = np.float32

    def ours():
        return rs.cdist(left, right, metric, score=score, dtype=dtype, threads=1)

    def peer():
        return rapidfuzz.process.cdist(left, right, scorer=scorer, dtype=dtype)

    np.testing.assert_allclose(ours(), peer(), rtol=0, atol=1e-6 if fractions else 0)
    compare(ours, peer, target=target)


@pytest.mark.parametrize("lengths", ["9-16", "33-64"])
@pytest.mark.parametrize("metric", TARGETS)
def test_names(metric, lengths, names, rapidfuzz, compare):
    """Names of one length class, 1,024 x 20,000."""
    low, high = map(int, lengths.split("-"))
    chosen = [name for name in names if low <= len(name) <= high][:21_024]
    target = TARGETS[metric][lengths == "33-64"]
    check_and_compare(compare, rapidfuzz, metric, chosen[:1_024], chosen[1_024:], target)


@pytest.mark.parametrize("metric", TARGETS)
def test_summaries(metric, summaries, rapidfuzz, compare):
    """Summaries (mean 61 characters, many scripts), 1,000 x 4,000."""
    check_and_compare(
        compare, rapidfuzz, metric, summaries[:1_000], summaries[1_000:5_000], TARGETS[metric][2]
    )
