"""Two yardsticks: group differential privacy, and the constant answer. Neither looks at the assumption's slopes.

`group_dp`: every row of the column may change at once, so an average kept in its bounds moves by at most their width R, and
Laplace noise of scale R/eps makes any table look like any other. It needs no assumption about the rows, only `bounds`.

`constant`: the mean that the assumption already states. It reads no row and hides everything; what it gets wrong is what the
data would have told. `auto` never chooses it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from attrpriv.methods.base.accuracy import ExpectedError, Noise, folded_reach, folded_size, laplace_error, largest_error
from attrpriv.methods.base.certificate import Certificate
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.base.evidence import ConstantEvidence, LaplaceEvidence, LaplaceTerm
from attrpriv.methods.base.parts import AveragesPart
from attrpriv.methods.base.plan import Plan, assemble
from attrpriv.methods.laplace_sequence.standing import range_assumes, range_budget
from attrpriv.noise import GRID_BITS, granularity
from attrpriv.numerics.rounding import ROUNDED_UP, SOLVED_DOWN
from attrpriv.problem.assumption import ExpectedEntry
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, needs_bounds

_REFERENCE = "docs/theory/yardsticks.md"


def plan_group_dp(problem: Problem) -> Plan:
    """Laplace noise of the width of the bounds; epsilon shared equally by the columns."""
    lacking = [column for column in problem.columns if column not in problem.bounds]
    if lacking:
        raise needs_bounds(lacking)
    epsilon, proof = range_budget(problem)
    share = epsilon / max(1, len(problem.columns))
    terms = tuple(_laplace_term(problem, column, share) for column in problem.columns)
    columns = tuple(
        ColumnPlan(
            column=term.column,
            noise=Noise(kind="laplace", scale=term.scale),
            error=laplace_error(term.scale),
            fill=problem.missing.get(term.column),
            clip=problem.bounds[term.column],
            parameters={"sensitivity": term.sensitivity, "granularity": term.granularity, "clipped": True},
        )
        for term in terms
    )
    return _assemble(
        problem,
        "group_dp",
        columns,
        Certificate(
            epsilon=problem.epsilon,
            delta=problem.delta,
            evidence=proof(terms),
            individuals=_rows(problem, terms),
            assumes=range_assumes(problem),
        ),
        notes=tuple(f"{column}: values outside its bounds are clipped." for column in problem.columns),
    )


def _laplace_term(problem: Problem, column: str, epsilon: float) -> LaplaceTerm:
    low, high = problem.bounds[column]
    width = (high - low) * ROUNDED_UP
    if not math.isfinite(width):
        raise Refusal(Cause.PUBLIC_FACT, f"bounds of {column} are too wide for a float.", needs=f"narrower bounds of {column}")
    # The grid of the noise adds one step to the width, at most 2^-32 of the scale; 1e-9 covers every rounding.
    spendable = epsilon * SOLVED_DOWN - 2.0**-GRID_BITS
    if not spendable > 0:
        raise Refusal(
            Cause.BUDGET, f"the grid of the noise costs more than epsilon {problem.epsilon:g} allows.", needs="a larger epsilon"
        )
    scale = width / spendable
    return LaplaceTerm(column=column, sensitivity=width, scale=scale, granularity=granularity(scale))


def _rows(problem: Problem, terms: Sequence[LaplaceTerm]) -> LaplaceEvidence | None:
    """The same noise protects single rows, which move an average by an n-th of its bounds' width."""
    if problem.individuals is None:
        return None
    rows = tuple(term.model_copy(update={"sensitivity": term.sensitivity / problem.n}) for term in terms)
    return LaplaceEvidence(epsilon=problem.individuals, terms=rows)


def plan_constant(problem: Problem) -> Plan:
    """The assumption's own mean."""
    laws = [law for member in problem.theta for law in member.expected_rows(problem.columns, problem.n)]
    columns = []
    for column in problem.columns:
        if not laws or any(column not in law for law in laws):
            raise Refusal(
                Cause.NUMBERS,
                f"needs the mean of {column} in the assumption (with groups: a prior for each category).",
                needs=f"the mean of {column}",
            )
        entries = [law[column] for law in laws]
        centre = entries[0].mean
        error = _constant_error(problem, entries, centre)
        off = {
            "bias": max(_bias(entry, centre) for entry in entries),
            "sd": max(entry.sd for entry in entries) / math.sqrt(problem.n),
        }
        columns.append(ColumnPlan(column=column, noise=Noise(kind="none"), error=error, centre=centre, parameters=off))
    certificate = Certificate(
        epsilon=problem.epsilon, delta=problem.delta, evidence=ConstantEvidence(), assumes=("no row is read",)
    )
    notes = ("a yardstick: auto never chooses it.",) if columns else ()  # the number of rows is public, and auto answers it
    return _assemble(problem, "constant", tuple(columns), certificate, notes=notes)


def _constant_error(problem: Problem, entries: Sequence[ExpectedEntry], centre: float) -> ExpectedError:
    """The largest error over Theta: the average is normal around a mean that may be off by the tolerance."""
    return largest_error([_folded(_bias(entry, centre), entry.sd, problem.n) for entry in entries])


def _bias(entry: ExpectedEntry, centre: float) -> float:
    return abs(entry.mean - centre) + entry.off


def _folded(bias: float, sd: float, n: int) -> ExpectedError:
    """Moments of |N(bias, sd^2/n)|."""
    spread = sd / math.sqrt(n)
    size, reach = folded_size(bias, spread), folded_reach(bias, spread, 0.95)
    return ExpectedError(rmse=math.hypot(bias, spread), mean_absolute=size, alpha95=reach)


def _assemble(
    problem: Problem, mechanism: str, columns: tuple[ColumnPlan, ...], certificate: Certificate, notes: tuple[str, ...]
) -> Plan:
    certificate.verify()
    return assemble(
        problem,
        mechanism,
        AveragesPart(columns=columns),
        certificate,
        reference=_REFERENCE,
        model_error=certificate.evidence.model_error(problem.epsilon, problem.delta),
        notes=notes,
    )
