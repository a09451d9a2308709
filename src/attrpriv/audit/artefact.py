"""The numbers in what is handed out: every fitted number of an object, under a name that is the same from model to model.

    numbers, arrays                  as they are
    mappings, lists, frames, objects what is in them, private attributes too: who has the file has them all
    estimators with named columns    an array with an entry for each column is cut, so that models with other columns compare
    trees                            how often and for how many rows each column splits, where, and the first splits (`trees`)
    neural networks                  neurons in the order of their intercepts; tensors and layers of other libraries as arrays
    whatever is long                 how many, mean, standard deviation and quantiles

What must never change: nothing that a model holds is left out because it is not meant to be looked at. A scaler's means are as
much part of the model as its coefficients.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

from attrpriv.audit.tables import Floats
from attrpriv.audit.trees import Tree, tree_numbers, tree_of

Numbers = dict[str, Floats]

LONGEST = 512
_MOST_COLUMNS = 2_000
_DEEPEST = 16
_QUANTILES = np.linspace(0, 1, 11)


def numbers_of(fitted: object) -> Numbers:
    """Every number that a fitted object holds, by where it is."""
    walk = _Walk()
    walk.visit("", fitted, None)
    for path, (trees, names) in walk.trees.items():
        walk.found.update({f"{path}{name}": values for name, values in tree_numbers(trees, names).items()})
    return walk.found


@dataclass
class _Walk:
    """One visit to everything inside an object, each part once."""

    found: Numbers = field(default_factory=dict)
    trees: dict[str, tuple[list[Tree], Sequence[str] | None]] = field(default_factory=dict)
    seen: dict[int, object] = field(default_factory=dict)

    def visit(self, path: str, value: Any, names: Sequence[str] | None, depth: int = 0) -> None:
        if _is_opaque(value) or depth > _DEEPEST:
            return
        array = _array(value)
        if array is not None:
            self.add(path, array, names)
            return
        if id(value) in self.seen:
            return
        self.seen[id(value)] = value  # held, so that no other object gets its id
        tree = tree_of(value)
        if tree is not None:
            self.trees.setdefault(_above(path), ([], names))[0].append(tree)
            return
        inner = column_names(value) or names
        for name, part, of in _parts(value, inner):
            self.visit(f"{path}.{name}", part, of, depth + 1)

    def add(self, path: str, array: Floats, names: Sequence[str] | None) -> None:
        if names is not None and array.ndim and array.shape[-1] == len(names):
            for k, name in enumerate(names):
                self.found[f"{path}[{name}]"] = _short(array[..., k])
        elif array.ndim == 2 and array.size > LONGEST and array.shape[1] <= _MOST_COLUMNS:
            for k in range(array.shape[1]):
                self.found[f"{path}[{k}]"] = _short(array[:, k])
        else:
            self.found[path] = _short(array)


def _above(path: str) -> str:
    """Where the trees of one model are put together: the path without the numbers of its end."""
    parts = path.split(".")
    while parts and (parts[-1].isdigit() or parts[-1] in ("tree_", "")):
        parts.pop()
    return ".".join(parts)


def _short(array: Floats) -> Floats:
    return array.ravel() if array.size <= LONGEST else summary(array)


def summary(array: Floats) -> Floats:
    """Of numbers too many to compare, or of which there are not always as many."""
    known = array.ravel()[np.isfinite(array.ravel())]
    if not len(known):
        return np.zeros(3 + len(_QUANTILES))
    return np.concatenate([[array.size, known.mean(), known.std()], np.quantile(known, _QUANTILES)])


# ------------------------------------------------------------------------------------------------------ what things are


def _is_opaque(value: object) -> bool:
    """What holds no number of a fit: texts, code, and generators of random numbers."""
    if value is None or isinstance(value, str | bytes | ModuleType | type):
        return True
    code = inspect.isroutine(value) or inspect.isgenerator(value) or isinstance(value, np.dtype)
    return code or type(value).__module__.startswith(("numpy.random", "threading", "_thread", "logging"))


def _array(value: Any) -> Floats | None:
    """An array of floats, where the value is a number or numbers; of something else None."""
    if isinstance(value, bool | int | float | np.number | np.bool_):
        return np.array([_finite(value)])
    if hasattr(value, "detach") and hasattr(value, "numpy"):  # a tensor
        value = value.detach().cpu().numpy()
    if hasattr(value, "toarray") and hasattr(value, "nnz"):  # a sparse matrix
        value = value.toarray()
    if type(value).__module__.startswith("pandas") and hasattr(value, "dtype"):  # a column
        value = value.to_numpy()
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return np.asarray(value, np.float64)
    if isinstance(value, list | tuple) and value and all(isinstance(one, int | float) for one in value):
        return np.array([_finite(one) for one in value])
    return None


def _finite(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.nan


def _parts(value: Any, names: Sequence[str] | None) -> Iterator[tuple[str, Any, Sequence[str] | None]]:
    """What is inside, each part with its name and the names of the columns that it is about."""
    if hasattr(value, "items") and hasattr(value, "keys"):  # mappings, frames, series
        yield from ((str(name), part, names) for name, part in value.items())
    elif isinstance(value, np.ndarray) and value.dtype.names:
        yield from ((name, value[name], None) for name in value.dtype.names)
    elif isinstance(value, list | tuple | set | frozenset | np.ndarray):
        yield from ((str(k), part, names) for k, part in enumerate(value))
    elif hasattr(value, "state_dict"):  # a network of layers
        yield from ((str(name), part, None) for name, part in value.state_dict().items())
    elif hasattr(value, "get_weights") and not hasattr(value, "get_params"):
        yield from ((str(k), part, None) for k, part in enumerate(value.get_weights()))
    elif isinstance(getattr(value, "steps", None), list):
        yield from _steps(value)
    else:
        yield from ((name, part, names) for name, part in _state(value).items())


def _state(value: Any) -> dict[str, Any]:
    """The attributes of an object; of a network its neurons in order; of compiled objects what is pickled of them."""
    found = getattr(value, "__dict__", None)
    if not found:
        pickled = "__getstate__" in {name for base in type(value).__mro__[:-1] for name in vars(base)}
        return {"state": value.__getstate__() if pickled else None}
    if isinstance(found.get("coefs_"), list) and isinstance(found.get("intercepts_"), list):
        weights, intercepts = _sorted_neurons(found["coefs_"], found["intercepts_"])
        return {**found, "coefs_": weights, "intercepts_": intercepts, "_optimizer": None}
    return dict(found)


def _sorted_neurons(weights: Sequence[Any], intercepts: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The same network, with the neurons of each hidden layer in the order of their intercepts."""
    w, b = [np.array(one) for one in weights], [np.array(one) for one in intercepts]
    for k in range(len(w) - 1):
        order = np.argsort(b[k], kind="stable")
        w[k], b[k], w[k + 1] = w[k][:, order], b[k][order], w[k + 1][order]
    return w, b


# ----------------------------------------------------------------------------------------------------- names of columns


def column_names(value: Any) -> Sequence[str] | None:
    """The columns that an estimator was fitted on, where it knows them."""
    found = getattr(value, "feature_names_in_", None) if not isinstance(value, type) else None
    return None if found is None else [str(name) for name in found]


def _steps(value: Any) -> Iterator[tuple[str, Any, Sequence[str] | None]]:
    """The steps of a pipeline, each with the names of what comes out of the one before."""
    names = column_names(value)
    for name, step in value.steps:
        yield str(name), step, column_names(step) or names
        names = _names_out(step, names)


def _names_out(step: Any, names: Sequence[str] | None) -> Sequence[str] | None:
    if step is None or isinstance(step, str):  # a step that passes everything on
        return names
    try:
        told = step.get_feature_names_out() if hasattr(step, "feature_names_in_") else step.get_feature_names_out(names)
    except Exception:  # of any library: then columns have numbers instead of names
        return None
    return [str(name) for name in told]
