"""Which devices of a pool share slices, and how a pool comes from one way to the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from driver.api import DeviceName
from driver.publishing.apply.adoption import Adopted
from driver.publishing.apply.pools import DesiredPool, PoolPlan
from driver.publishing.apply.resource_slices import (
    AllNodesScope,
    NodeSelectorScope,
    PerDeviceScope,
    Scope,
    hostnames,
)
from driver.publishing.apply.shards import SLICE_LIMIT
from driver.publishing.desired.groups import LONGEST_SELECTOR, groups_of
from driver.publishing.desired.publication import (
    Offer,
    Publication,
    publication_of,
    stored_devices,
)
from tests.driver.publishing.apply.test_pools_store import (
    NOTHING_ADOPTED,
    Disturbance,
    Store,
    Synced,
    scheduler_sees,
    sync,
)

EVERYBODY = AllNodesScope()


def seen_by(nodes: str) -> Scope:
    return hostnames(frozenset(nodes.split()))


def a_publication(scopes: Mapping[str, Scope]) -> Publication:
    offers = {
        DeviceName(name): Offer({"name": name, "attributes": {"a": {"int": 1}}}, scope=scope)
        for name, scope in sorted(scopes.items())
    }
    return Publication(offers)


def cameras(many: int, sets: int, *more: str) -> Publication:
    """Cameras that so many different sets of nodes see, and these nodes, too."""
    names = {f"camera-{n:04}": f"node-{n % sets}" for n in range(many)}
    return a_publication({name: seen_by(" ".join((node, *more))) for name, node in names.items()})


@dataclass
class Pool:
    """A pool of the fake API server, and who writes it."""

    device_nodes: bool = True
    store: Store = field(default_factory=Store)
    adopted: Adopted = field(default_factory=lambda: NOTHING_ADOPTED)

    def desired(self, publication: Publication) -> DesiredPool:
        views = self.store.views
        groups = groups_of(publication, EVERYBODY, views, device_nodes=self.device_nodes)
        return DesiredPool(name="pool", driver="driver", groups=groups)

    def show(self, publication: Publication, disturbance: Disturbance | None = None) -> Synced:
        synced = sync(self.store, self.desired(publication), self.adopted, disturbance=disturbance)
        self.store, self.adopted = synced.store, synced.adopted
        return synced

    @property
    def scopes(self) -> list[Scope | None]:
        return [view.content.scope for view in self.store.views]

    @property
    def written(self) -> Publication:
        """What the next process reads."""
        return publication_of(stored_devices(self.store.views))


def test_a_thousand_cameras_seen_by_a_thousand_sets_of_nodes_take_sixteen_slices() -> None:
    pool = Pool()

    pool.show(cameras(1000, 1000))

    assert pool.scopes == [PerDeviceScope()] * 16


def test_one_more_node_that_sees_a_thousand_cameras_keeps_none_of_them_away() -> None:
    pool = Pool()
    pool.show(cameras(1000, 1000))

    synced = pool.show(cameras(1000, 1000, "node-new"))

    assert len(synced.plan.writes) == 16
    assert None not in synced.seen
    assert all(len(seen or ()) == 1000 for seen in synced.seen)
    assert pool.written == cameras(1000, 1000, "node-new")


def test_where_the_api_server_drops_the_field_each_set_of_nodes_has_slices() -> None:
    pool = Pool(device_nodes=False)

    pool.show(cameras(100, 50))

    assert len(pool.scopes) == 50
    assert PerDeviceScope() not in pool.scopes


def test_devices_of_few_sets_of_nodes_stay_grouped() -> None:
    pool = Pool()

    pool.show(cameras(1000, 3))

    assert PerDeviceScope() not in pool.scopes
    assert len(pool.scopes) == 18


def test_an_upgrade_deletes_the_old_slices_when_the_new_ones_are_complete() -> None:
    earlier = Pool(device_nodes=False)
    before = earlier.show(cameras(60, 60)).store
    now = Pool(store=before)

    synced = now.show(cameras(60, 60))

    assert len(synced.plan.outdated) == 59
    assert synced.plan.writes[-59:] == synced.plan.outdated
    assert set(synced.seen) == {scheduler_sees(before)}, "never incomplete"
    assert now.scopes == [PerDeviceScope()]


def test_an_upgrade_of_many_is_incomplete_only_while_the_new_slices_are_written() -> None:
    before = Pool(device_nodes=False).show(cameras(200, 200, "a")).store

    synced = Pool(store=before).show(cameras(200, 200, "a"))

    assert synced.seen.count(None) == 3, "from the first of 4 writes to the last"
    assert set(synced.seen) == {scheduler_sees(before), None}


def test_a_rollback_finds_slices_as_the_earlier_version_wrote_them() -> None:
    earlier = Pool(device_nodes=False)
    earlier.show(cameras(60, 60))
    now = Pool(store=earlier.store)
    now.show(cameras(60, 60))

    back = Pool(device_nodes=False, store=now.store)
    back.show(cameras(60, 60))

    assert sorted(map(str, back.scopes)) == sorted(map(str, earlier.scopes))
    bodies = [device.body({}) for view in back.store.views for device in view.content.devices]
    assert all(not body.keys() & {"nodeSelector", "allNodes"} for body in bodies)


def test_a_pool_does_not_change_to_and_fro_about_one_device() -> None:
    pool = Pool()
    pool.show(cameras(10, 3))
    assert pool.scopes == [PerDeviceScope()]

    pool.show(cameras(10, 2))
    assert pool.scopes == [PerDeviceScope()]

    pool.show(cameras(10, 1))
    pool.show(cameras(10, 2))
    assert PerDeviceScope() not in pool.scopes


def test_a_device_that_very_many_nodes_see_says_so_once_in_its_slice() -> None:
    many = seen_by(" ".join(f"node-{n:05}" for n in range(2000)))
    few = {f"camera-{n}": seen_by(f"node-{n}") for n in range(10)}
    assert isinstance(many, NodeSelectorScope)
    assert len(many.selector) > LONGEST_SELECTOR
    pool = Pool()

    pool.show(a_publication({**few, "wide": many}))

    assert set(pool.scopes) == {PerDeviceScope(), many}


def test_devices_of_nobody_in_particular_are_for_those_of_the_pool() -> None:
    few = {f"camera-{n}": seen_by(f"node-{n}") for n in range(10)}
    offers = {**a_publication(few).offers, DeviceName("x"): Offer({"name": "x"})}
    pool = Pool()

    pool.show(Publication(offers))

    assert pool.scopes == [PerDeviceScope()]
    assert pool.written.offers[DeviceName("x")].scope == EVERYBODY


SCOPES = st.sampled_from([seen_by(names) for names in ("a", "b", "c", "a b", "b c")]) | st.just(
    EVERYBODY
)
PUBLICATIONS = st.dictionaries(
    st.integers(0, 140).map("camera-{:03}".format), SCOPES, max_size=141
).map(a_publication)
WIDE = st.builds(
    lambda many, sets, more: cameras(many, sets, *more),
    st.sampled_from([3, 64, 65, 130]),
    st.integers(1, 130),
    st.lists(st.sampled_from(["x", "y"]), max_size=2),
)


@dataclass(frozen=True)
class Step:
    """What a pool is to show next, by which version, and what happens meanwhile."""

    publication: Publication
    device_nodes: bool
    disturbance: Disturbance | None


STEPS = st.lists(
    st.builds(
        Step,
        PUBLICATIONS | WIDE,
        st.booleans(),
        st.none() | st.builds(Disturbance, st.integers(0, 8), st.just(frozenset())),
    ),
    min_size=1,
    max_size=6,
)


@given(STEPS)
@settings(deadline=None)
def test_versions_that_take_turns_never_show_a_device_twice_or_for_nodes_of_no_version(
    steps: list[Step],
) -> None:
    store = Store()
    for step in steps:
        pool = Pool(device_nodes=step.device_nodes, store=store)
        goal = scheduler_sees(pool_after(store, step).store)
        synced = pool.show(step.publication, step.disturbance)
        before = next((seen for seen in synced.seen if seen is not None), None)
        for seen in filter(None, synced.seen):
            assert seen in (before, goal) or is_mixture(seen, before or (), goal or ())
        store = pool.store
    check_convergence(steps[-1], store)


Seen = Iterable[tuple[object, str]]
"""Devices with who sees them, as kube-scheduler does."""


def pool_after(store: Store, step: Step) -> Synced:
    return Pool(device_nodes=step.device_nodes, store=store).show(step.publication)


def is_mixture(seen: Seen, before: Seen, goal: Seen) -> bool:
    """Whether devices differ in nothing but who sees them, each as before or as wanted."""
    texts = sorted(text for _, text in seen)
    same = texts == sorted(t for _, t in before) == sorted(t for _, t in goal)
    return same and set(seen) <= {*before, *goal}


def check_convergence(step: Step, store: Store) -> None:
    pool = Pool(device_nodes=step.device_nodes, store=store)
    pool.show(step.publication)

    assert pool.show(step.publication).plan == PoolPlan()
    assert pool.written.offers == step.publication.offers
    assert all(len(view.content.devices) <= SLICE_LIMIT for view in pool.store.views)
    newest = {view.generation for view in pool.store.views}
    assert len(newest) == 1, "nothing old is left"
