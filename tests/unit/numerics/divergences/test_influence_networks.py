"""Influence on well-known networks, against pyagrum: from the BIF files that pgmpy carries, skipped where it is absent."""

from __future__ import annotations

import gzip
import importlib.util
import itertools
import math
import random
from pathlib import Path

import pytest

from attrpriv.numerics.divergences.influence import max_influence
from attrpriv.numerics.networks.network import Network, read_network


@pytest.mark.parametrize("name", ["alarm", "pigs", pytest.param("munin", marks=pytest.mark.slow)])
def test_a_known_network(name: str, tmp_path: Path) -> None:
    gum = pytest.importorskip("pyagrum")
    spec = importlib.util.find_spec("pgmpy")
    if spec is None or spec.origin is None:
        pytest.skip("pgmpy is not installed")
    packed = Path(spec.origin).parent / "utils" / "example_models" / f"{name}.bif.gz"
    path = tmp_path / f"{name}.bif"
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    net = gum.loadBN(str(path))
    network = read_network(path)
    assert isinstance(network, Network)
    rng = random.Random(7)
    for _ in range(25):
        of, on = rng.sample(list(network.nodes), 2)
        engine = gum.LazyPropagation(net)
        engine.addJointTarget({of, on})
        joint = engine.jointPosterior({of, on})
        sizes = [len(network.nodes[column].states) for column in (of, on)]
        table = [[joint[{of: v, on: a}] for a in range(sizes[1])] for v in range(sizes[0])]
        prior = [sum(row[a] for row in table) for a in range(sizes[1])]
        possible = [a for a in range(sizes[1]) if prior[a] > 0]
        ratios = [
            (row[a] / prior[a], row[b] / prior[b])
            for row in table
            for a, b in itertools.permutations(possible, 2)
            if row[a] > 0
        ]
        worst = max((math.inf if low == 0 else math.log(high / low) for high, low in ratios), default=0.0)
        # pyagrum reads the file's numbers in single precision.
        assert max_influence(network, of=[of], on=on).value == pytest.approx(worst, abs=1e-4)
