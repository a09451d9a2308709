"""`attrpriv studio` in headless Chromium: three stories to a released value, tabs, keys, a kill, and what pages look like."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attrpriv.policy.strict_yaml import dump_strict
from tests.end_to_end.devtools import Browser, Tab
from tests.end_to_end.material import attrpriv, contents, school
from tests.end_to_end.studio_server import studio
from tests.end_to_end.test_studio import SCREENS, ledger, patients, people, staff

SCRIPT = "<script>alert('x')</script><img src=x onerror=alert(1)>"
WIDTHS = (390, 1440)


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("chromium")) as found:
        yield found


@contextmanager
def opened(chromium: Browser, folder: Path) -> Iterator[tuple[Tab, str]]:
    """A tab at the studio's first screen, and the studio's origin; at the end nothing was stopped or thrown on the way."""
    with studio(folder) as (person, _):
        tab = chromium.tab()
        try:
            tab.open(person.address)
            assert tab.address == f"{person.origin}/"
            yield tab, person.origin
            assert [one for one in tab.errors if "status of 4" not in one] == []
        finally:
            tab.close()


def looked_at(tab: Tab, name: str) -> None:
    """No violation in light and dark, and nothing to scroll sideways on a telephone and on a wide screen."""
    for scheme, width in (("light", WIDTHS[1]), ("dark", WIDTHS[0])):
        tab.scheme(scheme)
        tab.size(width)
        assert tab.violations() == [], f"{name}, {scheme}, {width} pixels"
        assert tab.overflow <= 0, f"{name}: {tab.overflow} pixels too wide at {width}"
        if "STUDIO_SHOTS" in os.environ:
            tab.picture(Path(os.environ["STUDIO_SHOTS"]) / f"{name}-{scheme}-{width}.png")
    tab.scheme("light")
    tab.size(WIDTHS[1])


def value_of(entry: dict[str, Any]) -> float:
    (answer,) = entry["answers"]
    return float(answer["value"])


# --------------------------------------------------------------------------------------------------------------- stories


@pytest.mark.slow
def test_the_share_of_women_is_hidden_behind_an_average(tmp_path: Path, chromium: Browser) -> None:
    staff(tmp_path / "staff.parquet", 1_000, 1)
    staff(tmp_path / "survey.parquet", 50_000, 2)
    with opened(chromium, tmp_path) as (tab, _):
        tab.send("Make a policy for it", table="staff.parquet")
        tab.follow("Next: What to hide")
        tab.send("Hide how common it is", column="gender", value="F", low="25%", high="45%", within="2%")
        assert "right at most 73.1%" in tab.main
        tab.follow("Next: What everybody may know")
        tab.send("Fit an assumption on it", file="survey.parquet", release="avg(hours)")
        looked_at(tab, "know-fitted")
        tab.follow("Next: What to publish")
        tab.send("Save the public facts", **{"step:hours": "1"})
        tab.follow("Next: Compare")
        assert "(chosen)" in tab.main
        looked_at(tab, "compare-fitted")
        tab.follow("Next: Files")
        tab.follow("Next: Release")
        tab.send("Release", typed="release staff")
        assert tab.value("location.pathname") == "/p/staff.yaml/record"
        shown = tab.main
    assert "between: [25%, 45%]" in (tmp_path / "staff.yaml").read_text(encoding="utf-8")
    (entry,) = ledger(tmp_path, "staff.yaml")
    assert abs(value_of(entry) - 39.9) < 5
    assert f"{value_of(entry):.1f}"[:4] in shown
    assert entry["digest"] in shown


def test_age_is_hidden_from_a_model_by_a_reference_view(tmp_path: Path, chromium: Browser) -> None:
    people(tmp_path / "people.parquet", 4_000, 1)
    people(tmp_path / "census.parquet", 20_000, 2)
    with opened(chromium, tmp_path) as (tab, _):
        tab.send("Make a policy for it", table="people.parquet")
        tab.follow("Next: What to hide")
        tab.send("Hide everything about them", columns=["age"])
        tab.follow("Next: What everybody may know")
        tab.send("Use this reference", file="census.parquet", least_density="0.8")
        tab.follow("Next: What to publish")
        looked_at(tab, "publish-rows")
        tab.follow("Next: Compare")
        assert "The view:" in tab.main
        looked_at(tab, "compare-view")
        tab.follow("Next: Files")
        tab.follow("Next: Release")
        looked_at(tab, "release-view")
        tab.send("Draw the view", typed="release people")
        assert "the view was drawn" in tab.main
        looked_at(tab, "record-view")
        tab.follow("What to publish")
        tab.send("Publish this number", statistic="avg", column="hours")
        tab.follow("Release")
        tab.send("Release", typed="release people")
        assert "Released. The ledger has the entry." in tab.main, tab.main
    kept = pq.read_table(tmp_path / "people.view.parquet")
    view, answer = ledger(tmp_path, "people.yaml")
    assert (view["kind"], answer["kind"]) == ("view", "answer")
    assert abs(value_of(answer) - float(np.mean(kept.column("hours").to_numpy()))) < 0.5


class _Keys:
    """Somebody without a mouse."""

    def __init__(self, tab: Tab) -> None:
        self.tab = tab

    def reach(self, words: str, button: str = "") -> None:
        """Tab to what has these words as its own or as its label, in the form of this button."""
        for _ in range(150):
            self.tab.press("Tab")
            told, inside, seen = self.tab.value("""(() => {
              const one = document.activeElement, label = one.labels && one.labels.length ? one.labels[0] : one;
              const group = one.closest('fieldset.number');
              const own = (group ? group.querySelector('legend').innerText + ' ' : '') + label.innerText;
              const style = getComputedStyle(one);
              const within = one.form ? [...one.form.querySelectorAll('button')].pop().innerText : '';
              return [own.trim(), within, one === document.body || style.outlineStyle !== 'none'];
            })()""")
            assert seen, f"the focus on {told!r} cannot be seen"
            if told == words and button in inside:
                return
        pytest.fail(f"{words!r} is not reached by tabs on {self.tab.address}:\n{self.tab.main}")

    def follow(self, words: str) -> None:
        self.reach(words)
        with self.tab.loading():
            self.tab.press("Enter")

    def fill(self, button: str, **fields: str) -> None:
        """By label; a select takes the first letters of the choice. Then Enter on the button."""
        for label, text in fields.items():
            self.reach(label.replace("_", " "), button)
            if self.tab.value("document.activeElement.tagName") == "SELECT":
                for letter in text:
                    self.tab.press(letter)
                assert self.tab.value("document.activeElement.selectedOptions[0].text").startswith(text)
            else:
                self.tab.value("document.activeElement.select()")
                self.tab.type(text)
        self.reach(button)
        with self.tab.loading():
            self.tab.press("Enter")


def test_a_count_is_published_behind_a_share_without_a_mouse(tmp_path: Path, chromium: Browser) -> None:
    patients(tmp_path / "patients.parquet", 1_000, 1)
    with opened(chromium, tmp_path) as (tab, _):
        keys = _Keys(tab)
        keys.fill("Make a policy for it")
        keys.follow("Next: What to hide")
        shares = {"Column": "smoker", "Value": "yes", "It lies between": "20%", "and": "40%", "Within": "2%"}
        keys.fill("Hide how common it is", **shares)
        keys.follow("What to publish")
        keys.fill("Publish this number", Statistic="number", **{"Only rows where": "stay > 7"})
        keys.follow("What everybody may know")
        keys.fill("State the numbers one by one", **{"All values of the hidden column": "yes, no"})
        looked_at(tab, "know-numbers")
        given = "Share of rows with stay > 7, where smoker is"
        numbers = {f"{given} yes Value": "38%, 42%", f"{given} yes Source": "a study", f"{given} no Value": "0.18, 0.22"}
        keys.fill("Save the numbers", **numbers, **{"Share of rows where smoker is yes Value": "30%"})
        keys.follow("Compare")
        assert "(chosen)" in tab.main
        tab.until("document.getElementById('slider') && !document.getElementById('slider').closest('[hidden]')")
        keys.reach("Move epsilon and see what it costs")
        before = tab.value("document.getElementById('slider-told').innerText")
        tab.press("ArrowRight")
        assert tab.until(f"document.getElementById('slider-told').innerText !== {json.dumps(before)}")
        told = tab.value("document.getElementById('slider-told').innerText")
        moved = tab.value("document.getElementById('epsilon').value")
        assert told.startswith((f"Epsilon {moved}: ", f"Epsilon {moved} (computed at "))
        looked_at(tab, "compare-slider")
        keys.follow("Release")
        keys.fill("Release", **{"Type: release patients": "release patients"})
        assert "count(*)" in tab.main
        shown = tab.main.replace(",", "")
    (entry,) = ledger(tmp_path, "patients.yaml")
    assert f"{value_of(entry):g}" in shown
    assert "epsilon: 1.0" in (tmp_path / "patients.yaml").read_text(encoding="utf-8")  # the slider changed nothing


def test_a_refusal_leads_to_its_way_out(tmp_path: Path, chromium: Browser) -> None:
    policy = school(tmp_path, protect=[{"secret": "mean(income)", "between": [20_000, 200_000]}], delta=0)
    with opened(chromium, tmp_path) as (tab, origin):
        tab.follow(policy.name)
        tab.follow("Compare")
        assert "Nothing can be released as it stands" in tab.main
        assert "What helps:" in tab.main
        looked_at(tab, "compare-refused")
        tab.open(f"{origin}/p/{policy.name}/release")
        assert tab.value("document.querySelector('[name=typed]') === null")
        looked_at(tab, "release-refused")
        tab.follow("Next: Compare")
        tab.click("Change it at: Compare")
        assert tab.value("document.activeElement.id") == "delta"
        tab.send("Use this budget", delta="1e6")
        tab.click("Go to the field")
        assert tab.value("document.activeElement.id") == "delta"
        tab.send("Use this budget", delta="1e-6")
        assert "(chosen)" in tab.main
        tab.open(f"{origin}/p/{policy.name}/release")
        tab.send("Release", typed="release students")
        assert "avg(weight)" in tab.main
    assert len(ledger(tmp_path, policy.name)) == 1


# --------------------------------------------------------------------------------------------- tabs, history, other sites


def test_back_forward_and_reload_change_nothing_and_send_nothing_twice(tmp_path: Path, chromium: Browser) -> None:
    policy = school(tmp_path)
    with opened(chromium, tmp_path) as (tab, origin):
        tab.open(f"{origin}/p/{policy.name}/publish")
        tab.send("Publish this query", query="sum(weight)")
        written = policy.read_bytes()
        tab.reload()
        assert policy.read_bytes() == written
        tab.back()
        assert tab.value("location.search") == ""
        assert policy.read_bytes() == written
        # Whether the browser kept the old page or asked for it again: what it shows is either old and refused, or new.
        tab.send("Publish this query", query="sum(income)")
        assert ("it was changed since" in tab.main) == (policy.read_bytes() == written)
        tab.open(f"{origin}/p/{policy.name}/files")
        tab.follow("What to publish")
        tab.back()
        assert "sum(weight)" in tab.main
        steps = int(tab.text.partition("Undo the last change (")[2].partition(")")[0])
        for _ in range(steps):
            tab.follow(f"Undo the last change ({steps})")
            steps -= 1
        assert "No change to undo" in tab.text
    assert b"sum(" not in policy.read_bytes()


def test_two_tabs_do_not_overwrite_each_other_and_do_not_release_what_the_other_changed(
    tmp_path: Path, chromium: Browser
) -> None:
    policy = school(tmp_path)
    with opened(chromium, tmp_path) as (first, origin):
        second = chromium.tab()
        # The cookie is strict, so a tab that is opened by hand has it as well.
        second.open(f"{origin}/p/{policy.name}/release")
        first.open(f"{origin}/p/{policy.name}/compare")
        first.send("Use this budget", epsilon="0.5")
        second.send("Release", typed="release students")
        assert "the policy changed since" in second.main
        assert not ledger(tmp_path, policy.name)
        second.open(f"{origin}/p/{policy.name}/compare")
        first.open(f"{origin}/p/{policy.name}/compare")
        second.send("Use this budget", epsilon="0.25")
        first.send("Use this budget", epsilon="2")
        assert "it was changed since" in first.main
        looked_at(first, "compare-stale")
        first.open(f"{origin}/p/{policy.name}/release")
        second.open(f"{origin}/p/{policy.name}/release")
        first.send("Release", typed="release students")
        second.send("Release", typed="release students")
        assert "the ledger changed since" in second.main
        second.close()
    assert len(ledger(tmp_path, policy.name)) == 1
    assert "epsilon: 0.25" in policy.read_text(encoding="utf-8")


def test_a_killed_server_loses_nothing(tmp_path: Path, chromium: Browser) -> None:
    policy = school(tmp_path)
    before = policy.read_bytes()
    tab = chromium.tab()
    with studio(tmp_path) as (person, process):
        port = person.host.partition(":")[2]
        tab.open(person.address)
        tab.open(f"{person.origin}/p/{policy.name}/compare")
        tab.send("Use this budget", epsilon="0.25")
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    assert b"epsilon: 0.25" in policy.read_bytes()
    with studio(tmp_path, "--port", port) as (person, _):
        tab.open(f"{person.origin}/p/{policy.name}/compare")
        assert "open the address that the command printed" in tab.text  # the old run's cookie opens nothing
        tab.open(person.address)
        tab.open(f"{person.origin}/p/{policy.name}/compare")
        assert tab.value("document.getElementById('epsilon').value") == "0.25"
        tab.follow("Undo the last change (1)")
    tab.close()
    assert policy.read_bytes() == before


@contextmanager
def other_site(page: str) -> Iterator[str]:
    """A page at another port of this machine, which browsers hold for the same site and another origin."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


