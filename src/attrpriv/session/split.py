"""How what is asked is released: which queries, and together or one after the other.

| what is asked | released |
|---|---|
| averages | as they are, together where a mechanism answers them so |
| several counts; a variance, regression or quantile beside others | the same; else one after the other |
| what is computed from statistics | its parts, together; one after the other where no mechanism answers them together |
| an average over a subset of undeclared size | as it is where a mechanism does that, else as a quotient of a sum and a count |

One after the other, every part gets the same share of the budget. What was released stays released: after a crash between two
parts the first is told again. What must never change: the choice is made from public facts alone, before any row is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from attrpriv.errors import AttrprivError, QueryError, RefusedError, UsageError, Way
from attrpriv.methods.base.accuracy import Measure
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.accuracy_first import plan_for_error
from attrpriv.methods.choice.choose import known_mechanism, measure, one_at_a_time, rank
from attrpriv.methods.choice.choose import plan as plan_problem
from attrpriv.methods.choice.ranking import Ranking
from attrpriv.problem.problem import Problem
from attrpriv.queries.derived import Derived, Question, as_ratio, computed, parse_questions, parts_of
from attrpriv.queries.query import Query
from attrpriv.session.derived import computed_entry, plan_of_parts
from attrpriv.session.request import Request

Queries = str | Query | Derived | Sequence[str | Query | Derived]


@dataclass(frozen=True)
class Planner:
    """How problems are to be solved; a name that is none is an error also where the answer is recorded."""

    mechanism: str = "auto"
    by: Measure = "rmse"
    error: float | None = None
    notes: tuple[str, ...] = ()
    """What every plan is to say beside its own."""

    def __post_init__(self) -> None:
        measure(self.by)
        if self.mechanism != "auto":
            known_mechanism(self.mechanism)

    def plan(self, problem: Problem, mechanism: str) -> Plan:
        """By the mechanism that fits what the ledger holds."""
        if self.error is None:
            return self._noted(plan_problem(problem, mechanism, self.by))
        return self._noted(plan_for_error(problem, self.error, mechanism, self.by))

    def rank(self, problem: Problem) -> Ranking:
        """Every mechanism side by side; with an error, at the least epsilon that reaches it."""
        ranking = self._ranked(problem)
        return replace(ranking, plans=tuple(map(self._noted, ranking.plans)))

    def _noted(self, plan: Plan) -> Plan:
        return plan.model_copy(update={"notes": (*plan.notes, *self.notes)}) if self.notes else plan

    def _ranked(self, problem: Problem) -> Ranking:
        if self.error is None:
            return rank(problem, self.by, self.mechanism)
        found = plan_for_error(problem, self.error, self.mechanism, self.by)
        # A view keeps epsilon 0 whatever the budget is; the others are shown at the policy's own then.
        budget = found.epsilon or problem.epsilon
        return rank(problem.model_copy(update={"epsilon": budget, "spend": found.spend}), self.by, found.mechanism)

    def for_parts(self, questions: Sequence[Question]) -> Planner:
        """With the error that the released statistics must keep for what is asked to keep this one."""
        if self.error is None or all(isinstance(one, Query) for one in questions):
            return self
        (only, *others) = questions
        factor = only.factor if isinstance(only, Derived) and not others else None
        if factor is None:
            raise UsageError("error: is for statistics that are released themselves. Got a computation; ask for its parts.")
        return replace(self, error=self.error / abs(float(factor)))


@dataclass(frozen=True)
class Ranked:
    """What is asked, and every mechanism side by side for each step."""

    questions: tuple[Question, ...]
    rankings: tuple[Ranking, ...]

    @property
    def computed(self) -> tuple[Derived, ...]:
        """What is computed from the answers."""
        return tuple(one for one in self.questions if isinstance(one, Derived))

    @property
    def refused(self) -> Ranking | None:
        """The step that no mechanism can prove, if any."""
        return next((one for one in self.rankings if one.chosen is None), None)

    @property
    def plan(self) -> Plan | None:
        """What would be carried out."""
        plans = [one.chosen for one in self.rankings if one.chosen is not None]
        return plan_of_parts(self.questions, plans) if len(plans) == len(self.rankings) else None

    def entries(self) -> list[dict[str, Any]]:
        """One JSON-able entry for each query and mechanism, and for each computation."""
        return [*(row for one in self.rankings for row in one.entries()), *map(computed_entry, self.computed)]


@dataclass(frozen=True)
class Steps:
    """What is asked, and the problems to be solved one after the other; of a release none where there is but one.

    `mechanism` is the one that was asked for, or that answers all that is asked of a table with a view.
    """

    questions: tuple[Question, ...]
    problems: tuple[Problem, ...]
    mechanism: str = "auto"

    def plan(self, planner: Planner) -> Plan:
        """One plan for everything."""
        parts = planner.for_parts(self.questions)
        return plan_of_parts(self.questions, [parts.plan(problem, self.mechanism) for problem in self.problems])

    def ranked(self, planner: Planner) -> Ranked:
        """Every mechanism side by side, step by step."""
        parts = replace(planner.for_parts(self.questions), mechanism=self.mechanism)
        return Ranked(self.questions, tuple(map(parts.rank, self.problems)))


def choose_split(
    questions: tuple[Question, ...],
    sizes: Mapping[str, int],
    look: Callable[[tuple[Query, ...]], Request],
    pose: Callable[[Request], tuple[Problem, str]],
    planner: Planner,
    *,
    release: bool,
) -> Steps:
    """Which way it is released. Nothing is planned here unless there is a choice; `pose` names the mechanism that fits."""
    options = _alternatives(questions, sizes)
    if release and len(options) == 1 and len(parts_of(questions)) == 1:
        return Steps(questions, ())  # there is no choice
    looked = [(option, look(parts_of(option))) for option in options]
    looked = [(option, asked) for option, asked in looked if not asked.new][:1] or looked
    failure: AttrprivError | None = None
    on_view: Steps | None = None
    for option, asked in looked:
        if release and not asked.new:
            return Steps(option, ())
        problem, mechanism = pose(asked)
        if len(looked) == 1 and not _has_parts(option, problem):
            return Steps(option, (problem,), mechanism)
        try:
            found = _split(problem, partial(planner.for_parts(option).plan, mechanism=mechanism), chosen=mechanism == "auto")
        except (RefusedError, UsageError) as refused:
            failure = refused.with_traceback(None) if failure is None else _neither(failure, refused)
            continue
        # As for a single query: a view, which ends releases with noise, only where no assumption covers the table itself.
        if mechanism != "auto" or not problem.theta or all(plan.view is None for _, plan in found):
            return Steps(option, tuple(step for step, _ in found), mechanism)
        on_view = on_view or Steps(option, tuple(step for step, _ in found), mechanism)
    if on_view is not None:
        return on_view
    raise failure or UsageError("query: there must be one. Got none.")


def read_questions(queries: Queries | None, listed: Sequence[Question]) -> tuple[Question, ...]:
    """What a call asks for, each once; by default what the policy has `listed`."""
    found: list[Question] = []
    if queries is None:
        found += listed
    else:
        given = [queries] if isinstance(queries, str | Query | Derived) else queries
        if not isinstance(given, Sequence):
            raise QueryError(f"query: must be text, a Query, or a list of these. Got a {type(queries).__name__}.")
        for item in given:
            if isinstance(item, Query | Derived):
                found.append(computed(item) if isinstance(item, Query) else item)
            else:
                found += parse_questions(item)
    if not found:
        raise QueryError("query: there must be one, in the call or under release in the policy. Got none.")
    return tuple(dict.fromkeys(found))


def _alternatives(questions: tuple[Question, ...], sizes: Mapping[str, int]) -> list[tuple[Question, ...]]:
    """As it is asked, and with a quotient for each average over a subset whose size is not declared."""
    other = tuple(as_ratio(one) if _undeclared(one, sizes) else one for one in questions)
    return [questions] if other == questions else [questions, other]


def _undeclared(question: Question, sizes: Mapping[str, int]) -> bool:
    queries = (question,) if isinstance(question, Query) else question.statistics
    return any(query.kind == "avg" and query.where is not None and query.where not in sizes for query in queries)


def _has_parts(questions: Sequence[Question], problem: Problem) -> bool:
    """Whether there may be several statistics to release where one thing is asked, or some that are answered one at a time.

    Averages under laws of whole rows are planned together or not at all: nothing has to be tried.
    """
    parts = any(isinstance(one, Derived) and len(one.parts) > 1 for one in questions)
    return len(_statistics(problem)) > 1 and (parts or problem.non_linear or one_at_a_time(problem))


def _split(problem: Problem, plan: Callable[[Problem], Plan], *, chosen: bool = True) -> list[tuple[Problem, Plan]]:
    """The problem itself where it can be planned, else one for each of its statistics, on top of each other; and the plans.

    As for a single query, noise comes before a view of everything where an assumption is made and the mechanism is `chosen`.
    """
    statistics, together, refusal = _statistics(problem), None, None
    try:
        together = plan(problem)
        if together.view is None or len(statistics) < 2 or not (chosen and problem.theta):
            return [(problem, together)]
    except (RefusedError, UsageError) as refused:
        if len(statistics) < 2:
            raise
        refusal = refused.with_traceback(None)
    try:
        apart = _apart(problem, statistics, plan)
    except (RefusedError, UsageError) as refused:
        if together is not None:
            return [(problem, together)]
        raise _cause(problem, statistics, plan, refusal, refused) from None
    return apart if together is None or all(made.view is None for _, made in apart) else [(problem, together)]


def _apart(
    problem: Problem, statistics: Sequence[tuple[Query, ...]], plan: Callable[[Problem], Plan]
) -> list[tuple[Problem, Plan]]:
    """Each with the same share of the budget, planned with the proof of all before it."""
    earlier, made = problem.earlier, []
    for k, queries in enumerate(statistics):
        share = problem.spend / (len(statistics) - k * problem.spend)  # of all of it, the last gets all that is left: just 1
        changes = {"queries": queries, "spend": min(1.0, share), "earlier": earlier}
        rows = None if problem.individuals is None else problem.individuals / len(statistics)
        step = problem.model_copy(update={**changes, "individuals": rows})
        made.append((step, _planned_part(step, plan)))
        earlier = made[-1][1].certificate.evidence
    return made


def _cause(
    problem: Problem,
    statistics: Sequence[tuple[Query, ...]],
    plan: Callable[[Problem], Plan],
    together: AttrprivError | None,
    apart: AttrprivError,
) -> AttrprivError:
    """Why nothing is released: the part that is refused by itself too. Nothing follows a view, and that is no part's fault."""
    for queries in statistics:
        try:
            if _planned_part(problem.model_copy(update={"queries": queries}), plan).view is not None and together is not None:
                apart = together
        except (RefusedError, UsageError) as refused:
            return refused.with_traceback(None)
    return apart


