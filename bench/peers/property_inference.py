"""Property inference on Adult, as Suri and Evans (2022) have it: does a model tell the share of women of its training table?

Undefended, with differentially private training (diffprivlib, in its own environment), on a view, and on a reference view. The
records are public ones, in three parts: tables are drawn from the first, the second is the reference, accuracy is measured on
the third. `ap.audit_model` attacks. What diffprivlib trains is asked for at once: a first audit only tells which tables there
will be, and the second one looks their models up.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import attrpriv as ap
from attrpriv.audit.result import Attacked, ModelAudit
from attrpriv.audit.tables import Draws, Statistic
from attrpriv.audit.told_rows import n_leaked
from attrpriv.audit.views import defences_of
from attrpriv.engines.tables import open_table
from bench.peers.adult import adult
from bench.peers.budget import Budget, Unavailable
from bench.peers.environment import in_environment, versions_in
from bench.peers.libraries import LIBRARIES
from bench.peers.results import Cell, Form, Result, Row, Table, mean_of, measured

NAME = "property_inference"
TITLE = "Property inference (Suri and Evans, 2022)"
NEEDS = ("sklearn", "pandas")
SECONDS = 400.0
SEED = 22

SECRET, VALUES = "share(sex = 'Female')", (0.4, 0.5)
ROWS, SHADOWS, TARGETS, SCORED = 5_000, 200, 250, 40
PARTS = (24_421, 12_000)  # of the records: for tables, as the reference; the rest for accuracy
TABLE = f"Is the share of women {VALUES[0]:.0%} or {VALUES[1]:.0%}? Logistic regression on {ROWS:,} rows"
FEATURES = ["age", "education_num", "capital_gain", "capital_loss", "hours_per_week"]
EPSILONS = (0.1, 1.0, 10.0)
# A row is clipped to this length: of five features with standard deviation 1, few are longer.
NORM = 4.0
PEER = "diffprivlib"
REQUIREMENTS = next(each.requirements for each in LIBRARIES if each.name == PEER)
SCRIPT = Path(__file__).parent / "inside" / "diffprivlib_logistic.py"
COLUMNS: dict[str, Form] = {
    "trained": "text",
    "attack is right": "percent",
    "n_leaked": "number",
    "accuracy": "percent",
    "hides": "text",
}
Array = NDArray[np.float64]


def run(budget: Budget) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        setting = Setting.of(Path(folder))
        budget.say("views")
        plain = _audited(setting, _regression(setting), setting.views)
        rows = [_row("undefended", setting, plain, "all rows", "nothing", _regression(setting))]
        notes: list[str] = []
        versions: dict[str, str] = {}
        try:
            budget.say("differentially private training")
            told = versions_in(PEER, REQUIREMENTS, _PACKAGES)
            private = Private.of(setting, Path(folder), 1.5 * budget.seconds)
            versions = {f"{PEER} environment: {package}": number for package, number in told.items()}
        except Unavailable as reason:
            private = None
            notes.append(f"differentially private training was left out: {reason}")
        for epsilon in EPSILONS:
            budget.say(f"differentially private training, epsilon {epsilon:g}")
            hides = f"each single person (ε = {epsilon:g})"
            rows.append(_private_row(f"differential privacy, ε = {epsilon:g}", setting, private, epsilon, hides))
        for name, hides in (
            ("view", "shares of women from 35% to 55% (ε = 0)"),
            ("reference view", "sex in the table (ε = 0)"),
        ):
            budget.say(f"accuracy, {name}")
            rows.append(_row(name, setting, plain, name, hides, _regression(setting)))
        tables = [Table.of("attacks", TABLE, COLUMNS, rows), _kept(setting)]
    return Result.of(
        NAME,
        TITLE,
        seconds=budget.spent,
        seed=SEED,
        tables=tables,
        notes=[
            f"{SHADOWS} shadow models and {TARGETS} targets for each row of the table; accuracy over {SCORED} tables",
            *notes,
        ],
        packages=("scikit-learn",),
        versions=versions,
    )


_PACKAGES = ("diffprivlib", "scikit-learn", "numpy")


# ---------------------------------------------------------------------------------------------------------------- the data


@dataclass(frozen=True, eq=False)
class Setting:
    """The records in three parts, and the public numbers by which features are scaled."""

    records: Any
    held_out: Any
    centre: Array
    scale: Array
    views: Mapping[str, ap.Policy]

    @classmethod
    def of(cls, folder: Path) -> Setting:
        rows = adult().copy()
        rows["high"] = (rows["income"] == ">50K").astype(np.int64)
        rows = rows[[*FEATURES, "sex", "high"]]
        records = rows.iloc[: PARTS[0]].reset_index(drop=True)
        records["record"] = np.arange(len(records))
        public = rows.iloc[PARTS[0] : sum(PARTS)]
        public.to_parquet(folder / "public.parquet")
        values = _gains(public[FEATURES].to_numpy(np.float64))
        reference = ap.Reference(file=str(folder / "public.parquet"), least_density=0.7)
        hidden = [ap.Secret("columns(sex)")]
        views = {
            "view": ap.Policy(epsilon=1.0, rows=ROWS, protect=[ap.Secret(SECRET, between=(0.35, 0.55))]),
            "reference view": ap.Policy(epsilon=1.0, delta=1e-6, rows=ROWS, protect=hidden, reference=reference),
        }
        return cls(records, rows.iloc[sum(PARTS) :], values.mean(axis=0), values.std(axis=0), views)

    def scaled(self, table: Any) -> Array:
        """Features, by public numbers; rows as long as `NORM` at most."""
        found = (_gains(table[FEATURES].to_numpy(np.float64)) - self.centre) / self.scale
        length = np.linalg.norm(found, axis=1, keepdims=True)
        return np.asarray(found * np.minimum(1.0, NORM / np.maximum(length, 1e-12)))


def _gains(values: Array) -> Array:
    """Capital gains and losses by their logarithm."""
    found = values.copy()
    found[:, 2:4] = np.log1p(found[:, 2:4])
    return found


# -------------------------------------------------------------------------------------------------------------- the models


@dataclass(frozen=True, eq=False)
class Model:
    """All that a logistic regression is."""

    weights: Array
    intercept: float
    scaled: Callable[[Any], Array] = field(repr=False)

    def predict_proba(self, table: Any) -> Array:
        high = 1 / (1 + np.exp(-np.clip(self.scaled(table) @ self.weights + self.intercept, -500, 500)))
        return np.column_stack([1 - high, high])

    def score(self, table: Any) -> float:
        return float(((self.predict_proba(table)[:, 1] > 0.5) == table["high"].to_numpy()).mean())


Train = Callable[[Any, int], Model]


def _regression(setting: Setting) -> Train:
    from sklearn.linear_model import LogisticRegression

    def logistic_regression(table: Any, seed: int) -> Model:
        fitted = LogisticRegression().fit(setting.scaled(table), table["high"].to_numpy())
        return Model(fitted.coef_[0], float(fitted.intercept_[0]), setting.scaled)

    return logistic_regression


@dataclass(frozen=True, eq=False)
class Private:
    """Models with differential privacy, by their tables' records."""

    scaled: Callable[[Any], Array]
    models: Mapping[float, Mapping[bytes, list[float]]]

    @classmethod
    def of(cls, setting: Setting, folder: Path, most: float) -> Private:
        tables = _tables(setting)
        files = {"features": setting.scaled(setting.records), "labels": setting.records["high"].to_numpy()}
        for name, values in files.items():
            np.save(folder / f"{name}.npy", values)
        payload = {
            **{name: str(folder / f"{name}.npy") for name in files},
            "tables": [rows.tolist() for rows, _ in tables.values()],
            "seeds": [seed for _, seed in tables.values()],
            "epsilons": EPSILONS,
            "data_norm": NORM,
        }
        found = in_environment(PEER, REQUIREMENTS, SCRIPT, payload, timeout=most)
        return cls(setting.scaled, {e: dict(zip(tables, found[str(e)], strict=True)) for e in EPSILONS})

    def train(self, epsilon: float) -> Train:
        def with_differential_privacy(table: Any, seed: int) -> Model:
            *weights, intercept = self.models[epsilon][_key(table)]
            return Model(np.array(weights), intercept, self.scaled)

        return with_differential_privacy


