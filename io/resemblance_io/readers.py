"""One reader per file format: its schema, then its rows as record batches in file order.

Text formats are read as text: a CSV column is never turned into numbers, and a JSON column only
where every row agrees. Errors of Arrow and of the standard library leave here as `InputError`.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import lzma
import re
import sys
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.fs as pafs
import pyarrow.ipc as ipc
import pyarrow.json as pj
import pyarrow.parquet as pq

from resemblance_io.columns import is_text
from resemblance_io.discovery import FORMATS, File
from resemblance_io.errors import InputError, one_line

BATCH_ROWS = 1 << 16
"""Most rows in a batch."""

MAX_RECORD = 1 << 30
"""Most bytes of one CSV record or JSON line."""

_MAGIC = (
    (b"PAR1", "parquet"),
    (b"PARE", "parquet"),
    (b"ARROW1", "arrow"),
    (b"\xff\xff\xff\xff", "arrow"),
)
_COMPRESSED_MAGIC = (
    (b"\x1f\x8b", "gzip", ".gz"),
    (b"\x28\xb5\x2f\xfd", "zstd", ".zst"),
    (b"BZh", "bzip2", ".bz2"),
    (b"\xfd7zXZ\0", "xz", ".xz"),
    (b"\x04\x22\x4d\x18", "lz4", ".lz4"),
)
_ENCODING_HINT = "name the file's encoding (--encoding latin-1, for example)"
_UTF8 = ("utf-8", "utf-8-sig")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
"""Half of a pair in JSON, or a stray one."""


class BadRow(NamedTuple):
    """A row left out by ``on_bad_rows="skip"``, and why."""

    file: str
    line: int
    reason: str


@dataclass
class Options:
    """How files are to be read; see :func:`resemblance_io.sources.scan`."""

    text: tuple[str, ...] = ()
    format: str | None = None
    delimiter: str | None = None
    encoding: str = "utf-8"
    skip_bad_rows: bool = False
    batch_bytes: int = 1 << 23
    skipped: list[BadRow] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.format is not None and self.format not in FORMATS:
            raise InputError(f"format {self.format!r} is unknown; use one of {', '.join(FORMATS)}")
        if self.delimiter is not None and (
            len(self.delimiter) != 1 or not self.delimiter.isascii() or self.delimiter in '"\r\n'
        ):
            raise InputError(
                f"delimiter {self.delimiter!r} cannot be used; give one ASCII character"
            )
        try:
            self.encoding = codecs.lookup(self.encoding).name
        except LookupError:
            raise InputError(
                f"encoding {self.encoding!r} is unknown; try utf-8, latin-1, cp1252 or utf-16"
            ) from None


class Reader(Protocol):
    """What a format offers."""

    hint: ClassVar[str]
    """What to do about text that is not UTF-8."""

    @property
    def num_rows(self) -> int | None:
        """Rows of the file where it says so itself."""

    def schema(self, names: Sequence[str] | None) -> pa.Schema:
        """The file's columns; a format without a schema may look for those named only."""

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The columns of ``schema``, which the file has, in any of their types."""


def open_reader(file: File, options: Options) -> Reader:
    """Choose the reader of a file by its first bytes, else by its extension."""
    with _reading(file.name, "a file"):
        head = _head(file)
    kind = options.format or next((k for magic, k in _MAGIC if head.startswith(magic)), None)
    if kind is None:
        if head.startswith(b"FEA1"):
            raise InputError(
                f"{file.name}: Feather version 1 is not supported; write it as Parquet or Arrow"
            )
        for magic, name, extension in _COMPRESSED_MAGIC:
            if head.startswith(magic) and file.compression is None:
                raise InputError(
                    f"{file.name}: is compressed with {name}; let its name end in {extension}"
                )
        kind = file.extension_format
    if kind is None and head.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"{"):
        kind = "jsonl"
    if kind is None:
        raise InputError(
            f"{file.name}: neither its name nor its first bytes tell its format; "
            f"pass format (--format), one of {', '.join(FORMATS)}"
        )
    if kind == "parquet":
        return ParquetReader(file, options)
    if kind == "arrow":
        return ArrowReader(file, options, random_access=head.startswith(b"ARROW1"))
    if kind == "jsonl":
        return JsonReader(file, options)
    return CsvReader(file, options, options.delimiter or ("\t" if kind == "tsv" else ","))


class ParquetReader:
    """Parquet, decoded page by page, so that a row group need not fit in memory."""

    hint: ClassVar[str] = "write the file again as UTF-8"

    def __init__(self, file: File, options: Options) -> None:
        self._file = file
        self._options = options
        self.num_rows: int | None = None
        if file.compression:
            raise InputError(f"{file.name}: compressed Parquet cannot be read; decompress it first")

    def schema(self, names: Sequence[str] | None) -> pa.Schema:
        """Columns by the footer."""
        with _reading(self._file.name, "Parquet"), self._open() as parquet:
            self.num_rows = parquet.metadata.num_rows
            return parquet.schema_arrow

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Rows in file order."""
        with _reading(self._file.name, "Parquet"), self._open() as parquet:
            rows = _rows_per_batch(parquet.metadata, set(schema.names), self._options.batch_bytes)
            for batch in parquet.iter_batches(rows, columns=schema.names):
                # a name with a dot in it also brings in the nested column it spells
                yield batch.select(schema.names)

    @contextmanager
    def _open(self) -> Iterator[pq.ParquetFile]:
        with self._file.filesystem.open_input_file(self._file.path) as stream:
            # pre-buffering would hold whole row groups
            yield pq.ParquetFile(stream, pre_buffer=False, buffer_size=1 << 20)


