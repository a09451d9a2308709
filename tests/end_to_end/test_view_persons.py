"""Single persons behind a view, as a user meets them: one call, told again, and a draw that noise decides on."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import attrpriv as ap
from attrpriv.engines.view.draw import TOO_FEW, TooFewRowsError
from attrpriv.errors import CertificateError, RefusedError
from attrpriv.methods.base import count_test, view_persons
from attrpriv.session.record import recheck
from attrpriv.session.view_persons import NO_ROWS
from tests.end_to_end.test_view import names, policy, run
from tests.unit.session.test_forged_views import Change, chained

N = 3000
CHANGES: dict[str, Any] = {
    "delta": 1e-4,
    "individuals": {"epsilon": 1.0, "delta": 1e-6},
    "protect": [{"secret": "columns(sex)"}],
    "bounds": {"x": [0, 100]},
    "missing": {"x": 50.0},
    "reference": {"sex": {"values": ["F", "M"], "shares": [0.32, 0.68]}, "least_density": 0.9, "failure": 1e-7},
}
ASKED = ["avg(x)", "count(*) filter (where age > 40)", "sum(x) filter (where age > 40)"]


def people(women: int = 960) -> pa.Table:
    generator = np.random.default_rng(3)
    sex = generator.permutation(["F"] * women + ["M"] * (N - women))
    x = pa.array([None if k % 50 == 0 else value for k, value in enumerate(generator.normal(60, 40, N))])
    return pa.table({"sex": sex, "x": x, "age": generator.integers(20, 60, N)})


def place(folder: Path, table: pa.Table | None = None, **changes: Any) -> Path:
    pq.write_table(people() if table is None else table, folder / "people.parquet")
    return policy(folder, **{**CHANGES, **changes})


def without_noise(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The scales that were asked for; nothing is added."""
    seen: list[float] = []

    def noted(value: Fraction, scale: float) -> Fraction:
        seen.append(scale)
        return value

    monkeypatch.setattr(view_persons, "add_laplace", noted)
    return seen


def test_answers_are_those_of_the_view_with_noise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the noise they are what the same rows give, missing entries and values beyond the bounds as the policy says."""
    seen = without_noise(monkeypatch)
    path = place(tmp_path)
    with ap.Session(policy=path) as session:
        released = session.release(ASKED)
        plan, rows = released.plan, session._rows
        assert rows is not None
        view = rows.table().to_pandas()
    assert plan.view is not None
    assert len(view) == plan.view.rows
    x, old = view["x"].fillna(50.0).clip(0, 100), view["age"] > 40
    share = {"F": 0.32, "M": 0.68}
    by_hand = [
        sum(share[s] * value[view["sex"] == s].mean() for s in share) * factor
        for value, factor in ((x, 1), (old.astype(float), N), (x * old, N))
    ]
    assert released.values == pytest.approx(by_hand, rel=1e-12)
    assert seen == [plan.noise_of(query).scale for query in plan.queries]


def test_one_call_is_answered_and_told_again(tmp_path: Path) -> None:
    path = place(tmp_path)
    with ap.Session(policy=path) as session:
        released = session.release(ASKED)
        assert not released.recorded
        again = session.release(ASKED[:2])
        assert again.recorded
        assert again.values == released.values[:2]
        assert [a.to_json() for a in again.answers] == [a.to_json() for a in released.answers[:2]]
    with ap.Session(policy=path) as session:
        assert session.release(ASKED).values == released.values, "another session, the same answers"
        for asked in ("count(*) filter (where age > 50)", [*ASKED, "count(*) filter (where age > 30)"], "sum(x)"):
            with pytest.raises(RefusedError):
                session.release(asked)
        assert [entry.kind for entry in session.recorded()] == ["view", "answer"]
        recheck("record", session.recorded())


def test_two_ledgers_have_other_noise(tmp_path: Path) -> None:
    found = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        with ap.Session(policy=place(tmp_path / name)) as session:
            found.append(session.release(ASKED).values)
    assert not set(found[0]) & set(found[1])


def test_an_average_over_some_rows_is_a_sum_over_a_count(tmp_path: Path) -> None:
    with ap.Session(policy=place(tmp_path)) as session:
        released = session.release("avg(x) filter (where age > 40)")
        (answer,) = released.answers
        top, bottom = (part.values[0].value for part in answer.parts)
        assert answer.values[0].value == pytest.approx(top / bottom)


def test_rows_are_not_handed_out(tmp_path: Path) -> None:
    path = place(tmp_path)
    with ap.Session(policy=path) as session:
        for out in (None, tmp_path / "rows.parquet"):
            with pytest.raises(RefusedError) as caught:
                session.view(out, split={"a": 0.5, "b": 0.5})
            assert str(caught.value) == NO_ROWS
        assert session.view_plan().rows > 0, "what it would keep is public"
    code, _, complaint = run("view", path, "--out", tmp_path / "rows.parquet")
    assert (code, "single persons are not protected" in " ".join(complaint.split())) == (3, True)
    assert names(tmp_path) == ["people.parquet", "people.yaml"], "nothing is drawn for it"


@pytest.mark.parametrize("now", [{"individuals": "none"}, {"individuals": {"epsilon": 2.0}}, {"individuals": {"epsilon": 1.0}}])
def test_the_promise_cannot_be_dropped_later(now: dict[str, Any], tmp_path: Path) -> None:
    with ap.Session(policy=place(tmp_path)) as session:
        session.release("avg(x)")
    with ap.Session(policy=policy(tmp_path, **{**CHANGES, **now})) as session:
        with pytest.raises(RefusedError):
            session.release("sum(x)")
        with pytest.raises(RefusedError):
            session.view()


def test_a_view_that_was_handed_out_protects_nobody_later(tmp_path: Path) -> None:
    with ap.Session(policy=place(tmp_path, individuals="none")) as session:
        session.view()
    with ap.Session(policy=policy(tmp_path, **CHANGES)) as session, pytest.raises(RefusedError, match="a view drawn for other"):
        session.release("avg(x)")


# The draw: what it needs is drawn before the table is read.


def kept(path: Path) -> tuple[int, int]:
    """How many women are kept, and from how many on a table has them to spare for sure."""
    with ap.Session(policy=path) as session:
        plan = session.view_plan()
    test = plan.certificate.evidence.row_test()
    assert test is not None
    return plan.cells[0].keep, test.threshold


@pytest.mark.parametrize(
    ("spare", "below", "drawn"),
    [(0, 0, True), (0, 1, False), (5, 5, True), (5, 6, False), (-1, -10, False)],
)
def test_noise_decides_at_the_boundary(
    spare: int, below: int, drawn: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many women more than are kept; the noise is so much below the threshold. Fewer than are kept never pass."""
    keep, threshold = kept(place(tmp_path))
    path = place(tmp_path, people(keep + spare))
    monkeypatch.setattr(count_test, "whole_laplace", lambda scale: threshold - below)
    with ap.Session(policy=path) as session:
        if drawn:
            session.release("avg(x)")
            return
        with pytest.raises(TooFewRowsError) as caught:
            session.release("avg(x)")
        assert str(caught.value) == TOO_FEW
        assert [entry.kind for entry in session.recorded()] == ["view"], "that it failed is recorded"
        monkeypatch.setattr(count_test, "whole_laplace", lambda scale: 10**6)
        with pytest.raises(RefusedError, match="could not be drawn"):
            session.release("avg(x)")
        recheck("record", session.recorded())


