"""All-pairs and element-by-element scores: :func:`cdist`, :func:`pdist`, :func:`pairwise`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from resemblance import lanes
from resemblance.inputs import as_strings
from resemblance.jit import inlined, kernel
from resemblance.metrics import Metric, resolve
from resemblance.metrics.base import similarity
from resemblance.simd import store_sum
from resemblance.strings import Strings, same_units
from resemblance.tiles import Job, Progress, Tile, check_memory

Score = Literal["distance", "similarity"]


def cdist(
    left: Any,
    right: Any = None,
    metric: str | Metric = "levenshtein",
    *,
    score: Score = "distance",
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
    out : ndarray of shape (n, m), optional
        Where to write; C-contiguous.
    dtype : dtype, optional
        By default distances come in the narrowest unsigned type that holds the longest length
        (float64 where there are nulls), similarities in float64.
    threads : int, optional
        None: all CPUs this process may use. The result does not depend on it.
    progress : bool or callable
        True: a bar on terminals and in notebooks; or a function of (done, total).

    Returns
    -------
    ndarray of shape (n, m)
        NaN in the rows and columns of nulls.

    Raises
    ------
    MemoryError
        If the matrix cannot fit in memory; nothing is allocated then.
    ValueError
        If ``dtype`` cannot hold the largest possible distance, or integers were asked for and a
        row is null.

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
    a = as_strings(left, "left")
    b = a if right is None else as_strings(right, "right")
    kind = _result_type(
        score, dtype, out, {"left": a} if right is None else {"left": a, "right": b}
    )
    shape = (len(a), len(b))
    if out is None:
        check_memory(shape[0] * shape[1] * kind.itemsize, f"a {shape[0]:,} x {shape[1]:,} matrix")
        out = np.empty(shape, kind)
    else:
        _check_out(out, shape)
    job = Job(threads, progress)
    nulls_a, nulls_b = a.is_null, b.is_null
    if right is None:
        _fill_triangle(a, metric, score, out.reshape(-1), job, condensed=False)
        np.fill_diagonal(out, 1 if score == "similarity" else 0)
    else:
        a, b = same_units(a, b)
        _fill_matrix(a, b, metric, score, out.reshape(-1), job)
    if nulls_a.any() or nulls_b.any():
        out[nulls_a, :] = np.nan
        out[:, nulls_b] = np.nan
    return out


def pdist(
    strings: Any,
    metric: str | Metric = "levenshtein",
    *,
    score: Score = "distance",
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
    metric, score, dtype, threads, progress
        As for :func:`cdist`.
    out : ndarray of shape (n * (n - 1) / 2,), optional
        Where to write; C-contiguous.

    Returns
    -------
    ndarray of shape (n * (n - 1) / 2,)
        Pairs (0, 1), (0, 2), ... (1, 2), ...; ``scipy.spatial.distance.squareform`` makes it a
        square. NaN where a string is null.

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
    s = as_strings(strings, "strings")
    kind = _result_type(score, dtype, out, {"strings": s})
    n = len(s)
    shape = (n * (n - 1) // 2,)
    if out is None:
        check_memory(shape[0] * kind.itemsize, f"{shape[0]:,} pairs of {n:,} strings")
        out = np.empty(shape, kind)
    else:
        _check_out(out, shape)
    _fill_triangle(s, metric, score, out, Job(threads, progress), condensed=True)
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
    dtype: DTypeLike | None = None,
    threads: int | None = None,
    progress: Progress = False,
) -> NDArray[Any]:
    """Score two columns of the same length element by element.

    Parameters
    ----------
    left, right : list, tuple, ndarray, Arrow column or Strings
        The strings; as many on each side.
    metric, dtype, threads, progress
        As for :func:`cdist`.
    score : {"similarity", "distance"}
        As for :func:`cdist`, but similarity by default.

    Returns
    -------
    ndarray of shape (n,)
        NaN where either string is null.

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
    a, b = as_strings(left, "left"), as_strings(right, "right")
    if len(a) != len(b):
        raise ValueError(f"left has {len(a):,} rows and right {len(b):,}; they must be as many")
    kind = _result_type(score, dtype, None, {"left": a, "right": b})
    nulls = a.is_null | b.is_null
    longer = np.maximum(a.lengths, b.lengths)
    a, b = same_units(a, b)
    narrow = np.uint32 if score == "similarity" else kind
    result = np.empty(len(a), narrow)
    job = Job(threads, progress)
    _fill_pairs(a, b, np.arange(len(a)), metric, result, job)
    if score == "similarity":
        result = similarity(result, longer).astype(kind, copy=False)
    if nulls.any():
        result[nulls] = np.nan
    return result


# -- checks ---------------------------------------------------------------------------------------


def check_score(score: str) -> None:
    """Refuse anything but the two scores there are."""
    if score not in ("distance", "similarity"):
        raise ValueError(f"score must be 'distance' or 'similarity', got {score!r}")


