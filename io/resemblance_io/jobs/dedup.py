"""Near-duplicates of a whole source, out of it: :func:`dedup`."""

from __future__ import annotations

import logging
import os
import platform
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from resemblance._version import __version__
from resemblance.dedup import KEEP, Duplicates, blank_rows, check_limits
from resemblance.dedup import dedup as find_duplicates
from resemblance.metrics import AnyMetric, Metric
from resemblance.normalize import Normalize
from resemblance.strings import Strings
from resemblance_io.columns import is_text
from resemblance_io.errors import InputError
from resemblance_io.jobs.inputs import (
    alike,
    checked_metric,
    packed,
    read_texts,
    refuse_overlap,
    same_texts,
    tokens_in_words,
)
from resemblance_io.jobs.plan import Plan, measured_plan
from resemblance_io.jobs.stages import Report, Stages, describe
from resemblance_io.sinks import OutputFolder
from resemblance_io.sources import Scan, scan

__all__ = ["DedupSummary", "dedup", "plan_dedup"]

logger = logging.getLogger("resemblance")

Clusters = Literal["star", "components"]

DEFAULT_SIMILARITY: Final = 0.8
"""Threshold where none is given; the engine's."""

LARGE_SHARE: Final = 0.1
LARGE_ROWS: Final = 10
"""A cluster of at least this share of all rows, and this many, is warned about."""

_REMOVED: Final = (("duplicate_of", pa.int64()), ("score", pa.float64()), ("reason", pa.string()))
_PAIRS: Final = pa.schema([("left", pa.int64()), ("right", pa.int64()), ("score", pa.float64())])
_BLOCK_PAIRS: Final = 1 << 20
_LARGEST: Final = 20
_SNIPPET: Final = 80
_LISTED: Final = 100


@dataclass(frozen=True)
class DedupSummary:
    """What :func:`dedup` found.

    Attributes
    ----------
    rows : int
        Rows of the input.
    nulls, blanks : int
        Rows without text, and with nothing (left) but white space; neither are duplicates of
        anything.
    exact_duplicates, near_duplicates : int
        Rows removed whose text equals that of the row kept instead, and the other rows removed.
    kept : int
        Rows kept.
    clusters : int
        Clusters of two rows or more.
    largest_cluster : int
        Rows of the largest cluster; 1 where nothing is a duplicate, 0 without rows.
    worst_score : float or None
        Score of the removed row least like the one kept instead; None where none is removed.
    pairs : int
        Verified pairs.
    skipped : int
        Bad rows left out while reading; they are not among ``rows``.
    threshold : str
        Metric and threshold, in words.
    seconds : dict of str to float
        Time of each stage.
    to : pathlib.Path or None
        Where the output is.
    """

    rows: int
    nulls: int
    blanks: int
    exact_duplicates: int
    near_duplicates: int
    kept: int
    clusters: int
    largest_cluster: int
    worst_score: float | None
    pairs: int
    skipped: int
    threshold: str
    seconds: dict[str, float]
    to: Path | None

    @property
    def removed(self) -> int:
        """Rows removed."""
        return self.exact_duplicates + self.near_duplicates

    @property
    def largest_share(self) -> float:
        """Share of all rows that the largest cluster holds."""
        return self.largest_cluster / self.rows if self.rows else 0.0

    def __str__(self) -> str:
        skipped = f", {self.skipped:,} skipped as bad" if self.skipped else ""
        share = f" ({self.kept / self.rows:.1%})" if self.rows else ""
        lines = [
            f"rows     {self.rows:,} ({self.nulls:,} null, {self.blanks:,} blank{skipped})",
            f"removed  {self.removed:,} ({self.exact_duplicates:,} exact, "
            f"{self.near_duplicates:,} near: {self.threshold})",
            f"kept     {self.kept:,}{share}",
        ]
        if self.clusters:
            lines.append(
                f"clusters {self.clusters:,}, the largest of {self.largest_cluster:,} rows "
                f"({self.largest_share:.2%} of all); worst score {self.worst_score:.6g}"
            )
        lines.append(f"output   {self.to or 'none written'}")
        lines.append(f"time     {describe(self.seconds)}")
        return "\n".join(lines)


