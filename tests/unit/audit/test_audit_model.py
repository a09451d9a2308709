"""An audit finds a leak that was planted, finds none where there is none, and says so in numbers that hold.

Everything has a seed, so that no run differs from another; false alarms and power are those of a new seed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import attrpriv as ap
from attrpriv.audit.jobs import Progress
from attrpriv.audit.model import audit_model
from attrpriv.pictures.marks import Dot

SECRET = "share(sex = 'F')"
SMALL: dict[str, Any] = {"rows": 400, "shadows": 40, "targets": 60}
# A coin is right fewer than 12 or more than 48 of 60 times less than once in a million runs.
COIN = (12, 48)


@pytest.fixture(scope="module")
def records() -> pd.DataFrame:
    """Incomes and a label that differ between women and men."""
    generator = np.random.default_rng(5)
    sex = np.where(generator.random(5_000) < 0.33, "F", "M")
    income = np.round(generator.normal(50 + 10.0 * (sex == "M"), 10))
    return pd.DataFrame({"sex": sex, "income": income, "y": generator.random(5_000) < 0.2 + 0.2 * (sex == "M")})


def means(table: pd.DataFrame) -> dict[str, Any]:
    """A model that is nothing but averages; sex is not among them."""
    return {"income": table.income.mean(), "y": float(table.y.mean())}


def noise(table: pd.DataFrame, seed: int) -> Any:
    """A model that has learned nothing."""
    return np.random.default_rng(seed).normal(size=5)


def policy(low: float = 0.2, high: float = 0.45) -> ap.Policy:
    return ap.Policy(epsilon=1.0, protect=[ap.Secret(SECRET, between=(low, high))])


def mutant(table: pd.DataFrame, seed: int) -> pd.DataFrame:
    """What a view must not be: 85% of all rows, whatever they are."""
    return table.sample(frac=0.85, random_state=seed)


def test_the_numbers_of_a_coin() -> None:
    assert binom.cdf(COIN[0] - 1, 60, 0.5) + binom.sf(COIN[1], 60, 0.5) < 1e-6


def test_a_leak_is_found_and_a_view_has_none_and_a_mutant_has_it_again(records: pd.DataFrame) -> None:
    """Averages of 400 rows tell .2 from .45 with 99.9%: fewer than 49 of 60 are right less than once in a million runs."""
    audit = audit_model(means, records, SECRET, (0.2, 0.45), defences={"view": policy(), "mutant": mutant}, **SMALL)
    for kind in ("all rows", "mutant"):
        found = audit.result("means", kind)
        assert found.right > COIN[1]
        assert found.leaks
        assert 0 < found.epsilon <= found.epsilon_cap
        assert found.rows_low <= found.rows <= found.rows_high
        assert not found.promise
    view = audit.result("means", "view")
    assert COIN[0] <= view.right <= COIN[1]
    assert view.low <= 0.5 <= view.high
    assert "reveal nothing" in view.promise
    assert view.every_table
    assert audit.best.trained_on != "view"


def test_what_tells_nothing_is_a_coin(records: pd.DataFrame) -> None:
    """Also where every model is the same, and there is nothing to compare."""
    audit = audit_model({"noise": noise, "same": lambda table: {"a": 1.0}}, records, SECRET, (0.2, 0.45), **SMALL)
    for found in audit.results:
        assert COIN[0] <= found.right <= COIN[1]
        assert found.epsilon == 0
    assert "no attack that was tried, with 40 shadows, beat a coin" in str(audit)


def test_an_average_of_a_number(records: pd.DataFrame) -> None:
    """A model holds the very mean that is asked for: always right. Bins of the number do not hide it, and the audit says so."""
    between = {"[0, 50)": (0.1, 0.6), "[50, 120]": (0.4, 0.9)}
    binned = ap.Policy(
        epsilon=1.0,
        bins={"income": (0, 50, 120)},
        protect=[ap.Secret("distribution(income)", between=between)],
    )
    audit = audit_model(means, records, "mean(income)", (54.0, 59.0), defences=binned, **SMALL)
    assert audit.result("means").right == 60
    assert audit.result("means").n_leaked is None
    coarse = audit.result("means", "view")
    assert not coarse.promise
    assert "does not hide this secret" in coarse.caution
    assert coarse.right > COIN[1]


@pytest.mark.slow  # over two seconds
def test_a_reference_view_hides_the_mean(records: pd.DataFrame) -> None:
    """Cells of single values, from stated shares, with room for the tilt; a coin's range, once in a million."""
    found = records.income.value_counts(normalize=True)
    common = found[found > 0.02]
    rest = {"values": [int(v) for v in common.index], "shares": [float(s) for s in common]}
    hidden = ap.Policy(
        epsilon=1.0,
        delta=1e-6,
        protect=[ap.Secret("columns(income)")],
        reference=ap.Reference.model_validate(
            {"shares": {"income": rest}, "least_density": 0.5, "failure": 1e-6, "rarest_event": 1}
        ),
    )
    whole = records.astype({"income": "int64"})
    size: dict[str, Any] = {"rows": 4_000, "shadows": 20, "targets": 60}
    audit = audit_model(means, whole, "mean(income)", (56.0, 57.0), defences=hidden, **size)
    assert audit.result("means").right == 60
    view = audit.result("means", "view")
    assert view.promise
    assert not view.every_table  # rarest_event 1: the certificate is about the population alone
    assert COIN[0] <= view.right <= COIN[1]


