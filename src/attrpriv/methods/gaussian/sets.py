"""Set-valued secrets (`cases`): which of several sets holds the mean, hidden by the exact law of the mixture.

Given that the mean lies in a set, the released average is a mixture over the set, so two sets with equal means can still look
different. For one average and one sensitive column whose mean is stated, `calibration.moving_variance` proves the noise for
every distribution of the box, in both directions and for every ordered pair of sets. Where no mean is stated the law of the
secret is not assumed, and only bounded sets can be hidden, point by point (`cases.shift`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.vector_box import standardised_cases
from attrpriv.errors import UsageError
from attrpriv.methods.base.gaussian_proof import CasesCheck
from attrpriv.numerics.calibration.set_valued import MovingNoise, moving_variance
from attrpriv.numerics.laws.law_box import MovingCases
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal
from attrpriv.problem.secret import Secret


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


def by_law(secret: Secret, theta: Sequence[Gaussian]) -> bool:
    """Whether a set-valued secret is hidden by the law of its mixture: its mean must be stated."""
    return secret.cases is not None and all(secret.single in gaussian.mean for gaussian in theta)


def case_noise(problem: Problem, theta: Sequence[Gaussian], epsilon: float, delta: float, least: float) -> list[CaseNoise]:
    """The noise that each set-valued secret needs; a refusal where it is not covered."""
    secrets = [secret for secret in problem.secrets if by_law(secret, theta)]
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
    reason = None
    try:
        return moving_variance(moving, epsilon, delta, least)
    except UsageError as error:
        reason = str(error)
    raise Refusal(Cause.NUMBERS, f"cases are not covered over this tolerance: {reason}", needs="a smaller tolerance")


def moving_cases(problem: Problem, gaussian: Gaussian, query: str, secret: Secret) -> MovingCases:
    """The sets and the box of laws, in the unit of the column's mean."""
    if secret.single is None:
        raise Refusal(
            Cause.SECRET, f"{secret.text}: cases take the mean or sum of one column.", needs="the mean or sum of one column"
        )
    weight = float(secret.forms[0].weight(problem.n))
    return standardised_cases(gaussian, query, secret.single, secret.case_sets, problem.n, weight=weight)
