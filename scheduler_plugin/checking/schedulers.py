"""Whether a kube-scheduler of a supported version and configuration calls the plugin."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from kube.shapes.leases import parse_lease
from kube.shapes.reading import JsonObject
from kube.shapes.times import NO_TIME, read_time
from scheduler_plugin.checking.setups import Finding, Level, Setup, Unread, look_at, unread

PART = "scheduler"
OLDEST_MINOR = 33
DRA_MINOR = 36
"""The first minor version whose shared devices are offered through DRA by default."""

SKEW = timedelta(seconds=5)
"""How far clocks may differ before the times of Events and grace periods mislead."""

FREE = frozenset({"clientConnection", "profiles"})
"""The fields that an administrator may set freely."""


def judge_version(setup: Setup) -> Iterator[Finding]:
    """Whether the cluster's version is supported, and how devices are offered."""
    part, version = "kubernetes", setup.git_version
    minor = minor_of(version)
    if minor is None:
        yield Finding(Level.WARNING, part, f"The version {version!r} is not known.")
    elif minor < OLDEST_MINOR:
        said = f"{version} is older than 1.{OLDEST_MINOR}, the oldest that Moorage is tested with."
        yield Finding(Level.ERROR, part, said, "Upgrade the cluster.")
    elif not setup.serves_dra:
        said = (
            f"{version} does not serve resource.k8s.io/v1: devices are offered through the"
            " device-plugin API."
        )
        yield Finding(Level.OK, part, said)
    elif minor < DRA_MINOR:
        said = (
            f"{version}: devices are offered through the device-plugin API, unless driver.path is"
            " dra."
        )
        yield Finding(Level.OK, part, said)
    else:
        yield Finding(Level.OK, part, f"{version}: devices are offered through DRA.")


def judge_groups(setup: Setup) -> Iterator[Finding]:
    """Whether the cluster has groups of pods that are not read."""
    if setup.serves_composite_groups:
        said = (
            "CompositePodGroups are served, and not read: each of their PodGroups is admitted and"
            " evicted by itself."
        )
        yield Finding(Level.WARNING, "kubernetes", said)


def minor_of(version: str) -> int | None:
    """The 36 of `v1.36.3`, or of an image's tag."""
    found = re.match(r"v?1\.(\d+)", version)
    return int(found[1]) if found else None


def judge_clocks(setup: Setup) -> Iterator[Finding]:
    """Whether the clocks of this host, the API server and kube-scheduler agree."""
    apart = abs(setup.own_time - setup.server_time)
    if apart > SKEW:
        said = f"The clocks of this host and API server differ by {apart.total_seconds():.0f} s."
        yield Finding(Level.WARNING, "clocks", said, "Run a time service on both.")
    if isinstance(setup.lease, Unread):
        return
    ahead = _renewed(setup.lease) - setup.server_time
    if ahead > SKEW:
        said = f"kube-scheduler's clock is {ahead.total_seconds():.0f} s ahead of the API server's."
        yield Finding(Level.WARNING, "clocks", said, "Run a time service on its node.")
    elif apart <= SKEW:
        said = "The clocks of this host, API server and kube-scheduler agree."
        yield Finding(Level.OK, "clocks", said)


def judge_lease(setup: Setup) -> Iterator[Finding]:
    """Whether a kube-scheduler is elected; without one, no pod is bound."""
    lease, name = setup.lease, "/".join(setup.lease_name)
    look = look_at("logs --all-containers", setup.namespace, "moorage-scheduler-plugin")
    if isinstance(lease, Unread):
        if not lease.absent:
            yield unread(PART, lease)
            return
        said = f"There is no Lease {name}: no kube-scheduler was ever elected, no pod is bound."
        yield Finding(Level.ERROR, PART, said, look)
        return
    found = parse_lease(lease)
    ended = setup.server_time - _renewed(lease) - timedelta(seconds=found.duration_seconds)
    if not found.holder or ended > SKEW:
        said = f"The Lease {name} has no holder: no pod with devices is bound."
        yield Finding(Level.ERROR, PART, said, look)
    else:
        yield Finding(Level.OK, PART, f"{found.holder.partition('_')[0]} holds the Lease {name}.")


def _renewed(lease: JsonObject) -> datetime:
    return read_time(parse_lease(lease).renew_time) or NO_TIME


def judge_configuration(setup: Setup) -> Iterator[Finding]:
    """Whether kube-scheduler's configuration has what `print-config` prints."""
    found, source = setup.configuration, setup.configuration_source
    if isinstance(found, Unread):
        mend = "Give the file with --scheduler-config."
        yield Finding(Level.WARNING, PART, f"Not checked: {found.why}", mend)
        return
    if not isinstance(found, Mapping):
        yield Finding(Level.ERROR, PART, f"{source} is not a configuration of kube-scheduler.")
        return
    flaws = [*_differences(found, setup.expected), *_ignorable(found)]
    for flaw in flaws:
        mend = "moorage-scheduler-plugin print-config prints the configuration that is needed."
        yield Finding(Level.ERROR, PART, f"{source}: {flaw}", mend)
    if not flaws:
        yield Finding(Level.OK, PART, f"{source} has all that the plugin needs.")


def _differences(found: Mapping[str, Any], expected: Mapping[str, Any]) -> Iterator[str]:
    for field in expected.keys() - FREE - {"extenders"}:
        yield from _unlike(found.get(field), expected[field], field)
    wanted = {profile["schedulerName"] for profile in expected["profiles"]}
    profiles = found.get("profiles") or [{"schedulerName": "default-scheduler"}]
    if missing := sorted(wanted - {p.get("schedulerName") for p in profiles}):
        yield f"profiles: {', '.join(missing)} is missing."
    yield from _extender(found.get("extenders") or [], expected["extenders"][0])


def _extender(found: list[Any], expected: Mapping[str, Any]) -> Iterator[str]:
    url = expected["urlPrefix"]
    ours = [(i, e) for i, e in enumerate(found) if str(e.get("urlPrefix")).rstrip("/") == url]
    if not ours:
        yield f"extenders: none calls {url}, so no pod is judged."
    for i, extender in ours:
        for field in expected.keys() - {"urlPrefix", "httpTimeout"}:
            yield from _unlike(extender.get(field), expected[field], f"extenders[{i}].{field}")


def _ignorable(found: Mapping[str, Any]) -> Iterator[str]:
    for i, extender in enumerate(found.get("extenders") or []):
        if extender.get("ignorable"):
            yield f"extenders[{i}].ignorable: pods are bound uncharged while the plugin is down."


_TIMES = frozenset({"leaseDuration", "renewDeadline", "retryPeriod"})
"""Fields that may differ, within kube-scheduler's own bounds."""


def _unlike(found: Any, expected: Any, path: str) -> Iterator[str]:
    if isinstance(expected, Mapping):
        inside = found if isinstance(found, Mapping) else {}
        for name in expected.keys() - _TIMES:
            yield from _unlike(inside.get(name), expected[name], f"{path}.{name}")
    elif found != expected:
        yield f"{path} is {found!r}; it must be {expected!r}."
