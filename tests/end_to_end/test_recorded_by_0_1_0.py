"""Ledgers that version 0.1.0 wrote: every proof in them is made again, and every release is planned again from its policy.

The file holds what `attrpriv ledger --json` of 0.1.0 printed, by what was released: each problem of the conformance suite by
each mechanism that had a plan for it, and sequences of releases. It is never written again: an owner's ledger is not either.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from attrpriv.accounting.hash_chain import Replayed
from attrpriv.accounting.standing import LedgerState
from attrpriv.errors import CertificateError, RefusedError
from attrpriv.session.record import read_document, recheck

FILE = Path(__file__).parents[1] / "data" / "ledgers_0_1_0.json.gz"
LEDGERS: dict[str, Any] = json.loads(gzip.decompress(FILE.read_bytes()))


def kinds(document: Any) -> tuple[str, ...]:
    """What proves the entries of a ledger."""
    plans = [entry["plan"] for entry in document["entries"]]
    return tuple(plan[0]["certificate"]["evidence"]["kind"] if isinstance(plan, list) else "view" for plan in plans)


def test_every_kind_of_proof_is_there() -> None:
    held = {kind for document in LEDGERS.values() for kind in kinds(document)}
    assert len(LEDGERS) == 166
    assert len(held) >= 20


@pytest.mark.parametrize("label", LEDGERS)
def test_rechecks(label: str, tmp_path: Path) -> None:
    place = tmp_path / "record.json"
    place.write_text(json.dumps(LEDGERS[label]), encoding="utf-8")
    entries = read_document(place)
    found = recheck("record", entries)
    assert found.planned_again == found.releases == sum(entry.kind == "release" for entry in entries)


def test_a_planted_change_is_found(tmp_path: Path) -> None:
    """The same road, with a certificate that promises less noise than its policy plans."""
    label = next(label for label, document in LEDGERS.items() if kinds(document) == ("laplace",))
    place = tmp_path / "record.json"
    place.write_text(json.dumps(LEDGERS[label]), encoding="utf-8")
    (entry,) = read_document(place)
    entry.plan[0]["certificate"]["evidence"]["terms"][0]["scale"] *= 0.5
    with pytest.raises(CertificateError):
        recheck("record", (entry,))


def test_a_simulated_release_is_kept_and_not_continued(tmp_path: Path) -> None:
    """Its proof is gone with the method: the record can be read, and nothing is promised on top of it."""
    place = tmp_path / "record.json"
    place.write_bytes(gzip.decompress((FILE.parent / "ledger_0_1_0_simulated.json.gz").read_bytes()))
    (entry,) = read_document(place)
    assert [answer["query"] for answer in entry.answers] == ["median(y)"]
    with pytest.raises(RefusedError, match="entry 1 rests on a proof that this version does not know"):
        LedgerState.of(Replayed((entry,), 1))
    with pytest.raises(CertificateError, match="entry 1 rests on a proof"):
        recheck("record", (entry,))
