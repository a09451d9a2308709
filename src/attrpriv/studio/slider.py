"""The epsilon slider: error against epsilon, read off a curve that is computed in the background (`curve`).

What must never change: an answer is looked up, and never computed while somebody moves the slider.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrpriv.errors import UsageError
from attrpriv.formatting import number
from attrpriv.pictures import subjects
from attrpriv.studio.asked import Asked
from attrpriv.studio.curve import EPSILONS, FAILED, CurveState, Point, Refused
from attrpriv.studio.html import Html, figure, h, paragraph, together
from attrpriv.studio.numbers import number_in

if TYPE_CHECKING:
    from attrpriv.studio.plans import Planned

_GONE = "curve: must be that of a page that was shown lately. Got another. Load the page again."


def slider(asked: Asked, planned: Planned) -> Html | None:
    """Where noise is what protects; its script moves it, and without script the page shows what is known so far."""
    if planned.ranked is None or any(plan.chosen is not None and plan.chosen.view for plan in planned.ranked.rankings):
        return None
    policy, curves = planned.policy, asked.studio.curves
    key = curves.start(policy)
    state = curves.state(key) or CurveState(len(EPSILONS))
    stops = sorted({*EPSILONS, policy.epsilon})
    told = told_at(state, policy.epsilon)
    return h(
        "div",
        h(
            "div",
            h("label", "Move epsilon and see what it costs", for_="slider"),
            h("input", type="range", id="slider", min=0, max=len(stops) - 1, step=1, value=stops.index(policy.epsilon)),
            class_="moved",
            hidden=True,
        ),
        h("p", told["sentence"], id="slider-told", role="status"),
        h("p", told["progress"], id="slider-progress", role="status", class_="dim"),
        h("div", Html(told["pictures"]), id="slider-pictures", class_="pictures"),
        id="curve",
        data_at=asked.address("at", curve=key),
        data_stops=" ".join(f"{stop:.10g}" for stop in stops),
    )


def at_epsilon(asked: Asked) -> dict[str, Any]:
    """What the slider shows at one epsilon."""
    state = asked.studio.curves.state(asked.query.get("curve", ""))
    if state is None:
        raise UsageError(_GONE)
    return told_at(state, float(number_in("epsilon", asked.query.get("epsilon", ""))))


def told_at(state: CurveState, epsilon: float) -> dict[str, Any]:
    """A sentence, pictures, and how far the curve has come."""
    found = state.at(epsilon)
    return {
        "sentence": _sentence(found, epsilon),
        "pictures": "" if not isinstance(found, Point) else _pictures(state, found),
        "progress": _progress(state),
        "ended": bool(state.ended),
    }


def _sentence(found: Point | Refused | None, epsilon: float) -> str:
    if found is None:
        return f"Epsilon {epsilon:g}: not computed yet."
    near = "" if found.epsilon == epsilon else f" (computed at {found.epsilon:g}, the next one below so far)"
    if isinstance(found, Refused):
        why = " ".join(one.line for one in found.error.causes) or str(found.error)  # the reasons stand above
        return f"Epsilon {epsilon:g}{near}: nothing can be released. {why}"
    errors = [f"{query} off by about {'what is known once read' if e is None else number(e)}" for query, e in found.errors]
    said = f"Epsilon {epsilon:g}{near}: {', '.join(errors)}, by {' and '.join(found.mechanisms)}."
    if found.tells is None or found.tells.after.how == "unknown":
        return said
    most = "at most " if found.tells.after.how == "bound" else ""
    return f"{said} Who must guess between two values that look alike is right {most}{found.tells.after.right:.1%} of the time."


def _pictures(state: CurveState, found: Point) -> Html:
    parts: list[Html] = []
    try:
        parts.append(figure(subjects.against_epsilon(state.curve(found.errors[0][0], found.epsilon)), "slider-error"))
    except UsageError:  # a single point so far
        parts.append(paragraph("The curve is being computed.", "dim"))
    return together(parts, None if found.tells is None else figure(subjects.trade_off(found.tells), "slider-tells"))


def _progress(state: CurveState) -> str:
    if state.ended == "failed":
        return FAILED
    if state.ended == "done":
        return f"The curve is complete: {state.done} epsilons."
    if state.ended == "cancelled":
        return f"The curve stopped at {state.done} of {state.total} epsilons: another page asked for one. Load this page again."
    return f"The curve is being computed: {state.done} of {state.total} epsilons."
