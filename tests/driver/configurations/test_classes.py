"""DeviceClasses: what is selected, and whose classes are touched."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping
from typing import Any

from driver.api import ConfigurationName, InstanceName
from driver.configurations.classes import (
    ApplyClass,
    DeleteClass,
    StoredClass,
    class_body,
    plan_classes,
    stored_class,
    taken,
    wanted_classes,
)

LOOP = ConfigurationName("loop")
LOOP_7 = InstanceName("loop-7a7a7a")


def as_stored(body: Mapping[str, Any], **labels: str) -> StoredClass:
    stored = copy.deepcopy(dict(body))
    stored["metadata"] |= {"uid": "uid-1", "resourceVersion": "7"}
    stored["metadata"]["labels"] |= labels
    return stored_class(stored)


def plan(
    accepted: list[ConfigurationName],
    *stored: StoredClass,
    named: Collection[ConfigurationName] = (),
    instances: Collection[tuple[InstanceName, ConfigurationName]] = (),
) -> Any:
    wanted = wanted_classes(accepted, {*accepted, *named}, extended_resources=True)
    return plan_classes(wanted.with_instances(instances, extended_resources=True), stored)


OURS = class_body(LOOP, extended_resources=True)
OF_INSTANCE = class_body(LOOP, LOOP_7, extended_resources=True)


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
    assert taken({LOOP, "other"}, [foreign]) == (LOOP,)
    assert taken({LOOP}, [as_stored(OURS)]) == ()


def test_a_class_goes_with_its_configuration_and_stays_while_that_is_broken() -> None:
    assert plan([], as_stored(OURS)) == (DeleteClass("loop", "uid-1", "7"),)
    assert plan([], as_stored(OURS), named={LOOP}) == ()


def test_a_class_of_an_instance_selects_it_and_says_whose_it_is() -> None:
    expression = OF_INSTANCE["spec"]["selectors"][0]["cel"]["expression"]

    assert expression.endswith('.instance == "loop-7a7a7a"')
    assert OF_INSTANCE["metadata"]["name"] == LOOP_7
    assert OF_INSTANCE["metadata"]["labels"]["moorage.dev/configuration"] == LOOP
    assert OF_INSTANCE["spec"]["extendedResourceName"] == "akri.sh/loop-7a7a7a"


def test_a_class_of_an_instance_comes_and_goes_with_it() -> None:
    stored = as_stored(OURS), as_stored(OF_INSTANCE)

    assert plan([LOOP], instances=[(LOOP_7, LOOP)]) == (ApplyClass(OURS), ApplyClass(OF_INSTANCE))
    assert plan([LOOP], *stored, instances=[(LOOP_7, LOOP)]) == ()
    assert plan([LOOP], *stored) == (DeleteClass(LOOP_7, "uid-1", "7"),)


def test_the_classes_of_instances_stay_while_their_configuration_is_broken() -> None:
    stored = as_stored(OURS), as_stored(OF_INSTANCE)

    assert plan([], *stored, named={LOOP}, instances=[(LOOP_7, LOOP)]) == ()


def test_a_configuration_comes_before_an_instance_of_its_name() -> None:
    namesake = ConfigurationName(LOOP_7)
    ours = class_body(namesake, extended_resources=True)

    planned = plan([LOOP, namesake], instances=[(LOOP_7, LOOP)])

    assert planned == (ApplyClass(OURS), ApplyClass(ours))
