"""The packed column: what goes in comes out, in the narrowest unit, whatever the container."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import resemblance as rs
from strategies import SCRIPTS, columns, examples, texts

UNIT_OF = {
    "ascii": np.uint8,
    "binary": np.uint8,
    "latin": np.uint8,
    "greek": np.uint16,
    "cjk": np.uint16,
    "emoji": np.uint32,
    "mixed": np.uint32,
    "surrogates": np.uint32,
    "spaced": np.uint16,
}


def utf8(column: list[str | None], filler: bytes = b"") -> tuple[np.ndarray, ...]:
    """Buffers of an Arrow column; a null row spans ``filler``."""
    parts = [filler if text is None else text.encode() for text in column]
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
    valid = np.array([text is not None for text in column], np.bool_)
    return np.frombuffer(b"".join(parts), np.uint8), offsets, valid


def strip_surrogates(column: list[str | None]) -> list[str | None]:
    return [text and "".join(c for c in text if not 0xD800 <= ord(c) < 0xE000) for text in column]


# --- packing -------------------------------------------------------------------------------------


@given(columns())
@examples(200)
def test_pack_keeps_every_row(column):
    packed = rs.Strings.pack(column)
    assert packed.to_list() == column
    assert list(packed) == column
    assert [packed[i] for i in range(len(column))] == column
    assert [packed[-i - 1] for i in range(len(column))] == column[::-1]
    assert packed.lengths.tolist() == [len(text or "") for text in column]
    assert packed.offsets.dtype == np.int64
    assert len(packed.offsets) == len(column) + 1
    nulls = [text is None for text in column]
    assert packed.is_null.tolist() == nulls
    assert packed.null_count == sum(nulls)
    assert (packed.valid is None) == (not any(nulls))


@pytest.mark.parametrize("script", SCRIPTS)
def test_unit_is_the_narrowest(script):
    packed = rs.Strings.pack([SCRIPTS[script], None, ""])
    assert packed.data.dtype == UNIT_OF[script]
    assert packed.data.tolist() == [ord(c) for c in SCRIPTS[script]]


@pytest.mark.parametrize(
    ("largest", "unit"),
    [(0x7F, np.uint8), (0xFF, np.uint8), (0x100, np.uint16), (0xFFFF, np.uint16),
     (0x10000, np.uint32), (0x10FFFF, np.uint32)],
)  # fmt: skip
def test_unit_at_the_limits(largest, unit):
    assert rs.Strings.pack(["a" + chr(largest)]).data.dtype == unit


def test_containers_give_the_same_column():
    column = ["one", "", "trois é", "\U0001f600"]
    expected = rs.Strings.pack(column)
    for container in (
        tuple(column),
        np.array(column),
        np.array(column, object),
        np.array(column, np.dtypes.StringDType()),
    ):
        packed = rs.Strings.pack(container)
        assert packed.to_list() == column
        assert packed.data.dtype == expected.data.dtype


def test_missing_values_are_nulls():
    """Case C002: NaN never becomes the text "nan"."""
    pandas = pytest.importorskip("pandas")
    column = ["example1", "", None, float("nan"), np.float64("nan"), pandas.NA, "nan", "None"]
    expected = ["example1", "", None, None, None, None, "nan", "None"]
    assert rs.Strings.pack(column).to_list() == expected
    assert rs.Strings.pack(np.array(column, object)).to_list() == expected
    dtype = np.dtypes.StringDType(na_object=None)
    assert rs.Strings.pack(np.array(["a", None, ""], dtype)).to_list() == ["a", None, ""]


@pytest.mark.parametrize("value", [1, 1.5, b"bytes", ["a"], object()])
def test_other_values_name_their_row(value):
    with pytest.raises(TypeError, match=f"row 2 is {type(value).__name__}"):
        rs.Strings.pack(["a", None, value])


@pytest.mark.parametrize("array", [np.zeros(3), np.array([["a"], ["b"]]), np.array([b"a"])])
def test_other_arrays_are_refused(array):
    with pytest.raises(TypeError):
        rs.Strings.pack(array)


def test_nul_characters_are_text():
    """Case C080: five different values, in a list and in NumPy's variable-width strings."""
    values = ["a", "a\0", "x\0y", "x\0z", "\0"]
    assert rs.Strings.pack(values).to_list() == values
    assert rs.Strings.pack(np.array(values, np.dtypes.StringDType())).to_list() == values
    assert len(rs.Strings.pack(values).distinct().strings) == 5