def _key(table: Any) -> bytes:
    return bytes(table["record"].to_numpy(np.int64).tobytes())


def _tables(setting: Setting) -> dict[bytes, tuple[NDArray[np.int64], int]]:
    """The tables that an audit draws, and those for the accuracy: their records and seeds."""
    found: dict[bytes, tuple[NDArray[np.int64], int]] = {}

    def noted(table: Any, seed: int) -> list[float]:
        found[_key(table)] = (table["record"].to_numpy(np.int64), seed)
        return [float(seed)]

    ap.audit_model(noted, setting.records, SECRET, VALUES, attacks=("parameters",), watch=_unseen, **_SIZE)
    for seed, table in enumerate(_for_accuracy(setting, "all rows")):
        noted(table, seed)
    return found


# ---------------------------------------------------------------------------------------------------------------- attacks

_SIZE: dict[str, Any] = {"rows": ROWS, "shadows": SHADOWS, "targets": TARGETS, "seed": SEED}


def _unseen(progress: object) -> None:
    return None


def _audited(setting: Setting, train: Train, defences: Mapping[str, ap.Policy]) -> ModelAudit:
    """Probes are rows of records, of which a model knows nothing but its features."""
    probe = setting.records.iloc[:300]
    return ap.audit_model(
        train,
        setting.records,
        SECRET,
        VALUES,
        defences=dict(defences),
        parameters=lambda model: {"weights": model.weights, "intercept": [model.intercept]},
        probe=probe,
        watch=_unseen,
        **_SIZE,
    )


