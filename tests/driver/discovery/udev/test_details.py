"""Discovery details of the udev handler: parsed, or refused with the path of each field."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from driver.api import Problem
from driver.discovery.details import LONGEST_DETAILS
from driver.discovery.udev.details import PERMISSIONS, UdevDetails, parse_udev_details
from driver.discovery.udev.grammar import parse_rule

PATH = "spec.discoveryHandler.discoveryDetails"
RULES = """udevRules: ['KERNEL=="loop7"']"""
UNKNOWN = "unknown field; there are groupRecursive, identity, permissions, udevRules."


def problems(text: str) -> list[tuple[str, str]]:
    parsed = parse_udev_details(text)
    assert isinstance(parsed, tuple), parsed
    return [(problem.path.removeprefix(PATH), problem.message) for problem in parsed]


def test_defaults_are_akris() -> None:
    assert parse_udev_details(RULES) == UdevDetails(
        (parse_rule('KERNEL=="loop7"'),),  # type: ignore[arg-type]
        group_recursive=False,
        permissions="rwm",
    )


def test_all_fields_are_taken() -> None:
    text = """
        udevRules:
        - 'KERNEL=="video[0-9]*"'
        - "SUBSYSTEM==\\"usb\\", ATTR{size}!=\\"0\\""
        - >-
          KERNEL=="a",
          TAG=="b"
        groupRecursive: true
        permissions: rw
    """

    details = parse_udev_details(text)

    assert isinstance(details, UdevDetails)
    assert list(details.rules) == [
        parse_rule('KERNEL=="video[0-9]*"'),
        parse_rule('SUBSYSTEM=="usb", ATTR{size}!="0"'),
        parse_rule('KERNEL=="a", TAG=="b"'),
    ]
    assert (details.group_recursive, details.permissions) == (True, "rw")


def test_json_is_yaml() -> None:
    assert isinstance(parse_udev_details('{"udevRules": ["KERNEL==\\"a\\""]}'), UdevDetails)


@pytest.mark.parametrize("permissions", PERMISSIONS)
def test_permissions_of_akri_are_taken(permissions: str) -> None:
    details = parse_udev_details(f"{RULES}\npermissions: {permissions}")

    assert isinstance(details, UdevDetails)
    assert details.permissions == permissions


@pytest.mark.parametrize("permissions", ["mr", "wr", "mrw", "x", "RW", "rw ,", '""', "rrw"])
def test_other_permissions_are_refused(permissions: str) -> None:
    [(path, message)] = problems(f"{RULES}\npermissions: {permissions}")

    assert path == ".permissions"
    assert message.endswith("is none of r, w, m, rw, rm, rwm, wm.")


A_LIST = "a list of strings is expected here, with at least one."
A_STRING = "a string is expected here."
A_QUOTED_STRING = "a string is expected here; put it in quotes if it is one."
A_BOOLEAN = "true or false is expected here."
FIELDS = "fields are expected here: groupRecursive, identity, permissions, udevRules."
NOT_YAML = "this is not YAML"


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        ("", ".udevRules", "A list of strings must be given."),
        ("# a comment", ".udevRules", "A list of strings must be given."),
        ("permissions: r", ".udevRules", "A list of strings must be given."),
        ("udevRules: []", ".udevRules", f"Line 1, column 12: {A_LIST}"),
        ("udevRules:", ".udevRules", f"Line 1, column 11: {A_LIST}"),
        ("udevRules: KERNEL", ".udevRules", f"Line 1, column 12: {A_LIST}"),
        ("udevRules: [7]", ".udevRules[0]", f"Line 1, column 13: {A_QUOTED_STRING}"),
        ("udevRules:\n- {a: b}", ".udevRules[0]", f"Line 2, column 3: {A_STRING}"),
        ("udevRules:\n- !!binary aGk=", ".udevRules[0]", f"Line 2, column 3: {A_STRING}"),
        (f"{RULES}\ngroupRecursive: yes", ".groupRecursive", f"Line 2, column 17: {A_BOOLEAN}"),
        (f"{RULES}\ngroupRecursive: 'true'", ".groupRecursive", f"Line 2, column 17: {A_BOOLEAN}"),
        (f"{RULES}\ngroupRecursive:", ".groupRecursive", f"Line 2, column 16: {A_BOOLEAN}"),
        (f"{RULES}\npermissions: [r]", ".permissions", f"Line 2, column 14: {A_STRING}"),
        (f"{RULES}\npermissions: ~", ".permissions", f"Line 2, column 14: {A_QUOTED_STRING}"),
        (f"{RULES}\nudevRule: a", ".udevRule", f"Line 2, column 1: {UNKNOWN}"),
        (f"{RULES}\na.b: a", '["a.b"]', f"Line 2, column 1: {UNKNOWN}"),
        (f"{RULES}\n? [a]\n: b", '["?"]', f"Line 2, column 3: {UNKNOWN}"),
        (f"{RULES}\n{RULES}", ".udevRules", "Line 2, column 1: this field is given twice."),
        ("a list", "", f"Line 1, column 1: {FIELDS}"),
        ("- a", "", f"Line 1, column 1: {FIELDS}"),
        ("a: b\n c: d", "", f"Line 2, column 3: {NOT_YAML}, mapping values are not allowed here."),
        ("a: *b", "", f"Line 1, column 4: {NOT_YAML}, found undefined alias 'b'."),
        ("a: b\n--- c", "", f"Line 2, column 1: {NOT_YAML}, but found another document."),
        ("a: \0", "", "Line 1, column 4: YAML may not hold the character U+0000."),
        ("a:\n  \x07", "", "Line 2, column 3: YAML may not hold the character U+0007."),
        ("- " * 2000, "", "The YAML is nested too deeply: more than 32 levels."),
        ('a: "\\UFFFFFFFF"', "", "The YAML has an invalid character or number."),
        ("a" * (LONGEST_DETAILS + 1), "", "65537 characters are too many; 65536 may be given."),
        (
            'udevRules: ["\\ud800"]',
            ".udevRules[0]",
            "Line 1, column 13: a lone surrogate (half a character) is not text.",
        ),
    ],
)
def test_what_is_wrong_has_a_path_and_a_place(text: str, path: str, message: str) -> None:
    assert problems(text) == [(path, message)]


@pytest.mark.parametrize(
    ("rule", "place"),
    [
        ("""'KERNAL=="a"'""", "Line 2, column 3, column 1 of the string"),
        ('KERNAL=="a"', "Line 2, column 3, column 1 of the string"),
        (r'"KERNEL==\"a\", B==\"c\""', "Line 2, column 3, column 14 of the string"),
        ("|\n  KERNEL,", "Line 2, column 3, column 7 of the string"),
        ('KERNEL=="a",\n  B=="c"', "Line 2, column 3, column 14 of the string"),
        (r'"\u004bERNEL"', "Line 2, column 3, column 7 of the string"),
    ],
)
def test_a_flaw_of_a_rule_has_its_place_in_the_details(rule: str, place: str) -> None:
    [(path, message)] = problems(f"udevRules:\n- {rule}\n")

    assert path == ".udevRules[0]"
    assert message.split(":")[0] == place


def test_flaws_of_rules_have_the_rules_path_and_a_place() -> None:
    text = """udevRules: ['KERNEL=="a"', 'KERNAL=="a"', 'KERNEL=="a', 'TAG+="a", ATTR=="b"']"""

    found = [(path, message.split(":")[0]) for path, message in problems(text)]

    assert found == [
        (".udevRules[1]", "Line 1, column 28, column 1 of the string"),
        (".udevRules[2]", "Line 1, column 43, column 9 of the string"),
        (".udevRules[3]", "Line 1, column 57, column 4 of the string"),
        (".udevRules[3]", "Line 1, column 57, column 15 of the string"),
    ]


def test_all_problems_are_named_at_once() -> None:
    text = "udevRules: ['KERNEL', 5]\ngroupRecursive: 1\npermissions: x\nextra: 1"

    assert [path for path, _ in problems(text)] == [
        ".extra",
        ".groupRecursive",
        ".udevRules[1]",
        ".udevRules[0]",
        ".permissions",
    ]


def test_aliases_are_taken_and_a_bomb_of_them_does_no_harm() -> None:
    bomb = "a: &a [b, b]\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(20)
    )
    before = time.process_time()

    assert isinstance(parse_udev_details("""udevRules: [&a 'KERNEL=="a"', *a]"""), UdevDetails)
    assert isinstance(parse_udev_details(bomb), tuple)
    assert isinstance(parse_udev_details("udevRules: &a [*a]"), tuple)
    assert time.process_time() - before < 1


@given(
    st.text()
    | st.text("{}[]&*!|>'\"%@`#,:?- \n\tab~<=0\\U").map(lambda text: f"udevRules: {text}")
    | st.text("{}[]&*!|>'\"%@`#,:?- \n\tab~<=0\\U")
)
@example("a: !<%FF> b")
@example("%YAML 9999999999999999999999.1\n---\n")
@example("udevRules: \ud800")
def test_any_text_is_details_or_has_problems(text: str) -> None:
    parsed = parse_udev_details(text)

    if isinstance(parsed, tuple):
        assert parsed
        assert all(isinstance(problem, Problem) for problem in parsed)
        assert all(problem.path.startswith(PATH) for problem in parsed)
        assert all(str(problem).encode() for problem in parsed)
    else:
        assert parsed.rules


@pytest.mark.parametrize("piece", ["[a,", "- ", "&a b\n", '"'])
def test_nothing_takes_long(piece: str) -> None:
    text = (piece * LONGEST_DETAILS)[:LONGEST_DETAILS]
    before = time.process_time()

    assert isinstance(parse_udev_details(text), tuple)
    assert time.process_time() - before < 5


@pytest.mark.parametrize("piece", ["[a", "*a", "[[:", "[\\]", "|"])
def test_no_rule_takes_long(piece: str) -> None:
    value = (piece * LONGEST_DETAILS)[: LONGEST_DETAILS - 40]
    before = time.process_time()

    assert isinstance(parse_udev_details(f"udevRules: ['KERNEL==\"{value}*\"']"), UdevDetails)
    assert time.process_time() - before < 5
