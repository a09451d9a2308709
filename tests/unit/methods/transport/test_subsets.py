"""Transported averages over subsets: against the joint law of all rows, as in `test_subset`, and by drawing tables."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.cases.subset import Rows
from attrpriv.errors import AttrprivError
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan as plan_problem
from attrpriv.methods.choice.choose import rank
from attrpriv.methods.transport.proof import TransportEvidence
from attrpriv.problem.secret import Secret
from tests.unit.cases.test_subset import ASKED, NAMES, REST, N, _entries, assumed, covariance, opposite, over_rows, problem

MEANS = {"g": 3.0, "h": 0.0}
CASES = ["one group", "by group", "two by group", "a group and all", "nested", "sums"]


def plan(text: str, v: Any, **changes: Any) -> Plan:
    law = Gaussian.model_validate({**assumed(v, changes.pop("tolerance", 0)).to_json(), "mean": MEANS})
    return plan_problem(problem(text, v, theta=(law,), **changes), "transport")


def joint(made: Plan, v: Any) -> tuple[Any, Any, float]:
    """Covariance of the averages, their covariance with g, and the variance of g, over all rows."""
    reads = np.array([_entries(problem("avg(x)", v).average(part.column)) for part in made.columns])
    hidden = np.tile([float(name == "g") / N for name in NAMES], (1, N, 1))
    return over_rows(v, reads, reads), over_rows(v, reads, hidden)[:, 0], float(over_rows(v, hidden, hidden)[0, 0])


def evidence_of(made: Plan) -> TransportEvidence:
    assert isinstance(made.certificate.evidence, TransportEvidence)
    return made.certificate.evidence


def separation(made: Plan, v: Any, gap: float) -> float:
    """Two values of g, at stated slopes: the clamp moves along the slopes, and no further than its ball is wide."""
    own, shared, spread = joint(made, v)
    evidence, slopes = evidence_of(made), shared / spread
    assert np.allclose(np.array(evidence.clamp.slopes)[:, 0], slopes, rtol=1e-9), "what is taken back is what g tells"
    metric = np.array(evidence.clamp.metric or ((1.0,),))
    length = math.sqrt(slopes @ np.linalg.solve(metric, slopes))
    moved = min(2 * evidence.clamp.reach, length * gap) / length
    noise = np.diag(np.square(evidence.independent))
    noise = noise + np.array(evidence.factor) @ np.array(evidence.factor).T if evidence.factor else noise
    left = own - np.outer(shared, shared) / spread + noise
    return moved * math.sqrt(slopes @ np.linalg.solve(left, slopes))


@pytest.mark.parametrize("pairs", [{"within": 0.3}, {"between": (-2.0, 8.0)}], ids=["within", "between"])
@pytest.mark.parametrize("name", CASES)
def test_no_law_is_further_apart_than_the_budget_allows(name: str, pairs: dict[str, Any]) -> None:
    v = covariance(2)
    made = plan(ASKED[name], v, secrets=(Secret("mean(g)", **pairs),))
    made.verify()
    found = separation(made, v, pairs.get("within", 10.0))
    assert 0.3 * made.columns[0].parameters["mu"] < found <= made.columns[0].parameters["mu"]


def test_another_covariance_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant credits the table's average with the spread of a group's."""
    v, text = opposite(), "avg(x), avg(x) filter (where ward = 'a')"
    secrets = (Secret("mean(g)", between=(-2.0, 8.0)),)
    assert separation(plan(text, v, secrets=secrets), v, 10.0) <= plan(text, v, secrets=secrets).columns[0].parameters["mu"]
    monkeypatch.setattr(Rows, "shared", lambda rows: np.full((len(rows.sizes),) * 2, 1 / min(rows.sizes)) + np.eye(2) * 1e-6)
    wrong = plan(text, v, secrets=secrets)
    assert separation(wrong, v, 10.0) > 1.2 * wrong.columns[0].parameters["mu"]


def test_errors_are_those_of_drawn_tables() -> None:
    """150 tables of the assumption: mean squares within six standard errors (below 1e-6 by chance); half of it would not do."""
    v, runs = covariance(2), 150
    made = plan(ASKED["by group"], v, secrets=(Secret("mean(g)", between=(-2.0, 8.0)),))
    own, shared, spread = joint(made, v)
    size = len(made.columns)
    together = np.block([[own, shared[:, None]], [shared[None, :], np.array([[spread]])]])
    rng = np.random.default_rng(4)
    drawn = rng.multivariate_normal(np.zeros(size + 1), together, size=runs)
    errors = []
    for row in drawn:
        averages = [Fraction(float(x)) for x in row[:size]] + [Fraction(float(row[size] + MEANS["g"]))]
        errors.append(np.array(made.answers(averages)) - row[:size])
    found = np.square(errors).mean(axis=0)
    told = np.array([part.error.rmse**2 for part in made.columns])  # type: ignore[operator]
    assert np.abs(found / told - 1).max() < 6 * math.sqrt(2 / runs)
    assert np.abs(found / (told / 2) - 1).max() > 6 * math.sqrt(2 / runs)


