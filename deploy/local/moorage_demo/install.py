"""`make install`: a cluster, Moorage in it by its chart, and a first Queue. Again: an upgrade."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

from local_cluster.api import Cluster, ClusterSettings, LocalClusterError
from local_cluster.layout import layout_of
from local_cluster.progress import say
from local_cluster.records import load_record
from local_cluster.settings import PARTS_BESIDE_A_RELEASE
from local_cluster.shells import FILE
from moorage_demo.installation import ROOT
from moorage_demo.release import begin_preparing, upgrade_release

FIRST_QUEUE = ROOT / "deploy/examples/first/queue.yaml"
FIRST_CLAIM = "deploy/examples/first/claim.yaml"


def main() -> int:
    """Returns the exit status; what is typed next is printed last."""
    parser = argparse.ArgumentParser(prog="make install", description=__doc__)
    parser.add_argument("--dir", type=Path, default=ROOT / ".cluster", help="the work folder")
    options = parser.parse_args()
    started = time.monotonic()
    try:
        cluster = install(options.dir)
    except LocalClusterError as error:
        say(f"failed: {error}\nWhat is there stays; `make install` goes on from it.")
        return 1
    say(f"installed after {time.monotonic() - started:.0f} s")
    print(welcome(options.dir, cluster.write_exports()))
    return 0


def install(work_dir: Path) -> Cluster:
    """Bring all of it about; what is there already stays or is upgraded."""
    say("1/3: the cluster; its programs are compiled the first time, which takes minutes")
    settings = settings_for(work_dir)
    finish_preparing = begin_preparing(settings.kubernetes)
    cluster = Cluster.up(settings)
    finish_preparing()
    say("2/3: Moorage; images are loaded, then the chart is installed and waited for")
    upgrade_release(cluster)
    say("3/3: the Queue team")
    cluster.apply(FIRST_QUEUE)
    return cluster


def settings_for(work_dir: Path) -> ClusterSettings:
    """Those of the cluster that is there, as far as a release gets on with them."""
    record = load_record(layout_of(work_dir))
    found = record.settings if record else ClusterSettings(work_dir=work_dir)
    nodes = found.nodes or ClusterSettings.nodes
    return replace(found, nodes=nodes, parts=PARTS_BESIDE_A_RELEASE, scheduler_overlay={})


def welcome(work_dir: Path, exports: str) -> str:
    """What to type next."""
    lines = "".join(f"    {line}\n" for line in exports.splitlines())
    return f"""
Moorage is installed, with a Queue named team. In this shell:
  source {work_dir / FILE}
which says
{lines}Then a device, a claim and a pod that is charged for it:
  kubectl apply -f {FIRST_CLAIM}
  kubectl wait pod/first --for=condition=Ready --timeout=120s
  kubectl moorage queues
To end it:
  make cluster-down CLUSTER={work_dir}"""


if __name__ == "__main__":
    sys.exit(main())
