"""A plan: which mechanism, how much noise, what is promised and what error to expect. Still no data.

What must never change: a plan is a function of the problem; `randomise` is the only place where a value of the table meets
noise, and it verifies the certificate first. A sum is n times its column's released average, so asking for both tells nothing
more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from attrpriv.errors import CertificateError, UsageError
from attrpriv.framework.model import Finite, FrozenModel
from attrpriv.guarantee import (
    Certificate,
    Clamp,
    GroupTransportEvidence,
    GroupVectorEvidence,
    GroupVectorTransportEvidence,
    Guarantee,
    HierarchyEvidence,
    QuantileClipEvidence,
    QuiltEvidence,
    Read,
    SequenceEvidence,
    TransportEvidence,
    WeightsEvidence,
)
from attrpriv.mechanisms.accuracy import Error, ModelError, Noise, Reach, Spread, fragile
from attrpriv.mechanisms.clamp import ClampSpread, clamp_bits, clamped, statistic
from attrpriv.mechanisms.column_plan import ColumnPlan, clipped, exact, noisy
from attrpriv.mechanisms.equalising import equalising_noise, grid_of, secret_scale
from attrpriv.mechanisms.group_moves import Expected, group_spreads, taken_back
from attrpriv.mechanisms.moving import clamp_spreads
from attrpriv.mechanisms.noise_design import Design, common_bits
from attrpriv.mechanisms.plan_check import require_certified
from attrpriv.mechanisms.quantile_draw import clip_spread, quantile_clipped
from attrpriv.mechanisms.sequence_draw import moved_on, sequence_spreads
from attrpriv.mechanisms.tally import Tally, TallyCategory
from attrpriv.mechanisms.view import ViewPlan
from attrpriv.mechanisms.weighted import weighted_averages
from attrpriv.noise import correlated_noise
from attrpriv.queries.query import Query

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Subset(FrozenModel):
    """The rows that averages are over, where these are not all, and how many they are: public."""

    where: str
    rows: int


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
    subset: Subset | None = Field(default=None, description="the rows that averages are over, instead of all")
    tally: Tally | None = Field(default=None, description="what is counted, and its whole-number noise, instead of columns")
    errors: tuple[Error, ...] = Field(default=(), description="of each query, where they do not follow from the columns")
    model_error: tuple[ModelError, ...] = ()
    notes: tuple[str, ...] = ()
    spend: Finite = Field(default=1.0, description="the share of what was left that this release uses")

    @property
    def left(self) -> float:
        """The share of the table's budget that is left afterwards."""
        return self.certificate.left(self.epsilon, self.delta)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What an approver must not miss: how the promise stands where the assumption's numbers are off."""
        line = fragile(self.epsilon, self.model_error)
        told = tuple(note for note in self.notes if note.startswith("fragile:"))
        return told if line is None or line in told else (line, *told)

    @property
    def remarks(self) -> tuple[str, ...]:
        """The notes that are no warnings."""
        return tuple(note for note in self.notes if note not in self.warnings)

    def of(self, query: Query) -> ColumnPlan:
        """The plan of the column a query reads."""
        return next(part for part in self.columns if part.column == query.key)

    def noise_of(self, query: Query) -> Noise:
        if self.tally is not None and not query.whole_table:
            unit = self.tally.unit_of(query, self.n)
            return Noise(kind=self.tally.noise, scale=self.tally.scale * unit, individuals=self.tally.individuals * unit)
        if query.key is None or self.view is not None:
            return Noise(kind="none")
        noise = self.of(query).noise
        weight = query.weight(self.n)
        return Noise(kind=noise.kind, scale=noise.scale * weight, individuals=noise.individuals * weight)

    def error_of(self, query: Query) -> Error:
        if self.errors:
            return self.errors[self.queries.index(query)]
        if query.key is None:
            return Error(rmse=0.0, mean_absolute=0.0, alpha95=0.0, worst=0.0)
        return self.of(query).error.scaled(query.weight(self.n))

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
        if query.key is None:
            return self.answers([])[0]
        if self.reads:
            raise UsageError(
                f"statistic: a transported answer needs the average of {self.reads[0].column} too; use Session.release."
            )
        if self.weights is not None:
            raise UsageError("statistic: calibrated weights need sums over all rows of all columns; use Session.release.")
        average = exact(statistic) / query.weight(self.n)
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
        evidence = self.certificate.evidence
        return evidence.clamp if isinstance(evidence, HierarchyEvidence | TransportEvidence) else None

    @property
    def reads(self) -> tuple[Read, ...]:
        """The sensitive statistics that are read besides the columns."""
        if isinstance(self.certificate.evidence, QuantileClipEvidence | SequenceEvidence):
            return self.certificate.evidence.reads
        return () if self.clamp is None else self.clamp.reads

    @property
    def read_columns(self) -> dict[str, float | None]:
        """The columns whose averages they are made of, each with the value that stands for its missing entries."""
        return {column: read.fill.get(column) for read in self.reads for column in read.coefficients}

    def answers(self, averages: Sequence[Fraction], counts: Sequence[int] = ()) -> tuple[float, ...]:
        """One noisy answer a query, from the averages of `columns` and the counts of `categories`, in order.

        The averages of `read_columns` come last.
        """
        require_certified(self)
        if self.weights is not None:
            raise CertificateError("plan: averages alone are not what its certificate counted on. Nothing was released.")
        if len(counts) != len(self.categories):
            raise CertificateError(f"plan: needs the counts of {len(self.categories)} categories. Got {len(counts)}.")
        wanted = len(self.columns) + len(self.read_columns)
        if len(averages) != wanted:
            raise CertificateError(f"plan: needs {wanted} averages. Got {len(averages)}.")
        if self.view is not None or not all(query.plain or self._over_subset(query) for query in self.queries):
            raise CertificateError("plan: a filter or a group is not covered by noise on averages.")
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

    def _over_subset(self, query: Query) -> bool:
        """Whether the query is over the rows that the plan is for."""
        return self.subset is not None and (query.kind, query.where, query.group_by) == ("avg", self.subset.where, None)

    def _weighed(self, noisy: Mapping[str, Fraction]) -> tuple[float, ...]:
        """The answers, from the released average of each column."""
        return tuple(
            float(self.n) if query.key is None else float(noisy[query.key] * query.weight(self.n)) for query in self.queries
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

    def spread_of(self, query: Query) -> Reach:
        """The law of an answer around the table's own value."""
        if self.tally is not None:
            return Spread("none", 0.0) if query.whole_table else self.tally.spread(query, self.n)
        if query.key is not None and self.view is None and self.of(query).centre is not None:
            part, weight = self.of(query), query.weight(self.n)
            return Spread("gaussian", weight * float(part.parameters["sd"]), bias=weight * float(part.parameters["bias"]))
        noise = self.noise_of(query)
        if self.clamp is not None and query.key is not None:
            return self._moved_spread(self.clamp, query, noise.scale)
        evidence = self.certificate.evidence
        if isinstance(evidence, GroupTransportEvidence | GroupVectorTransportEvidence) and query.key is not None:
            part = self.of(query)
            spreads = group_spreads(evidence, Expected.of(part.parameters["expected"]))
            return spreads[self.columns.index(part)].scaled(query.weight(self.n))
        if isinstance(evidence, SequenceEvidence) and query.key is not None:
            part = self.of(query)
            moved = sequence_spreads(evidence, part.parameters["wander"], part.parameters["bias"])
            return moved[self.columns.index(part)].scaled(query.weight(self.n))
        if isinstance(self.certificate.evidence, QuantileClipEvidence) and query.key is not None:
            return clip_spread(self.certificate.evidence).scaled(query.weight(self.n))
        return Spread(noise.kind, noise.scale, noise.individuals)

    def _moved_spread(self, clamp: Clamp, query: Query, scale: float) -> Reach:
        part, weight = self.of(query), query.weight(self.n)
        wander = part.parameters["wander"]
        if isinstance(wander, float):
            return ClampSpread(scale, weight * wander, weight * float(part.parameters["room"]))
        scales = [other.noise.scale for other in self.columns]
        spreads = clamp_spreads(clamp, wander, part.parameters["bias"], scales)
        return spreads[self.columns.index(part)].scaled(weight)

    def draw(self, secret: str | None = None) -> Figure:
        """A picture of the network: what is near the secret, what may show, what is remote. Needs the extra `plots`."""
        from attrpriv.mechanisms.network_picture import draw_plan

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
        parameters = {} if not self.columns or query.key is None else dict(self.of(query).parameters)
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

    def _repr_html_(self) -> str:
        from attrpriv.notebook import plan_html

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
