"""Which files a studio looks at: those of its folder that can be read to their end, whatever a policy names."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from attrpriv.errors import AttrprivError, PolicyError, UsageError
from attrpriv.studio.draft import Draft
from attrpriv.studio.folder import Folder

POLICY = "attrpriv: 1\ndata: a.csv\nepsilon: 1.0\nprotect:\n  - secret: mean(a)\n    between: [0, 1]\n"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    place = tmp_path / "folder"
    place.mkdir()
    (place / "a.csv").write_text("a\n1\n", encoding="utf-8")
    (place / "p.yaml").write_text(POLICY, encoding="utf-8")
    return Folder.of(place)


def at_once(work: Callable[[], object]) -> object:
    """What it gives, or the error: a read that waits for a pipe fails here instead of for ever."""
    found: list[object] = []

    def working() -> None:
        try:
            found.append(work())
        except AttrprivError as error:
            found.append(error)

    thread = Thread(target=working, daemon=True)
    thread.start()
    thread.join(20)
    assert found, "it waits"
    return found[0]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("data", "pipe"),
        ("ledger", "pipe"),
        ("assume", {"file": "pipe"}),
        ("assume", {"kind": "records", "file": "a.csv", "further": ["pipe"]}),
        ("assume", {"kind": "parameter_network", "network": "pipe"}),
        ("reference", {"file": "pipe"}),
    ],
)
def test_a_pipe_is_no_file_that_a_policy_may_name(folder: Folder, key: str, value: object) -> None:
    os.mkfifo(folder.root / "pipe")
    told = at_once(lambda: folder.require_inside({key: value}))
    assert str(told) == f"{key}: must be a file. Got a pipe, a socket or a device. Name a file."


def test_a_journal_that_is_a_pipe_or_endless_holds_nothing_up(folder: Folder) -> None:
    journal = folder.root / ".p.yaml.undo"
    os.mkfifo(journal)
    draft = Draft(folder, "p.yaml")
    assert at_once(lambda: draft.steps) == 0
    journal.unlink()
    with journal.open("wb") as file:
        file.write(b'["')
        file.truncate(1 << 40)  # takes no room on the disk, and no memory
    assert at_once(lambda: draft.steps) == 0
    assert at_once(lambda: draft.change(draft.digest, POLICY.replace("epsilon: 1.0", "epsilon: 2.0"))) is None
    assert draft.steps == 1


def test_a_policy_without_end_is_not_read(folder: Folder) -> None:
    with (folder.root / "huge.yaml").open("wb") as file:
        file.write(b"data: a.csv\n")
        file.truncate(1 << 40)
    told = at_once(lambda: Draft(folder, "huge.yaml").text)
    assert isinstance(told, PolicyError)
    assert "at most 4 MiB" in str(told)


@pytest.mark.parametrize("pattern", ["**/people.csv", "*/people.csv", "l?nk/people.csv", "**", "link/people*.csv", "a**.csv"])
def test_a_pattern_does_not_follow_links_out_of_the_folder(folder: Folder, pattern: str) -> None:
    outside = folder.root.parent / "outside"
    outside.mkdir()
    (outside / "people.csv").write_text("precious\n1\n", encoding="utf-8")
    (folder.root / "link").symlink_to(outside)
    with pytest.raises(UsageError, match=r"^data: "):
        folder.require_inside({"data": pattern})


def test_a_pattern_of_the_folder_is_all_its_files(folder: Folder) -> None:
    (folder.root / "ab.csv").write_text("a\n2\n", encoding="utf-8")
    found = folder.all_inside("a*.csv", "data")
    assert [one.name for one in found] == ["a.csv", "ab.csv"]
    (folder.root / "ac.csv").symlink_to(folder.root.parent / "people.csv")
    (folder.root.parent / "people.csv").write_text("a\n3\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"^data: must be in the folder"):
        folder.all_inside("a*.csv", "data")
