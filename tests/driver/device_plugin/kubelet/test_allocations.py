"""Allocate, from the kubelet's call to the slots on the API server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from driver.api import InstanceName
from driver.device_ids import DeviceKey
from driver.device_plugin.containers.responses import ContainerResponse, Files, Refused
from driver.device_plugin.kubelet.allocations import FORGET_SECONDS, Given, KubeletAllocations
from driver.device_plugin.slots.allocation import (
    OfConfiguration,
    Offer,
    OfInstance,
    Plugin,
)
from driver.devices import DeviceSpec
from driver.instances.instances import Instance
from driver.instances.slots.node_pods import ListedDevice, Listing, PodName
from driver.instances.slots.slot_writes import SlotWrite
from kube.calls.api import ApiError, UnavailableError
from tests.driver.slot_builders import (
    CAMERA_1,
    CAMERA_2,
    CONFIGURATION,
    NODE_A,
    NODE_B,
    a_camera,
    by_configuration,
)
from tests.fakes.slot_instances import FakeInstances
from tests.fakes.slots import FakeSlotObjects

IL = OfInstance(CAMERA_1)
CL = OfConfiguration(CONFIGURATION, unique_devices=True)
SLOT_0, SLOT_1 = f"{CAMERA_1}-0", f"{CAMERA_1}-1"


class FakeKubeletSide:
    """A node's Allocates, and what is told of them."""

    def __init__(self, stored: FakeInstances | None = None) -> None:
        self.slots = FakeSlotObjects(stored or FakeInstances.of(CAMERA_1, CAMERA_2))
        self.instances: dict[InstanceName, Instance] = {
            name: a_camera(name) for name in (CAMERA_1, CAMERA_2)
        }
        self.now = 100.0
        self.given = Given(lambda: self.now)
        self.refused: list[Plugin] = []
        self.unwritable: set[InstanceName] = set()
        self.given_files: list[Instance] = []
        self.allocations = KubeletAllocations(
            self.slots, self._offer, self.write, given=self.given, on_refused=self._is_refused
        )

    async def _is_refused(self, plugin: Plugin) -> None:
        self.refused.append(plugin)

    async def write(self, instances: Iterable[Instance]) -> Mapping[InstanceName, Files]:
        """CDI files and links: those that are asked for, as far as they can be written."""
        written = [i for i in instances if i.name not in self.unwritable]
        self.given_files += written
        return {i.name: Files(i.cdi_name, f"/links/{i.hash}") for i in written}

    def _offer(self) -> Offer:
        return Offer(node=NODE_A, slots=self.slots.views(), instances=self.instances)

    async def allocate(
        self, plugin: Plugin, *containers: Sequence[str]
    ) -> tuple[ContainerResponse, ...]:
        answer = await self.allocations.allocate(plugin, containers)
        assert not isinstance(answer, Refused), answer.sentence
        return answer

    async def refusal(self, plugin: Plugin, *containers: Sequence[str]) -> str:
        answer = await self.allocations.allocate(plugin, containers)
        assert isinstance(answer, Refused)
        return answer.sentence

    @property
    def usage(self) -> dict[str, str]:
        return self.slots.stored.usage()


def away() -> ApiError:
    error = UnavailableError("the API server is away")
    error.may_have_happened = True
    return error


async def test_a_slot_is_taken_by_one_write() -> None:
    side = FakeKubeletSide()

    (response,) = await side.allocate(IL, [SLOT_0])

    assert side.usage == {SLOT_0: NODE_A}
    assert len(side.slots.writes) == 1
    assert side.slots.reads == []
    assert response.environment["URL"] == "rtsp://8120fe"


async def test_what_the_node_holds_already_is_checked_and_given_again() -> None:
    side = FakeKubeletSide()
    await side.allocate(IL, [SLOT_0])

    await side.allocate(IL, [SLOT_0])

    assert side.slots.reads == [CAMERA_1]
    assert len(side.slots.writes) == 1


