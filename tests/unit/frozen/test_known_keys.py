"""The known key that a misspelt one is nearest to, at its own place."""

from __future__ import annotations

import pytest

from attrpriv.errors import PolicyError
from attrpriv.frozen.known_keys import nearest_key
from attrpriv.policy import Policy
from attrpriv.problem.assumption import Assumption


@pytest.mark.parametrize(
    ("location", "near"),
    [
        (("epsilonn",), "epsilon"),
        (("protect", 0, "wthin"), "within"),
        (("assume", 0, "<gaussian>", "corelation"), "correlation"),
        (("assume", 0, "<gaussian>", "tolerance", "slop"), "slope"),
        (("assume", 0, "<gaussian>", "tolerance", "shape", "lamda"), "lambda"),
        (("assume", 0, "<counts>", "givn"), "given"),
        (("assume", 0, "<gaussian>", "givn"), None),  # a key of another kind
        (("individuals", "<epsilon>", "epsilonn"), "epsilon"),
        (("qqqq",), None),
    ],
)
def test_the_nearest_key(location: tuple[int | str, ...], near: str | None) -> None:
    for kind in ("gaussian", "counts"):
        Assumption.class_of(kind)  # a policy that names a kind has loaded it
    assert nearest_key(Policy, location) == near


def test_an_unknown_key_is_named_before_a_missing_one() -> None:
    """The key that was meant is not counted as missing besides: there is one mistake, and protect is the other."""
    with pytest.raises(PolicyError, match=r"^epsilonn: unknown key\. Did you mean epsilon\? .* \(1 more after this one\.\)$"):
        Policy.checked({"epsilonn": 1.0})
