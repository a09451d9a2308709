"""Row-level differential privacy on top: `individuals: {epsilon: e}`.

Independent Laplace noise scaled by public numbers is post-processing for everything else, so the attribute guarantee stays as
it is. A row, clipped to its bounds, moves an average by at most R/n (R the width of the bounds); with k averages each gets e/k.
The average is first rounded to the grid of its own noise, which adds one step, and the Laplace grid another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrpriv.methods.base.evidence import LaplaceEvidence, LaplaceTerm
from attrpriv.noise import GRID_BITS, granularity
from attrpriv.numerics.rounding import COMPUTED_UP, SOLVED_DOWN
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal


def row_evidence(problem: Problem, independent: Sequence[float], clips: Mapping[str, float | None]) -> LaplaceEvidence | None:
    """The Laplace noise that protects single rows, or None where the policy does not ask for it."""
    if problem.individuals is None:
        return None
    share = problem.individuals / max(1, len(problem.columns))
    terms = []
    for column, own in zip(problem.columns, independent, strict=True):
        if column not in problem.bounds:
            raise Refusal(
                Cause.PUBLIC_FACT,
                f"individuals: needs bounds for {column}; declare bounds: {{{column}: [low, high]}}.",
                needs=f"bounds of {column}",
                usage=True,
            )
        if clips.get(column) is None:
            raise Refusal(
                Cause.PUBLIC_FACT,
                f"individuals: rows must be clipped to the bounds of {column}, but that would change the assumed law too much. "
                "Widen the bounds (and state the means), until a row outside is nearly impossible.",
                needs=f"wider bounds of {column}",
            )
        terms.append(row_term(problem, column, share, granularity(own)))
    return LaplaceEvidence(epsilon=problem.individuals, terms=tuple(terms))


def row_term(problem: Problem, column: str, epsilon: float, step: float) -> LaplaceTerm:
    """Laplace noise on one average for one changed row."""
    low, high = problem.bounds[column]
    moved = (high - low) / problem.n * COMPUTED_UP + step
    spendable = epsilon * SOLVED_DOWN - 2.0**-GRID_BITS
    if not spendable > 0:
        raise Refusal(
            Cause.BUDGET,
            f"individuals: the grid of the noise costs more than epsilon {problem.individuals:g} allows.",
            needs="a larger individuals",
        )
    scale = moved / spendable
    return LaplaceTerm(column=column, sensitivity=moved, scale=scale, granularity=granularity(scale))
