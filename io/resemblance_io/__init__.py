"""Everything that touches the outside world: files, Arrow, whole runs, the command line.

Users reach it as ``resemblance.io``. The names are loaded when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from resemblance_io.errors import InputError
    from resemblance_io.jobs.dedup import dedup
    from resemblance_io.jobs.join import join
    from resemblance_io.jobs.sample import sample
    from resemblance_io.jobs.score import score
    from resemblance_io.jobs.top_k import top_k
    from resemblance_io.sources import scan

_HOMES = {
    "InputError": "errors",
    "dedup": "jobs.dedup",
    "join": "jobs.join",
    "sample": "jobs.sample",
    "scan": "sources",
    "score": "jobs.score",
    "top_k": "jobs.top_k",
}
"""Module of each public name."""

__all__ = ["InputError", "dedup", "join", "sample", "scan", "score", "top_k"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
