"""Any source to batches: formats, faults, and what belongs together."""

import bz2
import csv
import gzip
import io
import json
import lzma
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb
import hypothesis.strategies as st
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings

from resemblance_io import columns, readers
from resemblance_io.discovery import File
from resemblance_io.errors import InputError
from resemblance_io.readers import BadRow
from resemblance_io.sources import scan


def read(source, *names, **options):
    """All rows of a source, after checking that the batches say where they belong."""
    run = scan(source, list(names) or None, **options)
    rows = 0
    in_file: dict[str, int] = {}
    batches = []
    for batch in run:
        assert batch.data.schema.equals(run.schema)
        assert batch.first_row == rows
        assert batch.file_row == in_file.get(batch.file, 0)
        rows += batch.data.num_rows
        in_file[batch.file] = batch.file_row + batch.data.num_rows
        batches.append(batch.data)
    return pa.Table.from_batches(batches, run.schema)


def outcome(source):
    """The number of rows, or the line that refuses to read them."""
    try:
        return read(source).num_rows
    except InputError as error:
        return str(error)


def refused(message, source, *names, **options):
    with pytest.raises(InputError, match=message) as caught:
        read(source, *names, **options)
    assert "\n" not in str(caught.value)


def text_of(source, **options):
    """The column ``text``, as a job reads it."""
    return [
        value
        for batch in scan(source, ["text"], text=["text"], **options)
        for value in columns.strings(batch.data.column("text")).to_list()
    ]


