"""What every part of the demo's story is told with: the cluster, the table, and a patient eye."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from local_cluster.api import Cluster
from moorage_demo.table import Table

OBJECTS = Path(__file__).parent / "objects"
SECONDS = 60.0

T = TypeVar("T")
Object = dict[str, Any]


@dataclass(frozen=True)
class Scene:
    """Everything that is shown was seen in the cluster."""

    cluster: Cluster
    table: Table

    def apply(self, file: str) -> None:
        """Apply a file that a user could have written."""
        self.cluster.apply(OBJECTS / file)

    def get(self, kind: str, name: str) -> Object | None:
        return self.cluster.get(kind, name, namespace="default")

    def until(self, what: str, condition: Callable[[], T | None]) -> T:
        return self.cluster.wait_until(what, condition, seconds=SECONDS)

    def until_ready(self, pod: str) -> None:
        self.cluster.wait(f"pod/{pod}", "condition=Ready", seconds=SECONDS)

    def row(self, step: str, name: str, *shown: str) -> None:
        self.table.row(step, name, *shown)

    def delete_pods(self, *names: str) -> None:
        self.cluster.kubectl("delete", "pod", *names, f"--timeout={SECONDS}s")
