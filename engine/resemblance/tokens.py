"""Token sets: texts cut into words or characters, as sorted rows of numbers.

A token is known by a 64-bit number: its characters packed, where they fit, else a hash of them. It
depends on the code points alone, so columns with characters of different types can be compared.
Among ten million different tokens two meet in one hash with probability 3e-6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from resemblance.inputs import as_strings
from resemblance.jit import inlined, kernel
from resemblance.strings import HASH_BASE, HASH_MIX, Strings, put


@dataclass(frozen=True)
class Words:
    """Runs of ``n`` neighbouring words.

    Words are what Python's ``str.split()`` gives: white space of any script parts them,
    punctuation belongs to them. A text of fewer than ``n`` words is one token. Scripts that put no
    space between words want :class:`Chars`.

    Parameters
    ----------
    n : int
        Words of a token.

    Examples
    --------
    >>> from resemblance import Words
    >>> str(Words(5))
    'words:5'
    """

    n: int = 1

    def __post_init__(self) -> None:
        _check(self.n, "Words")

    def __str__(self) -> str:
        return f"words:{self.n}" if self.n > 1 else "words"


@dataclass(frozen=True)
class Chars:
    """Runs of ``n`` neighbouring characters (code points), white space included.

    A text of fewer than ``n`` characters is one token.

    Parameters
    ----------
    n : int
        Characters of a token.

    Examples
    --------
    >>> from resemblance import Chars
    >>> str(Chars(2))
    'chars:2'
    """

    n: int = 3

    def __post_init__(self) -> None:
        _check(self.n, "Chars")

    def __str__(self) -> str:
        return f"chars:{self.n}"


Tokens = Words | Chars


def _check(n: Any, name: str) -> None:
    if not isinstance(n, int | np.integer) or isinstance(n, bool) or not 1 <= n < 1 << 31:
        raise ValueError(f"{name} takes a whole number from 1, got {n!r}")


def parse_tokens(text: str | Tokens) -> Tokens:
    """The kind of token that a text such as ``words``, ``words:5`` or ``chars:24`` names.

    Raises
    ------
    ValueError
        If it names none.

    Examples
    --------
    >>> from resemblance.tokens import parse_tokens
    >>> parse_tokens("words:5"), parse_tokens("chars")
    (Words(n=5), Chars(n=3))
    """
    if isinstance(text, Words | Chars):
        return text
    unit, colon, n = text.partition(":") if isinstance(text, str) else ("", "", "")
    kinds: dict[str, type[Words] | type[Chars]] = {"words": Words, "chars": Chars}
    kind = kinds.get(unit.strip().lower())
    n = n.strip()
    if kind is None or (colon and not (n.isascii() and n.isdigit() and int(n) > 0)):
        raise ValueError(
            "tokens must be words, words:N or chars:N with N from 1, or a record Words or Chars; "
            f"got {text!r}"
        )
    return kind(int(n)) if colon else kind()


@dataclass(frozen=True, eq=False)
class TokenSets:
    """The token sets of a column, as one array of numbers.

    Attributes
    ----------
    offsets : ndarray of int64, shape (n + 1,)
        Row ``i`` holds ``ids[offsets[i]:offsets[i + 1]]``.
    ids : ndarray of int32
        Tokens by rank: the rarer, the lower; ties by first appearance. They rise within a row, and
        none comes twice.
    vocabulary : int
        Number of different tokens; ids are below.

    Examples
    --------
    >>> from resemblance import TokenSets
    >>> sets = TokenSets.make(["a b a", None, "b"])
    >>> sets.ids.tolist(), sets.sizes.tolist()
    ([0, 1, 1], [2, 0, 1])
    """

    offsets: NDArray[np.int64]
    ids: NDArray[np.int32]
    vocabulary: int

    @classmethod
    def make(cls, texts: Any, tokens: str | Tokens = "words", multiset: bool = False) -> TokenSets:
        """Cut each text of a column into tokens.

        Parameters
        ----------
        texts : list, tuple, ndarray, Arrow column or Strings
            The texts; null and empty ones have no tokens.
        tokens : Words, Chars or str
            What a token is; texts as for :func:`parse_tokens`.
        multiset : bool
            Whether the second, third ... occurrence of a token counts as a further token.

        Returns
        -------
        TokenSets
        """
        return token_sets(as_strings(texts), None, parse_tokens(tokens), multiset)[0]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Tokens of each row, shape (n,)."""
        return np.diff(self.offsets)

    def take(self, rows: NDArray[np.int64]) -> TokenSets:
        """The rows at the given positions, in that order."""
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(self.sizes[rows], out=offsets[1:])
        ids = np.empty(int(offsets[-1]), np.int32)
        _take(self.offsets, self.ids, rows, ids)
        return TokenSets(offsets, ids, self.vocabulary)