def write_csv(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def write_stream(path, table):
    with ipc.new_stream(path, table.schema) as stream:
        stream.write_table(table)


def write_file(path, table, **options):
    with ipc.new_file(path, table.schema, options=ipc.IpcWriteOptions(**options)) as file:
        file.write_table(table)


# -- where the rows are ---------------------------------------------------------------------------


@pytest.fixture
def corpus(tmp_path):
    """A folder with data in three formats, and much that is not data."""
    folder = tmp_path / "corpus"
    (folder / "b").mkdir(parents=True)
    (folder / "_temporary").mkdir()
    pq.write_table(pa.table({"text": ["one"]}), folder / "a.parquet")
    write_csv(folder / "b" / "1.csv", "text\ntwo\n")
    (folder / "b" / "2.jsonl").write_text('{"text": "three"}\n')
    for name in ("_SUCCESS", ".a.parquet.crc", "README.md", "_temporary/x.parquet", ".hidden.csv"):
        (folder / name).write_text("not data")
    (folder / "dataset_info.json").write_text("{\n}")
    return folder


def test_a_folder_is_read_in_order_of_paths_without_what_is_not_data(corpus):
    assert text_of(corpus) == ["one", "two", "three"]
    run = scan(str(corpus))
    assert run.files == [f"{corpus}/a.parquet", f"{corpus}/b/1.csv", f"{corpus}/b/2.jsonl"]
    assert run.ignored == [f"{corpus}/README.md", f"{corpus}/dataset_info.json"]
    assert [(b.file, b.first_row, b.file_row) for b in run] == [
        (f, i, 0) for i, f in enumerate(run.files)
    ]


def test_paths_lists_globs_and_uris(corpus, monkeypatch):
    assert text_of(corpus / "a.parquet") == ["one"]
    assert text_of([corpus / "b" / "2.jsonl", str(corpus / "a.parquet")]) == ["three", "one"]
    assert text_of(f"{corpus}/b/*") == ["two", "three"]
    assert text_of(f"{corpus}/**") == ["one", "two", "three"]
    assert text_of(f"{corpus}/**/*.parquet") == ["one"]
    assert text_of(f"file://{corpus}/a.parquet") == ["one"]
    assert text_of(
        "b/1.csv", filesystem=pafs.SubTreeFileSystem(str(corpus), pafs.LocalFileSystem())
    ) == ["two"]
    monkeypatch.chdir(corpus)
    assert scan("b/[12].*").files == ["b/1.csv", "b/2.jsonl"]
    os.rename("b/1.csv", "b/[1].csv")
    assert text_of("b/[1].csv") == ["two"]  # a file of that very name comes before the pattern
    (corpus / "d").mkdir()
    (corpus / "d" / "only.json").write_text('{"text": "four"}\n')
    assert text_of(corpus / "d") == ["four"]


def test_nothing_to_read(corpus, tmp_path):
    refused(r"no such file or folder; did you mean .*a\.parquet\?", corpus / "b.parquet")
    refused("no file matches", f"{corpus}/*.arrow")
    refused("the list of inputs is empty", [])
    refused("the name of an input is empty", "")
    refused("named twice in the input", [corpus / "a.parquet", corpus / "a.parquet"])
    refused(
        r"no data file in this folder \(1 other files: .*x\.txt", folder_with(tmp_path, "x.txt")
    )
    refused("nope://bucket/x: not a place that can be read", "nope://bucket/x")
    refused("cannot read int as a source", 3)
    refused("cannot read LazyFrame as a source; call .collect", pl.LazyFrame({"text": ["a"]}))
    refused("neither its name nor its first bytes tell its format", corpus / "README.md")
    refused("format 'xml' is unknown", corpus, format="xml")
    refused("on_bad_rows is 'drop'", corpus, on_bad_rows="drop")
    with pytest.raises(TypeError, match="lists of names"):
        scan(corpus, "text")


def folder_with(parent, name):
    (parent / "other").mkdir()
    (parent / "other" / name).write_text("x")
    return parent / "other"


def test_tables_of_other_libraries():
    data = {"text": ["a value longer than twelve bytes", None, "ä"], "id": [1, 2, 3]}
    table = pa.table(data)
    for source in (
        table,
        pl.DataFrame(data),
        pd.DataFrame(data),
        duckdb.from_arrow(table),
        table.to_reader(1),
    ):
        run = scan(source, ["text"], text=["text"])
        assert run.files == [f"<{type(source).__name__}>"]
        for _ in range(2):  # also what can be read only once
            assert pa.Table.from_batches([b.data for b in run])["text"].to_pylist() == data["text"]
    assert read(table.to_batches()[0]).num_rows == 3
    refused("<Series>: is one column; pass a table", pl.Series("text", ["a"]))


def test_a_query_that_fails_says_so():
    refused(
        "<DuckDBPyRelation>: .*Could not convert",
        duckdb.sql("select cast('x' as int) as text from range(3)"),
    )


def test_standard_input_and_pipes(tmp_path):
    table = pa.table({"text": ["a", "b", "b"]})
    write_stream(tmp_path / "s.arrow", table)
    pq.write_table(table, tmp_path / "t.parquet")
    code = (
        "from resemblance_io.sources import scan; s = scan('-', format={}); "
        "print(s.files, [[b.data['text'].to_pylist() for b in s] for _ in 'xx'])"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    inputs = [
        ((tmp_path / "s.arrow").read_bytes(), None),
        ((tmp_path / "t.parquet").read_bytes(), None),
    ]
    for content, kind in [*inputs, (b"text\na\nb\nb\n", "csv")]:
        done = subprocess.run(
            [sys.executable, "-P", "-c", code.format(repr(kind))],
            input=content,
            env=env,
            capture_output=True,
            timeout=60,
        )
        assert done.stdout.decode() == "['<stdin>'] [[['a', 'b', 'b']], [['a', 'b', 'b']]]\n", (
            done.stderr
        )
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(b'{"text": "x"}\n',))
    writer.start()
    assert text_of(tmp_path / "pipe") == ["x"]
    writer.join()


# -- columns --------------------------------------------------------------------------------------


def test_a_missing_column_lists_those_there_are_and_the_closest(tmp_path):
    path = write_csv(tmp_path / "f.csv", "id, text,lang\n1,a,en\n")
    refused(
        r"f\.csv: no column 'text'; did you mean ' text'\? It has 'id', ' text', 'lang'",
        path,
        "text",
    )
    refused("no column 'lagn'; did you mean 'lang'", path, "lagn")
    refused(r"no column 'zzz'\. It has", path, text=["zzz"])
    jsonl = tmp_path / "f.jsonl"
    jsonl.write_text('{"id": 1, "body": "x"}\n')
    refused("no column 'bodi'; did you mean 'body'", jsonl, "bodi", text=["bodi"])
    parquet = tmp_path / "f.parquet"
    pq.write_table(pa.table({"Text": ["a"]}), parquet)
    refused("did you mean 'Text'", parquet, "text")


def test_a_column_that_is_not_text(tmp_path):
    pq.write_table(pa.table({"id": [1], "tags": [["a"]]}), tmp_path / "f.parquet")
    refused("column 'id' is int64, not text; choose", tmp_path / "f.parquet", text=["id"])
    refused("column 'tags' is list<.*>, not text; choose", tmp_path / "f.parquet", text=["tags"])


def test_c065_repeated_names(tmp_path):
    pq.write_table(
        pa.Table.from_arrays(
            [pa.array([1]), pa.array(["left"]), pa.array(["right"])], names=["id", "text", "text"]
        ),
        tmp_path / "dup.parquet",
    )
    write_csv(tmp_path / "dup.csv", "id,text,text\n1,left,right\n")
    write_file(tmp_path / "dup.arrow", pq.ParquetFile(tmp_path / "dup.parquet").read())
    for name in ("dup.parquet", "dup.csv", "dup.arrow"):
        refused(r"column 'text' occurs 2 times \(columns 1, 2\); rename", tmp_path / name, "text")
        refused(r"column 'text' occurs 2 times .* cannot be carried along", tmp_path / name)
        assert read(tmp_path / name, "id")["id"].cast(pa.int64()).to_pylist() == [1]


def test_column_names_with_dots_and_nested_columns(tmp_path):
    table = pa.table({"a": [{"b": 1}], "a.b": ["flat"], "c": [[1, 2]]})
    pq.write_table(table, tmp_path / "f.parquet")
    assert read(tmp_path / "f.parquet", "a.b").to_pydict() == {"a.b": ["flat"]}
    assert read(tmp_path / "f.parquet", "a").to_pydict() == {"a": [{"b": 1}]}
    assert read(tmp_path / "f.parquet", "c", "a.b").column_names == ["c", "a.b"]
    assert read(tmp_path / "f.parquet").equals(table)


def test_c035_columns_that_come_go_and_change(tmp_path):
    pq.write_table(pa.table({"id": [1], "text": ["a"], "lang": ["en"]}), tmp_path / "1.parquet")
    pq.write_table(
        pa.table({"text": ["b"], "id": [2], "lang": ["en"], "extra": [0.5]}), tmp_path / "2.parquet"
    )
    pq.write_table(pa.table({"id": ["3"], "text": ["c"]}), tmp_path / "3.parquet")
    assert text_of(tmp_path) == ["a", "b", "c"]
    assert read(tmp_path).to_pydict() == {
        "id": ["1", "2", "3"],
        "text": ["a", "b", "c"],
        "lang": ["en", "en", None],
        "extra": [None, 0.5, None],
    }
    refused(r"3\.parquet: no column 'lang'", tmp_path, "lang")
    pq.write_table(pa.table({"text": [{"x": 1}], "id": [4]}), tmp_path / "4.parquet")
    refused(r"4\.parquet: column 'text' is struct<x: int64>, not text", tmp_path, text=["text"])
    refused(r"4\.parquet: column 'text' is struct<x: int64>, but string in .*1\.parquet", tmp_path)
    assert read(tmp_path, "id")["id"].to_pylist() == ["1", "2", "3", "4"]


def test_numbers_take_the_wider_type(tmp_path):
    pq.write_table(pa.table({"n": pa.array([1], pa.int8())}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"n": pa.array([1 << 40])}), tmp_path / "2.parquet")
    assert read(tmp_path)["n"].to_pylist() == [1, 1 << 40]
    pq.write_table(pa.table({"n": [0.5]}), tmp_path / "3.parquet")
    assert read(tmp_path)["n"].to_pylist() == [1.0, float(1 << 40), 0.5]
    pq.write_table(pa.table({"n": [(1 << 60) + 1]}), tmp_path / "4.parquet")
    refused(r"4\.parquet: column 'n', rows from 0: cannot be made double", tmp_path)


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_c028_null_in_the_first_file_text_later(tmp_path, order):
    tables = [pa.table({"id": [1], "text": pa.nulls(1)}), pa.table({"id": [2], "text": ["late"]})]
    for k, table in enumerate(tables):
        pq.write_table(table, tmp_path / f"{k}.parquet")
    expected = [[None, "late"][k] for k in order]
    for text in ([], ["text"]):
        table = read([tmp_path / f"{k}.parquet" for k in order], text=text)
        assert table["text"].to_pylist() == expected
        assert columns.is_text(table.schema.field("text").type)


