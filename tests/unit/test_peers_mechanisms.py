"""Chen and Ohrimenko's mechanisms as rerun: the noise is the least that their condition allows, on laws that are made up."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from bench.peers.chen_mechanisms import DELTA, daum, directional_variance, expm, least_sd
from bench.peers.chen_ohrimenko import _delta, _error, _ratio
from bench.peers.five_statistics import Array, Setting, Tables
from bench.peers.property_inference import _leaked
from bench.peers.results import measured

MEANS = np.array([[40.0, 10.0, 30.0, 33.0, 41.0], [41.0, 10.3, 27.0, 31.0, 42.0]])
ROOTS = np.random.default_rng(3).normal(size=(5, 5))


@dataclass(frozen=True, eq=False)
class MadeUp(Setting):
    spread: float = 1.0

    @property
    def has(self) -> NDArray[np.bool_]:
        return np.asarray(np.arange(600) % 3 == 0)

    def moments(self, count: int) -> tuple[Array, Array]:
        return MEANS[int(count > 20)], self.spread * (ROOTS @ ROOTS.T + np.eye(5))


@dataclass(frozen=True, eq=False)
class Fixed(Tables):
    @property
    def statistics(self) -> Array:
        return np.zeros((len(self.rows), 5))


def setting(spread: float = 1.0) -> MadeUp:
    return MadeUp("made_up", "column", "yes", (0.2, 0.3), 0.5, 100, spread)


def tables(number: int) -> Fixed:
    return Fixed(setting(), 20, np.zeros((number, 1), np.int64))


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("spread", [0.01, 1.0])
def test_directional_noise_is_the_least_that_the_condition_allows(epsilon: float, spread: float) -> None:
    made = setting(spread)
    sd, along = least_sd(made, epsilon)
    variance, same = directional_variance(made, epsilon)
    assert np.allclose(same, along)
    line = np.outer(along, along)

    def least(s: float) -> float:
        return float(np.linalg.eigvalsh(made.moments(20)[1] + (s - sd**2) * line)[0])

    assert variance > 0
    assert least(variance * (1 + 1e-6)) >= 0 > least(variance * (1 - 1e-3)), "and the mutant, a thousandth less, does not hold"


def test_where_the_data_hide_enough_nothing_is_added() -> None:
    assert directional_variance(setting(1e6), 5.0)[0] == 0


def test_noise_is_as_large_as_planned_and_only_along_the_direction() -> None:
    """Sums of 20,000 squares of normal noise: six standard errors, missed less than once in 10^8."""
    rng, number = np.random.default_rng(1), 20_000
    made = setting()
    sd, along = least_sd(made, 1.0)
    assert sd == pytest.approx(float(np.linalg.norm(MEANS[0] - MEANS[1])) * math.sqrt(2 * math.log(1.25 / DELTA)))
    everywhere = expm(made, 1.0)(tables(number), rng)
    assert everywhere.var() == pytest.approx(sd**2, rel=6 * math.sqrt(2 / (5 * number)))
    directed = daum(made, 1.0)(tables(number), rng)
    assert np.allclose(directed, np.outer(directed @ along, along))
    assert (directed @ along).var() == pytest.approx(directional_variance(made, 1.0)[0], rel=6 * math.sqrt(2 / number))


def test_with_one_covariance_theirs_keep_what_they_promise() -> None:
    """400,000 draws of a loss whose delta is at most .001: the standard error is below 5e-5."""
    for name in ("ExpM", "DauM"):
        for epsilon in (0.2, 1.0):
            assert float(_delta(setting(), name, epsilon, np.random.default_rng(5)).value or 0.0) <= DELTA + 3e-4


def test_an_error_and_a_ratio_of_errors() -> None:
    rng = np.random.default_rng(2)
    found = _error([rng.normal(size=(5_000, 5))], [tables(5_000)])
    assert isinstance(found.value, float)
    assert found.value == pytest.approx(2.128, abs=0.06)  # the mean of a chi law with five degrees; sd .68, six standard errors
    ratio = _ratio(measured(4.0, 3.8, 4.2), measured(2.0, 1.9, 2.1))
    assert ratio.value == 2.0
    assert ratio.low is not None
    assert ratio.high is not None
    assert ratio.low * ratio.high == pytest.approx(4.0)


def test_tables_have_exactly_so_many_rows_and_attacks_are_tried_on_other_records() -> None:
    made, rng = setting(), np.random.default_rng(4)
    learned, tried = (made.tables(30, 50, part, rng) for part in made.parts)
    for drawn in (learned, tried):
        assert (made.has[drawn.rows].sum(axis=1) == 30).all()
        assert all(len(set(rows)) == made.rows for rows in drawn.rows.tolist()), "without replacement"
    assert not set(learned.rows.ravel().tolist()) & set(tried.rows.ravel().tolist())


def test_who_may_always_be_right_has_seen_more_rows_than_a_number_says() -> None:
    assert _leaked(measured(0.5, 0.4, 0.6)).value == 0
    found = _leaked(measured(0.9, 0.8, 0.95))
    assert found.low is not None
    assert found.high is not None
    assert 0 < found.low < float(found.value or 0.0) < found.high
    assert _leaked(measured(1.0, 0.98, 1.0)).value == "over 14"
