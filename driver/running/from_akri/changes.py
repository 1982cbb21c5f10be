"""The changes in a cluster if Moorage replaces its Akri.

    Akri ──changes──► sentences, by their subject

The driver's own validation decides whether a Configuration is accepted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from driver.configurations.configurations import holders
from driver.running.from_akri.configurations import Akri, Effect, configuration_changes
from driver.running.from_akri.values import Release, value_changes

JsonObject = Mapping[str, Any]

DEFINITION = "configurations.akri.sh"
APPLY = "helm show crds deploy/helm/moorage | kubectl apply --server-side --force-conflicts -f -"


@dataclass(frozen=True, slots=True)
class Change:
    """One sentence.

    Attributes:
        about: The object that it is about, or another subject.
    """

    about: str
    effect: Effect
    said: str


def changes(akri: Akri) -> Iterator[Change]:
    """All changes that an administrator should know before moving this cluster to Moorage."""
    yield from (Change("Not looked at", Effect.TO_DO, said) for said in akri.unread)
    yield from _definitions(akri)
    yield from (_workload(kind, body) for kind, body in akri.workloads)
    for release in akri.releases:
        yield from _release(release)
    held = holders(verdict for _, verdict in akri.configurations)
    for body, verdict in akri.configurations:
        about = f"Configuration {verdict.namespace}/{verdict.name}"
        for effect, said in configuration_changes(akri, body, verdict, held[verdict.name]):
            yield Change(about, effect, said)


def as_text(found: Iterable[Change]) -> str:
    """The report: each subject, and below it a line for each change."""
    lines = []
    for about, those in groupby(found, lambda change: change.about):
        lines.append(about)
        lines += [f"  {change.effect:8} {change.said}" for change in those]
    text = "\n".join(lines) or "Nothing of Akri's is in this cluster."
    return f"{text}\n"


def _definitions(akri: Akri) -> Iterator[Change]:
    """Akri's definition, which Helm would not replace."""
    for body in akri.definitions:
        versions = body["spec"]["versions"]
        if body["metadata"]["name"] == DEFINITION and not all(
            v.get("subresources") for v in versions
        ):
            said = f"It is Akri's and has no status, and Helm does not replace it: {APPLY}"
            yield Change(f"Definition {DEFINITION}", Effect.TO_DO, said)


_PARTS = {
    "akri-agent": "the DaemonSet moorage-driver-node is in its place.",
    "akri-controller": "the Deployment moorage-driver-shared is in its place.",
    "akri-udev-discovery": "udev is in the driver of each node.",
    "akri-debug-echo-discovery": "debugEcho is in the driver of each node.",
    "akri-onvif-discovery": "onvif is in the DaemonSet moorage-network-handlers.",
    "akri-opcua-discovery": "opcua is in the DaemonSet moorage-network-handlers.",
    "akri-webhook-configuration": "the Deployment moorage-webhook is in its place.",
}


def _workload(kind: str, body: JsonObject) -> Change:
    metadata = body["metadata"]
    about = f"{kind} {metadata['namespace']}/{metadata['name']}"
    labels = metadata.get("labels", {})
    name = labels.get("app.kubernetes.io/name", "")
    if name in _PARTS:
        return Change(about, Effect.CHANGED, f"It goes with Akri; {_PARTS[name]}")
    if labels.get("app.kubernetes.io/component") == "discovery-handler":
        said = (
            "A handler of yours: it goes with Akri's release, and serves Moorage as it served Akri"
            " if you run it by yourself (docs/write-your-own-handler.md)."
        )
        return Change(about, Effect.TO_DO, said)
    return Change(about, Effect.CHANGED, "It goes with Akri.")


def _release(release: Release) -> Iterator[Change]:
    about = f"Helm release {release.namespace}/{release.name}, chart {release.chart}"
    command = f"helm uninstall {release.name} --namespace {release.namespace}"
    if release.deletes_configurations:
        said = f"{command} --no-hooks; with its hook all Configurations of the cluster are deleted."
        yield Change(about, Effect.TO_DO, said)
    else:
        yield Change(about, Effect.TO_DO, f"{command} before Moorage is installed.")
    for path, new in value_changes(release.values):
        if new == path:
            yield Change(about, Effect.KEPT, f"{path} is a value of Moorage's chart, too.")
        else:
            yield Change(about, Effect.CHANGED, f"{path}: {new}.")