class ArrowReader:
    """Arrow IPC, as a file or as a stream, whatever its name says."""

    hint: ClassVar[str] = "write the file again as UTF-8"

    def __init__(self, file: File, options: Options, *, random_access: bool) -> None:
        self._file = file
        self._random_access = random_access
        self.num_rows: int | None = None
        if random_access and file.compression:
            raise InputError(
                f"{file.name}: a compressed Arrow file cannot be read; decompress it first, or "
                "write it as a stream"
            )

    def schema(self, names: Sequence[str] | None) -> pa.Schema:
        """Columns by the schema message."""
        with _reading(self._file.name, "Arrow"), self._open(None) as reader:
            return reader.schema

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Rows in file order; a large batch in slices."""
        with _reading(self._file.name, "Arrow"):
            with self._open(None) as reader:
                places = [reader.schema.get_field_index(name) for name in schema.names]
            with self._open(places) as reader:
                if self._random_access:
                    whole = (reader.get_batch(i) for i in range(reader.num_record_batches))
                else:
                    whole = iter(reader)
                for batch in whole:
                    yield from _slices(batch.select(schema.names))

    @contextmanager
    def _open(self, places: list[int] | None) -> Iterator[Any]:
        options = ipc.IpcReadOptions(included_fields=places)
        if not self._random_access:
            with _stream(self._file) as stream, ipc.open_stream(stream, options=options) as reader:
                yield reader
            return
        with _random_access(self._file) as stream:
            stream.seek(-6, 2)
            if stream.read(6) != b"ARROW1":
                raise InputError(f"{self._file.name}: truncated Arrow file; write it again")
            with ipc.open_file(stream, options=options) as reader:
                yield reader


class TableReader:
    """A table in memory that gives its rows as an Arrow stream each time it is asked."""

    hint: ClassVar[str] = "encode the text as UTF-8"

    def __init__(self, name: str, table: Any) -> None:
        self._name = name
        self._table = table
        self.num_rows: int | None = None

    def schema(self, names: Sequence[str] | None) -> pa.Schema:
        """Columns by the stream's schema."""
        with _reading(self._name, "a table"), self.open() as stream:
            return stream.schema

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Rows in order; a large batch in slices."""
        with _reading(self._name, "a table"), self.open() as stream:
            for batch in stream:
                yield from _slices(batch.select(schema.names))

    def copy(self, path: str) -> None:
        """Write what can be read only once to an Arrow stream."""
        with (
            _reading(self._name, "a table"),
            self.open() as stream,
            ipc.new_stream(path, stream.schema) as copy,
        ):
            for batch in stream:
                copy.write_batch(batch)

    def open(self) -> pa.RecordBatchReader:
        """The stream, from its beginning."""
        if not hasattr(self._table, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_batches(
                (batch := pa.record_batch(self._table)).schema, [batch]
            )
        try:
            return pa.RecordBatchReader.from_stream(self._table)
        except Exception as error:  # whatever the library that owns it raises
            if "non-struct" in str(error):
                raise InputError(f"{self._name}: is one column; pass a table that has it") from None
            raise InputError(f"{self._name}: cannot be read: {one_line(error)}") from error


class CsvReader:
    """CSV and TSV, every column as text.

    Arrow parses blocks of whole records, cut here: its own block reader loses a byte where a
    quoted CRLF falls on a block's edge, and refuses records larger than a block.
    """

    hint: ClassVar[str] = _ENCODING_HINT

    def __init__(self, file: File, options: Options, delimiter: str) -> None:
        self._file = file
        self._options = options
        self._delimiter = delimiter
        self.num_rows: int | None = None
        # a quote opens a field only at its start; inside, two quotes stand for one
        self._quoted = re.compile(
            rb'(?:\A|(?<=[\r\n%s]))"(?:[^"]++|"")*+(?P<closed>")?' % re.escape(delimiter).encode()
        )
        self._header: list[str] = []

    def schema(self, names: Sequence[str] | None) -> pa.Schema:
        """Columns by the first record."""
        with _reading(self._file.name, "CSV"), closing(self._records(1 << 16)) as records:
            first = next(records, b"").decode(errors="surrogateescape")
            with _any_field_size():
                rows = csv.reader(_text_lines(first), delimiter=self._delimiter)
                header = next(filter(None, rows), [])
            self._header = [name.encode(errors="surrogateescape").decode() for name in header]
        if not self._header:
            raise InputError(
                f"{self._file.name}: an empty CSV file; its first line must name the columns"
            )
        return pa.schema([(name, pa.large_string()) for name in self._header])

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Rows in file order; lines with nothing on them are not rows."""
        if not self._header:
            self.schema(None)
        # by position: names may be repeated among the columns that are not asked for
        keys = [str(self._header.index(name)) for name in schema.names]
        line = 1
        size = self._options.batch_bytes
        with _reading(self._file.name, "CSV"), closing(self._records(size)) as records:
            for number, block in enumerate(records):
                bad: dict[int, int] = {}
                table = self._parse(block, keys, bad)
                if bad:
                    self._report(block, bad, line)
                rows = table.slice(1) if number == 0 else table
                yield from rows.rename_columns(schema.names).to_batches(max_chunksize=BATCH_ROWS)
                line += _line_count(block)

    def _parse(self, block: bytes, keys: list[str], bad: dict[int, int]) -> pa.Table:
        """Parse whole records; ``bad`` receives record numbers and their counts of fields."""

        def leave_out(row: pc.InvalidRow) -> str:
            bad[row.number] = row.actual_columns
            return "skip"

        return pc.read_csv(
            pa.BufferReader(block),
            pc.ReadOptions(
                use_threads=False,  # record numbers are known only without
                block_size=len(block) + 1,
                column_names=[str(i) for i in range(len(self._header))],
            ),
            pc.ParseOptions(
                delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=leave_out
            ),
            pc.ConvertOptions(
                # whether it is UTF-8 is checked later, where the row can be named
                check_utf8=False,
                column_types=dict.fromkeys(keys, pa.large_string()),
                include_columns=keys,
            ),
        )

    def _report(self, block: bytes, bad: dict[int, int], first_line: int) -> None:
        """Raise for the first bad record, or note them all, by line."""
        rows = csv.reader(_text_lines(block.decode(errors="replace")), delimiter=self._delimiter)
        lines: dict[int, int] = {}
        before = number = 0
        with _any_field_size():
            for row in rows:
                if row:  # Arrow does not count empty lines as records
                    number += 1
                    lines[number] = first_line + before
                before = rows.line_num
        for number in sorted(bad):
            reason = f"expected {len(self._header)} fields, got {bad[number]}"
            _bad_row(self._file, self._options, lines[number], reason)

    def _records(self, size: int) -> Generator[bytes]:
        """The file in blocks of whole records, of ``size`` bytes or one record."""
        line = 1
        rest = b""
        with _utf8(self._file, self._options) as stream:
            # a record larger than a block doubles what is read, so that the work stays linear
            while more := stream.read(max(size, len(rest))):
                rest += more
                end = _end_of_records(rest, self._quoted)
                if end:
                    yield rest[:end]
                    line += _line_count(rest[:end])
                    rest = rest[end:]
                elif len(rest) > MAX_RECORD:
                    raise InputError(
                        f"{self._file.name}: line {line}: a record of more than "
                        f"{MAX_RECORD:,} bytes; is a quote not closed?"
                    )
        if rest.strip(b"\r\n"):
            for span in self._quoted.finditer(rest):
                if not span["closed"]:
                    line += _line_count(rest[: span.start()])
                    raise InputError(
                        f"{self._file.name}: line {line}: a quote is opened and never closed"
                    )
            yield rest + b"\n"


