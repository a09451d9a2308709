"""Laws: how likely each value of one statistic is, given each value of the secret, as the owner writes it down.

    statistic     what is released: a count of some rows, a sum or an average of a column
    values        the values that it can have, in its own unit
    given         for each value of the secret the probability of each of these values: numbers, or intervals [low, high]
    file          instead of values and given: a CSV file with the columns secret, value, probability (or low, high)
    prior         how likely each value of the secret is, where that is known: for expected errors alone

| secret | the names under `given` |
|---|---|
| `entries(x)` | the values that an entry of x can have; the law is that of any one entry, the others not known |
| `parameter: x` | the values of a parameter of the population, by any names |
| `count(...)`, `share(...)` | each count, or share, that `between` allows |
| any with `cases` | each of the cases, as it is written |

Theta is every choice of one law from each box of intervals; several assumptions in a list are a finite Theta. What must never
change: a value that is not listed has probability 0, and a name that the secret needs and `given` has not is refused.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from attrpriv.assumptions.probabilities import Probability
from attrpriv.errors import PolicyError, QueryError, UsageError
from attrpriv.frozen import Finite, FrozenMap
from attrpriv.frozen.requirements import shown
from attrpriv.numerics.laws.stated import MOST_NUMBERS, require_box
from attrpriv.problem.assumption import Assumption
from attrpriv.problem.shapes import STATED
from attrpriv.queries.query import Query
from attrpriv.queries.sql import parse_queries

_MOST_BYTES = 64 * 2**20
_NUMBERS, _INTERVALS = ("secret", "value", "probability"), ("secret", "value", "low", "high")


def _canonical(value: object) -> object:
    """The statistic under the text that queries have too."""
    if not isinstance(value, str):
        return value
    problem = None
    try:
        asked = parse_queries(value)
        fits = len(asked) == 1 and not asked[0].whole_table and asked[0].kind in ("count", "sum", "avg") and not asked[0].of
        if fits and asked[0].group_by is None and (asked[0].column is None or asked[0].where is None):
            return asked[0].text
    except QueryError as error:
        problem = str(error)
    raise ValueError(
        problem or f"must be one count of some rows, or the sum or average of a column over all rows. Got {shown(value)}."
    )


def _named(value: object) -> object:
    """Names of the secret's values as texts: 0 and '0' are one."""
    if not isinstance(value, Mapping):
        return value
    found = {_name(key): law for key, law in value.items()}
    if len(found) != len(value):
        raise ValueError(f"must give each value of the secret once. Got {', '.join(map(str, value))}.")
    return found


def _name(key: object) -> str:
    return f"{key:g}" if isinstance(key, float) else str(key)


