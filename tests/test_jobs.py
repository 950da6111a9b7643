"""Whole jobs: what goes in, what comes out, for every kind of input."""

import datetime
import functools
import itertools
import json
import logging
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import resemblance as rs
from naive import levenshtein
from resemblance.metrics import RECORDS
from resemblance_io import InputError, join, top_k
from resemblance_io.jobs import dedup as dedup_module
from resemblance_io.jobs import top_k as top_k_module
from resemblance_io.jobs.inputs import joined, read_texts, same_texts
from resemblance_io.jobs.join import plan_join
from resemblance_io.sources import scan

dedup = functools.partial(dedup_module.dedup, metric="levenshtein")
plan_dedup = functools.partial(dedup_module.plan_dedup, metric="levenshtein")

FILES = {
    "_manifest.json",
    "clusters.parquet",
    "kept.parquet",
    "pairs.parquet",
    "removed.parquet",
    "stats.json",
}


def read(out, name):
    return pq.read_table(out / f"{name}.parquet")


def rows(out, name):
    return read(out, name).to_pylist()


def contents(out):
    """All bytes of an output but those of timings."""
    return {p.name: p.read_bytes() for p in Path(out).iterdir() if p.name != "stats.json"}


def refused(message, job, *arguments, **options):
    with pytest.raises(InputError, match=message) as caught:
        job(*arguments, **options)
    assert "\n" not in str(caught.value)


def partition(out):
    """Clusters of more than one row, as sets of (file, row of the file)."""
    clusters: dict[int, set[tuple[str, int]]] = {}
    for row in rows(out, "clusters"):
        place = Path(row["file"]).name, row["file_row"]
        clusters.setdefault(row["cluster"], set()).add(place)
    return {frozenset(c) for c in clusters.values() if len(c) > 1}


def check(out, texts, summary):
    """What holds for every output."""
    n = len(texts)
    assert {p.name for p in out.iterdir()} == FILES
    kept, removed, clusters = (rows(out, x) for x in ("kept", "removed", "clusters"))
    assert len(kept) == summary.kept
    assert len(removed) == summary.removed
    assert summary.rows == n == len(kept) + len(removed) == len(clusters)
    assert [c["row"] for c in clusters] == list(range(n))
    survivors = [c["row"] for c in clusters if c["kept"]]
    # exactly one of each cluster, named by it; rows without duplicates are their own
    assert sorted({c["cluster"] for c in clusters}) == survivors
    assert [k["text"] for k in kept] == [texts[row] for row in survivors]
    gone = [c for c in clusters if not c["kept"]]
    assert [(r["text"], r["duplicate_of"]) for r in removed] == [
        (texts[c["row"]], c["cluster"]) for c in gone
    ]
    for r in removed:
        same = r["text"] == texts[r["duplicate_of"]]
        assert r["reason"] == ("exact" if same else "near")
    stats = json.loads((out / "stats.json").read_text())
    assert (stats["rows"], stats["kept"], stats["pairs"]) == (n, summary.kept, summary.pairs)
    assert stats["nulls"] == texts.count(None) == summary.nulls
    blank = [t for t in texts if t is not None and not t.strip()]
    assert stats["blanks"] == len(blank) == summary.blanks


# -- dedup: the cases -----------------------------------------------------------------------------


def test_exactly_one_row_of_each_cluster_is_kept(tmp_path):  # C023
    texts = ["a b c d e", "a b c d e", "x y z", "a b c d e!", "x y z"]
    summary = dedup(pa.table({"text": texts}), to=tmp_path / "out", max_distance=1)
    out = tmp_path / "out"
    check(out, texts, summary)
    assert rows(out, "kept") == [{"text": "a b c d e"}, {"text": "x y z"}]
    assert rows(out, "removed") == [
        {"text": "a b c d e", "duplicate_of": 0, "score": 0.0, "reason": "exact"},
        {"text": "a b c d e!", "duplicate_of": 0, "score": 1.0, "reason": "near"},
        {"text": "x y z", "duplicate_of": 2, "score": 0.0, "reason": "exact"},
    ]
    assert [c["cluster"] for c in rows(out, "clusters")] == [0, 0, 2, 0, 2]
    assert [tuple(p.values()) for p in rows(out, "pairs")] == [
        (0, 1, 0.0),
        (0, 3, 1.0),
        (2, 4, 0.0),
    ]
    assert (summary.exact_duplicates, summary.near_duplicates, summary.clusters) == (2, 1, 2)
    assert (summary.largest_cluster, summary.largest_share) == (3, 0.6)
    assert summary.worst_score == 1.0
    assert pq.read_schema(out / "clusters.parquet").field("row").type == pa.int64()
    assert pq.read_schema(out / "removed.parquet").field("duplicate_of").type == pa.int64()


