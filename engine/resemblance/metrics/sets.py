"""Set metrics: Jaccard, Dice, overlap and cosine of token sets; records, formulas and kernels.

All four are a function of the sizes of two sets and of how many tokens they share, so one set of
kernels counts what is shared and :func:`set_score` says what it is worth.
"""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from resemblance.jit import inlined, kernel
from resemblance.metrics.base import Keep, Scorer, ScoringMetric, check_flags
from resemblance.simd import bit_count, match_bits
from resemblance.strings import HASH_BASE, Strings
from resemblance.tiles import Job, Tile
from resemblance.tokens import (
    Chars,
    Tokens,
    TokenSets,
    Words,
    base_power,
    hash_tokens,
    parse_tokens,
    postings,
    token_sets,
)

JACCARD, DICE, OVERLAP, COSINE = range(4)


@dataclass(frozen=True)
class SetMetric(ScoringMetric):
    """A similarity of two sets of tokens; see the records for what each has of its own.

    Two texts without tokens have similarity 1, a text without and one with tokens 0.
    """

    formula: ClassVar[int]

    tokens: Tokens
    multiset: bool

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", parse_tokens(self.tokens))
        check_flags(self, "multiset")
        object.__setattr__(self, "multiset", bool(self.multiset))

    def scorer(self, texts: Strings, patterns: Strings) -> Scorer:
        """Scores of all texts and patterns (nulls count as empty); one column may be both."""
        return SetScorer(self.formula, *token_sets(texts, patterns, self.tokens, self.multiset))

    def pair_scores(
        self,
        left: Strings,
        left_rows: NDArray[Any],
        right: Strings,
        right_rows: NDArray[Any],
        out: NDArray[np.float64],
        job: Job,
    ) -> None:
        """``out[i]``: similarity of rows ``left_rows[i]`` and ``right_rows[i]``, in this thread."""
        n = int(self.tokens.n)
        _pairs(
            self.formula, isinstance(self.tokens, Words), n, base_power(n), self.multiset,
            left.data, left.offsets, np.asarray(left_rows, np.int64),
            right.data, right.offsets, np.asarray(right_rows, np.int64), out, job.stop,
        )  # fmt: skip

    def near(
        self, left: Strings, right: Strings | None, at_least: float, job: Job, keep: Keep
    ) -> tuple[Iterator[Tile], int]:
        """Tiles (and their cost) that find all pairs of at least a similarity."""
        from resemblance.set_join import near_sets  # which needs the formulas from here

        sets = token_sets(left, right, self.tokens, self.multiset)
        return near_sets(self.formula, *sets, right is None, float(at_least), job, keep)


@dataclass(frozen=True)
class Jaccard(SetMetric):
    """Jaccard similarity: tokens that both texts have, as a share of those that either has.

    ``|A & B| / (|A| + |B| - |A & B|)``, from 0 to 1; two texts without tokens score 1.

    Parameters
    ----------
    tokens : Words, Chars or str
        What a token is; also as text, such as ``"words:2"``.
    multiset : bool
        Whether the second, third ... occurrence of a token counts as a further token.

    Notes
    -----
    P. Jaccard, "The distribution of the flora in the alpine zone", New Phytologist 11(2), 1912.

    Examples
    --------
    >>> import resemblance as rs
    >>> rs.pairwise(["to be or not to be"], ["to be or not"], rs.Jaccard())
    array([1.])
    >>> rs.pairwise(["night"], ["nacht"], rs.Jaccard("chars:1"))
    array([0.42857143])
    """

    name: ClassVar[str] = "jaccard"
    aliases: ClassVar[tuple[str, ...]] = ("tanimoto", "jaccard_similarity")
    summary: ClassVar[str] = "shared tokens as a share of all tokens"
    source: ClassVar[str] = "Jaccard 1912"
    formula: ClassVar[int] = JACCARD

    tokens: Tokens = Words()
    multiset: bool = False


