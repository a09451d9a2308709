"""`transport` under a groups assumption: the plan, what is really drawn, and when there is nothing to take back."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from attrpriv.assumptions.groups import Groups
from attrpriv.errors import AttrprivError, CertificateError, RefusedError
from attrpriv.methods.base.evidence import Told
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan, rank
from attrpriv.methods.group_transport.correction import Expected, centre_share, expected_tables, tables
from attrpriv.methods.group_transport.proof import GroupTransportEvidence, GroupVectorTransportEvidence
from attrpriv.methods.groups.proof import GroupEvidence
from attrpriv.noise import granularity
from attrpriv.numerics.laws.groups import GroupCase
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Parameter, Secret
from attrpriv.queries.query import Query

SHARE = Secret("share(gender = 'F')", between=(0.25, 0.4))
POPULATION = Parameter("share(gender = 'F')", between=(0.25, 0.4))
BOTH = (Query("avg", "hours"), Query("avg", "age"))
THREE: dict[str, Any] = {
    "mean": {"F": {"hours": 36.0, "age": 40.0}, "M": {"hours": 42.0, "age": 38.0}, "X": {"hours": 30.0, "age": 33.0}},
    "sd": {"F": {"hours": 11.0, "age": 9.0}, "M": {"hours": 12.0, "age": 10.0}, "X": {"hours": 10.0, "age": 9.0}},
    "correlation": {name: {"hours~age": 0.1} for name in "FMX"},
    "prior": {"F": 0.3, "M": 0.6, "X": 0.1},
}


def groups(**changes: Any) -> Groups:
    stated: dict[str, Any] = {
        "sensitive": "gender",
        "mean": {"F": {"hours": 36.0, "age": 40.0}, "M": {"hours": 42.0, "age": 38.0}},
        "sd": {"F": {"hours": 11.0, "age": 9.0}, "M": {"hours": 12.0, "age": 10.0}},
        "correlation": {"F": {"hours~age": 0.2}, "M": {"hours~age": 0.1}},
        "prior": {"F": 0.3, "M": 0.7},
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
        "resolution": {"hours": 0.1, "age": 0.1},
    }
    return Problem(**(stated | changes))


PLAIN = plan(problem(), "transport")
SEVERAL = plan(problem(queries=BOTH), "transport")


def evidence_of(found: Plan) -> GroupTransportEvidence:
    assert isinstance(found.certificate.evidence, GroupTransportEvidence)
    return found.certificate.evidence


def vector_of(found: Plan) -> GroupVectorTransportEvidence:
    assert isinstance(found.certificate.evidence, GroupVectorTransportEvidence)
    return found.certificate.evidence


# ------------------------------------------------------------------------------------------------------------ the errors


def test_it_errs_far_less_than_noise_on_the_whole_range() -> None:
    for found, asked in ((PLAIN, problem()), (SEVERAL, problem(queries=BOTH))):
        noise = plan(asked, "gaussian")
        assert found.mechanism == "transport"
        for query in asked.queries:
            assert (found.error_of(query).rmse or 0) < 0.05 * (noise.error_of(query).rmse or 0)
    assert rank(problem()).chosen == PLAIN


@pytest.mark.parametrize(
    "changes",
    [
        {"n": 100},
        {"epsilon": 5.0},
        {"secrets": (POPULATION,)},
        {"known_rows": 0.02},
        {"known_rows": 0.2},
        {"theta": (groups(tolerance={"mean": 0.05, "sd": 0.02}),)},
        {"theta": (groups(tolerance={"mean": 0.5}),)},
        {"secrets": (Secret("count(gender = 'F')", between=(10.0, 900.0)),)},
        {"theta": (groups(prior=None),), "epsilon": 0.1},
    ],
)
def test_one_secret_is_never_worse_off_than_with_gaussian(changes: dict[str, Any]) -> None:
    asked = problem(**changes)
    ours, noise = plan(asked, "transport"), plan(asked, "gaussian")
    assert (ours.error.rmse or 0) <= (noise.error.rmse or 0) * (1 + 1e-9)


def test_the_expected_error_is_that_of_what_is_drawn() -> None:
    """12,000 answers over tables of the prior: the mean square is within six standard errors, and within 15% in any case."""
    rng = np.random.default_rng(7)
    off, query = [], Query("avg", "hours")
    for count in rng.binomial(1_000, 0.3, size=12_000):
        counts = (int(count), 1_000 - int(count))
        (moved,) = taken_back(PLAIN.certificate.evidence, [Fraction(40)], ([counts[0]], [counts[1]]))
        off.append(float(moved) - 40 + rng.normal() * evidence_of(PLAIN).scale)
    assert evidence_of(PLAIN).form == "direct", "else the noise would depend on the counts"
    squares = np.array(off) ** 2
    error = 6 * float(squares.std()) / math.sqrt(len(squares))
    assert float(squares.mean()) == pytest.approx((PLAIN.error.rmse or 0) ** 2, abs=error)
    assert error < 0.15 * float(squares.mean())
    inside = float(np.mean(np.abs(off) <= (PLAIN.error.alpha95 or 0)))
    assert inside == pytest.approx(0.95, abs=0.02)
    assert PLAIN.spread_of(query).reach(0.95) == PLAIN.error.alpha95
    assert SEVERAL.spread_of(BOTH[1]).reach(0.95) == SEVERAL.error_of(BOTH[1]).alpha95


def test_a_sum_is_a_number_of_times_the_average() -> None:
    asked = Query("sum", "hours")
    found = plan(problem(queries=(asked,)), "transport")
    assert found.error.rmse == pytest.approx(1_000 * (PLAIN.error.rmse or 0))
    assert found.spread_of(asked).reach(0.9) == pytest.approx(1_000 * PLAIN.spread_of(Query("avg", "hours")).reach(0.9))


# ----------------------------------------------------------------------------------------------------------- what is drawn


def taken_back(evidence: Any, averages: list[Fraction], counts: tuple[list[int], list[int]]) -> list[Fraction]:
    found: list[Fraction] = evidence.taken(averages, Told({}, tuple(counts[0]), tuple(counts[1])))
    return found


def test_near_the_centre_nothing_is_taken_back_and_far_from_it_all_but_the_reach() -> None:
    evidence = evidence_of(PLAIN)
    assert evidence.centre == pytest.approx(0.3 * 36 + 0.7 * 42)
    for count in (300, 301, 400, 250, 0, 1_000):
        told = (count * 36.0 + (1_000 - count) * 42.0) / 1_000 - evidence.centre
        (moved,) = taken_back(evidence, [Fraction(40)], ([count], [1_000 - count]))
        expected = 40 - told + min(max(told, -evidence.reach), evidence.reach)
        assert float(moved) == pytest.approx(expected, abs=1e-9)
    (same,) = taken_back(evidence, [Fraction(40)], ([301], [699]))
    assert float(same) == 40.0


def test_several_averages_are_moved_along_what_the_counts_tell() -> None:
    evidence = vector_of(SEVERAL)
    inside = taken_back(evidence, [Fraction(40), Fraction(39)], ([300], [700]))
    assert [float(x) for x in inside] == pytest.approx([40.0, 39.0], abs=1e-9)
    far = taken_back(evidence, [Fraction(40), Fraction(39)], ([400], [600]))
    moved = float(far[0]) - 40, float(far[1]) - 39
    assert moved[0] > 0.3
    assert moved[1] / moved[0] == pytest.approx(-2 / 6, rel=1e-9), "the categories' means differ by -6 and 2"


@pytest.mark.parametrize(("prior", "form"), [({"F": 0.3, "M": 0.7}, "direct"), (None, "equalised")])
def test_the_grid_is_public(prior: dict[str, float] | None, form: str) -> None:
    found = plan(problem(groups(prior=prior)), "transport")
    evidence = evidence_of(found)
    assert evidence.form == form
    step = Fraction(granularity(evidence.scale))
    for count in (250, 333, 400):
        answer = Fraction(found.answers([Fraction(1, 3)], [count, 1_000 - count])[0])
        assert (answer / step).denominator == 1


def test_what_is_drawn_has_the_certified_spread() -> None:
    """800 draws: a sample variance is 32% off (six standard errors) with probability below 1e-7."""
    unlike = groups(
        mean={"F": {"hours": 36.0, "age": 40.0}, "M": {"hours": 40.0, "age": 40.5}},
        sd={"F": {"hours": 1.0, "age": 20.0}, "M": {"hours": 30.0, "age": 10.0}},
        prior=None,
    )
    found = plan(problem(unlike), "transport")
    evidence = evidence_of(found)
    assert evidence.form == "equalised"
    own = {count: (count * 1.0 + (1_000 - count) * 900.0) / 1_000**2 for count in (250, 400)}
    for count, variance in own.items():
        drawn = [found.answers([Fraction(40)], [count, 1_000 - count])[0] for _ in range(800)]
        assert float(np.var(drawn)) == pytest.approx(own[250] - variance + evidence.scale**2, rel=0.32)
        told = (count * 36 + (1_000 - count) * 40) / 1_000 - evidence.centre
        kept = min(max(told, -evidence.reach), evidence.reach)
        assert float(np.mean(drawn)) == pytest.approx(40 - told + kept, abs=6 * math.sqrt(np.var(drawn) / 800))


def test_answers_of_several_averages_are_near_what_is_expected() -> None:
    drawn = np.array([SEVERAL.answers([Fraction(40), Fraction(39)], [300, 700]) for _ in range(60)])
    for k, query in enumerate(BOTH):
        most = SEVERAL.noise_of(query).scale
        assert float(np.mean(drawn[:, k])) == pytest.approx((40.0, 39.0)[k], abs=7 * most / math.sqrt(60))


def test_counts_must_add_up() -> None:
    for counts in ([300, 600], [300], [300, 600, 100]):
        with pytest.raises(AttrprivError):
            PLAIN.answers([Fraction(40)], counts)


# ---------------------------------------------------------------------------------------------------------- what is proved


def test_a_population_is_hidden_with_the_tail_charged() -> None:
    found = plan(problem(secrets=(POPULATION,)), "transport")
    check = evidence_of(found).check
    assert check.shares == (0.25, 0.4)
    assert 0 < check.tail <= 1e-7
    assert (found.error.rmse or 0) > (PLAIN.error.rmse or 0)
    assert evidence_of(found).centre == pytest.approx(0.325 * 36 + 0.675 * 42)


@pytest.mark.parametrize("change", [{"reach": 1.0}, {"scale": 1e-6}, {"form": "else"}, {"reach": math.nan}])
def test_a_changed_certificate_releases_nothing(change: dict[str, Any]) -> None:
    evidence = PLAIN.certificate.evidence.model_copy(update=change)
    planned = PLAIN.model_copy(update={"certificate": PLAIN.certificate.model_copy(update={"evidence": evidence})})
    with pytest.raises(CertificateError):
        planned.answers([Fraction(40)], [300, 700])


@pytest.mark.parametrize("change", [{"reach": 10.0}, {"metric": ((1.0, 2.0), (2.0, 1.0))}, {"independent": (1e-9, 1e-9)}])
def test_a_changed_certificate_of_several_averages_releases_nothing(change: dict[str, Any]) -> None:
    evidence = SEVERAL.certificate.evidence.model_copy(update=change)
    planned = SEVERAL.model_copy(update={"certificate": SEVERAL.certificate.model_copy(update={"evidence": evidence})})
    with pytest.raises(CertificateError):
        planned.answers([Fraction(40), Fraction(39)], [300, 700])


def test_a_plan_survives_being_written() -> None:
    for found in (PLAIN, SEVERAL):
        again = Plan.model_validate_json(found.model_dump_json())
        assert again == found
        again.certificate.verify()


def test_model_error_says_what_wrong_means_do() -> None:
    for found in (PLAIN, SEVERAL):
        reals = [row.epsilon or math.inf for row in found.model_error]
        assert [row.off_by for row in found.model_error] == [0.01, 0.02, 0.05, 0.1]
        assert 1 < reals[0] < reals[1] < reals[2] < reals[3]
    large = plan(problem(n=1_000_000), "transport")
    assert any("fragile" in line for line in large.warnings), "with many rows 1% of the difference is many standard deviations"


def test_several_categories_are_all_taken_back() -> None:
    for asked in (problem(groups(**THREE)), problem(groups(**THREE), queries=BOTH)):
        found = plan(asked, "transport")
        assert len(found.categories) == 3
        answers = found.answers([Fraction(40)] * len(asked.columns), [300, 600, 100])
        assert len(answers) == len(asked.queries)


# ------------------------------------------------------------------------------------------------------------- and refused


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"individuals": 1.0}, "single rows"),
        ({"secrets": (SHARE, Secret("share(gender = 'M')", between=(0.5, 0.8)))}, "one secret"),
        ({"theta": (groups(), groups())}, "one secret under one"),
        ({"delta": 0.0}, "delta"),
        ({"secrets": (Secret("share(gender = 'F')", between=(0.25, 0.4), within=0.002),)}, "nothing to take back"),
        ({"queries": BOTH, "known_rows": 0.1}, "known_rows"),
        ({"secrets": (POPULATION,), "known_rows": 0.01}, "known_rows"),
        ({"queries": BOTH, "theta": (groups(tolerance={"sd": 0.01}),)}, "tolerance.sd"),
        ({"queries": BOTH, "theta": (groups(correlation=None),)}, "correlation"),
    ],
)
def test_refusals_name_the_reason(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(AttrprivError, match=reason):
        plan(problem(**changes), "transport")
    assert "transport" in rank(problem(**changes)).refused


def test_a_certificate_that_reads_counts_does_not_hide_a_share_from_who_knows_rows() -> None:
    """Known values make categories of known rows depend on the share by more than its own range: once certified, and false."""
    found = plan(problem(secrets=(POPULATION,)), "transport")
    check = evidence_of(found).check
    assert isinstance(check.case, GroupCase)
    known = check.model_copy(update={"case": replace(check.case, known=1)})
    evidence = evidence_of(found).model_copy(update={"check": known, "scale": 1e3})
    assert evidence.delta(1.0) == 1.0
    own = evidence.model_copy(update={"check": known.model_copy(update={"shares": None})})
    assert own.delta(1.0) <= 1e-6, "of this table's own count it does"


def test_where_nothing_is_gained_it_is_the_plan_of_gaussian() -> None:
    found = plan(problem(known_rows=0.3), "transport")
    assert isinstance(found.certificate.evidence, GroupEvidence)
    assert any("nothing is gained" in note for note in found.notes)
    found.verify()


def test_no_correlation_does_not_stop_the_ranking() -> None:
    """A refusal of `gaussian`, too, where it once was an error that no other mechanism survived."""
    assert "gaussian" in rank(problem(groups(correlation=None), queries=BOTH)).refused
    with pytest.raises(RefusedError, match="correlation"):
        plan(problem(groups(correlation=None), queries=BOTH), "gaussian")


# ------------------------------------------------------------------------------------------------------ tables to expect


def test_expected_tables() -> None:
    case = evidence_of(PLAIN).check.case
    (one,) = expected_tables(groups(), ("F",), None)
    assert one == Expected(0.3, (1.0,), (1.0,))
    assert expected_tables(groups(prior={"M": 0.6}), ("F",), None)[0].share == pytest.approx(0.4)
    (none,) = expected_tables(groups(prior=None), ("F",), None)
    assert none.share is None
    assert centre_share(case, (none,)) == pytest.approx(0.325)
    assert [way.share for way in expected_tables(groups(), ("F",), (0.2, 0.3))] == [0.2, 0.3]
    (several,) = expected_tables(groups(**THREE), ("F", "X"), None)
    assert several.share == pytest.approx(0.4)
    assert several.inside == pytest.approx((0.75, 0.25))
    for way in (one, none):
        counts, weights = tables(case, way)
        assert weights.sum() == pytest.approx(1)
        assert (counts.sum(axis=1) == 1_000).all()
        mean = float(weights @ counts[:, 0])
        assert mean == pytest.approx(300 if way.share else 325, abs=1e-6)
    counts, weights = tables(case, one)
    assert float(weights @ (counts[:, 0] - 300) ** 2) == pytest.approx(1_000 * 0.3 * 0.7, rel=1e-6)
    again, _ = tables(case, several)
    assert (again == tables(case, several)[0]).all(), "the same on every run"
    assert float(again[:, 0].mean()) == pytest.approx(300, abs=6 * math.sqrt(1_000 * 0.3 * 0.7 / 8192))


@pytest.mark.parametrize("queries", [BOTH[:1], BOTH])
@pytest.mark.parametrize("prior", [[0.22, 0.3], [0.3, 0.38]])
def test_the_error_is_that_of_the_worst_tables(queries: tuple[Query, ...], prior: list[float]) -> None:
    """The further from the middle of the range, the more is left of the secret: either end of the prior may be it."""
    assumed = groups(prior={"F": prior})
    found = plan(problem(assumed, queries=queries), "transport")
    evidence = evidence_of(found) if len(queries) == 1 else vector_of(found)
    ends = [[one.rmse for one in evidence.spreads(way)] for way in expected_tables(assumed, ("F",), None)]
    least, most = sorted(ends)
    assert least[0] < 0.99 * most[0]
    assert [found.error_of(query).rmse for query in queries] == pytest.approx(most, rel=1e-9)
