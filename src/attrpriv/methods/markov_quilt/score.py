"""The Attribute-Private Markov Quilt Mechanism (zhang2022attribute, Algorithm 3): noise that hides a parameter of a network.

    quilts   b_i = min over quilts (Q, N, R) of phi_i  of  Delta_{A and N} F / (eps - e(phi_Q | phi_i))
    subsets  b_i = min over S within A minus {i}       of  Delta_{A minus S} F / (eps - e(phi_S | phi_i))

| symbol | here |
|---|---|
| phi_i | `on`, the protected parameter |
| A | the columns that F reads: `sensitivity.columns` |
| Delta_T F | `sensitivity.of(T)` |
| c(S) | `Before.beside`: the sum of Delta/b over earlier releases that read something outside S |
| e(. given phi_i) | `max_influence`, over the whole tolerance |
| Q, N, R | quilt, near (with i), remote: R is d-separated from phi_i given Q in the network of *parameters* |

Sets with e > eps are not usable, and e = eps only where Delta is 0: then the exact answer is private. The subset rule is never
worse than any quilt (docs/theory/markov-quilt.md). A column that is not in the network counts as near. The final scale is the
largest over all protected parameters and all members of Theta. After earlier releases e + c(S) takes the place of e, with S
among all columns that were read so far. What must never change: `quilt_loss` of the returned scale and of everything released
before, under one S for all of them, is at most epsilon.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from attrpriv.errors import UsageError
from attrpriv.methods.markov_quilt.sensitivity import ColumnSensitivity
from attrpriv.methods.markov_quilt.sets import NOTHING, Before, candidates
from attrpriv.numerics.divergences.influence import max_influence
from attrpriv.numerics.networks.network import Network, boundary, connected
from attrpriv.numerics.rounding import AIMED_DOWN, COMPUTED_UP, SOLVED_DOWN


@dataclass(frozen=True)
class Known:
    """A set S of parameters that may show, its influence, what of F is left to hide, and the scale that hides it."""

    on: str
    columns: tuple[str, ...]
    influence: float
    sensitivity: float
    scale: float
    theta: int = 0
    spent: float = 0.0  # the influence, and what earlier releases cost beside this set


@dataclass(frozen=True)
class Quilt:
    """A Markov quilt of phi_i in the network of parameters, and the scale that it allows (infinite: not usable)."""

    on: str
    quilt: tuple[str, ...]
    near: tuple[str, ...]
    remote: tuple[str, ...]
    influence: float
    sensitivity: float
    scale: float

    def __str__(self) -> str:
        parts = [f"{name} {{{', '.join(part)}}}" for name, part in zip(("quilt", "near", "remote"), self._parts, strict=True)]
        return f"{', '.join(parts)}: influence {self.influence:.6g}, scale {self.scale:.6g}"

    @property
    def _parts(self) -> tuple[tuple[str, ...], ...]:
        return self.quilt, self.near, self.remote


def quilt_loss(influence: float, parts: Iterable[tuple[float, float]]) -> float:
    """e + sum of Delta/b, rounded up, with 0/0 = 0 and x/0 = infinity; pairs (Delta, b).

    >>> quilt_loss(0.5, [(0.0, 0.0)]), quilt_loss(0.5, [(1.0, 0.0)])
    (0.5, inf)
    """
    ratios = [0.0 if size == 0 else math.inf if scale == 0 else size / scale for size, scale in parts]
    total = math.fsum(ratios)
    if math.isnan(influence) or math.isnan(total) or influence < 0 or any(ratio < 0 for ratio in ratios):
        raise UsageError(f"loss: influence, sensitivities and scales must be numbers of at least 0. Got {influence!r}.")
    return influence if total == 0 else (influence + total) * COMPUTED_UP


def quilt_scale(influence: float, sensitivity: float, epsilon: float) -> float:
    """The least Laplace scale for what is left to hide; infinite where this set is not usable."""
    if sensitivity == 0:
        return 0.0 if influence <= epsilon else math.inf
    left = epsilon * AIMED_DOWN - influence
    return sensitivity / left * COMPUTED_UP if left > 0 else math.inf


# -------------------------------------------------------------------------------------------------------- the subset rule


def least_known(
    network: Network,
    on: str,
    sensitivity: ColumnSensitivity,
    epsilon: float,
    *,
    tolerance: float = 0.0,
    before: Before = NOTHING,
) -> Known:
    """The subset rule for one protected parameter under one network: the set that needs the least noise.

    Ties go to the set with the least influence, then to the smallest one.
    """
    _require(network, on, epsilon)
    best: Known | None = None
    floor = _Floor(network, on, tolerance)
    for columns in candidates(network, on, sensitivity.columns, before):
        least = quilt_scale(before.beside(columns) + floor.of(columns), _left(sensitivity, columns), epsilon)
        if math.isinf(least) or (best is not None and least > best.scale):
            continue  # its influence cannot make up for that
        found = _known(network, on, columns, sensitivity, epsilon, tolerance, before)
        if found is not None and (best is None or _order(found) < _order(best)):
            best = found
    if best is None or not math.isfinite(best.scale):
        raise UsageError(
            "sensitivity: nothing bounds the statistic, and no set of parameters lets it be exact; declare bounds."
        )
    return best


def _known(
    network: Network,
    on: str,
    columns: tuple[str, ...],
    sensitivity: ColumnSensitivity,
    epsilon: float,
    tolerance: float,
    before: Before,
) -> Known | None:
    """None where a bound is missing: this set is then not usable."""
    influence, left = _influence(network, columns, on, tolerance), _left(sensitivity, columns)
    if math.isinf(influence):
        return None
    spent = quilt_loss(influence, [(before.beside(columns), 1.0)])
    return Known(on, columns, influence, left, quilt_scale(spent, left, epsilon), spent=spent)


def _left(sensitivity: ColumnSensitivity, columns: Sequence[str]) -> float:
    """What is left to hide; infinite where nothing bounds it."""
    try:
        return sensitivity.of(set(sensitivity.columns) - set(columns))
    except UsageError:
        return math.inf


def _influence(network: Network, columns: tuple[str, ...], on: str, tolerance: float) -> float:
    """Infinite where it cannot be bounded: the set is then not used."""
    try:
        return max_influence(network, of=columns, on=on, tolerance=tolerance).value
    except UsageError:
        return math.inf


class _Floor:
    """The influence of a set from below: it tells at least what each of its members tells. Saves time, and nothing rests on it.

    Under a tolerance influences are bounds, which need not be ordered like that.
    """

    def __init__(self, network: Network, on: str, tolerance: float) -> None:
        self._network, self._on, self._tolerance = network, on, tolerance
        self._alone: dict[str, float] = {}

    def of(self, columns: Sequence[str]) -> float:
        return 0.0 if self._tolerance or len(columns) < 2 else max(self._one(name) for name in columns)

    def _one(self, name: str) -> float:
        if name not in self._alone:
            self._alone[name] = max(0.0, _influence(self._network, (name,), self._on, 0.0) * SOLVED_DOWN - 1e-12)
        return self._alone[name]


def _order(known: Known) -> tuple[float, float, int, tuple[str, ...]]:
    return known.scale, known.spent, len(known.columns), known.columns


def least_loss(
    networks: Sequence[Network], protected: Sequence[str], before: Before, *, tolerances: Sequence[float] | None = None
) -> float:
    """What earlier releases tell together about the parameter that they tell the most about, from above.

    >>> from attrpriv.numerics.networks.network import Node
    >>> coin, xor = Node(states=("0", "1"), table=((0.5, 0.5),)), ((1, 0), (0, 1), (0, 1), (1, 0))
    >>> net = Network(nodes={"i": coin, "a": coin, "b": Node(states=("0", "1"), parents=("i", "a"), table=xor)})
    >>> a, b = ((frozenset(name), math.inf) for name in "ab")
    >>> [round(least_loss([net], ["i"], Before(sent)), 9) for sent in ((a,), (b,), (a, b))]
    [0.0, 0.0, inf]
    """
    pairs = _pairs(networks, protected, tolerances)
    return max(_least_loss(network, on, before, tolerance) for _, network, tolerance, on in pairs)


def _least_loss(network: Network, on: str, before: Before, tolerance: float) -> float:
    _require(network, on, 1.0)
    best, floor = math.inf, _Floor(network, on, tolerance)
    for columns in candidates(network, on, (), before):
        cost = before.beside(columns)
        if cost + floor.of(columns) < best:
            best = min(best, quilt_loss(_influence(network, columns, on, tolerance), [(cost, 1.0)]))
    return best


def _pairs(
    networks: Sequence[Network], protected: Sequence[str], tolerances: Sequence[float] | None
) -> list[tuple[int, Network, float, str]]:
    """Every network, by its place and with its tolerance, and every protected parameter."""
    slack = tuple(tolerances) if tolerances is not None else (0.0,) * len(networks)
    if not networks or not protected or len(slack) != len(networks):
        raise UsageError("networks: there must be one or more, a tolerance for each, and a protected parameter.")
    theta = zip(range(len(networks)), networks, slack, strict=True)
    return [(*one, on) for one in theta for on in dict.fromkeys(protected)]


def least_scale(
    networks: Sequence[Network],
    protected: Sequence[str],
    sensitivity: ColumnSensitivity,
    epsilon: float,
    *,
    tolerances: Sequence[float] | None = None,
    before: Before = NOTHING,
) -> tuple[float, tuple[Known, ...]]:
    """The scale that hides every protected parameter under every network, with the set that each of them uses.

    >>> from attrpriv.numerics.networks.network import Node
    >>> flip = ((0.7, 0.3), (0.3, 0.7))
    >>> school = Network(nodes={"income": Node(states=("low", "high"), table=((0.5, 0.5),)),
    ...     "height": Node(states=("short", "tall"), parents=("income",), table=flip)})
    >>> least_scale([school], ["income"], ColumnSensitivity.count(["height"], n=100), epsilon=1.0)[0]
    0.0
    >>> round(least_scale([school], ["income"], ColumnSensitivity.count(["height"], n=100), epsilon=0.5)[0], 6)
    200.0
    """
    found = []
    for theta, network, tolerance, on in _pairs(networks, protected, tolerances):
        known = least_known(network, on, sensitivity, epsilon, tolerance=tolerance, before=before)
        found.append(replace(known, theta=theta))
    return max(known.scale for known in found), tuple(found)


# ----------------------------------------------------------------------------------------------------------------- quilts


def partition(network: Network, on: str, quilt: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Near (with `on`) and remote, given the quilt; in the network's order."""
    near = {on, *connected(network, on, quilt)}
    kept = [name for name in network.nodes if name not in quilt]
    return tuple(name for name in kept if name in near), tuple(name for name in kept if name not in near)


