"""DeviceClasses: what is selected, and whose classes are touched."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from driver.api import ConfigurationName
from driver.classes import (
    ApplyClass,
    DeleteClass,
    StoredClass,
    class_body,
    plan_classes,
    stored_class,
    taken,
)

LOOP = ConfigurationName("loop")


def as_stored(body: Mapping[str, Any], **labels: str) -> StoredClass:
    stored = copy.deepcopy(dict(body))
    stored["metadata"] |= {"uid": "uid-1", "resourceVersion": "7"}
    stored["metadata"]["labels"] |= labels
    return stored_class(stored)


def plan(accepted: list[ConfigurationName], *stored: StoredClass, **options: Any) -> Any:
    arguments = {"named": accepted, "extended_resources": True, **options}
    return plan_classes(accepted, arguments.pop("named"), stored, **arguments)


OURS = class_body(LOOP, extended_resources=True)


def test_a_class_selects_the_devices_of_its_configuration() -> None:
    expression = OURS["spec"]["selectors"][0]["cel"]["expression"]

    assert expression == (
        'device.driver == "moorage.dev" && device.attributes["moorage.dev"].configuration == "loop"'
    )
    assert OURS["spec"]["extendedResourceName"] == "akri.sh/loop"


def test_a_name_too_long_for_a_resource_or_a_label_still_makes_a_class() -> None:
    body = class_body(ConfigurationName("a" * 200), extended_resources=True)

    assert "extendedResourceName" not in body["spec"]
    assert all(len(value) <= 63 for value in body["metadata"]["labels"].values())


def test_an_api_server_that_drops_the_extended_resource_is_not_sent_any() -> None:
    assert "extendedResourceName" not in class_body(LOOP, extended_resources=False)["spec"]


def test_a_class_is_applied_once() -> None:
    assert plan([LOOP]) == (ApplyClass(OURS),)
    assert plan([LOOP], as_stored(OURS)) == ()


def test_labels_of_an_administrator_are_no_reason_to_write() -> None:
    assert plan([LOOP], as_stored(OURS, **{"moorage.dev/accounted": "false"})) == ()


def test_a_class_of_ours_that_somebody_changed_is_applied_again() -> None:
    changed = {**OURS, "spec": {}}

    assert plan([LOOP], as_stored(changed)) == (ApplyClass(OURS),)


def test_a_class_of_somebody_else_is_left_alone() -> None:
    foreign = as_stored(OURS, **{"app.kubernetes.io/managed-by": "Helm"})

    assert plan([LOOP], foreign) == ()
    assert plan([], foreign) == ()
    assert taken(LOOP, [foreign])
    assert not taken(LOOP, [as_stored(OURS)])


def test_a_class_goes_with_its_configuration_and_stays_while_that_is_broken() -> None:
    assert plan([], as_stored(OURS)) == (DeleteClass("loop", "uid-1", "7"),)
    assert plan([], as_stored(OURS), named={LOOP}) == ()
