"""The secret-free view: keep a fixed, public number of rows of each cell.

What is promised: the law of the kept rows does not depend on the secret (epsilon 0, delta 0), for every i.i.d. law of the rows.
So any number of queries and any model computed from them reveal nothing about the composition.

    keep_c = the least count that the secret's range allows for cell c

Given the cell counts, the rows of a cell are independent draws from their conditional law, whatever the counts are; `keep_c` of
them chosen uniformly have the same joint law for every count that is at least `keep_c`, and the cells are independent.

For a property of the *population* the counts are random: P(some count is below what is kept) is the delta, and `keep_c` is the
largest number for which the sum over cells of P(Bin(n, share_c) < keep_c), at the least share each cell may have, is within it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import ClassVar, Literal

from pydantic import Field

from attrpriv.errors import QueryError
from attrpriv.methods.base.certificate import Certificate, Guarantee
from attrpriv.methods.base.evidence import Evidence
from attrpriv.methods.base.view_plan import REAL_RECORDS, ViewCell, ViewPlan
from attrpriv.methods.view.coverage import with_coverage
from attrpriv.methods.view.reference import plan_reference
from attrpriv.methods.view.sorted_plan import plan_sorted
from attrpriv.numerics.laws.binomial import binomial_below
from attrpriv.numerics.laws.prediction import at_least
from attrpriv.problem.composition import Cell, crossed_cells, crossed_form
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import quoted


def plan_view(problem: Problem) -> ViewPlan:
    """The view that hides the problem's composition; a refusal where it would not."""
    secret = _secret(problem)
    if secret.whole_columns:
        if problem.reference is not None and problem.reference.sorted:
            return plan_sorted(problem, secret)
        return with_coverage(plan_reference(problem, secret), problem)
    cells = _public_cells(problem, secret)
    if not sum(cell.keep for cell in cells):
        raise Refusal(Cause.PRECISION, "between: the range keeps no row of any cell. Narrow it.", needs="a narrower range")
    if sum(cell.keep for cell in cells) >= problem.n:  # of shares so near to 0 or 1 that delta covers every other table
        raise Refusal(
            Cause.PROMISE,
            "between: the view would be the whole table, so that nothing is hidden. Widen it.",
            needs="a wider range",
        )
    tails = math.fsum(cell.tail for cell in cells)
    certificate = Certificate(
        epsilon=0.0,
        delta=problem.delta if secret.parameter else 0.0,
        evidence=ViewEvidence(n=problem.n, cells=cells, population=secret.parameter is not None),
        assumes=_assumes(problem, secret),
    )
    certificate.verify()
    return ViewPlan(
        secret=secret,
        n=problem.n,
        cells=cells,
        guarantee=Guarantee(kind="proved", statement=_statement(secret, tails), reference="docs/theory/view.md"),
        certificate=certificate,
        policy_digest=problem.policy_digest,
        notes=(REAL_RECORDS, *_empty_cells(cells)),
    )


