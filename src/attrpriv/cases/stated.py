"""A statistic whose laws are written down, and its law given each value of the secret; what is counted is `stated_tally`.

Each entry of the sensitive column of a `counts` assumption (numbers, or a network over the columns of one record) has such laws
too: those of what its own row adds. All other rows are independent of that one, so that they may be anything, and known.

The stated values become whole steps of the same unit. A sum that is none of them has probability 0 by the assumption; it counts
as the nearest of them, so that nothing but a stated value ever meets the noise. What must never change: the query is the stated
statistic, or the average that follows from the stated sum; and every value of the secret that must look alike has its law.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from attrpriv.assumptions.counts import Counts
from attrpriv.assumptions.laws import Laws
from attrpriv.cases.lattice import one_query
from attrpriv.cases.stated_tally import stated_tally
from attrpriv.cases.tally_layout import Layout, layout
from attrpriv.errors import QueryError, UsageError
from attrpriv.methods.base.certificate import common_assumptions
from attrpriv.methods.base.checks import StatedCheck
from attrpriv.methods.base.tally import Tally, TallyCategory
from attrpriv.methods.base.tally_plan import ExpectedCount, Part
from attrpriv.numerics.laws.lattice_law import LatticeLaw
from attrpriv.numerics.laws.records import Interval01, exactly
from attrpriv.numerics.laws.stated import StatedLaws
from attrpriv.problem.counted import count_pairs
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, other_assumption, refusal_of, refusing
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query

# Up to so many steps the law of the constant answer's error is looked at value by value.
_FEW = 10_000


@dataclass(frozen=True)
class StatedCase:
    """One member of Theta: the laws, in the order of the secret's values, and how likely these are."""

    theta: int
    laws: StatedLaws
    prior: tuple[float, ...]


@dataclass(frozen=True)
class Stated:
    """Everything a mechanism needs: the laws to hide from each other, and the tally, still without noise."""

    problem: Problem
    theta: tuple[Laws, ...] | tuple[Counts, ...]
    query: Query
    tally: Tally
    cases: tuple[StatedCase, ...]
    low: int | None
    """Of a count that can be read: the one that the first law is for; None: no release may read the secret."""
    categories: tuple[TallyCategory, ...]
    """What is read for that."""
    one_row: bool = False
    """Whether the laws are of what the row of the secret adds, and all other rows are independent of it."""

    @property
    def secret(self) -> str:
        return self.problem.secrets[0].text

    @property
    def exact(self) -> bool:
        """Whether every law is stated by numbers."""
        return all(case.laws.exact for case in self.cases)

    @property
    def checks(self) -> tuple[StatedCheck, ...]:
        """The cases as a certificate stores them."""
        return tuple(StatedCheck(secret=self.secret, theta=case.theta, laws=case.laws) for case in self.cases)


def stated(problem: Problem) -> Stated:
    """The problem as a statistic with stated laws; a refusal where these do not cover it."""
    theta, counts = problem.assumed(Laws), problem.assumed(Counts)
    if counts:
        with refusing(QueryError, UsageError, ValueError, to=lambda error: refusal_of(error, usage=True)):
            return _entries(problem, counts, one_query(problem))
    if not theta:
        raise other_assumption("laws")
    if problem.known_rows:
        raise Refusal(
            Cause.PERSONS,
            "known_rows: is not covered; who knows rows knows more of the statistic than the stated laws say.",
            needs="known_rows 0",
        )
    query = one_query(problem)
    with refusing(QueryError, UsageError, ValueError, to=lambda error: refusal_of(error, usage=True)):
        return _stated(problem, theta, query)


def _stated(problem: Problem, theta: tuple[Laws, ...], query: Query) -> Stated:
    secret = _one_secret(problem)
    named = _Named.of(problem, secret, theta)
    _require_asked(theta, query)
    tally = stated_tally(problem, theta[0])
    if problem.individuals is not None:
        _require_even(tally.support)
    cases = [StatedCase(k, _laws(member, named, tally), _prior(member, named)) for k, member in enumerate(theta)]
    return Stated(problem, theta, query, tally, tuple(cases), named.low, named.categories)


