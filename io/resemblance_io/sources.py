"""Anything to a stream of record batches, in input order and bounded memory."""

from __future__ import annotations

import collections
import copy
import difflib
import functools
import threading
from collections.abc import Generator, Iterable, Sequence
from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.fs as pafs

from resemblance_io.columns import cast, is_text, may_be_text, validate
from resemblance_io.discovery import File, Spool, find
from resemblance_io.errors import InputError, one_line
from resemblance_io.readers import BadRow, Options, Reader, TableReader, open_reader

__all__ = ["BadRow", "Batch", "Scan", "scan"]


class Batch(NamedTuple):
    """Some consecutive rows of the input.

    Attributes
    ----------
    data : pyarrow.RecordBatch
        The rows, in the schema of the scan.
    file : str
        The file they come from, as the user named it.
    first_row : int
        Position of the first of them in the whole input.
    file_row : int
        Position of the first of them in the file.
    """

    data: pa.RecordBatch
    file: str
    first_row: int
    file_row: int


def scan(
    source: Any,
    columns: Sequence[str] | None = None,
    *,
    text: Sequence[str] = (),
    format: str | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    on_bad_rows: Literal["error", "skip"] = "error",
    filesystem: Any = None,
    memory: int = 1 << 26,
) -> Scan:
    """Read any source as one stream of record batches.

    Parameters
    ----------
    source : path, list of paths, or table
        A file, a list of files, a glob, a folder (read recursively, in order of paths), a URI, or
        ``"-"`` for standard input; Parquet, Arrow IPC (file or stream, whatever the name), CSV,
        TSV or JSON Lines, and text compressed by extension (``.gz``, ``.zst``, ``.bz2``, ``.xz``,
        ``.lz4``). Or any object with ``__arrow_c_stream__``: a pandas or polars frame, a DuckDB
        relation, a ``pyarrow`` table or reader.
    columns : sequence of str, optional
        The columns to read, which every file must have. All by default: those that only some
        files have are null in the others.
    text : sequence of str
        Columns that must hold text; every file must have them.
    format : {"parquet", "arrow", "csv", "tsv", "jsonl"}, optional
        The format of all files. By default the first bytes tell, then the extension.
    delimiter : str, optional
        Of CSV: a comma by default, a tab for TSV.
    encoding : str
        Of CSV and JSON Lines.
    on_bad_rows : {"error", "skip"}
        What to do with CSV records of the wrong width and lines that are not JSON objects with
        text where text is needed. Skipped ones are listed in `Scan.skipped`.
    filesystem : pyarrow.fs.FileSystem or fsspec file system, optional
        Where the paths are.
    memory : int
        About how many bytes of input to hold at a time.

    Returns
    -------
    Scan
        Files are looked for now and read as the scan is iterated over. What can be read only once
        (standard input, a reader, a query) is copied to a temporary file first, so that every
        scan can be iterated over again, with the same rows in the same order.

    Raises
    ------
    InputError
        If there is nothing to read, a column is missing or not text, or files disagree. Also
        while iterating, for what is wrong further on in a file.

    Notes
    -----
    Types that differ between files are reconciled: any two kinds of text become ``large_string``,
    nulls take the other type, numbers the wider one, and numbers and text become text.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from resemblance_io.sources import scan
    >>> [b.data.num_rows for b in scan(pa.table({"text": ["a", "b"]}), ["text"])]
    [2]
    """
    if on_bad_rows not in ("error", "skip"):
        raise InputError(f"on_bad_rows is {on_bad_rows!r}; use 'error' or 'skip'")
    if isinstance(columns, str) or isinstance(text, str):
        raise TypeError("columns and text are lists of names, not one string")
    options = Options(
        text=tuple(text),
        format=format,
        delimiter=delimiter,
        encoding=encoding,
        skip_bad_rows=on_bad_rows == "skip",
        batch_bytes=max(memory // 8, 1 << 12),
    )
    return Scan(source, columns, options, filesystem, memory // 2)


class Scan:
    """A source, ready to be read; made by :func:`scan`.

    Attributes
    ----------
    files : list of str
        The files, in reading order.
    ignored : list of str
        Files of the folders named that are not data by their extension.
    """

    def __init__(
        self,
        source: Any,
        columns: Sequence[str] | None,
        options: Options,
        filesystem: Any,
        read_ahead: int,
    ) -> None:
        self._columns = None if columns is None else _with(columns, options.text)
        self._options = options
        self._read_ahead = read_ahead
        self._spool = Spool()
        self.ignored: list[str] = []
        self._inputs: Sequence[File | tuple[str, Reader]]
        if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__"):
            self._inputs = _table(source, self._spool)
            self.files = [f.name if isinstance(f, File) else f[0] for f in self._inputs]
        else:
            found = find(source, self._spool, filesystem)
            self._inputs, self.ignored = found.files, found.ignored
            self.files = [file.name for file in found.files]

    def select(self, columns: Sequence[str]) -> Scan:
        """The same source with other columns; what was copied or listed is not again.

        Parameters
        ----------
        columns : sequence of str
            As for :func:`scan`.

        Returns
        -------
        Scan
            `skipped` is shared with this one: it tells of whichever was iterated last.
        """
        other = copy.copy(self)
        other._columns = _with(columns, self._options.text)
        for cached in ("schema", "_schemas"):
            vars(other).pop(cached, None)
        return other

    @functools.cached_property
    def schema(self) -> pa.Schema:
        """The columns of every batch; looked up in the files when first asked for."""
        schemas = list(zip(self.files, self._schemas, strict=True))
        required = self._options.text if self._columns is None else self._columns
        for file, schema in schemas:
            for name in required:
                _require(name, file, schema)
        if self._columns is None:
            for file, schema in schemas:
                _refuse_repeated(file, schema)
        names = self._columns or list(dict.fromkeys(n for _, s in schemas for n in s.names))
        fields = []
        for name in names:
            found = [(file, s.field(name)) for file, s in schemas if name in s.names]
            field = _reconciled(name, found, text=name in self._options.text)
            fields.append(field.with_nullable(field.nullable or len(found) < len(schemas)))
        first = schemas[0][1].metadata
        # what it says of the columns (pandas, Hugging Face) holds only where these are the same
        same = self._columns is None and all(s.metadata == first for _, s in schemas)
        return pa.schema(fields, first if same else None)

    @property
    def num_rows(self) -> int | None:
        """Rows in all, where the files say so without being read."""
        _ = self.schema
        rows = [reader.num_rows for _, reader in self._readers]
        return None if None in rows else sum(n for n in rows if n is not None)

    @property
    def skipped(self) -> list[BadRow]:
        """The rows left out so far by the latest iteration."""
        return self._options.skipped

    def __iter__(self) -> Generator[Batch]:
        self._options.skipped.clear()
        return _ahead(self._batches(), self._read_ahead)

    @functools.cached_property
    def _readers(self) -> list[tuple[str, Reader]]:
        return [
            (f.name, open_reader(f, self._options)) if isinstance(f, File) else f
            for f in self._inputs
        ]

    @functools.cached_property
    def _schemas(self) -> list[pa.Schema]:
        return [reader.schema(self._columns) for _, reader in self._readers]

    def _batches(self) -> Generator[Batch]:
        first_row = 0
        names = self.schema.names
        for (file, reader), own in zip(self._readers, self._schemas, strict=True):
            wanted = pa.schema([own.field(n) for n in names if n in own.names])
            file_row = 0
            for batch in reader.batches(wanted):
                data = self._conformed(batch, file, file_row, reader.hint)
                yield Batch(data, file, first_row, file_row)
                first_row += data.num_rows
                file_row += data.num_rows

    def _conformed(
        self, batch: pa.RecordBatch, file: str, file_row: int, hint: str
    ) -> pa.RecordBatch:
        """A batch of one file, checked, in the schema of the scan."""
        arrays = []
        for field in self.schema:
            if field.name not in batch.schema.names:
                arrays.append(pa.nulls(batch.num_rows, field.type))
                continue
            array = batch.column(field.name)
            place = {"name": field.name, "where": file, "first_row": file_row, "hint": hint}
            validate(array, **place)
            if array.type != field.type:
                try:
                    array = cast(array, field)
                except pa.ArrowException as error:
                    raise InputError(
                        f"{file}: column {field.name!r}, rows from {file_row}: cannot be made "
                        f"{field.type} as in other files: {one_line(error)}"
                    ) from error
                validate(array, **place)
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _with(columns: Sequence[str], text: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*columns, *text]))


