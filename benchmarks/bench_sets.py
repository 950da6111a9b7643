"""Token sets: matrices against ``scipy.sparse``, joins against exact and approximate peers."""

from __future__ import annotations

import time

import numpy as np
import pytest

import resemblance as rs
from resemblance.tokens import Chars, Words, token_sets

FIRST = {100_000: 558_152}
"""Pairs of the first summaries at Jaccard 0.8 of words, as counted once by other means."""


@pytest.fixture(scope="module")
def column(shared):
    """All summaries that are not null, in the order of the file."""
    parquet = pytest.importorskip("pyarrow.parquet")
    path = shared / "data" / "package_names.parquet"
    return parquet.read_table(path, columns=["summary"])["summary"].drop_null()


# --- matrices ------------------------------------------------------------------------------------


@pytest.mark.parametrize("tokens", [Words(), Chars(3)], ids=str)
@pytest.mark.parametrize(
    "rows", [(1_000, 4_000), (2_000, 20_000)], ids=lambda rows: "x".join(map(str, rows))
)
def test_matrix(rows, tokens, summaries, compare):
    """Jaccard of summaries, one thread, strings in: at least 5 times the peer, which has its sets.

    The peer multiplies sparse matrices and turns the product into similarities.
    """
    sparse = pytest.importorskip("scipy.sparse")
    n, m = rows
    left, right = (rs.Strings.pack(part) for part in (summaries[:n], summaries[n : n + m]))
    metric = rs.Jaccard(tokens)
    sets = token_sets(left, right, tokens, False)
    a, b = (
        sparse.csr_matrix(
            (np.ones(len(side.ids), np.int32), side.ids, side.offsets),
            shape=(len(side), side.vocabulary),
        )
        for side in sets
    )
    sizes = [side.sizes for side in sets]

    def ours():
        return rs.cdist(left, right, metric, score="similarity", threads=1)

    def peer():
        shared = (a @ b.T).toarray()
        return shared / np.maximum(sizes[0][:, None] + sizes[1][None, :] - shared, 1)

    expected = peer()
    expected[np.ix_(sizes[0] == 0, sizes[1] == 0)] = 1.0
    np.testing.assert_array_equal(ours(), expected)
    compare(ours, peer, target=5, repeat=3)


def test_matrix_against_the_product_alone(summaries, compare):
    """The same words against the bare product, sparse and unscored: at least 5 times.

    Ours has 32 MB of scores to write where the peer has 10 MB of counts.
    """
    sparse = pytest.importorskip("scipy.sparse")
    left, right = (rs.Strings.pack(part) for part in (summaries[:1_000], summaries[1_000:5_000]))
    a, b = (
        sparse.csr_matrix(
            (np.ones(len(side.ids), np.int32), side.ids, side.offsets),
            shape=(len(side), side.vocabulary),
        )
        for side in token_sets(left, right, Words(), False)
    )
    out = np.empty((len(left), len(right)))

    def ours():
        return rs.cdist(left, right, rs.Jaccard(), score="similarity", out=out, threads=1)

    assert np.count_nonzero(ours()) == (a @ b.T).nnz
    compare(ours, lambda: a @ b.T, target=5)


# --- joins ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [100_000, 500_000])
def test_join(rows, column, benchmark, record):
    """Jaccard at least 0.8 of words, from Arrow, two threads: at least 20 times the peer.

    The peer has its sets ready made, of integers, and runs once.
    """
    peer = pytest.importorskip("SetSimilaritySearch")
    texts = column.slice(0, rows)
    seconds = []

    def ours():
        begin = time.perf_counter()
        pairs = rs.join(texts, metric=rs.Jaccard(), min_similarity=0.8, threads=2)
        seconds.append(time.perf_counter() - begin)
        return pairs

    pairs = ours()
    assert len(pairs.left) == FIRST.get(rows, len(pairs.left))
    seconds.clear()
    benchmark.pedantic(ours, rounds=5)
    mine = float(np.median(seconds))
    sets = [set(text.split()) for text in texts.to_pylist()]
    begin = time.perf_counter()
    found = peer.all_pairs(sets, similarity_func_name="jaccard", similarity_threshold=0.8)
    theirs = np.fromiter((min(i, j) * rows + max(i, j) for i, j, _ in found), np.int64)
    took = time.perf_counter() - begin
    # the peer leaves out texts without words, which are alike
    words = np.array([len(found) for found in sets])
    some = words[pairs.left] > 0
    np.testing.assert_array_equal(np.sort(theirs), (pairs.left * rows + pairs.right)[some])
    record(took / mine, 20, f"{mine:.2f} s against {took:.2f} s, {len(theirs):,} pairs")


def test_join_against_minhash(column, benchmark, record):
    """The same 100,000 rows: faster than MinHash LSH, which finds only some of the pairs."""
    datasketch = pytest.importorskip("datasketch")
    texts = column.slice(0, 100_000)
    sets = [{word.encode() for word in text.split()} for text in texts.to_pylist()]

    def ours():
        return rs.join(texts, metric=rs.Jaccard(), min_similarity=0.8, threads=2)

    pairs = ours()
    benchmark.pedantic(ours, rounds=3)
    mine = benchmark.stats.stats.median
    begin = time.perf_counter()
    lsh = datasketch.MinHashLSH(threshold=0.8, num_perm=128)
    sketches = datasketch.MinHash.bulk(sets, num_perm=128)
    with lsh.insertion_session() as session:
        for row, sketch in enumerate(sketches):
            session.insert(row, sketch)
    partners = [lsh.query(sketch) for sketch in sketches]
    took = time.perf_counter() - begin
    near = [set(found) for found in partners]
    met = sum(j in near[i] for i, j in zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))
    recall = met / len(pairs.left)
    record(took / mine, 1, f"{mine:.2f} s against {took:.2f} s, whose recall is {recall:.3f}")


# --- pairs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["jaccard", "sorensen_dice"])
def test_pairs(name, names, compare):
    """1,000,000 pairs of names by their characters, as many threads on both sides: 3 times."""
    polars = pytest.importorskip("polars")
    strsim = pytest.importorskip("polars_strsim")
    left = (names + names)[:1_000_000]
    frame = polars.DataFrame({"left": left, "right": left[1:] + left[:1]})
    record = {"jaccard": rs.Jaccard, "sorensen_dice": rs.Dice}[name]
    metric = record("chars:1", multiset=True)
    threads = polars.thread_pool_size()

    def ours():
        return rs.pairwise(frame["left"], frame["right"], metric, threads=threads)

    def peer():
        return frame.select(getattr(strsim, name)("left", "right")).to_series()

    np.testing.assert_allclose(ours(), peer().to_numpy(), rtol=1e-12)
    compare(ours, peer, target=3, repeat=3)
