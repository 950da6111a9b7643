"""The command line, as a user and a shell meet it."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import resemblance as rs
from resemblance_io.sinks import OutputFolder

ROOT = Path(__file__).resolve().parents[1]
MAIN = "import sys; from resemblance_io.cli import main; sys.exit(main())"
RUN_ALL = """
import contextlib, io, json, sys
from resemblance_io import cli
results = []
for arguments in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    sys.argv = ["resemblance", *arguments]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.main()
    results.append((code, out.getvalue(), err.getvalue()))
json.dump(results, sys.stdout)
"""


def environment(**changes):
    path = os.pathsep.join([str(ROOT / "engine"), str(ROOT / "io")])
    return {**os.environ, "PYTHONPATH": path, **changes}


def start(*arguments, **options):
    command = [sys.executable, "-P", "-c", MAIN, *map(str, arguments)]
    return subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        **options,
    )  # fmt: skip


def run(*arguments, **changes):
    command = [sys.executable, "-P", "-c", MAIN, *map(str, arguments)]
    return subprocess.run(
        command, env=environment(**changes), capture_output=True, text=True, timeout=120
    )


def run_all(*commands):
    """Exit code, output and errors of each command, all in one process, which saves time."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", RUN_ALL], input=json.dumps(commands), env=environment(),
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def contents(out):
    """All bytes of an output but those of timings."""
    return {p.name: p.read_bytes() for p in out.iterdir() if p.name != "stats.json"}


def visible(folder):
    return sorted(p.name for p in folder.iterdir() if not p.name.startswith("."))


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("id,output,expected,lang\n1,night,nacht,de\n2,Day,day,en\n3,a b,b,\n")
    return path


@pytest.fixture
def names(tmp_path):
    path = tmp_path / "names.csv"
    path.write_text("id,text\n" + "".join(f"{i},{n}\n" for i, n in enumerate(NAMES)))
    return path


NAMES = ["Ana Lima", "Anna Lima", "Bo Ek", "Ana Lima", "", "Cy Twombly"]


