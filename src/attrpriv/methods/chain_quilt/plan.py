"""`chain_quilt`: each entry of a column that is a Markov chain is hidden by whole-number Laplace noise (Song et al. 2017).

    scale = width * max over theta and i of  min over quilts Q of  |N| / (epsilon - e(Q | X_i))

`width` is how far one entry can move what is released: 1 for a count with a filter, the range of the states for a sum (in steps
of their common unit), 2 for a histogram. Pure epsilon; nothing but the chain's own column may be asked about. The proof is in
docs/theory/chain-quilt.md.

After earlier releases, of rate r (the sum of their width/scale), the scale is width/(1/score - r), where the score is that of a
target: what the earlier ones lose, and the share of the rest that this one may spend. Rates below 1/score are just those that
lose at most the target, with the best quilt of each node for everything released.
"""

from __future__ import annotations

import math
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from attrpriv.assumptions.chain import Chain
from attrpriv.cases.chain_layout import chain_assumptions, chain_of, chain_tally, require_entries
from attrpriv.cases.lattice import one_query
from attrpriv.errors import UsageError
from attrpriv.frozen import FrozenModel, NonNegative, Positive
from attrpriv.methods.base.accuracy import PURE, ModelError, Profile
from attrpriv.methods.base.certificate import Certificate
from attrpriv.methods.base.evidence import Counted, Evidence, LaplaceEvidence, LaplaceTerm
from attrpriv.methods.base.parts import TallyPart
from attrpriv.methods.base.plan import Plan, assemble
from attrpriv.methods.base.tally import Tally
from attrpriv.methods.base.tally_plan import additive_error
from attrpriv.methods.chain_quilt.model_error import chain_model_error
from attrpriv.numerics.calibration.chain_quilt import ChainScore, chain_loss, chain_score
from attrpriv.numerics.laws.markov import MarkovChain
from attrpriv.numerics.rounding import ROUNDED_UP, SOLVED_UP
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, refusing

_REFERENCE = "docs/theory/chain-quilt.md"
# Of a smaller share of the rate nothing is left but rounding.
_LEAST_LEFT = 1e-6


def plan(problem: Problem) -> Plan:
    """The published mechanism, with a full search over quilts."""
    chains = chain_of(problem)
    require_entries(problem, chains[0])
    query = one_query(problem)
    tally = chain_tally(problem, chains[0], query)
    if not tally.width:
        raise Refusal(
            Cause.STATISTIC,
            f"{query.text} does not depend on the entries.",
            needs="a statistic of the chain's column",
            query=query.text,
        )
    members = _members(chains)
    earlier = _earlier(problem, chains[0])
    scores = _scores(problem, members, earlier)
    if not max(score.sigma for score in scores):
        raise Refusal(
            Cause.PROMISE, "assume: every entry has a single possible state; there is nothing to hide.", needs="several states"
        )
    scale = _scale(tally.width, max(score.sigma for score in scores) * SOLVED_UP, earlier)
    if problem.individuals is not None:
        scale = max(scale, tally.width / problem.individuals * SOLVED_UP)
    return _plan(problem, chains, tally.model_copy(update={"noise": "laplace", "scale": scale}), members, scores)


def _members(chains: tuple[Chain, ...]) -> tuple[MarkovChain, ...]:
    """Theta, where it is a list of chains with numbers."""
    found = [member for chain in chains for member in chain.members]
    known = tuple(member for member in found if isinstance(member, MarkovChain))
    if len(known) < len(found) or chains[0].longest is not None:
        raise Refusal(
            Cause.NUMBERS,
            "is for one chain whose start and matrix are numbers; laplace takes others.",
            needs="mechanism laplace",
        )
    return known


def _earlier(problem: Problem, chain: Chain) -> ChainEvidence | None:
    """The evidence of what was released before, about the same entries."""
    earlier = ChainEvidence.read(problem.earlier)
    if earlier is None and problem.earlier is not None:
        raise Refusal(Cause.EARLIER, "continues releases of chain_quilt; what was released before is of another kind.")
    if earlier is not None and (earlier.column, earlier.length) != (chain.column, problem.n):
        raise Refusal(
            Cause.EARLIER,
            "continues releases about the same entries; the column, or the number of rows, was another one before.",
            needs="the same entries",
        )
    return earlier


