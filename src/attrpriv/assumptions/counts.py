"""The counts assumption: rows are independent, and what is counted depends on a row's category of one sensitive column.

    given      for an event (`"stay > 7"`) its probability in each category; for a column its values with theirs
    network    instead: a Bayesian network over the columns of a record, with a tolerance on each of its probabilities
    prior      the share of each category, where it is known: for expected errors, for sets of values, and to mix categories

A probability is a number or an interval; Theta is the box of all of them. Several assumptions in a list are a finite Theta.
What must never change: an interval that comes out of this module contains the truth for every member of Theta.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from attrpriv.assumptions.gaussian import FittedRecord
from attrpriv.assumptions.probabilities import (
    Pair,
    Probability,
    ValueLaw,
    among,
    complement,
    outward,
    require_sum,
    share_of,
)
from attrpriv.errors import Cause, QueryError
from attrpriv.frozen import Finite, FrozenMap
from attrpriv.numerics.laws.records import exactly
from attrpriv.numerics.networks.inference import bounds, bounds_given
from attrpriv.numerics.networks.network import Network, read_network
from attrpriv.problem.assumption import Assumption, NamedCategories, PublicRecords, ShareBelief
from attrpriv.problem.shapes import LATTICE
from attrpriv.queries.conditions import Condition, Join, Not, columns_of, parse_condition, tests_null
from attrpriv.queries.evaluate import Bin, Category, holds_for, names_only

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from attrpriv.assumptions.fit_counts import PublicCountTable
    from attrpriv.problem.secret import Secret

Bins = Mapping[str, Sequence[float]]
# Of states of the columns that one condition reads in a network: each of them is looked at.
_MOST_COMBINATIONS = 1 << 17


def _form(value: object) -> str:
    return "<values>" if isinstance(value, Mapping | ValueLaw) else "<probability>"


GivenLaw = Annotated[Annotated[ValueLaw, Tag("<values>")] | Annotated[Probability, Tag("<probability>")], Discriminator(_form)]


def _canonical_events(value: object) -> object:
    """Events under the text that queries have too."""
    if not isinstance(value, Mapping):
        return value
    found = {_canonical(key, laws): laws for key, laws in value.items()}
    if len(found) != len(value):
        raise ValueError(f"must give each event once. Got {', '.join(map(str, value))}.")
    for key in found:
        if isinstance(key, str) and f"not ({key})" in found:
            raise ValueError(f"must give an event or its negation, not both. Got {key}.")
    return found


def _canonical(key: object, laws: object) -> object:
    if not isinstance(key, str) or not isinstance(laws, Mapping) or any(_form(law) == "<values>" for law in laws.values()):
        return key
    problem = None
    try:
        return str(parse_condition(key))
    except QueryError as error:
        problem = str(error)
    raise ValueError(f"{key}: must be a condition such as stay > 7, or a column with values. {problem}")


class Counts(Assumption):
    """Rows are independent; events and values have given probabilities in each category.

    >>> smokers = Counts(sensitive="smoker", given={"stay > 7": {"yes": 0.4, "no": (0.18, 0.22)}})
    >>> smokers.event(parse_condition("stay > 7"), {})["no"]
    (0.18, 0.22)
    """

    shape: ClassVar[str] = LATTICE
    kind: Literal["counts"] = "counts"
    sensitive: str = Field(description="the sensitive column; numeric ones through bins")
    given: Annotated[FrozenMap[FrozenMap[GivenLaw]], BeforeValidator(_canonical_events)] = Field(
        default_factory=dict, description="for each event or column: its law in each category of the sensitive column"
    )
    prior: FrozenMap[Probability] = Field(default_factory=dict, description="share of each category: a number or an interval")
    other: str | None = Field(default=None, description="the category that rows of no named category count as")
    network: Annotated[Network, BeforeValidator(read_network, json_schema_input_type=str)] | None = Field(
        default=None, description="instead of given: a BIF file, relative to the policy file"
    )
    tolerance: Annotated[Finite, Field(ge=0, lt=1)] | None = Field(
        default=None, description="with a network: how far each of its probabilities may be off"
    )
    fitted: FittedRecord | None = Field(
        default=None, exclude_if=lambda x: x is None, description="written by `attrpriv fit`: the public records behind it"
    )

    @classmethod
    def fit(
        cls,
        table: PublicCountTable,
        *,
        confidence: float,
        sensitive: str,
        events: Sequence[str] = (),
        columns: Sequence[str] = (),
        other: str | None = None,
    ) -> Counts:
        """The assumption that *public* records support: `Counts.fit(PublicTable("public.csv"), events=["stay > 7"], ...)`."""
        from attrpriv.assumptions.fit_counts import fit_count_table

        return fit_count_table(
            table, confidence=confidence, sensitive=sensitive, events=events, columns=columns, other=other
        ).counts

    @model_validator(mode="after")
    def _complete(self) -> Counts:
        if (self.network is None) == (not self.given):
            raise ValueError("needs given (probabilities in each category) or network (a BIF file), one of them.")
        if (self.network is None) != (self.tolerance is None):
            raise ValueError("tolerance: goes with a network, and is needed there (0 is allowed); given takes intervals.")
        if self.network is not None and self.sensitive not in self.network.nodes:
            raise ValueError(f"sensitive: must be a column of the network. Got {self.sensitive}.")
        if self.network is not None and self.prior:
            raise ValueError("prior: comes from the network; leave it out.")
        if self.network is not None and self.fitted is not None:
            raise ValueError("fitted: is of probabilities under given, not of a network.")
        for name, laws in self.given.items():
            self._require_laws(name, laws)
        if self.other is not None and self.other not in self.categories:
            raise ValueError(f"other: must be one of {', '.join(self.categories)}. Got {self.other}.")
        self._require_prior()
        return self

    def _require_laws(self, name: str, laws: Mapping[str, Any]) -> None:
        if name == self.sensitive:
            raise ValueError(f"given.{name}: the sensitive column itself needs no probability; remove it.")
        if len(laws) < 2 or set(laws) != set(self.categories):
            raise ValueError(
                f"given.{name}: must have two or more categories, the same for all. Got {', '.join(laws) or 'none'}."
            )
        listed = {law.values if isinstance(law, ValueLaw) else None for law in laws.values()}
        if len(listed) > 1:
            raise ValueError(f"given.{name}: every category must list the same values.")
        if None in listed and self.sensitive in columns_of(parse_condition(name)):
            raise ValueError(f"given.{name}: the sensitive column itself needs no probability; remove it.")

    def _require_prior(self) -> None:
        for name in self.prior:
            if name not in self.categories:
                raise ValueError(f"prior.{name}: must be one of {', '.join(self.categories)}.")
        if len(self.prior) == len(self.categories):
            require_sum(tuple(self.prior.values()))
        elif sum(exactly(low) for low, _ in self.prior.values()) > 1:
            raise ValueError("prior: shares must not sum to more than 1.")

    @property
    def categories(self) -> tuple[str, ...]:
        """The categories of the sensitive column."""
        if self.network is not None:
            return self.network.nodes[self.sensitive].states
        return tuple(next(iter(self.given.values())))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the stated probabilities are about, the sensitive one first."""
        listed = [name for name, laws in self.given.items() if isinstance(next(iter(laws.values())), ValueLaw)]
        read = [column for name in self.given if name not in listed for column in columns_of(parse_condition(name))]
        return tuple(dict.fromkeys((self.sensitive, *listed, *read)))

    def shares(self) -> dict[str, Pair]:
        """The prior share of each category that has one; with all but one known, the last follows."""
        if self.network is not None:
            return {name: self._share(self.network, k) for k, name in enumerate(self.categories)}
        shares = dict(self.prior)
        lacking = [name for name in self.categories if name not in shares]
        if shares and len(lacking) == 1:
            low, high = (sum((exactly(pair[k]) for pair in shares.values()), Fraction(0)) for k in (0, 1))
            shares[lacking[0]] = outward(max(Fraction(0), 1 - high), 1 - low)
        return shares

    def _share(self, network: Network, k: int) -> Pair:
        return bounds(network, (self.sensitive,), _is_state(len(self.categories), k), self.tolerance or 0.0)

    def category(self, name: str, bins: Bins) -> Category:
        """A category as conditions see it: a bin where the sensitive column has bins, else a value."""
        return _state(self.sensitive, name, self.categories.index(name), len(self.categories), bins)

    def members_of(self, secret: Secret, bins: Bins) -> frozenset[str]:
        """The categories that a secret counts."""
        composition = secret.composition
        if composition is None or composition.condition is None:
            raise QueryError(f"{secret.text}: must be the count or the share of some categories of {self.sensitive}.").because(
                Cause.SECRET, f"a count or share of {self.sensitive}"
            )
        if composition.reads != (self.sensitive,):
            raise QueryError(f"{secret.text}: must be about {self.sensitive}, the sensitive column of the assumption.").because(
                Cause.SECRET, f"a count or share of {self.sensitive}"
            )
        condition = composition.condition
        named = [name for name in self.categories if name != self.other]
        # Rows of `other` may have any value, or none: a secret must leave all of them out, by naming categories.
        if self.other is not None and not self.leaves_other_out(condition):
            raise QueryError(
                f"{secret.text}: with other: {self.other} it must name categories by = or in, of {', '.join(named)}, because "
                f"rows that count as {self.other} may have any value."
            )
        members = frozenset(name for name in named if holds_for(condition, self.category(name, bins)))
        if not members or len(members) == len(self.categories):
            which = "no category" if not members else "every category"
            known = ", ".join(self.categories)
            raise QueryError(f"{secret.text}: must tell some categories from others. Got one that holds for {which} ({known}).")
        return members

    def belief(self, secret: Secret, n: int, bins: Bins) -> ShareBelief | None:
        """By the prior of the categories that a secret counts."""
        if secret.entries is not None:
            return None
        share = share_of(self.shares(), self.members_of(secret, bins), self.categories)
        return None if share is None else ShareBelief(*share, closes=False)

    def event(self, condition: Condition, bins: Bins) -> dict[str, Pair]:
        """The probability of an event in each category; QueryError where the assumption does not say it."""
        read = columns_of(condition)
        if read == (self.sensitive,):
            return {name: self._own(condition, name, bins) for name in self.categories}
        if self.sensitive in read and self.other is not None:
            raise QueryError(
                f"assume: the law of {condition} among rows of {self.other} is not given; leave {self.sensitive} out."
            )
        if self.network is not None:
            return self._inferred(self.network, condition, bins)
        laws = self.given.get(str(condition))
        if laws is not None:
            return {name: law for name, law in laws.items() if not isinstance(law, ValueLaw)}
        turned = self.given.get(str(_negated(condition)))
        # A missing entry satisfies neither a condition nor its negation. A tally makes sure that there is none; it cannot where
        # the condition asks for missing entries itself.
        if turned is not None and not any(tests_null(condition, column) for column in read):
            return {name: complement(law) for name, law in turned.items() if not isinstance(law, ValueLaw)}
        if len(read) == 1 and read[0] in self.given:
            return {name: self._among(law, read[0], condition, bins) for name, law in self.given[read[0]].items()}
        raise QueryError(f"assume: must give the probability of {condition} in each category. Got {self._known()}.").because(
            Cause.NUMBERS, f"the probability of {condition}"
        )

    def _own(self, condition: Condition, name: str, bins: Bins) -> Pair:
        """An event of the sensitive column itself holds for a category or not; rows of `other` may have any value or none."""
        if name != self.other:
            return _certain(holds_for(condition, self.category(name, bins)))
        return (0.0, 0.0) if self.sensitive not in bins and self.leaves_other_out(condition) else (0.0, 1.0)

    def leaves_other_out(self, condition: Condition) -> bool:
        """Whether a condition on the sensitive column surely fails for every row of `other`, whatever its value is."""
        return names_only(condition, [one for one in self.categories if one != self.other])

    def _among(self, law: Any, column: str, condition: Condition, bins: Bins) -> Pair:
        """The probability of those of a column's values that satisfy a condition."""
        return among(law.probabilities, [holds_for(condition, state) for state in states_of(column, law.values, bins)])

    def values(self, column: str, bins: Bins) -> tuple[tuple[int | float | str, ...], dict[str, tuple[Pair, ...]]]:
        """The values of a column with their probabilities in each category."""
        if self.network is not None and column in self.network.nodes and column != self.sensitive:
            states = self.network.nodes[column].states
            tests = [_is_state(len(states), k) for k in range(len(states))]
            laws = {
                name: tuple(self._bounds(self.network, k, (column,), test) for test in tests)
                for k, name in enumerate(self.categories)
            }
            return states, laws
        found = self.given.get(column)
        if found is None or not all(isinstance(law, ValueLaw) for law in found.values()):
            raise QueryError(
                f"assume: must give the values of {column} with their probabilities. Got {self._known()}. "
                f"For an average, bounds of {column} are enough."
            ).because(Cause.NUMBERS, f"the values of {column}")
        values = next(law.values for law in found.values() if isinstance(law, ValueLaw))
        return values, {name: law.probabilities for name, law in found.items() if isinstance(law, ValueLaw)}

    def _inferred(self, network: Network, condition: Condition, bins: Bins) -> dict[str, Pair]:
        import numpy as np

        columns = columns_of(condition)
        for column in columns:
            if column not in network.nodes:
                raise QueryError(f"assume: {column} must be a column of the network. Got {', '.join(network.nodes)}.")
        if math.prod(len(network.nodes[column].states) for column in columns) > _MOST_COMBINATIONS:
            raise QueryError(
                f"query: a condition on {', '.join(columns[:6])}, ... has too many combinations. Use fewer columns."
            )
        states = [states_of(column, network.nodes[column].states, bins) for column in columns]
        event = np.zeros([len(names) for names in states])
        for index in itertools.product(*(range(len(names)) for names in states)):
            chosen = {column: states[axis][k] for axis, (column, k) in enumerate(zip(columns, index, strict=True))}
            event[index] = float(_holds(condition, chosen))
        return {name: self._bounds(network, k, columns, event) for k, name in enumerate(self.categories)}

    def _bounds(self, network: Network, category: int, columns: Sequence[str], event: NDArray[np.float64]) -> Pair:
        return bounds_given(network, self.sensitive, category, columns, event, self.tolerance or 0.0)

    def _known(self) -> str:
        return ", ".join(self.given) or "a network without it"

    def named_categories(self) -> NamedCategories:
        return NamedCategories(self.sensitive, self.categories, self.other)

    def listed_values(self) -> dict[str, tuple[int | float | str, ...]]:
        """Those under `given`, or the states of a network."""
        if self.network is not None:
            return {column: node.states for column, node in self.network.nodes.items() if column != self.sensitive}
        laws = {column: next(iter(by_category.values())) for column, by_category in self.given.items()}
        return {column: law.values for column, law in laws.items() if isinstance(law, ValueLaw)}

    def named_events(self) -> tuple[str, ...]:
        return tuple(name for name, laws in self.given.items() if not isinstance(next(iter(laws.values())), ValueLaw))

    def fit_record(self) -> FittedRecord | None:
        return self.fitted

    def public_records(self) -> PublicRecords | None:
        if self.fitted is None:
            return None
        return PublicRecords(self.fitted.rows, self.columns, self.fitted.digest, numbers=False)

    def explained(self) -> tuple[str, ...]:
        if self.network is not None:
            return super().explained()
        sure = "A probability given as an interval may be anything in it; one given as a number is taken as exact."
        return (*super().explained(), sure)

    def __str__(self) -> str:
        said = "; ".join(f"{name} {_shown(laws)}" for name, laws in self.given.items())
        if self.network is not None:
            said = f"a network over {', '.join(self.network.nodes)}, each probability off by at most {self.tolerance:g}"
        origin = "" if self.fitted is None else f"; {self.fitted}"
        return f"independent rows; given the category of {self.sensitive} ({', '.join(self.categories)}): {said}{origin}"


