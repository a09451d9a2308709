"""Where several parameters are hidden, a column is told exactly only if the set of each of them lets it show."""

from __future__ import annotations

import pytest

from attrpriv.problem.secret import Parameter, Secret
from attrpriv.queries.query import Query
from tests.unit.methods.markov_quilt.test_plan import evidence_of, quilted

INCOME, HEIGHT = Parameter("income"), Parameter("height")


@pytest.mark.parametrize("secrets", [(INCOME, HEIGHT), (HEIGHT, INCOME), (HEIGHT,)])
def test_a_column_close_to_one_of_them_gets_noise(secrets: tuple[Secret, ...]) -> None:
    """Weight follows height, and has little to do with income: for that alone its average needs no noise."""
    found = quilted(queries=(Query("avg", "weight"),), secrets=secrets, epsilon=0.5)
    found.verify()
    assert found.columns[0].noise.scale == pytest.approx(340.0 / 0.5, rel=1e-6)
    assert not found.certificate.exact
    assert evidence_of(found).loss() <= 0.5
    alone = quilted(queries=(Query("avg", "weight"),), secrets=(INCOME,), epsilon=0.5)
    assert alone.columns[0].noise.kind == "none"
    assert alone.certificate.exact
