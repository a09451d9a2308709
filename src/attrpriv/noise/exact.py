"""Exact noise on a public grid.

A real value is rounded to the grid and integer noise from OpenDP's exact samplers is added to its number of steps, all in
integers and fractions: no float is ever added to a value of the table. The grid is a power of two, 2^-32 of the scale or
finer, and depends on the scale alone.

    output = granularity * ( round(value / granularity) + Z ),    Z discrete Gaussian or Laplace of scale/granularity steps

What must never change: randomness comes from the operating system, and there is no seed.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from secrets import randbelow, randbits
from typing import Any

from attrpriv.errors import CertificateError, UsageError

GRID_BITS = 32
# 64-bit integers hold 37 standard deviations of this many steps.
MOST_BITS = 56


def granularity(scale: float) -> float:
    """The grid that belongs to a noise scale: a power of two, between 2^-33 and 2^-32 of it.

    >>> granularity(1.5) == 2.0**-32
    True
    """
    if not (math.isfinite(scale) and scale > 0):
        raise UsageError(f"scale: must be finite and positive. Got {scale}.")
    exponent = math.frexp(scale)[1] - 1
    step = math.ldexp(1.0, exponent - GRID_BITS)
    if step < 2.0**-1000 or scale > 2.0**1000:
        raise UsageError(f"scale: must be between 1e-290 and 1e300. Got {scale}.")
    return step


def add_gaussian(value: Fraction, scale: float) -> Fraction:
    """The value on the grid plus discrete Gaussian noise of the given standard deviation."""
    step = granularity(scale)
    return _on_grid(value, step, int(_gaussian(scale / step)(0)))


def add_gaussian_on(value: Fraction, scale: float, step: float) -> Fraction:
    """The same on a public grid, for a scale that must stay secret: its own grid would tell it."""
    if not (0 < step <= granularity(scale) and scale / step <= 2.0**MOST_BITS):
        raise CertificateError("noise: the grid must be as fine as the noise asks for, and not finer than 64 bits hold.")
    return _on_grid(value, step, int(_gaussian(scale / step)(0)))


def add_filled_gaussian(value: Fraction, scale: float, digits: int) -> Fraction:
    """The same as `add_gaussian`, somewhere within its step of the grid: that many more random bits fill the step evenly."""
    inside = Fraction(2 * randbits(digits) + 1, 2 ** (digits + 1)) - Fraction(1, 2)
    return add_gaussian(value, scale) + inside * Fraction(granularity(scale))


def add_laplace(value: Fraction, scale: float) -> Fraction:
    """The value on the grid plus discrete Laplace noise of the given scale."""
    step = granularity(scale)
    return _on_grid(value, step, int(_laplace(scale / step)(0)))


def whole_gaussian(scale: float) -> int:
    """A draw of the discrete Gaussian on the whole numbers: P(k) proportional to e^(-k^2 / 2 scale^2)."""
    return int(_gaussian(scale)(0))


def whole_laplace(scale: float) -> int:
    """A draw of the discrete Laplace law on the whole numbers: P(k) proportional to e^(-|k| / scale)."""
    return int(_laplace(scale)(0))


def correlated_noise(factor: Sequence[Sequence[float]], bits: int, variance: float = 1.0) -> list[Fraction]:
    """A draw of `factor` times independent normals of this variance, each on the grid 2^-bits, with no rounding at all.

    The factor is a public matrix, one row for each value; its floats are taken as the rational numbers they are. The variance,
    from 0 to 1, may be secret: neither the grid nor the factor depends on it.
    """
    if not 0 < bits <= MOST_BITS:
        raise UsageError(f"bits: must be from 1 to {MOST_BITS}. Got {bits}.")
    draws = len(factor[0]) if factor else 0
    step = Fraction(1, 2**bits)
    steps = math.sqrt(variance) * 2**bits
    units = [(int(_gaussian(steps)(0)) if steps else 0) * step for _ in range(draws)]
    return [sum((Fraction(weight) * unit for weight, unit in zip(row, units, strict=True)), Fraction(0)) for row in factor]


def _on_grid(value: Fraction, step: float, noise: int) -> Fraction:
    exact = Fraction(step)
    return (round(Fraction(value) / exact) + noise) * exact


@lru_cache(maxsize=64)
def _gaussian(steps: float) -> Any:
    measurements, domain, metric = _opendp()
    sampler = measurements.make_gaussian(domain, metric, scale=steps)
    # What the sampler itself says of its law: a shift of one step costs 1/(2 scale^2) in zero-concentrated privacy.
    _require_scale(sampler.map(1) * 2 * steps * steps)
    return sampler


@lru_cache(maxsize=64)
def _laplace(steps: float) -> Any:
    measurements, domain, metric = _opendp()
    sampler = measurements.make_laplace(domain, metric, scale=steps)
    _require_scale(sampler.map(1) * steps)
    return sampler


def _require_scale(ratio: float) -> None:
    if not abs(ratio - 1) < 1e-9:
        raise CertificateError("noise: the sampler does not have the scale it was asked for. Nothing was released.")


def _opendp() -> tuple[Any, Any, Any]:
    import opendp.domains as domains
    import opendp.measurements as measurements
    import opendp.metrics as metrics
    from opendp.mod import enable_features

    enable_features("contrib")
    return measurements, domains.atom_domain(T="i64"), metrics.absolute_distance(T="i64")


# ----------------------------------------------------------------------------------------------------------------------------
# Draws from laws of whole-number weights, without rounding: one uniform whole number and a look-up.
#
#     draw          o with probability weights[o] / sum(weights)
#     coupled_draw  u uniform in the slice of f among the source's; the o whose slice among the target's holds u
#
# | symbol | here |
# |---|---|
# | f, o | positions in the lists, from 0 |
# | slice of f | [sum source[:f], sum source[:f + 1]); both lists have the same sum N |
#
# Drawn with f from source/N, the coupled output has the law target/N, and of all couplings of the two the least E |f - o|.
# An empty slice stands for the point where it would be: the whole number at the end of the slices before it, N - 1 at most.
#
# What must never change: randomness is the operating system's, through `secrets`; there is no seed, no float, and no rejection.


def draw(weights: Sequence[int]) -> int:
    """A position with probability in proportion to its weight.

    >>> draw([0, 0, 5, 0])
    2
    """
    total = _total("weights", weights)
    return _holder(weights, randbelow(total))


def coupled_draw(source: Sequence[int], target: Sequence[int], position: int) -> int:
    """The position in the target that the monotone coupling gives to a position in the source.

    >>> [coupled_draw([2, 0, 2], [1, 0, 3], 1), coupled_draw([2, 0, 2], [1, 0, 3], 2)]
    [2, 2]
    """
    total = _total("source", source)
    if _total("target", target) != total:
        raise UsageError("target: must have the same sum as the source.")
    if not 0 <= position < len(source):
        # The position is the count of a table, so it is not named.
        raise UsageError("count: must be a value that the assumption allows.")
    begin, width = sum(source[:position]), source[position]
    return _holder(target, begin + randbelow(width) if width else min(begin, total - 1))


def coupled_weights(source: Sequence[int], target: Sequence[int], position: int) -> list[int]:
    """The law of `coupled_draw`, as weights: how much of each of the target's slices lies in that of the position.

    >>> coupled_weights([2, 0, 2], [1, 0, 3], 0), coupled_weights([2, 0, 2], [1, 0, 3], 2)
    ([1, 0, 1], [0, 0, 2])
    """
    begin, width = sum(source[:position]), source[position]
    if not width:
        held = _holder(target, min(begin, sum(source) - 1))
        return [int(k == held) for k in range(len(target))]
    ends = list(accumulate(target))
    return [max(0, min(end, begin + width) - max(end - size, begin)) for end, size in zip(ends, target, strict=True)]


def _holder(slices: Sequence[int], point: int) -> int:
    """The position whose slice holds the point."""
    return bisect_right(list(accumulate(slices)), point)


def _total(name: str, weights: Sequence[int]) -> int:
    if not all(type(weight) is int and weight >= 0 for weight in weights) or not sum(weights) > 0:
        raise UsageError(f"{name}: must be whole numbers at least 0, not all of them 0.")
    return sum(weights)
