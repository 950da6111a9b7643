"""Two columns of text scored row by row, from files to a file: :func:`score`."""

from __future__ import annotations

import collections
import dataclasses
import json
import os
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, Literal, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from resemblance._version import __version__
from resemblance.matrix import pairwise
from resemblance.metrics import AnyMetric, CountingMetric, Metric
from resemblance.metrics.sets import SetMetric
from resemblance.normalize import Normalize
from resemblance.strings import Strings
from resemblance.tiles import usable_threads
from resemblance_io.errors import InputError
from resemblance_io.jobs.inputs import (
    alike,
    checked_metric,
    packed,
    refuse_overlap,
    tell_left_out,
    tokens_in_words,
)
from resemblance_io.jobs.stages import Report, Stages, describe
from resemblance_io.jobs.tally import MetricSummary, Tally
from resemblance_io.sinks import OutputFile, Writer
from resemblance_io.sources import Batch, Scan, scan

__all__ = ["ScoreSummary", "score"]

Kind = Literal["similarity", "distance"]

READ_BYTES: Final = 1 << 25
"""About the bytes of input that are held at a time, before they are scored."""

BLOCK_BYTES: Final = 1 << 21
"""About the bytes of text that a thread scores at a time."""

MOST_BLOCKS: Final = 8
"""Most blocks under way; where there are more threads, several share one."""

_RAMP: Final = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class ScoreSummary:
    """What :func:`score` found.

    Attributes
    ----------
    rows : int
        Rows of the input.
    nulls : int
        Rows where one of the texts is null, which have no score.
    metrics : dict of str to MetricSummary
        Counts, mean, percentiles, extremes and histogram of each column of scores, by its name.
    failed : tuple of str
        The gates that are not met, in words.
    skipped : int
        Bad rows left out while reading; they are not among ``rows``.
    seconds : dict of str to float
        Time of each stage.
    to : pathlib.Path or None
        The file written.
    """

    rows: int
    nulls: int
    metrics: dict[str, MetricSummary]
    failed: tuple[str, ...]
    skipped: int
    seconds: dict[str, float]
    to: Path | None

    def __str__(self) -> str:
        return "\n".join([self._head, *self._table(), self._tail])

    @property
    def brief(self) -> str:
        """The means alone, for people."""
        means = ", ".join(f"{name} {_number(m.mean)}" for name, m in self.metrics.items())
        return "\n".join([self._head, f"means    {means}", self._tail])

    @property
    def _head(self) -> str:
        skipped = f", {self.skipped:,} skipped as bad" if self.skipped else ""
        undefined = "".join(
            f", {m.undefined:,} without {name}" for name, m in self.metrics.items() if m.undefined
        )
        return f"rows     {self.rows:,} ({self.nulls:,} with a null{undefined}{skipped})"

    @property
    def _tail(self) -> str:
        return f"output   {self.to or 'none written'}\ntime     {describe(self.seconds)}"

    def _table(self) -> Iterator[str]:
        rows: list[tuple[str, ...]]
        rows = [("metric", "n", "nulls", "mean", "p5", "p50", "p95", "min", "max", "spread")]
        for name, m in self.metrics.items():
            numbers = map(_number, (m.mean, m.p5, m.p50, m.p95, m.min, m.max))
            nulls = f"{self.rows - m.scored:,}"
            rows.append((name, f"{m.scored:,}", nulls, *numbers, _bars(m.histogram)))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for name, *cells in rows:
            aligned = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
            yield "  ".join([name.ljust(widths[0]), *aligned]).rstrip()


