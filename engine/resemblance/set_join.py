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

import abc
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from resemblance.jit import inlined, kernel
from resemblance.lanes import by_cost
from resemblance.metrics.base import Keep
from resemblance.metrics.sets import STRETCH, Inverted, count_shared, lower_bound, set_score
from resemblance.simd import bit_count
from resemblance.strings import HASH_BASE, by_length
from resemblance.tiles import PLACES, Job, Tile
from resemblance.tokens import TokenSets

HELD = 1 << 18
"""Pairs that a tile gathers before it gives them."""

ENTRY_COST = 12.0
"""Nanoseconds of an entry of a token's list, with the share of candidates that are counted."""

PAIR_COST = 0.1
"""Nanoseconds of a pair where all are counted, apart from the tokens."""

PART = 64
"""Probes that are counted together, for each stretch of the index."""


class _Sorted(NamedTuple):
    """Token sets by size, then by row.

    A text without tokens has the token "nothing" instead: it shares that with its like and nothing
    with others, which makes the scores 1 and 0, as they are.
    """

    sets: TokenSets
    rows: NDArray[np.int32]
    """Row of the column that each set is of."""
    sizes: NDArray[np.int64]
    """The different sizes."""
    ends: NDArray[np.int64]
    """Where the sets of each size end."""


def _by_size(sets: TokenSets) -> _Sorted:
    size = np.maximum(sets.sizes, 1)
    rows = by_length(size)
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(size[rows], out=offsets[1:])
    ids = _taken(sets.offsets, sets.ids, rows, offsets, sets.vocabulary)
    different, counts = np.unique(size, return_counts=True)
    return _Sorted(
        TokenSets(offsets, ids, sets.vocabulary + 1),
        rows.astype(np.int32),
        different,
        np.cumsum(counts),
    )


@kernel
def _taken(offsets, ids, rows, ends, nothing):
    """Tokens of the given rows, each of which is to end where ``ends`` says."""
    out = np.empty(ends[-1], np.int32)
    for k in range(len(rows)):
        out[ends[k]] = nothing  # overwritten where the row has a token
        begin = offsets[rows[k]]
        for t in range(offsets[rows[k] + 1] - begin):
            out[ends[k] + t] = ids[begin + t]
    return out


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
    probes = _by_size(left)
    index = probes if same else _by_size(right)
    ways: list[_Way] = [_Count(formula, probes, index, same, at_least, job, keep)]
    if at_least > 0:  # else pairs need not share anything
        ways.append(_Search(formula, probes, index, same, at_least, job, keep))
    best = min(ways, key=lambda way: way.cost)
    return best.tiles(), best.cost


class _Way(abc.ABC):
    """A way to find the pairs of probes and index; in one column, with sets before the probe.

    Work comes in units, some for each part of the probes. The kernel goes through units from one to
    another, and stops before one for whose pairs there may be too little room.
    """

    units: int = 1
    """Units of a part."""

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
        self.formula, self.at_least, self.same = formula, at_least, same
        self.probes, self.index = probes, index
        self.job, self.keep = job, keep
        self.local = threading.local()
        self.costs = self.prepare()
        self.cost = int(self.costs.sum())

    @abc.abstractmethod
    def prepare(self) -> NDArray[np.int64]:
        """Make what all tiles share; gives the estimated nanoseconds of each part."""

    @abc.abstractmethod
    def most(self) -> int:
        """Most pairs of a unit."""

    @abc.abstractmethod
    def scratch(self) -> tuple[NDArray[Any], ...]:
        """Arrays for one tile's kernel to work in."""

    @abc.abstractmethod
    def find(self, first: int, last: int, *arrays: NDArray[Any]) -> tuple[int, int]:
        """Run the kernel; gives the first unit not done and the number of pairs."""

    def tiles(self) -> Iterator[Tile]:
        """Stretches of parts, each of about a tile's cost."""
        for cost, parts in by_cost(np.arange(len(self.costs)), self.costs):
            yield cost, partial(self._tile, int(parts[0]), int(parts[-1]) + 1)

    def _tile(self, first: int, last: int) -> None:
        place = first * PLACES
        size = self.most() + HELD
        left, right, scores = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size)
        scratch = self.scratch()
        unit, end = first * self.units, last * self.units
        while unit < end:
            unit, found = self.find(unit, end, *scratch, left, right, scores)
            if self.job.stop[0]:
                return
            if found:
                rows, others = self.probes.rows[left[:found]], self.index.rows[right[:found]]
                self.keep(place, (rows, others, scores[:found].copy()))
                place += 1


