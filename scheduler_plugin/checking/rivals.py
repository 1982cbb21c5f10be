"""Whether another kube-scheduler has the same scheduler name, and binds pods past the plugin.

Nothing in the API lists kube-schedulers, and two of one name race for each pod. But each writes
Events under the name of its profile: by which Lease it was elected, and what became of each pod,
with the host that decided it. Events are kept for an hour: one that did nothing for so long is not
seen.

A user who may write Events may write such ones. So Leases count in `kube-system` and the release's
namespace only, where users write nothing, and a decision counts only where its pod is there and has
the scheduler name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from scheduler_plugin.checking.setups import (
    Finding,
    Level,
    Objects,
    Setup,
    Unread,
    name_of,
    unread,
)
from scheduler_plugin.checking.workloads import NAME_LABEL, SCHEDULER
from scheduler_plugin.objects.fields import JsonObject

PART = "scheduler"
REPLICA = "moorage-scheduler-"
"""What the name of each pod of the release's scheduler begins with, be it there or gone."""

TRIES_AGAIN = timedelta(minutes=6)
"""kube-scheduler tries a pod that it refused every five minutes: one that lives says so."""

NamespacedName = tuple[str, str]


MOST_DECISIONS = 3
MOST_HOSTS = 10
"""So many bindings and as many other decisions are looked at, of so many hosts: the newest."""

KUBE_SYSTEM = "kube-system"


def lease_namespaces(namespace: str, own: NamespacedName) -> tuple[str, ...]:
    """Where Leases of kube-schedulers are looked for."""
    return tuple(dict.fromkeys((KUBE_SYSTEM, namespace, own[0])))


def rival_leases(
    events: Sequence[JsonObject], namespace: str, own: NamespacedName
) -> tuple[NamespacedName, ...]:
    """Namespace and name of each Lease that elected a kube-scheduler, but for `own`."""
    trusted = lease_namespaces(namespace, own)
    elected = (_name_in(event) for event in events if _kind(event) == "Lease")
    found = dict.fromkeys(each for each in elected if each[0] in trusted and each[1])
    return tuple(each for each in found if each != own)


def is_of_another(event: JsonObject, pods: Objects, namespace: str) -> bool:
    """Whether it tells of a pod that a host decided which is no replica of this release."""
    host = _host(event)
    return (
        bool(host and all(_name_in(event)))
        and _kind(event) == "Pod"
        and not _is_replica(host, pods, namespace)
    )


def deciding(events: Iterable[JsonObject]) -> Iterator[JsonObject]:
    """The newest of each host, bindings and others, as far as they are looked at."""
    found: dict[str, list[JsonObject]] = {}
    for event in sorted(events, key=_time_of, reverse=True):
        found.setdefault(_host(event), []).append(event)
    for of_host in [*found.values()][:MOST_HOSTS]:
        for is_binding in (True, False):
            yield from [e for e in of_host if _is_binding(e) is is_binding][:MOST_DECISIONS]


def judge_rivals(setup: Setup) -> Iterator[Finding]:
    """One finding for each kube-scheduler of the release's name that is none of the release's."""
    for found in (setup.scheduler_events, setup.rival_leases, setup.decided_pods):
        if isinstance(found, Unread):
            yield unread(PART, found)
            return
    leaders = dict(_leaders(setup))
    for host, lease in leaders.items():
        yield _finding(setup, Level.ERROR, f"{host}, by the Lease {lease},", "")
    for host, decisions in _deciders(setup).items():
        if host not in leaders:
            # One that bound pods a while ago, and refuses others now, lives.
            newest = max(map(_time_of, decisions))
            level = Level.ERROR if setup.server_time - newest < TRIES_AGAIN else Level.WARNING
            event = max(decisions, key=lambda e: (_is_binding(e), _time_of(e)))
            when = _time_of(event)
            last = f"{event.get('reason')}, Pod {_namespaced(event['regarding'])}"
            at = when.isoformat(timespec="seconds").replace("+00:00", "Z")
            who = f"{host}, which is no pod of this release,"
            yield _finding(setup, level, who, f" At {at}: {last}.")


def _finding(setup: Setup, level: Level, who: str, last: str) -> Finding:
    name = ", ".join(_names(setup))
    said = (
        f"kube-scheduler {who} has the schedulerName {name}, too: it binds pods past the plugin,"
        f" uncharged.{last}"
    )
    mend = (
        "End it, or give its profile another schedulerName. Then delete and create again the pods"
        f" that it bound: kubectl get events -A --field-selector reportingComponent={name}."
    )
    return Finding(level, PART, said, mend)


