"""The keeper of owners on the API server: what ended is removed, soon and for certain.

It hears of claims that changed. Because it may not have been there, or may have been told not to
write, it looks at all claims when it starts and every minute.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from typing import NoReturn

from binder.apiserver_claims import CLAIMS, ClaimWriter, FencedError
from kube.api import (
    ApiClient,
    ApiError,
    Backoff,
    ConflictError,
    JsonObject,
    NotFoundError,
    PermanentError,
)
from scheduler_plugin.api import ClaimUid, Fence, World, ended_owner

logger = logging.getLogger(__name__)

AT_ONCE = 4
"""How many claims are written at one time: bindings come first."""

IN_ONE_GO = 200
"""How many claims are looked at before others have their turn."""

_BACKOFF = Backoff(first_seconds=0.2, cap_seconds=30.0)


@dataclass(eq=False)
class OwnerKeeper:
    """Removes owners that ended.

    Attributes:
        client: Of the API server, as the binder's ServiceAccount.
        fence: Asked before each write.
        world: What is known; its stores must be in sync when `run` begins.
        note_claim: Told each claim that the API server answers with.
        is_busy: Whether a binding that uses the claim is under way.
        write_seconds: How long one write may take.
        recheck_seconds: How often all claims are looked at.
    """

    client: ApiClient
    fence: Fence
    world: World
    _: KW_ONLY
    note_claim: Callable[[JsonObject], None]
    is_busy: Callable[[ClaimUid], bool]
    write_seconds: float = 2.0
    recheck_seconds: float = 60.0

    def __post_init__(self) -> None:
        self._pending: dict[ClaimUid, None] = {}
        self._asked = asyncio.Event()
        self._failures = 0
        self._claims = ClaimWriter(
            self.client,
            self.fence,
            queue_label=self.world.facts.settings.queue_label,
            note_claim=self.note_claim,
            write_seconds=self.write_seconds,
        )

    def changed(self, claim_uids: Iterable[ClaimUid]) -> None:
        """Claims changed, or pods or decisions that their owners depend on."""
        for uid in claim_uids:
            if ended_owner(uid, self.world):
                self._pending[uid] = None
                self._asked.set()

    async def run(self) -> None:
        """Keep until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._look_again())
            group.create_task(self._keep())

    async def _look_again(self) -> NoReturn:
        while True:
            uids = [claim.uid for claim in self.world.facts.claims()]
            for start in range(0, len(uids), IN_ONE_GO):
                self.changed(uids[start : start + IN_ONE_GO])
                await asyncio.sleep(0)
            await asyncio.sleep(self.recheck_seconds * random.uniform(0.9, 1.0))

    async def _keep(self) -> NoReturn:
        while True:
            await self._asked.wait()
            self._asked.clear()
            failures = await self._remove_pending()
            self._failures = self._failures + 1 if failures else 0
            if self._pending:
                self._asked.set()
            await asyncio.sleep(_BACKOFF.delay(self._failures, random.random))

    async def _remove_pending(self) -> int:
        """Remove what ended, and return how much of it has to be tried again."""
        if why := self.fence.why_not(self.write_seconds):
            logger.debug("no owner is removed now: %s", why)
            return 1
        uids = list(self._pending)[:AT_ONCE]
        async with asyncio.TaskGroup() as group:
            for uid in uids:
                group.create_task(self._remove(uid))
        return sum(uid in self._pending for uid in uids)

    async def _remove(self, uid: ClaimUid) -> None:
        """Remove one owner; it stays pending, behind all others, where that may succeed later."""
        del self._pending[uid]
        ended = ended_owner(uid, self.world)
        if ended is None or self.is_busy(uid):
            return
        claim = f"{ended.namespace}/{ended.name}"
        path = CLAIMS.at(ended.name, ended.namespace)
        try:
            await self._claims.remove_owner(path, uid, ended.resource_version)
        except (ConflictError, NotFoundError) as error:
            # Whoever wrote it is heard of, and then it is looked at again.
            logger.debug("owner of another version claim=%s: %s", claim, error)
        except PermanentError as error:
            logger.warning("owner not removed claim=%s: %s", claim, error)
        except (ApiError, FencedError) as error:
            logger.warning("owner not removed yet claim=%s: %s", claim, error)
            self._pending[uid] = None
        else:
            logger.info("owner ended claim=%s", claim)
