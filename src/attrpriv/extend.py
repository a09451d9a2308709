"""For authors of methods and assumptions: everything that one is written with, under one name (docs/guide/own-method.md).

    from attrpriv import extend
    method = extend.register(extend.Method("mine", (extend.Form((extend.LATTICE,), f"{__name__}:plan"),), page="..."))

| to | there is |
|---|---|
| describe a method | `Method`, `Form`, the shapes (`LATTICE`, `SHIFT`, ...), `register` |
| read a problem | `Problem`, `counted` (what a row adds to a count), `RecordLaws`, `CountPairs`, `CountCheck` |
| refuse | `Refusal`, `Cause`, `other_assumption` |
| prove | `Evidence`, `Counted`, `Certificate`, `Guarantee`; `rounding`, so that no number is too small |
| draw | `AveragesPart` of `ColumnPlan`s, `TallyPart` of a `Tally`; the noise itself is drawn by attrpriv, exactly |
| say what to expect | `ExpectedError`, `Noise`, `ModelError`, `WholeSpread`, `gaussian_error`, `laplace_error` |
| make the plan | `assemble`, `common_assumptions` |
| state an assumption | `Assumption`; `FrozenModel` and its numbers `Finite`, `Positive`, `NonNegative`, `Range` |

What must never change: nothing here draws or releases; a plan from outside passes every check that one of ours does.
"""

from __future__ import annotations

from typing import TypeVar

from attrpriv.cases.lattice import CountCase, counted
from attrpriv.errors import UsageError
from attrpriv.frozen import Finite, FrozenMap, FrozenModel, NonNegative, Positive, Range
from attrpriv.methods.base.accuracy import ExpectedError, ModelError, Noise, gaussian_error, laplace_error, off_by
from attrpriv.methods.base.certificate import Certificate, Guarantee, common_assumptions
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.base.evidence import Counted, CountEvidence, Evidence
from attrpriv.methods.base.parts import AveragesPart, Part, TallyPart
from attrpriv.methods.base.plan import Plan, assemble
from attrpriv.methods.base.tally import Tally, WholeSpread
from attrpriv.methods.count_noise.proof import CountCheck
from attrpriv.methods.table import Form, Method
from attrpriv.methods.table import register as _register_method
from attrpriv.numerics import rounding
from attrpriv.numerics.laws.records import CountPairs, RecordLaws, exactly
from attrpriv.problem.assumption import Assumption
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, no_delta, other_assumption
from attrpriv.problem.shapes import CHAIN, LATTICE, POPULATION, QUILT, RECORDED, SHIFT, STATED, UNEQUAL

Registered = TypeVar("Registered", Method, type[Assumption])


def register(what: Registered) -> Registered:
    """Add a method, or the class of an assumption (which its own definition has added already); returns it.

    Args:
        what: a `Method`, or a subclass of `Assumption`. If its name, or a kind of its evidence, is taken, `UsageError`.

    Examples:
        >>> import attrpriv as ap
        >>> ap.register(ap.Gaussian) is ap.Gaussian  # ours are there already; docs/guide/own-method.md adds one
        True
    """
    if isinstance(what, Method):
        _register_method(what)
    elif not (isinstance(what, type) and issubclass(what, Assumption) and what in Assumption.kinds.values()):
        name = what.__name__ if isinstance(what, type) else type(what).__name__
        raise UsageError(f"register: must be given a Method, or the class of an assumption with a kind. Got {name}.")
    return what


__all__ = [
    "CHAIN",
    "LATTICE",
    "POPULATION",
    "QUILT",
    "RECORDED",
    "SHIFT",
    "STATED",
    "UNEQUAL",
    "Assumption",
    "AveragesPart",
    "Cause",
    "Certificate",
    "ColumnPlan",
    "CountCase",
    "CountCheck",
    "CountEvidence",
    "CountPairs",
    "Counted",
    "Evidence",
    "ExpectedError",
    "Finite",
    "Form",
    "FrozenMap",
    "FrozenModel",
    "Guarantee",
    "Method",
    "ModelError",
    "Noise",
    "NonNegative",
    "Part",
    "Plan",
    "Positive",
    "Problem",
    "Range",
    "RecordLaws",
    "Refusal",
    "Tally",
    "TallyPart",
    "WholeSpread",
    "assemble",
    "common_assumptions",
    "counted",
    "exactly",
    "gaussian_error",
    "laplace_error",
    "no_delta",
    "off_by",
    "other_assumption",
    "register",
    "rounding",
]
