"""The chart: what it renders, what it refuses, and that a real API server takes all of it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from driver.configurations.configurations import judge
from driver.configurations.permissions import Account
from driver.discovery.handlers import check_details
from driver.running.node_settings import NodeSettings
from driver.running.settings import HandlerProcessSettings, PermissionsSettings, SharedSettings
from driver.running.settings import parse_settings as parse_driver_settings
from local_cluster.api import CONTROL_PLANE, Cluster, ClusterSettings
from local_cluster.helm import run_helm
from moorage_demo.release import CHART
from scheduler_plugin.arguments import parse_settings as parse_plugin_settings
from scheduler_plugin.dashboard_settings import DashboardSettings
from scheduler_plugin.extender.listening import Listening
from scheduler_plugin.serve_settings import ServeSettings
from scheduler_plugin.settings import InUseSettings
from tests.deploy.documents import CRDS
from tests.e2e import documented, others
from tests.e2e.charts import (
    EVERYTHING,
    OTHERS_APIS,
    SYSTEM,
    added_values,
    helm_on_values,
    named,
    refusal,
    render,
)
from tests.e2e.earlier import COMMIT, unpack
from tests.manifests import rendered, stale
from webhook.settings import parse_settings as parse_webhook_settings

KAIS = "kai.scheduler/queue"
MICROK8S = "/var/snap/microk8s/common/var/lib/kubelet"
CLUSTER_KINDS = (
    "ClusterRole",
    "ClusterRoleBinding",
    "FlowSchema",
    "MutatingWebhookConfiguration",
    "PriorityLevelConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
)
DIGEST = f"sha256:{'a' * 64}"
WRONG: Mapping[str, Any] = {
    "/webhook/hold": {"webhook": {"hold": "Maybe"}},
    "/webhook/certificates/source": {"webhook": {"certificates": {"source": "certManager"}}},
    "/image": {"image": {"tags": "1"}},
    "/image/digest": {"image": {"digest": "sha256:short"}},
    "/scheduler/replicas": {"scheduler": {"replicas": "two"}},
    "/scheduler/featureGates/GenericWorkload": {
        "scheduler": {"featureGates": {"GenericWorkload": "on"}}
    },
    "/driver/path": {"driver": {"path": "DRA"}},
    "/driver/node/instanceHashDigits": {"driver": {"node": {"instanceHashDigits": 7}}},
    "/driver/node/environment/denied/0": {"driver": {"node": {"environment": {"denied": ["A B"]}}}},
    "/driver/node/host/kubelet": {"driver": {"node": {"host": {"kubelet": "var/lib"}}}},
    "/driver/node/extraArgs/0": {"driver": {"node": {"extraArgs": ["x"]}}},
    "/accounting/drivers": {"accounting": {"drivers": []}},
    "/accounting/staleGangGrace": {"accounting": {"staleGangGrace": "never"}},
    "/accounting/queueLabel": {"accounting": {"queueLabel": "'; true"}},
    "/accounting/podGroups/0": {"accounting": {"podGroups": ["podgroups"]}},
    "/accounting/defaultQueue": {"accounting": {"defaultQueue": "No Queue"}},
    "/udev/configuration": {"udev": {"configuration": {"brokers": {}}}},
    "/udev/configuration/discoveryDetails": {"udev": {"configuration": {"enabled": True}}},
    "/custom/configuration/discoveryHandlerName": {"custom": {"configuration": {"enabled": True}}},
    "/brokers/namespaces/0": {"brokers": {"namespaces": ["Lab"]}},
    "/brokers/serviceAccount": {"brokers": {"serviceAccount": ""}},
    "/brokers/createServiceAccounts": {"brokers": {"createServiceAccounts": "no"}},
    "/onvif/discovery/enabled": {"onvif": {"discovery": {"enabled": "yes"}}},
    "": {"agent": {"full": True}},
}


def pod_spec(objects: list[Any], kind: str, name: str) -> Any:
    return named(objects, kind, name)["spec"]["template"]["spec"]


def container(objects: list[Any], kind: str, name: str, number: int = 0) -> Any:
    return pod_spec(objects, kind, name)["containers"][number]


def node_settings(objects: list[Any]) -> NodeSettings:
    found = container(objects, "DaemonSet", "moorage-driver-node")["command"]
    settings = parse_driver_settings(found[1:], {"NODE_NAME": "a"})
    assert isinstance(settings, NodeSettings)
    return settings


def plugin_settings(objects: list[Any]) -> ServeSettings:
    found = container(objects, "Deployment", "moorage-scheduler", 1)["command"]
    settings = parse_plugin_settings(found[1:], {})
    assert isinstance(settings, ServeSettings)
    return settings


def test_the_plain_manifests_are_what_the_chart_renders() -> None:
    assert list(stale(rendered())) == []


def test_a_change_to_a_plain_manifest_alone_is_noticed() -> None:
    changed = {**rendered(), "manifests/webhook-service.yaml": "", "manifests/new.yaml": ""}
    del changed["policies/pods.yaml"]

    assert list(stale(changed)) == [
        "differs from what the chart renders: deploy/manifests/webhook-service.yaml",
        "is missing: deploy/manifests/new.yaml",
        "no template renders deploy/policies/pods.yaml",
    ]


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["defaults", "everything"])
def test_helm_finds_nothing_to_complain_about(values: Mapping[str, Any]) -> None:
    apis = f"--api-versions={','.join(OTHERS_APIS)}"
    helm_on_values(["template", "moorage", str(CHART), apis], values)
    if not values:
        assert "0 chart(s) failed" in helm_on_values(["lint", "--strict", str(CHART)], {}).stdout


@pytest.mark.parametrize("path", WRONG)
def test_a_wrong_value_is_refused_with_its_path(path: str) -> None:
    assert f"at '{path}'" in refusal(WRONG[path])


def test_values_of_the_version_before_are_refused_with_what_to_type(tmp_path: Path) -> None:
    """As `--reuse-values` takes them: the chart's own, too, are those of the version before."""
    unpack(COMMIT, tmp_path / "before")
    chart = tmp_path / "moorage"
    shutil.copytree(CHART, chart)
    shutil.copy(tmp_path / "before/deploy/helm/moorage/values.yaml", chart)

    said = run_helm("template", "moorage", str(chart), check=False).stderr

    new = ", ".join(added_values(chart))
    if new:
        assert f"which has none for {new}: `helm upgrade --reset-then-reuse-values` keeps" in said
    else:
        assert "which has none for" not in said


