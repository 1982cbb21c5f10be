"""Moorage from its chart on a real cluster: from `helm install` to `helm uninstall`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from local_cluster import service_accounts
from local_cluster.api import BUSYBOX_IMAGE, Cluster
from local_cluster.helm import run_helm
from local_cluster.settings import CLUSTER_PARTS
from moorage_demo.release import CHART
from tests.e2e import documented, others, rights
from tests.e2e.charts import SYSTEM, bare_cluster
from tests.e2e.scraping import scraping

WHOLE = "Is it whole?"
PART_OF = "app.kubernetes.io/part-of=moorage"
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
    for view in ("queues", "claims", "devices", "handlers"):
        done = moorage(bare, view)
        assert (done.returncode, done.stdout) == (1, "")
        sentence = "this cluster has no Queues: Moorage is not installed."
        assert done.stderr == f"kubectl moorage {view}: {sentence}\n"
    documented.prepare(tmp_path)
    printed = documented.run(bare, documented.FIRST_CLAIM, tmp_path)
    assert "`helm uninstall` leaves the definitions" in printed
    assert printed.splitlines()[-1].startswith("DEBUG_ECHO_DESCRIPTION")
    assert "=front door" in printed
    assert not [o for o in bare.list("queues,akric,pods") if named(o) == "moorage-test"]
    bare.wait_until("its queue is charged", lambda: finalizers(bare, "queues"))
    uid = uid_of_user(bare)

    every_view_says_what_the_api_says(bare)
    a_look_at_it_finds_what_is_wrong(bare, tmp_path)
    a_second_scheduler_of_the_name_is_found(bare, tmp_path)
    an_upgrade_changes_what_it_says(bare, tmp_path)
    the_dashboard_is_reached_by_its_service(bare)
    prometheus_reaches_whom_it_is_told_of(bare, tmp_path)
    a_rollback_takes_it_back(bare)
    assert uid_of_user(bare) == uid

    an_uninstallation_is_refused_while_a_pod_uses_a_device(bare, tmp_path)
    documented.run(bare, "Uninstall", tmp_path)
    what_stays_is_free(bare)
    assert uid_of_user(bare) == uid

    everything_goes_if_asked_for(bare, tmp_path)


def test_a_deleted_namespace_leaves_nothing_that_blocks_after_the_documented_commands(
    bare: Cluster, tmp_path: Path
) -> None:
    documented.prepare(tmp_path)
    documented.run(bare, documented.FIRST_CLAIM, tmp_path)
    bare.kubectl("delete", "pod", "first", "--namespace=default")
    bare.kubectl("delete", "namespace", SYSTEM, "--wait=false")
    bare.wait_until("nobody runs", lambda: not bare.list("pods", namespace=SYSTEM))

    documented.run(bare, "After a failed step", tmp_path)

    for kind in ("clusterrole", "validatingadmissionpolicy", "validatingwebhookconfiguration"):
        assert [named(o) for o in bare.list(kind) if "moorage" in named(o)] == []
    assert finalizers(bare, "queues") == finalizers(bare, "instances.akri.sh") == []
    bare.wait_until("the namespace goes", lambda: bare.get("namespace", SYSTEM) is None)
    bare.wait_until("no driver runs", lambda: not bare.list("pods", selector=PART_OF))
    bare.kubectl("delete", "crd", *DEFINITIONS, "--timeout=60s")


def moorage(cluster: Cluster, *words: str) -> subprocess.CompletedProcess[str]:
    """`kubectl moorage`."""
    main = "import sys; from scheduler_plugin.kubectl.commands import main; sys.exit(main())"
    command = (sys.executable, "-c", main, *words, f"--kubeconfig={cluster.kubeconfig}")
    path = f"{Path(cluster.kubectl_program).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def rows(cluster: Cluster, *words: str) -> list[Any]:
    done = moorage(cluster, *words, "--output=json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return found if isinstance(found, list) else [found]


def every_view_says_what_the_api_says(cluster: Cluster) -> None:
    """Of devices that a real driver published, and of a pod that runs with one."""
    queue = cluster.get("queue", "team") or {}
    (share,) = queue["spec"]["resources"]
    claim = cluster.get("resourceclaim", "door", namespace="default") or {}
    (row,) = rows(cluster, "queues")
    assert {row["device_class"]: row["usage"]} == queue["status"]["usage"] == {"echo": 1}
    assert (row["quota"], row["limit"]) == (share["quota"], share["limit"])
    (row,) = rows(cluster, "claims")
    assert (row["namespace"], row["name"]) == ("default", "door")
    assert row["payer"] == claim["metadata"]["labels"]["moorage.dev/queue"] == "team"
    (used,) = claim["status"]["allocation"]["devices"]["results"]
    devices = ["/".join(used[key] for key in ("driver", "pool", "device"))]
    assert rows(cluster, "charge", "team") == [{k: v for k, v in row.items() if k != "devices"}]
    assert row["devices"] == devices
    (row,) = rows(cluster, "why", "first")
    assert (row["reason"], row["queue"]) == ("Running", "team")
    every_view_of_devices_does(cluster, claim)


def every_view_of_devices_does(cluster: Cluster, claim: Any) -> None:
    (instance,) = cluster.list("akrii")
    (used,) = claim["status"]["allocation"]["devices"]["results"]
    (node,) = map(named, cluster.list("nodes"))
    (row,) = rows(cluster, "devices")
    assert (row["pool"], row["name"]) == (used["pool"], used["device"])
    assert (row["instance"], row["slots"]) == (named(instance), instance["spec"]["capacity"])
    assert (row["nodes"], row["state"], row["used"]) == ([node], "Ready", 1)
    (row,) = rows(cluster, "handlers")
    assert (row["configuration"], row["handler"]) == ("default/echo", "debugEcho")
    assert (row["node"], row["state"], row["registered"]) == (node, "Active", True)
    (row,) = rows(cluster, "simulate", f"--without-device={named(instance)}")
    assert "ResourceClaim default/door" in row["devices"][0]["sentence"]


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

    assert "moorage-claims does not exist" in str(refused.value)
    assert "scheduler-plugin may not get pods, list pods, watch pods and" in str(refused.value)
    fails_and_says(cluster, "moorage-claims does not exist")
    helm(cluster, "rollback", "moorage", "1", *OPTIONS)
    documented.run(cluster, WHOLE, folder)


def a_second_scheduler_of_the_name_is_found(cluster: Cluster, folder: Path) -> None:
    """By the Lease that elected it, before it has bound anything."""
    with cluster.reconfigured(parts=CLUSTER_PARTS):
        lease = "which holds the Lease kube-system/kube-scheduler-moorage"
        said = f"{lease}, has the schedulerName moorage, too"
        cluster.wait_until("it is told", lambda: said in not_whole(cluster))
        fails_and_says(cluster, said)

    cluster.wait_until("its Lease has ended", lambda: not not_whole(cluster), seconds=60)
    documented.run(cluster, WHOLE, folder)


def not_whole(cluster: Cluster) -> str:
    """What `check` says where something is wrong; "" where nothing is."""
    program = str(Path(sys.executable).parent / "moorage-scheduler-plugin")
    command = (program, "check", f"--kubeconfig={cluster.kubeconfig}")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode else ""


def fails_and_says(cluster: Cluster, sentence: str) -> None:
    done = run_helm("test", "moorage", IN_SYSTEM, kubeconfig=cluster.kubeconfig, check=False)
    assert done.returncode != 0
    assert sentence in cluster.kubectl("logs", "moorage-check", IN_SYSTEM).stdout


def an_upgrade_changes_what_it_says(cluster: Cluster, folder: Path) -> None:
    """Of the definitions, too, which Helm leaves as they are."""
    believed = authorities(cluster)
    forget_a_field(cluster)
    (monitors,) = (file for file in others.definitions() if "podmonitors" in file.name)
    cluster.kubectl("apply", "--server-side", "-f", str(monitors))
    cluster.kubectl("wait", "-f", str(monitors), "--for=condition=Established")
    changed: dict[str, Any] = {"webhook": {"hold": "Retry"}}
    for switch in ("dashboard", "networkPolicies", "prometheus"):
        changed[switch] = {"enabled": True}
    values = (folder / VALUES).read_text()
    (folder / VALUES).write_text(values + yaml.safe_dump(changed))

    documented.run(cluster, "Upgrade", folder)

    assert "uniqueDevices" in spec_fields(cluster.get("crd", DEFINITIONS[1]))
    assert "--hold=Retry" in webhook_arguments(cluster)
    assert authorities(cluster) == believed
    assert "" not in believed


NODE = "node-a"
NAME = "app.kubernetes.io/name"
DASHBOARD = "http://127.0.0.1:18080/dashboard/api/"


def two_tokens(cluster: Cluster) -> tuple[str, str]:
    """One that may list queues, and one that may not."""
    rules = [{"apiGroups": ["moorage.dev"], "resources": ["queues"], "verbs": ["list"]}]
    api = "rbac.authorization.k8s.io"
    ref = {"apiGroup": api, "kind": "ClusterRole", "name": "reader"}
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": "default"}
    head = {"apiVersion": f"{api}/v1", "metadata": {"name": "reader"}}
    cluster.apply(
        [
            {**head, "kind": "ClusterRole", "rules": rules},
            {**head, "kind": "ClusterRoleBinding", "roleRef": ref, "subjects": [subject]},
        ]
    )
    reading = ("auth", "can-i", "list", "queues.moorage.dev")
    him = "--as=system:serviceaccount:default:reader"
    cluster.wait_until(
        "he may list them", lambda: cluster.kubectl(*reading, him, check=False).returncode == 0
    )
    with cluster.api() as api_server:
        reader, stranger = (
            service_accounts.request_token(api_server, "default", name, None)
            for name in ("reader", "stranger")
        )
    return reader, stranger


def the_dashboard_is_reached_by_its_service(cluster: Cluster) -> None:
    """With a token that may list queues, and with one that may not."""
    reader, stranger = two_tokens(cluster)
    service = cluster.get("service", "moorage-dashboard", namespace=SYSTEM) or {}
    inside = f"http://{service['spec']['clusterIP']}/dashboard/api/state"
    asked = ("wget", "-q", "-T", "20", "-O", "-", f"--header=Authorization: Bearer {reader}")

    def state() -> Any:
        answer = cluster.node(NODE).exec((*asked, inside), check=False).stdout
        return json.loads(answer) if answer else None

    shown = cluster.wait_until("the dashboard answers", state)
    assert shown["viewer"] == "system:serviceaccount:default:reader"
    assert shown["parts"]["queues"] == {"total": 1, "all": 1, "denied": ""}
    assert 'verb "list" on "pods"' in shown["parts"]["waiting"]["denied"]

    leader_told = lambda: (state() or {}).get("leader") == ""  # noqa: E731
    cluster.wait_until("the leader tells places in line", leader_told)
    a_stranger_gets_nothing_of_the_leader(cluster)

    with forwarded(cluster):
        (row,) = json.loads(told("rows/queues", reader))["rows"]
        assert (row["queue"], row["usage"]) == ("team", 1)
        assert 'verb "list" on "queues.moorage.dev"' in told("rows/queues", stranger)
        assert "The cluster does not know this token" in told("state", "nonsense")


def a_stranger_gets_nothing_of_the_leader(cluster: Cluster) -> None:
    """Whoever reaches the plugin's port for the dashboard needs its certificate."""
    pods = cluster.list("pods", namespace=SYSTEM)
    labels = [(pod, pod["metadata"].get("labels", {})) for pod in pods]
    plugins = [pod for pod, of in labels if of.get(NAME) == "moorage-scheduler-plugin"]
    for pod in plugins:
        url = f"https://{pod['status']['podIP']}:10265/healthz"
        ask = ("curl", "--silent", "--insecure", "--max-time", "5", url)
        assert cluster.node(NODE).exec(ask, check=False).returncode != 0