@pytest.mark.parametrize("as_input", [pa.table, pd.DataFrame, pl.DataFrame])
def test_nulls_stay_nulls(as_input):  # C002
    texts = ["example1", "", None, "nan", "NaN", "None", None]
    found = dedup(as_input({"text": texts}), max_distance=0)
    assert (found.rows, found.nulls, found.blanks, found.removed) == (7, 2, 1, 0)


def test_blank_is_not_a_duplicate_of_blank(tmp_path):  # C005
    texts = ["", "", "   ", "\t", "+", "-", "real text"]
    found = dedup(pa.table({"text": texts}), to=tmp_path / "out", min_similarity=0.1)
    check(tmp_path / "out", texts, found)
    assert (found.blanks, found.removed) == (4, 0)
    assert dedup(pa.table({"text": texts}), max_distance=1).removed == 1  # "+" and "-"


@pytest.fixture
def chain():  # C025
    base = list("abcdefghijklmnopqrstuvwxyz0123456789")
    texts = []
    for i in range(len(base)):
        base[i] = "#"
        texts.append("".join(base))
    return texts


def test_a_chain_is_reported(tmp_path, chain, caplog):
    table = pa.table({"text": chain})
    found = dedup(table, to=tmp_path / "out", min_similarity=35 / 36, clusters="components")
    assert (found.largest_cluster, found.largest_share) == (36, 1.0)
    assert found.worst_score == 1 / 36
    assert "36 of 36 rows (100 %)" in caplog.text
    stats = json.loads((tmp_path / "out" / "stats.json").read_text())
    assert stats["worst_score"] == 1 / 36
    assert stats["largest_clusters"] == [{"row": 0, "size": 36, "text": chain[0]}]


def test_stars_do_not_chain(chain, tmp_path):
    found = dedup(pa.table({"text": chain}), to=tmp_path / "out", min_similarity=35 / 36)
    assert found.worst_score == 35 / 36
    assert found.largest_cluster <= 3
    assert all(row["score"] >= 35 / 36 for row in rows(tmp_path / "out", "removed"))


def test_a_score_equal_to_the_threshold_is_in(tmp_path):  # C034
    for a, b, threshold in [("bc", "bca", 2 / 3), ("abcd", "abce", 0.75), ("abcde", "abcdX", 0.8)]:
        table = pa.table({"text": [a, b]})
        assert dedup(table, min_similarity=threshold).near_duplicates == 1
        assert dedup(table, min_similarity=np.nextafter(threshold, 1)).near_duplicates == 0
        found = join(
            table, on="text", to=tmp_path / "p.csv", min_similarity=threshold, overwrite=True
        )
        assert found.pairs == 1


@pytest.fixture
def foxes(tmp_path):  # C044
    for w in ("red fox", "red fax", "rad fox"):
        table = pa.table({"text": [f"{w} {n}" for n in range(200)], "n": range(200)})
        pq.write_table(table, tmp_path / f"{w}.parquet", row_group_size=70)
    return sorted(tmp_path.glob("*.parquet"))


def test_output_is_the_same_for_any_number_of_threads(foxes, tmp_path):
    for threads in (1, 2):
        dedup(foxes, to=tmp_path / f"{threads}", min_similarity=0.9, threads=threads)
    assert contents(tmp_path / "1") == contents(tmp_path / "2")


@pytest.mark.parametrize("options", [{"clusters": "components"}, {"keep": "longest"}])
def test_the_partition_does_not_depend_on_the_order_of_files(foxes, tmp_path, options):
    if "keep" in options:  # stars of alike texts only: no row has two to choose from
        for i, path in enumerate(foxes):
            texts = [f"{'abc'[i] * (i + 1)}{'xyz'[n % 3] * 30}{n % 3}" for n in range(200)]
            pq.write_table(pa.table({"text": texts}), path)
    dedup(foxes, to=tmp_path / "1", min_similarity=0.9, **options)
    dedup(foxes[::-1], to=tmp_path / "2", min_similarity=0.9, **options)
    assert partition(tmp_path / "1") == partition(tmp_path / "2") != set()


def test_clusters_hold_verified_edges_only(tmp_path):  # C073
    texts = ["alpha beta gamma delta", "one two three four"]
    texts += [f"{t}!" for t in texts]
    for clusters in ("star", "components"):
        out = tmp_path / clusters
        dedup(pa.table({"text": texts}), to=out, max_distance=1, clusters=clusters)
        assert [c["cluster"] for c in rows(out, "clusters")] == [0, 1, 0, 1]


