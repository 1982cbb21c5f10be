"""Rules select what udevd would select."""

from __future__ import annotations

import fnmatch
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.discovery.udev.grammar import parse_rule
from driver.discovery.udev.rules import Rule
from tests.driver.discovery.udev.views import FakeDevice


def rule(text: str) -> Rule:
    parsed = parse_rule(text)
    assert isinstance(parsed, Rule), parsed
    return parsed


HUB = FakeDevice(
    path="/devices/usb1",
    subsystem="usb",
    driver="usb",
    node="/dev/bus/usb/001/001",
    attributes={"idVendor": "1d6b", "speed": "480"},
)
CAMERA = FakeDevice(
    path="/devices/usb1/1-1",
    subsystem="usb",
    driver="usb",
    node="/dev/bus/usb/001/002",
    parent=HUB,
    attributes={"idVendor": "046d", "product": "HD Webcam  "},
    properties={"TAGS": ":seat:"},
)
VIDEO = FakeDevice(
    path="/devices/usb1/1-1/video4linux/video0",
    subsystem="video4linux",
    node="/dev/video0",
    parent=CAMERA,
    attributes={"name": "HD Webcam", "index": "0", "empty": "", "blank": " "},
    properties={
        "ID_V4L_CAPABILITIES": ":capture:",
        "EMPTY": "",
        "TAGS": ":uaccess:seat:old:",
        "CURRENT_TAGS": ":uaccess:seat:",
    },
)


@pytest.mark.parametrize(
    "text",
    [
        'SUBSYSTEM=="video4linux"',
        'KERNEL=="video[0-9]*"',
        'KERNEL!="video1"',
        'DEVPATH=="/devices/*/video?"',
        'DRIVER==""',
        'DRIVER!="uvcvideo"',
        'ATTR{name}=="HD*"',
        'ATTR{name}!="SD*"',
        'ATTR{empty}==""',
        'ENV{ID_V4L_CAPABILITIES}=="*:capture:*"',
        'ENV{EMPTY}==""',
        'ENV{ABSENT}==""',
        'ENV{ABSENT}!="a"',
        'ENV{ABSENT}=="*"',
        'TAG=="uaccess"',
        'TAG=="nothing|seat"',
        'TAG!="absent"',
        'KERNEL=="video*", SUBSYSTEM=="video4linux", ATTR{index}=="0"',
        'KERNELS=="video0"',
        'KERNELS=="1-1"',
        'SUBSYSTEMS=="usb", DRIVERS=="usb", ATTRS{idVendor}=="046d"',
        'ATTRS{speed}=="480"',
        'ATTRS{idVendor}!="046d"',
        'TAGS=="seat", ATTRS{idVendor}=="046d"',
    ],
)
def test_a_device_is_selected_by(text: str) -> None:
    assert rule(text).matches(VIDEO)


@pytest.mark.parametrize(
    "text",
    [
        'SUBSYSTEM=="video"',
        'SUBSYSTEM!="video*"',
        'KERNEL=="ideo0"',
        'DRIVER=="?*"',
        'ATTR{name}=="HD"',
        'ATTR{empty}=="?*"',
        'ENV{ABSENT}=="?*"',
        'ENV{EMPTY}!=""',
        'TAG=="old"',
        'TAG!="seat"',
        'KERNEL=="video0", ATTR{index}!="0"',
        'KERNELS=="2-1"',
        'TAGS=="old"',
    ],
)
def test_a_device_is_not_selected_by(text: str) -> None:
    assert not rule(text).matches(VIDEO)


@pytest.mark.parametrize("operator", ["==", "!="])
def test_without_the_attribute_a_key_on_it_never_holds(operator: str) -> None:
    assert not rule(f'ATTR{{absent}}{operator}"a"').matches(VIDEO)
    assert not rule(f'ATTR{{absent}}{operator}""').matches(VIDEO)
    assert not rule(f'ATTRS{{absent}}{operator}"a"').matches(VIDEO)


def test_plural_keys_of_a_rule_hold_for_one_and_the_same_device() -> None:
    assert rule('ATTRS{idVendor}=="046d", KERNELS=="1-1"').matches(VIDEO)
    assert not rule('ATTRS{idVendor}=="046d", KERNELS=="usb1"').matches(VIDEO)


