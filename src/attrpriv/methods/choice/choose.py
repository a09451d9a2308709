"""All mechanisms by name, and `auto`: the least expected error among those that prove the guarantee.

Plans are ranked by the error that is expected under the assumption: root mean square unless another measure is asked for. Where
errors differ by less than a share of 1e-9 they are equal, and equals go to the simpler mechanism: the one listed first.
"""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches

from attrpriv.cases.budget import FitCharge, fit_charge, fit_refusal
from attrpriv.cases.subset import require_one_meaning
from attrpriv.errors import CertificateError, QueryError, UsageError
from attrpriv.methods.base.accuracy import MEASURES, Measure
from attrpriv.methods.base.evidence import kind_of, words_of
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.base.view_plan import ViewPlan
from attrpriv.methods.choice.ranking import Ranking, best_first, refused_by
from attrpriv.methods.choice.warnings import require_near, require_normal_rows, require_open, weak_lines, with_warning
from attrpriv.methods.dispatch import form_of, planned_by, too_slow
from attrpriv.methods.table import VIEW, Method, load, methods
from attrpriv.problem.problem import Problem
from attrpriv.problem.public_groups import public_groups
from attrpriv.problem.refusal import Cause, Refusal, only_by_name, other_assumption, refusing
from attrpriv.problem.shapes import CHAIN, LATTICE, NOTHING, QUILT, SHIFT, STATED
from attrpriv.queries.intervals import NON_LINEAR
from attrpriv.queries.query import Query


def rank(problem: Problem, by: Measure = "rmse", mechanism: str = "auto") -> Ranking:
    """Plan the problem with every mechanism, the least expected error first.

    Args:
        problem: what is asked, hidden and assumed.
        by: what is compared: "rmse", "mean_absolute" or "alpha95", the bound that holds 95% of the time.
        mechanism: "auto", or one that is chosen whatever its rank.

    Examples:
        >>> import attrpriv as ap
        >>> problem = ap.Problem(
        ...     queries=(ap.mean("weight"),), secrets=(ap.Secret("mean(income)", between=(20_000, 200_000), within=1_000),),
        ...     theta=(ap.Gaussian(sd={"weight": 25, "income": 30_000}, mean={"income": 60_000},
        ...                        correlation={("weight", "income"): 0.3}, tolerance=0),),
        ...     epsilon=1.0, delta=1e-6, n=10_000,
        ... )
        >>> [plan.mechanism for plan in ap.rank(problem).plans][:2]
        ['transport', 'gaussian']
    """
    measure(by)
    wanted = None if mechanism == "auto" else known_mechanism(mechanism).name
    plans: list[Plan] = []
    reasons: dict[str, Refusal] = {}
    for name, method in methods().items():
        try:
            if name != wanted:
                _require_unasked(method, problem)
            made = _planned(method, problem)
            if name != wanted:
                require_near(method, made, problem)
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
        for method in () if query.whole_table else methods().values():
            made = None if method.without_assumption else _plan_or_none(method, alone)
            if made is not None:
                return made
    return None


def one_at_a_time(problem: Problem) -> bool:
    """Whether several statistics may have no proof together, and one each when they follow one another."""
    return not problem.theta or problem.tallied or problem.shape == QUILT


def measure(by: str) -> Measure:
    """One of the measures that plans are compared by."""
    for known in MEASURES:
        if by == known:
            return known
    raise UsageError(f"by: must be one of {', '.join(MEASURES)}. Got {by!r}.")


def known_mechanism(mechanism: str) -> Method:
    """The mechanism of this name; a suggestion where it is nearly one."""
    known = methods()
    if mechanism in known:
        return known[mechanism]
    near = get_close_matches(mechanism.lower().replace("-", "_").replace(" ", "_"), ("auto", *known), n=1)
    meant = f" Did you mean {near[0]}?" if near else ""
    raise UsageError(f"mechanism: must be auto or one of {', '.join(known)}. Got {mechanism!r}.{meant}")


