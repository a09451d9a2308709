"""What several releases about one table tell together about a parameter of a network, in the worst case.

    loss_i = min over S of [ e(phi_S | phi_i) + sum over releases k of Delta_{A_k minus S} F_k / b_k ],  0/0 = 0, x/0 = infinity

Releases that are private one by one need not be so together: with phi_2 = phi_1 xor phi_i, each of two exact sums tells nothing
about phi_i, and both tell everything. This rule adds only noise that was really drawn for what one common S leaves open. Each
F_k may be chosen after seeing earlier answers, and S may even depend on them. With sets that are only (e, delta_S)-close, S is
fixed beforehand, or the deltas of all sets that may be used add up.

What must never change: one S for the whole sequence; a sum over the releases' own best sets is not sound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from attrpriv.calibration.column_sensitivity import ColumnSensitivity
from attrpriv.calibration.markov_quilt import candidates, quilt_loss
from attrpriv.divergences.influence import max_influence
from attrpriv.errors import RefusedError, UsageError
from attrpriv.framework.network import Network


@dataclass(frozen=True)
class NetworkRelease:
    """One release: what it reads, how far it moves, and the scale of its Laplace noise (0: exact)."""

    sensitivity: ColumnSensitivity
    scale: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.scale) and self.scale >= 0):
            raise UsageError(f"scale: must be finite and at least 0. Got {self.scale!r}.")

    def part(self, known: Sequence[str]) -> tuple[float, float]:
        """What this set leaves open, and the noise for it."""
        left = set(self.sensitivity.columns) - set(known)
        try:
            return self.sensitivity.of(left), self.scale
        except UsageError:
            return math.inf, self.scale


@dataclass(frozen=True)
class NetworkLoss:
    """The loss about one parameter, and the set S that shows it."""

    on: str
    value: float
    known: tuple[str, ...]
    theta: int = 0


def network_loss(
    networks: Network | Sequence[Network],
    releases: Sequence[NetworkRelease],
    on: str,
    *,
    tolerances: Sequence[float] | None = None,
) -> NetworkLoss:
    """The loss of all these releases together about phi_on, the worst over the networks.

    >>> from attrpriv.framework.network import Node
    >>> coin, xor = Node(states=("0", "1"), table=((0.5, 0.5),)), ((1, 0), (0, 1), (0, 1), (1, 0))
    >>> net = Network(nodes={"i": coin, "a": coin, "b": Node(states=("0", "1"), parents=("i", "a"), table=xor)})
    >>> a, b = (NetworkRelease(ColumnSensitivity.count([name], n=10), 0.0) for name in "ab")
    >>> [round(network_loss(net, sent, "i").value, 9) for sent in ([a], [b], [a, b])]
    [0.0, 0.0, inf]
    """
    theta = (networks,) if isinstance(networks, Network) else tuple(networks)
    slack = tuple(tolerances) if tolerances is not None else (0.0,) * len(theta)
    if not theta or len(slack) != len(theta):
        raise UsageError("networks: there must be one or more, and a tolerance for each where some are given.")
    found = [
        _loss(network, releases, on, tolerance, k) for k, (network, tolerance) in enumerate(zip(theta, slack, strict=True))
    ]
    return max(found, key=lambda one: one.value)


def _loss(network: Network, releases: Sequence[NetworkRelease], on: str, tolerance: float, theta: int) -> NetworkLoss:
    if on not in network.nodes:
        raise UsageError(f"on: the protected parameter must be in the network. Got {on}.")
    columns = [column for release in releases for column in release.sensitivity.columns]
    best = NetworkLoss(on, math.inf, (), theta)
    for known in candidates(network, on, columns):
        parts = [release.part(known) for release in releases]
        if not quilt_loss(0.0, parts) < best.value:
            continue  # no influence can make up for that
        value = quilt_loss(_influence(network, known, on, tolerance), parts)
        if value < best.value:
            best = NetworkLoss(on, value, known, theta)
    return best


def _influence(network: Network, known: tuple[str, ...], on: str, tolerance: float) -> float:
    """Infinite where it cannot be bounded: the set is then not used."""
    try:
        return max_influence(network, of=known, on=on, tolerance=tolerance).value
    except UsageError:
        return math.inf


def require_network_budget(
    networks: Network | Sequence[Network],
    releases: Sequence[NetworkRelease],
    protected: Sequence[str],
    epsilon: float,
    *,
    tolerances: Sequence[float] | None = None,
) -> tuple[NetworkLoss, ...]:
    """The losses about all protected parameters; a refusal if one of them is above epsilon."""
    losses = tuple(network_loss(networks, releases, on, tolerances=tolerances) for on in protected)
    for loss in losses:
        if not loss.value <= epsilon:
            raise RefusedError(
                f"{loss.on}: {len(releases)} release(s) together lose {loss.value:.6g}, above epsilon {epsilon:g}. "
                "Releases that are private one by one need not be so together."
            )
    return losses


@dataclass(frozen=True)
class CloseSet:
    """A set S with H_e(phi_S given a, phi_S given b) <= delta for all pairs of values of phi_i."""

    known: tuple[str, ...]
    influence: float
    delta: float


def close_loss(sets: Sequence[CloseSet], releases: Sequence[NetworkRelease]) -> tuple[float, float]:
    """(loss, delta) of all releases together. One set: fixed beforehand. Several: the best loss, and the sum of all deltas."""
    if not sets:
        raise UsageError("sets: there must be one or more. Got none.")
    losses: Mapping[tuple[str, ...], float] = {
        one.known: quilt_loss(one.influence, [release.part(one.known) for release in releases]) for one in sets
    }
    return min(losses.values()), math.fsum(one.delta for one in sets) * (1 + 1e-15)
