"""Token sets: the words and characters that plain Python finds, ranked by how rare they are."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resemblance.strings import UNITS, Strings
from resemblance.tokens import Chars, TokenSets, Words, parse_tokens, token_sets
from strategies import JIT, columns, examples

KINDS = [Words(), Words(2), Words(3), Chars(1), Chars(2), Chars(3), Chars(4), Chars(7)]

kinds = st.sampled_from(KINDS)


# --- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("words", Words()),
        ("words:5", Words(5)),
        ("chars", Chars()),
        ("chars:24", Chars(24)),
        (" Chars:2 ", Chars(2)),
        (Words(3), Words(3)),
    ],
)
def test_names(text, expected):
    assert parse_tokens(text) == expected
    assert parse_tokens(str(expected)) == expected


@pytest.mark.parametrize(
    "text",
    ["", "letters", "words:", "words:0", "chars:-1", "chars:x", "chars:²", "words:1:2", 3, None],
)
def test_names_that_are_none(text):
    with pytest.raises(ValueError, match="words:N or chars:N"):
        parse_tokens(text)


@pytest.mark.parametrize("kind", [Words, Chars])
@pytest.mark.parametrize("n", [0, -1, 1.5, "2", True, None])
def test_numbers_that_are_none(kind, n):
    with pytest.raises(ValueError, match=f"{kind.__name__} takes a whole number from 1"):
        kind(n)


# --- against plain Python ------------------------------------------------------------------------


@given(columns(max_size=16), kinds, st.booleans())
@examples(200)
def test_one_column(column, kind, multiset):
    sets = TokenSets.make(column, kind, multiset)
    assert rows_of(sets) == ranked([column], kind, multiset)[0]
    assert sets.offsets.dtype == np.int64
    assert sets.ids.dtype == np.int32
    assert sets.sizes.tolist() == [len(row) for row in rows_of(sets)]
    assert len(sets) == len(column)


@given(columns(), columns(), kinds, st.booleans())
@examples(200)
def test_two_columns_have_one_vocabulary(left, right, kind, multiset):
    found = token_sets(Strings.pack(left), Strings.pack(right), kind, multiset)
    assert [rows_of(sets) for sets in found] == ranked([left, right], kind, multiset)
    vocabulary = {token for row in itertools.chain(*map(rows_of, found)) for token in row}
    assert vocabulary == set(range(found[0].vocabulary))
    assert found[1].vocabulary == found[0].vocabulary


@given(columns(), kinds, st.booleans())
@examples(50)
def test_one_column_on_both_sides(column, kind, multiset):
    strings = Strings.pack(column)
    for right in (None, strings):
        a, b = token_sets(strings, right, kind, multiset)
        assert a is b


@given(columns(max_size=8), kinds, st.booleans(), st.data())
@examples(50)
def test_rows_taken(column, kind, multiset, data):
    sets = TokenSets.make(column, kind, multiset)
    rows = data.draw(st.lists(st.integers(0, len(column) - 1))) if column else []
    taken = sets.take(np.asarray(rows, np.int64))
    assert rows_of(taken) == [rows_of(sets)[row] for row in rows]


def test_many_tokens():
    """More than the table has room for at first, several times over."""
    column = [" ".join(f"w{k}" for k in range(row, row + 40)) for row in range(0, 40_000, 20)]
    column = column if JIT else column[:130]
    assert rows_of(TokenSets.make(column)) == ranked([column], Words(), False)[0]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("multiset", [False, True])
def test_long_repetitive_text(kind, multiset):
    text = "ab " * (3000 if JIT else 300)
    column = [text, text[:-1], text[1:], "ab"]
    assert rows_of(TokenSets.make(column, kind, multiset)) == ranked([column], kind, multiset)[0]


# --- what they must not depend on ----------------------------------------------------------------


@given(columns(max_size=8), kinds, st.booleans())
@examples(50)
def test_width_of_characters(column, kind, multiset):
    latin = [
        None if text is None else text.encode("utf-8", "surrogatepass").decode("latin-1")
        for text in column
    ]
    strings = Strings.pack(latin)
    for left, right in itertools.product(UNITS, UNITS):
        found = token_sets(strings.widened(left), strings.widened(right), kind, multiset)
        assert [rows_of(sets) for sets in found] == ranked([latin, latin], kind, multiset)


@pytest.mark.jit
def test_white_space_is_that_of_split():
    every = list(map(chr, range(0x110000)))
    sizes = TokenSets.make([f"a{c}b" for c in every]).sizes
    assert sizes.tolist() == [len(f"a{c}b".split()) for c in every]


def test_spaces_between_words_do_not_matter():
    sets = TokenSets.make(["a b", " a\u3000\tb\n", "a  b ", "ab"], Words(3))
    assert rows_of(sets)[0] == rows_of(sets)[1] == rows_of(sets)[2] != rows_of(sets)[3]


def test_a_short_text_is_no_part_of_a_longer_one():
    """A text shorter than the tokens is one of its own, whatever zeros the longer ones hold."""
    column = ["b", "\0b", "\0\0b", "\0\0\0\0\0b", "bb"]
    for kind in (Chars(2), Chars(3), Chars(6)):
        assert rows_of(TokenSets.make(column, kind)) == ranked([column], kind, False)[0]


def test_occurrences_are_told_from_characters():
    """A second occurrence is like no token that the packing of characters gives."""
    rows = rows_of(TokenSets.make(["aaaa", "a", "aa"], Chars(1), multiset=True))
    assert [len(row) for row in rows] == [4, 1, 2]
    assert set(rows[1]) < set(rows[2]) < set(rows[0])


# --- references ----------------------------------------------------------------------------------


def tokens(text, kind, multiset):
    """Tokens of one text in order: ``(run, occurrence)``; those of a set have occurrence 0."""
    units = (text or "").split() if isinstance(kind, Words) else (text or "")
    if not units:
        return []
    runs = [tuple(units[k : k + kind.n]) for k in range(max(1, len(units) - kind.n + 1))]
    if not multiset:
        return [(run, 0) for run in dict.fromkeys(runs)]
    seen = Counter()
    found = []
    for run in runs:
        found.append((run, seen[run]))
        seen[run] += 1
    return found


def ranked(sides, kind, multiset):
    """Rows of ranks, rising, of each side: rare tokens first, then those that come first."""
    rows = [[tokens(text, kind, multiset) for text in side] for side in sides]
    held = Counter(itertools.chain(*itertools.chain(*rows)))
    order = sorted(held, key=held.__getitem__)  # a Counter keeps the order of first appearance
    rank = {token: place for place, token in enumerate(order)}
    return [[sorted(map(rank.__getitem__, row)) for row in side] for side in rows]


def rows_of(sets):
    return [sets.ids[a:b].tolist() for a, b in itertools.pairwise(sets.offsets.tolist())]
