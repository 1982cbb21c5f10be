"""Claims by the names under which waiting pods reference them."""

from __future__ import annotations

from collections.abc import Iterable, KeysView, Mapping
from typing import TypeAlias

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.names import ClaimUid, PodUid

ClaimKey: TypeAlias = tuple[str, str]
"""Namespace and name."""

_NO_PODS: Mapping[PodUid, None] = {}


class NamedClaims:
    """The pods that reference a claim name, and the claim that has this name."""

    def __init__(self, world: WorldView) -> None:
        self._world = world
        self._pods: dict[ClaimKey, dict[PodUid, None]] = {}
        # By name, the claim of this name, and whether it is terminating.
        self._known: dict[ClaimKey, tuple[ClaimUid, bool]] = {}
        self._keys: dict[ClaimUid, ClaimKey] = {}

    def pods(self, key: ClaimKey) -> KeysView[PodUid]:
        """The pods that reference the name, oldest entry first; the view shows later changes."""
        return self._pods.get(key, _NO_PODS).keys()

    def key_of(self, uid: ClaimUid) -> ClaimKey | None:
        """The name of a referenced claim, even of a claim that is gone."""
        return self._keys.get(uid)

    def add(self, pod: PodUid, keys: Iterable[ClaimKey]) -> None:
        for key in keys:
            self._pods.setdefault(key, {})[pod] = None
            self.learn(key)

    def remove(self, pod: PodUid, keys: Iterable[ClaimKey]) -> None:
        for key in keys:
            del self._pods[key][pod]
            if not self._pods[key]:
                del self._pods[key]
                self._unlearn(key)

    def learn(self, key: ClaimKey) -> bool:
        """Look up the claim of a name; returns whether it differs from the last look-up."""
        claim, before = self._world.facts.claim_named(*key), self._known.get(key)
        found = (claim.uid, claim.is_deleting) if claim is not None else None
        if found == before:
            return False
        self._unlearn(key)
        if found is not None:
            self._known[key], self._keys[found[0]] = found, key
        return True

    def _unlearn(self, key: ClaimKey) -> None:
        before = self._known.pop(key, None)
        if before is not None:
            self._keys.pop(before[0], None)
