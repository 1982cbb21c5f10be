"""What a look at a running Moorage finds, of a whole one and of each that lacks something."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

from scheduler_plugin.arguments import parse_settings
from scheduler_plugin.checking.findings import as_objects, as_text, findings_of, is_whole
from scheduler_plugin.checking.guards import CHOSEN, POLICIES
from scheduler_plugin.checking.setups import Level, Permission, Setup, Unread
from scheduler_plugin.checking.workloads import PERMISSIONS
from scheduler_plugin.extender.scheduler_configuration import scheduler_configuration
from scheduler_plugin.settings import CheckSettings
from tests.deploy.documents import CRDS, MANIFESTS, documents_in
from tests.scheduler_plugin.builders import (
    a_claim_object,
    a_class_object,
    a_request,
    a_result,
    a_slice_object,
)

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
SYSTEM = "moorage-system"
LABEL = "app.kubernetes.io/name"


def configuration() -> Any:
    settings = parse_settings(["check"], {})
    assert isinstance(settings, CheckSettings)
    return scheduler_configuration(settings.expected)


def definition(path: Any) -> Any:
    established = {"type": "Established", "status": "True"}
    return yaml.safe_load(path.read_text()) | {"status": {"conditions": [established]}}


def pod(name: str, component: str, image: str = "kube-scheduler:v1.36.3") -> Any:
    return {
        "metadata": {"name": name, "namespace": SYSTEM, "labels": {LABEL: component}},
        "spec": {"containers": [{"name": "kube-scheduler", "image": image}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def a_queue_of(*classes: str) -> Any:
    resources = [{"deviceClass": name, "quota": 1} for name in classes]
    return {
        "metadata": {"name": "vision"},
        "spec": {"namespaceSelector": {}, "resources": resources},
    }


def class_with(selector: str, name: str = "cams", **labels: str) -> Any:
    spec = {"selectors": [{"cel": {"expression": selector}}]}
    return a_class_object(name, spec=spec, labels=labels)


def policy(name: str, *drivers: str) -> Any:
    """With the variable that names drivers, as the chart renders it."""
    variable = {"name": "accountedDrivers", "expression": str(["moorage.dev", *drivers])}
    is_about_them = name == "moorage-allocations"
    return {"metadata": {"name": name}, "spec": {"variables": [variable] * is_about_them}}


def registration() -> Any:
    return {"metadata": {"name": "moorage"}, "webhooks": [{"clientConfig": {"caBundle": "QQ=="}}]}


PODS = (pod("moorage-scheduler-0", "moorage-scheduler-plugin"),)


def whole() -> Setup:
    policies = [*POLICIES, *CHOSEN]
    lease = {
        "holderIdentity": "moorage-scheduler-0_1",
        "leaseDurationSeconds": 15,
        "renewTime": "2026-05-01T11:59:58.000000Z",
    }
    ready = {"desiredNumberScheduled": 2, "numberReady": 2}
    return Setup(
        namespace=SYSTEM,
        git_version="v1.36.3",
        server_time=NOW,
        own_time=NOW,
        serves_dra=True,
        definitions=tuple(definition(path) for path in sorted(CRDS.glob("*.yaml"))),
        policies=tuple(policy(name) for name in policies),
        bindings=tuple(
            {
                "metadata": {"name": name},
                "spec": {"policyName": name, "validationActions": ["Deny"]},
            }
            for name in policies
        ),
        validating=(registration(),),
        mutating=(registration(),),
        endpoints=({"endpoints": [{"conditions": {"ready": True}}, {"conditions": {}}]},),
        lease_name=(SYSTEM, "moorage-scheduler"),
        lease={"spec": lease},
        scheduler_events=(),
        rival_leases=(),
        configuration=configuration(),
        configuration_source="ConfigMap moorage-scheduler",
        expected=configuration(),
        pods=PODS,
        daemon_sets=({"metadata": {"name": "moorage-driver-node"}, "status": ready},),
        queues=(a_queue_of("onvif"),),
        classes=(a_class_object(configuration="onvif"),),
        slices=(),
        claims=(),
        account=f"system:serviceaccount:{SYSTEM}:scheduler-plugin",
    )


def without(found: Any, name: str) -> Any:
    return tuple(body for body in found if body["metadata"]["name"] != name)


def changed(setup: Setup, path: str, value: Any) -> Setup:
    """With kube-scheduler's configuration changed at the path."""
    found = configuration()
    *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    inside = found
    for step in steps:
        inside = inside[step]
    inside[last] = value
    return replace(setup, configuration=found)


