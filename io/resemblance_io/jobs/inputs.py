"""What the jobs share about their input: options checked, a column packed."""

from __future__ import annotations

import logging
import os
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from resemblance.metrics import AnyMetric, Metric, resolve
from resemblance.metrics.sets import SetMetric
from resemblance.normalize import Normalize
from resemblance.strings import UNITS, Strings
from resemblance.threshold import check_threshold
from resemblance_io.columns import strings
from resemblance_io.errors import InputError
from resemblance_io.jobs.stages import Report
from resemblance_io.sources import Batch, Scan

logger = logging.getLogger("resemblance")


def checked_metric(
    metric: str | Metric,
    min_similarity: float | None,
    max_distance: float | None,
    threads: int | None,
    tokens: str | None = None,
) -> AnyMetric:
    """The metric's record, once it and what is said beside it are found to make sense.

    Raises
    ------
    InputError
        With what the engine says of them, before anything is read.
    """
    try:
        check_threshold(min_similarity, max_distance)
        record = resolve(metric, tokens)
    except (TypeError, ValueError) as error:
        raise InputError(str(error)) from None
    if tokens is not None and tokens_in_words(record) is None:
        raise InputError(
            f"{record.name} is not a metric of tokens; leave out {tokens!r} (--tokens)"
        )
    if threads is not None and threads < 0:
        raise InputError(f"threads is {threads}; use a number from 0, or None for all CPUs")
    return record


def alike(texts: Strings, normalize: Normalize | None) -> Strings:
    """A column as it is compared."""
    return texts if normalize is None else normalize(texts)


def tokens_in_words(metric: Metric) -> str | None:
    """The tokens of a set metric, as on the command line; None for other metrics."""
    return str(metric.tokens) if isinstance(metric, SetMetric) else None


def refuse_overlap(to: str | os.PathLike[str] | None, *scans: Scan) -> None:
    """Refuse an output that an input is, or lies in: it would be replaced by it."""
    if to is None:
        return
    target = os.path.realpath(to)
    for scan in scans:
        for file in scan.files:
            path = os.path.realpath(file)
            if path == target or path.startswith(target + os.sep):
                raise InputError(f"{file}: is input and would be replaced; name another output")


class Texts(NamedTuple):
    """A column of a whole scan, packed.

    Attributes
    ----------
    strings : Strings
    beside : pyarrow.ChunkedArray or None
        Another column, as it was read.
    skipped : int
        Rows left out because they were bad.
    """

    strings: Strings
    beside: pa.ChunkedArray | None
    skipped: int


def read_texts(scan: Scan, column: str, report: Report, beside: str | None = None) -> Texts:
    """Read one column of text, and another of any type beside it.

    Parameters
    ----------
    scan : Scan
        Of these columns alone.
    column : str
    report : callable
        Told the rows read and, where the files say so, those in all.
    beside : str, optional
        The other column.

    Returns
    -------
    Texts
    """
    total = scan.num_rows or 0
    kind = None if beside is None else scan.schema.field(beside).type
    parts = []
    others = []
    rows = 0
    for batch in scan:
        parts.append(packed(batch, column))
        if beside is not None:
            others.append(batch.data.column(beside))
        rows += batch.data.num_rows
        report(rows, total)
    tell_left_out(scan)
    other = None if beside is None else pa.chunked_array(others, kind)
    return Texts(joined(parts), other, len(scan.skipped))


def tell_left_out(scan: Scan) -> None:
    """Log the files that a scan passed over, and the rows."""
    if scan.ignored:
        names = ", ".join(scan.ignored[:3]) + (", ..." if len(scan.ignored) > 3 else "")
        logger.info("left out as no data by name: %d, %s", len(scan.ignored), names)
    if scan.skipped:
        first = scan.skipped[0]
        logger.warning("skipped as bad: %d, the first: %s: line %d: %s", len(scan.skipped), *first)


def packed(batch: Batch, column: str) -> Strings:
    """A column of a batch."""
    array = batch.data.column(column)
    return strings(array, name=column, where=batch.file, first_row=batch.file_row)


def joined(parts: list[Strings]) -> Strings:
    """Columns end to end; the list is emptied, each part let go as it is copied."""
    unit = max((part.data.dtype for part in parts), key=lambda d: d.itemsize, default=UNITS[0])
    rows = sum(map(len, parts))
    valid = None
    if any(part.valid is not None for part in parts):
        valid = np.concatenate([~part.is_null for part in parts])
    offsets = np.zeros(rows + 1, np.int64)
    data: NDArray[Any] = np.empty(sum(int(p.offsets[-1] - p.offsets[0]) for p in parts), unit)
    row = at = 0
    parts.reverse()
    while parts:
        part = parts.pop()
        lo, hi = int(part.offsets[0]), int(part.offsets[-1])
        data[at : at + hi - lo] = part.data[lo:hi]
        np.add(part.offsets[1:], at - lo, out=offsets[row + 1 : row + 1 + len(part)])
        row += len(part)
        at += hi - lo
    return Strings(data, offsets, valid)


def same_texts(strings: Strings, first_row: int, part: Strings) -> bool:
    """Whether the rows from ``first_row`` on are those of ``part``."""
    if first_row + len(part) > len(strings):
        return False
    here = strings[first_row : first_row + len(part)]
    return (
        np.array_equal(here.lengths, part.lengths)
        and np.array_equal(here.is_null, part.is_null)
        and np.array_equal(
            here.data[here.offsets[0] : here.offsets[-1]],
            part.data[part.offsets[0] : part.offsets[-1]],
        )
    )
