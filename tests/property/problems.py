"""Random problems for property tests: as a data owner could state them, in wild units and at every size."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from attrpriv.assumptions.gaussian import Gaussian, Tolerance
from attrpriv.errors import PolicyError
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query


def log_uniform(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(math.log(low), math.log(high)).map(math.exp)


def log_integer(low: int, high: int) -> st.SearchStrategy[int]:
    return log_uniform(low, high).map(round)


tolerances = st.one_of(
    st.builds(Tolerance, correlation=st.just(0.0)),
    st.builds(Tolerance, mean=st.floats(0, 0.1), sd=st.floats(0, 0.3), slope=st.floats(0, 1.2)),
    st.builds(Tolerance, mean=st.floats(0, 0.1), sd=st.floats(0, 0.3), correlation=st.floats(0, 0.4)),
)


@st.composite
def gaussians(draw: st.DrawFn, columns: tuple[str, ...], sds: Mapping[str, float]) -> Gaussian:
    """Random correlations, some nearly singular; stated as sd and correlation, or as a covariance."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tightness = draw(st.floats(0, 0.98))
    loadings = rng.normal(size=(len(columns), 2))
    v = loadings @ loadings.T * tightness + np.eye(len(columns)) * (1 - tightness)
    r = v / np.sqrt(np.outer(np.diag(v), np.diag(v)))
    pairs = {(a, b): float(r[i, j]) for i, a in enumerate(columns) for j, b in enumerate(columns) if i < j}
    if draw(st.integers(0, 4)) == 0:
        pairs = dict.fromkeys(pairs, 0.0)
    mean = {c: draw(st.floats(-5, 5)) * sds[c] for c in columns} if draw(st.booleans()) else {}
    stated: dict[str, Any] = {"mean": mean, "tolerance": draw(tolerances)}
    if draw(st.booleans()):
        own = {(c, c): sds[c] ** 2 for c in columns}
        return Gaussian(covariance=own | {(a, b): rho * sds[a] * sds[b] for (a, b), rho in pairs.items()}, **stated)
    return Gaussian(sd=dict(sds), correlation=pairs, **stated)


@st.composite
def secrets(draw: st.DrawFn, column: str, sd: float, n: int) -> Secret:
    """A mean or a sum; its widest pair from a hundredth of its own spread to far beyond what it can be."""
    total = draw(st.booleans())
    unit = sd / math.sqrt(n) * (n if total else 1)
    gap = unit * draw(log_uniform(0.01, 1e4))
    form = draw(st.sampled_from(["between", "within", "both"]))
    start = draw(st.floats(-10, 10)) * unit
    stated: dict[str, Any] = {}
    if form != "within":
        stated["between"] = (start, start + gap)
    if form != "between":
        stated["within"] = gap * draw(st.floats(0.1, 2))
    return Secret(f"{'sum' if total else 'mean'}({column})", **stated)


@st.composite
def problems(draw: st.DrawFn, most_queries: int = 3) -> Problem:
    """One to three queries, one to three secrets, one or two assumptions; everything else declared or not."""
    n = draw(log_integer(2, 10**6))
    sensitive = tuple(f"x{k}" for k in range(draw(st.integers(1, 3))))
    asked = tuple(f"y{k}" for k in range(draw(st.integers(1, most_queries))))
    if draw(st.integers(0, 3)) == 0:  # a sensitive column's own average is asked for too
        asked = (*asked[:-1], sensitive[0])
    columns = tuple(dict.fromkeys((*asked, *sensitive)))
    sds = {c: draw(log_uniform(1e-3, 1e5)) for c in columns}
    # Values recorded on a spacing need a hundred rows; below that, declare one only now and then, to see it refused.
    declared = [c for c in columns if draw(st.integers(0, 9)) < (5 if n >= 100 else 1)]
    stated: dict[str, Any] = {
        "queries": tuple(Query(draw(st.sampled_from(["avg", "sum"])), c) for c in asked),
        "secrets": tuple(draw(secrets(c, sds[c], n)) for c in sensitive),
        "epsilon": draw(log_uniform(0.01, 10)),
        "delta": draw(log_uniform(1e-10, 0.1)),
        "n": n,
        "theta": tuple(draw(gaussians(columns, sds)) for _ in range(draw(st.integers(1, 2)))),
        "resolution": {c: sds[c] * draw(log_uniform(1e-6, 0.3)) for c in declared},
        "bounds": {c: (-sds[c] * width, sds[c] * width) for c in asked if (width := draw(st.sampled_from([0.0, 5.0, 40.0])))},
        "known_rows": draw(st.sampled_from([0.0, 0.0, 0.1, 0.5, 0.9])),
    }
    try:
        return Problem(**stated)
    except PolicyError as error:  # a spacing or bounds that leave the secret one value
        assume("there is nothing to hide" not in str(error) and "no two values" not in str(error))
        raise