def test_the_noise_of_the_test_is_kept_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for name, noise in (("a", 0), ("b", -10)):
        (tmp_path / name).mkdir()
        monkeypatch.setattr(count_test, "whole_laplace", lambda scale, noise=noise: noise)
        with ap.Session(policy=place(tmp_path / name), clock=lambda: datetime(2026, 1, 1, tzinfo=UTC)) as session:
            session.release("count(*)", "subsample")
            found.append([entry.to_json() for entry in session.recorded()])
    assert found[0] == found[1]


# Records that somebody made up.


def _answer(told: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = told["details"]["view"]["persons"]["answers"][0]
    return found


FORGED: dict[str, tuple[int, Change]] = {
    "a view without its test": (1, lambda told: told["plan"].pop("persons")),
    "a view with another test": (1, lambda told: told["plan"]["persons"].update(threshold=1)),
    "a proof without the test": (1, lambda told: told["details"]["certificate"]["evidence"].pop("test")),
    "less noise": (2, lambda told: _answer(told).update(scale=1e-6)),
    "no noise": (2, lambda told: told["details"]["view"].pop("persons")),
    "wider bounds": (2, lambda told: _answer(told).update(bounds=[0, 10**6])),
    "no details": (2, lambda told: told.update(details=None)),
    "no proof for persons": (2, lambda told: told["plan"][0]["certificate"].update(individuals=None)),
    "a text in the answer": (2, lambda told: told["answers"][0].update(value="SECRET")),
    "more in the answer": (2, lambda told: told["answers"][0].update(rows=[1, 2, 3])),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_record_is_found(name: str, tmp_path: Path) -> None:
    number, change = FORGED[name]
    with ap.Session(policy=place(tmp_path)) as session:
        session.release("avg(x)")
        entries = session.recorded()
    recheck("record", chained(entries))
    with pytest.raises(CertificateError, match=rf"^record: entry {number}"):
        recheck("record", chained(entries, change, number))


def test_a_second_answer_in_a_record_is_found(tmp_path: Path) -> None:
    with ap.Session(policy=place(tmp_path)) as session:
        session.release("avg(x)")
        view, answer = session.recorded()
    with pytest.raises(CertificateError, match=r"^record: entry 3: "):
        recheck("record", chained([view, answer, answer]))
