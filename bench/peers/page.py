"""docs/guide/compared.md: texts from `page/`, with the numbers of the results put in.

In a text stand  {{table KEY}}  for a whole table, and  {{KEY | ROW | COLUMN}}  for one cell of it (the row by what its first
cell says), where KEY is EXPERIMENT/TABLE. `page/head.md` comes first, then the text of each experiment, then `page/foot.md`.

What must never change: every number that is measured comes from a result. A quoted one is marked with a double dagger.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from bench.peers.results import Cell, Form, Result, Table, read
from bench.peers.running import EXPERIMENTS, ROOT

TEXTS = Path(__file__).parent / "page"
PAGE = ROOT / "docs" / "guide" / "compared.md"
QUOTED = "‡"
NOT_MEASURED = "*Not measured yet: run `make bench-peers`.*"
_PLACE = re.compile(r"\{\{\s*(?:table\s+([\w/-]+)|([\w/-]+)\s*\|\s*(.+?)\s*\|\s*(.+?))\s*\}\}")


def written(results: Path, texts: Path = TEXTS) -> str:
    """The page that these results give."""
    found = {name: read(results / f"{name}.json") for name in EXPERIMENTS if (results / f"{name}.json").is_file()}
    parts = [_text(texts, "head"), *(_part(_text(texts, name), found, name) for name in EXPERIMENTS), _text(texts, "foot")]
    parts.append(_runs(found))
    return "\n\n".join(part for part in parts if part) + "\n"


def _text(texts: Path, name: str) -> str:
    place = texts / f"{name}.md"
    return place.read_text(encoding="utf-8").strip() if place.is_file() else ""


def _part(text: str, found: Mapping[str, Result], name: str) -> str:
    if text and name not in found:
        return f"{text.splitlines()[0]}\n\n{NOT_MEASURED}"
    if text and found[name].left_out:
        return f"{text.splitlines()[0]}\n\n*Not measured: {found[name].left_out}.*"
    return _PLACE.sub(lambda place: _filled(place, found), text)


def _filled(place: re.Match[str], found: Mapping[str, Result]) -> str:
    experiment, _, key = (place[1] or place[2]).partition("/")
    table = found[experiment].table(key)
    if place[1]:
        return markdown(table)
    cell = table.cell(place[3], place[4])
    return shown(cell, next(one.form for one in table.columns if one.name == place[4]))


# ------------------------------------------------------------------------------------------------------------------ tables


def markdown(table: Table) -> str:
    lines = [f"**{table.title}**", ""]
    lines += [_line(one.name for one in table.columns), _line("---" if one.form == "text" else "---:" for one in table.columns)]
    lines += [_line(shown(cell, one.form) for cell, one in zip(row, table.columns, strict=True)) for row in table.rows]
    sources = dict.fromkeys(cell.source for row in table.rows for cell in row if cell.quoted)
    return "\n".join([*lines, *(["", f"{QUOTED} quoted, not measured here: {'; '.join(sources)}."] if sources else [])])


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def shown(cell: Cell, form: Form) -> str:
    """As people read it: three digits, the interval in brackets; a quoted number as it was published."""
    if cell.value is None:
        return "–"
    if isinstance(cell.value, str):
        text = cell.value
    else:
        text = f"{cell.value:g}" if cell.quoted and form == "number" else number(cell.value, form)
    if cell.low is not None and cell.high is not None:
        text += f" ({number(cell.low, form)} to {number(cell.high, form)})"
    return f"{text}{QUOTED}" if cell.quoted else text


def number(value: float, form: Form) -> str:
    if form == "percent":
        return f"{100 * value:.1f}%"
    if form == "whole":
        return f"{value:,.0f}"
    if form == "bytes":
        return f"{value / 2**20:,.0f} MB"
    unit = {"seconds": " s", "times": "×"}.get(form, "")
    return f"{_digits(value)}{unit}"


def _digits(value: float) -> str:
    if value == 0 or not 1e-3 <= abs(value) < 1e6:
        return f"{value:.3g}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


# ------------------------------------------------------------------------------------------------------------- of the runs


def _runs(found: Mapping[str, Result]) -> str:
    """When, with what and on what each was measured, and what the runs themselves noted."""
    measured = [one for one in found.values() if not one.left_out]
    lines = ["## The runs", "", "Where other work was running, a run took longer than its processor time.", ""]
    for one in measured:
        versions = ", ".join(f"{name} {text}" for name, text in one.versions.items())
        where = f"{one.machine.cores} cores, {one.machine.memory_gb:g} GB, Python {one.machine.python}"
        took = f"{one.seconds:,.0f} seconds ({one.processor_seconds:,.0f} of processor time)"
        lines.append(f"- **{one.title}**: {one.date}; {took}, on {where}; seed {one.seed}; {versions}.")
        lines += [f"  - {note}" for note in one.notes]
    return "\n".join(lines) if measured else ""
