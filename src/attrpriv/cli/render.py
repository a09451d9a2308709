"""How things look in a terminal. Tables for people; a pipe gets the same words without colour.

Only public facts and released values are shown. Everything a person reads goes to stdout; complaints and the spinner go to
stderr, so that a pipe stays clean.
"""

from __future__ import annotations

import math
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.markup import escape as escape_markup
from rich.table import Table

from attrpriv.mechanisms.accuracy import Measure
from attrpriv.mechanisms.advice import advice
from attrpriv.mechanisms.plan import Plan
from attrpriv.mechanisms.registry import Ranking
from attrpriv.queries.query import Query

if TYPE_CHECKING:
    from pathlib import Path

    from attrpriv.accounting.ledger import Entry
    from attrpriv.cli.checks import Check
    from attrpriv.cli.explain import Explanation
    from attrpriv.cli.starter import Starter
    from attrpriv.demo import Demo
    from attrpriv.mechanisms.view import ViewPlan
    from attrpriv.release import Release

# A pipe has no width of its own; in this one no sentence and no table wraps.
_PIPE_WIDTH = 10_000


def console(*, stderr: bool = False) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _PIPE_WIDTH
    # A column may be called `:car:`, so that no word is read as an emoji; and `[red]`, so that every name is escaped.
    return Console(stderr=stderr, width=width, highlight=False, soft_wrap=False, emoji=False)


def complain(message: str) -> None:
    """One line; in a terminal, broken between words and not within them."""
    line = f"attrpriv: {printable(' '.join(message.split()))}"
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        line = textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)
    sys.stderr.write(line + "\n")


def printable(text: str) -> str:
    """The text without anything that a terminal would obey: a column may be called `\\x1b[2J`."""
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def escape(text: str) -> str:
    """A name or a sentence as it is, in Rich's markup."""
    return escape_markup(printable(text))


@contextmanager
def working(what: str) -> Iterator[None]:
    """A spinner on stderr for as long as something takes; silent in a pipe."""
    shown = console(stderr=True)
    if not shown.is_terminal:
        yield
        return
    with shown.status(f"{what} ..."):
        yield


def number(value: float, digits: int = 4) -> str:
    """A number as people read it, to so many significant digits.

    >>> number(1.08567), number(480.833), number(12345678.0), number(0.0)
    ('1.086', '480.8', '12,345,678', '0')
    """
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    if decimals > 8:
        return f"{value:.{digits - 1}e}"
    return f"{value:,.{decimals}f}"


def answer(value: float, scale: float) -> str:
    """A released value to the digits that its noise leaves meaningful: two more than the noise's first."""
    if isinstance(value, int):
        return f"{value:,d}"
    if scale == 0:
        return f"{value:,.10g}"
    decimals = max(0, 2 - math.floor(math.log10(scale)))
    return f"{value:,.{min(decimals, 12)}f}"


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for k, column in enumerate(columns):
        table.add_column(column, justify="left" if k == 0 else "right", overflow="fold")
    return table


def _notes(shown: Console, notes: tuple[str, ...]) -> None:
    for note in notes:
        shown.print(f"[dim]-[/dim] {escape(note)}")