class JsonReader:
    """JSON Lines: one object per line; keys that a row lacks are nulls.

    A column whose rows disagree about its type becomes text, its values as JSON; except that the
    columns the caller needs as text must hold strings.

    Arrow parses each block of lines; where it meets anything out of the ordinary, the standard
    library does, which knows what is wrong and on which line.
    """

    hint: ClassVar[str] = _ENCODING_HINT

    def __init__(self, file: File, options: Options) -> None:
        self._file = file
        self._options = options
        self.num_rows: int | None = None

    def schema(self, names: Sequence[str] | None) -> pa.Schema:
        """Columns by looking at all rows; at only as many as needed to find those named."""
        wanted = None if names is None else set(names)
        text = set(self._options.text)
        types: dict[str, pa.DataType] = {}
        # rows to skip are noted when they are read, not twice
        options = Options(skip_bad_rows=True) if self._options.skip_bad_rows else self._options
        for number, block in self._blocks():
            kinds = self._arrow_types(block)
            if kinds is None:
                rows = self._rows(number, block, options)
                keys = dict.fromkeys(key for row in rows for key in row)
                kinds = {key: _json_type([row.get(key) for row in rows]) for key in keys}
            for name, kind in kinds.items():
                types[name] = pa.large_string() if name in text else _common(types.get(name), kind)
            if wanted is not None and wanted <= text & types.keys():
                break
        if not types:  # a file without rows agrees with any other
            types = dict.fromkeys([*(names or ()), *text], pa.null())
        return pa.schema(list(types.items()))

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Rows in file order."""
        checked = [
            pa.field(name, pa.large_string())
            for name in self._options.text
            if name not in schema.names
        ]
        for number, block in self._blocks():
            with _reading(self._file.name, "JSON Lines"):
                table = _arrow_json(block, pa.schema([*schema, *checked]))
                if table is None:
                    table = self._table(self._rows(number, block, self._options), schema)
            yield from table.select(schema.names).to_batches(max_chunksize=BATCH_ROWS)

    def _arrow_types(self, block: bytes) -> dict[str, pa.DataType] | None:
        """The types of a block, unless the standard library would see others."""
        table = _arrow_json(block, None)
        if table is None:
            return None
        # what looks like a time is text in JSON
        kinds = {
            name: pa.large_string() if pa.types.is_timestamp(kind) or is_text(kind) else kind
            for name, kind in zip(table.column_names, table.schema.types, strict=True)
        }
        plain = (pa.large_string(), pa.int64(), pa.bool_(), pa.null())
        if any(kind not in plain for kind in kinds.values()):
            return None
        if any(
            kinds.get(name, pa.null()) not in (plain[0], pa.null()) for name in self._options.text
        ):
            return None
        return kinds

    def _table(self, rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
        columns = []
        for name, kind in zip(schema.names, schema.types, strict=True):
            values = [row.get(name) for row in rows]
            if is_text(kind) and name not in self._options.text:
                values = [_json_text(v) for v in values]
            elif pa.types.is_float64(kind):
                values = [None if v is None else float(v) for v in values]
            columns.append(pa.array(values, kind))
        return pa.Table.from_arrays(columns, schema=schema)

    def _rows(self, number: int, block: bytes, options: Options) -> list[dict[str, Any]]:
        """The objects of a block whose first line has this number."""
        with _reading(self._file.name, "JSON Lines"):
            rows = (
                self._row(n, line, options)
                for n, line in enumerate(block.split(b"\n"), number)
                if line.strip()
            )
            return [row for row in rows if row is not None]

    def _row(self, number: int, line: bytes, options: Options) -> dict[str, Any] | None:
        """The object on a line, or None if it is bad and bad rows are skipped."""
        if number == 1 and line.lstrip().startswith(b"["):
            raise InputError(
                f"{self._file.name}: is a JSON array; write one object per line (jq -c '.[]')"
            )
        try:
            row = json.loads(line.decode())
            if _SURROGATE.search(line):
                json.dumps(row, ensure_ascii=False).encode()
        except UnicodeDecodeError as error:
            reason = f"not valid UTF-8 at byte {error.start} of the line; {_ENCODING_HINT}"
        except UnicodeEncodeError:
            reason = "a lone surrogate (\\ud800 to \\udfff), which UTF-8 cannot express"
        except (ValueError, RecursionError) as error:
            reason = f"not JSON: {one_line(error)}; JSON Lines has one object per line"
        else:
            if not isinstance(row, dict):
                reason = f"{_json_kind(row)}, where an object was expected"
            else:
                for name in self._options.text:
                    value = row.get(name)
                    if value is not None and not isinstance(value, str):
                        reason = f"column {name!r} is {_json_kind(value)}, not text"
                        break
                else:
                    return row
        _bad_row(self._file, options, number, reason)
        return None

    def _blocks(self) -> Iterator[tuple[int, bytes]]:
        """The file in blocks of whole lines, each with the number of its first line."""
        number = 1
        rest = b""
        with _reading(self._file.name, "JSON Lines"), _utf8(self._file, self._options) as stream:
            # a line longer than a block doubles what is read, so that the work stays linear
            while more := stream.read(max(self._options.batch_bytes, len(rest))):
                rest += more
                end = rest.rfind(b"\n") + 1
                if end:
                    yield number, rest[:end]
                    number += rest.count(b"\n", 0, end)
                    rest = rest[end:]
                if len(rest) > MAX_RECORD:
                    raise InputError(
                        f"{self._file.name}: line {number} has more than {MAX_RECORD:,} bytes; "
                        "JSON Lines has one object per line"
                    )
            if rest:
                yield number, rest


@contextmanager
def _reading(name: str, what: str) -> Iterator[None]:
    """Turn what Arrow and the standard library raise over a file into one line about it."""
    try:
        yield
    except InputError:
        raise
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name}: not valid {error.encoding} (0x{error.object[error.start]:02x}); "
            f"{_ENCODING_HINT}"
        ) from error
    except (pa.ArrowException, OSError, EOFError, ValueError, lzma.LZMAError, zlib.error) as error:
        raise InputError(f"{name}: cannot be read as {what}: {one_line(error)}") from error


def _bad_row(file: File, options: Options, line: int, reason: str) -> None:
    if not options.skip_bad_rows:
        hint = "or skip such rows (--on-bad-rows skip)"
        raise InputError(f"{file.name}: line {line}: {reason}; {hint}")
    options.skipped.append(BadRow(file.name, line, reason))


@contextmanager
def _stream(file: File) -> Iterator[Any]:
    """The bytes of a file, decompressed."""
    codec = file.compression
    native = None if codec == "xz" else codec
    with file.filesystem.open_input_stream(file.path, compression=native) as stream:
        if codec == "xz":
            with lzma.open(stream) as plain:
                yield plain
        else:
            yield stream


def _random_access(file: File) -> Any:
    if isinstance(file.filesystem, pafs.LocalFileSystem):
        # only the pages in use take memory, even where one batch is the whole file
        return pa.memory_map(file.path)
    return file.filesystem.open_input_file(file.path)


@contextmanager
def _utf8(file: File, options: Options) -> Iterator[Any]:
    """The text of a file as a stream of UTF-8 without a byte order mark."""
    with _stream(file) as raw:
        stream = raw if options.encoding in _UTF8 else _Recoded(raw, options.encoding)
        head = stream.read(3)
        if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            raise InputError(
                f"{file.name}: is UTF-16, not UTF-8; name its encoding (--encoding utf-16)"
            )
        yield _Pushed(head.removeprefix(codecs.BOM_UTF8), stream)


class _Recoded:
    """A stream of bytes in some encoding, read as UTF-8."""

    def __init__(self, stream: Any, encoding: str) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(encoding)()

    def read(self, size: int) -> bytes:
        """About ``size`` bytes; none only at the end."""
        while True:
            block = self._stream.read(size)
            text = self._decoder.decode(block, final=not block)
            if text or not block:
                return text.encode()


class _Pushed:
    """A stream whose first bytes have been read already."""

    def __init__(self, head: bytes, stream: Any) -> None:
        self._head = head
        self._stream = stream

    def read(self, size: int) -> bytes:
        """About ``size`` bytes; none only at the end."""
        head, self._head = self._head, b""
        block: bytes = head + self._stream.read(size)
        return block


def _head(file: File) -> bytes:
    with _stream(file) as stream:
        head: bytes = stream.read(64)
        return head


def _rows_per_batch(metadata: pq.FileMetaData, names: set[str], limit: int) -> int:
    """Rows of the file's widest row group that fill a batch."""
    widest = 1.0
    for g in range(metadata.num_row_groups):
        group = metadata.row_group(g)
        size = 0
        for c in range(group.num_columns):
            column = group.column(c)
            if column.path_in_schema.split(".")[0] in names:
                size += max(column.total_uncompressed_size, 0)
        widest = max(widest, size / max(group.num_rows, 1))
    return max(1, min(BATCH_ROWS, int(limit / widest)))


