"""`attrpriv ledger`: what was released, whether the record is whole, and its proofs once more, without the table."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from attrpriv.accounting import hash_chain as chain
from attrpriv.accounting.ledger import Ledger
from attrpriv.errors import CertificateError, RefusedError
from attrpriv.session import record
from attrpriv.session.record import document, read_document, recheck
from tests.end_to_end.material import Said, policy, school, write_policy


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    school(tmp_path)
    return tmp_path


def test_an_empty_ledger(here: Path) -> None:
    assert Said("ledger", "students.yaml").out == "nothing has been released.\n"
    assert Said("ledger", "students.yaml", "--json").json == {
        "schema_version": 1,
        "head": None,
        "budget": None,
        "entries": [],
    }
    said = Said("ledger", "students.yaml", "--verify", "--recheck")
    assert said.code == 0
    assert "nothing has been released, as far as this ledger knows." in said.out
    assert Said("ledger", "students.yaml", "--verify", "--head", "ab" * 32).code == 3


@pytest.mark.parametrize("size", [0, 1])
def test_an_emptied_ledger_is_an_error_with_a_way_out(here: Path, size: int) -> None:
    """What a copy leaves that failed."""
    assert Said("release", "students.yaml").code == 0
    (here / "students.ledger").write_bytes(bytes(size))
    for command in (["ledger"], ["ledger", "--verify"], ["release"], ["plan"], ["check"]):
        said = Said(command[0], "students.yaml", *command[1:])
        assert (said.code, "Got an empty file" in said.err, "Restore it from a backup" in said.err) == (3, True, True), command
    assert (here / "students.ledger").stat().st_size == size
    (here / "students.ledger").unlink()
    assert Said("release", "students.yaml").code == 0


def test_verify_says_what_it_cannot_tell(here: Path) -> None:
    head = Said("release", "students.yaml", "--json").json["ledger"]["head"]
    said = Said("ledger", "students.yaml", "--verify")
    assert said.out == (
        "ok 1 entry, each as it was written and linked to the one before.\n"
        "whether entries were cut off at the end cannot be told: that needs --head and a digest that a release printed.\n"
        f"head digest {head}\n"
    )
    told = Said("ledger", "students.yaml", "--verify", "--head", head)
    assert "the digest you kept is that of entry 1: nothing up to it was cut off; nothing was added since." in told.out
    whole = {"schema_version": 1, "entries": 1, "head": head, "kept": 1}
    assert Said("ledger", "students.yaml", "--verify", "--head", head, "--json").json == {
        "schema_version": 1,
        "entries": 1,
        "verified": whole,
    }


def test_verify_finds_a_cut_end_and_an_edit(here: Path) -> None:
    Said("release", "students.yaml")
    ledger = Ledger(here / "students.ledger")
    (first,) = ledger.entries()
    said: dict[str, Any] = {"time": "t", "policy_digest": "ab", "plan": {}, "answers": []}
    second = ledger.commit(**said, allowed=lambda history: None)
    kept = Said("ledger", "students.yaml", "--verify", "--head", first.digest)
    assert "entry 1: nothing up to it was cut off; 1 added since." in kept.out
    with closing(sqlite3.connect(here / "students.ledger")) as connection, connection:
        connection.execute("DELETE FROM entries WHERE number = 2")
    assert Said("ledger", "students.yaml", "--verify").code == 0
    cut = Said("ledger", "students.yaml", "--verify", "--head", second.digest)
    assert (cut.code, cut.out) == (3, "")
    assert "its end was cut off or rewritten" in cut.complaint
    with closing(sqlite3.connect(here / "students.ledger")) as connection, connection:
        connection.execute("UPDATE entries SET answers = '[]'")
    for arguments in (("ledger", "students.yaml"), ("ledger", "students.yaml", "--verify"), ("release", "students.yaml")):
        edited = Said(*arguments)
        assert (edited.code, edited.out) == (3, "")
        assert "must be as attrpriv wrote it" in edited.complaint


def test_bad_usage(here: Path) -> None:
    for arguments, text in [
        (("--head", "ab" * 32), "head: is for --verify"),
        (("--verify", "--head", "abc"), "head: must be a"),
    ]:
        said = Said("ledger", "students.yaml", *arguments)
        assert said.code == 2
        assert said.complaint.startswith(text)


def test_the_record_is_checked_without_ledger_and_table(here: Path) -> None:
    Said("release", "students.yaml", "avg(weight)", "sum(weight)")
    (here / "record.json").write_text(Said("ledger", "students.yaml", "--json").out)
    for name in ("students.ledger", "students.parquet", "students.yaml"):
        (here / name).unlink()
    said = Said("ledger", "record.json", "--recheck")
    assert said.out.splitlines() == [
        "ok 1 entry: 1 different certificate and the rule for all of them hold. No data was read.",
        "planned again from the stated policy, and found to have the noise it asks for: 1 of 1 releases.",
    ]
    head = json.loads((here / "record.json").read_text())["head"]
    told = Said("ledger", "record.json", "--verify", "--head", head, "--recheck", "--json").json
    assert told["verified"]["kept"] == 1
    assert told["rechecked"] == {"certificates": 1, "releases": 1, "planned_again": 1}


CHANGED: dict[str, Callable[[Any], object]] = {
    "an answer": lambda told: told["entries"][0]["answers"][0].update(value=1.0),
    "the head": lambda told: told.update(head="ab" * 32),
    "a key more": lambda told: told["entries"][0].update(more=1),
    "a key less": lambda told: told["entries"][0].pop("plan"),
    "an entry less": lambda told: told["entries"].clear(),
    "a number": lambda told: told["entries"][0].update(number="1"),
}


@pytest.mark.parametrize("name", CHANGED)
def test_a_changed_record_is_refused(name: str, here: Path) -> None:
    Said("release", "students.yaml")
    told = Said("ledger", "students.yaml", "--json").json
    CHANGED[name](told)
    (here / "record.json").write_text(json.dumps(told))
    said = Said("ledger", "record.json", "--recheck")
    assert said.code == 3
    assert "must be as attrpriv printed it" in said.complaint


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "no", '{"schema_version": 1, "entries": 5}', '{"schema_version": 2, "entries": []}']
)
def test_what_is_no_record(text: str, here: Path) -> None:
    (here / "record.json").write_text(text)
    for path in ("record.json", "none.json"):
        said = Said("ledger", path, "--verify")
        assert said.code == 2
        assert "must be what attrpriv ledger --json prints" in said.complaint


def forged(here: Path, change: Callable[[dict[str, Any]], object]) -> tuple[chain.Entry, ...]:
    """A record whose only entry was changed by somebody who can hash."""
    (entry,) = Ledger(here / "students.ledger").entries()
    told = entry.to_json()
    change(told)
    said = chain.contents(**{key: told[key] for key in ("kind", "time", "policy_digest", "plan", "answers", "details")})
    (here / "record.json").write_text(json.dumps(document([chain.next_entry(said, told["account"], None)])))
    return read_document(here / "record.json")


def smaller(told: dict[str, Any]) -> None:
    """Half of the noise, in the certificate as well: the promise no longer follows."""
    text = json.dumps(told["plan"]).replace(str(told["plan"][0]["noise"]["scale"]), str(told["plan"][0]["noise"]["scale"] / 2))
    told["plan"] = json.loads(text)


FORGED: dict[str, Callable[[dict[str, Any]], object]] = {
    "less noise in the certificate": smaller,
    "less noise than certified": lambda told: told["plan"][0]["noise"].update(scale=1e-9),
    "less noise drawn than certified": lambda told: told["details"]["columns"][0].update(independent=1e-9),
    "another epsilon": lambda told: told["plan"][0].update(epsilon=0.1),
    "another number of rows": lambda told: told["plan"][0].update(n=10**9),
    "another policy": lambda told: told.update(policy_digest="cd" * 32),
    "no certificate": lambda told: told["plan"][0].pop("certificate"),
    "a certificate of nothing": lambda told: told["plan"][0].update(certificate={}),
    "another question answered": lambda told: told["answers"][0].update(query="avg(income)"),
    "no plan": lambda told: told.update(plan=[], details=None),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_record_that_proves_nothing_is_found(name: str, here: Path) -> None:
    Said("release", "students.yaml", "--mechanism", "gaussian")
    assert recheck("record", forged(here, lambda told: None)).certificates == 1
    with pytest.raises(CertificateError, match=r"^record: entry 1: "):
        recheck("record", forged(here, FORGED[name]))


def test_a_record_of_too_much_is_found(here: Path) -> None:
    """Two releases, each proved on its own: the rule for all of them does not allow it."""
    Said("release", "students.yaml")
    (first,) = Ledger(here / "students.ledger").entries()
    said = {key: value for key, value in first.to_json().items() if key not in ("number", "previous", "digest", "account")}
    second = chain.next_entry(chain.contents(**said), None, first)
    with pytest.raises(CertificateError, match=r"entry 2: .*no rule covers this release together with the earlier ones"):
        recheck("record", (first, second))


def test_a_record_of_two_answers_to_one_question_or_of_a_wrong_account_is_found(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a rule that would allow both."""
    Said("release", "students.yaml")
    (first,) = Ledger(here / "students.ledger").entries()
    said = {key: value for key, value in first.to_json().items() if key not in ("number", "previous", "digest", "account")}
    monkeypatch.setattr(record, "decide_again", lambda name, entry, history: first.account)
    assert recheck("record", (first,)).certificates == 1
    with pytest.raises(CertificateError, match="entry 2: must promise"):
        recheck("record", (first, chain.next_entry(chain.contents(**said), first.account, first)))
    for account in (None, {**first.account, "individuals": -1.0}, {**first.account, "joint": None}):
        with pytest.raises(CertificateError, match="entry 1: must promise"):
            recheck("record", (chain.next_entry(chain.contents(**said), account, None),))


