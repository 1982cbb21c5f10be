"""Who may give accounted devices away, on the real API server.

Everybody here may do everything as far as RBAC goes, so that only the policies refuse.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube.calls.api import ApiClient, connect
from kube.kinds import PODS
from kube.objects import JsonObject
from local_cluster.api import ApiError, Cluster
from tests.e2e.test_policies import (
    CLAIMS,
    EACH_VERSION,
    NAMESPACE,
    POLICIES,
    VERSIONS,
    a_claim,
    a_pod,
    impersonate,
    metadata,
    new_name,
    refusal,
    said,
)

SCHEDULER = "system:serviceaccount:moorage-system:scheduler"
CONTROLLER = "system:serviceaccount:kube-system:resource-claim-controller"
ACCOUNTED = "moorage.dev"
OTHER = "gpu.test"
ACCOUNTS = {
    "scheduler": "moorage-system",
    "scheduler-plugin": "moorage-system",
    "user": NAMESPACE,
}
REPORTER = "reporter"
"""Who may write statuses of claims and, as far as RBAC goes, no allocation: a vendor's driver."""

OLD_GATES = {"DRAResourceClaimGranularStatusAuthorization": False}
"""As before Kubernetes 1.36, where the API server does not ask for `resourceclaims/binding`."""
BINDING = POLICIES / "allocations-policybinding.yaml"


def a_grant() -> JsonObject:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "everybody-allocates"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [
            {"kind": "ServiceAccount", "name": name, "namespace": namespace}
            for name, namespace in ACCOUNTS.items()
        ],
    }


def a_reporters_role() -> list[JsonObject]:
    group = "rbac.authorization.k8s.io"
    named = {"apiVersion": f"{group}/v1", "metadata": {"name": REPORTER}}
    claims = {
        "apiGroups": ["resource.k8s.io"],
        "resources": ["resourceclaims", "resourceclaims/status"],
    }
    subject = {"kind": "ServiceAccount", "name": REPORTER, "namespace": NAMESPACE}
    return [
        {
            **named,
            "kind": "ClusterRole",
            "rules": [{**claims, "verbs": ["get", "update", "patch"]}],
        },
        {
            **named,
            "kind": "ClusterRoleBinding",
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": REPORTER},
            "subjects": [subject],
        },
    ]


def allocation(*drivers: str, admin: bool = False) -> JsonObject:
    """One device of each driver; administrative access, or not."""
    access = {"adminAccess": True} if admin else {}
    results = [
        {"request": f"r{n}", "driver": driver, "pool": "p", "device": f"d{n}", **access}
        for n, driver in enumerate(drivers)
    ]
    return {"devices": {"results": results}}


def a_claim_of(version: str, *, admin: bool = False) -> dict[str, Any]:
    """A claim of two devices."""
    device: dict[str, Any] = {"deviceClassName": "any", **({"adminAccess": True} if admin else {})}
    requests = [
        {"name": name, **(device if version == "v1beta1" else {"exactly": device})}
        for name in ("r0", "r1")
    ]
    return {**a_claim(), "spec": {"devices": {"requests": requests}}}


def consumers(*uids: str) -> list[JsonObject]:
    return [{"resource": "pods", "name": uid, "uid": uid} for uid in uids]


def only_the_scheduler(field: str, what: str, user: str, held: str = ACCOUNTED) -> str:
    return (
        f"{field}: devices of {held} are charged to queues, so only {SCHEDULER} {what},"
        f" and not {user}."
    )


def with_drivers(*drivers: str) -> list[Any]:
    """The policy as an administrator has it who lists these drivers, and its binding."""
    policies = list(yaml.safe_load_all((POLICIES / "allocations.yaml").read_text()))
    for variable in policies[0]["spec"]["variables"]:
        if variable["name"] == "accountedDrivers":
            variable["expression"] = repr(list(drivers))
    return [*policies, yaml.safe_load(BINDING.read_text())]


