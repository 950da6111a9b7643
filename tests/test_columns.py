"""Arrow columns to packed strings and back."""

import duckdb
import hypothesis.strategies as st
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from resemblance.strings import Strings
from resemblance_io import columns
from resemblance_io.errors import InputError

TEXTS = ["short", None, "", "a value longer than twelve bytes", "äöü", "日本", "x\0y", "😀", None]
TYPES = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.large_binary(),
    pa.binary_view(),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.uint32(), pa.large_string()),
]


def array_of(texts, kind):
    if pa.types.is_dictionary(kind):
        return pa.array(texts, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(texts, pa.large_string()).cast(kind)


def bad_utf8(kind=None):
    """Three values of which the middle one holds a latin-1 byte."""
    kind = kind or pa.string()
    offsets = pa.py_buffer(np.array([0, 2, 5, 6], np.int32))
    return pa.Array.from_buffers(pa.binary(), 3, [None, offsets, pa.py_buffer(b"okc\xe9fz")]).view(
        kind
    )


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_every_kind_of_text(kind):
    assert columns.strings(array_of(TEXTS, kind)).to_list() == TEXTS


@pytest.mark.parametrize("kind", TYPES, ids=str)
@pytest.mark.parametrize(("start", "stop"), [(0, 9), (1, 9), (3, 6), (2, 2), (1, 2), (9, 9)])
def test_slices(kind, start, stop):
    array = array_of(TEXTS, kind).slice(start, stop - start)
    assert columns.strings(array).to_list() == TEXTS[start:stop]
    chunks = pa.chunked_array([array, array.slice(0, 0), array])
    assert columns.strings(chunks).to_list() == TEXTS[start:stop] * 2


@given(st.lists(st.lists(st.none() | st.text(max_size=20), max_size=6), max_size=4), st.data())
def test_any_chunks_any_slice_there_and_back(chunks, data):
    kind = data.draw(st.sampled_from(TYPES[:3]))
    texts = [text for chunk in chunks for text in chunk]
    column = pa.chunked_array([pa.array(c, kind) for c in chunks], kind)
    lo = data.draw(st.integers(0, len(texts)))
    packed = columns.strings(column.slice(lo))
    assert packed.to_list() == texts[lo:]
    back = columns.arrow(packed)
    back.validate(full=True)
    assert back.to_pylist() == texts[lo:]
    assert columns.arrow(packed[1:]).to_pylist() == texts[lo:][1:]


def test_nothing_in_it():
    for kind in [*TYPES, pa.null()]:
        assert columns.strings(pa.array([], kind)).to_list() == []
        assert columns.strings(pa.chunked_array([], kind)).to_list() == []
    assert columns.strings(pa.nulls(3)).to_list() == [None] * 3
    assert columns.strings(pa.nulls(3, pa.string())).to_list() == [None] * 3
    assert columns.arrow(Strings.pack([])).to_pylist() == []
    # other producers leave buffers out
    empty = pa.Array.from_buffers(
        pa.large_string(), 0, [None, pa.py_buffer(b""), pa.py_buffer(b"")]
    )
    assert columns.strings(empty).to_list() == []


def test_ascii_is_not_copied_and_nothing_can_be_written_to():
    array = pa.array(["abc", "de"] * 100)
    packed = columns.strings(array)
    assert packed.data.ctypes.data == array.buffers()[2].address
    assert columns.arrow(packed).buffers()[2].address == array.buffers()[2].address
    assert not packed.data.flags.writeable
    assert not packed.offsets.flags.writeable


def test_nulls_may_span_bytes():
    offsets = pa.py_buffer(np.array([0, 2, 5], np.int32))
    array = pa.Array.from_buffers(
        pa.string(), 2, [pa.py_buffer(b"\x01"), offsets, pa.py_buffer(b"okc\xe9f")]
    )
    assert columns.strings(array).to_list() == ["ok", None]


def test_c037_dictionaries_differ_by_chunk_and_nulls_are_in_either_place():
    a = pa.array(["Flamingo", "Parrot", None, "Dog"]).dictionary_encode()
    b = pa.array(["Horse", "Dog", "Dog"]).dictionary_encode()
    packed = columns.strings(pa.chunked_array([a, b]))
    assert packed.to_list() == ["Flamingo", "Parrot", None, "Dog", "Horse", "Dog", "Dog"]
    inner = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["x", None]))
    assert columns.strings(inner).to_list() == ["x", None, None]
    views = pa.DictionaryArray.from_arrays(pa.array([1, 0]), pa.array(["x", "y"], pa.string_view()))
    assert columns.strings(views).to_list() == ["y", "x"]


