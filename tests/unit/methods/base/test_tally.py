"""A tally: units, whole answers, what one row can change, and that a changed noise is not drawn."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from attrpriv.errors import CertificateError, DataError, UsageError
from attrpriv.methods.base import tally as module
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.base.tally import OUTSIDE, Tally, TallyCell
from attrpriv.methods.choice.choose import plan
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from tests.unit.methods.counts import STAY, column, problem, smokers

VALUES = column("x", [2.5, 0.5, 1.0], [0.2, 0.5, 0.3], [0.5, 0.3, 0.2])
SUM, AVG = Query("sum", "x"), Query("avg", "x")


def cell(value: int) -> TallyCell:
    return TallyCell(name=str(value), where=f"x = {value}", value=value)


@pytest.mark.parametrize(
    ("values", "complete", "histogram", "width"),
    [
        ((1,), False, False, 1),
        ((0, 1, 4), True, False, 4),
        ((2, 5), True, False, 3),
        ((2, 5), False, False, 5),
        ((1, 1), True, True, 2),
    ],
)
def test_what_one_row_can_change(values: tuple[int, ...], complete: bool, histogram: bool, width: int) -> None:
    assert Tally(cells=tuple(map(cell, values)), complete=complete, categories=(), histogram=histogram).width == width


def test_values_in_steps_of_their_unit() -> None:
    """0.5, 1.0, 2.5 are 0, 1, 4 steps of 0.5 above 0.5; in order, whatever order they are written in."""
    made = plan(problem(VALUES, queries=(SUM, AVG, Query("count"))), "laplace")
    tally = made.tally
    assert tally is not None
    assert ([c.value for c in tally.cells], tally.unit, tally.origin) == ([0, 1, 4], 0.5, 0.5)
    assert [c.where for c in tally.cells] == ["x = 0.5", "x = 1.0", "x = 2.5"]
    assert tally.answer(SUM, 4, tally.total((1, 2, 1))) == 0.5 + 2 * 1.0 + 2.5
    assert tally.answer(AVG, 4, tally.total((1, 2, 1))) == 5 / 4
    assert tally.answer(SUM, 4, -3) == 0.5
    assert made.noise_of(SUM).scale == pytest.approx(tally.scale / 2)
    assert made.noise_of(AVG).scale == pytest.approx(tally.scale / 8)
    assert made.noise_of(Query("count")).scale == 0
    assert made.error_of(SUM).rmse == pytest.approx(4 * (made.error_of(AVG).rmse or 0))
    assert made.error_of(Query("count")).rmse == 0


def test_negative_values() -> None:
    made = plan(problem(column("x", [-3, 0, 6], [0.2, 0.5, 0.3], [0.5, 0.3, 0.2]), queries=(SUM,)), "laplace")
    tally = made.tally
    assert tally is not None
    assert ([c.value for c in tally.cells], tally.unit, tally.origin, tally.width) == ([0, 1, 3], 3.0, -3.0, 3)
    answer = tally.answer(SUM, 4, tally.total((3, 0, 1)))
    assert (answer, type(answer)) == (-3, int)


@pytest.mark.parametrize("mechanism", ["laplace", "wasserstein", "optimal", "group_dp"])
def test_whole_numbers_are_answered_by_whole_numbers(mechanism: str) -> None:
    made = plan(problem(), mechanism)
    for _ in range(20):
        ((value,),) = made.tallied((2,), (1, 3))
        assert type(value) is int


def test_sums_stay_on_their_lattice() -> None:
    made = plan(problem(VALUES, queries=(SUM, AVG)), "laplace")
    for _ in range(20):
        (total,), (average,) = made.tallied((1, 2, 1), (2, 2))
        assert (Fraction(total) - 2) % Fraction(1, 2) == 0
        assert average == total / 4  # one draw for both


def test_randomise_takes_a_statistic_in_its_own_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "whole_laplace", lambda scale: 2)
    assert plan(problem(), "laplace").randomise(3) == 5
    assert plan(problem(VALUES, queries=(SUM,)), "laplace").randomise(5.0) == 6
    assert plan(problem(VALUES, queries=(AVG,)), "laplace").randomise(1.25) == 1.5
    with pytest.raises(UsageError, match=r"statistic: must be made of steps of 0.5. Got one that is not"):
        plan(problem(VALUES, queries=(SUM,)), "laplace").randomise(5.2)
    with pytest.raises(UsageError, match="needs the table's counts"):
        plan(problem(), "optimal").randomise(3)


def test_a_histogram_has_noise_of_its_own_in_each_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    theta = column("ward", ["a", "b", "c"], [0.2, 0.5, 0.3], [0.5, 0.3, 0.2])
    made = plan(problem(theta, queries=(Query("count", group_by="ward"),)), "laplace")
    drawn = iter([10, 20, 30])
    monkeypatch.setattr(module, "whole_laplace", lambda scale: next(drawn))
    assert made.tallied((1, 2, 1), (2, 2)) == ((11, 22, 31),)
    assert made.tally is not None
    assert [c.where for c in made.tally.cells] == ["ward is 'a'", "ward is 'b'", "ward is 'c'"]


def test_a_count_outside_of_the_range_is_an_announced_failure() -> None:
    made = plan(problem(secrets=(Secret("count(smoker = 'yes')", between=(1, 3)),)), "optimal")
    assert made.tally is not None
    assert made.tally.parameters["reads_secret"] is True
    made.tallied((2,), (1, 3))
    for members in (0, 4):
        with pytest.raises(DataError) as caught:
            made.tallied((2,), (members, 4 - members))
        assert str(caught.value) == OUTSIDE


# ------------------------------------------------------------------------------------------------------------ tampering


def with_tally(**changes: Any) -> Callable[[Plan], Plan]:
    def tampered(made: Plan) -> Plan:
        assert made.tally is not None
        return made.model_copy(update={"tally": made.tally.model_copy(update=changes)})

    return tampered


def with_evidence(**changes: Any) -> Callable[[Plan], Plan]:
    def tampered(made: Plan) -> Plan:
        evidence = made.certificate.evidence.model_copy(update=changes)
        return made.model_copy(update={"certificate": made.certificate.model_copy(update={"evidence": evidence})})

    return tampered


def both(scale: float) -> Callable[[Plan], Plan]:
    """The noise and the certificate agree, and are wrong."""
    return lambda made: with_evidence(scale=scale)(with_tally(scale=scale)(made))


HISTOGRAM = problem(column("x", [0, 1], [0.2, 0.8], [0.8, 0.2]), queries=(Query("count", group_by="x"),))
ROWS = problem(individuals=0.1)
TAMPERED: dict[str, tuple[Any, str, Callable[[Plan], Plan]]] = {
    "less noise": (problem(), "laplace", with_tally(scale=0.5)),
    "no noise": (problem(), "laplace", with_tally(noise="none", scale=0.0)),
    "another noise": (problem(), "laplace", with_tally(noise="gaussian")),
    "a kernel": (problem(), "laplace", with_tally(noise="kernel")),
    "a public answer": (problem(), "laplace", with_tally(centre=3)),
    "a scale that is not private": (problem(), "laplace", both(0.68)),
    "another secret": (problem(), "laplace", with_evidence(checks=())),
    "one count for a histogram": (HISTOGRAM, "laplace", with_tally(histogram=False)),
    "a histogram for one count": (problem(), "laplace", with_tally(histogram=True)),
    "less noise, gaussian": (problem(delta=1e-5), "gaussian", with_tally(scale=1.0)),
    "both, gaussian": (problem(delta=1e-5), "gaussian", both(2.44)),
    "less noise, wasserstein": (problem(), "wasserstein", with_tally(scale=0.9)),
    "both, wasserstein": (problem(), "wasserstein", both(0.99)),
    "a shorter way": (problem(), "wasserstein", with_evidence(distance=0)),
    "less noise, group_dp": (problem(), "group_dp", with_tally(scale=1.0)),
    "noise instead of a kernel": (problem(), "optimal", with_tally(noise="none")),
    "no row noise": (ROWS, "laplace", with_tally(scale=0.7)),
    "no row noise, gaussian": (problem(individuals=0.1, delta=1e-5), "gaussian", with_tally(individuals=0.0)),
    "row noise that nobody asked for": (problem(), "laplace", with_tally(individuals=0.1)),
    "a smaller epsilon": (problem(), "laplace", lambda made: made.model_copy(update={"epsilon": 0.5})),
    "other steps": (problem(), "laplace", with_tally(cells=(TallyCell(name="e", where=STAY, value=5),))),
    "other steps, gaussian": (problem(delta=1e-5), "gaussian", with_tally(cells=(TallyCell(name="e", where=STAY, value=2),))),
    "other steps, group_dp": (problem(), "group_dp", with_tally(cells=(TallyCell(name="e", where=STAY, value=2),))),
    "other steps, optimal": (problem(), "optimal", with_tally(cells=(TallyCell(name="e", where=STAY, value=2),))),
    "other steps, rows": (ROWS, "laplace", with_tally(cells=(TallyCell(name="e", where=STAY, value=2),))),
}


@pytest.mark.parametrize("name", list(TAMPERED))
def test_a_changed_plan_draws_nothing(name: str) -> None:
    asked, mechanism, tamper = TAMPERED[name]
    made = plan(asked, mechanism)
    assert made.tally is not None
    counts = [1] * len(made.tally.cells)
    made.tallied(counts, (1, 3))  # as it was made, it does
    with pytest.raises(CertificateError):
        tamper(made).tallied(counts, (1, 3))


def test_a_changed_kernel_draws_nothing() -> None:
    made = plan(problem(), "optimal")
    evidence: Any = made.certificate.evidence
    first = [sum(evidence.targets[0]), *[0] * (len(evidence.targets[0]) - 1)]
    with pytest.raises(CertificateError):
        with_evidence(targets=(tuple(first), *evidence.targets[1:]))(made).tallied((2,), (1, 3))


@pytest.mark.parametrize(("counts", "categories"), [((1, 2), (1, 3)), ((1,), (1, 2, 1)), ((), ())])
def test_counts_of_another_tally_are_refused(counts: tuple[int, ...], categories: tuple[int, ...]) -> None:
    with pytest.raises(CertificateError, match="needs the counts of its tally's cells and categories"):
        plan(problem(), "laplace").tallied(counts, categories)


def test_a_plan_survives_json() -> None:
    for asked, mechanism, _ in TAMPERED.values():
        made = plan(asked, mechanism)
        again = Plan.from_json(made.to_json())
        assert again == made


def test_an_interval_assumption_is_drawn_from_its_kernel() -> None:
    made = plan(problem(smokers((0.35, 0.45), (0.55, 0.65))), "optimal")
    assert made.certificate.evidence.kind == "kernel"
    assert 0 <= made.tallied((2,), (1, 3))[0][0] <= 4
