"""What everybody may know: fitted on public records, or typed number by number, each with its source; or a public reference."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrpriv.errors import AttrprivError, UsageError
from attrpriv.policy.edit import set_value
from attrpriv.queries.derived import parse_questions
from attrpriv.studio.asked import Asked, releases, secrets, whole_columns
from attrpriv.studio.draft import TODO, Place, stated, written
from attrpriv.studio.folder import TABLES
from attrpriv.studio.html import Html, choice, field, figure, h, heading, paragraph, table, together
from attrpriv.studio.layout import further, state_of
from attrpriv.studio.numbers import number_in
from attrpriv.studio.skeleton import law_skeleton, skeleton
from attrpriv.studio.sources import LEAST_DENSITY, numbers_in, source_key, sourced, with_source, without, words_of

TITLE = "What everybody may know"
_DENSITY = "reference.least_density"
_NEVER = "It must have been known before the table was looked at, and never have been made from it."


def show(asked: Asked) -> Html:
    said = asked.draft.stated
    if not secrets(said):
        return together(paragraph("Choose first what to hide.", "note"), further(asked, "hide"))
    inside = _reference(asked, said) if whole_columns(said) else _assumption(asked, said)
    return together(state_of(asked), inside, further(asked, "publish"))


def _files(asked: Asked, said: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(name, name) for name in asked.studio.folder.tables() if name != said.get("data")]


def _no_files() -> Html:
    return paragraph(f"This folder has no other table. Copy one here: a file that ends in {' or '.join(TABLES)}.", "note")


# --------------------------------------------------------------------------------------------------------------- a reference


def _reference(asked: Asked, said: Mapping[str, Any]) -> Html:
    known = said.get("reference")
    known = known if isinstance(known, dict) else {}
    density = str(known.get("least_density", TODO)).replace(TODO, "0.8")
    files = _files(asked, said)
    form = asked.send(
        "Use this reference",
        choice("Public records with the hidden columns", "file", files, asked.one("file", str(known.get("file", "")))),
        field(
            "Least density",
            "least_density",
            asked.one("least_density", density),
            hint=LEAST_DENSITY,
        ),
        field("Source", "source", asked.one("source", _named(said)), hint="where this number comes from"),
        do="reference",
    )
    return together(
        paragraph(
            "A view shows of each public value a fixed number of rows. Which values there are, and how common they are in "
            f"public, comes from a reference. {_NEVER}"
        ),
        heading("A public file"),
        form if files else _no_files(),
        heading("Or a law"),
        paragraph(
            "Of whole numbers all are equally common between two ends, and the next step asks for the ends. Any other law can "
            "be written in the policy file, under reference."
        ),
        asked.send("State the ends of each column", do="law", kind="plain"),
        _numbers(asked, said, "reference"),
    )


def _named(said: Mapping[str, Any]) -> str:
    """The source of the least density."""
    known = said.get("source")
    return str(known.get(_DENSITY, "")) if isinstance(known, dict) else ""


# -------------------------------------------------------------------------------------------------------------- an assumption


def _assumption(asked: Asked, said: Mapping[str, Any]) -> Html:
    files = _files(asked, said)
    asks = () if releases(said) else (_published(asked),)
    fit = asked.send(
        "Fit an assumption on it",
        choice("Public records of the same kind", "file", files, asked.one("file")),
        asks,
        do="fit",
    )
    needs = (asks and _published(asked, of="skeleton"), _categories(asked, said))
    typed = asked.send("State the numbers one by one", needs, do="skeleton", kind="plain")
    anew = (paragraph("What is assumed now is dropped, and every number is asked for. It can be undone."), typed)
    return together(
        paragraph(
            "An adversary may know how columns go together in public. The promise holds against whoever knows this, and no "
            f"more. {_NEVER}"
        ),
        heading("From public records"),
        fit if files else _no_files(),
        _verdicts(asked),
        heading("Or number by number"),
        paragraph("From surveys or studies, each with its source.") if "assume" not in said else None,
        _numbers(asked, said, "assume"),
        h("details", h("summary", "Ask for the numbers anew"), anew) if "assume" in said else typed,
    )


def _published(asked: Asked, of: str = "fit") -> Html:
    return field(
        "What will be published",
        "release",
        asked.one("release"),
        of=of,
        hint="a query such as avg(hours), or count(*) filter (where stay > 7): which numbers are needed depends on it",
    )


def _categories(asked: Asked, said: Mapping[str, Any]) -> Html | None:
    if not any(str(one.get("secret", "")).startswith(("share(", "count(")) for one in secrets(said)):
        return None
    hint = "by its definition, as the table writes them, with commas between, such as yes, no"
    return field("All values of the hidden column", "categories", asked.one("categories"), of="skeleton", hint=hint)


def _verdicts(asked: Asked) -> Html | None:
    """What the public records say of the law of rows: from the fitted file, with the pictures of this run."""
    try:
        found = [(one, one.fit_record()) for one in asked.draft.policy().assume]
    except AttrprivError:
        return None
    findings = [finding for _, record in found if record is not None for finding in record.shape or ()]
    rows = [record.rows for _, record in found if record is not None]
    if not rows:
        return None
    pictures = asked.studio.shapes.get(_assumption_file(asked), ())
    return together(
        heading("What the public records say", 3),
        paragraph(f"Fitted on {rows[0]:,} public rows, with a confidence that is part of the promise."),
        table("Shape of the public rows", ("Column", "verdict"), [(one.name, one.verdict) for one in findings])
        if findings
        else paragraph("Counts rest on no shape of the rows."),
        h("div", [figure(picture, f"shape-{place}") for place, picture in enumerate(pictures)], class_="pictures"),
        paragraph("Fit again to see the pictures of the public rows.", "dim") if findings and not pictures else None,
    )


def _assumption_file(asked: Asked) -> Path:
    member = asked.draft.stated.get("assume")
    named = member.get("file", "") if isinstance(member, dict) else ""
    return asked.studio.folder.root / str(named)


# ------------------------------------------------------------------------------------------------------------ single numbers


def _numbers(asked: Asked, said: Mapping[str, Any], key: str) -> Html | None:
    """Every number under a key with its source, to be changed; what the form above asks for is not asked for twice."""
    above = ("reference", "least_density") if "file" in said.get(key, {}) else None
    found = [one for one in numbers_in(said, key) if one[0] != above]
    if not found:
        return None
    lines = [_line(asked, said, place, "" if TODO in value else value, source) for place, value, source in found]
    return asked.send("Save the numbers", lines, do=f"numbers:{key}")


def _line(asked: Asked, said: Mapping[str, Any], place: Place, value: str, source: str) -> Html:
    """A number, and where it comes from; as it was typed, where that was refused."""
    (what, hint), name = words_of(place, said), written(place)
    value, source = asked.one(f"value:{name}", value), asked.one(f"source:{name}", source)
    return h(
        "fieldset",
        h("legend", what),
        field("Value", f"value:{name}", value, of="numbers", hint=hint),
        field("Source", f"source:{name}", source, of="numbers", hint="where it comes from, such as a survey and its year")
        if source_key(place)
        else None,
        class_="number",
    )


# ------------------------------------------------------------------------------------------------------------------- changes


def act(asked: Asked) -> str:
    what, _, key = asked.one("do").partition(":")
    if what == "fit":
        return _fit(asked)
    if what == "numbers" and key in ("assume", "reference"):
        text = sourced(asked, key)
    elif what == "skeleton":
        text = _skeleton(asked)
    elif what == "law":
        text = set_value(asked.draft.text, ("reference",), law_skeleton(asked.draft.stated, asked.columns()))
    elif what == "reference":
        text, known = asked.draft.text, asked.draft.stated.get("reference")
        text = text if isinstance(known, dict) and "file" in known else without(text, "reference")  # a law goes
        text = set_value(text, ("reference", "file"), _other_records(asked).name)
        density = number_in("least_density", asked.one("least_density"))
        text = with_source(set_value(text, ("reference", "least_density"), density), _DENSITY, asked.one("source"))
    else:
        raise UsageError("do: must be a form of this page. Got another.")
    asked.draft.change(asked.seen, text)
    return asked.address(done="saved")


def _public(asked: Asked) -> Path:
    name = asked.one("file")
    if name not in asked.studio.folder.tables():
        raise UsageError("public: must be a table of this folder. Got none of that name.")
    return asked.studio.folder.inside(name, "public")


def _other_records(asked: Asked) -> Path:
    """A public file that is not the table itself, nor a copy: what a view keeps of its values is shown before a release."""
    from attrpriv.engines.public_cells import require_other_file, require_other_records

    public, said = _public(asked), asked.draft.stated
    data, rows = str(said.get("data", "")), str(said.get("rows", ""))
    table = asked.studio.source(data)
    require_other_file(public, asked.studio.folder.root / data)
    require_other_records(table, public, int(rows) if rows.isdecimal() else None)
    return public


def _released(asked: Asked, text: str) -> str:
    """With what will be published, where that was asked for on this page."""
    said = asked.one("release")
    if not said or releases(asked.draft.stated):
        return text
    parse_questions(said)
    return set_value(text, ("release",), [said])


def _skeleton(asked: Asked) -> str:
    text = _released(asked, asked.draft.text)
    return set_value(without(text, "assume"), ("assume",), skeleton(stated(text), asked.columns(), asked.one("categories")))


def _fit(asked: Asked) -> str:
    """Fit on public records, and name the file that was written."""
    from attrpriv.cli.fit import fit_policy
    from attrpriv.studio.shapes import shape_pictures

    draft, folder = asked.draft, asked.studio.folder
    public = _public(asked)
    text = _released(asked, draft.text)
    draft.change(asked.seen, text)
    folder.require_inside(draft.stated)
    out = folder.root / folder.new_name(f"{draft.path.stem}.assumption", ".yaml")
    fitted = fit_policy(draft.path, public, out, None)
    asked.studio.shapes[out] = shape_pictures(fitted.fit)
    draft.change(draft.digest, set_value(without(draft.text, "assume"), ("assume",), {"file": out.name}))
    return asked.address(done="fitted")
