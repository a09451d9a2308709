"""Every mechanism on stated laws: what each plans, what it refuses, and that only stated values meet the noise."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest

from attrpriv.assumptions.laws import Laws
from attrpriv.errors import Cause, CertificateError, DataError, PolicyError, RefusedError, UsageError
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan
from attrpriv.methods.stated_laws import plan as forms
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Parameter, Secret
from attrpriv.queries.query import Query
from tests.refusing import refuses

FLU = Query("count", where="flu = 1")
GIVEN: dict[str, Any] = {"0": [0.2, 0.225, 0.5, 0.075, 0], "1": [0, 0.075, 0.5, 0.225, 0.2]}
TABLE_1: dict[str, Any] = {
    "0": [0.0256, 0.1536, 0.3456, 0.3456, 0.1296],
    "1": [0.0384, 0.1984, 0.3744, 0.3024, 0.0864],
    "2": [0.0576, 0.2496, 0.3856, 0.2496, 0.0576],
    "3": [0.0864, 0.3024, 0.3744, 0.1984, 0.0384],
    "4": [0.1296, 0.3456, 0.3456, 0.1536, 0.0256],
}
COUNT = (Secret("count(x2 = 1)", between=(0, 4)),)


def assumed(**changes: Any) -> Laws:
    return Laws(**({"statistic": FLU.text, "values": [0, 1, 2, 3, 4], "given": GIVEN} | changes))


def problem(*theta: Laws, **changes: Any) -> Problem:
    given: dict[str, Any] = {
        "queries": (FLU,),
        "secrets": (Secret("entries(flu)"),),
        "epsilon": 1.0,
        "n": 4,
        "theta": theta or (assumed(),),
    }
    return Problem(**(given | changes))


def drawn(made: Plan, cells: tuple[int, ...], categories: tuple[int, ...] = (), times: int = 400) -> Counter[float]:
    return Counter(made.tallied(cells, categories)[0][0] for _ in range(times))


@pytest.mark.parametrize(("name", "scale"), [("laplace", 1.154527), ("wasserstein", 2.0), ("group_dp", 4.0)])
def test_the_flu(name: str, scale: float) -> None:
    """W = 2 and 4 for group differential privacy, as published; the laws themselves need less."""
    made = plan(problem(), name)
    assert made.noise.scale == pytest.approx(scale, abs=1e-6)
    made.verify()


def test_both_tables_of_the_paper() -> None:
    one = problem(assumed(given=TABLE_1), secrets=COUNT)
    assert plan(one, "wasserstein").noise.scale == pytest.approx(1.0)
    assert plan(one, "laplace").noise.scale == pytest.approx(0.686929, abs=1e-6)
    assert plan(one, "optimal").certificate.evidence.kind == "stated_coupling"
    lines = {"0.2": [0.03748096, 0.19081216, 0.36427776, 0.30908416, 0.09834496]}
    lines["0.8"] = lines["0.2"][::-1]
    for epsilon, noise in ((0.9646, "laplace"), (0.9647, "none")):
        two = problem(assumed(given=lines), secrets=(Parameter("phi_2"),), epsilon=epsilon)
        assert plan(two, "laplace").noise.kind == noise
        assert plan(two, "wasserstein").noise.scale == pytest.approx(1 / epsilon)


def test_near_counts_alone_need_less_noise_and_a_kernel_that_reads_nothing() -> None:
    near = problem(assumed(given=TABLE_1), secrets=(Secret("count(x2 = 1)", between=(0, 4), within=1),))
    every = problem(assumed(given=TABLE_1), secrets=COUNT, epsilon=0.2)
    assert plan(near.model_copy(update={"epsilon": 0.2}), "laplace").noise.scale < plan(every, "laplace").noise.scale / 3
    assert plan(near, "optimal").certificate.evidence.kind == "stated_kernel"


def test_intervals_need_more_noise_than_a_law_within_them_and_say_what_is_not_covered() -> None:
    boxes = {name: [(max(0, p - 0.02), p + 0.02) for p in law] for name, law in GIVEN.items()}
    wide = problem(assumed(given=boxes), delta=1e-3)
    for name in ("laplace", "wasserstein", "gaussian"):
        assert plan(wide, name).noise.scale >= plan(problem(delta=1e-3), name).noise.scale
    with refuses(RefusedError, Cause.NUMBERS, "exact probabilities"):
        plan(wide, "optimal")
    assert plan(wide, "wasserstein").certificate.evidence.delta(1.0) == 0.0  # no mass is left aside with intervals


def test_a_list_of_laws_is_hidden_under_each() -> None:
    other = assumed(given={"0": [0.3, 0.2, 0.4, 0.1, 0], "1": [0, 0.1, 0.4, 0.2, 0.3]})
    both = plan(problem(assumed(), other), "laplace")
    assert both.noise.scale == max(plan(problem(one), "laplace").noise.scale for one in (assumed(), other))
    with refuses(RefusedError, Cause.SECRET, "one secret under one assumption"):
        plan(problem(assumed(), other), "optimal")


def test_shares_and_cases_name_their_laws() -> None:
    shares = {f"{k}/4": law for k, law in enumerate(TABLE_1.values())}
    found = plan(problem(assumed(given=shares), secrets=(Secret("share(x2 = 1)", between=(0.0, 1.0)),)), "laplace")
    assert found.noise.scale == plan(problem(assumed(given=TABLE_1), secrets=COUNT), "laplace").noise.scale
    rich = Secret("mean(income)", cases=("< 50000", ">= 50000"))
    cases = assumed(given=dict(zip(("< 50000", ">= 50000"), GIVEN.values(), strict=True)))
    assert plan(problem(cases, secrets=(rich,)), "laplace").noise.scale == plan(problem(), "laplace").noise.scale


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        (
            {"queries": (Query("count", where="flu = 0"),)},
            UsageError,
            "the law of count(*) filter (where flu = 0) is not stated",
        ),
        ({"queries": (Query("avg", "flu"),)}, UsageError, "the law of avg(flu) is not stated"),
        ({"queries": (Query("count", group_by="flu"),)}, UsageError, "is not stated"),
        ({"secrets": (Secret("entries(flu)"), Secret("entries(x)"))}, UsageError, "given one secret"),
        ({"secrets": (Secret("mean(age)", between=(20.0, 60.0)),)}, UsageError, "state the laws given sets of its values"),
        ({"secrets": (Secret("count(x = 1)", between=(0, 4)),)}, UsageError, "Got none of 2 of 4 rows"),
        ({"secrets": (Secret("mean(age)", cases=("< 30", ">= 30")),)}, UsageError, "one law for each case"),
        ({"secrets": (Parameter("share(x = 1)", between=(0.2, 0.5)),)}, UsageError, "finitely many values"),
        ({"known_rows": 0.3}, RefusedError, "known_rows: is not covered"),
        ({"spend": 0.5}, RefusedError, "no budget with other releases"),
    ],
)
def test_what_the_laws_do_not_say_is_refused(changes: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind) as caught:
        plan(problem(**changes), "laplace")
    assert words in str(caught.value)


def test_single_persons_need_a_law_without_gaps() -> None:
    whole = plan(problem(individuals=0.5), "laplace")
    assert whole.noise.scale == pytest.approx(2.0)
    gaps = assumed(values=[0, 1, 4], given={"0": [0.5, 0.3, 0.2], "1": [0.2, 0.3, 0.5]})
    with refuses(RefusedError, Cause.PERSONS, "no individuals"):
        plan(problem(gaps, individuals=0.5), "laplace")
    with refuses(RefusedError, Cause.PERSONS, "mechanism laplace"):
        plan(problem(individuals=0.5), "optimal")


def test_what_cannot_be_read_is_not_moved() -> None:
    with refuses(RefusedError, Cause.SECRET, "mechanism laplace"):
        plan(problem(), "transport")


def test_one_row_is_a_table_under_stated_laws_alone() -> None:
    bills = Laws(statistic="sum(bill)", values=[0, 100, 400], given={"a": [0.6, 0.3, 0.1], "b": [0.1, 0.3, 0.6]})
    one = problem(bills, queries=(Query("sum", "bill"),), secrets=(Secret("entries(ward)"),), n=1)
    made = plan(one, "laplace")
    assert made.tally is not None
    assert (made.tally.unit, made.tally.support) == (100.0, (0, 1, 4))
    with pytest.raises(PolicyError, match="n: must be at least 2"):
        Problem(queries=(FLU,), secrets=one.secrets, epsilon=1.0, n=1)
    with pytest.raises(UsageError, match="row_values"):
        plan(problem(bills, queries=(Query("sum", "bill"),), secrets=(Secret("entries(ward)"),)), "laplace")


def test_sums_and_averages_of_listed_entries() -> None:
    laws = Laws(
        statistic="avg(visits)",
        values=[0, 0.5, 1.5],
        row_values=[0, 1, 3],
        given={"0": [0.5, 0.25, 0.25], "1": [0.25, 0.25, 0.5]},
    )
    asked = problem(laws, queries=(Query("avg", "visits"), Query("sum", "visits"), Query("count")), n=2)
    made = plan(asked, "laplace")
    assert made.tally is not None
    assert made.tally.support == (0, 1, 3)
    exact = made.tally.model_copy(update={"noise": "none", "scale": 0.0})
    assert [exact.total(cells) for cells in ((2, 0, 0), (1, 1, 0), (0, 2, 0), (0, 1, 1), (0, 0, 2))] == [0, 1, 1, 3, 3]
    wrong = laws.model_copy(update={"values": (0, 0.25, 1.5)})
    with pytest.raises(UsageError, match="values: must be ones that"):
        plan(problem(wrong, queries=(Query("avg", "visits"),), n=2), "laplace")
    for changes in ({"bins": {"visits": (0.0, 1.0, 2.0)}}, {"bounds": {"visits": (0.0, 2.0)}}):
        with pytest.raises(UsageError, match="visits"):
            plan(problem(laws, queries=(Query("avg", "visits"),), n=2, **changes), "laplace")


def test_a_value_that_is_not_stated_counts_as_the_nearest() -> None:
    """Two of four: law of 0, 1 and 4 only; what is drawn is what 1 gives. 3 is nearer to 4."""
    gaps = assumed(values=[0, 1, 4], given={"0": [0.4, 0.3, 0.3], "1": [0.3, 0.3, 0.4]})
    made = plan(problem(gaps), "laplace")
    assert made.noise.kind == "none"
    assert [drawn(made, (k,), times=1) for k in range(5)] == [Counter([k]) for k in (0, 1, 1, 4, 4)]
    kernel = plan(problem(gaps, epsilon=0.05), "optimal")
    assert set(drawn(kernel, (2,), times=50)) <= set(range(5))


def test_a_coupling_reads_the_count_and_fails_outside_of_its_range() -> None:
    """Only the counts from 1 to 3 are hidden; a table with none is an announced failure, in fixed words."""
    made = plan(problem(assumed(given=TABLE_1), secrets=(Secret("count(x2 = 1)", between=(1, 3)),)), "transport")
    assert set(drawn(made, (2,), (1, 3))) <= set(range(5))
    with pytest.raises(DataError, match="outside of the range"):
        made.tallied((2,), (0, 4))


def test_the_prior_is_for_errors_alone() -> None:
    sure = assumed(prior={"0": 1.0, "1": 0.0})
    assert plan(problem(sure), "laplace").noise == plan(problem(), "laplace").noise
    errors = [plan(asked, "constant").error.rmse or 0.0 for asked in (problem(sure), problem())]
    assert 0 < errors[0] < errors[1]


def test_a_law_is_bound_to_what_is_counted() -> None:
    """A tally of another event, or on other values, is not what the laws are of."""
    made = plan(problem(), "laplace")
    assert made.tally is not None
    for changes in ({"support": ()}, {"support": (0, 1, 2, 3)}, {"scale": 1.0}, {"noise": "none"}):
        told: Any = made.to_json()
        told["tally"] |= changes
        with pytest.raises(CertificateError):
            Plan.from_json(told).verify()


def test_auto_solves_small_programs_alone() -> None:
    values = list(range(121))
    long = assumed(values=values, given={"0": [1 / 121] * 121, "1": [1 / 121] * 121})
    assert forms.too_slow(problem(long, n=120)) == "100 steps between the values"
    assert forms.too_slow(problem()) is None
    assert forms.too_slow(problem(queries=(Query("avg", "flu"),))) is None
    with refuses(UsageError, Cause.MISTAKE, "calibration analytic"):
        plan(problem(delta=1e-3, calibration="classical"), "gaussian")


def test_what_is_off_is_told_and_grows() -> None:
    for name in ("laplace", "wasserstein", "optimal"):
        rows = [one.epsilon or math.inf for one in plan(problem(), name).model_error]
        assert all(math.isfinite(x) for x in rows)
        assert rows == sorted(rows)
        assert rows[0] > (0.5 if name == "wasserstein" else 1.0)
