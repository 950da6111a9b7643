"""The one place that decides how kernels are compiled and cached.

Every compiled function of the engine is made by :func:`kernel` (called from Python) or
:func:`inlined` (called from kernels only). Both share one policy:

* ``nogil``: tiles run on plain threads, so no threading layer of Numba is involved;
* ``error_model="numpy"``: no hidden branches for division by zero;
* no fast-math unless a kernel names the flags it can bear;
* compiled code is cached on disk, in the first of these directories that can be written:
  ``NUMBA_CACHE_DIR``, ``__pycache__`` beside the source, the user's cache directory. Where none
  can, kernels are compiled anew in each process and one warning says so;
* cached code is stamped with the package version and a hash of all engine sources: Numba itself
  notices neither a new version nor a change in a function called from another file.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import pathlib
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core import caching, config
from numba.misc.appdirs import AppDirs

from resemblance._version import __version__

logger = logging.getLogger("resemblance")

F = TypeVar("F", bound=Callable[..., Any])

JIT_DISABLED: bool = bool(config.DISABLE_JIT)
PACKAGE = pathlib.Path(__file__).resolve().parent


@functools.cache
def source_stamp() -> tuple[str, str]:
    """Version and content hash of the engine, on which compiled code depends."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        digest.update(path.read_bytes())
    return __version__, digest.hexdigest()


@functools.cache
def cache_directory() -> str | None:
    """First writable directory for compiled code, or None (after one warning)."""
    own = hashlib.sha256(str(PACKAGE).encode()).hexdigest()[:16]
    candidates = [PACKAGE / "__pycache__"]
    if config.CACHE_DIR:
        candidates.insert(0, pathlib.Path(config.CACHE_DIR) / f"resemblance-{own}")
    user = AppDirs(appname="resemblance", appauthor=False).user_cache_dir
    candidates.append(pathlib.Path(user) / f"numba-{own}")
    for path in candidates:
        probe = path / f".write-test-{os.getpid()}"
        try:
            path.mkdir(parents=True, exist_ok=True)
            probe.touch()
            probe.unlink()
        except OSError:
            continue
        return str(path)
    warnings.warn(
        "resemblance found no writable directory for its compiled kernels, so each process will "
        "compile those it needs (a second or two per metric); set NUMBA_CACHE_DIR to a writable "
        "directory to avoid this",
        RuntimeWarning,
        stacklevel=2,
    )
    return None


class _Locator(caching._CacheLocator):  # type: ignore[misc]
    """Tells Numba where to cache a kernel and when a cached one is out of date."""

    def __init__(self, py_func: Callable[..., Any], py_file: str) -> None:
        self._py_file = py_file
        self._lineno = py_func.__code__.co_firstlineno

    def get_cache_path(self) -> str | None:
        return cache_directory()

    def get_source_stamp(self) -> tuple[str, str]:
        return source_stamp()

    def get_disambiguator(self) -> str:
        return str(self._lineno)

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator:
        return cls(py_func, py_file)


class _CacheImpl(caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Locator,)


@functools.cache
def _announce() -> None:
    """Say once why the first call takes its time."""
    logger.debug("compiling for this machine: takes some seconds, the first time only")


def _named(value: Any) -> bytes:
    """A value of a closure: for a function its name, and the values of its own closure."""
    func = getattr(value, "py_func", value)
    if not hasattr(func, "__qualname__"):
        return repr(func).encode()
    cells = [_named(cell.cell_contents) for cell in getattr(func, "__closure__", None) or ()]
    return f"{func.__module__}.{func.__qualname__}".encode() + b"(" + b",".join(cells) + b")"


class _KernelCache(caching.FunctionCache):  # type: ignore[misc]
    _impl_class = _CacheImpl

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        """As Numba's, but functions in a kernel's closure count by name.

        Pickled they would differ from process to process; the stamp knows their source.
        """
        named = _named(self._py_func)
        digests = (
            hashlib.sha256(part).hexdigest() for part in (self._py_func.__code__.co_code, named)
        )
        return sig, codegen.magic_tuple(), tuple(digests)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = super().load_overload(sig, target_context)
        if found is None:
            _announce()
        return found


def kernel(func: F | None = None, *, fastmath: frozenset[str] = frozenset()) -> Any:
    """Compile a function of arrays and numbers; usable as ``@kernel`` or ``@kernel(fastmath=...)``.

    With ``NUMBA_DISABLE_JIT=1`` the function stays plain Python, in which integers must wrap
    as silently as compiled ones do.
    """
    if func is None:
        return functools.partial(kernel, fastmath=fastmath)
    if JIT_DISABLED:
        return _silent(func)
    dispatcher = numba.njit(nogil=True, error_model="numpy", fastmath=set(fastmath) or False)(func)
    if cache_directory() is not None:
        dispatcher._cache = _KernelCache(func)
    return dispatcher


def inlined(func: F) -> Any:
    """Compile a function into the kernels that call it."""
    return func if JIT_DISABLED else numba.njit(inline="always", error_model="numpy")(func)


def _silent(func: F) -> F:
    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return func(*args, **kwargs)

    return call  # type: ignore[return-value]
