"""Every example of the README runs, and gives what it says."""

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import resemblance as rs
from resemblance import io
from resemblance.metrics import RECORDS

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)


def cli(words: list[str], folder: Path) -> None:
    code = "import sys; from resemblance_io.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, *words], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_commands(tmp_path):
    """The commands, but for making an environment, in one folder and in their order."""
    (tmp_path / "queries.csv").write_text("text\nThis message and any attachment\n")
    (tmp_path / "answers.csv").write_text("output,expected\nParis,paris\nnight,nightly\n")
    ran = set()
    for block in BLOCKS:
        for command in re.findall(r"(?:^|&& )(?:\S*/)?resemblance (.*?)(?= &&|$)", block, re.M):
            cli(shlex.split(command), tmp_path)
            ran.add(command.split()[0])
    assert ran == {"sample", "dedup", "join", "top-k", "score"}
    assert (tmp_path / "out" / "_manifest.json").exists()
    assert (tmp_path / "scores.parquet").exists()
    assert (tmp_path / "matches.csv").read_text().count("\n") == 4


def test_python(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    io.sample("corpus.parquet", rows=1000, seed=1)
    tests = doctest.DocTestParser().get_doctest(README, {}, "README.md", "README.md", 0)
    assert len(tests.examples) >= 9
    assert doctest.DocTestRunner(verbose=False).run(tests).failed == 0


def test_every_public_name_has_an_example():
    """Docstrings' examples run too."""
    for name in rs.__all__:
        thing = getattr(rs, name)
        if callable(thing):
            tests = doctest.DocTestFinder(recurse=False).find(thing, name, globs={})
            assert tests
            assert tests[0].docstring, name
            for test in tests:
                assert doctest.DocTestRunner(verbose=False).run(test).failed == 0


def test_every_metric_is_told():
    table = README.partition("## The metrics")[2].partition("## What is counted")[0]
    for record in RECORDS:
        assert f"`{record.name}`" in table
        for variant in record.variants:
            assert f":{variant}`" in table
