"""The one door for what users pass as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from resemblance.strings import Strings

if TYPE_CHECKING:
    from resemblance.normalize import Normalize


def as_strings(texts: Any, name: str = "texts", normalize: Normalize | None = None) -> Strings:
    """Pack what a user passed, and normalise it if that is asked for.

    Parameters
    ----------
    texts : Strings, list, tuple, ndarray, or an object that speaks Arrow
        Arrow columns (``pyarrow``, polars, DuckDB, pandas with Arrow strings) are read without
        Python objects; an ASCII one without copying.
    name : str
        What the caller's parameter is called, for messages.
    normalize : Normalize, optional

    Returns
    -------
    Strings

    Raises
    ------
    TypeError
        If it is not a column of text, naming the offending row where there is one.
    """
    if normalize is not None:
        from resemblance.normalize import Normalize

        if not isinstance(normalize, Normalize):
            raise TypeError(f"normalize must be a Normalize, got {type(normalize).__name__}")
        return normalize(as_strings(texts, name))
    if isinstance(texts, Strings):
        return texts
    if isinstance(texts, str | bytes):
        raise TypeError(f"{name} is a single {type(texts).__name__}; pass a list: [{name}]")
    if not isinstance(texts, list | tuple | np.ndarray):
        if hasattr(texts, "__arrow_c_stream__") or hasattr(texts, "__arrow_c_array__"):
            from resemblance_io import columns

            return columns.strings(texts, name=name)
        if not (hasattr(texts, "to_numpy") and hasattr(texts, "__len__")):
            raise _not_text(texts, name)
        texts = np.asarray(texts.to_numpy(), object)
    try:
        return Strings.pack(texts)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None


def _not_text(texts: Any, name: str) -> TypeError:
    once = " (a generator can be read only once: pass list(...))"
    return TypeError(
        f"{name} must be a list, tuple, NumPy array, Arrow column or Strings of text, "
        f"got {type(texts).__name__}{once if hasattr(texts, '__next__') else ''}"
    )
