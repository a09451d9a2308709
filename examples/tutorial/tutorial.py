"""From a table to a released average, in a notebook.

Open this file where cells marked by `# %%` are understood (VS Code, Spyder, PyCharm, or Jupyter with jupytext), or run it:

    python examples/tutorial/tutorial.py

It makes its own table in a temporary directory, which is removed at the end.
"""

# %% [markdown]
# # A school publishes an average and hides another
#
# The average weight of a school's students tells something about the mean income of their families, because the two go
# together. We publish the first and hide the second.

# %%
import builtins
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import attrpriv as ap

# A notebook shows tables; a script prints the same facts.
show = getattr(builtins, "display", print)

folder = tempfile.TemporaryDirectory(prefix="attrpriv-tutorial-")
path = Path(folder.name) / "students.parquet"

# %% [markdown]
# ## The table
#
# 5,000 made-up students. The seed is fixed so that everyone sees the same table; the noise of a release never has a seed.

# %%
N = 5_000
generator = np.random.default_rng(7)
income = np.rint(generator.normal(60_000, 30_000, N)).astype(np.int64)
weight = np.rint(150 + 0.00025 * (income - 60_000) + generator.normal(0, 23.8, N)).astype(np.int64)
pq.write_table(pa.table({"weight": weight, "income": income}), path)

# %% [markdown]
# ## The policy
#
# What must stay hidden, from whom, and at what cost. The moments come from other sources, such as a national survey, never from
# this table; the tolerance says how far off they may be.

# %%
policy = ap.Policy(
    rows=N,
    epsilon=1.0,
    delta=1e-6,
    protect=[ap.Secret("mean(income)", between=(20_000, 200_000), within=1_000)],
    assume=ap.Gaussian(
        mean={"weight": 150, "income": 60_000},
        sd={"weight": 25, "income": 30_000},
        correlation={("weight", "income"): 0.3},
        tolerance={"mean": 0.01, "sd": 0.02, "slope": 0.05},
    ),
    resolution={"weight": 1, "income": 1},
    release=["avg(weight)"],
)
show(policy)

# %% [markdown]
# ## The plan
#
# How the average would be answered, and what error to expect. No row has been read yet.

# %%
session = ap.Session(path, policy, ledger=path.with_suffix(".ledger"))
for candidate in session.rank().plans:
    print(f"{candidate.mechanism:20} expected error {candidate.error.rmse:.3g}")

# %%
plan = session.plan()
show(plan)

# %% [markdown]
# ## The release
#
# One pass over the table, noise, an entry in the ledger, and then the value.

# %%
release = session.release()
show(release)

# %%
show(release.to_frame())

# %% [markdown]
# The table's own average, which only its owner may see, should lie in the interval:

# %%
low, high = release.interval(0.95)
print(f"released {release.value:.2f}; 95% of the time {low:.2f} to {high:.2f} holds the table's own average")
print("the owner looks: it does" if low <= weight.mean() <= high else "the owner looks: this time it does not")

# %% [markdown]
# ## The ledger
#
# Asking the same again costs nothing and tells nothing: the answer is what was recorded. The head digest, kept elsewhere, shows
# whether anybody cut off the ledger's end.

# %%
again = session.release()
print("the same value again:", again.value == release.value)
show(session.ledger)
session.verify(release.head)

# %%
session.close()
folder.cleanup()
