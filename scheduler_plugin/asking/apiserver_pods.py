"""Reads of one pod from the API server: its Events, and what a user of one namespace may read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kube.kinds import CLAIMS, EVENTS, Resource
from kube.kubectl_client import ApiError, ApiReader, ForbiddenError, JsonObject, NotFoundError
from kube.shapes.events import Event
from kube.shapes.metadata import metadata_of
from kube.shapes.reading import read_as
from scheduler_plugin.asking.apiserver_snapshots import NEEDED, OPTIONAL
from scheduler_plugin.asking.shown_pods import ReportedEvent
from scheduler_plugin.asking.view_settings import ViewSettings
from scheduler_plugin.objects.names import MIRROR_ANNOTATION

NEWEST = 5
"""How many Events of a pod are printed."""

CORE_EVENTS = Resource("", "v1", "events")
"""The same Events in the core group, which Kubernetes' ClusterRole `view` allows to read."""

NOT_JUDGED = (
    "So this command checks nothing. Reason and sentence come from the pod's conditions, which the"
    " scheduler plugin and kube-scheduler wrote; remedies are not known."
)


@dataclass(frozen=True, slots=True)
class PodRead:
    """What a user may read of a pod.

    Attributes:
        claims: The claims of its namespace; None if the user may not read them.
        not_read: What the user may not read, as sentences; the last sentence says what follows.
    """

    claims: Sequence[JsonObject] | None
    not_read: tuple[str, ...]


async def read_pod(client: ApiReader, pod: JsonObject) -> PodRead:
    """Read a pod for a user who may not read all that verdicts depend on.

    Raises:
        ApiError: If a read fails for another reason than a missing right.
    """
    not_read = []
    for resource in (*NEEDED, *OPTIONAL):
        try:
            await client.serves(resource)
        except ForbiddenError as error:
            everywhere = " of all namespaces" if resource.namespaced else ""
            not_read.append(f"{resource.plural}{everywhere}: {error}")
    claims: Sequence[JsonObject] | None = None
    try:
        claims = (await client.list(CLAIMS.select(metadata_of(pod).namespace or ""))).items
    except NotFoundError:
        claims = ()  # The cluster has no DRA.
    except ForbiddenError as error:
        not_read.append(f"{CLAIMS.plural} of its namespace: {error}")
    return PodRead(claims, (*not_read, NOT_JUDGED))


async def events_of(
    client: ApiReader, settings: ViewSettings, pod: JsonObject | None
) -> tuple[ReportedEvent, ...]:
    """The newest Events about a pod, the oldest first; none if the user may not read them.

    If the pod exists, Events of an earlier pod of its name are left out.
    """
    found = [read_as(Event, obj) for obj in await _listed(client, settings)]
    uids = _uids(pod) if pod else frozenset()
    ours = [event for event in found if not uids or (event.about.uid or "") in uids]
    newest = sorted(ours, key=_when)[-NEWEST:]
    return tuple(ReportedEvent(_when(each), f"{each.reason}: {each.sentence}") for each in newest)


async def _listed(client: ApiReader, settings: ViewSettings) -> Sequence[JsonObject]:
    for resource, field in ((EVENTS, "regarding"), (CORE_EVENTS, "involvedObject")):
        selector = f"{field}.kind=Pod,{field}.name={settings.name}"
        try:
            selected = resource.select(settings.namespace, field_selector=selector)
            return (await client.list(selected)).items
        except ForbiddenError:
            continue
        except ApiError:
            return ()
    return ()


def _uids(pod: JsonObject) -> frozenset[str]:
    """The UIDs in a pod's Events; a kubelet uses the digest of a static pod's manifest."""
    metadata = metadata_of(pod)
    return frozenset({metadata.uid, (metadata.annotations or {}).get(MIRROR_ANNOTATION, ""), ""})


def _when(event: Event) -> str:
    return event.last_time or event.created
