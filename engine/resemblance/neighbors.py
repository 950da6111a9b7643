"""The best matches of each string: :func:`top_k`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resemblance import lanes
from resemblance.inputs import as_strings
from resemblance.jit import kernel
from resemblance.matrix import Score, check_score
from resemblance.metrics import Metric, resolve
from resemblance.metrics.base import similarity
from resemblance.strings import Strings, same_units
from resemblance.threshold import allowed_distances
from resemblance.tiles import Job, Progress, Tile, check_memory

QUERIES = 256
"""Queries of a tile: enough to be worth the tables of each block, few enough to be alike."""


class Neighbors(NamedTuple):
    """Best matches of each query.

    Attributes
    ----------
    index : ndarray of int64, shape (n, k)
        Row of the choice, best first; -1 where there are fewer than ``k``.
    score : ndarray of float64, shape (n, k)
        Its similarity or distance; NaN where there is none.
    """

    index: NDArray[np.int64]  # type: ignore[assignment]  # a tuple's method, which it hides
    score: NDArray[np.float64]


def top_k(
    queries: Any,
    choices: Any,
    metric: str | Metric = "levenshtein",
    *,
    k: int = 5,
    score: Score = "similarity",
    min_similarity: float | None = None,
    max_distance: float | None = None,
    threads: int | None = None,
    progress: Progress = False,
) -> Neighbors:
    """Find the ``k`` most similar choices of each query, exactly.

    Parameters
    ----------
    queries, choices : list, tuple, ndarray, Arrow column or Strings
        The strings. Null queries have no matches, null choices match nothing.
    metric : str or Metric
        Name, alias or record.
    k : int
        Matches wanted for each query.
    score : {"similarity", "distance"}
        What to rank by, and to report.
    min_similarity, max_distance : float, optional
        Leave out matches beyond; at most one of the two.
    threads, progress
        As for :func:`resemblance.cdist`.

    Returns
    -------
    Neighbors
        Equal scores are ranked by row of the choice, lowest first.

    Examples
    --------
    >>> import resemblance as rs
    >>> rs.top_k(["appel"], ["pear", "apple", "maple"], k=2)
    Neighbors(index=array([[1, 2]]), score=array([[0.6, 0.4]]))
    """
    metric = resolve(metric)
    check_score(score)
    if not isinstance(k, int | np.integer) or k < 1:
        raise ValueError(f"k must be a number from 1, got {k!r}")
    a, b = as_strings(queries, "queries"), as_strings(choices, "choices")
    longest = int(max(a.lengths.max(initial=0), b.lengths.max(initial=0)))
    allowed = allowed_distances(min_similarity, max_distance, longest)
    similar = score == "similarity"
    check_memory(2 * len(a) * k * 24, f"top {k:,} of {len(a):,} queries")
    a, b = same_units(a, b)
    rows = np.flatnonzero(~a.is_null)
    rows = rows[np.argsort(a.lengths[rows], kind="stable")]
    job = Job(threads, progress)
    best = _search(a, rows, b, metric, int(k), similar, allowed, job)
    index = np.full((len(a), k), -1, np.int64)
    values = np.full((len(a), k), np.nan)
    found = best.row >= 0
    index[rows] = best.row
    scores = similarity(best.distance, best.longer) if similar else best.distance
    values[rows] = np.where(found, scores, np.nan)
    return Neighbors(index, values)


class _Best(NamedTuple):
    """Best matches so far, shape (n, k): distance, longer length, row of the choice."""

    distance: NDArray[np.int64]
    longer: NDArray[np.int64]
    row: NDArray[np.int64]


def _search(
    queries: Strings,
    rows: NDArray[np.int64],
    choices: Strings,
    metric: Metric,
    k: int,
    similar: bool,
    allowed: NDArray[np.int64],
    job: Job,
) -> _Best:
    lengths = choices.lengths
    eligible = np.flatnonzero(~choices.is_null)
    by_length = eligible[np.argsort(lengths[eligible], kind="stable")]
    classes, single = lanes.lane_classes(lengths, by_length)
    size = max(1, min(QUERIES, -(-len(rows) // job.threads)))
    parts = lanes.chunks(queries.lengths, rows, size)
    # With fewer tiles than threads, each tile's choices are dealt out to several searches.
    shares = max(1, job.threads // max(1, len(parts)))
    n = len(rows)
    found = [
        _Best(
            np.full((n, k), len(allowed), np.int64),
            np.ones((n, k), np.int64),
            np.full((n, k), -1, np.int64),
        )
        for _ in range(shares)
    ]

    def tile(part: NDArray[np.int64], at: int, share: int) -> None:
        program = lanes.make_program(queries, part)
        place = np.empty(len(part), np.int64)  # where the program's texts are in ``part``
        place[:] = at + _positions(part, program.rows)
        best = found[share]
        low, high = queries.lengths[part].min(), queries.lengths[part].max()
        runs = []
        for lane_class in classes:
            most = max(1, lanes.TILE_RESULTS // (4 * len(part) * lane_class.width))
            for first in range(0, lane_class.blocks, most):
                blocks = min(most, lane_class.blocks - first)
                members = lane_class.rows[first * lane_class.width :][: blocks * lane_class.width]
                shortest, longest = lengths[members[0]], lengths[members[-1]]
                gap = max(0, int(shortest - high), int(low - longest))
                runs.append((gap, shortest, longest, lane_class, first, blocks))
        runs.sort(key=lambda run: run[0])
        for gap, shortest, longest, lane_class, first, blocks in runs[share::shares]:
            if job.stop[0]:
                return
            if gap and not _reachable(
                best.distance, best.longer, best.row, place, program.lengths, shortest, longest,
                similar, allowed,
            ):  # fmt: skip
                continue
            deltas = lanes.block_deltas(metric, program, choices, lane_class, first, blocks, job)
            _select(
                deltas, blocks, lane_class.width, lane_class.rows, first, lengths, program.lengths,
                place, allowed, similar, longest, best.distance, best.longer, best.row,
            )  # fmt: skip
        mine = single[share::shares]
        for i, row in enumerate(program.rows.tolist()):
            if len(mine) and not job.stop[0]:
                distances = np.empty(len(mine), np.int64)
                lanes.pair_distances(
                    metric, queries, np.full(len(mine), row), choices, mine, distances, job
                )
                _select_pairs(
                    distances, mine, lengths, program.lengths[i], place[i], allowed, similar,
                    best.distance, best.longer, best.row,
                )  # fmt: skip

    starts = np.cumsum([0, *(len(part) for part in parts)])
    cost = 10 * len(eligible) // shares

    def tiles() -> Iterator[Tile]:
        for part, at in zip(parts, starts.tolist(), strict=False):
            for share in range(shares):
                yield cost * len(part), partial(tile, part, at, share)

    job.run(tiles(), cost * n * shares)
    for other in found[1:]:
        _merge(*found[0], *other, similar)
    return found[0]


def _positions(part: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each of ``rows`` stands in ``part``, a permutation of it."""
    order = np.argsort(part)
    return order[np.searchsorted(part[order], rows)]