def _secret(problem: Problem) -> Secret:
    """The one composition that a view can hide."""
    if problem.known_rows > 0:
        raise Refusal(
            Cause.PERSONS,
            "known_rows: must be 0 for a view; who recognises rows reads the counts off how many of them appear.",
            needs="known_rows 0",
        )
    if problem.individuals is not None and not any(secret.whole_columns for secret in problem.secrets):
        raise Refusal(
            Cause.PERSONS,
            "individuals: single rows are protected in a view that hides columns(...) by a reference, not in one of ranges.",
            needs="no individuals",
        )
    if problem.individuals is not None and problem.reference is not None and problem.reference.sorted:
        raise Refusal(
            Cause.PERSONS,
            "individuals: single rows are not protected where a number is sorted: one row can move the values of all rows "
            "of its interval. Hide columns whose values repeat, or leave individuals out.",
            needs="no individuals",
        )
    compositions = [secret.composition for secret in problem.secrets]
    means = [secret.text for secret, composition in zip(problem.secrets, compositions, strict=True) if composition is None]
    if means:
        named = ", ".join(dict.fromkeys(map(quoted, _numbers_of(problem.secrets))))
        raise Refusal(
            Cause.SECRET,
            f"a view hides how rows fall into categories, not {means[0]}. To hide everything about {named}, protect "
            f"columns({named}) with a reference of public records; or protect a distribution over bins.",
            needs=("columns(...) with a reference", "a distribution over bins"),
        )
    whole = [secret for secret in problem.secrets if secret.whole_columns]
    if whole and len(compositions) > 1:
        together = ", ".join(dict.fromkeys(quoted(column) for secret in problem.secrets for column in secret.columns))
        raise Refusal(
            Cause.SECRET,
            f"protect: {whole[0].text} stands alone. To hide several columns, name them together: columns({together}).",
            needs="one columns(...)",
        )
    if len(compositions) > 1:
        several = [composition for composition in compositions if composition is not None]
        cause = Cause.SECRET if problem.theta else Cause.PUBLIC_FACT  # without an assumption a view is what is wanted
        raise Refusal(
            cause,
            "several compositions need one distribution(...) with a range for each crossed cell, because ranges of margins do "
            f"not bound cells: {'; '.join(crossed_cells(several))}. {crossed_form(several)}",
            needs="one distribution of crossed cells",
        )
    return problem.secrets[0]


def _numbers_of(secrets: Sequence[Secret]) -> tuple[str, ...]:
    """The columns of the secrets that are no compositions."""
    return tuple(column for secret in secrets if secret.composition is None for column in secret.columns)


def _public_cells(problem: Problem, secret: Secret) -> tuple[ViewCell, ...]:
    reason = None
    try:
        cells = secret.cells(problem.n, problem.bins)
        if secret.parameter is None:
            return tuple(ViewCell(name=c.name, keep=c.low, low=c.low, high=c.high) for c in cells)
        return _population_cells(problem, cells, _least_shares(secret, cells))
    except QueryError as error:
        reason = str(error)
    raise Refusal(Cause.MISTAKE, reason, needs="protect")


def _least_shares(secret: Secret, cells: Sequence[Cell]) -> dict[str, float]:
    """The least share of the population that each cell may have, from above by nothing: exact in decimals."""
    between = secret.between
    if isinstance(between, Mapping):
        exact = {name: (Fraction(repr(low)), Fraction(repr(high))) for name, (low, high) in between.items()}
    else:
        low, high = (Fraction(repr(end)) for end in between or (0.0, 1.0))
        exact = {cells[0].name: (low, high), cells[1].name: (1 - high, 1 - low)}
    lows, highs = sum(low for low, _ in exact.values()), sum(high for _, high in exact.values())
    if not lows <= 1 <= highs:
        raise QueryError(
            f"between: no population has shares in these ranges; their ends add up to {float(lows):g} and {float(highs):g}."
        )
    return {name: _down(max(low, 1 - highs + high)) for name, (low, high) in exact.items()}


def _down(share: Fraction) -> float:
    """The float at or below an exact share."""
    value = float(share)
    return value if Fraction(value) <= share else math.nextafter(value, -math.inf)


def _population_cells(problem: Problem, cells: Sequence[Cell], least: Mapping[str, float]) -> tuple[ViewCell, ...]:
    if problem.delta == 0:
        raise Refusal(
            Cause.BUDGET,
            "delta: a property of the population needs delta above 0, for the chance of a count outside.",
            needs="delta above 0",
            usage=True,
        )
    each = problem.delta / len(cells)
    keeps = {cell.name: at_least(problem.n, least[cell.name], each) for cell in cells}
    total = sum(keeps.values())
    return tuple(
        ViewCell(
            name=cell.name,
            keep=keeps[cell.name],
            low=keeps[cell.name],
            high=problem.n - total + keeps[cell.name],
            share=least[cell.name],
            tail=binomial_below(problem.n, least[cell.name], keeps[cell.name]),
        )
        for cell in cells
    )


