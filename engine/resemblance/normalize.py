"""Text made alike before it is compared: case, punctuation, white space, Unicode normal forms.

Kernels look each character up in a table of what becomes of it, filled in by Python's own functions
as columns need it. Only rows with a character that becomes several, or depends on its neighbours,
are handed to Python one by one, and only for the normal form and the case.
"""

from __future__ import annotations

import dataclasses
import functools
import string
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from resemblance.inputs import as_strings
from resemblance.jit import kernel
from resemblance.strings import STRETCH, UNITS, Strings

_ALLOWED: dict[str, tuple[Any, ...]] = {
    "unicode": (None, "NFC", "NFD", "NFKC", "NFKD"),
    "case": (False, "lower", "casefold"),
    "punctuation": (None, "ascii", "unicode"),
    "whitespace": (None, "collapse", "remove"),
    "strip": (False, True),
}
"""Values of each field, in the order in which fields are applied."""

WORDS: dict[str, tuple[str, Any]] = {
    "NFC": ("unicode", "NFC"),
    "NFD": ("unicode", "NFD"),
    "NFKC": ("unicode", "NFKC"),
    "NFKD": ("unicode", "NFKD"),
    "lower": ("case", "lower"),
    "casefold": ("case", "casefold"),
    "ascii-punctuation": ("punctuation", "ascii"),
    "unicode-punctuation": ("punctuation", "unicode"),
    "collapse": ("whitespace", "collapse"),
    "remove-whitespace": ("whitespace", "remove"),
    "strip": ("strip", True),
}
"""Words of the command line and of manifests: the field each sets, in the order of application."""


@dataclass(frozen=True)
class Normalize:
    """What to make alike in texts before they are compared.

    Steps are applied in this order, whatever the order of the arguments: Unicode normal form, case,
    punctuation, white space, strip. Each gives what the Python function named below gives.

    Parameters
    ----------
    case : False, "lower" or "casefold"
        ``str.lower`` or ``str.casefold``; True is "casefold".
    whitespace : None, "collapse" or "remove"
        "collapse" puts one blank in place of each run of Unicode white space (``str.isspace``),
        also at both ends of a text unless ``strip`` is set; "remove" leaves none.
    punctuation : None, "ascii" or "unicode"
        What to remove: ``string.punctuation``, or that and all Unicode categories ``P*``.
    unicode : None, "NFC", "NFD", "NFKC" or "NFKD"
        Form of ``unicodedata.normalize``.
    strip : bool
        ``str.strip``: no white space at the ends of a text.

    Raises
    ------
    ValueError
        If a value is not one of these.

    Notes
    -----
    Unicode data are those of the running Python, ``unicodedata.unidata_version``. Nothing depends
    on the locale. Zero-width characters (U+200B, U+FEFF) are not white space and stay.

    Examples
    --------
    >>> import resemblance as rs
    >>> rs.Normalize(case="casefold", strip=True)([" Ab"]).to_list()
    ['ab']
    >>> alike = rs.Normalize(unicode="NFC", punctuation="ascii", whitespace="collapse")
    >>> alike(["Cafe\\u0301,  Paris!", None]).to_list()
    ['Café Paris', None]
    >>> str(alike)
    'NFC+ascii-punctuation+collapse'
    """

    case: bool | Literal["lower", "casefold"] = False
    whitespace: Literal["collapse", "remove"] | None = None
    punctuation: Literal["ascii", "unicode"] | None = None
    unicode: Literal["NFC", "NFD", "NFKC", "NFKD"] | None = None
    strip: bool = False

    def __post_init__(self) -> None:
        if self.case is True:
            object.__setattr__(self, "case", "casefold")
        for field, allowed in _ALLOWED.items():
            value = getattr(self, field)
            if not any(isinstance(value, type(a)) and value == a for a in allowed):
                names = ", ".join(map(repr, allowed))
                raise ValueError(f"{field} must be one of {names}; got {value!r}")

    def __str__(self) -> str:
        """The words that :func:`parse_normalize` reads, joined by "+"; none give ""."""
        return "+".join(
            word for word, (field, value) in WORDS.items() if getattr(self, field) == value
        )

    def __call__(self, texts: Any) -> Strings:
        """Normalise a column.

        Parameters
        ----------
        texts : Strings, list, tuple, ndarray, or an object that speaks Arrow
            Nulls stay null.

        Returns
        -------
        Strings
            With characters of the narrowest type that holds them; the column that was passed (or
            packed) itself where nothing changes.
        """
        strings = as_strings(texts)
        if self == Normalize():
            return strings
        data, offsets = strings.data, strings.offsets
        table = _table(self).covering(data[offsets[0] : offsets[-1]])
        collapse = self.whitespace == "collapse"
        seen, changed, moved = _examine(data, offsets, table, collapse, self.strip)
        if not changed:
            return strings
        out = np.empty(int(offsets[-1] - offsets[0]), data.dtype)
        if moved:
            ends, codes = _rewrite(data, offsets, table, collapse, self.strip, out)
        else:
            _map(data, offsets[0], table, out)
            ends, codes = offsets - offsets[0], seen
        unit = next(unit for unit in UNITS if codes & CODE <= np.iinfo(unit).max)
        done = Strings(out[: ends[-1]].astype(unit, copy=False), ends, strings.valid)
        if seen & HARD:
            rows = np.flatnonzero(_hard_rows(data, offsets, table))
            done = _placed(done, self._in_python(strings, rows), rows)
        # neither of these was certain to change anything
        unchanged = (moved or seen & HARD) and _equal(done, strings)
        return strings if unchanged else done

    def _in_python(self, strings: Strings, rows: NDArray[np.int64]) -> list[Strings]:
        """The results of rows for which the table has no answer."""
        rest = dataclasses.replace(self, case=False, unicode=None)
        parts = []
        for lo in range(0, len(rows), STRETCH):
            texts = strings.take(rows[lo : lo + STRETCH])
            cased = Strings.pack([self._form_and_case(text) for text in texts if text is not None])
            parts.append(rest(cased))
        return parts

    def _form_and_case(self, text: str) -> str:
        if self.unicode is not None:
            text = unicodedata.normalize(self.unicode, text)
        if self.case == "lower":
            text = text.lower()
        elif self.case == "casefold":
            text = text.casefold()
        return text

    def _entry(self, code: int) -> int:
        """What becomes of a code point: an entry of the table."""
        char = chr(code)
        if self.unicode is not None:
            char = unicodedata.normalize(self.unicode, char)
            if len(char) != 1 or _meets_neighbours(char, self.unicode):
                return HARD
        if self.case == "lower":
            if char == FINAL_SIGMA:
                return HARD
            char = char.lower()
        elif self.case == "casefold":
            char = char.casefold()
        if len(char) != 1:
            return HARD
        if self.punctuation is not None and (
            char in string.punctuation
            or (self.punctuation == "unicode" and unicodedata.category(char)[0] == "P")
        ):
            return DROP
        if char.isspace():
            if self.whitespace == "remove":
                return DROP
            return WHITE | (ord(" ") if self.whitespace == "collapse" else ord(char))
        # rows are rewritten in characters of the type they came in
        wider = code < 0x100 <= ord(char) or code < 0x10000 <= ord(char)
        return HARD if wider else ord(char)


