"""A policy file under the studio's hands: the file is the truth, a change is made to what was seen, and can be undone."""

from __future__ import annotations

from pathlib import Path

import pytest

from attrpriv.errors import AttrprivError, PolicyError, UsageError
from attrpriv.studio.draft import Draft, StaleTextError, leaves, stated, written
from attrpriv.studio.folder import Folder, digest_of

GOOD = "attrpriv: 1\ndata: t.parquet   # mine\nepsilon: 1.0\nprotect:\n  - secret: share(g = 'F')\n    between: [25%, 45%]\n"


@pytest.fixture
def draft(tmp_path: Path) -> Draft:
    (tmp_path / "p.yaml").write_text(GOOD, encoding="utf-8")
    return Draft(Folder.of(tmp_path), "p.yaml")


def test_a_change_is_written_and_taken_back_byte_for_byte(draft: Draft) -> None:
    seen, changed = draft.digest, GOOD.replace("1.0", "0.5")
    draft.change(seen, changed)
    assert (draft.text, draft.steps, draft.policy().epsilon) == (changed, 1, 0.5)
    draft.undo(draft.digest)
    assert (draft.text, draft.steps) == (GOOD, 0)
    with pytest.raises(UsageError, match="nothing was changed here yet"):
        draft.undo(draft.digest)


def test_a_folder_that_cannot_be_written_is_told(draft: Draft, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a full disk or a folder of somebody else: root, as whom tests may run, is refused nothing."""

    def refused(*_: object) -> None:
        raise PermissionError(13, "a place of this machine")

    monkeypatch.setattr("os.replace", refused)
    with pytest.raises(UsageError, match=r"^policy: must be in a folder that can be written\. Got one that cannot\."):
        draft.change(draft.digest, GOOD.replace("1.0", "0.5"))
    assert (draft.text, draft.steps) == (GOOD, 0)
    assert [one.name for one in draft.path.parent.iterdir()] == ["p.yaml"]


def test_another_draft_of_the_file_takes_it_back(draft: Draft) -> None:
    draft.change(draft.digest, GOOD.replace("1.0", "0.5"))
    again = Draft(draft.folder, "p.yaml")
    again.undo(again.digest)
    assert draft.text == GOOD


def test_what_was_changed_since_is_not_overwritten(draft: Draft) -> None:
    seen = draft.digest
    draft.path.write_text(GOOD + "# an editor's\n", encoding="utf-8")
    with pytest.raises(StaleTextError, match="it was changed since"):
        draft.change(seen, GOOD.replace("1.0", "0.5"))
    with pytest.raises(StaleTextError):
        draft.undo(seen)
    assert draft.text == GOOD + "# an editor's\n"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("1.0", "-1", "epsilon"),
        ("45%", "15%", "between"),
        ("share(g = 'F')", "no such thing", "protect"),
        ("epsilon", "epsillon", "epsillon"),
    ],
)
def test_what_is_wrong_is_refused_in_the_policys_own_words(draft: Draft, before: str, after: str, said: str) -> None:
    with pytest.raises(PolicyError, match=said):
        draft.change(draft.digest, GOOD.replace(before, after, 1))
    assert (draft.text, draft.steps) == (GOOD, 0)


def test_a_decision_that_is_left_open_is_not_wrong(draft: Draft) -> None:
    draft.change(draft.digest, GOOD.replace("share(g = 'F')", "TODO"))
    assert "TODO" in str(draft.problem())


def test_what_was_wrong_before_does_not_stop_its_repair(draft: Draft) -> None:
    draft.path.write_text(GOOD.replace("1.0", "-1"), encoding="utf-8")
    draft.change(draft.digest, GOOD.replace("1.0", "-1") + "# a note\n")
    draft.change(draft.digest, GOOD)
    assert draft.problem() is None


@pytest.mark.parametrize("name", ["../p.yaml", "/etc/passwd", "", ".", "p.txt", "no.yaml", "a\0b.yaml"])
def test_only_a_policy_of_the_folder_is_one(draft: Draft, name: str) -> None:
    (draft.folder.root / "p.txt").write_text(GOOD, encoding="utf-8")
    with pytest.raises(AttrprivError):
        Draft(draft.folder, name)


def test_a_link_that_leads_out_is_no_policy(tmp_path: Path) -> None:
    (tmp_path / "out.yaml").write_text(GOOD, encoding="utf-8")
    inside = tmp_path / "folder"
    inside.mkdir()
    (inside / "p.yaml").symlink_to(tmp_path / "out.yaml")
    folder = Folder.of(inside)
    assert folder.policies() == []
    with pytest.raises(UsageError, match="in the folder of the studio"):
        Draft(folder, "p.yaml")


@pytest.mark.parametrize(
    "data", ["../t.parquet", "/t.parquet", "postgresql://h/d?table=t", "spark:t", "x/../../t.parquet", "../*.parquet"]
)
def test_a_table_elsewhere_is_refused_before_it_is_looked_for(draft: Draft, data: str) -> None:
    draft.path.write_text(GOOD.replace("t.parquet", data), encoding="utf-8")
    with pytest.raises(UsageError, match="data: must be"):
        draft.policy()


def test_values_are_told_as_they_are_written() -> None:
    said = stated(GOOD)
    assert said["protect"] == [{"secret": "share(g = 'F')", "between": ["25%", "45%"]}]
    assert [(written(place), value) for place, value in leaves(said["protect"], ("protect",))] == [
        ("protect[0].secret", "share(g = 'F')"),
        ("protect[0].between", "25%, 45%"),
    ]
    assert stated("- a\n") == stated("a: [") == stated("") == {}


def test_digests_tell_texts_apart() -> None:
    assert digest_of(GOOD) != digest_of(GOOD + " ")
