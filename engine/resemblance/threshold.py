"""One rule for thresholds: a pair whose score equals the threshold is in."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from resemblance.metrics.base import similarity


def allowed_distances(
    min_similarity: float | None, max_distance: float | None, longest: int
) -> NDArray[np.int64]:
    """Largest distance that passes, for each length of a pair's longer string.

    Parameters
    ----------
    min_similarity : float, optional
        From 0 to 1.
    max_distance : float, optional
        From 0. At most one of the two may be given; with none everything passes.
    longest : int
        Largest length to give the bound for.

    Returns
    -------
    ndarray of int64, shape (longest + 1,)
        Found by the very comparison that filtering scores would make, so that kernels can compare
        integers and still keep exactly the pairs whose score passes.
    """
    if min_similarity is not None and max_distance is not None:
        raise ValueError("pass min_similarity or max_distance, not both")
    longer = np.arange(longest + 1, dtype=np.int64)
    if max_distance is not None:
        if not max_distance >= 0:
            raise ValueError(f"max_distance must be a number from 0, got {max_distance!r}")
        return np.minimum(longer, int(min(math.floor(min(max_distance, 2.0**62)), longest)))
    if min_similarity is None:
        return longer
    if not 0 <= min_similarity <= 1:
        raise ValueError(f"min_similarity must be from 0 to 1, got {min_similarity!r}")
    allowed = np.floor((1.0 - min_similarity) * longer).astype(np.int64) + 1
    allowed = np.minimum(allowed, longer)
    for _ in range(2):  # the estimate is too large by two at most
        allowed -= similarity(allowed, longer) < min_similarity
    return allowed
