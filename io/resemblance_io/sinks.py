"""Outputs that are there whole, or not at all.

Everything is written beside its final place under a hidden name, synced to disk, and renamed at
the end. A lock file keeps two runs from writing to one place; since only the holder of the lock
writes there, what an interrupted run left behind can be told and removed by the next one.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import filelock
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from resemblance._version import __version__
from resemblance_io.columns import cast, is_text
from resemblance_io.errors import InputError, one_line

__all__ = ["OutputFile", "OutputFolder", "Writer"]

MANIFEST = "_manifest.json"

ROW_GROUP_ROWS = 1 << 16
ROW_GROUP_BYTES = 1 << 26
"""A row group ends at the first of these, wherever the batches end."""

_PIECE_ROWS = 1 << 10


class Writer:
    """A table being written, batch by batch, as one format.

    Attributes
    ----------
    rows : int
        Rows written so far.
    """

    def __init__(self, staged: Path, final: Path, schema: pa.Schema) -> None:
        self.rows = 0
        self._final = final
        self._schema = schema
        self._closed = False
        with _writing(final):
            self._open(staged)

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Append rows, which must have the columns of the writer's schema."""
        table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
        with _writing(self._final):
            self._append(table.cast(self._schema))
        self.rows += table.num_rows

    def close(self) -> None:
        """Finish the file."""
        if not self._closed:
            self._closed = True
            with _writing(self._final):
                self._end()

    def _open(self, staged: Path) -> None:
        raise NotImplementedError

    def _append(self, table: pa.Table) -> None:
        raise NotImplementedError

    def _end(self) -> None:
        raise NotImplementedError


