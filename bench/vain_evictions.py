"""How many evictions are in vain where something keeps pods off nodes that no decision looks at.

Drawn worlds of up to 4 nodes and 6 pods that wait: of each kind of pods the world says on which
nodes they can run, and the decision does not know it. `nothing` is the baseline in which nothing is
remembered of what was in vain, for the ten minutes that a node is left out.

python -m bench.vain_evictions [--worlds 2000]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from tests.scheduler_plugin.reclaiming.unmodelled_worlds import UnmodelledWorld

MINUTES = 10


def played(worlds: int, *, remembers: bool) -> Iterator[UnmodelledWorld]:
    for seed in range(worlds):
        world = UnmodelledWorld(seed, remembers=remembers)
        world.goes_on(MINUTES)
        yield world


def measure(name: str, worlds: int, *, remembers: bool) -> int:
    found = [*played(worlds, remembers=remembers)]
    in_vain = sum(sum(world.in_vain.values()) for world in found)
    most = max(max(world.in_vain.values(), default=0) for world in found)
    waits = sum(len(world.could_be_served()) for world in found)
    print(
        f"{name:8} {in_vain:6} evictions in vain   at most {most} of a kind and node"
        f"   {waits} pods wait although a node would do"
    )
    return in_vain


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--worlds", type=int, default=2000)
    options = parser.parse_args()
    ours = measure("ours", options.worlds, remembers=True)
    nothing = measure("nothing", options.worlds, remembers=False)
    print(f"ratio {ours / nothing:.3f}")


if __name__ == "__main__":
    main()
