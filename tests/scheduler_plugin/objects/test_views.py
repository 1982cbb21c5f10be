"""Objects of the API as views: what is read of them, and what is said of an odd one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from kube.shapes.quantities import whole
from kube.shapes.reading import UnreadableError
from kube.shapes.selection import Toleration
from scheduler_plugin.objects.amounts import (
    LARGEST,
    NO_CHARGES,
    UNLIMITED,
    Ceiling,
    ResourceKey,
    ceiling,
    charges,
    for_status,
    most_of,
    summed,
)
from scheduler_plugin.objects.claim_objects import claim_template_view, claim_view
from scheduler_plugin.objects.claims import ClaimConstraint, GroupConsumer
from scheduler_plugin.objects.devices.devices import InstanceView, instance_view
from scheduler_plugin.objects.names import QUEUE_LABEL, AccountingSettings, QueueName
from scheduler_plugin.objects.pod_objects import namespace_view, pod_group_view, pod_view
from scheduler_plugin.objects.pods import NamespaceView, PodClaim, PodGroupView, PodView
from tests.scheduler_plugin.builders import (
    SETTINGS,
    a_claim,
    a_claim_object,
    a_class,
    a_pod,
    a_pod_object,
    amounts,
    an_allocated_claim,
    pod_uid,
)


@pytest.mark.parametrize(
    ("quantity", "number"),
    [
        (3, 3), ("30", 30), ("0", 0), ("-0", 0), ("1500m", 2), ("1m", 1), ("1u", 1), ("1n", 1),
        ("2k", 2000), ("1Ki", 1024), ("1.5", 2), ("2.", 2), (".5", 1), ("1e3", 1000), ("1E2", 100),
        ("1E", 10**18), ("1Ei", 2**60), ("100e-2", 1), ("+4", 4), (2**80, 2**80),
        ("", None), ("x", None), ("1x", None), ("-2", None), (-1, None), (True, None),
        (1.0, None), (None, None), ("1e999", None), ("1 ", None), ([], None), ("9" * 99, None),
    ],
)  # fmt: skip
def test_quantity_is_the_whole_number_that_covers_it(quantity: object, number: int | None) -> None:
    assert whole(quantity) == number


def test_charges_have_no_zeros_and_one_order() -> None:
    key = ResourceKey

    assert charges({key("b"): 1, key("a"): 2, key("c"): 0}).items == (("a", 2), ("b", 1))
    assert charges({key("a"): 0}) is NO_CHARGES
    assert amounts(a=1).plus(amounts(a=2, b=1)) == amounts(a=3, b=1)
    assert NO_CHARGES.plus(amounts(a=1)) == amounts(a=1).plus(NO_CHARGES) == amounts(a=1)
    assert most_of([amounts(a=1, b=4), amounts(a=3)]) == amounts(a=3, b=4)
    assert summed([]) == NO_CHARGES
    assert (amounts(a=1)[key("a")], amounts(a=1)[key("b")]) == (1, 0)


def test_a_ceiling_of_none_allows_all_numbers() -> None:
    assert ceiling(-1) == UNLIMITED
    assert UNLIMITED.allows(10**30)
    assert [Ceiling(2).allows(n) for n in (2, 3)] == [True, False]
    assert (str(UNLIMITED), str(Ceiling(4))) == ("none", "4")
    assert (for_status(7), for_status(2**70)) == (7, LARGEST)


# Pods.


FROM_FIVE = AccountingSettings(non_preemptible_priority=5)
LABEL = "moorage.dev/preemptibility"


def containers(*requests: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"resources": {"requests": request}} for request in requests]


def sidecar(amount: int) -> dict[str, Any]:
    return {"restartPolicy": "Always", "resources": {"requests": {"akri.sh/x": amount}}}


def init(amount: int) -> dict[str, Any]:
    return {"resources": {"limits": {"akri.sh/x": str(amount)}}}


@pytest.mark.parametrize(
    ("inits", "mains", "effective"),
    [
        ([], [1, 2], 3),
        ([init(5)], [1, 2], 5),
        ([init(2), init(3)], [1], 3),
        ([sidecar(2)], [1, 2], 5),
        ([sidecar(2), init(4)], [1], 6),
        ([init(4), sidecar(2)], [1], 4),
        ([sidecar(1), init(1), sidecar(3), init(2)], [1], 6),
        ([sidecar(4)], [], 4),
        ([init(0)], [0], 0),
    ],
)
def test_effective_request_is_as_kubernetes_defines_it(
    inits: list[Any], mains: list[int], effective: int
) -> None:
    spec = {"initContainers": inits, "containers": containers(*[{"akri.sh/x": n} for n in mains])}

    expected = (("akri.sh/x", effective),) if effective else ()
    assert a_pod(spec=spec).requests == expected


def test_only_extended_resources_are_read() -> None:
    names = ["cpu", "memory", "hugepages-2Mi", "kubernetes.io/x", "node.kubernetes.io/x"]
    implicit = "deviceclass.resource.kubernetes.io/gpu"

    pod = a_pod(requests=dict.fromkeys([*names, "example.com/gpu", implicit], "1"))

    assert [name for name, _ in pod.requests] == [implicit, "example.com/gpu"]


def test_limits_and_requests_are_one_where_they_say_the_same() -> None:
    resources = {"limits": {"a.b/c": "2"}, "requests": {"a.b/c": "2"}}

    assert a_pod(spec={"containers": [{"resources": resources}]}).requests == (("a.b/c", 2),)


@pytest.mark.parametrize(
    ("pod", "answer"),
    [
        (a_pod(), False),
        (a_pod(spec={"priority": 99}), False),
        (a_pod(spec={"priority": 100}), True),
        (a_pod(settings=FROM_FIVE, spec={"priority": 5}), True),
        (a_pod(labels={LABEL: "non-preemptible"}), True),
        (a_pod(labels={LABEL: "preemptible"}, spec={"priority": 900}), False),
        (a_pod(labels={"kai.scheduler/preemptibility": "non-preemptible"}), True),
        (a_pod(labels={LABEL: "?"}, spec={"priority": 100}), True),
        (a_pod(labels={LABEL: "preemptible",
                       "kai.scheduler/preemptibility": "non-preemptible"}), False),
    ],
)  # fmt: skip
def test_preemptibility_is_the_labels_and_else_the_prioritys(pod: Any, answer: bool) -> None:
    assert pod.non_preemptible is answer


def test_annotation_of_the_queue_counts_on_bound_pods_only() -> None:
    annotations = {"moorage.dev/queue": "bound"}

    assert a_pod(queue="label", annotations=annotations).queue == "label"
    assert a_pod(queue="label", annotations=annotations, node="n").queue == "bound"
    assert a_pod(queue="label", node="n").queue == "label"


def test_claims_of_a_pod_are_in_the_order_of_its_spec() -> None:
    entries = [
        {"name": "made", "resourceClaimTemplateName": "t"},
        {"name": "named", "resourceClaimName": "shared"},
        {"name": "again", "resourceClaimName": "shared"},
        {"name": "to-come", "resourceClaimTemplateName": "t"},
        {"name": "needless", "resourceClaimTemplateName": "t"},
    ]
    statuses = [{"name": "made", "resourceClaimName": "a-made-x"}, {"name": "needless"}]

    pod = a_pod(resource_claims=entries, status={"resourceClaimStatuses": statuses})

    assert pod.claim_names == ("a-made-x", "shared")
    assert [entry.template for entry in pod.claims] == ["t", "", "", "t", "t"]
    assert pod.may_use_devices
    assert not a_pod().may_use_devices


@pytest.mark.parametrize(
    ("spec", "least"),
    [
        ({"minMember": 4}, 4),
        ({"minMember": 0}, None),
        ({"minMember": None}, None),
        ({}, None),
        ({"schedulingPolicy": {"gang": {"minCount": 3}}}, 3),
        ({"schedulingPolicy": {"basic": {}}}, 1),
    ],
)
def test_how_many_of_a_group_go_together(spec: dict[str, Any], least: int | None) -> None:
    """KAI's and coscheduling's number, and Kubernetes' own policy, which may be no gang."""
    metadata = {"namespace": "n", "name": "g"}

    found = pod_group_view({"metadata": metadata, "spec": spec}, SETTINGS)

    assert found.min_member == least


