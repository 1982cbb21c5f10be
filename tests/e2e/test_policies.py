"""Who may write what about queues, on the real API server, and what a Queue may say.

Everybody here may do everything as far as RBAC goes, so that only the policies refuse. A refusal
is compared with its sentence: a request that failed for another reason proves nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml

from kube.calls.api import ApiClient, PermanentError, WriteOptions, connect
from kube.kinds import PODS, QUEUES
from kube.objects import JsonObject
from kube.resources import ObjectPath, Resource
from local_cluster.api import Cluster
from tests.deploy.documents import CRDS, DEPLOY

POLICIES = DEPLOY / "policies"
NAMESPACE = "policies"
BINDER = "system:serviceaccount:moorage-system:scheduler-plugin"

QUEUE = "moorage.dev/queue"
OWNER_POD = "moorage.dev/owner-pod"
OWNER_LEFT_AT = "moorage.dev/owner-left-at"
CHARGED = "moorage.dev/charged"
PREEMPTIBILITY = ("moorage.dev/preemptibility", "kai.scheduler/preemptibility")
POD_LABELS = (QUEUE, *PREEMPTIBILITY)
GATE = "moorage.dev/quota"
CONDITION = "moorage.dev/Admitted"
OWN_CONDITIONS = ", ".join(
    f"moorage.dev/{name}"
    for name in ("Admitted", "PodGroupStale", "ReclaimMissed", "Reclaiming", "SelectorsTooSlow")
)

VERSIONS = ("v1", "v1beta2", "v1beta1")
CLAIMS = {version: Resource("resource.k8s.io", version, "resourceclaims") for version in VERSIONS}
BINDINGS = Resource("", "v1", "bindings")
POD_GROUPS = Resource("scheduling.run.ai", "v2alpha2", "podgroups")

EACH_VERSION = pytest.mark.parametrize("version", VERSIONS)
Metadata = Mapping[str, str | None]

POD_GROUP_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "podgroups.scheduling.run.ai"},
    "spec": {
        "group": "scheduling.run.ai",
        "scope": "Namespaced",
        "names": {"kind": "PodGroup", "plural": "podgroups"},
        "versions": [
            {
                "name": "v2alpha2",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


class Way(StrEnum):
    """How an object is changed; each takes another road through the API server."""

    REPLACE = "replace"
    MERGE_PATCH = "merge patch"
    JSON_PATCH = "JSON patch"
    APPLY = "server-side apply"


EACH_WAY = pytest.mark.parametrize("way", Way)


def new_name(kind: str) -> str:
    return f"{kind}-{uuid4().hex[:8]}"


def metadata(kind: str, **fields: Any) -> dict[str, Any]:
    return {"name": new_name(kind), "namespace": NAMESPACE, **fields}


def a_claim(**fields: Any) -> dict[str, Any]:
    return {"metadata": metadata("claim", **fields), "spec": {"devices": {}}}


def a_template(**fields: Any) -> dict[str, Any]:
    spec = {"metadata": fields, "spec": {"devices": {}}}
    return {"metadata": metadata("template"), "spec": spec}


def a_pod(*gates: str, **fields: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "containers": [{"name": "main", "image": "none"}],
        "automountServiceAccountToken": False,
    }
    if gates:
        spec["schedulingGates"] = [{"name": gate} for gate in gates]
    return {"metadata": metadata("pod", **fields), "spec": spec}


def a_pod_group(**fields: Any) -> dict[str, Any]:
    spec = {"queue": "a", "minMember": 1}
    named = {"apiVersion": POD_GROUPS.api_version, "kind": "PodGroup"}
    return {**named, "metadata": metadata("group", **fields), "spec": spec}


def a_binding(pod: JsonObject, **fields: Any) -> dict[str, Any]:
    name = {"name": pod["metadata"]["name"], "namespace": NAMESPACE}
    target = {"apiVersion": "v1", "kind": "Node", "name": "node-a"}
    return {"metadata": {**name, **fields}, "target": target}


def a_queue(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "moorage.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": new_name("queue")},
        "spec": spec,
    }


async def refusal(call: Awaitable[object]) -> str:
    """What the API server said; empty if it did what it was asked."""
    try:
        await call
    except PermanentError as error:
        return error.message
    return ""


async def change(
    client: ApiClient,
    path: ObjectPath,
    *,
    way: Way = Way.MERGE_PATCH,
    labels: Metadata | None = None,
    annotations: Metadata | None = None,
) -> str:
    """Set labels and annotations, or remove those that are None; returns the refusal."""
    wanted = {"labels": labels or {}, "annotations": annotations or {}}
    if way is Way.MERGE_PATCH:
        return await refusal(client.merge_patch(path, {"metadata": wanted}))
    if way is Way.APPLY:
        return await refusal(_apply(client, path, wanted))
    body = await client.get(path)
    changed = {
        part: {k: v for k, v in {**body["metadata"].get(part, {}), **new}.items() if v is not None}
        for part, new in wanted.items()
    }
    if way is Way.REPLACE:
        new_body = {**body, "metadata": {**body["metadata"], **changed}}
        return await refusal(client.replace(path, new_body))
    operations = [
        {"op": "add", "path": f"/metadata/{part}", "value": value}
        for part, value in changed.items()
    ]
    return await refusal(client.json_patch(path, operations))


async def _apply(client: ApiClient, path: ObjectPath, wanted: Mapping[str, Metadata]) -> JsonObject:
    current = await client.get(path)
    fields = {"name": path.name, "namespace": path.namespace, **wanted}
    body = {"apiVersion": current["apiVersion"], "kind": current["kind"], "metadata": fields}
    manager = WriteOptions(field_manager="someone")
    return await client.apply(path, body, force=True, options=manager)


def said(kind: str, body: JsonObject, sentence: str) -> str:
    """The sentence of a refusal, with the object that it begins with."""
    return f"{kind} {NAMESPACE}/{body['metadata']['name']}: {sentence}"


def with_settings(queue_label: str, binder: str) -> list[Any]:
    """The policies as an installation with other settings has them."""
    found: list[Any] = []
    for path in sorted(POLICIES.iterdir()):
        found += yaml.safe_load_all(path.read_text().replace(BINDER, binder))
    for policy in found:
        for variable in policy["spec"].get("variables", ()):
            if variable["name"] == "queueLabel":
                variable["expression"] = f"'{queue_label}'"
    return found


def wait_in_force(cluster: Cluster, queue_label: str = QUEUE, binder: str = BINDER) -> None:
    """Ask each policy for what it must refuse: they come into force one by one."""
    pod = {"apiVersion": "v1", "kind": "Pod", **a_pod()}
    group = a_pod_group()
    cluster.apply(group)
    forged = {"annotations": {OWNER_POD: "forged"}}
    spec = {"apiVersion": "resource.k8s.io/v1"}
    pods_with_annotation = {**pod, "metadata": metadata("pod", annotations={QUEUE: "a"})}
    binding = {"apiVersion": "v1", "kind": "Binding", **a_binding(pod)}
    binding["metadata"]["labels"] = {queue_label: "a"}
    new_claim = {**spec, "kind": "ResourceClaim", **a_claim()}
    new_queue = {"apiVersion": QUEUES.api_version, "kind": "Queue", **a_queue_object()}
    dry_run = ("--dry-run=server",)
    create = ("create", "-f", "-", *dry_run)
    label = ("label", "podgroups.scheduling.run.ai", group["metadata"]["name"])
    probes: Sequence[tuple[Sequence[str], Any]] = (
        (create, {**spec, "kind": "ResourceClaim", **a_claim(**forged)}),
        (create, {**spec, "kind": "ResourceClaimTemplate", **a_template(**forged)}),
        (create, pods_with_annotation),
        (create, binding),
        ((*label, f"--namespace={NAMESPACE}", f"{queue_label}=b", *dry_run), None),
        ((*create, f"--as={binder}", "--as-group=system:masters"), pod),
        ((*create, f"--as={binder}", "--as-group=system:masters"), new_claim),
        ((*create, f"--as={binder}", "--as-group=system:masters"), new_queue),
    )

    def refuses(arguments: Sequence[str], body: Any) -> bool:
        stdin = None if body is None else json.dumps(body)
        done = cluster.kubectl(*arguments, stdin=stdin, check=False)
        mentioned = queue_label in done.stderr or binder in done.stderr
        return "ValidatingAdmissionPolicy" in done.stderr and mentioned

    for arguments, body in probes:
        cluster.wait_until(f"refused: {arguments}", partial(refuses, arguments, body))


@pytest.fixture(scope="module")
def server(apiserver: Cluster) -> Iterator[Cluster]:
    """An API server that serves all versions of claims, with the policies in force."""
    beta = {f"resource.k8s.io/{version}": "true" for version in VERSIONS if version != "v1"}
    with apiserver.reconfigured(runtime_config=beta):
        for name in (NAMESPACE, "moorage-system"):
            apiserver.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        apiserver.apply(POD_GROUP_CRD)
        apiserver.kubectl("apply", "-f", str(CRDS), "-f", str(POLICIES))
        definitions = ("crd/podgroups.scheduling.run.ai", "crd/queues.moorage.dev")
        apiserver.kubectl("wait", "--for=condition=Established", *definitions)
        # Pods need the account; there is no controller here that makes it.
        apiserver.service_account_kubeconfig("default", namespace=NAMESPACE)
        wait_in_force(apiserver)
        yield apiserver
        apiserver.kubectl("delete", "-f", str(POLICIES))


@pytest.fixture(scope="module")
def kubeconfigs(server: Cluster) -> Iterator[Mapping[str, Path]]:
    """A token each for the scheduler plugin and for a user, both with all rights."""
    accounts = {"scheduler-plugin": "moorage-system", "user": NAMESPACE}
    grant = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "everybody-may-do-everything"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "cluster-admin",
        },
        "subjects": [
            {"kind": "ServiceAccount", "name": name, "namespace": namespace}
            for name, namespace in accounts.items()
        ],
    }
    server.apply(grant)
    yield {
        name: server.service_account_kubeconfig(name, namespace=namespace)
        for name, namespace in accounts.items()
    }
    server.kubectl("delete", "clusterrolebinding", "everybody-may-do-everything")


@pytest.fixture
async def binder(kubeconfigs: Mapping[str, Path]) -> AsyncIterator[ApiClient]:
    async with connect(kubeconfigs["scheduler-plugin"]) as client:
        yield client


@pytest.fixture
async def user(kubeconfigs: Mapping[str, Path]) -> AsyncIterator[ApiClient]:
    async with connect(kubeconfigs["user"]) as client:
        yield client


def impersonate(cluster: Cluster, who: str, *args: str, body: Any = None) -> str:
    """What was wrong, when somebody else does it; empty if it was done."""
    groups = ["system:authenticated"]
    if who.startswith("system:node:"):
        groups.append("system:nodes")
    identity = (f"--as={who}", *(f"--as-group={group}" for group in groups))
    stdin = None if body is None else json.dumps(body)
    return cluster.kubectl(*identity, *args, stdin=stdin, check=False).stderr


# Claims


@EACH_VERSION
async def test_a_user_names_a_queue_on_a_new_claim(version: str, user: ApiClient) -> None:
    body = a_claim(labels={QUEUE: "a"}, annotations={"moorage.dev/evict-foreign": "true"})

    assert await refusal(user.create(CLAIMS[version], body)) == ""


@EACH_VERSION
@pytest.mark.parametrize("key", [OWNER_POD, OWNER_LEFT_AT, CHARGED])
async def test_nobody_creates_a_claim_with_an_owner(
    key: str, version: str, user: ApiClient, binder: ApiClient
) -> None:
    """The plugin creates no claim at all; which of two policies says so is the API server's."""
    body = a_claim(annotations={key: "forged"})

    refused = await refusal(user.create(CLAIMS[version], body))
    sentence = f"annotation {key} is refused at creation; only {BINDER} writes it, later."
    assert said("ResourceClaim", body, sentence) in refused
    assert await refusal(binder.create(CLAIMS[version], body)) != ""


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("key", [OWNER_POD, OWNER_LEFT_AT, CHARGED])
async def test_no_template_gives_claims_an_owner(key: str, version: str, user: ApiClient) -> None:
    templates = Resource("resource.k8s.io", version, "resourceclaimtemplates")
    forged = a_template(annotations={key: "forged"})
    labelled = a_template(labels={QUEUE: "a"}, annotations={"a": "b"})

    refused = await refusal(user.create(templates, forged))

    sentence = f"annotation {key} in spec.metadata is refused; only {BINDER} writes it, on claims."
    assert said("ResourceClaimTemplate", forged, sentence) in refused
    assert await refusal(user.create(templates, labelled)) == ""


