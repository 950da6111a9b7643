"""From files to files: sources of any kind in, near-duplicates, joins and matches out."""

from resemblance_io import InputError, dedup, join, sample, scan, score, top_k

__all__ = ["InputError", "dedup", "join", "sample", "scan", "score", "top_k"]