def dedup(
    source: Any,
    column: str = "text",
    to: str | os.PathLike[str] | None = None,
    *,
    metric: str | Metric = "jaccard",
    tokens: str | None = None,
    normalize: Normalize | None = None,
    min_similarity: float | None = None,
    max_distance: float | None = None,
    keep: str = "first",
    clusters: Clusters = "star",
    threads: int | None = None,
    overwrite: bool = False,
    progress: bool = False,
    format: str | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    on_bad_rows: Literal["error", "skip"] = "error",
    filesystem: Any = None,
) -> DedupSummary:
    """Find the near-duplicates of a source and write what is left, what is not, and why.

    Parameters
    ----------
    source : path, list of paths, or table
        Anything that :func:`resemblance.io.scan` reads. It is read twice.
    column : str
        The column of text to compare.
    to : path-like, optional
        Folder for the output, see Notes. Without it nothing is written.
    metric : str or Metric
        Name, alias or record.
    tokens : str, optional
        Tokens of a set metric that names none itself: ``words``, ``words:5``, ``chars:3``.
    normalize : Normalize, optional
        What to make alike in the texts before they are compared; they are written as they are.
    min_similarity : float, optional
        Texts at least this similar are duplicates; 0.8 if neither threshold is given.
    max_distance : float, optional
        Texts at most this far apart are duplicates.
    keep : str
        Which row of a cluster survives: ``first``, ``last``, ``longest``, ``shortest``, or the one
        with the largest or smallest value in another column, ``max:COL`` or ``min:COL`` (rows
        where it is null or NaN come last). Ties go to the earlier row.
    clusters : {"star", "components"}
        ``star``: every removed row is itself within the threshold of the row kept instead.
        ``components``: rows connected by any chain of pairs are one cluster, whose ends need not
        be alike. These clusters do not depend on the order of rows; stars do, where a row is
        within the threshold of several.
    threads : int, optional
        All CPUs this process may use by default. The output is the same for any number.
    overwrite : bool
        Whether an earlier output may be replaced, once the new one is whole.
    progress : bool
        Show a bar on terminals and in notebooks.
    format, delimiter, encoding, on_bad_rows, filesystem
        How to read the source, as for :func:`resemblance.io.scan`.

    Returns
    -------
    DedupSummary

    Raises
    ------
    InputError
        If an option or the input cannot be used, the output is there already, or the input
        changes while it is read. There is no output then.

    Notes
    -----
    The folder holds, with rows numbered from 0 through all files of the input:

    ``kept.parquet``
        Rows that survive, in input order, with the columns of the input as they are.
    ``removed.parquet``
        The others, and for each ``duplicate_of`` (the row kept instead), ``score`` (its distance
        or similarity to that one, whichever the threshold is in) and ``reason`` (``exact`` where
        the texts are equal, else ``near``). If the input has a column of such a name, ours
        begins with ``dedup_``.
    ``clusters.parquet``
        For each row of the input: ``row``, ``file``, ``file_row``, ``cluster`` (the row that
        survives of its cluster; its own where it has no duplicates) and ``kept``.
    ``pairs.parquet``
        ``left``, ``right``, ``score``: the verified pairs; those of different texts between the
        first rows that hold them, and each further row of a text with the first.
    ``stats.json``
        Counts, the largest clusters, options, versions and times.
    ``_manifest.json``
        The files with their hashes.

    The text column is held in memory, with its pairs; the other columns are streamed.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from resemblance.io import dedup
    >>> table = pa.table({"text": ["apple pie", "pear tart", "aple pie", None]})
    >>> found = dedup(table, metric="levenshtein", max_distance=1)
    >>> found.kept, found.near_duplicates
    (3, 1)
    """
    metric = _checked(metric, min_similarity, max_distance, threads, tokens)
    if min_similarity is None and max_distance is None:
        min_similarity = DEFAULT_SIMILARITY
    if clusters not in ("star", "components"):
        raise InputError(f"clusters is {clusters!r}; use 'star' or 'components'")
    ranked = _ranked_column(keep)
    whole = scan(
        source,
        text=[column],
        format=format,
        delimiter=delimiter,
        encoding=encoding,
        on_bad_rows=on_bad_rows,
        filesystem=filesystem,
    )
    refuse_overlap(to, whole)
    narrow = whole.select([column] if ranked is None else [column, ranked])
    _ = narrow.schema  # what it lacks is told before anything is written
    if to is not None:
        _ = whole.schema
    options = {
        "column": column,
        "metric": metric.label,
        "tokens": tokens_in_words(metric),
        "normalize": None if normalize is None else str(normalize),
        "min_similarity": min_similarity,
        "max_distance": max_distance,
        "keep": keep,
        "clusters": clusters,
    }
    stages = Stages(progress)
    folder = None if to is None else OutputFolder(to, overwrite=overwrite)
    with folder or nullcontext():
        with stages.stage("reading", counts_rows=True) as report:
            texts, beside, skipped = read_texts(narrow, column, report, ranked)
        with stages.stage("comparing") as report:
            compared = alike(texts, normalize)
            found = find_duplicates(
                compared,
                metric,
                min_similarity=min_similarity,
                max_distance=max_distance,
                keep=keep if beside is None else _ranks(beside, keep),
                method=clusters,
                threads=threads,
                progress=report,
            )
        exact = _equal_to_kept(texts, found)
        sizes = np.bincount(found.representative, minlength=len(texts))
        if folder is not None:
            with stages.stage("writing", counts_rows=True) as report:
                _write(folder, whole, column, texts, found, exact, report)
                _write_pairs(folder, found)
        summary = DedupSummary(
            rows=len(texts),
            nulls=texts.null_count,
            blanks=int(blank_rows(compared).sum()),
            exact_duplicates=int(exact.sum()),
            near_duplicates=int((~found.kept & ~exact).sum()),
            kept=int(found.kept.sum()),
            clusters=int((sizes > 1).sum()),
            largest_cluster=int(sizes.max(initial=0)),
            worst_score=_worst(found, similar=max_distance is None),
            pairs=len(found.pairs.left),
            skipped=skipped,
            threshold=threshold_in_words(metric, min_similarity, max_distance),
            seconds=stages.seconds,
            to=None if to is None else Path(to),
        )
        largest = _largest(texts, sizes)
        if folder is not None:
            folder.json("stats.json", _stats(summary, largest, options, whole), volatile=True)
    if summary.largest_share >= LARGE_SHARE and summary.largest_cluster >= LARGE_ROWS:
        logger.warning(
            "one cluster holds %s of %s rows (%.0f %%), around row %d: %r; if that is not what "
            "you expect, use a stricter threshold%s",
            f"{summary.largest_cluster:,}",
            f"{summary.rows:,}",
            100 * summary.largest_share,
            largest[0]["row"],
            largest[0]["text"],
            ", or star clusters" if clusters == "components" else "",
        )
    return summary


