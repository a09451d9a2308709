"""What an assumption makes of a statistic: the few shapes of cases that methods know. They never ask which assumption it was.

| shape | the law of what is asked, given a value of the secret | assumptions |
|---|---|---|
| `SHIFT` | normal, with one covariance: only its mean moves | `gaussian` |
| `POPULATION` | the same, and the secret is a mean of the population | `hierarchy` |
| `UNEQUAL` | normal, with covariances that differ | `groups` |
| `LATTICE` | a law on whole numbers | `counts` |
| `STATED` | a law on listed values, as it is written down | `laws` |
| `RECORDED` | that of a sum over rows like public ones, member by member | `records` |
| `QUILT` | known through a network over parameters: influence, or the law of a count | `parameter_network` |
| `CHAIN` | known through a Markov chain over the entries | `chain` |
| `CHANNEL` | nothing; how much the rest of a row tells of one number in it | `channel` |
| `NOTHING` | unknown: rows fall into cells, and that is all | no assumption |
| `MIXED` | of several shapes at once | assumptions of several kinds |

An assumption from outside may name a shape of its own; methods that list it take it.
"""

from __future__ import annotations

SHIFT, POPULATION, UNEQUAL, LATTICE, QUILT, CHAIN = "shift", "population", "unequal", "lattice", "quilt", "chain"
STATED, RECORDED, CHANNEL, NOTHING, MIXED = "stated", "recorded", "channel", "nothing", "mixed"
# Under these a statistic is counted, in whole numbers.
TALLIED = frozenset({LATTICE, CHAIN, STATED})
