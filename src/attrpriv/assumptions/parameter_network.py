"""The parameter network: what is known of the populations a table may come from, as a Bayesian network over their parameters.

    phi ~ network                     one parameter for each attribute: a share, a mean, any finite list of cases
    column j of the table ~ phi_j     given all parameters, the columns are independent, and each depends on its own alone

| attribute's family | a row's entry given phi_j |
|---|---|
| none | not stated: only that it depends on phi_j alone |
| bernoulli | 1 with probability phi_j |
| normal | mean phi_j, the stated sd |
| categorical | the stated probabilities of each category, for each state of phi_j |

`tolerance` t: every entry of every table of the network may be off by t; 0 is allowed, and said. Several assumptions in a list
are a finite Theta. What must never change: the columns of a table depend on the network through their own parameter only, and
an interval that comes out of this module contains the truth for every member of Theta.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import AliasChoices, BeforeValidator, Field, model_validator

from attrpriv.errors import UsageError
from attrpriv.frozen import Finite, FrozenMap, FrozenModel, Positive
from attrpriv.numerics.networks.inference import bounds_given, joint_law
from attrpriv.numerics.networks.network import Network, read_network
from attrpriv.numerics.rounding import SUM_SLACK
from attrpriv.problem.assumption import Assumption, PublicRecords, StatesBelief
from attrpriv.problem.shapes import QUILT

if TYPE_CHECKING:
    from attrpriv.assumptions.fit_populations import PopulationTable
    from attrpriv.problem.secret import Secret


Pair = tuple[float, float]
Probability = Annotated[Finite, Field(ge=0, le=1)]


class Emission(FrozenModel):
    """How a column follows from its parameter."""

    family: Literal["none", "bernoulli", "normal", "categorical"] = Field(description="law of an entry given its parameter")
    sd: Positive | None = Field(default=None, description="normal: standard deviation of an entry given its mean")
    categories: tuple[str, ...] | None = Field(default=None, min_length=2, description="categorical: the column's values")
    probabilities: FrozenMap[tuple[Probability, ...]] | None = Field(
        default=None, description="categorical: for each state of the parameter, the probability of each category"
    )

    @model_validator(mode="after")
    def _complete(self) -> Emission:
        if (self.sd is not None) != (self.family == "normal"):
            raise ValueError("sd: goes with family normal, and is needed there.")
        if (self.categories is not None) != (self.family == "categorical"):
            raise ValueError("categories: go with family categorical, and are needed there.")
        if self.probabilities is not None and self.categories is None:
            raise ValueError("probabilities: go with family categorical.")
        for state, row in (self.probabilities or {}).items():
            if len(row) != len(self.categories or ()) or abs(sum(row) - 1) > SUM_SLACK:
                raise ValueError(f"probabilities.{state}: needs one for each category, and they must sum to 1.")
        return self


class FittedPopulations(FrozenModel):
    """From which reference populations a network was learned."""

    rows: Annotated[int, Field(strict=True, ge=2)] = Field(description="number of reference populations")
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] = Field(description="SHA-256 of the columns of their table")
    columns: tuple[str, ...] = Field(min_length=1, description="the columns that were read")

    def __str__(self) -> str:
        return f"learned from {self.rows} reference populations (digest {self.digest[:16]})"


@dataclass(frozen=True)
class Posterior:
    """The law of phi_j given each possible value of phi_i: numbers, and for each value of phi_i an interval a number."""

    values: tuple[float, ...]
    given: Mapping[str, tuple[Pair, ...]]


class ParameterNetwork(Assumption):
    """Parameters of the population form a network; each column depends on its own parameter alone.

    >>> from attrpriv.numerics.networks.network import Node
    >>> flip = ((0.7, 0.3), (0.3, 0.7))
    >>> school = ParameterNetwork(network=Network(nodes={
    ...     "income": Node(states=("low", "high"), table=((0.5, 0.5),)),
    ...     "tall": Node(states=("0.3", "0.5"), parents=("income",), table=flip)}),
    ...     values={"income": {"low": 40_000, "high": 80_000}}, attributes={"tall": {"family": "bernoulli"}}, tolerance=0)
    >>> school.posterior("tall", "income").given["low"]
    ((0.7, 0.7), (0.3, 0.3))
    """

    shape: ClassVar[str] = QUILT
    kind: Literal["parameter_network"] = "parameter_network"
    network: Annotated[Network, BeforeValidator(read_network, json_schema_input_type=str)] = Field(
        validation_alias=AliasChoices("file", "network"), description="a BIF file, relative to the policy file"
    )
    values: FrozenMap[FrozenMap[Finite]] = Field(
        default_factory=dict, description="of each parameter: the number that each of its states stands for"
    )
    attributes: FrozenMap[Emission] = Field(
        default_factory=dict, description="of each column: how it follows from its parameter; left out: not stated"
    )
    tolerance: Annotated[Finite, Field(ge=0, lt=1)] = Field(description="how far each probability of the network may be off")
    fitted: FittedPopulations | None = Field(default=None, description="the reference populations behind it")

    @classmethod
    def fit(
        cls,
        populations: PopulationTable,
        *,
        bins: Mapping[str, Sequence[float]],
        tolerance: float,
        parents: Mapping[str, Sequence[str]] | None = None,
        smoothing: float = 1.0,
    ) -> ParameterNetwork:
        """The network that a table of reference populations suggests: one row a population, one column a parameter."""
        from attrpriv.assumptions.fit_populations import fit_populations

        return fit_populations(populations, bins=bins, tolerance=tolerance, parents=parents, smoothing=smoothing)

    @model_validator(mode="after")
    def _consistent(self) -> ParameterNetwork:
        for column, numbers in self.values.items():
            self._require_column("values", column)
            unknown = [state for state in numbers if state not in self.network.nodes[column].states]
            if unknown:
                states = ", ".join(self.network.nodes[column].states)
                raise ValueError(f"values.{column}: has the states {states}. Got {unknown[0]}.")
        for column, emission in self.attributes.items():
            self._require_column("attributes", column)
            self._require_emission(column, emission)
        return self

    def _require_column(self, key: str, column: str) -> None:
        if column not in self.network.nodes:
            raise ValueError(
                f"{key}.{column}: must be in the network. It has {', '.join(list(self.network.nodes)[:8]) or 'none'}."
            )

    def _require_emission(self, column: str, emission: Emission) -> None:
        states = self.network.nodes[column].states
        if emission.family in ("bernoulli", "normal"):
            for state in states:
                number = self._number(column, state)
                if number is None:
                    raise ValueError(f"values.{column}: needs a number for the state {state}.")
                if emission.family == "bernoulli" and not 0 <= number <= 1:
                    raise ValueError(f"values.{column}: {state}: a bernoulli parameter must be in [0, 1]. Got {number:g}.")
        if emission.probabilities is not None and set(emission.probabilities) != set(states):
            raise ValueError(f"attributes.{column}: probabilities are needed for the states {', '.join(states)}.")

    @property
    def columns(self) -> tuple[str, ...]:
        """The attributes that have a parameter."""
        return tuple(self.network.nodes)

    def _number(self, column: str, state: str) -> float | None:
        """As stated, or the state's own name where that is a number."""
        if state in self.values.get(column, {}):
            return self.values[column][state]
        try:
            number = float(state)
        except ValueError:
            return None
        return number if abs(number) < float("inf") else None

    def number(self, column: str, state: str) -> float:
        """The number that a state of a parameter stands for."""
        self._asked(column)
        found = self._number(column, state)
        if found is None:
            raise UsageError(f"values.{column}: needs a number for the state {state}.")
        return found

    def posterior(self, column: str, secret: str) -> Posterior:
        """The law of phi_column given each possible value of phi_secret, over the whole tolerance."""
        self._asked(column)
        self._asked(secret)
        values = tuple(self.number(column, state) for state in self.network.nodes[column].states)
        states = self.network.nodes[secret].states
        joint = joint_law(self.network, (secret, column) if column != secret else (secret,)).values
        weights = joint if column == secret else joint.sum(axis=1)
        possible = [k for k in range(len(states)) if self.tolerance or weights[k] > 0]
        return Posterior(values, {states[k]: self._law(column, secret, k) for k in possible})

    def belief(self, secret: Secret, n: int, bins: Mapping[str, Sequence[float]]) -> StatesBelief | None:
        """Of each value of a parameter."""
        if secret.attribute is None or secret.attribute not in self.network.nodes:
            return None
        weights = joint_law(self.network, (secret.attribute,)).values  # refused where the network is too large for it
        return StatesBelief(tuple(float(weight) for weight in weights / weights.sum()), exact=not self.tolerance)

    def _law(self, column: str, secret: str, k: int) -> tuple[Pair, ...]:
        import numpy as np

        size = len(self.network.nodes[column].states)
        if column == secret:
            return tuple((float(k == state), float(k == state)) for state in range(size))
        if self.tolerance:
            unit = np.eye(size)
            return tuple(bounds_given(self.network, secret, k, (column,), unit[state], self.tolerance) for state in range(size))
        row = joint_law(self.network, (secret, column)).values[k]
        return tuple((float(p), float(p)) for p in row / row.sum())

    def _asked(self, column: str) -> None:
        if column not in self.network.nodes:
            raise UsageError(
                f"parameter: must be one of the network's, {', '.join(list(self.network.nodes)[:8])}. Got {column}."
            )

    def public_records(self) -> PublicRecords | None:
        if self.fitted is None:
            return None
        return PublicRecords(self.fitted.rows, self.fitted.columns, self.fitted.digest)

    def explained(self) -> tuple[str, ...]:
        known = f"to within {self.tolerance:g}" if self.tolerance else "exactly"
        return (
            f"Whoever believes that {self}.",
            f"They may know {known} how likely each combination of these parameters is, but not which one this population has.",
        )

    def __str__(self) -> str:
        t = f"tolerance {self.tolerance:g}" if self.tolerance else "tolerance 0: its tables are taken as exact"
        source = "" if self.fitted is None else f"; {self.fitted}"
        names = list(self.columns)
        named = ", ".join(names) if len(names) <= 8 else f"{', '.join(names[:8])} and {len(names) - 8} more"
        return f"the parameters of {named} form a network, and each column depends on its own alone ({t}{source})"