@pytest.fixture(scope="module")
def server(apiserver: Cluster) -> Iterator[Cluster]:
    """An API server that serves all versions of claims, with the policies in force."""
    beta = {f"resource.k8s.io/{version}": "true" for version in VERSIONS if version != "v1"}
    with apiserver.reconfigured(runtime_config=beta, feature_gates=OLD_GATES):
        for name in (NAMESPACE, "moorage-system"):
            apiserver.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        admits = "resource.kubernetes.io/admin-access=true"
        apiserver.kubectl("label", "namespace", NAMESPACE, admits)
        apiserver.kubectl("apply", "-f", str(POLICIES))
        apiserver.apply([a_grant(), *a_reporters_role()])
        # Pods need the account; there is no controller here that makes it.
        apiserver.service_account_kubeconfig("default", namespace=NAMESPACE)
        yield apiserver
        apiserver.kubectl("delete", "-f", str(POLICIES))
        apiserver.kubectl("delete", "clusterrolebinding", "everybody-allocates")


@pytest.fixture(scope="module")
def kubeconfigs(server: Cluster) -> Mapping[str, Path]:
    return {
        name: server.service_account_kubeconfig(name, namespace=namespace)
        for name, namespace in {**ACCOUNTS, REPORTER: NAMESPACE}.items()
    }


@pytest.fixture
async def reporter(kubeconfigs: Mapping[str, Path]) -> AsyncIterator[ApiClient]:
    async with connect(kubeconfigs[REPORTER]) as client:
        yield client


@pytest.fixture
async def user(kubeconfigs: Mapping[str, Path], server: Cluster) -> AsyncIterator[ApiClient]:
    async with connect(kubeconfigs["user"]) as client:
        yield client


@pytest.fixture
async def scheduler(kubeconfigs: Mapping[str, Path]) -> AsyncIterator[ApiClient]:
    async with connect(kubeconfigs["scheduler"]) as client:
        yield client


@pytest.fixture
async def plugin(kubeconfigs: Mapping[str, Path]) -> AsyncIterator[ApiClient]:
    async with connect(kubeconfigs["scheduler-plugin"]) as client:
        yield client


@pytest.fixture(scope="module", autouse=True)
def in_force(server: Cluster) -> None:
    """Policies come into force one by one, some moments after they were created."""
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", **a_claim_of("v1")}
    server.apply(claim)
    wait_allocates_nothing_of(server, claim["metadata"]["name"], ACCOUNTED)
    server.wait_until("placed pods are refused", lambda: is_refused(server, a_placed_pod()))


def is_refused(server: Cluster, pod: JsonObject) -> bool:
    """Whether the policy refuses a placed pod to an administrator."""
    text = yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", **pod})
    create = ("create", "--dry-run=server", "-f", "-")
    return "spec.nodeName" in server.kubectl(*create, stdin=text, check=False).stderr


def wait_allocates_nothing_of(server: Cluster, claim: str, driver: str) -> None:
    """Wait until the policy refuses this driver's devices to an administrator."""
    server.wait_until(
        f"devices of {driver} are refused",
        lambda: "charged to queues" in refusal_of(server, claim, driver),
    )


def refusal_of(server: Cluster, claim: str, driver: str) -> str:
    """Why an administrator may not allocate; empty if he may."""
    path = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims/{claim}/status"
    with server.api() as api:
        try:
            api.patch(f"{path}?dryRun=All", {"status": {"allocation": allocation(driver)}})
        except ApiError as error:
            return str(error)
    return ""


async def write(client: ApiClient, body: JsonObject, version: str = "v1", **status: Any) -> str:
    """Patch the status of a claim; returns the refusal."""
    path = CLAIMS[version].path_of(body, "status")
    return await refusal(client.merge_patch(path, {"status": status}))


async def a_stored(client: ApiClient, version: str = "v1", *, admin: bool = False) -> JsonObject:
    body = a_claim_of(version, admin=admin)
    await client.create(CLAIMS[version], body)
    return body


# Claims


