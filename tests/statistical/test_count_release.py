"""What a plan for counts draws has the law that its certificate counted on.

One chi-square test for each plan below, rejected below ALARM: with 8 of them the false-alarm rate is below 1e-7. The same
test rejects a fifth less noise or a quarter more; its power against them is computed in `test_power`, not guessed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2, ncx2

from attrpriv.assumptions.counts import Counts
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query

ALARM = 1e-8
DRAWS = 3_000
FAR = 60


def problem(**changes: Any) -> Problem:
    stated: dict[str, Any] = {
        "queries": (Query("count", where="stay > 7"),),
        "secrets": (Secret("count(smoker = 'yes')", between=(0, 4)),),
        "epsilon": 1.0,
        "n": 4,
        "theta": (Counts(sensitive="smoker", given={"stay > 7": {"yes": 0.4, "no": 0.6}}),),
    }
    return Problem(**(stated | changes))


def noise_law(kind: str, scale: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """P(Z = -FAR), ..., P(Z = FAR)."""
    k = np.arange(-FAR, FAR + 1)
    weights = np.exp(-np.abs(k) / scale if kind == "laplace" else -k * k / (2 * scale * scale))
    return np.asarray(weights / weights.sum())


def law_of(made: Plan, factor: float = 1.0) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The law of the answer minus the count, from the numbers in the certificate."""
    evidence: Any = made.certificate.evidence
    kind = getattr(evidence, "noise", "laplace")
    scale = evidence.terms[0].scale if hasattr(evidence, "terms") else evidence.scale
    law = noise_law(kind, scale * factor)
    rows = made.certificate.individuals
    if rows is None or kind == "laplace":
        return law
    return np.asarray(np.convolve(law, noise_law("laplace", rows.terms[0].scale), "same"))


def p_value(drawn: Sequence[int], law: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    """Chi-square over the outputs; those expected less than ten times join the likeliest."""
    expected = len(drawn) * law
    observed = np.bincount(np.clip(np.array(drawn) + FAR, 0, 2 * FAR), minlength=len(law)).astype(float)
    cell = np.where(expected < 10, expected.argmax(), np.arange(len(law)))
    expected, observed = (np.bincount(cell, x)[np.unique(cell)] for x in (expected, observed))
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1))


def draws(made: Plan, count: int = 2) -> list[int]:
    """Fresh releases, minus the count. The certificate is checked once, and again by the last draw."""
    assert made.tally is not None
    drawn = [made.tally.released((count,), (1, 3), made.certificate.evidence)[0] - count for _ in range(DRAWS - 1)]
    return [*drawn, int(made.tallied((count,), (1, 3))[0][0]) - count]


PLANS = {
    "laplace": ("laplace", problem()),
    "laplace, delta": ("laplace", problem(delta=0.01)),
    "gaussian": ("gaussian", problem(delta=1e-5)),
    "wasserstein": ("wasserstein", problem()),
    "group_dp": ("group_dp", problem()),
    "single persons": ("laplace", problem(individuals=0.5)),
    "single persons, gaussian": ("gaussian", problem(delta=1e-5, individuals=1.0)),
}


QUICK = ("laplace", "gaussian", "single persons")


@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in PLANS])
def test_what_is_drawn_is_what_was_certified(name: str) -> None:
    mechanism, asked = PLANS[name]
    made = plan(asked, mechanism)
    assert p_value(draws(made), law_of(made)) > ALARM


@pytest.mark.parametrize("factor", [0.8, 1.25])
def test_a_mutant_is_rejected(factor: float) -> None:
    made = plan(problem(), "laplace")
    assert p_value(draws(made), law_of(made, factor)) < ALARM


@pytest.mark.parametrize("factor", [0.8, 1.25])
def test_power(factor: float) -> None:
    """A fifth less noise, or a quarter more, is missed with a probability below 1e-3."""
    made = plan(problem(), "laplace")
    mutant, law = law_of(made), law_of(made, factor)
    likely = law * DRAWS >= 10
    shift = DRAWS * float(((mutant - law)[likely] ** 2 / law[likely]).sum())
    freedom = int(likely.sum()) - 1
    assert float(ncx2.cdf(chi2.isf(ALARM, freedom), freedom, shift)) < 1e-3


def test_an_exact_release_is_exact() -> None:
    made = plan(problem(epsilon=2.0), "laplace")
    assert made.tallied((3,), (1, 3)) == ((3,),)
    assert draws(made, 1) == [0] * DRAWS


def test_a_histogram_draws_each_cell_on_its_own() -> None:
    """Each of two cells has the certified law, and their correlation is within six standard deviations of 0."""
    laws = {name: {"values": [0, 1], "probabilities": p} for name, p in (("yes", [0.4, 0.6]), ("no", [0.6, 0.4]))}
    asked = problem(theta=(Counts(sensitive="smoker", given={"x": laws}),), queries=(Query("count", group_by="x"),))
    made = plan(asked, "laplace")
    assert made.tally is not None
    cells = np.array([made.tally.released((1, 3), (1, 3), made.certificate.evidence) for _ in range(DRAWS)]) - [1, 3]
    assert p_value(cells[:, 0].tolist(), law_of(made)) > ALARM
    assert abs(np.corrcoef(cells.T)[0, 1]) < 6 / math.sqrt(DRAWS)
