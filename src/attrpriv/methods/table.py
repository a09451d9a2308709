"""All methods, in one table: a new one is a folder beside this module and an entry here, or an entry point elsewhere.

The order is that of simplicity: where errors are equal, `auto` takes the first. Nothing is loaded here: a method's modules are
when it is asked for a plan, or when recorded evidence of its kind is read.

Methods from outside come by `register`, or by an entry point of the group `attrpriv.methods` that is a `Method`, the class of
an assumption, or a function that registers some (docs/guide/own-method.md). They come after ours. What must never change: a
name or a kind of evidence that is taken stays as it is.

A *method* goes by its public name. A *form* of it plans for some shapes of cases (`problem.shapes`) and one kind of statistic;
its `home` is the module and the function that makes the plan. What must never change: a problem that no form takes is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any, Literal

from attrpriv.errors import UsageError
from attrpriv.problem.assumption import installed
from attrpriv.problem.shapes import CHAIN, LATTICE, POPULATION, QUILT, RECORDED, SHIFT, STATED, UNEQUAL

ROOM = "attrpriv.methods"
# Where it is computed what the answers would tell without noise: cases know the laws, and stand above the base.
EXACT_ANSWER = "attrpriv.cases.exact_answer:exact_answer"
# What a form answers: averages and sums (also over subsets of public size), counts and what is made of them, statistics that
# are no averages, or whatever is asked.
Statistics = Literal["averages", "subsets", "counts", "non_linear", "any"]


def load(home: str) -> Any:
    """What is called `name` in the module, of a home `module:name`; one that begins with a dot is below methods/."""
    module, _, name = home.partition(":")
    return getattr(import_module(module, ROOM), name)


@dataclass(frozen=True)
class Form:
    """One way of a method: for which shapes, for which statistics, and where the function is that plans it."""

    shapes: tuple[str, ...]
    """Empty: for every shape."""
    home: str
    statistics: Statistics = "any"
    alone: bool = False
    """Whether it shares no budget with other releases."""
    too_slow: str = ""
    """Home of a function that says in words for what size `auto` tries it, where a problem is larger; none: it is fast."""
    reads_secret: bool = False
    """Whether answers are made of sensitive columns that the query does not name; not where these are only checked."""


@dataclass(frozen=True)
class Method:
    """A mechanism: what it takes, what may follow what, where it is proved."""

    name: str
    forms: tuple[Form, ...]
    page: str
    """The page that proves it, below docs/theory/."""
    proofs: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Kinds of evidence that it makes, each with the module that is its home."""
    asks: tuple[str, ...] = ()
    """The kinds of assumption to name where another one is made; none: it needs no assumption."""
    follows: tuple[str, ...] = ()
    """The kinds of evidence that it may follow, and that leave room for more of it; none: it stands alone."""
    needs_delta: bool = False
    """Whether it is refused where delta is 0."""
    covers: frozenset[str] = frozenset()
    """Statistics beyond averages, sums and counts of single columns: combinations, subsets, non_linear, any."""
    hides_entries: bool = False
    """Whether it hides each entry of a column, not only properties of columns."""
    on_exact_laws: bool = False
    """Whether it credits the rows' own variation, so that `auto` keeps off it where public rows are not normal."""
    errs_by_table: bool = False
    """Whether its error depends on the table, and is known for tables as the assumption describes them."""
    instead_of: tuple[str, ...] = ()
    """Methods that `auto` does not take where this one is planned: it never errs more, and leaves more room."""
    chosen: bool = True
    """Whether `auto` may choose it; a yardstick is for comparison."""

    @property
    def without_assumption(self) -> bool:
        """Whether its promise rests on no assumption."""
        return not self.asks

    @property
    def views(self) -> bool:
        """Whether it answers whatever is asked, from a view."""
        return "any" in self.covers

    def shapes(self) -> tuple[str, ...]:
        """All shapes that a form takes, in order; empty: every one."""
        found = [shape for form in self.forms for shape in form.shapes]
        return () if any(not form.shapes for form in self.forms) else tuple(dict.fromkeys(found))


