"""A picture as SVG, written by us: no script, nothing loaded, and colours that follow light, dark and print.

`page_svg` is for a page that has `STYLE` once, `notebook_svg` for a cell; `file_svg` is a file by itself. Text is escaped, and
control characters are shown, so that a column called `<script>` is a name. Every number is rounded, so equal pictures are equal
files.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from attrpriv.formatting import printable
from attrpriv.pictures.marks import Axis, Bar, Cell, Dot, Line, Mark, Picture, Rule, spread_apart

WIDTH = 420
# About how wide letters are at 12 units, in the widest of the common fonts without serifs.
_LETTER, _BROAD, _THIN = 7.6, dict.fromkeys("mwMW%@=<>+~", 11.8), dict.fromkeys("fijlrt.,:;'()[]| ", 4.9)
_LINE = 14.0
_NAME = 24
# Degrees by which long names below a picture are turned, and how deep they reach then.
_TURN, _RISE = 40, 0.62
_DASHES = ("", "7 4", "2 3", "9 3 2 3", "4 4", "12 3")

# The series keep 4.5:1 against the paper, so that labels may have their colour, and differ in every common form of colour
# blindness (after Okabe and Ito).
_LIGHT = (
    "--ink:#1c1c1c;--faint:#636363;--rule:#cfcfcf;--paper:#ffffff;"
    "--s0:#0060a0;--s1:#b84700;--s2:#00734f;--s3:#a0427c;--s4:#5a5a5a;--s5:#7a5c00"
)
_DARK = (
    "--ink:#ececec;--faint:#a8a8a8;--rule:#4a4a4a;--paper:#161616;"
    "--s0:#62b6f5;--s1:#ff9a57;--s2:#43cfa3;--s3:#e59ac8;--s4:#b8b8b8;--s5:#e2bf4d"
)
STYLE = (
    f".ap-picture{{{_LIGHT};width:100%;height:auto;max-width:35rem;font:12px system-ui,sans-serif}}"
    f"@media (prefers-color-scheme:dark){{.ap-picture{{{_DARK}}}}}"
    f"@media print{{.ap-picture{{{_LIGHT}}}}}"
    ".ap-picture text{fill:var(--ink)}.ap-picture .ap-tick{fill:var(--faint)}"
    ".ap-picture .ap-halo{paint-order:stroke;stroke:var(--paper);stroke-width:3px;stroke-linejoin:round}"
    ".ap-picture .ap-grid{stroke:var(--rule);stroke-width:1}"
    ".ap-picture .ap-rule{stroke:var(--faint);stroke-width:1;stroke-dasharray:1 3;stroke-linecap:round}"
    ".ap-picture .ap-lead{stroke:var(--faint);stroke-width:.7;fill:none}"
    ".ap-picture .ap-line{fill:none;stroke-width:2;stroke-linejoin:round}.ap-picture .ap-hollow{fill:var(--paper)}"
    + "".join(f".ap-picture .ap-s{k}{{stroke:var(--s{k})}}.ap-picture .ap-f{k}{{fill:var(--s{k})}}" for k in range(6))
)


def file_svg(picture: Picture) -> str:
    """A file by itself, with its style and a background."""
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{_svg(picture, alone=True)}\n'


def page_svg(picture: Picture, name: str = "picture") -> str:
    """For a page that has `STYLE`; `name` must be its own on that page."""
    return _svg(picture, alone=False, name=name)


def notebook_svg(picture: Picture, name: str = "picture") -> str:
    """For a cell of a notebook, which has no style of ours: with its own, and with paper behind it."""
    return _svg(picture, alone=True, name=name)


@dataclass(frozen=True)
class _Frame:
    """Where the plot is within the picture."""

    left: float
    top: float
    right: float
    bottom: float

    def x(self, axis: Axis, value: float) -> float:
        return self.left + min(1.0, max(0.0, axis.share(value))) * (self.right - self.left)

    def y(self, axis: Axis, value: float) -> float:
        share = min(1.0, max(0.0, axis.share(value)))
        up = self.bottom - self.top
        return self.top + share * up if axis.names else self.bottom - share * up


def _svg(picture: Picture, *, alone: bool, name: str = "picture") -> str:
    height, frame = _layout(picture)
    box = f'viewBox="0 0 {WIDTH} {_n(height)}" role="img" aria-labelledby="{name}-t {name}-d"'
    own = f' width="{WIDTH * 2}" height="{_n(height * 2)}" xmlns="http://www.w3.org/2000/svg"' if alone else ""
    parts = [
        f'<svg class="ap-picture" {box}{own}>',
        f'<title id="{name}-t">{_safe(picture.title)}</title><desc id="{name}-d">{_safe(picture.description)}</desc>',
        f'<style>{STYLE}</style><rect width="100%" height="100%" style="fill:var(--paper)"/>' if alone else "",
        *_heading(picture),
        *_axes(picture, frame),
        *(part for mark in picture.drawn for part in _mark(mark, picture, frame)),
        *_end_labels(picture, frame),
        "</svg>",
    ]
    return "\n".join(part for part in parts if part)


def _layout(picture: Picture) -> tuple[float, _Frame]:
    """Room for names at the left, for labels of curves at the right, and for the title above."""
    names = max((_wide(line) for _, text in picture.y.ticks() for line in _wrapped(text, 22)), default=0.0)
    left = 10 + names + (0 if picture.y.names else 16)
    ends = [line for mark in _ended(picture) for line in _wrapped(mark.label, 15)]
    beside = [_wide(mark.label) for mark in picture.drawn if isinstance(mark, Bar)]
    last = 0.0 if picture.x.names else max((_wide(text) for _, text in picture.x.ticks()[-1:]), default=0.0)
    right = max(18.0, last / 2 + 4, 10 + max([_wide(line) for line in ends] + beside, default=0.0))
    top = 12 + _LINE * len(_title(picture)) + (0 if picture.y.names else 16)
    rows = len(picture.y.names)
    below = 40 + _slant(picture, WIDTH - right - left)
    high = picture.height or (top + rows * (30 if _cells(picture) else 27) + below + 8 if rows else 270)
    return float(high), _Frame(left, top, WIDTH - right, high - below)


def _slant(picture: Picture, width: float) -> float:
    """How much deeper the names below a picture reach where they are slanted, because they are too long to stand abreast."""
    longest = max(map(_wide, map(_short, picture.x.names)), default=0.0)
    return longest * _RISE if longest > width / max(1, len(picture.x.names)) - 4 else 0.0


def _slanted(x: float, y: float, text: str) -> str:
    turned = _text(x, y, text, "end", "ap-tick")
    return turned.replace("<text", f'<text transform="rotate({-_TURN} {_n(x)} {_n(y)})"', 1)


def _wide(text: str) -> float:
    return sum(_BROAD.get(letter) or _THIN.get(letter) or _LETTER for letter in text)


def _short(text: str) -> str:
    """A name that leaves room for the others, cut in its middle: names of one column's values differ at their ends."""
    head = _NAME // 2 - 1
    return text if len(text) <= _NAME else f"{text[:head]}\u2026{text[head + 1 - _NAME :]}"


