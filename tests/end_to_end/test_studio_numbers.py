"""Numbers that people type into the studio's forms: what is no number, or may be two, is asked for again and never written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.material import attrpriv, contents, school, students, write_table
from tests.end_to_end.studio_server import opened
from tests.end_to_end.test_studio import good

NEVER = ("1e999", "-1e999", "nan", "inf", "1e-400", "1_000", "\uff11\uff12", "0x10", "9" * 400, "1,234", "2,5", "1 000")
MEAN = {"column": "income", "low": "20000", "high": "60000", "within": "1000"}
SHARE = {"column": "gender", "value": "F", "low": "25%", "high": "45%", "within": "2%"}
RIGHT = {
    "Hide this average": ("hide", MEAN),
    "Hide how": ("hide", SHARE),
    "Use this budget": ("compare", {"epsilon": "0.5", "delta": "1e-7"}),
    "Save the public facts": ("publish", {"low__weight": "50", "high__weight": "300", "step__weight": "1"}),
    "Save the numbers": ("know", {"value__assume.sd.income": "20000", "value__assume.tolerance.mean": "0.05"}),
}


@pytest.mark.parametrize("button", RIGHT)
def test_what_no_float_holds_or_has_two_meanings_is_told_once_and_not_written(tmp_path: Path, button: str) -> None:
    policy = school(tmp_path)
    screen, right = RIGHT[button]
    with opened(tmp_path) as browser:
        address = f"/p/{policy.name}/{screen}"
        form = good(browser.get(address)).form(button)
        before = contents(tmp_path)
        fields = sorted(right.keys() - {"column", "value"})
        for k, typed in enumerate(NEVER):
            name = fields[k % len(fields)]
            told = browser.send(form, **{**right, name: typed})
            assert (told.status, told.text.count('role="alert"')) == (422, 1), (name, typed, told.problem)
            assert "must be a number" in told.problem, (name, typed)
            assert "unexpected" not in told.problem
            assert contents(tmp_path) == before
        assert good(browser.send(form, **right)).status == 200  # typed as it should be, all of it is taken
    assert attrpriv("check", policy.name, folder=tmp_path).returncode in (0, 3)


DOUBTFUL = (
    ("Hide how", {"low": "25", "high": "45"}, "with its percent sign", "share-low"),
    ("Hide how", {"high": "45"}, "with its percent sign", "share-high"),
    ("Hide how", {"low": "45%", "high": "25%"}, "the smaller one first", "share-low"),
    ("Hide how", {"within": "2"}, "with its percent sign", "share-within"),
    ("Hide how", {"within": "0.5"}, "Write 50% or 0.5%.", "share-within"),
    ("Hide how", {"as": "count", "low": "0.25", "high": "0.45", "within": ""}, "whole number of rows", "share-low"),
    ("Hide how", {"as": "count", "low": "1.000", "high": "2.000", "within": ""}, "whole number of rows", "share-low"),
    ("Hide how", {"column": "income", "value": "60.000"}, "60000 or 60.0000", "share-value"),
    ("Hide this average", {"low": "20.000", "high": "60.000"}, "20000 or 20.0000", "mean-low"),
    ("Hide this average", {"low": "20%"}, "in the unit of the column", "mean-low"),
    ("Use this budget", {"epsilon": "0"}, "must be", "epsilon"),
    ("Publish this query", {"query": "weight"}, "avg(weight)", "query"),
    ("Publish this number", {"column": "weight", "where": "weight is heavy"}, "must be", "where"),
    ("Save the public facts", {"low__weight": "50%"}, "in the unit of the column", "low:weight"),
    ("Save the numbers", {"value__assume.sd.income": "20,30"}, "must be a number", "numbers-value:assume.sd.income"),
    ("Save the numbers", {"value__assume.sd.income": "20.000"}, "20000 or 20.0000", "numbers-value:assume.sd.income"),
    ("Release", {"typed": "release"}, "must be the words", "typed"),
)
SCREEN = {"Publish this query": "publish", "Publish this number": "publish", "Release": "release"}


def test_what_may_mean_two_things_is_asked_for_again_at_its_field(tmp_path: Path) -> None:
    policy = school(tmp_path)
    before = policy.read_bytes()
    with opened(tmp_path) as browser:
        for button, change, said, field in DOUBTFUL:
            screen, right = RIGHT.get(button) or (SCREEN[button], {})
            told = browser.send(browser.get(f"/p/{policy.name}/{screen}").form(button), **{**right, **change})
            assert (told.status, said in told.problem) == (422, True), (change, told.problem)
            assert f'href="#{field}">Go to the field' in told.text, (change, told.problem)
            assert [one["id"] for _, one in told.parsed.tags if "aria-invalid" in one] == [field], change
            kept = dict(told.form(button).fields)  # nobody types all of it again
            assert {name.replace("__", ":"): value for name, value in change.items() if name != "typed"}.items() <= kept.items()
    assert policy.read_bytes() == before


def test_a_value_of_a_column_keeps_all_its_digits(tmp_path: Path) -> None:
    policy = school(tmp_path, protect=[{"secret": "TODO"}])
    with opened(tmp_path) as browser:
        hide = browser.get(f"/p/{policy.name}/hide").form("Hide how")
        good(browser.send(hide, **{**SHARE, "column": "income", "value": "1234567"}))
    assert "share(income = 1234567)" in policy.read_text(encoding="utf-8")


def test_numbers_that_are_left_as_they_are_stay_as_they_are_written(tmp_path: Path) -> None:
    """Also where a form would not take them: underscores and percent signs are the file's."""
    policy = school(tmp_path, bounds={"weight": ["LOW", "HIGH"]})
    text = policy.read_text(encoding="utf-8").replace("LOW", "1_0").replace("HIGH", "1_000").replace("1.0", "1.000")
    policy.write_text(text, encoding="utf-8")
    with opened(tmp_path) as browser:
        good(browser.send(browser.get(f"/p/{policy.name}/publish").form("Save the public facts"), step__weight="2"))
        good(browser.send(browser.get(f"/p/{policy.name}/compare").form("Use this budget"), delta="1e-7"))
        number = "value__assume.tolerance.mean"
        good(browser.send(browser.get(f"/p/{policy.name}/know").form("Save the numbers"), **{number: "0.02"}))
    after = policy.read_text(encoding="utf-8")
    assert ["1_0" in after, "1_000" in after, "epsilon: 1.000" in after] == [True] * 3
    assert ["weight: 2" in after, "delta: 1e-7" in after, "mean: 0.02" in after] == [True] * 3


def test_the_number_of_rows_of_a_text_file(tmp_path: Path) -> None:
    write_table(tmp_path, students(), "club.csv")
    with opened(tmp_path) as browser:
        page = good(browser.send(browser.get("/").form("Make a policy"), table="club.csv"))
        form = page.form("Save the number")
        before = contents(tmp_path)
        for typed in (*NEVER, "1.000", "400.0", "4e2", "40%", "-400", "0"):
            told = browser.send(form, rows=typed)
            assert (told.status, told.problem.startswith("rows: must be")) == (422, True), (typed, told.problem)
            assert contents(tmp_path) == before
        good(browser.send(form, rows="400"))
