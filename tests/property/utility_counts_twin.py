"""The exact divergence of released counts, by adding up everything: rows, states, noise, kernels and couplings.

For the utility suite. Laws of counts come from scipy's binomial masses and plain convolutions; the noise, the weights or the
slices are those that the plan draws from. Nothing of the library's laws or divergences is used.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import fftconvolve
from scipy.stats import binom

from attrpriv.methods.base.evidence import LaplaceEvidence
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.count_transport.target import transport_row
from bench.utility_suite.problems import Entry
from bench.utility_suite.worlds import AnyWorld, ChainWorld, CountWorld, NetworkWorld

Array = NDArray[np.float64]
# Up to so many rows all of a law is kept; beyond, all but what lies this many standard deviations out.
_FEW = 2_000
_FAR = 14.0


@dataclass(frozen=True)
class Law:
    """Masses of start, start + 1, ..."""

    start: int
    masses: Array

    def plus(self, other: Law) -> Law:
        """The law of a sum: positive terms alone where there are few."""
        few = min(len(self.masses), len(other.masses)) <= _FEW
        masses = np.convolve(self.masses, other.masses) if few else np.maximum(fftconvolve(self.masses, other.masses), 0.0)
        return Law(self.start + other.start, masses)

    def on(self, start: int, size: int) -> Array:
        found = np.zeros(size)
        found[self.start - start : self.start - start + len(self.masses)] = self.masses
        return found


def stick(one: Law, other: Law, epsilon: float) -> float:
    """The larger of both directions."""
    start = min(one.start, other.start)
    size = max(one.start + len(one.masses), other.start + len(other.masses)) - start
    p, q = one.on(start, size), other.on(start, size)
    return float(max(np.maximum(x - math.exp(epsilon) * y, 0.0).sum() for x, y in ((p, q), (q, p))))


def binomial(n: int, p: float) -> Law:
    low, high = 0, n
    if n > _FEW:
        reach = _FAR * math.sqrt(n * p * (1 - p)) + 20
        low, high = max(0, math.floor(n * p - reach)), min(n, math.ceil(n * p + reach))
    return Law(low, np.asarray(binom.pmf(np.arange(low, high + 1), n, p), dtype=np.float64))


def rows(values: Sequence[int], law: Sequence[float], count: int) -> Law:
    """The sum of so many independent rows."""
    if tuple(values) == (0, 1):
        return binomial(count, law[1])
    power, total = Law(0, np.zeros(values[-1] + 1)), Law(0, np.ones(1))
    power.masses[list(values)] = law
    while count:
        total = total.plus(power) if count % 2 else total
        power, count = power.plus(power), count // 2
    return total


def noise(kind: str, scale: float) -> Law:
    if kind == "none" or not scale:
        return Law(0, np.ones(1))
    reach = math.ceil((40 if kind == "laplace" else 13) * scale) + 2
    k = np.arange(-reach, reach + 1)
    weights = np.exp(-np.abs(k) / scale if kind == "laplace" else -((k / scale) ** 2) / 2)
    return Law(-reach, weights / weights.sum())


# ------------------------------------------------------------------------------------------------------------- what is drawn


def _evidence(plan: Plan) -> Any:
    """Of whatever kind it is."""
    return plan.certificate.evidence


def released(plan: Plan, law: Law, a: int | None) -> Law:
    """The law of the answer, in whole steps, for this law of the count and this value of the secret's count."""
    tally, evidence = plan.tally, _evidence(plan)
    assert tally is not None
    if tally.noise != "kernel":
        return law.plus(noise(tally.noise, tally.scale))
    if hasattr(evidence, "weights"):
        weights = np.array([[w / sum(row) for w in row] for row in evidence.weights])
        return Law(evidence.start, law.on(evidence.start, len(weights)) @ weights)
    assert a is not None
    if hasattr(evidence, "transport"):
        row = transport_row(evidence.transport, a)
        places = np.arange(law.start, law.start + len(law.masses))
        cells = np.bincount([row.cell(int(f)) for f in places], weights=law.masses, minlength=len(row.sources)).astype(
            np.float64
        )
        return Law(row.start, coupled(cells, row.sources, row.targets)).plus(noise("laplace", tally.scale))
    at = a - evidence.pairs.low
    masses = law.on(evidence.start, len(evidence.sources[at]))
    return Law(evidence.start, coupled(masses, evidence.sources[at], evidence.targets[at]))


