"""The cases of the Go helper's TestControllerSyncPool, under its names.

Left out are those of counters, and of devices that say themselves who sees them: we publish none.
Each case is: stored slices, the slices that are wanted, the number of writes, what is stored then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from driver.api import NodeName
from driver.publishing.apply.adoption import Adopted
from driver.publishing.apply.pools import DesiredPool, PoolPlan, plan_pool, plan_slices
from driver.publishing.apply.resource_slices import (
    AllNodesScope,
    NodeScope,
    Scope,
    StoredSlice,
    node_selector,
    scope_fields,
    slice_content,
)
from driver.publishing.apply.shards import DeviceGroup
from driver.publishing.apply.slice_writes import Owner
from tests.driver.publishing.apply.test_pools_store import (
    BINDING_CONDITIONS,
    CONSUMABLE_CAPACITY,
    NOW,
    TAINTS,
    a_slice,
    a_store,
    device,
    sync,
)

NODE = Owner("v1", "Node", "owner", "node-uid")
APP = Owner("apps/v1", "Something", "owner", "")
ON_NODE = NodeScope(NodeName("owner"))
SELECTOR = {"nodeSelectorTerms": [{"matchFields": [{"key": "name", "values": ["node-a"]}]}]}
OTHER_SELECTOR = {"nodeSelectorTerms": [{"matchFields": [{"key": "name", "values": ["node-b"]}]}]}

FIRST, SECOND, THIRD = "00000-driver-owner-0", "00001-driver-owner-1", "00002-driver-owner-2"
D, D1, D2, D3, D4 = (device(name) for name in ("device", "device-1", "device-2", "device-3", "d4"))
ATTRIBUTES = {"new-attribute": {"string": "value"}}
EARLIER, LONG_AGO = "2026-11-21T11:59:00Z", "2026-11-20T00:00:00Z"
NO_EXECUTE = {"effect": "NoExecute"}
BINDING = device(
    "device",
    bindingConditions=["condition1", "condition2"],
    bindingFailureConditions=["failure-condition1"],
    bindsToNode=True,
)

Devices = list[dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """One case.

    Attributes:
        wanted: The slices' contents, or the devices of each; None for a pool that shall not be.
        writes: How many deletes, updates and creates.
        after: The beginning of each stored slice's name, its generation and its devices.
        adopts: Whether something of it is dropped.
    """

    wanted: list[Devices | dict[str, Any]] | None
    writes: tuple[int, int, int] = (0, 0, 0)
    after: tuple[tuple[str, int, Devices], ...] = ()
    stored: tuple[Mapping[str, Any], ...] = ()
    scope: Scope = ON_NODE
    owner: Owner | None = NODE
    dropped: frozenset[str] = frozenset()
    adopts: bool = False

    def plan(self, views: tuple[StoredSlice, ...], adopted: Adopted) -> PoolPlan:
        if self.wanted is None:
            return plan_pool(None, views, adopted)
        pool = DesiredPool(
            name="pool",
            driver="driver",
            groups=(DeviceGroup(self.scope),),
            owner=self.owner,
        )
        bodies = [body if isinstance(body, dict) else {"devices": body} for body in self.wanted]
        contents = [slice_content({**scope_fields(self.scope), **body}) for body in bodies]
        return plan_slices(pool, contents, views, adopted)


def taint(**fields: str) -> dict[str, Any]:
    return device("device", taints=[{**NO_EXECUTE, **fields}])


def stored(name: str, devices: Devices, generation: int = 1, count: int = 1) -> Mapping[str, Any]:
    return a_slice(name, devices=devices, generation=generation, count=count, owner=NODE)


THREE = (
    stored(FIRST, [D1], count=3),
    stored(SECOND, [D2], count=3),
    stored(THIRD, [D3], count=3),
)

CASES = {
    "create-slice": Case(wanted=[[]], writes=(0, 0, 1), after=(("00000-driver-owner-", 1, []),)),
    "keep-slice-unchanged": Case(
        stored=(stored(FIRST, [D]),), wanted=[[D]], after=((FIRST, 1, [D]),)
    ),
    "keep-taint-unchanged": Case(
        stored=(stored(FIRST, [taint(timeAdded=EARLIER)]),),
        wanted=[[taint()]],
        after=((FIRST, 1, [taint(timeAdded=EARLIER)]),),
    ),
    "add-taints": Case(
        stored=(stored(FIRST, [taint(timeAdded=EARLIER)]),),
        wanted=[
            [
                device(
                    "device",
                    taints=[
                        NO_EXECUTE,
                        {"key": "example.com/tainted", "effect": "NoSchedule"},
                        {
                            "key": "example.com/tainted2",
                            "effect": "NoExecute",
                            "timeAdded": "2026-11-20T00:00:00.1Z",
                        },
                    ],
                )
            ]
        ],
        writes=(0, 1, 0),
        after=(
            (
                FIRST,
                1,
                [
                    device(
                        "device",
                        taints=[
                            {**NO_EXECUTE, "timeAdded": EARLIER},
                            {
                                "key": "example.com/tainted",
                                "effect": "NoSchedule",
                                "timeAdded": NOW,
                            },
                            {
                                "key": "example.com/tainted2",
                                "effect": "NoExecute",
                                "timeAdded": LONG_AGO,
                            },
                        ],
                    )
                ],
            ),
        ),
    ),
    "drop-taints": Case(
        dropped=TAINTS,
        stored=(stored(FIRST, [D]),),
        wanted=[[taint()]],
        writes=(0, 1, 0),
        after=((FIRST, 1, [D]),),
        adopts=True,
    ),
    "drop-consumable-capacity-field": Case(
        dropped=CONSUMABLE_CAPACITY,
        stored=(stored(FIRST, [D]),),
        wanted=[[{**D, "allowMultipleAllocations": True}]],
        writes=(0, 1, 0),
        after=((FIRST, 1, [D]),),
        adopts=True,
    ),
    "remove-pool": Case(stored=(stored(FIRST, []),), wanted=None, writes=(1, 0, 0)),
    "one-existing-and-one-desired-slice-should-be-updated-inplace": Case(
        stored=(stored(FIRST, []),), wanted=[[D]], writes=(0, 1, 0), after=((FIRST, 1, [D]),)
    ),
    "update-slice-when-more-than-one-existing-or-desired-slice": Case(
        stored=(stored(FIRST, [], count=2), stored(SECOND, [D2], count=2)),
        wanted=[[D1], [D2]],
        writes=(0, 1, 0),
        after=((FIRST, 1, [D1]), (SECOND, 1, [D2])),
    ),
    "delete-redundant-slice": Case(
        stored=(stored(FIRST, [D]), stored(SECOND, [D])),
        wanted=[[D]],
        writes=(1, 0, 0),
        after=((FIRST, 1, [D]),),
    ),
    "update-slice": Case(
        stored=(stored(FIRST, [D]),),
        wanted=[[{**D, "attributes": ATTRIBUTES}]],
        writes=(0, 1, 0),
        after=((FIRST, 1, [{**D, "attributes": ATTRIBUTES}]),),
    ),
    "update-slice-many-devices": Case(
        stored=(stored(FIRST, [D1, D2]),),
        wanted=[[D1, {**D2, "attributes": ATTRIBUTES}]],
        writes=(0, 1, 0),
        after=((FIRST, 1, [D1, {**D2, "attributes": ATTRIBUTES}]),),
    ),
    "multiple-resourceslices-existing-no-changes": Case(
        stored=THREE,
        wanted=[[D1], [D2], [D3]],
        after=((FIRST, 1, [D1]), (SECOND, 1, [D2]), (THIRD, 1, [D3])),
    ),
    "multiple-resourceslices-existing-with-different-resource-pool-generation": Case(
        stored=(stored(FIRST, []), stored(SECOND, [D], generation=2), stored(THIRD, [])),
        wanted=[[D]],
        writes=(3, 0, 1),
        after=(("00000-driver-owner-", 3, [D]),),
    ),
    "multiple-resourceslices-existing-one-changed": Case(
        stored=THREE,
        wanted=[[D1], [{**D2, "attributes": ATTRIBUTES}], [D3]],
        writes=(0, 1, 0),
        after=((FIRST, 1, [D1]), (SECOND, 1, [{**D2, "attributes": ATTRIBUTES}]), (THIRD, 1, [D3])),
    ),
    "multiple-resourceslices-existing-two-changed": Case(
        stored=THREE,
        wanted=[
            [D1],
            [{**D2, "attributes": ATTRIBUTES}],
            [{**D3, "attributes": ATTRIBUTES}],
        ],
        writes=(0, 3, 0),
        after=(
            (FIRST, 2, [D1]),
            (SECOND, 2, [{**D2, "attributes": ATTRIBUTES}]),
            (THIRD, 2, [{**D3, "attributes": ATTRIBUTES}]),
        ),
    ),
    "multiple-resourceslices-existing-one-removed": Case(
        stored=THREE,
        wanted=[[D1], [D2]],
        writes=(1, 2, 0),
        after=((FIRST, 2, [D1]), (SECOND, 2, [D2])),
    ),
    "multiple-resourceslices-existing-one-added": Case(
        stored=THREE,
        wanted=[[D1], [D2], [D3], [D4]],
        writes=(0, 3, 1),
        after=(
            (FIRST, 2, [D1]),
            (SECOND, 2, [D2]),
            (THIRD, 2, [D3]),
            ("00003-driver-owner-", 2, [D4]),
        ),
    ),
    "add-one-network-device-all-nodes": Case(
        owner=None,
        scope=AllNodesScope(),
        wanted=[[D]],
        writes=(0, 0, 1),
        after=(("00000-driver-", 1, [D]),),
    ),
    "add-one-network-device-some-nodes": Case(
        owner=APP,
        scope=node_selector(SELECTOR),
        wanted=[[D]],
        writes=(0, 0, 1),
        after=(("00000-driver-owner-", 1, [D]),),
    ),
    "reconcile-with-pool-name-create-slice-no-node-name": Case(
        scope=AllNodesScope(),
        wanted=[[]],
        writes=(0, 0, 1),
        after=(("00000-driver-owner-", 1, []),),
    ),
    "reconcile-with-pool-name-with-node-selector": Case(
        scope=node_selector(SELECTOR),
        wanted=[[D]],
        writes=(0, 0, 1),
        after=(("00000-driver-owner-", 1, [D]),),
    ),
    "update-node-selector": Case(
        owner=APP,
        stored=(a_slice(FIRST, devices=[D], nodeSelector=SELECTOR, owner=APP),),
        scope=node_selector(OTHER_SELECTOR),
        wanted=[[D]],
        writes=(0, 1, 0),
        after=((FIRST, 1, [D]),),
    ),
    "create-device-with-binding-condition": Case(
        wanted=[[BINDING]],
        writes=(0, 0, 1),
        after=(("00000-driver-owner-", 1, [BINDING]),),
    ),
    "drop-device-with-binding-condition": Case(
        dropped=BINDING_CONDITIONS,
        wanted=[[BINDING]],
        writes=(0, 0, 1),
        after=(("00000-driver-owner-", 1, [D]),),
        adopts=True,
    ),
    "migration-from-random-naming-to-index-based-naming": Case(
        stored=(
            stored("random-name1", [D1], count=3),
            stored("random-name2", [D2], count=3),
            stored("random-name3", [D3], count=3),
        ),
        wanted=[[D1], [D2], [D3]],
        writes=(3, 0, 3),
        after=(
            ("00000-driver-owner-", 2, [D1]),
            ("00001-driver-owner-", 2, [D2]),
            ("00002-driver-owner-", 2, [D3]),
        ),
    ),
    "migration-mixed-naming": Case(
        stored=(
            stored("random-name1", [D1], count=3),
            stored(SECOND, [D2], count=3),
            stored("random-name3", [D3], count=3),
        ),
        wanted=[[D1], [D2], [D3]],
        writes=(2, 1, 2),
        after=(
            ("00000-driver-owner-", 2, [D1]),
            (SECOND, 2, [D2]),
            ("00002-driver-owner-", 2, [D3]),
        ),
    ),
}


def test_all_27_cases_are_there() -> None:
    assert len(CASES) == 27


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_slices_are_what_the_go_helper_makes_them_and_stay_so(case: Case) -> None:
    store = a_store(*case.stored, dropped=case.dropped)

    first = sync(store, None, planner=case.plan)
    second = sync(first.store, None, first.adopted, planner=case.plan)

    plan = first.plan
    deletes = len(plan.deletes) + len(plan.outdated)
    assert (deletes, len(plan.updates), len(plan.creates)) == case.writes
    after = sorted(first.store.objects.values(), key=lambda obj: str(obj["metadata"]["name"]))
    assert len(after) == len(case.after)
    for obj, (name, generation, devices) in zip(after, case.after, strict=True):
        assert obj["metadata"]["name"].startswith(name)
        assert obj["spec"]["pool"] == {
            "name": "pool",
            "generation": generation,
            "resourceSliceCount": len(after),
        }
        assert obj["spec"]["devices"] == devices
    assert bool(first.adopted) == case.adopts
    assert second.plan == PoolPlan()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_is_written_bears_the_scope_and_the_owner(case: Case) -> None:
    plan = case.plan(a_store(*case.stored).views, {})

    for body in [update.body for update in plan.updates] + [new.body for new in plan.creates]:
        assert scope_fields(case.scope).items() <= body["spec"].items()
        owners = [case.owner.reference()] if case.owner else None
        assert body["metadata"].get("ownerReferences") == owners
