"""All mechanisms by name, and `auto`: the least expected error among those that prove the guarantee.

Plans are ranked by the error that is expected under the assumption: root mean square unless another measure is asked for. Where
errors differ by less than a share of 1e-9 they are equal, and equals go to the simpler mechanism: the one listed first.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from attrpriv.assumptions import Counts, Groups, Hierarchy
from attrpriv.errors import RefusedError, UsageError
from attrpriv.framework import Problem
from attrpriv.framework.model import FrozenModel
from attrpriv.guarantee import ChainEvidence, CountSequenceEvidence, GaussianEvidence, QuiltEvidence, SequenceEvidence
from attrpriv.guarantee.words import in_words
from attrpriv.mechanisms import (
    calibrated_weights,
    chain_quilt,
    count_transport,
    count_yardsticks,
    gaussian,
    gaussian_counts,
    gaussian_transport,
    group_means,
    hierarchy_means,
    laplace,
    markov_quilt,
    optimal,
    parameter_plans,
    ranged,
    sampled,
    subsample,
    transport,
    wasserstein,
    yardsticks,
)
from attrpriv.mechanisms.accuracy import MEASURES, Measure
from attrpriv.mechanisms.count_yardsticks import is_tally
from attrpriv.mechanisms.coverage import require_covered
from attrpriv.mechanisms.parameter_counts import is_parameter_count
from attrpriv.mechanisms.plan import Plan
from attrpriv.mechanisms.refusal import Refusal
from attrpriv.mechanisms.view import ViewPlan, plan_view

Planner = Callable[[Problem], Plan]


def _on_averages(planner: Planner, *, subsets: bool = False) -> Planner:
    """A mechanism that adds noise to averages, over all rows or over subsets of public size too."""

    def planned(problem: Problem) -> Plan:
        if problem.theta and is_tally(problem):
            raise Refusal("is for averages of numeric columns, under a gaussian assumption.")
        covered = [query.plain or (subsets and query.linear is not None) for query in problem.queries]
        filtered = [query.text for query, known in zip(problem.queries, covered, strict=True) if not known]
        if filtered:
            raise Refusal(
                f"answers statistics over all rows only. Got {filtered[0]}; a filter or a group needs gaussian, transport "
                "or a view."
            )
        return planner(problem)

    return planned


def _alone(planner: Planner) -> Planner:
    """A form of a mechanism that cannot share a budget with other releases."""

    def planned(problem: Problem) -> Plan:
        if not problem.alone:
            raise Refusal("shares no budget with other releases under this assumption; spend all of it (spend 1).")
        return planner(problem)

    return planned


def _for_counts(counts: Planner, averages: Planner, *, subsets: bool = False) -> Planner:
    """One name, two kinds of statistics: counts where the problem is about counts, else averages."""
    return lambda problem: (counts if is_tally(problem) else _on_averages(averages, subsets=subsets))(problem)


def _for_ranged(statistics: Planner, others: Planner) -> Planner:
    """Statistics that are no averages, sums or counts."""
    return lambda problem: (statistics if ranged.is_ranged(problem) else others)(problem)


def _on_networks(counts: Planner, others: Planner) -> Planner:
    """Counts under a parameter network have laws of their own."""
    return lambda problem: (counts if is_parameter_count(problem) else others)(problem)


def _public_or(planner: Planner) -> Planner:
    """The number of rows is the same public number under every assumption."""
    return lambda problem: (yardsticks.plan_constant if problem.public else planner)(problem)


def _gaussian(problem: Problem) -> Plan:
    """The Gaussian mechanism, for the kind of assumption that there is."""
    if problem.theta and all(isinstance(member, Counts) for member in problem.theta):
        return _alone(gaussian_counts.plan)(problem)
    if problem.theta and all(isinstance(member, Groups) for member in problem.theta):
        return _alone(_on_averages(group_means.plan))(problem)
    if problem.theta and all(isinstance(member, Hierarchy) for member in problem.theta):
        return _alone(_on_averages(hierarchy_means.plan))(problem)
    return _on_averages(gaussian.plan, subsets=True)(problem)


# In order of simplicity: ties go to the first.
MECHANISMS: Mapping[str, Planner] = {
    "subsample": subsample.plan,
    "group_dp": _for_ranged(ranged.plan_group_dp, _for_counts(count_yardsticks.plan_group_dp, yardsticks.plan_group_dp)),
    "markov_quilt": markov_quilt.plan,
    "laplace": _on_networks(_alone(parameter_plans.plan_laplace), laplace.plan),
    "gaussian": _on_networks(_alone(parameter_plans.plan_gaussian), _gaussian),
    "gaussian_approximation": _for_ranged(sampled.plan, _on_averages(gaussian.plan_approximation)),
    "transport": _for_counts(_alone(count_transport.plan), transport.plan, subsets=True),
    "calibrated_weights": _on_averages(calibrated_weights.plan),
    "chain_quilt": chain_quilt.plan,
    "wasserstein": _on_networks(parameter_plans.plan_wasserstein, wasserstein.plan),
    "optimal": _on_networks(parameter_plans.plan_optimal, optimal.plan),
    "constant": _on_networks(
        parameter_plans.plan_constant,
        _for_counts(_public_or(count_yardsticks.plan_constant), yardsticks.plan_constant),
    ),
}
# What may follow an earlier release, or leave something for a later one, and after which evidence: these proofs are joint.
CONTINUES: Mapping[str, tuple[type[FrozenModel], ...]] = {
    "gaussian": (GaussianEvidence,),
    "gaussian_approximation": (GaussianEvidence,),
    "markov_quilt": (QuiltEvidence,),
    "chain_quilt": (ChainEvidence,),
    "transport": (SequenceEvidence,),
    "laplace": (CountSequenceEvidence,),
    "group_dp": (CountSequenceEvidence,),
}
_NEVER_CHOSEN = frozenset({"constant"})
_WITHOUT_ASSUMPTION = frozenset({"subsample", "group_dp"})
# Entries of a correlated column are secrets of another kind than properties of columns.
_FOR_ENTRIES = frozenset({"chain_quilt", "group_dp"})
# Errors that differ by a smaller share are equal.
_EQUAL = 1e-9


@dataclass(frozen=True)
class Ranking:
    """Every mechanism side by side: the plans that hold, best first, and why the others were refused."""

    problem: Problem
    plans: tuple[Plan, ...]
    refused: Mapping[str, Refusal]
    by: Measure = "rmse"
    wanted: str | None = None

    @property
    def chosen(self) -> Plan | None:
        """The least error, or the mechanism that was asked for by name."""
        if self.wanted is not None:
            return next((plan for plan in self.plans if plan.mechanism == self.wanted), None)
        return next(iter(self.able), None)

    @property
    def able(self) -> tuple[Plan, ...]:
        """What `auto` may choose, best first.

        A view, which answers for a public composition, only where no assumption covers the table itself; a guarantee that
        rests on simulation, only where the policy opts in.
        """
        public = [plan for plan in self.plans if plan.mechanism in _NEVER_CHOSEN and self.problem.public]
        if public:  # the number of rows alone: what tells nothing else spends nothing
            return tuple(public)
        sure = self.plans if self.problem.sampled else [plan for plan in self.plans if plan.guarantee.kind != "sampled"]
        able = [plan for plan in sure if plan.mechanism not in _NEVER_CHOSEN]
        if self._mistaken(able):
            return ()
        if any(plan.mechanism not in _WITHOUT_ASSUMPTION for plan in able):
            able = [plan for plan in able if plan.view is None]
        if ranged.is_ranged(self.problem) or any(plan.mechanism == "markov_quilt" for plan in able):
            # noise for the whole range is never less than that of quilts, and what follows it may not use the network
            able = [plan for plan in able if plan.mechanism != "group_dp"] or able
        return tuple(able)

    def score(self, plan: Plan) -> float:
        """Expected error over all queries, free of units: the mean logarithm; unknown comes last."""
        errors = [plan.error_of(query).by(self.by) for query in plan.queries]
        if any(error is None for error in errors):
            return math.inf
        return sum(math.log(max(error or 0.0, 1e-300)) for error in errors) / len(errors)

    def _mistaken(self, able: Sequence[Plan]) -> bool:
        """An assumption that was meant to be used and is stated wrongly must not end in a view, which spends the ledger."""
        without = all(plan.mechanism in _WITHOUT_ASSUMPTION for plan in able)
        return bool(self.problem.theta) and without and any(refusal.usage for refusal in self.refused.values())

    @property
    def constant(self) -> Plan | None:
        """The answer that the assumption already gives, where it has less error than the chosen one."""
        chosen = self.chosen
        better = [plan for plan in self.plans if chosen is not None and self.score(plan) < self.score(chosen)]
        return next((plan for plan in better if plan.mechanism in _NEVER_CHOSEN), None)

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

    @property
    def constant_wins(self) -> bool:
        """Whether the assumption already tells more than the chosen release would."""
        return self.constant is not None

    def error(self) -> RefusedError | UsageError:
        """The error to raise when no mechanism is left."""
        if self.wanted is not None:
            refusal = self.refused[self.wanted]
            return _refused(f"{self.wanted}: {refusal.reason}", usage=refusal.usage)
        told = {reason: [name for name in names if name not in _NEVER_CHOSEN] for reason, names in self.reasons.items()}
        reasons = [f"{', '.join(names)}: {reason}" for reason, names in told.items() if names]
        reasons += [f"for other assumptions: {self.others}."] if self.elsewhere else []
        usage = any(refusal.usage for refusal in self.refused.values())
        without = [plan.mechanism for plan in self.plans if plan.mechanism not in _NEVER_CHOSEN]
        if without:  # an assumption was meant to be used: what does without it must be asked for
            start = f"the assumption cannot be used as it is stated; ask for {' or '.join(without)} by name to do without it."
            return _refused(f"{start} {' | '.join(reasons)}", usage=usage)
        return _refused(f"no mechanism can prove the guarantee. {' | '.join(reasons)}", usage=usage)

    def entries(self) -> list[dict[str, Any]]:
        """One JSON-able entry for each query and mechanism."""
        rows = [row for plan in self.plans for row in plan.entries(chosen=plan is self.chosen)]
        for name, refusal in self.refused.items():
            rows += [{"query": q.text, "mechanism": name, "refused": refusal.reason} for q in self.problem.queries]
        return rows


def _together(named: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for key, name in named:
        found[key] = (*found.get(key, ()), name)
    return found


def _elsewhere(refusal: Refusal) -> str | None:
    """The kind of assumption that a mechanism needs, where that is all it lacks."""
    needed = re.match(r"needs an? ([\w, ]+?) assumption\b", refusal.reason)
    return None if needed is None or refusal.usage else re.sub(r"(,| or) an? ", r"\1 ", needed.group(1))


def rank(problem: Problem, by: Measure = "rmse", mechanism: str = "auto") -> Ranking:
    """Plan the problem with every mechanism; a named one is chosen whatever its rank."""
    measure(by)
    wanted = None if mechanism == "auto" else known_mechanism(mechanism)
    plans: list[Plan] = []
    refused: dict[str, Refusal] = {}
    for name in MECHANISMS:
        try:
            if name != wanted:
                _require_quick(name, problem)
            plans.append(_planned(name, problem))
        except Refusal as refusal:
            refused[name] = refusal
    found = Ranking(problem, (), refused, by, wanted)
    return replace(found, plans=_best_first(plans, found.score))


def _best_first(plans: Sequence[Plan], score: Callable[[Plan], float]) -> tuple[Plan, ...]:
    """By error; plans of equal error in the order in which they came, the simpler first."""
    ranked, least = [], -math.inf
    for value, place in sorted((score(plan), place) for place, plan in enumerate(plans)):
        least = least if value <= least + _EQUAL else value
        ranked.append((least, place))
    return tuple(plans[place] for _, place in sorted(ranked))


def measure(by: str) -> Measure:
    """One of the measures that plans are compared by."""
    for known in MEASURES:
        if by == known:
            return known
    raise UsageError(f"by: must be one of {', '.join(MEASURES)}. Got {by!r}.")


def known_mechanism(mechanism: str) -> str:
    """The name of a mechanism; a suggestion where it is nearly one."""
    if mechanism in MECHANISMS:
        return mechanism
    near = get_close_matches(mechanism.lower().replace("-", "_").replace(" ", "_"), ("auto", *MECHANISMS), n=1)
    meant = f" Did you mean {near[0]}?" if near else ""
    raise UsageError(f"mechanism: must be auto or one of {', '.join(MECHANISMS)}. Got {mechanism!r}.{meant}")


def _require_quick(name: str, problem: Problem) -> None:
    """A program or a search takes seconds to minutes; beyond some size it is only done when asked for by name."""
    if name == "optimal" and is_parameter_count(problem) and parameter_plans.takes_long(problem):
        raise Refusal(f"auto tries it for up to {parameter_plans.AUTO_ROWS} rows; ask for it by name.")
    if name == "transport" and gaussian_transport.takes_long(problem):
        raise Refusal(f"auto tries it for up to {gaussian_transport.AUTO_GROUPS} averages by group; ask for it by name.")
    if name == "optimal" and optimal.takes_long(problem):
        raise Refusal(f"auto tries it for up to {optimal.AUTO_SECRETS} values of the secret; ask for it by name.")


def _planned(name: str, problem: Problem) -> Plan:
    entries = [secret.text for secret in problem.secrets if secret.entries is not None]
    if entries and name not in _FOR_ENTRIES:
        raise Refusal(f"is not for {entries[0]}; chain_quilt is.")
    require_covered(name, problem)
    if not problem.alone and name not in _NEVER_CHOSEN:  # a public constant tells nothing, whatever was released
        _require_joint(name, problem)
    made = MECHANISMS[name](problem)
    return made if problem.alone else made.model_copy(update={"spend": problem.spend})


def _require_joint(name: str, problem: Problem) -> None:
    """Guarantees of single releases do not add up: only a proof for all of them together may follow one, or leave room."""
    if name not in CONTINUES and name != "subsample" and problem.earlier is None:
        raise Refusal("cannot share a budget with other releases; ask for everything at once, or spend all of it (spend 1).")
    if problem.earlier is not None and not isinstance(problem.earlier, CONTINUES.get(name, ())):
        told = in_words(getattr(problem.earlier, "kind", ""))
        raise Refusal(f"no rule covers it after {told}; together they may tell more.")


def plan(problem: Problem, mechanism: str = "auto", by: Measure = "rmse") -> Plan:
    """A plan by the named mechanism, or the best of all (`auto`)."""
    measure(by)
    if mechanism == "auto":
        ranking = rank(problem, by)
        if ranking.chosen is None:
            raise ranking.error()
        return ranking.chosen
    refusal = None
    try:
        return _planned(known_mechanism(mechanism), problem)
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
