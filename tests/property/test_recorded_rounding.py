"""The floats of the inversion against 50 digits: how far each coefficient is off is within what is charged for it.

The same sums over t are formed with the exact weights of the tilt. Frequencies at which |phi|^n is below e^-90 are left out of
the twin; they add less than that.
"""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest

from attrpriv.numerics.laws import recorded_frequencies, recorded_inversion
from attrpriv.numerics.laws.recorded_frequencies import SumInversion
from attrpriv.numerics.laws.recorded_inversion import _Powers, _Side
from attrpriv.numerics.laws.recorded_rows import RecordedRows, Tilt

ROWS = {
    "small": ([0, 0, 1, 2, 3, 3], [0, 1, 1, 0, 5, 2], [7, 2, 9, 4, 3, 1]),
    "heavy": ([0, 1, 1, 2, 2], [0, 3, 99_999, 7, 40], [500, 300, 3, 150, 47]),
    "parity": ([0, 1, 2, 3], [0, 1, 0, 1], [3, 5, 7, 2]),
    "far": ([0, 5, 9], [1_000_000, 1_000_003, 999_990], [2, 3, 4]),
}
SIZES = [60, 5_000, 1_000_000]


def inversion(name: str, n: int, lean: float) -> SumInversion:
    rows = RecordedRows.of(*ROWS[name])
    mean = float(rows.counts @ rows.s) / rows.total
    spread = math.sqrt(float(rows.counts @ (rows.s - mean) ** 2) / rows.total)
    middle = round(n * mean + lean * spread * math.sqrt(n))
    return SumInversion.of(Tilt.at(rows, middle / n), n, np.array([middle - 3, middle, middle + 2]))


def frequencies(one: SumInversion) -> Any:
    """At the peak, on its slope, where |phi|^n has nearly gone, and where it may have come back."""
    return np.array([0.0, 0.3, 2.0, 6.0]) / math.sqrt(one.n * max(one.tilt.spread[1], 1e-9))


def exact_joint(one: SumInversion, u: float) -> list[complex]:
    rows, n, turn = one.tilt.rows, one.n, one.turn
    s, q = rows.s.tolist(), rows.q.tolist()
    weights = [mpmath.mpf(c) * mpmath.exp(mpmath.mpf(one.tilt.theta) * a) for c, a in zip(rows.counts.tolist(), s, strict=True)]
    total, (centre_s, centre_q) = mpmath.fsum(weights), map(mpmath.mpf, one.tilt.centre)
    angles = 2 * np.pi / turn * np.arange(turn)
    near = np.exp(1j * (np.outer(angles, rows.s) + u * (rows.q - one.tilt.centre[1]))) @ np.array(
        [float(w / total) for w in weights]
    )
    with np.errstate(divide="ignore"):
        kept = np.flatnonzero(n * np.log(np.abs(near)) > -90)
    found = [mpmath.mpc(0)] * len(one.sums)
    for k in kept.tolist():
        t = 2 * mpmath.pi * k / turn
        phi = mpmath.fsum(
            w * mpmath.expj(t * (a - centre_s) + mpmath.mpf(u) * (b - centre_q)) for w, a, b in zip(weights, s, q, strict=True)
        )
        power = (phi / total) ** n
        for place, total_s in enumerate(one.sums.tolist()):
            found[place] += power * mpmath.expj(-t * (total_s - n * centre_s)) / turn
    return [complex(x) for x in found]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", ROWS)
def test_a_sum_behind_a_sum(name: str, n: int) -> None:
    for lean in (0.0, -2.5) if n < 10_000 else (1.5,):
        one = inversion(name, n, lean)
        u = frequencies(one) if n < 10_000 else frequencies(one)[:3]
        joint = one.joint(u)
        with mpmath.workdps(50):
            for column, at in enumerate(u.tolist()):
                exact = exact_joint(one, at)
                off = np.abs(joint.values[:, column] - np.array(exact))
                assert (off <= joint.errors[:, column] - one.aliased).all()


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", ROWS)
def test_powers_of_a_share(name: str, n: int) -> None:
    sides = [_Side.of(RecordedRows.of([0] * len(q), q, counts)) for _, q, counts in (ROWS[name], ROWS["small"])]
    many = np.array([[n - 7, 7], [n // 2, n - n // 2]])
    spread = math.sqrt(n * max(side.tilt.spread[1] for side in sides))
    u = np.array([0.0, 0.3, 2.0, 6.0]) / spread
    values, errors = _Powers(tuple(sides), many).at(u)
    with mpmath.workdps(50):
        for column, at in enumerate(u.tolist()):
            psi = []
            for side in sides:
                rows = side.tilt.rows
                terms = [
                    c * mpmath.expj(mpmath.mpf(at) * (b - mpmath.mpf(side.tilt.centre[1])))
                    for c, b in zip(rows.counts.tolist(), rows.q.tolist(), strict=True)
                ]
                psi.append(mpmath.fsum(terms) / rows.total)
            for line, (first, second) in enumerate(many.tolist()):
                exact = complex(psi[0] ** first * psi[1] ** second)
                assert abs(values[line, column] - exact) <= errors[line, column]


def every_sum() -> None:
    for name in ("small", "heavy", "parity"):
        test_a_sum_behind_a_sum(name, 1_000_000)


def every_share() -> None:
    for name in ("small", "heavy", "parity"):
        test_powers_of_a_share(name, 1_000_000)


@pytest.mark.parametrize(
    ("check", "careless"),
    [(every_sum, lambda x: np.exp(1j * x) - 1), (every_share, lambda x: (np.exp(1j * x).astype(np.complex64) - 1) + 0j)],
    ids=["e^(ix) - 1 as it is written", "half of the digits"],
)
def test_digits_that_are_lost_are_seen(check: Any, careless: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted mistake: near the peak a term is off by units of 1 and not of x."""
    check()
    for module in (recorded_frequencies, recorded_inversion):
        monkeypatch.setattr(module, "less_one", lambda x: np.asarray(careless(x), dtype=np.complex128))
    with pytest.raises(AssertionError):
        check()
