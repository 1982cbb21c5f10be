"""Configurations: problems with their paths, who holds a name, and conditions."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.api import Problem
from driver.configurations.conditions import (
    LONGEST_MESSAGE,
    Condition,
    conditions,
    status_body,
    stored_condition,
)
from driver.configurations.configurations import Verdict, holders, judge, offline_grace
from driver.models import configuration_problems
from tests.driver.builders import NOW, a_configuration_object
from tests.schema_objects import admitted, nearly_admitted, schema_of


def no_problem(_handler: str, _details: str) -> tuple[Problem, ...]:
    return ()


def judged(body: dict[str, Any], check: Any = no_problem) -> Verdict:
    """As the shared driver judges."""
    return judge(body, check, unique_devices_default=True, check_shape=configuration_problems)


def test_akris_defaults_apply_where_a_field_is_absent() -> None:
    configuration = judged(a_configuration_object()).configuration

    assert configuration is not None
    assert configuration.capacity == 1
    assert configuration.unique_devices is True
    assert configuration.offline_grace_period is None
    assert offline_grace(configuration, shared=False) == timedelta()
    assert offline_grace(configuration, shared=True) == timedelta(minutes=5)
    assert configuration.broker_properties == {}


def test_given_fields_are_taken() -> None:
    body = a_configuration_object(
        capacity=4,
        uniqueDevices=False,
        offlineGracePeriod="5m",
        offlineTaintEffect="NoExecute",
        brokerProperties={"FLOOR": "2"},
        attributes={"floor": {"int": 2}},
    )

    configuration = judged(body).configuration

    assert configuration is not None
    assert (configuration.capacity, configuration.unique_devices) == (4, False)
    assert configuration.offline_grace_period == timedelta(minutes=5)
    assert configuration.broker_properties == {"FLOOR": "2"}
    assert configuration.attributes == {"floor": {"int": 2}}
    assert configuration.offline_taint_effect == "NoExecute"


@pytest.mark.parametrize("capacity", [0, -1, 1025, 2**63, "4", True, 1.5])
def test_a_capacity_that_cannot_be_served_names_its_field(capacity: object) -> None:
    verdict = judged(a_configuration_object(capacity=capacity))

    assert verdict.configuration is None
    assert [p.path for p in verdict.problems] == ["spec.capacity"]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"uniqueDevices": "yes"}, "spec.uniqueDevices"),
        ({"offlineGracePeriod": "soon"}, "spec.offlineGracePeriod"),
        ({"offlineGracePeriod": 5}, "spec.offlineGracePeriod"),
        ({"offlineTaintEffect": "Evict"}, "spec.offlineTaintEffect"),
        ({"offlineTaintEffect": ["NoExecute"]}, "spec.offlineTaintEffect"),
        ({"attributes": {"floor": 2}}, "spec.attributes[floor]"),
        ({"attributes": {"floor": {}}}, "spec.attributes[floor]"),
        ({"attributes": {"floor": {"int": True}}}, "spec.attributes[floor].int"),
        ({"attributes": {str(n): {"int": 1} for n in range(17)}}, "spec.attributes"),
        ({"attributes": ["floor"]}, "spec.attributes"),
        ({"brokerProperties": {"N": 1}}, "spec.brokerProperties[N]"),
        ({"brokerProperties": {"N": "x" * (128 << 10)}}, "spec.brokerProperties"),
        ({"discoveryHandler": {}}, "spec.discoveryHandler.name"),
        ({"discoveryHandler": "udev"}, "spec.discoveryHandler"),
        (
            {"discoveryHandler": {"name": "udev", "discoveryDetails": {"udevRules": []}}},
            "spec.discoveryHandler.discoveryDetails",
        ),
    ],
)
def test_a_wrong_field_is_named(spec: dict[str, Any], path: str) -> None:
    assert [p.path for p in judged(a_configuration_object(**spec)).problems] == [path]


def test_all_problems_are_named_at_once() -> None:
    broken = Problem("spec.discoveryHandler.discoveryDetails.udevRules[0]", "It is empty.")
    body = a_configuration_object(capacity=0, attributes={"a-b": {"int": 1}})

    verdict = judged(body, lambda _handler, _details: (broken,))

    assert [p.path for p in verdict.problems] == [
        "spec.capacity",
        "spec.attributes[a-b]",
        broken.path,
    ]


SCHEMA = schema_of("configurations.akri.sh")


@given(st.one_of(admitted(SCHEMA), nearly_admitted(SCHEMA)))
def test_a_node_judges_as_the_shared_driver_does(spec: dict[str, Any]) -> None:
    """What the API server refuses, no node sees; all else is the same to both."""
    body = a_configuration_object() | {"spec": spec}

    on_node = judge(body, no_problem, unique_devices_default=True)
    shared = judged(body)

    if not configuration_problems(body):
        assert on_node == shared
    if on_node.configuration is None:
        assert shared.configuration is None


def test_broker_specs_are_accepted_and_their_condition_is_decided_elsewhere() -> None:
    body = a_configuration_object(
        brokerSpec={"brokerPodSpec": {}}, instanceServiceSpec={"ports": []}
    )

    verdict = judged(body)

    assert verdict.configuration is not None
    assert [each.type for each in conditions(verdict, verdict)] == ["Accepted"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    [
        "capacity",
        "uniqueDevices",
        "offlineGracePeriod",
        "offlineTaintEffect",
        "brokerProperties",
        "attributes",
        "discoveryHandler",
    ]
)


@given(st.dictionaries(FIELDS, JSON))
def test_no_spec_raises_and_every_refusal_has_a_reason(spec: dict[str, Any]) -> None:
    body = a_configuration_object(**spec)

    for verdict in (judged(body), judge(body, no_problem, unique_devices_default=True)):
        assert (verdict.configuration is None) == bool(verdict.problems)


def an_object_of(
    namespace: str, created: str, *, name: str = "loop", **spec: Any
) -> dict[str, Any]:
    body = a_configuration_object(name, **spec)
    body["metadata"] |= {
        "namespace": namespace,
        "uid": f"uid-{namespace}",
        "creationTimestamp": created,
    }
    return body


def test_the_older_of_two_namespaces_holds_the_name_even_while_it_is_broken() -> None:
    older = judged(an_object_of("zeta", "2026-11-01T00:00:00Z", capacity=0))
    younger = judged(an_object_of("alpha", "2026-11-02T00:00:00Z"))

    held = holders([younger, older])

    assert held == {older.name: older}
    accepted, taken = conditions(younger, older, classes_taken=["loop"])
    assert (accepted.status, accepted.reason) == ("False", "NameTaken")
    assert (taken.type, taken.status, taken.reason) == ("NameTaken", "True", "OlderConfiguration")
    assert accepted.message == taken.message
    assert "zeta/loop" in accepted.message


@pytest.mark.parametrize(("length", "problems"), [(246, 0), (247, 1)])
def test_a_name_leaves_room_for_those_of_its_instances(length: int, problems: int) -> None:
    verdict = judged(an_object_of("alpha", "2026-11-02T00:00:00Z", name="x" * length))

    assert [problem.path for problem in verdict.problems] == ["metadata.name"] * problems


def test_a_broken_configuration_says_where() -> None:
    verdict = judged(a_configuration_object(capacity=0))

    (accepted,) = conditions(verdict, verdict)

    assert (accepted.status, accepted.reason) == ("False", "Invalid")
    assert accepted.message.startswith("spec.capacity: ")


def test_a_name_that_the_kubelet_cannot_use_is_accepted_and_said() -> None:
    """Through Dynamic Resource Allocation its devices are offered all the same."""
    fitting, long = (
        judged(an_object_of("alpha", "2026-11-02T00:00:00Z", name="c" * length))
        for length in (54, 55)
    )

    assert [c.type for c in conditions(fitting, fitting)] == ["Accepted"]
    accepted, plugin = conditions(long, long)
    assert accepted.status == "True"
    assert (plugin.type, plugin.status, plugin.reason) == ("DevicePlugin", "False", "InvalidName")
    assert "The name has 55 characters, so device ids have 64" in plugin.message
    assert plugin.message.endswith("shorten the name to 54 characters.")


def test_a_handler_that_nobody_knows_is_a_condition() -> None:
    body = a_configuration_object(discoveryHandler={"name": "onviff"})
    entry = {"name": "node-a", "handler": "Waiting", "message": "No.", "registered": False}
    body["status"] = {"nodes": [entry, {"name": "node-b", "handler": "Active"}]}
    verdict = judged(body)

    accepted, missing = conditions(verdict, verdict, own_handlers=("onvif",))

    sentence = 'No discovery handler "onviff" is registered on node-a.'
    assert accepted == Condition("Accepted", "True", "Valid", f"It is valid. {sentence}")
    assert missing == Condition("HandlerRegistered", "False", "NotRegistered", sentence)


def test_what_is_discovered_is_said_as_far_as_it_is_known() -> None:
    verdict = judged(a_configuration_object(discoveryHandler={"name": "shelf"}))

    (ours,) = conditions(verdict, verdict, own_handlers=("shelf",))
    (theirs,) = conditions(verdict, verdict, own_handlers=("onvif",))

    assert ours.message == "Its devices are discovered."
    assert theirs.message == (
        'Its devices are discovered where a discovery handler "shelf" is registered.'
    )


def test_properties_that_a_node_cannot_read_are_a_condition() -> None:
    body = a_configuration_object()
    entry = {"name": "node-a", "handler": "Active", "message": "No.", "propertiesRead": False}
    body["status"] = {"nodes": [entry, {"name": "node-b", "handler": "Waiting"}]}
    verdict = judged(body)

    _, unread = conditions(verdict, verdict)

    assert unread == Condition("PropertiesRead", "False", "NotRead", "node-a: No.")


def test_devices_that_another_configuration_offers_too_are_a_condition() -> None:
    body = a_configuration_object()
    entry = {"name": "node-b", "handler": "Active", "message": "One.", "devicesDistinct": False}
    body["status"] = {"nodes": [entry, {**entry, "name": "node-a"}, {"name": "node-c"}]}
    verdict = judged(body)

    _, told = conditions(verdict, verdict)

    message = "node-a: One. node-b: One."
    assert told == Condition("DevicesDistinct", "False", "OtherConfiguration", message)


def test_what_handlers_report_to_be_wrong_is_a_condition_and_no_success() -> None:
    body = a_configuration_object(discoveryHandler={"name": "onvif"})
    refused = {"handler": "Active", "message": "It answers 401.", "devicesComplete": False}
    nodes = [{"name": f"node-{n}", **refused} for n in "dcba"]
    body["status"] = {"nodes": [*nodes, {"name": "node-e", "handler": "Active", "message": "No."}]}
    verdict = judged(body)

    accepted, told = conditions(verdict, verdict, own_handlers=("onvif",))

    assert accepted.message == (
        "Its devices are discovered, except as condition DevicesComplete says."
    )
    message = "node-a, node-b, node-c and 1 more: It answers 401."
    assert told == Condition("DevicesComplete", "False", "ProblemsReported", message)


def test_discovery_properties_are_taken_and_their_flaws_are_problems() -> None:
    body = a_configuration_object()
    handler = body["spec"]["discoveryHandler"]
    handler["discoveryProperties"] = [{"name": "user", "value": "viewer"}]
    configuration = judged(body).configuration
    assert configuration is not None
    assert configuration.discovery_properties == {"user": "viewer"}

    handler["discoveryProperties"] = [{"name": "user"}]
    assert [p.path for p in judged(body).problems] == [
        "spec.discoveryHandler.discoveryProperties[0]"
    ]


def test_a_message_fits_into_a_condition() -> None:
    many = tuple(Problem(f"rules[{i}]", "x" * 100) for i in range(1000))
    verdict = judged(a_configuration_object(), lambda _handler, _details: many)

    (accepted,) = conditions(verdict, verdict)

    assert len(accepted.message) == LONGEST_MESSAGE


WANTED = (Condition("Accepted", "True", "Valid", "Fine."),)


def test_a_status_that_says_the_same_is_not_written_again() -> None:
    verdict = judged(a_configuration_object())
    written = status_body(verdict, WANTED, {}, now=NOW)

    assert written is not None
    assert status_body(verdict, WANTED, written, now=NOW + timedelta(hours=1)) is None


def test_a_condition_that_is_stored_may_be_kept_as_it_is() -> None:
    verdict = judged(a_configuration_object())
    brokers = Condition("BrokersReady", "False", "Waiting", "1 of 2 brokers run.")
    written = status_body(verdict, (*WANTED, brokers), {}, now=NOW)
    assert written is not None

    kept = stored_condition(written, "BrokersReady")

    assert kept == brokers
    assert status_body(verdict, (*WANTED, kept), written, now=NOW) is None
    assert stored_condition({}, "BrokersReady") is None


def test_a_condition_keeps_its_time_of_transition_while_its_status_stays() -> None:
    verdict = judged(a_configuration_object())
    before = status_body(verdict, WANTED, {}, now=NOW)
    other_reason = (Condition("Accepted", "True", "Other", "Still fine."),)
    turned = (Condition("Accepted", "False", "Invalid", "Not fine."),)
    later = NOW + timedelta(hours=1)

    assert before is not None
    same = status_body(verdict, other_reason, before, now=later)
    changed = status_body(verdict, turned, before, now=later)

    assert same is not None
    assert changed is not None
    assert same["conditions"][0]["lastTransitionTime"] == "2026-11-21T12:00:00Z"
    assert changed["conditions"][0]["lastTransitionTime"] == "2026-11-21T13:00:00Z"


def test_classes_that_somebody_else_made_are_named() -> None:
    verdict = judged(a_configuration_object())

    _, taken = conditions(verdict, verdict, classes_taken=["loop", "loop-7a7a7a"])

    assert (taken.type, taken.reason) == ("NameTaken", "DeviceClassExists")
    assert taken.message == (
        "DeviceClass loop exists and was not made by Moorage: Moorage does not change it. "
        "DeviceClass loop-7a7a7a exists and was not made by Moorage: Moorage does not change it."
    )


@pytest.mark.parametrize(
    ("spec", "told"),
    [({"capacity": 2}, True), ({"capacity": 2, "uniqueDevices": False}, False), ({}, False)],
)
def test_where_slots_are_devices_uniqueness_is_told_not_to_be_enforced(
    spec: dict[str, Any], told: bool
) -> None:
    verdict = judged(a_configuration_object(**spec))

    shown = {c.type: c.reason for c in conditions(verdict, verdict, keeps_slots=False)}

    assert shown.get("UniqueDevices") == ("NotEnforced" if told else None)
    assert "UniqueDevices" not in {c.type for c in conditions(verdict, verdict)}