def test_a_value_that_an_earlier_version_had_not_is_named(tmp_path: Path) -> None:
    chart = tmp_path / "moorage"
    shutil.copytree(CHART, chart)
    values = yaml.safe_load((chart / "values.yaml").read_text())
    del values["dashboard"]["replicas"]
    (chart / "values.yaml").write_text(yaml.safe_dump(values))

    said = run_helm("template", "moorage", str(chart), check=False).stderr

    assert added_values(chart) == ["dashboard.replicas"]
    sentence = (
        "which has none for dashboard.replicas: `helm upgrade --reset-then-reuse-values` keeps"
    )
    assert sentence in said


@pytest.mark.parametrize(
    ("values", "path", "missing"),
    [
        (
            {"webhook": {"certificates": {"source": "CertManager"}}},
            "webhook.certificates.source",
            "cert-manager.io/v1",
        ),
        ({"prometheus": {"enabled": True}}, "prometheus.enabled", "monitoring.coreos.com/v1"),
        ({"prometheus": {"rules": True}}, "prometheus.rules", "monitoring.coreos.com/v1"),
    ],
)
def test_what_the_cluster_lacks_is_said_before_anything_is_made(
    values: Mapping[str, Any], path: str, missing: str
) -> None:
    assert f"{path}: the cluster does not serve {missing}" in refusal(values)


def test_alerts_and_dashboard_are_those_of_the_files() -> None:
    found = render({"prometheus": {"rules": True, "dashboard": True}})

    rules = named(found, "PrometheusRule", "moorage")["spec"]
    assert rules == yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())
    shown = named(found, "ConfigMap", "moorage-dashboard")
    assert shown["metadata"]["labels"]["grafana_dashboard"] == "1"
    written = json.loads((CHART / "files" / "dashboard.json").read_text())
    assert json.loads(shown["data"]["moorage.json"]) == written


