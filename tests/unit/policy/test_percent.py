"""A share may be written in percent; a mean, a sum or a count may not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from attrpriv.errors import PolicyError
from attrpriv.policy import Policy
from attrpriv.policy.strict_yaml import load_strict
from attrpriv.policy.written import Percent, without_percent

TEXT = "attrpriv: 1\nepsilon: 1.0\nprotect:\n  - secret: {secret}\n    {key}: {value}\n"


def load(folder: Path, **parts: str) -> Policy:
    path = folder / "p.yaml"
    path.write_text(TEXT.format(**parts), encoding="utf-8")
    return Policy.load(path)


@pytest.mark.parametrize(
    "secret", ["mean(income)", "sum(income)", "count(smoker = 'yes')", "mean(0.5*a)", "[mean(a), mean(b)]"]
)
@pytest.mark.parametrize(("key", "value"), [("within", "1%"), ("between", "[10%, 20]"), ("between", "[10, 20%]")])
def test_a_percentage_of_something_else_is_refused(secret: str, key: str, value: str, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=rf"^protect\[0\]\.{key}: only a share may be given in percent\. Got .* Write a "):
        load(tmp_path, secret=secret, key=key, value=value)


@pytest.mark.parametrize("secret", ["0.5*a", "yes", "[a, b]", "{a: 1}", "5"])
def test_what_is_no_statistic_is_said_before_the_percentage(secret: str, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"^protect\[0\]: must be (a statistic|mean\(\.\.\.\) or sum)"):
        load(tmp_path, secret=secret, key="between", value="[10%, 20%]")


@pytest.mark.parametrize(
    ("secret", "key", "value"),
    [
        ("share(smoker = 'yes')", "between", "[25%, 40%]"),
        ("' SHARE(smoker = 1)'", "within", "1%"),
        ("mean(rate)", "within", "0.01"),
        ("distribution(smoker)", "between", "{'yes': [10%, 20%], other: [80%, 90%]}"),
    ],
)
def test_a_share_is_not(secret: str, key: str, value: str, tmp_path: Path) -> None:
    found = load(tmp_path, secret=secret, key=key, value=value).protect[0]
    given: Any = found.between if key == "between" else found.within
    assert type(given[0] if isinstance(given, tuple) else given) is not Percent


def test_a_parameter_of_the_population(tmp_path: Path) -> None:
    text = "attrpriv: 1\nepsilon: 1\nprotect: [{{parameter: {}, between: [1%, 2%]}}]\n"
    path = tmp_path / "p.yaml"
    path.write_text(text.format("share(a = 1)"), encoding="utf-8")
    assert Policy.load(path).protect[0].between == (0.01, 0.02)
    path.write_text(text.format("income"), encoding="utf-8")
    with pytest.raises(PolicyError, match=r"^protect\[0\]\.between: only a share"):
        Policy.load(path)


def test_numbers_are_plain_afterwards() -> None:
    read = load_strict("a: [10%, {b: 5%}]\n7%: 1", percent=Percent)
    assert read == {"a": [0.1, {"b": 0.05}], 0.07: 1}
    plain = without_percent(read)
    assert plain == read
    assert [type(x) for x in (plain["a"][0], plain["a"][1]["b"], next(k for k in plain if k != "a"))] == [float] * 3
    assert type(load_strict("a: 10%")["a"]) is float  # type: ignore[index]
