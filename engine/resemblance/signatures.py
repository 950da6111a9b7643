"""Signatures of strings as multisets of characters: a bound on what two strings have in common."""

from __future__ import annotations

import numpy as np

from resemblance.jit import kernel
from resemblance.simd import bit_count
from resemblance.strings import HASH_BASE, HASH_MIX


@kernel
def signatures(data, offsets):
    """64-bit sketches of multisets of characters.

    The k-th occurrence of a character (k up to 8) sets the bit that both hash to, so as many
    characters as bits of one string are missing in another's signature are missing there, or more.
    """
    n = len(offsets) - 1
    out = np.zeros(n, np.uint64)
    counts = np.zeros(256, np.uint64)
    for i in range(n):
        chars = data[offsets[i] : offsets[i + 1]]
        bits = np.uint64(0)
        for c in chars:
            again = counts[c & 255]
            h = np.uint64((np.uint64(c & 255) + (again << np.uint64(32))) * HASH_BASE)
            h = np.uint64((h ^ (h >> np.uint64(32))) * HASH_MIX)
            bits |= np.uint64(1) << (h >> np.uint64(58))
            counts[c & 255] = min(np.uint64(again + np.uint64(1)), np.uint64(7))
        for c in chars:
            counts[c & 255] = 0
        out[i] = bits
    return out


@kernel
def passing(left, right, most_left, most_right):
    """Share of pairs, by a sample, of which neither misses too many characters of the other."""
    sample = min(4096, len(left) * len(right))
    count = 0
    for k in range(sample):
        a = left[k * 7919 % len(left)]
        b = right[k * 104729 % len(right)]
        count += int(bit_count(a & ~b) <= most_left and bit_count(b & ~a) <= most_right)
    return count / sample


CHUNK = 64


@kernel
def scan(left, first, last, right, lo, hi, most_left, most_right, same, out_left, out_right):
    """Pairs of rows ``first`` to ``last`` and ``lo`` to ``hi`` that :func:`passing` would count.

    ``same``: of one column, the right row before the left one. Fills the output and returns the
    first left row not done, and how many pairs there are.
    """
    flags = np.zeros(CHUNK, np.uint8)
    count = 0
    for r in range(first, last):
        end = min(hi, r) if same else hi
        if count + max(end - lo, 0) > len(out_left):
            return r, count
        mine = left[r]
        for begin in range(lo, end, CHUNK):
            chunk = right[begin : min(begin + CHUNK, end)]
            some = np.uint8(0)
            for k in range(len(chunk)):
                flag = np.uint8(
                    (bit_count(mine & ~chunk[k]) <= most_left)
                    & (bit_count(chunk[k] & ~mine) <= most_right)
                )
                flags[k] = flag
                some |= flag
            if some:
                for k in range(len(chunk)):
                    if flags[k]:
                        out_left[count] = r
                        out_right[count] = begin + k
                        count += 1
    return last, count
