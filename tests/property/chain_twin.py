"""What b-private mechanisms can tell about an entry of a short chain, without the package: by enumeration.

`most_told` is the linear-programming optimum over *all* mechanisms that are b-private for one entry: the largest
P(L | X_i = x)/P(L | X_i = x') over functions L > 0 of the sequence that change by at most e^b when one entry does.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from scipy.optimize import linprog

Row = Sequence[Fraction]


def laws(initial: Row, transition: Sequence[Row], length: int) -> dict[tuple[int, ...], Fraction]:
    """The probability of every sequence that is possible."""
    found = {}
    for states in itertools.product(range(len(initial)), repeat=length):
        p = initial[states[0]]
        for s, t in itertools.pairwise(states):
            p *= transition[s][t]
        if p:
            found[states] = p
    return found


def given_entry(listed: dict[tuple[int, ...], Fraction], i: int) -> dict[int, dict[tuple[int, ...], Fraction]]:
    """The law of the sequence given each value that entry i can have."""
    found: dict[int, dict[tuple[int, ...], Fraction]] = {}
    for states, p in listed.items():
        found.setdefault(states[i], {})[states] = p
    return {x: {c: p / sum(part.values()) for c, p in part.items()} for x, part in found.items()}


def most_told(initial: Row, transition: Sequence[Row], length: int, b: float) -> float:
    """The largest log-ratio for any entry, any two of its values and any b-private mechanism."""
    listed = laws(initial, transition, length)
    everything = list(itertools.product(range(len(initial)), repeat=length))
    place = {c: k for k, c in enumerate(everything)}
    rows = []
    for c in everything:
        for i in range(length):
            for z in range(len(initial)):
                if z != c[i]:
                    row = np.zeros(len(everything))
                    row[place[c]], row[place[(*c[:i], z, *c[i + 1 :])]] = 1.0, -math.exp(b)
                    rows.append(row)
    worst = 0.0
    for i in range(length):
        laws_of = given_entry(listed, i)
        for x, y in itertools.permutations(laws_of, 2):
            p, q = (np.array([float(laws_of[v].get(c, 0)) for c in everything]) for v in (x, y))
            found = linprog(-p, A_ub=np.array(rows), b_ub=np.zeros(len(rows)), A_eq=[q], b_eq=[1.0], method="highs")
            assert found.status == 0
            worst = max(worst, math.log(-float(str(found.fun))))
    return worst


Outputs = Callable[[tuple[int, ...]], dict[object, Fraction]]


def told_by(listed: dict[tuple[int, ...], Fraction], length: int, outputs: Outputs) -> Fraction:
    """The largest ratio of the probabilities of an output, over entries and their values, exactly."""
    worst = Fraction(1)
    for i in range(length):
        totals = []
        for law in given_entry(listed, i).values():
            total: dict[object, Fraction] = {}
            for c, p in law.items():
                for w, weight in outputs(c).items():
                    total[w] = total.get(w, Fraction(0)) + p * weight
            totals.append(total)
        for first, second in itertools.permutations(totals, 2):
            worst = max([worst, *(first[w] / second[w] for w in first)])
    return worst


def noisy_count(t: Fraction, counted: Callable[[tuple[int, ...]], int], low: int, high: int) -> Outputs:
    """A count plus whole-number Laplace noise with ratio t = e^b: weights t^-|w - count|. Beyond the ends no ratio changes."""
    return lambda c: {w: t ** -abs(w - counted(c)) for w in range(low, high + 1)}


def randomised_response(t: Fraction, states: int) -> Outputs:
    """Each entry shown as it is with weight t, as any other value with weight 1: b-private for one entry, b = log t."""

    def outputs(c: tuple[int, ...]) -> dict[object, Fraction]:
        shown = itertools.product(range(states), repeat=len(c))
        return {w: t ** sum(x == y for x, y in zip(w, c, strict=True)) for w in shown}

    return outputs


def adaptive_pair(first: Fraction, second: Fraction, length: int) -> Outputs:
    """A noisy count of state 1 at `first`; then, by what it showed, one of the even or of the odd places at `second`."""
    one = noisy_count(first, lambda c: sum(x == 1 for x in c), 0, length)

    def outputs(c: tuple[int, ...]) -> dict[object, Fraction]:
        found: dict[object, Fraction] = {}
        for w, p in one(c).items():
            start = int(str(w)) % 2
            later = noisy_count(second, lambda d, s=start: sum(x == 1 for x in d[s::2]), 0, length)  # type: ignore[misc]
            found.update({(w, v): p * weight for v, weight in later(c).items()})
        return found

    return outputs
