"""How things look in a terminal. Tables for people; a pipe gets the same words without colour.

Only public facts and released values are shown. Everything a person reads goes to stdout; complaints and the spinner go to
stderr, so that a pipe stays clean.
"""

from __future__ import annotations

import math
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.markup import escape as escape_markup
from rich.table import Table

from attrpriv.cli.guard import console
from attrpriv.cli.lines import complaint, fit, hang
from attrpriv.formatting import number, printable
from attrpriv.methods.base.accuracy import Measure
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.ranking import Ranking, advice
from attrpriv.queries.query import Query
from attrpriv.session.derived import computed_line, plans_of

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from attrpriv.accounting.ledger import Entry
    from attrpriv.cli.checks import Check
    from attrpriv.cli.explain import Explanation
    from attrpriv.cli.starter import Starter
    from attrpriv.cli.view_parts import WrittenView
    from attrpriv.demo import Demo
    from attrpriv.errors import Way
    from attrpriv.methods.base.view_plan import ViewPlan
    from attrpriv.problem.refusal import Refusal
    from attrpriv.session.release import Release
    from attrpriv.session.split import Ranked


_CHOOSE = (
    "choose by what you know of the table's population, not by what keeps most: of plans that are tried until one pleases, the "
    "chances of failure add up."
)


def complain(message: str, ways: Sequence[Way] = (), causes: Sequence[Refusal] = (), *, told: bool = False) -> None:
    """One line; in a terminal broken, with a list of its reasons, which is left out if `told` above it.

    Of many reasons the nearest to an answer comes first there, with what helps: one cause and one way out.
    """
    said = printable(" ".join(message.split()))
    line = f"attrpriv: {said}"
    if sys.stderr.isatty():
        _causes(console(stderr=True), causes)
        line = complaint(said, shutil.get_terminal_size().columns, ways, told=told and sys.stdout.isatty())
    sys.stderr.write(line + "\n")


def escape(text: str) -> str:
    """A name or a sentence as it is, in Rich's markup."""
    return escape_markup(printable(text))


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for k, column in enumerate(columns):
        table.add_column(column, justify="left" if k == 0 else "right", overflow="fold")
    return table


def _notes(shown: Console, notes: tuple[str, ...]) -> None:
    for note in notes:
        hang(shown, f"[dim]-[/dim] {escape(note)}")


def show_ranked(ranked: Ranked, ledger_note: str | None, error: float | None = None) -> None:
    """All mechanisms side by side, step by step; `error`: what was asked for, and now decides epsilon."""
    shown = console()
    for k, ranking in enumerate(ranked.rankings):
        if len(ranked.rankings) > 1:
            shown.print(f"[bold]{k + 1} of {len(ranked.rankings)}, one after the other[/bold]")
        _ranking(shown, ranking, error)
    _notes(shown, tuple(map(computed_line, ranked.computed)))
    if ranked.plan is not None:
        if ledger_note is not None:
            hang(shown, f"[yellow]note[/yellow] {escape(ledger_note)}")
        names = ", ".join(dict.fromkeys(one.chosen.mechanism for one in ranked.rankings if one.chosen is not None))
        shown.print(f"\nchosen: [bold green]{names}[/bold green]; nothing has been read or released.")


def _ranking(shown: Console, ranking: Ranking, error: float | None) -> None:
    """One step, the chosen mechanism marked."""
    problem = ranking.problem
    for secret in problem.secrets:
        shown.print(f"hide   {escape(str(secret))}")
    budget = "budget" if error is None else f"enough for an error ({ranking.by}) of {error:g}:"
    shown.print(f"{budget} epsilon {problem.epsilon:.6g}, delta {problem.delta:g}, n = {problem.n:,}\n")
    for query in problem.queries if ranking.plans else ():
        shown.print(_mechanisms(ranking, query, shown.width))
        shown.print()
    for reason, names in ranking.reasons.items():
        hang(shown, f"[yellow]{', '.join(names)}[/yellow] refused: {escape(reason)}")
    if ranking.elsewhere:
        hang(shown, f"[yellow]for other assumptions[/yellow]: {escape(ranking.others)}.")
    _causes(shown, () if ranking.chosen is not None else ranking.error().causes)
    if ranking.chosen is not None:
        _notes(shown, (*([] if ranking.order is None else [ranking.order]), *ranking.chosen.remarks))
        _outlook(shown, ranking.chosen.view)
        _notes(shown, () if ranking.beside is None else (ranking.beside,))
        told = advice(ranking)
        warn(shown, (*ranking.chosen.warnings, *([] if told is None else [told])))


def _causes(shown: Console, refusals: Sequence[Refusal]) -> None:
    """Of each query that is refused, what stands in the way, and one way out."""
    for refusal in refusals:
        hang(shown, f"[red]refused[/red] {escape(refusal.line)}")


def note(line: str | None) -> None:
    """Something to know beforehand, if anything."""
    if line is not None:
        shown = console()
        hang(shown, f"[yellow]note[/yellow] {escape(line)}")
        shown.print()


