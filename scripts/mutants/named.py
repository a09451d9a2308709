"""Mistakes that were once not found, and their kin; every one of them must be found."""

from __future__ import annotations

import ast

from scripts.mutants.planting import SOURCE, Mutant, mutants_of

# The module, what stands there, and what is put instead.
NAMED: tuple[tuple[str, str, str], ...] = (
    ("methods/parameter_counts/proof.py", "(moved + self.ignored)", "(moved - self.ignored)"),
    ("methods/count_noise/proof.py", "(moved + self.ignored)", "(moved - self.ignored)"),
    ("methods/base/gaussian_proof.py", "[cell for cell in cells if _within(cell, box)]", "list(cells)"),
    ("methods/base/gaussian_proof.py", "box.means[0] <= cell.means[0]", "True"),
    ("methods/base/gaussian_proof.py", "and cell.means[1] <= box.means[1]", ""),
    ("methods/base/gaussian_proof.py", "and box.sds[0] <= cell.sds[0]", ""),
    ("methods/base/gaussian_proof.py", "and cell.sds[1] <= box.sds[1]", ""),
    ("numerics/laws/groups.py", "one * Fraction(s) ** 2", "one * Fraction(s) ** 3"),
    ("numerics/laws/groups.py", "other * Fraction(t) ** 2", "other * Fraction(t) ** 3"),
    ("methods/groups/proof.py", "self.form) + check.tail", "self.form)"),
    ("methods/groups/proof.py", "worst + self.check.tail", "worst"),
    ("methods/group_transport/proof.py", "self.charged(close + self.check.tail, epsilon)", "self.charged(close, epsilon)"),
    ("methods/group_transport/proof.py", "close(inner) + self.check.tail", "close(inner)"),
    ("methods/base/evidence.py", "2 * self.lam", "self.lam"),
    ("methods/base/evidence.py", "(1 + math.exp(epsilon))", "math.exp(epsilon)"),
    ("methods/base/evidence.py", "math.exp(self.lam) * worst", "worst"),
    ("methods/base/evidence.py", " + self.shape_lambda", ""),
    ("methods/base/evidence.py", " + self.lattice_lambda", ""),
    ("methods/base/evidence.py", "self.grid_lambda + ", ""),
    ("methods/base/evidence.py", " + self.shape_eta", ""),
    ("methods/base/evidence.py", "self.grid_eta + ", ""),
    ("methods/base/evidence.py", " + self.clip_delta", ""),
    ("methods/base/evidence.py", " + self.fit_delta", ""),
    ("methods/base/evidence.py", " + self.reserve", ""),
    ("methods/base/certificate.py", ".delta(stored.epsilon) + stored.fit_delta", ".delta(stored.epsilon)"),
    ("methods/calibrated_weights/proof.py", "2 * self.lam", "self.lam"),
    ("methods/calibrated_weights/proof.py", "(1 + math.exp(least))", "math.exp(least)"),
    ("methods/calibrated_weights/proof.py", " + inexact)", ")"),
    ("methods/quantile_clip/proof.py", "self.above + 2 * self.lam", "self.above + self.lam"),
    ("methods/quantile_clip/proof.py", " + grid.draw_charge", ""),
    ("methods/quantile_clip/proof.py", " + rounding_charge(grid.depth, self.kurtosis)", ""),
    ("methods/quantile_clip/proof.py", "self.lattice + ", ""),
    ("methods/base/plan.py", 'self.bound != binding_of(self.model_dump(mode="json", warnings=False))', "False"),
    ("accounting/standing.py", 'if kind == "view":', "if False:"),
    ("accounting/standing.py", "return require_view(name, entry.kind, history)", "return None"),
    ("noise/exact.py", "/ exact) + noise) * exact", "/ exact) + noise) * exact + exact * 3 / 2"),
    ("noise/exact.py", "(round(Fraction(value) / exact) + noise)", "(round(Fraction(value) / exact + Fraction(3, 2)) + noise)"),
    ("noise/exact.py", "- Fraction(1, 2)\n", "+ 1\n"),
    ("methods/count_transport/target.py", "(y + self.excess) / x", "y / x"),
    ("methods/optimal/proof.py", "min(corner, loss + moved(", "min(corner, loss + 0 * moved("),
    ("numerics/laws/recorded_slopes.py", "turns ** (_ORDER + 1)", "turns ** (_ORDER + 2)"),
    ("methods/base/parts.py", " or part.centre is not None or evidence.common_noise()", " or evidence.common_noise()"),
    ("methods/group_transport/plan.py", "max(ways, key=lambda way: evidence", "min(ways, key=lambda way: evidence"),
)  # fmt: skip


def named() -> list[Mutant]:
    """Those of `NAMED`, each of which must stand in the code once, and every `and` of a proof for its `or`."""
    found = []
    for module, before, after in NAMED:
        text = (SOURCE / module).read_text(encoding="utf-8")
        if text.count(before) != 1:
            raise SystemExit(f"{module}: {before!r} must stand there once. Got {text.count(before)} times; see NAMED.")
        line = text[: text.index(before)].count("\n") + 1
        found.append(Mutant(module, "named", line, before, after, text.replace(before, after)))
    for path in sorted((SOURCE / "methods").rglob("*proof.py")):
        found += [one for one in mutants_of(path) if isinstance(ast.parse(one.before, mode="eval").body, ast.BoolOp)]
    return found
