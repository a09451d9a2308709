"""From attribute privacy to the privacy of single rows: the b that any algorithm of any library may spend.

    bridge = ap.bridge("hospital.yaml")          # the secrets of a policy, its assumption and its epsilon
    bridge.b                                     # give an algorithm this epsilon for one row, and every secret is hidden
    bridge.epsilon(0.02)                         # and back: what an algorithm loses that spends 0.02 for one row

b is for one row *replaced*. Several algorithms, each chosen after the answers of those before: their b add up, and the curve is
read once at the sum. What must never change: nothing here reads a row, b is rounded down, epsilon up (docs/theory/bridge.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from attrpriv.accounting.standing import mixed
from attrpriv.errors import UsageError
from attrpriv.methods.base.outside import RowCurve, shown_b
from attrpriv.methods.choice.outside import curve_of, largest_b
from attrpriv.numerics.calibration.row_bridge import MOST_B, require_b
from attrpriv.policy.models import Policy
from attrpriv.problem.assumption import Assumption
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from attrpriv.session.outside import outside_problem
from attrpriv.session.request import Request


@dataclass(frozen=True)
class Bridge:
    """How much any algorithm may spend for one row so that the secrets stay hidden at the problem's epsilon: what `bridge`
    returns.

    `b` is that budget, of an algorithm that `reads` whole rows or only what it names; `curve` is the epsilon for each b, of
    `problem`.
    """

    problem: Problem
    b: float
    """The epsilon of one row replaced that may be spent in all, delta 0: from below, and at most 100."""
    reads: str | None = None
    """The event or the column that is all the algorithm reads; None: whole rows."""
    curve: RowCurve = field(repr=False, compare=False, kw_only=True)

    @property
    def b_added_or_removed(self) -> float:
        """The same for a library whose neighbours are one row added or removed: replacing a row is one of each."""
        return self.b / 2

    def epsilon(self, b: float) -> float:
        """What the secrets lose, from above, by everything that is b-private for one row; earlier releases included."""
        require_b(b)
        return self.curve.loss(float(b))

    def explain(self) -> str:
        """What may be done with it, in sentences."""
        secrets = "; ".join(str(secret) for secret in self.problem.secrets)
        several = f"In all at most b = {shown_b(self.b)} may be spent for one row replaced, with delta 0"
        lines = [
            f"Hidden at epsilon {self.problem.epsilon:g}: {secrets}.",
            f"{several}, by any algorithms of any library that read {self.curve.whole}.",
            f"Where a library counts rows added or removed, give it {shown_b(self.b_added_or_removed)}: a row that is replaced "
            "is one of each.",
            "Algorithms that come one after the other share it: their b add up.",
        ]
        if self.b >= MOST_B:
            lines.append("That is the most that is ever said here: the laws are so close that any algorithm would do.")
        if self.problem.earlier is not None:
            lines.append("What the ledger holds is counted already.")
        return "\n".join([*lines, *(f"assumes: {line}" for line in self.curve.assumes)])

    def __str__(self) -> str:
        return self.explain()


def bridge(
    about: Policy | str | Path | Assumption | Sequence[Assumption],
    epsilon: float | None = None,
    *,
    secret: Secret | str | None = None,
    n: int | None = None,
    reads: str | None = None,
) -> Bridge:
    """The b that any row-private algorithm may spend so that the secrets are hidden at epsilon, and back.

    `about`: a policy, or its file, which says all; or an assumption (a list: one of them holds), with `secret`, `n` and
    `epsilon`. `n`: the number of rows, where the policy does not say it. `reads`: the event ("stay > 7") or the column ("ward")
    that is all the algorithm reads of a row, where that is so: then it may spend more. Reads no row.

    >>> from attrpriv.assumptions.counts import Counts
    >>> smokers = Counts(sensitive="smoker", given={"stay > 7": {"yes": 0.4, "no": 0.2}})
    >>> within = Secret("share(smoker = 'yes')", within=0.05)
    >>> whole = bridge(smokers, 1.0, secret=within, n=1000)
    >>> round(whole.b, 6), round(whole.epsilon(0.01), 6)
    (0.02, 0.5)
    >>> round(bridge(smokers, 1.0, secret=within, n=1000, reads="stay > 7").b, 6)
    0.098115
    """
    return crossing(_problem(about, epsilon, secret, n), reads)


def crossing(problem: Problem, reads: str | None) -> Bridge:
    """The bridge of a problem, on top of everything that was released before."""
    curve = curve_of(problem, reads)
    return Bridge(problem, largest_b(problem, curve), reads, curve=curve)


def on_top_of(asked: Request, name: Callable[[], str], policy: Policy, facts: tuple[int, Mapping[str, str]]) -> Problem:
    """The problem after everything that the ledger of this name holds, for what is left of the budget."""
    if asked.known.standing.view:
        raise mixed(name(), "a view", "a release of another library")
    asked.require_left(name, policy)
    return asked.on_top(outside_problem(policy, *facts), 1.0)


def _problem(
    about: Policy | str | Path | Assumption | Sequence[Assumption],
    epsilon: float | None,
    secret: Secret | str | None,
    n: int | None,
) -> Problem:
    if isinstance(about, Policy | str | Path):
        policy = about if isinstance(about, Policy) else Policy.load(about)
        if secret is not None:
            raise UsageError(
                "secret: comes from the policy. Got another; give the assumption instead, as in bridge(counts, ...)."
            )
        rows = policy.rows if n is None else n
        if rows is None:
            raise UsageError("n: must be given where the policy does not say rows, as in bridge(policy, n=1000). Got none.")
        found = outside_problem(policy, rows, {})
        return found if epsilon is None else Problem(**{**dict(found), "epsilon": epsilon})
    if secret is None or n is None or epsilon is None:
        raise UsageError("secret, n, epsilon: must be given with an assumption, as in bridge(counts, 1.0, secret=..., n=1000).")
    theta = (about,) if isinstance(about, Assumption) else tuple(about)
    hidden = Secret(secret) if isinstance(secret, str) else secret
    return Problem(queries=(Query("count"),), secrets=(hidden,), epsilon=epsilon, n=n, theta=theta)
