"""Transport under probabilities that no float writes: what is drawn keeps the promise, in fractions of the policy's numbers.

The twin reads the policy, not the record laws; the same check rejects rows whose probabilities are a fiftieth off.
"""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass
from fractions import Fraction

import pytest

from attrpriv.assumptions.counts import Counts
from attrpriv.methods.choice.choose import plan
from attrpriv.methods.count_transport.proof import CountTransportEvidence
from attrpriv.methods.count_transport.target import CountTransport, transport_row
from attrpriv.numerics.calibration.coupling import overlaps
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query


@dataclass(frozen=True)
class Case:
    """A problem, and the exact probability that a member, or another row, is counted."""

    problem: Problem
    member: Fraction
    rest: Fraction


def written(p: Fraction, rng: random.Random) -> Fraction | float | str:
    ways: list[Fraction | float | str] = [p, float(p), f"{p.numerator}/{p.denominator}"]
    return rng.choice(ways)


def read(p: Fraction | float | str) -> Fraction:
    return Fraction(repr(p)) if isinstance(p, float) else Fraction(p)


def random_case(rng: random.Random) -> Case:
    given = {c: written(Fraction(rng.randint(1, k - 1), k), rng) for c in "abc" for k in [rng.choice([3, 7, 13, 17])]}
    shares = [Fraction(1, rng.choice([3, 5, 7])), Fraction(1, rng.choice([3, 4, 6]))]
    prior = dict(zip("abc", (*shares, 1 - sum(shares)), strict=True))
    negated, n = rng.random() < 0.5, rng.randint(2, 4)
    asked = Problem(
        queries=(Query("count", where="not (e > 0)" if negated else "e > 0"),),
        secrets=(Secret("count(s != 'c')", between=(0, n)),),
        epsilon=rng.choice([0.2, 1.0, 2.0]),
        delta=rng.choice([0.0, 0.0, 0.01]),
        n=n,
        theta=(Counts(sensitive="s", given={"e > 0": given}, prior=prior),),
    )
    p = {name: 1 - read(one) if negated else read(one) for name, one in given.items()}
    return Case(asked, (shares[0] * p["a"] + shares[1] * p["b"]) / sum(shares), p["c"])


def drawn(transport: CountTransport, a: int, n: int, member: Fraction, rest: Fraction) -> list[Fraction]:
    law, none = [Fraction(1)], Fraction(0)
    for p in [member] * a + [rest] * (n - a):
        law = [(1 - p) * x + p * y for x, y in zip([*law, none], [none, *law], strict=True)]
    row = transport_row(transport, a)
    output = [Fraction(0)] * len(row.targets)
    for cell, o, part, whole in overlaps(row.sources, row.targets):
        output[o] += sum((mass for f, mass in enumerate(law) if row.cell(f) == cell), Fraction(0)) * Fraction(part, whole)
    return output


def keeps(case: Case, off: Fraction) -> bool:
    problem, evidence = case.problem, plan(case.problem, "transport").certificate.evidence
    assert isinstance(evidence, CountTransportEvidence)
    laws = [drawn(evidence.transport, a, problem.n, case.member * (1 - off), case.rest) for a in range(problem.n + 1)]
    grown = Fraction(math.exp(problem.epsilon)) * (1 + Fraction(1, 10**12))
    above = (
        sum(max(Fraction(0), p - grown * q) for p, q in zip(x, y, strict=True)) for x, y in itertools.permutations(laws, 2)
    )
    return max(above) <= Fraction(problem.delta) * (1 + Fraction(1, 10**9)) + Fraction(1, 10**12)


@pytest.mark.parametrize("seed", range(25))
def test_transport_keeps_its_promise(seed: int) -> None:
    assert keeps(random_case(random.Random(seed)), Fraction(0))


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.7])
@pytest.mark.parametrize("written", [float, Fraction, str])
def test_decimals_next_to_one_are_what_is_written(epsilon: float, written: type) -> None:
    """Their bits leave 1.1e-16 and 5.6e-16: rows moved by these lost .62 of an epsilon of .5."""
    member, rest = Fraction(10**16 - 1, 10**16), Fraction(10**16 - 6, 10**16)
    asked = Problem(
        queries=(Query("count", where="e > 0"),),
        secrets=(Secret("count(s = 'a')", between=(0, 3)),),
        epsilon=epsilon,
        delta=0.0,
        n=3,
        theta=(Counts(sensitive="s", given={"e > 0": {"a": written(member), "b": written(rest)}}),),
    )
    evidence = plan(asked, "transport").certificate.evidence
    assert isinstance(evidence, CountTransportEvidence)
    laws = [drawn(evidence.transport, a, 3, member, rest) for a in range(4)]
    ratio = max(p / q for x, y in itertools.permutations(laws, 2) for p, q in zip(x, y, strict=True) if p)
    assert ratio <= Fraction(math.exp(epsilon)) * (1 + Fraction(1, 10**12))


def test_rows_that_are_a_fiftieth_off_are_caught() -> None:
    assert not all(keeps(random_case(random.Random(seed)), Fraction(1, 50)) for seed in range(25))
