"""Whether the processes run, have their rights, and have Queues to charge."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kube.shapes.reading import read_as
from kube.shapes.workloads import (
    NO_DAEMON_SET_STATUS,
    NO_SERVING_SPEC,
    NO_SERVING_STATUS,
    DaemonSet,
    ServingPod,
)
from kube.words import some_of
from scheduler_plugin.checking.schedulers import minor_of
from scheduler_plugin.checking.setups import (
    Finding,
    Level,
    Permission,
    Setup,
    Unread,
    unread,
)
from scheduler_plugin.shapes import NO_QUEUE_SPEC, QueueFields

SCHEDULER = "moorage-scheduler-plugin"
NAME_LABEL = "app.kubernetes.io/name"
PART_OF = "app.kubernetes.io/part-of=moorage"


def judge_pods(setup: Setup) -> Iterator[Finding]:
    """Pods of the release that are not ready, and a kube-scheduler of an unsupported version."""
    if isinstance(setup.pods, Unread):
        yield unread("pods", setup.pods)
        return
    running = [pod for body in setup.pods if _is_to_serve(pod := read_as(ServingPod, body))]
    unready = [pod for pod in running if not _ready(pod)]
    for pod in unready:
        name = pod.metadata.name
        mend = f"kubectl --namespace {pod.metadata.namespace} describe pod {name}"
        yield Finding(Level.ERROR, "pods", f"{name} is not ready: {_why(pod)}", mend)
    if not any(pod.metadata.namespace == setup.namespace for pod in running):
        said = f"Namespace {setup.namespace} has no pod of Moorage."
        mend = "Give the namespace of the release with --namespace."
        yield Finding(Level.ERROR, "pods", said, mend)
    elif not unready:
        yield Finding(Level.OK, "pods", f"All {len(running)} pods are ready.")
    yield from _schedulers(setup.git_version, running)


_HOOK = "helm.sh/hook"
"""The annotation of pods that a release runs once, such as its test."""


def _is_to_serve(pod: ServingPod) -> bool:
    """Whether a pod serves; one that runs once does not, nor one that an upgrade terminates."""
    metadata = pod.metadata
    owners = {owner.kind for owner in metadata.owner_references or ()}
    runs_once = _HOOK in (metadata.annotations or {}) or "Job" in owners
    return not runs_once and metadata.deletion_timestamp is None


def _ready(pod: ServingPod) -> bool:
    conditions = (pod.status or NO_SERVING_STATUS).conditions or ()
    return any(c.type == "Ready" and c.status == "True" for c in conditions)


def _why(pod: ServingPod) -> str:
    """The reason of a container's state, else a condition of the pod, else its phase."""
    status = pod.status or NO_SERVING_STATUS
    for container in status.container_statuses or ():
        for state in (container.state or {}).values():
            if container.ready is False and state is not None and state.reason:
                return f"{container.name}: {state.reason}: {state.message or ''}"
    said = [c.message for c in status.conditions or () if c.status == "False" and c.message]
    return said[0] if said else f"{status.phase or 'Unknown'}."


def _schedulers(git_version: str, pods: list[ServingPod]) -> Iterator[Finding]:
    ours = [pod for pod in pods if (pod.metadata.labels or {}).get(NAME_LABEL) == SCHEDULER]
    server = minor_of(git_version)
    for image in sorted({image for pod in ours for image in _scheduler_images(pod)}):
        minor = minor_of(image.partition("@")[0].rpartition(":")[2])
        if minor is not None and server is not None and not server - 1 <= minor <= server:
            said = (
                f"{image} runs with an API server {git_version}: Kubernetes supports only the"
                " server's minor version and the one before."
            )
            mend = "Unset scheduler.image.tag and upgrade, or set a tag of the server's version."
            yield Finding(Level.ERROR, "scheduler", said, mend)


def _scheduler_images(pod: ServingPod) -> Iterator[str]:
    for container in (pod.spec or NO_SERVING_SPEC).containers or ():
        if container.name == "kube-scheduler":
            yield container.image or ""