class Laws(Assumption):
    """The law of one statistic given each value of the secret, as it is stated.

    >>> flu = Laws(statistic="count(*) filter (where flu = 1)", values=[0, 1, 2],
    ...            given={"0": [0.5, 0.5, 0], "1": [0, 0.5, 0.5]})
    >>> first = flu.given["0"]
    >>> first[1], flu.query.kind
    ((0.5, 0.5), 'count')
    """

    shape: ClassVar[str] = STATED
    kind: Literal["laws"] = "laws"
    statistic: Annotated[str, BeforeValidator(_canonical)] = Field(
        description="what the laws are of, and what may be asked", examples=["count(*) filter (where flu = 1)", "sum(visits)"]
    )
    values: tuple[Finite, ...] = Field(default=(), description="the values that the statistic can have, in increasing order")
    given: Annotated[FrozenMap[tuple[Probability, ...]], BeforeValidator(_named)] = Field(
        default_factory=dict, description="for each value of the secret: the probability of each of values"
    )
    file: str | None = Field(
        default=None, exclude_if=lambda value: value is None, description="instead of values and given: a CSV file of them"
    )
    prior: Annotated[FrozenMap[Probability], BeforeValidator(_named)] = Field(
        default_factory=dict, description="how likely each value of the secret is: for expected errors alone"
    )
    row_values: tuple[Finite, ...] | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="of a sum or an average: the values that an entry can have; of one row they are `values`",
    )

    @model_validator(mode="before")
    @classmethod
    def _from_file(cls, value: Any) -> Any:
        """What the file says stands in its place, so that a record of the policy holds the laws themselves."""
        if not isinstance(value, Mapping) or not isinstance(value.get("file"), str):
            return value
        if "values" in value or "given" in value:
            raise ValueError("file: stands instead of values and given, not beside them.")
        return {**{key: one for key, one in value.items() if key != "file"}, **read_laws(value["file"])}

    @model_validator(mode="after")
    def _complete(self) -> Laws:
        if not self.values or any(a >= b for a, b in zip(self.values, self.values[1:], strict=False)):
            raise ValueError(f"values: must be numbers in increasing order. Got {list(self.values)[:8]}.")
        if len(self.given) < 2:
            raise ValueError(f"given: needs the laws of two or more values of the secret. Got {len(self.given)}.")
        if len(self.given) * len(self.values) > MOST_NUMBERS:
            raise ValueError(f"given: must be at most {MOST_NUMBERS:,} numbers. Got {len(self.given) * len(self.values):,}.")
        for name, law in self.given.items():
            _require_law(name, law, len(self.values))
        unknown = next((name for name in self.prior if name not in self.given), None)
        if unknown is not None:
            raise ValueError(f"prior: names values of the secret that given has. Got {unknown}.")
        if self.row_values is not None and self.query.column is None:
            raise ValueError("row_values: are for a sum or an average; a row counts 0 or 1.")
        if self.row_values is not None and len(set(self.row_values)) < max(2, len(self.row_values)):
            raise ValueError(f"row_values: must be two or more different numbers. Got {list(self.row_values)[:8]}.")
        return self

    @property
    def query(self) -> Query:
        """The statistic."""
        return parse_queries(self.statistic)[0]

    @property
    def exact(self) -> bool:
        """Whether every probability is a number."""
        return all(low == high for law in self.given.values() for low, high in law)

    def explained(self) -> tuple[str, ...]:
        known = "exactly" if self.exact else "to within the stated intervals"
        return (
            f"Whoever believes that {self}.",
            f"They may know {known} how likely each answer is for each value of the secret, but not which value holds.",
        )

    def __str__(self) -> str:
        kind = "probabilities" if self.exact else "intervals of probabilities"
        given = f"given each of {len(self.given)} values of the secret"
        return f"{self.statistic} has the stated {kind} on {len(self.values)} values, {given}"


def _require_law(name: str, law: tuple[Any, ...], size: int) -> None:
    if len(law) != size:
        raise ValueError(f"given.{name}: needs one probability for each of the {size} values. Got {len(law)}.")
    problem = None
    try:
        require_box(f"given.{name}", law)
    except UsageError as error:
        problem = str(error)
    if problem is not None:
        raise ValueError(problem)


# ----------------------------------------------------------------------------------------------------------------------------
# Laws from a CSV file, one line a value of the secret and a value of the statistic; what has no line has probability 0.


def read_laws(path: str) -> dict[str, Any]:
    """`values` and `given` as the file has them."""
    text, name = _text(path), shown(Path(path).name, 200)
    rows = csv.DictReader(io.StringIO(text))
    columns = tuple(rows.fieldnames or ())
    if columns not in (_NUMBERS, _INTERVALS):
        raise PolicyError(f"file: {name} must have the columns {', '.join(_NUMBERS)}, or low and high for probability.")
    found: dict[str, dict[float, Any]] = {}
    for line, row in enumerate(rows, 2):
        chances = [_number(row[key], name, line) for key in columns[2:]]
        value, law = _number(row["value"], name, line), found.setdefault(row["secret"].strip(), {})
        if value in law or None in row:
            raise PolicyError(f"file: {name}, line {line}: must be one value of the secret with one of the statistic, once.")
        law[value] = chances[0] if len(chances) == 1 else chances
    values = sorted({value for law in found.values() for value in law})
    return {"values": values, "given": {key: [law.get(value, 0.0) for value in values] for key, law in found.items()}}


def _text(path: str) -> str:
    if not os.path.isfile(path):
        raise PolicyError(f"file: must be a CSV file of laws. Got {shown(path, 200)}, which is none. Check the path.")
    try:
        with open(path, "rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) <= _MOST_BYTES:
            return content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        pass
    raise PolicyError(f"file: must be a readable CSV file in UTF-8 of at most 64 MiB. Got {shown(Path(path).name, 200)}.")


def _number(text: str | None, name: str, line: int) -> float:
    try:
        found = float(text or "")
    except ValueError:
        found = float("nan")
    if not abs(found) < float("inf"):
        raise PolicyError(f"file: {name}, line {line}: must hold finite numbers.")
    return found
