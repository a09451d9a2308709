"""The report on the release, as `attrpriv report` writes it."""

from __future__ import annotations

from attrpriv.report.content import report_parts, report_title
from attrpriv.studio.asked import Asked
from attrpriv.studio.html import Html, h, paragraph, together

TITLE = "Report"


def show(asked: Asked) -> Html:
    facts = asked.studio.plans.facts(asked.draft)
    title, subtitle = report_title(facts)
    draft = asked.draft
    parts = [Html(part) for part in report_parts(facts, draft.text, draft.name) if part]
    return h("div", h("p", title, class_="good"), paragraph(subtitle, "dim"), together(parts), class_="report")
