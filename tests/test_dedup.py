"""dedup: join, cluster and policy in one call."""

from __future__ import annotations

import functools
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import resemblance as rs
from strategies import columns, counts, examples, limited

KEEP = ("first", "last", "longest", "shortest")
METHODS = tuple(naive.CLUSTER)

apart = limited.filter(lambda limit: counts(limit[0]) or limit[1].get("max_distance", 0) < 1)
"""Any metric, and a threshold that not every pair of texts is within."""

dedup = functools.partial(rs.dedup, metric="levenshtein")


@given(columns(max_size=16), apart, st.sampled_from(KEEP), st.sampled_from(METHODS))
@examples(300)
def test_against_the_textbook(column, limit, keep, method):
    metric, threshold = limit
    found = rs.dedup(column, metric, keep=keep, method=method, **threshold)
    representative, pairs = naive.dedup(
        column, keep=keep, method=method, metric=naive.reference(metric), **threshold
    )
    assert found.representative.tolist() == representative
    assert found.kept.dtype == np.bool_
    assert found.kept.tolist() == [row == head for row, head in enumerate(representative)]
    edges = zip(found.pairs.left.tolist(), found.pairs.right.tolist(), strict=True)
    assert list(edges) == list(pairs)
    assert found.pairs.score.tolist() == list(pairs.values())


@given(columns(max_size=16), apart, st.sampled_from(KEEP))
@examples(100)
def test_every_removal_has_its_score(column, limit, keep):
    """A star's member scored against its representative, on the value that passed the threshold."""
    metric, threshold = limit
    reference = naive.reference(metric)
    kind = "distance" if "max_distance" in threshold else "similarity"
    limits = {"min_similarity": None, "max_distance": None} | threshold
    found = rs.dedup(column, metric, keep=keep, **threshold)
    for row in np.flatnonzero(~found.kept).tolist():
        head = int(found.representative[row])
        assert found.kept[head]
        assert found.score[row] == naive.score(column[row], column[head], kind, reference)
        assert naive.passes(column[row], column[head], **limits, metric=reference)
    assert np.isnan(found.score[found.kept]).all()


def test_case_c023_exactly_one_of_each_cluster_stays():
    texts = ["a b c d e", "a b c d e", "x y z", "a b c d e!", "x y z"]
    found = dedup(texts, min_similarity=0.9)
    assert found.representative.tolist() == [0, 0, 2, 0, 2]
    assert found.kept.tolist() == [True, False, True, False, False]
    assert found.score[[1, 3, 4]].tolist() == [1.0, 0.9, 1.0]
    last = dedup(texts, min_similarity=0.9, keep="last")
    assert last.representative.tolist() == [3, 3, 4, 3, 4]
    longest = dedup(texts, min_similarity=0.9, keep="longest")
    assert longest.representative.tolist() == [3, 3, 2, 3, 2]
    shortest = dedup(texts, min_similarity=0.9, keep="shortest")
    assert shortest.representative.tolist() == [0, 0, 2, 0, 2]


def test_case_c005_blank_rows_are_not_duplicates():
    texts = ["", "", "   ", "\t", "+", "-", "real text", None, None, "\u00a0", "\u2003\n", "   "]
    found = dedup(texts, min_similarity=0.5)
    assert found.kept.all()
    assert len(found.pairs.left) == 0
    # a distance would join "", "+" and "-": the blanks still stay out of it
    found = dedup(texts, max_distance=1)
    assert np.flatnonzero(~found.kept).tolist() == [5]


def test_invisible_characters_are_text():
    """A zero-width space and a NUL are not white space."""
    found = dedup(["\u200b", "\u200b", "\0", "\0"], min_similarity=1.0)
    assert found.kept.tolist() == [True, False, True, False]


def test_any_rank_may_decide():
    texts = ["abcde", "abcdX", "abcdY", "other"]
    assert dedup(texts, keep=[3, 1, 2, 0]).representative.tolist() == [1, 1, 1, 3]
    assert dedup(texts, keep=np.array([0.5, 0.5, 0.1, 0])).representative.tolist() == [
        2,
        2,
        2,
        3,
    ]
    with pytest.raises(ValueError, match="keep"):
        dedup(texts, keep=[1, 2])


def test_sets_of_words_by_default():
    found = rs.dedup(["a b c d e", "e d c b a", "a b c d", "a b c"])
    assert found.representative.tolist() == [0, 0, 0, 3]
    assert found.score[[1, 2]].tolist() == [1.0, 0.8]


def test_default_threshold():
    """Four fifths: one edit in five characters is a duplicate, one in four is not."""
    assert dedup(["abcde", "abcdX", "wxyz", "wxy!"]).kept.tolist() == [True, False, True, True]


@pytest.mark.parametrize("texts", [[], ["a"], [None], [""]])
def test_nothing_to_remove(texts):
    found = dedup(texts)
    assert found.representative.tolist() == list(range(len(texts)))
    assert found.kept.tolist() == [True] * len(texts)
    assert found.score.shape == (len(texts),)


@pytest.mark.parametrize(
    "options",
    [{"keep": "best"}, {"keep": None}, {"method": "single"}, {"min_similarity": 2.0},
     {"min_similarity": 0.5, "max_distance": 1},     {"max_distance": -1}],
    ids=str,
)  # fmt: skip
def test_wrong_arguments(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        dedup(["a", "b"], **options)


# --- what may not matter -------------------------------------------------------------------------

ROWS = [f"{w} {n}" for w in ("red fox", "red fax", "rad fox") for n in range(200)]


@given(columns(max_size=16), st.data())
@examples(60)
def test_order_of_rows_does_not_change_components(column, data):
    order = data.draw(st.permutations(range(len(column))))
    found = dedup([column[row] for row in order], method="components", min_similarity=0.7)
    groups: dict[int, set[int]] = {}
    for place, head in enumerate(found.representative.tolist()):
        groups.setdefault(head, set()).add(order[place])
    expected: dict[int, set[int]] = {}
    heads = naive.dedup(column, method="components", min_similarity=0.7)[0]
    for row, head in enumerate(heads):
        expected.setdefault(head, set()).add(row)
    assert sorted(map(sorted, groups.values())) == sorted(map(sorted, expected.values()))


@pytest.mark.jit
def test_case_c044_order_of_files_and_threads():
    first = dedup(ROWS, max_distance=1, threads=1)
    for threads in (2, 3, None):
        again = dedup(ROWS, max_distance=1, threads=threads)
        np.testing.assert_array_equal(again.representative, first.representative)
        np.testing.assert_array_equal(again.pairs.left, first.pairs.left)
        np.testing.assert_array_equal(again.pairs.right, first.pairs.right)
    pairs = {
        frozenset((ROWS[i], ROWS[j]))
        for i, j in zip(first.pairs.left, first.pairs.right, strict=True)
    }
    back = dedup(ROWS[::-1], max_distance=1)
    assert pairs == {
        frozenset((ROWS[::-1][i], ROWS[::-1][j]))
        for i, j in zip(back.pairs.left, back.pairs.right, strict=True)
    }


@pytest.mark.jit
def test_case_c044_hash_seed():
    code = f"""
import hashlib
import resemblance as rs
found = rs.dedup({ROWS!r}, 'levenshtein', min_similarity=0.85)
parts = found.representative, found.kept, found.pairs.left, found.pairs.right, found.pairs.score
print(hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest())
"""
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(digests) == 1
