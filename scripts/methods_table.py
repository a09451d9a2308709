"""The table of methods in docs/architecture.md, made from `METHODS`.

    python scripts/methods_table.py            # print it
    python scripts/methods_table.py --write    # write it into the page, between its markers

Nobody edits the table by hand: a test compares the page with what is made here.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from attrpriv.methods.table import METHODS, Form, Method

PAGE = Path(__file__).resolve().parents[1] / "docs" / "architecture.md"
BEGIN, END = "<!-- methods: made by scripts/methods_table.py -->\n", "<!-- /methods -->\n"
HEAD = ("method", "cases", "statistics", "sequences", "reads the secret", "needs delta", "evidence", "code", "proof")
WORDS = {
    "averages": "averages",
    "subsets": "averages, also over subsets",
    "counts": "counts",
    "non_linear": "other statistics",
    "any": "what the case covers",
}
NONE = "–"


def table(methods: Iterable[Method] = METHODS) -> str:
    """One line a method, in Markdown."""
    rows = [HEAD, ("---",) * len(HEAD), *map(row, methods)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def row(method: Method) -> tuple[str, ...]:
    return (
        f"`{method.name}`",
        quoted(method.shapes()) if method.shapes() else "any",
        statistics(method),
        sequences(method),
        reads_secret(method),
        "yes" if method.needs_delta else "no",
        quoted(method.proofs) or NONE,
        quoted(folders(method)),
        f"[{method.page}](theory/{method.page})",
    )


def statistics(method: Method) -> str:
    """What is answered; where that differs, for each shape of a case."""
    if any(form.statistics == "any" and not form.shapes for form in method.forms):
        return "any"
    kinds = list(dict.fromkeys(form.statistics for form in method.forms))
    said = [WORDS[kind] + (under(method.forms, kind) if len(kinds) > 1 else "") for kind in kinds]
    return "; ".join([*said, *(["linear combinations"] if "combinations" in method.covers else [])])


def under(forms: Sequence[Form], kind: str) -> str:
    shapes = [shape for form in forms if form.statistics == kind for shape in form.shapes]
    return f" ({quoted(shapes)})" if shapes else ""


def sequences(method: Method) -> str:
    """What it may follow."""
    if method.views:
        return "any number of answers from one view"
    if not method.chosen:
        return "after anything: it reads no row"
    alone = quoted(shape for form in method.forms if form.alone for shape in form.shapes)
    if not method.follows:
        return "alone"
    return f"after {quoted(method.follows)}" + (f"; alone under {alone}" if alone else "")


def reads_secret(method: Method) -> str:
    """Whether answers are made of the sensitive columns; where only some forms do, under which shapes."""
    reading = [form for form in method.forms if form.reads_secret]
    if len(reading) == len(method.forms):
        return "yes"
    return f"under {quoted(shape for form in reading for shape in form.shapes)}" if reading else "no"


def folders(method: Method) -> list[str]:
    """The folders below methods/ that hold its forms and its proofs."""
    homes = [*(form.home for form in method.forms), *method.proofs.values()]
    return list(dict.fromkeys(home.removeprefix(".").partition(".")[0] for home in homes))


def quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def written(page: str) -> str:
    """The page with the table as it is now."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"{PAGE.name}: must hold the markers {BEGIN.strip()} and {END.strip()}.")
    return f"{before}{begin}{table()}{end}{after}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="the table of methods in docs/architecture.md")
    parser.add_argument("--write", action="store_true", help="write it into the page")
    if parser.parse_args(arguments).write:
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(table(), end="")


if __name__ == "__main__":
    main()
