"""Every error attrpriv raises on purpose, and the exit code each one has on the command line.

    AttrprivError                 1   the root; never raised itself
    ├── UsageError                2   a parameter, a policy, a query or a file that cannot be used as given
    │   ├── PolicyError           2   the policy file or one of its values
    │   ├── QueryError            2   the text of a query or of a secret
    │   └── DataError             2   the table: unreadable, wrong type, missing values, wrong number of rows
    ├── RefusedError              3   no mechanism can prove the guarantee, or the ledger allows no further release
    └── CertificateError          1   a certificate that does not hold: a bug in attrpriv, nothing was released

Messages say the parameter, the requirement, what was received and what to do. A message may quote the policy, the query,
column names and the number of rows, all of which are public. It never quotes a value of the table: a `DataError` that
depends on the rows has a fixed text. It is one line, whatever a name in it holds.

Where mechanisms refused, `refusals` has for each query and mechanism the cause and what is needed, as data: no code has to look
into the message, which is made of them.
"""

from __future__ import annotations

import html
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from attrpriv.formatting import printable

if TYPE_CHECKING:
    from attrpriv.problem.refusal import Refusal


class Cause(StrEnum):
    """What stands in the way. The order is that of the ways out, from a word in the policy to another assumption.

    Of several refusals for one query, the first in this order is the one to tell: it is the nearest to an answer.
    """

    MISTAKE = "mistake"
    """The policy or the query says what cannot be so, or not all that it has to."""
    PROMISE = "promise"
    """What is promised hides nothing."""
    PUBLIC_FACT = "public_fact"
    """A public fact must be stated: bounds, a range, sizes, categories, a resolution."""
    BUDGET = "budget"
    """Epsilon, delta, or the share of them that may be spent, does not suffice."""
    EARLIER = "earlier"
    """What was released before leaves nothing, or leads no further."""
    SHAPE = "shape"
    """It rests on normal rows, and public records do not show them; or it is told to allow for others, and cannot."""
    SIZE = "size"
    """Too large for it, or too slow to be tried unasked."""
    NUMBERS = "numbers"
    """The assumption is of the right kind, but lacks a number or leaves one too open."""
    PRECISION = "precision"
    """Too few rows, or values that are recorded too coarsely for the law that it rests on."""
    PERSONS = "persons"
    """Single persons, or somebody who knows rows, are to be taken into account, and it cannot."""
    TOGETHER = "together"
    """What is asked together is covered apart only."""
    SECRET = "secret"
    """It hides secrets of another kind, or fewer of them."""
    STATISTIC = "statistic"
    """It does not answer this statistic."""
    NOTHING_FOUND = "nothing_found"
    """All is covered, and no plan was found that can be proved, or that gains anything over a simpler mechanism."""
    ASSUMPTION = "assumption"
    """It is for assumptions of another kind; `needs` are the kinds."""

    @property
    def words(self) -> str:
        """The cause in a few words."""
        return _SAID[self][0]

    @property
    def way_out(self) -> str:
        """What to state or change, where nothing nearer is known."""
        return _SAID[self][1]

    @property
    def rank(self) -> int:
        """How near an answer is, nearest first."""
        return list(Cause).index(self)


BY_NAME: Final = "the mechanism by name"
# In words, and what to state or change.
_SAID: Final = {
    Cause.MISTAKE: ("the policy or the query is not right", "what the policy or the query says"),
    Cause.PROMISE: ("the promise hides nothing", "a range that hides something"),
    Cause.PUBLIC_FACT: ("a public fact is missing", "a public fact"),
    Cause.BUDGET: ("the budget does not suffice", "a larger epsilon or delta"),
    Cause.EARLIER: ("earlier releases leave nothing for it", "the recorded answers"),
    Cause.SHAPE: ("rows that may not be normal", BY_NAME),
    Cause.SIZE: ("too large, or too slow to be tried unasked", "fewer rows, columns or values"),
    Cause.NUMBERS: ("the assumption does not say enough", "numbers of the assumption"),
    Cause.PRECISION: ("too few rows, or values that are too coarse", "finer values or more rows"),
    Cause.PERSONS: ("single persons, or known rows, are not covered", "known_rows 0, and no individuals"),
    Cause.TOGETHER: ("not covered together with the others", "one query at a time"),
    Cause.SECRET: ("the secret is not covered", "another secret"),
    Cause.STATISTIC: ("the statistic is not covered", "another statistic, or a view"),
    Cause.NOTHING_FOUND: ("no plan was found that can be proved", "another mechanism"),
    Cause.ASSUMPTION: ("another assumption is needed", "another assumption"),
}


