"""The Gaussian assumption: rows are independent draws from one multivariate normal law, known up to a tolerance.

The class Theta is a box around the stated moments:

| tolerance | what may vary |
|---|---|
| mean | each mean, by this many standard deviations |
| sd | each standard deviation, by this share of itself |
| slope | each regression slope of a query column on a sensitive column, by this share of itself |
| correlation | (instead of slope) each correlation, by this much |

With `slope`, a correlation among query columns or among sensitive columns may move as far as such a slope and the sds allow; of
a column that is both, the slope on each other sensitive column is bounded as any query column's is.

`tolerance` has no default: zero is allowed, and said. What must never change: `Gaussian` is only moments and their box; the
worst case over the box is in `worst_case`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from attrpriv.assumptions.shape import NOT_EXAMINED, ShapeFinding, Tried, summary
from attrpriv.assumptions.stated_pairs import NO_PAIRS, StatedPairs, least_eigenvalue
from attrpriv.frozen import Finite, FrozenMap, FrozenModel, NonNegative, Positive
from attrpriv.frozen.requirements import shown
from attrpriv.numerics.rounding import PSD_SLACK
from attrpriv.problem.assumption import Assumption, ExpectedEntry, NormalBelief, NormalBox, PublicRecords
from attrpriv.problem.shapes import SHIFT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from attrpriv.assumptions.fit import PublicTable
    from attrpriv.problem.secret import Secret
    from attrpriv.queries.arithmetic import Linear

_SHOWN = 50


class Shape(FrozenModel):
    """How far from normal the averages' laws may be: within a factor e^lambda, up to probability eta, both ways."""

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)
    lambda_: NonNegative = Field(alias="lambda", description="the largest log ratio of the densities")
    eta: Annotated[Finite, Field(ge=0, lt=1)] = Field(description="the probability that is left out of that")


def _sha256(text: str) -> str:
    if len(text) != 64 or not set(text) <= set("0123456789abcdef"):
        raise ValueError(f"must be a SHA-256 in 64 hexadecimal digits. Got {text[:80]!r}.")
    return text


class FittedRecord(FrozenModel):
    """From which public records the moments and their tolerance were fitted, and how sure the box is to contain the truth."""

    rows: Annotated[int, Field(strict=True, ge=3)] = Field(description="number of public rows")
    digest: Annotated[str, AfterValidator(_sha256)] = Field(description="SHA-256 of the public table's columns")
    confidence: Annotated[Finite, Field(ge=0.5, lt=1)] = Field(description="probability that the box contains the truth")
    shape: tuple[ShapeFinding, ...] | None = Field(
        default=None, exclude_if=lambda found: found is None, description="how the public rows lie; left out: not examined"
    )
    tried: tuple[Tried, ...] | None = Field(
        default=None, exclude_if=lambda found: found is None, description="plans that were tried on the public rows"
    )

    @property
    def risk(self) -> float:
        """The probability that the box misses the truth; exact in floats."""
        return 1 - self.confidence

    def __str__(self) -> str:
        return f"fitted on {self.rows} public rows (digest {self.digest[:16]}), confidence {self.confidence!r}"


class Tolerance(FrozenModel):
    """How far the truth may be from the stated moments.

    Examples:
        >>> Tolerance(mean=0.01, sd=0.02, slope=0.05).slope
        0.05
    """

    mean: NonNegative = Field(default=0.0, description="of each mean, in standard deviations")
    sd: Annotated[Finite, Field(ge=0, lt=1)] = Field(default=0.0, description="of each standard deviation, relative")
    slope: NonNegative | None = Field(default=None, description="of each regression slope, relative")
    correlation: NonNegative | None = Field(default=None, description="of each correlation, absolute; instead of slope")

    shape: Shape | None = Field(default=None, description="how far from normal laws may be; without it: exactly normal")

    @model_validator(mode="after")
    def _one_of_slope_and_correlation(self) -> Tolerance:
        if (self.slope is None) == (self.correlation is None):
            got = "neither" if self.slope is None else "both"
            raise ValueError(f"must name slope or correlation, one of them (0 is allowed). Got {got}.")
        return self

    def __str__(self) -> str:
        if not (self.mean or self.sd or self.slope or self.correlation or self.shape):
            return "tolerance 0: every stated moment is taken as exact"
        shape = f"slope {self.slope:g}" if self.slope is not None else f"correlation {self.correlation:g}"
        return f"tolerance mean {self.mean:g} sd, sd {self.sd:g}, {shape}"


