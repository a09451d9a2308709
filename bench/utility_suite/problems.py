"""The suite: problems of every kind of assumption, each with the tables that its assumption describes.

A problem knows nothing of mechanisms: those are taken from `METHODS`, so that a new one is measured without a change here.
`paper` names the mechanism of Zhang, Ohrimenko and Cummings for this kind of problem (docs/guide/accuracy.md).
"""

from __future__ import annotations

from bench.utility_suite.average_problems import averages
from bench.utility_suite.count_problems import counts
from bench.utility_suite.entries import Entry


def suite() -> tuple[Entry, ...]:
    """All problems, in the order of the table."""
    return (*averages(), *counts())


__all__ = ["Entry", "suite"]