def test_a_single_string_is_not_a_column():
    with pytest.raises(TypeError, match="single str"):
        rs.cdist("abc", ["abc"])
    with pytest.raises(TypeError, match="list"):
        rs.cdist(["abc"], (text for text in ["abc"]))


# --- UTF-8 ---------------------------------------------------------------------------------------


@given(columns(), st.sampled_from([b"", b"?", "é".encode(), b"\xff\xfe"]))
@examples(200)
def test_utf8_equals_python(column, filler):
    column = strip_surrogates(column)
    packed = rs.Strings.from_utf8(*utf8(column, filler))
    assert packed.to_list() == column
    assert packed.lengths.tolist() == [len(text or "") for text in column]


@given(columns(), st.data())
@examples(100)
def test_utf8_of_a_slice(column, data):
    column = strip_surrogates(column)
    lo = data.draw(st.integers(0, len(column)))
    hi = data.draw(st.integers(lo, len(column)))
    bytes_, offsets, valid = utf8(column)
    packed = rs.Strings.from_utf8(bytes_, offsets[lo : hi + 1], valid[lo:hi])
    assert packed.to_list() == column[lo:hi]


def test_ascii_is_not_copied():
    data, offsets, _ = utf8(["plain", "", "text"])
    assert np.shares_memory(rs.Strings.from_utf8(data, offsets).data, data)


def test_arrays_are_read_only():
    data, offsets, valid = utf8(["a", None, "c"])
    for packed in (rs.Strings.from_utf8(data, offsets, valid), rs.Strings.pack(["a", None, "é"])):
        for array in (packed.data, packed.offsets, packed.valid):
            assert not array.flags.writeable
            assert array.flags.c_contiguous
            assert array.flags.aligned


# --- rearranging ---------------------------------------------------------------------------------


@given(columns(), st.data())
@examples(100)
def test_slices_and_take(column, data):
    packed = rs.Strings.pack(column)
    bounds = st.integers(-len(column) - 2, len(column) + 2) | st.none()
    step = data.draw(st.sampled_from([None, 1, 2, -1, -3]))
    cut = slice(data.draw(bounds), data.draw(bounds), step)
    assert packed[cut].to_list() == column[cut]
    if column:
        rows = data.draw(st.lists(st.integers(0, len(column) - 1), max_size=20))
        assert packed.take(rows).to_list() == [column[row] for row in rows]
        # of a slice, whose first offset is not 0
        tail = packed[1:]
        rows = [row - 1 for row in rows if row > 0]
        assert tail.take(rows).to_list() == [column[row + 1] for row in rows]


def test_slice_shares_memory():
    packed = rs.Strings.pack(["aa", "bb", "cc"])
    assert np.shares_memory(packed[1:].data, packed.data)


@pytest.mark.parametrize("row", [3, -4])
def test_rows_out_of_range(row):
    packed = rs.Strings.pack(["a", None, "c"])
    with pytest.raises(IndexError):
        packed[row]
    with pytest.raises(IndexError):
        packed.take([row])


@given(columns(max_size=20))
@examples(100)
def test_distinct(column):
    packed = rs.Strings.pack(column)
    strings, first, group = packed.distinct()
    seen = list(dict.fromkeys(text for text in column if text is not None))
    assert strings.to_list() == sorted(seen, key=len)
    assert first.tolist() == [column.index(text) for text in strings.to_list()]
    assert [None if g < 0 else strings[g] for g in group.tolist()] == column


@given(st.lists(texts(), max_size=4))
@examples(50)
def test_slices_score_as_copies(column):
    """Nothing looks before the first offset of a slice."""
    packed = rs.Strings.pack(["zzz", *column, "zzz"])
    assert np.array_equal(rs.cdist(packed[1:-1], packed), rs.cdist(column, packed.to_list()))


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float64])
def test_wrong_buffers(dtype):
    with pytest.raises(TypeError):
        rs.Strings(np.zeros(1, dtype), np.zeros(2, np.int64))
    with pytest.raises(TypeError):
        rs.Strings(np.zeros(1, np.uint8), np.zeros(2, np.int32))
