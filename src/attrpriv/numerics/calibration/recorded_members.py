"""Noise on a sum over rows like recorded ones, for a list of laws: all pairs of secrets under every law, and the least scale.

    Y = F + shift + N(0, sigma^2), rounded to `recorded_step(sigma)`;     F and the secret in whole numbers

A pair is void under a law that gives one of its two secrets probability 0: nothing has to be shown there. A pair that is void
under every law is not covered: whoever stated it believes that it can be, and no law says what it looks like.

| symbol | here |
|---|---|
| a law | `RecordedLaw`: whole rows (s, q), and how often each occurs |
| the pairs | `SecretRange`: every two secrets of `low` to `high` that are at most `apart` from each other |

What must never change: a scale that is returned was shown to be private for every law and every pair. What cannot be computed
for one of them is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from attrpriv.errors import UsageError
from attrpriv.frozen import FrozenModel
from attrpriv.numerics.calibration.recorded import recorded_step
from attrpriv.numerics.divergences.recorded_pairs import hockey_stick
from attrpriv.numerics.laws.recorded_inversion import noisy_laws
from attrpriv.numerics.laws.recorded_rows import RecordedRows

Whole = Annotated[int, Field(strict=True)]
Kind = Literal["sum", "share"]
# The search looks at so many secrets, and then shows all of them.
_FEW = 40
_CLOSE = 5e-4
_GROWS = 1.001
_WIDER = 1.1
_DOUBLINGS = 40
_TRIES = 60
_BLOCK = 512


class RecordedLaw(FrozenModel):
    """Whole rows (s, q), and how often each occurs."""

    s: tuple[Whole, ...] = Field(min_length=1)
    q: tuple[Whole, ...]
    counts: tuple[Annotated[int, Field(strict=True, ge=1)], ...]

    @model_validator(mode="after")
    def _of_one_length(self) -> RecordedLaw:
        if not len(self.s) == len(self.q) == len(self.counts):
            raise ValueError("must have one s, one q and one count for each row. Got others.")
        return self

    @property
    def rows(self) -> RecordedRows:
        return RecordedRows.of(self.s, self.q, self.counts)

    def moments(self) -> tuple[float, float]:
        """Mean and standard deviation of q."""
        weights = np.array(self.counts, dtype=np.float64)
        q = np.array(self.q, dtype=np.float64)
        mean = float(np.average(q, weights=weights))
        return mean, math.sqrt(float(np.average((q - mean) ** 2, weights=weights)))

    def hidden_mean(self) -> float:
        """The mean of s."""
        return float(np.average(self.s, weights=self.counts))

    def hidden_sd(self) -> float:
        """The standard deviation of s."""
        return math.sqrt(float(np.average((np.array(self.s) - self.hidden_mean()) ** 2, weights=self.counts)))

    def need(self, n: int, secrets: SecretRange) -> float:
        """About how much noise it asks for, were all normal: a quarter of how far the sum moves, beyond its own spread.

        A guess, with which a search begins.
        """
        weights, s, q = (np.array(one, dtype=np.float64) for one in (self.counts, self.s, self.q))
        both = np.cov(s, q, aweights=weights, ddof=0)
        slope = both[0, 1] / both[0, 0] if both[0, 0] > 0 else 0.0
        own = max(0.0, both[1, 1] - slope * both[0, 1]) * n
        return math.sqrt(max(0.0, (4 * slope * secrets.apart) ** 2 - own))


class SecretRange(FrozenModel):
    """Every two secrets from `low` to `high` that are at most `apart` from each other."""

    kind: Kind
    low: Whole
    high: Whole
    apart: Annotated[int, Field(strict=True, ge=1)]

    @model_validator(mode="after")
    def _two(self) -> SecretRange:
        if not self.low < self.high:
            raise ValueError("must hold two or more secrets. Got fewer.")
        return self

    def some(self) -> tuple[int, ...]:
        """The ends, secrets between them, and for each of these the furthest that must look like it."""
        steps = np.linspace(self.low, self.high, min(_FEW, self.high - self.low + 1)).round().astype(np.int64)
        found = {int(one) for one in steps} | {int(one) + self.apart for one in steps} | {self.high - self.apart}
        return tuple(sorted(one for one in found if self.low <= one <= self.high))


@lru_cache(maxsize=512)  # a plan is checked several times, each time with the same numbers
def law_delta(
    law: RecordedLaw, n: int, secrets: SecretRange, sigma: float, shift: float, epsilon: float
) -> tuple[float, tuple[int, ...]]:
    """At least the delta of all pairs under one law, and the secrets that it cannot have."""
    return some_delta(law, n, range(secrets.low, secrets.high + 1), secrets, sigma, shift, epsilon)


def some_delta(
    law: RecordedLaw,
    n: int,
    values: Sequence[int],
    secrets: SecretRange,
    sigma: float,
    shift: float,
    epsilon: float,
) -> tuple[float, tuple[int, ...]]:
    laws = noisy_laws(law.rows, n, list(values), sigma, recorded_step(sigma), shift, secrets.kind)
    found = hockey_stick(laws, epsilon, within=float(secrets.apart)).delta if len(laws.secrets) > 1 else 0.0
    return found, tuple(round(one) for one in laws.void)


def members_delta(
    members: Sequence[RecordedLaw], n: int, secrets: SecretRange, sigma: float, shift: float, epsilon: float
) -> float:
    """At least the delta of all pairs under every law.

    `UsageError` where a law cannot be computed, or where a pair is void under every one.
    """
    found = [law_delta(law, n, secrets, sigma, shift, epsilon) for law in members]
    require_pairs([void for _, void in found], secrets)
    return max(one for one, _ in found)


def require_pairs(voids: Sequence[Sequence[int]], secrets: SecretRange) -> None:
    """`UsageError` unless each pair is possible under one of the laws."""
    if any(not void for void in voids):
        return
    size = secrets.high - secrets.low + 1
    possible = np.ones((len(voids), size), dtype=np.float32)
    for line, void in zip(possible, voids, strict=True):
        line[[one - secrets.low for one in void]] = 0.0
    for start in range(0, size, _BLOCK):
        first = np.arange(start, min(start + _BLOCK, size))
        together = possible[:, first].T @ possible > 0
        near = np.abs(first[:, None] - np.arange(size)) <= secrets.apart
        if bool((near & ~together).any()):
            raise UsageError(
                "records: two values of the secret that are to be hidden are possible under no law that is listed. Narrow its "
                "range, or state the spacing of its column (resolution)."
            )


def least_members_scale(
    checks: Sequence[tuple[Sequence[RecordedLaw], SecretRange]],
    n: int,
    epsilon: float,
    delta: float,
    *,
    least: float,
    shift_of: Callable[[float], float] = lambda sigma: 0.0,
) -> float:
    """A scale from `least` on that is private for all laws and secrets; hardly less is.

    >>> laws = [RecordedLaw(s=(0, 0, 1, 1), q=(0, 1, 1, 2), counts=(1, 1, 1, 1))]
    >>> near = SecretRange(kind="sum", low=8, high=12, apart=4)
    >>> sigma = least_members_scale([(laws, near)], 20, 1.0, 1e-3, least=0.1)
    >>> members_delta(laws, 20, near, sigma, 0.0, 1.0) <= 1e-3
    True
    """
    # The law that should need most comes first, so that the others are mostly looked at once.
    needs = sorted(((law.need(n, s), law, s) for members, s in checks for law in members), key=lambda one: -one[0])
    sigma = least
    for need, law, secrets in needs:
        sigma = raised(law, n, secrets, sigma, max(need, sigma), epsilon, delta, shift_of)

    def worst(sigma: float) -> float:
        return max(members_delta(members, n, one, sigma, shift_of(sigma), epsilon) for members, one in checks)

    return shown(worst, delta, sigma)


def raised(
    law: RecordedLaw,
    n: int,
    secrets: SecretRange,
    least: float,
    guess: float,
    epsilon: float,
    delta: float,
    shift_of: Callable[[float], float],
) -> float:
    """A scale from `least` on at which some of the pairs are private under one law; the search begins at a guess."""
    values = secrets.some()

    def delta_at(sigma: float) -> float:
        return some_delta(law, n, values, secrets, sigma, shift_of(sigma), epsilon)[0]

    return searched(delta_at, delta, least, guess)


def searched(delta_at: Callable[[float], float], delta: float, least: float, guess: float) -> float:
    """A scale from `least` on at which delta is kept; the search begins at a guess. What cannot be computed is not kept."""
    reason = ""

    def is_private(sigma: float) -> bool:
        nonlocal reason
        try:
            return delta_at(sigma) <= delta
        except UsageError as error:
            reason = str(error)
        return False  # with more noise it may be computed

    if is_private(least):
        return least
    low, high = least, max(guess, _WIDER * least)
    for _ in range(_DOUBLINGS):
        if is_private(high):
            break
        low, high = high, 2 * high
    else:
        raise UsageError(reason or "records: no noise that was tried is private. Narrow the secret's range.")
    if high / _WIDER > low:
        low, high = (low, high / _WIDER) if is_private(high / _WIDER) else (high / _WIDER, high)
    while high > low * (1 + _CLOSE):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if is_private(middle) else (middle, high)
    return high


def shown(delta_at: Callable[[float], float], delta: float, sigma: float) -> float:
    """This scale or one that is hardly larger, at which delta was shown to be kept."""
    for _ in range(_TRIES):
        if delta_at(sigma) <= delta:
            return sigma
        sigma *= _GROWS
    raise UsageError("records: no noise that was tried is private for all pairs. Narrow the secret's range.")