@pytest.mark.parametrize(
    ("pod", "group"),
    [
        (a_pod(annotations={"pod-group-name": "kai"}), "kai"),
        (a_pod(labels={"scheduling.x-k8s.io/pod-group": "co"}), "co"),
        (a_pod(spec={"schedulingGroup": {"podGroupName": "own"}}), "own"),
        (a_pod(spec={"schedulingGroup": {}}, annotations={"pod-group-name": "kai"}), "kai"),
        (a_pod(), ""),
    ],
)
def test_a_pods_group_is_named_in_three_ways(pod: PodView, group: str) -> None:
    assert pod.group == group


def test_queue_of_namespaces_and_groups() -> None:
    namespace = namespace_view({"metadata": {"name": "n", "labels": {"a": "b"}}})
    assert namespace == NamespaceView("n", {"a": "b"})
    metadata = {"namespace": "n", "name": "g", "labels": {QUEUE_LABEL: "of-label"}}

    by_spec = pod_group_view({"metadata": metadata, "spec": {"queue": "of-spec"}}, SETTINGS)
    by_label = pod_group_view({"metadata": metadata}, SETTINGS)

    assert by_spec == PodGroupView("n", "g", QueueName("of-spec"), min_member=None)
    assert by_label == PodGroupView("n", "g", QueueName("of-label"), min_member=None)


