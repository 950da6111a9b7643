"""Textbook references: what kernels and public calls must equal. Plain Python, no cleverness.

Nothing here imports the package under test, Numba or NumPy. A missing string is ``None``; a missing
score is NaN. Characters are code points; of two empty strings the similarity is 1, of one it is 0.
"""

from __future__ import annotations

import math
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

Texts = Sequence[str | None]
Pair = tuple[int, int]

NAN = math.nan


# --- edits of one pair ---------------------------------------------------------------------------


def levenshtein(a: str, b: str) -> int:
    """Wagner and Fischer's dynamic programme over code points, two rows of the table at a time."""
    above = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            row.append(min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (x != y)))
        above = row
    return above[-1]


def osa(a: str, b: str) -> int:
    """Optimal string alignment: neighbours may be swapped, no character is edited twice."""
    table = [list(range(len(b) + 1))]
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            cost = min(table[-1][j] + 1, row[j - 1] + 1, table[-1][j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and y == a[i - 2]:
                cost = min(cost, table[-2][j - 2] + 1)
            row.append(cost)
        table.append(row)
    return table[-1][-1]


def damerau_levenshtein(a: str, b: str) -> int:
    """Lowrance and Wagner's full table: between two swapped characters others may be edited."""
    table = [
        [i + j if i == 0 or j == 0 else 0 for j in range(len(b) + 1)] for i in range(len(a) + 1)
    ]
    row_of: dict[str, int] = {}  # the last row of each character of ``a``
    for i, x in enumerate(a, 1):
        column_of_x = 0  # the last column where ``b`` has this row's character
        for j, y in enumerate(b, 1):
            cost = min(table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + (x != y))
            above, before = row_of.get(y, 0), column_of_x
            if above and before:
                between = (i - above - 1) + (j - before - 1)
                cost = min(cost, table[above - 1][before - 1] + between + 1)
            table[i][j] = cost
            if x == y:
                column_of_x = j
        row_of[x] = i
    return table[-1][-1]


def common_subsequence(a: str, b: str) -> int:
    """Length of the longest sequence of characters that both hold in order."""
    above = [0] * (len(b) + 1)
    for x in a:
        row = [0]
        for j, y in enumerate(b, 1):
            row.append(above[j - 1] + 1 if x == y else max(above[j], row[j - 1]))
        above = row
    return above[-1]


def indel(a: str, b: str) -> int:
    """Insertions and deletions alone."""
    return len(a) + len(b) - 2 * common_subsequence(a, b)


def lcsseq(a: str, b: str) -> int:
    """Characters of the longer string outside the longest common subsequence."""
    return longer(a, b) - common_subsequence(a, b)


def hamming(a: str, b: str, *, pad: bool = True) -> float:
    """Places that differ; past the shorter string's end all do, or nothing is defined."""
    if len(a) != len(b) and not pad:
        return NAN
    return sum(x != y for x, y in zip(a, b, strict=False)) + abs(len(a) - len(b))


def common_prefix(a: str, b: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))


def prefix(a: str, b: str) -> int:
    return longer(a, b) - common_prefix(a, b)


def postfix(a: str, b: str) -> int:
    return longer(a, b) - common_prefix(a[::-1], b[::-1])


def longer(a: str, b: str) -> int:
    return max(len(a), len(b))


def both(a: str, b: str) -> int:
    return len(a) + len(b)


# --- Jaro's family -------------------------------------------------------------------------------


def jaro(a: str, b: str, *, floor_transpositions: bool = True) -> float:
    """Matches within half the longer length, taken greedily from the left; the sum in this order.

    Pairs worth exactly 7/10 come out just above it this way.
    """
    if not a or not b:
        return float(a == b)
    window = max(longer(a, b) // 2 - 1, 0)
    partner: list[int | None] = [None] * len(b)  # where in ``a`` each place of ``b`` is matched
    matched = []
    for i, x in enumerate(a):
        for j in range(max(i - window, 0), min(i + window + 1, len(b))):
            if partner[j] is None and b[j] == x:
                partner[j] = i
                matched.append(x)
                break
    m = len(matched)
    if m == 0:
        return 0.0
    others = [y for y, i in zip(b, partner, strict=True) if i is not None]
    moved = sum(x != y for x, y in zip(matched, others, strict=True))
    t = moved // 2 if floor_transpositions else moved / 2
    return (m / len(a) + m / len(b) + (m - t) / m) / 3


def jaro_winkler(
    a: str,
    b: str,
    *,
    prefix_weight: float = 0.1,
    boost_threshold: float = 0.7,
    floor_transpositions: bool = True,
    prefix_cap: int | None = 4,
    scale_prefix: bool = False,
) -> float:
    """Jaro, and a share of what it lacks for each character of a common prefix."""
    j = jaro(a, b, floor_transpositions=floor_transpositions)
    if not j > boost_threshold:
        return j
    shared = common_prefix(a, b)
    if prefix_cap is not None:
        shared = min(shared, prefix_cap)
    weight = prefix_weight
    if scale_prefix:
        weight = min(weight, 1 / max(longer(a, b), 1))
    return min(j + (shared * weight) * (1.0 - j), 1.0)


# --- sets of tokens ------------------------------------------------------------------------------


def tokens(text: str, unit: str = "words", n: int = 1, multiset: bool = False) -> set[Any]:
    """Runs of ``n`` words or characters; a text with fewer is one token, one with none has none.

    In a multiset each further occurrence of a token is a token of its own.
    """
    units = text.split() if unit == "words" else list(text)
    runs = [tuple(units[i : i + n]) for i in range(len(units) - n + 1)]
    if units and not runs:
        runs = [tuple(units)]
    if not multiset:
        return set(runs)
    seen: Counter[tuple[str, ...]] = Counter()
    numbered = set()
    for run in runs:
        numbered.add((run, seen[run]))
        seen[run] += 1
    return numbered


def jaccard(a: set[Any], b: set[Any]) -> float:
    return len(a & b) / len(a | b)


def dice(a: set[Any], b: set[Any]) -> float:
    return 2 * len(a & b) / (len(a) + len(b))


def overlap(a: set[Any], b: set[Any]) -> float:
    return len(a & b) / min(len(a), len(b))


def cosine(a: set[Any], b: set[Any]) -> float:
    return len(a & b) / math.sqrt(len(a) * len(b))


# --- normalisation -------------------------------------------------------------------------------


def normalized(
    text: str,
    *,
    unicode: str | None = None,
    case: str | None = None,
    punctuation: str | None = None,
    whitespace: str | None = None,
    strip: bool = False,
) -> str:
    """Steps in the order of the parameters, each by Python's own functions."""
    if unicode:
        text = unicodedata.normalize(unicode, text)
    if case:
        text = getattr(text, case)()
    if punctuation:
        text = "".join(
            c
            for c in text
            if c not in string.punctuation
            and (punctuation == "ascii" or not unicodedata.category(c).startswith("P"))
        )
    if whitespace:
        text = re.sub(r"\s+", " " if whitespace == "collapse" else "", text)
    return text.strip() if strip else text


# --- references ----------------------------------------------------------------------------------


class Reference(NamedTuple):
    """What a metric says of two strings."""

    distance: Callable[[str, str], float]
    similarity: Callable[[str, str], float]


def counting(
    distance: Callable[[str, str], float], size: Callable[[str, str], int] = longer
) -> Reference:
    """Of a metric that counts: what the distance lacks to its largest, two empty strings are 1."""

    def similarity(a: str, b: str) -> float:
        most = size(a, b)
        return 1.0 if most == 0 else (most - distance(a, b)) / most

    return Reference(distance, similarity)


def scoring(similarity: Callable[[str, str], float]) -> Reference:
    """Of a metric that scores: the distance is what the similarity lacks to 1."""
    return Reference(lambda a, b: 1.0 - similarity(a, b), similarity)


def of_tokens(
    formula: Callable[[set[Any], set[Any]], float], unit: str, n: int, multiset: bool
) -> Reference:
    """Of a metric of two sets of tokens; two without tokens are equal, one shares nothing."""

    def similarity(a: str, b: str) -> float:
        left, right = tokens(a, unit, n, multiset), tokens(b, unit, n, multiset)
        return formula(left, right) if left and right else float(left == right)

    return scoring(similarity)


COUNTING = {
    "levenshtein": counting(levenshtein),
    "osa": counting(osa),
    "damerau_levenshtein": counting(damerau_levenshtein),
    "indel": counting(indel, both),
    "lcsseq": counting(lcsseq),
    "prefix": counting(prefix),
    "postfix": counting(postfix),
}
SCORING = {"jaro": jaro, "jaro_winkler": jaro_winkler}
SETS = {"jaccard": jaccard, "dice": dice, "overlap": overlap, "cosine": cosine}

LEVENSHTEIN = COUNTING["levenshtein"]


def reference(metric: Any) -> Reference:
    """The reference of a record, known by its name and the values of its fields."""
    options = vars(metric)
    if metric.name in COUNTING:
        return COUNTING[metric.name]
    if metric.name == "hamming":
        return counting(lambda a, b: hamming(a, b, **options))
    if metric.name in SCORING:
        return scoring(lambda a, b: SCORING[metric.name](a, b, **options))
    unit = options["tokens"]
    return of_tokens(SETS[metric.name], type(unit).__name__.lower(), unit.n, options["multiset"])


# --- many pairs ----------------------------------------------------------------------------------


def score(a: str | None, b: str | None, kind: str, metric: Reference = LEVENSHTEIN) -> float:
    """Score of one pair; ``kind`` is ``"distance"`` or ``"similarity"``, null scores NaN."""
    if a is None or b is None:
        return NAN
    return metric.distance(a, b) if kind == "distance" else metric.similarity(a, b)


def cdist(
    left: Texts,
    right: Texts | None = None,
    kind: str = "distance",
    metric: Reference = LEVENSHTEIN,
) -> list[list[float]]:
    right = left if right is None else right
    return [[score(a, b, kind, metric) for b in right] for a in left]


def pdist(texts: Texts, kind: str = "distance", metric: Reference = LEVENSHTEIN) -> list[float]:
    """Upper triangle without the diagonal, row by row: SciPy's condensed order."""
    n = len(texts)
    return [score(texts[i], texts[j], kind, metric) for i in range(n) for j in range(i + 1, n)]


def pairwise(
    left: Texts, right: Texts, kind: str = "similarity", metric: Reference = LEVENSHTEIN
) -> list[float]:
    return [score(a, b, kind, metric) for a, b in zip(left, right, strict=True)]


def passes(
    a: str | None,
    b: str | None,
    min_similarity: float | None,
    max_distance: float | None,
    metric: Reference = LEVENSHTEIN,
) -> bool:
    """Whether a pair is within the threshold, on the very value an unfiltered call returns.

    A pair without a score is never in, whatever the threshold.
    """
    if max_distance is not None:
        return score(a, b, "distance", metric) <= max_distance
    least = 0.0 if min_similarity is None else min_similarity
    return score(a, b, "similarity", metric) >= least


def join(
    left: Texts,
    right: Texts | None = None,
    *,
    min_similarity: float | None = None,
    max_distance: float | None = None,
    metric: Reference = LEVENSHTEIN,
) -> dict[Pair, float]:
    """Every pair within the threshold with its score, in order of (left, right)."""
    kind = "similarity" if max_distance is None else "distance"
    found = {}
    for i, a in enumerate(left):
        others = enumerate(left[i + 1 :], i + 1) if right is None else enumerate(right)
        for j, b in others:
            if passes(a, b, min_similarity, max_distance, metric):
                found[i, j] = score(a, b, kind, metric)
    return found


def top_k(
    queries: Texts,
    choices: Texts,
    k: int,
    kind: str = "similarity",
    *,
    min_similarity: float | None = None,
    max_distance: float | None = None,
    metric: Reference = LEVENSHTEIN,
) -> tuple[list[list[int]], list[list[float]]]:
    """Best ``k`` choices of each query, ties by lower index, padded with -1 and NaN."""
    sign = -1 if kind == "similarity" else 1
    index, scores = [], []
    for a in queries:
        ranked = sorted(
            (sign * score(a, b, kind, metric), j)
            for j, b in enumerate(choices)
            if passes(a, b, min_similarity, max_distance, metric)
        )[:k]
        padding = k - len(ranked)
        index.append([j for _, j in ranked] + [-1] * padding)
        scores.append([sign * value for value, _ in ranked] + [NAN] * padding)
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
    max_distance: float | None = None,
    keep: str = "first",
    method: str = "star",
    metric: Reference = LEVENSHTEIN,
) -> tuple[list[int], dict[Pair, float]]:
    """Representative of each row, and the pairs to show; blank rows are never duplicates.

    Of exact copies only the first row's pairs are shown, and its pairs with the others.
    """
    candidates = [None if blank(text) else text for text in texts]
    pairs = join(
        candidates, min_similarity=min_similarity, max_distance=max_distance, metric=metric
    )
    representative = CLUSTER[method](list(pairs), len(texts), keep_rank(texts, keep))
    first = [candidates.index(text) for text in candidates]
    shown = {
        (i, j): score for (i, j), score in pairs.items() if first[i] == i and first[j] in (i, j)
    }
    return representative, shown
