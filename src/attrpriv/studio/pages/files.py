"""The files: the policy, the commands and the notebook's code, as they are at this moment."""

from __future__ import annotations

from attrpriv.studio.asked import Asked
from attrpriv.studio.html import Html, heading, paragraph, together, verbatim
from attrpriv.studio.layout import further, state_of
from attrpriv.studio.notebook import commands, notebook

TITLE = "Files"


def show(asked: Asked) -> Html:
    draft = asked.draft
    return together(
        paragraph(
            "The policy file is the truth: what stands in it is what is released, by the studio or by the command line. It may "
            "be changed in any editor; comments are kept."
        ),
        state_of(asked),
        heading(f"The policy: {draft.name}"),
        verbatim(draft.text),
        heading("Commands"),
        verbatim(commands(draft)),
        heading("For a notebook"),
        verbatim(notebook(draft)),
        further(asked, "release"),
    )
