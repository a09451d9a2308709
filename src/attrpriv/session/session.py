"""A session: policy + table + ledger. plan -> scan -> noise -> record -> release.

What must never change: the order. A release is first checked against the ledger, then planned from public facts, then the
table is read once, then noise is drawn, then the entry is committed, and only then does the value exist for the caller. A
failure at any step before the commit leaves nothing behind.

Threads that share a session take turns (`turns`). It must not be used in a forked process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from attrpriv.accounting.hash_chain import Entry, Kind
from attrpriv.accounting.ledger import AnsweredError, Belonging, Ledger
from attrpriv.accounting.standing import Candidate, StaleError, mixed, require_same_table
from attrpriv.engines.tables import Source
from attrpriv.errors import RefusedError, UsageError
from attrpriv.frozen.requirements import shown
from attrpriv.methods.base.accuracy import Measure
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.base.view_plan import ViewPlan
from attrpriv.methods.choice.choose import plan_view_of
from attrpriv.methods.choice.ranking import Ranking
from attrpriv.policy import Policy
from attrpriv.problem.places import file_state
from attrpriv.queries.derived import parts_of
from attrpriv.queries.query import Query
from attrpriv.session.derived import with_computed
from attrpriv.session.ledger_record import Recorded
from attrpriv.session.named_columns import require_columns
from attrpriv.session.record import FAILED, details_of
from attrpriv.session.release import Answer, Release, drawn_answers, with_guesses
from attrpriv.session.request import Request, require_answered
from attrpriv.session.split import Planner, Queries, Ranked, Steps, choose_split, read_questions
from attrpriv.session.table_reads import (
    identifier_lines,
    opened_table,
    public_cells,
    public_facts,
    read,
    require_other_records,
    require_other_reference,
)
from attrpriv.session.turns import Turn, in_turns

if TYPE_CHECKING:
    from attrpriv.methods.base.outside import OutsideRelease
    from attrpriv.problem.problem import Problem
    from attrpriv.session.bridge import Bridge
    from attrpriv.session.view_rows import ViewRows

# A plan that another process overtook is made again. Each time somebody got on, so this is never reached by two.
_TRIES = 1000
_OVERTAKEN = "{}: others release so often that no plan lasts until it is recorded. Try again."


@in_turns
class Session(Recorded):
    """A table with its policy and its ledger: plan, release, view.

    The policy says what is hidden and what may be spent. `plan` and `rank` show how queries would be answered, and read no row.
    `release` answers them, once they are recorded in the ledger. `view` draws rows to train on or to compute on.

    Args:
        data: the table: a path (Parquet, CSV), a pandas, Polars, Arrow or Ibis table; by default the policy's.
        policy: a `Policy`, or the path of its file.
        ledger: the file or the database where releases are recorded; by default the policy's, else beside the table.
        clock: the time that an entry gets.

    What methods take:

    - `queries`: SQL such as "avg(hours)", or `Query`, one or several; by default the policy's `release`.
    - `mechanism`: "auto", the least expected error, or one of the names that `rank` lists.
    - `by`: which error "auto" compares: "rmse", "mean_absolute", or "alpha95", within which 95% of the answers are.
    - `error`: an expected error to reach with the least epsilon, instead of the least error with all of it.
    - `spend`: which share of what is left to spend, such as 0.2; needed for a query that the policy does not list.
    - `out`, `split`, `force`, `low_memory`: the file of a view, its parts, overwrite it, use less memory.
    - `b`, `what`, `reads`: another library's release: its epsilon for one row, its name, the column or event that it reads.
    - `head`: a digest that a release printed.

    >>> import pandas, tempfile
    >>> people = pandas.DataFrame({"sex": ["F", "M"] * 500, "hours": [38, 42] * 500})
    >>> policy = Policy(epsilon=1.0, protect=[{"secret": "share(sex = 'F')", "between": [0.4, 0.6]}])
    >>> with tempfile.TemporaryDirectory() as folder, Session(people, policy, f"{folder}/people.ledger") as session:
    ...     session.release("avg(hours)").value
    40.0
    """

    def __init__(
        self,
        data: object = None,
        policy: Policy | str | Path | None = None,
        ledger: str | Path | None = None,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        if not isinstance(policy, Policy | str | Path):
            raise UsageError(f"policy: must be a Policy or a policy file, as in Session(table, policy). Got {shown(policy)}.")
        self.policy = policy if isinstance(policy, Policy) else Policy.load(policy)
        self._belongs = Belonging.of(self.policy, data, ledger)
        self._data = self._belongs.data
        self._clock = clock
        self._process = os.getpid()
        self._turn = Turn()
        self._source: Source | None = None
        self._state: tuple[int, int, int] | None = None
        self._rows: ViewRows | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Forget the table. The ledger is only open while it is read or written."""
        self._source = self._rows = None

    def problem(self, queries: Queries | None = None, spend: float | None = None) -> Problem:
        """The problem to be solved, from public facts only: what is new, on top of what the ledger holds."""
        return self._problem(self._look(parts_of(read_questions(queries, self.policy.queries()))), spend, must_say=False)

    def rank(
        self,
        queries: Queries | None = None,
        by: Measure = "rmse",
        *,
        mechanism: str = "auto",
        error: float | None = None,
        spend: float | None = None,
    ) -> Ranking:
        """Every mechanism side by side, by expected error. Reads no row. Of several steps the first; `ranked` has all."""
        return self.ranked(queries, by, mechanism=mechanism, error=error, spend=spend).rankings[0]

    def ranked(
        self,
        queries: Queries | None = None,
        by: Measure = "rmse",
        *,
        mechanism: str = "auto",
        error: float | None = None,
        spend: float | None = None,
    ) -> Ranked:
        """The same for every step, with what is computed from the answers."""
        planner = Planner(mechanism, by, error, self._beside())
        return self._steps(queries, spend, planner).ranked(planner)

    def plan(
        self,
        queries: Queries | None = None,
        mechanism: str = "auto",
        *,
        by: Measure = "rmse",
        error: float | None = None,
        spend: float | None = None,
    ) -> Plan:
        """How these queries would be answered, on top of what the ledger holds. Reads no row."""
        planner = Planner(mechanism, by, error, self._beside())
        return self._steps(queries, spend, planner).plan(planner)

    def release(
        self,
        queries: Queries | None = None,
        mechanism: str = "auto",
        *,
        by: Measure = "rmse",
        error: float | None = None,
        spend: float | None = None,
    ) -> Release:
        """Answer the queries, together or one after the other, on top of all released so far; from a view, as often as wished.

        A query that was answered before gets its recorded answer, at no cost, whatever mechanism, error or share is named now.
        """
        self._require_same_process()
        self._belongs.ledger()
        planner = Planner(mechanism, by, error, self._beside())
        steps = self._steps(queries, spend, planner, release=True)
        planner = planner.for_parts(steps.questions)
        for problem in steps.problems[:-1]:
            self._released(problem.queries, planner, problem.spend)
        last = spend if len(steps.problems) < 2 else steps.problems[-1].spend
        released = self._released(parts_of(steps.questions), planner, last)
        if tuple(answer.query for answer in released.answers) != steps.questions:
            released = with_computed(released, steps.questions)
        return with_guesses(released, self.policy, self._public_facts()[1])

    def _steps(self, queries: Queries | None, spend: float | None, planner: Planner, *, release: bool = False) -> Steps:
        """How it is released. Nothing is planned here unless there is a choice."""

        def pose(asked: Request) -> tuple[Problem, str]:
            if release:
                return self._fitting(asked, spend, planner.mechanism)
            return self._problem(asked, spend, must_say=False), asked.fitting(planner.mechanism)

        asked = read_questions(queries, self.policy.queries())
        return choose_split(asked, self.policy.sizes, self._look, pose, planner, release=release)

    def _released(self, queries: tuple[Query, ...], planner: Planner, spend: float | None) -> Release:
        """One release, planned again where another process was faster."""
        ledger = self._belongs.ledger()
        overtaken: str | None = ""  # no head
        for _ in range(_TRIES):
            asked = self._look(queries)
            if not asked.new:
                return asked.again()
            plan = planner.plan(*self._fitting(asked, spend, planner.mechanism))
            self._open()  # the table must be there, even for an answer that reads no row
            outcome = self._answer(ledger, plan, asked)
            if isinstance(outcome, Release):
                return asked.with_told(outcome)
            if not isinstance(outcome, StaleError | AnsweredError):
                raise outcome
            if overtaken == asked.head:  # nobody was: nothing has been added since the last time
                raise RefusedError(
                    f"{ledger.name}: holds an answer to one of these that it cannot read back. Its index was changed, or an "
                    "earlier version wrote it. See attrpriv ledger."
                )
            overtaken = asked.head
        raise RefusedError(_OVERTAKEN.format(ledger.name))

    def view(
        self,
        out: str | Path | None = None,
        *,
        split: Mapping[str, float | Fraction] | None = None,
        force: bool = False,
        low_memory: bool = False,
    ) -> Any:
        """The secret-free view: a lazy Ibis table, or a new Parquet file at `out`.

        Real records, to compute on, not to publish. It is drawn once for a ledger and never again. With `split`, as in
        {"train": 0.8, "test": 0.2}, disjoint parts of it: a table each by name, or the files `rows.train.parquet` and so on.
        """
        from attrpriv.engines.view.draw import columns_left
        from attrpriv.session.view_persons import planned_parts
        from attrpriv.session.view_rows import write_rows

        self._require_same_process()
        plan = self.view_plan()
        parts = planned_parts(plan, split)
        ledger = self._belongs.ledger()
        columns_left(self._open(), self.policy.row_id, self.policy.left_out)
        require_other_reference(self.policy, self._open)
        if out is None:
            return self._rows_of(plan, ledger).table(parts)
        place, named = Path(out), self._belongs.named()
        write_rows(plan, self.policy, self._data, ledger, self._time, named, place, parts, force=force, low_memory=low_memory)
        return plan.written_to(place.name)

    def view_plan(self) -> ViewPlan:
        """How many rows of each cell the view keeps. Reads no row."""
        n, types = self._public_facts()
        require_columns((), self.policy, types)
        plan = plan_view_of(self.policy.problem((Query("count"),), n, types, public_cells(self.policy, n, types, self._data)))
        return plan.model_copy(update={"notes": (*plan.notes, *self._beside())})

    def _beside(self) -> tuple[str, ...]:
        """What every plan is to say beside its own: other ledgers, and columns by which rows may be recognised."""
        found = () if not self.policy.whole_columns else identifier_lines(self.policy, self._public_facts()[1])
        return (*self._belongs.others(), *found)

    def _rows_of(self, plan: ViewPlan, ledger: Ledger) -> ViewRows:
        from attrpriv.session.view_rows import ViewRows

        named, state = self._belongs.named(), file_state(self._data)
        if state != self._state:  # a file that was replaced is another table, to be compared with the view
            self._source, self._rows, self._state = None, None, state
        self._rows = ViewRows.recorded_or_drawn(plan, self.policy, self._open(), ledger, self._time, named, known=self._rows)
        return self._rows

    def _from_view(self, plan: Plan, view: ViewPlan, ledger: Ledger) -> tuple[Answer, ...]:
        from attrpriv.session.view_persons import answers_from
        from attrpriv.session.view_rows import require_answerable

        require_answerable(self._open(), self.policy, plan.queries, view)
        return answers_from(self._rows_of(view, ledger), plan)

    def _look(self, queries: tuple[Query, ...]) -> Request:
        """What is asked, against what the ledger holds now."""
        asked = Request.of(None if self._belongs.place is None else self._belongs.ledger(), self.policy, queries)
        require_answered(asked.told)
        if self._belongs.place is not None:
            named = self._belongs.named(asked.known.standing.table)
            require_same_table(self.ledger_name, asked.known.standing, named, self._public_facts()[0])
        return asked

    def _problem(self, asked: Request, spend: float | None, *, must_say: bool) -> Problem:
        """Of what is new; of recorded answers alone, as if nothing had been released."""
        asked.require_drawn(lambda: self.ledger_name)
        n, types = self._public_facts()
        require_columns(queries := asked.new or asked.queries, self.policy, types)
        problem = self.policy.problem(queries, n, types, public_cells(self.policy, n, types, self._data))
        if not asked.new or asked.known.standing.view or problem.public:
            return problem
        asked.require_left(lambda: self.ledger_name, self.policy)
        return asked.on_top(problem, asked.share(spend, must_say=must_say))

    def _fitting(self, asked: Request, spend: float | None, mechanism: str) -> tuple[Problem, str]:
        """The problem and the mechanism that fit what the ledger holds; a refusal before any row is read."""
        if asked.known.standing.view:
            if mechanism not in ("auto", "subsample"):
                raise mixed(self.ledger_name, "a view", "a release with noise")
            return self._problem(asked, None, must_say=False), "subsample"
        if asked.known.certificate is not None and mechanism == "subsample":
            raise mixed(self.ledger_name, "a release with noise", "a view of the same table")
        return self._problem(asked, spend, must_say=mechanism != "subsample"), mechanism

    def ledger_note(self, queries: Queries | None = None, plan: Plan | None = None, spend: float | None = None) -> str | None:
        """What the ledger means for these queries, answered by this plan, in a line; None where there is nothing to say."""
        return self._look(parts_of(read_questions(queries, self.policy.queries()))).note(plan, self.policy, spend)

    def bridge(self, *, reads: str | None = None) -> Bridge:
        """The b that other libraries may still spend for one row, on top of all that the ledger holds. Reads no row."""
        from attrpriv.session.bridge import crossing, on_top_of

        return crossing(on_top_of(self._look(()), lambda: self.ledger_name, self.policy, self._public_facts()), reads)

    def record_outside(self, *, b: float, what: str, reads: str | None = None) -> Entry:
        """Count a release of another library that is b-private for one row replaced, delta 0, and *then* make it.

        `reads`: the event or the column that is all it reads. Recorded twice, it counts twice. Refused where no rule covers it.
        """
        from attrpriv.methods.choice.outside import plan_outside
        from attrpriv.session.bridge import on_top_of
        from attrpriv.session.outside import record

        self._require_same_process()
        ledger, facts = self._belongs.ledger(), self._public_facts()
        require_other_records(self.policy, self._open)
        for _ in range(_TRIES):
            asked = self._look(())
            planned = plan_outside(on_top_of(asked, lambda: ledger.name, self.policy, facts), b, what, reads)
            rule = self._candidate("outside", planned, asked, ()).rule(ledger.name)
            with suppress(StaleError):
                return record(ledger, planned, self.policy, facts[1], self._time(), rule)
        raise RefusedError(_OVERTAKEN.format(ledger.name))

    @property
    def ledger_name(self) -> str:
        """The ledger in words, without any password."""
        return self._belongs.ledger().name

    def _time(self) -> str:
        return self._clock().astimezone(UTC).isoformat(timespec="seconds")

    def _answer(self, ledger: Ledger, plan: Plan, asked: Request) -> Release | BaseException:
        """Scan, noise, record. A failure comes back without its traceback, whose frames hold averages and answers."""
        try:
            require_other_records(self.policy, self._open)
            if plan.view is not None:
                answers = self._from_view(plan, plan.view, ledger)
            else:
                values = plan.answered(read(self._open(), plan, self.policy))
                if values is None:  # that is what this call tells, so it is recorded before it is told
                    self._commit(ledger, "failure", plan, asked, ())
                    return RefusedError(FAILED)
                answers = drawn_answers(plan, values)
            kind: Kind = "release" if plan.view is None else "answer"
            return Release(plan, answers, self._commit(ledger, kind, plan, asked, answers))
        except BaseException as error:
            error.__cause__ = error.__context__ = None
            return error.with_traceback(None)

    def _candidate(self, kind: Kind, plan: Plan | OutsideRelease, asked: Request, queries: tuple[Query, ...]) -> Candidate:
        on = asked.known.standing.joint
        asking = tuple(text for query in queries for text in query.alike)
        named = self._belongs.named(asked.known.standing.table)
        return Candidate(kind, plan.policy_digest, self.policy.stated, named, plan.n, plan.certificate, on, asking)

    def _commit(self, ledger: Ledger, kind: Kind, plan: Plan, asked: Request, answers: tuple[Answer, ...]) -> Entry:
        return ledger.commit(
            kind=kind,
            time=self._time(),
            policy_digest=plan.policy_digest,
            plan=plan.entries(chosen=True),
            answers=[answer.to_json() for answer in answers],
            details=details_of(plan, self._public_facts()[1], self.policy) if plan.draws else None,
            allowed=None if kind == "answer" else self._candidate(kind, plan, asked, plan.queries).rule(ledger.name),
        )

    def _open(self) -> Source:
        self._require_same_process()
        if self._source is None:
            self._source = opened_table(self._data)
        return self._source

    def _public_facts(self) -> tuple[int, Mapping[str, str]]:
        gone = isinstance(self._data, str | Path) and not Path(self._data).exists()
        return public_facts(self.policy, None if gone and self.policy.rows is not None else self._open())

    def _require_same_process(self) -> None:
        if os.getpid() != self._process:
            raise UsageError("session: must not be used in a forked process. Open a new Session there.")
