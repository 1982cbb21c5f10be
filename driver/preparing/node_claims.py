"""Keeps the prepared claims of a node up to date while devices come, go and move.

    discovery ──► reconcile: KubeletClaims.renew ──► CDI files
                                  └──► Events on the pods that have the claims

Events have their own queue: no file waits for the API server. Events that are pending when the
process ends are lost, except the one that still holds after the restart: that a path which
containers hold leads to another device.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import NoReturn

from driver.api import NodeName
from driver.plumbing.apiserver_reconcilers import ALL, whole_reconciler
from driver.preparing.claim_events import ClaimEvent, change_events, pods_of, taken_events
from driver.preparing.files.prepared import ClaimReference
from driver.preparing.grants.rival_claims import Renewal
from driver.preparing.kubelet_claims import KubeletClaims
from kube.calls.api import ApiClient
from kube.events.api import Event, ObjectReference
from kube.kinds import PODS
from kube.reconciling.api import After, Done
from kube.shapes.pods import Pod
from kube.shapes.reading import read_as

logger = logging.getLogger(__name__)

LOOK_SECONDS = 10.0
"""How often claims are checked without a reported change: a link may lead elsewhere."""


class NodeClaims:
    """Plans prepared claims anew whenever devices change, and records Events on pods."""

    def __init__(
        self,
        client: ApiClient,
        node: NodeName,
        claims: KubeletClaims,
        record: Callable[[Event], None],
    ) -> None:
        """`record` takes Events and must not block."""
        self._client = client
        self._claims = claims
        self._record = record
        self._selection = PODS.select(field_selector=f"spec.nodeName={node}")
        self._files_queue = whole_reconciler("planning claims anew", self._renew)
        self._events_queue = whole_reconciler("telling pods of their devices", self._record_events)
        self._unreported: dict[ClaimEvent, None] = {}
        self._taken: frozenset[ClaimEvent] = frozenset()
        self._just_reported: set[ClaimReference] = set()
        self._whole_at = float("-inf")
        claims.on_renewed(self._note_renewed)

    def devices_changed(self) -> None:
        """Check the claims: devices may have changed."""
        self._files_queue.add(ALL)

    async def run(self) -> NoReturn:
        """Keep them up to date until cancelled; failures are logged and retried."""
        await asyncio.gather(self._files_queue.run(), self._events_queue.run())
        raise AssertionError("queues do not end")

    async def _renew(self) -> After:
        self._just_reported.clear()
        now = asyncio.get_running_loop().time()
        is_whole = now >= self._whole_at
        await self._claims.renew(again=True, whole=is_whole)
        if is_whole:
            self._whole_at = now + LOOK_SECONDS
        self._note_taken()
        return After(max(0.0, self._whole_at - now))

    def _note_renewed(self, renewals: tuple[Renewal, ...]) -> None:
        if (where := self._claims.where) is not None:
            events = change_events(renewals, where)
            self._just_reported.update(claim for claim, _ in events)
            self._note(events)

    def _note_taken(self) -> None:
        """Queue Events about taken paths, except for devices that this change reported as moved."""
        if (where := self._claims.where) is None:
            return
        taken = taken_events(self._claims.prepared.values(), where)
        new = taken - self._taken
        self._note(tuple(event for event in new if event[0] not in self._just_reported))
        self._taken = taken

    def _note(self, events: tuple[ClaimEvent, ...]) -> None:
        if events:
            self._unreported.update(dict.fromkeys(events))
            self._events_queue.add(ALL)

    async def _record_events(self) -> Done:
        if not self._unreported:
            return Done()
        events = tuple(self._unreported)
        found = (await self._client.list(self._selection)).items
        pods = [read_as(Pod, obj) for obj in found]
        for event in events:
            self._unreported.pop(event, None)
            claim, device_event = event
            record = Event.warning if device_event.is_warning else Event.normal
            for pod in pods_of(pods, claim):
                regarding = ObjectReference(
                    api_version="v1",
                    kind="Pod",
                    name=pod.metadata.name,
                    namespace=pod.metadata.namespace or "",
                    uid=pod.metadata.uid,
                )
                self._record(record(regarding, device_event.reason, "Renew", device_event.sentence))
        return Done()
