"""Two columns scored row by row: the file, the numbers about it, the gates."""

import json
import math
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import resemblance as rs
from naive import levenshtein
from resemblance.metrics import RECORDS
from resemblance.normalize import Normalize
from resemblance_io import InputError, score
from resemblance_io.jobs import score as score_module
from resemblance_io.jobs.tally import STEPS, Tally

ROOT = Path(__file__).resolve().parents[1]

LEFT = ["night", "day", None, "", "Straße", None, "", "x" * 70]
RIGHT = ["nacht", "day", "tag", "abc", "strasse", None, "", "y" + "x" * 69]
TABLE = pa.table(
    {"id": range(8), "output": LEFT, "expected": RIGHT, "lang": ["de", "en"] * 4},
    metadata={"made by": "hand"},
)
METRICS = ["levenshtein", "indel", "hamming:strict"]


def similarity(a, b):
    if a is None or b is None:
        return None
    return (max(len(a), len(b)) - levenshtein(a, b)) / max(len(a), len(b), 1) if a or b else 1.0


def refused(message, *arguments, **options):
    with pytest.raises(InputError, match=message) as caught:
        score(*arguments, **options)
    assert "\n" not in str(caught.value)


def left_behind(folder):
    return [p.name for p in folder.iterdir() if not p.name.endswith(".lock")]


# -- the file -------------------------------------------------------------------------------------


def test_scores_beside_the_rows(tmp_path):
    found = score(TABLE, METRICS, to=tmp_path / "s.parquet")
    table = pq.read_table(tmp_path / "s.parquet")
    assert table.column_names == ["id", "lang", *METRICS]
    assert table.select(["id", "lang"]).to_pydict() == TABLE.select(["id", "lang"]).to_pydict()
    expected = [similarity(a, b) for a, b in zip(LEFT, RIGHT, strict=True)]
    assert table["levenshtein"].to_pylist() == expected
    for metric in METRICS[:2]:
        scores = table[metric].to_numpy()
        np.testing.assert_array_equal(scores, rs.pairwise(LEFT, RIGHT, metric))
        assert table[metric].null_count == 2
    # NaN from the engine, where no text is null, is null too, and counted
    assert table["hamming:strict"].to_pylist() == [0.6, 1, None, None, None, None, 1, 69 / 70]
    assert (found.rows, found.nulls) == (8, 2)
    assert [m.undefined for m in found.metrics.values()] == [0, 0, 2]
    assert [m.scored for m in found.metrics.values()] == [6, 6, 4]
    assert found.to == tmp_path / "s.parquet"


@pytest.mark.parametrize("name", ["s.parquet", "s.arrow", "s.csv", "s.jsonl"])
def test_formats(tmp_path, name):
    score(TABLE, "levenshtein", to=tmp_path / name, columns=["id"])
    scan = rs.io.scan(tmp_path / name)
    rows = [row for batch in scan for row in batch.data.to_pylist()]
    assert [int(row["id"]) for row in rows] == list(range(8))
    scores = [None if row["levenshtein"] in (None, "") else row["levenshtein"] for row in rows]
    expected = [similarity(a, b) for a, b in zip(LEFT, RIGHT, strict=True)]
    assert [s if s is None else float(s) for s in scores] == expected


def test_distances_keep_their_type(tmp_path):
    score(TABLE, METRICS, to=tmp_path / "s.parquet", score="distance")
    table = pq.read_table(tmp_path / "s.parquet")
    assert table.schema.field("levenshtein").type == pa.uint32()
    assert table["levenshtein"].to_pylist() == [2, 0, None, 3, 3, None, 0, 1]
    assert table["hamming:strict"].to_pylist() == [2, 0, None, None, None, None, 0, 1]


def test_columns_beside_the_scores(tmp_path):
    def names(columns):
        score(TABLE, "lev", to=tmp_path / "s.parquet", columns=columns, overwrite=True)
        return pq.read_schema(tmp_path / "s.parquet").names

    assert names(None) == ["id", "lang", "lev"]
    assert names("all") == ["id", "output", "expected", "lang", "lev"]
    assert names(["lang", "output"]) == ["lang", "output", "lev"]
    assert names([]) == ["lev"]
    out = tmp_path / "s.parquet"
    refused("no column 'lung'; did you mean 'lang'", TABLE, "lev", to=out, columns=["lung"])
    refused("columns is 'id,lang'; pass a list of names, or 'all'", TABLE, "lev", columns="id,lang")