@contextmanager
def forwarded(cluster: Cluster) -> Iterator[None]:
    """As the documentation says it."""
    words = ("-n", SYSTEM, "port-forward", "service/moorage-dashboard", "18080:80")
    command = (str(cluster.kubectl_program), f"--kubeconfig={cluster.kubeconfig}", *words)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as forward:
        try:
            cluster.wait_until("the port is forwarded", lambda: told("state", ""))
            yield
        finally:
            forward.terminate()


def told(path: str, token: str) -> str:
    """What a viewer is answered, be it a refusal; "" where nobody answers."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(DASHBOARD + path, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        return error.read().decode()
    except OSError:
        return ""


def prometheus_reaches_whom_it_is_told_of(cluster: Cluster, folder: Path) -> None:
    """The operator makes such jobs of PodMonitors."""
    jobs = [scraped(cluster, monitor, folder) for monitor in cluster.list("podmonitors")]

    with scraping(cluster, NODE, folder, jobs) as prometheus:
        wanted = {
            "moorage-driver-node": 1.0,
            "moorage-driver-shared": 2.0,
            "moorage-scheduler-plugin": 2.0,
            "moorage-webhook": 2.0,
        }
        up, serving = "sum by (job) (up)", "sum(moorage_scheduler_plugin_serving)"
        cluster.wait_until("all are scraped", lambda: prometheus.values(up) == wanted)
        cluster.wait_until("one replica serves", lambda: prometheus.value(serving) == 1)


def scraped(cluster: Cluster, monitor: Any, folder: Path) -> dict[str, Any]:
    namespace, name = monitor["metadata"]["namespace"], named(monitor)
    labels = monitor["spec"]["selector"]["matchLabels"].items()
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    pods = [
        pod
        for pod in cluster.list("pods", namespace=namespace)
        if labels <= pod["metadata"]["labels"].items()
        and pod["status"]["phase"] == "Running"
        and "deletionTimestamp" not in pod["metadata"]
    ]
    targets = [f"{pod['status']['podIP']}:{port_of(pod, endpoint)}" for pod in pods]
    job: dict[str, Any] = {"job_name": name, "static_configs": [{"targets": targets}]}
    if tls := endpoint.get("tlsConfig"):
        named_in = tls["ca"]["configMap"]
        found = cluster.get("configmap", named_in["name"], namespace=namespace) or {}
        file = folder / f"{name}.crt"
        file.write_text(found["data"][named_in["key"]])
        job |= {"scheme": endpoint["scheme"]}
        job |= {"tls_config": {"ca_file": str(file), "server_name": tls["serverName"]}}
    return job


def port_of(pod: Any, endpoint: Any) -> int:
    ports = [p for c in pod["spec"]["containers"] for p in c.get("ports", ())]
    known = {port.get("name"): port["containerPort"] for port in ports}
    return int(endpoint.get("targetPort") or known[endpoint["port"]])


def a_rollback_takes_it_back(cluster: Cluster) -> None:
    believed = authorities(cluster)

    helm(cluster, "rollback", "moorage", "1", IN_SYSTEM, "--wait", "--timeout=4m")

    assert "--hold=Retry" not in webhook_arguments(cluster)
    assert authorities(cluster) == believed


def an_uninstallation_is_refused_while_a_pod_uses_a_device(cluster: Cluster, folder: Path) -> None:
    """Until a value lifts that, as the refusal itself says."""
    with pytest.raises(AssertionError) as refused:
        documented.run(cluster, "Uninstall", folder)

    said = str(refused.value)
    assert "ResourceClaim default/door: Pod first" in said
    back = re.search(r"`(helm rollback moorage \d+ --namespace moorage-system)`", said)
    assert back, said
    assert cluster.list("deployments", namespace=SYSTEM)
    documented.run_text(cluster, f"{back[1]} --wait --timeout=4m", folder)
    forced = ("--reset-then-reuse-values", "--set=uninstall.force=true")
    helm(cluster, "upgrade", "moorage", str(CHART), *OPTIONS, *forced)


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
    """And whatever uses devices: the pod is there still, which no kubelet ends without a driver."""
    asked = ("--set=uninstall.purge=true,uninstall.force=true", f"--values={folder / VALUES}")
    helm(cluster, "install", "moorage", str(CHART), *OPTIONS, *asked)

    helm(cluster, "uninstall", "moorage", *OPTIONS)

    def definitions() -> set[str]:
        return {o["metadata"]["name"] for o in cluster.list("crds")} & set(DEFINITIONS)

    cluster.wait_until("no definition is left", lambda: not definitions(), seconds=60)
    assert yaml.safe_load(helm(cluster, "list", "--all-namespaces", "-o", "yaml")) == []


def test_what_is_started_before_the_definitions_waits_and_goes_on(
    bare: Cluster, tmp_path: Path
) -> None:
    """As where somebody installs with `--skip-crds`; another release is refused meanwhile."""
    documented.prepare(tmp_path)
    values = f"--values={tmp_path / VALUES}"
    options = (values, "--create-namespace", "--skip-crds")
    helm(bare, "install", "moorage", str(CHART), IN_SYSTEM, *options)
    for waiting in WAITING:
        wait_for_the_sentence(bare, *waiting)
    two_releases_do_not_meet(bare, values)

    documented.run(bare, "Upgrade", tmp_path)

    bare.apply(ECHO)
    bare.wait_until("its device is there", lambda: bare.list("akrii"), seconds=60)
    an_uninstallation_is_refused_while_a_broker_runs(bare)
    bare.kubectl("delete", "akric", "echo", "-n", "default", "--timeout=30s")


WAITING = (
    ("configurations of akri.sh/v0", "daemonset/moorage-driver-node", "moorage-driver"),
    ("queues of moorage.dev/v1alpha1", "deployment/moorage-scheduler", SYSTEM),
)
ECHO: dict[str, Any] = {
    "apiVersion": "akri.sh/v0",
    "kind": "Configuration",
    "metadata": {"name": "echo", "namespace": "default"},
    "spec": {
        "discoveryHandler": {
            "name": "debugEcho",
            "discoveryDetails": "{descriptions: [door], shared: true}",
        }
    },
}


def an_uninstallation_is_refused_while_a_broker_runs(cluster: Cluster) -> None:
    """The broker has no device: nothing but its controller would ever remove it."""
    allowed = ("--reset-then-reuse-values", "--set=brokers.namespaces={default}")
    helm(cluster, "upgrade", "moorage", str(CHART), *OPTIONS, *allowed)
    container = {"name": "broker", "image": BUSYBOX_IMAGE, "command": ["sleep", "100000"]}
    broker = {"brokerPodSpec": {"terminationGracePeriodSeconds": 0, "containers": [container]}}
    cluster.apply({**ECHO, "spec": {**ECHO["spec"], "brokerSpec": broker}})
    cluster.wait_until("it runs", lambda: brokers_running(cluster) == 1, seconds=60)
    uninstall = ("uninstall", "moorage", *OPTIONS)

    refused = run_helm(*uninstall, kubeconfig=cluster.kubeconfig, check=False)

    assert refused.returncode != 0
    assert "Configuration default/echo: 1 broker, Pod node-a-echo-" in refused.stderr
    cluster.apply(ECHO)
    cluster.wait_until("it is gone", lambda: brokers_running(cluster) == 0, seconds=60)
    helm(cluster, *uninstall)


def brokers_running(cluster: Cluster) -> int:
    pods = cluster.list("pods", namespace="default", selector="akri.sh/configuration=echo")
    return sum(pod["status"]["phase"] == "Running" for pod in pods)


def wait_for_the_sentence(cluster: Cluster, kind: str, workload: str, namespace: str) -> None:
    words = ("logs", workload, "-n", namespace, "--all-containers")
    said = f"the API server serves no {kind}: install their definition"
    cluster.wait_until(
        f"{workload} says that there are no {kind}",
        lambda: said in cluster.kubectl(*words, check=False).stdout,
        seconds=90,
    )


def two_releases_do_not_meet(cluster: Cluster, values: str) -> None:
    second = run_helm(
        *("install", "second", str(CHART), values, "--namespace=other", "--create-namespace"),
        kubeconfig=cluster.kubeconfig,
        check=False,
    )

    assert second.returncode != 0
    assert "cannot be imported into the current release" in second.stderr
