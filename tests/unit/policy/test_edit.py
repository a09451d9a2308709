"""Edits of a policy file that a person wrote: what is written, what stays, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from attrpriv.errors import PolicyError
from attrpriv.policy import Policy, edit
from attrpriv.policy.edit import append, remove, set_value
from attrpriv.policy.strict_yaml import load_strict
from attrpriv.policy.written import Percent

ROOT = Path(__file__).resolve().parents[3]
POLICY = """\
# who may see this
epsilon: 1.0      # as the board said
protect:
  # the one secret
  - secret: mean(income)   # per year
    between: [20000, 200000]

  - secret: share(smoker = 'yes')
    between: [10%, 30%]
bounds:
release: ["avg(weight)"]   # more later
"""


@pytest.mark.parametrize(
    ("path", "value", "old", "new"),
    [
        (("epsilon",), 0.05, "epsilon: 1.0  ", "epsilon: 0.05  "),
        (("epsilon",), 1e-6, "epsilon: 1.0  ", "epsilon: 1e-6  "),
        (("epsilon",), 2.0, "epsilon: 1.0  ", "epsilon: 2  "),
        (("protect", 0, "between"), (10_000, 150_000.5), "[20000, 200000]", "[10000, 150000.5]"),
        (("protect", 0, "between", 1), 90_000, "200000", "90000"),
        (("protect", 1, "between"), [Percent(0.07), Percent(0.125)], "[10%, 30%]", "[7%, 12.5%]"),
        (("protect", 1, "secret"), "share(a = 'b #1')", "share(smoker = 'yes')", "'share(a = ''b #1'')'"),
        (("protect", 0, "within"), 1000, "    between: [20000, 200000]\n", "    between: [20000, 200000]\n    within: 1000\n"),
        (("bounds",), {"weight": [40, 120]}, "bounds:\n", "bounds:\n  weight: [40, 120]\n"),
        (("bounds", "weight"), [40, 120], "bounds:\n", "bounds:\n  weight: [40, 120]\n"),
        (("release",), ["avg(a)", "count(*)"], '["avg(weight)"]', '["avg(a)", "count(*)"]'),
        (("release",), [], '["avg(weight)"]', "[]"),
        (("delta",), 1e-6, "# more later\n", "# more later\ndelta: 1e-6\n"),
        (("sizes", "sex = 'm'"), 40, "# more later\n", "# more later\nsizes:\n  sex = 'm': 40\n"),
    ],
)
def test_a_value_is_written_as_people_write_it(path: edit.Path, value: object, old: str, new: str) -> None:
    assert POLICY.count(old) == 1
    assert set_value(POLICY, path, value) == POLICY.replace(old, new)


def test_items_are_appended_in_the_style_of_their_list() -> None:
    more = append(POLICY, ("release",), "count(*)")
    assert more == POLICY.replace('["avg(weight)"]', '["avg(weight)", "count(*)"]')
    assert append(POLICY, ("protect",), {"secret": "mean(age)", "between": [20, 60]}) == POLICY.replace(
        "bounds:", "  - secret: mean(age)\n    between: [20, 60]\nbounds:"
    )
    assert append("a: 1\n", ("release",), "avg(x)") == "a: 1\nrelease:\n  - avg(x)\n"


def test_what_is_removed_takes_no_comment_of_others_along() -> None:
    assert remove(POLICY, ("epsilon",)) == POLICY.replace("epsilon: 1.0      # as the board said\n", "")
    assert remove(POLICY, ("protect", 0)) == POLICY.replace(
        "  - secret: mean(income)   # per year\n    between: [20000, 200000]\n", ""
    )
    assert remove(POLICY, ("protect", 0, "secret")) == POLICY.replace(
        "secret: mean(income)   # per year\n    between", "between"
    )
    assert remove(POLICY, ("release", 0)) == POLICY.replace('["avg(weight)"]', "[]")
    assert remove(POLICY, ("release",)) == POLICY.replace('release: ["avg(weight)"]   # more later\n', "")


@pytest.mark.parametrize("text", ["", "\n", "# nothing yet", "# nothing yet\n\n", "\ufeff# nothing yet\n"])
def test_an_empty_file_gets_its_first_entry(text: str) -> None:
    new = set_value(text, ("epsilon",), 1)
    assert new.startswith(text)
    assert load_strict(new) == {"epsilon": 1}


def test_windows_line_ends_stay() -> None:
    text = POLICY.replace("\n", "\r\n")
    for new in (
        set_value(text, ("bounds", "weight"), [40, 120]),
        append(text, ("protect",), {"secret": "mean(age)", "within": 3}),
        remove(text, ("protect", 1)),
    ):
        assert new.count("\n") == new.count("\r\n") > 8


def test_a_comment_below_an_entry_stays_with_it() -> None:
    text = "release:\n  - avg(a)\n    # the first\n# from here on: later\n"
    assert append(text, ("release",), "avg(b)") == text.replace("# from", "  - avg(b)\n# from")
    assert set_value(text, ("epsilon",), 1) == text.replace("# from", "epsilon: 1\n# from")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda: set_value(POLICY, (), 1), "path: must name a place"),
        (lambda: set_value(POLICY, ("epsilon", "deep"), 1), r"epsilon\.deep: must be a place in this policy\. Got 'deep'"),
        (lambda: set_value(POLICY, ("protect", 2), 1), r"protect\[2\]: must be a place"),
        (lambda: set_value(POLICY, ("protect", -1), 1), "must be a place"),
        (lambda: set_value(POLICY, ("protect", True), 1), "must be a place"),
        (lambda: set_value(POLICY, (7,), 1), "must be a place"),
        (lambda: append(POLICY, ("epsilon",), 1), "epsilon: must be a list"),
        (lambda: remove(POLICY, ("delta",)), "delta: must be a place"),
        (lambda: remove(POLICY, ("protect", 0, "within")), r"protect\[0\]\.within: must be a place"),
        (lambda: set_value(POLICY, ("epsilon",), float("nan")), "numbers must be finite"),
        (lambda: set_value(POLICY, ("epsilon",), object()), "must be text, numbers"),
        (lambda: set_value("- a\n", ("epsilon",), 1), "policy: must be a mapping"),
        (lambda: set_value("a: &b 1\n", ("epsilon",), 1), "anchors are not allowed"),
    ],
)
def test_what_cannot_be_is_refused(change: object, told: str) -> None:
    with pytest.raises(PolicyError, match=told):
        change()  # type: ignore[operator]


def test_a_text_that_would_say_something_else_is_never_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check behind every edit, with an edit that goes wrong."""
    monkeypatch.setattr(edit, "inline_text", lambda value: "9")
    with pytest.raises(PolicyError, match="epsilon: cannot be changed alone"):
        set_value(POLICY, ("epsilon",), 1)


def test_a_text_block_at_the_end_of_a_file_without_a_line_break_is_not_lengthened() -> None:
    """A line behind it would give it a line break."""
    with pytest.raises(PolicyError, match="delta: cannot be changed alone"):
        set_value("source:\n  epsilon: |\n    the board", ("delta",), 0)


@pytest.mark.parametrize("name", ["students/students.yaml"])
def test_an_edited_example_is_a_policy(name: str, tmp_path: Path) -> None:
    text = (ROOT / "examples" / name).read_text(encoding="utf-8")
    path = tmp_path / "policy.yaml"
    path.write_text(append(set_value(text, ("epsilon",), 0.5), ("release",), "count(*)"), encoding="utf-8")
    policy = Policy.load(path)
    assert policy.epsilon == 0.5
    assert policy.release[-1] == "count(*)"
