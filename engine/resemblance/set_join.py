"""All pairs of token sets of at least a similarity, exactly.

Two sets that share enough tokens share one among their first few, if both are sorted in one order;
with the rarest tokens first those few lead to few candidates (the prefix filter of R. Bayardo,
Y. Ma and R. Srikant, "Scaling up all pairs similarity search", WWW 2007; the bound by position is
that of C. Xiao et al., "Efficient similarity joins for near duplicate detection", ACM TODS 36(3),
2011). At the first shared token all later ones are still to come, so a candidate is decided when it
is met: by the bound, by a 64-bit sketch of the sets, or by counting.

All bounds are whole numbers, each found by comparing the score itself with the threshold.
Where filters would leave too much, all pairs are scored instead, as for a matrix.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from resemblance.jit import inlined, kernel
from resemblance.metrics.base import Keep
from resemblance.metrics.sets import SetScorer, set_score
from resemblance.simd import bit_count
from resemblance.strings import HASH_BASE, by_length
from resemblance.tiles import Job, Tile
from resemblance.tokens import TokenSets

TILE_COST = 4_000_000
"""Estimated nanoseconds of a tile."""

PLACES = 1 << 32
"""Batches of pairs that a tile may give, in the numbering that fixes their order."""

HELD = 1 << 18
"""Pairs that a tile gathers before it gives them."""

ENTRY_COST = 6.0
"""Nanoseconds of an entry of a token's list, with the share of candidates that are counted."""

PAIR_COST = 0.8
"""Nanoseconds of a pair, where all are scored."""


class _Sorted(NamedTuple):
    """Token sets by size, those without tokens left out."""

    sets: TokenSets
    rows: NDArray[np.int32]
    """Row of the column that each set is of."""
    sizes: NDArray[np.int64]
    """The different sizes."""
    ends: NDArray[np.int64]
    """Where the sets of each size end."""
    sketches: NDArray[np.uint64]
    empty: NDArray[np.int32]
    """Rows without tokens."""


def _by_size(sets: TokenSets) -> _Sorted:
    sizes = sets.sizes
    order = by_length(sizes)
    empty = int((sizes == 0).sum())
    rows = order[empty:]
    sets = sets.take(rows)
    different, counts = np.unique(sizes[rows], return_counts=True)
    return _Sorted(
        sets, rows.astype(np.int32), different, np.cumsum(counts),
        _sketches(sets.offsets, sets.ids), order[:empty].astype(np.int32),
    )  # fmt: skip


def near_sets(
    formula: int,
    left: TokenSets,
    right: TokenSets,
    same: bool,
    at_least: float,
    job: Job,
    keep: Keep,
) -> tuple[Iterator[Tile], int]:
    """Tiles (and their cost) that find all pairs; see :meth:`ScoringMetric.near`."""
    pairs = len(left) * len(right) // (2 if same else 1)
    if at_least > 0:
        probes = _by_size(left)
        index = probes if same else _by_size(right)
        search = _Search(formula, probes, index, same, at_least, job, keep)
        if search.cost <= pairs * PAIR_COST:
            return search.tiles(), search.cost
    return _scored_tiles(formula, left, right, same, at_least, job, keep)


# -- scoring all pairs ----------------------------------------------------------------------------


def _scored_tiles(
    formula: int,
    left: TokenSets,
    right: TokenSets,
    same: bool,
    at_least: float,
    job: Job,
    keep: Keep,
) -> tuple[Iterator[Tile], int]:
    scorer = SetScorer(formula, left, right)
    parts = scorer.parts(np.arange(len(left)), len(left))

    def work(place: int, part: NDArray[np.int64], first: int, last: int) -> None:
        scores = scorer.scores(scorer.program(part), first, last, job)
        if not job.stop[0]:
            keep(place, _collect(scores, part, first, same, at_least))

    def stretches() -> Iterator[tuple[NDArray[np.int64], int, int, int]]:
        for part in parts:
            low = int(part[0]) + 1 if same else 0
            for first, last, cost in scorer.stretches(part, low, len(right)):
                yield part, first, last, cost

    def tiles() -> Iterator[Tile]:
        for place, (part, first, last, cost) in enumerate(stretches()):
            yield cost, partial(work, place, part, first, last)

    return tiles(), sum(cost for *_, cost in stretches())


@kernel
def _collect(scores, texts, first, same, at_least):
    """Pairs of a tile with at least a similarity."""
    count = 0
    for t in range(len(texts)):
        for p in range(max(0, texts[t] + 1 - first) if same else 0, scores.shape[1]):
            count += int(scores[t, p] >= at_least)
    left = np.empty(count, np.int32)
    right = np.empty(count, np.int32)
    found = np.empty(count, np.float64)
    count = 0
    for t in range(len(texts)):
        for p in range(max(0, texts[t] + 1 - first) if same else 0, scores.shape[1]):
            if scores[t, p] >= at_least:
                left[count] = texts[t]
                right[count] = first + p
                found[count] = scores[t, p]
                count += 1
    return left, right, found


# -- searching by prefixes ------------------------------------------------------------------------


