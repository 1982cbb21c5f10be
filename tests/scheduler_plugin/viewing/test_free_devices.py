"""Whether devices for a pod are free, and what is told where they are not."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.devices.devices import slice_view
from scheduler_plugin.objects.pods import NamespaceView, PodView
from scheduler_plugin.viewing.free_devices import free_now
from scheduler_plugin.viewing.pod_rows import pod_row
from scheduler_plugin.viewing.why import Viewer, Why, why
from tests.fakes.taint_rules import a_rule
from tests.scheduler_plugin.builders import (
    a_choice,
    a_claim,
    a_pod,
    a_queue,
    a_request,
    a_result,
    a_slice,
    a_world,
    an_allocated_claim,
    claim_uid,
    put,
    their_class,
)
from tests.scheduler_plugin.viewing.test_rows import with_cameras

NOW = datetime(2026, 11, 26, tzinfo=UTC)
GPU = "gpu.example.com"
FIRST, SECOND = "onvif-aaaaaa", "onvif-bbbbbb"


def cameras(*more: object) -> World:
    """A pod of robots uses the first camera; `p` of vision asks for one, within its quota."""
    return a_world(
        a_queue("vision", onvif=(4, 4)),
        a_queue("robots", onvif=(0, 4)),
        an_allocated_claim("cam", "a", queue="robots"),
        a_pod("a", queue="robots", claims=("cam",), node="n", phase="Running"),
        a_claim("own"),
        a_pod("p", queue="vision", claims=("own",)),
        *more,
    )


def of_p(world: World) -> Why:
    found = why(world, "default", "p", NOW)
    assert found is not None
    return found


def pod_p(world: World) -> PodView:
    found = world.facts.pod_named("default", "p")
    assert found is not None
    return found


def test_a_pod_for_which_a_device_is_free_is_admitted() -> None:
    found = of_p(with_cameras(cameras()))

    assert (found.reason, found.remedies) == ("Admitted", ())


def test_a_device_that_a_rule_taints_is_not_free_and_the_rule_is_named() -> None:
    world = with_cameras(cameras())
    world.put_taint_rule(a_rule(device=SECOND))

    found = of_p(world)

    assert (found.reason, found.sentence) == (
        "NoDeviceFree",
        'All queue rules pass. No device of DeviceClass "onvif" is free: 2 exist, 1 is in use,'
        " 1 is tainted.",
    )
    remedy = (
        "Delete the DeviceTaintRule repair, which taints 1 device: see kubectl moorage devices."
    )
    assert remedy in found.remedies


def test_of_many_rules_some_are_named() -> None:
    world = with_cameras(cameras())
    for name in "abcd":
        world.put_taint_rule(a_rule(name, device=SECOND))

    remedy = (
        "Delete the DeviceTaintRules a, b, c and 1 more, which taint 1 device:"
        " see kubectl moorage devices."
    )
    assert remedy in of_p(world).remedies


def test_a_rule_that_taints_another_device_or_only_informs_changes_nothing() -> None:
    world = with_cameras(cameras())
    world.put_taint_rule(a_rule("informs", "None"))
    world.put_taint_rule(a_rule("elsewhere", pool="m"))
    world.put_taint_rule(a_rule("gone"))
    world.delete_taint_rule(a_rule("gone"))

    assert of_p(world).reason == "Admitted"


def test_a_claim_whose_device_a_rule_taints_says_so() -> None:
    world = with_cameras(cameras())
    world.put_taint_rule(a_rule(effect="NoExecute", device=FIRST))

    found = why(world, "default", "a", NOW)

    assert found is not None
    (sentence,) = found.claims
    assert sentence.endswith(
        f"Tainted devices: {FIRST} by example.com/repair:NoExecute (DeviceTaintRule repair)."
    )


def test_a_pod_without_a_free_device_is_told_how_many_there_are_and_what_uses_them() -> None:
    found = of_p(with_cameras(cameras(), FIRST))

    assert found.reason == "NoDeviceFree"
    assert found.sentence == (
        'All queue rules pass. No device of DeviceClass "onvif" is free: 1 exists, 1 is in use.'
    )
    release, wait = found.remedies
    assert release == (
        'Release 1 device of: ResourceClaim default/cam (queue "robots"; used by default/a).'
    )
    assert 'queue "vision" is below its quota, and other queues are above theirs' in wait


def gpus(quota: str, *, divided: bool) -> World:
    """A pod of robots uses the one GPU; `p` of vision asks for one."""
    entry = {"name": "memory", "driver": GPU, "measure": {"capacity": "memory"}}
    queues = {"vision": {**entry, "quota": quota}, "robots": entry}
    share: dict[str, Any] = (
        {"consumedCapacity": {"memory": "40Gi"}, "shareID": "s"} if divided else {}
    )
    result = a_result(driver=GPU, pool="n", device="gpu", **share)
    found = a_world(
        *(a_queue(name, resources=[given]) for name, given in queues.items()),
        their_class("gpu", f"device.driver == '{GPU}'"),
        a_claim("cam", requests=[a_request("gpu")], results=[result], queue="robots", pods=["a"]),
        a_pod("a", queue="robots", claims=("cam",), node="n", phase="Running"),
        a_claim("own", requests=[a_request("gpu")]),
        a_pod("p", queue="vision", claims=("own",)),
    )
    device = {"name": "gpu", "capacity": {"memory": {"value": "80Gi"}}}
    devices = [{**device, "allowMultipleAllocations": divided}]
    spec = {"driver": GPU, "pool": {"name": "n"}, "nodeName": "n", "devices": devices}
    found.put_slice(slice_view({"metadata": {"name": "gpus"}, "spec": spec}))
    return found


@pytest.mark.parametrize(("quota", "waits"), [("80Gi", True), ("0", False)])
def test_a_wait_is_a_remedy_for_a_queue_below_its_quota_of_a_measure(
    quota: str, *, waits: bool
) -> None:
    found = of_p(gpus(quota, divided=False))

    assert found.reason == "NoDeviceFree"
    assert any("Or wait" in way for way in found.remedies) is waits


def test_a_device_that_claims_divide_is_not_short_for_one_of_them() -> None:
    """How much of it is left is for kube-scheduler to find; one device may meet two requests."""
    world = gpus("160Gi", divided=True)
    world.put_claim(a_claim("own", requests=[a_request("gpu"), a_request("gpu", name="more")]))

    assert of_p(world).reason == "Admitted"


@pytest.mark.parametrize(("divided", "fits"), [(True, True), (False, False)])
def test_a_gang_fits_on_one_device_that_claims_divide(divided: bool, fits: bool) -> None:
    world = gpus("160Gi", divided=divided)
    world.delete_claim(claim_uid("cam"))
    world.put_claim(a_claim("other", requests=[a_request("gpu")]))
    gang = [pod_p(world), a_pod("q", queue="vision", claims=("other",))]

    for pod in gang:
        assert free_now(world).take([pod]) is None
    assert (free_now(world).take(gang) is None) is fits


def test_a_wait_is_no_remedy_where_nothing_is_taken_back() -> None:
    world = with_cameras(cameras(a_queue("robots", onvif=(1, 4))), FIRST)

    assert not any("Or wait" in way for way in of_p(world).remedies)


def test_claims_of_other_namespaces_are_counted_for_who_may_not_list_them() -> None:
    own = a_pod("p", namespace="team", queue="vision", claims=("own",))
    world = cameras(own, a_claim("own", namespace="team", uid="own-of-team"))
    world.put_namespace(NamespaceView("team", {}))
    found = why(with_cameras(world, FIRST), "team", "p", NOW, Viewer(may_name="team".__eq__))

    assert found is not None
    assert found.reason == "NoDeviceFree"
    told = " ".join((found.sentence, *found.remedies))
    assert "1 claim or pod in other namespaces" in told
    assert "default" not in told


def test_claims_at_a_limit_are_counted_for_who_may_not_list_them() -> None:
    own = a_pod("p", namespace="team", queue="robots", claims=("own",))
    world = cameras(own, a_claim("own", namespace="team", uid="own-of-team"))
    world.put_namespace(NamespaceView("team", {}))
    put(world, a_queue("robots", onvif=(0, 1)))
    found = why(world, "team", "p", NOW, Viewer(may_name="team".__eq__))

    assert found is not None
    assert found.reason == "OverLimit"
    rows = (way for row in found.rules for way in row.remedies)
    assert "cam" not in " ".join((*found.remedies, *rows)).replace("cameras", "")
    assert "(held by 1 claim or pod in other namespaces)" in found.remedies[0]


def test_a_device_that_is_away_is_told_and_is_not_free() -> None:
    world = with_cameras(with_cameras(cameras(), FIRST), SECOND, nodes=[])

    found = of_p(world)

    assert found.reason == "NoDeviceFree"
    assert "2 exist, 1 is in use, 1 is absent" in found.sentence
    assert "Or wait until a device returns (1 absent device)" in found.remedies[1]


def test_a_claim_whose_device_is_away_says_so() -> None:
    world = with_cameras(cameras(), FIRST, nodes=[])

    found = why(world, "default", "a", NOW)

    assert found is not None
    assert found.claims == (
        "ResourceClaim default/cam is allocated and charged to robots."
        f" Absent devices, which no node sees: {FIRST}.",
    )


def test_slots_that_are_left_are_free_and_more_than_are_left_are_not() -> None:
    world = with_cameras(cameras(), FIRST, capacity=3)
    assert of_p(world).reason == "Admitted"

    put(world, a_claim("own", requests=[a_request(slots=3)]))

    assert "has 3 free slots: 1 exists, 1 is in use" in of_p(world).sentence


def test_several_devices_have_to_be_on_one_node() -> None:
    world = cameras(a_claim("own", requests=[a_request(count=2)]))
    with_cameras(world, FIRST, SECOND)
    assert "2 devices of DeviceClass" in of_p(world).sentence
    assert "on one node, and at most 1 is free" in of_p(world).sentence

    with_cameras(world, "onvif-cccccc", nodes=["m"])
    assert of_p(world).reason == "NoDeviceFree", "each is on another node"

    with_cameras(world, "onvif-cccccc", nodes=["m", "n"])
    assert of_p(world).reason == "Admitted"


def test_no_device_and_no_class_are_told_as_such() -> None:
    assert 'There is no device of DeviceClass "onvif".' in of_p(cameras()).sentence
    put(world := cameras(), a_claim("own", requests=[a_request("nothing")]))

    found = of_p(world)

    assert 'DeviceClass "nothing" does not exist.' in found.sentence
    assert found.remedies == ('Create DeviceClass "nothing", or request one that exists.',)


def test_an_alternative_that_is_free_is_enough() -> None:
    gpu = their_class("gpu", f'device.driver == "{GPU}"')
    both = a_choice(a_request(name="a"), a_request("gpu", name="b"))
    world = with_cameras(cameras(gpu, a_claim("own", requests=[both])), FIRST)
    assert of_p(world).reason == "NoDeviceFree"

    put(world, a_slice("s", ("", ""), driver=GPU, nodeName="n"))

    assert of_p(world).reason == "Admitted"


@pytest.mark.parametrize("part", [True, False])
def test_devices_of_other_drivers_are_counted_by_driver(part: bool) -> None:
    gpu = their_class("gpu", f'device.driver == "{GPU}" && device.attributes["x"].y == 1')
    result = a_result(driver=GPU, pool="n", device="gpu-0", **({"shareID": "x"} if part else {}))
    world = cameras(
        gpu,
        a_slice("s", ("", ""), driver=GPU, pool={"name": "n"}, nodeName="n"),
        an_allocated_claim("used", "a", requests=[a_request("gpu")], results=[result]),
        a_claim("own", requests=[a_request("gpu")]),
    )

    found = of_p(world)

    assert found.reason == ("Admitted" if part else "NoDeviceFree")
    if not part:
        assert "ResourceClaim default/used" in found.remedies[0]


def test_what_kube_scheduler_found_is_told_where_devices_may_be_free() -> None:
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    pod = a_pod("p", queue="vision", claims=("own",), status={"conditions": [refused]})

    found = of_p(with_cameras(cameras(pod)))

    assert found.reason == "Unschedulable"
    assert "kube-scheduler found no node for the pod" in found.sentence


def test_the_waiting_list_says_the_same() -> None:
    world = with_cameras(cameras(), FIRST)

    row = pod_row(world, pod_p(world), free_now(world))

    assert row is not None
    assert (row.reason, row.sentence) == ("NoDeviceFree", of_p(world).sentence)
    with_cameras(world)
    assert (found := pod_row(world, pod_p(world), free_now(world)))
    assert found.reason == "Fits"


def test_a_pod_whose_claim_is_missing_is_in_the_waiting_list() -> None:
    world = with_cameras(cameras(a_pod("q", queue="vision", claims=("later",))))
    pod = world.facts.pod_named("default", "q")
    assert pod is not None

    row = pod_row(world, pod, free_now(world))

    assert row is not None
    assert row.reason == "ClaimNotFound"


def test_pods_may_be_taken_to_several_nodes() -> None:
    world = cameras(a_claim("two"), a_pod("q", queue="vision", claims=("two",)))
    with_cameras(world, FIRST, SECOND)
    with_cameras(world, "onvif-cccccc", nodes=["m"])
    free = free_now(world)
    pods = [pod for name in "pq" if (pod := world.facts.pod_named("default", name))]

    assert free.take(pods) is None, "one on each node"
    assert free.take(pods[:1]) is None, "its claim was counted"


def test_a_claim_that_pods_share_is_taken_once() -> None:
    world = with_cameras(cameras(a_pod("q", queue="vision", claims=("own",))), FIRST, SECOND)
    pods = [pod for name in "pq" if (pod := world.facts.pod_named("default", name))]

    assert free_now(world).take(pods) is None


def test_a_claim_that_bears_taints_may_get_a_device_that_is_away() -> None:
    bears = a_request(tolerations=[{"key": "moorage.dev/offline", "operator": "Exists"}])
    world = with_cameras(cameras(a_claim("own", requests=[bears])), FIRST, nodes=[])

    assert of_p(world).reason == "Admitted"


def test_allocated_devices_of_a_pool_that_is_gone_take_none_that_is_there() -> None:
    """As those of a node that died."""
    gpu = their_class("gpu", f'device.driver == "{GPU}"')
    world = cameras(
        gpu,
        a_slice("s", ("", ""), driver=GPU, pool={"name": "n"}, nodeName="n"),
        an_allocated_claim(
            "used",
            requests=[a_request("gpu")],
            results=[a_result(driver=GPU, pool="dead", device="gpu-0")],
        ),
        a_claim("own", requests=[a_request("gpu")]),
    )

    assert of_p(world).reason == "Admitted"


def test_a_resource_that_device_plugins_may_offer_is_no_need_of_a_class() -> None:
    spec = {"extendedResourceName": "example.com/gpu"}
    gpu = their_class("gpu", f'device.driver == "{GPU}"', spec=spec)
    pod = a_pod("p", queue="vision", requests={"example.com/gpu": "1"})

    assert of_p(cameras(gpu, pod, a_queue("vision", gpu=(4, 4)))).reason == "Admitted"


def test_pods_that_are_taken_together_are_taken_whole_or_not_at_all() -> None:
    world = with_cameras(cameras(a_claim("two"), a_pod("q", queue="vision", claims=("two",))))
    other = world.facts.pod_named("default", "q")
    assert other is not None
    free = free_now(world)

    assert free.take([pod_p(world), other]) is not None
    assert free.take([pod_p(world)]) is None
    assert free.take([other]) is not None


@given(
    slots=st.lists(st.integers(1, 3), min_size=1, max_size=4),
    used=st.lists(st.integers(0, 3), min_size=4, max_size=4),
    asked=st.integers(1, 3),
    count=st.integers(1, 4),
)
def test_a_shortage_is_told_exactly_where_one_node_has_too_few(
    slots: list[int], used: list[int], asked: int, count: int
) -> None:
    """All cameras of one node: as many requests have room as a plain count of slots says."""
    request = a_request(slots=asked, count=count)
    world = a_world(a_queue(onvif=(99, 99)), a_claim("own", requests=[request]))
    put(world, a_pod("p", queue="vision", claims=("own",)))
    room = 0
    for number, capacity in enumerate(slots):
        name = f"onvif-{number:06}"
        with_cameras(world, name, capacity=capacity)
        taken = min(used[number], capacity)
        room += (capacity - taken) // asked
        result: Any = a_result(device=name, slots=taken)
        if taken:
            put(world, an_allocated_claim(f"c{number}", results=[result]))

    assert (of_p(world).reason == "NoDeviceFree") == (room < count)
