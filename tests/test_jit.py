"""Compiled code: one decorator, cached on disk, never stale, and never in the way."""

from __future__ import annotations

import ast
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap
import zipfile
from collections.abc import Sequence

import pytest

import resemblance
from resemblance import jit

PACKAGE = pathlib.Path(resemblance.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
SCORE = "import resemblance as rs; print(rs.cdist(['kitten', 'ab'], ['sitting', 'é']).tolist())"
SCORED = "[[3, 6], [7, 2]]\n"

USE_EVERYTHING = """
import resemblance as rs
short, long = ["kitten", "sitting", ""], ["x" * n for n in (3, 12, 30, 60, 100, 700)]
for letter in ("b", "я", "\\U0001f600"):
    texts = [*short, *long, letter * 9, letter * 80]
    nulls = [*texts, None]
    for score in ("distance", "similarity"):
        rs.cdist(texts, score=score), rs.cdist(texts, nulls, score=score), rs.pdist(texts)
        rs.cdist(["a"], texts * 9, score=score), rs.cdist(texts * 9, ["a"], score=score)
        rs.pairwise(texts, texts, score=score), rs.top_k(texts, nulls, k=2, score=score)
    for threshold in ({"max_distance": 1}, {"max_distance": 40}, {"min_similarity": 0.8}):
        rs.join(texts, **threshold), rs.join(texts, nulls, **threshold)
    pairs = rs.join(texts, max_distance=1)
    for method in ("star", "components"):
        rs.cluster(pairs, len(texts), method=method)
    rs.dedup(nulls, "levenshtein")
"""


def python(code: str, *, path: pathlib.Path | None = None, command: Sequence[str] = (), **env: str):
    """Run a program with the package of ``path`` and only these variables of the environment."""
    keep = {"PATH", "LANG", "LC_ALL", "NUMBA_DISABLE_JIT", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"}
    env = {name: os.environ[name] for name in keep & set(os.environ)} | env
    env["PYTHONPATH"] = str(path or PACKAGE.parent)
    return subprocess.run(
        [*command, sys.executable, "-B", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env=env,
        cwd="/",
    )


def compiled(code: str, path: pathlib.Path | None = None, **env: str) -> int:
    """Run a program and count what it compiled."""
    done = python(
        f"""
from numba.core import event
with event.install_recorder("numba:compile") as recorder:
{textwrap.indent(code, "    ")}
print("compiled", sum(1 for _, e in recorder.buffer if e.is_start))
""",
        path=path,
        **env,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return int(done.stdout.split("compiled")[-1])


def copied(to: pathlib.Path) -> pathlib.Path:
    """A copy of the engine alone, without its cache; the folder to import it from."""
    shutil.copytree(PACKAGE, to / "resemblance", ignore=shutil.ignore_patterns("__pycache__"))
    return to


# --- policy --------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_one_module_compiles(path):
    """All kernels come from ``resemblance.jit``, which alone decides on cache, GIL and floats."""
    compilers = {"njit", "jit", "vectorize", "guvectorize", "cfunc", "stencil", "jit_module"}
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Attribute(value=ast.Name(id="numba" | "nb"), attr=name) if name in compilers:
                found.append(f"line {node.lineno}: numba.{name}")
            case ast.ImportFrom(module=str(module), names=names) if module.startswith("numba"):
                found += [f"line {node.lineno}: {n.name}" for n in names if n.name in compilers]
            case ast.Name(id="prange") | ast.Attribute(attr="prange"):
                found.append(f"line {node.lineno}: prange")
    assert not found or path == PACKAGE / "jit.py", found


def test_floats_are_strict_unless_named():
    @jit.kernel
    def mean(x):
        return x.sum() / len(x)

    if not jit.JIT_DISABLED:
        assert mean.targetoptions["nogil"]
        assert mean.targetoptions["error_model"] == "numpy"
        assert not mean.targetoptions["fastmath"]
        named = jit.kernel(fastmath=frozenset({"nsz"}))(mean.py_func)
        assert named.targetoptions["fastmath"] == {"nsz"}


def test_without_the_compiler():
    done = python(SCORE, NUMBA_DISABLE_JIT="1", HOME="/dev/null")
    assert (done.stdout, done.stderr) == (SCORED, "")


@pytest.mark.jit
@pytest.mark.slow
@pytest.mark.parametrize("features", ["+avx2,+sse4.2,+popcnt,+bmi,+bmi2", "+sse2", ""])
def test_other_instruction_sets(features, tmp_path):
    """AVX2, SSE and next to nothing give what the host's widest instructions give."""
    code = """
        import random
        import resemblance as rs
        from resemblance import simd
        draw = random.Random(1)
        sizes = [*range(20), 33, 64, 65, 130, 300] * 3
        texts = ["".join(draw.choices("abcé", k=size)) for size in sizes]
        print(simd.REGISTER_BYTES, rs.cdist(texts, texts[::2]).tobytes().hex())
        print(rs.pdist(texts).tobytes().hex(), rs.join(texts, max_distance=9)[2].tolist())
    """
    machine = {"x86_64": "x86-64", "AMD64": "x86-64"}.get(os.uname().machine)
    if machine is None:
        pytest.skip("names of x86 features")
    here = python(code, NUMBA_CACHE_DIR=str(tmp_path / "here"))
    other = python(
        code,
        NUMBA_CACHE_DIR=str(tmp_path / "other"),
        NUMBA_CPU_NAME=machine,
        NUMBA_CPU_FEATURES=features,
    )
    assert other.returncode == 0, other.stderr
    width, _, values = other.stdout.partition(" ")
    assert int(width) == (32 if "avx2" in features else 16)
    assert values == here.stdout.partition(" ")[2]


# --- the cache -----------------------------------------------------------------------------------


@pytest.mark.jit
@pytest.mark.slow
def test_a_second_process_compiles_nothing(tmp_path):
    """Of all kernels in all types of characters and results; nor does it write anything."""
    path, cache = copied(tmp_path / "site"), tmp_path / "cache"
    assert compiled(USE_EVERYTHING, path, NUMBA_CACHE_DIR=str(cache)) > 10
    files = {file: file.stat().st_mtime_ns for file in cache.rglob("*.nb?")}
    assert files
    assert compiled(USE_EVERYTHING, path, NUMBA_CACHE_DIR=str(cache)) == 0
    assert {file: file.stat().st_mtime_ns for file in cache.rglob("*.nb?")} == files


@pytest.mark.jit
@pytest.mark.slow
def test_a_new_version_never_meets_old_entries(tmp_path):
    """Nor does a change in a file other than the kernel's own, which Numba itself would miss."""
    path, cache = copied(tmp_path / "site"), {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert compiled(SCORE, path, **cache) > 0
    assert compiled(SCORE, path, **cache) == 0
    version = path / "resemblance" / "_version.py"
    version.write_text(version.read_text().replace('__version__ = "', '__version__ = "9'))
    assert compiled(SCORE, path, **cache) > 0
    assert compiled(SCORE, path, **cache) == 0
    other = path / "resemblance" / "metrics" / "base.py"
    other.write_text(other.read_text() + "\n# changed\n")
    assert compiled(SCORE, path, **cache) > 0


@pytest.mark.jit
def test_beside_the_source_where_that_can_be_written(tmp_path):
    path = copied(tmp_path)
    assert python(SCORE, path=path, HOME="/dev/null").stdout == SCORED
    assert list((path / "resemblance" / "__pycache__").glob("*.nbi"))


@pytest.mark.jit
def test_else_in_the_users_cache(tmp_path):
    path = copied(tmp_path / "site")
    (path / "resemblance" / "__pycache__").touch()  # a file: no directory can be made there
    done = python(SCORE, path=path, HOME=str(tmp_path), XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert (done.stdout, done.stderr) == (SCORED, "")
    assert list(tmp_path.rglob("*.nbi"))


WARNED = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import resemblance as rs
    print(rs.cdist(['kitten', 'ab'], ['sitting', 'é']).tolist())
    rs.pairwise(["a"], ["b"])
ours = [w for w in caught if "resemblance" in str(w.message)]
assert len(ours) == 1, caught
assert ours[0].category is RuntimeWarning
assert "NUMBA_CACHE_DIR" in str(ours[0].message)
"""


@pytest.mark.jit
def test_case_c056_nowhere_to_write(tmp_path):
    """One warning, and everything works; also as root, whom no mode keeps from writing."""
    path = copied(tmp_path)
    (path / "resemblance" / "__pycache__").touch()
    for env in ({}, {"NUMBA_CACHE_DIR": "/dev/null/cache"}):
        nowhere = {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null/cache"}
        done = python(WARNED, path=path, **nowhere, **env)
        assert (done.returncode, done.stdout) == (0, SCORED), done.stderr


@pytest.mark.jit
@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="modes of files")
def test_case_c056_read_only_installation(tmp_path):
    """Installation and home may only be read; root is first stripped of its power to write."""
    command = []
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root writes everywhere")
        command = ["setpriv", "--inh-caps=-all", "--bounding-set=-dac_override"]
    path = copied(tmp_path / "site")
    folders = [path, *(folder for folder in path.rglob("*") if folder.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    done = python(WARNED, path=path, command=command, HOME=str(path))
    for folder in folders:
        folder.chmod(0o755)
    assert (done.returncode, done.stdout) == (0, SCORED), done.stderr
    assert not list(path.rglob("__pycache__"))


@pytest.mark.jit
def test_case_c056_from_a_zip(tmp_path):
    path = copied(tmp_path / "site")
    with zipfile.ZipFile(tmp_path / "site.zip", "w") as archive:
        for file in path.rglob("*.py"):
            archive.write(file, file.relative_to(path))
    done = python(SCORE, path=tmp_path / "site.zip", HOME=str(tmp_path))
    assert (done.stdout, done.returncode) == (SCORED, 0), done.stderr


@pytest.mark.jit
def test_case_c074_kernels_from_a_notebook_cell(tmp_path):
    """A function with no file of its own compiles too."""
    code = """
        from resemblance.jit import kernel
        exec("def twice(x): return 2 * x")
        print(kernel(twice)(21))
    """
    done = python(code, NUMBA_CACHE_DIR=str(tmp_path))
    assert (done.stdout, done.returncode) == ("42\n", 0), done.stderr
