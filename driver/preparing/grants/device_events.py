"""Events on the pods of a device that changes: the same for claims and the device plugin.

Given before, Given after ──event_of──► DeviceEvent

Containers that run keep what they were started with, and nothing can take it from them. So an Event
on their pods says what they hold, and which Instance that is now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

MOST_PATHS = 3
"""So many are named; the others are counted."""

OwnerOf = Callable[[str], str | None]
"""The Instance that is at a path now; None if none is known to be."""

START_ANEW = ": start them anew."


@dataclass(frozen=True, slots=True)
class Given:
    """What a container gets of a device that is started at a moment.

    Attributes:
        paths: Of its device nodes on the host.
        variables: Its environment.
        withheld: Why it gets nothing, as in "is offline"; "" if it gets the device.
        left: All paths where the device was and is not then, in order of time.
    """

    paths: Sequence[str]
    variables: Mapping[str, str]
    withheld: str = ""
    left: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class DeviceEvent:
    """What an Event says.

    Attributes:
        reason: Of the Event.
        sentence: Names the device, and what containers hold; variables by name only, since their
            values may be secrets.
        is_warning: Whether containers may hold what is not their device.
    """

    reason: str
    sentence: str
    is_warning: bool = True


def event_of(
    device: str, before: Given, after: Given, owner_of: OwnerOf, *, has_moved: bool
) -> DeviceEvent | None:
    """What changed; None if that needs no Event.

    Args:
        device: Its name, as a sentence begins with it.
        before: What containers got.
        after: What they get from now on.
        owner_of: Which Instance is at a path now.
        has_moved: Whether its device nodes are others than before.
    """
    held = _held(before, after, owner_of)
    anew = f"{held}{START_ANEW}" if held else ""
    if after.withheld and not before.withheld:
        why = f"{device} {after.withheld}: no container is started with it until it is back."
        return DeviceEvent("DeviceAway", f"{why}{held}." if held else why)
    if before.withheld and not after.withheld:
        back = f"{device} is back{_places('at', after)}."
        return DeviceEvent("DeviceBack", back + anew, is_warning=bool(after.left))
    if has_moved:
        return DeviceEvent("DeviceMoved", f"{device} moved{_places('to', after)}." + anew)
    if changed := _changed(before.variables, after.variables):
        why = f"{device} changed: containers that run have its old {', '.join(changed)}."
        return DeviceEvent("DeviceChanged", why)
    return None


def path_taken(device: str, path: str, owner: str) -> DeviceEvent:
    """A path that containers may hold from before, and that is another device's now."""
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
    """What running containers may hold, behind a blank; "" if they hold nothing of before.

    A pod holds the latest paths. Earlier ones are counted: only a pod that has run through
    all moves may hold one.
    """
    if not (left := after.left):
        return ""
    latest = tuple(path for path in left if path in before.paths)
    latest = latest or tuple(left[-max(1, len(after.paths)) :])
    named = [f"{path}{_owned(owner_of(path))}" for path in latest[:MOST_PATHS]]
    if len(latest) > MOST_PATHS:
        named.append(f"{len(latest) - MOST_PATHS} more paths")
    count = len(left) - len(latest)
    more = {0: "", 1: ", or an earlier path"}.get(count, f", or one of {count} earlier paths")
    return f" Containers that were started before hold {', '.join(named)}{more}"


def _owned(owner: str | None) -> str:
    return f", which is Instance {owner}'s now" if owner else ""