def _title(picture: Picture) -> list[str]:
    return _wrapped(picture.title, 52)


def _heading(picture: Picture) -> Iterator[str]:
    for place, line in enumerate(_title(picture)):
        yield f'<text x="4" y="{_n(14 + place * _LINE)}" font-weight="600">{_safe(line)}</text>'


def _axes(picture: Picture, frame: _Frame) -> Iterator[str]:
    grid, slant = not _cells(picture), _slant(picture, frame.right - frame.left)
    for value, text in picture.x.ticks():
        x = frame.x(picture.x, value)
        if grid:
            yield f'<path class="ap-grid" d="M{_n(x)} {_n(frame.top)}V{_n(frame.bottom)}"/>'
        name = _short(text)
        yield _slanted(x + 4, frame.bottom + 11, name) if slant else _text(x, frame.bottom + 15, name, "middle", "ap-tick")
    for value, text in picture.y.ticks():
        y = frame.y(picture.y, value)
        if grid and not picture.y.names:
            yield f'<path class="ap-grid" d="M{_n(frame.left)} {_n(y)}H{_n(frame.right)}"/>'
        lines = _wrapped(text, 22)
        for place, line in enumerate(lines):
            down = y + 4 + (place - (len(lines) - 1) / 2) * 12
            yield _text(frame.left - 6, down, line, "end", "" if picture.y.names else "ap-tick")
    yield _text((frame.left + frame.right) / 2, frame.bottom + 32 + slant, picture.x.label, "middle")
    if picture.y.label and not picture.y.names:
        yield _text(4, frame.top - 9, picture.y.label, "start")


