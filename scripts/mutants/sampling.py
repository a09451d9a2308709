"""Which mutants count: those of code that a promise rests on, without those that change nothing."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache

from scripts.mutants.covering import verified
from scripts.mutants.planting import ROOT, SOURCE, TESTED, Mutant, mutants_of

EQUIVALENT = ROOT / "tests" / "equivalent_mutants"

# No promise rests on these: they compare plans, each of which has its own proof, or are said, shown and expected.
LEFT_OUT = {
    "methods/choice/accuracy_first.py": "asks for plans, each with its own proof",
    "methods/choice/best_guess.py": "is made of a released answer",
    "methods/choice/ranking.py": "compares plans, each with its own proof",
    "methods/choice/warnings.py": "words about plans",
    "methods/base/accuracy.py": "errors to expect",
    "methods/markov_quilt/picture.py": "a picture",
    "methods/yardsticks": "what others are measured by; their noise is proved by methods/base/evidence.py",
    "numerics/laws/shifted_laplace.py": "errors to expect",
    "numerics/calibration/kernel_accuracy.py": "errors to expect",
}
# Mostly searches: what they find is proved again before it is used, by functions that are run when a plan is verified. Only
# those count, which is measured with the plans of the conformance suite.
SEARCHES = (
    "numerics/calibration",
    "numerics/search.py",
    "methods/count_transport/hybrid.py",
    "methods/count_transport/lattice.py",
    "methods/count_transport/reference.py",
    "methods/group_transport/clamp.py",
    "methods/group_transport/correction.py",
    "methods/group_transport/vector_clamp.py",
    "methods/base/equalising.py",
    "methods/markov_quilt/score.py",
    "methods/markov_quilt/sets.py",
    "methods/optimal/near_coupling.py",
    "methods/optimal/population_coupling.py",
    "methods/transport/ways.py",
)


def counts(mutant: Mutant) -> bool:
    """Whether a promise rests on the mutant's function."""
    return not mutant.module.startswith(SEARCHES) or mutant.line in verified(mutant.module)


@cache
def equivalent() -> dict[str, str]:
    """The mutants that change nothing, each with its reason: `module: function: before -> after  # why`.

    `before -> after (2 of 3)` is the second of three places of the function where the same stands; without it, all are meant.
    `module: function: *` stands for all of a function, which is not sampled.
    """
    lines = [line for path in sorted(EQUIVALENT.glob("*.txt")) for line in path.read_text(encoding="utf-8").splitlines()]
    told = [line.partition("  # ") for line in lines if line and not line.startswith("#")]
    return {name: why for name, _, why in told}


def is_equivalent(mutant: Mutant) -> bool:
    known = equivalent()
    return mutant.name in known or mutant.exact in known


def chosen(count: int, seed: int, only: Sequence[str], *, everything: bool = False) -> list[Mutant]:
    paths = [path for part in TESTED for path in sorted((SOURCE / part).rglob("*.py"))]
    places = [(path, path.relative_to(SOURCE).as_posix()) for path in paths]
    left_out = () if everything else tuple(LEFT_OUT)
    wanted = [path for path, name in places if not name.startswith(left_out) and (not only or name.startswith(tuple(only)))]
    known = equivalent()
    every = [
        mutant for path in wanted for mutant in mutants_of(path) if everything or (counts(mutant) and mutant.whole not in known)
    ]
    picked = random.Random(seed).sample(every, min(count, len(every)))
    return [mutant for mutant in picked if _compiles(mutant.text)]


def _compiles(text: str) -> bool:
    try:
        compile(text, "mutant", "exec")
    except SyntaxError:
        return False
    return True
