"""Levenshtein distance: record, and bit-parallel kernels in lanes and for single pairs.

All kernels compute the dynamic-programming matrix of Wagner and Fischer column by column, a
column held as its vertical differences in two bit vectors (+1 in ``vp``, -1 in ``vn``):
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
from resemblance.lanes import LEVELS, PIECE, VECTOR_BYTES, code_table
from resemblance.metrics.base import CountingMetric
from resemblance.simd import (
    bit_count,
    double,
    double_in,
    less,
    load,
    match_bits,
    popcount,
    splat,
    store,
    store_narrow,
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

    @property
    def lane_kernels(self) -> Mapping[int, Any]:
        return LANE_KERNELS

    @property
    def pairs_kernel(self) -> Any:
        return _pairs


# -- lanes ----------------------------------------------------------------------------------------
#
# A lane kernel fills ``out[block][text][lane]`` with distance minus text length, in a signed type
# that holds the pattern's length. ``rows`` are the patterns, ``first`` is their first block.


@inlined
def _step(pm, vp, vn):
    """One text character in words that hold whole patterns."""
    # Without vn, which is disjoint from vp, this does for d0 where the next step waits for it.
    d = ((vp + (pm & vp)) ^ vp) | pm
    d0 = d | vn
    hn = double(d & vp)
    # hp is kept inverted: doubling moves a 0 in, which is the +1 of the matrix's first row
    not_hp = double(~vn & (d | vp))
    return hn | (~d0 & not_hp), d0 & ~not_hp


SMALL_ALPHABET = 96
"""Characters whose table rows fit a first-level cache."""


def _lane_kernel(dtype):
    lanes = VECTOR_BYTES // np.dtype(dtype).itemsize
    width = 2 * lanes
    one = dtype(1)
    levels = LEVELS + 2

    @kernel
    def _lanes(
        start,
        loads,
        saves,
        texts,
        codes,
        code,
        alphabet,
        data,
        offsets,
        rows,
        first,
        blocks,
        n,
        out,
        stop,
    ):
        slot = np.zeros(alphabet + 1, np.int64)
        table = np.zeros((alphabet + 1) * width, dtype)
        mask = np.zeros(width, dtype)
        vps = np.zeros(levels * width, dtype)
        vns = np.zeros(levels * width, dtype)
        # A small alphabet keeps one row a code, of which row 0 collects what no text holds. A
        # large one has rows given out as the block's characters come, so that few are touched.
        small = alphabet <= SMALL_ALPHABET
        if small:
            for c in range(alphabet + 1):
                slot[c] = c * width
        for b in range(blocks):
            begin = (first + b) * width
            filled = min(width, len(rows) - begin)
            if small:
                table[:] = dtype(0)
                for lane in range(filled):
                    row = rows[begin + lane]
                    bit = one
                    for c in data[offsets[row] : offsets[row + 1]]:
                        table[np.uint64(code[c] * width + lane)] |= bit
                        bit = dtype(bit << one)
                    mask[lane] = dtype(bit - one)
            else:
                slot[:] = 0
                table[:width] = dtype(0)
                used = 0
                for lane in range(filled):
                    row = rows[begin + lane]
                    bit = one
                    for c in data[offsets[row] : offsets[row + 1]]:
                        at = code[c]
                        if at != 0:
                            s = slot[at]
                            if s == 0:
                                used += width
                                s = used
                                slot[at] = s
                                table[s : s + width] = dtype(0)
                            table[s + lane] |= bit
                        bit = dtype(bit << one)
                    mask[lane] = dtype(bit - one)
            m1 = load(mask, 0, lanes)
            m2 = load(mask, lanes, lanes)
            store(vps, 0, m1)
            store(vps, lanes, m2)
            for r in range(len(loads)):
                if stop[0]:
                    return
                at = loads[r] * width
                vp1 = load(vps, at, lanes)
                vp2 = load(vps, at + lanes, lanes)
                vn1 = load(vns, at, lanes)
                vn2 = load(vns, at + lanes, lanes)
                for k in range(start[r], start[r + 1]):
                    s = slot[codes[k]]
                    vp1, vn1 = _step(load(table, s, lanes), vp1, vn1)
                    vp2, vn2 = _step(load(table, s + lanes, lanes), vp2, vn2)
                at = saves[r] * width
                store(vps, at, vp1)
                store(vps, at + lanes, vp2)
                store(vns, at, vn1)
                store(vns, at + lanes, vn2)
                if texts[r] >= 0:
                    at = (b * n + texts[r]) * width
                    store_narrow(out, at, popcount(vp1 & m1) - popcount(vn1 & m1))
                    store_narrow(out, at + lanes, popcount(vp2 & m2) - popcount(vn2 & m2))

    return _lanes


@inlined
def _step_first(pm, vp, vn):
    """As :func:`_step`, with what leaves the word at its top: ``not_hp`` and ``hn`` undoubled."""
    d = ((vp + (pm & vp)) ^ vp) | pm
    d0 = d | vn
    hn_out = d & vp
    not_hp_out = ~vn & (d | vp)
    hn = double(hn_out)
    not_hp = double(not_hp_out)
    return hn | (~d0 & not_hp), d0 & ~not_hp, not_hp_out, hn_out


@inlined
def _step_next(pm, vp, vn, not_hp_in, hn_in):
    """One text character in a further word, with what left the word below at this character."""
    pm = pm | top_bit(hn_in)
    d = ((vp + (pm & vp)) ^ vp) | pm
    d0 = d | vn
    hn_out = d & vp
    not_hp_out = ~vn & (d | vp)
    hn = double_in(hn_out, hn_in)
    not_hp = double_in(not_hp_out, not_hp_in)
    return hn | (~d0 & not_hp), d0 & ~not_hp, not_hp_out, hn_out


def _multiword_kernel():
    dtype = np.uint64
    lanes = VECTOR_BYTES // 8
    width = 2 * lanes
    levels = LEVELS + 2

    @kernel
    def _lanes_multiword(
        start,
        loads,
        saves,
        texts,
        codes,
        code,
        alphabet,
        data,
        offsets,
        rows,
        first,
        blocks,
        n,
        out,
        stop,
    ):
        one = np.uint64(1)
        slot = np.zeros(alphabet + 1, np.int64)
        not_hps = np.zeros(PIECE * width, dtype)
        hns = np.zeros(PIECE * width, dtype)
        at_code = np.zeros(PIECE, np.int64)
        for b in range(blocks):
            begin = (first + b) * width
            filled = min(width, len(rows) - begin)
            longest = 0
            total = 0
            for lane in range(filled):
                row = rows[begin + lane]
                length = offsets[row + 1] - offsets[row]
                longest = max(longest, length)
                total += length
            words = max(1, (longest + 63) // 64)
            stride = words * width
            slot[:] = 0
            table = np.zeros((min(alphabet, total) + 1) * stride, dtype)
            mask = np.zeros(stride, dtype)
            vps = np.zeros(levels * stride, dtype)
            vns = np.zeros(levels * stride, dtype)
            used = 0
            for lane in range(filled):
                row = rows[begin + lane]
                chars = data[offsets[row] : offsets[row + 1]]
                for k in range(len(chars)):
                    bit = one << np.uint64(k & 63)
                    word = (k >> 6) * width
                    at = code[chars[k]]
                    if at != 0:
                        s = slot[at]
                        if s == 0:
                            used += stride
                            s = used
                            slot[at] = s
                        table[s + word + lane] |= bit
                    mask[word + lane] |= bit
            put(mask, vps, 0)
            for r in range(len(loads)):
                if stop[0]:
                    return
                run = start[r + 1] - start[r]
                for k in range(run):
                    at_code[k] = slot[codes[start[r] + k]]
                ends = texts[r] >= 0
                sum1 = splat(load(mask, 0, lanes), 0)
                sum2 = sum1
                for w in range(words):
                    at = loads[r] * stride + w * width
                    vp1 = load(vps, at, lanes)
                    vp2 = load(vps, at + lanes, lanes)
                    vn1 = load(vns, at, lanes)
                    vn2 = load(vns, at + lanes, lanes)
                    word = w * width
                    for k in range(run):
                        s = at_code[k] + word
                        c = k * width
                        if w == 0:
                            vp1, vn1, p1, h1 = _step_first(load(table, s, lanes), vp1, vn1)
                            vp2, vn2, p2, h2 = _step_first(load(table, s + lanes, lanes), vp2, vn2)
                        else:
                            vp1, vn1, p1, h1 = _step_next(
                                load(table, s, lanes),
                                vp1,
                                vn1,
                                load(not_hps, c, lanes),
                                load(hns, c, lanes),
                            )
                            vp2, vn2, p2, h2 = _step_next(
                                load(table, s + lanes, lanes),
                                vp2,
                                vn2,
                                load(not_hps, c + lanes, lanes),
                                load(hns, c + lanes, lanes),
                            )
                        store(not_hps, c, p1)
                        store(not_hps, c + lanes, p2)
                        store(hns, c, h1)
                        store(hns, c + lanes, h2)
                    at = saves[r] * stride + w * width
                    store(vps, at, vp1)
                    store(vps, at + lanes, vp2)
                    store(vns, at, vn1)
                    store(vns, at + lanes, vn2)
                    if ends:
                        m1 = load(mask, word, lanes)
                        m2 = load(mask, word + lanes, lanes)
                        sum1 = sum1 + popcount(vp1 & m1) - popcount(vn1 & m1)
                        sum2 = sum2 + popcount(vp2 & m2) - popcount(vn2 & m2)
                if ends:
                    at = (b * n + texts[r]) * width
                    store_narrow(out, at, sum1)
                    store_narrow(out, at + lanes, sum2)

    return _lanes_multiword


LANE_KERNELS: Mapping[int, Any] = {
    8: _lane_kernel(np.uint8),
    16: _lane_kernel(np.uint16),
    32: _lane_kernel(np.uint32),
    64: _lane_kernel(np.uint64),
    0: _multiword_kernel(),
}


# -- single pairs ---------------------------------------------------------------------------------


SHORT = 128
"""Longest pattern that two words hold."""

PAIR_LANES = VECTOR_BYTES // 8
BATCH = 512
"""Pairs that are sorted by length to be met in lanes; their bytes fit a second-level cache."""

LANE_TEXT = 128
"""Longest text of those pairs."""

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
def _one_word(pattern, m, text):
    """Distance of the first ``m`` (at most 64) of 64 characters and a text."""
    vp = ~np.uint64(0)
    vn = np.uint64(0)
    for c in text:
        vp, vn = _step(match_bits(pattern, 0, c, 64), vp, vn)
    return len(text) + _sum(vp, vn, m)


@kernel
def _two_words(pattern, m, text):
    """Distance of the first ``m`` (at most 128) of 128 characters and a text."""
    zero = np.uint64(0)
    vp0 = vp1 = ~zero
    vn0 = vn1 = zero
    for c in text:
        vp0, vn0, not_hp, hn = _word(match_bits(pattern, 0, c, 64), vp0, vn0, zero, zero)
        vp1, vn1, not_hp, hn = _word(match_bits(pattern, 64, c, 64), vp1, vn1, not_hp, hn)
    return len(text) + _sum(vp0, vn0, m) + _sum(vp1, vn1, m - 64)


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
def _long(a, b, limit, not_hps, hns, pad, stop):
    """Distance of two strings of any length, or ``limit + 1``; see :func:`_banded`."""
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


@kernel
def _to_bytes(data, lo, m, other, lo_other, n, code, pattern, text):
    """Copy a pattern (at most 255 characters) and a text as bytes that are equal where those are.

    ``code`` is a table of zeros for all characters, left as it was.
    """
    high = np.uint32(0)
    if data.itemsize > 1:
        for k in range(np.uint64(m)):
            high |= data[np.uint64(lo) + k]
        for k in range(np.uint64(n)):
            high |= other[np.uint64(lo_other) + k]
    if high < 256:
        for k in range(np.uint64(m)):
            pattern[k] = np.uint8(data[np.uint64(lo) + k])
        for k in range(np.uint64(n)):
            text[k] = np.uint8(other[np.uint64(lo_other) + k])
        return
    used = np.uint8(0)
    for k in range(np.uint64(m)):
        c = data[np.uint64(lo) + k]
        if code[c] == 0:
            used += np.uint8(1)
            code[c] = used
        pattern[k] = code[c]
    for k in range(np.uint64(n)):
        text[k] = code[other[np.uint64(lo_other) + k]]
    for k in range(np.uint64(m)):
        code[data[np.uint64(lo) + k]] = 0


@kernel
def _in_lanes(patterns, texts, places, sizes, widths, count, starts, order, matches, out, first):
    """Distances of a batch of pairs of one word and a short text, a lane each.

    ``patterns`` and ``texts`` are rows of bytes, ``widths`` and ``sizes`` their lengths; pair ``p``
    is written to ``out[first + places[p]]``.
    """
    # By length of the text, so that the lanes of a vector end at about the same time.
    starts[:] = 0
    for p in range(count):
        starts[sizes[p] + 1] += 1
    for n in range(LANE_TEXT + 1):
        starts[n + 1] += starts[n]
    for p in range(count):
        order[starts[sizes[p]]] = p
        starts[sizes[p]] += 1
    lane_sizes = np.zeros(PAIR_LANES, np.uint64)
    masks = np.zeros(PAIR_LANES, np.uint64)
    deltas = np.zeros(PAIR_LANES, np.uint64)
    for begin in range(0, count, PAIR_LANES):
        filled = min(PAIR_LANES, count - begin)
        for lane in range(filled):
            p = order[begin + lane]
            lane_sizes[lane] = sizes[p]
            masks[lane] = np.uint64(0)
            if widths[p] > 0:
                masks[lane] = ~np.uint64(0) >> np.uint64(64 - widths[p])
            at = np.uint64(lane)
            row = np.uint64(p * LANE_TEXT)
            for k in range(np.uint64(sizes[p])):
                matches[at] = match_bits(patterns, p * 64, texts[row + k], 64)
                at += np.uint64(PAIR_LANES)
        for lane in range(filled, PAIR_LANES):
            lane_sizes[lane] = np.uint64(0)
        mask = load(masks, 0, PAIR_LANES)
        size = load(lane_sizes, 0, PAIR_LANES)
        vp = splat(mask, ~np.uint64(0))
        vn = splat(mask, 0)
        shortest = sizes[order[begin]] if filled == PAIR_LANES else 0
        for k in range(shortest):
            vp, vn = _step(load(matches, k * PAIR_LANES, PAIR_LANES), vp, vn)
        for k in range(shortest, sizes[order[begin + filled - 1]]):
            on = less(splat(size, k), size)
            vp_next, vn_next = _step(load(matches, k * PAIR_LANES, PAIR_LANES), vp, vn)
            vp = (vp_next & on) | (vp & ~on)
            vn = (vn_next & on) | (vn & ~on)
        store(deltas, 0, popcount(vp & mask) - popcount(vn & mask))
        for lane in range(filled):
            p = order[begin + lane]
            out[first + places[p]] = np.int64(lane_sizes[lane] + deltas[lane])


@kernel
def _pairs(data_a, offsets_a, rows_a, data_b, offsets_b, rows_b, allowed, out, stop):
    """``out[i]``: distance of string ``rows_a[i]`` and ``rows_b[i]``, or more than allowed.

    ``allowed[n]`` is the largest distance of interest where the longer string has ``n``
    characters.
    """
    longest = 0
    for i in range(len(rows_a)):
        longest = max(longest, offsets_a[rows_a[i] + 1] - offsets_a[rows_a[i]])
        longest = max(longest, offsets_b[rows_b[i] + 1] - offsets_b[rows_b[i]])
    pad = np.zeros(GROUP, data_a.dtype)
    not_hps = np.empty(longest, np.uint8)
    hns = np.empty(longest, np.uint8)
    # Wide characters become bytes within each pair, so that matching costs what it does for those.
    code = code_table(data_a, np.uint8)
    pattern = np.zeros(SHORT, np.uint8)
    text = np.empty(longest, np.uint8)
    patterns = np.zeros(BATCH * 64, np.uint8)
    texts = np.zeros(BATCH * LANE_TEXT, np.uint8)
    places = np.zeros(BATCH, np.int64)
    sizes = np.zeros(BATCH, np.int64)
    widths = np.zeros(BATCH, np.int64)
    starts = np.zeros(LANE_TEXT + 2, np.int64)
    order = np.zeros(BATCH, np.int64)
    matches = np.zeros(LANE_TEXT * PAIR_LANES, np.uint64)
    for first in range(0, len(rows_a), BATCH):
        waiting = 0
        for place in range(min(BATCH, len(rows_a) - first)):
            i = first + place
            lo_a = offsets_a[rows_a[i]]
            lo_b = offsets_b[rows_b[i]]
            m = offsets_a[rows_a[i] + 1] - lo_a
            n = offsets_b[rows_b[i] + 1] - lo_b
            # one word for the longer string is best; else as few words as can be
            shorter = min(m, n)
            longer = max(m, n)
            width, size = (longer, shorter) if longer <= 64 else (shorter, longer)
            a_is_pattern = (m == width) and (n == size)
            if width > SHORT:
                out[i] = _long(
                    data_a[lo_a : lo_a + m], data_b[lo_b : lo_b + n], allowed[longer],
                    not_hps, hns, pad, stop,
                )  # fmt: skip
                if stop[0]:
                    return
                continue
            in_lane = width <= 64 and size <= LANE_TEXT
            to_pattern = patterns[waiting * 64 : waiting * 64 + 64] if in_lane else pattern
            to_text = texts[waiting * LANE_TEXT : (waiting + 1) * LANE_TEXT] if in_lane else text
            if a_is_pattern:
                _to_bytes(data_a, lo_a, m, data_b, lo_b, n, code, to_pattern, to_text)
            else:
                _to_bytes(data_b, lo_b, n, data_a, lo_a, m, code, to_pattern, to_text)
            if in_lane:
                places[waiting] = place
                sizes[waiting] = size
                widths[waiting] = width
                waiting += 1
            elif width <= 64:
                out[i] = _one_word(pattern, width, text[:size])
            else:
                out[i] = _two_words(pattern, width, text[:size])
        _in_lanes(
            patterns, texts, places, sizes, widths, waiting, starts, order, matches, out, first
        )