def _row(name: str, setting: Setting, audit: ModelAudit, trained_on: str, hides: str, train: Train) -> Row:
    chosen = next(one for one in audit.chosen if one.trained_on == trained_on)
    right = measured(chosen.share, *_interval(chosen))
    scores = [train(table, seed).score(setting.held_out) for seed, table in enumerate(_for_accuracy(setting, trained_on))]
    return [name, right, _leaked(right), mean_of(scores), hides]


def _private_row(name: str, setting: Setting, private: Private | None, epsilon: float, hides: str) -> Row:
    """Without numbers where the library is not here: the page speaks of these rows."""
    if private is None:
        return [name, None, None, None, hides]
    train = private.train(epsilon)
    return _row(name, setting, _audited(setting, train, {}), "all rows", hides, train)


def _leaked(right: Cell) -> Cell:
    """Suri and Evans' number, and its interval; it has no upper end where all guesses may be right."""
    found, low, high = (n_leaked(float(one), VALUES) for one in (right.value or 0.0, right.low or 0.0, right.high or 0.0))
    if found is None or low is None or high is None:
        return Cell(value=f"over {low:.3g}")
    return measured(found, low, high)


def _interval(one: Attacked) -> tuple[float, float]:
    """Exact, of this number alone: an audit's own limits hold for all its attacks at once."""
    from attrpriv.audit.bounds import interval

    return interval(one.right, one.targets, 0.05)


def _for_accuracy(setting: Setting, trained_on: str) -> list[Any]:
    """Tables in turns of either kind, after what is done to them."""
    source = open_table(setting.records)
    statistic = Statistic.of(SECRET, source, setting.records, ROWS)
    draws = Draws.of(statistic, VALUES, ROWS)
    defence = defences_of(dict(setting.views), source, statistic, ROWS)[trained_on]
    return [defence.table(setting.records, draws.rows(k % 2 == 1, np.random.default_rng([SEED, k])), k) for k in range(SCORED)]


def _kept(setting: Setting) -> Table:
    """How many rows are trained on."""
    found = {name: len(_for_accuracy(setting, name)[0]) for name in ("all rows", *setting.views)}
    return Table.of("rows", "Rows that a model is trained on", {"trained on": "text", "rows": "whole"}, list(found.items()))
