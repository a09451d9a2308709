"""`gaussian` and `constant` under records: what is drawn is what is proved, and what is changed proves nothing."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from scipy.stats import norm

from attrpriv.assumptions.records import RecordedTable, Records
from attrpriv.errors import CertificateError, RefusedError, UsageError
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan, rank
from attrpriv.methods.recorded import proof
from attrpriv.methods.recorded.proof import RecordedEvidence, rounded_draw
from attrpriv.numerics.calibration.recorded import recorded_step
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from tests.conformance.test_mechanisms import records_problem

COUNT: dict[str, Any] = {
    "queries": (Query("count", where="hours >= 40"),),
    "secrets": (Secret("share(sex = 'F')", between=(0.3, 0.5), within=0.1),),
    "bounds": {},
}


def evidence(made: Plan) -> RecordedEvidence:
    assert isinstance(made.certificate.evidence, RecordedEvidence)
    return made.certificate.evidence


def test_an_average_is_a_rounded_sum() -> None:
    made = plan(records_problem(), "gaussian")
    unit = Fraction(evidence(made).step) / made.n
    (answer,) = made.answers([Fraction(38)])
    assert (Fraction(answer).limit_denominator(10**9) / unit).denominator == 1
    assert "for the laws listed" in made.guarantee.statement


def test_a_count_is_a_whole_number() -> None:
    made = plan(records_problem(**COUNT), "gaussian")
    ((answer,),) = made.tallied([9], [])
    assert isinstance(answer, int)
    assert made.noise_of(made.queries[0]).kind == "kernel"


def test_what_is_drawn_has_the_law_that_was_proved() -> None:
    """3,000 draws on the 41 bins within 2.5 sds: chi-square of 42 cells above 110 has a chance of 4e-8.

    The planted wrong law, noise larger by a quarter, is far beyond it.
    """
    scale, total, draws = 3.0, 7, 3000
    step = recorded_step(scale)
    found = Counter(rounded_draw(total, scale) for _ in range(draws))

    def distance(sd: float) -> float:
        inner = [total + k * step for k in range(-20, 21)]
        chances = [norm.cdf((x - total + step / 2) / sd) - norm.cdf((x - total - step / 2) / sd) for x in inner]
        cells = [(found[Fraction(x)], draws * p) for x, p in zip(inner, chances, strict=True)]
        seen, expected = (sum(one[k] for one in cells) for k in (0, 1))
        return float(sum((a - b) ** 2 / b for a, b in [*cells, (draws - seen, draws - expected)]))

    assert distance(scale) < 110
    assert distance(1.25 * scale) > 110


def test_halves_are_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bins that the proof counts on lie half a grid step lower than those of plain rounding."""
    step = recorded_step(3.0)
    monkeypatch.setattr(proof, "add_gaussian", lambda value, scale: value + Fraction(step) / 2)
    assert rounded_draw(8, 3.0) == 8 + Fraction(step)
    monkeypatch.setattr(proof, "add_gaussian", lambda value, scale: value - Fraction(step) / 2)
    assert rounded_draw(8, 3.0) == 8


@pytest.mark.parametrize("changes", [{}, COUNT])
def test_less_noise_proves_nothing(changes: dict[str, Any]) -> None:
    made = plan(records_problem(**changes), "gaussian")
    proved = evidence(made)
    assert proved.delta(made.epsilon) <= made.delta
    assert proved.model_copy(update={"scale": 0.9 * proved.scale}).delta(made.epsilon) > made.delta
    forged = made.certificate.model_copy(update={"evidence": proved.model_copy(update={"scale": 0.9 * proved.scale})})
    with pytest.raises(CertificateError):
        forged.verify()


def test_wider_pairs_and_other_laws_are_not_what_was_proved() -> None:
    made = plan(records_problem(), "gaussian")
    proved = evidence(made)
    (check,) = proved.checks
    wider = check.model_copy(update={"secrets": check.secrets.model_copy(update={"apart": check.secrets.apart + 2})})
    assert proved.model_copy(update={"checks": (wider,)}).delta(made.epsilon) > made.delta
    first = check.laws[0]
    steeper = first.model_copy(update={"q": tuple(q + 6 * s for q, s in zip(first.q, first.s, strict=True))})
    other = check.model_copy(update={"laws": (steeper, *check.laws[1:])})
    assert proved.model_copy(update={"checks": (other,)}).delta(made.epsilon) > made.delta