def _read_tolerance(value: object) -> object:
    if isinstance(value, Tolerance | Mapping):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and value == 0:
        return Tolerance(correlation=0.0)
    raise ValueError(f"must be a mapping such as {{mean: 0.01, sd: 0.02, slope: 0.05}}, or 0. Got {shown(value)}.")


def _names(key: object) -> tuple[str, str] | None:
    """The two columns that a key names; a wide table has tens of thousands of them."""
    parts = key.split("~") if isinstance(key, str) else key if isinstance(key, tuple) else ()
    first, second = parts if len(parts) == 2 else (None, None)
    if not (isinstance(first, str) and isinstance(second, str) and first and second) or "~" in first or "~" in second:
        return None
    return first.strip(), second.strip()


def _read_pairs(value: object) -> object:
    """Keys as `a~b` (policy file) or as tuples (Python), brought to `a~b`."""
    if not isinstance(value, Mapping):
        return value
    pairs: dict[object, object] = {}
    for key, number in value.items():
        names = _names(key)
        if names is None:
            raise ValueError(f"keys must name two columns, as in weight~income. Got {key!r}.")
        first, second = names
        pair = f"{first}~{second}"
        if pair in pairs or f"{second}~{first}" in pairs:
            raise ValueError(f"must name each pair once. Got {pair} twice.")
        pairs[pair] = number
    return pairs


Pairs = Annotated[FrozenMap[Finite], BeforeValidator(_read_pairs), AfterValidator(StatedPairs)]


