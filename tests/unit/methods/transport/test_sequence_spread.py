"""What steeper slopes leave of the spread of a sequence's answers, where one of them has none of its own."""

from __future__ import annotations

import pytest

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.methods.transport.sequence import _left_of_spread, plan
from attrpriv.methods.transport.sequence_case import Case
from attrpriv.methods.transport.sequence_proof import SequenceEvidence
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query

N = 10_000
MEMBER = Gaussian(
    mean={"weight": 170.0, "income": 60_000.0},
    sd={"weight": 25.0, "income": 30_000.0},
    correlation={("weight", "income"): 0.3},
    tolerance=0,
)


@pytest.mark.parametrize("off", [0.001, 0.1])
def test_an_answer_without_spread_of_its_own_takes_nothing_from_the_others(off: float) -> None:
    """The hidden mean itself is asked for: nothing is credited for it, and what is credited for the other still counts."""
    problem = Problem(
        queries=(Query("avg", "weight"), Query("avg", "income")),
        secrets=(Secret("mean(income)", between=(20_000.0, 200_000.0)),),
        epsilon=1.0,
        delta=1e-6,
        n=N,
        theta=(MEMBER,),
        resolution={"weight": 0.001, "income": 1.0},
        spend=0.5,
    )
    made = plan(problem).certificate.evidence
    assert isinstance(made, SequenceEvidence)
    own = 25.0**2 * (1 - 0.3**2) / N
    assert made.credited[0][0] == pytest.approx(own, rel=1e-9)
    assert (made.credited[0][1], *made.credited[1]) == (0.0, 0.0, 0.0)
    # One statistic is read: the share that it explains is b' C^-1 b times its variance, C the answers' own spread and noise.
    slopes, noise = (0.3 * 25 / 30_000, 1.0), [step.noise**2 for step in made.steps]
    told = slopes[0] ** 2 / (own + noise[0]) + slopes[1] ** 2 / noise[1]
    left = 1 - (2 * off + off**2) * 30_000**2 / N * told
    assert left < 1 - 1e-3
    assert _left_of_spread(Case.of(problem), made, off) == pytest.approx(left, rel=1e-6)