def plan_dedup(
    source: Any,
    column: str = "text",
    *,
    metric: str | Metric = "jaccard",
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
    """Predict what :func:`dedup` would take, without writing anything.

    Parameters
    ----------
    source, column, metric, tokens, normalize, min_similarity, max_distance, threads
        As for :func:`dedup`.
    format, delimiter, encoding, on_bad_rows, filesystem
        As for :func:`dedup`.

    Returns
    -------
    Plan
        The column is read, and the search begun and broken off after a moment, to learn its speed
        on this machine.
    """
    metric = _checked(metric, min_similarity, max_distance, threads, tokens)
    if min_similarity is None and max_distance is None:
        min_similarity = DEFAULT_SIMILARITY
    narrow = scan(
        source,
        [column],
        text=[column],
        format=format,
        delimiter=delimiter,
        encoding=encoding,
        on_bad_rows=on_bad_rows,
        filesystem=filesystem,
    )
    stages = Stages()
    with stages.stage("reading") as report:
        texts = read_texts(narrow, column, report).strings
    return measured_plan(
        alike(texts, normalize),
        None,
        metric,
        min_similarity=min_similarity,
        max_distance=max_distance,
        threads=threads,
        clusters=True,
        # it is read a second time, in full, and written
        overhead=3 * stages.total,
    )


def _checked(
    metric: str | Metric,
    min_similarity: float | None,
    max_distance: float | None,
    threads: int | None,
    tokens: str | None,
) -> AnyMetric:
    record = checked_metric(metric, min_similarity, max_distance, threads, tokens)
    try:
        check_limits(record, min_similarity, max_distance)
    except ValueError as error:
        raise InputError(str(error)) from None
    return record


def threshold_in_words(
    metric: Metric, min_similarity: float | None, max_distance: float | None
) -> str:
    """Metric and threshold, for people."""
    if max_distance is not None:
        return f"{metric.label} distance <= {max_distance:g}"
    if min_similarity is not None:
        return f"{metric.label} similarity >= {min_similarity:g}"
    return metric.label


# -- which row to keep ----------------------------------------------------------------------------


def _ranked_column(keep: str) -> str | None:
    """The column that ``keep`` names, if it names one."""
    kind, colon, name = keep.partition(":")
    if not colon and keep in KEEP:
        return None
    if kind in ("max", "min") and name:
        return name
    raise InputError(f"keep is {keep!r}; use {', '.join(KEEP)}, max:COL or min:COL")


def _ranks(column: pa.ChunkedArray, keep: str) -> NDArray[np.int64]:
    """Rank of each row, the one to keep first; ties by row."""
    kind, _, name = keep.partition(":")
    order = "descending" if kind == "max" else "ascending"
    try:
        # stable, and what cannot be compared (null, NaN) comes last
        rows = pc.sort_indices(pa.table({"x": _sortable(column)}), [("x", order)]).to_numpy()
    except (pa.ArrowException, NotImplementedError):
        raise InputError(
            f"keep is {keep!r}, but column {name!r} is {column.type}, which has no order; choose a "
            "column of numbers, times or text"
        ) from None
    ranks = np.empty(len(rows), np.int64)
    ranks[rows] = np.arange(len(rows))
    return ranks


def _sortable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The same values in a type that Arrow can sort."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return _sortable(pa.chunked_array([c.storage for c in column.chunks], kind.storage_type))
    if pa.types.is_dictionary(kind):
        return _sortable(
            pa.chunked_array([c.dictionary_decode() for c in column.chunks], kind.value_type)
        )
    if is_text(kind):
        return column.cast(pa.large_string())
    if pa.types.is_binary_view(kind):
        return column.cast(pa.large_binary())
    return column.cast(pa.float32()) if pa.types.is_float16(kind) else column


# -- what was found -------------------------------------------------------------------------------


def _equal_to_kept(texts: Strings, found: Duplicates) -> NDArray[np.bool_]:
    """True for removed rows whose text is that of the row kept instead."""
    lengths = texts.lengths
    rows = np.flatnonzero(~found.kept)
    rows = rows[lengths[rows] == lengths[found.representative[rows]]]
    exact = np.zeros(len(texts), np.bool_)
    for part in np.array_split(rows, len(rows) // (1 << 20) + 1):  # bounds the copies
        mine, kept = texts.take(part), texts.take(found.representative[part])
        differing = np.zeros(len(mine.data) + 1, np.int64)
        np.cumsum(mine.data != kept.data, out=differing[1:])
        exact[part] = np.diff(differing[mine.offsets]) == 0
    return exact


def _worst(found: Duplicates, *, similar: bool) -> float | None:
    scores = found.score[~found.kept]
    if not len(scores):
        return None
    return float(scores.min() if similar else scores.max())


def _largest(texts: Strings, sizes: NDArray[np.int64]) -> list[dict[str, Any]]:
    """The largest clusters of more than one row: row that is kept, size, beginning of its text."""
    rows = np.flatnonzero(sizes > 1)
    rows = rows[np.argsort(-sizes[rows], kind="stable")][:_LARGEST]
    return [
        {"row": row, "size": int(sizes[row]), "text": texts[row][:_SNIPPET]}
        for row in rows.tolist()
    ]


def _stats(
    summary: DedupSummary,
    largest: list[dict[str, Any]],
    options: dict[str, Any],
    whole: Scan,
) -> dict[str, Any]:
    return {
        "rows": summary.rows,
        "nulls": summary.nulls,
        "blanks": summary.blanks,
        "kept": summary.kept,
        "exact_duplicates": summary.exact_duplicates,
        "near_duplicates": summary.near_duplicates,
        "pairs": summary.pairs,
        "clusters": summary.clusters,
        "largest_share": summary.largest_share,
        "largest_clusters": largest,
        "worst_score": summary.worst_score,
        "skipped": summary.skipped,
        "skipped_rows": [row._asdict() for row in whole.skipped[:_LISTED]],
        "files": whole.files,
        "ignored_files": whole.ignored,
        "options": options,
        "seconds": {name: round(value, 3) for name, value in summary.seconds.items()},
        "versions": {
            "resemblance": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "numba", "pyarrow")},
        },
    }


