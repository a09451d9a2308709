"""A table of several columns for tests of releases one after the other, and the joint distance of all of them by a twin."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import attrpriv as ap
from attrpriv.accounting.hash_chain import Entry
from attrpriv.policy import Policy
from attrpriv.session.record import recorded_plan
from tests.property import twin

ROWS = 500
COLUMNS = ("weight", "height", "sat", "age")
SDS = {"weight": 25.0, "height": 4.0, "sat": 200.0, "age": 3.0, "income": 30_000.0}
RHO = {"weight~income": 0.3, "height~income": 0.2, "sat~income": 0.4, "age~income": 0.1}
STATED: dict[str, Any] = {
    "epsilon": 1.0,
    "delta": 1e-6,
    "protect": [{"secret": "mean(income)", "between": [20_000, 200_000], "within": 3000}],
    "assume": {
        "kind": "gaussian",
        "mean": {"income": 60_000},
        "sd": SDS,
        "correlation": {f"{a}~{b}": RHO.get(f"{a}~{b}", 0.05) for i, a in enumerate(SDS) for b in list(SDS)[i + 1 :]},
        "tolerance": {"sd": 0.01, "slope": 0.02},
    },
    "release": ["avg(weight)", "avg(height)", "avg(sat)"],
}


def made(*drop: str, **changes: Any) -> Policy:
    stated = {**copy.deepcopy(STATED), **changes}
    return Policy(**{key: value for key, value in stated.items() if key not in drop})


def people(rows: int = ROWS, seed: int = 1) -> pa.Table:
    generator = np.random.default_rng(seed)
    common = generator.normal(size=rows)
    found = {"income": 60_000 + 30_000 * common}
    for column in COLUMNS:
        share = RHO[f"{column}~income"]
        found[column] = 100 + SDS[column] * (share * common + (1 - share**2) ** 0.5 * generator.normal(size=rows))
    return pa.table(found)


def session(place: Path | str, policy: Policy | None = None, table: Any = None) -> ap.Session:
    return ap.Session(people() if table is None else table, made() if policy is None else policy, ledger=place)


def reached(policy: Policy, entries: Sequence[Entry], members: int = 0) -> float:
    """How far apart the joint laws of everything released are, under this policy: by the twin, from the drawn noise alone."""
    plans = [recorded_plan(entry) for entry in entries if entry.kind == "release"]
    plans = [plan for plan in plans if plan.columns]
    blocks = [twin.drawn_noise(plan) for plan in plans]
    if not blocks:
        return 0.0
    size = sum(map(len, blocks))
    noise, at = np.zeros((size, size)), 0
    for block in blocks:
        noise[at : at + len(block), at : at + len(block)] = block
        at += len(block)
    columns = [part.column for plan in plans for part in plan.columns]
    problem = policy.problem(tuple(ap.mean(column) for column in columns), plans[0].n, {})
    rng = np.random.default_rng(5)
    return max(
        twin.separation(problem, moments, secret, noise)
        for member in problem.theta
        if isinstance(member, ap.Gaussian)
        for moments in twin.members(problem, member, rng, members)
        for secret in problem.secrets
    )
