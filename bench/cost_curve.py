"""What Filter costs as the cluster grows: claims, queues and nodes, one after the other.

    python -m bench.cost_curve [--calls 500]

The handler of `filter_handler`, bytes in and bytes out, on pods with two claims whose queue stands
six deep. Only what is sent with the call may show: the names of the nodes are copied, and where a
pod is refused each gets its sentence. CPU time, which is the same on a busy machine.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from bench import filter_handler
from bench.filter_handler import FULL, Size

CURVES = {
    "claims": ((100, 1_000, 500), (1_000, 1_000, 500), (10_000, 1_000, 500), (100_000, 1_000, 500)),
    "queues": ((10_000, 10, 500), (10_000, 100, 500), (10_000, 1_000, 500), (10_000, 10_000, 500)),
    "nodes": (
        (10_000, 1_000, 5),
        (10_000, 1_000, 50),
        (10_000, 1_000, 500),
        (10_000, 1_000, 5_000),
    ),
}


def measure(size: Size) -> None:
    """One line of a curve: microseconds."""
    handle = filter_handler.handler(filter_handler.extender(size))
    columns = [f"{size.claims:8}{size.queues:8}{size.names:8}"]
    for kind, queue in (("admitted", ""), ("refused", FULL)):
        calls = filter_handler.bodies(size, queue)
        filter_handler.check(handle(calls[0]), kind)
        times = filter_handler.timed(handle, calls)
        middle, slow = times.quantile(0.5)[1], times.quantile(0.99)[1]
        columns.append(f"{middle * 1000:10.0f}{slow * 1000:10.0f}")
    print("".join(columns), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--one", nargs=3, type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        claims, queues, names = arguments.one
        measure(Size(claims, queues, names, min(claims, arguments.calls)))
        return
    print("microseconds of CPU       admitted: p50       p99  refused: p50       p99")
    print("  claims  queues   nodes")
    for grows, sizes in CURVES.items():
        print(f"more {grows}", flush=True)
        for size in sizes:
            # In a process of its own: no line inherits the memory of the one before.
            numbers = [str(number) for number in size]
            command = [sys.executable, "-m", "bench.cost_curve", "--calls", str(arguments.calls)]
            subprocess.run([*command, "--one", *numbers], check=True)


if __name__ == "__main__":
    main()
