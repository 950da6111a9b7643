"""From pairs to clusters: :func:`cluster`."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from resemblance.jit import kernel
from resemblance.strings import put

Method = Literal["star", "components"]


def cluster(
    pairs: Any,
    n: int,
    *,
    method: Method = "star",
    rank: ArrayLike | None = None,
) -> NDArray[np.int64]:
    """Choose the representative of each row from verified pairs.

    Parameters
    ----------
    pairs : Pairs, or tuple beginning with two arrays of rows
        Rows that are alike, in any order and direction.
    n : int
        Number of rows.
    method : {"star", "components"}
        ``"star"``: rows are taken by rank; each joins the first kept row it has a pair with, or
        is kept itself. So every row is alike to its representative. ``"components"``: all rows
        connected by any chain of pairs share the one that ranks first; the ends of a chain need
        not be alike.
    rank : array of shape (n,), optional
        What decides who is kept: the lowest value first, ties by row. Default: row order.

    Returns
    -------
    ndarray of int64, shape (n,)
        Row of the representative; a kept row is its own.

    Examples
    --------
    >>> import resemblance as rs
    >>> chain = ([0, 1, 2], [1, 2, 3])
    >>> rs.cluster(chain, 4), rs.cluster(chain, 4, method="components")
    (array([0, 0, 2, 2]), array([0, 0, 0, 0]))
    """
    left, right = (_rows(side) for side in pairs[:2])
    if left.shape != right.shape or left.ndim != 1:
        raise ValueError("pairs must hold two arrays of rows of the same length")
    for side in (left, right):
        if len(side) and (side.min() < 0 or side.max() >= n):
            raise ValueError(f"pairs name rows outside 0 to {n - 1}")
    ranks = np.arange(n) if rank is None else np.asarray(rank)
    if ranks.shape != (n,):
        raise ValueError(f"rank has shape {ranks.shape}, expected ({n},)")
    order = np.argsort(ranks, kind="stable")
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    if method == "star":
        return _star(order, place, *_neighbours(left, right, n))
    if method == "components":
        return _components(left, right, order, place)
    raise ValueError(f"method must be 'star' or 'components', got {method!r}")


def _rows(side: ArrayLike) -> NDArray[Any]:
    """Row numbers as an array; narrow ones as they are, since there may be many."""
    rows = np.ascontiguousarray(side)
    return rows if rows.dtype in (np.int32, np.int64) else rows.astype(np.int64)


@kernel
def _neighbours(left, right, n):
    """Both directions of the pairs as CSR."""
    starts = np.zeros(n + 1, np.int64)
    for p in range(len(left)):
        starts[left[p] + 1] += 1
        starts[right[p] + 1] += 1
    for i in range(n):
        starts[i + 1] += starts[i]
    at = np.empty_like(starts)
    put(starts, at, 0)
    partners = np.empty(starts[n], left.dtype)
    for p in range(len(left)):
        partners[at[left[p]]] = right[p]
        at[left[p]] += 1
        partners[at[right[p]]] = left[p]
        at[right[p]] += 1
    return starts, partners


@kernel
def _star(order, place, starts, partners):
    n = len(order)
    representative = np.full(n, -1, np.int64)
    for row in order:
        best = n
        for p in range(starts[row], starts[row + 1]):
            other = partners[p]
            if representative[other] == other:  # kept, so it ranks before this row
                best = min(best, place[other])
        representative[row] = row if best == n else order[best]
    return representative


@kernel
def _components(left, right, order, place):
    n = len(order)
    # Roots are places by rank, always the lowest of their tree.
    parent = np.empty(n, np.int64)
    for i in range(n):
        parent[i] = i
    for p in range(len(left)):
        a = place[left[p]]
        b = place[right[p]]
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        while parent[b] != b:
            parent[b] = parent[parent[b]]
            b = parent[b]
        if a < b:
            parent[b] = a
        else:
            parent[a] = b
    representative = np.empty(n, np.int64)
    for i in range(n):
        parent[i] = parent[parent[i]]  # parents come before their children, so are final
        representative[order[i]] = order[parent[i]]
    return representative
