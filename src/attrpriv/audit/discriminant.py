"""The attack: a linear discriminant between the features of two kinds of shadow models.

    z = (x - middle) / scale       scale: within a kind, not below a tenth of the whole spread; z is kept within 10
    w = (C + r I)^-1 (m1 - m0)     C: covariance of z within a kind; r: the shrinkage that cross-validation on shadows chooses
    "high" where w z > w (m0 + m1) / 2

A number that is the same for all models of a kind and differs between kinds tells everything; the tenth keeps it.

What must never change: everything is learned from shadows. Targets are only told apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from attrpriv.audit.tables import Floats

Flags = npt.NDArray[np.bool_]

SHRINKAGES = tuple(10.0**k for k in range(-4, 5))
FOLDS = 5
_LEAST_SPREAD = 0.1
_FURTHEST = 10.0
# Rounding: less of a spread, in units of the largest entry, is none.
_CONSTANT = 1e-12


@dataclass(frozen=True)
class Scale:
    """Features in units of their spread within a kind; those that never vary are left out."""

    used: Flags
    middle: Floats
    unit: Floats

    @classmethod
    def of(cls, features: Floats, high: Flags) -> Self:
        centres = features[~high].mean(axis=0), features[high].mean(axis=0)
        within = (features - np.where(high[:, None], centres[1], centres[0])).std(axis=0)
        whole = features.std(axis=0)
        used = whole > _CONSTANT * np.abs(features).max(axis=0, initial=0.0)
        unit = np.maximum(within, _LEAST_SPREAD * whole)[used]
        return cls(used, (centres[0] + centres[1])[used] / 2, unit)

    def __call__(self, features: Floats) -> Floats:
        return np.clip((features[:, self.used] - self.middle) / self.unit, -_FURTHEST, _FURTHEST)


@dataclass(frozen=True)
class Discriminant:
    """Who says "high" of some features."""

    scale: Scale
    direction: Floats
    threshold: float
    validated: float
    """the share of right guesses in cross-validation on the shadows"""

    @classmethod
    def trained(cls, features: Floats, high: Flags) -> Self:
        """Of shadows of both kinds; the shrinkage is the one that guesses best in cross-validation."""
        fold = np.arange(len(high)) // 2 % FOLDS  # shadows come in turns, so that there are both kinds in each
        guessed = np.zeros((len(SHRINKAGES), len(high)))
        for k in range(FOLDS):
            learned = _fits(features[fold != k], high[fold != k])
            guessed[:, fold == k] = [_scores(*one, features[fold == k]) for one in learned]
        right = np.mean((guessed > 0) == high, axis=1)
        best = max(range(len(SHRINKAGES)), key=lambda j: (right[j], _apart(guessed[j], high)))
        scale, direction, threshold = _fits(features, high)[best]
        return cls(scale, direction, threshold, float(right[best]))

    def says_high(self, features: Floats) -> Flags:
        return _scores(self.scale, self.direction, self.threshold, features) > 0


def _fits(features: Floats, high: Flags) -> Sequence[tuple[Scale, Floats, float]]:
    """A direction and a threshold for each shrinkage."""
    scale = Scale.of(features, high)
    z = scale(features)
    low_mean, high_mean = z[~high].mean(axis=0), z[high].mean(axis=0)
    gap, middle = high_mean - low_mean, (high_mean + low_mean) / 2
    _, size, axes = np.linalg.svd(z - np.where(high[:, None], high_mean, low_mean), full_matrices=False)
    variance = size**2 / max(len(high) - 2, 1)
    along = axes @ gap
    found = []
    for shrinkage in SHRINKAGES:
        direction = (gap - axes.T @ (variance / (variance + shrinkage) * along)) / shrinkage
        found.append((scale, direction, float(direction @ middle)))
    return found


def _scores(scale: Scale, direction: Floats, threshold: float, features: Floats) -> Floats:
    return np.asarray(scale(features) @ direction - threshold)


def _apart(scores: Floats, high: Flags) -> float:
    """How far apart the scores of the two kinds are, in units of their spread."""
    spread = np.sqrt((scores[high].var() + scores[~high].var()) / 2)
    return float((scores[high].mean() - scores[~high].mean()) / spread) if spread > 0 else 0.0
