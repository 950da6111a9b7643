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
from resemblance.lanes import code_table
from resemblance.metrics.automata import ADDED, automaton
from resemblance.metrics.base import CountingMetric
from resemblance.simd import bit_count, double, double_in, match_bits, popcount, splat, top_bit
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
    vp, vn = state
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
    lo = 0
    while lo < len(a) and a[lo] == b[lo]:
        lo += 1
    hi = 0
    while hi < len(a) - lo and a[len(a) - 1 - hi] == b[len(b) - 1 - hi]:
        hi += 1
    a = a[lo : len(a) - hi]
    b = b[lo : len(b) - hi]
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


@inlined
def _osa_count(state, mask):
    vp, vn, _, _ = state
    return popcount(vp & mask) - popcount(vn & mask)


ALIGNMENT = automaton(4, 3, _osa_start, _osa_step, _osa_count, None)


# -- Damerau-Levenshtein --------------------------------------------------------------------------


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
    for i in range(len(rows_a)):
        if stop[0]:
            return
        a = data_a[offsets_a[rows_a[i]] : offsets_a[rows_a[i] + 1]]
        b = data_b[offsets_b[rows_b[i]] : offsets_b[rows_b[i] + 1]]
        lo = 0
        while lo < len(a) and lo < len(b) and a[lo] == b[lo]:
            lo += 1
        hi = 0
        while hi < min(len(a), len(b)) - lo and a[len(a) - 1 - hi] == b[len(b) - 1 - hi]:
            hi += 1
        out[i] = _damerau(
            a[lo : len(a) - hi], b[lo : len(b) - hi], last_row, above, row, before_swap, stop
        )


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
