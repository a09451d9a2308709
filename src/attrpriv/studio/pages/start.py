"""The first screen: the tables and the policies of the folder."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from attrpriv.errors import UsageError
from attrpriv.studio.asked import Asked
from attrpriv.studio.draft import writing
from attrpriv.studio.html import Html, choice, h, heading, listed, paragraph, together

TITLE = "Design a release"


def show(asked: Asked) -> Html:
    folder = asked.studio.folder
    tables, policies = folder.tables(), folder.policies()
    return together(
        paragraph(
            "Publish averages, counts or rows of a table, and hide properties of its sensitive columns. Every choice is "
            "written into a policy file of this folder, which the command line reads as well."
        ),
        heading("Go on with a policy") if policies else None,
        h("ul", [h("li", h("a", name, href=f"/p/{quote(name, safe='')}/table")) for name in policies]) if policies else None,
        heading("Begin with a table"),
        _tables(asked, tables) if tables else _none(),
    )


def _tables(asked: Asked, tables: list[str]) -> Html:
    return asked.send(
        "Make a policy for it",
        choice("The private table", "table", [(name, name) for name in tables], asked.one("table")),
        do="make",
    )


def _none() -> Html:
    return listed(
        [
            "This folder has no Parquet or CSV file. Copy the table here, or start the studio for "
            "its folder: attrpriv studio FOLDER."
        ]
    )


def act(asked: Asked) -> str:
    """Make a policy file for a table; its address."""
    from attrpriv.cli.starter import starter_head

    name, folder = asked.one("table"), asked.studio.folder
    if name not in folder.tables():
        raise UsageError("table: must be a table of this folder. Got none of that name.")
    source = asked.studio.source(name)
    made = folder.new_name(Path(name).stem, ".yaml")
    path = folder.inside(made)
    text = starter_head(source, str(folder.root / name), path) + _OPEN
    with writing("policy"), path.open("x", encoding="utf-8") as file:
        file.write(text)
    return f"/p/{quote(made, safe='')}/table?done=made"


_OPEN = """\
delta: 1e-6
protect:
  - secret: TODO               # what must stay hidden
"""
