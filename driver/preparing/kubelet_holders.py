"""Claims that are in the way of others, and may be there no longer.

A kubelet that lost its state never asks to unprepare what it forgot, and files that became
unreadable tell of a claim nothing but its UID. Both keep devices from everybody, so they are looked
at when somebody else is to have a device, and not before.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from driver.preparing.files.prepared import ClaimReference, PreparedClaim
from driver.preparing.grants.claims import Failure

logger = logging.getLogger(__name__)


class KnowsUses(Protocol):
    """What the kubelet says that it uses."""

    async def holds(self, claim: ClaimReference) -> bool | None:
        """Whether a container may have it, or the kubelet will unprepare it; None: unknown."""


@dataclass(frozen=True, slots=True)
class Holders:
    """Settles what holds devices.

    Attributes:
        uses: Without it, no claim is ever taken for one that holds nothing.
        read: A claim as the API server has it; None if it does not exist.
        prepare: As if the kubelet asked.
        unprepare: The same.
    """

    uses: KnowsUses | None
    read: Callable[[ClaimReference], Awaitable[Mapping[str, Any] | Failure | None]]
    prepare: Callable[[ClaimReference], Awaitable[PreparedClaim | Failure]]
    unprepare: Callable[[ClaimReference], Awaitable[PreparedClaim | Failure | None]]

    async def settle(self, holder: ClaimReference) -> str:
        """Deal with a claim that is in the way; returns why it stays there, if it does.

        Only one that exists no more, and that the kubelet does not know, is forgotten: containers
        of a pod that was deleted by force outlive their claim for a while.
        """
        found = await self.read(holder)
        if isinstance(found, Failure):
            return found.sentence
        if found is not None and found["metadata"]["uid"] == holder.uid:
            return await self._learn(holder, found)
        held = await self.uses.holds(holder) if self.uses else None
        if held:
            return "it exists no longer, but the kubelet has not ended with it yet"
        if held is None:
            return "it exists no longer, but what the kubelet uses is not known"
        logger.warning("Claim %s is gone, and the kubelet does not know it; unpreparing", holder)
        return _problem(await self.unprepare(holder))

    async def _learn(self, holder: ClaimReference, found: Mapping[str, Any]) -> str:
        """Prepare what was lost of a claim that exists."""
        if holder.name:
            return "it exists still"
        metadata = found["metadata"]
        known = ClaimReference(metadata["namespace"], metadata["name"], holder.uid)
        return _problem(await self.prepare(known))


def _problem(answer: object) -> str:
    return answer.sentence if isinstance(answer, Failure) else ""