@dataclass(frozen=True)
class Way:
    """One way that was tried, as a message tells it: what to say first, who refused and why, what is for other assumptions."""

    head: str = ""
    reasons: tuple[tuple[str, Refusal], ...] = ()
    others: str = ""

    @property
    def items(self) -> tuple[str, ...]:
        """The reasons, each with the mechanisms that have it."""
        return (*(f"{names}: {one.reason}" for names, one in self.reasons), *((self.others,) if self.others else ()))

    def __str__(self) -> str:
        return " ".join(part for part in (self.head, " | ".join(self.items)) if part)


class AttrprivError(Exception):
    """The root of everything raised on purpose."""

    exit_code: ClassVar[int] = 1
    kind: ClassVar[str] = "error"
    refusals: tuple[Refusal, ...] = ()
    """Refusal each mechanism refused each query that is to blame, the nearest to an answer first; of other errors none."""
    ways: tuple[Way, ...] = ()
    """What the message is made of, where mechanisms refused."""
    cause: Cause | None = None
    needs: tuple[str, ...] = ()
    """What stands in the way, and what would have to be stated or changed, where whoever raised it says so."""

    def because(self, cause: Cause, *needs: str) -> Self:
        """The same, for whoever turns it into a refusal."""
        self.cause, self.needs = cause, needs
        return self

    @classmethod
    def told(cls, ways: tuple[Way, ...], refusals: tuple[Refusal, ...]) -> Self:
        """An error whose message says why these mechanisms refused."""
        made = cls(" ".join(map(str, ways)))
        made.ways, made.refusals = ways, refusals
        return made

    @property
    def causes(self) -> tuple[Refusal, ...]:
        """One refusal for each query: the nearest to an answer."""
        return tuple({one.query: one for one in reversed(self.refusals)}.values())[::-1]

    def after(self, words: str) -> Self:
        """The same, with words before it."""
        first, *others = self.ways or (Way(str(self)),)
        return self.told((replace(first, head=f"{words} {first.head}".rstrip()), *others), self.refusals)

    def __str__(self) -> str:
        return printable(super().__str__())

    def to_frame(self, kind: str = "pandas") -> Any:
        """A row for each query and mechanism that refused it, where mechanisms did: pandas, polars or arrow."""
        if not self.refusals:
            raise UsageError("to_frame: is for errors with refusals. Got one without: its message says all.")
        first, *others = self.refusals
        return first.to_frame(kind, others)

    def _render_traceback_(self) -> list[str]:
        """What IPython and notebooks show where nobody catches it: the message, not the way through our code."""
        told = [f"{names}: {one.reason}" for way in self.ways for names, one in way.reasons]
        nearest = [one.line for one in self.causes]
        message = [str(self)] if not nearest else [*nearest, *(f"  {printable(line)}" for line in told)]
        return [f"{type(self).__name__}: {printable(message[0])}", *message[1:]]

    def _repr_html_(self) -> str:
        """In a notebook: for each query its cause and a way out, or the message."""
        return "".join(one._repr_html_() for one in self.causes) or f"<div>{html.escape(str(self))}</div>"


class UsageError(AttrprivError):
    """Something given by the caller cannot be used as given."""

    exit_code: ClassVar[int] = 2
    kind: ClassVar[str] = "usage"


class PolicyError(UsageError):
    """The policy file, or one of its values."""

    kind: ClassVar[str] = "policy"


class QueryError(UsageError):
    """The text of a query or of a secret."""

    kind: ClassVar[str] = "query"


class DataError(UsageError):
    """The table cannot be read, or cannot be used as the policy says."""

    kind: ClassVar[str] = "data"


class RefusedError(AttrprivError):
    """Nothing can be released: not provable, or already spent."""

    exit_code: ClassVar[int] = 3
    kind: ClassVar[str] = "refused"


class CertificateError(AttrprivError):
    """A certificate failed its own check. Nothing was released; please report it (SECURITY.md)."""

    kind: ClassVar[str] = "certificate"