METHODS: tuple[Method, ...] = (
    Method(
        "subsample",
        (Form((), ".view.answers:plan", reads_secret=True),),
        page="view.md",
        proofs={"view": ".view.plan", "reference_view": ".view.reference", "sorted_view": ".view.sorted"},
        covers=frozenset({"any"}),
    ),
    Method(
        "group_dp",
        (
            Form((), ".yardsticks.non_linear:plan_group_dp", "non_linear"),
            Form((), ".yardsticks.counts:plan_group_dp", "counts"),
            Form((), ".yardsticks.averages:plan_group_dp", "averages"),
        ),
        page="yardsticks.md",
        proofs={"laplace": ".base.evidence", "count_sequence": ".laplace_sequence.proof"},
        follows=("count_sequence", "outside", "row_average"),
        covers=frozenset({"non_linear"}),
        hides_entries=True,
    ),
    Method(
        "markov_quilt",
        (Form((QUILT,), ".markov_quilt.plan:plan"),),
        page="markov-quilt.md",
        proofs={"quilts": ".markov_quilt.proof"},
        asks=("parameter_network",),
        follows=("quilts",),
        covers=frozenset({"non_linear"}),
        instead_of=("group_dp",),
    ),
    Method(
        "laplace",
        (
            Form((QUILT,), ".parameter_counts.plan:plan_laplace", alone=True),
            Form((STATED,), ".stated_laws.plan:plan_laplace", alone=True),
            Form((LATTICE,), ".count_noise.laplace:plan"),
            Form((CHAIN,), ".chain_noise.plan:plan"),
        ),
        page="exact-calibration.md",
        proofs={
            "count_laplace": ".count_noise.proof",
            "count_direct": ".count_noise.proof",
            "count_cases": ".count_noise.proof",
            "parameter_noise": ".parameter_counts.proof",
            "stated_noise": ".stated_laws.proof",
            "outside": ".laplace_sequence.outside",
            "row_average": ".laplace_sequence.row_average",
            "chain_laplace": ".chain_noise.proof",
            "chain_outside": ".chain_noise.outside",
        },
        asks=("counts",),
        follows=("count_sequence", "outside", "row_average", "chain_laplace", "chain_outside"),
    ),
    Method(
        "gaussian",
        (
            Form((QUILT,), ".parameter_counts.plan:plan_gaussian", alone=True),
            Form((STATED,), ".stated_laws.plan:plan_gaussian", alone=True),
            Form((LATTICE,), ".count_noise.gaussian:plan", alone=True),
            Form((RECORDED,), ".recorded.plan:plan", alone=True),
            Form((UNEQUAL,), ".groups.plan:plan", "averages", alone=True, reads_secret=True),
            Form((POPULATION,), ".hierarchy.means:plan", "averages", alone=True),
            Form((SHIFT,), ".gaussian.plan:plan", "subsets"),
        ),
        page="gaussian.md",
        proofs={
            "gaussian": ".base.gaussian_proof",
            "groups": ".groups.proof",
            "groups_vector": ".groups.proof",
            "hierarchy": ".hierarchy.proof",
            "recorded": ".recorded.proof",
        },
        asks=("gaussian",),
        follows=("gaussian",),
        needs_delta=True,
        covers=frozenset({"combinations", "subsets"}),
    ),
    Method(
        "gaussian_approximation",
        (Form((SHIFT,), ".gaussian.plan:plan_approximation", "averages"),),
        page="gaussian.md",
        asks=("gaussian",),
        follows=("gaussian",),
        needs_delta=True,
        covers=frozenset({"combinations"}),
    ),
    Method(
        "transport",
        (
            Form((STATED,), ".stated_laws.plan:plan_transport", alone=True, reads_secret=True),
            Form((LATTICE,), ".count_transport.plan:plan", alone=True, reads_secret=True),
            Form(
                (RECORDED,), ".recorded.transport:plan", alone=True, too_slow=".recorded.transport:too_slow", reads_secret=True
            ),
            Form((POPULATION,), ".hierarchy.transport:plan", "averages", alone=True, reads_secret=True),
            Form((UNEQUAL,), ".group_transport.plan:plan", "averages", alone=True, reads_secret=True),
            Form((SHIFT,), ".transport.plan:choose", "subsets", too_slow=".transport.plan:too_slow", reads_secret=True),
        ),
        page="transport.md",
        proofs={
            "transport": ".transport.proof",
            "transport_sequence": ".transport.sequence_proof",
            "quantile_clip": ".quantile_clip.proof",
            "group_transport": ".group_transport.proof",
            "group_vector_transport": ".group_transport.proof",
            "count_transport": ".count_transport.proof",
            "count_hybrid": ".count_transport.proof",
            "stated_coupling": ".stated_laws.proof",
            "recorded_transport": ".recorded.transport_proof",
            "recorded_share_transport": ".recorded.transport_proof",
        },
        asks=("gaussian", "groups", "hierarchy"),
        follows=("transport_sequence",),
        covers=frozenset({"subsets"}),
        on_exact_laws=True,
        errs_by_table=True,
    ),
    Method(
        "calibrated_weights",
        (Form((SHIFT,), ".calibrated_weights.plan:plan", "averages", reads_secret=True),),
        page="calibrated-weights.md",
        proofs={"calibrated_weights": ".calibrated_weights.proof"},
        asks=("gaussian",),
        needs_delta=True,
        on_exact_laws=True,
        errs_by_table=True,
    ),
    Method(
        "chain_quilt",
        (Form((CHAIN,), ".chain_quilt.plan:plan"),),
        page="chain-quilt.md",
        proofs={"chain": ".chain_quilt.plan"},
        asks=("chain",),
        follows=("chain",),
        hides_entries=True,
    ),
    Method(
        "wasserstein",
        (
            Form((QUILT,), ".parameter_counts.plan:plan_wasserstein"),
            Form((STATED,), ".stated_laws.plan:plan_wasserstein", alone=True),
            Form((LATTICE,), ".count_noise.wasserstein:plan"),
        ),
        page="wasserstein.md",
        proofs={
            "wasserstein": ".count_noise.proof",
            "parameter_wasserstein": ".parameter_counts.proof",
            "stated_wasserstein": ".stated_laws.proof",
        },
        asks=("counts",),
    ),
    Method(
        "optimal",
        (
            Form((QUILT,), ".parameter_counts.plan:plan_optimal", too_slow=".parameter_counts.plan:too_slow"),
            Form(
                (STATED,),
                ".stated_laws.plan:plan_optimal",
                alone=True,
                too_slow=".stated_laws.plan:too_slow",
                reads_secret=True,
            ),
            Form((LATTICE,), ".optimal.plan:plan", too_slow=".optimal.plan:too_slow", reads_secret=True),
        ),
        page="optimal.md",
        proofs={
            "kernel": ".optimal.proof",
            "coupling": ".optimal.proof",
            "parameter_kernel": ".parameter_counts.proof",
            "stated_kernel": ".stated_laws.proof",
        },
        asks=("counts",),
    ),
    Method(
        "constant",
        (
            Form((QUILT,), ".parameter_counts.plan:plan_constant"),
            Form((STATED,), ".stated_laws.plan:plan_constant"),
            Form((RECORDED,), ".recorded.constant:plan"),
            Form((), ".yardsticks.counts:plan_constant", "counts"),
            Form((), ".yardsticks.averages:plan_constant", "subsets"),
        ),
        page="yardsticks.md",
        proofs={"constant": ".base.evidence"},
        chosen=False,
        errs_by_table=True,
    ),
)

