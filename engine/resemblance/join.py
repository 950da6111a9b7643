"""All pairs within a threshold, exactly: :func:`join`, :func:`iter_join`.

Equal strings are collapsed first, so everything below works on distinct strings sorted by length.
Strings of one length are met in one of three ways, whichever is estimated to cost less:

* *Segments* (Pass-Join: G. Li et al., "Pass-Join: a partition-based method for similarity joins",
  PVLDB 5(3), 2011). A string cut into ``t + 1`` segments keeps one of them whole under ``t``
  edits, so partners are found by looking up substrings of the other side, at the places that the
  paper's multi-match-aware rule leaves. Candidates whose characters differ too much as multisets
  are dropped by a 64-bit signature, the rest is verified.
* *Scans*: the signatures of all pairs within the length window.
* *Lanes*: all those pairs themselves, as for a matrix.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resemblance import lanes
from resemblance.inputs import as_strings
from resemblance.jit import kernel
from resemblance.lanes import pair_size
from resemblance.matrix import Score, check_score
from resemblance.metrics import AnyMetric, CountingMetric, Metric, resolve
from resemblance.metrics.base import similarity
from resemblance.signatures import passing, scan, signatures
from resemblance.simd import bit_count
from resemblance.strings import Strings, put, same_units, string_hash
from resemblance.threshold import allowed_distances, check_threshold, least_similarity
from resemblance.tiles import PLACES, TILE_COST, Job, Progress, Tile

if TYPE_CHECKING:
    from resemblance.normalize import Normalize

BLOCK_PAIRS = 1 << 22
"""Pairs of a block of :func:`iter_join`, unless asked otherwise; 100 MB."""

HELD_PAIRS = 1 << 25
"""Most pairs of distinct strings to hold at a time (half a gigabyte)."""


class Pairs(NamedTuple):
    """Pairs of rows within a threshold, sorted by left row, then right row.

    Attributes
    ----------
    left, right : ndarray of int64, shape (n,)
        Rows. A column joined with itself gives each pair once, with ``left < right``.
    score : ndarray, shape (n,)
        Distances (unsigned integers) or similarities (float64).
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    score: NDArray[Any]


def join(
    left: Any,
    right: Any = None,
    metric: str | Metric = "levenshtein",
    *,
    min_similarity: float | None = None,
    max_distance: float | None = None,
    score: Score | None = None,
    normalize: Normalize | None = None,
    threads: int | None = None,
    progress: Progress = False,
) -> Pairs:
    """Find all pairs within a threshold, exactly, without comparing all pairs.

    Parameters
    ----------
    left, right : list, tuple, ndarray, Arrow column or Strings
        The strings; ``right=None`` joins ``left`` with itself. Nulls are in no pair.
    metric : str or Metric
        Name, alias or record.
    min_similarity : float, optional
        Keep pairs whose similarity is at least this.
    max_distance : float, optional
        Keep pairs whose distance is at most this. One of the two must be given.
    score : {"distance", "similarity"}, optional
        What to report; by default what the threshold is given in.
    normalize, threads, progress
        As for :func:`resemblance.cdist`.

    Returns
    -------
    Pairs
        Exactly those pairs that filtering the full matrix would give.

    See Also
    --------
    iter_join : the same pairs in blocks, for results too large for memory.

    Examples
    --------
    >>> import resemblance as rs
    >>> rs.join(["apple", "appel", "pear", "apples"], max_distance=1)
    Pairs(left=array([0]), right=array([3]), score=array([1], dtype=uint8))
    """
    blocks = list(
        iter_join(
            left,
            right,
            metric,
            min_similarity=min_similarity,
            max_distance=max_distance,
            score=score,
            normalize=normalize,
            threads=threads,
            progress=progress,
        )
    )
    if len(blocks) == 1:
        return blocks[0]
    return Pairs(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))


