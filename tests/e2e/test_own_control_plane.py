"""Mode `Cluster`: the plugin in the static pod of the control plane's own kube-scheduler.

Its kubelet's folder is not where most have theirs.
"""

from __future__ import annotations

import base64
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from local_cluster import programs
from local_cluster.api import BUSYBOX_IMAGE, Cluster
from local_cluster.configurations import STATIC_PODS
from local_cluster.go_toolchain import ensure_built
from local_cluster.helm import run_helm
from moorage_demo.release import CHART, VALUES
from tests.e2e import documented
from tests.e2e.charts import SYSTEM, bare_cluster

FOLDER = "/var/lib/kubelet/moorage"
FILE = "/var/lib/kubelet/scheduler.conf"
LEASE = "--lease=kube-system/kube-scheduler"
PROFILE = "--scheduler-name=default-scheduler"
# Where k0s has its kubelets' folder, and where others have theirs.
KUBELET, ELSEWHERE = "/var/lib/k0s/kubelet", "/var/lib/kubelet"
# A constant of k8s.io/kubelet (pkg/apis/deviceplugin/v1beta1): the root folder does not move it.
DEVICE_PLUGINS = f"{ELSEWHERE}/device-plugins/kubelet.sock"
CHOSEN = (
    "--set=scheduler.mode=Cluster",
    "--set=scheduler.name=default-scheduler",
    f"--set=driver.node.host.kubelet={KUBELET}",
)


@pytest.fixture(scope="module")
def own() -> Iterator[Cluster]:
    """Nothing of Moorage's is there but the images."""
    with bare_cluster("own", kubelet_root=KUBELET) as found:
        yield found


def plugin(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", "scheduler_plugin", *words)
    return subprocess.run(command, capture_output=True, text=True, check=check)


def inlined(kubeconfig: Path) -> str:
    """The same without paths of other files, as kubeadm writes it."""
    found = yaml.safe_load(kubeconfig.read_text())
    for entry in (*(c["cluster"] for c in found["clusters"]), *(u["user"] for u in found["users"])):
        for name in ("certificate-authority", "client-certificate", "client-key"):
            if name in entry:
                entry[f"{name}-data"] = base64_of(Path(entry.pop(name)))
    return yaml.safe_dump(found)


def base64_of(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()


def manifest() -> dict[str, Any]:
    """The static pod of a kube-scheduler as it is before."""
    words = [f"--{name}={FILE}" for name in ("authentication-kubeconfig", "kubeconfig")]
    mount = {"name": "kubeconfig", "mountPath": FILE, "readOnly": True}
    container = {
        "name": "kube-scheduler",
        "image": "kube-scheduler:local",
        "imagePullPolicy": "Never",
        "command": ["kube-scheduler", *words, "--secure-port=10399"],
        "volumeMounts": [mount],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "kube-scheduler", "namespace": "kube-system"},
        "spec": {
            "hostNetwork": True,
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
            "volumes": [{"name": "kubeconfig", "hostPath": {"path": FILE, "type": "File"}}],
        },
    }


def put_beside(cluster: Cluster, folder: Path) -> None:
    """What docs/own-control-plane.md has an administrator do on a control plane's machine."""
    (node,) = cluster.nodes
    shared = node.kubelet_root / "moorage"
    shared.mkdir()
    plugin("write-certificates", f"--folder={shared}")
    words = (LEASE, PROFILE, f"--scheduler-kubeconfig={FILE}", f"--certificates={FOLDER}")
    printed = plugin("print-config", *words).stdout
    (shared / "scheduler.yaml").write_text(printed)
    as_kubeadm_left_it(cluster)
    type_how_kubeadm_is_asked(cluster, shared, folder)
    (node.kubelet_root / "scheduler.conf").write_text(
        inlined(cluster.work_dir / "config" / "kube-scheduler.kubeconfig")
    )
    before = folder / "kube-scheduler.yaml"
    before.write_text(yaml.safe_dump(manifest()))
    files = (f"--manifest={before}", f"--folder={FOLDER}")
    after = plugin("print-static-pod", "--image=moorage:local", *files).stdout
    (node.kubelet_root / Path(STATIC_PODS).name / "kube-scheduler.yaml").write_text(after)


def as_kubeadm_left_it(cluster: Cluster) -> None:
    """What `kubeadm init` stores; the authority's files are where and what kubeadm's are."""
    node = cluster.get("node", cluster.nodes[0].name) or {}
    configuration = {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "ClusterConfiguration",
        "kubernetesVersion": node["status"]["nodeInfo"]["kubeletVersion"],
        "certificatesDir": str(cluster.work_dir / "pki"),
        "controlPlaneEndpoint": cluster.server.removeprefix("https://"),
    }
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kubeadm-config", "namespace": "kube-system"},
        "data": {"ClusterConfiguration": yaml.safe_dump(configuration)},
    }
    cluster.apply([body])


