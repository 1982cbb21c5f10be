"""What containers may hold of a device that is elsewhere now, as pods are told."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

MOST_PATHS = 3
"""So many are named; the others are counted."""

OwnerOf = Callable[[str], str | None]
"""The Instance that is at a path now; None if none is known to be."""

ANEW = ": start them anew."


def latest_of(left: Sequence[str], before: Collection[str], count: int) -> tuple[str, ...]:
    """The paths that containers hold which ran until this change, of all that they may hold.

    Args:
        left: All paths where the device was and is not now, in order of time.
        before: Where it was just before the change; none while it was away.
        count: How many paths a device like it has.
    """
    return tuple(path for path in left if path in before) or tuple(left[-max(1, count) :])


def held_sentence(
    latest: Sequence[str], left: Collection[str], owner_of: OwnerOf, end: str = ANEW
) -> str:
    """What running containers hold, behind a blank; "" if they hold nothing of before.

    A pod holds the latest paths. Earlier ones are told as a number: only a pod that has run through
    all moves may hold one.

    Args:
        latest: See `latest_of`.
        left: All paths where the device was and is not now.
        owner_of: Who is at a path now.
        end: Of the sentence.
    """
    if not left:
        return ""
    named = [f"{path}{_owned(owner_of(path))}" for path in latest[:MOST_PATHS]]
    if len(latest) > MOST_PATHS:
        named.append(f"{len(latest) - MOST_PATHS} more paths")
    earlier = len(left) - len(latest)
    more = {0: "", 1: ", or an earlier path"}.get(earlier, f", or one of {earlier} earlier paths")
    return f" Containers that were started before hold {', '.join(named)}{more}{end}"


def _owned(owner: str | None) -> str:
    return f", which is Instance {owner}'s now" if owner else ""
