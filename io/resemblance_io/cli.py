"""The command line: parses, calls a job, prints what it returns.

Nothing heavy is imported before a command runs, so that ``resemblance --help`` is there at once.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
import traceback
import warnings
from enum import StrEnum
from typing import Annotated, Any, NoReturn

import typer

from resemblance._version import __version__
from resemblance_io.errors import InputError, one_line

__all__ = ["main"]

DONE, FAULT, UNUSABLE, NOT_MET, INTERRUPTED, TERMINATED = 0, 1, 2, 3, 130, 143
"""Exit codes."""

# Typer has had its own copy of click's exceptions for a while; this is the base of either's.
_UsageError: type[Any] = typer.BadParameter.__bases__[0]

app = typer.Typer(
    name="resemblance",
    help="Find and remove near-duplicates in large collections of text.",
    add_completion=False,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Clusters(StrEnum):
    """What rows a cluster holds."""

    star = "star"
    components = "components"


class Kind(StrEnum):
    """What a score is."""

    similarity = "similarity"
    distance = "distance"


class FileFormat(StrEnum):
    """Formats that are read."""

    parquet = "parquet"
    arrow = "arrow"
    csv = "csv"
    tsv = "tsv"
    jsonl = "jsonl"


class BadRows(StrEnum):
    """What to do with rows that cannot be read."""

    error = "error"
    skip = "skip"


Metric = Annotated[
    str, typer.Option(metavar="NAME", help="How to compare; see 'resemblance metrics'.")
]
Tokens = Annotated[
    str | None,
    typer.Option(metavar="KIND", help="Tokens of set metrics: words, words:N or chars:N."),
]
NormalizeWords = Annotated[
    list[str] | None,
    typer.Option(
        "--normalize",
        metavar="WORD",
        help="Make texts alike first: casefold, lower, collapse, remove-whitespace, strip, "
        "ascii-punctuation, unicode-punctuation, NFC, NFD, NFKC or NFKD; several times for "
        "several.",
    ),
]
MinSimilarity = Annotated[
    float | None,
    typer.Option(metavar="S", help="Take pairs at least this similar, from 0 to 1."),
]
MaxDistance = Annotated[
    float | None,
    typer.Option(metavar="K", help="Take pairs at most this far apart, in the metric's unit."),
]
On = Annotated[str, typer.Option(metavar="COL", help="The column of text to compare.")]
OutputPath = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="The file to write: .parquet, .arrow, .csv, .tsv or .jsonl.",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(metavar="N", min=0, help="All CPUs by default; results are the same for any."),
]
Format = Annotated[
    FileFormat | None,
    typer.Option("--format", help="Format of the input, if it does not show."),
]
Delimiter = Annotated[str | None, typer.Option(metavar="CHAR", help="Of CSV input.")]
Encoding = Annotated[str, typer.Option(metavar="NAME", help="Of CSV and JSON Lines input.")]
OnBadRows = Annotated[BadRows, typer.Option(help="What to do with rows that cannot be read.")]
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Replace an earlier output, once the new one is whole."),
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Tell how many pairs, memory and time it takes; write nothing."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No summary, no progress bar.")]


@app.callback()
def _resemblance(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        typer.echo(f"resemblance {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(UNUSABLE)


@app.command()
def dedup(
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="INPUT", help="Files, folders, globs, URIs, or - for stdin."),
    ],
    to: Annotated[
        str | None, typer.Option("--output", "-o", metavar="DIR", help="Folder for the output.")
    ] = None,
    column: Annotated[
        str, typer.Option(metavar="COL", help="The column of text to compare.")
    ] = "text",
    metric: Metric = "jaccard",
    tokens: Tokens = None,
    normalize: NormalizeWords = None,
    min_similarity: Annotated[
        float | None,
        typer.Option(
            metavar="S", help="Remove texts at least this similar, from 0 to 1.  [default: 0.8]"
        ),
    ] = None,
    max_distance: Annotated[
        float | None,
        typer.Option(
            metavar="K", help="Remove texts at most this far apart, in the metric's unit."
        ),
    ] = None,
    keep: Annotated[
        str,
        typer.Option(
            metavar="POLICY",
            help="Row to keep of a cluster: first, last, longest, shortest, max:COL or min:COL.",
        ),
    ] = "first",
    clusters: Annotated[
        Clusters,
        typer.Option(
            help="star: each removed row is near the one kept; components: chains count too."
        ),
    ] = Clusters.star,
    threads: Threads = None,
    overwrite: Overwrite = False,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    format: Format = None,
    delimiter: Delimiter = None,
    encoding: Encoding = "utf-8",
    on_bad_rows: OnBadRows = BadRows.error,
) -> None:
    """Remove near-duplicates from a collection of texts.

    Writes into DIR: kept.parquet and removed.parquet (the rows, with all their columns),
    clusters.parquet, pairs.parquet, stats.json and _manifest.json.
    """
    from resemblance_io.jobs import dedup as job

    options: dict[str, Any] = {
        "metric": metric,
        "tokens": tokens,
        "normalize": _normalize(normalize),
        "min_similarity": min_similarity,
        "max_distance": max_distance,
        "threads": threads,
        **_reading(format, delimiter, encoding, on_bad_rows),
    }
    if dry_run:
        typer.echo(job.plan_dedup(inputs, column, **options))
        return
    summary = job.dedup(
        inputs,
        column,
        _required(to),
        keep=keep,
        clusters=clusters.value,
        overwrite=overwrite,
        progress=not quiet,
        **options,
    )
    _print(summary, quiet)


@app.command()
def join(
    left: Annotated[str, typer.Argument(metavar="LEFT", help="A file, folder, glob or URI.")],
    right: Annotated[
        str | None,
        typer.Argument(metavar="RIGHT", help="Another; without it, LEFT with itself."),
    ] = None,
    *,
    on: On,
    to: OutputPath = None,
    metric: Metric = "levenshtein",
    tokens: Tokens = None,
    normalize: NormalizeWords = None,
    min_similarity: MinSimilarity = None,
    max_distance: MaxDistance = None,
    threads: Threads = None,
    overwrite: Overwrite = False,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    format: Format = None,
    delimiter: Delimiter = None,
    encoding: Encoding = "utf-8",
    on_bad_rows: OnBadRows = BadRows.error,
) -> None:
    """Find all pairs of rows within a threshold.

    Writes the columns left, right (row numbers) and score.
    """
    from resemblance_io.jobs import join as job

    options: dict[str, Any] = {
        "on": on,
        "metric": metric,
        "tokens": tokens,
        "normalize": _normalize(normalize),
        "min_similarity": min_similarity,
        "max_distance": max_distance,
        "threads": threads,
        **_reading(format, delimiter, encoding, on_bad_rows),
    }
    if dry_run:
        typer.echo(job.plan_join(left, right, **options))
        return
    summary = job.join(
        left, right, to=_required(to), overwrite=overwrite, progress=not quiet, **options
    )
    _print(summary, quiet)


@app.command("top-k")
def top_k(
    queries: Annotated[str, typer.Argument(metavar="QUERIES", help="A file, folder, glob or URI.")],
    choices: Annotated[str, typer.Argument(metavar="CHOICES", help="Where to look for matches.")],
    *,
    on: On,
    to: OutputPath = None,
    k: Annotated[int, typer.Option("-k", min=1, metavar="K", help="Most matches of a query.")] = 5,
    metric: Metric = "levenshtein",
    tokens: Tokens = None,
    normalize: NormalizeWords = None,
    min_similarity: MinSimilarity = None,
    max_distance: MaxDistance = None,
    threads: Threads = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    format: Format = None,
    delimiter: Delimiter = None,
    encoding: Encoding = "utf-8",
    on_bad_rows: OnBadRows = BadRows.error,
) -> None:
    """Find the best matches of each query.

    Writes the columns query, rank, choice, score, query_text and choice_text.
    """
    from resemblance_io.jobs import top_k as job

    summary = job.top_k(
        queries,
        choices,
        on=on,
        to=_required(to),
        k=k,
        metric=metric,
        tokens=tokens,
        normalize=_normalize(normalize),
        min_similarity=min_similarity,
        max_distance=max_distance,
        threads=threads,
        overwrite=overwrite,
        progress=not quiet,
        **_reading(format, delimiter, encoding, on_bad_rows),
    )
    _print(summary, quiet)


@app.command()
def score(
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="INPUT", help="Files, folders, globs, URIs, or - for stdin."),
    ],
    metric: Annotated[
        list[str],
        typer.Option(metavar="NAME", help="How to compare; may be given several times."),
    ],
    to: OutputPath = None,
    left: Annotated[str, typer.Option(metavar="COL", help="A column of text.")] = "output",
    right: Annotated[str, typer.Option(metavar="COL", help="The other one.")] = "expected",
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="COL,COL",
            help="Columns to write beside the scores, or all.  [default: all but the two texts]",
        ),
    ] = None,
    tokens: Tokens = None,
    multiset: Annotated[
        bool | None,
        typer.Option(
            "--multiset/--set",
            help="Whether set metrics count a token as often as it occurs.  [default: as each "
            "metric has it]",
        ),
    ] = None,
    normalize: NormalizeWords = None,
    kind: Annotated[
        Kind, typer.Option("--score", help="From 0 to 1, or in the metric's unit.")
    ] = Kind.similarity,
    summary: Annotated[
        bool, typer.Option("--summary", help="Print how the scores of each metric are spread.")
    ] = False,
    fail_under: Annotated[
        list[str] | None,
        typer.Option(metavar="METRIC=S", help="Exit with 3 if the mean of a metric is under this."),
    ] = None,
    fail_rows_under: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC=S[:SHARE]",
            help="Exit with 3 if more than this share of the rows (default: any) is under S.",
        ),
    ] = None,
    threads: Threads = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    format: Format = None,
    delimiter: Delimiter = None,
    encoding: Encoding = "utf-8",
    on_bad_rows: OnBadRows = BadRows.error,
) -> None:
    """Score two columns row by row.

    Writes one column for each metric beside columns of the input. Rows with a null have no score
    and count in no gate.
    """
    from resemblance_io.jobs import score as job

    means = dict(_mean_gate(text) for text in fail_under or ())
    shares = dict(_rows_gate(text) for text in fail_rows_under or ())
    if to is None and not (summary or means or shares):
        raise InputError("nowhere to write; name the output (-o), or ask for the --summary")
    found = job.score(
        inputs,
        metric,
        left,
        right,
        to,
        columns=columns if columns in (None, "all") else [c for c in columns.split(",") if c],
        tokens=tokens,
        multiset=multiset,
        normalize=_normalize(normalize),
        score=kind.value,
        fail_under=means,
        fail_rows_under=shares,
        threads=threads,
        overwrite=overwrite,
        progress=not quiet,
        **_reading(format, delimiter, encoding, on_bad_rows),
    )
    _print(found if summary else found.brief, quiet)
    if found.failed:
        raise typer.Exit(_fail(NOT_MET, f"gate not met: {'; '.join(found.failed)}"))


@app.command()
def sample(
    to: Annotated[
        str,
        typer.Argument(metavar="OUT", help="The file to write: .parquet, .arrow, .csv or .jsonl."),
    ],
    rows: Annotated[int, typer.Option(metavar="N", min=0, help="Number of rows.")] = 10_000,
    seed: Annotated[int, typer.Option(metavar="S", min=0, help="Another one, other texts.")] = 0,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Write a synthetic corpus with known duplicates, and the truth about it beside it."""
    from resemblance_io.jobs import sample as job

    made = job.sample(to, rows=rows, seed=seed, overwrite=overwrite)
    kinds = ", ".join(f"{n:,} {kind}" for kind, n in made.kinds.items())
    _print(
        f"rows     {made.rows:,} ({kinds})\n"
        f"output   {made.path}, {made.truth}\n"
        f"time     {made.seconds:.1f} s",
        quiet,
    )