@pytest.mark.parametrize(
    ("given", "grace"),
    [
        ("30s", timedelta(seconds=30)),
        ("0s", timedelta()),
        ("-1s", timedelta.max),
        ("soon", timedelta.max),
        (7, timedelta.max),
        (None, None),
    ],
)
def test_what_cannot_be_a_groups_grace_lets_nobody_go(
    given: object, grace: timedelta | None
) -> None:
    spec = {"stalenessGracePeriod": given}
    group = pod_group_view({"metadata": {"name": "g"}, "spec": spec}, SETTINGS)
    assert group.stale_grace == grace


@pytest.mark.parametrize(
    ("mode", "goes_whole"),
    [
        (None, False),
        ("Pod", False),
        ("PodGroup", True),
        ({"single": {}}, False),
        ({"all": {}}, True),
        (["all"], False),
    ],
)
def test_whether_pods_of_a_group_are_disrupted_together(mode: object, goes_whole: bool) -> None:
    group = pod_group_view({"metadata": {"name": "g"}, "spec": {"disruptionMode": mode}}, SETTINGS)
    assert group.goes_whole is goes_whole


# Claims.


def test_claim_is_the_same_while_nothing_that_counts_has_changed() -> None:
    obj = a_claim_object(results=[])
    later = {**obj, "metadata": {**obj["metadata"], "resourceVersion": "2"}}

    assert claim_view(later, queue_label=QUEUE_LABEL) == a_claim(results=[])


def test_pods_and_podgroups_are_told_apart_and_other_consumers_are_only_counted() -> None:
    obj = a_claim_object(pods=["a", "b"])
    group = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "1"}
    others = [
        {**group, "apiGroup": "scheduling.run.ai", "uid": "2"},
        {"resource": "podgroups", "name": "g", "uid": "3"},
        {"apiGroup": "scheduling.k8s.io", "resource": "pods", "name": "g", "uid": "4"},
    ]
    obj["status"]["reservedFor"][1:1] = [group, *others]

    claim = claim_view(obj, queue_label=QUEUE_LABEL)

    assert claim.reserved_for == (pod_uid("a"), pod_uid("b"))
    assert claim.groups == (GroupConsumer("g", "1"),)
    assert (claim.other_consumers, claim.consumer_entries) == (3, 6)


@pytest.mark.parametrize(
    ("listed", "claims"),
    [
        ([{"name": "a", "resourceClaimName": "cam"}], {PodClaim("a", "cam")}),
        ([{"name": "a", "resourceClaimTemplateName": "t"}], {PodClaim("a", template="t")}),
        ([{"name": "a"}, {"name": "b", "resourceClaimName": ["x"]}, "odd", None], set()),
        ("odd", set()),
        (None, set()),
    ],
)
def test_which_claims_a_group_lists(listed: object, claims: set[PodClaim]) -> None:
    found = pod_group_view(
        {"metadata": {"name": "g"}, "spec": {"resourceClaims": listed}}, SETTINGS
    )

    assert found.claims == claims