def _require_unasked(method: Method, problem: Problem) -> None:
    """What is only done when asked for by name: to rest on rows that are not normal, and programs or searches of minutes."""
    slow = too_slow(method, problem)
    try:
        require_normal_rows(method, problem)
    except Refusal:
        if slow is None:
            _planned(method, problem)  # a reason that holds by name too comes first: nobody is sent to a second refusal
        raise
    if slow is not None:
        raise only_by_name(slow)


def _plan_or_none(method: Method, problem: Problem) -> Plan | None:
    """Without what must be asked for by name."""
    try:
        _require_unasked(method, problem)
        made = _planned(method, problem)
        require_near(method, made, problem)
        return made
    except Refusal:
        return None


def _hides_entries(method: Method, problem: Problem) -> bool:
    """Of stated laws and of chains every method does that has a form for them: they say themselves what is hidden."""
    form = form_of(method, problem)
    return method.hides_entries or (form is not None and not {STATED, CHAIN}.isdisjoint(form.shapes))


def _planned(method: Method, problem: Problem) -> Plan:
    entries = [secret.text for secret in problem.secrets if secret.entries is not None]
    if entries and not _hides_entries(method, problem):
        raise Refusal(Cause.SECRET, f"is not for {entries[0]}; laplace is.", needs="mechanism laplace")
    whole = [secret.text for secret in problem.secrets if secret.whole_columns]
    if whole and not method.views:
        raise Refusal(Cause.SECRET, f"does not hide {whole[0]}; a view does.", needs="a view")
    require_covered(method, problem)
    if not problem.alone and method.chosen:  # a public constant tells nothing, whatever was released
        _require_joint(method, problem)
    if not method.without_assumption:
        require_open(problem)
    made = charged(method, problem)
    if not method.without_assumption:
        made = with_warning(made, problem)
    weak = weak_lines(problem, made.epsilon, made.delta) if method.chosen else ()
    return made.model_copy(update={"spend": problem.spend, "notes": (*made.notes, *weak)})


def _require_joint(method: Method, problem: Problem) -> None:
    """Guarantees of single releases do not add up: only a proof for all of them together may follow one, or leave room.

    A mechanism for another kind of assumption is refused for that: no share of the budget would change it.
    """
    if len(method.asks) == 1 and problem.shape not in method.shapes():
        raise other_assumption(method.asks[0])
    if not method.follows and not method.views and problem.earlier is None:
        raise Refusal(
            Cause.BUDGET,
            "cannot share a budget with other releases; ask for everything at once, or spend all of it (spend 1).",
            needs="spend 1",
        )
    earlier = problem.earlier
    if earlier is not None and kind_of(earlier) not in method.follows:
        raise Refusal(Cause.EARLIER, f"no rule covers it after {words_of(earlier)}; together they may tell more.")


def plan(problem: Problem, mechanism: str = "auto", by: Measure = "rmse") -> Plan:
    """A plan by the named mechanism, or the best of all; `RefusedError` where none can prove the promise.

    Args:
        problem: what is asked, hidden and assumed.
        mechanism: "auto" for the least expected error, or the name of a mechanism.
        by: what "auto" compares: "rmse", "mean_absolute" or "alpha95".

    Examples:
        >>> import attrpriv as ap
        >>> problem = ap.Problem(
        ...     queries=(ap.mean("weight"),), secrets=(ap.Secret("mean(income)", between=(20_000, 200_000), within=1_000),),
        ...     theta=(ap.Gaussian(sd={"weight": 25, "income": 30_000}, mean={"income": 60_000},
        ...                        correlation={("weight", "income"): 0.3}, tolerance=0),),
        ...     epsilon=1.0, delta=1e-6, n=10_000,
        ... )
        >>> round(ap.plan(problem, "gaussian").error.rmse, 2)
        1.03
    """
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
        made: ViewPlan = load(VIEW)(problem)
        weak = weak_lines(problem, made.certificate.epsilon, made.certificate.delta)
        return made.model_copy(update={"notes": (*made.notes, *weak)})
    except Refusal as caught:
        refusal = caught
    raise refused_by("view", refusal)


