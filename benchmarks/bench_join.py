"""``join``: all near-equal names, against comparing every pair in lanes without an index."""

from __future__ import annotations

import re
import statistics
import sys
import time

import pytest

import resemblance as rs

LINE = re.compile(r"k (\d+) pairs found (\d+) compared .* ([\d.]+) s ")


@pytest.fixture(scope="module")
def probe(shared, run):
    """Pairs and seconds of ``../shared/probes/edit_self_join.py`` by distance, two threads."""
    script = shared / "probes" / "edit_self_join.py"
    output = run(sys.executable, str(script), PYTHONPATH=str(script.parent)).output
    return {int(k): (int(pairs), float(seconds)) for k, pairs, seconds in LINE.findall(output)}


@pytest.mark.parametrize(("distance", "target"), [(1, 5), (2, 3)])
def test_all_names(distance, target, names, probe, benchmark, record):
    """Names of at most 64 characters (as the probe's), two threads: 5 and 3 times its speed.

    Both start from the packed column; the probe's run is timed by itself.
    """
    column = rs.Strings.pack([name for name in names if len(name) <= 64])
    seconds = []

    def ours():
        begin = time.perf_counter()
        found = rs.join(column, max_distance=distance, threads=2)
        seconds.append(time.perf_counter() - begin)
        return found

    pairs, peer = probe[distance]
    assert len(ours().left) == pairs
    seconds.clear()
    benchmark.pedantic(ours, rounds=3)
    mine = statistics.median(seconds)
    record(peer / mine, target, f"{mine:.2f} s against {peer:.2f} s, {pairs:,} pairs")
