"""Cleanup of prepared claims that the kubelet does not ask about.

The caller decided about a claim before. `Cleanup` checks the decision again with the claim locked
against other calls and processes: the claim may be in use by now.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from driver.api import ClaimUid
from driver.preparing.files.prepared import PreparedClaim
from driver.preparing.grants.claims import Failure
from driver.preparing.grants.disk_grants import Node
from driver.preparing.kubelet_calls import ClaimCalls
from driver.preparing.lost_claims import Use


class Cleanup:
    """Writes or releases claims whose state was found by a check."""

    def __init__(self, node: Node, calls: ClaimCalls, on_changed: Callable[[], None]) -> None:
        """`on_changed` is called when the prepared claims have changed."""
        self._node = node
        self._calls = calls
        self._on_changed = on_changed

    @property
    def folder_problem(self) -> str:
        """Why CDI files cannot be written, see `Node`; "" if they can."""
        return self._node.folder_problem

    async def settle(self, uid: ClaimUid, use: Callable[[], Awaitable[Use | None]]) -> Use | None:
        """Write the CDI file of a lost claim that is in use; forget a claim that is not.

        Args:
            uid: The claim's.
            use: Returns the use of the claim.

        Returns:
            The use that decided; None if the claim is unchanged. Raises OSError, and what `use`
            raises.
        """
        async with self._calls.one_at_a_time(uid) as deadline, self._node.alone_with(uid):
            if (found := await use()) not in (Use.RUNNING, Use.NONE):
                return None
            async with self._node.exclusively():
                deadline.reschedule(None)
                if not await self._node.settle(uid, is_in_use=found is Use.RUNNING):
                    return None
        self._on_changed()
        return found

    async def unprepare_stale(
        self, uid: ClaimUid, is_stale: Callable[[PreparedClaim], Awaitable[bool]]
    ) -> PreparedClaim | Failure | None:
        """Unprepare a claim. Raises OSError, and what `is_stale` raises.

        Args:
            uid: The claim's.
            is_stale: Whether the claim, as it is prepared now, is stale.

        Returns:
            The released claim, or why it stays; None if it is not prepared, or not stale.
        """
        async with self._calls.one_at_a_time(uid) as deadline, self._node.alone_with(uid):
            async with self._node.exclusively() as prepared:
                claim = prepared.get(uid)
            if claim is None or not await is_stale(claim):
                return None
            async with self._node.exclusively():
                deadline.reschedule(None)
                released = await self._node.release(uid)
        self._on_changed()
        return released