def test_c028_json_lines_null_first(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"id": 1, "text": null}\n' * 50_000)
    (tmp_path / "b.jsonl").write_text('{"id": 2, "text": "late"}\n')
    for table in (read(tmp_path), read(tmp_path, "text", text=["text"])):
        assert table["text"].null_count == 50_000
        assert table["text"].to_pylist()[-1] == "late"


def test_c038_kinds_of_text_differ_between_files(tmp_path):
    kinds = [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int32(), pa.string()),
    ]
    for k, kind in enumerate(kinds):
        pq.write_table(
            pa.table({"id": [k], "text": pa.array(["same"]).cast(kind)}), tmp_path / f"p{k}.parquet"
        )
    table = read(tmp_path)
    assert table["text"].to_pylist() == ["same"] * 4
    assert table.schema.field("text").type == pa.large_string()
    assert text_of(tmp_path) == ["same"] * 4
    pq.write_table(pa.table({"id": [4], "text": [b"same"]}), tmp_path / "p4.parquet")
    assert read(tmp_path, text=["text"])["text"].to_pylist() == ["same"] * 5


def test_types_of_one_file_are_not_touched(tmp_path):
    table = pa.table(
        {
            "view": pa.array(["x", None], pa.string_view()),
            "dict": pa.array(["x", "y"]).dictionary_encode(),
            "list": [[1], None],
            "when": pa.array([0, 1], pa.timestamp("us", "UTC")),
            "null": pa.nulls(2),
            "ints": pa.array([1, 2], pa.uint16()),
            "tensor": pa.FixedShapeTensorArray.from_numpy_ndarray(np.zeros((2, 2, 2), np.uint8)),
        }
    ).replace_schema_metadata({"about": "this file"})
    pq.write_table(table, tmp_path / "f.parquet")
    write_file(tmp_path / "f.arrow", table)
    for name in ("f.parquet", "f.arrow"):
        assert read(tmp_path / name).equals(table, check_metadata=name == "f.arrow")
    assert read(table).equals(table, check_metadata=True)


@pytest.mark.parametrize("name", ["sv.parquet", "sv.arrow"])
def test_c029_string_views(tmp_path, name):
    texts = ["short", None, "a value longer than twelve bytes"]
    table = pa.table({"id": [1, 2, 3], "text": pa.array(texts, pa.string_view())})
    (write_file if name.endswith("arrow") else lambda p, t: pq.write_table(t, p))(
        tmp_path / name, table
    )
    assert text_of(tmp_path / name) == texts
    assert text_of(table.slice(1)) == texts[1:]


def test_c037_dictionaries(tmp_path):
    a = pa.array(["Flamingo", "Parrot", None, "Dog"]).dictionary_encode()
    b = pa.array(["Horse", "Dog", "Dog"]).dictionary_encode()
    table = pa.table({"text": pa.chunked_array([a, b])})
    pq.write_table(table, tmp_path / "dict.parquet", row_group_size=4)
    write_stream(tmp_path / "dict.arrow", table)
    for source in (tmp_path / "dict.parquet", tmp_path / "dict.arrow", table):
        assert text_of(source) == ["Flamingo", "Parrot", None, "Dog", "Horse", "Dog", "Dog"]


