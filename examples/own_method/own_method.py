r"""A method and an assumption of one's own, in one file: `kantorovich` for counts, `laplace_rows` for averages.

Nothing of attrpriv is changed. Importing this module is enough in Python; with the entry point in `pyproject.toml` beside it,
installed, the command line knows both as well (docs/guide/own-method.md).

## `kantorovich`: a count, by the transport plan between its laws

After Ding's Kantorovich mechanism (`ding2022kantorovich`), for laws of counts that are stated exactly. What is used here is
proved here.

Let P and Q be the laws of F given two values of the secret that must look alike, pi a coupling of them (a transport plan from P
to Q), and Z whole-number Laplace noise, P(Z = k) proportional to e^(-|k|/b), independent of F.

*Statement.* If for every y with Q(y) > 0

    C(y) = sum over x of pi(x, y)/Q(y) e^(|x - y|/b)  <=  e^epsilon                                          (1)

then P(F + Z = z | P) <= e^epsilon P(F + Z = z | Q) for all z. If (1) holds for both directions of every pair, F + Z is
epsilon-private. *Proof.* P(Z = z - x) <= e^(|x - y|/b) P(Z = z - y), since ||z - x| - |z - y|| <= |x - y|. Therefore

    sum_x P(x) P(Z = z - x) = sum_(x,y) pi(x, y) P(Z = z - x) <= sum_y P(Z = z - y) Q(y) C(y)
                            <= e^epsilon sum_y Q(y) P(Z = z - y).  ∎

Any coupling will do; taken is the one that pairs equal quantiles, which is optimal for every convex cost on the line. The first
condition of the paper asks |x - y|/b <= epsilon wherever pi(x, y) > 0, which for this plan is the Wasserstein mechanism. (1)
follows from it and asks for less: a long way may be paid for by the short ones that end in the same y. The Kantorovich distance
alone, the *average* way over all y, would be too little: noise of that scale has a loss of 1.5 in a test, where 1 is promised.

A secret may be a set of counts or a share of the population: its law is a mixture of laws that are pairwise close, and mixtures
of these are as close.

## `laplace_rows`: an average of rows with Laplace residuals

    x_i = c + slope s_i + L_i,    L_1, ..., L_n independent of each other and of the column s, Laplace of scale lambda

with any c, a slope within stated limits and lambda at least `residual`. Recorded is x_i rounded to `spacing`. The secret is
mean(s) or sum(s); the released average gets Gaussian noise of standard deviation sigma. Nothing is assumed of s.

*Statement.* Let d be the largest |slope| times the largest difference of two means that must look alike; t in (0, 1);
T = 8; r = (spacing/2 + g)/sigma <= 0.2 with g the grid of the noise; l = T r + r^2; eta = 2.2 e^(-T^2/2);

    tail = (t e^(1-t))^n         v = 2 t residual^2/n         delta' = tail + delta_Gauss(d/sqrt(sigma^2 + v), epsilon - 2 l)

where delta_Gauss(mu, e) is the delta of two normal laws of equal variance whose means are mu standard deviations apart. The
released average is (epsilon, e^l delta' + eta (1 + e^epsilon))-private. *Proof.* A Laplace variable of scale lambda is a normal
one whose variance V_i is exponential with mean 2 lambda^2. Given V = (V_1, ..., V_n), which is independent of s, and given
mean(s) = a, the ideal average plus N(0, sigma^2) is normal with mean c + slope a and variance sigma^2 + sum(V)/n^2, and two
values of the secret only move the mean, by at most d. The hockey-stick divergence is jointly convex, so that of the mixture
is at most the expectation over V of those given V: at most P(sum(V) < 2 t n lambda^2) plus the one at that variance. The former
is a gamma tail, at most (t e^(1-t))^n by Chernoff's bound. A larger lambda only adds variance. Rounding rows moves the average
by at most spacing/2, and the grid by at most a step: at each output, while the noise is within T sigma, its mass is within a
factor e^l of the ideal one. Outside of that the ideal law has mass e^(-T^2/2)/10 at most, the real one e^(T r) <= 5 times as
much: less than eta (`numerics.calibration.gaussian` has this step, for spacing 0). Laws within e^l of (e', delta')-close ones,
up to eta, are (e' + 2 l, e^l delta' + eta (1 + e^(e' + l)))-close.  ∎
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

from pydantic import Field

import attrpriv as ap
from attrpriv import extend
from attrpriv.extend import Cause, Refusal, rounding
from attrpriv.noise import granularity

PAGE = "docs/guide/own-method.md"

# ---------------------------------------------------------------------------------------------------------- kantorovich

# Laws are computed in whole numbers and all pairs are compared, which is meant for small tables.
MOST_ROWS = 60

Law = Mapping[int, int]
"""A law on whole numbers: weights that add up to the same total for every value of the secret."""


def laws_of_counts(records: extend.RecordLaws, pairs: extend.CountPairs) -> dict[int, Law]:
    """The law of F given each value of the secret, exactly: as whole-number weights."""
    member, rest = ([extend.exactly(low) for low, _ in law] for law in (records.member, records.rest))
    if records.binary:  # the float of 1 - p may be off by a rounding; p is what was stated
        member, rest = ([1 - law[1], law[1]] for law in (member, rest))
    if not records.exact or sum(member) != 1 or sum(rest) != 1:
        raise ap.UsageError("needs probabilities that are stated exactly and add up to 1.")
    unit = math.lcm(*(p.denominator for p in (*member, *rest)))
    rows = [{v: int(p * unit) for v, p in zip(records.values, law, strict=True) if p} for law in (member, rest)]
    members = list(itertools.accumulate([rows[0]] * pairs.high, _added, initial={0: 1}))
    others = list(itertools.accumulate([rows[1]] * (pairs.n - pairs.low), _added, initial={0: 1}))
    return {a: _added(members[a], others[pairs.n - a]) for a in range(pairs.low, pairs.high + 1)}


def _added(first: Law, second: Law) -> dict[int, int]:
    found: dict[int, int] = {}
    for (x, weight), (y, other) in itertools.product(first.items(), second.items()):
        found[x + y] = found.get(x + y, 0) + weight * other
    return found


def ways(source: Law, target: Law) -> dict[int, list[tuple[int, int]]]:
    """The quantile coupling: for each y of the target, how far its mass comes and how much of it comes that far."""
    found: dict[int, list[tuple[int, int]]] = {}
    here, there = (sorted(((x, weight) for x, weight in law.items() if weight), reverse=True) for law in (source, target))
    (x, left), (y, open_) = here.pop(), there.pop()
    while True:
        moved = min(left, open_)
        found.setdefault(y, []).append((abs(x - y), moved))
        left, open_ = left - moved, open_ - moved
        if not left and not here:  # both laws have the same total
            return found
        if not left:
            x, left = here.pop()
        if not open_:
            y, open_ = there.pop()


def costs(checks: tuple[extend.CountCheck, ...]) -> Iterator[list[tuple[int, float]]]:
    """Of every ordered pair that must look alike and every y: the ways to it, each with the logarithm of its share of Q(y)."""
    for check in checks:
        laws, pairs = laws_of_counts(check.records, check.pairs), check.pairs
        for a, b in itertools.permutations(laws, 2):
            if abs(a - b) <= pairs.apart:
                for y, found in ways(laws[a], laws[b]).items():
                    yield [(far, _log_share(moved, laws[b][y])) for far, moved in found]


def _log_share(part: int, whole: int) -> float:
    """A share that no float holds may still decide, where its way is long: its logarithm, then rounded up."""
    share = part / whole
    return math.log(share) if share > 1e-290 else math.log(part) - math.log(whole) + 1e-9


def loss(cost: list[tuple[int, float]], scale: float) -> float:
    """log C(y), from above: each term is off by a few roundings of the numbers that are added in it."""
    if all(far == 0 for far, _ in cost):
        return 0.0
    if not scale:
        return math.inf
    terms = [far / scale + share for far, share in cost]
    largest, sizes = max(terms), max(far / scale - share for far, share in cost)
    inner = math.fsum(math.exp(term - largest) for term in terms)
    return (largest + math.log(inner)) * rounding.COMPUTED_UP + rounding.SOME_ULPS * (1 + sizes)


class KantorovichEvidence(extend.CountEvidence):
    """What a row adds, which counts must look alike, and the noise. (1) is computed again from these."""

    words: ClassVar[str] = "a count by the Kantorovich mechanism"
    kind: Literal["kantorovich"] = "kantorovich"
    checks: tuple[extend.CountCheck, ...] = Field(min_length=1)
    scale: extend.NonNegative

    def delta(self, epsilon: float) -> float:
        return 0.0 if all(loss(cost, self.scale) <= epsilon for cost in costs(self.checks)) else 1.0

    def covers_tally(self, told: extend.Counted) -> bool:
        """Whether this is what is counted, and the noise that is drawn."""
        drawn = (told.noise, told.scale) == ("laplace" if self.scale else "none", self.scale)
        counted = all(check.records.values == told.steps and check.pairs.n == told.n for check in self.checks)
        return drawn and counted and not told.histogram

    def describe(self) -> tuple[str, ...]:
        return (f"Laplace noise of scale {self.scale:.6g} on whole numbers, by the transport plan of every pair",)


def plan_kantorovich(problem: extend.Problem) -> extend.Plan:
    """The least scale for which (1) holds, for every secret, member of the assumption, pair and y."""
    found = extend.counted(problem)
    if found.tally.histogram:
        raise Refusal(Cause.STATISTIC, "is for one number, not for a histogram.", needs="a count or a sum")
    if found.known or problem.individuals is not None:
        raise Refusal(Cause.PERSONS, "covers neither known rows nor single persons.")
    if problem.n > MOST_ROWS:
        raise Refusal(Cause.SIZE, f"compares all pairs of counts, of up to {MOST_ROWS} rows.", needs="fewer rows")
    if not all(case.records.exact for case in found.cases):
        raise Refusal(Cause.NUMBERS, "needs probabilities that are stated exactly, not as intervals.")
    checks = tuple(
        extend.CountCheck(secret=case.secret, theta=case.theta, records=case.records, pairs=case.pairs) for case in found.cases
    )
    scale = _least_scale_or_refuse(checks, problem.epsilon)
    tally = found.tally.model_copy(update={"noise": "laplace" if scale else "none", "scale": scale})
    certificate = extend.Certificate(
        epsilon=problem.epsilon,
        delta=problem.delta,
        evidence=KantorovichEvidence(checks=checks, scale=scale),
        assumes=(
            "rows are independent, and given its category a row adds to the statistic by the law that is stated: assumed",
            *map(str, problem.theta),
            "the adversary knows no row",
            *extend.common_assumptions(problem),
        ),
        exact=False,
        gap=1.0,  # how much less would do is not known
    )
    certificate.verify()
    errors = tuple(_count_error(problem, tally, query) for query in problem.queries)
    return extend.assemble(problem, "kantorovich", extend.TallyPart(tally=tally), certificate, reference=PAGE, errors=errors)


def least_scale(checks: tuple[extend.CountCheck, ...], epsilon: float) -> float:
    """By bisection, from the private side; 0 where the laws are equal."""
    scale = 0.0
    for cost in costs(checks):
        if loss(cost, scale) <= epsilon:
            continue
        low, high = scale, 2 * max(far for far, _ in cost) / epsilon  # at which the loss is at most epsilon/2
        while high - low > rounding.ULP * 2**20 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if loss(cost, middle) <= epsilon else (middle, high)
        scale = high
    return scale


def _least_scale_or_refuse(checks: tuple[extend.CountCheck, ...], epsilon: float) -> float:
    try:
        return least_scale(checks, epsilon)
    except ap.UsageError as error:
        reason = str(error)
    raise Refusal(Cause.NUMBERS, reason)


def _count_error(problem: extend.Problem, tally: extend.Tally, query: ap.Query) -> extend.ExpectedError:
    unit = 0.0 if query.whole_table else tally.unit_of(query, problem.n)
    spread = extend.WholeSpread(tally.noise, tally.scale, 0.0, unit)
    rmse, absolute = spread.moments()
    return extend.ExpectedError(rmse=rmse, mean_absolute=absolute, alpha95=spread.reach(0.95))


KANTOROVICH = ap.register(
    extend.Method(
        "kantorovich",
        (extend.Form((extend.LATTICE,), f"{__name__}:plan_kantorovich", "counts", alone=True),),
        page=PAGE,
        proofs={"kantorovich": __name__},
        asks=("counts",),
    )
)

# --------------------------------------------------------------------------------------------------------- laplace_rows

SHAPE = "laplace_rows"
# Noise beyond so many standard deviations is counted as a failure.
REACH = 8.0
# Rounding may move the average by so many of them.
MOST_RATIO = 0.2


class LaplaceRows(extend.Assumption):
    """Rows of `column` are a line in `on`, with independent Laplace residuals."""

    shape: ClassVar[str] = SHAPE
    kind: Literal["laplace_rows"] = "laplace_rows"
    column: str = Field(description="the column that is averaged")
    on: str = Field(description="the sensitive column")
    slope: extend.Range = Field(description="[low, high]: how far a row of `column` moves with its entry of `on`")
    residual: extend.Positive = Field(description="scale of the Laplace residuals, at least")
    spacing: extend.Positive = Field(description="what rows of `column` are rounded to, at most")

    def __str__(self) -> str:
        low, high = self.slope
        return (
            f"rows of {self.column} are a line in {self.on} of slope {low:g} to {high:g}, with independent Laplace residuals "
            f"of scale {self.residual:g} or more, rounded to {self.spacing:g}"
        )


class LaplaceRowsEvidence(extend.Evidence):
    """How far the secret moves the average, what the rows vary by, and the noise. The statement is computed from these."""

    words: ClassVar[str] = "an average of rows with Laplace residuals"
    kind: Literal["laplace_rows"] = "laplace_rows"
    column: str
    n: int = Field(ge=1)
    shift: extend.NonNegative
    residual: extend.Positive
    spacing: extend.Positive
    credit: extend.Positive = Field(lt=1, description="t: the share of the rows' own variance that is counted on")
    sigma: extend.Positive

    def delta(self, epsilon: float) -> float:
        ratio = (self.spacing / 2 + granularity(self.sigma)) / self.sigma * rounding.COMPUTED_UP
        factor = (REACH * ratio + ratio**2) * rounding.COMPUTED_UP
        left = epsilon - 2 * factor * rounding.COMPUTED_UP
        if ratio > MOST_RATIO or not left > 0:
            return 1.0
        eta = 2.2 * math.exp(-(REACH**2) / 2)
        tail = math.exp(self.n * (math.log(self.credit) + 1 - self.credit) + self.n * rounding.SOME_ULPS)
        variance = (self.sigma**2 + 2 * self.credit * self.residual**2 / self.n) * rounding.COMPUTED_DOWN
        inner = tail + ap.divergences.gaussian_delta_upper(left, self.shift / math.sqrt(variance) * rounding.COMPUTED_UP)
        return min(1.0, (math.exp(factor) * inner + eta * (1 + math.exp(epsilon))) * rounding.COMPUTED_UP)

    def covers(self, column: str, kind: str, scale: float) -> bool:
        return (column, kind, scale) == (self.column, "gaussian", self.sigma)

    def suits(self, columns: tuple[str, ...], n: int, *, clipped: bool) -> bool:
        return columns == (self.column,) and n == self.n and not clipped

    def describe(self) -> tuple[str, ...]:
        return (f"{self.column}: moved by at most {self.shift:.6g}; noise {self.sigma:.6g} beside the rows' own variation",)


def plan_laplace_rows(problem: extend.Problem) -> extend.Plan:
    """The least Gaussian noise for which the statement gives the promised delta."""
    theta = problem.assumed(LaplaceRows)
    if not theta:
        raise extend.other_assumption("laplace_rows")
    if not problem.delta > 0:
        raise extend.no_delta()
    if problem.known_rows or problem.individuals is not None:
        raise Refusal(Cause.PERSONS, "covers neither known rows nor single persons.")
    (column, *others) = dict.fromkeys(member.column for member in theta)
    if others or problem.columns != (column,):
        raise Refusal(Cause.STATISTIC, f"covers the average of {column}, alone.", needs=f"avg({column})")
    evidence = least_noise(
        LaplaceRowsEvidence(
            column=column,
            n=problem.n,
            shift=max(_shift(problem, member, secret) for member in theta for secret in problem.secrets),
            residual=min(member.residual for member in theta),
            spacing=max(member.spacing for member in theta),
            credit=0.5,
            sigma=1.0,
        ),
        problem.epsilon,
        problem.delta,
    )
    certificate = extend.Certificate(
        epsilon=problem.epsilon,
        delta=problem.delta,
        evidence=evidence,
        assumes=(
            *(f"{'one of: ' if len(theta) > 1 else ''}{member}: assumed, not tested" for member in theta),
            *(f"this is so for {name} as it is read, missing entries replaced" for name in problem.missing if name == column),
            "the adversary knows no row",
            *extend.common_assumptions(problem),
        ),
        exact=False,
        gap=1.0,  # how much less would do is not known
    )
    certificate.verify()
    drawn = extend.ColumnPlan(
        column=column,
        noise=extend.Noise(kind="gaussian", scale=evidence.sigma),
        independent=evidence.sigma,
        error=extend.gaussian_error(evidence.sigma),
        fill=problem.missing.get(column),
        parameters={"shift": evidence.shift, "credit": evidence.credit},
    )
    return extend.assemble(problem, "laplace_rows", extend.AveragesPart(columns=(drawn,)), certificate, reference=PAGE)


def _shift(problem: extend.Problem, member: LaplaceRows, secret: ap.Secret) -> float:
    if secret.composition is not None or secret.parameter is not None or secret.entries is not None:
        raise Refusal(Cause.SECRET, f"hides the mean or sum of {member.on}. Got {secret.text}.", needs=f"mean({member.on})")
    if secret.single != member.on or not math.isfinite(secret.gap):
        needs = (f"mean({member.on})", "between or within")
        raise Refusal(Cause.SECRET, f"hides the mean or sum of {member.on}, within limits. Got {secret.text}.", needs=needs)
    return max(map(abs, member.slope)) * secret.gap_of_mean(problem.n) * rounding.COMPUTED_UP


def least_noise(start: LaplaceRowsEvidence, epsilon: float, delta: float) -> LaplaceRowsEvidence:
    """The least sigma over some shares t that may be counted on, by bisection from the private side."""
    shares = (1e-6, 1e-3, 0.03, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95)  # the first is next to nothing: plain Gaussian noise
    found = [made for credit in shares if (made := _least(start, credit, epsilon, delta)) is not None]
    if not found:
        raise Refusal(Cause.PRECISION, "too few rows for so small a delta.", needs=("more rows", "a larger delta"))
    return min(found, key=lambda made: made.sigma)


def _least(start: LaplaceRowsEvidence, credit: float, epsilon: float, delta: float) -> LaplaceRowsEvidence | None:
    def made(sigma: float) -> LaplaceRowsEvidence:
        return start.model_copy(update={"credit": credit, "sigma": sigma})

    # so much that the shift and the rounding are nothing against it, and so little that it is none
    high = (start.shift + start.spacing + start.residual) * 1e6 / epsilon
    low = high * 1e-15
    if made(high).delta(epsilon) > delta:
        return None
    while high > low * rounding.SOLVED_UP:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if made(middle).delta(epsilon) <= delta else (middle, high)
    return made(high)


LAPLACE_ROWS = ap.register(
    extend.Method(
        "laplace_rows",
        (extend.Form((SHAPE,), f"{__name__}:plan_laplace_rows", "averages", alone=True),),
        page=PAGE,
        proofs={"laplace_rows": __name__},
        asks=("laplace_rows",),
        needs_delta=True,
    )
)
