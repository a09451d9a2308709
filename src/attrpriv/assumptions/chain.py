"""Chain: the entries of one column, in the order of the rows, are a Markov chain with finitely many states.

    P(first row has state s) = initial[s],      P(next row has state t | this row has s) = transition[s][t]

`initial` may be a list of laws and `transition` a list of matrices; Theta is then every initial law with every matrix. Several
chains in a list under `assume` are a finite Theta as well. `initial: any` is every start. `transition` may be intervals, as two
matrices `low` and `high`; or `tolerance`, which has no default, says how far each probability may be off. Both may differ at
each step, and the start may then be anything, too. `longest` is for a table of several persons, who are independent: none has
more entries. What must never change: every row is a law (it sums to one), the order of the states is that of the rows and
columns of every matrix, and a probability of 0 stays 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Discriminator, Field, PlainSerializer, Tag, model_validator

from attrpriv.errors import UsageError
from attrpriv.frozen import Finite, FrozenModel, Single
from attrpriv.frozen.requirements import shown
from attrpriv.numerics.laws.chain_family import ChainFamily
from attrpriv.numerics.laws.markov import MOST_STATES, MarkovChain
from attrpriv.problem.assumption import Assumption
from attrpriv.problem.shapes import CHAIN

Law = tuple[Finite, ...]
Matrix = tuple[Law, ...]


class MatrixIntervals(FrozenModel):
    """The least and the largest of each probability to move on."""

    low: Matrix = Field(description="a row for each state: the least probability of each next state")
    high: Matrix = Field(description="the largest of each")


def _depth(value: object) -> int:
    """How deep a list is nested, by its first entries."""
    return 1 + (_depth(value[0]) if value else 0) if isinstance(value, list | tuple) else 0


def _listed(depth: int, what: str) -> Any:
    """A value of this depth as a list of one; a list of them as it is."""

    def read(value: object) -> object:
        if _depth(value) not in (depth, depth + 1):
            raise ValueError(f"must be {what}, or a list of such. Got {shown(value)}.")
        return [value] if _depth(value) == depth else value

    return read


def _moves(value: object) -> object:
    if isinstance(value, MatrixIntervals | Mapping):
        return value
    return _listed(2, "a matrix, one row a state")(value)


def _start(value: object) -> object:
    """`any` is kept as no law at all."""
    return [] if value == "any" or value == () else _listed(1, "any, a list of probabilities, one a state")(value)


def _start_written(value: Sequence[Any]) -> Any:
    return _shortest(value) if value else "any"


def _shortest(value: Any) -> Any:
    """One is written as itself."""
    if isinstance(value, MatrixIntervals):
        return value.to_json()
    return value[0] if len(value) == 1 else list(value)


def _form(value: object) -> str:
    return "<intervals>" if isinstance(value, Mapping | MatrixIntervals) else "<matrices>"


Laws = Annotated[
    tuple[Law, ...],
    BeforeValidator(_start, json_schema_input_type=Law | tuple[Law, ...] | Literal["any"]),
    PlainSerializer(_start_written, return_type=Any),
]
Matrices = Annotated[
    Annotated[tuple[Matrix, ...], Tag("<matrices>")] | Annotated[MatrixIntervals, Tag("<intervals>")],
    Discriminator(_form),
    BeforeValidator(_moves, json_schema_input_type=Matrix | tuple[Matrix, ...] | MatrixIntervals),
    PlainSerializer(_shortest, return_type=Any),
]


class Chain(Assumption):
    """The entries of a column are a Markov chain.

    >>> Chain(column="state", states=[0, 1], initial=[1, 0], transition=[[0.9, 0.1], [0.4, 0.6]], tolerance=0).members[0].states
    2
    """

    shape: ClassVar[str] = CHAIN
    kind: Literal["chain"] = "chain"
    column: str = Field(description="the column whose entries, in the order of the rows, are the chain")
    states: tuple[Annotated[int | float | str, Single], ...] = Field(
        min_length=2, max_length=MOST_STATES, description="all values of the column: numbers, or names"
    )
    initial: Laws = Field(description="the law of the first entry, in the order of states; a list of such laws; or any")
    transition: Matrices = Field(
        description="a row for each state: the law of the next entry; a list of such matrices; or {low, high}, two matrices"
    )
    tolerance: Annotated[Finite, Field(ge=0, lt=1)] = Field(
        description="how far each probability of transition may be off, at every step; 0: they are exact"
    )
    longest: Annotated[int, Field(strict=True, ge=1)] | None = Field(
        default=None,
        exclude_if=lambda value: value is None,  # as in records of 0.1.0, which know no such key
        description="the most entries that one person has, where the rows are those of several; else one chain",
    )

    @model_validator(mode="after")
    def _complete(self) -> Chain:
        if any(isinstance(state, bool) for state in self.states):
            raise ValueError(f"states: must be numbers or names; write 0 and 1 for a boolean column. Got {list(self.states)}.")
        if len({isinstance(state, str) for state in self.states}) > 1:
            raise ValueError(f"states: must be all numbers or all names. Got {list(self.states)}.")
        if len(set(self.states)) != len(self.states):
            raise ValueError(f"states: must be different. Got {list(self.states)}.")
        self._require_laws()
        return self

    def _require_laws(self) -> None:
        """What is stated is a law, also where a tolerance or any start means that it is not used as it is."""
        problem, even = None, (1 / len(self.states),) * len(self.states)
        matrices = ((even,) * len(even),) if isinstance(self.transition, MatrixIntervals) else self.transition
        if isinstance(self.transition, MatrixIntervals) and self.tolerance:
            raise ValueError(f"tolerance: must be 0 where intervals are stated. Got {self.tolerance:g}.")
        try:
            stated = [MarkovChain(law, matrix) for law, matrix in itertools.product(self.initial or [even], matrices)]
            if any(member.states != len(self.states) for member in (*stated, *self.members)):
                what = "initial: must have one probability" if self.initial else "transition: must have one row"
                problem = f"{what} for each of {len(self.states)} states."
        except UsageError as error:
            problem = str(error)
        if problem is not None:
            raise ValueError(problem)

    @property
    def members(self) -> tuple[MarkovChain | ChainFamily, ...]:
        """Theta: every initial law with every matrix; or all matrices within intervals, from any start."""
        if isinstance(self.transition, MatrixIntervals):
            return (ChainFamily(self.transition.low, self.transition.high),)
        if self.any_start:
            return tuple(ChainFamily(*self._ends(matrix)) for matrix in self.transition)
        return tuple(MarkovChain(law, matrix) for law, matrix in itertools.product(self.initial, self.transition))

    @property
    def any_start(self) -> bool:
        """Whether nothing is assumed of the first entry, which is so wherever a matrix is not known exactly."""
        return not self.initial or self.tolerance > 0 or self.within_intervals

    @property
    def within_intervals(self) -> bool:
        """Whether intervals are stated for the probabilities to move on."""
        return isinstance(self.transition, MatrixIntervals)

    def _ends(self, matrix: Matrix) -> tuple[Matrix, Matrix]:
        """The least and the largest of each probability, by the decimals as they are written."""
        off = Fraction(repr(self.tolerance))
        lower = tuple(tuple(float(max(Fraction(0), Fraction(repr(p)) - off)) if p else p for p in row) for row in matrix)
        upper = tuple(tuple(float(min(Fraction(1), Fraction(repr(p)) + off)) if p else p for p in row) for row in matrix)
        return (lower, upper) if self.tolerance else (matrix, matrix)

    @property
    def numeric(self) -> bool:
        return not isinstance(self.states[0], str)

    def listed_values(self) -> dict[str, tuple[int | float | str, ...]]:
        return {self.column: self.states}

    def explained(self) -> tuple[str, ...]:
        return (
            f"Whoever believes that {self}: the next entry depends on the one before and on nothing else.",
            "They may know exactly how it starts and how it moves on."
            if not self.any_start
            else "They may know exactly how it starts, and how it moves on at each step.",
        )

    def __str__(self) -> str:
        several = f", one of {len(self.members)} chains" if len(self.members) > 1 else ""
        named = ", ".join(map(str, self.states))
        near = f", each probability to move on within {self.tolerance:g} of those stated" if self.tolerance else ""
        near = ", each probability to move on within its interval" if self.within_intervals else near
        start = ", whatever its start" if self.any_start else ""
        who = f" of each person (at most {self.longest} entries)" if self.longest is not None else ""
        entries = f"the entries of {self.column} in the order of the rows{who}"
        return f"{entries} are a Markov chain with states {named}{several}{near}{start}"
