"""What it costs to begin: imports, the first call, compiling. Figures are limit / measured."""

from __future__ import annotations

import statistics
import sys

FIRST_CALL = "import resemblance as rs; rs.cdist(['kitten', 'ab'], ['sitting', 'é'])"
REPEAT = 7


def median(run, code: str, repeat: int = REPEAT, **env: str) -> float:
    return statistics.median(run(sys.executable, "-c", code, **env).seconds for _ in range(repeat))


def test_import(run, benchmark, record):
    """``import resemblance`` takes no more than 0.15 s beyond NumPy."""
    numpy = median(run, "import numpy")
    ours = benchmark.pedantic(median, args=(run, "import numpy, resemblance"), rounds=1)
    beyond = max(ours - numpy, 1e-4)
    record(0.15 / beyond, 1, f"{1000 * beyond:.1f} ms beyond NumPy's {1000 * numpy:.0f} ms")


def test_first_call_with_a_warm_cache(run, benchmark, record):
    """``cdist`` of two short lists in a new process: within 0.6 s, the interpreter's start too."""
    run(sys.executable, "-c", FIRST_CALL)
    seconds = benchmark.pedantic(median, args=(run, FIRST_CALL), rounds=1)
    record(0.6 / seconds, 1, f"{1000 * seconds:.0f} ms")


def test_first_call_with_a_cold_cache(tmp_path, run, benchmark, record):
    """The same where nothing is compiled yet: reported, without a target."""
    cache = {"NUMBA_CACHE_DIR": str(tmp_path)}
    cold = benchmark.pedantic(
        lambda: run(sys.executable, "-c", FIRST_CALL, **cache).seconds, rounds=1
    )
    record(1 / cold, None, f"{cold:.1f} s")


def test_help(run, benchmark, record):
    """``resemblance --help`` loads neither Numba nor pyarrow's dataset machinery: within 0.5 s."""
    code = """
import sys
from resemblance_io.cli import main
sys.argv = ["resemblance", "--help"]
try:
    main()
except SystemExit as end:
    assert not end.code
assert not {"numba", "llvmlite"} & set(sys.modules)
"""
    seconds = benchmark.pedantic(median, args=(run, code), rounds=1)
    record(0.5 / seconds, 1, f"{1000 * seconds:.0f} ms")
