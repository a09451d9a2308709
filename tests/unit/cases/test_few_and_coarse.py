"""Recorded values where few of them, or nearly equal columns, make a failure tell the secret; and stairs far from their centre.

What is counted on: the exact law of a lattice-normal column (its points weighted by the normal density), by convolution.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import attrpriv as ap
from attrpriv.errors import RefusedError
from attrpriv.methods.base.clamp import kept
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.calibrated_weights.proof import WeightsEvidence
from attrpriv.methods.choice.choose import plan
from attrpriv.methods.gaussian import plan as gaussian
from attrpriv.methods.transport import plan as gaussian_transport
from attrpriv.methods.transport.proof import TransportEvidence
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal
from tests.refusing import refuses

FAR = 4.0


def weights(n: int, delta: float) -> Plan:
    rows = ap.Gaussian(mean={"s": 0.0}, sd={"q": 1.0, "s": 1.0}, correlation={("q", "s"): 0.3}, tolerance=0)
    hidden = (ap.Secret("mean(s)", between=(-FAR, FAR)),)
    return plan(
        Problem(queries=(ap.mean("q"),), secrets=hidden, epsilon=1.0, delta=delta, n=n, theta=(rows,)), "calibrated_weights"
    )


def covered_spacing(made: Plan, column: str) -> float:
    (line,) = [line for line in made.certificate.assumes if line.startswith(f"nearly all values of {column} lie on")]
    return float(line.split()[-1])


def failing(n: int, bound: float, spacing: float) -> float:
    """P(q > bound | mean = FAR) for n lattice-normal values of sd 1: q = 1/n + FAR^2/T, T their sum of squares around the mean.

    Given the mean the law of the rest does not depend on where it is, so values are counted from there.
    """
    reach = round(8 / spacing)
    points = np.arange(-reach, reach + 1)
    law = np.exp(-((points * spacing) ** 2) / 2)
    law /= law.sum()
    most = int(FAR**2 / (bound - 1 / n) / spacing**2)
    least = int(most**0.5)
    width = int((n * most) ** 0.5) + 1  # no sum of n numbers whose squares add to `most` is larger
    table = np.zeros((2 * width + 1, most + 1))
    table[width, 0] = 1.0
    for _ in range(n):
        new = np.zeros_like(table)
        for step in range(-least, least + 1):
            new[:, step * step :] += law[reach + step] * np.roll(table, step, axis=0)[:, : most + 1 - step * step]
        table = new
    sums = np.ones(1)
    for _ in range(n):
        sums = np.convolve(sums, law)
    return float(table[width].sum() / sums[n * reach])


def test_a_failure_of_few_rows_is_as_unlikely_as_promised_on_the_spacing_that_is_stated() -> None:
    n, delta = 13, 1e-9
    made = weights(n, delta)
    evidence = made.certificate.evidence
    assert isinstance(evidence, WeightsEvidence)
    assert failing(n, evidence.bound, covered_spacing(made, "s")) <= delta
    # Half a standard deviation, which is what a hundred rows or more are covered for, would not do.
    assert failing(n, evidence.bound, 0.5) > 10 * delta
    assert covered_spacing(weights(100, delta), "s") == pytest.approx(0.5, rel=1e-6)


def nearly_equal(correlation: float, spacing: float) -> Problem:
    """Two columns of whole numbers that nearly always agree: where none of 100 rows differs, the weights do not exist."""
    pairs = {("q", "a"): 0.3, ("q", "b"): 0.3, ("a", "b"): correlation}
    rows = ap.Gaussian(mean={"a": 0.0, "b": 0.0}, sd={"q": 100.0, "a": 2.0, "b": 2.0}, correlation=pairs, tolerance=0)
    hidden = (ap.Secret("mean(a - b)", between=(-0.05, 0.05)),)
    steps = {"q": 1.0, "a": spacing, "b": spacing}
    return Problem(queries=(ap.mean("q"),), secrets=hidden, epsilon=1.0, delta=1e-6, n=100, theta=(rows,), resolution=steps)


def test_sensitive_columns_that_differ_by_less_than_their_spacing_are_refused() -> None:
    with refuses(RefusedError, Cause.PRECISION, "fewer secrets"):
        plan(nearly_equal(0.999, 1.0), "calibrated_weights")
    assert plan(nearly_equal(0.999, 0.03), "calibrated_weights").mechanism == "calibrated_weights"


@pytest.mark.parametrize("size", [1, 2])
def test_stairs_far_from_their_centre_are_as_low_as_near_it(size: int) -> None:
    columns = [f"q{k}" for k in range(size)]
    pairs = {(column, "s"): 0.9 for column in columns} | ({("q0", "q1"): 0.9} if size > 1 else {})
    rows = ap.Gaussian(mean={"s": 0.0}, sd=dict.fromkeys([*columns, "s"], 1.0), correlation=pairs, tolerance=0)
    made = plan(
        Problem(
            queries=tuple(map(ap.mean, columns)),
            secrets=(ap.Secret("mean(s)", within=1.0),),
            epsilon=1.0,
            delta=1e-6,
            n=10_000,
            theta=(rows,),
            resolution=dict.fromkeys([*columns, "s"], 1e-3),
        ),
        "transport",
    )
    evidence = made.certificate.evidence
    assert isinstance(evidence, TransportEvidence)
    clamp = evidence.clamp
    assert clamp.period is not None
    root = np.linalg.cholesky(evidence.spread(evidence.checks[0]))
    for far in (0, 10**9, 10**15, 10**16 + 1):
        for start in range(20):
            low = far + Fraction(start, 20)
            ends = [kept(clamp, [Fraction(row[0]) * x for row in clamp.slopes]) for x in (low, low + 1)]
            apart = [float(high - low) for low, high in zip(*ends, strict=True)]
            assert np.linalg.norm(np.linalg.solve(root, apart)) <= evidence.distance()


# ------------------------------------------------------------------------------ a coarse column closely tied to the query


def tied(correlation: float, n: int, within: float | None = None) -> Problem:
    """q on a fine spacing, s on one of half its sd; by default means must look alike that are one step of one row apart."""
    rows = ap.Gaussian(mean={"q": 0, "s": 0}, sd={"q": 1, "s": 1}, correlation={("q", "s"): correlation}, tolerance=0)
    return Problem(
        queries=(ap.mean("q"),),
        secrets=(ap.Secret("mean(s)", within=0.5 / n if within is None else within),),
        epsilon=1.0,
        delta=1e-6,
        n=n,
        theta=(rows,),
        resolution={"q": 0.001, "s": 0.5},
    )


def given_recorded(n: int, correlation: float, standard_errors: float) -> tuple[np.ndarray, np.ndarray]:
    """The density of what a clamp leaves of the query, given the recorded secret: exact, from characteristic functions.

    x and e are normal of sd 1, q = correlation x + e, and s is x rounded to .5. Given the sum of s, the average of q less the
    slope times that of s, in its own standard deviations.
    """
    sums, points, span, spacing = 2048, 2048, 20.0, 0.5
    nodes, masses = np.polynomial.legendre.leggauss(40)
    cells, errors = np.arange(-30, 31) * spacing, nodes * spacing / 2
    values = cells[:, None] + errors
    law = np.exp(-(values**2) / 2) / np.sqrt(2 * np.pi) * masses * spacing / 2
    slope = correlation * (law * cells[:, None] * values).sum() / (law * cells[:, None] ** 2).sum()
    left = np.sqrt(1 - slope * correlation * (law * cells[:, None] * values).sum())
    frequencies = 2 * np.pi * np.fft.fftfreq(points, 2 * span / points)
    turned = frequencies / (np.sqrt(n) * left)
    row = np.zeros((sums, points), dtype=complex)
    for cell, own, mass in zip(cells, values, law, strict=True):
        waves = np.exp(1j * np.outer(correlation * own - slope * cell, turned))
        row[round(cell / spacing) % sums] = mass @ waves * np.exp(-(turned**2) * (1 - correlation**2) / 2)
    total = round(standard_errors * np.sqrt(n) / spacing)
    back = np.exp(2j * np.pi * total * np.arange(sums) / sums)
    found = (np.fft.fft(row, axis=0) ** n * back[:, None]).mean(axis=0)
    density = np.fft.fft(found / found[0].real * np.exp(1j * frequencies * span)).real / (2 * span)
    return np.linspace(-span, span, points, endpoint=False), density


def true_delta(n: int, correlation: float, epsilon: float, standard_errors: float = 4.0) -> float:
    """In units of delta 1e-6: of a clamp without noise that takes the law for normal, secrets far out on both sides."""
    grid, density = given_recorded(n, correlation, standard_errors)
    mu = ap.calibration.gaussian_mu(epsilon, 0.98e-6)
    outputs = np.linspace(-9, 9, 20_001)
    law = CubicSpline(grid, density)
    high, low = law(outputs - mu / 2), law(-(outputs + mu / 2))
    above = [np.clip(p - np.exp(epsilon) * q, 0, None).sum() * (outputs[1] - outputs[0]) for p, q in ((high, low), (low, high))]
    return float(max(above)) / 1e-6


def test_the_twin_of_a_coarse_column_knows_the_normal_law() -> None:
    """Without a tie to the coarse column nothing but the reserve of 2% is left between the true delta and the promise."""
    assert true_delta(100, 0.01, 1.0) == pytest.approx(0.98, abs=1e-4)


@pytest.mark.parametrize(
    ("correlation", "n", "epsilon", "times"),
    [(0.99, 100, 1.0, 2.93), (0.99, 100, 0.1, 17.8), (0.95, 100, 0.1, 2.48), (0.79, 100, 0.1, 1.14), (0.98, 2_000, 0.1, 1.14)],
)
def test_rounding_of_a_column_that_the_query_follows_is_not_normal(
    correlation: float, n: int, epsilon: float, times: float
) -> None:
    """Exact laws of such tables exceed delta; without noise that covers it, nothing is planned."""
    assert true_delta(n, correlation, epsilon) == pytest.approx(times, rel=5e-3)
    for planner in (gaussian_transport.plan, gaussian.plan):
        with refuses(Refusal, Cause.PRECISION, "finer values"):
            planner(tied(correlation, n))


@pytest.mark.parametrize(
    ("correlation", "n", "epsilon", "most"), [(0.7, 100, 1.0, 1.0), (0.7, 100, 0.1, 1.07), (0.9, 2_000, 0.1, 1.01)]
)
def test_what_is_planned_is_nearly_normal(correlation: float, n: int, epsilon: float, most: float) -> None:
    """Just inside of the rule: the figures that docs/theory/recorded-values.md states."""
    assert gaussian_transport.plan(tied(correlation, n, 0.1)).mechanism == "transport"
    assert true_delta(n, correlation, epsilon) <= most


def test_more_rows_weaker_ties_and_noise_help() -> None:
    assert gaussian_transport.plan(tied(0.98, 100_000, 0.1)).mechanism == "transport"
    assert gaussian_transport.plan(tied(0.5, 100, 0.1)).mechanism == "transport"
    assert gaussian.plan(tied(0.95, 100, 10.0)).noise.scale > 1