def markov_quilts(
    network: Network,
    on: str,
    sensitivity: ColumnSensitivity,
    epsilon: float,
    *,
    tolerance: float = 0.0,
    largest: int = 3,
) -> tuple[Quilt, ...]:
    """The quilts of up to `largest` parameters, best first; the trivial one (nothing is remote) is always among them.

    Only sets of which no member is superfluous, and that leave something remote.
    """
    _require(network, on, epsilon)
    trivial = (*network.nodes,)
    found = [_quilt(network, on, (), trivial, (), sensitivity, epsilon, tolerance)]
    others = [name for name in network.nodes if name != on]
    for size in range(min(largest, len(others)) + 1):
        for quilt in itertools.combinations(others, size):
            near, remote = partition(network, on, quilt)
            if remote and boundary(network, on, quilt) == quilt:
                found.append(_quilt(network, on, quilt, near, remote, sensitivity, epsilon, tolerance))
    return tuple(sorted(found, key=lambda one: (one.scale, one.influence, len(one.quilt), one.quilt)))


def _quilt(
    network: Network,
    on: str,
    quilt: tuple[str, ...],
    near: tuple[str, ...],
    remote: tuple[str, ...],
    sensitivity: ColumnSensitivity,
    epsilon: float,
    tolerance: float,
) -> Quilt:
    try:
        influence = max_influence(network, of=quilt, on=on, tolerance=tolerance).value
        left = sensitivity.of(set(sensitivity.columns) - set(quilt) - set(remote))
    except UsageError:
        influence, left = math.inf, math.inf
    return Quilt(on, quilt, near, remote, influence, left, quilt_scale(influence, left, epsilon))


