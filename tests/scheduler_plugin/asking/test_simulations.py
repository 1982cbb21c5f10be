"""What if: verdicts, charges and evictions about a cluster that is changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from scheduler_plugin.asking.shapes import pruned, shapes
from scheduler_plugin.asking.simulated_changes import Changes, NoChangeError
from scheduler_plugin.asking.simulations import Simulation, simulate
from scheduler_plugin.asking.snapshots import Snapshot, changed
from scheduler_plugin.asking.tables import objects, simulation_text
from scheduler_plugin.objects.names import AccountingSettings
from tests.scheduler_plugin.asking.test_snapshots import (
    a_configuration,
    a_device,
    a_slice_object,
    an_instance,
)
from tests.scheduler_plugin.builders import (
    a_claim_object,
    a_class_object,
    a_pod_object,
    a_queue_object,
    a_request,
    a_result,
)
from tests.scheduler_plugin.viewing.test_rows import shown

NOW = datetime(2026, 11, 22, tzinfo=UTC)
SHAPES = shapes("moorage.dev/queue")


def a_snapshot(**of: Sequence[Mapping[str, Any]]) -> Snapshot:
    """Robots uses the one camera that research may use; vision is guaranteed it."""
    base = Snapshot(taken_at="", settings=AccountingSettings(), objects={})
    found = {
        "namespaces": [{"metadata": {"name": "default"}}],
        "deviceclasses": [a_class_object("onvif", configuration="onvif")],
        "configurations": [a_configuration()],
        "resourceslices": [a_slice_object(a_device(), nodeName="n")],
        "instances": [an_instance()],
        "queues": [
            a_queue_object("research", onvif=(1, 1)),
            a_queue_object("vision", parent="research", onvif=(1, 1)),
            a_queue_object("robots", parent="research", onvif=(0, 1)),
        ],
        "resourceclaims": [a_claim_object("cam", queue="robots", results=[a_result()], pods=["a"])],
        "pods": [a_pod_object("a", queue="robots", claims=("cam",), node="n", phase="Running")],
        **of,
    }
    for kind, objs in found.items():
        base = changed(base, kind, *objs)
    return base


def with_kind(kind: str, obj: Mapping[str, Any]) -> dict[str, Any]:
    return {"kind": kind, **obj}


def a_template(name: str = "t") -> dict[str, Any]:
    spec = {"spec": {"devices": {"requests": [a_request()]}}}
    return {"kind": "ResourceClaimTemplate", "metadata": {"name": name}, "spec": spec}


def a_new_pod(name: str = "new", queue: str = "vision", **spec: Any) -> dict[str, Any]:
    entry = {"name": "cam", "resourceClaimTemplateName": "t"}
    found = a_pod_object(name, queue=queue, resource_claims=[entry], spec=spec)
    del found["metadata"]["uid"], found["metadata"]["namespace"], found["status"]
    return with_kind("Pod", found)


def simulated(snapshot: Snapshot, **changes: Any) -> Simulation:
    return simulate(snapshot, Changes(**changes), NOW)


def test_a_pod_within_its_quota_is_refused_and_who_would_go_for_it_is_told() -> None:
    found = simulated(a_snapshot(), objects=[a_template(), a_new_pod()])

    (pod,) = found.pods
    assert (pod.pod, pod.reason, pod.evicted) == ("default/new", "OverLimit", ("default/a",))
    assert "is within the share of onvif" in pod.sentence
    assert "evicted: default/a" in shown(*simulation_text(found))


def test_of_several_pods_each_counts_those_before_it() -> None:
    free = a_snapshot(pods=[], resourceclaims=[])

    found = simulated(free, objects=[a_template(), a_new_pod("one"), a_new_pod("two")])

    one, two = found.pods
    assert (one.reason, two.reason) == ("Admitted", "OverLimit")
    assert [(c.queue, c.device_class, c.added) for c in one.charged] == [("vision", "onvif", 1)]
    assert [(q.before and q.before.usage, q.after and q.after.usage) for q in found.queues] == [
        (0, 1),
        (0, 1),
    ]


def test_a_pod_that_finds_no_free_device_is_not_said_to_be_admitted() -> None:
    queues = [a_queue_object("vision", onvif=(1, 4)), a_queue_object("robots", onvif=(0, 4))]
    pods = [a_template(), a_new_pod("one"), a_new_pod("two")]

    one_slot = [an_instance(capacity=1)]
    taken = simulated(a_snapshot(queues=queues, instances=one_slot), objects=pods).pods
    free = a_snapshot(queues=queues, pods=[], resourceclaims=[], instances=one_slot)
    one, two = simulated(free, objects=pods).pods

    assert [(pod.reason, pod.charged) for pod in taken] == [("NoDeviceFree", ())] * 2
    assert "1 exists, 1 is in use" in taken[0].sentence
    assert (one.reason, two.reason) == ("Admitted", "NoDeviceFree")


def test_a_device_that_goes_leaves_pods_that_wait_without_one() -> None:
    queues = [a_queue_object("vision", onvif=(1, 4)), a_queue_object("robots", onvif=(0, 4))]
    waiting = a_pod_object("b", queue="vision", claims=("more",))
    free = a_snapshot(queues=queues, pods=[waiting], resourceclaims=[a_claim_object("more")])

    (change,) = simulated(free, without_devices=["onvif-aaaaaa"]).waiting

    assert (change.before, change.after) == ("Admitted", "NoDeviceFree")
    assert "There is no device of DeviceClass" in change.sentence


def test_a_pod_that_joins_a_shared_claim_costs_nothing() -> None:
    joins = with_kind("Pod", a_pod_object("new", queue="vision", claims=("cam",)))

    (pod,) = simulated(a_snapshot(), objects=[joins]).pods

    assert (pod.reason, pod.charged) == ("Admitted", ())


def test_a_pod_without_devices_is_nobodys_business() -> None:
    plain = with_kind("Pod", a_pod_object("new", spec={"schedulerName": "default-scheduler"}))

    (pod,) = simulated(a_snapshot(), objects=[plain]).pods

    assert (pod.reason, "requests no accounted device" in pod.sentence) == ("Admitted", True)


def test_a_priority_class_says_whether_a_pod_is_preemptible() -> None:
    classes = [{"metadata": {"name": "high"}, "value": 1000}]
    free = a_snapshot(pods=[], resourceclaims=[], priorityclasses=classes)
    high = a_new_pod(queue="robots", priorityClassName="high")

    (pod,) = simulated(free, objects=[a_template(), high]).pods

    assert pod.reason == "NonPreemptibleOverQuota"
    with pytest.raises(NoChangeError, match="'low' is unknown"):
        simulated(free, objects=[a_template(), a_new_pod(priorityClassName="low")])


def waiting_snapshot() -> Snapshot:
    waiting = a_pod_object("b", queue="robots", claims=("more",))
    snapshot = changed(a_snapshot(), "pods", waiting)
    return changed(snapshot, "resourceclaims", a_claim_object("more"))


GPU = "gpu.example.com"
MEMORY: dict[str, Any] = {"name": "memory", "driver": GPU, "measure": {"capacity": "memory"}}


def a_snapshot_of_gpus() -> Snapshot:
    """A claim of vision has 30Gi of a GPU that claims divide."""
    device = {
        "name": "gpu",
        "capacity": {"memory": {"value": "80Gi"}},
        "allowMultipleAllocations": True,
    }
    spec = {"driver": GPU, "pool": {"name": "a"}, "nodeName": "n", "devices": [device]}
    used: dict[str, Any] = {"consumedCapacity": {"memory": "30Gi"}, "shareID": "s"}
    result = a_result(driver=GPU, pool="a", device="gpu", **used)
    claim = a_claim_object(
        "half", requests=[a_request("gpu")], results=[result], queue="vision", pods=["a"]
    )
    selector = {"cel": {"expression": f"device.driver == '{GPU}'"}}
    return a_snapshot(
        deviceclasses=[a_class_object("gpu", spec={"selectors": [selector]})],
        resourceslices=[
            pruned({"metadata": {"name": "g"}, "spec": spec}, SHAPES["resourceslices"])
        ],
        queues=[a_queue_object("vision", resources=[{**MEMORY, "limit": "80Gi"}])],
        resourceclaims=[claim],
        pods=[a_pod_object("a", queue="vision", claims=("half",), node="n", phase="Running")],
    )


def test_changes_of_quantities_are_shown_as_quantities() -> None:
    changed_queue = a_queue_object(
        "vision", resources=[{**MEMORY, "quota": "10Gi", "limit": "20Gi"}]
    )

    found = simulated(a_snapshot_of_gpus(), queues=[with_kind("Queue", changed_queue)])

    text = shown(*simulation_text(found))
    for said in ("30Gi", "0 -> 10Gi", "80Gi -> 20Gi", "Usage is 10Gi above the limit"):
        assert said in text
    (change,) = objects([found])[0]["queues"]
    assert (change["after"]["device_class"], change["after"]["limit"]) == ("memory", "20Gi")


def test_what_a_pod_would_be_charged_is_at_most_what_it_asks_for() -> None:
    """A snapshot keeps that claims may divide the device."""
    capacity: dict[str, Any] = {"capacity": {"requests": {"memory": "20Gi"}}}
    template = a_template()
    template["spec"]["spec"]["devices"]["requests"] = [a_request("gpu", **capacity)]

    pods = [a_new_pod("one"), a_new_pod("two"), a_new_pod("three")]
    found = simulated(a_snapshot_of_gpus(), objects=[template, *pods])

    assert "charged to vision: 20Gi memory, for" in shown(*simulation_text(found))
    one, two, three = objects([found])[0]["pods"]
    (charged,) = one["charged"]
    assert (charged["device_class"], charged["added"]) == ("memory", "20Gi")
    assert [pod["reason"] for pod in (one, two, three)] == ["Admitted", "Admitted", "OverLimit"]


def test_a_queue_that_gives_a_name_a_second_meaning_is_refused_as_by_the_webhook() -> None:
    other = {**MEMORY, "measure": {"capacity": "vram"}}
    child = a_queue_object("child", parent="vision", resources=[other])

    with pytest.raises(NoChangeError, match='Entry "memory" counts capacity vram'):
        simulated(a_snapshot_of_gpus(), queues=[with_kind("Queue", child)])
    bad = a_queue_object("vision", resources=[{**MEMORY, "limit": "much"}])
    with pytest.raises(NoChangeError, match=r"spec.resources\[0\].limit: Must be a quantity"):
        simulated(a_snapshot_of_gpus(), queues=[with_kind("Queue", bad)])


def test_a_queues_change_tells_which_waiting_pods_it_lets_go() -> None:
    queues = [
        a_queue_object("research", onvif=(2, 2)),
        a_queue_object("robots", parent="research", onvif=(0, 2)),
    ]

    found = simulated(waiting_snapshot(), queues=queues)

    (change,) = found.waiting
    assert (change.pod, change.before, change.after) == ("default/b", "OverLimit", "Admitted")
    rows = {q.after.queue: q for q in found.queues if q.after}
    assert set(rows) == {"research", "robots"}
    assert "1 -> 2" in shown(*simulation_text(found))


def test_a_limit_below_the_usage_is_told_and_evicts_nobody() -> None:
    found = simulated(
        a_snapshot(), queues=[a_queue_object("robots", parent="research", onvif=(0, 0))]
    )

    (change,) = found.queues
    assert "Usage is 1 above the limit" in change.problem


def test_a_quota_that_is_raised_tells_who_would_be_evicted() -> None:
    waiting = a_pod_object("b", queue="vision", claims=("more",))
    snapshot = changed(a_snapshot(), "pods", waiting)
    snapshot = changed(snapshot, "resourceclaims", a_claim_object("more"))
    lowered = changed(snapshot, "queues", a_queue_object("vision", parent="research", onvif=(0, 1)))

    found = simulated(lowered, queues=[a_queue_object("vision", parent="research", onvif=(1, 1))])

    (change,) = found.waiting
    assert (change.before, change.after, change.evicted) == (
        "OverLimit",
        "OverLimit",
        ("default/a",),
    )


@pytest.mark.parametrize("name", ["onvif-aaaaaa"])
@pytest.mark.parametrize(
    ("effect", "part"),
    [("NoSchedule", "stay allocated and charged"), ("NoExecute", "NoExecute evicts")],
)
def test_a_device_that_is_gone_tells_who_has_it(name: str, effect: str, part: str) -> None:
    configuration = a_configuration()
    configuration["spec"]["offlineTaintEffect"] = effect
    found = simulated(a_snapshot(configurations=[configuration]), without_devices=[name])

    (lost,) = found.devices
    assert "ResourceClaim default/cam" in lost.sentence
    assert part in lost.sentence
    assert objects((found,))[0]["devices"][0]["device"]["name"] == "onvif-aaaaaa"


def test_a_device_that_nobody_uses_and_one_that_is_held_by_a_node() -> None:
    free = simulated(a_snapshot(pods=[], resourceclaims=[]), without_devices=["onvif-aaaaaa"])
    held = a_snapshot(resourceslices=[], instances=[an_instance(deviceUsage={"x": "n"})])

    assert "No pod uses the device. It has 1 free slot." in free.devices[0].sentence
    (lost,) = simulated(held, without_devices=["onvif-aaaaaa"]).devices
    assert "Pods of Node n hold its slots" in lost.sentence


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"without_devices": ["nothing"]}, "there is no device or Instance nothing"),
        ({"objects": [{"kind": "Secret", "metadata": {"name": "x"}}]}, "'Secret'"),
        ({"objects": [{"kind": "Pod", "metadata": {}}]}, "with metadata.name"),
        ({"queues": [{"kind": "Pod"}]}, "kind: must be Queue"),
        ({"queues": [with_kind("Queue", a_queue_object("x", onvif=(3, 1)))]}, "limit"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(NoChangeError, match=sentence):
        simulated(a_snapshot(), **changes)


def test_nothing_differs_where_nothing_is_different() -> None:
    snapshot = a_snapshot()
    found = simulated(snapshot, queues=[with_kind("Queue", obj) for obj in snapshot.of("queues")])

    assert found == replace(found, pods=(), waiting=(), queues=(), devices=())
    assert shown(*simulation_text(found)) == "Nothing would change.\n"