def type_how_kubeadm_is_asked(cluster: Cluster, shared: Path, folder: Path) -> None:
    """The page's own words, with this cluster's folders."""
    page = (documented.DOCS / "own-control-plane.md").read_text()
    (block,) = (b for b in re.findall(r"```sh\n(.+?)```", page, re.DOTALL) if "kubeadm " in b)
    # In one pass: a folder of this cluster may lie below `/tmp` itself, or have a space.
    folders = {"/etc/kubernetes/moorage": str(shared), "/tmp": str(folder)}
    typed = re.sub("|".join(folders), lambda found: shlex.quote(folders[found[0]]), block)
    programs_of = (ensure_built(programs.KUBEADM), Path(cluster.kubectl_program).parent)
    path = os.pathsep.join([*map(str, programs_of), os.environ["PATH"]])
    env = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "PATH": path}
    subprocess.run(("bash", "-euxc", typed), env=env, check=True)


OBJECTS: list[dict[str, Any]] = [
    {
        "apiVersion": "akri.sh/v0",
        "kind": "Configuration",
        "metadata": {"name": "echo", "namespace": "default"},
        "spec": {
            "capacity": 2,
            "discoveryHandler": {
                "name": "debugEcho",
                "discoveryDetails": "{descriptions: [front door], shared: true}",
            },
        },
    },
    {
        "apiVersion": "moorage.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": "team"},
        "spec": {
            "namespaceSelector": {},
            "resources": [{"deviceClass": "echo", "quota": 1, "limit": 1}],
        },
    },
]


def user(name: str) -> dict[str, Any]:
    """A pod that names no scheduler."""
    container = {
        "name": "main",
        "image": BUSYBOX_IMAGE,
        "command": ["sleep", "1000"],
        "resources": {"limits": {"akri.sh/echo": 1}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"moorage.dev/queue": "team"},
        },
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]},
    }


def test_pods_that_name_no_scheduler_are_charged(own: Cluster, tmp_path: Path) -> None:
    options = (f"--namespace={SYSTEM}", "--create-namespace", f"--values={VALUES}", *CHOSEN)
    without = "--set=namespace.create=false"
    run_helm(
        *("install", "moorage", str(CHART), *options, without, "--wait", "--timeout=4m"),
        kubeconfig=own.kubeconfig,
    )
    own.part("kube-scheduler").stop()
    try:
        put_beside(own, tmp_path)
        own.apply(OBJECTS)
        own.apply([user("first")])

        own.kubectl("wait", "pod/first", "--for=condition=Ready", "--timeout=120s")

        own.wait_until("its queue is charged", lambda: usage(own) == {"echo": 1})
        registered, empty = (registry(own, folder) for folder in (KUBELET, ELSEWHERE))
        assert any("moorage.dev" in name for name in registered)
        assert not empty
        (node,) = own.nodes
        assert node.path(DEVICE_PLUGINS).is_socket()
        own.apply([user("second")])
        own.wait_until("the second is refused", lambda: "OverLimit" in refusal(own), seconds=60)
        assert checked(own).returncode == 0, checked(own).stdout
        assert "holds the Lease kube-system/kube-scheduler" in checked(own).stdout
        assert others_on_its_network(own) == (False, True)
    finally:
        own.part("kube-scheduler").cont()


def registry(cluster: Cluster, kubelet: str) -> list[str]:
    """The sockets by which drivers make themselves known to the kubelet of that folder."""
    (node,) = cluster.nodes
    folder = node.path(f"{kubelet}/plugins_registry")
    return os.listdir(folder) if folder.exists() else []


def usage(cluster: Cluster) -> dict[str, int]:
    found = cluster.get("queue", "team") or {}
    charged: dict[str, int] = found.get("status", {}).get("usage", {})
    return charged


def refusal(cluster: Cluster) -> str:
    pod = cluster.get("pod", "second", namespace="default") or {}
    conditions = pod.get("status", {}).get("conditions", ())
    return " ".join(c.get("message", "") + c.get("reason", "") for c in conditions)


def checked(cluster: Cluster) -> subprocess.CompletedProcess[str]:
    (node,) = cluster.nodes
    file = node.kubelet_root / "moorage" / "scheduler.yaml"
    words = (f"--kubeconfig={cluster.kubeconfig}", LEASE, PROFILE, f"--scheduler-config={file}")
    return plugin("check", *words, f"--certificates={FOLDER}", check=False)


def others_on_its_network(cluster: Cluster) -> tuple[bool, bool]:
    """Whether a process in the machine's network is answered, without and with the files."""
    (node,) = cluster.nodes
    ask = (
        "import ssl, sys, http.client\n"
        "context = ssl.create_default_context(cafile=sys.argv[1] + '/ca.crt')\n"
        "if len(sys.argv) > 2: context.load_cert_chain(*sys.argv[2:])\n"
        "plugin = http.client.HTTPSConnection('127.0.0.1', 10261, context=context, timeout=5)\n"
        "plugin.request('POST', '/filter', '{}', {'Content-Type': 'application/json'})\n"
        "print(plugin.getresponse().status)\n"
    )
    folder = str(node.kubelet_root / "moorage")
    files = (f"{folder}/scheduler.crt", f"{folder}/scheduler.key")
    answers = (
        node.exec((sys.executable, "-c", ask, folder, *more), check=False) for more in ((), files)
    )
    stranger, known = (done.returncode == 0 for done in answers)
    return stranger, known
