"""Instances on the API server: carries out what the core decided."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, assert_never

from driver.api import DRIVER_NAME, NODE_LABEL, SHARED_LABEL_VALUE, NodeName
from driver.instances.shared import JoinInstance, LeaveInstance, SharedDecision, entry_body
from driver.instances.stored.objects import (
    ApplyInstance,
    DeleteInstance,
    InstanceDecision,
    device_of,
    is_anothers,
)
from driver.names import label_value
from driver.plumbing.apiserver import delete, each, field_manager
from driver.shapes.instances import NO_INSTANCE_SPEC, InstanceObject
from kube.calls.api import ApiClient, ConflictError, InvalidError, Preconditions, WriteOptions
from kube.kinds import INSTANCES
from kube.objects import JsonObject
from kube.resources import Selection
from kube.shapes.metadata import metadata_of
from kube.shapes.reading import read_as

logger = logging.getLogger(__name__)

_NONE = Preconditions()


def shared_body_manager(body: Mapping[str, Any]) -> str:
    """Field manager of the body of a shared Instance, the same for all nodes that write it.

    It contains the digest of the device, so that two devices with the same hash conflict. No node
    can have this name.
    """
    return f"{DRIVER_NAME}:instance-of-{device_of(body)}"


def instances_of_node(node: NodeName) -> Selection:
    """Selects the Instances of a node: its own ones, and all that several nodes may see."""
    values = f"{SHARED_LABEL_VALUE},{label_value(node)}"
    return INSTANCES.select(label_selector=f"{NODE_LABEL} in ({values})")


async def write_instances(
    client: ApiClient,
    decisions: Iterable[InstanceDecision | SharedDecision],
    node: NodeName,
    note: Callable[[JsonObject], None],
    on_taken: Callable[[JsonObject], None] = lambda _: None,
) -> None:
    """Carry out all decisions of a node, see `apiserver.each`; permanent refusals are logged.

    Args:
        client: Client of the API server.
        decisions: The writes.
        node: The node, which is the field manager.
        note: Called with every answer.
        on_taken: Called with each Instance of another device that has a name this node wanted.

    Raises:
        ApiError: The first failure; the other writes were tried nevertheless.
    """
    manager = field_manager(node)

    async def write(decision: InstanceDecision | SharedDecision) -> None:
        try:
            match decision:
                case ApplyInstance(body, is_new):
                    applies = _create if is_new else _apply_instance
                    note(await applies(client, body, manager))
                case DeleteInstance():
                    await delete_instance(client, decision)
                case JoinInstance():
                    await _join(client, decision, node, note)
                case LeaveInstance():
                    await _leave(client, decision, node, note)
                case _:
                    assert_never(decision)
        except _TakenError as error:
            on_taken(error.stored)
        except InvalidError as error:
            # A retry would be refused again, and the other writes must not wait for it.
            logger.warning("the API server refuses an Instance: %s", error)

    await each(decisions, write)


class _TakenError(Exception):
    """Raised if another device has the Instance of this name."""

    def __init__(self, stored: JsonObject) -> None:
        super().__init__(metadata_of(stored).name)
        self.stored = stored


async def _create(client: ApiClient, body: Mapping[str, Any], manager: str) -> JsonObject:
    """Apply an object that this node does not know yet, unless another device has the name.

    Nodes do not watch each other's Instances, and learn of shared ones with a delay. A forced apply
    would take the object from the other device. An Instance that Akri made is taken over, at the
    version that was read.
    """
    try:
        return await _apply_instance(client, body, manager, force=False)
    except ConflictError:
        stored = await client.get(INSTANCES.path_of(body))
        if is_anothers(body, stored):
            raise _TakenError(stored) from None
        metadata = metadata_of(stored)
        seen = Preconditions(metadata.uid, metadata.resource_version or "")
        return await _apply_instance(client, body, manager, seen)


async def delete_instance(client: ApiClient, decision: DeleteInstance) -> None:
    """Delete the object at this UID and version, unless it is gone already."""
    preconditions = Preconditions(decision.uid, decision.resource_version)
    await delete(client, INSTANCES, decision.name, preconditions, decision.namespace)


async def _apply_instance(
    client: ApiClient,
    body: Mapping[str, Any],
    manager: str,
    preconditions: Preconditions = _NONE,
    *,
    force: bool = True,
) -> JsonObject:
    return await client.apply(
        INSTANCES.path_of(body),
        body,
        force=force,
        preconditions=preconditions,
        options=WriteOptions(field_manager=manager),
    )


async def _join(
    client: ApiClient, decision: JoinInstance, node: NodeName, note: Callable[[JsonObject], None]
) -> None:
    """Write the entry before the body: only nodes that see a device may write its body."""
    if decision.enter and decision.uid is not None:
        await _enter(client, decision, decision.uid, node, note)
    if decision.body is None:
        return
    applies = _apply_instance if decision.is_known else _create
    answer = await applies(client, decision.body, shared_body_manager(decision.body))
    note(answer)
    if decision.enter and decision.uid is None:
        await _enter(client, decision, metadata_of(answer).uid, node, note)


async def _enter(
    client: ApiClient,
    decision: JoinInstance,
    uid: str,
    node: NodeName,
    note: Callable[[JsonObject], None],
) -> None:
    entry = entry_body(decision.namespace, decision.name, node)
    note(await _apply_instance(client, entry, field_manager(node), Preconditions(uid)))


async def _leave(
    client: ApiClient, decision: LeaveInstance, node: NodeName, note: Callable[[JsonObject], None]
) -> None:
    manager = field_manager(node)
    entry = entry_body(decision.namespace, decision.name)
    answer = await _apply_instance(client, entry, manager, Preconditions(decision.uid))
    stored = read_as(InstanceObject, answer)
    nodes = (stored.spec or NO_INSTANCE_SPEC).nodes or ()
    if node in nodes:
        # Another field manager owns the entry, too: an administrator, or Akri's agent.
        answer = await client.merge_patch(
            INSTANCES.at(decision.name, decision.namespace),
            {"spec": {"nodes": [name for name in nodes if name != node]}},
            preconditions=Preconditions(decision.uid, stored.metadata.resource_version or ""),
            options=WriteOptions(field_manager=manager),
        )
    note(answer)