def _result_type(
    score: str, dtype: DTypeLike | None, out: NDArray[Any] | None, sides: dict[str, Strings]
) -> np.dtype[Any]:
    """The type of the result, refused if it cannot hold every value that may come."""
    check_score(score)
    if out is not None:
        if dtype is not None and np.dtype(dtype) != out.dtype:
            raise ValueError(f"dtype {np.dtype(dtype)} and the type of out, {out.dtype}, differ")
        dtype = out.dtype
    largest = max((int(s.lengths.max(initial=0)) for s in sides.values()), default=0)
    fits = np.min_scalar_type(largest)
    nulls = {side: int(np.flatnonzero(s.is_null)[0]) for side, s in sides.items() if s.null_count}
    if dtype is None:
        return np.dtype(np.float64) if score == "similarity" or nulls else fits
    kind = np.dtype(dtype)
    if kind.kind not in "iuf" or kind.itemsize < (4 if kind.kind == "f" else 1):
        raise ValueError(f"dtype must be an integer type, float32 or float64, got {kind}")
    if kind.kind != "f":
        if score == "similarity":
            raise ValueError(f"similarities are fractions: dtype must be a float type, got {kind}")
        if nulls:
            side, row = next(iter(nulls.items()))
            raise ValueError(
                f"{side} row {row} is null, which {kind} cannot hold: pass dtype='float64' to get "
                "NaN there, or drop the nulls first"
            )
        if largest > np.iinfo(kind).max:
            raise ValueError(
                f"distances can be as large as {largest:,}, which {kind} cannot hold; {fits} can"
            )
    elif largest > 2 ** np.finfo(kind).nmant:
        raise ValueError(f"distances can be as large as {largest:,}, too many for {kind}")
    return kind


def _check_out(out: NDArray[Any], shape: tuple[int, ...]) -> None:
    if out.shape != shape:
        raise ValueError(f"out has shape {out.shape}, the result {shape}")
    if not out.flags.c_contiguous or not out.flags.writeable or not out.flags.aligned:
        raise ValueError("out must be a writable C-contiguous array")


# -- jobs -----------------------------------------------------------------------------------------


def _fill_matrix(
    left: Strings, right: Strings, metric: Metric, score: Score, out: NDArray[Any], job: Job
) -> None:
    """Fill a whole matrix, flat in memory."""
    n, m = len(left), len(right)
    if n == 0 or m == 0:
        return
    # Patterns are on the right, so that results are written along the rows of the matrix, unless
    # that side is too short to fill the lanes.
    if m >= min(n, 1024):
        texts, patterns, text_stride, pattern_stride = left, right, m, 1
    else:
        texts, patterns, text_stride, pattern_stride = right, left, 1, m
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
        )

    def on_pairs(t: NDArray[np.int64], p: NDArray[np.int64], found: NDArray[np.int64]) -> None:
        out[t * text_stride + p * pattern_stride] = _scored(
            found, text_lengths[t], pattern_lengths[p], similar
        )

    parts = lanes.chunks(text_lengths, rows)
    every = np.arange(len(patterns), dtype=np.int64)
    job.run(*lanes.meeting(metric, texts, parts, patterns, every, job, on_block, on_pairs))


def _fill_triangle(
    strings: Strings, metric: Metric, score: Score, out: NDArray[Any], job: Job, *, condensed: bool
) -> None:
    """Fill all pairs of different rows of one column: once (condensed) or both ways (square)."""
    n = len(strings)
    if n < 2:
        return
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
        )

    def on_pairs(t: NDArray[np.int64], p: NDArray[np.int64], found: NDArray[np.int64]) -> None:
        once = rank[t] < rank[p]
        scores = _scored(found[once], lengths[t[once]], lengths[p[once]], similar)
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
    a: Strings, b: Strings, rows: NDArray[np.int64], metric: Metric, out: NDArray[Any], job: Job
) -> None:
    """Distances of equal rows of two columns."""
    costs = 20 + a.lengths * (1 + b.lengths // 64) * 2
    longest = max(a.lengths.max(initial=0), b.lengths.max(initial=0))
    allowed = np.arange(longest + 1)

    def tiles() -> Iterator[Tile]:
        for cost, part in lanes.by_cost(rows, costs):
            here = out[part[0] : part[-1] + 1]
            yield (
                cost,
                partial(lanes.pair_distances, metric, a, part, b, part, here, job, allowed),
            )

    job.run(tiles(), int(costs.sum()))


def _scored(
    found: NDArray[np.int64], a: NDArray[np.int64], b: NDArray[np.int64], similar: bool
) -> NDArray[Any]:
    return similarity(found, np.maximum(a, b)) if similar else found


# -- kernels --------------------------------------------------------------------------------------


STRIPE = lanes.BLOCK_BYTES // 8
"""Patterns of the narrowest block, which divides the others."""


@inlined
def _similarity(distance, longer):
    """As :func:`resemblance.metrics.base.similarity`, for one pair."""
    return (longer - distance) / longer if longer > 0 else 1.0


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
                        longer = max(text_length, lengths[pattern])
                        out[to + pattern] = _similarity(distance, longer)
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
                        longer = max(text_lengths[t], lengths[pattern])
                        out[to + np.uint64(text_rows[t])] = _similarity(distance, longer)
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
                    value = _similarity(distance, max(length, lengths[other]))
                    out[to] = value
                    if not condensed:
                        out[j * size + i] = value
                else:
                    out[to] = distance
                    if not condensed:
                        out[j * size + i] = distance
