"""The pairs of columns that a Gaussian assumption states, and which of them it may leave out.

A wide table has too many pairs to know them all, and a plan looks at few: those of the columns that are asked or hidden
together. So pairs may be left out, in one pattern only. Some columns, the *core*, are stated with every other column; the
others fall into *blocks*, with every pair inside a block and none across. Without a core nothing may be left out.

What must never change: a pair that is not stated has no value. Whoever asks for one gets an error, never a zero.

The stated pairs are then the edges of a chordal graph whose maximal cliques are the core with one block each. Correlations
that are positive semidefinite on every such clique are those of some law (`grone1984completions`): the cliques are all there is
to check.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from attrpriv.errors import PolicyError
from attrpriv.frozen import FrozenDict

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

_SHOWN = 20
_TOGETHER = 64


class StatedPairs(FrozenDict[float]):
    """A number for each pair `a~b`, each pair named once; found from either of its columns."""

    __slots__ = ("_rows",)

    def __init__(self, items: Mapping[str, float]) -> None:
        super().__init__(items)
        rows: dict[str, dict[str, float]] = defaultdict(dict)
        for pair, value in self.items():
            first, _, second = pair.partition("~")
            rows[first][second] = rows[second][first] = value
        self._rows = dict(rows)

    @property
    def names(self) -> Iterable[str]:
        """Every column of some pair, in the order in which pairs name them."""
        return self._rows.keys()

    def of(self, first: str, second: str) -> float:
        """The number stated for two columns, in either order."""
        found = self._rows.get(first, {}).get(second)
        if found is None:
            raise PolicyError(
                f"assume: {first}~{second} must be stated, because both columns are asked or hidden. Got none. "
                "Add it (0 is allowed)."
            )
        return found

    def known(self, columns: Sequence[str]) -> Matrix:
        """The numbers stated for pairs of these columns; NaN where none is, 1 for a column and itself."""
        import numpy as np

        rows = [self._rows.get(column, {}) for column in columns]
        found = np.array([list(map(row.get, columns, itertools.repeat(math.nan))) for row in rows], dtype=np.float64)
        found = found.reshape(len(columns), len(columns))
        np.fill_diagonal(found, 1.0)
        return found

    def matrix(self, columns: Sequence[str]) -> Matrix:
        """The numbers stated for all pairs of these columns."""
        import numpy as np

        found = self.known(columns)
        for j, k in np.argwhere(np.isnan(found)):
            found[j, k] = 1.0 if columns[j] == columns[k] else self.of(columns[j], columns[k])
        return found

    def stated_with(self, column: str) -> frozenset[str]:
        """The column itself and all that are stated with it."""
        return frozenset((column, *self._rows.get(column, ())))

    def complete(self, columns: Sequence[str]) -> bool:
        """Whether every pair of these columns is stated."""
        return all(self._stated(column) == len(columns) for column in columns)

    def near(self, column: str, columns: Sequence[str]) -> tuple[str, ...] | None:
        """The one clique that holds the column; None for one of the core where there are several, because all of them do."""
        if self._stated(column) == len(columns):
            return tuple(columns) if self.complete(columns) else None
        held = self.stated_with(column)
        return tuple(c for c in columns if c in held)

    def _stated(self, column: str) -> int:
        """How many columns are stated with this one, itself among them."""
        row = self._rows.get(column, {})
        return len(row) + (column not in row)

    def cliques(self, name: str, columns: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """The largest sets of columns with every pair stated; `ValueError` names what is missing from the pattern above."""
        held = {column: self.stated_with(column) for column in columns}
        core = {column for column in columns if len(held[column]) == len(columns)}
        _require_pattern(name, held, core, columns)
        place = {column: k for k, column in enumerate(columns)}
        done = set(core) if len(core) < len(columns) else set()
        for column in columns:
            if column not in done:
                done |= held[column]
                yield tuple(sorted(held[column], key=place.__getitem__))


NO_PAIRS = StatedPairs({})


def least_eigenvalue(parts: Sequence[tuple[str, ...]], matrix: Callable[[Sequence[str]], Matrix], slack: float) -> float:
    """Of the matrices of all parts; 1 where there are none. Where it is not below -slack, which is quicker to see, -slack."""
    import numpy as np

    try:
        for stack in _stacks(parts, matrix):
            if not np.isfinite(np.linalg.cholesky(stack + slack * np.eye(stack.shape[1]))).all():
                return math.nan
        return -slack if parts else 1.0
    except np.linalg.LinAlgError:
        return min(float(np.linalg.eigvalsh(stack)[:, 0].min()) for stack in _stacks(parts, matrix))


def _stacks(parts: Iterable[tuple[str, ...]], matrix: Callable[[Sequence[str]], Matrix]) -> Iterator[Matrix]:
    """The matrices of some parts of one size at a time."""
    import numpy as np

    for _, same in itertools.groupby(parts, len):
        while some := list(itertools.islice(same, _TOGETHER)):
            columns = tuple(dict.fromkeys(itertools.chain.from_iterable(some)))
            place = {column: k for k, column in enumerate(columns)}
            rows = np.array([[place[column] for column in part] for part in some])
            yield matrix(columns)[rows[:, :, None], rows[:, None, :]]


def _require_pattern(name: str, held: Mapping[str, frozenset[str]], core: set[str], columns: Sequence[str]) -> None:
    lacking: list[str] = []
    everything = set(columns)
    for column in columns:
        # Without a core nothing may be left out; with one, nothing among columns that hang together apart from it.
        whole = everything if not core else _hanging(held, core, column)
        apart = whole - held[column]
        lacking += [f"{column}~{c}" for c in columns if c in apart] if apart else []
        if len(lacking) > 2 * _SHOWN:
            break
    if not lacking:
        return
    once = [pair for pair in lacking if columns.index(pair.split("~")[0]) < columns.index(pair.split("~")[1])]
    more = ", and others" if len(once) > _SHOWN else ""
    raise ValueError(f"{name}: every pair of columns is needed (0 is allowed). Missing: {', '.join(once[:_SHOWN])}{more}.")


def _hanging(held: Mapping[str, frozenset[str]], core: set[str], column: str) -> set[str]:
    """The columns that hang together with this one, without the core; of a core column itself, nothing lacks."""
    found, waiting = {column}, [] if column in core else [column]
    while waiting:
        new = held[waiting.pop()] - core - found
        found |= new
        waiting += new
    return found
