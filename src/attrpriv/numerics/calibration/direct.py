"""Direct calibration: the least integer noise for (epsilon, delta), from the exact laws of a count.

    delta(scale) = sup over Theta and over pairs, both ways, of  H_eps(F_a + Z || F_b + Z)

| noise | law of Z |
|---|---|
| `laplace` | P(k) ~ e^(-\\|k\\|/scale) |
| `gaussian` | P(k) ~ e^(-k^2/(2 scale^2)) |
| `none` | Z = 0, the exact release: with delta the variation of the rows themselves may be enough |

Which pairs and which laws of the box have to be looked at is proved in `pair_families`. The search asks for the least scale of
the worst block of pairs, looks at all pairs again at that scale, and goes on with whichever is worst there. Laplace noise of a
larger scale is that of a smaller one with more noise added (`laplace`); for discrete Gaussian noise no such proof is used: only
the scale that is returned counts, and it was checked for all pairs.

What must never change: every law's distance from its floats is charged (1 + e^eps) times; the scale returned is one at which
the upper bound over all pairs of every box was at most delta.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from attrpriv.errors import RefusedError, UsageError
from attrpriv.numerics.calibration.gaussian import gaussian_mu
from attrpriv.numerics.calibration.half_lines import TAIL, WholeNoise
from attrpriv.numerics.calibration.pair_families import Block, Family, family_of
from attrpriv.numerics.divergences.gaussian_mixture import gaussian_mixture_delta_upper
from attrpriv.numerics.divergences.lattice import lattice_delta_upper
from attrpriv.numerics.laws.gaussian import GaussianMixture
from attrpriv.numerics.laws.lattice import LatticeLaw, discrete_gaussian, discrete_laplace
from attrpriv.numerics.laws.records import CountPairs, RecordLaws
from attrpriv.numerics.rounding import COMPUTED_UP
from attrpriv.numerics.search import largest_private, least_place

Noise = Literal["laplace", "gaussian", "none"]
# Scales are searched among floats of this many binary digits; neighbouring ones differ by a share of 1e-8.
_DIGITS = 27
_ROUNDS = 60
# The search ends here: as much noise as 10,000 times the largest answer says nothing.
_LARGEST = 1e4


@dataclass(frozen=True)
class DirectDelta:
    """A bound on delta over Theta and all pairs, the pair that needs it, and the largest bound of a single pair.

    They are `upper`, `pair` and `attained`. Made by `direct_delta`.

    For a box of event probabilities the pair counts the rows at the high end, whatever the range of the secret.
    """

    upper: float
    pair: tuple[int, int]
    attained: float


def direct_delta(
    records: RecordLaws, pairs: CountPairs, noise: Noise, scale: float, epsilon: float, *, known: int = 0, enough: float = 0.0
) -> DirectDelta:
    """The delta that holds at this epsilon; `known` rows may be known to the adversary.

    `records` is the law of a row, or a box of laws; `pairs` are the counts that must be indistinguishable; `noise` is
    "laplace", "gaussian" or "none", `scale` its scale, `epsilon` the promise.

    Many pairs are bounded together, until the bound is sharp or known to be on one side of `enough` (0: sharp).

    >>> found = direct_delta(RecordLaws.event(0.4, 0.6), CountPairs.all_of(4), "none", 0.0, 1.0)
    >>> round(found.upper, 6), found.pair
    (0.060012, (0, 4))
    """
    _require_epsilon(epsilon)
    family = family_of(records, pairs, known)
    found = family.worst(added_noise(noise, scale), epsilon, enough)
    return DirectDelta(found.upper, family.pair(found.block), found.attained)


def least_direct_scale(
    records_list: Sequence[RecordLaws], pairs: CountPairs, noise: Noise, epsilon: float, delta: float, known: int = 0
) -> float:
    """The least scale, from above, that keeps (epsilon, delta) for every one of several boxes; 0.0 where none is needed.

    `records_list` has the boxes, `pairs` the counts that must be indistinguishable; `noise` is "laplace" or "gaussian";
    `epsilon` and `delta` are the promise; `known` rows may be known to the adversary.

    >>> round(least_direct_scale([RecordLaws.event(0.4, 0.6)], CountPairs.all_of(4), "gaussian", 1.0, 1e-3), 6)
    1.593862
    """
    _require_epsilon(epsilon)
    _require_delta(delta)
    if not records_list:
        raise UsageError("records_list: needs at least one. Got none.")
    families = [family_of(records, pairs, known) for records in records_list]
    scale, most = 0.0, _LARGEST * pairs.n * max(records.width for records in records_list)
    for _ in range(_ROUNDS):
        broken = _first_broken(families, added_noise(noise if scale > 0 else "none", scale), epsilon, delta)
        if broken is None:
            return scale
        if noise == "none":
            raise RefusedError(f"noise: the exact release does not keep epsilon {epsilon:g} at delta {delta:g}. Add noise.")
        needed = _least_for(*broken, noise, epsilon, delta, most)
        # Where rounding asks for no more than there is already, go on all the same.
        scale = needed if needed > scale else _few_digits(scale * (1 + 2.0**-20))
    raise UsageError("calibration: the search for the least scale did not settle. Use Laplace noise with delta 0.")


def continuous_gaussian_sigma(law_a: LatticeLaw, law_b: LatticeLaw, epsilon: float, delta: float) -> float:
    """The least sigma, from above, for which N(0, sigma^2) hides which of two laws it is added to; 0.0 where none is needed.

    `law_a` and `law_b` are laws on whole numbers, `epsilon` and `delta` the promise.

    For comparison with whole-number noise. More normal noise is post-processing, so the search is monotone.

    >>> from attrpriv.numerics.laws.lattice import binomial_sum
    >>> round(continuous_gaussian_sigma(binomial_sum(0, 0.4, 4, 0.6), binomial_sum(4, 0.4, 0, 0.6), 1.0, 1e-3), 6)
    1.569241
    """
    _require_epsilon(epsilon)
    _require_delta(delta)
    pairs = (law_a, law_b), (law_b, law_a)
    if all(lattice_delta_upper(*pair, epsilon) <= delta for pair in pairs):
        return 0.0

    @cache
    def keeps(sigma: float) -> bool:
        mixed = [GaussianMixture.of(law, sigma * sigma) for law in (law_a, law_b)]
        return all(gaussian_mixture_delta_upper(p, q, epsilon) <= delta for p, q in (mixed, mixed[::-1]))

    return least_scale(keeps, abs(law_a.mean - law_b.mean) + 1.0)


def _first_broken(
    families: Sequence[Family], noise: LatticeLaw | WholeNoise, epsilon: float, delta: float
) -> tuple[Family, Block] | None:
    """A family and the worst block of it, if its bound is above delta."""
    for family in families:
        found = family.worst(noise, epsilon, delta)
        if not found.upper <= delta:
            return family, found.block
    return None


def _least_for(family: Family, block: Block, noise: Noise, epsilon: float, delta: float, most: float) -> float:
    """The least scale for one block of pairs, among floats of few digits."""
    laws = family.laws(block)

    def reached(place: int) -> float:
        scale = _scale_at(place)
        if scale > most:
            raise UsageError(
                f"delta: {delta:g} is out of reach of the accuracy of floats here. Use a larger delta, or delta 0."
            )
        return family.bound(block, added_noise(noise, scale), epsilon)

    return _scale_at(least_place(reached, delta, _place_of(abs(laws[0].mean - laws[1].mean) + 1.0), 1 << (_DIGITS - 1)))


def least_scale(keeps: Callable[[float], bool], start: float) -> float:
    """The least scale of few digits that keeps the promise; `UsageError` where no finite one does."""
    return _few_digits(1 / largest_private(lambda rate: keeps(_few_digits(1 / rate)), start=1 / start))


def _few_digits(scale: float) -> float:
    """Rounded up to `_DIGITS` binary digits, so that a search meets few different scales."""
    if not math.isfinite(scale):
        raise UsageError("calibration: no finite noise keeps the promise.")
    mantissa, exponent = math.frexp(scale)
    return math.ldexp(math.ceil(math.ldexp(mantissa, _DIGITS)), exponent - _DIGITS)


def _place_of(scale: float) -> int:
    """The floats of few digits, counted: neighbours have neighbouring numbers, and 2^(_DIGITS - 1) more is twice the scale."""
    mantissa, exponent = math.frexp(_few_digits(scale))
    return (exponent << (_DIGITS - 1)) + int(math.ldexp(mantissa, _DIGITS)) - (1 << (_DIGITS - 1))


def _scale_at(place: int) -> float:
    exponent, rest = divmod(place, 1 << (_DIGITS - 1))
    return math.ldexp(rest + (1 << (_DIGITS - 1)), exponent - _DIGITS)


def added_noise(noise: Noise, scale: float) -> LatticeLaw | WholeNoise:
    """Z, for comparing laws: its masses are computed where they are needed."""
    return noise_law("none", 0.0) if noise == "none" else WholeNoise(noise, scale)


def noise_law(noise: Noise, scale: float) -> LatticeLaw:
    """The law of Z."""
    import numpy as np

    if noise == "none":
        return LatticeLaw(0, np.ones(1), 0.0, 0.0)
    if not (math.isfinite(scale) and scale > 0):
        raise UsageError(f"scale: must be positive and finite; use noise 'none' for an exact release. Got {scale}.")
    return discrete_laplace(scale, tail=TAIL) if noise == "laplace" else discrete_gaussian(scale, tail=TAIL)


def _require_epsilon(epsilon: float) -> None:
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise UsageError(f"epsilon: must be finite and at least 0. Got {epsilon}.")


def _require_delta(delta: float) -> None:
    if not (math.isfinite(delta) and 0 < delta < 1):
        raise UsageError(f"delta: must lie strictly between 0 and 1. Got {delta}.")


# ----------------------------------------------------------------------------------------------------------------------------
# Whole-number noise against itself, moved by a whole distance: how much it hides, and how much of it a distance needs.


def shifted_delta(noise: str, scale: float, distance: int, epsilon: float) -> float:
    """H_epsilon, from above, of whole-number noise against itself moved by a whole distance."""
    if noise == "none" or not scale > 0:
        return 1.0
    if noise == "laplace":
        return 0.0 if distance / scale * COMPUTED_UP <= epsilon else 1.0
    law = discrete_gaussian(scale, tail=math.exp(-600))
    return lattice_delta_upper(law, law.shifted(distance), epsilon)


def shift_scale(distance: int, epsilon: float, delta: float, error: float) -> float | None:
    """The least whole-number Gaussian noise that hides a shift by `distance`; None where it is clearly more than `error`.

    Rounded to whole numbers a Gaussian hides hardly more than it does without, so the continuous one tells whether to look.
    """
    if distance == 0:
        return 0.0
    start = distance / gaussian_mu(epsilon, delta)
    if start > 1.25 * error + 1:
        return None
    return least_scale(lambda scale: shifted_delta("gaussian", scale, distance, epsilon) <= delta, start)
