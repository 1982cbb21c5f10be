"""Runs `moorage-scheduler-plugin in-use`: says which pods use devices, before an uninstallation."""

from __future__ import annotations

import asyncio
import sys

from kube.api import (
    CLAIMS,
    INSTANCES,
    ApiClient,
    JsonObject,
    NotFoundError,
    Resource,
    connect,
)
from scheduler_plugin.checking.device_users import device_users
from scheduler_plugin.settings import InUseSettings

USER_AGENT = "moorage-in-use"

SETTLE_SECONDS = 10.0
"""For claims of pods that were deleted to be let go."""

AGAIN_SECONDS = 1.0


async def run_in_use(settings: InUseSettings) -> bool:
    """Look, and print; nothing is changed. True if a pod uses a device.

    Raises:
        ApiError: If the API server cannot be reached, or refuses.
    """
    async with connect(settings.kubeconfig, user_agent=USER_AGENT) as client:
        users = await _lasting_users(client)
    if not users:
        sys.stdout.write("No pod uses a device of Moorage's.\n")
        return False
    head = "Pods use devices of Moorage's. Without its driver a kubelet does not end them.\n"
    remedy = f"{settings.remedy}\n" if settings.remedy else ""
    sys.stdout.writelines((head, *(f"  {user}\n" for user in users), remedy))
    return True


async def _lasting_users(client: ApiClient) -> tuple[str, ...]:
    now = asyncio.get_running_loop().time
    until = now() + SETTLE_SECONDS
    while True:
        users = await users_in(client)
        if not users or now() > until:
            return users
        await asyncio.sleep(AGAIN_SECONDS)


async def users_in(client: ApiClient) -> tuple[str, ...]:
    """Who uses devices now; where the cluster does not have a kind, no object of it does."""
    claims, instances = await asyncio.gather(_listed(client, CLAIMS), _listed(client, INSTANCES))
    return device_users(claims, instances)


async def _listed(client: ApiClient, resource: Resource) -> tuple[JsonObject, ...]:
    try:
        return tuple((await client.list(resource.select())).items)
    except NotFoundError:
        return ()
