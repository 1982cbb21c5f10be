"""Settings of `kubectl moorage`, as its commands are told them."""

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
    """Where `kubectl moorage` reads, and how it tells.

    Attributes:
        context: Of the kubeconfig; "" for its current one.
        release_namespace: Where the release is, whose settings of accounting count.
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
        name: Of the queue or the pod that it is about.
        names: Of the objects to show; () for all.
        namespace: Of that pod, of those objects, and of objects in files that name none; "" for
            that of the context.
        all_namespaces: Whether the objects of all namespaces are shown.
        selector: Of the labels of the objects to show; "" for all.
        file: The snapshot to write; "-" for where other views are written.
        pods: Manifests of pods to simulate, and of what comes with them.
        queues: Manifests of Queues as they would be.
        without_devices: Devices that would be gone.
        only_client: Whether `version` leaves the cluster alone.
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
