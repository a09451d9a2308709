"""Transport by quantiles over rows like recorded ones: a kernel for each secret, and the delta of what it draws.

    J = the bin of F + shift + N(0, sigma^2);   a table with the secret a:  J -> O by the monotone coupling of m_a and m_b

m_a is the law of J given a under the *first* law of the list, in whole numbers, and b the reference: a secret near the middle.
Under that law every secret gives O the law m_b. Any other choice of m_a would be a kernel too: it is a public rule, and what
O tells is computed again for each law listed.

| symbol | here |
|---|---|
| m_a | `masses[k]`, whole numbers that add up to the same for each secret; every bin has at least one |
| the kernel | K_a(j, o) = length of [c_a(j), c_a(j + 1)) within [c_b(o), c_b(o + 1)), over m_a(j); c are cumulated masses |
| bins further out | count as the first or the last one |

The law of O given a, under a law with P(J = j | a) = p(j), has the distribution function of p at the ends of m_b's bins,
linear between those of m_a's. A kernel moves two laws no further apart in L1, so `eta` of the laws of J holds for O; what
floats add is charged.

What must never change: masses are whole numbers, and what draws uses the same ones as what computes delta.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from attrpriv.errors import UsageError
from attrpriv.numerics.calibration.recorded import recorded_step
from attrpriv.numerics.calibration.recorded_members import RecordedLaw, SecretRange, require_pairs, searched, shown
from attrpriv.numerics.divergences.recorded_pairs import hockey_stick
from attrpriv.numerics.laws.recorded_inversion import NoisyLaws, noisy_laws
from attrpriv.numerics.rounding import SUMMED_UP, UNIT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Whole = NDArray[np.int64]
    Array = NDArray[np.float64]

# Masses are multiples of 2^-46, and cumulated chances of 2^-60.
_MASS_BITS = 46
_CHANCE_BITS = 60
# Bins that no secret reaches with this chance are left to the first and the last one.
_SEEN = 1e-13
# Secrets times bins of one kernel, which is held in memory.
MOST_ENTRIES = 1 << 25


@dataclass(frozen=True, eq=False)
class RecordedKernel:
    """How bins are moved, for each secret: from `masses[k]` to `masses[reference]`, on bins from `first` on."""

    secrets: Whole
    first: int
    masses: Whole
    reference: int

    def place(self, secret: int) -> int:
        """Which of the masses are the secret's: its own, or those of the nearest one that the first law knows."""
        return int(np.argmin(np.abs(self.secrets - secret)))

    def cell(self, number: int) -> int:
        """The place of a bin, by its number on the whole line."""
        return int(min(max(number - self.first, 0), self.masses.shape[1] - 1))

    def moved(self, laws: NoisyLaws) -> NoisyLaws:
        """The laws of what is drawn, from those of J."""
        size = self.masses.shape[1]
        cells = np.clip(laws.bins - self.first, 0, size - 1)
        ends = _ends(self.masses[self.reference])
        found = np.empty((len(laws.secrets), size))
        for line, secret, law in zip(found, laws.secrets, laws.probabilities, strict=True):
            chances = np.rint(np.bincount(cells, law, minlength=size) * 2.0**_CHANCE_BITS).astype(np.int64)
            below = np.append(0, np.cumsum(chances)) * 2.0**-_CHANCE_BITS
            line[:] = np.diff(np.interp(ends, _ends(self.masses[self.place(round(float(secret)))]), below))
        np.maximum(found, 0.0, out=found)
        # Added up within a bin; cumulated in whole numbers; and at both ends of each bin a few units of what is at most 1.
        lost = UNIT * (16.0 * size + len(laws.bins))
        return NoisyLaws(
            laws.secrets,
            self.first + np.arange(size, dtype=np.int64),
            laws.step,
            found,
            (laws.eta + lost) * SUMMED_UP,
            laws.void,
        )

    def displacements(self, places: Sequence[int], levels: int) -> Array:
        """By how many bins O is above J, for these masses: at the middles of so many equal parts of the chance."""
        ends = _ends(self.masses[self.reference])
        at = (np.arange(levels) + 0.5) / levels * ends[-1]
        to = np.searchsorted(ends, at, side="right")
        return np.array([to - np.searchsorted(_ends(self.masses[k]), at, side="right") for k in places], dtype=np.float64)


def _ends(masses: Whole) -> Array:
    """Cumulated masses, as floats that hold them exactly."""
    return np.append(0, np.cumsum(masses)).astype(np.float64)