# -- Parquet and Arrow ----------------------------------------------------------------------------


def test_c077_arrow_files_and_streams_whatever_they_are_called(tmp_path):
    table = pa.table({"text": ["a", "b", "b"]})
    write_stream(tmp_path / "s.arrow", table)
    write_file(tmp_path / "f.arrows", table, compression="zstd")
    write_file(tmp_path / "f.csv", table, compression="lz4")
    (tmp_path / "s.arrow.gz").write_bytes(gzip.compress((tmp_path / "s.arrow").read_bytes()))
    for name in ("s.arrow", "f.arrows", "f.csv", "s.arrow.gz"):
        assert read(tmp_path / name).equals(table)
    whole = (tmp_path / "f.arrows").read_bytes()
    (tmp_path / "cut.arrow").write_bytes(whole[:-20])
    refused(r"cut\.arrow: truncated Arrow file", tmp_path / "cut.arrow")
    stream = (tmp_path / "s.arrow").read_bytes()
    for size in range(8, len(stream) - 8, 13):
        (tmp_path / "cut.arrow").write_bytes(stream[:size])
        result = outcome(tmp_path / "cut.arrow")
        assert result == 3 or str(result).startswith(f"{tmp_path}/cut.arrow: ")
    (tmp_path / "f.arrow.gz").write_bytes(gzip.compress(whole))
    refused("a compressed Arrow file cannot be read; decompress", tmp_path / "f.arrow.gz")
    (tmp_path / "v1.feather").write_bytes(b"FEA1" + b"\0" * 80)
    refused("Feather version 1 is not supported", tmp_path / "v1.feather")


def test_large_arrow_batches_come_in_slices(tmp_path):
    table = pa.table({"n": range(200_000), "text": [str(i) for i in range(200_000)]})
    write_file(tmp_path / "f.arrow", table)
    batches = list(scan(tmp_path / "f.arrow"))
    assert max(b.data.num_rows for b in batches) == readers.BATCH_ROWS
    assert read(tmp_path / "f.arrow").equals(table)


def test_c095_text_that_is_not_utf8(tmp_path):
    offsets = pa.py_buffer(np.array([0, 2, 5], np.int32))
    bad = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"okc\xe9f")])
    table = pa.table({"id": range(100_002), "text": pa.chunked_array([["x"] * 100_000, bad])})
    pq.write_table(table, tmp_path / "bad.parquet", use_dictionary=False)
    write_file(tmp_path / "bad.arrow", table)
    for source in (tmp_path / "bad.parquet", tmp_path / "bad.arrow", table):
        refused(r"bad|<Table>", source, "text")
        refused(
            r"column 'text', row 100001: not valid UTF-8 at byte 1 of the value \(0xe9\)", source
        )
        assert read(source, "id").num_rows == 100_002
    pq.write_table(
        pa.table({"text": pa.array(["café".encode()], pa.binary())}), tmp_path / "b.parquet"
    )
    assert text_of(tmp_path / "b.parquet") == ["café"]


def test_c080_nul_characters(tmp_path):
    texts = ["a", "a\0", "x\0y", "x\0z", "\0"]
    pq.write_table(pa.table({"text": texts}), tmp_path / "nul.parquet")
    assert text_of(tmp_path / "nul.parquet") == texts
    path = write_csv(tmp_path / "nul.csv", b'id,text\n1,"x\x00y"\n2,"x\x00z"\n')
    assert text_of(path) == ["x\0y", "x\0z"]