def warn(shown: Console, lines: Sequence[str]) -> None:
    """What must not be missed: a line each."""
    for line in lines:
        hang(shown, f"[yellow]warning[/yellow] {escape(line)}")


def _mechanisms(ranking: Ranking, query: Query, width: int) -> Table:
    mean = "mean absolute error" if ranking.by == "mean_absolute" else "expected error"
    table = _table(escape(query.text), "noise", mean, "within 95% of the time", "guarantee")
    rows = [_row(plan, query, ranking.by) for plan in ranking.plans]
    for plan, row in zip(ranking.plans, rows, strict=True):
        table.add_row(*row, style="green" if plan is ranking.chosen else "")
    how = None if ranking.by == "mean_absolute" else ranking.weighing(query)
    if how is not None:  # no mechanism: computed from the release and the constant, beside them
        rows.append(("best guess: release + constant", f"{how.weight:.0%} released", number(how.error), "", "free"))
        table.add_row(*rows[-1], style="dim")
    fit(table, [printable(query.text), *(str(column.header) for column in table.columns[1:])], rows, width)
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
    said: set[str] = set()  # what several plans say is said once
    for plan in released.plans:
        if plan.guarantee.statement not in said:
            hang(shown, f"[green]{plan.guarantee.kind}[/green] {escape(plan.guarantee.statement)}.")
        _notes(shown, tuple(line for line in (*plan.certificate.assumes, *plan.remarks) if line not in said))
        warn(shown, tuple(line for line in plan.warnings if line not in said))
        said |= {plan.guarantee.statement, *plan.certificate.assumes, *plan.remarks, *plan.warnings}
    for line in released.whereabouts:
        shown.print(escape(line))


def _answers(released: Release) -> Table:
    table = _table("released", "value", f"95% interval for {released.interval_for}", "mechanism")
    rows = released.rows()
    for heading, name, row in zip(*_said_once(released, [row[0] for row in rows]), rows, strict=True):
        if heading:
            table.add_row(escape(heading))
        table.add_row(escape(name), f"[bold]{row[1]}[/bold]", *row[2:])
    for name, *cells in released.guess_rows():
        table.add_row(escape(name), *cells, style="dim")
    if sys.stdout.isatty():  # a long query needs the room more than this column's heading does
        table.columns[2].max_width = max(24, *(len(interval) for _, _, interval, _ in rows))
    return table


