"""What plans of moved averages say of themselves, in one release and in a sequence: against linear algebra of their own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.linalg import eigh

from attrpriv.cases.budget import budget
from attrpriv.errors import Cause, RefusedError, UsageError
from attrpriv.methods.choice.choose import plan
from attrpriv.methods.transport import plan as transport
from attrpriv.methods.transport.case import told
from attrpriv.methods.transport.plan import members
from attrpriv.methods.transport.proof import TransportEvidence
from attrpriv.methods.transport.sequence import _left_of_spread
from attrpriv.methods.transport.sequence_case import Case
from attrpriv.methods.transport.sequence_proof import SequenceEvidence
from attrpriv.problem.refusal import Refusal
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from tests.refusing import refuses
from tests.unit.methods.proofs import gaussian_delta
from tests.unit.methods.transport.test_sequence import (
    AGE,
    INCOME,
    MEAN,
    RHO,
    SD,
    covariance,
    evidence_of,
    people,
    released,
    school,
)

OFF = (0.01, 0.02, 0.05, 0.1)


# --------------------------------------------------------------------------------------------------------- one after the other


def explained(evidence: SequenceEvidence, names: tuple[str, ...], rows: Any, off: float) -> Any:
    """What slopes steeper by a share explain more of the averages' covariance."""
    moved = np.array(evidence.slopes) @ rows
    return ((1 + off) ** 2 - 1) * moved @ covariance(people(), names) @ moved.T


@pytest.mark.parametrize(
    ("secrets", "rows"),
    [
        ((INCOME,), [[1.0, 0.0]]),
        ((INCOME, AGE), [[1.0, 0.0], [0.0, 1.0]]),
        ((Secret("mean(income + 900 * age)", within=9_000.0),), [[1.0, 900.0]]),
    ],
)
def test_steeper_slopes_leave_less_of_the_spread(secrets: tuple[Secret, ...], rows: Any) -> None:
    """The least share, in any direction, of the covariance with all noise."""
    plans = released(("weight", 0.3), ("height", 0.5), secrets=secrets)
    evidence = evidence_of(plans[-1])
    # Noise as large as what averages vary by themselves.
    wide = tuple(step.model_copy(update={"noise": noise}) for step, noise in zip(evidence.steps, (0.3, 0.05), strict=True))
    evidence = evidence.model_copy(update={"steps": wide})
    case = Case.of(school("height", secrets=secrets, spend=0.5, earlier=evidence_of(plans[0])))
    whole = np.array(evidence.credited) + np.diag([step.noise**2 for step in evidence.steps])
    for off in OFF:
        more = explained(evidence, ("income", "age"), np.array(rows), off)
        share = 1 - float(eigh(more, whole, eigvals_only=True)[-1])
        assert _left_of_spread(case, evidence, off) == pytest.approx(share, rel=1e-9)
        assert share < 0.9999


def test_what_holds_for_steeper_slopes_is_the_distance_in_what_is_left() -> None:
    secrets = (Secret("mean(income)", within=2_000.0), Secret("mean(age)", within=1.0))
    changes: dict[str, Any] = {"secrets": secrets}
    plans = released(("weight", 0.3), ("height", 0.5), **changes)
    evidence, made = evidence_of(plans[-1]), plans[-1]
    asked = school("height", spend=0.5, earlier=evidence_of(plans[0]), **changes)
    case = Case.of(asked)
    masks = dict.fromkeys(MEAN, 0.0)
    for row, off in zip(made.model_error, OFF, strict=True):
        checks = told(case.whole, case.theta, masks, off, evidence.slopes).checks
        distances = [evidence.distance_of(check) for check in checks]
        assert max(distances) > 1.01 * min(distances)
        assert row.epsilon is not None
        inner = evidence.inner(row.epsilon)
        assert inner is not None
        apart = max(distances) / math.sqrt(_left_of_spread(case, evidence, off))
        assert evidence.charged(float(gaussian_delta(inner, apart)), row.epsilon) == pytest.approx(1e-6, rel=0.05)