def iter_join(
    left: Any,
    right: Any = None,
    metric: str | Metric = "levenshtein",
    *,
    min_similarity: float | None = None,
    max_distance: float | None = None,
    score: Score | None = None,
    normalize: Normalize | None = None,
    threads: int | None = None,
    progress: Progress = False,
    block_pairs: int = BLOCK_PAIRS,
) -> Iterator[Pairs]:
    """Find all pairs within a threshold and give them in blocks, in the order of :func:`join`.

    Parameters
    ----------
    left, right, metric, min_similarity, max_distance, score, normalize, threads, progress
        As for :func:`join`.
    block_pairs : int
        About how many pairs a block holds; a single row's pairs stay together.

    Yields
    ------
    Pairs
        At least one block, which may be empty.

    Examples
    --------
    >>> import resemblance as rs
    >>> sum(len(block.left) for block in rs.iter_join(["a", "b", "c"], max_distance=1))
    3
    """
    metric = resolve(metric)
    if (min_similarity is None) == (max_distance is None):
        raise ValueError("join needs a threshold: either min_similarity or max_distance")
    score = score or ("similarity" if max_distance is None else "distance")
    check_score(score)
    check_threshold(min_similarity, max_distance)
    a = as_strings(left, "left", normalize)
    b = None if right is None else as_strings(right, "right", normalize)
    limit = Limit.of(metric, min_similarity, max_distance, [a] if b is None else [a, b])
    job = Job(threads, progress)
    return _blocks(a, b, limit, score == "similarity", job, block_pairs)


class Limit(NamedTuple):
    """A metric and the threshold of a join.

    Attributes
    ----------
    metric : Metric
    allowed : ndarray of int64
        Of a metric that counts: the largest distance for each size of a pair.
    at_least : float
        Of a metric that scores: the smallest similarity.
    """

    metric: AnyMetric
    allowed: NDArray[np.int64]
    at_least: float

    @classmethod
    def of(
        cls,
        metric: AnyMetric,
        min_similarity: float | None,
        max_distance: float | None,
        sides: list[Strings],
    ) -> Limit:
        """The threshold for columns of texts."""
        if not isinstance(metric, CountingMetric):
            least = least_similarity(min_similarity, max_distance)
            return cls(metric, np.zeros(1, np.int64), least)
        longest = [int(side.lengths.max(initial=0)) for side in sides]
        largest = int(metric.sizes(longest[0], longest[-1]))
        return cls(metric, allowed_distances(min_similarity, max_distance, largest), 0.0)

    @property
    def counts(self) -> bool:
        """Whether values are distances that count edits; else they are similarities."""
        return isinstance(self.metric, CountingMetric)

    def scores(
        self, values: NDArray[Any], left: NDArray[Any], right: NDArray[Any], similar: bool
    ) -> NDArray[Any]:
        """Values of pairs of these lengths as what is asked for."""
        if isinstance(self.metric, CountingMetric):
            return similarity(values, self.metric.sizes(left, right)) if similar else values
        return values if similar else 1.0 - values


class Found(NamedTuple):
    """Pairs of distinct strings: their places in the two columns, and the value.

    That is the distance of a metric that counts, the similarity of one that scores.
    """

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: NDArray[Any]


class TooManyPairs(Exception):
    """More pairs than may be held."""


# -- pairs of distinct strings --------------------------------------------------------------------


