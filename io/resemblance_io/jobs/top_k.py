"""The best matches of each query, from files to a file: :func:`top_k`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa

from resemblance.metrics import Metric
from resemblance.neighbors import Neighbors
from resemblance.neighbors import top_k as find_neighbors
from resemblance.normalize import Normalize
from resemblance.strings import Strings
from resemblance_io.columns import arrow
from resemblance_io.errors import InputError
from resemblance_io.jobs.inputs import (
    alike,
    checked_metric,
    joined,
    packed,
    read_texts,
    refuse_overlap,
)
from resemblance_io.jobs.stages import Stages, describe
from resemblance_io.sinks import OutputFile
from resemblance_io.sources import Scan, scan

__all__ = ["TopKSummary", "top_k"]

SCHEMA: Final = pa.schema(
    [
        ("query", pa.int64()),
        ("rank", pa.int64()),
        ("choice", pa.int64()),
        ("score", pa.float64()),
        ("query_text", pa.large_string()),
        ("choice_text", pa.large_string()),
    ]
)

BLOCK_MATCHES: Final = 1 << 20
"""Matches of the queries that are searched for together."""


@dataclass(frozen=True)
class TopKSummary:
    """What :func:`top_k` found.

    Attributes
    ----------
    queries, choices : int
        Rows of either side.
    matches : int
        Matches written.
    unmatched : int
        Queries without any match.
    skipped : int
        Bad rows left out while reading.
    seconds : dict of str to float
        Time of each stage.
    to : pathlib.Path
        The file written.
    """

    queries: int
    choices: int
    matches: int
    unmatched: int
    skipped: int
    seconds: dict[str, float]
    to: Path

    def __str__(self) -> str:
        skipped = f" ({self.skipped:,} skipped as bad)" if self.skipped else ""
        return "\n".join(
            [
                f"rows     {self.queries:,} queries, {self.choices:,} choices{skipped}",
                f"matches  {self.matches:,}; {self.unmatched:,} queries have none",
                f"output   {self.to}",
                f"time     {describe(self.seconds)}",
            ]
        )


def top_k(
    queries: Any,
    choices: Any,
    *,
    on: str,
    to: str | os.PathLike[str],
    k: int = 5,
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
) -> TopKSummary:
    """Find the best matches of each query, exactly, and write them.

    Parameters
    ----------
    queries, choices : path, list of paths, or table
        Anything that :func:`resemblance.io.scan` reads.
    on : str
        The column of text to compare; it has this name on both sides.
    to : path-like
        The file to write; its extension names the format (see
        :class:`~resemblance_io.sinks.OutputFile`).
    k : int
        Most matches of a query.
    metric : str or Metric
        Name, alias or record.
    tokens : str, optional
        Tokens of a set metric that names none itself: ``words``, ``words:5``, ``chars:3``.
    normalize : Normalize, optional
        What to make alike in the texts before they are compared; they are written as they are.
    min_similarity, max_distance : float, optional
        Leave out matches beyond; at most one of the two.
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
    TopKSummary

    Raises
    ------
    InputError
        If an option or the input cannot be used, or the output is there already.

    Notes
    -----
    The file has a row for each match: ``query`` and ``choice`` (rows, numbered from 0 through all
    files of a side), ``rank`` from 1, ``score`` (the distance if ``max_distance`` is given, which
    then also ranks; else the similarity), ``query_text`` and ``choice_text``. Equal scores are
    ranked by row of the choice. Queries that are null or have no match within the threshold have
    no row. The choices are held in memory, queries pass through it in blocks.
    """
    metric = checked_metric(metric, min_similarity, max_distance, threads, tokens)
    if k < 1:
        raise InputError(f"k is {k}; ask for at least one match")
    asked, offered = (
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
        for source in (queries, choices)
    )
    refuse_overlap(to, asked, offered)
    for side in (asked, offered):
        _ = side.schema  # what it lacks is told before anything is written
    stages = Stages(progress)
    rows = matched = 0
    with OutputFile(to, SCHEMA, overwrite=overwrite) as out:
        with stages.stage("reading", counts_rows=True) as report:
            texts, _, skipped = read_texts(offered, on, report)
        with stages.stage("comparing", counts_rows=True) as report:
            compared = alike(texts, normalize)
            total = asked.num_rows or 0
            for block in _blocks(asked, on, max(1, BLOCK_MATCHES // k)):

                def within(done: int, of: int, first: int = rows, n: int = len(block)) -> None:
                    report(first + n * done // of, total)

                found = find_neighbors(
                    alike(block, normalize),
                    compared,
                    metric,
                    k=k,
                    score="similarity" if max_distance is None else "distance",
                    min_similarity=min_similarity,
                    max_distance=max_distance,
                    threads=threads,
                    progress=within,
                )
                out.write(_table(block, rows, texts, found))
                matched += int((found.index[:, 0] >= 0).sum())
                rows += len(block)
    return TopKSummary(
        queries=rows,
        choices=len(texts),
        matches=out.rows,
        unmatched=rows - matched,
        skipped=skipped + len(asked.skipped),
        seconds=stages.seconds,
        to=Path(to),
    )


def _blocks(queries: Scan, on: str, size: int) -> Iterator[Strings]:
    """The queries, about ``size`` at a time."""
    parts: list[Strings] = []
    for batch in queries:
        parts.append(packed(batch, on))
        if sum(map(len, parts)) >= size:
            yield joined(parts)
            parts = []
    if parts:
        yield joined(parts)


def _table(queries: Strings, first_row: int, choices: Strings, found: Neighbors) -> pa.Table:
    """A row for each match of a block of queries."""
    query, rank = np.nonzero(found.index >= 0)
    choice = found.index[query, rank]
    arrays = [
        pa.array(query + first_row),
        pa.array(rank + 1),
        pa.array(choice),
        pa.array(found.score[query, rank]),
        arrow(queries.take(query)),
        arrow(choices.take(choice)),
    ]
    return pa.table(arrays, schema=SCHEMA)
