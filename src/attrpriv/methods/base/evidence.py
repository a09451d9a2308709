"""Evidence: the proof of a release, in numbers. The base of every kind; what a kind does not prove is refused here.

| what a kind says | here |
|---|---|
| `delta(epsilon)` | nothing: every kind computes its own |
| `describe()` | no line |
| `follows(earlier)`, `spent(epsilon, delta)` | it stands alone: nothing before it, and no rule leads on from it |
| `covers`, `covers_statistic`, `covers_tally` | no average, no statistic, no count |
| `suits(columns, ...)` | any columns, each of which `covers` is asked about |

What must never change: a kind that says nothing about a question has not proved it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from attrpriv.frozen import Finite, FrozenModel

if TYPE_CHECKING:
    from attrpriv.methods.base.clamp import Clamp, Read

Matrix = tuple[tuple[Finite, ...], ...]


@dataclass(frozen=True)
class Counted:
    """What is counted and drawn, as a proof sees it."""

    n: int
    width: int
    """How far one row can move the sum of absolute changes of everything released."""
    steps: tuple[int, ...]
    """What one row can add; of a histogram, the cell that it can be in."""
    histogram: bool
    reads: frozenset[str]
    identity: str
    """A digest of what is counted."""
    event: str
    """The condition, where the rows of one event are counted; else empty."""
    noise: str
    scale: float


class Evidence(FrozenModel):
    """The numbers from which a promise is computed again."""

    words: ClassVar[str] = "a release of another kind"
    """What was released, for messages about what may follow it."""
    room: ClassVar[str] = "State a tolerance."
    """What an owner can state instead of exact numbers."""
    reads_rows: ClassVar[bool] = True
    reads_categories: ClassVar[bool] = False
    """Whether the sensitive column's categories are counted beside the averages."""
    goes_on: ClassVar[bool] = False
    """Whether a rule leads on from it: `spent` and `follows` are its own."""

    def delta(self, epsilon: float) -> float:
        """The delta reached at `epsilon`, from above."""
        raise NotImplementedError

    def describe(self) -> tuple[str, ...]:
        """What the numbers say, a line each."""
        return ()

    def spent(self, epsilon: float, delta: float) -> float:
        """The share of the budget that everything it covers uses, from above; infinite where no rule leads on."""
        return math.inf

    def follows(self, earlier: object | None) -> bool:
        """Whether it covers what `earlier` covers, and nothing else that was released before."""
        return earlier is None

    def covers(self, column: str, kind: str, scale: float) -> bool:
        """Whether noise of this kind and scale on this column's average is what was counted on."""
        return False

    def covers_statistic(self, name: str, read: frozenset[str], width: Fraction, kind: str, scale: float) -> bool:
        """Whether this noise on a statistic of these columns, kept in a range of this width, is what was counted on."""
        return False

    def covers_tally(self, told: Counted) -> bool:
        """Whether this noise on what is counted is what was counted on."""
        return False

    def suits(self, columns: tuple[str, ...], n: int, *, clipped: bool) -> bool:
        """Whether averages of these columns, in this order, are what it speaks of."""
        return True

    def width_of(self, column: str) -> float | None:
        """How wide the rows of a column may lie, once clipped; None: nothing rests on it."""
        return None

    def common_noise(self) -> Matrix:
        """The factor of the noise that the averages of this release have in common."""
        return ()

    def taken_back(self) -> Clamp | None:
        """What is taken back of sensitive statistics."""
        return None

    def statistics_read(self) -> tuple[Read, ...]:
        """The sensitive statistics that are read besides the columns."""
        clamp = self.taken_back()
        return () if clamp is None else clamp.reads


INTERVALS = "State intervals under given (of a network, a tolerance)."


class CountEvidence(Evidence):
    """The proof of one count, sum or histogram that stands alone."""

    words: ClassVar[str] = "a count that stands alone"
    room: ClassVar[str] = INTERVALS


def words_of(earlier: object) -> str:
    """What was released, of evidence of any kind."""
    return earlier.words if isinstance(earlier, Evidence) else Evidence.words
