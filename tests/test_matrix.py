"""cdist, pdist, pairwise: values, shapes, types, nulls, and nothing else matters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import resemblance as rs
from strategies import SCRIPTS, column_of, columns, examples

KINDS = ("distance", "similarity")


def equal(found: np.ndarray, expected: list, shape: tuple[int, ...]) -> None:
    """Equal values, bit for bit, NaN for null."""
    assert found.shape == shape
    np.testing.assert_array_equal(found, np.array(expected, np.float64).reshape(shape))


# --- values --------------------------------------------------------------------------------------


@given(columns(), columns(), st.sampled_from(KINDS))
@examples(200)
def test_cdist(left, right, score):
    found = rs.cdist(left, right, score=score)
    equal(found, naive.cdist(left, right, score), (len(left), len(right)))
    np.testing.assert_array_equal(rs.cdist(right, left, score=score), found.T)


@given(columns(), st.sampled_from(KINDS))
@examples(150)
def test_column_against_itself(column, score):
    """One side or the same side twice: RapidFuzz#387, its answers differed where None was."""
    n = len(column)
    expected = naive.cdist(column, kind=score)
    equal(rs.cdist(column, score=score), expected, (n, n))
    equal(rs.cdist(column, column, score=score), expected, (n, n))
    equal(rs.cdist(column, list(column), score=score), expected, (n, n))
    packed = rs.Strings.pack(column)
    equal(rs.cdist(packed, packed, score=score), expected, (n, n))
    equal(rs.cdist(packed, column, score=score), expected, (n, n))
    equal(rs.pdist(column, score=score), naive.pdist(column, score), (n * (n - 1) // 2,))


@given(columns(), st.sampled_from(KINDS), st.data())
@examples(150)
def test_pairwise(column, score, data):
    other = data.draw(st.permutations(column))
    found = rs.pairwise(column, other, score=score)
    equal(found, naive.pairwise(column, other, score), (len(column),))


@given(columns(), columns())
@examples(60)
def test_similarity_follows_from_distance(left, right):
    distance = rs.cdist(left, right, dtype="float64")
    longer = np.maximum.outer(
        [len(text or "") for text in left], [len(text or "") for text in right]
    ).reshape(distance.shape)
    with np.errstate(invalid="ignore"):
        expected = np.where((longer == 0) & ~np.isnan(distance), 1, (longer - distance) / longer)
    np.testing.assert_array_equal(rs.cdist(left, right, score="similarity"), expected)


def test_pdist_in_scipys_order():
    column = column_of(40, SCRIPTS["latin"], 1)
    square = rs.cdist(column)
    np.testing.assert_array_equal(rs.pdist(column), square[np.triu_indices(40, 1)])


@pytest.mark.parametrize("rows", [(1, 300), (300, 1), (2, 700), (700, 2), (37, 41)])
def test_one_side_much_longer(rows):
    """Few rows against many: whichever side lies on the lanes, the matrix is the same."""
    left, right = (column_of(n, SCRIPTS["greek"], n, 12) for n in rows)
    found = rs.cdist(left, right)
    pick = np.random.default_rng(0).integers(0, rows[0] * rows[1], 200)
    for i, j in zip(*np.unravel_index(pick, rows), strict=True):
        assert found[i, j] == naive.levenshtein(left[i], right[j])
    np.testing.assert_array_equal(rs.cdist(right, left), found.T)


# --- shapes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("left", "right"), [([], ["a", "b"]), (["a", "b"], []), ([], [])])
@pytest.mark.parametrize(("score", "dtype"), [("distance", "uint8"), ("similarity", "float64")])
def test_nothing_to_do(left, right, score, dtype):
    """Case C064, RapidFuzz#277."""
    found = rs.cdist(left, right, score=score)
    assert found.shape == (len(left), len(right))
    assert found.dtype == dtype


def test_empty_and_single_columns():
    assert rs.cdist([]).shape == (0, 0)
    assert rs.pdist([]).shape == rs.pdist(["a"]).shape == (0,)
    assert rs.pairwise([], []).shape == (0,)
    assert rs.cdist(["a"]).tolist() == [[0]]


def test_pairwise_needs_equal_lengths():
    with pytest.raises(ValueError, match=r"2.*3|3.*2"):
        rs.pairwise(["a", "b"], ["a", "b", "c"])


# --- types ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("longest", "dtype"),
    [(0, "uint8"), (255, "uint8"), (256, "uint16"), (65_535, "uint16"), (65_536, "uint32")],
)
@pytest.mark.jit
def test_narrowest_unsigned_type(longest, dtype):
    """The type follows from the longest string: a distance cannot wrap (rapidfuzz: 300 as 44)."""
    column = ["a" * longest, "b"]
    expected = max(longest, 1)
    for found in (rs.cdist(column), rs.cdist(["b"], column), rs.cdist(column, ["b"])):
        assert found.dtype == dtype
        assert found.max() == expected
    assert rs.pdist(column).dtype == dtype
    pairs = rs.pairwise(column, ["b", "b"], score="distance")
    assert pairs.dtype == dtype
    assert pairs.tolist() == [expected, 0]


@pytest.mark.parametrize(
    "dtype", ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
              "float32", "float64"],
)  # fmt: skip
def test_type_asked_for(dtype):
    column = ["kitten", "sitting", "", "a" * 100]
    expected = naive.cdist(column)
    for found in (rs.cdist(column, dtype=dtype), rs.cdist(column, dtype=np.dtype(dtype))):
        assert found.dtype == dtype
        equal(found, expected, (4, 4))
    assert rs.pdist(column, dtype=dtype).dtype == dtype
    assert rs.pairwise(column, column, score="distance", dtype=dtype).dtype == dtype


