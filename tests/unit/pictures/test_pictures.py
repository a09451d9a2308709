"""Pictures: both writers draw the same marks; every file is valid, says what it shows, obeys nothing and loads nothing."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from attrpriv.errors import UsageError
from attrpriv.pictures import figures
from attrpriv.pictures.figures import draw
from attrpriv.pictures.marks import Axis, Bar, Cell, Dot, Line, Picture, Rule, spread_apart
from attrpriv.pictures.svg import STYLE, WIDTH, file_svg, page_svg

SVG = "{http://www.w3.org/2000/svg}"
NASTY = "<script>alert(1)</script> & \x1b[2J \"quoted\" 'x' $y$"
CURVES = Picture(
    "Error against epsilon",
    "It falls.",
    Axis("epsilon", 0.1, 10, "log"),
    Axis("error", 0, 5),
    (
        Line(((0.1, 4.0), (1.0, 2.0), (10.0, 1.0)), "first"),
        Line(((0.1, 4.5), (1.0, 2.5), (10.0, 1.0)), "second", series=1),
        Line(((0.1, 3.0), (10.0, 3.0)), "inside", series=2, label_at=(1.0, 3.2), filled=True, stepped=True),
        Dot(1.0, 2.0, "chosen", low=0.5, high=2.0, hollow=True),
        Rule(1.0, "asked", "x"),
        Rule(0.5, "coin"),
    ),
)
BARS = Picture("Bars", "Two.", Axis("error", 0, 2), Axis("", names=("a", "b")), (Bar(0, 1, "±1", marked=True), Bar(1, 2, "±2")))
HEAT = Picture(
    "Heat", "One.", Axis("", names=("x",)), Axis("", names=("y", "z")), (Cell(0, 0, 0.2, "20%"), Cell(0, 1, 1, "100%"))
)
ALL = [CURVES, BARS, HEAT]


def words(picture: Picture) -> list[str]:
    return [text for one in ElementTree.fromstring(file_svg(picture)).iter(f"{SVG}text") if (text := one.text or "")]


@pytest.mark.parametrize("picture", ALL, ids=lambda one: one.title)
def test_a_file_is_valid_and_says_what_it_shows(picture: Picture) -> None:
    drawn = ElementTree.fromstring(file_svg(picture))
    assert drawn.findtext(f"{SVG}title") == picture.title
    assert drawn.findtext(f"{SVG}desc") == picture.description
    assert drawn.get("role") == "img"
    assert set(re.findall(r"https?://[^\s\"'<)]+", file_svg(picture))) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"href|@import|@font-face|<script|url\(", file_svg(picture))


@pytest.mark.parametrize("picture", ALL, ids=lambda one: one.title)
def test_a_part_of_a_page_leaves_the_style_to_the_page(picture: Picture) -> None:
    text = page_svg(picture, "one")
    ElementTree.fromstring(text)
    assert "<style" not in text
    assert 'aria-labelledby="one-t one-d"' in text
    assert 'id="one-t"' in text


def test_colours_follow_light_dark_and_print() -> None:
    for media in ("prefers-color-scheme:dark", "print"):
        assert f"@media {media}" in STYLE or f"@media ({media})" in STYLE
    for name in ("--ink", "--paper", *(f"--s{k}" for k in range(6))):
        assert len(re.findall(f"{name}:#", STYLE)) == 3, name


def test_labels_have_enough_contrast() -> None:
    """Every colour of a label against its paper: at least 4.5 to 1, of a grid none."""
    for block in re.findall(r"\{(--ink[^}]*)\}", STYLE):
        colours = dict(re.findall(r"(--\w+):(#\w{6})", block))
        for name, colour in colours.items():
            if name not in ("--paper", "--rule"):
                assert contrast(colour, colours["--paper"]) >= 4.5, name


def contrast(first: str, second: str) -> float:
    """As the Web Content Accessibility Guidelines define it."""
    lights = []
    for colour in (first, second):
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        lights.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(lights) + 0.05) / (min(lights) + 0.05)


def test_the_contrast_that_is_asked_for_can_fail() -> None:
    assert contrast("#888888", "#ffffff") < 4.5
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


def test_series_differ_without_colour() -> None:
    dashes = re.findall(r'class="ap-line ap-s\d"(?: stroke-dasharray="([^"]+)")? d="M[^"]*[LHV]', file_svg(CURVES))
    assert len(set(dashes[:3])) == 3


def test_labels_and_numbers_are_there() -> None:
    found = words(CURVES)
    assert {"first", "second", "inside", "chosen", "asked", "coin", "epsilon", "error"} <= set(found)
    assert {"0.1", "1", "10"} <= set(found)
    assert {"a", "b", "±1", "±2"} <= set(words(BARS))
    assert {"20%", "100%", "x", "y", "z"} <= set(words(HEAT))


def test_labels_at_one_place_are_moved_apart() -> None:
    drawn = ElementTree.fromstring(file_svg(CURVES))
    places = {one.text: float(one.get("y", "nan")) for one in drawn.iter(f"{SVG}text")}
    assert abs(places["first"] - places["second"]) >= 13


def _right_end(one: ElementTree.Element) -> float:
    """Of a word that is not turned, by a width of a letter that is not too large."""
    wide = 5.8 * len(one.text or "")
    return float(one.get("x", "nan")) + {"start": wide, "middle": wide / 2, "end": 0.0}[one.get("text-anchor", "start")]


@pytest.mark.parametrize("level", [0.3, 0.45, 0.49, 0.5, 0.51, 0.55, 0.7])
def test_the_label_of_a_dot_does_not_cover_that_of_a_level(level: float) -> None:
    marks = (Rule(level, "the level"), Dot(0.5, 0.5, "the dot"))
    drawn = ElementTree.fromstring(file_svg(Picture("t", "d", Axis("x"), Axis("y"), marks)))
    high = {one.text: float(one.get("y", "nan")) for one in drawn.iter(f"{SVG}text")}
    assert abs(high["the level"] - high["the dot"]) >= 12


@pytest.mark.parametrize("picture", ALL, ids=lambda one: one.title)
def test_no_word_leaves_the_picture(picture: Picture) -> None:
    """Also where the last number below it is long."""
    long = picture if picture.x.names else replace(picture, x=replace(picture.x, low=1_000_000.0, high=2_000_000.0))
    for one in ElementTree.fromstring(file_svg(long)).iter(f"{SVG}text"):
        assert _right_end(one) <= WIDTH, one.text


def test_long_names_below_a_picture_are_turned_and_short_ones_are_not() -> None:
    def turned(*names: str) -> list[str | None]:
        drawn = ElementTree.fromstring(file_svg(replace(HEAT, x=Axis("seen", names=names))))
        return [one.get("transform") for one in drawn.iter(f"{SVG}text") if one.text in names]

    assert turned("v", "w") == [None, None]
    long = turned("share(education = 'x')", "share(education = 'y')", "avg(hours)")
    assert all(one is not None and one.startswith("rotate(") for one in long)
    cut = [one for one in words(replace(HEAT, x=Axis("seen", names=("a" * 60 + "b", "a" * 60 + "c")))) if "a" in one]
    assert [len(one) for one in cut if "\u2026" in one] == [24, 24]
    assert len(set(cut)) == len(cut)  # they can be told apart


def test_matplotlib_moves_labels_apart_and_turns_names() -> None:
    pytest.importorskip("matplotlib")
    same = replace(CURVES, marks=(Line(((0.1, 0.5), (10, 0.5)), "first"), Line(((0.1, 0.6), (10, 0.5)), "second", 1)))
    drawn = {text.get_text(): text.xy[1] for text in draw(same).texts}
    assert abs(drawn["first"] - drawn["second"]) >= 0.059
    names = draw(replace(HEAT, x=Axis("seen", names=("share(sex = 'F')", "b")))).get_xticklabels()
    assert names[0].get_rotation() == 40


def test_moving_apart_keeps_the_order_and_the_ends() -> None:
    placed = spread_apart([5, 5, 5, 90], 10, 0, 100)
    assert placed == [5, 15, 25, 90]
    assert spread_apart([99, 99], 10, 0, 100) == [90, 100]


def test_what_is_not_finite_is_not_drawn() -> None:
    broken = replace(
        CURVES, marks=(Line(((0.1, float("nan")), (1, float("inf"))), "gone"), Dot(float("nan"), 1, "gone"), *CURVES.marks)
    )
    assert "gone" not in words(broken)
    assert not re.search(r"nan|inf\b", file_svg(broken))


@pytest.mark.parametrize("picture", ALL, ids=lambda one: one.title)
def test_names_are_names(picture: Picture) -> None:
    marks = tuple(replace(mark, **{"text" if isinstance(mark, Cell) else "label": NASTY}) for mark in picture.marks)  # type: ignore[arg-type]
    text = file_svg(replace(picture, title=NASTY, description=NASTY, marks=marks))
    ElementTree.fromstring(text)
    assert "<script" not in text
    assert "\x1b" not in text


def test_equal_pictures_are_equal_files() -> None:
    assert file_svg(CURVES) == file_svg(replace(CURVES))


@pytest.mark.parametrize(
    ("low", "high", "scale", "texts"),
    [
        (0, 1, "linear", ["0", "0.25", "0.5", "0.75", "1"]),
        (0, 7.3, "linear", ["0", "2", "4", "6"]),
        (20_000, 200_000, "linear", ["50,000", "100,000", "150,000", "200,000"]),
        (0.01, 100, "log", ["0.01", "0.1", "1", "10", "100"]),
    ],
)
def test_ticks_are_round(low: float, high: float, scale: str, texts: list[str]) -> None:
    assert [text for _, text in Axis("x", low, high, scale).ticks()] == texts  # type: ignore[arg-type]


@pytest.mark.parametrize("ends", [(1, 1), (2, 1), (float("nan"), 1), (0, float("inf"))])
def test_an_axis_must_lead_somewhere(ends: tuple[float, float]) -> None:
    with pytest.raises(UsageError, match="axis"):
        Axis("x", *ends)
    with pytest.raises(UsageError, match="above 0"):
        Axis("x", 0, 1, "log")


@pytest.mark.parametrize(("title", "description"), [(" ", "Two."), ("Bars", "")])
def test_a_picture_without_words_is_refused(title: str, description: str) -> None:
    with pytest.raises(UsageError, match="title and a description"):
        replace(BARS, title=title, description=description)


@pytest.mark.parametrize("picture", ALL, ids=lambda one: one.title)
@pytest.mark.parametrize("ending", [".svg", ".png", ".pdf"])
def test_files_of_every_kind(picture: Picture, ending: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="attrpriv[plots] is not installed")
    place = tmp_path / f"picture{ending}"
    figures.save(picture, place)
    start = {".svg": b"<?xml", ".png": b"\x89PNG", ".pdf": b"%PDF"}[ending]
    assert place.read_bytes().startswith(start)


def test_matplotlib_draws_the_same_marks() -> None:
    matplotlib = pytest.importorskip("matplotlib.figure", reason="attrpriv[plots] is not installed")
    figure = matplotlib.Figure()
    axes = figures.draw(CURVES, figure.add_subplot())
    written = {text.get_text() for text in axes.texts}
    assert {"first", "second", "inside", "chosen", "asked", "coin"} <= written
    assert axes.get_xlim() == (0.1, 10)
    assert len(axes.lines) >= 3


@pytest.mark.parametrize("name", ["picture.gif", "picture", "there-is-no-such/picture.svg"])
def test_a_file_that_cannot_be_written_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="plot: "):
        figures.save(BARS, tmp_path / name)
