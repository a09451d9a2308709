"""The same pictures by matplotlib, for notebooks and PNG files (`attrpriv[plots]`), and `save`, which writes either kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attrpriv.errors import UsageError
from attrpriv.formatting import printable
from attrpriv.pictures.marks import Axis, Bar, Cell, Dot, Line, Mark, Picture, spread_apart
from attrpriv.pictures.svg import file_svg

ENDINGS = (".svg", ".png", ".pdf")
# Distinct in every common form of colour blindness, and in grey (Okabe and Ito); the dashes differ too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#5A5A5A", "#E69F00")
# Names below a picture that are no longer stand abreast.
_SHORT = 6
_DASHES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (4, 4)), (0, (8, 2)))


def save(picture: Picture, path: Path) -> None:
    """Write it: .svg by ourselves, .png and .pdf by matplotlib."""
    require_ending(path)
    failed = False
    try:
        if path.suffix.lower() == ".svg":
            path.write_text(file_svg(picture), encoding="utf-8")
        else:
            draw(picture, _new_axes(picture, shown=False)).figure.savefig(path, dpi=150)
    except OSError:
        failed = True
    if failed:
        raise UsageError(f"plot: must be a place that can be written. Got {printable(str(path))}.")


def require_ending(path: Path) -> None:
    """Before anything is computed: a file that can be written, with what that takes."""
    if path.suffix.lower() not in ENDINGS:
        raise UsageError(f"plot: must end in .svg, .png or .pdf. Got {printable(path.name)}.")
    if not path.parent.is_dir():
        raise UsageError(f"plot: the folder {printable(str(path.parent))} is not there. Make it first.")
    if path.suffix.lower() != ".svg":
        _matplotlib(shown=False)


def draw(picture: Picture, ax: Any = None) -> Any:
    """Draw on these axes, or on new ones; the axes."""
    axes = _new_axes(picture, shown=True) if ax is None else ax
    for mark in picture.drawn:
        _mark(mark, picture, axes)
    _end_labels(picture, axes)
    _scale(axes, "x", picture.x)
    _scale(axes, "y", picture.y)
    if picture.y.names:
        axes.set_ylim(len(picture.y.names) - 0.5, -0.5)
    axes.set_title(_plain(picture.title), loc="left", fontsize="medium", wrap=True)
    return axes


def _scale(axes: Any, side: str, axis: Axis) -> None:
    getattr(axes, f"set_{side}label")(_plain(axis.label))
    if axis.names:
        slanted = side == "x" and max(map(len, axis.names)) > _SHORT
        turned = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if slanted else {}
        getattr(axes, f"set_{side}ticks")(range(len(axis.names)), [_plain(name) for name in axis.names], **turned)
        getattr(axes, f"set_{side}lim")(-0.5, len(axis.names) - 0.5)
        return
    getattr(axes, f"set_{side}scale")(axis.scale)
    getattr(axes, f"set_{side}lim")(axis.low, axis.high)
    values, texts = zip(*axis.ticks(), strict=True) if axis.ticks() else ((), ())
    getattr(axes, f"set_{side}ticks")(values, texts)
    getattr(axes, f"set_{side}ticks")([], minor=True)


def _mark(mark: Mark, picture: Picture, axes: Any) -> None:
    if isinstance(mark, Line):
        _line(mark, axes)
    elif isinstance(mark, Dot):
        _dot(mark, axes)
    elif isinstance(mark, Bar):
        colour = COLOURS[mark.series % 6]
        start, strength = picture.x.low, 1.0 if mark.marked else 0.45
        axes.barh(mark.place, mark.value - start, left=start, height=0.55, color=colour, alpha=strength)
        axes.annotate(_plain(mark.label), (mark.value, mark.place), (4, 0), textcoords="offset points", va="center")
    elif isinstance(mark, Cell):
        from matplotlib.patches import Rectangle

        tint = 0.04 + 0.56 * min(1.0, max(0.0, mark.share))
        corner = (mark.column - 0.48, mark.row - 0.46)
        axes.add_patch(Rectangle(corner, 0.96, 0.92, color=COLOURS[0], alpha=tint, linewidth=0))
        axes.text(mark.column, mark.row, _plain(mark.text), ha="center", va="center")
    elif mark.along == "x":
        axes.axvline(mark.value, color="0.5", linewidth=1, linestyle=":")
        _beside(axes, mark.label, (mark.value, 1), (3, -10), ("data", "axes fraction"), "left")
    else:
        axes.axhline(mark.value, color="0.5", linewidth=1, linestyle=":")
        _beside(axes, mark.label, (1, mark.value), (-4, 4), ("axes fraction", "data"), "right")


def _beside(axes: Any, text: str, at: tuple[float, float], off: tuple[int, int], of: tuple[str, str], side: str) -> None:
    axes.annotate(_plain(text), at, off, xycoords=of, textcoords="offset points", fontsize="small", ha=side)


def _line(mark: Line, axes: Any) -> None:
    colour, dash = COLOURS[mark.series % 6], _DASHES[mark.series % 6]
    x, y = zip(*mark.points, strict=True)
    axes.plot(x, y, color=colour, linestyle=dash, linewidth=2, drawstyle="steps-post" if mark.stepped else "default")
    if mark.filled:
        axes.fill_between(x, y, color=colour, alpha=0.15, linewidth=0, step="post" if mark.stepped else None)
    if mark.label_at is not None:
        axes.annotate(_plain(mark.label), mark.label_at, color=colour, va="center")


def _end_labels(picture: Picture, axes: Any) -> None:
    """Beside the ends of the curves, moved apart where they would cover one another."""
    lines = [mark for mark in picture.drawn if isinstance(mark, Line) and mark.label and mark.label_at is None]
    places = [(picture.x.share(x), picture.y.share(y)) for x, y in (line.points[-1] for line in lines)]
    for line, (x, _), y in zip(lines, places, spread_apart([y for _, y in places], 0.06, 0, 1), strict=True):
        style = {"color": COLOURS[line.series % 6], "va": "center", "xycoords": "axes fraction"}
        axes.annotate(_plain(line.label), (x, y), (5, 0), textcoords="offset points", **style)


def _dot(mark: Dot, axes: Any) -> None:
    colour = COLOURS[mark.series % 6]
    reach = None if mark.low is None or mark.high is None else [[mark.x - mark.low], [mark.high - mark.x]]
    inside = "none" if mark.hollow else colour
    axes.errorbar([mark.x], [mark.y], xerr=reach, fmt="o", color=colour, capsize=3, mfc=inside)
    if mark.label:
        axes.annotate(_plain(mark.label), (mark.x, mark.y), (6, 6), textcoords="offset points")


def _plain(text: str) -> str:
    """Between dollar signs matplotlib sets mathematics; in a name they are part of the name."""
    return printable(text).replace("$", r"\$")


def _new_axes(picture: Picture, *, shown: bool) -> Any:
    """Of a figure that a notebook shows, or of one that nobody keeps."""
    rows = len(picture.y.names)
    size = (7, 1.4 + 0.4 * rows if rows else 4.2)
    return _matplotlib(shown=shown)(figsize=size, layout="constrained").add_subplot()


def _matplotlib(*, shown: bool) -> Any:
    """What makes a figure."""
    made: Any = None
    try:
        if shown:
            from matplotlib import pyplot

            made = pyplot.figure
        else:
            from matplotlib.figure import Figure

            made = Figure
    except ImportError:
        pass
    if made is None:
        raise UsageError("plot: needs the package matplotlib. Install it with pip install 'attrpriv[plots]', or write .svg.")
    return made
