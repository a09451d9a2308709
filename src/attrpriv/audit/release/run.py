"""Does a release keep its promise? `audit_release` tries, on tables that are made up and on public records.

    audit = audit_release(plan, session, records="census.parquet")
    print(audit)

| experiment | what is drawn | finds | is blind to |
|---|---|---|---|
| noise | many draws for one made-up table | noise of another scale or law | what comes before the noise |
| before the noise | answers of many tables, with chances by the stated noise | wrong slopes, clamps, laws | the noise |
| as released | answers of many tables, drawn as they would be released | all of it, if it is large | what is small |

What must never change: no row of the private table is read; the certificate is checked once, before the first draw.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from attrpriv.audit.model import frame_of
from attrpriv.audit.release.apart import Chance, Curve, Found, as_released, before_noise, tested, worst
from attrpriv.audit.release.bounds import conformance, least_short
from attrpriv.audit.release.chances import scores
from attrpriv.audit.release.recorded import record_worlds
from attrpriv.audit.release.result import Experiment, ReleaseAudit, Tried
from attrpriv.audit.release.stated import Asked, NotDrawn, Pair, World, worlds
from attrpriv.audit.tables import two_values
from attrpriv.audit.views import require_other_records
from attrpriv.errors import UsageError
from attrpriv.methods.base.parts import AveragesPart, TallyPart, ViewPart
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.base.tells import Scale
from attrpriv.numerics.divergences.gaussian import gaussian_delta_upper
from attrpriv.numerics.rounding import COMPUTED_DOWN
from attrpriv.numerics.search import least_epsilon
from attrpriv.policy import Policy
from attrpriv.problem.problem import Problem
from attrpriv.session.session import Session

DRAWS, TABLES, RELEASED, RECORDED = 4_000, 10_000, 5_000, 10_000


def audit_release(
    plan: Plan,
    given: Problem | Session | None = None,
    *,
    records: object = None,
    pairs: Sequence[Pair] | None = None,
    draws: int = DRAWS,
    tables: int = TABLES,
    released: int = RELEASED,
    recorded: int = RECORDED,
    error: float = 1e-6,
    seed: int = 1,
) -> ReleaseAudit:
    """Try to show that a plan breaks its promise; no row of the private table is read.

    plan      as `Session.plan` or `plan` makes it
    given     what it is a plan for: the session, or the problem. Left out: the noise alone is tried
    records   public rows, to make tables of: a file or a table. Left out: tables are made up from the stated law alone
    pairs     two values of the secret each, in its own unit, to tell apart; left out: the worst ones are looked for
    draws     of the noise; `tables` of each value before the noise, `released` of each value as released, and `recorded` of
              each value from records
    error     the chance, at most, that a right release is called broken
    seed      where the randomness begins: the same one gives the same audit

    >>> from attrpriv import Gaussian, Query, Secret
    >>> assumed = Gaussian(mean={"x": 0, "y": 0}, sd={"x": 1, "y": 1}, correlation={"x~y": 0.5}, tolerance=0)
    >>> problem = Problem(queries=(Query("avg", "y"),), secrets=(Secret("mean(x)", within=0.1),), epsilon=1, delta=1e-6, n=1000,
    ...     theta=(assumed,), resolution={"x": 0.01, "y": 0.01})
    >>> from attrpriv import plan
    >>> audit_release(plan(problem, "gaussian"), problem, draws=2000, tables=2000, released=1000).holds
    True
    """
    began = time.monotonic()
    _check(draws=draws, tables=tables, released=released, recorded=recorded)
    if not 0 < error < 0.5:
        raise UsageError(f"error: must be above 0 and below 0.5. Got {error!r}.")
    problem, policy = _given(given, plan)
    if policy is not None and records is not None:
        require_other_records(records, [policy])
    plan.verify()
    curve, reasons = Curve.of(plan.certificate), list[str]()
    asked = None if problem is None or pairs is None else _asked(problem, pairs)
    laws = [] if problem is None else _worlds(reasons, lambda: worlds(plan, problem, asked))
    if problem is None:
        reasons.append("What comes before the noise: to make tables, the audit needs the session or the problem of the plan.")
    rows = []
    if problem is not None and records is not None:
        rows = _worlds(reasons, lambda: record_worlds(plan, problem, policy, frame_of(records), asked))
    share = error / 5
    tried = [_noise(plan, draws, share, seed, reasons)]
    for tried_on, sizes in ((laws, (tables, released)), (rows, (recorded, recorded))):
        tried += _apart(plan, tried_on, curve, sizes, share, seed)
    return ReleaseAudit(
        mechanism=plan.mechanism,
        queries=tuple(query.text for query in plan.queries),
        epsilon=plan.epsilon,
        delta=plan.delta,
        error=error,
        seed=seed,
        tried=tuple(one for one in tried if one is not None),
        not_tried=tuple(reasons),
        seconds=time.monotonic() - began,
    )


def _check(**numbers: int) -> None:
    for name, number in numbers.items():
        if not isinstance(number, int) or isinstance(number, bool) or number < 100:
            raise UsageError(f"{name}: must be a whole number of at least 100. Got {number!r}.")


def _given(given: Problem | Session | None, plan: Plan) -> tuple[Problem | None, Policy | None]:
    if isinstance(given, Session):
        return given.problem([query.text for query in plan.queries]), given.policy
    if given is None or isinstance(given, Problem):
        return given, None
    raise UsageError(f"given: must be the session or the problem that the plan is for. Got a {type(given).__name__}.")


def _asked(problem: Problem, pairs: Sequence[Pair]) -> Asked:
    """Of each secret the pairs that are promised to look alike; UsageError for one that no promise is about.

    What is told of values further apart breaks nothing.
    """
    found: dict[str, list[Pair]] = {}
    scales = {secret.text: Scale.of(problem, secret) for secret in problem.secrets}
    if all(scale.promised is None for scale in scales.values()):
        raise UsageError(f"pairs: {', '.join(scales)} is hidden as a whole, not by two values. Leave them out.")
    for pair in pairs:
        low, high = sorted(two_values(pair, "pairs"))
        about = [name for name, scale in scales.items() if scale.promises(low, high)]
        if not about:
            told = "; ".join(map(str, problem.secrets))
            raise UsageError(f"pairs: must be promised to look alike ({told}). Got {low:,.10g} and {high:,.10g}.")
        for name in about:
            found.setdefault(name, []).append((low, high))
    return found


def _worlds(reasons: list[str], make: Any) -> list[World]:
    try:
        found: list[World] = make()
    except NotDrawn as why:
        reasons.append(f"{why}")
        return []
    return found


# ---------------------------------------------------------------------------------------------------------- experiments


def _noise(plan: Plan, draws: int, error: float, seed: int, reasons: list[str]) -> Tried | None:
    table = _one_table(plan)
    found = None if table is None else scores(plan, table, draws, np.random.default_rng([seed, 0]))
    if found is None:
        reasons.append("The noise by itself: this method states no law of an answer given one table.")
        return None
    each = error / found.shape[1]
    results = [conformance(found[:, k]) for k in range(found.shape[1])]
    worst_one = min(results, key=lambda one: one.p_value)
    broken = worst_one.p_value < each
    short = f"noise that is {least_short(draws, each):.1%} too small would have been seen nine times in ten"
    short = f"; {short} (by the law of normal noise)." if plan.noise_of(plan.queries[0]).kind != "kernel" else "."
    told = (
        f"{draws:,} draws do not follow the certificate's law: their spread is {worst_one.spread:.1%} of its own."
        if broken
        else f"{draws:,} draws follow the certificate's law{short}"
    )
    return Tried(experiment="noise", on="one made-up table", draws=draws, broken=broken, told=told)


def _one_table(plan: Plan) -> Any:
    """What a plan reads of a table that nobody has: each average in the middle, all rows of one category."""
    part = plan.part
    if isinstance(part, ViewPart):
        return None
    if isinstance(part, TallyPart):
        tally = part.tally
        rows = plan.n // 2
        cells = [rows if k == 0 else (plan.n - rows if k == 1 else 0) for k in range(len(tally.cells))]
        return cells, _half(tally.categories, plan)
    if isinstance(part, AveragesPart):
        centres = {read.column: read.centre for read in plan.reads}
        own = [sum(column.clip) / 2 if column.clip is not None else 0.0 for column in part.columns]
        averages = [*own, *(centres.get(column, 0.0) for column in plan.read_columns)]
        return [Fraction(x) for x in averages], _half(part.categories, plan)
    return None


def _half(categories: Sequence[Any], plan: Plan) -> list[int]:
    """As many rows in the secret's categories as the middle of its values has, where a plan says which these are."""
    if not categories:
        return []
    pairs = getattr(plan.certificate.evidence, "pairs", None)
    inside = plan.n // 2 if pairs is None else (pairs.low + pairs.high) // 2
    first = next((k for k, one in enumerate(categories) if one.member), 0)
    other = next(k for k, one in enumerate(categories) if not one.member and k != first)
    return [inside if k == first else plan.n - inside if k == other else 0 for k in range(len(categories))]


