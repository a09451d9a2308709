"""Why a mechanism cannot be used for a problem: one cause, one way out, and only for people a sentence.

Unknown or uncovered means refuse. What must never change: code looks at the fields of a refusal, never into its sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from attrpriv.errors import BY_NAME, AttrprivError, Cause, CertificateError, QueryError, RefusedError


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
        return f"{self.method} by name" if self.needs[0] == BY_NAME and self.method else self.needs[0]

    @property
    def line(self) -> str:
        """The query, the cause and the way out."""
        query = f"{self.query}: " if self.query else ""
        return f"{query}{self.cause.words}; what helps: {self.way_out}."

    def to_json(self) -> dict[str, Any]:
        """Its fields as data."""
        found = {"query": self.query, "mechanism": self.method, "refused": self.reason}
        return {**found, "cause": self.cause.value, "needs": list(self.needs)}

    def to_frame(self, kind: str = "pandas", others: Sequence[Refusal] = ()) -> Any:
        """A row for this one and for each of `others`: pandas, polars or arrow."""
        from attrpriv.notebook.frames import refusal_frame

        return refusal_frame((self, *others), kind)

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


def refusal_of(error: Exception, *, usage: bool = False, name: str = "") -> Refusal:
    """What an error of a part speaks of: its own cause where it has one, else by its kind. `name`: who speaks already."""
    reason = str(error).removeprefix(f"{name}: " if name else "")
    if isinstance(error, AttrprivError) and error.cause is not None:
        return Refusal(error.cause, reason, needs=error.needs, usage=usage)
    if isinstance(error, QueryError):
        return Refusal(Cause.STATISTIC, reason, usage=usage)
    found = Cause.NOTHING_FOUND if isinstance(error, RefusedError | CertificateError) else Cause.NUMBERS
    return Refusal(found, reason, usage=usage)


class refusing:  # noqa: N801 - used as `with refusing(UsageError):`
    """What comes out of the block as one of these errors becomes a refusal, with nothing of the error behind it.

    >>> with refusing(QueryError, to=lambda error: Refusal(Cause.STATISTIC, str(error), usage=True)):
    ...     raise QueryError("query: is of no column.")
    Traceback (most recent call last):
        ...
    attrpriv.problem.refusal.Refusal: query: is of no column.
    """

    def __init__(self, *kinds: type[Exception], to: Callable[[Exception], Refusal] = refusal_of) -> None:
        self._kinds, self._to = kinds, to

    def __enter__(self) -> None:
        """Nothing is needed before."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if isinstance(error, self._kinds):
            refusal = self._to(error)
            try:
                raise refusal
            finally:
                refusal.__context__ = None  # whose frames would be kept alive


def other_assumption(kind: str) -> Refusal:
    """Of a mechanism that is for assumptions of this kind only."""
    return Refusal(Cause.ASSUMPTION, f"needs a {kind} assumption (assume: kind: {kind}).", needs=kind)


def only_by_name(most: str) -> Refusal:
    """Of a program or a search of minutes, which `auto` does not start by itself."""
    return Refusal(Cause.SIZE, f"auto tries it for up to {most}; ask for it by name.", needs=BY_NAME)


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


__all__ = [
    "Cause",
    "Refusal",
    "listed_kinds",
    "needs_bounds",
    "no_delta",
    "only_by_name",
    "other_assumption",
    "refusal_of",
    "refusing",
    "unmasked",
]
