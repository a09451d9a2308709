"""What a parameter network says of one event of one column: its probability in each state, and how likely the states are.

    P(a row of the column satisfies the event | phi_j in state k) = p_k          `event_probabilities`
    P(phi_j in state k | phi_i = a) = w_ak,     P(phi_i = a)                     `conditional_states`

What must never change: intervals contain the stated numbers, in decimal fractions; `error` bounds the relative error of every
w_ak; and a state or a value of the secret is left out only where the network says that it is impossible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from attrpriv.assumptions.counts import states_of
from attrpriv.assumptions.parameter_network import Emission, ParameterNetwork
from attrpriv.assumptions.probabilities import Pair, among, complement
from attrpriv.errors import QueryError, UsageError
from attrpriv.numerics.networks.inference import joint_law
from attrpriv.numerics.rounding import UNIT
from attrpriv.queries.conditions import Condition
from attrpriv.queries.evaluate import Category, holds_for

# Inference counts its own roundings; this is how finely a stated network is taken at its word.
_LEAST_ERROR = 1e-12


@dataclass(frozen=True)
class ConditionalStates:
    """For each possible value of the secret's parameter: its own probability, and those of the states of the other."""

    values: tuple[str, ...]
    prior: tuple[float, ...]
    weights: tuple[tuple[float, ...], ...]
    error: float


def conditional_states(member: ParameterNetwork, column: str, secret: str) -> ConditionalStates:
    """The law of the parameter of `column` given each possible value of that of `secret`."""
    import numpy as np

    for name in (column, secret):
        if name not in member.network.nodes:
            raise UsageError(f"parameter: must be in the network. Got {name}.")
    joint = joint_law(member.network, (secret, column))
    if joint.tiny:
        raise UsageError(f"network: probabilities of {secret} with {column} are too small for a float.")
    table = np.diag(joint.values) if column == secret else joint.values
    sums = table.sum(axis=1)
    possible = [k for k in range(len(sums)) if sums[k] > 0]
    rows = tuple(tuple(float(p) for p in table[k] / sums[k]) for k in possible)
    states = member.network.nodes[secret].states
    # A row and its sum are each off by the joint law's error, and the quotient by some roundings.
    error = max(_LEAST_ERROR, 2.1 * joint.error + (2 * table.shape[1] + 8) * UNIT)
    total = float(sums[possible].sum())
    return ConditionalStates(tuple(states[k] for k in possible), tuple(float(sums[k]) / total for k in possible), rows, error)


def listed_values(member: ParameterNetwork, column: str, *, boolean: bool) -> tuple[int | str, ...] | tuple[bool, ...]:
    """The values that an entry can have; QueryError where the assumption lists none."""
    emission = _emission(member, column)
    if emission.family == "bernoulli":
        return (False, True) if boolean else (0, 1)
    return emission.categories or ()


def seen_values(
    member: ParameterNetwork, column: str, bins: Mapping[str, Sequence[float]], *, boolean: bool
) -> Sequence[Category]:
    """The listed values as conditions see them: bins where the column has bins."""
    values = listed_values(member, column, boolean=boolean)
    bernoulli = _emission(member, column).family == "bernoulli"
    return values if bernoulli else states_of(column, [str(value) for value in values], bins)


def event_probabilities(
    member: ParameterNetwork, column: str, event: Condition, bins: Mapping[str, Sequence[float]], *, boolean: bool
) -> tuple[Pair, ...]:
    """The probability that an entry satisfies the event, in each state of its column's parameter."""
    emission, states = _emission(member, column), member.network.nodes[column].states
    inside = [holds_for(event, value) for value in seen_values(member, column, bins, boolean=boolean)]
    if emission.family == "bernoulli":
        numbers = [member.number(column, state) for state in states]
        return tuple(_of_one(number, inside) for number in numbers)
    stated = emission.probabilities or {}
    return tuple(among([(p, p) for p in stated[state]], inside) for state in states)


def _of_one(p: float, inside: Sequence[bool]) -> Pair:
    """Of an entry that is 1 with probability p, else 0."""
    if inside[0] == inside[1]:
        return (float(inside[0]), float(inside[0]))
    return (p, p) if inside[1] else complement((p, p))


def _emission(member: ParameterNetwork, column: str) -> Emission:
    emission = member.attributes.get(column)
    known = emission is not None and (
        emission.family == "bernoulli" or (emission.family == "categorical" and emission.probabilities is not None)
    )
    if emission is None or not known:
        raise QueryError(
            f"assume: must say how {column} follows from its parameter (attributes: family bernoulli, or categorical with "
            "probabilities)."
        )
    return emission
