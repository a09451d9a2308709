"""Certificate: the proof of a plan, in numbers; and Guarantee: the same in words. Also the proof for single rows, on top."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from operator import not_
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, SerializeAsAny, ValidationError

from attrpriv.errors import CertificateError, UsageError
from attrpriv.frozen import FrozenModel
from attrpriv.methods.base.evidence import Evidence, LaplaceEvidence, LaplaceTerm
from attrpriv.noise import GRID_BITS, granularity
from attrpriv.numerics.rounding import COMPUTED_UP, SOLVED_DOWN
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal

if TYPE_CHECKING:
    pass

# A smaller share of a budget is nothing: noise for it would be a thousand times what the whole budget asks for.
LEAST_LEFT = 1e-6

AnyEvidence = Annotated[SerializeAsAny[Evidence], BeforeValidator(Evidence.of_kind)]


class Certificate(FrozenModel):
    """The proof of one plan, in numbers: `plan.certificate`.

    `verify()` computes it again, and raises `CertificateError` where it does not hold; `print` it for words. `epsilon` and
    `delta` are what is promised, `evidence` the numbers that prove it, `assumes` the sentences that it rests on and that
    nobody computed.

    Examples:
        >>> import attrpriv as ap
        >>> problem = ap.Problem(
        ...     queries=(ap.mean("weight"),), secrets=(ap.Secret("mean(income)", between=(20_000, 200_000), within=1_000),),
        ...     theta=(ap.Gaussian(sd={"weight": 25, "income": 30_000}, mean={"income": 60_000},
        ...                        correlation={("weight", "income"): 0.3}, tolerance=0),),
        ...     epsilon=1.0, delta=1e-6, n=10_000,
        ... )
        >>> certificate = ap.plan(problem, "gaussian").certificate
        >>> certificate.verify(), certificate.epsilon
        (None, 1.0)
    """

    schema_version: Literal[1] = 1
    epsilon: float = Field(ge=0)
    delta: float = Field(ge=0, lt=1)
    evidence: AnyEvidence
    individuals: LaplaceEvidence | None = Field(default=None, description="row-level differential privacy on top")
    fit_delta: float = Field(
        default=0.0,
        ge=0,
        exclude_if=not_,
        description="the risk of a fitted counts assumption, on top of the evidence",
    )
    assumes: tuple[str, ...]
    exact: bool = Field(default=True, description="no smaller noise of this kind would do over the whole class")
    gap: float = Field(default=0.0, ge=0, description="at most this much of the noise's scale is due to a bound, not to need")

    def verify(self) -> None:
        """Recompute the promise from the stored numbers; `CertificateError` if it does not hold."""
        reached = self._reached()
        if not (math.isfinite(reached) and reached <= self.delta):
            raise CertificateError(
                f"certificate: epsilon {self.epsilon:g} needs delta {reached:g}, above the promised {self.delta:g}. "
                "Nothing was released. Please report this (SECURITY.md)."
            )

    def _reached(self) -> float:
        """The delta that the stored numbers give; NaN where one of them is not what its field allows."""
        try:
            # A copy made with changed numbers has not been validated.
            stored = type(self).model_validate(self.model_dump(warnings=False))
            rows = stored.individuals
            if rows is not None and (rows.epsilon is None or rows.delta(rows.epsilon) > 0):
                return math.nan
            return stored.evidence.delta(stored.epsilon) + stored.fit_delta
        except (ValidationError, UsageError, ArithmeticError):
            return math.nan

    def left(self, epsilon: float, delta: float) -> float:
        """The share of this budget that is left once everything it covers is released; 0 where no rule goes on from here."""
        share = 1.0 - self.evidence.spent(epsilon, delta)
        return min(1.0, share) if share > LEAST_LEFT else 0.0

    def follows(self, earlier: Certificate | None) -> bool:
        """Whether it covers what `earlier` covers, and nothing else that was released before."""
        return self.evidence.follows(None if earlier is None else earlier.evidence)

    def covers(self, column: str, kind: str, scale: float) -> bool:
        """Whether noise of this kind and scale on this column's average is what the evidence counted on."""
        return self.evidence.covers(column, kind, scale)

    def __str__(self) -> str:
        reached = self.evidence.delta(self.epsilon) + self.fit_delta
        lines = [f"checked: delta {reached:.6g} <= {self.delta:g} at epsilon {self.epsilon:g}"]
        lines += self.evidence.describe()
        if self.individuals is not None:
            test = self.evidence.row_test()
            promised = f"{self.individuals.epsilon:g}" if test is None else f"({self.individuals.epsilon:g}, {test.delta:g})"
            lines.append(f"single rows: {promised}-differential privacy, by Laplace noise on top")
        if not self.exact:
            lines.append(f"bound: up to {self.gap:.3g} of the noise's scale comes from a bound over the class")
        return "\n".join([*lines, *(f"assumes: {line}" for line in self.assumes)])


class Guarantee(FrozenModel):
    """What is promised, in words: `plan.guarantee`.

    `kind` is "proved" or "approximate", `statement` the promise, `reference` the theory page that proves it.

    Examples:
        >>> print(Guarantee(kind="proved", statement="nothing is told", reference="docs/theory/view.md"))
        nothing is told (proved; docs/theory/view.md)
    """

    schema_version: Literal[1] = 1
    kind: Literal["proved", "approximate"]
    statement: str
    reference: str

    def __str__(self) -> str:
        return f"{self.statement} ({self.kind}; {self.reference})"


# ----------------------------------------------------------------------------------------------------------------------------
# The last check before noise is drawn: the certificate holds, and what will be drawn is what it counted on.
#
# What must never change: everything that decides what is read, what is drawn and what the proof says is in `binding_of`. It
# is computed where a mechanism makes a plan, and again here. `FREE` lists what may vary, with the reason.


