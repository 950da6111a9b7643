"""A packed column of strings: the one form in which text enters the kernels."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resemblance.jit import kernel
from resemblance.simd import any_lane, load, store_sum, top_bit

UNITS = (np.dtype(np.uint8), np.dtype(np.uint16), np.dtype(np.uint32))
"""Types of a character: the narrowest that holds the largest code point of the column."""


class Distinct(NamedTuple):
    """The distinct strings of a column; see :meth:`Strings.distinct`."""

    strings: Strings
    first: NDArray[np.int64]
    group: NDArray[np.int64]


class Strings:
    """A column of strings (or nulls) as one array of characters.

    Parameters
    ----------
    data : ndarray of uint8, uint16 or uint32
        Code points of all strings, one after the other.
    offsets : ndarray of int64, shape (n + 1,)
        String ``i`` is ``data[offsets[i]:offsets[i + 1]]``. The first offset need not be 0.
    valid : ndarray of bool, shape (n,), optional
        False where a row is null. A null row has no characters.

    Notes
    -----
    The arrays are kept, not copied, and are read-only from then on. Use :meth:`pack` for Python
    and NumPy strings, :meth:`from_utf8` for UTF-8 bytes; Arrow columns come through
    ``resemblance.io``.

    Examples
    --------
    >>> from resemblance import Strings
    >>> s = Strings.pack(["night", None, "nächte"])
    >>> len(s), s[2], s.lengths.tolist(), s.data.dtype.name
    (3, 'nächte', [5, 0, 6], 'uint8')
    """

    __slots__ = ("data", "offsets", "valid")

    def __init__(
        self,
        data: NDArray[Any],
        offsets: NDArray[np.int64],
        valid: NDArray[np.bool_] | None = None,
    ) -> None:
        if data.dtype not in UNITS or offsets.dtype != np.int64:
            raise TypeError("data must be uint8, uint16 or uint32 code points, offsets int64")
        if valid is not None and bool(valid.all()):
            valid = None
        self.data: NDArray[Any] = _frozen(data)
        self.offsets: NDArray[np.int64] = _frozen(offsets)
        self.valid: NDArray[np.bool_] | None = None if valid is None else _frozen(valid)

    # -- making ----------------------------------------------------------------------------------

    @classmethod
    def pack(cls, strings: Sequence[str | None] | NDArray[Any]) -> Strings:
        """Pack a list, tuple or NumPy array of strings.

        Parameters
        ----------
        strings : sequence of str or None, or ndarray of StringDType, ``U`` or object
            ``None``, NaN and ``pandas.NA`` are nulls.

        Returns
        -------
        Strings

        Raises
        ------
        TypeError
            If an element is neither a string nor a null; the message names its row.
        """
        values: list[Any]
        if isinstance(strings, np.ndarray):
            if strings.ndim != 1 or strings.dtype.kind not in "OUT":
                raise TypeError(
                    f"expected a one-dimensional array of strings, got {strings.ndim} dimension(s) "
                    f"of {strings.dtype}"
                )
            values = strings.tolist()
        else:
            values = list(strings)
        # In stretches, so that strings are still in the cache when they are looked at again.
        parts = [
            _packed(values[row : row + STRETCH], row) for row in range(0, len(values), STRETCH)
        ]
        offsets = np.zeros(len(values) + 1, np.int64)
        if not parts:
            return cls(np.empty(0, np.uint8), offsets)
        np.cumsum(np.concatenate([lengths for _, lengths, _ in parts]), out=offsets[1:])
        unit = max((data.dtype for data, _, _ in parts), key=lambda dtype: dtype.itemsize)
        data = np.empty(int(offsets[-1]), unit)
        np.concatenate([data for data, _, _ in parts], out=data)
        valid = None
        if any(part is not None for _, _, part in parts):
            valid = np.concatenate(
                [np.ones(len(n), np.bool_) if part is None else part for _, n, part in parts]
            )
        return cls(data, offsets, valid)

    @classmethod
    def from_utf8(
        cls,
        data: NDArray[np.uint8],
        offsets: NDArray[np.int64],
        valid: NDArray[np.bool_] | None = None,
    ) -> Strings:
        """Decode a column of valid UTF-8; without a copy where it is all ASCII.

        Parameters
        ----------
        data : ndarray of uint8
            The bytes. They are not checked: validate them before.
        offsets : ndarray of int64, shape (n + 1,)
            Where each string begins; the last one ends at ``offsets[n]``.
        valid : ndarray of bool, shape (n,), optional
            False where a row is null, whatever bytes it spans.

        Returns
        -------
        Strings
        """
        if valid is not None and bool(valid.all()):
            valid = None
        if valid is None and _is_ascii(data[offsets[0] : offsets[-1]]):
            return cls(data, offsets)
        mask = np.ones(len(offsets) - 1, np.bool_) if valid is None else valid
        decoded, largest = _count(data, offsets, mask)
        if largest < 128 and not np.diff(offsets)[~mask].any():
            return cls(data, offsets, valid)
        unit = np.uint8 if largest < 256 else np.uint16 if largest < 1 << 16 else np.uint32
        out = np.empty(int(decoded[-1]), unit)
        _decode(data, offsets, mask, out)
        return cls(out, decoded, valid)

    # -- reading ---------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, key: Any) -> Any:
        """Row ``key`` as ``str`` or None; for a slice, those rows as `Strings`."""
        if isinstance(key, slice):
            lo, hi, step = key.indices(len(self))
            if step != 1:
                return self.take(np.arange(lo, hi, step))
            hi = max(lo, hi)
            valid = None if self.valid is None else self.valid[lo:hi]
            return Strings(self.data, self.offsets[lo : hi + 1], valid)
        row = range(len(self))[key]
        if self.valid is not None and not self.valid[row]:
            return None
        return _text(self.data[self.offsets[row] : self.offsets[row + 1]])

    def __iter__(self) -> Iterator[str | None]:
        return iter(self.to_list())

    def __repr__(self) -> str:
        return f"<Strings: {len(self)} rows, {self.null_count} null, {self.data.dtype} characters>"

    def to_list(self) -> list[str | None]:
        """All rows as ``str`` or None."""
        lo = int(self.offsets[0])
        text = _text(self.data[lo : self.offsets[-1]])
        at = (self.offsets - lo).tolist()
        rows: list[str | None] = [text[a:b] for a, b in itertools.pairwise(at)]
        if self.valid is not None:
            for row in np.flatnonzero(~self.valid).tolist():
                rows[row] = None
        return rows

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Characters of each row, shape (n,)."""
        return np.diff(self.offsets)

    @property
    def null_count(self) -> int:
        """Number of null rows."""
        return 0 if self.valid is None else int((~self.valid).sum())

    @property
    def is_null(self) -> NDArray[np.bool_]:
        """True where a row is null, shape (n,)."""
        return np.zeros(len(self), np.bool_) if self.valid is None else ~self.valid

    # -- rearranging -----------------------------------------------------------------------------

    def take(self, rows: ArrayLike) -> Strings:
        """The rows at the given positions, in that order, as a column of their own."""
        rows = np.asarray(rows, np.int64)
        if len(rows) and (rows.min() < 0 or rows.max() >= len(self)):
            raise IndexError(f"rows must be from 0 to {len(self) - 1}")
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(self.lengths[rows], out=offsets[1:])
        out = np.empty(int(offsets[-1]), self.data.dtype)
        _take(self.data, self.offsets, rows, out)
        return Strings(out, offsets, None if self.valid is None else self.valid[rows])

    def widened(self, unit: np.dtype[Any]) -> Strings:
        """The same column with characters of type ``unit``."""
        if self.data.dtype == unit:
            return self
        return Strings(self.data.astype(unit), self.offsets, self.valid)

    def backwards(self) -> Strings:
        """The same rows, each from its last character to its first."""
        data, offsets = _backwards(self.data, self.offsets)
        return Strings(data, offsets, self.valid)

    def distinct(self) -> Distinct:
        """Collapse equal strings.

        Returns
        -------
        Distinct
            ``strings``: each different non-null string once, shortest first, then in order of
            first appearance; ``first``: the row where each appears first; ``group``: for each row
            of this column the position of its string there, -1 for nulls.
        """
        group, first = _group(self.data, self.offsets, ~self.is_null)
        order = by_length(self.lengths[first])
        place = np.empty(len(first) + 1, np.int64)
        place[order] = np.arange(len(first))
        place[-1] = -1
        return Distinct(self.take(first[order]), first[order], place[group])


