"""The law of a noisy sum over rows like the recorded ones, given the secret: probabilities of bins, with a certified error.

    Y = F + shift + N(0, sigma^2),  rounded to a multiple of `step`;      F = the sum of q over n independent recorded rows
    P(Y in bin j | secret) = 1/B sum over u of e^(-iu y_j) E[e^(iuF) | secret] e^(iu shift - (sigma u)^2/2) sinc(u step/2)

over the frequencies u = 2 pi l/(B step), l = 0, +-1, +-2, ..., on a window of B bins.

| the secret | E[e^(iuF) | secret] |
|---|---|
| "sum": sum of s = S | J(S, u)/J(S, 0) of `recorded_frequencies`; at the two ends, the rows that attain them alone |
| "share": a rows with s = 1 of 0 and 1 | psi_1^a psi_0^(n - a), psi_v(u) = E[e^(iuq) | s = v] |

| error of one law, in L1 over all bins of the line | at most |
|---|---|
| answers outside of the window, which are folded into it | 2 P(outside); each side at most 1e-14 (Chernoff in q and s) |
| frequencies l > L are left out | 2 sum over l > L of e^(-(sigma u)^2/2): |E[e^(iuF) | secret]| <= 1 whatever the column is |
| an error e(u) of the transform | the root of the sum over l of |e(u)|^2 (Cauchy and Schwarz, Parseval) |
| of a quotient J(S, u)/J(S, 0) | (e(S, u) + e(S, 0))/J(S, 0), because the true quotient is at most 1 |
| the last Fourier transform in floats | 2^-53 8 log2(B) times the sum of the coefficients' sizes |

What must never change: `eta` is at least the L1 error of its law. A secret whose probability is not proved to be positive is
not given a law: it is void (no n rows have it, which is proved in whole numbers), or all is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

import numpy as np

from attrpriv.errors import UsageError
from attrpriv.numerics.laws.recorded_frequencies import SumInversion, less_one, log_of
from attrpriv.numerics.laws.recorded_rows import RecordedRows, Tilt, pairwise, spans
from attrpriv.numerics.laws.recorded_slopes import Slopes, bin_slopes, powers_left_out
from attrpriv.numerics.rounding import SOLVED_UP, SUMMED_UP, UNIT

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from attrpriv.numerics.laws.recorded_rows import Array, Whole

    Complex = NDArray[np.complex128]

# The chance of an answer beyond one end of the window.
_OUTSIDE = 1e-14
# Frequencies u with sigma u above this are left out.
_LAST = 8.2
_MOST_BINS = 1 << 22
_LARGEST_BIN = 2.0**48
_AT_ONCE = 1 << 22
_MOST_ENTRIES = 1 << 27
# The largest error with which a probability of a secret is of use.
_SURE = 1e-3


@dataclass(frozen=True, eq=False)
class NoisyLaws:
    """Laws on common bins: `probabilities[k, j]` is of the answer `bins[j]` * `step`. Made by `noisy_laws`.

    Line k is for `secrets[k]`; `eta[k]` is at least its L1 distance from the true law, over all bins. `void` are secrets
    that no n rows have. `slopes` are there for answers that are not rounded: how the density changes within each bin.
    """

    secrets: Array
    bins: Whole
    step: float
    probabilities: Array
    eta: Array
    void: tuple[float, ...] = ()
    slopes: Slopes | None = None

    @property
    def largest_eta(self) -> float:
        return float(self.eta.max(initial=0.0))


@dataclass(frozen=True, eq=False)
class _Run:
    """Secrets that are computed together: their places, and what gives their transform."""

    places: Whole
    centres: Array
    widths: tuple[Array, Array]
    source: _Transform


class _Transform:
    """Gives E[e^(iu(F - centre)) | secret] for the secrets of a run, and how far each may be off."""

    def at(self, u: Array) -> tuple[Complex, Array]:
        raise NotImplementedError


def noisy_laws(
    rows: RecordedRows,
    n: int,
    secrets: ArrayLike,
    sigma: ArrayLike,
    step: float,
    shift: ArrayLike | None = None,
    secret: Literal["sum", "share"] = "sum",
    *,
    rounded: bool = True,
) -> NoisyLaws:
    """The law of the rounded noisy sum of `n` draws from `rows`; `secret`: a sum of s, or how many of n have s = 1 ("share").

    `sigma`, `step` and `shift` are in units of the column q, `secrets` in units of s; sigma and shift may be one number or one
    for each secret. Not `rounded`: bins are for looking at an answer that is released as it is, and the laws have `slopes`.

    >>> laws = noisy_laws(RecordedRows.of([0, 0, 1, 1], [0, 1, 1, 2]), 20, [8, 12], 2.0, 1.0)
    >>> [round(float(law @ laws.bins), 6) for law in laws.probabilities], laws.largest_eta < 1e-11
    ([18.0, 22.0], True)
    """
    wanted = np.atleast_1d(np.asarray(secrets, dtype=np.float64))
    noise, moved = (
        _one_each(name, value, wanted) for name, value in (("sigma", sigma), ("shift", 0.0 if shift is None else shift))
    )
    if not (n >= 1 and n < 2**31 and wanted.ndim == 1 and len(wanted) > 0):
        raise UsageError("records: needs one or more rows, fewer than 2^31, and one or more secrets.")
    if not (bool((noise > 0).all()) and math.isfinite(step) and step > 0):
        raise UsageError("records: sigma and step must be above 0.")
    unit = rows.spacing[1]
    per = float(unit)
    width = float(Fraction(step) / unit)
    if secret == "share":
        known, void, runs = _share_runs(rows, n, wanted, noise / per)
    else:
        known, void, runs = _sum_runs(rows, n, wanted, noise / per)
    if not runs:
        return NoisyLaws(wanted[:0], np.zeros(0, np.int64), step, np.zeros((0, 0)), np.zeros(0), void)
    return _on_bins(runs, wanted[known], noise[known] / per, moved[known] / per, width, step, void, rounded=rounded)


def _one_each(name: str, value: ArrayLike, wanted: Array) -> Array:
    found = np.asarray(value, dtype=np.float64)
    if not bool(np.isfinite(found).all()) or found.shape not in ((), wanted.shape):
        raise UsageError(f"{name}: must be one finite number, or one for each secret.")
    return np.broadcast_to(found, wanted.shape)


# ---------------------------------------------------------------------------------------------------------- a sum as the secret


def _sum_runs(rows: RecordedRows, n: int, wanted: Array, noise: Array) -> tuple[Whole, tuple[float, ...], list[_Run]]:
    reduced = [rows.reduced(n, float(one)) for one in wanted]
    inside = sorted((one, place) for place, one in enumerate(reduced) if one is not None)
    if len({one for one, _ in inside}) != len(inside):
        raise UsageError("secrets: must differ from each other.")
    places = np.array([place for _, place in inside], dtype=np.int64)
    sums = np.array([one for one, _ in inside], dtype=np.int64)
    empty = {place for place, one in enumerate(reduced) if one is None}
    ends = {0: 0, n * rows.width: rows.width}
    middle = [k for k, total in enumerate(sums.tolist()) if total not in ends]
    at_ends = [k for k, total in enumerate(sums.tolist()) if total in ends]
    runs = [_end_run(rows.only(ends[int(sums[k])]), n, places[k : k + 1], noise) for k in at_ends]
    for span in spans([int(sums[k]) for k in middle], n, rows):
        chosen = np.array([middle[k] for k in span], dtype=np.int64)
        for part, run in _tilted(rows, n, sums[chosen], places[chosen], noise):
            if run is None:
                empty.update(int(place) for place in part)
            else:
                runs.append(run)
    # From both ends inwards: laws that are out of reach are far out, and are met before all others are computed.
    runs = [runs[k] for k in sorted(range(len(runs)), key=lambda k: min(k, len(runs) - 1 - k))]
    known = np.concatenate([run.places for run in runs]) if runs else np.zeros(0, np.int64)
    return known, tuple(float(wanted[place]) for place in sorted(empty)), runs


def _end_run(rows: RecordedRows, n: int, places: Whole, noise: Array) -> _Run:
    """All rows have the same s: independent draws of q alone."""
    side = _Side.of(rows)
    source = _Powers((side,), np.array([[n]]))
    return _Run(places, np.array([n * side.tilt.centre[1]]), _reaches((side,), np.array([[n]]), noise[places]), source)


def _tilted(rows: RecordedRows, n: int, sums: Whole, places: Whole, noise: Array) -> Iterator[tuple[Whole, _Run | None]]:
    """The run of one tilt; a secret that it is not sure of gets a tilt of its own, or the proof that it is void."""
    inversion = SumInversion.of(Tilt.at(rows, float(sums[0] + sums[-1]) / (2 * n)), n, sums)
    joint = inversion.joint(np.zeros(1))
    chance, off = joint.values[:, 0].real, joint.errors[:, 0]
    sure = off < _SURE * chance
    if bool(sure.any()):
        held = SumInversion(inversion.tilt, n, sums[sure], inversion.turn, inversion.aliased)
        source = _Quotients(held, chance[sure], off[sure])
        widths = _given_reaches(held, noise[places[sure]], chance[sure] - off[sure])
        yield places[sure], _Run(places[sure], np.full(int(sure.sum()), n * held.tilt.centre[1]), widths, source)
    for k in np.flatnonzero(~sure):
        alone = slice(k, k + 1)
        if len(sums) > 1:
            yield from _tilted(rows, n, sums[alone], places[alone], noise)
        else:
            _require_void(rows, n, int(sums[k]))
            yield places[alone], None


def _require_void(rows: RecordedRows, n: int, total: int) -> None:
    """Proves that no n rows have this sum, counted from the nearer end."""
    turned = RecordedRows(rows.width - rows.s, rows.q, rows.counts, 0, 1, rows.spacing)
    side, near = (rows, total) if 2 * total <= n * rows.width else (turned, n * rows.width - total)
    if near > _MOST_BINS or bool(side.attainable(n, near)[near]):
        raise UsageError("records: a value of the secret is possible, and its law is out of reach of floats. Narrow its range.")


@dataclass(frozen=True, eq=False)
class _Quotients(_Transform):
    inversion: SumInversion
    chance: Array
    off: Array

    def at(self, u: Array) -> tuple[Complex, Array]:
        joint = self.inversion.joint(u)
        return joint.values / self.chance[:, None], (joint.errors + self.off[:, None]) / self.chance[:, None] * SUMMED_UP


def _given_reaches(inversion: SumInversion, noise: Array, chance: Array) -> tuple[Array, Array]:
    """How far below and above the centre an answer is with a chance of at most `_OUTSIDE`, given each sum."""
    tilt, n = inversion.tilt, inversion.n
    var_s, var_q, both = tilt.spread
    away = inversion.sums - n * tilt.centre[0]
    residual = max(var_q - (both * both / var_s if var_s > 0 else 0.0), 0.0)
    size = math.sqrt(n * residual + float(noise.min()) ** 2)
    leans = np.repeat(2.0 ** (np.arange(-15, 22) / 3), 13) / size
    tilts = np.tile(np.linspace(-3, 3, 13), len(leans) // 13) / math.sqrt(n * var_s) if var_s > 0 else np.zeros(len(leans))
    sides = []
    for sign in (-1.0, 1.0):
        of_s = tilts - (sign * leans * both / var_s if var_s > 0 else 0.0)
        moments = n * tilt.log_moments(of_s, sign * leans)
        best = np.full(len(away), math.inf)
        for lean, mu, moment in zip(leans, of_s, moments, strict=True):
            power = moment + (lean * noise) ** 2 / 2 - mu * away - np.log(chance) - math.log(_OUTSIDE) + 1e-6
            np.minimum(best, np.maximum(power, 0.0) / lean, out=best)
        sides.append(best * SOLVED_UP)
    return sides[0], sides[1]


# -------------------------------------------------------------------------------------------------- how many rows as the secret


@dataclass(frozen=True, eq=False)
class _Side:
    """Rows of one kind, drawn independently."""

    tilt: Tilt

    @classmethod
    def of(cls, rows: RecordedRows) -> _Side:
        return cls(Tilt.at(rows, 0.0))

    def log_transform(self, u: Array) -> tuple[Array, Array, Array, Array]:
        """The logarithm of the size of psi = E[e^(iu(q - centre))], its angle, log(|psi| + d) and d/(|psi| + d): off by d."""
        away = self.tilt.rows.q - self.tilt.centre[1]
        pieces = np.array_split(u, len(u) * len(away) // _AT_ONCE + 1)
        found = np.concatenate([pairwise(less_one(piece[:, None] * away) * self.tilt.weights) for piece in pieces])
        log_size, angle = log_of(found)
        off = UNIT * np.abs(u) * self.tilt.share_q + 1e-300
        most = np.exp(log_size) + off
        return log_size, angle, np.log(most), off / most


@dataclass(frozen=True, eq=False)
class _Powers(_Transform):
    """Products of powers: `rows[k]` says how many rows of each side the secret k has.

    If |a - b| <= d for each of n factors, the products differ by at most the sum of d/(|b| + d), times the product of |b| + d.
    """

    sides: Sequence[_Side]
    rows: Whole

    def at(self, u: Array) -> tuple[Complex, Array]:
        shape = (len(self.rows), len(u))
        log, turn, most, share = (np.zeros(shape) for _ in range(4))
        for side, many in zip(self.sides, self.rows.T, strict=True):
            some = many > 0
            for total, part in zip((log, turn, most, share), side.log_transform(u), strict=True):
                total[some] += many[some, None] * part
        values = np.exp(log) * np.exp(1j * turn)
        size = np.exp(log)
        units = 16 + 8 * self.rows.sum(axis=1, keepdims=True) * math.pi + 8 * np.where(size > 0, -log, 0.0)
        return values, (share * np.exp(most) + UNIT * units * size) * SOLVED_UP


def _share_runs(rows: RecordedRows, n: int, wanted: Array, noise: Array) -> tuple[Whole, tuple[float, ...], list[_Run]]:
    at = {rows.least + rows.divisor * int(value) for value in np.unique(rows.s)}
    if not at <= {0, 1} or rows.spacing[0] != 1:
        raise UsageError("records: a share is of rows with s = 1 among rows with s = 0 or 1.")
    sides = {value: _Side.of(rows.only((value - rows.least) // rows.divisor)) for value in sorted(at)}
    counts = np.rint(wanted).astype(np.int64)
    possible = (counts == wanted) & (counts >= 0) & (counts <= n)
    if 1 not in at:
        possible &= counts == 0
    if 0 not in at:
        possible &= counts == n
    places = np.flatnonzero(possible)
    void = tuple(float(one) for one in wanted[~possible])
    if not len(places):
        return places, void, []
    many = np.stack([counts[places] if value == 1 else n - counts[places] for value in sides], axis=1)
    chosen = tuple(sides.values())
    centres = (many * np.array([side.tilt.centre[1] for side in chosen])).sum(axis=1)
    return places, void, [_Run(places, centres, _reaches(chosen, many, noise[places]), _Powers(chosen, many))]


def _reaches(sides: Sequence[_Side], many: Whole, noise: Array) -> tuple[Array, Array]:
    spread = np.sqrt((many * np.array([side.tilt.spread[1] for side in sides])).sum(axis=1) + noise**2)
    leans = np.unique((2.0 ** (np.arange(-15, 22) / 3))[:, None] / np.array([spread.min(), spread.max()]))
    found = []
    for sign in (-1.0, 1.0):
        moments = np.stack([side.tilt.log_moments(np.zeros(len(leans)), sign * leans) for side in sides])
        with np.errstate(invalid="ignore"):
            power = many @ moments + (leans * noise[:, None]) ** 2 / 2 - math.log(_OUTSIDE) + 1e-6
        reach = np.where(np.isnan(power), math.inf, np.maximum(power, 0.0) / leans)
        found.append(reach.min(axis=1) * SOLVED_UP)
    return found[0], found[1]


# ------------------------------------------------------------------------------------------------------------- onto common bins


def _on_bins(
    runs: Sequence[_Run],
    secrets: Array,
    noise: Array,
    moved: Array,
    width: float,
    step: float,
    void: tuple[float, ...],
    *,
    rounded: bool,
) -> NoisyLaws:
    """All laws on the bins that hold every one of them, but for chances that are charged."""
    centres = np.concatenate([run.centres for run in runs]) + moved
    below, above = (np.concatenate([run.widths[k] for run in runs]) for k in (0, 1))
    low, high = float((centres - below).min()), float((centres + above).max())
    # Far from 0 floats do not tell bins apart, and a window would be too narrow without a word.
    told = max(abs(low), abs(high)) <= width * _LARGEST_BIN
    if not (math.isfinite(low) and math.isfinite(high) and told and (high - low) / width <= _MOST_BINS):
        raise UsageError(
            "records: answers lie too far apart for the step. Cap the column, or take more noise and a larger step."
        )
    first = math.floor(low / width) - 1
    bins = 1 << math.ceil(math.log2(math.ceil(high / width) + 2 - first))
    window = bins * width
    base = 2 * math.pi / window
    sigma = float(noise.min())
    last = max(1, math.ceil(_LAST / (sigma * base)))
    parts = 1 << max(0, math.ceil(math.log2((2 * last + 2) / bins)))
    if bins * parts > _MOST_BINS or bins * len(secrets) > _MOST_ENTRIES:
        raise UsageError("records: too many bins for so many secrets. Take more noise, a larger step or a narrower range.")
    u: Array = base * np.arange(last + 1, dtype=np.float64)
    left_out = 2 * math.exp(-((sigma * u[-1]) ** 2) / 2) / (sigma * base * sigma * u[-1])
    fine = bins * parts
    shown = np.sinc(u * (width / parts) / (2 * math.pi))
    found = np.empty((len(secrets), bins))
    slopes = None if rounded else Slopes(np.empty((len(secrets), bins)), np.empty((len(secrets), bins)))
    beyond = powers_left_out(sigma / width, base * width, float(u[-1]) * width)
    eta = np.empty(len(secrets))
    start = 0
    edge = (first - 0.5) * width + 0.5 * width / parts
    for run in runs:
        values, errors = run.source.at(u)
        size = max(1, _AT_ONCE // fine)
        for k in range(0, len(run.places), size):
            inner = slice(k, min(k + size, len(run.places)))
            outer = slice(start + inner.start, start + inner.stop)
            place = centres[outer] - edge
            smooth = np.exp(-((noise[outer, None] * u) ** 2) / 2)
            terms = values[inner] * smooth
            sizes = np.abs(terms)
            turned = np.conj(terms * np.exp(1j * u * place[:, None]))
            # The angles u (centre - edge), what rounding the step and sigma does to u and to the fading, and some products.
            apart = 16 * window + 4 * (np.abs(centres[outer]) + np.abs(moved[outer]))
            units = u * apart[:, None] + 8 * (noise[outer, None] * u) ** 2 + 32
            wrong = errors[inner] * smooth + UNIT * units * sizes
            if slopes is not None:
                there = bin_slopes(turned, wrong, u * width, parts, bins, beyond)
                slopes.middle[outer], slopes.bend[outer] = there.middle, there.bend
            full = np.zeros((inner.stop - inner.start, fine // 2 + 1), dtype=np.complex128)
            full[:, : len(u)] = turned * shown
            wrong, sizes = wrong * shown, sizes * np.abs(shown)
            masses = np.fft.irfft(full, fine, axis=1)
            found[outer] = masses.reshape(len(masses), bins, parts).sum(axis=2)
            power = wrong[:, 0] ** 2 + 2 * (wrong[:, 1:] ** 2).sum(axis=1)
            added = sizes[:, 0] + 2 * sizes[:, 1:].sum(axis=1)
            eta[outer] = (
                np.sqrt(power) * SOLVED_UP + left_out + 4 * _OUTSIDE + (8 * math.log2(fine) + 16 + parts) * UNIT * added
            )
        start += len(run.places)
    np.maximum(found, 0.0, out=found)
    order = np.argsort(secrets, kind="stable")
    numbers = first + np.arange(bins, dtype=np.int64)
    kept = None if slopes is None else Slopes(slopes.middle[order], slopes.bend[order])
    return NoisyLaws(secrets[order], numbers, step, found[order], eta[order], void, kept)