def token_sets(
    left: Strings, right: Strings | None, tokens: Tokens, multiset: bool
) -> tuple[TokenSets, TokenSets]:
    """Token sets of two columns over one vocabulary; of one and the same, made once.

    Parameters
    ----------
    left, right : Strings
        The columns; ``right=None`` stands for ``left``.
    tokens : Words or Chars
        What a token is.
    multiset : bool
        See :meth:`TokenSets.make`.
    """
    columns = [left] if right is None or right is left else [left, right]
    words, n = isinstance(tokens, Words), int(tokens.n)
    power = base_power(n)
    table = np.full(1 << 12, -1, np.int32), np.empty((1 << 11, FIELDS), np.uint64)
    vocabulary = row = 0
    rows: list[tuple[NDArray[np.int64], NDArray[np.int32]]] = []
    for column in columns:
        lengths = column.lengths
        # at most, by arithmetic; pages of the array that stay unused are never touched
        if words:
            most = (lengths + 1) // 2
        else:
            most = np.maximum(lengths - (n - 1), np.minimum(lengths, 1))
        buffer = np.empty(int(most.max(initial=0)), np.uint64)
        ids = np.empty(int(most.sum()), np.int32)
        offsets = np.zeros(len(column) + 1, np.int64)
        done = 0
        while done < len(column):
            done, vocabulary = _number(
                column.data, column.offsets, words, n, power, multiset, buffer, *table,
                vocabulary, row, done, offsets, ids,
            )  # fmt: skip
            if done < len(column):
                table = _grown(*table)
        rows.append((offsets, ids[: offsets[-1]]))
        row += len(column)
    rank = _ranks(table[1][:vocabulary])
    sets = [TokenSets(offsets, _ranked(offsets, ids, rank), vocabulary) for offsets, ids in rows]
    return sets[0], sets[-1]


# -- from characters to tokens --------------------------------------------------------------------


@inlined
def is_space(c):
    """Is it white space to ``str.isspace`` and ``str.split``?"""
    if c < 128:
        return c == 32 or 9 <= c <= 13 or 28 <= c <= 31
    return (
        c == 0x85
        or c == 0xA0
        or c == 0x1680
        or 0x2000 <= c <= 0x200A
        or c == 0x2028
        or c == 0x2029
        or c == 0x202F
        or c == 0x205F
        or c == 0x3000
    )


PACKED = 3
"""Most characters that fit one number; a code point takes 21 bits."""


def base_power(n: int) -> np.uint64:
    """What a rolling hash over ``n`` places multiplies the place that leaves by."""
    return np.uint64(pow(int(HASH_BASE), n, 1 << 64))


@inlined
def _mixed(h):
    """A number for a sum of powers, whose low bits are weak; never 0."""
    h = np.uint64((h ^ (h >> np.uint64(32))) * HASH_MIX)
    h = h ^ (h >> np.uint64(29))
    return h if h != np.uint64(0) else np.uint64(1)


@inlined
def _char(c):
    """A character as a term of a rolling hash."""
    h = np.uint64((np.uint64(c) + np.uint64(1)) * HASH_MIX)
    return h ^ (h >> np.uint64(32))