def test_c098_damaged_files_are_refused_in_one_line(shared, tmp_path):
    bad = sorted((shared / "data/parquet_testing/bad_data").glob("*.parquet"))
    assert len(bad) == 8
    for path in bad:
        result = outcome(path)
        if isinstance(result, str):
            assert result.startswith(f"{path}: cannot be read as Parquet: ")
            assert "\n" not in result
    (tmp_path / "empty.parquet").write_bytes(b"")
    refused(r"empty\.parquet: cannot be read as Parquet", tmp_path / "empty.parquet")
    write_csv(tmp_path / "text.parquet", "id,text\n1,a\n")
    refused(r"text\.parquet: cannot be read as Parquet", tmp_path / "text.parquet")
    pq.write_table(pa.table({"a": range(1000)}), tmp_path / "whole.parquet")
    whole = (tmp_path / "whole.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[:-100])
    refused(r"cut\.parquet: cannot be read as Parquet", tmp_path / "cut.parquet")
    rng = np.random.default_rng(0)
    for _ in range(50):
        torn = bytearray(whole)
        for at in rng.integers(4, len(whole), 3):
            torn[at] ^= int(rng.integers(1, 256))
        (tmp_path / "torn.parquet").write_bytes(torn)
        assert "\n" not in str(outcome(tmp_path / "torn.parquet"))


@pytest.mark.parametrize("folder", ["parquet_testing", "arrow_testing", "csv_spectrum", "blns"])
def test_every_file_of_the_test_sets_is_read_or_refused_in_one_line(shared, folder):
    files = [path for path in sorted((shared / "data" / folder).rglob("*")) if path.is_file()]
    # holds values of 2 GiB: it is read, in 4 GiB of memory
    files = [path for path in files if path.name != "large_string_map.brotli.parquet"]
    outcomes = {path: outcome(path) for path in files}
    for path, result in outcomes.items():
        assert isinstance(result, int) or (str(path) in result and "\n" not in result), path
    read_at_least = {"parquet_testing": 74, "arrow_testing": 50, "csv_spectrum": 11, "blns": 0}
    assert sum(isinstance(r, int) for r in outcomes.values()) >= read_at_least[folder], outcomes


@pytest.mark.slow
def test_c014_memory_does_not_grow_with_the_file(tmp_path):
    code = """
import resource, sys, time
from resemblance_io.sources import scan
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for batch in scan(sys.argv[1], ["text"]):
    time.sleep(0.001)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base) >> 10)
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for kind in ("one_group", "many_groups"):
        peaks = []
        for rows in (200_000, 800_000):
            path = tmp_path / f"{kind}.parquet"
            texts = [f"{i} " + "lorem ipsum " * 20 for i in range(rows)]
            group = rows if kind == "one_group" else 20_000
            pq.write_table(
                pa.table({"text": texts}), path, row_group_size=group, use_dictionary=False
            )
            done = subprocess.run(
                [sys.executable, "-P", "-c", code, path],
                env=env,
                capture_output=True,
                check=True,
                timeout=120,
            )
            peaks.append(int(done.stdout))
        # 49 and 196 MB of text
        assert peaks[1] < 90, (kind, peaks)
        assert peaks[1] < peaks[0] * 1.1 + 8, (kind, peaks)


# -- CSV ------------------------------------------------------------------------------------------


def test_csv_spectrum(shared):
    for path in sorted((shared / "data/csv_spectrum/csvs").glob("*.csv")):
        expected = json.loads((path.parents[1] / "json" / f"{path.stem}.json").read_text())
        if path.name == "newlines_crlf.csv":  # its own line breaks were changed on the way here
            expected = json.loads(json.dumps(expected).replace("\\r", ""))
        assert read(path).to_pylist() == expected, path.name


def test_c007_latin1(tmp_path):
    path = write_csv(tmp_path / "latin1.csv", "id,name\n1,José Müller\n2,Ana\n".encode("latin-1"))
    refused(
        r"latin1\.csv: column 'name', row 0: not valid UTF-8 at byte 3 .*\(0xe9\); .*--encoding",
        path,
    )
    assert read(path, encoding="latin-1")["name"].to_pylist() == ["José Müller", "Ana"]
    assert read(path, "id")["id"].to_pylist() == ["1", "2"]
    refused("encoding 'latin-x' is unknown", path, encoding="latin-x")
    refused("not valid ascii", path, encoding="ascii")
    utf16 = write_csv(tmp_path / "utf16.csv", "id,name\n1,José\n".encode("utf-16"))
    refused("is UTF-16, not UTF-8; name its encoding", utf16)
    assert read(utf16, encoding="utf-16")["name"].to_pylist() == ["José"]
    header = write_csv(tmp_path / "header.csv", "id,Größe\n1,x\n".encode("latin-1"))
    refused("not valid utf-8 .*--encoding", header)


def test_c007_real_file(shared):
    path = shared / "data/dblp_acm/original/DBLP2.csv"
    refused(r"DBLP2\.csv: column '.*', row \d+: not valid UTF-8 .*--encoding", path)
    assert read(path, encoding="latin-1").num_rows == 2616


def test_c008_ragged_rows(tmp_path):
    path = write_csv(
        tmp_path / "ragged.csv", 'id,text,lang\n1,"o\nk",en\n\n2,one,two,en\n3,short\n4,fine,en\n'
    )
    refused(r"ragged\.csv: line 5: expected 3 fields, got 4; or skip such rows", path)
    run = scan(path, on_bad_rows="skip")
    for _ in range(2):
        assert pa.Table.from_batches([b.data for b in run])["id"].to_pylist() == ["1", "4"]
        assert run.skipped == [
            BadRow(str(path), 5, "expected 3 fields, got 4"),
            BadRow(str(path), 6, "expected 3 fields, got 2"),
        ]


def test_ragged_rows_far_into_the_file(tmp_path):
    body = "".join(f'{i},"line\nbreak {i}"\n' for i in range(1000))
    path = write_csv(tmp_path / "f.csv", f"id,text\n{body}x,y,z\n{body}")
    refused("line 2002: expected 2 fields, got 3", path, memory=1 << 15)
    assert read(path, on_bad_rows="skip", memory=1 << 15).num_rows == 2000


def test_c010_text_is_never_turned_into_numbers(tmp_path):
    rows = "".join(f"{i},00{i % 1000:03d}\n" for i in range(200_000))
    path = write_csv(tmp_path / "infer.csv", f"id,text\n{rows}200000,A1\n200001,1E5\n")
    table = read(path)
    assert table.num_rows == 200_002
    assert table["text"][0].as_py() == "00000"
    assert table["text"].to_pylist()[-2:] == ["A1", "1E5"]
    path = write_csv(tmp_path / "words.csv", "text\nNULL\nnan\ntrue\n2020-01-01\nNA\n")
    assert text_of(path) == ["NULL", "nan", "true", "2020-01-01", "NA"]


def test_c026_byte_order_marks(tmp_path):
    path = write_csv(tmp_path / "bom.csv", b"\xef\xbb\xbfid,text\n1,hello\n2,\xef\xbb\xbfworld\n")
    assert read(path).to_pydict() == {"id": ["1", "2"], "text": ["hello", "\ufeffworld"]}
    quoted = write_csv(tmp_path / "quoted.csv", b'\xef\xbb\xbf"i,d",text\n1,hello\n')
    assert read(quoted).column_names == ["i,d", "text"]
    jsonl = write_csv(tmp_path / "bom.jsonl", b'\xef\xbb\xbf{"id": 1, "text": "hello"}\n')
    assert read(jsonl).to_pydict() == {"id": [1], "text": ["hello"]}
    joined = write_csv(tmp_path / "joined.jsonl", jsonl.read_bytes() * 2)
    refused("line 2: not JSON", joined)


def test_c064_nothing_in_it(tmp_path):
    header = write_csv(tmp_path / "h.csv", "id,text\n")
    assert read(header).to_pydict() == {"id": [], "text": []}
    assert read(write_csv(tmp_path / "h2.csv", "id,text")).num_rows == 0
    refused(
        r"z\.csv: an empty CSV file; its first line must name the columns",
        write_csv(tmp_path / "z.csv", ""),
    )
    refused("an empty CSV file", write_csv(tmp_path / "z2.csv", b"\xef\xbb\xbf\n\n"))
    assert text_of(write_csv(tmp_path / "z.jsonl", "")) == []
    assert read(tmp_path / "z.jsonl", "text", text=["text"]).schema.names == ["text"]
    empty = pa.table({"id": pa.array([], pa.int64()), "text": pa.array([], pa.string())})
    pq.write_table(empty, tmp_path / "z.parquet")
    write_file(tmp_path / "z.arrow", empty)
    for source in (tmp_path / "z.parquet", tmp_path / "z.arrow", empty):
        assert read(source).equals(empty)


def test_c076_delimiters_quotes_blanks_and_json_in_a_cell(tmp_path):
    path = write_csv(tmp_path / "semi.csv", 'id; text\n1;"a;b"\n2;"say ""hi"""\n')
    refused(
        r"no column 'text'; is the delimiter ';' \(--delimiter\)\? It has 'id; text'", path, "text"
    )
    assert read(path, delimiter=";").to_pydict() == {"id": ["1", "2"], " text": ["a;b", 'say "hi"']}
    path = write_csv(tmp_path / "json.csv", 'id,payload\n1,"{""k"": ""v, w""}"\n')
    assert read(path)["payload"].to_pylist() == ['{"k": "v, w"}']
    assert text_of(write_csv(tmp_path / "t.tsv", "id\ttext\n1\ta,b\n")) == ["a,b"]
    assert text_of(write_csv(tmp_path / "t.dat", "id\ttext\n1\ta,b\n"), format="tsv") == ["a,b"]
    for delimiter in "|#%^-]\\ ":
        rows = [["text", "n"], [f"x{delimiter}y\nz", "1"], ['"', "2"]]
        content = io.StringIO(newline="")
        csv.writer(content, delimiter=delimiter).writerows(rows)
        assert text_of(write_csv(tmp_path / "d.csv", content.getvalue()), delimiter=delimiter) == [
            rows[1][0],
            '"',
        ]
    for delimiter in ("", "ab", '"', "\n", "é"):
        refused("cannot be used; give one ASCII character", path, delimiter=delimiter)


@pytest.mark.parametrize("pad", [1048557, 1048561, 1048563, 1048564])
def test_c097_line_break_in_quotes_at_the_edge_of_a_block(tmp_path, pad):
    body = b'id,s,p\r\n0,"' + b"z" * pad + b'A\r\nB",x\r\n' + b"1,plain,x\r\n" * 3
    path = write_csv(tmp_path / "edge.csv", body)
    assert read(path)["s"].to_pylist() == ["z" * pad + "A\r\nB", "plain", "plain", "plain"]


def test_c097_every_padding(tmp_path):
    for pad in range(4000, 4100):
        body = b'id,s,p\r\n0,"' + b"z" * pad + b'A\r\nB",x\r\n' + b"1,plain,x\r\n" * 3
        path = write_csv(tmp_path / "edge.csv", body)
        assert read(path, memory=1 << 12)["s"].to_pylist()[0] == "z" * pad + "A\r\nB"


FIELDS = st.text(st.sampled_from('a,"\r\n é\0'), max_size=6)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(FIELDS, FIELDS), max_size=12),
    # the standard library leaves a lone CR unquoted unless it is part of the line's end
    style=st.sampled_from(
        [("\r\n", csv.QUOTE_MINIMAL), *((e, csv.QUOTE_ALL) for e in ("\n", "\r\n", "\r"))]
    ),
    cut=st.booleans(),
    size=st.integers(1, 64),
)
def test_csv_equals_what_the_standard_library_wrote(tmp_path, rows, style, cut, size):
    content = io.StringIO(newline="")
    end, quoting = style
    csv.writer(content, lineterminator=end, quoting=quoting).writerows([("k", "v"), *rows])
    text = content.getvalue().removesuffix(end) if cut else content.getvalue()
    path = str(write_csv(tmp_path / "f.csv", text))
    file = File(path, path, pafs.LocalFileSystem())
    reader = readers.open_reader(file, readers.Options(batch_bytes=size))
    table = pa.Table.from_batches(reader.batches(reader.schema(None)), reader.schema(None))
    assert list(zip(*table.to_pydict().values(), strict=True)) == rows


