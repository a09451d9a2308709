"""Which statistics give away which properties of a table: the leakage map, from public records or from a stated law.

    map = leaks("census.parquet", rows=5_000)
    print(map)

Each number is how often somebody who sees one exact statistic of a table guesses right which of two values a property of that
table has. The two values are `distance` of a row's standard deviation apart (or as far as a policy says); 50% is a coin.

    d = |r| t sqrt(n) / sqrt(1 - r^2),      right = Phi(d / 2)

| symbol | meaning |
|---|---|
| r | correlation of what a row adds to the statistic with what it adds to the property |
| t | the distance of the two values, in standard deviations of what a row adds to the property |
| n | the number of rows |

Given the property, an average is normal for many rows, and moves with it by its regression. That is exact for normal rows; for
others it is about right near their own mean (`audit_release` looks closer). What an assumption about categories says of a share
is in `leaks_by_category`.

What must never change: no row of a private table is read.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from attrpriv.assumptions.counts import Counts
from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.groups import Groups
from attrpriv.audit.leaks_by_category import Told, TwoValues, told_by_counts, told_by_groups
from attrpriv.audit.model import frame_of
from attrpriv.audit.tables import Floats
from attrpriv.audit.views import require_other_records
from attrpriv.errors import UsageError
from attrpriv.formatting import number, percent
from attrpriv.frozen import Finite, FrozenModel
from attrpriv.numerics.rounding import SOLVED_DOWN
from attrpriv.pictures.marks import Axis, Cell, Picture
from attrpriv.policy import Policy
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query, quoted

Share = Annotated[Finite, Field(ge=0, le=1)]
DISTANCE = 0.1
MOST_VALUES = 4
_FEW_VALUES = 20
# So many have room in a heat map: statistics across, properties down.
_ACROSS, _DOWN = 6, 12
_SAME = SOLVED_DOWN


class Leak(FrozenModel):
    """One statistic and one property."""

    statistic: str
    property: str
    apart: Finite = Field(description="the distance of the two values, in the property's own unit")
    right: Share
    same: bool = Field(default=False, description="whether the statistic is the property, or surely follows from it")


class LeakageMap(FrozenModel):
    """What `leaks` found. `print` it for the largest, `to_frame()` for all, `picture` for a heat map."""

    rows: int = Field(ge=2)
    distance: Finite
    source: str
    leaks: tuple[Leak, ...] = Field(min_length=1)
    flags: tuple[str, ...] = Field(default=(), description="columns that are functions of others")

    @property
    def meaning(self) -> str:
        """What the numbers say, in one sentence."""
        return (
            f"How often somebody who sees the exact statistic of a table of {self.rows:,} rows guesses right between two "
            f"values of its property that are so far apart ({self.distance:g} of a row's standard deviation, unless the policy "
            "says how far); 50% is a coin."
        )

    @property
    def properties(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.property for one in self.leaks))

    @property
    def statistics(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.statistic for one in self.leaks))

    def of(self, statistic: str, hidden: str) -> Leak:
        return next(one for one in self.leaks if (one.statistic, one.property) == (statistic, hidden))

    @property
    def largest(self) -> tuple[Leak, ...]:
        """All but those of a property itself, the largest first."""
        return tuple(sorted((one for one in self.leaks if not one.same), key=lambda one: -one.right))

    @property
    def picture(self) -> Picture:
        """A heat map: statistics across, properties down; where there are many, those of the largest leaks."""
        across = _first(self.statistics, [one.statistic for one in self.largest], _ACROSS)
        down = _first(self.properties, [one.property for one in self.largest], _DOWN)
        cells = [
            Cell(
                across.index(one.statistic),
                down.index(one.property),
                2 * one.right - 1,
                "itself" if one.same else _in_short(one.right),
            )
            for one in self.leaks
            if one.statistic in across and one.property in down
        ]
        worst = "; ".join(f"{one.statistic} reveals {one.property}: {percent(one.right)}" for one in self.largest[:3])
        left = len(self.leaks) - len(cells)
        more = f" The first {len(cells)} of {len(self.leaks):,}; to_frame() and --json have all." if left else ""
        return Picture(
            "Which statistics give away which properties",
            f"{self.meaning} The largest: {worst or 'none'}.{more}",
            Axis(f"statistic that is seen{_of_all(across, self.statistics)}", names=across),
            Axis("property", names=down),
            tuple(cells),
        )

    def to_frame(self, kind: str = "pandas") -> Any:
        """A row for each statistic and property, as a pandas, polars or arrow table."""
        from attrpriv.notebook.frames import listed_frame

        return listed_frame([one.to_json() for one in self.leaks], kind)

    def plot(self, ax: Any = None) -> Any:
        """The heat map by matplotlib; gives back the axes. Needs the extra `plots`."""
        from attrpriv.pictures.figures import draw

        return draw(self.picture, ax)

    def _repr_html_(self) -> str:
        from attrpriv.pictures.svg import notebook_svg

        return notebook_svg(self.picture, "leaks")

    def __str__(self) -> str:
        lines = [
            f"{percent(one.right)}  {one.statistic} reveals {one.property} ({number(one.apart, 3)} apart)"
            for one in self.largest[:12]
        ]
        return "\n".join([self.meaning, *lines, *self.flags])


def _first(names: tuple[str, ...], ranked: Sequence[str], most: int) -> tuple[str, ...]:
    """The first of those that are ranked, in the order of all."""
    kept = set(list(dict.fromkeys((*ranked, *names)))[:most])
    return tuple(name for name in names if name in kept)


def _in_short(right: float) -> str:
    """For a field of a heat map; nothing is rounded to certainty."""
    return ">99%" if 0.995 <= right < 1 else f"{right:.0%}"


def _of_all(shown: tuple[str, ...], names: tuple[str, ...]) -> str:
    return "" if len(shown) == len(names) else f" ({len(shown)} of {len(names)})"


def leaks(
    records: object = None,
    policy: Policy | None = None,
    *,
    rows: int | None = None,
    distance: float = DISTANCE,
    columns: Sequence[str] | None = None,
) -> LeakageMap:
    """The leakage map of public records, or of the law that a policy assumes.

    records   public rows: a file or a table. Left out: the policy's gaussian, groups or counts assumption
    policy    its secrets are the properties, with the distances that it states; left out: every column is one
    rows      of the table that is to be protected; left out: the policy's, or as many as there are records
    distance  of two values of a property, in standard deviations of a row, where the policy states none
    columns   those to look at; left out: all

    >>> import pandas as pd
    >>> age = [20, 30, 40, 50] * 50
    >>> found = leaks(pd.DataFrame({"age": age, "hours": [x + y for x, y in zip(age, [0, 9, 1, 3] * 50)]}), rows=400)
    >>> found.of("avg(hours)", "mean(age)").right > 0.95
    True
    """
    if not 0 < distance <= 10:
        raise UsageError(f"distance: must be above 0, in standard deviations of a row, such as 0.1. Got {distance!r}.")
    if records is None and policy is None:
        raise UsageError("records, policy: one of them is needed. Give public records, or a policy with an assumption.")
    if records is None and policy is not None:
        return _of_law(policy, rows, distance)
    if policy is not None:
        require_other_records(records, [policy])
    frame = frame_of(records)
    scores = {**_numbers(frame, columns), **_shares(frame, columns)}
    if len(scores) < 2:
        raise UsageError("records: must have two columns of numbers or of few values. Got fewer.")
    size = rows or (None if policy is None else policy.rows) or len(frame)
    matrix = np.corrcoef(np.array([values for _, _, values in scores.values()]))
    sds = {name: float(values.std()) for name, (_, _, values) in scores.items()}
    origins = {name: column for name, (column, _, _) in scores.items()}
    stated = _stated(policy, scores)
    return LeakageMap(
        rows=size,
        distance=distance,
        source=f"{len(frame):,} public records",
        leaks=_leaks(scores, origins, matrix, sds, size, distance, stated),
        flags=_functions(frame, columns),
    )


def _leaks(
    scores: Mapping[str, tuple[str, str, Any]],
    origins: Mapping[str, str],
    matrix: Floats,
    sds: Mapping[str, float],
    n: int,
    distance: float,
    stated: Mapping[str, float],
) -> tuple[Leak, ...]:
    names = list(scores)
    found = []
    for j, hidden in enumerate(names):
        if stated and hidden not in stated:
            continue
        apart = stated.get(hidden, distance * sds[hidden])
        for k, seen in enumerate(names):
            rho = float(matrix[k, j])
            same = abs(rho) >= _SAME or origins[seen] == origins[hidden]
            right = 1.0 if abs(rho) >= _SAME else right_guesses(rho, apart / sds[hidden], n)
            found.append(Leak(statistic=scores[seen][1], property=hidden, apart=apart, right=right, same=same))
    return tuple(found)


def right_guesses(rho: float, distance: float, n: int) -> float:
    """How often a guess is right from a statistic with this correlation, for values so many sds of a row apart.

    >>> round(right_guesses(0.3, 1_000 / 30_000, 10_000), 3)
    0.7
    """
    from scipy.special import ndtr

    return float(ndtr(abs(rho) * distance * math.sqrt(n) / math.sqrt(1 - rho * rho) / 2))


# ------------------------------------------------------------------------------------------------------ what rows add


def _numbers(frame: Any, columns: Sequence[str] | None) -> dict[str, tuple[str, str, Floats]]:
    """Means of columns of numbers, by name: the column, the statistic, and what each row adds. Missing entries are left as
    the column's mean."""
    found = {}
    for column in _kept(frame, columns):
        if frame[column].dtype.kind not in "iuf" or frame[column].nunique() < 2:
            continue
        values = frame[column].to_numpy(np.float64, na_value=np.nan)
        known = np.where(np.isfinite(values), values, np.nanmean(np.where(np.isfinite(values), values, np.nan)))
        found[f"mean({quoted(column)})"] = (column, f"avg({quoted(column)})", known)
    return found