def _target(problem: Problem, members: tuple[MarkovChain, ...], earlier: ChainEvidence | None) -> float:
    """What everything released may lose after this: computed again, only the noise that was drawn is taken as given."""
    used = 0.0 if earlier is None else max(_used(problem, member, earlier) for member in members)
    if not used <= problem.epsilon:
        raise Refusal(
            Cause.EARLIER,
            f"the earlier releases together may lose {used:.6g} already, above epsilon {problem.epsilon:g}.",
            needs="a larger epsilon",
        )
    return min(problem.epsilon, used + problem.spend * (problem.epsilon - used))


def _used(problem: Problem, member: MarkovChain, earlier: ChainEvidence) -> float:
    """What the earlier releases lose under one chain; quilts are those used before, or of a chain that is new, its own."""
    shapes = [shape for check in earlier.checks if check.chain == member for shape in check.shapes]
    shapes = shapes or list(chain_score(member, problem.n, problem.epsilon).shapes)
    return chain_loss(member, problem.n, earlier.rate(), shapes)


def _scale(width: int, sigma: float, earlier: ChainEvidence | None) -> float:
    if earlier is None:
        return width * sigma
    left = 1 / sigma - earlier.rate()
    if not left * sigma > _LEAST_LEFT:
        raise Refusal(
            Cause.EARLIER, "the earlier releases leave nothing of the budget. What was answered is answered again at no cost."
        )
    return width / left


def _scores(problem: Problem, members: tuple[MarkovChain, ...], earlier: ChainEvidence | None) -> tuple[ChainScore, ...]:
    with refusing(UsageError, to=lambda error: Refusal(Cause.NUMBERS, str(error))):
        target = _target(problem, members, earlier)
        return tuple(chain_score(member, problem.n, target) for member in members)


def _plan(
    problem: Problem, chains: tuple[Chain, ...], tally: Tally, members: tuple[MarkovChain, ...], scores: tuple[ChainScore, ...]
) -> Plan:
    worst = max(range(len(scores)), key=lambda k: scores[k].sigma)
    evidence = _evidence(problem, tally, members, scores)
    certificate = Certificate(
        epsilon=problem.epsilon,
        delta=problem.delta,
        evidence=evidence,
        individuals=_rows(problem, tally),
        assumes=chain_assumptions(problem, chains),
        exact=scores[worst].exact,
    )
    certificate.verify()
    found = scores[worst]
    shown = {"score": found.sigma, "node": found.node, "quilt": list(found.nodes), "influence": found.influence}
    noisy = tally.model_copy(update={"parameters": {**shown, "near": found.near, "sensitivity": tally.width}})
    return assemble(
        problem,
        "chain_quilt",
        TallyPart(tally=noisy),
        certificate,
        reference=_REFERENCE,
        errors=tuple(additive_error(problem, noisy, query) for query in problem.queries),
        model_error=evidence.model_error(problem.epsilon, problem.delta),
        notes=(
            *_notes(problem, chains[0], found, sum(score.skipped > 0 for score in scores), max(s.skipped for s in scores)),
            *_joint_notes(evidence),
        ),
    )


def _evidence(
    problem: Problem, tally: Tally, members: tuple[MarkovChain, ...], scores: tuple[ChainScore, ...]
) -> ChainEvidence:
    checks = tuple(
        ChainCheck(
            theta=k,
            chain=member,
            shapes=score.shapes,
            node=score.node,
            quilt=score.quilt,
            influence=score.influence,
            near=score.near,
            score=score.sigma,
        )
        for k, (member, score) in enumerate(zip(members, scores, strict=True))
    )
    column = chain_of(problem)[0].column
    before = ChainEvidence.read(problem.earlier)
    earlier = 0.0 if before is None else before.rate()
    return ChainEvidence(
        checks=checks, column=column, length=problem.n, width=float(tally.width), scale=tally.scale, earlier=earlier
    )


def _rows(problem: Problem, tally: Tally) -> LaplaceEvidence | None:
    """The same noise protects single rows: one row moves everything released by at most the width."""
    if problem.individuals is None:
        return None
    # whole numbers: the grid of the noise is the grid of the answer, and costs nothing
    term = LaplaceTerm(column=problem.queries[0].text, sensitivity=float(tally.width), scale=tally.scale, granularity=5e-324)
    return LaplaceEvidence(epsilon=problem.individuals, terms=(term,))