@pytest.mark.parametrize("namespace", ["", "moorage-driver"])
def test_permissions_are_printed_for_the_account_of_the_driver(namespace: str) -> None:
    """By the documented command, which runs in a pod of the shared driver."""
    objects = render({"driver": {"namespace": namespace}})
    given = container(objects, "Deployment", "moorage-driver-shared")["env"]
    environ = {one["name"]: one.get("value", SYSTEM) for one in given}

    settings = parse_driver_settings(["permissions"], environ)

    assert isinstance(settings, PermissionsSettings)
    node = named(objects, "DaemonSet", "moorage-driver-node")
    name = node["spec"]["template"]["spec"]["serviceAccountName"]
    assert settings.account == Account(node["metadata"]["namespace"], name)


def test_an_uninstallation_is_refused_while_devices_are_used_unless_a_value_forces_it() -> None:
    job = named(render({}), "Job", "moorage-in-use")
    (only,) = job["spec"]["template"]["spec"]["containers"]

    settings = parse_plugin_settings(only["command"][1:], {})

    assert isinstance(settings, InUseSettings)
    assert "`helm rollback moorage 1 --namespace moorage-system`" in settings.remedy
    assert "--set uninstall.force=true" in settings.remedy
    annotations = job["metadata"]["annotations"]
    assert annotations["helm.sh/hook"] == "pre-delete"
    assert annotations["helm.sh/hook-output-log-policy"] == "hook-failed"
    (rule,) = job["spec"]["podFailurePolicy"]["rules"]
    assert (rule["action"], rule["onExitCodes"]["values"]) == ("FailJob", [1])
    forced = render({"uninstall": {"force": True}})
    assert not [o for o in forced if "in-use" in o["metadata"]["name"]]


def test_what_a_deleted_namespace_leaves_is_found_by_the_documented_commands() -> None:
    """A hook that failed leaves its objects as well."""
    install = (CHART.parents[2] / "INSTALL.md").read_text()
    found = re.findall(
        r"^kubectl delete .* -l (\S+) (?:--all-namespaces )?(\S+)$", install, re.MULTILINE
    )
    kinds = {kind for _, listed in found for kind in listed.split(",")}
    assert {selector for selector, _ in found} == {"app.kubernetes.io/part-of=moorage"}
    # Queues are users', definitions stay, and with a namespace goes what is in it.
    gone = {None, SYSTEM, "moorage-driver"}
    for rendered_object in render(EVERYTHING):
        kind, described = rendered_object["kind"], rendered_object["metadata"]
        if described.get("namespace") in gone and kind not in CLUSTER_KINDS:
            continue
        assert f"{kind.lower()}s".replace("ys", "ies") in kinds, rendered_object
        assert described["labels"]["app.kubernetes.io/part-of"] == "moorage", rendered_object


def test_prometheus_gets_no_secret_with_the_key_of_an_authority() -> None:
    """The operator reads what a PodMonitor names, and copies it to where Prometheus runs."""
    objects = render({"prometheus": {"enabled": True}})
    ca = tls_of(named(objects, "PodMonitor", "moorage-webhook"))["ca"]

    assert ca == {"configMap": {"name": "moorage-webhook-tls-ca", "key": "ca.crt"}}
    made = named(objects, "ConfigMap", "moorage-webhook-tls-ca")
    # The webhook fills it; what an upgrade does not say, it leaves alone.
    assert "data" not in made
    rules = named(objects, "Role", "moorage-webhook")["rules"]
    assert {
        "apiGroups": [""],
        "resources": ["configmaps"],
        "resourceNames": ["moorage-webhook-tls-ca"],
        "verbs": ["get", "patch"],
    } in rules
    certificates = {"certificates": {"source": "CertManager"}}
    left = render({"prometheus": {"enabled": True}, "webhook": certificates})
    # cert-manager keeps the authority's key in a Secret of its own.
    assert "secret" in tls_of(named(left, "PodMonitor", "moorage-webhook"))["ca"]
    assert "moorage-webhook-tls-ca" not in str(left)


