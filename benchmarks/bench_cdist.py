"""``cdist``: Python lists in, a matrix out, as the peer does it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import resemblance as rs

AVX2 = {
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": "+64bit,+cx16,+popcnt,+lzcnt,+bmi,+bmi2,+fma,+f16c,+movbe,+sse2,+sse3,"
    "+ssse3,+sse4.1,+sse4.2,+avx,+avx2",
}
LENGTHS = {"1-8": (25, 8), "9-16": (20, 6), "17-32": (14, 4), "33-64": (12, 4)}
"""Targets by length: with all of the machine's instructions, and with AVX2 only."""


def check_and_compare(compare, rapidfuzz, left, right, dtype, target, repeat=5):
    scorer = rapidfuzz.distance.Levenshtein.distance

    def ours():
        return rs.cdist(left, right, dtype=dtype, threads=1)

    def peer():
        return rapidfuzz.process.cdist(left, right, scorer=scorer, dtype=dtype)

    np.testing.assert_array_equal(ours(), peer())
    compare(ours, peer, target=target, repeat=repeat)


@pytest.mark.parametrize("lengths", LENGTHS)
def test_names(lengths, names, rapidfuzz, compare):
    """Names of one length class, 2,048 x 20,000, uint8: at least 25 / 20 / 14 / 12 times."""
    low, high = map(int, lengths.split("-"))
    chosen = [name for name in names if low <= len(name) <= high][:22_048]
    left, right = chosen[:2_048], chosen[2_048:]
    check_and_compare(compare, rapidfuzz, left, right, np.uint8, LENGTHS[lengths][0])


@pytest.mark.skipif(os.uname().machine not in ("x86_64", "AMD64"), reason="x86 only")
def test_names_with_avx2_only(tmp_path, names, rapidfuzz, benchmark, record):
    """The same with AVX2 code only, in a process of its own: at least 8 / 6 / 4 / 4 times."""
    report = tmp_path / "report.json"
    command = [sys.executable, "-m", "pytest", __file__, "-q", "-k", "test_names and not avx2"]
    benchmark.pedantic(
        subprocess.run,
        args=([*command, f"--benchmark-json={report}"],),
        kwargs={
            "check": True,
            "stdout": subprocess.DEVNULL,
            "env": os.environ | AVX2 | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")},
            "cwd": Path(__file__).parents[1],
        },
        rounds=1,
    )
    for entry in json.loads(report.read_text())["benchmarks"]:
        for name, figure in entry["extra_info"]["figures"].items():
            target = LENGTHS[entry["params"]["lengths"]][1]
            record(figure["measured"], target, figure["detail"], f"AVX2 only: {name}")


def test_summaries(summaries, rapidfuzz, compare):
    """Summaries (mean 61 characters, many scripts), 1,000 x 4,000: at least 12 times."""
    left, right = summaries[:1_000], summaries[1_000:5_000]
    check_and_compare(compare, rapidfuzz, left, right, np.uint8, 12)


def test_texts_of_500_characters(summaries, rapidfuzz, compare):
    """Summaries one after another up to about 500 characters, 200 x 500: at least 9 times."""
    texts: list[str] = []
    text = ""
    for summary in summaries:
        text = f"{text} {summary}" if text else summary
        if len(text) > 450:
            texts.append(text)
            text = ""
        if len(texts) == 700:
            break
    check_and_compare(compare, rapidfuzz, texts[:200], texts[200:], np.uint16, 9)


@pytest.mark.parametrize("packed", [False, True], ids=["lists", "packed"])
def test_one_name_against_all(packed, names, rapidfuzz, compare):
    """One name x 885,753, two threads, from a list or packed before: at least 5 times."""
    query = ["scikit-learn"]
    choices = rs.Strings.pack(names) if packed else names
    scorer = rapidfuzz.distance.Levenshtein.distance

    def ours():
        return rs.cdist(query, choices, threads=2)

    def peer():
        return rapidfuzz.process.cdist(query, names, scorer=scorer, dtype=np.uint8, workers=2)

    np.testing.assert_array_equal(ours(), peer())
    compare(ours, peer, target=5)