@lru_cache(maxsize=2)  # what is drawn, and what a plan is checked by, is one kernel
def recorded_kernel(law: RecordedLaw, n: int, secrets: SecretRange, sigma: float, shift: float) -> RecordedKernel:
    """The kernel for all secrets."""
    return kernel_for(law, n, tuple(range(secrets.low, secrets.high + 1)), secrets, sigma, shift)


def kernel_for(
    law: RecordedLaw, n: int, values: Sequence[int], secrets: SecretRange, sigma: float, shift: float
) -> RecordedKernel:
    """The kernel for some of the secrets."""
    laws = noisy_laws(law.rows, n, list(values), sigma, recorded_step(sigma), shift, secrets.kind)
    if not len(laws.secrets):
        raise UsageError("records: no table of rows like the first ones has a value of the secret. Widen its range.")
    seen = np.flatnonzero(laws.probabilities.max(axis=0) > _SEEN)
    inside = laws.probabilities[:, seen[0] : seen[-1] + 1]
    if inside.size > MOST_ENTRIES:
        raise UsageError("records: too many values of the secret for a kernel of each. Narrow its range.")
    masses = np.rint(inside * 2.0**_MASS_BITS).astype(np.int64) + 1
    # The largest of each line takes what rounding left.
    total = (1 << _MASS_BITS) + inside.shape[1]
    masses[np.arange(len(masses)), masses.argmax(axis=1)] += total - masses.sum(axis=1)
    if bool((masses < 1).any()):
        raise UsageError("records: laws must add up to one. Nothing was computed.")
    known = np.rint(laws.secrets).astype(np.int64)
    return RecordedKernel(known, int(laws.bins[seen[0]]), masses, int(np.argmin(np.abs(known - n * law.hidden_mean()))))


@lru_cache(maxsize=512)  # a plan is checked several times, each time with the same numbers
def kernel_delta(
    first: RecordedLaw, law: RecordedLaw, n: int, secrets: SecretRange, sigma: float, shift: float, epsilon: float
) -> tuple[float, tuple[int, ...]]:
    """At least the delta of all pairs under one law, by the kernel of the first one; and the secrets that it cannot have."""
    kernel = recorded_kernel(first, n, secrets, sigma, shift)
    return drawn_delta(kernel, law, n, range(secrets.low, secrets.high + 1), secrets, sigma, shift, epsilon)


def drawn_delta(
    kernel: RecordedKernel,
    law: RecordedLaw,
    n: int,
    values: Sequence[int],
    secrets: SecretRange,
    sigma: float,
    shift: float,
    epsilon: float,
) -> tuple[float, tuple[int, ...]]:
    laws = noisy_laws(law.rows, n, list(values), sigma, recorded_step(sigma), shift, secrets.kind)
    void = tuple(round(one) for one in laws.void)
    if len(laws.secrets) < 2:
        return 0.0, void
    return hockey_stick(kernel.moved(laws), epsilon, within=float(secrets.apart)).delta, void


def transport_delta(
    members: Sequence[RecordedLaw], n: int, secrets: SecretRange, sigma: float, shift: float, epsilon: float
) -> float:
    """At least the delta of all pairs under every law, of what is drawn by the kernel of the first one."""
    found = [kernel_delta(members[0], law, n, secrets, sigma, shift, epsilon) for law in members]
    require_pairs([void for _, void in found], secrets)
    return max(one for one, _ in found)


def least_transport_scale(
    members: Sequence[RecordedLaw],
    n: int,
    secrets: SecretRange,
    epsilon: float,
    delta: float,
    *,
    least: float,
    shift_of: Callable[[float], float] = lambda sigma: 0.0,
) -> float:
    """A scale from `least` on at which what the kernel draws is private under every law; hardly less is.

    >>> law = RecordedLaw(s=(0, 0, 1, 1), q=(0, 1, 1, 2), counts=(1, 1, 1, 1))
    >>> near = SecretRange(kind="sum", low=8, high=12, apart=4)
    >>> least_transport_scale([law], 20, near, 1.0, 1e-3, least=0.5)
    0.5
    >>> transport_delta([law], 20, near, 0.5, 0.0, 1.0) < 1e-8
    True
    """
    values, sigma = secrets.some(), least
    for law in members:

        def delta_at(scale: float, law: RecordedLaw = law) -> float:
            kernel = kernel_for(members[0], n, values, secrets, scale, shift_of(scale))
            return drawn_delta(kernel, law, n, values, secrets, scale, shift_of(scale), epsilon)[0]

        sigma = searched(delta_at, delta, sigma, max(sigma, members[0].need(n, secrets) / 4))
    return shown(lambda scale: transport_delta(members, n, secrets, scale, shift_of(scale), epsilon), delta, sigma)
