"""Transport over recorded rows, against a slow twin: tables counted in exact fractions, and the kernel in fractions too.

Given the secret, a noisy sum is a mixture of normal laws on bins. Each bin is split as `noise.coupled_weights` says, which is
the law of what is drawn; the divergence of what comes out is compared with the delta that is computed.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr

from attrpriv.errors import UsageError
from attrpriv.noise import coupled_draw, coupled_weights
from attrpriv.numerics.calibration import recorded_kernel as module
from attrpriv.numerics.calibration.recorded import recorded_step
from attrpriv.numerics.calibration.recorded_kernel import (
    RecordedKernel,
    least_transport_scale,
    recorded_kernel,
    transport_delta,
)
from attrpriv.numerics.calibration.recorded_members import RecordedLaw, SecretRange, members_delta
from tests.property.test_recorded_members import EVEN, HEAVY, OTHER, PARITY, PUBLIC, SHARE, joint, law

SIGMA, SHIFT = 0.4, 2.0**-8
NEAR = SecretRange(kind="sum", low=2, high=7, apart=2)
OTHER_SHARE = law((0, 0, 2), (0, 2, 2), (0, 4, 1), (1, 1, 3), (1, 5, 1))
CLOSE = law((0, 0, 5), (1, 1, 4), (1, 3, 3), (2, 2, 5))


def drawn_laws(kernel: RecordedKernel, one: RecordedLaw, n: int, secrets: SecretRange, sigma: float) -> dict[int, list[float]]:
    """For each secret the law of what the kernel gives: bins by enumeration, split by the weights of the draw."""
    step, found = recorded_step(sigma), {}
    masses = kernel.masses.tolist()
    size = len(masses[0])
    edges = (kernel.first + np.arange(1, size) - 0.5) * step  # the first and the last bin have all that lies beyond
    for secret, given in joint(one, n).items():
        if not secrets.low <= secret <= secrets.high:
            continue
        total = sum(given.values())
        below = sum(float(p / total) * ndtr((edges - f - SHIFT) / sigma) for f, p in given.items())
        bins = np.diff(np.concatenate([[0.0], np.asarray(below), [1.0]]))
        source, law_of_o = masses[kernel.place(secret)], [0.0] * size
        for cell, to, length in pieces(source, masses[kernel.reference]):
            law_of_o[to] += float(bins[cell]) * (length / source[cell])
        found[secret] = law_of_o
    return found


def pieces(source: list[int], target: list[int]) -> Iterator[tuple[int, int, int]]:
    """Cells of the source and the target, and how long they lie over each other, in whole numbers."""
    here, there, a, b = 0, 0, source[0], target[0]
    while True:
        length = min(a, b)
        if length:
            yield here, there, length
        a, b = a - length, b - length
        if not a:
            here += 1
            if here == len(source):
                return
            a = source[here]
        if not b and there + 1 < len(target):
            there += 1
            b = target[there]


def test_pieces_are_what_the_draw_has() -> None:
    source, target = [3, 1, 0, 4], [1, 5, 2, 0]
    for cell in (0, 1, 3):
        weights = [0] * len(target)
        for k, to, length in pieces(source, target):
            weights[to] += length * (k == cell)
        assert weights == coupled_weights(source, target, cell)


def exact_delta(laws: dict[int, list[float]], secrets: SecretRange, epsilon: float) -> float:
    near = [(a, b) for a, b in itertools.permutations(laws, 2) if abs(a - b) <= secrets.apart]
    both = [(np.array(laws[a]), np.array(laws[b])) for a, b in near]
    return max(float(np.maximum(p - math.exp(epsilon) * q, 0).sum()) for p, q in both)


CASES = {
    "one law": ([PUBLIC], 5, NEAR),
    "another law": ([PUBLIC, OTHER], 5, NEAR),
    "a near law": ([PUBLIC, CLOSE], 5, NEAR),
    "two rows": ([OTHER, PUBLIC], 2, SecretRange(kind="sum", low=0, high=4, apart=1)),
    "holes": ([EVEN, PUBLIC], 4, SecretRange(kind="sum", low=2, high=8, apart=2)),
    "holes elsewhere": ([PUBLIC, EVEN], 4, SecretRange(kind="sum", low=2, high=8, apart=2)),
    "parity": ([PARITY, PUBLIC], 5, SecretRange(kind="sum", low=3, high=9, apart=3)),
    "heavy": ([HEAVY], 4, SecretRange(kind="sum", low=1, high=5, apart=2)),
    "share": ([SHARE, OTHER_SHARE], 5, SecretRange(kind="share", low=0, high=5, apart=2)),
}


@pytest.mark.parametrize("name", CASES)
def test_delta_is_that_of_tables_counted_one_by_one(name: str) -> None:
    members, n, secrets = CASES[name]
    sigma = 30.0 if name == "heavy" else SIGMA
    kernel = recorded_kernel(members[0], n, secrets, sigma, SHIFT)
    for epsilon in (0.5, 1.0):
        exact = max(exact_delta(drawn_laws(kernel, one, n, secrets, sigma), secrets, epsilon) for one in members)
        found = transport_delta(members, n, secrets, sigma, SHIFT, epsilon)
        assert exact <= found <= exact * 1.01 + 1e-8


def test_under_the_first_law_nothing_is_left_to_tell() -> None:
    """All secrets give one law, with little noise; the noise alone tells nearly all."""
    assert transport_delta([PUBLIC], 5, NEAR, SIGMA, SHIFT, 0.1) < 1e-8
    assert members_delta([PUBLIC], 5, NEAR, SIGMA, SHIFT, 0.1) > 0.5


def test_the_least_scale_is_private_under_every_law_by_the_twin() -> None:
    members = [PUBLIC, OTHER]
    scale = least_transport_scale(members, 5, NEAR, 1.0, 0.03, least=0.2, shift_of=lambda sigma: SHIFT)
    reached = []
    for sigma in (scale, 0.98 * scale):
        kernel = recorded_kernel(members[0], 5, NEAR, sigma, SHIFT)
        reached.append(max(exact_delta(drawn_laws(kernel, one, 5, NEAR, sigma), NEAR, 1.0) for one in members))
    assert reached[0] <= 0.03 < reached[1]


def test_masses_are_whole_and_alike_for_every_secret() -> None:
    kernel = recorded_kernel(PUBLIC, 5, NEAR, SIGMA, SHIFT)
    assert kernel.masses.dtype == np.int64
    assert int(kernel.masses.min()) >= 1
    assert len({int(line.sum()) for line in kernel.masses}) == 1


def test_what_is_drawn_is_the_kernel() -> None:
    """5,000 draws for one bin: chi-square of at most 40 cells above 130 has a chance below 1e-10.

    The planted wrong kernel, of the secret's neighbour, is far beyond it.
    """
    kernel = recorded_kernel(PUBLIC, 5, NEAR, SIGMA, SHIFT)
    target, draws = kernel.masses[kernel.reference].tolist(), 5_000
    source, other = (kernel.masses[kernel.place(one)].tolist() for one in (2, 3))
    cell = int(np.argmax(kernel.masses[kernel.place(2)]))
    found = Counter(coupled_draw(source, target, cell) for _ in range(draws))

    def distance(masses: list[int]) -> float:
        weights = np.array(coupled_weights(masses, target, cell), dtype=np.float64)
        chances = weights / weights.sum()
        expected = draws * chances
        common = expected >= 5
        seen = np.array([found[k] for k in range(len(target))], dtype=np.float64)
        cells = [*zip(seen[common], expected[common], strict=True), (seen[~common].sum(), expected[~common].sum() + 1)]
        return float(sum((a - b) ** 2 / b for a, b in cells))

    assert distance(source) < 130 < distance(other)


# ------------------------------------------------------------------------------------------------------------- planted mistakes


def wrong(kernel: RecordedKernel, name: str) -> RecordedKernel:
    if name == "the kernel of another secret":
        return replace(kernel, masses=np.roll(kernel.masses, 1, axis=0), reference=(kernel.reference + 1) % len(kernel.masses))
    if name == "bins that are off by two":
        return replace(kernel, first=kernel.first + 2)
    return replace(kernel, masses=kernel.masses[:, ::-1].copy())


@pytest.mark.parametrize("name", ["the kernel of another secret", "bins that are off by two", "turned round"])
def test_a_kernel_that_is_not_the_one_that_was_counted_is_seen(name: str) -> None:
    """If what draws were another kernel than what is computed with, the enumeration would be far from the delta."""
    kernel = recorded_kernel(PUBLIC, 5, NEAR, SIGMA, SHIFT)
    exact = exact_delta(drawn_laws(wrong(kernel, name), CLOSE, 5, NEAR, SIGMA), NEAR, 0.5)
    assert abs(exact - transport_delta([PUBLIC, CLOSE], 5, NEAR, SIGMA, SHIFT, 0.5)) > 1e-3


def test_a_law_that_is_not_looked_at_is_missed() -> None:
    assert transport_delta([PUBLIC], 5, NEAR, SIGMA, SHIFT, 1.0) < 1e-8
    assert transport_delta([PUBLIC, OTHER], 5, NEAR, SIGMA, SHIFT, 1.0) > 0.1


def test_floats_of_the_kernel_are_charged() -> None:
    """The error of the moved laws holds their distance from the same laws moved in fractions."""
    from attrpriv.numerics.laws.recorded_inversion import noisy_laws

    kernel = recorded_kernel(PUBLIC, 5, NEAR, SIGMA, SHIFT)
    laws = noisy_laws(CLOSE.rows, 5, range(2, 8), SIGMA, recorded_step(SIGMA), SHIFT)
    moved = kernel.moved(laws)
    size, target = kernel.masses.shape[1], kernel.masses[kernel.reference].tolist()
    for k, secret in enumerate(laws.secrets):
        source = kernel.masses[kernel.place(int(secret))].tolist()
        exact, bins = [Fraction(0)] * size, [Fraction(0)] * size
        for number, chance in zip(laws.bins.tolist(), laws.probabilities[k].tolist(), strict=True):
            bins[kernel.cell(number)] += Fraction(chance)
        for cell, to, length in pieces(source, target):
            exact[to] += bins[cell] * Fraction(length, source[cell])
        off = sum(abs(Fraction(float(found)) - true) for found, true in zip(moved.probabilities[k], exact, strict=True))
        assert 0 < off <= moved.eta[k] - laws.eta[k]


def test_too_many_values_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ENTRIES", 100)
    with pytest.raises(UsageError, match="too many values"):
        transport_delta([SHARE], 5, SecretRange(kind="share", low=0, high=5, apart=1), 0.31, 0.0, 1.0)


def test_a_first_law_without_the_secret_is_refused() -> None:
    with pytest.raises(UsageError, match="no table of rows like the first ones"):
        transport_delta([EVEN, PUBLIC], 4, SecretRange(kind="sum", low=17, high=18, apart=1), 1.0, 0.0, 1.0)