def test_a_page_of_another_site_reads_nothing_and_changes_nothing(tmp_path: Path, chromium: Browser) -> None:
    policy = school(tmp_path)
    with opened(chromium, tmp_path) as (tab, origin):
        tab.open(f"{origin}/p/{policy.name}/publish")
        # The worst case: the key and the digest leaked somehow.
        key, seen = (tab.value(f"document.querySelector('[name={name}]').value") for name in ("key", "seen"))
        before = contents(tmp_path)
        page = f"""<!DOCTYPE html><title>evil</title><body><iframe id="frame" src="{origin}/"></iframe>
          <form method="post" action="{origin}/p/{policy.name}/publish"><input name="key" value="{key}">
          <input name="seen" value="{seen}"><input name="do" value="query"><input name="query" value="avg(income)"></form>"""
        with other_site(page) as evil:
            tab.open(evil)
            read = tab.value(f"""Promise.all(['no-cors', 'cors'].map(mode => fetch('{origin}/p/{policy.name}/files',
              {{mode, credentials: 'include'}}).then(a => a.text()).catch(() => '')))""")
            assert read == ["", ""]
            sent = tab.value(f"""fetch('{origin}/p/{policy.name}/publish', {{method: 'POST', mode: 'no-cors',
              credentials: 'include', body: new URLSearchParams(new FormData(document.forms[0]))}})
              .then(a => a.type, () => 'stopped')""")
            assert sent in ("opaque", "stopped")
            assert tab.value("(() => {try {return frame.contentDocument.body.innerText} catch {return ''}})()") in ("", None)
            with tab.loading():
                tab.value("document.forms[0].submit()")
            assert "asked by another page" in tab.text
        assert contents(tmp_path) == before
        chromium.events = [one for one in chromium.events if one.get("method") != "Log.entryAdded"]  # of the other page


