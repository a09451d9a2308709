"""The results of the utility benchmark: tables in Markdown, JSON, and the figure of the documentation."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrpriv import __version__
from bench.utility_suite.measuring import Measured, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FAMILIES = {
    "gaussian": "Averages, normal rows",
    "groups": "Averages behind a category",
    "hierarchy": "A population's mean",
    "counts": "Counts and sums",
    "network": "A network of parameters",
    "chain": "Entries of a chain",
}
# The palette of Okabe and Ito, which colour-blind readers can tell apart; markers differ as well.
STYLES: dict[str, tuple[str, str, str]] = {
    "auto": ("auto chooses this", "#000000", "o"),
    "paper": ("the paper's mechanism", "#D55E00", "^"),
    "group_dp": ("group differential privacy", "#0072B2", "s"),
    "constant": ("the constant answer", "#999999", "D"),
    "optimal": ("linear-program optimum", "#009E73", "o"),
    "other": ("any other mechanism", "#E69F00", "."),
}
LEAST = 1e-4
BARE = {"Date": None, "Creator": None, "Format": None, "Type": None}
START, END = "<!-- results: written by make bench-utility -->", "<!-- end of results -->"


# ------------------------------------------------------------------------------------------------------------------ numbers


def number(value: float | None) -> str:
    """Three digits; thousands with commas."""
    if value is None:
        return ""
    if value == 0:
        return "0"
    if value >= 1000:
        return f"{value:,.0f}"
    if value < 1e-3:
        mantissa, _, exponent = f"{value:.2g}".partition("e")
        return f"{mantissa}e{int(exponent)}" if exponent else mantissa
    return f"{value:.3g}"


def times(value: float | None) -> str:
    """A ratio."""
    if value is None:
        return ""
    if math.isinf(value) or value >= 1e6:
        return "over a million"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def both(row: Row | None) -> str:
    """Predicted and simulated."""
    return "" if row is None else f"{number(row.predicted)} / {number(row.simulated)}"


# ----------------------------------------------------------------------------------------------------------------- Markdown


def markdown(results: Sequence[Measured]) -> str:
    """The comparison, and below it every mechanism of every problem."""
    head = (
        "| problem | rows | ε | δ | `auto` chooses | error | simulated | paper | group DP | constant | against the optimum |\n"
        "|---|---:|---:|---:|---|---:|---:|---:|---:|---:|---:|"
    )
    lines = [f"attrpriv {__version__}; {len(results)} problems.", "", head]
    lines += [_line(one) for one in results]
    for family, title in FAMILIES.items():
        chosen = [one for one in results if one.family == family]
        if chosen:
            lines += ["", f"### {title}: every mechanism, predicted / simulated", "", *_every(chosen)]
    return "\n".join(lines) + "\n"


def _line(one: Measured) -> str:
    ratios = [times(one.ratio(name)) for name in (one.paper, "group_dp", "constant")]
    cells = [one.name, f"{one.n:,}", f"{one.epsilon:g}", number(one.delta), f"`{one.chosen}`"]
    cells += [number(one.auto.predicted), number(one.auto.simulated), *ratios, times(one.to_optimum)]
    return f"| {' | '.join(cells)} |"


def _every(chosen: Sequence[Measured]) -> list[str]:
    names = list(dict.fromkeys(row.mechanism for one in chosen for row in one.rows))
    names.sort(key=lambda name: (name in ("paper", "group_dp", "constant"), name))
    shown = [name if name == "paper" else f"`{name}`" for name in names]
    lines = [f"| problem | {' | '.join(shown)} |", f"|---|{'---:|' * len(names)}"]
    lines += [f"| {one.name} | {' | '.join(both(one.row(name)) for name in names)} |" for one in chosen]
    return lines


def put_into(page: Path, text: str) -> None:
    """Replace what is between the marks of a page."""
    found = page.read_text(encoding="utf-8")
    if START not in found or END not in found:
        raise SystemExit(f"{page.name}: has no place for results ({START} ... {END})")
    pattern = re.compile(f"{re.escape(START)}.*{re.escape(END)}", re.DOTALL)
    page.write_text(pattern.sub(lambda _: f"{START}\n\n{text}\n{END}", found), encoding="utf-8")


# --------------------------------------------------------------------------------------------------------------------- JSON


def to_json(results: Sequence[Measured]) -> str:
    return (
        json.dumps({"version": __version__, "problems": [_entry(one) for one in results]}, indent=1, ensure_ascii=False) + "\n"
    )


def _entry(one: Measured) -> dict[str, Any]:
    return {
        "problem": one.name,
        "family": one.family,
        "rows": one.n,
        "epsilon": one.epsilon,
        "delta": one.delta,
        "chosen": one.chosen,
        "paper": one.paper,
        "ratio": {name: _short(one.ratio(name)) for name in dict.fromkeys((one.paper, "group_dp", "constant"))},
        "against_the_optimum": _short(one.to_optimum),
        "mechanisms": {
            row.mechanism: {
                "rmse": _short(row.predicted),
                "mean_absolute": _short(row.absolute),
                "simulated_rmse": _short(row.simulated),
                "draws": row.draws,
                "guarantee": row.kind,
            }
            for row in one.rows
        },
        "refused": {name: reason for name, reason in one.refused.items() if not _elsewhere(reason)},
    }


def _elsewhere(reason: str) -> bool:
    """Whether a mechanism is simply for other assumptions."""
    return re.match(r"needs an? [\w ]+ assumption", reason) is not None


def _short(value: float | None) -> float | None:
    """Six digits; what is not a number in JSON is none."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")


