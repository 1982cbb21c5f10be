"""What a story is told with: queues, devices that can only be allocated, claims, pods."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from local_cluster.api import ApiError, ConditionTimeoutError
from local_cluster.namespaces import missing_is_fine
from tests.e2e.sharing import objects, write_gate
from tests.e2e.sharing.extender import Extender
from tests.e2e.sharing.objects import Object
from tests.e2e.sharing.plugin import Plugin
from tests.e2e.sharing.views import CLAIM, CLUSTER_SCOPED, View

T = TypeVar("T")

SECONDS = 120.0
"""Evictions that were held back are tried again after a random time, a minute at most."""

FAKE = "fake-"
"""What names of nodes without a kubelet begin with."""

NODE = "fake-0000"
OTHER_NODE = "fake-0001"

__all__ = ["CLAIM", "NODE", "OTHER_NODE", "Story"]


@dataclass(kw_only=True)
class Story(View):
    """One test's own namespace, queues and devices; everything else is the cluster's.

    Attributes:
        unseen: Queues that the plugin may not know yet.
    """

    plugin: Plugin
    extender: Extender
    unseen: list[str] = field(default_factory=list)

    def queue(self, name: str, *, parent: str = "", **options: Any) -> str:
        """Create a Queue and return its full name.

        Options: `quota` and `limit` of this story's class, `shares` of other classes, and fields
        of its spec.
        """
        full = f"{name}-{self.name}"
        share = {key: options.pop(key) for key in ("quota", "limit") if key in options}
        shares = {**options.pop("shares", {}), **({self.name: share} if share else {})}
        self.create("queue", objects.queue(full, parent=parent, shares=shares, **options))
        self.unseen.append(full)
        return full

    def devices(
        self, count: int, *, node: str = NODE, numa: Iterable[int] = (), **options: Any
    ) -> None:
        """Publish devices on a node; the class that finds them is made with the first."""
        if ("class", self.name) not in self.made:
            self.create("class", objects.device_class(self.name, self.driver, **options))
        self.create("slice", objects.resource_slice(self.driver, node, count, numa))

    @property
    def driver(self) -> str:
        return f"{self.name}.example.com"

    def claim(self, name: str = CLAIM, **options: Any) -> None:
        """Create a claim of this story's class. Options: see `objects.claim`."""
        class_name = options.pop("class_name", self.name)
        self._wait_seen()
        self.create("claim", objects.claim(name, class_name, **options))

    def pod(self, name: str, queue: str, *claims: str, **options: Any) -> None:
        """Create a pod of a queue ("" for none) that uses the claims, by default `shared`.

        Options: `preemptibility`, `labels`, and those of `objects.pod`.
        """
        labels = {**options.pop("labels", {}), **({objects.QUEUE: queue} if queue else {})}
        if preemptibility := options.pop("preemptibility", ""):
            labels[objects.PREEMPTIBILITY] = preemptibility
        self._wait_seen()
        used = claims if claims or "templates" in options else (CLAIM,)
        self.create("pod", objects.pod(name, used, labels=labels, **options))

    def plain_pod(self, name: str, queue: str = "", **options: Any) -> None:
        """The same without any claim."""
        self.pod(name, queue, templates=(), **options)

    def template(self, name: str) -> None:
        """Create a template of claims of this story's class."""
        self.create("template", objects.template(name, self.name))

    def create(self, kind: str, value: Object) -> Object:
        created: Object = self.api.create(self.path(kind), value)
        if kind in CLUSTER_SCOPED:
            self.made.append((kind, created["metadata"]["name"]))
        return created

    def label_namespace(self, labels: Mapping[str, str]) -> None:
        self.patch("namespace", self.namespace, {"metadata": {"labels": labels}})

    def patch(self, kind: str, name: str, value: Mapping[str, Any], part: str = "") -> Object:
        """A merge patch; `part` is a subresource such as /status."""
        patched: Object = self.api.patch(self.path(kind, name) + part, value)
        return patched

    def delete(self, kind: str, name: str) -> None:
        """Delete an object and wait until it is gone."""
        self.api.delete(f"{self.path(kind, name)}?gracePeriodSeconds=0")
        self.until(f"{kind} {name} is gone", lambda: self.find(kind, name) is None)

    def refusal(self, write: Callable[[], object]) -> str:
        """The sentence with which the API server refuses a write."""
        try:
            write()
        except ApiError as error:
            return str(error)
        raise AssertionError("the write was not refused")

    def change_queue(self, name: str, spec: Mapping[str, Any]) -> None:
        """Change a Queue, and wait until the plugin has seen it."""
        self.patch("queue", name, {"spec": spec})
        self.unseen.append(name)
        self._wait_seen()

    def _wait_seen(self) -> None:
        """Nothing makes kube-scheduler try a pod again whose queue was not known at first."""
        for name in self.unseen:
            self.until(f"the plugin knows {name} as it is now", partial(self._is_seen, name))
        self.unseen.clear()

    def _is_seen(self, name: str) -> bool:
        queue = self.get("queue", name)
        observed = queue.get("status", {}).get("observedGeneration")
        return bool(observed == queue["metadata"]["generation"])

    def account(self, accounted: str) -> None:
        """Label this story's class."""
        self.patch("class", self.name, {"metadata": {"labels": {objects.ACCOUNTED: accounted}}})

    def priority_class(self, value: int) -> None:
        self.create("priority", {"metadata": {"name": self.name}, "value": value})

    def allocate(self, claim: str, node: str) -> None:
        """Give a claim the first device of a node, as another scheduler would."""
        allocation = objects.allocation(self.driver, node, datetime.now(UTC))
        self.patch("claim", claim, {"status": {"allocation": allocation}}, "/status")

    def as_binder_mark_owner(self, claim: str, queue: str, owner_pod: str) -> None:
        """Write an owner with the binder's rights."""
        marks = {"labels": {objects.QUEUE: queue}, "annotations": {objects.OWNER_POD: owner_pod}}
        what = ("patch", "resourceclaim", claim, "--namespace", self.namespace)
        how = ("--type=merge", "--patch", json.dumps({"metadata": marks}))
        self.cluster.kubectl(*what, *how, "--as", objects.BINDER)

    def evict(self, pod: str) -> None:
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
        self.api.create(self.path("pod", pod) + "/eviction", eviction)

    def send_to_scheduler(self) -> None:
        """Pods of this namespace name our scheduler from now on, whatever their manifest says."""
        policy, binding = objects.scheduler_policy(self.namespace)
        self.create("policy", policy)
        self.create("policybinding", binding)
        self.until("pods are sent to the scheduler", self._is_sent_to_scheduler)

    def _is_sent_to_scheduler(self) -> bool:
        probe = objects.pod("probe", schedulerName="default-scheduler")
        admitted = self.api.create(f"{self.path('pod')}?dryRun=All", probe)
        return bool(admitted["spec"]["schedulerName"] == objects.SCHEDULER)

    def holding(self, verb: str, pod: str) -> AbstractContextManager[None]:
        """Hold back what kube-scheduler asks about a pod."""
        return self.extender.holding(verb, self.key(pod))

    def is_held(self, verb: str, pod: str) -> bool:
        return self.extender.is_held(verb, self.key(pod))

    def bindings_stopped(self, when: str) -> AbstractContextManager[write_gate.WriteGate]:
        """Stop bindings in this namespace at the API server; `when` is CEL."""
        return write_gate.bindings_stopped(self.cluster, self.namespace, when)

    def gates_stopped(self, pod: str) -> AbstractContextManager[write_gate.WriteGate]:
        """Stop what changes a pod of this namespace at the API server, its gate for example."""
        when = f"request.name == '{pod}' && request.operation == 'UPDATE'"
        return write_gate.bindings_stopped(self.cluster, self.namespace, when, ("pods", "UPDATE"))

    def evictions_stopped(self) -> AbstractContextManager[write_gate.WriteGate]:
        """Stop evictions in this namespace at the API server, but those that are only tried."""
        when = "request.subResource == 'eviction' && !request.?dryRun.orValue(false)"
        what = ("pods/eviction", "CREATE")
        return write_gate.bindings_stopped(self.cluster, self.namespace, when, what)

    def wait_bound(self, *pods: str) -> None:
        wanted = set(pods)
        self.until(f"{', '.join(pods)} are bound", lambda: wanted <= self.bound())

    def wait_running(self, *pods: str) -> None:
        self.until(f"{', '.join(pods)} run", lambda: all(map(self.is_running, pods)))

    def wait_refused(self, pod: str, reason: str) -> str:
        """Wait until the pod's condition gives this reason; returns its sentence."""
        return self.wait_condition(pod, f"{reason}: ")

    def wait_condition(self, pod: str, words: str) -> str:
        """Wait until these words are in the condition of a pod that waits; returns all of it."""
        return self.until(f'{pod} waits: "{words}"', lambda: self.refused(pod, words))

    def wait_figures(self, figures: Mapping[str, int], what: str = "usage") -> None:
        """Wait until these Queues show these figures, all at once."""
        wanted = dict(figures)

        def shown() -> bool:
            return {queue: self.figure(queue, what) for queue in wanted} == wanted

        self.until(f"{what} is {wanted}", shown)

    def wait_shared_out(self, queue: str, count: int = 1) -> None:
        self.until(f"{queue} shares {count} claims", lambda: self.shared_out(queue) == count)

    def wait_owner(self, queue: str, claim: str = CLAIM) -> None:
        self.until(f'{claim} belongs to "{queue}"', lambda: self.owner(claim) == queue)

    def wait_bindings(self, pod: str) -> int:
        """How many bindings of a pod were accepted; the API server notes one after its answer."""
        return self.until(f"the binding of {pod} is noted", lambda: self.bindings_of(pod))

    def wait_told(self, name: str, reason: str) -> str:
        """Wait until an Event of this reason is about an object; returns its sentence."""
        return self.until(f"{reason} of {name}", lambda: self.told(name, reason))

    def until(self, what: str, condition: Callable[[], T | None], *, seconds: float = SECONDS) -> T:
        try:
            return self.cluster.wait_until(what, condition, seconds=seconds)
        except ConditionTimeoutError as error:
            told = (*self.describe(), "the plugin's log ends so:", *self.plugin.last_lines())
            raise AssertionError("\n".join((str(error), *told))) from error

    def begin(self) -> None:
        """Make the namespace, with the account that its pods need."""
        self.create("namespace", {"metadata": {"name": self.namespace}})
        self.until("pods have an account", lambda: self.find("account", "default"))

    def end(self) -> None:
        """Delete everything, pods and claims first: a queue may have to outlive its claims."""
        self.end_pods()
        for kind, name in reversed(self.made):
            if kind == "queue":
                self.until(f"queue {name} goes", partial(self._is_deleted, kind, name))
            else:
                self._is_deleted(kind, name)
        # They are kept for a moment by what they were charged for.
        queues = {name for kind, name in self.made if kind == "queue"}
        self.until("queues are gone", lambda: queues.isdisjoint(map(_name, self.all("queue"))))

    def _is_deleted(self, kind: str, name: str) -> bool:
        """Delete it, unless it is gone; False where that is refused, as of a queue's parent."""
        try:
            self.api.delete(self.path(kind, name))
        except ApiError as error:
            if error.status == 422 and kind == "queue":
                return False
            if error.status != 404:
                raise
        return True

    def end_pods(self) -> None:
        """Delete pods and claims, and wait until devices and nodes are free."""
        for pod in self.all("pod"):
            # Nobody but the API server ends pods of nodes that have no kubelet.
            is_real = not pod["spec"].get("nodeName", NODE).startswith(FAKE)
            path = f"{self.path('pod', pod['metadata']['name'])}?gracePeriodSeconds={int(is_real)}"
            with missing_is_fine():
                self.api.delete(path)
        self.until("pods are gone", lambda: not self.all("pod"))
        self.api.delete(self.path("claim"))
        self.until("claims are gone", lambda: not self.all("claim"))


def _name(item: Object) -> str:
    return str(item["metadata"]["name"])
