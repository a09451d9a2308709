r"""Hiding which of several written laws holds: the loss of noise, the distance of the laws, the best kernel and coupling.

    F given a has a law of the box P_a (`numerics.laws.stated`);     output = F + Z,  or a draw that sees F, or F and a

| what | bound |
|---|---|
| pure loss | max over outputs o and pairs of  log max P_a * Z(o)  -  log min P_b * Z(o),  each over its own box: exact |
| delta | sum over o of (max P_a * Z(o) - e^eps min P_b * Z(o))_+ : exact for numbers, from above for intervals |
| W | least w with max P_a(F <= x) <= min P_b(F <= x + w) for all x and both ways: exact |
| kernel | max over o and pairs of  log max sum_f P_a(f) K(f, o)  -  log min ... : exact, in whole numbers |

*Which outputs decide.* Between two neighbouring values P * Z(o) = A u^o + B u^-o with Laplace noise, and a ratio of two such
sums is monotone in u^(2 o). Beyond the first and the last value it is constant. So the values themselves are all the outputs to
look at, however far apart they are.

*Which laws decide.* A weighted sum over a box is largest where the largest weights are filled up first. The weight of f at the
output o falls with |o - f|, for any noise here, so the order is that of the distances.

What must never change: loss and delta are at least the truth over every law of every box, every ordered pair of different
secrets, both ways; the scale returned has itself been shown to keep the promise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from attrpriv.errors import Cause, RefusedError, UsageError
from attrpriv.numerics.calibration.coupling import CertifiedCoupling, coupling_within
from attrpriv.numerics.calibration.direct import Noise, least_scale, noise_law
from attrpriv.numerics.calibration.kernel import WEIGHT_BITS, CertifiedKernel, kernel_for
from attrpriv.numerics.calibration.kernel_accuracy import KernelError, error_for, slices_error
from attrpriv.numerics.calibration.linear_program import MOST_SECRETS, MOST_VALUES, optimal_envelope
from attrpriv.numerics.calibration.secret_laws import BITS, SecretLaws, exp_lower, float_laws, log_upper, require_rows
from attrpriv.numerics.divergences.wasserstein import close_distance
from attrpriv.numerics.laws.stated import StatedLaws, WholeLaw
from attrpriv.numerics.rounding import COMPUTED_UP, SOLVED_UP, UNIT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

# Numbers that one look at all outputs may take: a second or so.
_MOST_WORK = 2e8
_MOST_CELLS = 2e7
# What underflows is off by no more than this.
_FLOOR = 2.0**-1000
# Slices of a coupling are stored: so many numbers.
_MOST_SLICES = 20_000
# The parts of epsilon by which a common envelope may lie below the reference law.
_DEPTHS = (0.25, 0.5, 0.75)


def stated_loss(laws: StatedLaws, scale: float) -> float:
    """The pure loss, from above, with discrete Laplace noise (scale 0: none).

    >>> law = lambda *p: tuple((x, x) for x in p)
    >>> flu = StatedLaws((0, 1, 2, 3, 4), (law(.2, .225, .5, .075, 0), law(0, .075, .5, .225, .2)), 1)
    >>> stated_loss(flu, 0.0), round(stated_loss(flu, 2.0), 4)
    (inf, 0.5604)
    """
    if not (math.isfinite(scale) and scale >= 0):
        raise UsageError(f"scale: must be finite and at least 0. Got {scale}.")
    if scale == 0:
        return _whole_loss([_point_bounds(law) for law in laws.whole()], laws.apart)
    _require_work(len(laws.laws) ** 2 * len(laws.steps) + len(laws.steps) ** 2 * len(laws.laws))
    import numpy as np

    distance = _distances(laws.steps, laws.steps)
    with np.errstate(under="ignore"):
        weight = np.exp(-distance / scale)
    weight[weight < _FLOOR] = 0.0
    # A quotient and an exponential of at most 700, each rounded.
    bounds = [_outputs(law, distance, weight, 2000 * UNIT) for law in laws.whole()]
    return _worst_log(bounds, laws.apart)


def stated_delta(laws: StatedLaws, noise: Noise, scale: float, epsilon: float) -> float:
    """The delta, from above, at this epsilon; 0 where every output is within e^epsilon.

    >>> law = lambda *p: tuple((x, x) for x in p)
    >>> two = StatedLaws((0, 1), (law(0.5, 0.5), law(0.25, 0.75)), 1)
    >>> round(stated_delta(two, "none", 0.0, 0.0), 6), stated_delta(two, "none", 0.0, 0.7)
    (0.25, 0.0)
    """
    if noise == "none" or not scale:
        return _point_delta(laws, epsilon)
    if noise == "laplace" and stated_loss(laws, scale) <= epsilon:
        return 0.0
    added = noise_law(noise, scale)
    outputs = laws.reach + len(added.masses)
    if outputs * len(laws.laws) * (len(laws.steps) + len(laws.laws)) > _MOST_CELLS:
        raise UsageError("laws: are too long, or their values too far apart, to compare them with all of the noise.")
    shown = range(laws.steps[0] + added.start, laws.steps[-1] + added.end + 1)
    totals = _summed(laws, shown, added.masses, added.error, epsilon)
    # What the window of the noise leaves out: once for a single law; of a box each output has its own worst law.
    left_out = added.lost * (1 if laws.exact else len(laws.steps))
    return min(1.0, (max(totals) + left_out) * COMPUTED_UP)


def least_stated_scale(laws: StatedLaws, noise: Noise, epsilon: float, delta: float) -> float:
    """The least scale, from above, that keeps (epsilon, delta); 0.0 where none is needed.

    >>> law = lambda *p: tuple((x, x) for x in p)
    >>> flu = StatedLaws((0, 1, 2, 3, 4), (law(.2, .225, .5, .075, 0), law(0, .075, .5, .225, .2)), 1)
    >>> round(least_stated_scale(flu, "laplace", 1.0, 0.0), 4)
    1.1545
    """
    if not (math.isfinite(epsilon) and epsilon > 0 and 0 <= delta < 1):
        raise UsageError(f"budget: needs epsilon above 0 and delta in [0, 1). Got {epsilon} and {delta}.")
    if delta == 0 and noise == "gaussian":
        raise UsageError("delta: Gaussian noise needs delta above 0. Got 0.")
    holds = _holds(laws, noise, epsilon, delta)
    return 0.0 if holds(0.0) else least_scale(holds, max(1.0, laws.reach / 4))


def _holds(laws: StatedLaws, noise: Noise, epsilon: float, delta: float) -> Callable[[float], bool]:
    """Whether a scale keeps the promise; beyond one that would do for any laws, rounding is what fails it."""
    most = 4 * max(1, laws.reach) / min(1.0, epsilon) * (1.0 if delta == 0 else 1 + math.log(2 / delta))

    @cache
    def holds(scale: float) -> bool:
        if scale > most:
            raise UsageError(f"laws: epsilon {epsilon:g}, delta {delta:g} are out of reach of floats. Use a larger epsilon.")
        if delta == 0:
            return stated_loss(laws, scale) <= epsilon
        return stated_delta(laws, noise if scale > 0 else "none", scale, epsilon) <= delta

    return holds


def stated_distance(laws: StatedLaws, ignored: float = 0.0) -> int:
    """The largest distance by which one of two laws must be moved to become the other, mass `ignored` of it left aside.

    >>> law = lambda *p: tuple((x, x) for x in p)
    >>> flu = StatedLaws((0, 1, 2, 3, 4), (law(.2, .225, .5, .075, 0), law(0, .075, .5, .225, .2)), 1)
    >>> stated_distance(flu), stated_distance(flu, 0.2)
    (2, 1)
    """
    whole = laws.whole()
    if ignored == 0:
        _require_work(len(whole) ** 2 * len(laws.steps))
        return max(_longest(laws.steps, whole[a], whole[b]) for a, b in _pairs(laws))
    if not all(law.exact for law in whole):
        raise UsageError("laws: mass is left aside only where each law is a single one. Leave none aside.")
    measures = [dict(zip(laws.steps, law, strict=True)) for law in laws.middle()]
    found = (close_distance(measures[a], measures[b], ignored).distance for a, b in _pairs(laws) if a < b)
    return math.ceil(max(found))


def _longest(steps: Sequence[int], one: WholeLaw, other: WholeLaw) -> int:
    """The furthest that mass of `one` may have to go upwards, for any two laws of the boxes."""
    mosts, leasts = one.cumulated(most=True), other.cumulated(most=False)
    furthest, at = 0, 0
    for x, most in zip(steps, mosts, strict=True):
        while leasts[at] * one.total < most * other.total:
            at += 1
        furthest = max(furthest, steps[at] - x if most else 0)
    return furthest


# ----------------------------------------------------------------------------------------------------------------------------
# Draws that see F alone, or F and the secret; in whole numbers.


def secret_laws_of(laws: StatedLaws) -> SecretLaws:
    """The laws on all whole numbers from the first value to the last; each must be a single one."""
    whole = laws.whole()
    if not all(law.exact for law in whole):
        raise RefusedError("a kernel is found for laws of numbers, not of intervals.").because(
            Cause.NUMBERS, "exact probabilities", "mechanism laplace"
        )
    rows = []
    for law in whole:
        row = [0] * (laws.reach + 1)
        for step, mass in zip(laws.steps, law.lows, strict=True):
            row[step - laws.steps[0]] = (mass << BITS) // law.total
        rows.append(tuple(row))
    return SecretLaws(laws.steps[0], tuple(rows), laws.apart)


def stated_kernel(laws: StatedLaws, prior: Sequence[float], epsilon: float) -> tuple[CertifiedKernel, KernelError]:
    """The kernel that sees F alone with the least expected |error| under the prior over the secrets, and its error."""
    _require_program(laws)
    secrets, target = secret_laws_of(laws), _mixture(laws, prior)
    kernel = kernel_for(secrets, target, epsilon)
    return kernel, error_for(kernel, secrets, target)


def stated_kernel_loss(weights: Sequence[Sequence[int]], laws: StatedLaws) -> float:
    """The loss, from above, of drawing o with weights[f][o]: over every law of every box."""
    size = laws.reach + 1
    require_rows("weights", weights, size, size, 2**WEIGHT_BITS)
    rows = [weights[step - laws.steps[0]] for step in laws.steps]
    forms = list(zip(*rows, strict=True))
    bounds = [([law.most(form) for form in forms], [law.least(form) for form in forms], law.total) for law in laws.whole()]
    return _whole_loss(bounds, laws.apart)


def stated_coupling(laws: StatedLaws, prior: Sequence[float], epsilon: float) -> tuple[CertifiedCoupling, KernelError]:
    """The best mechanism that reads the secret too."""
    _require_program(laws)
    secrets = secret_laws_of(laws)
    solved = optimal_envelope(float_laws(secrets), _checked(laws, prior), epsilon * (1 - 2.0**-30))
    found = coupling_within(secrets, solved.envelope, epsilon, optimum=solved.error)
    return found, slices_error(found, secrets, prior)


def stated_transport(laws: StatedLaws, prior: Sequence[float], epsilon: float) -> tuple[CertifiedCoupling, KernelError]:
    """Each law moved to one near a common reference, the mixture under the prior: without a program."""
    if (laws.reach + 1) * len(laws.laws) > _MOST_SLICES:
        raise RefusedError(f"moves laws of at most {_MOST_SLICES:,} numbers in all, zeros between values included.").because(
            Cause.SIZE
        )
    secrets, reference = secret_laws_of(laws), _mixture(laws, prior)
    ways = (coupling_within(secrets, reference * math.exp(-depth * epsilon), epsilon) for depth in _DEPTHS)
    found = [(way, slices_error(way, secrets, prior)) for way in ways]
    return min(found, key=lambda way: way[1].mean_absolute)


def _require_program(laws: StatedLaws) -> None:
    if len(laws.laws) > MOST_SECRETS or laws.reach + 1 > MOST_VALUES:
        limits = f"at most {MOST_SECRETS} values of the secret and {MOST_VALUES} steps between the values of the statistic"
        raise RefusedError(f"optimal: solves problems of {limits}. Got {len(laws.laws)} and {laws.reach + 1:,}.").because(
            Cause.SIZE
        )


def _checked(laws: StatedLaws, prior: Sequence[float]) -> Sequence[float]:
    if len(prior) != len(laws.laws) or not all(p >= 0 for p in prior) or not abs(math.fsum(prior) - 1) <= 1e-9:
        raise UsageError("prior: must be probabilities of the values of the secret that sum to 1.")
    return prior


def _mixture(laws: StatedLaws, prior: Sequence[float]) -> Array:
    """The law of F that errors are averaged over."""
    import numpy as np

    mixed = np.zeros(laws.reach + 1)
    for share, law in zip(_checked(laws, prior), laws.middle(), strict=True):
        for step, mass in zip(laws.steps, law, strict=True):
            mixed[step - laws.steps[0]] += share * float(mass)
    return np.asarray(mixed / mixed.sum(), dtype=np.float64)


# ----------------------------------------------------------------------------------------------------------------------------
# Without noise: whole numbers alone.

Bounds = tuple[list[int], list[int], int]
"""Of one law, for each output: the largest and the least chance, in units of one over the last number."""


def _point_bounds(law: WholeLaw) -> Bounds:
    room = sum(law.caps)
    most = [low + min(cap, law.rest) for low, cap in zip(law.lows, law.caps, strict=True)]
    least = [low + max(0, law.rest - (room - cap)) for low, cap in zip(law.lows, law.caps, strict=True)]
    return most, least, law.total


def _whole_loss(bounds: Sequence[Bounds], apart: int) -> float:
    """The largest log ratio, from above, over every output and every two different secrets."""
    common = math.lcm(*(total for _, _, total in bounds))
    mosts = [[chance * (common // total) for chance in most] for most, _, total in bounds]
    leasts = [[chance * (common // total) for chance in least] for _, least, total in bounds]
    top, bottom = 1, 1
    for up, low in zip(zip(*mosts, strict=True), zip(*leasts, strict=True), strict=True):
        for b, least in enumerate(low):
            most = max((*up[max(0, b - apart) : b], *up[b + 1 : b + apart + 1]))
            if most > 0 and least == 0:
                return math.inf
            if most * bottom > top * least:
                top, bottom = most, least
    return log_upper(top, bottom)


def _point_delta(laws: StatedLaws, epsilon: float) -> float:
    growth = Fraction(exp_lower(epsilon), exp_lower(0.0))
    bounds = [([Fraction(x, total) for x in most], [Fraction(x, total) for x in least])
              for most, least, total in map(_point_bounds, laws.whole())]  # fmt: skip
    sums = [
        sum((max(Fraction(0), p - growth * q) for p, q in zip(bounds[a][0], bounds[b][1], strict=True)), Fraction(0))
        for a, b in _pairs(laws)
    ]
    worst = max(sums)
    return min(1.0, math.nextafter(float(worst), math.inf)) if worst else 0.0


# ----------------------------------------------------------------------------------------------------------------------------
# With noise: floats, and how far they may be off.


def _pairs(laws: StatedLaws) -> Iterator[tuple[int, int]]:
    places = itertools.permutations(range(len(laws.laws)), 2)
    return ((a, b) for a, b in places if abs(a - b) <= laws.apart)


def _distances(outputs: Sequence[int], steps: Sequence[int]) -> Array:
    import numpy as np

    return np.abs(np.subtract.outer(np.array(outputs, dtype=np.float64), np.array(steps, dtype=np.float64)))


@lru_cache(maxsize=256)
def _float_law(law: WholeLaw) -> tuple[Array, Array, float]:
    import numpy as np

    lows, caps = ([number / law.total for number in numbers] for numbers in (law.lows, law.caps))
    return np.array(lows), np.array(caps), law.rest / law.total


def _outputs(law: WholeLaw, distance: Array, weight: Array, error: float) -> tuple[Array, Array]:
    """The largest and the least of P * Z at each output (a row of `weight`, whose entries are off by a share `error`)."""
    import numpy as np

    lows, caps, rest = _float_law(law)
    size = len(lows)
    share, floor = (error + (2 * size + 16) * UNIT) * SOLVED_UP, 4 * size * _FLOOR
    base = weight @ lows
    if law.exact:
        return base * (1 + share) + floor, np.maximum(0.0, base * (1 - share) - floor)
    order = np.argsort(distance, axis=1, kind="stable")
    near = np.take_along_axis(weight, order, axis=1)
    room = caps[order]
    most, least = (base + (_filled(room[:, ::way], rest) * near[:, ::way]).sum(axis=1) for way in (1, -1))
    # What a value is filled up by is a difference of sums, each off by a few units of the largest of them.
    loose = size * (4 * size + 16) * UNIT * max(1.0, float(caps.sum())) * near[:, 0]
    sure = base * (1 - share) - floor
    return most * (1 + share) + loose + floor, np.maximum(np.maximum(0.0, sure), least * (1 - share) - loose - floor)


def _filled(room: Array, rest: float) -> Array:
    """What each value gets of `rest`, in order, at most its room."""
    import numpy as np

    return np.clip(rest - (np.cumsum(room, axis=1) - room), 0.0, room)


def _worst_log(bounds: Sequence[tuple[Array, Array]], apart: int) -> float:
    import numpy as np

    with np.errstate(divide="ignore"):
        mosts, leasts = np.log([most for most, _ in bounds]), np.log([least for _, least in bounds])
    worst = 0.0
    for b, least in enumerate(leasts):
        others = np.concatenate([mosts[max(0, b - apart) : b], mosts[b + 1 : b + apart + 1]])
        worst = max(worst, float((others.max(axis=0) - least).max()))
    # Two logarithms of at most 750 and their difference.
    return math.inf if math.isnan(worst) else worst + 4000 * UNIT


def _summed(laws: StatedLaws, outputs: range, masses: Array, error: float, epsilon: float) -> list[float]:
    """Of each ordered pair, the sum over outputs of (max P_a * Z - e^eps min P_b * Z)_+."""
    import numpy as np

    places = np.subtract.outer(np.arange(len(outputs)), np.array(laws.steps) - laws.steps[0])
    inside = (places >= 0) & (places < len(masses))
    weight = np.where(inside, masses[np.clip(places, 0, len(masses) - 1)], 0.0)
    distance = _distances(outputs, laws.steps)
    if not math.isfinite(error):
        raise UsageError("scale: must leave a noise whose masses are floats.")
    bounds = [_outputs(law, distance, weight, error) for law in laws.whole()]
    growth = math.exp(epsilon) * (1 - 4 * UNIT)
    return [float(np.maximum(0.0, bounds[a][0] - growth * bounds[b][1]).sum()) for a, b in _pairs(laws)]


def _require_work(work: float) -> None:
    if work > _MOST_WORK:
        raise UsageError("laws: are too many to compare each with each. State fewer values.")
