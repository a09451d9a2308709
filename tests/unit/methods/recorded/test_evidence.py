"""Proofs for recorded laws, made of a few rows without a plan: what is charged, covered, read and drawn."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import pytest

from attrpriv.errors import CertificateError, DataError
from attrpriv.methods.base.accuracy import ExpectedError, Noise
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.base.evidence import Counted, Told
from attrpriv.methods.recorded import proof, transport_proof
from attrpriv.methods.recorded.proof import RecordedCheck, RecordedEvidence, shift_of
from attrpriv.methods.recorded.transport_proof import RecordedShareTransportEvidence, RecordedTransportEvidence
from attrpriv.noise import granularity
from attrpriv.numerics.calibration.recorded import recorded_step
from attrpriv.numerics.calibration.recorded_kernel import recorded_kernel, transport_delta
from attrpriv.numerics.calibration.recorded_members import RecordedLaw, SecretRange, members_delta

N, SCALE = 6, 2.5
LAW = RecordedLaw(s=(0, 0, 1, 1, 2), q=(0, 4, 3, 7, 9), counts=(2, 1, 3, 1, 2))
OTHER = RecordedLaw(s=(0, 1, 2), q=(0, 6, 11), counts=(1, 1, 1))
ONES = RecordedLaw(s=(0, 0, 1, 1), q=(0, 4, 3, 7), counts=(2, 1, 3, 1))
SUMS = SecretRange(kind="sum", low=4, high=8, apart=2)
SHARES = SecretRange(kind="share", low=2, high=4, apart=1)


def check(secrets: SecretRange = SUMS, *laws: RecordedLaw) -> RecordedCheck:
    return RecordedCheck(secret="mean(s)", secrets=secrets, laws=laws or (LAW,))


def evidence(**changes: Any) -> RecordedEvidence:
    given: dict[str, Any] = {"statistic": "q", "event": False, "unit": "3/4", "n": N, "scale": SCALE, "checks": (check(),)}
    return RecordedEvidence(**(given | changes))


def transport(kind: Any = RecordedTransportEvidence, **changes: Any) -> Any:
    given: dict[str, Any] = {
        "statistic": "q", "event": False, "unit": "3/4", "n": N, "scale": SCALE, "checks": (check(),), "hidden": "s",
        "hidden_unit": "5/2", "hidden_fill": 5.0,
    }  # fmt: skip
    return kind(**(given | changes))


COUNT: dict[str, Any] = {"event": True, "unit": "1", "checks": (check(SHARES, ONES),)}


def by_share(**changes: Any) -> Any:
    return transport(RecordedShareTransportEvidence, checks=(check(SHARES, ONES),), hidden_fill=None, **changes)


# ------------------------------------------------------------------------------------------------------------- what is charged


def test_the_worst_of_all_secrets_and_laws_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """e^lambda of what is left at epsilon - 2 lambda, and eta (1 + e^epsilon)."""
    shift, checks = granularity(SCALE) / 2, (check(SUMS, LAW, OTHER), check(SHARES, ONES))
    each = [members_delta(one.laws, N, one.secrets, SCALE, shift, 0.8 - 0.1) for one in checks]
    assert each[0] != each[1]
    assert transport_delta((LAW, OTHER), N, SUMS, SCALE, shift, 0.7) not in each
    monkeypatch.setattr(proof, "grid_charge", lambda columns: (0.05 * columns, 1e-3 * columns))
    charge = 1e-3 * (1 + math.exp(0.8))
    for both in (checks, checks[::-1]):
        wanted = math.exp(0.05) * max(each) + charge
        assert wanted <= evidence(checks=both).delta(0.8) <= wanted * (1 + 1e-6)
        assert transport(checks=both).delta(0.8) == pytest.approx(math.exp(0.05) + charge, rel=1e-6)
    wanted = math.exp(0.05) * transport_delta((LAW, OTHER), N, SUMS, SCALE, shift, 0.7) + charge
    assert wanted <= transport(checks=checks[:1]).delta(0.8) <= wanted * (1 + 1e-6)
    for epsilon in (0.1, 0.05, 0.0):
        assert evidence().delta(epsilon) == 1.0
    assert evidence().delta(0.1001) < 1.0
    assert evidence(unit="0").delta(5.0) == evidence(unit="0/3").delta(5.0) == 1.0


def test_steps_lead_on_where_no_value_is_lacking_between_two() -> None:
    ranges = SecretRange(kind="sum", low=3, high=7, apart=1)
    for size in range(6):
        for lacking in itertools.combinations(range(3, 8), size):
            there = [value for value in range(3, 8) if value not in lacking]
            wanted = there == list(range(there[0], there[-1] + 1)) if there else True
            assert proof._in_a_row(ranges, lacking) is wanted
    even = RecordedLaw(s=(0, 2), q=(0, 1), counts=(1, 1))
    ends = RecordedLaw(s=(0, 1), q=(0, 1), counts=(1, 1))  # of six rows none adds up to 7 or 8
    for laws, leads in (((LAW,), True), ((ends, LAW), True), ((LAW, even), False), ((even, LAW), False)):
        assert evidence(checks=(check(SUMS, *laws),)).leads_on() is leads
    for checks in ((check(), check(SUMS, even)), (check(SUMS, even), check())):
        assert not evidence(checks=checks).leads_on()


# ------------------------------------------------------------------------------------------------------------ what is covered


def test_an_average_is_covered_with_its_own_noise() -> None:
    made = evidence()
    assert made.step == recorded_step(SCALE)
    assert made.own_noise == SCALE * 0.75 / N
    assert made.covers("q", "gaussian", made.own_noise)
    for column, kind, scale in (("s", "gaussian", made.own_noise), ("q", "laplace", made.own_noise), ("q", "gaussian", SCALE)):
        assert not made.covers(column, kind, scale)
    assert not evidence(**COUNT).covers("q", "gaussian", evidence(**COUNT).own_noise)
    assert (made.spacing_of("q"), made.spacing_of("s"), evidence(**COUNT).spacing_of("q")) == (0.75, None, None)
    cases = ((("q",), N, True, False), ((), N, False, True), (("q",), 7, False, False), ((), 7, False, False))
    for columns, n, average, count in cases:
        assert made.suits(columns, n, clipped=True) is average
        assert evidence(**COUNT).suits(columns, n, clipped=True) is count


@pytest.mark.parametrize("change", [{}, {"n": 7}, {"event": "s"}, {"histogram": True}, {"noise": "gaussian"}, {"scale": 2.0}])
def test_a_count_is_covered_with_its_own_kernel(change: dict[str, Any]) -> None:
    told: dict[str, Any] = {
        "n": N, "width": 1, "steps": (0, 1), "histogram": False, "reads": frozenset({"x"}), "identity": "i", "event": "q",
        "noise": "kernel", "scale": SCALE,
    }  # fmt: skip
    assert evidence(**COUNT).covers_tally(Counted(**(told | change))) is not bool(change)
    assert not evidence().covers_tally(Counted(**told))


# ------------------------------------------------------------------------------------------------------- what is read and drawn


def column(name: str = "q") -> ColumnPlan:
    return ColumnPlan(
        column=name, noise=Noise(kind="gaussian", scale=1.0), error=ExpectedError(rmse=1.0, mean_absolute=0.8, alpha95=2.0)
    )


def test_sums_are_drawn_in_spacings(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the nearest step, the upper one of two that are as near; a sum that is off its spacing by its last digits is on it."""
    seen: list[tuple[Fraction, float]] = []
    step = Fraction(recorded_step(SCALE))

    def noted(off: Fraction) -> Any:
        def drawn(value: Fraction, scale: float) -> Fraction:
            seen.append((value, scale))
            return value + off * step

        return drawn

    half = Fraction(1, 2)
    for off, wanted in ((Fraction(0), 0), (half, 1), (Fraction(49, 100), 0), (-half, 0), (Fraction(-51, 100), -1)):
        monkeypatch.setattr(proof, "add_gaussian", noted(off))
        near = Fraction(21 * 3, 4) / N + Fraction(1, 10**9)
        (found,) = evidence().drawn([column()], [near], Told())
        assert found == (21 + wanted * step) * Fraction(3, 4) / N
        assert seen.pop() == (Fraction(21), SCALE)
        assert evidence(**COUNT).kernel_draw(4, 9, SCALE) == round(4 + wanted * step)
        assert seen.pop() == (Fraction(4), SCALE)
    for wrong in ([], [column(), column()], [column("s")]):
        with pytest.raises(CertificateError):
            evidence().drawn(wrong, [Fraction(1)] * len(wrong), Told())
    with pytest.raises(CertificateError):
        evidence(**COUNT).drawn([column()], [Fraction(1)], Told())
    for made, scale in ((evidence(), SCALE), (evidence(**COUNT), 2.0)):
        with pytest.raises(CertificateError):
            made.kernel_draw(4, 9, scale)