def _said_once(released: Release, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The names of the rows, and the line above each, if any: a query with groups stands above the first of them."""
    asked = [f"{part.query.text}: " for answer in released.answers for part in (answer, *answer.parts) if part.query.group_by]
    starts = [start for text in dict.fromkeys(asked) for start in (text, f"from {text}")]
    found = [next((start for start in starts if name.startswith(start)), "") for name in names]
    above = [start.removesuffix(": ") if start != last else "" for start, last in zip(found, ["", *found], strict=False)]
    return above, [f"  {name.removeprefix(start)}" if start else name for name, start in zip(names, found, strict=True)]


def _promise(shown: Console, plan: Plan) -> None:
    hang(shown, f"[green]{plan.guarantee.kind}[/green] {escape(plan.guarantee.statement)}.")
    _notes(shown, plan.certificate.assumes)


def show_view(plan: ViewPlan, written: WrittenView) -> None:
    """What was written, and what it hides."""
    shown = console()
    shown.print(f"{escape(str(written))} [bold]{plan.notes[0]}[/bold]\n")
    shown.print(_cells(plan))
    shown.print()
    _of_view(shown, plan)


def show_view_plan(plan: ViewPlan, ledger_note: str | None = None) -> None:
    """What a view would show, and what it would hide; before anything is drawn."""
    shown = console()
    shown.print(f"hide   {escape(str(plan.secret))}")
    shown.print(f"keep   {plan.rows:,} of n = {plan.n:,} rows\n")
    shown.print(_cells(plan))
    shown.print()
    _of_view(shown, plan)
    _outlook(shown, plan)
    if ledger_note is not None:
        hang(shown, f"[yellow]note[/yellow] {escape(ledger_note)}")
    shown.print(
        "\nnothing has been read or drawn: attrpriv view writes these rows, attrpriv release answers queries from them."
    )


def _cells(plan: ViewPlan) -> Table:
    """How many rows of each cell are kept; of a reference with many values, the first few."""
    if plan.coverage is None:
        table = _table("cell", "kept", "of a number between")
        for cell in plan.cells:
            table.add_row(escape(cell.name), f"{cell.keep:,}", f"{cell.low:,} and {cell.high:,}")
        return table
    table = _table("~".join(map(escape, plan.secret.whole_columns)), "kept", "of the public")
    for cell in plan.first_cells:
        table.add_row(escape(cell.name), f"{cell.keep:,}", f"{cell.share or 0:.2%}")
    if plan.more_cells:
        kept, share = plan.cells[len(plan.first_cells) :], sum(cell.share or 0 for cell in plan.cells[len(plan.first_cells) :])
        table.add_row(f"and {plan.more_cells:,} more (--json)", f"{sum(cell.keep for cell in kept):,}", f"{share:.2%}")
    return table


def _of_view(shown: Console, plan: ViewPlan) -> None:
    hang(shown, f"[green]{plan.guarantee.kind}[/green] {escape(plan.guarantee.statement)}.")
    _notes(shown, plan.certificate.assumes)
    _notes(shown, () if plan.coverage is None else plan.coverage.lines)
    warn(shown, plan.warnings)


def _outlook(shown: Console, view: ViewPlan | None) -> None:
    """How the rows of a reference view change with its least density, and with fewer hidden columns."""
    if view is None or view.coverage is None:
        return
    header, *rows = view.coverage.table()
    table = _table(*header)
    for row, one in zip(rows, view.coverage.outlook, strict=True):
        table.add_row(*map(escape, row), style="green" if one.stated else "")
    shown.print()
    shown.print(table)
    _notes(shown, (_CHOOSE,))


def show_explanation(told: Explanation) -> None:
    shown = console()
    for heading, lines in told.sections.items():
        shown.print(f"[bold]{heading}[/bold]")
        _notes(shown, tuple(lines))
        shown.print()


def show_check(found: Check) -> None:
    shown = console()
    for secret in found.policy.protect:
        shown.print(f"hide   {escape(str(secret))}")
    for plan in () if found.plan is None else plans_of(found.plan):
        for query in plan.queries:
            kind, rmse, _ = _numbers(plan, query)
            shown.print(f"answer {escape(query.text)} by {plan.mechanism}, {kind}, expected error {rmse}")
    _notes(shown, tuple(note for note in found.notes if note not in found.warnings))
    warn(shown, found.warnings)
    _causes(shown, () if found.refusal is None else found.refusal.causes)
    if found.refusal is None:
        shown.print(
            "[green]ok[/green] the policy is complete and consistent"
            + ("." if found.plan is None and found.view is None else ", and provable.")
        )


def show_ledger(entries: Sequence[Entry], budget: Mapping[str, Any] | None) -> None:
    """What was released, as it was recorded, and what is left of the table's budget."""
    from attrpriv.session.ledger_record import LedgerRecord

    shown = console()
    if not entries:
        shown.print("nothing has been released.")
        return
    table = _table("entry", "what", "value", "time")
    table.columns[1].justify = "left"
    for entry, what, value, time in LedgerRecord(tuple(entries)).rows():
        table.add_row(entry, escape(what), value, time)
    shown.print(table)
    if budget is not None:
        shown.print(f"\nbudget epsilon {budget['epsilon']:g}, delta {budget['delta']:g} for everything together")
        shown.print(_bar(budget["left"]))
    shown.print(f"\nhead digest {entries[-1].digest}")


def _bar(left: float) -> str:
    """What is spent and what is left, as a bar; at least a part of it while anything is left."""
    whole = 40
    free = math.ceil(left * whole)
    return f"[red]{'█' * (whole - free)}[/red][green]{'░' * free}[/green] {1 - left:.1%} spent, {left:.1%} left"


def show_starter(written: Starter, found: Check | None) -> None:
    """What was written and what comes next; `found`: what `check` says of it, where nothing is left to decide."""
    shown = console()
    shown.print(f"wrote {escape(written.path.name)}: column names and types, no statistic.")
    if written.sniffed:
        shown.print("The types were guessed from a sample of rows, because the file states none.")
    if written.open:
        shown.print(
            "No column's name says that it is sensitive, so none is proposed: decide what to hide, or name it (--secret)."
        )
    if written.fitted is not None:
        shown.print(f"wrote {escape(written.fitted.name)}: what public records say, with its confidence.")
    name = escape(written.path.name)
    if found is not None and found.refusal is not None:
        _causes(shown, found.refusal.causes)
        shown.print(f"Nothing is left to decide, but nothing can be answered like this. Why: attrpriv plan {name}")
        return
    if (left := written.left) is None:
        shown.print(f"Nothing is left to decide. Next: attrpriv check {name}")
        return
    more = "" if left.count == 1 else f", the first of {left.count}"
    shown.print(f"Left to decide{more}, in line {left.line}: {escape(left.question)}")
    shown.print(f"Replace each TODO, then run: {escape(written.fit) if written.fit else f'attrpriv check {name}'}")


def show_tidied(out: Path, types: Mapping[str, str], commas: Sequence[str] = ()) -> None:
    """The columns, and what comes next."""
    shown = console()
    hang(shown, f"wrote {escape(out.name)}: " + ", ".join(f"{escape(name)} ({kind})" for name, kind in types.items()))
    if commas:
        columns = ", ".join(map(escape, commas))
        hang(
            shown,
            f"[yellow]note[/yellow] {columns}: numbers with commas are text. To read them as decimals: --decimal , --force",
        )
    shown.print(f"Write a policy for it with: attrpriv init {escape(shlex.quote(str(out)))}")


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
