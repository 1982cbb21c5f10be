"""Moorage from its chart on a real cluster: from `helm install` to `helm uninstall`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from local_cluster.api import Cluster
from local_cluster.helm import run_helm
from moorage_demo.release import CHART
from tests.e2e import documented, rights
from tests.e2e.charts import SYSTEM, bare_cluster

WHOLE = "Is it whole?"
IN_SYSTEM = f"--namespace={SYSTEM}"
VALUES = "moorage-values.yaml"
OPTIONS = (IN_SYSTEM, "--wait", "--timeout=4m")
DEFINITIONS = ("queues.moorage.dev", "configurations.akri.sh", "instances.akri.sh")


@pytest.fixture(scope="module")
def bare() -> Iterator[Cluster]:
    """Nothing of Moorage's is there but the images."""
    with bare_cluster("helm") as own:
        yield own
        rights.note(own.logs)


def helm(cluster: Cluster, *args: str) -> str:
    return run_helm(*args, kubeconfig=cluster.kubeconfig).stdout


def finalizers(cluster: Cluster, kind: str) -> list[list[str]]:
    found = cluster.list(kind)
    return [o["metadata"]["finalizers"] for o in found if o["metadata"].get("finalizers")]


def authorities(cluster: Cluster) -> set[str]:
    """Whom the API server believes to be the webhook, in each registration."""
    return {
        entry["clientConfig"].get("caBundle", "")
        for kind in ("validatingwebhookconfiguration", "mutatingwebhookconfiguration")
        for entry in (cluster.get(kind, "moorage") or {})["webhooks"]
    }


def webhook_arguments(cluster: Cluster) -> list[str]:
    found = cluster.get("deployment", "moorage-webhook", namespace=SYSTEM) or {}
    arguments: list[str] = found["spec"]["template"]["spec"]["containers"][0]["args"]
    return arguments


def uid_of_user(cluster: Cluster) -> str:
    user = cluster.get("pod", "first", namespace="default") or {}
    assert user["status"]["phase"] == "Running"
    return str(user["metadata"]["uid"])


def forget_a_field(cluster: Cluster) -> None:
    """Make the definition of Configurations an older one."""
    found = cluster.get("crd", DEFINITIONS[1]) or {}
    (version,) = found["spec"]["versions"]
    del spec_fields(found)["uniqueDevices"]
    patch = {"spec": {"versions": [version]}}
    cluster.kubectl("patch", "crd", DEFINITIONS[1], "--type=merge", "-p", json.dumps(patch))


def spec_fields(definition: Any) -> Any:
    (version,) = definition["spec"]["versions"]
    return version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]


def test_a_release_lives_as_documented_and_leaves_nothing_that_blocks(
    bare: Cluster, tmp_path: Path
) -> None:
    documented.prepare(tmp_path)
    printed = documented.run(bare, documented.FIRST_CLAIM, tmp_path)
    assert "What `helm uninstall` leaves" in printed
    assert printed.splitlines()[-1].startswith("DEBUG_ECHO_DESCRIPTION")
    assert "=front door" in printed
    assert not [o for o in bare.list("queues,akric,pods") if named(o) == "moorage-test"]
    bare.wait_until("its queue is charged", lambda: finalizers(bare, "queues"))
    uid = uid_of_user(bare)

    a_look_at_it_finds_what_is_wrong(bare, tmp_path)
    an_upgrade_changes_what_it_says(bare, tmp_path)
    a_rollback_takes_it_back(bare)
    assert uid_of_user(bare) == uid

    documented.run(bare, "Uninstall", tmp_path)
    what_stays_is_free(bare)
    assert uid_of_user(bare) == uid

    everything_goes_if_asked_for(bare, tmp_path)


def named(body: Any) -> str:
    return str(body["metadata"]["name"])


