"""A problem about counts: what one row adds to the statistic, for each secret and each member of Theta.

All queries of one call must come from the same tally (`tally_layout`), because the law of two tallies together is not known
from the laws of each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from attrpriv.assumptions.counts import Counts
from attrpriv.assumptions.probabilities import Pair, mixed, weighted
from attrpriv.cases.tally_layout import Layout, layout, members_of
from attrpriv.errors import QueryError, UsageError
from attrpriv.methods.base.certificate import common_assumptions
from attrpriv.methods.base.tally import Tally
from attrpriv.numerics.laws.records import CountPairs, RecordLaws, exactly
from attrpriv.problem.counted import count_pairs, share_range
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, other_assumption, refusal_of, refusing
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query

Made = TypeVar("Made")


@dataclass(frozen=True)
class CountCase:
    """One secret under one member of Theta.

    `rows` are the laws given a row's own category; `records` those of what must look alike, which of a population are mixtures.
    """

    secret: str
    theta: int
    records: RecordLaws
    pairs: CountPairs
    population: bool
    rows: RecordLaws


@dataclass(frozen=True)
class Counted:
    """Everything a mechanism for counts needs: the cases to hide and the tally to release, still without noise."""

    problem: Problem
    theta: tuple[Counts, ...]
    query: Query
    tally: Tally
    cases: tuple[CountCase, ...]

    @property
    def known(self) -> int:
        """How many rows an adversary may know."""
        return math.ceil(Fraction(repr(self.problem.known_rows)) * self.problem.n)


def counted(problem: Problem) -> Counted:
    """The problem as a tally; a refusal where the assumption or the queries are of another kind."""
    theta, query = _theta(problem), one_query(problem)
    return _asked(lambda: _counted(problem, theta, query))


def worst_law(found: Counted) -> str:
    """What to say of averages where the assumption states intervals: they are at the law for which they are largest."""
    sure = all(case.rows.exact for case in found.cases)
    shares = (pair for counts in found.theta for pair in counts.shares().values())
    return "" if sure and all(low == high for low, high in shares) else ", at the worst law within the intervals"


def rows_apart(problem: Problem) -> tuple[tuple[str, int, int], ...]:
    """For each member of Theta and each secret, in the order of the cases: how many rows change between two values at most."""
    theta = _theta(problem)
    return _asked(lambda: tuple((s.text, k, _apart(problem, theta[k], s)) for k in range(len(theta)) for s in problem.secrets))


def _apart(problem: Problem, counts: Counts, secret: Secret) -> int:
    members_of(problem, counts, secret)  # says so where the secret is of another kind
    return problem.n if secret.parameter is not None else count_pairs(secret, problem.n).apart


def _theta(problem: Problem) -> tuple[Counts, ...]:
    theta = problem.assumed(Counts)
    if not theta:
        raise other_assumption("counts")
    _require_same_categories(theta)
    return theta


def _counted(problem: Problem, theta: tuple[Counts, ...], query: Query) -> Counted:
    found = layout(problem, theta[0], query)
    cases = [_case(problem, theta[k], k, secret, found) for k in range(len(theta)) for secret in problem.secrets]
    return Counted(problem, theta, query, found.tally, tuple(cases))


def _asked(make: Callable[[], Made]) -> Made:
    """What the policy says wrongly is bad usage, not an unexpected error."""
    with refusing(QueryError, UsageError, ValueError, to=lambda error: refusal_of(error, usage=True)):
        return make()


def _require_same_categories(theta: Sequence[Counts]) -> None:
    first = theta[0]
    for member in theta[1:]:
        if (member.sensitive, member.categories, member.other) != (first.sensitive, first.categories, first.other):
            raise Refusal(
                Cause.MISTAKE,
                "assume: every assumption of a list must have the same sensitive column and categories.",
                needs="assume",
            )


def one_query(problem: Problem) -> Query:
    asked = [query for query in problem.queries if not query.whole_table]
    if not asked:
        raise Refusal(
            Cause.STATISTIC,
            "the number of rows is public; ask for a count with a filter, a sum, an average or a histogram.",
            needs="a count with a filter, a sum, an average or a histogram",
        )
    alike = {(query.column, query.where, query.group_by) for query in asked}
    if len(alike) > 1:
        raise Refusal(
            Cause.TOGETHER,
            f"the law of {asked[0].text} together with {asked[1].text} is not given; ask for one after the other, each with "
            "its share, or for a histogram.",
            needs=("one query at a time", "a histogram"),
            usage=True,
        )
    return asked[0]


def _case(problem: Problem, counts: Counts, index: int, secret: Secret, found: Layout) -> CountCase:
    members, shares, laws = members_of(problem, counts, secret), counts.shares(), found.laws(counts)
    member = weighted(shares, {name: laws[name] for name in counts.categories if name in members})
    rest = weighted(shares, {name: laws[name] for name in counts.categories if name not in members})
    rows = RecordLaws(found.values, member, rest)
    if secret.parameter is None:
        _require_possible(counts, secret, members, shares)
        return CountCase(secret.text, index, rows, count_pairs(secret, problem.n), False, rows)
    low, high = share_range(secret)
    records = RecordLaws(found.values, _mixed(high, member, rest), _mixed(low, member, rest))
    return CountCase(secret.text, index, records, CountPairs.all_of(problem.n), True, rows)


def _mixed(share: float, member: Sequence[Pair], rest: Sequence[Pair]) -> tuple[Pair, ...]:
    """The law of a row of a population in which this share of the rows are members."""
    shares = {"member": exactly(share), "rest": 1 - exactly(share)}
    return tuple(mixed(shares, {"member": m, "rest": r}) for m, r in zip(member, rest, strict=True))


def _require_possible(counts: Counts, secret: Secret, members: frozenset[str], shares: Mapping[str, Pair]) -> None:
    """A category of prior share 0 (or 1) has one possible count: any other value of the secret is impossible."""
    if all(name in shares for name in members) and math.fsum(shares[name][1] for name in members) == 0:
        raise QueryError(f"{secret.text}: its categories have prior share 0, so that no value but 0 is possible.")
    if all(name in shares for name in members) and math.fsum(shares[name][0] for name in members) >= 1:
        raise QueryError(f"{secret.text}: its categories have prior share 1, so that no value but all rows is possible.")


def independent_rows(problem: Problem) -> tuple[str, ...]:
    """What a proof rests on that uses no law of what is read: rows that stay in their category look alike."""
    sensitive = dict.fromkeys(member.sensitive for member in _theta(problem))
    lines = [
        f"rows are independent, and those of one category of {column} have one law, whatever it is" for column in sensitive
    ]
    known = [f"the adversary knows at most {problem.known_rows:.4g} of the rows"] if problem.known_rows else []
    return (*lines, *_together(problem), *(known or ["the adversary knows no row"]), *common_assumptions(problem))


def _together(problem: Problem) -> tuple[str, ...]:
    """What ties rows of several categories to one law: all that are not the secret's are taken together, at least.

    Without it, how the others divide could say what the secret is, with every row's law as it is stated.
    """
    first = _theta(problem)[0]
    if len(first.categories) < 3:
        return ()
    how = "by the stated prior" if first.prior else "by one law"
    return (f"where categories are taken together, rows fall into them {how}, whatever the secret is",)


def count_assumptions(found: Counted) -> tuple[str, ...]:
    """Everything the proof rests on."""
    problem = found.problem
    lines = ["rows are independent, and given its category a row adds to the statistic by the law that is stated: assumed"]
    lines += [f"{'one of: ' if len(found.theta) > 1 else ''}{counts}" for counts in found.theta]
    first = found.theta[0]
    lines += _together(problem)
    if first.other is not None:
        lines.append(f"rows of no named category, missing entries included, count as {first.other}, and follow its law")
    lines += [f"the law of {c} is that of its entries with missing ones replaced" for c in problem.missing]
    known = (
        f"the adversary knows at most {found.known} of the rows: of each its category, what it adds, or both"
        if problem.known_rows
        else "the adversary knows no row"
    )
    return (*lines, known, *common_assumptions(problem))
