"""How any number of texts meets any number of patterns: the machinery all lane kernels share.

One side's strings are *patterns*, a lane of a vector each; the other side's are *texts*, walked
character by character while the state of a whole block of patterns stays in registers.

Texts are not walked one by one: a :class:`Program` lists them in lexicographic order as the runs
of characters that each adds to what it shares with the one before, and a kernel resumes from the
state it saved where the two part. On real names this saves a third to a half of all steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resemblance.jit import inlined, kernel
from resemblance.simd import REGISTER_BYTES
from resemblance.strings import Strings, put
from resemblance.tiles import TILE_COST, Job, Tile

if TYPE_CHECKING:
    from resemblance.metrics.base import CountingMetric

# A kernel keeps two vectors in flight, each of two registers: fewer leave the adders idle, more
# no longer fit the register file together with the state.
VECTOR_BYTES = 2 * REGISTER_BYTES
BLOCK_BYTES = 2 * VECTOR_BYTES

LEVELS = 32
"""Most states a program may save at a time; deeper sharing is given up."""

PIECE = 64
"""Longest run of characters: bounds the carries a multiword kernel keeps per run."""


class Program(NamedTuple):
    """Texts of one tile, as the runs of characters a lane kernel walks.

    Run ``r`` loads the state of level ``load[r]``, walks ``codes[start[r] : start[r + 1]]`` and
    saves the state as level ``save[r]``; if ``text[r] >= 0`` that text ends here. ``codes`` are
    dense: ``code[c]`` is the code of character ``c``, 0 if no text of the tile holds it.
    """

    rows: NDArray[np.int64]
    lengths: NDArray[np.int64]
    start: NDArray[np.int64]
    load: NDArray[np.int32]
    save: NDArray[np.int32]
    text: NDArray[np.int32]
    codes: NDArray[np.int32]
    code: NDArray[np.int32]
    alphabet: int


@inlined
def pair_size(summed, a, b):
    """What the distance of strings of these lengths is measured against."""
    return a + b if summed else max(a, b)


@inlined
def code_table(data, dtype):
    """A table of zeros with a place for each code unit that ``data`` can hold."""
    size = 1 << 8 if data.itemsize == 1 else 1 << 16 if data.itemsize == 2 else 0x110000
    return np.zeros(size, dtype)


@kernel
def _less(data, offsets, a, b, prefix):
    """Is string ``a`` before ``b``, their first ``prefix`` characters taken as equal?"""
    x = data[offsets[a] : offsets[a + 1]]
    y = data[offsets[b] : offsets[b + 1]]
    n = min(len(x), len(y))
    for i in range(min(prefix, n), n):
        if x[i] != y[i]:
            return x[i] < y[i]
    return len(x) < len(y) or (len(x) == len(y) and a < b)


@kernel
def _lexicographic(data, offsets, rows):
    """Sort ``rows`` (in place) by their strings, ties by row: merge sort on packed heads."""
    n = len(rows)
    per_key = 8 // data.itemsize
    shift = np.uint64(8 * data.itemsize)
    keys = np.zeros(n, np.uint64)
    for i in range(n):
        lo = offsets[rows[i]]
        hi = offsets[rows[i] + 1]
        key = np.uint64(0)
        for k in range(per_key):
            key = key << shift
            if lo + k < hi:
                key |= np.uint64(data[lo + k])
        keys[i] = key
    rows_b = np.empty_like(rows)
    keys_b = np.empty_like(keys)
    width = 1
    flipped = False
    while width < n:
        for lo in range(0, n, 2 * width):
            mid = min(lo + width, n)
            hi = min(lo + 2 * width, n)
            i = lo
            j = mid
            for k in range(lo, hi):
                if i < mid and j < hi:
                    left = keys[i] < keys[j] or (
                        keys[i] == keys[j] and _less(data, offsets, rows[i], rows[j], 0)
                    )
                else:
                    left = i < mid
                if left:
                    rows_b[k] = rows[i]
                    keys_b[k] = keys[i]
                    i += 1
                else:
                    rows_b[k] = rows[j]
                    keys_b[k] = keys[j]
                    j += 1
        rows, rows_b = rows_b, rows
        keys, keys_b = keys_b, keys
        width *= 2
        flipped = not flipped
    if flipped:
        put(rows, rows_b, 0)


@kernel
def _program(data, offsets, rows, levels, piece):
    """Runs of the texts ``rows`` (sorted). See :class:`Program`."""
    code = code_table(data, np.int32)
    n = len(rows)
    shared = np.zeros(n, np.int64)
    total = 0
    for t in range(n):
        x = data[offsets[rows[t]] : offsets[rows[t] + 1]]
        total += len(x)
        if t > 0:
            y = data[offsets[rows[t - 1]] : offsets[rows[t - 1] + 1]]
            m = min(len(x), len(y))
            k = 0
            while k < m and x[k] == y[k]:
                k += 1
            shared[t] = k
    # From the last text to the first: the stack holds the depths at which later texts part from
    # the present one, rising. A depth's place in the stack is the level its state is saved at.
    stack = np.zeros(levels + 2, np.int64)
    top = 0
    resume = np.zeros(n, np.int32)
    first_save = np.zeros(n + 1, np.int64)
    save_depth = np.zeros(n + 1, np.int64)
    save_level = np.zeros(n + 1, np.int32)
    n_saves = 0
    runs = 0
    for i in range(n):
        t = n - 1 - i
        depth = shared[t]
        first_save[t] = n_saves
        while top > 0 and stack[top] > depth:
            save_depth[n_saves] = stack[top]
            save_level[n_saves] = top
            n_saves += 1
            top -= 1
        if depth > 0 and (top == 0 or stack[top] < depth):
            if top < levels:
                top += 1
                stack[top] = depth
            else:
                shared[t] = stack[top]
        elif depth == 0:
            shared[t] = 0
        resume[t] = top if shared[t] > 0 else 0
        runs += 1 + (offsets[rows[t] + 1] - offsets[rows[t]] - shared[t]) // piece
    runs += n_saves
    start = np.zeros(runs + n_saves + 1, np.int64)
    load = np.zeros(runs + n_saves, np.int32)
    save = np.zeros(runs + n_saves, np.int32)
    text = np.full(runs + n_saves, -1, np.int32)
    codes = np.zeros(total + 1, np.int32)
    alphabet = 0
    scratch = levels + 1
    r = 0
    at = 0
    for t in range(n):
        lo = offsets[rows[t]]
        length = offsets[rows[t] + 1] - lo
        depth = shared[t]
        level = resume[t]
        last = n_saves if t == 0 else first_save[t - 1]
        s = last - 1
        while True:
            stop = save_depth[s] if s >= first_save[t] else length
            end = min(stop, depth + piece)
            for k in range(depth, end):
                c = data[lo + k]
                if code[c] == 0:
                    alphabet += 1
                    code[c] = alphabet
                codes[at] = code[c]
                at += 1
            depth = end
            load[r] = level
            level = scratch
            if end == stop and s >= first_save[t]:
                level = save_level[s]
                s -= 1
            save[r] = level
            start[r + 1] = at
            done = depth == length and s < first_save[t]
            if done:
                text[r] = t
            r += 1
            if done:
                break
    return start[: r + 1], load[:r], save[:r], text[:r], codes[:at], code, alphabet


def sort_rows(strings: Strings, rows: NDArray[np.int64]) -> None:
    """Sort rows, in place, lexicographically by their strings."""
    _lexicographic(strings.data, strings.offsets, rows)


def make_program(strings: Strings, rows: NDArray[np.int64]) -> Program:
    """The program of some rows of a column (any order; nulls count as empty)."""
    rows = rows.copy()
    data, offsets = strings.data, strings.offsets
    if len(rows) > 1:
        sort_rows(strings, rows)
    lengths = offsets[rows + 1] - offsets[rows]
    return Program(rows, lengths, *_program(data, offsets, rows, LEVELS, PIECE))


# -- patterns -------------------------------------------------------------------------------------

LONG = 4096
"""Patterns beyond this many characters meet texts pair by pair: their tables would not fit."""

FEW = 6
"""A last block of several words with fewer patterns than this is slower than pairs."""


class LaneClass(NamedTuple):
    """Rows whose strings fit lanes of ``bits`` (0: several words of 64)."""

    bits: int
    rows: NDArray[np.int64]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of a lane."""
        return np.dtype(f"u{(self.bits or 64) // 8}")

    @property
    def width(self) -> int:
        """Patterns of a block."""
        return BLOCK_BYTES // self.dtype.itemsize

    @property
    def delta(self) -> np.dtype[Any]:
        """Signed type of a distance minus the text's length: no larger than the pattern's."""
        return np.dtype(np.int8 if self.bits else np.int16)

    @property
    def blocks(self) -> int:
        return -(-len(self.rows) // self.width)


def lane_classes(
    metric: CountingMetric, lengths: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[list[LaneClass], NDArray[np.int64]]:
    """The lane classes of a metric's patterns; also those rows that are best met pair by pair."""
    if not metric.lane_kernels:
        return [], rows
    return by_lanes(lengths, rows)


def by_lanes(
    lengths: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[list[LaneClass], NDArray[np.int64]]:
    """Sort rows into lane classes; also those rows that are best met pair by pair.

    Rows keep their order within classes of one word; longer ones are sorted by length, so that
    the patterns of a block need about as many words.
    """
    sorted_rows, ends = _by_class(lengths, rows)
    members = np.split(sorted_rows, ends[:-1])
    classes = [
        LaneClass(bits, part)
        for bits, part in zip((8, 16, 32, 64), members[:4], strict=True)
        if len(part)
    ]
    longer = members[4][np.argsort(lengths[members[4]], kind="stable")]
    lanes = LaneClass(0, longer[lengths[longer] <= LONG])
    rest = len(lanes.rows) % lanes.width
    if 0 < rest < FEW:
        lanes = LaneClass(0, lanes.rows[: len(lanes.rows) - rest])
    if len(lanes.rows):
        classes.append(lanes)
    return classes, longer[len(lanes.rows) :]


@kernel
def _by_class(lengths, rows):
    """Rows by class (up to 8, 16, 32, 64, more characters), and where each class ends."""
    kind = np.empty(len(rows), np.uint8)
    ends = np.zeros(5, np.int64)
    for i in range(len(rows)):
        n = lengths[rows[i]]
        kind[i] = int(n > 8) + int(n > 16) + int(n > 32) + int(n > 64)
        ends[kind[i]] += 1
    at = np.zeros(5, np.int64)
    for k in range(1, 5):
        ends[k] += ends[k - 1]
        at[k] = ends[k - 1]
    out = np.empty(len(rows), np.int64)
    for i in range(len(rows)):
        out[at[kind[i]]] = rows[i]
        at[kind[i]] += 1
    return out, ends


# -- jobs -----------------------------------------------------------------------------------------

CHUNK_TEXTS = 2048
CHUNK_CHARACTERS = 1 << 19
"""Most texts and characters of a program."""

TILE_RESULTS = 1 << 19
"""Most results a tile holds before they are used: what a second-level cache has room for."""


def chunks(
    lengths: NDArray[np.int64], rows: NDArray[np.int64], most: int = CHUNK_TEXTS
) -> list[NDArray[np.int64]]:
    """Cut rows, in the order given, into stretches small enough for one program each."""
    ends = np.cumsum(lengths[rows])
    found = []
    lo = 0
    while lo < len(rows):
        before = ends[lo - 1] if lo else 0
        hi = int(np.searchsorted(ends, before + CHUNK_CHARACTERS, "right"))
        hi = max(lo + 1, min(hi, lo + most))
        found.append(rows[lo:hi])
        lo = hi
    return found


def block_deltas(
    metric: CountingMetric,
    program: Program,
    patterns: Strings,
    lane_class: LaneClass,
    first: int,
    blocks: int,
    job: Job,
) -> NDArray[Any]:
    """Signed ``deltas[block][text][lane]``, flat: distance minus the text's length."""
    found = np.empty(blocks * len(program.rows) * lane_class.width, lane_class.delta)
    metric.lane_kernels[lane_class.bits](
        program.start,
        program.load,
        program.save,
        program.text,
        program.lengths,
        program.codes,
        program.code,
        program.alphabet,
        patterns.data,
        patterns.offsets,
        lane_class.rows,
        first,
        blocks,
        metric.measure,
        found,
        job.stop,
    )
    return found


OnBlock = Callable[[Program, LaneClass, int, int, NDArray[Any]], None]
OnPairs = Callable[[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]], None]
Wanted = Callable[[NDArray[np.int64], LaneClass], tuple[int, int]]


def meeting(
    metric: CountingMetric,
    texts: Strings,
    parts: list[NDArray[np.int64]],
    patterns: Strings,
    rows: NDArray[np.int64],
    job: Job,
    on_block: OnBlock,
    on_pairs: OnPairs,
    wanted: Wanted | None = None,
    allowed: NDArray[np.int64] | None = None,
) -> tuple[Iterator[Tile], int]:
    """Tiles (and their total cost) that compute distances between texts and patterns.

    Parameters
    ----------
    metric : Metric
        Whose kernels to use.
    texts, patterns : Strings
        Columns with characters of the same type.
    parts : list of ndarray of int64
        Rows of ``texts``, a program each.
    rows : ndarray of int64
        Rows of ``patterns``.
    job : Job
        Whose stop flag to heed.
    on_block : function of (program, lane class, first block, number of blocks, deltas)
        Gets the result of :func:`block_deltas`.
    on_pairs : function of (text rows, pattern rows, distances)
        Gets the pairs that lanes do not serve.
    wanted : function of (text rows, lane class), optional
        Gives the first block and the one after the last that are of interest; default all.
    allowed : ndarray of int64, optional
        Largest distance of interest for each size of a pair; default all.
    """
    within = all_allowed(texts, patterns) if allowed is None else allowed
    classes, single = lane_classes(metric, patterns.lengths, rows)
    text_lengths = texts.lengths
    pattern_lengths = patterns.lengths
    words = {
        id(c): int(-(-pattern_lengths[c.rows].max() // 64)) if c.bits == 0 else 1 for c in classes
    }

    def stretches(part: NDArray[np.int64]) -> Iterator[tuple[LaneClass, int, int, int]]:
        characters = int(text_lengths[part].sum())
        for lane_class in classes:
            first, end = (0, lane_class.blocks) if wanted is None else wanted(part, lane_class)
            per_block = 1_000 + 7 * characters * words[id(lane_class)] + 20 * len(part)
            most = min(TILE_COST // per_block, TILE_RESULTS // (len(part) * lane_class.width))
            while first < end:
                blocks = max(1, min(most, end - first))
                yield lane_class, first, blocks, per_block * blocks
                first += blocks

    # cut, so that a tile's pairs are bounded also where one text meets a great many patterns
    singles = [single[at : at + TILE_RESULTS] for at in range(0, len(single), TILE_RESULTS)]

    def pair_costs(part: NDArray[np.int64], some: NDArray[np.int64]) -> NDArray[np.int64]:
        each = metric.pair_cost(text_lengths[part], int(pattern_lengths[some].mean()) + 1)
        return len(some) * np.maximum(each, TILE_COST // TILE_RESULTS)

    def tiles() -> Iterator[Tile]:
        for part in parts:
            program = make_program(texts, part)
            for lane_class, first, blocks, cost in stretches(part):
                yield cost, partial(block_tile, program, lane_class, first, blocks)
            for some in singles:
                for cost, group in by_cost(part, pair_costs(part, some)):
                    yield cost, partial(pair_tile, group, some)

    def block_tile(program: Program, lane_class: LaneClass, first: int, blocks: int) -> None:
        found = block_deltas(metric, program, patterns, lane_class, first, blocks, job)
        if not job.stop[0]:
            on_block(program, lane_class, first, blocks, found)

    def pair_tile(group: NDArray[np.int64], some: NDArray[np.int64]) -> None:
        text_rows = np.repeat(group, len(some))
        pattern_rows = np.tile(some, len(group))
        found = pair_distances(metric, texts, text_rows, patterns, pattern_rows, job, within)
        if not job.stop[0]:
            on_pairs(text_rows, pattern_rows, found)

    total = sum(cost for part in parts for _, _, _, cost in stretches(part))
    total += sum(int(pair_costs(part, some).sum()) for part in parts for some in singles)
    return tiles(), total


def by_cost(
    rows: NDArray[np.int64], costs: NDArray[np.int64]
) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Cut rows into stretches of about a tile's cost; gives each with its cost."""
    ends = np.cumsum(costs)
    lo = 0
    while lo < len(rows):
        before = int(ends[lo - 1]) if lo else 0
        hi = max(lo + 1, int(np.searchsorted(ends, before + TILE_COST, "right")))
        hi = min(hi, len(rows))
        yield int(ends[hi - 1]) - before, rows[lo:hi]
        lo = hi


def pair_distances(
    metric: CountingMetric,
    left: Strings,
    left_rows: NDArray[Any],
    right: Strings,
    right_rows: NDArray[Any],
    job: Job,
    allowed: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Distances of given pairs of rows, in this thread; see the metric's pairs kernel."""
    out = np.empty(len(left_rows), np.int64)
    # one type of rows and results, so that the kernel is compiled but once for each of characters
    metric.pairs_kernel(
        left.data,
        left.offsets,
        left_rows.astype(np.int64, copy=False),
        right.data,
        right.offsets,
        right_rows.astype(np.int64, copy=False),
        allowed,
        metric.measure,
        out,
        job.stop,
    )
    return out


def all_allowed(left: Strings, right: Strings) -> NDArray[np.int64]:
    """Bounds of distances that every pair of two columns is within."""
    return np.arange(left.lengths.max(initial=0) + right.lengths.max(initial=0) + 1)