async def test_a_slot_that_was_released_unseen_is_taken_again() -> None:
    """Memory follows the API server, never the other way."""
    side = FakeKubeletSide()
    await side.allocate(IL, [SLOT_0])
    side.slots.stored.by_hand(SLOT_0, None)

    await side.allocate(IL, [SLOT_0])

    assert side.usage == {SLOT_0: NODE_A}


async def test_who_comes_second_is_told_who_was_first() -> None:
    side = FakeKubeletSide()
    side.slots.stored.by_hand(SLOT_0, NODE_B)

    sentence = await side.refusal(IL, [SLOT_0])

    assert sentence == f"slot {SLOT_0} is held by node node-b through the Instance"
    assert side.usage == {SLOT_0: NODE_B}
    assert side.refused == [IL]


async def test_another_slot_is_found_where_any_will_do() -> None:
    side = FakeKubeletSide()
    side.slots.stored.by_hand(SLOT_0, NODE_B)

    await side.allocate(CL, [CAMERA_1])

    assert side.usage == {SLOT_0: NODE_B, SLOT_1: by_configuration(CAMERA_1)}


async def test_all_or_nothing_over_two_instances() -> None:
    """The second camera is full by the time it is written, so the first is given back."""
    side = FakeKubeletSide()
    for index in range(2):
        side.slots.stored.by_hand(f"{CAMERA_2}-{index}", NODE_B)

    await side.refusal(CL, [CAMERA_1, CAMERA_2])

    assert side.usage == {f"{CAMERA_2}-0": NODE_B, f"{CAMERA_2}-1": NODE_B}


async def test_what_cannot_be_given_back_now_does_not_hide_the_reason() -> None:
    side = FakeKubeletSide()
    for index in range(2):
        side.slots.stored.by_hand(f"{CAMERA_2}-{index}", NODE_B)
    side.slots.faults = [lambda *_: None, lambda *_: None, lambda *_: away()]

    sentence = await side.refusal(CL, [CAMERA_1, CAMERA_2])

    assert f"Instance {CAMERA_2} has no slot left" in sentence
    assert by_configuration(CAMERA_1) in side.usage.values()


async def test_an_api_server_that_is_away_refuses_with_a_sentence() -> None:
    side = FakeKubeletSide()
    side.slots.faults = [lambda *_: away()]

    sentence = await side.refusal(IL, [SLOT_0])

    assert sentence.endswith("slots cannot be taken now: the API server is away")
    assert side.usage == {}


async def test_somebody_who_writes_without_end_does_not_keep_the_kubelet_for_ever() -> None:
    side = FakeKubeletSide()

    def rewrite(stored: FakeInstances, _: SlotWrite) -> None:
        stored.edit(CAMERA_1, capacity=2)

    side.slots.faults = [rewrite] * 100

    sentence = await side.refusal(IL, [SLOT_0])

    assert "other nodes changed them 8 times" in sentence


async def test_an_offline_device_is_not_given() -> None:
    side = FakeKubeletSide()
    side.instances[CAMERA_1] = replace(side.instances[CAMERA_1], online=False)

    assert await side.refusal(IL, [SLOT_0]) == f"Instance {CAMERA_1} is offline"


async def test_two_calls_for_one_slot_come_one_after_the_other() -> None:
    side = FakeKubeletSide()
    side.slots.go_on.clear()
    first = asyncio.ensure_future(side.allocate(CL, [CAMERA_1]))
    await side.slots.begun.wait()
    second = asyncio.ensure_future(side.allocate(IL, [SLOT_1]))
    await asyncio.sleep(0)
    side.slots.go_on.set()
    await asyncio.gather(first, second)

    assert side.usage == {SLOT_0: by_configuration(CAMERA_1), SLOT_1: NODE_A}
    assert [dict(w.changes).keys() for w in side.slots.writes] == [{0}, {1}]