def a_look_at_it_finds_what_is_wrong(cluster: Cluster, folder: Path) -> None:
    """And an upgrade mends it; `helm test` has looked before."""
    assert {line.split()[0] for line in documented.run(cluster, WHOLE, folder).splitlines()} == {
        "ok"
    }

    cluster.kubectl("delete", "validatingadmissionpolicy", "moorage-claims")
    cluster.kubectl("delete", "clusterrolebinding", "moorage-scheduler-plugin")
    with pytest.raises(AssertionError) as refused:
        documented.run(cluster, WHOLE, folder)

    assert "moorage-claims is not there" in str(refused.value)
    assert "scheduler-plugin may not get pods, list pods, watch pods and" in str(refused.value)
    helm(cluster, "rollback", "moorage", "1", *OPTIONS)
    documented.run(cluster, WHOLE, folder)


def an_upgrade_changes_what_it_says(cluster: Cluster, folder: Path) -> None:
    """Of the definitions, too, which Helm leaves as they are."""
    believed = authorities(cluster)
    forget_a_field(cluster)
    values = (folder / VALUES).read_text()
    (folder / VALUES).write_text(values + "webhook: {hold: Retry}\n")

    documented.run(cluster, "Upgrade", folder)

    assert "uniqueDevices" in spec_fields(cluster.get("crd", DEFINITIONS[1]))
    assert "--hold=Retry" in webhook_arguments(cluster)
    assert authorities(cluster) == believed
    assert "" not in believed


def a_rollback_takes_it_back(cluster: Cluster) -> None:
    believed = authorities(cluster)

    helm(cluster, "rollback", "moorage", "1", IN_SYSTEM, "--wait", "--timeout=4m")

    assert "--hold=Retry" not in webhook_arguments(cluster)
    assert authorities(cluster) == believed


def what_stays_is_free(cluster: Cluster) -> None:
    assert [o["metadata"]["name"] for o in cluster.list("queues")] == ["team"]
    assert [o["metadata"]["name"] for o in cluster.list("akric")] == ["echo"]
    assert finalizers(cluster, "queues") == finalizers(cluster, "akrii") == []
    assert not cluster.list("deviceclasses")
    cluster.wait_until("no slice is left", lambda: not cluster.list("resourceslices"), seconds=90)
    for kind in ("deployments", "daemonsets", "validatingadmissionpolicies", "clusterroles"):
        assert not [
            o["metadata"]["name"]
            for o in cluster.list(kind)
            if o["metadata"]["name"].startswith("moorage")
        ], kind
    cluster.kubectl("delete", "queue", "team", "--timeout=30s")
    cluster.kubectl("delete", "akric", "echo", "-n", "default", "--timeout=30s")


def everything_goes_if_asked_for(cluster: Cluster, folder: Path) -> None:
    asked = ("--set=uninstall.purge=true", f"--values={folder / VALUES}")
    helm(cluster, "install", "moorage", str(CHART), *OPTIONS, *asked)

    helm(cluster, "uninstall", "moorage", *OPTIONS)

    def definitions() -> set[str]:
        return {o["metadata"]["name"] for o in cluster.list("crds")} & set(DEFINITIONS)

    cluster.wait_until("no definition is left", lambda: not definitions(), seconds=60)
    assert yaml.safe_load(helm(cluster, "list", "--all-namespaces", "-o", "yaml")) == []


def test_two_releases_do_not_meet_in_one_cluster(bare: Cluster, tmp_path: Path) -> None:
    documented.prepare(tmp_path)
    values = f"--values={tmp_path / VALUES}"
    helm(bare, "install", "moorage", str(CHART), IN_SYSTEM, values, "--create-namespace")

    second = run_helm(
        *("install", "second", str(CHART), values, "--namespace=other", "--create-namespace"),
        kubeconfig=bare.kubeconfig,
        check=False,
    )

    assert second.returncode != 0
    assert "cannot be imported into the current release" in second.stderr
    helm(bare, "uninstall", "moorage", IN_SYSTEM, "--no-hooks")
