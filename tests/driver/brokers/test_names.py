"""Names and labels: those of Akri, cut where the API would refuse them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.api import ConfigurationName, InstanceName, NodeName
from driver.brokers.names import (
    broker_labels,
    configuration_service_name,
    instance_service_name,
    job_name,
    made_labels,
    pod_name,
    template_name,
)

LONGER_HASH = InstanceName("akri-onvif-8120fe0a19705b3c")
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


@pytest.mark.parametrize(
    ("node", "instance", "shared", "expected"),
    [
        ("node-a", "akri-onvif-8120fe", True, "node-a-akri-onvif-8120fe-pod"),
        ("node-a", "akri-onvif-8120fe", False, "akri-onvif-8120fe-pod"),
        ("node-a", LONGER_HASH, False, "akri-onvif-8120fe0a19705b3c-pod"),
        ("a.example.com", "line.1-onvif-8120fe", True, "a.example.com-line-1-onvif-8120fe-pod"),
        ("a.example.com", "line.1-onvif-8120fe", False, "line-1-onvif-8120fe-pod"),
        ("n" * 60, "akri-onvif-8120fe", True, f"{'n' * 60}-akri-onvif-8120fe-pod"),
    ],
)
def test_a_pod_is_named_after_its_instance_and_its_node_if_several_see_the_device(
    node: str, instance: str, shared: bool, expected: str
) -> None:
    assert pod_name(InstanceName(instance), NodeName(node), shared=shared) == expected


def test_other_objects_are_named_after_the_instance_or_the_configuration() -> None:
    dotted = InstanceName("line.1-8120fe")

    assert job_name(dotted, 3) == "line-1-8120fe-3-job"
    assert instance_service_name(dotted) == "line-1-8120fe-svc"
    assert template_name(dotted) == "line-1-8120fe-claim"
    assert configuration_service_name(ConfigurationName("akri-onvif")) == "akri-onvif-svc"
    assert configuration_service_name(ConfigurationName("line.1")) == "line-1-svc"


@pytest.mark.parametrize("digits", [6, 16])
def test_names_up_to_the_limit_are_akris(digits: int) -> None:
    digest = "f" * digits
    at_limit = InstanceName(f"{'c' * (63 - len('-svc') - 1 - digits)}-{digest}")

    assert instance_service_name(at_limit) == f"{at_limit}-svc"
    assert len(instance_service_name(at_limit)) == 63


def test_longer_names_are_cut_and_stay_different() -> None:
    one, other = InstanceName(f"{'c' * 57}-8120fe"), InstanceName(f"{'c' * 57}-a19705")

    for named in (instance_service_name, lambda name: job_name(name, 3)):
        assert len(named(one)) == len(named(other)) == 63
        assert named(one) != named(other)
        assert named(one).startswith("c" * 52)


def test_labels_are_akris() -> None:
    labels = broker_labels(ConfigurationName("akri-onvif"), LONGER_HASH)

    assert labels == {"akri.sh/configuration": "akri-onvif", "akri.sh/instance": LONGER_HASH}
    assert made_labels("akri-onvif-svc") == {"app": "akri-onvif-svc", "controller": "akri.sh"}


PARTS = st.text("az09-", min_size=1, max_size=63).filter(DNS_LABEL.fullmatch)


def objects(longest: int) -> st.SearchStrategy[str]:
    """Names of objects, long ones among them."""
    joined = st.lists(PARTS, min_size=1, max_size=5).map(".".join)
    return joined.filter(lambda name: len(name) <= longest)


NODES = objects(253) | st.integers(180, 252).map(
    lambda n: f"{'n' * n}.{'m' * (252 - n)}".strip(".")
)


@given(objects(253), NODES, st.booleans(), st.integers(0, 10**9))
def test_any_names_are_valid_for_the_api(
    name: str, node: str, shared: bool, generation: int
) -> None:
    instance = InstanceName(name)

    for subdomain in (pod_name(instance, NodeName(node), shared=shared), template_name(instance)):
        assert SUBDOMAIN.fullmatch(subdomain)
        assert len(subdomain) <= 253
    service = configuration_service_name(ConfigurationName(name))
    for label in (job_name(instance, generation), instance_service_name(instance), service):
        assert DNS_LABEL.fullmatch(label)
        assert len(label) <= 63
    labels = {**broker_labels(ConfigurationName(name), instance), **made_labels(service)}
    assert all(len(value) <= 63 and value[-1].isalnum() for value in labels.values())


def test_a_name_that_is_cut_at_a_dot_of_the_node_is_valid() -> None:
    node = NodeName(f"{'n' * 241}.example")

    cut = pod_name(LONGER_HASH, node, shared=True)

    assert SUBDOMAIN.fullmatch(cut)
    assert cut.startswith("n" * 241)
