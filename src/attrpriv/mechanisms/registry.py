"""All mechanisms by name, and `auto`: the least expected error among those that prove the guarantee."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attrpriv.assumptions import Counts, Groups, Hierarchy
from attrpriv.errors import RefusedError, UsageError
from attrpriv.framework import Problem
from attrpriv.mechanisms import (
    chain_quilt,
    count_yardsticks,
    gaussian,
    gaussian_counts,
    group_means,
    hierarchy_means,
    laplace,
    markov_quilt,
    optimal,
    parameter_plans,
    subsample,
    transport,
    wasserstein,
    yardsticks,
)
from attrpriv.mechanisms.count_yardsticks import is_tally
from attrpriv.mechanisms.parameter_counts import is_parameter_count
from attrpriv.mechanisms.plan import Plan
from attrpriv.mechanisms.refusal import Refusal
from attrpriv.mechanisms.view import ViewPlan, plan_view

Planner = Callable[[Problem], Plan]


def _on_averages(planner: Planner) -> Planner:
    """A mechanism that adds noise to averages over all rows."""

    def planned(problem: Problem) -> Plan:
        if problem.theta and is_tally(problem):
            raise Refusal("is for averages of numeric columns, under a gaussian assumption.")
        filtered = [query.text for query in problem.queries if not query.plain]
        if filtered:
            raise Refusal(f"answers statistics over all rows only. Got {filtered[0]}; a filter or a group needs a view.")
        return planner(problem)

    return planned


def _for_counts(counts: Planner, averages: Planner) -> Planner:
    """One name, two kinds of statistics: counts where the problem is about counts, else averages."""
    return lambda problem: (counts if is_tally(problem) else _on_averages(averages))(problem)


def _on_networks(counts: Planner, others: Planner) -> Planner:
    """Counts under a parameter network have laws of their own."""
    return lambda problem: (counts if is_parameter_count(problem) else others)(problem)


def _gaussian(problem: Problem) -> Plan:
    """The Gaussian mechanism, for the kind of assumption that there is."""
    if problem.theta and all(isinstance(member, Counts) for member in problem.theta):
        return gaussian_counts.plan(problem)
    if problem.theta and all(isinstance(member, Groups) for member in problem.theta):
        return _on_averages(group_means.plan)(problem)
    if problem.theta and all(isinstance(member, Hierarchy) for member in problem.theta):
        return _on_averages(hierarchy_means.plan)(problem)
    return _on_averages(gaussian.plan)(problem)


# In order of simplicity: ties go to the first.
MECHANISMS: Mapping[str, Planner] = {
    "subsample": subsample.plan,
    "group_dp": _for_counts(count_yardsticks.plan_group_dp, yardsticks.plan_group_dp),
    "markov_quilt": markov_quilt.plan,
    "laplace": _on_networks(parameter_plans.plan_laplace, laplace.plan),
    "gaussian": _on_networks(parameter_plans.plan_gaussian, _gaussian),
    "gaussian_approximation": _on_averages(gaussian.plan_approximation),
    "transport": _on_averages(transport.plan),
    "chain_quilt": chain_quilt.plan,
    "wasserstein": _on_networks(parameter_plans.plan_wasserstein, wasserstein.plan),
    "optimal": _on_networks(parameter_plans.plan_optimal, optimal.plan),
    "constant": _on_networks(
        parameter_plans.plan_constant, _for_counts(count_yardsticks.plan_constant, yardsticks.plan_constant)
    ),
}
_NEVER_CHOSEN = frozenset({"constant"})
_WITHOUT_ASSUMPTION = frozenset({"subsample", "group_dp"})
# Entries of a correlated column are secrets of another kind than properties of columns.
_FOR_ENTRIES = frozenset({"chain_quilt", "group_dp"})


@dataclass(frozen=True)
class Ranking:
    """Every mechanism side by side: the plans that hold, best first, and why the others were refused."""

    problem: Problem
    plans: tuple[Plan, ...]
    refused: Mapping[str, Refusal]

    @property
    def chosen(self) -> Plan | None:
        """The least error; a view, which answers for a public composition, only where no assumption covers the table itself."""
        able = [plan for plan in self.plans if plan.mechanism not in _NEVER_CHOSEN]
        if self._mistaken(able):
            return None
        if any(plan.mechanism not in _WITHOUT_ASSUMPTION for plan in able):
            able = [plan for plan in able if plan.view is None]
        return next(iter(able), None)

    def _mistaken(self, able: Sequence[Plan]) -> bool:
        """An assumption that was meant to be used and is stated wrongly must not end in a view, which spends the ledger."""
        without = all(plan.mechanism in _WITHOUT_ASSUMPTION for plan in able)
        return bool(self.problem.theta) and without and any(refusal.usage for refusal in self.refused.values())

    @property
    def constant(self) -> Plan | None:
        """The answer that the assumption already gives, where it has less error than the chosen one."""
        chosen = self.chosen
        better = [plan for plan in self.plans if chosen is not None and _score(plan) < _score(chosen)]
        return next((plan for plan in better if plan.mechanism in _NEVER_CHOSEN), None)

    @property
    def constant_wins(self) -> bool:
        """Whether the assumption already tells more than the chosen release would."""
        return self.constant is not None

    def error(self) -> RefusedError | UsageError:
        """The error to raise when no mechanism is left."""
        reasons = [f"{name}: {refusal.reason}" for name, refusal in self.refused.items() if name not in _NEVER_CHOSEN]
        usage = any(refusal.usage for refusal in self.refused.values())
        return _refused(f"no mechanism can prove the guarantee. {' | '.join(reasons)}", usage=usage)

    def entries(self) -> list[dict[str, Any]]:
        """One JSON-able entry for each query and mechanism."""
        rows = [row for plan in self.plans for row in plan.entries(chosen=plan is self.chosen)]
        for name, refusal in self.refused.items():
            rows += [{"query": q.text, "mechanism": name, "refused": refusal.reason} for q in self.problem.queries]
        return rows


def rank(problem: Problem) -> Ranking:
    """Plan the problem with every mechanism."""
    plans: list[Plan] = []
    refused: dict[str, Refusal] = {}
    for name in MECHANISMS:
        try:
            _require_quick(name, problem)
            plans.append(_planned(name, problem))
        except Refusal as refusal:
            refused[name] = refusal
    return Ranking(problem, tuple(sorted(plans, key=_score)), refused)


def _require_quick(name: str, problem: Problem) -> None:
    """A linear program takes seconds to minutes; beyond some size it is only solved when asked for by name."""
    if name == "optimal" and is_parameter_count(problem) and parameter_plans.takes_long(problem):
        raise Refusal(f"auto tries it for up to {parameter_plans.AUTO_ROWS} rows; ask for it by name.")
    if name == "optimal" and optimal.takes_long(problem):
        raise Refusal(f"auto tries it for up to {optimal.AUTO_SECRETS} values of the secret; ask for it by name.")


def _planned(name: str, problem: Problem) -> Plan:
    entries = [secret.text for secret in problem.secrets if secret.entries is not None]
    if entries and name not in _FOR_ENTRIES:
        raise Refusal(f"is not for {entries[0]}; chain_quilt is.")
    return MECHANISMS[name](problem)


def plan(problem: Problem, mechanism: str = "auto") -> Plan:
    """A plan by the named mechanism, or the best of all (`auto`)."""
    if mechanism == "auto":
        ranking = rank(problem)
        if ranking.chosen is None:
            raise ranking.error()
        return ranking.chosen
    if mechanism not in MECHANISMS:
        raise UsageError(f"mechanism: must be auto or one of {', '.join(MECHANISMS)}. Got {mechanism!r}.")
    refusal = None
    try:
        return _planned(mechanism, problem)
    except Refusal as caught:
        refusal = caught
    raise _refused(f"{mechanism}: {refusal.reason}", usage=refusal.usage)


def plan_view_of(problem: Problem) -> ViewPlan:
    """The view that hides the problem's composition, or the reason why there is none."""
    refusal = None
    try:
        return plan_view(problem)
    except Refusal as caught:
        refusal = caught
    raise _refused(f"view: {refusal.reason}", usage=refusal.usage)


def _refused(text: str, *, usage: bool) -> RefusedError | UsageError:
    return UsageError(text) if usage else RefusedError(text)


def _score(plan: Plan) -> float:
    """Expected error over all queries, free of units: the mean logarithm of the root mean square; unknown comes last."""
    errors = [plan.error_of(query).rmse for query in plan.queries]
    if any(error is None for error in errors):
        return math.inf
    return sum(math.log(max(error or 0.0, 1e-300)) for error in errors) / len(errors)