def score(
    source: Any,
    metrics: str | Metric | Sequence[str | Metric],
    left: str = "output",
    right: str = "expected",
    to: str | os.PathLike[str] | None = None,
    *,
    columns: Sequence[str] | Literal["all"] | None = None,
    tokens: str | None = None,
    multiset: bool | None = None,
    normalize: Normalize | None = None,
    score: Kind = "similarity",
    fail_under: Mapping[str, float] | None = None,
    fail_rows_under: Mapping[str, float | tuple[float, float]] | None = None,
    threads: int | None = None,
    overwrite: bool = False,
    progress: bool = False,
    format: str | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    on_bad_rows: Literal["error", "skip"] = "error",
    filesystem: Any = None,
) -> ScoreSummary:
    """Score two columns of text row by row, with several metrics in one pass.

    Parameters
    ----------
    source : path, list of paths, or table
        Anything that :func:`resemblance.io.scan` reads. Its rows pass through a memory that does
        not grow with their number.
    metrics : str, Metric, or sequence of them
        Names, aliases or records.
    left, right : str
        The columns of text.
    to : path-like, optional
        The file to write; its extension names the format (see
        :class:`~resemblance_io.sinks.OutputFile`). Without it there is only the summary.
    columns : sequence of str, or "all", optional
        The columns of the input to write beside the scores; by default all but the two texts.
    tokens : str, optional
        Tokens of those set metrics that name none themselves: ``words``, ``words:5``, ``chars:3``.
    multiset : bool, optional
        Whether set metrics given by name count a repeated token as a further one; by default as
        each has it.
    normalize : Normalize, optional
        What to make alike in the texts before they are scored.
    score : {"similarity", "distance"}
        Similarities from 0 to 1 (float64), or distances in the metric's unit: of edits as uint32,
        else float64.
    fail_under : mapping of str to float, optional
        Gates on the mean of a metric, which must be at least this.
    fail_rows_under : mapping of str to float or (float, float), optional
        Gates on single rows: a similarity, and the largest share of the scored rows that may be
        below it (none if not given).
    threads : int, optional
        All CPUs this process may use by default. The output is the same for any number.
    overwrite : bool
        Whether an existing file may be replaced, once the new one is whole.
    progress : bool
        Show a bar on terminals and in notebooks.
    format, delimiter, encoding, on_bad_rows, filesystem
        How to read the source, as for :func:`resemblance.io.scan`.

    Returns
    -------
    ScoreSummary
        With the gates that are not met; the output is written all the same.

    Raises
    ------
    InputError
        If an option or the input cannot be used, or the output is there already.

    Notes
    -----
    The file has a row for each row of the input, in its order: the columns asked for, then one for
    each metric, with the name it is given in ``metrics`` (a record: its label). Where the input has
    a column of that name to be written, both are refused. Where a text is null, its scores are
    null.

    Rows without a score count in no mean and in no share; where no row of a metric has one, its
    gates are not met.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from resemblance.io import score
    >>> table = pa.table({"output": ["night", "day", None], "expected": ["nacht", "day", "tag"]})
    >>> found = score(table, "levenshtein", fail_under={"levenshtein": 0.9})
    >>> found.rows, found.nulls, found.metrics["levenshtein"].mean
    (3, 1, 0.8)
    >>> found.failed
    ('mean: levenshtein is 0.8, under 0.9',)
    """
    named = _named(metrics, tokens, multiset, threads)
    if score not in ("similarity", "distance"):
        raise InputError(f"score is {score!r}; use 'similarity' or 'distance'")
    if left == right:
        raise InputError(f"left and right are both {left!r}; name two columns")
    means = dict(fail_under or {})
    shares = {
        name: (bound, 0.0) if isinstance(bound, int | float) else bound
        for name, bound in (fail_rows_under or {}).items()
    }
    _check_gates(named, score, means, shares)
    rows = scan(
        source,
        _to_read(columns, left, right, to),
        text=[left, right],
        format=format,
        delimiter=delimiter,
        encoding=encoding,
        on_bad_rows=on_bad_rows,
        filesystem=filesystem,
        memory=READ_BYTES,
    )
    refuse_overlap(to, rows)
    beside = _beside(columns, left, right, rows.schema)
    work = _Scoring(
        left=left,
        right=right,
        metrics=named,
        normalize=normalize,
        kind=score,
        tallies={
            name: Tally(whole=_is_whole(metric, score), bound=shares.get(name, (0.0, 0.0))[0])
            for name, metric in named.items()
        },
        schema=_schema(rows.schema, beside, named, normalize, score),
        stopped=threading.Event(),
    )
    stages = Stages(progress)
    out = None if to is None else OutputFile(to, work.schema, overwrite=overwrite)
    with out or nullcontext() as writer, stages.stage("scoring", counts_rows=True) as report:
        seen, nulls = _run(work, rows, writer, usable_threads(threads), report)
    tell_left_out(rows)
    return ScoreSummary(
        rows=seen,
        nulls=nulls,
        metrics={name: tally.summary() for name, tally in work.tallies.items()},
        failed=tuple(_failures(work.tallies, means, shares)),
        skipped=len(rows.skipped),
        seconds=stages.seconds,
        to=None if to is None else Path(to),
    )


# -- what is asked for ----------------------------------------------------------------------------


