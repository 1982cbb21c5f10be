"""No device comes to be given to two claims through two Configurations while it is prepared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from driver.preparing.files.prepared import PreparedClaim
from driver.preparing.grants.device_locators import DeviceLocator
from driver.preparing.grants.renewals import renew
from driver.preparing.grants.rival_claims import Renewal, without_rivals
from tests.driver.claim_builders import a_reference, a_result, prepared, some_instances
from tests.driver.preparing.grants.test_conflicts import of

MINE, YOURS = a_reference(1), a_reference(2)


def holding(number: int, name: str, path: str) -> PreparedClaim:
    instance = of(name, path)
    result = a_result(instance.name)
    return prepared(a_reference(number), result, instances=some_instances(instance))


def paths(claim: PreparedClaim) -> tuple[str, ...]:
    return claim.devices[0].paths


def test_a_disk_that_comes_where_another_claim_has_the_place_is_withheld_until_that_is_over() -> (
    None
):
    mine, yours = holding(1, "disks-aaaaaa", "/dev/sda"), holding(2, "bays-bbbbbb", "/dev/sdb")
    where = DeviceLocator([of("disks-aaaaaa", "/dev/sdb"), of("bays-bbbbbb", "/dev/sdb")])

    both = renew({MINE.uid: mine, YOURS.uid: yours}, where, str)
    withheld = both[MINE.uid].after
    again = renew({MINE.uid: withheld, YOURS.uid: yours}, where, str)
    alone = renew({MINE.uid: withheld}, where, str)[MINE.uid].after

    assert withheld.devices[0].withheld == (
        "is at /dev/sdb, as is device node-a/bays-bbbbbb of Configuration bays, which"
        f" ResourceClaim {YOURS} has"
    )
    assert (paths(withheld), withheld.devices[0].former_paths) == ((), ("/dev/sda",))
    assert YOURS.uid not in both
    assert again == {}
    assert (paths(alone), alone.devices[0].withheld) == (("/dev/sdb",), "")


def test_disks_that_swap_their_places_keep_each_other_from_nothing() -> None:
    mine, yours = holding(1, "disks-aaaaaa", "/dev/sda"), holding(2, "ssds-bbbbbb", "/dev/sdb")
    where = DeviceLocator([of("disks-aaaaaa", "/dev/sdb"), of("ssds-bbbbbb", "/dev/sda")])

    changes = renew({MINE.uid: mine, YOURS.uid: yours}, where, str)

    assert paths(changes[MINE.uid].after) == ("/dev/sdb",)
    assert paths(changes[YOURS.uid].after) == ("/dev/sda",)


names = st.sampled_from(["disks-aaaaaa", "bays-bbbbbb", "ssds-cccccc"])
places = st.sampled_from(["/dev/sda", "/dev/sdb", "/dev/sdc", "/dev/sdd"])


@given(st.dictionaries(names, st.tuples(places, places), min_size=1))
def test_no_place_is_given_twice_and_who_stays_keeps_it(moves: dict[str, tuple[str, str]]) -> None:
    claims = [
        (holding(n, name, here), holding(n, name, there))
        for n, (name, (here, there)) in enumerate(sorted(moves.items()), 1)
    ]
    if len({here for here, _ in moves.values()}) < len(moves):
        return
    renewals = [Renewal(before, after) for before, after in claims]

    kept = list(without_rivals(renewals))

    assert all(count == 1 for count in given_places(each.after for each in kept).values())
    for renewal, each in zip(renewals, kept, strict=True):
        if renewal.before == renewal.after:
            assert each == renewal
        elif each != renewal:
            assert each.after.devices[0].withheld


def given_places(claims: Iterable[PreparedClaim]) -> Counter[str]:
    return Counter(path for claim in claims for path in paths(claim))


def test_what_is_shared_by_intent_or_looked_at_only_is_not_kept_apart() -> None:
    mine, yours = holding(1, "disks-aaaaaa", "/dev/sdb"), holding(2, "bays-bbbbbb", "/dev/sdb")
    before = holding(1, "disks-aaaaaa", "/dev/sda")
    shared = [replace(c, devices=(replace(c.devices[0], capacity=2),)) for c in (mine, yours)]
    admin = replace(mine.devices[0].allocated, admin_access=True)
    monitors = replace(mine, devices=(replace(mine.devices[0], allocated=admin),))

    for after, other in (tuple(shared), (monitors, yours)):
        renewals = [Renewal(before, after), Renewal(other, other)]
        assert list(without_rivals(renewals)) == renewals
