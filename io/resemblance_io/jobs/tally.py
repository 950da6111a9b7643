"""Statistics of scores that pass by, in memory that does not grow with their number."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["MetricSummary", "Tally"]

STEPS: Final = 100_000
"""Steps from 0 to 1 to which scores are rounded for percentiles and histogram."""

_BARS: Final = 10
_COARSE: Final = float(1 << 20)


@dataclass(frozen=True)
class MetricSummary:
    """The scores of one metric.

    Attributes
    ----------
    scored : int
        Rows with a score.
    undefined : int
        Rows where both texts are there and still have no score (Hamming distance of texts of
        different lengths, where that is asked for).
    mean : float or None
        The exact mean, rounded once. None without scores, as the following.
    p5, p50, p95 : float or None
        The least score that 5, 50, 95 % of the scores do not exceed: of whole distances exactly,
        of fractions rounded to five decimals.
    min, max : float or None
        Exact.
    histogram : tuple of int
        Scores in each tenth of the range from 0 to 1; of whole distances, from 0 to ``max``. A
        border belongs to the tenth above it, the end of the range to the last one.
    """

    scored: int
    undefined: int
    mean: float | None
    p5: float | None
    p50: float | None
    p95: float | None
    min: float | None
    max: float | None
    histogram: tuple[int, ...]


class Tally:
    """The scores of one metric; may be added to from several threads, in any order.

    Parameters
    ----------
    whole : bool
        Whether scores are whole numbers (distances), not fractions from 0 to 1. The memory for
        whole ones grows with the largest.
    bound : float
        Scores below this are counted in ``below``.
    """

    def __init__(self, *, whole: bool, bound: float = 0.0) -> None:
        self.below = 0
        self.scored = 0
        self.undefined = 0
        self._steps = 1 if whole else STEPS
        self._bound = bound
        self._sum = Fraction(0)
        self._counts = np.zeros(1, np.int64)
        self._least = np.inf
        self._most = -np.inf
        self._lock = threading.Lock()

    def add(self, scores: NDArray[Any], undefined: int = 0) -> None:
        """Take in scores, none of them NaN, and the number of rows that have none."""
        scores = scores.astype(np.float64, copy=False)
        # Two sums without rounding errors to speak of: of multiples of 2^-20 that floats add
        # exactly, and of what these leave. So a mean of equal scores is that score, and none
        # depends on how the rows are cut into batches.
        coarse = np.rint(scores * _COARSE) / _COARSE
        total = Fraction(float(coarse.sum())) + Fraction(float((scores - coarse).sum()))
        counts = np.bincount(np.rint(scores * self._steps).astype(np.int64))
        below = int((scores < self._bound).sum())
        with self._lock:
            self.scored += len(scores)
            self.undefined += undefined
            self.below += below
            self._sum += total
            if len(counts) < len(self._counts):
                self._counts[: len(counts)] += counts
            else:
                counts[: len(self._counts)] += self._counts
                self._counts = counts
            self._least = min(self._least, float(scores.min(initial=np.inf)))
            self._most = max(self._most, float(scores.max(initial=-np.inf)))

    def summary(self) -> MetricSummary:
        """What there is to say of all scores so far."""
        if not self.scored:
            return MetricSummary(0, self.undefined, *((None,) * 6), histogram=(0,) * _BARS)
        upto = np.cumsum(self._counts)
        ranks = [-(-self.scored * percent // 100) for percent in (5, 50, 95)]
        p5, p50, p95 = (np.searchsorted(upto, ranks) / self._steps).tolist()
        span = len(self._counts) - 1 if self._steps == 1 else STEPS
        tenth = np.minimum(np.arange(len(self._counts)) * _BARS // max(span, 1), _BARS - 1)
        bars = np.bincount(tenth, self._counts, _BARS).astype(np.int64)
        return MetricSummary(
            scored=self.scored,
            undefined=self.undefined,
            mean=float(self._sum / self.scored),
            p5=p5,
            p50=p50,
            p95=p95,
            min=self._least,
            max=self._most,
            histogram=tuple(bars.tolist()),
        )
