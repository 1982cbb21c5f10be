"""`kubectl moorage why` of a cluster: with Events, and with less if the user may read less."""

from __future__ import annotations

from kube.kinds import PODS
from kube.kubectl_client import ApiReader, ForbiddenError, JsonObject, NotFoundError, wall_clock
from scheduler_plugin.accounting_arguments import ReleaseSettings
from scheduler_plugin.asking.apiserver_pods import events_of, read_pod
from scheduler_plugin.asking.shown import Shown
from scheduler_plugin.asking.shown_pods import no_pod, pod_in, shown_why, why_of
from scheduler_plugin.asking.snapshot_times import taken_at
from scheduler_plugin.asking.unjudged_pods import gone, not_accounted, unjudged_why
from scheduler_plugin.asking.view_errors import NotThereError
from scheduler_plugin.asking.view_settings import ViewSettings
from scheduler_plugin.kubectl.reads import read


async def shown_why_of(
    client: ApiReader, release: ReleaseSettings, settings: ViewSettings
) -> Shown:
    """Why a pod runs or waits.

    Raises:
        NotThereError: If no such pod exists, and no Event is about one.
    """
    try:
        snapshot = await read(client, release)
    except ForbiddenError:
        return await _partly(client, release, settings)
    key = (settings.namespace, settings.name)
    found = why_of(snapshot, key)
    if found is None:
        return await _unaccounted(client, settings)
    pod = pod_in(snapshot, key)
    return shown_why(found, taken_at(snapshot), await events_of(client, settings, pod))


async def _unaccounted(client: ApiReader, settings: ViewSettings) -> Shown:
    """The output for a pod without accounted devices, or for a deleted pod."""
    pod = await _pod(client, settings)
    events = await events_of(client, settings, pod)
    if pod is None and not events:
        raise NotThereError(no_pod((settings.namespace, settings.name)))
    name = f"{settings.namespace}/{settings.name}"
    return shown_why(gone(name) if pod is None else not_accounted(name), wall_clock(), events)


async def _pod(client: ApiReader, settings: ViewSettings) -> JsonObject | None:
    try:
        return await client.get(PODS.at(settings.name, settings.namespace))
    except NotFoundError:
        return None


async def _partly(client: ApiReader, release: ReleaseSettings, settings: ViewSettings) -> Shown:
    """The output from the pod's conditions, for a user who may not read all that verdicts need."""
    pod = await _pod(client, settings)
    if pod is None:
        return await _unaccounted(client, settings)
    found_of_pod = await read_pod(client, pod)
    found = unjudged_why(pod, found_of_pod.claims, release.accounting)
    events = await events_of(client, settings, pod)
    return shown_why(found, wall_clock(), events, found_of_pod.not_read)