# -- the output -----------------------------------------------------------------------------------


class _Rows(NamedTuple):
    """A batch's rows of each array that is written."""

    kept: NDArray[np.bool_]
    representative: NDArray[np.int64]
    score: NDArray[np.float64]
    exact: NDArray[np.bool_]


def _write(
    folder: OutputFolder,
    whole: Scan,
    column: str,
    texts: Strings,
    found: Duplicates,
    exact: NDArray[np.bool_],
    report: Report,
) -> None:
    """Read the source again and deal its rows out."""
    schema = whole.schema
    removed_schema = schema
    for name, kind in _REMOVED:
        removed_schema = removed_schema.append(pa.field(_free(name, schema.names), kind))
    kept = folder.parquet("kept.parquet", schema)
    removed = folder.parquet("removed.parquet", removed_schema)
    files = pa.array(whole.files, pa.string())
    number = {file: i for i, file in enumerate(whole.files)}
    clusters = folder.parquet("clusters.parquet", _clusters_schema(files))
    seen = 0
    for batch in whole:
        data, n = batch.data, batch.data.num_rows
        here = slice(seen, seen + n)
        if not same_texts(texts, seen, packed(batch, column)):
            raise _changed(batch.file)
        rows = _Rows(found.kept[here], found.representative[here], found.score[here], exact[here])
        kept.write(_filtered(data, rows.kept))
        removed.write(_removed(data, rows, removed_schema))
        clusters.write(
            pa.table(
                {
                    "row": np.arange(seen, seen + n),
                    "file": pa.DictionaryArray.from_arrays(
                        np.full(n, number[batch.file], np.int32), files
                    ),
                    "file_row": np.arange(batch.file_row, batch.file_row + n),
                    "cluster": rows.representative,
                    "kept": rows.kept,
                }
            )
        )
        seen += n
        report(seen, len(texts))
    if seen != len(texts):
        raise _changed(whole.files[-1])
    for writer in (kept, removed, clusters):
        writer.close()


