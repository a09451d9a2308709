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
from typing import TYPE_CHECKING, ClassVar, Self

from attrpriv.formatting import printable

if TYPE_CHECKING:
    from attrpriv.problem.refusal import Refusal


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
