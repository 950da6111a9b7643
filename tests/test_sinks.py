"""Outputs that are there whole, or not at all."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

from resemblance_io import sinks
from resemblance_io.errors import InputError
from resemblance_io.sinks import OutputFile, OutputFolder
from resemblance_io.sources import scan

TABLE = pa.table({"id": [1, 2, 3], "text": ["a", None, "ä\n"]})


def visible(folder):
    """What is in a folder, apart from the lock files, which stay."""
    return sorted(p.name for p in Path(folder).iterdir() if not p.name.endswith(".lock"))


def write_folder(path, table=TABLE, **options):
    with OutputFolder(path, **options) as out:
        out.parquet("kept.parquet", table.schema).write(table)
        out.json("stats.json", {"rows": table.num_rows, "text": "ä"})


def start(code, *arguments):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-P", "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)


def test_a_folder_with_its_manifest(tmp_path):
    write_folder(tmp_path / "deep" / "out")
    out = tmp_path / "deep" / "out"
    assert visible(out) == ["_manifest.json", "kept.parquet", "stats.json"]
    assert visible(tmp_path / "deep") == ["out"]
    assert pq.read_table(out / "kept.parquet").equals(TABLE)
    assert json.loads((out / "stats.json").read_text()) == {"rows": 3, "text": "ä"}
    manifest = json.loads((out / "_manifest.json").read_text())
    assert manifest["library"] == "resemblance"
    kept, stats = manifest["files"]
    assert (kept["name"], kept["rows"], stats["name"]) == ("kept.parquet", 3, "stats.json")
    assert kept["bytes"] == (out / "kept.parquet").stat().st_size
    assert len(kept["sha256"]) == 64


def test_equal_runs_write_equal_bytes_however_the_batches_are_cut(tmp_path, monkeypatch):
    monkeypatch.setattr(sinks, "ROW_GROUP_ROWS", 4096)
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "n": rng.integers(0, 1000, 10_000),
            "text": pa.array([None if i % 7 == 0 else f"text {i % 91}" for i in range(10_000)]),
            "view": pa.array(
                [f"a longer text, number {i}" for i in range(10_000)], pa.string_view()
            ),
            "list": [[i] * (i % 3) for i in range(10_000)],
            "dict": pa.array([f"c{i % 5}" for i in range(10_000)]).dictionary_encode(),
        }
    )
    written = []
    for k, size in enumerate((10_000, 1, 333, 1024, 4097)):
        step = size if size > 1 else 1000
        with OutputFolder(tmp_path / f"{k}") as out:
            writer = out.parquet("t.parquet", table.schema)
            if size == 1:
                for row in range(50):
                    writer.write(table.slice(row, 1).combine_chunks().to_batches()[0])
                writer.write(table.slice(50))
            else:
                for at in range(0, 10_000, step):
                    for batch in table.slice(at, step).to_batches():
                        writer.write(batch)
            out.json("seconds.json", time.perf_counter(), volatile=True)
        written.append({p.name: p.read_bytes() for p in (tmp_path / f"{k}").iterdir()})
        del written[-1]["seconds.json"]
    assert all(files == written[0] for files in written)
    metadata = pq.read_metadata(tmp_path / "0" / "t.parquet")
    assert [metadata.row_group(g).num_rows for g in range(3)] == [4096, 4096, 1808]
    assert pq.read_table(tmp_path / "0" / "t.parquet").cast(table.schema).equals(table)


def test_row_groups_of_long_rows_end_by_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(sinks, "ROW_GROUP_BYTES", 1 << 20)
    write_folder(tmp_path / "out", pa.table({"text": ["x" * 1000] * 5000}))
    metadata = pq.read_metadata(tmp_path / "out" / "kept.parquet")
    assert [metadata.row_group(g).num_rows for g in range(3)] == [2048, 2048, 904]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_nothing_is_left_after_an_error(tmp_path, error):
    def run():
        with OutputFolder(tmp_path / "out") as out:
            writer = out.parquet("kept.parquet", TABLE.schema)
            writer.write(TABLE)
            raise error

    with pytest.raises(error):
        run()
    assert visible(tmp_path) == []

    def run_file():
        with OutputFile(tmp_path / "out.parquet", TABLE.schema) as out:
            out.write(TABLE)
            raise error

    with pytest.raises(error):
        run_file()
    assert visible(tmp_path) == []
    write_folder(tmp_path / "out")


@pytest.mark.parametrize("step", ["_sync", "_remove"])
def test_nothing_is_left_when_publishing_fails(tmp_path, monkeypatch, step):
    write_folder(tmp_path / "old")
    before = (tmp_path / "old" / "kept.parquet").read_bytes()
    calls = []

    def fail(path):
        calls.append(path)
        if step == "_sync":
            raise OSError(28, "No space left on device")
        real(path)

    real = getattr(sinks, step)
    monkeypatch.setattr(sinks, step, fail)
    if step == "_sync":
        with pytest.raises(InputError, match=r"old: cannot be written: .*No space left"):
            write_folder(tmp_path / "old", TABLE.slice(1), overwrite=True)
        assert (tmp_path / "old" / "kept.parquet").read_bytes() == before
    else:
        write_folder(tmp_path / "old", TABLE.slice(1), overwrite=True)
    monkeypatch.undo()
    assert calls
    assert visible(tmp_path) == ["old"]


def test_what_exists_is_refused_or_replaced_when_the_new_one_is_whole(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    write_folder(out)  # an empty folder is not an output
    with pytest.raises(InputError, match=r"out: exists; .*--overwrite"):
        write_folder(out)

    def fail():
        with OutputFolder(out, overwrite=True) as folder:
            folder.json("stats.json", {})
            assert pq.read_table(out / "kept.parquet").num_rows == 3
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert pq.read_table(out / "kept.parquet").num_rows == 3
    write_folder(out, TABLE.slice(1), overwrite=True)
    assert pq.read_table(out / "kept.parquet").num_rows == 2
    assert visible(tmp_path) == ["out"]


def test_what_is_not_ours_is_never_replaced(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").write_text("x")
    with pytest.raises(InputError, match="was not written by resemblance"):
        write_folder(tmp_path / "home", overwrite=True)
    write_folder(tmp_path / "out")
    (tmp_path / "out" / "notes.txt").write_text("x")
    with pytest.raises(InputError, match=r"holds 'notes\.txt', which resemblance did not write"):
        write_folder(tmp_path / "out", overwrite=True)
    assert (tmp_path / "out" / "kept.parquet").exists()
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="is a file; name a folder"):
        write_folder(tmp_path / "file", overwrite=True)
    with pytest.raises(InputError, match="cannot be written"):
        write_folder(tmp_path / "file" / "out")


def test_names_in_a_folder(tmp_path):
    with OutputFolder(tmp_path / "o") as out:
        out.json("once.json", 1)
        for name in ("_manifest.json", "a/b.json", "..", "once.json"):
            with pytest.raises(ValueError, match="cannot be the name of a new file"):
                out.json(name, 1)
    assert visible(tmp_path / "o") == ["_manifest.json", "once.json"]


def test_c061_two_runs_into_one_place(tmp_path):
    other = start(
        "import sys, time; from resemblance_io.sinks import OutputFolder\n"
        "with OutputFolder(sys.argv[1]) as out:\n"
        "    print('in', flush=True); time.sleep(60)",
        tmp_path / "out",
    )
    assert other.stdout.readline() == "in\n"
    with pytest.raises(InputError, match="out: locked by another run"):
        write_folder(tmp_path / "out", overwrite=True)
    assert visible(tmp_path) == [".out.staging"]
    other.kill()
    other.wait()
    other.stdout.close()
    write_folder(tmp_path / "out")  # the lock of a dead process does not count
    assert visible(tmp_path) == ["out"]
    with OutputFolder(tmp_path / "two"), pytest.raises(InputError, match="locked by another run"):
        write_folder(tmp_path / "two")


@pytest.mark.slow
def test_c055_killed_at_any_moment(tmp_path):
    code = """
