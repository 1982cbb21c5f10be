"""DeviceClasses on the API server: probes which fields it keeps, and carries out writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from driver.configurations.classes import ApplyClass, ClassDecision, probe_class
from driver.plumbing.apiserver import delete, each
from kube.calls.api import ApiClient, NotFoundError, Preconditions, WriteOptions
from kube.kinds import CLASSES
from kube.objects import JsonObject


async def probe_extended_resources(client: ApiClient) -> bool | None:
    """Whether the API server keeps `extendedResourceName`; None if it serves no DeviceClasses.

    The probe is a create with `dryRun: All`, which stores nothing.
    """
    body = probe_class()
    try:
        stored = await client.create(CLASSES, body, options=WriteOptions(dry_run=True))
    except NotFoundError:
        return None
    return "extendedResourceName" in stored["spec"]


async def write_classes(
    client: ApiClient,
    decisions: Iterable[ClassDecision],
    manager: str,
    note: Callable[[JsonObject], None],
) -> None:
    """Carry out all decisions, see `each`. Raises ApiError."""

    async def write(decision: ClassDecision) -> None:
        if isinstance(decision, ApplyClass):
            path = CLASSES.at(decision.body["metadata"]["name"])
            options = WriteOptions(field_manager=manager)
            note(await client.apply(path, decision.body, force=True, options=options))
        else:
            preconditions = Preconditions(decision.uid, decision.resource_version)
            await delete(client, CLASSES, decision.name, preconditions)

    await each(decisions, write)