@pytest.mark.parametrize(
    ("dtype", "length", "fits"),
    [("uint8", 300, "uint16"), ("int8", 200, "uint8"), ("uint16", 70_000, "uint32")],
)
@pytest.mark.jit
def test_type_too_small(dtype, length, fits):
    for call in (
        lambda: rs.cdist(["a" * length], ["b"], dtype=dtype),
        lambda: rs.cdist(["b"], ["a" * length], dtype=dtype),
        lambda: rs.pdist(["a" * length, "b"], dtype=dtype),
        lambda: rs.pairwise(["a" * length], ["b"], score="distance", dtype=dtype),
    ):
        with pytest.raises(ValueError, match=rf"{dtype}.*{fits}|{fits}.*{dtype}"):
            call()


@pytest.mark.parametrize("dtype", ["U3", "object", "bool", "complex64", "datetime64[s]"])
def test_type_that_holds_no_score(dtype):
    with pytest.raises((TypeError, ValueError), match="dtype"):
        rs.cdist(["a"], ["b"], dtype=dtype)


def test_similarity_types():
    column = ["abc", "abd", "", "x" * 7]
    wide = rs.cdist(column, score="similarity")
    narrow = rs.cdist(column, score="similarity", dtype="float32")
    assert wide.dtype == "float64"
    assert narrow.dtype == "float32"
    np.testing.assert_array_equal(narrow, wide.astype("float32"))
    with pytest.raises(ValueError, match="uint8"):
        rs.cdist(column, score="similarity", dtype="uint8")


@pytest.mark.parametrize("score", ["ratio", None, "Distance "])
def test_unknown_score(score):
    with pytest.raises(ValueError, match=r"distance.*similarity|similarity.*distance"):
        rs.cdist(["a"], ["b"], score=score)


# --- nulls ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("score", KINDS)
def test_null_against_anything_is_nan(score):
    """Case C002: missing stays missing, never the text "nan" or "None"; the matrix is symmetric."""
    column = ["example1", "", None, "nan", "NaN", "None", float("nan")]
    missing = np.array([False, False, True, False, False, False, True])
    found = rs.cdist(column, score=score)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(np.isnan(found), missing[:, None] | missing[None, :])
    np.testing.assert_array_equal(found, found.T)
    text = ["example1", "", None, "nan", "NaN", "None", None]
    equal(found, naive.cdist(text, kind=score), (7, 7))


@pytest.mark.parametrize("where", [0, 1, 2])
def test_nulls_first_in_the_middle_last(where):
    """rapidfuzz 3.14 reads uninitialised memory unless its Nones come last."""
    column: list[str | None] = ["abc", "abd"]
    column.insert(where, None)
    equal(rs.cdist(column, ["abc", "", "x"]), naive.cdist(column, ["abc", "", "x"]), (3, 3))
    equal(rs.cdist(["abc", "", "x"], column), naive.cdist(["abc", "", "x"], column), (3, 3))


@given(st.integers(0, 4), st.integers(0, 4))
@examples(20)
def test_only_nulls(n, m):
    assert np.isnan(rs.cdist([None] * n, [None] * m)).sum() == n * m
    assert np.isnan(rs.pdist([None] * n)).all()


