"""Mechanisms side by side: which of them `auto` may choose, why the others were refused, and what to say about the choice.

A view (`subsample`) ends all releases with noise, so `auto` takes one only where no assumption covers what is asked
(docs/decisions/0008-auto-and-the-view.md). What must never change: everything here is a function of public facts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from attrpriv.errors import RefusedError, UsageError, Way
from attrpriv.methods.base.accuracy import Measure
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.best_guess import Weighing, weighing
from attrpriv.methods.dispatch import planned_by
from attrpriv.methods.table import methods
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, listed_kinds
from attrpriv.problem.shapes import RECORDED
from attrpriv.queries.query import Query

# Errors that differ by a smaller share are equal.
EQUAL = 1e-9


@dataclass(frozen=True)
class Ranking:
    """Every mechanism side by side: the plans that hold, best first, and why the others were refused.

    `by_itself` is how one of the queries is answered under the assumption where it is alone and has the whole budget, if the
    share or the company is all that stands in the way, and nothing but a view is left.
    """

    problem: Problem
    plans: tuple[Plan, ...]
    refused: Mapping[str, Refusal]
    by: Measure = "rmse"
    wanted: str | None = None
    by_itself: Plan | None = None

    @property
    def chosen(self) -> Plan | None:
        """The least error, or the mechanism that was asked for by name."""
        if self.wanted is not None:
            return next((plan for plan in self.plans if plan.mechanism == self.wanted), None)
        return next(iter(self.able), None)

    @property
    def able(self) -> tuple[Plan, ...]:
        """What `auto` may choose, best first.

        A view, which answers for a public composition, only where no assumption covers the table itself.
        """
        public = [plan for plan in self.plans if not methods()[plan.mechanism].chosen and self.problem.public]
        if public:  # the number of rows alone: what tells nothing else spends nothing
            return tuple(public)
        able = [plan for plan in self.plans if methods()[plan.mechanism].chosen]
        if self._mistaken(able) or self.by_itself is not None:
            return ()
        if any(not methods()[plan.mechanism].without_assumption for plan in able):
            able = [plan for plan in able if plan.view is None]
        needless = {name for plan in able for name in methods()[plan.mechanism].instead_of}
        if self.problem.non_linear:  # noise for the whole range of such a statistic is the last resort
            needless |= {name for name, method in methods().items() if method.without_assumption and not method.views}
        return tuple([plan for plan in able if plan.mechanism not in needless] or able)

    @property
    def ends_in_a_view(self) -> bool:
        """Whether `auto` would take a view although an assumption is made."""
        chosen = self.chosen
        return self.wanted is None and bool(self.problem.theta) and chosen is not None and chosen.view is not None

    def score(self, plan: Plan) -> float:
        """Expected error over all queries, free of units: the mean logarithm; unknown comes last."""
        errors = [plan.error_of(query).by(self.by) for query in plan.queries]
        if any(error is None for error in errors):
            return math.inf
        return sum(math.log(max(error or 0.0, 1e-300)) for error in errors) / len(errors)

    def _mistaken(self, able: Sequence[Plan]) -> bool:
        """An assumption that was meant to be used and is stated wrongly must not end in a view, which spends the ledger."""
        without = all(methods()[plan.mechanism].without_assumption for plan in able)
        return bool(self.problem.theta) and without and any(refusal.usage for refusal in self.refused.values())

    @property
    def constant(self) -> Plan | None:
        """The answer that the assumption already gives, where it has less error than the chosen one."""
        chosen = self.chosen
        if chosen is None or math.isinf(self.score(chosen)):  # what is not known before a row is read may well be less
            return None
        better = [plan for plan in self.plans if self.score(plan) < self.score(chosen)]
        return next((plan for plan in better if not methods()[plan.mechanism].chosen), None)

    @property
    def constant_wins(self) -> bool:
        """Whether the assumption already tells more than the chosen release would."""
        return self.constant is not None

    def weighing(self, query: Query) -> Weighing | None:
        """How the chosen release and what the assumption already states make the best guess; None where that gains nothing."""
        constant = next((plan for plan in self.plans if plan.mechanism == "constant"), None)
        if self.chosen is None or constant is None:
            return None
        return weighing(self.chosen, constant, query, self.problem)

    @property
    def order(self) -> str | None:
        """A line where a mechanism stands before one that errs less for some query: all queries together decide."""
        for query in self.problem.queries if len(self.problem.queries) > 1 else ():
            for first, second in zip(self.plans, self.plans[1:], strict=False):
                if self._less(second, first, query):
                    less = f"of {query.text} alone, {second.mechanism} errs less than {first.mechanism}"
                    return f"best first by the errors of all queries together (the mean of their logarithms): {less}."
        return None

    @property
    def beside(self) -> str | None:
        """A line where a view stands beside noise, which auto takes all the same."""
        if self.chosen is None or self.chosen.view is not None or all(plan.view is None for plan in self.plans):
            return None
        return f"{_VIEW_BESIDE} {_VIEW_FIRST}" if self.plans[0].view is not None else _VIEW_BESIDE

    def _less(self, plan: Plan, than: Plan, query: Query) -> bool:
        mine, other = plan.error_of(query).by(self.by), than.error_of(query).by(self.by)
        return mine is not None and other is not None and mine < other * (1 - EQUAL)

    @property
    def reasons(self) -> dict[str, tuple[str, ...]]:
        """Why mechanisms were refused, and which: equal reasons once, and other kinds of assumption not at all."""
        return _together((r.reason, name) for name, r in self.refused.items() if _elsewhere(r) is None)

    @property
    def elsewhere(self) -> dict[str, tuple[str, ...]]:
        """The kinds of assumption that the policy does not make, and the mechanisms that need them."""
        kinds = ((_elsewhere(refusal), name) for name, refusal in self.refused.items())
        return _together((kind, name) for kind, name in kinds if kind is not None)

    @property
    def others(self) -> str:
        """What is for other assumptions, in a line."""
        return "; ".join(f"{', '.join(names)} ({kind})" for kind, names in self.elsewhere.items())

    def error(self) -> RefusedError | UsageError:
        """The error to raise when no mechanism is left."""
        if self.wanted is not None:
            return refused_by(self.wanted, self.refused[self.wanted], self.problem.queries)
        told = [[name for name in names if methods()[name].chosen] for names in self.reasons.values()]
        reasons = tuple((", ".join(names), self.refused[names[0]]) for names in told if names)
        others = f"for other assumptions: {self.others}." if self.elsewhere else ""
        usage = any(refusal.usage for refusal in self.refused.values())
        return (UsageError if usage else RefusedError).told((Way(self._start(), reasons, others),), self.refusals)

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """Why nothing is chosen, for each query that is to blame and each mechanism, the nearest to an answer first."""
        if self.chosen is not None:
            return ()
        able = [name for name in self.refused if self.wanted in (None, name) and methods()[name].chosen]
        named = {self.refused[name].query for name in able} - {None}
        return tuple(
            self.refused[name].told(method=name, query=text)
            for text in asked(self.problem.queries)
            if not named or text in named  # beside a query that some mechanism refuses by name, the others are not to blame
            for name in sorted(able, key=self._distance)
            if self.refused[name].query in (None, text)
        )

    def _distance(self, name: str) -> tuple[bool, bool, bool, int]:
        """How far a mechanism is from an answer. One that does without the assumption that is made is no way to use it."""
        refusal, without = self.refused[name], methods()[name].without_assumption and bool(self.problem.theta)
        return not refusal.usage, refusal.cause is Cause.ASSUMPTION, without, refusal.cause.rank

    def _start(self) -> str:
        without = [plan.mechanism for plan in self.plans if methods()[plan.mechanism].chosen]
        named = " or ".join(without)
        if self.by_itself is not None:
            covered = f"{self.by_itself.queries[0].text} by itself and with all of the budget ({self.by_itself.mechanism})"
            return (
                f"the assumption covers {covered}. auto takes no view in its place, because a view ends releases with "
                f"noise. Ask for it alone with spend 1 (--spend 1), or for {named} by name (--mechanism {without[0]})."
            )
        if without:  # an assumption was meant to be used: what does without it must be asked for
            return f"the assumption cannot be used as it is stated; ask for {named} by name to do without it."
        return "no mechanism can prove the guarantee."

    def to_frame(self, kind: str = "pandas") -> Any:
        """A row for each query and mechanism, also for those that were refused: pandas, polars or arrow."""
        from attrpriv.notebook.frames import ranking_frame

        return ranking_frame(self, kind)

    def _repr_html_(self) -> str:
        from attrpriv.notebook.html import ranking_html

        return ranking_html(self)

    def plot(self, ax: Any = None, *, what: Literal["mechanisms", "epsilon"] = "mechanisms") -> Any:
        """Errors side by side, or against epsilon with the chosen point, on these axes or new ones. Needs the extra `plots`."""
        from attrpriv.methods.choice.error_curve import error_curve
        from attrpriv.pictures.figures import draw
        from attrpriv.pictures.subjects import against_epsilon, mechanisms

        return draw(against_epsilon(error_curve(self)) if what == "epsilon" else mechanisms(self), ax)

    def entries(self) -> list[dict[str, Any]]:
        """One JSON-able entry for each query and mechanism."""
        rows = [row | _shown_by(plan) for plan in self.plans for row in plan.entries(chosen=plan is self.chosen)]
        for query, row in zip(self.problem.queries, (row for row in rows if row["chosen"]), strict=False):
            how = self.weighing(query)
            row |= {} if how is None else {"best_guess": how.to_json()}
        for name, refusal in self.refused.items():
            rows += [refusal.to_json() | {"query": q.text, "mechanism": name} for q in self.problem.queries]
        return rows


def _shown_by(plan: Plan) -> dict[str, Any]:
    """What a reference view shows; in no ledger, which has the numbers that it follows from."""
    coverage = None if plan.view is None else plan.view.coverage
    return {} if coverage is None else {"view": coverage.to_json()}


def best_first(plans: Sequence[Plan], ranking: Ranking) -> tuple[Plan, ...]:
    """By error; plans of equal error in the order in which they came, the simpler first."""
    ranked, least = [], -math.inf
    for value, place in sorted((ranking.score(plan), place) for place, plan in enumerate(plans)):
        least = least if value <= least + EQUAL else value
        ranked.append((least, place))
    return tuple(plans[place] for _, place in sorted(ranked))


def refused_by(name: str, refusal: Refusal, queries: Sequence[Query] = ()) -> RefusedError | UsageError:
    """An error that says whether the policy is wrong or this mechanism can prove nothing."""
    blamed = (text for text in asked(queries) if refusal.query in (None, text))
    refusals = tuple(refusal.told(method=name, query=text) for text in blamed) or (refusal.told(method=name),)
    return (UsageError if refusal.usage else RefusedError).told((Way(reasons=((name, refusal),)),), refusals)


def asked(queries: Sequence[Query]) -> tuple[str, ...]:
    """The queries that something can be said against: the number of rows is public, unless it is all that is asked."""
    return tuple(query.text for query in queries if not query.whole_table) or tuple(query.text for query in queries)


def _together(named: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for key, name in named:
        found[key] = (*found.get(key, ()), name)
    return found


def _elsewhere(refusal: Refusal) -> str | None:
    """The kind of assumption that a mechanism needs, where that is all it lacks."""
    return listed_kinds(refusal.needs) if refusal.cause is Cause.ASSUMPTION else None


# ----------------------------------------------------------------------------------------------------------------------------
# What would beat the constant answer: how near values must be, or how well slopes must be known.
#
# Computed by planning again with smaller gaps or a smaller tolerance; a function of public facts only.


_VIEW_BESIDE = "subsample: its error is from the statistic at a public composition, not from the table's own."
_VIEW_FIRST = (
    "So auto does not take it here: ask for it by name (--mechanism subsample), after which nothing is released with noise."
)

# Halvings of the logarithm of a share: three digits of it.
_STEPS = 14
# Each step is a plan, which takes long with many secrets.
_MOST_SECRETS = 10


def advice(ranking: Ranking) -> str | None:
    """One line for a ranking in which nothing beats `constant`; None where something does."""
    chosen, constant = ranking.chosen, ranking.constant
    if constant is None or chosen is None:
        return None
    query = next(query for query in chosen.queries if not query.whole_table)
    goal = constant.error_of(query).by(ranking.by) or 0.0

    def enough(problem: Problem) -> bool:
        return _error(chosen.mechanism, problem, query, ranking.by) <= goal

    if ranking.problem.shape == RECORDED:  # each plan takes seconds
        return f"{_nothing(goal)}; something might with a smaller within."
    if len(ranking.problem.secrets) > _MOST_SECRETS:
        return f"{_nothing(goal)}; something might with fewer secrets, a smaller within or a smaller slope tolerance."
    ways = []
    nearer = _largest_share(lambda share: enough(_nearer(ranking.problem, share)))
    if nearer is not None:
        ways.append(_gap_words(ranking.problem, nearer))
    surer = _largest_share(lambda share: enough(_surer(ranking.problem, share)))
    slope = max((member.slope_tolerance() or 0.0 for member in ranking.problem.theta), default=0.0)
    if surer is not None and slope > 0:
        ways.append(f"slope tolerance <= {surer * slope:.3g}")
    would = f"; something would with {' or '.join(ways)}" if ways else ""
    return f"{_nothing(goal)}{would}."


def _nothing(goal: float) -> str:
    return f"nothing beats the constant answer that the assumption already gives (error {goal:.3g})"


def _largest_share(enough: Callable[[float], bool]) -> float | None:
    """The largest share of the present value that is enough, from below; None if even a ten-thousandth is not."""
    low, high = 1e-4, 1.0
    if not enough(low):
        return None
    for _ in range(_STEPS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if enough(middle) else (low, middle)
    return low


def _error(mechanism: str, problem: Problem, query: Query, by: Measure) -> float:
    try:
        error = planned_by(methods()[mechanism], problem).error_of(query).by(by)
    except Refusal:
        return float("inf")
    return float("inf") if error is None else error


def _nearer(problem: Problem, share: float) -> Problem:
    secrets = tuple(s.model_copy(update={"within": s.gap * share}) for s in problem.secrets)
    return problem.model_copy(update={"secrets": secrets})


def _surer(problem: Problem, share: float) -> Problem:
    theta = tuple(member.surer(share) for member in problem.theta)
    return problem if None in theta else problem.model_copy(update={"theta": theta})


def _gap_words(problem: Problem, share: float) -> str:
    if len(problem.secrets) == 1:
        return f"within <= {problem.secrets[0].gap * share:.3g}"
    return f"every within <= {share:.3g} of its present gap"