def test_nothing_to_do(tmp_path):  # C064
    (tmp_path / "h.csv").write_text("id,text\n")
    pq.write_table(
        pa.table({"id": pa.array([], pa.int64()), "text": pa.array([], pa.string())}),
        tmp_path / "z.parquet",
    )
    for name in ("h.csv", "z.parquet"):
        out = tmp_path / f"{name}.out"
        found = dedup(tmp_path / name, to=out)
        check(out, [], found)
        assert read(out, "kept").column_names == ["id", "text"]
        assert read(out, "removed").column_names[2:] == ["duplicate_of", "score", "reason"]
        assert "0 null" in str(found)
        pairs = join(tmp_path / name, on="text", to=tmp_path / f"{name}.parquet", max_distance=1)
        best = top_k(tmp_path / name, tmp_path / name, on="text", to=tmp_path / f"{name}.jsonl")
        assert (pairs.pairs, best.matches) == (0, 0)
    (tmp_path / "z.csv").write_bytes(b"")
    refused("z.csv: an empty CSV file", dedup, tmp_path / "z.csv", to=tmp_path / "never")
    refused("list of inputs is empty", dedup, [], to=tmp_path / "never")
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize("texts", [["only"], [None], [None, None], [""], ["\u3000", "x"]])
def test_little_to_do(tmp_path, texts):
    table = pa.table({"text": pa.array(texts, pa.string())})
    found = dedup(table, to=tmp_path / "out")
    check(tmp_path / "out", texts, found)
    assert (found.removed, found.clusters, found.largest_cluster) == (0, 0, 1)
    assert found.worst_score is None


def test_a_column_name_that_occurs_twice(tmp_path):  # C065
    path = tmp_path / "dup.csv"
    path.write_text("id,text,text\n1,left,right\n2,left,right\n")
    refused(r"'text' occurs 2 times \(columns 1, 2\)", dedup, path, "text", tmp_path / "o")
    refused(r"'text' occurs 2 times .* cannot be carried", dedup, path, "id", tmp_path / "o")
    assert dedup(path, "id", max_distance=1).removed == 1  # nothing is carried along
    assert join(path, on="id", to=tmp_path / "p.csv", max_distance=1).pairs == 1


# -- dedup: what it keeps, and how ----------------------------------------------------------------

texts_strategy = st.lists(
    st.one_of(st.none(), st.text("ab ", max_size=4), st.text("aβ中\U0001f600", max_size=4)),
    max_size=30,
)


@settings(max_examples=25)
@given(
    texts=texts_strategy,
    cut=st.integers(0, 30),
    keep=st.sampled_from(["first", "last", "longest", "shortest", "max:n", "min:n"]),
    clusters=st.sampled_from(["star", "components"]),
    data=st.data(),
)
def test_invariants(tmp_path_factory, texts, cut, keep, clusters, data):
    folder = tmp_path_factory.mktemp("x")
    numbers = data.draw(
        st.lists(st.one_of(st.none(), st.integers(0, 3)), min_size=len(texts), max_size=len(texts))
    )
    table = pa.table({"text": pa.array(texts, pa.string()), "n": pa.array(numbers, pa.int64())})
    for i, part in enumerate((table[:cut], table[cut:])):
        pq.write_table(part, folder / f"{i}.parquet")
    out = folder / "out"
    found = dedup(folder, to=out, max_distance=1, keep=keep, clusters=clusters)
    check(out, texts, found)
    assert dedup(table, max_distance=1, keep=keep, clusters=clusters).kept == found.kept
    for c in rows(out, "clusters"):
        assert c["file"] == str(folder / f"{int(c['row'] >= cut)}.parquet")
        assert c["file_row"] == (c["row"] if c["row"] < cut else c["row"] - cut)
    for p in rows(out, "pairs"):
        assert p["left"] < p["right"]
        assert levenshtein(texts[p["left"]], texts[p["right"]]) == p["score"] <= 1