def _leaders(setup: Setup) -> Iterator[tuple[str, str]]:
    """Host and Lease of each that is elected now."""
    leases = setup.rival_leases if isinstance(setup.rival_leases, tuple) else ()
    for lease in leases:
        if host := _holder(lease, setup.server_time):
            yield host, _namespaced(lease["metadata"])
    if not isinstance(setup.lease, Unread) and has_replicas(setup.pods, setup.namespace):
        host = _holder(setup.lease, setup.server_time)
        if host and not _is_replica(host, setup.pods, setup.namespace):
            yield host, "/".join(setup.lease_name)


def _deciders(setup: Setup) -> dict[str, list[JsonObject]]:
    """What each host that is no replica decided, as far as pods confirm it."""
    events = setup.scheduler_events if isinstance(setup.scheduler_events, tuple) else ()
    found: dict[str, list[JsonObject]] = {}
    if not has_replicas(setup.pods, setup.namespace):
        return found
    confirmed = _confirmed(setup)
    for event in events:
        if is_of_another(event, setup.pods, setup.namespace) and _of(event) in confirmed:
            found.setdefault(_host(event), []).append(event)
    return found


_Decided = tuple[str, str, str]
"""Namespace, name and UID of a pod."""


def _confirmed(setup: Setup) -> frozenset[_Decided]:
    """Pods that have a name of the release's, with their UIDs."""
    pods = setup.decided_pods if isinstance(setup.decided_pods, tuple) else ()
    names = _names(setup)
    return frozenset(
        (m["namespace"], m["name"], m["uid"])
        for body in pods
        if (body.get("spec") or {}).get("schedulerName") in names
        for m in (body["metadata"],)
    )


def _of(event: JsonObject) -> _Decided:
    return (*_name_in(event), str(event["regarding"].get("uid") or ""))


def _is_binding(event: JsonObject) -> bool:
    return event.get("reason") == "Scheduled"


def _host(event: JsonObject) -> str:
    """kube-scheduler's instance is its profile's name and its host's."""
    return str(event.get("reportingInstance") or "").removeprefix(
        f"{event.get('reportingController')}-"
    )


def has_replicas(pods: Objects, namespace: str) -> bool:
    """Whether the release has schedulers of its own; in mode Cluster they are on any machine."""
    return any(here == namespace for here, _ in _schedulers(pods))


def _is_replica(host: str, pods: Objects, namespace: str) -> bool:
    """A pod that has gone is taken for the release's own, by its name."""
    there = {here for here, name in _schedulers(pods) if name == host}
    return namespace in there or (host.startswith(REPLICA) and not there)


def _schedulers(pods: Objects) -> Iterator[NamespacedName]:
    for body in pods if isinstance(pods, tuple) else ():
        metadata = body["metadata"]
        if (metadata.get("labels") or {}).get(NAME_LABEL) == SCHEDULER:
            yield metadata.get("namespace", ""), name_of(body)


def _names(setup: Setup) -> list[str]:
    return [profile["schedulerName"] for profile in setup.expected["profiles"]]


def _holder(lease: JsonObject, now: datetime) -> str:
    """The host that holds a Lease now; "" for none."""
    spec = lease.get("spec") or {}
    lasts = timedelta(seconds=spec.get("leaseDurationSeconds") or 0)
    is_held = now - _parsed(spec.get("renewTime")) <= lasts + timedelta(seconds=5)
    return str(spec.get("holderIdentity") or "").partition("_")[0] if is_held else ""


def _kind(event: JsonObject) -> str:
    return str((event.get("regarding") or {}).get("kind", ""))


def _name_in(event: JsonObject) -> NamespacedName:
    regarding = event.get("regarding") or {}
    return str(regarding.get("namespace") or ""), str(regarding.get("name") or "")


def _namespaced(reference: JsonObject) -> str:
    return f"{reference.get('namespace')}/{reference.get('name')}"


def _time_of(event: JsonObject) -> datetime:
    series = event.get("series") or {}
    return _parsed(
        series.get("lastObservedTime")
        or event.get("deprecatedLastTimestamp")
        or event.get("eventTime")
    )


def _parsed(stamp: object) -> datetime:
    """A time of the API; the beginning of time where there is none."""
    try:
        return datetime.fromisoformat(str(stamp)).astimezone(UTC)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