def test_where_nothing_is_credited_nothing_shrinks() -> None:
    """Under a tolerance, with known rows, or under one of several laws."""
    other = people(correlation=RHO | {("weight", "income"): 0.31})
    several: list[dict[str, Any]] = [
        {"theta": (people({"slope": 0.01}),)},
        {"known_rows": 0.01},
        {"theta": (people(), other)},
    ]
    for changes in several:
        columns = ("weight",) if "known_rows" in changes else ("weight", "height")
        asked = school(*columns, spend=0.5, **changes)
        made = evidence_of(plan(asked, "transport"))
        size = len(columns)
        assert made.credited == ((0.0,) * size,) * size
        assert not Case.of(asked).exact
        assert _left_of_spread(Case.of(asked), made, 0.1) == 1
    assert Case.of(school(spend=0.5)).exact


def test_what_is_shown_of_a_step() -> None:
    """How far what is left may move the answer, in standard deviations of what the answers before leave open."""
    plans = released(("weight", 0.3), ("height", 0.5), ("age", 0.5))
    for made in plans[1:]:
        evidence = evidence_of(made)
        whole = np.array(evidence.credited) + np.diag([step.noise**2 for step in evidence.steps])
        k = len(evidence.steps) - 1
        left = whole[k, k] - whole[k, :k] @ np.linalg.solve(whole[:k, :k], whole[:k, k])
        assert made.columns[0].parameters["mu"] == pytest.approx(2 * evidence.steps[k].reach / math.sqrt(left), rel=1e-9)
        assert made.certificate.exact
        assert made.certificate.gap == 0


def test_noise_beyond_the_mask_is_a_gap() -> None:
    """Of the column that has most of it."""
    made = released(("weight+height", 0.3), theta=(people({"slope": 0.1}),))[0]
    gaps = [step.noise - step.least for step in evidence_of(made).steps]
    assert max(gaps) > 1.5 * min(gaps) > 0
    assert not made.certificate.exact
    assert made.certificate.gap == pytest.approx(max(gaps), rel=1e-12)


def test_a_combination_is_read_around_its_own_mean() -> None:
    (made,) = released(("weight", 0.5), secrets=(Secret("mean(income - 3 * age)", within=9_000.0),))
    assert [read.centre for read in evidence_of(made).reads] == [MEAN["income"] - 3 * MEAN["age"]]


@pytest.mark.parametrize("spends", [(0.2, 0.7), (0.5, 0.1, 0.4)])
def test_each_release_spends_its_share_of_what_is_left(spends: tuple[float, ...]) -> None:
    plans = released(*zip(("weight", "height", "age"), spends, strict=False))
    left = 1.0
    for made, spend in zip(plans, spends, strict=True):
        left *= 1 - spend
        assert made.left == pytest.approx(left, abs=2e-3)


def test_a_sequence_needs_a_delta() -> None:
    with refuses((RefusedError, UsageError), Cause.BUDGET, "delta above 0"):
        plan(school(spend=0.5, delta=0.0), "transport")


# --------------------------------------------------------------------------------------------------------------- all at once


def transported(**changes: Any) -> tuple[Any, TransportEvidence]:
    made = transport.plan(school(*changes.pop("asked", ("weight",)), **changes))
    assert isinstance(made.certificate.evidence, TransportEvidence)
    return made, made.certificate.evidence


def test_noise_beyond_the_masks_is_a_gap_here_too() -> None:
    """Where slopes are uncertain, noise must hide what they leave open; where they are exact none does."""
    made, evidence = transported(asked=("weight", "height"), theta=(people({"slope": 0.1}),))
    factor = np.array(evidence.factor) if evidence.factor else np.zeros((2, 1))
    scales = np.sqrt(np.array(evidence.independent) ** 2 + (factor**2).sum(axis=1))
    gaps = scales - np.array(evidence.least[:2])
    assert max(gaps) > 1.2 * min(gaps) > 0
    assert not made.certificate.exact
    assert made.certificate.gap == pytest.approx(max(gaps), rel=1e-9)
    exact, _ = transported()
    assert (exact.certificate.exact, exact.certificate.gap) == (True, 0.0)