def show_ranking(ranking: Ranking, ledger_note: str | None, error: float | None = None) -> None:
    """All mechanisms side by side, the chosen one marked; `error`: what was asked for, and now decides epsilon."""
    shown = console()
    problem = ranking.problem
    for secret in problem.secrets:
        shown.print(f"hide   {escape(str(secret))}")
    budget = "budget" if error is None else f"enough for an error ({ranking.by}) of {error:g}:"
    shown.print(f"{budget} epsilon {problem.epsilon:.6g}, delta {problem.delta:g}, n = {problem.n:,}\n")
    for query in problem.queries if ranking.plans else ():
        shown.print(_mechanisms(ranking, query))
        shown.print()
    for reason, names in ranking.reasons.items():
        shown.print(f"[yellow]{', '.join(names)}[/yellow] refused: {escape(reason)}")
    if ranking.elsewhere:
        shown.print(f"[yellow]for other assumptions[/yellow]: {escape(ranking.others)}.")
    if ranking.chosen is not None:
        _notes(shown, ranking.chosen.remarks)
        if ranking.chosen.view is None and any(plan.view is not None for plan in ranking.plans):
            _notes(shown, ("subsample: its error is from the statistic at a public composition, not from the table's own.",))
        told = advice(ranking)
        warn(shown, (*ranking.chosen.warnings, *([] if told is None else [told])))
        if ledger_note is not None:
            shown.print(f"[yellow]note[/yellow] {escape(ledger_note)}")
        shown.print(f"\nchosen: [bold green]{ranking.chosen.mechanism}[/bold green]; nothing has been read or released.")


def warn(shown: Console, lines: Sequence[str]) -> None:
    """What must not be missed: a line each."""
    for line in lines:
        shown.print(f"[yellow]warning[/yellow] {escape(line)}")


def _mechanisms(ranking: Ranking, query: Query) -> Table:
    mean = "mean absolute error" if ranking.by == "mean_absolute" else "expected error"
    table = _table(escape(query.text), "noise", mean, "within 95% of the time", "guarantee")
    rows = [_row(plan, query, ranking.by) for plan in ranking.plans]
    for plan, row in zip(ranking.plans, rows, strict=True):
        table.add_row(*row, style="green" if plan is ranking.chosen else "")
    for column, cells in zip(table.columns, zip(*rows, strict=True), strict=True):
        header = str(column.header).split() if column is not table.columns[0] else []
        column.min_width = max(len(word) for text in cells for word in [*text.split(), *header])  # no name or number is broken
    return table


def _row(plan: Plan, query: Query, by: Measure) -> tuple[str, ...]:
    name = "constant (baseline)" if plan.mechanism == "constant" else plan.mechanism
    return name, *_numbers(plan, query, by), plan.guarantee.kind


def _numbers(plan: Plan, query: Query, by: Measure = "rmse") -> tuple[str, str, str]:
    noise, error = plan.noise_of(query), plan.error_of(query)
    kind = noise.kind if noise.kind in ("none", "kernel") else f"{noise.kind} {number(noise.scale)}"
    mean = error.mean_absolute if by == "mean_absolute" else error.rmse
    if mean is None or error.alpha95 is None:
        return kind, "known once read", "known once read"
    return kind, number(mean), f"+-{number(error.alpha95)}"


def show_release(released: Release) -> None:
    """The answers, what they hide, and where they are recorded."""
    shown = console()
    shown.print(_answers(released))
    shown.print()
    _promise(shown, released.plan)
    _notes(shown, released.plan.remarks)
    warn(shown, released.plan.warnings)
    if released.recorded:
        shown.print(f"this is the recorded answer of entry {released.entry.number}, {released.entry.time}; nothing was drawn.")
    else:
        shown.print(f"recorded as entry {released.entry.number}, {released.entry.time}")
    shown.print(f"head digest {released.head}")


def _answers(released: Release) -> Table:
    whose = "the table's own value" if released.plan.view is None else "the whole table at that composition"
    table = _table("released", "value", f"95% interval for {whose}", "mechanism")
    for answered in released.answers:
        for value in answered.values:
            name = answered.query.text if value.group is None else f"{answered.query.text}: {value.group}"
            low, high = value.interval(0.95)
            # Noise is not all: what is taken back of a secret moves an answer more than its mask does.
            scale = max(released.plan.noise_of(answered.query).scale, value.spread.reach(0.95) / 1.96)
            interval = f"{answer(low, scale)} to {answer(high, scale)}"
            table.add_row(escape(name), f"[bold]{answer(value.value, scale)}[/bold]", interval, released.plan.mechanism)
    return table


