"""`gaussian` under a groups assumption: the plan, its certificate, and the noise that is really drawn."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from attrpriv.assumptions.groups import Groups
from attrpriv.errors import AttrprivError, CertificateError
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan
from attrpriv.methods.groups.proof import GroupEvidence, GroupVectorEvidence
from attrpriv.noise import granularity
from attrpriv.numerics.calibration.groups import least_group_noise
from attrpriv.numerics.divergences.gaussian import hockey_stick
from attrpriv.numerics.laws.gaussian import GaussianLaw
from attrpriv.numerics.laws.groups import GroupCase
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Parameter, Secret
from attrpriv.queries.query import Query

SHARE = Secret("share(gender = 'F')", between=(0.25, 0.4))


def groups(**changes: Any) -> Groups:
    stated: dict[str, Any] = {
        "sensitive": "gender",
        "mean": {"F": {"hours": 36.0, "age": 40.0}, "M": {"hours": 42.0, "age": 38.0}},
        "sd": {"F": {"hours": 11.0, "age": 9.0}, "M": {"hours": 12.0, "age": 10.0}},
        "correlation": {"F": {"hours~age": 0.2}, "M": {"hours~age": 0.1}},
        "tolerance": 0,
    }
    return Groups(**(stated | changes))


def problem(assumed: Groups | None = None, **changes: Any) -> Problem:
    stated: dict[str, Any] = {
        "queries": (Query("avg", "hours"),),
        "secrets": (SHARE,),
        "epsilon": 1.0,
        "delta": 1e-6,
        "n": 1_000,
        "theta": (assumed or groups(),),
        "resolution": {"hours": 0.001, "age": 0.001},
    }
    return Problem(**(stated | changes))


def evidence_of(found: Plan) -> GroupEvidence:
    assert isinstance(found.certificate.evidence, GroupEvidence)
    return found.certificate.evidence


def variance(count: int, n: int = 1_000) -> float:
    """Of the average of hours, given how many rows are F."""
    return (count * 11.0**2 + (n - count) * 12.0**2) / n**2


# --------------------------------------------------------------------------------------------------------- one average


def test_the_noise_is_the_least_that_theory_asks_for() -> None:
    """Up to the reserve (2% of delta) and the grids."""
    case = GroupCase(n=1_000, low=250, high=400, apart=150, members=((36.0, 11.0),), rest=((42.0, 12.0),))
    least = {form: least_group_noise(case, 1.0, 1e-6, form) for form in ("direct", "equalised")}
    found = plan(problem(), "gaussian")
    form = evidence_of(found).form
    assert form == "equalised"
    assert evidence_of(found).scale ** 2 == pytest.approx(least[form], rel=0.005)
    assert evidence_of(found).scale ** 2 > least[form]
    assert least["equalised"] < least["direct"]


def test_the_outputs_of_every_pair_are_close() -> None:
    """By the closed form, from the noise that the plan draws; with a tenth less noise they are not."""
    for tolerance, form in ((0, "equalised"), ({"mean": 0.0, "sd": 0.02}, "direct")):
        found = plan(problem(groups(tolerance=tolerance)), "gaussian")
        evidence = evidence_of(found)
        assert evidence.form == form
        for shrink, private in ((1.0, True), (0.9, False)):
            worst = 0.0
            for low, high in ((250, 400), (250, 399), (300, 350)):
                laws = []
                for count in (low, high):
                    noise = evidence.scale**2 * shrink**2
                    total = max(variance(250), variance(400)) if form == "equalised" else variance(count)
                    laws.append(GaussianLaw((count * 36.0 + (1_000 - count) * 42.0) / 1_000, total + noise))
                worst = max(worst, hockey_stick(laws[0], laws[1], 1.0), hockey_stick(laws[1], laws[0], 1.0))
            assert (worst <= 1e-6) == private


UNLIKE: dict[str, Any] = {
    "mean": {"F": {"hours": 36.0, "age": 40.0}, "M": {"hours": 36.1, "age": 40.1}},
    "sd": {"F": {"hours": 1.0, "age": 20.0}, "M": {"hours": 30.0, "age": 10.0}},
}


def test_what_is_drawn_gives_every_table_the_same_spread() -> None:
    """1,500 draws: a sample variance is 22% off (six standard errors) with probability below 1e-8. The noise itself must then
    differ: at 400 rows of F the data vary by a fifth less than at 250."""
    found = plan(problem(groups(**UNLIKE)), "gaussian")
    evidence = evidence_of(found)
    assert evidence.form == "equalised"
    own = {count: (count * 1.0 + (1_000 - count) * 900.0) / 1_000**2 for count in (250, 400)}
    noise = {}
    for count in own:
        drawn = [found.answers([Fraction(40)], [count, 1_000 - count])[0] for _ in range(1_500)]
        noise[count] = float(np.var(drawn))
        assert noise[count] == pytest.approx(own[250] - own[count] + evidence.scale**2, rel=0.22)
    assert noise[400] > 2 * noise[250]


def test_the_grid_of_equalising_noise_is_public() -> None:
    found = plan(problem(), "gaussian")
    step = Fraction(granularity(evidence_of(found).scale))
    for counts in ([250, 750], [333, 667], [400, 600]):
        answer = Fraction(found.answers([Fraction(1, 3)], counts)[0])
        assert (answer / step).denominator == 1, "on the grid that belongs to the least scale"


def test_it_reports_the_most_that_any_table_gets() -> None:
    found = plan(problem(), "gaussian")
    most = max(variance(250), variance(400)) - min(variance(250), variance(400))
    assert found.noise.scale == pytest.approx(math.sqrt(evidence_of(found).scale ** 2 + most), rel=1e-9)
    assert found.error.rmse == found.noise.scale


def test_known_rows_and_a_tolerance_cost_noise() -> None:
    scale = plan(problem(), "gaussian").noise.scale
    assert plan(problem(known_rows=0.2), "gaussian").noise.scale > scale
    assert plan(problem(groups(tolerance={"mean": 0.05})), "gaussian").noise.scale > scale
    assert plan(problem(groups(tolerance={"sd": 0.05})), "gaussian").noise.scale > scale


def _known_laws(share: float, known: int, case: GroupCase, scale: float, form: str) -> list[tuple[float, float]]:
    """Given that all known values are 0.02: weights and variances of the output, whose mean moves by hardly anything."""
    (_, one), (_, other) = case.members[0], case.rest[0]
    odds = share / (1 - share) * math.exp((0.02 / other) ** 2 / 2) * other / one
    most = max(a * one**2 + (case.n - a) * other**2 for a in (case.low, case.high))
    found = []
    for inside in range(known + 1):
        for others in range(8):
            weight = binom.pmf(inside, known, odds / (1 + odds)) * binom.pmf(others, case.n - known, share)
            count = inside + others
            own = others * one**2 + (case.n - known - others) * other**2
            added = most - (count * one**2 + (case.n - count) * other**2) if form == "equalised" else 0.0
            found.append((float(weight), (own + max(0.0, added)) / case.n**2 + scale**2))
    return found


def _told_apart(laws: list[list[tuple[float, float]]], epsilon: float) -> float:
    """H of two mixtures of centred normal laws, the larger direction, by a sum over a fine grid."""
    x = np.linspace(-3.0, 3.0, 200_001)
    one, other = (sum(w * np.exp(-(x**2) / (2 * v)) / math.sqrt(2 * math.pi * v) for w, v in law) for law in laws)
    return max(float(np.maximum(a - math.exp(epsilon) * b, 0).sum() * (x[1] - x[0])) for a, b in ((one, other), (other, one)))


def test_known_values_tell_categories_apart_by_the_share_of_the_population() -> None:
    """Variances made equal then differ in all known rows: once certified by as many as two tables differ in, and false."""
    assumed = groups(
        mean={"F": {"hours": 0.02}, "M": {"hours": 0.0}}, sd={"F": {"hours": 0.01}, "M": {"hours": 1.0}}, correlation=None
    )
    share = Parameter("share(gender = 'F')", between=(1e-6, 0.01))
    asked = problem(assumed, secrets=(share,), n=50, known_rows=0.4, epsilon=0.5, delta=1e-4, resolution={})
    found = evidence_of(plan(asked, "gaussian"))
    case = found.checks[0].case
    assert isinstance(case, GroupCase)
    assert (case.known, found.form) == (20, "direct")
    laws = [_known_laws(end, 20, case, found.scale, "direct") for end in (1e-6, 0.01)]
    assert _told_apart(laws, 0.5) <= 1e-4
    # The noise that was once certified to be enough, and what it really told.
    once = math.sqrt(least_group_noise(case, 0.5, 1e-4, "equalised"))
    assert _told_apart([_known_laws(end, 20, case, once, "equalised") for end in (1e-6, 0.01)], 0.5) > 1e-3
    planted = found.model_copy(update={"form": "equalised", "scale": 1e3})
    assert found.model_copy(update={"scale": 1e3}).delta(0.5) <= 1e-4
    assert planted.delta(0.5) >= 1


def test_a_share_of_the_population_pays_for_its_tail() -> None:
    found = plan(problem(secrets=(Parameter("share(gender = 'F')", between=(0.25, 0.4)),)), "gaussian")
    check = evidence_of(found).checks[0]
    assert check.shares == (0.25, 0.4)
    assert 0 < check.tail <= 1e-7
    assert found.noise.scale > plan(problem(), "gaussian").noise.scale


def test_several_categories_may_be_mixed_in_any_way() -> None:
    three = groups(
        mean={"F": {"hours": 36.0}, "M": {"hours": 42.0}, "X": {"hours": 30.0}},
        sd={"F": {"hours": 11.0}, "M": {"hours": 12.0}, "X": {"hours": 10.0}},
        correlation=None,
    )
    found = plan(problem(three), "gaussian")
    case = evidence_of(found).checks[0].case
    assert case.gap == pytest.approx(0.15 * 6) if isinstance(case, GroupCase) else False
    assert [one.name for one in found.categories if one.member] == ["F"]


def test_a_tampered_plan_draws_nothing() -> None:
    found = plan(problem(), "gaussian")
    part = found.columns[0]
    smaller = found.model_copy(update={"columns": (part.model_copy(update={"independent": part.independent / 2}),)})
    for broken in (smaller, found.model_copy(update={"categories": ()}), found.model_copy(update={"epsilon": 0.5})):
        with pytest.raises(CertificateError):
            broken.answers([Fraction(40)], [250, 750][: len(broken.categories)])
    with pytest.raises(CertificateError, match="counts of 2 categories"):
        found.answers([Fraction(40)])


def test_a_smaller_scale_in_the_certificate_does_not_verify() -> None:
    found = plan(problem(), "gaussian")
    evidence = evidence_of(found)
    for changes in ({"scale": evidence.scale * 0.99}, {"form": "direct"}, {"reserve": math.nan}):
        broken = found.certificate.model_copy(update={"evidence": evidence.model_copy(update=changes)})
        with pytest.raises(CertificateError):
            broken.verify()


def test_model_error_grows_with_the_error() -> None:
    rows = plan(problem(), "gaussian").model_error
    assert [row.off_by for row in rows] == [0.01, 0.02, 0.05, 0.1]
    found = [row.epsilon for row in rows]
    assert found == sorted(found, key=lambda epsilon: epsilon or math.inf)
    assert found[0] == pytest.approx(1.01, abs=0.003)


# ----------------------------------------------------------------------------------------------------- several averages


@pytest.mark.slow
def test_several_averages_have_one_covariance_for_every_table() -> None:
    """The noise that is drawn is what the data lack: 1,500 draws, six standard errors, missed with probability below 1e-7."""
    assumed = groups(**UNLIKE)
    asked = problem(assumed, queries=(Query("avg", "hours"), Query("avg", "age")), epsilon=5.0, delta=1e-3)
    found = plan(asked, "gaussian")
    evidence = found.certificate.evidence
    assert isinstance(evidence, GroupVectorEvidence)
    target = np.array(evidence.equalised.target) + np.diag(np.array(evidence.independent) ** 2)
    if evidence.factor:
        target = target + np.array(evidence.factor) @ np.array(evidence.factor).T
    rows = {name: np.array(assumed.covariance(name, ["hours", "age"])) for name in ("F", "M")}
    for count in (250, 400):
        answers = [found.answers([Fraction(0), Fraction(0)], [count, 1_000 - count]) for _ in range(1_500)]
        lacking = target - (count * rows["F"] + (1_000 - count) * rows["M"]) / 1_000**2
        unit = np.sqrt(np.outer(np.diag(lacking), np.diag(lacking)))
        assert np.abs((np.cov(np.array(answers).T) - lacking) / unit).max() < 6 * math.sqrt(2 / 1_500)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"delta": 0.0}, "Gaussian noise needs delta above 0"),
        ({"queries": (Query("avg", "height"),)}, "height must have a mean and a standard deviation in each category"),
        ({"secrets": (Secret("share(city = 'Bern')", between=(0.1, 0.2)),)}, "must be about gender, the sensitive column"),
        ({"secrets": (Secret("mean(hours)", within=1.0),)}, "must be the count or the share of some categories"),
        ({"n": 50, "resolution": {"hours": 1.0}}, "at least 100 rows"),
        ({"resolution": {"hours": 8.0}}, "at least twice the spacing"),
        ({"known_rows": 0.99}, "knows 990 of 1000 rows"),
        ({"individuals": 1.0}, "needs bounds for hours"),
        ({"calibration": "classical"}, "classical is for means"),
        ({"queries": (Query("avg", "hours", where="age > 3"),)}, "needs the subset's size as a public number"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(AttrprivError, match=says):
        plan(problem(**changes), "gaussian")


def test_several_averages_with_an_uncertain_sd_are_refused() -> None:
    asked = problem(groups(tolerance={"sd": 0.01}), queries=(Query("avg", "hours"), Query("avg", "age")))
    with pytest.raises(AttrprivError, match="need exact standard deviations"):
        plan(asked, "gaussian")