def test_a_view_and_its_answers_are_proved_again(here: Path) -> None:
    hidden = [{"secret": "share(gender = 'F')", "between": [0.3, 0.7]}]
    write_policy(here, policy("assume", "resolution", protect=hidden, release=["count(*) filter (where weight > 150)"]))
    assert Said("release", "students.yaml").code == 0
    assert Said("release", "students.yaml").code == 0
    entries = Ledger(here / "students.ledger").entries()
    assert [entry.kind for entry in entries] == ["view", "answer", "answer"]
    assert Said("ledger", "students.yaml", "--recheck", "--json").json["rechecked"]["certificates"] >= 1
    printed = Said("ledger", "students.yaml", "--json").out
    state: Any = Ledger(here / "students.ledger").view_state()
    assert not any(str(value) in printed for value in (state["key"], *state["thresholds"]))
    told = entries[0].to_json()
    told["plan"]["cells"][0]["keep"] += 1
    said = {key: told[key] for key in ("kind", "time", "policy_digest", "plan", "answers", "details")}
    with pytest.raises(CertificateError, match="entry 1: must promise what its certificate proves"):
        recheck("record", (chain.next_entry(chain.contents(**said), None, None),))


def test_reading_a_record_names_the_file(here: Path) -> None:
    (here / "r.json").write_text('{"schema_version": 1, "entries": [{}], "head": null}')
    with pytest.raises(RefusedError, match=r"^record 'r\.json': must be as attrpriv printed it"):
        read_document(Path("r.json"))