@EACH_VERSION
async def test_nobody_but_the_scheduler_allocates_accounted_devices(
    version: str, user: ApiClient, plugin: ApiClient, scheduler: ApiClient
) -> None:
    body = await a_stored(user, version)
    sentence = only_the_scheduler(
        "status.allocation", "allocates them", f"system:serviceaccount:{NAMESPACE}:user"
    )

    refused = await write(user, body, version, allocation=allocation(OTHER, ACCOUNTED))

    assert said("ResourceClaim", body, sentence) in refused
    # Two policies say so of the plugin, and either may be asked first.
    by_plugin = await write(plugin, body, version, allocation=allocation(ACCOUNTED))
    assert "ValidatingAdmissionPolicy" in by_plugin
    assert await write(scheduler, body, version, allocation=allocation(ACCOUNTED)) == ""


@pytest.mark.parametrize(
    "who", ["system:kube-scheduler", f"system:serviceaccount:{NAMESPACE}:scheduler"]
)
async def test_other_schedulers_allocate_none(server: Cluster, user: ApiClient, who: str) -> None:
    body = await a_stored(user)
    sentence = only_the_scheduler("status.allocation", "allocates them", who)

    assert sentence in patched_as(server, who, body, allocation(ACCOUNTED))
    assert patched_as(server, who, body, allocation(OTHER)) == ""


def patched_as(server: Cluster, who: str, body: JsonObject, allocated: JsonObject) -> str:
    """What was wrong, when this account allocates; masters may do everything."""
    name = body["metadata"]["name"]
    patch = yaml.safe_dump({"status": {"allocation": allocated}})
    return server.kubectl(
        *(f"--as={who}", "--as-group=system:masters", "patch", "resourceclaim", name),
        *(f"--namespace={NAMESPACE}", "--subresource=status", "--type=merge", "-p", patch),
        check=False,
    ).stderr


async def test_nobody_but_the_scheduler_lets_a_pod_use_accounted_devices(
    user: ApiClient, scheduler: ApiClient, server: Cluster
) -> None:
    body = await a_stored(user)
    first: dict[str, Any] = {"allocation": allocation(ACCOUNTED), "reservedFor": consumers("a")}
    assert await write(scheduler, body, **first) == ""

    for entries in (consumers("a", "b"), consumers("b")):
        sentence = only_the_scheduler(
            "status.reservedFor",
            "adds pods that use them",
            f"system:serviceaccount:{NAMESPACE}:user",
        )
        assert sentence in await write(user, body, reservedFor=entries)
    assert await write(scheduler, body, reservedFor=consumers("a", "b")) == ""


async def test_a_reservation_and_an_allocation_in_one_write_are_refused_together(
    user: ApiClient, scheduler: ApiClient
) -> None:
    body = await a_stored(user)
    both: dict[str, Any] = {"allocation": allocation(ACCOUNTED), "reservedFor": consumers("a")}

    assert "status.allocation" in await write(user, body, **both)
    assert await write(scheduler, body, **both) == ""


async def test_who_reports_about_devices_takes_none_back(
    reporter: ApiClient, user: ApiClient, scheduler: ApiClient
) -> None:
    """Kube-scheduler would give it away again, while the pod that has it runs."""
    body = await a_stored(user)
    used: dict[str, Any] = {"allocation": allocation(ACCOUNTED), "reservedFor": consumers("a")}
    assert await write(scheduler, body, **used) == ""
    sentence = f"status: devices of {ACCOUNTED} are charged to queues, so only {SCHEDULER},"

    ways: tuple[dict[str, Any], ...] = (
        {"reservedFor": None},
        {"reservedFor": None, "allocation": None},
    )
    for taken in ways:
        assert sentence in await write(reporter, body, **taken)
    device = {"driver": ACCOUNTED, "pool": "p", "device": "d0", "data": {"a": "b"}}
    assert await write(reporter, body, devices=[device]) == ""


async def test_who_reports_takes_back_what_nobody_accounts_for(
    reporter: ApiClient, user: ApiClient
) -> None:
    body = await a_stored(user)
    used: dict[str, Any] = {"allocation": allocation(OTHER), "reservedFor": consumers("a")}
    assert await write(user, body, **used) == ""

    assert await write(reporter, body, reservedFor=None) == ""
    assert await write(reporter, body, allocation=None) == ""


