"""The manifests: one kind a file, least privilege, and parts that fit together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from driver.api import DRIVER_NAME, NODE_LABEL
from driver.handlers.report_limits import NETWORK_HANDLERS
from driver.plumbing.kubelet_sockets import KubeletPaths
from driver.running.monitoring import ready_main
from driver.running.node_settings import NodeSettings
from driver.running.settings import HandlerProcessSettings, SharedSettings, parse_settings
from scheduler_plugin.asking.apiserver_snapshots import BESIDE, NEEDED, OPTIONAL
from tests.deploy.documents import DEPLOY, EXAMPLES, MANIFESTS, documents_in, objects_of_kind

NAMESPACE = "moorage-system"
CLUSTER_KINDS = {
    "ClusterRole",
    "ClusterRoleBinding",
    "FlowSchema",
    "Namespace",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
}
# Kubernetes keeps this one where the readers must be bound to it.
ELSEWHERE = {"moorage-scheduler-authentication-reader": "kube-system"}
# Roles that Kubernetes itself has.
BUILT_IN = {
    "extension-apiserver-authentication-reader",
    "system:kube-scheduler",
    "system:volume-scheduler",
}
FILES = documents_in(MANIFESTS)
DAEMON, DEPLOYMENT = ("DaemonSet", "moorage-driver-node"), ("Deployment", "moorage-driver-shared")


def named(kind: str, name: str) -> Any:
    (found,) = (o for o in objects_of_kind(kind) if o["metadata"]["name"] == name)
    return found


def rules() -> list[tuple[str, Any]]:
    roles = [*objects_of_kind("ClusterRole"), *objects_of_kind("Role")]
    return [(role["metadata"]["name"], rule) for role in roles for rule in role["rules"]]


def pod_spec(kind: str, name: str) -> Any:
    return named(kind, name)["spec"]["template"]["spec"]


def driver_settings(pod: Any) -> NodeSettings | SharedSettings:
    """The settings that the container's command and environment give."""
    (container,) = pod["containers"]
    command, *arguments = container["command"]
    assert command == "moorage-driver"
    environment = {entry["name"]: f"value-of-{entry['name']}" for entry in container["env"]}
    settings = parse_settings(arguments, environment)
    assert isinstance(settings, NodeSettings | SharedSettings)
    return settings


@pytest.mark.parametrize("folder", ["manifests", "policies"])
def test_a_file_holds_one_kind(folder: str) -> None:
    for path, documents in documents_in(DEPLOY / folder).items():
        assert len({document["kind"] for document in documents}) == 1, path


def test_the_namespace_is_applied_first() -> None:
    (namespace,) = next(iter(FILES.values()))

    assert namespace["kind"] == "Namespace"
    assert namespace["metadata"]["name"] == NAMESPACE


def test_everything_else_lies_in_the_namespace() -> None:
    for documents in FILES.values():
        for document in documents:
            metadata = document["metadata"]
            own = None if document["kind"] in CLUSTER_KINDS else NAMESPACE
            assert metadata.get("namespace") == ELSEWHERE.get(metadata["name"], own), metadata


