"""E[e^(iuF); sum s = S] over n independent draws from recorded rows, by inversion in t, with a bound on every error.

    phi(t, u) = E_w e^(i t (s - c_s) + i u (q - c_q)) = 1 + D(t, u)
    J(S, u)   = 1/T sum over t = 2 pi k/T of e^(-i t (S - n c_s)) phi(t, u)^n  =  E_w[e^(iu(F - n c_q)); sum s = S mod T]

| error of J(S, u) | at most |
|---|---|
| sums S + T, S - T, ... are added | P_w(such a sum), by Chernoff's bound; none where T exceeds the largest sum |
| frequencies with |phi|^n < e^-50 are left out | e^-50 |
| D in floats | d = 2^-53 (|t| `share_s` + |u| `share_q`), which moves phi^n by n d (|phi| + d)^(n - 1) |
| phi^n from D in floats | 2^-53 (16 + 8 n |log phi|) |phi|^n |
| the sum over t in floats | 2^-53 times 8 log2 T (by FFT), or the number of terms, times the sum of |phi|^n/T |

A cell of frequencies t, of half width h around m, is left out at once if

    |phi(m)|^2 + |d/dt |phi(m)|^2| h + Var_w(s) h^2  <  e^(-100/n),

because |phi|^2 = E cos(t (s - s') + u (q - q')) with an independent copy, whose second derivative in t is at most 2 Var_w(s).
All frequencies t of one u are left out where the sum over values v of s of |E_w[e^(iuq); s = v]| is as small.

What must never change: no frequency is left out on trust, and every error is added.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from attrpriv.errors import UsageError
from attrpriv.numerics.laws.recorded_rows import Tilt, pairwise
from attrpriv.numerics.rounding import SOLVED_UP, UNIT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from attrpriv.numerics.laws.recorded_rows import Array, Whole

    Complex = NDArray[np.complex128]

# Powers below e to minus this are left out and charged.
_LEAST_POWER = 50.0
# Cells of frequencies t that are looked at first.
_CELLS = 128
# Pairs of frequencies times values of s that may be looked at in all, and entries of one array.
_MOST_TERMS = 50_000_000
_AT_ONCE = 4_000_000
# What sums further away than one turn of t may add, before it is divided by P(S).
_ALIASED = 1e-20
_MOST_TURN = 1 << 24
# No number is taken to be exact, so that its logarithm can be taken.
_LEAST_OFF = 1e-300


@dataclass(frozen=True, eq=False)
class Joint:
    """J(S, u), one line for each S and one column for each u, and how far each may be off."""

    values: Complex
    errors: Array


@dataclass(frozen=True, eq=False)
class SumInversion:
    """One tilt and the sums S that it serves, as whole numbers of `rows.s`."""

    tilt: Tilt
    n: int
    sums: Whole
    turn: int
    aliased: float

    @classmethod
    def of(cls, tilt: Tilt, n: int, sums: Whole) -> SumInversion:
        turn, largest = 1, n * tilt.rows.width
        while turn <= largest:
            aliased = _beyond(tilt, n, int(sums[0]), int(sums[-1]), turn)
            if aliased <= _ALIASED:
                return cls(tilt, n, sums, turn, aliased)
            turn *= 2
            if turn > _MOST_TURN:
                raise UsageError(
                    "records: the hidden sum takes too many values to be inverted. Round its column more coarsely."
                )
        return cls(tilt, n, sums, turn, 0.0)

    def joint(self, u: Array) -> Joint:
        """J(S, u) for all sums and frequencies."""
        values = np.zeros((len(self.sums), len(u)), dtype=np.complex128)
        errors = np.zeros((len(self.sums), len(u)))
        looked = 0
        size = max(1, min(len(u), _AT_ONCE // max(len(self.tilt.weights), min(self.turn, _CELLS))))
        for start in range(0, len(u), size):
            part = slice(start, start + size)
            inner = self._inner(u[part])
            line, k, looked = self._survivors(u[part], inner, looked)
            powers, off = self._powers(u[part], inner, line, k)
            values[:, part], errors[:, part] = self._summed(len(u[part]), line, k, powers, off)
        return Joint(values, errors)

    def _inner(self, u: Array) -> Complex:
        """E_w[e^(iu(q - c_q)) - 1; s = v] for each u and each value v of s."""
        tilt = self.tilt
        away = tilt.rows.q - tilt.centre[1]
        found = np.empty((len(u), len(tilt.values)), dtype=np.complex128)
        for k, (a, b) in enumerate(itertools.pairwise(tilt.ends)):
            found[:, k] = pairwise(less_one(u[:, None] * away[a:b]) * tilt.weights[a:b])
        return found

    def _difference(self, inner: Complex, line: Whole, t: Array) -> tuple[Complex, Complex]:
        """D(t, u) and its derivative in t, for pairs of a line of `inner` and a frequency t."""
        tilt = self.tilt
        away = tilt.values - tilt.centre[0]
        found, slope = np.empty(len(t), dtype=np.complex128), np.empty(len(t), dtype=np.complex128)
        size = max(1, _AT_ONCE // len(away))
        for start in range(0, len(t), size):
            part = slice(start, start + size)
            turned = less_one(t[part, None] * away)
            terms = tilt.of_value * turned + (1 + turned) * inner[line[part]]
            found[part] = pairwise(terms)
            slope[part] = 1j * ((terms + tilt.of_value) @ away)
        return found, slope

    def _survivors(self, u: Array, inner: Complex, looked: int) -> tuple[Whole, Whole, int]:
        """The pairs (u, t) that cannot be left out, as places in u and numbers k of t; and how many were looked at so far."""
        least = math.exp(-2 * _LEAST_POWER / self.n)
        slack = 8 * UNIT * (math.pi * self.tilt.share_s + float(u.max(initial=0.0)) * self.tilt.share_q) + 1e-13
        width = max(1, self.turn // _CELLS)
        cells = self.turn // width
        # |phi(t, u)| is at most the sum over values v of s of |E_w[e^(iuq); s = v]|, whatever t is.
        largest = np.abs(inner + self.tilt.of_value).sum(axis=1)
        lines = np.flatnonzero(largest**2 * SOLVED_UP + slack >= least)
        line = np.repeat(lines, cells)
        cell = np.tile(np.arange(cells), len(lines))
        while True:
            looked += len(cell)
            if looked * len(self.tilt.values) > _MOST_TERMS:
                raise UsageError(
                    "records: the law has too many frequencies to be computed. Ask for more noise or round the columns."
                )
            t: Array = (cell * width + (width - 1) / 2).astype(np.float64) * (2 * math.pi / self.turn)
            difference, slope = self._difference(inner, line, t)
            phi = 1 + difference
            half = (width - 1) / 2 * (2 * math.pi / self.turn)
            size = phi.real**2 + phi.imag**2
            change = 2 * np.abs(phi.real * slope.real + phi.imag * slope.imag) * half + self.tilt.spread[0] * half**2
            there = size + change * SOLVED_UP + slack >= least
            line, cell = line[there], cell[there]
            if width == 1:
                return line, cell, looked
            width //= 2
            line, cell = np.repeat(line, 2), np.repeat(cell * 2, 2)
            cell[1::2] += 1

    def _powers(self, u: Array, inner: Complex, line: Whole, k: Whole) -> tuple[Complex, Array]:
        """phi^n e^(i t (n c_s - S_0)) for pairs, S_0 the whole number nearest to n c_s; and how far each may be off."""
        n, tilt = self.n, self.tilt
        centred = np.where(2 * k > self.turn, k - self.turn, k)
        t: Array = centred.astype(np.float64) * (2 * math.pi / self.turn)
        difference, _ = self._difference(inner, line, t)
        log_size, angle = log_of(difference)
        rest = n * tilt.centre[0] - self.middle
        powers = np.exp(n * log_size + 1j * (n * angle + t * rest))
        size = np.abs(powers)
        off = UNIT * (np.abs(t) * tilt.share_s + np.abs(u[line]) * tilt.share_q) + _LEAST_OFF
        moved = n * off * np.exp((n - 1) * np.log(np.exp(log_size) + off)) if n > 1 else off
        rounded = UNIT * (16 + 8 * n * (np.where(size > 0, -log_size, 0.0) + np.abs(angle)) + 8 * np.abs(t * rest)) * size
        return powers, moved * SOLVED_UP + rounded

    @property
    def middle(self) -> int:
        return round(self.n * self.tilt.centre[0])

    def _summed(self, lines: int, line: Whole, k: Whole, powers: Complex, off: Array) -> tuple[Complex, Array]:
        """The sum over t for each sum S and each u."""
        turn = self.turn
        sizes = np.bincount(line, np.abs(powers) / turn, minlength=lines)
        lost = np.bincount(line, off / turn, minlength=lines) + self.aliased + math.exp(-_LEAST_POWER)
        places = (self.sums - self.middle) % turn
        if len(self.sums) * len(k) <= 4 * lines * turn:
            found = np.zeros((len(self.sums), lines), dtype=np.complex128)
            roots = np.exp(-2j * math.pi / turn * np.arange(turn))
            for row, place in enumerate(places):
                terms = powers * roots[k * place % turn]
                found[row] = np.bincount(line, terms.real, minlength=lines) + 1j * np.bincount(
                    line, terms.imag, minlength=lines
                )
            found /= turn
            units = float(np.bincount(line, minlength=lines).max(initial=0)) + 16
        else:
            found = np.empty((len(self.sums), lines), dtype=np.complex128)
            size = max(1, _AT_ONCE // turn)
            for start in range(0, lines, size):
                there = (line >= start) & (line < start + size)
                filled = np.zeros((min(size, lines - start), turn), dtype=np.complex128)
                filled[line[there] - start, k[there]] = powers[there]
                found[:, start : start + size] = (np.fft.fft(filled, axis=1)[:, places] / turn).T
            units = 8 * math.log2(turn) + 16
        return found, np.broadcast_to(lost + units * UNIT * sizes, found.shape)


def less_one(x: Array) -> Complex:
    """e^(ix) - 1, accurately for small x."""
    half = np.sin(x / 2)
    found = np.empty(x.shape, dtype=np.complex128)
    found.real = -2 * half * half
    found.imag = np.sin(x)
    return found


def log_of(less: Complex) -> tuple[Array, Array]:
    """The logarithm of the size of 1 + z, and its angle, from z: off by some units of themselves, and by what z is off.

    Of z near -1 the square of the size would be off by a unit of 1, which the size itself is not: 1 + z is exact there.
    """
    one = 1 + less.real
    with np.errstate(divide="ignore"):
        near_one = 0.5 * np.log1p(np.maximum(2 * less.real + less.real**2 + less.imag**2, -1.0))
        found = np.where(near_one > -0.5, near_one, np.log(np.hypot(one, less.imag)))
    return found, np.arctan2(less.imag, one)


def _beyond(tilt: Tilt, n: int, first: int, last: int, turn: int) -> float:
    """At most P_w(sum s is a turn or more above the first sum, or as far below the last one)."""
    spread = math.sqrt(n * tilt.spread[0])
    if spread == 0:
        return 0.0
    steps = 2.0 ** (np.arange(-8, 33) / 4) / spread
    total = 0.0
    for sign, place in ((1.0, first + turn), (-1.0, last - turn)):
        away = sign * (place - n * tilt.centre[0])
        moments = tilt.log_moments(sign * steps, np.zeros(len(steps)))
        total += math.exp(min(0.0, float(np.min(n * moments - steps * away)) + 1e-6))
    return total
