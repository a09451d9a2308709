"""The part of a plan that reads and draws: noise on averages, on one other statistic, on counts; weights; or a view.

A part says what it reads, turns what was read into answers (`draw`), knows how far they will be off (`spread_of`), and whether
they are what a proof counted on (`covered`). Plans have one part each; what they have in common is in `plan`.

What must never change: a part draws only after `Plan` has checked it against its proof, and nothing that it reads is kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from attrpriv.errors import CertificateError
from attrpriv.frozen import Finite, FrozenMap, FrozenModel
from attrpriv.methods.base.accuracy import ExpectedError, Noise, Reach, Spread
from attrpriv.methods.base.column_plan import ColumnPlan, Group, StatisticPlan, SubsetUnion, clipped, own_scale
from attrpriv.methods.base.evidence import Evidence, Told
from attrpriv.methods.base.tally import Tally, TallyCategory
from attrpriv.methods.base.view_persons import persons_covered, persons_drawn, persons_noise, persons_spread
from attrpriv.methods.base.view_plan import ViewPlan
from attrpriv.queries.intervals import NON_LINEAR
from attrpriv.queries.query import Query

if TYPE_CHECKING:
    from attrpriv.methods.base.plan import Plan

Values = tuple[tuple[float, ...], ...]
"""Of each query its answer, or one for each group."""
EXACT = ExpectedError(rmse=0.0, mean_absolute=0.0, alpha95=0.0, worst=0.0)


class Part(FrozenModel):
    """What a plan reads, and how answers are made of it. What a kind of part does not say is the answer of no noise."""

    @property
    def clips(self) -> bool:
        """Whether values or answers are clipped to public ranges, so that intervals are for the clipped statistic."""
        return False

    def group_names(self, query: Query) -> tuple[str | None, ...]:
        """The groups that a query is answered for; None where there are none."""
        return (None,)

    def rows_of(self, query: Query, group: str | None) -> int | None:
        """How many rows a statistic is over, where that is not all."""
        return None

    def noise_of(self, query: Query, n: int, group: str | None) -> Noise:
        """The noise of an answer; of several groups, of the one with the most."""
        return Noise(kind="none")

    def error_of(self, query: Query, n: int) -> ExpectedError:
        """How far an answer is expected to be off, where the plan does not state it."""
        return EXACT

    def spread_of(self, query: Query, n: int, group: str | None, evidence: Evidence) -> Reach:
        """The law of an answer around the table's own value."""
        noise = self.noise_of(query, n, group)
        return Spread(noise.kind, noise.scale, noise.individuals)

    def parameters_of(self, query: Query, n: int) -> dict[str, Any]:
        """What `attrpriv plan --json` shows of how a query is answered."""
        return {}

    def public_range(self, query: Query, n: int) -> tuple[float, float] | None:
        """Where an answer surely lies, by public facts; None where nothing is known."""
        return None

    def covered(self, plan: Plan) -> bool:
        """Whether what is read and drawn is what the certificate counted on; what a kind does not say, nothing counted on."""
        return False

    def draw(self, plan: Plan, found: Any) -> Values | None:
        """The answers, from what was read; None: an announced failure, which the certificate counted on."""
        raise CertificateError("plan: has nothing to draw. Nothing was released.")


