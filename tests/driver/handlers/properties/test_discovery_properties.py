"""What handlers are given, from what was read of Secrets and ConfigMaps."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driver.api import Configuration, ValueReference
from driver.handlers.handler_sources import question_of
from driver.handlers.properties.discovery_properties import (
    KeptObject,
    Reading,
    entries_of,
    forbidden,
    kept_objects,
    problems,
    resolve,
)
from tests.driver.builders import a_configuration

SECRET = KeptObject("Secret", "default", "cameras")
CONFIG_MAP = KeptObject("ConfigMap", "video", "ca")


def ref(key: str, kept: KeptObject = SECRET, *, optional: bool = False) -> ValueReference:
    return ValueReference(
        kind=kept.kind, namespace=kept.namespace, name=kept.name, key=key, optional=optional
    )


def asking(**properties: str | ValueReference) -> Configuration:
    return a_configuration(discovery_properties=properties)


def there(**entries: bytes) -> Reading:
    return Reading(is_read=True, entries=entries)


GONE = Reading(is_read=True)
REFUSED = Reading(trouble=forbidden(SECRET))


def test_each_object_is_named_once_with_all_its_keys() -> None:
    configurations = [
        asking(a=ref("user"), b=ref("password"), c="in place"),
        asking(a=ref("ca.crt", CONFIG_MAP), b=ref("user", optional=True)),
    ]

    assert kept_objects(configurations) == {
        SECRET: frozenset({"user", "password"}),
        CONFIG_MAP: frozenset({"ca.crt"}),
    }


def test_entries_are_bytes_and_only_those_that_are_asked_for() -> None:
    binary = base64.b64encode(b"\xff\x00").decode()
    secret = {"data": {"password": binary, "other": binary}}
    config_map = {"data": {"both": "tëxt"}, "binaryData": {"both": binary, "raw": binary}}

    assert entries_of(SECRET, secret, ["password", "none"]) == {"password": b"\xff\x00"}
    assert entries_of(CONFIG_MAP, config_map, ["both", "raw", "none"]) == {
        "both": "tëxt".encode(),
        "raw": b"\xff\x00",
    }
    assert entries_of(SECRET, {"data": None}, ["password"]) == {}
    assert entries_of(CONFIG_MAP, {}, ["password"]) == {}


def test_values_are_put_together() -> None:
    asked = asking(user="viewer", password=ref("p"), ca=ref("ca.crt", CONFIG_MAP, optional=True))
    readings = {SECRET: there(p=b"\xff"), CONFIG_MAP: GONE}

    assert resolve(asked, readings) == {"user": b"viewer", "password": b"\xff"}
    assert problems(asked, readings) == ()


@pytest.mark.parametrize(
    ("reading", "sentences"),
    [
        (
            GONE,
            (
                "Secret default/cameras does not exist; discoveryProperties need its key p.",
                "Secret default/cameras does not exist; discoveryProperties need its key q.",
            ),
        ),
        (
            there(q=b""),
            ("Secret default/cameras has no such key; discoveryProperties need its key p.",),
        ),
        (
            REFUSED,
            (
                "The driver may not read Secret default/cameras; 'moorage-driver permissions'"
                " prints the Role that allows it.",
            ),
        ),
        (Reading(), ()),
    ],
)
def test_what_is_needed_and_not_there_is_told(reading: Reading, sentences: tuple[str]) -> None:
    asked = asking(a=ref("p"), b=ref("q"), c=ref("none", optional=True))

    assert resolve(asked, {SECRET: reading}) is None
    assert problems(asked, {SECRET: reading}) == sentences


@pytest.mark.parametrize(
    ("reading", "resolved"),
    [(GONE, {}), (there(), {}), (REFUSED, None), (Reading(), None), (there(p=b"x"), {"a": b"x"})],
)
def test_what_is_optional_is_left_out_where_it_is_known_not_to_be_there(
    reading: Reading, resolved: dict[str, bytes] | None
) -> None:
    assert resolve(asking(a=ref("p", optional=True)), {SECRET: reading}) == resolved


def test_what_was_read_once_is_used_though_it_may_not_be_read_any_more() -> None:
    reading = Reading(is_read=True, entries={"p": b"x"}, trouble=forbidden(SECRET))

    assert resolve(asking(a=ref("p")), {SECRET: reading}) == {"a": b"x"}
    assert problems(asking(a=ref("p")), {SECRET: reading}) == (forbidden(SECRET),)


def test_no_value_is_shown() -> None:
    shown = (
        there(p=b"hunter2"),
        question_of(asking(), {"p": b"hunter2"}),
        asking(p="hunter2"),
    )

    assert not any("hunter2" in repr(one) for one in shown)


KEYS = st.sampled_from(["p", "q"])
OBJECTS = st.sampled_from([SECRET, CONFIG_MAP, KeptObject("Secret", "n", "s")])
REFERENCES = st.builds(
    lambda key, kept, o: ref(key, kept, optional=o), KEYS, OBJECTS, st.booleans()
)
READINGS = st.builds(
    Reading,
    is_read=st.booleans(),
    entries=st.none() | st.dictionaries(KEYS, st.binary(max_size=2)),
    trouble=st.none() | st.just("Trouble."),
).filter(lambda r: r.is_read or r.entries is None)


@settings(max_examples=200)
@given(
    st.dictionaries(st.sampled_from("abcd"), REFERENCES | st.just("v")),
    st.dictionaries(OBJECTS, READINGS),
)
def test_values_are_all_or_none_and_none_has_a_reason_once_all_is_read(
    asked: dict[str, Any], readings: dict[KeptObject, Reading]
) -> None:
    configuration = asking(**asked)
    resolved = resolve(configuration, readings)
    needed = {n for n, v in asked.items() if isinstance(v, str) or not v.optional}
    all_read = all(
        kept in readings and readings[kept].is_read for kept in kept_objects([configuration])
    )

    if resolved is None:
        assert problems(configuration, readings) or not all_read
    else:
        assert needed <= resolved.keys() <= asked.keys()
    if resolved is not None and not any(r.trouble for r in readings.values()):
        assert problems(configuration, readings) == ()
