"""Carrying out plans: what is refused holds back its Configuration, what is remade comes later."""

from __future__ import annotations

from typing import Any, cast

import pytest

from driver.brokers.apiserver_workloads import BrokerWorkloads
from driver.brokers.apiserver_writes import BrokerWrites
from driver.brokers.bodies import Made
from driver.brokers.plans import Plan
from driver.brokers.stored import Stored
from kube.calls.api import ApiClient, ApiError, ForbiddenError, NotFoundError, UnavailableError
from kube.objects import JsonObject
from kube.reconciling.api import After, Done
from kube.resources import ObjectPath
from tests.driver.brokers.broker_builders import a_device, planned, some_jobs, some_workloads

KEY = ("plant", "akri-onvif")
DEVICE, OTHER = a_device(), a_device("akri-onvif-a19705")


class FakeWorkloads:
    """Notes what is written; refuses where a test says so."""

    def __init__(self) -> None:
        self.error: ApiError | None = None
        self.written: list[str] = []

    async def create(self, made: Made) -> None:
        if self.error:
            raise self.error
        self.written.append(made.name)

    apply = create

    async def delete(self, found: Stored) -> None:
        if self.error:
            raise self.error
        self.written.append(f"no {found.name}")


class FakeInstances:
    """Takes marks of Instances, unless they are gone."""

    def __init__(self) -> None:
        self.marks: list[JsonObject] = []
        self.is_gone = False

    async def merge_patch(self, path: ObjectPath, patch: JsonObject, **_: Any) -> JsonObject:
        if self.is_gone:
            raise NotFoundError(f"no {path.name}")
        self.marks.append(patch)
        return patch


@pytest.fixture
def workloads() -> FakeWorkloads:
    return FakeWorkloads()


@pytest.fixture
def instances() -> FakeInstances:
    return FakeInstances()


@pytest.fixture
def writes(workloads: FakeWorkloads, instances: FakeInstances) -> BrokerWrites:
    return BrokerWrites(cast("ApiClient", instances), cast("BrokerWorkloads", workloads))


def refusals(writes: BrokerWrites) -> tuple[str, ...]:
    return writes.refusals(*KEY, {DEVICE.name, OTHER.name}.__contains__)


def a_plan(device: Any = DEVICE) -> Plan:
    plan = planned(some_workloads(), device)
    assert len(plan.creates) == 2
    return plan


async def test_a_broker_that_is_made_again_waits_longer_each_time(
    writes: BrokerWrites, workloads: FakeWorkloads
) -> None:
    name = a_plan().creates[0].name
    assert writes.waits("plant", name) == 0
    assert isinstance(await writes.carry_out(a_plan(), KEY, DEVICE), Done)
    first = writes.waits("plant", name)
    await writes.carry_out(a_plan(), KEY, DEVICE)

    assert workloads.written == [made.name for made in a_plan().creates] * 2
    assert 0 < first <= 1
    assert 1 < writes.waits("plant", name) <= 2


async def test_a_refusal_holds_back_all_of_a_configuration_and_is_told(
    writes: BrokerWrites, workloads: FakeWorkloads
) -> None:
    workloads.error = ForbiddenError("no right", status=403, reason="Forbidden")
    first = await writes.carry_out(a_plan(), KEY, DEVICE)
    workloads.error = None
    second = await writes.carry_out(a_plan(OTHER), KEY, OTHER)

    assert isinstance(first, After)
    assert first.seconds >= 1
    assert isinstance(second, After)
    assert not workloads.written
    assert refusals(writes) == ("403 Forbidden: no right",)
    assert not writes.refusals(*KEY, OTHER.name.__eq__), "the device of the first one is gone"


async def test_a_changed_configuration_is_tried_at_once(
    writes: BrokerWrites, workloads: FakeWorkloads
) -> None:
    workloads.error = ForbiddenError("no right")
    await writes.carry_out(a_plan(), KEY, DEVICE)
    workloads.error = None

    writes.forget(*KEY)

    assert not refusals(writes)
    assert isinstance(await writes.carry_out(a_plan(), KEY, DEVICE), Done)


async def test_what_succeeds_ends_the_refusal(
    writes: BrokerWrites, workloads: FakeWorkloads
) -> None:
    workloads.error = ForbiddenError("no right")
    await writes.carry_out(Plan(), KEY, DEVICE)
    assert not refusals(writes), "a plan without writes is not refused"
    deleting = Plan(deletes=tuple(stored_of(a_plan())))
    await writes.carry_out(deleting, KEY, DEVICE)
    assert refusals(writes) == ("no right",)
    workloads.error = None

    await writes.carry_out(deleting, KEY, DEVICE)

    assert not refusals(writes)


def stored_of(plan: Plan) -> list[Stored]:
    return [
        Stored(
            resource=made.resource,
            namespace=made.namespace,
            name=made.name,
            uid=made.name,
            revision=made.revision,
            configuration="akri-onvif",
            instance=DEVICE.name,
            owner=DEVICE.uid,
            deleted=False,
        )
        for made in plan.creates
    ]


async def test_an_api_server_that_is_away_is_tried_again_by_the_queue(
    writes: BrokerWrites, workloads: FakeWorkloads
) -> None:
    workloads.error = UnavailableError("away")

    with pytest.raises(UnavailableError):
        await writes.carry_out(a_plan(), KEY, DEVICE)

    assert not refusals(writes)


async def test_a_job_is_remembered_once_it_is_made(
    writes: BrokerWrites, instances: FakeInstances, workloads: FakeWorkloads
) -> None:
    plan = planned(some_jobs(), DEVICE)
    workloads.error = ForbiddenError("no right")
    await writes.carry_out(plan, KEY, DEVICE)
    assert not instances.marks
    workloads.error = None
    writes.forget(*KEY)

    await writes.carry_out(plan, KEY, DEVICE)

    (mark,) = instances.marks
    assert mark["metadata"]["uid"] == DEVICE.uid
    assert mark["metadata"]["annotations"] == {"moorage.dev/broker-job": plan.ran}


async def test_an_instance_that_is_gone_remembers_nothing(
    writes: BrokerWrites, instances: FakeInstances
) -> None:
    instances.is_gone = True

    assert isinstance(await writes.carry_out(planned(some_jobs(), DEVICE), KEY, DEVICE), Done)


async def test_making_many_takes_its_time(writes: BrokerWrites) -> None:
    result = await writes.carry_out(a_plan(), KEY, DEVICE)

    assert isinstance(result, Done)
    assert result.pause == pytest.approx(0.4)
