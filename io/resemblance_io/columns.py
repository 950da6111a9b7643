"""Arrow columns to packed strings and back.

Kernels read without bounds checks, so nothing gets past this module unchecked: foreign arrays are
validated in full (offsets, indices, UTF-8), and every view handed on is read-only.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from resemblance.strings import Strings
from resemblance_io.errors import InputError, one_line

_ENCODE_CHARS = 1 << 22
"""Characters encoded at a time: bounds the temporary arrays, which take 8 bytes per character."""


_AS_BYTES = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
}
"""The types of text, each with the type of the same bytes without the promise of UTF-8."""


def strings(
    column: Any, *, name: str = "text", where: str | None = None, first_row: int = 0
) -> Strings:
    """Pack an Arrow column of text.

    Parameters
    ----------
    column : pyarrow.Array, pyarrow.ChunkedArray or any object that speaks Arrow
        ``string``, ``large_string``, ``string_view``, dictionaries of them, or binary types that
        hold UTF-8; a column of type ``null`` is all nulls. Slices and chunks are welcome.
        One chunk of ASCII text is not copied.
    name : str
        The column's name, for messages.
    where : str, optional
        The file the column comes from, for messages.
    first_row : int
        Number of the column's first row in that file, for messages.

    Returns
    -------
    resemblance.Strings

    Raises
    ------
    TypeError
        If the column does not hold text; the message names its type.
    InputError
        If it is damaged or not UTF-8; the message names file, column, row and byte.
    """
    parts = []
    row = first_row
    for chunk in _chunks(column, name):
        validate(chunk, name=name, where=where, first_row=row)
        text = _as_large_string(chunk, name)
        if not is_text(chunk.type):  # binary: its bytes have not been looked at yet
            validate(text, name=name, where=where, first_row=row)
        parts.append(text)
        row += len(chunk)
    if not parts:
        return _packed(pa.array([], pa.large_string()))
    # 64-bit offsets by now, so joining the chunks cannot overflow
    return _packed(parts[0] if len(parts) == 1 else pa.concat_arrays(parts))


def arrow(strings: Strings) -> pa.LargeStringArray:
    """Return packed strings as an Arrow array; without a copy where they are ASCII.

    Parameters
    ----------
    strings : resemblance.Strings

    Returns
    -------
    pyarrow.LargeStringArray

    Raises
    ------
    InputError
        If a string holds a lone surrogate, which UTF-8 cannot express; the message names its row.
    """
    offsets, data = strings.offsets, strings.data
    cuts = np.arange(offsets[0], offsets[-1], _ENCODE_CHARS)[1:]
    rows = [0, *np.unique(np.searchsorted(offsets[:-1], cuts)).tolist(), len(strings)]
    parts = [
        _encoded(
            data, offsets[lo : hi + 1], None if strings.valid is None else strings.valid[lo:hi], lo
        )
        for lo, hi in itertools.pairwise(rows)
    ]
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)


def is_text(type: pa.DataType) -> bool:
    """Whether an Arrow type holds text by its own account: strings, or a dictionary of strings."""
    if pa.types.is_dictionary(type):
        return is_text(type.value_type)
    return type in _AS_BYTES


def may_be_text(type: pa.DataType) -> bool:
    """Whether a column of this Arrow type can be packed: text, bytes that may be UTF-8, nulls."""
    if isinstance(type, pa.BaseExtensionType):
        return may_be_text(type.storage_type)
    if pa.types.is_dictionary(type):
        return may_be_text(type.value_type)
    return is_text(type) or _is_bytes(type) or pa.types.is_null(type)


def cast(array: pa.Array, field: pa.Field) -> pa.Array:
    """Cast an array to a field's type, also where Arrow has no kernel for it (dictionaries).

    Bytes that become text are not checked here.
    """
    if array.type == field.type:
        return array
    if field.type == pa.large_string() and may_be_text(array.type):
        return _as_large_string(array, field.name)
    if pa.types.is_dictionary(array.type) and not pa.types.is_dictionary(field.type):
        array = array.dictionary_decode()
    return array.cast(field.type)


def validate(
    array: pa.Array,
    *,
    name: str,
    where: str | None = None,
    first_row: int = 0,
    hint: str = "write the file again as UTF-8",
) -> None:
    """Check offsets, dictionary indices and UTF-8 of an Arrow array of any type.

    Numbers are left as they are, also those that Arrow's full check would object to (a decimal of
    more digits than its type says): they cannot do harm.

    Parameters
    ----------
    array : pyarrow.Array
    name, where, first_row
        Column, file and number of the first row, for the message; as in :func:`strings`.
    hint : str
        What to do about text that is not UTF-8.

    Raises
    ------
    InputError
        If the array is damaged or holds text that is not UTF-8.
    """
    numbers = pa.types.is_primitive(array.type) or pa.types.is_decimal(array.type)
    try:
        array.validate(full=not numbers)
    except pa.ArrowException as error:
        place = f"{where}: " if where else ""
        found = _fault(array)
        if found is None:
            raise InputError(f"{place}column {name!r} is damaged: {one_line(error)}") from None
        row, fault = found
        raise InputError(
            f"{place}column {name!r}, row {first_row + row}: not valid UTF-8 at byte {fault.start} "
            f"of the value (0x{fault.object[fault.start]:02x}); {hint}"
        ) from None


def _chunks(column: Any, name: str) -> list[pa.Array]:
    if isinstance(column, pa.Array):
        return [column]
    if not isinstance(column, pa.ChunkedArray):
        if not hasattr(column, "__arrow_c_stream__") and not hasattr(column, "__arrow_c_array__"):
            raise TypeError(
                f"column {name!r} is {type(column).__name__}, not an Arrow column; "
                "pass a pyarrow array, a Series, or another object that speaks Arrow"
            )
        try:
            if not hasattr(column, "__arrow_c_stream__"):
                return [pa.array(column)]
            column = pa.chunked_array(column)
        except pa.ArrowException as error:
            raise TypeError(f"column {name!r} cannot be read as Arrow: {one_line(error)}") from None
        if pa.types.is_struct(column.type):  # a table
            fields = [field.name for field in column.type]
            if len(fields) != 1:
                raise TypeError(
                    f"{name!r} is a table of {len(fields)} columns ({', '.join(fields)}); pass one "
                    "of them"
                )
            return [chunk.flatten()[0] for chunk in column.chunks]
    return list(column.chunks)


def _as_large_string(array: pa.Array, name: str) -> pa.LargeStringArray:
    """Bring any array of text to 64-bit offsets.

    Bytes are only relabelled: whether they are UTF-8 is for :func:`validate`.
    """
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return _as_large_string(array.storage, name)
    if pa.types.is_null(kind):
        return pa.nulls(len(array), pa.large_string())
    if pa.types.is_dictionary(kind):
        # no cast: it has no kernel for string_view; take also brings nulls of the dictionary along
        return _as_large_string(array.dictionary, name).take(array.indices)
    if is_text(kind):
        return array.cast(pa.large_string())
    if _is_bytes(kind):
        return array.cast(pa.large_binary()).view(pa.large_string())
    raise TypeError(
        f"column {name!r} is {kind}, not text; choose a column of strings, or cast it first"
    )


def _is_bytes(kind: pa.DataType) -> bool:
    return kind in _AS_BYTES.values()


def _packed(array: pa.LargeStringArray) -> Strings:
    _, offset_bytes, data_bytes = array.buffers()
    # either buffer may be absent, or empty, where there is nothing in it
    offsets = _view(offset_bytes, np.int64)[array.offset : array.offset + len(array) + 1]
    if len(offsets) == 0:
        offsets = np.zeros(1, np.int64)
    valid = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
    return Strings.from_utf8(_view(data_bytes, np.uint8), offsets, valid)


def _view(buffer: pa.Buffer | None, dtype: type[Any]) -> NDArray[Any]:
    if buffer is None or buffer.size == 0:
        return np.empty(0, dtype)
    view = np.frombuffer(buffer, dtype, buffer.size // np.dtype(dtype).itemsize)
    if not view.flags.aligned:  # a compiled kernel would take it for aligned
        view = view.copy()
    view.flags.writeable = False
    return view


def _encoded(
    data: NDArray[Any], offsets: NDArray[np.int64], valid: NDArray[np.bool_] | None, first_row: int
) -> pa.LargeStringArray:
    """Rows of a column, given by their offsets into ``data``, as UTF-8."""
    chars = data[offsets[0] : offsets[-1]]
    if chars.dtype == np.uint8 and (len(chars) == 0 or chars.max() < 0x80):
        text, at = pa.py_buffer(data), offsets
    else:
        surrogate = (chars >= 0xD800) & (chars <= 0xDFFF)
        if surrogate.any():
            where = offsets[0] + int(surrogate.argmax())
            row = first_row + int(np.searchsorted(offsets, where, "right")) - 1
            raise InputError(
                f"row {row} holds a lone surrogate (U+{data[where]:04X}), which UTF-8 cannot "
                "express; replace it, or write the row as bytes"
            )
        encoding = "latin-1" if chars.dtype == np.uint8 else "utf-32-le"
        raw = chars.tobytes() if chars.dtype == np.uint8 else chars.astype("<u4").tobytes()
        text = pa.py_buffer(raw.decode(encoding).encode())
        # a code point takes one byte, and one more past each of these
        ends = np.zeros(len(chars) + 1, np.int64)
        width = np.ones(len(chars), np.uint8)
        for limit in (0x80, 0x800, 0x10000):
            width += chars >= limit
        np.cumsum(width, out=ends[1:])
        at = ends[offsets - offsets[0]]
    bitmap = None
    if valid is not None:
        bitmap = pa.py_buffer(np.packbits(valid, bitorder="little"))
    at_buffer = pa.py_buffer(np.ascontiguousarray(at))
    return pa.LargeStringArray.from_buffers(len(at) - 1, at_buffer, text, bitmap)


def _fault(array: pa.Array) -> tuple[int, UnicodeDecodeError] | None:
    """The first row whose text is not UTF-8, and why; None if something else is wrong with it."""
    if pa.types.is_dictionary(array.type):
        entry = _fault(array.dictionary)
        if entry is None:
            return None
        row = pc.index(array.indices, pa.scalar(entry[0], array.indices.type)).as_py()
        return (row, entry[1]) if row >= 0 else None
    if array.type not in _AS_BYTES or not _is_sound(array.view(_AS_BYTES[array.type])):
        return None
    lo, hi = 0, len(array)
    while hi - lo > 1:  # rows before lo are sound, one before hi is not
        middle = (lo + hi) // 2
        if _is_sound(array.slice(lo, middle - lo)):
            lo = middle
        else:
            hi = middle
    try:
        array.view(_AS_BYTES[array.type])[lo].as_py().decode()
    except UnicodeDecodeError as fault:
        return lo, fault
    return None


def _is_sound(array: pa.Array) -> bool:
    try:
        array.validate(full=True)
    except pa.ArrowException:
        return False
    return True