# ----------------------------------------------------------------------------------------------------------------------------
# A counts assumption that was fitted: the chance that it misses the truth is paid out of delta, once, by every mechanism.
#
#     planned with delta - risk, promised as delta             risk = 1 - confidence <= delta/2
#     planned with delta, promised as delta + risk             where the policy accepts a larger one
#
# If the intervals hold, the plan is (epsilon, delta - risk)-private; they do not with probability `risk`, which is counted as
# a failure: average over the public records (docs/guide/fit.md). For later releases the miss is the same one event.
#
# What must never change: a plan that rests on the fitted probabilities carries the risk in its certificate and in its
# statement.


def charged(method: Method, problem: Problem) -> Plan:
    """The plan, which pays for the fit where there is one."""
    fitted = problem.shape in (LATTICE, STATED) and any(member.fit_record() is not None for member in problem.theta)
    # What rests on no assumption is free; noise for the whole range does where counts came before it.
    free = method.without_assumption and (problem.earlier is None or not method.follows)
    if not fitted or free:
        return planned_by(method, problem)
    reason = fit_refusal(problem.theta, problem.delta)
    if reason is not None and not problem.accept_fit_risk:
        raise Refusal(Cause.BUDGET, reason, needs=("a fit with that confidence", "accept_fit_risk"), usage=True)
    charge = fit_charge(problem.theta, problem.delta)
    return _with_charge(planned_by(method, problem.model_copy(update={"delta": charge.calibration})), charge)


def _with_charge(made: Plan, charge: FitCharge) -> Plan:
    """The same noise; the promise is that of all public records, those included whose intervals miss."""
    said, promised = f"delta {charge.calibration:g})", f"delta {charge.promised:g})"
    if made.guarantee.statement.count(said) != 1:
        raise CertificateError("plan: the statement does not say its delta where it is looked for. Please report this.")
    certificate = made.certificate.model_copy(
        update={"delta": charge.promised, "fit_delta": charge.risk, "assumes": (*made.certificate.assumes, *charge.lines)}
    )
    certificate.verify()
    guarantee = made.guarantee.model_copy(update={"statement": made.guarantee.statement.replace(said, promised)})
    return made.rebuilt(delta=charge.promised, certificate=certificate, guarantee=guarantee)


# ----------------------------------------------------------------------------------------------------------------------------
# Which statistics a mechanism may be asked for at all, before it looks at the assumption.
#
# | statistic | answered by |
# |---|---|
# | count(*), avg and sum of one column | every mechanism that covers the assumption |
# | avg and sum of a linear combination of columns, over all rows | `gaussian` and its approximation, under gaussian; a view |
# | avg and sum of these over subsets or by group, of declared sizes | `gaussian`, `transport` (columns); else a view |
# | variances, covariances, regressions, quantiles, over all rows | `markov_quilt`, `group_dp` (bounds or ranges); a view |
# | avg and sum of products of columns; any of these over a subset | a view |
# | anything by group | a view; `count(*)` by group also under counts |
#
# What must never change: what is not in this table is refused, whatever a mechanism would make of it.


AS_RATIO = "release it as a ratio of two sums: sum(...) and count(*) with the same filter"


def require_covered(method: Method, problem: Problem) -> None:
    """A refusal unless every query is of a kind that this mechanism knows."""
    if len(problem.queries) > 1:
        require_one_meaning(problem)
    for query in problem.queries:
        if method.views:
            _require_groups(problem, query)
        elif query.kind == "avg" and query.where is not None and query.group_by is None and query.linear is not None:
            _require_size(method, problem, query)
        elif not query.plain and query.linear is not None and _over_subsets(method, problem, query):
            continue  # sizes are asked for there
        elif query.kind in NON_LINEAR and "non_linear" in method.covers:
            _require_all_rows(query)
        elif query.of:  # more than a column as it is
            _require_linear(method, problem, query)


