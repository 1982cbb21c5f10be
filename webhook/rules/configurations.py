"""Configurations: what the driver will not accept, told to who writes one. Nothing is refused.

Akri's definition takes what Moorage does not, such as a capacity of 0, and the driver says so in
the condition `Accepted`, which many do not look at. Handlers of others register themselves on
nodes at any time: that a name is none can not be known, only that no node reports it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from driver.api import Problem
from driver.shapes.configurations import ConfigurationObject
from kube.shapes.reading import read_as
from scheduler_plugin.api import ResourceKey
from webhook.findings import NOTHING_FOUND, Findings, listed
from webhook.reviews import Review, part

LONGEST_SPEC = 4096
"""Characters of JSON. Some details take 40 microseconds a character to read."""

_REGISTERED = ("Active", "Offline")
"""What nodes say only of handlers that are registered there."""

_HANDLER = "spec.discoveryHandler.name"
_NOT_ACCEPTED = "Until that is mended, Moorage discovers no devices for this Configuration."


@dataclass(frozen=True, slots=True)
class ConfigurationView:
    """A Configuration.

    Attributes:
        handler: The name of its discovery handler; "" for none.
        is_accepted: Whether its status says so.
        unregistered: On which nodes no such handler is registered, in a sentence of its status; ""
            where none says so. Nodes that have one may be among the others.
        is_registered: Whether a node says something of such a handler that is registered there.
    """

    name: ResourceKey
    handler: str = ""
    is_accepted: bool = False
    unregistered: str = ""
    is_registered: bool = False
    namespace: str = ""


def configuration_view(obj: Mapping[str, Any] | ConfigurationObject) -> ConfigurationView:
    """Parse a stored Configuration; raises UnreadableError."""
    found = read_as(ConfigurationObject, obj)
    accepted, registered = found.condition("Accepted"), found.condition("HandlerRegistered")
    is_missing = registered is not None and registered.status == "False"
    told = registered.message if registered is not None else None
    return ConfigurationView(
        name=ResourceKey(found.metadata.name),
        handler=found.handler,
        is_accepted=accepted is not None and accepted.status == "True",
        unregistered=(told or "Some nodes have none.") if is_missing else "",
        is_registered=any(report.handler in _REGISTERED for report in found.reports),
        namespace=found.metadata.namespace or "",
    )


def handler_reports(
    views: Iterable[ConfigurationView], has_devices: Callable[[ResourceKey], bool]
) -> dict[str, str]:
    """By the name of each handler that a Configuration names: which nodes have none.

    It is "" where a Configuration is served on all nodes. One that is not accepted tells nothing,
    nor does one whose nodes say nothing, and of which no device was found: it may be new, or no
    node may have the handler.

    Args:
        views: Configurations.
        has_devices: Whether devices of the Configuration of a name are known.
    """
    found: dict[str, str] = {}
    for view in views:
        is_told = view.unregistered or view.is_registered or has_devices(view.name)
        if view.is_accepted and is_told:
            before = found.get(view.handler, view.unregistered)
            found[view.handler] = before and view.unregistered
    return found


def is_to_be_judged(review: Review) -> bool:
    """Whether a CREATE or UPDATE says anything new."""
    body = review.new or {}
    is_going = "deletionTimestamp" in body["metadata"]
    return not is_going and (review.old is None or body.get("spec") != review.old.get("spec"))


def is_too_long(review: Review) -> bool:
    """Whether its spec takes too long to read beside pods that are judged."""
    return len(json.dumps((review.new or {}).get("spec"))) > LONGEST_SPEC


def judge_written(
    review: Review,
    flaws: Sequence[Problem],
    built_in: Collection[str],
    reported: Mapping[str, str],
) -> Findings:
    """Judge a CREATE or an UPDATE: there are warnings alone.

    Args:
        review: The review.
        flaws: What the driver finds wrong with the object.
        built_in: The names of Moorage's own handlers.
        reported: What is known of other handlers, see `handler_reports`.
    """
    if not is_to_be_judged(review):
        return NOTHING_FOUND
    name = part(review.new, "spec", "discoveryHandler").get("name") or ""
    said = [str(flaw) for flaw in flaws]
    if name and name not in built_in:
        said += _of_other(name, built_in, reported.get(name))
    return Findings(warnings=(*said, *([_NOT_ACCEPTED] if flaws else ())))


def _of_other(name: str, built_in: Collection[str], told: str | None) -> Iterator[str]:
    """Of a handler that is not built in, with what `handler_reports` tells; None for nothing."""
    meant = [one for one in built_in if one.lower() == name.lower()]
    hint = f' Did you mean "{meant[0]}"?' if meant else ""
    if told is None:
        yield (
            f'{_HANDLER}: No node reports a discovery handler "{name:.60}" yet.{hint}'
            f" Built in are {listed(sorted(built_in))}; others register on nodes themselves."
        )
    elif told:
        yield f"{_HANDLER}: {told}{hint} Nodes discover devices only where one is registered."
    elif hint:
        yield f'{_HANDLER}: The discovery handler "{name:.60}" is not built in.{hint}'