def _mark(mark: Mark, picture: Picture, frame: _Frame) -> Iterator[str]:
    if isinstance(mark, Line):
        yield from _line(mark, picture, frame)
    elif isinstance(mark, Dot):
        yield from _dot(mark, picture, frame)
    elif isinstance(mark, Bar):
        yield from _bar(mark, picture, frame)
    elif isinstance(mark, Cell):
        yield from _cell(mark, picture, frame)
    else:
        yield from _rule(mark, picture, frame)


def _line(mark: Line, picture: Picture, frame: _Frame) -> Iterator[str]:
    places = [(frame.x(picture.x, x), frame.y(picture.y, y)) for x, y in mark.points]
    path = f"M{_n(places[0][0])} {_n(places[0][1])}"
    for x, y in places[1:]:
        path += f"H{_n(x)}V{_n(y)}" if mark.stepped else f"L{_n(x)} {_n(y)}"
    if mark.filled:
        closed = f"{path}L{_n(places[-1][0])} {_n(frame.bottom)}L{_n(places[0][0])} {_n(frame.bottom)}Z"
        yield f'<path class="ap-f{mark.series % 6}" fill-opacity=".15" d="{closed}"/>'
    dash = _DASHES[mark.series % 6]
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    yield f'<path class="ap-line ap-s{mark.series % 6}"{dashed} d="{path}"/>'
    if mark.label_at is not None and mark.label:
        x, y = frame.x(picture.x, mark.label_at[0]), frame.y(picture.y, mark.label_at[1])
        yield from _lines_at(x, y, mark.label, 34, f"ap-halo ap-f{mark.series % 6}")


def _dot(mark: Dot, picture: Picture, frame: _Frame) -> Iterator[str]:
    x, y, series = frame.x(picture.x, mark.x), frame.y(picture.y, mark.y), mark.series % 6
    if mark.low is not None and mark.high is not None:
        ends = [frame.x(picture.x, end) for end in (mark.low, mark.high)]
        caps = "".join(f"M{_n(end)} {_n(y - 4)}v8" for end in ends)
        yield f'<path class="ap-line ap-s{series}" d="M{_n(ends[0])} {_n(y)}H{_n(ends[1])}{caps}"/>'
    inside = "ap-hollow" if mark.hollow else f"ap-f{series}"
    yield f'<circle class="ap-s{series} {inside}" stroke-width="2" cx="{_n(x)}" cy="{_n(y)}" r="4"/>'
    if mark.label:
        late = x > frame.left + 0.7 * (frame.right - frame.left)
        yield _text(x + (-8 if late else 8), y + _beside(y, picture, frame), mark.label, "end" if late else "start", "ap-halo")


def _beside(y: float, picture: Picture, frame: _Frame) -> float:
    """How far from a dot its label stands: away from the words of a level that is about as high."""
    rules = [one for one in picture.drawn if isinstance(one, Rule) and one.along == "y" and one.label]
    near = next((off for one in rules if -16 < (off := frame.y(picture.y, one.value) - y) < 10), None)
    return -7.0 if near is None else 17.0 if near <= 3 else -16.0


