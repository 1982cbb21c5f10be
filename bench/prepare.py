"""What the kubelet waits for: claims prepared, prepared again, unprepared; and after a restart.

    python -m bench.prepare [--example BINARY] [--rounds 25] [--devices 1,2,8] [--prepared 0,1000]
        [--rests 5] [--rest 120]

A real API server, no kubelet: a client makes its calls at the drivers' sockets, the drivers in
turn, one claim at a time and eight at a time, each claim new. Beside Moorage's driver runs the
binary of kubernetes-sigs/dra-example-driver that is given, else one that neither reads nor writes.
Moorage's devices are loop devices, those of the example driver only names.

A node prepares a claim every few minutes: `rests` is how often all do nothing for `rest` seconds
before one claim is prepared, with what became of connections and memory by then.

`prepared` is how many claims, shares of one more device, are prepared all the while. In the end
both are killed and started again with those; the time runs until the first of them is answered.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import dra_drivers, measured_cluster
from bench.allocated_claims import ClaimMaker, Offer
from bench.dra_drivers import Claims, Driver, Kubelet, Place
from bench.hotplug import percentile
from bench.idle_driver import configuration, control_plane, plugged
from kube.calls.api import connect
from local_cluster.api import Cluster

AT_ONCE = 8
CLAIMS = 8
HEAD = f"{'':52}{'median':>18}{'':>6}{'p99':>18}"
OPERATIONS = ("prepare", "again", "unprepare")

Call = Callable[[Claims], Awaitable[None]]


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """What was measured."""

    prepared: int
    devices: int
    how: str
    operation: str

    def __str__(self) -> str:
        return (
            f"{self.prepared:5} before {self.devices:2} devices {self.how:22} {self.operation:10}"
        )


Seconds = dict[Cell, list[float]]


@dataclass
class Measured:
    """A driver that runs, what it offers, and how long its calls took."""

    driver: Driver
    kubelet: Kubelet
    offer: Offer
    seconds: Seconds

    async def round(
        self, claims: Claims, prepared: int, devices: int, at_once: int, how: str
    ) -> None:
        """Every operation on each of these claims."""
        calls = (self.kubelet.prepare, self.kubelet.prepare, self.kubelet.unprepare)
        for operation, call in zip(OPERATIONS, calls, strict=True):
            cell = Cell(prepared, devices, how, operation)
            for start in range(0, len(claims), at_once):
                part = claims[start : start + at_once]
                self.seconds[cell] += await asyncio.gather(*(_timed(call, [c]) for c in part))


async def _timed(call: Call, claims: Claims) -> float:
    began = time.perf_counter()
    await call(claims)
    return time.perf_counter() - began


@contextmanager
def drivers(arguments: argparse.Namespace, cluster: Cluster, node: str) -> Iterator[list[Driver]]:
    """All of them, running; the one to compare with comes first."""
    most = max(arguments.devices) * CLAIMS + 1
    with ExitStack() as stack:
        disk = Path(stack.enter_context(TemporaryDirectory(prefix="mb-", dir="/var/tmp")))
        memory = Path(stack.enter_context(TemporaryDirectory(prefix="mb-", dir="/dev/shm")))
        stack.enter_context(plugged(most))

        def place(name: str) -> Place:
            return Place(cluster.kubeconfig, node, disk / name, memory / name)

        if arguments.example:
            peer = dra_drivers.example(place("e"), arguments.example, most)
        else:
            peer = dra_drivers.do_nothing(disk / "n")
        found = [peer, dra_drivers.moorage(place("m"))]
        for driver in found:
            stack.enter_context(driver.running())
        yield found


async def offers(maker: ClaimMaker, found: Sequence[Driver], devices: int) -> list[Offer]:
    """Of each; a driver that looks at no claim is given those of the other."""
    own = await maker.offer(found[-1].driver, devices)
    return [await maker.offer(d.driver, devices) if d.driver else own for d in found]


async def measure(arguments: argparse.Namespace, cluster: Cluster, found: list[Driver]) -> None:
    most = max(arguments.devices) * CLAIMS + 1
    async with connect(cluster.kubeconfig) as client:
        maker = ClaimMaker(client)
        measured = [
            Measured(driver, Kubelet(driver), offer, defaultdict(list))
            for driver, offer in zip(found, await offers(maker, found, most), strict=True)
        ]
        print(HEAD, flush=True)
        before: Mapping[str, Claims] = {}
        for prepared in arguments.prepared:
            before = {m.driver.name: await _prepared(maker, m, prepared) for m in measured}
            await _rounds(arguments, maker, measured, prepared)
            await _rests(arguments, maker, measured, prepared)
            show(measured, prepared)
        for each in measured:
            await each.kubelet.close()
            await _restart(each.driver, before[each.driver.name], arguments.restarts)


async def _prepared(maker: ClaimMaker, measured: Measured, count: int) -> Claims:
    """Claims that stay prepared from now on."""
    claims = await maker.shares(measured.offer, count)
    for start in range(0, count, AT_ONCE):
        await measured.kubelet.prepare(claims[start : start + AT_ONCE])
    return claims


async def _rounds(
    arguments: argparse.Namespace, maker: ClaimMaker, measured: Sequence[Measured], prepared: int
) -> None:
    for number in range(arguments.rounds + 1):
        for devices in arguments.devices:
            for at_once in (1, AT_ONCE):
                for each in measured if number % 2 else reversed(measured):
                    claims = await maker.exclusive(each.offer, CLAIMS, devices)
                    await each.round(claims, prepared, devices, at_once, _how(at_once))
                    await maker.delete(claims)
        if not number:  # which warms up
            for each in measured:
                each.seconds.clear()


async def _rests(
    arguments: argparse.Namespace, maker: ClaimMaker, measured: Sequence[Measured], prepared: int
) -> None:
    """All rest together; the claims are there before, so that only the driver reads one."""
    how = f"after {arguments.rest:.0f} s of rest"
    for number in range(arguments.rests):
        claims = [await maker.exclusive(each.offer, 1, 1) for each in measured]
        await asyncio.sleep(arguments.rest)
        pairs = list(zip(measured, claims, strict=True))
        for each, made in pairs if number % 2 else reversed(pairs):
            await each.round(made, prepared, 1, 1, how)
            await maker.delete(made)


def _how(at_once: int) -> str:
    return f"{at_once} at a time" if at_once > 1 else "one at a time"


async def _restart(driver: Driver, claims: Claims, restarts: int) -> None:
    """Seconds from the start of a process that was killed until a claim is answered."""
    seconds = []
    for _ in range(restarts if claims else 0):
        driver.kill()
        driver.socket.unlink(missing_ok=True)
        began = time.perf_counter()
        driver.start()
        await asyncio.to_thread(driver.wait_for_socket)
        kubelet = Kubelet(driver)
        await kubelet.prepare(claims[:1])
        seconds.append(time.perf_counter() - began)
        await kubelet.close()
    if seconds:
        shown = f"median {statistics.median(seconds):.2f} s, longest {max(seconds):.2f} s"
        print(f"{driver.name}: restart with {len(claims)} prepared claims: {shown}")


def show(measured: Sequence[Measured], prepared: int) -> None:
    """Milliseconds of each, and the ratio."""
    least, ours = measured
    for cell in (c for c in ours.seconds if c.prepared == prepared):
        print(f"{cell}{_figures(least.seconds[cell], ours.seconds[cell])}", flush=True)


def _figures(least: Sequence[float], ours: Sequence[float]) -> str:
    columns = []
    for share in (0.5, 0.99):
        one, other = percentile(least, share), percentile(ours, share)
        columns.append(f"{one:8.1f}{other:8.1f}{other / one:7.2f}")
    return "  ".join(columns)


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def names(found: Iterable[Driver]) -> str:
    return ", ".join(driver.name for driver in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--example", type=Path, help="the example driver's kubelet plugin")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--devices", type=_numbers, default=[1, 2, 8], help="of a claim")
    parser.add_argument("--prepared", type=_numbers, default=[0, 1000], help="claims before")
    parser.add_argument("--rests", type=int, default=5)
    parser.add_argument("--rest", type=float, default=120.0, help="seconds of each")
    parser.add_argument("--restarts", type=int, default=5)
    parser.add_argument("--dir", type=Path, default=measured_cluster.WORK_DIR)
    arguments = parser.parse_args()
    with control_plane(arguments.dir) as (cluster, node):
        cluster.apply([configuration("udev")])
        with drivers(arguments, cluster, node) as found:
            print(f"milliseconds of a call: {names(found)}, ratio; {arguments.rounds} rounds")
            asyncio.run(measure(arguments, cluster, found))


if __name__ == "__main__":
    main()
