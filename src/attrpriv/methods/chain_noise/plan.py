"""`laplace` under a chain: each entry is hidden by whole-number Laplace noise, calibrated by the ratio recursion.

    scale = 1/(spend a),  a the largest with  loss(r + a |values(s) - values(t)|) <= epsilon;  r what was released before

A share of the budget is a share of what one entry may still cost: ten releases of one share each have the same noise. With
three or more states a quilt may be better: the loss is the lesser of both (docs/theory/chain-ratio.md). Nothing but the chain's
own column may be asked about.
"""

from __future__ import annotations

from dataclasses import dataclass

from attrpriv.assumptions.chain import Chain
from attrpriv.cases.chain_cost import counted_by_states, entry_values
from attrpriv.cases.chain_layout import chain_assumptions, chain_of, chain_tally, longest_of, require_entries
from attrpriv.cases.lattice import one_query
from attrpriv.errors import UsageError
from attrpriv.methods.base.certificate import LEAST_LEFT, Certificate
from attrpriv.methods.base.evidence import LaplaceEvidence, LaplaceTerm, words_of
from attrpriv.methods.base.parts import TallyPart
from attrpriv.methods.base.plan import Plan, assemble
from attrpriv.methods.base.tally import Tally
from attrpriv.methods.base.tally_plan import additive_error, noise_notes
from attrpriv.methods.chain_noise.proof import ChainDraw, ChainLaw, ChainNoiseEvidence, ChainSequence, rate_of, with_draw
from attrpriv.numerics.calibration.chain_curve import largest_rate
from attrpriv.numerics.calibration.chain_quilt import chain_score
from attrpriv.numerics.divergences.ratio_step import EXACT_VALUES
from attrpriv.numerics.laws.markov import MarkovChain
from attrpriv.numerics.rounding import COMPUTED_DOWN, SOLVED_DOWN, SOLVED_UP
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, refusing

_REFERENCE = "docs/theory/chain-ratio.md"
# How near the noise is to the least: with exact steps, and with those that are bounds themselves.
_NEAR, _NEAR_BOUND = 1e-9, 5e-4


def plan(problem: Problem) -> Plan:
    """The least noise with which everything released keeps each entry hidden."""
    standing = ChainStanding.of(problem)
    query = one_query(problem)
    chain = standing.chains[0]
    tally = counted_by_states(problem, chain, chain_tally(problem, chain, query))
    values = entry_values(problem, chain, tally)
    if not tally.width or (values is not None and len(set(values)) < 2):
        raise Refusal(
            Cause.STATISTIC,
            f"{query.text} does not depend on the entries.",
            needs="a statistic of the chain's column",
            query=query.text,
        )
    _require_rows(problem, chain)
    draw = ChainDraw(statistic=query.text, identity=tally.identity, values=values, width=tally.width, rate=1.0)
    with refusing(UsageError, to=lambda error: Refusal(Cause.NUMBERS, str(error))):
        scale = standing.least_scale(draw)
    if problem.individuals is not None:
        scale = max(scale, tally.width / problem.individuals * SOLVED_UP)
    return _plan(standing, tally.model_copy(update={"noise": "laplace", "scale": scale}), draw)


def _require_rows(problem: Problem, chain: Chain) -> None:
    if chain.longest is not None and problem.individuals is not None:
        raise Refusal(
            Cause.PERSONS,
            "individuals: is about single rows; of a person who has several (longest), it would say nothing. Leave it out.",
            needs="no individuals",
        )


