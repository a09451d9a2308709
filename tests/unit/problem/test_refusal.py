"""Refusals: a cause, what is needed, and the query to blame, as data; sentences are for people."""

from __future__ import annotations

import ast
import copy
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import attrpriv as ap
from attrpriv.errors import CertificateError, QueryError, UsageError, Way
from attrpriv.methods.base.accuracy import is_warning
from attrpriv.methods.choice.choose import plan, rank
from attrpriv.notebook.html import refusal_html
from attrpriv.problem.refusal import Cause, Refusal, listed_kinds, refusal_of, refusing
from attrpriv.queries.sql import parse_queries
from tests.end_to_end.material import Said, policy, write_policy
from tests.unit.methods.gaussian.test_plan import problem
from tests.unit.session.test_refusals import ASKED, BEHIND, BY_WARD
from tests.unit.session.test_refusals import policy as session_policy

SOURCE = Path(__file__).resolve().parents[3] / "src" / "attrpriv"
FILES = sorted(SOURCE.rglob("*.py"))
BOUNDS = Refusal(Cause.PUBLIC_FACT, "needs bounds for x; declare them.", needs="bounds of x", query="avg(x)")


def raised() -> Iterator[tuple[str, ast.Call]]:
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Refusal":
                yield f"{file.relative_to(SOURCE)}:{node.lineno}", node


def test_every_refusal_has_a_cause() -> None:
    found = list(raised())
    assert len(found) > 200
    for place, call in found:
        cause = ast.unparse(call.args[0])
        named = cause.startswith("Cause.") and cause.removeprefix("Cause.") in Cause.__members__
        handed_on = cause in {"cause", "found", "error.cause", "self.cause"}
        assert named or handed_on, place
        assert len(call.args) == 2, place


def test_every_cause_is_used_and_says_what_helps() -> None:
    used = {ast.unparse(call.args[0]).removeprefix("Cause.") for _, call in raised()}
    assert used >= set(Cause.__members__)
    for cause in Cause:
        assert cause.words
        assert cause.way_out
        assert Refusal(cause, "why.").needs == (cause.way_out,)
    assert [cause.rank for cause in Cause] == list(range(len(Cause)))


# How code looked into sentences before refusals had fields.
READS_PROSE = (
    r"needs an\?",
    r"""split\(["'] \| """,
    r"""rpartition\(["']: """,
    r"(search|match|split|findall|sub)\([^)]*\.reason",
    r"""\.reason\.(startswith|endswith|split|partition|rpartition|replace)""",
    r"""\bin \w+(\[\w+\])?\.reason\b""",
    r"""startswith\((WARNED|["'](fragile|shape|weak promise|another ledger))""",
)


@pytest.mark.parametrize("pattern", READS_PROSE)
def test_no_code_reads_a_sentence(pattern: str) -> None:
    found = [str(file.relative_to(SOURCE)) for file in FILES if re.search(pattern, file.read_text(encoding="utf-8"))]
    assert found == []


def test_fields() -> None:
    assert (BOUNDS.cause, BOUNDS.needs, BOUNDS.query, BOUNDS.method) == (Cause.PUBLIC_FACT, ("bounds of x",), "avg(x)", None)
    assert str(BOUNDS) == BOUNDS.reason
    with pytest.raises(AttributeError, match="does not change"):
        BOUNDS.cause = Cause.SIZE
    told = BOUNDS.told(method="group_dp", query="avg(y)")
    assert (told.method, told.query, told.reason) == ("group_dp", "avg(x)", BOUNDS.reason)
    assert BOUNDS.method is None
    assert told.told(method="laplace").method == "group_dp"


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_keep_the_fields(again: Any) -> None:
    refusal = Refusal(Cause.SIZE, "too many.", needs=("a", "b"), query="q", method="m", usage=True, otherwise="wait")
    made = again(refusal)
    assert made.to_json() == refusal.to_json()
    assert (made.usage, made.otherwise, made.reason) == (True, "wait", "too many, or wait.")


