"""Values that a policy and its queries name, compared with the values that the policy lists. Public facts; no table.

| what lists the values of a column | unless it says `other` |
|---|---|
| `categories` | |
| `sensitive` of counts or groups, by its categories | |
| values under `given`; the states of a network or a chain | |
| the cells of a `distribution(column)` | |

A column that nothing lists, that has bins, or for which some list has `other`, may have any value. What must never change: a
value that is listed anywhere is accepted, and what is refused is a value that no row can have as the policy describes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches

from attrpriv.errors import PolicyError, QueryError
from attrpriv.policy import Policy
from attrpriv.problem.composition import OTHER, Composition, cell_parts
from attrpriv.queries.conditions import Compare, Condition, In, Join, Not, Value, Written, literal, parse_condition
from attrpriv.queries.evaluate import Category, holds_for
from attrpriv.queries.query import Query

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


__all__ = ["is_listed", "listed_values", "named_values", "padded", "require_listed", "unlisted"]
