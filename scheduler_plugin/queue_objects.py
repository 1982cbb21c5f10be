"""Queue objects: parsed into a `Queue`, or all their problems at once, each with its field path.

What another object decides (whether the parent exists, cycles, namespaces) is not asked here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any, TypeVar

from driver.api import Problem
from scheduler_plugin.amounts import LARGEST, NO_CEILING, UNLIMITED, ResourceKey, ceiling
from scheduler_plugin.fields import shown
from scheduler_plugin.names import (
    CHARGES_FINALIZER,
    ClaimSharing,
    OnOwnerExit,
    Queue,
    QueueName,
    Share,
    SharingPolicy,
)
from scheduler_plugin.selectors import LabelSelector, Operator, Requirement

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_NAME = 253
_LONGEST_LABEL = 63
_DURATION_PART = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(h|ms|m|s)")
_DURATION = re.compile(rf"0|(?:{_DURATION_PART.pattern})+")
_SECONDS = {"h": Decimal(3600), "m": Decimal(60), "s": Decimal(1), "ms": Decimal("0.001")}
_LONGEST_SECONDS = Decimal(366 * 24 * 3600)

E = TypeVar("E", bound=StrEnum)


def parse_queue(obj: Mapping[str, Any]) -> Queue | tuple[Problem, ...]:
    """A Queue as the API server returns it, or everything that is wrong with it."""
    reader = _Reader()
    queue = reader.queue(obj)
    return tuple(reader.problems) or queue


class _Reader:
    """Reads on after a problem, so that the user hears of all of them."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def queue(self, obj: object) -> Queue:
        top = self._object(obj, "")
        metadata = self._object(top.get("metadata"), "metadata")
        spec = self._object(top.get("spec"), "spec")
        name = self._name(metadata.get("name"), "metadata.name")
        if len(name) > _LONGEST_LABEL:
            self._say("metadata.name", f"{len(name)} characters; as a label it may have 63.")
        parent = self._name(spec["parent"], "spec.parent") if spec.get("parent") else ""
        if parent and parent == name:
            self._say("spec.parent", "A queue cannot be its own parent.")
        uid, generation = metadata.get("uid"), metadata.get("generation")
        return Queue(
            name=QueueName(name),
            uid=uid if isinstance(uid, str) else "",
            generation=generation if isinstance(generation, int) else 0,
            is_kept=CHARGES_FINALIZER in (metadata.get("finalizers") or ()),
            is_deleting=metadata.get("deletionTimestamp") is not None,
            parent=QueueName(parent),
            namespaces=self._selector(spec.get("namespaceSelector"), "spec.namespaceSelector"),
            sharing=self._sharing(spec.get("claimSharing"), "spec.claimSharing"),
            shares=self._shares(spec.get("resources"), "spec.resources"),
        )

    def _say(self, path: str, message: str) -> None:
        self.problems.append(Problem(path, message))

    def _object(self, value: object, path: str) -> Mapping[str, Any]:
        if isinstance(value, Mapping):
            return value
        if value is not None:
            self._say(path, f"{shown(value)} is not an object.")
        return {}

    def _list(self, value: object, path: str) -> list[tuple[str, Any]]:
        if value is not None and not isinstance(value, list):
            self._say(path, f"{shown(value)} is not a list.")
            return []
        return [(f"{path}[{index}]", item) for index, item in enumerate(value or ())]

    def _name(self, value: object, path: str) -> str:
        if isinstance(value, str) and len(value) <= _LONGEST_NAME and _NAME.fullmatch(value):
            return value
        self._say(path, f"{shown(value)} is not the name of an object.")
        return ""

    def _text(self, value: object, path: str) -> str:
        if isinstance(value, str) and value:
            return value
        self._say(path, f"{shown(value)} is not a string that says something.")
        return ""

    def _choice(self, value: object, path: str, choices: type[E]) -> E | None:
        if value is None:
            return None
        if isinstance(value, str) and value in [str(choice) for choice in choices]:
            return choices(value)
        self._say(path, f"{shown(value)} is none of {', '.join(choices)}.")
        return None

    def _duration(self, value: object, path: str) -> timedelta | None:
        if value is None:
            return None
        if isinstance(value, str) and _DURATION.fullmatch(value):
            parts = _DURATION_PART.findall(value)
            seconds = sum((Decimal(n) * _SECONDS[unit] for n, unit in parts), Decimal(0))
            if seconds <= _LONGEST_SECONDS:
                return timedelta(seconds=float(seconds))
        self._say(path, f"{shown(value)} is no duration such as 30s or 5m.")
        return None

    def _sharing(self, value: object, path: str) -> ClaimSharing:
        fields = self._object(value, path)
        queues = fields.get("queues")
        names = [QueueName(self._name(q, at)) for at, q in self._list(queues, f"{path}.queues")]
        grace = f"{path}.ownerExitGracePeriod"
        return ClaimSharing(
            policy=self._choice(fields.get("policy"), f"{path}.policy", SharingPolicy),
            queues=None if queues is None else tuple(names),
            on_owner_exit=self._choice(
                fields.get("onOwnerExit"), f"{path}.onOwnerExit", OnOwnerExit
            ),
            owner_exit_grace_period=self._duration(fields.get("ownerExitGracePeriod"), grace),
            evict_foreign=self._choice(
                fields.get("evictForeign"), f"{path}.evictForeign", SharingPolicy
            ),
            label_at_create=self._choice(
                fields.get("labelAtCreate"), f"{path}.labelAtCreate", SharingPolicy
            ),
        )

    def _shares(self, value: object, path: str) -> Mapping[ResourceKey, Share]:
        shares: dict[ResourceKey, Share] = {}
        for where, item in self._list(value, path):
            fields = self._object(item, where)
            key = ResourceKey(self._name(fields.get("deviceClass"), f"{where}.deviceClass"))
            quota = ceiling(self._number(fields.get("quota"), f"{where}.quota", default=0))
            limit = ceiling(self._number(fields.get("limit"), f"{where}.limit", default=NO_CEILING))
            # All that the queue may use is guaranteed.
            share = Share(limit if quota == UNLIMITED else quota, limit)
            if not share.limit.covers(share.quota):
                self._say(
                    f"{where}.limit",
                    f"The limit {share.limit} is below the quota {share.quota}"
                    " (a quota of -1 is the limit).",
                )
            if key in shares:
                self._say(f"{where}.deviceClass", f"{key} is listed twice.")
            shares[key] = share
        return shares

    def _number(self, value: object, path: str, *, default: int) -> int:
        if value is None:
            return default
        if isinstance(value, int) and not isinstance(value, bool) and -1 <= value <= LARGEST:
            return value
        self._say(path, f"{shown(value)} is not a whole number from -1 to {LARGEST}.")
        return default

    def _selector(self, value: object, path: str) -> LabelSelector | None:
        """As everywhere in Kubernetes, absent selects nothing and `{}` everything."""
        if value is None:
            return None
        fields = self._object(value, path)
        found: list[Requirement] = []
        labels = self._object(fields.get("matchLabels"), f"{path}.matchLabels")
        for key, label in labels.items():
            if not isinstance(label, str):
                self._say(f"{path}.matchLabels[{key}]", f"{shown(label)} is not a string.")
            found.append(Requirement(key, Operator.IN, (str(label),)))
        expressions = f"{path}.matchExpressions"
        for where, item in self._list(fields.get("matchExpressions"), expressions):
            found.append(self._requirement(self._object(item, where), where))
        return LabelSelector(tuple(found))

    def _requirement(self, fields: Mapping[str, Any], path: str) -> Requirement:
        key = self._text(fields.get("key"), f"{path}.key")
        operator = self._choice(fields.get("operator") or "", f"{path}.operator", Operator)
        items = self._list(fields.get("values"), f"{path}.values")
        values = tuple(self._text(item, at) if item != "" else "" for at, item in items)
        if operator is None:
            return Requirement(key, Operator.EXISTS)
        takes_values = operator in (Operator.IN, Operator.NOT_IN)
        if takes_values != bool(values):
            needs = "at least one value" if takes_values else "no values"
            self._say(f"{path}.values", f"{operator} takes {needs}.")
        return Requirement(key, operator, values)