# ------------------------------------------------------------------------------------------------- seeds, jobs, the clock


def test_a_seed_repeats_it_and_another_does_not(records: pd.DataFrame) -> None:
    def found(seed: int) -> Any:
        size: dict[str, Any] = {"rows": 100, "shadows": 20, "targets": 30}
        return audit_model(means, records, SECRET, (0.27, 0.38), seed=seed, **size).to_frame()

    pd.testing.assert_frame_equal(found(1), found(1))
    assert not found(1).equals(found(2))


@pytest.mark.slow  # over two seconds
def test_jobs_change_nothing(records: pd.DataFrame) -> None:
    """Not even a function of a notebook is a hindrance, where joblib is there."""
    pytest.importorskip("joblib")
    size: dict[str, Any] = {"rows": 100, "shadows": 20, "targets": 30}
    one, two = (
        audit_model(lambda t: means(t), records, SECRET, (0.27, 0.38), jobs=jobs, defences=policy(), **size) for jobs in (1, 2)
    )
    assert one.results == two.results


def test_the_clock_cuts_it_short(records: pd.DataFrame) -> None:
    """What is done is a smaller audit, of shadows and targets; and it says so."""
    told: list[Progress] = []
    seen: list[int] = []

    def train(table: pd.DataFrame) -> Any:
        seen.append(1)
        if len(seen) == 70:  # one of them is the first look
            limit.append(1)
        return means(table)

    limit: list[int] = []
    clock = time.monotonic
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: clock() + 1e6 * len(limit))
        audit = audit_model(train, records, SECRET, (0.2, 0.45), time_limit="10min", watch=told.append, **SMALL)
    assert (audit.shadows, audit.targets) == (28, 41)
    assert audit.tables_asked == 100
    assert any("the time limit came after 69 of 100" in line for line in audit.would_not_show)
    assert str(told[0]).startswith("table 1 of 100, about ")
    assert len(told) == 69


def test_too_little_time_is_an_error(records: pd.DataFrame) -> None:
    with pytest.raises(ap.UsageError, match="time_limit: 1 of 100 tables were made in it"):
        audit_model(means, records, SECRET, (0.2, 0.45), time_limit=1e-9, **SMALL)


# ------------------------------------------------------------------------------------------------------------ the result


@pytest.fixture(scope="module")
def audit(records: pd.DataFrame) -> ap.ModelAudit:
    return audit_model(means, records, SECRET, (0.2, 0.45), defences={"<b>": mutant}, **SMALL)


def test_it_can_be_kept_and_not_changed(audit: ap.ModelAudit) -> None:
    assert ap.ModelAudit.from_json(audit.to_json()) == audit
    with pytest.raises(Exception, match="frozen"):
        audit.seed = 3  # type: ignore[misc]


def test_frames(audit: ap.ModelAudit) -> None:
    frame = audit.to_frame()
    assert list(frame.trained_on) == ["all rows", "<b>"]
    assert (frame.share == frame.right / frame.targets).all()
    assert audit.to_frame("arrow").column_names == list(frame.columns)
    with pytest.raises(ap.UsageError, match="kind"):
        audit.to_frame("excel")


