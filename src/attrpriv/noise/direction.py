"""The first coordinates of a uniform direction in many dimensions.

    z = (g_1, ..., g_k) / sqrt(g_1^2 + ... + g_k^2 + c)        g normal, c chi-square with m - k degrees of freedom

is distributed as the first k coordinates of a uniform unit vector in m dimensions. The normals come from OpenDP's exact sampler
on a grid of 2^-56; c is the sum of (m-k)/2 exponentials -2 log U, and of one more squared normal if m - k is odd, with U from
53 bits of the operating system.

How exact. Where U stands for the cell of 2^-53 around it, -log U is off by at most 2^-53/U, 38 * 2^-53 on average, and its
rounding in floats adds less than 2 * 2^-53 (1 - log U); the average of (m-k)/2 of them is no worse. So c is off by a share of
42 * 2^-53 on average, and z, which goes with its square root, by half of that: `RELATIVE_ERROR`, 2^-44, is thirty times more,
which also covers the grid of the normals and that few terms may all be small (m - k >= LEAST_REST).

What must never change: randomness is the operating system's; there is no seed.
"""

from __future__ import annotations

import math
import os
from fractions import Fraction
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError
from attrpriv.noise.exact import MOST_BITS, whole_gaussian

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RELATIVE_ERROR = 2.0**-44
LEAST_REST = 10
_CHUNK = 2**16
# Of square roots: whole numbers of this many binary digits.
ROOT_BITS = 160


def direction(coordinates: int, dimension: int) -> tuple[Fraction, ...]:
    """The first `coordinates` of a uniform unit vector in this dimension."""
    if not (coordinates >= 1 and dimension - coordinates >= LEAST_REST):
        raise UsageError(f"dimension: must exceed the coordinates by {LEAST_REST} or more. Got {dimension}, {coordinates}.")
    normals = [_normal() for _ in range(coordinates)]
    squared = sum((normal**2 for normal in normals), Fraction(_chi_squared(dimension - coordinates)))
    length = root(squared)
    return tuple(normal / length for normal in normals)


def root(value: Fraction) -> Fraction:
    """The square root of a number that is not negative, to about 160 binary digits and from below.

    >>> float(root(Fraction(2))) == math.sqrt(2)
    True
    """
    if value < 0:
        raise UsageError("root: of a negative number.")
    top, bottom = value.numerator, value.denominator
    shift = max(0, 2 * ROOT_BITS - top.bit_length() + bottom.bit_length())
    shift += shift % 2
    return Fraction(math.isqrt((top << shift) // bottom), 1 << (shift // 2))


def _normal() -> Fraction:
    return Fraction(whole_gaussian(2.0**MOST_BITS), 2**MOST_BITS)


def _chi_squared(freedom: int) -> float:
    """A chi-square draw with this many degrees of freedom."""
    import numpy as np

    halves = []
    for start in range(0, freedom // 2, _CHUNK):
        size = min(_CHUNK, freedom // 2 - start)
        halves.append(float(np.sum(_exponentials(np.frombuffer(os.urandom(8 * size), dtype=np.uint64)))))
    return 2 * math.fsum(halves) + (float(_normal()) ** 2 if freedom % 2 else 0.0)


def _exponentials(bits: NDArray[np.uint64]) -> NDArray[np.float64]:
    """-log U, U = (b + 1/2) / 2^53 for the upper 53 bits b; near 1 by way of 1 - U, which is exact."""
    import numpy as np

    upper = (bits >> np.uint64(11)).astype(np.float64)
    left = (2.0**53 - upper - 0.5) * 2.0**-53
    near_one = -np.log1p(-np.minimum(left, 0.5))
    return np.asarray(np.where(left < 0.5, near_one, -np.log((upper + 0.5) * 2.0**-53)), dtype=np.float64)