@dataclass(frozen=True)
class Dice(SetMetric):
    """Dice similarity: shared tokens as a share of the average number of tokens.

    ``2 |A & B| / (|A| + |B|)``, from 0 to 1; two texts without tokens score 1.

    Parameters
    ----------
    tokens, multiset
        As for :class:`Jaccard`; by default pairs of characters, each occurrence counted.

    Notes
    -----
    L. R. Dice, "Measures of the amount of ecologic association between species", Ecology 26(3),
    1945; T. Sørensen, 1948.

    Examples
    --------
    >>> import resemblance as rs
    >>> rs.pairwise(["night"], ["nacht"], rs.Dice())
    array([0.25])
    """

    name: ClassVar[str] = "dice"
    aliases: ClassVar[tuple[str, ...]] = ("sorensen", "sorensen_dice")
    summary: ClassVar[str] = "shared tokens as a share of the average number of tokens"
    source: ClassVar[str] = "Dice 1945"
    formula: ClassVar[int] = DICE

    tokens: Tokens = Chars(2)
    multiset: bool = True


@dataclass(frozen=True)
class Overlap(SetMetric):
    """Overlap coefficient: shared tokens as a share of the smaller set, 1 where it is contained.

    ``|A & B| / min(|A|, |B|)``, from 0 to 1; two texts without tokens score 1, one without and
    one with tokens 0.

    Parameters
    ----------
    tokens, multiset
        As for :class:`Jaccard`.

    Notes
    -----
    D. Szymkiewicz, "Une contribution statistique à la géographie floristique", Acta Societatis
    Botanicorum Poloniae 11(3), 1934; G. G. Simpson, 1943.

    Examples
    --------
    >>> import resemblance as rs
    >>> rs.pairwise(["red apple"], ["one big red apple"], rs.Overlap())
    array([1.])
    """

    name: ClassVar[str] = "overlap"
    aliases: ClassVar[tuple[str, ...]] = ("containment", "szymkiewicz_simpson", "simpson")
    summary: ClassVar[str] = "shared tokens as a share of the smaller set"
    source: ClassVar[str] = "Szymkiewicz 1934, Simpson 1943"
    formula: ClassVar[int] = OVERLAP

    tokens: Tokens = Words()
    multiset: bool = False


@dataclass(frozen=True)
class Cosine(SetMetric):
    """Cosine similarity of token sets: shared tokens over the geometric mean of the sizes.

    ``|A & B| / sqrt(|A| |B|)``, from 0 to 1; two texts without tokens score 1, one without and
    one with tokens 0.

    Parameters
    ----------
    tokens, multiset
        As for :class:`Jaccard`. A further occurrence is a further token of the set: this is not
        the cosine of vectors of counts.

    Notes
    -----
    A. Ochiai, "Zoogeographical studies on the soleoid fishes found in Japan and its neighhouring
    regions", Bulletin of the Japanese Society of Scientific Fisheries 22(9), 1957; for texts
    G. Salton and M. J. McGill, "Introduction to Modern Information Retrieval", 1983.

    Examples
    --------
    >>> import resemblance as rs
    >>> rs.pairwise(["red apple"], ["green apple"], rs.Cosine())
    array([0.5])
    """

    name: ClassVar[str] = "cosine"
    aliases: ClassVar[tuple[str, ...]] = ("ochiai", "otsuka_ochiai")
    summary: ClassVar[str] = "shared tokens over the geometric mean of the sizes"
    source: ClassVar[str] = "Ochiai 1957, Salton 1983"
    formula: ClassVar[int] = COSINE

    tokens: Tokens = Words()
    multiset: bool = False


# -- the formulas ---------------------------------------------------------------------------------


@inlined
def _score(formula, shared, a, b):
    """Similarity of sets of ``a`` and ``b`` tokens, not both 0, in float64.

    Each operation is rounded once, so the value rises with ``shared`` and never with what a set
    has beyond that: joins derive whole numbers from this very expression.
    """
    shared = np.float64(shared)
    a = np.float64(a)
    b = np.float64(b)
    if formula == JACCARD:
        return shared / (a + b - shared)
    if formula == DICE:
        return 2.0 * shared / (a + b)
    # 1 where a set is empty: nothing is shared then
    if formula == OVERLAP:
        return shared / max(min(a, b), 1.0)
    return shared / max(math.sqrt(a * b), 1.0)


@kernel
def set_score(formula, shared, a, b):
    """Similarity of sets of ``a`` and ``b`` tokens that share so many, in float64."""
    if a == 0 and b == 0:
        return 1.0
    return _score(formula, shared, a, b)


