"""What a metric's record says, and how similarity follows from distance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Metric:
    """A metric on strings whose distance counts edits and whose similarity is 0..1.

    Similarity is ``(longer - distance) / longer``, ``longer`` being the number of characters of
    the longer string; two empty strings have similarity 1. The quotient is rounded once, so a
    threshold written as a decimal number meets the score it names exactly.
    """

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    summary: ClassVar[str]
    unit: ClassVar[str]
    symmetric: ClassVar[bool]
    source: ClassVar[str]

    @property
    def lane_kernels(self) -> Mapping[int, Any]:
        """Lane kernels by bits of a lane (8, 16, 32, 64); key 0: any number of 64-bit words."""
        raise NotImplementedError

    @property
    def pairs_kernel(self) -> Any:
        """Kernel for lists of pairs of rows: distances, or "more than the limit"."""
        raise NotImplementedError


def similarity(distance: NDArray[Any], longer: NDArray[Any]) -> NDArray[np.float64]:
    """Similarity of distances between strings the longer of which has ``longer`` characters."""
    longer = np.asarray(longer, np.float64)
    safe = np.where(longer == 0, 1.0, longer)
    return np.where(longer == 0, 1.0, (safe - distance) / safe)