def test_no_rule_has_a_wildcard() -> None:
    for name, rule in rules():
        words = [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
        assert not [word for word in words if "*" in word], name


def test_no_rule_reaches_secrets_but_the_webhook_s_own() -> None:
    reached = {(name, resource) for name, rule in rules() for resource in rule["resources"]}
    secret = {"secrets", "configmaps", "serviceaccounts/token"}

    assert {found for found in reached if found[1] in secret} == {
        ("moorage-webhook", "secrets"),
        ("moorage-webhook", "configmaps"),
    }
    (told,) = (rule for name, rule in rules() if "configmaps" in rule["resources"])
    assert told["resourceNames"] == ["moorage-webhook-tls-ca"]
    assert [o["metadata"]["name"] for o in objects_of_kind("Role")].count("moorage-webhook") == 1


def test_only_the_scheduler_plugin_writes_pods() -> None:
    about_pods = [
        (name, resource, verb)
        for name, rule in rules()
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if resource.startswith(("pods", "bindings")) and verb not in ("get", "list", "watch")
    ]

    assert about_pods == [
        ("moorage-scheduler-plugin", "pods/binding", "create"),
        ("moorage-scheduler-plugin", "pods", "patch"),
        ("moorage-scheduler-plugin", "pods/status", "patch"),
        ("moorage-scheduler-plugin", "pods/eviction", "create"),
    ]


def granted(name: str) -> set[str]:
    """What a ClusterRole lets users list, as resource.group."""
    return {
        f"{resource}.{group}".rstrip(".")
        for role, rule in rules()
        if role == name
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        if "list" in rule["verbs"]
    }


def test_the_role_for_the_whole_cluster_reads_all_that_kubectl_moorage_does() -> None:
    read = {f"{kind.plural}.{kind.group}".rstrip(".") for kind in (*NEEDED, *OPTIONAL, *BESIDE)}

    assert granted("moorage-cluster-view") >= {*read, "events.events.k8s.io"}


def test_the_roles_for_users_only_read_and_keep_properties_from_those_who_read_no_secrets() -> None:
    users = ("moorage-view", "moorage-view-properties", "moorage-cluster-view")
    verbs = {verb for name, rule in rules() if name in users for verb in rule["verbs"]}

    assert verbs == {"get", "list", "watch"}
    assert not [kind for kind in granted("moorage-view") if kind.endswith(".akri.sh")]
    aggregated = {
        name: [
            key for key in named("ClusterRole", name)["metadata"]["labels"] if "aggregate" in key
        ]
        for name in users
    }
    prefix = "rbac.authorization.k8s.io/aggregate-to-"
    assert aggregated == {
        users[0]: [f"{prefix}view"],
        users[1]: [f"{prefix}edit"],
        users[2]: [],
    }


def test_a_node_reads_configurations_and_only_patches_their_status() -> None:
    granted = [
        (set(rule["resources"]), set(rule["verbs"]))
        for name, rule in rules()
        if name == "moorage-driver-node" and "akri.sh" in rule["apiGroups"]
    ]

    assert ({"configurations"}, {"list", "watch"}) in granted
    assert ({"configurations/status"}, {"patch"}) in granted


def test_bindings_name_roles_and_accounts_that_exist() -> None:
    accounts = {o["metadata"]["name"] for o in objects_of_kind("ServiceAccount")}
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        for binding in objects_of_kind(kind):
            if binding["roleRef"]["name"] not in BUILT_IN:
                named(binding["roleRef"]["kind"], binding["roleRef"]["name"])
            assert {subject["name"] for subject in binding["subjects"]} <= accounts
            assert {subject["namespace"] for subject in binding["subjects"]} == {NAMESPACE}


def test_policies_are_about_the_account_that_runs_the_driver() -> None:
    accounts = {
        "node": pod_spec("DaemonSet", "moorage-driver-node")["serviceAccountName"],
        "shared": pod_spec("Deployment", "moorage-driver-shared")["serviceAccountName"],
    }
    for policy in objects_of_kind("ValidatingAdmissionPolicy"):
        account = accounts[policy["metadata"]["labels"]["app.kubernetes.io/component"]]
        user = f"system:serviceaccount:{NAMESPACE}:{account}"
        assert policy["spec"]["failurePolicy"] == "Fail"
        (condition,) = policy["spec"]["matchConditions"]
        assert condition["expression"] == f"request.userInfo.username == '{user}'"


def test_policies_use_the_driver_s_names() -> None:
    slices = str(named("ValidatingAdmissionPolicy", "moorage-driver-node-slices"))
    instances = str(named("ValidatingAdmissionPolicy", "moorage-driver-node-instances"))

    assert f"'{DRIVER_NAME}'" in slices
    assert f"'{NODE_LABEL}'" in instances


def test_the_node_driver_is_told_its_node_and_pod() -> None:
    settings = driver_settings(pod_spec("DaemonSet", "moorage-driver-node"))

    assert isinstance(settings, NodeSettings)
    assert settings.node_name == "value-of-NODE_NAME"
    assert settings.pod_uid == "value-of-POD_UID"


def test_the_node_driver_sees_the_kubelet_s_folders_under_their_own_paths() -> None:
    pod = pod_spec("DaemonSet", "moorage-driver-node")
    settings = driver_settings(pod)
    (container,) = pod["containers"]
    empty = {volume["name"] for volume in pod["volumes"] if "emptyDir" in volume}
    seen = [mount for mount in container["volumeMounts"] if mount["name"] not in empty]
    mounts = {mount["name"]: mount["mountPath"] for mount in seen}
    volumes = {
        volume["name"]: volume["hostPath"]["path"]
        for volume in pod["volumes"]
        if volume["name"] not in empty
    }

    assert isinstance(settings, NodeSettings)
    assert (mounts.pop("dev"), volumes.pop("dev")) == (str(settings.host_dev), "/dev")
    assert mounts == volumes
    assert {
        str(settings.kubelet_root / "plugins" / DRIVER_NAME),
        str(settings.kubelet_root / "plugins_registry"),
        str(settings.cdi_root),
        str(settings.handler_registration_socket and settings.handler_registration_socket.parent),
    } <= set(mounts.values())


def test_the_node_driver_writes_nowhere_in_the_host_s_dev() -> None:
    """A device cgroup lets every container open terminals; in /dev/shm each root may write."""
    pod = pod_spec("DaemonSet", "moorage-driver-node")
    (container,) = pod["containers"]
    mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
    empty = {volume["name"] for volume in pod["volumes"] if "emptyDir" in volume}

    dev = mounts["/host/dev"]
    assert (dev["readOnly"], dev["recursiveReadOnly"]) == (True, "IfPossible")
    assert "mountPropagation" not in dev, "the API server refuses both"
    for hidden in ("/host/dev/pts", "/host/dev/shm"):
        assert mounts[hidden]["readOnly"]
        assert mounts[hidden]["name"] in empty


def test_the_shared_driver_s_lease_is_in_its_namespace() -> None:
    pod = pod_spec("Deployment", "moorage-driver-shared")
    settings = driver_settings(pod)

    assert isinstance(settings, SharedSettings)
    assert settings.namespace == "value-of-POD_NAMESPACE"
    assert settings.holder.startswith("value-of-POD_NAME_")


@pytest.mark.parametrize(
    ("kind", "name"),
    [("DaemonSet", "moorage-driver-node"), ("Deployment", "moorage-driver-shared")],
)
def test_pods_have_no_privileges(kind: str, name: str) -> None:
    pod = pod_spec(kind, name)
    (container,) = pod["containers"]
    context = container["securityContext"]

    assert not context.get("privileged")
    assert context["allowPrivilegeEscalation"] is False
    assert context["readOnlyRootFilesystem"] is True
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert container["image"] == "moorage:local"
    assert container["imagePullPolicy"] == "IfNotPresent"


@pytest.mark.parametrize("workload", [DAEMON, DEPLOYMENT], ids=["node", "shared"])
def test_probes_go_where_the_driver_answers(workload: tuple[str, str]) -> None:
    pod = pod_spec(*workload)
    address = driver_settings(pod).metrics_address
    (container,) = pod["containers"]
    ports = {port["name"]: port["containerPort"] for port in container.get("ports", ())}
    probe = container["readinessProbe"]["httpGet"]

    assert address is not None
    assert ports.get(probe["port"], probe["port"]) == address.port
    assert probe["path"] == "/readyz"
    fits = not (pod.get("hostNetwork") and ports)
    assert fits, "two pods of an update would not fit on a node"


BUSY = [DAEMON, DEPLOYMENT, ("Deployment", "moorage-webhook")]


@pytest.mark.parametrize("workload", BUSY, ids=lambda workload: workload[1])
def test_nobody_is_ended_for_being_slow(workload: tuple[str, str]) -> None:
    """Who is stuck ends itself, see `kube.processes.stuck_processes`; no probe can tell."""
    (container,) = pod_spec(*workload)["containers"]

    assert "livenessProbe" not in container
    assert container["readinessProbe"]["timeoutSeconds"] >= 5
    assert container["resources"]["requests"]["cpu"] == "100m", "of a busy node's shares"


def test_until_a_pod_is_ready_no_other_pod_of_its_node_is_asked() -> None:
    """The kubelet asks nothing else before this one probe was answered."""
    pod = pod_spec(*DAEMON)
    (container,) = pod["containers"]
    *command, folder = container["startupProbe"]["exec"]["command"]

    assert command == ["python3.13", "-m", ready_main.__name__]
    settings = driver_settings(pod)
    assert isinstance(settings, NodeSettings)
    assert folder == str(KubeletPaths(settings.kubelet_root).data)
    assert "POD_UID" in {entry["name"] for entry in container["env"]}


@pytest.mark.parametrize("path", documents_in(EXAMPLES), ids=lambda path: path.name)
def test_examples_run_a_handler_without_privileges_where_the_driver_takes_it(path: Path) -> None:
    (workload,) = documents_in(EXAMPLES)[path]
    pod = workload["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    environment = {entry["name"]: "10.1.2.3" for entry in container.get("env", ())}
    settings = parse_settings(container["command"][1:], environment)

    assert isinstance(settings, HandlerProcessSettings)
    assert path.name == f"handler-{settings.name}-daemonset.yaml"
    driver = driver_settings(pod_spec(*DAEMON))
    assert isinstance(driver, NodeSettings)
    assert settings.name not in driver.handler_limits.reserved
    _runs_where_the_driver_takes_it(pod, container, settings, driver)
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "privileged": False,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def _runs_where_the_driver_takes_it(
    pod: dict[str, Any],
    container: dict[str, Any],
    settings: HandlerProcessSettings,
    driver: NodeSettings,
) -> None:
    assert settings.folder == driver.network_handlers_folder
    assert settings.place.address is None, "in that folder it may register at a socket only"
    (mount,), (volume,) = container["volumeMounts"], pod["volumes"]
    assert mount["mountPath"] == volume["hostPath"]["path"] == str(settings.folder)
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["runAsUser"]
    assert pod["securityContext"]["runAsGroup"] == driver.network_handlers_group


def test_handlers_of_networks_run_without_privileges_where_the_driver_takes_them() -> None:
    driver = driver_settings(pod_spec(*DAEMON))
    pod = pod_spec("DaemonSet", "moorage-network-handlers")
    assert isinstance(driver, NodeSettings)
    found = [parse_settings(c["command"][1:], {}) for c in pod["containers"]]

    names = {one.name for one in found if isinstance(one, HandlerProcessSettings)}
    assert names == set(NETWORK_HANDLERS)
    assert names.isdisjoint(driver.embedded_handlers)
    assert names.isdisjoint(driver.handler_limits.reserved)
    for one, container in zip(found, pod["containers"], strict=True):
        assert isinstance(one, HandlerProcessSettings)
        assert one.folder == driver.network_handlers_folder
        (mount,), (volume,) = container["volumeMounts"], pod["volumes"]
        assert mount["mountPath"] == volume["hostPath"]["path"] == str(one.folder)
    groups = pod_spec(*DAEMON)["securityContext"]["supplementalGroups"]
    assert [driver.network_handlers_group] == groups
    assert pod["securityContext"]["runAsGroup"] in groups
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["automountServiceAccountToken"] is False
