"""What is released of five statistics: Chen and Ohrimenko's mechanisms, written from their formulas, and attrpriv's.

    ExpM (Laplace)  Laplace noise on each statistic, its scale the sum of all |m1 - m2| / epsilon
    ExpM (Gauss)    noise N(0, t^2) on each statistic,     t = |m1 - m2| sqrt(2 ln(1.25/delta)) / epsilon
    EigM (Gauss)    normal noise along the eigenvectors of cov, so much that each eigenvalue becomes t^2 at least
    DirM (Laplace)  Laplace noise along v = (m1 - m2)/|m1 - m2|, its scale |m1 - m2| / epsilon
    DauM (Gauss)    noise N(0, s) along v,     s the least with  cov + s v v' >= t^2 v v',
                    so that the data's own spread counts: s = max(0, t^2 - 1/(v' cov^-1 v))

m1, m2 and cov are means and the average of the covariances of the statistics for the two shares (`chen2023protecting`). Theirs
are estimated from 1,000 data sets each; here they are what these estimates tend to, from all records.

attrpriv's `gaussian` and `transport` refuse the two columns of zeros and ones in a policy, whose rows are far from normal; as
in docs/theory/groups-transport.md they are planned here with the library, under the normal laws that the others assume too.
Noise is simulated with floats; the library itself draws on a grid, which is charged for.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attrpriv import Policy, Reference, Secret
from attrpriv.audit.tables import Statistic
from attrpriv.audit.views import View, view_of
from attrpriv.engines.tables import open_table
from attrpriv.methods.base.checks import GroupCheck
from attrpriv.methods.group_transport.correction import Expected, vector_moves
from attrpriv.methods.group_transport.proof import GroupVectorTransportEvidence
from attrpriv.methods.group_transport.vector_clamp import best_vector_clamp, beyond
from attrpriv.methods.groups.proof import GroupVectorEvidence
from attrpriv.numerics.calibration.gaussian import grid_charge
from attrpriv.numerics.calibration.groups import Equalised, equalise, least_group_covariance
from attrpriv.numerics.divergences.group_vector_clamp import Ball
from attrpriv.numerics.laws.groups import VectorCase
from bench.peers.budget import Unavailable
from bench.peers.five_statistics import STATISTICS, UNIT, Array, Setting, Tables

DELTA = 0.001
Release = Callable[[Tables, np.random.Generator], Array]


# ------------------------------------------------------------------------------------------------------------------ theirs


def apart(setting: Setting) -> tuple[float, Array]:
    """How far apart the two means are, and in which direction."""
    between = setting.moments(setting.counts[0])[0] - setting.moments(setting.counts[1])[0]
    length = float(np.linalg.norm(between))
    return length, between / length


def expm_laplace(setting: Setting, epsilon: float) -> Release:
    length, along = apart(setting)
    scale = length * float(abs(along).sum()) / epsilon
    return lambda tables, rng: tables.statistics + rng.laplace(0.0, scale, size=(len(tables.rows), len(UNIT)))


def dirm(setting: Setting, epsilon: float) -> Release:
    length, along = apart(setting)
    return lambda tables, rng: tables.statistics + np.outer(rng.laplace(0.0, length / epsilon, size=len(tables.rows)), along)


def least_sd(setting: Setting, epsilon: float) -> tuple[float, Array]:
    """t, and the direction from one mean to the other."""
    length, along = apart(setting)
    return length * math.sqrt(2 * math.log(1.25 / DELTA)) / epsilon, along


def expm(setting: Setting, epsilon: float) -> Release:
    sd, _ = least_sd(setting, epsilon)
    return lambda tables, rng: tables.statistics + sd * rng.normal(size=(len(tables.rows), len(UNIT)))


def average_covariance(setting: Setting) -> Array:
    return np.asarray(sum(setting.moments(count)[1] for count in setting.counts) / 2)


def eigenvector_root(setting: Setting, epsilon: float) -> Array:
    """R, where R R' is the covariance of EigM's noise."""
    values, vectors = np.linalg.eigh(average_covariance(setting))
    return np.asarray(vectors * np.sqrt(np.maximum(0.0, least_sd(setting, epsilon)[0] ** 2 - values)))


def eigm(setting: Setting, epsilon: float) -> Release:
    root = eigenvector_root(setting, epsilon)
    return lambda tables, rng: tables.statistics + rng.normal(size=(len(tables.rows), len(UNIT))) @ root.T


def directional_variance(setting: Setting, epsilon: float) -> tuple[float, Array]:
    sd, along = least_sd(setting, epsilon)
    covariance = average_covariance(setting)
    return max(0.0, sd**2 - 1 / float(along @ np.linalg.solve(covariance, along))), along


def daum(setting: Setting, epsilon: float) -> Release:
    variance, along = directional_variance(setting, epsilon)
    return lambda tables, rng: tables.statistics + math.sqrt(variance) * np.outer(rng.normal(size=len(tables.rows)), along)


# --------------------------------------------------------------------------------------------------- attrpriv, with noise


def case_of(setting: Setting) -> VectorCase:
    """All counts from one share's to the other's must look alike, not only these two."""
    low, high = setting.counts
    return VectorCase(setting.rows, low, high, high - low, (setting.law(True),), (setting.law(False),))


@dataclass(frozen=True)
class Charges:
    """What the grid and the lattice of the values cost, and what is left."""

    grid_lambda: float
    lattice_lambda: float
    grid_eta: float
    epsilon: float
    delta: float

    @classmethod
    def of(cls, case: VectorCase, equalised: Equalised, masks: list[float], epsilon: float) -> Charges:
        draws = len(STATISTICS) + sum(len(part.factor[0]) for part in equalised.parts)
        grid_lambda, grid_eta = grid_charge(len(STATISTICS), draws)
        lattice = lattice_charge(case, masks)
        lam = grid_lambda + lattice
        delta = (0.98 * DELTA - grid_eta * (1 + math.exp(epsilon))) * math.exp(-lam)
        return cls(grid_lambda, lattice, grid_eta, (epsilon - 2 * lam) * (1 - 1e-12), delta * (1 - 1e-6))

    def to_evidence(self) -> dict[str, float]:
        return {
            "grid_lambda": self.grid_lambda,
            "lattice_lambda": self.lattice_lambda,
            "grid_eta": self.grid_eta,
            "shape_lambda": 0.0,
            "shape_eta": 0.0,
            "clip_delta": 0.0,
            "fit_delta": 0.0,
            "reserve": 0.02 * DELTA,
        }


def lattice_charge(case: VectorCase, masks: list[float]) -> float:
    """What noise of so many spacings (of 1) on each average leaves of the lattice of the values, by Poisson summation."""
    laws = [np.array(law[1]) for law in (case.members[0], case.rest[0])]
    share = min(float(np.linalg.eigvalsh(m / np.sqrt(np.outer(np.diag(m), np.diag(m))))[0]) for m in laws)
    wave = 1.0
    for k, mask in enumerate(masks):
        data = case.n * share * min(float(matrix[k, k]) for matrix in laws)
        q = math.exp(-2 * math.pi**2 * data * mask**2 / (data + mask**2))
        wave *= 1 + 2 * q / (1 - q)
    return -math.log(2 - wave)


# Of one spacing, as plans have it; and of half a spacing for the columns of zeros and ones, whose errors count a hundredfold.
MASKS = ([1.0] * 5, [1.0, 1.0, 0.5, 0.5, 1.0])


def gaussian(setting: Setting, epsilon: float) -> Planned:
    return min((_gaussian(setting, epsilon, masks) for masks in MASKS), key=Planned.square)


def _gaussian(setting: Setting, epsilon: float, masks: list[float]) -> Planned:
    case = case_of(setting)
    equalised = equalise(case)
    left = Charges.of(case, equalised, masks, epsilon)
    noise = least_group_covariance(case, left.epsilon, left.delta, [mask / setting.rows for mask in masks])
    evidence = GroupVectorEvidence.model_validate(
        {
            "columns": STATISTICS,
            "check": GroupCheck(secret="share", theta=0, case=case),
            "equalised": equalised,
            "independent": noise.independent,
            "factor": noise.factor,
            **left.to_evidence(),
        }
    )
    return _certified(setting, evidence, epsilon, lambda tables: tables.averages)


def transport(setting: Setting, epsilon: float) -> Planned:
    return min((_transport(setting, epsilon, masks) for masks in MASKS), key=Planned.square)


def _transport(setting: Setting, epsilon: float, masks: list[float]) -> Planned:
    case = case_of(setting)
    parts = equalise(case).parts
    left = Charges.of(case, equalise(case), masks, epsilon)
    laws = np.array([case.members[0][0], case.rest[0][0]])
    middle = sum(setting.shares) / 2
    centre = tuple((middle * laws[0] + (1 - middle) * laws[1]).tolist())
    moves = vector_moves(case, parts, centre, Expected(None, (1.0,), (1.0,)))
    way = best_vector_clamp(case, left.epsilon, left.delta, moves, [mask / setting.rows for mask in masks])
    evidence = GroupVectorTransportEvidence.model_validate(
        {
            "columns": STATISTICS,
            "form": way.form,
            "check": GroupCheck(secret="share", theta=0, case=case),
            "equalised": way.equalised,
            "independent": way.independent,
            "factor": way.factor,
            "reach": way.reach,
            "metric": way.metric,
            "centre": centre,
            **left.to_evidence(),
        }
    )

    def taken_back(tables: Tables) -> Array:
        told = np.array([[tables.count, setting.rows - tables.count]]) @ laws / setting.rows - np.array(centre)
        return np.asarray(tables.averages - beyond(Ball(evidence.reach, np.array(evidence.metric)), told))

    return _certified(setting, evidence, epsilon, taken_back)


@dataclass(frozen=True, eq=False)
class Planned:
    """A release by attrpriv: the averages, less what is taken back, and noise that goes by how many rows have the property."""

    setting: Setting
    evidence: GroupVectorEvidence | GroupVectorTransportEvidence
    answers: Callable[[Tables], Array]

    def __call__(self, tables: Tables, rng: np.random.Generator) -> Array:
        shown = self.answers(tables)
        for factor in self._factors(tables.count):
            shown = shown + rng.normal(size=(len(shown), factor.shape[1])) @ factor.T
        return np.asarray(shown * UNIT)

    def moved(self, count: int) -> Array:
        """What is taken back, with its sign: it depends on the count alone."""
        still = _made_up(self.setting, count)
        return np.asarray((self.answers(still) - still.averages)[0] * UNIT)

    def noise(self, count: int) -> Array:
        """Its covariance."""
        found = sum((factor @ factor.T for factor in self._factors(count)), np.zeros((len(UNIT), len(UNIT))))
        return np.asarray(found * np.outer(UNIT, UNIT))

    def square(self) -> float:
        """About how far the release is off: what to choose a mask by, from public numbers."""
        return sum(float(np.trace(self.noise(one)) + (self.moved(one) ** 2).sum()) for one in self.setting.counts) / 2

    def _factors(self, count: int) -> list[Array]:
        low, high = self.evidence.check.case.low, self.evidence.check.case.high
        x = (count - low) / (high - low)
        weights = {"low": 1 - x, "high": x}
        found = [np.array(part.factor) * math.sqrt(weights[part.role]) for part in self.evidence.equalised.parts]
        factor = [np.array(self.evidence.factor)] if self.evidence.factor else []
        return [np.diag(self.evidence.independent), *factor, *found]


def _certified(
    setting: Setting,
    evidence: GroupVectorEvidence | GroupVectorTransportEvidence,
    epsilon: float,
    answers: Callable[[Tables], Array],
) -> Planned:
    if not evidence.delta(epsilon) <= DELTA:
        raise ValueError(f"epsilon {epsilon:g}: the promise must hold. Got a delta of {evidence.delta(epsilon):g}.")
    return Planned(setting, evidence, answers)


def _made_up(setting: Setting, count: int) -> Tables:
    """One table, of the first records."""
    has = setting.has
    rows = np.concatenate([np.flatnonzero(has)[:count], np.flatnonzero(~has)[: setting.rows - count]])
    return Tables(setting, count, rows[None, :])


# ---------------------------------------------------------------------------------------------------- attrpriv, with views


def view(setting: Setting) -> tuple[View, Release]:
    """The rows of a fixed, public composition, drawn as the library draws them; answers at the middle of the range."""
    middle = sum(setting.shares) / 2
    policy = Policy(epsilon=1.0, rows=setting.rows, protect=[Secret(_share(setting), between=setting.shares)])
    return _view(setting, policy, middle)


def reference_view(setting: Setting, place: Path) -> tuple[View, Release]:
    """Everything about the column, with half of the records as the public ones; answers at the public share."""
    public = setting.records.iloc[::2]
    file = place / f"{setting.key}.parquet"
    public.to_parquet(file)
    policy = Policy(
        epsilon=1.0,
        delta=1e-6,
        rows=setting.rows,
        protect=[Secret(f"columns({setting.column})")],
        reference=Reference(file=str(file), least_density=setting.least_density),
    )
    return _view(setting, policy, float((public[setting.column] == setting.category).mean()))


def _share(setting: Setting) -> str:
    return f"share({setting.column} = '{setting.category}')"


def _view(setting: Setting, policy: Policy, share: float) -> tuple[View, Release]:
    source = open_table(setting.records)
    drawn = view_of(policy, source, Statistic.of(_share(setting), source, setting.records, setting.rows), setting.rows)
    shown = {bool(one) for k, keep in enumerate(drawn.cells.keep) if keep for one in setting.has[drawn.cell == k]}
    if len(shown) < 2:
        raise Unavailable(f"a view of {setting.rows} rows would show rows of one kind only")

    def release(tables: Tables, rng: np.random.Generator) -> Array:
        found = np.empty((len(tables.rows), len(UNIT)))
        for k, rows in enumerate(tables.rows):
            kept = rows[drawn.kept(rows, hashlib.sha256(rng.bytes(16)).hexdigest())]
            has, values = setting.has[kept], setting.values[kept]
            found[k] = share * values[has].mean(axis=0) + (1 - share) * values[~has].mean(axis=0)
        return np.asarray(found * UNIT)

    return drawn, release
