"""A session: policy + table + ledger. plan -> scan -> noise -> record -> release.

What must never change: the order. A release is first checked against the ledger, then planned from public facts, then the
table is read once, then noise is drawn, then the entry is committed, and only then does the value exist for the caller. A
failure at any step before the commit leaves nothing behind.

A session is not thread-safe, and must not be used in a forked process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from attrpriv.accounting.chain import Entry, question_digest
from attrpriv.accounting.ledger import AnsweredError, Ledger, Verified
from attrpriv.assumptions import Gaussian, Groups, Hierarchy, ParameterNetwork
from attrpriv.engines.gram import GramRead, gram
from attrpriv.engines.moments import require_other_table
from attrpriv.engines.scan import ColumnRead, scan
from attrpriv.engines.tables import Source, open_table
from attrpriv.engines.tally import TallyRead
from attrpriv.engines.view import columns_left
from attrpriv.engines.view_file import check_out, limit_memory
from attrpriv.errors import DataError, PolicyError, QueryError, RefusedError, UsageError
from attrpriv.framework.places import is_url
from attrpriv.guarantee import WeightsEvidence
from attrpriv.mechanisms import MECHANISMS, Plan, Ranking, plan_view_of, rank
from attrpriv.mechanisms import plan as plan_problem
from attrpriv.mechanisms.accuracy import Measure
from attrpriv.mechanisms.accuracy_first import plan_for_error
from attrpriv.mechanisms.tally import Tally, TallyCategory
from attrpriv.mechanisms.view import ViewPlan
from attrpriv.policy import Policy
from attrpriv.queries.conditions import Condition, parse_condition
from attrpriv.queries.query import Query
from attrpriv.queries.sql import parse_queries
from attrpriv.record import FAILED, details_of, note, told_again
from attrpriv.release import Release, noisy_answers, tallied_answers
from attrpriv.view_rows import ViewRows, require_answerable

if TYPE_CHECKING:
    from attrpriv.framework import Problem

Queries = str | Query | Sequence[str | Query]


class Session:
    """`with Session("students.parquet", policy, ledger="students.ledger") as session: ...`"""

    def __init__(
        self,
        data: object = None,
        policy: Policy | str | Path | None = None,
        ledger: str | Path | None = None,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        if policy is None:
            raise UsageError("policy: must be a Policy or the path of a policy file. Got nothing.")
        self.policy = policy if isinstance(policy, Policy) else Policy.load(policy)
        self._data = data if data is not None else self.policy.data_path()
        if self._data is None:
            raise PolicyError("data: must be given in the policy or to Session. Got neither.")
        self._ledger_place = self._default_ledger() if ledger is None else ledger if is_url(ledger) else Path(ledger)
        self._clock = clock
        self._process = os.getpid()
        self._source: Source | None = None
        self._rows: ViewRows | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Forget the table. The ledger is only open while it is read or written."""
        self._source = self._rows = None

    def problem(self, queries: Queries | None = None) -> Problem:
        """The problem to be solved, from public facts only."""
        asked = self._read_queries(queries)
        n, types = self._public_facts()
        _require_columns(asked, self.policy, types)
        return self.policy.problem(asked, n, types)

    def rank(
        self,
        queries: Queries | None = None,
        by: Measure = "rmse",
        *,
        mechanism: str = "auto",
        error: float | None = None,
    ) -> Ranking:
        """Every mechanism side by side, by expected error; with `error`, at the least epsilon that reaches it. Reads no row."""
        problem = self.problem(queries)
        if error is None:
            return rank(problem, by, mechanism)
        found = plan_for_error(problem, error, mechanism, by)
        # A view keeps epsilon 0 whatever the budget is; the others are shown at the policy's own then.
        budget = found.epsilon or problem.epsilon
        return rank(problem.model_copy(update={"epsilon": budget}), by, found.mechanism)

    def plan(
        self,
        queries: Queries | None = None,
        mechanism: str = "auto",
        *,
        by: Measure = "rmse",
        error: float | None = None,
    ) -> Plan:
        """How these queries would be answered; with `error`, at the least epsilon that reaches it. Reads no row."""
        problem = self.problem(queries)
        return plan_problem(problem, mechanism, by) if error is None else plan_for_error(problem, error, mechanism, by)

    def release(
        self,
        queries: Queries | None = None,
        mechanism: str = "auto",
        *,
        by: Measure = "rmse",
        error: float | None = None,
    ) -> Release:
        """Answer the queries together: once with noise, or as often as wished from a view.

        The same question under the same policy gets the recorded answer, at no cost, whatever mechanism or error is named now.
        """
        self._require_same_process()
        ledger = self._require_ledger()
        if (told := self._told(ledger, queries, mechanism)) is not None:
            return told
        plan = self._plan_on(ledger, queries, mechanism, by, error)
        self._open()  # the table must be there, even for an answer that reads no row
        outcome = self._answer(ledger, plan)
        if isinstance(outcome, Release):
            return outcome
        raise outcome

    def view(self, out: str | Path | None = None, *, force: bool = False, low_memory: bool = False) -> Any:
        """The secret-free view: a lazy Ibis table, or a new Parquet file at `out`.

        Real records, to compute on, not to publish. It is drawn once for a ledger and never again.
        """
        self._require_same_process()
        plan = self.view_plan()
        ledger = self._require_ledger()
        columns_left(self._open(), self.policy.row_id, self.policy.identifiers)
        if out is None:
            return self._rows_of(plan, ledger).table()
        check_out(Path(out), self._data, force=force)
        source = self._opened()  # an engine for this file alone: what it spills goes when it does
        limit_memory(source, low_memory=low_memory)
        rows = ViewRows.recorded_or_drawn(plan, self.policy, source, ledger, self._time)
        rows.write(Path(out), low_memory=low_memory)
        return plan

    def view_plan(self) -> ViewPlan:
        """How many rows of each cell the view keeps. Reads no row."""
        n, types = self._public_facts()
        _require_columns((), self.policy, types)
        return plan_view_of(self.policy.problem((Query("count"),), n, types))

    def _rows_of(self, plan: ViewPlan, ledger: Ledger) -> ViewRows:
        self._rows = ViewRows.recorded_or_drawn(plan, self.policy, self._open(), ledger, self._time, known=self._rows)
        return self._rows

    def _plan_on(
        self, ledger: Ledger, queries: Queries | None, mechanism: str, by: Measure = "rmse", error: float | None = None
    ) -> Plan:
        """The plan that fits what the ledger already holds; a refusal before any row is read."""
        first = ledger.first()
        if first is not None and first.kind == "view" and mechanism == "auto":
            mechanism = "subsample"
        if mechanism not in ("auto", "subsample"):
            ledger.refuse("release")
        plan = self.plan(queries, mechanism, by=by, error=error)
        if plan.view is None or first is None:
            ledger.refuse("release" if plan.view is None else "view")
        else:
            ledger.refuse("answer")
        return plan

    def ledger_note(self) -> str | None:
        """What the ledger already holds, in a line; None where it is empty or the session has none yet."""
        first = None if self._ledger_place is None else self._require_ledger().first()
        return None if first is None else note(first)

    def recorded(self) -> tuple[Entry, ...]:
        """Everything the ledger holds, checked."""
        return self._require_ledger().entries()

    @property
    def ledger_name(self) -> str:
        """The ledger in words, without any password."""
        return self._require_ledger().name

    def verify(self, head: str | None = None) -> Verified:
        """Check every entry; with `head`, a digest that a release printed, also that nothing since was cut off."""
        return self._require_ledger().verify(head)

    def _told(self, ledger: Ledger, queries: Queries | None, mechanism: str) -> Release | None:
        """The recorded answer to this very question. A view's answer is to another one: it is for a public composition."""
        if mechanism == "subsample" or mechanism not in ("auto", *MECHANISMS) or ledger.first() is None:
            return None
        asked = self._read_queries(queries)
        question = question_digest(self.policy.digest, self._public_facts()[0], (query.text for query in asked))
        found = ledger.answered(question)
        told = None if found is None else told_again(found, asked)
        if isinstance(told, RefusedError):
            raise told
        return told

    def _time(self) -> str:
        return self._clock().astimezone(UTC).isoformat(timespec="seconds")

    def _answer(self, ledger: Ledger, plan: Plan) -> Release | BaseException:
        """Scan, noise, record. A failure comes back without its traceback, whose frames hold averages and answers."""
        try:
            self._require_other_records()
            if plan.tally is not None:
                answers = tallied_answers(plan, self._tallied(plan, plan.tally))
            elif plan.weights is not None:
                values = self._weighted(plan, plan.weights)
                if values is None:
                    self._record_failure(ledger, plan)
                    return RefusedError(FAILED)
                answers = noisy_answers(plan, values)
            elif plan.view is None:
                answers = noisy_answers(plan, plan.answers(*self._averages(plan)))
            else:
                require_answerable(self._open(), self.policy, plan.queries)
                answers = self._rows_of(plan.view, ledger).answers(plan.queries)
            entry = ledger.commit(
                kind="release" if plan.view is None else "answer",
                time=self._time(),
                policy_digest=plan.policy_digest,
                plan=plan.entries(chosen=True),
                answers=[answer.to_json() for answer in answers],
                details=None if plan.view is not None else details_of(plan),
            )
            return Release(plan, answers, entry)
        except AnsweredError as found:  # another process was faster; what was drawn here is forgotten
            return told_again(found, plan.queries)
        except BaseException as error:
            error.__cause__ = error.__context__ = None
            return error.with_traceback(None)

    def _weighted(self, plan: Plan, weights: WeightsEvidence) -> tuple[float, ...] | None:
        """Weighted averages, from one pass; None where the weights do not exist."""
        reads = [GramRead(one.column, one.centre, one.step, one.fill) for one in (*weights.sensitive, *weights.columns)]
        found = gram(self._open(), reads)
        if found.rows != plan.n:
            raise DataError(f"rows: must be the number of rows of the table, {found.rows}. Got {plan.n}.")
        return plan.weighted(found.rows, found.sums, found.products)

    def _record_failure(self, ledger: Ledger, plan: Plan) -> None:
        """That nothing could be answered is what this call tells, so it is recorded before it is told."""
        ledger.commit(
            kind="failure",
            time=self._time(),
            policy_digest=plan.policy_digest,
            plan=plan.entries(chosen=True),
            answers=[],
            details=details_of(plan),
        )

    def _require_other_records(self) -> None:
        """An assumption must not have been fitted on this very table."""
        for assumed in self.policy.assume:
            if isinstance(assumed, Gaussian | Groups) and assumed.fitted is not None:
                require_other_table(self._open(), assumed.fitted.rows, assumed.columns, assumed.fitted.digest)
            if isinstance(assumed, ParameterNetwork) and assumed.fitted is not None:
                require_other_table(self._open(), assumed.fitted.rows, assumed.fitted.columns, assumed.fitted.digest)

    def _averages(self, plan: Plan) -> tuple[list[Fraction], tuple[int, ...]]:
        """The exact averages and counts of categories that the plan needs, from one pass; from none where nothing is asked."""
        counted = any(query.kind == "count" for query in plan.queries)
        if not counted and all(part.centre is not None for part in plan.columns):
            return [Fraction(0)] * len(plan.columns), (0,) * len(plan.categories)
        reads = [ColumnRead(part.column, part.fill, part.clip) for part in plan.columns]
        reads += [ColumnRead(column, fill) for column, fill in plan.read_columns.items()]
        tally = TallyRead((), False, category_conditions(plan.categories)) if plan.categories else None
        found = scan(self._open(), reads, tally)
        if found.rows != plan.n:
            raise DataError(f"rows: must be the number of rows of the table, {found.rows}. Got {plan.n}.")
        return [total / plan.n for total in found.sums], () if found.tally is None else found.tally.categories

    def _tallied(self, plan: Plan, tally: Tally) -> tuple[tuple[float, ...], ...]:
        """The noisy counts, from one pass; a public answer reads no row."""
        if tally.centre is not None:
            return plan.tallied([0] * len(tally.cells), [0] * len(tally.categories))
        found = scan(self._open(), (), tally_read(tally))
        if found.rows != plan.n or found.tally is None:
            raise DataError(f"rows: must be the number of rows of the table, {found.rows}. Got {plan.n}.")
        return plan.tallied(found.tally.cells, found.tally.categories)

    def _open(self) -> Source:
        self._require_same_process()
        if self._source is None:
            self._source = self._opened()
        return self._source

    def _opened(self) -> Source:
        failure: DataError
        try:
            return open_table(self._data)
        except DataError as error:
            failure = error.with_traceback(None)  # its frames hold the table, whose repr shows rows
        raise failure

    def _public_facts(self) -> tuple[int, Mapping[str, str]]:
        """n and the column types: from the table's metadata, or from the policy where the table is not there yet."""
        if isinstance(self._data, str | Path) and self.policy.rows is not None and not Path(self._data).exists():
            return self.policy.rows, {}
        source = self._open()
        if source.rows is None and self.policy.rows is None:
            raise PolicyError(f"rows: must be declared, because {source.name} does not say how many rows it has. Add rows.")
        if None not in (source.rows, self.policy.rows) and source.rows != self.policy.rows:
            raise DataError(f"rows: must be the number of rows of the table, {source.rows}. Got {self.policy.rows}.")
        n = self.policy.rows if source.rows is None else source.rows
        if n is None or n < 2:
            raise DataError(f"data: the table must have at least 2 rows. Got {n}.")
        return n, source.columns

    def _read_queries(self, queries: Queries | None) -> tuple[Query, ...]:
        asked: list[Query] = []
        if queries is None:
            asked += self.policy.queries()
        else:
            listed = [queries] if isinstance(queries, str | Query) else queries
            if not isinstance(listed, Sequence):
                raise QueryError(f"query: must be text, a Query, or a list of these. Got a {type(queries).__name__}.")
            for item in listed:
                asked += [item] if isinstance(item, Query) else parse_queries(item)
        if not asked:
            raise QueryError("query: there must be one, in the call or under release in the policy. Got none.")
        return tuple(dict.fromkeys(asked))

    def _default_ledger(self) -> str | Path | None:
        path = self.policy.ledger_path()
        if path is None and isinstance(self._data, str | Path):
            return Path(self._data).with_suffix(".ledger")
        return path

    def _require_ledger(self) -> Ledger:
        if self._ledger_place is None:
            raise UsageError(
                'ledger: must be a path when the table is in memory, as in Session(table, policy, ledger="x.ledger").'
            )
        return Ledger(self._ledger_place, self._table_name())

    def _table_name(self) -> str | None:
        """The table's declared name, which names its ledger in a database."""
        named = self.policy.data or (self._data if isinstance(self._data, str | Path) else None)
        return None if named is None else Path(named).name.partition(".")[0]

    def _require_same_process(self) -> None:
        if os.getpid() != self._process:
            raise UsageError("session: must not be used in a forked process. Open a new Session there.")


