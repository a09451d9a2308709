"""Columns that a policy or a query names, against the table's schema: they must be there, and of a type that fits.

What must never change: decided by the schema alone, which is public; no row is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches

from attrpriv.engines.conditions import check_condition
from attrpriv.engines.scan import UNKNOWN_COLUMN, closest
from attrpriv.engines.tables import NOT_NUMBERS, shown_name
from attrpriv.errors import DataError, PolicyError, QueryError
from attrpriv.policy import Policy
from attrpriv.problem.composition import OTHER, Composition, cell_parts
from attrpriv.problem.shapes import POPULATION, QUILT, STATED
from attrpriv.queries.conditions import Compare, Condition, In, Join, Not, Value, Written, columns_of, literal, parse_condition
from attrpriv.queries.evaluate import Bin, Category, holds_for
from attrpriv.queries.query import Query, quoted
from attrpriv.queries.sql import parse_queries

# As the engines write the values of a type.
_WRITTEN = {
    "integer": (re.compile(r"0|-?[1-9][0-9]*"), "a whole number as it is written, such as 1"),
    "boolean": (re.compile("true|false"), "'true' or 'false', in quotes"),
}


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
        require_number(key, column, types[column])
    _require_numbers(policy, types)
    _require_alike(queries, policy, types)
    _require_written(policy, types)
    _require_fills(policy, types)


def require_number(key: str, column: str, kind: str) -> None:
    """A refusal of an average of a column that has no numbers; of text and dates, what is asked for instead."""
    if (what := NOT_NUMBERS.get(kind)) is None:
        return
    asked = "count(*) filter (where {})" if key in ("query", "release") else "share({})"
    condition = {"text": f"{quoted(column)} = 'a value'", "date": f"{quoted(column)} > '2024-05-01'"}.get(kind)
    way = "" if condition is None else f" Write {asked.format(condition)}."
    raise DataError(f"{key}: avg and sum need a numeric column. Got {shown_name(column)}, which is {what}.{way}")


def _require_numbers(policy: Policy, types: Mapping[str, str]) -> None:
    """Where numbers say something of a column, it has some."""
    for key in ("bounds", "resolution", "bins"):
        for column in getattr(policy, key):
            if types[column] in NOT_NUMBERS:
                what = NOT_NUMBERS[types[column]]
                raise DataError(f"{key}: needs a numeric column. Got {shown_name(column)}, which is {what}. Remove it.")


def _require_alike(queries: Sequence[Query], policy: Policy, types: Mapping[str, str]) -> None:
    """Every constant must be of its column's type; what an assumption says of columns that the table has not is let be."""
    for key, condition in _conditions(queries, policy):
        binned = isinstance(condition, Written) and condition.column in policy.bins  # a bin's name is no value
        if not binned and all(column in types for column in columns_of(condition)):
            check_condition(types, condition, key)
    for key, column, value in _stated_values(policy):
        if column in types and column not in policy.bins and not isinstance(value, str | Bin):  # a text is as the table has it
            check_condition(types, Compare(column, "=", value), key)


def _stated_values(policy: Policy) -> Iterator[tuple[str, str, Category]]:
    """The values that the policy lists of a column: the key, the column and the value."""
    yield from (("categories", column, value) for column, values in policy.categories.items() for value in values)
    for assumed in policy.assume:
        yield from (("assume", column, value) for column, values in assumed.listed_values().items() for value in values)


def _require_written(policy: Policy, types: Mapping[str, str]) -> None:
    """A category that no value is written as would have no row: 01 is 1, whose rows are of another category."""
    for key, column, name in _named_categories(policy):
        form, words = _WRITTEN.get(types.get(column, ""), (None, ""))
        if form is not None and column not in policy.bins and not form.fullmatch(name):
            raise DataError(f"{key}: a category of {shown_name(column)} must be {words}. Got {name!r}; no row has it.")


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
    # A parameter of a network, or of stated laws, may be one of a column that this table does not even have.
    apart = any(assumed.shape in (QUILT, STATED) for assumed in policy.assume)
    yield from (
        ("protect", column) for secret in policy.protect if not (apart and secret.attribute) for column in secret.columns
    )


# ----------------------------------------------------------------------------------------------------------------------------
# Values that a policy and its queries name, compared with the values that the policy lists. Public facts; no table.
#
# | what lists the values of a column | unless it says `other` |
# |---|---|
# | `categories` | |
# | `sensitive` of counts or groups, by its categories | |
# | values under `given`; the states of a network or a chain | |
# | the cells of a `distribution(column)` | |
#
# A column that nothing lists, that has bins, or for which some list has `other`, may have any value. What must never change:
# a value that is listed anywhere is accepted, and what is refused is a value that no row can have as the policy describes
# them.


_MOST_SHOWN = 8