@EACH_VERSION
@EACH_WAY
async def test_only_the_binder_labels_a_claim_later(
    way: Way, version: str, user: ApiClient, binder: ApiClient
) -> None:
    body = a_claim()
    await user.create(CLAIMS[version], body)
    path = CLAIMS[version].path_of(body)
    sentence = said("ResourceClaim", body, f"label {QUEUE} is set after creation only by {BINDER}.")

    assert sentence in await change(user, path, way=way, labels={QUEUE: "a"})
    assert sentence in await change(user, path, way=way, labels={QUEUE: ""})
    owner = {OWNER_POD: "uid"}
    assert await change(binder, path, way=way, labels={QUEUE: "a"}, annotations=owner) == ""


@EACH_VERSION
@EACH_WAY
async def test_the_label_of_a_claim_never_changes(
    way: Way, version: str, user: ApiClient, binder: ApiClient
) -> None:
    body = a_claim(labels={QUEUE: "a"})
    await user.create(CLAIMS[version], body)
    path = CLAIMS[version].path_of(body)
    sentence = said("ResourceClaim", body, f'label {QUEUE} never changes; it is "a".')

    assert sentence in await change(user, path, way=way, labels={QUEUE: "b"})
    assert sentence in await change(binder, path, way=way, labels={QUEUE: "b"})
    assert sentence in await change(
        binder, path, way=way, labels={QUEUE: "b"}, annotations={OWNER_POD: "uid"}
    )


