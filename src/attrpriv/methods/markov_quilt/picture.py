"""A picture of a plan on a parameter network: what is near the secret, what may show, and what is remote.

| colour | parameters |
|---|---|
| red | the protected one |
| orange | near: not separated from it by the quilt |
| blue | the quilt: what may show, paid for by its influence |
| green | remote: says nothing more about the secret once the quilt is known |

Columns that the query reads have a thick border. Where a quilt of the graph explains the plan's noise it is drawn, the one that
leaves the most remote; else the set that the plan's certificate uses.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrpriv.errors import UsageError
from attrpriv.methods.markov_quilt.proof import QuiltCheck, QuiltEvidence
from attrpriv.methods.markov_quilt.score import Quilt, markov_quilts, partition, quilt_loss
from attrpriv.methods.markov_quilt.sensitivity import ColumnSensitivity
from attrpriv.numerics.networks.network import Network

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = {"secret": "#d1495b", "near": "#edae49", "quilt": "#4a7fb5", "remote": "#66a182"}
# Above this many parameters quilts are not searched for.
_MOST_SEARCHED = 25


def drawn_quilt(evidence: QuiltEvidence, check: QuiltCheck, epsilon: float) -> tuple[tuple[str, ...], ...]:
    """Quilt, near and remote that explain the noise for one secret."""
    network = evidence.networks[check.theta]
    read = tuple(dict.fromkeys(column for term in evidence.terms for column in term.columns))
    searched: tuple[Quilt, ...] = ()
    if len(network.nodes) <= _MOST_SEARCHED:
        counted = ColumnSensitivity.count(read, 1)
        searched = markov_quilts(network, check.secret, counted, epsilon, tolerance=evidence.tolerances[check.theta], largest=2)
    fitting = [one for one in searched if one.remote and _explains(one, evidence, epsilon)]
    if fitting:
        best = max(fitting, key=lambda one: (len(one.remote), -one.influence))
        return best.quilt, best.near, best.remote
    return (check.known, *partition(network, check.secret, check.known))


def _explains(quilt: Quilt, evidence: QuiltEvidence, epsilon: float) -> bool:
    """Whether the plan's noise is enough by this quilt."""
    known = frozenset((*quilt.quilt, *quilt.remote))
    return quilt_loss(quilt.influence, [term.part(known) for term in evidence.terms]) <= epsilon


def draw_plan(evidence: QuiltEvidence, epsilon: float, secret: str | None = None) -> Figure:
    """The network, coloured for one protected parameter (the first one if none is named)."""
    check = next((one for one in evidence.checks if secret in (None, one.secret)), None)
    if check is None:
        raise UsageError(f"secret: must be one of {', '.join(evidence.protected)}. Got {secret}.")
    quilt, near, remote = drawn_quilt(evidence, check, epsilon)
    parts = dict.fromkeys(near, "near") | dict.fromkeys(quilt, "quilt") | dict.fromkeys(remote, "remote")
    read = {column for term in evidence.terms for column in term.columns}
    names = ", ".join(term.name for term in evidence.terms)
    noise = ", ".join(f"Laplace noise {term.scale:.4g}" if term.scale else "no noise" for term in evidence.terms)
    return _figure(evidence.networks[check.theta], parts | {check.secret: "secret"}, read, f"{names}: {noise}")


def _figure(network: Network, parts: Mapping[str, str], read: set[str], title: str) -> Figure:
    matplotlib = _matplotlib()
    places = _places(network)
    width = max(4.0, 1.9 * (1 + max(x for x, _ in places.values())))
    height = max(2.5, 1.2 * (2 + max(y for _, y in places.values())))
    figure: Figure = matplotlib.figure.Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    for name, node in network.nodes.items():
        for parent in node.parents:
            axes.annotate(
                "", xy=_at(places[name]), xytext=_at(places[parent]),
                arrowprops={"arrowstyle": "-|>", "color": "#555555", "shrinkA": 20, "shrinkB": 20},
            )  # fmt: skip
    for name, place in places.items():
        box: dict[str, Any] = {"boxstyle": "round,pad=0.5", "facecolor": _COLOURS[parts[name]], "edgecolor": "black"}
        wide = {"linewidth": 3.0 if name in read else 0.6}
        axes.text(*_at(place), name, ha="center", va="center", color="white", fontweight="bold", bbox=box | wide)
    axes.set_title(textwrap.fill(title, 46), fontsize=10)
    axes.set_axis_off()
    across, down = (max(place[k] for place in places.values()) for k in (0, 1))
    axes.set_xlim(-0.6, across + 0.6)
    axes.set_ylim(-down - 0.5, 0.5)
    _legend(axes, matplotlib, set(parts.values()))
    return figure


def _legend(axes: Any, matplotlib: Any, used: set[str]) -> None:
    patches = [matplotlib.patches.Patch(color=colour, label=name) for name, colour in _COLOURS.items() if name in used]
    patches.append(matplotlib.patches.Patch(facecolor="white", edgecolor="black", linewidth=3.0, label="read by the query"))
    axes.legend(handles=patches, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=3, frameon=False, fontsize=8)


def _at(place: tuple[float, float]) -> tuple[float, float]:
    """Parents above their children."""
    return place[0], -place[1]


def _places(network: Network) -> dict[str, tuple[float, float]]:
    """Columns of a layer side by side; a layer is one below the lowest parent, each layer centred."""
    depth: dict[str, int] = {}
    for name, node in network.nodes.items():
        depth[name] = 1 + max((depth[parent] for parent in node.parents), default=-1)
    layers: dict[int, list[str]] = {}
    for name in network.nodes:
        layers.setdefault(depth[name], []).append(name)
    widest = max(len(layer) for layer in layers.values())
    places: dict[str, tuple[float, float]] = {}
    for level in sorted(layers):
        layer = sorted(layers[level], key=lambda name: _middle(places, network.nodes[name].parents))
        for k, name in enumerate(layer):
            places[name] = (k + (widest - len(layer)) / 2, float(level))
    return places


def _middle(places: Mapping[str, tuple[float, float]], parents: tuple[str, ...]) -> float:
    return sum(places[parent][0] for parent in parents) / len(parents) if parents else 0.0


def _matplotlib() -> Any:
    found = None
    try:
        import matplotlib
        import matplotlib.figure
        import matplotlib.patches

        found = matplotlib
    except ImportError:
        pass
    if found is None:
        raise UsageError("draw: needs the package matplotlib. Install it with pip install 'attrpriv[plots]'.")
    return found
