"""Plans of counts, part by part: the prior share of a secret's categories, persons beside delta, and averages in bounds."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import attrpriv as ap
from attrpriv.methods.choice.choose import plan
from attrpriv.methods.count_noise.plan import _share
from attrpriv.methods.count_noise.row_average import averages_an_unnamed_column
from attrpriv.problem.refusal import Refusal
from tests.unit.methods.count_noise.test_row_average import evidence, problem
from tests.unit.methods.counts import problem as counts

CATEGORIES = ("a", "b", "c")
Shares = dict[str, tuple[Any, Any]]


@pytest.mark.parametrize(
    ("shares", "members", "wanted"),
    [
        ({"a": (0.2, 0.2), "b": (0.3, 0.3), "c": (0.5, 0.5)}, {"a"}, Fraction(1, 5)),
        ({"a": (0.2, 0.2), "b": (0.3, 0.3), "c": (0.5, 0.5)}, {"a", "c"}, Fraction(7, 10)),
        ({"a": (0.3333, 0.3333), "b": (0.3333, 0.3333), "c": (0.3333, 0.3333)}, {"b"}, Fraction(1, 3)),  # of their sum
        ({"a": (0.3333, 0.3333), "b": (0.6666, 0.6666), "c": (0.0, 0.0)}, {"a"}, Fraction(1, 3)),
        ({"a": (0.25, 0.25), "b": (0.125, 0.125)}, {"a"}, Fraction(1, 4)),  # of c nothing is stated
        ({"a": (0.25, 0.25), "b": (0.25, 0.25), "c": (0.25, 0.5)}, {"a"}, Fraction(1, 4)),
    ],
)
def test_the_prior_share_of_a_secrets_categories(shares: Shares, members: set[str], wanted: Fraction) -> None:
    assert float(_share(shares, frozenset(members), CATEGORIES)) == pytest.approx(float(wanted), rel=1e-15)


@pytest.mark.parametrize(
    ("shares", "members"),
    [
        ({"a": (0.2, 0.3), "b": (0.3, 0.3)}, {"a"}),
        ({"a": (0.2, 0.3), "b": (0.3, 0.3)}, {"a", "b"}),
        ({"b": (0.3, 0.3)}, {"a"}),
        ({"a": (0.0, 0.0), "b": (0.5, 0.5), "c": (0.5, 0.5)}, {"a"}),
        ({"a": (0.5, 0.5), "b": (0.5, 0.5), "c": (0.0, 0.0)}, {"a", "b"}),
        ({"a": (0.0, 0.0), "b": (0.0, 0.0), "c": (0.0, 0.0)}, {"a"}),
    ],
)
def test_a_share_that_is_no_number_between_0_and_1_is_refused(shares: Shares, members: set[str]) -> None:
    with pytest.raises(Refusal):
        _share(shares, frozenset(members), CATEGORIES)


def test_single_persons_have_their_noise_where_delta_asks_for_less() -> None:
    """Between the noise with delta and that without: 1/0.8."""
    pure, loose = (plan(counts(epsilon=0.5, delta=delta), "laplace").noise.scale for delta in (0.0, 0.05))
    assert loose < 1.25 < pure
    made = plan(counts(epsilon=0.5, delta=0.05, individuals=0.8), "laplace")
    made.verify()
    assert made.noise.scale == pytest.approx(1.25, rel=1e-6)
    more = plan(counts(epsilon=0.5, delta=0.05, individuals=0.5), "laplace")
    assert more.noise.scale == pytest.approx(2.0, rel=1e-6)


@pytest.mark.parametrize("bounds", [(-3.0, 5.0), (2.0, 10.0)])
def test_an_average_is_as_wide_as_its_bounds_are_apart(bounds: tuple[float, float]) -> None:
    """Eight, in units of which two rows of three change: b is half of epsilon."""
    made = plan(problem("avg(y)", bounds={"y": bounds}), "laplace")
    term = evidence(made).term
    assert term.sensitivity == pytest.approx(8 / 3, rel=1e-12)
    (check,) = evidence(made).checks
    assert made.columns[0].noise.scale == pytest.approx(8 / 3 * check.apart, rel=1e-6)
    assert made.certificate.exact


def test_what_a_smaller_noise_would_do_is_known_only_without_delta_and_alone() -> None:
    for changes in ({"delta": 1e-6}, {"spend": 0.5}):
        assert not plan(problem("avg(y)", **changes), "laplace").certificate.exact


@pytest.mark.parametrize(
    ("query", "changes", "told"),
    [
        ("avg(y)", {}, True),
        ("sum(y)", {}, True),
        ("avg(y), sum(y)", {}, True),
        ("avg(y), count(*)", {}, True),
        ("count(*)", {}, False),
        ("avg(y), count(*) filter (where e = 1)", {}, False),
        ("avg(y) filter (where e = 1)", {}, False),
        ("avg(y), avg(z)", {"bounds": {"y": (0.0, 1.0), "z": (0.0, 1.0)}}, False),
        ("avg(y)", {"bounds": {}}, False),
        ("avg(z)", {}, False),
    ],
)
def test_which_averages_need_no_law(query: str, changes: dict[str, Any], told: bool) -> None:
    """Of one column in bounds, over all rows; whatever else is asked."""
    assert averages_an_unnamed_column(problem(query, **changes)) is told


def test_a_column_with_listed_values_has_a_law_of_its_own() -> None:
    laws = {"f": {"values": [0, 1], "probabilities": [0.5, 0.5]}, "m": {"values": [0, 1], "probabilities": [0.5, 0.5]}}
    named = ap.Counts(sensitive="sex", given={"y": laws})
    other = ap.Counts(sensitive="sex", given={"e = 1": {"f": 0.5, "m": 0.5}})
    for theta in ((named,), (other, named), (named, other)):
        assert not averages_an_unnamed_column(problem("avg(y)", theta=theta))
