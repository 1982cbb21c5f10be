"""The manifests of Moorage's scheduler: two programs in one pod, each with its own account."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from local_cluster import scheduler_image
from scheduler_plugin.arguments import parse_settings
from scheduler_plugin.extender.scheduler_configuration import (
    PrintConfigSettings,
    scheduler_configuration,
)
from scheduler_plugin.serve_settings import ServeSettings
from tests.deploy.documents import DEPLOY, MANIFESTS, objects_of_kind

NAMESPACE = "moorage-system"
TOKEN_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"
PROGRAMS = ("kube-scheduler", "scheduler-plugin")


def named(kind: str, name: str) -> Any:
    (found,) = (o for o in objects_of_kind(kind) if o["metadata"]["name"] == name)
    return found


def pod() -> Any:
    return named("Deployment", "moorage-scheduler")["spec"]["template"]["spec"]


def container(name: str) -> Any:
    (found,) = (c for c in pod()["containers"] if c["name"] == name)
    return found


def volume(name: str) -> Any:
    (found,) = (v for v in pod()["volumes"] if v["name"] == name)
    return found


def configuration_text() -> str:
    text: str = named("ConfigMap", "moorage-scheduler")["data"]["config.yaml"]
    return text


def configuration() -> Any:
    return yaml.safe_load(configuration_text())


def plugin_flags() -> list[str]:
    """What follows the subcommand."""
    command: list[str] = container("scheduler-plugin")["command"]
    assert command[:2] == ["moorage-scheduler-plugin", "serve"]
    return command[2:]


def token_volume(program: str) -> Any:
    mounts = {mount["mountPath"]: mount["name"] for mount in container(program)["volumeMounts"]}
    return volume(mounts[TOKEN_FOLDER])


def test_the_plugin_s_token_is_of_the_account_that_the_policies_trust() -> None:
    sources = token_volume("scheduler-plugin")["projected"]["sources"]
    policies = (DEPLOY / "policies" / "claims.yaml").read_text()

    assert {"path": "token", "expirationSeconds": 3607} in [
        source.get("serviceAccountToken") for source in sources
    ]
    assert f"system:serviceaccount:{NAMESPACE}:{pod()['serviceAccountName']}" in policies


def test_kube_scheduler_s_token_is_of_another_account() -> None:
    secret = named("Secret", token_volume("kube-scheduler")["secret"]["secretName"])
    account = secret["metadata"]["annotations"]["kubernetes.io/service-account.name"]

    assert secret["type"] == "kubernetes.io/service-account-token"
    assert "data" not in secret
    assert account == "scheduler" != pod()["serviceAccountName"]


def test_neither_program_finds_the_other_one_s_token() -> None:
    tokens = {token_volume(program)["name"] for program in PROGRAMS}

    assert len(tokens) == len(PROGRAMS)
    assert pod()["automountServiceAccountToken"] is False
    for program in PROGRAMS:
        mounted = {mount["name"] for mount in container(program)["volumeMounts"]}
        assert len(mounted & tokens) == 1


def test_the_token_s_secret_is_applied_after_its_account() -> None:
    """The token controller deletes one whose account is not there."""
    files = sorted(path.name for path in MANIFESTS.iterdir())

    account = files.index("scheduler-plugin-serviceaccount.yaml")
    assert files.index("scheduler-plugin-token.yaml") > account


def test_kube_scheduler_is_configured_as_the_plugin_says() -> None:
    settings = parse_settings(["print-config", *plugin_flags()], {})

    assert isinstance(settings, PrintConfigSettings)
    printed = yaml.safe_dump(scheduler_configuration(settings), sort_keys=False)
    assert configuration_text() == printed


def test_the_plugin_takes_its_identity_from_the_pod() -> None:
    environment = {entry["name"]: entry["name"] for entry in container("scheduler-plugin")["env"]}

    settings = parse_settings(["serve", *plugin_flags()], environment)

    assert isinstance(settings, ServeSettings)
    assert (settings.instance, settings.kubeconfig) == ("POD_NAME", None)
    assert (settings.listening.host, settings.listening.tls) == ("127.0.0.1", None)


def test_kube_scheduler_may_write_the_lease_of_its_configuration_and_the_plugin_may_read_it() -> (
    None
):
    lease = configuration()["leaderElection"]["resourceName"]
    granted = {
        role: {
            verb
            for rule in named("Role", role)["rules"]
            if rule.get("resourceNames") == [lease]
            for verb in rule["verbs"]
        }
        for role in ("moorage-scheduler", "moorage-scheduler-plugin")
    }

    assert granted == {
        "moorage-scheduler": {"get", "update"},
        "moorage-scheduler-plugin": {"get"},
    }


def test_kube_scheduler_reads_the_configuration_that_is_mounted() -> None:
    kube_scheduler = container("kube-scheduler")
    (mount,) = (m for m in kube_scheduler["volumeMounts"] if m["name"] == "config")

    assert f"--config={mount['mountPath']}/config.yaml" in kube_scheduler["command"]
    assert volume("config")["configMap"]["name"] == "moorage-scheduler"


def test_kube_scheduler_has_kubernetes_own_roles_and_no_more() -> None:
    roles = {
        binding["roleRef"]["name"]
        for kind in ("ClusterRoleBinding", "RoleBinding")
        for binding in objects_of_kind(kind)
        for subject in binding["subjects"]
        if subject["name"] == "scheduler"
    }

    assert roles == {
        "extension-apiserver-authentication-reader",
        "moorage-scheduler",
        "system:kube-scheduler",
        "system:volume-scheduler",
    }


def test_probes_ask_the_plugin_where_its_pages_are() -> None:
    settings = parse_settings(["serve", *plugin_flags()], {})
    assert isinstance(settings, ServeSettings)
    host, port = settings.pages.host, settings.pages.port
    assert port != settings.listening.port
    plugin = container("scheduler-plugin")

    for probe in ("startupProbe", "livenessProbe"):
        assert f'HTTPConnection("{host}", {port},' in plugin[probe]["exec"]["command"][-1]


def test_a_rollout_does_not_wait_for_a_plugin_that_is_not_elected() -> None:
    assert "readinessProbe" not in container("scheduler-plugin")
    assert container("kube-scheduler")["readinessProbe"]["httpGet"]["path"] == "/readyz"


def test_no_pod_is_placed_past_the_plugin() -> None:
    (extender,) = configuration()["extenders"]

    assert not extender.get("ignorable")
    assert "managedResources" not in extender


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_have_no_privileges(program: str) -> None:
    context = container(program)["securityContext"]

    assert context == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    assert pod()["securityContext"]["runAsNonRoot"] is True
    assert container(program)["imagePullPolicy"] == "IfNotPresent"


def test_the_local_cluster_builds_the_image_of_the_manifest() -> None:
    assert container("kube-scheduler")["image"] == scheduler_image.TAG


def test_the_budget_is_about_the_pods_of_the_scheduler() -> None:
    spec = named("Deployment", "moorage-scheduler")["spec"]
    budget = named("PodDisruptionBudget", "moorage-scheduler")["spec"]

    assert budget["selector"] == spec["selector"]