def _require(network: Network, on: str, epsilon: float) -> None:
    if on not in network.nodes:
        raise UsageError(f"on: the protected parameter must be in the network. Got {on}.")
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise UsageError(f"epsilon: must be positive. Got {epsilon!r}.")


# ------------------------------------------------------------------------------------------------- continuous parameters


@dataclass(frozen=True)
class Relaxed:
    """A set S of parameters with H_e(phi_S given a, phi_S given b) <= delta for all pairs, instead of an influence."""

    influence: float
    delta: float
    sensitivity: float

    def __post_init__(self) -> None:
        if not (self.influence >= 0 and 0 <= self.delta < 1 and self.sensitivity >= 0):
            raise UsageError(f"relaxed: needs influence >= 0, 0 <= delta < 1 and sensitivity >= 0. Got {self}.")


def relaxed_loss(known: Relaxed, scale: float) -> tuple[float, float]:
    """(e + Delta/b, delta_S): what Laplace noise of this scale promises where phi_S is close, not within a factor.

    >>> relaxed_loss(Relaxed(influence=0.5, delta=1e-6, sensitivity=0.0), 0.0)
    (0.5, 1e-06)
    """
    return quilt_loss(known.influence, [(known.sensitivity, scale)]), known.delta


def relaxed_scale(choices: Sequence[Relaxed], epsilon: float, delta: float) -> float:
    """The least scale over the sets whose delta fits; each is fixed before the data are seen."""
    usable = [quilt_scale(one.influence, one.sensitivity, epsilon) for one in choices if one.delta <= delta]
    if not usable or not math.isfinite(min(usable)):
        raise UsageError(f"relaxed: no set is usable at epsilon {epsilon:g} and delta {delta:g}; include the empty one.")
    return min(usable)