@pytest.mark.parametrize(
    ("keep", "survivor"),
    [
        ("first", 0),
        ("last", 3),
        ("longest", 1),
        ("shortest", 2),
        ("max:n", 3),
        ("min:n", 1),
        ("max:when", 2),
        ("min:tag", 2),
        ("max:kind", 1),
        ("max:nothing", 0),
        ("min:half", 3),
        ("max:text", 3),
        ("min:blob", 1),
    ],
)
def test_keep_policies(tmp_path, keep, survivor):
    day = datetime.date(2024, 1, 1)
    table = pa.table(
        {
            "text": ["aaaaa", "aaaaab", "aaaa", "aaaac"],
            "n": [float("nan"), 1, None, 2],
            "when": [day, None, day + datetime.timedelta(1), day],
            "tag": pa.array(["b", "b", "a", "c"], pa.string_view()),
            "kind": pa.array(["x", "y", None, "y"]).dictionary_encode(),
            "nothing": pa.nulls(4),
            "half": pa.array([2, 2, None, 1], pa.float16()),
            "blob": pa.array([b"b", b"a", b"a", None], pa.binary_view()),
        }
    )
    found = dedup(table, to=tmp_path / "out", max_distance=2, keep=keep, clusters="components")
    assert found.kept == 1
    assert {c["cluster"] for c in rows(tmp_path / "out", "clusters")} == {survivor}


def test_input_columns_pass_through_untouched(tmp_path):
    extension = pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": 1}'] * 3))
    table = pa.table(
        {
            "text": pa.array(["same", "same", "other"]).dictionary_encode(),
            "view": pa.array(["short", None, "a value longer than twelve bytes"], pa.string_view()),
            "nested": pa.array(
                [{"a": [1, 2], "b": "x"}, None, {"a": [], "b": None}],
                pa.struct([("a", pa.list_(pa.int8())), ("b", pa.string_view())]),
            ),
            "map": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int32())),
            "fixed": pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int16(), 2)),
            "json": extension,
            "time": pa.array([0, 1, 2], pa.timestamp("us", "Europe/Paris")),
            "decimal": pa.array([1, 2, None], pa.decimal128(20, 3)),
            "bytes": pa.array([b"\xff", b"", None], pa.large_binary()),
            "null": pa.nulls(3),
            "category": pa.DictionaryArray.from_arrays(
                pa.array([0, 1, None], pa.int32()), ["y", "x"], ordered=True
            ),
        },
        metadata={"made by": "hand"},
    )
    pq.write_table(table, tmp_path / "in.parquet")
    source = pq.read_table(tmp_path / "in.parquet")
    assert source.schema == table.schema
    dedup(tmp_path / "in.parquet", to=tmp_path / "out")
    kept = read(tmp_path / "out", "kept")
    removed = read(tmp_path / "out", "removed").drop_columns(["duplicate_of", "score", "reason"])
    assert kept.schema.equals(source.schema, check_metadata=True)
    assert removed.schema == source.schema
    assert kept.to_pylist() == [source.to_pylist()[i] for i in (0, 2)]
    assert removed.to_pylist() == [source.to_pylist()[1]]


def test_columns_named_like_ours_are_left_alone(tmp_path):
    table = pa.table({"text": ["a", "a"], "score": [7, 8], "reason": ["x", "y"]})
    dedup(table, to=tmp_path / "out")
    assert rows(tmp_path / "out", "removed") == [
        {
            "text": "a",
            "score": 8,
            "reason": "y",
            "duplicate_of": 0,
            "dedup_score": 1.0,
            "dedup_reason": "exact",
        }
    ]
    # what was removed can itself be searched
    again = dedup(tmp_path / "out" / "removed.parquet", to=tmp_path / "again")
    assert again.kept == 1


def test_batches_of_all_widths_are_put_together(tmp_path):
    parts: list[list[str | None]] = [
        ["ascii", None],
        ["é", ""],
        [],
        [None, "中文"],
        ["\U0001f600", "z"],
    ]
    for i, part in enumerate(parts):
        pq.write_table(pa.table({"text": pa.array(part, pa.string())}), tmp_path / f"{i}.parquet")
    source = scan(tmp_path, ["text"], text=["text"])
    strings = read_texts(source, "text", lambda done, total: None).strings
    whole = list(itertools.chain(*parts))
    assert strings.to_list() == whole
    at = 0
    for part in parts:
        piece = rs.Strings.pack(part)
        assert same_texts(strings, at, piece)
        if part:
            assert not same_texts(strings, at, rs.Strings.pack([*part[:-1], "?"]))
            assert not same_texts(strings, at + 1, piece)
        at += len(part)
    assert not same_texts(rs.Strings.pack([None]), 0, rs.Strings.pack([""]))
    assert len(joined([])) == 0


