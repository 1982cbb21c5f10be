"""The text of a rule: told into keys, or refused with columns."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from driver.discovery.udev.grammar import Flaw, parse_rule
from driver.discovery.udev.rules import Glob, MatchKey, Rule

KEYS = (
    "ATTR, ATTRS, DEVPATH, DRIVER, DRIVERS, ENV, KERNEL, KERNELS, SUBSYSTEM, SUBSYSTEMS, TAG, TAGS"
)


def key(name: str, value: str, *, braces: str | None = None, negated: bool = False) -> MatchKey:
    return MatchKey(name, braces, negated, Glob(value))


AKRIS_EXAMPLES = {
    'SUBSYSTEM=="video4linux"': 1,
    'KERNEL=="video*", ENV{ID_SERIAL}=="?*"': 2,
    'ENV{ID_PATH}=="?*", KERNEL=="video*|vbi*", DRIVER=="some driver"': 3,
    'TAG=="uaccess",ENV{MAJOR}!=""': 2,
    'KERNEL=="video[0-9]", DEVPATH!="/sys/path/to/device"': 2,
    'ATTR{idProduct}=="1900", ENV{ID_MM_ERICSSON_MBM}=="1"': 2,
    'ATTR{idVendor}=="0bdd", ENV{a name}=="Keyboard that has a mouse"': 2,
    'KERNEL=="video[0-9]*", ENV{ID_V4L_CAPABILITIES}==":capture:"': 2,
    'SUBSYSTEMS=="pci"': 1,
    'ATTRS{idVendor}=="0bdd", DRIVERS!="a driver"': 2,
    'TAGS=="uaccess"': 1,
    'KERNELS=="card[0-9]*"': 1,
}
"""Akri's `test/example.rules`, with the number of keys of each."""


@pytest.mark.parametrize(("text", "count"), AKRIS_EXAMPLES.items())
def test_akris_examples_are_rules(text: str, count: int) -> None:
    rule = parse_rule(text)

    assert isinstance(rule, Rule)
    assert len(rule.keys) + len(rule.ancestor_keys) == count


def test_keys_are_told_apart_and_the_cheap_ones_come_first() -> None:
    rule = parse_rule('ATTRS{a}=="1", ATTR{loop/backing_file}!="/x y", ENV{E}=="", KERNEL=="k"')

    assert rule == Rule(
        keys=(
            key("KERNEL", "k"),
            key("ATTR", "/x y", braces="loop/backing_file", negated=True),
            key("ENV", "", braces="E"),
        ),
        ancestor_keys=(key("ATTRS", "1", braces="a"),),
    )


@pytest.mark.parametrize(
    "text",
    [
        'KERNEL=="a",SUBSYSTEM=="b"',
        'KERNEL=="a" SUBSYSTEM=="b"',
        '  KERNEL == "a" ,\tSUBSYSTEM  ==\n"b" ,',
        ',, KERNEL=="a",,SUBSYSTEM=="b"',
    ],
)
def test_blanks_and_commas_may_stand_between_keys_as_for_udevd(text: str) -> None:
    assert parse_rule(text) == Rule((key("SUBSYSTEM", "b"), key("KERNEL", "a")))


def test_a_quote_in_a_value_is_escaped_and_other_backslashes_stay() -> None:
    assert parse_rule(r'ENV{A}=="a\"b\c"') == Rule((key("ENV", r'a"b\c', braces="A"),))


