"""Scenarios of upstream's own suites that no other story tells, see docs/conformance.md."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from local_cluster.api import Cluster
from tests.e2e.driver import other_driver
from tests.e2e.driver.echoes import is_waiting
from tests.e2e.driver.installation import NODES, ROOT
from tests.e2e.driver.stories import SCHEDULER, TOLD, Story

SLEEPS = {"command": ["sh", "-c", "exec sleep 100000"]}


def test_a_pod_that_waits_for_a_device_and_then_for_the_kubelet_runs_when_both_are_there(
    story: Story, cluster: Cluster
) -> None:
    story.configure()
    story.claim()
    story.pod(node="node-a")
    story.until("it waits", lambda: is_waiting(story, "reader"))
    kubelet = cluster.part("kubelet-node-a")
    kubelet.kill()
    story.plug("at last")
    story.until("it is bound", lambda: story.get("pod", "reader")["spec"].get("nodeName"))
    assert story.get("pod", "reader")["status"]["phase"] == "Pending"

    kubelet.start()

    story.wait_running()
    assert story.read().splitlines()[-1] == "at last"


def test_the_null_device_of_each_node_is_found_and_used(story: Story) -> None:
    story.configure(rule='KERNEL=="null"')
    for node in NODES:
        story.wait_devices(1, node)
    assert len(story.instances()) == len(NODES)
    story.claim()
    words = "test -c $UDEV_DEVNODE && echo $UDEV_DEVNODE; exec sleep 100000"
    story.pod(container={"command": ["sh", "-c", words]})

    story.wait_running()

    assert story.read() == "/dev/null\n"


def test_a_claim_that_no_container_uses_is_prepared_and_unprepared_when_its_pod_is_killed(
    story: Story, cluster: Cluster
) -> None:
    story.plug()
    story.configure()
    story.claim()
    story.pod(node="node-a", container={**SLEEPS, "resources": {}})
    story.wait_running()
    uid = story.claim_uid()
    assert story.cdi_files(uid, "node-a")

    cluster.kubectl("delete", "pod", "reader", "-n", story.namespace, "--force", "--grace-period=0")

    story.wait_unprepared(uid, "node-a")


@contextmanager
def other(story: Story, fails: Path) -> Iterator[None]:
    """A second DRA driver on node-a, with one device; it stays until the story's pods are gone.

    The kubelet ends no pod whose claim it cannot unprepare.
    """
    slice_ = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"other-{story.name}"},
        "spec": {
            "driver": other_driver.NAME,
            "nodeName": "node-a",
            "pool": {"name": "node-a", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "thing"}],
        },
    }
    mine = {"cel": {"expression": f'device.driver == "{other_driver.NAME}"'}}
    class_ = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": f"other-{story.name}"},
        "spec": {"selectors": [mine]},
    }
    argv = [sys.executable, "-m", other_driver.__name__, str(fails)]
    node = story.cluster.node("node-a")
    process = node.popen(argv, env={"PYTHONPATH": str(ROOT)})
    try:
        story.until("it serves", lambda: node.path(other_driver.SOCKET).is_socket())
        story.cluster.apply([slice_, class_])
        yield
    finally:
        fails.unlink(missing_ok=True)
        story.cluster.kubectl("delete", "pod", "--all", "-n", story.namespace)
        process.kill()
        process.wait()
        node.path(other_driver.SOCKET).unlink(missing_ok=True)
        for kind in ("resourceslice", "deviceclass"):
            story.cluster.kubectl("delete", kind, f"other-{story.name}", "--ignore-not-found")


def ask_until_prepared(story: Story, uid: str) -> list[Path]:
    """This driver's files of a claim; while there are none, the kubelet is made to try again.

    It asks the drivers of a claim in random order, up to the first that fails, and tries a
    changed pod at once; by itself it tries every ten seconds.
    """
    files = story.cdi_files(uid, "node-a")
    if not files:
        change = ("annotate", "pod", "reader", f"asked={uuid.uuid4()}", "--overwrite")
        story.cluster.kubectl(*change, "-n", story.namespace)
    return files


def test_a_claim_of_two_drivers_comes_and_goes_as_soon_as_the_other_one_lets_it(
    story: Story, cluster: Cluster
) -> None:
    """The other one fails at first; the kubelet starts anew, and goes on asking both."""
    story.plug("beside another")
    story.configure()
    story.wait_devices(1)
    fails = story.folder / "fails"
    fails.touch()
    with other(story, fails):
        classes = {"disk": story.name, "thing": f"other-{story.name}"}
        requests = [{"name": n, "exactly": {"deviceClassName": c}} for n, c in classes.items()]
        apply_claim(story, {"requests": requests})
        story.pod(node="node-a")
        uid = story.until("the claim is there", story.claim_uid)
        story.until("this one has prepared it", lambda: ask_until_prepared(story, uid))
        cluster.part("kubelet-node-a").restart()
        assert story.get("pod", "reader")["status"]["phase"] == "Pending"

        fails.unlink()

        story.wait_running()
        assert story.read().splitlines()[-1] == "beside another"
        fails.touch()
        cluster.kubectl("delete", "pod", "reader", "-n", story.namespace, "--wait=false")
        story.until("the other one fails", lambda: fails.read_text())

        fails.unlink()

        story.wait_unprepared(uid, "node-a")


def test_the_second_choice_of_a_request_is_prepared_with_the_config_of_its_own(
    story: Story,
) -> None:
    story.plug("second choice")
    story.configure()
    story.wait_devices(1)
    nothing = [{"cel": {"expression": 'device.attributes["moorage.dev"].configuration == "no"'}}]
    chosen = [
        {"name": "best", "deviceClassName": story.name, "selectors": nothing},
        {"name": "good", "deviceClassName": story.name},
    ]
    configs = [config(f"disk/{name}", name) for name in ("best", "good")]
    apply_claim(
        story, {"requests": [{"name": "disk", "firstAvailable": chosen}], "config": configs}
    )
    script = "echo CHOICE=$CHOICE; head -n1 $UDEV_DEVNODE; exec sleep 100000"
    story.pod(node="node-a", container={"command": ["sh", "-c", script]})

    story.wait_running()

    assert story.read().splitlines() == ["CHOICE=good", "second choice"]


def config(request: str, choice: str) -> dict[str, Any]:
    parameters = {
        "apiVersion": "moorage.dev/v1alpha1",
        "kind": "DeviceConfig",
        "env": {"CHOICE": choice},
    }
    return {"requests": [request], "opaque": {"driver": "moorage.dev", "parameters": parameters}}


def test_an_allocated_and_a_new_claim_and_an_extended_resource_of_one_pod(story: Story) -> None:
    for content in ("one", "two", "three"):
        story.plug(content)
    story.configure()
    story.wait_devices(3)
    for name in ("old", "new"):
        story.claim(name)
    story.pod("first", claim="old", node="node-a", container=SLEEPS)
    story.wait_running("first")

    story.pod(
        node="node-a",
        container={
            "command": ["sh", "-c", "cat /dev/loop* | tr -d '\\0'; exec sleep 100000"],
            "resources": {
                "claims": [{"name": "old"}, {"name": "new"}],
                "limits": {f"akri.sh/{story.name}": "1"},
            },
        },
        spec={"resourceClaims": [{"name": n, "resourceClaimName": n} for n in ("old", "new")]},
    )

    story.wait_running()
    assert sorted(story.read().split()) == ["one", "three", "two"]


def test_a_daemon_set_with_administrative_access_reads_a_device_that_is_used(story: Story) -> None:
    story.plug("used")
    story.configure()
    story.claim()
    story.pod(node="node-a")
    story.wait_running()
    label = "resource.kubernetes.io/admin-access=true"
    story.cluster.kubectl("label", "namespace", story.namespace, label)
    exactly = {"deviceClassName": story.name, "adminAccess": True}
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "watched"},
        "spec": {"spec": {"devices": {"requests": [{"name": "disk", "exactly": exactly}]}}},
    }
    container = {
        "name": "main",
        "image": story.get("pod", "reader")["spec"]["containers"][0]["image"],
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", f"head -n1 $UDEV_DEVNODE; echo {TOLD}; exec sleep 100000"],
        "resources": {"claims": [{"name": "disk"}]},
    }
    pod = {
        "schedulerName": SCHEDULER,
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
        "resourceClaims": [{"name": "disk", "resourceClaimTemplateName": "watched"}],
    }
    labels = {"app": "watcher"}
    watcher = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "watcher"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }

    story.cluster.apply([template, watcher], namespace=story.namespace)

    rollout = ("rollout", "status", "daemonset/watcher", "-n", story.namespace)
    story.cluster.kubectl(*rollout, "--timeout=60s")
    watchers = story.cluster.list("pods", namespace=story.namespace, selector="app=watcher")
    assert {one["spec"]["nodeName"] for one in watchers} == set(NODES)
    assert {story.read(one["metadata"]["name"]) for one in watchers} == {"used\n"}
    story.delete("daemonset", "watcher")


def apply_claim(story: Story, devices: dict[str, Any]) -> None:
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "disk"},
        "spec": {"devices": devices},
    }
    story.cluster.apply(body, namespace=story.namespace)