class Gaussian(Assumption):
    """Rows are i.i.d. multivariate normal.

    >>> Gaussian(sd={"weight": 25, "income": 30_000}, correlation={("weight", "income"): 0.3}, tolerance=0).slope(
    ...     "weight", "income")
    0.00025
    """

    shape: ClassVar[str] = SHIFT
    normal_rows: ClassVar[bool] = True
    kind: Literal["gaussian"] = "gaussian"
    mean: FrozenMap[Finite] = Field(default_factory=dict, description="means; a query column's is optional")
    sd: FrozenMap[Positive] | None = Field(default=None, description="standard deviation of each column")
    correlation: Pairs | None = Field(default=None, description="correlation of each pair of columns, as a~b")
    covariance: Pairs | None = Field(default=None, description="instead of sd and correlation; variances as a~a")
    tolerance: Annotated[Tolerance, BeforeValidator(_read_tolerance, json_schema_input_type=Tolerance | Literal[0])] = Field(
        description="how far the truth may be from these moments; a mapping, or 0"
    )
    fitted: FittedRecord | None = Field(default=None, description="written by `attrpriv fit`: the public records behind it")

    @classmethod
    def fit(
        cls,
        table: PublicTable,
        *,
        confidence: float,
        columns: Sequence[str] | None = None,
        sensitive: Sequence[str] | None = None,
        queries: Sequence[str] | None = None,
    ) -> Gaussian:
        """The assumption that *public* records support: `Gaussian.fit(PublicTable("public.parquet"), ...)`.

        Without `columns`: the sensitive and the query columns. Without `sensitive` or `queries`: every column may be one.
        """
        from attrpriv.assumptions.fit import fit_table

        return fit_table(table, columns=columns, sensitive=sensitive, queries=queries, confidence=confidence).gaussian

    @field_validator("correlation")
    @classmethod
    def _correlations(cls, pairs: Mapping[str, float] | None) -> Mapping[str, float] | None:
        for pair, value in (pairs or {}).items():
            if not -1 <= value <= 1:
                raise ValueError(f"{pair}: must be between -1 and 1. Got {value:g}.")
            first, _, second = pair.partition("~")
            if first == second:
                raise ValueError(f"{pair}: must name two different columns.")
        return pairs

    @model_validator(mode="after")
    def _complete(self) -> Gaussian:
        if (self.covariance is None) == (self.sd is None) or (self.covariance is not None and self.correlation is not None):
            raise ValueError("needs sd with correlation, or covariance with its variances as a~a; one of the two forms.")
        _require_columns("mean", self.mean, self.columns)
        pairs, name = (self.correlation or {}, "correlation") if self.sd is not None else (self.covariance or {}, "covariance")
        _require_columns(name, self._pairs.names, self.columns)
        parts = tuple(self._pairs.cliques(name, self.columns))
        _require_variances(name, pairs, self.columns)
        self._require_semidefinite(parts)
        return self

    def _require_semidefinite(self, parts: Sequence[tuple[str, ...]]) -> None:
        known = self._pairs.known
        found = known if self.sd is not None else lambda columns: self._correlations_of(columns, known(columns))
        smallest = least_eigenvalue(parts, found, PSD_SLACK)
        if not smallest >= -PSD_SLACK:
            raise ValueError(
                "correlations: the matrix must be positive semidefinite, so that some table can have it. "
                f"Got a smallest eigenvalue of {smallest:.4g}; make some correlation weaker."
            )

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns whose law is assumed."""
        if self.sd is not None:
            return tuple(self.sd)
        own = (pair.split("~") for pair in self.covariance or {})
        return tuple(first for first, second in own if first == second)

    def sd_of(self, column: str) -> float:
        if self.sd is not None:
            return self.sd[column]
        return float(self._pairs.of(column, column) ** 0.5)

    def sd_range(self, column: str) -> tuple[float, float]:
        """The least and the largest standard deviation in Theta."""
        sd = self.sd_of(column)
        return sd * (1 - self.tolerance.sd), sd * (1 + self.tolerance.sd)

    @property
    def _pairs(self) -> StatedPairs:
        found = self.correlation if self.sd is not None else self.covariance
        return found if isinstance(found, StatedPairs) else NO_PAIRS

    @property
    def complete(self) -> bool:
        """Whether every pair of columns is stated."""
        return self._pairs.complete(self.columns)

    def near(self, column: str) -> tuple[str, ...] | None:
        """The columns of which every pair is stated, around this one; None where it is in several such sets."""
        return self._pairs.near(column, self.columns)

    def correlation_of(self, first: str, second: str) -> float:
        """As stated; `PolicyError` where it is not."""
        if first == second:
            return 1.0
        if self.sd is not None:
            return self._pairs.of(first, second)
        return self._pairs.of(first, second) / (self.sd_of(first) * self.sd_of(second))

    def slope(self, query: str, secret: str) -> float:
        """The stated regression slope of one column on another."""
        return self.correlation_of(query, secret) * self.sd_of(query) / self.sd_of(secret)

    def correlation_matrix(self, columns: Sequence[str]) -> NDArray[np.float64]:
        """As stated; `PolicyError` where one is not."""
        return self._correlations_of(columns, self._pairs.matrix(columns))

    def _correlations_of(self, columns: Sequence[str], stated: NDArray[np.float64]) -> NDArray[np.float64]:
        import numpy as np

        if self.sd is not None:
            return stated
        sds = np.array([self.sd_of(column) for column in columns])
        same = np.array([[first == second for second in columns] for first in columns], dtype=bool)
        return np.where(same, 1.0, stated / np.outer(sds, sds))

    def sd_of_form(self, form: Mapping[str, float]) -> float:
        """The stated standard deviation of a linear combination."""
        columns = tuple(form)
        parts = [form[column] * self.sd_of(column) for column in columns]
        matrix = self.correlation_matrix(columns)
        products = [a * b * float(r) for a, row in zip(parts, matrix, strict=True) for b, r in zip(parts, row, strict=True)]
        return math.sqrt(max(0.0, math.fsum(products)))

    def belief(self, secret: Secret, n: int, bins: Mapping[str, Sequence[float]]) -> NormalBelief | None:
        """Of each mean or sum of this table."""
        if secret.composition is not None or secret.parameter is not None or secret.entries is not None:
            return None
        if not set(secret.columns) <= set(self.columns):
            return None
        return NormalBelief(tuple(self._of_form(n, form) for form in secret.forms))

    def _of_form(self, n: int, form: Linear) -> NormalBox:
        """Of a combination the standard deviation is anything up to the sum of its parts."""
        rows, weights = form.weight(n), dict(form.coefficients)
        most = rows * math.fsum(abs(weight) * self.sd_range(column)[1] for column, weight in weights.items())
        (only, *others) = weights
        least = 0.0 if others else rows * abs(weights[only]) * self.sd_range(only)[0]
        sds = least / math.sqrt(n), most / math.sqrt(n)
        if not set(weights) <= set(self.mean):
            return NormalBox(None, sds)
        centre = rows * math.fsum(weight * self.mean[column] for column, weight in weights.items())
        return NormalBox((centre - self.tolerance.mean * most, centre + self.tolerance.mean * most), sds)

    def fit_record(self) -> FittedRecord | None:
        return self.fitted

    def public_records(self) -> PublicRecords | None:
        if self.fitted is None:
            return None
        return PublicRecords(self.fitted.rows, self.columns, self.fitted.digest)

    def expected_rows(self, columns: Sequence[str], n: int) -> list[dict[str, ExpectedEntry]]:
        sds = {column: self.sd_range(column)[1] for column in columns if column in self.mean}
        return [{c: ExpectedEntry(self.mean[c], self.tolerance.mean * sd, sd) for c, sd in sds.items()}]

    def nearly(self) -> tuple[float, float]:
        shape = self.tolerance.shape
        return (0.0, 0.0) if shape is None else (shape.lambda_, shape.eta)

    def slope_tolerance(self) -> float | None:
        return self.tolerance.slope

    def surer(self, share: float) -> Gaussian | None:
        if self.tolerance.slope is None:
            return None
        tolerance = self.tolerance.model_copy(update={"slope": self.tolerance.slope * share})
        return self.model_copy(update={"tolerance": tolerance})

    def public_centres(self) -> dict[str, tuple[float, float]]:
        return {column: (self.mean[column], sd) for column, sd in (self.sd or {}).items() if column in self.mean}

    def explained(self) -> tuple[str, ...]:
        t = self.tolerance
        known = "correlation" if t.slope is None else "regression slope"
        within = _near(t.slope, " of itself") if t.slope is not None else _near(t.correlation or 0.0)  # one of them is stated
        return (
            f"Whoever believes that rows are independent and jointly normal in {', '.join(self.columns)}.",
            f"They may know every standard deviation {_near(t.sd, ' of itself')} and every mean {_near(t.mean, ' sd')}.",
            f"They may know every {known} {within}.",
        )

    def __str__(self) -> str:
        origin = f"; shape: {NOT_EXAMINED}" if self.fitted is None else f"; {self.fitted}; {summary(self.fitted.shape)}"
        names = (
            self.columns
            if len(self.columns) <= _SHOWN
            else (*self.columns[:_SHOWN], f"and {len(self.columns) - _SHOWN:,} more")
        )
        return f"gaussian rows ({', '.join(names)}); {self.tolerance}{origin}"


def _require_columns(name: str, given: Iterable[str], known: Sequence[str]) -> None:
    among = set(known)
    for column in given:
        if column not in among:
            raise ValueError(
                f"{name}: {column} is not a column with a standard deviation. Known are {', '.join(known) or 'none'}. "
                "Add it under sd, or correct its name."
            )


def _require_variances(name: str, pairs: Mapping[str, float], columns: Sequence[str]) -> None:
    for column in columns:
        if name == "covariance" and not pairs.get(f"{column}~{column}", 0.0) > 0:
            raise ValueError(f"covariance: {column}~{column} must be a positive variance.")


def _near(tolerance: float, unit: str = "") -> str:
    return f"to within {tolerance:.3g}{unit}" if tolerance else "exactly"
