"""One trial: rounds of chance, each of which ends in a rest at which everything is checked."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import TypeVar

from local_cluster.api import ApiError, LocalClusterError
from tests.chaos import node_files, watching
from tests.chaos.bindings import History
from tests.chaos.faults import Fault, Faults, end_back_off, is_ours
from tests.chaos.findings import Finding
from tests.chaos.measures import REMEMBERED
from tests.chaos.node_rules import node_findings
from tests.chaos.objects import (
    Object,
    Snapshot,
    claims_of,
    condition,
    is_going,
    is_placed,
    of_ours,
    shown,
)
from tests.chaos.patience import SECONDS, Patience
from tests.chaos.rest_rules import rest_findings
from tests.chaos.scene import NAMESPACES, Scene
from tests.chaos.slot_rules import slot_findings
from tests.chaos.supply import asks_for_what_is_gone, is_away
from tests.chaos.tenant import Tenant
from tests.chaos.user_actions import Users
from tests.chaos.vendor_faults import VendorFaults
from tests.chaos.watching import Follower, holder

ROUND_SECONDS = 25.0
QUIET_SECONDS = 5.0
QUIET_WITHIN = 150.0
"""Longer than any grace after which something of ours goes on by itself."""
FAULTS_AT_ONCE = 2
NO_ANSWER = (*watching.NO_ANSWER, ApiError, LocalClusterError)

T = TypeVar("T")


@dataclass
class Trial:
    """Chaos, with a seed.

    Attributes:
        says: Is told what happens, line by line.
        more: Faults beside the usual ones.
        tenant: Does harm while users act; None for nobody.
    """

    scene: Scene
    random: Random
    says: Callable[[str], None]
    faults_wanted: bool = True
    more: tuple[Callable[[], Fault | None], ...] = ()
    tenant: Tenant | None = None
    history: History = field(default_factory=History)
    broken: list[tuple[float, Fault]] = field(default_factory=list)

    def run(self, minutes: float) -> list[Finding]:
        """Rounds until the time is over, or until something is found."""
        deadline = time.monotonic() + 60 * minutes
        with Follower(self.scene.cluster) as follower, self.scene.cluster.api() as api:
            users = Users(self.scene, api, self.random, count(1))
            for number in count(1):
                self.says(f"round {number}")
                users.restore()
                found = self._round(users, follower) or self._rest(follower)
                if found or time.monotonic() > deadline:
                    return found
        return []

    def _round(self, users: Users, follower: Follower) -> list[Finding]:
        with self.tenant.at_work() if self.tenant else nullcontext():
            found = self._acts(users, follower)
        self.mend(due=float("inf"))
        if self.tenant:
            self.tenant.leave()
        self._says_of(lambda: end_back_off(self.scene.cluster))
        return found

    def _acts(self, users: Users, follower: Follower) -> list[Finding]:
        drivers = VendorFaults(self.scene.vendors, self.random) if self.scene.vendors else None
        more = (*self.more, *((drivers.kill, drivers.stop) if drivers else ()))
        faults = Faults(self.scene.cluster, self.random, more)
        deadline = time.monotonic() + ROUND_SECONDS
        found: list[Finding] = []
        while time.monotonic() < deadline and not found:
            self.mend(due=time.monotonic())
            if self.faults_wanted and self.random.random() < 0.08:
                self._break(faults)
            else:
                self._says_of(chosen(self.random, users.actions()))
            time.sleep(self.random.choice((0.0, 0.1, 0.3, 0.8)))
            found = list(self.history.judge(follower.taken()))
        return found

    def _break(self, faults: Faults) -> None:
        if len(self.broken) >= FAULTS_AT_ONCE:
            return
        try:
            fault = chosen(self.random, faults.kinds())()
        except NO_ANSWER as error:
            self.says(f"  ! not broken: {error}")
            return
        if fault:
            self.says(f"  ! {fault.what}")
            self.broken.append((time.monotonic() + fault.seconds, fault))

    def mend(self, due: float) -> None:
        """End the faults that are due; all of them for infinity, whatever it takes.

        One may not end while another one lasts: no kubelet starts beside a containerd that
        stands still. So it stays, and what is left of all of them is started last.
        """
        for each in [entry for entry in self.broken if entry[0] <= due]:
            try:
                each[1].mend()
                self.broken.remove(each)
            except NO_ANSWER as error:
                self.says(f"  ! {each[1].what}: not mended yet: {error}")
        if due == float("inf") and self.broken:
            self.scene.cluster.reconfigure()
            self.broken.clear()

    def _says_of(self, action: Callable[[], str]) -> None:
        try:
            self.says(f"  {action()}")
        except NO_ANSWER as error:
            self.says(f"  no answer: {error}")

    def _rest(self, follower: Follower) -> list[Finding]:
        found = self._come_to_rest(follower)
        found += self.history.judge(follower.taken(everything=True))
        return found or self._settled()

    def _come_to_rest(self, follower: Follower) -> list[Finding]:
        """Wait for the quiet; that it does not come is a finding."""
        deadline = time.monotonic() + QUIET_WITHIN
        moving: list[str] = ["the API server"]
        while time.monotonic() < deadline:
            if self.scene.vendors:
                self.scene.vendors.revive()
            try:
                moving = [*_on_their_way(watching.snapshot(self.scene.cluster))]
            except NO_ANSWER as error:
                moving = [f"the API server: {error}"]
            if not moving and follower.quiet_seconds() >= QUIET_SECONDS:
                return []
            time.sleep(1)
        what = ", ".join(moving) or f"something was written {follower.quiet_seconds():.1f} s ago"
        return [Finding("not-quiet", "cluster", f"after {QUIET_WITHIN:g} s: {what}")]

    def _settled(self) -> list[Finding]:
        """What is still found after some patience."""
        began = time.monotonic()
        patience = Patience()
        while True:
            now = time.monotonic()
            found = patience.look(*self._look(), now)
            if found or not patience.since:
                return found
            if now - began > 2 * SECONDS:
                return patience.overdue()
            time.sleep(1)

    def _look(self) -> tuple[list[Finding], str]:
        """All that is found now, and who leads. What begins or ends meanwhile is seen later."""
        found = watching.snapshot(self.scene.cluster)
        return [*self._findings(found)], holder(found)

    def _findings(self, found: Snapshot) -> Iterable[Finding]:
        cluster = self.scene.cluster
        snapshot = Snapshot({**found.objects, REMEMBERED: self.history.devices})
        yield from rest_findings(snapshot)
        reports = [node_files.report(node.name, node.root) for node in cluster.nodes]
        yield from slot_findings(reports, snapshot)
        instances = {**self.history.instances, **snapshot.objects["instances"]}
        ever = Snapshot({**snapshot.objects, "instances": instances})
        for report in reports:
            yield from node_findings(report, ever)


def _on_their_way(snapshot: Snapshot) -> Iterable[str]:
    for pod in snapshot.all("pods"):
        if pod["metadata"]["namespace"] in NAMESPACES and (why := _why_moving(pod, snapshot)):
            yield f"pod {shown(pod)} {why}"
        if is_ours(pod) and condition(pod, "Ready").get("status") != "True":
            yield f"pod {shown(pod)} is not ready"


def _why_moving(pod: Object, snapshot: Snapshot) -> str:
    if is_going(pod):
        return "is being deleted"
    starts = is_placed(pod) and pod["status"]["phase"] == "Pending"
    return "starts" if starts and not _lacks_a_device(pod, snapshot) else ""


def _lacks_a_device(pod: Object, snapshot: Snapshot) -> bool:
    """Whether a device of it went away, so that it does not start before it is back."""
    if asks_for_what_is_gone(pod, snapshot):
        return True
    found = (result for claim in claims_of(pod, snapshot) for result in of_ours(claim))
    return any(is_away((result["pool"], result["device"]), snapshot) for result in found)


def chosen(random: Random, weighted: list[tuple[int, T]]) -> T:
    (found,) = random.choices([each for _, each in weighted], [weight for weight, _ in weighted])
    return found
