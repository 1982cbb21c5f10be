"""From the version that was landed before to this one and back, while pods come and go."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local_cluster import programs
from local_cluster.api import Cluster, ClusterSettings
from local_cluster.go_toolchain import ensure_built
from local_cluster.helm import run_helm
from moorage_demo.release import CHART
from tests.e2e import documented, loads, rights
from tests.e2e.charts import SYSTEM, added_values, bare_cluster
from tests.e2e.earlier import EARLIER_CHART, TAG, Earlier, earlier
from tests.e2e.loads import Load, under_load
from tests.e2e.sharing import audit

IN_SYSTEM = f"--namespace={SYSTEM}"
WAITS = (IN_SYSTEM, "--wait", "--timeout=4m")
VALUES = "moorage-values.yaml"
KUBERNETES = os.environ.get("MOORAGE_KUBERNETES", ClusterSettings.kubernetes)
OLDER, NEWER = f"moorage:{TAG}", "moorage:local"
ASKS = "asks-for-brokers"
BROKERS = ("FieldsIgnored", "BrokersReady")
KILLED_SECONDS = 20.0
"""For so long the API server may go on to ask a webhook's replica that was killed."""


@contextmanager
def earlier_release(kubernetes: str, folder: Path, *, nodes: int = 1) -> Iterator[Cluster]:
    """A cluster on which the version before is installed as its own INSTALL.md said."""
    before = earlier(folder)
    with bare_cluster(f"upgrade-{kubernetes}", kubernetes, nodes=nodes) as cluster:
        cluster.load_image(before.image)
        documented.prepare(folder, "dra" if cluster.settings.has_dra_by_hand else "auto")
        install(cluster, before, folder)
        yield cluster


def install(cluster: Cluster, version: Earlier, folder: Path) -> None:
    options = (*WAITS, "--create-namespace", f"--values={folder / VALUES}")
    helm(cluster, "install", "moorage", str(version.chart), *options, f"--set=image.tag={TAG}")


