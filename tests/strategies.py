"""Texts for tests: lengths around every lane boundary, many scripts, nulls and empties anywhere.

Examples shrink in number and size when the JIT is off, where a kernel step is a NumPy call.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import pairwise

import numba
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

import resemblance as rs
from resemblance.metrics import CountingMetric, Metric

JIT = not numba.config.DISABLE_JIT

LANES = (0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129)
"""Lengths on both sides of each lane width, and of the first two multiples of 64."""

LATIN_1 = "".join(map(chr, range(0x100)))
SCRIPTS = {
    "ascii": "abcdefghijklmnopqrstuvwxyz ABCXYZ0189-_.\0\n\x7f",
    "binary": "ab",
    "latin": "aàáâãäåæçèéêëìíîïðñòóôõöøùúûüýþÿ\x80\xff ß",
    "greek": "αβγδεζηθικλμνξοπρσςτυφχψω ΑΒΓ",
    "cjk": "的一是不了人我在有他这中大来上国個們時間東京\uffff",
    "emoji": "\U0001f4a9\U0001f4ab\U0001f468\u200d\U0001f469\U0001f467\u2764\ufe0f\U0010ffff",
    "mixed": "ab é我\U0001f600\u0301ÿĀ\uffff\U00010000",
    "spaced": "aab  \t\n\x1c\x85\u00a0\u2003",
    "surrogates": "a\ud800\udbff\udc00\udfff\U00010000",
}


METRICS = (
    rs.Levenshtein(),
    rs.OSA(),
    rs.DamerauLevenshtein(),
    rs.Indel(),
    rs.LCSseq(),
    rs.Hamming(),
    rs.Hamming(pad=False),
    rs.Prefix(),
    rs.Postfix(),
    rs.Jaro(),
    rs.Jaro(floor_transpositions=False),
    rs.JaroWinkler(),
    rs.JaroWinkler(boost_threshold=0.0, floor_transpositions=False),
    rs.JaroWinkler(prefix_cap=None, scale_prefix=True),
    rs.JaroWinkler(prefix_weight=0.5, boost_threshold=0.3, prefix_cap=2),
    rs.JaroWinkler(prefix_weight=1.0, prefix_cap=None),
    rs.Jaccard(),
    rs.Jaccard(tokens=rs.Chars(2)),
    rs.Jaccard(tokens=rs.Words(2), multiset=True),
    rs.Dice(),
    rs.Dice(tokens=rs.Words(3)),
    rs.Overlap(),
    rs.Overlap(tokens=rs.Chars(3), multiset=True),
    rs.Cosine(),
    rs.Cosine(tokens=rs.Chars(1), multiset=True),
)
"""Every record, with parameters that take every branch of its formula."""


def parametrized(metrics: Iterable[Metric]) -> pytest.MarkDecorator:
    """A test of each of the metrics, named after it."""
    return pytest.mark.parametrize("metric", list(metrics), ids=lambda metric: metric.label)


def counts(metric: Metric) -> bool:
    return isinstance(metric, CountingMetric)


every_metric = parametrized(METRICS)
every_counting_metric = parametrized(metric for metric in METRICS if counts(metric))
every_scoring_metric = parametrized(metric for metric in METRICS if not counts(metric))


def examples(n: int) -> settings:
    """Settings of a property test: ``n`` examples, a tenth of them without the JIT."""
    return settings(
        max_examples=n if JIT else max(3, n // 10),
        deadline=None,
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
            HealthCheck.function_scoped_fixture,
        ],
    )


# --- Hypothesis ----------------------------------------------------------------------------------

scripts = st.sampled_from(sorted(SCRIPTS.values()))
lengths = st.one_of(st.integers(0, 12), st.sampled_from(LANES if JIT else LANES[:10]))


@st.composite
def texts(draw: st.DrawFn, alphabet: st.SearchStrategy[str] = scripts) -> str:
    """One text of any script, of a length near a lane boundary or a short one."""
    letters = draw(alphabet)
    size = draw(lengths)
    return draw(st.text(letters, min_size=size, max_size=size))


@st.composite
def edited(draw: st.DrawFn, text: str) -> str:
    """The text after a few edits: a pair near any cut-off."""
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(text)))
        put = draw(st.sampled_from(["", "a", "é", "我", "\U0001f600", text[:1]]))
        text = text[:at] + put + text[at + draw(st.integers(0, 1)) :]
    return text


@st.composite
def columns(draw: st.DrawFn, max_size: int = 12, nulls: bool = True) -> list[str | None]:
    """A column with near and exact copies, empties and nulls in every position."""
    alphabet = st.just(draw(scripts)) if draw(st.booleans()) else scripts
    column: list[str | None] = []
    for _ in range(draw(st.integers(0, max_size))):
        present = [text for text in column if text]
        choice = draw(st.integers(0, 9))
        if choice < 2 and present:
            column.append(draw(st.sampled_from(present)))
        elif choice < 5 and present:
            column.append(draw(edited(draw(st.sampled_from(present)))))
        elif choice == 5:
            column.append(None if nulls else "")
        elif choice == 6:
            column.append("")
        else:
            column.append(draw(texts(alphabet)))
    return column


def thresholds(metric: Metric = METRICS[0]) -> st.SearchStrategy[dict[str, float]]:
    """Either threshold of a join, over all regimes: none pass, few, most, all."""
    fractions = st.one_of(
        st.integers(0, 20).map(lambda k: k / 20),
        st.sampled_from([1 / 3, 2 / 3, 6 / 7, 1e-9, 0.9999999]),
        st.floats(0, 1),
    )
    edits = st.sampled_from([0, 1, 2, 3, 5, 8, 20, 200])
    return st.one_of(
        st.fixed_dictionaries({"max_distance": edits if counts(metric) else fractions}),
        st.fixed_dictionaries({"min_similarity": fractions}),
    )


limited = st.sampled_from(METRICS).flatmap(
    lambda metric: st.tuples(st.just(metric), thresholds(metric))
)
"""Any metric, and a threshold in its terms."""


# --- seeded --------------------------------------------------------------------------------------


def text_of(length: int, letters: str, rng: random.Random) -> str:
    return "".join(rng.choices(letters, k=length))


def column_of(rows: int, letters: str, seed: int, longest: int = 20) -> list[str]:
    """Seeded texts of mixed lengths, half of them one edit away from an earlier one."""
    rng = random.Random(seed)
    column = [text_of(rng.randint(0, longest), letters, rng) for _ in range(rows)]
    for row in range(1, rows, 2):
        text = column[rng.randrange(row)]
        at = rng.randint(0, len(text))
        column[row] = text[:at] + rng.choice(letters) + text[at + rng.randint(0, 1) :]
    return column


def substituted(text: str, edits: int, mark: str = "#") -> str:
    """The text with characters at even distances replaced by ``mark``.

    Where ``mark`` is not in the text, the distance is exactly ``edits``: each mark costs an edit.
    """
    letters = list(text)
    for k in range(edits):
        letters[len(letters) * k // edits] = mark
    return "".join(letters)


def inserted(text: str, edits: int, mark: str = "#") -> str:
    """The text with ``edits`` marks put in at even distances; the distance is exactly that."""
    cuts = [len(text) * k // edits for k in range(edits)] + [len(text)]
    return text[: cuts[0]] + "".join(mark + text[a:b] for a, b in pairwise(cuts))
