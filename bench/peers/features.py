"""What each library has, and the call that shows it: tried in the library's own environment, at its measured version."""

from __future__ import annotations

from collections.abc import Mapping

from attrpriv import __version__
from bench.peers.budget import Budget, Unavailable
from bench.peers.environment import in_environment
from bench.peers.here import INSIDE, in_this_environment
from bench.peers.libraries import LIBRARIES, version
from bench.peers.results import Form, Result, Table

NAME = "features"
TITLE = "What each library has, by calls"
NEEDS: tuple[str, ...] = ("pandas",)
SECONDS = 100.0
TIMES = 6
"""So many times its time may pass for one library: Spark starts slowly."""
NOT_TRIED = "not tried"

Found = dict[str, dict[str, dict[str, str]]]


def run(budget: Budget) -> Result:
    most = TIMES * budget.seconds
    found: Found = {"attrpriv": in_this_environment("features.py", {"library": "attrpriv"}, most)}
    versions, notes = {}, list(NOTES)
    for each in LIBRARIES:
        budget.say(each.words)
        try:
            told = version(each)
            found[each.name] = in_environment(
                each.name, each.requirements, INSIDE / "features.py", {"library": each.name}, most
            )
            versions[each.words] = told
        except Unavailable as reason:
            notes.append(f"not tried: {each.words}: {reason}")
    tables = [overview(found), evidence(found, {"attrpriv": __version__, **versions})]
    return Result.of(NAME, TITLE, seconds=budget.spent, seed=0, tables=tables, notes=notes, versions=versions)


NOTES = (
    "yes: the call works; no: it fails, or no file of the library has one of the words; mentioned: files of the library have "
    "one of the words, which was not followed further; not tried: no call is known here, not that there is none",
)


def overview(found: Found) -> Table:
    names = {"attrpriv": "attrpriv", **{each.name: each.words for each in LIBRARIES}}
    columns: dict[str, Form] = {"feature": "text", **dict.fromkeys(names.values(), "text")}
    rows = [[feature, *(_answer(found.get(name, {}).get(feature)) for name in names)] for feature in features(found)]
    return Table.of("overview", "What there is", columns, rows)


def features(found: Found) -> list[str]:
    return list(dict.fromkeys(feature for calls in found.values() for feature in calls))


def _answer(told: dict[str, str] | None) -> str:
    if told is None:
        return NOT_TRIED
    return "mentioned" if told["answer"] == "see" else told["answer"]


def evidence(found: Found, versions: Mapping[str, str]) -> Table:
    """Each call, and of which version of which library."""
    words = {"attrpriv": "attrpriv", **{each.name: each.words for each in LIBRARIES}}
    rows = [
        [feature, f"{words[name]} {versions[words[name]]}", f"`` {call['call']} ``".replace("|", "\\|"), call["seen"]]
        for feature in features(found)
        for name, calls in found.items()
        if (call := calls.get(feature))
    ]
    columns: dict[str, Form] = {"feature": "text", "library": "text", "call": "text", "what came of it": "text"}
    return Table.of("evidence", "What was tried", columns, rows)