def test_several_files_in_several_formats(tmp_path):
    pq.write_table(pa.table({"text": ["pear", "plum"], "id": ["1", "2"]}), tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("id,text\n3,pear\n4,fig\n")
    (tmp_path / "c.jsonl").write_text('{"id": "5", "text": "fig"}\n{"id": "6", "text": null}\n')
    found = dedup(tmp_path, to=tmp_path / "out")
    check(tmp_path / "out", ["pear", "plum", "pear", "fig", "fig", None], found)
    assert read(tmp_path / "out", "kept")["id"].to_pylist() == ["1", "2", "4", "6"]
    places = [(Path(c["file"]).name, c["file_row"]) for c in rows(tmp_path / "out", "clusters")]
    assert places == [(n, i) for n in ("a.parquet", "b.csv", "c.jsonl") for i in (0, 1)]


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl"])
def test_bad_rows_are_skipped_counted_and_listed(tmp_path, name, caplog):
    path = tmp_path / name
    if name == "x.csv":
        path.write_text("text,n\na,1\nb,too,many\na,2\n")
    else:
        path.write_text('{"text": "a", "n": 1}\n{"text": 42, "n": "x"}\n{"text": "a", "n": 2}\n')
    refused(f"{name}: line [23]: ", dedup, path, to=tmp_path / "out")
    found = dedup(path, to=tmp_path / "out", on_bad_rows="skip")
    assert (found.rows, found.removed, found.skipped) == (2, 1, 1)
    stats = json.loads((tmp_path / "out" / "stats.json").read_text())
    assert [row["line"] for row in stats["skipped_rows"]] == [3 if name == "x.csv" else 2]
    assert "skipped as bad: 1, the first: " in caplog.text
    assert "1 skipped as bad" in str(found)


def test_a_corpus_with_known_truth(tmp_path):
    rs.io.sample(tmp_path / "c.parquet", rows=2000, seed=3)
    found = dedup(tmp_path / "c.parquet", to=tmp_path / "out", max_distance=0)
    truth = pq.read_table(tmp_path / "c.truth.parquet")
    # every exact copy goes; further ones are what has been shuffled or edited into it again
    copies = pc.sum(pc.equal(truth["kind"], "exact")).as_py()
    assert found.exact_duplicates >= copies > 0
    assert found.near_duplicates == 0
    assert found.nulls == pc.sum(pc.equal(truth["kind"], "null")).as_py()
    gone = read(tmp_path / "out", "removed")["id"].to_pylist()
    kinds = truth["kind"].to_pylist()
    assert {kinds[row] for row in gone} <= {"exact", "original", "edited", "shuffled"}


# -- every metric, any tokens, made alike ---------------------------------------------------------

TITLES = ["The quick brown fox", "the quick  brown fox", "A slow red hen", "the quick brown", None]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_jobs_take_every_metric(tmp_path, record):
    texts = [*TITLES, "", "fox brown quick the"]
    table = pa.table({"text": texts})
    close = rs.join(texts, metric=record(), min_similarity=0.8)
    pairs = join(table, on="text", to=tmp_path / "p.csv", metric=record.name, min_similarity=0.8)
    assert pairs.pairs == len(close.left)
    found = dedup(table, to=tmp_path / "out", metric=record.name)
    check(tmp_path / "out", texts, found)
    stats = json.loads((tmp_path / "out" / "stats.json").read_text())
    assert stats["options"]["metric"] == record().label
    assert f"{record.name} similarity >= 0.8" in str(found)
    best = top_k(table, table, on="text", to=tmp_path / "m.csv", metric=record.name, k=1)
    assert best.matches == 6
    for plan in (
        plan_dedup(table, metric=record.name),
        plan_join(table, on="text", metric=record.name, min_similarity=0.8),
        plan_join(table, table, on="text", metric=record.name, max_distance=0.4),
    ):
        assert plan.compared is None or 0 <= plan.compared <= plan.pairs
        assert re.search(r"^pairs   [\d,]+", str(plan), re.M)


def test_texts_are_made_alike_before_they_are_compared(tmp_path):
    table = pa.table({"text": TITLES})
    normalize = rs.Normalize(case="casefold", whitespace="collapse")
    found = dedup(table, to=tmp_path / "out", max_distance=0, normalize=normalize)
    check(tmp_path / "out", TITLES, found)
    # what is written is as it was; only texts that were equal before are exact duplicates
    assert rows(tmp_path / "out", "removed") == [
        {"text": TITLES[1], "duplicate_of": 0, "score": 0.0, "reason": "near"}
    ]
    stats = json.loads((tmp_path / "out" / "stats.json").read_text())
    assert stats["options"]["normalize"] == "casefold+collapse"
    to = tmp_path / "p.jsonl"
    assert join(table, on="text", to=to, max_distance=0, normalize=normalize).pairs == 1
    best = top_k(
        table, table, on="text", to=tmp_path / "m.parquet", k=2, max_distance=0, normalize=normalize
    )
    assert best.matches == 6
    assert rows(tmp_path, "m")[1]["choice_text"] == TITLES[1]
    assert plan_dedup(table, max_distance=0, normalize=normalize).near == 0  # one text of two
    assert plan_join(table, on="text", max_distance=0, normalize=normalize).near == 1


def test_what_is_blank_once_made_alike_is_no_duplicate():
    table = pa.table({"text": ["...", "!!!", "a", "a"]})
    found = dedup(table, max_distance=0, normalize=rs.Normalize(punctuation="ascii"))
    assert (found.blanks, found.removed) == (2, 1)


def test_tokens(tmp_path):
    table = pa.table({"text": ["to be or not", "to be or", "be to or not"]})

    def found(metric, tokens):
        to = tmp_path / "out"
        dedup(table, to=to, metric=metric, tokens=tokens, min_similarity=0.6, overwrite=True)
        options = json.loads((to / "stats.json").read_text())["options"]
        return options["tokens"], read(to, "removed")["duplicate_of"].to_pylist()

    assert found("jaccard", None) == ("words", [0, 0])
    assert found("jaccard", "words:2") == ("words:2", [0])
    assert found("jaccard:words:2", None) == ("words:2", [0])
    assert found("jaccard", "chars:24") == ("chars:24", [])
    assert found(rs.Jaccard("words:4"), None) == ("words:4", [])


def test_words_where_most_texts_have_one_are_warned_about(caplog):
    japanese = ["東京タワー", "東京スカイツリー", "大阪城", "京都 御所", None, ""] * 5
    dedup(pa.table({"text": japanese}), metric="jaccard")
    assert "15 of 20 texts looked at are a single word" in caplog.text
    assert "--tokens chars:3" in caplog.text
    caplog.clear()
    dedup(pa.table({"text": japanese}), metric="jaccard", tokens="chars:3")
    dedup(pa.table({"text": japanese}), metric="levenshtein")
    dedup(pa.table({"text": TITLES}), metric="jaccard")
    dedup(pa.table({"text": pa.nulls(3)}), metric="jaccard")
    assert caplog.text == ""


@pytest.mark.parametrize("similarity", [0.0, 0.3, 0.5, 2 / 3, 0.9, 1.0])
def test_plans_count_the_pairs_within_reach_of_sums(similarity):
    lengths = np.random.default_rng(1).integers(1, 12, 40)
    texts = ["x" * n for n in lengths]
    # of such texts, the similarity depends on the lengths alone
    near = len(rs.join([f"{t}" for t in texts], metric="indel", min_similarity=similarity).left)
    plan = plan_dedup(pa.table({"t": texts}), "t", metric="indel", min_similarity=similarity)
    assert plan.compared == near
    plan = plan_dedup(pa.table({"t": texts}), "t", metric=rs.Hamming(pad=False))
    assert plan.compared == sum(a == b for a, b in itertools.combinations(lengths, 2))


# -- dedup: what it refuses -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"column": "texts"}, r"no column 'texts'; did you mean 'text'\? It has 'text', 'n'"),
        ({"column": "n"}, "column 'n' is int64, not text"),
        ({"keep": "max:m"}, "no column 'm'"),
        ({"keep": "max:list"}, r"keep is 'max:list', but column 'list' is list<.*no order"),
        ({"keep": "best"}, "keep is 'best'; use first, last"),
        ({"keep": "max:"}, "keep is 'max:'; use first, last"),
        ({"clusters": "single"}, "clusters is 'single'; use 'star' or 'components'"),
        ({"metric": "levenstein"}, r"did you mean 'levenshtein'\? \(known: levenshtein"),
        ({"min_similarity": 80}, "min_similarity must be from 0 to 1, got 80"),
        ({"max_distance": -1}, "max_distance must be a number from 0, got -1"),
        ({"max_distance": float("nan")}, "max_distance must be a number from 0, got nan"),
        ({"max_distance": 1, "min_similarity": 0.5}, "min_similarity or max_distance, not both"),
        ({"threads": -1}, "threads is -1"),
        ({"metric": 3}, "metric must be a name or a record, got int"),
        ({"tokens": "words:5"}, "levenshtein is not a metric of tokens; leave out 'words:5'"),
        ({"metric": "jaccard", "tokens": "letters"}, "tokens must be words, words:N or chars:N"),
        ({"metric": "jaccard:words:0"}, "tokens must be words, words:N or chars:N"),
        ({"to": "/proc/none/out"}, "/proc/none/out: cannot be written: No such file"),
    ],
)
def test_wrong_options(tmp_path, options, message):
    table = pa.table({"text": ["a", "b"], "n": [1, 2], "list": [[1], [2]]})
    refused(message, dedup, table, **{"to": tmp_path / "out", **options})
    assert not (tmp_path / "out").exists()


