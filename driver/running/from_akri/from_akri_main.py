"""Runs `moorage-driver from-akri`: prints what changes if Moorage replaces Akri in a cluster."""

from __future__ import annotations

import asyncio
import re
import sys
from typing import Any

from driver.configurations.permissions import InputError
from driver.discovery.handlers import HANDLER_NAMES
from driver.running.from_akri.changes import as_text, changes
from driver.running.from_akri.configurations import Akri
from driver.running.from_akri.values import akri_release
from driver.running.settings import FromAkriSettings
from driver.running.shared.cluster_configurations import judged
from kube.calls.api import ApiClient, ApiError, NotFoundError, connect
from kube.kinds import (
    CONFIGURATIONS,
    DAEMON_SETS,
    DEFINITIONS,
    DEPLOYMENTS,
    INSTANCES,
    PODS,
    SECRETS,
)
from kube.resources import Selection

OF_AKRI = "app.kubernetes.io/part-of=akri"
RELEASES = "owner=helm,status=deployed"
DRA_MINOR = 36
"""Minor version of Kubernetes from which pods that request `akri.sh/…` get a claim."""


async def run_from_akri(settings: FromAkriSettings) -> None:
    """Read the objects and print the report. Nothing is changed.

    Raises:
        InputError: Configurations cannot be listed.
    """
    try:
        async with connect(settings.kubeconfig) as client:
            akri = await _read(client)
    except ApiError as error:
        raise InputError(f"Configurations cannot be listed: {error}") from error
    sys.stdout.write(as_text(changes(akri)))
    sys.stdout.flush()  # The process exits without flushing.


async def _read(client: ApiClient) -> Akri:
    configurations = await _listed(client, CONFIGURATIONS.select())
    unread: list[str] = []

    async def others(selection: Selection, then: str) -> tuple[Any, ...]:
        try:
            return await _listed(client, selection)
        except ApiError as error:
            unread.append(f"{error}; {then}")
            return ()

    definitions, instances, daemon_sets, deployments, pods, secrets = await asyncio.gather(
        others(DEFINITIONS.select(), "the report does not say whether definitions are Akri's."),
        others(INSTANCES.select(), "the report leaves out slots."),
        others(DAEMON_SETS.select(label_selector=OF_AKRI), "the report leaves out agents."),
        others(DEPLOYMENTS.select(label_selector=OF_AKRI), "the report leaves out the controller."),
        others(PODS.select(), "the report leaves out brokers and other users."),
        others(SECRETS.select(label_selector=RELEASES), "the report leaves out Akri's values."),
    )
    minor = re.match(r"v1\.(\d+)", (await client.server()).git_version)
    return Akri(
        definitions=definitions,
        configurations=[
            (body, judged(body, unique_devices_default=True).verdict) for body in configurations
        ],
        instances=instances,
        workloads=[
            *(("DaemonSet", body) for body in daemon_sets),
            *(("Deployment", body) for body in deployments),
        ],
        pods=pods,
        releases=[found for body in secrets if (found := akri_release(body))],
        unread=unread,
        own_handlers=frozenset(HANDLER_NAMES),
        has_dra=minor is not None and int(minor[1]) >= DRA_MINOR,
    )


async def _listed(client: ApiClient, selection: Selection) -> tuple[Any, ...]:
    """The objects; none if the cluster does not have the kind."""
    try:
        return tuple((await client.list(selection)).items)
    except NotFoundError:
        return ()
