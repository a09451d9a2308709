"""`transport` under records: what the secret tells of a sum is taken back by quantiles (docs/theory/recorded-laws.md).

Little noise comes first, as much as it takes for every law listed; then the kernel of the table's own secret moves the noisy
sum, so that under the first law all values of the secret give one law.
"""

from __future__ import annotations

from attrpriv.cases.recorded import RecordedCase, RecordedSecret, recorded_case
from attrpriv.errors import UsageError
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.base.tally import TallyCategory
from attrpriv.methods.recorded.plan import finished, floor, gridless, stored
from attrpriv.methods.recorded.proof import shift_of
from attrpriv.methods.recorded.transport_proof import RecordedShareTransportEvidence, RecordedTransportEvidence
from attrpriv.numerics.calibration.recorded_kernel import least_transport_scale
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, no_delta, refusal_of, refusing
from attrpriv.queries.conditions import columns_of

# The least noise, as a share of the sum's own standard deviation: it costs next to nothing, and kernels stay small.
_FLOOR = 0.05
# Kernels for more values of a secret take minutes.
AUTO_SECRETS = 3000
_NOTES = (
    "the secret is read too: what it tells of the answer, by the first law listed, is taken back.",
    "errors and intervals are over tables like those of the laws listed; for other tables they can be larger.",
)


def plan(problem: Problem) -> Plan:
    """The least noise that lets the kernel hide the secret under every law listed."""
    if problem.delta == 0:
        raise no_delta()
    case = recorded_case(problem)
    secret = _only(case)
    by_count = secret.secrets.kind == "share"
    evidence_of = RecordedShareTransportEvidence if by_count and case.asked.event is None else RecordedTransportEvidence
    with refusing(UsageError, to=lambda error: refusal_of(error, name="records")):
        scale = least_transport_scale(
            secret.laws, problem.n, secret.secrets, *gridless(problem), least=floor(case, _FLOOR), shift_of=shift_of
        )
    hidden = secret.hidden
    evidence = evidence_of(
        **stored(case), scale=scale, hidden=hidden.name, hidden_unit=str(hidden.unit), hidden_fill=hidden.fill
    )
    spread = evidence.spread()
    return finished(case, "transport", evidence, spread.error(), spread.tail, _NOTES, _categories(secret) if by_count else ())


def _only(case: RecordedCase) -> RecordedSecret:
    """The secret, where it is one, and can be read in the same pass."""
    if len(case.checks) != 1 or len(case.theta) != 1:
        raise Refusal(
            Cause.SECRET,
            "takes back one secret under one assumption; name more public files under further.",
            needs=("one secret under one assumption", "mechanism gaussian"),
        )
    (secret,) = case.checks
    hidden, asked = secret.hidden, case.asked
    if asked.event is not None and hidden.event is None:
        raise Refusal(
            Cause.STATISTIC,
            f"a count behind {secret.text} is not moved: counts and averages are read in different passes.",
            needs=("mechanism gaussian", "a count or a share as the secret"),
        )
    if asked.column is not None and asked.column == hidden.column:
        raise Refusal(
            Cause.STATISTIC,
            f"{asked.column} is the hidden column itself: nothing of its average would be left.",
            needs="mechanism gaussian",
        )
    filled = set(columns_of(hidden.event)) & set(case.problem.missing) if hidden.event is not None else set()
    if filled and asked.event is None:
        raise Refusal(
            Cause.PUBLIC_FACT,
            f"missing entries of {', '.join(sorted(filled))} are not replaced where rows of the secret are counted.",
            needs=("no value under missing for the hidden column", "mechanism gaussian"),
        )
    return secret


def _categories(secret: RecordedSecret) -> tuple[TallyCategory, ...]:
    """Rows that the secret counts, and all others."""
    where = secret.hidden.name
    return (TallyCategory(name=where, where=where, member=True), TallyCategory(name="others", where=None, member=False))


def too_slow(problem: Problem) -> str | None:
    """The number of values of a secret up to which `auto` makes kernels."""
    try:
        secret = _only(recorded_case(problem))
    except Refusal:
        return None
    return f"{AUTO_SECRETS:,} values of the secret" if secret.secrets.high - secret.secrets.low > AUTO_SECRETS else None
