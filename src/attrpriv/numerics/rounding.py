"""How far floats may be off, in one place: every slack that a guarantee or a check allows, each with its reason.

A share `X_UP` is multiplied where a number must not be too small (a distance, a delta, a scale), `X_DOWN` where it must not be
too large (a credited variance, an epsilon that is left).

| share | what it covers |
|---|---|
| `ROUNDED` | one or two operations on floats |
| `SUMMED` | a sum or a product of some ten floats |
| `COMPUTED` | a formula of some hundred operations, computed again from stored floats |
| `AIMED` | a scale that is aimed a little inside of a check that itself rounds by `COMPUTED` |
| `LEFT` | a budget that is left, which a search with an error of its own then spends |
| `SOLVED` | what a linear system, an eigenvalue or a search gives, and comparisons of two such numbers |
| `SHY` | a room that several solved numbers share |

What must never change: a slack is only ever added on the private side. A larger one costs accuracy, a smaller one may cost the
promise.
"""

from __future__ import annotations

from typing import Final

# The distance of 1 to the next float, and the largest share by which one operation is off.
ULP: Final = 2.0**-52
UNIT: Final = 2.0**-53
# Some ten operations, in units of the size of their terms.
SOME_ULPS: Final = 16 * ULP

ROUNDED_UP: Final = 1 + 1e-15
ROUNDED_DOWN: Final = 1 - 1e-15
SUMMED_UP: Final = 1 + 1e-14
SUMMED_DOWN: Final = 1 - 1e-14
COMPUTED_UP: Final = 1 + 1e-12
COMPUTED_DOWN: Final = 1 - 1e-12
AIMED_UP: Final = 1 + 1e-11
AIMED_DOWN: Final = 1 - 1e-11
LEFT_DOWN: Final = 1 - 1e-10
SOLVED_UP: Final = 1 + 1e-9
SOLVED_DOWN: Final = 1 - 1e-9
SHY_UP: Final = 1 + 1e-8
SHY_DOWN: Final = 1 - 1e-8

# Stated probabilities add up to one up to this, and a stated correlation matrix has no eigenvalue below minus this.
SUM_SLACK: Final = 1e-9
PSD_SLACK: Final = 1e-9
