"""Long chains, whose past is bounded once it has settled, against the recursion with 40 digits and every entry by itself."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import pytest

from attrpriv.numerics.calibration.chain_curve import chain_epsilon
from attrpriv.numerics.divergences import chain_ratio
from attrpriv.numerics.divergences.chain_ratio import ChainRatio
from attrpriv.numerics.laws.markov import MarkovChain
from tests.property.chain_twin import exact_ratio

CHAINS: dict[str, tuple[tuple[float, ...], tuple[tuple[float, ...], ...]]] = {
    "even": ((0.5, 0.5), ((0.9, 0.1), (0.1, 0.9))),
    "known start": ((1.0, 0.0), ((0.875, 0.125), (0.375, 0.625))),
    "slow": ((0.0, 1.0), ((0.96875, 0.03125), (0.0625, 0.9375))),
    "turns over": ((0.25, 0.75), ((0.125, 0.875), (0.75, 0.25))),
    "three": ((0.125, 0.75, 0.125), ((0.5, 0.25, 0.25), (0.125, 0.75, 0.125), (0.25, 0.5, 0.25))),
    "three, a zero": ((1.0, 0.0, 0.0), ((0.5, 0.5, 0.0), (0.25, 0.5, 0.25), (0.0, 0.5, 0.5))),
    "goes round": ((0.75, 0.25), ((0.0, 1.0), (1.0, 0.0))),
}


def truth(name: str, length: int, b: float) -> float:
    """epsilon by the twin, in 40 digits: of these chains floats are the numbers themselves."""
    initial, rows = CHAINS[name]
    with mpmath.workdps(40):
        digits = [[mpmath.mpf(p) for p in row] for row in (initial, *rows)]
        cost = mpmath.exp(mpmath.mpf(b))
        return float(mpmath.log(exact_ratio(digits[0], digits[1:], length, lambda x, y: cost)))


@pytest.mark.parametrize("b", [0.1, 1.5])
@pytest.mark.parametrize("name", CHAINS)
def test_a_settled_past_is_never_below_and_hardly_above(name: str, b: float) -> None:
    length, chain = 300, MarkovChain(*CHAINS[name])
    exact = truth(name, length, b)
    assert exact * (1 - 1e-14) <= chain_epsilon([chain], length, b) <= exact * (1 + 1e-6)
    assert len(ChainRatio(chain, length)._earlier) < length - 1  # the past of the last entries is bounded, not computed


def settled_at(node: int, *, charged: bool) -> Any:
    """Nodes from this one on count as settled, although they have not; their drift is charged, or it is not."""

    def settle(self: Any, step: Any) -> None:
        self.own, self.lag = node, 1
        self.drift = self._drift(step) if charged else 0.0

    return settle


@pytest.mark.parametrize("node", [2, 4, 9])
@pytest.mark.parametrize("name", ["known start", "slow", "turns over", "three"])
def test_a_past_that_is_taken_for_settled_is_paid_by_its_drift(name: str, node: int, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = truth(name, 40, 0.5)
    monkeypatch.setattr(chain_ratio._Laws, "_settle", settled_at(node, charged=True))
    assert chain_epsilon([MarkovChain(*CHAINS[name])], 40, 0.5) >= exact * (1 - 1e-14)


def test_a_drift_that_is_not_paid_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted mistake: the law of an early node stands for all later ones, at no charge."""
    monkeypatch.setattr(chain_ratio._Laws, "_settle", settled_at(2, charged=False))
    below = [chain_epsilon([MarkovChain(*CHAINS[name])], 40, 0.5) - truth(name, 40, 0.5) for name in ("known start", "slow")]
    assert min(below) < -1e-3


@pytest.mark.parametrize("seed", range(6))
def test_laws_that_are_near_give_reversed_matrices_that_are(seed: int) -> None:
    """The step that the charge rests on: weights off by up to e^d move each ratio of means by e^(2 d) at most."""
    import numpy as np

    rng = np.random.default_rng(seed)
    law, row = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4), size=4)
    off = rng.uniform(0, 0.3, 4)
    moved, d = law * np.exp(off), float(off.max() - off.min())
    f = np.exp(rng.normal(size=4))
    ratios = []
    for pi in (law, moved):
        kernel = (pi[:, None] * row) / (pi[:, None] * row).sum(axis=0)
        means = f @ kernel
        ratios.append(means[:, None] / means)
    assert float(np.abs(np.log(ratios[0] / ratios[1])).max()) <= 2 * d + 1e-12
    assert math.isfinite(d)
