"""Jaro and Jaro-Winkler similarity: records, kernels in lanes and for single pairs, joins.

Characters match if they are equal and their places differ by no more than a window; each character
of the text takes the first free one of the pattern. For one character, places of both strings are
paired off like in a merge, so the result does not depend on which string is the text.

In bits: of the free matches within the window the lowest is taken, and a bit for each place of the
text tells that there was one. Where a pattern has several words these are taken one after the other
over the whole text, since a match in a lower word comes first and does not depend on those above.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resemblance import lanes
from resemblance.jit import inlined, kernel
from resemblance.lanes import VECTOR_BYTES, LaneClass, code_table
from resemblance.metrics.automata import fill_table, new_table, to_bytes, word_table
from resemblance.metrics.base import Keep, ScoringMetric, check_flags
from resemblance.signatures import passing, scan, signatures
from resemblance.simd import (
    bit_count,
    double,
    fused,
    increment,
    less,
    load,
    load_bits,
    match_bits,
    nonzero,
    popcount,
    splat,
    store,
    store_bits,
)
from resemblance.strings import Strings, put
from resemblance.tiles import PLACES, TILE_COST, Job, Tile


class Boost(NamedTuple):
    """What a common beginning of ``l`` characters adds to a Jaro similarity ``j`` above a limit.

    ``j + l * weight * (1 - j)``; with `scaled`, ``weight`` is at most 1 by the longer length.
    """

    weight: float
    above: float
    cap: int
    scaled: bool


class _Family(ScoringMetric):
    """What both metrics have in common."""

    floor_transpositions: bool

    @property
    def boost(self) -> Boost:
        """What a common beginning adds."""
        return Boost(0.0, 2.0, 0, False)

    def scorer(self, texts: Strings, patterns: Strings) -> _Scorer:
        return _Scorer(self, texts, patterns)

    def pair_scores(
        self,
        left: Strings,
        left_rows: NDArray[Any],
        right: Strings,
        right_rows: NDArray[Any],
        out: NDArray[np.float64],
        job: Job,
    ) -> None:
        _pairs(
            left.data, left.offsets, left_rows.astype(np.int64, copy=False),
            right.data, right.offsets, right_rows.astype(np.int64, copy=False),
            self.floor_transpositions, *self.boost, out, job.stop,
        )  # fmt: skip

    def near(
        self, left: Strings, right: Strings | None, at_least: float, job: Job, keep: Keep
    ) -> tuple[Iterator[Tile], int]:
        return _near(self, left, right, at_least, job, keep)


@dataclass(frozen=True)
class Jaro(_Family):
    """Jaro similarity: matching characters, and how many of them are out of order.

    ``(m / len(a) + m / len(b) + (m - t) / m) / 3``, evaluated in this order in float64; 0 if no
    character matches. ``m`` characters match: equal ones, no further apart than ``max(len(a),
    len(b)) // 2 - 1`` places, each taken once, from left to right. ``t`` is half the number of
    places at which the matching characters of one string differ from those of the other. Two empty
    strings have similarity 1. Characters are code points.

    Parameters
    ----------
    floor_transpositions : bool
        Round ``t`` down, as most libraries do. False, also ``"jaro:stringdist"``: do not, as R's
        stringdist.

    Notes
    -----
    M. A. Jaro, "Advances in record-linkage methodology as applied to matching the 1985 census of
    Tampa, Florida", J. American Statistical Association 84(406), 1989.

    Examples
    --------
    >>> import resemblance as rs
    >>> rs.pairwise(["martha"], ["marhta"], rs.Jaro()).round(4)
    array([0.9444])
    """

    floor_transpositions: bool = True

    def __post_init__(self) -> None:
        check_flags(self, "floor_transpositions")

    name: ClassVar[str] = "jaro"
    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "stringdist": {"floor_transpositions": False}
    }
    summary: ClassVar[str] = "matching characters, and those out of order"
    source: ClassVar[str] = "Jaro 1989"


@dataclass(frozen=True)
class JaroWinkler(_Family):
    """Jaro-Winkler similarity: Jaro's, raised by a common beginning.

    ``j + l * prefix_weight * (1 - j)`` where the Jaro similarity ``j`` is above
    ``boost_threshold``, else ``j``; at most 1. ``l`` is the length of the common beginning, up to
    ``prefix_cap``.

    Parameters
    ----------
    prefix_weight : float
        From 0 to 1; more than 1 by ``prefix_cap`` makes different strings score 1.
    boost_threshold : float
        With 0 every pair that has matching characters is boosted.
    floor_transpositions : bool
        See :class:`Jaro`.
    prefix_cap : int or None
        Longest beginning that counts; None for all of it.
    scale_prefix : bool
        Let the weight be at most 1 by the length of the longer string.

    Notes
    -----
    W. E. Winkler, "String comparator metrics and enhanced decision rules in the Fellegi-Sunter
    model of record linkage", Proc. Section on Survey Research Methods, ASA, 1990. Libraries differ;
    these conventions have names:

    ``jaro_winkler``
        As rapidfuzz, jellyfish, DuckDB.
    ``jaro_winkler:stringdist``
        As R's stringdist with ``p = 0.1``: always boosted, transpositions not rounded.
    ``jaro_winkler:java``
        As java-string-similarity and strsimpy: the whole beginning, its weight at most 1 by the
        longer length.
    ``jaro_winkler:future-agi``
        As the Future AGI platform: always boosted, transpositions not rounded.

    Examples
    --------
    >>> import resemblance as rs
    >>> rs.pairwise(["martha"], ["marhta"], "jaro_winkler").round(4)
    array([0.9611])
    """

    prefix_weight: float = 0.1
    boost_threshold: float = 0.7
    floor_transpositions: bool = True
    prefix_cap: int | None = 4
    scale_prefix: bool = False

    name: ClassVar[str] = "jaro_winkler"
    aliases: ClassVar[tuple[str, ...]] = ("jw",)
    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "stringdist": {"boost_threshold": 0.0, "floor_transpositions": False},
        "java": {"prefix_cap": None, "scale_prefix": True},
        "future-agi": {"boost_threshold": 0.0, "floor_transpositions": False},
    }
    summary: ClassVar[str] = "as jaro, raised by a common beginning"
    source: ClassVar[str] = "Winkler 1990"

    def __post_init__(self) -> None:
        if not 0 <= self.prefix_weight <= 1:
            raise ValueError(f"prefix_weight must be from 0 to 1, got {self.prefix_weight!r}")
        if not 0 <= self.boost_threshold <= 1:
            raise ValueError(f"boost_threshold must be from 0 to 1, got {self.boost_threshold!r}")
        if self.prefix_cap is not None and (
            not isinstance(self.prefix_cap, int | np.integer) or self.prefix_cap < 0
        ):
            raise ValueError(
                f"prefix_cap must be None or a whole number from 0, got {self.prefix_cap!r}"
            )
        check_flags(self, "floor_transpositions", "scale_prefix")

    @property
    def boost(self) -> Boost:
        cap = np.iinfo(np.int64).max if self.prefix_cap is None else self.prefix_cap
        return Boost(float(self.prefix_weight), float(self.boost_threshold), int(cap),
                     bool(self.scale_prefix))  # fmt: skip


# -- all pairs ------------------------------------------------------------------------------------


class _Texts(NamedTuple):
    """Texts of one tile: rows, and of those short enough for lanes, which come first, dense codes.

    ``starts`` says where each begins in ``codes``, which are as in a `Program`.
    """

    rows: NDArray[np.int64]
    starts: NDArray[np.int64]
    codes: NDArray[np.int32]
    code: NDArray[np.int32]
    alphabet: int


class _Scorer:
    """See :class:`resemblance.metrics.base.Scorer`."""

    def __init__(self, metric: _Family, texts: Strings, patterns: Strings) -> None:
        self._metric = metric
        self._texts = texts
        self._patterns = patterns
        self._lengths = patterns.lengths
        self._text_lengths = texts.lengths
        classes, single = lanes.by_lanes(self._lengths, np.arange(len(patterns)))
        # the last kind, of -1 bits, is met pair by pair
        self._kinds = [*classes, LaneClass(-1, single)]
        self._rising = [bool((np.diff(kind.rows) > 0).all()) for kind in self._kinds]
        self.columns: NDArray[np.int64] = np.concatenate([kind.rows for kind in self._kinds])

    def parts(self, rows: NDArray[np.int64], most: int) -> list[NDArray[np.int64]]:
        """Texts of a part are sorted by length: what depends on it is computed once for each."""
        lengths = self._text_lengths
        parts = lanes.chunks(lengths, rows, most)
        return [part[np.argsort(lengths[part], kind="stable")] for part in parts]

    def program(self, part: NDArray[np.int64]) -> _Texts:
        short = int(np.searchsorted(self._text_lengths[part], lanes.LONG, "right"))
        return _Texts(part, *_encode(self._texts.data, self._texts.offsets, part[:short]))

    def stretches(
        self, part: NDArray[np.int64], low: int, high: int
    ) -> Iterator[tuple[int, int, int]]:
        characters = int(self._text_lengths[part].sum())
        begin = 0
        for kind, rising in zip(self._kinds, self._rising, strict=True):
            lo, hi = 0, len(kind.rows)
            if rising:
                lo, hi = (int(x) for x in np.searchsorted(kind.rows, (low, high)))
            width = kind.width if kind.bits >= 0 else 8
            words = -(-int(self._lengths[kind.rows[-1]]) // 64) if len(kind.rows) else 0
            per_block = 1_000 + 12 * characters * max(words, 1) + len(part) * width
            if kind.bits < 0:
                per_block = (2 * characters * words + 200 * len(part)) * width
            blocks = max(1, min(TILE_COST // per_block,
                                lanes.TILE_RESULTS // 2 // (len(part) * width)))  # fmt: skip
            first = lo // width * width if lo < hi else hi
            while first < hi:
                last = min(first + blocks * width, len(kind.rows))
                yield begin + first, begin + last, per_block * -(-(last - first) // width)
                first = last
            begin += len(kind.rows)

    def scores(self, program: _Texts, first: int, last: int, job: Job) -> NDArray[np.float64]:
        found = np.empty((len(program.rows), last - first))
        floor, boost = self._metric.floor_transpositions, self._metric.boost
        texts, patterns = self._texts, self._patterns
        begin = 0
        for kind in self._kinds:
            if begin <= first < begin + len(kind.rows):
                break
            begin += len(kind.rows)
        rows = self.columns[first:last]
        short = 0
        if kind.bits >= 0:
            short = len(program.starts) - 1
            LANE_KERNELS[kind.bits](
                texts.data, texts.offsets, *program, patterns.data, patterns.offsets, rows, floor,
                *boost, found, job.stop,
            )  # fmt: skip
        others = program.rows[short:]
        if len(others):
            self._metric.pair_scores(
                texts, np.repeat(others, len(rows)), patterns, np.tile(rows, len(others)),
                found[short:].reshape(-1), job,
            )  # fmt: skip
        return found


@kernel
def _encode(data, offsets, rows):
    """Texts as dense codes: where each begins, codes, code of each character, their number."""
    code = code_table(data, np.int32)
    starts = np.zeros(len(rows) + 1, np.int64)
    for t in range(len(rows)):
        starts[t + 1] = starts[t] + offsets[rows[t] + 1] - offsets[rows[t]]
    codes = np.empty(starts[-1], np.int32)
    alphabet = 0
    at = 0
    for t in range(len(rows)):
        for k in range(offsets[rows[t]], offsets[rows[t] + 1]):
            c = data[k]
            if code[c] == 0:
                alphabet += 1
                code[c] = alphabet
            codes[at] = code[c]
            at += 1
    return starts, codes, code, alphabet


@inlined
def _jaro(matches, different, m, n, floor):
    """The similarity, of at least one match; the order of evaluation is part of the contract."""
    t = different // 2 if floor else different / 2
    return (matches / m + matches / n + (matches - t) / matches) / 3.0


@inlined
def _reach(m, n):
    """How many places matching characters may be apart, in strings of these lengths."""
    return max(max(m, n) // 2 - 1, 0)


@inlined
def _clipped(bits):
    """A number of bits within a word."""
    return min(max(bits, 0), 64)


@inlined
def _lowest(bits):
    """The lowest set bit of each lane."""
    return bits & (splat(bits, 0) - bits)


@inlined
def _take(pm, window, unused):
    """Free matches within the window, and the places left after the first of them is taken."""
    free = pm & window & unused
    return free, unused & ~_lowest(free)


@inlined
def _differs(pm, matched, rest, different):
    """Compare a match of the text with the pattern's next one; a difference is counted."""
    following = _lowest(rest)
    different = increment(different, matched & ~nonzero(pm & following))
    return rest & ~(following & matched), different


