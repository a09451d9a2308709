"""Which counts are looked at, and with which chances."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom

from attrpriv.errors import UsageError
from attrpriv.numerics.laws.count_cases import CountPrior


def test_a_share_is_binomial_within_the_range() -> None:
    counts, chances = CountPrior(12, 3, 7, share=0.3).nodes(100)
    wanted = np.array(binom.pmf(range(3, 8), 12, 0.3))
    assert counts.tolist() == [3, 4, 5, 6, 7]
    assert chances == pytest.approx(wanted / wanted.sum())


def test_a_population_is_a_mixture_of_shares() -> None:
    counts, chances = CountPrior(6, 0, 6, shares=(0.2, 0.5)).nodes(100)
    wanted = [quad(lambda x, a=a: binom.pmf(a, 6, x), 0.2, 0.5)[0] / 0.3 for a in range(7)]
    assert counts.tolist() == list(range(7))
    assert chances == pytest.approx(wanted)


@pytest.mark.parametrize("prior", [CountPrior(10_000, 0, 10_000, share=0.3), CountPrior(10_000, 0, 10_000, shares=(0.2, 0.5))])
def test_few_nodes_average_as_all_counts_do(prior: CountPrior) -> None:
    """A smooth function, here a distance that changes over a standard deviation or two."""

    def average(most: int) -> float:
        counts, chances = prior.nodes(most)
        return float(chances @ np.sqrt(50.0**2 + (counts - 3_030.0) ** 2))

    assert average(65) == pytest.approx(average(20_000), rel=0.01)


def test_flat_and_far_away() -> None:
    counts, chances = CountPrior(9, 2, 5).nodes(10)
    assert counts.tolist() == [2, 3, 4, 5]
    assert chances.tolist() == [0.25] * 4
    counts, chances = CountPrior(10_000, 9_000, 10_000, share=0.1).nodes(50)  # the range is far out in the prior's tail
    assert counts[0] == 9_000
    assert chances[0] == max(chances) > 0.5
    assert np.isfinite(chances).all()


def test_what_is_no_prior() -> None:
    with pytest.raises(UsageError, match=r"^prior: "):
        CountPrior(5, 3, 2)
    with pytest.raises(UsageError, match=r"^prior: "):
        CountPrior(5, 0, 5, shares=(0.5, 0.4))
    for low, high, shares in (
        (0, 6, (0.2, 0.4)),
        (-1, 5, (0.2, 0.4)),
        (0, 5, (-0.1, 0.4)),
        (0, 5, (0.2, 1.1)),
        (0, 5, (0.2, 1.5)),
    ):
        with pytest.raises(UsageError, match=r"^prior: "):
            CountPrior(5, low, high, shares=shares)
    with pytest.raises(UsageError, match=r"^prior: "):
        CountPrior(5, 0, 5, share=1.5)


def test_what_is_just_a_prior() -> None:
    assert CountPrior(5, 0, 5, shares=(0.0, 1.0)).stated
    assert CountPrior(5, 5, 5, share=0.0).stated
    assert CountPrior(5, 0, 0, share=1.0).stated
    assert not CountPrior(0, 0, 0).stated