def test_a_mistake_is_bad_usage_whatever_else_is_said() -> None:
    assert Refusal(Cause.MISTAKE, "wrong.").usage
    assert Refusal(Cause.PROMISE, "nothing.").usage
    assert not Refusal(Cause.BUDGET, "little.").usage
    assert Refusal(Cause.BUDGET, "delta 0.", usage=True).usage


def test_what_was_tried_is_not_named_again() -> None:
    refusal = Refusal(Cause.PUBLIC_FACT, "needs its size.", otherwise="release it as a ratio")
    assert refusal.reason == "needs its size, or release it as a ratio."
    assert refusal.tried().reason == "needs its size."
    assert BOUNDS.tried().reason == BOUNDS.reason


def test_kinds_of_assumption() -> None:
    assert listed_kinds(("gaussian",)) == "gaussian"
    assert listed_kinds(("gaussian", "groups", "hierarchy")) == "gaussian, groups or hierarchy"
    refusal = Refusal(Cause.ASSUMPTION, "needs another.", needs=("counts", "groups"), query="avg(x)")
    assert refusal.line == "avg(x): another assumption is needed; what helps: a counts or groups assumption."
    shape = Refusal(Cause.SHAPE, "rests on normal rows.", method="transport")
    assert shape.line == "rows that may not be normal; what helps: transport by name."


def test_errors_of_parts_have_a_cause() -> None:
    assert refusal_of(ap.QueryError("x")).cause is Cause.STATISTIC
    for error in (ap.RefusedError("x"), ap.CertificateError("x")):
        assert refusal_of(error).cause is Cause.NOTHING_FOUND
    for other in (ap.UsageError("x"), ValueError("x")):
        assert refusal_of(other).cause is Cause.NUMBERS
    told = refusal_of(ap.RefusedError("optimal: too many.").because(Cause.SIZE, "fewer rows"), name="optimal", usage=True)
    assert (told.cause, told.needs, told.reason, told.usage) == (Cause.SIZE, ("fewer rows",), "too many.", True)


def test_an_error_is_made_of_refusals() -> None:
    other = Refusal(Cause.STATISTIC, "does not cover it.", query="avg(x)", method="laplace")
    error = ap.RefusedError.told((Way("nothing fits.", (("group_dp", BOUNDS), ("laplace", other))),), (BOUNDS, other))
    assert str(error) == "nothing fits. group_dp: needs bounds for x; declare them. | laplace: does not cover it."
    assert error.causes == (BOUNDS,)
    later = error.after("avg(x), a part of what is asked:")
    assert str(later) == f"avg(x), a part of what is asked: {error}"
    assert later.refusals == error.refusals
    assert pickle.loads(pickle.dumps(error)).causes[0].needs == ("bounds of x",)
    plain = ap.RefusedError("spent.")
    assert (plain.refusals, plain.causes, str(plain.after("now:"))) == ((), (), "now: spent.")


def test_notebooks_show_a_cause_and_a_way_out() -> None:
    refusal = Refusal(Cause.NUMBERS, "needs <b>.", needs="the mean of <b>", query="avg(<b>)", method="transport")
    shown = refusal_html(refusal)
    assert shown == refusal._repr_html_()
    assert "<b>" not in shown.replace("<body", "")
    for part in ("Refused: avg(&lt;b&gt;)", refusal.cause.words, "the mean of &lt;b&gt;", "transport: needs"):
        assert part in shown
    error = ap.RefusedError.told((Way("no.", (("transport", refusal),)),), (refusal,))
    assert error._repr_html_() == shown
    assert ap.UsageError("a < b")._repr_html_() == "<div>a &lt; b</div>"


@pytest.mark.parametrize("assumed", BEHIND)
@pytest.mark.parametrize("text", [*ASKED, "avg(hours); avg(hours * age)"])
def test_each_query_has_one_cause(assumed: str, text: str) -> None:
    release = text.split("; ")
    given = {} if assumed == "nothing" else {"assume": BEHIND[assumed]}
    secret = ap.Secret("mean(sex)", between=(0.25, 0.4))  # for which there is no view
    error: ap.AttrprivError | None = None
    with ap.Session(policy=session_policy(release, protect=[secret], delta=1e-6, **given)) as session:
        try:
            session.plan()
        except (ap.RefusedError, ap.UsageError) as refused:
            error = refused
    asked = [] if error is None else [one.query for one in error.causes]
    refusals = () if error is None else error.refusals
    assert bool(asked) == (error is not None)
    assert len(set(asked)) == len(asked)
    assert all(one.method and one.query and one.needs for one in refusals)
    assert {one.query for one in refusals} == set(asked)