@dataclass(frozen=True)
class ChainStanding:
    """What was released before about the entries, and what it loses under this policy."""

    problem: Problem
    chains: tuple[Chain, ...]
    past: tuple[ChainDraw, ...]
    checks: tuple[ChainLaw, ...]
    used: float

    @classmethod
    def of(cls, problem: Problem) -> ChainStanding:
        chains = chain_of(problem)
        require_entries(problem, chains[0])
        past = _past(problem, chains[0])
        members = [member for chain in chains for member in chain.members]
        checks = tuple(ChainLaw(theta=k, chain=member) for k, member in enumerate(members))
        with refusing(UsageError, to=lambda error: Refusal(Cause.NUMBERS, str(error))):
            bare = cls(problem, chains, past, checks, 0.0)
            if all(check.nothing(bare.length) for check in checks):
                raise Refusal(
                    Cause.PROMISE,
                    "assume: every entry has a single possible state; there is nothing to hide.",
                    needs="several states",
                )
            checks = tuple(_with_quilts(check, bare.length, problem.epsilon) for check in checks)
            used = cls(problem, chains, past, checks, 0.0).loss(past)
        if not used <= problem.epsilon * (1 - LEAST_LEFT):
            raise Refusal(
                Cause.EARLIER,
                f"the earlier releases together may lose {used:.6g} of epsilon {problem.epsilon:g}: nothing is left. What was "
                "answered is answered again at no cost.",
                needs="a larger epsilon",
            )
        return cls(problem, chains, past, checks, used)

    @property
    def length(self) -> int:
        return longest_of(self.problem, self.chains[0])

    @property
    def near(self) -> float:
        exact = all(check.chain.states <= EXACT_VALUES for check in self.checks)
        return _NEAR if exact else _NEAR_BOUND

    def loss(self, drawn: tuple[ChainDraw, ...]) -> float:
        """What any entry loses, from above."""
        return max(check.loss(self.length, drawn) for check in self.checks) if drawn else 0.0

    def least_scale(self, draw: ChainDraw) -> float:
        """The least noise on this statistic, nearly, with which everything loses at most epsilon; for a share of that, more."""

        def loss(rate: float) -> float:
            return self.loss(with_draw(self.past, draw.model_copy(update={"rate": rate_of(1 / rate)})))

        most = self.problem.epsilon * COMPUTED_DOWN
        high = most / draw.width
        low = (most - self.used) / (self.length * draw.width) * SOLVED_DOWN
        for _ in range(40):
            if not self.past or loss(low) <= most:  # all entries as one group
                return 1 / largest_rate(loss, most, low, max(high, 2 * low), self.near) / self.problem.spend
            low /= 8
        raise Refusal(
            Cause.EARLIER, "the earlier releases leave nothing of the budget. What was answered is answered again at no cost."
        )

    def facts(self) -> dict[str, object]:
        """What evidence says beside what is drawn now."""
        chain = self.chains[0]
        return {
            "column": chain.column,
            "states": tuple(map(str, chain.states)),
            "n": self.problem.n,
            "longest": self.length,
            "past": self.past,
            "checks": self.checks,
        }


def _with_quilts(check: ChainLaw, length: int, epsilon: float) -> ChainLaw:
    """With the quilts that hide entries at this epsilon. With two states they are never better than the recursion."""
    if not isinstance(check.chain, MarkovChain) or check.chain.states < 3:
        return check
    try:
        return check.model_copy(update={"shapes": chain_score(check.chain, length, epsilon).shapes})
    except UsageError:  # too long to be searched; the recursion stands
        return check


def _past(problem: Problem, chain: Chain) -> tuple[ChainDraw, ...]:
    """What was released before, about the same entries."""
    if problem.earlier is None:
        return ()
    earlier = ChainSequence.read(problem.earlier)
    if earlier is None:
        raise Refusal(Cause.EARLIER, f"continues releases of its own kind; before it came {words_of(problem.earlier)}.")
    mine = (chain.column, tuple(map(str, chain.states)), problem.n, longest_of(problem, chain))
    if earlier.entries != mine:
        raise Refusal(
            Cause.EARLIER,
            "continues releases about the same entries; the column, its states or the number of rows was another one before.",
            needs="the same entries",
        )
    return earlier.after()


def _plan(standing: ChainStanding, tally: Tally, draw: ChainDraw) -> Plan:
    problem = standing.problem
    evidence = ChainNoiseEvidence.model_validate(
        {**standing.facts(), "now": draw.model_copy(update={"rate": rate_of(tally.scale)})}
    )
    certificate = Certificate(
        epsilon=problem.epsilon,
        delta=problem.delta,
        evidence=evidence,
        individuals=_rows(problem, tally),
        assumes=chain_assumptions(problem, standing.chains),
        exact=False,
    )
    certificate.verify()
    noisy = tally.model_copy(update={"parameters": {"sensitivity": tally.width, "entry": tally.width / tally.scale}})
    return assemble(
        problem,
        "laplace",
        TallyPart(tally=noisy),
        certificate,
        reference=_REFERENCE,
        errors=tuple(additive_error(problem, noisy, query) for query in problem.queries),
        model_error=evidence.model_error(problem.epsilon, problem.delta),
        notes=(*_notes(evidence), *noise_notes(noisy)),
    )


def _rows(problem: Problem, tally: Tally) -> LaplaceEvidence | None:
    """The same noise protects single rows: one row moves everything released by at most the width."""
    if problem.individuals is None:
        return None
    # whole numbers: the grid of the noise is the grid of the answer, and costs nothing
    term = LaplaceTerm(column=problem.queries[0].text, sensitivity=float(tally.width), scale=tally.scale, granularity=5e-324)
    return LaplaceEvidence(epsilon=problem.individuals, terms=(term,))


def _notes(evidence: ChainNoiseEvidence) -> tuple[str, ...]:
    own = f"one entry alone costs {evidence.now.rate * evidence.now.width:.6g} at most; its neighbours tell the rest."
    if not evidence.past:
        return (own,)
    return own, f"all releases together, this one included, lose {evidence.loss():.6g} at most."
