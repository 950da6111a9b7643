"""Normalisation gives what Python's own functions give, row by row, whatever way a row takes."""

from __future__ import annotations

import dataclasses
import itertools
import string
import sys
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resemblance.normalize import WORDS, Normalize, parse_normalize
from resemblance.strings import Strings
from strategies import JIT, SCRIPTS, column_of, columns, examples

FORMS = ["NFC", "NFD", "NFKC", "NFKD"]
SINGLE = [
    Normalize(case="lower"),
    Normalize(case="casefold"),
    Normalize(whitespace="collapse"),
    Normalize(whitespace="remove"),
    Normalize(punctuation="ascii"),
    Normalize(punctuation="unicode"),
    Normalize(strip=True),
    *(Normalize(unicode=form) for form in FORMS),
]
COMBINED = [
    Normalize(case="casefold", whitespace="collapse", punctuation="unicode", strip=True),
    Normalize(unicode="NFC", case="lower", whitespace="collapse", strip=True),
    Normalize(unicode="NFKC", case="casefold", punctuation="ascii", whitespace="remove"),
    Normalize(unicode="NFD", case="casefold", punctuation="unicode"),
    Normalize(unicode="NFKD", case="lower", punctuation="ascii", strip=True),
]
TRICKY = [
    "", " ", "\0", "a\0 \0b", "\t\n\v\f\r\x1c\x1d\x1e\x1f\x85\xa0", "  a \u2003\u3000 b  ",
    "ΑΣ", "ΑΣ.", "Σ", "ΑΣ Β", "ΑΣΑ", "ΑΣ\u0301", "ΟΔΥΣΣΕΥΣ ΣΑΣ", "A\u03a3", ".Σ", "a\u00adΣ",
    "İ", "İstanbul", "ı", "Iı", "ß", "STRASSE straße", "ẞ", "ŉ", "ǰ", "ﬁ ﬃ", "µ", "ÿŸ",
    "\u212a\u212b\u2126", "Ǆ ǅ", "ᾳ", "ΐ", "\U00010400\U0001d400",
    "cafe\u0301", "café", "e\u0323\u0301", "e\u0301\u0323", "\u0301", "\u0301e", "q\u0307\u0323",
    "\u1100\u1161\u11a8", "가\u11a8", "각", "\u0958", "\u0915\u093c", "\u0b47\u0b3e", "\u0344",
    "\uf900", "\U000110a5\U000110ba", "\U0002f800", "\ud800", "\udfff\ud800", "a\ud800 Σ",
    "¿Qué?", "«a», “b” — c…", "$+<=>^`|~", "!.!", " ! ", "a ! b", "a . . b", "...", "—", "a—b c",
    "\u200bzero\ufeff", "ＡＢＣ　１２", "x²", "½", "A" * 300 + "İ" + " " * 70,
]  # fmt: skip


def by_python(rules: Normalize, text: str) -> str:
    """What Python's functions make of a text, one after the other."""
    if rules.unicode:
        text = unicodedata.normalize(rules.unicode, text)
    if rules.case:
        text = text.lower() if rules.case == "lower" else text.casefold()
    if rules.punctuation == "ascii":
        text = "".join(c for c in text if c not in string.punctuation)
    elif rules.punctuation == "unicode":
        text = "".join(
            c
            for c in text
            if c not in string.punctuation and not unicodedata.category(c).startswith("P")
        )
    if rules.whitespace == "remove":
        text = "".join(text.split())
    elif rules.whitespace == "collapse":
        runs = itertools.groupby(text, str.isspace)
        text = "".join(" " if white else "".join(run) for white, run in runs)
    return text.strip() if rules.strip else text


def check(rules: Normalize, column: list[str | None]) -> None:
    expected = [None if text is None else by_python(rules, text) for text in column]
    packed = Strings.pack(column)
    found = rules(packed)
    if found.to_list() != expected:
        differing = [
            (rules, *texts)
            for texts in zip(column, found.to_list(), expected, strict=True)
            if texts[1] != texts[2]
        ]
        assert differing[:5] == []
    if expected == column:
        assert found is packed
    else:
        assert found.data.dtype == Strings.pack(expected).data.dtype
    assert found.is_null.tolist() == packed.is_null.tolist()


