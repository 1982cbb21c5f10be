"""Chaos on the real cluster, and the checker beside it.

    python -m tests.chaos [--minutes 10] [--seed N] [--kubernetes 1.37] [--no-faults] [--upgrades]
        [--tenant]

It ends with the first thing that must not be: objects, events and logs of its surroundings are
in `.artifacts/chaos-<seed>` then. A seed chooses the same actions again, as far as the cluster
answers as it did.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from local_cluster.api import Cluster, ClusterSettings
from tests.chaos import watching
from tests.chaos.clusters import chaos_cluster
from tests.chaos.faults import Faults
from tests.chaos.findings import Finding
from tests.chaos.releases import Releases
from tests.chaos.scene import Scene, scene
from tests.chaos.tenant import Tenant
from tests.chaos.trial import NO_ANSWER, Trial

ROOT = Path(__file__).parents[2]


def main() -> int:
    given = _arguments()
    seed = random.randrange(1_000_000) if given.seed is None else given.seed
    print(f"SEED={seed} MINUTES={given.minutes:g} on Kubernetes {given.kubernetes}", flush=True)
    with (
        _cluster(given) as cluster,
        tempfile.TemporaryDirectory() as folder,
        # Of entries by measure the landed version knows nothing.
        scene(cluster, Path(folder, "disks"), measures=not given.upgrades) as found,
    ):
        chance = random.Random(seed)
        more = [Releases.of(cluster, Path(folder)).change] if given.upgrades else []
        more += [Faults(cluster, chance).step_clock] if given.clock else []
        tenant = _tenant(found, seed) if given.tenant else None
        trial = Trial(found, chance, _said(), not given.no_faults, tuple(more), tenant)
        findings = trial.run(given.minutes)
        _report(findings, cluster, seed)
    return 1 if findings else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--kubernetes", default=ClusterSettings.kubernetes)
    parser.add_argument("--no-faults", action="store_true", help="users only")
    parser.add_argument(
        "--upgrades", action="store_true", help="to the landed version and back, too"
    )
    parser.add_argument("--clock", action="store_true", help="step this machine's clock, too")
    parser.add_argument("--tenant", action="store_true", help="one who means harm, too")
    parser.add_argument("--cluster", type=Path, help="one that is up and has Moorage")
    return parser.parse_args()


def _tenant(found: Scene, seed: int) -> Tenant:
    tenant = Tenant(found, random.Random(seed))
    tenant.begin()
    return tenant


@contextmanager
def _cluster(given: argparse.Namespace) -> Iterator[Cluster]:
    """One of its own, with Moorage in pods, or one that is there."""
    if given.cluster:
        yield Cluster.open(given.cluster)
        return
    with chaos_cluster(ROOT / ".cluster-chaos", given.kubernetes) as cluster:
        yield cluster


def _said() -> Callable[[str], None]:
    began = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - began:7.1f} {line}", flush=True)

    return say


def _report(findings: list[Finding], cluster: Cluster, seed: int) -> None:
    for finding in findings:
        print(f"FOUND {finding}")
    if findings:
        target = ROOT / ".artifacts" / f"chaos-{seed}"
        cluster.collect(target)
        # As the checker saw them: Queues and conditions of pods are among them. An API server that
        # does not answer may be what was found.
        with suppress(*NO_ANSWER):
            found = watching.snapshot(cluster).objects
            bodies = [body for each in found.values() for body in each.values()]
            (target / "objects.json").write_text(json.dumps(bodies, indent=1))
        print(f"objects, events and logs are in {target}")
    else:
        print("0 violations")


if __name__ == "__main__":
    sys.exit(main())