# ---------------------------------------------------------------------------------------------------------------- looks


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a policy with releases, one that is begun, one that is wrong, and names that are scripts."""
    place = tmp_path_factory.mktemp("shown")
    policy = school(place)
    assert attrpriv("release", policy.name, folder=place).returncode == 0
    rows = {SCRIPT: [1.0, 2.0] * 200, "weight": [60.0, 70.0] * 200, "a_rather_long_name_" * 6: ["x"] * 400}
    pq.write_table(pa.table(rows), place / "nasty.parquet")
    said = {"data": "nasty.parquet", "epsilon": 1.0, "delta": 1e-6, "attrpriv": 1, "source": {"bounds.weight": SCRIPT}}
    said |= {"protect": [{"secret": f'mean("{SCRIPT}")', "between": [1, 3]}], "bounds": {"weight": [0, 200]}}
    said |= {"release": ["avg(weight)", f'avg("{SCRIPT}")']}
    (place / "nasty.yaml").write_text(f"# {SCRIPT}\n" + dump_strict(said), encoding="utf-8")
    (place / "wrong.yaml").write_text("data: nasty.parquet\nepsilon: [\n", encoding="utf-8")
    (place / "begun.yaml").write_text(
        "attrpriv: 1\ndata: nasty.parquet\nepsilon: 1.0\nprotect:\n  - secret: TODO\n", encoding="utf-8"
    )
    return place


def test_every_screen_can_be_read_by_everybody_and_comes_from_here_alone(shown: Path, chromium: Browser) -> None:
    """Also where a name is a script: it runs none. The file stands beside each screen as it is."""
    before = contents(shown)
    with opened(chromium, shown) as (tab, origin):
        chromium.events = []
        looked_at(tab, "start")
        for name in ("students.yaml", "nasty.yaml", "begun.yaml", "wrong.yaml"):
            for screen in SCREENS:
                tab.open(f"{origin}/p/{name}/{screen}")
                assert len(tab.value("[...document.querySelectorAll('h1')].map(one => one.innerText)")) == 1
                looked_at(tab, f"{name.partition('.')[0]}-{screen}")
                assert tab.value("document.scripts.length") == 1
                text = (shown / name).read_text(encoding="utf-8")
                assert tab.value("document.querySelector('aside pre').textContent").strip() == text.strip()
        tab.open(f"{origin}/p/no%20such.yaml/table")
        looked_at(tab, "no-such")
        assert not [one for one in chromium.events if one.get("method") == "Page.javascriptDialogOpening"]
        sent = [one["params"]["request"]["url"] for one in chromium.events if one["method"] == "Network.requestWillBeSent"]
        assert len(sent) > 4 * len(SCREENS)
        assert {url for url in sent if not url.startswith((f"{origin}/", "data:"))} == set()
    assert contents(shown) == before


def test_an_empty_folder_says_what_to_do(tmp_path: Path, chromium: Browser) -> None:
    with opened(chromium, tmp_path) as (tab, _):
        assert "Copy the table here" in tab.main
        looked_at(tab, "start-empty")


def test_a_violation_is_found_where_there_is_one(tmp_path: Path, chromium: Browser) -> None:
    """The looks above can fail."""
    bad = tmp_path / "bad.html"
    bad.write_text('<!DOCTYPE html><html><body style="width:900px"><img src="x"><input></body></html>', encoding="utf-8")
    tab = chromium.tab(width=390)
    tab.open(bad.as_uri())
    found = " ".join(tab.violations())
    tab.close()
    assert "image-alt" in found
    assert "label" in found
    assert "html-has-lang" in found
