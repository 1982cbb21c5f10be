"""The chart as Helm renders it."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from local_cluster.api import Cluster, ClusterSettings
from local_cluster.helm import run_helm
from local_cluster.image_recipe import CHECKOUT
from moorage_demo import installation
from moorage_demo.release import CHART

SYSTEM = "moorage-system"
OTHERS_APIS = ("cert-manager.io/v1", "monitoring.coreos.com/v1")
"""Of parts that a cluster may have, and that switches of the chart are for."""

EVERYTHING: Mapping[str, Any] = {
    "imagePullSecrets": [{"name": "registry"}],
    "driver": {"namespace": "moorage-driver", "node": {"nodeSelector": {"devices": "yes"}}},
    "brokers": {"namespaces": ["lab"]},
    "udev": {
        "configuration": {
            "enabled": True,
            "discoveryDetails": {"udevRules": ['KERNEL=="null"']},
            "brokerPod": {
                "image": {"repository": "registry.example.com/viewer", "tag": "1.0"},
                "env": {"FRAMES": 10},
            },
            "instanceService": {"type": "NodePort"},
        }
    },
    "debugEcho": {"configuration": {"enabled": True}},
    "onvif": {
        "configuration": {
            "enabled": True,
            "discoveryProperties": [{"name": "username_default", "value": "viewer"}],
        }
    },
    "opcua": {
        "configuration": {
            "enabled": True,
            "discoveryDetails": {"discoveryUrls": ["opc.tcp://10.0.0.1:4840/"]},
            "offlineGracePeriod": "1h",
        }
    },
    "custom": {"configuration": {"enabled": True, "discoveryHandlerName": "other"}},
    "webhook": {"certificates": {"source": "CertManager"}, "tolerations": [{"operator": "Exists"}]},
    "scheduler": {"affinity": {"nodeAffinity": {}}, "tolerations": [{"key": "control"}]},
    "dashboard": {"enabled": True},
    "prometheus": {"enabled": True, "rules": True, "dashboard": True},
    "networkPolicies": {"enabled": True},
    "resourceQuotas": {"enabled": True},
    "uninstall": {"purge": True},
}
"""Every switch is on."""


def added_values(before: Path, now: Path = CHART) -> list[str]:
    """Paths of the values that a chart has and an earlier one had not, in order."""
    values = (yaml.safe_load((chart / "values.yaml").read_text()) for chart in (now, before))
    return sorted(_added(*values))


def _added(now: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[str]:
    for name, value in now.items():
        if name not in before:
            yield name
        elif isinstance(value, Mapping):
            yield from (f"{name}.{inner}" for inner in _added(value, before[name]))


@contextmanager
def bare_cluster(
    name: str,
    kubernetes: str = ClusterSettings.kubernetes,
    *,
    nodes: int = 1,
    kubelet_root: str = ClusterSettings.kubelet_root,
    images: bool = True,
) -> Iterator[Cluster]:
    """A cluster that has the images, and nothing of Moorage's else; its nodes share no network."""
    settings = ClusterSettings(
        work_dir=CHECKOUT / f".cluster-{name}-{os.getpid()}",
        kubernetes=kubernetes,
        nodes=nodes,
        own_networks=nodes > 1,
        kubelet_root=kubelet_root,
        parts=installation.PARTS,
    )
    own = Cluster.up(settings)
    try:
        if images:
            installation.load_images(own)
        yield own
    except BaseException:
        own.collect(CHECKOUT / ".artifacts" / name)
        raise
    finally:
        own.down(purge=True)


def helm_on_values(
    command: Sequence[str], values: Mapping[str, Any], *, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run Helm with a file of values."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "values.yaml")
        file.write_text(json.dumps(values))
        return run_helm(*command, f"--values={file}", check=check)


def render(
    values: Mapping[str, Any], *, namespace: str = SYSTEM, version: str = "1.37.2"
) -> list[Any]:
    """The objects that an installation with these values is made of."""
    command = ["template", "moorage", str(CHART), f"--namespace={namespace}"]
    command += [f"--kube-version={version}", f"--api-versions={','.join(OTHERS_APIS)}"]
    return [o for o in yaml.safe_load_all(helm_on_values(command, values).stdout) if o]


def refusal(values: Mapping[str, Any]) -> str:
    """What Helm says of values that are none."""
    done = helm_on_values(["template", "moorage", str(CHART)], values, check=False)
    assert done.returncode != 0, "no refusal"
    return done.stderr


def named(objects: Sequence[Any], kind: str, name: str) -> Any:
    (found,) = (o for o in objects if (o["kind"], o["metadata"]["name"]) == (kind, name))
    return found
