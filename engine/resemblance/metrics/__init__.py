"""The metrics: one record each, looked up by name."""

from __future__ import annotations

import difflib
from typing import Any

from resemblance.metrics.base import AnyMetric, CountingMetric, Metric, ScoringMetric
from resemblance.metrics.edit import OSA, DamerauLevenshtein, Levenshtein
from resemblance.metrics.hamming import Hamming, Postfix, Prefix
from resemblance.metrics.jaro import Jaro, JaroWinkler
from resemblance.metrics.lcs import Indel, LCSseq
from resemblance.metrics.sets import Cosine, Dice, Jaccard, Overlap, SetMetric

__all__ = ["RECORDS", "AnyMetric", "CountingMetric", "Metric", "ScoringMetric", "resolve"]

RECORDS: tuple[type[AnyMetric], ...] = (
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
    Jaccard,
    Dice,
    Overlap,
    Cosine,
)
"""Every metric there is; listings, documentation and tests iterate it."""


def resolve(metric: str | Metric, tokens: str | None = None) -> AnyMetric:
    """The record that a name or a record stands for.

    Parameters
    ----------
    metric : str or Metric
        A name or an alias, and after a colon a variant (``"jaro_winkler:stringdist"``) or, for
        metrics of token sets, the tokens (``"jaccard:words:5"``); or a record, which is given back.
    tokens : str, optional
        Tokens for metrics of token sets that do not name theirs; others take no notice.

    Raises
    ------
    ValueError
        If there is no such metric or variant; the message lists those there are.
    """
    if isinstance(metric, CountingMetric | ScoringMetric):
        return metric
    if not isinstance(metric, str):
        raise TypeError(f"metric must be a name or a record, got {type(metric).__name__}")
    names = {name: record for record in RECORDS for name in (record.name, *record.aliases)}
    head, _, variant = metric.partition(":")
    key = head.strip().lower().replace("-", "_")
    if key not in names:
        close = difflib.get_close_matches(key, names, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        known = ", ".join(record.name for record in RECORDS)
        raise ValueError(f"unknown metric {metric!r}{hint} (known: {known})")
    record: Any = names[key]
    if issubclass(record, SetMetric):
        wanted = variant or tokens
        return record(tokens=wanted) if wanted else record()
    if not variant:
        return record()
    variant = variant.strip().lower().replace("_", "-")
    if variant not in record.variants:
        known = ", ".join(record.variants) or "none"
        raise ValueError(f"{record.name} has no variant {variant!r} (known: {known})")
    return record(**record.variants[variant])
