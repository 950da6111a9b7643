"""Distances by places: Hamming, and common beginnings and endings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from resemblance.jit import inlined
from resemblance.metrics.automata import LONGER, automaton
from resemblance.metrics.base import CountingMetric
from resemblance.simd import double, double_in, popcount, splat
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
        return PLACES.lanes

    @property
    def pairs_kernel(self) -> Any:
        return PLACES.pairs


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
        return BEGINNING.pairs


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
