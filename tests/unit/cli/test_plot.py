"""`--plot FILE` of `plan`, `ledger` and `view`: the picture that Python draws, the same words on stdout, no row more."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import attrpriv as ap
from attrpriv.pictures import subjects
from attrpriv.pictures.svg import file_svg
from tests.end_to_end.material import Said, policy, school, write_policy

HIDE_THE_SHARE = policy(
    "assume",
    "resolution",
    "release",
    protect=[{"secret": "share(gender = 'F')", "between": [0.4, 0.6]}],
    categories={"gender": ["F", "M"]},
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    school(tmp_path)
    write_policy(tmp_path, HIDE_THE_SHARE | {"ledger": "view.ledger"}, name="view.yaml")
    return tmp_path


def test_a_plan(here: Path) -> None:
    plain = Said("plan", "students.yaml")
    drawn = Said("plan", "students.yaml", "--plot", "plan.svg")
    assert (drawn.code, drawn.out, drawn.err) == (0, plain.out, plain.err)
    ranking = ap.Session(policy="students.yaml").rank("avg(weight)")
    assert (here / "plan.svg").read_text("utf-8") == file_svg(subjects.mechanisms(ranking))
    assert Said("plan", "students.yaml", "--plot", "plan.svg", "--json").json == Said("plan", "students.yaml", "--json").json


def test_a_plan_that_is_refused_has_no_picture(here: Path) -> None:
    said = Said("plan", "students.yaml", "avg(height)", "--plot", "plan.svg")
    assert said.code != 0
    assert said.err == Said("plan", "students.yaml", "avg(height)").err
    assert not (here / "plan.svg").exists()


def test_a_ledger(here: Path) -> None:
    assert Said("ledger", "students.yaml", "--plot", "budget.svg").complaint == (
        "plot: nothing has been released, so there is no budget to show."
    )
    assert Said("release", "students.yaml").code == 0
    drawn = Said("ledger", "students.yaml", "--plot", "budget.svg")
    assert (drawn.code, drawn.out) == (0, Said("ledger", "students.yaml").out)
    with ap.Session(policy="students.yaml") as session:
        assert (here / "budget.svg").read_text("utf-8") == file_svg(subjects.budget(session.ledger.left()))
    assert Said("ledger", "students.yaml", "--recheck", "--plot", "again.svg").code == 0
    assert (here / "again.svg").read_bytes() == (here / "budget.svg").read_bytes()
    assert "plot: needs the entries" in Said("ledger", "students.yaml", "--verify", "--plot", "no.svg").complaint


def test_a_view(here: Path) -> None:
    drawn = Said("view", "view.yaml", "--out", "rows.parquet", "--plot", "kept.svg")
    assert drawn.code == 0, drawn.err
    text = (here / "kept.svg").read_text("utf-8")
    assert text == file_svg(subjects.kept(ap.Session(policy="view.yaml").view_plan()))
    assert "What the view keeps" in text


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("kept.gif", "plot: must end in .svg, .png or .pdf. Got kept.gif."),
        ("nowhere/kept.svg", "plot: the folder nowhere is not there. Make it first."),
    ],
)
def test_a_picture_that_cannot_be_is_refused_before_anything_is_done(here: Path, name: str, message: str) -> None:
    for command in (["view", "view.yaml", "--out", "rows.parquet"], ["plan", "students.yaml"], ["ledger", "students.yaml"]):
        assert Said(*command, "--plot", name).complaint == message
    assert {path.name for path in here.iterdir()} == {"students.parquet", "students.yaml", "view.yaml"}


def test_the_rows_and_the_picture_are_two_files(here: Path) -> None:
    said = Said("view", "view.yaml", "--out", "rows.svg", "--plot", "./rows.svg")
    assert said.complaint == "plot: must be a file of its own. Got rows.svg, which is also --out."
    assert not (here / "rows.svg").exists()


def test_without_matplotlib_svg_is_drawn_and_png_refused_at_once(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    refused = Said("view", "view.yaml", "--out", "rows.parquet", "--plot", "kept.png")
    assert refused.complaint.endswith("Install it with pip install 'attrpriv[plots]', or write .svg.")
    assert not (here / "view.ledger").exists()
    assert Said("plan", "students.yaml", "--plot", "plan.svg").code == 0


def test_png_by_matplotlib(here: Path) -> None:
    pytest.importorskip("matplotlib", reason="attrpriv[plots] is not installed")
    assert Said("plan", "students.yaml", "--plot", "plan.png").code == 0
    assert (here / "plan.png").read_bytes().startswith(b"\x89PNG")


def test_a_file_that_cannot_be_opened_is_no_unexpected_error(here: Path) -> None:
    (here / "plan.svg").mkdir()
    assert Said("plan", "students.yaml", "--plot", "plan.svg").complaint == (
        "plot: must be a place that can be written. Got plan.svg."
    )
