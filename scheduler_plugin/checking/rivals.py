"""Whether another kube-scheduler has the same scheduler name, and binds pods past the plugin.

The API does not list kube-schedulers, and two of one name race for each pod. But each writes Events
under the name of its profile: about the Lease with which it was elected, and about each pod, with
the host that decided it. Events are kept for an hour: a scheduler that was idle for so long is not
found.

A user who may write Events can forge them. So Leases count only in `kube-system` and in the
release's namespace, where users cannot write, and a decision counts only if its pod exists and has
the scheduler name. A binding counts only if the pod requests devices, is bound, and has no
annotation of the plugin's binding, which users cannot write. So a user who may write Events can
still forge a kube-scheduler that refuses a pod of that user, or that bound a pod of that user
without accounted devices: the plugin binds such a pod without the annotation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from kube.shapes.events import Event
from kube.shapes.leases import parse_lease
from kube.shapes.metadata import named_metadata
from kube.shapes.names import is_label, is_name
from kube.shapes.pods import NO_RESOURCES, NO_SPEC, Pod, Spec
from kube.shapes.reading import JsonObject, read_as
from kube.shapes.times import NO_TIME, read_time, timestamp
from scheduler_plugin.checking.setups import (
    Decided,
    DecidedPod,
    Finding,
    Level,
    Objects,
    Setup,
    Unread,
    unread,
)
from scheduler_plugin.checking.workloads import NAME_LABEL, SCHEDULER
from scheduler_plugin.objects.names import QUEUE_ANNOTATION

PART = "scheduler"
REPLICA = "moorage-scheduler-"
"""The prefix of the name of each pod of the release's scheduler, existing or deleted."""

TRIES_AGAIN = timedelta(minutes=6)
"""A running kube-scheduler tries a refused pod every five minutes, and writes an Event."""

SAYS_AGAIN = timedelta(minutes=35)
"""A repeated Event becomes a series, whose time client-go updates every 30 minutes."""

NamespacedName = tuple[str, str]

MOST_DECISIONS = 3
MOST_HOSTS = 10
"""How many bindings and as many other decisions of a host are checked, the newest first, and of how
many hosts."""

KUBE_SYSTEM = "kube-system"


def lease_namespaces(namespace: str, own: NamespacedName) -> tuple[str, ...]:
    """The namespaces whose Leases of kube-schedulers are checked."""
    return tuple(dict.fromkeys((KUBE_SYSTEM, namespace, own[0])))


def rival_leases(
    events: Sequence[Event], namespace: str, own: NamespacedName
) -> tuple[NamespacedName, ...]:
    """Namespace and name of each Lease that elected a kube-scheduler, except `own`."""
    trusted = lease_namespaces(namespace, own)
    elected = (_name_in(event) for event in events if event.about.kind == "Lease")
    found = dict.fromkeys(each for each in elected if each[0] in trusted and _is_named(each))
    return tuple(each for each in found if each != own)


def is_of_another(event: Event, pods: Objects, namespace: str) -> bool:
    """Whether an Event is about a pod that a host outside this release decided."""
    host = _host(event)
    return (
        bool(host and _is_named(_name_in(event)))
        and event.about.kind == "Pod"
        and not _is_replica(host, pods, namespace)
    )


def _is_named(of: NamespacedName) -> bool:
    """Whether an object of the API can have this name; an Event may have any text."""
    return is_label(of[0]) and is_name(of[1])


def decided_pod(obj: JsonObject) -> DecidedPod:
    """Read a Pod; raises UnreadableError."""
    pod = read_as(Pod, obj)
    metadata, spec = pod.metadata, pod.spec or NO_SPEC
    return DecidedPod(
        (metadata.namespace or "", metadata.name, metadata.uid),
        spec.scheduler_name or "",
        is_bound=bool(spec.node_name),
        is_ours=QUEUE_ANNOTATION in (metadata.annotations or {}),
        asks_for_devices=_asks_for_devices(spec),
    )


def _asks_for_devices(spec: Spec) -> bool:
    """Whether a pod names a claim or an extended resource; only these have a slash."""
    containers = (*(spec.init_containers or ()), *(spec.containers or ()))
    limits = ((each.resources or NO_RESOURCES).limits or {} for each in containers)
    return bool(spec.resource_claims) or any("/" in name for of in limits for name in of)


def by_identity(pods: Iterable[DecidedPod]) -> Mapping[Decided, DecidedPod]:
    """Pods by namespace, name and UID, as an Event names them."""
    return {pod.identity: pod for pod in pods}


def pod_of(event: Event) -> Decided:
    """The pod that an Event is about."""
    return (*_name_in(event), event.about.uid or "")


def is_confirmed(event: Event, pods: Mapping[Decided, DecidedPod]) -> bool:
    """Whether a pod with the scheduler name confirms an Event."""
    pod = pods.get(pod_of(event))
    return pod is not None and (not _is_binding(event) or _is_bound_past_the_plugin(pod))


def _is_bound_past_the_plugin(pod: DecidedPod) -> bool:
    return pod.is_bound and pod.asks_for_devices and not pod.is_ours


def deciding(events: Iterable[Event]) -> Iterator[Event]:
    """The newest Events of each host, `MOST_DECISIONS` bindings and as many others.

    Hosts with bindings come first, since bindings are harder to forge.
    """
    found: dict[str, list[Event]] = {}
    for event in sorted(events, key=_lives_until, reverse=True):
        found.setdefault(_host(event), []).append(event)
    hosts = sorted(found.values(), key=lambda of_host: not any(map(_is_binding, of_host)))
    for of_host in hosts[:MOST_HOSTS]:
        for is_binding in (True, False):
            yield from [e for e in of_host if _is_binding(e) is is_binding][:MOST_DECISIONS]


