"""Models of 5,000 Adult rows give away the share of women (.27, .38) and the mean age (38.0, 39.4); on views they do not.

All at the default size, with a seed. Measured: 100% on naive Bayes and behind a scaler, 97% on boosting, 88% on logistic
regression alone (its parameters 91%, but shadows chose its predictions). An interval on a view has confidence 1 - 1e-7. The
processor needs 15 to 120 seconds for a model, so that two cores are done in less than five minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import attrpriv as ap
from examples.adult.load import load

pytestmark = pytest.mark.slow
SECRET, VALUES = "share(sex = 'Female')", (0.27, 0.38)
COLUMNS = ["age", "education_num", "capital_gain", "capital_loss", "hours_per_week"]


@pytest.fixture(scope="module")
def records(shared: Path) -> pd.DataFrame:
    found: pd.DataFrame = load(shared / "data").train.to_pandas()
    return found


def fitted(model: Any, table: pd.DataFrame) -> Any:
    return model.fit(table[COLUMNS], table["income"].str.contains(">50K").to_numpy())


def naive_bayes(table: pd.DataFrame, seed: int) -> Any:
    from sklearn.naive_bayes import GaussianNB

    return fitted(GaussianNB(), table)


def scaled(table: pd.DataFrame, seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return fitted(make_pipeline(StandardScaler(), LogisticRegression()), table)


def boosting(table: pd.DataFrame, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return fitted(HistGradientBoostingClassifier(random_state=seed), table)


def logistic(table: pd.DataFrame, seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return fitted(LogisticRegression(max_iter=2_000), table)


def wrong(table: pd.DataFrame, seed: int) -> pd.DataFrame:
    """What a view must not be: 85% of all rows, whatever they are."""
    return table.sample(frac=0.85, random_state=seed)


@pytest.mark.parametrize(("train", "least"), [(naive_bayes, 0.97), (scaled, 0.97), (logistic, 0.8), (boosting, 0.8)])
def test_the_share_shows(records: pd.DataFrame, train: Callable[..., Any], least: float) -> None:
    """Whatever attack is in the foreground, which was decided on shadows."""
    pytest.importorskip("sklearn")
    audit = ap.audit_model(train, records, SECRET, VALUES, rows=5_000, jobs=2, seed=1)
    assert audit.best.share >= least


def hidden(audit: ap.ModelAudit) -> None:
    """The view is a coin in every interval, and what is not the view has the leak again."""
    on_view = [one for one in audit.results if one.trained_on == "view"]
    assert len(on_view) == 4
    assert all(one.low <= 0.5 <= one.high and one.promise for one in on_view)
    for kind in ("all rows", "wrong"):
        for model in ("naive Bayes", "scaled"):
            assert audit.result(model, kind, "parameters").share >= 0.97


MODELS = {"naive Bayes": naive_bayes, "scaled": scaled}
SIZE: dict[str, Any] = {"rows": 5_000, "jobs": 2, "seed": 1, "confidence": 1 - 1e-7}


def test_the_share_does_not_show_on_the_view_and_shows_again_on_a_wrong_one(records: pd.DataFrame) -> None:
    pytest.importorskip("sklearn")
    view = ap.Policy(epsilon=1.0, rows=5_000, protect=[{"secret": SECRET, "between": [0.25, 0.4]}])
    hidden(ap.audit_model(MODELS, records, SECRET, VALUES, defences={"view": view, "wrong": wrong}, **SIZE))


def test_a_mean_does_not_show_on_a_view_of_single_years(records: pd.DataFrame, shared: Path, tmp_path: Path) -> None:
    """The reference is the other half of Adult; each year of age is a cell."""
    pytest.importorskip("sklearn")
    load(shared / "data").test.to_pandas().to_parquet(tmp_path / "public.parquet")
    view = ap.Policy(
        epsilon=1.0,
        delta=1e-6,
        protect=[ap.Secret("columns(age)")],
        reference=ap.Reference(file=str(tmp_path / "public.parquet"), least_density=0.8),
    )
    hidden(ap.audit_model(MODELS, records, "mean(age)", (38.0, 39.4), defences={"view": view, "wrong": wrong}, **SIZE))