def require_listed(queries: Sequence[Query], policy: Policy) -> None:
    """Every value that a secret, a size or a filter compares with must be among those listed, where some are."""
    lists = listed_values(policy)
    for where, condition in _conditions(queries, policy):
        for column, value in named_values(condition):
            if column in lists and not is_listed(value, lists[column]):
                kind = QueryError if where == "query" else PolicyError
                raise kind(f"{where}: {condition}: {unlisted(column, value, lists[column], 'the policy lists')}")


def listed_values(policy: Policy) -> dict[str, tuple[Category, ...]]:
    """The values that each column can have, where the policy says them all."""
    found: dict[str, dict[Category, None]] = {}
    open_ended = {*policy.bins}
    for column, values in _lists(policy):
        found.setdefault(column, {}).update(dict.fromkeys(values))
        if OTHER in values:
            open_ended.add(column)
    named = (member.named_categories() for member in policy.assume)
    open_ended |= {one.column for one in named if one is not None and one.other is not None}
    return {column: tuple(values) for column, values in found.items() if column not in open_ended}


def _lists(policy: Policy) -> Iterator[tuple[str, Sequence[Category]]]:
    yield from policy.categories.items()
    for secret in policy.protect:
        composition = secret.composition
        if composition is not None and len(composition.columns) == 1 and isinstance(secret.between, Mapping):
            yield composition.columns[0], tuple(secret.between)
    for member in policy.assume:
        named = member.named_categories()
        if named is not None:
            yield named.column, named.names
        yield from member.listed_values().items()


def _conditions(queries: Sequence[Query], policy: Policy) -> Iterator[tuple[str, Condition]]:
    """Every condition that names values, with the key that it stands under."""
    for secret in policy.protect:
        if secret.composition is not None and secret.composition.condition is not None:
            yield "protect", secret.composition.condition
        if secret.composition is not None and isinstance(secret.between, Mapping):
            yield from (("protect", cell) for cell in _cells(secret.composition, tuple(secret.between), policy))
    yield from (("sizes", parse_condition(text)) for text in policy.sizes)
    for member in policy.assume:
        yield from (("assume", parse_condition(text)) for text in member.named_events())
    yield from (("query", parse_condition(query.where)) for query in queries if query.where is not None)


def _cells(composition: Composition, names: Sequence[str], policy: Policy) -> Iterator[Condition]:
    """The values of a distribution's cells, one by one."""
    for name in names:
        parts = cell_parts(composition, name, policy.bins)
        if name != OTHER and len(parts) == len(composition.columns):
            yield from (Written(column, part) for column, part in zip(composition.columns, parts, strict=True))


def named_values(condition: Condition) -> Iterator[tuple[str, Value]]:
    """The values that a condition compares for equality, each with its column."""
    if isinstance(condition, Join):
        for part in condition.parts:
            yield from named_values(part)
    elif isinstance(condition, Not):
        yield from named_values(condition.part)
    elif isinstance(condition, In):
        yield from ((condition.column, value) for value in condition.values)
    elif isinstance(condition, Written):
        yield condition.column, condition.text
    elif isinstance(condition, Compare) and condition.operator in ("=", "!="):
        yield condition.column, condition.value


def is_listed(value: Value, listed: Sequence[Category]) -> bool:
    """Whether some listed value is this one; where the two cannot be compared, that is said elsewhere."""
    try:
        return any(holds_for(Compare("value", "=", value), one) for one in listed)
    except QueryError:
        return True


def unlisted(column: str, value: Value, listed: Sequence[Category], who: str) -> str:
    """What is wrong, what there is, and what was probably meant."""
    names = [literal(one) if isinstance(one, str | int | float) else str(one) for one in listed]
    more = ", ..." if len(names) > _MOST_SHOWN else ""
    near = _nearest(str(value), [str(one) for one in listed])
    meant = " Write one of these, or list it." if near is None else f" Did you mean {literal(near)}?"
    return f"{who} {', '.join(names[:_MOST_SHOWN])}{more} for {column}. Got {literal(value)}.{meant}"


def _nearest(value: str, listed: Sequence[str]) -> str | None:
    """The listed value that looks most like this one, whatever the case and the spaces around it."""
    plain = {one.strip().casefold(): one for one in reversed(listed)}
    close = get_close_matches(value.strip().casefold(), plain, n=1)
    return plain[close[0]] if close else None


def padded(policy: Policy, queries: Sequence[Query]) -> str | None:
    """A line where a value begins or ends with a space: as it is written is how rows are compared with it."""
    named = [value for _, condition in _conditions(queries, policy) for _, value in named_values(condition)]
    named += [one for values in listed_values(policy).values() for one in values if isinstance(one, str)]
    found = dict.fromkeys(literal(one) for one in named if isinstance(one, str) and one != one.strip())
    if not found:
        return None
    return f"{', '.join(found)}: begins or ends with a space, and only rows that are written so are meant."