def test_dedup(names, tmp_path):
    done = run(
        "dedup", names, "-o", tmp_path / "out", "--metric", "levenshtein", "--max-distance", "1",
        "--keep", "longest",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")  # no bar where there is no terminal
    assert done.stdout.splitlines()[:5] == [
        "rows     6 (0 null, 1 blank)",
        "removed  2 (0 exact, 2 near: levenshtein distance <= 1)",
        "kept     4 (66.7%)",
        "clusters 1, the largest of 3 rows (50.00% of all); worst score 1",
        f"output   {tmp_path / 'out'}",
    ]
    kept = pq.read_table(tmp_path / "out" / "kept.parquet")
    assert kept["id"].to_pylist() == ["1", "2", "4", "5"]


def test_commands_that_go_well(names, tmp_path):
    out = str(tmp_path / "out")
    source = str(names)
    corpus, pairs, best = (str(tmp_path / n) for n in ("c.parquet", "p.csv", "b.jsonl"))
    results = run_all(
        ["--version"],
        ["metrics"],
        ["sample", corpus, "--rows", "200", "--seed", "1"],
        ["dedup", corpus, "-o", out, "--quiet", "--clusters", "components"],
        ["dedup", corpus, "-o", out, "--overwrite", "--threads", "1", "--keep", "min:id"],
        ["dedup", source, "--dry-run"],
        ["join", source, "--on", "text", "-o", pairs, "--max-distance", "1"],
        ["join", source, source, "--on", "text", "--min-similarity", "0.9", "--dry-run"],
        ["top-k", source, source, "--on", "text", "-k", "2", "-o", best],
        ["dedup", "--help"],
    )
    assert [(code, err) for code, _, err in results] == [(0, "")] * len(results)
    version, metrics, sample, quiet, again, dry, joined, dry_join, top, usage = (
        out for _, out, _ in results
    )
    assert version == f"resemblance {rs.__version__}\n"
    assert re.search(r"^levenshtein +lev, .* edits +0 to longer length ", metrics, re.M)
    assert re.search(r"^hamming +hamming:strict ", metrics, re.M)
    assert re.search(r"^indel .* 0 to both lengths ", metrics, re.M)
    assert "200 (" in sample
    assert quiet == ""
    assert again.startswith("rows     200 (4 null, 2 blank)")
    assert dry.endswith("nothing was written (dry run)\n")
    assert "pairs   3" in joined
    assert "rows    6 x 6" in dry_join
    assert "matches  12; 0 queries have none" in top
    assert "--max-distance K" in usage
    assert visible(tmp_path) == [
        "b.jsonl", "c.parquet", "c.truth.parquet", "names.csv", "out", "p.csv",
    ]  # fmt: skip


def test_score(pairs, tmp_path):
    source, out = str(pairs), str(tmp_path / "s.parquet")
    two = ["score", source, "--metric", "levenshtein", "--metric", "lev"]
    alike = ["--normalize", "casefold", "--normalize", "strip"]
    lines = ["output,expected", *(f"{i % 7 * 'a'},aaaa" for i in range(100))]
    (tmp_path / "more.csv").write_text("\n".join(lines))
    results = run_all(
        [*two, "-o", out],
        [*two, "-o", out, "--overwrite", "--columns", "lang", "--summary", *alike],
        [*two, "-o", str(tmp_path / "d.csv"), "--columns", "all", "--score", "distance", "-q"],
        [*two, "--summary", "--left", "lang", "--right", "expected"],
        [*two, "--fail-under", "lev=0.1", "--fail-rows-under", "levenshtein=0.5:0.5"],
        ["score", str(tmp_path / "more.csv"), "--metric", "osa", "--summary", "--threads", "1"],
    )
    assert [(code, err) for code, _, err in results] == [(0, "")] * len(results)
    first, spread, quiet, turned, gated, more = (out.splitlines() for _, out, _ in results)
    assert first[:3] == [
        "rows     3 (0 with a null)",
        "means    levenshtein 0.53333, lev 0.53333",
        f"output   {out}",
    ]
    assert spread[2].startswith("lev") or "0.64444" in spread[2]
    table = pq.read_table(out)
    assert table.column_names == ["lang", "levenshtein", "lev"]
    assert table["lev"].to_pylist() == [0.6, 1.0, 1 / 3]
    assert quiet == []
    assert (tmp_path / "d.csv").read_text().splitlines() == [
        '"id","output","expected","lang","levenshtein","lev"',
        '"1","night","nacht","de",2,2',
        '"2","Day","day","en",1,1',
        '"3","a b","b","",2,2',
    ]
    assert turned[3].split()[:3] == ["lev", "3", "0"]
    assert gated[2] == "output   none written"
    assert more[2].split()[:3] == ["osa", "100", "0"]


def test_gates_are_exit_code_3_and_say_which_value_and_bound(pairs, tmp_path):
    base = ["score", str(pairs), "--metric", "lev", "--metric", "osa"]
    gates = {
        "mean: lev is 0.53333": ["--fail-under", "lev=0.9"],
        "rows: 2 of 3 scored (0.6667) have osa under 0.65, and none may": [
            "--fail-rows-under", "osa=0.65",
        ],
        "rows: 1 of 3 scored (0.3333) have osa under 0.5, and at most 0.25 may": [
            "--fail-rows-under", "osa=0.5:0.25", "--fail-under", "lev=0.5",
        ],
        "under 0.9; mean: osa is": ["--fail-under", "lev=0.9", "--fail-under", "osa=0.8", "-q"],
    }  # fmt: skip
    results = run_all(*([*base, *options] for options in gates.values()))
    for expected, (code, _, stderr) in zip(gates, results, strict=True):
        assert code == 3
        assert re.fullmatch(r"resemblance: gate not met: [^\n]+\n", stderr), stderr
        assert expected in stderr
    assert results[0][1].startswith("rows     3")
    assert results[-1][1] == ""
    out = tmp_path / "s.csv"
    ((code, _, _),) = run_all([*base, "--fail-under", "lev=1", "-o", str(out)])
    assert (code, out.exists()) == (3, True)
    # the process, too
    assert run(*base, "--fail-under", "lev=1").returncode == 3


def test_the_help_lists_every_word_of_normalisation():
    from resemblance.normalize import WORDS

    ((_, shown, _),) = run_all(["score", "--help"])
    shown = re.sub(r"\s+", "", shown)
    assert all(word in shown for word in WORDS)


def test_wrong_usage_and_unusable_input_are_one_line_and_exit_code_2(names, tmp_path):
    source = str(names)
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 not really PAR1")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "thesis.doc").write_text("mine")
    (tmp_path / "file").write_text("mine")
    out = ["-o", str(tmp_path / "out")]
    lev, scores = ["--metric", "lev"], ["-o", str(tmp_path / "s.csv")]
    gated = ["score", source, "--left", "id", "--right", "text", *lev]
    wrong = {
        r"Missing argument 'INPUT'": ["dedup"],
        r"No such option: --colum\b.*--column": ["dedup", source, "--colum", "text", *out],
        r"No such command 'dedpu'": ["dedpu"],
        r"'--clusters'": ["dedup", source, *out, "--clusters", "chains"],
        r"'--threads'": ["dedup", source, *out, "--threads", "two"],
        r"'--max-distance'": ["dedup", source, *out, "--max-distance", "near"],
        r"name the output \(-o\)": ["dedup", source],
        r"no column 'txt'; did you mean 'text'\?": ["dedup", source, *out, "--column", "txt"],
        r"nams\.csv: no such file.*did you mean .*names\.csv": [
            "dedup", source.replace("names", "nams"), *out,
        ],
        r"empty: no data file in this folder": ["dedup", str(tmp_path / "empty"), *out],
        r"bad\.parquet: cannot be read as Parquet": ["dedup", str(tmp_path / "bad.parquet"), *out],
        r"unknown metric 'hammming'.*known: levenshtein": [
            "dedup", source, *out, "--metric", "hammming",
        ],
        r"all texts would be duplicates": ["dedup", source, *out, "--max-distance", "1"],
        r"from 0 to 1, got 80": ["dedup", source, *out, "--min-similarity", "80"],
        r"not both": ["dedup", source, *out, "--min-similarity", "0.8", "--max-distance", "1"],
        r"taken: was not written by|taken: exists": [
            "dedup", source, "-o", str(tmp_path / "taken"), "--overwrite",
        ],
        r"file: is a file": ["dedup", source, "-o", str(tmp_path / "file")],
        r"/proc/none/out: cannot be written": ["dedup", source, "-o", "/proc/none/out"],
        r"is the delimiter ','|no column": ["dedup", source, *out, "--delimiter", ";"],
        r"encoding 'latin-99'": ["dedup", source, *out, "--encoding", "latin-99"],
        r"a join needs a threshold": ["join", source, "--on", "text", "-o", "p.csv"],
        r"Missing option '--on'": ["join", source, "-o", "p.csv", "--max-distance", "1"],
        r"'-k'": ["top-k", source, source, "--on", "text", "-k", "0", "-o", "b.csv"],
        r"does not name a format": ["top-k", source, source, "--on", "text", "-o", "b.xls"],
        r"unknown normalisation 'uper'": ["dedup", source, *out, "--normalize", "uper"],
        r"nowhere to write; .* or ask for the --summary": ["score", source, "--metric", "lev"],
        r"Missing option '--metric'": ["score", source, *scores],
        r"no column 'output'. It has 'id', 'text'": ["score", source, *scores, *lev],
        r"left and right are both 'text'": [
            "score", source, *scores, *lev, "--left", "text", "--right", "text",
        ],
        r"-under lev=0.8:0.1: is on the mean.* use --fail-rows-under lev=0.8:0.1": [
            *gated, "--fail-under", "lev=0.8:0.1",
        ],
        r"--fail-under 0.8: names no metric and number; write levenshtein=0.8": [
            *gated, "--fail-under", "0.8",
        ],
        r"--fail-rows-under lev: names no metric": [*gated, "--fail-rows-under", "lev"],
        r"--fail-under lev=: '' is not a number": [*gated, "--fail-under", "lev="],
        r"--fail-rows-under lev=0.5:: '' is not": [*gated, "--fail-rows-under", "lev=0.5:"],
        r"--fail-rows-under lev=0.5:some: 'some' is not": [
            *gated, "--fail-rows-under", "lev=0.5:some",
        ],
        r"'osa' is not scored here; the metrics are lev": [*gated, "--fail-under", "osa=0.8"],
        r"lev=80: give numbers from 0 to 1": [*gated, "--fail-under", "lev=80"],
        r"'--score'": [*gated, "--score", "percent"],
        r"'--rows'": ["sample", str(tmp_path / "s.parquet"), "--rows", "-1"],
    }  # fmt: skip
    for message, (code, stdout, stderr) in zip(wrong, run_all(*wrong.values()), strict=True):
        assert (code, stdout) == (2, ""), (message, stderr)
        assert re.fullmatch(r"resemblance: \S[^\n]*\n", stderr), stderr
        assert re.search(message, stderr)
    assert visible(tmp_path) == ["bad.parquet", "empty", "file", "names.csv", "taken"]
    assert visible(tmp_path / "taken") == ["thesis.doc"]


def test_no_command_shows_the_help():
    (result,) = run_all([])
    assert result[:2] == [2, ""]
    assert "Commands:" in result[2]


def test_a_fault_of_ours_is_exit_code_1(names, tmp_path):
    code = (
        "import resemblance_io.jobs.dedup as job\n"
        "def broken(*a, **k): raise RuntimeError('boom')\n"
        f"job.find_duplicates = broken\n{MAIN}"
    )
    command = [sys.executable, "-P", "-c", code, "dedup", str(names), "-o", str(tmp_path / "out")]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("please report it: boom")
    assert "Traceback" in done.stderr
    assert visible(tmp_path) == ["names.csv"]


def test_standard_input_is_read_and_the_process_ends(tmp_path):  # C094
    lines = "".join(json.dumps({"text": text}) + "\n" for text in NAMES)
    process = start("dedup", "-", "-o", tmp_path / "out", stdin=subprocess.PIPE)
    stdout, stderr = process.communicate(lines, timeout=60)
    assert (process.returncode, stderr) == (0, "")
    assert "rows     6" in stdout
    clusters = pq.read_table(tmp_path / "out" / "clusters.parquet")
    assert set(clusters["file"].to_pylist()) == {"<stdin>"}


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_bar_on_a_terminal(names, tmp_path):
    import pty
    import termios

    parent, child = pty.openpty()
    termios.tcsetwinsize(child, (24, 80))
    command = [sys.executable, "-P", "-c", MAIN, "dedup", str(names), "-o", str(tmp_path / "out")]
    process = subprocess.Popen(command, env=environment(), stdout=child, stderr=child)
    os.close(child)
    shown = b""
    while True:
        try:
            piece = os.read(parent, 1 << 16)
        except OSError:  # Linux: the other end is closed
            break
        if not piece:
            break
        shown += piece
    os.close(parent)
    assert process.wait(60) == 0
    assert b"comparing:" in shown
    assert b"rows     6" in shown


def test_hash_seeds_and_threads_change_nothing(tmp_path):  # C044
    rs.io.sample(tmp_path / "c.parquet", rows=3000)
    for seed, threads in (("0", 1), ("1", 2)):
        arguments = ["dedup", "c.parquet", "-o", seed, "--threads", threads]
        command = [sys.executable, "-P", "-c", MAIN, *map(str, arguments)]
        env = environment(PYTHONHASHSEED=seed)
        done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert contents(tmp_path / "0") == contents(tmp_path / "1")


# -- interrupted, killed, started twice -----------------------------------------------------------


@pytest.fixture(scope="module")
def long_work(tmp_path_factory):
    """A source whose search takes a minute or more, its kernels in the cache."""
    path = tmp_path_factory.mktemp("long") / "long.parquet"
    rng = np.random.default_rng(0)
    letters = rng.integers(97, 123, (40_000, 600), np.uint8)
    texts = [row.tobytes().decode() for row in letters]
    pq.write_table(pa.table({"text": texts}), path)
    rs.dedup(texts[:500], min_similarity=0.5)
    return path


def wait_for(path, process):
    while not path.exists():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize(
    ("number", "code", "word", "delay"),
    [
        *((signal.SIGINT, 130, "interrupted", delay) for delay in (0.0, 0.3, 0.7, 1.5)),
        (signal.SIGTERM, 143, "terminated", 0.7),
    ],
)
def test_interrupts(long_work, tmp_path, number, code, word, delay):
    process = start(
        "dedup", long_work, "-o", tmp_path / "out", "--metric", "levenshtein", "--min-similarity",
        "0.5",
    )  # fmt: skip
    wait_for(tmp_path / ".out.staging", process)
    time.sleep(delay)
    process.send_signal(number)
    sent = time.monotonic()
    _, stderr = process.communicate(timeout=60)
    assert time.monotonic() - sent < 4  # two seconds, and what a busy machine adds
    assert (process.returncode, stderr) == (code, f"resemblance: {word}\n")
    assert visible(tmp_path) == []
    assert not (tmp_path / ".out.staging").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("delay", [0.0, 0.7])
def test_interrupted_scoring(long_work, tmp_path, delay):
    texts = pq.read_table(long_work)["text"]
    pairs = pa.table({"output": texts, "expected": texts.take(np.arange(len(texts))[::-1])})
    pq.write_table(pairs, tmp_path / "in.parquet")
    metric = ["--metric", "damerau_levenshtein"]
    process = start("score", tmp_path / "in.parquet", "-o", tmp_path / "s.parquet", *metric)
    wait_for(tmp_path / ".s.parquet.staging", process)
    time.sleep(delay)
    process.send_signal(signal.SIGINT)
    sent = time.monotonic()
    _, stderr = process.communicate(timeout=60)
    assert time.monotonic() - sent < 4
    assert (process.returncode, stderr) == (130, "resemblance: interrupted\n")
    assert visible(tmp_path) == ["in.parquet"]
    assert not (tmp_path / ".s.parquet.staging").exists()


def test_killed_at_any_moment_it_leaves_nothing_or_everything(tmp_path):  # C055
    rs.io.sample(tmp_path / "c.parquet", rows=20_000)
    arguments = ["dedup", tmp_path / "c.parquet", "-q", "--metric", "levenshtein", "-o"]
    begin = time.monotonic()
    assert run(*arguments, tmp_path / "whole").returncode == 0
    whole = contents(tmp_path / "whole")
    took = time.monotonic() - begin
    out = tmp_path / "out"
    for _ in range(4):
        process = start(*arguments, out)
        time.sleep(took * random.uniform(0.2, 1))
        process.kill()
        process.communicate()
        if out.exists():
            assert contents(out) == whole
            break
    else:
        assert run(*arguments, out).returncode == 0
    assert contents(out) == whole
    assert not (tmp_path / ".out.staging").exists()


def test_a_second_run_into_the_same_folder_is_refused(names, tmp_path):  # C061
    out = tmp_path / "out"
    with OutputFolder(out) as held:
        (result,) = run_all(["dedup", str(names), "-o", str(out)])
        assert result[0] == 2
        assert re.search("out: locked by another run", result[2])
        held.json("x.json", {})
    processes = [start("dedup", names, "-o", tmp_path / "both") for _ in range(2)]
    errors = [process.communicate(timeout=60)[1] for process in processes]
    assert sorted(process.returncode for process in processes) == [0, 2]
    assert re.fullmatch(
        r"resemblance: \S+both: (locked by another run|exists)[^\n]+\n", "".join(errors)
    )


# -- what starting costs --------------------------------------------------------------------------


def test_importing_the_io_layer_imports_little():
    code = "import sys, resemblance_io; print({'numpy', 'numba', 'pyarrow'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], env=environment(), capture_output=True, text=True
    )
    assert done.stdout == "set()\n", done.stderr


def test_commands_do_without_pandas(names, tmp_path):
    code = f"import atexit, sys\natexit.register(lambda: print('pandas' in sys.modules))\n{MAIN}"
    command = [sys.executable, "-P", "-c", code, "dedup", str(names), "-q", "-o"]
    done = subprocess.run(
        [*command, str(tmp_path / "out")], env=environment(), capture_output=True, text=True
    )
    assert done.stdout == "False\n", done.stderr
