"""Edit distances: Levenshtein, optimal string alignment, Damerau-Levenshtein.

The bit-parallel kernels compute the dynamic-programming matrix of Wagner and Fischer column by
column, a column held as its vertical differences in two bit vectors (+1 in ``vp``, -1 in ``vn``):
G. Myers, "A fast bit-vector algorithm for approximate string matching based on dynamic
programming", J. ACM 46(3), 1999, in the form of H. Hyyrö, "A bit-vector algorithm for computing
Levenshtein and Damerau edit distances", Nordic J. Computing 10, 2003. No score is kept on the
way: the distance is the text's length plus the sum of the last column's differences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from resemblance.jit import inlined, kernel
from resemblance.lanes import VECTOR_BYTES, code_table
from resemblance.metrics.automata import automaton
from resemblance.metrics.base import ADDED, CountingMetric
from resemblance.simd import (
    bit_count,
    choose,
    double,
    double_in,
    equal,
    load,
    match_bits,
    popcount,
    smaller,
    splat,
    store,
    top_bit,
)
from resemblance.strings import put


@dataclass(frozen=True)
class Levenshtein(CountingMetric):
    """Levenshtein distance: fewest insertions, deletions and substitutions of one character.

    ``d(i, j) = min(d(i-1, j) + 1, d(i, j-1) + 1, d(i-1, j-1) + [a[i] != b[j]])``, from 0 to the
    longer length, in code points. Similarity is ``(longer - d) / longer``.

    Notes
    -----
    V. I. Levenshtein, "Binary codes capable of correcting deletions, insertions, and reversals",
    Soviet Physics Doklady 10(8), 1966.

    Examples
    --------
    >>> import resemblance as rs
    >>> rs.pairwise(["kitten"], ["sitting"], rs.Levenshtein(), score="distance")
    array([3], dtype=uint8)
    """

    name: ClassVar[str] = "levenshtein"
    aliases: ClassVar[tuple[str, ...]] = ("lev", "edit_distance", "edit")
    summary: ClassVar[str] = "insertions, deletions and substitutions of one character"
    unit: ClassVar[str] = "edits"
    symmetric: ClassVar[bool] = True
    source: ClassVar[str] = "Levenshtein 1966"

    measure: ClassVar[int] = ADDED

    @property
    def lane_kernels(self) -> Mapping[int, Any]:
        return LEVENSHTEIN.lanes

    @property
    def pairs_kernel(self) -> Any:
        return LEVENSHTEIN.pairs


@dataclass(frozen=True)
class OSA(CountingMetric):
    """Optimal string alignment: Levenshtein's edits, and swaps of two neighbouring characters.

    As :class:`Levenshtein`, with ``d(i-2, j-2) + 1`` as a further way where ``a[i] == b[j-1]`` and
    ``a[i-1] == b[j]``. No part of a string is edited twice, so the triangle inequality does not
    hold: ``("ca", "abc")`` is 3 apart, by way of ``"ac"`` it would be 2. From 0 to the longer
    length; similarity is ``(longer - d) / longer``.

    Notes
    -----
    Also "restricted Damerau-Levenshtein distance"; the bit vectors are those of H. Hyyrö, 2003.

    Examples
    --------
    >>> import resemblance as rs
    >>> rs.pairwise(["martha", "ca"], ["marhta", "abc"], rs.OSA(), score="distance")
    array([1, 3], dtype=uint8)
    """

    name: ClassVar[str] = "osa"
    aliases: ClassVar[tuple[str, ...]] = ("optimal_string_alignment",)
    summary: ClassVar[str] = "as levenshtein, and swaps of neighbours; no part edited twice"
    unit: ClassVar[str] = "edits"
    source: ClassVar[str] = "Hyyrö 2003"
    reach: ClassVar[int] = 2
    measure: ClassVar[int] = ADDED

    @property
    def lane_kernels(self) -> Mapping[int, Any]:
        return ALIGNMENT.lanes

    @property
    def pairs_kernel(self) -> Any:
        return ALIGNMENT.pairs


@dataclass(frozen=True)
class DamerauLevenshtein(CountingMetric):
    """Damerau-Levenshtein distance: insertions, deletions, substitutions and swaps, unrestricted.

    Two characters that a swap makes neighbours may have had others between them, so ``("ca",
    "abc")`` is 2 apart (swap, then insert); it is a metric. From 0 to the longer length; similarity
    is ``(longer - d) / longer``.

    Notes
    -----
    F. Damerau, "A technique for computer detection and correction of spelling errors", Comm. ACM
    7(3), 1964; R. Lowrance and R. A. Wagner, J. ACM 22(2), 1975. Computed in linear space: C. Zhao
    and S. Sahni, "String correction using the Damerau-Levenshtein distance", BMC Bioinformatics
    20, 2019.

    Examples
    --------
    >>> import resemblance as rs
    >>> rs.pairwise(["ca"], ["abc"], rs.DamerauLevenshtein(), score="distance")
    array([2], dtype=uint8)
    """

    name: ClassVar[str] = "damerau_levenshtein"
    aliases: ClassVar[tuple[str, ...]] = ("damerau",)
    summary: ClassVar[str] = "as levenshtein, and swaps of characters that become neighbours"
    unit: ClassVar[str] = "edits"
    source: ClassVar[str] = "Damerau 1964"
    reach: ClassVar[int] = 2
    measure: ClassVar[int] = ADDED

    @property
    def lane_kernels(self) -> Mapping[int, Any]:
        return {}

    @property
    def pairs_kernel(self) -> Any:
        return _damerau_pairs

    def pair_cost(self, left: Any, right: Any) -> Any:
        return 20 + 2 * left * right


# -- Levenshtein ----------------------------------------------------------------------------------


@inlined
def _start(mask, first):
    return mask, splat(mask, 0)


@inlined
def _step(pm, state, given, first):
    vp, vn = state
    not_hp_in, hn_in = given
    if not first:
        pm = pm | top_bit(hn_in)
    # Without vn, which is disjoint from vp, this does for d0 where the next step waits for it.
    d = ((vp + (pm & vp)) ^ vp) | pm
    d0 = d | vn
    hn_out = d & vp
    # hp is kept inverted: doubling moves a 0 in, which is the +1 of the matrix's first row
    not_hp_out = ~vn & (d | vp)
    if first:
        hn = double(hn_out)
        not_hp = double(not_hp_out)
    else:
        hn = double_in(hn_out, hn_in)
        not_hp = double_in(not_hp_out, not_hp_in)
    return (hn | (~d0 & not_hp), d0 & ~not_hp), (not_hp_out, hn_out)


@inlined
def _count(state, mask):
    vp = state[0]
    vn = state[1]
    return popcount(vp & mask) - popcount(vn & mask)


GROUP = 256
"""Characters of a pattern, rows of the matrix, that are computed together."""


@inlined
def _word(pm, vp, vn, not_hp_in, hn_in):
    """One text character in one 64-bit word: new ``vp``, ``vn``, and what leaves at the top."""
    one = np.uint64(1)
    top = np.uint64(63)
    pm = pm | hn_in
    d = ((vp + (pm & vp)) ^ vp) | pm
    d0 = d | vn
    hn = d & vp
    not_hp = ~vn & (d | vp)
    hn_out = hn >> top
    not_hp_out = not_hp >> top
    hn = (hn << one) | hn_in
    not_hp = (not_hp << one) | not_hp_in
    return hn | (~d0 & not_hp), d0 & ~not_hp, not_hp_out, hn_out


@inlined
def _sum(vp, vn, rows):
    """Sum of a word's vertical differences in its first ``rows`` rows (any number)."""
    mask = ~np.uint64(0)
    if rows < 64:
        mask = (np.uint64(1) << np.uint64(max(rows, 0))) - np.uint64(1)
    return bit_count(vp & mask) - bit_count(vn & mask)


