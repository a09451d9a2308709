"""Released values, end to end and each on a fresh ledger, have the law that their plan certifies.

The test of a law: the sum of squares of (value - truth) / scale against its chi-square law, and the values against the normal
law (Kolmogorov-Smirnov), each at 4e-7. A right law is rejected with probability below 1e-6; what a wrong one must be like to be
rejected for sure is computed below, from the chi-square part alone, and is a test of its own.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import attrpriv as ap
from tests.end_to_end.material import policy, students

LEVEL = 4e-7
FEW, MANY = 200, 5_000
ROWS = 400

steps_module = importlib.import_module("attrpriv.session.split")
exact_module = importlib.import_module("attrpriv.noise.exact")


def rejected(draws: NDArray[np.float64]) -> bool:
    """Whether these are surely not independent standard normals."""
    n, squares = len(draws), float(draws @ draws)
    spread = 2 * min(stats.chi2.cdf(squares, n), stats.chi2.sf(squares, n))
    shape = stats.kstest(draws, "norm").pvalue
    return bool(min(spread, shape) < LEVEL)


def power(draws: int, factor: float) -> float:
    """The probability, from below, that noise of `factor` times its scale is rejected after so many draws."""
    return float(stats.chi2.cdf(stats.chi2.ppf(LEVEL / 2, draws) / factor**2, draws))


def less_noise(patch: pytest.MonkeyPatch, factor: float) -> None:
    """Plant a sampler whose noise is `factor` times what it was asked for."""
    real: Callable[[float], Any] = exact_module._gaussian
    patch.setattr(exact_module, "_gaussian", lambda steps: real(steps * factor))


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], NDArray[np.float64]]:
    """A function that makes so many releases and returns their errors in units of the certified scale."""
    table = students(ROWS)
    connection = ibis.duckdb.connect()
    connection.con.register("given", table)
    connection.raw_sql("CREATE TABLE people AS FROM given")
    truth = Fraction(sum(table.column("weight").to_pylist()), ROWS)
    chosen = ap.Policy(**policy("data", rows=ROWS))
    # A plan is a function of public facts: it is made once, and everything after it anew for each release.
    plan = ap.Session(connection.table("people"), chosen).plan()
    monkeypatch.setattr(steps_module, "plan_problem", lambda problem, mechanism, by: plan)
    scale = plan.noise.scale

    def many(number: int) -> NDArray[np.float64]:
        errors = []
        for k in range(number):
            ledger = tmp_path / f"{k}.ledger"
            with ap.Session(connection.table("people"), chosen, ledger=ledger) as session:
                errors.append(float((Fraction(session.release().value) - truth) / Fraction(scale)))
            ledger.unlink()
        return np.array(errors)

    return many


def test_released_values_have_the_certified_law(release: Callable[[int], NDArray[np.float64]]) -> None:
    draws = release(FEW)
    assert len(set(draws)) == FEW
    assert not rejected(draws)


def test_half_the_noise_is_rejected(release: Callable[[int], NDArray[np.float64]], monkeypatch: pytest.MonkeyPatch) -> None:
    less_noise(monkeypatch, 0.5)
    assert rejected(release(80))


@pytest.mark.slow
def test_many_released_values_have_the_certified_law(release: Callable[[int], NDArray[np.float64]]) -> None:
    assert not rejected(release(MANY))


@pytest.mark.slow
def test_a_tenth_less_noise_is_rejected(release: Callable[[int], NDArray[np.float64]], monkeypatch: pytest.MonkeyPatch) -> None:
    less_noise(monkeypatch, 0.9)
    assert rejected(release(MANY))


def test_what_the_test_can_see() -> None:
    """1,000 releases tell 10% less noise from the right law only in 3 of 10 runs at this level; hence 5,000."""
    assert power(80, 0.5) > 0.999
    assert power(FEW, 0.6) > 0.999
    assert 0.2 < power(1_000, 0.9) < 0.4
    assert power(1_000, 0.8) > 0.999
    assert power(MANY, 0.9) > 1 - 1e-6


@pytest.mark.parametrize(
    ("name", "law"),
    [
        ("shifted", lambda z: z + 0.5),
        ("wider", lambda z: z * 1.1),
        ("narrower", lambda z: z * 0.9),
        ("Laplace of the same variance", lambda z: stats.laplace.ppf(stats.norm.cdf(z)) / np.sqrt(2)),
        ("uniform of the same variance", lambda z: np.sqrt(12) * (stats.norm.cdf(z) - 0.5)),
        ("always the same", lambda z: np.zeros_like(z)),
    ],
)
def test_the_test_rejects_other_laws(name: str, law: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> None:
    draws = np.random.default_rng(3).normal(size=MANY)
    assert not rejected(draws)
    assert rejected(law(draws)), name