def parse_normalize(words: Sequence[str]) -> Normalize | None:
    """The `Normalize` that words of the command line ask for.

    Parameters
    ----------
    words : sequence of str
        Among :data:`WORDS`, in any order.

    Returns
    -------
    Normalize or None
        None if there are no words.

    Raises
    ------
    ValueError
        If a word is unknown, or two ask for different things.

    Examples
    --------
    >>> from resemblance.normalize import parse_normalize
    >>> parse_normalize(["strip", "lower"])
    Normalize(case='lower', whitespace=None, punctuation=None, unicode=None, strip=True)
    """
    chosen: dict[str, str] = {}
    for word in words:
        if word not in WORDS:
            raise ValueError(f"unknown normalisation {word!r}; use any of {', '.join(WORDS)}")
        other = chosen.setdefault(WORDS[word][0], word)
        if other != word:
            raise ValueError(f"{other!r} and {word!r} contradict each other; use one of them")
    return Normalize(**dict(WORDS[word] for word in chosen.values())) if chosen else None


# -- the table ------------------------------------------------------------------------------------

CODE = 0x1FFFFF
"""The bits of an entry that hold a code point; those above say what else is to be known of it."""

WHITE = 1 << 21
DROP = 1 << 22
HARD = 1 << 23
"""Left to Python."""

PAGE = 256
PAGES = (sys.maxunicode + 1) // PAGE

FINAL_SIGMA = "\u03a3"
"""The only character whose lower case depends on its neighbours, says Python's ``str.lower``."""


class _Table:
    """What becomes of each code point under some rules."""

    def __init__(self, rules: Normalize) -> None:
        self.rules = rules
        self.entries = np.zeros(PAGES * PAGE, np.uint32)  # memory that is not touched costs nothing
        self.filled = np.zeros(PAGES, np.bool_)

    def covering(self, data: NDArray[Any]) -> NDArray[np.uint32]:
        """The entries, with all those that characters of ``data`` look at."""
        pages = np.arange(1) if data.itemsize == 1 else np.flatnonzero(_pages(data, PAGES))
        for page in pages[~self.filled[pages]].tolist():
            codes = range(page * PAGE, (page + 1) * PAGE)
            self.entries[codes.start : codes.stop] = [self.rules._entry(code) for code in codes]
            self.filled[page] = True  # last: another thread may be looking
        return self.entries


@functools.lru_cache(maxsize=16)
def _table(rules: Normalize) -> _Table:
    return _Table(rules)


