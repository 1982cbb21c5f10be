"""What a story of slots is told with: devices that both nodes see, pods, and who has what."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from local_cluster import namespaces
from local_cluster.api import BUSYBOX_IMAGE, Cluster, ConditionTimeoutError
from tests.e2e.driver.installation import Drivers
from tests.e2e.legacy import kubelets
from tests.e2e.legacy.drivers import availability
from tests.e2e.legacy.slot_gate import SlotGate, slots_held
from tests.e2e.sharing.objects import Object
from tests.e2e.sharing.views import View

T = TypeVar("T")
S = TypeVar("S", bound="SlotStory")

A, B = "node-a", "node-b"
NODES = (A, B)
ANY = ""
"""Asks for any device of the Configuration; every other word is that of one device."""

SECONDS = 90.0
LAST_LINES = 25
SHOWN = ("spec", "reason", "message", "status")
SLEEP = ("sleep", "100000")
UNTIL_TOLD = ("sh", "-c", "until test -e /tmp/end; do sleep 0.1; done; exit $(cat /tmp/end)")


@dataclass(kw_only=True)
class SlotStory(View):
    """One test's own namespace, Configuration and pods; everything else is the cluster's.

    Attributes:
        drivers: Of both nodes.
    """

    drivers: Drivers

    def configure(self, *words: str, **spec: Any) -> None:
        """Apply a Configuration with a device for each word, which both nodes see."""
        details = json.dumps({"descriptions": list(words)})
        self.apply_configuration({"name": "debugEcho", "discoveryDetails": details}, **spec)

    def apply_configuration(self, handler: Mapping[str, str], **spec: Any) -> None:
        body = {
            "apiVersion": "akri.sh/v0",
            "kind": "Configuration",
            "metadata": {"name": self.name},
            "spec": {"discoveryHandler": handler, **spec},
        }
        self.cluster.apply(body, namespace=self.namespace)

    @contextmanager
    def all_devices_away(self, word: str = "OFFLINE") -> Iterator[None]:
        """No device answers for as long as this lasts, or each says this of itself."""
        file = availability(self.cluster)
        file.write_text(word)
        try:
            yield
        finally:
            file.unlink()

    def device(self, word: str) -> str:
        """The Instance of a device, named as Akri names those that several nodes share."""
        return f"{self.name}-{digest(word)}"

    def slot(self, word: str, index: int) -> str:
        return f"{self.device(word)}-{index}"

    def resource(self, word: str) -> str:
        """What a pod asks for, without `akri.sh/`."""
        return self.device(word) if word else self.name

    def pod(self, name: str, asks: Mapping[str, int], node: str = "", **options: Any) -> None:
        """A pod whose container asks for so many devices, by word.

        Options: `command`, and fields of its spec.
        """
        spec = self.pod_spec(asks, node, **options)
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        self.api.create(self.path("pod"), body)

    def pod_spec(self, asks: Mapping[str, int], node: str = "", **options: Any) -> Object:
        main = self.container("main", asks, options.pop("command", SLEEP))
        place = {"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}
        return {
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "containers": [main],
            **place,
            **options,
        }

    def container(
        self, name: str, asks: Mapping[str, int], command: tuple[str, ...] = SLEEP
    ) -> Object:
        limits = {f"{kubelets.PREFIX}{self.resource(w)}": str(n) for w, n in asks.items()}
        return {
            "name": name,
            "image": BUSYBOX_IMAGE,
            "imagePullPolicy": "Never",
            "command": list(command),
            "resources": {"limits": limits},
        }

    def run(self, name: str, asks: Mapping[str, int], node: str = "", **options: Any) -> None:
        """A pod, and wait until it runs."""
        self.pod(name, asks, node, **options)
        self.wait_running(name)

    def replica_set(self, name: str, asks: Mapping[str, int], node: str) -> None:
        """One pod, and its replacement whenever it ends."""
        self._workload("ReplicaSet", name, self.pod_spec(asks, node))

    def stateful_set(self, name: str, asks: Mapping[str, int], node: str) -> None:
        """One pod `<name>-0`, and one of the same name when it ends."""
        self._workload("StatefulSet", name, self.pod_spec(asks, node))

    def _workload(self, kind: str, name: str, spec: Object) -> None:
        labels = {"app": name}
        template = {"metadata": {"labels": labels}, "spec": spec}
        body = {
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": {"name": name},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
        }
        self.cluster.apply(body, namespace=self.namespace)

    def tell_to_end(self, pod: str, code: int = 0) -> None:
        """End the container of a pod that waits for it (`UNTIL_TOLD`)."""
        write = ("sh", "-c", f"echo {code} > /tmp/.end; mv /tmp/.end /tmp/end")
        self.cluster.kubectl("exec", "-n", self.namespace, pod, "--", *write)

    def environment(self, pod: str) -> dict[str, str]:
        """What its container knows of its devices."""
        told = self.cluster.kubectl("exec", "-n", self.namespace, pod, "--", "env").stdout
        pairs = (line.partition("=") for line in told.splitlines())
        return {name: value for name, _, value in pairs if name.startswith("DEBUG_ECHO_")}

    def restarts(self, pod: str) -> int:
        statuses = self.get("pod", pod)["status"].get("containerStatuses", ())
        return sum(status["restartCount"] for status in statuses)

    def usage(self) -> dict[str, str]:
        """All slots that are taken, and by whom, as the Instances say."""
        return {
            slot: holder
            for instance in self.all("instance")
            for slot, holder in instance["spec"].get("deviceUsage", {}).items()
            if holder
        }

    def by_any(self, word: str, node: str, slot: int | None = None) -> str:
        """The value of a slot that is held through the Configuration."""
        device = self.device(word) if slot is None else self.slot(word, slot)
        return f"C:{device}:{node}"

    def offers(self, node: str) -> dict[str, int]:
        """What a node offers of this story's resources, by word."""
        names = {self.name: ANY, **{self.device(word): word for word in self.words()}}
        found = kubelets.allocatable(self.cluster, node)
        return {names[name]: amount for name, amount in found.items() if name in names}

    def words(self) -> list[str]:
        return [
            i["spec"]["brokerProperties"]["DEBUG_ECHO_DESCRIPTION"] for i in self.all("instance")
        ]

    def of_phase(self, phase: str) -> list[Object]:
        return [pod for pod in self.all("pod") if pod["status"]["phase"] == phase]

    def failed(self) -> list[Object]:
        """Pods that a kubelet refused, or that ended so."""
        return self.of_phase("Failed")

    def pending(self) -> list[str]:
        """Names of the pods that wait for a node, as kube-scheduler has found none."""
        return [p["metadata"]["name"] for p in self.of_phase("Pending") if _has_no_node(p)]

    def phase(self, pod: str) -> str:
        return str(self.get("pod", pod)["status"]["phase"])

    def gate(self, word: str, node: str) -> AbstractContextManager[SlotGate]:
        """Hold what the driver of a node writes about the slots of a device."""
        return slots_held(self.cluster, self.namespace, self.device(word), node)

    def delete(self, kind: str, name: str, grace_seconds: int = 0) -> None:
        """Delete an object and wait until it is gone."""
        self.api.delete(f"{self.path(kind, name)}?gracePeriodSeconds={grace_seconds}")
        self.until(f"{kind} {name} is gone", lambda: self.find(kind, name) is None)

    def end_pod(self, name: str) -> None:
        """Delete a pod as a user does: it is gone once the kubelet has ended it."""
        self.delete("pod", name, grace_seconds=1)

    def end_unharmed(self, *pods: str) -> None:
        """Delete pods that have run all the time."""
        for pod in pods:
            assert (self.phase(pod), self.restarts(pod)) == ("Running", 0), pod
            self.end_pod(pod)

    def end_and_wait_for_next(self, pod: str) -> None:
        """Delete a pod, and wait until one of the same name runs."""
        before = self.uid("pod", pod)
        self.api.delete(f"{self.path('pod', pod)}?gracePeriodSeconds=1")
        self.until(f"another {pod} runs", lambda: self._is_next(pod, before))

    def _is_next(self, pod: str, before: str) -> bool:
        found = self.find("pod", pod)
        return bool(
            found and found["metadata"]["uid"] != before and found["status"]["phase"] == "Running"
        )

    def wait_running(self, *pods: str) -> None:
        self.until(f"{', '.join(pods)} run", lambda: all(map(self.is_running, pods)))

    def is_running(self, pod: str) -> bool:
        """Whether it is there and runs; its controller may not have made it yet."""
        found = self.find("pod", pod)
        return found is not None and found["status"]["phase"] == "Running"

    def wait_phase(self, pod: str, phase: str) -> Object:
        self.until(f"{pod} is {phase}", lambda: self.phase(pod) == phase)
        return self.get("pod", pod)

    def wait_usage(self, expected: Mapping[str, str]) -> None:
        self.until(f"the slots are {dict(expected)}", lambda: self.usage() == expected)

    def wait_held(self, count: int) -> None:
        """Wait until so many slots are taken, whichever they are."""
        self.until(f"{count} slots are held", lambda: len(self.usage()) == count)

    def wait_offers(self, expected: Mapping[str, int], *nodes: str) -> None:
        """Wait until these nodes (by default both) offer exactly this, by word."""
        for node in nodes or NODES:
            self.until(f"{node} offers {expected}", partial(self._offers_just, node, expected))

    def _offers_just(self, node: str, expected: Mapping[str, int]) -> bool:
        return self.offers(node) == expected

    def until(self, what: str, condition: Callable[[], T | None]) -> T:
        try:
            return self.cluster.wait_until(what, condition, seconds=SECONDS)
        except ConditionTimeoutError as error:
            raise AssertionError("\n".join((str(error), *self.describe()))) from error

    def describe(self) -> Iterator[str]:
        yield f"the slots are {self.usage()}"
        for kind in ("configuration", "instance", "pod", "event"):
            for item in self.all(kind):
                shown = {key: item[key] for key in SHOWN if key in item}
                yield f"{kind} {item['metadata']['name']}: {json.dumps(shown)}"
        for node, handle in self.drivers.nodes.items():
            yield from kubelets.described(self.cluster, node)
            yield f"the log of the driver of {node} ends so:"
            yield from handle.logs().splitlines()[-LAST_LINES:]

    def begin(self) -> None:
        """Make the namespace, with the account that its pods need."""
        self.api.create(self.path("namespace"), {"metadata": {"name": self.namespace}})
        self.until("pods have an account", lambda: self.find("account", "default"))

    def end(self) -> None:
        """Delete everything, and wait until no slot is held."""
        workloads = ("delete", "replicasets,statefulsets", "--all", "-n", self.namespace)
        self.cluster.kubectl(*workloads, "--cascade=background")
        self.cluster.kubectl("delete", "pods", "--all", "-n", self.namespace, "--grace-period=1")
        self.cluster.kubectl("delete", "akric", "--all", "-n", self.namespace)
        self.until("its Instances are gone", lambda: not self.all("instance"))


def _has_no_node(pod: Object) -> bool:
    told = {c["type"]: c.get("reason") for c in pod["status"].get("conditions", ())}
    return "nodeName" not in pod["spec"] and told.get("PodScheduled") == "Unschedulable"


def told(cluster: Cluster, drivers: Drivers, test: str) -> Iterator[SlotStory]:
    """A story of slots, see `told_as`."""
    yield from told_as(SlotStory, cluster, drivers, test)


def told_as(kind: type[S], cluster: Cluster, drivers: Drivers, test: str) -> Iterator[S]:
    """A story in a namespace of its own, and the cluster as it was before it."""
    name = f"c{secrets.token_hex(3)}"
    namespace = namespaces.name_for(test, name)
    with cluster.api() as api:
        one = kind(cluster=cluster, namespace=namespace, name=name, api=api, drivers=drivers)
        one.begin()
        try:
            yield one
        finally:
            one.end()
            namespaces.delete(cluster, namespace)


def digest(word: str) -> str:
    """Akri's hash of a device that several nodes share."""
    return hashlib.blake2b(word.encode(), digest_size=3).hexdigest()
