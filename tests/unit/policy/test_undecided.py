"""A starter policy is refused as long as any of its decisions is open, wherever the word stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from attrpriv.cli.starter import write_starter
from attrpriv.errors import PolicyError
from attrpriv.policy import Policy

TABLE = "smoker,stay,weight\n" + "yes,3,70\nno,9,81\n" * 20


@pytest.mark.parametrize("template", ["school", "counts", "groups", "hospital", "survey"])
def test_each_open_decision_is_found(template: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TABLE, encoding="utf-8")
    text = write_starter(str(tmp_path / "t.csv"), tmp_path / "t.yaml", False, template).text
    lines = text.splitlines()
    open_lines = [k for k, line in enumerate(lines) if "TODO" in line.partition("#")[0]]
    assert len(open_lines) > 2
    for kept in open_lines:
        told = [line if k == kept or k not in open_lines else line.replace("TODO", "0.5") for k, line in enumerate(lines)]
        (tmp_path / "one.yaml").write_text("\n".join(told) + "\n", encoding="utf-8")
        with pytest.raises(PolicyError, match=r"^[^ ].*: must be decided by you\. Got TODO\. Write your decision"):
            Policy.load(tmp_path / "one.yaml")


def test_the_word_in_a_name_or_a_place_is_no_open_decision(tmp_path: Path) -> None:
    stated = "attrpriv: 1\ndata: TODO.csv\nledger: TODO.ledger\nepsilon: 1\nprotect:\n  - secret: {}\n    within: 1\n"
    (tmp_path / "a.yaml").write_text(stated.format("mean(TODOs)"), encoding="utf-8")
    assert Policy.load(tmp_path / "a.yaml").data == "TODO.csv"
    (tmp_path / "a.yaml").write_text(stated.format("share(smoker = 'TODO')"), encoding="utf-8")
    with pytest.raises(PolicyError, match=re.escape("protect[0].secret: must be decided by you.")):
        Policy.load(tmp_path / "a.yaml")


def test_a_key_that_says_it_is_found_among_numbers(tmp_path: Path) -> None:
    stated = "attrpriv: 1\nepsilon: 1\nprotect:\n  - secret: mean(x)\n    within: 1\nresolution:\n  {}: 1\n"
    (tmp_path / "a.yaml").write_text(stated.format("TODO"), encoding="utf-8")
    with pytest.raises(PolicyError, match=re.escape("resolution.TODO: must be decided by you.")):
        Policy.load(tmp_path / "a.yaml")
    (tmp_path / "a.yaml").write_text(stated.format("TODOs"), encoding="utf-8")
    assert Policy.load(tmp_path / "a.yaml").resolution == {"TODOs": 1}
