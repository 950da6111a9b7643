"""``resemblance score``: a large file, five metrics, two threads, file to file."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

ROWS = 5_000_000
GIB = 1 << 30
CLI = "import sys; from resemblance_io.cli import main; sys.exit(main())"
PEER = """
import sys
import polars as pl
import polars_strsim as strsim
a, b = pl.col("output"), pl.col("expected")
scores = {
    "levenshtein": strsim.levenshtein(a, b),
    "jaro": strsim.jaro(a, b),
    "jaro_winkler": strsim.jaro_winkler(a, b),
    "jaccard:chars:1": strsim.jaccard(a, b),
    "dice:chars:1": strsim.sorensen_dice(a, b),
}
rows = pl.scan_parquet(sys.argv[1]).with_columns(**scores).drop("output", "expected")
rows.sink_parquet(sys.argv[2])
"""
METRICS = ["levenshtein", "jaro", "jaro_winkler", "jaccard:chars:1", "dice:chars:1"]


@pytest.fixture(scope="session")
def pairs(shared, tmp_path_factory) -> Path:
    """5,000,000 pairs: names and summaries with neighbours, parts of themselves, and strangers."""
    table = pq.read_table(shared / "data" / "package_names.parquet")
    names, summaries = (table[c].combine_chunks() for c in ("name", "summary"))
    rng = np.random.default_rng(0)
    strangers = pa.array(rng.permutation(len(names)))
    near = names.take(pc.sort_indices(names))
    short = pc.utf8_slice_codeunits(summaries, 0, 60)
    sides = [
        (near, pa.concat_arrays([near[1:], near[:1]])),
        (names, names.take(strangers)),
        (names, pc.utf8_slice_codeunits(names, 1)),
        (short, pc.utf8_slice_codeunits(short, 0, 45)),
        (short, short.take(strangers)),
        (summaries, pc.utf8_slice_codeunits(summaries, 5)),
    ]
    left, right = (pa.concat_arrays(side) for side in zip(*sides, strict=True))
    order = pa.array(rng.permutation(len(left))[:ROWS])
    path = tmp_path_factory.mktemp("score") / "pairs.parquet"
    columns = {"id": np.arange(ROWS), "output": left.take(order), "expected": right.take(order)}
    pq.write_table(pa.table(columns), path, row_group_size=1 << 17)
    return path


def test_five_metrics(pairs, tmp_path, run, compare, record):
    """Two threads each, in processes of their own: at least twice the speed, and less memory."""
    pytest.importorskip("polars_strsim")
    peaks = {}

    def ours():
        options = [word for metric in METRICS for word in ("--metric", metric)]
        command = [
            "score",
            str(pairs),
            "-o",
            str(tmp_path / "ours.parquet"),
            *options,
            "--multiset",
        ]
        done = run(sys.executable, "-c", CLI, *command, "--threads", "2", "--overwrite")
        peaks["ours"] = done.peak_bytes

    def peer():
        command = [sys.executable, "-c", PEER, str(pairs), str(tmp_path / "peer.parquet")]
        peaks["peer"] = run(*command, POLARS_MAX_THREADS="2").peak_bytes

    ours()
    peer()
    mine, theirs = (pq.read_table(tmp_path / f"{side}.parquet") for side in ("ours", "peer"))
    assert mine["id"].equals(theirs["id"])
    for metric in METRICS:
        assert mine[metric].null_count == theirs[metric].null_count
        a, b = (table[metric].to_numpy() for table in (mine, theirs))
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12, err_msg=metric)
    del mine, theirs, a, b
    compare(ours, peer, target=2, repeat=3)
    mib = {side: peak >> 20 for side, peak in peaks.items()}
    detail = f"peak {mib['ours']:,} MiB against {mib['peer']:,}"
    record(peaks["peer"] / peaks["ours"], 1, detail, name="test_five_metrics: memory")
