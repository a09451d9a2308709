"""What the answers would tell of a secret without any noise, under the assumption: what a release is compared with.

| shape | how |
|---|---|
| `SHIFT` | normal averages that move with the secret: how many standard deviations, by the moments as they are stated |
| `LATTICE` | the laws of a count or a sum given two counts of the secret, by enumeration; the worst one of intervals |
| others | not known |
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from attrpriv.assumptions.gaussian import Gaussian, Tolerance
from attrpriv.cases.lattice import CountCase, counted
from attrpriv.cases.shift import seen_in
from attrpriv.cases.subset import Rows
from attrpriv.errors import AttrprivError, CertificateError
from attrpriv.methods.base.accuracy import BY_LAWS, EXACT_FORMULA, EXACT_LAWS, Profile
from attrpriv.methods.base.gaussian_proof import matrix_distance
from attrpriv.numerics.calibration.direct import direct_delta
from attrpriv.numerics.divergences.gaussian import gaussian_delta_upper
from attrpriv.numerics.laws.records import CountPairs
from attrpriv.numerics.rounding import COMPUTED_DOWN
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Refusal
from attrpriv.problem.secret import Secret
from attrpriv.problem.shapes import LATTICE, SHIFT


@dataclass(frozen=True)
class ExactAnswer:
    """`delta` of each epsilon for two values so far apart, from above, and how it is to be asked for."""

    delta: Callable[[float], float]
    profile: Profile


def exact_answer(problem: Problem, secret: Secret, times: float) -> ExactAnswer | None:
    """Of two values so many times as far apart as the promised pairs; None where no law of the answers is known."""
    known = {SHIFT: _normal, LATTICE: _counts}.get(problem.shape)
    if known is None or secret.cases is not None or not times > 0:
        return None
    try:
        return known(problem, secret, times)
    except (Refusal, AttrprivError):  # nothing is known of what no method can take
        return None


def _normal(problem: Problem, secret: Secret, times: float) -> ExactAnswer | None:
    stated = [_as_stated(member) for member in problem.assumed(Gaussian)]
    cases = [one for one in seen_in(problem, Rows.of(problem), stated) if one.secret == secret.text]
    if not cases or any(case.signless for case in cases):
        return None
    sds = max(_sds(case.shifts.tolist(), case.residual) for case in cases) * times
    return ExactAnswer(lambda epsilon: 1.0 if math.isinf(sds) else gaussian_delta_upper(epsilon, sds), EXACT_FORMULA)


def _as_stated(member: Gaussian) -> Gaussian:
    return member.model_copy(update={"tolerance": Tolerance(slope=0.0)})


def _sds(shifts: list[list[float]], spread: object) -> float:
    import numpy as np

    try:
        return matrix_distance(shifts, np.asarray(spread, dtype=np.float64))
    except CertificateError:  # what has no spread of its own shows the secret as it is
        return math.inf


def _counts(problem: Problem, secret: Secret, times: float) -> ExactAnswer | None:
    found = counted(problem)
    cases = [case for case in found.cases if case.secret == secret.text]
    if not cases or found.tally.histogram:
        return None

    def delta(epsilon: float) -> float:
        told = [direct_delta(case.records, _pairs(case, times), "none", 0.0, epsilon, known=found.known) for case in cases]
        return max(one.upper for one in told)

    delta(problem.epsilon)  # an error now, where the laws are too large to be enumerated
    sure = all(case.records.exact and not case.population for case in cases)
    return ExactAnswer(delta, EXACT_LAWS if sure else BY_LAWS)


def _pairs(case: CountCase, times: float) -> CountPairs:
    """Of a population every two counts belong to the ends of its range, whatever the distance."""
    if case.population:
        return case.pairs
    rows = max(1, math.ceil(case.pairs.apart * times * COMPUTED_DOWN))
    return replace(case.pairs, apart=min(rows, case.pairs.high - case.pairs.low))
