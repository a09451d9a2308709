"""Columns that a policy or a query names, against the table's schema: they must be there, and of a type that fits.

What must never change: decided by the schema alone, which is public; no row is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from attrpriv.engines.conditions import check_condition
from attrpriv.engines.scan import UNKNOWN_COLUMN, closest
from attrpriv.engines.tables import NOT_NUMBERS, shown_name
from attrpriv.errors import DataError
from attrpriv.policy import Policy
from attrpriv.problem.composition import OTHER, cell_parts
from attrpriv.problem.shapes import POPULATION, QUILT
from attrpriv.queries.conditions import columns_of, parse_condition
from attrpriv.queries.query import Query
from attrpriv.queries.sql import parse_queries
from attrpriv.session.named_values import require_listed

# As the engines write a whole number.
_WHOLE = re.compile(r"0|-?[1-9][0-9]*")


def require_columns(queries: Sequence[Query], policy: Policy, types: Mapping[str, str]) -> None:
    """Every column that the policy or the queries name must be there, and be a number or comparable where that is needed.

    Values that are compared must be among those that the policy lists.
    """
    require_listed(queries, policy)
    if not types:  # the table is not there yet
        return
    summed = [*_summed(queries, policy)]
    for key, column in dict.fromkeys((*summed, *_declared(queries, policy))):
        if column not in types:
            text = UNKNOWN_COLUMN.format(column=shown_name(column), hint=closest(types, column))
            raise DataError(text.replace("data:", f"{key}:", 1))
    for key, column in dict.fromkeys(summed):
        if types[column] in NOT_NUMBERS:
            what = NOT_NUMBERS[types[column]]
            raise DataError(f"{key}: avg and sum need a numeric column. Got {shown_name(column)}, which is {what}.")
    for condition in (*policy.sizes, *(query.where for query in queries if query.where)):
        check_condition(types, parse_condition(condition))
    _require_written(policy, types)
    _require_fills(policy, types)


def _require_written(policy: Policy, types: Mapping[str, str]) -> None:
    """A category that no whole number is written as would have no row: 01 is 1, whose rows are of another category."""
    for key, column, name in _named_categories(policy):
        if types.get(column) == "integer" and column not in policy.bins and not _WHOLE.fullmatch(name):
            raise DataError(
                f"{key}: a category of {shown_name(column)} must be a whole number as it is written, such as 1. Got {name!r}; "
                "no row has it."
            )


def _named_categories(policy: Policy) -> Iterator[tuple[str, str, str]]:
    """The texts that a policy names values of a column by: the key, the column and the text."""
    for column, values in policy.categories.items():
        yield from (("categories", column, value) for value in values if isinstance(value, str) and value != OTHER)
    for secret in policy.protect:
        composition, cells = secret.composition, secret.between
        if composition is None or not isinstance(cells, Mapping):
            continue
        for cell in (cell for cell in cells if cell != OTHER):
            parts = cell_parts(composition, cell, policy.bins)
            yield from (("protect", column, part) for column, part in zip(composition.columns, parts, strict=False))
    for assumed in policy.assume:
        named = assumed.named_categories()
        if named is not None:
            yield from (("assume", named.column, name) for name in named.names if name != named.other)


def _require_fills(policy: Policy, types: Mapping[str, str]) -> None:
    """An average takes any number for a missing entry; a category must be a value that the column can have."""
    counted = {*_categories(policy)} - {*policy.bins}
    for column, value in policy.missing.items():
        name, kind = shown_name(column), types[column]
        if kind in NOT_NUMBERS:
            raise DataError(f"missing: needs a numeric column. Got {name}, which is {NOT_NUMBERS[kind]}. Fill it in the table.")
        if column in counted and kind == "integer" and value != int(value):
            raise DataError(f"missing: the value for {name} must be a whole number, as its categories are. Got {value:g}.")
        if column in counted and kind == "boolean" and value not in (0, 1):
            raise DataError(f"missing: the value for {name} must be 0 or 1, as its categories are. Got {value:g}.")


def _categories(policy: Policy) -> Iterator[str]:
    """Columns whose values are told apart, one by one."""
    yield from policy.categories
    yield from (column for secret in policy.protect if secret.composition is not None for column in secret.composition.reads)
    named = (assumed.named_categories() for assumed in policy.assume)
    yield from (one.column for one in named if one is not None)


def _summed(queries: Sequence[Query], policy: Policy) -> Iterator[tuple[str, str]]:
    """Columns whose values are added, and the key that names them."""
    yield from (("query", column) for query in queries for column in query.columns)
    means = any(assumed.shape == POPULATION for assumed in policy.assume)  # of a column that a plan may read
    for secret in policy.protect:
        if secret.composition is None and secret.entries is None and (means or secret.attribute is None):
            yield from (("protect", column) for column in secret.columns)


def _declared(queries: Sequence[Query], policy: Policy) -> Iterator[tuple[str, str]]:
    """Columns that are named elsewhere."""
    for key in ("bounds", "resolution", "missing", "bins", "categories", "identifiers"):
        yield from ((key, column) for column in getattr(policy, key))
    yield from (("sizes", column) for condition in policy.sizes for column in columns_of(parse_condition(condition)))
    yield from (("ranges", column) for text in policy.ranges for query in parse_queries(text) for column in query.columns)
    for query in queries:
        yield from (("query", column) for column in (columns_of(parse_condition(query.where)) if query.where else ()))
        yield from (("query", column) for column in (query.group_by,) if column is not None)
    # A parameter of a network may be one of a column that this table does not even have.
    apart = any(assumed.shape == QUILT for assumed in policy.assume)
    yield from (
        ("protect", column) for secret in policy.protect if not (apart and secret.attribute) for column in secret.columns
    )


__all__ = ["require_columns"]
