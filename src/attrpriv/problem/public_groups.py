"""The groups of a GROUP BY, from public facts: declared in the policy, never read off the table.

    categories: {ward: [a, b, other]}     values of a column; `other` takes the rows of no other, missing entries too
    bins: {age: [0, 18, 65, 120]}         ranges of a numeric column
    distribution(ward)                    a secret that names its cells
    a boolean column                      true and false

What must never change: which groups an answer has, and in which order, does not depend on the table; each row is in one group.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import AfterValidator, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from attrpriv.errors import QueryError
from attrpriv.frozen import Single
from attrpriv.problem.composition import OTHER, bin_names
from attrpriv.problem.secret import Secret
from attrpriv.queries.conditions import Compare, Condition, Join, Written, literal
from attrpriv.queries.query import quoted

Category = Annotated[StrictBool | StrictInt | StrictFloat | StrictStr, Single]
PublicGroups = dict[str, Condition | None]


def category_name(value: str | int | float | bool) -> str:
    """How a category is called: a text as it is, anything else as SQL writes it."""
    return value if isinstance(value, str) else literal(value)


def _different(values: tuple[Category, ...]) -> tuple[Category, ...]:
    names = [category_name(value) for value in values]
    numbers = [value for value in values if not isinstance(value, str | bool)]  # 1 and 1.0 are the same
    if len(set(names)) != len(names) or len(set(numbers)) != len(numbers):
        raise ValueError(f"must name each category once. Got {', '.join(names)}.")
    return values


Categories = Annotated[tuple[Category, ...], Field(min_length=1), AfterValidator(_different)]


def public_groups(
    column: str,
    categories: Mapping[str, Sequence[Category]],
    bins: Mapping[str, Sequence[float]],
    secrets: Sequence[Secret],
    types: Mapping[str, str],
) -> PublicGroups:
    """Each group's name and which rows are in it (None: those of no other); a refusal where the policy declares none."""
    if column in categories:
        return _last_other({category_name(value): _is(column, value) for value in categories[column]})
    if column in bins:
        return dict(zip(bin_names(bins[column]), _ranges(column, bins[column]), strict=True))
    for secret in secrets:
        composition = secret.composition
        if composition is not None and composition.columns == (column,) and isinstance(secret.between, Mapping):
            return _last_other({name: _is(column, name) for name in secret.between})
    if types.get(column) == "boolean":
        return {"true": Compare(column, "=", True), "false": Compare(column, "=", False)}
    raise QueryError(
        f"group by: {quoted(column)} needs public categories, so that the set of groups reveals nothing. Declare them, as in "
        f"categories: {{{column}: [a, b, {OTHER}]}}, or bins for a numeric column."
    )


def _is(column: str, value: Category) -> Condition | None:
    if value == OTHER:
        return None
    return Written(column, value) if isinstance(value, str) else Compare(column, "=", value)


def _last_other(groups: PublicGroups) -> PublicGroups:
    return dict(sorted(groups.items(), key=lambda group: group[1] is None))


def _ranges(column: str, edges: Sequence[float]) -> list[Condition]:
    pairs = list(itertools.pairwise(edges))
    return [
        Join("and", (Compare(column, ">=", low), Compare(column, "<=" if k == len(pairs) - 1 else "<", high)))
        for k, (low, high) in enumerate(pairs)
    ]
