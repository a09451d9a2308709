"""`init` as a conversation and by options: it ends in a policy that `check` accepts, or in one exact question."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from attrpriv.cli.app import app
from attrpriv.cli.conversation import Told, converse
from attrpriv.cli.decisions import Decisions, first_left, pair
from attrpriv.cli.starter import write_starter
from attrpriv.engines.tables import open_table
from attrpriv.errors import UsageError


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, rows, seed in (("staff", 4_000, 1), ("census", 9_000, 2)):
        random = np.random.default_rng(seed)
        education = random.integers(8, 19, rows)
        sex = np.where(random.random(rows) < 0.5, "F", "M")
        hours = np.rint(40 + 2 * (education - 13) + 3 * (sex == "M") + random.normal(0, 6, rows))
        frame = pd.DataFrame({"education": education, "hours": hours.astype(int), "sex": sex, "home town": 77731})
        frame.to_parquet(f"{name}.parquet")
    pd.read_parquet("staff.parquet").to_csv("staff.csv", index=False)
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(app, [*words])


def talk(data: str, *answers: str) -> tuple[Told, list[str]]:
    """The conversation with these answers, an empty one for Enter; and what was said."""
    left, said = iter(answers), list[str]()

    def ask(question: str, default: str | None = None) -> str:
        said.append(question)
        return next(left) or (default or "")

    told = converse(open_table(Path(data)), ask, said.append, Path(data))
    assert list(left) == []
    return told, said


CHECKED = {
    "a mean": ("--secret", "mean(education)", "--release", "avg(hours)", "--between", "12,14", "--within", "0.2"),
    "a share behind an average": (
        "--secret",
        "share(sex = 'F')",
        "--release",
        "avg(hours)",
        "--between",
        "40%,60%",
        "--within",
        "2%",
    ),
    "a share behind a count": (
        *("--secret", "share(sex = 'F')", "--release", "count(*) filter (where hours > 45)"),
        *("--between", "40%,60%", "--within", "2%"),
    ),
    "everything": ("--secret", "columns(education, sex)", "--least-density", "0.8", "--release", "avg(hours)"),
}


@pytest.mark.parametrize("options", CHECKED.values(), ids=CHECKED)
def test_options_that_decide_everything_make_a_policy_that_check_accepts(options: tuple[str, ...]) -> None:
    done = run("init", "staff.parquet", "--public", "census.parquet", *options)
    assert done.exit_code == 0, done.output
    assert "Nothing is left to decide" in done.output
    assert run("check", "staff.yaml").exit_code == 0


def test_what_is_left_is_one_question() -> None:
    done = run(
        "init",
        "staff.parquet",
        "--secret",
        "mean(education)",
        "--release",
        "avg(hours)",
        "--public",
        "census.parquet",
        "--json",
    )
    left = json.loads(done.output)["left"]
    assert (left["key"], left["count"]) == ("between", 2)
    assert Path("staff.yaml").read_text().splitlines()[left["line"] - 1].strip().startswith("between:")
    assert json.loads(done.output)["fitted"] is None
    again = run("init", "staff.parquet", *CHECKED["a mean"], "--public", "census.parquet", "--force", "--json")
    assert json.loads(again.output)["left"] is None
    assert Path(json.loads(again.output)["fitted"]).exists()


def test_the_command_that_comes_next_is_one_that_works() -> None:
    asked = ("--secret", "share(sex = 'F')", "--release", "count(*) filter (where hours > 45)", "--public", "census.parquet")
    done = run("init", "staff.parquet", *asked)
    following = re.search(r"then run: attrpriv (fit .*)", done.output)
    assert following is not None
    text = Path("staff.yaml").read_text().replace("[TODO, TODO]", "[40%, 60%]").replace("within: TODO", "within: 2%")
    Path("staff.yaml").write_text(text)
    assert run(*following[1].split()).exit_code == 0
    assert run("check", "staff.yaml").exit_code == 0


def test_the_private_table_is_no_public_record() -> None:
    done = run("init", "staff.parquet", *CHECKED["a mean"], "--public", "staff.parquet")
    assert done.exit_code == 2
    assert "public" in done.output
    assert not Path("staff.yaml").exists()  # nothing was written
    Path("staff.yaml").write_text("mine\n")
    assert run("init", "staff.parquet", *CHECKED["a mean"], "--public", "staff.parquet", "--force").exit_code == 2
    assert Path("staff.yaml").read_text() == "mine\n"


@pytest.mark.parametrize(
    ("option", "value"), [("--least-density", "0.5"), ("--rows", "10"), ("--between", "12"), ("--between", "1,2,3")]
)
def test_a_decision_without_a_place_is_refused(option: str, value: str) -> None:
    done = run("init", "staff.parquet", "--secret", "mean(education)", option, value)
    assert done.exit_code == 2
    assert option[2:] in done.output
    assert not Path("staff.yaml").exists()


def test_a_csv_file_is_asked_for_its_rows() -> None:
    left = json.loads(run("init", "staff.csv", "--secret", "columns(sex)", "--json").output)["left"]
    assert left["key"] == "rows"
    done = run("init", "staff.csv", "--secret", "columns(sex)", "--rows", "4000", "--force", "--json")
    assert json.loads(done.output)["left"]["key"] == "file"


TALKS = {
    "a mean": (
        ("1", "education", "avg(hours)", "census.parquet", "12, 14", "0.2"),
        Told("mean(education)", ("avg(hours)",), "school", Decisions(None, "12, 14", "0.2", None, Path("census.parquet"))),
    ),
    "a share behind a count": (
        ("2", "sex", "F", "count(*) filter (where hours > 45)", "", "40% 60%", ""),
        Told("share(sex = 'F')", ("count(*) filter (where hours > 45)",), None, Decisions(None, "40%, 60%", "all")),
    ),
    "a share of rows": (
        ("2", "sex", "F", "rows", "40%, 60%"),
        Told("share(sex = 'F')", (), "hospital", Decisions(None, "40%, 60%", None)),
    ),
    "everything": (
        ("3", 'education, "home town"', "census.parquet", ""),
        Told('columns(education, "home town")', (), "columns", Decisions(None, None, None, "0.8", Path("census.parquet"))),
    ),
}


@pytest.mark.parametrize("name", TALKS)
def test_a_conversation(name: str) -> None:
    answers, expected = TALKS[name]
    told, _ = talk("staff.parquet", *answers)
    assert told == expected


def test_what_cannot_be_is_asked_again_with_the_reason() -> None:
    answers = ("4", "1", "incomes", "sex", "education", "avg(", "avg(hours)", "nowhere.parquet", "", "12", "12 14", "1")
    told, said = talk("staff.parquet", *answers)
    assert told.secret == "mean(education)"
    reasons = [line for line in said if "Got" in line or "must" in line]
    assert len(reasons) >= 6
    assert not any("77731" in line for line in said)  # nothing of the table


RETRIES = {
    "a query of no column": (("1", "education", "avg(hour)", "avg(hours)", "", "12,14", ""), "Close: hours."),
    "a column alone": (("1", "education", "home town", "avg(hours)", "", "12,14", ""), 'Write avg("home town").'),
    "an average of words": (("1", "education", "avg(sex)", "avg(hours)", "", "12,14", ""), "need a numeric column"),
    "rows behind a mean": (("1", "education", "rows", "avg(hours)", "", "12,14", ""), "must say what is asked"),
    "the table itself": (("3", "sex", "staff.parquet", "census.parquet", ""), "Got its own file."),
    "no such column in the records": (("3", "sex", "bare.parquet", "census.parquet", ""), "must have the column sex."),
    "records that are no table": (("3", "sex", "notes.txt", "census.parquet", ""), "must end in .parquet"),
    "a value that records lack": (
        ("2", "sex", "Female", "count(*) filter (where hours > 45)", "census.parquet", "F", "40%,60%", ""),
        "the public records have 'F', 'M' for sex. Got 'Female'.",
    ),
    "words for a number": (("2", "education", "high", "12", "avg(hours)", "", "40%,60%", ""), "must be a number"),
    "a number for a truth": (("2", "member", "1", "true", "avg(hours)", "", "40%,60%", ""), "must be true or false"),
}


@pytest.mark.parametrize("name", RETRIES)
def test_an_answer_that_cannot_be_is_asked_for_again_at_once(name: str) -> None:
    """Nothing is found wrong after the last question: what was answered before would be lost."""
    answers, reason = RETRIES[name]
    staff = pd.read_parquet("staff.parquet")
    staff.assign(member=staff["hours"] > 40).to_parquet("staff.parquet")
    pd.DataFrame({"hours": [1, 2]}).to_parquet("bare.parquet")
    Path("notes.txt").write_text("sex\n", encoding="utf-8")
    told, said = talk("staff.parquet", *answers)
    assert sum(reason in line for line in said) == 1
    written = write_starter("staff.parquet", None, False, told.template, told.secret, told.releases, told.decisions)
    assert told.secret in written.text
    assert run("check", "staff.yaml").exit_code == 0 or written.left is not None


def test_a_value_in_quotes_keeps_its_spaces() -> None:
    told, _ = talk("staff.parquet", "2", "sex", "' F'", "rows", "40%,60%")
    assert told.secret == "share(sex = ' F')"


def test_a_policy_that_is_there_is_said_before_the_first_question(terminal: tuple[int, int], place: Path) -> None:
    ours, theirs = terminal
    (place / "staff.yaml").write_text("mine\n", encoding="utf-8")
    command = [sys.executable, "-m", "attrpriv", "init", "staff.parquet"]
    done = subprocess.run(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=place, timeout=120, check=False)
    shown = os.read(ours, 100_000).decode()
    assert done.returncode == 2
    assert "What must stay hidden" not in shown
    assert "staff.yaml exists already. Use --force to overwrite it" in shown


def test_rows_of_a_csv_file_are_asked_for() -> None:
    told, _ = talk("staff.csv", "3", "sex", "many", "4000", "census.parquet", "0", "0.7")
    assert told.decisions == Decisions(4000, None, None, "0.7", Path("census.parquet"))


def test_comments_are_no_decisions() -> None:
    assert first_left("# TODO\nepsilon: 1 # TODO\n") is None
    with pytest.raises(UsageError, match="two values"):
        pair("5")


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    if sys.platform == "win32":
        pytest.skip("needs a pseudo-terminal")
    import pty

    ends = pty.openpty()
    yield ends
    for end in ends:
        os.close(end)


def test_in_a_terminal_it_asks(terminal: tuple[int, int], place: Path) -> None:
    ours, theirs = terminal
    os.write(ours, b"3\neducation, sex\ncensus.parquet\n\n")
    command = [sys.executable, "-m", "attrpriv", "init", "staff.parquet"]
    done = subprocess.run(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=place, timeout=120, check=False)
    shown = os.read(ours, 100_000).decode()
    assert done.returncode == 0, shown
    assert "What must stay hidden?" in shown
    assert run("check", "staff.yaml").exit_code == 0


def test_the_end_of_the_input_at_a_question_is_one_line_and_writes_nothing(terminal: tuple[int, int], place: Path) -> None:
    ours, theirs = terminal
    before = sorted(place.iterdir())
    os.write(ours, b"1\n\x04")  # an answer, and Ctrl-D
    command = [sys.executable, "-m", "attrpriv", "init", "staff.parquet"]
    done = subprocess.run(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=place, timeout=120, check=False)
    shown = os.read(ours, 100_000).decode()
    assert done.returncode == 130
    assert shown.rstrip().endswith(
        "Which column? attrpriv: stopped. What was released before that, if anything, is in the ledger."
    )
    assert "Traceback" not in shown
    assert sorted(place.iterdir()) == before


DECIDED_WRONG = {
    "a density": (("--secret", "columns(sex)", "--least-density", "80"), "such as 0.8", ("--least-density", "0.8")),
    "a distance in percent": (("--secret", "mean(education)", "--within", "2%"), "unit of the column", ("--within", "2")),
    "a range upside down": (("--secret", "mean(education)", "--between", "14,12"), "the smaller one", ("--between", "12,14")),
    "the table as public": (
        ("--secret", "columns(sex)", "--public", "staff.parquet"),
        "its own file",
        ("--public", "census.parquet"),
    ),
    "records without a hidden column": (
        *(("--secret", "columns(sex)", "--public", "bare.parquet"), "must have the column sex", ("--public", "census.parquet")),
    ),
    "records without what is fitted": (
        *(
            ("--secret", "mean(education)", "--release", "avg(hours)", "--public", "bare.parquet"),
            "must have the column education",
        ),
        ("--public", "census.parquet"),
    ),
    "a second secret": (("--secret", "mean(education)", "--secret", "mean(hours)"), "Got 2. Name one", ()),
    "an average of words": (("--secret", "mean(sex)"), "Write share(sex = 'a value')", ("--secret", "share(sex = 'a value')")),
    "a column alone": (("--secret", "education"), "Write mean(education)", ("--secret", "mean(education)")),
    "a column alone, published": (("--release", "hours"), "Write avg(hours)", ("--release", "avg(hours)")),
    "words alone, published": (
        *(("--release", "sex"), "Write count(*) filter (where sex = 'a value')"),
        ("--release", "count(*) filter (where sex = 'a value')", "--secret", "mean(education)"),
    ),
    "a name with a space": (
        *(
            ("--secret", "columns(sex)", "--release", "avg(home town)"),
            'Write avg("home town")',
            ("--release", 'avg("home town")'),
        ),
    ),
    "a name in single quotes": (
        *(("--secret", "mean('home town')"), 'Write mean("home town")', ("--secret", 'mean("home town")')),
    ),
}


@pytest.mark.parametrize("name", DECIDED_WRONG)
def test_an_option_that_cannot_be_is_refused_before_anything_is_written(name: str) -> None:
    """Nothing that `check` refuses is left for it to find, though decisions are still open; and the way out is taken."""
    options, reason, way = DECIDED_WRONG[name]
    pd.DataFrame({"hours": [1, 2]}).to_parquet("bare.parquet")
    done = run("init", "staff.parquet", *options)
    assert done.exit_code in (2, 3)
    assert reason in " ".join(done.output.split())
    assert not Path("staff.yaml").exists()
    kept = [] if way and way[0] == "--secret" and len(options) == 2 else list(options)
    for option in way[::2]:
        if option in kept:
            del kept[kept.index(option) : kept.index(option) + 2]
    if not way:
        kept = kept[:2]
    done = run("init", "staff.parquet", *kept, *way)
    assert done.exit_code == 0, done.output
    assert Path("staff.yaml").exists()


def test_a_range_or_a_distance_that_cannot_be_is_asked_for_again() -> None:
    wrong = ("14,12", "low,high", "12,inf", "12")
    told, said = talk("staff.parquet", "1", "education", "avg(hours)", "", *wrong, "12,14", "12,14", "0", "-1", "0.2")
    assert (told.decisions.between, told.decisions.within) == ("12, 14", "0.2")
    assert sum(line.startswith("between: must be two") for line in said) == len(wrong)
    assert sum(line.startswith("within: must be one number") for line in said) == 3


@pytest.mark.parametrize(("between", "within"), [("40,60", "2%"), ("40%,60%", "2")])
def test_a_share_needs_its_percent_sign(between: str, within: str) -> None:
    asked = ("--secret", "share(sex = 'F')", "--release", "count(*) filter (where hours > 45)", "--public", "census.parquet")
    done = run("init", "staff.parquet", *asked, "--between", between, "--within", within)
    assert done.exit_code == 2
    assert "as in 25% instead of 25" in done.output
    assert not Path("staff.yaml").exists()
    assert run("init", "staff.parquet", *asked, "--between", "40%,60%", "--within", "2%").exit_code == 0
    assert run("check", "staff.yaml").exit_code == 0
    ranges = (between, "40%,60%") if "%" not in between else (between,)
    told, said = talk("staff.parquet", "2", "sex", "F", asked[3], "", *ranges, *dict.fromkeys((within, "2%")))
    assert told.decisions == Decisions(None, "40%, 60%", "2%")
    assert sum("percent sign" in line for line in said) == 1


def test_what_check_would_refuse_is_said_at_once(place: Path) -> None:
    """Rows of a public file that are far from normal: the policy is complete, and no average can be answered under it."""
    random = np.random.default_rng(3)
    education = random.integers(8, 19, 9_000)
    hours = np.where(random.random(9_000) < 0.02, 4_000, 40) + 2 * education
    pd.DataFrame({"education": education, "hours": hours}).to_parquet("skewed.parquet")
    done = run("init", "staff.parquet", *CHECKED["a mean"], "--public", "skewed.parquet")
    assert done.exit_code == 0, done.output
    told = " ".join(done.output.split())
    assert "refused avg(hours): " in told
    assert "; what helps: " in told
    assert "attrpriv plan staff.yaml" in told
    assert "Next: attrpriv check" not in told
    assert run("check", "staff.yaml").exit_code == 3


def test_a_release_that_is_refused_says_first_what_helps(terminal: tuple[int, int], place: Path) -> None:
    """In a terminal, above the reasons of all mechanisms; in a pipe an error stays one line."""
    policy = run("init", "staff.parquet", "--secret", "mean(education)", "--release", "avg(hours)", "--json")
    text = re.sub(r"(?s)assume:.*(?=release:)", "", json.loads(policy.output)["policy"])
    Path("staff.yaml").write_text(text.replace("TODO, TODO", "12, 14").replace("TODO ", "0.2 "), encoding="utf-8")
    ours, theirs = terminal
    command = [sys.executable, "-m", "attrpriv", "release", "staff.yaml"]
    shown = subprocess.run(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=place, timeout=120, check=False)
    told = " ".join(os.read(ours, 100_000).decode().split())
    assert shown.returncode == 3, told
    before, _, after = told.partition("attrpriv: no mechanism can prove the guarantee.")
    assert "refused" in before
    assert "what helps: " in before
    assert "what helps: " not in after
    piped = subprocess.run(command, capture_output=True, text=True, cwd=place, timeout=120, check=False)
    assert piped.stderr.startswith("attrpriv: no mechanism can prove the guarantee.")
    assert piped.stderr.count("\n") == 1
