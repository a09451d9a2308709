"""How much Gaussian noise: on top of averages that were released before, and for sets of values (at the end).

Of averages that follow one another each is planned as if all so far were asked together.

Stack all averages released so far (1) and the new ones (2). Given a secret they are normal with shifts B = (B1, B2) and a
covariance of at least S, and noise Z = diag(Z1, Z2), of which Z1 was drawn. All of it is hidden iff for every case

    B' (S + Z)^-1 B <= m^2 I,     m^2 = D^2 + spend (mu^2 - D^2),     D the distance that the earlier averages reach alone

By the block inverse that is a condition on the new noise alone, of the same form as for a first release:

    C' (T + Z2)^-1 C <= m^2 I,   T = S22 - G S12,   C = (B2 - G B1) R^(-1/2) m
    G = S21 (S11 + Z1)^-1,       R = m^2 I - B1' (S11 + Z1)^-1 B1

| symbol | here |
|---|---|
| Z1 | `EarlierAverages.noise` |
| C, T | the `shifts` and `residual` of a case that is `conditioned` |
| m | `target` |

The distances of a sequence are those of Gaussian steps whose squares add up to D^2 at each moment, so the next query may be
chosen after seeing the answers (docs/theory/joint.md). What must never change: what is promised is checked on the stacked
averages themselves, over the whole class (`methods.base.gaussian_proof`); this module only finds the noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.vector_box import standardised_cases
from attrpriv.cases.shift import ShiftCase, by_law
from attrpriv.errors import UsageError
from attrpriv.methods.base.certificate import LEAST_LEFT
from attrpriv.methods.base.column_plan import Design
from attrpriv.methods.base.gaussian_proof import CasesCheck, GaussianEvidence
from attrpriv.numerics.calibration.set_valued import MovingNoise, moving_variance
from attrpriv.numerics.laws.law_box import MovingCases
from attrpriv.numerics.rounding import SOLVED_DOWN
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, refusing
from attrpriv.problem.secret import Secret

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class EarlierAverages:
    """The averages released so far, in order, and the noise that was drawn for them."""

    columns: tuple[str, ...] = ()
    independent: tuple[float, ...] = ()
    factor: tuple[tuple[float, ...], ...] = ()

    @classmethod
    def of(cls, problem: Problem) -> EarlierAverages:
        earlier = None if problem.earlier is None else GaussianEvidence.read(problem.earlier)
        if earlier is None:
            return cls()
        if earlier.final:
            raise Refusal(Cause.EARLIER, "an earlier average stands alone: of clipped rows, or to hide sets of values.")
        again = [column for column in problem.columns if column in earlier.columns]
        if again:
            raise Refusal(
                Cause.EARLIER,
                f"{again[0]}: was released before; ask for it as it was asked then, and it is repeated.",
                needs="the same question",
            )
        return cls(earlier.columns, earlier.independent, earlier.factor)

    @property
    def common(self) -> int:
        return len(self.factor[0]) if self.factor else 0

    def noise(self) -> Matrix:
        return Design(self.independent, self.factor).covariance()

    def together(self, problem: Problem) -> Problem:
        """The same problem with the earlier averages asked too."""
        if not self.columns:
            return problem
        return problem.model_copy(update={"queries": (*map(problem.average, self.columns), *problem.queries)})

    def with_new(self, new: Design) -> Design:
        """All noise: what was drawn, and what will be."""
        if not (self.factor or new.factor):
            return Design((*self.independent, *new.independent), ())
        width = len(new.factor[0]) if new.factor else 0
        old = [(*row, *(0.0,) * width) for row in self.factor or ((),) * len(self.columns)]
        own = [(*(0.0,) * self.common, *row) for row in new.factor or ((),) * len(new.independent)]
        return Design((*self.independent, *new.independent), (*old, *own))

    def require_masked(self, masks: Mapping[str, float]) -> None:
        """A policy that was tightened may ask for more noise below the digits than was drawn."""
        for column, own in zip(self.columns, self.independent, strict=True):
            if own < masks[column] * SOLVED_DOWN:
                raise Refusal(
                    Cause.EARLIER,
                    f"{column}: was released with less noise below its digits than this policy asks for.",
                    needs="the resolution of earlier releases",
                )

    def widened(self, masks: Mapping[str, float], factor: float) -> dict[str, float]:
        """Wider masks; of what was drawn, no more than there is."""
        wide = {column: factor * mask for column, mask in masks.items()}
        return {**wide, **{column: min(own, wide[column]) for column, own in zip(self.columns, self.independent, strict=True)}}


def target(past: EarlierAverages, cases: Sequence[ShiftCase], mu: float, spend: float) -> float:
    """How far apart outputs may be after this release; a refusal where nothing is left."""
    if not past.columns:
        return mu * math.sqrt(spend)
    spent = max((_reached(past, case) for case in cases), default=0.0)
    left = mu**2 - spent
    if not left > LEAST_LEFT * mu**2:
        raise Refusal(
            Cause.EARLIER,
            "nothing is left of the budget: the averages released so far are as far apart as epsilon and delta allow. "
            "Recorded answers are repeated at no cost.",
        )
    return math.sqrt(spent + spend * left)


def conditioned(past: EarlierAverages, cases: Sequence[ShiftCase], reach: float) -> list[ShiftCase]:
    """What each case asks of the new noise, given the earlier answers."""
    return list(cases) if not past.columns else [_conditioned(past, case, reach) for case in cases]


def _reached(past: EarlierAverages, case: ShiftCase) -> float:
    """The largest eigenvalue of B1' W1 B1."""
    import numpy as np

    shifts, weighed = _weighed(past, case)
    return max(0.0, float(np.linalg.eigvalsh(shifts.T @ weighed)[-1]))


