"""A plan: which mechanism, how much noise, what is promised and what error to expect. Still no data.

What must never change: a plan is a function of the problem; `randomise` is the only place where a value of the table meets
noise, and it verifies the certificate first. A sum is n times its column's released average, so asking for both tells nothing
more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from pydantic import Field

from attrpriv.errors import CertificateError, UsageError
from attrpriv.framework.model import Finite, FrozenDict, FrozenMap, FrozenModel, NonNegative
from attrpriv.guarantee import Certificate, Guarantee
from attrpriv.mechanisms.view import ViewPlan
from attrpriv.noise import add_gaussian, add_laplace
from attrpriv.queries.query import Query

NoiseKind = Literal["gaussian", "laplace", "none"]


@dataclass(frozen=True)
class Spread:
    """The law of an answer around the table's own value: its kind and scale."""

    kind: NoiseKind
    scale: float

    def reach(self, level: float) -> float:
        """Half the width of the interval that holds the table's own value with this confidence."""
        if not 0 < level < 1:
            raise UsageError(f"level: must be above 0 and below 1. Got {level}.")
        return self.scale * _quantile(self.kind, level)


class Noise(FrozenModel):
    """The noise on one answer: standard deviation of a Gaussian, scale of a Laplace."""

    kind: NoiseKind
    scale: NonNegative = 0.0


class Error(FrozenModel):
    """How far an answer will be from the table's own statistic, as far as public facts tell."""

    rmse: NonNegative | None = Field(description="null: not known before the table is read")
    mean_absolute: NonNegative | None
    alpha95: NonNegative | None
    worst: NonNegative | None = Field(default=None, description="a bound that always holds; none where noise is unbounded")

    def scaled(self, factor: float) -> Error:
        return Error(**{name: None if value is None else value * factor for name, value in self.to_json().items()})


UNKNOWN_ERROR = Error(rmse=None, mean_absolute=None, alpha95=None)


class ModelError(FrozenModel):
    """The real epsilon, at the same delta, when slopes are off by this share beyond the tolerance."""

    off_by: NonNegative
    epsilon: NonNegative | None = Field(description="null: no epsilon holds")


class ColumnPlan(FrozenModel):
    """How one column is read and noised; all in the unit of its average."""

    column: str
    noise: Noise
    error: Error
    centre: Finite | None = Field(default=None, description="the public answer, where no row is read")
    fill: Finite | None = None
    clip: tuple[Finite, Finite] | None = None
    parameters: FrozenMap[Any] = Field(default_factory=dict)


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
    guarantee: Guarantee
    certificate: Certificate
    view: ViewPlan | None = Field(default=None, description="the view that answers are computed from, instead of noise")
    errors: tuple[Error, ...] = Field(default=(), description="of each query, where they do not follow from the columns")
    model_error: tuple[ModelError, ...] = ()
    notes: tuple[str, ...] = ()

    def of(self, query: Query) -> ColumnPlan:
        """The plan of the column a query reads."""
        return next(part for part in self.columns if part.column == query.column)

    def noise_of(self, query: Query) -> Noise:
        if query.column is None or self.view is not None:
            return Noise(kind="none")
        noise = self.of(query).noise
        return Noise(kind=noise.kind, scale=noise.scale * query.weight(self.n))

    def error_of(self, query: Query) -> Error:
        if self.errors:
            return self.errors[self.queries.index(query)]
        if query.column is None:
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
        if query.column is None:
            return self.answers([])[0]
        average = _exact(statistic) / query.weight(self.n)
        return self.answers([average])[0]

    def answers(self, averages: Sequence[Fraction]) -> tuple[float, ...]:
        """One noisy answer a query, from the averages of `columns` in order."""
        self._require_certified()
        if len(averages) != len(self.columns):
            raise CertificateError(f"plan: needs {len(self.columns)} averages. Got {len(averages)}.")
        if self.view is not None or not all(query.plain for query in self.queries):
            raise CertificateError("plan: a filter or a group is not covered by noise on averages.")
        noisy = {part.column: _noisy(part, average) for part, average in zip(self.columns, averages, strict=True)}
        return tuple(
            float(self.n) if query.column is None else float(noisy[query.column] * query.weight(self.n))
            for query in self.queries
        )

    def _require_certified(self) -> None:
        """The certificate must hold, and the noise drawn must be the noise it counted on."""
        self.certificate.verify()
        same = (self.epsilon, self.delta) == (self.certificate.epsilon, self.certificate.delta)
        covered = [
            part.centre is not None or self.certificate.covers(part.column, part.noise.kind, part.noise.scale)
            for part in self.columns
        ]
        if not (same and all(covered)):
            raise CertificateError("plan: must promise and draw what its certificate counted on. Nothing was released.")

    def spread_of(self, query: Query) -> Spread:
        """The law of an answer around the table's own value."""
        noise = self.noise_of(query)
        return Spread(noise.kind, noise.scale)

    def entries(self, chosen: bool) -> list[dict[str, Any]]:
        """One JSON-able entry a query: what `attrpriv plan --json` prints."""
        return [self._entry(query, chosen) for query in self.queries]

    def _entry(self, query: Query, chosen: bool) -> dict[str, Any]:
        parameters = {} if query.column is None or self.view is not None else dict(self.of(query).parameters)
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
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        lines = [f"{self.mechanism}: epsilon {self.epsilon:g}, delta {self.delta:g}, n = {self.n}"]
        for query in self.queries:
            noise, error = self.noise_of(query), self.error_of(query)
            expected = "known once the view is read" if error.rmse is None else f"{error.rmse:.6g} (rmse)"
            lines.append(f"{query.text}: {noise.kind} noise {noise.scale:.6g}, expected error {expected}")
        return "\n".join([*lines, str(self.guarantee), str(self.certificate), *(f"note: {note}" for note in self.notes)])


def _exact(statistic: float | Fraction) -> Fraction:
    if isinstance(statistic, float) and not math.isfinite(statistic):
        raise UsageError("statistic: must be finite.")
    return Fraction(statistic)


def _noisy(part: ColumnPlan, average: Fraction) -> Fraction:
    if part.centre is not None:
        return Fraction(part.centre)
    if part.clip is not None:  # the engine clips rows; this keeps rounding from taking the average out of its bounds
        average = min(max(average, Fraction(part.clip[0])), Fraction(part.clip[1]))
    if part.noise.kind == "gaussian":
        return add_gaussian(average, part.noise.scale)
    if part.noise.kind == "laplace" and part.clip is not None:
        return add_laplace(average, part.noise.scale)
    raise CertificateError(f"plan: {part.column} has no noise and is not a public number.")


def _quantile(kind: NoiseKind, level: float) -> float:
    if kind == "gaussian":
        from scipy.special import ndtri

        return float(ndtri((1 + level) / 2))
    return -math.log1p(-level) if kind == "laplace" else 0.0


def gaussian_error(scale: float) -> Error:
    """The error of Gaussian noise: alpha95 is the alpha of (alpha, beta) accuracy at beta = 0.05."""
    return Error(rmse=scale, mean_absolute=scale * math.sqrt(2 / math.pi), alpha95=scale * _quantile("gaussian", 0.95))


def laplace_error(scale: float) -> Error:
    return Error(rmse=scale * math.sqrt(2), mean_absolute=scale, alpha95=scale * _quantile("laplace", 0.95))


__all__ = ["ColumnPlan", "Error", "FrozenDict", "ModelError", "Noise", "Plan", "Spread", "gaussian_error", "laplace_error"]