def _notes(problem: Problem, chain: Chain, found: ChainScore, chains: int, skipped: int) -> tuple[str, ...]:
    quilt = " and ".join(f"row {node}" for node in found.nodes) or "nothing: all entries count as near"
    notes = [f"row {found.node} needs the most noise; what separates it from the rest is {quilt} ({found.near} near entries)."]
    if chains:
        notes.append(f"{skipped} of {problem.n} entries of {chain.column} have a single possible state, and are skipped.")
    notes.append("whole numbers: the answer is the count plus whole-number noise, and may be below 0 or above n.")
    return tuple(notes)


def _joint_notes(evidence: ChainEvidence) -> tuple[str, ...]:
    if not evidence.earlier:
        return ()
    return (f"all releases together, this one included, lose {evidence.loss():.6g} at most.",)


# ----------------------------------------------------------------------------------------------------------------------------
# The evidence that each entry of a Markov chain is hidden: quilts that cover every node (docs/theory/chain-quilt.md).
#
#     loss = max over theta and i of  min over the stored quilts Q of   e(Q | X_i) + rate |N|
#
# The rate is the sum of width/scale over this release and all earlier ones, of which no more is kept: `earlier`. What must
# never change: the loss is recomputed from the stored chains over all nodes, rounded up; nothing is taken from the search
# that found the quilts. More quilts can only lower it, and the empty one is always among them. Each node has *one* quilt for
# everything released; losses that were reached with different quilts do not add up.


Distance = Annotated[int, Field(ge=0)]


class ChainCheck(FrozenModel):
    """One member of Theta: the chain, the quilts that are used, and the node that needs the most noise."""

    theta: int = Field(ge=0)
    chain: MarkovChain
    shapes: tuple[tuple[Distance, Distance], ...] = Field(
        description="quilts {X_(i-a), X_(i+b)} as (a, b); 0: no entry on that side"
    )
    node: int = Field(ge=1, description="the node that needs the most noise")
    quilt: tuple[Distance, Distance]
    influence: NonNegative
    near: int = Field(ge=0)
    score: NonNegative


class ChainEvidence(Evidence):
    """Whole-number Laplace noise on a statistic that one entry moves by at most `width`."""

    words: ClassVar[str] = "a release about a chain"
    room: ClassVar[str] = "List further matrices under transition, or laws under initial."
    goes_on: ClassVar[bool] = True
    told_by: ClassVar[Profile] = PURE
    kind: Literal["chain"] = "chain"
    checks: tuple[ChainCheck, ...] = Field(min_length=1)
    column: str = Field(description="the column whose entries are the chain; nothing else is read")
    length: int = Field(ge=2, description="the number of entries: the rows of the table")
    width: Positive
    scale: Positive
    earlier: NonNegative = Field(default=0.0, description="the sum of width/scale over all releases before this, rounded up")

    def delta(self, epsilon: float) -> float:
        return 0.0 if self.loss() <= epsilon else 1.0

    def loss(self) -> float:
        """The largest loss of any entry under any member, from above, by everything released."""
        rate = self.rate()
        if not (math.isfinite(rate) and rate > 0):
            return math.inf
        return max(chain_loss(check.chain, self.length, rate, check.shapes) for check in self.checks)

    def describe(self) -> tuple[str, ...]:
        return tuple(
            f"worst entry, chain {check.theta + 1}: row {check.node}; {check.near} near; influence {check.influence:.6g}"
            for check in self.checks
        )

    def model_error(self, epsilon: float, delta: float) -> tuple[ModelError, ...]:
        return chain_model_error(self)

    def rate(self) -> float:
        """The sum of width/scale over this release and all before it, from above."""
        own = self.width / self.scale * ROUNDED_UP
        return math.nextafter(self.earlier + own, math.inf) if self.earlier else own

    def spent(self, epsilon: float, delta: float) -> float:
        """The share of the budget that everything released so far uses: the loss over epsilon, from above."""
        loss = self.loss()
        share = math.nextafter(loss / epsilon, math.inf)
        return min(1.0, share) if loss <= epsilon else share

    def follows(self, earlier: object | None) -> bool:
        """Whether what it counts as released before is what this evidence is about, and all that came before that."""
        if earlier is None:
            return self.earlier == 0
        past = ChainEvidence.read(earlier)
        return past is not None and (self.column, self.length, self.earlier) == (past.column, past.length, past.rate())

    def covers_tally(self, told: Counted) -> bool:
        drawn = (told.noise, told.scale, float(told.width), told.n)
        return told.reads == {self.column} and drawn == ("laplace", self.scale, self.width, self.length)
