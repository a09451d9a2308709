"""The parts of a page: headings, tables, lists, pictures, and the style. Everything is escaped; equal parts are equal text.

What must never change: no script, no request, nothing that a name could become but text; readable on a telephone, in dark and
on paper, and by somebody who listens to it.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from attrpriv.formatting import printable
from attrpriv.pictures.marks import Picture
from attrpriv.pictures.svg import STYLE, page_svg

_LIGHT = "--text:#1c1c1c;--dim:#595959;--line:#c8c8c8;--page:#ffffff;--tint:#f2f4f7;--warn:#8a2b00;--good:#00603f"
_DARK = "--text:#ececec;--dim:#b4b4b4;--line:#4a4a4a;--page:#161616;--tint:#222529;--warn:#ffab73;--good:#5fd9ae"
_STYLE = (
    f":root{{color-scheme:light dark;{_LIGHT}}}@media (prefers-color-scheme:dark){{:root{{{_DARK}}}}}"
    f"@media print{{:root{{color-scheme:light;{_LIGHT}}}}}"
    "*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--text);"
    "font:16px/1.5 system-ui,sans-serif;overflow-wrap:break-word}"
    "header,main,footer{max-width:46rem;margin:0 auto;padding:0 1rem}h1{font-size:1.6rem;line-height:1.25;margin:1.5rem 0 .3em}"
    "h2{font-size:1.25rem;margin:2.2rem 0 .5rem;border-bottom:1px solid var(--line)}h3{font-size:1rem;margin:1.3rem 0 .3rem}"
    "p,ul{margin:.5rem 0}ul{padding-left:1.2rem}.dim{color:var(--dim)}.warn{color:var(--warn);font-weight:600}"
    ".good{color:var(--good);font-weight:600}table{border-collapse:collapse;width:100%;margin:.6rem 0;font-size:.93rem}"
    "caption{text-align:left;color:var(--dim);padding:.2rem 0}th,td{text-align:left;vertical-align:top;"
    "padding:.3rem .6rem .3rem 0;border-bottom:1px solid var(--line)}td.n,th.n{text-align:right}thead th{color:var(--dim)}"
    "p,li,caption,h1,h2,h3{overflow-wrap:anywhere}td,tbody th{overflow-wrap:break-word}"
    ".checks{list-style:none;padding-left:0}.checks li{padding:.15rem 0 .15rem 1.6rem;text-indent:-1.6rem}"
    '.checks li::before{content:"\\2610";display:inline-block;width:1.6rem;text-indent:0}'
    "figure{margin:1rem 0}pre{background:var(--tint);padding:.7rem;white-space:pre-wrap;font-size:.85rem}"
    ".sign{table-layout:fixed}.sign td{height:2.6rem}.sign th:nth-child(3){width:18%}"
    "footer{color:var(--dim);font-size:.85rem;padding-bottom:2rem}"
    "tbody th{min-width:6em;font-weight:600}@media (max-width:34rem){thead{position:absolute;clip-path:inset(50%);"
    "width:1px;height:1px;display:block;"
    "overflow:hidden}tr{display:block;border-bottom:1px solid var(--line);padding:.35rem 0}tbody th,td,td.n{display:block;"
    "border:0;padding:.05rem 0;text-align:left}td[data-label]::before{content:attr(data-label) ': ';color:var(--dim)}}"
    "@media print{body{font-size:10.5pt}h1,h2,h3,caption{break-after:avoid}figure,tr,li,.box{break-inside:avoid}"
    "thead{display:table-header-group;break-after:avoid}tbody tr:first-child{break-before:avoid}"
    "p{orphans:3;widows:3}h2+*,h3+*{break-before:avoid}@page{margin:16mm 15mm}}"
)


# A table of so few rows stays on one sheet of paper.
_ONE_PIECE = 12


def page(title: str, subtitle: str, parts: Iterable[str], foot: str) -> str:
    """The whole file."""
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            f"<title>{safe(title)}</title>\n<style>{_STYLE}{STYLE}</style>\n</head>\n<body>",
            f'<header><h1>{safe(title)}</h1><p class="dim">{safe(subtitle)}</p></header>\n<main>',
            *(part for part in parts if part),
            f"</main>\n<footer><p>{safe(foot)}</p></footer>\n</body>\n</html>\n",
        ]
    )


def heading(text: str, level: int = 2) -> str:
    return f"<h{level}>{safe(text)}</h{level}>"


def paragraph(text: str, kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f"<p{named}>{safe(text)}</p>" if text else ""


def listed(lines: Iterable[str], kind: str = "") -> str:
    items = "".join(f"<li>{safe(line)}</li>" for line in lines)
    named = f' class="{kind}"' if kind else ""
    return f"<ul{named}>{items}</ul>" if items else ""


def table(
    caption: str, header: Sequence[str], rows: Iterable[Sequence[str]], *, kind: str = "", numbers: Sequence[int] = ()
) -> str:
    """With a caption and heads for whoever listens; `numbers`: columns that stand at the right."""
    head = "".join(f'<th scope="col"{_side(place, numbers)}>{safe(cell)}</th>' for place, cell in enumerate(header))
    body = ["".join(_cell(place, cell, header[place], numbers) for place, cell in enumerate(row)) for row in rows]
    kind = f"{kind} box".strip() if len(body) <= _ONE_PIECE else kind
    named = f' class="{kind}"' if kind else ""
    lines = "".join(f"<tr>{row}</tr>\n" for row in body)
    return f"<table{named}><caption>{safe(caption)}</caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{lines}</tbody></table>"


def _cell(place: int, text: str, head: str, numbers: Sequence[int]) -> str:
    """With its head, which stands before it where there is no room for columns."""
    if place == 0:
        return f'<th scope="row">{safe(text)}</th>'
    kind = ' class="warn"' if text == MISSING else _side(place, numbers)
    label = f' data-label="{safe(head)}"' if head else ""
    return f"<td{kind}{label}>{safe(text)}</td>"


MISSING = "missing"


def _side(place: int, numbers: Sequence[int]) -> str:
    return ' class="n"' if place in numbers else ""


def figure(picture: Picture, name: str) -> str:
    """A picture, whose title and description are read out."""
    return f"<figure>{page_svg(picture, name)}</figure>"


def verbatim(text: str) -> str:
    """A file's own text, line by line."""
    return f"<pre>{html.escape(chr(10).join(map(printable, text.splitlines())), quote=True)}</pre>"


def safe(text: str) -> str:
    return html.escape(printable(text), quote=True)
