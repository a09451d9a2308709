"""The table: names and types of its columns, and its public number of rows. Nothing else is known of it here."""

from __future__ import annotations

from attrpriv.errors import UsageError
from attrpriv.policy.edit import set_value
from attrpriv.problem.places import is_remote
from attrpriv.queries.query import quoted
from attrpriv.studio.asked import Asked
from attrpriv.studio.draft import TODO
from attrpriv.studio.html import Html, field, heading, paragraph, table, together
from attrpriv.studio.layout import further
from attrpriv.studio.numbers import count_in

TITLE = "The table"


def show(asked: Asked) -> Html:
    stated = asked.draft.stated
    columns = asked.columns()
    source = asked.studio.source(stated["data"])
    sampled = source.rows is None and not is_remote(stated["data"])
    known = "" if stated.get("rows") in (None, TODO) else str(stated["rows"])
    return together(
        paragraph(f"{stated['data']}: {len(columns):,} column{'' if len(columns) == 1 else 's'}."),
        table(
            "Columns, as secrets and queries name them",
            ("Name", "type"),
            [(quoted(name), kind) for name, kind in columns.items()],
        ),
        paragraph("The types were guessed from a sample of its rows, as no type stands in the file.", "dim")
        if sampled
        else None,
        heading("Its number of rows"),
        paragraph(
            f"{source.rows:,} rows, as the file states. The number is public: errors are computed from it."
            if source.rows is not None
            else "The file does not state it. It becomes public: errors are computed from it."
        ),
        asked.send(
            "Save the number of rows",
            field("Number of rows", "rows", asked.one("rows", known), inputmode="numeric"),
            do="rows",
        )
        if source.rows is None
        else None,
        further(asked, "hide"),
    )


def act(asked: Asked) -> str:
    """The number of rows of a table that does not state it."""
    rows = count_in("rows", asked.one("rows"))
    if rows < 1:
        raise UsageError("rows: must be a whole number above 0, such as 10000. Got 0.")
    asked.draft.change(asked.seen, set_value(asked.draft.text, ("rows",), rows))
    return asked.address(done="saved")
