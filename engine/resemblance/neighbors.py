"""The best matches of each string: :func:`top_k`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resemblance import lanes
from resemblance.inputs import as_strings
from resemblance.jit import kernel
from resemblance.lanes import pair_size
from resemblance.matrix import SCORE_ROWS, Score, check_score
from resemblance.metrics import CountingMetric, Metric, ScoringMetric, resolve
from resemblance.metrics.base import similarity
from resemblance.strings import Strings, same_units
from resemblance.threshold import allowed_distances, check_threshold, least_similarity
from resemblance.tiles import Job, Progress, Tile, check_memory

if TYPE_CHECKING:
    from resemblance.normalize import Normalize

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
    normalize: Normalize | None = None,
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
    normalize, threads, progress
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
    check_threshold(min_similarity, max_distance)
    a = as_strings(queries, "queries", normalize)
    b = as_strings(choices, "choices", normalize)
    similar = score == "similarity"
    check_memory(2 * len(a) * k * 24, f"top {k:,} of {len(a):,} queries")
    a, b = same_units(a, b)
    job = Job(threads, progress)
    rows = np.flatnonzero(~a.is_null)
    rows = rows[np.argsort(a.lengths[rows], kind="stable")]
    index = np.full((len(a), k), -1, np.int64)
    values = np.full((len(a), k), np.nan)
    if isinstance(metric, CountingMetric):
        largest = int(metric.sizes(a.lengths.max(initial=0), b.lengths.max(initial=0)))
        allowed = allowed_distances(min_similarity, max_distance, largest)
        best = _search(
            metric.operand(a), rows, metric.operand(b), metric, int(k), similar, allowed, job
        )
        scores = similarity(best.distance, best.size) if similar else best.distance
        index[rows], values[rows] = best.row, np.where(best.row >= 0, scores, np.nan)
    else:
        at_least = least_similarity(min_similarity, max_distance)
        found = _search_scores(a, rows, b, metric, int(k), similar, at_least, job)
        index[rows], values[rows] = found.row, np.where(found.row >= 0, found.score, np.nan)
    return Neighbors(index, values)


class _Best(NamedTuple):
    """Best matches so far, shape (n, k): distance, size of the pair, row of the choice."""

    distance: NDArray[np.int64]
    size: NDArray[np.int64]
    row: NDArray[np.int64]


def _search(
    queries: Strings,
    rows: NDArray[np.int64],
    choices: Strings,
    metric: CountingMetric,
    k: int,
    similar: bool,
    allowed: NDArray[np.int64],
    job: Job,
) -> _Best:
    lengths = choices.lengths
    eligible = np.flatnonzero(~choices.is_null)
    by_length = eligible[np.argsort(lengths[eligible], kind="stable")]
    classes, single = lanes.lane_classes(metric, lengths, by_length)
    within = lanes.all_allowed(queries, choices)
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
                best.distance, best.size, best.row, place, program.lengths, shortest, longest,
                similar, allowed, metric.summed,
            ):  # fmt: skip
                continue
            deltas = lanes.block_deltas(metric, program, choices, lane_class, first, blocks, job)
            _select(
                deltas, blocks, lane_class.width, lane_class.rows, first, lengths, program.lengths,
                place, allowed, similar, longest, metric.summed, metric.equal_lengths,
                best.distance, best.size, best.row,
            )  # fmt: skip
        mine = single[share::shares]
        for i, row in enumerate(program.rows.tolist()):
            if len(mine) and not job.stop[0]:
                same = np.full(len(mine), row)
                distances = lanes.pair_distances(metric, queries, same, choices, mine, job, within)
                _select_pairs(
                    distances, mine, lengths, program.lengths[i], place[i], allowed, similar,
                    metric.summed, metric.equal_lengths, best.distance, best.size, best.row,
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
# A match is (distance, size, row). Ranked by similarity, distances are compared as fractions of the
# size, exactly: cross-multiplied.


@kernel
def _before(distance, size, row, other_distance, other_size, other_row, similar):
    """Does the first match rank before the second? A row of -1 is "no match yet"."""
    if other_row < 0:
        return True
    if similar:
        # two empty strings: no distance, whatever the size
        x = distance * max(other_size, 1)
        y = other_distance * max(size, 1)
    else:
        x = distance
        y = other_distance
    return x < y or (x == y and row < other_row)


@kernel
def _insert(distance, size, row, at, similar, distances, sizes, indexes):
    k = distances.shape[1]
    if not _before(
        distance, size, row, distances[at, k - 1], sizes[at, k - 1], indexes[at, k - 1], similar
    ):
        return
    i = k - 1
    while i > 0 and _before(
        distance, size, row, distances[at, i - 1], sizes[at, i - 1], indexes[at, i - 1], similar
    ):
        distances[at, i] = distances[at, i - 1]
        sizes[at, i] = sizes[at, i - 1]
        indexes[at, i] = indexes[at, i - 1]
        i -= 1
    distances[at, i] = distance
    sizes[at, i] = size
    indexes[at, i] = row


@kernel
def _bound(at, largest, allowed, similar, distances, sizes, indexes):
    """Largest distance that could still enter the list, if no pair's size exceeds ``largest``."""
    most = allowed[largest]
    k = distances.shape[1]
    if indexes[at, k - 1] >= 0:
        worst = distances[at, k - 1]
        if similar:
            worst = worst * largest // max(sizes[at, k - 1], 1)
        most = min(most, worst)
    return most