async def test_the_moment_of_a_grant_is_known_before_it_is_written_and_after() -> None:
    side = FakeKubeletSide()
    seen: list[float] = []

    def note(*_: object) -> None:
        seen.append(side.given.moments[DeviceKey(str(IL), SLOT_0)])
        side.now = 105.0

    side.slots.faults = [note]
    await side.allocate(IL, [SLOT_0])

    assert seen == [100.0]
    assert side.given.moments == {DeviceKey(str(IL), SLOT_0): 105.0}


async def test_moments_are_forgotten_when_no_evidence_is_as_old() -> None:
    side = FakeKubeletSide()
    await side.allocate(IL, [SLOT_0])
    side.now += FORGET_SECONDS / 2
    await side.allocate(IL, [SLOT_1])
    side.now += FORGET_SECONDS / 2 + 1

    side.given.forget_old()

    assert set(side.given.moments) == {DeviceKey(str(IL), SLOT_1)}


@pytest.mark.parametrize("plugin", [IL, CL])
async def test_ids_that_nobody_knows_are_refused(plugin: Plugin) -> None:
    side = FakeKubeletSide()

    sentence = await side.refusal(plugin, ["nonsense"])

    assert sentence == f"'nonsense' is no device of {plugin}"
    assert side.slots.writes == []


def test_two_cameras_are_preferred_to_two_slots_of_one() -> None:
    side = FakeKubeletSide()
    ids = [f"{camera}-{index}" for camera in (CAMERA_1, CAMERA_2) for index in range(2)]

    chosen = side.allocations.preferred(OfConfiguration(CONFIGURATION, False), ids, [], 2)

    assert set(chosen) == {SLOT_0, f"{CAMERA_2}-0"}


async def test_devices_come_with_their_cdi_names_and_by_links() -> None:
    (response,) = await FakeKubeletSide().allocate(CL, [CAMERA_1, CAMERA_2])

    assert response.cdi_names == ("akri.sh/akri-onvif=a19705", "akri.sh/akri-onvif=8120fe")
    assert {spec.host_path for spec in response.device_specs} == {
        "/links/8120fe/device-0",
        "/links/a19705/device-0",
    }


async def test_what_a_link_of_the_host_leads_to_is_given(tmp_path: Path) -> None:
    """A CDI device node must not be a link, and two links may lead to one device."""
    side = FakeKubeletSide()
    for link, name in (("by-id", CAMERA_1), ("by-path", CAMERA_2)):
        (tmp_path / link).symlink_to("/dev/null")
        spec = DeviceSpec("/dev/camera", str(tmp_path / link), "rw")
        side.instances[name] = a_camera(name, device_specs=(spec,))

    await side.allocate(CL, [CAMERA_1, CAMERA_2])

    assert [[spec.host_path for spec in i.device_specs] for i in side.given_files] == [
        ["/dev/null"],
        ["/dev/null"],
    ]


async def test_what_could_not_follow_its_device_is_not_given() -> None:
    side = FakeKubeletSide()
    side.unwritable = {CAMERA_1}

    refused = await side.allocations.allocate(CL, [[CAMERA_1]])

    assert refused == Refused(
        f"akri.sh/{CONFIGURATION}: links to the device of Instance {CAMERA_1} cannot be written on"
        " this node"
    )
    assert side.slots.views()[CAMERA_1].holders == {}


def test_users_are_those_of_the_last_listing_until_a_device_is_given_again() -> None:
    side = FakeKubeletSide()
    first, second = (DeviceKey(str(IL), slot) for slot in (SLOT_0, SLOT_1))
    pod = PodName("default", "user")
    listed = frozenset(ListedDevice(pod, "main", device) for device in (first, second))

    side.given.note_users(Listing(99.0, listed), {first, second})
    assert side.given.users == {first: pod, second: pod}
    side.given.note([first])
    side.given.note_users(Listing(99.5, listed), {first, second})
    assert side.given.users == {second: pod}, "listed before it was given"
    side.given.note_users(Listing(101.0, frozenset()), {first})

    assert side.given.users == {}
