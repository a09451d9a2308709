"""The same work by the command line and in a notebook: what to type for a policy file."""

from __future__ import annotations

import shlex

from attrpriv.studio.asked import releases
from attrpriv.studio.draft import Draft


def commands(draft: Draft) -> str:
    """What to type in a terminal, in the folder of the policy."""
    name = _typed(draft.name)
    does = ["check", "explain", "plan"]
    lines = [f"attrpriv {one} {name}" for one in does]
    if releases(draft.stated):
        lines.append(f"attrpriv release {name}")
    else:
        lines.append(f"attrpriv view {name} --out {_typed(view_name(draft))}")
    return "\n".join([*lines, f"attrpriv ledger {name} --verify", f"attrpriv report {name} --out {_html(draft)}"])


def notebook(draft: Draft) -> str:
    """The same in Python."""
    head = f"import attrpriv as ap\n\npolicy = ap.Policy.load({draft.name!r})\nsession = ap.Session(policy=policy)\n"
    if releases(draft.stated):
        return head + "session.ranked()      # reads no row\nrelease = session.release()\nrelease.to_frame()"
    return head + "session.view_plan()   # reads no row\nrows = session.view().execute()"


def view_name(draft: Draft) -> str:
    """A name for the file that a view is written to."""
    return f"{draft.path.stem}.view.parquet"


def _html(draft: Draft) -> str:
    return _typed(f"{draft.path.stem}.report.html")


def _typed(name: str) -> str:
    """A file's name as a shell takes it, and never as an option."""
    return shlex.quote(f"./{name}" if name.startswith("-") else name)
