"""resemblance: how alike texts and images are, in bulk.

The public names are loaded when first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from resemblance._version import __version__

if TYPE_CHECKING:
    from resemblance.cluster import cluster
    from resemblance.dedup import Duplicates, dedup
    from resemblance.join import Pairs, iter_join, join
    from resemblance.matrix import cdist, pairwise, pdist
    from resemblance.metrics.edit import OSA, DamerauLevenshtein, Levenshtein
    from resemblance.metrics.hamming import Hamming, Postfix, Prefix
    from resemblance.metrics.jaro import Jaro, JaroWinkler
    from resemblance.metrics.lcs import Indel, LCSseq
    from resemblance.metrics.sets import Cosine, Dice, Jaccard, Overlap
    from resemblance.neighbors import Neighbors, top_k
    from resemblance.normalize import Normalize
    from resemblance.strings import Strings
    from resemblance.tokens import Chars, TokenSets, Words

_HOMES = {
    "Chars": "tokens",
    "Cosine": "metrics.sets",
    "DamerauLevenshtein": "metrics.edit",
    "Dice": "metrics.sets",
    "Duplicates": "dedup",
    "Hamming": "metrics.hamming",
    "Indel": "metrics.lcs",
    "Jaccard": "metrics.sets",
    "Jaro": "metrics.jaro",
    "JaroWinkler": "metrics.jaro",
    "LCSseq": "metrics.lcs",
    "Levenshtein": "metrics.edit",
    "Neighbors": "neighbors",
    "Normalize": "normalize",
    "OSA": "metrics.edit",
    "Overlap": "metrics.sets",
    "Pairs": "join",
    "Postfix": "metrics.hamming",
    "Prefix": "metrics.hamming",
    "Strings": "strings",
    "TokenSets": "tokens",
    "Words": "tokens",
    "cdist": "matrix",
    "cluster": "cluster",
    "dedup": "dedup",
    "iter_join": "join",
    "join": "join",
    "pairwise": "matrix",
    "pdist": "matrix",
    "top_k": "neighbors",
}
"""Module of each public name."""

_MODULES = ("io",)
"""Public modules reached as attributes."""

__all__ = [
    "OSA",
    "Chars",
    "Cosine",
    "DamerauLevenshtein",
    "Dice",
    "Duplicates",
    "Hamming",
    "Indel",
    "Jaccard",
    "Jaro",
    "JaroWinkler",
    "LCSseq",
    "Levenshtein",
    "Neighbors",
    "Normalize",
    "Overlap",
    "Pairs",
    "Postfix",
    "Prefix",
    "Strings",
    "TokenSets",
    "Words",
    "__version__",
    "cdist",
    "cluster",
    "dedup",
    "iter_join",
    "join",
    "pairwise",
    "pdist",
    "top_k",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _Package(ModuleType):
    """The package, on which ``join`` is the function and never the module it lives in."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _HOMES or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})