def close_pairs(
    left: Strings, right: Strings | None, limit: Limit, job: Job, most: int | None = None
) -> Found:
    """All pairs of two columns within a limit; or of one (``right=None``), each once.

    Parameters
    ----------
    left, right : Strings
        Distinct strings without nulls, shortest first, with characters of the same type.
    limit : Limit
    most : int, optional
        Give up (`TooManyPairs`) as soon as there are more pairs than this.

    Returns
    -------
    Found
        In no particular order, but the same for every number of threads.
    """
    metric, allowed = limit.metric, limit.allowed
    parts: dict[int, Found] = {}
    held = 0
    lock = threading.Lock()

    def keep(place: int, found: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[Any]]) -> None:
        nonlocal held
        if len(found[0]):
            with lock:
                parts[place] = Found(*found)
                held += len(found[0])
            if most is not None and held > most:
                raise TooManyPairs

    if isinstance(metric, CountingMetric):
        probes = metric.operand(left)
        index = probes if right is None else metric.operand(right)
        tiles, total = _tiles(probes, index, right is None, metric, allowed, job, keep)
        kind = np.min_scalar_type(int(allowed.max(initial=0)))
    else:
        tiles, total = metric.near(left, right, limit.at_least, job, keep)
        kind = np.dtype(np.float64)
    job.run(tiles, total)
    if not parts:
        none = np.empty(0, np.int32)
        return Found(none, none, np.empty(0, kind))
    ordered = [parts[place] for place in sorted(parts)]
    return Found(*(np.concatenate(column) for column in zip(*ordered, strict=True)))


class _Window(NamedTuple):
    """Strings of one length of the index, and those of the other side that may be near."""

    length: int
    lo: int
    hi: int
    first: int
    last: int
    distance: int


def _windows(
    index: Strings, probes: Strings, same: bool, metric: CountingMetric, allowed: NDArray[np.int64]
) -> Iterator[_Window]:
    """For each length of the index: its rows, the probes' rows, the largest distance."""
    lengths, places = np.unique(index.lengths, return_index=True)
    ends = np.append(places, len(index))[1:]
    probe_lengths = probes.lengths
    longest = int(max(index.lengths.max(initial=0), probe_lengths.max(initial=0)))
    shortest = _shortest_partners(longest, metric, allowed)
    for length, lo, hi in zip(lengths.tolist(), places.tolist(), ends.tolist(), strict=True):
        farthest = int(np.searchsorted(shortest, length, "right")) - 1
        first = lo if same else int(np.searchsorted(probe_lengths, shortest[length], "left"))
        last = int(np.searchsorted(probe_lengths, farthest, "right"))
        if first < last:
            largest = int(min(farthest, probe_lengths[last - 1]))
            yield _Window(length, lo, hi, first, last, int(allowed[metric.sizes(length, largest)]))


