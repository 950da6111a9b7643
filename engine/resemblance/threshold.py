"""One rule for thresholds: a pair whose score equals the threshold is in."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from resemblance.metrics.base import similarity


def check_threshold(min_similarity: float | None, max_distance: float | None) -> None:
    """Refuse two thresholds, and numbers that are none."""
    if min_similarity is not None and max_distance is not None:
        raise ValueError("pass min_similarity or max_distance, not both")
    if max_distance is not None and not max_distance >= 0:
        raise ValueError(f"max_distance must be a number from 0, got {max_distance!r}")
    if min_similarity is not None and not 0 <= min_similarity <= 1:
        raise ValueError(f"min_similarity must be from 0 to 1, got {min_similarity!r}")


def allowed_distances(
    min_similarity: float | None, max_distance: float | None, largest: int
) -> NDArray[np.int64]:
    """Largest distance that passes, for each size of a pair.

    Parameters
    ----------
    min_similarity : float, optional
        From 0 to 1.
    max_distance : float, optional
        From 0. At most one of the two may be given; with none everything passes.
    largest : int
        Largest size (of the longer string, or of both) to give the bound for.

    Returns
    -------
    ndarray of int64, shape (largest + 1,)
        Found by the very comparison that filtering scores would make, so that kernels can compare
        integers and still keep exactly the pairs whose score passes.
    """
    check_threshold(min_similarity, max_distance)
    size = np.arange(largest + 1, dtype=np.int64)
    if max_distance is not None:
        return np.minimum(size, int(min(math.floor(min(max_distance, 2.0**62)), largest)))
    if min_similarity is None:
        return size
    allowed = np.floor((1.0 - min_similarity) * size).astype(np.int64) + 1
    allowed = np.minimum(allowed, size)
    for _ in range(2):  # the estimate is too large by two at most
        allowed -= similarity(allowed, size) < min_similarity
    return allowed


def least_similarity(min_similarity: float | None, max_distance: float | None) -> float:
    """The smallest similarity that passes where distance is ``1 - similarity``.

    A pair passes exactly if its similarity is at least this, also where the threshold is a
    distance: among the numbers whose difference to 1 rounds to it, the smallest is looked for.
    """
    check_threshold(min_similarity, max_distance)
    if max_distance is None:
        return min_similarity or 0.0
    low, high = -1, int(np.float64(1.0).view(np.int64))  # floats from 0 sort as their bits do
    while high - low > 1:
        middle = (low + high) // 2
        if 1.0 - float(np.int64(middle).view(np.float64)) <= max_distance:
            high = middle
        else:
            low = middle
    return float(np.int64(high).view(np.float64))