import sys, pyarrow as pa; from resemblance_io.sinks import OutputFolder
n = int(sys.argv[2])
while True:
    print(n, flush=True)
    with OutputFolder(sys.argv[1], overwrite=True) as out:
        writer = out.parquet("t.parquet", pa.schema([("n", pa.int64())]))
        for i in range(5):
            writer.write(pa.table({"n": [n] * 2000}))
    n += 1
"""
    out = tmp_path / "out"
    rng = np.random.default_rng(0)
    for k in range(12):
        process = start(code, out, k * 1000)
        process.stdout.readline()
        time.sleep(rng.uniform(0, 0.1))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        if out.exists():  # whole, and from one run
            manifest = json.loads((out / "_manifest.json").read_text())
            assert [f["name"] for f in manifest["files"]] == ["t.parquet"]
            values = pq.read_table(out / "t.parquet")["n"].to_pylist()
            assert len(values) == 10_000
            assert len(set(values)) == 1
        # what lies about is not taken for input
        assert all(name.startswith(".") or name == "out" for name in visible(tmp_path))
    write_folder(out, overwrite=True)
    assert visible(tmp_path) == ["out"]


def test_killed_between_the_two_renames(tmp_path):
    write_folder(tmp_path / "out")
    os.rename(tmp_path / "out", tmp_path / ".out.old")
    (tmp_path / ".out.staging").mkdir()
    with pytest.raises(InputError, match="out: exists"):
        write_folder(tmp_path / "out")
    assert visible(tmp_path) == ["out"]
    assert pq.read_table(tmp_path / "out" / "kept.parquet").equals(TABLE)


def read_csv(path):
    options = pc.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False)
    parse = pc.ParseOptions(
        delimiter="\t" if path.suffix == ".tsv" else ",", newlines_in_values=True
    )
    return pc.read_csv(path, parse_options=parse, convert_options=options)


@pytest.mark.parametrize(
    ("extension", "reader"),
    [
        (".parquet", pq.read_table),
        (".arrow", lambda p: ipc.open_file(p.read_bytes()).read_all()),
        (".feather", lambda p: ipc.open_file(p.read_bytes()).read_all()),
        (".csv", read_csv),
        (".tsv", read_csv),
        (".jsonl", lambda p: pa.Table.from_batches([b.data for b in scan(p)])),
    ],
)
def test_single_files(tmp_path, extension, reader):
    path = tmp_path / f"out{extension}"
    table = TABLE.append_column("dict", pa.array(["x", "", None]).dictionary_encode())
    table = table.append_column("view", pa.array(["y", 'a,"b\t', None], pa.string_view()))
    with OutputFile(path, table.schema) as out:
        for batch in table.to_batches(max_chunksize=2):
            out.write(batch)
        assert not path.exists()
        assert out.rows == 3
    assert reader(path).to_pydict() == table.to_pydict()
    before = path.read_bytes()
    with (
        pytest.raises(InputError, match="exists; name another file, or replace it"),
        OutputFile(path, table.schema),
    ):
        pass
    with OutputFile(path, table.schema, overwrite=True) as out:
        out.write(table)
    assert path.read_bytes() == before
    assert visible(tmp_path) == [path.name]
    with OutputFile(path, table.schema, overwrite=True):
        pass  # no rows
    assert read_columns(path, reader) in (table.column_names, [])


def read_columns(path, reader):
    if path.suffix == ".jsonl":
        return [] if path.read_bytes() == b"" else None
    return reader(path).column_names


def test_files_that_cannot_be_written(tmp_path):
    with pytest.raises(
        InputError, match=r"out\.txt: its extension does not name a format; use one of"
    ):
        OutputFile(tmp_path / "out.txt", TABLE.schema)
    (tmp_path / "dir.csv").mkdir()
    with (
        pytest.raises(InputError, match="is a folder"),
        OutputFile(tmp_path / "dir.csv", TABLE.schema),
    ):
        pass
    nested = pa.schema([("n", pa.int64()), ("list", pa.list_(pa.int64()))])
    with pytest.raises(InputError, match=r"column 'list' \(list<.*cannot be written as text"):
        OutputFile(tmp_path / "out.csv", nested).__enter__()
    odd = pa.schema([("n", pa.int64()), ("u", pa.dense_union([pa.field("a", pa.int8())]))])
    with (
        pytest.raises(InputError, match=r"column 'u' \(dense_union.*cannot be written to Parquet"),
        OutputFolder(tmp_path / "out") as out,
    ):
        out.parquet("t.parquet", odd)
    with (
        pytest.raises(InputError, match="bytes have no form in JSON"),
        OutputFile(tmp_path / "out.jsonl", pa.schema([("b", pa.binary())])) as out,
    ):
        out.write(pa.table({"b": [b"x"]}))
    assert visible(tmp_path) == ["dir.csv"]


def test_json_lines_hold_only_json(tmp_path):
    table = pa.table({"f": [1.5, float("nan"), float("inf")], "l": [[1.0], [float("nan")], None]})
    with OutputFile(tmp_path / "o.jsonl", table.schema) as out:
        out.write(table)
    lines = (tmp_path / "o.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [
        {"f": 1.5, "l": [1.0]},
        {"f": None, "l": [None]},
        {"f": None, "l": None},
    ]


def test_columns_of_any_type_pass_through(tmp_path):
    table = pa.table(
        {
            "tensor": pa.FixedShapeTensorArray.from_numpy_ndarray(np.zeros((3, 2, 2), np.uint8)),
            "struct": [{"a": [1]}, None, {"a": None}],
            "null": pa.nulls(3),
            "decimal": pa.array([1, 2, 3]).cast(pa.decimal128(30, 2)),
            "when": pa.array([0, 1, 2], pa.timestamp("ns", "UTC")),
        }
    )
    with OutputFile(tmp_path / "o.parquet", table.schema) as out:
        out.write(table.slice(0, 2))
        out.write(table.slice(2))
    assert pq.read_table(tmp_path / "o.parquet").equals(table)
