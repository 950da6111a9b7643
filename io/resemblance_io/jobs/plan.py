"""What a job would take, found out without doing it: :class:`Plan`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from resemblance.dedup import blank_rows
from resemblance.join import iter_join
from resemblance.metrics import CountingMetric, Metric
from resemblance.metrics.base import similarity
from resemblance.strings import Strings
from resemblance.threshold import allowed_distances
from resemblance.tiles import available_memory
from resemblance_io.jobs.stages import Report

TRIAL_SECONDS: Final = 2.0
"""How long the search is tried."""

_BASE_BYTES: Final = 300 << 20
"""Of a process with the libraries loaded and batches under way."""

_ROW_BYTES: Final = 150
"""Of a row: offsets, hashes and ranks of the text, segments of the index."""

_TEXT_COPIES: Final = 3
"""The column, its distinct texts, and the part of them that a search has at hand."""

_PAIR_BYTES: Final = 90
"""Of a pair while clusters are made from all of them (measured: 88)."""

_BLOCK_PAIRS: Final = 1 << 23
"""Most pairs that count for memory where they are written in blocks."""


@dataclass(frozen=True)
class Plan:
    """What a job is expected to take. Nothing has been written.

    Attributes
    ----------
    rows : tuple of int
        Rows of each side; one number for a column against itself.
    pairs : int
        Pairs of rows with text.
    compared : int or None
        Those of them whose lengths leave the threshold within reach; None for metrics of which
        lengths alone do not tell. Equal texts are collapsed and indexes looked into first, so that
        most are never compared one by one.
    near : int
        Pairs within the threshold, about; of different texts, where the job collapses equal ones.
    memory : int
        Bytes of memory, about.
    available : int or None
        Bytes of memory that are free now.
    seconds : float
        Time, about.
    """

    rows: tuple[int, ...]
    pairs: int
    compared: int | None
    near: int
    memory: int
    available: int | None
    seconds: float

    def __str__(self) -> str:
        rows = " x ".join(f"{n:,}" for n in self.rows)
        pairs = f"{self.pairs:,}"
        if self.compared is not None:
            share = f" ({self.compared / self.pairs:.2%} of all)" if self.pairs else ""
            pairs = f"{self.compared:,} whose lengths are near enough{share}"
        free = "" if self.available is None else f" ({self.available / 1e9:.1f} GB are free)"
        return "\n".join(
            [
                f"rows    {rows}",
                f"pairs   {pairs}",
                f"        {self.near:,} within the threshold, about",
                f"memory  about {self.memory / 1e9:.1f} GB{free}",
                f"time    about {_duration(self.seconds)}",
                "nothing was written (dry run)",
            ]
        )


class _Enough(Exception):
    """Breaks a search off."""


def measured_plan(
    left: Strings,
    right: Strings | None,
    metric: Metric,
    *,
    min_similarity: float | None,
    max_distance: float | None,
    threads: int | None,
    clusters: bool,
    overhead: float,
) -> Plan:
    """Predict a search from the lengths of the texts, its first moments, and a sample of rows.

    Parameters
    ----------
    left, right : Strings
        The two sides; ``right=None`` for a column against itself.
    metric : Metric
    min_similarity, max_distance : float, optional
        The threshold.
    threads : int, optional
        Threads to search with.
    clusters : bool
        Whether clusters are made: of different texts that are not blank, from all pairs at once.
    overhead : float
        Seconds to add, for what is not the search.

    Returns
    -------
    Plan
    """
    sides = (left,) if right is None else (left, right)
    lengths = [s.lengths[~(s.is_null | blank_rows(s))] for s in sides]
    longest = max(int(n.max(initial=0)) for n in lengths)
    counts = [np.bincount(n, minlength=longest + 1) for n in lengths]
    rows = [len(n) for n in lengths]
    compared = None
    if isinstance(metric, CountingMetric):
        gaps = _largest_gaps(metric, min_similarity, max_distance, longest)
        compared = _within_window(counts, gaps)

    def search(some: Strings, others: Strings | None, report: Report) -> int:
        blocks = iter_join(
            some,
            others,
            metric,
            min_similarity=min_similarity,
            max_distance=max_distance,
            threads=threads,
            progress=report,
        )
        return sum(len(block.left) for block in blocks)

    mine = left
    if clusters:
        mine = left.take(np.flatnonzero(~(left.is_null | blank_rows(left)))).distinct().strings
    seconds, near = _trial(lambda report: search(mine, right, report))
    if near is None:
        near = _extrapolated(search, mine, right)
    held = near if clusters else min(near, _BLOCK_PAIRS)
    return Plan(
        rows=tuple(map(len, sides)),
        pairs=rows[0] * (rows[0] - 1) // 2 if right is None else rows[0] * rows[1],
        compared=compared,
        near=near,
        memory=_BASE_BYTES
        + held * _PAIR_BYTES
        + sum(len(s) * _ROW_BYTES + _TEXT_COPIES * len(s.data) * s.data.itemsize for s in sides),
        available=available_memory(),
        seconds=overhead + seconds,
    )


def _largest_gaps(
    metric: CountingMetric, min_similarity: float | None, max_distance: float | None, longest: int
) -> NDArray[np.int64]:
    """How much shorter the other string of a pair may be, for each length of the longer one."""
    if metric.equal_lengths:
        return np.zeros(longest + 1, np.int64)
    if min_similarity is None or not metric.summed:
        return allowed_distances(min_similarity, max_distance, longest)
    longer = np.arange(longest + 1, dtype=np.int64)
    estimate = np.floor(2 * longer * (1 - min_similarity) / (2 - min_similarity)).astype(np.int64)
    gaps: NDArray[np.int64] = np.minimum(estimate + 1, longer)
    for _ in range(2):  # the estimate is too large by two at most
        gaps -= similarity(gaps, 2 * longer - gaps) < min_similarity
    return gaps


def _within_window(counts: list[NDArray[np.int64]], gaps: NDArray[np.int64]) -> int:
    """Pairs whose lengths differ by no more than the gap allowed to the longer one."""
    longer = np.arange(len(gaps))
    upto = [np.concatenate([[0], np.cumsum(c)]) for c in counts]
    shorter = [n[longer] - n[longer - gaps] for n in upto]  # partners that are shorter
    # they may be many: products of Python's integers
    mine, other = (counts[i].tolist() for i in (0, -1))
    total = sum(n * m for n, m in zip(mine, shorter[-1].tolist(), strict=True))
    if len(counts) == 1:
        return int(total + sum(n * (n - 1) // 2 for n in mine))
    total += sum(n * m for n, m in zip(other, shorter[0].tolist(), strict=True))
    return int(total + sum(n * m for n, m in zip(mine, other, strict=True)))


def _trial(search: Callable[[Report], int]) -> tuple[float, int | None]:
    """Seconds that a search takes, from those of its beginning; its pairs if it comes to an end."""
    begin = time.perf_counter()
    first: tuple[float, int] | None = None  # when the first part was done: compiled by then
    estimate = 0.0

    def report(done: int, total: int) -> None:
        nonlocal first, estimate
        now = time.perf_counter()
        if first is None or done < first[1]:  # or begun again, with part of the rows
            first = now, done
        elif now - begin > TRIAL_SECONDS and first[1] < done < total:
            rate = (now - first[0]) / (done - first[1])
            estimate = now - begin + (total - done) * rate
            raise _Enough

    try:
        near = search(report)
    except _Enough:
        return estimate, None
    return time.perf_counter() - begin, near


def _extrapolated(
    search: Callable[[Strings, Strings | None, Report], int], left: Strings, right: Strings | None
) -> int:
    """Pairs, from those of as many evenly spread rows as can be looked at in a moment."""
    others = left if right is None else right
    size = 256
    while True:
        begin = time.perf_counter()
        spread = np.linspace(0, len(left) - 1, min(size, len(left)))
        sample = left.take(spread.astype(np.int64))
        found = search(sample, others, lambda done, total: None)
        if size >= len(left) or 4 * (time.perf_counter() - begin) > TRIAL_SECONDS:
            break
        size *= 4
    if right is None:  # each row met itself, and each pair is met from both ends
        found = (found - len(sample) + sample.null_count) // 2
    return found * len(left) // len(sample)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