@kernel
def _reachable(
    distances, sizes, indexes, place, query_lengths, shortest, longest, similar, allowed, summed
):
    """Could choices of ``shortest`` to ``longest`` characters enter any query's list?"""
    for t in range(len(place)):
        n = query_lengths[t]
        gap = max(0, shortest - n, n - longest)
        largest = pair_size(summed, n, longest)
        most = _bound(place[t], largest, allowed, similar, distances, sizes, indexes)
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
    summed,
    equal_lengths,
    distances,
    sizes,
    indexes,
):
    """Enter the matches of some blocks into the lists."""
    n = len(place)
    for t in range(n):
        query = query_lengths[t]
        at = place[t]
        largest = pair_size(summed, query, longest)
        limit = _bound(at, largest, allowed, similar, distances, sizes, indexes)
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
                    if equal_lengths and lengths[row] != query:
                        continue
                    size = pair_size(summed, query, lengths[row])
                    if distance <= allowed[size]:
                        _insert(distance, size, row, at, similar, distances, sizes, indexes)
            limit = _bound(at, largest, allowed, similar, distances, sizes, indexes)


@kernel
def _select_pairs(
    found, rows, lengths, query, at, allowed, similar, summed, equal_lengths, distances, sizes,
    indexes,
):  # fmt: skip
    for i in range(len(found)):
        if equal_lengths and lengths[rows[i]] != query:
            continue
        size = pair_size(summed, query, lengths[rows[i]])
        if found[i] <= allowed[size]:
            _insert(found[i], size, rows[i], at, similar, distances, sizes, indexes)


@kernel
def _merge(distances, sizes, indexes, other_distances, other_sizes, other_indexes, similar):
    for at in range(distances.shape[0]):
        for i in range(distances.shape[1]):
            if other_indexes[at, i] >= 0:
                _insert(
                    other_distances[at, i], other_sizes[at, i], other_indexes[at, i], at, similar,
                    distances, sizes, indexes,
                )  # fmt: skip


# -- scores ---------------------------------------------------------------------------------------


class _BestScores(NamedTuple):
    """Best matches so far, shape (n, k): score (a distance if those rank), row of the choice."""

    score: NDArray[np.float64]
    row: NDArray[np.int64]


def _search_scores(
    queries: Strings,
    rows: NDArray[np.int64],
    choices: Strings,
    metric: ScoringMetric,
    k: int,
    similar: bool,
    at_least: float,
    job: Job,
) -> _BestScores:
    scorer = metric.scorer(queries, choices)
    eligible = ~choices.is_null
    parts = scorer.parts(rows, max(1, min(SCORE_ROWS, -(-len(rows) // job.threads))))
    place = np.empty(len(queries), np.int64)
    place[rows] = np.arange(len(rows))
    # With fewer tiles than threads, each tile's choices are dealt out to several searches.
    shares = max(1, job.threads // max(1, len(parts)))
    n = len(rows)
    found = [_BestScores(np.zeros((n, k)), np.full((n, k), -1, np.int64)) for _ in range(shares)]

    def tile(part: NDArray[np.int64], share: int) -> None:
        program = scorer.program(part)
        best = found[share]
        stretches = list(scorer.stretches(part, 0, len(choices)))
        for first, last, _ in stretches[share::shares]:
            scores = scorer.scores(program, first, last, job)
            if job.stop[0]:
                return
            _select_scores(
                scores, scorer.columns[first:last], eligible, place[part], similar, at_least,
                best.score, best.row,
            )  # fmt: skip

    def tiles() -> Iterator[Tile]:
        for part in parts:
            cost = sum(cost for *_, cost in scorer.stretches(part, 0, len(choices))) // shares
            for share in range(shares):
                yield cost, partial(tile, part, share)

    total = sum(cost for part in parts for *_, cost in scorer.stretches(part, 0, len(choices)))
    job.run(tiles(), total)
    for other in found[1:]:
        _merge_scores(*found[0], *other, similar)
    return found[0]


@kernel
def _insert_score(score, row, at, similar, scores, indexes):
    k = scores.shape[1]
    i = k
    while i > 0:
        other = scores[at, i - 1]
        if indexes[at, i - 1] >= 0 and not (
            (score > other if similar else score < other)
            or (score == other and row < indexes[at, i - 1])
        ):
            break
        i -= 1
    if i == k:
        return
    for j in range(k - 1, i, -1):
        scores[at, j] = scores[at, j - 1]
        indexes[at, j] = indexes[at, j - 1]
    scores[at, i] = score
    indexes[at, i] = row


@kernel
def _select_scores(found, columns, eligible, place, similar, at_least, scores, indexes):
    """Enter a tile's scores into the lists."""
    k = scores.shape[1]
    for t in range(len(place)):
        at = place[t]
        for p in range(len(columns)):
            value = found[t, p]
            if value < at_least or not eligible[columns[p]]:
                continue
            score = value if similar else 1.0 - value
            full = indexes[at, k - 1] >= 0
            worst = scores[at, k - 1]
            if not full or (score >= worst if similar else score <= worst):
                _insert_score(score, columns[p], at, similar, scores, indexes)


@kernel
def _merge_scores(scores, indexes, other_scores, other_indexes, similar):
    for at in range(scores.shape[0]):
        for i in range(scores.shape[1]):
            if other_indexes[at, i] >= 0:
                _insert_score(
                    other_scores[at, i], other_indexes[at, i], at, similar, scores, indexes
                )
