"""The inputs people have: columns and tables of other libraries, into every kind of call."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import resemblance as rs
from resemblance_io import InputError, scan, score

LEFT = ["night", None, "日本", "a value longer than twelve bytes", "", "Straße"]
RIGHT = ["nacht", "x", "日本語", "a value longer than eleven bytes", "", None]
SCORES = [0.6, None, 2 / 3, 28 / 32, 1.0, None]

COLUMNS = {
    "list": list,
    "tuple": tuple,
    "numpy object": lambda t: np.array(t, object),
    "numpy StringDType": lambda t: np.array(t, np.dtypes.StringDType(na_object=None)),
    "pandas object": lambda t: pd.Series(t, dtype=object),
    "pandas str": lambda t: pd.Series(t, dtype="str"),
    "pandas string": lambda t: pd.Series(t, dtype="string"),
    "pandas string[pyarrow]": lambda t: pd.Series(t, dtype="string[pyarrow]"),
    "pandas ArrowDtype": lambda t: pd.Series(t, dtype=pd.ArrowDtype(pa.large_string())),
    "pandas category": lambda t: pd.Series(t, dtype="category"),
    "pandas index": lambda t: pd.Index(t, dtype=object),
    "pandas with its own index": lambda t: pd.Series(t, index=range(9, 9 - len(t), -1)),
    "polars": pl.Series,
    "polars categorical": lambda t: pl.Series(t, dtype=pl.Categorical),
    "polars enum": lambda t: pl.Series(t, dtype=pl.Enum([x for x in t if x is not None])),
    "polars in chunks": lambda t: pl.concat([pl.Series(t[:2]), pl.Series(t[2:])], rechunk=False),
    "duckdb": lambda t: duckdb.from_arrow(pa.table({"t": t})),
    "datafusion": lambda t: datafusion_frame({"t": t}),
    "string": lambda t: pa.array(t, pa.string()),
    "large_string": lambda t: pa.array(t, pa.large_string()),
    "string_view": lambda t: pa.array(t, pa.string_view()),
    "dictionary": lambda t: pa.array(t).dictionary_encode(),
    "slice": lambda t: pa.array(["x", *t, "y"]).slice(1, len(t)),
    "chunked": lambda t: pa.chunked_array([t[:1], [], t[1:]]),
    "Strings": rs.Strings.pack,
}
TABLES = {
    "pandas object": lambda d: pd.DataFrame(d, dtype=object),
    "pandas str": lambda d: pd.DataFrame(d, dtype="str"),
    "pandas string": lambda d: pd.DataFrame(d, dtype="string"),
    "pandas category": lambda d: pd.DataFrame(d, dtype="category"),
    "pandas with its own index": lambda d: pd.DataFrame(d, index=list("fedcba")),
    "polars": pl.DataFrame,
    "polars categorical": lambda d: pl.DataFrame(d).cast(pl.Categorical),
    "polars lazy, collected": lambda d: pl.LazyFrame(d).filter(True).collect(),
    "duckdb": lambda d: duckdb.from_arrow(pa.table(d)),
    "duckdb query": lambda d: duckdb.from_arrow(pa.table(d)).query("t", "select * from t"),
    "datafusion": lambda d: datafusion_frame(d),
    "table": pa.table,
    "record batch": pa.record_batch,
    "reader": lambda d: pa.table(d).to_reader(2),
    **{
        str(kind): lambda d, kind=kind: pa.table({n: pa.array(t, kind) for n, t in d.items()})
        for kind in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string()))
    },
    "chunked": lambda d: pa.concat_tables([pa.table(d)[:2], pa.table(d)[2:]]),
}


def datafusion_frame(data):
    datafusion = pytest.importorskip("datafusion")
    return datafusion.SessionContext().from_arrow(pa.table(data))


def nan(scores):
    return np.array(scores, np.float64)


@pytest.mark.parametrize("make", COLUMNS.values(), ids=COLUMNS)
def test_columns_into_calls(make):
    np.testing.assert_array_equal(rs.pairwise(make(LEFT), make(RIGHT)), nan(SCORES))
    matrix = rs.cdist(make(LEFT), RIGHT, score="similarity")
    np.testing.assert_array_equal(np.diag(matrix), nan(SCORES))
    np.testing.assert_array_equal(rs.cdist(LEFT, make(RIGHT), score="similarity"), matrix)


def test_columns_without_nulls():
    texts = ["night", "日本", ""]
    for make in (
        lambda t: np.array(t),
        lambda t: np.array(t, np.dtypes.StringDType()),
        *COLUMNS.values(),
    ):
        assert rs.cdist(make(texts), make(texts)).tolist() == [[0, 5, 5], [5, 0, 2], [5, 2, 0]]


def test_kinds_may_differ_from_side_to_side():
    pairs = zip(COLUMNS.values(), reversed(COLUMNS.values()), strict=True)
    for left, right in pairs:
        np.testing.assert_array_equal(rs.pairwise(left(LEFT), right(RIGHT)), nan(SCORES))


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
def test_tables_into_jobs(make, tmp_path):
    data = {"output": LEFT, "expected": RIGHT}
    batches = [batch.data for batch in scan(make(data), text=["output", "expected"])]
    read = pa.Table.from_batches(batches)
    assert read["output"].to_pylist() == LEFT
    assert read["expected"].to_pylist() == RIGHT
    found = score(make(data), "levenshtein", to=tmp_path / "s.arrow", columns="all")
    assert (found.rows, found.nulls) == (6, 2)
    with pa.ipc.open_file(tmp_path / "s.arrow") as file:
        table = file.read_all()
    assert table["levenshtein"].to_pylist() == SCORES
    assert table["output"].to_pylist() == LEFT


# -- what is refused, and why ---------------------------------------------------------------------


def test_generators_are_refused_with_the_reason():
    reason = r"generator.*can be read only once"
    for call in (rs.cdist, rs.pairwise):
        with pytest.raises(TypeError, match=reason):
            call((t for t in "ab"), ["a", "b"])
        with pytest.raises(TypeError, match=reason):
            call(["a", "b"], (t for t in "ab"))
    for job in (scan, lambda source: score(source, "levenshtein")):
        with pytest.raises(InputError, match=reason):
            job({"output": t, "expected": t} for t in "ab")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (pl.LazyFrame({"output": ["a"]}), r"cannot read LazyFrame.*call .collect\(\) first"),
        ({"output": ["a"]}, r"cannot read dict .*\(pyarrow.table\(...\), a data frame\)"),
        ([{"output": "a"}], "cannot read dict"),
        (np.array(["a"]), "cannot read ndarray"),
        (None, "cannot read NoneType"),
        (pd.Series(["a"], name="output"), "<Series>: is one column; pass a table"),
        (pl.Series("output", ["a"]), "<Series>: is one column; pass a table"),
        (pd.DataFrame({"output": ["a", 1]}), "<DataFrame>: cannot be read: Expected bytes, got"),
        (pd.DataFrame({"a": [1]}), "no column 'output'"),
    ],
)
def test_what_is_no_table(source, message):
    with pytest.raises(InputError, match=message) as caught:
        score(source, "levenshtein")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("night", "left is a single str"),
        (b"night", "left is a single bytes"),
        ({"a": 1}, "got dict"),
        (pd.Series([1, 2]), "is int64, not text|row 0"),
        (pl.Series([1, 2]), "is int64, not text"),
        (np.array([1, 2]), "array of strings, got 1 dimension"),
        (["a", 1], "left: .*row 1"),
        (pd.DataFrame({"a": ["x"], "b": ["y"]}), r"table of 2 columns \(a, b\)"),
        (pl.DataFrame({"a": ["x"], "b": ["y"]}), r"table of 2 columns \(a, b\)"),
    ],
)
def test_what_is_no_column(column, message):
    for call in (rs.cdist, rs.pairwise):
        with pytest.raises(TypeError, match=message):
            call(column, ["a", "b"])
