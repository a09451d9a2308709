"""A release is what its page restated, or nothing; also where something changes while the table is read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attrpriv.errors import UsageError
from attrpriv.session.session import Session
from attrpriv.session.table_reads import read
from attrpriv.studio.draft import Draft
from attrpriv.studio.folder import Folder
from attrpriv.studio.plans import Plans
from attrpriv.studio.restated import RestatedSession
from tests.end_to_end.material import school, students, write_table


@pytest.fixture
def draft(tmp_path: Path) -> Draft:
    return Draft(Folder.of(tmp_path), school(tmp_path, release=["avg(weight)", "sum(weight)"]).name)


def restated(draft: Draft) -> RestatedSession:
    return RestatedSession(Plans().of(draft), draft, draft.digest)


def while_it_is_read(monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> None:
    todo = [change]

    def reading(*given: Any) -> Any:
        found = read(*given)
        if todo:
            todo.pop()()
        return found

    monkeypatch.setattr("attrpriv.session.session.read", reading)


def test_what_was_restated_is_released(draft: Draft) -> None:
    with restated(draft) as session:
        assert session.release().values
    assert Session(policy=draft.path).ledger.entries


@pytest.mark.parametrize("what", ["rewritten", "replaced", "set back", "linked"])
def test_a_table_that_is_exchanged_while_it_is_read_is_not_released(
    draft: Draft, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    table = draft.folder.root / "students.parquet"
    before = table.stat()

    def change() -> None:
        if what in ("replaced", "linked"):
            other = write_table(draft.folder.root, students(seed=2), "other.parquet")
            table.unlink()
            other.rename(table) if what == "replaced" else table.symlink_to(other)
        else:
            table.write_bytes(table.read_bytes())
        if what == "set back":
            os.utime(table, ns=(before.st_atime_ns, before.st_mtime_ns))

    while_it_is_read(monkeypatch, change)
    with (
        restated(draft) as session,
        pytest.raises(UsageError, match="the table, or a file that the policy names, changed since"),
    ):
        session.release()
    assert not Session(policy=draft.path).ledger.entries


def test_a_policy_that_is_changed_while_the_table_is_read_is_not_released(
    draft: Draft, monkeypatch: pytest.MonkeyPatch
) -> None:
    while_it_is_read(monkeypatch, lambda: draft.path.write_text(draft.text + "# later\n", encoding="utf-8"))
    with restated(draft) as session, pytest.raises(UsageError, match=r"policy changed since\. This form released nothing"):
        session.release()
    assert not Session(policy=draft.path).ledger.entries


def test_what_another_process_releases_meanwhile_is_not_built_upon(draft: Draft, monkeypatch: pytest.MonkeyPatch) -> None:
    others: list[str] = []

    def release() -> None:
        with Session(policy=draft.path) as other:
            others.append(other.release("avg(weight)", spend=0.1).head)

    while_it_is_read(monkeypatch, release)
    with restated(draft) as session, pytest.raises(UsageError, match="the ledger changed since"):
        session.release()
    assert [entry.digest for entry in Session(policy=draft.path).ledger.entries] == others


def test_a_release_of_which_a_part_was_recorded_does_not_say_that_there_was_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several counts are released one after the other."""
    given = {event: {"F": [0.3, 0.4], "M": [0.5, 0.6]} for event in ("weight > 150", "weight > 170")}
    policy = school(
        tmp_path,
        protect=[{"secret": "share(gender = 'F')", "between": [0.4, 0.6]}],
        assume={"kind": "counts", "sensitive": "gender", "given": given, "prior": {"F": 0.5}},
        release=[f"count(*) filter (where {event})" for event in given],
    )
    draft = Draft(Folder.of(tmp_path), policy.name)
    read_before: list[object] = []

    def reading(*given: Any) -> Any:
        if read_before:
            draft.path.write_text(draft.text + "# later\n", encoding="utf-8")
        read_before.append(given)
        return read(*given)

    monkeypatch.setattr("attrpriv.session.session.read", reading)
    with (
        restated(draft) as session,
        pytest.raises(UsageError, match=r"the policy changed since\. This form released a part of it"),
    ):
        session.release()
    assert len(Session(policy=draft.path).ledger.entries) == 1
