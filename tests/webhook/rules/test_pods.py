"""New pods that ask for accounted devices, and all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from driver.api import Problem
from scheduler_plugin.objects.api import InstanceView, NamespaceView, ResourceKey
from tests.scheduler_plugin.builders import (
    a_claim,
    a_class,
    a_pod_object,
    a_queue,
    a_request,
    their_class,
)
from tests.webhook.builders import LABEL_PATH, a_review, a_template, rule_context
from webhook.findings import NOTHING_FOUND, Findings
from webhook.rules.pods import FoundClaim, NewPod, judge_pod, new_pod
from webhook.rules.rule_context import OtherSchedulers, PodSettings, RuleContext

NAMESPACE = NamespaceView("default", {})
TEMPLATED = [{"name": "cam", "resourceClaimTemplateName": "cams"}]
KUBELET = {"username": "system:node:node-a", "groups": ["system:nodes", "system:authenticated"]}
EACH_RESOURCE = pytest.mark.parametrize(
    "resource",
    [
        "akri.sh/onvif",
        "akri.sh/usb",
        "akri.sh/usb-8a2b3c",
        "deviceclass.resource.kubernetes.io/onvif",
        "example.com/gpu",
    ],
)


def pod_of(body: Mapping[str, Any], context: RuleContext, **request: Any) -> NewPod:
    return new_pod(a_review("Pod", body, **request), context.settings)


def findings(
    body: Mapping[str, Any],
    claims: Sequence[FoundClaim] = (),
    context: RuleContext | None = None,
    **request: Any,
) -> Findings:
    context = context or rule_context(a_queue("vision"))
    return judge_pod(pod_of(body, context, **request), claims, NAMESPACE, context)


def a_body(*, scheduler: str = "moorage", spec: Any = None, **overrides: Any) -> dict[str, Any]:
    fields = {"schedulerName": scheduler, **(spec or {})}
    return a_pod_object(spec=fields, **overrides)


def accounting() -> RuleContext:
    """All ways in which a resource can be accounted."""
    gpu = a_class(
        "gpu",
        labels={"moorage.dev/accounted": "true"},
        spec={"extendedResourceName": "example.com/gpu"},
    )
    return rule_context(
        a_queue("vision"), gpu, "usb", InstanceView("usb-8a2b3c", ResourceKey("usb"))
    )


def paths(found: Findings) -> list[str]:
    return [problem.path for problem in found.problems]


def test_a_pod_of_the_right_scheduler_is_admitted() -> None:
    assert findings(a_body(queue="vision", claims=["cam"]), [a_claim("cam")]) == NOTHING_FOUND


def test_a_pod_without_devices_is_admitted_wherever_it_goes() -> None:
    body = a_body(scheduler="default-scheduler", node="node-a", queue="nobody")

    assert findings(body) == NOTHING_FOUND


def test_nobody_chooses_the_node_of_accounted_devices_beforehand() -> None:
    (problem,) = findings(a_body(node="node-a", claims=["cam"]), [a_claim("cam")]).problems

    assert problem == Problem(
        "spec.nodeName",
        "ResourceClaim default/cam: uses are charged to queues, so a scheduler must choose the"
        " node. Remove the field.",
    )


def test_another_scheduler_does_not_place_accounted_devices() -> None:
    body = a_body(scheduler="default-scheduler", claims=["cam"])

    (problem,) = findings(body, [a_claim("cam")]).problems

    assert problem == Problem(
        "spec.schedulerName",
        "ResourceClaim default/cam: uses are charged to queues, which scheduler"
        ' "default-scheduler" does not check. Use "moorage".',
    )


def test_other_schedulers_may_be_let_be_with_a_warning() -> None:
    context = rule_context(
        a_queue("vision"), pods=PodSettings(other_schedulers=OtherSchedulers.ALLOW)
    )
    body = a_body(scheduler="kai-scheduler", claims=["cam"])

    found = findings(body, [a_claim("cam")], context)

    assert found.problems == ()
    assert found.warnings == (
        "spec.schedulerName: ResourceClaim default/cam: uses are charged to queues, which"
        ' scheduler "kai-scheduler" does not check: the pod is charged only once it runs. Use'
        ' "moorage" to check before.',
    )


def test_but_not_whoever_chooses_the_node_beforehand_or_a_queue_that_is_not_there() -> None:
    context = rule_context(pods=PodSettings(other_schedulers=OtherSchedulers.ALLOW))
    body = a_body(scheduler="kai-scheduler", node="node-a", queue="nobody", claims=["cam"])

    found = findings(body, [a_claim("cam")], context)

    assert paths(found) == ["spec.nodeName", LABEL_PATH]
    assert len(found.warnings) == 1


def test_claims_that_will_be_made_of_a_template_count_already() -> None:
    body = a_body(scheduler="default-scheduler", resource_claims=TEMPLATED)

    (problem,) = findings(body, [a_template("cams")]).problems

    assert problem.message.startswith("ResourceClaimTemplate default/cams:")


@EACH_RESOURCE
@pytest.mark.parametrize("field", ["containers", "initContainers"])
@pytest.mark.parametrize("kind", ["limits", "requests"])
def test_resources_count_as_claims_do(resource: str, field: str, kind: str) -> None:
    container = {"name": "c", "resources": {kind: {resource: "1"}}}
    spec = {"containers": [{"name": "main"}], field: [container]}
    body = a_body(scheduler="default-scheduler", node="node-a", spec=spec)

    found = findings(body, context=accounting())

    assert paths(found) == ["spec.nodeName", "spec.schedulerName"]
    assert all(p.message.startswith(f"resource {resource}:") for p in found.problems)


@pytest.mark.parametrize(
    "resource",
    ["cpu", "example.com/nic", "akri.sh/unknown", "deviceclass.resource.kubernetes.io/nic"],
)
def test_other_resources_do_not(resource: str) -> None:
    body = a_body(scheduler="default-scheduler", node="node-a", requests={resource: "1"})

    assert findings(body, context=accounting()) == NOTHING_FOUND


def test_none_of_a_resource_is_no_use_of_it() -> None:
    body = a_body(scheduler="default-scheduler", requests={"akri.sh/onvif": "0"})

    assert findings(body) == NOTHING_FOUND


def test_claims_of_classes_that_nobody_counts_are_free() -> None:
    body = a_body(scheduler="default-scheduler", node="node-a", queue="nobody", claims=["nic"])

    assert findings(body, [a_claim("nic", requests=[a_request("nic")])]) == NOTHING_FOUND


def test_a_class_of_somebody_elses_that_selects_our_devices_is_accounted() -> None:
    context = rule_context(their_class("cams", 'device.driver == "moorage.dev"'))
    claim = a_claim("cam", requests=[a_request("cams")])

    found = findings(a_body(scheduler="other", claims=["cam"]), [claim], context)

    assert paths(found) == ["spec.schedulerName"]


def test_a_class_is_accounted_once_a_queue_lists_it() -> None:
    body = a_body(scheduler="default-scheduler", claims=["nic"])
    context = rule_context(a_queue("vision", nic=(1, 1)))

    found = findings(body, [a_claim("nic", requests=[a_request("nic")])], context)

    assert paths(found) == ["spec.schedulerName"]


def test_administrative_access_needs_no_queue() -> None:
    body = a_body(scheduler="default-scheduler", claims=["cam"])

    assert findings(body, [a_claim("cam", requests=[a_request(adminAccess=True)])]) == NOTHING_FOUND


def test_a_claim_that_does_not_exist_yet_is_admitted() -> None:
    body = a_body(scheduler="default-scheduler", node="node-a", claims=["later"])

    assert findings(body, [None]) == NOTHING_FOUND


def test_but_its_pod_names_no_queue_that_does_not_exist() -> None:
    found = findings(a_body(queue="nobody", claims=["later"]), [None])

    assert found.problems == (
        Problem(LABEL_PATH, 'Queue "nobody" does not exist. Create it, or name another queue.'),
    )


def test_the_queue_of_a_pod_must_admit_its_namespace() -> None:
    context = rule_context(a_queue("theirs", namespaceSelector={"matchLabels": {"team": "shop"}}))
    body = a_body(queue="theirs", requests={"akri.sh/onvif": "1"})

    assert paths(findings(body, context=context)) == [LABEL_PATH]


def test_label_at_create_is_about_claims_only() -> None:
    context = rule_context(a_queue("closed", claimSharing={"labelAtCreate": "Deny"}))

    assert findings(a_body(queue="closed", claims=["cam"]), [a_claim("cam")], context) == (
        NOTHING_FOUND
    )


def test_all_that_is_wrong_is_said_at_once() -> None:
    body = a_body(scheduler="volcano", node="node-a", queue="nobody", claims=["cam", "later"])

    found = findings(body, [a_claim("cam"), None])

    assert paths(found) == ["spec.nodeName", "spec.schedulerName", LABEL_PATH]


def test_a_static_pod_runs_anyway_and_is_warned_about() -> None:
    annotations = {"kubernetes.io/config.mirror": "hash"}
    body = a_body(
        scheduler="",
        node="node-a",
        queue="nobody",
        annotations=annotations,
        requests={"akri.sh/onvif": "1"},
    )

    found = findings(body, userInfo=KUBELET)

    assert found.problems == ()
    assert [warning.split(": ")[1] for warning in found.warnings] == [
        "spec.nodeName",
        "spec.schedulerName",
        LABEL_PATH,
    ]


def test_nobody_but_a_kubelet_mirrors_a_static_pod() -> None:
    annotations = {"kubernetes.io/config.mirror": "hash"}
    body = a_body(node="node-a", annotations=annotations, claims=["cam"])

    assert paths(findings(body, [a_claim("cam")])) == ["spec.nodeName"]


def test_a_name_that_is_generated_later_is_not_missed() -> None:
    body = a_body(scheduler="default-scheduler", resource_claims=TEMPLATED)
    body["metadata"] = {"generateName": "cam-"}

    pod = pod_of(body, rule_context(), namespace="default")

    assert (pod.view.namespace, pod.view.name) == ("default", "cam-")


def test_what_a_user_writes_into_the_status_hides_nothing() -> None:
    mapped = [{"containerName": "main", "resourceName": "akri.sh/onvif", "requestName": "r"}]
    status = {"extendedResourceClaimStatus": {"resourceClaimName": "x", "requestMappings": mapped}}
    body = a_body(node="node-a", requests={"akri.sh/onvif": "1"}, status=status)

    assert paths(findings(body)) == ["spec.nodeName"]