def test_blanks_at_the_end_of_an_attribute_count_only_where_the_value_ends_with_one() -> None:
    assert rule('ATTR{product}=="HD Webcam"').matches(CAMERA)
    assert rule('ATTR{product}=="HD Webcam  "').matches(CAMERA)
    assert not rule('ATTR{product}=="HD Webcam "').matches(CAMERA)
    assert not rule('ATTR{blank}==""').matches(VIDEO)


def test_without_current_tags_the_tags_of_an_older_udevd_count() -> None:
    assert rule('TAG=="seat"').matches(CAMERA)


def test_an_attribute_is_not_read_where_a_name_decides() -> None:
    device = FakeDevice(attributes={"size": "0"})

    assert not rule('ATTR{size}=="0", KERNEL=="sd*"').matches(device)
    assert device.reads == []


@pytest.mark.parametrize(
    ("text", "possible"),
    [
        ('SUBSYSTEM=="block"', True),
        ('SUBSYSTEM!="block"', False),
        ('KERNEL=="loop*", ATTR{size}=="5"', True),
        ('KERNEL=="sd*", ATTR{size}=="5"', False),
        ('KERNELS=="sd*"', True),
        ('SUBSYSTEMS=="usb"', True),
    ],
)
def test_names_alone_tell_what_is_not_worth_a_look(text: str, possible: bool) -> None:
    assert rule(text).may_match("block", "loop7") is possible


NAMES = st.sampled_from(["a", "b", "ab", "a*", "?", "[ab]*", ""])
KEYS = st.tuples(
    st.sampled_from(["SUBSYSTEM", "KERNEL", "DRIVER", "ENV{x}", "ATTR{x}"]),
    st.sampled_from(["", "S"]),
    st.sampled_from(["==", "!="]),
    NAMES,
).map(lambda key: (key[0], "" if key[0] == "ENV{x}" else key[1], key[2], key[3]))
WORDS = st.sampled_from(["a", "b", "ab", "ba"])


@st.composite
def devices(draw: st.DrawFn) -> FakeDevice:
    device: FakeDevice | None = None
    for name in draw(st.lists(WORDS, min_size=1, max_size=3)):
        device = FakeDevice(
            path=f"{device.path if device else ''}/{name}",
            subsystem=draw(st.none() | WORDS),
            driver=draw(st.none() | WORDS),
            parent=device,
            attributes=draw(st.dictionaries(st.just("x"), WORDS)),
            properties=draw(st.dictionaries(st.just("x"), WORDS)),
        )
    assert device is not None
    return device


def naive_value(device: FakeDevice, key: str) -> str | None:
    values: dict[str, Any] = {
        "SUBSYSTEM": device.subsystem or "",
        "KERNEL": device.sys_name,
        "DRIVER": device.driver or "",
        "ENV{x}": device.properties.get("x", ""),
        "ATTR{x}": device.attributes.get("x"),
    }
    value: str | None = values[key]
    return value


def naive_holds(device: FakeDevice, key: str, operator: str, pattern: str) -> bool:
    value = naive_value(device, key)
    return value is not None and fnmatch.fnmatchcase(value, pattern) == (operator == "==")


def naive_match(device: FakeDevice, keys: list[tuple[str, str, str, str]]) -> bool:
    own = [(key, operator, pattern) for key, plural, operator, pattern in keys if not plural]
    plural = [(key, operator, pattern) for key, plural, operator, pattern in keys if plural]
    chain = [device]
    while (parent := chain[-1].parent) is not None:
        chain.append(parent)
    return all(naive_holds(device, *key) for key in own) and any(
        all(naive_holds(each, *key) for key in plural) for each in chain
    )


@given(devices(), st.lists(KEYS, min_size=1, max_size=4))
def test_a_rule_selects_what_a_plain_reading_selects(
    device: FakeDevice, keys: list[tuple[str, str, str, str]]
) -> None:
    text = ", ".join(
        f'{key.replace("{", f"{plural}{{") if "{" in key else key + plural}{operator}"{pattern}"'
        for key, plural, operator, pattern in keys
    )

    selects = rule(text).matches(device)

    assert selects == naive_match(device, keys)
    assert not selects or rule(text).may_match(device.subsystem or "", device.sys_name)