def bad(setup: Setup) -> list[tuple[Level, str]]:
    found = findings_of(setup)
    return [(f.level, f"{f.part}: {f.said}") for f in found if f.level is not Level.OK]


def test_of_a_whole_one_nothing_is_wrong_and_each_part_was_looked_at() -> None:
    found = findings_of(whole())

    assert bad(whole()) == []
    assert is_whole(found)
    parts = (
        "kubernetes definitions policies webhook permissions pods driver scheduler clocks queues"
        " entries classes drivers"
    )
    assert {finding.part for finding in found} == set(parts.split())


def older_definition() -> Any:
    """As the version before had it, without a field."""
    found = definition(CRDS / "queues.moorage.dev.yaml")
    (version,) = found["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    del spec["claimSharing"]["properties"]["labelAtCreate"]
    return found


NOT_SERVED = {"type": "Established", "status": "False", "message": "the name is taken"}
NOT_ACCEPTED = {"type": "Accepted", "status": "False", "message": "There is no parent all."}
WARNED = {"expressionWarnings": [{"fieldRef": "spec.validations[0]", "warning": "undefined field"}]}

BROKEN = {
    "an older cluster": (
        replace(
            whole(),
            git_version="v1.32.1",
            pods=(pod("moorage-scheduler-0", "moorage-scheduler-plugin", "r/s:v1.32.1@sha256:0"),),
        ),
        Level.ERROR,
        "kubernetes: v1.32.1 is older than 1.33",
    ),
    "no definition": (
        replace(whole(), definitions=without(whole().definitions, "queues.moorage.dev")),
        Level.ERROR,
        "definitions: The definition queues.moorage.dev does not exist.",
    ),
    "an older definition": (
        replace(
            whole(),
            definitions=(
                *without(whole().definitions, "queues.moorage.dev"),
                older_definition(),
            ),
        ),
        Level.ERROR,
        "it drops spec.claimSharing.labelAtCreate.",
    ),
    "a version that nobody understands": (
        replace(whole(), git_version="devel"),
        Level.WARNING,
        "kubernetes: The version 'devel' is not known.",
    ),
    "a definition that is not served": (
        replace(
            whole(),
            definitions=(
                *without(whole().definitions, "queues.moorage.dev"),
                definition(CRDS / "queues.moorage.dev.yaml")
                | {"status": {"conditions": [NOT_SERVED]}},
            ),
        ),
        Level.ERROR,
        "definitions: queues.moorage.dev is not served: the name is taken.",
    ),
    "a policy whose expression does not fit": (
        replace(
            whole(),
            policies=(
                *without(whole().policies, "moorage-pods"),
                {"metadata": {"name": "moorage-pods"}, "status": {"typeChecking": WARNED}},
            ),
        ),
        Level.WARNING,
        "policies: moorage-pods, spec.validations[0]: undefined field",
    ),
    "rights that may not be asked for": (
        replace(whole(), denied=Unread("403 Forbidden")),
        Level.WARNING,
        "permissions: Not checked: 403 Forbidden",
    ),
    "no driver": (
        replace(whole(), daemon_sets=()),
        Level.ERROR,
        "driver: There is no DaemonSet of the driver: no device is discovered.",
    ),
    "groups of PodGroups": (
        replace(whole(), serves_composite_groups=True),
        Level.WARNING,
        "kubernetes: CompositePodGroups are served, and not read",
    ),
    "a configuration that cannot be found": (
        replace(whole(), configuration=Unread("404", absent=True)),
        Level.WARNING,
        "scheduler: Not checked: 404",
    ),
    "a queue that is not accepted": (
        replace(
            whole(),
            queues=(
                {
                    "metadata": {"name": "vision"},
                    "spec": {"namespaceSelector": {}},
                    "status": {"conditions": [NOT_ACCEPTED]},
                },
            ),
        ),
        Level.WARNING,
        "queues: vision: There is no parent all.",
    ),
    "no policy": (
        replace(whole(), policies=without(whole().policies, "moorage-claims")),
        Level.ERROR,
        "policies: moorage-claims does not exist: a user who may edit a claim may write its owner.",
    ),
    "a policy that nothing binds": (
        replace(whole(), bindings=without(whole().bindings, "moorage-pods")),
        Level.ERROR,
        "policies: moorage-pods has no binding with Deny",
    ),
    "a policy that was left out": (
        replace(whole(), policies=without(whole().policies, "moorage-allocations")),
        Level.WARNING,
        "right only with accounting.otherSchedulers: Allow",
    ),
    "policies that may not be read": (
        replace(whole(), policies=Unread("403 Forbidden")),
        Level.WARNING,
        "policies: Not checked: 403 Forbidden",
    ),
    "no webhook": (
        replace(whole(), validating=()),
        Level.WARNING,
        "webhook: There is no validating registration moorage",
    ),
    "a webhook that nobody trusts": (
        replace(
            whole(),
            mutating=({"metadata": {"name": "moorage"}, "webhooks": [{"clientConfig": {}}]},),
        ),
        Level.ERROR,
        "webhook: The mutating registration moorage has no caBundle yet",
    ),
    "a webhook without replicas": (
        replace(whole(), endpoints=({"endpoints": [{"conditions": {"ready": False}}]},)),
        Level.ERROR,
        "webhook: No replica is ready",
    ),
    "one replica": (
        replace(whole(), endpoints=({"endpoints": [{"conditions": {"ready": True}}]},)),
        Level.WARNING,
        "webhook: Only one replica is ready",
    ),
    "a role of another version": (
        replace(whole(), denied=(Permission("patch", "moorage.dev", "queues"),)),
        Level.ERROR,
        "scheduler-plugin may not patch queues.moorage.dev.",
    ),
    "a pod that does not start": (
        replace(
            whole(),
            pods=(
                *PODS,
                pod("driver-0", "moorage-driver-node")
                | {"status": {"phase": "Pending", "conditions": []}},
            ),
        ),
        Level.ERROR,
        "pods: driver-0 is not ready: Pending.",
    ),
    "another namespace": (
        replace(whole(), namespace="elsewhere"),
        Level.ERROR,
        "pods: Namespace elsewhere has no pod of Moorage.",
    ),
    "a kube-scheduler that is too new": (
        replace(
            whole(),
            git_version="v1.35.2",
            pods=(pod("moorage-scheduler-0", "moorage-scheduler-plugin"),),
        ),
        Level.ERROR,
        "scheduler: kube-scheduler:v1.36.3 runs with an API server v1.35.2",
    ),
    "a node without its driver": (
        replace(
            whole(),
            daemon_sets=(
                {
                    "metadata": {"name": "moorage-driver-node"},
                    "status": {"desiredNumberScheduled": 2, "numberReady": 1},
                },
            ),
        ),
        Level.WARNING,
        "driver: moorage-driver-node is ready on 1 of 2 nodes.",
    ),
    "no Lease": (
        replace(whole(), lease=Unread("404", absent=True)),
        Level.ERROR,
        "scheduler: There is no Lease moorage-system/moorage-scheduler",
    ),
    "a Lease that ended": (
        replace(
            whole(), server_time=NOW + timedelta(minutes=1), own_time=NOW + timedelta(minutes=1)
        ),
        Level.ERROR,
        "scheduler: The Lease moorage-system/moorage-scheduler has no holder",
    ),
    "an extender that may be passed over": (
        changed(whole(), "extenders.0.ignorable", True),
        Level.ERROR,
        "extenders[0].ignorable: pods are bound uncharged while the plugin is down.",
    ),
    "an extender that does not bind": (
        changed(whole(), "extenders.0.bindVerb", ""),
        Level.ERROR,
        "extenders[0].bindVerb is ''; it must be 'bind'.",
    ),
    "no extender": (
        changed(whole(), "extenders", []),
        Level.ERROR,
        "extenders: none calls http://127.0.0.1:10261, so no pod is judged.",
    ),
    "no election": (
        changed(whole(), "leaderElection.leaderElect", False),
        Level.ERROR,
        "leaderElection.leaderElect is False; it must be True.",
    ),
    "another profile": (
        changed(whole(), "profiles", [{"schedulerName": "other"}]),
        Level.ERROR,
        "profiles: moorage is missing.",
    ),
    "a configuration that is none": (
        replace(whole(), configuration="text"),
        Level.ERROR,
        "ConfigMap moorage-scheduler is not a configuration of kube-scheduler.",
    ),
    "a host whose clock is behind": (
        replace(whole(), own_time=NOW - timedelta(seconds=90)),
        Level.WARNING,
        "clocks: The clocks of this host and API server differ by 90 s.",
    ),
    "a scheduler whose clock is ahead": (
        replace(
            whole(), server_time=NOW - timedelta(seconds=92), own_time=NOW - timedelta(seconds=92)
        ),
        Level.WARNING,
        "clocks: kube-scheduler's clock is 90 s ahead of the API server's.",
    ),
    "no queue": (
        replace(whole(), queues=()),
        Level.WARNING,
        "queues: There is no Queue, so no pod gets an accounted device.",
    ),
    "a queue that nobody may use": (
        replace(whole(), queues=({"metadata": {"name": "vision"}, "spec": {}},)),
        Level.WARNING,
        "queues: vision has no namespaceSelector: no namespace may use it.",
    ),
}


OURS = 'device.driver == "moorage.dev"'
CAMERAS = f'{OURS} && device.attributes["moorage.dev"].configuration == "onvif"'
HELD = a_claim_object(requests=[a_request("cams")], results=[a_result()])
SHOWN = a_slice_object("s", ("onvif", "onvif-aaaaaa"))


@pytest.mark.parametrize(
    ("selector", "claims", "which"),
    [
        (CAMERAS, (), "here onvif"),
        (OURS, (HELD,), "here onvif"),
        ("true", (HELD,), "here onvif"),
        (OURS, (), "which the selectors do not say"),
    ],
)
def test_queue_that_lists_a_class_of_our_devices_is_told_what_is_counted(
    selector: str, claims: tuple[Any, ...], which: str
) -> None:
    """What changes with the version that charges the device and not the class."""
    setup = replace(
        whole(),
        queues=(a_queue_of("cams"),),
        classes=(class_with(selector),),
        slices=(SHOWN,),
        claims=claims,
    )

    assert (
        Level.WARNING,
        "classes: Queue vision lists DeviceClass cams, which selects devices of Moorage: each"
        f" device is counted as its Configuration, {which}, and not as cams.",
    ) in bad(setup)


def test_class_of_an_instance_is_counted_as_the_configuration_too() -> None:
    of_one = a_class_object("onvif-8120fe", configuration="onvif")
    setup = replace(whole(), queues=(a_queue_of("onvif-8120fe"),), classes=(of_one,))

    ((_, said),) = bad(setup)
    assert "here onvif, and not as onvif-8120fe" in said


@pytest.mark.parametrize(
    "made",
    [
        class_with(CAMERAS, **{"moorage.dev/accounted": "false"}),
        class_with(CAMERAS, name="not-listed"),
    ],
)
def test_class_that_nobody_counts_is_none_of_its_business(made: Any) -> None:
    setup = replace(whole(), queues=(a_queue_of("cams"),), classes=(made,), claims=(HELD,))

    assert bad(setup) == []


OF_GPU = class_with('device.driver == "gpu.example.com"', "gpu")
HELD_GPU = a_claim_object(requests=[a_request("gpu")], results=[a_result(driver="gpu.example.com")])


@pytest.mark.parametrize(
    ("made", "claims", "said"),
    [
        (OF_GPU, (), "of driver gpu.example.com: "),
        (class_with("true", "gpu"), (HELD_GPU,), "of driver gpu.example.com: "),
        (class_with("true", "gpu"), (), "of a driver not known: "),
    ],
)
def test_driver_that_the_policy_passes_over_is_told(
    made: Any, claims: tuple[Any, ...], said: str
) -> None:
    setup = replace(whole(), queues=(a_queue_of("gpu"),), classes=(made,), claims=claims)

    ((level, sentence),) = bad(setup)
    assert level is Level.WARNING
    assert f'drivers: Queue vision: DeviceClass "gpu" is {said}' in sentence
    others = without(whole().policies, "moorage-allocations")
    told = replace(setup, policies=(*others, policy("moorage-allocations", "gpu.example.com")))
    assert bad(told) == [] or "not known" in said


def test_chart_and_check_write_and_read_the_drivers_alike() -> None:
    rendered = yaml.safe_load((MANIFESTS.parent / "policies" / "allocations.yaml").read_text())
    others = without(whole().policies, "moorage-allocations")
    setup = replace(
        whole(), queues=(a_queue_of("gpu"),), classes=(OF_GPU,), policies=(*others, rendered)
    )

    ((_, sentence),) = bad(setup)
    assert "Set accounting.drivers: [moorage.dev, gpu.example.com]." in sentence


def test_what_cannot_be_read_of_classes_is_told() -> None:
    setup = replace(whole(), claims=Unread("403 Forbidden"))

    assert (Level.WARNING, "classes: Not checked: 403 Forbidden") in bad(setup)


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_wrong_is_said_and_nothing_else(case: str) -> None:
    setup, level, said = BROKEN[case]

    ((found, sentence),) = bad(setup)

    assert found is level
    assert said in sentence
    assert is_whole(findings_of(setup)) == (level is Level.WARNING)


def test_a_pod_that_terminates_need_not_be_ready() -> None:
    """As after an upgrade, of which `helm test` is the next step."""
    old = pod("driver-0", "moorage-driver-node") | {"status": {"phase": "Running"}}
    old["metadata"]["deletionTimestamp"] = "2026-05-01T11:59:59Z"

    assert bad(replace(whole(), pods=(*PODS, old))) == []
    alone = bad(replace(whole(), pods=(old,)))
    assert alone == [(Level.ERROR, f"pods: Namespace {SYSTEM} has no pod of Moorage.")]


def test_a_pod_of_a_job_need_not_be_ready() -> None:
    """Such as the one that refused to uninstall, which Helm leaves."""
    once = pod("moorage-in-use-6gdj9", "moorage-scheduler-plugin") | {"status": {"phase": "Failed"}}
    once["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "moorage-in-use"}]

    assert bad(replace(whole(), pods=(*PODS, once))) == []


def test_times_and_connections_are_the_administrators() -> None:
    for path, value in (("clientConnection", {}), ("leaderElection.retryPeriod", "2s")):
        assert bad(changed(whole(), path, value)) == []


def test_a_parent_of_queues_needs_no_namespaces() -> None:
    child = {"metadata": {"name": "a"}, "spec": {"parent": "all", "namespaceSelector": {}}}
    setup = replace(whole(), queues=({"metadata": {"name": "all"}, "spec": {}}, child))

    assert bad(setup) == []


def test_it_is_told_to_people_and_to_programs() -> None:
    found = findings_of(replace(whole(), queues=()))

    lines = as_text(found).splitlines()
    assert lines[-2].split()[:2] == ["warning", "queues"]
    assert lines[-1].strip().startswith("-> docs/queues.md")
    assert as_objects(found)[-1]["part"] == "queues"


def test_the_chart_gives_the_plugin_what_is_asked_for_here() -> None:
    body = next(
        document
        for document in yaml.safe_load_all(
            (MANIFESTS / "scheduler-plugin-clusterrole.yaml").read_text()
        )
        if document["kind"] == "ClusterRole"
    )
    given = {
        Permission(verb, group, resource)
        for rule in body["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if resource != "podgroups"
    }
    assert given == set(PERMISSIONS)


def test_each_policy_that_is_installed_is_looked_for() -> None:
    folders = (MANIFESTS, MANIFESTS.parent / "policies")
    documents = (d for folder in folders for found in documents_in(folder).values() for d in found)
    names = {d["metadata"]["name"] for d in documents if d["kind"] == "ValidatingAdmissionPolicy"}

    assert names == POLICIES.keys() | CHOSEN.keys()
