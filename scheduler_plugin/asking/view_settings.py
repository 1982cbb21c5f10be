"""Settings of `kubectl moorage`, as its commands parse them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

View = Literal[
    "queues",
    "claims",
    "charge",
    "why",
    "devices",
    "handlers",
    "simulate",
    "snapshot",
    "version",
]
Output = Literal["table", "wide", "json", "yaml"]


@dataclass(frozen=True, slots=True)
class Reading:
    """Where `kubectl moorage` reads, and how it prints.

    Attributes:
        context: A context of the kubeconfig; "" for its current one.
        release_namespace: The namespace of the release, whose accounting settings apply.
        snapshot: The file to read instead of a cluster; None for the cluster.
    """

    kubeconfig: Path | None
    context: str
    release_namespace: str
    output: Output
    snapshot: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewSettings:
    """Settings of `kubectl moorage`.

    Attributes:
        name: The name of the queue or pod.
        names: The names of the objects to print; () for all.
        namespace: The namespace of the pod, of the objects, and of objects in files that name
            none; "" for that of the context.
        all_namespaces: Whether the objects of all namespaces are printed.
        selector: A label selector of the objects to print; "" for all.
        file: The snapshot to write; "-" for standard output.
        pods: Manifests of pods to simulate, with their claims and templates.
        queues: Manifests of new or changed Queues to simulate.
        without_devices: Devices to remove in the simulation.
        only_client: Whether `version` prints only the version of this command.
    """

    view: View
    reading: Reading
    name: str = ""
    names: tuple[str, ...] = ()
    namespace: str = ""
    all_namespaces: bool = False
    selector: str = ""
    file: str = ""
    pods: tuple[Path, ...] = ()
    queues: tuple[Path, ...] = ()
    without_devices: tuple[str, ...] = ()
    only_client: bool = False
