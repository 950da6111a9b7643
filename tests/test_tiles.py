"""Threads: the same answer for any tiling, from any thread, after a fork, and a prompt end."""

from __future__ import annotations

import concurrent.futures
import importlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given

import resemblance as rs
from resemblance import lanes, neighbors, tiles
from strategies import JIT, SCRIPTS, column_of, columns, examples

ROWS = 150 if JIT else 20
LEFT = column_of(ROWS, SCRIPTS["latin"], 21, longest=90)
RIGHT = column_of(ROWS // 2, SCRIPTS["greek"], 22, longest=30) + LEFT[::5] + ["", "x" * 140]

CALLS = {
    "cdist": lambda threads: [rs.cdist(LEFT, RIGHT, threads=threads)],
    "cdist of one": lambda threads: [rs.cdist(LEFT, score="similarity", threads=threads)],
    "pdist": lambda threads: [rs.pdist(LEFT, threads=threads)],
    "pairwise": lambda threads: [rs.pairwise(LEFT, LEFT[::-1], threads=threads)],
    "top_k": lambda threads: rs.top_k(LEFT, RIGHT, k=3, threads=threads),
    "join": lambda threads: rs.join(LEFT, RIGHT, max_distance=3, threads=threads),
    "self-join": lambda threads: rs.join(LEFT, min_similarity=0.7, threads=threads),
    "dedup": lambda threads: [rs.dedup(LEFT, threads=threads).representative],
}


def subprocess_env(**changes: str) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))} | changes