def test_existing_output_is_replaced_only_when_told_to(tmp_path):
    table = pa.table({"text": ["a"]})
    dedup(table, to=tmp_path / "out")
    refused(r"out: exists; .*--overwrite", dedup, table, to=tmp_path / "out")
    assert dedup(table, to=tmp_path / "out", overwrite=True).kept == 1


def test_an_output_never_replaces_its_own_input(tmp_path):
    dedup(pa.table({"text": ["a", "a"]}), to=tmp_path / "out")
    before = contents(tmp_path / "out")
    kept = tmp_path / "out" / "kept.parquet"
    refused("is input and would be replaced", dedup, kept, to=tmp_path / "out", overwrite=True)
    refused(
        "is input and would be replaced",
        join, kept, on="text", to=kept, max_distance=1, overwrite=True,
    )  # fmt: skip
    refused("is input", top_k, kept, kept, on="text", to=kept, overwrite=True)
    assert contents(tmp_path / "out") == before


@pytest.mark.parametrize(
    "texts", [["a", "c", "d"], ["a", "b"], ["a", "b", "c", "d"], ["a", None, "c"]]
)
def test_input_that_changes_between_the_passes(tmp_path, monkeypatch, texts):
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"text": ["a", "b", "c"]}), path)

    def meddling(*arguments, **options):
        pq.write_table(pa.table({"text": texts}), path)
        return rs.dedup(*arguments, **options)

    monkeypatch.setattr(dedup_module, "find_duplicates", meddling)
    refused("in.parquet: changed while it was read", dedup, path, to=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_interrupt_leaves_nothing(tmp_path, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(dedup_module, "find_duplicates", interrupted)
    with pytest.raises(KeyboardInterrupt):
        dedup(pa.table({"text": ["a"]}), to=tmp_path / "out")
    assert not [p for p in tmp_path.iterdir() if not p.name.endswith(".lock")]


# -- join -----------------------------------------------------------------------------------------

FRUIT = ["apple", "appel", None, "apple", "pear", ""]
OTHER = ["apples", "peer", None, ""]


def brute(left, right, limit):
    return [
        (i, j, float(levenshtein(a, b)))
        for i, a in enumerate(left)
        for j, b in enumerate(right or left)
        if a is not None and b is not None and (right or i < j) and levenshtein(a, b) <= limit
    ]


@pytest.mark.parametrize("right", [None, OTHER])
@pytest.mark.parametrize("name", ["p.parquet", "p.csv"])
def test_join(tmp_path, right, name):
    sides = [pa.table({"t": side}) for side in (FRUIT, right) if side is not None]
    found = join(*sides, on="t", to=tmp_path / name, max_distance=2)
    table = (pq.read_table if name == "p.parquet" else pcsv.read_csv)(tmp_path / name)
    expected = brute(FRUIT, right, 2)
    assert [tuple(map(float, row.values())) for row in table.to_pylist()] == expected
    assert found.pairs == len(expected)
    assert (found.left_rows, found.right_rows) == (6, right and 4)
    assert found.nulls == (2 if right else 1)
    assert f"pairs   {len(expected)}" in str(found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"a join needs a threshold: .*--max-distance 1"),
        ({"max_distance": 1, "on": "u"}, r"<Table>: no column 'u'. It has 't'"),
        ({"max_distance": 1, "to": "x.xlsx"}, "x.xlsx: its extension does not name a format"),
    ],
)
def test_wrong_joins(tmp_path, options, message):
    table = pa.table({"t": FRUIT})
    refused(message, join, table, **{"on": "t", "to": tmp_path / "p.parquet", **options})
    assert not [p for p in tmp_path.iterdir() if not p.name.endswith(".lock")]


