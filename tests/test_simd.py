"""Each operation on lane vectors against NumPy, for every lane type; JIT on, off, and AVX2 only."""

import os
import subprocess
import sys

import numba
import numpy as np
import pytest

from resemblance import simd
from resemblance.simd import (
    bit_count,
    double,
    double_in,
    less,
    load,
    match_bits,
    popcount,
    splat,
    store,
    store_narrow,
    store_sum,
    top_bit,
)

TYPES = (np.uint8, np.uint16, np.uint32, np.uint64)


def compiled(dtype):
    """A kernel that uses every operation between vectors of two registers."""
    n = 2 * simd.REGISTER_BYTES // np.dtype(dtype).itemsize

    @numba.njit
    def run(a, b, out):
        x = load(a, 1, n)  # not aligned
        y = load(b, 0, n)
        results = (
            x + y, x - y, x & y, x | y, x ^ y, ~x,
            double(x), double_in(x, y), top_bit(x), popcount(x), splat(x, 200), less(x, y),
        )  # fmt: skip
        at = 0
        for result in results:
            store(out, at, result)
            at += n

    return n, run


@pytest.mark.parametrize("dtype", TYPES)
def test_lanes(dtype):
    n, run = compiled(dtype)
    bits = np.dtype(dtype).itemsize * 8
    draw = np.random.default_rng(7)
    a = draw.integers(0, 1 << bits, n + 1, dtype)
    b = draw.integers(0, 1 << bits, n, dtype)
    a[1:5] = 0, np.iinfo(dtype).max, 1, np.iinfo(dtype).max // 2 + 1
    b[:4] = np.iinfo(dtype).max
    out = np.zeros(12 * n, dtype)
    run(a, b, out)
    x, y = a[1:], b
    top = dtype(bits - 1)
    expected = [
        x + y, x - y, x & y, x | y, x ^ y, ~x,
        x + x, (x + x) | (y >> top), x >> top, np.bitwise_count(x).astype(dtype), np.full(n, 200),
        np.where(x < y, ~dtype(0), dtype(0)),
    ]  # fmt: skip
    for place, value in enumerate(expected):
        assert np.array_equal(out[place * n : (place + 1) * n], value), place


@pytest.mark.parametrize("dtype", TYPES)
def test_store_narrow(dtype):
    n = 2 * simd.REGISTER_BYTES // np.dtype(dtype).itemsize

    @numba.njit
    def run(a, out):
        store_narrow(out, 1, load(a, 0, n))

    values = np.arange(n) - n // 2
    out = np.zeros(n + 2, np.int8)
    run(values.astype(np.int64).astype(dtype), out)
    assert out.tolist() == [0, *values.astype(np.int8).tolist(), 0]


@pytest.mark.parametrize("source", [np.int8, np.int16])
@pytest.mark.parametrize(
    "target", [np.uint8, np.int16, np.uint32, np.int64, np.float32, np.float64]
)
def test_store_sum(source, target):
    @numba.njit
    def run(a, out):
        store_sum(out, 1, 100, a, 2, 16)

    a = np.arange(-10, 10).astype(source)
    out = np.zeros(18, target)
    run(a, out)
    assert out.tolist() == [0, *(100 + a[2:18].astype(int)).tolist(), 0]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_match_bits(dtype):
    @numba.njit
    def run(a, value):
        return match_bits(a, 1, value, 64)

    a = np.random.default_rng(1).integers(0, 3, 65, dtype)
    for value in (0, 2, 200):
        expected = sum(1 << i for i in range(64) if a[1 + i] == value)
        assert int(run(a, dtype(value))) == expected


def test_bit_count():
    @numba.njit
    def run(x):
        return bit_count(x)

    for x in (0, 1, (1 << 63) + 1, (1 << 64) - 1):
        assert run(np.uint64(x)) == x.bit_count()


@pytest.mark.slow
@pytest.mark.jit
@pytest.mark.skipif(simd.REGISTER_BYTES < 64, reason="this machine has nothing beyond AVX2")
def test_avx2_only(tmp_path):
    env = {
        **os.environ,
        "NUMBA_CPU_NAME": "haswell",
        "NUMBA_CPU_FEATURES": "+avx2,+avx,+bmi,+bmi2,+popcnt,+sse4.2",
        "NUMBA_CACHE_DIR": str(tmp_path),
    }
    words = ["-q", "-p", "no:cacheprovider", "-m", "not slow", __file__]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pytest", *words], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
