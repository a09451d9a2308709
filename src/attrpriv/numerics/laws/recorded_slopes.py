"""How the density of a noisy sum changes within each bin: what rounding to bins can hide of an answer.

    density    d(y) = 1/B sum over u of c(u) e^(-iuy)       in bins: y and d in units of a bin, B bins
    Taylor     |d'(y) - d'(m)|  <=  sum over k = 2..4 of |d^(k)(m)| 2^-(k-1)/(k-1)! + M 2^-4/4!     for |y - m| <= 1/2
               m the middle of the bin,   M = 1/B sum over u of |u|^5 |c(u)|

So g = d - e^eps d* has a Lipschitz constant L = |d'(m) - e^eps d*'(m)| + the two bounds. With its mean G over the bin,

    integral of g_+  <=  G_+ + min(L/6, max(0, L - |G|)):

g is within L of G, and the mean of |g - G| is at most L times that of |x - y| over the bin, L/3, of which half lies above G.

What must never change: bounds are rounded up; errors of the transform are added pointwise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from attrpriv.numerics.rounding import SOLVED_UP, UNIT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from attrpriv.numerics.laws.recorded_rows import Array

    Complex = NDArray[np.complex128]


_ORDER = 4


@dataclass(frozen=True, eq=False)
class Slopes:
    """Of each law (a line) in each bin: d' in its middle, and how far d' may be from that anywhere in the bin."""

    middle: Array
    bend: Array


def bin_slopes(turned: Complex, wrong: Array, turns: Array, parts: int, bins: int, left: float) -> Slopes:
    """The slopes in units of a bin.

    `turned` are the coefficients at the frequencies `turns` (per bin), each off by `wrong`, for the middles of a number of
    `parts` of each bin; `left` is at least the sum of |u|^k |c(u)|, k = 1 to 5, over the frequencies that are left out, on both
    sides.
    """
    fine, sizes = bins * parts, np.abs(turned)
    units = (8 * math.log2(fine) + 32) * UNIT
    if parts > 1:  # the middle of a bin is where two parts meet
        turned = turned * np.exp(0.5j / parts * turns)
    bend = np.zeros((len(turned), bins))
    middle = bend
    for k in range(1, _ORDER + 1):
        full = np.zeros((len(turned), fine // 2 + 1), dtype=np.complex128)
        full[:, : len(turns)] = turned * (1j * turns) ** k
        found = np.fft.irfft(full, fine, axis=1)[:, max(0, parts // 2 - 1) :: parts] * parts
        off = (_summed(wrong + units * (1 + turns) * sizes, turns**k) + left) / bins
        share = 0.5 ** (k - 1) / math.factorial(k - 1)
        bend = bend + off[:, None] * share
        if k == 1:
            middle = found
        else:
            bend += np.abs(found) * share
    rest = (_summed(sizes + wrong, turns ** (_ORDER + 1)) + left) / bins
    bend += (rest * 0.5**_ORDER / math.factorial(_ORDER))[:, None]
    return Slopes(middle, bend * SOLVED_UP)


def _summed(sizes: Array, weights: Array) -> Array:
    """Over the frequencies of both signs; that of 0 has no weight."""
    return np.asarray(2 * (sizes @ weights))


def powers_left_out(sigma: float, base: float, last: float) -> float:
    """At least the sum of max(u, u^5) e^(-(sigma u)^2/2) over the frequencies u = base l beyond `last`, on both sides.

    With x = sigma last at least 3, u^5 e^(-(sigma u)^2/2) falls faster than e^(-(sigma^2 last - 5/last)(u - last)).
    """
    falls = sigma * sigma * last - 5 / last
    if not falls > 0:
        return math.inf
    largest = max(last, last**5) * math.exp(-((sigma * last) ** 2) / 2)
    return 2 * largest / -math.expm1(-falls * base) * SOLVED_UP
