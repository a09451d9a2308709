"""What the table says of a method, held: whether it reads the secret to make an answer, and whether it plans at delta 0.

The problems are those of the conformance suite. In the place of the engine stands one that notes which columns are requested
for an answer. Where rows are only sorted into categories, to check that each has one, it hands back things that are no numbers:
an answer that is made of them cannot be made.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest

from attrpriv.engines import statistics
from attrpriv.engines.gram import GramRead
from attrpriv.engines.scan import ColumnRead
from attrpriv.engines.statistics import StatisticRead
from attrpriv.engines.tally import TallyRead
from attrpriv.errors import Cause, DataError, RefusedError, UsageError
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.base.tally import OUTSIDE
from attrpriv.methods.base.view_plan import columns_read
from attrpriv.methods.choice.choose import plan
from attrpriv.methods.dispatch import form_of
from attrpriv.methods.table import METHODS, Form, Method
from attrpriv.queries.conditions import Condition, columns_of
from attrpriv.session import table_reads
from tests.conformance.test_mechanisms import PROBLEMS, planned

OWN = "the counts of its categories"
NOTHING: Any = SimpleNamespace(assume=())
"""In the place of a table and of a policy."""


class NotingEngine:
    """Stands where the passes over a table stand."""

    def __init__(self, n: int, average: int = 1, sizes: tuple[int, ...] = ()) -> None:
        self.n, self.average, self.sizes = n, average, sizes
        self.columns: set[str] = set()

    def scan(self, _: object, reads: Sequence[ColumnRead], tally: TallyRead | None, full: Sequence[Condition] = ()) -> Any:
        self._note(read.column for read in reads)
        cells = () if tally is None else tally.cells
        wheres = [*full, *cells, *(read.where for read in reads if read.where is not None)]
        self._note(column for condition in wheres for column in columns_of(condition))
        counted = SimpleNamespace(
            cells=self.sizes or (self.average,) * len(cells),
            categories=() if tally is None else (object(),) * len(tally.categories),
        )
        return SimpleNamespace(
            rows=self.n, sums=(Fraction(self.n * self.average),) * len(reads), hits=(), tally=tally and counted
        )

    def gram(self, _: object, reads: Sequence[GramRead]) -> Any:
        self._note(read.column for read in reads)
        return SimpleNamespace(rows=self.n, sums=[0] * len(reads), products=[[1] * len(reads)] * len(reads))

    def statistic(self, _: object, read: StatisticRead) -> tuple[int, Fraction]:
        self._note(read.query.columns)
        return self.n, Fraction(self.average)

    def _note(self, columns: Any) -> None:
        self.columns |= set(columns)


def used(made: Plan, patch: pytest.MonkeyPatch) -> set[str]:
    """The columns that an answer of this plan is made of, and `OWN` where that is what it needs."""
    if made.view is not None:
        return {*made.view.secret.columns}  # in cells of these columns rows are kept: ViewCell
    engine = NotingEngine(made.n, sizes=tuple(union.rows for union in made.unions))
    patch.setattr(table_reads, "scan", engine.scan)
    patch.setattr(table_reads, "gram", engine.gram)
    patch.setattr(statistics, "statistic", engine.statistic)
    found = table_reads.read(NOTHING, made, NOTHING)
    try:
        made.answered(found)
    except TypeError:  # no sum has a term that is no number
        return {*engine.columns, OWN}
    except DataError as error:  # the hidden mean was read, and these rows are not of its range
        if str(error) != OUTSIDE:
            raise
    return engine.columns


@cache
def plans(name: str) -> dict[str, Plan]:
    found = {label: planned(asked, name) for label, asked in PROBLEMS.items()}
    return {label: made for label, made in found.items() if made is not None}


def named(label: str) -> set[str]:
    """The columns that the queries name themselves."""
    return {column for query in PROBLEMS[label].queries for column in columns_read(query)}


FORMS = [(method, form) for method in METHODS for form in method.forms]


def sensitive(label: str) -> set[str]:
    return {OWN, *(column for one in PROBLEMS[label].secrets for column in one.columns)}


@pytest.mark.parametrize(("method", "form"), FORMS, ids=[form.home for _, form in FORMS])
def test_only_who_says_so_makes_answers_of_the_secret(method: Method, form: Form, monkeypatch: pytest.MonkeyPatch) -> None:
    of_form = {label: made for label, made in plans(method.name).items() if form_of(method, PROBLEMS[label]) is form}
    found = {label: used(made, monkeypatch) & sensitive(label) - named(label) for label, made in of_form.items()}
    assert found, form
    assert form.reads_secret == any(found.values()), found


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_nothing_else_is_read_but_what_a_query_names(method: Method, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that notes nothing could not pass this."""
    for label, made in plans(method.name).items():
        if made.view is None and method.name != "constant":
            assert used(made, monkeypatch) - sensitive(label) == named(label) - sensitive(label), label


def test_a_constant_answer_is_made_of_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside a number of rows the pass is made, to compare that number; whatever it finds, the answers are the constants."""
    for made in plans("constant").values():
        monkeypatch.setattr(table_reads, "scan", NotingEngine(made.n).scan)
        first = made.answered(table_reads.read(NOTHING, made, NOTHING))
        monkeypatch.setattr(table_reads, "scan", NotingEngine(made.n, average=7).scan)
        assert made.answered(table_reads.read(NOTHING, made, NOTHING)) == first


# ------------------------------------------------------------------------------------------------------------------ delta 0


def at_delta_0(name: str) -> tuple[dict[str, Plan], dict[str, list[Cause]]]:
    made, refused = {}, {}
    for label in plans(name):
        try:
            made[label] = plan(PROBLEMS[label].model_copy(update={"delta": 0.0}), name)
        except (RefusedError, UsageError) as refusal:
            refused[label] = [one.cause for one in refusal.refusals]
    return made, refused


@pytest.mark.parametrize("method", [one for one in METHODS if one.needs_delta], ids=lambda method: method.name)
def test_who_needs_delta_refuses_every_problem_without(method: Method) -> None:
    made, refused = at_delta_0(method.name)
    assert {label for label in made if not PROBLEMS[label].public} == set()
    assert refused
    assert all(Cause.BUDGET in causes for causes in refused.values()), refused


# What needs delta though other problems do not: normal rows, a share of a population, a reference that may fail.
WITH_DELTA: dict[str, set[str]] = {
    "subsample": {
        *("everything about a column", "everything about a column, single persons too"),
        *("everything about a number", "groups, a share of the population"),
    },
    "transport": {
        *("the school", "a sum", "several queries", "several secrets", "known rows", "averages over subsets"),
        *("groups", "groups, exact moments", "groups, several averages", "groups, a share of the population"),
        *("groups, known rows", "a hierarchy", "a hierarchy, near values"),
        *("records", "records, a sum", "records, a count behind a share", "records, an average behind a share"),
    },
}


@pytest.mark.parametrize("method", [one for one in METHODS if not one.needs_delta], ids=lambda method: method.name)
def test_the_others_plan_without_delta_and_spend_none(method: Method) -> None:
    made, refused = at_delta_0(method.name)
    assert made
    assert set(refused) == WITH_DELTA.get(method.name, set())
    for found in made.values():
        assert found.delta == 0.0
        found.verify()
        assert found.certificate.evidence.delta(found.epsilon) == 0.0
