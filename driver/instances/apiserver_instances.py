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
from kube.api import (
    INSTANCES,
    ApiClient,
    ConflictError,
    InvalidError,
    JsonObject,
    Preconditions,
    Selection,
    WriteOptions,
)
from kube.shapes.metadata import metadata_of
from kube.shapes.reading import read_as

logger = logging.getLogger(__name__)

_NONE = Preconditions()


def shared_body_manager(body: Mapping[str, Any]) -> str:
    """Who owns the body of a shared Instance, whichever node writes it.

    Another for each device, so that two of one hash conflict. No node has a name like it.
    """
    return f"{DRIVER_NAME}:instance-of-{device_of(body)}"


def instances_of_node(node: NodeName) -> Selection:
    """The Instances that concern a node: its own, and those that several nodes may see."""
    values = f"{SHARED_LABEL_VALUE},{label_value(node)}"
    return INSTANCES.select(label_selector=f"{NODE_LABEL} in ({values})")


async def write_instances(
    client: ApiClient,
    decisions: Iterable[InstanceDecision | SharedDecision],
    node: NodeName,
    note: Callable[[JsonObject], None],
    on_taken: Callable[[JsonObject], None] = lambda _: None,
) -> None:
    """Carry out all decisions of a node, see `apiserver.each`; what is refused for good is logged.

    Args:
        client: The API server.
        decisions: What to write.
        node: In whose name.
        note: Told every answer.
        on_taken: Told of Instances of other devices that have a name which this node wanted.
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
            # Of no use to be sent again before it is another; the others must not wait for it.
            logger.warning("an Instance is refused: %s", error)

    await each(decisions, write)


class _TakenError(Exception):
    """Raised where an Instance of that name is another device's."""

    def __init__(self, stored: JsonObject) -> None:
        super().__init__(metadata_of(stored).name)
        self.stored = stored


async def _create(client: ApiClient, body: Mapping[str, Any], manager: str) -> JsonObject:
    """Apply an object that this node knows nothing of, unless it is another device's.

    Nodes do not watch each other's Instances, nor learn at once of those that they share. By force
    this one would be taken from the other. One that Akri made is taken over, in the version seen.
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
    """Delete this very object in this very version, unless it is gone already."""
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
    """The entry comes before the body: only those that see a device may say what it is."""
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
        # Another manager owns the entry, too: a hand, or the agent that was here before.
        answer = await client.merge_patch(
            INSTANCES.at(decision.name, decision.namespace),
            {"spec": {"nodes": [name for name in nodes if name != node]}},
            preconditions=Preconditions(decision.uid, stored.metadata.resource_version or ""),
            options=WriteOptions(field_manager=manager),
        )
    note(answer)