def test_quotes_that_are_not_closed(tmp_path):
    path = write_csv(tmp_path / "open.csv", 'id,text\n1,a\n2,"b\n3,c\n')
    refused(r"open\.csv: line 3: a quote is opened and never closed", path)
    # inside a field a quote is a character like any other
    path = write_csv(tmp_path / "inch.csv", 'id,text\n1,5" pipe\n2,"a"b"\n')
    assert text_of(path) == ['5" pipe', 'ab"']


def test_one_very_long_field(tmp_path, monkeypatch):
    path = write_csv(tmp_path / "long.csv", f'text\nshort\n"{"y" * 3_000_000}\n"\ntail\n')
    assert [len(t) for t in text_of(path, memory=1 << 16)] == [5, 3_000_001, 4]
    monkeypatch.setattr(readers, "MAX_RECORD", 1 << 20)
    refused(
        r"line 3: a record of more than 1,048,576 bytes; is a quote not closed\?",
        path,
        memory=1 << 16,
    )


# -- JSON Lines -----------------------------------------------------------------------------------


def write_jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_c011_very_long_lines(tmp_path, monkeypatch):
    rows = [
        {"id": 1, "text": "short"},
        {"id": 2, "text": "y" * 20_000_000},
        {"id": 3, "text": "tail"},
    ]
    path = write_jsonl(tmp_path / "long.jsonl", rows)
    assert [len(t) for t in text_of(path)] == [5, 20_000_000, 4]
    monkeypatch.setattr(readers, "MAX_RECORD", 1 << 22)
    refused("line 2 has more than 4,194,304 bytes", path)


