"""Several releases about one chain: what they cost together. A pure function; the ledger itself still allows one release.

    loss = max over i of  min over Q of   e(Q | X_i) + |N| * sum over releases of width_k / scale_k

Given X_Q and everything behind it, the answers of all releases depend on X_i through the same near entries N. So the influence
counts once, and only the noise adds up. The published rule (song2017pufferfish, theorem 4.4) counts everything K times: K
releases at epsilon with the same active quilts cost K epsilon. Different quilts for different releases are *not* covered by
adding the losses up: the bound here takes one quilt for each node, the same for all releases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attrpriv.errors import UsageError
from attrpriv.guarantee import Certificate, ChainEvidence
from attrpriv.guarantee.chain import same_chains


@dataclass(frozen=True)
class ChainComposition:
    """`loss`: proved here. `published`: K times epsilon, where the releases have the same active quilts; else None."""

    loss: float
    published: float | None


def chain_composition(certificates: Sequence[Certificate]) -> ChainComposition:
    """The epsilon of all these releases together; their queries may depend on earlier answers."""
    evidence = [one.evidence for one in certificates if isinstance(one.evidence, ChainEvidence)]
    if not evidence or len(evidence) != len(certificates):
        raise UsageError("certificates: must be one or more, each of a chain. Got one of another kind, or none.")
    if not same_chains(evidence):
        raise UsageError("certificates: must be about one table and one assumption. Got different chains or lengths.")
    rate = sum(one.width / one.scale for one in evidence) * (1 + 1e-14)
    together = _joined(evidence).joint_loss(rate)
    budgets = {one.epsilon for one in certificates}
    # Active quilts are a function of the chain, its length and epsilon.
    published = len(certificates) * max(budgets) if len(budgets) == 1 else None
    return ChainComposition(together, published)


def _joined(evidence: Sequence[ChainEvidence]) -> ChainEvidence:
    """The quilts of all releases: each of them is a quilt for all."""
    first = evidence[0]
    checks = []
    for place, check in enumerate(first.checks):
        shapes = dict.fromkeys(shape for one in evidence for shape in one.checks[place].shapes)
        checks.append(check.model_copy(update={"shapes": tuple(shapes)}))
    return first.model_copy(update={"checks": tuple(checks)})
