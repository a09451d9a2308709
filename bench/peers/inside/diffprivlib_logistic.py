"""Logistic regression with differential privacy by diffprivlib, on many tables of the same records.

In:   features (a .npy file, one row a record, already scaled), labels (the same), tables (the records of each), seeds,
      epsilons, data_norm
Out:  of each epsilon, the coefficients and then the intercept of each table's model
"""

from __future__ import annotations

import json
import os
import sys
import warnings

# Many small models: threads of linear algebra would only wait for each other.
os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import numpy as np
from diffprivlib.models import LogisticRegression


def main() -> None:
    given = json.load(sys.stdin)
    features, labels = np.load(given["features"]), np.load(given["labels"])
    warnings.simplefilter("ignore")  # of versions of SciPy that are newer than the library
    found: dict[str, list[list[float]]] = {}
    for epsilon in given["epsilons"]:
        found[str(epsilon)] = []
        for rows, seed in zip(given["tables"], given["seeds"], strict=True):
            model = LogisticRegression(epsilon=epsilon, data_norm=given["data_norm"], random_state=seed)
            model.fit(features[rows], labels[rows])
            found[str(epsilon)].append([*model.coef_[0].tolist(), float(model.intercept_[0])])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
