"""What a plan says in words: the promise, what it rests on, and what a reader should know. Public facts only."""

from __future__ import annotations

from attrpriv.problem.problem import Problem


def statement(problem: Problem, delta: float | None = None) -> str:
    """The promise, for every mechanism that proves it; `delta` where it is not the policy's own."""
    promised = problem.delta if delta is None else delta
    hidden = "; ".join(str(secret) for secret in problem.secrets)
    return (
        f"For each secret ({hidden}) and each pair of its values that must look alike, the released answers are "
        f"(epsilon {problem.epsilon:g}, delta {promised:g})-indistinguishable"
    )


def common_assumptions(problem: Problem) -> tuple[str, ...]:
    """What every guarantee of this kind leaves open."""
    rows = (
        "single persons are not protected"
        if problem.individuals is None
        else f"single persons are protected by {problem.individuals:g}-differential privacy of rows, on top"
    )
    return (
        rows,
        "each secret is protected on its own; a joint property of several secrets is not covered",
        f"the number of rows, {problem.n}, is public",
        "nothing else about this table is released outside the ledger",
    )


def known_line(problem: Problem) -> str:
    """What the adversary may know of rows.

    With more columns than one of each kind, a single known entry can tie the others together more closely than they are on
    average (docs/theory/gaussian.md); then rows must be known as a whole, or not at all.
    """
    if not problem.known_rows:
        return "the adversary knows no row"
    hidden = {column for secret in problem.secrets for column in secret.columns}
    parts = ", or their entries of the columns named here" if len(problem.read_columns) == len(hidden) == 1 else ", not in part"
    return f"the adversary knows at most {problem.known_rows:.4g} of the rows: whole{parts}"