def _planned_part(step: Problem, plan: Callable[[Problem], Plan]) -> Plan:
    refusal: AttrprivError
    try:
        return plan(step)
    except (RefusedError, UsageError) as error:
        refusal = error
    raise refusal.after(f"{step.queries[0].text}, a part of what is asked:")


def _statistics(problem: Problem) -> list[tuple[Query, ...]]:
    """The queries, those together that one answer tells."""
    found: dict[str, tuple[Query, ...]] = {}
    for query in problem.queries:
        if not query.whole_table:
            found[min(query.alike)] = (*found.get(min(query.alike), ()), query)
    return list(found.values())


def _neither(direct: AttrprivError, quotient: AttrprivError) -> AttrprivError:
    """Why an average over a subset can be released in no way; what was said of the average itself is said once."""
    ways = direct.ways or (Way(str(direct)),)
    said = tuple(replace(way, reasons=tuple((names, one.tried()) for names, one in way.reasons)) for way in ways)
    known = {one.reason for way in said for _, one in way.reasons}
    others = {way.others for way in said}
    told = [
        replace(
            way,
            reasons=tuple((names, one) for names, one in way.reasons if one.tried().reason not in known),
            others="" if way.others in others else way.others,
        )
        for way in quotient.after("As a quotient of a sum and a count:").ways
    ]
    return type(direct).told((*said, *told), (*direct.refusals, *quotient.refusals))
