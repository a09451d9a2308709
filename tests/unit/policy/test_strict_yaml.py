"""The strict YAML loader: what each word means, what is refused and where, and that what is written is read back."""

from __future__ import annotations

import contextlib
import enum
import json
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from attrpriv.errors import PolicyError
from attrpriv.policy import strict_yaml
from attrpriv.policy.strict_yaml import MAX_BYTES, MAX_DEPTH, MAX_NODES, dump_strict, load_strict, read_strict


def _same(one: object, other: object) -> bool:
    """Equal, and of equal types all the way down: 1, 1.0 and True are equal in Python, but not here."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return _same(list(one.items()), list(other.items()))
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return one == other


def _refusal(text: str) -> str:
    with pytest.raises(PolicyError) as caught:
        load_strict(text)
    message = str(caught.value)
    assert message.isprintable(), "one line that a terminal can show"
    return message


WORDS = """True TRUE False yes no Yes on off y n Null NULL none inf nan Infinity
    0x1F 0o17 0b1 1:30 1:30.5 1__0 _1 1_ 1e 1e5.0 e5 . + -- 1-2 10%% 1/2 2024-01-31 2024-01-31T10:00:00Z 12:30 ="""


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[("true", True), ("false", False)],
        *[(word, word) for word in WORDS.split()],
        *[("null", None), ("~", None), ("", None), ("  # nothing", None)],
        *[("0", 0), ("-0", 0), ("+7", 7), ("-3", -3), ("20_000", 20_000), ("10000000000000000000000", 10**22)],
        *[("1.5", 1.5), (".5", 0.5), ("-.5", -0.5), ("1.", 1.0), ("0.5", 0.5), ("0.0", 0.0), ("1_000.5", 1000.5)],
        *[("1e-6", 1e-6), ("2E3", 2000.0), ("1e+2", 100.0), ("1.5e1", 15.0), ("1e0000000000000000005", 1e5)],
        *[("0e99999999999999999999", 0.0), ("1e308", 1e308), ("5e-324", 5e-324)],
        *[("10%", 0.10), ("2.5%", 0.025), ("-5%", -0.05), ("100%", 1.0), ("0%", 0.0), ("1_000%", 10.0)],
        *[("7%", 0.07), ("57%", 0.57), ("0.7%", 0.007), ("1e1%", 0.1), ("'10%'", "10%")],  # 0.7 / 100 != 0.007
        *[("'yes'", "yes"), ('"1"', "1"), ("''", ""), ('"\\u00e9\\n\\U0001F600"', "é\n😀"), ("'<<'", "<<")],
        *[("< 50000", "< 50000"), ("mean(income)", "mean(income)"), ("avg(a) # comment", "avg(a)")],
    ],
)
def test_what_a_scalar_means(text: str, value: object) -> None:
    assert _same(load_strict(f"key: {text}"), {"key": value})


def test_keys_follow_the_same_rules() -> None:
    assert _same(load_strict("yes: 1\n2: 2\n2.5: 3\ntrue: 4\n'1': 5"), {"yes": 1, 2: 2, 2.5: 3, True: 4, "1": 5})


def test_a_policy() -> None:
    text = """
        attrpriv: 1
        epsilon: 1.0
        delta: 1e-6
        protect:
          - secret: mean(income)
            between: [20000, 200_000]
          - secret: share(smoker = 'yes')
            between: [25%, 40%]
        assume:
          correlation: {weight~income: 0.3}
          prior: {'yes': 0.25, no: 0.75}
    """
    assert load_strict(text) == {
        "attrpriv": 1,
        "epsilon": 1.0,
        "delta": 1e-6,
        "protect": [
            {"secret": "mean(income)", "between": [20_000, 200_000]},
            {"secret": "share(smoker = 'yes')", "between": [0.25, 0.4]},
        ],
        "assume": {"correlation": {"weight~income": 0.3}, "prior": {"yes": 0.25, "no": 0.75}},
    }


REFUSED = {
    "alias": ("a: 1\nb: *a", "policy, line 2: aliases are not allowed. Got *a. Write the value out."),
    "anchor": ("a: 1\nb: &here 2", "policy, line 2: anchors are not allowed. Got &here. Remove it."),
    "anchor on a mapping": ("a: &m\n  b: 1", "line 1: anchors are not allowed. Got &m."),
    "merge key": ("a:\n  <<: {b: 1}", "policy, line 2: merge keys are not allowed. Got <<. Write the entries out."),
    "python tag": (
        "a: !!python/object/apply:os.system [x]",
        "tags are not allowed. Got !!python/object/apply:os.system.",
    ),
    "own tag": ("a: !x 1", "policy, line 1: tags are not allowed. Got !x."),
    "standard tag": ("\na: !!str 1", "policy, line 2: tags are not allowed. Got !!str."),
    "bare tag": ("a: ! 1", "tags are not allowed. Got !."),
    "undefined tag handle": (
        "a: !e!x 1",
        "line 1: must be valid YAML. Got while parsing a node, found undefined tag handle",
    ),
    "duplicate key": ("a: 1\nb: 2\na: 3", "policy, line 3: keys must be unique. Got a again. Remove one of the two."),
    "equal keys": ("1: a\n1.0: b", "policy, line 2: keys must be unique. Got 1.0 again."),
    "second document": ("a: 1\n---\nb: 2", "policy, line 2: must be one document. Got a second one."),
    "empty second document": ("a: 1\n---", "policy, line 2: must be one document."),
    "directive": ("%YAML 1.1\n---\na: 1", "policy, line 1: directives are not allowed."),
    "list as key": ("? [1]\n: 2", "policy, line 1: a key must be a word or a number. Got a list or a mapping."),
    "mapping as key": ("{a: 1}: 2", "a key must be a word or a number. Got a list or a mapping."),
    "empty key": ("? \n: 1", "a key must be a word or a number. Got an empty key."),
    "null key": ("~: 1", "a key must be a word or a number. Got an empty key."),
    "octal": ("a: 010", "policy, line 1: a number must not start with 0, which is octal to some. Got 010. Drop"),
    "octal below": ("a:\n- -007.5", "policy, line 2: a number must not start with 0"),
    "octal percent": ("a: 05%", "a number must not start with 0"),
    "inf": ("a: .inf", "policy, line 1: a number must be finite. Got .inf."),
    "minus inf": ("a: -.INF", "a number must be finite. Got -.INF."),
    "nan": ("a: .NaN", "a number must be finite. Got .NaN."),
    "nan as key": ("{.nan: 1}", "a number must be finite. Got .nan."),
    "overflow": ("a: 1e999", "policy, line 1: a number must be finite. Got 1e999. Write a smaller number."),
    "long exponent": ("a: 1e" + "9" * 5000, "a number must be finite. Got 1e999"),
    "long integer": ("a: " + "9" * 5000, "a number must be finite. Got 999"),
    "integer beyond floats": ("a: 1" + "0" * 309, "a number must be finite. Got 1000"),
    "underflow": ("a: 1e-999", "policy, line 1: a number must not be so small that it reads as 0. Got 1e-999."),
    "long underflow": ("a: -1e-" + "9" * 5000, "a number must not be so small that it reads as 0."),
    "tab": ("a:\n\tb: 1", "policy, line 2: must be valid YAML. Got while scanning for the next token"),
    "tab advice": ("\ta: 1", "Indent with spaces, not with tabs."),
    "open bracket": (
        "a: [1",
        "policy, line 1: must be valid YAML. Got while parsing a flow sequence, expected ',' or ']'",
    ),
    "two colons": ("x: 1\na: b: c", "policy, line 2: must be valid YAML. Got mapping values are not allowed here."),
    "open quote": ("a: 'x", "must be valid YAML. Got while scanning a quoted scalar, found unexpected end of stream."),
    "big escape": ('a: 1\nb: "\\UFFFFFFFF"', "policy, line 2: must be valid YAML. Got a number that is too large."),
    "surrogate escape": ('a: 1\nb: "\\ud83d"', "policy, line 2: must be Unicode text. Got half of a surrogate pair."),
    "bell": ("a: 1\nb: \x07", "policy, line 2: control characters are not allowed. Got U+0007. Remove it."),
    "zero": ("a: \0", "control characters are not allowed. Got U+0000."),
    "hidden line break": ("a: 1 # one\u2028b: 2", "control characters are not allowed. Got U+2028."),
    "bare carriage return": ("a: 1 # one\rb: 2", "control characters are not allowed. Got U+000D."),
    "next line": ("a: 1 # one\x85b: 2", "control characters are not allowed. Got U+0085."),
    "reordering": ("a: x\u202ey", "control characters are not allowed. Got U+202E."),
    "inner byte order mark": ("a: \ufeffx", "control characters are not allowed. Got U+FEFF."),
    "lone surrogate": ("a: \ud800", "control characters are not allowed. Got U+D800."),
    "empty": ("", "policy: must be a mapping. Got an empty file."),
    "comment only": ("# nothing\n\n", "policy: must be a mapping. Got an empty file."),
    "empty document": ("---\n", "policy: must be a mapping. Got an empty file."),
    "too deep": ("[" * (MAX_DEPTH + 1), f"policy, line 1: must be nested at most {MAX_DEPTH} deep."),
    "far too deep": ("[" * 100_000, f"policy, line 1: must be nested at most {MAX_DEPTH} deep."),
    "too deep in blocks": ("- " * 10_000 + "1", "must be nested at most"),
    "too deep as keys": ("{" * 10_000, "must be nested at most"),
    "too long": ("#" * (MAX_BYTES + 1), f"policy: must be at most {MAX_BYTES} characters. Got {MAX_BYTES + 1}."),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    text, expected = REFUSED[name]
    assert expected in _refusal(text)


def test_messages_stay_short() -> None:
    assert len(_refusal("a: &" + "b" * 100_000)) < 300
    assert len(_refusal("a: !" + "b" * 100_000)) < 300
    assert len(_refusal("a: " + "9" * 100_000)) < 300


def test_where_opens_the_message() -> None:
    with pytest.raises(PolicyError, match=r"^public\.yaml, line 1: aliases"):
        load_strict("a: *b", where="public.yaml")


def test_windows_line_ends_and_a_leading_byte_order_mark_are_read() -> None:
    assert load_strict("\ufeffa: 1\r\nb: 2\r\n") == {"a": 1, "b": 2}


def test_the_deepest_allowed_nesting_is_read() -> None:
    text = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert json.dumps(load_strict(text)) == text
    assert load_strict("[" + "[{}], " * 100 + "]") == [[{}]] * 100, "neighbours do not add up"


def test_billion_laughs_is_refused_at_once() -> None:
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 40)]
    assert "line 1: anchors are not allowed" in _refusal("\n".join(lines))  # expanded, it would never end


def test_too_many_values(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_NODES == 400_000
    monkeypatch.setattr(strict_yaml, "MAX_NODES", 10)
    assert load_strict("[1, 2, 3, 4, 5, 6, 7, 8, 9]") == [*range(1, 10)]
    assert "policy, line 2: must have at most 10 values. Got more." in _refusal("[1, 2, 3, 4, 5, 6, 7, 8, 9,\n10]")


@settings(deadline=None)
@given(st.text(alphabet=st.characters(codec="utf-8") | st.sampled_from("[]{}:,-?&*!|>'\"%@#~<\\ \n\t0123456789e.x")))
def test_any_text_is_a_value_or_a_policy_error(text: str) -> None:
    with contextlib.suppress(PolicyError):
        load_strict(text)


# Reading files.


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text("größe: 10%\n", encoding="utf-8")
    assert read_strict(path) == {"größe": 0.1}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a: \xff\xfe", "must be a text file of at most 4 MiB. Got bytes that are not UTF-8. Save the file as UTF-8."),
        ("a: é".encode("utf-16"), "Got bytes that are not UTF-8."),
        (b"PAR1\x00\x01", "policy.yaml, line 1: control characters are not allowed. Got U+0000."),
        (b"#" * MAX_BYTES + "é".encode(), "must be a text file of at most 4 MiB. Got a larger file."),
        (b"a: 1\na: 2", "policy.yaml, line 2: keys must be unique."),
        (b"", "policy.yaml: must be a mapping. Got an empty file."),
    ],
)
def test_a_file_that_is_refused(tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "policy.yaml"
    path.write_bytes(content)
    with pytest.raises(PolicyError) as caught:
        read_strict(path)
    assert expected in str(caught.value)


def test_a_path_that_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a: 1")
    cases = [(tmp_path / "none", "no such file."), (tmp_path / "file" / "below", "no such file.")]
    cases += [(tmp_path, "a directory."), (Path("a\0b"), "a file that cannot be read.")]
    for path, expected in cases:
        with pytest.raises(PolicyError) as caught:
            read_strict(path)
        assert f"must be a text file of at most 4 MiB. Got {expected}" in str(caught.value)
        assert str(caught.value).isprintable()
        assert caught.value.__context__ is None


# Writing.

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.from_regex(r"\A[-+.]?[0-9_]*[.]?[0-9]*(e[-+]?[0-9]+)?%?\Z")
    | st.sampled_from(["yes", "true", "null", "~", "", "010", ".inf", "<<", "=", "-", "...", "a...", "---", "a: b"])
)
KEYS = st.text() | st.integers() | st.sampled_from(["yes", "true", "null", "1", "1e-6", "<<", "", "k" * 2000])
VALUES = st.recursive(SCALARS, lambda v: st.lists(v) | st.dictionaries(KEYS, v), max_leaves=20)


@settings(deadline=None)
@given(VALUES)
@example({"k" * 2000: {"a": ["x\u202ey", "\x85\u2028\ufeff\x00\x7f\uffff", "é😀", " x", "x ", "a\nb\n", "\t", "\r"]}})
@example({"a": 1, "b": [{"c": [], "d": {}}, [[1], []]], "e": "x " * 500})
def test_what_is_written_is_read_back(value: object) -> None:
    assert _same(load_strict(dump_strict(value)), value)


@settings(deadline=None)
@given(st.text())
def test_what_is_written_can_be_saved(text: str) -> None:
    load_strict(dump_strict([text]).encode("utf-8").decode("utf-8"))


def test_written_text_is_block_style_and_readable() -> None:
    value = {"secret": "mean(größe)", "between": [1, 2.5], "share": "10%", "n": "20_000", "ok": True, "word": "yes"}
    expected = "secret: mean(größe)\nbetween:\n- 1\n- 2.5\nshare: '10%'\nn: '20_000'\nok: true\nword: yes\n"
    assert dump_strict(value) == expected


def test_a_value_used_twice_is_written_twice() -> None:
    shared = {"mean": [1, 2]}
    assert load_strict(dump_strict([shared, shared])) == [shared, shared]


def test_tuples_and_members_of_enumerations_are_written_as_what_they_hold() -> None:
    class Word(str, enum.Enum):  # noqa: UP042 - whose str() is not its text, unlike a StrEnum's
        A = "a"

    assert _same(load_strict(dump_strict({Word.A: (1, Word.A)})), {"a": [1, "a"]})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (float("inf"), "numbers must be finite"),
        ([float("nan")], "numbers must be finite"),
        (10**400, "numbers must be finite"),
        ("\ud800", "must be Unicode text"),
        (b"bytes", "Got bytes."),
        ({1, 2}, "Got set."),
        ({"a": object()}, "Got object."),
        ({None: 1}, "keys must be words or numbers. Got a key of type NoneType."),
        ({(1, 2): 1}, "keys must be words or numbers. Got a key of type tuple."),
    ],
)
def test_what_cannot_be_written(value: object, expected: str) -> None:
    with pytest.raises(PolicyError, match=expected):
        dump_strict(value)


def test_only_as_deep_as_can_be_read() -> None:
    value: object = 1
    for _ in range(MAX_DEPTH):
        value = [value]
    assert load_strict(dump_strict(value)) == value
    with pytest.raises(PolicyError, match="nested at most"):
        dump_strict([value])
    cycle: list[object] = []
    cycle.append(cycle)
    with pytest.raises(PolicyError, match="nested at most"):
        dump_strict(cycle)