def _require_groups(problem: Problem, query: Query) -> None:
    if any(query.group_by in secret.whole_columns for secret in problem.secrets):
        return  # a view has such a column with the public's values, which are the groups
    if query.group_by is None or (problem.types and query.group_by not in problem.types):
        return
    needs = f"categories of {query.group_by}"
    with refusing(
        QueryError, to=lambda error: Refusal(Cause.PUBLIC_FACT, str(error), needs=needs, query=query.text, usage=True)
    ):
        public_groups(query.group_by, problem.categories, problem.bins, problem.secrets, problem.types)


def _over_subsets(method: Method, problem: Problem, query: Query) -> bool:
    combined = "combinations" in method.covers and _gaussian(problem)
    return "subsets" in method.covers and (query.simple or combined)


def _gaussian(problem: Problem) -> bool:
    """Whether nothing but a gaussian assumption is made, or none: no other says anything of combinations of columns."""
    return problem.shape in (SHIFT, NOTHING)


def _require_linear(method: Method, problem: Problem, query: Query) -> None:
    if query.linear is not None:
        if "combinations" in method.covers and query.plain and _gaussian(problem):
            return
        by = "gaussian, or a view," if problem.theta and _gaussian(problem) else "a gaussian assumption, or a view,"
        raise Refusal(
            Cause.STATISTIC,
            f"does not cover {query.text}; {by} does. Or ask for the average of each column.",
            needs=("a view" if problem.theta and _gaussian(problem) else "a gaussian assumption", "the average of each column"),
            query=query.text,
        )
    _require_all_rows(query)
    if query.kind not in NON_LINEAR:
        raise Refusal(
            Cause.STATISTIC,
            f"does not cover {query.text}, of products of columns; a view does (protect a count, share or distribution).",
            needs="a view",
            query=query.text,
        )
    raise Refusal(
        Cause.STATISTIC,
        f"does not cover {query.text}. Two ways: (a) any query on the secret-free view (protect a count, share or "
        "distribution; mechanism subsample); (b) a declared sensitivity: bounds or ranges, and markov_quilt under a parameter "
        "network, or group_dp.",
        needs=("a view", "bounds or ranges, and mechanism markov_quilt or group_dp"),
        query=query.text,
    )


def _require_all_rows(query: Query) -> None:
    if not query.plain:
        raise Refusal(
            Cause.STATISTIC,
            f"does not cover {query.text}, over some rows; ask for it over all rows. A view answers it as it is.",
            needs=("the statistic over all rows", "a view"),
            query=query.text,
        )


def _require_size(method: Method, problem: Problem, query: Query) -> None:
    """An average over some rows is a ratio of two sums, one of which is a count that may tell the secret."""
    if query.where in problem.sizes:
        if _over_subsets(method, problem, query):
            return
        raise Refusal(
            Cause.STATISTIC,
            f"does not cover the average over a subset, {query.text}; gaussian does, and so does a view.",
            needs=("mechanism gaussian", "a view"),
            query=query.text,
        )
    needed = f"the average over a subset, {query.text}, needs the subset's size as a public number"
    if not _gaussian(problem):
        raise Refusal(
            Cause.PUBLIC_FACT,
            f"{needed} and a gaussian assumption.",
            needs=f"sizes of {query.where}, under a gaussian assumption",
            query=query.text,
            otherwise=AS_RATIO,
        )
    raise Refusal(
        Cause.PUBLIC_FACT,
        f'{needed}: declare sizes: {{"{query.where}": rows}}.',
        needs=f"sizes of {query.where}",
        query=query.text,
        otherwise=AS_RATIO,
    )
