"""The changes of a simulation, and the snapshot with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from kube.shapes.reading import JsonObject
from kube.shapes.times import timestamp
from scheduler_plugin.asking.snapshots import Snapshot, changed, key_of
from scheduler_plugin.models import queue_problems

KINDS = {
    "Pod": "pods",
    "ResourceClaim": "resourceclaims",
    "ResourceClaimTemplate": "resourceclaimtemplates",
}


class NoChangeError(ValueError):
    """Raised if the changes of a simulation are not valid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The changes of a simulation.

    Attributes:
        objects: New pods, with their claims and templates, as in a manifest.
        queues: New or changed Queues.
        without_devices: Names of devices or Instances that are removed.
        namespace: The namespace of objects that name none.
    """

    objects: Sequence[JsonObject] = ()
    queues: Sequence[JsonObject] = ()
    without_devices: Sequence[str] = ()
    namespace: str = "default"


def with_queues(snapshot: Snapshot, queues: Sequence[JsonObject]) -> Snapshot:
    """The snapshot with these queues, added or changed.

    Raises:
        NoChangeError: If the API server would refuse one of them.
    """
    for queue in queues:
        if queue.get("kind") != "Queue":
            raise NoChangeError(f"kind: must be Queue, not {queue.get('kind')!r}.")
        if problems := queue_problems(queue):
            raise NoChangeError("; ".join(map(str, problems)))
    return changed(snapshot, "queues", *queues) if queues else snapshot


def with_pods(snapshot: Snapshot, changes: Changes, now: datetime) -> Snapshot:
    """The snapshot with the given pods and their claims, as the API server would store them.

    Raises:
        NoChangeError: If an object has another kind, no name, or an unknown priority class.
    """
    by_kind: dict[str, list[JsonObject]] = {plural: [] for plural in KINDS.values()}
    for obj in changes.objects:
        plural = KINDS.get(str(obj.get("kind")))
        if plural is None or not (obj.get("metadata") or {}).get("name"):
            wanted = ", ".join(KINDS)
            raise NoChangeError(
                f"kind: {obj.get('kind')!r}: give only {wanted}, each with metadata.name."
            )
        by_kind[plural].append(_stored(obj, changes.namespace, now))
    found = changed(snapshot, "resourceclaimtemplates", *by_kind["resourceclaimtemplates"])
    pods = [_prioritized(pod, snapshot) for pod in by_kind["pods"]]
    made = [_with_claims(pod, found) for pod in pods]
    claims = [*by_kind["resourceclaims"], *(claim for _, more in made for claim in more)]
    found = changed(found, "resourceclaims", *claims)
    return changed(found, "pods", *(pod for pod, _ in made))


def _stored(obj: JsonObject, namespace: str, now: datetime) -> JsonObject:
    """The object as the API server would store it."""
    metadata = {"namespace": namespace, **obj["metadata"]}
    metadata |= {
        "uid": f"simulated-{metadata['namespace']}-{metadata['name']}",
        "creationTimestamp": timestamp(now),
    }
    stored = {**obj, "metadata": metadata}
    if obj.get("kind") == "Pod":
        spec = {k: v for k, v in (obj.get("spec") or {}).items() if k != "nodeName"}
        stored |= {"spec": spec, "status": {"phase": "Pending"}}
    return stored


def _prioritized(pod: JsonObject, snapshot: Snapshot) -> JsonObject:
    spec = pod["spec"]
    if spec.get("priority") is not None:
        return pod
    name, classes = spec.get("priorityClassName"), snapshot.of("priorityclasses")
    for found in classes:
        if key_of(found)[1] == name or (not name and found.get("globalDefault")):
            return {**pod, "spec": {**spec, "priority": found.get("value") or 0}}
    if name:
        raise NoChangeError(f"spec.priorityClassName: {name!r} is unknown: set spec.priority.")
    return pod


def _with_claims(pod: JsonObject, snapshot: Snapshot) -> tuple[JsonObject, list[JsonObject]]:
    """The pod, and the claims that kube-controller-manager would create from its templates."""
    metadata, spec = pod["metadata"], pod["spec"]
    templates = {key_of(found): found for found in snapshot.of("resourceclaimtemplates")}
    statuses, made = [], []
    for entry in spec.get("resourceClaims") or ():
        key = (metadata["namespace"], entry.get("resourceClaimTemplateName") or "")
        if template := templates.get(key):
            name = f"{metadata['name']}-{entry['name']}"
            statuses.append({"name": entry["name"], "resourceClaimName": name})
            made.append(_made(template, metadata["namespace"], name))
    status = {**pod["status"], "resourceClaimStatuses": statuses}
    return {**pod, "status": status}, made


def _made(template: JsonObject, namespace: str, name: str) -> JsonObject:
    spec = template.get("spec") or {}
    uid = f"simulated-{namespace}-{name}"
    metadata = {**(spec.get("metadata") or {}), "namespace": namespace, "name": name, "uid": uid}
    return {"metadata": metadata, "spec": spec.get("spec") or {}}


def pod_names(changes: Changes) -> list[tuple[str, str]]:
    """Namespace and name of each given pod."""
    pods = (obj["metadata"] for obj in changes.objects if obj.get("kind") == "Pod")
    return [(m.get("namespace") or changes.namespace, m["name"]) for m in pods]
