"""Events on the pods of a changed device, for claims and for the device plugin.

Given before, Given after ──event_of──► DeviceEvent

Running containers keep the devices that they started with; the driver cannot take them away. So an
Event on their pods names what they hold, and which Instance that is now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

MOST_PATHS = 3
"""Paths that an Event names at most; the others are counted."""

OwnerOf = Callable[[str], str | None]
"""path → the Instance that is there now; None if none is known."""

START_ANEW = ": start them anew."


@dataclass(frozen=True, slots=True)
class Given:
    """What a container gets of a device if it starts at a given time.

    Attributes:
        paths: The paths of the device nodes on the host.
        variables: The environment.
        withheld: Why it gets nothing, such as "is offline"; "" if it gets the device.
        former_paths: All former paths of the device, the oldest first.
    """

    paths: Sequence[str]
    variables: Mapping[str, str]
    withheld: str = ""
    former_paths: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class DeviceEvent:
    """The content of an Event.

    Attributes:
        reason: The Event's reason.
        sentence: Names the device, and what containers hold. It has only names of variables,
            because values may be secret.
        is_warning: Whether containers may hold a wrong device.
    """

    reason: str
    sentence: str
    is_warning: bool = True


def event_of(
    device: str, before: Given, after: Given, owner_of: OwnerOf, *, has_moved: bool
) -> DeviceEvent | None:
    """The Event for a change; None if it needs none.

    Args:
        device: Its name, for the start of the sentence.
        before: What containers got before.
        after: What containers get from now on.
        owner_of: Returns the Instance that is at a path now.
        has_moved: Whether its device nodes changed.
    """
    held = _held(before, after, owner_of)
    anew = f"{held}{START_ANEW}" if held else ""
    if after.withheld and not before.withheld:
        why = f"{device} {after.withheld}: no container is started with it until it is back."
        return DeviceEvent("DeviceAway", f"{why}{held}." if held else why)
    if before.withheld and not after.withheld:
        back = f"{device} is back{_places('at', after)}."
        return DeviceEvent("DeviceBack", back + anew, is_warning=bool(after.former_paths))
    if has_moved:
        return DeviceEvent("DeviceMoved", f"{device} moved{_places('to', after)}." + anew)
    if changed := _changed(before.variables, after.variables):
        why = f"{device} changed: containers that run have its old {', '.join(changed)}."
        return DeviceEvent("DeviceChanged", why)
    return None


def path_taken(device: str, path: str, owner: str) -> DeviceEvent:
    """The Event for a former path, which containers may hold, that leads to another device now."""
    return DeviceEvent(
        "DevicePathTaken",
        f"{path} is Instance {owner}'s now. Containers that were started when {device} was there"
        f" hold it{START_ANEW}",
    )


def _places(word: str, given: Given) -> str:
    return f" {word} {', '.join(given.paths)}" if given.paths else ""


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    return sorted(n for n in before.keys() | after.keys() if before.get(n) != after.get(n))


def _held(before: Given, after: Given, owner_of: OwnerOf) -> str:
    """A sentence after a blank: which former paths running containers may hold; "" for none.

    A pod holds the latest paths. Earlier paths are counted: only a pod that has run since before
    several moves may hold one.
    """
    if not (former_paths := after.former_paths):
        return ""
    latest = tuple(path for path in former_paths if path in before.paths)
    latest = latest or tuple(former_paths[-max(1, len(after.paths)) :])
    named = [f"{path}{_owned(owner_of(path))}" for path in latest[:MOST_PATHS]]
    if len(latest) > MOST_PATHS:
        named.append(f"{len(latest) - MOST_PATHS} more paths")
    count = len(former_paths) - len(latest)
    more = {0: "", 1: ", or an earlier path"}.get(count, f", or one of {count} earlier paths")
    return f" Containers that were started before hold {', '.join(named)}{more}"


def _owned(owner: str | None) -> str:
    return f", which is Instance {owner}'s now" if owner else ""