def _write_pairs(folder: OutputFolder, found: Duplicates) -> None:
    with_pairs = folder.parquet("pairs.parquet", _PAIRS)
    pairs = found.pairs
    for at in range(0, len(pairs.left), _BLOCK_PAIRS):
        block = slice(at, at + _BLOCK_PAIRS)
        with_pairs.write(
            pa.table(
                [pairs.left[block], pairs.right[block], pairs.score[block].astype(np.float64)],
                schema=_PAIRS,
            )
        )
    with_pairs.close()


def _clusters_schema(files: pa.Array) -> pa.Schema:
    return pa.schema(
        [
            ("row", pa.int64()),
            ("file", pa.dictionary(pa.int32(), files.type)),
            ("file_row", pa.int64()),
            ("cluster", pa.int64()),
            ("kept", pa.bool_()),
        ]
    )


def _free(name: str, taken: list[str]) -> str:
    while name in taken:
        name = f"dedup_{name}"
    return name


def _changed(file: str) -> InputError:
    return InputError(
        f"{file}: changed while it was read (other rows the second time); run again once "
        "nothing writes to the input"
    )


def _removed(data: pa.RecordBatch, rows: _Rows, schema: pa.Schema) -> pa.RecordBatch:
    gone = ~rows.kept
    reasons = pa.array(["near", "exact"]).take(pa.array(rows.exact[gone].astype(np.int8)))
    ours = [pa.array(rows.representative[gone]), pa.array(rows.score[gone]), reasons]
    return pa.RecordBatch.from_arrays([*_filtered(data, gone).columns, *ours], schema=schema)


def _filtered(batch: pa.RecordBatch, mask: NDArray[np.bool_]) -> pa.RecordBatch:
    """The rows of a batch where the mask is true, whatever their types."""
    if mask.all():
        return batch
    chosen = pa.array(mask)
    arrays = []
    for array in batch.columns:
        try:
            arrays.append(array.filter(chosen))
        except pa.ArrowNotImplementedError:  # views and run-end encoded arrays
            edges = np.flatnonzero(np.diff(mask, prepend=False, append=False)).tolist()
            runs = [array.slice(a, b - a) for a, b in zip(edges[::2], edges[1::2], strict=True)]
            arrays.append(pa.concat_arrays(runs or [array.slice(0, 0)]))
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)