def _table(source: Any, spool: Spool) -> Sequence[File | tuple[str, Reader]]:
    name = f"<{type(source).__name__}>"
    reader = TableReader(name, source)
    library = type(source).__module__.split(".")[0]
    if library in ("pandas", "polars") or isinstance(source, pa.Table | pa.RecordBatch):
        return [(name, reader)]
    # a reader is used up by reading, and a query need not give its rows in the same order again
    path = spool.new_path()
    reader.copy(path)
    return [File(name, path, pafs.LocalFileSystem())]


def _require(name: str, file: str, schema: pa.Schema) -> None:
    places = schema.get_all_field_indices(name)
    if len(places) == 1:
        return
    if places:
        raise InputError(
            f"{file}: column {name!r} occurs {len(places)} times (columns {_listed(places)}); "
            "rename all but one"
        )
    plain = {n.strip().casefold(): n for n in reversed(schema.names)}
    near = [plain.get(name.strip().casefold()), *difflib.get_close_matches(name, schema.names, 1)]
    hint = next((f"; did you mean {n!r}?" for n in near if n), ".")
    if len(schema.names) == 1:
        others = [c for c in ";\t|,#%:" if c in schema.names[0]]
        hint = f"; is the delimiter {others[0]!r} (--delimiter)?" if others else hint
    there = _listed(map(repr, schema.names))
    raise InputError(f"{file}: no column {name!r}{hint} It has {there}; name one of these")


