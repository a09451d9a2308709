"""Why a mechanism cannot be used for a problem: one cause, one way out, and only for people a sentence.

Unknown or uncovered means refuse. What must never change: code looks at the fields of a refusal, never into its sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Final

from attrpriv.errors import CertificateError, QueryError, RefusedError


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


_BY_NAME: Final = "the mechanism by name"
# In words, and what to state or change.
_SAID: Final = {
    Cause.MISTAKE: ("the policy or the query is not right", "what the policy or the query says"),
    Cause.PROMISE: ("the promise hides nothing", "a range that hides something"),
    Cause.PUBLIC_FACT: ("a public fact is missing", "a public fact"),
    Cause.BUDGET: ("the budget does not suffice", "a larger epsilon or delta"),
    Cause.EARLIER: ("earlier releases leave nothing for it", "the recorded answers"),
    Cause.SHAPE: ("rows that may not be normal", _BY_NAME),
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


class Refusal(Exception):
    """Raised by a mechanism, caught by `plan` and `auto`; a user finds it in `refusals` of an error.

    `cause`: what stands in the way. `needs`: what would have to be stated or changed, any one of them, the best first; of
    `Cause.ASSUMPTION` the kinds of assumption. `query`: the text of the one to blame, where it is one. `method`: the mechanism
    that refused, once that is known. `reason`: the sentence. `otherwise`: a way out that its end names, and that is left out of
    it where that was `tried`.

    `usage` marks a problem that is wrong for the mechanism as stated (say delta 0) rather than out of its reach: when nothing
    else applies, such a reason is reported as bad usage. A mistake and a promise that hides nothing always are.
    """

    cause: Cause
    reason: str
    needs: tuple[str, ...]
    query: str | None
    method: str | None
    usage: bool
    otherwise: str
    stem: str

    def __init__(
        self,
        cause: Cause,
        reason: str,
        *,
        needs: str | tuple[str, ...] = (),
        query: str | None = None,
        method: str | None = None,
        usage: bool = False,
        otherwise: str = "",
    ) -> None:
        sentence = f"{reason.removesuffix('.')}, or {otherwise}." if otherwise else reason
        super().__init__(sentence)
        usage = usage or cause in (Cause.MISTAKE, Cause.PROMISE)
        needs = (needs,) if isinstance(needs, str) else needs or (cause.way_out,)
        self.__dict__.update(cause=cause, reason=sentence, needs=needs, query=query, method=method, usage=usage)
        self.__dict__.update(stem=reason, otherwise=otherwise)

    def __setattr__(self, name: str, value: object) -> None:
        if name in Refusal.__annotations__:
            raise AttributeError(f"{name}: a refusal does not change; use told() for one that says more.")
        super().__setattr__(name, value)

    def told(self, *, method: str | None = None, query: str | None = None) -> Refusal:
        """The same, of a mechanism and a query where it names none yet."""
        return self._with(method=self.method or method, query=self.query or query)

    def tried(self) -> Refusal:
        """The same, where what it names at its end was refused too."""
        return self._with(otherwise="")

    def _with(self, **changes: Any) -> Refusal:
        return Refusal(self.cause, self.stem, **(self._keywords | changes))

    @property
    def _keywords(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("needs", "query", "method", "usage", "otherwise")}

    @property
    def way_out(self) -> str:
        """What would have to be stated or changed, in words."""
        if self.cause is Cause.ASSUMPTION:
            return f"a {listed_kinds(self.needs)} assumption"
        return f"{self.method} by name" if self.needs[0] == _BY_NAME and self.method else self.needs[0]

    @property
    def line(self) -> str:
        """The query, the cause and the way out."""
        query = f"{self.query}: " if self.query else ""
        return f"{query}{self.cause.words}; what helps: {self.way_out}."

    def to_json(self) -> dict[str, Any]:
        """Its fields as data."""
        found = {"query": self.query, "mechanism": self.method, "refused": self.reason}
        return {**found, "cause": self.cause.value, "needs": list(self.needs)}

    def _repr_html_(self) -> str:
        from attrpriv.notebook.html import refusal_html

        return refusal_html(self)

    def __reduce__(self) -> tuple[Callable[..., Refusal], tuple[Any, ...]]:
        return _again, (self.cause, self.stem, self._keywords)


def _again(cause: Cause, reason: str, own: dict[str, Any]) -> Refusal:
    """A refusal from its fields, for pickle and copy, which know no keywords."""
    return Refusal(cause, reason, **own)


def listed_kinds(kinds: Sequence[str]) -> str:
    """Kinds of assumption, any one of which will do."""
    *first, last = kinds
    return f"{', '.join(first)} or {last}" if first else last


def cause_of(error: Exception) -> Cause:
    """The cause that an error of a part speaks of, by its kind."""
    if isinstance(error, QueryError):
        return Cause.STATISTIC
    return Cause.NOTHING_FOUND if isinstance(error, RefusedError | CertificateError) else Cause.NUMBERS


def other_assumption(kind: str) -> Refusal:
    """Of a mechanism that is for assumptions of this kind only."""
    return Refusal(Cause.ASSUMPTION, f"needs a {kind} assumption (assume: kind: {kind}).", needs=kind)


def only_by_name(most: str) -> Refusal:
    """Of a program or a search of minutes, which `auto` does not start by itself."""
    return Refusal(Cause.SIZE, f"auto tries it for up to {most}; ask for it by name.", needs=_BY_NAME)


def no_delta(what: str = "a Gaussian mechanism") -> Refusal:
    """Of noise that has no proof where delta is 0."""
    reason = f"delta: {what} needs delta above 0. Got 0. Set delta, say to 1e-6."
    return Refusal(Cause.BUDGET, reason, needs="delta above 0", usage=True)


def needs_bounds(columns: Sequence[str]) -> Refusal:
    """Of noise in proportion to how wide the columns may lie, which is not stated."""
    reason = f"needs bounds for {', '.join(columns)}; declare bounds: {{{columns[0]}: [low, high]}}."
    return Refusal(Cause.PUBLIC_FACT, reason, needs=f"bounds of {', '.join(columns)}")


def unmasked() -> Refusal:
    """Of values that are recorded so coarsely that the noise does not cover their digits."""
    reason = "the mask does not cover the spacing of the values. Declare resolution, or use more rows."
    return Refusal(Cause.PRECISION, reason, needs=("resolution", "more rows"))