class _Search:
    """Finds the pairs of probes and of sets in an index of prefixes."""

    def __init__(
        self,
        formula: int,
        probes: _Sorted,
        index: _Sorted,
        same: bool,
        at_least: float,
        job: Job,
        keep: Keep,
    ) -> None:
        self._formula, self._at_least = formula, at_least
        self._probes, self._index, self._same = probes, index, same
        self._job, self._keep = job, keep
        indexed = _index_prefixes(formula, at_least, index.sizes, probes.sizes, same)
        self._starts, self._entries = _index(
            index.sets.offsets, index.sets.ids, index.sets.vocabulary, index.sizes, indexed
        )
        probed = _probe_prefixes(formula, at_least, probes.sizes, index.sizes, same)
        self._costs = _costs(
            probes.sets.offsets, probes.sets.ids, probes.sizes, probed, self._starts, same
        )
        self._empty = probes.empty, index.empty
        empties = len(probes.empty) * len(index.empty) if at_least <= 1 else 0
        self._empty_cost = 2 * empties
        self.cost = int(self._costs.sum()) + self._empty_cost

    def tiles(self) -> Iterator[Tile]:
        place = 0
        ends = np.cumsum(self._costs)
        first = 0
        while first < len(ends):
            before = int(ends[first - 1]) if first else 0
            last = max(first + 1, int(np.searchsorted(ends, before + TILE_COST, "right")))
            last = min(last, len(ends))
            cost = int(ends[last - 1]) - before
            yield cost, partial(self._probe, place, first, last)
            place += PLACES
            first = last
        rows, others = self._empty
        if self._empty_cost:
            step = max(1, HELD // len(others))
            for first in range(0, len(rows), step):
                part = rows[first : first + step]
                yield 2 * len(part) * len(others), partial(self._alike, place, first, part)
                place += PLACES

    def _probe(self, place: int, first: int, last: int) -> None:
        probes, index = self._probes, self._index
        size = len(index.rows) + HELD
        left, right = np.empty(size, np.int32), np.empty(size, np.int32)
        scores = np.empty(size)
        seen = np.full(len(index.rows), -1, np.int32)
        while first < last and not self._job.stop[0]:
            first, found = _probe(
                self._formula, self._at_least, self._same, first, last,
                probes.sets.offsets, probes.sets.ids, probes.sketches,
                index.sets.offsets, index.sets.ids, index.sketches, index.sizes, index.ends,
                self._starts, self._entries, seen, left, right, scores, self._job.stop,
            )  # fmt: skip
            if found and not self._job.stop[0]:
                self._keep(
                    place,
                    (probes.rows[left[:found]], index.rows[right[:found]], scores[:found].copy()),
                )
                place += 1

    def _alike(self, place: int, first: int, rows: NDArray[np.int32]) -> None:
        """Texts without tokens are alike."""
        others = self._index.empty
        left = np.repeat(rows, len(others))
        right = np.tile(others, len(rows))
        if self._same:
            later = np.tile(np.arange(len(others)), len(rows)) > np.repeat(
                np.arange(first, first + len(rows)), len(others)
            )
            left, right = left[later], right[later]
        self._keep(place, (left, right, np.ones(len(left))))


@kernel
def _sketches(offsets, ids):
    """64-bit sketches of sets: each token sets the bit it hashes to."""
    out = np.zeros(len(offsets) - 1, np.uint64)
    for i in range(len(out)):
        for k in range(offsets[i], offsets[i + 1]):
            out[i] |= np.uint64(1) << (np.uint64(np.uint64(ids[k]) * HASH_BASE) >> np.uint64(58))
    return out


@kernel
def _least_shared(formula, at_least, n, m):
    """Fewest shared tokens with which sets of ``n`` and ``m`` reach a similarity.

    ``min(n, m) + 1`` where none do. The score rises with what is shared.
    """
    low = 0
    high = min(n, m) + 1
    while low < high:
        middle = (low + high) // 2
        if set_score(formula, middle, n, m) >= at_least:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def _window(formula, at_least, n, sizes):
    """Which of rising ``sizes`` sets of ``n`` can have a partner of, from first to before last.

    At best the smaller set is contained, and that is worth the less the more the sizes differ.
    """
    first = 0
    high = 0
    while high < len(sizes) and sizes[high] <= n:
        high += 1
    last = high
    while first < high:
        middle = (first + high) // 2
        if set_score(formula, sizes[middle], n, sizes[middle]) >= at_least:
            high = middle
        else:
            first = middle + 1
    high = len(sizes)
    while last < high:
        middle = (last + high) // 2
        if set_score(formula, n, n, sizes[middle]) >= at_least:
            last = middle + 1
        else:
            high = middle
    return first, last


@kernel
def _index_prefixes(formula, at_least, sizes, probe_sizes, same):
    """Tokens of a set of each size to index: beyond them a partner shares too few."""
    out = np.zeros(len(sizes), np.int64)
    for g in range(len(sizes)):
        m = sizes[g]
        if same:  # probes are at least as large
            least = _least_shared(formula, at_least, m, m)
        else:
            first, last = _window(formula, at_least, m, probe_sizes)
            if first == last:
                continue
            # larger probes have to share no less
            least = _least_shared(formula, at_least, probe_sizes[first], m)
        out[g] = max(0, m - least + 1)
    return out


@kernel
def _probe_prefixes(formula, at_least, sizes, index_sizes, same):
    """Tokens of a set of each size to look up."""
    out = np.zeros(len(sizes), np.int64)
    for g in range(len(sizes)):
        n = sizes[g]
        first, last = _window(formula, at_least, n, index_sizes)
        if first < last:
            out[g] = max(0, n - _least_shared(formula, at_least, n, index_sizes[first]) + 1)
    return out


@kernel
def _index(offsets, ids, vocabulary, sizes, prefixes):
    """For each token the sets whose prefix has it, rising, as CSR.

    An entry is the set and how many tokens it has from that one on.
    """
    starts = np.zeros(vocabulary + 1, np.int64)
    at = starts
    entries = np.empty((0, 2), np.int32)
    for write in range(2):
        g = 0
        for y in range(len(offsets) - 1):
            begin = offsets[y]
            m = offsets[y + 1] - begin
            while sizes[g] < m:
                g += 1
            for j in range(prefixes[g]):
                w = np.uint64(ids[begin + j])
                if write:
                    entries[at[w], 0] = y
                    entries[at[w], 1] = m - j
                    at[w] += 1
                else:
                    starts[w + np.uint64(1)] += 1
        if not write:
            for w in range(vocabulary):
                starts[w + 1] += starts[w]
            at = starts.copy()
            entries = np.empty((starts[vocabulary], 2), np.int32)
    return starts, entries


@kernel
def _costs(offsets, ids, sizes, prefixes, starts, same):
    """Estimated nanoseconds of each probe."""
    out = np.empty(len(offsets) - 1, np.int64)
    g = 0
    for x in range(len(out)):
        n = offsets[x + 1] - offsets[x]
        while sizes[g] < n:
            g += 1
        entries = 0
        for k in range(offsets[x], offsets[x] + prefixes[g]):
            entries += starts[ids[k] + 1] - starts[ids[k]]
        if same:
            entries //= 2
        out[x] = 100 + 20 * prefixes[g] + np.int64(ENTRY_COST * entries)
    return out


@inlined
def _shared(a, i, n, b, j, m, shared, least):
    """Tokens that two rising rows share, or fewer than ``least`` if they share fewer.

    ``shared`` of them come before places ``i`` and ``j``.
    """
    while i < n and j < m and shared + min(n - i, m - j) >= least:
        x = a[i]
        y = b[j]
        shared += x == y
        i += x <= y
        j += y <= x
    return shared


@kernel
def _probe(
    formula,
    at_least,
    same,
    first,
    last,
    offsets,
    ids,
    sketches,
    index_offsets,
    index_ids,
    index_sketches,
    sizes,
    ends,
    starts,
    entries,
    seen,
    left,
    right,
    scores,
    stop,
):
    """Pairs of the probes from ``first`` to ``last``; in one column, with sets before the probe.

    Gives the first probe that is not done, as there may be too little room left, and the number of
    pairs.
    """
    least = np.empty(len(sizes), np.int64)  # for the size of the probe and each of the index
    count = 0
    n = 0
    low = high = group = prefix = 0
    for x in range(first, last):
        if stop[0]:
            return x, count
        if count + len(seen) > len(left):
            return x, count
        begin = offsets[x]
        if offsets[x + 1] - begin != n:
            n = offsets[x + 1] - begin
            group, beyond = _window(formula, at_least, n, sizes)
            prefix = 0
            if group < beyond:
                low = ends[group - 1] if group > 0 else 0
                high = ends[beyond - 1]
                for g in range(group, beyond):
                    least[g] = _least_shared(formula, at_least, n, sizes[g])
                prefix = max(0, n - least[group] + 1)
        limit = x if same else high
        for i in range(prefix):
            w = ids[begin + i]
            from_low = starts[w]
            end = starts[w + 1]
            while from_low < end:
                middle = (from_low + end) // 2
                if entries[middle, 0] < low:
                    from_low = middle + 1
                else:
                    end = middle
            g = group
            for e in range(np.uint64(from_low), np.uint64(starts[w + 1])):
                y = np.int64(entries[e, 0])
                if y >= limit:
                    break
                while ends[g] <= y:
                    g += 1
                rest = np.int64(entries[e, 1])
                if min(n - i, rest) < least[g] or seen[y] == x:
                    continue
                seen[y] = x
                m = sizes[g]
                if bit_count(sketches[x] ^ index_sketches[y]) > n + m - 2 * least[g]:
                    continue
                shared = _shared(
                    ids, begin + i + 1, begin + n, index_ids, index_offsets[y] + m - rest + 1,
                    index_offsets[y] + m, 1, least[g],
                )  # fmt: skip
                if shared >= least[g]:
                    left[count] = x
                    right[count] = y
                    scores[count] = set_score(formula, shared, n, m)
                    count += 1
    return last, count