def _named(
    metrics: str | Metric | Sequence[str | Metric],
    tokens: str | None,
    multiset: bool | None,
    threads: int | None,
) -> dict[str, AnyMetric]:
    """The records, by the names of their columns."""
    listed = [metrics] if isinstance(metrics, str | Metric) else list(metrics)
    if not listed:
        raise InputError("no metric to score with; name at least one (--metric levenshtein)")
    named: dict[str, AnyMetric] = {}
    for metric in listed:
        record: Any = checked_metric(metric, None, None, threads)
        name = metric if isinstance(metric, str) else record.label
        if name in named:
            raise InputError(f"metric {name!r} is named twice; name each metric once")
        if isinstance(metric, str) and isinstance(record, SetMetric):
            record = checked_metric(metric, None, None, threads, tokens)
            if multiset is not None:
                record = dataclasses.replace(record, multiset=multiset)
        named[name] = record
    if (tokens, multiset) != (None, None) and not any(map(tokens_in_words, named.values())):
        raise InputError(
            f"no metric here is of tokens ({', '.join(named)}); leave out tokens and multiset"
        )
    return named


def _to_read(
    columns: Sequence[str] | Literal["all"] | None, left: str, right: str, to: object
) -> list[str] | None:
    """The columns to read; None for all there are."""
    if columns is None or columns == "all":
        return [left, right] if to is None else None
    if isinstance(columns, str):
        raise InputError(f"columns is {columns!r}; pass a list of names, or 'all'")
    return list(columns)


def _beside(
    columns: Sequence[str] | Literal["all"] | None, left: str, right: str, schema: pa.Schema
) -> list[str]:
    """The columns to write beside the scores."""
    if columns is None:
        return [name for name in schema.names if name not in (left, right)]
    return schema.names if columns == "all" else list(dict.fromkeys(columns))


def _is_whole(metric: Metric, kind: Kind) -> bool:
    return kind == "distance" and isinstance(metric, CountingMetric)


def _schema(
    read: pa.Schema,
    beside: list[str],
    metrics: dict[str, AnyMetric],
    normalize: Normalize | None,
    kind: Kind,
) -> pa.Schema:
    """The columns of the output; those of scores say what they are."""
    fields = [read.field(name) for name in beside]
    for name, metric in metrics.items():
        if name in beside:
            raise InputError(
                f"the input has a column {name!r} already; write it under another name, or leave "
                "it out (--columns)"
            )
        made = {
            "metric": metric.label,
            "tokens": tokens_in_words(metric),
            "normalize": None if normalize is None else str(normalize),
            "score": kind,
            "version": __version__,
        }
        type = pa.uint32() if _is_whole(metric, kind) else pa.float64()
        fields.append(pa.field(name, type, metadata={"resemblance": json.dumps(made)}))
    return pa.schema(fields)


def _check_gates(
    metrics: dict[str, AnyMetric],
    kind: Kind,
    means: dict[str, float],
    shares: dict[str, tuple[float, float]],
) -> None:
    for option, gates in (("fail_under", means), ("fail_rows_under", shares)):
        for name, bounds in gates.items():
            if name not in metrics:
                raise InputError(
                    f"{option}: {name!r} is not scored here; the metrics are {', '.join(metrics)}"
                )
            if kind != "similarity":
                raise InputError(f"{option}: gates are on similarities; leave out the distance")
            for bound in bounds if isinstance(bounds, tuple) else (bounds,):
                if not 0 <= bound <= 1:
                    raise InputError(f"{option}: {name}={bound:g}: give numbers from 0 to 1")


def _failures(
    tallies: dict[str, Tally], means: dict[str, float], shares: dict[str, tuple[float, float]]
) -> Iterator[str]:
    """The gates that are not met, in words."""
    for name, least in means.items():
        mean = tallies[name].summary().mean
        if mean is None:
            yield f"mean: no row has a score of {name}, and {least!r} is asked for"
        elif mean < least:
            yield f"mean: {name} is {mean!r}, under {least!r}"
    for name, (least, share) in shares.items():
        below, scored = tallies[name].below, tallies[name].scored
        if not scored:
            yield f"rows: none has a score of {name}, and {least!r} is asked for"
        elif below > share * scored:
            yield (
                f"rows: {below:,} of {scored:,} scored ({below / scored:.4g}) have {name} under "
                f"{least!r}, and {_share(share)} may"
            )


# -- scoring --------------------------------------------------------------------------------------


class _Stopped(Exception):
    """Ends work whose results nobody waits for any more."""


