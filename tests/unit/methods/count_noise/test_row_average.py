"""Averages beside counts under one assumption: by noise for one row, whatever the two have to do with each other.

The worst there is, enumerated: e and y are fair coins in either category, and equal exactly among women. The count of e and the
average of y alone then tell nothing about the share of women, with no noise at all; of one row both tell its category.
"""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import attrpriv as ap
from attrpriv.errors import AttrprivError, CertificateError
from attrpriv.methods.base.accuracy import Noise
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan
from attrpriv.methods.laplace_sequence.row_average import RowAverageEvidence
from attrpriv.problem.problem import Problem
from attrpriv.queries.sql import parse_queries
from attrpriv.session.record import recheck

N = 3


def problem(query: str, **changes: Any) -> Problem:
    assumed = ap.Counts(sensitive="sex", given={"e = 1": {"f": 0.5, "m": 0.5}})
    stated: dict[str, Any] = {
        "queries": tuple(parse_queries(query)),
        "secrets": (ap.Secret("share(sex = 'f')", within=0.34),),
        "epsilon": 1.0,
        "n": N,
        "theta": (assumed,),
        "bounds": {"y": (0.0, 1.0)},
        "policy_digest": "abc",
    }
    return Problem(**(stated | changes))


def evidence(made: Plan) -> RowAverageEvidence:
    assert isinstance(made.certificate.evidence, RowAverageEvidence)
    return made.certificate.evidence


def lost(count_scale: float, average_scale: float) -> float:
    """The largest log ratio of both outputs together, over all pairs of neighbouring shares."""
    counts, sums = range(N + 1), range(N + 1)
    laws = []
    for women in range(N + 1):
        law = np.zeros((N + 1, N + 1))
        for sexes in itertools.product((0, 1), repeat=N):
            if sum(sexes) != women:
                continue
            for es in itertools.product((0, 1), repeat=N):
                ys = [e if sex else 1 - e for e, sex in zip(es, sexes, strict=True)]
                law[sum(es), sum(ys)] += 1
        laws.append(law / law.sum())
    # Between two values that a statistic can have, a density under Laplace noise is a x + b/x: ratios are largest at the ends.
    by_count, by_sum = (
        np.array([[math.exp(-abs(o - f) / scale) for f in had] for o in had])
        for had, scale in ((counts, count_scale), (sums, average_scale * N))
    )
    seen = [np.log(by_count @ law @ by_sum.T) for law in laws]
    return max(float(np.abs(a - b).max()) for a, b in itertools.pairwise(seen))


def test_both_together_keep_epsilon_and_epsilons_that_are_added_do_not() -> None:
    first = plan(problem("count(*) filter (where e = 1)", spend=0.5), "laplace")
    second = plan(problem("avg(y)", earlier=first.certificate.evidence), "laplace")
    assert first.tally is not None
    assert lost(first.tally.scale, second.columns[0].noise.scale) <= 1.0
    assert second.certificate.evidence.loss() == pytest.approx(1.0, rel=1e-6)  # type: ignore[attr-defined]
    # The planted mistake: each alone loses nothing at all, whatever its noise.
    assert lost(1e9, 0.1) < 1e-6
    assert lost(0.3, 1e9) < 1e-6
    assert lost(0.3, 0.1) > 2


def test_the_other_way_round() -> None:
    first = plan(problem("avg(y)", spend=0.5), "laplace")
    assert evidence(first).loss() <= 0.5
    second = plan(problem("count(*) filter (where e = 1)", earlier=first.certificate.evidence), "laplace")
    assert second.tally is not None
    assert lost(second.tally.scale, first.columns[0].noise.scale) <= 1.0


def test_noise_is_for_one_row_times_the_rows_that_change() -> None:
    made = plan(problem("avg(y)", n=100, secrets=(ap.Secret("share(sex = 'f')", within=0.05),)), "laplace")
    assert made.columns[0].noise.scale == pytest.approx(5 / 100, rel=1e-6)
    assert evidence(made).b == pytest.approx(1 / 5, rel=1e-6)
    known = plan(problem("avg(y)", n=100, secrets=(ap.Secret("share(sex = 'f')", within=0.05),), known_rows=0.1), "laplace")
    assert known.columns[0].noise.scale >= made.columns[0].noise.scale * (1 - 1e-9)


