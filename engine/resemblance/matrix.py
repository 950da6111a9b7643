"""All-pairs and element-by-element scores: :func:`cdist`, :func:`pdist`, :func:`pairwise`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from resemblance import lanes
from resemblance.inputs import as_strings
from resemblance.jit import inlined, kernel
from resemblance.lanes import pair_size
from resemblance.metrics import AnyMetric, CountingMetric, Metric, ScoringMetric, resolve
from resemblance.metrics.base import Scorer, similarity
from resemblance.simd import store_sum
from resemblance.strings import Strings, same_units
from resemblance.tiles import Job, Progress, Tile, check_memory

if TYPE_CHECKING:
    from resemblance.normalize import Normalize

Score = Literal["distance", "similarity"]


def cdist(
    left: Any,
    right: Any = None,
    metric: str | Metric = "levenshtein",
    *,
    score: Score = "distance",
    normalize: Normalize | None = None,
    out: NDArray[Any] | None = None,
    dtype: DTypeLike | None = None,
    threads: int | None = None,
    progress: Progress = False,
) -> NDArray[Any]:
    """Score every string of one column against every string of another.

    Parameters
    ----------
    left, right : list, tuple, ndarray, Arrow column or Strings
        The strings; ``right=None`` scores ``left`` against itself.
    metric : str or Metric
        Name, alias or record.
    score : {"distance", "similarity"}
        Distance in the metric's unit, or similarity from 0 to 1.
    normalize : Normalize, optional
        What to do to all strings first.
    out : ndarray of shape (n, m), optional
        Where to write; C-contiguous.
    dtype : dtype, optional
        By default distances that count edits come in the narrowest unsigned type that holds the
        largest possible one (float64 where there are nulls); all other scores in float64.
    threads : int, optional
        None: all CPUs this process may use. The result does not depend on it.
    progress : bool or callable
        True: a bar on terminals and in notebooks; or a function of (done, total).

    Returns
    -------
    ndarray of shape (n, m)
        NaN in the rows and columns of nulls, and where a metric has no score for a pair.

    Raises
    ------
    MemoryError
        If the matrix cannot fit in memory; nothing is allocated then.
    ValueError
        If ``dtype`` cannot hold the largest possible distance, or integers were asked for and
        there are nulls or fractions.

    See Also
    --------
    top_k, join : the best or all good pairs without the matrix.

    Examples
    --------
    >>> import resemblance as rs
    >>> rs.cdist(["night", "day"], ["nacht", "tag", "nuit"])
    array([[2, 4, 3],
           [4, 2, 4]], dtype=uint8)
    """
    metric = resolve(metric)
    a = as_strings(left, "left", normalize)
    b = a if right is None else as_strings(right, "right", normalize)
    sides = {"left": a} if right is None else {"left": a, "right": b}
    kind = _result_type(metric, score, dtype, out, sides)
    shape = (len(a), len(b))
    if out is None:
        check_memory(shape[0] * shape[1] * kind.itemsize, f"a {shape[0]:,} x {shape[1]:,} matrix")
        out = np.empty(shape, kind)
    else:
        _check_out(out, shape)
    job = Job(threads, progress)
    flat = out.reshape(-1)
    if right is None:
        _fill_triangle(a, metric, score, flat, job, condensed=False)
        np.fill_diagonal(out, 1 if score == "similarity" else 0)
    else:
        _fill_matrix(*same_units(a, b), metric, score, flat, job)
    if metric.equal_lengths:
        _void_unequal(a.lengths, b.lengths, out)
    if a.null_count or b.null_count:
        out[a.is_null, :] = np.nan
        out[:, b.is_null] = np.nan
    return out


def pdist(
    strings: Any,
    metric: str | Metric = "levenshtein",
    *,
    score: Score = "distance",
    normalize: Normalize | None = None,
    out: NDArray[Any] | None = None,
    dtype: DTypeLike | None = None,
    threads: int | None = None,
    progress: Progress = False,
) -> NDArray[Any]:
    """Score every pair of one column once, in SciPy's condensed order.

    Parameters
    ----------
    strings : list, tuple, ndarray, Arrow column or Strings
        The strings.
    metric, score, normalize, dtype, threads, progress
        As for :func:`cdist`.
    out : ndarray of shape (n * (n - 1) / 2,), optional
        Where to write; C-contiguous.

    Returns
    -------
    ndarray of shape (n * (n - 1) / 2,)
        Pairs (0, 1), (0, 2), ... (1, 2), ...; ``scipy.spatial.distance.squareform`` makes it a
        square. NaN as for :func:`cdist`.

    Raises
    ------
    MemoryError, ValueError
        As for :func:`cdist`.

    Examples
    --------
    >>> import resemblance as rs
    >>> rs.pdist(["night", "nacht", "nuit"])
    array([2, 3, 3], dtype=uint8)
    """
    metric = resolve(metric)
    s = as_strings(strings, "strings", normalize)
    kind = _result_type(metric, score, dtype, out, {"strings": s})
    n = len(s)
    shape = (n * (n - 1) // 2,)
    if out is None:
        check_memory(shape[0] * kind.itemsize, f"{shape[0]:,} pairs of {n:,} strings")
        out = np.empty(shape, kind)
    else:
        _check_out(out, shape)
    _fill_triangle(s, metric, score, out, Job(threads, progress), condensed=True)
    if metric.equal_lengths:
        _void_unequal_pairs(s.lengths, out)
    for i in np.flatnonzero(s.is_null).tolist():
        earlier = np.arange(i)
        out[earlier * n - earlier * (earlier + 1) // 2 + i - earlier - 1] = np.nan
        begin = i * n - i * (i + 1) // 2
        out[begin : begin + n - i - 1] = np.nan
    return out


def pairwise(
    left: Any,
    right: Any,
    metric: str | Metric = "levenshtein",
    *,
    score: Score = "similarity",
    normalize: Normalize | None = None,
    dtype: DTypeLike | None = None,
    threads: int | None = None,
    progress: Progress = False,
) -> NDArray[Any]:
    """Score two columns of the same length element by element.

    Parameters
    ----------
    left, right : list, tuple, ndarray, Arrow column or Strings
        The strings; as many on each side.
    metric, normalize, dtype, threads, progress
        As for :func:`cdist`.
    score : {"similarity", "distance"}
        As for :func:`cdist`, but similarity by default.

    Returns
    -------
    ndarray of shape (n,)
        NaN where either string is null, or the metric has no score for the pair.

    Raises
    ------
    ValueError
        If the columns differ in length, or as for :func:`cdist`.

    Examples
    --------
    >>> import resemblance as rs
    >>> rs.pairwise(["night", "abcde"], ["nacht", "abcdX"])
    array([0.6, 0.8])
    """
    metric = resolve(metric)
    a = as_strings(left, "left", normalize)
    b = as_strings(right, "right", normalize)
    if len(a) != len(b):
        raise ValueError(f"left has {len(a):,} rows and right {len(b):,}; they must be as many")
    kind = _result_type(metric, score, dtype, None, {"left": a, "right": b})
    void = a.is_null | b.is_null
    lengths = a.lengths, b.lengths
    if metric.equal_lengths:
        void |= lengths[0] != lengths[1]
    a, b = same_units(a, b)
    job = Job(threads, progress)
    rows = np.arange(len(a))
    if isinstance(metric, CountingMetric):
        narrow = np.dtype(np.uint32) if score == "similarity" else kind
        result = np.empty(len(a), narrow)
        _fill_pairs(metric.operand(a), metric.operand(b), rows, metric, result, job)
        if score == "similarity":
            result = similarity(result, metric.sizes(*lengths)).astype(kind, copy=False)
    else:
        result = np.empty(len(a))
        _score_pairs(a, b, rows, metric, result, job)
        if score == "distance":
            np.subtract(1.0, result, out=result)
        result = result.astype(kind, copy=False)
    if void.any():
        result[void] = np.nan
    return result


# -- checks ---------------------------------------------------------------------------------------


RESULTS = tuple(
    np.dtype(kind) for kind in (*("u1", "u2", "u4", "u8"), *("i1", "i2", "i4", "i8"), *("f4", "f8"))
)
"""Types of results."""


def check_score(score: str) -> None:
    """Refuse anything but the two scores there are."""
    if score not in ("distance", "similarity"):
        raise ValueError(f"score must be 'distance' or 'similarity', got {score!r}")


def _result_type(
    metric: AnyMetric,
    score: str,
    dtype: DTypeLike | None,
    out: NDArray[Any] | None,
    sides: dict[str, Strings],
) -> np.dtype[Any]:
    """The type of the result, refused if it cannot hold every value that may come."""
    check_score(score)
    if out is not None:
        if dtype is not None and np.dtype(dtype) != out.dtype:
            raise ValueError(f"dtype {np.dtype(dtype)} and the type of out, {out.dtype}, differ")
        dtype = out.dtype
    whole = score == "distance" and isinstance(metric, CountingMetric)
    largest = 1
    if isinstance(metric, CountingMetric):
        longest = [int(s.lengths.max(initial=0)) for s in sides.values()]
        largest = int(metric.sizes(longest[0], longest[-1]))
    fits = np.min_scalar_type(largest)
    nulls = {side: int(np.flatnonzero(s.is_null)[0]) for side, s in sides.items() if s.null_count}
    if dtype is None:
        floats = not whole or nulls or metric.equal_lengths
        return np.dtype(np.float64) if floats else fits
    kind = np.dtype(dtype)
    if kind not in RESULTS:
        raise ValueError(f"dtype must be an integer type, float32 or float64, got {kind}")
    if kind.kind != "f":
        if not whole:
            what = "similarities" if score == "similarity" else f"{metric.name} distances"
            raise ValueError(f"{what} are fractions: dtype must be a float type, got {kind}")
        if nulls:
            side, row = next(iter(nulls.items()))
            raise ValueError(
                f"{side} row {row} is null, which {kind} cannot hold: pass dtype='float64' to get "
                "NaN there, or drop the nulls first"
            )
        if metric.equal_lengths:
            raise ValueError(
                f"strings of different lengths have no {metric.label} distance, which {kind} "
                "cannot hold: pass dtype='float64' to get NaN there"
            )
        if largest > np.iinfo(kind).max:
            raise ValueError(
                f"distances can be as large as {largest:,}, which {kind} cannot hold; {fits} can"
            )
    elif whole and largest > 2 ** np.finfo(kind).nmant:
        raise ValueError(f"distances can be as large as {largest:,}, too many for {kind}")
    return kind


def _check_out(out: NDArray[Any], shape: tuple[int, ...]) -> None:
    if out.shape != shape:
        raise ValueError(f"out has shape {out.shape}, the result {shape}")
    if not out.flags.c_contiguous or not out.flags.writeable or not out.flags.aligned:
        raise ValueError("out must be a writable C-contiguous array")


# -- jobs -----------------------------------------------------------------------------------------


def _fill_matrix(
    left: Strings, right: Strings, metric: AnyMetric, score: Score, out: NDArray[Any], job: Job
) -> None:
    """Fill a whole matrix, flat in memory."""
    n, m = len(left), len(right)
    if n == 0 or m == 0:
        return
    # Patterns are on the right, so that results are written along the rows of the matrix, unless
    # that side is too short to fill the lanes.
    if m >= min(n, 1024):
        texts, patterns, strides = left, right, (m, 1)
    else:
        texts, patterns, strides = right, left, (1, m)
    if isinstance(metric, ScoringMetric):
        _score_matrix(texts, patterns, metric, score, out, strides, job)
    else:
        _count_matrix(
            metric.operand(texts), metric.operand(patterns), metric, score, out, strides, job
        )


def _count_matrix(
    texts: Strings,
    patterns: Strings,
    metric: CountingMetric,
    score: Score,
    out: NDArray[Any],
    strides: tuple[int, int],
    job: Job,
) -> None:
    text_stride, pattern_stride = strides
    text_lengths, pattern_lengths = texts.lengths, patterns.lengths
    rows = np.arange(len(texts), dtype=np.int64)
    if len(rows) > lanes.CHUNK_TEXTS:
        lanes.sort_rows(texts, rows)
    similar = score == "similarity"

    def on_block(
        part: lanes.Program, kind: lanes.LaneClass, first: int, blocks: int, deltas: NDArray[Any]
    ) -> None:
        _write_matrix(
            deltas,
            kind.width,
            kind.rows,
            first,
            blocks,
            pattern_lengths,
            part.rows,
            part.lengths,
            out,
            text_stride,
            pattern_stride,
            similar,
            metric.summed,
        )

    def on_pairs(t: NDArray[np.int64], p: NDArray[np.int64], found: NDArray[np.int64]) -> None:
        out[t * text_stride + p * pattern_stride] = (
            similarity(found, metric.sizes(text_lengths[t], pattern_lengths[p]))
            if similar
            else found
        )

    parts = lanes.chunks(text_lengths, rows)
    every = np.arange(len(patterns), dtype=np.int64)
    job.run(*lanes.meeting(metric, texts, parts, patterns, every, job, on_block, on_pairs))


SCORE_ROWS = 512
"""Most texts of a tile of scores: eight bytes each, with those of a block they fill a cache."""


def _score_matrix(
    texts: Strings,
    patterns: Strings,
    metric: ScoringMetric,
    score: Score,
    out: NDArray[Any],
    strides: tuple[int, int],
    job: Job,
) -> None:
    scorer = metric.scorer(texts, patterns)
    parts = scorer.parts(np.arange(len(texts)), SCORE_ROWS)

    def on_scores(part: NDArray[np.int64], first: int, last: int, found: NDArray[Any]) -> None:
        columns = scorer.columns[first:last]
        _write_scores(found, part, columns, out, *strides, score == "distance")

    job.run(*score_tiles(scorer, parts, job, on_scores, lambda part: (0, len(patterns))))


OnScores = Callable[[NDArray[np.int64], int, int, NDArray[np.float64]], None]
"""Gets scores that last as long as the call."""


def score_tiles(
    scorer: Scorer,
    parts: list[NDArray[np.int64]],
    job: Job,
    on_scores: OnScores,
    wanted: Callable[[NDArray[np.int64]], tuple[int, int]],
) -> tuple[Iterator[Tile], int]:
    """Tiles (and their total cost) that score parts of the texts.

    Parameters
    ----------
    scorer : Scorer
    parts : list of ndarray of int64
        As the scorer cut them.
    job : Job
        Whose stop flag to heed.
    on_scores : function of (part, first, last, scores)
        Gets the similarities of a part's rows and ``scorer.columns[first:last]``.
    wanted : function of (part)
        Gives the first row of the patterns and the one after the last that are of interest.
    """

    def tile(part: NDArray[np.int64], program: Any, first: int, last: int) -> None:
        found = scorer.scores(program, first, last, job)
        if not job.stop[0]:
            on_scores(part, first, last, found)

    def tiles() -> Iterator[Tile]:
        for part in parts:
            program = scorer.program(part)
            for first, last, cost in scorer.stretches(part, *wanted(part)):
                yield cost, partial(tile, part, program, first, last)

    total = sum(cost for part in parts for *_, cost in scorer.stretches(part, *wanted(part)))
    return tiles(), total


def _fill_triangle(
    strings: Strings,
    metric: AnyMetric,
    score: Score,
    out: NDArray[Any],
    job: Job,
    *,
    condensed: bool,
) -> None:
    """Fill all pairs of different rows of one column: once (condensed) or both ways (square)."""
    if len(strings) < 2:
        return
    if isinstance(metric, ScoringMetric):
        _score_triangle(strings, metric, score, out, job, condensed)
    else:
        _count_triangle(metric.operand(strings), metric, score, out, job, condensed)


def _score_triangle(
    strings: Strings,
    metric: ScoringMetric,
    score: Score,
    out: NDArray[Any],
    job: Job,
    condensed: bool,
) -> None:
    n = len(strings)
    scorer = metric.scorer(strings, strings)
    parts = scorer.parts(np.arange(n), min(max(n // 12, 64), SCORE_ROWS))

    def on_scores(part: NDArray[np.int64], first: int, last: int, found: NDArray[Any]) -> None:
        columns = scorer.columns[first:last]
        _write_later_scores(found, part, columns, out, n, condensed, score == "distance")

    job.run(*score_tiles(scorer, parts, job, on_scores, lambda part: (int(part.min()) + 1, n)))


def _count_triangle(
    strings: Strings,
    metric: CountingMetric,
    score: Score,
    out: NDArray[Any],
    job: Job,
    condensed: bool,
) -> None:
    n = len(strings)
    lengths = strings.lengths
    # Each pair is computed where the text comes before the pattern in ``order``. Long strings are
    # ordered by length, so that lanes are filled alike; short ones as they are, so that results
    # are written along the rows of the matrix.
    ordered = bool(lengths.mean() <= 32)
    order = np.arange(n, dtype=np.int64) if ordered else np.argsort(lengths, kind="stable")
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n)
    similar = score == "similarity"

    def on_block(
        part: lanes.Program, kind: lanes.LaneClass, first: int, blocks: int, deltas: NDArray[Any]
    ) -> None:
        _write_triangle(
            deltas,
            kind.width,
            kind.rows,
            first,
            blocks,
            lengths,
            part.rows,
            rank,
            ordered and kind.bits != 0,
            out,
            condensed,
            similar,
            metric.summed,
        )

    def on_pairs(t: NDArray[np.int64], p: NDArray[np.int64], found: NDArray[np.int64]) -> None:
        once = rank[t] < rank[p]
        scores: NDArray[Any] = found[once]
        if similar:
            scores = similarity(scores, metric.sizes(lengths[t[once]], lengths[p[once]]))
        i, j = np.minimum(t[once], p[once]), np.maximum(t[once], p[once])
        if condensed:
            out[i * n - i * (i + 1) // 2 + j - i - 1] = scores
        else:
            out[i * n + j] = scores
            out[j * n + i] = scores

    def wanted(part: NDArray[np.int64], kind: lanes.LaneClass) -> tuple[int, int]:
        last = np.maximum.reduceat(rank[kind.rows], np.arange(0, len(kind.rows), kind.width))
        blocks = np.flatnonzero(last > rank[part[0]])
        return (int(blocks[0]), kind.blocks) if len(blocks) else (0, 0)

    most = min(max(n // 12, 256), lanes.CHUNK_TEXTS)
    parts = lanes.chunks(lengths, order, most)
    job.run(*lanes.meeting(metric, strings, parts, strings, order, job, on_block, on_pairs, wanted))


def _fill_pairs(
    a: Strings,
    b: Strings,
    rows: NDArray[np.int64],
    metric: CountingMetric,
    out: NDArray[Any],
    job: Job,
) -> None:
    """Distances of equal rows of two columns."""
    costs = metric.pair_cost(a.lengths, b.lengths)
    allowed = lanes.all_allowed(a, b)

    def tile(part: NDArray[np.int64]) -> None:
        found = lanes.pair_distances(metric, a, part, b, part, job, allowed)
        out[part[0] : part[-1] + 1] = found

    def tiles() -> Iterator[Tile]:
        for cost, part in lanes.by_cost(rows, costs):
            yield cost, partial(tile, part)

    job.run(tiles(), int(costs.sum()))


def _score_pairs(
    a: Strings,
    b: Strings,
    rows: NDArray[np.int64],
    metric: ScoringMetric,
    out: NDArray[np.float64],
    job: Job,
) -> None:
    """Similarities of equal rows of two columns."""
    costs = 40 + 6 * (a.lengths + b.lengths)

    def tiles() -> Iterator[Tile]:
        for cost, part in lanes.by_cost(rows, costs):
            here = out[part[0] : part[-1] + 1]
            yield cost, partial(metric.pair_scores, a, part, b, part, here, job)

    job.run(tiles(), int(costs.sum()))


# -- kernels --------------------------------------------------------------------------------------


STRIPE = lanes.BLOCK_BYTES // 8
"""Patterns of the narrowest block, which divides the others."""


@inlined
def _similarity(distance, size):
    """As :func:`resemblance.metrics.base.similarity`, for one pair."""
    return (size - distance) / size if size > 0 else 1.0


@kernel
def _write_matrix(
    deltas,
    width,
    rows,
    first,
    blocks,
    lengths,
    text_rows,
    text_lengths,
    out,
    text_stride,
    pattern_stride,
    similar,
    summed,
):
    """Put the results of some blocks where they belong; one of the strides is 1."""
    n = len(text_rows)
    here = rows[first * width : min((first + blocks) * width, len(rows))]
    if pattern_stride == 1:
        together = True
        for p in range(len(here)):
            together &= here[p] == here[0] + p
        if together and not similar:
            for t in range(n):
                text_length = text_lengths[t]
                to = text_rows[t] * text_stride + here[0]
                for b in range(blocks):
                    at = (b * n + t) * width
                    end = to + min(width, len(here) - b * width)
                    while to + STRIPE <= end:
                        store_sum(out, to, text_length, deltas, at, STRIPE)
                        to += STRIPE
                        at += STRIPE
                    while to < end:
                        out[to] = text_length + deltas[at]
                        to += 1
                        at += 1
            return
        for t in range(n):
            text_length = text_lengths[t]
            to = text_rows[t] * text_stride
            for b in range(blocks):
                at = (b * n + t) * width
                for lane in range(min(width, len(here) - b * width)):
                    pattern = here[b * width + lane]
                    distance = text_length + deltas[at + lane]
                    if similar:
                        size = pair_size(summed, text_length, lengths[pattern])
                        out[to + pattern] = _similarity(distance, size)
                    else:
                        out[to + pattern] = distance
    else:
        for b in range(blocks):
            for lane in range(min(width, len(here) - b * width)):
                pattern = here[b * width + lane]
                to = np.uint64(pattern * pattern_stride)
                at = np.uint64(b * n * width + lane)
                for t in range(n):
                    distance = text_lengths[t] + deltas[at]
                    if similar:
                        size = pair_size(summed, text_lengths[t], lengths[pattern])
                        out[to + np.uint64(text_rows[t])] = _similarity(distance, size)
                    else:
                        out[to + np.uint64(text_rows[t])] = distance
                    at += np.uint64(width)


@kernel
def _write_triangle(
    deltas,
    width,
    rows,
    first,
    blocks,
    lengths,
    text_rows,
    rank,
    ordered,
    out,
    condensed,
    similar,
    summed,
):
    """Put the results of some blocks where they belong, for text before pattern by rank.

    ``ordered``: rank is the row itself and rows rise from lane to lane.
    """
    size = len(rank)
    n = len(text_rows)
    here = rows[first * width : min((first + blocks) * width, len(rows))]
    along = ordered and not similar
    for t in range(n):
        text = text_rows[t]
        length = lengths[text]
        begin = text * size - ((text + 1) * (text + 2) // 2 if condensed else 0)
        for b in range(blocks):
            lo = b * width
            hi = min(lo + width, len(here))
            at = (b * n + t) * width - lo
            if along:
                # all patterns after the text are in its own row of the result
                if here[hi - 1] <= text:
                    continue
                while here[lo] <= text:
                    lo += 1
                for p in range(np.uint64(lo), np.uint64(hi)):
                    out[np.uint64(begin + here[p])] = length + deltas[np.uint64(at) + p]
                if not condensed:
                    for p in range(np.uint64(lo), np.uint64(hi)):
                        out[np.uint64(here[p] * size + text)] = length + deltas[np.uint64(at) + p]
                continue
            for p in range(lo, hi):
                other = here[p]
                if rank[other] <= rank[text]:
                    continue
                i = min(text, other)
                j = max(text, other)
                distance = length + deltas[at + p]
                to = i * size + j
                if condensed:
                    to -= (i + 1) * (i + 2) // 2
                if similar:
                    size_of_pair = pair_size(summed, length, lengths[other])
                    value = _similarity(distance, size_of_pair)
                    out[to] = value
                    if not condensed:
                        out[j * size + i] = value
                else:
                    out[to] = distance
                    if not condensed:
                        out[j * size + i] = distance


@kernel
def _write_scores(scores, text_rows, columns, out, text_stride, pattern_stride, distance):
    """Put a tile of scores where they belong; one of the strides is 1."""
    together = pattern_stride == 1
    for p in range(len(columns)):
        together &= columns[p] == columns[0] + p
    for t in range(len(text_rows)):
        begin = text_rows[t] * text_stride
        if together:
            to = np.uint64(begin + columns[0])
            for p in range(np.uint64(len(columns))):
                out[to + p] = 1.0 - scores[t, p] if distance else scores[t, p]
        else:
            for p in range(len(columns)):
                value = scores[t, p]
                out[begin + columns[p] * pattern_stride] = 1.0 - value if distance else value


@kernel
def _write_later_scores(scores, text_rows, columns, out, size, condensed, distance):
    """Put those scores where they belong whose pattern comes after the text."""
    for t in range(len(text_rows)):
        i = text_rows[t]
        begin = i * size - ((i + 1) * (i + 2) // 2 if condensed else 0)
        for p in range(len(columns)):
            j = columns[p]
            if j > i:
                value = 1.0 - scores[t, p] if distance else scores[t, p]
                out[begin + j] = value
                if not condensed:
                    out[j * size + i] = value


@kernel
def _void_unequal(lengths, others, out):
    """NaN for strings of different lengths."""
    for i in range(len(lengths)):
        for j in range(len(others)):
            if lengths[i] != others[j]:
                out[i, j] = np.nan


@kernel
def _void_unequal_pairs(lengths, out):
    """NaN for strings of different lengths, in condensed order."""
    at = 0
    for i in range(len(lengths)):
        for j in range(i + 1, len(lengths)):
            if lengths[i] != lengths[j]:
                out[at] = np.nan
            at += 1
