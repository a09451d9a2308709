"""What `markov_quilt` has to solve: the networks, the parameters to hide, what was released before, and how much may be lost.

    target = used + spend (epsilon - used),    used = what all earlier releases together lose, by the subset rule

What must never change: everything is computed again from the problem. Of earlier releases only the noise that was drawn and the
columns that were read count, so that a policy that hides more continues the same sequence or refuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attrpriv.assumptions.parameter_network import ParameterNetwork
from attrpriv.errors import UsageError
from attrpriv.methods.markov_quilt.proof import EarlierTerms, QuiltEvidence
from attrpriv.methods.markov_quilt.score import Known, least_loss, least_scale
from attrpriv.methods.markov_quilt.sensitivity import ColumnSensitivity
from attrpriv.methods.markov_quilt.sets import NOTHING, Before
from attrpriv.numerics.networks.network import Network
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, needs_bounds, other_assumption, refusing

# Noise this many times that of the whole budget means that nothing of it is left.
_HOPELESS = 1e9


@dataclass(frozen=True)
class QuiltCase:
    """The problem, the networks, the parameters that are hidden, and what was released before."""

    problem: Problem
    theta: tuple[ParameterNetwork, ...]
    protected: tuple[str, ...]
    earlier: tuple[EarlierTerms, ...]
    before: Before
    target: float  # what everything released may lose after this

    @property
    def networks(self) -> tuple[Network, ...]:
        return tuple(member.network for member in self.theta)

    @property
    def tolerances(self) -> tuple[float, ...]:
        return tuple(member.tolerance for member in self.theta)

    def known(self, sensitivity: ColumnSensitivity, lacking: Sequence[str] = ()) -> tuple[float, tuple[Known, ...]]:
        """The least scale, and the set that each parameter uses; `lacking`: columns that need bounds to get noise."""

        def told(error: Exception) -> Refusal:
            if lacking:
                return needs_bounds(lacking)
            return Refusal(Cause.NUMBERS, str(error)) if self.before == NOTHING else Refusal(Cause.EARLIER, _NOTHING_LEFT)

        with refusing(UsageError, to=told):
            scale, found = least_scale(
                self.networks, self.protected, sensitivity, self.target, tolerances=self.tolerances, before=self.before
            )
        if self.before != NOTHING and any(one.scale * self.problem.epsilon > _HOPELESS * one.sensitivity for one in found):
            raise Refusal(Cause.EARLIER, _NOTHING_LEFT)
        return scale, found


_NOTHING_LEFT = (
    "together with the earlier releases no noise hides the parameters: they spent, or told exactly, what this would need. "
    "Queries that were answered are answered again at no cost."
)


def quilt_case(problem: Problem) -> QuiltCase:
    """The case, or a refusal of what is not covered."""
    theta = problem.assumed(ParameterNetwork)
    if not theta:
        raise other_assumption("parameter_network")
    if problem.known_rows:
        raise Refusal(
            Cause.PERSONS,
            "known_rows: is not covered; an adversary who knows rows knows more of the parameters than the network says.",
            needs="known_rows 0",
        )
    protected = _protected(problem, theta)
    earlier, before = _before(problem)
    return QuiltCase(problem, theta, protected, earlier, before, _target(problem, theta, protected, before))


def _protected(problem: Problem, theta: Sequence[ParameterNetwork]) -> tuple[str, ...]:
    protected = []
    for secret in problem.secrets:
        if secret.attribute is None:
            raise Refusal(
                Cause.SECRET,
                f"hides parameters of the network, as in parameter: income. Got {secret.text}.",
                needs="a parameter of the network",
                usage=True,
            )
        for member in theta:
            if secret.attribute not in member.network.nodes:
                raise Refusal(
                    Cause.MISTAKE,
                    f"parameter: must be in the network. Got {secret.attribute}.",
                    needs="a parameter of the network",
                )
        protected.append(secret.attribute)
    return tuple(dict.fromkeys(protected))


def _before(problem: Problem) -> tuple[tuple[EarlierTerms, ...], Before]:
    """What was really drawn and read before. Of the earlier proof only its sets are tried again."""
    if problem.earlier is None:
        return (), NOTHING
    earlier = QuiltEvidence.read(problem.earlier)
    if earlier is None:
        raise Refusal(Cause.EARLIER, "continues releases of markov_quilt; what was released before is of another kind.")
    terms = earlier.together()
    rates = tuple((frozenset(one.columns), one.size) for one in terms)
    return terms, Before(rates, tuple(dict.fromkeys(check.known for check in earlier.checks)))


def _target(problem: Problem, theta: Sequence[ParameterNetwork], protected: Sequence[str], before: Before) -> float:
    """One target for all parameters: that of the one that is known best."""
    used = 0.0
    if before != NOTHING:
        networks, tolerances = [member.network for member in theta], [member.tolerance for member in theta]
        used = least_loss(networks, protected, before, tolerances=tolerances)
    if not used <= problem.epsilon:
        raise Refusal(
            Cause.EARLIER,
            f"the earlier releases together may lose {used:.6g} already, above epsilon {problem.epsilon:g}.",
            needs="a larger epsilon",
        )
    return min(problem.epsilon, used + problem.spend * (problem.epsilon - used))