# -- top-k ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [{}, {"max_distance": 1}, {"min_similarity": 0.5}])
def test_top_k(tmp_path, monkeypatch, threshold):
    queries, choices = pa.table({"t": FRUIT}), pa.table({"t": OTHER})
    found = top_k(queries, choices, on="t", to=tmp_path / "m.parquet", k=2, **threshold)
    score: Any = "distance" if "max_distance" in threshold else "similarity"
    best = rs.top_k(FRUIT, OTHER, k=2, score=score, **threshold)
    expected = [
        {
            "query": q,
            "rank": r + 1,
            "choice": c,
            "score": best.score[q, r],
            "query_text": FRUIT[q],
            "choice_text": OTHER[c],
        }
        for q, row in enumerate(best.index.tolist())
        for r, c in enumerate(row)
        if c >= 0
    ]
    assert rows(tmp_path, "m") == expected
    assert (found.queries, found.choices, found.matches) == (6, 4, len(expected))
    assert found.unmatched == 6 - len({row["query"] for row in expected})
    # the same by many small blocks of queries
    pq.write_table(queries, tmp_path / "q.parquet", row_group_size=1)
    monkeypatch.setattr(top_k_module, "BLOCK_MATCHES", 1)
    top_k([tmp_path / "q.parquet"], choices, on="t", to=tmp_path / "n.parquet", k=2, **threshold)
    assert (tmp_path / "n.parquet").read_bytes() == (tmp_path / "m.parquet").read_bytes()


