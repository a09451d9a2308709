"""The laws of counts and of what a kernel makes of them in fractions, by the definition: shares no code with the library."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise

import mpmath

Law = dict[int, Fraction]


def convolve(p: Mapping[int, Fraction], q: Mapping[int, Fraction]) -> Law:
    out: Counter[int] = Counter()
    for x, mass in p.items():
        for y, other in q.items():
            out[x + y] += mass * other  # type: ignore[assignment]
    return {x: Fraction(mass) for x, mass in out.items()}


def record(values: Sequence[int], probabilities: Sequence[float | Fraction]) -> Law:
    total = sum(Fraction(str(p)) for p in probabilities)  # as they are written
    return {value: Fraction(str(p)) / total for value, p in zip(values, probabilities, strict=True)}


def event(p: float | Fraction) -> Law:
    return {0: 1 - Fraction(str(p)), 1: Fraction(str(p))}


def count_law(member: Law, rest: Law, a: int, n: int) -> Law:
    law: Law = {0: Fraction(1)}
    for row in [member] * a + [rest] * (n - a):
        law = convolve(law, row)
    return law


def through(law: Law, start: int, weights: Sequence[Sequence[int]]) -> list[Fraction]:
    """The law of the output of a kernel that sees F alone."""
    out = [Fraction(0)] * len(weights[0])
    for x, mass in law.items():
        row = weights[x - start]
        out = [q + mass * weight / sum(row) for q, weight in zip(out, row, strict=True)]
    return out


def coupled(law: Law, start: int, source: Sequence[int], target: Sequence[int]) -> list[Fraction]:
    """The law of the output of the coupling: interval arithmetic on the slices, one f and one o at a time."""
    begins = [sum(source[:f]) for f in range(len(source) + 1)]
    cuts = [sum(target[:o]) for o in range(len(target) + 1)]
    out = [Fraction(0)] * len(target)
    for x, mass in law.items():
        begin, end = begins[x - start], begins[x - start + 1]
        if begin == end:
            begin = min(begin, cuts[-1] - 1)
            end = begin + 1
        for o, (low, high) in enumerate(pairwise(cuts)):
            out[o] += mass * Fraction(max(0, min(end, high) - max(begin, low)), end - begin)
    return out


def loss(outputs: Sequence[Sequence[Fraction]], apart: int) -> mpmath.mpf:
    """max over pairs and outputs of log Q_a(o)/Q_b(o), with 40 digits."""
    worst = Fraction(1)
    for a, one in enumerate(outputs):
        for b, other in enumerate(outputs):
            for p, q in zip(one, other, strict=True):
                if abs(a - b) <= apart and p > 0:
                    if q == 0:
                        return mpmath.inf
                    worst = max(worst, p / q)
    with mpmath.workdps(40):
        return mpmath.log(mpmath.mpf(worst.numerator) / worst.denominator)
