"""What new pods of namespaces that opted in are given."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from scheduler_plugin.objects.api import InstanceView, NamespaceView, ResourceKey
from tests.scheduler_plugin.builders import a_claim, a_class, a_pod_object, a_queue, a_request
from tests.webhook import test_reviews
from tests.webhook.builders import QUEUE_LABEL, a_review, a_template, rule_context
from webhook.reviews import Edit, edited
from webhook.rules import mutations
from webhook.rules.pods import FoundClaim, judge_pod, new_pod
from webhook.rules.rule_context import Hold, OtherSchedulers, PodSettings, RuleContext

GATE = "moorage.dev/quota"
NAMESPACE = NamespaceView("default", {QUEUE_LABEL: "vision"})
UNLABELLED = NamespaceView("default", {})
DEFAULT = "default-scheduler"
KUBELET = {"username": "system:node:node-a", "groups": ["system:nodes"]}
GPU = a_class(
    "gpu",
    labels={"moorage.dev/accounted": "true"},
    spec={"extendedResourceName": "example.com/gpu"},
)
NIC = a_class("nic", spec={"extendedResourceName": "example.com/nic"})
FREE = a_class("free", labels={"moorage.dev/accounted": "false"})
CLAIMS: Mapping[str, FoundClaim] = {
    "cam": a_claim("cam"),
    "cams": a_template("cams"),
    "nic": a_claim("nic", requests=[a_request("nic")]),
    "unheard-of": a_claim("unheard-of", requests=[a_request("unheard-of")]),
    "later": None,
}


def known(pods: PodSettings | None = None) -> RuleContext:
    picky = a_queue("picky", namespaceSelector={"matchLabels": {"team": "lab"}})
    instance = InstanceView("usb-8a2b3c", ResourceKey("usb"))
    freed = InstanceView("free-8a2b3c", ResourceKey("free"))
    objects = (a_queue("vision"), picky, GPU, NIC, FREE, "usb", instance, "free", freed)
    return rule_context(*objects, pods=pods or PodSettings())


def a_body(*claims: str, scheduler: str = DEFAULT, **overrides: Any) -> dict[str, Any]:
    """A pod of the default scheduler that uses the claims."""
    spec = {"schedulerName": scheduler, **overrides.pop("spec", {})}
    entries = [
        {"name": name, f"resourceClaim{'Template' if name == 'cams' else ''}Name": name}
        for name in claims
    ]
    return a_pod_object(resource_claims=entries, spec=spec, **overrides)


def edits(
    body: Mapping[str, Any],
    context: RuleContext | None = None,
    namespace: NamespaceView = UNLABELLED,
    **request: Any,
) -> tuple[Edit, ...]:
    context = context or known()
    review = a_review("Pod", body, **request)
    pod = new_pod(review, context.settings)
    if not mutations.is_ours(pod, context):
        return ()
    claims = [CLAIMS[entry.template or entry.claim] for entry in pod.view.claims]
    return tuple(mutations.edits(review, pod, claims, namespace, context))


def mutated(body: Mapping[str, Any], *args: Any, **options: Any) -> dict[str, Any]:
    """The pod as the API server has it after the answer."""
    review = a_review("Pod", body)
    response = test_reviews.decoded(edited(review, edits(body, *args, **options)))
    assert (response["uid"], response["allowed"]) == (review.uid, True)
    result = deepcopy(dict(body))
    assert ("patch" in response) == (response.get("patchType") == "JSONPatch")
    for operation in json.loads(b64decode(response.get("patch", "W10="))):
        assert operation["op"] == "add"
        _, parent, field = operation["path"].split("/")
        result[parent][field] = operation["value"]
    return result


def paths(found: Sequence[Edit]) -> list[str]:
    return [edit.path for edit in found]


def test_a_pod_with_an_accounted_claim_gets_all_that_it_lacks() -> None:
    found = mutated(a_body("cam", labels={"app": "x"}), namespace=NAMESPACE)

    assert found["spec"]["schedulerName"] == "moorage"
    assert found["spec"]["schedulingGates"] == [{"name": GATE}]
    assert found["metadata"]["labels"] == {"app": "x", QUEUE_LABEL: "vision"}


@pytest.mark.parametrize("scheduler", ["", DEFAULT])
def test_nobody_has_to_say_which_scheduler(scheduler: str) -> None:
    body = a_body("cam", scheduler=scheduler)

    assert edits(body)[0] == Edit("spec.schedulerName", "moorage")


def test_a_pod_of_another_scheduler_is_left_alone() -> None:
    assert edits(a_body("cam", scheduler="volcano"), namespace=NAMESPACE) == ()


def test_a_pod_of_ours_keeps_its_scheduler() -> None:
    context = known(PodSettings(scheduler_names=("moorage", "moorage-2", DEFAULT)))

    for scheduler in ("moorage", "moorage-2", DEFAULT):
        assert paths(edits(a_body("cam", scheduler=scheduler), context)) == ["spec.schedulingGates"]


def test_the_first_of_several_schedulers_is_given() -> None:
    context = known(PodSettings(scheduler_names=("zeta", "alpha")))

    assert edits(a_body("cam"), context)[0] == Edit("spec.schedulerName", "zeta")


def test_other_gates_stay() -> None:
    body = a_body("cam", spec={"schedulingGates": [{"name": "example.com/other"}]})

    names = [gate["name"] for gate in mutated(body)["spec"]["schedulingGates"]]

    assert names == ["example.com/other", GATE]


def test_where_pods_are_tried_again_there_is_no_gate() -> None:
    found = edits(a_body("cam"), known(PodSettings(hold=Hold.RETRY)), NAMESPACE)

    assert paths(found) == ["spec.schedulerName", "metadata.labels"]


def test_a_pod_whose_node_is_chosen_is_left_alone() -> None:
    assert edits(a_body("cam", node="node-a"), namespace=NAMESPACE) == ()


def test_so_is_the_mirror_of_a_static_pod() -> None:
    body = a_body(
        requests={"akri.sh/onvif": "1"}, annotations={"kubernetes.io/config.mirror": "hash"}
    )

    assert edits(body, namespace=NAMESPACE, userInfo=KUBELET) == ()


@pytest.mark.parametrize("own", ["robots", ""])
def test_a_label_of_its_own_stays(own: str) -> None:
    body = a_body("cam", labels={QUEUE_LABEL: own})

    assert "metadata.labels" not in paths(edits(body, namespace=NAMESPACE))


def test_a_pod_with_a_group_keeps_the_queue_of_its_group() -> None:
    body = a_body("cam", annotations={"pod-group-name": "train"})

    assert paths(edits(body, namespace=NAMESPACE)) == ["spec.schedulerName", "spec.schedulingGates"]


@pytest.mark.parametrize("queue", ["", "nobody", "picky"])
def test_no_pod_is_given_a_queue_that_it_would_be_refused_for(queue: str) -> None:
    namespace = NamespaceView("default", {QUEUE_LABEL: queue})

    assert "metadata.labels" not in paths(edits(a_body("cam"), namespace=namespace))


def test_the_key_of_the_label_is_a_setting() -> None:
    key = "kai.scheduler/queue"
    context = rule_context(a_queue("vision"), queue_label=key)
    namespace = NamespaceView("default", {key: "vision", QUEUE_LABEL: "other"})

    assert edits(a_body("cam"), context, namespace)[-1] == Edit("metadata.labels", {key: "vision"})


@pytest.mark.parametrize("claim", ["cam", "cams", "later", "unheard-of"])
def test_claims_that_are_or_may_be_accounted_count(claim: str) -> None:
    assert edits(a_body(claim))


def test_claims_of_classes_that_nobody_counts_do_not() -> None:
    assert edits(a_body("nic"), namespace=NAMESPACE) == ()


@pytest.mark.parametrize(
    "resource",
    [
        "akri.sh/onvif",
        "akri.sh/usb",
        "akri.sh/usb-8a2b3c",
        "akri.sh/unheard-of",
        "deviceclass.resource.kubernetes.io/gpu",
        "deviceclass.resource.kubernetes.io/unheard-of",
        "example.com/gpu",
    ],
)
def test_resources_that_are_or_may_be_accounted_count(resource: str) -> None:
    assert edits(a_body(requests={resource: "1"}))


@pytest.mark.parametrize(
    "resource",
    [
        "cpu",
        "akri.sh/free",
        "akri.sh/free-8a2b3c",
        "deviceclass.resource.kubernetes.io/nic",
        "deviceclass.resource.kubernetes.io/free",
        "example.com/nic",
        "example.com/unheard-of",
    ],
)
def test_other_resources_do_not(resource: str) -> None:
    assert edits(a_body(requests={resource: "1"}), namespace=NAMESPACE) == ()


bodies = st.builds(
    a_body,
    st.sampled_from(sorted(CLAIMS)),
    st.sampled_from(sorted(CLAIMS)),
    scheduler=st.sampled_from(["", DEFAULT, "moorage", "volcano"]),
    node=st.sampled_from(["", "", "node-a"]),
    labels=st.sampled_from([{}, {"app": "x"}, {QUEUE_LABEL: "nobody"}, {QUEUE_LABEL: ""}]),
    annotations=st.sampled_from([{}, {"pod-group-name": "train"}]),
    requests=st.sampled_from([{}, {"akri.sh/onvif": "1"}, {"example.com/nic": "1"}]),
    spec=st.sampled_from([{}, {"schedulingGates": [{"name": GATE}]}, {"schedulingGates": None}]),
)
pod_settings = st.builds(
    PodSettings,
    scheduler_names=st.sampled_from([("moorage",), ("moorage", DEFAULT), (DEFAULT,)]),
    hold=st.sampled_from(Hold),
    other_schedulers=st.sampled_from(OtherSchedulers),
)


@settings(max_examples=60, phases=[Phase.generate])
@given(
    body=bodies,
    pods=pod_settings,
    queue=st.sampled_from([None, "", "vision", "picky", "nobody"]),
)
def test_twice_is_once_and_nothing_gets_worse(
    body: dict[str, Any], pods: PodSettings, queue: str | None
) -> None:
    context = known(pods)
    namespace = NamespaceView("default", {} if queue is None else {QUEUE_LABEL: queue})

    after = mutated(body, context, namespace)

    assert edits(after, context, namespace) == ()
    assert _without_what_it_may_change(after) == _without_what_it_may_change(body)
    assert _problems(after, namespace, context) <= _problems(body, namespace, context)


def _without_what_it_may_change(body: Mapping[str, Any]) -> dict[str, Any]:
    rest = deepcopy(dict(body))
    for parent, field in (
        ("spec", "schedulerName"),
        ("spec", "schedulingGates"),
        ("metadata", "labels"),
    ):
        rest[parent].pop(field, None)
    return rest


def _problems(
    body: Mapping[str, Any], namespace: NamespaceView, context: RuleContext
) -> set[object]:
    pod = new_pod(a_review("Pod", body), context.settings)
    claims = [CLAIMS[entry.template or entry.claim] for entry in pod.view.claims]
    return {problem.path for problem in judge_pod(pod, claims, namespace, context).problems}