def tls_of(monitor: Any) -> Any:
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    return endpoint["tlsConfig"]


def test_network_handlers_are_not_beside_what_binds_pods() -> None:
    """In mode Cluster that is on control planes; elsewhere it has a network of its own."""
    cluster = {"mode": "Cluster"}
    anywhere: dict[str, Any] = {"networkHandlers": {"affinity": {"nodeAffinity": {}}}}

    def affinity(values: Mapping[str, Any]) -> Any:
        found = pod_spec(render(values), "DaemonSet", "moorage-network-handlers")
        return found.get("affinity")

    kept_off = affinity({"scheduler": cluster})["nodeAffinity"]
    (term,) = kept_off["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    role = {"key": "node-role.kubernetes.io/control-plane", "operator": "DoesNotExist"}
    assert term["matchExpressions"] == [role]
    assert affinity({}) is None
    assert affinity({"scheduler": cluster, "driver": anywhere}) == {"nodeAffinity": {}}
    plugin = pod_spec(render({}), "Deployment", "moorage-scheduler")
    assert "hostNetwork" not in plugin


def test_whom_prometheus_is_told_of_is_there_and_answers_it() -> None:
    """Each PodMonitor is for the pods of one workload in its namespace, by one of its ports."""
    objects = render({"prometheus": {"enabled": True}})

    assert {
        o["metadata"]["name"]: monitored_port(objects, o)
        for o in objects
        if o["kind"] == "PodMonitor"
    } == {
        "moorage-driver-node": 8090,
        "moorage-driver-shared": 8090,
        "moorage-scheduler-plugin": 10262,
        "moorage-webhook": 9443,
    }
    assert plugin_settings(objects).pages == Listening(host="", port=10262, tls=None)
    others = {"scheduler": {"mode": "Cluster"}, "webhook": {"enabled": False}}
    left = render({"prometheus": {"enabled": True}, **others})
    assert sum(o["kind"] == "PodMonitor" for o in left) == 2


def monitored_port(objects: list[Any], monitor: Any) -> int:
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    (template,) = (
        o["spec"]["template"]
        for o in objects
        if o["kind"] in ("DaemonSet", "Deployment")
        and o["metadata"]["namespace"] == monitor["metadata"]["namespace"]
        and wanted <= o["spec"]["template"]["metadata"]["labels"].items()
    )
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    named_ports = {
        port["name"]: port["containerPort"]
        for c in template["spec"]["containers"]
        for port in c.get("ports", ())
    }
    return int(endpoint.get("targetPort") or named_ports[endpoint["port"]])


def dashboard_settings(objects: list[Any]) -> DashboardSettings:
    found = container(objects, "Deployment", "moorage-dashboard")["command"]
    settings = parse_plugin_settings(found[1:], {})
    assert isinstance(settings, DashboardSettings)
    return settings


ALL_AROUND = {"dashboard": {"enabled": True}, "networkPolicies": {"enabled": True}}


def test_the_dashboard_is_a_deployment_where_that_is_wanted() -> None:
    objects = render(ALL_AROUND)
    service = named(objects, "Service", "moorage-dashboard")["spec"]
    (port,) = container(objects, "Deployment", "moorage-dashboard")["ports"]
    pod = named(objects, "Deployment", "moorage-dashboard")["spec"]["template"]
    (opened,) = named(objects, "NetworkPolicy", "moorage-dashboard")["spec"]["ingress"]

    assert service["selector"].items() <= pod["metadata"]["labels"].items()
    assert (service["ports"][0]["port"], service["ports"][0]["targetPort"]) == (80, port["name"])
    assert dashboard_settings(objects).listen_address.port == port["containerPort"]
    assert opened == {"ports": [{"port": port["containerPort"], "protocol": "TCP"}]}
    closed = render({"networkPolicies": {"enabled": True}})
    assert plugin_settings(closed).dashboard_address is None
    assert not [o for o in closed if "dashboard" in o["metadata"]["name"]]


def test_the_plugin_answers_the_dashboards_pods_alone() -> None:
    objects = render(ALL_AROUND)
    plugin, dashboard = plugin_settings(objects), dashboard_settings(objects)
    probes, asked = named(objects, "NetworkPolicy", "moorage-scheduler-plugin")["spec"]["ingress"]
    pod = named(objects, "Deployment", "moorage-dashboard")["spec"]["template"]
    (selected,) = asked["from"]

    assert plugin.dashboard_address is not None
    assert plugin.dashboard_address.port == dashboard.plugin_port == asked["ports"][0]["port"]
    assert plugin.pages.host == "127.0.0.1"
    assert [found["port"] for found in probes["ports"]] == [10259]
    assert selected["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert plugin.dashboard_secret == dashboard.secret_path
    secret = named(objects, "Secret", dashboard.secret_path.name)
    assert "data" not in secret, "an upgrade would take away what the plugin wrote"


@pytest.mark.parametrize("mode", ["Dedicated", "Cluster"])
def test_the_dashboard_is_told_what_the_plugin_is(mode: str) -> None:
    accounting = {"queueLabel": KAIS, "defaultQueue": "rest", "podGroups": []}
    scheduler = {"mode": mode, "name": "other"}
    values = {"dashboard": {"enabled": True}, "accounting": accounting, "scheduler": scheduler}
    objects = render(values, namespace="charged")
    found = dashboard_settings(objects)
    (rule,) = named(objects, "Role", "moorage-dashboard-lease")["rules"]

    assert found.accounting.queue_label == KAIS
    assert found.accounting.default_queue == "rest"
    assert found.accounting.scheduler_names == {"other"}
    assert found.pod_groups == ()
    assert found.secret_path.namespace == "charged"
    assert rule["resourceNames"] == [found.lease_path.name]
    if mode == "Dedicated":
        assert plugin_settings(objects).accounting == found.accounting
        assert plugin_settings(objects).lease == found.lease


def test_another_queue_label_is_the_same_everywhere() -> None:
    objects = render({"accounting": {"queueLabel": KAIS}})

    assert plugin_settings(objects).accounting.queue_label == KAIS
    arguments = container(objects, "Deployment", "moorage-webhook")["args"]
    assert parse_webhook_settings(arguments, {}).accounting.queue_label == KAIS
    labels = {
        variable["expression"]
        for policy in objects
        if policy["kind"] == "ValidatingAdmissionPolicy"
        for variable in policy["spec"].get("variables", ())
        if variable["name"] == "queueLabel"
    }
    assert labels == {f"'{KAIS}'"}
    registered = json.dumps(named(objects, "ValidatingWebhookConfiguration", "moorage"))
    assert registered.count(f"[?'{KAIS}']") == 2
    assert "[?'moorage.dev/queue']" not in registered


def test_another_namespace_is_the_same_everywhere() -> None:
    """Whom policies trust, where Lease and Secret are, whom the webhook leaves alone."""
    objects = render({"driver": {"namespace": "devices"}}, namespace="charged")

    assert SYSTEM not in json.dumps(objects)
    assert plugin_settings(objects).lease[0] == "charged"
    policies = json.dumps([o for o in objects if o["kind"] == "ValidatingAdmissionPolicy"])
    for account in ("devices:driver-node", "charged:driver-shared", "charged:scheduler-plugin"):
        assert f"'system:serviceaccount:{account}'" in policies
    (entry,) = named(objects, "MutatingWebhookConfiguration", "moorage")["webhooks"]
    excepted = entry["namespaceSelector"]["matchExpressions"][1]["values"]
    assert excepted == ["kube-system", "charged", "devices"]


def test_what_needs_the_host_can_have_a_namespace_of_its_own() -> None:
    values = {"driver": {"namespace": "devices"}, "namespace": {"create": True}}
    objects = render(values)
    reaching = {
        o["metadata"]["namespace"]
        for o in objects
        if o["kind"] in ("DaemonSet", "Deployment")
        and any("hostPath" in v for v in o["spec"]["template"]["spec"].get("volumes", ()))
    }
    levels = {
        o["metadata"]["name"]: o["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
        for o in objects
        if o["kind"] == "Namespace"
    }

    assert reaching == {"devices"}
    assert levels == {"devices": "privileged", SYSTEM: "restricted"}
    kept = [o for o in objects if o["kind"] in ("Secret", "Role", "ConfigMap")]
    assert {o["metadata"]["namespace"] for o in kept} == {SYSTEM}


def test_kubelets_folders_are_where_they_are() -> None:
    host = {"kubelet": MICROK8S, "cdi": "/etc/cdi", "discoveryHandlers": "/opt/akri"}
    objects = render({"driver": {"node": {"host": host}}})
    settings = node_settings(objects)
    pod = pod_spec(objects, "DaemonSet", "moorage-driver-node")
    mounts = {m["mountPath"] for m in pod["containers"][0]["volumeMounts"]}

    assert str(settings.kubelet_root) == MICROK8S
    assert str(settings.cdi_root) == "/etc/cdi"
    assert str(settings.handler_registration_socket).startswith("/opt/akri/")
    plugins, usual = f"{MICROK8S}/device-plugins", "/var/lib/kubelet/device-plugins"
    paths = {v["hostPath"]["path"] for v in pod["volumes"] if "hostPath" in v}
    under_own_paths = {m for m in mounts if not m.startswith("/host/dev")}
    assert paths - {"/dev"} == under_own_paths - {plugins} | {usual}
    assert {f"{MICROK8S}/plugins_registry", "/etc/cdi", "/opt/akri"} < mounts
    for handler in pod_spec(objects, "DaemonSet", "moorage-network-handlers")["containers"]:
        found = parse_driver_settings(handler["command"][1:], {})
        assert isinstance(found, HandlerProcessSettings)
        assert found.folder == settings.network_handlers_folder


def test_plugin_and_webhook_are_told_the_drivers_that_the_policy_names() -> None:
    objects = render({"accounting": {"drivers": ["moorage.dev", "gpu.example.com"]}})
    arguments = container(objects, "Deployment", "moorage-webhook")["args"]

    for settings in (plugin_settings(objects), parse_webhook_settings(arguments, {})):
        assert settings.accounting.accounted_drivers == ("moorage.dev", "gpu.example.com")


def test_values_reach_the_programs() -> None:
    objects = render(
        {
            "accounting": {
                "otherSchedulers": "Allow",
                "defaultQueue": "all",
                "nonPreemptiblePriority": 7,
                "orphanPolicy": "Unattributed",
                "ownerLifetime": "Claim",
                "staleGangGrace": 0,
                "podGroups": [],
            },
            "driver": {
                "path": "dra",
                "uniqueDevices": False,
                "logLevel": "DEBUG",
                "node": {
                    "instanceHashDigits": 8,
                    "environment": {
                        "denied": ["ACME_*", "CAMERA_KEY"],
                        "allowed": ["HTTPS_PROXY"],
                        "networkPrefixes": ["ONVIF_"],
                    },
                },
            },
            "webhook": {"hold": "Retry", "certificates": {"days": 30}},
            "scheduler": {"name": "devices"},
            "logFormat": "json",
            "tracing": {"endpoint": "http://collector:4317"},
        }
    )
    plugin, node = plugin_settings(objects), node_settings(objects)
    arguments = container(objects, "Deployment", "moorage-webhook")["args"]
    webhook = parse_webhook_settings(arguments, {})
    shared = parse_driver_settings(
        container(objects, "Deployment", "moorage-driver-shared")["command"][1:], {}
    )

    assert (plugin.accounting.default_queue, plugin.pod_groups) == ("all", ())
    assert plugin.accounting.non_preemptible_priority == 7
    assert plugin.accounting.orphan_policy == "Unattributed"
    assert plugin.accounting.owner_lifetime == "Claim"
    assert plugin.stale_gang_grace == timedelta()
    assert plugin.accounting.scheduler_names == {"devices"} == {*webhook.about_pods.scheduler_names}
    assert {s.log_format for s in (plugin, node, webhook, shared)} == {"json"}
    assert {s.tracing_endpoint for s in (plugin, node)} == {"http://collector:4317"}
    assert isinstance(shared, SharedSettings)
    for driver in (node, shared):
        assert (driver.path, driver.log_level) == ("dra", "DEBUG")
        assert driver.unique_devices_default == "false"
    assert node.instance_hash_digits == "8"
    assert node.denied_environment == ("ACME_*", "CAMERA_KEY")
    assert node.allowed_environment == ("HTTPS_PROXY",)
    assert node.network_handler_prefixes == ("ONVIF_",)
    assert (webhook.about_pods.hold, webhook.about_pods.other_schedulers) == ("Retry", "Allow")
    bound = {o["metadata"]["name"] for o in objects if o["kind"].endswith("PolicyBinding")}
    policies = {o["metadata"]["name"] for o in objects if o["kind"].endswith("AdmissionPolicy")}
    assert policies - bound == {"moorage-allocations"}
    assert "moorage-podgroups" not in policies


@pytest.mark.parametrize(
    ("gates", "more"),
    [
        ({}, []),
        (
            {"GenericWorkload": True, "DRAWorkloadResourceClaims": True, "AllAlpha": False},
            ["--feature-gates=AllAlpha=false,DRAWorkloadResourceClaims=true,GenericWorkload=true"],
        ),
    ],
)
def test_kube_scheduler_has_the_feature_gates_of_the_control_plane(
    gates: Mapping[str, bool], more: list[str]
) -> None:
    objects = render({"scheduler": {"featureGates": gates}})

    command = container(objects, "Deployment", "moorage-scheduler")["command"]
    assert command == ["kube-scheduler", "--config=/etc/kubernetes/scheduler/config.yaml", *more]


def test_other_vendors_devices_can_be_accounted() -> None:
    accounting = {"drivers": ["moorage.dev", "gpu.example.com"], "resources": ["example.com/gpu"]}
    objects = render({"accounting": accounting})
    policies = json.dumps([o for o in objects if o["kind"] == "ValidatingAdmissionPolicy"])
    registrations = json.dumps([o for o in objects if o["kind"].endswith("WebhookConfiguration")])

    assert "\"['moorage.dev', 'gpu.example.com']\"" in policies
    assert "\"['example.com/gpu']\"" in policies
    assert registrations.count("name in ['example.com/gpu']") == 2


def test_images_are_named_by_digest_where_there_is_one() -> None:
    image = {"repository": "registry.example.com/moorage", "tag": "1", "digest": DIGEST}
    objects = render({"image": image}, version="1.34.5-gke.1200")
    images = {
        c["image"]
        for o in objects
        if o["kind"] in ("DaemonSet", "Deployment")
        for c in o["spec"]["template"]["spec"]["containers"]
    }

    assert images == {
        f"registry.example.com/moorage@{DIGEST}",
        "kube-scheduler:v1.34.5",
    }


def test_a_handler_that_is_not_wanted_does_not_run() -> None:
    off = {"discovery": {"enabled": False}}
    objects = render({"debugEcho": off, "onvif": off})
    (handler,) = pod_spec(objects, "DaemonSet", "moorage-network-handlers")["containers"]

    assert handler["name"] == "opcua"
    assert node_settings(objects).embedded_handlers == {"udev"}
    names = [o["metadata"]["name"] for o in render({"onvif": off, "opcua": off})]
    assert "moorage-network-handlers" not in names


def test_without_its_own_authority_the_webhook_may_write_nothing() -> None:
    objects = render(EVERYTHING)
    account = [
        o["metadata"]["name"]
        for o in objects
        if o["kind"] == "RoleBinding" and o["subjects"][0]["name"] == "webhook"
    ]
    verbs = {
        v for r in named(objects, "ClusterRole", "moorage-webhook")["rules"] for v in r["verbs"]
    }
    pod = pod_spec(objects, "Deployment", "moorage-webhook")
    (mount,) = pod["containers"][0]["volumeMounts"]
    settings = parse_webhook_settings(pod["containers"][0]["args"], {})
    (volume,) = pod["volumes"]
    certificate = named(objects, "Certificate", "moorage-webhook")["spec"]

    assert account == []
    assert verbs == {"get", "list", "watch"}
    assert mount["mountPath"] in str(settings.certificate)
    assert volume["secret"]["secretName"] == certificate["secretName"]
    for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"):
        annotations = named(objects, kind, "moorage")["metadata"]["annotations"]
        assert annotations == {"cert-manager.io/inject-ca-from": f"{SYSTEM}/moorage-webhook"}


def test_configurations_from_values_are_accepted_by_the_driver() -> None:
    stored = {"uid": "u", "creationTimestamp": "2026-01-01T00:00:00+00:00"}
    found = {
        o["metadata"]["name"]: judge(
            {**o, "metadata": {**o["metadata"], **stored}},
            lambda name, details: () if name == "other" else check_details(name, details),
            unique_devices_default=True,
        )
        for o in render(EVERYTHING)
        if o["kind"] == "Configuration"
    }

    assert found.keys() == {
        "akri-udev",
        "akri-debug-echo",
        "akri-onvif",
        "akri-opcua",
        "akri-custom",
        "moorage-test",  # That of `helm test`.
    }
    assert [verdict.problems for verdict in found.values()] == [()] * len(found)


@pytest.mark.parametrize("text", documented.values())
def test_documented_values_are_values(text: str) -> None:
    assert render(yaml.safe_load(text))


def test_the_chart_in_one_file_is_all_of_it(tmp_path: Path) -> None:
    """As it is carried to where nothing can be fetched."""
    run_helm("package", str(CHART), f"--destination={tmp_path}")
    (file,) = tmp_path.iterdir()

    command = ["template", "moorage", str(file), f"--namespace={SYSTEM}", "--kube-version=1.37.2"]
    packed = list(filter(None, yaml.safe_load_all(helm_on_values(command, {}).stdout)))

    assert packed == render({})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """An API server of its own with the definitions of everybody, and the objects' namespaces."""
    work_dir = tmp_path_factory.mktemp("chart") / "cluster"
    own = Cluster.up(ClusterSettings(work_dir=work_dir, nodes=0, parts=CONTROL_PLANE))
    try:
        for definitions in (CRDS, *others.definitions()):
            # Others' are too long for the annotation of client-side apply.
            own.kubectl("apply", "--server-side", "-f", str(definitions))
        own.kubectl("wait", "crd", "--all", "--for=condition=Established", "--timeout=30s")
        for name in (SYSTEM, "moorage-driver", "lab"):
            own.kubectl("create", "namespace", name)
            # No controller is there that would.
            own.kubectl("create", "serviceaccount", "default", f"--namespace={name}")
        yield own
    finally:
        own.down()


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["defaults", "everything"])
def test_a_real_api_server_takes_every_object(values: Mapping[str, Any], server: Cluster) -> None:
    objects = render(values)
    # A pod is refused whose account does not exist, and a dry run makes none.
    pods = [o for o in objects if o["kind"] == "Pod"]
    accounts = {pod["spec"].get("serviceAccountName", "default") for pod in pods}
    for o in objects:
        if o["kind"] == "ServiceAccount" and o["metadata"]["name"] in accounts:
            server.apply([o])

    done = server.kubectl(
        *("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-"),
        stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}),
    )

    assert len(done.stdout.splitlines()) == len(objects) > 40
    assert "Warning" not in done.stderr


def test_what_was_applied_becomes_a_release(server: Cluster) -> None:
    """Last: it leaves a registration whose webhook nobody serves."""
    applied = "app.kubernetes.io/part-of=moorage"
    folders = [CHART.parents[1] / name for name in ("manifests", "policies", "webhook")]
    server.kubectl("apply", *[f"--filename={folder}" for folder in folders])
    before = {o["metadata"]["uid"] for o in server.list("deployments", selector=applied)}

    run_helm(
        *("install", "moorage", str(CHART), f"--namespace={SYSTEM}", "--skip-crds"),
        *("--take-ownership", "--force-conflicts"),
        "--set=scheduler.image.repository=other/kube-scheduler",
        kubeconfig=server.kubeconfig,
    )

    found = server.list("deployments", selector=applied)
    assert {o["metadata"]["uid"] for o in found} == before != set()
    for o in found:
        assert o["metadata"]["annotations"]["meta.helm.sh/release-name"] == "moorage"
    assert "other/kube-scheduler" in json.dumps(found)