def _entries(problem: Problem, theta: tuple[Counts, ...], query: Query) -> Stated:
    """An entry of the sensitive column, behind rows that are independent of each other: what its own row adds, given it."""
    secret = _one_secret(problem)
    if any(secret.entries != member.sensitive for member in theta):
        raise UsageError(f"{secret.text}: must be of {theta[0].sensitive}, the sensitive column of the assumption.")
    found = layout(problem, theta[0], query)
    if found.tally.histogram:
        raise Refusal(Cause.STATISTIC, "an entry is hidden behind one number; ask for one count.", needs="one count")
    if any(member.categories != theta[0].categories for member in theta):
        raise UsageError("assume: every assumption of a list must have the same categories.")
    names, cases = theta[0].categories, []
    for k, member in enumerate(theta):
        shares = member.shares()
        weights = [float(sum(map(exactly, shares[name])) / 2) for name in names] if set(names) <= set(shares) else []
        weights = weights or ([1.0] * len(names) if problem.n == 1 else [])
        laws = _entry_laws(problem, member, found)
        copies = (0.0,) * (len(laws.laws) - len(names)) if weights else ()
        cases.append(StatedCase(k, laws, tuple(weight / math.fsum(weights) for weight in weights) + copies))
    if problem.n == 1:
        tally = found.tally.model_copy(update={"support": found.values})
        return Stated(problem, theta, query, tally, tuple(cases), None, ())
    return Stated(problem, theta, query, found.tally, tuple(cases), None, (), one_row=True)


def _entry_laws(problem: Problem, member: Counts, found: Layout) -> StatedLaws:
    """The law of what a row adds, given each category of its entry.

    A bin, and what counts as `other`, holds several values, each with a law of its own within the stated one: such a law is
    there twice, so that two of these values are compared too.
    """
    laws, several = found.laws(member), member.sensitive in problem.bins
    names = (*member.categories, *(name for name in member.categories if several or name == member.other))
    return StatedLaws(found.values, tuple(laws[name] for name in names), len(names) - 1)


def _one_secret(problem: Problem) -> Secret:
    if len(problem.secrets) != 1:
        raise Refusal(
            Cause.SECRET,
            "stated laws are given one secret. Protect one, and state the laws given it.",
            needs="one secret",
            usage=True,
        )
    return problem.secrets[0]


def _require_asked(theta: Sequence[Laws], query: Query) -> None:
    """The query is what the laws are of; sum and average follow from each other."""
    for member in theta:
        own = member.query
        alike = (own.column, own.where, own.group_by, own.of) == (query.column, query.where, query.group_by, query.of)
        if not alike or (own.column is None) != (query.kind == "count"):
            raise Refusal(
                Cause.STATISTIC,
                f"the law of {query.text} is not stated; that of {own.text} is.",
                needs=f"the query {own.text}",
                query=query.text,
                usage=True,
            )
        if member.values != theta[0].values or own != theta[0].query or member.row_values != theta[0].row_values:
            raise Refusal(
                Cause.MISTAKE,
                "assume: every assumption of a list must state the same statistic with the same values.",
                needs="assume",
            )


def _require_even(support: Sequence[int]) -> None:
    """Single persons: the nearest of values without gaps moves by no more than the sum does."""
    if any(b - a != 1 for a, b in itertools.pairwise(support)):
        raise Refusal(
            Cause.PERSONS,
            "individuals: needs a stated law on all steps from the least to the largest value; a gap could show one row.",
            needs=("no individuals", "a law without gaps"),
        )


# ----------------------------------------------------------------------------------------------------------------------------
# Which law is for which value of the secret.


