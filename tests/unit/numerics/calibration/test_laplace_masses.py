"""Laws that miss a sum of 1 by what decimal fractions have are brought to it, in each of the ways that rows are looked at."""

from __future__ import annotations

from fractions import Fraction

import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.calibration import laplace as module
from attrpriv.numerics.laws.records import RecordLaws

OFF = 1 + 4e-10


def law(*probabilities: float) -> tuple[tuple[float, float], ...]:
    return tuple((p * OFF, p * OFF) for p in probabilities)


def test_a_law_of_numbers_is_brought_to_one() -> None:
    filled = module._filled(law(0.25, 0.5, 0.25), (0, 1, 2), Fraction(0))
    assert filled == pytest.approx([0.25, 0.5, 0.25], rel=1e-14)


def test_cells_are_added_up_by_their_ratio_each_law_brought_to_one() -> None:
    top, bottom = law(0.5, 0.2, 0.3), tuple((p, p) for p in (0.25, 0.55, 0.2))
    found = list(module._set_masses(top, bottom, True, +1))
    assert [p for p, _ in found] == pytest.approx([0.5, 0.8, 1.0], rel=1e-14)
    assert [q for _, q in found] == pytest.approx([0.25, 0.45, 1.0], rel=1e-14)
    swapped = list(module._set_masses(bottom, top, True, +1))
    assert [p for p, _ in swapped] == pytest.approx([0.55, 0.75, 1.0], rel=1e-14)
    assert [q for _, q in swapped] == pytest.approx([0.2, 0.5, 1.0], rel=1e-14)


def test_cells_that_only_one_law_has_come_first_or_last() -> None:
    """Those that only the first has are worst, those that neither or only the second has add nothing."""
    top, bottom = (tuple((p, p) for p in law) for law in ((0.0, 0.5, 0.0, 0.5), (0.5, 0.0, 0.0, 0.5)))
    assert list(module._set_masses(top, bottom, True, +1))[:2] == [(0.5, 0.0), (1.0, 0.5)]


def test_as_many_values_as_can_be_handled(monkeypatch: pytest.MonkeyPatch) -> None:
    records = RecordLaws((0, 1, 4), tuple((p, p) for p in (0.2, 0.3, 0.5)), tuple((p, p) for p in (0.5, 0.3, 0.2)))
    monkeypatch.setattr(module, "_MOST_VALUES", 3)
    assert module._upper_terms(records).distance.shape == (6, 3)
    monkeypatch.setattr(module, "_MOST_VALUES", 2)
    with pytest.raises(UsageError):
        module._upper_terms(records)


@pytest.mark.parametrize("side", [0, 1])
def test_fractions_on_one_side_are_compared_as_fractions(side: int) -> None:
    """Two numbers that are one float are not taken for the same."""
    tiny = Fraction(1, 2**80)
    fractions = tuple((p, p) for p in (Fraction(1, 2) + tiny, Fraction(1, 2) - tiny))
    floats = ((0.5, 0.5), (0.5, 0.5))
    top, bottom = (fractions, floats) if side == 0 else (floats, fractions)
    found = list(module._set_masses(top, bottom, True, +1))
    assert found == list(module._fraction_sets([Fraction(low) for low, _ in top], [Fraction(low) for low, _ in bottom]))
    assert found[0][1] < found[0][0]
