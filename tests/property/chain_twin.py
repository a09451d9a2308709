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


def most_told(
    initial: Row, transition: Sequence[Row], length: int, b: float | Callable[[int, int], float], entry: int | None = None
) -> float:
    """The largest log-ratio for any entry (or this one), any two of its values and any b-private mechanism.

    b may depend on the two values that an entry changes between.
    """
    cost = b if callable(b) else lambda x, y: b
    listed = laws(initial, transition, length)
    everything = list(itertools.product(range(len(initial)), repeat=length))
    place = {c: k for k, c in enumerate(everything)}
    rows = []
    for c in everything:
        for i in range(length):
            for z in range(len(initial)):
                if z != c[i]:
                    row = np.zeros(len(everything))
                    row[place[c]], row[place[(*c[:i], z, *c[i + 1 :])]] = 1.0, -math.exp(cost(c[i], z))
                    rows.append(row)
    worst = 0.0
    for i in range(length) if entry is None else [entry]:
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


# ----------------------------------------------------------------------------------------------------------------------------
# The recursion itself in fractions, every entry on its own and nothing settled: exact for up to three states.

Table = dict[tuple[int, int], Fraction]


def exact_ratio(initial: Row, transition: Sequence[Row], length: int, factor: Callable[[int, int], Fraction]) -> Fraction:
    """e^epsilon, where an entry that changes from x to y costs the factor e^r(x, y)."""
    marginal = [list(initial)]
    for _ in range(length - 1):
        marginal.append(
            [sum((p * row[x] for p, row in zip(marginal[-1], transition, strict=True)), Fraction(0)) for x in _of(initial)]
        )
    held = [[x for x in _of(initial) if law[x]] for law in marginal]
    later: list[Table] = [{(x, y): Fraction(1) for x in held[-1] for y in held[-1]}]
    for i in range(length - 2, -1, -1):
        rows = {x: {z: transition[x][z] for z in held[i + 1]} for x in held[i]}
        later.append(_stepped(rows, later[-1], factor))
    later.reverse()
    earlier: Table = {(x, y): Fraction(1) for x in held[0] for y in held[0]}
    worst = Fraction(1)
    for i in range(length):
        if i:
            joint = {x: {z: marginal[i - 1][z] * transition[z][x] for z in held[i - 1]} for x in held[i]}
            earlier = _stepped({x: {z: p / sum(r.values()) for z, p in r.items()} for x, r in joint.items()}, earlier, factor)
        worst = max([worst, *(factor(x, y) * earlier[x, y] * later[i][x, y] for x in held[i] for y in held[i] if x != y)])
    return worst


def _of(initial: Row) -> range:
    return range(len(initial))


def _stepped(rows: dict[int, dict[int, Fraction]], ratio: Table, factor: Callable[[int, int], Fraction]) -> Table:
    """The ends of f: all as large, or as small, as one of them lets the others be."""
    states = sorted({z for row in rows.values() for z in row})
    limit = {(y, z): Fraction(1) if y == z else factor(y, z) * ratio[y, z] for y in states for z in states}
    for k in states:
        for y in states:
            for z in states:
                limit[y, z] = min(limit[y, z], limit[y, k] * limit[k, z])
    ends = [{z: limit[z, k] for z in states} for k in states] + [{z: 1 / limit[k, z] for z in states} for k in states]
    means = {x: [sum((p * f[z] for z, p in row.items()), Fraction(0)) for f in ends] for x, row in rows.items()}
    return {(x, y): max(a / c for a, c in zip(means[x], means[y], strict=True)) for x in rows for y in rows}