@app.command()
def metrics() -> None:
    """List the metrics.

    Range is that of distances; similarities are from 0 to 1. Names with a colon are variants.
    """
    from resemblance.metrics import RECORDS, CountingMetric

    rows = [("name", "also", "unit", "range", "what it measures", "source")]
    for record in RECORDS:
        also = [*record.aliases, *(f"{record.name}:{variant}" for variant in record.variants)]
        largest = "1"
        if issubclass(record, CountingMetric):
            largest = "both lengths" if record().summed else "longer length"
        names = record.name, ", ".join(also)
        rows.append((*names, record.unit, f"0 to {largest}", record.summary, record.source))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        typer.echo("  ".join(cells).rstrip())


def _reading(
    format: FileFormat | None, delimiter: str | None, encoding: str, on_bad_rows: BadRows
) -> dict[str, Any]:
    return {
        "format": None if format is None else format.value,
        "delimiter": "\t" if delimiter == "\\t" else delimiter,
        "encoding": encoding,
        "on_bad_rows": on_bad_rows.value,
    }


def _mean_gate(text: str) -> tuple[str, float]:
    name, bound = _gate("--fail-under", "levenshtein=0.8", text)
    if ":" in bound:
        raise InputError(
            f"--fail-under {text}: is on the mean, which has no share; for a share of the rows "
            f"use --fail-rows-under {text}"
        )
    return name, _gate_number("--fail-under", text, bound)


