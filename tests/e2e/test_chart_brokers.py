"""What the chart makes for brokers: rights, accounts, and Configurations that ask for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from driver.brokers.workloads import Wanted, wanted
from driver.running.settings import SharedSettings
from driver.running.settings import parse_settings as parse_driver_settings
from scheduler_plugin.arguments import parse_settings as parse_plugin_settings
from scheduler_plugin.settings import InUseSettings
from tests.e2e import rights
from tests.e2e.charts import EVERYTHING, SYSTEM, named, render
from tests.e2e.rights import BROKERS, UNSEEN, Right

DRIVER_ROLE, AKRI_ROLE = "moorage-driver-shared-brokers", "moorage-driver-shared-akri"
NAMES = {"udev": "akri-udev", "debugEcho": "akri-debug-echo"}
AS_DRIVER = {"kind": "ServiceAccount", "name": "driver-shared", "namespace": SYSTEM}


def allowing(*namespaces: str, **values: Any) -> list[Any]:
    return render({"brokers": {"namespaces": list(namespaces), **values}})


def made(objects: list[Any], *names: str) -> set[tuple[str, str, str]]:
    """Kind, namespace and name of the objects with these names."""
    of = ((o["kind"], o["metadata"]) for o in objects if o["metadata"]["name"] in names)
    return {(kind, found.get("namespace", ""), found["name"]) for kind, found in of}


def role(objects: list[Any], kind: str, name: str, namespace: str = "") -> list[Any]:
    """The rules of a role that is bound in its own place."""
    bound, found = (
        next(
            o
            for o in objects
            if (o["kind"], o["metadata"]["name"]) == (one, name)
            and o["metadata"].get("namespace", "") == namespace
        )
        for one in (f"{kind}Binding", kind)
    )
    assert (bound["roleRef"]["kind"], bound["roleRef"]["name"]) == (kind, name)
    rules: list[Any] = found["rules"]
    return rules


def shared_settings(objects: list[Any]) -> SharedSettings:
    spec = named(objects, "Deployment", "moorage-driver-shared")["spec"]["template"]["spec"]
    settings = parse_driver_settings(spec["containers"][0]["command"][1:], {})
    assert isinstance(settings, SharedSettings)
    return settings


def test_without_namespaces_nothing_is_granted() -> None:
    objects = allowing()

    assert not made(objects, DRIVER_ROLE, AKRI_ROLE, BROKERS)
    assert shared_settings(objects).broker_namespaces == frozenset()


def test_all_namespaces_have_roles_of_the_cluster_and_no_accounts() -> None:
    objects = allowing("*")

    assert made(objects, DRIVER_ROLE, AKRI_ROLE, BROKERS) == {
        ("ClusterRole", "", DRIVER_ROLE),
        ("ClusterRoleBinding", "", DRIVER_ROLE),
    }
    acting, *reading = role(objects, "ClusterRole", DRIVER_ROLE)
    assert (acting["verbs"], acting["resourceNames"]) == (["impersonate"], [BROKERS])
    assert {verb for rule in reading for verb in rule["verbs"]} == {"list", "watch"}
    assert named(objects, "ClusterRoleBinding", DRIVER_ROLE)["subjects"] == [AS_DRIVER]
    assert shared_settings(objects).broker_namespaces == {"*"}


def test_each_listed_namespace_has_a_role_and_an_account() -> None:
    objects = allowing("lab", "plant")

    assert made(objects, DRIVER_ROLE, BROKERS) == {
        (kind, namespace, name)
        for namespace in ("lab", "plant")
        for kind, name in (
            ("Role", DRIVER_ROLE),
            ("RoleBinding", DRIVER_ROLE),
            ("ServiceAccount", BROKERS),
            ("Role", BROKERS),
            ("RoleBinding", BROKERS),
        )
    }
    assert shared_settings(objects).broker_namespaces == {"lab", "plant"}
    for namespace in ("lab", "plant"):
        verbs = {v for rule in role(objects, "Role", BROKERS, namespace) for v in rule["verbs"]}
        assert verbs == {"create", "patch", "delete"}


def test_akris_controller_is_seen_in_namespaces_that_are_not_listed() -> None:
    (rule,) = role(allowing("lab"), "ClusterRole", AKRI_ROLE)

    assert rule == {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}


def test_accounts_may_be_left_to_the_administrator() -> None:
    objects = allowing("lab", createServiceAccounts=False)

    assert not made(objects, BROKERS)
    assert role(objects, "Role", DRIVER_ROLE, "lab")[0]["resourceNames"] == [BROKERS]


def test_the_account_may_have_another_name() -> None:
    objects = allowing("lab", serviceAccount="other")

    assert not made(objects, BROKERS)
    assert made(objects, "other") == {
        (kind, "lab", "other") for kind in ("ServiceAccount", "Role", "RoleBinding")
    }
    assert role(objects, "Role", DRIVER_ROLE, "lab")[0]["resourceNames"] == ["other"]
    (subject,) = named(objects, "RoleBinding", "other")["subjects"]
    assert (subject["name"], subject["namespace"]) == ("other", "lab")
    assert shared_settings(objects).broker_account == "other"


def wanted_by(key: str, **configuration: Any) -> Wanted:
    """What the Configuration of a handler wants, as the driver reads it."""
    found = EVERYTHING[key]["configuration"] | configuration
    objects = render({key: {"configuration": found}})
    body = named(objects, "Configuration", NAMES[key])
    return wanted({**body, "metadata": {**body["metadata"], "uid": "u"}})


def test_a_configuration_from_values_has_a_broker_and_both_services() -> None:
    found = wanted_by("udev")

    assert found.problems == ()
    assert found.workloads is not None
    (container,) = (found.workloads.pod or {})["containers"]
    assert container["image"] == "registry.example.com/viewer:1.0"
    assert container["env"] == [{"name": "FRAMES", "value": "10"}]
    assert container["resources"]["limits"]["{{PLACEHOLDER}}"] == "1"
    assert container["securityContext"] == {"privileged": True}
    assert (found.workloads.instance_service or {})["type"] == "NodePort"
    assert (found.workloads.configuration_service or {})["type"] == "ClusterIP"


def test_a_configuration_from_values_has_a_job_and_no_service() -> None:
    found = wanted_by("debugEcho", brokerJob={"image": {"repository": "scan"}, "backoffLimit": 5})

    assert found.problems == ()
    assert found.workloads is not None
    assert found.workloads.pod is None
    job = found.workloads.job or {}
    assert (job["backoffLimit"], job["parallelism"]) == (5, 1)
    assert job["template"]["spec"]["restartPolicy"] == "OnFailure"
    services = (found.workloads.instance_service, found.workloads.configuration_service)
    assert services == (None, None)


def test_services_may_be_switched_off() -> None:
    found = wanted_by("udev", createInstanceServices=False, createConfigurationService=False)

    assert found.workloads is not None
    services = (found.workloads.instance_service, found.workloads.configuration_service)
    assert services == (None, None)


@pytest.mark.parametrize(
    ("values", "looks"),
    [
        ({}, False),
        ({"brokers": {"namespaces": ["lab"]}}, True),
        ({"brokers": {"namespaces": ["*"]}}, True),
        ({"brokers": {"namespaces": ["lab"]}, "uninstall": {"purge": True}}, False),
    ],
    ids=["none allowed", "listed", "all", "purge"],
)
def test_an_uninstallation_looks_for_brokers_where_there_may_be_some(
    values: Mapping[str, Any], looks: bool
) -> None:
    objects = render(values)
    spec = named(objects, "Job", "moorage-in-use")["spec"]["template"]["spec"]
    settings = parse_plugin_settings(spec["containers"][0]["command"][1:], {})
    rules = named(objects, "ClusterRole", "moorage-in-use")["rules"]
    listed = {resource for rule in rules for resource in rule["resources"]}

    assert isinstance(settings, InUseSettings)
    assert settings.brokers is looks
    assert (listed >= {"pods", "jobs"}) is looks
    assert {verb for rule in rules for verb in rule["verbs"]} == {"list"}


def test_rights_of_brokers_are_compared_with_their_use() -> None:
    found = rights.in_release()

    assert found >= UNSEEN.keys()
    assert found >= {
        Right("driver-shared", "impersonate", "serviceaccounts"),
        Right("driver-shared", "watch", "pods"),
        Right(BROKERS, "create", "jobs.batch"),
    }
    assert Right("driver-shared", "create", "jobs.batch") not in found
