"""The kubelet is asked which claims it uses, see `claim_uses`."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import grpc.aio
from google.protobuf.message import DecodeError

from driver.plumbing.kubelet_sockets import list_pod_resources
from driver.preparing.claim_uses import STATE, Name, State, is_used, parse_state
from driver.preparing.files.prepared import ClaimReference

logger = logging.getLogger(__name__)


class KubeletUses:
    """What this node's kubelet says that it uses.

    Args:
        root: The kubelet's `--root-dir`. Its state is there, if this process may see it.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    async def holds(self, claim: ClaimReference) -> bool | None:
        """Whether a container may have it, or the kubelet will unprepare it; None: unknown."""
        listed = await self._listed()
        return is_used(claim, await asyncio.to_thread(self._state), listed)

    def _state(self) -> State | None:
        try:
            return parse_state((self._root / STATE).read_bytes())
        except OSError as error:
            logger.warning("The kubelet's state of claims cannot be read: %s", error)
            return None

    async def _listed(self) -> frozenset[Name] | None:
        # Its stubs take memory that is needed once in a node's life, if ever.
        from driver.kubelet_api.podresources.v1 import api_pb2 as v1

        path = self._root / "pod-resources" / "kubelet.sock"
        try:
            answer = v1.ListPodResourcesResponse.FromString(await list_pod_resources(path))
        except (grpc.aio.AioRpcError, DecodeError) as error:
            logger.warning("No listing from the kubelet's %s: %s", path, error)
            return None
        return frozenset(
            (claim.claim_namespace, claim.claim_name)
            for pod in answer.pod_resources
            for container in pod.containers
            for claim in container.dynamic_resources
        )