def _rows_gate(text: str) -> tuple[str, tuple[float, float]]:
    name, bounds = _gate("--fail-rows-under", "levenshtein=0.5:0.1", text)
    least, colon, share = bounds.partition(":")
    numbers = [least, share if colon else "0"]
    low, most = (_gate_number("--fail-rows-under", text, number) for number in numbers)
    return name, (low, most)


def _gate(option: str, example: str, text: str) -> tuple[str, str]:
    name, _, bounds = text.rpartition("=")
    if not name:
        raise InputError(f"{option} {text}: names no metric and number; write {example}")
    return name, bounds


def _gate_number(option: str, text: str, number: str) -> float:
    try:
        return float(number)
    except ValueError:
        raise InputError(f"{option} {text}: {number!r} is not a number") from None


def _normalize(words: list[str] | None) -> Any:
    from resemblance.normalize import parse_normalize

    try:
        return parse_normalize(words or ())
    except ValueError as error:
        raise InputError(str(error)) from None


def _required(to: str | None) -> str:
    if to is None:
        raise InputError("nowhere to write; name the output (-o), or ask for a --dry-run")
    return to


def _print(summary: object, quiet: bool) -> None:
    if not quiet:
        typer.echo(summary)


# -- leaving --------------------------------------------------------------------------------------


