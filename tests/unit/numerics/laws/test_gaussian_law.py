"""A law that exists is a law."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.laws.gaussian import GaussianLaw, GaussianMixture
from attrpriv.numerics.laws.lattice_law import LatticeLaw


@pytest.mark.parametrize(
    ("mean", "variance"),
    [(math.nan, 1.0), (math.inf, 1.0), (0.0, 0.0), (0.0, -1.0), (0.0, math.nan), (0.0, math.inf)],
)
def test_needs_a_finite_mean_and_a_positive_variance(mean: float, variance: float) -> None:
    with pytest.raises(UsageError, match="law: needs a finite mean and a positive variance"):
        GaussianLaw(mean, variance)


def test_any_positive_variance_will_do() -> None:
    assert GaussianLaw(-1.0, 1e-300).variance == 1e-300
    assert GaussianLaw(-1.0, 1e300).mean == -1.0


def test_is_frozen() -> None:
    law = GaussianLaw(1.0, 2.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        law.mean = 3.0  # type: ignore[misc]
    assert law == GaussianLaw(1.0, 2.0)


# ------------------------------------------------------------------------------------------- whole numbers after normal noise

MIXTURE: dict[str, Any] = {"weights": [0.25, 0.0, 0.75], "means": [-1.0, 2.0, 2.5], "variance": 4.0, "lost": 0.125}


def test_a_mixture_keeps_what_it_is_given_and_cannot_be_written_to() -> None:
    given = np.array([0.25, 0.0, 0.75])
    found = GaussianMixture(**MIXTURE | {"weights": given})
    assert (found.weights.tolist(), found.means.tolist()) == ([0.25, 0.0, 0.75], [-1.0, 2.0, 2.5])
    assert (found.variance, found.lost) == (4.0, 0.125)
    given[0] = 1.0
    assert found.weights[0] == 0.25
    for array in (found.weights, found.means):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"weights": []}, "weights"), ({"means": []}, "means"), ({"weights": [[0.25, 0.0, 0.75]]}, "weights"),
        ({"means": [[-1.0, 2.0, 2.5]]}, "means"), ({"weights": [0.25, 0.0, math.nan]}, "weights"),
        ({"weights": 0.25}, "weights"),
        ({"means": [-1.0, 2.0, math.inf]}, "means"), ({"weights": [0.25, 0.75]}, "mixture"), ({"means": [1.0, 2.0]}, "mixture"),
        ({"weights": [0.25, -1e-9, 0.75]}, "mixture"), ({"means": [-1.0, -1.0, 2.5]}, "mixture"),
        ({"means": [-1.0, 3.0, 2.5]}, "mixture"), ({"variance": 0.0}, "variance"), ({"variance": -1.0}, "variance"),
        ({"variance": math.inf}, "variance"), ({"variance": math.nan}, "variance"), ({"lost": -1e-9}, "lost"),
        ({"lost": math.inf}, "lost"), ({"lost": math.nan}, "lost"),
    ],
)  # fmt: skip
def test_what_is_no_mixture(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        GaussianMixture(**MIXTURE | changes)


def test_a_single_mean_and_little_variance_are_a_mixture() -> None:
    assert GaussianMixture(np.ones(1), np.zeros(1), 0.25, 0.0).lost == 0.0


def test_a_law_on_whole_numbers_after_noise() -> None:
    """Pointwise laws are off by a share of their masses, the others by what they have lost."""
    masses = np.array([0.5, 0.25, 0.25])
    found = GaussianMixture.of(LatticeLaw(-3, masses, math.inf, 0.03125), 2.0)
    assert (found.means.tolist(), found.weights.tolist()) == ([-3.0, -2.0, -1.0], masses.tolist())
    assert (found.variance, found.lost) == (2.0, 0.03125)
    near = LatticeLaw(4, masses, 1e-3, 0.0)
    assert GaussianMixture.of(near, 2.0).lost == near.distance == pytest.approx(1e-3)