def test_a_name_that_the_input_has_already_is_refused(tmp_path):
    table = TABLE.append_column("levenshtein", TABLE["id"])
    to = tmp_path / "s.parquet"
    refused("the input has a column 'levenshtein' already; .*--columns", table, METRICS, to=to)
    assert left_behind(tmp_path) == []
    assert score(table, METRICS, to=to, columns=["id"]).rows == 8  # left out, it does no harm
    assert score(table, METRICS).rows == 8
    assert score(table, "lev", to=tmp_path / "t.parquet").rows == 8  # nor under another name


def test_metrics_are_named_as_the_user_wrote_them(tmp_path):
    metrics = ["Levenshtein", "lev", rs.Levenshtein()]
    found = score(TABLE, metrics)
    assert list(found.metrics) == ["Levenshtein", "lev", "levenshtein"]
    refused("metric 'lev' is named twice", TABLE, ["lev", "osa", "lev"])


def test_what_was_scored_is_told_by_the_column(tmp_path):
    score(TABLE, METRICS, to=tmp_path / "s.parquet", normalize=Normalize(case="casefold"))
    field = pq.read_schema(tmp_path / "s.parquet").field("levenshtein")
    made = json.loads(field.metadata[b"resemblance"])
    assert made.items() >= {"metric": "levenshtein", "normalize": "casefold"}.items()
    assert pq.read_table(tmp_path / "s.parquet")["levenshtein"][4].as_py() == 1


@pytest.fixture
def files(tmp_path):
    """The same rows in several files and formats."""
    folder = tmp_path / "in"
    folder.mkdir()
    pq.write_table(TABLE.slice(0, 3), folder / "a.parquet", row_group_size=2)
    lines = [json.dumps(row) for row in TABLE.slice(3, 4).to_pylist()]
    (folder / "b.jsonl").write_text("\n".join(lines))
    with (
        pa.OSFile(str(folder / "c.arrow"), "wb") as sink,
        pa.ipc.new_stream(sink, TABLE.schema) as w,
    ):
        w.write_table(TABLE.slice(7))
    return folder


def test_several_files_keep_their_order(files, tmp_path):
    found = score(files, METRICS, to=tmp_path / "s.parquet")
    whole = score(TABLE, METRICS, to=tmp_path / "t.parquet")
    tables = [pq.read_table(tmp_path / name).to_pylist() for name in ("s.parquet", "t.parquet")]
    assert tables[0] == tables[1]
    assert found.metrics == whole.metrics


