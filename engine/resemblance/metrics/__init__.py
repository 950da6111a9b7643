"""The metrics: one record each, looked up by name."""

from __future__ import annotations

import difflib

from resemblance.metrics.base import CountingMetric, Metric, ScoringMetric
from resemblance.metrics.edit import OSA, DamerauLevenshtein, Levenshtein
from resemblance.metrics.hamming import Hamming, Postfix, Prefix
from resemblance.metrics.jaro import Jaro, JaroWinkler
from resemblance.metrics.lcs import Indel, LCSseq

__all__ = ["RECORDS", "CountingMetric", "Metric", "ScoringMetric", "resolve"]

RECORDS: tuple[type[Metric], ...] = (
    Levenshtein,
    OSA,
    DamerauLevenshtein,
    Indel,
    LCSseq,
    Hamming,
    Prefix,
    Postfix,
    Jaro,
    JaroWinkler,
)
"""Every metric there is; listings, documentation and tests iterate it."""


def resolve(metric: str | Metric) -> Metric:
    """The record that a name, an alias or a record stands for.

    Raises
    ------
    ValueError
        If there is no metric of that name; the message lists those there are.
    """
    if isinstance(metric, Metric):
        return metric
    names = {name: record for record in RECORDS for name in (record.name, *record.aliases)}
    key = metric.lower().replace("-", "_") if isinstance(metric, str) else metric
    if key in names:
        return names[key]()
    close = difflib.get_close_matches(str(key), names, 1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    known = ", ".join(record.name for record in RECORDS)
    raise ValueError(f"unknown metric {metric!r}{hint} (known: {known})")