# ------------------------------------------------------------------------------------------------------------------- figure


def draw(results: Sequence[Measured], paths: Sequence[Path]) -> None:
    """One line a problem, one mark a mechanism, errors on a logarithmic scale."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    style: Any = {"svg.hashsalt": "attrpriv", "svg.fonttype": "path", "font.size": 8, "font.family": "DejaVu Sans"}
    with plt.rc_context(style):
        figure, axes = plt.subplots(figsize=(9.5, 0.21 * (len(results) + 6 * len(FAMILIES) / 4) + 1.2), layout="constrained")
        _lines(axes, results)
        axes.set_xscale("log")
        axes.set_xlim(LEAST / 1.8, None)
        axes.set_xlabel("root mean square error, in the unit of the answer (arrows: smaller still)")
        axes.grid(axis="x", color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
        _legend(figure)
        for path in paths:
            figure.savefig(path, metadata=BARE if path.suffix == ".svg" else None, dpi=110)
        plt.close(figure)


def _lines(axes: Axes, results: Sequence[Measured]) -> None:
    place, places, labels = 0.0, [], []
    for family, title in FAMILIES.items():
        chosen = [one for one in results if one.family == family]
        if not chosen:
            continue
        axes.text(LEAST / 1.7, place, title, fontweight="bold", va="center", ha="left", fontsize=8)
        place += 1.0
        for one in chosen:
            _problem(axes, place, one)
            places.append(place)
            labels.append(one.name)
            place += 1.0
        place += 0.4
    axes.set_yticks(places, labels)
    axes.set_ylim(place - 0.2, -0.9)


def _problem(axes: Axes, place: float, one: Measured) -> None:
    marks = _marks(one)
    shown = [max(LEAST, value) for _, value in marks]
    axes.plot([min(shown), max(shown)], [place, place], color="#cccccc", linewidth=1.0, zorder=1)
    for role, value in marks:
        if value < LEAST:
            axes.plot(LEAST, place, marker="<", color=STYLES[role][1], markersize=6, zorder=4, linestyle="none")
        else:
            axes.plot(value, place, zorder=5 if role == "auto" else 3, linestyle="none", **_style(role))


def _style(role: str) -> dict[str, Any]:
    """A ring for the optimum, which is often what is chosen too; a hollow mark for what reads no row."""
    _, colour, marker = STYLES[role]
    size = {"auto": 5.5, "other": 7.0, "optimal": 9.5, "paper": 6.5}.get(role, 4.8)
    filled = "white" if role in ("constant", "optimal") else colour
    return {"color": colour, "marker": marker, "markersize": size, "markerfacecolor": filled}


def _marks(one: Measured) -> list[tuple[str, float]]:
    """The marks of a line; the chosen mechanism has one as such, and one as the paper's or the optimum where it is that too."""
    found = [("auto", one.auto.predicted)]
    for row in one.rows:
        role = "paper" if row.mechanism == one.paper else row.mechanism
        if role in STYLES or row.mechanism != one.chosen:
            found.append((role if role in STYLES else "other", row.predicted))
    return sorted(found, key=lambda pair: list(STYLES).index(pair[0]), reverse=True)


def _legend(figure: Any) -> None:
    from matplotlib.lines import Line2D

    marks = [Line2D([], [], linestyle="none", label=label, **_style(role)) for role, (label, _, _) in STYLES.items()]
    figure.legend(handles=marks, loc="outside upper center", ncols=3, frameon=False)
