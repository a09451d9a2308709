"""What is left of (epsilon, delta) for the calibration, after everything else that the promise has to pay for.

| charge | for |
|---|---|
| grid_lambda, grid_eta | drawing noise on a grid (`numerics.calibration.grids`) |
| lattice_lambda | values recorded on a lattice (`cases.recorded_values`) |
| shape_lambda, shape_eta | laws that are only nearly normal: the policy's `shape` tolerance |
| clip_delta | rows clipped to `bounds` (`cases.clipping`) |
| fit_delta | an assumption fitted on public records, which may miss the truth |
| reserve | 2% of delta, kept back for what normality of averages leaves open |

With lambda and eta their sums, laws that are (eps', delta')-close become (eps' + 2 lambda, e^lambda delta' + eta (1 + e^(eps' +
lambda)))-close (Algorithm 2, corrected: docs/theory/gaussian.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from attrpriv.assumptions.fit_risk import FitCharge, fit_charge, fit_refusal
from attrpriv.errors import RefusedError
from attrpriv.methods.base.charges import CHARGES
from attrpriv.numerics.calibration.gaussian import classical_mu, gaussian_mu
from attrpriv.numerics.calibration.grids import grid_charge
from attrpriv.numerics.divergences.gaussian import gaussian_epsilon
from attrpriv.numerics.rounding import COMPUTED_DOWN, LEFT_DOWN
from attrpriv.problem.assumption import Assumption
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal

_RESERVE = 0.02
# In a sequence grids and recorded values are paid for so many averages and so much, whether they are asked for or not: the
# distance that is allowed in all must not depend on which queries come, because these may depend on the answers.
MOST_STEPS = 40
MOST_LATTICE = 1e-6


@dataclass(frozen=True)
class Budget:
    """The calibration's own epsilon and delta, every charge, and the delta that is promised in the end."""

    epsilon: float
    delta: float
    grid_lambda: float
    grid_eta: float
    lattice_lambda: float
    shape_lambda: float
    shape_eta: float
    clip_delta: float
    fit_delta: float
    reserve: float
    promised: float
    fit_lines: tuple[str, ...]

    @property
    def charges(self) -> dict[str, float]:
        """What is paid besides the calibration, by the names under which evidence stores it."""
        return {name: getattr(self, name) for name in CHARGES}

    @property
    def excess(self) -> float:
        """What the lambdas add to the calibration's epsilon."""
        return 2 * (self.grid_lambda + self.lattice_lambda + self.shape_lambda)


def budget(
    problem: Problem,
    theta: Sequence[Assumption],
    lattice_lambda: float,
    clip_delta: float,
    common: int | None = None,
    columns: int | None = None,
) -> Budget:
    """Pay for everything, `common` draws of noise common to several averages included; refuse where nothing is left.

    `columns` is how many averages get noise, where it is not those of the problem.
    """
    grid_lambda, grid_eta = grid_charge(len(problem.columns) if columns is None else columns, common)
    shape_lambda = max((member.nearly()[0] for member in theta), default=0.0)
    shape_eta = max((member.nearly()[1] for member in theta), default=0.0)
    fit = _fit_charge(problem, theta)
    lam = grid_lambda + lattice_lambda + shape_lambda
    epsilon = (problem.epsilon - 2 * lam) * COMPUTED_DOWN
    reserve = _RESERVE * problem.delta
    left = fit.calibration - reserve - clip_delta
    left -= (grid_eta + shape_eta) * (1 + math.exp(problem.epsilon))
    delta = left * math.exp(-lam) * LEFT_DOWN
    if not (epsilon > 0 and delta > 0):
        raise Refusal(
            Cause.BUDGET,
            f"what comes before the calibration (grids, recorded spacing, shape, clipping, fit) costs more than epsilon "
            f"{problem.epsilon:g}, delta {problem.delta:g} allow.",
        )
    return Budget(
        epsilon,
        delta,
        grid_lambda,
        grid_eta,
        lattice_lambda,
        shape_lambda,
        shape_eta,
        clip_delta,
        fit.risk,
        reserve,
        fit.promised,
        fit.lines,
    )


def sequence_budget(
    problem: Problem, theta: Sequence[Assumption], averages: int, lattice_lambda: float, common: int | None = None
) -> Budget:
    """The budget of a release that shares it with others; the same whichever averages they are of."""
    if averages > MOST_STEPS:
        raise Refusal(
            Cause.SIZE,
            f"a sequence has at most {MOST_STEPS} averages. Ask for fewer, or for many at once with spend 1.",
            needs=("fewer averages", "spend 1"),
        )
    if lattice_lambda > MOST_LATTICE:
        raise Refusal(
            Cause.PRECISION,
            "the mask does not cover the spacing of the values well enough for a sequence. Declare resolution.",
            needs="resolution",
        )
    if problem.calibration == "classical":
        raise Refusal(
            Cause.BUDGET,
            "calibration: the classical constant is for a release that is alone. Use analytic, or spend 1.",
            needs=("calibration analytic", "spend 1"),
        )
    return budget(problem, theta, MOST_LATTICE, 0.0, common, MOST_STEPS)


def _fit_charge(problem: Problem, theta: Sequence[Assumption]) -> FitCharge:
    """The chance that a fitted assumption misses the truth: part of delta, or on top of it where the policy accepts that."""
    reason = fit_refusal(theta, problem.delta)
    if reason is not None and not problem.accept_fit_risk:
        raise Refusal(Cause.BUDGET, reason, needs=("a fit with that confidence", "accept_fit_risk"), usage=True)
    return fit_charge(theta, problem.delta)


def allowed_distance(problem: Problem, left: Budget) -> float:
    """How far apart, in standard deviations, two outputs may be."""
    reason = None
    try:
        calibrate = classical_mu if problem.calibration == "classical" else gaussian_mu
        return calibrate(left.epsilon, left.delta)
    except RefusedError as error:
        reason = str(error)
    raise Refusal(Cause.BUDGET, reason)


def real_epsilon(distance: float, left: Budget) -> float | None:
    """The epsilon of outputs this far apart, at the calibration's delta; None where none holds."""
    epsilon = gaussian_epsilon(distance, left.delta) + left.excess if math.isfinite(distance) else math.inf
    return epsilon if math.isfinite(epsilon) else None
