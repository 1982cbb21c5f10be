"""Whether another kube-scheduler has the same scheduler name, and binds pods past the plugin.

Nothing in the API lists kube-schedulers, and two of one name race for each pod. But each writes
Events under the name of its profile: by which Lease it was elected, and what became of each pod,
with the host that decided it. Events are kept for an hour: one that did nothing for so long is not
seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from scheduler_plugin.checking.setups import Finding, Level, Setup, Unread, name_of, unread
from scheduler_plugin.checking.workloads import NAME_LABEL, SCHEDULER
from scheduler_plugin.objects.fields import JsonObject

PART = "scheduler"
REPLICA = "moorage-scheduler-"
"""What the name of each pod of the release's scheduler begins with, be it there or gone."""

TRIES_AGAIN = timedelta(minutes=6)
"""kube-scheduler tries a pod that it refused every five minutes: one that lives says so."""

NamespacedName = tuple[str, str]


def rival_leases(events: Sequence[JsonObject], own: NamespacedName) -> tuple[NamespacedName, ...]:
    """Namespace and name of each Lease that elected a kube-scheduler, but for `own`."""
    elected = (event["regarding"] for event in events if _kind(event) == "Lease")
    found = dict.fromkeys((each["namespace"], each["name"]) for each in elected)
    return tuple(each for each in found if each != own)


def judge_rivals(setup: Setup) -> Iterator[Finding]:
    """One finding for each kube-scheduler of the release's name that is none of the release's."""
    for found in (setup.scheduler_events, setup.rival_leases):
        if isinstance(found, Unread):
            yield unread(PART, found)
            return
    leaders = dict(_leaders(setup))
    for host, lease in leaders.items():
        yield _finding(setup, Level.ERROR, f"{host}, by the Lease {lease},", "")
    for host, event in _deciders(setup).items():
        if host not in leaders:
            when = _time_of(event)
            level = Level.ERROR if setup.server_time - when < TRIES_AGAIN else Level.WARNING
            last = f"{event['reason']}, Pod {_namespaced(event['regarding'])}"
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
    if not isinstance(setup.lease, Unread) and _has_replicas(setup):
        host = _holder(setup.lease, setup.server_time)
        if host and not _is_replica(host, setup):
            yield host, "/".join(setup.lease_name)


def _deciders(setup: Setup) -> dict[str, JsonObject]:
    """What each host that is no replica decided last; a binding counts more than a refusal."""
    events = setup.scheduler_events if isinstance(setup.scheduler_events, tuple) else ()
    found: dict[str, JsonObject] = {}
    if not _has_replicas(setup):
        return found
    for event in sorted(events, key=lambda e: (e.get("reason") == "Scheduled", _time_of(e))):
        host = _host(event)
        if host and _kind(event) == "Pod" and not _is_replica(host, setup):
            found[host] = event
    return found


def _host(event: JsonObject) -> str:
    """kube-scheduler's instance is its profile's name and its host's."""
    return str(event.get("reportingInstance") or "").removeprefix(
        f"{event.get('reportingController')}-"
    )


def _has_replicas(setup: Setup) -> bool:
    """Whether the release has schedulers of its own; in mode Cluster they are on any machine."""
    return bool(_replicas(setup))


def _is_replica(host: str, setup: Setup) -> bool:
    return host.startswith(REPLICA) or host in _replicas(setup)


def _replicas(setup: Setup) -> set[str]:
    pods = setup.pods if isinstance(setup.pods, tuple) else ()
    return {
        name_of(body)
        for body in pods
        if (body["metadata"].get("labels") or {}).get(NAME_LABEL) == SCHEDULER
    }


def _names(setup: Setup) -> list[str]:
    return [profile["schedulerName"] for profile in setup.expected["profiles"]]


def _holder(lease: JsonObject, now: datetime) -> str:
    """The host that holds a Lease now; "" for none."""
    spec = lease["spec"]
    lasts = timedelta(seconds=spec.get("leaseDurationSeconds") or 0)
    is_held = now - _parsed(spec.get("renewTime")) <= lasts + timedelta(seconds=5)
    return str(spec.get("holderIdentity") or "").partition("_")[0] if is_held else ""


def _kind(event: JsonObject) -> str:
    return str((event.get("regarding") or {}).get("kind", ""))


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