def states_of(column: str, names: Sequence[int | float | str], bins: Bins) -> list[Category]:
    """The values of a column as conditions see them: bins where it has bins."""
    return [_state(column, name, k, len(names), bins) for k, name in enumerate(names)]


def _state(column: str, name: int | float | str, k: int, states: int, bins: Bins) -> Category:
    if column not in bins:
        return name
    edges = bins[column]
    if states != len(edges) - 1:
        raise QueryError(f"bins: {column} needs a bin for each of its {states} states, in order. Got {len(edges) - 1} bin(s).")
    return Bin(edges[k], edges[k + 1], k == len(edges) - 2)


def _holds(condition: Condition, states: Mapping[str, Category]) -> bool:
    """A condition on several columns, each of which has a state."""
    if isinstance(condition, Join):
        parts = [_holds(part, states) for part in condition.parts]
        return all(parts) if condition.word == "and" else any(parts)
    if isinstance(condition, Not):
        return not _holds(condition.part, states)
    return holds_for(condition, states[condition.column])


def _negated(condition: Condition) -> Condition:
    return condition.part if isinstance(condition, Not) else Not(condition)


def _shown(laws: Mapping[str, Any]) -> str:
    """The probability of an event in each category; of a column, its values."""
    parts = []
    for name, law in laws.items():
        if isinstance(law, ValueLaw):
            return f"in {', '.join(map(str, law.values))} with stated probabilities"
        low, high = map(float, law)
        parts.append(f"{name} {low:g}" if low == high else f"{name} {low:g} to {high:g}")
    return f"({', '.join(parts)})"


def _certain(holds: bool) -> Pair:
    return (1.0, 1.0) if holds else (0.0, 0.0)


def _is_state(states: int, k: int) -> NDArray[np.float64]:
    import numpy as np

    return np.asarray(np.arange(states) == k, dtype=np.float64)
