"""Distances by places: Hamming, and common beginnings and endings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from resemblance.jit import inlined, kernel
from resemblance.lanes import LEVELS, VECTOR_BYTES, LaneClass
from resemblance.metrics.automata import automaton
from resemblance.metrics.base import LONGER, CountingMetric, check_flags
from resemblance.simd import (
    double,
    double_in,
    equal,
    increment,
    less,
    load,
    popcount,
    splat,
    store,
)
from resemblance.strings import Strings


@dataclass(frozen=True)
class Hamming(CountingMetric):
    """Hamming distance: places at which two strings differ.

    From 0 to the longer length, in code points; similarity is ``(longer - d) / longer``.

    Parameters
    ----------
    pad : bool
        What becomes of strings of different lengths. True: each further character of the longer
        one is a difference. False (also ``"hamming:strict"``): they have no distance; it is NaN in
        arrays and null in files, and such pairs never match or join.

    Notes
    -----
    R. W. Hamming, "Error detecting and error correcting codes", Bell System Technical Journal
    29(2), 1950.

    Examples
    --------
    >>> import resemblance as rs
    >>> rs.pairwise(["karolin", "ab"], ["kathrin", "abc"], rs.Hamming(), score="distance")
    array([3, 1], dtype=uint8)
    >>> rs.pairwise(["karolin", "ab"], ["kathrin", "abc"], rs.Hamming(pad=False), score="distance")
    array([ 3., nan])
    """

    pad: bool = True

    def __post_init__(self) -> None:
        check_flags(self, "pad")

    name: ClassVar[str] = "hamming"
    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {"strict": {"pad": False}}
    summary: ClassVar[str] = "places that differ"
    unit: ClassVar[str] = "characters"
    source: ClassVar[str] = "Hamming 1950"
    measure: ClassVar[int] = LONGER

    @property
    def equal_lengths(self) -> bool:
        return not self.pad

    @property
    def lane_kernels(self) -> Mapping[int, Any]:
        return LANE_KERNELS

    @property
    def pairs_kernel(self) -> Any:
        return _pairs


@dataclass(frozen=True)
class Prefix(CountingMetric):
    """Characters of the longer string beyond the common beginning.

    ``d = max(len(a), len(b)) - common``, in code points; similarity is ``common / longer``.

    Examples
    --------
    >>> import resemblance as rs
    >>> rs.pairwise(["prefix"], ["preface"], rs.Prefix(), score="distance")
    array([3], dtype=uint8)
    """

    name: ClassVar[str] = "prefix"
    summary: ClassVar[str] = "longer length less the common beginning"
    unit: ClassVar[str] = "characters"
    source: ClassVar[str] = "by definition"
    measure: ClassVar[int] = LONGER

    @property
    def lane_kernels(self) -> Mapping[int, Any]:
        return BEGINNING.lanes

    @property
    def pairs_kernel(self) -> Any:
        return _prefix_pairs


@dataclass(frozen=True)
class Postfix(Prefix):
    """Characters of the longer string before the common ending.

    ``d = max(len(a), len(b)) - common``, in code points; similarity is ``common / longer``.

    Examples
    --------
    >>> import resemblance as rs
    >>> rs.pairwise(["postfix"], ["suffix"], rs.Postfix(), score="distance")
    array([4], dtype=uint8)
    """

    name: ClassVar[str] = "postfix"
    aliases: ClassVar[tuple[str, ...]] = ("suffix",)
    summary: ClassVar[str] = "longer length less the common ending"

    def operand(self, strings: Strings) -> Strings:
        return strings.backwards()


@inlined
def _start(mask, first):
    zero = splat(mask, 0)
    return zero, splat(mask, 1) if first else zero


@inlined
def _step(pm, state, given, first):
    """The second word of the state is a bit at the text's place."""
    same, place = state
    (place_in,) = given
    same = same | (pm & place)
    if first:
        return (same, double(place)), (place,)
    return (same, double_in(place, place_in)), (place,)


@inlined
def _prefix_step(pm, state, given, first):
    """As :func:`_step`; the bit is lost with the first difference."""
    same, place = state
    (hit_in,) = given
    hit = pm & place
    same = same | hit
    if first:
        return (same, double(hit)), (hit,)
    return (same, double_in(hit, hit_in)), (hit,)


@inlined
def _count(state, mask):
    same, _ = state
    return popcount(same & mask)


PLACES = automaton(2, 1, _start, _step, _count, None)
BEGINNING = automaton(2, 1, _start, _prefix_step, _count, None)


# -- Hamming distance, a byte for each pattern ----------------------------------------------------

LANES = VECTOR_BYTES
WIDTH = 2 * LANES

ABSENT = 255
"""Byte of a place that a pattern does not have; texts have 0 for characters of no pattern."""