def test_html_escapes_names(audit: ap.ModelAudit) -> None:
    page = audit.to_html()
    assert page == audit._repr_html_()
    assert "<b>," not in page
    assert "&lt;b&gt;" in page
    assert "What it would not have seen" in page


def test_a_picture(audit: ap.ModelAudit) -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    axes = audit.plot(Figure().add_subplot())
    assert [dot.x for dot in audit.picture.marks if isinstance(dot, Dot)] == [one.share for one in audit.results]
    assert f"{audit.results[0].share:.1%}" in audit.picture.description
    assert [label.get_text() for label in axes.get_yticklabels()] == ["means, all rows: parameters", "means, <b>: parameters"]


def test_words(audit: ap.ModelAudit) -> None:
    text = str(audit)
    assert "share(sex = 'F') of its 400 rows was 0.2 or 0.45" in text
    assert "means, all rows: yes, its parameters give it away" in text
    assert "It is the recipe that was attacked" in text
    assert "Do not publish" not in text
    with pytest.raises(KeyError):
        audit.result("another")


def test_a_promise_that_fails_is_said_to(audit: ap.ModelAudit) -> None:
    broken = audit.results[0].model_copy(update={"promise": "nothing shows"})
    told = audit.model_copy(update={"results": (broken,)}).shows[0]
    assert "This is proved not to be: nothing shows. Once in 20 audits" in told


def test_proved_is_said_only_where_the_certificate_is_about_the_secret(records: pd.DataFrame) -> None:
    """Another column that says the same in these records may say something else in a table: a check, and no proof."""
    twin = records.assign(gender=records.sex)
    size: dict[str, Any] = {"rows": 400, "shadows": 20, "targets": 5, "defences": policy()}
    for secret, proved in ((SECRET, True), ("count(sex = 'F')", True), ("share(gender = 'F')", False)):
        values = (80, 180) if secret.startswith("count") else (0.2, 0.45)
        view = audit_model(means, twin, secret, values, **size).result("means", "view")
        assert view.promise
        assert view.every_table is proved


def test_the_words_of_a_proof_and_of_a_check(audit: ap.ModelAudit) -> None:
    coin = audit.results[0].model_copy(update={"promise": "nothing shows", "low": 0.4, "right": 30})
    for every_table, said, not_said in (
        (True, "That is proved: nothing", "no proof"),
        (False, "no proof for other", "is proved"),
    ):
        one = coin.model_copy(update={"every_table": every_table})
        told = audit.model_copy(update={"results": (one,)}).shows[0]
        assert said in told
        assert not_said not in told


# ------------------------------------------------------------------------------------------------ whose rows are read


def test_the_private_table_is_not_read(records: pd.DataFrame, tmp_path: Path) -> None:
    """A policy that names a table which is not there is as good as any: nobody looks."""
    (tmp_path / "policy.yaml").write_text(
        "attrpriv: 1\ndata: nowhere.parquet\nepsilon: 1.0\nledger: nowhere.ledger\nprotect:\n"
        "  - secret: share(sex = 'F')\n    between: [0.2, 0.45]\n",
        encoding="utf-8",
    )
    loaded = ap.Policy.load(tmp_path / "policy.yaml")
    audit_model(means, records, SECRET, (0.27, 0.38), defences=loaded, rows=100, shadows=20, targets=5)
    assert [path.name for path in tmp_path.iterdir()] == ["policy.yaml"]


def test_a_session_is_its_policy_and_its_table_stays_closed(records: pd.DataFrame, tmp_path: Path) -> None:
    with ap.Session(tmp_path / "nowhere.parquet", policy()) as session:
        audit = audit_model(means, records, SECRET, (0.27, 0.38), defences=session, rows=100, shadows=20, targets=5)
    assert {one.trained_on for one in audit.results} == {"all rows", "view"}