def _slices(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for at in range(0, batch.num_rows, BATCH_ROWS):
        yield batch.slice(at, BATCH_ROWS)


def _end_of_records(data: bytes, quoted: re.Pattern[bytes]) -> int:
    """Where the last whole record ends; 0 if there is none."""
    end = len(data)
    spans = [m.span() for m in quoted.finditer(data)] if b'"' in data else []
    if spans and spans[-1][1] == end:
        # not closed, or closed by what may be the first of two quotes
        end = spans.pop()[0]
    for start, stop in [*reversed(spans), (0, 0)]:
        # a CR at the very end may be half of a CRLF
        at = max(data.rfind(b"\n", stop, end), data.rfind(b"\r", stop, min(end, len(data) - 1)))
        if at >= 0:
            return at + 1
        end = start
    return 0


def _line_count(data: bytes) -> int:
    feeds = data.count(b"\n")
    return feeds + data.count(b"\r") - data.count(b"\r\n")


def _text_lines(text: str) -> io.StringIO:
    return io.StringIO(text, newline="")


@contextmanager
def _any_field_size() -> Iterator[None]:
    limit = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


def _arrow_json(block: bytes, schema: pa.Schema | None) -> pa.Table | None:
    """Whole lines as Arrow reads them, or None if it cannot or may read them otherwise."""
    if schema is not None and any(map(_is_list_of_nulls, schema.types)):
        return None  # Arrow 26 makes an invalid array of these
    end = b"" if block.endswith(b"\n") else b"\n"
    unexpected = "infer" if schema is None else "ignore"
    try:
        if not block.isascii():
            block.decode()  # Arrow does not look at what it leaves out
        table = pj.read_json(
            pa.BufferReader(block + end),
            pj.ReadOptions(use_threads=False, block_size=len(block) + 2),
            pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior=unexpected),
        )
    except (pa.ArrowException, ValueError):
        return None
    # it takes several objects on a line, and one on several lines
    return table if table.num_rows == block.count(b"\n") + len(end) else None


