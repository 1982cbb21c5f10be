"""The kubelet's pod-resources listing, over a real socket."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver.device_ids import DeviceKey
from driver.device_plugin.kubelet import listings
from driver.instances.slots.node_pods import ListedDevice, Listing, PodName
from driver.kubelet_api.podresources.v1 import api_pb2 as v1
from driver.plumbing import kubelet_channels
from tests.fakes.pod_resources import FakePodResources

CAMERA = "akri.sh/camera"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path: that of a socket has 107 bytes."""
    with tempfile.TemporaryDirectory(dir="/tmp") as root:
        yield Path(root)


async def listing(folder: Path, clock: Iterator[float] | None = None) -> Listing | None:
    return await listings.list_devices(folder, lambda: next(clock) if clock else 0.0)


def listed(pod: str, container: str, resource: str, id_: str) -> ListedDevice:
    return ListedDevice(PodName("story", pod), container, DeviceKey(resource, id_))


async def test_listing_names_every_device_of_ours_and_no_other(folder: Path) -> None:
    async with FakePodResources(folder) as kubelet:
        kubelet.give("story/one", "main", CAMERA, "camera-a1b2c3", "camera-0a0b0c")
        kubelet.give("story/two", "side", "akri.sh/camera-a1b2c3", "camera-a1b2c3-0")
        kubelet.give("story/two", "main", "example.com/gpu", "0")
        found = await listing(folder)

    assert found == Listing(
        0.0,
        frozenset(
            {
                listed("one", "main", CAMERA, "camera-a1b2c3"),
                listed("one", "main", CAMERA, "camera-0a0b0c"),
                listed("two", "side", "akri.sh/camera-a1b2c3", "camera-a1b2c3-0"),
            }
        ),
    )


async def test_moment_is_before_the_question(folder: Path) -> None:
    clock = iter((1.0, 2.0))
    async with FakePodResources(folder, on_list=lambda: next(clock)):
        found = await listing(folder, clock)

    assert found == Listing(1.0, frozenset())
    assert list(clock) == []


async def test_listing_of_a_large_node_fits(folder: Path) -> None:
    async with FakePodResources(folder) as kubelet:
        for number in range(2000):
            kubelet.give(f"story/{number}", "main", CAMERA, *("x" * 3000,))

        found = await listing(folder)

    assert found is not None
    assert len(found.devices) == 2000


def nameless(**lacks: str) -> v1.ListPodResourcesResponse:
    """A listing with one thing left out."""
    full = {"namespace": "story", "pod": "one", "container": "main", "resource": CAMERA, "id": "a"}
    has = {**full, **lacks}
    return v1.ListPodResourcesResponse(
        pod_resources=[
            v1.PodResources(
                namespace=has["namespace"],
                name=has["pod"],
                containers=[
                    v1.ContainerResources(
                        name=has["container"],
                        devices=[
                            v1.ContainerDevices(
                                resource_name=has["resource"], device_ids=[has["id"]]
                            )
                        ],
                    )
                ],
            )
        ]
    )


@pytest.mark.parametrize(
    ("lacks", "problem"),
    [
        ("namespace", "its answer lacks a pod's namespace"),
        ("pod", "its answer lacks a pod's name"),
        ("container", "its answer lacks the name of a container of pod story/one"),
        ("resource", "its answer lacks the resource of a device of pod story/one"),
        ("id", "its answer lacks an id of akri.sh/camera of pod story/one"),
    ],
)
async def test_partial_listing_is_none(
    folder: Path, lacks: str, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with FakePodResources(folder, answer=nameless(**{lacks: ""})):
        assert await listing(folder) is None

    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().endswith(f"kubelet.sock: {problem}")


async def test_device_without_ids_is_partial(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with FakePodResources(folder) as kubelet:
        kubelet.give("story/one", "main", CAMERA)

        assert await listing(folder) is None

    assert "its answer lacks the ids of akri.sh/camera of pod story/one\n" in caplog.text


async def test_garbage_late_refused_and_absent_answers_are_none_until_one_is_whole(
    folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await listing(folder) is None
    assert ".sock: UNAVAILABLE: " in caplog.text
    async with FakePodResources(folder, answer=b"\x0a\xff garbage") as kubelet:
        assert await listing(folder) is None
        assert ".sock: its answer is unreadable\n" in caplog.text
        kubelet.answer = v1.ListPodResourcesResponse()
        kubelet.stuck = True
        with monkeypatch.context() as impatient:
            impatient.setattr(kubelet_channels, "LIST_SECONDS", 0.3)
            assert await listing(folder) is None
        assert ".sock: DEADLINE_EXCEEDED: " in caplog.text
        kubelet.stuck = False
        kubelet.refuse = "rejected by rate limit"
        assert await listing(folder) is None
        assert ".sock: RESOURCE_EXHAUSTED: rejected by rate limit\n" in caplog.text
        assert len(caplog.records) == 4, "one line for each turn"
        kubelet.refuse = ""
        assert await listing(folder) == Listing(0.0, frozenset())
