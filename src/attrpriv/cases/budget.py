"""What is left of (epsilon, delta) for the calibration, after everything else that the promise has to pay for.

| charge | for |
|---|---|
| grid_lambda, grid_eta | drawing noise on a grid (`numerics.calibration.gaussian`) |
| lattice_lambda | values recorded on a lattice (`cases.gaussian`) |
| shape_lambda, shape_eta | laws that are only nearly normal: the policy's `shape` tolerance |
| clip_delta | rows clipped to `bounds` (below) |
| fit_delta | an assumption fitted on public records, which may miss the truth |
| reserve | 2% of delta, kept back for what normality of averages leaves open |

With lambda and eta their sums, laws that are (eps', delta')-close become (eps' + 2 lambda, e^lambda delta' + eta (1 + e^(eps' +
lambda)))-close (Algorithm 2, corrected: docs/theory/gaussian.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from attrpriv.assumptions.gaussian import FittedRecord, Gaussian
from attrpriv.assumptions.worst_case import steepest_slope
from attrpriv.errors import RefusedError
from attrpriv.methods.base.evidence import CHARGES
from attrpriv.numerics.calibration.gaussian import classical_mu, gaussian_mu, grid_charge
from attrpriv.numerics.divergences.gaussian import gaussian_epsilon
from attrpriv.numerics.rounding import COMPUTED_DOWN, LEFT_DOWN, SOLVED_UP
from attrpriv.numerics.special import normal_cdf
from attrpriv.problem.assumption import Assumption
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal
from attrpriv.problem.secret import Secret

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


# ----------------------------------------------------------------------------------------------------------------------------
# When a Gaussian mechanism may clip rows to the policy's `bounds`, and what that costs.
#
# Clipping changes the law that the assumption describes. If some row is clipped with probability at most p, whatever the
# secret, the released law moves by at most p in total variation and delta grows by (1 + e^eps) p. Where p is small enough
# that is charged; elsewhere the column is *not* clipped, because the guarantee comes first, and the plan says so.
#
# Given g = a, a row of the query column is normal with mean  mu_q + slope (a - mu_g)  and at most the column's own variance.


# The largest share of delta that clipping may take.
_SHARE = 0.1


def clip_charge(problem: Problem, theta: Sequence[Gaussian], column: str) -> float | None:
    """What clipping this column adds to delta; None where it cannot be afforded or not be bounded."""
    if problem.known_rows > 0:  # whoever knows a row outside the bounds knows that it is clipped
        return None
    chances = [_chance(problem, gaussian, column, secret) for gaussian in theta for secret in problem.secrets]
    chance = max(chances, default=math.inf)
    charge = (1 + math.exp(problem.epsilon)) * chance
    return charge if charge <= _SHARE * problem.delta / max(1, len(problem.columns)) else None


def _chance(problem: Problem, gaussian: Gaussian, column: str, secret: Secret) -> float:
    """An upper bound on P(some row is clipped | g = a) over the secret's range and the box."""
    hidden = secret.single
    if secret.ends is None or hidden is None or not {column, hidden} <= set(gaussian.mean):
        return math.inf
    n, own = problem.n, gaussian.sd_range(column)[1]
    drift = gaussian.tolerance.mean * own
    centre = gaussian.mean[hidden]
    wander = gaussian.tolerance.mean * gaussian.sd_range(hidden)[1]
    furthest = max(abs(end / secret.forms[0].weight(n) - centre) for end in secret.ends) + wander
    reach = drift + steepest_slope(gaussian, column, hidden) * furthest
    low, high = problem.bounds[column]
    mean = gaussian.mean[column]
    tails = normal_cdf((low - mean + reach) / own) + normal_cdf((mean + reach - high) / own)
    return n * tails * SOLVED_UP


# ----------------------------------------------------------------------------------------------------------------------------
# What a fitted assumption costs: the part of delta that is kept for the fit having missed the truth.
#
# Independent public records whose box contains the truth with probability 1 - beta give (epsilon, delta + beta): average over
# the public records, and count every record set whose box misses as a failure. So beta is paid out of delta, and the
# calibration gets the rest. The miss is one event for all releases that use the assumption: it is charged once, not once a
# release.
#
# What must never change: a risk above delta/2 is refused unless the owner accepts it, and then it is added to the promise.


@dataclass(frozen=True)
class FitCharge:
    """What fitted assumptions cost: `risk` of missing the truth, delta left to calibrate with, delta promised in the end."""

    risk: float
    calibration: float
    promised: float
    lines: tuple[str, ...]


def fit_refusal(theta: Sequence[Assumption], delta: float) -> str | None:
    """Why these assumptions need `accept_fit_risk`; None where they do not: the risk is at most half of delta."""
    for record in _records(theta):
        if not record.confidence >= 1 - delta / 2:
            return (
                f"assume: a fitted assumption needs a confidence of at least 1 - delta/2 = {1 - delta / 2!r}. Got "
                f"{record.confidence!r}. Fit again with that confidence, or set accept_fit_risk: true to promise "
                f"delta + {record.risk:.4g} instead of delta."
            )
    return None


def fit_charge(theta: Sequence[Assumption], delta: float) -> FitCharge:
    """Split delta between the fit and the calibration.

    If the truth is one of several assumptions, the one that applies misses it with at most the largest risk. A risk of at most
    delta/2 is paid out of delta; a larger one, which the owner must have accepted, comes on top of it.
    """
    records = _records(theta)
    if not records:
        return FitCharge(0.0, delta, delta, ())
    risk = max(record.risk for record in records)
    inside = fit_refusal(theta, delta) is None
    where = f"{risk:.4g} of delta {delta:g} is kept for a miss" if inside else f"a miss adds {risk:.4g} to delta {delta:g}"
    lines = (
        f"the fitted box contains the truth with probability {min(record.confidence for record in records)!r}; {where}",
        _rests_on(theta, records),
    )
    if inside:
        return FitCharge(risk, max(0.0, math.nextafter(delta - risk, 0.0)), delta, lines)
    return FitCharge(risk, delta, math.nextafter(delta + risk, math.inf), lines)


def _rests_on(theta: Sequence[Assumption], records: Sequence[FittedRecord]) -> str:
    """Intervals are as for normal rows where nobody looked at their shape, and else widened by what they show."""
    if any(member.normal_rows for member in theta) and any(record.shape is None for record in records):
        normal = "and exactly Gaussian (with groups: within each category)"
        return f"the public rows are independent of this table, of its population, {normal}: assumed, not tested"
    return "the public rows are independent of each other and of this table, and of its population: assumed, not tested"


def _records(theta: Sequence[Assumption]) -> list[FittedRecord]:
    return [record for member in theta if (record := member.fit_record()) is not None]