def _shortest_partners(
    longest: int, metric: CountingMetric, allowed: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The shortest partner of each length, which rises with it."""
    lengths = np.arange(longest + 1)
    if metric.equal_lengths:
        return lengths
    low, high = np.zeros_like(lengths), lengths.copy()
    while (low < high).any():  # a shorter partner is farther, and allowed no more
        middle = (low + high) // 2
        # a size beyond those of the columns is no pair of theirs
        size = np.minimum(metric.sizes(lengths, middle), len(allowed) - 1)
        near = lengths - middle <= allowed[size]
        high = np.where(near, middle, high)
        low = np.where(near, low, middle + 1)
    return low


def _tiles(
    probes: Strings,
    index: Strings,
    same: bool,
    metric: CountingMetric,
    allowed: NDArray[np.int64],
    job: Job,
    keep: Any,
) -> tuple[Iterator[Tile], int]:
    narrow = np.min_scalar_type(int(allowed.max(initial=0)))
    signs = signatures(index.data, index.offsets)
    own = signs if same else signatures(probes.data, probes.offsets)
    probe_lengths = probes.lengths
    index_lengths = index.lengths
    by_segments: list[tuple[_Window, float]] = []
    by_scan: list[tuple[_Window, float]] = []
    by_lanes: list[_Window] = []
    for window in _windows(index, probes, same, metric, allowed):
        segments = _segment_cost(index, window, metric, signs, own)
        scanned = _scan_cost(window, metric, signs, own)
        least = min(segments, scanned, _lane_cost(window, metric))
        if least == segments:
            by_segments.append((window, segments))
        elif least == scanned:
            by_scan.append((window, scanned))
        else:
            by_lanes.append(window)

    def verify(place: int, left: NDArray[np.int32], right: NDArray[np.int32]) -> None:
        distance = lanes.pair_distances(metric, probes, left, index, right, job, allowed)
        if job.stop[0]:
            return
        near = distance <= allowed[metric.sizes(probe_lengths[left], index_lengths[right])]
        keep(place, Found(left[near], right[near], distance[near].astype(narrow)))

    def probe(place: int, built: _Segments, window: _Window, first: int, last: int) -> None:
        left = np.empty(window.hi - window.lo + (1 << 18), np.int32)
        right = np.empty_like(left)
        batch = 0
        while first < last and not job.stop[0]:
            first, found = _probe(
                probes.data, probes.offsets, own, first, last, same, window.length, window.lo,
                window.distance * metric.reach, allowed, metric.summed, metric.equal_lengths,
                built.heads, built.rows, built.signatures, left, right,
            )  # fmt: skip
            verify(place + batch, left[:found].copy(), right[:found].copy())
            batch += 1

    def scan_pairs(place: int, window: _Window, first: int, last: int) -> None:
        left = np.empty(window.hi - window.lo + (1 << 16), np.int32)
        right = np.empty_like(left)
        batch = 0
        while first < last and not job.stop[0]:
            first, found = scan(
                own, first, last, signs, window.lo, window.hi, window.distance, window.distance,
                same, left, right,
            )  # fmt: skip
            verify(place + batch, left[:found].copy(), right[:found].copy())
            batch += 1

    def scan_tiles() -> Iterator[Tile]:
        place = 1 << 62
        for window, cost in by_scan:
            n = window.last - window.first
            tiles = int(min(n, cost // TILE_COST + 1))
            for t in range(tiles):
                first = window.first + n * t // tiles
                last = window.first + n * (t + 1) // tiles
                yield int(cost) // tiles, partial(scan_pairs, place, window, first, last)
                place += PLACES

    def segment_tiles() -> Iterator[Tile]:
        place = 0
        for window, cost in by_segments:
            segments = window.distance * metric.reach + 1
            built = _Segments(
                *_build(index.data, index.offsets, signs, window.lo, window.hi, segments)
            )
            n = window.last - window.first
            tiles = int(min(n, cost // TILE_COST + 1))
            for t in range(tiles):
                first = window.first + n * t // tiles
                last = window.first + n * (t + 1) // tiles
                yield int(cost) // tiles, partial(probe, place, built, window, first, last)
                place += PLACES

    def on_block(
        part: lanes.Program, kind: lanes.LaneClass, first: int, blocks: int, deltas: NDArray[Any]
    ) -> None:
        left, right, distance = _collect(
            deltas, kind.width, kind.rows, first, blocks, probe_lengths, part.rows, part.lengths,
            allowed, same, metric.summed, metric.equal_lengths,
        )  # fmt: skip
        place = -1 - (int(part.rows.min()) * len(probes) + int(kind.rows[first * kind.width]))
        keep(place, Found(left, right, distance.astype(narrow)))

    def on_pairs(
        text_rows: NDArray[np.int64], rows: NDArray[np.int64], distance: NDArray[np.int64]
    ) -> None:
        mine, theirs = index_lengths[text_rows], probe_lengths[rows]
        near = distance <= allowed[metric.sizes(mine, theirs)]
        if metric.equal_lengths:
            near &= mine == theirs
        if same:
            near &= rows > text_rows
        left, right = rows[near].astype(np.int32), text_rows[near].astype(np.int32)
        place = -1 - (int(text_rows.min()) * len(probes) + int(rows.min()))
        keep(place, Found(left, right, distance[near].astype(narrow)))

    total = int(sum(cost for _, cost in (*by_segments, *by_scan)))
    sources = [segment_tiles(), scan_tiles()]
    for group in _adjacent(by_lanes):
        rows = np.arange(group[0].lo, group[-1].hi)
        patterns = np.arange(min(w.first for w in group), max(w.last for w in group))
        spans = {w.length: (w.first, w.last) for w in group}

        def wanted(
            part: NDArray[np.int64],
            kind: lanes.LaneClass,
            spans: dict[int, tuple[int, int]] = spans,
        ) -> tuple[int, int]:
            # rows of a class rise, and so do the windows with the length
            first = spans[int(index_lengths[part[0]])][0]
            last = spans[int(index_lengths[part[-1]])][1]
            lo = int(np.searchsorted(kind.rows, first))
            hi = int(np.searchsorted(kind.rows, last))
            return (lo // kind.width, -(-hi // kind.width)) if lo < hi else (0, 0)

        parts = lanes.chunks(index_lengths, rows)
        source, cost = lanes.meeting(
            metric, index, parts, probes, patterns, job, on_block, on_pairs, wanted, allowed
        )
        sources.append(source)
        total += cost
    return (tile for source in sources for tile in source), total


def _adjacent(windows: list[_Window]) -> Iterator[list[_Window]]:
    """Group windows whose rows of the index follow one another."""
    group: list[_Window] = []
    for window in windows:
        if group and group[-1].hi != window.lo:
            yield group
            group = []
        group.append(window)
    if group:
        yield group


# -- segments -------------------------------------------------------------------------------------


class _Segments(NamedTuple):
    """Index of the segments of strings of one length.

    Strings whose segment ``s`` hashes to bucket ``b`` are ``rows[s][heads[s, b]:heads[s, b + 1]]``,
    with their signatures alongside.
    """

    heads: NDArray[np.int32]
    rows: NDArray[np.int32]
    signatures: NDArray[np.uint64]


def _lane_cost(window: _Window, metric: CountingMetric) -> float:
    """Estimated nanoseconds of comparing all pairs of a window."""
    if not metric.lane_kernels or window.length > lanes.LONG:
        return np.inf  # pair by pair without end; signatures at least leave some out
    words = -(-window.length // 64)
    bits = next((b for b in (8, 16, 32) if window.length <= b), 64)
    per_pair = 5 * window.length * words / (lanes.BLOCK_BYTES * 8 // bits) + 0.05
    return per_pair * (window.hi - window.lo) * (window.last - window.first)


def _segment_cost(
    index: Strings,
    window: _Window,
    metric: CountingMetric,
    signs: NDArray[np.uint64],
    own: NDArray[np.uint64],
) -> float:
    """Estimated nanoseconds of finding the pairs of a window by segments."""
    edits = window.distance * metric.reach
    segments = edits + 1
    if segments > window.length:
        return np.inf
    n, m = window.hi - window.lo, window.last - window.first
    substrings = segments**2 / 2 + segments
    work = 30.0 * segments * n + (20.0 + 2.0 * window.length / segments) * substrings * m
    if work > _lane_cost(window, metric):
        return work
    sample = min(n, 1 << 14)
    collisions = _collisions(index.data, index.offsets, window.lo, window.lo + sample, segments)
    likely = float(collisions.sum()) / segments / sample**2
    passed = passing(
        signs[window.lo : window.hi],
        own[window.first : window.last],
        window.distance,
        window.distance,
    )
    verify = metric.pair_cost(window.length, window.length)
    return work + (1.0 + passed * verify) * likely * substrings * n * m


def _scan_cost(
    window: _Window, metric: CountingMetric, signs: NDArray[np.uint64], own: NDArray[np.uint64]
) -> float:
    """Estimated nanoseconds of comparing all signatures, and what they let pass."""
    n, m = window.hi - window.lo, window.last - window.first
    passed = passing(
        signs[window.lo : window.hi],
        own[window.first : window.last],
        window.distance,
        window.distance,
    )
    return n * m * (0.5 + passed * float(metric.pair_cost(window.length, window.length)))


@kernel
def _segment(length, segments, s):
    """Begin and size of a segment; the longer ones come last."""
    size = length // segments
    longer = length - size * segments
    shorter = segments - longer
    if s < shorter:
        return s * size, size
    return shorter * size + (s - shorter) * (size + 1), size + 1


@kernel
def _bits_for(n):
    bits = 1
    while (1 << bits) < n:
        bits += 1
    return bits


@kernel
def _collisions(data, offsets, lo, hi, segments):
    """Ordered pairs of strings that share a bucket, for each segment."""
    bits = _bits_for(hi - lo)
    shift = np.uint64(64 - bits)
    length = offsets[lo + 1] - offsets[lo]
    out = np.zeros(segments, np.int64)
    for s in range(segments):
        begin, size = _segment(length, segments, s)
        counts = np.zeros(1 << bits, np.int64)
        for i in range(lo, hi):
            at = offsets[i] + begin
            counts[string_hash(data[at : at + size]) >> shift] += 1
        for c in counts:
            out[s] += c * c
    return out


@kernel
def _build(data, offsets, signatures, lo, hi, segments):
    """Index rows ``lo`` to ``hi``, all of one length; see :class:`_Segments`."""
    n = hi - lo
    bits = _bits_for(n)
    shift = np.uint64(64 - bits)
    length = offsets[lo + 1] - offsets[lo]
    heads = np.zeros((segments, (1 << bits) + 1), np.int32)
    rows = np.empty((segments, n), np.int32)
    sketches = np.empty((segments, n), np.uint64)
    bucket = np.empty(n, np.int64)
    for s in range(segments):
        begin, size = _segment(length, segments, s)
        for i in range(n):
            at = offsets[lo + i] + begin
            b = string_hash(data[at : at + size]) >> shift
            bucket[i] = b
            heads[s, b + np.uint64(1)] += 1
        for b in range(1 << bits):
            heads[s, b + 1] += heads[s, b]
        # filled from the back, so that a bucket's head ends where it begins and rows rise
        for k in range(n):
            i = n - 1 - k
            b = bucket[i] + 1
            heads[s, b] -= 1
            rows[s, heads[s, b]] = lo + i
            sketches[s, heads[s, b]] = signatures[lo + i]
        for b in range(1 << bits):
            heads[s, b] = heads[s, b + 1]
        heads[s, 1 << bits] = n
    return heads, rows, sketches


@kernel
def _probe(
    data,
    offsets,
    signatures,
    first,
    last,
    same,
    length,
    lo,
    edits,
    allowed,
    summed,
    equal_lengths,
    heads,
    rows,
    sketches,
    left,
    right,
):
    """Candidates for probes ``first`` to ``last`` among indexed strings of one length.

    ``edits`` bounds the Levenshtein distance of a pair that is allowed.
    Fills ``left`` (probes) and ``right`` (indexed rows) with pairs that share a segment and pass
    the signatures, each once; returns the first probe not done, and how many pairs there are.
    """
    segments, n = rows.shape
    shift = np.uint64(64 - _bits_for(n))
    seen = np.full(n, -1, np.int32)
    count = 0
    for r in range(first, last):
        if count + n > len(left):
            return r, count
        chars = data[offsets[r] : offsets[r + 1]]
        m = len(chars)
        gap = m - length
        if equal_lengths and gap != 0:
            continue
        limit = allowed[pair_size(summed, m, length)]
        mine = signatures[r]
        for s in range(segments):
            begin, size = _segment(length, segments, s)
            # edits before the segment: at most s; after it: at most edits - s
            earliest = max(0, begin - s, begin + gap - (edits - s))
            latest = min(m - size, begin + s, begin + gap + (edits - s))
            for at in range(earliest, latest + 1):
                b = string_hash(chars[at : at + size]) >> shift
                for e in range(heads[s, b], heads[s, b + np.uint64(1)]):
                    other = sketches[s, e]
                    if bit_count(mine & ~other) > limit or bit_count(other & ~mine) > limit:
                        continue
                    row = rows[s, e]
                    if same and row >= r:
                        break
                    if seen[row - lo] != r:
                        seen[row - lo] = r
                        left[count] = r
                        right[count] = row
                        count += 1
    return last, count


@kernel
def _collect(
    deltas, width, rows, first, blocks, lengths, text_rows, text_lengths, allowed, same, summed,
    equal_lengths,
):  # fmt: skip
    """Pairs of some blocks that are near: patterns (left), texts (right), distances."""
    n = len(text_rows)
    size = 1024
    left = np.empty(size, np.int32)
    right = np.empty(size, np.int32)
    distances = np.empty(size, np.int64)
    count = 0
    for b in range(blocks):
        begin = (first + b) * width
        filled = min(width, len(rows) - begin)
        here = rows[begin : begin + filled]
        longest = lengths[here[filled - 1]]
        for t in range(n):
            length = text_lengths[t]
            limit = allowed[pair_size(summed, length, longest)]
            found = deltas[(b * n + t) * width : (b * n + t + 1) * width]
            least = found[0]
            for lane in range(width):
                least = min(least, found[lane])
            if length + least > limit:
                continue
            if count + filled > size:
                size = 2 * size + filled
                left = _grown(left, size)
                right = _grown(right, size)
                distances = _grown(distances, size)
            for lane in range(filled):
                distance = length + found[lane]
                row = here[lane]
                if equal_lengths and lengths[row] != length:
                    continue
                if distance <= allowed[pair_size(summed, length, lengths[row])] and not (
                    same and row <= text_rows[t]
                ):
                    left[count] = row
                    right[count] = text_rows[t]
                    distances[count] = distance
                    count += 1
    return left[:count], right[:count], distances[:count]


@kernel
def _grown(array, size):
    out = np.empty(size, array.dtype)
    put(array, out, 0)
    return out


# -- from distinct strings to rows ----------------------------------------------------------------


def _blocks(
    a: Strings,
    b: Strings | None,
    limit: Limit,
    similar: bool,
    job: Job,
    block_pairs: int,
) -> Iterator[Pairs]:
    left = a.distinct()
    right = left if b is None else b.distinct()
    strings, others = same_units(left.strings, right.strings)
    other_rows, other_starts = _members(right.group, len(others))
    sizes = (a.lengths, a.lengths if b is None else b.lengths)
    kind = np.dtype(np.float64)
    if limit.counts and not similar:
        kind = np.min_scalar_type(int(limit.allowed.max(initial=0)))
    # equal strings are a pair at any threshold that there can be
    equal = 0 if limit.counts else 1.0
    yielded = False
    stretches = [(0, len(a))]
    while stretches:
        lo, hi = stretches.pop()
        here = left.group[lo:hi]
        mine = np.unique(here[here >= 0])
        # With part of its rows, a column joined with itself becomes a join of two columns.
        once = b is None and (lo, hi) == (0, len(a))
        most = HELD_PAIRS if hi - lo > 1 else None
        try:
            found = close_pairs(strings.take(mine), None if once else others, limit, job, most)
        except TooManyPairs:
            job.stop[0] = 0
            step = -(-(hi - lo) // 4)
            stretches.extend((at, min(at + step, hi)) for at in reversed(range(lo, hi, step)))
            continue
        starts, partners, values = _partners(
            found.left, found.right, found.value, mine, once, len(strings), other_starts, equal
        )
        counts = _count(here, lo, b is None, starts, partners, other_starts, other_rows)
        ends = np.cumsum(counts)
        at = 0
        while at < hi - lo:
            before = int(ends[at - 1]) if at else 0
            stop = max(int(np.searchsorted(ends, before + block_pairs, "right")), at + 1)
            stop = min(stop, hi - lo)
            total = int(ends[stop - 1]) - before
            if total:
                i, j, d = in_order(
                    *_expand(
                        here[at:stop], lo + at, b is None, starts, partners, values,
                        other_starts, other_rows, total,
                    )
                )  # fmt: skip
                scores = limit.scores(d, sizes[0][i], sizes[1][j], similar)
                yield Pairs(i, j, scores.astype(kind, copy=False))
                yielded = True
            at = stop
    if not yielded:
        yield Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, kind))


def _members(group: NDArray[np.int64], n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of each distinct string, rising, and where each string's begin."""
    rows = np.flatnonzero(group >= 0)
    rows = rows[np.argsort(group[rows], kind="stable")]
    starts = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(group[rows], minlength=n), out=starts[1:])
    return rows, starts