def test_the_error_is_far_below_that_of_noise_alone() -> None:
    v, secrets = covariance(2), (Secret("mean(g)", between=(-2.0, 8.0)),)
    made = plan(ASKED["by group"], v, secrets=secrets)
    noise = plan_problem(problem(ASKED["by group"], v, secrets=secrets), "gaussian")
    assert max(part.error.rmse or 0.0 for part in made.columns) < 0.05 * noise.columns[0].noise.scale
    assert made.columns[3].where == REST
    assert {part.rows for part in made.columns} == {150, 200, 400}


@pytest.mark.parametrize("tolerance", [{"sd": 0.02, "slope": 0.02}, {"sd": 0.02, "correlation": 0.02}])
def test_with_a_tolerance(tolerance: dict[str, float]) -> None:
    v = covariance(3, own=8.0)
    made = plan(ASKED["by group"], v, tolerance=tolerance)
    made.verify()
    assert made.mechanism == "transport"


def test_auto_leaves_out_what_takes_long() -> None:
    names = tuple(f"w{k}" for k in range(65))
    groups = {"categories": {"ward": names}, "sizes": {f"ward = '{name}'": 200 for name in names}, "n": 13_000}
    ranking = rank(problem(ASKED["by group"], covariance(2), **groups))
    assert "up to 64 averages by group" in ranking.refused["transport"].reason
    assert ranking.chosen is not None
    assert ranking.chosen.mechanism == "gaussian"


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "a share of the budget": (ASKED["by group"], {"spend": 0.5}, "alone (spend 1)"),
    "several statistics": (
        ASKED["one group"],
        {"secrets": (Secret("mean(g)", within=1), Secret("mean(h)", within=1))},
        "by one sensitive statistic, not by several",
    ),
    "a combination": ("avg(x + y) filter (where ward = 'a')", {}, "does not cover"),
    "no delta": (ASKED["one group"], {"delta": 0.0}, "with a delta"),
    "no size": (ASKED["one group"], {"sizes": {}}, "needs the subset's size"),
    "of the secret": ("avg(g) filter (where ward = 'a')", {}, "a column of a secret"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    text, changes, message = REFUSED[name]
    with pytest.raises(AttrprivError) as caught:
        plan(text, covariance(2), **changes)
    assert message in str(caught.value)


# Digits: whole numbers over 200 of 1,000 rows, and over all of them.

WHOLE = Gaussian(mean={"w": 150.0, "s": 60.0}, sd={"w": 40.0, "s": 30.0}, correlation={("w", "s"): 0.3}, tolerance=0)
ROWS, PART, TRIALS = 1_000, 200, 400


class Decoder:
    """Tells two values of mean(s) apart by digits alone: answers plus what was taken back are whole numbers over the rows."""

    def __init__(self) -> None:
        asked = problem("avg(w), avg(w) filter (where ward = 'a')", np.eye(5)).model_copy(
            update={"theta": (WHOLE,), "n": ROWS, "sizes": {"ward = 'a'": PART}, "resolution": {"w": 1.0, "s": 1e-6}}
        )
        hidden = asked.model_copy(update={"secrets": (Secret("mean(s)", between=(20.0, 200.0)),)})
        self.found = plan_problem(hidden, "transport")
        clamp = evidence_of(self.found).clamp
        self.slopes = np.array(clamp.slopes)[:, 0]
        length = math.sqrt(self.slopes @ np.linalg.solve(np.array(clamp.metric), self.slopes))
        self.room = clamp.reach / length
        # Half a spacing of the sums over 200 rows, and two and a half of those over 1,000.
        self.pair = (150.0, 150.0 + 0.5 / PART / float(self.slopes[0]))

    def told(self, hidden: float) -> Any:
        moved = hidden - 60.0
        return self.slopes * (moved - min(max(moved, -self.room), self.room))

    def misfit(self, answers: Any, candidate: float) -> float:
        sums = (answers + self.told(candidate)) * np.array([ROWS, PART])
        return float(np.abs(sums - np.rint(sums)).sum())

    def right(self, share: float | None) -> int:
        """How often it is right: without any noise (0), with a share of the masks, with the plan's own (None)."""
        rng, right = np.random.default_rng(6), 0
        masks = np.array([part.parameters["mask"] for part in self.found.columns])
        for _ in range(TRIALS):
            hidden = self.pair[int(rng.integers(2))]
            inside, rest = (round(rng.normal(186.0 * rows, 38.0 * math.sqrt(rows))) for rows in (PART, ROWS - PART))
            averages = [Fraction(inside + rest, ROWS), Fraction(inside, PART)]
            if share is None:
                answers = np.array(self.found.answers([*averages, Fraction(hidden)]))
            else:
                answers = np.array([float(x) for x in averages]) - self.told(hidden) + share * masks * rng.normal(size=2)
            right += min(self.pair, key=lambda one: self.misfit(answers, one)) == hidden
        return right


def test_digits_of_a_group_and_of_all_rows() -> None:
    """Without masks they give the secret away every time, with a tenth nearly so; with the plan's the decoder is at chance.

    At chance: within 5 standard deviations of a half, 6e-7 by accident; a tenth of the mask is right above 90% of the time.
    """
    decoder = Decoder()
    assert [part.parameters["mask"] for part in decoder.found.columns] == pytest.approx([1 / ROWS, 1 / PART], rel=1e-6)
    assert decoder.right(0.0) == TRIALS
    assert decoder.right(0.1) > 0.9 * TRIALS
    assert abs(decoder.right(None) - TRIALS / 2) < 5 * math.sqrt(TRIALS) / 2
