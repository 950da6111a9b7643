"""Values known from elsewhere, each with the convention that gives it and who uses that.

``conventions.json`` holds groups of pairs: both texts, the exact score (a fraction, or a decimal
good to 1e-15 where it is no fraction), the digits published where there are any, the source. Rows
of the case bank begin with C; text_peers and seed_systems are pages of research beside the
repository. None of the values comes from the package or from :mod:`naive`.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import naive
import resemblance as rs
from resemblance.metrics import Metric, resolve

EXACT = 1e-12


class Way(NamedTuple):
    """How pairs are scored: what the parameters of a call are made from."""

    metric: str
    options: str
    normalize: str
    score: str

    @property
    def record(self) -> Metric:
        return dataclasses.replace(resolve(self.metric), **json.loads(self.options))

    @property
    def arguments(self) -> dict:
        steps = json.loads(self.normalize)
        normalize = rs.Normalize(**steps) if steps else None
        return {"metric": self.record, "score": self.score, "normalize": normalize}


class Known(NamedTuple):
    a: str
    b: str
    expected: float
    published: str | None
    origin: str


def load() -> dict[Way, list[Known]]:
    """All pairs by the way they are scored: few calls, and columns of mixed lengths and scripts."""
    ways = defaultdict(list)
    text = Path(__file__).with_name("conventions.json").read_text(encoding="utf-8")
    for group in json.loads(text):
        for metric in group["metrics"]:
            options, normalize = (json.dumps(group.get(p, {})) for p in ("options", "normalize"))
            way = Way(metric, options, normalize, group["score"])
            for a, b, expected, published, source in group["pairs"]:
                score = math.nan if expected == "nan" else float(Fraction(expected))
                origin = f"{group['convention']}; {source}"
                ways[way].append(Known(a, b, score, published, origin))
    return ways


KNOWN = load()
ways = pytest.mark.parametrize("way", KNOWN, ids=lambda way: "-".join(way).replace("{}", ""))


def check(way: Way, found: object) -> None:
    wrong = [
        (float(score), row)
        for score, row in zip(found, KNOWN[way], strict=True)
        if not np.isclose(score, row.expected, rtol=0, atol=EXACT, equal_nan=True)
    ]
    assert not wrong


def test_exact_values_round_to_those_published():
    for rows in KNOWN.values():
        for row in rows:
            if row.published:
                digits = len(row.published.partition(".")[2])
                assert abs(row.expected - float(row.published)) <= 0.5 * 10**-digits + 1e-15, row


@ways
def test_the_textbook(way):
    reference = naive.reference(way.record)
    steps = json.loads(way.normalize)
    left = [naive.normalized(row.a, **steps) for row in KNOWN[way]]
    right = [naive.normalized(row.b, **steps) for row in KNOWN[way]]
    check(way, naive.pairwise(left, right, way.score, reference))
    check(way, naive.pairwise(right, left, way.score, reference))


@ways
def test_every_call(way):
    left, right = [row.a for row in KNOWN[way]], [row.b for row in KNOWN[way]]
    n = len(left)
    for a, b in ((left, right), (right, left)):
        check(way, rs.pairwise(a, b, **way.arguments))
        check(way, np.diag(rs.cdist(a, b, **way.arguments)))
        found = rs.top_k(a, b, k=n, **way.arguments)
        rows, places = np.nonzero(found.index == np.arange(n)[:, None])
        scores = np.full(n, np.nan)  # a pair without a score is not found
        scores[rows] = found.score[rows, places]
        check(way, scores)
