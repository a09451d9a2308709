"""Every fitted number is found, under a name that is the same from model to model; features are decided by shadows alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from attrpriv.audit.answers import answers_of
from attrpriv.audit.artefact import LONGEST, numbers_of, summary
from attrpriv.audit.features import Features
from attrpriv.audit.model import audit_model
from attrpriv.audit.trees import tree_of

NEEDED = "scikit-learn is no dependency of the project; these tests need its models"


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    generator = np.random.default_rng(3)
    numbers = generator.normal(size=(300, 2))
    y = numbers[:, 0] + generator.normal(size=300) > 0
    return pd.DataFrame({"a": numbers[:, 0], "b": numbers[:, 1], "c": generator.choice(list("xyz"), 300), "never": 0.0, "y": y})


# ------------------------------------------------------------------------------------------------- without any library


def test_numbers_of_plain_things() -> None:
    class Held:
        def __init__(self) -> None:
            self._hidden = 2.5
            self.nested = {"list": [1, 2.0], "text": "not a number", "more": (np.arange(3), True)}
            self.itself = self

    found = numbers_of(Held())
    assert {name: values.tolist() for name, values in found.items()} == {
        "._hidden": [2.5],
        ".nested.list": [1, 2],
        ".nested.more.0": [0, 1, 2],
        ".nested.more.1": [1],
    }


def test_what_is_long_is_summed_up() -> None:
    values = np.arange(LONGEST + 1, dtype=float)
    (found,) = numbers_of([values]).values()
    assert found.tolist() == summary(values).tolist()
    assert found[:2].tolist() == [LONGEST + 1, LONGEST / 2]


def test_features_come_from_shadows_alone() -> None:
    """A name that few have is left out, other sizes are summed up, and what a target lacks is the shadows' average."""
    shadows = [{"a": np.array([k, 2.0]), "b": np.zeros(1 + k)} for k in range(4)]
    shadows[0]["rare"] = np.ones(1)
    features = Features.of(shadows)
    assert features.sizes == {"a": 2, "b": None}
    table = features.table([{"new": np.ones(9)}, {"a": np.array([np.nan, 7.0])}])
    assert table[0, :2].tolist() == [1.5, 2]
    assert table[1, :2].tolist() == [1.5, 7]
    assert np.isfinite(table).all()


# ---------------------------------------------------------------------------------------------------- real models


def test_a_pipeline_by_the_names_of_its_columns(table: pd.DataFrame) -> None:
    """The scaler's means are found, exactly; coefficients have the names of what comes out of the step before."""
    pytest.importorskip("sklearn", reason=NEEDED)
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    columns = make_column_transformer((OneHotEncoder(), ["c"]), (StandardScaler(), ["a", "b"]))
    model = make_pipeline(columns, LogisticRegression()).fit(table[["a", "b", "c"]], table.y)
    found = numbers_of(model)
    assert found[".columntransformer.transformers_.1.1.mean_[a]"] == pytest.approx(table.a.mean())
    step = model[-1]
    told = {name: float(values[0]) for name, values in found.items() if ".coef_[" in name}
    names = ["onehotencoder__c_x", "onehotencoder__c_y", "onehotencoder__c_z", "standardscaler__a", "standardscaler__b"]
    assert told == {f".logisticregression.coef_[{name}]": value for name, value in zip(names, step.coef_[0], strict=True)}
    assert found[".logisticregression.intercept_"].tolist() == step.intercept_.tolist()


def test_naive_bayes(table: pd.DataFrame) -> None:
    pytest.importorskip("sklearn", reason=NEEDED)
    from sklearn.naive_bayes import GaussianNB

    found = numbers_of(GaussianNB().fit(table[["a", "b"]], table.y))
    assert found[".theta_[a]"] == pytest.approx(table.groupby("y").a.mean().to_numpy())
    priors = np.concatenate([values for name, values in found.items() if name.startswith(".class_prior_")])
    assert priors == pytest.approx([1 - table.y.mean(), table.y.mean()])


