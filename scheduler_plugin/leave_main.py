"""Runs `moorage-scheduler-plugin leave`: removes what only Moorage would remove.

A finalizer without its controller keeps its object forever, and kube-scheduler would go on to
allocate devices that no driver prepares. Queues, Configurations and Instances themselves stay.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from driver.api import CONFIGURATION_LABEL, DRIVER_NAME, SLOTS_FINALIZER
from kube.calls.api import ApiClient, NotFoundError, connect
from kube.kinds import CLASSES, CONFIGURATIONS, DEFINITIONS, INSTANCES, QUEUES, SLICES
from kube.objects import JsonObject
from kube.resources import ObjectPath, Resource, Selection
from scheduler_plugin.objects.names import CHARGES_FINALIZER
from scheduler_plugin.settings import LeaveSettings

logger = logging.getLogger(__name__)

USER_AGENT = "moorage-leave"

OURS = (QUEUES, CONFIGURATIONS, INSTANCES)


async def run_leave(settings: LeaveSettings) -> None:
    """Remove finalizers, slices and classes once; it may be repeated.

    No process of Moorage may run beside it.

    Raises:
        ApiError: The API server refuses a step or cannot be reached.
    """
    async with connect(settings.kubeconfig, user_agent=USER_AGENT) as client:
        await _release(client, QUEUES, CHARGES_FINALIZER)
        await _release(client, INSTANCES, SLOTS_FINALIZER)
        await _withdraw(client, SLICES.select(field_selector=f"spec.driver={DRIVER_NAME}"))
        await _withdraw(client, CLASSES.select(label_selector=CONFIGURATION_LABEL))
        if settings.purge:
            names = [f"{resource.plural}.{resource.group}" for resource in OURS]
            await _delete(client, (DEFINITIONS.at(name) for name in names))


async def _release(client: ApiClient, resource: Resource, finalizer: str) -> None:
    """Remove one finalizer from all objects that have it; other finalizers stay."""
    for body in await _listed(client, resource.select()):
        metadata = body["metadata"]
        finalizers = metadata.get("finalizers", ())
        if finalizer in finalizers:
            path = resource.path_of(body)
            kept = [one for one in finalizers if one != finalizer]
            version = metadata["resourceVersion"]
            change = {"metadata": {"finalizers": kept, "resourceVersion": version}}
            await client.merge_patch(path, change)
            logger.info("removed finalizer %s of %s", finalizer, path)


async def _withdraw(client: ApiClient, selection: Selection) -> None:
    found = await _listed(client, selection)
    await _delete(client, (selection.resource.path_of(body) for body in found))


async def _delete(client: ApiClient, paths: Iterable[ObjectPath]) -> None:
    for path in paths:
        try:
            await client.delete(path)
        except NotFoundError:
            continue
        logger.info("deleted %s", path)


async def _listed(client: ApiClient, selection: Selection) -> tuple[JsonObject, ...]:
    """The objects; () if the cluster does not serve the kind."""
    try:
        return tuple((await client.list(selection)).items)
    except NotFoundError:
        return ()