def tally_read(tally: Tally) -> TallyRead:
    """What the engine has to count."""
    cells = tuple(parse_condition(cell.where) for cell in tally.cells)
    covering = tuple(tuple(map(parse_condition, alternatives)) for alternatives in tally.covering)
    return TallyRead(cells, tally.complete, category_conditions(tally.categories), tally.fill, tally.clip, covering)


def category_conditions(categories: Sequence[TallyCategory]) -> tuple[Condition | None, ...]:
    """How the engine recognises each category; None: all rows of no other."""
    return tuple(None if one.where is None else parse_condition(one.where) for one in categories)


def _require_columns(queries: Sequence[Query], policy: Policy, types: Mapping[str, str]) -> None:
    """Every column that the policy or the queries name must be there and be a number, where the schema is known."""
    if not types:
        return
    asked = [query.column for query in queries if query.column is not None]
    means = any(isinstance(assumed, Hierarchy) for assumed in policy.assume)  # of a column that a plan may read
    numeric = [secret for secret in policy.protect if secret.composition is None and (means or secret.attribute is None)]
    numeric = [secret for secret in numeric if secret.entries is None]  # states may have names
    secrets = [column for secret in numeric for column in secret.columns]
    declared = [*policy.bounds, *policy.resolution, *policy.missing, *policy.bins, *policy.identifiers]
    # A parameter of a network may be one of a column that this table does not even have.
    apart = any(isinstance(assumed, ParameterNetwork) for assumed in policy.assume)
    declared += [column for secret in policy.protect if not (apart and secret.attribute) for column in secret.columns]
    for column in dict.fromkeys((*asked, *secrets, *declared)):
        if column not in types:
            raise DataError(f"column: must be one of {', '.join(types)}. Got {column}.")
    for column in dict.fromkeys((*asked, *secrets)):
        if types[column] in ("text", "other"):
            raise DataError(f"column: avg and sum need a numeric column. Got {column}, which is {types[column]}.")
