"""The base of every kind of evidence: what a kind does not say, it has not proved."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from attrpriv.methods.base.evidence import ConstantEvidence, Counted, Evidence, LaplaceEvidence, kind_of, words_of
from attrpriv.methods.table import METHODS, home_of_evidence


def loaded(kind: str) -> type[Evidence]:
    home_of_evidence(kind)
    return Evidence.kinds[kind]


KINDS: tuple[type[Evidence], ...] = tuple(loaded(kind) for method in METHODS for kind in method.proofs)
TOLD = Counted(10, 1, (0, 1), False, frozenset({"x"}), "", "x > 1", "laplace", 2.0)


def test_every_kind_is_an_evidence_with_a_name_of_its_own() -> None:
    assert len(KINDS) == 40
    assert all(issubclass(kind, Evidence) for kind in KINDS)
    assert len({kind.model_fields["kind"].default for kind in KINDS}) == len(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_says_what_was_released(kind: type[Evidence]) -> None:
    assert kind.words != Evidence.words
    assert kind.room.endswith(".")
    assert "delta" in vars(kind) or any("delta" in vars(base) for base in kind.__mro__[1:-1] if base is not Evidence)


@pytest.mark.parametrize("kind", KINDS)
def test_goes_on_where_its_rule_is_its_own(kind: type[Evidence]) -> None:
    own = (kind.spent is not Evidence.spent, kind.follows is not Evidence.follows)
    assert own == (kind.goes_on, kind.goes_on)


def test_the_base_proves_nothing() -> None:
    nothing = Evidence(kind="nothing")
    with pytest.raises(NotImplementedError):
        nothing.delta(1.0)
    assert nothing.follows(None)
    assert not nothing.follows(Evidence(kind="nothing"))
    assert nothing.spent(1.0, 0.1) == math.inf
    assert not nothing.covers("x", "gaussian", 1.0)
    assert not nothing.covers_statistic("var_pop(x)", frozenset({"x"}), Fraction(1), "laplace", 1.0)
    assert not nothing.covers_tally(TOLD)
    assert nothing.statistics_read() == ()
    assert nothing.view_of() is None
    assert nothing.model_error(1.0, 0.1) == ()
    assert nothing.found_by_program == frozenset()
    assert not nothing.found_by_search
    assert not nothing.errs_along
    assert (kind_of(None), kind_of(nothing)) == ("", "nothing")
    assert words_of(None) == words_of(nothing) == "a release of another kind"


def test_what_was_released_before_is_read_as_its_own_kind_alone() -> None:
    constant = ConstantEvidence()
    assert ConstantEvidence.read(constant) is constant
    assert LaplaceEvidence.read(constant) is None
    assert ConstantEvidence.read(None) is None


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_program_finds_is_a_field_of_the_evidence(kind: type[Evidence]) -> None:
    assert kind.found_by_program <= set(kind.model_fields)
    assert not kind.found_by_search or "scale" in kind.model_fields


def test_noise_for_the_whole_range_rests_on_no_number_that_could_be_off() -> None:
    assert {row.epsilon for row in ConstantEvidence().model_error(0.7, 0.0)} == {0.7}
    assert {row.epsilon for row in LaplaceEvidence(terms=()).model_error(0.7, 0.0)} == {0.7}
