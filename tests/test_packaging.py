"""The house: where things lie, who may import whom, what is shipped."""

import ast
import importlib.util
import io
import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ENGINE = ROOT / "engine" / "resemblance"
IO = ROOT / "io" / "resemblance_io"
MAY_REACH_UP = {"inputs.py", "io.py", "evals.py"}
MAY_COMPILE = {"jit.py", "simd.py"}


def imports(path, *, top_level=False):
    """The modules a file imports, in full; only those on import with ``top_level``."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    lazy = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            stack.extend(node.orelse)
            continue
        if not (top_level and isinstance(node, lazy)):
            stack.extend(ast.iter_child_nodes(node))


def roots(path, **options):
    return {name.split(".")[0] for name in imports(path, **options)}


def run(code, *arguments, **options):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ENGINE.parent), str(IO.parent)])}
    command = [sys.executable, *arguments, "-c", code]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_io_is_the_standard_library():
    stdlib = Path(sysconfig.get_path("stdlib")).resolve()
    assert sys.modules["io"] is io
    assert Path(io.__file__).resolve().parent == stdlib
    assert io.BytesIO(b"x").read() == b"x"


@pytest.mark.parametrize("where", [ROOT, ROOT / "tests", ROOT / "io", ROOT / "engine"])
@pytest.mark.parametrize("options", [["-P"], []])
def test_io_is_the_standard_library_in_other_processes(where, options):
    code = "import io, resemblance, resemblance_io; print(io.BytesIO(b'x').read(), io.__file__)"
    assert run(code, *options, cwd=where).startswith(f"b'x' {sysconfig.get_path('stdlib')}")


@pytest.mark.parametrize("mode", ["importlib", "prepend"])
def test_io_is_the_standard_library_when_doctests_are_collected(mode, tmp_path):
    test = tmp_path / "test_io.py"
    test.write_text(
        "import io, sys\ndef test_io(): assert sys.modules['io'].BytesIO and io.open is open\n"
    )
    command = [
        sys.executable,
        "-P",
        "-m",
        "pytest",
        "-q",
        f"--import-mode={mode}",
        "--doctest-modules",
    ]
    command += [
        "-p",
        "no:cacheprovider",
        str(IO / "errors.py"),
        str(ENGINE / "_version.py"),
        str(test),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


@pytest.mark.parametrize("package", [ENGINE, IO])
def test_nothing_lies_beside_the_packages(package):
    beside = {p.name for p in package.parent.iterdir()} - {"__pycache__"}
    assert beside == {package.name}
    assert (package / "py.typed").read_bytes() == b""


def test_the_engine_imports_neither_arrow_nor_pillow_nor_the_io_layer():
    banned = {"pyarrow", "PIL", "resemblance_io"}
    for path in ENGINE.rglob("*.py"):
        reached = roots(path, top_level=path.name in MAY_REACH_UP - {"io.py", "evals.py"}) & banned
        if path.parent == ENGINE and path.name in ("io.py", "evals.py"):
            reached -= {"resemblance_io"}
        assert not reached, path


def test_only_two_modules_know_numba():
    for path in [*ENGINE.rglob("*.py"), *IO.rglob("*.py")]:
        if path.parent != ENGINE or path.name not in MAY_COMPILE:
            assert not roots(path) & {"numba", "llvmlite"}, path


def test_the_command_line_imports_little_until_a_command_runs():
    heavy = "{'numba', 'llvmlite', 'pyarrow', 'PIL', 'numpy'}"
    out = run(f"import sys, resemblance_io.cli; print(sorted({heavy} & set(sys.modules)))", "-P")
    assert out == "[]\n"


def test_importing_the_engine_imports_neither_numba_nor_the_io_layer():
    heavy = "{'numba', 'llvmlite', 'pyarrow', 'PIL', 'resemblance_io'}"
    out = run(f"import sys, resemblance; print(sorted({heavy} & set(sys.modules)))", "-P")
    assert out == "[]\n"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A wheel and an sdist, as `pip` would have them built."""
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("needs hatchling, which comes with the extra 'test'")
    out = tmp_path_factory.mktemp("dist")
    code = (
        "import sys; from hatchling import build\n"
        "build.build_wheel(sys.argv[1]); build.build_sdist(sys.argv[1])"
    )
    command = [sys.executable, "-P", "-c", code, str(out)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    return out


def test_the_wheel_holds_both_packages_and_nothing_else(built):
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        names = set(wheel.namelist())
        entry_points = next(n for n in names if n.endswith("entry_points.txt"))
        assert "resemblance = resemblance_io.cli:main" in wheel.read(entry_points).decode()
    info = entry_points.split("/")[0]
    assert {n.split("/")[0] for n in names} == {"resemblance", "resemblance_io", info}
    assert {"resemblance/py.typed", "resemblance_io/py.typed", f"{info}/licenses/LICENSE"} <= names
    for package in (ENGINE, IO):
        for module in package.rglob("*.py"):
            assert module.relative_to(package.parent).as_posix() in names
    assert all(n.endswith((".py", "py.typed")) for n in names if not n.startswith(info))


def test_the_sdist_can_be_tested_and_leaves_notebooks_out(built):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as sdist:
        names = {name.split("/", 1)[1] for name in sdist.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "tests/test_packaging.py"} <= names
    assert not [n for n in names if n.startswith("notebooks") or n.endswith(".ipynb")]
