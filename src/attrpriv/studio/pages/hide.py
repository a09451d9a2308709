"""What to hide: means, shares and counts with a range and a distance, or everything about columns; and what that means."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from attrpriv.cli.proposal import MEASURES, is_sensitive
from attrpriv.errors import AttrprivError, UsageError
from attrpriv.pictures.marks import Axis, Line, Picture, Rule
from attrpriv.policy.edit import append, remove, set_value
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import quoted
from attrpriv.studio.asked import Asked, secrets, whole_columns
from attrpriv.studio.draft import TODO, Place
from attrpriv.studio.html import Html, checks, choice, field, figure, h, heading, listed, paragraph, together
from attrpriv.studio.layout import further, state_of
from attrpriv.studio.numbers import HIGHER, LOWER, amount_in, count_in, in_order, share_in
from attrpriv.studio.sources import without

TITLE = "What to hide"
_NO_RANGE = "between: must be two numbers, between which it lies for sure. Got none."
Read: TypeAlias = Callable[[str, str], int | float]
# What to put for an end and for a distance.
_HINTS: Mapping[Read, tuple[str, str]] = {
    amount_in: ("a number, such as 20000", "numbers at most this far apart look alike; empty: all of the range"),
    share_in: (
        "a share with its percent sign, such as 25%",
        "shares at most this far apart look alike; empty: all of the range",
    ),
    count_in: ("a number of rows, such as 250", "numbers at most this far apart look alike; empty: all of the range"),
}


def show(asked: Asked) -> Html:
    columns, stated = asked.columns(), asked.draft.stated
    return together(
        paragraph(
            "A property of the whole table: an average, how common a value is, or everything about some columns. Not single "
            "persons: they are what differential privacy is for."
        ),
        state_of(asked),
        _hidden(asked, stated),
        heading("Hide the average of a column"),
        _mean(asked, columns),
        heading("Hide how common a value is"),
        _share(asked, columns),
        heading("Hide everything about columns"),
        _columns(asked, columns),
        further(asked, "know"),
    )


# ------------------------------------------------------------------------------------------------------ what is hidden now


def _hidden(asked: Asked, stated: Mapping[str, Any]) -> Html | None:
    protected = stated.get("protect")
    listed_secrets = protected if isinstance(protected, list) else []
    parts = []
    for place, one in enumerate(listed_secrets):
        name = str(one.get("secret", one.get("parameter", ""))) if isinstance(one, dict) else ""
        if not name or TODO in name:
            continue
        parts.append(heading(name, 3))
        parts += [*_drawn(asked, place), _range(asked, place, one)]
        parts.append(asked.send(f"Do not hide {name}", do="remove", place=str(place), kind="plain"))
    return together(heading("Hidden now"), parts) if parts else None


def _drawn(asked: Asked, place: int) -> list[Html]:
    """What is alike, what fades; nothing where the policy cannot be read yet."""
    try:
        policy = asked.draft.policy()
        secret = policy.protect[place]
    except (AttrprivError, IndexError):
        return []
    if secret.whole_columns:
        names = " and ".join(secret.whole_columns)
        return [paragraph(f"Whatever {names} contain, the rows that are shown look the same: nothing fades with a distance.")]
    drawn = _pictured(secret, policy.epsilon, policy.delta, f"alike-{place}")
    return [listed(_words(secret, policy.epsilon, policy.delta)), *([] if drawn is None else [drawn])]


def _words(secret: Secret, epsilon: float, delta: float) -> list[str]:
    right = promised(epsilon, delta)
    lines = [
        f"Somebody who must guess between two values that look alike is right at most {right:.1%} of the time; a coin, 50%."
    ]
    if secret.within is not None:
        apart = (
            f"{100 * secret.within:.10g}%" if secret.composition is not None and secret.within < 1 else f"{secret.within:,g}"
        )
        lines.append(f"Values further apart than {apart} are told apart more and more easily: protection fades.")
    elif secret.between is not None:
        lines.append("All values of the range look alike, so nothing fades within it. Values outside of it are not hidden.")
    return lines


def promised(epsilon: float, delta: float) -> float:
    """How often the best guess between two values that look alike is right, at most: (e^epsilon + delta)/(e^epsilon + 1)."""
    return min(1.0, (1 + delta * math.exp(-epsilon)) / (1 + math.exp(-epsilon)))


def _pictured(secret: Secret, epsilon: float, delta: float, name: str) -> Html | None:
    """A flat promise up to `within`; beyond it nothing is promised, up to certainty."""
    ends = secret.ends
    if ends is None and secret.within is None:
        return None
    widest = ends[1] - ends[0] if ends is not None else math.inf
    within = min(widest, secret.within or widest)
    whole = min(widest, 4 * within)  # further out nothing changes, and nobody could see the part that is promised
    right = promised(epsilon, delta)
    marks: list[Line | Rule] = [
        Line(((0.0, right), (within, right)), f"alike: at most {right:.1%}", 0, label_at=(0.05 * whole, right - 0.05))
    ]
    if within < whole:
        marks += [
            Line(((within, right), (within, 1.0), (whole, 1.0)), "not promised", 1, label_at=(0.4 * whole, 0.92), filled=True)
        ]
        marks += [Rule(within, "within", "x")]
    shown = f"Up to {within:,g} apart a guess is right at most {right:.1%} of the time. " + (
        "Beyond that nothing is promised." if within < whole else "That is the whole range."
    )
    picture = Picture(
        f"Right guesses between two values of {secret.text}, at most",
        shown,
        Axis(
            "distance of the two values",
            0.0,
            whole,
            form="percent" if secret.composition is not None and whole <= 1 else "number",
        ),
        Axis("right guesses", 0.45, 1.02, form="percent"),
        (Rule(0.5, "a coin"), *marks),
    )
    return figure(picture, name)


# ------------------------------------------------------------------------------------------------------------------ forms


def _mean(asked: Asked, columns: Mapping[str, str]) -> Html:
    able = [name for name, kind in columns.items() if kind in MEASURES]
    if not able:
        return paragraph("The table has no column of numbers.", "dim")
    first = next((name for name in able if is_sensitive(name)), able[0])
    mine = asked.one("do") == "mean"
    return asked.send(
        "Hide this average",
        choice("Column", "column", [(name, name) for name in able], asked.one("column", first) if mine else first, of="mean"),
        _ends(asked, "mean", *_HINTS[amount_in]),
        do="mean",
    )


def _share(asked: Asked, columns: Mapping[str, str]) -> Html:
    able = [name for name, kind in columns.items() if kind != "other"]
    if not able:
        return paragraph("The table has no column of numbers, texts or truth values.", "dim")
    first = next((name for name in able if is_sensitive(name) and columns[name] not in MEASURES), able[0])
    mine = asked.one("do") == "share"
    return asked.send(
        "Hide how common it is",
        choice(
            "As a", "as", [("share", "share of the rows"), ("count", "number of rows")], asked.one("as", "share"), of="share"
        ),
        choice("Column", "column", [(name, name) for name in able], asked.one("column", first) if mine else first, of="share"),
        field(
            "Value", "value", asked.one("value") if mine else "", of="share", hint="as it is written in the table, such as yes"
        ),
        _ends(
            asked,
            "share",
            "a share with its percent sign, such as 25%; of a number of rows, such as 250",
            "what is at most this far apart looks alike, such as 2% (or 20 rows); empty: all of the range",
        ),
        do="share",
    )


def _columns(asked: Asked, columns: Mapping[str, str]) -> Html:
    return together(
        paragraph("A view shows a fixed number of rows of each public value, so that no model learns anything about them."),
        asked.send(
            "Hide everything about them",
            checks(
                "Columns", "columns", [(name, f"{name} ({kind})") for name, kind in columns.items()], asked.several("columns")
            ),
            do="columns",
        ),
    )


def _range(asked: Asked, place: int, secret: Mapping[str, Any]) -> Html:
    """To change the range of a secret; of one with sets, or of several statistics together, that is written in the file."""
    do, known = f"range:{place}", _stated_range(secret)
    if known is None:
        return together()
    form = asked.send("Save the range", _ends(asked, do, *_HINTS[known[0]], known[1:]), do=do, kind="plain")
    return h("details", h("summary", "Change its range"), form, open=asked.one("do") == do)


def _stated_range(secret: Mapping[str, Any]) -> tuple[Read, str, str, str] | None:
    """How its numbers are read; its ends and its distance, as they are written."""
    kind = str(secret.get("secret", "")).partition("(")[0].strip().lower()
    read = {"mean": amount_in, "sum": amount_in, "share": share_in, "count": count_in}.get(kind)
    match secret.get("between", ["", ""]), secret.get("within", ""):
        case [str(low), str(high)], str(within) if read is not None and "cases" not in secret:
            return read, low, high, within
    return None


def _ends(asked: Asked, of: str, hint: str, near: str, known: Sequence[str] = ("", "", "")) -> Html:
    mine = asked.one("do") == of
    kept = {
        name: asked.one(name) if mine else "" if one == TODO else one
        for name, one in zip(("low", "high", "within"), known, strict=True)
    }
    return together(
        field("It lies between", "low", kept["low"], of=of, hint=hint),
        field("and", "high", kept["high"], of=of),
        field("Within", "within", kept["within"], of=of, hint=near),
    )


# ---------------------------------------------------------------------------------------------------------------- changes


def act(asked: Asked) -> str:
    what = asked.one("do").partition(":")[0]
    made = {"mean": _new_mean, "share": _new_share, "columns": _new_columns, "range": _new_range, "remove": _removed}.get(what)
    if made is None:
        raise UsageError("do: must be a form of this page. Got another.")
    asked.draft.change(asked.seen, made(asked))
    return asked.address(done="saved")


def _new_mean(asked: Asked) -> str:
    column = _known(asked, asked.one("column"))
    return _added(asked, {"secret": f"mean({quoted(column)})", **_pairs(asked, amount_in)})


def _new_share(asked: Asked) -> str:
    column, value = _known(asked, asked.one("column")), asked.form.get("value", ("",))[0]
    if not value.strip():
        raise UsageError("value: must be one value of the column, as it is written in the table. Got none.")
    kind = asked.columns()[column]
    literal = (
        str(amount_in("value", value)) if kind in MEASURES else value.strip().lower() if kind == "boolean" else _text(value)
    )
    statistic, read = ("count", count_in) if asked.one("as") == "count" else ("share", share_in)
    return _added(asked, {"secret": f"{statistic}({quoted(column)} = {literal})", **_pairs(asked, read)})


def _new_columns(asked: Asked) -> str:
    chosen = [_known(asked, name) for name in asked.several("columns")]
    if not chosen:
        raise UsageError("columns: must be one column or several. Got none.")
    text = set_value(asked.draft.text, ("protect",), [{"secret": f"columns({', '.join(map(quoted, chosen))})"}])
    return without(text, "assume") if "assume" in asked.draft.stated else text


def _removed(asked: Asked) -> str:
    draft = asked.draft
    place, stated = count_in("place", asked.one("place")), draft.stated
    protected = stated.get("protect", [])
    if not 0 <= place < len(protected):
        raise UsageError("place: must be one of the secrets. Got another.")
    left = [one for k, one in enumerate(protected) if k != place]
    gone = whole_columns({"protect": [protected[place]]})
    text = remove(draft.text, ("protect", place)) if left else set_value(draft.text, ("protect",), [{"secret": TODO}])
    return without(text, "reference") if gone and "reference" in stated else text


def _new_range(asked: Asked) -> str:
    """What was left as it is written in the file stays as it is."""
    place, protected = count_in("place", asked.one("do").partition(":")[2]), asked.draft.stated.get("protect")
    secret = protected[place] if isinstance(protected, list) and place < len(protected) else None
    known = _stated_range(secret) if isinstance(secret, dict) else None
    if known is None:
        raise UsageError("place: must be one of the secrets. Got another.")
    read, *ends, distance = known
    low, high, within = (asked.one(name) for name in ("low", "high", "within"))
    text = asked.draft.text
    if [low, high] != ends:
        text = _put(text, ("protect", place, "between"), _between(low, high, read) if low or high else None)
    if within != distance:
        text = _put(text, ("protect", place, "within"), read("within", within) if within else None)
    if not (low or high or within):
        raise UsageError(_NO_RANGE)
    return text


def _put(text: str, place: Place, value: object) -> str:
    """Removed where it is none now."""
    return remove(text, place) if value is None else set_value(text, place, value)


def _added(asked: Asked, secret: dict[str, Any]) -> str:
    """In the place of the open one, else behind the others."""
    draft, stated = asked.draft, asked.draft.stated
    Secret.checked(secret)
    if not secrets(stated):
        text = set_value(draft.text, ("protect",), [secret])
    elif whole_columns(stated):
        text = set_value(draft.text, ("protect",), [secret])
        return without(text, "reference") if "reference" in stated else text
    else:
        text = append(draft.text, ("protect",), secret)
    return text


def _pairs(asked: Asked, read: Read) -> dict[str, Any]:
    """A range and a distance, in the unit that `read` reads."""
    low, high, within = asked.one("low"), asked.one("high"), asked.one("within")
    if not (low or high or within):
        raise UsageError(_NO_RANGE)
    found: dict[str, Any] = {"between": _between(low, high, read)} if low or high else {}
    return {**found, "within": read("within", within)} if within else found


def _between(low: str, high: str, read: Read) -> list[int | float]:
    return in_order("between", read(LOWER, low), read(HIGHER, high))


def _known(asked: Asked, column: str) -> str:
    if column not in asked.columns():
        raise UsageError("column: must be a column of the table. Got none of that name.")
    return column


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