@kernel
def _banded(a, b, limit, not_hps, hns, pad, stop):
    """Distance of ``a`` and ``b`` (the longer one), or ``limit + 1`` if it is more than ``limit``.

    Only cells within ``limit`` of the diagonal are computed, in groups of rows over the columns
    they need; what lies outside counts as if only insertions and deletions led there, an upper
    bound. Memory is two bytes for each character of ``b``. Gives -1 when ``stop`` is set.
    """
    zero = np.uint64(0)
    m = len(a)
    n = len(b)
    if n - m > limit:
        return limit + 1
    # Horizontal differences along the row above the present group, +1 inverted; first of row 0.
    not_hps[:n] = 0
    hns[:n] = 0
    score = np.int64(0)  # the matrix at that row and at ``column``
    column = 0
    for r0 in range(0, m, GROUP):
        if stop[0]:
            return -1
        rows = min(GROUP, m - r0)
        first = max(0, r0 - limit)
        last = min(n, r0 + rows + limit)
        for j in range(column, first):
            score += 1 - np.int64(not_hps[j]) - np.int64(hns[j])
        column = first
        above = score
        if r0 + rows == m:
            for j in range(first, n):
                above += 1 - np.int64(not_hps[j]) - np.int64(hns[j])
        put(a[r0 : r0 + rows], pad, 0)
        vp0 = vp1 = vp2 = vp3 = ~zero
        vn0 = vn1 = vn2 = vn3 = zero
        for j in range(first, last):
            c = b[j]
            not_hp = np.uint64(not_hps[j])
            hn = np.uint64(hns[j])
            vp0, vn0, not_hp, hn = _word(match_bits(pad, 0, c, 64), vp0, vn0, not_hp, hn)
            vp1, vn1, not_hp, hn = _word(match_bits(pad, 64, c, 64), vp1, vn1, not_hp, hn)
            vp2, vn2, not_hp, hn = _word(match_bits(pad, 128, c, 64), vp2, vn2, not_hp, hn)
            vp3, vn3, not_hp, hn = _word(match_bits(pad, 192, c, 64), vp3, vn3, not_hp, hn)
            not_hps[j] = np.uint8(not_hp)
            hns[j] = np.uint8(hn)
        score += rows
        if r0 + rows == m:
            above += _sum(vp0, vn0, rows) + _sum(vp1, vn1, rows - 64)
            above += _sum(vp2, vn2, rows - 128) + _sum(vp3, vn3, rows - 192)
            return min(above, limit + 1)
    return n


