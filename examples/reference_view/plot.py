"""Draw what `attack.py` found: `python -m examples.reference_view.plot [--out FILE]`. Needs matplotlib, the extra `plots`.

One panel for each secret, one line for each kind of model: a filled dot where it was trained on all rows, a hollow one on the
view, both with exact 95% intervals. The dashed line is a coin.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from examples.adult.plot import BARE
from examples.reference_view.attack import RESULTS, Outcome

# Two colours that remain distinct in every common form of colour blindness, and in grey (Okabe and Ito).
COLOURS = {"all rows": "#0072B2", "view": "#D55E00"}
APART = 0.13


def draw(results: dict[str, Any], out: Path) -> None:
    """Write the figure; the ending of the file's name chooses the format."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    outcomes = [Outcome(**outcome) for outcome in results["outcomes"]]
    titles = list(dict.fromkeys(outcome.secret for outcome in outcomes))
    models = list(dict.fromkeys(outcome.model for outcome in outcomes))
    with plt.rc_context({"svg.hashsalt": "attrpriv", "font.size": 10, "axes.spines.top": False, "axes.spines.right": False}):
        figure, panels = plt.subplots(1, len(titles), figsize=(9.6, 3.0), sharey=True, layout="constrained", squeeze=False)
        for axes, title in zip(panels[0], titles, strict=True):
            axes.axvline(0.5, color="black", linestyle=(0, (4, 3)), linewidth=1)
            for kind, colour in COLOURS.items():
                _dots(axes, [one for one in outcomes if (one.secret, one.trained_on) == (title, kind)], models, kind, colour)
            axes.set_title(title, fontsize=10.5)
            axes.set_xlim(0.3, 1.03)
            axes.set_xticks([0.5, 0.75, 1], ["50%\na coin", "75%", "100%"])
            axes.set_ylim(len(models) - 0.4, -0.6)
            axes.set_yticks(range(len(models)), [name.replace(" + ", " +\n") for name in models])
            axes.tick_params(axis="y", length=0)
        figure.supxlabel("targets that the adversary tells right", fontsize=10)
        handles, labels = panels[0][0].get_legend_handles_labels()
        named = ["trained on " + {"all rows": "all rows", "view": "the view"}[label] for label in labels]
        figure.legend(handles, named, loc="outside upper center", ncols=2, frameon=False)
        figure.savefig(out, metadata=BARE if out.suffix == ".svg" else None, dpi=150)
        plt.close(figure)


def _dots(axes: Any, outcomes: Sequence[Outcome], models: Sequence[str], kind: str, colour: str) -> None:
    shift = -APART if kind == "all rows" else APART
    places = [models.index(one.model) + shift for one in outcomes]
    shares = [one.attack for one in outcomes]
    ends = [one.attack_interval() for one in outcomes]
    reach = [
        [share - low for share, (low, _) in zip(shares, ends, strict=True)],
        [high - share for share, (_, high) in zip(shares, ends, strict=True)],
    ]
    filled = colour if kind == "all rows" else "white"
    axes.errorbar(shares, places, xerr=reach, fmt="o", color=colour, markerfacecolor=filled, capsize=3, label=kind)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Draw the attack on models of all rows and of views.")
    parser.add_argument(
        "results", type=Path, nargs="?", default=RESULTS, help="what attack.py wrote; default results.json here"
    )
    parser.add_argument("--out", type=Path, default=Path("property-inference.svg"), help="default property-inference.svg")
    options = parser.parse_args(arguments)
    draw(json.loads(options.results.read_text(encoding="utf-8")), options.out)
    print(f"wrote {options.out.name}")


if __name__ == "__main__":
    main()