def test_only_kubernetes_own_field_names_a_group_that_claims_may_be_reserved_for() -> None:
    own = a_pod("a", group="train", annotations={"pod-group-name": "kai"})
    others = a_pod("b", annotations={"pod-group-name": "kai"})

    assert (own.group, own.scheduling_group) == ("train", "train")
    assert (others.group, others.scheduling_group) == ("kai", "")


def test_own_annotations_of_claims() -> None:
    claim = a_claim(owner_pod="a", annotations={"moorage.dev/evict-foreign": "true"})

    assert (claim.owner_pod, claim.evict_foreign) == (pod_uid("a"), True)
    assert not a_claim(annotations={"moorage.dev/evict-foreign": "yes"}).evict_foreign


def test_what_a_claim_asks_of_devices_is_known_in_full() -> None:
    toleration = {"key": "gone", "operator": "Exists"}
    capacity = {"requests": {"slots": "2", "memory": "1Gi"}}
    obj = a_claim_object(
        requests=[
            {
                "name": "cam",
                "firstAvailable": [
                    {
                        "name": "fine",
                        "deviceClassName": "onvif",
                        "selectors": [{"cel": {"expression": "true"}}, {"other": {}}],
                        "tolerations": [toleration],
                        "capacity": capacity,
                    },
                    {"name": "any", "deviceClassName": "onvif"},
                ],
            }
        ]
    )
    constraints = [{"requests": ["cam"], "matchAttribute": "a.b/numa"}, {"distinctAttribute": "x"}]
    obj["spec"]["devices"]["constraints"] = constraints

    claim = claim_view(obj, queue_label=QUEUE_LABEL)
    template = claim_template_view(
        {"metadata": {"name": "t"}, "spec": {"spec": obj["spec"]}}, queue_label=QUEUE_LABEL
    )

    fine, plain = claim.requests[0].alternatives
    assert fine.selectors == ("true", None)
    assert fine.tolerations == (Toleration(**toleration),)
    assert (fine.names_slots, fine.odd_capacity) == (True, ("memory",))
    assert (plain.selectors, plain.tolerations, plain.odd_capacity) == ((), (), ())
    assert not plain.names_slots
    assert claim.constraints == (ClaimConstraint(("cam",), "a.b/numa"), ClaimConstraint((), ""))
    made = template.claim("pod", "entry")
    assert (made.requests, made.constraints) == (claim.requests, claim.constraints)
    assert made.requests[0].alternatives[0].selectors == fine.selectors


# Classes, slices, Instances.


@pytest.mark.parametrize(
    ("value", "most"), [("3", 3), ("0", None), ("-1", None), ("x", None), ("", None), ("٣", None)]
)
def test_most_pods_of_a_claim_is_a_number_or_no_rule(value: str, most: int | None) -> None:
    assert a_class(annotations={"moorage.dev/max-pods-per-claim": value}).max_pods == most


def test_instance_and_its_configuration() -> None:
    obj = {"metadata": {"name": "cam-1"}, "spec": {"configurationName": "cam"}}

    assert instance_view(obj) == InstanceView("cam-1", ResourceKey("cam"))


def test_slots_of_an_instance_are_held_by_nodes() -> None:
    usage = {"cam-1-0": "node-a", "cam-1-1": "", "cam-1-2": "C:cam-1:node-b", "cam-1-3": "node-a"}
    obj = {
        "metadata": {"name": "cam-1"},
        "spec": {"configurationName": "cam", "capacity": 4, "deviceUsage": usage},
    }

    assert instance_view(obj).held == (("node-a", 2), ("node-b", 1))


def test_an_instance_says_since_when_no_node_sees_it() -> None:
    marks = {"moorage.dev/offline-since": "2026-11-21T12:00:00+00:00"}
    obj = {"metadata": {"name": "cam-1", "annotations": marks}, "spec": {"nodes": []}}

    assert instance_view(obj).offline_since == "2026-11-21T12:00:00+00:00"


