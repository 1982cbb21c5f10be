"""Another version of Moorage in place of the one that runs, and back, while pods come and go."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from local_cluster.api import Cluster
from local_cluster.helm import run_helm
from moorage_demo.installation import NAMESPACE
from moorage_demo.release import CHART, VALUES
from tests.chaos.faults import Fault, nothing
from tests.e2e.earlier import TAG, Earlier, earlier

OPTIONS = (f"--namespace={NAMESPACE}", f"--values={VALUES}", "--set=namespace.create=false")


@dataclass
class Releases:
    """The landed version and this one, one of which is installed."""

    cluster: Cluster
    before: Earlier
    is_earlier: bool = False

    @classmethod
    def of(cls, cluster: Cluster, folder: Path) -> Releases:
        """Builds the landed version's image, and gives it to the nodes."""
        before = earlier(folder)
        cluster.load_image(before.image)
        return cls(cluster, before)

    def change(self) -> Fault:
        """Upgrade or roll back, and wait for nothing."""
        chart, tag = (CHART, "local") if self.is_earlier else (self.before.chart, TAG)
        # Of an upgrade whose Helm found no API server a note is left that stops the next one.
        note = ("-l", "owner=helm,status in (pending-upgrade,pending-rollback)")
        self.cluster.kubectl("delete", "secret", "-n", NAMESPACE, *note)
        run_helm(
            *("upgrade", "moorage", str(chart), *OPTIONS, f"--set=image.tag={tag}"),
            kubeconfig=self.cluster.kubeconfig,
        )
        self.is_earlier = not self.is_earlier
        return Fault(f"install version {tag}", 0, nothing)