def judge_rivals(setup: Setup) -> Iterator[Finding]:
    """One finding for each kube-scheduler outside the release with the release's name."""
    for found in (setup.scheduler_events, setup.rival_leases, setup.decided_pods):
        if isinstance(found, Unread):
            yield unread(PART, found)
            return
    leaders = dict(_leaders(setup))
    for host, lease in leaders.items():
        yield _finding(setup, Level.ERROR, f"{host}, which holds the Lease {lease},", "")
    for host, decisions in _deciders(setup).items():
        if host not in leaders:
            # A scheduler that bound pods a while ago and refuses others now is running.
            lives = setup.server_time < max(map(_lives_until, decisions))
            level = Level.ERROR if lives else Level.WARNING
            event = max(decisions, key=lambda e: (_is_binding(e), _time_of(e)))
            when = _time_of(event)
            last = f"{event.reason} of Pod {event.about.namespace}/{event.about.name}"
            other = f"{host}, which is not a pod of this release,"
            yield _finding(setup, level, other, f" It wrote an Event at {timestamp(when)}: {last}.")


def _finding(setup: Setup, level: Level, other: str, last: str) -> Finding:
    name = ", ".join(_names(setup))
    said = (
        f"kube-scheduler {other} has the schedulerName {name}, too: it binds pods past the plugin,"
        f" uncharged.{last}"
    )
    mend = (
        "Stop it, or give its profile another schedulerName. Then delete the pods that it bound and"
        f" create them again: kubectl get events -A --field-selector reportingComponent={name}."
    )
    return Finding(level, PART, said, mend)


def _leaders(setup: Setup) -> Iterator[tuple[str, str]]:
    """Host and Lease of each kube-scheduler that is elected now."""
    leases = setup.rival_leases if isinstance(setup.rival_leases, tuple) else ()
    for lease in leases:
        if host := _holder(lease, setup.server_time):
            metadata = named_metadata(lease)
            yield host, f"{metadata.namespace}/{metadata.name}"
    if not isinstance(setup.lease, Unread) and has_replicas(setup.pods, setup.namespace):
        host = _holder(setup.lease, setup.server_time)
        if host and not _is_replica(host, setup.pods, setup.namespace):
            yield host, "/".join(setup.lease_name)


def _deciders(setup: Setup) -> dict[str, list[Event]]:
    """The Events of each host that is not a replica, as far as pods confirm them."""
    events = setup.scheduler_events if isinstance(setup.scheduler_events, tuple) else ()
    found: dict[str, list[Event]] = {}
    if not has_replicas(setup.pods, setup.namespace):
        return found
    confirmed = _confirmed(setup)
    for event in events:
        is_another = is_of_another(event, setup.pods, setup.namespace)
        if is_another and is_confirmed(event, confirmed):
            found.setdefault(_host(event), []).append(event)
    return found


def _confirmed(setup: Setup) -> Mapping[Decided, DecidedPod]:
    """The pods with a scheduler name of the release."""
    pods = setup.decided_pods if isinstance(setup.decided_pods, tuple) else ()
    names = _names(setup)
    return by_identity(pod for pod in pods if pod.scheduler in names)


def _is_binding(event: Event) -> bool:
    return event.reason == "Scheduled"


def _host(event: Event) -> str:
    """The host of a kube-scheduler, whose reporting instance is `<profile>-<host>`."""
    return (event.reporting_instance or "").removeprefix(f"{event.reporting_controller}-")


def has_replicas(pods: Objects, namespace: str) -> bool:
    """Whether the release has schedulers of its own; it has none in mode Cluster."""
    return any(here == namespace for here, _ in _schedulers(pods))


def _is_replica(host: str, pods: Objects, namespace: str) -> bool:
    """Whether a host is a replica of the release; a deleted pod counts by its name."""
    there = {here for here, name in _schedulers(pods) if name == host}
    return namespace in there or (host.startswith(REPLICA) and not there)


def _schedulers(pods: Objects) -> Iterator[NamespacedName]:
    for body in pods if isinstance(pods, tuple) else ():
        metadata = named_metadata(body)
        if (metadata.labels or {}).get(NAME_LABEL) == SCHEDULER:
            yield metadata.namespace or "", metadata.name


def _names(setup: Setup) -> list[str]:
    return [profile["schedulerName"] for profile in setup.expected["profiles"]]


def _holder(obj: JsonObject, now: datetime) -> str:
    """The host that holds a Lease now; "" if none does."""
    lease = parse_lease(obj)
    lasts = timedelta(seconds=lease.duration_seconds)
    is_held = now - _moment(lease.renew_time) <= lasts + timedelta(seconds=5)
    return lease.holder.partition("_")[0] if is_held else ""


def _name_in(event: Event) -> NamespacedName:
    return event.about.namespace or "", event.about.name or ""


def _time_of(event: Event) -> datetime:
    return _moment(event.last_time)


def _lives_until(event: Event) -> datetime:
    """Until when a running scheduler need not have written a new Event."""
    return _time_of(event) + (SAYS_AGAIN if event.series is not None else TRIES_AGAIN)


_LATEST = datetime.max.replace(tzinfo=UTC) - timedelta(days=1)
"""The latest time that counts: an Event may have any time, and an addition would overflow."""


def _moment(stamp: str) -> datetime:
    """A time of the API; `NO_TIME` if it cannot be parsed."""
    try:
        return min((read_time(stamp) or NO_TIME).astimezone(UTC), _LATEST)
    except OverflowError:
        return NO_TIME
