"""How long one max-influence takes on well-known networks, against reading the network and against pyagrum's inference.

    python bench/influence.py [--pairs 200] [--networks alarm pigs munin] [--folder DIRECTORY]

The networks are the BIF files that pgmpy carries (only its files are used, it is not imported); without pgmpy, or a --folder
that holds NAME.bif.gz, there is nothing to measure. Times are for pairs of parameters drawn at random, caches emptied before
each.
ATTRPRIV_BENCH_PAIRS is the default of --pairs, for a quick run.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import importlib.util
import os
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from attrpriv.numerics.divergences import influence
from attrpriv.numerics.divergences.influence import max_influence
from attrpriv.numerics.networks.network import Network, read_network


def bundled() -> Path | None:
    """Where pgmpy keeps its example networks; None where it is not installed."""
    spec = importlib.util.find_spec("pgmpy")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "utils" / "example_models"


def unpacked(folder: Path, name: str, out: Path) -> Path | None:
    packed = folder / f"{name}.bif.gz"
    if not packed.is_file():
        return None
    path = out / f"{name}.bif"
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    return path


def ours(network: Network, pairs: list[tuple[str, str]]) -> list[float]:
    times = []
    for of, on in pairs:
        influence._influence.cache_clear()
        start = time.perf_counter()
        max_influence(network, of=[of], on=on)
        times.append(time.perf_counter() - start)
    return times


def theirs(path: Path, pairs: list[tuple[str, str]]) -> list[float]:
    """The joint law of the same two parameters by pyagrum's lazy propagation."""
    gum: Any = importlib.import_module("pyagrum")
    net = gum.loadBN(str(path))
    times = []
    for pair in pairs:
        start = time.perf_counter()
        engine = gum.LazyPropagation(net)
        engine.addJointTarget(set(pair))
        engine.jointPosterior(set(pair))
        times.append(time.perf_counter() - start)
    return times


def measure(path: Path, count: int) -> None:
    start = time.perf_counter()
    network = read_network(path)
    read = time.perf_counter() - start
    assert isinstance(network, Network)
    rng = random.Random(1)
    names = list(network.nodes)
    pairs = [(of, on) for of, on in (rng.sample(names, 2) for _ in range(count))]
    mine, other = ours(network, pairs), theirs(path, pairs[: max(1, count // 10)])
    print(
        f"{path.stem}: {len(names)} parameters, read in {read:.2f} s; an influence takes {statistics.median(mine):.4f} s "
        f"(median), {max(mine):.3f} s at most, {max(mine) / read:.2f} of reading; "
        f"pyagrum's joint law {statistics.median(other):.4f} s (median)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=int(os.environ.get("ATTRPRIV_BENCH_PAIRS", "200")))
    parser.add_argument("--networks", nargs="+", default=["alarm", "pigs", "munin"])
    parser.add_argument("--folder", type=Path, default=bundled())
    options = parser.parse_args()
    if options.folder is None:
        print("skipped: pgmpy, whose bundled networks are measured, is not installed.")
        return
    with tempfile.TemporaryDirectory() as out:
        for name in options.networks:
            path = unpacked(options.folder, name, Path(out))
            print(f"{name}: not there, skipped") if path is None else measure(path, options.pairs)


if __name__ == "__main__":
    main()