def helm(cluster: Cluster, *args: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return run_helm(*args, kubeconfig=cluster.kubeconfig, check=check)


def images(cluster: Cluster) -> set[str]:
    """What Moorage's running pods are of, but for kube-scheduler."""
    return {
        container["image"]
        for pod in cluster.list("pods", selector="app.kubernetes.io/part-of=moorage")
        for container in pod["spec"]["containers"]
        if "kube-scheduler" not in container["image"] and pod["status"]["phase"] == "Running"
    }


def status(cluster: Cluster) -> str:
    release = json.loads(helm(cluster, "status", "moorage", IN_SYSTEM, "-o", "json").stdout)
    return str(release["info"]["status"])


def test_pods_come_and_go_through_upgrades_and_rollbacks(tmp_path: Path) -> None:
    with earlier_release(KUBERNETES, tmp_path, nodes=2) as cluster:
        assert images(cluster) == {OLDER}
        with under_load(cluster, claims=True) as load:
            load.goes_on()

            an_upgrade_from_the_version_before(cluster, load, tmp_path)

            an_upgrade_is_killed_half_way(cluster, load, tmp_path)
            what_was_killed_is_mended(cluster, tmp_path)
            load.goes_on()
            assert not load.seen.refused
            assert gaps(cluster) == []

            # The version before did not wait with the end of a driver for the next one.
            definitions_have_a_later_field(cluster)
            helm(cluster, "rollback", "moorage", "1", *WAITS)
            assert_all_of(cluster, OLDER)
            load.goes_on()
            assert not load.seen.refused
            assert [has_later_field(cluster, *found) for found in LATER] == [True, True]

            an_upgrade_that_keeps_what_was_set(cluster, load, tmp_path)
            a_replica_of_the_webhook_is_killed(cluster, load)
            load.goes_on()

        assert load.seen.wrong == set()
        assert load.seen.nodes == {node.name for node in cluster.nodes}
        assert bindings_of_each_pod(cluster) == {1}
        cluster.wait_until(
            "only the keepers' claim is charged, once",
            lambda: load.charges() == {"red": 1, "blue": 0},
            seconds=60,
        )
        rights.note(cluster.logs)


def test_without_dra_pods_come_and_go_through_an_upgrade_until_the_release_goes(
    tmp_path: Path,
) -> None:
    with earlier_release("1.33", tmp_path) as cluster:
        with under_load(cluster, claims=False) as load:
            load.goes_on()
            asks_for_brokers(cluster)
            wait_brokers_condition(cluster, "FieldsIgnored", "True")
            an_upgrade_from_the_version_before(cluster, load, tmp_path)
            wait_brokers_condition(cluster, "BrokersReady", "False")
            the_drivers_are_replaced_once_more(cluster)
            load.goes_on()

        assert load.seen.refused == []
        assert load.seen.wrong == set()
        cluster.wait_until(
            "each keeper is charged once",
            lambda: load.charges() == {"red": 1, "blue": 1},
            seconds=60,
        )
        cluster.kubectl("delete", "pods", "--all", "-n", loads.NAMESPACE, "--timeout=60s")
        documented.run(cluster, "Uninstall", tmp_path)
        cluster.wait_until(
            "the kubelet knows that nobody serves the devices any more",
            lambda: allocatable(cluster, "akri.sh/echo") == "0",
            seconds=60,
        )
        for kind in ("queues", "akric", "akrii"):
            assert not [o for o in cluster.list(kind) if o["metadata"].get("finalizers")], kind
        cluster.kubectl("delete", "queue", *loads.QUEUES, "--timeout=30s")
        rights.note(cluster.logs)


def asks_for_brokers(cluster: Cluster) -> None:
    """A Configuration written for Akri, whose brokers the version before did not make."""
    echo = {"name": "debugEcho", "discoveryDetails": json.dumps({"descriptions": []})}
    spec = {"discoveryHandler": echo, "brokerSpec": {"brokerPodSpec": {"containers": []}}}
    metadata = {"name": ASKS, "namespace": loads.NAMESPACE}
    body = {"apiVersion": "akri.sh/v0", "kind": "Configuration", "metadata": metadata}
    cluster.apply({**body, "spec": spec})


def wait_brokers_condition(cluster: Cluster, kind: str, status: str) -> None:
    """Wait until this and no other condition tells of its brokers."""

    def tells() -> bool:
        found = cluster.get("akric", ASKS, namespace=loads.NAMESPACE) or {}
        conditions = found.get("status", {}).get("conditions", ())
        told = {c["type"]: c["status"] for c in conditions if c["type"] in BROKERS}
        return told == {kind: status}

    cluster.wait_until(f"{kind} is {status}", tells, seconds=60)


def an_upgrade_from_the_version_before(cluster: Cluster, load: Load, folder: Path) -> None:
    documented.run(cluster, "Upgrade", folder)
    is_upgraded(cluster, load)


def is_upgraded(cluster: Cluster, load: Load) -> None:
    """The webhook of before closes connections as it ends, so that calls may have been lost."""
    assert_all_of(cluster, NEWER)
    load.goes_on()
    load.seen.refused[:] = [(when, why) for when, why in load.seen.refused if "EOF" not in why]


def an_upgrade_that_keeps_what_was_set(cluster: Cluster, load: Load, folder: Path) -> None:
    """Without the files of values; what is new in the chart has a value only one of both ways."""
    upgrade = ("upgrade", "moorage", str(CHART), *WAITS, "--set=image.tag=local")
    if added_values(folder / EARLIER_CHART):
        refused = helm(cluster, *upgrade, "--reuse-values", check=False)
        assert "`helm upgrade --reset-then-reuse-values` keeps what you have set" in refused.stderr
    assert (status(cluster), images(cluster)) == ("deployed", {OLDER})

    # A driver of the version before that starts by a rollback may write a claim's file once more
    # after its successor has unprepared it: the device is refused until that claim is let go.
    soon = "--set=driver.node.extraArgs={--stale-claim-grace=30s}"
    helm(cluster, *upgrade, "--reset-then-reuse-values", soon)

    is_upgraded(cluster, load)


def the_drivers_are_replaced_once_more(cluster: Cluster) -> None:
    for verb in ("restart", "status"):
        cluster.kubectl("rollout", verb, "daemonset/moorage-driver-node", "-n", "moorage-driver")


def allocatable(cluster: Cluster, resource: str) -> str:
    (node,) = cluster.list("nodes")
    return str(node["status"]["allocatable"].get(resource, "0"))


LATER = (("akric", "echo", "default"), ("queue", loads.QUEUES[0], None))
"""Kind, name and namespace of objects that have a field which only a later version reads."""


def definitions_have_a_later_field(cluster: Cluster) -> None:
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/later"
    patch = json.dumps([{"op": "add", "path": path, "value": {"type": "string"}}])
    for definition in ("configurations.akri.sh", "queues.moorage.dev"):
        cluster.kubectl("patch", "crd", definition, "--type=json", "-p", patch)
    for kind, name, namespace in LATER:
        give_later_field(cluster, kind, name, namespace)


def give_later_field(cluster: Cluster, kind: str, name: str, namespace: str | None) -> None:
    """The API server drops it until it has read the definition again."""
    where = ("-n", namespace) if namespace else ()

    def is_stored() -> bool:
        patch = '{"spec": {"later": "kept"}}'
        cluster.kubectl("patch", kind, name, *where, "--type=merge", "-p", patch)
        return has_later_field(cluster, kind, name, namespace)

    cluster.wait_until(f"{kind} {name} has the field", is_stored, seconds=30)


def has_later_field(cluster: Cluster, kind: str, name: str, namespace: str | None) -> bool:
    found = cluster.get(kind, name, namespace=namespace) or {}
    return bool(found["spec"].get("later") == "kept")


def gaps(cluster: Cluster) -> list[str]:
    """What pods were told that were to start while the kubelet knew no driver."""
    told = [str(event["message"]) for event in cluster.list("events", namespace=loads.NAMESPACE)]
    return [message for message in told if "is not registered" in message]


def assert_all_of(cluster: Cluster, image: str) -> None:
    cluster.wait_until(f"all is of {image}", lambda: images(cluster) == {image}, seconds=60)


def an_upgrade_is_killed_half_way(cluster: Cluster, load: Load, folder: Path) -> None:
    """Some objects are the new release's, others are not; Helm knows of one that goes on."""
    program = ensure_built(programs.HELM) / programs.HELM.binaries[0]
    values = (f"--values={folder / VALUES}", "--set=webhook.logLevel=DEBUG")
    argv = [str(program), "upgrade", "moorage", str(CHART), *WAITS, *values]
    env = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    with subprocess.Popen(argv, env=env, stderr=subprocess.PIPE) as upgrade:
        cluster.wait_until("it has begun", lambda: says_debug(cluster), seconds=60)
        upgrade.kill()
    assert status(cluster) == "pending-upgrade"
    load.goes_on()


def says_debug(cluster: Cluster) -> bool:
    found = cluster.get("deployment", "moorage-webhook", namespace=SYSTEM) or {}
    return "--log-level=DEBUG" in found["spec"]["template"]["spec"]["containers"][0]["args"]


def what_was_killed_is_mended(cluster: Cluster, folder: Path) -> None:
    """Helm refuses to go on until somebody has taken back what it began."""
    again = ("upgrade", "moorage", str(CHART), *WAITS, f"--values={folder / VALUES}")
    refused = helm(cluster, *again, check=False)
    assert "another operation (install/upgrade/rollback) is in progress" in refused.stderr

    helm(cluster, "rollback", "moorage", *WAITS)

    assert not says_debug(cluster)
    assert status(cluster) == "deployed"


def a_replica_of_the_webhook_is_killed(cluster: Cluster, load: Load) -> None:
    """What the API server asks it in that moment is refused with a sentence; the other serves."""
    assert load.seen.refused == []
    found = cluster.list("pods", selector="app.kubernetes.io/name=moorage-webhook")
    replica = next(pod for pod in found if "deletionTimestamp" not in pod["metadata"])
    (container,) = replica["status"]["containerStatuses"]
    killed = time.monotonic()
    identity = container["containerID"].removeprefix("containerd://")
    cluster.kill_container(replica["spec"]["nodeName"], identity)
    load.goes_on()
    cluster.wait(
        f"pod/{replica['metadata']['name']}", "condition=Ready", namespace=SYSTEM, seconds=60
    )
    for moment, why in load.seen.refused:
        assert "failed calling webhook" in why
        assert moment - killed < KILLED_SECONDS


def bindings_of_each_pod(cluster: Cluster) -> set[int]:
    """How often the pods of the load were bound."""
    bound: dict[str, int] = {}
    for entry in audit.entries(cluster.audit_log, '"subresource":"binding"'):
        target = entry["objectRef"]
        if target["namespace"] == loads.NAMESPACE and entry["responseStatus"]["code"] == 201:
            bound[target["name"]] = bound.get(target["name"], 0) + 1
    return set(bound.values())
