"""Whether a problem leaves anything to hide: of each secret, two values that must look alike and that some table of n rows has.

| secret | the values that a table can have |
|---|---|
| count, share, distribution | whole rows in each cell |
| mean, sum | multiples of the spacing of its columns over n, where that is known; between the bounds of the columns |
| of the population | any number |

A promise about no such pair is kept by publishing everything. What must never change: what hides nothing is refused here,
whatever the mechanism. What hides little is a matter of degree, and of the assumption (`methods.choice.weak`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from attrpriv.errors import QueryError
from attrpriv.numerics.laws.intervals import Interval
from attrpriv.problem.counted import count_pairs
from attrpriv.problem.secret import Secret
from attrpriv.queries.linear import Linear

if TYPE_CHECKING:
    from attrpriv.problem.problem import Problem

# From here on it is no worse to publish the secret itself, in one of two tables.
MOST_DELTA = 0.5


def nothing_hidden(problem: Problem) -> str | None:
    """Why the promise is empty, with what to change; None where it is not."""
    if problem.delta >= MOST_DELTA:
        return (
            f"delta: must be below {MOST_DELTA:g}: publishing the secret itself in every other table would keep the promise. "
            f"Got {problem.delta:g}. Take one far below 1/n."
        )
    reasons = (_of_secret(problem, secret) for secret in problem.secrets)
    return next((f"protect: {reason}" for reason in reasons if reason is not None), None)


def _of_secret(problem: Problem, secret: Secret) -> str | None:
    if secret.parameter is not None or secret.entries is not None:
        return None
    if secret.composition is None:
        return _of_forms(problem, secret)
    if secret.composition.kind == "distribution":
        return _of_cells(problem, secret)
    try:
        count_pairs(secret, problem.n)
    except QueryError as error:
        return str(error)
    return None


def _of_cells(problem: Problem, secret: Secret) -> str | None:
    try:
        cells = secret.cells(problem.n, problem.bins)
    except QueryError:  # ranges that no table has, or cells that are none: a view says so
        return None
    if any(cell.low < cell.high for cell in cells):
        return None
    return f"{secret.text}: its ranges hold a single composition of {problem.n} rows; there is nothing to hide. Widen them."


def _of_forms(problem: Problem, secret: Secret) -> str | None:
    forms = [_Values(problem, form) for form in secret.forms]
    if secret.cases is not None:
        return _of_cases(problem, secret, forms[0])
    spacings = [form.spacing for form in forms if form.spacing is not None]
    if secret.within is not None and len(spacings) == len(forms) and _exact(secret.within) < min(spacings):
        least = f"{float(min(spacings)):g}"
        return (
            f"within: no two values of {secret.text} are this close; by the spacing of its columns they are {least} apart in a "
            f"table of {problem.n} rows. Got {secret.within:g}; take at least {least}."
        )
    ranges = secret.between if isinstance(secret.between, Mapping) else {form.text: secret.between for form in secret.forms}
    held = [one.most(*ends) for one in forms if (ends := ranges[one.form.text]) is not None]
    if held and (min(held) < 1 or max(held) < 2):
        what = "no value" if min(held) < 1 else "a single value"
        return (
            f"{secret.text}: between holds {what} that a table of {problem.n} rows can have, by the spacing and the bounds of "
            "its columns; there is nothing to hide. Widen it."
        )
    return None


def _of_cases(problem: Problem, secret: Secret, values: _Values) -> str | None:
    for case in secret.case_sets:
        if not any(values.any_in(part) for part in case.parts):
            return f'{secret.text}: "{case}" holds no value that a table of {problem.n} rows can have. Correct cases.'
    return None


class _Values:
    """Which values a mean or a sum can have, as far as the spacing and the bounds of its columns tell."""

    def __init__(self, problem: Problem, form: Linear) -> None:
        self.problem, self.form = problem, form
        unit = Fraction(form.weight(problem.n), problem.n)
        known = [problem.spacing(column)[0] for column, _ in form.coefficients]
        self.spacing = None if None in known else unit * self._common(known)  # of which every value is a multiple
        self.low, self.high = self._ends()

    def most(self, low: float, high: float) -> float:
        """How many values a range can hold, from above; infinite where that is not known."""
        return self._held(Interval(low, high, low_closed=True, high_closed=True))

    def any_in(self, part: Interval) -> bool:
        return self._held(part) >= 1

    def _held(self, part: Interval) -> float:
        low, high = max(part.low, self.low), min(part.high, self.high)
        if not (low < high or (low == high and low in part)):
            return 0.0
        if low == high:
            return 1.0
        if self.spacing is None or not math.isfinite(high - low):
            return math.inf
        ends = _exact(low) / self.spacing, _exact(high) / self.spacing
        first, last = math.ceil(ends[0]), math.floor(ends[1])
        first += first == ends[0] and low not in part
        last -= last == ends[1] and high not in part
        return float(max(0, last - first + 1))

    def _common(self, spacings: list[float | None]) -> Fraction:
        """The largest step of which every row's combination is a multiple, once missing entries have their value."""
        steps = []
        for (column, weight), spacing in zip(self.form.coefficients, spacings, strict=True):
            numbers = [spacing or 0.0, abs(self.problem.missing.get(column, 0.0))]
            steps += [abs(_exact(weight)) * _exact(number) for number in numbers if number]
        bottom = math.lcm(*(step.denominator for step in steps))
        return Fraction(math.gcd(*(int(step * bottom) for step in steps)), bottom)

    def _ends(self) -> tuple[float, float]:
        low, high, rows = 0.0, 0.0, self.form.weight(self.problem.n)
        for column, weight in self.form.coefficients:
            ends = self.problem.bounds.get(column, (-math.inf, math.inf))
            if self.problem.types.get(column) == "boolean":
                ends = max(ends[0], 0.0), min(ends[1], 1.0)
            fill = self.problem.missing.get(column)
            ends = ends if fill is None else (min(ends[0], fill), max(ends[1], fill))
            moved = sorted(rows * weight * end for end in ends)
            low, high = low + moved[0], high + moved[1]
        return low, high


def _exact(number: float) -> Fraction:
    """The decimal fraction that it is written as."""
    return Fraction(repr(number))