def test_c013_a_field_that_changes_type(tmp_path):
    rows = [
        {"id": 1, "text": "a"}, {"id": "1b", "text": 42}, {"id": 2.5, "text": ["x"]},
        {"id": 3, "text": None}, {"id": 4},
    ]  # fmt: skip
    path = write_jsonl(tmp_path / "mixed.jsonl", rows)
    assert read(path, "id")["id"].to_pylist() == ["1", "1b", "2.5", "3", "4"]
    assert read(path)["text"].to_pylist() == ["a", "42", '["x"]', None, None]
    refused("line 2: column 'text' is a number, not text", path, text=["text"])
    run = scan(path, text=["text"], on_bad_rows="skip")
    assert [i for b in run for i in b.data["id"].to_pylist()] == [1, 3, 4]
    assert [(r.line, r.reason) for r in run.skipped] == [
        (2, "column 'text' is a number, not text"),
        (3, "column 'text' is a list, not text"),
    ]


def test_json_types(tmp_path):
    one = {"b": True, "i": 1, "f": 1, "n": None, "l": [1], "s": {"a": 1}, "e": {}, "big": 2**70}
    two = {"b": None, "i": 2, "f": 2.5, "l": [0.5], "s": {"b": "x"}, "e": {}, "big": 1}
    rows = [one | {"mixed": {"a": 1}}, two | {"mixed": {"a": "x"}}]
    table = read(write_jsonl(tmp_path / "types.jsonl", rows))
    assert table.to_pylist() == [
        one | {"s": {"a": 1, "b": None}, "e": "{}", "big": str(2**70), "mixed": '{"a": 1}'},
        two | {"s": {"a": None, "b": "x"}, "e": "{}", "big": "1", "mixed": '{"a": "x"}', "n": None},
    ]
    assert table.schema.field("f").type == pa.float64()
    pq.write_table(table, tmp_path / "out.parquet")
    late = [{"id": 1}] * (readers.BATCH_ROWS + 1) + [{"id": "x"}]
    assert read(write_jsonl(tmp_path / "late.jsonl", late))["id"].to_pylist()[-2:] == ["1", "x"]