def some(codes: range) -> range:
    """All code points, or a few of them where a kernel step is a NumPy call."""
    return codes if JIT else codes[:: max(1, len(codes) // 300)]


# --- every character -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("rules", [*SINGLE, COMBINED[0], COMBINED[2]], ids=str)
def test_every_code_point(rules):
    check(rules, [chr(code) for code in some(range(sys.maxunicode + 1))])


@pytest.mark.parametrize("rules", [*SINGLE, *COMBINED], ids=str)
@pytest.mark.parametrize("codes", [range(0x80), range(0x100), range(0x400)], ids=len)
def test_every_code_point_of_a_narrow_column(rules, codes):
    check(rules, [chr(code) for code in some(codes)])


# what becomes of these depends on what stands beside them
CONTEXTS = ["a{}\u0301", "a\u0327{}", "{}Σ", "AΣ{}", "Σ{}b", " {} ", ". {}.", "{}\u1161\u11a8"]


@pytest.mark.slow
@pytest.mark.parametrize("rules", [*SINGLE, COMBINED[1], COMBINED[2]], ids=str)
def test_characters_in_context(rules):
    """All but ideographs, of which Han and Hangul have thousands alike."""
    codes = [
        *some(range(0x3400)),
        *some(range(0xA000, 0xAC10)),
        *some(range(0xD7A0, 0xD810)),
        *some(range(0xF900, 0x12000)),
        *some(range(0x1D100, 0x1D800)),
        *some(range(0x1E000, 0x1F100)),
    ]
    check(rules, [context.format(chr(code)) for code in codes for context in CONTEXTS])


@pytest.mark.parametrize("form", FORMS)
def test_every_composition(form):
    """Each pair that any normal form composes, with nothing else in the row to give it away."""
    pairs = []
    for code in range(sys.maxunicode + 1):
        decomposition = unicodedata.decomposition(chr(code))
        if " " in decomposition and decomposition[0] != "<":
            pairs.append("".join(chr(int(part, 16)) for part in decomposition.split()))
    hangul = ["\u1100\u1161", "\u1112\u1175", "가\u11a8", "하\u11c2"]
    check(Normalize(unicode=form), [*(pairs if JIT else pairs[::20]), *hangul])


# --- rows ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", [*SINGLE, *COMBINED], ids=str)
def test_tricky_texts(rules):
    check(rules, [None, *TRICKY, None])
    for text in TRICKY:  # each in characters as narrow as it allows
        check(rules, [text])
        check(rules, ["plain", text, None, "rows", text])


normalizations = st.builds(
    Normalize,
    case=st.sampled_from([False, "lower", "casefold"]),
    whitespace=st.sampled_from([None, "collapse", "remove"]),
    punctuation=st.sampled_from([None, "ascii", "unicode"]),
    unicode=st.sampled_from([None, *FORMS]),
    strip=st.booleans(),
)
alphabets = st.sampled_from([*TRICKY[1:], "aA .\t", "aé\u0301 Σß", *SCRIPTS.values()])


@given(normalizations, columns())
@examples(400)
def test_columns(rules, column):
    check(rules, column)


@given(normalizations, st.lists(st.none() | alphabets.flatmap(st.text), max_size=6))
@examples(600)
def test_columns_of_tricky_characters(rules, column):
    check(rules, column)


@given(normalizations, columns(), st.data())
@examples(100)
def test_slices(rules, column, data):
    """Whose first offset is not 0, and whose characters are wider than they need be."""
    lo = data.draw(st.integers(0, len(column)))
    found = rules(Strings.pack(["İΣ\U0001f600", *column, "ß"])[1 + lo : len(column) + 1])
    assert found.to_list() == [t if t is None else by_python(rules, t) for t in column[lo:]]


def test_many_rows_left_to_python():
    """More than are handed over at once."""
    rules = Normalize(case="lower", unicode="NFC", strip=True)
    rows = 40_000 if JIT else 40
    column = [f" {text}{'İΣ'[row % 2]}" for row, text in enumerate(column_of(rows, "aB é", seed=1))]
    check(rules, [*column, None, "Plain"])


def test_width_follows_the_result():
    for text, rules, unit in (
        ("µ", Normalize(case="casefold"), np.uint16),
        ("\u212a", Normalize(case="lower"), np.uint8),
        ("a\u2003", Normalize(strip=True), np.uint8),
        ("“a”", Normalize(punctuation="unicode"), np.uint8),
        ("𝐀", Normalize(unicode="NFKC"), np.uint8),
        ("é", Normalize(unicode="NFD"), np.uint16),
        ("Ａé", Normalize(unicode="NFKC", case="lower"), np.uint8),
    ):
        assert rules([text]).data.dtype == unit, text


def test_nothing_to_change_is_not_copied():
    packed = Strings.pack(["plain", None, "", "caf\u00e9 \u0915\u094d", "x y"])
    every = Normalize(case="casefold", whitespace="collapse", unicode="NFC", strip=True)
    for rules in (Normalize(), every, dataclasses.replace(every, punctuation="unicode")):
        assert rules(packed) is packed
        assert rules([]).to_list() == []
    ends = Strings.pack(["a ", " b"])  # blanks that meet are no run where they are of two rows
    assert Normalize(whitespace="collapse")(ends) is ends


def test_containers():
    pyarrow = pytest.importorskip("pyarrow")
    column = [" Ab", None, "ÉΣ"]
    rules = Normalize(case=True, strip=True)
    for texts in (
        column,
        tuple(column),
        np.array(column, object),
        pyarrow.array(column),
        pyarrow.chunked_array([column[:1], column[1:]]),
        Strings.pack(column),
    ):
        assert rules(texts).to_list() == ["ab", None, "éσ"]
    with pytest.raises(TypeError, match="single str"):
        rules("Ab")


# --- settings ------------------------------------------------------------------------------------


def test_true_is_casefold():
    assert Normalize(case=True) == Normalize(case="casefold")


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("case", "upper", "False, 'lower', 'casefold'"),
        ("case", None, "False, 'lower', 'casefold'"),
        ("case", 0, "False, 'lower', 'casefold'"),
        ("whitespace", True, "None, 'collapse', 'remove'"),
        ("punctuation", "all", "None, 'ascii', 'unicode'"),
        ("unicode", "nfc", "None, 'NFC', 'NFD', 'NFKC', 'NFKD'"),
        ("strip", "both", "False, True"),
        ("strip", ["x"], "False, True"),
    ],
)
def test_other_values_are_refused(field, value, allowed):
    with pytest.raises(ValueError, match=f"^{field} must be one of {allowed}; got ") as caught:
        Normalize(**{field: value})
    assert repr(value) in str(caught.value)


@given(normalizations)
@examples(100)
def test_words_round_trip(rules):
    words = [word for word in str(rules).split("+") if word]
    assert set(words) <= set(WORDS)
    assert parse_normalize(words[::-1] + words) == (None if rules == Normalize() else rules)


def test_words():
    assert str(Normalize(case="casefold", whitespace="collapse")) == "casefold+collapse"
    every = Normalize("lower", "remove", "unicode", "NFKC", True)
    assert str(every) == "NFKC+lower+unicode-punctuation+remove-whitespace+strip"
    assert parse_normalize([]) is None
    assert parse_normalize(["strip", "ascii-punctuation"]) == Normalize(
        punctuation="ascii", strip=True
    )
    with pytest.raises(ValueError, match=r"unknown normalisation 'upper'; use any of NFC, NFD, "):
        parse_normalize(["lower", "upper"])
    for one, other in (
        ("lower", "casefold"),
        ("collapse", "remove-whitespace"),
        ("ascii-punctuation", "unicode-punctuation"),
        ("NFC", "NFKD"),
    ):
        with pytest.raises(ValueError, match=f"'{one}' and '{other}' contradict each other"):
            parse_normalize([one, "strip", other])