class OutputFolder:
    """A folder of results, renamed into place when it is whole.

    Parameters
    ----------
    path : path-like
        The folder. Its parents are made as needed.
    overwrite : bool
        Whether an earlier output may be replaced; that happens only when the new one is whole.
        A folder that `OutputFolder` did not write is never replaced.

    Raises
    ------
    InputError
        On entering: if the folder exists, or another run is writing it.

    Examples
    --------
    >>> import pyarrow as pa, tempfile, os
    >>> from resemblance_io.sinks import OutputFolder
    >>> path = os.path.join(tempfile.mkdtemp(), "out")
    >>> with OutputFolder(path) as out:
    ...     table = out.parquet("kept.parquet", pa.schema([("text", pa.string())]))
    ...     table.write(pa.table({"text": ["a", "b"]}))
    ...     out.json("stats.json", {"rows": 2})
    >>> sorted(os.listdir(path))
    ['_manifest.json', 'kept.parquet', 'stats.json']
    """

    def __init__(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        self._place = _Place(path, overwrite)
        self._writers: dict[str, Writer] = {}
        self._volatile: set[str] = set()

    def __enter__(self) -> Self:
        self._place.enter(self._check)
        with self._place.guarded():
            self._place.staging.mkdir()
        return self

    def parquet(self, name: str, schema: pa.Schema) -> Writer:
        """Begin a Parquet file in the folder; it is closed with the folder, or before."""
        final = self._place.path / name
        self._writers[name] = _ParquetWriter(self._new(name), final, schema)
        return self._writers[name]

    def text(self, name: str, content: str, *, volatile: bool = False) -> None:
        """Write a text file into the folder.

        Parameters
        ----------
        name : str
        content : str
        volatile : bool
            Whether equal runs may write different bytes (timings): the manifest then lists the
            file without its size and hash.
        """
        with _writing(self._place.path / name):
            self._new(name).write_text(content, encoding="utf-8", newline="\n")
        if volatile:
            self._volatile.add(name)

    def json(self, name: str, value: Any, *, volatile: bool = False) -> None:
        """Write a JSON file into the folder; ``volatile`` as in :meth:`text`."""
        self.text(name, _json(value), volatile=volatile)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._place.abandon(*self._writers.values())
            return
        with self._place.guarded(), _writing(self._place.path):
            for writer in self._writers.values():
                writer.close()
            self._finish()

    def _finish(self) -> None:
        staging = self._place.staging
        entries = [self._entry(name) for name in sorted(os.listdir(staging))]
        manifest = {"library": "resemblance", "version": __version__, "files": entries}
        (staging / MANIFEST).write_text(_json(manifest), encoding="utf-8", newline="\n")
        for name in os.listdir(staging):
            _sync(staging / name)
        _sync(staging)
        self._place.publish()

    def _entry(self, name: str) -> dict[str, Any]:
        entry: dict[str, Any] = {"name": name}
        if name in self._writers:
            entry["rows"] = self._writers[name].rows
        if name not in self._volatile:
            path = self._place.staging / name
            with path.open("rb") as stream:
                entry["sha256"] = hashlib.file_digest(stream, "sha256").hexdigest()
            entry["bytes"] = path.stat().st_size
        return entry

    def _new(self, name: str) -> Path:
        path = self._place.staging / name
        if name == MANIFEST or Path(name).name != name or path.exists():
            raise ValueError(f"{name!r} cannot be the name of a new file in the output folder")
        return path

    def _check(self, path: Path, overwrite: bool) -> None:
        """Refuse to replace what is there, unless told to and it is ours alone."""
        if not path.exists() or (path.is_dir() and not os.listdir(path)):
            return
        if not path.is_dir():
            raise InputError(f"{path}: is a file; name a folder for the output")
        if not overwrite:
            raise InputError(f"{path}: exists; name another folder, or replace it (--overwrite)")
        try:
            entries = json.loads((path / MANIFEST).read_text(encoding="utf-8"))["files"]
            ours = {MANIFEST, *(entry["name"] for entry in entries)}
        except (OSError, ValueError, LookupError, TypeError):
            raise InputError(
                f"{path}: was not written by resemblance (no {MANIFEST}) and will not be "
                "replaced; name another folder, or remove it yourself"
            ) from None
        foreign = sorted(set(os.listdir(path)) - ours)
        if foreign:
            raise InputError(
                f"{path}: holds {foreign[0]!r}, which resemblance did not write; "
                "move it away, or name another folder"
            )


class OutputFile:
    """One table as one file, renamed into place when it is whole.

    Parameters
    ----------
    path : path-like
        The file; its extension decides the format: ``.parquet``, ``.arrow`` (also ``.feather``,
        ``.ipc``), ``.csv``, ``.tsv``, or ``.jsonl`` (also ``.ndjson``).
    schema : pyarrow.Schema
        The table's columns.
    overwrite : bool
        Whether an existing file may be replaced, once the new one is whole.

    Raises
    ------
    InputError
        For an unknown extension; on entering, if the file exists or another run is writing it.
    """

    def __init__(
        self, path: str | os.PathLike[str], schema: pa.Schema, *, overwrite: bool = False
    ) -> None:
        self._place = _Place(path, overwrite)
        self._schema = schema
        try:
            self._kind = _WRITERS[self._place.path.suffix.lower()]
        except KeyError:
            raise InputError(
                f"{self._place.path}: its extension does not name a format; "
                f"use one of {', '.join(_WRITERS)}"
            ) from None

    def __enter__(self) -> Writer:
        self._place.enter(self._check)
        with self._place.guarded():
            self._writer = self._kind(self._place.staging, self._place.path, self._schema)
        return self._writer

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._place.abandon(self._writer)
            return
        with self._place.guarded(), _writing(self._place.path):
            self._writer.close()
            _sync(self._place.staging)
            self._place.publish()

    def _check(self, path: Path, overwrite: bool) -> None:
        if path.is_dir():
            raise InputError(f"{path}: is a folder; name a file for the output")
        if path.exists() and not overwrite:
            raise InputError(f"{path}: exists; name another file, or replace it (--overwrite)")


class _Place:
    """A final path, the hidden names beside it, and the lock that guards them."""

    def __init__(self, path: str | os.PathLike[str], overwrite: bool) -> None:
        self.path = Path(os.path.abspath(path))
        self._overwrite = overwrite
        self.staging = self._beside("staging")
        self._old = self._beside("old")
        self._lock = filelock.FileLock(self._beside("lock"), timeout=0)

    def _beside(self, what: str) -> Path:
        return self.path.with_name(f".{self.path.name}.{what}")

    def enter(self, check: Callable[[Path, bool], None]) -> None:
        """Take the lock, clear up after a run that was killed, and check what is there."""
        with _writing(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._lock.acquire()
            except filelock.Timeout:
                raise InputError(
                    f"{self.path}: locked by another run that is writing it; wait for that one, "
                    "or name another output"
                ) from None
        with self.guarded(), _writing(self.path):
            if self._old.exists() and not self.path.exists():
                os.rename(self._old, self.path)  # killed while one output replaced the other
            _remove(self._old)
            _remove(self.staging)
            check(self.path, self._overwrite)

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Clear up if anything goes wrong within."""
        try:
            yield
        except BaseException:
            self.abandon()
            raise

    def publish(self) -> None:
        """Put what was staged in its place, and let go."""
        replaced = self.path.is_dir() and os.listdir(self.path)
        if replaced:  # only files and empty folders can be replaced in one step
            os.rename(self.path, self._old)
        try:
            os.replace(self.staging, self.path)
        except BaseException:
            if replaced:
                os.rename(self._old, self.path)
            raise
        _sync(self.path.parent)
        _remove(self._old)
        self._lock.release()

    def abandon(self, *writers: Writer) -> None:
        """Leave nothing behind, and let go."""
        try:
            for writer in writers:
                with suppress(Exception):  # what went wrong before is what matters
                    writer.close()
        finally:
            _remove(self.staging)
            self._lock.release()


class _GroupWriter(Writer):
    """Formats of row groups, which end at the same rows however the batches are cut."""

    def _append(self, table: pa.Table) -> None:
        while table.num_rows:
            piece = table.slice(0, _PIECE_ROWS - self._held_rows % _PIECE_ROWS)
            table = table.slice(piece.num_rows)
            self._pieces.append(piece)
            self._held_rows += piece.num_rows
            self._held_bytes += piece.nbytes
            if self._held_rows % _PIECE_ROWS == 0 and (
                self._held_rows >= ROW_GROUP_ROWS or self._held_bytes >= ROW_GROUP_BYTES
            ):
                self._flush()

    def _open(self, staged: Path) -> None:
        self._pieces: list[pa.Table] = []
        self._held_rows = self._held_bytes = 0
        self._writer = self._start(staged)

    def _flush(self) -> None:
        # in one chunk, since pages, too, would end where chunks do
        self._group(pa.concat_tables(self._pieces).combine_chunks())
        self._pieces = []
        self._held_rows = self._held_bytes = 0

    def _end(self) -> None:
        try:
            if self._pieces:
                self._flush()
        finally:
            self._writer.close()

    def _start(self, staged: Path) -> Any:
        raise NotImplementedError

    def _group(self, table: pa.Table) -> None:
        raise NotImplementedError


class _ParquetWriter(_GroupWriter):
    def _start(self, staged: Path) -> pq.ParquetWriter:
        for field in self._schema:
            try:
                pq.ParquetWriter(pa.BufferOutputStream(), pa.schema([field])).close()
            except pa.ArrowException as error:
                raise InputError(
                    f"{self._final}: column {field.name!r} ({field.type}) cannot be written to "
                    f"Parquet ({one_line(error)}); leave it out"
                ) from None
        return pq.ParquetWriter(staged, self._schema, compression="zstd")

    def _group(self, table: pa.Table) -> None:
        self._writer.write_table(table, row_group_size=table.num_rows)


class _ArrowWriter(_GroupWriter):
    """Dictionaries become plain columns: a file has room for only one dictionary of each."""

    def _start(self, staged: Path) -> ipc.RecordBatchFileWriter:
        self._plain = _without_dictionaries(self._schema)
        return ipc.new_file(staged, self._plain)

    def _group(self, table: pa.Table) -> None:
        for batch in table.to_batches():
            self._writer.write_batch(_cast_batch(batch, self._plain))


class _CsvWriter(Writer):
    """Text in quotes, nulls as nothing at all."""

    delimiter = ","

    def _open(self, staged: Path) -> None:
        self._plain = _without_dictionaries(self._schema)
        for field in self._plain:
            if pa.types.is_nested(field.type) or field.type in (pa.binary(), pa.large_binary()):
                raise InputError(
                    f"{self._final}: column {field.name!r} ({field.type}) cannot be written as "
                    "text; leave it out, or write Parquet"
                )
        options = pc.WriteOptions(delimiter=self.delimiter)
        self._writer = pc.CSVWriter(staged, self._plain, write_options=options)

    def _append(self, table: pa.Table) -> None:
        for batch in table.to_batches():
            self._writer.write_batch(_cast_batch(batch, self._plain))

    def _end(self) -> None:
        self._writer.close()


class _TsvWriter(_CsvWriter):
    delimiter = "\t"


class _JsonWriter(Writer):
    """One object per line; dates and decimals as text, NaN and infinities as null."""

    def _open(self, staged: Path) -> None:
        self._stream = staged.open("w", encoding="utf-8", newline="\n")

    def _append(self, table: pa.Table) -> None:
        for batch in table.to_batches(max_chunksize=_PIECE_ROWS):
            for row in batch.to_pylist():
                self._stream.write(json.dumps(_finite(row), ensure_ascii=False, default=str) + "\n")

    def _end(self) -> None:
        self._stream.close()


_WRITERS: dict[str, type[Writer]] = {
    ".parquet": _ParquetWriter,
    ".arrow": _ArrowWriter,
    ".feather": _ArrowWriter,
    ".ipc": _ArrowWriter,
    ".csv": _CsvWriter,
    ".tsv": _TsvWriter,
    ".jsonl": _JsonWriter,
    ".ndjson": _JsonWriter,
}


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn what Arrow and the system raise over an output into one line about it."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: cannot be written: {one_line(error)}") from error


def _without_dictionaries(schema: pa.Schema) -> pa.Schema:
    fields = []
    for field in schema:
        if is_text(field.type):
            field = field.with_type(pa.large_string())
        elif pa.types.is_dictionary(field.type):
            field = field.with_type(field.type.value_type)
        fields.append(field)
    return pa.schema(fields, schema.metadata)


def _cast_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    arrays = [cast(a, f) for a, f in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_finite(v) for v in value]
    if isinstance(value, bytes):
        raise pa.ArrowTypeError("bytes have no form in JSON; write Parquet")
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