@dataclass(frozen=True)
class _Named:
    """The names of the laws that must look alike, in order; which of them do; and what is read, where a count is hidden."""

    names: tuple[str, ...]
    apart: int
    low: int | None = None
    where: str | None = None

    @property
    def categories(self) -> tuple[TallyCategory, ...]:
        if self.where is None:
            return ()
        inside = TallyCategory(name="inside", where=self.where, member=True)
        return inside, TallyCategory(name="outside", where=None, member=False)

    @classmethod
    def of(cls, problem: Problem, secret: Secret, theta: Sequence[Laws]) -> _Named:
        given = tuple(theta[0].given)
        if any(set(member.given) != set(given) for member in theta):
            raise UsageError("assume: every assumption of a list must give the laws of the same values of the secret.")
        if secret.cases is not None:
            return _of_cases(secret, given)
        if secret.entries is not None or secret.attribute is not None:
            return cls(tuple(sorted(given)), len(given) - 1)
        composition = secret.composition
        if composition is None or composition.kind not in ("count", "share") or secret.parameter is not None:
            raise Refusal(
                Cause.SECRET,
                f"stated laws hide a count, a share, entries or a parameter of finitely many values. Got {secret.text}; "
                "for another secret state the laws given sets of its values (cases).",
                needs="cases",
                usage=True,
            )
        return _of_counts(problem, secret, given)


def _of_cases(secret: Secret, given: Sequence[str]) -> _Named:
    """The cases by their own texts: the laws are given that the secret lies in each."""
    names = tuple(case.strip() for case in secret.cases or ())
    missing = next((name for name in names if name not in given), None)
    if missing is not None or len(given) != len(names):
        raise UsageError(f"given: must have one law for each case, {', '.join(names)}. Got {', '.join(given)}.")
    return _Named(names, len(names) - 1)


def _of_counts(problem: Problem, secret: Secret, given: Sequence[str]) -> _Named:
    """Every count of the range must have its law."""
    pairs, by_count = count_pairs(secret, problem.n), {}
    whole = secret.composition is not None and secret.composition.kind == "count"
    for name in given:
        by_count[_count(name, 1 if whole else problem.n)] = name
    missing = next((count for count in range(pairs.low, pairs.high + 1) if count not in by_count), None)
    if missing is not None or len(by_count) != len(given):
        word = "count" if whole else "share"
        shown = f"{missing} of {problem.n} rows" if missing is not None else "one value twice"
        raise UsageError(
            f"given: must have the law of each {word} from {pairs.low} to {pairs.high} rows of {problem.n}, once. "
            f"Got {'none of ' if missing is not None else ''}{shown}."
        )
    names = tuple(by_count[count] for count in range(pairs.low, pairs.high + 1))
    composition = secret.composition
    where = None if composition is None or composition.condition is None else str(composition.condition)
    return _Named(names, pairs.apart, pairs.low, where)


def _count(name: str, rows: int) -> int:
    try:
        found = Fraction(name[:-1]) / 100 if name.endswith("%") else Fraction(name)
    except (ValueError, ZeroDivisionError):
        raise UsageError(f"given: must name each value of the secret by its number. Got {name}.") from None
    near = round(found * rows)
    if abs(found * rows - near) > Fraction(1, 10**6):
        raise UsageError(f"given: must name values that a table of {rows} rows can have. Got {name}.")
    return near


def _prior(member: Laws, named: _Named) -> tuple[float, ...]:
    """How likely the values are, the middle of an interval; all alike where that is not stated of each."""
    if not all(name in member.prior for name in named.names):
        return (1 / len(named.names),) * len(named.names)
    weights = [float(sum(map(exactly, member.prior[name])) / 2) for name in named.names]
    total = math.fsum(weights)
    if not total > 0:
        raise UsageError("prior: must be above 0 for a value that is hidden.")
    return tuple(weight / total for weight in weights)


