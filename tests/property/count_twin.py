"""The true loss of a plan for counts, by adding up everything: rows, categories, values and noise. Knows no theorem.

The twin reads the problem, draws distributions that the assumption allows, and forms the law of what is released from the noise
that the plan's tally would draw (a kernel: from its weights). It looks at no record laws and at no pairs of a certificate.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from attrpriv.assumptions.counts import Counts
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.optimal.proof import CouplingEvidence, KernelEvidence
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from tests.property.exact_kernel import coupled, through

Step = tuple[int, ...]
Law = dict[Step, float]


def drawn_law(box: Sequence[tuple[float, float]], rng: random.Random) -> list[float]:
    """A law of the box: a vertex (mass handed out in a random order), or a point between two."""

    def vertex() -> list[float]:
        masses = [low for low, _ in box]
        for k in rng.sample(range(len(box)), len(box)):
            masses[k] += min(max(0.0, 1 - sum(masses)), box[k][1] - masses[k])
        return masses

    one, other = vertex(), vertex()
    share = rng.choice([0.0, 0.0, rng.random()])
    return [(1 - share) * x + share * y for x, y in zip(one, other, strict=True)]


def drawn_shares(counts: Counts, rng: random.Random) -> dict[str, float]:
    """Shares of the categories that the prior allows; those it is silent about share the rest at random."""
    shares = {name: rng.uniform(*map(float, pair)) for name, pair in counts.prior.items()}
    silent = [name for name in counts.categories if name not in shares]
    parts = [rng.choice([0.001, rng.random() + 0.001]) for _ in silent]
    left = max(0.0, 1 - sum(shares.values()))
    shares |= {name: left * part / sum(parts) for name, part in zip(silent, parts, strict=True)}
    total = sum(shares.values())
    return {name: share / total for name, share in shares.items()}


class Truth:
    """One distribution of the rows that the problem's assumption allows."""

    def __init__(self, problem: Problem, values: Sequence[float], boxes: Any, histogram: bool, rng: random.Random) -> None:
        self.problem, self.counts = problem, rng.choice([t for t in problem.theta if isinstance(t, Counts)])
        order = sorted(range(len(values)), key=lambda k: values[k])
        least = min(values)
        unit = math.gcd(*(int(value - least) for value in values))
        steps = [int((values[k] - least) // unit) for k in order]
        self.cells: list[Step] = [
            tuple(int(k == j) for j in range(len(values))) if histogram else (steps[k],) for k in range(len(values))
        ]
        laws = {name: drawn_law(boxes(self.counts, name), rng) for name in self.counts.categories}
        self.laws = {name: [law[k] for k in (range(len(values)) if histogram else order)] for name, law in laws.items()}
        self.shares = drawn_shares(self.counts, rng)

    def mixed(self, names: Sequence[str]) -> list[float]:
        total = sum(self.shares[name] for name in names)
        weights = [self.shares[name] / total if total > 0 else 1 / len(names) for name in names]
        return [sum(w * self.laws[name][k] for w, name in zip(weights, names, strict=True)) for k in range(len(self.cells))]

    def statistic(self, rows: Sequence[Sequence[float]]) -> Law:
        """The law of the counts' sum over independent rows."""
        law: Law = {tuple(0 for _ in self.cells[0]): 1.0}
        for row in rows:
            step: Law = {}
            for (so_far, mass), (cell, p) in itertools.product(law.items(), zip(self.cells, row, strict=True)):
                total = tuple(x + y for x, y in zip(so_far, cell, strict=True))
                step[total] = step.get(total, 0.0) + mass * p
            law = step
        return {key: mass for key, mass in law.items() if mass > 0}

    def given(self, secret: Secret, members: Sequence[str]) -> list[tuple[float, Law]]:
        """The law of the statistic for every value of the secret (of a population's share: for some)."""
        n = self.problem.n
        member = self.mixed(members)
        rest = self.mixed([name for name in self.counts.categories if name not in members])
        if secret.parameter is None:
            low, high = secret.ends or (0, n)
            return [(a, self.statistic([member] * a + [rest] * (n - a))) for a in range(math.ceil(low), math.floor(high) + 1)]
        found = []
        for share in _shares(secret):
            row = [share * m + (1 - share) * r for m, r in zip(member, rest, strict=True)]
            found.append((share, self.statistic([row] * n)))
        return found

    def population(self, plan: Plan, secret: Secret, members: Sequence[str]) -> list[tuple[float, Law]]:
        """What is released for some shares of a population, by what reads the table's own count: over all counts of it."""
        n, rest = self.problem.n, self.mixed([name for name in self.counts.categories if name not in members])
        tables = [self.statistic([self.mixed(members)] * a + [rest] * (n - a)) for a in range(n + 1)]
        outputs = [released(plan, law, a) for a, law in enumerate(tables)]
        found = []
        for share in _shares(secret):
            law: Law = {}
            for a, output in enumerate(outputs):
                for o, mass in output.items():
                    law[o] = law.get(o, 0.0) + math.comb(n, a) * share**a * (1 - share) ** (n - a) * mass
            found.append((share, law))
        return found


def _shares(secret: Secret) -> tuple[float, float, float]:
    low, high = secret.ends or (0.0, 1.0)
    return low, (2 * low + high) / 3, high


def noise_masses(kind: str, scale: float, far: int) -> dict[int, float]:
    if kind == "none":
        return {0: 1.0}
    laplace = kind == "laplace"
    weights = {k: math.exp(-abs(k) / scale if laplace else -k * k / (2 * scale * scale)) for k in range(-far, far + 1)}
    total = math.fsum(weights.values())
    return {k: weight / total for k, weight in weights.items()}


def released(plan: Plan, law: Law, a: float) -> dict[Step, float]:
    """What is released: the law of the statistic through the noise of the tally, or through the kernel that is drawn from."""
    tally, evidence = plan.tally, plan.certificate.evidence
    assert tally is not None
    if tally.noise == "kernel":
        exact = {key[0]: Fraction(mass) for key, mass in law.items()}
        if isinstance(evidence, KernelEvidence):
            out = through(exact, evidence.start, evidence.weights)
        else:
            assert isinstance(evidence, CouplingEvidence)
            row = int(a) - evidence.pairs.low
            out = coupled(exact, evidence.start, evidence.sources[row], evidence.targets[row])
        return {(o,): float(p) for o, p in enumerate(out)}
    pure = plan.delta == 0
    ends = [(min(key[k] for key in law), max(key[k] for key in law)) for k in range(len(next(iter(law))))]
    # Pure Laplace noise: ratios are constant beyond the values, so that a step beyond them shows all there is.
    far = 0 if tally.noise == "none" else (1 if pure else math.ceil((45 if tally.noise == "laplace" else 13) * tally.scale) + 5)
    if pure or tally.histogram:
        span = [range(low - min(far, 1), high + min(far, 1) + 1) for low, high in _reach(plan, ends)]
        return {o: _density(tally.noise, tally.scale, o, law) for o in itertools.product(*span)}
    noise = noise_masses(tally.noise, tally.scale, far)
    low, high = _reach(plan, ends)[0]
    masses = np.zeros(high - low + 2 * far + 1)
    for (f,), p in law.items():
        masses[f - low : f - low + len(noise)] += p * np.array(list(noise.values()))
    return {(low - far + k,): float(p) for k, p in enumerate(masses)}


def _reach(plan: Plan, ends: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same outputs for every law."""
    assert plan.tally is not None
    most = plan.n * max(cell.value for cell in plan.tally.cells)
    return [(0, most)] * len(ends)


def _density(kind: str, scale: float, o: Step, law: Law) -> float:
    if kind == "none":
        return law.get(o, 0.0)
    assert kind == "laplace"
    return math.fsum(p * math.exp(-sum(abs(x - y) for x, y in zip(o, f, strict=True)) / scale) for f, p in law.items())


def keeps(plan: Plan, problem: Problem, laws: list[tuple[float, Law]], secret: Secret) -> bool:
    """Whether every two values that must look alike do, in the plan's own epsilon and delta."""
    return alike([(a, released(plan, law, a)) for a, law in laws], problem, secret)


def alike(outputs: list[tuple[float, Law]], problem: Problem, secret: Secret) -> bool:
    """The same of the laws of what is released."""
    for (a, p), (b, q) in itertools.permutations(outputs, 2):
        if secret.within is not None and abs(a - b) > secret.within:
            continue
        if problem.delta == 0:
            if any(mass > 0 and not mass <= q[o] * math.exp(problem.epsilon) * (1 + 1e-9) for o, mass in p.items()):
                return False
        elif math.fsum(max(0.0, p[o] - math.exp(problem.epsilon) * q[o]) for o in p) > problem.delta * (1 + 1e-7) + 1e-13:
            return False
    return True