def _shares(frame: Any, columns: Sequence[str] | None) -> dict[str, tuple[str, str, Floats]]:
    """Shares of the most frequent values of columns of few values; of two, one says it all."""
    found = {}
    for column in _kept(frame, columns):
        if frame[column].dtype.kind in "iufmM" or not 2 <= frame[column].nunique() <= _FEW_VALUES:
            continue
        counts = frame[column].value_counts()
        for value in list(counts.index)[: 1 if len(counts) == 2 else MOST_VALUES]:
            literal = str(value).replace("'", "''")
            text = f"share({quoted(column)} = '{literal}')"
            found[text] = (column, text, (frame[column] == value).to_numpy(np.float64))
    return found


def _kept(frame: Any, columns: Sequence[str] | None) -> list[str]:
    for column in columns or ():
        if column not in frame.columns:
            raise UsageError(f"columns: must be columns of the records. Got {column}.")
    return [str(column) for column in frame.columns if columns is None or column in columns]


def _functions(frame: Any, columns: Sequence[str] | None) -> tuple[str, ...]:
    """Columns that are known once another one is: whoever hides one must hide the other."""
    kept = [c for c in _kept(frame, columns) if 2 <= frame[c].nunique() <= len(frame) / 2]
    return tuple(
        f"{second} is a function of {first} in these records: who knows {first} knows it."
        for first in kept
        for second in kept
        if first != second and int(frame.groupby(first, observed=True)[second].nunique(dropna=False).max()) == 1
    )