def test_wrong_top_k(tmp_path):
    table = pa.table({"t": FRUIT})
    refused("k is 0", top_k, table, table, on="t", to=tmp_path / "m.csv", k=0)
    refused("no column 'u'", top_k, table, table, on="u", to=tmp_path / "m.csv")


# -- predictions ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "threshold", [{"max_distance": 2}, {"min_similarity": 0.6}, {"max_distance": 0}]
)
def test_plans_count_the_pairs_within_reach(threshold):
    rng = np.random.default_rng(1)
    left, right = (["x" * n for n in rng.integers(1, 12, 40)] for _ in range(2))

    def near(a, b):
        longer = max(len(a), len(b))
        gap = abs(len(a) - len(b))
        if "max_distance" in threshold:
            return gap <= threshold["max_distance"]
        return (longer - gap) / longer >= threshold["min_similarity"]

    plan = plan_dedup(pa.table({"t": [*left, None, "  "]}), "t", **threshold)
    assert plan.rows == (42,)
    assert plan.pairs == 40 * 39 // 2
    assert plan.compared == sum(near(a, b) for a, b in itertools.combinations(left, 2))
    plan = plan_join(pa.table({"t": left}), pa.table({"t": right}), on="t", **threshold)
    assert plan.rows == (40, 40)
    assert plan.compared == sum(near(a, b) for a in left for b in right)
    assert "nothing was written" in str(plan)


def test_a_plan_breaks_a_long_search_off(monkeypatch):
    from resemblance_io.jobs import plan as plan_module

    monkeypatch.setattr(plan_module, "TRIAL_SECONDS", 0.0)
    rng = np.random.default_rng(2)
    texts = ["".join(map(chr, row)) for row in rng.integers(97, 123, (4000, 200))]
    plan = plan_dedup(pa.table({"t": texts}), "t", min_similarity=0.5)
    assert plan.compared == plan.pairs
    assert 0 < plan.seconds < 600
    assert plan.near == 0


def test_plans_predict_the_pairs_within_the_threshold(monkeypatch):
    from resemblance_io.jobs import plan as plan_module

    texts = [f"{'abcdefghijklmnopqrst'[n % 20] * 30}{n:05d}" for n in range(2000)]
    table = pa.table({"t": [*texts, *texts[:7], None, ""]})
    exact = len(rs.join(texts, min_similarity=0.9).left)
    assert plan_dedup(table, "t", min_similarity=0.9).near == exact
    assert plan_join(table, on="t", min_similarity=0.9).near > exact
    # from a sample, where the search is too long to try
    monkeypatch.setattr(plan_module, "TRIAL_SECONDS", 0.0)

    def search(some, others, report):
        return len(rs.join(some, others, min_similarity=0.9).left)

    sample = plan_module._extrapolated(search, rs.Strings.pack(texts), None)
    assert 0.5 * exact < sample < 2 * exact


# -- the rest -------------------------------------------------------------------------------------


def test_the_facade():
    assert set(rs.io.__all__) == {
        "InputError", "dedup", "join", "sample", "scan", "score", "top_k",
    }  # fmt: skip
    assert rs.io.dedup is dedup_module.dedup


def test_a_large_cluster_is_warned_about_and_small_ones_are_not(caplog):
    with caplog.at_level(logging.WARNING, "resemblance"):
        dedup(pa.table({"text": ["same"] * 9 + ["other"]}))
        assert caplog.text == ""
        dedup(pa.table({"text": ["same"] * 10 + [f"{'abcdefghij'[i] * 9}" for i in range(10)]}))
    assert "one cluster holds 10 of 20 rows (50 %), around row 0: 'same'" in caplog.text