def _bar(mark: Bar, picture: Picture, frame: _Frame) -> Iterator[str]:
    y, x = frame.y(picture.y, mark.place), frame.x(picture.x, mark.value)
    size = f'x="{_n(frame.left)}" y="{_n(y - 7)}" width="{_n(max(1.5, x - frame.left))}" height="14"'
    strength = "1" if mark.marked else ".45"
    yield f'<rect class="ap-f{mark.series % 6}" fill-opacity="{strength}" {size}/>'
    yield _text(max(x, frame.left + 1.5) + 5, y + 4, mark.label, "start")


def _cell(mark: Cell, picture: Picture, frame: _Frame) -> Iterator[str]:
    wide = (frame.right - frame.left) / len(picture.x.names)
    high = (frame.bottom - frame.top) / len(picture.y.names)
    x, y = frame.left + wide * mark.column, frame.top + high * mark.row
    tint = _n(0.04 + 0.56 * min(1.0, max(0.0, mark.share)), 3)  # so faint that ink stays readable on it
    size = f'x="{_n(x + 1)}" y="{_n(y + 1)}" width="{_n(wide - 2)}" height="{_n(high - 2)}"'
    yield f'<rect class="ap-f0" fill-opacity="{tint}" {size}/>'
    yield _text(x + wide / 2, y + high / 2 + 4, mark.text, "middle")


def _rule(mark: Rule, picture: Picture, frame: _Frame) -> Iterator[str]:
    if mark.along == "x":
        x = frame.x(picture.x, mark.value)
        yield f'<path class="ap-rule" d="M{_n(x)} {_n(frame.top)}V{_n(frame.bottom)}"/>'
        late = x > (frame.left + frame.right) / 2
        yield _text(x + (-4 if late else 4), frame.top + 11, mark.label, "end" if late else "start", "ap-tick ap-halo")
    else:
        y = frame.y(picture.y, mark.value)
        yield f'<path class="ap-rule" d="M{_n(frame.left)} {_n(y)}H{_n(frame.right)}"/>'
        yield _text(frame.right - 4, y - 4, mark.label, "end", "ap-tick ap-halo")


def _end_labels(picture: Picture, frame: _Frame) -> Iterator[str]:
    """Beside the ends of the curves, moved apart where they would cover one another, with a lead to each."""
    lines = _ended(picture)
    tallest = max((len(_wrapped(line.label, 15)) for line in lines), default=1)
    wanted = [frame.y(picture.y, line.points[-1][1]) for line in lines]
    placed = spread_apart(wanted, _LINE * tallest, frame.top, frame.bottom)
    for line, at, y in zip(lines, wanted, placed, strict=True):
        x = frame.x(picture.x, line.points[-1][0])
        yield f'<path class="ap-lead" d="M{_n(x)} {_n(at)}L{_n(frame.right + 4)} {_n(y)}"/>'
        yield from _lines_at(frame.right + 6, y, line.label, 15, f"ap-f{line.series % 6}")


def _ended(picture: Picture) -> list[Line]:
    return [mark for mark in picture.drawn if isinstance(mark, Line) and mark.label and mark.label_at is None]


def _cells(picture: Picture) -> bool:
    return any(isinstance(mark, Cell) for mark in picture.marks)


def _lines_at(x: float, y: float, text: str, width: int, style: str) -> Iterator[str]:
    lines = _wrapped(text, width)
    for place, line in enumerate(lines):
        yield _text(x, y + 4 + (place - (len(lines) - 1) / 2) * 13, line, "start", style)


def _text(x: float, y: float, text: str, anchor: str, style: str = "") -> str:
    named = f' class="{style}"' if style else ""
    return f'<text{named} x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}">{_safe(text)}</text>' if text else ""


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(printable(text), width)[:3] or [""]


def _safe(text: str) -> str:
    return html.escape(printable(text), quote=True)


def _n(value: float, digits: int = 1) -> str:
    """A coordinate, short and always written the same way."""
    return f"{round(value, digits) + 0.0:.{digits}f}".rstrip("0").rstrip(".")