def test_each_number_of_common_noise_is_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several averages: one for each of them and of what is read; and one for each statistic that is masked."""
    seen: list[int] = []

    def counted(*told: Any, **named: Any) -> Any:
        seen.append(named["common"])
        return budget(*told, **named)

    monkeypatch.setattr("attrpriv.methods.transport.plan.budget", counted)
    for columns, secrets, common in (
        (("weight",), (INCOME,), 0),
        (("weight", "height"), (INCOME,), 3),
        (("weight",), (INCOME, AGE), 2),
        (("weight", "height"), (INCOME, AGE), 6),
    ):
        transport.plan(school(*columns, secrets=secrets))
        assert seen.pop() == common


def test_bounds_that_are_not_applied_cost_nothing() -> None:
    made, evidence = transported(bounds={"weight": (120.0, 220.0)})
    plain, without = transported()
    assert made.columns[0].clip is None
    assert (evidence.clamp.reach, evidence.clip_delta) == (without.clamp.reach, 0.0)
    assert made.error == plain.error


def test_without_a_delta_the_quantile_clip_says_why_not() -> None:
    """The clamp of shifts has nothing to say there."""
    with refuses((RefusedError, UsageError), Cause.PERSONS, "known_rows 0"):
        plan(school(delta=0.0, known_rows=0.01), "transport")


def test_some_of_the_rows_are_asked_for_alone_and_with_a_delta() -> None:
    partly: dict[str, Any] = {"queries": (Query("avg", "weight", where="kind = 1"),), "sizes": {"kind = 1": 4_000}}
    for changes in ({"delta": 0.0}, {"spend": 0.5}):
        with pytest.raises((RefusedError, UsageError)) as caught:
            plan(school(**partly, **changes), "transport")
        assert [one.cause for one in caught.value.causes] == [Cause.STATISTIC]
    made = plan(school(**partly), "transport")
    assert made.columns[0].rows == 4_000


HALF = Secret("mean(age)", within=2.0)


@pytest.mark.parametrize(
    ("changes", "cause", "needs"),
    [
        (
            {"theta": (people(), people({"slope": 0.01, "shape": {"lambda": 0.1, "eta": 1e-9}}))},
            Cause.SHAPE,
            "mechanism gaussian_approximation",
        ),
        ({"theta": (people(), people(mean={"weight": 170.0}))}, Cause.NUMBERS, "the mean of income"),
        ({"known_rows": 0.01, "asked": ("weight", "height")}, Cause.PERSONS, "known_rows 0"),
        ({"known_rows": 0.01, "secrets": (Secret("mean(income + age)", within=1.0),)}, Cause.PERSONS, "known_rows 0"),
        ({"known_rows": 0.01, "secrets": (INCOME, HALF)}, Cause.PERSONS, "known_rows 0"),
        ({"secrets": (INCOME, Secret("mean(2 * age)", within=1.0))}, Cause.SECRET, "mechanism gaussian"),
        ({"secrets": (INCOME, Secret("mean(income + age)", within=1.0))}, Cause.SECRET, "mechanism gaussian"),
        ({"secrets": (INCOME, HALF), "asked": ("age", "weight")}, Cause.STATISTIC, "mechanism gaussian"),
        ({"individuals": 1.0}, Cause.PERSONS, "mechanism gaussian"),
    ],
)
def test_what_cannot_be_moved(changes: dict[str, Any], cause: Cause, needs: str) -> None:
    told = dict(changes)
    with refuses(Refusal, cause, needs):
        members(school(*told.pop("asked", ("weight",)), **told))


def test_what_can_be_moved() -> None:
    """Several members, a combination by itself, and the sensitive column itself where it is the only one."""
    several: list[dict[str, Any]] = [
        {"theta": (people(), people(sd=SD | {"weight": 26.0}))},
        {"secrets": (Secret("mean(income + age)", within=1.0),)},
        {"secrets": (Secret("mean(2 * age)", within=1.0),)},
        {"secrets": (INCOME,), "queries": (Query("avg", "income"),)},
        {"known_rows": 0.01},
    ]
    for changes in several:
        assert members(school(**changes)) == changes.get("theta", (people(),))