def main() -> int:
    """Run the command of ``sys.argv`` and return the exit code.

    Returns
    -------
    int
        0 done; 2 wrong usage or unusable input; 3 a gate not met; 1 a fault of ours; 130
        interrupted, 143 terminated. For 2 and 3 there is one line on the standard error: what,
        where, what to do.
    """
    signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _terminate)
    sys.meta_path.insert(0, _NoPandas())
    _speak_in_lines()
    try:
        code: Any = app(standalone_mode=False, prog_name="resemblance")
    except InputError as error:
        return _fail(UNUSABLE, str(error))
    except _UsageError as error:
        path = error.ctx.command_path if error.ctx else "resemblance"
        return _fail(UNUSABLE, f"{error.format_message()} (try '{path} --help')")
    except MemoryError as error:
        return _fail(UNUSABLE, f"not enough memory: {one_line(error)}")
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except Exception as error:
        # An interrupt within a compiler or a destructor can surface as any other error.
        if not _interrupted.is_set():
            traceback.print_exc()
            return _fail(FAULT, f"a fault of resemblance, please report it: {one_line(error)}")
        code = INTERRUPTED
    if code == INTERRUPTED:
        return _fail(INTERRUPTED, "interrupted")
    return code if isinstance(code, int) else DONE


def _fail(code: int, message: str) -> int:
    """Say why in one line."""
    typer.echo(f"resemblance: {' '.join(message.split())}", err=True)
    return code


class _NoPandas:
    """Keeps Arrow from importing pandas: that takes half a second and loses a Ctrl-C meanwhile.

    No command needs it.
    """

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Say that there is no pandas, and nothing about other modules."""
        if name == "pandas":
            raise ModuleNotFoundError("the command line does without pandas", name=name)


_interrupted = threading.Event()


def _interrupt(signum: int, frame: object) -> NoReturn:
    _interrupted.set()
    sys.unraisablehook = _unraisable
    raise KeyboardInterrupt


def _unraisable(lost: Any) -> None:
    """Bring back an interrupt that met a destructor; what else those say by now is of no use."""
    if lost.exc_type is KeyboardInterrupt:
        threading.Timer(0.1, signal.raise_signal, [signal.SIGINT]).start()


def _terminate(signum: int, frame: object) -> NoReturn:
    _fail(TERMINATED, "terminated")
    sys.exit(TERMINATED)


def _speak_in_lines() -> None:
    """Let warnings, of whatever origin, be lines like those of errors."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("resemblance: %(message)s"))
    logger = logging.getLogger("resemblance")
    logger.handlers = [handler]
    # a person is also told why the first run takes its time
    logger.setLevel(logging.DEBUG if sys.stderr.isatty() else logging.INFO)
    warnings.showwarning = lambda message, *_: logger.warning("%s", message)


if __name__ == "__main__":
    sys.exit(main())
