"""What a node publishes while devices come, go, and are in use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from driver.api import CAPACITY_SLOTS, Configuration, ConfigurationName, DeviceName
from driver.instances.instances import instances_of
from driver.instances.inventory import Inventory
from driver.publishing.apply.resource_slices import (
    NodeScope,
    StoredSlice,
    hostnames,
    stored_slice,
)
from driver.publishing.desired.next_publication import publish
from driver.publishing.desired.publication import (
    Publication,
    Supply,
    either,
    local_supply,
    publication_of,
    stored_devices,
)
from driver.publishing.desired.slices import Features
from tests.driver.builders import NODE, NOW, a_configuration, a_device

FEATURES = Features(consumable_capacity=True, taints=True)
NOTHING = Publication({})
DAY = timedelta(days=1)


def an_inventory(*numbers: int, configuration: Configuration | None = None) -> Inventory:
    configuration = configuration or a_configuration()
    devices = [a_device(f"/devices/loop{number}") for number in numbers]
    instances, _ = instances_of(devices, (), configuration, NODE)
    return Inventory({configuration.name: configuration}, instances, frozenset())


def published_from(
    inventory: Inventory, previous: Publication = NOTHING, **options: Any
) -> Publication:
    arguments: dict[str, Any] = {"features": FEATURES, "allocated": None, "now": NOW, **options}
    return publish(local_supply(inventory), previous, **arguments)


def read_back(publication: Publication) -> Publication:
    """What a process knows that begins."""
    return publication_of((offer.body, offer.scope) for offer in publication.offers.values())


def only(publication: Publication) -> DeviceName:
    (name,) = publication.offers
    return name


def only_body(publication: Publication) -> Mapping[str, Any]:
    return publication.offers[only(publication)].body


def test_what_is_reported_is_offered_with_its_instance() -> None:
    publication = published_from(an_inventory(1, 2))

    assert len(publication.offers) == 2
    assert all(
        offer.instance and offer.absent_since is None for offer in publication.offers.values()
    )
    assert not publication.unsettled


def test_a_device_that_goes_is_first_tainted_even_if_no_claim_has_it() -> None:
    before = published_from(an_inventory(1))

    after = published_from(an_inventory(), before, allocated=frozenset())

    (offer,) = after.absent.values()
    assert offer.body["taints"] == [
        {"key": "moorage.dev/offline", "effect": "NoSchedule", "timeAdded": "2026-11-21T12:00:00Z"}
    ]
    assert after.unsettled


def test_going_away_does_to_pods_what_the_configuration_says_now() -> None:
    evicting = a_configuration(offline_taint_effect="NoExecute")
    absent = published_from(an_inventory(), published_from(an_inventory(1)))
    stays = {"allocated": {only(absent)}, "now": NOW + timedelta(seconds=9)}

    evicts = published_from(an_inventory(configuration=evicting), absent, **stays)
    deleted = published_from(Inventory({}, (), frozenset()), evicts, **stays)
    spares = published_from(an_inventory(), deleted, **stays)

    assert [_taint(one) for one in (absent, evicts, deleted, spares)] == [
        ("NoSchedule", "2026-11-21T12:00:00Z"),
        ("NoExecute", "2026-11-21T12:00:00Z"),
        ("NoExecute", "2026-11-21T12:00:00Z"),
        ("NoSchedule", "2026-11-21T12:00:00Z"),
    ]


def _taint(publication: Publication) -> tuple[str, str]:
    (taint,) = publication.offers[only(publication)].body["taints"]
    return taint["effect"], taint["timeAdded"]


def test_it_is_removed_in_the_next_pass() -> None:
    absent = published_from(an_inventory(), published_from(an_inventory(1)), allocated=frozenset())
    later = NOW + timedelta(milliseconds=1)

    settled = published_from(an_inventory(), absent, allocated=frozenset(), now=later)

    assert settled.offers == {}
    assert not settled.unsettled


@pytest.mark.parametrize("known", [True, False])
def test_it_stays_while_a_claim_has_it_or_may_have_it(known: bool) -> None:
    before = published_from(an_inventory(1))
    absent = published_from(an_inventory(), before)
    allocated = {only(before)} if known else None

    kept = published_from(an_inventory(), absent, allocated=allocated, now=NOW + timedelta(days=2))

    assert kept.offers == absent.offers
    assert kept.absent.keys() == absent.absent.keys()


def test_it_stays_until_its_grace_is_over() -> None:
    configuration = a_configuration(offline_grace_period=timedelta(minutes=5))
    before = published_from(an_inventory(1, configuration=configuration))
    gone = an_inventory(configuration=configuration)
    absent = published_from(gone, before, allocated=frozenset())

    early = published_from(gone, absent, allocated=frozenset(), now=NOW + timedelta(minutes=4))
    late = published_from(gone, early, allocated=frozenset(), now=NOW + timedelta(minutes=5))

    assert early.recheck_at == NOW + timedelta(minutes=5)
    assert len(early.offers) == 1
    assert late.offers == {}


def test_a_device_that_comes_back_is_untainted() -> None:
    before = published_from(an_inventory(1))
    absent = published_from(an_inventory(), before)

    assert published_from(an_inventory(1), absent) == before


def test_a_device_whose_write_may_have_failed_is_tainted_before_it_is_removed() -> None:
    before = published_from(an_inventory(1))
    attempted = published_from(an_inventory(1, 2), before)

    after = published_from(an_inventory(1), either(before, attempted), allocated=frozenset())

    assert after.absent.keys() == attempted.offers.keys() - before.offers.keys()


def test_what_was_written_before_counts_beside_what_may_have_been_written_since() -> None:
    before = published_from(an_inventory(1))
    attempted = published_from(an_inventory(), before)

    assert either(before, attempted) == before


def a_stored_slice(pool: str, generation: int, *bodies: dict[str, Any]) -> StoredSlice:
    spec = {"driver": "moorage.dev", "nodeName": NODE, "devices": list(bodies)}
    place = {"name": pool, "generation": generation, "resourceSliceCount": 1}
    return stored_slice({"metadata": {"name": f"{generation}"}, "spec": {**spec, "pool": place}})


def test_of_a_device_in_two_generations_the_newer_counts() -> None:
    taint = {
        "key": "moorage.dev/offline",
        "effect": "NoSchedule",
        "timeAdded": "2026-11-21T12:00:00Z",
    }
    newer = a_stored_slice(NODE, 2, {"name": "disk", "taints": [taint]})
    older = a_stored_slice(NODE, 1, {"name": "disk"})

    publication = publication_of(stored_devices([newer, older]))

    assert publication.offers[DeviceName("disk")].absent_since == NOW


def test_a_restart_reads_from_the_slice_when_a_device_went() -> None:
    configuration = a_configuration(offline_grace_period=timedelta(minutes=5))
    absent = published_from(
        an_inventory(configuration=configuration),
        published_from(an_inventory(1, configuration=configuration)),
    )

    restarted = read_back(absent)
    settled = published_from(
        an_inventory(configuration=configuration),
        restarted,
        allocated=frozenset(),
        now=NOW + timedelta(minutes=5),
    )

    assert restarted.absent.keys() == absent.absent.keys()
    assert settled.offers == {}


def test_what_an_unheard_configuration_published_stays_as_it_is() -> None:
    before = published_from(an_inventory(1, 2))
    unheard = Inventory({}, (), frozenset({ConfigurationName("loop")}))

    assert published_from(unheard, before, allocated=frozenset()).offers == before.offers


def test_what_is_missing_of_a_configuration_that_is_heard_in_part_stays_as_it_is() -> None:
    before = published_from(an_inventory(1, 2))
    partial = replace(an_inventory(2, 3), unheard=frozenset({ConfigurationName("loop")}))

    after = published_from(partial, before, allocated=frozenset())

    assert after.offers.items() > before.offers.items()
    assert len(after.offers) == 3
    assert after.absent == {}


def test_the_slots_of_a_device_that_is_heard_are_not_kept_for_those_that_are_not() -> None:
    old = a_configuration(capacity=3, unique_devices=False)
    new = a_configuration(capacity=2, unique_devices=False)
    before = published_from(an_inventory(1, 2, configuration=old))
    heard = an_inventory(1, configuration=new)

    after = published_from(replace(heard, unheard=frozenset({new.name})), before)

    assert after.offers.keys() == before.offers.keys()
    assert after.absent.keys() == {f"{heard.local[0].name}-2"}


def test_the_devices_of_a_deleted_configuration_go_away() -> None:
    before = published_from(an_inventory(1))
    nothing = Inventory({}, (), frozenset())

    assert published_from(nothing, before).absent.keys() == before.offers.keys()


def test_an_api_server_that_drops_taints_is_not_sent_any() -> None:
    features = Features(consumable_capacity=False, taints=False)
    before = published_from(an_inventory(1), features=features)

    absent = published_from(an_inventory(), before, features=features)

    assert "taints" not in absent.offers[only(before)].body
    assert absent.unsettled


def test_a_new_capacity_waits_until_the_uses_of_the_old_one_have_ended() -> None:
    several = a_configuration(capacity=3, unique_devices=False)
    before = published_from(an_inventory(1))
    busy = published_from(an_inventory(1, configuration=several), before, allocated={only(before)})

    released = published_from(
        an_inventory(1, configuration=several),
        busy,
        allocated=frozenset(),
        now=NOW + timedelta(seconds=1),
    )
    settled = published_from(an_inventory(1, configuration=several), released)

    assert busy.offers.keys() == before.offers.keys()
    assert len(settled.offers) == 3


@pytest.mark.parametrize("restarts", [False, True])
def test_a_device_of_which_claims_may_have_shares_never_becomes_exclusive(restarts: bool) -> None:
    before = published_from(an_inventory(1, configuration=a_configuration(capacity=2)))

    lowered = published_from(
        an_inventory(1), read_back(before) if restarts else before, allocated={only(before)}
    )

    body = lowered.offers[only(before)].body
    assert body["allowMultipleAllocations"]
    assert body["capacity"][CAPACITY_SLOTS]["value"] == "1"


def test_a_device_that_left_the_pool_comes_back_as_its_capacity_says() -> None:
    before = published_from(an_inventory(1, configuration=a_configuration(capacity=2)))
    absent = published_from(an_inventory(), before)
    gone = published_from(an_inventory(), absent, allocated=frozenset(), now=NOW + DAY)

    assert "allowMultipleAllocations" not in only_body(published_from(an_inventory(1), gone))


def test_a_device_that_a_failed_write_may_have_made_shareable_stays_so() -> None:
    before = published_from(an_inventory(1))
    raised = published_from(an_inventory(1, configuration=a_configuration(capacity=2)), before)

    lowered = published_from(an_inventory(1), either(before, raised))

    assert only_body(lowered)["allowMultipleAllocations"]


def test_what_an_api_server_no_longer_keeps_is_not_sent_for_a_device_with_slots() -> None:
    before = published_from(an_inventory(1, configuration=a_configuration(capacity=2)))
    features = replace(FEATURES, consumable_capacity=False)

    lowered = published_from(an_inventory(1), before, features=features)

    assert "allowMultipleAllocations" not in only_body(lowered)


class NodeLife(RuleBasedStateMachine):
    """Devices come and go, claims take and release them, the driver restarts."""

    def __init__(self) -> None:
        super().__init__()
        self.plugged: set[int] = set()
        self.claimed: set[DeviceName] = set()
        self.publication = NOTHING
        self.now: datetime = NOW

    @rule(number=st.integers(0, 3))
    def plug(self, number: int) -> None:
        self.plugged.add(number)

    @rule(number=st.integers(0, 3))
    def unplug(self, number: int) -> None:
        self.plugged.discard(number)

    @rule(known=st.booleans())
    def pass_over(self, known: bool) -> None:
        allocated = frozenset(self.claimed) if known else None
        inventory = an_inventory(*self.plugged)
        self.publication = published_from(
            inventory, self.publication, allocated=allocated, now=self.now
        )
        self.now += timedelta(seconds=1)

    @rule()
    def restart(self) -> None:
        self.publication = read_back(self.publication)

    @precondition(lambda self: set(self.publication.offers) - self.claimed)
    @rule(data=st.data())
    def claim(self, data: st.DataObject) -> None:
        free = sorted(
            name
            for name, offer in self.publication.offers.items()
            if name not in self.claimed and offer.absent_since is None
        )
        if free:
            self.claimed.add(data.draw(st.sampled_from(free)))

    @precondition(lambda self: self.claimed)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        self.claimed.discard(data.draw(st.sampled_from(sorted(self.claimed))))

    @invariant()
    def what_a_claim_has_is_published(self) -> None:
        assert self.claimed <= self.publication.offers.keys()

    @rule()
    def settles(self) -> None:
        for _ in range(3):
            self.pass_over(known=True)
        inventory = an_inventory(*self.plugged)
        plugged = published_from(inventory).offers.keys()
        assert self.publication.offers.keys() == plugged | self.claimed


TestNodeLife = NodeLife.TestCase


def test_a_device_that_several_nodes_see_is_not_in_a_node_s_slices() -> None:
    configuration = a_configuration()
    shared, _ = instances_of((), [a_device("foo0")], configuration, NODE)
    inventory = Inventory({configuration.name: configuration}, shared, frozenset())

    assert published_from(inventory).offers == {}


def test_the_device_of_an_instance_that_stays_is_kept_for_as_long_as_that() -> None:
    (instance,) = an_inventory(1).local
    before = published_from(an_inventory(1))
    absent = published_from(an_inventory(), before)
    later: dict[str, Any] = {"features": FEATURES, "allocated": (), "now": NOW + DAY}

    lingering = publish(Supply(lingering=frozenset({instance.name})), absent, **later)
    removed = publish(Supply(), lingering, **later)

    assert lingering.offers == absent.offers
    assert lingering.recheck_at is None
    assert removed.offers == {}


def test_a_device_that_went_away_is_seen_by_whom_it_was_seen_before() -> None:
    (instance,) = an_inventory(1).local
    scope = hostnames(frozenset({"a", "b"}))
    supply = Supply(instances=(instance,), scopes={instance.name: scope})
    arguments: dict[str, Any] = {"features": FEATURES, "allocated": None, "now": NOW}
    before = publish(supply, NOTHING, **arguments)

    absent = publish(Supply(), read_back(before), **arguments)

    assert [offer.scope for offer in before.offers.values()] == [scope]
    assert [offer.scope for offer in absent.offers.values()] == [scope]
    assert published_from(an_inventory(1)).offers[only(before)].scope is None


def test_a_stored_slice_says_who_sees_its_devices() -> None:
    stored = publication_of(stored_devices([a_stored_slice(NODE, 1, {"name": "disk"})]))

    assert stored.offers[DeviceName("disk")].scope == NodeScope(NODE)
