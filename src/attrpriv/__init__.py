"""attrpriv: release statistics of a table while hiding properties of its sensitive columns.

    import attrpriv as ap
    policy = ap.Policy.load("students.yaml")
    with ap.Session("students.parquet", policy, ledger="students.ledger") as session:
        release = session.release("avg(weight)")

The public names are listed in `__all__`. Nothing happens at import: each name loads its module when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False  # known to type checkers; `typing` itself would take longer than all of this, before Ctrl-C is handled
if TYPE_CHECKING:
    from typing import Any

    from attrpriv import extend, queries
    from attrpriv.assumptions.chain import Chain
    from attrpriv.assumptions.channel import Channel
    from attrpriv.assumptions.counts import Counts
    from attrpriv.assumptions.gaussian import Gaussian, Tolerance
    from attrpriv.assumptions.groups import Groups, GroupTolerance
    from attrpriv.assumptions.hierarchy import Hierarchy
    from attrpriv.assumptions.laws import Laws
    from attrpriv.assumptions.parameter_network import ParameterNetwork
    from attrpriv.assumptions.recorded_table import RecordedTable
    from attrpriv.assumptions.records import Records
    from attrpriv.audit.leaks import LeakageMap, leaks
    from attrpriv.audit.model import audit_model
    from attrpriv.audit.release.result import ReleaseAudit
    from attrpriv.audit.release.run import audit_release
    from attrpriv.audit.result import ModelAudit
    from attrpriv.engines.moments import PublicTable
    from attrpriv.errors import (
        AttrprivError,
        Cause,
        CertificateError,
        DataError,
        PolicyError,
        QueryError,
        RefusedError,
        UsageError,
    )
    from attrpriv.extend import register
    from attrpriv.methods.base.certificate import Certificate, Guarantee
    from attrpriv.methods.base.plan import Plan
    from attrpriv.methods.choice.choose import plan, rank
    from attrpriv.numerics import calibration, divergences, laws
    from attrpriv.policy.models import Policy
    from attrpriv.problem.problem import Problem
    from attrpriv.problem.reference import Reference
    from attrpriv.problem.refusal import Refusal
    from attrpriv.problem.secret import Parameter, Secret
    from attrpriv.queries.query import Query, count, mean, total
    from attrpriv.session.against import try_on
    from attrpriv.session.bridge import Bridge, bridge
    from attrpriv.session.release import Release
    from attrpriv.session.session import Session

__version__ = "0.2.0"

_HOME = {
    "AttrprivError": "errors",
    "Bridge": "session.bridge",
    "Cause": "errors",
    "Certificate": "methods.base.certificate",
    "CertificateError": "errors",
    "Chain": "assumptions.chain",
    "Channel": "assumptions.channel",
    "Counts": "assumptions.counts",
    "DataError": "errors",
    "Gaussian": "assumptions.gaussian",
    "GroupTolerance": "assumptions.groups",
    "Groups": "assumptions.groups",
    "Guarantee": "methods.base.certificate",
    "Hierarchy": "assumptions.hierarchy",
    "Laws": "assumptions.laws",
    "LeakageMap": "audit.leaks",
    "ModelAudit": "audit.result",
    "Parameter": "problem.secret",
    "ParameterNetwork": "assumptions.parameter_network",
    "Plan": "methods.base.plan",
    "Policy": "policy.models",
    "PolicyError": "errors",
    "Problem": "problem.problem",
    "PublicTable": "engines.moments",
    "Query": "queries.query",
    "QueryError": "errors",
    "RecordedTable": "assumptions.recorded_table",
    "Records": "assumptions.records",
    "Reference": "problem.reference",
    "Refusal": "problem.refusal",
    "RefusedError": "errors",
    "Release": "session.release",
    "ReleaseAudit": "audit.release.result",
    "Secret": "problem.secret",
    "Session": "session.session",
    "Tolerance": "assumptions.gaussian",
    "UsageError": "errors",
    "audit_model": "audit.model",
    "audit_release": "audit.release.run",
    "bridge": "session.bridge",
    "count": "queries.query",
    "leaks": "audit.leaks",
    "mean": "queries.query",
    "plan": "methods.choice.choose",
    "rank": "methods.choice.choose",
    "register": "extend",
    "total": "queries.query",
    "try_on": "session.against",
}
_MODULES = {
    "calibration": "numerics.calibration",
    "divergences": "numerics.divergences",
    "extend": "extend",
    "laws": "numerics.laws",
    "queries": "queries",
}

__all__ = [
    "AttrprivError",
    "Bridge",
    "Cause",
    "Certificate",
    "CertificateError",
    "Chain",
    "Channel",
    "Counts",
    "DataError",
    "Gaussian",
    "GroupTolerance",
    "Groups",
    "Guarantee",
    "Hierarchy",
    "Laws",
    "LeakageMap",
    "ModelAudit",
    "Parameter",
    "ParameterNetwork",
    "Plan",
    "Policy",
    "PolicyError",
    "Problem",
    "PublicTable",
    "Query",
    "QueryError",
    "RecordedTable",
    "Records",
    "Reference",
    "Refusal",
    "RefusedError",
    "Release",
    "ReleaseAudit",
    "Secret",
    "Session",
    "Tolerance",
    "UsageError",
    "__version__",
    "audit_model",
    "audit_release",
    "bridge",
    "calibration",
    "count",
    "divergences",
    "extend",
    "laws",
    "leaks",
    "mean",
    "plan",
    "queries",
    "rank",
    "register",
    "total",
    "try_on",
]


def __getattr__(name: str) -> Any:
    import importlib

    if name in _HOME:
        value = getattr(importlib.import_module(f"attrpriv.{_HOME[name]}"), name)
    elif name in _MODULES:
        value = importlib.import_module(f"attrpriv.{_MODULES[name]}")
    else:
        raise AttributeError(f"module 'attrpriv' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
