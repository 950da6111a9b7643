"""``resemblance dedup`` of a whole file, and how well its clusters match what people decided."""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from itertools import combinations

import numpy as np
import pyarrow.parquet as pq
import pytest

import resemblance as rs

CLI = "import sys; from resemblance_io.cli import main; sys.exit(main())"
GIB = 1 << 30


@pytest.mark.parametrize("distance", [1, 2])
def test_whole_file(distance, tmp_path, shared, names, run, benchmark, record):
    """885,753 names through the command, two threads: peak memory below 2 GiB; time reported."""
    source = shared / "data" / "package_names.parquet"
    options = ["--column", "name", "--metric", "levenshtein", "--max-distance", str(distance)]
    rounds = iter(range(100))

    def whole():
        out = tmp_path / str(next(rounds))
        command = [sys.executable, "-c", CLI, "dedup", str(source), *options, "-o", str(out)]
        return out, run(*command)

    whole()  # compiled, or loaded from the cache
    out, done = benchmark.pedantic(whole, rounds=1)
    kept, removed = (pq.read_metadata(out / f"{x}.parquet").num_rows for x in ("kept", "removed"))
    assert kept + removed == len(names)
    peak = done.peak_bytes / GIB
    record(2 / peak, 1, f"{done.seconds:.1f} s, peak {peak:.2f} GiB, {removed:,} rows removed")


# --- against gold pairs --------------------------------------------------------------------------


def rows_of(path, delimiter=","):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter=delimiter, skipinitialspace=True))


def within(groups) -> set[tuple[int, int]]:
    """All pairs of rows of the same group."""
    members = defaultdict(list)
    for row, group in enumerate(groups):
        members[group].append(row)
    return {pair for rows in members.values() for pair in combinations(rows, 2)}


def dblp_acm(data):
    """Titles of two bibliographies; only pairs with one row of each are judged."""
    dblp, acm = (rows_of(data / "dblp_acm" / f"{side}.csv", "%") for side in ("dblp", "acm"))
    texts = [row["title"] for row in dblp + acm]
    gold = rows_of(data / "dblp_acm" / "gt.csv", "%")
    pairs = {(int(pair["D1"]), len(dblp) + int(pair["D2"])) for pair in gold}
    return texts, pairs, lambda i, j: i < len(dblp) <= j


def cora(data):
    """Titles of citations; many citations of each paper."""
    rows = rows_of(data / "cora" / "cora.csv")
    texts = [row["title"].strip() for row in rows]
    return texts, within(row["label"] for row in rows), lambda i, j: True


def restaurants(data):
    """Names and addresses; 112 of the 864 are listed twice."""
    rows = rows_of(data / "restaurants" / "dedupe" / "restaurant-nophone-training.csv")
    texts = [f"{row['name']} {row['address']}" for row in rows]
    return texts, within(row["unique_id"] for row in rows), lambda i, j: True


@pytest.mark.parametrize("method", ["star", "components"])
@pytest.mark.parametrize("threshold", [0.7, 0.8, 0.9])
@pytest.mark.parametrize("load", [dblp_acm, cora, restaurants], ids=lambda load: load.__name__)
def test_gold_pairs(load, threshold, method, shared, benchmark, record):
    """F1 of the pairs of rows in one cluster; no target: a title does not tell everything."""
    texts, gold, judged = load(shared / "data")
    found = benchmark.pedantic(
        rs.dedup, args=(texts,), kwargs={"min_similarity": threshold, "method": method}, rounds=1
    )
    pairs = {pair for pair in within(found.representative.tolist()) if judged(*pair)}
    right = len(pairs & gold)
    precision = right / len(pairs) if pairs else np.nan
    recall = right / len(gold)
    f1 = 2 * right / (len(pairs) + len(gold))
    detail = f"precision {precision:.3f}, recall {recall:.3f}, {len(pairs):,} pairs"
    record(f1, None, detail)