@pytest.mark.parametrize(
    "who", [CONTROLLER, "system:kube-controller-manager", "system:kube-scheduler"]
)
async def test_controllers_take_back_without_a_right_of_their_own(
    who: str, server: Cluster, user: ApiClient, scheduler: ApiClient
) -> None:
    """Before Kubernetes 1.36 their roles have none to `resourceclaims/binding`."""
    body = await a_stored(user)
    used: dict[str, Any] = {"allocation": allocation(ACCOUNTED), "reservedFor": consumers("a")}
    assert await write(scheduler, body, **used) == ""
    # With the reporter's rights.
    server.kubectl(
        *("create", "clusterrolebinding", new_name("as"), f"--clusterrole={REPORTER}"),
        f"--user={who}",
    )
    taken = server.kubectl(
        *(f"--as={who}", "patch", "resourceclaim", body["metadata"]["name"]),
        *(f"--namespace={NAMESPACE}", "--subresource=status", "--type=merge"),
        *("-p", '{"status": {"reservedFor": null, "allocation": null}}'),
        check=False,
    )

    assert taken.returncode == 0, taken.stderr


async def test_who_may_bind_takes_back(
    user: ApiClient, plugin: ApiClient, scheduler: ApiClient
) -> None:
    for client in (user, plugin, scheduler):
        body = await a_stored(user)
        used: dict[str, Any] = {
            "allocation": allocation(ACCOUNTED),
            "reservedFor": consumers("a", "b"),
        }
        assert await write(scheduler, body, **used) == ""

        assert await write(client, body, reservedFor=consumers("b")) == ""
        assert await write(client, body, allocation=None, reservedFor=None) == ""


async def test_a_driver_reports_about_its_devices(user: ApiClient, scheduler: ApiClient) -> None:
    body = await a_stored(user)
    assert await write(scheduler, body, allocation=allocation(ACCOUNTED)) == ""
    device = {"driver": ACCOUNTED, "pool": "p", "device": "d0", "data": {"a": "b"}}

    assert await write(user, body, devices=[device]) == ""


@EACH_VERSION
async def test_other_drivers_devices_and_administrative_access_are_free(
    version: str, user: ApiClient
) -> None:
    others = await a_stored(user, version)
    watched = await a_stored(user, version, admin=True)

    assert await write(user, others, version, allocation=allocation(OTHER)) == ""
    assert await write(user, others, version, reservedFor=consumers("a")) == ""
    assert await write(user, watched, version, allocation=allocation(ACCOUNTED, admin=True)) == ""


@EACH_VERSION
async def test_administrative_access_is_what_the_claim_asks_for_and_gets(
    version: str, user: ApiClient
) -> None:
    """The API server takes either for the other."""
    for asked, given in ((False, True), (False, False), (True, False)):
        body = await a_stored(user, version, admin=asked)
        allocated = allocation(ACCOUNTED)
        allocated["devices"]["results"][0]["adminAccess"] = given

        assert "status.allocation" in await write(user, body, version, allocation=allocated)


async def test_an_administrator_lists_more_drivers(user: ApiClient, server: Cluster) -> None:
    body = await a_stored(user)
    server.apply(with_drivers(ACCOUNTED, OTHER))
    try:
        wait_allocates_nothing_of(server, body["metadata"]["name"], OTHER)
        both = await write(user, body, allocation=allocation(OTHER, ACCOUNTED))
    finally:
        server.apply(with_drivers(ACCOUNTED))

    assert f"devices of {ACCOUNTED}, {OTHER} are charged" in both


async def test_without_its_binding_everybody_allocates(user: ApiClient, server: Cluster) -> None:
    body = await a_stored(user)
    server.kubectl("delete", "-f", str(BINDING))
    try:
        name = body["metadata"]["name"]
        server.wait_until("it is out of force", lambda: not refusal_of(server, name, ACCOUNTED))
        assert await write(user, body, allocation=allocation(ACCOUNTED)) == ""
    finally:
        server.kubectl("apply", "-f", str(BINDING))
        again = await a_stored(user)
        wait_allocates_nothing_of(server, again["metadata"]["name"], ACCOUNTED)


# Pods that have their node when they are created


