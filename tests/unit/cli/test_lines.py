"""Long lines: whole in a pipe, and in a terminal broken between words, with reasons as a list."""

from __future__ import annotations

import io

import pytest
from rich import box
from rich.console import Console
from rich.table import Table

from attrpriv.cli import render
from attrpriv.cli.lines import bar, complaint, fit, hang
from attrpriv.errors import Way
from attrpriv.problem.refusal import Cause, Refusal

VIEW = Refusal(
    Cause.SECRET,
    "a view hides mean(income), which of < 5 | >= 5 holds it; protect a distribution over bins instead.",
)
BOUNDS = Refusal(Cause.PUBLIC_FACT, "need bounds for weight; declare bounds: {weight: [low, high]}.")
WAY = Way(
    "no mechanism can prove the guarantee.",
    (("subsample", VIEW), ("laplace, optimal", BOUNDS)),
    "for other assumptions: markov_quilt (parameter_network).",
)
REFUSED = f"attrpriv: {WAY}"


def test_reasons_are_a_list_and_nothing_is_lost() -> None:
    lines = complaint("", 60, [WAY]).splitlines()
    assert max(map(len, lines)) <= 60
    assert lines[0] == "attrpriv: no mechanism can prove the guarantee."
    starts = [line for line in lines if line.startswith("  - ")]
    assert [line.split(":")[0] for line in starts] == ["  - subsample", "  - laplace, optimal", "  - for other assumptions"]
    assert all(line.startswith("    ") for line in lines[1:] if line not in starts)
    assert " ".join(" ".join(lines).split()).replace(" - ", " ") == REFUSED.replace(". | ", ". ")


def test_a_second_way_begins_a_new_line() -> None:
    reasons = (("laplace", Refusal(Cause.NUMBERS, "needs a.")), ("optimal", Refusal(Cause.NUMBERS, "needs b.")))
    second = Way("As a quotient of a sum and a count: avg(x), a part of what is asked: nothing fits.", reasons)
    lines = complaint("", 200, [WAY, second]).splitlines()
    assert lines[: len(complaint("", 200, [WAY]).splitlines())] == complaint("", 200, [WAY]).splitlines()
    assert lines[-3:] == [
        "As a quotient of a sum and a count: avg(x), a part of what is asked: nothing fits.",
        "  - laplace: needs a.",
        "  - optimal: needs b.",
    ]


def test_reasons_that_were_told_are_not_repeated() -> None:
    told = "attrpriv: no mechanism can prove the guarantee. The reasons are above."
    assert complaint("", 100, [WAY], told=True) == told
    alone = "secret: which of < 5 | >= 5 holds it is no list. Got it."
    assert complaint(alone, 200) == complaint(alone, 200, told=True) == f"attrpriv: {alone}"
    one = Way(reasons=(("laplace", BOUNDS),))
    assert complaint("", 200, [one]) == complaint("", 200, [one], told=True) == f"attrpriv: laplace: {BOUNDS.reason}"


def test_a_name_cannot_write_on_the_terminal() -> None:
    way = Way(
        "no mechanism can prove it.", (("a", Refusal(Cause.NUMBERS, "x\x1b[2J.")), ("b", Refusal(Cause.NUMBERS, "y\nz.")))
    )
    said = complaint("", 200, [way])
    assert "\x1b" not in said
    assert said.splitlines()[-1] == "  - b: y z."


def printed(text: str, width: int, *, terminal: bool) -> list[str]:
    shown = Console(file=io.StringIO(), width=width, force_terminal=terminal, color_system=None, highlight=False, emoji=False)
    hang(shown, text)
    return shown.file.getvalue().splitlines()  # type: ignore[attr-defined, no-any-return]


def test_a_note_is_set_in_where_it_goes_on() -> None:
    words = "- " + " ".join(["word"] * 30)
    found = printed(f"[dim]-[/dim] {words[2:]}", 40, terminal=True)
    assert len(found) == 5
    assert found[0].startswith("- word")
    assert all(line.startswith("  word") and len(line) <= 40 and line == line.rstrip() for line in found[1:])
    assert " ".join(line.strip() for line in found) == words
    assert printed(words, 10_000, terminal=False) == [words]


def test_a_pipe_gets_the_whole_line(capsys: pytest.CaptureFixture[str]) -> None:
    render.complain(str(WAY), [WAY], told=True)
    assert capsys.readouterr().err == REFUSED + "\n"


@pytest.mark.parametrize("width", [68, 70, 75, 80, 81, 82, 90, 120])
@pytest.mark.parametrize("query", ["avg(weight)", "count(*) filter (where state = 1 and stay > 7)"], ids=["short", "long"])
def test_no_word_of_a_table_is_broken(query: str, width: int) -> None:
    headers = [query, "noise", "expected error", "within 95% of the time", "guarantee"]
    rows = [
        ["calibrated_weights", "gaussian 1.177", "1.177", "+-2.308", "proved"],
        ["constant (baseline)", "gaussian 0.4880", "0.4999", "+-12,258.55", "approximate"],
    ]
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for header in headers:
        table.add_column(header, overflow="fold")
    for row in rows:
        table.add_row(*row)
    fit(table, headers, rows, width)
    shown = Console(file=io.StringIO(), width=width, color_system=None)
    shown.print(table)
    text = shown.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, text.splitlines())) <= width
    assert {word for cell in [*headers[1:], *rows[0], *rows[1]] for word in cell.split()} <= set(text.split())


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_a_bar_stays_on_its_line(width: int) -> None:
    for share in (0.0, 0.5, 1.0):
        assert len(bar("reading the table once", share, 10_000_000, width)) <= width - 2