@EACH_VERSION
@pytest.mark.parametrize("way", [Way.REPLACE, Way.MERGE_PATCH, Way.JSON_PATCH])
async def test_only_the_binder_removes_a_label_and_only_its_own(
    way: Way, version: str, user: ApiClient, binder: ApiClient
) -> None:
    by_user, by_binder = a_claim(labels={QUEUE: "a"}), a_claim()
    for body in (by_user, by_binder):
        await user.create(CLAIMS[version], body)
    given, written = (CLAIMS[version].path_of(body) for body in (by_user, by_binder))
    await change(binder, written, labels={QUEUE: "a"}, annotations={OWNER_POD: "uid"})
    gone: Metadata = {QUEUE: None}

    for path, body in ((given, by_user), (written, by_binder)):
        sentence = said("ResourceClaim", body, f"label {QUEUE} is removed only by {BINDER}.")
        assert sentence in await change(user, path, way=way, labels=gone)
    stays = said("ResourceClaim", by_user, f"label {QUEUE} was not written by the binder")
    assert stays in await change(binder, given, way=way, labels=gone)
    assert stays in await change(
        binder, given, way=way, labels=gone, annotations={OWNER_POD: "uid"}
    )
    assert await change(binder, written, way=way, labels=gone, annotations={OWNER_POD: None}) == ""


async def test_a_label_is_not_removed_by_applying_without_it(user: ApiClient) -> None:
    body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", **a_claim()}
    labelled = {**body, "metadata": {**body["metadata"], "labels": {QUEUE: "a"}}}
    path, manager = CLAIMS["v1"].path_of(body), WriteOptions(field_manager="someone")
    await user.apply(path, labelled, options=manager)

    assert await refusal(user.apply(path, labelled, options=manager)) == ""
    assert "is removed only by" in await refusal(user.apply(path, body, options=manager))


@EACH_VERSION
@EACH_WAY
@pytest.mark.parametrize("key", [OWNER_POD, OWNER_LEFT_AT, CHARGED])
async def test_only_the_binder_writes_about_the_owner(
    key: str, way: Way, version: str, user: ApiClient, binder: ApiClient
) -> None:
    body = a_claim()
    await user.create(CLAIMS[version], body)
    path = CLAIMS[version].path_of(body)
    sentence = said("ResourceClaim", body, f"annotation {key} is written only by {BINDER}.")

    assert sentence in await change(user, path, way=way, annotations={key: "forged"})
    assert await change(binder, path, way=way, annotations={key: "one"}) == ""
    assert sentence in await change(user, path, way=way, annotations={key: "forged"})
    assert await change(binder, path, way=way, annotations={key: "two"}) == ""
    assert sentence in await change(user, path, annotations={key: None})
    assert await change(binder, path, annotations={key: None}) == ""


@EACH_VERSION
async def test_the_status_of_a_claim_carries_no_labels(version: str, user: ApiClient) -> None:
    body = a_claim()
    await user.create(CLAIMS[version], body)
    status = CLAIMS[version].path_of(body, "status")

    for way in (Way.MERGE_PATCH, Way.REPLACE):
        await change(user, status, way=way, labels={QUEUE: "a"}, annotations={OWNER_POD: "x"})

    stored = (await user.get(CLAIMS[version].path_of(body)))["metadata"]
    assert QUEUE not in stored.get("labels", {})
    assert OWNER_POD not in stored.get("annotations", {})


@EACH_WAY
async def test_whatever_else_changes_of_an_owned_claim_is_free(
    way: Way, user: ApiClient, binder: ApiClient
) -> None:
    body = a_claim()
    await user.create(CLAIMS["v1"], body)
    path = CLAIMS["v1"].path_of(body)
    await change(binder, path, labels={QUEUE: "a"}, annotations={OWNER_POD: "uid"})
    evict = {"moorage.dev/evict-foreign": "true"}

    assert await change(user, path, way=way, labels={"a": "b"}, annotations=evict) == ""
    assert await change(user, path, way=way, labels={QUEUE: "a"}) == "", "unchanged"
    finalizers = {"metadata": {"finalizers": ["test.moorage.dev/stay"]}}
    assert await refusal(user.merge_patch(path, finalizers)) == ""
    await user.delete(path)
    free = {"metadata": {"finalizers": None}}
    assert await refusal(user.merge_patch(path, free)) == "", "while it is being deleted"


def test_controllers_make_and_mend_claims_as_ever(server: Cluster) -> None:
    body = a_claim(labels={QUEUE: "a"}, generateName="pod-claim-", annotations={"a": "b"})
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", **body}
    kube_system = "system:serviceaccount:kube-system"
    name, in_namespace = body["metadata"]["name"], f"--namespace={NAMESPACE}"
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "gone", "uid": str(uuid4())}
    patch = json.dumps({"metadata": {"ownerReferences": [owner], "finalizers": ["a.test/b"]}})
    freed = json.dumps({"metadata": {"ownerReferences": None, "finalizers": None}})

    maker, collector = (
        f"{kube_system}:resource-claim-controller",
        f"{kube_system}:generic-garbage-collector",
    )
    assert impersonate(server, maker, "create", "-f", "-", body=claim) == ""
    for text in (patch, freed):
        patched = ("patch", "resourceclaim", name, in_namespace, "--type=merge", "-p", text)
        assert impersonate(server, collector, *patched) == ""
    assert impersonate(server, collector, "delete", "resourceclaim", name, in_namespace) == ""


# Pods


async def test_a_pod_may_say_its_queue_when_it_is_made(user: ApiClient) -> None:
    body = a_pod(labels=dict.fromkeys(POD_LABELS, "a"), annotations={"a": "b"})

    assert await refusal(user.create(PODS, body)) == ""