def _weighed(past: EarlierAverages, case: ShiftCase) -> tuple[Matrix, Matrix]:
    """B1 and W1 B1."""
    import numpy as np

    if case.signless and past.factor:
        raise Refusal(
            Cause.EARLIER,
            "so many slopes may have either sign that only independent noise hides them; earlier noise was common.",
        )
    size = len(past.columns)
    spread = case.residual[:size, :size] + past.noise()
    shifts = case.shifts[:size]
    return shifts, np.asarray(np.linalg.solve(spread, shifts), dtype=np.float64)


def _conditioned(past: EarlierAverages, case: ShiftCase, reach: float) -> ShiftCase:
    import numpy as np

    size = len(past.columns)
    shifts, weighed = _weighed(past, case)
    values, vectors = np.linalg.eigh(reach**2 * np.eye(shifts.shape[1]) - shifts.T @ weighed)
    if not values[0] > 0:
        raise Refusal(
            Cause.EARLIER,
            "the earlier averages use this share of the budget already. Spend more of it, or keep to their answers.",
            needs="a larger share of the budget",
        )
    root = vectors @ np.diag(reach / np.sqrt(values)) @ vectors.T
    cross = case.residual[size:, :size]
    gain = np.linalg.solve(case.residual[:size, :size] + past.noise(), cross.T).T
    left = case.residual[size:, size:] - gain @ cross.T
    moved = (case.shifts[size:] - gain @ shifts) @ root
    return replace(case, shifts=moved, residual=(left + left.T) / 2)


# ----------------------------------------------------------------------------------------------------------------------------
# Set-valued secrets (`cases`): which of several sets holds the mean, hidden by the exact law of the mixture.
#
# Given that the mean lies in a set, the released average is a mixture over the set, so two sets with equal means can still look
# different. For one average and one sensitive column whose mean is stated, `calibration.moving_variance` proves the noise for
# every distribution of the box, in both directions and for every ordered pair of sets. Where no mean is stated the law of the
# secret is not assumed, and only bounded sets can be hidden, point by point (`cases.shift`).


@dataclass(frozen=True)
class CaseNoise:
    """One set-valued secret under one member of Theta, with the noise that hides it."""

    secret: Secret
    theta: int
    moving: MovingCases
    noise: MovingNoise

    def check(self, epsilon: float, variance: float) -> CasesCheck:
        """The evidence, at the noise that is drawn in the end."""
        return CasesCheck(
            secret=self.secret.text,
            theta=self.theta,
            cases=tuple(str(case) for case in self.moving.cases),
            means=self.moving.box.means,
            sds=self.moving.box.sds,
            form=self.moving.form,
            strength=self.moving.strength,
            query_sds=self.moving.query_sds,
            cells=tuple((*checked.cell.means, *checked.cell.sds) for checked in self.noise.cells),
        )


def case_noise(problem: Problem, theta: Sequence[Gaussian], epsilon: float, delta: float, least: float) -> list[CaseNoise]:
    """The noise that each set-valued secret needs; a refusal where it is not covered."""
    secrets = [secret for secret in problem.secrets if secret.cases is not None and by_law(secret, theta)]
    if not secrets:
        return []
    if len(problem.columns) != 1:
        raise Refusal(Cause.TOGETHER, f"{secrets[0].text}: with cases, one column can be asked for at a time in this version.")
    if problem.known_rows > 0:
        raise Refusal(
            Cause.PERSONS,
            f"{secrets[0].text}: known rows move the law of the mean, which is not covered for cases.",
            needs="known_rows 0",
        )
    found = []
    for index, gaussian in enumerate(theta):
        for secret in secrets:
            moving = moving_cases(problem, gaussian, problem.columns[0], secret)
            found.append(CaseNoise(secret, index, moving, _proved(moving, epsilon, delta, least**2)))
    return found


def _proved(moving: MovingCases, epsilon: float, delta: float, least: float) -> MovingNoise:
    with refusing(
        UsageError,
        to=lambda error: Refusal(
            Cause.NUMBERS, f"cases are not covered over this tolerance: {error}", needs="a smaller tolerance"
        ),
    ):
        return moving_variance(moving, epsilon, delta, least)


def moving_cases(problem: Problem, gaussian: Gaussian, query: str, secret: Secret) -> MovingCases:
    """The sets and the box of laws, in the unit of the column's mean."""
    if secret.single is None:
        raise Refusal(
            Cause.SECRET, f"{secret.text}: cases take the mean or sum of one column.", needs="the mean or sum of one column"
        )
    weight = float(secret.forms[0].weight(problem.n))
    return standardised_cases(gaussian, query, secret.single, secret.case_sets, problem.n, weight=weight)
