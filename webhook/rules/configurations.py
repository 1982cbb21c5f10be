"""Configurations: what the driver will not accept, told to who writes one. Nothing is refused.

Akri's definition takes what Moorage does not, such as a capacity of 0, and the driver says so in
the condition `Accepted`, which many do not look at. Handlers of others register themselves on
nodes at any time: that a name is none can not be known, only that no node reports it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from driver.api import Problem
from scheduler_plugin.api import ResourceKey
from webhook.findings import NOTHING_FOUND, Findings, listed
from webhook.reviews import Review, part

_HANDLER = "spec.discoveryHandler.name"
_NOT_ACCEPTED = "Until that is mended, Moorage discovers no devices for this Configuration."


@dataclass(frozen=True, slots=True)
class ConfigurationView:
    """A Configuration.

    Attributes:
        handler: The name of its discovery handler; "" for none.
        is_served: Whether its status says that it is accepted, and of no node that no such handler
            is registered there.
    """

    name: ResourceKey
    handler: str = ""
    is_served: bool = False


def configuration_view(body: Mapping[str, Any]) -> ConfigurationView:
    """Parse a stored Configuration."""
    conditions = {c["type"]: c["status"] for c in part(body, "status", "conditions") or ()}
    return ConfigurationView(
        name=ResourceKey(body["metadata"]["name"]),
        handler=part(body, "spec", "discoveryHandler").get("name") or "",
        is_served=conditions.get("Accepted") == "True"
        and conditions.get("HandlerRegistered") != "False",
    )


def is_to_be_judged(review: Review) -> bool:
    """Whether a CREATE or UPDATE says anything new."""
    body = review.new or {}
    is_going = "deletionTimestamp" in body["metadata"]
    return not is_going and (review.old is None or body.get("spec") != review.old.get("spec"))


def judge_written(
    review: Review, flaws: Sequence[Problem], built_in: Collection[str], reported: Collection[str]
) -> Findings:
    """Judge a CREATE or an UPDATE: there are warnings alone.

    Args:
        review: The review.
        flaws: What the driver finds wrong with the object.
        built_in: The names of Moorage's own handlers.
        reported: The names of handlers that serve some Configuration.
    """
    if not is_to_be_judged(review):
        return NOTHING_FOUND
    name = part(review.new, "spec", "discoveryHandler").get("name") or ""
    said = [str(flaw) for flaw in flaws]
    if name and name not in built_in and name not in reported:
        said += _unknown(name, built_in)
    return Findings(warnings=(*said, *([_NOT_ACCEPTED] if flaws else ())))


def _unknown(name: str, built_in: Collection[str]) -> Iterator[str]:
    meant = [one for one in built_in if one.lower() == name.lower()]
    hint = f' Did you mean "{meant[0]}"?' if meant else ""
    yield (
        f'{_HANDLER}: No node reports a discovery handler "{name:.60}" yet.{hint}'
        f" Built in are {listed(sorted(built_in))}; others register on nodes themselves."
    )
