"""What was released: the ledger's entries with their values, the budget that is left, and the report for whoever approves."""

from __future__ import annotations

import math

from attrpriv.accounting.ledger import Belonging
from attrpriv.pictures import subjects
from attrpriv.session.ledger_record import LedgerRecord
from attrpriv.studio.asked import Asked
from attrpriv.studio.html import Html, figure, h, heading, listed, paragraph, table, together

TITLE = "Report and ledger"


def show(asked: Asked) -> Html:
    ledger = Belonging.of(asked.draft.policy()).ledger()
    record = LedgerRecord(ledger.entries())
    return together(
        heading("The ledger"),
        _entries(record)
        if record.entries
        else paragraph("Nothing was released of this table yet, as far as its ledger knows."),
        heading("The report"),
        paragraph(
            "One page for whoever must approve a release: what could be learnt, what it rests on. It can be printed and signed."
        ),
        h("p", h("a", "Open the report", href=asked.address("report"), class_="next")),
    )


def _entries(record: LedgerRecord) -> Html:
    left = [one for one in record.left() if math.isfinite(one[1])]
    return together(
        table("Everything released, each entry checked", ("Entry", "what", "value", "time"), record.rows(), numbers=(2,)),
        listed(record.budget),
        paragraph(f"Head digest {record.head}", "dim"),
        paragraph("Keep the head digest: with it, nobody can cut off the ledger's end unnoticed."),
        figure(subjects.budget(left), "budget") if left else None,
    )