def in_order(
    i: NDArray[np.int64], j: NDArray[np.int64], d: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
    """Sort pairs by left row, then right row."""
    if not len(i):
        return i, j, d
    low = int(i.min())
    whole = d.dtype.kind != "f"
    bits_j, bits_d = int(j.max()).bit_length(), int(d.max()).bit_length() if whole else 0
    bits = int(i.max() - low).bit_length() + bits_j + bits_d
    if bits > 63:
        order = np.lexsort((j, i))
        return i[order], j[order], d[order]
    keys = i - low
    keys <<= bits_j
    keys |= j
    if not whole:
        order = np.argsort(keys)
        return i[order], j[order], d[order]
    # one plain sort of packed keys is several times faster than an indirect one
    keys <<= bits_d
    keys |= d
    keys.sort()
    return (
        (keys >> (bits_j + bits_d)) + low,
        (keys >> bits_d) & ((1 << bits_j) - 1),
        keys & ((1 << bits_d) - 1),
    )


@kernel
def _partners(left, right, value, mine, once, n, other_starts, equal):
    """Near strings of each distinct left string, as CSR: starts, partners, values.

    ``once``: a column with itself, each pair given once; strings of several rows are then their
    own partners too.
    """
    starts = np.zeros(n + 1, np.int64)
    for p in range(len(left)):
        starts[mine[left[p]] + 1] += 1
        if once:
            starts[right[p] + 1] += 1
    if once:
        for u in range(n):
            if other_starts[u + 1] - other_starts[u] > 1:
                starts[u + 1] += 1
    for u in range(n):
        starts[u + 1] += starts[u]
    at = np.empty_like(starts)
    put(starts, at, 0)
    partners = np.empty(starts[n], np.int32)
    values = np.empty(starts[n], value.dtype)
    for p in range(len(left)):
        u = mine[left[p]]
        partners[at[u]] = right[p]
        values[at[u]] = value[p]
        at[u] += 1
        if once:
            v = right[p]
            partners[at[v]] = u
            values[at[v]] = value[p]
            at[v] += 1
    if once:
        for u in range(n):
            if other_starts[u + 1] - other_starts[u] > 1:
                partners[at[u]] = u
                values[at[u]] = equal
    return starts, partners, values


@kernel
def _after(rows, lo, hi, row):
    """First place in ``rows[lo:hi]`` (rising) of a row after ``row``."""
    while lo < hi:
        mid = (lo + hi) // 2
        if rows[mid] > row:
            hi = mid
        else:
            lo = mid + 1
    return lo


@kernel
def _count(group, first, once, starts, partners, other_starts, other_rows):
    """Pairs of each row from ``first`` on, with ``once`` only those with later rows."""
    out = np.zeros(len(group), np.int64)
    for i in range(len(group)):
        u = group[i]
        if u < 0:
            continue
        for p in range(starts[u], starts[u + 1]):
            lo = other_starts[partners[p]]
            hi = other_starts[partners[p] + 1]
            out[i] += hi - (_after(other_rows, lo, hi, first + i) if once else lo)
    return out


@kernel
def _expand(group, first, once, starts, partners, values, other_starts, other_rows, total):
    """The pairs that :func:`_count` counts."""
    left = np.empty(total, np.int64)
    right = np.empty(total, np.int64)
    value = np.empty(total, values.dtype)
    at = 0
    for i in range(len(group)):
        u = group[i]
        if u < 0:
            continue
        for p in range(starts[u], starts[u + 1]):
            lo = other_starts[partners[p]]
            hi = other_starts[partners[p] + 1]
            if once:
                lo = _after(other_rows, lo, hi, first + i)
            for j in range(lo, hi):
                left[at] = first + i
                right[at] = other_rows[j]
                value[at] = values[p]
                at += 1
    return left, right, value
