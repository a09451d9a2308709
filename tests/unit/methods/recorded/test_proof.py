"""The proof of noise on sums over recorded rows: every law and every secret counts, the grid is paid for, guards hold."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

from attrpriv.errors import CertificateError
from attrpriv.methods.base.evidence import Told
from attrpriv.methods.choice.choose import plan
from attrpriv.methods.recorded import proof
from attrpriv.methods.recorded.proof import RecordedEvidence, shift_of
from attrpriv.noise import granularity
from attrpriv.numerics.calibration.recorded_members import members_delta
from tests.conformance.test_mechanisms import records_problem
from tests.unit.methods.proofs import counted
from tests.unit.methods.recorded.test_recorded import COUNT


@cache
def average() -> RecordedEvidence:
    return RecordedEvidence.model_validate(plan(records_problem(), "gaussian").certificate.evidence)


@cache
def count() -> RecordedEvidence:
    return RecordedEvidence.model_validate(plan(records_problem(**COUNT), "gaussian").certificate.evidence)


def worst(told: RecordedEvidence, epsilon: float) -> float:
    return max(
        members_delta(one.laws, told.n, one.secrets, told.scale, granularity(told.scale) / 2, epsilon) for one in told.checks
    )


@pytest.mark.parametrize(("lam", "eta"), [(0.05, 0.0), (0.0, 1e-3), (0.05, 1e-3)])
def test_the_grid_of_the_noise_is_paid_for(lam: float, eta: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a grid so coarse that it shows: e^lambda of what is left at epsilon - 2 lambda, and eta (1 + e^epsilon)."""
    cases = ((average(), 1.0), (count(), 0.6))
    monkeypatch.setattr(proof, "grid_charge", lambda columns: (lam * columns, eta * columns))
    for told, epsilon in cases:
        wanted = math.exp(lam) * worst(told, epsilon - 2 * lam) + eta * (1 + math.exp(epsilon))
        assert wanted * (1 - 1e-9) <= told.delta(epsilon) <= wanted * (1 + 1e-6)
    if lam:
        assert count().delta(2 * lam) == 1.0
        assert count().delta(2 * lam * 1.01) < 1.0


def test_the_worst_secret_counts() -> None:
    (check,) = count().checks
    near = check.model_copy(update={"secrets": check.secrets.model_copy(update={"apart": 1})})
    found = [count().model_copy(update={"checks": checks}).delta(1.0) for checks in ((near,), (near, check), (check, near))]
    assert found[0] < found[1] == found[2] == count().delta(1.0)


def test_bins_are_moved_by_half_a_grid_step() -> None:
    for scale in (0.3, 3.0, 41.5):
        assert shift_of(scale) == granularity(scale) / 2


def test_a_unit_of_nothing_proves_nothing() -> None:
    assert average().model_copy(update={"unit": "0"}).delta(50.0) == 1.0
    assert average().model_copy(update={"unit": "0/7"}).delta(50.0) == 1.0
    assert average().model_copy(update={"unit": "1/7"}).delta(1.0) == average().delta(1.0)


# ---------------------------------------------------------------------------------------------------------- what is covered


def test_an_average_with_its_own_noise_is_covered() -> None:
    told = average().model_copy(update={"unit": "1/4"})
    own = told.scale / 4 / told.n
    assert told.own_noise == pytest.approx(own, rel=1e-12)
    assert told.covers("hours", "gaussian", told.own_noise)
    wrong: list[tuple[str, str, float]] = [
        ("school", "gaussian", told.own_noise), ("hours", "laplace", told.own_noise), ("hours", "gaussian", told.own_noise / 2),
    ]  # fmt: skip
    assert not any(told.covers(*one) for one in wrong)
    assert not count().covers(count().statistic, "gaussian", count().own_noise)
    assert told.spacing_of("hours") == 0.25
    assert told.spacing_of("school") is None
    assert count().spacing_of(count().statistic) is None


def test_it_speaks_of_its_own_statistic_alone() -> None:
    told, event = average(), count()
    assert told.suits(("hours",), told.n, clipped=True)
    assert not told.suits(("hours",), told.n + 1, clipped=True)
    assert not told.suits((), told.n, clipped=True)
    assert not told.suits(("hours", "school"), told.n, clipped=True)
    assert event.suits((), event.n, clipped=False)
    assert not event.suits((event.statistic,), event.n, clipped=False)
    assert not event.suits((), event.n + 1, clipped=False)


@pytest.mark.parametrize(
    "change", [{}, {"n": 21}, {"event": "hours > 1"}, {"histogram": True}, {"noise": "gaussian"}, {"scale": 1.0}]
)
def test_a_count_must_be_the_one_it_counted_on(change: dict[str, Any]) -> None:
    told = count()
    right: dict[str, Any] = {"n": told.n, "event": told.statistic, "noise": "kernel", "scale": told.scale}
    assert told.covers_tally(counted(**{**right, **change})) is not bool(change)
    assert not average().covers_tally(counted(**{**right, "event": average().statistic, "scale": average().scale}))


# -------------------------------------------------------------------------------------------------------------- what is drawn


def test_an_average_is_drawn_as_its_sum_in_spacings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A float sum that is off its spacing by its last digits is the multiple next to it."""
    seen: list[Fraction] = []

    def noted(value: Fraction, scale: float) -> Fraction:
        seen.append(value)
        return value

    monkeypatch.setattr(proof, "add_gaussian", noted)
    told = average().model_copy(update={"unit": "1/4"})
    columns = plan(records_problem(), "gaussian").columns
    off = Fraction(1, 10**9)
    (found,) = told.drawn(columns, [Fraction(37, 4) / told.n + off], Told())
    assert seen == [37]
    step = Fraction(told.step)
    assert found == math.floor(37 / step + Fraction(1, 2)) * step / 4 / told.n
    for wrong in (columns * 2, (columns[0].model_copy(update={"column": "school"}),)):
        with pytest.raises(CertificateError):
            told.drawn(wrong, [Fraction(1)] * len(wrong), Told())
    with pytest.raises(CertificateError):
        count().drawn(columns, [Fraction(1)], Told())


def test_a_count_is_drawn_with_the_noise_that_was_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    told = count()
    monkeypatch.setattr(proof, "add_gaussian", lambda value, scale: value + Fraction(scale))
    step = Fraction(told.step)
    assert told.kernel_draw(9, 3, told.scale) == round(math.floor((9 + Fraction(told.scale)) / step + Fraction(1, 2)) * step)
    with pytest.raises(CertificateError):
        told.kernel_draw(9, 3, told.scale / 2)
    with pytest.raises(CertificateError):
        average().kernel_draw(9, 3, average().scale)
