"""Runs a job's tiles on threads, and knows what the machine has to run them with.

A tile is a function of no arguments that calls kernels; kernels release the interpreter's lock.
Tiles write to places of their own, so the result is the same for every number of threads.
Threads live for one job: nothing is left behind that a fork could break.
"""

from __future__ import annotations

import logging
import os
import pathlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

logger = logging.getLogger("resemblance")

Progress = bool | Callable[[int, int], None]
"""True for a bar, or a function of (done, total) work units."""

Tile = tuple[int, Callable[[], None]]
"""Estimated cost in nanoseconds, and the work."""

TILE_COST = 4_000_000
"""Aim of a tile: 4 ms, long beside the cost of handing it out, short beside a job."""

PLACES = 1 << 32
"""Batches of pairs that a tile may give, in the numbering that fixes their order."""

PATIENCE = 1.5
"""Seconds that an interrupted job waits for its threads."""

INLINE_COST = 20_000_000
"""Jobs estimated below 20 ms run in the calling thread: there is nothing to interrupt."""


class Job:
    """The threads, the progress and the stop flag of one job.

    Parameters
    ----------
    threads : int, optional
        None or 0: all CPUs this process may use. More than those are not started.
    progress : bool or callable
        See :data:`Progress`.

    Attributes
    ----------
    stop : ndarray of uint8, shape (1,)
        Long kernels look at it and return early once it is set; their results are then void.
    """

    def __init__(self, threads: int | None = None, progress: Progress = False) -> None:
        self.threads = usable_threads(threads)
        self.progress = progress
        self.stop: NDArray[np.uint8] = np.zeros(1, np.uint8)

    def run(self, tiles: Iterable[Tile], total: int) -> None:
        """Run all tiles.

        Parameters
        ----------
        tiles : iterable of (cost, function)
            Drawn one by one as threads become free, from one thread at a time.
        total : int
            Sum of the costs.

        Raises
        ------
        KeyboardInterrupt
            After Ctrl-C, as soon as the tiles under way have noticed the stop flag.
        """
        with _reporter(self.progress, total) as report:
            if total < INLINE_COST:
                for cost, work in tiles:
                    work()
                    report(cost)
            else:
                self._run_on_threads(iter(tiles), report)

    def _run_on_threads(self, tiles: Iterator[Tile], report: Callable[[int], None]) -> None:
        lock = threading.Lock()
        failures: list[BaseException] = []
        # Not Thread.join: interrupted, that takes a running thread for one that has ended.
        ended = [threading.Event() for _ in range(self.threads)]

        def worker(place: int) -> None:
            try:
                loop()
            finally:
                ended[place].set()

        def loop() -> None:
            while not self.stop[0]:
                try:
                    with lock:
                        cost, work = next(tiles)
                    work()
                    with lock:
                        report(cost)
                except StopIteration:
                    return
                except BaseException as error:  # re-raised in the calling thread
                    failures.append(error)
                    self.stop[0] = 1

        pool = [
            threading.Thread(target=worker, args=(i,), name=f"resemblance-{i}", daemon=True)
            for i in range(self.threads)
        ]
        for thread in pool:
            thread.start()
        try:
            for event in ended:
                while not event.wait(0.1):  # short, so that Ctrl-C is seen on every system
                    pass
        except BaseException:
            self.stop[0] = 1
            # A thread that is still compiling sees the flag when that is done, and ends by itself.
            deadline = time.monotonic() + PATIENCE
            for event in ended:
                event.wait(max(0.0, deadline - time.monotonic()))
            raise
        for thread in pool:
            thread.join()
        if failures:
            raise failures[0]


class _reporter:
    """Turns finished costs into calls of a user's function or a bar; silent by default."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress = progress
        self._total = max(total, 1)
        self._done = 0
        self._bar: Any = None

    def __enter__(self) -> Callable[[int], None]:
        if self._progress is True:
            from tqdm.auto import tqdm

            self._bar = tqdm(
                total=100,
                disable=None,
                leave=False,
                bar_format="{l_bar}{bar}| {elapsed}<{remaining}",
            )
        return self._report

    def _report(self, cost: int) -> None:
        self._done = min(self._done + cost, self._total)
        if self._bar is not None:
            self._bar.update(int(100 * self._done / self._total) - self._bar.n)
        elif callable(self._progress):
            self._progress(self._done, self._total)

    def __exit__(self, *exc: object) -> None:
        if self._bar is not None:
            self._bar.close()


# -- what the machine has -------------------------------------------------------------------------


def usable_threads(threads: int | None = None) -> int:
    """Number of threads to run: what was asked for, within what this process may use.

    Affinity, container limits and ``NUMBA_NUM_THREADS`` are respected; asking for more is noted
    in the log and otherwise harmless.
    """
    if threads is not None and (not isinstance(threads, int | np.integer) or threads < 0):
        raise ValueError(f"threads must be None or a number from 0, got {threads!r}")
    try:
        usable = len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        usable = os.cpu_count() or 1
    quota = _cgroup_cpus()
    if quota is not None:
        usable = min(usable, max(1, quota))
    limit = os.environ.get("NUMBA_NUM_THREADS", "")
    if limit.isdigit() and int(limit) > 0:
        usable = min(usable, int(limit))
    if not threads:
        return usable
    if threads > usable:
        logger.info("threads=%d lowered to the %d usable here", threads, usable)
    return int(min(threads, usable))


def _read(path: str) -> str:
    try:
        return pathlib.Path(path).read_text().strip()
    except OSError:
        return ""


def _cgroup_cpus() -> int | None:
    """Whole CPUs a container may use, None without a limit."""
    quota, _, period = _read("/sys/fs/cgroup/cpu.max").partition(" ")
    if not quota:
        quota = _read("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")
        period = _read("/sys/fs/cgroup/cpu/cpu.cfs_period_us")
    if quota.isdigit() and period.isdigit():
        return -(-int(quota) // int(period))
    return None


def available_memory() -> int | None:
    """Bytes this process can still allocate, None where the system does not say."""
    found = []
    for line in _read("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            found.append(int(line.split()[1]) * 1024)
    if not found:
        try:
            found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        except (AttributeError, ValueError, OSError):
            return None
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        (
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        ),
    ):
        most, now = _read(limit), _read(used)
        if most.isdigit() and now.isdigit():
            found.append(max(0, int(most) - int(now)))
    return min(found)


def check_memory(needed: int, what: str) -> None:
    """Refuse a result that cannot fit, before anything is allocated."""
    available = available_memory()
    if available is not None and needed > available:
        raise MemoryError(
            f"{what} needs {needed:,} bytes and {available:,} are available; "
            "use top_k for the best matches of each row, join for all pairs within a threshold, "
            "or iter_join for those pairs in blocks"
        )