async def test_nobody_creates_a_pod_with_the_annotation_of_a_binding(
    user: ApiClient, server: Cluster
) -> None:
    body = a_pod(annotations={QUEUE: "a"})
    sentence = f"annotation {QUEUE} is refused at creation; only {BINDER} writes it, with the"

    assert said("Pod", body, sentence) in await refusal(user.create(PODS, body))


@EACH_WAY
@pytest.mark.parametrize("subresource", ["", "status"])
async def test_what_a_pod_says_about_its_queue_never_changes(
    subresource: str, way: Way, user: ApiClient
) -> None:
    plain, labelled = a_pod(), a_pod(labels=dict.fromkeys(POD_LABELS, "a"))
    for body in (plain, labelled):
        await user.create(PODS, body)

    for key in POD_LABELS:
        sentence = f"label {key} cannot be added, changed or removed once the pod exists"
        for body, value in ((plain, "a"), (plain, ""), (labelled, "b"), (labelled, None)):
            if value is None and way is Way.APPLY:
                continue  # An apply removes only what it applied before.
            path = PODS.path_of(body, subresource)
            refused = await change(user, path, way=way, labels={key: value})
            assert said("Pod", body, sentence) in refused, value


@pytest.mark.parametrize("subresource", ["ephemeralcontainers", "resize"])
async def test_other_subresources_of_pods_carry_no_labels(
    subresource: str, user: ApiClient
) -> None:
    body = a_pod(labels={PREEMPTIBILITY[0]: "preemptible"})
    created = await user.create(PODS, body)
    path = PODS.path_of(body, subresource)

    for way in (Way.MERGE_PATCH, Way.REPLACE):
        forged = {QUEUE: "a", PREEMPTIBILITY[0]: "non-preemptible"}
        await change(user, path, way=way, labels=forged, annotations={QUEUE: "a"})

    stored = await user.get(PODS.path_of(body))
    assert stored["metadata"]["labels"] == created["metadata"]["labels"]
    assert "annotations" not in stored["metadata"]


@EACH_WAY
@pytest.mark.parametrize("subresource", ["", "status"])
async def test_only_a_binding_writes_a_pod_s_queue(
    subresource: str, way: Way, user: ApiClient, binder: ApiClient
) -> None:
    pending, bound = a_pod(), a_pod()
    for body in (pending, bound):
        await user.create(PODS, body)
    binding = a_binding(bound, annotations={QUEUE: "a"})
    await binder.create(PODS, binding, subresource="binding")
    sentence = f"annotation {QUEUE} is written only by {BINDER} with the binding, and never changes"

    for body, value in ((pending, "a"), (bound, "b"), (bound, None)):
        if value is None and way is Way.APPLY:
            continue
        path = PODS.path_of(body, subresource)
        refused = await change(user, path, way=way, annotations={QUEUE: value})
        assert said("Pod", body, sentence) in refused, value


async def test_whatever_else_changes_of_a_pod_is_free(user: ApiClient) -> None:
    body = a_pod(labels=dict.fromkeys(POD_LABELS, "a"))
    await user.create(PODS, body)

    for subresource in ("", "status"):
        path = PODS.path_of(body, subresource)
        for way in Way:
            done = await change(user, path, way=way, labels={"a": way[:3], QUEUE: "a"})
            assert done == "", (way, subresource)
    finalizers = {"metadata": {"finalizers": ["test.moorage.dev/stay"], "annotations": {"a": "b"}}}
    assert await refusal(user.merge_patch(PODS.path_of(body), finalizers)) == ""


def test_kubectl_is_told_why(server: Cluster) -> None:
    body = {"apiVersion": "v1", "kind": "Pod", **a_pod(labels={QUEUE: "a"})}
    server.apply(body)
    pod = ("pod", body["metadata"]["name"], f"--namespace={NAMESPACE}")
    strategic = json.dumps({"metadata": {"labels": {QUEUE: "b"}}})

    for done in (
        server.kubectl("label", *pod, f"{QUEUE}=b", "--overwrite", check=False),
        server.kubectl("patch", *pod, "--type=strategic", "-p", strategic, check=False),
    ):
        assert "moorage-pods" in done.stderr
        assert said("Pod", body, f"label {QUEUE} cannot be") in done.stderr
    server.apply({**body, "metadata": {**body["metadata"], "labels": {QUEUE: "a", "b": "c"}}})


async def test_a_kubelet_reports_a_status_and_nothing_about_queues(
    server: Cluster, user: ApiClient
) -> None:
    body = a_pod(labels={QUEUE: "a"})
    await user.create(PODS, body)
    await user.create(PODS, a_binding(body), subresource="binding")
    path = PODS.path_of(body, "status")
    current = await user.get(path)

    def report(**fields: Metadata) -> str:
        metadata = {**current["metadata"], **fields}
        new = {**current, "metadata": metadata, "status": {"phase": "Running"}}
        del metadata["resourceVersion"]
        raw = ("replace", "--raw", path.url_path, "-f", "-")
        return impersonate(server, "system:node:node-a", *raw, body=new)

    assert report() == ""
    assert report(annotations={"a": "b"}) == ""
    # Labels are refused to a kubelet by NodeRestriction, before any policy is asked.
    assert "is written only by" in report(annotations={QUEUE: "b"})


# Bindings


@pytest.mark.parametrize("resource", [PODS, BINDINGS], ids=lambda resource: resource.plural)
@pytest.mark.parametrize("part", ["labels", "annotations"])
async def test_only_the_binder_s_bindings_say_something_about_queues(
    part: str, resource: Resource, user: ApiClient, binder: ApiClient
) -> None:
    body = a_pod()
    await user.create(PODS, body)
    subresource = "binding" if resource is PODS else ""

    for key in POD_LABELS:
        forged = a_binding(body, **{part: {key: "a"}})
        refused = await refusal(user.create(resource, forged, subresource=subresource))
        sentence = f"{key} in its metadata comes only from {BINDER}."
        assert said("Binding of Pod", body, sentence) in refused
    right = a_binding(body, **{part: {QUEUE: "a"}})
    assert await refusal(binder.create(resource, right, subresource=subresource)) == ""

    stored = (await user.get(PODS.path_of(body)))["metadata"]
    assert part == "labels" or stored["annotations"] == {QUEUE: "a"}


@pytest.mark.parametrize("fields", [{}, {"labels": {"a": "b"}, "annotations": {"c": "d"}}])
async def test_other_schedulers_bind_as_ever(fields: Any, user: ApiClient) -> None:
    body = a_pod()
    await user.create(PODS, body)

    assert await refusal(user.create(PODS, a_binding(body, **fields), subresource="binding")) == ""


