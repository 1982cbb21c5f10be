"""What is read from the API server before a device is taken from anybody.

It is read when a pod waits for a device that others have beyond their quotas, and forgotten soon
after: nobody else needs nodes, slices in full, or what pods ask of nodes.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from cachetools import TTLCache

from binder.reclaiming.selector_processes import Selected, select
from kube.api import (
    CLAIMS,
    NODES,
    PODS,
    SLICES,
    ApiClient,
    CelProcess,
    JsonObject,
    NotFoundError,
    ObjectPath,
    Selection,
)
from scheduler_plugin.api import (
    SELECTORS_CONDITION,
    Ask,
    DeviceId,
    DeviceRequest,
    Evidence,
    NodeRoom,
    Offer,
    PodNeeds,
    PodUid,
    PodView,
    Seeker,
    World,
    by_node,
    class_request,
    device_request,
    node_room,
    offers,
    pod_needs,
)

SLICES_SECONDS = 5.0
"""How long it is believed which devices there are."""

NODES_SECONDS = 1.0
"""How long it is believed what is on a node."""

IN_ONE_PAGE = 20
"""Slices of up to 128 devices, or pods of a node: kube-scheduler is answered in between."""

_DRIVER = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
_DIGEST = re.compile(r"\b[0-9a-f]{32}\b")

TellSlow = Callable[[PodView, Sequence[str]], Awaitable[None]]
"""Writes down of a pod which of its selectors take too long, by their digests."""

_Told = frozenset[str]
"""Digests of selectors that a pod's own condition says take too long."""


@dataclass(frozen=True, slots=True)
class _Listed:
    """Devices, and which of them do for which requests.

    Attributes:
        selected: By what pods' own conditions say, too: what one pod's says is true of no other's.
    """

    offers: Mapping[DeviceId, Offer]
    on: Mapping[str, Sequence[DeviceId]]
    selected: dict[tuple[DeviceRequest, _Told], Selected] = field(default_factory=dict)


class EvidenceReader:
    """Reads what `decide_device` asks for; what it raises is ApiError or NotEvaluatedError."""

    def __init__(
        self,
        client: ApiClient,
        world: World,
        monotonic: Callable[[], float],
        seconds: float,
        tell_slow: TellSlow,
    ) -> None:
        """`seconds` is how long a read may take."""
        self._client = client
        self._world = world
        self._seconds = seconds
        self._tell_slow = tell_slow
        self._cel = CelProcess()
        self._listed: TTLCache[frozenset[tuple[str, ...]], _Listed] = TTLCache(
            4, SLICES_SECONDS, monotonic
        )
        self._rooms: TTLCache[str, NodeRoom | None] = TTLCache(64, NODES_SECONDS, monotonic)

    async def read(self, seekers: Sequence[Seeker]) -> Evidence:
        """What pods ask for, and which devices there are."""
        claims: dict[str, JsonObject] = {}
        needs: dict[PodUid, PodNeeds] = {}
        told: dict[PodUid, _Told] = {}
        for pod in (seeker.pod for seeker in seekers):
            body = await self._get(PODS.at(pod.name, pod.namespace))
            for name in pod.claim_names:
                if name not in claims:
                    claims[name] = await self._get(CLAIMS.at(name, pod.namespace))
            needs[pod.uid] = pod_needs(body, [claims[name] for name in pod.claim_names])
            told[pod.uid] = _told(body)
        asks = dict.fromkeys(ask for seeker in seekers for ask in seeker.asks)
        requests = {ask: self._request(ask, claims) for ask in asks}
        listed = await self._list(frozenset(map(self._drivers, asks)))
        known = _Told().union(*told.values())
        selected = {ask: await self._selected(listed, r, known) for ask, r in requests.items()}
        for seeker in seekers:
            too_slow = _Told().union(*(selected[ask].too_slow for ask in seeker.asks))
            if not too_slow <= told[seeker.pod.uid]:
                await self._tell_slow(seeker.pod, sorted(too_slow))
        return Evidence(
            needs=needs,
            requests=requests,
            offers=listed.offers,
            on=listed.on,
            refused={ask: found.refused for ask, found in selected.items()},
            accepted={ask: found.accepted for ask, found in selected.items()},
        )

    async def _selected(self, listed: _Listed, request: DeviceRequest, told: _Told) -> Selected:
        if (request, told) not in listed.selected:
            found = await select(self._cel, request, listed.offers, told)
            listed.selected[request, told] = found
        return listed.selected[request, told]

    async def close(self) -> None:
        """Nothing is evaluated any more."""
        await self._cel.close()

    def _request(self, ask: Ask, claims: Mapping[str, JsonObject]) -> DeviceRequest:
        found = self._world.facts.catalog.class_named(ask.alternative.device_class)
        selectors = found.selectors if found is not None else (None,)
        if not ask.claim:
            return class_request(selectors)
        return device_request(claims[ask.claim], ask.alternative, selectors)

    def _drivers(self, ask: Ask) -> tuple[str, ...]:
        found = self._world.facts.catalog.class_named(ask.alternative.device_class)
        return found.drivers if found is not None else ()

    async def read_nodes(self, names: Sequence[str]) -> Mapping[str, NodeRoom | None]:
        """Nodes, and what the pods on them ask for; None for one that is not there."""
        for name in names:
            if name not in self._rooms:
                self._rooms[name] = await self._read_node(name)
        return {name: self._rooms.get(name) for name in names}

    async def _read_node(self, name: str) -> NodeRoom | None:
        try:
            node = await self._get(NODES.at(name))
        except NotFoundError:
            return None
        there = PODS.select(field_selector=f"spec.nodeName={node['metadata']['name']}")
        return node_room(node, await self._list_all(there))

    async def _list(self, drivers: frozenset[tuple[str, ...]]) -> _Listed:
        """The devices of some drivers, where each class names one; of all others too where not."""
        if drivers not in self._listed:
            names = [one[0] for one in drivers if len(one) == 1 and _DRIVER.fullmatch(one[0])]
            if len(names) < len(drivers):
                names = [""]
            found: dict[DeviceId, Offer] = {}
            for name in names:
                only = f"spec.driver={name}" if name else ""
                found |= offers(await self._list_all(SLICES.select(field_selector=only)))
            self._listed[drivers] = _Listed(found, by_node(found))
        return self._listed[drivers]

    async def _get(self, path: ObjectPath) -> JsonObject:
        return await self._client.get(path, timeout_seconds=self._seconds)

    async def _list_all(self, what: Selection) -> Sequence[JsonObject]:
        listed = await self._client.list(what, page_size=IN_ONE_PAGE, timeout_seconds=self._seconds)
        return listed.items


def _told(pod: JsonObject) -> _Told:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    found = (c for c in conditions if c["type"] == SELECTORS_CONDITION and c["status"] == "True")
    return frozenset(d for c in found for d in _DIGEST.findall(c.get("message") or ""))