def by_length(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows sorted by length, ties in row order, shape (n,)."""
    if len(lengths) and lengths.max() < 1 << 16:
        # NumPy sorts 16-bit keys by radix, several times faster
        lengths = lengths.astype(np.uint16)
    return np.argsort(lengths, kind="stable")


def same_units(a: Strings, b: Strings) -> tuple[Strings, Strings]:
    """Two columns with characters of the wider one's type."""
    unit = np.promote_types(a.data.dtype, b.data.dtype)
    return a.widened(unit), b.widened(unit)


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A C-contiguous, aligned, read-only view: one type for the compiler, whatever the origin."""
    array = np.ascontiguousarray(array)
    if not array.flags.aligned:
        array = array.copy()
    view = array.view()
    view.flags.writeable = False
    return view


STRETCH = 1 << 14


def _packed(
    values: list[Any], first_row: int
) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.bool_] | None]:
    """Characters, lengths and, where there are nulls, validity of Python strings."""
    valid = None
    try:
        text = "".join(values)
    except TypeError:
        valid = np.fromiter((not _is_null(v) for v in values), np.bool_, len(values))
        values = [v if ok else "" for v, ok in zip(values, valid.tolist(), strict=True)]
        for row, value in enumerate(values):
            if not isinstance(value, str):
                hint = "; decode bytes to str first" if isinstance(value, bytes) else ""
                raise TypeError(
                    f"row {first_row + row} is {type(value).__name__}, not a string or None{hint}"
                ) from None
        text = "".join(values)
    lengths = np.fromiter(map(len, values), np.int64, len(values))
    try:
        data: NDArray[Any] = np.frombuffer(text.encode("latin-1"), np.uint8)
    except UnicodeEncodeError:
        data = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
        data = data.astype(np.uint16 if data.max() < 1 << 16 else np.uint32)
    return data, lengths, valid


def _is_null(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(value != value)


def _text(data: NDArray[Any]) -> str:
    if data.dtype == np.uint8:
        return data.tobytes().decode("latin-1")
    return data.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")


# -- kernels --------------------------------------------------------------------------------------


@kernel
def put(source, target, at):
    """``target[at : at + len(source)] = source``, which Numba compiles far more slowly."""
    for i in range(len(source)):
        target[at + i] = source[i]


@kernel
def same(a, b):
    """Are two arrays equal?"""
    if len(a) != len(b):
        return False
    for i in range(len(a)):  # noqa: SIM110  kernels know no generators
        if a[i] != b[i]:
            return False
    return True


@kernel
def _is_ascii(data):
    high = np.uint8(0)
    for c in data:
        high |= c
    return high < 128


@kernel
def _count(data, offsets, valid):
    """Offsets of the decoded strings, and an upper bound (by kind) of their largest code point."""
    n = len(offsets) - 1
    out = np.zeros(n + 1, np.int64)
    ascii_only = True
    for i in range(n):
        count = 0
        if valid[i]:
            chars = data[offsets[i] : offsets[i + 1]]
            high = np.uint8(0)
            for c in chars:
                high |= c
            if high < 128:
                count = len(chars)
            else:
                ascii_only = False
                for c in chars:
                    count += (c & 0xC0) != 0x80
        out[i + 1] = out[i] + count
    if ascii_only:
        return out, 127
    largest = 0
    for i in range(n):
        if valid[i]:
            for c in data[offsets[i] : offsets[i + 1]]:
                # lead bytes up to C3 begin a code point below 256, up to EF one below 65536
                if c >= 0xF0:
                    return out, 0x10FFFF
                if c >= 0xC4:
                    largest = 0xFFFF
                elif c >= 0x80 and largest == 0:
                    largest = 0xFF
    return out, largest


STEP = 32
"""Bytes that are looked at together while decoding."""


@kernel
def _decode(data, offsets, valid, out):
    """Code points of valid UTF-8."""
    at = 0
    row = 0
    n = len(offsets) - 1
    while row < n:
        # rows between nulls as one stretch of bytes
        first = row
        while row < n and valid[row]:
            row += 1
        k = offsets[first]
        end = offsets[row]
        while k < end:
            whole = k + STEP <= end and at + STEP <= len(out)
            if whole and not any_lane(top_bit(load(data, k, STEP))):
                store_sum(out, at, 0, data, k, STEP)
                k += STEP
                at += STEP
                continue
            stop = min(k + STEP, end)
            while k < stop:
                c = np.uint32(data[k])
                if c < 0x80:
                    more = 0
                elif c < 0xE0:
                    c &= np.uint32(0x1F)
                    more = 1
                elif c < 0xF0:
                    c &= np.uint32(0x0F)
                    more = 2
                else:
                    c &= np.uint32(0x07)
                    more = 3
                for j in range(more):
                    c = np.uint32(c << np.uint32(6)) | np.uint32(data[k + 1 + j] & 0x3F)
                out[at] = c
                at += 1
                k += 1 + more
        row += 1


@kernel
def _take(data, offsets, rows, out):
    at = 0
    for row in rows:
        chars = data[offsets[row] : offsets[row + 1]]
        put(chars, out, at)
        at += len(chars)


@kernel
def _backwards(data, offsets):
    out = np.empty(offsets[-1] - offsets[0], data.dtype)
    at = 0
    for i in range(len(offsets) - 1):
        for k in range(offsets[i + 1] - offsets[i]):
            out[at] = data[offsets[i + 1] - 1 - k]
            at += 1
    return out, offsets - offsets[0]


@kernel
def _group(data, offsets, valid):
    """Group of each row (-1 where null) in order of first appearance, and those first rows."""
    n = len(offsets) - 1
    bits = 4
    while (1 << bits) < 2 * n:
        bits += 1
    shift = np.uint64(64 - bits)
    wrap = np.uint64((1 << bits) - 1)
    table = np.full(1 << bits, -1, np.int64)
    hashes = np.zeros(n, np.uint64)
    group = np.full(n, -1, np.int64)
    first = np.empty(n, np.int64)
    groups = 0
    for i in range(n):
        if not valid[i]:
            continue
        chars = data[offsets[i] : offsets[i + 1]]
        h = string_hash(chars)
        at = h >> shift
        while True:
            g = table[at]
            if g < 0:
                table[at] = groups
                hashes[groups] = h
                first[groups] = i
                group[i] = groups
                groups += 1
                break
            if hashes[g] == h:
                other = data[offsets[first[g]] : offsets[first[g] + 1]]
                if same(other, chars):
                    group[i] = g
                    break
            at = (at + np.uint64(1)) & wrap
    return group, first[:groups]


HASH_BASE = np.uint64(0x9E3779B97F4A7C15)
HASH_MIX = np.uint64(0xD6E8FEB86659FD93)


@kernel
def string_hash(chars):
    """64-bit hash of an array of code units."""
    h = np.uint64(len(chars))
    for c in chars:
        h = np.uint64((h ^ np.uint64(c)) * HASH_BASE)
        h ^= h >> np.uint64(29)
    h = np.uint64(h * HASH_MIX)
    return h ^ (h >> np.uint64(32))