# -- kernels --------------------------------------------------------------------------------------
#
# A match is (distance, longer length, row). Ranked by similarity, distances are compared as
# fractions of the longer length, exactly: cross-multiplied.


@kernel
def _before(distance, longer, row, other_distance, other_longer, other_row, similar):
    """Does the first match rank before the second? A row of -1 is "no match yet"."""
    if other_row < 0:
        return True
    if similar:
        # two empty strings: no distance, whatever the length
        x = distance * max(other_longer, 1)
        y = other_distance * max(longer, 1)
    else:
        x = distance
        y = other_distance
    return x < y or (x == y and row < other_row)


@kernel
def _insert(distance, longer, row, at, similar, distances, longers, indexes):
    k = distances.shape[1]
    if not _before(
        distance, longer, row, distances[at, k - 1], longers[at, k - 1], indexes[at, k - 1], similar
    ):
        return
    i = k - 1
    while i > 0 and _before(
        distance, longer, row, distances[at, i - 1], longers[at, i - 1], indexes[at, i - 1], similar
    ):
        distances[at, i] = distances[at, i - 1]
        longers[at, i] = longers[at, i - 1]
        indexes[at, i] = indexes[at, i - 1]
        i -= 1
    distances[at, i] = distance
    longers[at, i] = longer
    indexes[at, i] = row


@kernel
def _bound(at, longest, allowed, similar, distances, longers, indexes):
    """Largest distance that could still enter the list, if no longer length exceeds ``longest``."""
    most = allowed[longest]
    k = distances.shape[1]
    if indexes[at, k - 1] >= 0:
        worst = distances[at, k - 1]
        if similar:
            worst = worst * longest // max(longers[at, k - 1], 1)
        most = min(most, worst)
    return most


@kernel
def _reachable(
    distances, longers, indexes, place, query_lengths, shortest, longest, similar, allowed
):
    """Could choices of ``shortest`` to ``longest`` characters enter any query's list?"""
    for t in range(len(place)):
        n = query_lengths[t]
        gap = max(0, shortest - n, n - longest)
        most = _bound(place[t], max(n, longest), allowed, similar, distances, longers, indexes)
        if gap <= most:
            return True
    return False


@kernel
def _select(
    deltas,
    blocks,
    width,
    rows,
    first,
    lengths,
    query_lengths,
    place,
    allowed,
    similar,
    longest,
    distances,
    longers,
    indexes,
):
    """Enter the matches of some blocks into the lists."""
    n = len(place)
    for t in range(n):
        query = query_lengths[t]
        at = place[t]
        limit = _bound(at, max(query, longest), allowed, similar, distances, longers, indexes)
        for b in range(blocks):
            found = deltas[(b * n + t) * width : (b * n + t + 1) * width]
            least = found[0]
            for lane in range(width):
                least = min(least, found[lane])
            if query + least > limit:
                continue
            begin = (first + b) * width
            for lane in range(min(width, len(rows) - begin)):
                distance = query + found[lane]
                if distance <= limit:
                    row = rows[begin + lane]
                    longer = max(query, lengths[row])
                    if distance <= allowed[longer]:
                        _insert(distance, longer, row, at, similar, distances, longers, indexes)
            limit = _bound(at, max(query, longest), allowed, similar, distances, longers, indexes)


@kernel
def _select_pairs(found, rows, lengths, query, at, allowed, similar, distances, longers, indexes):
    for i in range(len(found)):
        longer = max(query, lengths[rows[i]])
        if found[i] <= allowed[longer]:
            _insert(found[i], longer, rows[i], at, similar, distances, longers, indexes)


@kernel
def _merge(distances, longers, indexes, other_distances, other_longers, other_indexes, similar):
    for at in range(distances.shape[0]):
        for i in range(distances.shape[1]):
            if other_indexes[at, i] >= 0:
                _insert(
                    other_distances[at, i], other_longers[at, i], other_indexes[at, i], at, similar,
                    distances, longers, indexes,
                )  # fmt: skip