# PodGroups


@EACH_WAY
async def test_the_queue_of_a_pod_group_never_changes(
    way: Way, user: ApiClient, binder: ApiClient
) -> None:
    plain, labelled = a_pod_group(), a_pod_group(labels={QUEUE: "a"})
    for body in (plain, labelled):
        await user.create(POD_GROUPS, body)
    sentence = f"label {QUEUE} cannot be added, changed or removed once the group exists"

    for body, value in ((plain, "a"), (labelled, "b"), (labelled, None)):
        if value is None and way is Way.APPLY:
            continue
        path = POD_GROUPS.path_of(body)
        for client in (user, binder):
            refused = await change(client, path, way=way, labels={QUEUE: value})
            assert said("PodGroup", body, sentence) in refused, value
    assert await change(user, POD_GROUPS.path_of(plain), way=way, labels={"a": "b"}) == ""


async def test_a_pod_group_keeps_its_spec_queue(user: ApiClient) -> None:
    body, without = a_pod_group(), a_pod_group()
    del without["spec"]["queue"]
    for group in (body, without):
        await user.create(POD_GROUPS, group)
    sentence = "spec.queue cannot be added, changed or removed once the group exists"

    for group, queue in ((body, "b"), (body, None), (without, "a")):
        path = POD_GROUPS.path_of(group)
        refused = await refusal(user.merge_patch(path, {"spec": {"queue": queue}}))
        assert said("PodGroup", group, sentence) in refused
    path, status = POD_GROUPS.path_of(body), POD_GROUPS.path_of(body, "status")
    assert await refusal(user.merge_patch(path, {"spec": {"minMember": 2}})) == ""
    assert await refusal(user.merge_patch(status, {"status": {"phase": "Running"}})) == ""


# The scheduler plugin and pods


async def test_the_scheduler_plugin_removes_its_own_gate(
    user: ApiClient, binder: ApiClient
) -> None:
    body, held = a_pod(GATE), a_pod("other.test/gate", GATE)
    for pod in (body, held):
        await user.create(PODS, pod)
    of_first = [
        {"op": "test", "path": "/spec/schedulingGates/0/name", "value": GATE},
        {"op": "remove", "path": "/spec/schedulingGates/0"},
    ]
    of_second = [{"op": "remove", "path": "/spec/schedulingGates/1"}]

    assert await refusal(binder.json_patch(PODS.path_of(body), of_first)) == ""
    assert await refusal(binder.json_patch(PODS.path_of(held), of_second)) == ""

    assert "schedulingGates" not in (await user.get(PODS.path_of(body)))["spec"]
    kept = (await user.get(PODS.path_of(held)))["spec"]["schedulingGates"]
    assert kept == [{"name": "other.test/gate"}]


DEFAULT_TOLERATIONS = [
    {
        "key": f"node.kubernetes.io/{condition}",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }
    for condition in ("not-ready", "unreachable")
]
OTHER_CHANGES: Mapping[str, JsonObject] = {
    "a gate of others": {"spec": {"schedulingGates": [{"name": GATE}]}},
    "all gates": {"spec": {"schedulingGates": None}},
    "a label": {"metadata": {"labels": {"a": "b"}}},
    "an annotation": {"metadata": {"annotations": {"a": "b"}}},
    "a finalizer": {"metadata": {"finalizers": ["a.test/b"]}},
    "an owner": {
        "metadata": {
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}]
        }
    },
    "an image": {"spec": {"containers": [{"name": "main", "image": "other"}]}},
    "a deadline": {"spec": {"activeDeadlineSeconds": 5}},
    "a toleration": {"spec": {"tolerations": [*DEFAULT_TOLERATIONS, {"operator": "Exists"}]}},
    "a node selector": {"spec": {"nodeSelector": {"a": "b"}}},
    "a gate and a label": {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"schedulingGates": [{"name": "other.test/gate"}]},
    },
}


@pytest.mark.parametrize("what", OTHER_CHANGES)
async def test_the_scheduler_plugin_changes_nothing_else_of_a_pod(
    what: str, user: ApiClient, binder: ApiClient
) -> None:
    body = a_pod("other.test/gate", GATE)
    await user.create(PODS, body)
    path = PODS.path_of(body)

    refused = await refusal(binder.merge_patch(path, OTHER_CHANGES[what]))

    sentence = (
        f"{BINDER} may change nothing of a pod but remove the scheduling gate {GATE} and write"
        f" the conditions {OWN_CONDITIONS}."
    )
    assert said("Pod", body, sentence) in refused
    assert await refusal(binder.merge_patch(path, {"metadata": {}})) == "", "nothing changes"


def a_condition(kind: str = CONDITION, **fields: str) -> dict[str, str]:
    return {"type": kind, "status": "False", "reason": "OverLimit", **fields}


async def patch_status(
    client: ApiClient, body: JsonObject, *conditions: JsonObject, **status: Any
) -> str:
    """Write these conditions of a pod, and other fields of its status; returns the refusal."""
    patch = {"status": {"conditions": list(conditions), **status}}
    path = PODS.path_of(body, "status")
    return await refusal(client.strategic_merge_patch(path, patch))


async def test_the_scheduler_plugin_writes_its_own_condition(
    user: ApiClient, binder: ApiClient
) -> None:
    body = a_pod(GATE)
    await user.create(PODS, body)
    path = PODS.path_of(body)

    assert await patch_status(binder, body, a_condition()) == ""
    assert await patch_status(binder, body, a_condition(reason="NoQueue", message="a.")) == ""
    told = {c["type"]: c for c in (await user.get(path))["status"]["conditions"]}
    assert (told[CONDITION]["reason"], told[CONDITION]["message"]) == ("NoQueue", "a.")
    assert told["PodScheduled"]["reason"] == "SchedulingGated"
    assert await patch_status(binder, body, {"$patch": "delete", "type": CONDITION}) == ""
    left = (await user.get(path))["status"]["conditions"]
    assert left == [told["PodScheduled"]]


@pytest.mark.parametrize(
    ("conditions", "status"),
    [
        ([a_condition("PodScheduled", status="True")], {}),
        ([a_condition("Ready")], {}),
        ([a_condition(), a_condition("moorage.dev/Other")], {}),
        ([a_condition()], {"phase": "Failed"}),
        ([a_condition()], {"nominatedNodeName": "node-a"}),
        ([], {"message": "Evicted."}),
    ],
)
async def test_the_scheduler_plugin_writes_nothing_else_of_a_status(
    conditions: list[JsonObject], status: JsonObject, user: ApiClient, binder: ApiClient
) -> None:
    body = a_pod(GATE)
    await user.create(PODS, body)

    refused = await patch_status(binder, body, *conditions, **status)

    assert f"{BINDER} may change nothing of a pod" in refused