def test_c080_nul_characters_are_characters():
    texts = ["a", "a\0", "x\0y", "x\0z", "\0"]
    packed = columns.strings(pa.array(texts))
    assert packed.to_list() == texts
    assert packed.lengths.tolist() == [1, 2, 3, 3, 1]


@pytest.mark.parametrize(
    "make",
    [
        pl.Series,
        pd.Series,
        lambda t: pa.table(duckdb.from_arrow(pa.table({"t": t})))["t"],
    ],
)
def test_columns_of_other_libraries(make):
    texts = ["a value longer than twelve bytes", None, "ä"]
    assert columns.strings(make(texts)).to_list() == texts


def test_array_capsule_only():
    class Column:
        def __arrow_c_array__(self, requested_schema=None):
            return pa.array(["a", None]).__arrow_c_array__(requested_schema)

    assert columns.strings(Column()).to_list() == ["a", None]


@pytest.mark.parametrize("kind", [pa.string(), pa.binary()], ids=str)
def test_c095_bytes_that_are_not_utf8(kind):
    message = r"f\.parquet: column 'body', row 11: not valid UTF-8 at byte 1 of the value \(0xe9\)"
    with pytest.raises(InputError, match=message):
        columns.strings(bad_utf8(kind), name="body", where="f.parquet", first_row=10)
    with pytest.raises(InputError, match="row 3:"):
        columns.strings(pa.chunked_array([pa.array(["a", "b"], kind), bad_utf8(kind)]))
    with pytest.raises(InputError, match="row 0:"):
        columns.strings(bad_utf8(kind).slice(1))


def test_bad_utf8_in_views_and_dictionaries():
    view = pa.array([b"ok", b"a longer value with \xff in it"], pa.binary_view())
    text = pa.Array.from_buffers(pa.string_view(), 2, view.buffers())
    with pytest.raises(InputError, match=r"row 1: not valid UTF-8 at byte 20"):
        columns.strings(text)
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 0, 1], pa.int8()), bad_utf8())
    with pytest.raises(InputError, match=r"row 2: not valid UTF-8 at byte 1"):
        columns.strings(coded)


def test_damaged_offsets_and_indices_are_refused():
    offsets = pa.py_buffer(np.array([0, 5, 3, 6], np.int32))
    array = pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b"abcdef")])
    with pytest.raises(InputError, match=r"column 'text' is damaged: .*offset"):
        columns.strings(array)
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 7]), pa.array(["x"]), safe=False)
    with pytest.raises(InputError, match="column 'text' is damaged"):
        columns.strings(coded)


def test_what_is_not_text():
    for column in (pa.array([1]), pa.array([{"a": "x"}]), pa.array([["a"]]), pl.Series([1.5])):
        with pytest.raises(TypeError, match=r"column 'n' is .*, not text; choose a column of"):
            columns.strings(column, name="n")
    with pytest.raises(TypeError, match="column 'n' is list, not an Arrow column"):
        columns.strings(["a"], name="n")
    with pytest.raises(TypeError, match="column 'n' cannot be read as Arrow"):
        columns.strings(pd.Series(["a", 1], dtype=object), name="n")


def test_lone_surrogates_are_refused_by_row():
    with pytest.raises(InputError, match=r"row 2 holds a lone surrogate \(U\+D800\)"):
        columns.arrow(Strings.pack(["a", "ä", "b\ud800"]))


def test_long_columns_are_encoded_in_parts(monkeypatch):
    monkeypatch.setattr(columns, "_ENCODE_CHARS", 3)
    texts = ["x", None, "añ", "😀x", "", "aaaaaaaaa", "日本", None] * 3
    assert columns.arrow(Strings.pack(texts)).to_pylist() == texts
    with pytest.raises(InputError, match="row 7 holds"):
        columns.arrow(Strings.pack([*TEXTS[:7], "\udfff"]))


def test_blns_survives_the_round_trip(shared, tmp_path):
    import json

    texts = json.loads((shared / "data/blns/blns.json").read_text(encoding="utf-8"))
    pq.write_table(pa.table({"text": texts}), tmp_path / "t.parquet")
    packed = columns.strings(pq.read_table(tmp_path / "t.parquet")["text"])
    assert packed.to_list() == texts
    assert columns.arrow(packed).to_pylist() == texts


def test_tables():
    """A table of one column is that column; of more it is refused by their names."""
    one = pa.table({"x": pa.chunked_array([["a", None], ["b"]])})
    assert columns.strings(one).to_list() == ["a", None, "b"]
    assert columns.strings(one.slice(1)).to_list() == [None, "b"]
    with pytest.raises(TypeError, match=r"'text' is a table of 2 columns \(x, y\); pass one"):
        columns.strings(one.append_column("y", one["x"]))
