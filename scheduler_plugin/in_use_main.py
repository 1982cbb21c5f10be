"""Runs `moorage-scheduler-plugin in-use`: prints the pods that use devices."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress

from kube.calls.api import ApiClient, GoneError, NotFoundError, connect
from kube.kinds import CLAIMS, INSTANCES
from scheduler_plugin.checking.device_users import DeviceUsers
from scheduler_plugin.settings import InUseSettings

USER_AGENT = "moorage-in-use"

SETTLE_SECONDS = 10.0
"""How long claims of deleted pods may take to be released."""

AGAIN_SECONDS = 1.0

LISTS = 2
"""How often a list is repeated if the API server no longer has its next page."""


async def run_in_use(settings: InUseSettings) -> bool:
    """Read and print, without a change; returns True if a pod uses a device.

    Raises:
        ApiError: The API server cannot be reached, or refuses.
    """
    async with connect(settings.kubeconfig, user_agent=USER_AGENT) as client:
        users = await _lasting_users(client)
    if not users:
        sys.stdout.write("No pod uses a device of Moorage.\n")
        return False
    remedy = f"{settings.remedy}\n" if settings.remedy else ""
    sys.stdout.writelines((*(f"{line}\n" for line in users.lines()), remedy))
    return True


async def _lasting_users(client: ApiClient) -> DeviceUsers:
    now = asyncio.get_running_loop().time
    until = now() + SETTLE_SECONDS
    while True:
        users = await users_in(client)
        if not users or now() > until:
            return users
        await asyncio.sleep(AGAIN_SECONDS)


async def users_in(client: ApiClient) -> DeviceUsers:
    """The current users of devices; a kind that the cluster does not serve has no objects.

    Objects are read page by page: 10,000 claims take more memory than the Job may have.
    """
    for _ in range(LISTS):
        with suppress(GoneError):
            return await _users_in(client)
    return await _users_in(client)


async def _users_in(client: ApiClient) -> DeviceUsers:
    users = DeviceUsers()
    for resource, add in ((CLAIMS, users.add_claim), (INSTANCES, users.add_instance)):
        with suppress(NotFoundError):
            async for page in client.pages(resource.select()):
                for body in page.items:
                    add(body)
    return users