@pytest.mark.parametrize("secret", [4, 5, 8])
def test_a_noisy_sum_is_moved_by_the_kernel_of_the_secret(secret: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made, step = transport(), Fraction(recorded_step(SCALE))
    kernel = recorded_kernel(LAW, N, SUMS, SCALE, shift_of(SCALE))
    for number in (kernel.first - 3, kernel.first + 5, 10**6):
        monkeypatch.setattr(transport_proof, "rounded_draw", lambda total, scale, number=number: (number + total - 30) * step)

        def noted(source: Any, target: Any, place: int, number: int = number) -> int:
            assert source == kernel.masses[kernel.place(secret)].tolist()
            assert target == kernel.masses[kernel.reference].tolist()
            assert place == kernel.cell(number)
            return 11

        monkeypatch.setattr(transport_proof, "coupled_draw", noted)
        assert made.moved_to(30, secret) == (kernel.first + 11) * step
        # A mean of the column in its own unit, n times it in spacings.
        average = Fraction(secret) * Fraction(5, 2) / N + Fraction(1, 10**9)
        assert made.answer(30, Told(read={"s": average})) == (kernel.first + 11) * step


def test_a_secret_beyond_either_end_is_not_answered() -> None:
    for secret in (3, 9, 0, -1):
        with pytest.raises(DataError, match="outside of the range"):
            transport().moved_to(30, secret)
        with pytest.raises(DataError, match="outside of the range"):
            transport().answer(30, Told(read={"s": Fraction(secret) * Fraction(5, 2) / N}))
    for inside in ((1,), (5,), (3, 2)):
        with pytest.raises(DataError, match="outside of the range"):
            by_share().answer(30, Told(inside=inside))
    with pytest.raises(CertificateError, match="must read"):
        transport().answer(30, Told(read={"x": Fraction(1)}))


def test_what_is_read_of_the_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    (read,) = transport().statistics_read()
    assert (read.coefficients, read.centre, read.fill) == ({"s": 1.0}, 0.0, {"s": 5.0})
    (bare,) = transport(hidden_fill=None).statistics_read()
    assert bare.fill == {}
    assert not transport().by_count
    assert by_share().by_count
    assert by_share().statistics_read() == ()
    assert [transport().spacing_of(name) for name in ("s", "q", "x")] == [2.5, 0.75, None]
    assert [by_share().spacing_of(name) for name in ("s", "q", "x")] == [None, 0.75, None]
    seen: list[tuple[int, int]] = []

    def moved(self: Any, total: int, secret: int) -> Fraction:
        seen.append((total, secret))
        return Fraction(7, 2)

    monkeypatch.setattr(RecordedShareTransportEvidence, "moved_to", moved)
    assert by_share().answer(30, Told(inside=(2, 1))) == Fraction(7, 2)
    assert by_share(event=True).kernel_draw(30, 4, SCALE) == 4
    assert seen == [(30, 3), (30, 4)]
    wrong = ((by_share(), SCALE), (by_share(event=True), 2.0), (transport(event=True), SCALE))
    for made, scale in wrong:
        with pytest.raises(CertificateError):
            made.kernel_draw(30, 4, scale)
