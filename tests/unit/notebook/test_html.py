"""What notebooks and prints show: well-formed, nothing obeyed, nothing loaded, the same facts as the text."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import attrpriv as ap
from attrpriv.formatting import printable
from attrpriv.notebook import html as notebook
from attrpriv.session.ledger_record import LedgerRecord

HOSTILE = [
    "<script>alert(1)</script>",
    '" onmouseover="alert(1)',
    "</td></table><img src=x onerror=alert(1)>",
    "a&lt;b&amp;",
    "$\\href{javascript:alert(1)}{x}$",
    "line\nbreak\x1b[2J\u202eback",
    "it's {x} `y` <!-- -->",
]
TAGS = {"div", "table", "thead", "tbody", "tr", "th", "td", "b", "ul", "li"}


class Page(HTMLParser):
    """The elements and the text of a piece of HTML; fails where tags are not nested."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str | None]] = set()
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.add(tag)
        self.attributes |= set(attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError("a comment")

    @property
    def harmless(self) -> bool:
        """Only our own elements, with classes and styles that load nothing."""
        styles = [value or "" for name, value in self.attributes if name == "style"]
        return (
            self.tags <= TAGS
            and {name for name, _ in self.attributes} <= {"class", "style"}
            and not any("url" in style or "expression" in style or "@" in style for style in styles)
        )


def school(folder: Path, name: str = "weight") -> tuple[ap.Policy, ap.Session]:
    """400 rows of a column of this name, and incomes."""
    table = pa.table({name: [140 + k % 21 for k in range(400)], "income": [50_000 + 50 * k for k in range(400)]})
    pq.write_table(table, folder / "t.parquet")
    policy = ap.Policy(
        epsilon=1.0,
        delta=1e-6,
        protect=[ap.Secret("mean(income)", between=(20_000, 200_000), within=1_000)],
        assume=ap.Gaussian(
            mean={name: 150, "income": 60_000},
            sd={name: 25, "income": 30_000},
            correlation={(name, "income"): 0.3},
            tolerance={"mean": 0.01, "sd": 0.02, "slope": 0.05},
        ),
        resolution={name: 1, "income": 1},
        bounds={name: (60, 400)},
        release=[ap.mean(name).text],
    )
    return policy, ap.Session(folder / "t.parquet", policy, ledger=folder / "t.ledger")


@pytest.mark.parametrize("name", ["weight", *HOSTILE])
def test_nothing_in_a_name_is_obeyed(name: str, tmp_path: Path) -> None:
    policy, session = school(tmp_path, name)
    plan, release = session.plan(), session.release()
    for shown in (policy, plan, release, session.ledger):
        page = Page(shown._repr_html_())
        assert page.harmless
        assert ("class", "attrpriv tex2jax_ignore mathjax_ignore") in page.attributes
        text = " ".join(page.words)
        assert printable(ap.mean(name).text) in text
        assert text.replace("\n", " ").isprintable()
        for printed in (str(shown), repr(shown)):
            if not isinstance(shown, ap.Plan | ap.Policy):  # their own repr is that of any frozen value
                assert all(line.isprintable() for line in printed.splitlines())


@pytest.mark.parametrize("name", [name for name in HOSTILE if "<" in name and "!" not in name])
def test_the_test_of_escapes_can_fail(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy, _ = school(tmp_path, name)
    monkeypatch.setattr(notebook, "_safe", lambda text: text)
    failed = True
    with suppress(AssertionError, IndexError):
        failed = not Page(policy._repr_html_()).harmless
    assert failed


def numbers(text: str) -> set[str]:
    return set(re.findall(r"\d[\d,]*(?:\.\d+)?(?:e-?\d+)?", text))


def test_html_tells_what_the_text_tells(tmp_path: Path) -> None:
    policy, session = school(tmp_path)
    release, record = session.release(), session.ledger
    for shown in (policy, release, record):
        page = " ".join(Page(shown._repr_html_()).words)
        known = numbers(str(shown)) | (numbers(str(release.plan)) if shown is release else set()) | {"95"}
        assert numbers(page) <= known
    assert str(policy.data) not in policy._repr_html_()


def test_a_plan_shows_its_noise_and_that_nothing_was_read(tmp_path: Path) -> None:
    _, session = school(tmp_path)
    plan = session.plan()
    text = " ".join(Page(plan._repr_html_()).words)
    assert f"Plan: {plan.mechanism}, epsilon 1, delta 1e-06, n = 400" in text
    assert "Nothing has been read or released." in text
    assert plan.guarantee.statement in text
    assert all(line in text for line in plan.certificate.assumes)
    assert not (tmp_path / "t.ledger").exists()


def test_a_long_policy_is_shown_in_short() -> None:
    policy = ap.Policy(
        epsilon=1.0,
        protect=[ap.Secret("share(smoker = 'yes')", between=(0.25, 0.4))],
        bounds={f"x{k}": (0, 1) for k in range(50)},
        individuals={"epsilon": 2.0},
        known_rows=0.1,
    )
    text = " ".join(Page(policy._repr_html_()).words)
    assert "x7 0 to 1 and 42 more" in text
    assert "x8" not in text
    assert "everyone: nothing is assumed" in text
    assert "differential privacy, epsilon 2" in text
    assert "hides       share(smoker = 'yes')" in str(policy)


def test_a_release_prints_in_short(tmp_path: Path) -> None:
    _, session = school(tmp_path)
    release = session.release()
    ((name, value, interval, mechanism),) = release.rows()
    assert str(release).startswith(f"avg(weight) = {value}  (95%: {interval}; {mechanism})\nproved: ")
    assert str(release).endswith(f"head digest {release.head}")
    assert repr(release) == f"<Release: avg(weight) = {value}; entry {release.entry.number}>"
    assert name == "avg(weight)"
    again = session.release()
    assert "this is the recorded answer of entry" in str(again)


def test_the_ledger_is_a_value(tmp_path: Path) -> None:
    _, session = school(tmp_path)
    empty = session.ledger
    assert (len(empty), empty.head, str(empty)) == (0, None, "nothing has been released.")
    assert "nothing has been released." in empty._repr_html_()
    assert repr(empty) == "<LedgerRecord: 0 entries, head None>"
    release = session.release()
    record = session.ledger
    assert record.head == release.head
    assert list(record) == list(session.recorded())
    assert record.to_json()["head"] == record.head
    assert [row[1] for row in record.rows()][-1] == "avg(weight)"
    assert len(empty) == 0
    failure = replace(record.entries[-1], kind="failure", answers=[])
    assert LedgerRecord((failure,)).rows() == [(str(failure.number), "a release that failed", "nothing", failure.time)]