@kernel
def _long(a, b, limit, measure, scratch, pad, stop):
    """Distance of two strings of any length, or ``limit + 1``; see :func:`_banded`."""
    room = scratch.view(np.uint8)
    not_hps = room[: len(room) // 2]
    hns = room[len(room) // 2 :]
    if len(a) > len(b):
        a, b = b, a
    a, b = _trimmed(a, b)
    limit = min(limit, len(b))
    # A distance that is small for the lengths is found in a narrow band, tripled until it holds.
    band = max(GROUP, len(b) - len(a))
    while len(a) > GROUP and 3 * band < min(len(a), limit):
        found = _banded(a, b, band, not_hps, hns, pad, stop)
        if found <= band:
            return found
        band *= 3
    return _banded(a, b, limit, not_hps, hns, pad, stop)


LEVENSHTEIN = automaton(2, 2, _start, _step, _count, _long)


# -- optimal string alignment ---------------------------------------------------------------------


@inlined
def _osa_start(mask, first):
    zero = splat(mask, 0)
    return mask, zero, ~zero, zero


@inlined
def _osa_step(pm, state, given, first):
    """As for Levenshtein; a swap ends where the one before matched this place's neighbour."""
    vp, vn, not_d0, pm_before = state
    not_hp_in, hn_in, swap_in = given
    swap_out = not_d0 & pm
    if first:
        swap = double(swap_out) & pm_before
        d = pm
    else:
        swap = double_in(swap_out, swap_in) & pm_before
        d = pm | top_bit(hn_in)
    d = ((vp + (d & vp)) ^ vp) | d | swap
    d0 = d | vn
    hn_out = d & vp
    not_hp_out = ~vn & (d | vp)
    if first:
        hn = double(hn_out)
        not_hp = double(not_hp_out)
    else:
        hn = double_in(hn_out, hn_in)
        not_hp = double_in(not_hp_out, not_hp_in)
    state = (hn | (~d0 & not_hp), d0 & ~not_hp, ~d0, pm)
    return state, (not_hp_out, hn_out, swap_out)


ALIGNMENT = automaton(4, 3, _osa_start, _osa_step, _count, None)


# -- Damerau-Levenshtein --------------------------------------------------------------------------


DAMERAU_LANES = VECTOR_BYTES // 2
"""Pairs that are met together, a lane of 16 bits each."""

DAMERAU_BATCH = 16 * DAMERAU_LANES
"""Pairs that are sorted by length for that."""

DAMERAU_LONGEST = 255


@kernel
def _damerau_pairs(
    data_a, offsets_a, rows_a, data_b, offsets_b, rows_b, allowed, measure, out, stop
):
    """``out[i]``: distance of string ``rows_a[i]`` and ``rows_b[i]``."""
    longest = 0
    for i in range(len(rows_b)):
        longest = max(longest, offsets_b[rows_b[i] + 1] - offsets_b[rows_b[i]])
    # row of the matrix in which a character of a came last, 0 before
    last_row = code_table(data_a, np.int64)
    above = np.empty(longest + 2, np.int64)
    row = np.empty(longest + 2, np.int64)
    before_swap = np.empty(longest + 2, np.int64)
    starts = np.zeros(DAMERAU_LONGEST + 2, np.int64)
    waiting = np.empty(DAMERAU_BATCH, np.int64)
    order = np.empty(DAMERAU_BATCH, np.int64)
    texts = np.empty((DAMERAU_LONGEST + 1) * DAMERAU_LANES, np.uint16)
    others = np.empty((DAMERAU_LONGEST + 1) * DAMERAU_LANES, np.uint16)
    cells = np.empty(4 * (DAMERAU_LONGEST + 2) * DAMERAU_LANES, np.uint16)
    for first in range(0, len(rows_a), DAMERAU_BATCH):
        if stop[0]:
            return
        count = 0
        starts[:] = 0
        for i in range(first, min(first + DAMERAU_BATCH, len(rows_a))):
            lo_a, hi_a = offsets_a[rows_a[i]], offsets_a[rows_a[i] + 1]
            lo_b, hi_b = offsets_b[rows_b[i]], offsets_b[rows_b[i] + 1]
            if max(hi_a - lo_a, hi_b - lo_b) > DAMERAU_LONGEST:
                a, b = _trimmed(data_a[lo_a:hi_a], data_b[lo_b:hi_b])
                out[i] = _damerau(a, b, last_row, above, row, before_swap, stop)
            else:
                waiting[count] = i
                count += 1
                starts[max(hi_a - lo_a, hi_b - lo_b) + 1] += 1
        # by the longer string, so that the lanes of a vector need about as many cells
        for c in range(DAMERAU_LONGEST + 1):
            starts[c + 1] += starts[c]
        for p in range(count):
            i = waiting[p]
            m = offsets_a[rows_a[i] + 1] - offsets_a[rows_a[i]]
            n = offsets_b[rows_b[i] + 1] - offsets_b[rows_b[i]]
            order[starts[max(m, n)]] = i
            starts[max(m, n)] += 1
        for begin in range(0, count, DAMERAU_LANES):
            if stop[0]:
                return
            _damerau_lanes(
                data_a, offsets_a, rows_a, data_b, offsets_b, rows_b,
                order[begin : min(begin + DAMERAU_LANES, count)], last_row, texts, others, cells,
                out,
            )  # fmt: skip


@kernel
def _damerau_lanes(
    data_a, offsets_a, rows_a, data_b, offsets_b, rows_b, pairs, code, texts, others, cells, out
):
    """As :func:`_damerau`, for some pairs of at most 255 characters, a lane each.

    What a row of the matrix needs to know of the rows above is held for each column: that row, the
    cells before a swap, and the row in which this column's character came last.
    """
    lanes = DAMERAU_LANES
    rows = 0
    columns = 0
    for lane in range(len(pairs)):
        i = pairs[lane]
        rows = max(rows, offsets_a[rows_a[i] + 1] - offsets_a[rows_a[i]])
        columns = max(columns, offsets_b[rows_b[i] + 1] - offsets_b[rows_b[i]])
    # beyond the ends of strings nothing is equal, and what becomes of those cells does not matter
    texts[: rows * lanes] = np.uint16(0xFFFF)
    others[: columns * lanes] = np.uint16(0xFFFE)
    for lane in range(len(pairs)):
        i = pairs[lane]
        lo_a, hi_a = offsets_a[rows_a[i]], offsets_a[rows_a[i] + 1]
        lo_b, hi_b = offsets_b[rows_b[i]], offsets_b[rows_b[i] + 1]
        used = 0
        for k in range(lo_a, hi_a):
            c = data_a[k]
            if code[c] == 0:
                used += 1
                code[c] = used
            texts[(k - lo_a) * lanes + lane] = code[c]
        for k in range(lo_b, hi_b):
            if code[data_b[k]] != 0:
                others[(k - lo_b) * lanes + lane] = code[data_b[k]]
        for k in range(lo_a, hi_a):
            code[data_a[k]] = 0
    size = (columns + 2) * lanes
    row = 0
    above = size
    before_swap = 2 * size
    last_row = 3 * size
    like = load(texts, 0, lanes)
    one = splat(like, 1)
    none = splat(like, 0xFFFF)
    never = splat(like, 0x3FFF)
    store(cells, row, never)
    store(cells, above, never)
    for j in range(columns + 1):
        at = (j + 1) * lanes
        store(cells, row + at, splat(like, j))
        store(cells, before_swap + at, never)
        store(cells, last_row + at, none)
    for lane in range(len(pairs)):
        i = pairs[lane]
        if offsets_a[rows_a[i] + 1] == offsets_a[rows_a[i]]:
            out[i] = offsets_b[rows_b[i] + 1] - offsets_b[rows_b[i]]
    for i in range(1, rows + 1):
        row, above = above, row
        here = splat(like, i)
        letter = load(texts, (i - 1) * lanes, lanes)
        last_column = none
        swap = never
        diagonal_above = load(cells, row + lanes, lanes)
        store(cells, row, never)
        store(cells, row + lanes, here)
        left = here
        diagonal = load(cells, above + lanes, lanes)
        for j in range(1, columns + 1):
            at = (j + 1) * lanes
            column = splat(like, j)
            same = equal(letter, load(others, (j - 1) * lanes, lanes))
            up = load(cells, above + at, lanes)
            best = smaller(smaller(up, left) + one, diagonal + choose(same, one - one, one))
            swapped = load(cells, before_swap + at, lanes)
            seen = load(cells, last_row + at, lanes)
            beside = equal(column - last_column, one)
            below = equal(here - seen, one)
            by_swap = choose(
                beside,
                swapped + here - seen,
                choose(below, swap + column - last_column, never),
            )
            best = choose(same, best, smaller(best, by_swap))
            last_column = choose(same, column, last_column)
            before = load(cells, above + at - 2 * lanes, lanes)
            store(cells, before_swap + at, choose(same, before, swapped))
            swap = choose(same, diagonal_above, swap)
            store(cells, last_row + at, choose(same, here, seen))
            diagonal_above = load(cells, row + at, lanes)
            store(cells, row + at, best)
            left = best
            diagonal = up
        for lane in range(len(pairs)):
            p = pairs[lane]
            if offsets_a[rows_a[p] + 1] - offsets_a[rows_a[p]] == i:
                n = offsets_b[rows_b[p] + 1] - offsets_b[rows_b[p]]
                out[p] = cells[row + (n + 1) * lanes + lane]


@kernel
def _trimmed(a, b):
    """Two strings without the beginning and the ending they have in common."""
    lo = 0
    while lo < len(a) and lo < len(b) and a[lo] == b[lo]:
        lo += 1
    hi = 0
    while hi < min(len(a), len(b)) - lo and a[len(a) - 1 - hi] == b[len(b) - 1 - hi]:
        hi += 1
    return a[lo : len(a) - hi], b[lo : len(b) - hi]


@kernel
def _damerau(a, b, last_row, above, row, before_swap, stop):
    """Distance by Zhao and Sahni's rows; each begins with a place for what is before column 0."""
    m = len(a)
    n = len(b)
    never = m + n + 1
    for j in range(n + 2):
        row[j] = j - 1
        above[j] = never
        before_swap[j] = never
    row[0] = never
    for i in range(1, m + 1):
        if stop[0]:
            break
        row, above = above, row
        last_column = 0
        diagonal_above = row[1]  # two rows up, one column left of the one at hand
        row[0] = never
        row[1] = i
        swap = never
        for j in range(1, n + 1):
            if a[i - 1] == b[j - 1]:
                best = min(above[j], row[j] + 1, above[j + 1] + 1)
                last_column = j
                before_swap[j + 1] = above[j - 1]
                swap = diagonal_above
            else:
                best = min(above[j], row[j], above[j + 1]) + 1
                k = last_row[b[j - 1]]
                if j - last_column == 1 and last_column > 0 and k > 0:
                    best = min(best, before_swap[j + 1] + i - k)
                elif i - k == 1 and k > 0 and last_column > 0:
                    best = min(best, swap + j - last_column)
            diagonal_above = row[j + 1]
            row[j + 1] = best
        last_row[a[i - 1]] = i
    for i in range(m):
        last_row[a[i]] = 0
    return row[n + 1]