async def test_the_scheduler_plugin_has_no_other_road_to_a_pod(
    user: ApiClient, binder: ApiClient
) -> None:
    body = a_pod()
    body["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1m"}}
    await user.create(PODS, body)
    path = PODS.path_of(body)
    container = {"name": "debug", "image": "none"}
    resized = [{"name": "main", "resources": {"requests": {"cpu": "2m"}}}]

    for call in (
        binder.create(PODS, a_pod()),
        binder.delete(path),
        binder.merge_patch(PODS.path_of(body, "status"), {"status": {"phase": "Failed"}}),
        binder.merge_patch(
            PODS.path_of(body, "ephemeralcontainers"),
            {"spec": {"ephemeralContainers": [container]}},
        ),
        binder.merge_patch(PODS.path_of(body, "resize"), {"spec": {"containers": resized}}),
        binder.get(PODS.path_of(body, "exec")),
    ):
        assert f"{BINDER} may change nothing of a pod" in await refusal(call)
    assert await refusal(user.merge_patch(path, {"metadata": {"labels": {"a": "b"}}})) == ""


async def test_the_scheduler_plugin_binds_and_evicts(user: ApiClient, binder: ApiClient) -> None:
    body = a_pod()
    await user.create(PODS, body)
    name = {"name": body["metadata"]["name"], "namespace": NAMESPACE}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": name}

    binding = a_binding(body, annotations={QUEUE: "a"})
    assert await refusal(binder.create(PODS, binding, subresource="binding")) == ""
    assert await refusal(binder.create(PODS, eviction, subresource="eviction")) == ""


async def test_the_scheduler_plugin_only_clears_the_status_of_a_claim(
    user: ApiClient, binder: ApiClient
) -> None:
    body = a_claim()
    await user.create(CLAIMS["v1"], body)
    path = CLAIMS["v1"].path_of(body, "status")
    first, second = ({"resource": "pods", "name": name, "uid": name} for name in ("a", "b"))

    async def patch(client: ApiClient, **status: Any) -> str:
        return await refusal(client.merge_patch(path, {"status": status}))

    sentence = f"{BINDER} only removes an allocation, with the last consumer."
    assert said("ResourceClaim", body, sentence) in await patch(binder, allocation={})
    assert await patch(user, allocation={}, reservedFor=[first, second]) == ""
    for consumers in ([first, second, {**first, "uid": "c"}], [{**first, "uid": "c"}]):
        refused = await patch(binder, reservedFor=consumers)
        assert f"{BINDER} only takes consumers out of reservedFor." in refused
    assert await patch(binder, reservedFor=[second]) == ""
    assert await patch(binder, reservedFor=None, allocation=None) == ""


A_NODE = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}
OTHER_CLAIM_CHANGES: Mapping[str, JsonObject] = {
    "another label": {"labels": {"a": "b"}},
    "a label of a user's": {"labels": {"theirs": None}},
    "another annotation": {"annotations": {"a": "b"}},
    "an annotation of a user's": {"annotations": {"theirs": "b"}},
    "its finalizers": {"finalizers": None},
    "another finalizer": {"finalizers": ["a.test/held", "a.test/b"]},
    "an owner": {"ownerReferences": [A_NODE]},
    "owner and finalizer": {"labels": {QUEUE: "a"}, "finalizers": None},
}


@EACH_VERSION
@pytest.mark.parametrize("what", OTHER_CLAIM_CHANGES)
async def test_the_scheduler_plugin_changes_nothing_of_a_claim_but_its_owner(
    what: str, version: str, user: ApiClient, binder: ApiClient
) -> None:
    """Without its finalizer a claim that is in use may be deleted, and its device given again."""
    theirs = {"labels": {"theirs": "a"}, "annotations": {"theirs": "a"}}
    body = a_claim(finalizers=["a.test/held"], **theirs)
    await user.create(CLAIMS[version], body)
    path = CLAIMS[version].path_of(body)

    refused = await refusal(binder.merge_patch(path, {"metadata": OTHER_CLAIM_CHANGES[what]}))

    sentence = (
        f"{BINDER} may change nothing of a claim but the label {QUEUE} and the annotations"
        f" {OWNER_POD}, {OWNER_LEFT_AT}, {CHARGED}."
    )
    assert said("ResourceClaim", body, sentence) in refused
    # It is the plugin that this is about: what is said to a user is about the owner alone.
    told = await refusal(user.merge_patch(path, {"metadata": OTHER_CLAIM_CHANGES[what]}))
    assert bool(told) == ("owner and" in what)
    assert sentence not in told


@EACH_VERSION
async def test_the_scheduler_plugin_writes_an_owner_and_takes_it_away(
    version: str, user: ApiClient, binder: ApiClient
) -> None:
    body = a_claim(finalizers=["a.test/held"], labels={"theirs": "a"})
    await user.create(CLAIMS[version], body)
    path = CLAIMS[version].path_of(body)

    owner: dict[str, Any] = {"annotations": {OWNER_POD: "p"}, "labels": {QUEUE: "a"}}
    assert await change(binder, path, **owner) == ""
    assert await change(binder, path, annotations={OWNER_LEFT_AT: "2026-01-01T00:00:00Z"}) == ""
    assert await change(binder, path, annotations={CHARGED: "{}"}) == ""
    gone: dict[str, Any] = {
        "annotations": {OWNER_POD: None, OWNER_LEFT_AT: None, CHARGED: None},
        "labels": {QUEUE: None},
    }
    assert await change(binder, path, **gone) == ""
    # Also of one that is going, which has its finalizer still.
    await user.delete(path)
    assert await change(binder, path, **owner) == ""
    for call in (binder.create(CLAIMS[version], a_claim()), binder.delete(path)):
        assert f"{BINDER} may change nothing of a claim" in await refusal(call)


# Queues

CHARGES = "moorage.dev/charges"
OWN_WRITE = WriteOptions(field_manager="moorage-scheduler-plugin")
OTHER_QUEUE_CHANGES: Mapping[str, JsonObject] = {
    "its limit": {"spec": {"resources": [{"deviceClass": "onvif", "quota": 9, "limit": 9}]}},
    "its parent": {"spec": {"parent": "other"}},
    "its namespaces": {"spec": {"namespaceSelector": {}}},
    "no shares": {"spec": {"resources": None}},
    "a label": {"metadata": {"labels": {"a": "b"}}},
    "an annotation": {"metadata": {"annotations": {"a": "b"}}},
    "another finalizer": {"metadata": {"finalizers": ["a.test/held", "a.test/b"]}},
    "a finalizer of others": {"metadata": {"finalizers": [CHARGES]}},
    "an owner": {"metadata": {"ownerReferences": [A_NODE]}},
    "finalizer and limit": {"metadata": {"finalizers": ["a.test/held", CHARGES]}, "spec": None},
}


