"""Runs `moorage-scheduler-plugin in-use`: prints the pods that use devices, and brokers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from driver.api import BROKER_SELECTOR
from kube.calls.api import ApiClient, GoneError, NotFoundError, connect
from kube.kinds import CLAIMS, INSTANCES, JOBS, PODS
from kube.objects import JsonObject
from kube.resources import Selection
from scheduler_plugin.checking.device_users import DeviceUsers
from scheduler_plugin.settings import InUseSettings

USER_AGENT = "moorage-in-use"

SETTLE_SECONDS = 10.0
"""How long claims of deleted pods may take to be released."""

AGAIN_SECONDS = 1.0

LISTS = 2
"""How often a list is repeated if the API server no longer has its next page."""


async def run_in_use(settings: InUseSettings) -> bool:
    """Read and print, without a change; returns True if a pod uses a device or a broker runs.

    Raises:
        ApiError: The API server cannot be reached, or refuses.
    """
    async with connect(settings.kubeconfig, user_agent=USER_AGENT) as client:
        users = await _lasting_users(client, brokers=settings.brokers)
    if not users:
        brokers = ", and no broker runs" if settings.brokers else ""
        sys.stdout.write(f"No pod uses a device of Moorage{brokers}.\n")
        return False
    remedy = f"{settings.remedy}\n" if settings.remedy else ""
    sys.stdout.writelines((*(f"{line}\n" for line in users.lines()), remedy))
    return True


async def _lasting_users(client: ApiClient, *, brokers: bool) -> DeviceUsers:
    now = asyncio.get_running_loop().time
    until = now() + SETTLE_SECONDS
    while True:
        users = await users_in(client, brokers=brokers)
        if not users or now() > until:
            return users
        await asyncio.sleep(AGAIN_SECONDS)


async def users_in(client: ApiClient, *, brokers: bool = False) -> DeviceUsers:
    """The current users of devices, and brokers if asked for.

    A kind that the cluster does not serve has no objects.

    Objects are read page by page: 10,000 claims take more memory than the Job may have.
    """
    for _ in range(LISTS):
        with suppress(GoneError):
            return await _users_in(client, brokers=brokers)
    return await _users_in(client, brokers=brokers)


async def _users_in(client: ApiClient, *, brokers: bool) -> DeviceUsers:
    users = DeviceUsers()
    await _read(client, CLAIMS.select(), users.add_claim)
    await _read(client, INSTANCES.select(), users.add_instance)
    for kind, resource in {"Pod": PODS, "Job": JOBS}.items() if brokers else ():
        selected = resource.select(label_selector=BROKER_SELECTOR)
        await _read(client, selected, partial(users.add_broker, kind))
    return users


async def _read(client: ApiClient, selection: Selection, add: Callable[[JsonObject], None]) -> None:
    with suppress(NotFoundError):
        async for page in client.pages(selection):
            for body in page.items:
                add(body)
