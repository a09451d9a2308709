"""A plan: which mechanism, what is promised, what error to expect, and the part that reads and draws. Still no data.

What must never change: a plan is a function of the problem; a part draws only through `answered`, which verifies the
certificate, and that the part is what it counted on, first. A sum is its released average times the number of rows, so asking
for both tells nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from pydantic import Field, SerializeAsAny, SerializerFunctionWrapHandler, model_serializer, model_validator

from attrpriv.errors import CertificateError, UsageError
from attrpriv.frozen import Finite, FrozenModel
from attrpriv.methods.base.accuracy import ExpectedError, ModelError, Noise, Reach, fragile, is_warning, worthless
from attrpriv.methods.base.certificate import NOT_COVERED, Certificate, Guarantee, binding_of, statement
from attrpriv.methods.base.column_plan import ColumnPlan, Group, StatisticPlan, SubsetUnion, exact
from attrpriv.methods.base.parts import NOT_THERE, PARTS, AveragesPart, Part, TallyPart, Values, WeightsPart, part_of
from attrpriv.methods.base.tally import Tally, TallyCategory
from attrpriv.methods.base.view_plan import ViewPlan
from attrpriv.problem.problem import Problem
from attrpriv.queries.query import Query

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from attrpriv.methods.base.belief import Belief
    from attrpriv.methods.base.tells import Tells


class Plan(FrozenModel):
    """A proved way to answer some queries together: what `Session.plan` and `plan` return. It holds no data.

    In JSON its `part`, which reads and draws, stands beside the header. `error`, `noise`, `guarantee`, `certificate`,
    `model_error` and `notes` are what to read; `verify()` checks all of it again. `plan` has an example.
    """

    schema_version: Literal[1] = 1
    mechanism: str
    queries: tuple[Query, ...] = Field(min_length=1)
    n: int
    epsilon: float
    delta: float
    policy_digest: str = ""
    part: SerializeAsAny[Part]
    guarantee: Guarantee
    certificate: Certificate
    errors: tuple[ExpectedError, ...] = Field(default=(), description="of each query, where they do not follow from the part")
    model_error: tuple[ModelError, ...] = ()
    notes: tuple[str, ...] = ()
    spend: Finite = Field(default=1.0, description="the share of what was left that this release uses")
    bound: str = Field(default="", description="a digest of what is read and drawn, and of the proof that was made for it")

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, value: object) -> object:
        """The part's fields, as JSON has them, make the part."""
        if not isinstance(value, Mapping) or "part" in value or "certificate" not in value:
            return value
        told = dict(value)
        if isinstance(told["certificate"], Mapping):
            told["certificate"] = Certificate.model_validate(told["certificate"])
        fields = {name: told.pop(name) for name in NOT_THERE if name in told}
        weighs = isinstance(told["certificate"], Certificate) and told["certificate"].evidence.weighs
        return {**told, "part": part_of(fields, weighs=weighs)}

    @model_serializer(mode="wrap")
    def _spread_out(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        told: dict[str, Any] = {}
        for name, value in handler(self).items():
            if name == "part":
                told |= {one: value.get(one, none) for one, none in NOT_THERE.items()}
            else:
                told[name] = value
        return told

    @model_validator(mode="after")
    def _bind(self) -> Plan:
        if type(self.part) not in PARTS:
            raise ValueError("part: must be one of attrpriv's own. What another one reads or draws is bound to no proof.")
        if not self.bound:
            self.__dict__["bound"] = binding_of(self.model_dump(mode="json", warnings=False))
        return self

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with other fields, the part's among them. It is not bound again: `verify` refuses what is not proved."""
        changes = dict(update or {})
        inside = {name: changes.pop(name) for name in NOT_THERE if name in changes}
        if inside:
            changes["part"] = self.part.model_copy(update=inside)
        return super().model_copy(update=changes, deep=deep).of_problem(self.problem)

    @property
    def problem(self) -> Problem | None:
        """What it was planned for; None where it was read from a record. No part of the plan, and not recorded with it."""
        return self.__dict__.get("_problem")

    def of_problem(self, problem: Problem | None) -> Self:
        """The same plan, which knows what it was planned for."""
        self.__dict__["_problem"] = problem
        return self

    def tells(self, distance: float | None = None, *, secret: str | None = None) -> Tells:
        """How well the best test tells two values of the secret that are so far apart, from the exact answers and from these.

        Without a distance: any two that the policy hides. `secret`: which one, where there are several; default: the first.
        Reads no row: `print(plan.tells(20_000))`.
        """
        from attrpriv.methods.base.tells import tells

        return tells(self, distance, secret)

    def belief(
        self, prior: Mapping[float, float] | None = None, *, at: float | None = None, secret: str | None = None
    ) -> Belief:
        """What an outsider may believe of the secret, before and after this release, where its value is `at`.

        `prior`: the weight of each value that they hold possible; default: all values of the promised range alike.
        """
        from attrpriv.methods.base.belief import belief

        return belief(self, prior, at, secret)

    def plot(self, ax: Any = None, *, distance: float | None = None, what: Literal["tells", "belief"] = "tells") -> Any:
        """What it tells (`tells`) or what may be believed (`belief`), on these axes or new ones. Needs the extra `plots`."""
        from attrpriv.methods.base.belief import prior_near
        from attrpriv.pictures.figures import draw
        from attrpriv.pictures.subjects import believed, trade_off

        return draw(believed(self.belief(prior_near(self))) if what == "belief" else trade_off(self.tells(distance)), ax)

    def rebuilt(self, **changes: Any) -> Plan:
        """The plan that a mechanism makes of another one: bound to its proof as it is now."""
        inside = {name: getattr(self.part, name) for name in type(self.part).model_fields}
        header = {name: getattr(self, name) for name in type(self).model_fields if name != "part"}
        return Plan(**{**header, **inside, **changes, "bound": ""}).of_problem(self.problem)

    # What the part has, by the names under which JSON has it; nothing where it has no such thing.

    @property
    def columns(self) -> tuple[ColumnPlan, ...]:
        return cast("tuple[ColumnPlan, ...]", self._own("columns"))

    @property
    def factor(self) -> tuple[tuple[float, ...], ...]:
        return cast("tuple[tuple[float, ...], ...]", self._own("factor"))

    @property
    def categories(self) -> tuple[TallyCategory, ...]:
        return cast("tuple[TallyCategory, ...]", self._own("categories"))

    @property
    def unions(self) -> tuple[SubsetUnion, ...]:
        return cast("tuple[SubsetUnion, ...]", self._own("unions"))

    @property
    def groups(self) -> Mapping[str, tuple[Group, ...]]:
        found: Mapping[str, tuple[Group, ...]] = self._own("groups")
        return found

    @property
    def statistic(self) -> StatisticPlan | None:
        found: StatisticPlan | None = self._own("statistic")
        return found

    @property
    def tally(self) -> Tally | None:
        return cast("Tally | None", self._own("tally"))

    @property
    def view(self) -> ViewPlan | None:
        found: ViewPlan | None = self._own("view")
        return found

    def _own(self, name: str) -> Any:
        none = NOT_THERE[name]
        return getattr(self.part, name, () if none == [] else none)

    @property
    def draws(self) -> bool:
        """Whether its answers are drawn, and told again from the record; a view's own are computed again, if not with noise."""
        return self.view is None or self.view.persons is not None

    @property
    def left(self) -> float:
        """The share of the table's budget that is left afterwards."""
        return self.certificate.left(self.epsilon, self.delta)

    @property
    def clips(self) -> bool:
        """Whether values or answers are clipped to public ranges, so that intervals are for the clipped statistic."""
        return self.part.clips

    @property
    def warnings(self) -> tuple[str, ...]:
        """What an approver must not miss: how the promise stands where the assumption's numbers are off, and what is no use."""
        told = (*(note for note in self.notes if is_warning(note)), *filter(None, map(self._worthless, self.queries)))
        line = fragile(self.epsilon, self.model_error, self.certificate.evidence.room)
        return told if line is None or line in told else (line, *told)

    def _worthless(self, query: Query) -> str | None:
        ends = None if query.whole_table else self.part.public_range(query, self.n)
        if ends is None or self.noise_of(query).kind == "none":
            return None
        return worthless(query.text, self.error_of(query).rmse, ends)

    @property
    def remarks(self) -> tuple[str, ...]:
        """The notes that are no warnings."""
        return tuple(note for note in self.notes if note not in self.warnings)

    def of(self, query: Query, group: str | None = None) -> ColumnPlan:
        """The column a query reads, or a statistic that is no average; of groups, that with most noise."""
        if not isinstance(self.part, AveragesPart):
            raise UsageError(f"plan: {query.text} is not read off a column's average. Ask noise_of and error_of.")
        return self.part.of(query, self.n, group)

    def group_names(self, query: Query) -> tuple[str | None, ...]:
        """The groups that a query is answered for; None where there are none."""
        return self.part.group_names(query)

    def over_public_rows(self, query: Query) -> bool:
        """Whether it answers an average over some of the rows, of declared number, under the query's own name."""
        return isinstance(self.part, AveragesPart) and self.part.over_public_rows(query, self.n)

    def rows_of(self, query: Query, group: str | None = None) -> int:
        """How many rows a statistic is over, a public number."""
        rows = self.part.rows_of(query, group)
        return self.n if rows is None else rows

    def noise_of(self, query: Query, group: str | None = None) -> Noise:
        """The noise of an answer; of several groups, of the one with the most."""
        return self.part.noise_of(query, self.n, group)

    def error_of(self, query: Query) -> ExpectedError:
        """How far an answer is expected to be off."""
        return self.errors[self.queries.index(query)] if self.errors else self.part.error_of(query, self.n)

    @property
    def error(self) -> ExpectedError:
        """The expected error of the answer; of several answers, ask `error_of` for each."""
        return self.error_of(self._single())

    @property
    def noise(self) -> Noise:
        return self.noise_of(self._single())

    def _single(self) -> Query:
        if len(self.queries) != 1:
            raise UsageError(f"plan: has {len(self.queries)} queries; ask error_of(query) or noise_of(query) for one of them.")
        return self.queries[0]

    def spread_of(self, query: Query, group: str | None = None) -> Reach:
        """The law of an answer around the table's own value."""
        return self.part.spread_of(query, self.n, group, self.certificate.evidence)

    # Drawing. Only `Session.release` records an answer: two draws for one table tell more than the plan promises.

    def answered(self, found: Any) -> Values | None:
        """The answers to each query, from what its part reads; None: an announced failure, which the certificate counted on."""
        self.verify()
        return self.part.draw(self, found)

    def answers(self, averages: Sequence[Fraction], counts: Sequence[int] = ()) -> tuple[float, ...]:
        """All answers, of groups too, from the averages of `columns`, then `read_columns`, and the counts of `categories`."""
        if not isinstance(self.part, AveragesPart) or isinstance(self.part, WeightsPart):
            self.verify()
            raise CertificateError("plan: averages alone are not what its certificate counted on. Nothing was released.")
        told = self.answered((averages, counts)) or ()
        return tuple(value for values in told for value in values)

    def tallied(self, counts: Sequence[int], categories: Sequence[int]) -> Values:
        """The answers to each query (of a histogram: one for each cell), from the counts of the tally's cells."""
        if not isinstance(self.part, TallyPart):
            raise CertificateError("plan: needs the counts of its tally's cells and categories.")
        return self.answered((counts, categories)) or ()

    def randomise(self, statistic: float | Fraction) -> float:
        """One fresh noisy answer for the value of a single statistic."""
        query = self._single()
        if isinstance(self.part, TallyPart):
            return self._randomised_tally(self.part.tally, query, exact(statistic))
        if query.whole_table:
            return self.answers([])[0]
        if self.reads:
            raise UsageError(
                f"statistic: a transported answer needs the average of {self.reads[0].column} too; use Session.release."
            )
        if isinstance(self.part, WeightsPart):
            raise UsageError("statistic: calibrated weights need sums over all rows of all columns; use Session.release.")
        return self.answers([exact(statistic) / query.weight(self.rows_of(query))])[0]

    def _randomised_tally(self, tally: Tally, query: Query, statistic: Fraction) -> float:
        if tally.histogram or tally.noise == "kernel":
            raise UsageError("statistic: a histogram or a kernel needs the table's counts; use Session.release.")
        self.verify()
        return tally.answer(query, self.n, tally.noisy_total(tally.steps_of(query, self.n, statistic)))

    @property
    def reads(self) -> tuple[Any, ...]:
        """The sensitive statistics that are read besides the columns."""
        return self.certificate.evidence.statistics_read()

    @property
    def read_columns(self) -> dict[str, float | None]:
        """The columns whose averages they are made of, each with the value that stands for its missing entries."""
        return self.part.read_columns(self.certificate.evidence) if isinstance(self.part, AveragesPart) else {}

    def verify(self) -> None:
        """Recompute the promise; `CertificateError` unless it holds and is for what is read and drawn by this plan."""
        if self.bound != binding_of(self.model_dump(mode="json", warnings=False)):
            raise CertificateError(NOT_COVERED)
        self.certificate.verify()
        same = (self.epsilon, self.delta) == (self.certificate.epsilon, self.certificate.delta)
        if not (same and self.part.covered(self)):
            raise CertificateError(NOT_COVERED)

    def draw(self, secret: str | None = None) -> Figure:
        """A picture of the network: what is near the secret, what may show, what is remote. Needs the extra `plots`."""
        picture = self.certificate.evidence.picture(self.epsilon, secret)
        if picture is None:
            raise UsageError(f"draw: is for plans on a parameter network. Got {self.mechanism}.")
        return picture

    def entries(self, chosen: bool) -> list[dict[str, Any]]:
        """One JSON-able entry a query: what `attrpriv plan --json` prints."""
        return [self._entry(query, chosen) for query in self.queries]

    def _entry(self, query: Query, chosen: bool) -> dict[str, Any]:
        return {
            "schema_version": self.schema_version,
            "query": query.text,
            "mechanism": self.mechanism,
            "chosen": chosen,
            "n": self.n,
            "policy_digest": self.policy_digest,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "noise": self.noise_of(query).to_json(),
            "parameters": self.part.parameters_of(query, self.n),
            "error": self.error_of(query).to_json(),
            "guarantee": self.guarantee.to_json(),
            "certificate": self.certificate.to_json(),
            "model_error": [row.to_json() for row in self.model_error],
            "notes": [*self.remarks, *self.warnings],
            "budget": {"spend": self.spend, "left": self.left},
        }

    def _repr_html_(self) -> str:
        from attrpriv.notebook.html import plan_html

        return plan_html(self)

    def __str__(self) -> str:
        lines = [f"{self.mechanism}: epsilon {self.epsilon:g}, delta {self.delta:g}, n = {self.n}"]
        for query in self.queries:
            noise, error = self.noise_of(query), self.error_of(query)
            expected = "known once the view is read" if error.rmse is None else f"{error.rmse:.6g} (rmse)"
            lines.append(f"{query.text}: {noise.kind} noise {noise.scale:.6g}, expected error {expected}")
        lines += [str(self.guarantee), str(self.certificate), *(f"note: {note}" for note in self.remarks)]
        return "\n".join([*lines, *(f"warning: {line}" for line in self.warnings)])


# ----------------------------------------------------------------------------------------------------------------------------
# A plan from what a method has found: the part that draws, and the certificate that proves it. The rest follows.


def assemble(
    problem: Problem,
    mechanism: str,
    part: Part,
    certificate: Certificate,
    *,
    reference: str = "",
    kind: Literal["proved", "approximate"] = "proved",
    guarantee: Guarantee | None = None,
    queries: Sequence[Query] | None = None,
    errors: Sequence[ExpectedError] = (),
    model_error: Sequence[ModelError] = (),
    notes: Sequence[str] = (),
) -> Plan:
    """The plan, which promises what the certificate proves; `guarantee` says it where it is no promise for pairs of values."""
    said = statement(problem, certificate.delta)
    return Plan(
        mechanism=mechanism,
        queries=tuple(problem.queries if queries is None else queries),
        n=problem.n,
        epsilon=certificate.epsilon,
        delta=certificate.delta,
        policy_digest=problem.policy_digest,
        part=part,
        guarantee=guarantee or Guarantee(kind=kind, statement=said, reference=reference),
        certificate=certificate,
        errors=tuple(errors),
        model_error=tuple(model_error),
        notes=tuple(notes),
    ).of_problem(problem)
