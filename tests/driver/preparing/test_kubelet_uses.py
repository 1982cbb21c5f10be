"""The kubelet is asked at its socket, and its state read from its folder."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver.kubelet_api.podresources.v1 import api_pb2 as v1
from driver.preparing.claim_uses import STATE
from driver.preparing.kubelet_uses import KubeletUses
from tests.driver.claim_builders import a_reference
from tests.driver.preparing.test_claim_uses import state_text
from tests.fakes.pod_resources import FakePodResources

CLAIM = a_reference(1)


@pytest.fixture
def root() -> Iterator[Path]:
    """In a folder with a short path: that of a socket has 107 bytes."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        (Path(folder) / STATE).write_bytes(state_text(ClaimInfoStateList=[]))
        yield Path(folder)


async def test_a_claim_that_neither_names_is_not_held(root: Path) -> None:
    async with FakePodResources(root / "pod-resources"):
        assert await KubeletUses(root).holds(CLAIM) is False


async def test_a_claim_that_a_container_has_is_held(root: Path) -> None:
    resource = v1.DynamicResource(claim_namespace=CLAIM.namespace, claim_name=CLAIM.name)
    container = v1.ContainerResources(name="main", dynamic_resources=[resource])
    pods = [v1.PodResources(namespace="default", name="user", containers=[container])]

    async with FakePodResources(
        root / "pod-resources", v1.ListPodResourcesResponse(pod_resources=pods)
    ):
        assert await KubeletUses(root).holds(CLAIM) is True


@pytest.mark.parametrize("problem", ["no state", "no kubelet", "nonsense"])
async def test_what_cannot_be_known_is_unknown(root: Path, problem: str) -> None:
    async with FakePodResources(root / "pod-resources") as kubelet:
        if problem == "no state":
            (root / STATE).unlink()
        if problem == "no kubelet":
            kubelet.refuse = "busy"
        if problem == "nonsense":
            kubelet.answer = b"\xff\xff"

        assert await KubeletUses(root).holds(CLAIM) is None