def _json_type(values: list[Any]) -> pa.DataType:
    """The type that holds these values; text where there is no other."""
    try:
        kind = pa.array(values).type
    except (pa.ArrowException, OverflowError, ValueError):
        return pa.large_string()
    return kind if _can_be_stored(kind) and not is_text(kind) else pa.large_string()


def _common(known: pa.DataType | None, kind: pa.DataType) -> pa.DataType:
    """The type that holds the values of both; text where there is no other."""
    if known is None or known == kind:
        return kind
    try:
        fields = [pa.schema([("value", t)]) for t in (known, kind)]
        return pa.unify_schemas(fields, promote_options="permissive").field(0).type
    except pa.ArrowException:
        return pa.large_string()


def _can_be_stored(kind: pa.DataType) -> bool:
    """Whether Parquet has the type: not an object without keys."""
    if pa.types.is_struct(kind):
        return kind.num_fields > 0 and all(_can_be_stored(f.type) for f in kind)
    return not pa.types.is_list(kind) or _can_be_stored(kind.value_type)


def _is_list_of_nulls(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_is_list_of_nulls(f.type) for f in kind)
    return pa.types.is_list(kind) and (
        pa.types.is_null(kind.value_type) or _is_list_of_nulls(kind.value_type)
    )


def _json_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _json_kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list"}
    return names.get(type(value), "an object")
