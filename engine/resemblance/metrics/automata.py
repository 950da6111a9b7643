"""Bit-parallel automata: the kernels of all metrics whose table has a column for each character.

A metric of this kind walks a text character by character while a few words of bits hold the state
of a whole pattern. What it has of its own are three inlined functions: how the state begins, how a
character changes it, and how many rows of the pattern it counts at the end. Everything else is
here: patterns as lanes of vectors, one word or several, and pairs, a lane each or word by word.

A step is given the state, the pattern's matches of the character (a bit for each place) and, for
words after the first, what the word below gave; it returns the new state and what it gives to the
word above. What is given are whole words of which the top bits count.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from resemblance.jit import inlined, kernel
from resemblance.lanes import LEVELS, PIECE, VECTOR_BYTES, code_table
from resemblance.metrics.base import ADDED, SUMMED
from resemblance.simd import (
    less,
    load,
    load_each,
    match_bits,
    splat,
    store,
    store_each,
    store_narrow,
)
from resemblance.strings import put


class Kernels(NamedTuple):
    """What :func:`automaton` makes; see :class:`resemblance.metrics.base.CountingMetric`."""

    lanes: Mapping[int, Any]
    pairs: Any


@inlined
def _distance(measure, count, m, n):
    """Distance of a pattern of ``m`` characters and a text of ``n``."""
    if measure == ADDED:
        return n + count
    if measure == SUMMED:
        return m + n - 2 * count
    return max(m, n) - count


@inlined
def _delta(measure, count, m, n):
    """The same less ``n``, in lanes; they hold ``m`` and wrap round to negative numbers."""
    if measure == ADDED:
        return count
    if measure == SUMMED:
        return m - count - count
    # a text longer than all patterns of one word stays so if it is cut: lanes may be of 8 bits
    text = splat(m, n)
    return ((m - text) & less(text, m)) - count


SMALL_ALPHABET = 96
"""Characters whose table rows fit a first-level cache."""


def automaton(states: int, gives: int, start: Any, step: Any, count: Any, long: Any) -> Kernels:
    """Make the kernels of an automaton.

    Parameters
    ----------
    states, gives : int
        Number of words of the state, and of those given to the word above.
    start : inlined function of (mask, first)
        State before the text; ``mask`` has a bit for each character of the pattern in this word,
        ``first`` says whether it is the first word.
    step : inlined function of (matches, state, given)
        Gives state and what is given to the word above.
    count : inlined function of (state, mask)
        What this word adds to the count.
    long : kernel
        Distance of two long arrays of characters, see :func:`_long_kernel`; None for that one.
    """
    lanes = {bits: _lane_kernel(np.dtype(f"u{bits // 8}").type, states, gives, start, step, count)
             for bits in (8, 16, 32, 64)}  # fmt: skip
    lanes[0] = _multiword_kernel(states, gives, start, step, count)
    long = long or _long_kernel(states, gives, start, step, count)
    return Kernels(lanes, _pairs_kernel(states, gives, start, step, count, long))


# -- lanes ----------------------------------------------------------------------------------------
#
# A lane kernel fills ``out[block][text][lane]`` with distance minus text length, in a signed type
# that holds the pattern's length. ``rows`` are the patterns, ``first`` is their first block.


@kernel
def new_table(alphabet, mask):
    """Room for the matches of as many patterns as ``mask`` has lanes, see :func:`fill_table`.

    A small alphabet keeps one row a code, of which row 0 collects what no text holds. A large one
    has rows given out as a block's characters come, so that few are touched.
    """
    small = alphabet <= SMALL_ALPHABET
    slot = np.zeros(alphabet + 1, np.int64)
    if small:
        for c in range(alphabet + 1):
            slot[c] = c * len(mask)
    return small, slot, np.zeros((alphabet + 1) * len(mask), mask.dtype)


@kernel
def fill_table(data, offsets, rows, code, small, slot, table, mask, sizes):
    """Matches of the patterns ``rows``, a lane each of as many as ``mask`` has.

    ``table[slot[c] + lane]`` gets a bit for each place of the lane's pattern at which a character
    of code ``c`` is; ``mask`` a bit for each place there is, ``sizes`` their number. All are of the
    lanes' type.
    """
    width = len(mask)
    one = mask.dtype.type(1)
    used = 0
    if small:
        table[:] = 0
    else:
        slot[:] = 0
        table[:width] = 0
    for lane in range(len(rows)):
        row = rows[lane]
        bit = one
        if small:
            for c in data[offsets[row] : offsets[row + 1]]:
                table[np.uint64(code[c] * width + lane)] |= bit
                bit = mask.dtype.type(bit << one)
        else:
            for c in data[offsets[row] : offsets[row + 1]]:
                at = code[c]
                if at != 0:
                    s = slot[at]
                    if s == 0:
                        used += width
                        s = used
                        slot[at] = s
                        table[s : s + width] = 0
                    table[s + lane] |= bit
                bit = mask.dtype.type(bit << one)
        mask[lane] = mask.dtype.type(bit - one)
        sizes[lane] = offsets[row + 1] - offsets[row]


@kernel
def word_table(data, offsets, rows, code, alphabet, width, slot, sizes):
    """As :func:`fill_table`, for patterns of several words: ``table[slot[c] + w * width + lane]``.

    Returns the number of words, the table, and the masks ``[w * width + lane]``.
    """
    one = np.uint64(1)
    longest = 0
    total = 0
    for lane in range(len(rows)):
        length = offsets[rows[lane] + 1] - offsets[rows[lane]]
        sizes[lane] = length
        longest = max(longest, length)
        total += length
    words = max(1, (longest + 63) // 64)
    stride = words * width
    slot[:] = 0
    table = np.zeros((min(alphabet, total) + 1) * stride, np.uint64)
    mask = np.zeros(stride, np.uint64)
    used = 0
    for lane in range(len(rows)):
        chars = data[offsets[rows[lane]] : offsets[rows[lane] + 1]]
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
    return words, table, mask


def _lane_kernel(dtype, states, gives, start, step, count):
    lanes = VECTOR_BYTES // np.dtype(dtype).itemsize
    width = 2 * lanes
    size = states * width
    levels = LEVELS + 2
    most = 64  # no pattern is longer

    @kernel
    def _lanes(
        starts,
        loads,
        saves,
        texts,
        lengths,
        codes,
        code,
        alphabet,
        data,
        offsets,
        rows,
        first,
        blocks,
        measure,
        out,
        stop,
    ):
        n = len(lengths)
        mask = np.zeros(width, dtype)
        small, slot, table = new_table(alphabet, mask)
        sizes = np.zeros(width, dtype)
        saved = np.zeros(levels * size, dtype)
        for b in range(blocks):
            begin = (first + b) * width
            filled = min(width, len(rows) - begin)
            fill_table(
                data, offsets, rows[begin : begin + filled], code, small, slot, table, mask, sizes
            )
            m1 = load(mask, 0, lanes)
            m2 = load(mask, lanes, lanes)
            z1 = load(sizes, 0, lanes)
            z2 = load(sizes, lanes, lanes)
            given = load_each(mask, 0, 0, lanes, gives)  # by the word below, which is not there
            store_each(saved, 0, width, start(m1, True))
            store_each(saved, lanes, width, start(m2, True))
            for r in range(len(loads)):
                if stop[0]:
                    return
                at = loads[r] * size
                s1 = load_each(saved, at, width, lanes, states)
                s2 = load_each(saved, at + lanes, width, lanes, states)
                for k in range(starts[r], starts[r + 1]):
                    s = slot[codes[k]]
                    s1, _ = step(load(table, s, lanes), s1, given, True)
                    s2, _ = step(load(table, s + lanes, lanes), s2, given, True)
                at = saves[r] * size
                store_each(saved, at, width, s1)
                store_each(saved, at + lanes, width, s2)
                if texts[r] >= 0:
                    at = (b * n + texts[r]) * width
                    length = min(lengths[texts[r]], most)
                    store_narrow(out, at, _delta(measure, count(s1, m1), z1, length))
                    store_narrow(out, at + lanes, _delta(measure, count(s2, m2), z2, length))

    return _lanes


def _multiword_kernel(states, gives, start, step, count):
    dtype = np.uint64
    lanes = VECTOR_BYTES // 8
    width = 2 * lanes
    levels = LEVELS + 2

    @kernel
    def _lanes_multiword(
        starts,
        loads,
        saves,
        texts,
        lengths,
        codes,
        code,
        alphabet,
        data,
        offsets,
        rows,
        first,
        blocks,
        measure,
        out,
        stop,
    ):
        n = len(lengths)
        slot = np.zeros(alphabet + 1, np.int64)
        below = np.zeros(PIECE * gives * width, dtype)
        at_code = np.zeros(PIECE, np.int64)
        sizes = np.zeros(width, dtype)
        for b in range(blocks):
            begin = (first + b) * width
            filled = min(width, len(rows) - begin)
            words, table, mask = word_table(
                data, offsets, rows[begin : begin + filled], code, alphabet, width, slot, sizes
            )
            stride = words * width
            saved = np.zeros(levels * states * stride, dtype)
            z1 = load(sizes, 0, lanes)
            z2 = load(sizes, lanes, lanes)
            for w in range(words):
                at = w * width
                m1 = load(mask, at, lanes)
                m2 = load(mask, at + lanes, lanes)
                store_each(saved, at, stride, start(m1, w == 0))
                store_each(saved, at + lanes, stride, start(m2, w == 0))
            for r in range(len(loads)):
                if stop[0]:
                    return
                run = starts[r + 1] - starts[r]
                for k in range(run):
                    at_code[k] = slot[codes[starts[r] + k]]
                ends = texts[r] >= 0
                sum1 = splat(load(mask, 0, lanes), 0)
                sum2 = sum1
                for w in range(words):
                    word = w * width
                    at = loads[r] * states * stride + word
                    s1 = load_each(saved, at, stride, lanes, states)
                    s2 = load_each(saved, at + lanes, stride, lanes, states)
                    for k in range(run):
                        s = at_code[k] + word
                        c = k * gives * width
                        given1 = load_each(below, c, width, lanes, gives)
                        given2 = load_each(below, c + lanes, width, lanes, gives)
                        if w == 0:
                            s1, given1 = step(load(table, s, lanes), s1, given1, True)
                            s2, given2 = step(load(table, s + lanes, lanes), s2, given2, True)
                        else:
                            s1, given1 = step(load(table, s, lanes), s1, given1, False)
                            s2, given2 = step(load(table, s + lanes, lanes), s2, given2, False)
                        store_each(below, c, width, given1)
                        store_each(below, c + lanes, width, given2)
                    at = saves[r] * states * stride + word
                    store_each(saved, at, stride, s1)
                    store_each(saved, at + lanes, stride, s2)
                    if ends:
                        sum1 = sum1 + count(s1, load(mask, word, lanes))
                        sum2 = sum2 + count(s2, load(mask, word + lanes, lanes))
                if ends:
                    at = (b * n + texts[r]) * width
                    length = lengths[texts[r]]
                    store_narrow(out, at, _delta(measure, sum1, z1, length))
                    store_narrow(out, at + lanes, _delta(measure, sum2, z2, length))

    return _lanes_multiword


# -- single pairs ---------------------------------------------------------------------------------


PAIR_LANES = VECTOR_BYTES // 8
BATCH = 256
"""Pairs that are sorted by length to be met in lanes; their bytes fit a second-level cache."""

PAIR_WORDS = 4
"""Most words of a pattern that meets its text in a lane."""

PAIR_ROW = 64 * PAIR_WORDS
"""Room for a string of those pairs; they are shorter, so that bytes can tell their characters."""


@kernel
def to_bytes(data, lo, m, other, lo_other, n, code, pattern, text):
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


def _pairs_kernel(states, gives, start, step, count, long):
    @kernel
    def _in_lanes(
        patterns, texts, places, sizes, widths, waiting, starts, order, matches, below, measure,
        out, first,
    ):  # fmt: skip
        """Distances of a batch of pairs, a lane each.

        ``patterns`` and ``texts`` are rows of bytes, ``widths`` and ``sizes`` their lengths; pair
        ``p`` is written to ``out[first + places[p]]``.
        """
        # By words of the pattern, then length of the text, so that the lanes of a vector need
        # about as many steps.
        classes = PAIR_WORDS * PAIR_ROW
        starts[:] = 0
        for p in range(waiting):
            starts[(max(widths[p], 1) - 1) // 64 * PAIR_ROW + sizes[p] + 1] += 1
        for c in range(classes):
            starts[c + 1] += starts[c]
        for p in range(waiting):
            c = (max(widths[p], 1) - 1) // 64 * PAIR_ROW + sizes[p]
            order[starts[c]] = p
            starts[c] += 1
        masks = np.zeros(PAIR_LANES, np.uint64)
        counts = np.zeros(PAIR_LANES, np.uint64)
        sums = np.zeros(PAIR_LANES, np.int64)
        given = load_each(masks, 0, 0, PAIR_LANES, gives)
        begin = 0
        while begin < waiting:
            words = (max(widths[order[begin]], 1) + 63) // 64
            filled = 1
            while (
                filled < PAIR_LANES
                and begin + filled < waiting
                and (max(widths[order[begin + filled]], 1) + 63) // 64 == words
            ):
                filled += 1
            sums[:] = 0
            for w in range(words):
                for lane in range(filled):
                    p = order[begin + lane]
                    rest = min(max(widths[p] - 64 * w, 0), 64)
                    masks[lane] = np.uint64(0)
                    if rest > 0:
                        masks[lane] = ~np.uint64(0) >> np.uint64(64 - rest)
                    at = np.uint64(lane)
                    row = np.uint64(p * PAIR_ROW)
                    pattern = p * PAIR_ROW + 64 * w
                    for k in range(np.uint64(sizes[p])):
                        matches[at] = match_bits(patterns, pattern, texts[row + k], 64)
                        at += np.uint64(PAIR_LANES)
                mask = load(masks, 0, PAIR_LANES)
                state = start(mask, w == 0)
                k = 0
                lane = 0
                while lane < filled:
                    size = sizes[order[begin + lane]]
                    if words == 1:
                        while k < size:
                            pm = load(matches, k * PAIR_LANES, PAIR_LANES)
                            state, _ = step(pm, state, given, True)
                            k += 1
                    else:
                        while k < size:
                            pm = load(matches, k * PAIR_LANES, PAIR_LANES)
                            c = k * gives * PAIR_LANES
                            carry = load_each(below, c, PAIR_LANES, PAIR_LANES, gives)
                            if w == 0:
                                state, carry = step(pm, state, carry, True)
                            else:
                                state, carry = step(pm, state, carry, False)
                            store_each(below, c, PAIR_LANES, carry)
                            k += 1
                    # all lanes are counted, those whose text ends here keep the number
                    store(counts, 0, count(state, mask))
                    while lane < filled and sizes[order[begin + lane]] == size:
                        sums[lane] += np.int64(counts[lane])
                        lane += 1
            for lane in range(filled):
                p = order[begin + lane]
                out[first + places[p]] = _distance(measure, sums[lane], widths[p], sizes[p])
            begin += filled

    @kernel
    def _pairs(data_a, offsets_a, rows_a, data_b, offsets_b, rows_b, allowed, measure, out, stop):
        """``out[i]``: distance of string ``rows_a[i]`` and ``rows_b[i]``, or more than allowed.

        ``allowed[n]`` is the largest distance of interest for strings of size ``n``, see
        :class:`resemblance.metrics.base.CountingMetric`.
        """
        longest = 0
        for i in range(len(rows_a)):
            longest = max(longest, offsets_a[rows_a[i] + 1] - offsets_a[rows_a[i]])
            longest = max(longest, offsets_b[rows_b[i] + 1] - offsets_b[rows_b[i]])
        room = longest * gives if longest >= PAIR_ROW else 0
        scratch = np.empty(room, np.uint64)
        pad = np.zeros(256, data_a.dtype)
        # Wide characters become bytes within each pair, so that matching costs as for those.
        code = code_table(data_a, np.uint8)
        patterns = np.zeros(BATCH * PAIR_ROW, np.uint8)
        texts = np.zeros(BATCH * PAIR_ROW, np.uint8)
        places = np.zeros(BATCH, np.int64)
        sizes = np.zeros(BATCH, np.int64)
        widths = np.zeros(BATCH, np.int64)
        starts = np.zeros(PAIR_WORDS * PAIR_ROW + 2, np.int64)
        order = np.zeros(BATCH, np.int64)
        matches = np.zeros(PAIR_ROW * PAIR_LANES, np.uint64)
        below = np.zeros(PAIR_ROW * gives * PAIR_LANES, np.uint64)
        for first in range(0, len(rows_a), BATCH):
            waiting = 0
            for place in range(min(BATCH, len(rows_a) - first)):
                i = first + place
                lo_a = offsets_a[rows_a[i]]
                lo_b = offsets_b[rows_b[i]]
                m = offsets_a[rows_a[i] + 1] - lo_a
                n = offsets_b[rows_b[i] + 1] - lo_b
                longer = max(m, n)
                if longer >= PAIR_ROW:
                    size = m + n if measure == SUMMED else longer
                    out[i] = long(
                        data_a[lo_a : lo_a + m], data_b[lo_b : lo_b + n], allowed[size], measure,
                        scratch, pad, stop,
                    )  # fmt: skip
                    if stop[0]:
                        return
                    continue
                # one word for the longer string is best; else as few words as can be
                a_is_pattern = (m >= n) == (longer <= 64)
                to = waiting * PAIR_ROW
                pattern = patterns[to : to + PAIR_ROW]
                text = texts[to : to + PAIR_ROW]
                if a_is_pattern:
                    to_bytes(data_a, lo_a, m, data_b, lo_b, n, code, pattern, text)
                    widths[waiting] = m
                    sizes[waiting] = n
                else:
                    to_bytes(data_b, lo_b, n, data_a, lo_a, m, code, pattern, text)
                    widths[waiting] = n
                    sizes[waiting] = m
                places[waiting] = place
                waiting += 1
            _in_lanes(
                patterns, texts, places, sizes, widths, waiting, starts, order, matches, below,
                measure, out, first,
            )  # fmt: skip

    return _pairs


def _long_kernel(states, gives, start, step, count):
    @kernel
    def _long(a, b, limit, measure, scratch, pad, stop):
        """Distance of two strings of any length, word by word of the shorter one.

        Memory is some words for each character of the longer one. ``limit`` is a distance from
        which on the number does not matter; this kernel makes no use of it.
        """
        if len(a) > len(b):
            a, b = b, a
        m = len(a)
        n = len(b)
        total = np.int64(0)
        scratch[: n * gives] = np.uint64(0)
        for lo in range(0, m, 64):
            if stop[0]:
                return -1
            rows = min(64, m - lo)
            put(a[lo : lo + rows], pad, 0)
            mask = ~np.uint64(0) >> np.uint64(64 - rows)
            state = start(mask, lo == 0)
            if lo == 0:
                for j in range(n):
                    given = load_each(scratch, j * gives, 1, 1, gives)
                    state, given = step(match_bits(pad, 0, b[j], 64), state, given, True)
                    store_each(scratch, j * gives, 1, given)
            else:
                for j in range(n):
                    given = load_each(scratch, j * gives, 1, 1, gives)
                    state, given = step(match_bits(pad, 0, b[j], 64), state, given, False)
                    store_each(scratch, j * gives, 1, given)
            total += np.int64(count(state, mask))
        return _distance(measure, total, m, n)

    return _long
