"""`attrpriv studio`, as a browser without script sees it: three stories to a released value, two tabs, undo, a kill."""

from __future__ import annotations

import json
import re
import signal
import socket
import time
from contextlib import suppress
from html import unescape
from http.client import HTTPException
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attrpriv.policy.strict_yaml import dump_strict
from tests.end_to_end.material import attrpriv, contents, school, students, write_table
from tests.end_to_end.studio_server import Browser, Page, opened, studio

SCREENS = ("table", "hide", "know", "publish", "compare", "files", "release", "record", "report")


def staff(path: Path, rows: int, seed: int) -> None:
    """Normal hours given a gender, in whole hours."""
    generator = np.random.default_rng(seed)
    woman = generator.random(rows) < 0.35
    hours = np.where(woman, generator.normal(36, 11, rows), generator.normal(42, 12, rows))
    pq.write_table(pa.table({"gender": np.where(woman, "F", "M"), "hours": np.rint(hours).astype(np.int64)}), path)


def patients(path: Path, rows: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    smoker = generator.random(rows) < 0.3
    long = generator.random(rows) < np.where(smoker, 0.4, 0.2)
    pq.write_table(pa.table({"smoker": np.where(smoker, "yes", "no"), "stay": np.where(long, 9, 3)}), path)


def people(path: Path, rows: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    age = generator.integers(0, 6, rows) * 10 + 20
    pq.write_table(pa.table({"age": age, "hours": 30 + age // 10 + generator.integers(0, 9, rows)}), path)


def ledger(folder: Path, policy: str) -> list[dict[str, Any]]:
    """What the command line reads in the ledger."""
    done = attrpriv("ledger", policy, "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["entries"]
    return found


def good(page: Page) -> Page:
    assert page.status == 200, page.words
    assert not page.problem
    return page


def made(browser: Browser, table: str) -> str:
    """Make a policy for a table; where its pages are."""
    page = good(browser.send(browser.get("/").form("Make a policy"), table=table))
    return page.address.partition("/table")[0]


def confirmed(browser: Browser, base: str, button: str = "Release") -> Page:
    """Read the plan, type the words, release."""
    form = good(browser.get(f"{base}/release")).form(button)
    return good(browser.send(form, typed=f"release {base.rpartition('/')[2].removesuffix('.yaml')}"))


def test_the_share_of_women_is_hidden_behind_an_average(tmp_path: Path) -> None:
    staff(tmp_path / "staff.parquet", 1_000, 1)
    staff(tmp_path / "survey.parquet", 50_000, 2)
    with opened(tmp_path) as browser:
        base = made(browser, "staff.parquet")
        hide = good(browser.get(f"{base}/hide"))
        hidden = browser.send(hide.form("Hide how"), column="gender", value="F", low="25%", high="45%", within="2%")
        assert "share(gender = 'F')" in good(hidden).words
        assert "right at most 73.1%" in hidden.words
        know = good(browser.get(f"{base}/know"))
        fitted = good(browser.send(know.form("Fit"), file="survey.parquet", release="avg(hours)"))
        assert "hours in F" in fitted.words
        assert fitted.text.count("in the public rows, and a normal column</title>") == 2
        publish = good(browser.get(f"{base}/publish"))
        assert "step:hours" in publish.form("Save the public facts").names
        orphan = browser.send(publish.form("Save the public facts"), source__hours="the form")
        assert (orphan.status, 'href="#source:hours">Go to the field' in orphan.text) == (422, True)
        facts = {"low__hours": "0", "high__hours": "168", "step__hours": "1", "source__hours": "the form of 2020"}
        publish = good(browser.send(publish.form("Save the public facts"), **facts))
        assert "bounds.hours: the form of 2020" in publish.words
        publish = good(browser.send(publish.form("Save the public facts"), low__hours="", high__hours=""))
        assert "bounds.hours" not in publish.words  # a source without its number would be refused
        assert "missing" not in good(browser.get(f"{base}/report")).words
        compare = good(browser.get(f"{base}/compare"))
        assert "(chosen)" in compare.words
        shown = confirmed(browser, base)
    (entry,) = ledger(tmp_path, "staff.yaml")
    value = entry["answers"][0]["value"]
    assert abs(value - 39.9) < 5
    assert f"{value:.1f}"[:4] in shown.words
    assert entry["digest"] in shown.words


def test_age_is_hidden_from_a_model_by_a_reference_view(tmp_path: Path) -> None:
    people(tmp_path / "people.parquet", 4_000, 1)
    people(tmp_path / "census.parquet", 20_000, 2)
    with opened(tmp_path) as browser:
        base = made(browser, "people.parquet")
        hide = good(browser.get(f"{base}/hide"))
        good(browser.send(hide.form("Hide everything"), columns=["age"]))
        know = good(browser.get(f"{base}/know"))
        good(browser.send(know.form("Use this reference"), file="census.parquet", least_density="0.8"))
        compare = good(browser.get(f"{base}/compare"))
        assert "What the view keeps" in compare.text
        drawn = confirmed(browser, base, "Draw the view")
        assert "the view was drawn" in drawn.words
        told = good(browser.get(f"{base}/release"))
        assert "the same rows are written again" in told.words
        again = told.form("Draw the view")
        assert ("out", "people.view-2.parquet") in again.fields
        for out, why in (
            ("people.view.parquet", "a new file"),
            ("a\n.parquet", "the name of"),
            ("a" * 300 + ".parquet", "240"),
        ):
            told = browser.send(again, typed="release people", out=out)
            assert (told.status, why in told.problem) == (422, True)
        kept = pq.read_table(tmp_path / "people.view.parquet")
        counts = kept.column("age").value_counts().to_pylist()
        public = pq.read_table(tmp_path / "census.parquet").column("age").to_numpy()
        shares = {one["values"]: one["counts"] / kept.num_rows for one in counts}
        # The view's ages are the census's, whatever those of the table are: to a row of each value.
        assert all(abs(share - np.mean(public == age)) < 2 / kept.num_rows * len(shares) for age, share in shares.items())
        publish = good(browser.get(f"{base}/publish"))
        good(browser.send(publish.form("Publish this number"), statistic="avg", column="hours"))
        shown = confirmed(browser, base)
    view, answer = ledger(tmp_path, "people.yaml")
    assert view["kind"] == "view"
    mean = np.mean(kept.column("hours").to_numpy())
    assert abs(answer["answers"][0]["value"] - mean) < 0.5
    assert "avg(hours)" in shown.words


def test_a_count_is_published_behind_a_share(tmp_path: Path) -> None:
    patients(tmp_path / "patients.parquet", 1_000, 1)
    with opened(tmp_path) as browser:
        base = made(browser, "patients.parquet")
        assert "Still to decide: what to hide. Decide it at: What to hide" in browser.get(f"{base}/release").words
        hide = good(browser.get(f"{base}/hide"))
        assert "Still to decide: what to hide. It is asked for below." in hide.words
        good(browser.send(hide.form("Hide how"), column="smoker", value="yes", low="20%", high="40%", within="2%"))
        publish = good(browser.get(f"{base}/publish"))
        good(browser.send(publish.form("Publish this number"), statistic="count", where="stay > 7"))
        typed = good(browser.get(f"{base}/know")).form("State the numbers")
        know = good(browser.send(typed, categories="yes, no"))
        assert "assume.given" not in know.words.partition("patients.yaml")[0]  # the file stands beside; the form is in words
        for screen in ("know", "compare", "release", "record", "report"):
            page = browser.get(f"{base}/{screen}")
            assert "Still to decide: numbers that everybody may know. " in page.words
            (way,) = [
                one["href"] for tag, one in page.parsed.tags if tag == "a" and "#" in one["href"] and one["href"] != "#main"
            ]
            assert way.partition("#")[0] in (f"{base}/know", "")
            assert f'id="{way.partition("#")[2]}"' in know.text
        numbers = {
            "value__assume.given.stay > 7.yes": "0.38, 0.42",
            "value__assume.given.stay > 7.no": "0.18, 0.22",
            "value__assume.prior.yes": "0.3",
            "source__assume.given.stay > 7.yes": "a study of 2019",
            "source__assume.given.stay > 7.no": "a study of 2019",
        }
        good(browser.send(know.form("Save the numbers"), **numbers))
        assert "a study of 2019" in good(browser.get(f"{base}/report")).words
        assert "statistic at a public composition" in good(browser.get(f"{base}/compare")).words
        shown = confirmed(browser, base)
        assert "they are repeated as they are" in good(browser.get(f"{base}/release")).words
    (entry,) = ledger(tmp_path, "patients.yaml")
    assert str(entry["answers"][0]["value"]) in shown.words.replace(",", "")
    assert "stay > 7" in shown.words


def test_what_another_tab_or_an_editor_changed_is_not_overwritten_and_not_released(tmp_path: Path) -> None:
    policy = school(tmp_path)
    policy.write_text("# mine, and kept\n" + policy.read_text(encoding="utf-8"), encoding="utf-8")
    with opened(tmp_path) as browser:
        base = f"/p/{policy.name}"
        first, second = (good(browser.get(f"{base}/compare")) for _ in range(2))
        release = good(browser.get(f"{base}/release")).form("Release")
        good(browser.send(first.form("Use this budget"), epsilon="0.5"))
        stale = browser.send(second.form("Use this budget"), epsilon="2")
        assert stale.status == 409
        assert "it was changed since" in stale.problem
        refused = browser.send(release, typed="release students")
        assert refused.status == 422
        assert "the policy changed since" in refused.problem
        assert not ledger(tmp_path, policy.name)
        fresh = good(browser.get(f"{base}/release")).form("Release")
        assert attrpriv("release", policy.name, folder=tmp_path).returncode == 0
        late = browser.send(fresh, typed="release students")
        assert late.status == 422
        assert "the ledger changed since" in late.problem
    assert len(ledger(tmp_path, policy.name)) == 1
    text = policy.read_text(encoding="utf-8")
    assert text.startswith("# mine, and kept\n")
    assert "epsilon: 0.5" in text


def test_a_table_or_a_public_file_that_is_exchanged_after_the_page_was_shown_is_not_released(tmp_path: Path) -> None:
    policy = school(tmp_path)
    people(tmp_path / "people.parquet", 4_000, 1)
    people(tmp_path / "census.parquet", 20_000, 2)
    view = {"attrpriv": 1, "data": "people.parquet", "epsilon": 1.0, "delta": 1e-6, "protect": [{"secret": "columns(age)"}]}
    view |= {"reference": {"file": "census.parquet", "least_density": 0.8}}
    (tmp_path / "people.yaml").write_text(dump_strict(view), encoding="utf-8")
    with opened(tmp_path) as browser:
        release = good(browser.get(f"/p/{policy.name}/release")).form("Release")
        draw = good(browser.get("/p/people.yaml/release")).form("Draw the view")
        write_table(tmp_path, students(seed=2))
        people(tmp_path / "census.parquet", 20_000, 3)
        for form, typed in ((release, "release students"), (draw, "release people")):
            refused = browser.send(form, typed=typed)
            assert refused.status == 422
            assert "the table, or a file that the policy names, changed since" in refused.problem
        for name in ("head", "files", "plan", "policy"):
            fresh = good(browser.get(f"/p/{policy.name}/release")).form("Release")
            assert browser.send(fresh, typed="release students", **{name: "0" * 64}).status == 422
        assert not ledger(tmp_path, policy.name)
        assert not ledger(tmp_path, "people.yaml")
        assert good(browser.send(fresh, typed="release students")).address.startswith(f"/p/{policy.name}/record")


def test_the_range_of_a_secret_is_changed_in_its_place(tmp_path: Path) -> None:
    policy = school(tmp_path, protect=["SHARE", {"secret": "mean(income)", "between": [20_000, 200_000], "within": 1000}])
    share = "secret: share(gender = 'F')  # asked for\n  between: [0.2, 0.4]   # of the rules\n"
    policy.write_text(policy.read_text(encoding="utf-8").replace("SHARE", share.rstrip()), encoding="utf-8")
    before = policy.read_text(encoding="utf-8")
    with opened(tmp_path) as browser:

        def saved(place: int, **values: str) -> Page:
            forms = [one for one in browser.get(f"/p/{policy.name}/hide").parsed.forms if one.button == "Save the range"]
            return browser.send(forms[place], **values)

        wrong = saved(1, within="1.000")
        assert (wrong.status, 'href="#range:1-within">Go to the field' in wrong.text) == (422, True)
        assert saved(1, low="", high="", within="").status == 422
        assert policy.read_text(encoding="utf-8") == before
        good(saved(0, within="5%"))  # what is not touched stays as a form would not take it
        good(saved(1, within="2000"))
        page = good(saved(1, within=""))
        assert policy.read_text(encoding="utf-8") == before.replace(
            "[0.2, 0.4]   # of the rules", "[0.2, 0.4]   # of the rules\n  within: 5%"
        ).replace("\n  within: 1000", "")
        for _ in range(3):
            page = good(browser.send(page.form("Undo")))
    assert policy.read_text(encoding="utf-8") == before


def test_every_choice_can_be_undone_byte_for_byte(tmp_path: Path) -> None:
    policy = school(tmp_path)
    before = policy.read_bytes()
    with opened(tmp_path) as browser:
        base = f"/p/{policy.name}"
        changed = browser.send(browser.get(f"{base}/compare").form("Use this budget"), epsilon="0.25")
        changed = browser.send(browser.get(f"{base}/publish").form("Publish this query"), query="sum(weight)")
        changed = browser.send(browser.get(f"{base}/hide").form("Do not hide"))
        assert policy.read_bytes() != before
        for _ in range(3):
            changed = good(browser.send(changed.form("Undo")))
        assert policy.read_bytes() == before
        assert "No change to undo" in changed.words


# The studio stops for good where a release stands before its entry, or right behind it, and says so.
_STOPPED = "import time\nfrom attrpriv.session.session import Session as S\nknown = S.{0}\n" + (
    "def stopped(*said):\n    {1}\n    print('there', flush=True)\n    time.sleep(600)\nS.{0} = stopped\n"
)


@pytest.mark.parametrize(("entries", "before"), [(0, ("_time", "pass")), (1, ("_commit", "known(*said)"))])
def test_a_server_that_is_killed_in_a_release_loses_nothing(tmp_path: Path, entries: int, before: tuple[str, str]) -> None:
    policy = school(tmp_path)
    text = policy.read_bytes()
    with studio(tmp_path, before=_STOPPED.format(*before)) as (browser, process):
        browser.opened()
        good(browser.send(browser.get(f"/p/{policy.name}/compare").form("Use this budget"), epsilon="0.25"))
        form = browser.get(f"/p/{policy.name}/release").form("Release")

        def releases() -> None:
            with suppress(OSError, HTTPException):  # it is killed before it answers
                browser.send(form, typed="release students")

        Thread(target=releases, daemon=True).start()
        assert process.stdout is not None
        assert process.stdout.readline() == b"there\n"
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=60)
    found = ledger(tmp_path, policy.name)
    assert len(found) == entries
    with opened(tmp_path) as browser:
        page = browser.get(f"/p/{policy.name}/release")
        assert ("they are repeated as they are" in page.words) == bool(entries)
        good(browser.send(page.form("Release"), typed="release students"))
        assert ledger(tmp_path, policy.name)[:entries] == found
        assert len(ledger(tmp_path, policy.name)) == 1
        good(browser.send(browser.get(f"/p/{policy.name}/files").form("Undo")))
    assert policy.read_bytes() == text


def test_no_screen_shows_anything_of_the_rows_or_reads_them(tmp_path: Path) -> None:
    policy = school(tmp_path)
    planted = {"weight": [987_654_321] * 400, "income": [987_654_322] * 400, "gender": ["planted-cell"] * 400}
    table = tmp_path / "students.parquet"
    pq.write_table(pa.table(planted), table)
    whole = bytearray(table.read_bytes())
    rows = slice(4, len(whole) - 8 - int.from_bytes(whole[-8:-4], "little"))
    whole[rows] = bytes(len(whole[rows]))  # whoever reads a row now fails; names, types and statistics are in the footer
    table.write_bytes(whole)
    before = contents(tmp_path)
    with opened(tmp_path) as browser:
        pages = [browser.get("/"), *(browser.get(f"/p/{policy.name}/{screen}") for screen in SCREENS)]
        for page in pages:
            assert (page.status, page.problem) == (200, "")
            assert not {"987654321", "987,654,321", "987654322", "987,654,322", "planted-cell"} & {*page.words.split()}
            assert "planted" not in page.text
            assert "98765432" not in page.text.replace(",", "")
    assert contents(tmp_path) == before


def test_a_text_file_states_its_rows_and_hides_ages_by_a_stated_law(tmp_path: Path) -> None:
    ages = ["age,hours", *(f"{20 + k % 4},{30 + k % 9}" for k in range(2_000))]
    (tmp_path / "club.csv").write_text("\n".join(ages) + "\n", encoding="utf-8")
    with opened(tmp_path) as browser:
        base = made(browser, "club.csv")
        table = good(browser.get(f"{base}/table"))
        assert "guessed from a sample" in table.words
        assert browser.send(table.form("Save the number"), rows="many").status == 422
        good(browser.send(table.form("Save the number"), rows="2000"))
        good(browser.send(browser.get(f"{base}/hide").form("Hide everything"), columns=["age"]))
        stated = good(browser.send(browser.get(f"{base}/know").form("State the ends")))
        numbers = {"value__reference.age.low": "20", "value__reference.age.high": "23", "value__reference.least_density": "0.8"}
        numbers |= {"source__reference.age.low": "the club's rules", "source__reference.least_density": "the register"}
        good(browser.send(stated.form("Save the numbers"), **numbers))
        assert "What the view keeps" in good(browser.get(f"{base}/compare")).text
        assert attrpriv("check", "club.yaml", folder=tmp_path).returncode == 0
        assert "reference.shares.age.low: the club's rules" in (tmp_path / "club.yaml").read_text(encoding="utf-8")
        people(tmp_path / "census.parquet", 20_000, 2)
        filed = good(browser.send(browser.get(f"{base}/know").form("Use this reference"), file="census.parquet"))
        assert filed.text.count('value="0.8"') == 1
        assert "law" not in (tmp_path / "club.yaml").read_text(encoding="utf-8")


def test_it_ends_by_itself_when_nobody_asks_and_has_logged_nothing(tmp_path: Path) -> None:
    with studio(tmp_path, "--idle", "0.001") as (browser, process):
        assert browser.opened().status == 200
        with socket.create_connection(("127.0.0.1", int(browser.host.partition(":")[2])), timeout=20) as sock:
            sock.sendall(b"no request at all\r\n\r\n")
            sock.recv(1_000)
        assert process.wait(timeout=60) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


@pytest.mark.slow
def test_whoever_ends_it_is_not_kept_waiting_by_a_page(tmp_path: Path) -> None:
    policy = school(tmp_path)
    slow = "import time\nfrom attrpriv.studio.pages import table\ntable.show = lambda asked: time.sleep(600)\n"
    with studio(tmp_path, before=slow) as (browser, process):
        browser.opened()

        def asks() -> None:
            with suppress(OSError, HTTPException):  # it ends before it answers
                browser.get(f"/p/{policy.name}/table")

        Thread(target=asks, daemon=True).start()
        time.sleep(2)  # so that it has begun
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=120) == 130


def test_a_release_that_cannot_be_is_told_as_the_command_line_tells_it(tmp_path: Path) -> None:
    policy = school(tmp_path)
    pq.write_table(
        pa.table({"weight": [None, *[150] * 399], "income": [60_000] * 400, "gender": ["F"] * 400}),
        tmp_path / "students.parquet",
    )
    with opened(tmp_path) as browser:
        form = good(browser.get(f"/p/{policy.name}/release")).form("Release")
        told = browser.send(form, typed="release students")
    assert told.status == 422
    said = attrpriv("release", policy.name, folder=tmp_path)
    assert said.stderr.decode().removeprefix("attrpriv: ").strip() == told.problem


def test_the_slider_tells_what_the_command_line_plans(tmp_path: Path) -> None:
    policy = school(tmp_path)
    with opened(tmp_path) as browser:
        found = re.search(r'data-at="([^"]+)"', good(browser.get(f"/p/{policy.name}/compare")).text)
        assert found is not None
        at = unescape(found[1])
        told: dict[str, Any] = {"ended": False}
        for _ in range(600):
            told = json.loads(browser.get(f"{at}&epsilon=0.5").text)
            if told["ended"]:
                break
            time.sleep(0.2)
        assert told["ended"]
        assert "Expected error of avg(weight) against epsilon" in told["pictures"]
        strange = browser.get(at.partition("?")[0] + "?curve=none&epsilon=0.5")
        assert (strange.status, "curve: must be" in strange.text) == (422, True)
    policy.write_text(policy.read_text(encoding="utf-8").replace("epsilon: 1.0", "epsilon: 0.5"), encoding="utf-8")
    planned = json.loads(attrpriv("plan", policy.name, "--json", folder=tmp_path).stdout)
    (chosen,) = [one for one in planned if one.get("chosen")]
    assert f"{chosen['error']['rmse']:.4g}" in told["sentence"]
    assert chosen["mechanism"] in told["sentence"]
