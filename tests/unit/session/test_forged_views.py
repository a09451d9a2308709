"""Records of views that somebody made up, with digests that fit: the recheck finds a second view, and rows not proved."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import attrpriv as ap
from attrpriv.accounting import hash_chain as chain
from attrpriv.accounting.hash_chain import Entry
from attrpriv.errors import CertificateError
from attrpriv.session.record import recheck

N = 40
Change = Callable[[dict[str, Any]], object]


RARE = {"failure": 1e-2, "rarest_event": 0.1}
HIDDEN: dict[str, dict[str, Any]] = {
    "a share": {"protect": [{"secret": "share(sex = 'F')", "between": [0.25, 0.5]}]},
    "a column": {
        "protect": [{"secret": "columns(sex)"}],
        "reference": {"sex": {"values": ["F", "M"], "shares": [0.375, 0.625]}, "least_density": 0.9, **RARE},
        "delta": 0.1,
    },
}


@pytest.fixture(params=HIDDEN)
def entries(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Entry, ...]:
    """A view and an answer from it."""
    policy = ap.Policy.from_json(
        {"attrpriv": 1, "data": "people.parquet", "ledger": "people.ledger", "epsilon": 1.0, **HIDDEN[request.param]}
    )
    table = pa.table({"sex": ["F"] * 15 + ["M"] * 25, "x": list(range(N))})
    with ap.Session(table, policy, ledger=tmp_path / "people.ledger") as session:
        session.view()
        session.release("avg(x)")
        return session.recorded()


def chained(entries: Sequence[Entry], change: Change = lambda told: None, number: int = 1) -> list[Entry]:
    """The same entries, one of them changed, with every digest computed anew."""
    head, found = None, []
    for k, entry in enumerate(entries, start=1):
        told = copy.deepcopy(entry.to_json())
        if k == number:
            change(told)
        said = {key: told[key] for key in ("kind", "time", "policy_digest", "plan", "answers", "details")}
        head = chain.next_entry(chain.contents(**said), told["account"], head)
        found.append(head)
    return found


def test_a_view_and_its_answers_are_proved(entries: tuple[Entry, ...]) -> None:
    assert [entry.kind for entry in entries] == ["view", "answer"]
    assert recheck("record", chained(entries)).releases == 0


def test_a_second_view_is_found(entries: tuple[Entry, ...]) -> None:
    view, answer = entries
    for wrong, number in (
        ([view, view], 2),
        ([view, answer, view], 3),
        ([view, view, answer], 2),
        ([answer], 1),
        ([answer, view], 1),
    ):
        with pytest.raises(CertificateError, match=rf"^record: entry {number}: "):
            recheck("record", chained(wrong))


def cell(told: dict[str, Any], k: int = 0) -> list[dict[str, Any]]:
    """A cell as it was drawn, and as the proof has it."""
    return [told["plan"]["cells"][k], told["details"]["certificate"]["evidence"]["cells"][k]]


def proved(told: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = told["details"]["certificate"]["evidence"]
    return found


def more_rows(told: dict[str, Any]) -> None:
    """More rows of a cell than it surely has, in the proof as well."""
    for one in cell(told):
        one["keep"] = one["low"] + 1


def wider(told: dict[str, Any]) -> None:
    for one in cell(told):
        one["low"] = one["high"] + 1


def other_number(told: dict[str, Any]) -> None:
    told["plan"]["n"] = proved(told)["n"] = 10 * N


FORGED: dict[str, Change] = {
    "more rows kept than the proof says": lambda told: cell(told)[0].update(keep=cell(told)[0]["keep"] + 1),
    "fewer rows kept than the proof says": lambda told: cell(told)[0].update(keep=cell(told)[0]["keep"] - 1),
    "another range than the proof says": lambda told: cell(told)[0].update(high=cell(told)[0]["high"] + 1),
    "another cell": lambda told: cell(told)[0].update(name="X"),
    "a cell less": lambda told: told["plan"]["cells"].pop(),
    "a cell less in the proof": lambda told: proved(told)["cells"].pop(),
    "another number of rows": lambda told: told["plan"].update(n=N + 1),
    "a number of rows that the cells cannot have": other_number,
    "more rows than a cell surely has": more_rows,
    "a range that is none": wider,
    "a proof of another kind": lambda told: told["details"]["certificate"].update(evidence={"kind": "constant"}),
    "no proof": lambda told: told["details"].pop("certificate"),
    "an account": lambda told: told.update(account={}),
    "everything about another column": lambda told: told["plan"]["secret"].update(secret="columns(x)", between=None),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_view_is_found(name: str, entries: tuple[Entry, ...]) -> None:
    with pytest.raises(CertificateError, match=r"^record: entry 1: "):
        recheck("record", chained(entries, FORGED[name]))
