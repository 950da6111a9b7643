"""Which rows of a column to keep: :func:`dedup`."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resemblance.cluster import Method, cluster
from resemblance.inputs import as_strings
from resemblance.jit import kernel
from resemblance.join import Found, Limit, Pairs, close_pairs, in_order
from resemblance.matrix import pairwise
from resemblance.metrics import AnyMetric, Metric, ScoringMetric, resolve
from resemblance.metrics.sets import SetMetric
from resemblance.strings import Distinct, Strings
from resemblance.threshold import check_threshold
from resemblance.tiles import Job, Progress
from resemblance.tokens import Words, is_space

if TYPE_CHECKING:
    from resemblance.normalize import Normalize

logger = logging.getLogger("resemblance")

KEEP = ("first", "last", "longest", "shortest")


class Duplicates(NamedTuple):
    """What :func:`dedup` found.

    Attributes
    ----------
    representative : ndarray of int64, shape (n,)
        The kept row that stands for each row; a kept row's own.
    score : ndarray of float64, shape (n,)
        Score of each removed row and its representative; NaN for kept rows.
    kept : ndarray of bool, shape (n,)
        Rows to keep, exactly one of each cluster.
    pairs : Pairs
        The verified pairs: those of different texts between the first rows that hold them, and
        each further row of a text with the first.
    """

    representative: NDArray[np.int64]
    score: NDArray[np.float64]
    kept: NDArray[np.bool_]
    pairs: Pairs


def dedup(
    texts: Any,
    metric: str | Metric = "jaccard",
    *,
    min_similarity: float | None = None,
    max_distance: float | None = None,
    keep: str | ArrayLike = "first",
    method: Method = "star",
    normalize: Normalize | None = None,
    threads: int | None = None,
    progress: Progress = False,
) -> Duplicates:
    """Find near-duplicates and decide which rows to keep.

    Parameters
    ----------
    texts : list, tuple, ndarray, Arrow column or Strings
        The texts. Null and blank ones (nothing but white space, normalised) are never duplicates.
    metric : str or Metric
        Name, alias or record; by default the Jaccard similarity of sets of words.
    min_similarity : float, optional
        Texts at least this similar are duplicates; 0.8 if neither threshold is given.
    max_distance : float, optional
        Texts at most this far apart are duplicates. Of a metric whose distance is ``1 -
        similarity`` it must be below 1, which all texts are within.
    keep : {"first", "last", "longest", "shortest"} or array of shape (n,)
        Which row of a cluster survives; an array ranks the rows, lowest first. Ties go to the
        earlier row.
    method : {"star", "components"}
        See :func:`resemblance.cluster`.
    normalize, threads, progress
        As for :func:`resemblance.cdist`.

    Returns
    -------
    Duplicates

    Examples
    --------
    >>> import resemblance as rs
    >>> texts = ["apple pie", "pear tart", "aple pie", "", ""]
    >>> found = rs.dedup(texts, "levenshtein", max_distance=1)
    >>> found.kept.tolist(), found.representative.tolist()
    ([True, True, False, True, True], [0, 1, 0, 3, 4])
    """
    metric = resolve(metric)
    if min_similarity is None and max_distance is None:
        min_similarity = 0.8
    check_limits(metric, min_similarity, max_distance)
    strings = as_strings(texts, "texts", normalize)
    n = len(strings)
    _warn_of_single_words(strings, metric)
    limit = Limit.of(metric, min_similarity, max_distance, [strings])
    rank = _rank(keep, strings)
    job = Job(threads, progress)
    # Rows of equal text always end in one cluster, under the row of best rank.
    different = _without_blanks(strings).distinct()
    near = close_pairs(different.strings, None, limit, job)
    best = _best_rows(different.group, rank, len(different.first))
    order = np.argsort(rank[best], kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    standing = cluster((near.left, near.right), len(best), method=method, rank=place)
    representative = np.arange(n)
    held = different.group >= 0
    representative[held] = best[standing[different.group[held]]]
    kept = representative == np.arange(n)
    score = np.full(n, np.nan)
    removed = np.flatnonzero(~kept)
    similar = max_distance is None
    score[removed] = pairwise(
        strings.take(removed),
        strings.take(representative[removed]),
        metric,
        score="similarity" if similar else "distance",
        threads=threads,
    )
    return Duplicates(representative, score, kept, _edges(different, near, strings, limit, similar))


LOOKED_AT = 1000
"""Texts, spread evenly, that tell whether a column has words."""


def _warn_of_single_words(strings: Strings, metric: AnyMetric) -> None:
    """Warn where words are compared and most texts have one only, as in scripts without spaces."""
    if not (isinstance(metric, SetMetric) and isinstance(metric.tokens, Words)):
        return
    rows = np.linspace(0, len(strings) - 1, min(len(strings), LOOKED_AT)).astype(np.int64)
    counts = [len(text.split()) for text in strings.take(rows).to_list() if text is not None]
    single, more = counts.count(1), sum(n > 1 for n in counts)
    if single > more:
        logger.warning(
            "%s of %s texts looked at are a single word, as in a script without spaces; if that is "
            "what they are, compare characters (%s:chars:3, or --tokens chars:3)",
            f"{single:,}",
            f"{single + more:,}",
            metric.name,
        )


def check_limits(
    metric: AnyMetric, min_similarity: float | None, max_distance: float | None
) -> None:
    """Refuse thresholds that are none, and a distance of edits for a metric that counts none."""
    check_threshold(min_similarity, max_distance)
    if isinstance(metric, ScoringMetric) and max_distance is not None and max_distance >= 1:
        raise ValueError(
            f"max_distance is {max_distance:g}, but {metric.name} distances are 1 - similarity, so "
            "all texts would be duplicates; use min_similarity, a distance below 1, or a metric "
            "that counts edits (metric 'levenshtein')"
        )


def _rank(keep: str | ArrayLike, strings: Strings) -> NDArray[Any]:
    n = len(strings)
    if not isinstance(keep, str):
        rank = np.asarray(keep)
        if rank.shape != (n,):
            raise ValueError(f"keep has shape {rank.shape}, expected ({n},)")
        return rank
    if keep == "first":
        return np.arange(n)
    if keep == "last":
        return np.arange(n)[::-1]
    if keep == "longest":
        return -strings.lengths
    if keep == "shortest":
        return strings.lengths
    raise ValueError(f"keep must be one of {', '.join(KEEP)} or an array, got {keep!r}")


def _without_blanks(strings: Strings) -> Strings:
    """The same rows, the blank ones null."""
    valid = ~strings.is_null & ~_blank(strings.data, strings.offsets)
    return Strings(strings.data, strings.offsets, valid)


def blank_rows(strings: Strings) -> NDArray[np.bool_]:
    """True where a row is not null but holds nothing but white space, shape (n,)."""
    return _blank(strings.data, strings.offsets) & ~strings.is_null


def _edges(
    different: Distinct, near: Found, strings: Strings, limit: Limit, similar: bool
) -> Pairs:
    """Verified pairs by row, sorted."""
    rows = np.flatnonzero(different.group >= 0)
    first = different.first[different.group[rows]]
    again = rows != first
    a = np.concatenate([different.first[near.left], first[again]])
    b = np.concatenate([different.first[near.right], rows[again]])
    equal = np.full(int(again.sum()), 0 if limit.counts else 1, near.value.dtype)
    value = np.concatenate([near.value, equal])
    left, right = np.minimum(a, b), np.maximum(a, b)
    del a, b
    left, right, value = in_order(left, right, value)
    lengths = strings.lengths
    scores = limit.scores(value, lengths[left], lengths[right], similar)
    whole = limit.counts and not similar
    return Pairs(left, right, scores.astype(near.value.dtype) if whole else scores)


@kernel
def _blank(data, offsets):
    """Rows of nothing but white space."""
    out = np.ones(len(offsets) - 1, np.bool_)
    for i in range(len(out)):
        for c in data[offsets[i] : offsets[i + 1]]:
            if not is_space(c):
                out[i] = False
                break
    return out


@kernel
def _best_rows(group, rank, n):
    """Row of best rank of each group."""
    best = np.full(n, -1, np.int64)
    for row in range(len(group)):
        g = group[row]
        if g >= 0 and (best[g] < 0 or rank[row] < rank[best[g]]):
            best[g] = row
    return best