def _apart(
    plan: Plan, laws: Sequence[World], curve: Curve, sizes: tuple[int, int], error: float, seed: int
) -> list[Tried | None]:
    """Both experiments on tables of two values of the secret, at the law and the pair that looks worst."""
    if not laws:
        return []
    before, after = before_noise(plan), as_released(plan)
    target = worst(laws, before or after, curve, seed)
    ways: list[tuple[Experiment, Chance | None, int]] = [
        ("before the noise", before, sizes[0]),
        ("as released", after, sizes[1]),
    ]
    return [
        _tried(plan, name, tested(target, look, curve, size, error, seed), curve)
        for name, look, size in ways
        if look is not None
    ]


def _tried(plan: Plan, name: Experiment, found: Found, curve: Curve) -> Tried:
    from scipy.special import ndtri

    broken = found.least > found.allowed or found.apart > curve.apart
    mu = 2 * float(ndtri(min(found.right, COMPUTED_DOWN)))
    epsilon = least_epsilon(lambda e: gaussian_delta_upper(e, mu), plan.delta, close=1e-4) if plan.delta and mu > 0 else None
    low, high = found.target.pair
    where = f"{found.target.world.secret} {low:g} or {high:g}, {found.target.world.label}"
    seen = min(1.0, (1 + found.seen) / 2)
    told = f"a guess is right at least {found.right:.1%} of the time, and the promise allows {curve.right:.1%} at most" + (
        f" (distance mu {mu:.3g} at least: with normal laws, epsilon {epsilon:.3g})." if epsilon else "."
    )
    if broken and found.apart <= curve.apart:
        told = (
            f"an event is likelier by {found.least:.3g} than e^{found.epsilon:.3g} times its chance for the other value, "
            f"and the promise allows {found.allowed:.3g}."
        )
    if not broken:
        told = (
            f"a guess was shown to be right {found.right:.1%} of the time at least; the promise allows {curve.right:.1%} at "
            f"most. From {seen:.1%} on, it would have been seen."
        )
    return Tried(
        experiment=name,
        on=where,
        draws=found.tables,
        broken=broken,
        right=found.right,
        allowed=curve.right,
        seen=seen,
        mu=mu,
        epsilon=None if epsilon is None or not math.isfinite(epsilon) else epsilon,
        told=told,
    )
