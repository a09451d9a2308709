"""A problem about averages and the population behind the table: what a hierarchy says of it, and what recorded values ask for.

Given the populations' means, columns are independent and each average is normal with variance D/n. So the mask of a lattice is
judged by D/n alone (what populations leave open comes on top), and the densities of several masked averages multiply.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from attrpriv.assumptions.hierarchy import Hierarchy
from attrpriv.cases.shift import ShiftCase
from attrpriv.cases.unequal import ValueLattice
from attrpriv.methods.base.certificate import common_assumptions
from attrpriv.numerics.calibration.gaussian import lattice_lambda, mask_scale
from attrpriv.numerics.rounding import SOLVED_UP
from attrpriv.numerics.special import normal_cdf
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal, no_delta, other_assumption, unmasked
from attrpriv.problem.secret import Secret

# As for the Gaussian mechanism (`recorded`): few rounded values do not have a nearly normal average.
_LEAST_ROWS = 100
_UNDECLARED = 1.5
# The largest share of delta that clipping may take.
_CLIP_SHARE = 0.1
# Beyond these, squares and ratios leave the range of floats.
_LEAST, _MOST = 1e-30, 1e30

Clips = Mapping[str, float | None]


def hierarchies(problem: Problem) -> tuple[Hierarchy, ...]:
    """The assumption, if it is a hierarchy and says enough for the problem."""
    theta = problem.assumed(Hierarchy)
    if not theta:
        raise other_assumption("hierarchy")
    if problem.delta == 0:
        raise no_delta()
    if problem.known_rows > 0:
        raise Refusal(
            Cause.PERSONS,
            "known_rows: must be 0 with a hierarchy; whoever knows rows of the table knows more of its population, too. "
            f"Got {problem.known_rows:g}.",
            needs="known_rows 0",
        )
    for secret in problem.secrets:
        _require_parameter(secret)
    for column in dict.fromkeys((*problem.columns, *(c for secret in problem.secrets for c in secret.columns))):
        _require_described(problem, theta, column)
    return theta


def _require_parameter(secret: Secret) -> None:
    if secret.attribute is None:
        raise Refusal(
            Cause.SECRET,
            f"a hierarchy hides the mean of a column in the population, as in parameter: income. Got {secret.text}.",
            needs="a parameter of the population",
            usage=True,
        )
    if math.isinf(secret.gap):
        raise Refusal(
            Cause.MISTAKE,
            f"{secret.text}: a population's mean needs between: [low, high] or within: distance. Got neither.",
            needs="between or within",
        )
    _require_magnitude(f"the widest pair of {secret.text}", secret.gap)


def _require_described(problem: Problem, theta: Sequence[Hierarchy], column: str) -> None:
    for member in theta:
        if column not in member.columns:
            raise Refusal(
                Cause.NUMBERS,
                f"assume: {column} must have between_sd and within_sd. Got none.",
                needs="between_sd and within_sd",
                usage=True,
            )
        _require_magnitude(f"between_sd of {column}", member.between_sd[column])
        _require_magnitude(f"within_sd of {column}", member.within_sd[column])
    if column in problem.resolution:
        _require_magnitude(f"resolution of {column}", problem.resolution[column])


def _require_magnitude(name: str, number: float) -> None:
    if not _LEAST <= number <= _MOST:
        raise Refusal(
            Cause.NUMBERS,
            f"{name}: must be between {_LEAST:g} and {_MOST:g}. Got {number:g}; choose another unit.",
            needs="another unit",
            usage=True,
        )


def cases(problem: Problem, theta: Sequence[Hierarchy], off: float = 0.0) -> list[ShiftCase]:
    """How each secret moves the averages, and the covariance they have given it; `off`: with slopes steeper by this share."""
    import numpy as np

    found = []
    for index, member in enumerate(theta if problem.columns else ()):
        for secret in problem.secrets:
            (hidden,) = secret.columns
            slopes = np.array([member.slope(column, hidden) for column in problem.columns])
            # A column's slope on itself cannot be off.
            steeper = slopes * np.array([1 + off * (column != hidden) for column in problem.columns])
            explained = (np.outer(steeper, steeper) - np.outer(slopes, slopes)) * member.between_sd[hidden] ** 2
            spread = member.spread_given(problem.columns, hidden, problem.n) - explained
            found.append(ShiftCase(secret.text, index, steeper[:, None] * secret.gap, spread))
    return found


# ---------------------------------------------------------------------------------------------------- recorded values


def recorded(problem: Problem, theta: Sequence[Hierarchy], columns: Sequence[str]) -> ValueLattice:
    """The mask of each average that is read, and one charge for all; a refusal where averages would not be nearly normal."""
    masks, spacing, eased = {}, {}, math.inf
    for column in columns:
        h, declared = problem.spacing(column)
        least = min(member.within_sd[column] for member in theta)
        most = max(member.within_sd[column] for member in theta)
        _require_normal(problem, column, h, least)
        masks[column] = mask_scale(h, declared, problem.n, most)
        spacing[column] = h if declared and h else max(h or 0.0, min(masks[column] * problem.n / _UNDECLARED, least / 2))
        data = problem.n * (least / spacing[column]) ** 2
        mask = (masks[column] * problem.n / spacing[column]) ** 2
        eased = min(eased, data * mask / (data + mask))
    charge = lattice_lambda(eased, len(columns)) if columns else 0.0
    if not math.isfinite(charge):
        raise unmasked()
    return ValueLattice(masks, charge, spacing)


def _require_normal(problem: Problem, column: str, h: float | None, least: float) -> None:
    if h is None:
        return
    if problem.n < _LEAST_ROWS:
        raise Refusal(
            Cause.PRECISION,
            f"values recorded on a spacing need at least {_LEAST_ROWS} rows. Got {problem.n}.",
            needs="more rows",
        )
    if least < 2 * h:
        raise Refusal(
            Cause.PRECISION,
            f"{column}: within_sd must be at least twice the spacing of its values ({h:g}), or its average is not nearly "
            f"normal. Got {least:g}.",
            needs="finer values",
        )


def clip_charges(problem: Problem, theta: Sequence[Hierarchy]) -> Clips:
    """What clipping each bounded column adds to delta; None where it cannot be afforded or not be bounded."""
    found: dict[str, float | None] = {}
    for column in problem.columns:
        if column in problem.bounds:
            chance = max(_clip_chance(problem, member, column, secret) for member in theta for secret in problem.secrets)
            charge = (1 + math.exp(problem.epsilon)) * chance
            found[column] = charge if charge <= _CLIP_SHARE * problem.delta / len(problem.columns) else None
    return found


def _clip_chance(problem: Problem, member: Hierarchy, column: str, secret: Secret) -> float:
    """An upper bound on P(some row is clipped | phi_i = a) over the secret's range: rows are N(m_j + b (a - m_i), V n = 1)."""
    (hidden,) = secret.columns
    if secret.ends is None or not {column, hidden} <= set(member.mean):
        return math.inf
    row = math.sqrt(float(member.spread_given((column,), hidden, 1)[0, 0]))
    moved = [member.mean[column] + member.slope(column, hidden) * (end - member.mean[hidden]) for end in secret.ends]
    low, high = problem.bounds[column]
    tails = normal_cdf((low - min(moved)) / row) + normal_cdf((max(moved) - high) / row)
    return problem.n * tails * SOLVED_UP


# -------------------------------------------------------------------------------------------------------------- words


def assumptions(problem: Problem, theta: Sequence[Hierarchy], lattice: ValueLattice) -> tuple[str, ...]:
    """Everything the proof rests on."""
    lines = ["populations and rows are exactly normal: assumed, not tested"]
    lines += [f"{'one of: ' if len(theta) > 1 else ''}{member}" for member in theta]
    lines += [f"the moments are those of {c} as read, missing entries replaced" for c in lattice.masks if c in problem.missing]
    lines += [f"nearly all values of {column} lie on a spacing of at most {h:.4g}" for column, h in lattice.spacing.items()]
    lines.append("the adversary knows no row, and of the population only what the assumption says")
    return (*lines, *common_assumptions(problem))


def mask_notes(problem: Problem, lattice: ValueLattice, clips: Clips) -> list[str]:
    notes = []
    for column, mask in lattice.masks.items():
        if not problem.spacing(column)[1]:
            notes.append(
                f"{column}: values of undeclared spacing; digits are masked by noise of at least {mask:.3g}. "
                "Declare resolution to change that."
            )
    notes += [
        f"{column}: bounds are not applied, because clipping would change the law that is assumed."
        for column, charge in clips.items()
        if charge is None
    ]
    return notes