@kernel
def hash_tokens(data, begin, end, words, n, power, out):
    """Write the tokens of one text, never 0, to ``out``, in order and with repetitions.

    Returns how many there are. ``power`` is that of :func:`base_power`.
    """
    zero = np.uint64(0)
    one = np.uint64(1)
    if words:
        count = 0
        h = zero
        for k in range(np.uint64(begin), np.uint64(end)):
            c = data[k]
            if is_space(c):
                if h != zero:
                    out[count] = _mixed(h)
                    count += 1
                    h = zero
            else:
                # a word's hash is 0, which stands for none, once in 2^64 words
                h = np.uint64(h * HASH_BASE + (np.uint64(c) + one))
        if h != zero:
            out[count] = _mixed(h)
            count += 1
        if n == 1 or count == 0:
            return count
        h = zero
        for k in range(min(n, count)):
            h = np.uint64(h * HASH_BASE + out[k])
        # a run's first word makes room for the run's token once it has left the hash
        for k in range(count - n):
            leaving = out[k]
            out[k] = _mixed(h)
            h = np.uint64(h * HASH_BASE + out[k + n] - leaving * power)
        last = max(count - n, 0)
        out[last] = _mixed(h)
        return last + 1
    length = end - begin
    if length == 0:
        return 0
    first = min(n, length)
    h = zero
    if n <= PACKED:
        mask = (one << np.uint64(21 * n)) - one
        for k in range(first):
            h = (h << np.uint64(21)) | (np.uint64(data[begin + k]) + one)
        out[0] = h
        at = np.uint64(begin + n)
        for k in range(np.uint64(1), np.uint64(length - first + 1)):
            h = ((h << np.uint64(21)) | (np.uint64(data[at]) + one)) & mask
            out[k] = h
            at += one
    else:
        for k in range(first):
            h = np.uint64(h * HASH_BASE + _char(data[begin + k]))
        out[0] = _mixed(h)
        for k in range(1, length - first + 1):
            leaving = np.uint64(_char(data[begin + k - 1]) * power)
            h = np.uint64(h * HASH_BASE + _char(data[begin + k + n - 1]) - leaving)
            out[k] = _mixed(h)
    return length - first + 1


# -- from tokens to sets --------------------------------------------------------------------------


KEY, ROW, AGAIN, ROWS = range(4)
"""What is known of a token: its hash, the last row that has it, its occurrences there so far less
one, and the number of rows."""
FIELDS = 4


@inlined
def _find(slots, known, shift, key, new):
    """Number of a token; ``new``, which is noted, where it is not known yet."""
    wrap = np.uint64(len(slots) - 1)
    at = np.uint64(key * HASH_BASE) >> shift
    while True:
        token = slots[at]
        if token < 0:
            slots[at] = new
            known[new, KEY] = key
            known[new, ROW] = ~np.uint64(0)
            known[new, ROWS] = np.uint64(0)
            return np.uint64(new)
        if known[np.uint64(token), KEY] == key:
            return np.uint64(token)
        at = (at + np.uint64(1)) & wrap


@kernel
def _again(h, occurrence):
    """The token that a further occurrence counts as; its top bit sets it apart from packed ones."""
    h = np.uint64(h + np.uint64(occurrence) * HASH_BASE)
    h = np.uint64((h ^ (h >> np.uint64(31))) * HASH_MIX)
    return (h ^ (h >> np.uint64(32))) | (np.uint64(1) << np.uint64(63))


@kernel
def _grown(slots, known):
    """A table of twice the size."""
    new_slots = np.full(2 * len(slots), -1, np.int32)
    new_known = np.empty((2 * len(known), FIELDS), np.uint64)
    shift = _shift(len(new_slots))
    wrap = np.uint64(len(new_slots) - 1)
    for k in range(len(slots)):
        token = slots[k]
        if token >= 0:
            for field in range(FIELDS):
                new_known[token, field] = known[token, field]
            at = np.uint64(known[token, KEY] * HASH_BASE) >> shift
            while new_slots[at] >= 0:
                at = (at + np.uint64(1)) & wrap
            new_slots[at] = token
    return new_slots, new_known


