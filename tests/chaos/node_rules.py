"""What has to hold on a node at a quiet point: containers have their devices and no others."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from tests.chaos.findings import Finding
from tests.chaos.node_reports import Container, NodeReport
from tests.chaos.objects import (
    PREFIX,
    Object,
    Snapshot,
    claims_of,
    is_going,
    is_placed,
    node_of,
    of_ours,
    shown,
    uid,
)

CDI_FILE = re.compile(r"moorage\.dev-claim-([0-9a-f-]{36})\.json(\.withheld)?")
OF_AN_INSTANCE = re.compile(r"(?:UDEV|DEBUG_ECHO)_[A-Z_]+_([0-9A-F]{6,16})")
"""Variables of the handlers that devices of the trials come from."""


def node_findings(report: NodeReport, snapshot: Snapshot) -> Iterator[Finding]:
    """Everything that must not be on one node."""
    yield from _containers(report, snapshot)
    yield from _files(report, snapshot)


def _containers(report: NodeReport, snapshot: Snapshot) -> Iterator[Finding]:
    pods = snapshot.pods_by_uid()
    for container in report.containers:
        pod = pods.get(container.pod_uid)
        if pod is None or is_going(pod) or not is_placed(pod):
            continue
        if _body(pod, container.name) is not None:
            yield from _devices(container, pod, report, snapshot)


def _devices(
    container: Container, pod: Object, report: NodeReport, snapshot: Snapshot
) -> Iterator[Finding]:
    about = f"container {shown(pod)}/{container.name} on {report.node}"
    instances = instances_of(pod, container.name, report, snapshot)
    wanted = {name.rpartition("-")[2].upper() for name in instances}
    found = {m[1] for word in container.environment if (m := OF_AN_INSTANCE.fullmatch(word))}
    for each in sorted(found - wanted):
        yield Finding("anothers-device", about, f"its environment tells of {each}, not given to it")
    for each in sorted(wanted - found):
        yield Finding("without-its-own", about, f"its environment does not tell of {each}")
    yield from _nodes(container, instances, about, report, snapshot)


def _nodes(
    container: Container,
    instances: set[str],
    about: str,
    report: NodeReport,
    snapshot: Snapshot,
) -> Iterator[Finding]:
    paths = {path for name in instances for path in paths_of(name, snapshot)}
    wanted = {report.numbers[path]: path for path in paths if path in report.numbers}
    gone = paths - {*report.numbers}
    found = {numbers: path for path, numbers in container.devices.items() if path not in gone}
    for numbers in sorted({*found} - {*wanted}):
        yield Finding("anothers-device", about, f"it has {found[numbers]}, which is {numbers}")
    for numbers in sorted({*wanted} - {*found}):
        yield Finding("without-its-own", about, f"it lacks {wanted[numbers]}, which is {numbers}")


def instances_of(pod: Object, container: str, report: NodeReport, snapshot: Snapshot) -> set[str]:
    """The Instances of a container's devices: of its claims, and of its slots."""
    slots = {
        instance_of_slot(resource, virtual, report.node, snapshot)
        for listed in report.listed or ()
        if (*listed.pod, listed.container) == (*_key(pod), container)
        for resource, virtuals in listed.devices.items()
        if resource.startswith(PREFIX)
        for virtual in virtuals
    }
    return slots | {
        instance_of(result["device"], snapshot)
        for claim, requests in _claims(pod, container, snapshot)
        for result in of_ours(claim)
        if not requests or result["request"].partition("/")[0] in requests
    }


def instance_of(device: str, snapshot: Snapshot | None = None) -> str:
    """The Instance of a device or virtual device, which may be one of several slots of it."""
    known = snapshot and any(
        body["metadata"]["name"] == device for body in snapshot.all("instances")
    )
    stem, _, last = device.rpartition("-")
    return device if known or not last.isdigit() or len(last) >= 6 else stem


def instance_of_slot(resource: str, virtual: str, node: str, snapshot: Snapshot) -> str:
    """Where a pod asked for any device, the Instance says that it was this virtual one."""
    for body in snapshot.all("instances"):
        usage = body["spec"].get("deviceUsage") or {}
        is_its = resource.removeprefix(PREFIX) == body["spec"]["configurationName"]
        if is_its and f"C:{virtual}:{node}" in usage.values():
            return str(body["metadata"]["name"])
    return instance_of(virtual)


def _claims(pod: Object, container: str, snapshot: Snapshot) -> Iterator[tuple[Object, set[str]]]:
    """A container's claims, each with the requests that it names; none is all."""
    body = _body(pod, container) or {}
    asked: dict[str, set[str]] = defaultdict(set)
    for entry in (body.get("resources") or {}).get("claims") or ():
        asked[entry["name"]] |= {entry["request"]} if "request" in entry else set()
    status = pod.get("status", {})
    made = {s["name"]: s.get("resourceClaimName") for s in status.get("resourceClaimStatuses", ())}
    names = {
        e.get("resourceClaimName") or made.get(e["name"]): e["name"]
        for e in pod["spec"].get("resourceClaims") or ()
    }
    extended = status.get("extendedResourceClaimStatus") or {}
    for claim in claims_of(pod, snapshot):
        name = claim["metadata"]["name"]
        if name == extended.get("resourceClaimName"):
            mappings = extended.get("requestMappings") or ()
            requests = {m["requestName"] for m in mappings if m["containerName"] == container}
            if requests:
                yield claim, requests
        elif names.get(name) in asked:
            yield claim, asked[names[name]]


def _body(pod: Object, container: str) -> Object | None:
    spec = pod["spec"]
    bodies = (*(spec.get("initContainers") or ()), *spec["containers"])
    return next((body for body in bodies if body["name"] == container), None)


def _key(pod: Object) -> tuple[str, str]:
    return pod["metadata"]["namespace"], pod["metadata"]["name"]


def paths_of(instance: str, snapshot: Snapshot) -> list[str]:
    """Where an Instance says that its device is."""
    for body in snapshot.all("instances"):
        if body["metadata"]["name"] == instance:
            properties = body["spec"].get("brokerProperties") or {}
            return [path for word, path in properties.items() if word == "UDEV_DEVNODE"]
    return []


def _files(report: NodeReport, snapshot: Snapshot) -> Iterator[Finding]:
    used = {
        uid(claim): claim
        for pod in snapshot.all("pods")
        if is_placed(pod) and node_of(pod) == report.node
        for claim in claims_of(pod, snapshot)
        if of_ours(claim)
    }
    there = {m[1]: name for name in report.cdi_files if (m := CDI_FILE.fullmatch(name))}
    for claim in sorted({*there} - {*used}):
        yield Finding("left-over", f"file {there[claim]} on {report.node}", "nobody uses its claim")
    running = {container.pod_uid for container in report.containers}
    for pod in snapshot.all("pods"):
        if uid(pod) in running and is_placed(pod) and not is_going(pod):
            for claim in claims_of(pod, snapshot):
                if of_ours(claim) and uid(claim) not in there:
                    sentence = f"ResourceClaim {shown(claim)} has no CDI file on {report.node}"
                    yield Finding("no-record", f"pod {shown(pod)}", sentence)
