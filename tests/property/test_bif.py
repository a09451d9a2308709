"""The BIF reader on files that nobody wrote: it reads them as they are meant, or says what is wrong; nothing else comes out."""

from __future__ import annotations

import itertools
import random

from hypothesis import given
from hypothesis import strategies as st

from attrpriv.errors import PolicyError
from attrpriv.numerics.networks.bif import read_bif
from attrpriv.numerics.networks.network import Network, Node

GOOD = """network "n" { property note = "x;" 7; }
variable x { type discrete [ 2 ] { a, "b c" }; } // roots first
variable y { type discrete [ 3 ] { 1, 2, 3 }; property at = (1, 2); }
probability ( x ) { table 0.3, 7e-1; }
probability ( y | x ) { (a) 0.1, 0.2, 0.7; default .5 .25 .25; /* else */ }
"""
PIECES = st.sampled_from(
    [
        *("network", "variable", "probability", "type", "discrete", "table", "default", "property", "x", "y", "a", "b"),
        *(
            "{",
            "}",
            "(",
            ")",
            "[",
            "]",
            ";",
            ",",
            "|",
            '"',
            '""',
            "/*",
            "*/",
            "//",
            "\n",
            " ",
            "2",
            "0.5",
            "1e999",
            "-1",
            "nan",
        ),
        *("\N{MINUS SIGN}", "\0", "\ud800", "\N{NO-BREAK SPACE}", "é", "名", "\\", "#", "a" * 300, "9" * 5_000),
    ]
)
NAMES = st.text(st.characters(exclude_characters='"\n', exclude_categories=["Cs"]), min_size=1, max_size=6)


def made(text: str) -> Network | None:
    """The network of a text, or None where it is refused with one line."""
    try:
        found = read_bif(text, "x.bif")
        return Network(nodes={name: Node(states=s, parents=p, table=t) for name, (s, p, t) in found.items()})
    except PolicyError as error:
        said = str(error)
    assert said.isprintable()
    assert len(said) < 2_500
    return None


@given(st.lists(PIECES, max_size=60))
def test_pieces_of_a_file(pieces: list[str]) -> None:
    made(" ".join(pieces))
    made("".join(pieces))


@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    assert made(text) is None


@given(st.data())
def test_a_good_file_that_was_changed(data: st.DataObject) -> None:
    """Some pieces are cut out, doubled, or replaced by others."""
    text = GOOD
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 40)))
        middle = data.draw(
            st.one_of(st.just(""), st.just(text[start:end] * 2), PIECES, st.lists(PIECES, max_size=6).map(" ".join))
        )
        text = text[:start] + middle + text[end:]
    made(text)


def test_the_file_that_is_changed_is_good() -> None:
    found = made(GOOD)
    assert found is not None
    assert found.nodes["y"].table == ((0.1, 0.2, 0.7), (0.5, 0.25, 0.25))


@st.composite
def networks(draw: st.DrawFn) -> Network:
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    rng = random.Random(draw(st.integers(0, 2**32)))
    nodes: dict[str, Node] = {}
    for name in names:
        states = tuple(draw(st.lists(NAMES, min_size=2, max_size=3, unique=True)))
        parents = tuple(rng.sample(list(nodes), rng.randrange(min(len(nodes), 2) + 1)))
        rows = len(list(itertools.product(*(nodes[parent].states for parent in parents))))
        nodes[name] = Node(states=states, parents=parents, table=tuple(law(rng, len(states)) for _ in range(rows)))
    return Network(nodes=nodes)


def law(rng: random.Random, size: int) -> tuple[float, ...]:
    weights = [rng.random() for _ in range(size)]
    return tuple(weight / sum(weights) for weight in weights)


def as_bif(network: Network) -> str:
    """Every name in quotes, and the children first where that is allowed: in the probabilities."""
    lines = [
        f'variable "{name}" {{ type discrete [ {len(node.states)} ] {{ {_listed(node.states)} }}; }}'
        for name, node in network.nodes.items()
    ]
    for name, node in reversed(list(network.nodes.items())):
        head = f'probability ( "{name}" {"|" if node.parents else ""} {_listed(node.parents)} )'
        given = itertools.product(*(network.nodes[parent].states for parent in node.parents))
        rows = [f"({_listed(one)}) {', '.join(map(repr, row))};" for one, row in zip(given, node.table, strict=True)]
        lines.append(f"{head} {{ {' '.join(rows)} }}")
    return "\n".join(lines)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f'"{name}"' for name in names)


@given(networks())
def test_what_is_written_is_read(network: Network) -> None:
    found = made(as_bif(network))
    assert found is not None
    assert dict(found.nodes) == dict(network.nodes)