def _promise(shown: Console, plan: Plan) -> None:
    shown.print(f"[green]{plan.guarantee.kind}[/green] {escape(plan.guarantee.statement)}.")
    for line in plan.certificate.assumes:
        shown.print(f"[dim]-[/dim] {escape(line)}")


def show_view(plan: ViewPlan, out: Path) -> None:
    """What was written, and what it hides."""
    shown = console()
    shown.print(f"wrote {plan.rows:,} of {plan.n:,} rows to {escape(out.name)}. [bold]{plan.notes[0]}[/bold]\n")
    table = _table("cell", "kept", "of a number between")
    for cell in plan.cells:
        table.add_row(escape(cell.name), f"{cell.keep:,}", f"{cell.low:,} and {cell.high:,}")
    shown.print(table)
    shown.print(f"\n[green]{plan.guarantee.kind}[/green] {escape(plan.guarantee.statement)}.")
    for line in plan.certificate.assumes:
        shown.print(f"[dim]-[/dim] {escape(line)}")


def show_explanation(told: Explanation) -> None:
    shown = console()
    for heading, lines in told.sections.items():
        shown.print(f"[bold]{heading}[/bold]")
        for line in lines:
            shown.print(f"[dim]-[/dim] {escape(line)}")
        shown.print()


def show_check(found: Check) -> None:
    shown = console()
    for secret in found.policy.protect:
        shown.print(f"hide   {escape(str(secret))}")
    if found.plan is not None:
        for query in found.plan.queries:
            kind, rmse, _ = _numbers(found.plan, query)
            shown.print(f"answer {escape(query.text)} by {found.plan.mechanism}, {kind}, expected error {rmse}")
    _notes(shown, found.notes)
    if found.refusal is None:
        shown.print("[green]ok[/green] the policy is complete and consistent" + (", and provable." if found.plan else "."))


def show_ledger(entries: Sequence[Entry]) -> None:
    """What was released, as it was recorded."""
    shown = console()
    if not entries:
        shown.print("nothing has been released.")
        return
    table = _table("entry", "what", "value", "time")
    for entry in entries:
        if entry.kind == "view":
            table.add_row(str(entry.number), "the view was drawn", "", entry.time)
        if entry.kind == "failure":
            table.add_row(str(entry.number), "a release that failed", "nothing", entry.time)
        for answered in entry.answers:
            for value in answered.get("groups", [answered]):
                name = answered["query"] if "group" not in value else f"{answered['query']}: {value['group']}"
                reach = (value["interval"]["high"] - value["interval"]["low"]) / 4
                table.add_row(str(entry.number), escape(name), answer(value["value"], reach), entry.time)
    shown.print(table)
    shown.print(f"\nhead digest {entries[-1].digest}")


def show_starter(written: Starter) -> None:
    shown = console()
    shown.print(f"wrote {escape(written.path.name)}: column names and types, no statistic.")
    if written.sniffed:
        shown.print("The types were guessed from a sample of rows, because the file states none.")
    shown.print("Replace each TODO, then run: attrpriv check " + escape(written.path.name))


def show_demo(shown_demo: Demo) -> None:
    """Three ways to publish one number, side by side, then the number."""
    shown = console()
    shown.print(f"[bold]{escape(shown_demo.title)}[/bold]\n")
    for line in shown_demo.story:
        shown.print(escape(line))
    shown.print()
    table = _table("avg(weight)", "noise", "expected error", "within 95% of the time")
    for row in shown_demo.rows:
        style = "bold green" if row.ours else ""
        table.add_row(escape(row.label), *_numbers(row.plan, row.plan.queries[0]), style=style)
    shown.print(table)
    shown.print()
    shown.print(_answers(shown_demo.release))
    shown.print()
    _promise(shown, shown_demo.release.plan)
    shown.print()
    for line in shown_demo.closing:
        shown.print(f"[dim]{escape(line)}[/dim]")