def _laws(member: Laws, named: _Named, tally: Tally) -> StatedLaws:
    laws: tuple[tuple[Interval01, ...], ...] = tuple(member.given[name] for name in named.names)
    return StatedLaws(tally.support, laws, named.apart)


# ----------------------------------------------------------------------------------------------------------------------------
# What to expect, and what to say.


def expected_counts(found: Stated) -> list[ExpectedCount]:
    """The law of F under each member of Theta, at the middle of intervals."""
    if not found.one_row:
        return [ExpectedCount(tuple(_parts(case))) for case in found.cases]
    if not all(case.prior for case in found.cases):
        raise Refusal(
            Cause.NUMBERS, "needs a prior for the share of each category.", needs="a prior for the share of each category"
        )
    return [ExpectedCount((_many_rows(_parts(case), found.problem.n),)) for case in found.cases]


def _many_rows(parts: Sequence[Part], n: int) -> Part:
    """The sum of so many independent rows, each by its share of these laws."""
    row = ExpectedCount(tuple(parts))
    return Part(1.0, n * row.mean, math.sqrt(n) * row.sd)


def _parts(case: StatedCase) -> list[Part]:
    steps, parts = case.laws.steps, []
    for chance, law in zip(case.prior, case.laws.middle(), strict=True):
        masses = [float(mass) for mass in law]
        mean = math.fsum(step * mass for step, mass in zip(steps, masses, strict=True))
        variance = math.fsum((step - mean) ** 2 * mass for step, mass in zip(steps, masses, strict=True))
        lattice = LatticeLaw.of(dict(zip(steps, law, strict=True))) if case.laws.reach <= _FEW else None
        parts.append(Part(chance, mean, math.sqrt(variance), lattice))
    return parts


def stated_assumptions(found: Stated) -> tuple[str, ...]:
    """Everything the proof rests on."""
    problem = found.problem
    if found.problem.assumed(Counts):
        return _row_assumptions(found)
    lines = ["given each value of the secret, the statistic has the law that is stated: assumed"]
    if problem.secrets[0].entries is not None:
        lines.append("the law given one entry is the same for each row")
    lines += [f"{'one of: ' if len(found.theta) > 1 else ''}{member}" for member in found.theta]
    lines += [f"the law is that of the statistic with missing entries of {c} replaced" for c in problem.missing]
    return (*lines, "the adversary knows no row", *common_assumptions(problem))


def _row_assumptions(found: Stated) -> tuple[str, ...]:
    problem = found.problem
    lines = ["rows are independent, and given its entry a row adds to the statistic by the law that is stated: assumed"]
    lines += [f"{'one of: ' if len(found.theta) > 1 else ''}{member}" for member in found.theta]
    lines += [f"the law of {c} is that of its entries with missing ones replaced" for c in problem.missing]
    lines += list(dict.fromkeys(line for member in problem.assumed(Counts) for line in _of_several(problem, member)))
    known = "the adversary may know all other rows, and nothing of the row whose entry is hidden"
    return (*lines, known, *common_assumptions(problem))


def _of_several(problem: Problem, member: Counts) -> list[str]:
    """What is assumed of values that are not told apart."""
    lines = [f"each value of {member.sensitive} in a bin has a law within the one stated of that bin"]
    lines = lines if member.sensitive in problem.bins else []
    if member.other is not None:
        lines.append(f"each value that counts as {member.other}, a missing entry too, has a law within the one stated of it")
    return lines


def stated_notes(found: Stated) -> tuple[str, ...]:
    if found.problem.assumed(Counts):
        return ("each entry is hidden by what its own row adds, whatever the others do.",)
    notes = ["an answer that is not among the stated values counts as the nearest of them."]
    secret = found.problem.secrets[0]
    if secret.attribute is not None and (secret.between is not None or secret.within is not None):
        notes.append("all values of the parameter are hidden from each other, not only those that between or within name.")
    if not found.exact:
        notes.append("expected errors are those at the middle of the stated intervals.")
    return tuple(notes)