@kernel
def _bytes(
    starts, loads, saves, texts, lengths, codes, alphabet_of, alphabet, data, offsets, rows, first,
    blocks, width, out, stop,
):  # fmt: skip
    """As the lane kernels of an automaton, but comparing characters themselves.

    ``width`` is the number of patterns of a block. Gives False, with nothing done, if the patterns
    are too long or have too many different characters for bytes.
    """
    n = len(lengths)
    byte = np.zeros(alphabet + 1, np.uint8)
    begin = first * width
    end = min(begin + blocks * width, len(rows))
    longest = 0
    used = 0
    for p in range(begin, end):
        longest = max(longest, offsets[rows[p] + 1] - offsets[rows[p]])
        for c in data[offsets[rows[p]] : offsets[rows[p] + 1]]:
            if alphabet_of[c] != 0 and byte[alphabet_of[c]] == 0:
                used += 1
                if used == ABSENT:
                    return False
                byte[alphabet_of[c]] = used
    if longest >= ABSENT:
        return False
    characters = np.empty(longest * WIDTH, np.uint8)
    sizes = np.zeros(WIDTH, np.uint8)
    same = np.zeros(WIDTH, np.uint8)
    gap = np.zeros(WIDTH, np.uint8)
    saved = np.zeros((LEVELS + 2) * WIDTH, np.uint8)
    depth = np.zeros(LEVELS + 2, np.int64)
    for group in range(begin, end, WIDTH):
        filled = min(WIDTH, end - group)
        characters[:] = np.uint8(ABSENT)
        sizes[:] = np.uint8(0)
        for lane in range(filled):
            row = rows[group + lane]
            lo = offsets[row]
            sizes[lane] = offsets[row + 1] - lo
            for k in range(offsets[row + 1] - lo):
                c = byte[alphabet_of[data[lo + k]]]
                characters[k * WIDTH + lane] = c if c > 0 else ABSENT
        z1 = load(sizes, 0, LANES)
        z2 = load(sizes, LANES, LANES)
        for r in range(len(loads)):
            if stop[0]:
                return True
            at = loads[r] * WIDTH
            same1 = load(saved, at, LANES)
            same2 = load(saved, at + LANES, LANES)
            place = depth[loads[r]] * WIDTH
            # beyond the longest pattern there is nothing to compare with
            for k in range(starts[r], min(starts[r + 1], starts[r] + longest - depth[loads[r]])):
                c = splat(z1, byte[codes[k]])
                same1 = increment(same1, equal(load(characters, place, LANES), c))
                same2 = increment(same2, equal(load(characters, place + LANES, LANES), c))
                place += WIDTH
            depth[saves[r]] = depth[loads[r]] + starts[r + 1] - starts[r]
            at = saves[r] * WIDTH
            store(saved, at, same1)
            store(saved, at + LANES, same2)
            if texts[r] >= 0:
                store(same, 0, same1)
                store(same, LANES, same2)
                text = splat(z1, min(lengths[texts[r]], ABSENT))
                store(gap, 0, (z1 - text) & less(text, z1))
                store(gap, LANES, (z2 - text) & less(text, z2))
                for lo in range(0, filled, width):
                    at = ((group - begin + lo) // width * n + texts[r]) * width
                    for lane in range(np.uint64(min(width, filled - lo))):
                        here = np.uint64(lo) + lane
                        delta = np.int64(gap[here]) - np.int64(same[here])
                        out[np.uint64(at) + lane] = delta
    return True


def _lane_kernel(bits: int) -> Any:
    width = LaneClass(bits, np.empty(0, np.int64)).width

    def count_same(*args: Any) -> None:
        """Bytes where they do, else bits."""
        *before, _, out, stop = args
        if not _bytes(*before, width, out, stop):
            PLACES.lanes[bits](*args)

    return count_same


LANE_KERNELS: Mapping[int, Any] = {bits: _lane_kernel(bits) for bits in (8, 16, 32, 64, 0)}


# -- single pairs ---------------------------------------------------------------------------------


@kernel
def _pairs(data_a, offsets_a, rows_a, data_b, offsets_b, rows_b, allowed, measure, out, stop):
    """``out[i]``: Hamming distance of string ``rows_a[i]`` and ``rows_b[i]``."""
    for i in range(len(rows_a)):
        lo_a = np.uint64(offsets_a[rows_a[i]])
        lo_b = np.uint64(offsets_b[rows_b[i]])
        m = offsets_a[rows_a[i] + 1] - offsets_a[rows_a[i]]
        n = offsets_b[rows_b[i] + 1] - offsets_b[rows_b[i]]
        same = 0
        for k in range(np.uint64(min(m, n))):
            same += int(data_a[lo_a + k] == data_b[lo_b + k])
        out[i] = max(m, n) - same


@kernel
def _prefix_pairs(
    data_a, offsets_a, rows_a, data_b, offsets_b, rows_b, allowed, measure, out, stop
):
    """As :func:`_pairs`, for the longer length less the common beginning."""
    for i in range(len(rows_a)):
        lo_a = offsets_a[rows_a[i]]
        lo_b = offsets_b[rows_b[i]]
        m = offsets_a[rows_a[i] + 1] - lo_a
        n = offsets_b[rows_b[i] + 1] - lo_b
        k = 0
        while k < min(m, n) and data_a[lo_a + k] == data_b[lo_b + k]:
            k += 1
        out[i] = max(m, n) - k
