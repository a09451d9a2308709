"""A model of diffprivlib and a histogram of OpenDP, in the ledger of a table that hides how many patients smoke.

    pip install diffprivlib "scikit-learn<1.6"         # diffprivlib 0.6.6 does not load beside later ones
    python examples/bridge/model.py

The patients are made up. Four rows change between two shares that must look alike, so that all algorithms together may spend
b = 1/4 for one row. Each is recorded first, and trained or drawn then; a count of our own has what is left.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import opendp.prelude as dp
import pyarrow as pa

import attrpriv as ap

ROWS = 4000
WARDS = ["north", "south", "east"]


def patients(seed: int = 1) -> pa.Table:
    """Smokers stay longer; who is older does too."""
    rng = np.random.default_rng(seed)
    smoker = rng.random(ROWS) < 0.3
    age = rng.integers(20, 90, ROWS)
    stay = np.rint(rng.gamma(2.0, 1.0 + smoker + age / 30)).astype(int)
    return pa.table({"smoker": np.where(smoker, "yes", "no"), "age": age, "stay": stay, "ward": rng.choice(WARDS, ROWS)})


def hidden() -> ap.Policy:
    """Shares a tenth of a percent apart must look alike: 4 of 4,000 rows."""
    smokers = ap.Counts(sensitive="smoker", given={"stay > 7": {"yes": 0.45, "no": 0.3}})
    return ap.Policy(rows=ROWS, epsilon=1.0, assume=smokers, protect=[ap.Secret("share(smoker = 'yes')", within=0.001)])


def trained(table: pa.Table, epsilon: float) -> float:
    """The accuracy of a model of stays of more than a week, trained by diffprivlib."""
    from diffprivlib.models import LogisticRegression

    scaled = ((table["age"].to_numpy() - 55) / 35)[:, None]  # by public numbers: ages are from 20 to 90
    long = table["stay"].to_numpy() > 7
    model = LogisticRegression(epsilon=epsilon, data_norm=1.0).fit(np.clip(scaled, -1, 1), long)
    return float(model.score(scaled, long))


def histogram(epsilon: float) -> dp.Measurement:
    """Patients by ward, by OpenDP: private for one row added or removed."""
    dp.enable_features("contrib")
    rows = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
    made: dp.Measurement = rows >> dp.t.then_count_by_categories(categories=WARDS) >> dp.m.then_laplace(scale=1 / epsilon)
    return made


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ledger", type=Path, default=Path("patients.ledger"))
    told = parser.parse_args(arguments)
    table, policy = patients(), hidden()
    with ap.Session(table, policy, ledger=told.ledger) as session:
        each = session.bridge().b / 4
        counts = histogram(each / 2)
        session.record_outside(b=counts.map(2), what="patients by ward, OpenDP, Laplace noise")
        print("by ward:", [round(value) for value in counts(table["ward"].to_pylist())])
        # Twice its epsilon: right whether the library counts rows replaced, or added and removed.
        session.record_outside(b=2 * each, what=f"long stays by age, diffprivlib, epsilon {each:.4f}")
        print(f"accuracy of the model: {trained(table, each):.2f}")
        print(f"left for counts: {session.left:.3f} of the budget")
        session.release("count(*) filter (where stay > 7)", "laplace", spend=1.0)
        print("entries:", [entry.kind for entry in session.recorded()])


if __name__ == "__main__":
    main()
