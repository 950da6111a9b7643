"""What a metric's record says, and what calls ask of it.

Metrics are of two kinds. A :class:`CountingMetric` counts edits, so calls compare whole numbers and
turn them into similarities at the end; a :class:`ScoringMetric` computes the similarity itself, and
its distance is what that lacks to 1.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from resemblance.strings import Strings
from resemblance.tiles import Job, Tile

ADDED, SUMMED, LONGER = 0, 1, 2
"""How what a kernel counts becomes a distance: text + count, pattern + text - 2 count (which is
measured against the sum of the lengths), longer - count."""


@dataclass(frozen=True)
class Metric:
    """A way of comparing two strings: a name, parameters, and a similarity from 0 to 1."""

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Named sets of parameters, reached as ``name:variant``."""
    summary: ClassVar[str]
    unit: ClassVar[str]
    symmetric: ClassVar[bool] = True
    source: ClassVar[str]

    @property
    def equal_lengths(self) -> bool:
        """Whether strings of different lengths have no distance at all."""
        return False

    @property
    def label(self) -> str:
        """The name, with the parameters that are not the default ones."""
        changed = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in dataclasses.fields(self)
            if getattr(self, field.name) != field.default
        ]
        return f"{self.name}({', '.join(changed)})" if changed else self.name


@dataclass(frozen=True)
class CountingMetric(Metric):
    """A metric whose distance counts edits.

    Similarity is ``(size - distance) / size``, where ``size`` is the number of characters of the
    longer string, or of both together (`summed`); two empty strings have similarity 1. The quotient
    is rounded once, so a threshold written as a decimal number meets the score it names exactly.
    """

    measure: ClassVar[int]
    """One of `ADDED`, `SUMMED` and `LONGER`."""

    reach: ClassVar[int] = 1
    """The Levenshtein distance of a pair is at most this many times its distance here."""

    @property
    def summed(self) -> bool:
        """Whether distances are measured against the sum of the lengths, not the longer one."""
        return self.measure == SUMMED

    def pair_cost(self, left: Any, right: Any) -> Any:
        """Estimated nanoseconds of the pairs kernel for a pair of these lengths."""
        return 20 + 2 * left * (1 + right // 64)

    def sizes(self, left: Any, right: Any) -> Any:
        """Sizes of pairs of these lengths."""
        return left + right if self.summed else np.maximum(left, right)

    def operand(self, strings: Strings) -> Strings:
        """The column that kernels compare, row by row as long as the one it is made from."""
        return strings

    @property
    def lane_kernels(self) -> Mapping[int, Any]:
        """Lane kernels by bits of a lane (8, 16, 32, 64); key 0: any number of 64-bit words.

        Empty where all pairs are left to the pairs kernel.
        """
        raise NotImplementedError

    @property
    def pairs_kernel(self) -> Any:
        """Kernel for lists of pairs of rows: distances, or "more than the limit"."""
        raise NotImplementedError


class Scorer(Protocol):
    """Scores rows of one column against stretches of another, a tile at a time.

    Threads share it; a program is made under the job's lock or in the thread that uses it.

    Attributes
    ----------
    columns : ndarray of int64
        Rows of the patterns, in the order in which stretches hold them.
    """

    columns: NDArray[np.int64]

    def parts(self, rows: NDArray[np.int64], most: int) -> list[NDArray[np.int64]]:
        """Cut rows of the texts into parts, each of at most ``most`` rows."""

    def program(self, part: NDArray[np.int64]) -> Any:
        """What all stretches of a part share."""

    def stretches(
        self, part: NDArray[np.int64], low: int, high: int
    ) -> Iterator[tuple[int, int, int]]:
        """Stretches ``columns[first:last]`` that hold all pattern rows from ``low`` up to ``high``.

        Each comes with its estimated cost in nanoseconds. They may hold other rows too.
        """

    def scores(self, program: Any, first: int, last: int, job: Job) -> NDArray[np.float64]:
        """Similarities, shape (rows of the part, last - first), C-contiguous.

        They may lie in a buffer of the thread's, which its next call fills anew.
        """


Near = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]
"""Rows of the left column, rows of the right column, similarities."""

Keep = Callable[[int, Near], None]
"""Takes pairs; the number, different for each call, fixes their place among all."""


@dataclass(frozen=True)
class ScoringMetric(Metric):
    """A metric that computes a similarity in float64; its distance is ``1 - similarity``."""

    unit: ClassVar[str] = "1 - similarity"

    def scorer(self, texts: Strings, patterns: Strings) -> Scorer:
        """Scores of all texts and patterns (nulls count as empty); one column may be both."""
        raise NotImplementedError

    def pair_scores(
        self,
        left: Strings,
        left_rows: NDArray[Any],
        right: Strings,
        right_rows: NDArray[Any],
        out: NDArray[np.float64],
        job: Job,
    ) -> None:
        """Score given pairs of rows, in this thread.

        Parameters
        ----------
        left, right : Strings
            Columns with characters of the same type; nulls count as empty.
        left_rows, right_rows : ndarray of integers, shape (n,)
        out : ndarray of float64, shape (n,)
            Gets the similarities.
        job : Job
            Whose stop flag to heed.
        """
        raise NotImplementedError

    def near(
        self, left: Strings, right: Strings | None, at_least: float, job: Job, keep: Keep
    ) -> tuple[Iterator[Tile], int]:
        """Tiles (and their cost) that find all pairs of at least a similarity.

        Parameters
        ----------
        left, right : Strings
            Distinct strings without nulls, shortest first, with characters of the same type.
            ``right=None``: pairs of rows of ``left``, each given once, in either order.
        at_least : float
            The very comparison with this number decides; 0 lets all pairs pass.
        job : Job
            Whose stop flag to heed.
        keep : Keep
            Called from the job's threads with the pairs of each batch.

        Returns
        -------
        iterator of tiles, and their total cost
        """
        raise NotImplementedError


def check_flags(metric: Metric, *names: str) -> None:
    """Refuse parameters that are not True or False."""
    for name in names:
        value = getattr(metric, name)
        if not isinstance(value, bool | np.bool_):
            raise ValueError(f"{name} must be True or False, got {value!r}")


AnyMetric = CountingMetric | ScoringMetric
"""Every metric is of one of these kinds."""


def similarity(distance: NDArray[Any], size: NDArray[Any]) -> NDArray[np.float64]:
    """Similarity of distances that can be as large as ``size``."""
    size = np.asarray(size, np.float64)
    safe = np.where(size == 0, 1.0, size)
    return np.where(size == 0, 1.0, (safe - distance) / safe)