def test_nulls_in_integers_name_side_and_row():
    for call, side, row in (
        (lambda: rs.cdist(["a", "b", None], ["a"], dtype="uint8"), "left", 2),
        (lambda: rs.cdist(["a"], ["a", None], dtype="int64"), "right", 1),
        (lambda: rs.pairwise(["a"], [None], score="distance", dtype="uint8"), "right", 0),
    ):
        with pytest.raises(ValueError, match=rf"{side}.*{row}"):
            call()
    with pytest.raises(ValueError, match="1"):
        rs.pdist(["a", None], dtype="uint8")


def test_nulls_in_float32():
    found = rs.cdist(["a", None], ["b"], dtype="float32")
    assert found.dtype == "float32"
    equal(found, [[1], [np.nan]], (2, 1))


# --- out -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["C", "F"])
def test_out_is_filled_and_returned(order):
    left, right = column_of(20, "abc", 1), column_of(30, "abc", 2)
    out = np.full((20, 30), 99, np.uint8, order=order)
    if order == "F":
        with pytest.raises(ValueError, match="out"):
            rs.cdist(left, right, out=out)
        return
    assert rs.cdist(left, right, out=out) is out
    np.testing.assert_array_equal(out, naive.cdist(left, right))


def test_out_may_be_a_memory_map(tmp_path):
    left, right = column_of(20, "abc", 1), column_of(30, "abc", 2)
    out = np.memmap(tmp_path / "matrix", np.uint16, "w+", shape=(20, 30))
    rs.cdist(left, right, out=out)
    out.flush()
    stored = np.fromfile(tmp_path / "matrix", np.uint16).reshape(20, 30)
    np.testing.assert_array_equal(stored, naive.cdist(left, right))


@pytest.mark.parametrize(
    "out", [np.empty((2, 1), np.uint8), np.empty(2, np.uint8), np.empty((1, 2), np.int8)[:, ::-1]]
)
def test_out_of_the_wrong_shape(out):
    with pytest.raises(ValueError, match="out"):
        rs.cdist(["a"], ["b", "c"], out=out)


def test_out_that_cannot_hold_the_scores():
    with pytest.raises(ValueError, match=r"uint8.*uint16|uint16.*uint8"):
        rs.cdist(["a" * 300], ["b"], out=np.empty((1, 1), np.uint8))
    with pytest.raises(ValueError, match=r"left.*0"):
        rs.cdist([None], ["b"], out=np.empty((1, 1), np.uint8))
    with pytest.raises(ValueError, match=r"out|dtype"):
        rs.cdist(["a"], ["b"], out=np.empty((1, 1), np.uint8), dtype=np.uint16)
    frozen = np.empty((1, 1), np.uint8)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="out"):
        rs.cdist(["a"], ["b"], out=frozen)


# --- what may not matter -------------------------------------------------------------------------


@given(columns(), columns(), st.integers(1, 4), st.sampled_from(KINDS))
@examples(60)
def test_threads_do_not_matter(left, right, threads, score):
    expected = rs.cdist(left, right, score=score, threads=1)
    np.testing.assert_array_equal(rs.cdist(left, right, score=score, threads=threads), expected)


@given(columns(), st.data())
@examples(60)
def test_order_of_rows_does_not_matter(column, data):
    order = data.draw(st.permutations(range(len(column))))
    shuffled = [column[row] for row in order]
    expected = rs.cdist(column, score="similarity")
    np.testing.assert_array_equal(
        rs.cdist(shuffled, score="similarity"), expected[np.ix_(order, order)]
    )


@given(columns(), columns())
@examples(60)
def test_wider_neighbours_do_not_matter(left, right):
    """One emoji in the column widens every row's characters, not their distances."""
    expected = rs.cdist(left, right, dtype="float64")
    found = rs.cdist([*left, "\U0001f600"], right, dtype="float64")
    np.testing.assert_array_equal(found[:-1], expected)
    found = rs.cdist(left, ["\U0001f600", *right], dtype="float64")
    np.testing.assert_array_equal(found[:, 1:], expected)


def test_case_and_blanks_count():
    """Case C016: the scalar, pairwise and matrix entry points have the same (no) preprocessing."""
    a, b = "McDonald", "MCDONALD"
    assert rs.cdist([a], [b])[0, 0] == rs.pdist([a, b])[0] == 6
    assert rs.pairwise([a], [b], score="distance")[0] == 6
    assert rs.cdist([a], [b], score="similarity")[0, 0] == rs.pairwise([a], [b])[0] == 0.25
