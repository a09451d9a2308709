"""What holds if the stated probabilities are off: the real epsilon of a plan for counts, from above.

Every probability may be larger or smaller by a share x of itself, beyond its interval.

| evidence | bound |
|---|---|
| Laplace noise | its exact loss over the wider box; of several releases, their loss together |
| other noise, with delta | the laws of the noisy answers over the wider box: of all pairs at once, or pair by pair |
| a kernel that sees the count | its loss at the corner of the wider box |
| a coupling or a transport, which read the secret | the wider box, cell by cell (`numerics.calibration.box_loss`) |
| the same with noise, under intervals | all vertices of the wider box (`methods.count_transport.hybrid`) |
| mixtures over a network's parameter | a mass moves by a share x at most (below) |

*A mass that moves by a share x.* If P' <= (1 + x) P and Q' >= (1 - x) Q at every output, then with s = log (1 + x)/(1 - x)

    P'(T) - e^(eps + s) Q'(T)  <=  (1 + x) (P(T) - e^eps Q(T)),      so H_(eps + s)(P' || Q') <= (1 + x) H_eps(P || Q).

The same with n rows of which each moves by a share bounds every kernel, whatever it reads. Sets of counts hidden by their
mixture are not covered: both the prior and the laws would move, and no bound on that is at hand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from attrpriv.errors import AttrprivError
from attrpriv.methods.base.accuracy import ModelError, off_by
from attrpriv.methods.count_noise.proof import CountCheck, CountDirectEvidence, CountLaplaceEvidence, WassersteinEvidence
from attrpriv.methods.count_transport.hybrid import hybrid_loss, transport_box_loss
from attrpriv.methods.count_transport.proof import CountHybridEvidence, CountTransportEvidence
from attrpriv.methods.count_transport.target import transport_bounds
from attrpriv.methods.laplace_sequence.proof import CountSequenceEvidence, SequenceCheck
from attrpriv.methods.optimal.proof import CouplingEvidence, KernelEvidence
from attrpriv.methods.parameter_counts.proof import (
    ParameterKernelEvidence,
    ParameterNoiseEvidence,
    ParameterWassersteinEvidence,
)
from attrpriv.numerics.calibration.box_loss import box_loss
from attrpriv.numerics.calibration.direct import added_noise, direct_delta
from attrpriv.numerics.calibration.kernel import kernel_loss_upper
from attrpriv.numerics.calibration.laplace import laplace_loss
from attrpriv.numerics.calibration.pair_families import Events, family_of
from attrpriv.numerics.calibration.parameter_counts import parameter_kernel_loss, parameter_loss
from attrpriv.numerics.laws.records import CountPairs, Interval01, Number, RecordLaws
from attrpriv.numerics.rounding import COMPUTED_DOWN, COMPUTED_UP, SOLVED_UP
from attrpriv.numerics.search import least_epsilon

Real = Callable[[float], float]
# The bound for all pairs at once is used where it exceeds the promise by no more than this share.
_COARSE = 0.02


def count_model_error(evidence: object, epsilon: float = 0.0, delta: float = 0.0) -> tuple[ModelError, ...]:
    """The real epsilon at each error, for what was promised at (epsilon, delta); nothing where no bound is known."""
    real = _real(evidence, epsilon, delta)
    return () if real is None else off_by(real)


def _real(evidence: object, epsilon: float, delta: float) -> Real | None:
    if isinstance(evidence, CountLaplaceEvidence):
        return partial(_laplace, evidence)
    if isinstance(evidence, CountSequenceEvidence):
        return partial(_sequence, evidence)
    if isinstance(evidence, CountDirectEvidence | WassersteinEvidence):
        return _Noisy(evidence, epsilon, delta).real
    if isinstance(evidence, KernelEvidence):
        return partial(_kernel, evidence)
    if isinstance(evidence, CouplingEvidence):
        return partial(_coupling, evidence)
    if isinstance(evidence, CountTransportEvidence):
        return partial(_transport, evidence)
    if isinstance(evidence, CountHybridEvidence):
        return partial(_hybrid, evidence)
    if isinstance(evidence, ParameterNoiseEvidence | ParameterWassersteinEvidence | ParameterKernelEvidence):
        return partial(_parameter, evidence, delta)
    return None


def _attempt(compute: Callable[[], float]) -> float:
    try:
        return compute()
    except AttrprivError:
        return math.inf


# ------------------------------------------------------------------------------------------------------------------ noise


def _laplace(evidence: CountLaplaceEvidence, off: float) -> float:
    wider = [check.model_copy(update={"records": widened(check.records, off)}) for check in evidence.checks]
    return _attempt(evidence.model_copy(update={"checks": tuple(wider)}).loss)


def _sequence(evidence: CountSequenceEvidence, off: float) -> float:
    def wider(check: SequenceCheck) -> SequenceCheck:
        laws = tuple(None if law is None else widened(law, off) for law in check.laws)
        joint = tuple(one.model_copy(update={"atoms": widened(one.atoms, off)}) for one in check.joint)
        return check.model_copy(update={"laws": laws, "joint": joint})

    return _attempt(evidence.model_copy(update={"checks": tuple(map(wider, evidence.checks))}).loss)


class _Noisy:
    """Whole-number noise on a count or a sum, whatever it was found by."""

    def __init__(self, evidence: CountDirectEvidence | WassersteinEvidence, epsilon: float, delta: float) -> None:
        self.evidence, self.epsilon, self.delta = evidence, epsilon, delta
        self._coarse: dict[int, bool] = {}

    @property
    def real(self) -> Real | None:
        """None where nothing is known: sums with noise whose loss is not bounded by itself."""
        if self.evidence.noise != "laplace" and not all(check.records.binary for check in self.evidence.checks):
            return None
        return lambda off: max(self._of(k, check, off) for k, check in enumerate(self.evidence.checks))

    def _of(self, index: int, check: CountCheck, off: float) -> float:
        wider = widened(check.records, off)
        pure = math.inf
        if self.evidence.noise == "laplace":
            pure = _attempt(lambda: laplace_loss(wider, check.pairs.apart, self.evidence.scale).upper)
        if not self.delta or not check.records.binary:
            return pure
        return min(pure, _attempt(lambda: self._with_delta(index, check, off)))

    def _with_delta(self, index: int, check: CountCheck, off: float) -> float:
        if index not in self._coarse:
            self._coarse[index] = self._at_once(check, 0.0) <= self.epsilon * (1 + _COARSE)
        return self._at_once(check, off) if self._coarse[index] else self._pair_by_pair(check, off)

    def _at_once(self, check: CountCheck, off: float) -> float:
        """Independent rows that two laws have in common only help: what all pairs have in common is kept, the rest dropped."""
        family = family_of(widened(check.records, off), check.pairs, self.evidence.known)
        if not isinstance(family, Events):
            return math.inf
        reached = family.curve(family.range, added_noise(self.evidence.noise, self.evidence.scale))
        return least_epsilon(reached, self.delta, start=self.epsilon)

    def _pair_by_pair(self, check: CountCheck, off: float) -> float:
        wider, evidence = widened(check.records, off), self.evidence

        def reached(epsilon: float) -> float:
            found = direct_delta(
                wider, check.pairs, evidence.noise, evidence.scale, epsilon, known=evidence.known, enough=self.delta
            )
            return found.upper

        return least_epsilon(reached, self.delta, start=self.epsilon, close=0.01)


# ------------------------------------------------------------------------------------------------------------ kernels


def _kernel(evidence: KernelEvidence, off: float) -> float:
    corner = math.inf
    if evidence.records.binary:
        wider = widened(evidence.records, off)
        corner = _attempt(lambda: kernel_loss_upper(evidence.weights, wider, evidence.pairs, "corner"))
    if not evidence.records.exact:
        return corner
    loss = _attempt(lambda: kernel_loss_upper(evidence.weights, evidence.records, evidence.pairs, evidence.family))
    return min(corner, loss + moved(evidence.records, evidence.pairs, off))


def _coupling(evidence: CouplingEvidence, off: float) -> float:
    """The very slices that are drawn from, where the rows follow another law."""
    sources, targets, records, pairs = evidence.sources, evidence.targets, evidence.records, evidence.pairs
    loss = _attempt(evidence.loss) + moved(records, pairs, off)
    if not records.binary or evidence.shares is not None:
        return loss
    return min(loss, _attempt(lambda: box_loss(sources, targets, widened(records, off), pairs)))


def _transport(evidence: CountTransportEvidence, off: float) -> float:
    """What is drawn, where the rows follow another law: cell by cell for few rows, else by how far a mass can move."""
    transport, pairs = evidence.transport, evidence.pairs
    loss = _attempt(lambda: transport_bounds(transport).loss) + moved(transport.records, pairs, off)
    if not transport.records.binary:
        return loss
    return min(loss, _attempt(lambda: transport_box_loss(transport, widened(transport.records, off), pairs)))


def _hybrid(evidence: CountHybridEvidence, off: float) -> float:
    wider = widened(evidence.records, off)
    return _attempt(lambda: hybrid_loss(evidence.transport, wider, evidence.pairs, evidence.scale))


def moved(records: RecordLaws, pairs: CountPairs, off: float) -> float:
    """Twice the largest change of log P(F = f | a) where each probability of an exact law is off by a share of itself."""
    steps = []
    wider = widened(records, off)
    for stated, wide in ((records.member, wider.member), (records.rest, wider.rest)):
        steps.append(max(_log_change(p, low, high) for (p, _), (low, high) in zip(stated, wide, strict=True)))
    ends = (pairs.low, pairs.high)
    return 2 * max(a * steps[0] + (pairs.n - a) * steps[1] for a in ends) * SOLVED_UP


def _log_change(p: Number, low: Number, high: Number) -> float:
    """An impossible value stays impossible."""
    if p == 0:
        return 0.0 if high == 0 else math.inf
    return math.inf if low <= 0 else max(math.log(high / p), math.log(p / low)) * COMPUTED_UP


def _parameter(
    evidence: ParameterNoiseEvidence | ParameterWassersteinEvidence | ParameterKernelEvidence, delta: float, off: float
) -> float:
    """The probabilities of the counted column's parameter, given the hidden one, are off."""
    step = (math.log1p(off) - math.log1p(-off)) * SOLVED_UP
    if isinstance(evidence, ParameterKernelEvidence):
        return step + max(_attempt(partial(parameter_kernel_loss, evidence.weights, c.counts)) for c in evidence.checks)
    pure = math.inf
    if evidence.noise != "gaussian":
        pure = max(_attempt(partial(parameter_loss, check.counts, evidence.scale)) for check in evidence.checks)
    if not delta:
        return step + pure
    noisy = ParameterNoiseEvidence(event=evidence.event, checks=evidence.checks, noise=evidence.noise, scale=evidence.scale)
    return step + min(pure, _attempt(lambda: least_epsilon(noisy.delta, delta / (1 + off) * COMPUTED_DOWN)))


def widened(records: RecordLaws, off: float) -> RecordLaws:
    """Every interval wider by a share of its ends; a probability of 0 stays 0."""

    def wide(law: Sequence[Interval01]) -> tuple[Interval01, ...]:
        return tuple((float(low) * (1 - off), min(1.0, float(high) * (1 + off))) for low, high in law)

    if not off:
        return records
    if records.binary:  # of an event, its probability is off; that of its complement follows
        (_, p), (_, q) = records.member, records.rest
        return RecordLaws.event(wide((p,))[0], wide((q,))[0])
    return RecordLaws(records.values, wide(records.member), wide(records.rest))