def _statement(secret: Secret, tails: float) -> str:
    if secret.parameter is None:
        return (
            f"The law of the kept rows is the same for every composition in the range ({secret}): any number of queries and "
            "any model computed from them reveal nothing about it (epsilon 0, delta 0)"
        )
    return (
        f"The law of the kept rows is the same for every population in the range ({secret}), up to probability {tails:.3g}: "
        "any number of queries and any model computed from them reveal no more about it"
    )


def _assumes(problem: Problem, secret: Secret) -> tuple[str, ...]:
    population = (
        ("the law of a row, given its cell, does not depend on the hidden share",) if secret.parameter is not None else ()
    )
    return (
        "rows are independent draws from one law, whatever that law is",
        "what rows of one cell look like is not hidden, nor what somebody concludes from it in general",
        "the composition lies in the stated range; a table outside it is an announced failure",
        *population,
        "the adversary recognises no row, and no column of the view numbers rows or tells their order (name such identifiers)",
        "the view is drawn once, and nothing else about this table is released",
        "means of numeric columns are not hidden, and single persons are not protected",
        f"the number of rows, {problem.n}, and the names and types of the columns are public",
    )


def _empty_cells(cells: Sequence[ViewCell]) -> tuple[str, ...]:
    return tuple(
        f"no row of {cell.name} is kept, because its range allows tables without one." for cell in cells if not cell.keep
    )


def public_shares(plan: ViewPlan, composition: Mapping[str, float]) -> dict[str, float]:
    """The public composition that answers are scaled to: as the policy declares it, else the public's or mid-range.

    Cells that the policy leaves out share what is left in proportion to their middles.
    """
    middles = {cell.name: _middle(cell) for cell in plan.cells}
    unknown = [name for name in composition if name not in middles]
    if unknown:
        raise Refusal(
            Cause.MISTAKE, f"composition: the cells are {', '.join(middles)}. Got {unknown[0]!r}.", needs="composition"
        )
    open_cells = {name: middle for name, middle in middles.items() if name not in composition}
    left = 1 - sum(Fraction(repr(share)) for share in composition.values())
    if left < 0 or (left > 0 and not sum(open_cells.values())):
        raise Refusal(
            Cause.MISTAKE, f"composition: shares of all cells must add up to 1. Got {float(1 - left):g}.", needs="composition"
        )
    scale = float(left) / (sum(open_cells.values()) or 1.0)
    return {name: composition[name] if name in composition else middle * scale for name, middle in middles.items()}


def _middle(cell: ViewCell) -> float:
    """What the public expects of a cell: the share of its values, or the middle of its range."""
    known = cell.values is not None and cell.share is not None
    return (cell.share or 0.0) if known else (cell.low + cell.high) / 2


# ----------------------------------------------------------------------------------------------------------------------------
# The evidence of a secret-free view: fixed numbers of rows of each cell.


class ViewEvidence(Evidence):
    """Fixed numbers of rows of each cell: the law of the view does not depend on the counts, where each is large enough."""

    words: ClassVar[str] = "a view"
    kind: Literal["view"] = "view"
    n: int = Field(ge=2)
    cells: tuple[ViewCell, ...] = Field(min_length=1)
    population: bool = False

    def delta(self, epsilon: float) -> float:
        possible = sum(cell.low for cell in self.cells) <= self.n <= sum(cell.high for cell in self.cells)
        if not possible or any(cell.keep > cell.low or cell.low > cell.high for cell in self.cells):
            return 1.0
        if not self.population:
            return 0.0
        shares = [cell.share for cell in self.cells]
        if any(share is None for share in shares):
            return 1.0
        return math.fsum(binomial_below(self.n, share or 0.0, c.keep) for share, c in zip(shares, self.cells, strict=True))

    def view_of(self) -> tuple[int, tuple[ViewCell, ...]]:
        return self.n, self.cells
