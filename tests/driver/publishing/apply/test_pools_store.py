"""A fake API server that keeps ResourceSlices, as a value; and what kube-scheduler sees in it.

It stands for the real one where a test needs thousands of histories. What it does, the tests
below say.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from driver.publishing.apply.adoption import Adopted, adopt
from driver.publishing.apply.pools import DesiredPool, PoolPlan, plan_pool
from driver.publishing.apply.resource_slices import (
    Scope,
    SliceDevice,
    StoredSlice,
    seen_by,
    slice_content,
    slice_device,
    stored_slice,
)
from driver.publishing.apply.slice_writes import CreateSlice, DeleteSlice, UpdateSlice

TAINTS = frozenset({"taints"})
CONSUMABLE_CAPACITY = frozenset({"allowMultipleAllocations"})
COUNTERS = frozenset({"consumesCounters", "sharedCounters"})
DEVICE_NODES = frozenset({"perDeviceNodeSelection"})
BINDING_CONDITIONS = frozenset({"bindingConditions", "bindingFailureConditions", "bindsToNode"})
NOTHING_ADOPTED: Adopted = {}
NOW = "2026-11-21T12:00:00Z"

Write = DeleteSlice | UpdateSlice | CreateSlice
Planner = Callable[[tuple[StoredSlice, ...], Adopted], PoolPlan]


class ApiError(Exception):
    """Raised when the API server answers with an error."""


@dataclass(frozen=True, slots=True)
class Store:
    """ResourceSlices by name.

    Attributes:
        dropped: Fields of slices and devices that belong to features which are off.
        now: When taints are added that come without a time.
        parsed: The same slices as values.
        revision: Also what generated names end in.
    """

    objects: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    parsed: Mapping[str, StoredSlice] = field(default_factory=dict)
    dropped: frozenset[str] = frozenset()
    now: str = NOW
    revision: int = 100

    @property
    def views(self) -> tuple[StoredSlice, ...]:
        return tuple(self.parsed.values())

    def without(self, *names: str) -> Store:
        """After somebody else deleted these."""
        objects = {name: obj for name, obj in self.objects.items() if name not in names}
        return replace(self, objects=objects, parsed={name: self.parsed[name] for name in objects})

    def having(self, obj: Mapping[str, Any]) -> Store:
        name = obj["metadata"]["name"]
        return replace(
            self,
            objects={**self.objects, name: obj},
            parsed={**self.parsed, name: stored_slice(obj)},
            revision=self.revision + 1,
        )


@dataclass(frozen=True, slots=True)
class Synced:
    """A plan, and what came of it.

    Attributes:
        seen: What kube-scheduler saw before the first write and after each.
        lost: Devices that are to stay and were in no slice between two writes, while nobody else
            deleted any.
    """

    plan: PoolPlan
    store: Store
    adopted: Adopted
    seen: tuple[Any, ...]
    lost: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Disturbance:
    """What happens while a plan is carried out.

    Attributes:
        after: How many writes went well before.
        deleted: The slices that somebody else then deletes, by position.
        crash: Whether the publisher ends there; else it goes on until a write fails.
    """

    after: int
    deleted: frozenset[int] = frozenset()
    crash: bool = True


def apply(store: Store, write: Write) -> Store:
    match write:
        case DeleteSlice(name, uid, resource_version):
            _check(store, name, uid, resource_version)
            return store.without(name)
        case UpdateSlice(name, body):
            metadata = body["metadata"]
            old = _check(store, name, metadata["uid"], metadata["resourceVersion"])
            for path in (("driver",), ("nodeName",), ("pool", "name")):
                if _at(old["spec"], path) != _at(body["spec"], path):
                    raise ApiError(f"{path} never changes")
            return _put(store, body, metadata)
        case CreateSlice(body):
            name = f"{body['metadata']['generateName'][:58]}{store.revision:05}"
            return _put(store, body, {**body["metadata"], "name": name, "uid": f"uid-{name}"})


def sync(
    store: Store,
    desired: DesiredPool | None,
    adopted: Adopted = NOTHING_ADOPTED,
    planner: Planner | None = None,
    disturbance: Disturbance | None = None,
) -> Synced:
    """Plan once and carry it out, as the shell does."""
    plan = planner(store.views, adopted) if planner else plan_pool(desired, store.views, adopted)
    seen = [scheduler_sees(store)]
    stay, lost = _listed(store.views) & _asked(desired), set[str]()
    for done, write in enumerate(plan.writes):
        if disturbance and disturbance.after == done:
            store = _disturbed(store, disturbance)
            seen.append(scheduler_sees(store))
            if disturbance.deleted:
                stay = set()  # The rest of the plan does not know of it.
            if disturbance.crash:
                break
        try:
            before, store = store, apply(store, write)
        except ApiError:
            break
        seen.append(scheduler_sees(store))
        lost |= stay - _listed(store.views)
        adopted = _adopted(adopted, write, before, store)
    return Synced(plan, store, adopted, tuple(seen), frozenset(lost))


def _listed(views: Iterable[StoredSlice]) -> set[str]:
    return {device.name for view in views for device in view.content.devices}


def _asked(desired: DesiredPool | None) -> set[str]:
    groups = desired.groups if desired is not None else ()
    return {device.name for group in groups for device in group.devices}


def _disturbed(store: Store, disturbance: Disturbance) -> Store:
    names = sorted(store.objects)
    return store.without(*(names[i] for i in disturbance.deleted if i < len(names)))


def _adopted(adopted: Adopted, write: Write, before: Store, after: Store) -> Adopted:
    if isinstance(write, DeleteSlice):
        return adopted
    (answer,) = (view for name, view in after.parsed.items() if before.parsed.get(name) is not view)
    return adopt(adopted, write.index, write.content, answer.content)


def scheduler_sees(store: Store) -> frozenset[tuple[object, str]] | None:
    """The devices of the pool, each with its scope, and its counter sets.

    None while it is incomplete or invalid, as where a device consumes of a set that is not there.

    The rules of `GatherPools` in k8s.io/dynamic-resource-allocation/structured.
    """
    newest = max((view.generation for view in store.views), default=0)
    views = [view for view in store.views if view.generation == newest]
    if any(view.slice_count != len(views) for view in views) or not views:
        return None
    devices = [_seen(view.content.scope, d) for view in views for d in view.content.devices]
    counters = [text for view in views for text in view.content.counters]
    sets = {json.loads(text)["name"] for text in counters}
    is_valid = len({device.name for _, device in devices}) == len(devices)
    if not is_valid or len(sets) < len(counters) or not consumed(d for _, d in devices) <= sets:
        return None
    seen = {(scope, device.text) for scope, device in devices}
    return frozenset({*seen, *(("counters", text) for text in counters)})


def _seen(scope: Scope | None, device: SliceDevice) -> tuple[object, SliceDevice]:
    """For whom a device is, whether its slice says so or the device."""
    body, own = seen_by(device.body({}), scope)
    return own, slice_device(body)


def consumed(devices: Iterable[SliceDevice]) -> set[str]:
    """The counter sets that devices consume of."""
    bodies = (json.loads(device.text) for device in devices if "consumes" in device.text)
    return {c["counterSet"] for body in bodies for c in body["consumesCounters"]}


def _check(store: Store, name: str, uid: str, resource_version: str) -> Mapping[str, Any]:
    old = store.objects.get(name)
    if old is None:
        raise ApiError(f"{name} not found")
    if (old["metadata"]["uid"], old["metadata"]["resourceVersion"]) != (uid, resource_version):
        raise ApiError(f"{name} is another one by now")
    return old


def _put(store: Store, body: Mapping[str, Any], metadata: Mapping[str, Any]) -> Store:
    spec = _kept(store, copy.deepcopy(body["spec"]))
    _validate(spec)
    versioned = {**metadata, "resourceVersion": str(store.revision)}
    return store.having({**body, "metadata": versioned, "spec": spec})


def _kept(store: Store, spec: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in spec.items() if name not in store.dropped}
    kept["devices"] = [
        {name: value for name, value in device.items() if name not in store.dropped}
        for device in spec.get("devices", ())
    ]
    for device in kept["devices"]:
        for taint in device.get("taints", ()):
            taint.setdefault("timeAdded", store.now)
    return kept


def _validate(spec: Mapping[str, Any]) -> None:
    devices, counters = spec["devices"], spec.get("sharedCounters", ())
    if devices and counters:
        raise ApiError("only one of sharedCounters or devices is allowed")
    if len(counters) > 8:
        raise ApiError(f"{len(counters)} counter sets, 8 allowed")
    advanced = {"taints", "consumesCounters"}
    limit = 64 if any(advanced & device.keys() for device in devices) else 128
    if len(devices) > limit:
        raise ApiError(f"{len(devices)} devices, {limit} allowed")
    if len({device["name"] for device in devices}) < len(devices):
        raise ApiError("a device is there twice")
    for place in (spec, *devices):
        said = [name for name in _PLACES if place.get(name)]
        leaves_it = place is not spec and not spec.get("perDeviceNodeSelection")
        if len(said) != (0 if leaves_it else 1):
            raise ApiError(f"of {_PLACES} there are {said}")
    if spec["pool"]["resourceSliceCount"] < 1:
        raise ApiError("a pool has at least one slice")


_PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")


def _at(spec: Mapping[str, Any], path: Iterable[str]) -> object:
    value: Any = spec
    for name in path:
        value = value.get(name, {})
    return value


def a_slice(name: str = "00000-driver-owner-x", /, **spec: Any) -> Mapping[str, Any]:
    """A stored ResourceSlice; fields of its spec and of its pool may be given."""
    pool = {
        "name": spec.pop("pool", "pool"),
        "generation": spec.pop("generation", 1),
        "resourceSliceCount": spec.pop("count", 1),
    }
    metadata: dict[str, Any] = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"}
    owner = spec.pop("owner", None)
    if owner:
        metadata["ownerReferences"] = [owner.reference()]
    scope = {} if spec.keys() & set(_PLACES) else {"nodeName": "owner"}
    return {"metadata": metadata, "spec": {"driver": "driver", "pool": pool, **scope, **spec}}


def a_store(*objects: Mapping[str, Any], **overrides: Any) -> Store:
    store = Store(**overrides)
    for obj in objects:
        store = store.having(obj)
    return store


def device(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, **fields}


def _writes_of(store: Store, **spec: Any) -> Iterator[Write]:
    body = a_slice(**spec)
    yield CreateSlice({**body, "metadata": {"generateName": "00000-driver-"}}, 0, _NO_CONTENT)
    for name, old in store.objects.items():
        yield UpdateSlice(name, {**body, "metadata": old["metadata"]}, 0, _NO_CONTENT)


_NO_CONTENT = slice_content({})


def test_a_created_slice_gets_a_name_a_uid_and_a_version() -> None:
    (create,) = _writes_of(Store())

    (stored,) = apply(Store(), create).objects.values()

    assert stored["metadata"]["name"] == "00000-driver-00100"
    assert stored["metadata"]["uid"]
    assert stored["metadata"]["resourceVersion"] == "100"


@pytest.mark.parametrize("stale", [{"uid": "x"}, {"resource_version": "x"}, {"name": "x"}])
def test_a_write_of_another_version_is_refused(stale: dict[str, str]) -> None:
    (name,) = (store := a_store(a_slice())).objects
    fresh = DeleteSlice(name, f"uid-{name}", "1")

    assert apply(store, fresh).objects == {}
    with pytest.raises(ApiError):
        apply(store, replace(fresh, **stale))


@pytest.mark.parametrize("change", [{"driver": "x"}, {"nodeName": "x"}, {"pool": "x"}])
def test_driver_pool_and_node_of_a_slice_never_change(change: dict[str, str]) -> None:
    _, update = _writes_of(store := a_store(a_slice()), **change)

    with pytest.raises(ApiError):
        apply(store, update)


def test_fields_of_features_that_are_off_are_dropped() -> None:
    store = Store(dropped=TAINTS)
    (create,) = _writes_of(store, devices=[device("a", taints=[{"key": "k"}])])

    (stored,) = apply(store, create).objects.values()

    assert stored["spec"]["devices"] == [{"name": "a"}]


def test_a_taint_without_a_time_gets_one() -> None:
    (create,) = _writes_of(Store(), devices=[device("a", taints=[{"key": "k"}])])

    (stored,) = apply(Store(), create).objects.values()

    assert stored["spec"]["devices"][0]["taints"] == [{"key": "k", "timeAdded": NOW}]


def test_a_slice_with_a_taint_holds_64_devices() -> None:
    plain = [device(f"d{number}") for number in range(64)]
    (fits,) = _writes_of(Store(), devices=[*plain, device("x")])
    (over,) = _writes_of(Store(), devices=[*plain, device("x", taints=[{"key": "k"}])])

    assert len(apply(Store(), fits).objects) == 1
    with pytest.raises(ApiError):
        apply(Store(), over)


@pytest.mark.parametrize(
    ("spec", "is_taken"),
    [
        ({"perDeviceNodeSelection": True, "devices": [device("a", allNodes=True)]}, True),
        ({"perDeviceNodeSelection": True, "devices": [device("a")]}, False),
        ({"devices": [device("a", allNodes=True)]}, False),
        ({"allNodes": True, "perDeviceNodeSelection": True}, False),
    ],
)
def test_either_a_slice_or_each_of_its_devices_says_who_sees_it(
    spec: dict[str, Any], is_taken: bool
) -> None:
    (create,) = _writes_of(Store(), **spec)

    if is_taken:
        assert apply(Store(), create).objects
    else:
        with pytest.raises(ApiError):
            apply(Store(), create)


def test_a_pool_is_complete_when_its_newest_generation_has_all_slices() -> None:
    first = a_slice("00000-a", count=2, devices=[device("a")])
    second = a_slice("00001-b", count=2, devices=[device("b")])
    newer = a_slice("00000-c", count=2, generation=2, devices=[device("c")])

    assert scheduler_sees(a_store(first)) is None
    assert len(scheduler_sees(a_store(first, second)) or ()) == 2
    assert scheduler_sees(a_store(first, second, newer)) is None
