"""What a source names: the files behind paths, globs, folders and URIs, in reading order."""

from __future__ import annotations

import difflib
import glob
import os
import re
import shutil
import stat
import sys
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from resemblance_io.errors import InputError, one_line

FORMATS = ("parquet", "arrow", "csv", "tsv", "jsonl")

_BY_EXTENSION = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}
_COMPRESSION = {
    ".gz": "gzip",
    ".bz2": "bz2",
    ".zst": "zstd",
    ".lz4": "lz4",
    ".br": "brotli",
    ".xz": "xz",
}
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


@dataclass(frozen=True)
class File:
    """One input file.

    ``name`` is what the user calls it, and what messages and outputs say; ``path`` is where
    ``filesystem`` finds it.
    """

    name: str
    path: str
    filesystem: pafs.FileSystem

    @property
    def compression(self) -> str | None:
        """The codec its extension stands for."""
        return _COMPRESSION.get(os.path.splitext(self.path)[1].lower())

    @property
    def extension_format(self) -> str | None:
        """The format its extension stands for, below that of a codec."""
        stem, extension = os.path.splitext(self.path.lower())
        if extension in _COMPRESSION:
            extension = os.path.splitext(stem)[1]
        return _BY_EXTENSION.get(extension)


class Spool:
    """Temporary copies of what can be read only once; gone when the object is."""

    def __init__(self) -> None:
        self._folder: str | None = None
        self._count = 0

    def new_path(self) -> str:
        """Where the next copy may be written."""
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="resemblance-")
            weakref.finalize(self, shutil.rmtree, self._folder, True)
        self._count += 1
        return os.path.join(self._folder, str(self._count))


@dataclass(frozen=True)
class Found:
    """The files of a source, and those of its folders that are not data."""

    files: list[File]
    ignored: list[str]


def find(source: Any, spool: Spool, filesystem: Any = None) -> Found:
    """List the files of a source.

    Parameters
    ----------
    source : str, path-like, or list of them
        A file, a folder (read recursively), a glob, a URI, or ``"-"`` for standard input.
    spool : Spool
        Where to copy what can be read only once: standard input and pipes.
    filesystem : pyarrow.fs.FileSystem or fsspec file system, optional
        Where the paths are, if not on this machine.

    Returns
    -------
    Found
        In the order given; the files of a folder or glob in order of their paths. Names that
        begin with ``.`` or ``_`` are passed over, and in folders those that are not data by
        their extension; a ``.json`` file in a folder is data only where nothing else is.

    Raises
    ------
    InputError
        If there is nothing to read, or a file is named twice.
    """
    fs = _filesystem(filesystem)
    ignored: list[str] = []
    files: list[File] = []
    for item in [source] if isinstance(source, str | os.PathLike) else _listed(source):
        files.extend(_expand(os.fspath(item), fs, spool, ignored))
    if not files:
        raise InputError("the list of inputs is empty; name at least one file")
    seen = set()
    for file in files:
        if file.path in seen:
            raise InputError(f"{file.name}: named twice in the input; name each file once")
        seen.add(file.path)
    return Found(files, ignored)


def _listed(source: Any) -> Iterable[str | os.PathLike[str]]:
    items = list(source) if isinstance(source, list | tuple) else [source]
    for item in items:
        if not isinstance(item, str | os.PathLike):
            hint = "; call .collect() first" if hasattr(item, "collect") else ""
            if hasattr(item, "__next__"):
                hint = " (it can be read only once, and has no columns)"
            raise InputError(
                f"cannot read {type(item).__name__} as a source{hint}; pass a path, a list of "
                "paths, or a table that speaks Arrow (pyarrow.table(...), a data frame)"
            )
    return items


def _filesystem(filesystem: Any) -> pafs.FileSystem | None:
    if filesystem is None or isinstance(filesystem, pafs.FileSystem):
        return filesystem
    return pafs.PyFileSystem(pafs.FSSpecHandler(filesystem))


