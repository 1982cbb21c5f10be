"""Configurations: who writes one is told what the driver will not accept; none is refused."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from driver.api import NodeName
from driver.handler_checks import HANDLER_NAMES, configuration_flaws
from driver.handlers.registrations import HandlerState
from driver.handlers.status_entries import Report, entry_of, unregistered
from scheduler_plugin.objects.api import ResourceKey
from tests.webhook.builders import a_review
from webhook.findings import NOTHING_FOUND, Findings
from webhook.rules.configurations import (
    ConfigurationView,
    configuration_view,
    handler_reports,
    judge_written,
)

DETAILS = "spec.discoveryHandler.discoveryDetails"
CONSEQUENCE = "Until this is corrected, Moorage discovers no devices for this Configuration."
UDEV = """udevRules: ['KERNEL=="video[0-9]*"']"""


def a_configuration(handler: str = "udev", details: str = UDEV, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "akri.sh/v0",
        "kind": "Configuration",
        "metadata": {"name": "camera", "namespace": "default"},
        "spec": {"discoveryHandler": {"name": handler, "discoveryDetails": details}, **spec},
    }


def written(new: Any, old: Any = None, reported: Mapping[str, str] | None = None) -> Findings:
    review = a_review("Configuration", new, old)
    return judge_written(review, configuration_flaws(new), HANDLER_NAMES, reported or {})


def test_one_that_will_be_accepted_gets_no_warning() -> None:
    assert written(a_configuration(capacity=5, offlineGracePeriod="5m")) == NOTHING_FOUND


@pytest.mark.parametrize(
    ("configuration", "said"),
    [
        (a_configuration(capacity=0), "spec.capacity: 0 is not a number from 1 to 1024."),
        (a_configuration(details="udevRules: ["), f"{DETAILS}: Line 1, column 13: this is not"),
        (a_configuration(details="udevRule: []"), f"{DETAILS}.udevRule: Line 1, column 1: unknown"),
        (
            a_configuration(details="udevRules: 7"),
            f"{DETAILS}.udevRules: Line 1, column 12: a list",
        ),
        (a_configuration("onvif", "discoveryTimeoutSeconds: x"), f"{DETAILS}.discoveryTimeoutSec"),
        (a_configuration("debugEcho", "descriptions: no"), f"{DETAILS}.descriptions: Line 1"),
        (
            a_configuration(""),
            "spec.discoveryHandler.name: The name of a discovery handler is required.",
        ),
    ],
)
def test_what_the_driver_will_not_accept_is_said_with_its_field(
    configuration: Any, said: str
) -> None:
    found = written(configuration)

    assert found.problems == ()
    assert any(warning.startswith(said) for warning in found.warnings), found.warnings
    assert found.warnings[-1] == CONSEQUENCE


def test_all_that_is_wrong_is_said_at_once() -> None:
    found = written(a_configuration(capacity=0, details="udevRule: []"))

    assert [warning.partition(": ")[0] for warning in found.warnings[:3]] == [
        "spec.capacity",
        f"{DETAILS}.udevRule",
        f"{DETAILS}.udevRules",
    ]


def test_a_handler_that_no_node_reports_may_register_yet() -> None:
    found = written(a_configuration("barcode", "anything: [at all"))

    assert found.warnings == (
        'spec.discoveryHandler.name: No node reports a discovery handler "barcode" yet. Built in'
        " are debugEcho, onvif, opcua, udev; start any other handler on the nodes.",
    )


def test_a_handler_that_serves_a_configuration_is_known() -> None:
    assert written(a_configuration("barcode", ""), reported={"barcode": ""}) == NOTHING_FOUND


MISSING = 'No discovery handler "barcode" is registered on node-b.'


def reports(
    views: Iterable[ConfigurationView], with_devices: Collection[str] = ()
) -> Mapping[str, str]:
    return handler_reports(views, lambda name: name in with_devices)


def test_a_handler_that_some_nodes_lack_is_not_said_to_be_on_none() -> None:
    """Nodes where all is well have no entry in a status: that node-a has one is not told there."""
    entries = {"node-b": entry_of(NodeName("node-b"), "barcode", []) or {}}
    told = unregistered("barcode", entries)
    conditions = [
        {"type": "Accepted", "status": "True"},
        {"type": "HandlerRegistered", "status": "False", "message": told},
    ]
    view = configuration_view({**a_configuration("barcode"), "status": {"conditions": conditions}})

    found = written(a_configuration("barcode", ""), reported=reports([view]))

    assert found.warnings == (
        f"spec.discoveryHandler.name: {MISSING} Nodes discover devices only where one is"
        " registered.",
    )


def test_a_handler_that_serves_one_configuration_everywhere_is_on_all_nodes() -> None:
    views = [
        ConfigurationView(ResourceKey(name), "barcode", True, told)
        for name, told in (("a", MISSING), ("b", ""), ("c", MISSING))
    ]

    assert reports(views, ["b"]) == {"barcode": ""}
    assert reports(views) == reports(views[:1]) == {"barcode": MISSING}
    assert reports([ConfigurationView(ResourceKey("a"), "barcode")], ["a"]) == {}


def test_a_new_configuration_of_which_no_node_said_anything_tells_of_no_handler() -> None:
    """It is accepted at once, and what a node has to say of a handler comes later, or never."""
    view = ConfigurationView(ResourceKey("a"), "barcode", is_accepted=True)

    assert reports([view]) == {}
    assert reports([view], ["a"]) == {"barcode": ""}
    assert reports([replace(view, is_registered=True)]) == {"barcode": ""}


@pytest.mark.parametrize(
    ("entry", "is_registered"),
    [
        (entry_of(NodeName("n"), "barcode", []), False),
        (entry_of(NodeName("n"), "barcode", [Report(HandlerState.WAITING, problem="x")]), False),
        (entry_of(NodeName("n"), "barcode", [Report(HandlerState.ACTIVE, problem="x")]), True),
        (entry_of(NodeName("n"), "barcode", [Report(HandlerState.OFFLINE)]), True),
    ],
)
def test_a_node_that_says_something_of_a_handler_has_it(entry: Any, is_registered: bool) -> None:
    view = configuration_view({**a_configuration("barcode"), "status": {"nodes": [entry]}})

    assert view.is_registered is is_registered


@pytest.mark.parametrize(
    ("reported", "said"),
    [
        ({}, 'No node reports a discovery handler "ONVIF" yet. Did you mean "onvif"? Built in'),
        ({"ONVIF": "It is on no node."}, 'It is on no node. Did you mean "onvif"? Nodes discover'),
        ({"ONVIF": ""}, 'The discovery handler "ONVIF" is not built in. Did you mean "onvif"?'),
    ],
)
def test_a_name_that_differs_by_its_case_is_pointed_at_whatever_is_known(
    reported: Mapping[str, str], said: str
) -> None:
    """Other Configurations may have it, too, and a status be written by then."""
    (warning,) = written(a_configuration("ONVIF", ""), reported=reported).warnings

    assert said in warning


@pytest.mark.parametrize("change", [{}, {"labels": {"a": "b"}}, {"finalizers": []}])
def test_an_update_that_leaves_the_spec_alone_gets_no_warning(change: dict[str, Any]) -> None:
    old = a_configuration(capacity=0)
    new = {**old, "metadata": {**old["metadata"], **change}}

    assert written(new, old) == NOTHING_FOUND


def test_one_that_is_being_deleted_gets_no_warning() -> None:
    old = a_configuration()
    new = a_configuration(capacity=0)
    new["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"

    assert written(new, old) == NOTHING_FOUND


@pytest.mark.parametrize(
    ("conditions", "is_served"),
    [
        ({}, False),
        ({"Accepted": "True"}, True),
        ({"Accepted": "False"}, False),
        ({"Accepted": "True", "HandlerRegistered": "False"}, False),
    ],
)
def test_a_handler_is_known_by_a_configuration_that_it_serves(
    conditions: dict[str, str], is_served: bool
) -> None:
    status = {"conditions": [{"type": kind, "status": is_so} for kind, is_so in conditions.items()]}

    view = configuration_view({**a_configuration("barcode"), "status": status})

    assert (view.name, view.namespace, view.handler) == ("camera", "default", "barcode")
    assert (reports([view], ["camera"]) == {"barcode": ""}) is is_served


@pytest.mark.parametrize("spec", [None, {}, {"discoveryHandler": None}, {"capacity": None}])
def test_one_that_says_nothing_is_looked_at_all_the_same(spec: Any) -> None:
    body = {"metadata": {"name": "camera", "namespace": "default"}, "spec": spec}

    assert written(body).problems == ()
    assert configuration_view(body).handler == ""
