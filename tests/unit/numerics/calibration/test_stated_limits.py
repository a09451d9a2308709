"""Written laws at the edges: how much work is taken on, deltas that would be above 1, kernels for wide boxes."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from attrpriv.errors import RefusedError, UsageError
from attrpriv.numerics.calibration import stated_laws as module
from attrpriv.numerics.calibration.direct import Noise, noise_law
from attrpriv.numerics.calibration.kernel import WEIGHT_BITS
from attrpriv.numerics.calibration.secret_laws import BITS
from attrpriv.numerics.calibration.stated_laws import (
    least_stated_scale,
    secret_laws_of,
    stated_delta,
    stated_distance,
    stated_kernel,
    stated_kernel_loss,
    stated_loss,
    stated_transport,
)
from attrpriv.numerics.laws.stated import StatedLaws

THREE = StatedLaws(
    (2, 3, 5, 9),
    tuple(tuple((p, p) for p in law) for law in ((0.4, 0.3, 0.2, 0.1), (0.3, 0.3, 0.2, 0.2), (0.2, 0.3, 0.3, 0.2))),
    1,
)
ANY = StatedLaws((0, 1, 2), (((0.0, 1.0),) * 3, ((0.0, 1.0),) * 3), 1)
"""Nothing is known of either law."""


def test_a_loss_takes_pairs_of_laws_and_pairs_of_values(monkeypatch: pytest.MonkeyPatch) -> None:
    work = 3 * 3 * 4 + 4 * 4 * 3
    monkeypatch.setattr(module, "_MOST_WORK", work)
    assert 0 < stated_loss(THREE, 1.0) < 1
    monkeypatch.setattr(module, "_MOST_WORK", work - 1)
    with pytest.raises(UsageError):
        stated_loss(THREE, 1.0)


def test_a_distance_takes_pairs_of_laws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_WORK", 3 * 3 * 4)
    assert stated_distance(THREE) == 4
    monkeypatch.setattr(module, "_MOST_WORK", 3 * 3 * 4 - 1)
    with pytest.raises(UsageError):
        stated_distance(THREE)


def test_a_delta_takes_each_output_of_each_law(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = THREE.reach + len(noise_law("gaussian", 1.0).masses)
    monkeypatch.setattr(module, "_MOST_CELLS", outputs * 3 * (4 + 3))
    assert 0 < stated_delta(THREE, "gaussian", 1.0, 0.1) < 1
    monkeypatch.setattr(module, "_MOST_CELLS", outputs * 3 * (4 + 3) - 1)
    with pytest.raises(UsageError):
        stated_delta(THREE, "gaussian", 1.0, 0.1)


@pytest.mark.parametrize("noise", ["none", "laplace", "gaussian"])
def test_no_delta_is_above_one(noise: Noise) -> None:
    """Each output has its own worst law of a box, and the sum of them all is 3."""
    assert stated_delta(ANY, noise, 0.1, 0.5) == 1.0


def test_a_delta_of_noise_counts_what_its_window_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for single laws; for boxes once a value, since each output has its own worst law."""
    boxes = StatedLaws((0, 1, 4), (((0.4, 0.5), (0.3, 0.4), (0.1, 0.3)), ((0.3, 0.5), (0.3, 0.4), (0.2, 0.3))), 1)
    before = [stated_delta(laws, "gaussian", 1.5, 0.1) for laws in (THREE, boxes)]
    less = replace(noise_law("gaussian", 1.5), lost=0.125)
    monkeypatch.setattr(module, "noise_law", lambda *_: less)
    after = [stated_delta(laws, "gaussian", 1.5, 0.1) for laws in (THREE, boxes)]
    assert np.subtract(after, before) == pytest.approx([0.125, 3 * 0.125], abs=1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (2.0, 0.0), (0.5, 1e-3), (2.0, 1e-3)])
def test_no_scale_is_tried_beyond_one_that_does_for_any_laws(epsilon: float, delta: float) -> None:
    """Noise that would hide two values at both ends; where it fails, rounding is why, and a larger one would fail too."""
    laws = StatedLaws((0, 7), (((1.0, 1.0), (0.0, 0.0)), ((0.0, 0.0), (1.0, 1.0))), 1)
    most = 4 * 7 / min(1.0, epsilon) * (1 + math.log(2 / delta) if delta else 1.0)
    holds = module._holds(laws, "laplace", epsilon, delta)
    assert holds(most * (1 - 1e-9))
    with pytest.raises(UsageError):
        holds(most * (1 + 1e-9))
    exact = 7 / epsilon
    assert least_stated_scale(laws, "laplace", epsilon, delta) <= exact * (1 + 1e-6)
    assert delta or least_stated_scale(laws, "laplace", epsilon, delta) >= exact