def test_the_query_to_blame_is_the_one_that_is_refused() -> None:
    asked = problem(queries=parse_queries("SELECT avg(weight), avg(weight * income) FROM data"))
    assert [one.query for one in rank(asked).error().causes] == ["avg(income * weight)"]
    assert rank(problem()).refusals == ()


def test_a_mechanism_by_name_says_why() -> None:
    with pytest.raises(ap.RefusedError) as caught:
        plan(problem(), "laplace")
    (refusal,) = caught.value.refusals
    assert (refusal.method, refusal.cause, refusal.query) == ("laplace", Cause.ASSUMPTION, "avg(weight)")
    assert "counts" in refusal.needs


def test_json_has_causes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_policy(tmp_path, policy(rows=400, release=["avg(weight)"]))
    rows = Said("plan", "students.yaml", "--json").json
    refused = [row for row in rows if "refused" in row]
    assert refused
    assert all(row["cause"] in set(Cause) and row["needs"] for row in refused)
    write_policy(tmp_path, policy(rows=400, release=["avg(weight)", "avg(weight * income)"]))
    found = Said("check", "students.yaml", "--json").json
    assert [one["query"] for one in found["causes"]] == ["avg(income * weight)"]
    assert found["causes"][0]["cause"] == "statistic"
    assert {one["mechanism"] for one in found["refusals"]} >= {"gaussian", "transport"}
    error = Said("release", "students.yaml", "--json").json["error"]
    assert error["causes"] == found["causes"]
    line = "refused avg(income * weight): the statistic is not covered; what helps: a view."
    assert line in Said("check", "students.yaml").out.splitlines()
    assert line in Said("plan", "students.yaml").out.splitlines()
    changed = Said("explain", "students.yaml", "--json").json["sections"]["What to change"]
    assert changed == [line.removeprefix("refused ")]


def test_warnings_are_known_in_one_place() -> None:
    for begins in ("fragile:", "shape:", "weak promise:", "another ledger:"):
        assert is_warning(f"{begins} something")
    assert not is_warning("a note about fragile: things")


def test_by_ward_is_a_public_fact() -> None:
    with ap.Session(policy=session_policy(["avg(hours)", BY_WARD])) as session, pytest.raises(ap.UsageError) as caught:
        session.plan()
    (cause,) = caught.value.causes
    assert (cause.query, cause.cause, cause.needs) == (BY_WARD, Cause.PUBLIC_FACT, ("categories of ward",))


def test_the_guide_lists_the_causes_in_their_order() -> None:
    guide = (SOURCE.parents[1] / "docs" / "guide" / "errors.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)` \| (?!`)", guide.partition("## Refusals")[2].partition("## ")[0], re.MULTILINE)
    assert listed == ["cause", *(cause.value for cause in Cause)]


def test_an_error_in_a_block_becomes_a_refusal_with_nothing_behind_it() -> None:
    with pytest.raises(Refusal) as caught, refusing(UsageError, QueryError, to=lambda error: refusal_of(error, usage=True)):
        raise QueryError("query: is of no column.")
    assert (caught.value.cause, caught.value.reason, caught.value.usage) == (Cause.STATISTIC, "query: is of no column.", True)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


def test_what_else_comes_out_of_a_block_is_left_alone() -> None:
    refusal = Refusal(Cause.BUDGET, "too little.")
    for error in (CertificateError("no proof"), ValueError("no number"), refusal, KeyboardInterrupt()):
        with pytest.raises(type(error)) as caught, refusing(UsageError):
            raise error
        assert caught.value is error
    with refusing(UsageError):
        found = 1
    assert found == 1
