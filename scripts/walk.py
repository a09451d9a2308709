"""How a release goes through the code: `python scripts/walk.py [--mechanism NAME] [--list]`.

It releases avg(weight) of the students from the command line to the ledger, under a profile hook, and counts

| number | meaning |
|---|---|
| modules | ours of which a function was called |
| functions | of these |
| switches | pairs of modules of which the one calls the other |
| hops back | functions of a room that one below it calls |
| loaded | our modules that were imported |

What is called while a module is imported does not count, nor does a class body. No hop back is what a lower room is given to
call: a method that overrides one of its own, a check of a frozen value, a function made for the occasion. With `--list` each
module and each switch is named.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# From the bottom to the top. A room may call what stands before it.
ROOMS = (
    ("formatting", "lazy"),
    ("errors",),
    ("notebook", "pictures"),
    ("frozen",),
    ("numerics",),
    ("noise",),
    ("queries",),
    ("problem",),
    ("engines",),
    ("assumptions",),
    ("methods/table", "methods/__init__"),
    ("methods/base",),
    ("cases",),
    ("methods/laplace_sequence",),
    ("methods",),
    ("methods/choice",),
    ("policy",),
    ("accounting",),
    ("session",),
    ("audit", "demo", "extend", "report"),
    ("cli", "studio", "__main__", "__init__"),
)
POLICY = """attrpriv: 1
data: students.parquet
rows: 1000
epsilon: 1.0
delta: 1e-6
protect:
  - secret: mean(income)
    between: [20000, 200000]
    within: 1000
assume:
  kind: gaussian
  mean: {income: 60000}
  sd: {weight: 25, income: 30000}
  correlation: {weight~income: 0.3}
  tolerance: {mean: 0.01, sd: 0.02, slope: 0.05}
release: ["avg(weight)"]
"""
# Runs in a process of its own, so that nothing is loaded before.
WALKER = r"""
import json, sys, threading
from pathlib import Path
import attrpriv
root = str(Path(attrpriv.__file__).parent) + "/"
functions, switches, hops = set(), set(), set()

def given(frame, before):
    # Whether the caller was given this to call: see above.
    code, value = frame.f_code, frame.f_locals.get("self", frame.f_locals.get("cls"))
    kind = value if isinstance(value, type) else type(value)
    owners = [one for one in kind.__mro__ if code.co_name in vars(one) and one.__module__.startswith("attrpriv")]
    return "<" in code.co_qualname or before.startswith("frozen") or len(owners) > 1

def ours(frame):
    while frame is not None and not frame.f_code.co_filename.startswith(root):
        frame = frame.f_back
    return None if frame is None else frame.f_code.co_filename[len(root):-3]

def importing(frame):
    # Whether a module of ours is just being read.
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(root):
            return True
        frame = frame.f_back
    return False

def hook(frame, event, argument):
    code = frame.f_code
    if event != "call" or not code.co_flags & 1 or not code.co_filename.startswith(root) or importing(frame):
        return
    here, before = code.co_filename[len(root):-3], ours(frame.f_back)
    functions.add((here, code.co_qualname))
    if before is not None and before != here:
        switches.add((before, here))
        if not given(frame, before):
            hops.add((before, here))

from attrpriv.cli import main
sys.argv = ["attrpriv", "release", "students.yaml", "--json", *sys.argv[1:]]
sys.setprofile(hook)
try:
    main()
except SystemExit as end:
    code = end.code
sys.setprofile(None)
loaded = sorted(name for name in sys.modules if name.split(".")[0] == "attrpriv")
told = {"functions": sorted(functions), "switches": sorted(switches), "calls": sorted(hops), "loaded": loaded}
told["exit"] = code or 0
Path("walk.json").write_text(json.dumps(told))
"""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mechanism", default="auto")
    parser.add_argument("--list", action="store_true", help="name each module, each switch, and each hop back")
    asked = parser.parse_args(arguments)
    told = walk(asked.mechanism)
    for name, value in numbers(told).items():
        print(f"{name:10} {value}")
    if asked.list:
        print(*sorted({module for module, _ in told["functions"]}), sep="\n")
        print(*(f"{a} -> {b}" for a, b in told["switches"]), sep="\n")
        print(*(f"hop back: {a} -> {b}" for a, b in hops_back(told["calls"])), sep="\n")


def walk(mechanism: str) -> dict[str, list[list[str]]]:
    """What one release calls: functions by module, and switches between modules."""
    with tempfile.TemporaryDirectory() as place:
        _students(Path(place))
        command = [sys.executable, "-c", WALKER, *([] if mechanism == "auto" else ["--mechanism", mechanism])]
        path = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
        subprocess.run(command, cwd=place, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": path})
        found: dict[str, list[list[str]]] = json.loads((Path(place) / "walk.json").read_text(encoding="utf-8"))
    if found["exit"]:
        raise SystemExit(f"the release failed with exit code {found['exit']}")
    return found


def _students(place: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = range(1000)
    table = {"weight": [150.0 + i % 50 for i in rows], "income": [60_000.0 + 10 * (i % 700) for i in rows]}
    pq.write_table(pa.table(table), place / "students.parquet")
    (place / "students.yaml").write_text(POLICY, encoding="utf-8")


def numbers(told: dict[str, list[list[str]]]) -> dict[str, int]:
    """The counts that stand in docs/architecture.md."""
    modules = {module for module, _ in told["functions"]}
    hops = len(hops_back(told["calls"]))
    return {
        "modules": len(modules),
        "functions": len(told["functions"]),
        "switches": len(told["switches"]),
        "hops back": hops,
        "loaded": len(told["loaded"]),
    }


def hops_back(calls: Sequence[Sequence[str]]) -> list[tuple[str, str]]:
    """Calls from a room to one above it; a method's own folder counts as one room with all methods."""
    return [(a, b) for a, b in calls if _height(b) > _height(a)]


def _height(module: str) -> int:
    """The place of a module's room, by the longest name that it begins with."""
    found = [(len(name), k) for k, names in enumerate(ROOMS) for name in names if f"{module}/".startswith(f"{name}/")]
    return max(found)[1]


if __name__ == "__main__":
    main()