def run(code: str, timeout: float = 120, **env: str) -> str:
    """Standard output of a program of its own, which must end well and in time."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env=subprocess_env(**env),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# --- the same for every tiling -------------------------------------------------------------------


@pytest.fixture(params=["tiny tiles", "tiny programs", "threads for all"])
def tiling(request, monkeypatch):
    """Tiles of one block and programs of a few texts, on real threads however small the job."""
    monkeypatch.setattr(tiles, "INLINE_COST", 0)
    if request.param == "tiny tiles":
        monkeypatch.setattr(lanes, "TILE_COST", 1)
        monkeypatch.setattr(lanes, "TILE_RESULTS", 1)
        monkeypatch.setattr(neighbors, "QUERIES", 2)
    if request.param == "tiny programs":
        monkeypatch.setattr(lanes, "CHUNK_CHARACTERS", 200)
        monkeypatch.setattr(lanes, "CHUNK_TEXTS", 16)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_tiling_and_threads_do_not_matter(tiling, name, threads, monkeypatch):
    monkeypatch.setattr(tiles, "usable_threads", lambda threads=None: threads or 2)
    found = CALLS[name](threads)
    monkeypatch.undo()
    for part, expected in zip(found, CALLS[name](1), strict=True):
        np.testing.assert_array_equal(part, expected)


@given(columns(), columns())
@examples(40)
def test_tiling_does_not_matter_for_small_columns(tiling, left, right):
    found = rs.cdist(left, right, threads=2)
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            np.testing.assert_array_equal(found[i, j], rs.cdist([a], [b])[0, 0])


# --- threads -------------------------------------------------------------------------------------


def test_no_thread_outlives_its_job(tiling):
    before = threading.active_count()
    for call in CALLS.values():
        call(2)
    assert threading.active_count() == before


def test_calls_from_several_threads(tiling):
    expected = {name: call(1) for name, call in CALLS.items()}
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        futures = [(name, pool.submit(call, 2)) for _ in range(3) for name, call in CALLS.items()]
        for name, future in futures:
            for part, same in zip(future.result(60), expected[name], strict=True):
                np.testing.assert_array_equal(part, same)


def test_failure_in_a_tile_is_raised(tiling):
    def fail(done: int, total: int) -> None:
        raise ArithmeticError("from the progress function")

    before = threading.active_count()
    with pytest.raises(ArithmeticError, match="from the progress function"):
        rs.cdist(LEFT, RIGHT, threads=2, progress=fail)
    assert threading.active_count() == before
    np.testing.assert_array_equal(rs.cdist(LEFT, RIGHT, threads=2), rs.cdist(LEFT, RIGHT))


@pytest.mark.parametrize("threads", [-1, 1.5, "2"])
def test_wrong_number_of_threads(threads):
    with pytest.raises(ValueError, match="threads"):
        rs.cdist(["a"], ["b"], threads=threads)


def test_usable_threads(monkeypatch):
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    files: dict[str, str] = {}
    monkeypatch.setattr(tiles, "_read", lambda path: files.get(path, ""))
    assert tiles.usable_threads() == tiles.usable_threads(0) == tiles.usable_threads(99) == 8
    assert tiles.usable_threads(3) == 3
    files["/sys/fs/cgroup/cpu.max"] = "max 100000"
    assert tiles.usable_threads() == 8
    files["/sys/fs/cgroup/cpu.max"] = "250000 100000"
    assert tiles.usable_threads() == 3
    files["/sys/fs/cgroup/cpu.max"] = "50000 100000"
    assert tiles.usable_threads() == tiles.usable_threads(4) == 1
    del files["/sys/fs/cgroup/cpu.max"]
    files["/sys/fs/cgroup/cpu/cpu.cfs_quota_us"] = "200000"
    files["/sys/fs/cgroup/cpu/cpu.cfs_period_us"] = "100000"
    assert tiles.usable_threads() == 2
    files["/sys/fs/cgroup/cpu/cpu.cfs_quota_us"] = "-1"
    assert tiles.usable_threads() == 8
    monkeypatch.setenv("NUMBA_NUM_THREADS", "5")
    assert tiles.usable_threads() == 5


def test_lowering_is_noted(caplog):
    with caplog.at_level("INFO", "resemblance"):
        rs.cdist(["a"], ["b"], threads=4_096)
    assert "4096" in caplog.text
    assert "usable" in caplog.text


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="Linux only")
@pytest.mark.parametrize(
    ("first", "env"), [("os.sched_setaffinity(0, {0})", {}), ("", {"NUMBA_NUM_THREADS": "1"})]
)
def test_case_c058_limits_of_the_process(first, env):
    code = f"""
        import os
        {first}
        import resemblance as rs
        from resemblance import tiles
        print(rs.cdist(["a"] * 300, ["b", "a"], threads=8).sum(), tiles.usable_threads(8))
    """
    cpu = min(os.sched_getaffinity(0))
    assert run(code.replace("{0}", f"{{{cpu}}}"), **env).split() == ["300", "1"]


# --- fork ----------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_case_c059_processes_after_use(method, tmp_path):
    script = tmp_path / "pool.py"
    script.write_text(
        textwrap.dedent(f"""
            import multiprocessing
            import warnings
            import resemblance as rs
            from resemblance import tiles

            tiles.INLINE_COST = 0  # on threads, however small
            TEXTS = ["a", "b", "kitten" * 3] * 30

            def work(pair):
                assert rs.cdist(TEXTS, threads=2).shape == (90, 90)
                return int(rs.cdist([pair[0]], [pair[1]], threads=2)[0, 0])

            if __name__ == "__main__":
                rs.cdist(TEXTS, threads=2)
                rs.join(TEXTS, max_distance=1)
                with multiprocessing.get_context("{method}").Pool(2) as pool:
                    print(pool.map(work, [("a", "b")] * 4))
        """)
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=100,
        env=subprocess_env(),
    )  # fmt: skip
    assert done.stdout == "[1, 1, 1, 1]\n", done.stderr


# --- Ctrl-C --------------------------------------------------------------------------------------

LONG_CALLS = {
    "cdist": "rs.cdist(long, long[::-1])",
    "pdist": "rs.pdist(long)",
    "pairwise of two long texts": "rs.pairwise(['ab' * 2_000_000], ['cde' * 1_500_000])",
    "top_k": "rs.top_k(long, long, k=3)",
    "join": "rs.join(long, min_similarity=0.3)",
}


@pytest.mark.jit
@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
@pytest.mark.parametrize("name", LONG_CALLS)
def test_ctrl_c_ends_it_within_two_seconds(name):
    """And the engine works on afterwards, with no thread of the interrupted job left."""
    code = f"""
        import random, threading, time
        import numpy as np
        import resemblance as rs
        draw = random.Random(1)
        long = ["".join(draw.choices("abcdefgh", k=draw.randint(700, 900))) for _ in range(9_000)]
        small = long[:2]
        rs.cdist(small), rs.top_k(small, small, k=1), rs.join(small, min_similarity=0.5)
        rs.pairwise(small, small)
        print("ready", flush=True)
        try:
            {LONG_CALLS[name]}
        except KeyboardInterrupt:
            print("stopped", threading.active_count(), rs.cdist(["a"], ["b"])[0, 0], flush=True)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        text=True,
        env=subprocess_env(),
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(1.5)
        assert process.poll() is None, "over before it could be interrupted"
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "stopped 1 1\n"
        assert time.monotonic() - begin < 2
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