def test_a_plan_that_reads_or_draws_something_else_is_refused() -> None:
    made = plan(records_problem(), "gaussian")
    (column,) = made.columns
    for changes in ({"clip": (0.0, 50.0)}, {"fill": 3.0}, {"independent": column.independent / 2}, {"column": "school"}):
        forged = made.model_copy(update={"columns": (column.model_copy(update=changes),)})
        with pytest.raises(CertificateError):
            forged.verify()
    with pytest.raises(CertificateError):
        evidence(made).drawn([column, column], [Fraction(1), Fraction(1)], None)  # type: ignore[arg-type]
    with pytest.raises(CertificateError):
        evidence(made).kernel_draw(3, 0, 1.0)


def test_the_noise_for_one_law_is_that_of_its_own_search() -> None:
    """Every law that is added may ask for more, and never for less."""
    theta = records_problem().theta[0]
    alone = theta.model_copy(update={"resamples": theta.resamples.model_copy(update={"number": 0})})  # type: ignore[attr-defined]
    one, both = (evidence(plan(records_problem(theta=(t,)), "gaussian")).scale for t in (alone, theta))
    assert both >= one * (1 - 1e-3)


def test_the_constant_counts_in_what_public_rows_do_not_know() -> None:
    made = plan(records_problem(), "constant")
    mean, sd = 38.0, math.sqrt(sum((x - 38) ** 2 for x in (30, 40, 38, 40, 45, 41, 50, 20)) / 8)
    (column,) = made.columns
    assert column.centre == pytest.approx(mean)
    assert column.parameters["bias"] >= sd / math.sqrt(8) * (1 - 1e-12)
    assert made.error.rmse is not None
    assert made.error.rmse >= math.hypot(sd / math.sqrt(8), sd / math.sqrt(20)) * (1 - 1e-12)
    count = plan(records_problem(**COUNT), "constant")
    assert count.error.rmse is not None
    assert count.error.rmse > math.sqrt(20 * 0.25)


def test_auto_takes_the_proved_noise_and_shows_the_constant() -> None:
    ranking = rank(records_problem())
    assert ranking.chosen is not None
    assert ranking.chosen.mechanism in ("gaussian", "group_dp")
    assert "constant" in {made.mechanism for made in ranking.plans}


def test_it_stands_alone_and_needs_delta() -> None:
    with pytest.raises((RefusedError, UsageError), match="delta"):
        plan(records_problem(delta=0.0), "gaussian")
    with pytest.raises(RefusedError, match="spend"):
        plan(records_problem(spend=0.5), "gaussian")
    with pytest.raises((RefusedError, UsageError), match="no rule covers it"):
        plan(records_problem(earlier=plan(records_problem(), "gaussian").certificate.evidence), "gaussian")


def laws_of_which_one_has_holes(within: float, **changes: Any) -> Problem:
    """Under the first law every sum of s is possible, and q tells nothing of it. Under the second q is s/2, and s is even."""
    first = RecordedTable.of({"s": [0, 1] * 2, "q": [0, 0, 1, 1]}, "first")
    second = RecordedTable.of(changes or {"s": [0, 2], "q": [0, 1]}, "second")
    return Problem(
        queries=(Query("sum", "q"),),
        secrets=(Secret("sum(s)", between=(4, 16), within=within),),
        epsilon=1.0,
        delta=1e-3,
        n=20,
        theta=(Records(file=first, columns=["s", "q"], resamples={"number": 0}, further=[second]),),
    )


@pytest.mark.parametrize("mechanism", ["gaussian", "transport"])
def test_steps_over_values_that_a_law_lacks_bound_nothing(mechanism: str) -> None:
    """Sums of 8 and 10 are 2 apart, and under the second law q adds up to 4 or 5: with noise of 0.07 that is plain.

    Two steps of one, from 8 to 9 to 10, were said to make it at most 50.0%.
    """
    made = plan(laws_of_which_one_has_holes(1), mechanism)
    scale = made.certificate.evidence.scale  # type: ignore[attr-defined]
    right = norm.cdf(0.5 / scale)
    assert right > 0.9999
    near, far = made.tells(1), made.tells(2)
    assert near.after.how == "bound"
    assert near.after.right < 0.51  # the second law has no pair that is promised
    assert far.after.how == "unknown"
    assert far.after.right >= right
    assert made.belief({8: 1, 10: 1, 12: 1}, at=10).worst == ()


def test_steps_over_values_that_every_law_has_are_a_bound() -> None:
    """Values that a law lacks at an end of the range are no hole."""
    for further in ({"s": [0, 1], "q": [0, 1]}, {"s": [0, 1, 2], "q": [0, 0, 1]}, {"s": [0, 0, 0], "q": [0, 1, 1]}):
        told = plan(laws_of_which_one_has_holes(1, **further), "gaussian").tells(3)
        assert told.after.how == "bound"
        assert told.after.epsilon is not None