def judge_daemon_sets(setup: Setup) -> Iterator[Finding]:
    """Whether the driver is ready on its nodes."""
    if isinstance(setup.daemon_sets, Unread):
        yield unread("driver", setup.daemon_sets)
        return
    for body in setup.daemon_sets:
        found = read_as(DaemonSet, body)
        status = found.status or NO_DAEMON_SET_STATUS
        desired, ready = status.desired_number_scheduled or 0, status.number_ready or 0
        level = Level.OK if ready == desired > 0 else Level.WARNING
        said = f"{found.metadata.name} is ready on {ready} of {desired} nodes."
        yield Finding(level, "driver", said)
    if not setup.daemon_sets:
        said = "There is no DaemonSet of the driver: no device is discovered."
        yield Finding(Level.ERROR, "driver", said)


def judge_queues(setup: Setup) -> Iterator[Finding]:
    """Queues that no pod can use."""
    part = "queues"
    if isinstance(setup.queues, Unread):
        yield unread(part, setup.queues)
        return
    if not setup.queues:
        said = "There is no Queue, so no pod gets an accounted device."
        yield Finding(Level.WARNING, part, said, "docs/queues.md explains how to write one.")
    queues = [read_as(QueueFields, body) for body in setup.queues]
    parents = {(found.spec or NO_QUEUE_SPEC).parent for found in queues}
    flaws = [flaw for found in queues for flaw in _queue_flaws(found, parents)]
    yield from flaws
    if setup.queues and not flaws:
        yield Finding(Level.OK, part, f"All {len(setup.queues)} Queues are accepted.")


def _queue_flaws(queue: QueueFields, parents: Collection[str | None]) -> Iterator[Finding]:
    name = queue.metadata.name
    if (queue.spec or NO_QUEUE_SPEC).namespace_selector is None and name not in parents:
        said = f"{name} has no namespaceSelector: no namespace may use it."
        mend = "Set namespaceSelector: {} to allow all namespaces."
        yield Finding(Level.WARNING, "queues", said, mend)
    for condition in queue.conditions:
        if condition.type == "Accepted" and condition.status == "False":
            said = f"{name}: {condition.message}"
            yield Finding(Level.WARNING, "queues", said)


_DRA = "resource.k8s.io"
PERMISSIONS = tuple(
    Permission(verb, group, resource)
    for group, resource, verbs in (
        ("", "pods", "get list watch patch"),
        ("", "pods/binding", "create"),
        ("", "pods/eviction", "create"),
        ("", "pods/status", "patch"),
        ("", "namespaces", "list watch"),
        ("", "nodes", "list watch"),
        (_DRA, "resourceclaims", "get list watch patch"),
        (_DRA, "resourceclaims/status", "patch"),
        (_DRA, "resourceclaims/binding", "patch"),
        (_DRA, "deviceclasses", "list watch"),
        (_DRA, "resourceslices", "list watch"),
        (_DRA, "devicetaintrules", "list watch"),
        ("moorage.dev", "queues", "list watch patch"),
        ("moorage.dev", "queues/status", "patch"),
        ("akri.sh", "configurations", "list watch"),
        ("akri.sh", "instances", "list watch"),
        ("policy", "poddisruptionbudgets", "list"),
        ("events.k8s.io", "events", "create patch"),
    )
    for verb in verbs.split()
)
"""The rights of the plugin's account in all namespaces; a test compares the chart's role."""


def judge_permissions(setup: Setup) -> Iterator[Finding]:
    """Whether the plugin's account has its rights."""
    part, denied = "permissions", setup.denied
    if isinstance(denied, Unread):
        yield unread(part, denied)
    elif denied:
        said = f"{setup.account} may not {some_of(map(str, denied))}."
        mend = "Upgrade the release: its role moorage-scheduler-plugin has these rights."
        yield Finding(Level.ERROR, part, said, mend)
    else:
        yield Finding(Level.OK, part, f"{setup.account} has all rights that it needs.")
