"""One description of a component, as a process and as a pod."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from local_cluster.components import (
    Component,
    HttpReady,
    SocketReady,
    environment,
    manifest,
)


def a_component(**changes: Any) -> Component:
    return Component(**{"name": "driver", "argv": ("driver", "node"), **changes})


def container_of(component: Component) -> dict[str, Any]:
    rendered = manifest(component)
    spec = rendered["spec"] if rendered["kind"] == "Pod" else rendered["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert isinstance(container, dict)
    return container


def test_pod_and_process_are_told_the_same_names() -> None:
    component = a_component(env={"LEVEL": "debug"})

    told = environment(component, "node-a", "some-uid", Path("/kubeconfig"))
    in_pod = {entry["name"] for entry in container_of(component)["env"]}

    # A pod has the token mounted instead, and its image decides about buffering.
    assert set(told) - {"KUBECONFIG", "PYTHONUNBUFFERED"} == in_pod


def test_own_environment_wins() -> None:
    component = a_component(env={"NODE_NAME": "other"})

    assert environment(component, "node-a", "uid", Path("/k"))["NODE_NAME"] == "other"


def test_node_is_chosen_by_selector_so_that_schedulers_see_the_pod() -> None:
    spec = manifest(a_component(node="node-b"))["spec"]

    assert spec["nodeSelector"] == {"kubernetes.io/hostname": "node-b"}
    assert "nodeName" not in spec


def test_readiness_is_probed_as_the_process_would_be() -> None:
    http = container_of(a_component(ready=HttpReady(8080, "/ok", "https")))
    socket = container_of(a_component(ready=SocketReady("/run/a.sock")))

    assert http["readinessProbe"]["httpGet"] == {"port": 8080, "path": "/ok", "scheme": "HTTPS"}
    assert socket["readinessProbe"]["exec"]["command"] == ["test", "-S", "/run/a.sock"]


def test_folders_of_the_node_are_seen_under_their_own_paths() -> None:
    component = a_component(host_paths=("/var/lib/kubelet", "/dev"))

    mounts = {
        mount["mountPath"]: mount["name"] for mount in container_of(component)["volumeMounts"]
    }
    volumes = {
        volume["name"]: volume["hostPath"]["path"]
        for volume in manifest(component)["spec"]["volumes"]
    }

    assert {path: volumes[name] for path, name in mounts.items()} == {
        "/var/lib/kubelet": "/var/lib/kubelet",
        "/dev": "/dev",
    }