def coupled(masses: Array, sources: Sequence[int], targets: Sequence[int]) -> Array:
    """Each mass spread evenly over its slice, and gathered by the target's slices; an empty slice is a point."""
    out = np.zeros(len(targets))
    ends = list(itertools.accumulate(targets))
    o, begin = 0, 0
    for mass, width in zip(masses.tolist(), sources, strict=True):
        if not width:
            k = next(k for k, end in enumerate(ends) if end > min(begin, ends[-1] - 1))
            out[k] += mass
            continue
        left, end = begin, begin + width
        while left < end:
            while ends[o] <= left:
                o += 1
            right = min(end, ends[o])
            out[o] += mass * ((right - left) / width)
            left = right
        begin = end
    return out


# -------------------------------------------------------------------------------------------------------------- the problems


def worst_delta(entry: Entry, plan: Plan) -> float:
    """The largest divergence over the pairs and members of the class that are tried."""
    problem, tally = entry.problem, plan.tally
    assert tally is not None
    if isinstance(plan.certificate.evidence, LaplaceEvidence):
        # Noise for any two tables: the counts 0 and all rows, apart by as much as any two can be.
        told = problem.n * max(cell.value for cell in tally.cells) / tally.scale
        return max(0.0, 1 - math.exp((problem.epsilon - told) / 2))
    laws: Callable[[], Iterator[tuple[Law, Law]]]
    if isinstance(entry.world, CountWorld):
        laws = _counts(entry, plan, entry.world)
    elif isinstance(entry.world, NetworkWorld):
        laws = _network(plan, entry.world)
    elif isinstance(entry.world, ChainWorld):
        laws = _chain(plan, entry.world)
    else:
        assert isinstance(entry.world, AnyWorld)
        laws = _unknown(entry, plan)
    return max(stick(one, other, problem.epsilon) for one, other in laws())


def _counts(entry: Entry, plan: Plan, world: CountWorld) -> Callable[[], Iterator[tuple[Law, Law]]]:
    (secret,), n = entry.problem.secrets, entry.problem.n
    boxes = _box(entry)
    low, high = secret.ends or (0.0, float(n))

    def given(a: int, member: Sequence[float], rest: Sequence[float]) -> Law:
        return rows(world.values, member, a).plus(rows(world.values, rest, n - a))

    def population(share: float, member: Sequence[float], rest: Sequence[float]) -> Law:
        reading = plan.tally is not None and plan.tally.noise == "kernel" and not hasattr(plan.certificate.evidence, "weights")
        mixed = [share * m + (1 - share) * r for m, r in zip(member, rest, strict=True)]
        if not reading:
            return released(plan, rows(world.values, mixed, n), None)
        parts = [(float(binom.pmf(a, n, share)), released(plan, given(a, member, rest), a)) for a in range(n + 1)]
        start, end = min(law.start for _, law in parts), max(law.start + len(law.masses) for _, law in parts)
        return Law(start, sum((w * law.on(start, end - start) for w, law in parts), np.zeros(end - start)))

    def pairs() -> Iterator[tuple[Law, Law]]:
        for member, rest in boxes:
            if secret.parameter is not None:
                found = [population(share, member, rest) for share in (low, (low + high) / 2, high)]
                yield from itertools.combinations(found, 2)
                continue
            outputs = {a: released(plan, given(a, member, rest), a) for a in _values(int(low), int(high), secret.within)}
            for a, b in itertools.combinations(outputs, 2):
                if secret.within is None or abs(a - b) <= secret.within:
                    yield outputs[a], outputs[b]

    return pairs