def _meets_neighbours(char: str, form: str) -> bool:
    """May a character in normal form be moved by, or composed with, one before it?

    A text without such characters is in normal form if each of its characters is.
    """
    if char < "\u0300":  # the first that may
        return False
    return unicodedata.combining(char) != 0 or (form in ("NFC", "NFKC") and char in _seconds())


@functools.cache
def _seconds() -> frozenset[str]:
    """Characters that normal forms compose with one before them."""
    found = {chr(code) for code in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))}  # of Hangul
    for code in range(sys.maxunicode + 1):
        decomposition = unicodedata.decomposition(chr(code))
        if " " in decomposition and decomposition[0] != "<":
            found.add(chr(int(decomposition.split()[1], 16)))
    return frozenset(found)


def _placed(done: Strings, parts: list[Strings], rows: NDArray[np.int64]) -> Strings:
    """``done`` with the strings of ``parts`` in its rows ``rows``."""
    lengths = np.concatenate([done.lengths, *(part.lengths for part in parts)])
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    data = np.concatenate(
        [done.data, *(part.data[part.offsets[0] : part.offsets[-1]] for part in parts)]
    )
    valid = np.concatenate([~done.is_null, np.ones(len(rows), np.bool_)])
    place = np.arange(len(done))
    place[rows] = len(done) + np.arange(len(rows))
    return Strings(data, offsets, valid).take(place)


def _equal(a: Strings, b: Strings) -> bool:
    """Have two columns, with the same rows null, the same strings?"""
    if not np.array_equal(a.lengths, b.lengths):
        return False
    return np.array_equal(
        a.data[a.offsets[0] : a.offsets[-1]], b.data[b.offsets[0] : b.offsets[-1]]
    )


# -- kernels --------------------------------------------------------------------------------------


@kernel
def _pages(data, n):
    """Which of ``n`` pages of code points occur."""
    seen = np.zeros(n, np.bool_)
    for c in data:
        seen[np.uint32(c) >> np.uint32(8)] = True
    return seen


@kernel
def _examine(data, offsets, table, collapse, strip):
    """What the table does to a column.

    Gives its entries ORed, whether any row may change, and whether characters of a row may move,
    so that :func:`_rewrite` is called for. Blanks that meet where rows do are taken for a run.
    """
    seen = np.uint32(0)
    twice = np.uint32(0)
    last = np.uint32(0)
    changes = np.uint32(0)
    for k in range(offsets[0], offsets[-1]):
        c = data[np.uint64(k)]
        entry = table[c]
        changes |= entry ^ np.uint32(c)
        seen |= entry
        twice |= entry & last
        last = entry
    moved = seen & np.uint32(DROP) != 0 or (collapse and twice & np.uint32(WHITE) != 0)
    if strip and not moved:
        for i in range(len(offsets) - 1):
            lo = offsets[i]
            hi = offsets[i + 1]
            if lo < hi and (table[data[lo]] | table[data[hi - 1]]) & np.uint32(WHITE):
                moved = True
                break
    changed = moved or changes & np.uint32(CODE | HARD) != 0
    return seen, changed, moved


@kernel
def _map(data, start, table, out):
    """Write what becomes of each character, none of which goes, to ``out``."""
    for k in range(len(out)):
        out[k] = table[data[np.uint64(start + k)]] & np.uint32(CODE)


@kernel
def _rewrite(data, offsets, table, collapse, strip, out):
    """Write what becomes of each row to ``out``; gives the new offsets, and the entries ORed."""
    n = len(offsets) - 1
    ends = np.zeros(n + 1, np.int64)
    drop = np.uint32(DROP)
    gone = np.uint32(WHITE | DROP)
    after = gone if collapse else drop
    codes = np.uint32(0)
    at = 0
    for i in range(n):
        lo = offsets[i]
        hi = offsets[i + 1]
        if strip:
            while lo < hi and table[data[lo]] & gone:
                lo += 1
            while lo < hi and table[data[hi - 1]] & gone:
                hi -= 1
        goes = drop  # what an entry must have for its character to go
        for k in range(lo, hi):
            entry = table[data[np.uint64(k)]]
            out[np.uint64(at)] = entry & np.uint32(CODE)
            codes |= entry
            # without branches: where words end is hard to predict
            at += int(entry & goes == 0)
            goes = goes if entry & drop else drop | (entry & after)
        ends[i + 1] = at
    return ends, codes


@kernel
def _hard_rows(data, offsets, table):
    """Which rows have a character that is left to Python."""
    hard = np.zeros(len(offsets) - 1, np.bool_)
    for i in range(len(hard)):
        seen = np.uint32(0)
        for k in range(offsets[i], offsets[i + 1]):
            seen |= table[data[np.uint64(k)]]
        hard[i] = seen & np.uint32(HARD) != 0
    return hard