def a_queue_object(**fields: Any) -> dict[str, Any]:
    spec = {"resources": [{"deviceClass": "onvif", "quota": 1, "limit": 1}]}
    head = {"apiVersion": QUEUES.api_version, "kind": "Queue"}
    return {**head, "metadata": {"name": new_name("queue"), **fields}, "spec": spec}


@pytest.mark.parametrize("what", OTHER_QUEUE_CHANGES)
async def test_the_scheduler_plugin_changes_nothing_of_a_queue_but_its_finalizer(
    what: str, user: ApiClient, binder: ApiClient
) -> None:
    body = a_queue_object(finalizers=["a.test/held"])
    await user.create(QUEUES, body)
    path = QUEUES.path_of(body)

    refused = await refusal(binder.merge_patch(path, OTHER_QUEUE_CHANGES[what]))

    name = body["metadata"]["name"]
    sentence = f"{BINDER} may change nothing of a queue but the finalizer {CHARGES}."
    assert f"Queue {name}: {sentence}" in refused


async def test_the_scheduler_plugin_keeps_a_queue_and_lets_it_go(
    user: ApiClient, binder: ApiClient
) -> None:
    """As `apiserver_finalizers` applies it: with the finalizer, and without."""
    body = a_queue_object(finalizers=["a.test/held"], labels={"theirs": "a"})
    await user.create(QUEUES, body)
    path = QUEUES.path_of(body)
    named = {"apiVersion": QUEUES.api_version, "kind": "Queue"}

    async def keep(*finalizers: str) -> str:
        metadata = {"name": path.name, **({"finalizers": list(finalizers)} if finalizers else {})}
        return await refusal(binder.apply(path, {**named, "metadata": metadata}, options=OWN_WRITE))

    assert await keep(CHARGES) == ""
    kept = (await user.get(path))["metadata"]["finalizers"]
    assert sorted(kept) == ["a.test/held", CHARGES]
    status = QUEUES.path_of(body, "status")
    assert await refusal(binder.merge_patch(status, {"status": {"usage": {"onvif": 1}}})) == ""
    await user.delete(path)
    assert await keep() == ""
    assert (await user.get(path))["metadata"]["finalizers"] == ["a.test/held"]
    for call in (binder.create(QUEUES, a_queue_object()), binder.delete(path)):
        assert f"{BINDER} may change nothing of a queue" in await refusal(call)


async def test_what_a_policy_refuses_is_counted(server: Cluster, binder: ApiClient) -> None:
    """By the labels that the alerts ask for."""
    policy = "moorage-scheduler-plugin-pods"
    assert f"{BINDER} may change nothing of a pod" in await refusal(binder.create(PODS, a_pod()))

    page = server.kubectl("get", "--raw", "/metrics").stdout

    counted = [
        line
        for line in page.splitlines()
        if line.startswith("apiserver_validating_admission_policy_check_total{")
        and 'enforcement_action="deny"' in line
        and f'policy="{policy}"' in line
    ]
    assert counted
    assert all(float(line.rpartition(" ")[2]) >= 1 for line in counted)