class AveragesPart(Part):
    """Noise on averages, also of combinations of columns, over subsets, and by group."""

    weighs: ClassVar[bool] = False
    """Whether it draws weights, as its evidence must too: both kinds of part look alike in JSON, and to `binding_of`."""
    columns: tuple[ColumnPlan, ...]
    factor: tuple[tuple[Finite, ...], ...] = Field(default=(), description="further Gaussian noise common to the columns")
    categories: tuple[TallyCategory, ...] = Field(default=(), description="the sensitive column's, counted with the columns")
    unions: tuple[SubsetUnion, ...] = Field(default=(), description="how subsets lie to each other, counted in the same pass")
    groups: FrozenMap[tuple[Group, ...]] = Field(default_factory=dict, description="those of each query that averages by group")

    @property
    def clips(self) -> bool:
        return any(part.clip is not None and part.centre is None for part in self.columns)

    def name_of(self, query: Query) -> str | None:
        """Under which name it has the query's answer; None: it is public, or no average."""
        return query.key

    def of(self, query: Query, n: int, group: str | None = None) -> ColumnPlan:
        """The column that a query reads; of groups, that with most noise."""
        names = [one.column for one in self.groups_of(query) if group in (None, one.name)]
        if not names:
            return next(part for part in self.columns if part.column == self.name_of(query))
        parts = [part for part in self.columns if part.column in names]
        return max(parts, key=lambda part: part.noise.scale * query.weight(part.rows or n))

    def groups_of(self, query: Query) -> tuple[Group, ...]:
        """Those of the query, or of the one that its answer follows from."""
        alike = (query, query.twin) if self.groups else ()
        return next((self.groups[one.text] for one in alike if one is not None and one.text in self.groups), ())

    def group_names(self, query: Query) -> tuple[str | None, ...]:
        return tuple(one.name for one in self.groups_of(query)) or (None,)

    def rows_of(self, query: Query, group: str | None) -> int | None:
        return self.of(query, 1, group).rows if self.columns and self.name_of(query) is not None else None

    def noise_of(self, query: Query, n: int, group: str | None) -> Noise:
        if self.name_of(query) is None:
            return Noise(kind="none")
        part = self.of(query, n, group)
        noise, weight = part.noise, query.weight(part.rows or n)
        scaled = {"scale": noise.scale * weight, "individuals": noise.individuals * weight}
        return noise if weight == 1 else Noise(kind=noise.kind, **scaled)

    def error_of(self, query: Query, n: int) -> ExpectedError:
        if self.name_of(query) is None:
            return EXACT
        part = self.of(query, n)
        weight = query.weight(part.rows or n)
        return part.error if weight == 1 else part.error.scaled(weight)

    def spread_of(self, query: Query, n: int, group: str | None, evidence: Evidence) -> Reach:
        if query.key is None:
            return super().spread_of(query, n, group, evidence)
        part = self.of(query, n, group)
        weight = query.weight(part.rows or n)
        if part.centre is not None:
            return Spread("gaussian", weight * float(part.parameters["sd"]), bias=weight * float(part.parameters["bias"]))
        law = evidence.error_law(self.columns, self.columns.index(part))
        return super().spread_of(query, n, group, evidence) if law is None else law.scaled(weight)

    def parameters_of(self, query: Query, n: int) -> dict[str, Any]:
        if query.text in self.groups:
            return {"groups": {one.name: self._group_parameters(query, n, one.name) for one in self.groups[query.text]}}
        return {} if not self.columns or self.name_of(query) is None else dict(self.of(query, n).parameters)

    def _group_parameters(self, query: Query, n: int, group: str) -> dict[str, Any]:
        part = self.of(query, n, group)
        return {"where": part.where, "rows": part.rows, "scale": self.noise_of(query, n, group).scale, **part.parameters}

    def public_range(self, query: Query, n: int) -> tuple[float, float] | None:
        if query.kind == "count":
            return 0.0, float(n)
        part = self.of(query, n)
        weight = query.weight(part.rows or n)
        return None if part.clip is None else (part.clip[0] * weight, part.clip[1] * weight)

    # The check

    def covered(self, plan: Plan) -> bool:
        evidence, rows = plan.certificate.evidence, plan.certificate.individuals
        names = tuple(part.column for part in self.columns)
        clipped = any(part.clip is not None for part in self.columns)
        return (
            all(
                part.centre is not None or evidence.covers(part.column, part.noise.kind, own_scale(part))
                for part in self.columns
            )
            and self.weighs == evidence.weighs
            and self.factor == evidence.common_noise()
            and bool(self.categories) == evidence.reads_categories
            and evidence.suits(names, plan.n, clipped=clipped)
            and all(part.noise.kind != "laplace" or part.clip is not None for part in self.columns)
            and all(_clipped_enough(part, evidence) for part in self.columns)
            and all(part.noise.individuals == _row_scale(part, rows) for part in self.columns if part.noise.kind == "gaussian")
        )

    def over_public_rows(self, query: Query, n: int) -> bool:
        """Whether it has what the query asks for over the rows that it asks for, each by its own name."""
        if query.plain or query.kind not in ("avg", "sum") or (query.group_by is not None) != (query.text in self.groups):
            return False
        if not self.columns:
            return False
        parts = [self.of(query, n, group) for group in self.group_names(query)]
        asked = [replace(query, where=part.where, group_by=None).key == part.column for part in parts]
        return all(asked) and all(part.rows is not None for part in parts)

    # The draw

    def read_columns(self, evidence: Evidence) -> dict[str, float | None]:
        """The sensitive columns that are averaged besides, each with the value that stands for its missing entries."""
        return {column: read.fill.get(column) for read in evidence.statistics_read() for column in read.coefficients}

    def draw(self, plan: Plan, found: tuple[Sequence[Fraction], Sequence[int]]) -> Values | None:
        """From the averages of `columns`, then of `read_columns`, and the counts of `categories`."""
        averages, counts = found
        evidence = plan.certificate.evidence
        also = self.read_columns(evidence)
        if len(counts) != len(self.categories):
            raise CertificateError(f"plan: needs the counts of {len(self.categories)} categories. Got {len(counts)}.")
        if len(averages) != len(self.columns) + len(also):
            raise CertificateError(f"plan: needs {len(self.columns) + len(also)} averages. Got {len(averages)}.")
        self._require_averages(plan)
        kept = [clipped(part, average) for part, average in zip(self.columns, averages, strict=False)]
        read = dict(zip(also, averages[len(self.columns) :], strict=True))
        drawn = evidence.drawn(self.columns, kept, Told(read, *self._sides(counts)))
        return self.answered(plan, {part.column: value for part, value in zip(self.columns, drawn, strict=True)})

    def _require_averages(self, plan: Plan) -> None:
        partly = {part.column for part in self.columns if part.where is not None or part.rows is not None}
        whole = [query.plain and query.key not in partly for query in plan.queries]
        if not all(plain or self.over_public_rows(query, plan.n) for plain, query in zip(whole, plan.queries, strict=True)):
            raise CertificateError("plan: a filter or a group is not covered by noise on averages.")

    def _sides(self, counts: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The counts of the categories inside and outside of the secret's set, each in the order of the assumption."""
        pairs = list(zip(self.categories, counts, strict=True))
        return tuple(count for one, count in pairs if one.member), tuple(count for one, count in pairs if not one.member)

    def answered(self, plan: Plan, noisy: Mapping[str, Fraction]) -> Values:
        """The answers, from the released average of each column."""
        if any(self.name_of(query) is None and not query.whole_table for query in plan.queries):
            raise CertificateError("plan: a statistic that is no average is not covered by noise on averages.")
        return tuple(
            (float(plan.n),)
            if query.whole_table
            else tuple(self._answer(plan.n, query, group, noisy) for group in self.group_names(query))
            for query in plan.queries
        )

    def _answer(self, n: int, query: Query, group: str | None, noisy: Mapping[str, Fraction]) -> float:
        part = self.of(query, n, group)
        return float(noisy[part.column] * query.weight(n if part.rows is None else part.rows))


class StatisticPart(AveragesPart):
    """Noise on one statistic that is no average, kept in a public range. Its noise stands in the single column."""

    statistic: StatisticPlan

    @property
    def clips(self) -> bool:
        return True

    def name_of(self, query: Query) -> str | None:
        return query.key if query.whole_table else query.text

    def public_range(self, query: Query, n: int) -> tuple[float, float] | None:
        return (0.0, float(n)) if query.kind == "count" else self.statistic.range

    def covered(self, plan: Plan) -> bool:
        """Whether the plan is for one statistic over all rows, and reads, keeps and draws what was counted on."""
        asked = [query for query in plan.queries if not query.whole_table]
        evidence = plan.certificate.evidence
        if len(asked) != 1 or len(self.columns) != 1 or self.categories or self.factor or evidence.statistics_read():
            return False
        (query,), (part,) = asked, self.columns
        named = part.column == query.text and query.plain and query.kind in NON_LINEAR and part.clip is None
        read = set(self.statistic.fills) == set(self.statistic.clips) == set(query.columns)
        if not (named and read) or part.centre is not None or evidence.common_noise() or evidence.reads_categories:
            return False
        columns = frozenset(query.columns)
        return (
            evidence.covers_statistic(query.text, columns, self.statistic.width, part.noise.kind, own_scale(part))
            and evidence.suits((part.column,), plan.n, clipped=False)
            and (part.noise.kind != "gaussian" or part.noise.individuals == _row_scale(part, plan.certificate.individuals))
        )

    def draw(self, plan: Plan, found: tuple[Sequence[Fraction | None], Sequence[int]]) -> Values | None:
        values, counts = found
        return super().draw(plan, ([self.statistic.kept(value) for value in values], counts))

    def _require_averages(self, plan: Plan) -> None:
        if not all(query.plain for query in plan.queries):
            raise CertificateError("plan: a filter or a group is not covered by noise on averages.")


class WeightsPart(AveragesPart):
    """Averages with random weights, from the sums and products of all columns; they may fail."""

    weighs: ClassVar[bool] = True

    def covered(self, plan: Plan) -> bool:
        return super().covered(plan) and bool(plan.certificate.evidence.gram_columns())

    def draw(self, plan: Plan, found: Any) -> Values | None:
        rows, sums, products = found
        weighted = plan.certificate.evidence.weighted(self.columns, rows, sums, products)
        return None if weighted is None else self.answered(plan, weighted)


class TallyPart(Part):
    """Whole-number noise on counts, or a kernel."""

    tally: Tally

    @property
    def clips(self) -> bool:
        return self.tally.clips

    def group_names(self, query: Query) -> tuple[str | None, ...]:
        return (None,) if query.group_by is None else tuple(cell.name for cell in self.tally.cells)

    def noise_of(self, query: Query, n: int, group: str | None) -> Noise:
        if query.whole_table:
            return Noise(kind="none")
        unit, tally = self.tally.unit_of(query, n), self.tally
        return Noise(kind=tally.noise, scale=tally.scale * unit, individuals=tally.individuals * unit)

    def spread_of(self, query: Query, n: int, group: str | None, evidence: Evidence) -> Reach:
        return Spread("none", 0.0) if query.whole_table else self.tally.spread(query, n)

    def parameters_of(self, query: Query, n: int) -> dict[str, Any]:
        return dict(self.tally.parameters)

    def public_range(self, query: Query, n: int) -> tuple[float, float] | None:
        return (0.0, float(n)) if query.kind == "count" else None

    def covered(self, plan: Plan) -> bool:
        evidence = plan.certificate.evidence
        alone = not evidence.common_noise() and not evidence.reads_categories
        return alone and evidence.suits((), plan.n, clipped=False) and self.tally.covered_by(plan.certificate, plan.n)

    def draw(self, plan: Plan, found: tuple[Sequence[int], Sequence[int]]) -> Values | None:
        """From the counts of the tally's cells, and of the sensitive column's categories: these are a kernel's alone to see."""
        counts, categories = found
        if len(counts) != len(self.tally.cells) or len(categories) != len(self.tally.categories):
            raise CertificateError("plan: needs the counts of its tally's cells and categories.")
        released = self.tally.released(counts, categories, plan.certificate.evidence)
        return tuple(
            (plan.n,) if query.whole_table else tuple(self.tally.answer(query, plan.n, steps) for steps in released)
            for query in plan.queries
        )


class ViewPart(Part):
    """Answers from a view, which is drawn once and recorded by itself: nothing more is, but noise for single persons."""

    view: ViewPlan

    def parameters_of(self, query: Query, n: int) -> dict[str, Any]:
        return {"keep": {cell.name: cell.keep for cell in self.view.cells}}

    def noise_of(self, query: Query, n: int, group: str | None) -> Noise:
        return persons_noise(self.view, query)

    def spread_of(self, query: Query, n: int, group: str | None, evidence: Evidence) -> Reach:
        return persons_spread(self.view, query)

    def covered(self, plan: Plan) -> bool:
        return persons_covered(self.view, plan) and plan.certificate.evidence.suits((), plan.n, clipped=False)

    def draw(self, plan: Plan, found: Sequence[Sequence[Fraction]]) -> Values | None:
        return persons_drawn(self.view, plan, found)


def _row_scale(part: ColumnPlan, rows: Any) -> float:
    """The further Laplace noise that a promise about single rows asks for; Laplace noise of its own protects rows too."""
    return 0.0 if rows is None else next((term.scale for term in rows.terms if term.column == part.column), math.nan)


def _clipped_enough(part: ColumnPlan, evidence: Evidence) -> bool:
    """Whether rows are clipped at least as tightly as the noise was scaled for."""
    allowed = evidence.width_of(part.column)
    if part.clip is None or allowed is None:
        return True
    width = Fraction(part.clip[1]) - Fraction(part.clip[0])
    return width <= Fraction(allowed) * (1 + Fraction(1, 10**12))


# What a plan's JSON holds of its part, as all plans since 0.1.0 do, and what stands there where a kind has no such field.
NOT_THERE: Mapping[str, Any] = MappingProxyType(
    {"columns": [], "factor": [], "view": None, "categories": [], "unions": [], "groups": {}, "statistic": None, "tally": None}
)


def part_of(told: Mapping[str, Any], *, weighs: bool) -> Part:
    """The part that these fields describe; a field of another kind of part must not be there."""
    only = (("view", ViewPart), ("tally", TallyPart), ("statistic", StatisticPart))
    others: type[Part] = WeightsPart if weighs else AveragesPart
    kind = next((one for name, one in only if told.get(name) is not None), others)
    alien = [name for name, value in told.items() if name not in kind.model_fields and not _absent(name, value)]
    if alien:
        raise ValueError(f"{alien[0]}: must not be there beside what this plan reads.")
    return kind.model_validate({name: value for name, value in told.items() if name in kind.model_fields})


def _absent(name: str, value: Any) -> bool:
    """Whether what stands there is what JSON has where a kind of part has no such field."""
    return bool((list(value) if isinstance(value, tuple) else value) == NOT_THERE[name])


PARTS: tuple[type[Part], ...] = (AveragesPart, StatisticPart, WeightsPart, TallyPart, ViewPart)
"""All parts there are: JSON has their fields and no others, so that what another one reads would be bound to no proof."""