def test_a_forest_is_counted_column_by_column(table: pd.DataFrame) -> None:
    """Against a walk through every node; a column that never splits is there, with none."""
    pytest.importorskip("sklearn", reason=NEEDED)
    from sklearn.ensemble import RandomForestClassifier

    columns = ["a", "b", "never"]
    model = RandomForestClassifier(7, max_depth=4, random_state=1).fit(table[columns], table.y)
    found = numbers_of(model)
    splits, mass, left = np.zeros((3, 3))
    for tree in (one.tree_ for one in model.estimators_):
        for node in range(tree.node_count):
            if tree.children_left[node] != tree.children_right[node]:
                k = tree.feature[node]
                splits[k] += 1
                mass[k] += tree.weighted_n_node_samples[node]
                left[k] += tree.weighted_n_node_samples[tree.children_left[node]]
    for k, name in enumerate(columns):
        assert found[f".estimators_.splits[{name}]"] == splits[k]
        assert found[f".estimators_.mass[{name}]"] == mass[k]
        assert found[f".estimators_.leftwards[{name}]"] == pytest.approx(left[k] / mass[k] if mass[k] else 0)
    assert found[".estimators_.splits[never]"] == 0
    assert found[".estimators_.nodes"].tolist() == [sum(one.tree_.node_count for one in model.estimators_), splits.sum()]
    assert len(found[".estimators_.roots"]) == 3 * 7


def test_both_kinds_of_boosting_have_trees(table: pd.DataFrame) -> None:
    pytest.importorskip("sklearn", reason=NEEDED)
    from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier

    plain = GradientBoostingClassifier(n_estimators=3, random_state=1).fit(table[["a", "b"]], table.y)
    found = numbers_of(plain)
    nodes = sum(one.tree_.node_count for one in plain.estimators_.ravel())
    assert found[".estimators_.nodes"][0] == nodes
    binned = HistGradientBoostingClassifier(max_iter=3, random_state=1).fit(table[["a", "b"]], table.y)
    trees = [tree_of(one) for stage in binned._predictors for one in stage]
    assert all(tree is not None and tree.rows[0] == len(table) for tree in trees)
    assert numbers_of(binned)["._predictors.nodes"][0] == sum(len(one.nodes) for stage in binned._predictors for one in stage)


def test_neurons_in_another_order_are_the_same_network(table: pd.DataFrame) -> None:
    pytest.importorskip("sklearn", reason=NEEDED)
    import warnings
    from copy import deepcopy

    from sklearn.neural_network import MLPClassifier

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two rounds do not converge
        model = MLPClassifier((5,), max_iter=2, random_state=1).fit(table[["a", "b"]], table.y)
    other, order = deepcopy(model), [3, 1, 4, 0, 2]
    other.coefs_[0], other.intercepts_[0] = model.coefs_[0][:, order], model.intercepts_[0][order]
    other.coefs_[1] = model.coefs_[1][order]
    one, two = numbers_of(model), numbers_of(other)
    fitted = [name for name in one if name.startswith((".coefs_", ".intercepts_"))]
    assert fitted
    assert all(np.array_equal(one[name], two[name]) for name in fitted)


def boosted(table: pd.DataFrame, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(max_iter=3, max_leaf_nodes=4, random_state=seed).fit(table[["income"]], table.y)


@pytest.mark.slow  # over two seconds
def test_an_audit_of_boosting() -> None:
    """Incomes tell sex, so trees tell its share: .2 from .5 of 400 rows. A coin has 49 of 60 once in a million."""
    pytest.importorskip("sklearn", reason=NEEDED)
    generator = np.random.default_rng(5)
    sex = np.where(generator.random(4_000) < 0.35, "F", "M")
    income = generator.normal(50 + 20.0 * (sex == "M"), 5)
    records = pd.DataFrame({"sex": sex, "income": income, "y": generator.random(4_000) < 0.1 + 0.5 * (sex == "M")})
    audit = audit_model(boosted, records, "share(sex = 'F')", (0.2, 0.5), rows=400, shadows=40, targets=60)
    assert audit.best.right > 48
    assert {one.attack for one in audit.results} == {"parameters", "predictions"}


def test_a_model_that_is_too_sure_is_read_by_its_logarithms() -> None:
    """Chances of 1e-30 and 1e-40 are both 0 beside 1; their logarithms differ. A chance of 0 is no infinity."""

    class Sure:
        def predict_log_proba(self, rows: object) -> Any:
            return np.array([[-70.0, 0.0], [-90.0, 0.0], [-np.inf, 0.0]])

    assert answers_of(Sure(), np.zeros((3, 1))).tolist() == [70.0, 90.0, -np.log(1e-6)]