def test_a_kernel_loss_reads_the_rows_of_the_values_alone() -> None:
    """Values with gaps, which do not begin at 0: rows between them, that no table has, may say anything."""
    parts = [[1 + (3 * f + o * o) % 7 for o in range(8)] for f in range(8)]
    rows = [[(part << WEIGHT_BITS) // sum(row) for part in row[:-1]] for row in parts]
    rows = [[*row, 2**WEIGHT_BITS - sum(row)] for row in rows]
    before = stated_kernel_loss(rows, THREE)
    chances = [[Fraction(weight, 2**WEIGHT_BITS) for weight in rows[step - 2]] for step in THREE.steps]
    laws = [[Fraction(low).limit_denominator(10) for low, _ in law] for law in THREE.laws]
    drawn = [[sum(p * row[o] for p, row in zip(law, chances, strict=True)) for o in range(8)] for law in laws]
    truth = max(math.log(drawn[a][o] / drawn[b][o]) for a, b in ((0, 1), (1, 0), (1, 2), (2, 1)) for o in range(8))
    assert truth <= before <= truth + 1e-12
    unread = next(step for step in range(2, 10) if step not in THREE.steps)
    rows[unread - 2] = [0] * 7 + [2**WEIGHT_BITS]
    assert stated_kernel_loss(rows, THREE) == before


def test_laws_on_all_whole_numbers_are_the_stated_ones_and_nothing_between() -> None:
    laws = secret_laws_of(THREE)
    assert laws.start == 2
    for row, law in zip(laws.masses, THREE.laws, strict=True):
        assert len(row) == 8
        told = {k: mass / 2**BITS for k, mass in enumerate(row) if mass}
        assert told == pytest.approx({step - 2: low for step, (low, _) in zip(THREE.steps, law, strict=True)})


def test_transport_moves_as_many_numbers_as_it_can_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_SLICES", 8 * 3)
    found, error = stated_transport(THREE, (0.2, 0.3, 0.5), 0.3)
    assert len(found.sources) == 3
    assert 0 < error.mean_absolute < 2
    monkeypatch.setattr(module, "_MOST_SLICES", 8 * 3 - 1)
    with pytest.raises(RefusedError):
        stated_transport(THREE, (0.2, 0.3, 0.5), 0.3)


@pytest.mark.parametrize("prior", [(0.5, 0.5), (0.5, 0.6, -0.1), (0.3, 0.3, 0.4 + 1e-8), (0.3, 0.3, math.nan)])
def test_a_prior_is_a_law_of_the_values_of_the_secret(prior: tuple[float, ...]) -> None:
    with pytest.raises(UsageError):
        stated_kernel(THREE, prior, 0.3)


def test_errors_are_averaged_over_the_law_under_the_prior() -> None:
    mixed = module._mixture(THREE, (0.2, 0.3, 0.5))
    assert mixed == pytest.approx([0.27, 0.3, 0, 0.25, 0, 0, 0, 0.18])


@pytest.mark.parametrize(("apart", "ratio"), [(1, 0.5 / 0.4), (2, 0.5 / 0.35)])
def test_an_exact_release_loses_the_largest_ratio_of_laws_near_enough(apart: int, ratio: float) -> None:
    laws = tuple(((p, p), (1 - p, 1 - p)) for p in (0.5, 0.4, 0.35))
    for order in (laws, laws[::-1]):
        found = stated_loss(StatedLaws((0, 1), order, apart), 0.0)
        assert math.log(ratio) <= found <= math.log(ratio) + 1e-12
    assert stated_loss(StatedLaws((0, 1), (laws[0],) * 3, apart), 0.0) <= 1e-15


@pytest.mark.parametrize("boxes", [(0,), (1,), (0, 1)])
def test_mass_is_left_aside_only_where_every_law_is_a_single_one(boxes: tuple[int, ...]) -> None:
    single, box = ((0.5, 0.5), (0.5, 0.5)), ((0.4, 0.6), (0.4, 0.6))
    laws = StatedLaws((0, 1), tuple(box if k in boxes else single for k in range(2)), 1)
    with pytest.raises(UsageError):
        stated_distance(laws, 0.1)


def test_a_law_is_at_no_distance_from_itself() -> None:
    same = ((0.25, 0.25), (0.5, 0.5), (0.25, 0.25))
    assert stated_distance(StatedLaws((0, 2, 5), (same, same), 1)) == 0
    assert stated_distance(StatedLaws((0, 2, 5), (same, ((0.25, 0.25), (0.25, 0.25), (0.5, 0.5))), 1)) == 3
