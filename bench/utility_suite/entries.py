"""One problem of the suite, and the tables that its assumption describes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from attrpriv.problem.problem import Problem
from bench.utility_suite.worlds import World

Family = Literal["gaussian", "groups", "hierarchy", "counts", "network", "chain"]
Paper = Literal["classical", "gaussian", "wasserstein", "markov_quilt", "chain_quilt"]


@dataclass(frozen=True)
class Entry:
    """One problem of the suite."""

    name: str
    family: Family
    problem: Problem
    world: World
    paper: Paper

    @property
    def paper_problem(self) -> Problem:
        """The problem as the paper would calibrate it."""
        changes = {"calibration": "classical"} if self.paper == "classical" else {}
        return self.problem.model_copy(update=changes)

    @property
    def paper_mechanism(self) -> str:
        return "gaussian" if self.paper == "classical" else self.paper
