"""What a plan by simulation says: what it rests on, what it does not cover, and what holds where rows are skewed.

Under normal rows squares are independent of averages, so a variance or a slope tells nothing of a secret mean. Under skewed
rows it does: with standardised co-skewness k of the columns i, j, l,

    E[S_jl | mean_i = a]   moves by   k sd_j sd_l / sd_i   for each unit of a

(docs/theory/sampled.md). `model_error` of a gaussian assumption is therefore the epsilon that holds where every co-skewness is
up to `off_by`; of groups, where moments of categories differ by that share more than is stated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from attrpriv.assumptions import Gaussian, Groups
from attrpriv.calibration.search import least_epsilon
from attrpriv.framework import Problem
from attrpriv.guarantee import SampledCheck, SampledEvidence
from attrpriv.mechanisms.accuracy import ModelError, off_by
from attrpriv.mechanisms.wording import common_assumptions, known_line
from attrpriv.queries.query import Query

Theta = Sequence[Gaussian] | Sequence[Groups]


def sampled_assumptions(problem: Problem, theta: Theta, query: Query, evidence: SampledEvidence) -> tuple[str, ...]:
    """Everything that the promise rests on."""
    within = "" if isinstance(theta[0], Gaussian) else " within each category"
    lines = [f"rows are independent and normal{within}: assumed, and nothing about them is tested"]
    lines += [f"{'one of: ' if len(theta) > 1 else ''}{member}" for member in theta]
    lines += [
        f"given each secret, {query.text} is taken as normal; the simulated distribution functions are up to "
        f"{evidence.distance:.3g} away from normal ones, and chance and the stated shape explain {evidence.allowed:.3g}",
        _simulated(evidence),
        *_tails(evidence),
    ]
    lines += [f"the moments are those of {c} as read, missing entries replaced" for c in query.columns if c in problem.missing]
    lines += [f"nearly all values of {column} lie on a spacing of at most {h:.4g}" for column, h in evidence.spacing.items()]
    return (*lines, known_line(problem), *common_assumptions(problem))


def _tails(evidence: SampledEvidence) -> list[str]:
    """Of laws that depend on a secret, which are only nearly normal."""
    if not evidence.variance:
        return []
    return [
        f"in tails of size {evidence.tail:.3g} no more counts of its law than its skewness (at most {evidence.skewness:.3g}) "
        f"and its excess kurtosis (at most {evidence.kurtosis:.3g}), by the first terms of Edgeworth's expansion"
    ]


def _simulated(evidence: SampledEvidence) -> str:
    values = max(len(check.values) for check in evidence.checks)
    sure = f"with confidence {evidence.confidence!r}"
    if values == 1:  # squares of normal rows are independent of averages
        return f"its law does not depend on a secret mean; its variance comes from {evidence.runs:,} draws, {sure}"
    return (
        f"its means and variances come from {evidence.runs:,} draws at each of {values} values of a secret; all intervals hold "
        f"{sure}, and between these values the law is interpolated"
    )


def sampled_model_error(problem: Problem, theta: Theta, evidence: SampledEvidence, promised: float) -> tuple[ModelError, ...]:
    """The epsilon that really holds, at the same delta, where the rows are not what was assumed."""

    def real(off: float) -> float:
        moved = _skewed if isinstance(theta[0], Gaussian) else _further
        checks = tuple(moved(check, off) for check in evidence.checks)
        if any(check is None for check in checks):
            return math.inf
        reached = evidence.model_copy(update={"checks": checks}).delta
        return least_epsilon(reached, promised, start=problem.epsilon)

    return off_by(real)


def _skewed(check: SampledCheck, off: float) -> SampledCheck | None:
    """None where values are unbounded: then any co-skewness tells them apart."""
    if check.skewed is None:
        return None
    return check.model_copy(update={"gap": check.gap + off * check.skewed})


def _further(check: SampledCheck, off: float) -> SampledCheck:
    more, less = (1 + off) ** 2, (1 - off) ** 2
    return check.model_copy(update={"gap": check.gap * more, "least": check.least * less, "spread": check.spread * more})


def sampled_notes(
    problem: Problem, theta: Theta, query: Query, evidence: SampledEvidence, rows: Sequence[ModelError]
) -> tuple[str, ...]:
    notes = [f"the law was simulated with a public seed ({evidence.seed}); the noise of the answer has no seed."]
    if evidence.scale <= evidence.floor * (1 + 1e-6):
        notes.append(f"{query.text}: no noise is needed beyond its floor, {evidence.floor:.3g}, which masks digits.")
    notes += [
        f"{c}: bounds are not applied, because clipping would change the law." for c in query.columns if c in problem.bounds
    ]
    if query.text in problem.ranges:
        notes.append(f"{query.text}: its range is not applied, because clipping would change the law.")
    if isinstance(theta[0], Gaussian):
        notes.append(_fragile(problem, rows))
    return tuple(notes)


def _fragile(problem: Problem, rows: Sequence[ModelError]) -> str:
    told = [
        f"{row.off_by:g}: {'no epsilon holds' if row.epsilon is None else f'{row.epsilon:.3g}'}" for row in (rows[0], rows[-1])
    ]
    return (
        f"fragile: epsilon {problem.epsilon:g} rests on rows without any skewness. Real columns are skewed (incomes: 1 to 5), "
        f"and then this statistic moves with a secret mean. Epsilon where co-skewness is {', '.join(told)}. Do not release it "
        "unless you know the columns to be symmetric; a view that hides a binned distribution has no such weakness."
    )