@kernel
def _shift(size):
    """What leaves, of 64 bits, an index of a table whose size is a power of two."""
    bits = 0
    while (1 << bits) < size:
        bits += 1
    return np.uint64(64 - bits)


@kernel
def _number(
    data,
    offsets,
    words,
    n,
    power,
    multiset,
    buffer,
    slots,
    known,
    vocabulary,
    row,
    first,
    ends,
    ids,
):
    """Number the tokens of a column, from row ``first``, by first appearance.

    ``row`` rows came before those of this column. Gives the first row not done, as the table may
    have to grow first, and the size of the vocabulary.
    """
    count = ends[first]
    shift = _shift(len(slots))
    for i in range(first, len(offsets) - 1):
        found = hash_tokens(data, offsets[i], offsets[i + 1], words, n, power, buffer)
        if vocabulary + found > len(known):
            return i, vocabulary
        here = np.uint64(row + i)
        for k in range(np.uint64(found)):
            key = buffer[k]
            token = _find(slots, known, shift, key, vocabulary)
            vocabulary += token == vocabulary
            if known[token, ROW] == here:
                if not multiset:
                    continue
                known[token, AGAIN] += np.uint64(1)
                token = _find(slots, known, shift, _again(key, known[token, AGAIN]), vocabulary)
                vocabulary += token == vocabulary
            known[token, ROW] = here
            known[token, AGAIN] = np.uint64(0)
            known[token, ROWS] += np.uint64(1)
            ids[np.uint64(count)] = token
            count += 1
        ends[i + 1] = count
    return len(offsets) - 1, vocabulary


@kernel
def _ranks(known):
    """Rank of each token by number of rows."""
    most = np.uint64(0)
    for token in range(len(known)):
        most = max(most, known[token, ROWS])
    starts = np.zeros(most + np.uint64(2), np.int64)
    for token in range(len(known)):
        starts[known[token, ROWS] + np.uint64(1)] += 1
    for k in range(len(starts) - 1):
        starts[k + 1] += starts[k]
    rank = np.empty(len(known), np.int32)
    for token in range(len(known)):
        rows = known[token, ROWS]
        rank[token] = starts[rows]
        starts[rows] += 1
    return rank


@kernel
def postings(offsets, ids, vocabulary):
    """Rows that hold each token, rising: ``rows[starts[w]:starts[w + 1]]`` for token ``w``."""
    starts = np.zeros(vocabulary + 1, np.int64)
    for w in ids:
        starts[w + 1] += 1
    for w in range(vocabulary):
        starts[w + 1] += starts[w]
    at = np.empty_like(starts)
    put(starts, at, 0)
    rows = np.empty(len(ids), np.int32)
    for i in range(len(offsets) - 1):
        for k in range(np.uint64(offsets[i]), np.uint64(offsets[i + 1])):
            w = np.uint64(ids[k])
            rows[np.uint64(at[w])] = i
            at[w] += 1
    return starts, rows


@kernel
def _ranked(offsets, ids, rank):
    """Ranks of the tokens, rising within each row: sorted all at once, by dealing them out."""
    for k in range(len(ids)):
        ids[k] = rank[ids[k]]
    starts, rows = postings(offsets, ids, len(rank))
    at = np.empty_like(offsets)
    put(offsets, at, 0)
    out = np.empty_like(ids)
    for w in range(len(rank)):
        for k in range(np.uint64(starts[w]), np.uint64(starts[w + 1])):
            row = np.uint64(rows[k])
            out[np.uint64(at[row])] = w
            at[row] += 1
    return out


@kernel
def _take(offsets, ids, rows, out):
    at = 0
    for row in rows:
        here = ids[offsets[row] : offsets[row + 1]]
        put(here, out, at)
        at += len(here)
