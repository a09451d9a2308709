"""All mechanisms by name, and `auto`: the least expected error among those that prove the guarantee.

Plans are ranked by the error that is expected under the assumption: root mean square unless another measure is asked for. Where
errors differ by less than a share of 1e-9 they are equal, and equals go to the simpler mechanism: the one listed first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from difflib import get_close_matches

from attrpriv.assumptions.chain import Chain
from attrpriv.assumptions.counts import Counts
from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.groups import Groups
from attrpriv.assumptions.hierarchy import Hierarchy
from attrpriv.assumptions.parameter_network import ParameterNetwork
from attrpriv.cases.parameter_lattice import is_parameter_count
from attrpriv.errors import UsageError
from attrpriv.frozen import FrozenModel
from attrpriv.methods.base.accuracy import MEASURES, Measure
from attrpriv.methods.base.evidence import words_of
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.base.view_plan import ViewPlan
from attrpriv.methods.calibrated_weights import plan as calibrated_weights
from attrpriv.methods.chain_quilt import plan as chain_quilt
from attrpriv.methods.chain_quilt.proof import ChainEvidence
from attrpriv.methods.choice.coverage import require_covered
from attrpriv.methods.choice.fitted_counts import charged
from attrpriv.methods.choice.ranking import NEVER_CHOSEN, WITHOUT_ASSUMPTION, Ranking, best_first, refused_by
from attrpriv.methods.choice.row_shape import require_near, require_normal_rows, with_warning
from attrpriv.methods.choice.weak import require_open, weak_lines
from attrpriv.methods.count_noise import gaussian as gaussian_counts
from attrpriv.methods.count_noise import laplace, wasserstein
from attrpriv.methods.count_transport import plan as count_transport
from attrpriv.methods.gaussian import plan as gaussian
from attrpriv.methods.gaussian.proof import GaussianEvidence
from attrpriv.methods.groups import plan as group_means
from attrpriv.methods.hierarchy import means as hierarchy_means
from attrpriv.methods.laplace_sequence.proof import CountSequenceEvidence
from attrpriv.methods.markov_quilt import plan as markov_quilt
from attrpriv.methods.markov_quilt.proof import QuiltEvidence
from attrpriv.methods.optimal import plan as optimal
from attrpriv.methods.parameter_counts import plan as parameter_plans
from attrpriv.methods.transport import choose as transport
from attrpriv.methods.transport import plan as gaussian_transport
from attrpriv.methods.transport.sequence_proof import SequenceEvidence
from attrpriv.methods.view import answers as subsample
from attrpriv.methods.view.plan import plan_view
from attrpriv.methods.yardsticks import averages as yardsticks
from attrpriv.methods.yardsticks import counts as count_yardsticks
from attrpriv.methods.yardsticks import non_linear as ranged
from attrpriv.methods.yardsticks.counts import is_tally
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, only_by_name, other_assumption
from attrpriv.queries.query import Query

Planner = Callable[[Problem], Plan]


def _on_averages(planner: Planner, *, subsets: bool = False) -> Planner:
    """A mechanism that adds noise to averages, over all rows or over subsets of public size too."""

    def planned(problem: Problem) -> Plan:
        if problem.theta and is_tally(problem):
            raise Refusal(
                Cause.STATISTIC,
                "is for averages of numeric columns, under a gaussian assumption.",
                needs="an average of a column, under a gaussian assumption",
            )
        covered = [query.plain or (subsets and query.linear is not None) for query in problem.queries]
        filtered = [query for query, known in zip(problem.queries, covered, strict=True) if not known]
        if filtered:
            raise Refusal(
                Cause.STATISTIC,
                f"answers statistics over all rows only. Got {filtered[0].text}; {_answering(problem, filtered[0])}",
                needs="a counts assumption" if filtered[0].linear is None else "a gaussian assumption",
                query=filtered[0].text,
            )
        return planner(problem)

    return planned


def _answering(problem: Problem, query: Query) -> str:
    """What answers a statistic with a filter or by group: never the mechanism that was just refused."""
    if query.linear is None:
        return "a count of some rows needs a counts assumption or a view."
    if problem.theta and all(isinstance(member, Gaussian) for member in problem.theta):
        return "gaussian and transport answer it, and so does a view."
    return "averages and sums over some rows need a gaussian assumption or a view."


def _alone(planner: Planner) -> Planner:
    """A form of a mechanism that cannot share a budget with other releases."""

    def planned(problem: Problem) -> Plan:
        if not problem.alone:
            raise Refusal(
                Cause.BUDGET,
                "shares no budget with other releases under this assumption; spend all of it (spend 1).",
                needs="spend 1",
            )
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
    "gaussian_approximation": _on_averages(gaussian.plan_approximation),
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
# The kind of assumption that a mechanism asks for, and all that it can be used with.
_KINDS: Mapping[str, tuple[str, tuple[type, ...]]] = {
    "markov_quilt": ("parameter_network", (ParameterNetwork,)),
    "laplace": ("counts", (Counts, ParameterNetwork)),
    "gaussian_approximation": ("gaussian", (Gaussian,)),
    "calibrated_weights": ("gaussian", (Gaussian,)),
    "chain_quilt": ("chain", (Chain,)),
    "wasserstein": ("counts", (Counts, ParameterNetwork)),
    "optimal": ("counts", (Counts, ParameterNetwork)),
}
# Entries of a correlated column are secrets of another kind than properties of columns.
_FOR_ENTRIES = frozenset({"chain_quilt", "group_dp"})


def rank(problem: Problem, by: Measure = "rmse", mechanism: str = "auto") -> Ranking:
    """Plan the problem with every mechanism; a named one is chosen whatever its rank."""
    measure(by)
    wanted = None if mechanism == "auto" else known_mechanism(mechanism)
    plans: list[Plan] = []
    reasons: dict[str, Refusal] = {}
    for name in MECHANISMS:
        try:
            if name != wanted:
                _require_unasked(name, problem)
            made = _planned(name, problem)
            if name != wanted:
                require_near(made, problem)
            plans.append(made)
        except Refusal as refusal:
            reasons[name] = refusal.told(method=name)
    found = Ranking(problem, (), reasons, by, wanted)
    found = replace(found, plans=best_first(plans, found))
    return replace(found, by_itself=_by_itself(problem)) if found.ends_in_a_view else found


def _by_itself(problem: Problem) -> Plan | None:
    """How the assumption covers one of the queries where that is alone and has the whole budget; None: it covers none."""
    for query in () if problem.alone and len(problem.queries) == 1 else problem.queries:
        alone = problem.model_copy(update={"queries": (query,), "spend": 1.0, "earlier": None})
        for name in () if query.whole_table else MECHANISMS:
            made = None if name in WITHOUT_ASSUMPTION | NEVER_CHOSEN else _plan_or_none(name, alone)
            if made is not None:
                return made
    return None


def one_at_a_time(problem: Problem) -> bool:
    """Whether several statistics may have no proof together, and one each when they follow one another."""
    return not problem.theta or is_tally(problem) or is_parameter_count(problem)


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


def _require_unasked(name: str, problem: Problem) -> None:
    """What is only done when asked for by name: to rest on rows that are not normal, and programs or searches of minutes."""
    try:
        require_normal_rows(name, problem)
    except Refusal:
        if not (name == "transport" and gaussian_transport.takes_long(problem)):
            _planned(name, problem)  # a reason that holds by name too comes first: nobody is sent to a second refusal
        raise
    if name == "optimal" and is_parameter_count(problem) and parameter_plans.takes_long(problem):
        raise only_by_name(f"{parameter_plans.AUTO_ROWS} rows")
    if name == "transport" and gaussian_transport.takes_long(problem):
        raise only_by_name(f"{gaussian_transport.AUTO_GROUPS} averages by group")
    if name == "optimal" and optimal.takes_long(problem):
        raise only_by_name(f"{optimal.AUTO_SECRETS} values of the secret")


def _plan_or_none(name: str, problem: Problem) -> Plan | None:
    """Without what must be asked for by name."""
    try:
        _require_unasked(name, problem)
        made = _planned(name, problem)
        require_near(made, problem)
        return made
    except Refusal:
        return None


def _planned(name: str, problem: Problem) -> Plan:
    entries = [secret.text for secret in problem.secrets if secret.entries is not None]
    if entries and name not in _FOR_ENTRIES:
        raise Refusal(Cause.SECRET, f"is not for {entries[0]}; chain_quilt is.", needs="mechanism chain_quilt")
    require_covered(name, problem)
    if not problem.alone and name not in NEVER_CHOSEN:  # a public constant tells nothing, whatever was released
        _require_joint(name, problem)
    if name not in WITHOUT_ASSUMPTION | NEVER_CHOSEN:
        require_open(problem)
    made = with_warning(charged(name, problem, MECHANISMS[name]), problem)
    weak = () if name in NEVER_CHOSEN else weak_lines(problem, made.epsilon, made.delta)
    return made.model_copy(update={"spend": problem.spend, "notes": (*made.notes, *weak)})


def _require_joint(name: str, problem: Problem) -> None:
    """Guarantees of single releases do not add up: only a proof for all of them together may follow one, or leave room.

    A mechanism for another kind of assumption is refused for that: no share of the budget would change it.
    """
    asked, kinds = _KINDS.get(name, ("", ()))
    if asked and not (problem.theta and all(isinstance(member, kinds) for member in problem.theta)):
        raise other_assumption(asked)
    if name not in CONTINUES and name != "subsample" and problem.earlier is None:
        raise Refusal(
            Cause.BUDGET,
            "cannot share a budget with other releases; ask for everything at once, or spend all of it (spend 1).",
            needs="spend 1",
        )
    if problem.earlier is not None and not isinstance(problem.earlier, CONTINUES.get(name, ())):
        told = words_of(problem.earlier)
        raise Refusal(Cause.EARLIER, f"no rule covers it after {told}; together they may tell more.")


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
    raise refused_by(mechanism, refusal, problem.queries)


def plan_view_of(problem: Problem) -> ViewPlan:
    """The view that hides the problem's composition, or the reason why there is none."""
    refusal = None
    try:
        made = plan_view(problem)
        weak = weak_lines(problem, made.certificate.epsilon, made.certificate.delta)
        return made.model_copy(update={"notes": (*made.notes, *weak)})
    except Refusal as caught:
        refusal = caught
    raise refused_by("view", refusal)