def test_the_protected_table_is_refused_as_records_and_own_is_asked_for_by_name(records: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    records.to_parquet(path, index=False)
    own = ap.Policy(epsilon=1.0, data=str(path), protect=[ap.Secret(SECRET, between=(0.2, 0.45))])
    size: dict[str, Any] = {"rows": 100, "shadows": 20, "targets": 5, "defences": own}
    for place in (path, str(path)):
        with pytest.raises(ap.DataError, match='say source="own"'):
            audit_model(means, place, SECRET, (0.27, 0.38), **size)
    audit = audit_model(means, path, SECRET, (0.27, 0.38), source="own", **size)
    assert str(audit).startswith("Do not publish.")
    assert "Do not publish." in audit.to_html()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rows": 1}, "rows: must be a whole number of at least 2"),
        ({"shadows": 19}, "shadows: must be a whole number of at least 20"),
        ({"jobs": 0}, "jobs: must be"),
        ({"seed": True}, "seed: must be"),
        ({"delta": 1.0}, "delta: must be"),
        ({"delta": float("nan")}, "delta: must be"),
        ({"confidence": 1.0}, "confidence: must be"),
        ({"source": "mine"}, "source: must be"),
        ({"time_limit": "soon"}, "time_limit: must be"),
        ({"attacks": ("loss",)}, "attacks: must be some of parameters, predictions. Got loss"),
        ({"attacks": ()}, "attacks: must be"),
        ({"defences": 3}, "defences: view must be a policy, a session or a function"),
        ({"defences": {"all rows": mutant}}, "defences: 'all rows' is"),
        ({"train": 3}, "train: must be a function"),
        ({"train": lambda table: "text"}, "train: nothing of model can be attacked"),
        ({"records": pd.DataFrame({"sex": []})}, "records: must have some rows"),
        ({"secret": "distribution(sex)"}, "secret: must have two values"),
        ({"secret": "columns(sex)"}, "secret: must have two values"),
        ({"secret": "mean(weight)", "values": (1, 2)}, "must be of a column of the records"),
        ({"secret": "mean(sex)", "values": (1, 2)}, "sex must be numbers"),
        ({"values": (0.3, 0.3)}, "values: must be two different numbers"),
        ({"values": (0.3, float("nan"))}, "values: must be two different numbers"),
        ({"values": (0.301, 0.302)}, "values: must differ in a table of 100 rows"),
        ({"values": (0.3, 1.2)}, "values: must lie between"),
    ],
)
def test_what_cannot_be_used_is_said(records: pd.DataFrame, changed: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"train": means, "records": records, "secret": SECRET, "values": (0.27, 0.38), "rows": 100}
    with pytest.raises(ap.UsageError) as caught:
        audit_model(**{**given, "shadows": 20, "targets": 5, **changed})
    assert message in str(caught.value)


def test_a_view_that_cannot_be_drawn_is_said(records: pd.DataFrame) -> None:
    with pytest.raises(ap.DataError, match="must lie in the range that the policy states"):
        audit_model(means, records, SECRET, (0.2, 0.45), defences=policy(0.25, 0.4), rows=100, shadows=20, targets=5)


# ------------------------------------------------------------------------------------------------------- predictions


class Fitted:
    """Answers with the mean income of its table, whatever it is asked; there is no number to be read in it."""

    __slots__ = ("_told",)

    def __init__(self, told: Callable[[], float]) -> None:
        self._told = told

    def predict_proba(self, rows: pd.DataFrame) -> Any:
        chance = np.full(len(rows), self._told() / 100)
        return np.column_stack([1 - chance, chance])


def closed(table: pd.DataFrame) -> Fitted:
    mean = float(table.income.mean())
    return Fitted(lambda: mean)


def test_predictions_tell_where_nothing_can_be_read(records: pd.DataFrame) -> None:
    audit = audit_model(closed, records, "mean(income)", (54.0, 59.0), **SMALL)
    (found,) = audit.results
    assert (found.attack, found.right) == ("predictions", 60)
    assert any(line.startswith("The parameters of closed: no number was found") for line in audit.would_not_show)


def test_a_probe_of_one_s_own_must_work(records: pd.DataFrame) -> None:
    size: dict[str, Any] = {"rows": 100, "shadows": 20, "targets": 5}
    with pytest.raises(KeyError):
        audit_model(means, records, SECRET, (0.27, 0.38), probe=lambda model: model["nothing"], **size)
    audit = audit_model(means, records, SECRET, (0.27, 0.38), probe=lambda model: [model["y"]], **size)
    assert [one.attack for one in audit.results] == ["parameters", "predictions"]
    assert sum(one.chosen for one in audit.results) == 1
