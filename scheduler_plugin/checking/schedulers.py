"""Whether a kube-scheduler of the right version, rightly configured, asks the plugin."""

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
"""From here on shared devices are offered through DRA by default."""

SKEW = timedelta(seconds=5)
"""By which clocks may differ before Events and graces become hard to read."""

FREE = frozenset({"clientConnection", "profiles"})
"""What an administrator may set as he likes."""


def judge_version(setup: Setup) -> Iterator[Finding]:
    """Which devices the cluster can share, and how."""
    part, version = "kubernetes", setup.git_version
    minor = minor_of(version)
    if minor is None:
        yield Finding(Level.WARNING, part, f"{version!r} is no version that is understood.")
    elif minor < OLDEST_MINOR:
        said = f"{version} is older than 1.{OLDEST_MINOR}, the oldest that Moorage is tested with."
        yield Finding(Level.ERROR, part, said, "Upgrade the cluster.")
    elif not setup.serves_dra:
        said = f"{version} without resource.k8s.io/v1: devices go through the device-plugin API."
        yield Finding(Level.OK, part, said)
    elif minor < DRA_MINOR:
        said = f"{version}: devices go through the device-plugin API, unless driver.path is dra."
        yield Finding(Level.OK, part, said)
    else:
        yield Finding(Level.OK, part, f"{version}: devices go through DRA.")


def minor_of(version: str) -> int | None:
    """The 36 of `v1.36.3`, or of an image's tag."""
    found = re.match(r"v?1\.(\d+)", version)
    return int(found[1]) if found else None


def judge_clocks(setup: Setup) -> Iterator[Finding]:
    """Whether this host, the API server and kube-scheduler agree what time it is."""
    apart = abs(setup.own_time - setup.server_time)
    if apart > SKEW:
        said = f"This host and the API server are {apart.total_seconds():.0f} s apart."
        yield Finding(Level.WARNING, "clocks", said, "Run a time service on both.")
    if isinstance(setup.lease, Unread):
        return
    ahead = _renewed(setup.lease) - setup.server_time
    if ahead > SKEW:
        said = f"kube-scheduler's clock is {ahead.total_seconds():.0f} s ahead of the API server's."
        yield Finding(Level.WARNING, "clocks", said, "Run a time service on its node.")
    elif apart <= SKEW:
        yield Finding(Level.OK, "clocks", "This host, API server and kube-scheduler agree.")


def judge_lease(setup: Setup) -> Iterator[Finding]:
    """Whether a kube-scheduler is elected: no other's pods are bound."""
    lease, name = setup.lease, "/".join(setup.lease_name)
    look = look_at("logs --all-containers", setup.namespace, "moorage-scheduler-plugin")
    if isinstance(lease, Unread):
        if not lease.absent:
            yield unread(PART, lease)
            return
        said = f"There is no Lease {name}: no kube-scheduler was ever elected, nothing is bound."
        yield Finding(Level.ERROR, PART, said, look)
        return
    found = parse_lease(lease)
    ended = setup.server_time - _renewed(lease) - timedelta(seconds=found.duration_seconds)
    if not found.holder or ended > SKEW:
        said = f"Nobody holds the Lease {name}: no pod of Moorage's is bound."
        yield Finding(Level.ERROR, PART, said, look)
    else:
        yield Finding(Level.OK, PART, f"{found.holder.partition('_')[0]} holds the Lease {name}.")


def _renewed(lease: JsonObject) -> datetime:
    return read_time(parse_lease(lease).renew_time) or NO_TIME


def judge_configuration(setup: Setup) -> Iterator[Finding]:
    """Whether kube-scheduler's configuration says what `print-config` prints."""
    found, source = setup.configuration, setup.configuration_source
    if isinstance(found, Unread):
        mend = "Name the file: --scheduler-config."
        yield Finding(Level.WARNING, PART, f"Not looked at: {found.why}", mend)
        return
    if not isinstance(found, Mapping):
        yield Finding(Level.ERROR, PART, f"{source}: no configuration of a kube-scheduler.")
        return
    flaws = [*_differences(found, setup.expected), *_ignorable(found)]
    for flaw in flaws:
        mend = "moorage-scheduler-plugin print-config prints how it must be."
        yield Finding(Level.ERROR, PART, f"{source}: {flaw}", mend)
    if not flaws:
        yield Finding(Level.OK, PART, f"{source} is as the plugin needs it.")


def _differences(found: Mapping[str, Any], expected: Mapping[str, Any]) -> Iterator[str]:
    for field in expected.keys() - FREE - {"extenders"}:
        yield from _unlike(found.get(field), expected[field], field)
    wanted = {profile["schedulerName"] for profile in expected["profiles"]}
    profiles = found.get("profiles") or [{"schedulerName": "default-scheduler"}]
    if lacking := sorted(wanted - {p.get("schedulerName") for p in profiles}):
        yield f"profiles: {', '.join(lacking)} is not among them."
    yield from _extender(found.get("extenders") or [], expected["extenders"][0])


def _extender(found: list[Any], expected: Mapping[str, Any]) -> Iterator[str]:
    url = expected["urlPrefix"]
    ours = [(i, e) for i, e in enumerate(found) if str(e.get("urlPrefix")).rstrip("/") == url]
    if not ours:
        yield f"extenders: none calls {url}, so nothing is judged."
    for i, extender in ours:
        for field in expected.keys() - {"urlPrefix", "httpTimeout"}:
            yield from _unlike(extender.get(field), expected[field], f"extenders[{i}].{field}")


def _ignorable(found: Mapping[str, Any]) -> Iterator[str]:
    for i, extender in enumerate(found.get("extenders") or []):
        if extender.get("ignorable"):
            yield f"extenders[{i}].ignorable: pods are bound uncharged while the plugin is away."


_TIMES = frozenset({"leaseDuration", "renewDeadline", "retryPeriod"})
"""A matter of taste, within kube-scheduler's own bounds."""


def _unlike(found: Any, expected: Any, path: str) -> Iterator[str]:
    if isinstance(expected, Mapping):
        inside = found if isinstance(found, Mapping) else {}
        for name in expected.keys() - _TIMES:
            yield from _unlike(inside.get(name), expected[name], f"{path}.{name}")
    elif found != expected:
        yield f"{path} is {found!r}, it must be {expected!r}."
