"""How long `import attrpriv` takes, against `import numpy, pydantic` alone. Each import in a fresh process; medians.

    python bench/import_time.py [--runs 15]

The goal: `import attrpriv` within 0.15 s of numpy and pydantic. The other lines say what the first use of a name costs.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys

CASES = {
    "import numpy, pydantic": "import numpy, pydantic",
    "import attrpriv": "import attrpriv",
    "import attrpriv, numpy, pydantic": "import attrpriv, numpy, pydantic",
    "import attrpriv; attrpriv.Policy": "import attrpriv; attrpriv.Policy",
    "import attrpriv; attrpriv.Session": "import attrpriv; attrpriv.Session",
}
BASE, FIRST = "import numpy, pydantic", "import attrpriv"


def seconds(statement: str) -> float:
    """The time that a statement takes in a process that has imported nothing else."""
    code = f"import time; start = time.perf_counter()\n{statement}\nprint(time.perf_counter() - start)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15, help="processes for each case (default: 15)")
    runs = max(1, parser.parse_args().runs)
    for statement in CASES.values():
        seconds(statement)  # the first one writes byte code and fills the page cache
    times: dict[str, list[float]] = {name: [] for name in CASES}
    for _ in range(runs):  # taking turns, so that a busy machine is busy for all of them
        for name, statement in CASES.items():
            times[name].append(seconds(statement))
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    for name, median in medians.items():
        against = f"{median - medians[BASE]:+.3f} s, {median / medians[BASE]:.2f} times numpy and pydantic"
        print(f"{name:35} {median:.3f} s   {against}")
    print(f"difference of {FIRST} to {BASE}: {medians[FIRST] - medians[BASE]:+.3f} s, median of {runs}")


if __name__ == "__main__":
    main()