def _lane_kernel(dtype):
    lanes = VECTOR_BYTES // np.dtype(dtype).itemsize
    width = 2 * lanes
    half = -(-lanes // 8)  # bytes that hold a bit for each lane of a vector
    row = 2 * half
    bits = np.dtype(dtype).itemsize * 8

    @kernel
    def _lanes(
        text_data,
        text_offsets,
        text_rows,
        starts,
        codes,
        code,
        alphabet,
        data,
        offsets,
        rows,
        floor,
        weight,
        above,
        cap,
        scaled,
        out,
        stop,
    ):
        """``out[text, p]``: Jaro similarity of a text and pattern ``rows[p]``."""
        texts = len(starts) - 1
        longest = 0
        for t in range(texts):
            longest = max(longest, starts[t + 1] - starts[t])
        mask = np.zeros(width, dtype)
        small, slot, table = new_table(alphabet, mask)
        sizes = np.zeros(width, dtype)
        reach = np.zeros(width, dtype)
        windows = np.zeros((longest + 1) * width, dtype)
        matched = np.zeros((longest + 1) * row, np.uint8)
        matches = np.zeros(width, dtype)
        different = np.zeros(width, dtype)
        m = np.ones(width)
        inverse_m = np.ones(width)
        flags = np.zeros(width + 32, np.uint8)
        zero = dtype(0)
        for begin in range(0, len(rows), width):
            filled = min(width, len(rows) - begin)
            fill_table(
                data, offsets, rows[begin : begin + filled], code, small, slot, table, mask, sizes
            )
            for lane in range(filled):
                m[lane] = max(np.float64(sizes[lane]), 1.0)
                inverse_m[lane] = 1.0 / m[lane]
            before = -1
            for t in range(texts):
                if stop[0]:
                    return
                lo = starts[t]
                n = starts[t + 1] - lo
                if n == 0:
                    for lane in range(filled):
                        out[t, begin + lane] = 1.0 if sizes[lane] == zero else 0.0
                    continue
                if n != before:
                    _windows(sizes, n, bits, reach, windows)
                    before = n
                places1 = load(mask, 0, lanes)
                places2 = load(mask, lanes, lanes)
                unused1 = places1
                unused2 = places2
                for k in range(n):
                    s = slot[codes[lo + k]]
                    at = k * width
                    free1, unused1 = _take(load(table, s, lanes), load(windows, at, lanes), unused1)
                    free2, unused2 = _take(
                        load(table, s + lanes, lanes), load(windows, at + lanes, lanes), unused2
                    )
                    store_bits(matched, k * row, free1)
                    store_bits(matched, k * row + half, free2)
                rest1 = places1 & ~unused1
                rest2 = places2 & ~unused2
                store(matches, 0, popcount(rest1))
                store(matches, lanes, popcount(rest2))
                count1 = splat(rest1, 0)
                count2 = count1
                for k in range(n):
                    s = slot[codes[lo + k]]
                    here1 = load_bits(matched, k * row, rest1)
                    here2 = load_bits(matched, k * row + half, rest2)
                    rest1, count1 = _differs(load(table, s, lanes), here1, rest1, count1)
                    rest2, count2 = _differs(load(table, s + lanes, lanes), here2, rest2, count2)
                store(different, 0, count1)
                store(different, lanes, count2)
                here = out[t, begin : begin + filled]
                _finish(matches, different, m, inverse_m, n, floor, above, flags, here)
                if weight > 0.0:
                    _boost(
                        text_data, text_offsets[text_rows[t]], n, data, offsets,
                        rows[begin : begin + filled], weight, cap, scaled, flags, here,
                    )  # fmt: skip

    return _lanes


@inlined
def quotient(a, b, inverse):
    """``a / b`` as division rounds it, by ``inverse = 1.0 / b`` and one correction.

    Five times as fast; right for whole numbers ``a <= b`` up to `lanes.LONG`, and for ``b = 3``
    (P. Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", IBM
    J. Research and Development 34(1), 1990).
    """
    near = a * inverse
    return fused(fused(-b, near, a), inverse, near)


@kernel
def _finish(matches, different, m, inverse_m, n, floor, above, flags, out):
    """Similarities of a vector's lanes; no lane branches, so that they are computed as vectors.

    ``flags`` of lanes with a score above a limit are set.
    """
    length = np.float64(n)
    inverse_n = 1.0 / length
    third = 1.0 / 3.0
    half = 1.0 if floor else 0.5
    shift = 1 if floor else 0
    for lane in range(np.uint64(len(out))):
        found = np.float64(matches[lane])
        t = np.float64(different[lane] >> shift) * half
        least = found if found > 1.0 else 1.0
        score = quotient(found, m[lane], inverse_m[lane]) + quotient(found, length, inverse_n)
        score = quotient(score + (found - t) / least, 3.0, third)
        out[lane] = score
        flags[lane] = score > above


@kernel
def _windows(sizes, n, bits, reach, windows):
    """Places of each pattern within the window of each place of a text of ``n`` characters."""
    width = len(sizes)
    one = sizes.dtype.type(1)
    # A text longer than all patterns has one window for them all. All but the last 200 of its
    # places from the beginning are counted off beforehand: lanes of 8 bits hold no more.
    ahead = max(0, n // 2 - 1 - 200) if n > 64 else 0
    for lane in range(width):
        w = _reach(np.int64(sizes[lane]), n)
        reach[lane] = w - ahead + 1
        windows[lane] = ~sizes.dtype.type(0)
        if w + 1 < bits:
            windows[lane] = (one << sizes.dtype.type(w + 1)) - one
    for k in range(1, n):
        place = min(max(k - ahead, 0), 255)
        for lane in range(width):
            inside = one if place < reach[lane] else one - one
            at = np.uint64(k * width + lane)
            windows[at] = (windows[at - np.uint64(width)] << one) | inside


def _multiword_kernel():
    dtype = np.uint64
    lanes = VECTOR_BYTES // 8
    width = 2 * lanes
    half = -(-lanes // 8)
    row = 2 * half

    @kernel
    def _lanes_multiword(
        text_data,
        text_offsets,
        text_rows,
        starts,
        codes,
        code,
        alphabet,
        data,
        offsets,
        rows,
        floor,
        weight,
        above,
        cap,
        scaled,
        out,
        stop,
    ):
        """As the kernels of one word."""
        texts = len(starts) - 1
        longest = 0
        for t in range(texts):
            longest = max(longest, starts[t + 1] - starts[t])
        slot = np.zeros(alphabet + 1, np.int64)
        sizes = np.zeros(width, dtype)
        matched = np.zeros((longest + 1) * row, np.uint8)
        matches = np.zeros(width, dtype)
        different = np.zeros(width, dtype)
        m = np.ones(width)
        inverse_m = np.ones(width)
        flags = np.zeros(width + 32, np.uint8)
        reach = np.zeros(width, dtype)
        first_window = np.zeros(width, dtype)
        for begin in range(0, len(rows), width):
            filled = min(width, len(rows) - begin)
            sizes[:] = 0
            words, table, mask = word_table(
                data, offsets, rows[begin : begin + filled], code, alphabet, width, slot, sizes
            )
            used = np.zeros(words * width, dtype)
            for lane in range(filled):
                m[lane] = max(np.float64(sizes[lane]), 1.0)
                inverse_m[lane] = 1.0 / m[lane]
            for t in range(texts):
                if stop[0]:
                    return
                lo = starts[t]
                n = starts[t + 1] - lo
                if n == 0:
                    for lane in range(filled):
                        out[t, begin + lane] = 1.0 if sizes[lane] == 0 else 0.0
                    continue
                for lane in range(width):
                    reach[lane] = _reach(np.int64(sizes[lane]), n)
                matched[: n * row] = 0
                w1 = load(reach, 0, lanes)
                w2 = load(reach, lanes, lanes)
                none = splat(w1, 0)
                one = splat(w1, 1)
                total1 = none
                total2 = none
                for w in range(words):
                    word = w * width
                    for lane in range(width):
                        inside = _clipped(np.int64(reach[lane]) + 1 - 64 * w)
                        first_window[lane] = 0
                        if inside > 0:
                            first_window[lane] = ~np.uint64(0) >> np.uint64(64 - inside)
                    window1 = load(first_window, 0, lanes)
                    window2 = load(first_window, lanes, lanes)
                    # bit 0 of this word is within the window of place k while |k - 64 w| <= reach
                    offset1 = w1 - splat(w1, 64 * w)
                    offset2 = w2 - splat(w2, 64 * w)
                    span1 = double(w1) + one
                    span2 = double(w2) + one
                    unused1 = load(mask, word, lanes)
                    unused2 = load(mask, word + lanes, lanes)
                    for k in range(n):
                        s = slot[codes[lo + k]] + word
                        if k > 0:
                            here = splat(w1, k)
                            window1 = double(window1) | (less(here + offset1, span1) & one)
                            window2 = double(window2) | (less(here + offset2, span2) & one)
                        at = k * row
                        before1 = load_bits(matched, at, none)
                        before2 = load_bits(matched, at + half, none)
                        free1, unused1 = _take(load(table, s, lanes), window1 & ~before1, unused1)
                        free2, unused2 = _take(
                            load(table, s + lanes, lanes), window2 & ~before2, unused2
                        )
                        store_bits(matched, at, before1 | free1)
                        store_bits(matched, at + half, before2 | free2)
                    used1 = load(mask, word, lanes) & ~unused1
                    used2 = load(mask, word + lanes, lanes) & ~unused2
                    store(used, word, used1)
                    store(used, word + lanes, used2)
                    total1 = total1 + popcount(used1)
                    total2 = total2 + popcount(used2)
                count1 = none
                count2 = none
                for w in range(words):
                    word = w * width
                    rest1 = load(used, word, lanes)
                    rest2 = load(used, word + lanes, lanes)
                    for k in range(n):
                        s = slot[codes[lo + k]] + word
                        at = k * row
                        # matches of the text that the words below have no place left for
                        all1 = load_bits(matched, at, none)
                        all2 = load_bits(matched, at + half, none)
                        here1 = all1 & nonzero(rest1)
                        here2 = all2 & nonzero(rest2)
                        rest1, count1 = _differs(load(table, s, lanes), here1, rest1, count1)
                        rest2, count2 = _differs(
                            load(table, s + lanes, lanes), here2, rest2, count2
                        )
                        store_bits(matched, at, all1 & ~here1)
                        store_bits(matched, at + half, all2 & ~here2)
                store(matches, 0, total1)
                store(matches, lanes, total2)
                store(different, 0, count1)
                store(different, lanes, count2)
                here = out[t, begin : begin + filled]
                _finish(matches, different, m, inverse_m, n, floor, above, flags, here)
                if weight > 0.0:
                    _boost(
                        text_data, text_offsets[text_rows[t]], n, data, offsets,
                        rows[begin : begin + filled], weight, cap, scaled, flags, here,
                    )  # fmt: skip

    return _lanes_multiword


LANE_KERNELS: Mapping[int, Any] = {
    8: _lane_kernel(np.uint8),
    16: _lane_kernel(np.uint16),
    32: _lane_kernel(np.uint32),
    64: _lane_kernel(np.uint64),
    0: _multiword_kernel(),
}


@inlined
def _boosted(score, common, longer, weight, scaled):
    """Winkler's form, in the order that the contract fixes."""
    if scaled:
        weight = min(weight, 1.0 / longer)
    return min(score + common * weight * (1.0 - score), 1.0)


@kernel
def _common(a, lo_a, b, lo_b, most):
    """Length of the common beginning, up to ``most``."""
    k = 0
    while k < most and a[lo_a + k] == b[lo_b + k]:
        k += 1
    return k


@kernel
def _boost(text, lo, n, data, offsets, rows, weight, cap, scaled, flags, scores):
    """Raise a text's scores that are flagged by the beginnings it has in common with patterns."""
    for begin in range(0, len(rows), 32):
        bits = match_bits(flags, begin, 1, 32)
        while bits != np.uint64(0):
            p = begin + bit_count(~bits & (bits - np.uint64(1)))
            bits &= bits - np.uint64(1)
            if p >= len(rows):
                break
            at = offsets[rows[p]]
            m = offsets[rows[p] + 1] - at
            common = _common(text, lo, data, at, min(cap, m, n))
            if common > 0:
                scores[p] = _boosted(scores[p], common, max(m, n), weight, scaled)


# -- single pairs ---------------------------------------------------------------------------------

SHORT = 64
"""Longest pattern whose pair is compared as bytes, in one word; the text may have some more."""


@kernel
def _pairs(
    data_a, offsets_a, rows_a, data_b, offsets_b, rows_b, floor, weight, above, cap, scaled, out,
    stop,
):  # fmt: skip
    """``out[i]``: similarity of string ``rows_a[i]`` and ``rows_b[i]``."""
    longest = 0
    for i in range(len(rows_a)):
        longest = max(longest, offsets_a[rows_a[i] + 1] - offsets_a[rows_a[i]])
        longest = max(longest, offsets_b[rows_b[i] + 1] - offsets_b[rows_b[i]])
    code = code_table(data_a, np.uint8)
    pattern = np.zeros(256, np.uint8)
    text = np.zeros(256, np.uint8)
    matched = np.zeros(longest, np.uint8)
    used = np.zeros(longest // 64 + 1, np.uint64)
    pad = np.zeros(64, data_a.dtype)
    for i in range(len(rows_a)):
        if stop[0]:
            return
        lo_a = offsets_a[rows_a[i]]
        lo_b = offsets_b[rows_b[i]]
        m = offsets_a[rows_a[i] + 1] - lo_a
        n = offsets_b[rows_b[i] + 1] - lo_b
        if m == 0 or n == 0:
            out[i] = 1.0 if m == n else 0.0
            continue
        if min(m, n) <= SHORT and max(m, n) < 256:
            if m <= n:
                to_bytes(data_a, lo_a, m, data_b, lo_b, n, code, pattern, text)
                matches, different = _one_word(pattern, m, text, n)
            else:
                to_bytes(data_b, lo_b, n, data_a, lo_a, m, code, pattern, text)
                matches, different = _one_word(pattern, n, text, m)
        else:
            a = data_a[lo_a : lo_a + m]
            b = data_b[lo_b : lo_b + n]
            if m <= n:
                matches, different = _words(a, b, matched, used, pad)
            else:
                matches, different = _words(b, a, matched, used, pad)
        score = 0.0
        if matches > 0:
            score = _jaro(matches, different, m, n, floor)
        if score > above:
            common = _common(data_a, lo_a, data_b, lo_b, min(cap, m, n))
            if common > 0:
                score = _boosted(score, common, max(m, n), weight, scaled)
        out[i] = score


@kernel
def _one_word(pattern, m, text, n):
    """Matches of a pattern (the first ``m`` of 64 bytes) and a text, and how many differ."""
    one = np.uint64(1)
    reach = _reach(m, n)
    unused = ~np.uint64(0) >> np.uint64(64 - m)
    places = unused
    window = ~np.uint64(0) if reach >= 63 else (one << np.uint64(reach + 1)) - one
    hits = np.uint64(0)
    for k in range(np.uint64(min(n, 64))):
        free = match_bits(pattern, 0, text[k], 64) & window & unused
        unused &= ~(free & (np.uint64(0) - free))
        hits |= np.uint64(free != np.uint64(0)) << k
        window = (window << one) | np.uint64(k < np.uint64(reach))
    late = unused  # places that the rest of a longer text finds
    for k in range(64, min(n, m + reach)):
        free = match_bits(pattern, 0, text[k], 64) & window & unused
        unused &= ~(free & (np.uint64(0) - free))
        window = (window << one) | np.uint64(k < reach)
    rest = places & ~unused
    matches = bit_count(rest)
    different = 0
    while hits != np.uint64(0):
        k = bit_count(~hits & (hits - one))
        place = bit_count(~rest & (rest - one))
        different += int(text[k] != pattern[place])
        hits &= hits - one
        rest &= rest - one
    if late != unused:
        # the matches of the rest are found once more, in the same order
        unused = late
        window = np.uint64(0)
        for place in range(m):
            if place >= 64 - reach:
                window |= one << np.uint64(place)
        for k in range(64, min(n, m + reach)):
            free = match_bits(pattern, 0, text[k], 64) & window & unused
            unused &= ~(free & (np.uint64(0) - free))
            window = (window << one) | np.uint64(k < reach)
            if free != np.uint64(0):
                place = bit_count(~rest & (rest - one))
                different += int(text[k] != pattern[place])
                rest &= rest - one
    return matches, different


@kernel
def _words(pattern, text, matched, used, pad):
    """As :func:`_one_word`, word by word of the pattern."""
    m = len(pattern)
    n = len(text)
    reach = _reach(m, n)
    for k in range(n):
        matched[k] = 0
    matches = 0
    ones = ~np.uint64(0)
    for lo in range(0, m, 64):
        rows = min(64, m - lo)
        put(pattern[lo : lo + rows], pad, 0)
        busy = np.uint64(0)
        if rows < 64:
            busy = ones << np.uint64(rows)
        for k in range(max(0, lo - reach), min(n, lo + rows + reach)):
            if matched[k]:
                continue
            free = match_bits(pad, 0, text[k], 64) & ~busy
            from_place = k - reach - lo
            to_place = k + reach - lo
            if from_place > 0:
                free &= ones << np.uint64(from_place)
            if to_place < 63:
                free &= ones >> np.uint64(63 - to_place)
            if free != np.uint64(0):
                busy |= free & (np.uint64(0) - free)
                matched[k] = 1
                matches += 1
        if rows < 64:
            busy &= ones >> np.uint64(64 - rows)
        used[lo >> 6] = busy
    different = 0
    k = 0
    for lo in range(0, m, 64):
        rest = used[lo >> 6]
        while rest != np.uint64(0):
            place = lo + bit_count(~rest & (rest - np.uint64(1)))
            rest &= rest - np.uint64(1)
            while not matched[k]:
                k += 1
            different += text[k] != pattern[place]
            k += 1
    return matches, different


# -- joins ----------------------------------------------------------------------------------------

SLACK = 1e-9
"""What bounds on similarities are widened by: rounding may lift a score by a few ulps."""


def _least_jaro(boost: Boost, at_least: float) -> float:
    """The smallest Jaro similarity with which a pair may still reach a score."""
    most = boost.weight * min(boost.cap, 1 << 20)
    if boost.scaled or boost.weight == 0:
        most = 1.0 if boost.scaled else 0.0
    if most >= 1.0:
        return min(at_least, boost.above) - SLACK
    return min(at_least, max(boost.above, (at_least - most) / (1.0 - most))) - SLACK


def _least_matches(
    lengths: NDArray[np.int64], other: NDArray[np.int64], jaro: float
) -> NDArray[np.int64]:
    """Fewest matches with which strings of these lengths reach a Jaro similarity."""
    a, b = np.maximum(lengths, 1), np.maximum(other, 1)
    needed = np.ceil((3 * jaro - 1) / (1 / a + 1 / b) - SLACK).astype(np.int64)
    needed = np.maximum(needed, 1 if jaro > 0 else 0)
    return np.where((lengths == 0) & (other == 0), 0, needed)  # two empty strings are equal


class _Window(NamedTuple):
    """Rows of the index of one length, probes of one length, and what each side may miss."""

    lo: int
    hi: int
    first: int
    last: int
    most_index: int
    most_probe: int


def _windows_of(
    index: NDArray[np.int64], probes: NDArray[np.int64], same: bool, jaro: float
) -> Iterator[_Window]:
    """Pairs of lengths of which strings may reach a Jaro similarity; both columns rise."""
    lengths, lows = np.unique(index, return_index=True)
    highs = np.append(lows, len(index))[1:]
    others, firsts = np.unique(probes, return_index=True)
    lasts = np.append(firsts, len(probes))[1:]
    for length, lo, hi in zip(lengths.tolist(), lows.tolist(), highs.tolist(), strict=True):
        needed = _least_matches(length, others, jaro)
        within = needed <= np.minimum(length, others)
        if same:
            within &= others >= length
        for k in np.flatnonzero(within).tolist():
            most = int(needed[k])
            yield _Window(
                lo, hi, int(firsts[k]), int(lasts[k]), length - most, int(others[k]) - most
            )


def _near(
    metric: _Family, left: Strings, right: Strings | None, at_least: float, job: Job, keep: Keep
) -> tuple[Iterator[Tile], int]:
    """By signatures where few pairs pass them, else by lanes."""
    same = right is None
    index = left if right is None else right
    index_lengths, probe_lengths = index.lengths, left.lengths
    jaro = _least_jaro(metric.boost, at_least)
    signs = signatures(index.data, index.offsets)
    own = signs if same else signatures(left.data, left.offsets)
    scorer = metric.scorer(index, left)

    def scan_tile(place: int, windows: list[_Window]) -> None:
        for w in windows:
            first = w.first
            room = w.hi - w.lo + (1 << 16)
            i, j = np.empty(room, np.int32), np.empty(room, np.int32)
            while first < w.last and not job.stop[0]:
                first, count = scan(
                    own, first, w.last, signs, w.lo, w.hi, w.most_probe, w.most_index, same, i, j
                )
                score = np.empty(count)
                metric.pair_scores(left, i[:count], index, j[:count], score, job)
                passed = score >= at_least
                if passed.any() and not job.stop[0]:
                    keep(place, (i[:count][passed], j[:count][passed], score[passed]))
                place += 1

    def lane_tile(
        place: int,
        part: NDArray[np.int64],
        program: _Texts,
        begin: int,
        end: int,
        low: int,
        high: int,
    ) -> None:
        found = scorer.scores(program, begin, end, job)
        if job.stop[0]:
            return
        i, j, score = _collect(found, part, scorer.columns[begin:end], low, high, same, at_least)
        if len(i):
            keep(place, (i, j, score))

    tiles: list[tuple[int, list[_Window]]] = []
    by_lanes: list[_Window] = []
    waiting: list[_Window] = []
    cost = 0.0
    for w in _windows_of(index_lengths, probe_lengths, same, jaro):
        pairs = (w.hi - w.lo) * (w.last - w.first)
        m, n = int(index_lengths[w.lo]), int(probe_lengths[w.first])
        passed = passing(own[w.first : w.last], signs[w.lo : w.hi], w.most_probe, w.most_index)
        single = 20.0 + 4.0 * min(m, n) * (1 + max(m, n) // 64)
        here = pairs * (0.5 + passed * single) + 2_000
        if here > pairs * _lane_cost(m, n):
            before = by_lanes[-1] if by_lanes else w
            if (before.lo, before.last) == (w.lo, w.first):
                w = w._replace(first=by_lanes.pop().first)
            by_lanes.append(w)
            continue
        pieces = int(min(w.last - w.first, here // TILE_COST + 1))
        for k in range(pieces):
            lo = w.first + (w.last - w.first) * k // pieces
            hi = w.first + (w.last - w.first) * (k + 1) // pieces
            waiting.append(w._replace(first=lo, last=hi))
            cost += here / pieces
            if cost > TILE_COST:
                tiles.append((int(cost), waiting))
                waiting, cost = [], 0.0
    tiles.append((int(cost), waiting))

    def all_tiles() -> Iterator[Tile]:
        place = 0
        for tile_cost, windows in tiles:
            yield tile_cost, partial(scan_tile, place, windows)
            place += PLACES
        for w in by_lanes:
            for part in scorer.parts(np.arange(w.lo, w.hi), LANE_ROWS):
                program = scorer.program(part)
                for begin, end, stretch in scorer.stretches(part, w.first, w.last):
                    yield (
                        stretch,
                        partial(lane_tile, place, part, program, begin, end, w.first, w.last),
                    )
                    place += 1

    total = sum(tile_cost for tile_cost, _ in tiles)
    for w in by_lanes:
        for part in scorer.parts(np.arange(w.lo, w.hi), LANE_ROWS):
            total += sum(stretch for *_, stretch in scorer.stretches(part, w.first, w.last))
    return all_tiles(), total


LANE_ROWS = 512
"""Most rows of a tile of lanes."""


def _lane_cost(m: int, n: int) -> float:
    """Estimated nanoseconds of a pair of these lengths in lanes."""
    bits = next((b for b in (8, 16, 32) if n <= b), 64)
    return 12.0 * m * (1 + n // 65) / (lanes.BLOCK_BYTES * 8 // bits) + 2.0


@kernel
def _collect(scores, rows, columns, low, high, same, at_least):
    """Pairs of a tile that pass: patterns (left), texts (right), scores."""
    count = 0
    for t in range(len(rows)):
        for p in range(len(columns)):
            count += scores[t, p] >= at_least
    left = np.empty(count, np.int32)
    right = np.empty(count, np.int32)
    found = np.empty(count)
    count = 0
    for t in range(len(rows)):
        for p in range(len(columns)):
            row = columns[p]
            if scores[t, p] >= at_least and low <= row < high and not (same and row <= rows[t]):
                left[count] = row
                right[count] = rows[t]
                found[count] = scores[t, p]
                count += 1
    return left[:count], right[:count], found[:count]