class _Scored(NamedTuple):
    table: pa.Table
    nulls: int


@dataclass(frozen=True)
class _Scoring:
    """What is done with each block of rows, in any thread."""

    left: str
    right: str
    metrics: dict[str, AnyMetric]
    normalize: Normalize | None
    kind: Kind
    tallies: dict[str, Tally]
    schema: pa.Schema
    stopped: threading.Event

    def block(self, batch: Batch, threads: int) -> _Scored:
        """Score rows; what is written beside the scores is passed on."""
        left, right = (
            alike(packed(batch, name), self.normalize) for name in (self.left, self.right)
        )
        null = left.is_null | right.is_null
        arrays = [batch.data.column(name) for name in self.schema.names[: -len(self.metrics)]]
        arrays += [self._scores(name, left, right, null, threads) for name in self.metrics]
        return _Scored(pa.table(arrays, schema=self.schema), int(null.sum()))

    def _scores(
        self, name: str, left: Strings, right: Strings, null: NDArray[np.bool_], threads: int
    ) -> pa.Array:
        found = pairwise(
            left,
            right,
            self.metrics[name],
            score=self.kind,
            threads=threads,
            progress=self._go_on,
        )
        missing = np.isnan(found)
        scores = found[~missing]
        self.tallies[name].add(scores, int((missing & ~null).sum()))
        if _is_whole(self.metrics[name], self.kind):
            found[missing] = 0
            found = found.astype(np.uint32)
        return pa.array(found, mask=missing)

    def _go_on(self, done: int, total: int) -> None:
        if self.stopped.is_set():
            raise _Stopped


def _run(
    work: _Scoring, rows: Scan, writer: Writer | None, threads: int, report: Report
) -> tuple[int, int]:
    """Score all rows and write them; returns how many there are and how many have a null."""
    seen = nulls = 0
    total = rows.num_rows or 0
    blocks = min(threads, MOST_BLOCKS)

    def scored(batch: Batch) -> _Scored:
        return work.block(batch, threads // blocks)

    with closing(iter(rows)) as batches:
        parts = _blocks(batches, work.left, work.right)
        with closing(_in_order(scored, parts, blocks, work.stopped)) as results:
            for result in results:
                if writer is not None:
                    writer.write(result.table)
                seen += result.table.num_rows
                nulls += result.nulls
                report(seen, total)
    return seen, nulls


def _blocks(batches: Iterable[Batch], left: str, right: str) -> Iterator[Batch]:
    """The rows, no more bytes of text at a time than :data:`BLOCK_BYTES` (or one row)."""
    for batch in batches:
        size = batch.data.column(left).nbytes + batch.data.column(right).nbytes
        n = batch.data.num_rows
        step = max(1, n * BLOCK_BYTES // max(size, BLOCK_BYTES))
        for at in range(0, n, step):
            yield Batch(
                batch.data.slice(at, step), batch.file, batch.first_row + at, batch.file_row + at
            )


T = TypeVar("T")
R = TypeVar("R")


def _in_order(
    work: Callable[[T], R], items: Iterable[T], threads: int, stopped: threading.Event
) -> Generator[R]:
    """Results of ``work`` in the order of the items, of which only a few are held at a time.

    ``stopped`` is set when no more are wanted: by an error, an interrupt, or at the end.
    """
    todo: SimpleQueue[tuple[Future[R], T] | None] = SimpleQueue()

    def loop() -> None:
        while (task := todo.get()) is not None and not stopped.is_set():
            future, item = task
            del task
            try:
                future.set_result(work(item))
            except BaseException as error:
                future.set_exception(error)
            del future, item

    # not a pool of the standard library: the interpreter would wait for its threads to end
    for i in range(threads):
        threading.Thread(target=loop, name=f"resemblance-score-{i}", daemon=True).start()
    waiting: collections.deque[Future[R]] = collections.deque()
    try:
        for item in items:
            waiting.append(Future())
            todo.put((waiting[-1], item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        stopped.set()
        for _ in range(threads):
            todo.put(None)


# -- for people -----------------------------------------------------------------------------------


def _share(share: float) -> str:
    return f"at most {share!r}" if share else "none"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.5g}" if value < 1e5 else f"{value:,.0f}"


def _bars(counts: tuple[int, ...]) -> str:
    """A histogram in one line: no bar only where there is nothing."""
    most = max(*counts, 1)
    return "".join(_RAMP[-(-count * (len(_RAMP) - 1) // most)] for count in counts)
