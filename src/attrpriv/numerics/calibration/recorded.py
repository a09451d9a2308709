"""The least Gaussian noise on a sum over recorded rows: the private side of a search, for every law that is listed.

    least sigma with H_eps(Y given a || Y given b) <= delta,   Y = F + N(0, sigma^2) rounded to `recorded_step(sigma)`,

for all pairs of secrets within reach, both ways, under each of the recorded laws. A pair is void under a law that gives one of
its two secrets probability 0. Secrets that no single law has all of are refused: a pair of them might be void under every law.

What must never change: the sigma returned was itself shown to be private, with its own step, for every law and pair.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences.recorded_pairs import hockey_stick
from attrpriv.numerics.laws.recorded_inversion import noisy_laws

if TYPE_CHECKING:
    from attrpriv.numerics.laws.recorded_rows import RecordedRows

# Bins are a power of two, from a sixteenth to an eighth of sigma.
_FINER = 3
_STEPS = 60


def recorded_step(sigma: float) -> float:
    """The bin to which an answer with this noise is rounded: a power of two, which depends on sigma alone.

    >>> recorded_step(900.0)
    64.0
    """
    if not (math.isfinite(sigma) and sigma > 0):
        raise UsageError(f"sigma: must be finite and above 0. Got {sigma}.")
    return math.ldexp(1.0, math.frexp(sigma)[1] - 1 - _FINER)


def recorded_delta(
    members: Sequence[RecordedRows],
    n: int,
    secrets: Sequence[int],
    sigma: float,
    epsilon: float,
    *,
    within: float | None = None,
    secret: Literal["sum", "share"] = "sum",
    enough: float = 0.0,
) -> float:
    """At least the delta of the noisy sum, over the pairs of secrets and the laws listed."""
    if not members or len(secrets) < 2:
        raise UsageError("records: needs one or more laws, and two or more secrets.")
    worst, covered = 0.0, False
    for rows in members:
        laws = noisy_laws(rows, n, secrets, sigma, recorded_step(sigma), secret=secret)
        covered = covered or not laws.void
        worst = max(worst, hockey_stick(laws, epsilon, within=within, enough=enough).delta)
    # Secrets that are each possible under another law may be a pair that no law has: one law must have them all.
    if not covered:
        raise UsageError("records: under each law listed some value of the secret is impossible. Narrow its range.")
    return worst


def least_recorded_sigma(
    members: Sequence[RecordedRows],
    n: int,
    secrets: Sequence[int],
    epsilon: float,
    delta: float,
    *,
    within: float | None = None,
    secret: Literal["sum", "share"] = "sum",
    start: float,
    close: float = 1e-3,
) -> float:
    """A sigma that is private, at most a share `close` above one that is not; never below a hundredth of `start`.

    >>> from attrpriv.numerics.laws.recorded_rows import RecordedRows
    >>> rows = RecordedRows.of([0, 0, 1, 1], [0, 1, 1, 2])
    >>> sigma = least_recorded_sigma([rows], 20, range(8, 13), 1.0, 1e-3, start=5.0)
    >>> recorded_delta([rows], 20, range(8, 13), sigma, 1.0) <= 1e-3
    True
    """
    if not (0 < delta < 1 and math.isfinite(start) and start > 0):
        raise UsageError("records: delta must be above 0 and below 1, and the first sigma above 0.")

    def is_private(sigma: float) -> bool:
        return recorded_delta(members, n, secrets, sigma, epsilon, within=within, secret=secret, enough=delta) <= delta

    least, high = start / 100, start
    low = least
    if is_private(high):
        while high > least and is_private(max(high / 2, least)):
            high = max(high / 2, least)
        if high == least:
            return least
        low = max(high / 2, least)
    else:
        for _ in range(_STEPS):
            low, high = high, 2 * high
            if is_private(high):
                break
        else:
            raise UsageError("records: no noise that was tried is private.")
    while high > low * (1 + close):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if is_private(middle) else (middle, high)
    return high
