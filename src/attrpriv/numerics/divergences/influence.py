"""Max-influence: how much knowing some parameters of a network can tell about another one (zhang2022attribute, definition 6).

    e(phi_S | phi_i) = max over values a, b of phi_i and v of phi_S of  log P(phi_S = v | phi_i = a) / P(phi_S = v | phi_i = b)

| symbol | here |
|---|---|
| phi_S | `of`, columns of the network; those that the graph makes superfluous are left out first |
| phi_i | `on`; values of probability 0 make no pair |
| theta | one network, or the worst of several |
| t | `tolerance`: every entry of every table may be off by t; then the ratio of the largest P to the least one, as bounds |

It is 0 where the graph separates phi_S from phi_i, and infinite where some v is possible given one value and impossible given
another, or where a probability is too small to be told from 0. What must never change: `value` is never below the truth.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from attrpriv.errors import UsageError
from attrpriv.frozen import FrozenDict
from attrpriv.numerics.networks.inference import bounds, bounds_given, joint_law
from attrpriv.numerics.networks.network import Network, boundary, read_network

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Under a tolerance each combination of states is bounded on its own.
_MOST_BOUNDED = 4096


@dataclass(frozen=True)
class Influence:
    """The influence, rounded up, and where it is attained: two values of phi_i, and values of phi_S that tell them apart.

    `value` is the influence of `on` on the parameters `of`; it is attained between the `pair` of values of `on`, where the
    others are as `seen`, in the network number `theta`. Made by `max_influence`.
    """

    value: float
    on: str
    of: tuple[str, ...]
    pair: tuple[str, str] | None = None
    seen: Mapping[str, str] = field(default_factory=lambda: FrozenDict({}))
    theta: int = 0


def max_influence(network: Any, *, of: Iterable[str], on: str, tolerance: float = 0.0) -> Influence:
    """The influence of phi_on on the parameters phi_of; `network` is one, a pyagrum network, or a list of which one holds.

    `of` names the parameters that are seen, `on` the one that is hidden; `tolerance`: how far each probability may be off.

    >>> from attrpriv.numerics.networks.network import Node
    >>> flip = ((0.7, 0.3), (0.3, 0.7))
    >>> school = Network(nodes={"income": Node(states=("low", "high"), table=((0.5, 0.5),)),
    ...     "gender": Node(states=("0.4", "0.6"), parents=("income",), table=flip),
    ...     "height": Node(states=("0.3", "0.5"), parents=("gender",), table=flip)})
    >>> found = max_influence(school, of=["gender"], on="income")
    >>> round(found.value, 6), found.pair, dict(found.seen)
    (0.847298, ('low', 'high'), {'gender': '0.4'})
    >>> round(max_influence(school, of=["height"], on="income").value, 6)
    0.322773
    """
    theta = _networks(network)
    names = (of,) if isinstance(of, str) else tuple(of)
    if not (math.isfinite(tolerance) and 0 <= tolerance < 1):
        raise UsageError(f"tolerance: must be at least 0 and below 1. Got {tolerance!r}.")
    found = [_checked(one, names, on, float(tolerance)) for one in theta]
    worst = max(range(len(found)), key=lambda k: found[k].value)
    best = found[worst]
    return best if not worst else Influence(best.value, best.on, best.of, best.pair, best.seen, worst)


def _networks(network: Any) -> tuple[Network, ...]:
    listed = network if isinstance(network, list | tuple) else (network,)
    read: list[Network] = []
    problem = "network: there must be one or more. Got none." if not listed else None
    for one in listed:
        try:
            found = read_network(one)
            read.append(found if isinstance(found, Network) else Network.checked(found))
        except ValueError as error:
            problem = f"network: {error}"
    if problem is not None:
        raise UsageError(problem)
    return tuple(read)


def _checked(network: Network, of: Sequence[str], on: str, tolerance: float) -> Influence:
    for name in (on, *of):
        if name not in network.nodes:
            raise UsageError(f"{'on' if name == on else 'of'}: must be in the network. Got {name}.")
    return _influence(network, tuple(dict.fromkeys(of)), on, tolerance)


@lru_cache(maxsize=4096)
def _influence(network: Network, of: tuple[str, ...], on: str, tolerance: float) -> Influence:
    if on in of:
        return _itself(network, of, on, tolerance)
    needed = boundary(network, on, of)
    if not needed:
        return Influence(0.0, on, of)
    laws, error = _given(network, needed, on) if tolerance == 0 else _bounded(network, needed, on, tolerance)
    return _worst(network, of, needed, on, laws, error)


def _itself(network: Network, of: tuple[str, ...], on: str, tolerance: float) -> Influence:
    """phi_i tells everything about itself, unless only one value is possible."""
    states = network.nodes[on].states
    possible = [k for k in range(len(states)) if tolerance or joint_law(network, (on,)).values[k] > 0]
    if len(possible) < 2:
        return Influence(0.0, on, of)
    first, second = states[possible[0]], states[possible[1]]
    return Influence(math.inf, on, of, (first, second), FrozenDict({on: first}))


Laws = tuple["NDArray[np.float64]", "NDArray[np.float64]", list[int]]


def _given(network: Network, needed: tuple[str, ...], on: str) -> tuple[Laws, float]:
    """P(phi_S | a), exactly, as the largest and the least at once; one column for each possible a."""
    import numpy as np

    joint = joint_law(network, (*needed, on))
    flat = joint.values.reshape(-1, joint.values.shape[-1])
    prior = flat.sum(axis=0)
    possible = [int(k) for k in np.flatnonzero(prior > 0)]
    given = flat[:, possible] / prior[possible]
    # Twice a quotient of a sum of entries.
    error = 4 * joint.error + 2 * (flat.shape[0] + 2) * 2.0**-53
    return (given, given, possible), math.inf if joint.tiny else error


def _bounded(network: Network, needed: tuple[str, ...], on: str, tolerance: float) -> tuple[Laws, float]:
    """The largest and the least P(phi_S | a) over all networks within the tolerance."""
    import numpy as np

    shape = [len(network.nodes[name].states) for name in needed]
    size, states = math.prod(shape), len(network.nodes[on].states)
    if size * states > _MOST_BOUNDED:
        raise UsageError(f"tolerance: {size * states} combinations of {', '.join(needed)} are too many to be bounded.")
    high, low = np.ones((size, states)), np.zeros((size, states))
    possible = [k for k in range(states) if bounds(network, (on,), np.eye(states)[k], tolerance)[1] > 0]
    for combination, k in itertools.product(range(size), possible):
        event = np.zeros(size)
        event[combination] = 1.0
        reason = None
        try:
            low[combination, k], high[combination, k] = bounds_given(network, on, k, needed, event.reshape(shape), tolerance)
        except ValueError as error:
            reason = str(error)
        if reason is not None and "too large" in reason:
            raise UsageError(reason)
    return (high[:, possible], low[:, possible], possible), 1e-15


def _worst(network: Network, of: tuple[str, ...], needed: tuple[str, ...], on: str, laws: Laws, error: float) -> Influence:
    import numpy as np

    high, low, possible = laws
    states = network.nodes[on].states
    if len(possible) < 2:
        return Influence(0.0, on, of)
    value, best = -math.inf, (0, 0, 1)
    for a, b in itertools.permutations(range(len(possible)), 2):
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(high[:, a] > 0, np.log(high[:, a] / low[:, b]), -math.inf)
        k = int(np.argmax(ratio))
        if not ratio[k] <= value:  # also a NaN
            value, best = float(ratio[k]), (k, a, b)
    shape = [len(network.nodes[name].states) for name in needed]
    seen = {name: network.nodes[name].states[k] for name, k in zip(needed, np.unravel_index(best[0], shape), strict=True)}
    pair = (states[possible[best[1]]], states[possible[best[2]]])
    # Besides the probabilities' own error: a quotient and its logarithm.
    rounded = max(0.0, value) + error + 4 * 2.0**-52 * (1 + abs(value))
    return Influence(math.inf if math.isnan(rounded) else rounded, on, of, pair, FrozenDict(seen))
