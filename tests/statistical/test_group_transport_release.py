"""The certified law is the real one: answers simulated for both secrets of a pair, by what the product moves and draws.

200,000 tables a case, as sufficient statistics: given the counts an average is normal. A two-sided test of every interval of a
fine partition, Bonferroni over its intervals and both ends: a false alarm less than once in 10^6 runs, and each mutant (no
clamp on one side, half tau) is missed less than once in 10^6 runs.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtri

from attrpriv.assumptions.groups import Groups
from attrpriv.methods.base.equalising import hidden_scale
from attrpriv.methods.base.evidence import Told
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan
from attrpriv.methods.group_transport.proof import GroupTransportEvidence
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query

pytestmark = pytest.mark.slow

TABLES, FALSE_ALARM, CELLS = 200_000, 1e-6, 40
ROWS, LOW, HIGH = 400, 100, 160


def planned(prior: dict[str, float] | None) -> Plan:
    groups = Groups(
        sensitive="gender",
        mean={"F": {"hours": 36.0}, "M": {"hours": 42.0}},
        sd={"F": {"hours": 8.0}, "M": {"hours": 12.0}},
        prior=prior,
        tolerance=0,
    )
    asked: dict[str, Any] = {
        "queries": (Query("avg", "hours"),),
        "secrets": (Secret("share(gender = 'F')", between=(LOW / ROWS, HIGH / ROWS)),),
        "epsilon": 1.0,
        "delta": 1e-3,
        "n": ROWS,
        "theta": (groups,),
        "resolution": {"hours": 0.1},
    }
    return plan(Problem(**asked), "transport")


def simulated(evidence: GroupTransportEvidence, count: int, rng: np.random.Generator, mutant: str = "") -> NDArray[np.float64]:
    """Released averages of tables with this count."""
    mean = (count * 36.0 + (ROWS - count) * 42.0) / ROWS
    own = math.sqrt((count * 8.0**2 + (ROWS - count) * 12.0**2) / ROWS**2)
    sides = [count], [ROWS - count]
    reach = {"half tau": 2 * evidence.reach, "one side": 1e6 if count > 130 else evidence.reach}.get(mutant, evidence.reach)
    told = Told({}, tuple(sides[0]), tuple(sides[1]))
    (moved,) = evidence.model_copy(update={"reach": reach}).taken([Fraction(0)], told)
    hidden = hidden_scale(evidence.check.case, evidence.scale, told) if evidence.form == "equalised" else None
    scale = evidence.scale if hidden is None else hidden[0]
    return np.asarray(mean + float(moved) + own * rng.normal(size=TABLES) + scale * rng.normal(size=TABLES))


def certified(evidence: GroupTransportEvidence, count: int) -> tuple[float, float]:
    """Mean and sd that the proof counts on, written down again."""
    mean = (count * 36.0 + (ROWS - count) * 42.0) / ROWS
    y = mean - evidence.centre
    own = (count * 8.0**2 + (ROWS - count) * 12.0**2) / ROWS**2
    most = (LOW * 8.0**2 + (ROWS - LOW) * 12.0**2) / ROWS**2
    total = most if evidence.form == "equalised" else own
    return mean - y + min(max(y, -evidence.reach), evidence.reach), math.sqrt(total + evidence.scale**2)


def fits(drawn: NDArray[np.float64], mean: float, sd: float) -> bool:
    edges = ndtri(np.linspace(0, 1, CELLS + 1))
    found, _ = np.histogram((drawn - mean) / sd, edges)
    chance = 1 / CELLS
    reach = float(ndtri(1 - FALSE_ALARM / (4 * CELLS)))
    return bool((np.abs(found - TABLES * chance) <= reach * math.sqrt(TABLES * chance * (1 - chance))).all())


@pytest.mark.parametrize("prior", [{"F": 0.325, "M": 0.675}, None])
def test_the_answer_has_the_certified_law(prior: dict[str, float] | None) -> None:
    rng = np.random.default_rng()
    evidence = planned(prior).certificate.evidence
    assert isinstance(evidence, GroupTransportEvidence)
    for count in (LOW, HIGH):
        assert fits(simulated(evidence, count, rng), *certified(evidence, count))
    for mutant in ("half tau", "one side"):
        assert not all(fits(simulated(evidence, count, rng, mutant), *certified(evidence, count)) for count in (LOW, HIGH))


def test_the_pair_is_as_close_as_promised() -> None:
    """No interval of outputs is likelier than e^eps times itself, and delta: Hoeffding over 80 tails and both directions."""
    rng = np.random.default_rng()
    evidence = planned(None).certificate.evidence
    assert isinstance(evidence, GroupTransportEvidence)
    drawn = [np.sort(simulated(evidence, count, rng)) for count in (LOW, HIGH)]
    wide = [np.sort(simulated(evidence.model_copy(update={"reach": 1e6}), count, rng)) for count in (LOW, HIGH)]
    margin = (1 + math.e) * math.sqrt(math.log(4 * 80 / FALSE_ALARM) / (2 * TABLES))

    def excess(pair: list[NDArray[np.float64]]) -> float:
        places = np.quantile(np.concatenate(pair), np.linspace(0.0125, 0.9875, 40))
        below = [np.searchsorted(one, places) / TABLES for one in pair]
        tails = [(below[0], below[1]), (1 - below[0], 1 - below[1])]
        return max(float((p - math.e * q).max()) for a, b in tails for p, q in ((a, b), (b, a)))

    assert excess(drawn) <= 1e-3 + margin
    assert excess(wide) > 1e-3 + margin
