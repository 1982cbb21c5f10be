"""Parsers of settings; each raises a ValueError that says what is wrong with the text."""

from __future__ import annotations

import re
from datetime import timedelta

from driver.api import DRIVER_NAME
from kube.command_settings import parsed
from kube.kinds import Resource
from kube.shapes.names import LONGEST_LABEL, NAME, is_name
from scheduler_plugin.objects.names import QUEUE_LABEL, QueueName

_LABEL_KEY = re.compile(rf"({NAME}/)?[A-Za-z0-9]([-_.A-Za-z0-9]{{0,61}}[A-Za-z0-9])?")
_LONGEST_SECONDS = 86_400
_LARGEST_PRIORITY = 2_000_001_000
"""The priority of system-node-critical, the highest of all pods."""


def names(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    if not all(names):
        raise ValueError("must not be empty")
    return names


ACCOUNTED_DRIVERS = parsed(
    names,
    metavar="NAME[,NAME...]",
    help_="Name the drivers that the policy moorage-allocations guards; a Queue that lists a class"
    " of another driver gets a condition.",
    shown=DRIVER_NAME,
)


def lease_name(text: str) -> tuple[str, str]:
    return _namespace_and_name(text, "Lease")


def secret_name(text: str) -> tuple[str, str]:
    return _namespace_and_name(text, "Secret")


def _namespace_and_name(text: str, kind: str) -> tuple[str, str]:
    namespace, _, name = text.partition("/")
    if not (is_name(namespace) and is_name(name)):
        raise ValueError(f"{text!r} is not a {kind} as namespace/name")
    return namespace, name


def port(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= 5 else -1
    if not 0 <= number <= 65535:
        raise ValueError(f"{text!r} is not a port from 0 to 65535")
    return number


def label_key(text: str) -> str:
    if not _LABEL_KEY.fullmatch(text):
        raise ValueError(f"{text!r} is not a label key such as {QUEUE_LABEL}")
    return text


def queue(text: str) -> QueueName:
    if text and not is_name(text, LONGEST_LABEL):
        raise ValueError(f"{text!r} is not a valid name of a Queue")
    return QueueName(text)


def priority(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = None
    if number is None or abs(number) > _LARGEST_PRIORITY:
        raise ValueError(f"{text!r} is not a priority that a pod can have")
    return number


def seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= _LONGEST_SECONDS:
        raise ValueError(f"{text!r} is not a number of seconds above 0 and up to 86400")
    return seconds


STALE_GANG_GRACE = timedelta(seconds=60)
"""KAI's default."""


def grace(text: str) -> timedelta | None:
    """A time in seconds; None for `Never`."""
    if text == "Never":
        return None
    return timedelta(seconds=0 if text == "0" else seconds(text))


GRACE = parsed(
    grace,
    metavar="SECONDS",
    help_="Set the seconds after which the pods of a PodGroup with too few pods are evicted; Never"
    " keeps them.",
    shown=f"{STALE_GANG_GRACE.total_seconds():.0f}",
)

MOST_EVICTIONS = 600


def evictions(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= 100_000):
        raise ValueError(f"{text!r} is not a number of pods from 1 to 100000")
    return int(text)


EVICTIONS = parsed(
    evictions,
    metavar="NUMBER",
    help_="Set the number of pods that may be evicted for one queue within a minute.",
    shown=str(MOST_EVICTIONS),
)


POD_GROUPS = (
    Resource("scheduling.run.ai", "v2alpha2", "podgroups"),
    Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups"),
    Resource("scheduling.k8s.io", "", "podgroups"),
)


def kinds(text: str) -> tuple[Resource, ...]:
    return tuple(dict.fromkeys(map(_kind, text.split(",")))) if text else ()


def _kind(text: str) -> Resource:
    plural, _, group = text.partition(".")
    version, _, rest = group.partition(".")
    if re.fullmatch(r"v[0-9]+((alpha|beta)[0-9]+)?", version):
        group = rest
    else:
        version = ""
    if not (is_name(plural) and is_name(group) and "." in group):
        example = "podgroups.scheduling.k8s.io or podgroups.v2alpha2.scheduling.run.ai"
        raise ValueError(
            f"{text!r} is not a plural.group or plural.version.group such as {example}"
        )
    return Resource(group, version, plural)
