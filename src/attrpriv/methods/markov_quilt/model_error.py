"""What holds if the probabilities of a network are off: the real epsilon of quilt mechanisms, from above.

Every probability may be larger or smaller by a share x of itself, beyond the tolerance; what is impossible stays so. With
c = log (1 + x)/(1 - x), a sum of products of m probabilities moves by a factor between (1 - x)^m and (1 + x)^m. Hence

    e' of phi_S on phi_i <= e + (m + m_i) c,     m tables behind S and i, m_i behind i;     or e at a larger tolerance
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrpriv.methods.base.accuracy import ModelError, off_by
from attrpriv.methods.markov_quilt.score import quilt_loss
from attrpriv.numerics.divergences.influence import max_influence
from attrpriv.numerics.laws.records import log_change
from attrpriv.numerics.networks.network import Network, ancestral
from attrpriv.numerics.search import or_infinite

if TYPE_CHECKING:
    from attrpriv.methods.markov_quilt.proof import QuiltCheck, QuiltEvidence

# Bounds over a tolerance look at every combination of states; in larger networks that can take long.
_SMALL = 10
# After earlier releases sets may be large, and plans are to stay quick.
_FEW = 2


def quilt_model_error(evidence: QuiltEvidence) -> tuple[ModelError, ...]:
    """The loss of the same noise where every table of the network is off."""
    return off_by(lambda off: max(_loss(evidence, check, off) for check in evidence.checks))


def _loss(evidence: QuiltEvidence, check: QuiltCheck, off: float) -> float:
    return quilt_loss(_influence(evidence, check, off), evidence.parts(check))


def _influence(evidence: QuiltEvidence, check: QuiltCheck, off: float) -> float:
    network, tolerance = evidence.networks[check.theta], evidence.tolerances[check.theta]
    stated = evidence.influence_of(check)
    if stated == 0.0 and not check.known:
        return 0.0
    tables = len(ancestral(network, (*check.known, check.secret)).nodes) + len(ancestral(network, (check.secret,)).nodes)
    moved = stated + tables * log_change(off)
    long = len(network.nodes) > _SMALL or (evidence.earlier and len(check.known) > _FEW)
    if not tolerance and long:
        return moved
    return min(moved, or_infinite(lambda: _within(network, check, tolerance + off)))


def _within(network: Network, check: QuiltCheck, tolerance: float) -> float:
    return max_influence(network, of=check.known, on=check.secret, tolerance=tolerance).value
