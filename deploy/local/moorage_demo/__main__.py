"""`make demo`: brings a cluster up, tells the story, and takes everything down again."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from local_cluster.api import Cluster, ClusterSettings, LocalClusterError
from local_cluster.loop_devices import CONTROL
from moorage_demo.installation import PARTS, ROOT, workloads
from moorage_demo.release import begin_preparing, install_release
from moorage_demo.scene import Scene
from moorage_demo.slots import SlotStory
from moorage_demo.story import Story
from moorage_demo.table import Table

WORK_DIR = ROOT / ".cluster-demo"
WITHOUT_DRA, OLDEST = "1.33", "1.34"


def main() -> int:
    """Returns the exit status; the last line says what it comes to."""
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave the cluster up")
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--legacy", action="store_true", help="on Kubernetes 1.33, without DRA")
    other.add_argument("--oldest", action="store_true", help="on 1.34, the first with DRA's v1")
    options = parser.parse_args()
    if not options.legacy and not CONTROL.exists():
        print(f"{CONTROL} is missing: the demo plugs loop devices (modprobe loop).")
        return 1
    if (kept := kept_cluster(WORK_DIR)) is not None:
        print(kept, file=sys.stderr)
        return 1
    started = time.monotonic()
    try:
        told = _run(_version(options), keep=options.keep)
    except LocalClusterError as error:
        print(f"The demo failed: {error}", file=sys.stderr)
        return 1
    seconds = f"{time.monotonic() - started:.0f} s"
    print(f"\nAfter {seconds}: {told}.")
    return 0


def kept_cluster(work_dir: Path) -> str | None:
    """What to say where a demo's cluster serves still: another demo would end or spoil it."""
    try:
        cluster = Cluster.open(work_dir)
    except LocalClusterError:
        return None
    if not cluster.part("kube-apiserver").is_healthy:
        return None
    return (
        f"A demo's cluster is up already (Kubernetes {cluster.settings.kubernetes}, KEEP=1 kept it"
        f" or it was interrupted). To end it:\n  make cluster-down CLUSTER={cluster.work_dir}"
    )


def _version(options: argparse.Namespace) -> str:
    if options.legacy:
        return WITHOUT_DRA
    return OLDEST if options.oldest else ClusterSettings.kubernetes


def _run(version: str, *, keep: bool) -> str:
    table = Table()
    finish_preparing = begin_preparing(version)
    cluster = Cluster.up(ClusterSettings(work_dir=WORK_DIR, parts=PARTS, kubernetes=version))
    try:
        finish_preparing()
        served = cluster.kubectl("version", "-o", "yaml").stdout
        install_release(cluster)
        print()
        table.head()
        nodes = ", ".join(node.name for node in cluster.nodes)
        table.row("Kubernetes", _server_version(served), f"nodes {nodes}")
        for kind, name in workloads():
            table.row("installed", f"{kind} {name}", "its pods serve")
        scene = Scene(cluster, table)
        told = SlotStory(scene).tell() if version == WITHOUT_DRA else Story(scene).tell()
    except BaseException:
        cluster.collect(ROOT / ".artifacts" / "demo")
        print(f"Logs and events are in {ROOT / '.artifacts' / 'demo'}", file=sys.stderr)
        if not keep:
            cluster.down(purge=True)
        raise
    if keep:
        _say_how_to_look_around(cluster)
    else:
        cluster.down(purge=True)
    return told


def _server_version(text: str) -> str:
    return text.rpartition("gitVersion: ")[2].split()[0]


def _say_how_to_look_around(cluster: Cluster) -> None:
    program = Path(cluster.kubectl_program)
    print(f"""
The cluster stays up. To look around:
  export KUBECONFIG={cluster.kubeconfig} PATH={program.parent}:$PATH
  kubectl get queues,akric,akrii,pods -A   # with DRA: resourceslices,deviceclasses,resourceclaims
  kubectl -n moorage-system logs daemonset/moorage-driver-node
  kubectl -n moorage-system logs deployment/moorage-scheduler --all-containers
To end it:
  make cluster-down CLUSTER={cluster.work_dir}""")


if __name__ == "__main__":
    sys.exit(main())