INT64_MAX = 2**63 - 1
RIGHT_QUEUES: Mapping[str, JsonObject] = {
    "nothing": {},
    "of the design": {
        "parent": "research",
        "namespaceSelector": {},
        "claimSharing": {
            "policy": "Allow",
            "queues": ["robots"],
            "onOwnerExit": "Keep",
            "ownerExitGracePeriod": "5m",
            "evictForeign": "Allow",
            "labelAtCreate": "Allow",
        },
        "resources": [{"deviceClass": "onvif", "quota": 4, "limit": 8}],
    },
    "unlimited": {"resources": [{"deviceClass": "onvif", "quota": -1, "limit": -1}]},
    "the limit is the quota": {"resources": [{"deviceClass": "onvif", "quota": -1, "limit": 3}]},
    "no limit": {"resources": [{"deviceClass": "onvif", "quota": 4, "limit": -1}]},
    "equal": {"resources": [{"deviceClass": "onvif", "quota": 4, "limit": 4}]},
    "measures": {
        "resources": [
            {
                "name": "gpu-memory",
                "driver": "gpu.example.com",
                "measure": {"capacity": "memory"},
                "quota": "40Gi",
                "limit": "80Gi",
            },
            {"deviceClass": "onvif", "name": "bits", "measure": {"capacity": "b"}, "limit": "1.5k"},
        ]
    },
    "nothing allowed": {"resources": [{"deviceClass": "onvif", "quota": 0, "limit": 0}]},
    "largest": {"resources": [{"deviceClass": "onvif", "quota": INT64_MAX, "limit": INT64_MAX}]},
    "selector": {
        "parent": "",
        "namespaceSelector": {
            "matchLabels": {"team": "vision"},
            "matchExpressions": [
                {"key": "stage", "operator": "In", "values": ["test"]},
                {"key": "closed", "operator": "DoesNotExist"},
            ],
        },
    },
    "year": {"claimSharing": {"ownerExitGracePeriod": "8784h"}},
}
WRONG_QUEUES: Mapping[str, tuple[JsonObject, str]] = {
    "limit below quota": (
        {"resources": [{"deviceClass": "onvif", "quota": 4, "limit": 3}]},
        "the limit must be -1 (unlimited), or at least the quota",
    ),
    "quota below -1": (
        {"resources": [{"deviceClass": "onvif", "quota": -2}]},
        "spec.resources[0].quota in body should be greater than or equal to -1",
    ),
    "limit below -1": (
        {"resources": [{"deviceClass": "onvif", "limit": -2}]},
        "spec.resources[0].limit in body should be greater than or equal to -1",
    ),
    "beyond int64": (
        {"resources": [{"deviceClass": "onvif", "limit": INT64_MAX + 1}]},
        "spec.resources[0].limit",
    ),
    "quantity of devices": (
        {"resources": [{"deviceClass": "onvif", "limit": "4"}]},
        "spec.resources[0].limit: Invalid value: must be a whole number of devices",
    ),
    "no quantity": (
        {"resources": [{"deviceClass": "onvif", "measure": {"capacity": "b"}, "quota": "4K"}]},
        "spec.resources[0].quota in body should match",
    ),
    "driver without a name": (
        {"resources": [{"driver": "gpu.example.com"}]},
        "a driver's entry needs a name",
    ),
    "class listed twice": (
        {"resources": [{"deviceClass": "onvif"}, {"deviceClass": "onvif"}]},
        "spec.resources[1]: Duplicate value",
    ),
    "no class": (
        {"resources": [{"quota": 1}]},
        "spec.resources[0].deviceClass: Invalid value: exactly one of deviceClass and driver must",
    ),
    "name of a class": ({"resources": [{"deviceClass": "Onvif"}]}, "resources[0].deviceClass"),
    "policy": ({"claimSharing": {"policy": "Maybe"}}, 'supported values: "Allow", "Deny"'),
    "exit": ({"claimSharing": {"onOwnerExit": "Kill"}}, 'supported values: "Keep", "Evict"'),
    "exceptions": ({"claimSharing": {"queues": ["a", "a"]}}, "queues[1]: Duplicate value"),
    "duration": ({"claimSharing": {"ownerExitGracePeriod": "soon"}}, "ownerExitGracePeriod"),
    "too long": (
        {"claimSharing": {"ownerExitGracePeriod": "8784h1s"}},
        "it may last at most 8784h, a year",
    ),
    "far too long": (
        {"claimSharing": {"ownerExitGracePeriod": "999999999h999999999h"}},
        "ownerExitGracePeriod",
    ),
    "operator without values": (
        {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
        "In and NotIn need values; Exists and DoesNotExist take none",
    ),
    "values without use": (
        {
            "namespaceSelector": {
                "matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]
            }
        },
        "In and NotIn need values; Exists and DoesNotExist take none",
    ),
}


@pytest.mark.parametrize("name", RIGHT_QUEUES)
async def test_queues_are_stored_as_they_were_written(name: str, user: ApiClient) -> None:
    stored = await user.create(QUEUES, a_queue(**RIGHT_QUEUES[name]))

    assert stored["spec"] == _with_defaults(RIGHT_QUEUES[name])


def _with_defaults(spec: JsonObject) -> JsonObject:
    """What an absent field means, the API server says."""
    shares = [_SHARE | share for share in spec.get("resources", ())]
    return {"priority": 100, **spec} | ({"resources": shares} if shares else {})


_SHARE = {"name": "", "deviceClass": "", "quota": 0, "limit": -1}


async def test_only_figures_of_shares_have_defaults(user: ApiClient) -> None:
    stored = await user.create(QUEUES, a_queue(claimSharing={}, resources=[{"deviceClass": "a"}]))

    share = _SHARE | {"deviceClass": "a"}
    assert stored["spec"] == {"priority": 100, "claimSharing": {}, "resources": [share]}


@pytest.mark.parametrize("name", WRONG_QUEUES)
async def test_queues_of_no_sense_are_refused(name: str, user: ApiClient) -> None:
    spec, sentence = WRONG_QUEUES[name]

    refused = await refusal(user.create(QUEUES, a_queue(**spec)))

    assert "is invalid" in refused
    assert sentence in refused


async def test_a_queue_is_not_its_own_parent_and_fits_a_label(user: ApiClient) -> None:
    own = a_queue()
    own["spec"]["parent"] = own["metadata"]["name"]
    long, longest = a_queue(), a_queue()
    long["metadata"]["name"], longest["metadata"]["name"] = "a" * 64, new_name("a" * 54)

    refused = await refusal(user.create(QUEUES, own))

    assert "spec.parent" in refused
    assert "a queue cannot be its own parent" in refused
    assert "may have at most 63 characters" in await refusal(user.create(QUEUES, long))
    assert len(longest["metadata"]["name"]) == 63
    assert await refusal(user.create(QUEUES, longest)) == ""


async def test_a_queue_shows_what_it_is_charged(server: Cluster, user: ApiClient) -> None:
    body = a_queue(parent="research", resources=[{"deviceClass": "onvif", "quota": 4, "limit": 8}])
    await user.create(QUEUES, body)
    missing = {
        "type": "ParentMissing",
        "status": "True",
        "reason": "QueueNotFound",
        "message": "There is no Queue research.",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    accepted = missing | {"type": "Accepted", "reason": "Accepted", "message": "It counts."}
    status = {
        "observedGeneration": 1,
        "summary": "onvif 3/4/8",
        "waiting": 2,
        "usage": {"onvif": 3},
        "usageNonPreemptible": {"onvif": 1},
        "requested": {"onvif": INT64_MAX},
        "claims": {"owned": 2, "sharedOut": 1},
        "conditions": [accepted, missing],
    }

    stored = await user.merge_patch(QUEUES.path_of(body, "status"), {"status": status})
    name = body["metadata"]["name"]
    table = server.kubectl("get", "queues.moorage.dev", name).stdout.splitlines()

    assert stored["status"] == status
    columns = ["NAME", "PARENT", "USAGE/QUOTA/LIMIT", "WAITING", "ACCEPTED", "AGE"]
    assert table[0].split() == columns
    shown = re.split(r" {2,}", table[1])
    assert shown[:5] == [name, "research", "onvif 3/4/8", "2", "True"]


# Other settings; last, since the policies are in force for the whole server


@pytest.fixture
def other_settings(server: Cluster) -> Iterator[tuple[str, str]]:
    """A cluster beside KAI, with a binder of another name."""
    settings = ("kai.scheduler/queue", f"system:serviceaccount:{NAMESPACE}:user")
    server.apply({"apiVersion": "v1", "kind": "List", "items": with_settings(*settings)})
    wait_in_force(server, *settings)
    yield settings
    server.kubectl("apply", "-f", str(POLICIES))
    wait_in_force(server)


async def test_the_label_and_the_binder_are_settings(
    other_settings: tuple[str, str], user: ApiClient, binder: ApiClient
) -> None:
    key, other_binder = other_settings
    claim, pod = a_claim(), a_pod()
    await binder.create(CLAIMS["v1"], claim)
    await binder.create(PODS, pod)
    claim_path, pod_path = CLAIMS["v1"].path_of(claim), PODS.path_of(pod)
    binding = a_binding(pod, labels={key: "a"}, annotations={QUEUE: "a"})

    refused = await change(binder, claim_path, labels={key: "a"})
    assert f"label {key} is set after creation only by {other_binder}." in refused
    assert await change(binder, claim_path, labels={QUEUE: "a"}) == "", "any label"
    assert await change(user, claim_path, labels={key: "a"}, annotations={OWNER_POD: "u"}) == ""
    assert f"label {key} cannot be" in await change(binder, pod_path, labels={key: "a"})
    refused = await refusal(binder.create(PODS, binding, subresource="binding"))
    assert f"{key}, {QUEUE} in its metadata comes only from {other_binder}." in refused
    assert await refusal(user.create(PODS, binding, subresource="binding")) == ""