# -- bounds ---------------------------------------------------------------------------------------


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
    high = last = lower_bound(sizes, 0, len(sizes), n + 1)
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


# -- searching by prefixes ------------------------------------------------------------------------


class _Search(_Way):
    """Looks up the first tokens of each probe in an index of first tokens; a part is a probe."""

    def prepare(self) -> NDArray[np.int64]:
        probes, index = self.probes, self.index
        self.own = _sketches(probes.sets.offsets, probes.sets.ids)
        self.sketches = self.own if self.same else _sketches(index.sets.offsets, index.sets.ids)
        bounds = self.formula, self.at_least
        indexed = _index_prefixes(*bounds, index.sizes, probes.sizes, self.same)
        probed = _probe_prefixes(*bounds, probes.sizes, index.sizes)
        self.starts, self.entries = _index(
            index.sets.offsets, index.sets.ids, index.sets.vocabulary, index.sizes, indexed
        )
        return _search_costs(
            probes.sets.offsets, probes.sets.ids, probes.sizes, probed, self.starts, self.same
        )

    def most(self) -> int:
        return len(self.index.rows)

    def scratch(self) -> tuple[NDArray[Any], ...]:
        # probes are told apart by their numbers, so what a thread's tile before left is no harm
        if not hasattr(self.local, "seen"):
            self.local.seen = np.full(len(self.index.rows), -1, np.int32)
        return (self.local.seen,)

    def find(self, first: int, last: int, *arrays: NDArray[Any]) -> tuple[int, int]:
        probes, index = self.probes, self.index
        return _search(
            self.formula, self.at_least, self.same, first, last,
            probes.sets.offsets, probes.sets.ids, self.own,
            index.sets.offsets, index.sets.ids, self.sketches, index.sizes, index.ends,
            self.starts, self.entries, self.job.stop, *arrays,
        )  # fmt: skip


@kernel
def _sketches(offsets, ids):
    """64-bit sketches of sets: each token sets the bit it hashes to."""
    out = np.zeros(len(offsets) - 1, np.uint64)
    for i in range(len(out)):
        for k in range(offsets[i], offsets[i + 1]):
            out[i] |= np.uint64(1) << (np.uint64(np.uint64(ids[k]) * HASH_BASE) >> np.uint64(58))
    return out


@kernel
def _index_prefixes(formula, at_least, sizes, probe_sizes, same):
    """Tokens of a set of each size to index: beyond them a partner shares too few."""
    out = np.zeros(len(sizes), np.int64)
    for g in range(len(sizes)):
        m = sizes[g]
        smallest = m
        if not same:  # else probes are at least as large
            first, last = _window(formula, at_least, m, probe_sizes)
            if first == last:
                continue
            smallest = probe_sizes[first]
        # larger probes have to share no less
        out[g] = max(0, m - _least_shared(formula, at_least, smallest, m) + 1)
    return out


@kernel
def _probe_prefixes(formula, at_least, sizes, index_sizes):
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
    g = 0
    for y in range(len(offsets) - 1):
        while sizes[g] < offsets[y + 1] - offsets[y]:
            g += 1
        for k in range(offsets[y], offsets[y] + prefixes[g]):
            starts[ids[k] + 1] += 1
    for w in range(vocabulary):
        starts[w + 1] += starts[w]
    at = starts.copy()
    entries = np.empty((starts[vocabulary], 2), np.int32)
    g = 0
    for y in range(len(offsets) - 1):
        while sizes[g] < offsets[y + 1] - offsets[y]:
            g += 1
        for k in range(offsets[y], offsets[y] + prefixes[g]):
            w = ids[k]
            entries[at[w], 0] = y
            entries[at[w], 1] = offsets[y + 1] - k
            at[w] += 1
    return starts, entries


@kernel
def _search_costs(offsets, ids, sizes, prefixes, starts, same):
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
def _search(
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
    stop,
    seen,
    left,
    right,
    scores,
):
    """Pairs of the probes from ``first`` to ``last``; ``seen[y]``: the last probe that met it."""
    least = np.empty(len(sizes), np.int64)  # for the size of the probe and each of the index
    count = 0
    n = 0
    low = high = group = prefix = 0
    for x in range(first, last):
        if stop[0] or count + len(seen) > len(left):
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


