"""A plan: which mechanism, how much noise, what is promised and what error to expect. Still no data.

What must never change: a plan is a function of the problem; `randomise` is the only place where a value of the table meets
noise, and it verifies the certificate first. A sum is its released average times the number of rows, so asking for both tells
nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, model_validator

from attrpriv.errors import CertificateError, UsageError
from attrpriv.frozen import Finite, FrozenMap, FrozenModel
from attrpriv.methods.base.accuracy import WARNED, Error, ModelError, Noise, Reach, fragile
from attrpriv.methods.base.binding import binding_of, require_certified
from attrpriv.methods.base.certificate import Certificate, Guarantee
from attrpriv.methods.base.clamp import Clamp, Read
from attrpriv.methods.base.clamp_draw import clamp_bits, clamped, statistic
from attrpriv.methods.base.column_plan import ColumnPlan, Group, Union, clipped, exact, noisy
from attrpriv.methods.base.noise_layout import Design, common_bits
from attrpriv.methods.base.spread import plan_spread
from attrpriv.methods.base.statistic_plan import StatisticPlan
from attrpriv.methods.base.tally import Tally, TallyCategory
from attrpriv.methods.base.usefulness import worthless
from attrpriv.methods.calibrated_weights.draw import weighted_averages
from attrpriv.methods.calibrated_weights.proof import WeightsEvidence
from attrpriv.methods.group_transport.correction import taken_back
from attrpriv.methods.group_transport.proof import GroupVectorTransportEvidence
from attrpriv.methods.groups.equalising import equalising_noise, grid_of, secret_scale
from attrpriv.methods.groups.proof import GroupVectorEvidence
from attrpriv.methods.markov_quilt.proof import QuiltEvidence
from attrpriv.methods.quantile_clip.draw import quantile_clipped
from attrpriv.methods.quantile_clip.proof import QuantileClipEvidence
from attrpriv.methods.transport.sequence_draw import moved_on
from attrpriv.methods.transport.sequence_proof import SequenceEvidence
from attrpriv.methods.view.plan import ViewPlan
from attrpriv.noise import correlated_noise
from attrpriv.queries.query import Query

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Plan(FrozenModel):
    """A proved way to answer some queries together."""

    schema_version: Literal[1] = 1
    mechanism: str
    queries: tuple[Query, ...] = Field(min_length=1)
    n: int
    epsilon: float
    delta: float
    policy_digest: str = ""
    columns: tuple[ColumnPlan, ...]
    factor: tuple[tuple[Finite, ...], ...] = Field(default=(), description="further Gaussian noise common to the columns")
    guarantee: Guarantee
    certificate: Certificate
    view: ViewPlan | None = Field(default=None, description="the view that answers are computed from, instead of noise")
    categories: tuple[TallyCategory, ...] = Field(default=(), description="the sensitive column's, counted with the columns")
    unions: tuple[Union, ...] = Field(default=(), description="how the subsets lie to each other, counted in the same pass")
    groups: FrozenMap[tuple[Group, ...]] = Field(default_factory=dict, description="those of each query that averages by group")
    statistic: StatisticPlan | None = Field(default=None, description="how a statistic that is no average is read")
    tally: Tally | None = Field(default=None, description="what is counted, and its whole-number noise, instead of columns")
    errors: tuple[Error, ...] = Field(default=(), description="of each query, where they do not follow from the columns")
    model_error: tuple[ModelError, ...] = ()
    notes: tuple[str, ...] = ()
    spend: Finite = Field(default=1.0, description="the share of what was left that this release uses")
    bound: str = Field(default="", description="a digest of what is read and drawn, and of the proof that was made for it")

    @model_validator(mode="after")
    def _bind(self) -> Plan:
        if not self.bound:
            self.__dict__["bound"] = binding_of(self)
        return self

    def rebuilt(self, **changes: Any) -> Plan:
        """The plan that a mechanism makes of another one: bound to its proof as it is now."""
        return Plan(**{**{name: getattr(self, name) for name in type(self).model_fields}, **changes, "bound": ""})

    @property
    def left(self) -> float:
        """The share of the table's budget that is left afterwards."""
        return self.certificate.left(self.epsilon, self.delta)

    @property
    def clips(self) -> bool:
        """Whether values or answers are clipped to public ranges, so that intervals are for the clipped statistic."""
        return (
            any(part.clip is not None and part.centre is None for part in self.columns)
            or self.statistic is not None
            or (self.tally is not None and self.tally.clips)
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What an approver must not miss: how the promise stands where the assumption's numbers are off, and what is no use."""
        told = (*(note for note in self.notes if note.startswith(WARNED)), *worthless(self))
        line = fragile(self.epsilon, self.model_error, self.certificate.evidence.room)
        return told if line is None or line in told else (line, *told)

    @property
    def remarks(self) -> tuple[str, ...]:
        """The notes that are no warnings."""
        return tuple(note for note in self.notes if note not in self.warnings)

    def of(self, query: Query, group: str | None = None) -> ColumnPlan:
        """The plan of the column a query reads, or of a statistic that is no average; of groups, that with most noise."""
        names = [one.column for one in self._groups(query) if group in (None, one.name)]
        if not names:
            return next(part for part in self.columns if part.column == self._name(query))
        parts = [part for part in self.columns if part.column in names]
        return max(parts, key=lambda part: part.noise.scale * query.weight(part.rows or self.n))

    def _name(self, query: Query) -> str | None:
        """Under which name the plan has the query's answer; None: it is public, or no average."""
        return query.key if self.statistic is None or query.whole_table else query.text

    def group_names(self, query: Query) -> tuple[str | None, ...]:
        """The groups that an average is answered for; None where there are none."""
        return tuple(one.name for one in self._groups(query)) or (None,)

    def _groups(self, query: Query) -> tuple[Group, ...]:
        """Those of the query, or of the one that its answer follows from."""
        alike = (query, query.twin) if self.groups else ()
        return next((self.groups[one.text] for one in alike if one is not None and one.text in self.groups), ())

    def rows_of(self, query: Query, group: str | None = None) -> int:
        """How many rows a statistic is over, a public number."""
        rows = self.of(query, group).rows if self.columns and self._name(query) is not None else None
        return self.n if rows is None else rows

    def noise_of(self, query: Query, group: str | None = None) -> Noise:
        """The noise of an answer; of several groups, of the one with the most."""
        if self.tally is not None and not query.whole_table:
            unit = self.tally.unit_of(query, self.n)
            return Noise(kind=self.tally.noise, scale=self.tally.scale * unit, individuals=self.tally.individuals * unit)
        if self._name(query) is None or self.view is not None:
            return Noise(kind="none")
        part = self.of(query, group)
        noise, weight = part.noise, query.weight(part.rows or self.n)
        return Noise(kind=noise.kind, scale=noise.scale * weight, individuals=noise.individuals * weight)

    def error_of(self, query: Query) -> Error:
        if self.errors:
            return self.errors[self.queries.index(query)]
        if self._name(query) is None:
            return Error(rmse=0.0, mean_absolute=0.0, alpha95=0.0, worst=0.0)
        part = self.of(query)
        return part.error.scaled(query.weight(part.rows or self.n))

    @property
    def error(self) -> Error:
        """The expected error of the answer; of several answers, ask `error_of` for each."""
        return self.error_of(self._single())

    @property
    def noise(self) -> Noise:
        return self.noise_of(self._single())

    def _single(self) -> Query:
        if len(self.queries) != 1:
            raise UsageError(f"plan: has {len(self.queries)} queries; ask error_of(query) or noise_of(query) for one of them.")
        return self.queries[0]

    def randomise(self, statistic: float | Fraction) -> float:
        """One fresh noisy answer for the value of a single statistic.

        Only `Session.release` records an answer. Two draws for one table tell more than the plan promises.
        """
        query = self._single()
        if self.tally is not None:
            return self._randomised_tally(self.tally, query, exact(statistic))
        if self._name(query) is None:
            return self.answers([])[0]
        if self.reads:
            raise UsageError(
                f"statistic: a transported answer needs the average of {self.reads[0].column} too; use Session.release."
            )
        if self.weights is not None:
            raise UsageError("statistic: calibrated weights need sums over all rows of all columns; use Session.release.")
        average = exact(statistic) / query.weight(self.rows_of(query))
        return self.answers([average])[0]

    @property
    def weights(self) -> WeightsEvidence | None:
        """The columns that are weighted, and how, where answers are weighted averages."""
        evidence = self.certificate.evidence
        return evidence if isinstance(evidence, WeightsEvidence) else None

    def weighted(self, rows: int, sums: Sequence[int], products: Sequence[Sequence[int]]) -> tuple[float, ...] | None:
        """One answer a query, from sums over the sensitive columns and then the released ones; None: the weights failed."""
        require_certified(self)
        columns = [(part.column, part.fill, part.clip) for part in self.columns]
        found = weighted_averages(self.weights, columns, rows, sums, products)
        return None if found is None else self._weighed(found)

    @property
    def clamp(self) -> Clamp | None:
        """What is taken back of sensitive statistics, where the plan reads some."""
        return self.certificate.evidence.taken_back()

    @property
    def reads(self) -> tuple[Read, ...]:
        """The sensitive statistics that are read besides the columns."""
        return self.certificate.evidence.statistics_read()

    @property
    def read_columns(self) -> dict[str, float | None]:
        """The columns whose averages they are made of, each with the value that stands for its missing entries."""
        return {column: read.fill.get(column) for read in self.reads for column in read.coefficients}

    def answers(self, averages: Sequence[Fraction], counts: Sequence[int] = ()) -> tuple[float, ...]:
        """One noisy answer a query, from the averages of `columns` and the counts of `categories`, in order.

        The averages of `read_columns` come last. A query by group has an answer for each group.
        """
        require_certified(self)
        if self.weights is not None:
            raise CertificateError("plan: averages alone are not what its certificate counted on. Nothing was released.")
        if len(counts) != len(self.categories):
            raise CertificateError(f"plan: needs the counts of {len(self.categories)} categories. Got {len(counts)}.")
        wanted = len(self.columns) + len(self.read_columns)
        if len(averages) != wanted:
            raise CertificateError(f"plan: needs {wanted} averages. Got {len(averages)}.")
        partly = {part.column for part in self.columns if part.where is not None or part.rows is not None}
        whole = [query.plain and query.key not in partly for query in self.queries]
        covered = [plain or self.over_public_rows(query) for plain, query in zip(whole, self.queries, strict=True)]
        if self.view is not None or not all(covered):
            raise CertificateError("plan: a filter or a group is not covered by noise on averages.")
        if self.statistic is not None:
            averages = [self.statistic.kept(value) for value in averages]
        moved = [clipped(part, average) for part, average in zip(self.columns, averages, strict=False)]
        if isinstance(self.certificate.evidence, QuantileClipEvidence):
            read = dict(zip(self.read_columns, averages[len(self.columns) :], strict=True))
            return self._weighed({self.columns[0].column: quantile_clipped(self.certificate.evidence, moved[0], read)})
        if self.clamp is not None:
            moved = self._taken_back(self.clamp, moved, averages[len(self.columns) :])
        if isinstance(self.certificate.evidence, SequenceEvidence):
            read = dict(zip(self.read_columns, averages[len(self.columns) :], strict=True))
            moved = moved_on(self.certificate.evidence, moved, read)
        moved = taken_back(self.certificate.evidence, moved, self._sides(counts))
        if self.factor:
            common = correlated_noise(self.factor, self._common_bits())
            moved = [average + noise for average, noise in zip(moved, common, strict=True)]
        evidence = self.certificate.evidence
        extra = equalising_noise(evidence, self._sides(counts))
        moved = [average + noise for average, noise in zip(moved, extra, strict=True)] if extra else moved
        secret = secret_scale(evidence, self._sides(counts))
        drawn = {
            part.column: noisy(part, average, secret, grid_of(evidence), as_it_is=isinstance(evidence, QuiltEvidence))
            for part, average in zip(self.columns, moved, strict=True)
        }
        return self._weighed(drawn)

    def over_public_rows(self, query: Query) -> bool:
        """Whether the plan has what the query asks for over the rows that it asks for, each by its own name."""
        if query.plain or query.kind not in ("avg", "sum") or (query.group_by is not None) != (query.text in self.groups):
            return False
        if not self.columns:
            return False
        parts = [self.of(query, group) for group in self.group_names(query)]
        asked = [replace(query, where=part.where, group_by=None).key == part.column for part in parts]
        return all(asked) and all(part.rows is not None for part in parts)

    def _weighed(self, noisy: Mapping[str, Fraction]) -> tuple[float, ...]:
        """The answers, from the released average of each column."""
        if any(self._name(query) is None and not query.whole_table for query in self.queries):
            raise CertificateError("plan: a statistic that is no average is not covered by noise on averages.")
        asked = [(query, group) for query in self.queries for group in self.group_names(query)]
        return tuple(
            float(self.n)
            if query.whole_table
            else float(noisy[self.of(query, group).column] * query.weight(self.rows_of(query, group)))
            for query, group in asked
        )

    def _taken_back(self, clamp: Clamp, averages: Sequence[Fraction], read: Sequence[Fraction]) -> list[Fraction]:
        found = dict(zip(self.read_columns, read, strict=True))
        hidden = [statistic(one, found) for one in clamp.reads]
        return clamped(clamp, averages, hidden, self._common_bits())

    def _sides(self, counts: Sequence[int]) -> tuple[list[int], list[int]]:
        """The counts of the categories inside and outside of the secret's set, each in the order of the assumption."""
        pairs = list(zip(self.categories, counts, strict=True))
        return [count for one, count in pairs if one.member], [count for one, count in pairs if not one.member]

    def _randomised_tally(self, tally: Tally, query: Query, statistic: Fraction) -> float:
        if tally.histogram or tally.noise == "kernel":
            raise UsageError("statistic: a histogram or a kernel needs the table's counts; use Session.release.")
        require_certified(self)
        return tally.answer(query, self.n, tally.noisy_total(tally.steps_of(query, self.n, statistic)))

    def tallied(self, counts: Sequence[int], categories: Sequence[int]) -> tuple[tuple[float, ...], ...]:
        """The answers to each query (of a histogram: one for each cell), from the counts of the tally's cells.

        `categories` are the counts of the sensitive column's categories: secret, and looked at by a kernel alone.
        """
        require_certified(self)
        if self.tally is None or len(counts) != len(self.tally.cells) or len(categories) != len(self.tally.categories):
            raise CertificateError("plan: needs the counts of its tally's cells and categories.")
        released = self.tally.released(counts, categories, self.certificate)
        return tuple(
            (self.n,) if query.whole_table else tuple(self.tally.answer(query, self.n, steps) for steps in released)
            for query in self.queries
        )

    def verify(self) -> None:
        """Recompute the promise; `CertificateError` unless it holds and covers what the plan draws."""
        require_certified(self)

    def spread_of(self, query: Query, group: str | None = None) -> Reach:
        """The law of an answer around the table's own value."""
        return plan_spread(self, query, group)

    def draw(self, secret: str | None = None) -> Figure:
        """A picture of the network: what is near the secret, what may show, what is remote. Needs the extra `plots`."""
        from attrpriv.methods.markov_quilt.picture import draw_plan

        evidence = self.certificate.evidence
        if not isinstance(evidence, QuiltEvidence):
            raise UsageError(f"draw: is for plans on a parameter network. Got {self.mechanism}.")
        return draw_plan(evidence, self.epsilon, secret)

    def _common_bits(self) -> int:
        if isinstance(self.certificate.evidence, GroupVectorEvidence | GroupVectorTransportEvidence):
            return self.certificate.evidence.bits()
        own = tuple(part.independent for part in self.columns)
        return common_bits(Design(own, self.factor)) if self.clamp is None else clamp_bits(self.clamp, own, self.factor)

    def entries(self, chosen: bool) -> list[dict[str, Any]]:
        """One JSON-able entry a query: what `attrpriv plan --json` prints."""
        return [self._entry(query, chosen) for query in self.queries]

    def _entry(self, query: Query, chosen: bool) -> dict[str, Any]:
        parameters = {} if not self.columns or self._name(query) is None else dict(self.of(query).parameters)
        if query.text in self.groups:
            parameters = {"groups": {one.name: self._group_parameters(query, one.name) for one in self.groups[query.text]}}
        if self.tally is not None:
            parameters = dict(self.tally.parameters)
        if self.view is not None:
            parameters = {"keep": {cell.name: cell.keep for cell in self.view.cells}}
        return {
            "schema_version": self.schema_version,
            "query": query.text,
            "mechanism": self.mechanism,
            "chosen": chosen,
            "n": self.n,
            "policy_digest": self.policy_digest,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "noise": self.noise_of(query).to_json(),
            "parameters": parameters,
            "error": self.error_of(query).to_json(),
            "guarantee": self.guarantee.to_json(),
            "certificate": self.certificate.to_json(),
            "model_error": [row.to_json() for row in self.model_error],
            "notes": [*self.remarks, *self.warnings],
            "budget": {"spend": self.spend, "left": self.left},
        }

    def _group_parameters(self, query: Query, group: str) -> dict[str, Any]:
        part = self.of(query, group)
        return {"where": part.where, "rows": part.rows, "scale": self.noise_of(query, group).scale, **part.parameters}

    def _repr_html_(self) -> str:
        from attrpriv.notebook.html import plan_html

        return plan_html(self)

    def __str__(self) -> str:
        lines = [f"{self.mechanism}: epsilon {self.epsilon:g}, delta {self.delta:g}, n = {self.n}"]
        for query in self.queries:
            noise, error = self.noise_of(query), self.error_of(query)
            expected = "known once the view is read" if error.rmse is None else f"{error.rmse:.6g} (rmse)"
            lines.append(f"{query.text}: {noise.kind} noise {noise.scale:.6g}, expected error {expected}")
        lines += [str(self.guarantee), str(self.certificate), *(f"note: {note}" for note in self.remarks)]
        return "\n".join([*lines, *(f"warning: {line}" for line in self.warnings)])


__all__ = ["ColumnPlan", "Plan"]
