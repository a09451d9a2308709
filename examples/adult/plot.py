"""Draw what `attack.py` found: `python -m examples.adult.plot [RESULTS] [--out FILE]`. Needs matplotlib, the extra `plots`.

Both axes run from 0 to 1. The left panel has exact 95% binomial intervals; on the right the spread from table to table is
smaller than a line's width and is not drawn.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from examples.adult.attack import RESULTS, Outcome

# Two colours that remain distinct in every common form of colour blindness, and in grey (Okabe and Ito).
COLOURS = {"all rows": "#0072B2", "view": "#E69F00"}
HATCHES = {"all rows": "", "view": "//"}
WIDTH = 0.36
BARE = dict.fromkeys(("Creator", "Date", "Format", "Type"))  # a picture that is the same on every machine, and names no host


def draw(results: dict[str, Any], out: Path) -> None:
    """Write the figure; the ending of the file's name chooses the format."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    outcomes = [Outcome(**outcome) for outcome in results["outcomes"]]
    low, high = results["shares"]
    with plt.rc_context({"svg.hashsalt": "attrpriv", "font.size": 10, "axes.spines.top": False, "axes.spines.right": False}):
        figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 4.0), sharey=True, layout="constrained")
        _bars(left, outcomes, [outcome.attack for outcome in outcomes], [outcome.attack_interval() for outcome in outcomes])
        _bars(right, outcomes, [outcome.accuracy for outcome in outcomes], None)
        left.set_title(f"Attack: were {low:.0%} or {high:.0%} of the rows women?", fontsize=10.5)
        left.set_ylabel("share of right answers")
        _line(left, 0.5, "a coin:\n0.500")
        right.set_title("Model: is this income above $50,000?", fontsize=10.5)
        _line(right, results["majority"], f"always “no”:\n{results['majority']:.3f}")
        left.set_ylim(0, 1.09)
        left.set_yticks([0, 0.25, 0.5, 0.75, 1])
        handles, labels = left.get_legend_handles_labels()
        named = [f"trained on {label}" if label == "all rows" else f"trained on the {label}" for label in labels]
        figure.legend(handles, named, loc="outside lower center", ncols=2, frameon=False)
        figure.savefig(out, metadata=BARE if out.suffix == ".svg" else None, dpi=150)
        plt.close(figure)


def _bars(
    axes: Any, outcomes: Sequence[Outcome], heights: Sequence[float], intervals: Sequence[tuple[float, float]] | None
) -> None:
    models = list(dict.fromkeys(outcome.model for outcome in outcomes))
    for k, kind in enumerate(COLOURS):
        chosen = [j for j, outcome in enumerate(outcomes) if outcome.trained_on == kind]
        places = [models.index(outcomes[j].model) + (k - 0.5) * (WIDTH + 0.03) for j in chosen]
        tall = [heights[j] for j in chosen]
        axes.bar(places, tall, WIDTH, color=COLOURS[kind], hatch=HATCHES[kind], edgecolor="white", linewidth=0, label=kind)
        tops = tall
        if intervals is not None:
            ends = [intervals[j] for j in chosen]
            reach = [
                [y - low for y, (low, _) in zip(tall, ends, strict=True)],
                [up - y for y, (_, up) in zip(tall, ends, strict=True)],
            ]
            axes.errorbar(places, tall, reach, fmt="none", ecolor="black", elinewidth=1.2, capsize=4)
            tops = [up for _, up in ends]
        for x, y, top in zip(places, tall, tops, strict=True):
            axes.annotate(f"{y:.3f}", (x, top), (0, 3), textcoords="offset points", ha="center", va="bottom")
    axes.set_xticks(range(len(models)), models)
    axes.tick_params(axis="x", length=0)


def _line(axes: Any, height: float, text: str) -> None:
    """A dashed yardstick across the bars, named to their right."""
    axes.plot([-0.5, 1.46], [height, height], color="black", linestyle=(0, (4, 3)), linewidth=1)
    axes.text(1.5, height, text, ha="left", va="center", fontsize=9)
    axes.set_xlim(-0.5, 1.95)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Draw attack and model accuracy before and after the view.")
    parser.add_argument(
        "results", type=Path, nargs="?", default=RESULTS, help="what attack.py wrote; default results.json here"
    )
    parser.add_argument("--out", type=Path, default=Path("adult-attack.svg"), help="default adult-attack.svg")
    options = parser.parse_args(arguments)
    draw(json.loads(options.results.read_text(encoding="utf-8")), options.out)
    print(f"wrote {options.out.name}")


if __name__ == "__main__":
    main()
