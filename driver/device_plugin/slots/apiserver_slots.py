"""Slots on the API server: watched, read, and written until the outcome is known."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Mapping
from types import MappingProxyType

from driver.api import InstanceName, NodeName
from driver.instances.apiserver_instances import instances_of_node
from driver.instances.slots.slot_writes import SlotWrite, merge_patch
from driver.instances.slots.slots import InstanceSlots, counting, instance_slots
from driver.plumbing.apiserver import field_manager
from driver.shapes.instances import InstanceObject
from kube.backoff import Backoff
from kube.calls.api import ApiClient, ConflictError, NotFoundError, RetryableError, WriteOptions
from kube.kinds import INSTANCES
from kube.stores.api import Change, Store, WatchSettings

logger = logging.getLogger(__name__)

WRITE_SECONDS = 2.0
READ_SECONDS = 2.0

DECIDED_SECONDS = 6.0
"""How long a write with an unknown outcome is repeated; the kubelet waits meanwhile."""

_NAME = "name"

_BACKOFF = Backoff(first_seconds=0.1, cap_seconds=1.0)


class SlotObjects:
    """The Instances that concern this node, with their slots.

    Attributes:
        store: Watches them; the caller runs it.
    """

    def __init__(self, client: ApiClient, node: NodeName) -> None:
        self._client = client
        self._manager = field_manager(node)
        self.store = Store(
            client,
            instances_of_node(node),
            instance_slots,
            indexes={_NAME: lambda slots: (slots.name,)},
            settings=WatchSettings(shape=InstanceObject),
        )
        self._views: dict[InstanceName, InstanceSlots] = {}
        self._known = MappingProxyType(self._views)
        self.store.subscribe(self._take)

    def views(self) -> Mapping[InstanceName, InstanceSlots]:
        """The current Instances, own writes included."""
        return self._known

    def _take(self, change: Change[InstanceSlots]) -> None:
        name = InstanceName(change.key.name)
        if found := counting(self.store.by_index(_NAME, name)):
            self._views[name] = found
        else:
            self._views.pop(name, None)

    async def read(self, namespace: str, name: InstanceName) -> None:
        """Read an Instance from the API server into the store. Raises ApiError."""
        try:
            path = INSTANCES.at(name, namespace)
            self.store.note(await self._client.get(path, timeout_seconds=READ_SECONDS))
        except NotFoundError:
            await self.store.catch_up(READ_SECONDS)

    async def write(self, write: SlotWrite) -> bool:
        """Carry out a write until its outcome is known.

        Returns False after a conflict; the store then has the new version.

        Raises:
            ApiError: The write is refused, or the API server does not answer for
                `DECIDED_SECONDS`. Then the outcome is unknown, and slot reconciliation finds out.
        """
        give_up_at = asyncio.get_running_loop().time() + DECIDED_SECONDS
        for attempt in range(1, 1 << 30):
            try:
                await self._send(write)
            except (ConflictError, NotFoundError):
                await self.read(write.namespace, write.instance)
                return False
            except RetryableError as error:
                delay = _BACKOFF.delay(attempt, random.random)
                if asyncio.get_running_loop().time() + delay > give_up_at:
                    raise
                logger.warning("slots not written yet instance=%s error=%s", write.instance, error)
                await asyncio.sleep(delay)
            else:
                break
        return True

    async def _send(self, write: SlotWrite) -> None:
        path = INSTANCES.at(write.instance, write.namespace)
        options = WriteOptions(field_manager=self._manager, timeout_seconds=WRITE_SECONDS)
        answer = await self._client.merge_patch(path, merge_patch(write), options=options)
        self.store.note(answer)