# -- counting for all pairs -----------------------------------------------------------------------


class _Count(_Way):
    """Counts what each probe shares with all sets of fitting size; a unit is a part's stretch."""

    def prepare(self) -> NDArray[np.int64]:
        probes, index = self.probes, self.index
        self.units: int = -(-len(index.rows) // STRETCH)
        self.inverted = Inverted(index.sets, int(probes.sizes.max(initial=0)))
        per_pair = PAIR_COST + self.inverted.costs(probes.sets)
        partners = _partners(
            self.formula, self.at_least, self.same, probes.sets.offsets, index.sizes, index.ends
        )
        costs = (20.0 * self.units + partners * per_pair).astype(np.int64)
        return np.add.reduceat(costs, np.arange(0, len(costs), PART)) if len(costs) else costs

    def most(self) -> int:
        return PART * STRETCH

    def scratch(self) -> tuple[NDArray[Any], ...]:
        counter = self.inverted.counter
        return np.empty(STRETCH, counter), np.empty(STRETCH, counter)

    def tiles(self) -> Iterator[Tile]:
        _ = self.inverted.arrays  # made here, once, not on threads
        return super().tiles()

    def find(self, first: int, last: int, *arrays: NDArray[Any]) -> tuple[int, int]:
        probes, index = self.probes, self.index
        return _count(
            self.formula, self.at_least, self.same, first, last, self.units,
            probes.sets.offsets, probes.sets.ids, index.sizes, index.ends,
            *self.inverted.arrays, self.job.stop, *arrays,
        )  # fmt: skip


@kernel
def _partners(formula, at_least, same, offsets, sizes, ends):
    """How many sets each probe is compared with."""
    out = np.zeros(len(offsets) - 1, np.int64)
    n = low = high = 0
    for x in range(len(out)):
        if offsets[x + 1] - offsets[x] != n:
            n = offsets[x + 1] - offsets[x]
            low, high = _range(formula, at_least, n, sizes, ends)
        out[x] = max(0, (min(high, x) if same else high) - low)
    return out


@kernel
def _range(formula, at_least, n, sizes, ends):
    """The sets of fitting size for one of ``n`` tokens."""
    first, last = _window(formula, at_least, n, sizes)
    if first == last:
        return 0, 0
    return ends[first - 1] if first > 0 else 0, ends[last - 1]


@kernel
def _count(
    formula,
    at_least,
    same,
    first,
    last,
    units,
    offsets,
    ids,
    sizes,
    ends,
    starts,
    rows,
    place,
    dense,
    stop,
    counts,
    least,
    left,
    right,
    scores,
):
    """Pairs of the units from ``first`` to ``last``; ``least``: what each set has to share."""
    found = 0
    stretch = len(counts)
    for unit in range(first, last):
        if stop[0] or found + PART * stretch > len(left):
            return unit, found
        part = unit // units * PART
        begin = unit % units * stretch
        n = low = high = 0
        for x in range(part, min(part + PART, len(offsets) - 1)):
            if offsets[x + 1] - offsets[x] != n:
                n = offsets[x + 1] - offsets[x]
                low, high = _range(formula, at_least, n, sizes, ends)
                low = max(low, begin)
                high = min(high, begin + stretch)
                g = lower_bound(ends, 0, len(ends), low + 1)
                y = low
                while y < high:
                    need = _least_shared(formula, at_least, n, sizes[g])
                    while y < min(high, ends[g]):
                        least[y - low] = need
                        y += 1
                    g += 1
            size = (min(high, x) if same else high) - low
            if size <= 0:
                continue
            count_shared(
                ids, offsets[x], offsets[x + 1], starts, rows, place, dense, low, low + size,
                counts,
            )  # fmt: skip
            for block in range(0, size, 64):
                block_end = min(block + 64, size)
                hits = np.uint8(0)
                for p in range(np.uint64(block), np.uint64(block_end)):
                    hits |= np.uint8(counts[p] >= least[p])
                if hits == 0:
                    continue
                for p in range(block, block_end):
                    if counts[p] >= least[p]:
                        y = low + p
                        left[found] = x
                        right[found] = y
                        m = sizes[lower_bound(ends, 0, len(ends), y + 1)]
                        scores[found] = set_score(formula, counts[p], n, m)
                        found += 1
    return last, found
