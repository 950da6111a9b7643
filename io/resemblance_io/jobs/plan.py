"""What a job would take, found out without doing it: :class:`Plan`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from resemblance.dedup import blank_rows
from resemblance.strings import Strings
from resemblance.threshold import allowed_distances
from resemblance.tiles import available_memory
from resemblance_io.jobs.stages import Report

TRIAL_SECONDS: Final = 2.0
"""How long the search is tried."""

_BASE_BYTES: Final = 350 << 20
"""Of a process with the libraries loaded and batches under way."""

_ROW_BYTES: Final = 250
"""Of a row: offsets, hashes and ranks of the text, segments of the index, a few pairs."""

_TEXT_COPIES: Final = 3
"""The column, its distinct texts, and the part of them that a search has at hand."""


@dataclass(frozen=True)
class Plan:
    """What a job is expected to take. Nothing has been written.

    Attributes
    ----------
    rows : tuple of int
        Rows of each side; one number for a column against itself.
    pairs : int
        Pairs of rows with text.
    compared : int
        Those of them whose lengths leave the threshold within reach. Equal texts are collapsed
        and indexes looked into first, so that most are never compared one by one.
    memory : int
        Bytes of memory, about; more if there are many more pairs within the threshold than rows.
    available : int or None
        Bytes of memory that are free now.
    seconds : float
        Time, about.
    """

    rows: tuple[int, ...]
    pairs: int
    compared: int
    memory: int
    available: int | None
    seconds: float

    def __str__(self) -> str:
        rows = " x ".join(f"{n:,}" for n in self.rows)
        share = f" ({self.compared / self.pairs:.2%} of all)" if self.pairs else ""
        free = "" if self.available is None else f" ({self.available / 1e9:.1f} GB are free)"
        return "\n".join(
            [
                f"rows    {rows}",
                f"pairs   {self.compared:,} whose lengths are near enough{share}",
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
    *,
    min_similarity: float | None,
    max_distance: float | None,
    search: Callable[[Report], None],
    overhead: float,
) -> Plan:
    """Predict a search from the lengths of the texts and its first moments.

    Parameters
    ----------
    left, right : Strings
        The two sides; ``right=None`` for a column against itself.
    min_similarity, max_distance : float, optional
        The threshold.
    search : callable
        Runs the search, reporting what it has done of what.
    overhead : float
        Seconds to add, for what is not the search.

    Returns
    -------
    Plan
    """
    sides = (left,) if right is None else (left, right)
    lengths = [s.lengths[~(s.is_null | blank_rows(s))] for s in sides]
    longest = max(int(n.max(initial=0)) for n in lengths)
    allowed = allowed_distances(min_similarity, max_distance, longest)
    counts = [np.bincount(n, minlength=longest + 1) for n in lengths]
    rows = [len(n) for n in lengths]
    memory = _BASE_BYTES + sum(
        len(s) * _ROW_BYTES + _TEXT_COPIES * len(s.data) * s.data.itemsize for s in sides
    )
    return Plan(
        rows=tuple(map(len, sides)),
        pairs=rows[0] * (rows[0] - 1) // 2 if right is None else rows[0] * rows[1],
        compared=_within_window(counts, allowed),
        memory=memory,
        available=available_memory(),
        seconds=overhead + _trial(search),
    )


def _within_window(counts: list[NDArray[np.int64]], allowed: NDArray[np.int64]) -> int:
    """Pairs whose lengths differ by no more than the distance allowed to the longer one."""
    longer = np.arange(len(allowed))
    upto = [np.concatenate([[0], np.cumsum(c)]) for c in counts]
    shorter = [n[longer] - n[longer - allowed] for n in upto]  # partners that are shorter
    # they may be many: products of Python's integers
    mine, other = (counts[i].tolist() for i in (0, -1))
    total = sum(n * m for n, m in zip(mine, shorter[-1].tolist(), strict=True))
    if len(counts) == 1:
        return int(total + sum(n * (n - 1) // 2 for n in mine))
    total += sum(n * m for n, m in zip(other, shorter[0].tolist(), strict=True))
    return int(total + sum(n * m for n, m in zip(mine, other, strict=True)))


def _trial(search: Callable[[Report], None]) -> float:
    """Seconds that a search takes, from those of its beginning."""
    begin = time.perf_counter()
    first: tuple[float, int] | None = None  # when the first part was done: compiled by then
    estimate = 0.0

    def report(done: int, total: int) -> None:
        nonlocal first, estimate
        now = time.perf_counter()
        if first is None or done < first[1]:  # or a second, shorter search has begun
            first = now, done
        elif now - begin > TRIAL_SECONDS and done > first[1]:
            rate = (now - first[0]) / (done - first[1])
            estimate = now - begin + (total - done) * rate
            raise _Enough

    try:
        search(report)
    except _Enough:
        return estimate
    return time.perf_counter() - begin


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
