"""`attrpriv fit` for counts: of which events and values a policy needs the probabilities, and what public records call them.

What must never change: as in `cli.fit`. The private table is opened only to tell whether the public one is the same.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from attrpriv.assumptions.fit_counts import CountFit, fit_group_counts, require_fittable
from attrpriv.engines.moments import PublicTable
from attrpriv.engines.public_counts import require_other_rows
from attrpriv.engines.tables import open_table
from attrpriv.errors import PolicyError
from attrpriv.policy import Policy
from attrpriv.problem.assumption import Assumption
from attrpriv.queries.conditions import columns_of, literal, parse_condition
from attrpriv.queries.derived import parts_of
from attrpriv.queries.query import Query
from attrpriv.session.named_columns import is_listed, named_values, unlisted


def asks_for_counts(policy: Policy) -> bool:
    """Whether nothing but counts is released, and shares or counts of categories are hidden."""
    parts = parts_of(policy.queries())
    categories = all(secret.composition is not None and secret.columns for secret in policy.protect)
    return categories and bool(parts) and all(part.kind == "count" for part in parts)


def fit_counts(policy: Policy, public: Path, category: str, level: float) -> CountFit:
    """The probabilities of what the policy counts, in each category of the hidden column."""
    events, columns = _counted(policy, category)
    found = PublicTable(public).group_counts(category, events, columns)
    private = policy.data_path()
    if private is not None and os.path.exists(private):
        require_other_rows(open_table(private), found.rows, found.columns, found.digest)
    require_among(policy, category, found.categories)
    return fit_group_counts(found, confidence=level)


def _counted(policy: Policy, category: str) -> tuple[list[str], list[str]]:
    """The events and the columns by value whose law the released counts need."""
    events: dict[str, None] = {}
    columns: dict[str, None] = {}
    for part in parts_of(policy.queries()):
        if part.group_by is not None and part.group_by != category:
            columns[_column(policy, part)] = None
        read = () if part.where is None else columns_of(parse_condition(part.where))
        if part.where is not None and read != (category,):
            require_fittable(category, part.where, "release")
            events[part.where] = None
    if not events and not columns:
        raise PolicyError(f"release: must count something else than {category} alone, or all rows. Got nothing to fit.")
    return list(events), list(columns)


def _column(policy: Policy, part: Query) -> str:
    column = part.group_by or ""
    if part.where is not None:
        raise PolicyError(f"release: a histogram with a filter is not covered under counts. Got {part.text}.")
    if column in policy.bins:
        raise PolicyError(f"release: bins of {column} are not fitted; state their probabilities yourself. Got {part.text}.")
    return column


# ------------------------------------------------------------------------------------------------ what values are called


def require_among(policy: Policy, column: str, categories: Sequence[str]) -> None:
    """The values that secrets name must be among the public records' own: fitted without them, the assumption is of no use."""
    for secret in policy.protect:
        condition = None if secret.composition is None else secret.composition.condition
        for named, value in () if condition is None else named_values(condition):
            if named == column and not is_listed(value, categories):
                told = unlisted(column, value, categories, "the public records have")
                raise PolicyError(f"protect: {condition}: {told} Write it as both tables do.")


def padded_lines(assumption: Assumption) -> list[str]:
    """A line for each column whose values begin or end with a space in the public records."""
    named = assumption.named_categories()
    lists: dict[str, Sequence[object]] = {} if named is None else {named.column: named.names}
    lists |= assumption.listed_values()
    found = {name: [v for v in values if isinstance(v, str) and v != v.strip()] for name, values in lists.items()}
    return [
        f"{name}: {', '.join(map(literal, values))} begin or end with a space. Where rows of the private table are not written "
        "so, remove the spaces from the public records."
        for name, values in found.items()
        if values
    ]
