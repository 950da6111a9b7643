"""Distances by the longest common subsequence: Indel and LCSseq.

The longest common subsequence is counted by H. Hyyrö, "Bit-parallel LCS-length computation
revisited", 15th Australasian Workshop on Combinatorial Algorithms, 2004: a 0 in the state for each
place of the pattern at which a row of the table rises.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from resemblance.jit import inlined
from resemblance.metrics.automata import automaton
from resemblance.metrics.base import LONGER, SUMMED, CountingMetric
from resemblance.simd import popcount, splat, top_bit


@dataclass(frozen=True)
class Indel(CountingMetric):
    """Indel distance: fewest insertions and deletions of one character.

    ``d = len(a) + len(b) - 2 * lcs(a, b)``, from 0 to the sum of the lengths, in code points.
    Similarity is ``(len(a) + len(b) - d) / (len(a) + len(b))``.

    Notes
    -----
    S. B. Needleman and C. D. Wunsch, J. Mol. Biol. 48(3), 1970. Its similarity is also known as
    ``ratio``; that of ``difflib`` is another.

    Examples
    --------
    >>> import resemblance as rs
    >>> rs.pairwise(["lewenstein"], ["levenshtein"], rs.Indel(), score="distance")
    array([3], dtype=uint8)
    """

    name: ClassVar[str] = "indel"
    aliases: ClassVar[tuple[str, ...]] = ("ratio",)
    summary: ClassVar[str] = "insertions and deletions of one character"
    unit: ClassVar[str] = "edits"
    source: ClassVar[str] = "Needleman and Wunsch 1970"
    measure: ClassVar[int] = SUMMED

    @property
    def lane_kernels(self) -> Mapping[int, Any]:
        return SUBSEQUENCE.lanes

    @property
    def pairs_kernel(self) -> Any:
        return SUBSEQUENCE.pairs


@dataclass(frozen=True)
class LCSseq(CountingMetric):
    """Characters of the longer string that its longest common subsequence with the other lacks.

    ``d = max(len(a), len(b)) - lcs(a, b)``, from 0 to the longer length, in code points.
    Similarity is ``lcs(a, b) / max(len(a), len(b))``.

    Notes
    -----
    D. S. Hirschberg, Comm. ACM 18(6), 1975.

    Examples
    --------
    >>> import resemblance as rs
    >>> rs.pairwise(["abcde"], ["xaxcxex"], rs.LCSseq(), score="distance")
    array([4], dtype=uint8)
    """

    name: ClassVar[str] = "lcsseq"
    aliases: ClassVar[tuple[str, ...]] = ("lcs",)
    summary: ClassVar[str] = "longer length less the longest common subsequence"
    unit: ClassVar[str] = "characters"
    source: ClassVar[str] = "Hirschberg 1975"
    reach: ClassVar[int] = 2
    measure: ClassVar[int] = LONGER

    @property
    def lane_kernels(self) -> Mapping[int, Any]:
        return SUBSEQUENCE.lanes

    @property
    def pairs_kernel(self) -> Any:
        return SUBSEQUENCE.pairs


@inlined
def _start(mask, first):
    return (~splat(mask, 0),)


@inlined
def _step(pm, state, given, first):
    (rises,) = state
    (given_in,) = given
    both = rises & pm
    total = rises + both
    if not first:
        total = total + top_bit(given_in)
    # the sum's carry leaves at the top
    return (total | (rises & ~pm),), (both | (rises & ~total),)


@inlined
def _count(state, mask):
    (rises,) = state
    return popcount(~rises & mask)


SUBSEQUENCE = automaton(1, 1, _start, _step, _count, None)
