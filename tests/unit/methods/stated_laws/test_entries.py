"""One entry behind counts, or in a network over the columns of one record: against every table of few rows, in fractions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import pytest

from attrpriv.assumptions.counts import Counts
from attrpriv.cases import stated as case
from attrpriv.errors import Cause, CertificateError, PolicyError, RefusedError, UsageError
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan
from attrpriv.numerics.calibration.network_quilt import network_score
from attrpriv.numerics.laws.stated import StatedLaws
from attrpriv.numerics.networks.network import Network, read_network
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from attrpriv.session.session import Session
from tests.refusing import refuses

EXAMPLES = Path(__file__).parents[4] / "examples" / "laws"
HEAVY = Query("count", where="height = 'tall' and weight = 'heavy'")
INCOME = (Secret("entries(income)"),)
# The same network in fractions, by hand: P(gender), P(income | gender), P(height | gender), P(weight | height).
GENDER = {"f": Fraction(1, 2), "m": Fraction(1, 2)}
PAID = {"f": (5, 4, 1), "m": (2, 4, 4)}
TALL, FAT = {"f": Fraction(2, 10), "m": Fraction(7, 10)}, {False: Fraction(1, 10), True: Fraction(7, 10)}


def network() -> Network:
    found = read_network(str(EXAMPLES / "attributes.bif"))
    assert isinstance(found, Network)
    return found


def record(**changes: Any) -> Counts:
    return Counts(sensitive="income", network=network(), tolerance=changes.get("tolerance", 0))


def problem(*theta: Counts, **changes: Any) -> Problem:
    given: dict[str, Any] = {"queries": (HEAVY,), "secrets": INCOME, "epsilon": 0.2, "n": 8, "theta": theta or (record(),)}
    return Problem(**(given | changes))


def joint() -> dict[tuple[int, int], Fraction]:
    """P(income is the k-th, the row counts c)."""
    found: dict[tuple[int, int], Fraction] = {}
    for gender, tall, heavy in itertools.product(GENDER, (False, True), (False, True)):
        chance = GENDER[gender] * (TALL[gender] if tall else 1 - TALL[gender]) * (FAT[tall] if heavy else 1 - FAT[tall])
        for k, paid in enumerate(PAID[gender]):
            place = (k, int(tall and heavy))
            found[place] = found.get(place, Fraction(0)) + chance * Fraction(paid, 10)
    return found


def laws(n: int) -> list[list[Fraction]]:
    """The law of the count of n rows given the income of the first: by going through all tables."""
    rows, found = joint(), []
    for k in range(3):
        masses = [Fraction(0)] * (n + 1)
        for counts in itertools.product((0, 1), repeat=n):
            chance = rows[k, counts[0]]
            for count in counts[1:]:
                chance *= sum(rows[other, count] for other in range(3))
            masses[sum(counts)] += chance
        found.append([mass / sum(masses) for mass in masses])
    return found


def loss(of: list[list[Fraction]], scale: float) -> Any:
    with mpmath.workdps(50):
        weight = [mpmath.exp(-mpmath.mpf(d) / scale) for d in range(len(of[0]) + 4)]
        outputs = [
            [sum(weight[abs(o - f)] * mpmath.mpf(p.numerator) / p.denominator for f, p in enumerate(law)) for law in of]
            for o in range(-2, len(of[0]) + 2)
        ]
        return max(mpmath.log(max(row) / min(row)) for row in outputs)


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_the_noise_hides_the_entry_in_every_table_of_few_rows(n: int) -> None:
    """Of one row it is the least that does; of more rows the others hide as well, and are not counted on."""
    made = plan(problem(n=n), "laplace")
    assert made.noise.kind == "laplace"
    assert loss(laws(n), made.noise.scale) <= 0.2
    if n == 1:
        assert loss(laws(n), made.noise.scale * 0.999) > 0.2


def test_a_law_that_forgets_a_value_of_the_entry_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(case, "StatedLaws", lambda steps, given, apart: StatedLaws(steps, given[:2], 1))
    assert loss(laws(1), plan(problem(n=1), "laplace").noise.scale) > 0.2


def test_it_needs_less_than_the_quilts_of_the_record() -> None:
    """Algorithm 5 with its best quilts: the exact law is what these bound."""
    for epsilon in (0.2, 1.0):
        best = {one.node: one.score for one in network_score(network(), epsilon)}
        assert plan(problem(epsilon=epsilon), "laplace").noise.scale < best["income"]


def test_a_tolerance_costs_noise_and_everything_about_the_other_rows_may_be_known() -> None:
    wide = plan(problem(record(tolerance=0.02)), "laplace")
    assert wide.noise.scale > plan(problem(), "laplace").noise.scale
    assert plan(problem(known_rows=0.9), "laplace").noise == plan(problem(), "laplace").noise
    assert any("may know all other rows" in line for line in wide.certificate.assumes)


def test_noise_does_not_grow_with_the_rows() -> None:
    found = [plan(problem(n=n), "laplace").noise.scale for n in (1, 8, 10**6)]
    assert found == [found[0]] * 3


@pytest.mark.parametrize("name", ["laplace", "gaussian", "wasserstein"])
def test_sums_of_listed_values(name: str) -> None:
    visits = {
        "visits": {
            "yes": {"values": [0, 1, 3], "probabilities": [0.2, 0.5, 0.3]},
            "no": {"values": [0, 1, 3], "probabilities": [0.5, 0.3, 0.2]},
        }
    }
    asked = problem(
        Counts(sensitive="smoker", given=visits, prior={"yes": 0.3}),
        queries=(Query("sum", "visits"), Query("avg", "visits")),
        secrets=(Secret("entries(smoker)"),),
        delta=1e-4,
    )
    made = plan(asked, name)
    made.verify()
    assert made.tally is not None
    assert made.tally.support == ()


def test_what_is_not_known_of_all_rows_together_is_refused() -> None:
    for name in ("optimal", "transport"):
        with refuses(RefusedError, Cause.SECRET, "mechanism laplace"):
            plan(problem(), name)
    with pytest.raises(UsageError, match="the sensitive column of the assumption"):
        plan(problem(secrets=(Secret("entries(height)"),)), "laplace")
    with pytest.raises(RefusedError, match="one count"):
        plan(problem(queries=(Query("count", group_by="height"),)), "laplace")
    with refuses(RefusedError, Cause.NUMBERS, "a prior for the share of each category"):
        stay = Counts(sensitive="smoker", given={"stay > 7": {"yes": 0.4, "no": 0.2}})
        plan(problem(stay, queries=(Query("count", where="stay > 7"),), secrets=(Secret("entries(smoker)"),)), "constant")
    with pytest.raises(PolicyError, match="n: must be at least 2"):
        problem(n=1, secrets=(Secret("count(income = 'low')", between=(0, 1)),))


def test_the_laws_of_one_row_do_not_prove_a_draw_from_all_of_them() -> None:
    made = plan(problem(), "laplace")
    told: Any = made.to_json()
    for path, value in ((("certificate", "evidence", "one_row"), False), (("tally", "support"), [0, 1])):
        forged = json_with(told, path, value)
        with pytest.raises(CertificateError):
            Plan.from_json(forged).verify()
    kernel = plan(problem(Counts(sensitive="income", given=EXACT), n=1, queries=(Query("count", where="tall = 1"),)), "optimal")
    evidence = kernel.certificate.evidence
    assert evidence.delta(0.2) == 0.0
    assert evidence.model_copy(update={"one_row": True}).delta(0.2) == 1.0


# Values that are not told apart, each with a law of its own: the assumption, bins, and chances of tall = 1 that it allows.
SEVERAL: dict[str, tuple[Any, Any, tuple[Fraction, ...]]] = {
    "two values that count as other": (
        Counts(sensitive="ward", given={"tall = 1": {"a": 0.5, "b": 0.5, "rest": (0.1, 0.9)}}, other="rest"),
        {},
        (Fraction(1, 2), Fraction(1, 10), Fraction(9, 10)),
    ),
    "two values of a bin": (
        Counts(sensitive="age", given={"tall = 1": {"young": (0.1, 0.9), "old": 0.5}}),
        {"bins": {"age": (0.0, 40.0, 80.0)}},
        (Fraction(1, 2), Fraction(1, 10), Fraction(9, 10)),
    ),
}


def tall_of(n: int, chances: tuple[Fraction, ...]) -> list[list[Fraction]]:
    """The law of the count of n rows for each chance of the first one; the others are tall with probability 1/2."""
    others = [Fraction(math.comb(n - 1, k), 2 ** (n - 1)) for k in range(n)]
    return [
        [(1 - p) * one + p * less for one, less in zip([*others, Fraction(0)], [Fraction(0), *others], strict=True)]
        for p in chances
    ]


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("n", [1, 2, 4])
def test_values_that_are_not_told_apart_are_hidden_from_each_other_too(
    name: str, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    theta, changes, chances = SEVERAL[name]
    secrets = (Secret(f"entries({theta.sensitive})"),)
    asked = problem(theta, queries=(Query("count", where="tall = 1"),), secrets=secrets, epsilon=1.0, n=n, **changes)
    made = plan(asked, "laplace")
    assert loss(tall_of(n, chances), made.noise.scale) <= 1
    assert any("has a law within the one stated of" in line for line in made.certificate.assumes)
    # The planted mistake, which this once had: one law for each category.
    monkeypatch.setattr(case, "StatedLaws", lambda steps, given, apart: StatedLaws(steps, given[: len(theta.categories)], 1))
    if n == 1:
        assert loss(tall_of(n, chances), plan(asked, "laplace").noise.scale) > 1


EXACT = {"tall = 1": {"low": 0.25, "middle": 0.5, "high": 0.75}}


def json_with(told: Any, path: tuple[str, ...], value: Any) -> Any:
    if not path:
        return value
    return {**told, path[0]: json_with(told.get(path[0]), path[1:], value)}


def test_the_example_is_released_and_checked_again(tmp_path: Path) -> None:
    for name in ("attributes.yaml", "attributes.bif", "people.csv"):
        (tmp_path / name).write_bytes((EXAMPLES / name).read_bytes())
    with Session(policy=tmp_path / "attributes.yaml") as session:
        found = session.release()
        assert math.isfinite(found.value)
        assert session.release().value == found.value
        with pytest.raises(RefusedError):
            session.release("count(*) filter (where height = 'tall')")
