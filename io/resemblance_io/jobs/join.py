"""All pairs within a threshold, from files to a file: :func:`join`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa

from resemblance.join import iter_join
from resemblance.metrics import AnyMetric, Metric
from resemblance.normalize import Normalize
from resemblance_io.errors import InputError
from resemblance_io.jobs.inputs import alike, checked_metric, read_texts, refuse_overlap
from resemblance_io.jobs.plan import Plan, measured_plan
from resemblance_io.jobs.stages import Stages, describe
from resemblance_io.sinks import OutputFile
from resemblance_io.sources import Scan, scan

__all__ = ["JoinSummary", "join", "plan_join"]

SCHEMA: Final = pa.schema([("left", pa.int64()), ("right", pa.int64()), ("score", pa.float64())])


@dataclass(frozen=True)
class JoinSummary:
    """What :func:`join` found.

    Attributes
    ----------
    left_rows : int
        Rows of the left side.
    right_rows : int or None
        Rows of the right side; None for a column joined with itself.
    nulls : int
        Rows without text, which are in no pair.
    pairs : int
        Pairs written.
    skipped : int
        Bad rows left out while reading.
    seconds : dict of str to float
        Time of each stage.
    to : pathlib.Path
        The file written.
    """

    left_rows: int
    right_rows: int | None
    nulls: int
    pairs: int
    skipped: int
    seconds: dict[str, float]
    to: Path

    def __str__(self) -> str:
        rows = f"{self.left_rows:,}"
        if self.right_rows is not None:
            rows += f" x {self.right_rows:,}"
        skipped = f", {self.skipped:,} skipped as bad" if self.skipped else ""
        return "\n".join(
            [
                f"rows    {rows} ({self.nulls:,} null{skipped})",
                f"pairs   {self.pairs:,}",
                f"output  {self.to}",
                f"time    {describe(self.seconds)}",
            ]
        )


def join(
    left: Any,
    right: Any = None,
    *,
    on: str,
    to: str | os.PathLike[str],
    metric: str | Metric = "levenshtein",
    tokens: str | None = None,
    normalize: Normalize | None = None,
    min_similarity: float | None = None,
    max_distance: float | None = None,
    threads: int | None = None,
    overwrite: bool = False,
    progress: bool = False,
    format: str | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    on_bad_rows: Literal["error", "skip"] = "error",
    filesystem: Any = None,
) -> JoinSummary:
    """Find all pairs of rows within a threshold, exactly, and write them.

    Parameters
    ----------
    left, right : path, list of paths, or table
        Anything that :func:`resemblance.io.scan` reads. Without ``right``, the rows of ``left``
        are joined with one another.
    on : str
        The column of text to compare; it has this name on both sides.
    to : path-like
        The file to write; its extension names the format (see
        :class:`~resemblance_io.sinks.OutputFile`).
    metric : str or Metric
        Name, alias or record.
    tokens : str, optional
        Tokens of a set metric that names none itself: ``words``, ``words:5``, ``chars:3``.
    normalize : Normalize, optional
        What to make alike in the texts before they are compared.
    min_similarity : float, optional
        Keep pairs whose similarity is at least this.
    max_distance : float, optional
        Keep pairs whose distance is at most this. One of the two must be given.
    threads : int, optional
        All CPUs this process may use by default. The output is the same for any number.
    overwrite : bool
        Whether an existing file may be replaced, once the new one is whole.
    progress : bool
        Show a bar on terminals and in notebooks.
    format, delimiter, encoding, on_bad_rows, filesystem
        How to read both sides, as for :func:`resemblance.io.scan`.

    Returns
    -------
    JoinSummary

    Raises
    ------
    InputError
        If an option or the input cannot be used, or the output is there already.

    Notes
    -----
    The file has the columns ``left`` and ``right`` (rows, numbered from 0 through all files of a
    side; a column joined with itself gives each pair once, ``left < right``) and ``score``
    (distance or similarity, whichever the threshold is in), sorted by row. Empty and blank texts
    are text: equal ones are pairs. Both columns are held in memory; pairs are written in blocks.
    """
    metric = _checked(metric, min_similarity, max_distance, threads, tokens)
    sides = _scans(left, right, on, format, delimiter, encoding, on_bad_rows, filesystem)
    refuse_overlap(to, *sides)
    for side in sides:
        _ = side.schema  # what it lacks is told before anything is written
    stages = Stages(progress)
    with OutputFile(to, SCHEMA, overwrite=overwrite) as out:
        with stages.stage("reading", counts_rows=True) as report:
            texts = [read_texts(side, on, report) for side in sides]
        columns = [alike(t.strings, normalize) for t in texts]
        with stages.stage("comparing") as report:
            blocks = iter_join(
                columns[0],
                None if right is None else columns[1],
                metric,
                min_similarity=min_similarity,
                max_distance=max_distance,
                threads=threads,
                progress=report,
            )
            for block in blocks:
                arrays = [block.left, block.right, block.score.astype(np.float64)]
                out.write(pa.table(arrays, schema=SCHEMA))
    return JoinSummary(
        left_rows=len(columns[0]),
        right_rows=None if right is None else len(columns[1]),
        nulls=sum(column.null_count for column in columns),
        pairs=out.rows,
        skipped=sum(t.skipped for t in texts),
        seconds=stages.seconds,
        to=Path(to),
    )


def plan_join(
    left: Any,
    right: Any = None,
    *,
    on: str,
    metric: str | Metric = "levenshtein",
    tokens: str | None = None,
    normalize: Normalize | None = None,
    min_similarity: float | None = None,
    max_distance: float | None = None,
    threads: int | None = None,
    format: str | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    on_bad_rows: Literal["error", "skip"] = "error",
    filesystem: Any = None,
) -> Plan:
    """Predict what :func:`join` would take, without writing anything.

    Parameters
    ----------
    left, right, on, metric, tokens, normalize, min_similarity, max_distance, threads
        As for :func:`join`.
    format, delimiter, encoding, on_bad_rows, filesystem
        As for :func:`join`.

    Returns
    -------
    Plan
        The columns are read, and the search begun and broken off after a moment, to learn its
        speed on this machine.
    """
    metric = _checked(metric, min_similarity, max_distance, threads, tokens)
    sides = _scans(left, right, on, format, delimiter, encoding, on_bad_rows, filesystem)
    stages = Stages()
    with stages.stage("reading") as report:
        columns = [alike(read_texts(side, on, report).strings, normalize) for side in sides]
    return measured_plan(
        columns[0],
        None if right is None else columns[1],
        metric,
        min_similarity=min_similarity,
        max_distance=max_distance,
        threads=threads,
        clusters=False,
        overhead=stages.total,
    )


def _checked(
    metric: str | Metric,
    min_similarity: float | None,
    max_distance: float | None,
    threads: int | None,
    tokens: str | None,
) -> AnyMetric:
    if min_similarity is None and max_distance is None:
        raise InputError(
            "a join needs a threshold: min_similarity (--min-similarity 0.9) or "
            "max_distance (--max-distance 1)"
        )
    return checked_metric(metric, min_similarity, max_distance, threads, tokens)


def _scans(
    left: Any,
    right: Any,
    on: str,
    format: str | None,
    delimiter: str | None,
    encoding: str,
    on_bad_rows: Literal["error", "skip"],
    filesystem: Any,
) -> list[Scan]:
    """Both sides."""
    return [
        scan(
            source,
            [on],
            text=[on],
            format=format,
            delimiter=delimiter,
            encoding=encoding,
            on_bad_rows=on_bad_rows,
            filesystem=filesystem,
        )
        for source in ([left] if right is None else [left, right])
    ]
