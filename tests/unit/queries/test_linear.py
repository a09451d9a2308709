"""Linear combinations in a secret: what is read, what is refused, and that a canonical text is read back as itself."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from attrpriv.errors import QueryError
from attrpriv.queries.arithmetic import Linear, parse_linear

ACCEPTED = {
    "mean(income)": ("mean", {"income": 1}, "mean(income)"),
    "AVG(income)": ("mean", {"income": 1}, "mean(income)"),
    'sum("body weight")': ("sum", {"body weight": 1}, 'sum("body weight")'),
    "mean(a + b)": ("mean", {"a": 1, "b": 1}, "mean(a + b)"),
    "mean(0.5*a + 0.5*b)": ("mean", {"a": 0.5, "b": 0.5}, "mean(0.5 * a + 0.5 * b)"),
    "sum(a - b)": ("sum", {"a": 1, "b": -1}, "sum(a - b)"),
    "mean(-(a - 2 * b) / 4)": ("mean", {"a": -0.25, "b": 0.5}, "mean(-0.25 * a + 0.5 * b)"),
    "mean(-a)": ("mean", {"a": -1}, "mean(-a)"),
    "mean(a + a)": ("mean", {"a": 2}, "mean(2 * a)"),
    "mean(a + b - b)": ("mean", {"a": 1}, "mean(a)"),
    "mean(1e-7 * a)": ("mean", {"a": 1e-7}, "mean(1e-07 * a)"),
}


@pytest.mark.parametrize("text", ACCEPTED)
def test_what_is_accepted(text: str) -> None:
    kind, coefficients, canonical = ACCEPTED[text]
    read = parse_linear(text)
    assert (read.kind, dict(read.coefficients)) == (kind, coefficients)
    assert read.text == canonical
    assert parse_linear(canonical) == read


@pytest.mark.parametrize(
    "text",
    [
        "income",
        "",
        "median(income)",
        "count(*)",
        "mean(income), sum(income)",
        "mean(a * b)",
        "mean(1 / a)",
        "mean(a / 0)",
        "mean(a / b)",
        "mean(a + 1)",
        "mean(1)",
        "mean(a - a)",
        "mean(a * 'x')",
        "mean(log(a))",
        "mean(DISTINCT a)",
        "mean(a) FILTER (WHERE b > 1)",
        "mean(a) OVER ()",
        "mean(a, b)",
        "mean(t.a)",
        "mean(1e308 * 10 * a)",
        "mean(a) FROM other",
        "mean(" + "(" * 3000 + "a",
    ],
)
def test_what_is_refused(text: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse_linear(text)
    message = str(caught.value)
    assert message.startswith("must be mean(...) or sum(...) of one column or of numbers times columns. Got ")
    assert message.isprintable()
    assert len(message) < 300


NAMES = st.text(min_size=1, alphabet=st.characters(codec="utf-8") | st.sampled_from("\"'`;-+*/ \n\0aZ_09"))
WEIGHTS = st.floats(allow_nan=False, allow_infinity=False, width=64).filter(lambda weight: weight != 0)


@given(st.sampled_from(["mean", "sum"]), st.dictionaries(NAMES, WEIGHTS, min_size=1, max_size=4))
@example("mean", {"x + -y": 1.0, "a": -2.0})
@example("sum", {"select": -1.0, "b": 5e-324, "c": 1.7976931348623157e308, "d": 1e22})
def test_a_canonical_text_is_read_back(kind: str, weights: dict[str, float]) -> None:
    given = Linear(kind, tuple(weights.items()))  # type: ignore[arg-type]
    read = parse_linear(given.text)
    assert read == given
    assert read.text == given.text


def test_a_sum_weighs_n_times_a_mean() -> None:
    assert (parse_linear("sum(a)").weight(7), parse_linear("mean(a)").weight(7)) == (7, 1)
    assert math.isclose(sum(weight for _, weight in parse_linear("mean(0.1*a + 0.2*a)").coefficients), 0.3)
