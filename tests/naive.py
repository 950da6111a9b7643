"""Textbook references: what kernels and public calls must equal. Plain Python, no cleverness.

Nothing here imports the package under test, Numba or NumPy. A missing string is ``None``; a missing
score is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Texts = Sequence[str | None]
Pair = tuple[int, int]

NAN = math.nan


# --- one pair ------------------------------------------------------------------------------------


def levenshtein(a: str, b: str) -> int:
    """Wagner and Fischer's dynamic programme over code points, two rows of the table at a time."""
    above = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            row.append(min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (x != y)))
        above = row
    return above[-1]


def similarity(a: str, b: str) -> float:
    """``(longer - distance) / longer``; two empty strings are equal."""
    longer = max(len(a), len(b))
    return 1.0 if longer == 0 else (longer - levenshtein(a, b)) / longer


def score(a: str | None, b: str | None, kind: str) -> float:
    """Score of one pair; ``kind`` is ``"distance"`` or ``"similarity"``, null scores NaN."""
    if a is None or b is None:
        return NAN
    return levenshtein(a, b) if kind == "distance" else similarity(a, b)


# --- many pairs ----------------------------------------------------------------------------------


def cdist(left: Texts, right: Texts | None = None, kind: str = "distance") -> list[list[float]]:
    right = left if right is None else right
    return [[score(a, b, kind) for b in right] for a in left]


def pdist(texts: Texts, kind: str = "distance") -> list[float]:
    """Upper triangle without the diagonal, row by row: SciPy's condensed order."""
    n = len(texts)
    return [score(texts[i], texts[j], kind) for i in range(n) for j in range(i + 1, n)]


def pairwise(left: Texts, right: Texts, kind: str = "similarity") -> list[float]:
    return [score(a, b, kind) for a, b in zip(left, right, strict=True)]


def passes(
    a: str | None, b: str | None, min_similarity: float | None, max_distance: float | None
) -> bool:
    """Whether a pair is within the thresholds, on the very values an unfiltered call returns."""
    if a is None or b is None:
        return False
    if max_distance is not None and levenshtein(a, b) > max_distance:
        return False
    return min_similarity is None or similarity(a, b) >= min_similarity


def join(
    left: Texts,
    right: Texts | None = None,
    *,
    min_similarity: float | None = None,
    max_distance: int | None = None,
) -> dict[Pair, float]:
    """Every pair within the threshold with its score, in order of (left, right)."""
    kind = "similarity" if max_distance is None else "distance"
    found = {}
    for i, a in enumerate(left):
        others = enumerate(left[i + 1 :], i + 1) if right is None else enumerate(right)
        for j, b in others:
            if passes(a, b, min_similarity, max_distance):
                found[i, j] = score(a, b, kind)
    return found


def top_k(
    queries: Texts,
    choices: Texts,
    k: int,
    kind: str = "similarity",
    *,
    min_similarity: float | None = None,
    max_distance: int | None = None,
) -> tuple[list[list[int]], list[list[float]]]:
    """Best ``k`` choices of each query, ties by lower index, padded with -1 and NaN."""
    index, scores = [], []
    for a in queries:
        ranked = sorted(
            (-score(a, b, kind) if kind == "similarity" else score(a, b, kind), j)
            for j, b in enumerate(choices)
            if passes(a, b, min_similarity, max_distance)
        )[:k]
        best = [j for _, j in ranked]
        padding = k - len(best)
        index.append(best + [-1] * padding)
        scores.append([score(a, choices[j], kind) for j in best] + [NAN] * padding)
    return index, scores


# --- clusters ------------------------------------------------------------------------------------


def _order(n: int, rank: Sequence[float] | None) -> list[int]:
    """Rows in the order they are considered: lower rank first, ties by row."""
    return sorted(range(n), key=lambda row: (0 if rank is None else rank[row], row))


def star(pairs: Sequence[Pair], n: int, rank: Sequence[float] | None = None) -> list[int]:
    """Each row joins the first kept row it has a pair with, or is kept itself; no chaining."""
    linked = {frozenset(pair) for pair in pairs}
    representative = list(range(n))
    kept: list[int] = []
    for row in _order(n, rank):
        for other in kept:
            if frozenset((row, other)) in linked:
                representative[row] = other
                break
        else:
            kept.append(row)
    return representative


def components(pairs: Sequence[Pair], n: int, rank: Sequence[float] | None = None) -> list[int]:
    """Rows joined by any chain of pairs share the chain's first row in order of rank."""
    group = list(range(n))
    changed = True
    while changed:
        changed = False
        for i, j in pairs:
            low, high = sorted((group[i], group[j]))
            if low != high:
                group = [low if g == high else g for g in group]
                changed = True
    first: dict[int, int] = {}
    for row in _order(n, rank):
        first.setdefault(group[row], row)
    return [first[g] for g in group]


CLUSTER = {"star": star, "components": components}


# --- deduplication -------------------------------------------------------------------------------


def keep_rank(texts: Texts, keep: str) -> list[int]:
    """The rank each policy gives to a row: the lowest rank of a cluster is the row that stays."""
    lengths = [0 if text is None else len(text) for text in texts]
    return {
        "first": list(range(len(texts))),
        "last": [-row for row in range(len(texts))],
        "longest": [-length for length in lengths],
        "shortest": lengths,
    }[keep]


def blank(text: str | None) -> bool:
    return text is None or not text.strip()


def dedup(
    texts: Texts,
    *,
    min_similarity: float | None = None,
    max_distance: int | None = None,
    keep: str = "first",
    method: str = "star",
) -> tuple[list[int], dict[Pair, float]]:
    """Representative of each row, and the pairs to show; blank rows are never duplicates.

    Of exact copies only the first row's pairs are shown, and its pairs with the others.
    """
    candidates = [None if blank(text) else text for text in texts]
    pairs = join(candidates, min_similarity=min_similarity, max_distance=max_distance)
    representative = CLUSTER[method](list(pairs), len(texts), keep_rank(texts, keep))
    first = [candidates.index(text) for text in candidates]
    shown = {
        (i, j): score for (i, j), score in pairs.items() if first[i] == i and first[j] in (i, j)
    }
    return representative, shown
