"""Long files of plain lines: libyaml and our own reader agree wherever libyaml is asked."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest

from attrpriv.errors import PolicyError
from attrpriv.policy import plain_yaml, strict_yaml
from attrpriv.policy.plain_yaml import plain_value
from attrpriv.policy.strict_yaml import _Reading, load_strict

PHRASES = ["b c", "a - b", "a, b", "a  b", "a ", "- a", "a: b"]
WORDS = """a weight~income 0.5 1e-6 10% -3 -.5 .5 true null ~ << 010 yes mean(x) <5 (a x'y +1 1_000 é 日本 = a. ~a 0x1F .5a -5-
    a' ( _ ... --- - . & * ! | > % @ ` ? , [ ] { } # : a:b a#b "x 'x""".split()
QUOTED = ["'x'", "'a: b'", "'# x'", "''", '"x"', '"a # b"', "'[1]'", '"{"', "'é'", "' x '", "'it''s'", '"\\n"', "'-'"]


def value(generator: random.Random) -> str:
    small = [*WORDS, *QUOTED]
    kind = generator.random()
    if kind < 0.55:
        return generator.choice([*WORDS, *PHRASES])
    if kind < 0.7:
        return generator.choice(QUOTED)
    some = [generator.choice(small) for _ in range(generator.randint(0, 3))]
    if kind < 0.85:
        return f"[{', '.join(some)}]"
    return "{" + ", ".join(f"{one}: {generator.choice(small)}" for one in some) + "}"


def line(generator: random.Random, indent: int) -> str:
    key = generator.choice([*WORDS, *PHRASES, *QUOTED])
    behind = generator.choice(["", "", "", "", " # c", "  # a: b", " ", "#x", " #", "\t", "\t# c"])
    gap = generator.choice([" ", " ", "  ", "", "\t"])
    pair = f"{key}:{gap}{value(generator)}"
    forms = ["", "# c", f"{key}:", pair, f"- {value(generator)}", f"- {pair}"]
    return " " * indent + generator.choice([*forms, *forms[2:], *forms[2:], value(generator)]) + behind


def text(generator: random.Random) -> str:
    indent, lines = 0, []
    for _ in range(generator.randint(1, 6)):
        lines.append(line(generator, indent))
        indent = max(0, indent + generator.choice([0, 0, 0, 2, 2, -2, 1, -1]))
    return "\n".join(lines) + generator.choice(["", "\n", "\n\n"])


def same(one: object, other: object) -> bool:
    """Equal, and of equal types: 1, 1.0 and True are equal in Python, but not here."""
    return one == other and repr(one) == repr(other)


def text_with_runs(generator: random.Random) -> str:
    """Entries one under the other, at indentations that fit or not, between other lines; now and then a key twice."""
    indent, lines = 0, [f"{generator.choice(['a', 'b', '- a'])}:"] if generator.random() < 0.5 else []
    for part in range(generator.randint(1, 4)):
        indent = max(0, indent + generator.choice([0, 2, 2, -2, 1]))
        for k in range(generator.randint(1, 6)):
            odd = k > 4
            key = generator.choice([f"k{part}{k}", f"k{part}{k}~a", f"k{k}", *(["true", "null"] if odd else [])])
            number = generator.choice(["1", "0.5", "-2e3", "1e-6", "1-2", "+1", *(["007", "x"] if odd else [])])
            lines.append(f"{' ' * indent}{key}: {number}")
        lines += [line(generator, indent)] if generator.random() < 0.3 else []
        lines += [" " * indent + generator.choice(["more", "c:", "# c", "- x", ""])] if generator.random() < 0.4 else []
    return "\n".join(lines)


def disagreements(tries: int, make: Callable[[random.Random], str] = text) -> tuple[int, list[str]]:
    """How many of these random texts were read by libyaml, and those that our own reader reads as something else."""
    generator, taken, bad = random.Random(8), 0, []
    for _ in range(tries):
        asked = make(generator)
        reading = _Reading(asked, "p")
        found = plain_value(asked, reading._meaning, 1000)
        if found is None:
            continue
        taken += 1
        told: object = None
        try:
            told = load_strict(asked)
        except PolicyError as error:
            told = str(error)
        if not same(found, told):
            bad.append(asked)
    return taken, bad


def test_the_two_readers_agree() -> None:
    taken, bad = disagreements(4000)
    assert bad == []
    assert taken > 100


def test_they_agree_on_entries_one_under_the_other() -> None:
    taken, bad = disagreements(2500, text_with_runs)
    assert bad == []
    assert taken > 400


def test_entries_of_any_indentation_are_not_of_one_mapping(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted error of a run that does not look at indentation: the readers differ, and the test above would show it."""

    class Same(str):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = str.__hash__

    class Loose:
        def fullmatch(self, line: str) -> tuple[str, Same, str, str] | None:
            found = entry.fullmatch(line)
            return None if found is None else (line, Same(found[1]), found[2], found[3])

    entry = plain_yaml._ENTRY
    monkeypatch.setattr(plain_yaml, "_ENTRY", Loose())
    assert disagreements(500, text_with_runs)[1] != []


def test_a_run_counts_as_all_its_values() -> None:
    text = "\n".join(f"k{k}: 1" for k in range(10))
    reading = _Reading(text, "p")
    assert plain_value(text, reading._meaning, 21) == {f"k{k}": 1 for k in range(10)}
    assert plain_value(text, reading._meaning, 20) is None


def test_they_would_not_on_every_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the forms the readers differ, and the test above would show it."""
    monkeypatch.setattr(plain_yaml, "_LINE", re.compile(".*"))
    assert disagreements(1500)[1] != []


def test_a_long_policy_is_read_by_libyaml_to_the_same_value(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["attrpriv: 1", "epsilon: 1.0  # budget", "protect:", "  - secret: mean(x)", "    between: [0, 1]", "assume:"]
    lines += ["  tolerance: {mean: 1%, sd: 0.02}", "  correlation:", *(f"    a{k}~b: 0.{k + 1}" for k in range(3000))]
    long = "\n".join(lines)
    assert len(long) > strict_yaml._LONG
    quick = load_strict(long)
    monkeypatch.setattr(strict_yaml, "plain_value", lambda *_: None)
    assert same(quick, load_strict(long))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("a7~b: 1", r"policy, line 3009: keys must be unique\. Got a7~b again\."),
        ("c: 010", r"policy, line 3009: a number must not start with 0"),
        ("c: &x 1", r"policy, line 3009: anchors are not allowed"),
        ("c: 'x", r"policy, line \d+: must be valid YAML"),
    ],
)
def test_errors_in_a_long_policy_are_those_of_our_own_reader(bad: str, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        load_strict("\n".join([*(f"k{j}: 1" for j in range(8)), *(f"a{k}~b: 1" for k in range(3000)), bad]))


def test_more_values_than_allowed_are_left_to_the_other_reader() -> None:
    reading = _Reading("a: 1\nb: 2\nc: 3", "p")
    assert plain_value(reading.text, reading._meaning, 100) == {"a": 1, "b": 2, "c": 3}
    assert plain_value(reading.text, reading._meaning, 4) is None