def _stated(policy: Policy | None, scores: Mapping[str, Any]) -> dict[str, float]:
    """The secrets of a policy that are among the properties, each with the largest distance that must look alike."""
    if policy is None:
        return {}
    return {secret.text: secret.gap for secret in policy.protect if secret.text in scores and math.isfinite(secret.gap)}


# ----------------------------------------------------------------------------------------------------- from an assumption


def _of_law(policy: Policy, rows: int | None, distance: float) -> LeakageMap:
    n = rows or policy.rows
    if n is None:
        raise UsageError("rows: must be given, as in --rows 10000: the policy does not say how many rows the table has.")
    problem = policy.problem((Query("count"),), n, {})
    if problem.assumed(Gaussian):
        found = _of_moments(problem.assumed(Gaussian)[0], policy, n, distance)
    elif problem.assumed(Groups):
        found = _of_categories([partial(told_by_groups, law, n=n) for law in problem.assumed(Groups)], policy, n)
    elif problem.assumed(Counts):
        laws = [partial(told_by_counts, law, n=n, bins=policy.bins) for law in problem.assumed(Counts)]
        found = _of_categories(laws, policy, n)
    else:
        raise UsageError("policy: must assume gaussian, groups or counts, or give public records with --public.")
    return LeakageMap(rows=n, distance=distance, source="the stated assumption", leaks=found)


def _of_moments(law: Gaussian, policy: Policy, n: int, distance: float) -> tuple[Leak, ...]:
    columns = [c for c in law.columns if law.complete or law.near(c) is not None]
    scores = {f"mean({quoted(c)})": (c, f"avg({quoted(c)})", None) for c in columns}
    matrix = np.array(law.correlation_matrix(columns))
    sds = {f"mean({quoted(c)})": law.sd_of(c) for c in columns}
    origins = {name: column for name, (column, _, _) in scores.items()}
    return _leaks(scores, origins, matrix, sds, n, distance, _stated(policy, scores))


def _of_categories(laws: Sequence[Callable[[Secret], Iterable[Told]]], policy: Policy, n: int) -> tuple[Leak, ...]:
    """What each law says of a secret; of several laws, the one that tells most."""
    found: dict[tuple[str, str], Leak] = {}
    counted = [one for one in policy.protect if one.composition is not None and one.composition.condition is not None]
    if not counted:
        raise UsageError("policy: must protect a share or a count of some categories, or give public records with --public.")
    for secret, law in itertools.product(counted, laws):
        two = TwoValues.of(secret, n)[0]
        unit = 1 if secret.composition is not None and secret.composition.kind == "count" else n
        for one in law(secret):
            key = (one.statistic, secret.text)
            if key not in found or one.right > found[key].right:
                apart = (two.second - two.first) / unit
                found[key] = Leak(statistic=one.statistic, property=secret.text, apart=apart, right=one.right)
    return tuple(found.values())