def test_a_result_says_which_device_it_is() -> None:
    claim = an_allocated_claim()

    assert claim.results
    assert (claim.results[0].pool, claim.results[0].device) == ("onvif", "onvif-aaaaaa")


def parse_pod(obj: Any) -> object:
    return pod_view(obj, SETTINGS)


def parse_claim(obj: Any) -> object:
    return claim_view(obj, queue_label=QUEUE_LABEL)


def parse_template(obj: Any) -> object:
    return claim_template_view(obj, queue_label=QUEUE_LABEL)


def changed(obj: Any, path: str, value: Any) -> Any:
    """The object with one field replaced; numbers in the path are places in lists."""
    first, _, rest = path.partition(".")
    key: Any = int(first) if first.isdigit() else first
    before = obj[key] if isinstance(obj, list) or key in obj else {}
    after = changed(before, rest, value) if rest else value
    copy = obj.copy()
    copy[key] = after
    return copy


SLICE = {"metadata": {"name": "s"}, "spec": {"driver": "moorage.dev", "devices": []}}


@pytest.mark.parametrize(
    ("parse", "obj", "path", "value", "said"),
    [
        (parse_pod, a_pod_object(), "metadata", [], "metadata"),
        (parse_pod, a_pod_object(), "metadata.uid", None, "metadata.uid"),
        (parse_pod, a_pod_object(), "metadata.name", 7, "metadata.name"),
        (parse_pod, a_pod_object(), "metadata.labels", {"a": 1}, "metadata.labels[...]"),
        (parse_pod, a_pod_object(), "spec.containers", {}, "spec.containers"),
        (parse_pod, a_pod_object(), "spec.containers.0", 1, "spec.containers[0]"),
        (parse_pod, a_pod_object(), "spec.priority", "high", "spec.priority"),
        (parse_pod, a_pod_object(), "spec.nodeName", 1, "spec.nodeName"),
        (parse_pod, a_pod_object(), "spec.containers.0.resources.requests", {"a.b/c": "x"},
         "spec.containers[0].resources.requests[a.b/c]"),
        (parse_claim, a_claim_object(), "spec.devices.requests.0.exactly.count", "1",
         "spec.devices.requests[0].exactly.count"),
        (parse_claim, a_claim_object(), "spec.devices.requests.0.exactly.adminAccess", 1,
         "spec.devices.requests[0].exactly.adminAccess"),
        (parse_claim, a_claim_object(), "spec.devices.requests.0.exactly.selectors", "true",
         "spec.devices.requests[0].exactly.selectors"),
        (parse_claim, a_claim_object(), "spec.devices.requests.0.exactly.selectors",
         [{"cel": {"expression": 1}}],
         "spec.devices.requests[0].exactly.selectors[0].cel.expression"),
        (parse_claim, a_claim_object(), "spec.devices.requests.0.exactly.tolerations", ["all"],
         "spec.devices.requests[0].exactly.tolerations[0]"),
        (parse_claim, a_claim_object(), "spec.devices.constraints", [{"matchAttribute": 1}],
         "spec.devices.constraints[0].matchAttribute"),
        (parse_claim, a_claim_object(), "spec.devices.constraints", [{"requests": "all"}],
         "spec.devices.constraints[0].requests"),
        (parse_claim, a_claim_object(), "status.allocation", "yes", "status.allocation"),
        (parse_claim, a_claim_object(), "status.reservedFor", [{}], "status.reservedFor[0]"),
        (parse_template, {"metadata": {"name": "t"}}, "spec.spec", 1, "spec.spec"),
    ],
)  # fmt: skip
def test_field_of_a_wrong_type_is_named(
    parse: Callable[[Any], object], obj: Any, path: str, value: Any, said: str
) -> None:
    with pytest.raises(UnreadableError) as raised:
        parse(changed(obj, path, value))

    assert raised.value.path == said
    assert str(raised.value).startswith(said)


@pytest.mark.parametrize("obj", [[], "pod", 7])
def test_what_is_no_object_at_all_is_unreadable(obj: Any) -> None:
    with pytest.raises(UnreadableError):
        parse_pod(obj)
