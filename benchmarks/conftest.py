"""Data, peers and the one way of comparing; run with ``pytest benchmarks``.

Every benchmark asserts first that both sides give the same result, then times them in turns on the
same input and reports the median ratio beside its target. A missed target is reported, never a
failure: machines differ, and so do the neighbours on them.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Collect ``bench_*.py`` of a folder; those named on the command line are collected anyway."""
    if file_path.match("bench_*.py") and not parent.session.isinitpath(file_path):
        return pytest.Module.from_parent(parent, path=file_path)
    return None


# --- comparing -----------------------------------------------------------------------------------


@dataclass
class Report:
    """Lines of the table shown at the end."""

    lines: list[str] = field(default_factory=list)

    def add(self, name: str, measured: float, target: float | None, detail: str) -> None:
        goal = "" if target is None else f"target {target:g}, {measured / target:5.2f} of it"
        self.lines.append(f"{name:58} {measured:8.2f}   {goal:28} {detail}")


REPORT = pytest.StashKey[Report]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[REPORT] = Report()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    lines = config.stash[REPORT].lines
    if lines:
        terminalreporter.section("times the peer's speed (or times the target kept)")
        for line in lines:
            terminalreporter.write_line(line)


@pytest.fixture
def record(request: pytest.FixtureRequest, benchmark: Any) -> Callable[..., None]:
    """Report a figure of merit (higher is better) in the table and in the benchmark's JSON."""

    def record(measured: float, target: float | None, detail: str = "", name: str = "") -> None:
        name = name or request.node.name
        benchmark.extra_info.setdefault("figures", {})[name] = {
            "measured": measured,
            "target": target,
            "detail": detail,
        }
        request.config.stash[REPORT].add(name, measured, target, detail)

    return record


@pytest.fixture
def compare(benchmark: Any, record: Callable[..., None]) -> Callable[..., float]:
    """``compare(ours, peer, target=...)``: run both in turns, report the median ratio of times."""

    def compare(
        ours: Callable[[], object],
        peer: Callable[[], object],
        *,
        target: float | None,
        repeat: int = 5,
    ) -> float:
        times: dict[str, list[float]] = {"ours": [], "peer": []}

        def timed(side: str, run: Callable[[], object]) -> None:
            begin = time.perf_counter()
            run()
            times[side].append(time.perf_counter() - begin)

        ours()  # compiled, or loaded from the cache
        benchmark.pedantic(
            timed, args=("ours", ours), setup=lambda: timed("peer", peer), rounds=repeat
        )
        ratio = statistics.median(p / o for p, o in zip(times["peer"], times["ours"], strict=True))
        mine, theirs = (statistics.median(times[side]) for side in ("ours", "peer"))
        record(ratio, target, f"{_time(mine)} against {_time(theirs)}")
        return ratio

    return compare


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.1f} ms"


# --- programs of their own -----------------------------------------------------------------------


@dataclass
class Run:
    seconds: float
    peak_bytes: int
    output: str


LAUNCH = """
import json, os, subprocess, sys, time
begin = time.perf_counter()
process = subprocess.Popen(sys.argv[2:])
_, status, usage = os.wait4(process.pid, 0)
code = os.waitstatus_to_exitcode(status)
with open(sys.argv[1], "w") as report:
    json.dump([time.perf_counter() - begin, usage.ru_maxrss, code], report)
"""
"""Run by a small process: a command's peak begins with that of the process that starts it."""


@pytest.fixture(scope="session")
def run() -> Callable[..., Run]:
    """Run a command and measure it: wall time, peak memory, standard output."""

    def run(*command: str, **env: str) -> Run:
        path = os.pathsep.join([str(ROOT / "engine"), str(ROOT / "io")])
        with tempfile.NamedTemporaryFile("r") as report:
            done = subprocess.run(
                [sys.executable, "-c", LAUNCH, report.name, *command],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
                env=os.environ | {"PYTHONPATH": path} | env,
            )
            seconds, peak, code = json.load(report)
        assert code == 0, f"{command} ended with {code}"
        return Run(seconds, peak * (1 if sys.platform == "darwin" else 1024), done.stdout)

    return run


# --- data ----------------------------------------------------------------------------------------


def _column(name: str) -> Any:
    path = SHARED / "data" / "package_names.parquet"
    if not path.is_file():
        pytest.skip(f"{path.name} of ../shared is not here")
    parquet = pytest.importorskip("pyarrow.parquet")
    return parquet.read_table(path, columns=[name])[name]


@pytest.fixture(scope="session")
def names() -> list[str]:
    """All 885,753 package names, in a seeded random order."""
    column: list[str] = _column("name").to_pylist()
    random.Random(0).shuffle(column)
    return column


@pytest.fixture(scope="session")
def summaries() -> list[str]:
    """All summaries that are not null, in a seeded random order."""
    column = [text for text in _column("summary").to_pylist() if text is not None]
    random.Random(0).shuffle(column)
    return column


@pytest.fixture(scope="session")
def shared() -> Path:
    if not SHARED.is_dir():
        pytest.skip("../shared is not here")
    return SHARED


@pytest.fixture(scope="session")
def rapidfuzz() -> Any:
    """The peer: its ``process`` and ``distance`` modules are loaded."""
    module = pytest.importorskip("rapidfuzz")
    pytest.importorskip("rapidfuzz.process")
    pytest.importorskip("rapidfuzz.distance")
    return module
