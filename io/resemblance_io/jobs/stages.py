"""The stages of a job: how long each takes, and a bar that shows how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_ROWS = "{desc}: {n:,} rows, {elapsed}"
_SHARE = "{desc}: {percentage:3.0f}% |{bar}| {elapsed}<{remaining}"

Report = Callable[[int, int], None]
"""Takes what is done of a stage and what there is to do; 0 where that is not known."""


class Stages:
    """Times the stages of one job.

    Parameters
    ----------
    progress : bool
        Show a bar while a stage runs; only on a terminal and in notebooks.

    Attributes
    ----------
    seconds : dict of str to float
        Time taken by each finished stage.
    """

    def __init__(self, progress: bool = False) -> None:
        self.seconds: dict[str, float] = {}
        self._progress = progress

    @contextmanager
    def stage(self, name: str, *, counts_rows: bool = False) -> Iterator[Report]:
        """Run a stage, which calls what it is given with (done, total).

        Parameters
        ----------
        name : str
        counts_rows : bool
            Whether it is rows that are done, which say something also without a total.
        """
        begin = time.perf_counter()
        if self._progress:
            from tqdm.auto import tqdm

            bar_format = _ROWS if counts_rows else _SHARE
            # disable=None: nothing where the output is no terminal
            with tqdm(desc=name, total=1, disable=None, leave=False, bar_format=bar_format) as bar:

                def report(done: int, total: int) -> None:
                    if total and total != bar.total:
                        bar.total, bar.bar_format = total, _SHARE
                    bar.update(done - bar.n)

                yield report
        else:
            yield lambda done, total: None
        self.seconds[name] = time.perf_counter() - begin

    @property
    def total(self) -> float:
        """Seconds of all stages."""
        return sum(self.seconds.values())

    def __str__(self) -> str:
        return describe(self.seconds)


def describe(seconds: dict[str, float]) -> str:
    """Total and parts, for people: ``3.1 s (reading 0.4, comparing 2.1, writing 0.6)``."""
    parts = ", ".join(f"{name} {value:.1f}" for name, value in seconds.items())
    return f"{sum(seconds.values()):.1f} s ({parts})"
