"""`subsample`: answers computed from the secret-free view, scaled to a public composition.

The view's law does not depend on the secret, so neither does anything computed from it, however often: epsilon 0, delta 0 for a
property of the table. What it answers is the statistic *at the public composition w* (declared in the policy, or the middle of
the ranges), because the table's own composition is what must stay hidden:

    avg(x)  ->  sum over cells of  w_c * (average of x over the kept rows of cell c)

It errs from the same mixture over the whole table by at most sqrt(sum w_c^2 s_c^2 (1/keep_c - 1/high_c)), with s_c the standard
deviation of x in cell c: known once the view is read, and bounded beforehand by half the width of `bounds`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from attrpriv.methods.base.accuracy import UNKNOWN_ERROR, ExpectedError, gaussian_error, unaffected
from attrpriv.methods.base.parts import ViewPart
from attrpriv.methods.base.plan import Plan, assemble
from attrpriv.methods.base.view_plan import ViewCell, ViewPlan, columns_read
from attrpriv.methods.view.persons import persons_plan
from attrpriv.methods.view.plan import plan_view, public_shares
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal
from attrpriv.queries.query import Query

_MOST_SHOWN = 8


def plan(problem: Problem) -> Plan:
    """Answer from the view; the view itself is the whole proof."""
    view = plan_view(problem)
    lacking = [cell for cell in view.cells if cell.keep < min(2, cell.high)]
    if lacking:
        problem_is = "so nothing can stand for it" if not lacking[0].keep else "so its spread cannot be told"
        kept = f"{lacking[0].keep or 'no'} row of {lacking[0].name} is kept"
        raise Refusal(
            Cause.PRECISION,
            f"between: {kept}, {problem_is}. Raise the low end of its range.",
            needs="a higher low end of the range",
        )
    _require_shown(problem, view)
    shares = public_shares(view, problem.composition)
    if problem.individuals is not None:
        sampling = [_sampling(problem, view, shares, query) for query in problem.queries]
        return persons_plan(problem, view, shares, sampling, _composition(view, shares))
    return assemble(
        problem,
        "subsample",
        ViewPart(view=view),
        view.certificate,
        guarantee=view.guarantee,
        errors=tuple(_error(problem, view, shares, query) for query in problem.queries),
        model_error=unaffected(0.0),
        notes=(*view.notes, *_composition(view, shares), *_public_numbers(view, problem.queries)),
    )


def _require_shown(problem: Problem, view: ViewPlan) -> None:
    """A query must not read hidden columns where the view has none of them."""
    if problem.reference is None or problem.reference.show == "values":
        return
    for query in problem.queries:
        hidden = sorted(columns_read(query) & {*view.secret.whole_columns})
        if hidden:
            raise Refusal(
                Cause.MISTAKE,
                f"{query.text}: must not read {hidden[0]}, which the view does not have (reference: show: nothing). Write "
                "show: values, and the view has the public's values of it, also for GROUP BY.",
                needs="reference: show: values",
                query=query.text,
                usage=True,
            )


def _composition(view: ViewPlan, shares: Mapping[str, float]) -> tuple[str, ...]:
    if view.coverage is None:
        return (composition_note(shares),)
    columns = " and ".join(view.secret.whole_columns)
    return (f"answers are for the public's {columns} as far as the view shows them; the table's own {columns} stay hidden.",)


def _public_numbers(view: ViewPlan, queries: Sequence[Query]) -> tuple[str, ...]:
    """What reads hidden columns alone tells nothing of the table: the view has these columns as the public has them."""
    named = [query.text for query in queries if view.is_public(query)]
    if not named:
        return ()
    are = "is a public number" if len(named) == 1 else "are public numbers"
    return (f"{', '.join(named)} {are}, known from the reference alone: what the table says of it is hidden.",)


def composition_note(shares: Mapping[str, float]) -> str:
    """Which composition an answer is scaled to."""
    first = [f"{name} {share:.4g}" for name, share in list(shares.items())[:_MOST_SHOWN]]
    mix = ", ".join(first if len(shares) <= _MOST_SHOWN else [*first, f"and {len(shares) - _MOST_SHOWN} more"])
    return f"answers are scaled to the public composition ({mix}), not to the table's own, which stays hidden."


def _error(problem: Problem, view: ViewPlan, shares: Mapping[str, float], query: Query) -> ExpectedError:
    """What is known of the error before the view is read: a bound, from the width of the values."""
    if view.is_public(query):
        return gaussian_error(0.0)
    found = _sampling(problem, view, shares, query)
    return UNKNOWN_ERROR if found is None else gaussian_error(found[0]).scaled(found[1])


def _sampling(problem: Problem, view: ViewPlan, shares: Mapping[str, float], query: Query) -> tuple[float, int] | None:
    """The error of the choice of rows in a mean, from above, and the factor from it to the answer's; None: not known."""
    if query.group_by is not None or (query.kind == "avg" and query.where is not None):
        return None
    if query.kind == "count":
        width, factor = (0.0 if query.where is None else 1.0), problem.n
    elif query.column is not None and query.column in problem.bounds:
        low, high = problem.bounds[query.column]
        reach = high - low if query.where is None else max(abs(low), abs(high), high - low)
        width, factor = reach, query.weight(problem.n)
    else:
        return None
    # In a cell of N rows the sample variance is at most (width/2)^2 N/(N - 1), and with it the error grows in N.
    sds = [width / 2 * math.sqrt(cell.high / max(1, cell.high - 1)) for cell in view.cells]
    return standard_error(view.cells, shares, sds), factor


def standard_error(cells: Sequence[ViewCell], shares: Mapping[str, float], sds: Sequence[float]) -> float:
    """sqrt(sum w_c^2 s_c^2 (1/keep_c - 1/high_c)): a bound, because a cell's own count is at most its public high end."""
    return math.sqrt(
        sum(
            (shares[cell.name] * sd) ** 2 * max(0.0, 1 / cell.keep - 1 / cell.high) for cell, sd in zip(cells, sds, strict=True)
        )
    )