def test_lines_that_are_not_objects(tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_bytes(
        b'{"text": "a"}\n\n  \r\n{"text": \n"x"\n'
        b'{"text": "\\ud800"}\n{"text": "\xe9"}\n{"text": "b"}'
    )
    refused("line 4: not JSON: Expecting value.*one object per line", path)
    run = scan(path, ["text"], text=["text"], on_bad_rows="skip")
    assert [t for b in run for t in b.data["text"].to_pylist()] == ["a", "b"]
    assert [r.line for r in run.skipped] == [4, 5, 6, 7]
    assert "lone surrogate" in run.skipped[2].reason
    assert "not valid UTF-8 at byte 10" in run.skipped[3].reason
    array = tmp_path / "array.json"
    array.write_text('[{"text": "a"}]')
    refused("is a JSON array; write one object per line", array)
    deep = tmp_path / "deep.jsonl"
    deep.write_text('{"text": ' + "[" * 200_000 + "\n")
    refused("line 1: not JSON", deep)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.sampled_from([0, 1, -5, 2**53 + 1, 2**63, 0.5, 1e300, float("nan")])
    | st.sampled_from(
        ["", "a", "ä", "\U0001f600", "\u2028", "\0", "\ud800", "2020-01-01 00:00:00"]
    ),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=4,
)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.dictionaries(st.sampled_from(["text", "x", "é"]), JSON), max_size=5),
    st.booleans(),
    st.sampled_from(["\n", "\r\n", "\n\n", " \n", ""]),
    st.integers(1, 80),
)
def test_json_is_the_same_whoever_parses_it(tmp_path, monkeypatch, rows, ascii_only, end, size):
    lines = end.join(json.dumps({"k": 1} | row, ensure_ascii=ascii_only) for row in rows)
    path = str(write_csv(tmp_path / "f.jsonl", lines.encode(errors="surrogatepass")))
    file = File(path, path, pafs.LocalFileSystem())

    def parsed(text):
        options = readers.Options(text=text, skip_bad_rows=True, batch_bytes=size)
        reader = readers.open_reader(file, options)
        schema = reader.schema(None)
        table = pa.Table.from_batches(reader.batches(schema), schema)
        table.validate(full=True)
        return str(table.to_pylist()), schema, options.skipped

    for text in ((), ("text",)):
        usual = parsed(text)
        with monkeypatch.context() as patch:
            patch.setattr(readers, "_arrow_json", lambda block, schema: None)
            assert parsed(text) == usual


def test_text_beyond_the_basic_plane_and_odd_line_breaks(tmp_path):
    texts = ["\U0001f600", "a\u2028b\u0085c", "\r", ""]
    path = write_jsonl(tmp_path / "f.jsonl", [{"text": t} for t in texts])
    assert text_of(path) == texts
    path.write_text(
        "".join(json.dumps({"text": t}, ensure_ascii=False) + "\n" for t in texts), encoding="utf-8"
    )
    assert text_of(path) == texts


# -- compression and encodings ---------------------------------------------------------------------


def arrow_compress(codec):
    def compress(data):
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, codec) as out:
            out.write(data)
        return sink.getvalue().to_pybytes()

    return compress


@pytest.mark.parametrize(
    ("extension", "compress"),
    [
        (".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress),
        (".zst", arrow_compress("zstd")), (".lz4", arrow_compress("lz4")),
    ],
)  # fmt: skip
def test_compressed_by_extension(tmp_path, extension, compress):
    csv_body = "id,text\n" + "".join(f"{i},text {i}\n" for i in range(5000))
    path = write_csv(tmp_path / f"f.csv{extension}", compress(csv_body.encode()))
    assert read(path).num_rows == 5000
    parts = compress(b'{"text": "a"}\n') + compress(b'{"text": "b"}\n')  # as by appending to it
    assert text_of(write_csv(tmp_path / f"f.jsonl{extension}", parts)) == ["a", "b"]
    refused(
        "cannot be read as",
        write_csv(tmp_path / f"cut.csv{extension}", compress(csv_body.encode())[:-20]),
    )
    assert text_of(tmp_path / "*.jsonl.*") == ["a", "b"]
    (tmp_path / "f.csv").write_bytes(compress(b"text\na\n"))
    refused(rf"is compressed with \w+; let its name end in \{extension}", tmp_path / "f.csv")


def test_compressed_parquet_is_refused(tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "f.parquet")
    (tmp_path / "f.parquet.gz").write_bytes(gzip.compress((tmp_path / "f.parquet").read_bytes()))
    refused("decompress it first", tmp_path / "f.parquet.gz")


# -- reading ahead --------------------------------------------------------------------------------


def test_batches_do_not_depend_on_memory_or_files(tmp_path):
    table = pa.table({"text": [f"text {i}" for i in range(3000)]})
    for k in range(3):
        pq.write_table(table.slice(k * 1000, 1000), tmp_path / f"{k}.parquet", row_group_size=170)
    assert all(read(tmp_path, memory=1 << m).equals(table) for m in (0, 12, 16, 30))


def test_abandoned_and_interrupted_reads_let_go_of_the_file(tmp_path):
    path = write_csv(tmp_path / "f.csv", "text\n" + "some text\n" * 100_000)
    before = threading.active_count()
    for _ in range(5):
        batches = iter(scan(path, memory=1 << 14))
        next(batches)
        batches.close()

    def interrupted():
        for _ in scan(path, memory=1 << 14):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    deadline = time.monotonic() + 5
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == before
    assert not [fd for fd in Path("/proc/self/fd").glob("*") if os.path.realpath(fd) == str(path)]


def test_c094_the_interpreter_ends_after_reading(tmp_path):
    pq.write_table(pa.table({"text": ["a"] * 1000}), tmp_path / "f.parquet", row_group_size=10)
    write_csv(tmp_path / "f.csv", "text\n" + "a\n" * 1000)
    code = (
        "import sys; from resemblance_io.sources import scan\n"
        "for path in sys.argv[1:]:\n"
        "    list(scan(path)); it = iter(scan(path, memory=1024)); next(it)\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-P", "-c", code, tmp_path / "f.parquet", tmp_path / "f.csv"]
    subprocess.run(command, env=env, check=True, timeout=30)
