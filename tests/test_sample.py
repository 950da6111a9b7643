"""The synthetic corpus: its truth holds, it is the same every time, and it fails cleanly."""

from __future__ import annotations

import hashlib
import math
import unicodedata
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from naive import levenshtein
from resemblance_io.errors import InputError
from resemblance_io.jobs import sample as job
from resemblance_io.jobs.sample import KINDS, SCHEMA, TRUTH_SCHEMA, sample


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict], list[dict]]:
    path = tmp_path_factory.mktemp("corpus") / "corpus.parquet"
    done = sample(path, rows=5_000, seed=7)
    assert (done.path, done.rows) == (path, 5_000)
    texts, truth = pq.read_table(done.path), pq.read_table(done.truth)
    assert texts.schema.equals(SCHEMA)
    assert truth.schema.equals(TRUTH_SCHEMA)
    assert done.kinds == {kind: truth["kind"].to_pylist().count(kind) for kind in KINDS}
    return texts.to_pylist(), truth.to_pylist()


def test_rows_are_numbered(corpus):
    texts, truth = corpus
    assert [row["id"] for row in texts] == [row["row"] for row in truth] == list(range(5_000))
    assert {row["source"] for row in texts} == set(job.SOURCES)


def test_planted_copies_are_what_the_truth_says(corpus):
    texts, truth = corpus
    checked = Counter()
    for row, label in zip(texts, truth, strict=True):
        text, kind = row["text"], label["kind"]
        original, head = texts[label["cluster"]]["text"], truth[label["cluster"]]
        copies = ("original", "exact", "edited", "shuffled")
        assert head["kind"] == "original" if kind in copies else label["cluster"] == label["row"]
        if kind == "exact":
            assert text == original
        elif kind == "edited":
            # a long pair costs the plain dynamic programme too much
            if len(original) < 200:
                most = max(1, math.ceil(0.05 * len(original)))
                assert 1 <= levenshtein(text, original) <= most
            assert text != original
        elif kind == "shuffled":
            assert text != original
            letters = [
                sorted(c for c in t.casefold() if c not in " .。।!") for t in (text, original)
            ]
            assert letters[0] == letters[1]
        elif kind == "empty":
            assert text is not None
            assert not text.strip()
        elif kind == "null":
            assert text is None
        checked[kind] += 1
    assert all(checked[kind] > 40 for kind in KINDS)


def test_nothing_else_is_repeated(corpus):
    texts, truth = corpus
    seen: dict[str, int] = {}
    for row, label in zip(texts, truth, strict=True):
        if label["kind"] not in ("empty", "null"):
            assert seen.setdefault(row["text"], label["cluster"]) == label["cluster"]


def test_boilerplate_is_shared_by_different_texts(corpus):
    texts, truth = corpus
    framed = [t["text"] for t, x in zip(texts, truth, strict=True) if x["kind"] == "boilerplate"]
    openings = Counter(text[:8] for text in framed)
    assert max(openings.values()) > 20
    assert len(set(framed)) == len(framed)


def test_scripts_and_lengths(corpus):
    texts, _ = corpus
    names = Counter(unicodedata.name(c, "?").split()[0] for t in texts for c in (t["text"] or ""))
    for script in ("LATIN", "CYRILLIC", "GREEK", "CJK", "ARABIC", "DEVANAGARI"):
        assert names[script] > 1_000, script
    assert any(ord(c) > 0xFFFF for t in texts for c in (t["text"] or ""))
    lengths = sorted(len(t["text"]) for t in texts if t["text"])
    assert lengths[len(lengths) // 2] < 50 < 400 < lengths[-1]


def test_same_on_every_platform(tmp_path):
    """Digest of the text itself, so that a change of generator cannot go unnoticed."""
    done = sample(tmp_path / "a.parquet", rows=1_000, seed=3)
    digest = hashlib.sha256()
    for text in pq.read_table(done.path)["text"].to_pylist():
        digest.update(repr(text).encode())
    assert digest.hexdigest()[:16] == "16b60a800e87feb9"


def test_seed_decides(tmp_path):
    files = [
        sample(tmp_path / f"{name}.parquet", rows=500, seed=seed)
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    ]
    a, b, c = ((f.path.read_bytes(), f.truth.read_bytes()) for f in files)
    assert a == b
    assert a[0] != c[0]
    assert a[1] != c[1]


def test_blocks_do_not_show(tmp_path, monkeypatch):
    whole = sample(tmp_path / "a.parquet", rows=1_000)
    monkeypatch.setattr(job, "BLOCK_ROWS", 64)
    parts = sample(tmp_path / "b.parquet", rows=1_000)
    assert pq.read_table(whole.path).equals(pq.read_table(parts.path))
    assert pq.read_table(whole.truth).equals(pq.read_table(parts.truth))


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 99, 100, 101])
def test_any_number_of_rows(tmp_path, rows):
    done = sample(tmp_path / "few.parquet", rows=rows)
    texts, truth = pq.read_table(done.path), pq.read_table(done.truth)
    assert texts.num_rows == truth.num_rows == rows == sum(done.kinds.values())
    assert texts.schema.equals(SCHEMA)
    kinds = truth["kind"].to_pylist()
    assert all(kinds[c] == kinds[r] or kinds[c] == "original"
               for r, c in enumerate(truth["cluster"].to_pylist()))  # fmt: skip


def test_formats_hold_the_same_rows(tmp_path):
    parquet = pq.read_table(sample(tmp_path / "p.parquet", rows=300).path)
    arrow = sample(tmp_path / "a.arrow", rows=300)
    assert arrow.truth == tmp_path / "a.truth.parquet"
    assert pa.ipc.open_file(arrow.path).read_all().cast(SCHEMA).equals(parquet)
    csv = pa.csv.read_csv(
        sample(tmp_path / "c.csv", rows=300).path,
        parse_options=pa.csv.ParseOptions(newlines_in_values=True),
        convert_options=pa.csv.ConvertOptions(
            column_types=SCHEMA, strings_can_be_null=True, quoted_strings_can_be_null=False
        ),
    )
    assert csv.equals(parquet)


def test_existing_files_are_kept(tmp_path):
    first = sample(tmp_path / "x.parquet", rows=10)
    before = first.path.read_bytes()
    with pytest.raises(InputError, match=r"x\.parquet"):
        sample(tmp_path / "x.parquet", rows=20)
    assert first.path.read_bytes() == before
    assert sample(tmp_path / "x.parquet", rows=20, overwrite=True).rows == 20
    assert pq.read_metadata(tmp_path / "x.parquet").num_rows == 20


def test_failure_leaves_nothing(tmp_path, monkeypatch):
    blocks = job._blocks

    def failing(rows: int, seed: int):
        yield from blocks(rows, seed)
        raise KeyboardInterrupt

    monkeypatch.setattr(job, "_blocks", failing)
    with pytest.raises(KeyboardInterrupt):
        sample(tmp_path / "x.parquet", rows=200)
    assert list(tmp_path.glob("[!.]*")) == []


@pytest.mark.parametrize(
    ("to", "options", "message"),
    [
        ("x.parquet", {"rows": -1}, "rows"),
        ("x.parquet", {"rows": 1 << 31}, "rows"),
        ("x.parquet", {"rows": 1, "seed": -1}, "seed"),
        ("x.xlsx", {"rows": 1}, "parquet"),
    ],
)
def test_wrong_arguments(tmp_path: Path, to, options, message):
    with pytest.raises(InputError, match=message):
        sample(tmp_path / to, **options)
    assert list(tmp_path.glob("[!.]*")) == []