def _values(low: int, high: int, within: float | None) -> list[int]:
    """All counts of a small range; of a large one its ends, its middle and some at the largest distance."""
    if high - low <= 40:
        return list(range(low, high + 1))
    step = int(within or 0)
    some = {low, low + 1, low + step, (low + high) // 2, (low + high) // 2 + step, high - step, high - 1, high}
    return sorted(a for a in some if low <= a <= high)


def _box(entry: Entry) -> list[tuple[Sequence[float], Sequence[float]]]:
    """Members of the class: the corners of the intervals and their middle."""
    world = entry.world
    assert isinstance(world, CountWorld)
    assumed: Any = entry.problem.theta[0]
    if world.values != (0, 1):
        return [(world.member, world.rest)]
    ((_, given),) = assumed.given.items()
    ends = [sorted({*given[name], sum(given[name]) / 2}) for name in ("yes", "no")]
    return [((1 - p, p), (1 - q, q)) for p in ends[0] for q in ends[1]]


def _network(plan: Plan, world: NetworkWorld) -> Callable[[], Iterator[tuple[Law, Law]]]:
    """Given each value of the hidden parameter, the count is a mixture over the states of the column's own."""

    def pairs() -> Iterator[tuple[Law, Law]]:
        n = world.problem.n
        parts = [binomial(n, p).on(0, n + 1) for p in world.probabilities]
        mixed = [
            Law(0, sum((w * part for w, part in zip(row, parts, strict=True)), np.zeros(n + 1)))
            for row in world.states.values()
        ]
        yield from itertools.combinations([released(plan, law, None) for law in mixed], 2)

    return pairs


def _unknown(entry: Entry, plan: Plan) -> Callable[[], Iterator[tuple[Law, Law]]]:
    """Columns of any law: the worst is a count that tells its parameter, 0 or n. All corners of the tables' tolerance."""
    n, assumed = entry.problem.n, entry.problem.theta[0]
    off = float(getattr(assumed, "tolerance", 0.0) or 0.0)

    def pairs() -> Iterator[tuple[Law, Law]]:
        for x, y, z in itertools.product((-off, off) if off else (0.0,), repeat=3):
            # gender, then height given gender; income given gender: P(high) in each state
            height, income = (0.2 + x, 0.8 + y), (0.2 + z, 0.8 - z)
            posterior = [[0.5 * p for p in income], [0.5 * (1 - p) for p in income]]
            outputs = []
            for row in posterior:
                p = sum(w * h for w, h in zip(row, height, strict=True)) / sum(row)
                masses = np.zeros(n + 1)
                masses[0], masses[n] = 1 - p, p
                outputs.append(released(plan, Law(0, masses), None))
            yield outputs[0], outputs[1]

    return pairs


def _chain(plan: Plan, world: ChainWorld) -> Callable[[], Iterator[tuple[Law, Law]]]:
    """How many entries are 1, given the state of one entry: forwards to it and backwards from the end."""
    n, step = world.problem.n, np.array(world.transition)

    def forward() -> list[Array]:
        """For each row: P(ones so far, state)."""
        now = np.zeros((n + 1, 2))
        now[0, 0], now[1, 1] = world.initial
        found = [now]
        for _ in range(n - 1):
            moved = now @ step
            moved[1:, 1], moved[0, 1] = moved[:-1, 1].copy(), 0.0
            now = moved
            found.append(now)
        return found

    def backward() -> list[Array]:
        """For each row: P(ones still to come | state)."""
        now = np.zeros((n + 1, 2))
        now[0] = 1.0
        found = [now]
        for _ in range(n - 1):
            ahead = np.column_stack([now[:, 0], np.concatenate([[0.0], now[:-1, 1]])])
            now = ahead @ step.T
            found.append(now)
        return found[::-1]

    def pairs() -> Iterator[tuple[Law, Law]]:
        before, after = forward(), backward()
        for row in range(n) if n <= 200 else (0, 1, 7, n // 2, n - 2, n - 1):
            laws = []
            for state in (0, 1):
                chance = before[row][:, state].sum()
                if chance > 0:
                    law = fftconvolve(before[row][:, state], after[row][:, state])[: n + 1] if n > 200 else None
                    exact = (
                        np.convolve(before[row][:, state], after[row][:, state])[: n + 1] if law is None else np.maximum(law, 0)
                    )
                    laws.append(released(plan, Law(0, exact / chance), None))
            yield from itertools.combinations(laws, 2)

    return pairs
