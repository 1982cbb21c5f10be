"""Answers to one viewer: all that the viewer may list, and a sentence in place of the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import msgspec
from fastapi import HTTPException

from kube.kinds import CLAIMS, PODS, QUEUES
from kube.shapes.quantities import unit_of
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.dashboard.apiserver_reviews import Reviews, Viewer
from scheduler_plugin.dashboard.cluster_snapshots import Snapshots
from scheduler_plugin.dashboard.leader.answers import PodAnswer
from scheduler_plugin.dashboard.leader.http_leader import CannotAskError, Leader
from scheduler_plugin.dashboard.parts import (
    Access,
    Part,
    access,
    access_beside,
)
from scheduler_plugin.dashboard.snapshots import RowQuery, Snapshot
from scheduler_plugin.objects.measures import is_measured
from scheduler_plugin.objects.names import QueueName
from scheduler_plugin.viewing.measured_rows import number_fields
from scheduler_plugin.viewing.queue_rows import QueueRow, key_named
from scheduler_plugin.viewing.sharing_rows import claim_row, sharers
from scheduler_plugin.viewing.why import Viewer as Viewing
from scheduler_plugin.viewing.why import Why, why

encode = msgspec.json.encode

NOT_YET = "The cluster is not read yet. Try again in a moment."


@dataclass(slots=True)
class Views:
    """Answers viewers.

    Attributes:
        why_not_ready: Why the world is not known yet; "" if it is.
        leader: The elected plugin, for what only its memory has.
    """

    world: WorldView
    snapshots: Snapshots
    reviews: Reviews
    leader: Leader
    why_not_ready: Callable[[], str]

    @property
    def number(self) -> int:
        """The number of the latest snapshot; 0 before the first."""
        return self.snapshots.latest.number if self.snapshots.latest else 0

    async def state(self, user: Viewer, text: str, namespace: str) -> dict[str, Any]:
        """What a viewer may see: the matching rows of each list, and all rows without a filter."""
        snapshot = await self._snapshot()
        parts: dict[str, dict[str, Any]] = {}
        for part in Part:
            wanted = access(part, namespace)
            if await self.reviews.may(user, wanted):
                query = await self._query(user, part, text, namespace)
                all_of_it = snapshot.total(await self._unfiltered(user, part, namespace))
                parts[part] = {"total": snapshot.total(query), "all": all_of_it, "denied": ""}
            else:
                parts[part] = {"total": 0, "all": 0, "denied": wanted.denied(user.name)}
        return {
            "number": snapshot.number,
            "viewer": user.name,
            "leader": await self.leader.why_not(),
            "events": self._events_problem(),
            "parts": parts,
        }

    def _events_problem(self) -> str:
        events = self.snapshots.cluster_events
        return events.why_not() if events is not None else ""

    async def query(self, user: Viewer, part: Part, text: str, namespace: str) -> RowQuery:
        """The rows of a list that a viewer asks for; raises HTTPException 403 without the right."""
        await self._must(user, access(part, namespace))
        return await self._query(user, part, text, namespace)

    async def _query(self, user: Viewer, part: Part, text: str, namespace: str) -> RowQuery:
        beside = access_beside(part, namespace)
        whole = beside is not None and await self.reviews.may(user, beside)
        return RowQuery(part, tuple(text.lower().split()), namespace, whole)

    async def _unfiltered(self, user: Viewer, part: Part, namespace: str) -> RowQuery:
        """All rows that a viewer may see: of one namespace if the viewer may list no other."""
        wanted = access(part, "")
        everywhere = wanted == access(part, namespace) or await self.reviews.may(user, wanted)
        return RowQuery(part, namespace="" if everywhere else namespace)

    async def rows(self, query: RowQuery, offset: int, limit: int) -> bytes:
        """A window as JSON; the rows are JSON already."""
        snapshot = await self._snapshot()
        total, found = snapshot.total(query), snapshot.window(query, offset, limit)
        head = encode({"number": snapshot.number, "total": total, "offset": offset})
        return b'%s,"rows":[%s]}' % (head[:-1], b",".join(found))

    async def claim(self, user: Viewer, namespace: str, name: str) -> dict[str, Any]:
        """A claim; its sharers are None if the viewer may not list pods."""
        await self._must(user, Access(CLAIMS, namespace))
        self._needs_world()
        found = self.world.facts.claim_named(namespace, name)
        row = claim_row(self.world, found) if found is not None else None
        if found is None or row is None:
            raise HTTPException(404, f"There is no accounted ResourceClaim {namespace}/{name}.")
        pods = Access(PODS, namespace)
        if not await self.reviews.may(user, pods):
            return {"claim": row, "sharers": None, "denied": pods.denied(user.name)}
        return {"claim": row, "sharers": sharers(self.world, found), "denied": ""}

    async def pod(self, user: Viewer, namespace: str, name: str) -> dict[str, Any]:
        """Why a pod runs or waits, as in `kubectl moorage why`, and what the leader knows.

        If the leader cannot be asked, `problem` says so; all else is complete.
        """
        await self._must(user, Access(PODS, namespace))
        found = await self._why(user, namespace, name)
        try:
            known, problem = await self.leader.pod(namespace, name), ""
        except CannotAskError as error:
            known, problem = PodAnswer(place=""), str(error)
        # The leader may know of a binding or an eviction that no object has yet.
        differs = known.reason not in ("", found.reason)
        figures = [number_fields(figure) for figure in found.figures]
        return {
            "why": {**asdict(found), "figures": figures},
            "place": known.place,
            "held": known.held,
            "leader": known.message if differs else "",
            "problem": problem,
        }

    async def _why(self, user: Viewer, namespace: str, name: str) -> Why:
        """Why a pod runs or waits; names of holders in other namespaces need the right to list."""
        accesses = (Access(CLAIMS, ""), Access(PODS, ""))
        sees_all = all([await self.reviews.may(user, access) for access in accesses])
        await self._snapshot()  # It looks at the devices, in steps.
        viewer = Viewing(
            free=self.snapshots.free, may_name=lambda other: sees_all or other == namespace
        )
        found = why(self.world, namespace, name, viewer=viewer)
        if found is None:
            sentence = f"There is no pod {namespace}/{name} that requests accounted devices."
            raise HTTPException(404, sentence)
        return found

    async def past(self, user: Viewer, queue: str, device_class: str) -> dict[str, Any]:
        """The samples of a queue, with its current quota and limit.

        The page draws them in `unit`, which stands for `size` devices or units of the measure.
        """
        await self._must(user, Access(QUEUES))
        self._needs_world()
        tree = self.world.facts.tree
        found = tree.get(QueueName(queue))
        if found is None:
            raise HTTPException(404, f"There is no Queue {queue}.")
        key = key_named(self.world, found.name, device_class)
        row = QueueRow(queue=found.name, depth=0, device_class=key)
        if (share := found.shares.get(key)) is not None:
            row = replace(row, quota=share.quota.most, limit=share.limit.most)
        numbers, usage = number_fields(row), self.world.ledger.usage.amount(found.name, key)
        unit, size = unit_of(row.limit or row.quota or usage) if is_measured(key) else ("", 1)
        return {
            "past": self.snapshots.history.of((queue, key)),
            "quota": numbers["quota"],
            "limit": numbers["limit"],
            "unit": unit,
            "size": size,
        }

    async def _must(self, user: Viewer, wanted: Access) -> None:
        if not await self.reviews.may(user, wanted):
            raise HTTPException(403, wanted.denied(user.name))

    def _needs_world(self) -> None:
        if sentence := self.why_not_ready():
            raise HTTPException(503, sentence)

    async def _snapshot(self) -> Snapshot:
        self._needs_world()
        found = await self.snapshots.now()
        if found is None:
            raise HTTPException(503, NOT_YET)
        return found