NOT_COVERED = "plan: must promise and draw what its certificate counted on. Nothing was released."

# What no row and no noise depends on: words, expected errors, and the numbers that intervals are made of.
FREE: Mapping[str, str] = MappingProxyType(
    {
        "bound": "is the digest itself",
        "spend": "says which share of the budget was asked for; the certificate says what is used",
        "notes": "are words",
        "guarantee": "is the promise in words; the certificate has its numbers",
        "errors": "are what to expect of the answer",
        "model_error": "says what would hold were the assumption wrong",
        "columns.error": "is what to expect of the answer",
        "columns.parameters": "are shown, and used for intervals",
        "tally.parameters": "are shown, and used for intervals",
        "tally.tails": "are used for intervals",
        "tally.tail_step": "is used for intervals",
        "certificate.assumes": "are words",
        "certificate.exact": "says whether less noise would do",
        "certificate.gap": "says how much less noise might do",
    }
)


def binding_of(plan: Mapping[str, Any]) -> str:
    """A digest of all of a plan, as JSON, that is read or drawn from, and of its proof."""
    return hashlib.sha256(json.dumps(what_is_bound(plan), sort_keys=True).encode()).hexdigest()


def what_is_bound(value: Any, place: str = "") -> Any:
    """A plan as JSON without what may vary."""
    if isinstance(value, Mapping):
        inner = {key: f"{place}.{key}" if place else key for key in value}
        return {key: what_is_bound(one, inner[key]) for key, one in value.items() if inner[key] not in FREE}
    return [what_is_bound(one, place) for one in value] if isinstance(value, list) else value


# ----------------------------------------------------------------------------------------------------------------------------
# Row-level differential privacy on top: `individuals: {epsilon: e}`.
#
# Independent Laplace noise scaled by public numbers is post-processing for everything else, so the attribute guarantee stays
# as it is. A row, clipped to its bounds, moves an average by at most R/n (R the width of the bounds); with k averages each gets
# e/k. The average is first rounded to the grid of its own noise, which adds one step, and the Laplace grid another.


def row_evidence(problem: Problem, independent: Sequence[float], clips: Mapping[str, float | None]) -> LaplaceEvidence | None:
    """The Laplace noise that protects single rows, or None where the policy does not ask for it."""
    if problem.individuals is None:
        return None
    share = problem.individuals / max(1, len(problem.columns))
    terms = []
    for column, own in zip(problem.columns, independent, strict=True):
        if column not in problem.bounds:
            raise Refusal(
                Cause.PUBLIC_FACT,
                f"individuals: needs bounds for {column}; declare bounds: {{{column}: [low, high]}}.",
                needs=f"bounds of {column}",
                usage=True,
            )
        if clips.get(column) is None:
            raise Refusal(
                Cause.PUBLIC_FACT,
                f"individuals: rows must be clipped to the bounds of {column}, but that would change the assumed law too much. "
                "Widen the bounds (and state the means), until a row outside is nearly impossible.",
                needs=f"wider bounds of {column}",
            )
        terms.append(row_term(problem, column, share, granularity(own)))
    return LaplaceEvidence(epsilon=problem.individuals, terms=tuple(terms))


def row_term(problem: Problem, column: str, epsilon: float, step: float) -> LaplaceTerm:
    """Laplace noise on one average for one changed row."""
    low, high = problem.bounds[column]
    moved = (high - low) / problem.n * COMPUTED_UP + step
    spendable = epsilon * SOLVED_DOWN - 2.0**-GRID_BITS
    if not spendable > 0:
        raise Refusal(
            Cause.BUDGET,
            f"individuals: the grid of the noise costs more than epsilon {problem.individuals:g} allows.",
            needs="a larger individuals",
        )
    scale = moved / spendable
    return LaplaceTerm(column=column, sensitivity=moved, scale=scale, granularity=granularity(scale))


# ----------------------------------------------------------------------------------------------------------------------------
# What a plan says in words: the promise, what it rests on, and what a reader should know. Public facts only.


def statement(problem: Problem, delta: float | None = None) -> str:
    """The promise, for every mechanism that proves it; `delta` where it is not the policy's own."""
    promised = problem.delta if delta is None else delta
    hidden = "; ".join(str(secret) for secret in problem.secrets)
    return (
        f"For each secret ({hidden}) and each pair of its values that must not be told apart, the released answers are "
        f"(epsilon {problem.epsilon:g}, delta {promised:g})-indistinguishable"
    )


def common_assumptions(problem: Problem) -> tuple[str, ...]:
    """What every guarantee of this kind leaves open."""
    rows = (
        "single persons are not protected"
        if problem.individuals is None
        else f"single persons are protected by {problem.individuals:g}-differential privacy of rows, on top"
    )
    return (
        rows,
        "each secret is protected on its own; a joint property of several secrets is not covered",
        f"the number of rows, {problem.n}, is public",
        "nothing else about this table is released outside the ledger",
    )


def known_line(problem: Problem) -> str:
    """What the adversary may know of rows.

    With more columns than one of each kind, a single known entry can tie the others together more closely than they are on
    average (docs/theory/gaussian.md); then rows must be known as a whole, or not at all.
    """
    if not problem.known_rows:
        return "the adversary knows no row"
    hidden = {column for secret in problem.secrets for column in secret.columns}
    parts = ", or their entries of the columns named here" if len(problem.read_columns) == len(hidden) == 1 else ", not in part"
    return f"the adversary knows at most {problem.known_rows:.4g} of the rows: whole{parts}"