# -- all pairs ------------------------------------------------------------------------------------


TILE_SCORES = 1 << 18
"""Scores of a tile; 2 MB."""

STRETCH = 1 << 12
"""Patterns of a stretch, enough for finding its part of each token's rows to cost little."""

DENSE = 64
"""Tokens are counted by rows of bytes if one pattern in so many has them."""

SCORE_COST = 0.6
"""Nanoseconds of a score, apart from the tokens."""

BYTE_COST = 0.02
"""Nanoseconds of a byte of a frequent token's row."""

LIST_COST = 2.0
"""Nanoseconds of an entry of a rare token's list."""


class Inverted:
    """The sets of a column by token, ready for counting what a set shares with each.

    Rare tokens add 1 for each set of their list; frequent ones, whose lists would be long, add a
    row of bytes, which the machine does for a whole register at once.

    Parameters
    ----------
    sets : TokenSets
        The column.
    largest : int
        Size of the largest set to count for.
    """

    def __init__(self, sets: TokenSets, largest: int) -> None:
        n = len(sets)
        self._sets = sets
        held = np.bincount(sets.ids, minlength=sets.vocabulary)
        frequent = np.flatnonzero(held >= max(n // DENSE, 1))
        # rows of bytes take no more than some times the memory of the lists
        most = max(1 << 26, 8 * len(sets.ids)) // max(n, 1)
        if len(frequent) > most:
            frequent = frequent[np.argsort(-held[frequent], kind="stable")[:most]]
        self._frequent = frequent
        self._place = np.full(sets.vocabulary, -1, np.int64)
        self._place[frequent] = np.arange(len(frequent)) * n
        largest = min(largest, int(sets.sizes.max(initial=0)))
        self.counter = np.uint8 if largest < 255 else np.int32
        self._costs = np.where(self._place >= 0, BYTE_COST, LIST_COST * held / max(n, 1))

    @functools.cached_property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """What :func:`count_shared` takes."""
        starts, rows = postings(self._sets.offsets, self._sets.ids, self._sets.vocabulary)
        dense = _dense_rows(self._frequent, starts, rows, len(self._sets))
        return starts, rows, self._place, dense

    def costs(self, sets: TokenSets) -> NDArray[np.float64]:
        """Estimated nanoseconds of counting, for each of some sets and each set of the column."""
        return _sums(sets.offsets, sets.ids, self._costs)


class SetScorer:
    """Scores by counting shared tokens, a stretch of patterns for each text at a time."""

    def __init__(self, formula: int, texts: TokenSets, patterns: TokenSets) -> None:
        self.columns: NDArray[np.int64] = np.arange(len(patterns))
        self._formula = formula
        self._texts = texts
        inverted = Inverted(patterns, int(texts.sizes.max(initial=0)))
        self._counter, self._arrays = inverted.counter, inverted.arrays
        self._sizes = patterns.sizes.astype(np.float64)
        self._costs = inverted.costs(texts) + SCORE_COST
        self._local = threading.local()

    def parts(self, rows: NDArray[np.int64], most: int) -> list[NDArray[np.int64]]:
        """Cut rows of the texts into parts, each of at most ``most`` rows."""
        size = TILE_SCORES // max(1, min(len(self.columns), STRETCH))
        size = max(1, min(most, size))
        return [rows[at : at + size] for at in range(0, len(rows), size)]

    def program(self, part: NDArray[np.int64]) -> NDArray[np.int64]:
        """What all stretches of a part share; made once, in the calling thread."""
        return np.ascontiguousarray(part, np.int64)

    def stretches(
        self, part: NDArray[np.int64], low: int, high: int
    ) -> Iterator[tuple[int, int, int]]:
        """Stretches ``columns[first:last]`` that hold all pattern rows from ``low`` to ``high``."""
        cost = float(self._costs[part].sum())
        for first in range(low, high, STRETCH):
            last = min(first + STRETCH, high)
            yield first, last, int(cost * (last - first)) + 1000

    def scores(
        self, program: NDArray[np.int64], first: int, last: int, job: Job
    ) -> NDArray[np.float64]:
        """Similarities, shape (rows of the part, last - first), C-contiguous.

        They last until this thread asks for the next ones: fresh memory would cost as much again.
        """
        out = self._buffer(len(program) * (last - first)).reshape(len(program), last - first)
        counts = np.empty(last - first, self._counter)
        _scores(
            self._formula, self._texts.offsets, self._texts.ids, program, *self._arrays,
            self._sizes, first, last, counts, out, job.stop,
        )  # fmt: skip
        return out

    def _buffer(self, size: int) -> NDArray[np.float64]:
        buffer: NDArray[np.float64] | None = getattr(self._local, "buffer", None)
        if buffer is None or len(buffer) < size:
            buffer = self._local.buffer = np.empty(size)
        return buffer[:size]


@kernel
def _dense_rows(tokens, starts, rows, n):
    """A row of ``n`` bytes for each token: 1 where a pattern has it."""
    out = np.zeros(len(tokens) * n, np.uint8)
    for k in range(len(tokens)):
        for e in range(starts[tokens[k]], starts[tokens[k] + 1]):
            out[k * n + rows[e]] = 1
    return out


@kernel
def _sums(offsets, ids, values):
    """Sum of the values of each row's tokens."""
    out = np.zeros(len(offsets) - 1)
    for i in range(len(out)):
        for k in range(offsets[i], offsets[i + 1]):
            out[i] += values[ids[k]]
    return out


@kernel
def lower_bound(values, first, last, value):
    """First place from ``first`` on where rising ``values`` are at least ``value``."""
    while first < last:
        middle = (first + last) // 2
        if values[middle] < value:
            first = middle + 1
        else:
            last = middle
    return first


@kernel
def count_shared(ids, begin, end, starts, rows, place, dense, first, last, counts):
    """``counts[p - first]``: tokens of one text that ``p`` has, a pattern from ``first`` on."""
    size = np.uint64(last - first)
    for p in range(size):
        counts[p] = 0
    # frequent tokens four at a time, so that the counts are fetched and stored less often
    waiting = 0
    a = b = c = np.uint64(0)
    for k in range(begin, end):
        w = ids[k]
        at = place[w]
        if at < 0:
            e = lower_bound(rows, starts[w], starts[w + 1], first)
            while e < starts[w + 1] and rows[e] < last:
                counts[np.uint64(rows[e] - first)] += 1
                e += 1
            continue
        d = np.uint64(at + first)
        if waiting == 3:
            for p in range(size):
                counts[p] += dense[a + p] + dense[b + p] + dense[c + p] + dense[d + p]
            waiting = 0
            continue
        waiting += 1
        a, b, c = b, c, d
    if waiting > 0:
        for p in range(size):
            counts[p] += dense[c + p]
    if waiting > 1:
        for p in range(size):
            counts[p] += dense[b + p]
    if waiting > 2:
        for p in range(size):
            counts[p] += dense[a + p]


@kernel
def _scores(
    formula, offsets, ids, texts, starts, rows, place, dense, sizes, first, last, counts, out, stop
):
    """Scores of some texts and the patterns from ``first`` to ``last``."""
    for t in range(len(texts)):
        if stop[0]:
            return
        begin = offsets[texts[t]]
        size = offsets[texts[t] + 1] - begin
        to = out[t]
        others = sizes[first:last]
        if size == 0:
            for p in range(len(to)):
                to[p] = np.float64(others[p] == 0)
            continue
        count_shared(ids, begin, begin + size, starts, rows, place, dense, first, last, counts)
        if formula == JACCARD:
            for p in range(len(to)):
                to[p] = _score(JACCARD, counts[p], size, others[p])
        elif formula == DICE:
            for p in range(len(to)):
                to[p] = _score(DICE, counts[p], size, others[p])
        elif formula == OVERLAP:
            for p in range(len(to)):
                to[p] = _score(OVERLAP, counts[p], size, others[p])
        else:
            for p in range(len(to)):
                to[p] = _score(COSINE, counts[p], size, others[p])


# -- single pairs ---------------------------------------------------------------------------------


SHORT = 64
"""Most tokens that are compared with each other all at once, a bit for each."""


@kernel
def _full(m):
    """A word whose ``m`` lowest bits are set."""
    return ~np.uint64(0) >> np.uint64(64 - m) if m > 0 else np.uint64(0)


def _meet(width):
    @kernel
    def different(a, m, b, n):
        """Different tokens among the ``m`` of ``a`` that are in ``b``."""
        full = _full(m)
        found = np.uint64(0)
        for j in range(np.uint64(n)):
            # the lowest bit is where a token of ``a`` comes first
            hit = match_bits(a, 0, b[j], width) & full
            found |= hit & (~hit + np.uint64(1))
        return bit_count(found)

    @kernel
    def meet(a, m, b, n, multiset):
        """Shared tokens and sizes of two sets; ``a``, and in sets ``b``, is within the width."""
        if not multiset:
            return different(a, m, b, n), different(a, m, a, m), different(b, n, b, n)
        free = _full(m)
        for j in range(np.uint64(n)):
            hit = match_bits(a, 0, b[j], width) & free
            free ^= hit & (~hit + np.uint64(1))
        return m - bit_count(free), m, n

    return meet


_meet_16, _meet_32, _meet_64 = _meet(16), _meet(32), _meet(64)


@kernel
def _by_table(a, m, b, n, multiset, keys, stamps, counts, pair):
    """Shared tokens and sizes of two sets of any size, through a table.

    Entries of the table whose stamp is not ``pair`` are empty. Its counts hold what ``a`` has and
    ``b`` has not met yet.
    """
    bits = 1
    while (1 << bits) < 2 * (m + n):
        bits += 1
    shift = np.uint64(64 - bits)
    wrap = np.uint64((1 << bits) - 1)
    shared = size_a = size_b = 0
    for k in range(m + n):
        h = a[k] if k < m else b[k - m]
        at = np.uint64(h * HASH_BASE) >> shift
        while stamps[at] == pair and keys[at] != h:
            at = (at + np.uint64(1)) & wrap
        new = stamps[at] != pair
        if new:
            stamps[at] = pair
            keys[at] = h
            counts[at] = 0
        if k < m:
            if new or multiset:
                counts[at] += 1
                size_a += 1
        elif counts[at] > 0:
            counts[at] -= 1
            shared += 1
            size_b += 1
        elif new or multiset:
            size_b += 1
    return shared, size_a, size_b


@kernel
def _pairs(
    formula,
    words,
    n,
    power,
    multiset,
    data_a,
    offsets_a,
    rows_a,
    data_b,
    offsets_b,
    rows_b,
    out,
    stop,
):
    """``out[i]``: similarity of string ``rows_a[i]`` and ``rows_b[i]``."""
    longest_a = longest_b = SHORT
    for i in range(len(rows_a)):
        longest_a = max(longest_a, offsets_a[rows_a[i] + 1] - offsets_a[rows_a[i]])
        longest_b = max(longest_b, offsets_b[rows_b[i] + 1] - offsets_b[rows_b[i]])
    a = np.zeros(longest_a, np.uint64)
    b = np.zeros(longest_b, np.uint64)
    size = 2
    while longest_a + longest_b > 2 * SHORT and size < 2 * (longest_a + longest_b):
        size *= 2
    keys = np.empty(size, np.uint64)
    stamps = np.full(size, -1, np.int64)
    counts = np.empty(size, np.int32)
    for i in range(len(rows_a)):
        if i & 255 == 0 and stop[0]:
            return
        row_a = rows_a[i]
        row_b = rows_b[i]
        size_a = hash_tokens(data_a, offsets_a[row_a], offsets_a[row_a + 1], words, n, power, a)
        size_b = hash_tokens(data_b, offsets_b[row_b], offsets_b[row_b + 1], words, n, power, b)
        width = size_a if multiset else max(size_a, size_b)
        if width <= 16:
            shared, size_a, size_b = _meet_16(a, size_a, b, size_b, multiset)
        elif width <= 32:
            shared, size_a, size_b = _meet_32(a, size_a, b, size_b, multiset)
        elif width <= SHORT and size_b <= SHORT:
            shared, size_a, size_b = _meet_64(a, size_a, b, size_b, multiset)
        else:
            shared, size_a, size_b = _by_table(
                a, size_a, b, size_b, multiset, keys, stamps, counts, i
            )
        out[i] = set_score(formula, shared, size_a, size_b)