@pytest.mark.parametrize(
    ("text", "column", "sentence"),
    [
        ("", 1, "a rule without a key would select every device."),
        (" , ", 1, "a rule without a key would select every device."),
        ('KERNAL=="a"', 1, f'"KERNAL" is no key; there are {KEYS}.'),
        ('KERNEL=="a", kernel=="b"', 14, f'"kernel" is no key; there are {KEYS}.'),
        ('KERNEL=="a', 9, "this quote is never closed."),
        ('KERNEL=="a\\"', 9, "this quote is never closed."),
        ("KERNEL=='a'", 9, "a value in double quotes is expected here."),
        ("KERNEL==a", 9, "a value in double quotes is expected here."),
        ('KERNEL==e"a"', 9, "a value in double quotes is expected here."),
        ("KERNEL==", 9, "a value in double quotes is expected here."),
        ("KERNEL", 7, 'an operator is expected here, "==" or "!=".'),
        ('KERNEL "a"', 7, 'an operator is expected here, "==" or "!=".'),
        ('=="a"', 1, 'a key is expected here, as in KERNEL=="video*".'),
        ('KERNEL=="a"}', 12, 'a key is expected here, as in KERNEL=="video*".'),
        ('ATTR{a=="b"', 5, "this brace is never closed."),
        ('ATTR=="a"', 5, "ATTR needs a name in braces, as in ATTR{name}."),
        ('ENV{}=="a"', 4, "ENV needs a name in braces, as in ENV{name}."),
        ('KERNEL{a}=="b"', 7, "KERNEL takes no name in braces."),
        ('TAG+="uaccess"', 4, '"+=" assigns, and a rule here only compares: "==" or "!=".'),
        ('TAG-="uaccess"', 4, '"-=" assigns, and a rule here only compares: "==" or "!=".'),
        ('TAG:="uaccess"', 4, '":=" assigns, and a rule here only compares: "==" or "!=".'),
        ('TAG  =  "uaccess"', 6, '"=" assigns, and a rule here only compares: "==" or "!=".'),
        ('LABEL=="x"', 1, "LABEL is an action, and a rule here only selects devices."),
        ('ACTION=="add"', 1, f"only udevd itself can match ACTION; there are {KEYS}."),
        ('TEST{key}=="value"', 1, f"only udevd itself can match TEST; there are {KEYS}."),
        ('ATTR{../size}=="1"', 6, "an attribute is a path inside the device's folder."),
        ('ATTR{/etc/shadow}=="*"', 6, "an attribute is a path inside the device's folder."),
        ('ATTR{a/./b}=="*"', 6, "an attribute is a path inside the device's folder."),
        ('ATTRS{a\0b}=="*"', 7, "the name holds a character that cannot be printed."),
        ('ENV{a\nb}=="*"', 5, "the name holds a character that cannot be printed."),
        ('ATTR{$kernel}=="*"', 6, "substitutions ($, % and [subsystem/kernel]) are udevd's alone."),
        (
            'ATTR{[net/lo]mtu}=="*"',
            6,
            "substitutions ($, % and [subsystem/kernel]) are udevd's alone.",
        ),
    ],
)
def test_a_flaw_is_named_with_its_column(text: str, column: int, sentence: str) -> None:
    assert parse_rule(text) == (Flaw(column, sentence),)


@pytest.mark.parametrize(
    "text",
    [
        'RUN{builtin}+="uaccess"',
        'LABEL="some label"',
        'GOTO="end"',
        'IMPORT{program}="v4l_id $devnode"',
        'OPTIONS="some options"',
        'OWNER="owner"',
        'GROUP="group"',
        'MODE="mode"',
        'WAIT_FOR="queue/read_q"',
        'ACTION=="this action"',
        'NAME=="another_disk"',
        'SYMLINK+="v4l/by-id/$env{ID_BUS}-$env{ID_SERIAL}-video-index$attr{index}"',
        'TEST{key}=="value"',
        'PROGRAM=="some program"',
        'RESULT=="some result"',
        'CONST{key}=="value"',
        'SECLABEL{key}=="value"',
        'SYSCTL{key}=="value"',
        'TAG-="uaccess"',
        'TAG+="uaccess"',
        'TAG="uaccess"',
        'TAG:="uaccess"',
    ],
)
def test_what_akri_refuses_is_refused(text: str) -> None:
    assert isinstance(parse_rule(text), tuple)


def test_all_flaws_of_a_rule_are_named() -> None:
    flaws = parse_rule('KERNAL=="a", MODE="0666", ATTR+="b", KERNEL=="fine", TAG=="')

    assert isinstance(flaws, tuple)
    assert [flaw.column for flaw in flaws] == [1, 14, 31, 31, 59]


def test_a_long_word_is_not_quoted_whole() -> None:
    flaws = parse_rule("X" * 10_000 + '=="a"')

    assert isinstance(flaws, tuple)
    assert len(flaws[0].sentence) < 300


RULE_LIKE = st.lists(
    st.sampled_from(
        [
            "KERNEL",
            "ATTR",
            "ENV",
            "TAGS",
            "{",
            "}",
            "{a}",
            "==",
            "!=",
            "=",
            '"',
            '"a*"',
            "\\",
            ",",
            " ",
        ]
    ),
    max_size=12,
).map("".join)


@given(st.text() | RULE_LIKE)
@example('KERNEL=="\\\\"a"')
@example('ATTR{\ud800}=="a"')
def test_any_text_is_a_rule_or_has_flaws_inside_it(text: str) -> None:
    parsed = parse_rule(text)

    if isinstance(parsed, tuple):
        assert parsed
        assert all(1 <= flaw.column <= len(text) + 1 for flaw in parsed)
        assert all(flaw.sentence.isprintable() for flaw in parsed)
    else:
        assert parsed.keys or parsed.ancestor_keys


@given(st.text() | RULE_LIKE)
def test_a_rule_that_is_written_anew_is_the_same_rule(text: str) -> None:
    rule = parse_rule(text)

    if isinstance(rule, Rule):
        assert parse_rule(", ".join(map(written, rule.keys + rule.ancestor_keys))) == rule


def written(key: MatchKey) -> str:
    name = "" if key.name is None else f"{{{key.name}}}"
    value = key.glob.text.replace('"', '\\"')
    return f'{key.key}{name}{"!=" if key.negated else "=="}"{value}"'