def test_rows_of_categories_that_are_taken_together_have_one_law_and_the_certificate_says_so() -> None:
    """Of three categories, y tells x from the others; its average loses epsilon however the rest divides, by one law.

    The planted mistake: a rest that is all m beside 3 women and all x beside 4, though rows of each category have one law.
    """
    theta = (ap.Counts(sensitive="sex", given={"e = 1": {"f": 0.5, "m": 0.5, "x": 0.5}}),)
    one = {"n": 10, "secrets": (ap.Secret("count(sex = 'f')", within=1),), "theta": theta}
    made = plan(problem("avg(y)", **one), "laplace")
    scale = 10 * made.columns[0].noise.scale

    def lost(rest: dict[int, float]) -> float:
        """Between 3 and 4 women, with the share of x among all others; the density is convex between sums."""
        laws = []
        for women, share in rest.items():
            others = 10 - women
            chances = [math.comb(others, k) * share**k * (1 - share) ** (others - k) for k in range(others + 1)]
            laws.append([sum(p * math.exp(-abs(o - k) / scale) for k, p in enumerate(chances)) for o in range(11)])
        return max(abs(math.log(p / q)) for p, q in zip(*laws, strict=True))

    assert max(lost({3: share, 4: share}) for share in (0.0, 0.2, 0.5, 0.9, 1.0)) <= 1.0
    assert lost({3: 0.0, 4: 1.0}) > 5
    asked = plan(problem("count(*) filter (where e = 1)", **one), "laplace")
    for certificate in (made.certificate, asked.certificate):
        assert [line for line in certificate.assumes if "fall into them by one law" in line]
    assert not [line for line in plan(problem("avg(y)"), "laplace").certificate.assumes if "taken together" in line]


def test_it_is_said_where_less_noise_might_do_and_what_a_missing_entry_does() -> None:
    """Were y the category itself, an output beyond all sums would have the ratio e^(N b): the whole epsilon."""
    alone = plan(problem("avg(y)", missing={"y": 0.0}), "laplace")
    scale = N * alone.columns[0].noise.scale
    assert 1 / scale == pytest.approx(alone.epsilon / 2, rel=1e-6)  # two rows change, by 1 each
    assert (alone.certificate.exact, alone.certificate.gap) == (True, 0.0)
    assert not [line for line in alone.certificate.assumes if "missing" in line]
    population = {"secrets": (ap.Secret(parameter="share(sex = 'f')", between=(0.2, 0.6)),)}
    for changes in (population, {"delta": 1e-6}, {"earlier": alone.certificate.evidence, "epsilon": 3.0}, {"spend": 0.5}):
        made = plan(problem("avg(y)", **changes), "laplace").certificate
        assert not made.exact
        assert made.gap > 0
        assert [line for line in made.assumes if line.startswith("no entry of y is missing")]
    # Of a population, all rows change their law a little: less than all of them changing their category.
    b = evidence(plan(problem("avg(y)", **population), "laplace")).b
    assert N * math.log((0.4 + 0.6 * math.exp(b)) / (0.8 + 0.2 * math.exp(b))) < 0.5


def test_single_persons_take_their_part() -> None:
    made = plan(problem("avg(y)", individuals=0.01), "laplace")
    rows = made.certificate.individuals
    assert rows is not None
    assert rows.delta(0.01) == 0
    assert evidence(made).b <= 0.01


def test_what_is_changed_proves_nothing() -> None:
    made = plan(problem("avg(y)"), "laplace")
    proved = evidence(made)
    less = proved.term.model_copy(update={"scale": 0.9 * proved.term.scale})
    assert proved.model_copy(update={"term": less}).delta(1.0) == 1.0
    (column,) = made.columns
    for changes in ({"clip": (0.0, 2.0)}, {"clip": None}, {"column": "e"}, {"noise": Noise(kind="laplace", scale=0.1)}):
        with pytest.raises(CertificateError):
            made.model_copy(update={"columns": (column.model_copy(update=changes),)}).verify()


@pytest.mark.parametrize(
    ("query", "bounds"), [("avg(y)", {}), ("avg(z)", {"y": (0, 1)}), ("avg(y) filter (where e = 1)", None)]
)
def test_what_it_does_not_average(query: str, bounds: dict[str, Any] | None) -> None:
    with pytest.raises(AttrprivError):
        plan(problem(query, **({} if bounds is None else {"bounds": bounds})), "laplace")


def test_one_policy_one_ledger(tmp_path: Path) -> None:
    """A count, an average, what another library releases and a second average, within one budget, proved again from it."""
    rng = np.random.default_rng(1)
    table = pa.table({"sex": rng.choice(["f", "m"], 200), "e": rng.integers(0, 2, 200), "y": rng.random(200)})
    policy = ap.Policy(
        rows=200,
        epsilon=1.0,
        protect=[ap.Secret("share(sex = 'f')", within=0.02)],
        assume=ap.Counts(sensitive="sex", given={"e = 1": {"f": (0.4, 0.6), "m": (0.3, 0.5)}}),
        bounds={"y": (0, 1)},
    )
    with ap.Session(table, policy, ledger=tmp_path / "one.ledger") as session:
        both = session.release("count(*) filter (where e = 1), avg(y)", spend=0.5)
        assert len(both.answers) == 2
        session.record_outside(b=0.01, what="another library")
        left = session.left
        session.release("sum(y)")
        assert session.left == left  # it follows from the average
        entries = tuple(session.recorded())
    told = recheck("record", entries)
    assert (len(entries), told.releases, told.planned_again) == (3, 2, 2)
    assert 0 < left < 1