def _refuse_repeated(file: str, schema: pa.Schema) -> None:
    repeated = [n for n, k in collections.Counter(schema.names).items() if k > 1]
    if repeated:
        places = schema.get_all_field_indices(repeated[0])
        raise InputError(
            f"{file}: column {repeated[0]!r} occurs {len(places)} times (columns "
            f"{_listed(places)}) and cannot be carried along; rename all but one, or name the "
            "columns to read"
        )


def _listed(names: Iterable[object]) -> str:
    texts = [str(n) for n in names]
    more = f" and {len(texts) - 20} more" if len(texts) > 20 else ""
    return ", ".join(texts[:20]) + more


def _reconciled(name: str, found: list[tuple[str, pa.Field]], *, text: bool) -> pa.Field:
    """The field that holds a column of all files."""
    field = found[0][1].with_nullable(any(f.nullable for _, f in found))
    files = {f.type: file for file, f in reversed(found)}
    kinds = list(dict.fromkeys(f.type for _, f in found))
    for kind in kinds:
        try:
            pa.nulls(0, kind)
        except KeyError:  # Arrow knows more types (old intervals) than its Python layer
            raise InputError(
                f"{files[kind]}: column {name!r} is {kind}, which pyarrow cannot hold; "
                "name the columns to read without it"
            ) from None
    if text:
        for kind in kinds:
            if not may_be_text(kind):
                raise InputError(
                    f"{files[kind]}: column {name!r} is {kind}, not text; "
                    "choose a column of strings, or cast it to string first"
                )
        simple = len(kinds) == 1 and not pa.types.is_null(kinds[0])
        return field if simple else pa.field(name, pa.large_string(), field.nullable)
    kinds = [k for k in kinds if not pa.types.is_null(k)] or kinds
    if len(kinds) == 1:
        return next(f for _, f in found if f.type == kinds[0]).with_nullable(field.nullable)
    if any(map(is_text, kinds)) and all(is_text(k) or pa.types.is_primitive(k) for k in kinds):
        return pa.field(name, pa.large_string(), field.nullable)
    try:
        schemas = [pa.schema([(name, k)]) for k in kinds]
        kind = pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except pa.ArrowException:
        raise InputError(
            f"{files[kinds[1]]}: column {name!r} is {kinds[1]}, but {kinds[0]} in "
            f"{files[kinds[0]]}; name the columns to read, or write them with one type"
        ) from None
    return pa.field(name, kind, field.nullable)


def _ahead(batches: Generator[Batch], limit: int) -> Generator[Batch]:
    """Read ahead on one thread, holding about ``limit`` bytes at most."""
    state = threading.Condition()
    ready: collections.deque[tuple[Batch, int]] = collections.deque()
    held = 0
    finished = stopped = False
    failure: BaseException | None = None

    def work() -> None:
        nonlocal held, finished, failure
        try:
            for batch in batches:
                size = batch.data.get_total_buffer_size()
                with state:
                    while held and held + size > limit and not stopped:
                        state.wait()
                    if stopped:
                        break
                    ready.append((batch, size))
                    held += size
                    state.notify_all()
        except BaseException as error:
            failure = error
        finally:
            batches.close()
            with state:
                finished = True
                state.notify_all()

    thread = threading.Thread(target=work, name="resemblance-read", daemon=True)
    thread.start()
    try:
        while True:
            with state:
                while not ready and not finished:
                    state.wait()
                if not ready:
                    break
                batch, size = ready.popleft()
                held -= size
                state.notify_all()
            yield batch
            del batch
    finally:
        with state:
            stopped = True
            state.notify_all()
        # a read that hangs must not keep the caller from stopping
        thread.join(timeout=1)
    if failure is not None:
        raise failure
