"""What the BIF reader refuses: whatever is not understood, whatever is said twice, and tables that would fill the memory."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from attrpriv.errors import PolicyError
from attrpriv.numerics.networks.bif import MOST_PROBABILITIES, MOST_VARIABLES, read_bif
from attrpriv.numerics.networks.network import Network, Node, read_network

GOOD = """network n { property note = #1 @home; }
variable x { type discrete [ 2 ] { a, b }; }
variable y { type discrete [ 2 ] { a, b }; property size = (1; }
probability ( x ) { table 0.3, 0.7; }
probability ( y | x ) { (a) 0.1, 0.9; (b) 0.6, 0.4; }
"""


def refused(text: str) -> str:
    with pytest.raises(PolicyError, match=r"^network: must be a network without cycles in BIF\. Got x\.bif, ") as caught:
        read_bif(text, "x.bif")
    return str(caught.value).partition("which cannot be read: ")[2]


def test_the_file_itself_is_good() -> None:
    assert read_bif(GOOD, "x.bif") == {
        "x": (("a", "b"), (), ((0.3, 0.7),)),
        "y": (("a", "b"), ("x",), ((0.1, 0.9), (0.6, 0.4))),
    }


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("probability ( y", "probability ( x ) { table 0.9, 0.1; }\nprobability ( y", "x has a parent or a probability twice."),
        ("table 0.3, 0.7;", "table 0.3, 0.7; table 0.9, 0.1;", "x has a row twice."),
        ("(a) 0.1, 0.9;", "(a) 0.1, 0.9; (a) 0.2, 0.8;", "y has a row twice."),
        ("(a) 0.1, 0.9;", "default 0.1, 0.9; default 0.2, 0.8;", "y has a default twice."),
        ("y | x", "y | x, x", "y has a parent or a probability twice."),
        ("x { type", "x { type discrete [ 2 ] { c, d }; type", "line 2: a variable has two types."),
        ("{ a, b }", "{ a, a }", "x must have two states or more, each of them once."),
        ("[ 2 ] { a, b }", "[ 1 ] { a }", "x must have two states or more, each of them once."),
        ("type discrete [ 2 ] { a, b };", "", "x must have two states or more, each of them once."),
        ("[ 2 ]", "[ 3 ]", "line 2: the number in brackets is not the number of states."),
        ("0.3", "\N{MINUS SIGN}0.3", "line 4: expected 2 numbers, got something else."),
        ("0.3", "0.\N{ARABIC-INDIC DIGIT THREE}", "line 4: expected 2 numbers, got something else."),
        ("0.3", "0.3_0", "line 4: expected 2 numbers, got something else."),
        ("0.3", '"0.3"', "line 4: expected 2 numbers, got something else."),
        ("0.3", "nan", "line 4: expected 2 numbers, got something else."),
        ("0.3", "0" * 300 + ".3", "line 4: expected 2 numbers, got something else."),
        ("0.3, 0.7", "0.3, 0.3, 0.4", "line 4: expected ;, got something else."),
        ("0.3, 0.7", "1", "line 4: expected 2 numbers, got something else."),
        ("{ a, b }", "{ a*, b }", "line 2: expected a name of at most 200 characters, in quotes if it has unusual ones"),
        ("{ a, b }", "{ a\N{NO-BREAK SPACE}, b }", "line 2: expected a name"),
        ("{ a, b }", '{ "", b }', "line 2: expected a name"),
        ("{ a, b }", f"{{ {'a' * 201}, b }}", "line 2: expected a name"),
        ("variable x {", "variable x { kind 7;", "line 2: expected type or property"),
        ("probability ( x )", "probability ( )", "line 4: expected a name"),
        ("probability ( x )", "probability ( z )", "line 4: a probability of a variable that is not declared before."),
        ("probability ( y", "/* probability ( y", "line 5: a comment has no end."),
        ("probability ( y", '"" variable z { probability ( y', "line 5: expected network or variable or probability"),
        ("(b) 0.6, 0.4; }", "(b) 0.6, 0.4;", "line 6: expected ( or default or table or property, got the end."),
        ("size = (1; }", "size = (1", "line 4: expected ;, got something else."),
        ("@home; }", "@home;", "line 2: expected }, got something else."),
        (GOOD[GOOD.index("@home") :], "", "line 1: expected }, got the end."),
    ],
)
def test_what_is_not_understood_is_refused(old: str, new: str, says: str) -> None:
    assert old in GOOD
    assert says in refused(GOOD.replace(old, new, 1))


FOREIGN = {
    "passwords": "s3cret:x:0:0:s3cret:/s3cret:/bin/sh\n",
    "settings": 'variable "s3cret" {\n  default = "s3cret"\n}\n',
    "a network's settings": "network s3cret\n{ s3cret",
    "keys": '{"key": "s3cret"}',
    "probability": "probability ( s3cret | s3cret ) { }",
    "states": "variable s3cret { type s3cret",
    "a number": "variable x { type discrete [ s3cret ] { s3cret",
    "a row": GOOD.replace("0.9;", "s3cret;"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_nothing_of_another_file_is_quoted(name: str) -> None:
    """A policy of somebody else may name any file that its reader can read."""
    assert "s3cret" not in refused(FOREIGN[name])


def bomb(parents: int) -> str:
    """One variable with so many parents of two states, in a default for all of their combinations."""
    names = [f"v{k}" for k in range(parents)]
    declared = "".join(f"variable {name} {{ type discrete [ 2 ] {{ a, b }}; }}\n" for name in (*names, "y"))
    roots = "".join(f"probability ( {name} ) {{ table 0.5, 0.5; }}\n" for name in names)
    return f"{declared}{roots}probability ( y | {', '.join(names)} ) {{ default 0.5, 0.5; }}\n"


@pytest.mark.parametrize("parents", [19, 24, 300])
def test_a_short_file_does_not_fill_the_memory(parents: int) -> None:
    text = bomb(parents)
    tracemalloc.start()
    try:
        assert "with the table of y, " in refused(text)
        assert tracemalloc.get_traced_memory()[1] < 3_000_000 + 20 * len(text)
    finally:
        tracemalloc.stop()


def test_the_limit_is_on_all_tables_together() -> None:
    """A table of half the probabilities that a network may have: one is read, two are not."""
    assert MOST_PROBABILITIES == 2**19
    text = bomb(17)
    assert len(read_bif(text, "x.bif")["y"][2]) == 2**17
    more = "variable z { type discrete [ 2 ] { a, b }; }\n" + text + text.splitlines()[-1].replace("( y", "( z")
    assert "with the table of z, " in refused(more)


def test_too_many_variables() -> None:
    lines = [f"variable v{k} {{ type discrete [ 2 ] {{ a, b }}; }}" for k in range(MOST_VARIABLES + 1)]
    assert refused("\n".join(lines)) == "it has more than 5,000 variables."


def test_too_many_states() -> None:
    states = ",".join(f"s{k}" for k in range(10_001))
    assert "more than 10,000 names in a list" in refused(f"variable x {{ type discrete [ 10001 ] {{ {states} }}; }}")


def test_a_comment_in_quotes_is_none() -> None:
    text = GOOD.replace("#1 @home", '"see http://example.org/*"').replace("{ a, b }", '{ "}", "//" }', 1)
    found = read_bif(text.replace("(a)", '("}")').replace("(b)", '("//")').replace("0.6,", "0.6/* half */,"), "x.bif")
    assert found["x"][0] == ("}", "//")


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("a\0b.bif", "Got 'a\\x00b.bif', which is not there."),
        ("a" * 5_000, f"Got '{'a' * 196}..., which is not there."),
        ("a/" * 2_500, "which is not there."),
        (".", "Got '.', which is not there."),
    ],
)
def test_a_path_that_no_file_has(place: str, says: str) -> None:
    with pytest.raises(PolicyError) as caught:
        read_network(place)
    assert str(caught.value).startswith("network: must be the path of a BIF file. ")
    assert says in str(caught.value)


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "x.bif"
    path.write_bytes(GOOD.encode() + b"// gr\xfc\xdfe")
    with pytest.raises(PolicyError, match=r"x\.bif', which is not in UTF-8\.$"):
        read_network(path)
    path.write_bytes(b" " * ((16 << 20) + 1))
    with pytest.raises(PolicyError, match=r"x\.bif', which is larger than 16 MiB\.$"):
        read_network(path)
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())  # a byte order mark
    assert isinstance(read_network(path), Network)


def test_a_network_in_python_is_held_to_the_same() -> None:
    coin = Node(states=("a", "b"), table=((0.5, 0.5),))
    many = {f"v{k}": coin for k in range(20_000)}
    with pytest.raises(PolicyError, match=r"y: its table needs too many row\(s\) of 2 probabilities\."):
        Network(nodes={**many, "y": Node(states=("a", "b"), parents=tuple(many), table=((0.5, 0.5),))})
    with pytest.raises(PolicyError, match="must be different from one another"):
        Network(nodes={"x": Node(states=("a", "a"), table=((0.5, 0.5),))})
    with pytest.raises(PolicyError, match="must be different from one another"):
        Network(nodes={"x": coin, "y": Node(states=("a", "b"), parents=("x", "x"), table=((0.5, 0.5),) * 4)})