@pytest.fixture
def many(tmp_path):
    """Rows enough for many blocks."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 40, (2, 1500))
    left, right = ([rng.bytes(n).hex()[:n] for n in side] for side in lengths)
    texts = [None if i % 97 == 0 else t for i, t in enumerate(left)]
    pq.write_table(
        pa.table({"output": texts, "expected": right, "n": range(1500)}),
        tmp_path / "many.parquet",
        row_group_size=400,
    )
    return tmp_path / "many.parquet"


def test_threads_and_blocks_change_nothing(many, tmp_path, monkeypatch):
    wholes = []
    for threads, size in ((1, 1 << 23), (2, 1 << 23), (2, 1000), (None, 3000)):
        monkeypatch.setattr(score_module, "BLOCK_BYTES", size)
        to = tmp_path / f"{len(wholes)}.parquet"
        found = score(many, METRICS, to=to, threads=threads)
        wholes.append((to.read_bytes(), found.metrics, found.rows, found.nulls))
    assert all(a == b for a, b in pairwise(wholes))
    assert pq.read_table(tmp_path / "2.parquet")["n"].to_pylist() == list(range(1500))


def test_more_threads_than_blocks_share_them(many, monkeypatch):
    asked = []

    def spy(*arguments, threads, **options):
        asked.append(threads)
        return rs.pairwise(*arguments, threads=1, **options)

    monkeypatch.setattr(score_module, "pairwise", spy)
    monkeypatch.setattr(score_module, "usable_threads", lambda threads: 64)
    score(many, "levenshtein")
    assert set(asked) == {64 // score_module.MOST_BLOCKS}


def test_nothing_to_do(tmp_path):
    (tmp_path / "h.csv").write_text("id,output,expected\n")
    found = score(tmp_path / "h.csv", METRICS, to=tmp_path / "s.parquet")
    assert pq.read_table(tmp_path / "s.parquet").column_names == ["id", *METRICS]
    assert found.rows == 0
    assert found.metrics["indel"].mean is None
    assert "rows     0 (0 with a null)" in str(found)
    nulls = pa.table({"output": pa.nulls(3), "expected": ["a", None, "b"]})
    found = score(nulls, METRICS, to=tmp_path / "n.parquet")
    assert (found.rows, found.nulls, found.metrics["indel"].scored) == (3, 3, 0)
    assert pq.read_table(tmp_path / "n.parquet")["indel"].null_count == 3


def test_normalisation_comes_first():
    table = pa.table({"output": ["  The CAT ", None], "expected": ["the cat", "x"]})
    normalize = Normalize(case="casefold", strip=True)
    assert score(table, "levenshtein", normalize=normalize).metrics["levenshtein"].mean == 1


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_every_metric(record):
    found = score(TABLE, record.name, score="distance").metrics[record.name]
    distances = rs.pairwise(LEFT, RIGHT, record(), score="distance")
    assert found.scored == 6
    assert found.mean == pytest.approx(np.nanmean(distances), rel=1e-15)
    assert (found.min, found.max) == (np.nanmin(distances), np.nanmax(distances))


def test_tokens_are_for_the_metrics_that_name_none(tmp_path):
    metrics = ["jaccard", "jaccard:chars:1", "levenshtein", "dice", rs.Cosine()]
    options = {"tokens": "chars:2", "multiset": False, "to": tmp_path / "s.parquet"}
    found = score(TABLE, metrics, **options)
    assert list(found.metrics)[:4] == metrics[:4]
    table = pq.read_table(tmp_path / "s.parquet")
    fields = [json.loads(table.schema.field(n).metadata[b"resemblance"]) for n in found.metrics]
    assert [field["tokens"] for field in fields] == ["chars:2", "chars:1", None, "chars:2", "words"]
    np.testing.assert_array_equal(
        table["dice"].to_numpy(), rs.pairwise(LEFT, RIGHT, rs.Dice("chars:2", multiset=False))
    )
    assert found.nulls == 2


def test_variants():
    names = ["jaro_winkler:stringdist", "jaro_winkler"]
    table = pa.table({"output": ["abcdef"], "expected": ["abxyzw"]})
    means = [m.mean for m in score(table, names).metrics.values()]
    assert means[0] > means[1]  # boosted however low
    refused("jaro_winkler has no variant 'r'", table, "jaro_winkler:r")


def test_bad_rows_are_skipped_and_counted(tmp_path, caplog):
    path = tmp_path / "x.csv"
    path.write_text("output,expected\na,a\nb\nc,d\n")
    refused("x.csv: line 3: expected 2 fields, got 1", path, "lev", to=tmp_path / "s.csv")
    assert left_behind(tmp_path) == ["x.csv"]
    found = score(path, "lev", on_bad_rows="skip", to=tmp_path / "s.csv")
    assert (found.rows, found.skipped) == (2, 1)
    assert "skipped as bad: 1" in caplog.text
    assert "1 skipped as bad" in str(found)


# -- the numbers ----------------------------------------------------------------------------------


@given(
    scores=st.lists(st.floats(0, 1) | st.sampled_from([0.0, 0.1, 0.8, 2 / 3, 1.0]), min_size=1),
    cuts=st.lists(st.integers(0, 50)),
)
def test_numbers_of_fractions(scores, cuts):
    tally = Tally(whole=False, bound=0.8)
    for lo, hi in pairwise([0, *sorted(cuts), max([0, *cuts, len(scores)])]):
        tally.add(np.array(scores[lo:hi], np.float64))
    found = tally.summary()
    assert found.scored == len(scores)
    assert tally.below == sum(s < 0.8 for s in scores)
    assert math.isclose(found.mean, math.fsum(scores) / len(scores), rel_tol=1e-15, abs_tol=1e-22)
    assert (found.min, found.max) == (min(scores), max(scores))
    ranks = np.percentile(scores, (5, 50, 95), method="inverted_cdf")
    np.testing.assert_allclose((found.p5, found.p50, found.p95), ranks, atol=0.5001 / STEPS)
    assert sum(found.histogram) == len(scores)


@given(st.lists(st.integers(0, 300), min_size=1))
def test_numbers_of_whole_distances(distances):
    tally = Tally(whole=True)
    for distance in distances:
        tally.add(np.array([distance], np.uint16))
    found = tally.summary()
    ranks = np.percentile(distances, (5, 50, 95), method="inverted_cdf")
    assert (found.p5, found.p50, found.p95) == tuple(ranks)
    assert (found.min, found.max) == (min(distances), max(distances))
    assert found.mean == sum(distances) / len(distances)
    bars = np.histogram(distances, 10, (0, max(max(distances), 1)))[0]
    assert sum(found.histogram) == bars.sum()


def test_a_mean_of_equal_scores_is_that_score():
    """Added up as floats, ten times 0.8 is not eight."""
    tally = Tally(whole=False)
    for _ in range(77):
        tally.add(np.full(1001, 0.8))
    assert tally.summary().mean == 0.8
    assert tally.summary().p50 == 0.8
    assert tally.summary().histogram == (0,) * 8 + (77 * 1001, 0)


def test_the_summary_in_words():
    found = score(TABLE, METRICS)
    lines = str(found).splitlines()
    assert lines[0] == "rows     8 (2 with a null, 2 without hamming:strict)"
    assert " ".join(lines[1].split()) == "metric n nulls mean p5 p50 p95 min max spread"
    assert " ".join(lines[2].split()[:9]) == "levenshtein 6 2 0.69286 0 0.6 1 0 1"
    assert lines[2].endswith("  ▃    ▃▃  █")
    assert lines[5] == "output   none written"
    assert found.brief.splitlines()[1].startswith("means    levenshtein 0.69286, indel 0.7")


# -- gates ----------------------------------------------------------------------------------------

PAIRS = pa.table({"output": ["abcde"] * 4 + [None], "expected": ["abcde", "abcdX"] * 2 + ["a"]})


@pytest.mark.parametrize(
    ("gates", "failed"),
    [
        ({"fail_under": {"lev": 0.9}}, []),
        ({"fail_under": {"lev": 0.91}}, ["mean: lev is 0.9, under 0.91"]),
        ({"fail_rows_under": {"lev": 0.8}}, []),
        (
            {"fail_rows_under": {"lev": 0.81}},
            ["rows: 2 of 4 scored (0.5) have lev under 0.81, and none may"],
        ),
        ({"fail_rows_under": {"lev": (0.81, 0.5)}}, []),
        ({"fail_rows_under": {"lev": (0.81, 0.4)}}, ["(0.5) have lev under 0.81, and at most 0.4"]),
        ({"fail_under": {"lev": 1}, "fail_rows_under": {"osa": (1, 0)}}, ["mean: lev", "have osa"]),
    ],
)
def test_gates(tmp_path, gates, failed):
    found = score(PAIRS, ["lev", "osa"], to=tmp_path / "s.csv", **gates)
    assert len(found.failed) == len(failed)
    for said, expected in zip(found.failed, failed, strict=True):
        assert expected in said
    # written all the same
    assert pcsv.read_csv(tmp_path / "s.csv").num_rows == 5


def test_a_gate_of_which_nothing_has_a_score_is_not_met():
    nothing = pa.table({"output": [None, "a"], "expected": ["a", "bb"]})
    metric = "hamming:strict"
    found = score(nothing, metric, fail_under={metric: 0.0}, fail_rows_under={metric: (0.5, 1.0)})
    assert [said[:29] for said in found.failed] == [
        "mean: no row has a score of h",
        "rows: none has a score of ham",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fail_under": {"levenshtein": 0.5}}, "'levenshtein' is not scored here; .* are lev"),
        ({"fail_rows_under": {"osa": 0.5}}, "'osa' is not scored here"),
        ({"fail_under": {"lev": 80}}, "fail_under: lev=80: give numbers from 0 to 1"),
        ({"fail_rows_under": {"lev": (0.5, 10)}}, "fail_rows_under: lev=10: give numbers from 0"),
        ({"fail_under": {"lev": float("nan")}}, "give numbers from 0 to 1"),
        ({"fail_under": {"lev": 1}, "score": "distance"}, "gates are on similarities"),
        ({"score": "percent"}, "score is 'percent'"),
        ({"metrics": []}, "no metric to score with"),
        ({"metrics": "levenstein"}, "did you mean 'levenshtein'"),
        ({"left": "expected"}, "left and right are both 'expected'"),
        ({"left": "outputs"}, "no column 'outputs'; did you mean 'output'"),
        ({"left": "id"}, "column 'id' is int64, not text"),
        ({"threads": -1}, "threads is -1"),
        ({"tokens": "words"}, "no metric here is of tokens"),
        ({"tokens": "letters", "metrics": "jaccard"}, "tokens must be words, words:N or chars:N"),
        ({"multiset": True}, "no metric here is of tokens"),
        ({"to": "s.xlsx"}, "its extension does not name a format"),
        ({"to": "/proc/none/s.csv"}, "cannot be written"),
    ],
)
def test_wrong_options(options, message):
    refused(message, TABLE, **{"metrics": "lev", **options})


# -- errors and interrupts ------------------------------------------------------------------------


def test_existing_output_is_replaced_only_when_told_to_and_never_the_input(tmp_path):
    to = tmp_path / "s.parquet"
    score(TABLE, "lev", to=to)
    refused(r"exists; .*--overwrite", TABLE, "lev", to=to)
    assert score(TABLE, "lev", to=to, overwrite=True).rows == 8
    pq.write_table(TABLE, to)
    refused("is input and would be replaced", to, "lev", to=to, overwrite=True)
    assert pq.read_table(to).equals(TABLE)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_what_goes_wrong_while_scoring_leaves_nothing(many, tmp_path, monkeypatch, error):
    calls = iter(range(100))

    def failing(*arguments, **options):
        if next(calls) == 5:
            raise error
        return rs.pairwise(*arguments, **options)

    monkeypatch.setattr(score_module, "pairwise", failing)
    monkeypatch.setattr(score_module, "BLOCK_BYTES", 1000)
    with pytest.raises(error):
        score(many, "lev", to=tmp_path / "s.parquet")
    assert left_behind(tmp_path) == ["many.parquet"]
    for thread in threading.enumerate():
        if thread.name.startswith("resemblance-score"):
            thread.join(10)
            assert not thread.is_alive()


def test_damage_further_on_leaves_nothing(tmp_path):
    lines = [json.dumps({"output": "a" * 50, "expected": "b"})] * 5000 + ["{"]
    (tmp_path / "x.jsonl").write_text("\n".join(lines))
    refused("line 5001: not JSON", tmp_path / "x.jsonl", "lev", to=tmp_path / "s.parquet")
    assert left_behind(tmp_path) == ["x.jsonl"]


PEAK = """
import sys
from resemblance_io import score
score(sys.argv[1], ["levenshtein", "osa"], to=sys.argv[2])
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.slow
@pytest.mark.jit
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_does_not_grow_with_the_rows(tmp_path):
    """A file sixteen times as large, of 400 MB of text, takes about the same memory."""
    rows = 100_000
    texts = [f"{i:0250d}" for i in range(rows)]
    part = pa.table({"output": texts, "expected": texts[::-1], "id": range(rows)})
    peaks = []
    for times in (1, 16):
        path = tmp_path / f"{times}.parquet"
        with pq.ParquetWriter(path, part.schema) as writer:
            for _ in range(times):
                writer.write_table(part)
        command = [sys.executable, "-P", "-c", PEAK, path, tmp_path / f"{times}.scores.parquet"]
        env = {"PYTHONPATH": f"{ROOT / 'engine'}:{ROOT / 'io'}"}
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=env)
        assert done.returncode == 0, done.stderr
        peaks.append(int(done.stdout) * 1024)
    assert peaks[1] < peaks[0] + (150 << 20)
    assert peaks[1] < 1 << 30
