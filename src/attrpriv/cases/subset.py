"""Averages over public subsets of the rows: which rows, how many, and how many of them two subsets share.

F_k is the average of a linear form over the rows S_k, m_k of the n. Which rows these are is independent of the columns of the
assumption: assumed, and said. With V the covariance of a row, g a secret and P what g explains of V,

    Cov(F_k, g) = V_kg / n:     F moves with g by the same slopes as averages over all rows
    Cov(F_k, F_l | g) = w_kl V_kl - P_kl / n,        w_kl = |S_k and S_l| / (m_k m_l)
    Cov(F | g) = w o (V - P) + (w - 1/n) o P  >=  w o (V - P)         (o entry by entry; w - 1/n is a Gram matrix)

| symbol | here |
|---|---|
| m_k, w | `Rows.sizes`, `Rows.shared` |

So what the plan credits is w o R, R the lower bound of a row's residual covariance. Over all rows w is 1/n.

What must never change: sizes are declared, never read, and a table in which one is another is an announced failure with a fixed
text. Subsets are apart, or one is inside the other, by their conditions alone. What else they might share is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from attrpriv.errors import QueryError
from attrpriv.methods.base.column_plan import Group, SubsetUnion
from attrpriv.problem.problem import Problem
from attrpriv.problem.public_groups import public_groups
from attrpriv.problem.refusal import Cause, Refusal, refusing
from attrpriv.queries.conditions import Compare, Condition, In, IsNull, Join, Not, Written, columns_of, joined, parse_condition
from attrpriv.queries.evaluate import relation
from attrpriv.queries.query import Query

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

Groups = Mapping[str, tuple[Group, ...]]


@dataclass(frozen=True)
class Rows:
    """Which rows each average is over (None: all), and how many that are."""

    wheres: tuple[str | None, ...]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, problem: Problem) -> Rows:
        """Of the averages that are asked for; a refusal where subsets are not covered."""
        wheres = problem.wheres
        if not any(wheres):
            return cls(wheres, (problem.n,) * len(wheres))
        known = _sizes(problem)
        found = cls(wheres, tuple(_size(problem, known, where) for where in wheres))
        _require_covered(problem)
        found._require_possible(problem)
        return found

    def shared(self) -> Matrix:
        """w: of the same rows, or of some of them and all, one over the larger number; of subsets that are apart, 0."""
        import numpy as np

        listed = dict(zip(self.wheres, self.sizes, strict=True))
        apart = {(a, b) for a in listed for b in listed if a != b and relation(a, b) == "apart"}
        each = [[0.0 if (a, b) in apart else 1 / max(m, k) for b, k in listed.items()] for a, m in listed.items()]
        places = [list(listed).index(where) for where in self.wheres]
        return np.array(each)[np.ix_(places, places)]

    def nested(self, places: Sequence[int]) -> dict[str | None, tuple[int, str | None]]:
        """Of the subsets of these averages, each once: how many rows it has beyond those inside it, and which is around it.

        One that nothing is around has itself there.
        """
        sizes = {self.wheres[k]: self.sizes[k] for k in places}
        around = {where: _around(where, sizes) for where in sizes}
        inside = {where: sum(sizes[one] for one in sizes if one != where and around[one] == where) for where in sizes}
        return {where: (size - inside[where], around[where]) for where, size in sizes.items()}

    def unions(self) -> tuple[SubsetUnion, ...]:
        """What is counted in the table itself, because engines, types and collations compare in their own ways.

        Subsets next to each other are apart iff at least one holds for as many rows as they have together, and they are inside
        another one iff at least one of all holds for as many rows as that other one has.
        """
        sizes = dict(zip(self.wheres, self.sizes, strict=True))
        around = {where: outer for where, (_, outer) in self.nested(range(len(self.wheres))).items()}
        found = []
        for outer in dict.fromkeys((None, *sizes)):
            inner = [where for where in sizes if where not in (None, outer) and _outside(where, around) == outer]
            if len(inner) > 1:
                found.append((inner, sum(sizes[where] for where in inner)))
            if inner and outer is not None:
                found.append(([outer, *inner], sizes[outer]))
        return tuple(SubsetUnion(wheres=tuple(map(str, wheres)), rows=rows) for wheres, rows in found)

    def _require_possible(self, problem: Problem) -> None:
        wheres = list(dict.fromkeys(self.wheres))
        for k, first in enumerate(wheres):
            for second in wheres[:k]:
                if relation(first, second) is None:
                    raise Refusal(
                        Cause.TOGETHER,
                        f"{second}, and {first}: how many rows satisfy both is not declared. Ask for subsets of which any two "
                        "are apart, or one inside the other, by their conditions.",
                        needs="subsets that are apart, or one inside the other",
                    )
        whole = replace(self, wheres=(*self.wheres, None), sizes=(*self.sizes, problem.n))
        for where, (own, _) in whole.nested(range(len(whole.wheres))).items():
            if own < 0:
                name = f"the {problem.n} rows" if where is None else where
                raise Refusal(
                    Cause.MISTAKE, f"sizes: subsets within {name} must not have more rows than it has. Got more.", needs="sizes"
                )


def _outside(where: str | None, around: Mapping[str | None, str | None]) -> str | None:
    """What is around a subset: of one with nothing around it, all rows."""
    return None if around[where] == where else around[where]


def _around(where: str | None, sizes: Mapping[str | None, int]) -> str | None:
    """The innermost subset around this one; of two names for the same rows, the first is around the second."""
    names = list(sizes)
    found = [one for one in names if one != where and relation(where, one) == "inside"]
    found += [one for one in names[: names.index(where)] if relation(where, one) == "same"]
    # Not by their sizes: a subset of all rows is as large as the table.
    return min(reversed(found), key=lambda one: sum(relation(two, one) == "inside" for two in found)) if found else where


def _size(problem: Problem, known: Mapping[str, int], where: str | None) -> int:
    if where is None:
        return problem.n
    size = known.get(where)
    if size is None:
        raise Refusal(
            Cause.PUBLIC_FACT,
            f'an average over a subset needs its size as a public number: declare sizes: {{"{where}": rows}}.',
            needs=f"sizes of {where}",
        )
    if not 2 <= size <= problem.n:
        raise Refusal(
            Cause.MISTAKE,
            f"sizes: must say how many of the {problem.n} rows satisfy {where}, 2 at least. Got {size}.",
            needs="sizes",
        )
    return size


def _sizes(problem: Problem) -> dict[str, int]:
    """The declared sizes, and that of the one group of a column that is left out: groups make up the table."""
    found = dict(problem.sizes)
    for column in dict.fromkeys((*problem.categories, *problem.bins)):
        wheres: list[str] = []
        with suppress(Refusal):  # groups of another column
            wheres = [str(where) for where in _conditions(problem, column).values()]
        unknown = [where for where in wheres if where not in found]
        if len(unknown) == 1:
            found[unknown[0]] = problem.n - sum(found[where] for where in wheres if where in found)
    return found


# Which subsets are covered.


def _require_covered(problem: Problem) -> None:
    if problem.known_rows or problem.individuals is not None:
        raise Refusal(Cause.PERSONS, "known_rows, individuals: are not covered for averages over a subset.")
    if any(secret.cases is not None for secret in problem.secrets):
        raise Refusal(
            Cause.SECRET,
            "an average over a subset is covered beside secrets that are hidden by their distance, not cases.",
            needs="a secret with within: distance",
        )
    named = {column for member in problem.theta for column in getattr(member, "columns", ())}
    hidden = {column for secret in problem.secrets for column in secret.columns}
    for key, form, where in zip(problem.columns, problem.forms, problem.wheres, strict=True):
        if where is None:
            continue
        inside = [column for column in columns_of(parse_condition(where)) if column in named | hidden]
        if inside:
            raise Refusal(
                Cause.STATISTIC,
                f"{where}: rows chosen by {inside[0]}, a column of the assumption or of a secret, do not have the assumed law. "
                "Choose by other columns, or use a view.",
                needs=("another filter", "a view"),
            )
        own = [column for column in form if column in hidden]
        if own:
            raise Refusal(
                Cause.STATISTIC,
                f"{key}: is of {own[0]}, a column of a secret; over a subset that is not covered.",
                needs=("another column", "a view"),
            )
        if key in {*problem.types, *named}:
            raise Refusal(
                Cause.MISTAKE,
                f"{key}: is an average over a subset, and the name of a column too. Rename that column.",
                needs="another name of the column",
            )


# Groups.


def grouped(problem: Problem) -> tuple[Problem, Groups]:
    """The problem with an average for each group in the place of those by group, and the groups of each of these."""
    queries: list[Query] = []
    groups: dict[str, tuple[Group, ...]] = {}
    for query in problem.queries:
        if query.group_by is None:
            queries.append(query)
            continue
        each = {name: replace(query, where=where, group_by=None) for name, where in _wheres(problem, query).items()}
        queries += each.values()
        groups[query.text] = tuple(Group(name=name, column=one.key or "") for name, one in each.items())
    if not groups:
        return problem, {}
    parted = problem.model_copy(update={"queries": tuple(dict.fromkeys(queries))})
    require_one_meaning(parted)
    return parted, groups


def _wheres(problem: Problem, query: Query) -> dict[str, str]:
    """The condition of each group; together they must be all the rows that the query is over."""
    own = None if query.where is None else parse_condition(query.where)
    conditions = _conditions(problem, query.group_by or "")
    found = {name: str(one if own is None else joined("and", own, one)) for name, one in conditions.items()}
    known = _sizes(problem)
    rows, parts = _size(problem, known, query.where), [_size(problem, known, where) for where in found.values()]
    if sum(parts) != rows:
        raise Refusal(
            Cause.MISTAKE,
            f"sizes: the groups of {query.group_by} must have {rows} rows in all. Got {sum(parts)}.",
            needs="sizes",
        )
    return found


def _conditions(problem: Problem, column: str) -> dict[str, Condition]:
    """Which rows are in each public group, as conditions that can be compared."""
    with refusing(
        QueryError, to=lambda error: Refusal(Cause.PUBLIC_FACT, str(error), needs=f"categories of {column}", usage=True)
    ):
        found = public_groups(column, problem.categories, problem.bins, problem.secrets, problem.types)
    named = {name: _spelled(problem, one) for name, one in found.items() if one is not None}
    values = tuple(one.value for one in named.values() if isinstance(one, Compare))
    if len(named) < len(found) and not values:
        raise Refusal(Cause.MISTAKE, f"categories: {column} must name a category beside other.", needs="categories")
    rest = joined("or", Not(In(column, values)), IsNull(column))
    return {name: rest if one is None else named[name] for name, one in found.items()}


def _spelled(problem: Problem, condition: Condition) -> Condition:
    """As people write it: a category by its name is a text, a whole number has no point."""
    if isinstance(condition, Join):
        return Join(condition.word, tuple(_spelled(problem, part) for part in condition.parts))
    if isinstance(condition, Compare) and isinstance(condition.value, float) and condition.value.is_integer():
        return replace(condition, value=int(condition.value))
    if not isinstance(condition, Written):
        return condition
    if problem.types.get(condition.column, "text") not in ("text", "date"):
        kind = problem.types[condition.column]
        raise Refusal(
            Cause.MISTAKE,
            f"categories: {condition.column} is {kind}; write its categories as such, not as text.",
            needs="categories",
        )
    return Compare(condition.column, "=", condition.text)


# Words.


def subset_lines(rows: Rows) -> tuple[str, ...]:
    """What is assumed of the subsets."""
    sizes = dict(zip(rows.wheres, rows.sizes, strict=True))
    listed = [f"{where} ({size})" for where, size in sizes.items() if where is not None]
    if not listed:
        return ()
    return (
        f"which rows satisfy each of these is independent of the columns of the assumption (assumed, not tested), and how many "
        f"do is public: {'; '.join(listed)}",
    )


def require_one_meaning(problem: Problem) -> None:
    """An average goes by its name (`Query.key`): a column must not be called as a combination or a subset beside it is."""
    found: dict[str, Query] = {}
    for query in problem.queries:
        if query.key is None or query.group_by is not None:
            continue
        other = found.setdefault(query.key, query)
        if (other.of, other.column, other.where) != (query.of, query.column, query.where):
            raise Refusal(
                Cause.MISTAKE,
                f"{query.key}: is an average of other columns or rows, and the name of a column too. Rename that column.",
                needs="another name of the column",
                query=query.text,
            )
