"""Warnings about Configurations that the driver will not accept. Nothing is refused.

Akri's definition allows values that Moorage does not accept, such as a capacity of 0. The driver
reports them in the condition `Accepted`, which users may overlook. External handlers register on
nodes at any time: so a name cannot be called wrong, only not reported by any node.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from driver.api import Problem
from driver.shapes.configurations import ConfigurationObject
from kube.shapes.reading import read_as
from scheduler_plugin.objects.api import ResourceKey
from webhook.findings import NOTHING_FOUND, Findings, listed
from webhook.reviews import Review, part

LONGEST_SPEC = 4096
"""Characters of JSON. Some details take 40 microseconds a character to parse."""

_REGISTERED = ("Active", "Offline")
"""States that nodes report only for handlers that are registered there."""

_HANDLER = "spec.discoveryHandler.name"
_NOT_ACCEPTED = "Until this is corrected, Moorage discovers no devices for this Configuration."


@dataclass(frozen=True, slots=True)
class ConfigurationView:
    """A Configuration.

    Attributes:
        handler: The name of its discovery handler; "" for none.
        is_accepted: Whether its condition `Accepted` is True.
        unregistered: The nodes without this handler, as a sentence of its status; "" if the status
            names none. Other nodes may have the handler.
        is_registered: Whether a node reports this handler as registered.
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
    sentence = registered.message if registered is not None else None
    return ConfigurationView(
        name=ResourceKey(found.metadata.name),
        handler=found.handler,
        is_accepted=accepted is not None and accepted.status == "True",
        unregistered=(sentence or "Some nodes have none.") if is_missing else "",
        is_registered=any(report.handler in _REGISTERED for report in found.reports),
        namespace=found.metadata.namespace or "",
    )


def handler_reports(
    views: Iterable[ConfigurationView], has_devices: Callable[[ResourceKey], bool]
) -> dict[str, str]:
    """For the handler of each Configuration: the nodes without it, as a sentence.

    The sentence is "" if all nodes have the handler. A Configuration that is not accepted counts
    for nothing. The same holds for one without reports of nodes and without devices: it may be new,
    or no node may have the handler.

    Args:
        views: Configurations.
        has_devices: Whether devices of the Configuration of a name are known.
    """
    found: dict[str, str] = {}
    for view in views:
        is_reported = view.unregistered or view.is_registered or has_devices(view.name)
        if view.is_accepted and is_reported:
            before = found.get(view.handler, view.unregistered)
            found[view.handler] = before and view.unregistered
    return found


def is_to_be_judged(review: Review) -> bool:
    """Whether a CREATE or UPDATE changes the spec of an object that is not being deleted."""
    body = review.new or {}
    is_terminating = "deletionTimestamp" in body["metadata"]
    return not is_terminating and (review.old is None or body.get("spec") != review.old.get("spec"))


def is_too_long(review: Review) -> bool:
    """Whether parsing the spec would delay reviews of pods too long."""
    return len(json.dumps((review.new or {}).get("spec"))) > LONGEST_SPEC


def judge_written(
    review: Review,
    flaws: Sequence[Problem],
    built_in: Collection[str],
    reported: Mapping[str, str],
) -> Findings:
    """Judge a CREATE or an UPDATE; the findings are warnings only.

    Args:
        review: The review.
        flaws: Why the driver will not accept the object.
        built_in: The names of Moorage's own handlers.
        reported: External handlers that are known, see `handler_reports`.
    """
    if not is_to_be_judged(review):
        return NOTHING_FOUND
    name = part(review.new, "spec", "discoveryHandler").get("name") or ""
    said = [str(flaw) for flaw in flaws]
    if name and name not in built_in:
        said += _of_other(name, built_in, reported.get(name))
    return Findings(warnings=(*said, *([_NOT_ACCEPTED] if flaws else ())))


def _of_other(name: str, built_in: Collection[str], sentence: str | None) -> Iterator[str]:
    """Warnings about an external handler; `sentence` is its entry in `handler_reports`, if any."""
    meant = [one for one in built_in if one.lower() == name.lower()]
    hint = f' Did you mean "{meant[0]}"?' if meant else ""
    if sentence is None:
        yield (
            f'{_HANDLER}: No node reports a discovery handler "{name:.60}" yet.{hint}'
            f" Built in are {listed(sorted(built_in))}; start any other handler on the nodes."
        )
    elif sentence:
        yield f"{_HANDLER}: {sentence}{hint} Nodes discover devices only where one is registered."
    elif hint:
        yield f'{_HANDLER}: The discovery handler "{name:.60}" is not built in.{hint}'