# --- progress ------------------------------------------------------------------------------------


def test_progress_rises_to_the_total(tiling):
    seen: list[tuple[int, int]] = []
    rs.cdist(LEFT, RIGHT, threads=2, progress=lambda done, total: seen.append((done, total)))
    done, totals = zip(*seen, strict=True)
    assert list(done) == sorted(done)
    assert len(set(totals)) == 1
    assert done[-1] == totals[0]


def test_nothing_is_shown_where_there_is_no_terminal(tiling, capfd):
    rs.cdist(LEFT, RIGHT, progress=True)
    assert capfd.readouterr() == ("", "")


# --- memory --------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["cdist", "pdist"])
def test_case_c001_a_matrix_that_cannot_fit_is_refused(call):
    """Before it is allocated, with the bytes needed and available and the calls that stream."""
    names = rs.Strings.pack([f"person {i % 9973} {i}" for i in range(1_000_000)])
    needed = {"cdist": 1_000_000**2, "pdist": 1_000_000 * 999_999 // 2}[call]
    tracemalloc.start()
    try:
        with pytest.raises(MemoryError) as error:
            getattr(rs, call)(names)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    message = str(error.value)
    assert f"{needed:,} bytes" in message
    assert "available" in message
    assert "top_k" in message
    assert "join" in message
    assert peak < 100 << 20


def test_case_c001_needed_and_available_are_named(monkeypatch):
    monkeypatch.setattr(tiles, "available_memory", lambda: 79_999)
    column = ["a"] * 100
    with pytest.raises(MemoryError, match=r"80,000 bytes and 79,999 are available"):
        rs.cdist(column, score="similarity")
    assert rs.cdist(column).nbytes == 10_000
    out = np.empty((100, 100))
    assert rs.cdist(column, score="similarity", out=out) is out


def test_available_memory(monkeypatch):
    files = {"/proc/meminfo": "MemTotal: 9 kB\nMemAvailable:     2048 kB\n"}
    monkeypatch.setattr(tiles, "_read", lambda path: files.get(path, ""))
    assert tiles.available_memory() == 2 << 20
    files["/sys/fs/cgroup/memory.max"] = str(3 << 20)
    files["/sys/fs/cgroup/memory.current"] = str(2 << 20)
    assert tiles.available_memory() == 1 << 20
    files["/sys/fs/cgroup/memory.max"] = "max"
    assert tiles.available_memory() == 2 << 20


@pytest.mark.jit
@pytest.mark.slow
def test_case_c001_the_same_by_threshold_and_by_top_k():
    """What the refused matrix points to runs on the case's column in bounded memory."""
    peak = run("""
        import resource
        import resemblance as rs
        peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        names = rs.Strings.pack([f"person {i % 9973} {i}" for i in range(100_000)])
        few = names[:10]
        rs.join(few, max_distance=2), rs.top_k(few, few, k=5)
        before = peak()
        found = rs.top_k(names[:500], names, k=5)
        assert (found.index[:, 0] == range(500)).all()
        pairs = sum(len(block.left) for block in rs.iter_join(names, max_distance=2))
        assert pairs > 100_000
        print(peak() - before)
    """)
    assert int(peak) < 1 << 30


@pytest.mark.jit
def test_case_c074_memory_stays_flat():
    growth = run("""
        import resource
        import resemblance as rs
        texts = ["ab%d" % i for i in range(500)]
        peaks = []
        for _ in range(50):
            rs.cdist(texts, texts)
            rs.top_k(texts[:50], texts, k=3)
            rs.join(texts, max_distance=1)
            peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        print((peaks[-1] - peaks[5]) / peaks[5])
    """)
    assert float(growth) < 0.01


def test_case_c074_import_twice():
    expected = rs.cdist(["kitten"], ["sitting"])
    importlib.reload(rs)
    np.testing.assert_array_equal(rs.cdist(["kitten"], ["sitting"]), expected)