def a_placed_pod(**fields: Any) -> dict[str, Any]:
    """A pod on a node; without other fields of its spec it uses a claim."""
    body = a_pod()
    uses = fields or {"resourceClaims": [{"name": "cam", "resourceClaimName": "shared"}]}
    return {**body, "spec": {**body["spec"], "nodeName": "node-a", **uses}}


def asking(resource: str) -> list[JsonObject]:
    limits = {resource: "1"}
    return [{"name": "asks", "image": "none", "resources": {"limits": limits}}]


REFUSED: Mapping[str, tuple[dict[str, Any], str]] = {
    "a claim": ({}, "resource claim cam"),
    "a template": (
        {"resourceClaims": [{"name": "cam", "resourceClaimTemplateName": "each"}]},
        "resource claim cam",
    ),
    "a slot": ({"containers": asking("akri.sh/camera")}, "resources of container asks"),
    "a class": (
        {"containers": asking("deviceclass.resource.kubernetes.io/camera")},
        "resources of container asks",
    ),
    "an init container": (
        {
            "initContainers": asking("akri.sh/camera"),
            "containers": [{"name": "main", "image": "none"}],
        },
        "resources of container asks",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
async def test_nobody_chooses_the_node_of_a_pod_that_uses_devices(
    what: str, user: ApiClient, scheduler: ApiClient
) -> None:
    fields, uses = REFUSED[what]
    body = a_placed_pod(**fields)

    sentence = (
        "spec.nodeName: uses are charged to queues, so a scheduler must choose the node of a pod"
        f" with {uses}."
    )
    for client in (user, scheduler):
        assert said("Pod", body, sentence) in await refusal(client.create(PODS, body))


async def test_the_node_of_other_pods_may_be_chosen(user: ApiClient) -> None:
    other = a_placed_pod(containers=asking("gpu.test/card"))
    without = a_placed_pod(containers=[{"name": "main", "image": "none"}])
    waiting = a_placed_pod()
    del waiting["spec"]["nodeName"]

    for body in (other, without, waiting):
        assert await refusal(user.create(PODS, body)) == ""


def with_resources(*names: str) -> JsonObject:
    """The policy with these resources beside those of the two prefixes."""
    policy: JsonObject = yaml.safe_load((POLICIES / "placed-pods.yaml").read_text())
    listed = policy["spec"]["variables"][0]
    assert listed["name"] == "accountedResources"
    listed["expression"] = str(list(names))
    return policy


async def test_an_administrator_lists_more_resources(user: ApiClient, server: Cluster) -> None:
    body = a_placed_pod(containers=asking("gpu.test/card"))
    server.apply(with_resources("gpu.test/card"))
    try:
        server.wait_until("it is in force", lambda: is_refused(server, body))
        refused = await refusal(user.create(PODS, body))
    finally:
        server.apply(with_resources())
        server.wait_until("it is out of force", lambda: not is_refused(server, body))

    assert "a pod with resources of container asks." in refused


def test_who_is_with_the_nodes_shows_static_pods_only(server: Cluster) -> None:
    """The API server's own plugin looks at kubelets by their names, and not at all everywhere."""
    who = (f"--as=system:serviceaccount:{NAMESPACE}:user", "--as-group=system:nodes")
    text = yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", **a_placed_pod()})

    refused = server.kubectl(*who, "create", "-f", "-", stdin=text, check=False).stderr

    assert "spec.nodeName" in refused


def test_a_kubelet_shows_a_static_pod(server: Cluster) -> None:
    server.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-a"}})
    node = server.get("node", "node-a")
    assert node is not None
    owner = {"apiVersion": "v1", "kind": "Node", "name": "node-a", "controller": True}
    mirror = {
        **metadata("mirror", annotations={"kubernetes.io/config.mirror": "abc"}),
        "ownerReferences": [{**owner, "uid": node["metadata"]["uid"]}],
    }
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        **a_placed_pod(containers=asking("akri.sh/camera")),
        "metadata": mirror,
    }

    as_user = server.kubectl("create", "-f", "-", stdin=yaml.safe_dump(body), check=False).stderr
    as_node = impersonate(server, "system:node:node-a", "create", "-f", "-", body=body)
    server.kubectl("delete", "node", "node-a")

    assert "spec.nodeName" in as_user
    assert as_node == ""
