"""What a model answers to rows that everybody knows: scores on one scale, so that they can be compared from model to model.

Chances become log-odds against the first class, because a linear attack sees more in them. Where a model gives the logarithms
itself, they are taken: naive Bayes is so sure that its chances are rounded to 0 and 1, and what they told is lost.

What must never change: the rows that are asked about (the probe) are the same for all models of an audit, and public.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from attrpriv.audit.artefact import column_names
from attrpriv.audit.tables import Floats
from attrpriv.errors import UsageError

PROBE_ROWS = 300
_LEAST_CHANCE = 1e-6
_METHODS = ("predict_log_proba", "predict_proba", "decision_function", "predict")


def answers_of(fitted: Any, probe: Any) -> Floats:
    """The answers to the probe: of a function what it gives for the model, of rows what the model says of them."""
    if callable(probe):
        return _checked(np.asarray(probe(fitted), np.float64))
    how = next((name for name in _METHODS if hasattr(fitted, name)), None)
    if how is None and not callable(fitted):
        raise UsageError("probe: the model has no predict and cannot be called. Give a function that takes it, as probe.")
    ask: Callable[[Any], Any] = fitted if how is None else getattr(fitted, how)
    with np.errstate(divide="ignore"):  # a logarithm of a chance of 0
        found = np.asarray(ask(_rows_for(fitted, probe)))
    if how == "predict_log_proba":
        found = differences(found)
    elif how == "predict_proba":
        found = log_odds(found)
    elif found.dtype.kind not in "biuf":  # names of classes
        found = np.unique(found, return_inverse=True)[1]
    return _checked(np.asarray(found, np.float64))


def log_odds(chances: Any) -> Floats:
    """Of each class against the first one."""
    kept = np.clip(np.asarray(chances, np.float64), _LEAST_CHANCE, 1 - _LEAST_CHANCE)
    if kept.ndim < 2 or kept.shape[-1] < 2:
        return np.asarray(np.log(kept) - np.log1p(-kept))
    return np.asarray(np.log(kept[..., 1:]) - np.log(kept[..., :1]))


def differences(logs: Any) -> Floats:
    """Of each class against the first one, where the logarithms of chances are given; a chance of 0 is the least one."""
    kept = np.asarray(logs, np.float64)
    kept = np.where(np.isneginf(kept), np.log(_LEAST_CHANCE), kept)
    return np.asarray(kept[..., 1:] - kept[..., :1])


def _rows_for(fitted: Any, probe: Any) -> Any:
    """Only the columns that the model was fitted on, where it says so and the probe has more."""
    names = column_names(fitted)
    return probe[list(names)] if names is not None and hasattr(probe, "columns") else probe


def _checked(found: Floats) -> Floats:
    if not found.size:
        raise UsageError("probe: must have some answers. Got none.")
    return found.ravel()