def _expand(
    text: str, fs: pafs.FileSystem | None, spool: Spool, ignored: list[str]
) -> Iterator[File]:
    if not text:
        raise InputError("the name of an input is empty; name a file")
    local = fs is None
    if text == "-" and local:
        yield _spooled("<stdin>", sys.stdin.buffer, spool)
        return
    path, prefix = text, ""
    place = fs or pafs.LocalFileSystem()
    if local and _URI.match(text):
        try:
            place, path = pafs.FileSystem.from_uri(text)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise InputError(f"{text}: not a place that can be read: {one_line(error)}") from None
        if not isinstance(place, pafs.LocalFileSystem):
            prefix = text.split("://")[0] + "://"
    elif local:
        if not os.path.exists(text) and glob.has_magic(text):
            yield from _globbed(text, place, ignored)
            return
        if _is_pipe(text):
            with open(text, "rb") as stream:
                yield _spooled(text, stream, spool)
            return
    try:
        info = place.get_file_info(path)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{text}: cannot be read: {one_line(error)}") from None
    if info.type == pafs.FileType.NotFound:
        raise InputError(f"{text}: no such file or folder{_closest(text) if local else ''}")
    if info.type == pafs.FileType.Directory:
        yield from _in_folder(text, path, place, prefix, ignored)
    else:
        yield File(text, path, place)


def _globbed(pattern: str, fs: pafs.FileSystem, ignored: list[str]) -> Iterator[File]:
    asked = {part for part in _parts(pattern) if not glob.has_magic(part)}
    hidden_files = _is_hidden(_parts(pattern)[-1])
    paths = []
    for path in glob.glob(pattern, recursive=True):
        *folders, name = _parts(path.rstrip("/"))
        if any(_is_hidden(part) and part not in asked for part in folders):
            continue
        if hidden_files or not _is_hidden(name):
            paths.append(path.rstrip("/"))
    whole = set(paths)
    found = 0
    for path in sorted(whole, key=_parts):
        if os.path.dirname(path) in whole:
            continue  # "**" matches folders and what is in them
        inside = _in_folder(path, path, fs, "", ignored) if os.path.isdir(path) else None
        for file in inside or [File(path, path, fs)]:
            found += 1
            yield file
    if not found:
        raise InputError(
            f"{pattern}: no file matches; check the pattern, or quote it for the shell"
        )


def _in_folder(
    text: str, path: str, fs: pafs.FileSystem, prefix: str, ignored: list[str]
) -> Iterator[File]:
    try:
        infos = fs.get_file_info(pafs.FileSelector(path, recursive=True))
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{text}: cannot be listed: {one_line(error)}") from None
    root = path.rstrip("/")
    files = [
        File(prefix + info.path, info.path, fs)
        for info in infos
        if info.type == pafs.FileType.File
        and not any(map(_is_hidden, info.path[len(root) :].split("/")))
    ]
    data = [f for f in files if f.extension_format]
    # metadata of a data set lies beside it as .json
    if any(not f.path.lower().endswith(".json") for f in data):
        data = [f for f in data if not f.path.lower().endswith(".json")]
    chosen = {f.path for f in data}
    ignored.extend(sorted(f.name for f in files if f.path not in chosen))
    if not data:
        beside = f" ({len(files)} other files: {files[0].name}, ...)" if files else ""
        raise InputError(
            f"{text}: no data file in this folder{beside}; "
            f"looked for {', '.join(sorted(_BY_EXTENSION))}, also compressed"
        )
    yield from sorted(data, key=lambda f: _parts(f.path))


def _spooled(name: str, stream: Any, spool: Spool) -> File:
    """A copy of a stream as a file, so that it can be sniffed and read more than once."""
    path = spool.new_path()
    with open(path, "wb") as copy:
        shutil.copyfileobj(stream, copy, 1 << 20)
    return File(name, path, pafs.LocalFileSystem())


def _is_pipe(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_")) and name not in (".", "..")


def _parts(path: str) -> list[str]:
    return path.split("/")


def _closest(path: str) -> str:
    folder, name = os.path.split(path)
    try:
        near = difflib.get_close_matches(name, os.listdir(folder or "."), 1)
    except OSError:
        return ""
    return f"; did you mean {os.path.join(folder, near[0])}?" if near else ""