VIEW = ".view.plan:plan_view"
"""Home of the function that plans a view by itself, before anything is asked."""

OUTSIDE: Mapping[str, str] = MappingProxyType({LATTICE: ".laplace_sequence.outside:curve", CHAIN: ".chain_noise.outside:curve"})
"""By shape, home of the function that says what releases of other libraries cost, beside ours."""

MECHANISMS: tuple[str, ...] = tuple(method.name for method in METHODS)
"""The names of ours."""

_REGISTERED: dict[str, Method] = {}


def methods() -> Mapping[str, Method]:
    """All methods by name, ours first."""
    _from_entry_points()
    return {method.name: method for method in (*METHODS, *_REGISTERED.values())}


def register(method: Method) -> Method:
    """Add a method from outside; returns it."""
    if method.name in MECHANISMS or _REGISTERED.get(method.name, method) != method:
        raise UsageError(f"method: must have a name of its own. Got {method.name}, which is another one's.")
    others = [one for one in (*METHODS, *_REGISTERED.values()) if one.name != method.name]
    for kind in method.proofs:
        owner = next((one.name for one in others if kind in one.proofs), None)
        if owner is not None:
            raise UsageError(f"method {method.name}: must make evidence of its own kinds. Got {kind}, which is {owner}'s.")
    _REGISTERED[method.name] = method
    return method


def home_of_evidence(kind: str) -> None:
    """Load the module in which evidence of this kind is defined, where a method names one."""
    home = next((homes[kind] for homes in _homes() if kind in homes), None)
    if home is not None:
        import_module(home, ROOM)


def _homes() -> Iterator[Mapping[str, str]]:
    yield from (method.proofs for method in METHODS)
    _from_entry_points()
    yield from (method.proofs for method in _REGISTERED.values())


@cache
def _from_entry_points() -> None:
    """The methods of installed packages; what else they bring is there once it is loaded."""
    for found in installed():
        if isinstance(found, Method):
            register(found)
