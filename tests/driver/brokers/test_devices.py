"""Devices of Instances, and the mark of a Job that was made."""

from __future__ import annotations

from typing import Any

import pytest

from driver.api import BROKER_JOB
from driver.brokers.devices import Device, device, ran_patch
from driver.instances.unseen_instances import observed_instance
from tests.driver.brokers.broker_builders import a_device
from tests.driver.slot_builders import an_instance_object


def an_instance(metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    found = an_instance_object(**spec)
    found["metadata"] |= {"creationTimestamp": "2026-11-20T12:00:00Z", **(metadata or {})}
    return found


@pytest.mark.parametrize("is_dra", [True, False])
def test_an_instance_is_read(is_dra: bool) -> None:
    body = an_instance(nodes=["node-b", "node-a"], capacity=3, shared=True)

    assert device(observed_instance(body), is_dra=is_dra) == Device(
        namespace="default",
        name=a_device().name,
        uid="uid-of-akri-onvif-8120fe",
        configuration=a_device().configuration,
        shared=True,
        is_dra=is_dra,
        capacity=3,
        nodes=a_device().nodes,
    )


def test_the_mark_of_a_job_is_read_back() -> None:
    patch = ran_patch(a_device(), "abc")
    body = an_instance({"annotations": patch["metadata"]["annotations"]})

    found = device(observed_instance(body), is_dra=False)

    assert found is not None
    assert found.ran == "abc"
    assert patch["metadata"]["uid"] == found.uid


def test_the_mark_of_a_job_is_removed() -> None:
    assert ran_patch(a_device(), "")["metadata"]["annotations"] == {BROKER_JOB: None}


def test_an_instance_that_is_being_deleted_has_no_brokers() -> None:
    body = an_instance({"deletionTimestamp": "2026-11-21T12:00:00Z"})

    assert device(observed_instance(body), is_dra=False) is None
